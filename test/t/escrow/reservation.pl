# Reservations of escrow counters: what several sessions, savepoints, prepared transactions, crashes, a promotion and the sweeper do to
# them. What was stocked is in the value, reserved or sold, at every look, and each reservation ends once (E14).

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
CREATE TABLE item (id int PRIMARY KEY, stock int NOT NULL CHECK (stock BETWEEN 0 AND 10));
SELECT interlock.enable_escrow('item', 'stock', maximum => 10);
));

my ($s1, $s2, $s3);
sub begin_sessions { ($s1, $s2, $s3) = map { Protocol::start($node, 'postgres') } 1 .. 3; return; }
begin_sessions();

# A row's number; each test has its own. Its counter is in memory.
my $id = 0;
sub stock
{
    my ($value) = @_;
    $id++;
    ask($s3, $_) for "INSERT INTO item VALUES ($id, $value)", map { "SELECT interlock.adjust('item', $id, 'stock', $_)" } -1, 1;
    return;
}

sub ask { my ($session, $sql) = @_; query($session, $sql); return answer_of($session); }
sub answer_of
{
    my ($session) = @_;
    return $session->{error} if defined $session->{error};
    return join(';', map { join('|', map { $_ // '' } @$_) } @{ $session->{rows} });
}
sub begin { ask($_, 'BEGIN') for @_; return; }
sub try_adjust { my ($session, $delta) = @_; return ask($session, "SELECT outcome FROM interlock.try_adjust('item', $id, 'stock', $delta)"); }

# In the session: the token, or the outcome if there is none.
sub reserve
{
    my ($session, $amount, $ttl, $wait) = @_;
    return ask($session, "SELECT coalesce(token::text, outcome) FROM interlock.reserve('item', $id, 'stock', $amount, '" . ($ttl // '1 h') . "', wait => '" . ($wait // '0') . "')");
}
sub confirm { my ($session, $token) = @_; return ask($session, "SELECT interlock.confirm_reservation($token)"); }
sub cancel { my ($session, $token) = @_; return ask($session, "SELECT interlock.cancel_reservation($token)"); }
sub extend { my ($session, $token, $ttl) = @_; return ask($session, "SELECT interlock.extend_reservation($token, '" . ($ttl // '1 h') . "') IS NOT NULL"); }

# The value, what is reserved, and what the memory has: for certain and at most.
sub look
{
    return ask($s3, "SELECT interlock.escrow_value('item', $id, 'stock'), (SELECT coalesce(sum(amount), 0) FROM interlock.reservations WHERE key = '{$id}')")
        . ' ' . ask($s3, "SELECT remaining::int, at_most::int FROM interlock.escrow WHERE key = '{$id}'");
}
sub waits
{
    my ($session, $sql) = @_;
    Protocol::send_query($session, $sql);
    $node->poll_query_until('postgres', "SELECT cardinality(pg_blocking_pids($session->{pid})) > 0") or die 'does not wait';
    return;
}
sub then_gets { my ($session) = @_; Protocol::answer($session); return answer_of($session); }
sub is_token { my ($token, $name) = @_; like($token, qr/^\d{10,}$/, $name); return $token; }

# --- Memory ----------------------------------------------------------------------------------------------------------------

stock(3);
begin($s1);
my $token = is_token(reserve($s1, 2), 'a reservation');
is(look(), '3|0 1|3', 'is undecided until its transaction ends');
is(reserve($s2, 2), 'pending', 'others do not get it');
is(cancel($s2, $token), 'f', 'or know of it');
ask($s1, 'COMMIT');
is(look(), '1|2 1|3', 'committed, it has left the value, and keeps its room');
is(reserve($s2, 2), 'pending', 'as it may end');
is(try_adjust($s2, -4), 'insufficient', 'what is not there at all is insufficient');
is(try_adjust($s2, 8), 'pending', 'there is no room for what it may give back');
is(try_adjust($s2, 7), 'adjusted', 'but beside it');
is(try_adjust($s2, -7), 'adjusted', 'and back');
is(confirm($s2, $token), '', 'another session confirms it');
is(look(), '1|0 1|1', 'which makes room');
is(confirm($s1, $token), 'IL008', 'once');

stock(3);
$token = is_token(reserve($s1, 3), 'all there is');
begin($s1);
is(cancel($s1, $token), 't', 'cancelled');
is(look(), '0|3 0|3', 'it is nobody\'s until the commit');
is(reserve($s2, 1), 'pending', 'neither for others');
is(reserve($s1, 1), 'pending', 'nor for itself');
waits($s2, "SELECT outcome FROM interlock.reserve('item', $id, 'stock', 1, '1 h', wait => '1 min')");
ask($s1, 'COMMIT');
is(then_gets($s2), 'reserved', 'who waits gets it then');
is(look(), '2|1 2|3', 'and the rest is there');

# --- Two that end one -------------------------------------------------------------------------------------------------------

for my $first ('confirm', 'cancel')
{
    for my $end ('COMMIT', 'ROLLBACK')
    {
        stock(5);
        $token = is_token(reserve($s1, 4), "$first, $end");
        begin($s1);
        is(ask($s1, "SELECT interlock.${first}_reservation($token)"), $first eq 'confirm' ? '' : 't', 'one ends it');
        waits($s2, "SELECT interlock.cancel_reservation($token)");
        ask($s1, $end);
        is(then_gets($s2), $end eq 'COMMIT' ? 'f' : 't', 'the other one waits for that');
        my $value = $first eq 'confirm' && $end eq 'COMMIT' ? 1 : 5;
        is(look(), "$value|0 $value|$value", 'it has ended once');
    }
}
stock(5);
$token = is_token(reserve($s1, 4), 'extended while another one cancels');
begin($s1);
is(extend($s1, $token, '2 h'), 't', 'extended');
waits($s2, "SELECT interlock.cancel_reservation($token)");
ask($s1, 'COMMIT');
is(then_gets($s2), 't', 'which finds the new row');
is(look(), '5|0 5|5', 'and ends it once');
is(extend($s1, $token), 'f', 'there is nothing to extend');

# --- Savepoints -------------------------------------------------------------------------------------------------------------

stock(4);
begin($s1);
ask($s1, 'SAVEPOINT a');
is_token(reserve($s1, 4), 'reserved in a savepoint');
ask($s1, 'ROLLBACK TO a');
is(look(), '4|0 4|4', 'which is rolled back');
$token = is_token(reserve($s1, 3), 'reserved again');
ask($s1, 'SAVEPOINT b');
is(cancel($s1, $token), 't', 'cancelled in a savepoint');
ask($s1, 'ROLLBACK TO b; SAVEPOINT c');
is(confirm($s1, $token), '', 'confirmed in another one');
ask($s1, 'ROLLBACK TO c; SAVEPOINT d');
is(cancel($s1, $token), 't', 'cancelled again');
ask($s1, 'RELEASE d; COMMIT');
is(look(), '4|0 4|4', 'one of these counts');
begin($s1);
$token = is_token(reserve($s1, 3), 'reserved');
is(confirm($s1, $token), '', 'and confirmed in one transaction');
ask($s1, 'COMMIT');
is(look(), '1|0 1|1', 'is a sale');

# --- Expiry -----------------------------------------------------------------------------------------------------------------

stock(4);
$token = is_token(reserve($s1, 3, '1 ms'), 'one that expires');
ask($s1, 'SELECT pg_sleep(0.01)');
is(confirm($s2, $token), 'IL008', 'is not sold, though nobody has swept it');
is(look(), '1|3 1|4', 'and is still held');
begin($s1, $s2);
is(cancel($s1, $token), 'f', 'it is given back, too late to say that it was held');
waits($s2, "SELECT interlock.fold_escrow('item', $id)");
ask($s1, 'COMMIT');
is(then_gets($s2), 1, 'a second one finds it gone');
ask($s2, 'COMMIT');
is(look(), '4|0 4|4', 'it was given back once');

# Confirmed before the deadline, while it expires: who has locked the row decides.
$token = is_token(reserve($s1, 3, '1 s'), 'one that expires while it is being confirmed');
begin($s1);
is(confirm($s1, $token), '', 'in time');
ask($s1, 'SELECT pg_sleep(1.1)');
waits($s2, "SELECT interlock.fold_escrow('item', $id)");
ask($s1, 'ROLLBACK');
is(then_gets($s2), 1, 'expiry waits for that');
is(look(), '4|0 4|4', 'and gives it back when that was rolled back');
$token = is_token(reserve($s1, 3, '1 s'), 'another one');
begin($s1, $s2);
ask($s2, 'SELECT pg_sleep(1.1)');
is(ask($s2, "SELECT interlock.fold_escrow('item', $id)"), 1, 'expiry first');
waits($s1, "SELECT interlock.confirm_reservation($token)");
ask($s2, 'ROLLBACK');
is(then_gets($s1), 'IL008', 'the confirmation that waited is too late by the clock');
ask($s1, 'ROLLBACK');
is(look(), '1|3 1|4', 'both rolled back: it is held, and expired');
ask($s2, "SELECT interlock.fold_escrow('item', $id)");
is(look(), '4|0 4|4', 'until it is given back');

# --- Prepared transactions, and a crash ---------------------------------------------------------------------------------------

for my $crash (0, 1)
{
    for my $end ('COMMIT', 'ROLLBACK')
    {
        my $name = "$end PREPARED" . ($crash ? ' after a crash' : '');
        my @tokens;
        for my $what ('reserve', 'confirm', 'cancel', 'both')
        {
            stock(6);
            push @tokens, $what eq 'reserve' ? undef : is_token(reserve($s1, 4), $what);
        }
        begin($s1);
        $id -= 3;
        reserve($s1, 4);
        $id++;
        confirm($s1, $tokens[1]);
        $id++;
        cancel($s1, $tokens[2]);
        $id++;
        cancel($s1, $tokens[3]);
        is_token(reserve($s1, 2), 'cancelled, and another one');
        is(ask($s1, "PREPARE TRANSACTION 'carts'"), '', "$name: prepared");
        if ($crash)
        {
            $node->stop('immediate');
            $node->start;
            begin_sessions();
        }
        $id -= 3;
        my @undecided = map { my $answers = join(' ', try_adjust($s2, -3), try_adjust($s2, 5), try_adjust($s2, 4), try_adjust($s2, -4)); $id++; $answers } 1 .. 4;
        is_deeply(\@undecided, [ 'pending pending adjusted adjusted', ('pending pending adjusted adjusted') x 3 ], "$name: undecided")
            or diag(explain(\@undecided));
        waits($s2, "SELECT interlock.cancel_reservation($tokens[1])");
        $node->safe_psql('postgres', "$end PREPARED 'carts'");
        is(then_gets($s2), $end eq 'COMMIT' ? 'f' : 't', "$name: who waits learns of it");
        $id -= 5;
        my @left = map { $id++; try_adjust($s2, -11); look() } 1 .. 4; # a refusal settles notes
        is_deeply(\@left, $end eq 'COMMIT'
            ? [ '2|4 2|6', '2|0 2|2', '6|0 6|6', '4|2 4|6' ]
            : [ '6|0 6|6', '6|0 6|6', '2|4 2|6', '2|4 2|6' ], "$name: exact") or diag(explain(\@left));
    }
}

stock(5);
$token = is_token(reserve($s1, 2), 'a reservation');
is_token(reserve($s1, 1, '1 ms'), 'and one that expires');
begin($s1);
is(cancel($s1, $token), 't', 'a cancellation that is not committed');
$node->stop('immediate');
$node->start;
begin_sessions();
is(try_adjust($s1, -3), 'pending', 'a crash leaves both');
is(look(), '2|3 2|5', 'and memory is loaded with them (E6)');
is(confirm($s1, $token), '', 'it can be sold');
ask($s1, "SELECT interlock.fold_escrow('item', $id)");
is(look(), '3|0 3|3', 'and the other one given back');

# --- More counters than there is room for, and SERIALIZABLE --------------------------------------------------------------------

my $first = $id + 1;
stock(2) for 1 .. 30;
ask($s1, 'BEGIN');
ask($s1, "CREATE TEMP TABLE carts AS SELECT i, r.* FROM generate_series($first, $first + 29) i, interlock.reserve('item', i, 'stock', 2, '1 h') r");
is($s1->{error}, undef, 'more reservations in a transaction than there are entries');
ask($s1, 'COMMIT');
ask($s1, 'BEGIN');
is(ask($s1, 'SELECT count(*) FROM carts WHERE interlock.cancel_reservation(token)'), 30, 'cancelled in one transaction');
$id = $first;
is(try_adjust($s2, -1), 'pending', 'undecided, with an entry or without') if $id == $first;
ask($s1, 'ROLLBACK');
is(ask($s1, "SELECT count(*) FROM generate_series($first, $first + 29) i, interlock.try_adjust('item', i, 'stock', -1) t WHERE t.outcome = 'pending'"), 30, 'rolled back');
ask($s1, 'SELECT count(interlock.confirm_reservation(token)) FROM carts WHERE i % 2 = 0');
ask($s1, 'SELECT count(interlock.cancel_reservation(token)) FROM carts WHERE i % 2 = 1');
is(ask($s1, "SELECT sum(interlock.escrow_value('item', i, 'stock')) FROM generate_series($first, $first + 29) i"), 30, 'half of them sold');
is(ask($s1, "SELECT count(*) FROM generate_series($first, $first + 29) i, interlock.try_adjust('item', i, 'stock', 10 - CASE i % 2 WHEN 0 THEN 0 ELSE 2 END) t WHERE t.outcome = 'adjusted'"),
    30, 'and all room is there');
$id = $first + 29;

stock(4);
ask($s1, 'BEGIN ISOLATION LEVEL SERIALIZABLE');
$token = is_token(reserve($s1, 3), 'under SERIALIZABLE');
is(look(), '4|0 1|4', 'memory knows of it');
ask($s1, 'COMMIT');
is(look(), '1|3 1|4', 'committed');
ask($s1, 'BEGIN ISOLATION LEVEL SERIALIZABLE; SELECT 1');
ask($s2, "SELECT interlock.adjust('item', $id, 'stock', 1)");
is(cancel($s1, $token), 't', 'what is not tested gets no serialization failure');
ask($s1, 'COMMIT');
is(look(), '5|0 5|5', 'cancelled');

# Given back without memory, and folded: what may be rolled back is granted to nobody (E7).
stock(10);
my $folded = reserve($s1, 4);
$node->safe_psql('postgres', "INSERT INTO item SELECT 900 + i, 5 FROM generate_series(1, 16) i;
SELECT count(interlock.adjust('item', 900 + i, 'stock', -1)) FROM generate_series(1, 16) i");
begin($s1, $s2);
is(ask($s2, "SELECT count(interlock.adjust('item', 900 + i, 'stock', -1)) FROM generate_series(1, 16) i"), 16, 'all memory is in use');
is(cancel($s1, $folded), 't', 'a reservation is given back');
is(ask($s1, "SELECT interlock.fold_escrow('item', $id)"), 1, 'and folded');
ask($s2, 'ROLLBACK');
is(try_adjust($s1, -1), 'adjusted', 'its transaction takes one');
ask($s3, "SET lock_timeout = '100ms'");
is(try_adjust($s3, -9), '55P03', 'others wait for it');
ask($s3, 'RESET lock_timeout');
ask($s1, 'ROLLBACK');
is(ask($s1, "SELECT interlock.escrow_value('item', $id, 'stock')"), 6, 'what is rolled back was not granted');

# --- The sweeper -----------------------------------------------------------------------------------------------------------------

ask($s1, 'SELECT count(interlock.cancel_reservation(token)) FROM interlock.reservations');
my $sweeper = 'FROM interlock.sweeper WHERE database = current_database()';
stock(9);
is_token(reserve($s1, 1, '1 ms'), 'expires before the sweeper runs') for 1 .. 3;
my $lasting = is_token(reserve($s1, 1), 'lasts');
stock(9);
is_token(reserve($s1, 2, '1 ms'), 'another counter');
$node->append_conf('postgresql.conf', "interlock.sweeper = on\ninterlock.sweep_batch = 2");
$node->restart;
begin_sessions();
ok($node->poll_query_until('postgres', 'SELECT count(*) = 1 FROM interlock.reservations'), 'the sweeper ends the expired ones');
ok($node->poll_query_until('postgres', "SELECT stock = 9 FROM item WHERE id = $id"), 'and folds what they give back');
is(look() =~ s/ .*//r, '9|0', 'once');
$id--;
is(look() =~ s/ .*//r, '8|1', 'and of the other counter');
is_token(reserve($s1, 2, '1 s'), 'one that expires later');
is_token(reserve($s1, 2, '100 ms'), 'and one before');
ok($node->poll_query_until('postgres', 'SELECT count(*) = 1 FROM interlock.reservations'), 'the sweeper wakes for the nearest deadline');
is(look() =~ s/ .*//r, '8|1', 'and gives back');
is(extend($s1, $lasting, '100 ms'), 't', 'a deadline that comes earlier');
ok($node->poll_query_until('postgres', 'SELECT count(*) = 0 FROM interlock.reservations'), 'wakes it, too');
begin($s1);
$token = is_token(reserve($s1, 2, '1 ms'), 'one of a prepared transaction');
ask($s1, "PREPARE TRANSACTION 'cart'");
$node->safe_psql('postgres', "COMMIT PREPARED 'cart'");
ok($node->poll_query_until('postgres', "SELECT count(*) = 0 AND interlock.escrow_value('item', $id, 'stock') = 9 FROM interlock.reservations"), 'is found, though no call reports it');

# A reservation that another session has locked keeps no other from being given back.
$token = is_token(reserve($s1, 2, '2 s'), 'one');
begin($s2);
is(confirm($s2, $token), '', 'is being confirmed');
is_token(reserve($s1, 3, '1 ms'), 'and one');
ok($node->poll_query_until('postgres', "SELECT interlock.escrow_value('item', $id, 'stock') = 7"), 'is given back');
ask($s2, 'SELECT pg_sleep(2)');
ask($s2, 'ROLLBACK');
ok($node->poll_query_until('postgres', "SELECT interlock.escrow_value('item', $id, 'stock') = 9"), 'and the first one when its lock is gone');
is($node->safe_psql('postgres', "SELECT last_error IS NULL $sweeper"), 't', 'without an error');

# --- A standby -------------------------------------------------------------------------------------------------------------------

$node->append_conf('postgresql.conf', 'interlock.sweeper = off');
$node->reload;
stock(9);
$node->backup('backup');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($node, 'backup', has_streaming => 1);
$standby->append_conf('postgresql.conf', 'interlock.sweeper = on');
$standby->start;
my @tokens = map { is_token(reserve($s1, 2), 'a reservation') } 1 .. 3;
begin($s1);
cancel($s1, $tokens[1]);
ask($s1, "PREPARE TRANSACTION 'cart'");
extend($s1, $tokens[2], '1 ms');
$node->wait_for_catchup($standby);
is($standby->safe_psql('postgres', "SELECT count(*), interlock.escrow_value('item', $id, 'stock') FROM interlock.reservations"), '3|3', 'a standby has the same');
for my $call ("reserve('item', $id, 'stock', 1, '1 h')", "confirm_reservation($tokens[0])", "cancel_reservation($tokens[0])", "extend_reservation($tokens[0], '1 h')")
{
    my ($status, $out, $error) = $standby->psql('postgres', "SELECT interlock.$call");
    like($error, qr/read-only|recovery/, 'and takes no changes');
    ($status, $out, $error) = $node->psql('postgres', "SET default_transaction_read_only = on; SELECT interlock.$call");
    like($error, qr/cannot execute interlock\.\w+\(\) in a read-only transaction/, 'nor does a read-only transaction');
}
$node->stop;
$standby->promote;
ok($standby->poll_query_until('postgres', "SELECT interlock.escrow_value('item', $id, 'stock') = 5"), 'promoted, it gives back what has expired');
is($standby->safe_psql('postgres', "SELECT outcome FROM interlock.try_adjust('item', $id, 'stock', -6)"), 'pending', 'knows what is in doubt');
$standby->safe_psql('postgres', "SELECT interlock.confirm_reservation($tokens[0]); COMMIT PREPARED 'cart'");
is($standby->safe_psql('postgres', "SELECT outcome FROM interlock.try_adjust('item', $id, 'stock', 3)"), 'adjusted', 'and all room');
is($standby->safe_psql('postgres', "SELECT count(*), interlock.escrow_value('item', $id, 'stock') FROM interlock.reservations"), '0|10', 'nothing is lost');

done_testing();
