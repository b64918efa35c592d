# MRK-6: guarded children under load, in prepared transactions, over a crash, and in dumps (OPS-1, OPS-3).

use strict;
use warnings;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('main');
$node->init;
$node->append_conf('postgresql.conf',
    "shared_preload_libraries = 'pg_interlock'\ninterlock.sweeper = off\nmax_prepared_transactions = 5\ndeadlock_timeout = 20ms");
$node->start;
$node->safe_psql('postgres', 'CREATE DATABASE source');
sub ask { return $node->safe_psql('source', join ';', @_) }

ask(q(CREATE EXTENSION pg_interlock;
    CREATE TABLE doc (id int PRIMARY KEY, total int);
    CREATE TABLE line (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, doc_id int REFERENCES doc, qty int);
    SELECT interlock.enable_versioning('doc');
    SELECT interlock.guard_children('line', 'doc');
    INSERT INTO doc SELECT generate_series(1, 9)));
my $versions = q(SELECT string_agg(version::text, ' ' ORDER BY id) FROM doc);

# Eight clients, each with lines of two documents in any order, in two statements or in one
my $load = $node->basedir . '/lines.sql';
append_to_file($load, q(\set a random(1, 4)
\set b 1 + (:a + random(0, 2)) % 4
\set together random(0, 1)
BEGIN;
\if :together
INSERT INTO line (doc_id) VALUES (:a), (:b), (:a);
\else
INSERT INTO line (doc_id) VALUES (:a);
INSERT INTO line (doc_id) VALUES (:b), (:b);
\endif
COMMIT;
));
$node->command_ok([ 'pgbench', '-n', '-c', 8, '-j', 2, '-t', 150, '-f', $load, $node->connstr('source') ], 'VER-17: no deadlock, and no other error');
is(ask('SELECT count(*) FROM line'), 8 * 150 * 3, 'every line is there');
is(ask('SELECT sum(version - 1) FROM doc'), 8 * 150 * 2, 'each transaction has moved each of its documents once');
ask('DELETE FROM line');
ask('UPDATE doc SET total = 0');
ask('TRUNCATE doc, line; INSERT INTO doc SELECT g, 0, 1 FROM generate_series(1, 9) g');

# A prepared transaction moves them when it is prepared, holds the rows, and leaves nothing to the session
$node->safe_psql('source', q(
    BEGIN; INSERT INTO line (doc_id) VALUES (1), (2); PREPARE TRANSACTION 'p';
    INSERT INTO line (doc_id) VALUES (3);));
is(ask($versions), '1 1 2 1 1 1 1 1 1', 'another transaction of the session');
my ($code, undef, $error) = $node->psql('source', q(SET lock_timeout = '10ms'; UPDATE doc SET total = 1 WHERE id = 1));
like($error, qr/lock timeout/, 'a document waits for the prepared transaction that has moved it');
$node->stop('immediate');
$node->start;
is(ask($versions), '1 1 2 1 1 1 1 1 1', 'after a crash it is still prepared');
ask(q(COMMIT PREPARED 'p'));
is(ask($versions), '2 2 2 1 1 1 1 1 1', 'and moves them when it is committed');
$node->safe_psql('source', q(BEGIN; INSERT INTO line (doc_id) VALUES (1); PREPARE TRANSACTION 'p'; ROLLBACK PREPARED 'p'; INSERT INTO line (doc_id) VALUES (4);));
is(ask($versions), '2 2 2 2 1 1 1 1 1', 'or not, when it is rolled back');

# A session that is killed before its end leaves nothing
my $session = $node->background_psql('source', on_error_stop => 0);
$session->query_safe('BEGIN');
$session->query_safe('INSERT INTO line (doc_id) VALUES (5)');
my $pid = $session->query_safe('SELECT pg_backend_pid()');
ask("SELECT pg_terminate_backend($pid)");
$node->poll_query_until('source', "SELECT count(*) = 0 FROM pg_stat_activity WHERE pid = $pid");
eval { $session->quit };
is(ask($versions), '2 2 2 2 1 1 1 1 1', 'a killed session');

# Triggers do not fire for a role of replication, or when they are disabled; then nothing moves
ask(q(SET session_replication_role = replica; INSERT INTO line (doc_id) VALUES (6); RESET session_replication_role; INSERT INTO line (doc_id) VALUES (7)));
is(ask($versions), '2 2 2 2 1 1 2 1 1', 'session_replication_role');

# A dump and its restore, in parallel and with partitions, into other names than those of the guard's triggers
ask(q(CREATE SCHEMA "Other";
    CREATE TABLE "Other"."Sheet" (id int PRIMARY KEY, "Sum" int);
    CREATE TABLE cell (id int, "Sheet id" int REFERENCES "Other"."Sheet", part int) PARTITION BY LIST (part);
    CREATE TABLE cell_1 PARTITION OF cell FOR VALUES IN (1);
    CREATE TABLE cell_2 PARTITION OF cell FOR VALUES IN (2);
    SELECT interlock.enable_versioning('"Other"."Sheet"');
    SELECT interlock.guard_children('cell', '"Other"."Sheet"');
    INSERT INTO "Other"."Sheet" SELECT generate_series(1, 50);
    INSERT INTO cell SELECT g, g % 50 + 1, g % 2 + 1 FROM generate_series(1, 500) g;
    ALTER TABLE line RENAME COLUMN doc_id TO document));
my $everything = q(SELECT (SELECT string_agg(version::text, ' ' ORDER BY id) FROM doc), (SELECT count(*) FROM line),
    (SELECT string_agg(version::text, ' ' ORDER BY id) FROM "Other"."Sheet"), (SELECT count(*) FROM cell));
my $expected = ask($everything);
my $dump = $node->basedir . '/source.dump';
$node->command_ok([ 'pg_dump', '-Fc', '-f', $dump, $node->connstr('source') ], 'pg_dump');
for my $jobs (1, 4)
{
    $node->safe_psql('postgres', "CREATE DATABASE target$jobs");
    $node->safe_psql("target$jobs", 'CREATE TABLE shift_the_oids (id int); DROP TABLE shift_the_oids');
    $node->command_ok([ 'pg_restore', '--exit-on-error', "--jobs=$jobs", '-d', $node->connstr("target$jobs"), $dump ], "pg_restore with $jobs jobs");
    is($node->safe_psql("target$jobs", $everything), $expected, 'every row, and no version has moved');
    $node->safe_psql("target$jobs", q(INSERT INTO line (document) VALUES (9); INSERT INTO cell VALUES (501, 50, 1), (502, 50, 2)));
    is($node->safe_psql("target$jobs", q(SELECT d.version, s.version FROM doc d, "Other"."Sheet" s WHERE d.id = 9 AND s.id = 50)), '2|3', 'and children move their parents');
}

$node->stop;
done_testing();
