# Escrow counters: what several sessions, prepared transactions, a crash and a promotion do to one number. What has been sold
# and what is left is what was stocked, and the value never leaves its limits. docs/internals/escrow.md has the rules (E1 ...).

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../lib";
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Protocol;
use Server;

my $node = start_server(q(
interlock.sweeper = off
max_prepared_transactions = 10
wal_level = replica
max_wal_senders = 5
interlock.max_escrow_counters = 16
));
$node->safe_psql('postgres', q(
CREATE TABLE item (id int PRIMARY KEY, stock int NOT NULL CHECK (stock BETWEEN 0 AND 10), note text);
SELECT interlock.enable_escrow('item', 'stock', maximum => 10);
));

my ($s1, $s2, $s3);
sub begin_sessions { ($s1, $s2, $s3) = map { Protocol::start($node, 'postgres') } 1 .. 3; return; }
begin_sessions();

# A row's number; each test has its own.
my $id = 0;
sub stock
{
    my ($value) = @_;
    $id++;
    $node->safe_psql('postgres', "INSERT INTO item VALUES ($id, $value);"
        . "SELECT interlock.adjust('item', $id, 'stock', d) FROM (VALUES (-1), (1)) v (d)" . ($value > 0 ? '' : ' WHERE false'));
    return;
}

# In the session: outcome and what remains.
sub try_adjust
{
    my ($session, $delta, $wait) = @_;
    return ask($session, "SELECT outcome, remaining FROM interlock.try_adjust('item', $id, 'stock', $delta" . (defined $wait ? ", '$wait'" : '') . ')');
}
sub ask
{
    my ($session, $sql) = @_;
    return answer_of($session, query($session, $sql));
}
sub answer_of
{
    my ($session) = @_;
    return "$session->{error}: $session->{message}" if defined $session->{error};
    return join(';', map { join('|', map { $_ // '' } @$_) } @{ $session->{rows} });
}
sub value { return $node->safe_psql('postgres', "SELECT interlock.escrow_value('item', $id, 'stock')"); }
sub row { return $node->safe_psql('postgres', "SELECT stock FROM item WHERE id = $id"); }
sub begin { ask($_, 'BEGIN') for @_; return; }

# What a session that waits for another transaction gets when that has ended.
sub waits
{
    my ($session, $sql) = @_;
    Protocol::send_query($session, $sql);
    $node->poll_query_until('postgres', "SELECT cardinality(pg_blocking_pids($session->{pid})) > 0") or die 'does not wait';
    return;
}
sub then_gets { my ($session) = @_; Protocol::answer($session); return answer_of($session); }

# --- Takes and returns ------------------------------------------------------------------------------------------------------

stock(2);
begin($s1, $s2);
is(try_adjust($s1, -1), 'adjusted|1', 'one takes');
is(try_adjust($s2, -1), 'adjusted|0', 'another takes at the same time, and does not wait (E1)');
is(try_adjust($s3, -1), 'pending|0', 'ESC-1: a third one would have to wait for their end');
is(try_adjust($s3, -3), 'insufficient|0', 'more than there is never fits');
is(value(), 2, 'nothing of that is visible');
ask($s1, 'ROLLBACK');
is(try_adjust($s3, -1), 'adjusted|0', 'ESC-1: what was rolled back is there again (E4)');
ask($s2, 'COMMIT');
is(try_adjust($s3, -1), 'insufficient|0', 'what is sold is sold');
is(value(), 0, 'and so the value says');
is(row(), 2, 'the row is behind');
is(ask($s3, "SELECT interlock.fold_escrow('item', $id)"), 1, 'a fold');
is(row() . ' ' . value(), '0 0', 'brings the row to the value');
is(ask($s3, "SELECT interlock.adjust('item', $id, 'stock', -1)"), "IL012: not enough left in column \"stock\" of table \"item\" to change it by -1",
    'adjust raises');
like($s3->{detail}, qr/"outcome": ?"insufficient"/, 'and says which');
is(try_adjust($s3, 10), 'adjusted|10', 'up to the maximum');
is(try_adjust($s3, 1), 'insufficient|10', 'and not beyond (E12)');

stock(1);
begin($s1, $s2);
is(try_adjust($s1, 1), 'adjusted|2', 'an undecided return');
is(try_adjust($s2, -2), 'pending|1', 'ESC-2: is not there for others (E2)');
ask($s1, 'COMMIT');
is(try_adjust($s2, -2), 'adjusted|0', 'ESC-2: but once it is committed (E3)');
ask($s2, 'ROLLBACK');

stock(1);
begin($s1);
try_adjust($s1, -1);
waits($s2, "SELECT outcome FROM interlock.try_adjust('item', $id, 'stock', -1, '1 min')");
ask($s1, 'ROLLBACK');
is(then_gets($s2), 'adjusted', 'a wait for those that decide');
begin($s1);
is(try_adjust($s1, 1), 'adjusted|1', 'a return');
waits($s2, "SELECT outcome FROM interlock.try_adjust('item', $id, 'stock', -1, NULL)");
ask($s1, 'COMMIT');
is(then_gets($s2), 'adjusted', 'and for a return');

# --- Savepoints -------------------------------------------------------------------------------------------------------------

stock(2);
begin($s1);
ask($s1, 'SAVEPOINT a');
try_adjust($s1, -2);
is(try_adjust($s2, -1), 'pending|0', 'taken in a savepoint');
ask($s1, 'ROLLBACK TO a');
is(try_adjust($s2, -1), 'adjusted|1', 'ESC-3: is there after its rollback (E4)');
ask($s1, 'SAVEPOINT b; SAVEPOINT c');
try_adjust($s1, -1);
ask($s1, 'RELEASE c');
is(try_adjust($s2, -1), 'pending|0', 'the release of a savepoint decides nothing');
ask($s1, 'ROLLBACK TO b');
is(try_adjust($s2, -1), 'adjusted|0', 'ESC-3: the rollback of the outer one does');
try_adjust($s1, 1);
ask($s1, 'SAVEPOINT d');
is(try_adjust($s1, -1), 'pending|0', 'an own return waits for the own commit');
ask($s1, 'COMMIT');
is(value(), 1, 'and is there then');

# --- Prepared transactions --------------------------------------------------------------------------------------------------

stock(3);
begin($s1);
try_adjust($s1, -2);
is(ask($s1, "PREPARE TRANSACTION 'take'"), '', 'prepared');
is(try_adjust($s2, -2), 'pending|1', 'a prepared take is undecided (E5)');
$node->safe_psql('postgres', "ROLLBACK PREPARED 'take'");
is(try_adjust($s2, -2), 'adjusted|1', 'ESC-6: its rollback is found by the next that asks, without the sweeper');
begin($s1);
try_adjust($s1, 3);
ask($s1, "PREPARE TRANSACTION 'return'");
$node->stop('immediate');
$node->start;
begin_sessions();
is(try_adjust($s2, -2), 'pending|1', 'ESC-6: a prepared return after a crash (E6)');
is(try_adjust($s2, 7), 'pending|1', 'keeps its room');
$node->safe_psql('postgres', "COMMIT PREPARED 'return'");
is(try_adjust($s2, -4), 'adjusted|0', 'is there when it is committed');
begin($s1);
try_adjust($s1, 4);
try_adjust($s1, -0.5);
is($s1->{error}, '22023', 'half a piece');
is(ask($s1, "PREPARE TRANSACTION 'failed'"), '', 'PREPARE of a failed transaction rolls back');
is(try_adjust($s2, 10), 'adjusted|10', 'ESC-6: and leaves nothing');

stock(2);
begin($s1);
try_adjust($s1, -1);
ask($s1, "PREPARE TRANSACTION 'take'");
$node->stop('immediate');
$node->start;
begin_sessions();
is(try_adjust($s2, -2), 'pending|1', 'ESC-6: a prepared take after a crash (E6)');
is(try_adjust($s2, -1), 'adjusted|0', 'leaves the rest');
$node->safe_psql('postgres', "ROLLBACK PREPARED 'take'");
is(try_adjust($s2, -1), 'adjusted|0', 'and is back after its rollback');

# A crash with parts that are not folded, and one that is not committed
stock(5);
ask($s2, "SELECT interlock.adjust('item', $id, 'stock', -2)");
begin($s1);
try_adjust($s1, -3);
$node->stop('immediate');
$node->start;
begin_sessions();
is(value() . ' ' . row(), '3 5', 'parts survive a crash');
is(try_adjust($s1, -3), 'adjusted|0', 'what was undecided has rolled back');

# --- The row ----------------------------------------------------------------------------------------------------------------

stock(5);
is(ask($s1, "UPDATE item SET stock = 7 WHERE id = $id"), '55000: column "stock" of table "item" has escrow counters', 'a plain UPDATE of the column');
is(ask($s1, "UPDATE item SET note = 'x', stock = stock WHERE id = $id"), '', 'and one of another column');
begin($s1);
try_adjust($s1, -2);
waits($s2, "SELECT interlock.set_escrow('item', $id, 'stock', 4)");
is(try_adjust($s3, -1), 'pending|', 'set_escrow waits for the undecided (E10), and what comes later for it');
ask($s1, 'COMMIT');
is(then_gets($s2), '', 'it is set');
is(value() . ' ' . row(), '4 4', 'to the value');
begin($s1);
try_adjust($s1, -2);
waits($s2, "DELETE FROM item WHERE id = $id");
ask($s1, 'COMMIT');
then_gets($s2);
is($node->safe_psql('postgres', 'SELECT count(*) FROM interlock_internal.escrow_part p WHERE NOT EXISTS (SELECT FROM interlock_internal.escrow_counter c WHERE c.id = p.counter)'),
    0, 'DELETE waits for the undecided, and ends the parts');
$node->safe_psql('postgres', "INSERT INTO item VALUES ($id, 1)");
is(value(), 1, 'ESC-12: a row of the same key begins anew');
is(try_adjust($s1, -2), 'insufficient|1', 'with its own value');
is(try_adjust($s1, -1), 'adjusted|0', 'which the first one takes in the row');
is(row(), 0, 'at once');
is(ask($s1, "SELECT outcome FROM interlock.try_adjust('item', 12345, 'stock', -1)"), 'not_found', 'no row');
like(ask($s1, "SELECT interlock.adjust('item', 12345, 'stock', -1)"), qr/^P0002/, 'P0002');

# The own row: inserted, deleted and moved in the same transaction
begin($s1);
$id++;
ask($s1, "INSERT INTO item VALUES ($id, 5)");
is(try_adjust($s1, -1), 'adjusted|4', 'ESC-13: a row that the transaction has inserted (E7)');
is(try_adjust($s1, -1), 'adjusted|3', 'again');
ask($s1, 'ROLLBACK');
is(try_adjust($s2, -1), 'not_found|', 'which was rolled back');
stock(5);
begin($s1);
try_adjust($s1, -1);
ask($s1, 'SAVEPOINT a');
is(ask($s1, "DELETE FROM item WHERE id = $id"), '', 'a delete after an own take');
ask($s1, 'ROLLBACK TO a');
is(try_adjust($s1, -1), 'adjusted|3', 'undone');
ask($s1, 'COMMIT');
is(value(), 3, 'counts both');
begin($s1);
ask($s1, "SELECT interlock.adjust('item', $id, 'stock', -1)");
ask($s1, "UPDATE item SET id = id + 1000 WHERE id = $id");
is($s1->{error}, undef, 'a new key');
ask($s1, 'COMMIT');
is($node->safe_psql('postgres', "SELECT stock, interlock.escrow_value('item', id, 'stock') FROM item WHERE id = $id + 1000"), '2|2', 'ESC-12: has the value with all parts');

# --- Triggers that were disabled (E11) ---------------------------------------------------------------------------------------

stock(5);
my $trigger = $node->safe_psql('postgres', q(SELECT tgname FROM pg_trigger WHERE tgrelid = 'item'::regclass AND tgname LIKE 'zzzz%' AND NOT tgisinternal));
ask($s1, "SELECT interlock.adjust('item', $id, 'stock', -1)");
$node->safe_psql('postgres', "ALTER TABLE item DISABLE TRIGGER $trigger");
like(try_adjust($s1, -1), qr/^55000/, 'functions refuse while the trigger is off');
$node->safe_psql('postgres', "UPDATE item SET stock = 2 WHERE id = $id; ALTER TABLE item ENABLE ALWAYS TRIGGER $trigger");
is(try_adjust($s1, -2), 'insufficient|1', 'ESC-15: and do not use what memory had before');
is(try_adjust($s1, -1), 'adjusted|0', 'but the row and its parts');
begin($s1);
try_adjust($s1, 1);
waits($s2, "ALTER TABLE item DISABLE TRIGGER $trigger");
Protocol::send_query($s1, 'ROLLBACK');
Protocol::answer($s1);
then_gets($s2);
$node->safe_psql('postgres', "ALTER TABLE item ENABLE ALWAYS TRIGGER $trigger");

# --- Folding -----------------------------------------------------------------------------------------------------------------

stock(5);
begin($s1, $s2);
ask($s3, "SELECT interlock.adjust('item', $id, 'stock', -1)");
try_adjust($s1, -1);
is(ask($s3, "SELECT interlock.fold_escrow('item', $id)"), 1, 'a fold of what is committed');
is(row() . ' ' . value(), '4 4', 'alone');
ask($s2, 'ROLLBACK; BEGIN ISOLATION LEVEL REPEATABLE READ');
is(ask($s2, "SELECT interlock.escrow_value('item', $id, 'stock')"), 4, 'a snapshot');
ask($s1, 'COMMIT');
ask($s3, "SELECT interlock.fold_escrow('item')");
is(ask($s2, "SELECT interlock.escrow_value('item', $id, 'stock')"), 4, 'ESC-9: keeps its value over commits and folds (E9)');
is(try_adjust($s2, -1), 'adjusted|2', 'a blind change under REPEATABLE READ gets no serialization failure');
is(ask($s2, "SELECT interlock.escrow_value('item', $id, 'stock')"), 3, 'and sees itself');
ask($s2, 'COMMIT');
is(value(), 2, 'commits');
begin($s1);
ask($s1, "SELECT 1 FROM item WHERE id = $id FOR UPDATE");
is(try_adjust($s2, -1), 'adjusted|1', 'a locked row stops no adjustment');
waits($s3, "SELECT interlock.fold_escrow('item', $id)");
ask($s1, 'COMMIT');
is(then_gets($s3), 1, 'but a fold');

# --- SERIALIZABLE, and more counters than there is room for -------------------------------------------------------------------

stock(3);
ask($s2, "SELECT interlock.adjust('item', $id, 'stock', 1)");
ask($s2, "SELECT interlock.adjust('item', $id, 'stock', -1)");
ask($s1, 'BEGIN ISOLATION LEVEL SERIALIZABLE');
is(try_adjust($s1, -1), 'adjusted|2', 'under SERIALIZABLE');
is(ask($s1, "SELECT stock FROM item WHERE id = $id"), 2, 'the row is changed (E13)');
is(try_adjust($s2, -1), 'adjusted|1', 'others go on by memory');
is(try_adjust($s2, -2), 'pending|1', 'which knows of it');
ask($s1, 'ROLLBACK');
is(try_adjust($s2, -2), 'adjusted|0', 'and of its rollback');

my $first = $id + 1;
stock(2) for 1 .. 40;
is($node->safe_psql('postgres', "SELECT used <= \"of\" FROM interlock.usage WHERE what = 'escrow counters'"), 't', 'more counters than entries');
ask($s1, 'BEGIN');
ask($s1, "SELECT interlock.adjust('item', i, 'stock', -2) FROM generate_series($first, $first + 39) i");
is($s1->{error}, undef, 'ESC-14: all of them in one transaction (E8)');
$id = $first;
is(try_adjust($s2, -1), 'pending|0', 'none can be sold again');
ask($s1, 'ROLLBACK');
is(ask($s2, "SELECT count(*) FROM generate_series($first, $first + 39) i, interlock.try_adjust('item', i, 'stock', -2) a WHERE outcome = 'adjusted'"), 40, 'until it has rolled back');
is(ask($s2, "SELECT sum(interlock.escrow_value('item', i, 'stock')) FROM generate_series($first, $first + 39) i"), 0, 'to nothing left');
$id = $first + 39;

# --- The sweeper --------------------------------------------------------------------------------------------------------------

stock(5);
ask($s2, "SELECT interlock.adjust('item', $id, 'stock', -2)");
$node->append_conf('postgresql.conf', 'interlock.sweeper = on');
$node->reload;
ask($s2, "SELECT interlock.adjust('item', $id, 'stock', -1)");
ok($node->poll_query_until('postgres', 'SELECT count(*) = 0 FROM interlock_internal.escrow_part'), 'the sweeper folds all parts');
is(row() . ' ' . value(), '2 2', 'into the row');

# --- A standby ----------------------------------------------------------------------------------------------------------------

$node->append_conf('postgresql.conf', 'interlock.sweeper = off');
$node->reload;
stock(5);
$node->backup('backup');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($node, 'backup', has_streaming => 1);
$standby->start;
ask($s2, "SELECT interlock.adjust('item', $id, 'stock', -2)");
begin($s1);
try_adjust($s1, -2);
ask($s1, "PREPARE TRANSACTION 'take'");
$node->wait_for_catchup($standby);
is($standby->safe_psql('postgres', "SELECT interlock.escrow_value('item', $id, 'stock')"), 3, 'a standby has the same value');
my ($status, $out, $error) = $standby->psql('postgres', "SELECT interlock.adjust('item', $id, 'stock', -1)");
like($error, qr/read-only|recovery/, 'and takes no changes');
$node->stop;
$standby->promote;
is($standby->safe_psql('postgres', "SELECT outcome, remaining FROM interlock.try_adjust('item', $id, 'stock', -2)"), 'pending|1', 'ESC-8: promoted, it knows what is in doubt');
is($standby->safe_psql('postgres', "SELECT outcome, remaining FROM interlock.try_adjust('item', $id, 'stock', -1)"), 'adjusted|0', 'and what is not');
$standby->safe_psql('postgres', "ROLLBACK PREPARED 'take'");
is($standby->safe_psql('postgres', "SELECT outcome, remaining FROM interlock.try_adjust('item', $id, 'stock', -2)"), 'adjusted|0', 'nothing is lost');

done_testing();
