# Escrow counters in a dump that is taken while parts are not folded: the copy has the same values, whatever oids its tables get,
# and its counters go on.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../lib";
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Server;

my $node = start_server("interlock.sweeper = off\nmax_prepared_transactions = 5");
my $other = PostgreSQL::Test::Cluster->new('other');
$other->init;
$other->append_conf('postgresql.conf', "shared_preload_libraries = 'pg_interlock'\ninterlock.sweeper = off");
$other->start;

$node->safe_psql('postgres', 'CREATE DATABASE source');
$node->safe_psql('source', q(
CREATE EXTENSION pg_interlock;
CREATE SCHEMA "Old shop";
CREATE TABLE "Old shop"."Item" (region text, id int, "In stock" numeric(8, 2) NOT NULL, gone text, stock int NOT NULL, PRIMARY KEY (region, id));
ALTER TABLE "Old shop"."Item" DROP COLUMN gone;
SELECT interlock.enable_escrow('"Old shop"."Item"', 'In stock', maximum => 100),
       interlock.enable_escrow('"Old shop"."Item"', 'stock', minimum => -5);
INSERT INTO "Old shop"."Item" SELECT 'it''s {"a"}', i, 10, 10 FROM generate_series(1, 20) i;
CREATE TABLE gone (id int PRIMARY KEY, stock int NOT NULL);
SELECT interlock.enable_escrow('gone', 'stock');
INSERT INTO gone VALUES (1, 10);
));

sub key { my ($id) = @_; return "jsonb_build_object('region', 'it''s {\"a\"}', 'id', $id)"; }
sub adjust
{
    my ($server, $database, $id, $column, $delta) = @_;
    my ($status, $out, $error) = $server->psql($database,
        "SELECT outcome, remaining FROM interlock.try_adjust('\"Old shop\".\"Item\"', " . key($id) . ", '$column', $delta)");
    return $status == 0 ? $out : $error;
}
# The first adjustment of a row has no counter yet, and changes the row.
for my $delta (-1, -2.5)
{
    adjust($node, 'source', $_, 'In stock', $delta) for 1 .. 15;
}
adjust($node, 'source', 20, 'stock', $_) for -10, -5;
$node->safe_psql('source', "SELECT interlock.adjust('gone', 1, 'stock', -1)") for 1, 2;
# An undecided take is in no dump.
$node->safe_psql('source', 'BEGIN; SELECT interlock.adjust(\'"Old shop"."Item"\', ' . key(1) . ", 'In stock', -1); PREPARE TRANSACTION 'take'");
is($node->safe_psql('source', 'SELECT count(*) FROM interlock_internal.escrow_part'), 17, 'parts that are not folded');
# What stays of a dropped table names it by its oid, which may be the oid of any table of the copy.
$node->safe_psql('source', 'DROP TABLE gone');

my $values = q(SELECT id, interlock.escrow_value('"Old shop"."Item"', jsonb_build_object('region', region, 'id', id), 'In stock'),
    interlock.escrow_value('"Old shop"."Item"', jsonb_build_object('region', region, 'id', id), 'stock') FROM "Old shop"."Item" ORDER BY id);
my $expected = $node->safe_psql('source', $values);
like($expected, qr/^1\|6\.50\|10\n.*\n20\|10\.00\|-5$/s, 'the values');

my $dump = $node->basedir . '/source.sql';
my $archive = $node->basedir . '/source.dump';
$node->command_ok([ 'pg_dump', '-f', $dump, $node->connstr('source') ], 'pg_dump as a script');
$node->command_ok([ 'pg_dump', '-Fc', '-f', $archive, $node->connstr('source') ], 'pg_dump as an archive');

for my $server ($node, $other)
{
    my $cluster = $server->name;
    $server->safe_psql('postgres', "CREATE DATABASE $_") for 'by_psql', 'by_restore';
    $server->safe_psql('by_restore', 'CREATE TABLE shift_the_oids (id int); DROP TABLE shift_the_oids');
    $server->command_ok([ 'psql', '-X', '-q', '-v', 'ON_ERROR_STOP=1', '-f', $dump, $server->connstr('by_psql') ], "$cluster: restored by psql");
    $server->command_ok([ 'pg_restore', '--exit-on-error', '-j', '2', '-d', $server->connstr('by_restore'), $archive ], "$cluster: restored by two jobs");
    for my $database ('by_psql', 'by_restore')
    {
        my $copy = "$cluster, $database";
        is($server->safe_psql($database, $values), $expected, "ESC-18: $copy: the same values, which are those of rows and parts");
        is($server->safe_psql($database, 'SELECT count(*) FROM interlock_internal.escrow_part'), 16, "$copy: not folded");
        is($server->safe_psql($database, 'SELECT count(*) FROM interlock_internal.escrow_counter WHERE rel::oid NOT IN (SELECT oid FROM pg_class)'),
            0, "$copy: nothing of the dropped table");
        is(adjust($server, $database, 1, 'In stock', -6.75), 'insufficient|6.50', "$copy: not more than there is");
        is(adjust($server, $database, 1, 'In stock', -6.5), 'adjusted|0.00', "$copy: all that there is, as the undecided take is not in the copy");
        is(adjust($server, $database, 20, 'stock', -1), 'insufficient|-5', "$copy: the minimum came along");
        is(adjust($server, $database, 2, 'In stock', 94), 'insufficient|6.50', "$copy: the maximum, too");
        adjust($server, $database, 16, 'In stock', -1);
        is(adjust($server, $database, 16, 'In stock', -2), 'adjusted|7.00', "$copy: a new counter");
        is($server->safe_psql($database, 'SELECT count(*) = count(DISTINCT id) AND max(id) <= (SELECT last_value FROM interlock_internal.escrow_counter_id) FROM interlock_internal.escrow_counter'),
            't', "$copy: has a number of its own");
        $server->safe_psql($database, q(SELECT interlock.fold_escrow('"Old shop"."Item"')));
        is($server->safe_psql($database, 'SELECT sum("In stock"), sum(stock) FROM "Old shop"."Item"'), '138.00|185', "$copy: a fold brings all parts to the rows");
        is($server->safe_psql($database, 'SELECT count(*) FROM interlock_internal.escrow_part'), 0, "$copy: and leaves none");
        my $table = q('"Old shop"."Item"');
        $server->safe_psql($database, "DELETE FROM \"Old shop\".\"Item\" WHERE id = 20; SELECT interlock.enable_escrow($table, 'stock', 5, 1000)");
        is(adjust($server, $database, 19, 'stock', -6) . ' ' . adjust($server, $database, 19, 'stock', 200), 'insufficient|10 adjusted|210', "$copy: with new limits");
        $server->safe_psql($database, "SELECT interlock.disable_escrow($table, 'stock'), interlock.disable_escrow($table, 'In stock')");
        is($server->safe_psql($database, "SELECT count(*) FROM pg_trigger WHERE tgrelid = ${table}::regclass AND NOT tgisinternal"), 0, "$copy: or none");
    }
}

# Data alone leaves triggers off that docs/operations/backup-and-restore.md has enabled again
my $page = slurp_file('docs/operations/backup-and-restore.md');
my ($schema, $data) = map { $node->basedir . "/$_.dump" } qw(schema data);
$node->command_ok([ 'pg_dump', '-Fc', '--schema-only', '-f', $schema, $node->connstr('source') ], 'pg_dump of the schema');
$node->safe_psql('postgres', 'CREATE DATABASE data_alone');
$node->command_ok([ 'pg_restore', '--exit-on-error', '-d', $node->connstr('data_alone'), $schema ], 'restored');
$node->command_ok([ 'pg_restore', '--exit-on-error', '--data-only', '--disable-triggers', '-d', $node->connstr('data_alone'), $archive ], 'and then the data');
my $off = q(SELECT tgrelid::regclass, tgname FROM pg_trigger WHERE NOT tgisinternal AND tgenabled <> 'A'
    AND tgname ~ 'zzz_?interlock_(scope|counted_table|escrow|truncate)' ORDER BY 1, 2);
isnt($node->safe_psql('data_alone', $off), '', 'some triggers do not fire in all sessions');
like(adjust($node, 'data_alone', 1, 'stock', -1), qr/does not fire in all sessions/, 'and functions say so');
$node->safe_psql('data_alone', $_) for $page =~ /^    (ALTER TABLE .* ENABLE ALWAYS .*;)$/mg;
$node->safe_psql('data_alone', $_) for split /\n/, $node->safe_psql('data_alone', "SELECT advice FROM interlock.advise() WHERE severity = 'broken'");
is($node->safe_psql('data_alone', $off), '', 'with what the page says they do');
is($node->safe_psql('data_alone', $values), $expected, 'the same values');
is(adjust($node, 'data_alone', 1, 'stock', -1), 'adjusted|9', 'and functions work');

is(adjust($node, 'source', 1, 'In stock', -6.5), 'pending|5.50', 'the copies in the same server did not touch the memory of the source');
$node->safe_psql('source', "ROLLBACK PREPARED 'take'");
is(adjust($node, 'source', 1, 'In stock', -6.5), 'adjusted|0.00', 'which goes on');

$node->stop;
$other->stop;
done_testing();
