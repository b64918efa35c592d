# What `wait` waits for, and what keeps an adjustment from being made: ESC-50 and ESC-52.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../lib";
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Protocol;
use Server;

my $node = start_server("interlock.sweeper = off\nmax_prepared_transactions = 5\n");
# An answer that waits for what nobody decides would come after an hour.
$node->append_conf('postgresql.conf', "statement_timeout = '5 min'");
$node->reload;
my ($buyer, $other, $third) = map { Protocol::start($node) } 1 .. 3;

sub answer_of { my ($session) = @_; return $session->{error} // join(';', map { join('|', map { $_ // '' } @$_) } @{ $session->{rows} }); }
sub ask { my ($session, $sql) = @_; query($session, $sql); return answer_of($session); }
sub then_gets { my ($session) = @_; Protocol::answer($session); return answer_of($session); }

my $id = 0;
sub adjust { my ($delta) = @_; return "SELECT outcome FROM interlock.try_adjust('item', $id, 'stock', $delta, '1 h')"; }
sub reserve { my ($amount) = @_; return "SELECT outcome FROM interlock.reserve('item', $id, 'stock', $amount, '1 h', wait => '1 h')"; }
sub token { my ($amount) = @_; return $node->safe_psql('postgres', "SELECT token FROM interlock.reserve('item', $id, 'stock', $amount, '1 h')"); }
sub begin_waiting
{
    my ($session, $sql) = @_;
    Protocol::send_query($session, $sql);
    $node->poll_query_until('postgres', "SELECT cardinality(pg_blocking_pids($session->{pid})) > 0") or die 'does not wait';
    return;
}

# In memory, at most 10.
sub stock
{
    my ($value) = @_;
    $id++;
    $node->safe_psql('postgres', "INSERT INTO item VALUES ($id, $value); SELECT interlock.adjust('item', $id, 'stock', -1); SELECT interlock.adjust('item', $id, 'stock', 1)");
    $node->safe_psql('postgres', "SELECT interlock.adjust('item', $id, 'stock', -1); SELECT interlock.adjust('item', $id, 'stock', 1)");
    return;
}

$node->safe_psql('postgres', "CREATE TABLE item (id int PRIMARY KEY, stock int NOT NULL); SELECT interlock.enable_escrow('item', 'stock', maximum => 10)");

# --- Nothing is undecided, or nothing that is can make it fit
for my $level ('READ COMMITTED', 'SERIALIZABLE')
{
    stock(5);
    token(5);
    ask($buyer, "BEGIN ISOLATION LEVEL $level");
    is(ask($buyer, adjust(-1)), 'pending', "ESC-50, $level: what is reserved is pending at once");
    is(ask($buyer, reserve(1)), 'pending', 'for a reservation, too');
    is(ask($buyer, adjust(6)), 'pending', 'and the room that it keeps');
    # A tenth of a second for each would be longer than a statement may take.
    is(ask($buyer, "SELECT count(*) FILTER (WHERE outcome = 'pending') FROM generate_series(1, 5000) CROSS JOIN LATERAL (" . adjust('-1 + 0 * generate_series') . ') t'),
        5000, 'however many answers');
    ask($buyer, 'ROLLBACK');

    stock(5);
    ask($buyer, "BEGIN ISOLATION LEVEL $level");
    is(ask($buyer, adjust(-5)), 'adjusted', 'what the transaction has itself');
    is(ask($buyer, adjust(-1)), 'pending', "ESC-50, $level: is not waited for");
    ask($buyer, 'ROLLBACK');
}
stock(5);
is(ask($buyer, adjust(-6)), 'insufficient', 'what is not there is insufficient');
token(3);
ask($other, 'BEGIN; ' . adjust(-1));
is(ask($buyer, adjust(-3)), 'pending', 'ESC-50: an open transaction that has too little is not waited for');
begin_waiting($buyer, adjust(-2));
ask($other, 'ROLLBACK');
is(then_gets($buyer), 'adjusted', 'one that has enough is');

# --- Who can make it fit
stock(5);
my ($sold, $given_back) = (token(2), token(3));
ask($other, "BEGIN; SELECT interlock.confirm_reservation($sold)");
is(ask($buyer, adjust(-1)), 'pending', 'ESC-50: a reservation that is being confirmed gives nothing back');
ask($third, "BEGIN; SELECT interlock.cancel_reservation($given_back)");
begin_waiting($buyer, adjust(-1));
ask($third, 'COMMIT');
is(then_gets($buyer), 'adjusted', 'ESC-50: one that is being cancelled does, though the other one has not ended');
ask($other, 'ROLLBACK');

stock(10);
is(ask($buyer, adjust(1)), 'insufficient', 'above the maximum');
ask($other, 'BEGIN; ' . adjust(-1));
begin_waiting($buyer, adjust(1));
ask($other, 'COMMIT');
is(then_gets($buyer), 'adjusted', 'ESC-50: a take that commits makes room');
stock(9);
ask($other, 'BEGIN; ' . adjust(1));
is(ask($buyer, adjust(2)), 'insufficient', 'too much in any case');
begin_waiting($buyer, adjust(1));
ask($other, 'ROLLBACK');
is(then_gets($buyer), 'adjusted', 'ESC-50: so does a return that is rolled back');

# --- Prepared transactions
stock(3);
ask($other, 'BEGIN; ' . adjust(-3) . "; PREPARE TRANSACTION 'takes'");
begin_waiting($buyer, adjust(-1));
ask($other, "ROLLBACK PREPARED 'takes'");
is(then_gets($buyer), 'adjusted', 'ESC-50: a prepared transaction is waited for');
stock(3);
token(2);
ask($other, 'BEGIN; ' . adjust(-1) . "; PREPARE TRANSACTION 'takes'");
is(ask($buyer, adjust(-3)), 'pending', 'ESC-50: but not one that has too little');
$node->restart;
($buyer, $other, $third) = map { Protocol::start($node) } 1 .. 3;
is(ask($buyer, adjust(-3)), 'pending', 'after a restart, too');
ask($other, "ROLLBACK PREPARED 'takes'");
is(ask($buyer, adjust(-1)), 'adjusted', 'the numbers are exact after it');

# The error says whom it waits for.
stock(1);
token(1);
ask($buyer, "SELECT interlock.adjust('item', $id, 'stock', -1)");
like($buyer->{hint}, qr/^Reservations or the current transaction hold the missing amount/, 'what is reserved');
stock(1);
ask($other, 'BEGIN; ' . adjust(-1));
ask($buyer, "SELECT interlock.adjust('item', $id, 'stock', -1)");
like($buyer->{hint}, qr/^Other transactions that change it have not ended/, 'and what is open');
ask($other, 'ROLLBACK');

# --- Markers
$node->safe_psql('postgres', q(CREATE TABLE doc (id int PRIMARY KEY, stock int NOT NULL, title text);
    INSERT INTO doc SELECT n, 5, 'a' FROM generate_series(1, 4) n;
    SELECT interlock.enable_escrow('doc', 'stock'), interlock.enable_marker('doc');
    SELECT interlock.lock_row('doc', n, 'anna') FROM generate_series(1, 4) n));
my $take = sub { "SELECT outcome FROM interlock.try_adjust('doc', $_[0], 'stock', -1)" };
is(ask($buyer, $take->(1)), 'adjusted', "ESC-52: a marker does not stop the first adjustment of a row ($_)") for 'first', 'second';
is(ask($buyer, "SELECT outcome FROM interlock.reserve('doc', 2, 'stock', 2, '1 h')"), 'reserved', "ESC-52: nor the first reservation ($_)") for 'first', 'second';
is(ask($buyer, $take->(2)), 'adjusted', 'an adjustment after them');
is(ask($buyer, $take->(2)), 'pending', 'up to what is left');
ask($buyer, 'BEGIN; ' . $take->(3));
Protocol::send_query($other, $take->(3));
$node->poll_query_until('postgres', "SELECT cardinality(pg_blocking_pids($other->{pid})) > 0") or die 'does not wait';
ask($buyer, $take->(3));
ask($buyer, 'COMMIT');
is(then_gets($other), 'adjusted', 'ESC-52: two first ones follow each other');
ask($buyer, 'BEGIN; ' . $take->(4));
ask($buyer, 'ROLLBACK');
is(ask($buyer, 'BEGIN ISOLATION LEVEL SERIALIZABLE; ' . $take->(4)), 'IL004', 'where the row itself has to be written, it does');
ask($buyer, 'ROLLBACK');
is(ask($buyer, "SELECT interlock.fold_escrow('doc')"), 'IL004', 'it delays the fold');
is(ask($buyer, "SELECT string_agg(interlock.escrow_value('doc', id, 'stock')::text, ' ' ORDER BY id) FROM doc"), '3 0 2 5', 'the values');
ask($buyer, "SELECT interlock.unlock_row('doc', n, 'anna') FROM generate_series(1, 4) n");
is(ask($buyer, "SELECT interlock.fold_escrow('doc')"), '3', 'which comes after it');
is(ask($buyer, "SELECT string_agg(stock::text, ' ' ORDER BY id) FROM doc"), '3 0 2 5', 'with all that was taken');

done_testing();
