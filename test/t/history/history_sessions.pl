# Version history over the life of sessions and servers: trimmed by the sweeper, dumped and restored, a transaction that is
# prepared, pooled sessions, a crash, a bulk update.
# only with --long

use strict;
use warnings;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('main');
$node->init;
$node->append_conf('postgresql.conf', q(
shared_preload_libraries = 'pg_interlock'
max_prepared_transactions = 5
interlock.sweeper_rescan = 1
));
$node->start;
$node->safe_psql('postgres', 'CREATE DATABASE source');

sub sql { return $node->safe_psql('source', $_[0]); }
sub notes { return sql("SELECT string_agg(row_data->>'note', ' ' ORDER BY id) FROM doc_history"); }

sql(q(
    CREATE EXTENSION pg_interlock;
    CREATE TABLE doc (id int PRIMARY KEY, note text);
    SELECT interlock.enable_versioning('doc'), interlock.enable_history('doc');
    INSERT INTO doc VALUES (1, 'a');
));

# HIS-3: scopes end with the transaction, whoever has the session next
my $session = $node->background_psql('source', on_error_stop => 0);
$session->query("BEGIN; SELECT interlock.suppress_history(); SELECT 1/0;");
$session->query("ROLLBACK; UPDATE doc SET note = 'rolled';");
$session->query("BEGIN; SELECT interlock.suppress_history(); SAVEPOINT s; SELECT 1/0; ROLLBACK TO s; COMMIT; UPDATE doc SET note = 'swallowed';");
$session->query("SELECT interlock.suppress_history('doc'); DISCARD ALL; UPDATE doc SET note = 'discarded';");
sql("CREATE ROLE other; GRANT ALL ON doc TO other;");
$session->query("BEGIN; SELECT interlock.suppress_history('doc'); COMMIT; SET SESSION AUTHORIZATION other; UPDATE doc SET note = 'other';");
$session->quit;
is(notes(), 'a rolled swallowed discarded other', 'HIS-3: nothing of a scope outlives its transaction');

# HIS-15: to prepare a transaction ends its scopes; what they hid is told once it is committed
$session = $node->background_psql('source', on_error_stop => 0);
$session->query("BEGIN; SELECT interlock.suppress_history('doc', 'prepared'); UPDATE doc SET note = 'hidden'; PREPARE TRANSACTION 'p';");
$session->query("INSERT INTO doc VALUES (2, 'after');");
is(sql('SELECT count(*) FROM interlock.operation_log'), 0, 'HIS-15: prepared, not told yet');
sql("COMMIT PREPARED 'p'");
is(sql('SELECT operation, key, row_count, reason FROM interlock.operation_log'), 'update|{"id": 1}|1|prepared', 'HIS-15: committed and told');
is(notes(), 'a rolled swallowed discarded other after', 'HIS-15: the session goes on without the scope');
$session->quit;

# What a prepared transaction brings late has lower numbers than what was trimmed before it
sql("CREATE TABLE late (id int PRIMARY KEY); SELECT interlock.enable_history('late', keep_for => '1 hour');");
sql("BEGIN; INSERT INTO late VALUES (1); UPDATE late_history SET changed_at = now() - interval '3 hours'; PREPARE TRANSACTION 'late';");
sql("INSERT INTO late VALUES (2); UPDATE late_history SET changed_at = now() - interval '2 hours'");
sql("SELECT interlock.trim_history('late')");
sql("COMMIT PREPARED 'late'");
is(sql('SELECT count(*) FROM late WHERE id = 1'), 1, 'HIS-12: a prepared transaction is committed late');
sql("SELECT interlock.trim_history('late')");
is(sql('SELECT count(*) FROM late_history'), 0, 'HIS-12: and its entry is trimmed, too');
sql('DROP TABLE late, late_history');

# Dump and restore: the history goes along, and the restore adds nothing to it
sql(q(
    CREATE TABLE "Odd Part" (id int, r text, note text, PRIMARY KEY (id, r)) PARTITION BY LIST (r);
    CREATE TABLE part_a PARTITION OF "Odd Part" FOR VALUES IN ('a');
    SELECT interlock.enable_history('"Odd Part"', 1000, '1 year');
    INSERT INTO "Odd Part" VALUES (1, 'a', 'x'); UPDATE "Odd Part" SET note = 'y';
));
my $at = sql('SELECT clock_timestamp()');
sql("UPDATE doc SET note = 'last'");
my $dump = $node->basedir . '/source.dump';
$node->command_ok([ 'pg_dump', '-Fc', '-f', $dump, $node->connstr('source') ], 'pg_dump');
$node->safe_psql('postgres', 'CREATE DATABASE target');
$node->safe_psql('target', 'CREATE TABLE shift_the_oids (id int); DROP TABLE shift_the_oids;');
$node->command_ok([ 'pg_restore', '--exit-on-error', '-d', $node->connstr('target'), $dump ], 'pg_restore');
my $entries = 'SELECT * FROM doc_history UNION ALL SELECT * FROM "Odd Part_history" ORDER BY 1';
is($node->safe_psql('target', $entries), sql($entries), 'HIS-14: the entries are those that were dumped');
is($node->safe_psql('target', "SELECT count(*) FROM interlock.row_history('doc', 1)"), 6, 'row_history goes on');
is($node->safe_psql('target', "SELECT interlock.row_as_of('doc', 2, '$at')->>'note'"), 'after', 'row_as_of, too');
$node->safe_psql('target', q(UPDATE "Odd Part" SET note = 'z'; UPDATE part_a SET note = 'zz'; UPDATE doc SET note = 'restored' WHERE id = 1));
is($node->safe_psql('target', q(SELECT string_agg(row_data->>'note', ' ' ORDER BY id) FROM interlock.row_history('"Odd Part"', '{"id": 1, "r": "a"}'))),
    'x y z zz', 'and is written on');
is($node->safe_psql('target', "SELECT count(*) FROM interlock.row_history('doc', 1)"), 7, 'numbers go on as well');
is($node->safe_psql('target', q(SELECT count(*) FROM interlock.trim_history())), 1, 'retention came along');

# The sweeper trims
sql(q(
    SELECT interlock.enable_history('doc', 2);
    DO $$ BEGIN FOR i IN 1..2000 LOOP UPDATE doc SET note = i; END LOOP; END $$;
));
ok($node->poll_query_until('source', 'SELECT count(*) = 4 FROM doc_history'), 'HIS-12: the sweeper leaves the newest');
is(notes(), '1999 1999 2000 2000', 'HIS-12: it is the newest that it leaves');
sql("SELECT interlock.enable_history('doc', keep_for => '1 s')");
sql("UPDATE doc SET note = 'young'; SELECT pg_sleep(1.1); UPDATE doc SET note = 'younger'");
ok($node->poll_query_until('source', 'SELECT count(*) = 0 FROM doc_history'), 'by age, too');

# HIS-12: trimming while sessions add entries to the same key, over a crash
sql("SELECT interlock.enable_history('doc', 5)");
$node->append_conf('postgresql.conf', 'interlock.sweep_batch = 10');
$node->reload;
my $script = $node->basedir . '/add.sql';
append_to_file($script, "UPDATE doc SET note = random() WHERE id = 1;\n"); # an entry each
my $pgbench = IPC::Run::start([ 'pgbench', '-n', '-c', 2, '-T', 60, '-f', $script, '-h', $node->host, '-p', $node->port, 'source' ],
    '>', \my $out, '2>', \my $err);
ok($node->poll_query_until('source', 'SELECT count(*) > 0 FROM interlock_internal.history_position p JOIN doc_history h ON h.id > 300'), 'entries are added');
my $fewest = 1000;
for (1 .. 50)
{
    my $count = sql('SELECT count(*) FROM doc_history WHERE key = \'{"id": 1}\'; SELECT trimmed FROM interlock.trim_history(\'doc\')');
    ($count) = split /\n/, $count;
    $fewest = $count if $count < $fewest;
}
cmp_ok($fewest, '>=', 5, 'HIS-12: there are never fewer than are to be kept');
$node->stop('immediate');
$pgbench->finish;
$node->start;
cmp_ok(sql('SELECT count(*) FROM doc_history WHERE key = \'{"id": 1}\''), '>=', 5, 'nor after a crash');
is(sql(q(SELECT max(version) = (SELECT version FROM doc WHERE id = 1) FROM interlock.row_history('doc', 1))), 't', 'the newest entry is the row');
sql("UPDATE doc SET note = 'after the crash'");
ok($node->poll_query_until('source', 'SELECT count(*) = 5 FROM doc_history WHERE key = \'{"id": 1}\''), 'and the sweeper goes on');

# HIS-7: a bulk update leaves one line. HISTORY_ROWS=1000000 for the whole of it.
my $rows = $ENV{HISTORY_ROWS} || 100_000;
sql("CREATE TABLE bulk (id int PRIMARY KEY, a int); INSERT INTO bulk SELECT g, 0 FROM generate_series(1, $rows) g;
    SELECT interlock.enable_versioning('bulk'), interlock.enable_history('bulk'); DELETE FROM interlock.write_log;");
sql("BEGIN; SELECT interlock.suppress_history('bulk', 'bulk'); UPDATE bulk SET a = id; COMMIT;");
is(sql('SELECT operation, key, columns, row_count, reason FROM interlock.operation_log'), "update||{a,version}|$rows|bulk", "HIS-7: $rows rows, one line");
is(sql('SELECT count(*) FROM bulk_history'), 0, 'and no entry');
is(sql('SELECT count(*) FROM bulk WHERE version = 2'), $rows, 'the versions moved');

$node->stop;
done_testing();
