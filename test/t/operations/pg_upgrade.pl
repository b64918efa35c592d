# pg_upgrade carries the extension over: both schemas, the members of the extension, triggers, sequences and rights.

use strict;
use warnings;
use IPC::Run;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

sub cluster
{
    my $node = PostgreSQL::Test::Cluster->new($_[0]);
    $node->init;
    $node->append_conf('postgresql.conf', "shared_preload_libraries = 'pg_interlock'\ninterlock.lease_durable_after = 3600");
    return $node;
}

my ($old, $new) = map { cluster($_) } 'old', 'new';
$old->start;
$old->safe_psql('postgres', q(
    CREATE EXTENSION pg_interlock;
    CREATE TABLE doc (id int PRIMARY KEY, note text);
    SELECT interlock.enable_versioning('doc'), interlock.enable_history('doc'), interlock.enable_marker('doc');
    SELECT interlock.define_idempotency_scope('pay', ttl => '1 day');
    INSERT INTO doc VALUES (1, 'a'), (2, 'a');
    UPDATE doc SET note = 'b' WHERE id = 1;
    DELETE FROM doc WHERE id = 1;));
my $short = $old->safe_psql('postgres', "SELECT token FROM interlock.acquire_lease('short', '50 min')");
my $long = $old->safe_psql('postgres', "SELECT token FROM interlock.acquire_lease('long', '3 hours')");
my $rights = q(SELECT string_agg(concat_ws(' ', n.nspname, n.nspacl), ', ' ORDER BY n.nspname) FROM pg_namespace n WHERE nspname LIKE 'interlock%');
my $granted = $old->safe_psql('postgres', $rights);
$old->stop;

my $programs = $new->config_data('--bindir');
chdir $PostgreSQL::Test::Utils::tmp_check or die $!;
my ($out, $err);
ok(IPC::Run::run([ 'pg_upgrade', '-d', $old->data_dir, '-D', $new->data_dir, '-b', $programs, '-B', $programs,
            '-p', $old->port, '-P', $new->port, '-s', $new->host ], '>', \$out, '2>', \$err), 'pg_upgrade runs to its end') or diag("$out$err");
$new->start;
sub sql { return $new->safe_psql('postgres', $_[0]); }

is(sql('INSERT INTO doc VALUES (1, \'c\') RETURNING version'), 3, 'VER-19: versions of deleted rows are known');
is(sql('UPDATE doc SET note = \'d\' WHERE id = 2 RETURNING version'), 2, 'VER-14: versions move');
is(sql('SELECT count(*) FROM doc_history'), 6, 'history goes on');
is(sql("SELECT ttl FROM interlock.idempotency_scope WHERE scope = 'pay'"), '1 day', 'scopes are there');
is(sql("SELECT outcome FROM interlock.acquire_lease('k')"), 'recovering', 'leases: a grace, as after a crash');
is(sql("SELECT token FROM interlock.leases WHERE key = 'long'"), $long, 'a lease with a record is held');
ok(sql("SELECT interlock.renew_lease('short', $short)"), 'the holder of another one can renew it in the grace');
is(sql("SELECT count(*) FROM interlock.advise() WHERE severity = 'broken'"), 0, 'VER-16: protection is on');
is(sql($rights), $granted, 'SEC-11: rights on the schemas are the same');
$new->append_conf('postgresql.conf', "interlock.lease_recovery = immediate");
$new->restart;
is(sql("SELECT outcome, token > $long FROM interlock.acquire_lease('k')"), 'acquired|t', 'later leases are granted, with larger tokens');
sql('DROP EXTENSION pg_interlock CASCADE');
is(sql("SELECT count(*) FROM pg_namespace WHERE nspname = 'interlock_internal'"), 0, 'OPS-15: interlock_internal belongs to the extension');

$new->stop;
done_testing();
