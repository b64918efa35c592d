# Escrow counters where the row itself is changed (E13): without shared_preload_libraries, and under row security. The answers are
# those of memory, with several sessions, prepared transactions and parts that memory left.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../lib";
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Protocol;
use Server;

my $node = start_server("interlock.sweeper = off\nmax_prepared_transactions = 10\nmax_connections = 40");
$node->safe_psql('postgres', q(
CREATE TABLE item (id int PRIMARY KEY, stock int NOT NULL CHECK (stock BETWEEN 0 AND 200), region text DEFAULT 'eu');
SELECT interlock.enable_escrow('item', 'stock', maximum => 200);
CREATE TABLE sold (n int);
CREATE ROLE clerk;
GRANT SELECT, UPDATE ON item TO clerk;
GRANT INSERT ON sold TO clerk;
));

my ($s1, $s2, $s3);
my $id = 0;
sub ask { my ($session, $sql) = @_; query($session, $sql); return answer_of($session); }
sub answer_of
{
    my ($session) = @_;
    return "$session->{error}: $session->{message}" if defined $session->{error};
    return join(';', map { join('|', map { $_ // '' } @$_) } @{ $session->{rows} });
}
sub call { my ($delta, $wait) = @_; return "SELECT outcome, remaining FROM interlock.try_adjust('item', $id, 'stock', $delta, '" . ($wait // '0') . "')"; }
sub try_adjust { my ($session, @call) = @_; return ask($session, call(@call)); }
sub waits
{
    my ($session, $sql) = @_;
    Protocol::send_query($session, $sql);
    $node->poll_query_until('postgres', "SELECT cardinality(pg_blocking_pids($session->{pid})) > 0") or die 'does not wait';
    return;
}
sub then_gets { my ($session) = @_; Protocol::answer($session); return answer_of($session); }
sub stock { my ($value) = @_; $id++; $node->safe_psql('postgres', "INSERT INTO item VALUES ($id, $value)"); return; }
sub value { return $node->safe_psql('postgres', "SELECT stock, interlock.escrow_value('item', id, 'stock') FROM item WHERE id = $id"); }
sub restart_with
{
    my ($libraries) = @_;
    $node->adjust_conf('postgresql.conf', 'shared_preload_libraries', "'$libraries'");
    $node->restart;
    ($s1, $s2, $s3) = map { Protocol::start($node, 'postgres') } 1 .. 3;
    return;
}

# Eight clients, some as a role that row security holds for, some roll back: what is sold and what is left is what was stocked.
sub sell
{
    my ($name, $as) = @_;
    $node->safe_psql('postgres', 'TRUNCATE sold');
    my $script = $node->basedir . '/sell.sql';
    unlink $script;
    append_to_file($script, "\\set ends random(1, 10)\nBEGIN;\n$as"
        . "SELECT outcome = 'adjusted' AS fits FROM interlock.try_adjust('item', $id, 'stock', -1, '1 min') \\gset\n"
        . "\\if :fits\nINSERT INTO sold VALUES (1);\n\\endif\n\\if :ends = 1\nROLLBACK;\n\\else\nCOMMIT;\n\\endif\n");
    $node->command_ok([ 'pgbench', '-n', '-c', 8, '-j', 2, '-t', 20, '-f', $script, $node->connstr('postgres') ], "$name: eight clients sell");
    is($node->safe_psql('postgres', "SELECT (SELECT count(*) FROM sold), interlock.escrow_value('item', $id, 'stock')"), '100|0', "$name: exactly what there was");
    return;
}

# --- Parts that memory left, and no memory -------------------------------------------------------------------------------------

stock(5);
$node->safe_psql('postgres', call($_)) for -1, 1, -1;
is(value(), '4|4', 'a row and two parts, of which the sum is zero');
$node->safe_psql('postgres', 'BEGIN;' . call(-2) . "; PREPARE TRANSACTION 'take'");
restart_with('');
is($node->safe_psql('postgres', "SELECT parts, remaining FROM interlock.escrow"), '2|', 'parts, and nothing in memory');
is(try_adjust($s1, -4), 'pending|2', 'a part of a prepared transaction is undecided without memory, too');
is(try_adjust($s1, 199), 'insufficient|2', 'and keeps its room below the maximum');
is(try_adjust($s1, -1), 'adjusted|1', 'the rest can be taken');
is(value(), '3|3', 'in the row');
is($node->safe_psql('postgres', 'SELECT parts FROM interlock.escrow'), 0, 'to which it adds the parts');
waits($s2, call(-3, '1 min'));
$node->safe_psql('postgres', "ROLLBACK PREPARED 'take'");
is(then_gets($s2), 'adjusted|0', 'a wait for the prepared transaction');

stock(3);
ask($s1, 'BEGIN');
is(try_adjust($s1, -2), 'adjusted|1', 'one takes');
waits($s2, call(-2));
ask($s1, 'ROLLBACK');
is(then_gets($s2), 'adjusted|1', 'another one waits for the row, and knows of the rollback');
ask($s1, 'BEGIN');
ask($s1, 'SAVEPOINT a');
try_adjust($s1, -1);
ask($s1, 'ROLLBACK TO a');
is(try_adjust($s1, 1), 'adjusted|2', 'a savepoint that was rolled back counts nothing');
waits($s2, call(-2));
ask($s1, "PREPARE TRANSACTION 'return'");
$node->safe_psql('postgres', "COMMIT PREPARED 'return'");
is(then_gets($s2), 'adjusted|0', 'a return that was prepared');
is(try_adjust($s2, -1), 'insufficient|0', 'and no more than that');
like(ask($s2, "UPDATE item SET stock = 5 WHERE id = $id"), qr/^55000/, 'a plain UPDATE is refused');
ask($s1, 'BEGIN');
try_adjust($s1, 4);
waits($s2, "SELECT interlock.set_escrow('item', $id, 'stock', 9)");
ask($s1, 'COMMIT');
is(then_gets($s2), '', 'set_escrow waits');
is(value(), '9|9', 'and sets');
stock(100);
sell('without shared_preload_libraries', '');

# --- Row security ----------------------------------------------------------------------------------------------------------------

restart_with('pg_interlock');
$node->safe_psql('postgres', q(
ALTER TABLE item ENABLE ROW LEVEL SECURITY;
CREATE POLICY look ON item FOR SELECT TO clerk USING (region = 'eu');
CREATE POLICY sell ON item FOR UPDATE TO clerk USING (region = 'eu') WITH CHECK (stock >= 2);
));
ask($s1, 'SET ROLE clerk');
stock(9);
$node->safe_psql('postgres', call($_)) for -1, -2;
is(value(), '8|6', 'a part');
is(try_adjust($s1, -1), 'adjusted|5', 'under row security');
is(value(), '5|5', 'the row is changed, with the parts');
is(try_adjust($s1, -4), '42501: new row violates row-level security policy for table "item"', 'a policy refuses the new row');
is(try_adjust($s2, -5), 'adjusted|0', 'what it refused is there for others, in memory');
is(try_adjust($s1, -1), 'insufficient|0', 'and is gone then for the one that was refused');
ask($s2, "SELECT interlock.set_escrow('item', $id, 'stock', 5)");
ask($s2, 'BEGIN');
is(try_adjust($s2, -2), 'adjusted|3', 'an undecided take in memory');
is(try_adjust($s1, -4), 'pending|3', 'is undecided under row security');
is(try_adjust($s1, -3), 'adjusted|0', 'which leaves the rest');
is(value(), '2|2', 'as the policy sees what is committed');
is(try_adjust($s3, -1), 'pending|0', 'memory knows of the change of the row');
is($node->safe_psql('postgres', "SELECT remaining::int, at_most::int, undecided::int FROM interlock.escrow WHERE key = '{$id}'"), '0|2|2', 'and the view has what is undecided');
ask($s2, 'ROLLBACK');
is($node->safe_psql('postgres', "SELECT undecided::int FROM interlock.escrow WHERE key = '{$id}'"), 0, 'or nothing');
ask($s1, 'BEGIN');
is(try_adjust($s1, 2), 'adjusted|4', 'an undecided return under row security');
is(try_adjust($s3, -3), 'pending|2', 'is not there for others');
ask($s1, 'COMMIT');
is(try_adjust($s3, -3), 'adjusted|1', 'until it is committed');
ask($s1, 'BEGIN');
like(try_adjust($s1, -1), qr/^42501/, 'refused in a transaction');
is(try_adjust($s3, -1), 'adjusted|0', 'which has no part, though it has not ended');
ask($s1, 'ROLLBACK');
$node->safe_psql('postgres', "UPDATE item SET region = 'us' WHERE id = $id");
is(try_adjust($s1, 1), 'not_found|', 'a row that the policies hide');
is(ask($s1, "SELECT interlock.escrow_value('item', $id, 'stock')"), '', 'has no value');
is(ask($s1, 'SELECT count(*) FROM interlock.escrow'), 0, 'and no line in the view');
like(ask($s1, "SELECT interlock.set_escrow('item', $id, 'stock', 9)"), qr/^P0002/, 'and is not set');

# Nobody waits for a role at the gate of a row that policies keep it from, and it does not learn who is there.
my $set = sub { my ($session) = @_; return ask($session, "SELECT interlock.set_escrow('item', $id, 'stock', 60)"); };
ask($_, "SET lock_timeout = '1s'") for $s1, $s2;
ask($s1, 'BEGIN');
is(try_adjust($s1, -1), 'not_found|', 'a hidden row, in a transaction that goes on');
is(ask($s1, "SELECT outcome FROM interlock.reserve('item', $id, 'stock', 1, '1 h')"), 'not_found', 'by reserve, too');
is($set->($s2), '', 'keeps nobody from it');
ask($s1, 'ROLLBACK');
ask($s2, 'BEGIN');
is(try_adjust($s2, -1), 'adjusted|59', 'while another transaction adjusts it');
like($set->($s1), qr/^P0002/, 'set_escrow does not wait');
ask($s2, 'ROLLBACK');
ask($s2, 'BEGIN');
is($set->($s2), '', 'while another one sets it');
is(try_adjust($s1, -1), 'not_found|', 'it is not there, either');
ask($s2, 'ROLLBACK');
$node->safe_psql('postgres', "CREATE POLICY few ON item AS RESTRICTIVE FOR UPDATE TO clerk USING (stock < 50) WITH CHECK (true)");
stock(60);
ask($s1, 'BEGIN');
is(try_adjust($s1, -1), 'not_found|', 'a row that is seen and may not be changed');
is($set->($s2), '', 'keeps nobody from it');
ask($s2, 'BEGIN');
is($set->($s2), '', 'while it is set');
waits($s1, call(-1, '20 s'));
ask($s2, 'COMMIT');
is(then_gets($s1), 'not_found|', 'it is waited for, and not there');
is($set->($s2), '', 'which keeps nobody from it, either');
ask($s1, 'ROLLBACK');
ask($s2, 'BEGIN');
is(try_adjust($s2, -1), 'adjusted|59', 'while another transaction adjusts it');
like($set->($s1), qr/^P0002/, 'set_escrow does not wait: it would keep others waiting');
ask($s2, 'ROLLBACK');
stock(49);
ask($s1, 'BEGIN');
is(try_adjust($s1, 2), 'adjusted|51', 'a row that was changed before');
is(try_adjust($s1, -1), 'not_found|', 'until it may not be changed any more');
like($set->($s2), qr/^55P03/, 'is set when that transaction has ended');
ask($s1, 'ROLLBACK');
$node->safe_psql('postgres', 'DROP POLICY few ON item');
ask($_, 'RESET lock_timeout') for $s1, $s2;

stock(5);
like(ask($s1, "SELECT interlock.set_escrow('item', $id, 'stock', 1)"), qr/^42501/, 'set_escrow, too, is refused by a policy');
$node->safe_psql('postgres', 'DROP POLICY sell ON item; CREATE POLICY sell ON item FOR UPDATE TO clerk USING (true)');
stock(100);
sell('under row security', "\\set clerk random(0, 1)\n\\if :clerk\nSET LOCAL ROLE clerk;\n\\endif\n");

$node->stop;
done_testing();
