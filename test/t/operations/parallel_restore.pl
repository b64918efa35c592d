# OPS-1: pg_restore -j creates the triggers of a partitioned table when its partitions are not loaded yet.

use strict;
use warnings;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('main');
$node->init;
$node->append_conf('postgresql.conf', "shared_preload_libraries = 'pg_interlock'\ninterlock.sweeper = off");
$node->start;
$node->safe_psql('postgres', 'CREATE DATABASE source');
$node->safe_psql('source', q(
    CREATE EXTENSION pg_interlock;
    CREATE TABLE doc (id int, r text, note text, status text, PRIMARY KEY (id, r)) PARTITION BY LIST (r);
    CREATE TABLE doc_a PARTITION OF doc FOR VALUES IN ('a');
    CREATE TABLE doc_b PARTITION OF doc FOR VALUES IN ('b');
    CREATE TABLE doc_c PARTITION OF doc FOR VALUES IN ('c');
    CREATE TABLE doc_d PARTITION OF doc FOR VALUES IN ('d');
    SELECT interlock.enable_versioning('doc'), interlock.enable_history('doc'), interlock.enable_marker('doc', '1 hour');
    SELECT interlock.define_transitions('doc', 'status', '{"new": ["paid"]}', '{new}');
    INSERT INTO doc SELECT g, (ARRAY['a', 'b', 'c', 'd'])[g % 4 + 1], 'n', 'new' FROM generate_series(1, 400) g;
    UPDATE doc SET status = 'paid' WHERE id % 2 = 0;
    SELECT interlock.lock_row('doc', jsonb_build_object('id', id, 'r', r), 'anna') FROM doc WHERE id % 3 = 0;
    SELECT interlock.require_lease('doc');
    SELECT interlock.grant_writer('editor', 'public'), interlock.own_columns('doc', 'editor', '{note}');
    CREATE TABLE bare (id int, status text) PARTITION BY LIST (id);
    CREATE TABLE bare_1 PARTITION OF bare FOR VALUES IN (1);
    SELECT interlock.define_transitions('bare', 'status', '{"new": ["paid"]}', '{new}');
    INSERT INTO bare SELECT 1, 'new' FROM generate_series(1, 100);
    UPDATE bare SET status = 'paid';));

my $dump = $node->basedir . '/source.dump';
$node->command_ok([ 'pg_dump', '-Fc', '-f', $dump, $node->connstr('source') ], 'pg_dump');

my $everything = q(SELECT count(*), md5(string_agg(d::text, ',' ORDER BY id)) FROM doc d;
    SELECT count(*), md5(string_agg(h::text, ',' ORDER BY id)) FROM doc_history h; SELECT count(*), min(status) FROM bare;);
my $expected = $node->safe_psql('source', $everything);

for my $run (1 .. 3)
{
    $node->safe_psql('postgres', "CREATE DATABASE target$run");
    $node->command_ok([ 'pg_restore', '-j3', '-d', $node->connstr("target$run"), $dump ], "OPS-1: run $run");
    is($node->safe_psql("target$run", $everything), $expected, "OPS-1: every row and entry, run $run");
}

# Which order the jobs take is chance: here it is the worst, triggers first, and each COPY as a job runs it.
sub restored { my @options = @_; my ($out, $err) = run_command([ 'pg_restore', @options, '-f', '-', $dump ]); return "$out\n"; }

sub restore_worst
{
    my $database = shift;
    my $list = $node->basedir . '/list';
    my ($contents) = run_command([ 'pg_restore', '-l', $dump ]);
    my @triggers = grep { / TRIGGER / } split /\n/, $contents;
    my @others = grep { !/ TRIGGER / && / (CONSTRAINT|INDEX|INDEX ATTACH|FK CONSTRAINT) / } split /\n/, $contents;
    append_to_file("$list.triggers", join("\n", @triggers, ''));
    append_to_file("$list.others", join("\n", @others, ''));
    my $data = restored('--section=data');
    $data =~ s/^(COPY (public\.\w+) .*?^\\\.)$/BEGIN;\nTRUNCATE TABLE ONLY $2;\n$1\nCOMMIT;/msg;
    $node->safe_psql('postgres', "CREATE DATABASE $database");
    $node->safe_psql($database, $_) for restored('--section=pre-data'), restored('-L', "$list.triggers"), $data, restored('-L', "$list.others");
}
restore_worst('worst');
is($node->safe_psql('worst', $everything), $expected, 'OPS-1: triggers first, and nothing is lost');

# What a restore may do nobody else may: with the keys in place, or another's table
$node->safe_psql('worst', q(CREATE ROLE loader; GRANT ALL ON doc, doc_a, bare, bare_1 TO loader;));
my ($ret, $out, $err) = $node->psql('worst', "BEGIN; TRUNCATE doc_a; INSERT INTO doc_a VALUES (4, 'a', 'x', 'paid'); COMMIT");
like($err, qr/cannot be "paid"/, 'OPS-1: truncated and loaded with a key, transitions hold');
($ret, $out, $err) = $node->psql('worst', "SET ROLE loader; BEGIN; TRUNCATE bare_1; INSERT INTO bare_1 VALUES (1, 'paid'); COMMIT");
like($err, qr/cannot be "paid"/, 'OPS-1: without an index, too, for all but the owner');
($ret, $out, $err) = $node->psql('worst', "INSERT INTO bare_1 VALUES (1, 'paid')");
like($err, qr/cannot be "paid"/, 'OPS-1: and for him where nothing was truncated');
$node->safe_psql('worst', q(SELECT interlock.unrequire_lease('doc');
    BEGIN; TRUNCATE doc_a; INSERT INTO doc_a VALUES (4, 'a', 'x', 'new'); COMMIT;));
is($node->safe_psql('worst', q(SELECT count(*) FROM doc_history WHERE row_data->>'note' = 'x')), 1, 'OPS-1: and the history has the row');
$node->safe_psql('worst', 'ALTER TABLE doc DROP CONSTRAINT doc_pkey');
($ret, $out, $err) = $node->psql('worst', "SET ROLE loader; BEGIN; TRUNCATE doc_a; INSERT INTO doc_a VALUES (4, 'a', 'x', 'new'); COMMIT");
like($err, qr/has history and no key/, 'OPS-1: nor does it lose one without a key');

$node->stop;
done_testing();
