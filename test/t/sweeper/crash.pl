# The sweeper after a crash, on a standby, after its promotion, and in a server without the preload.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../lib";
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Server;
use Test::More;

my $primary = PostgreSQL::Test::Cluster->new('primary');
$primary->init(allows_streaming => 1);
$primary->append_conf('postgresql.conf', "shared_preload_libraries = 'pg_interlock'\nrestart_after_crash = on");
$primary->start;
$primary->safe_psql('postgres', q(
    CREATE EXTENSION pg_interlock;
    CREATE TABLE page (id int PRIMARY KEY);
    INSERT INTO page SELECT generate_series(1, 3);
    SELECT interlock.enable_marker('page', '1 s');));

sub lock_all
{
    my ($node, $ttl) = @_;
    $node->safe_psql('postgres', "SELECT interlock.lock_row('page', id, 'anna', '$ttl') FROM page");
}

sub wait_released
{
    my ($node, $name) = @_;
    ok($node->poll_query_until('postgres', 'SELECT count(*) = 0 FROM page WHERE lock_status = 1'), $name);
}

# kill -9 of the server: nobody remembers the deadlines, one look finds them
lock_all($primary, '2 s');
my $postmaster = (split /\n/, slurp_file($primary->data_dir . '/postmaster.pid'))[0];
$primary->kill9;
for (1 .. 100) { last unless kill 0, $postmaster; select undef, undef, undef, 0.1; }
$primary->start;
wait_released($primary, 'released after kill -9 and restart');
lock_all($primary, '1 s');
$primary->stop('immediate');
$primary->start;
wait_released($primary, 'released after an immediate stop');

# A backend that crashes restarts all: the launcher with them
my $pid = $primary->safe_psql('postgres', "SELECT pid FROM pg_stat_activity WHERE backend_type = 'pg_interlock launcher'");
lock_all($primary, '2 s');
kill 'KILL', $pid;
ok(poll_over_crash($primary, q(
        SELECT count(*) = 1 FROM pg_stat_activity WHERE backend_type = 'pg_interlock launcher')), 'the launcher came back');
wait_released($primary, 'released after a crash of the launcher');

# A standby has no sweeper until it is promoted
$primary->backup('backup');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($primary, 'backup', has_streaming => 1);
$standby->start;
lock_all($primary, '1 hour');
lock_all($primary, '2 hours');
$primary->safe_psql('postgres', q(
    SET session_replication_role = replica; UPDATE page SET lock_until = now();));
$primary->wait_for_catchup($standby);
is($standby->safe_psql('postgres', "SELECT count(*) FROM pg_stat_activity WHERE backend_type ~ 'pg_interlock'"),
    0, 'no sweeper on a standby');
is($standby->safe_psql('postgres', 'SELECT count(*) FROM page WHERE lock_status = 1'), 3, 'marked there');
my ($ret, $out, $err) = $standby->psql('postgres', "SELECT interlock.lock_row('page', 1, 'bert')");
like($err, qr/read-only transaction/, 'no marker is taken on a standby');
$primary->stop('immediate');
$standby->promote;
wait_released($standby, 'released after promotion');

# Without the preload the functions work, and what cannot says so
my $plain = PostgreSQL::Test::Cluster->new('plain');
$plain->init;
$plain->start;
$plain->safe_psql('postgres', q(
    CREATE EXTENSION pg_interlock;
    CREATE TABLE page (id int PRIMARY KEY);
    INSERT INTO page VALUES (1);
    SELECT interlock.enable_marker('page', '100 ms');));
is($plain->safe_psql('postgres', "SELECT (interlock.lock_row('page', 1, 'anna')).locked, pg_sleep(0.2)"), 't|', 'locked without preload');
is($plain->safe_psql('postgres', 'SELECT released FROM interlock.sweep()'), 1, 'swept by hand');
($ret, $out, $err) = $plain->psql('postgres', "\\set VERBOSITY verbose\nSELECT * FROM interlock.sweeper");
like($err, qr/55000.*preloaded/, 'the view says that it needs the preload');
like($err, qr/shared_preload_libraries/, 'and how to get it');
$plain->safe_psql('postgres', 'SELECT interlock_internal.wake_sweeper()');
$plain->stop;

# With the preload the same database is swept
$plain->append_conf('postgresql.conf', "shared_preload_libraries = 'pg_interlock'");
$plain->start;
lock_all($plain, '200 ms');
wait_released($plain, 'released once preloaded');
$plain->stop;
$standby->stop;
done_testing();
