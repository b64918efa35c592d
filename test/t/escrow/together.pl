# Escrow counters of rows that have versions, a marker, a history and guarded children, with several sessions and the sweeper.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../lib";
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Protocol;
use Server;

my $node = start_server("interlock.sweeper = off\ndeadlock_timeout = 20ms\nmax_connections = 40");
$node->safe_psql('postgres', q(
CREATE TABLE item (id int PRIMARY KEY, name text, stock int NOT NULL);
SELECT interlock.enable_versioning('item'), interlock.enable_marker('item', '1 hour'), interlock.enable_history('item');
SELECT interlock.enable_escrow('item', 'stock');
CREATE TABLE line (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, item_id int REFERENCES item, n int);
SELECT interlock.guard_children('line', 'item');
));
my ($s1, $s2) = map { Protocol::start($node, 'postgres') } 1 .. 2;

my $id = 0;
sub sql { my ($sql) = @_; return $node->safe_psql('postgres', $sql); }
sub ask
{
    my ($session, $sql) = @_;
    query($session, $sql);
    return $session->{error} // join(';', map { join('|', map { $_ // '' } @$_) } @{ $session->{rows} });
}
sub stock { my ($value) = @_; $id++; sql("INSERT INTO item VALUES ($id, 'lamp', $value); SELECT interlock.adjust('item', $id, 'stock', -1)"); return; }
sub adjust { my ($session, $delta) = @_; return ask($session, "SELECT outcome, remaining FROM interlock.try_adjust('item', $id, 'stock', $delta)"); }
sub fold { my ($session) = @_; return ask($session, "SELECT interlock.fold_escrow('item', $id)"); }
sub state_of { return sql("SELECT stock, interlock.escrow_value('item', id, 'stock'), version FROM item WHERE id = $id"); }
sub history { return sql("SELECT count(*) FROM interlock.row_history('item', $id)"); }

# --- Versions and history ---------------------------------------------------------------------------------------------------------

stock(10);
my ($stock, $value, $version) = split /\|/, state_of();
my $before = history();
is("$stock $value", '9 9', 'the first adjustment is in the row');
adjust($s1, -1) for 1 .. 3;
is(state_of(), "9|6|$version", 'adjustments move no version');
is(history(), $before, 'and are in no history');
is(fold($s1), 1, 'a fold');
is(state_of(), "6|6|$version", 'moves none');
is(history(), $before + 1, 'and has one entry in the history');
is(sql("SELECT operation, version, changed, before FROM interlock.row_history('item', $id) ORDER BY id DESC LIMIT 1"), "update|$version|{stock}|{\"stock\": 9}",
    'with the column and its value before');
is(sql("SELECT interlock.versioned_update('item', $id, $version, '{\"name\": \"lantern\"}')"), $version + 1, 'an editor who has read the row before does not conflict');
is(fold($s1), 0, 'a fold of nothing');
adjust($s1, $_) for 2, -2;
is(fold($s1), 1, 'and one of parts whose sum is zero');
is(history(), $before + 2, 'which is in no history');

ask($s1, "SELECT interlock.revert_row('item', $id, $version)");
is($s1->{error}, undef, 'the row is reverted');
is(sql("SELECT name, interlock.escrow_value('item', id, 'stock') FROM item WHERE id = $id"), 'lamp|6', 'but for its counter');

# --- A marker ---------------------------------------------------------------------------------------------------------------------

stock(10);
ask($s1, "SELECT interlock.lock_row('item', $id, 'anna')");
is(adjust($s2, -2), 'adjusted|7', 'a marker stops no adjustment');
is(fold($s2), 'IL004', 'but a fold');
is(ask($s2, "SELECT interlock.set_escrow('item', $id, 'stock', 5)"), 'IL004', 'and set_escrow');
like(state_of(), qr/^9\|7\|/, 'the value is exact meanwhile');
is(ask($s1, "BEGIN; SELECT interlock.set_holder('anna'); SELECT interlock.fold_escrow('item', $id); COMMIT"), '', 'its holder can fold');
like(state_of(), qr/^7\|7\|/, 'the parts');
adjust($s2, -1);
$node->append_conf('postgresql.conf', "interlock.sweeper = on");
$node->reload;
stock(10);
adjust($s2, -4);
ok($node->poll_query_until('postgres', "SELECT stock = 5 FROM item WHERE id = $id"), 'the sweeper folds other rows');
$id--;
like(state_of(), qr/^7\|6\|/, 'and leaves the marked one');
sql("SELECT interlock.unlock_row('item', $id, 'anna')");
adjust($s2, -1);
ok($node->poll_query_until('postgres', "SELECT stock = 5 FROM item WHERE id = $id"), 'until the marker is gone');
$id++;
$node->append_conf('postgresql.conf', "interlock.sweeper = off");
$node->reload;

# --- Guarded children ----------------------------------------------------------------------------------------------------------------

stock(10);
$version = sql("SELECT version FROM item WHERE id = $id");
my $order = "INSERT INTO line (item_id, n) VALUES ($id, 1)";
ask($_, 'BEGIN') for $s1, $s2;
is(adjust($s1, -1), 'adjusted|8', 'a take');
is(ask($s1, $order), '', 'and its line');
is(adjust($s2, -1), 'adjusted|7', 'at the same time another one');
is(ask($s2, $order), '', 'with its line');
ask($s1, 'COMMIT');
is($s1->{error}, undef, 'commits');
is(fold($s2), 1, 'a fold by the transaction that has taken');
ask($s2, 'COMMIT');
is($s2->{error}, undef, 'commits');
is(state_of(), '7|7|' . ($version + 2), 'both are in the value, and each has moved the version once');
ask($s1, "SELECT interlock.lock_row('item', $id, 'anna')");
ask($s2, 'BEGIN');
is(adjust($s2, -7), 'adjusted|0', 'a take of all that there is');
query($s2, $order);
ask($s2, 'COMMIT');
sql("SELECT interlock.unlock_row('item', $id, 'anna')");
is(sql("SELECT count(*) FROM line WHERE item_id = $id"), 2, 'whose line the marker refuses');
is(adjust($s1, -7), 'adjusted|0', 'is undone with its line');
is(adjust($s1, 7), 'adjusted|7', 'returned');

# Eight clients that take with a line, some of them fold or roll back
sql("SELECT interlock.set_escrow('item', $id, 'stock', 100); DELETE FROM line WHERE item_id = $id");
$version = sql("SELECT version FROM item WHERE id = $id");
my $load = $node->basedir . '/lines.sql';
append_to_file($load, "\\set ends random(1, 8)
BEGIN;
SELECT outcome = 'adjusted' AS fits FROM interlock.try_adjust('item', $id, 'stock', -1, '1 min') \\gset
\\if :fits
$order;
\\endif
\\if :ends = 1
ROLLBACK;
\\else
COMMIT;
\\endif
\\if :ends = 2
SELECT interlock.fold_escrow('item', $id);
\\endif
");
$node->command_ok([ 'pgbench', '-n', '-c', 8, '-j', 2, '-t', 20, '-f', $load, $node->connstr('postgres') ], 'no deadlock, and no other error');
is(sql("SELECT count(*), interlock.escrow_value('item', $id, 'stock') FROM line WHERE item_id = $id"), '100|0', 'as many lines as were stocked');
is(sql("SELECT version FROM item WHERE id = $id"), $version + 100, 'each has moved the version once, and no fold has');

# --- fold_moves_version -----------------------------------------------------------------------------------------------------------

sql("SELECT interlock.enable_escrow('item', 'stock', fold_moves_version => true)");
stock(10);
$version = sql("SELECT version FROM item WHERE id = $id");
adjust($s1, -1) for 1 .. 3;
is(state_of(), "9|6|$version", 'where folds move the version, adjustments still do not');
fold($s1);
is(state_of(), '6|6|' . ($version + 1), 'a fold of three parts moves it once');
is(sql("SELECT outcome FROM interlock.try_versioned_update('item', $id, $version, '{\"name\": \"lantern\"}')"), 'conflict', 'so an editor who has read the row before conflicts');
ask($s1, "UPDATE item SET name = 'lantern' WHERE id = $id");
ask($s1, "SELECT interlock.revert_row('item', $id, $version)");
is($s1->{error}, undef, 'the row is reverted');
is(sql("SELECT name, interlock.escrow_value('item', id, 'stock') FROM item WHERE id = $id"), 'lamp|6', 'but for its counter');

$node->stop;
done_testing();
