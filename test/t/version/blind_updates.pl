# VER-1: blind updates where statements are not known, and on a whole server: preloading, other modules, replication, counts.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../lib";
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Server;
use Test::More;

# The SQLSTATE and message of what one session answers last, or its output.
sub ask
{
    my ($node, $database, @sql) = @_;
    my ($status, $out, $error) = $node->psql($database, join("\n", '\set VERBOSITY verbose', map { "$_;" } @sql), on_error_stop => 0);
    return $error =~ /(?:ERROR|WARNING):\s+([^\n]*)/ ? $1 : $out;
}

my $reject = q{SELECT interlock.enable_versioning('doc', blind_updates => 'reject')};
my $blind = q{UPDATE doc SET body = 'blind' WHERE id = 1 RETURNING body};
my $sighted = q{UPDATE doc SET body = 'sighted' WHERE id = 1 AND version = (SELECT max(n) FROM expected) RETURNING body};
my $set_up = q{CREATE TABLE doc (id int PRIMARY KEY, body text); INSERT INTO doc VALUES (1, 'old'), (2, 'old');
    CREATE TABLE expected (n bigint); INSERT INTO expected VALUES (1)};

# --- Without shared_preload_libraries --------------------------------------------------------------------------

{
    my $node = PostgreSQL::Test::Cluster->new('bare');
    $node->init;
    $node->start;
    $node->safe_psql('postgres', "CREATE DATABASE \"a Db\" TEMPLATE template0");
    my $database = 'a Db';
    $node->safe_psql($database, "CREATE EXTENSION pg_interlock; $set_up");

    my (undef, undef, $error) = $node->psql($database, "\\set VERBOSITY verbose\n$reject;");
    like($error, qr/ERROR:  55000: blind updates cannot be recognized/, 'VER-1: a session that loads the library late cannot refuse blind updates');
    my ($line) = $error =~ /or run (ALTER DATABASE .*;) and connect again/;
    is($line, q{ALTER DATABASE "a Db" SET session_preload_libraries = 'pg_interlock';}, 'and says what to do');
    like(ask($node, $database, q{SELECT interlock.enable_versioning('doc', blind_updates => 'warn')}), qr/^55000/, 'nor warn of them');
    is(ask($node, $database, q{SELECT interlock.enable_versioning('doc')}), '', 'versions alone need no preload');
    is(ask($node, $database, $blind), 'blind', 'and allow them');
    is(ask($node, $database, 'SELECT count(*) FROM interlock.blind_updates'), '0', 'which nothing counts');

    # One session has planned its statements before the library is loaded, another one after.
    my $late = $node->background_psql($database, on_error_stop => 0);
    $late->query_safe(q{PREPARE blind AS UPDATE doc SET body = 'blind' WHERE id = 2});
    $late->query_safe(q{SET plan_cache_mode = force_generic_plan});
    $node->safe_psql($database, $line);
    is(ask($node, $database, $reject), '', 'VER-1: that line helps');
    like(ask($node, $database, $blind), qr/^IL011/, 'and blind updates are refused');
    like(ask($node, $database, $reject, "LOAD 'pg_interlock'", $blind), qr/^IL011/, 'a second load changes nothing');
    $node->safe_psql($database, 'UPDATE expected SET n = 2');
    is(ask($node, $database, $sighted), 'sighted', 'others pass');
    # A statement whose plan the library has not seen; from then on it sees them.
    my $ask_late = sub {
        my ($sql) = @_;
        my ($out) = $late->query("\\set VERBOSITY sqlstate\n$sql");
        my $said = $late->{stderr};
        $late->{stderr} = '';
        return $said =~ /(?:ERROR|WARNING):\s+(\w+)/ ? $1 : $out;
    };
    is($ask_late->('EXECUTE blind;'), '55000', 'VER-1: a session that has loaded it late is refused instead of passing unchecked');
    is($ask_late->('UPDATE doc SET body = 1 WHERE id = 2;'), 'IL011', 'and then knows its new statements');
    is($ask_late->(q{UPDATE doc SET body = 'sighted' WHERE id = 2 AND version = 1 RETURNING body;}), 'sighted', 'of both kinds');
    is($ask_late->('EXECUTE blind;'), '55000', 'but not the old plan');
    $late->quit;

    # A setting that names other libraries keeps them.
    $node->safe_psql('postgres', q{CREATE EXTENSION pg_interlock});
    my $hint = ask($node, 'postgres', q{SET session_preload_libraries = 'auto_explain'}, q{DO $$ DECLARE h text; BEGIN
        PERFORM interlock.enable_versioning('pg_class', blind_updates => 'warn'); EXCEPTION WHEN OTHERS THEN
        GET STACKED DIAGNOSTICS h = PG_EXCEPTION_HINT; CREATE TEMP TABLE h AS SELECT h; END $$}, q{SELECT h FROM h});
    like($hint, qr/session_preload_libraries = 'auto_explain, pg_interlock';/, 'VER-1: what is preloaded already stays');
    $node->stop;
}

# --- With it, and with other modules -------------------------------------------------------------------------------

my $node = start_server(q(
wal_level = logical
max_wal_senders = 4
max_prepared_transactions = 2
));
$node->safe_psql('postgres', "$set_up; $reject");
like(ask($node, 'postgres', $blind), qr/^IL011/, 'preloaded by the server');

my $modules = join(', ', grep { -e $node->config_data('--pkglibdir') . "/$_.so" } 'pg_stat_statements', 'auto_explain');
for my $order ($modules eq '' ? () : ("pg_interlock, $modules", "$modules, pg_interlock"))
{
    $node->safe_psql('postgres', "ALTER SYSTEM SET shared_preload_libraries = $order");
    $node->restart;
    like(ask($node, 'postgres', $blind), qr/^IL011/, "VER-1: beside other modules: $order");
    $node->safe_psql('postgres', 'UPDATE expected SET n = (SELECT version FROM doc WHERE id = 1)');
    is(ask($node, 'postgres', $sighted), 'sighted', 'others pass');
}

# VER-1: plans for parallel workers carry no marks, and write nothing
my $parallel = $node->safe_psql('postgres', q{SELECT name FROM pg_settings WHERE name IN ('force_parallel_mode', 'debug_parallel_query')});
like(ask($node, 'postgres', "SET $parallel = on", q{UPDATE doc SET body = 'x' FROM (SELECT count(*) FROM expected) e WHERE id = 1}), qr/^IL011/, 'a parallel plan');

# VER-1: what a prepared transaction has asserted is of that transaction
is(ask($node, 'postgres', 'BEGIN', q{SELECT FROM interlock.assert_version('doc', 2, 1)}, q{PREPARE TRANSACTION 'p'}, 'BEGIN',
    q{UPDATE doc SET body = 'blind' WHERE id = 1}) =~ /^IL011/ ? 'IL011' : 'no', 'IL011', 'the session goes on without it');
$node->safe_psql('postgres', q{ROLLBACK PREPARED 'p'});

# --- Counts --------------------------------------------------------------------------------------------------------

$node->safe_psql('postgres', q{SELECT interlock.enable_versioning('doc')});
$node->restart;
my $counts = q{SELECT blind, overwrote FROM interlock.blind_updates WHERE rel = 'doc'::regclass};
is($node->safe_psql('postgres', $counts), '', 'VER-1: counts begin with the server');
$node->safe_psql('postgres', q{UPDATE doc SET body = 'blind' WHERE id = 1});
is($node->safe_psql('postgres', $counts), '1|0', 'a blind update of what was written before');
$node->safe_psql('postgres', q{UPDATE doc SET body = 'sighted' WHERE id = 1 AND version <= 1000});
$node->safe_psql('postgres', q{UPDATE doc SET body = 'blind' WHERE id = 1});
is($node->safe_psql('postgres', $counts), '2|1', 'and one that overwrites what another transaction has just written');
$node->safe_psql('postgres', q{SELECT interlock.versioned_update('doc', 2, (SELECT version FROM doc WHERE id = 2), '{"body": "by a call"}')});
$node->safe_psql('postgres', q{UPDATE doc SET body = 'blind' WHERE id = 2});
is($node->safe_psql('postgres', $counts), '3|2', 'by a function');
$node->safe_psql('postgres', q{BEGIN; SAVEPOINT a; UPDATE doc SET body = 'in a savepoint' WHERE id = 2 AND version <= 1000; RELEASE a; COMMIT});
$node->safe_psql('postgres', q{BEGIN; UPDATE doc SET body = 'blind' WHERE id = 2; ROLLBACK});
is($node->safe_psql('postgres', $counts), '4|3', 'in a savepoint; what is rolled back counts');
my $load = $node->basedir . '/blind.sql';
append_to_file($load, "\\set id random(1, 2)\nUPDATE doc SET body = 'load' WHERE id = :id;\n");
$node->command_ok([ 'pgbench', '-n', '-c', '8', '-t', '50', '-f', $load, $node->connstr('postgres') ], 'eight clients');
is($node->safe_psql('postgres', $counts), '404|403', 'are counted one by one');
$node->safe_psql('postgres', 'CREATE DATABASE other');
$node->safe_psql('other', "CREATE EXTENSION pg_interlock");
is($node->safe_psql('other', 'SELECT count(*) FROM interlock.blind_updates'), '0', 'another database has its own');

# VER-1: more tables than there is room for
$node->safe_psql('other', q{DO $$ BEGIN FOR i IN 1..1030 LOOP EXECUTE format('CREATE TABLE t%s AS SELECT 1 AS version; CREATE TRIGGER v
    BEFORE UPDATE ON t%s FOR EACH ROW EXECUTE FUNCTION interlock_internal.version_trigger(version, allow, move)', i, i); COMMIT; END LOOP; END $$});
$node->safe_psql('other', q{DO $$ BEGIN FOR i IN 1..1030 LOOP EXECUTE format('UPDATE t%s SET version = version', i); END LOOP; END $$});
is($node->safe_psql('other', q{SELECT count(*), min(blind), max(blind) FROM interlock.blind_updates}), '1023|1|1', 'as many as there is room for');
is($node->safe_psql('other', q{SELECT used, "of" FROM interlock.usage WHERE what = 'tables with blind updates'}), '1024|1024', 'which the view usage shows');
# VER-1: the lines of tables that are gone are used again, and temporary tables have none
$node->safe_psql('other', q{CREATE TABLE late AS SELECT 1 AS id, 1 AS version; SELECT interlock.enable_versioning('late')});
$node->safe_psql('other', q{CREATE TEMP TABLE t (id int, version int); INSERT INTO t VALUES (1, 1); SELECT interlock.enable_versioning('t');
    UPDATE t SET version = version});
my $late = q{SELECT blind, overwrote FROM interlock.blind_updates WHERE rel = 'late'::regclass};
$node->safe_psql('other', 'UPDATE late SET id = 2');
is($node->safe_psql('other', $late), '', 'no room for another table');
my $gone = $node->safe_psql('other', q{SELECT rel FROM interlock.blind_updates WHERE rel::text LIKE 't%' ORDER BY rel LIMIT 1});
$node->safe_psql('other', "DROP TABLE $gone");
$node->safe_psql('other', "UPDATE late SET id = 3; UPDATE late SET id = 4");
is($node->safe_psql('other', $late), '2|2', 'until one is gone');

# --- Replication ---------------------------------------------------------------------------------------------------

# VER-1: what a subscription applies was judged where it was written
$node->safe_psql('postgres', "CREATE PUBLICATION docs FOR TABLE doc; SELECT pg_create_logical_replication_slot('docs', 'pgoutput')");
$node->safe_psql('other', q{CREATE TABLE doc (id int PRIMARY KEY, body text); SELECT interlock.enable_versioning('doc', blind_updates => 'reject');
    ALTER TABLE doc ENABLE ALWAYS TRIGGER zzz_interlock_version});
$node->safe_psql('other', sprintf(q{CREATE SUBSCRIPTION docs CONNECTION '%s' PUBLICATION docs WITH (create_slot = false, slot_name = 'docs', copy_data = false)}, $node->connstr('postgres') =~ s/'/''/gr));
$node->safe_psql('postgres', q{INSERT INTO doc VALUES (7, 'replicated'); UPDATE doc SET body = 'replicated again' WHERE id = 7});
ok($node->poll_query_until('other', q{SELECT body = 'replicated again' FROM doc WHERE id = 7}), 'a subscription applies an update');
like(ask($node, 'other', q{UPDATE doc SET body = 'here' WHERE id = 7}), qr/^IL011/, 'and a session there does not');
$node->safe_psql('other', 'ALTER SUBSCRIPTION docs DISABLE; ALTER SUBSCRIPTION docs SET (slot_name = NONE); DROP SUBSCRIPTION docs');
$node->stop;
done_testing();
