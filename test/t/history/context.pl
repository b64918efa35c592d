# HIS-60: interlock.context where it is not set by a transaction: in files, for roles, in a pooled session, and before the library
# is loaded.

use strict;
use warnings;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('main');
$node->init;
$node->append_conf('postgresql.conf', "shared_preload_libraries = 'pg_interlock'\ninterlock.sweeper = off\n");
$node->start;

sub sql { return $node->safe_psql('postgres', $_[0]); }
sub error { my ($out, $err) = ('', ''); $node->psql('postgres', $_[0], stdout => \$out, stderr => \$err); return $err; }
sub last_context { return sql('SELECT context FROM doc_history ORDER BY id DESC LIMIT 1'); }

sql(q(
    CREATE EXTENSION pg_interlock;
    CREATE TABLE doc (id int PRIMARY KEY, note text);
    SELECT interlock.enable_history('doc');
    INSERT INTO doc VALUES (1, 'a');
    CREATE ROLE worker LOGIN;
    GRANT ALL ON doc TO worker;
    ALTER ROLE worker SET interlock.context = '{"job": "nightly"}';
));

like(error(q(ALTER SYSTEM SET interlock.context = '{"a": 1}')), qr/cannot be changed/, 'ALTER SYSTEM');
like(error(q(ALTER ROLE worker SET interlock.context = 'nightly')), qr/must be a JSON object/, 'ALTER ROLE with what is none');

# A file is read by the postmaster
my $offset = -s $node->logfile;
$node->append_conf('postgresql.conf', q(interlock.context = '{"a": '));
$node->reload;
ok($node->wait_for_log(qr/setting "interlock.context" cannot be set for a whole server/, $offset), 'a file is refused');
is(sql("UPDATE doc SET note = 'b' RETURNING note"), 'b', 'and the server runs on');
is(last_context(), '', 'without a context');
$node->restart(fail_ok => 1);
$node->append_conf('postgresql.conf', q(interlock.context = ''));
$node->start if !-f $node->data_dir . '/postmaster.pid';
is(sql('SHOW interlock.context'), '', 'an empty one may be there');

# A role's setting, and what a pooled session still has of another client
$node->safe_psql('postgres', "UPDATE doc SET note = 'c'", extra_params => [ '-U', 'worker' ]);
is(last_context(), '{"job": "nightly"}', 'of a role');
sql(q(SET interlock.context = '{"user": "anna"}'; BEGIN; UPDATE doc SET note = 'd'; COMMIT; UPDATE doc SET note = 'e';));
is(last_context(), '{"user": "anna"}', 'SET without LOCAL lasts');
sql(q(SET interlock.context = '{"user": "anna"}'; DISCARD ALL; UPDATE doc SET note = 'f';));
is(last_context(), '', 'until DISCARD ALL');

# The options with which a session starts are bytes that nobody has verified. An entry with such bytes could not be restored.
{
    local $ENV{PGOPTIONS} = qq(-c interlock.context={"user":"\xff"});
    my ($out, $err) = ('', '');
    isnt($node->psql('postgres', "UPDATE doc SET note = 'x'", stdout => \$out, stderr => \$err), 0, 'bytes of no encoding');
    like($err, qr/must be valid in the encoding of the database/, 'are refused');
    local $ENV{PGOPTIONS} = qq(-c interlock.context={"user":"J\xc3\xb6rg"});
    sql("UPDATE doc SET note = 'j'");
    is(last_context(), qq({"user": "J\xc3\xb6rg"}), 'others are stored');
}

# Before the library is loaded the server takes every value
$node->append_conf('postgresql.conf', "shared_preload_libraries = ''");
$node->restart;
like(error(q(BEGIN; SET LOCAL interlock.context = 'anna'; UPDATE doc SET note = 'g'; COMMIT;)),
    qr/WARNING: .*interlock.context" must be a JSON object/, 'a bad value is a warning then');
is(sql('SELECT note FROM doc'), 'g', 'and fails no write');
is(last_context(), '', 'which has none');
sql(q(BEGIN; SET LOCAL interlock.context = '{"user": "bert"}'; UPDATE doc SET note = 'h'; COMMIT;));
is(last_context(), '{"user": "bert"}', 'a good one is taken');
$node->safe_psql('postgres', "UPDATE doc SET note = 'i'", extra_params => [ '-U', 'worker' ]);
is(last_context(), '{"job": "nightly"}', 'of a role, too');

done_testing();
