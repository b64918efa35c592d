# What "Ad Hoc Transactions in Web Applications" (SIGMOD 2022) found wrong with locks and checks that applications make themselves.

use strict;
use warnings;
use Anomaly;
use Story;
use Test::More;

my $stock = q{
    CREATE TABLE stock (id int PRIMARY KEY, on_hand int NOT NULL);
    CREATE TABLE sale (buyer text);
    INSERT INTO stock VALUES (1, 1);
};
my $oversold = 'SELECT count(*) > 1 FROM sale';
my $versioned = q{SELECT interlock.enable_versioning('stock', blind_updates => 'reject')};

# A sale by a program that has read what is on hand.
sub sells
{
    my ($session, $buyer, $on_hand, $condition) = @_;
    return 'sold out' unless $on_hand =~ /^[1-9]/;
    my $answer = $session->ask(sprintf 'UPDATE stock SET on_hand = %d WHERE id = 1%s', $on_hand - 1, $condition // '');
    $session->ask("INSERT INTO sale VALUES ('$buyer')") if $answer eq 'UPDATE 1';
    return $answer;
}

# --- Locks -------------------------------------------------------------------

# FOR UPDATE without BEGIN: the lock ends with the statement.
anomaly 'A row lock without a transaction', loses => 'every level',
    tables  => $stock,
    guard   => $versioned,
    lost    => $oversold,
    without => sub {
        my ($key, $ann, $ben) = @_;
        my $lock = 'SELECT on_hand FROM stock WHERE id = 1 FOR UPDATE';
        my @read = map { $_->ask($lock) } $ann, $ben;
        sells($ann, 'A', $read[0]);
        sells($ben, 'B', $read[1]);
    },
    with => sub {
        my ($key, $ann, $ben) = @_;
        my @read = map { [ split /\|/, $_->ask('SELECT on_hand, version FROM stock WHERE id = 1 FOR UPDATE') ] } $ann, $ben;
        is(sells($ben, 'B', $read[1][0]), 'IL011', 'an update that does not compare the version is refused');
        is(sells($ann, 'A', $read[0][0], " AND version = $read[0][1]"), 'UPDATE 1', 'A sells');
        return sells($ben, 'B', $read[1][0], " AND version = $read[1][1]");
    },
    refused => qr/^UPDATE 0$/;

# Each server of the application, or each session of a user, has a lock of its own. Here: a number made of the session.
anomaly 'A lock that the others do not see', loses => 'every level',
    tables  => $stock,
    lost    => $oversold,
    without => sub {
        my ($key, $ann, $ben) = @_;
        is($_->ask('SELECT pg_try_advisory_lock(pg_backend_pid())'), 't', 'has its lock') for $ann, $ben;
        my @read = map { $_->ask('SELECT on_hand FROM stock WHERE id = 1') } $ann, $ben;
        sells($ann, 'A', $read[0]);
        sells($ben, 'B', $read[1]);
    },
    with => sub {
        my ($key, $ann, $ben) = @_;
        my $acquire = "SELECT outcome FROM interlock.acquire_lease('$key')";
        is($ann->ask($acquire), 'acquired', 'A has it');
        my $answer = $ben->ask($acquire);
        is(sells($ann, 'A', $ann->ask('SELECT on_hand FROM stock WHERE id = 1')), 'UPDATE 1', 'and sells');
        return $answer;
    },
    refused => qr/^held$/;

my $report = q{
    CREATE TABLE lock (key text PRIMARY KEY, until timestamptz);
    CREATE TABLE report (day int PRIMARY KEY, body text);
    INSERT INTO report VALUES (1, '');
};

# A lock with a time to live runs out while its holder still works: a slow request, a pause.
anomaly 'A lock that expires under its holder', loses => 'every level',
    tables  => $report,
    lost    => q{SELECT body = 'old, by A' FROM report},
    without => sub {
        my ($key, $ann, $ben) = @_;
        $ann->ask("INSERT INTO lock VALUES ('report', clock_timestamp())");
        is($ben->ask(q{UPDATE lock SET until = now() + '1 h' WHERE key = 'report' AND until <= clock_timestamp()}), 'UPDATE 1', 'B takes it over');
        $ben->ask(q{UPDATE report SET body = 'new, by B'});
        $ann->ask(q{UPDATE report SET body = 'old, by A'});
    },
    with => sub {
        my ($key, $ann, $ben) = @_;
        my $token = $ann->ask("SELECT token FROM interlock.acquire_lease('$key', '10 ms')");
        is($ben->ask("SELECT outcome FROM interlock.acquire_lease('$key', '1 h', wait => '10 min')"), 'acquired', 'B gets it when it has expired');
        $ben->ask(q{UPDATE report SET body = 'new, by B'});
        $ann->ask('BEGIN');
        my $answer = $ann->ask("SELECT interlock.assert_lease('$key', $token)");
        $ann->ask($_) for q{UPDATE report SET body = 'old, by A'}, 'COMMIT';
        return $answer;
    },
    refused => qr/^IL006$/;

# The holder of an expired lock deletes the lock of its successor, and a third one gets in.
anomaly q(A release of another holder's lock), loses => 'every level',
    tables  => $report . 'CREATE TABLE at_work (who text)',
    lost    => 'SELECT count(*) > 1 FROM at_work',
    without => sub {
        my ($key, $ann, $ben, $cid) = @_;
        my $take = q{INSERT INTO lock VALUES ('report', now() + '%s') ON CONFLICT (key) DO UPDATE SET until = excluded.until WHERE lock.until <= clock_timestamp()};
        $ann->ask(sprintf $take, '0 s');
        is($ben->ask(sprintf $take, '1 h'), 'INSERT 0 1', 'B takes it over');
        $ben->ask(q{INSERT INTO at_work VALUES ('B')});
        is($ann->ask(q{DELETE FROM lock WHERE key = 'report'}), 'DELETE 1', 'A releases it');
        is($cid->ask(sprintf $take, '1 h'), 'INSERT 0 1', 'C takes it');
        $cid->ask(q{INSERT INTO at_work VALUES ('C')});
    },
    with => sub {
        my ($key, $ann, $ben, $cid) = @_;
        my $take = "SELECT %s FROM interlock.acquire_lease('$key', '%s', wait => '%s')";
        my $token = $ann->ask(sprintf $take, 'token', '10 ms', '0');
        is($ben->ask(sprintf $take, 'outcome', '1 h', '10 min'), 'acquired', 'B takes it over');
        $ben->ask(q{INSERT INTO at_work VALUES ('B')});
        is($ann->ask("SELECT interlock.release_lease('$key', $token)"), 'f', 'A has none to release');
        return $cid->ask(sprintf $take, 'outcome', '1 h', '0');
    },
    refused => qr/^held$/;

# The lock is given back in the code that takes it, and the transaction around that commits later.
anomaly 'A lock released before the commit', loses => 'READ COMMITTED',
    tables  => $stock,
    lost    => $oversold,
    without => sub {
        my ($key, $ann, $ben) = @_;
        $_->ask('BEGIN') for $ann, $ben;
        $ann->ask('SELECT pg_advisory_lock(1)');
        sells($ann, 'A', $ann->ask('SELECT on_hand FROM stock WHERE id = 1'));
        is($ann->ask('SELECT pg_advisory_unlock(1)'), 't', 'A is done');
        is($ben->ask('SELECT pg_advisory_lock(1)'), '', 'B has the lock');
        my $read = $ben->ask('SELECT on_hand FROM stock WHERE id = 1');
        $ann->ask('COMMIT');
        sells($ben, 'B', $read);
        $ben->ask($_) for 'SELECT pg_advisory_unlock(1)', 'COMMIT';
    },
    with => sub {
        my ($key, $ann, $ben) = @_;
        $_->ask('BEGIN') for $ann, $ben;
        $ann->ask("SELECT interlock.lock_key('$key')");
        sells($ann, 'A', $ann->ask('SELECT on_hand FROM stock WHERE id = 1'));
        is($ann->ask("SELECT interlock.unlock_key('$key')"), 'f', 'there is nothing to give back before the commit');
        $ben->begins_to_wait("SELECT interlock.lock_key('$key')");
        $ann->ask('COMMIT');
        $ben->answer;
        my $answer = sells($ben, 'B', $ben->ask('SELECT on_hand FROM stock WHERE id = 1'));
        $ben->ask('COMMIT');
        return $answer;
    },
    refused => qr/^(sold out|40001)$/;

# --- Checks ------------------------------------------------------------------

# The version is compared by one statement, and the row written by another.
anomaly 'A check and a write that are two steps', loses => 'every level',
    tables => q{
        CREATE TABLE post (id int PRIMARY KEY, body text, edited int NOT NULL DEFAULT 1);
        INSERT INTO post VALUES (1, 'as written');
    },
    guard   => q{SELECT interlock.enable_versioning('post', 'edited', blind_updates => 'reject')},
    lost    => q{SELECT body = 'by B' FROM post},
    without => sub {
        my ($key, $ann, $ben) = @_;
        is($_->ask('SELECT edited = 1 FROM post WHERE id = 1'), 't', 'it is as it was read') for $ann, $ben;
        $ann->ask(q{UPDATE post SET body = 'by A', edited = 2 WHERE id = 1});
        $ben->ask(q{UPDATE post SET body = 'by B', edited = 2 WHERE id = 1});
    },
    with => sub {
        my ($key, $ann, $ben) = @_;
        is($ann->ask(q{UPDATE post SET body = 'by A', edited = 2 WHERE id = 1}), 'IL011', 'the statement of before is refused');
        is($ann->ask(q{SELECT interlock.versioned_update('post', 1, 1, '{"body": "by A"}')}), 2, 'A saves');
        return $ben->ask(q{SELECT interlock.versioned_update('post', 1, 1, '{"body": "by B"}')});
    },
    refused => qr/^IL001$/;

# The lock is right. What is written was read before it.
anomaly 'A read before the lock', loses => 'every level',
    tables  => $stock,
    guard   => $versioned,
    lost    => $oversold,
    without => sub {
        my ($key, $ann, $ben) = @_;
        my @read = map { $_->ask('SELECT on_hand FROM stock WHERE id = 1') } $ann, $ben;
        for my $session ($ann, $ben)
        {
            $session->ask($_) for 'BEGIN', 'SELECT id FROM stock WHERE id = 1 FOR UPDATE';
            sells($session, 'a buyer', shift @read);
            $session->ask('COMMIT');
        }
    },
    with => sub {
        my ($key, $ann, $ben) = @_;
        my @read = map { [ split /\|/, $_->ask('SELECT on_hand, version FROM stock WHERE id = 1') ] } $ann, $ben;
        my $answer;
        for my $session ($ann, $ben)
        {
            my ($on_hand, $version) = @{ shift @read };
            $session->ask('BEGIN');
            $answer = $session->ask("SELECT interlock.assert_version('stock', 1, $version)");
            sells($session, 'a buyer', $on_hand) if $answer eq '';
            $session->ask('COMMIT');
        }
        return $answer;
    },
    refused => qr/^IL001$/;

# One of the paths that write the row was forgotten when the others got a lock.
anomaly 'A writer that does not take the lock', loses => 'every level',
    tables => q{
        CREATE TABLE cart (id int PRIMARY KEY, items int NOT NULL, price int NOT NULL, paid int);
        INSERT INTO cart VALUES (1, 3, 10);
    },
    guard   => q{SELECT interlock.enable_marker('cart')},
    lost    => 'SELECT paid <> items * price FROM cart',
    without => sub {
        my ($key, $ann, $ben) = @_;
        $ann->ask('SELECT pg_advisory_lock(1)');
        my $due = $ann->ask('SELECT items * price FROM cart WHERE id = 1');
        is($ben->ask('UPDATE cart SET items = 1 WHERE id = 1'), 'UPDATE 1', 'B removes two');
        $ann->ask("UPDATE cart SET paid = $due WHERE id = 1");
    },
    with => sub {
        my ($key, $ann, $ben) = @_;
        is($ann->ask(q{SELECT locked FROM interlock.lock_row('cart', 1, 'checkout')}), 't', 'A holds the cart');
        my $due = $ann->ask('SELECT items * price FROM cart WHERE id = 1');
        my $answer = $ben->ask('UPDATE cart SET items = 1 WHERE id = 1');
        $ann->ask(qq{SELECT interlock.save_row('cart', 1, 'checkout', '{"paid": $due}')});
        return $answer;
    },
    refused => qr/^IL004$/;

# There is no row to lock before the first cart of a customer.
anomaly 'A lock on a row that is not there yet', loses => 'READ COMMITTED, REPEATABLE READ',
    tables => q{
        CREATE TABLE customer (id int PRIMARY KEY);
        CREATE TABLE cart (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, customer int NOT NULL);
        INSERT INTO customer VALUES (1);
    },
    guard   => q{SELECT interlock.enable_versioning('customer')},
    lost    => 'SELECT count(*) > 1 FROM cart',
    without => sub {
        my ($key, $ann, $ben) = @_;
        $_->ask('BEGIN') for $ann, $ben;
        is($_->ask('SELECT id FROM cart WHERE customer = 1 FOR UPDATE'), 'SELECT 0', 'has no cart') for $ann, $ben;
        $_->ask('INSERT INTO cart (customer) VALUES (1)') for $ann, $ben;
        $_->ask('COMMIT') for $ann, $ben;
    },
    with => sub {
        my ($key, $ann, $ben) = @_;
        my $move = q{SELECT interlock.versioned_update('customer', 1, 1, '{}')};
        $_->ask('BEGIN') for $ann, $ben;
        is($_->ask('SELECT id FROM cart WHERE customer = 1'), 'SELECT 0', 'has no cart') for $ann, $ben;
        is($ann->ask($move), 2, 'A is the first');
        $ben->begins_to_wait($move);
        $ann->ask($_) for 'INSERT INTO cart (customer) VALUES (1)', 'COMMIT';
        my $answer = $ben->answer;
        $ben->ask($_) for 'INSERT INTO cart (customer) VALUES (1)', 'COMMIT';
        return $answer;
    },
    refused => qr/^(IL001|40001)$/;

# --- Failures ----------------------------------------------------------------

# The client of a request that has died sees its traces, and takes them for its result.
anomaly 'A crash between two steps', loses => 'every level',
    tables => q{
        CREATE TABLE payment (id int PRIMARY KEY, state text NOT NULL);
        CREATE TABLE credit (id int PRIMARY KEY, amount int NOT NULL);
        CREATE TABLE purchase (id int PRIMARY KEY, state text NOT NULL);
        INSERT INTO payment VALUES (1, 'new');
        INSERT INTO credit VALUES (1, 100);
        INSERT INTO purchase VALUES (1, 'open');
    },
    guard   => q{SELECT interlock.define_idempotency_scope('pay', stale_after => '10 ms')},
    lost    => q{SELECT credit.amount = 100 AND purchase.state = 'paid' FROM credit, purchase},
    without => sub {
        my ($key, $ann, $ben) = @_;
        my $begin = q{UPDATE payment SET state = 'processing' WHERE id = 1 AND state = 'new'};
        is($ann->ask($begin), 'UPDATE 1', 'A begins');
        dies($ann);
        is($ben->ask($begin), 'UPDATE 0', 'B finds no payment that is to be processed');
        $ben->ask(q{UPDATE purchase SET state = 'paid' WHERE id = 1});
    },
    with => sub {
        my ($key, $ann, $ben, $cid) = @_;
        my $claim = "SELECT outcome, attempt, token FROM interlock.idempotency_claim('pay', '$key')";
        my (undef, undef, $dead) = split /\|/, $ann->ask($claim);
        is($ann->ask(q{UPDATE payment SET state = 'processing' WHERE id = 1 AND state = 'new'}), 'UPDATE 1', 'A begins');
        dies($ann);
        my (undef, $attempt, $token) = split /\|/, $ben->asks_until($claim, qr/^acquired/);
        is($attempt, 2, 'B takes over what A has left');
        is($ben->ask(qq{
            BEGIN;
            UPDATE credit SET amount = amount - 30 WHERE id = 1;
            UPDATE payment SET state = 'done' WHERE id = 1;
            UPDATE purchase SET state = 'paid' WHERE id = 1;
            SELECT interlock.idempotency_complete('pay', '$key', $token);
            COMMIT}), 'COMMIT', 'and does all of it');
        return $cid->ask("SELECT interlock.idempotency_complete('pay', '$key', $dead)");
    },
    refused => qr/^IL008$/;

# The lock is a column or a row, and stays when the process that took it has died.
anomaly 'A lock that a dead process leaves', loses => 'every level',
    tables => q{
        CREATE TABLE job (id int PRIMARY KEY, locked_by text, done boolean NOT NULL DEFAULT false);
        INSERT INTO job VALUES (1);
    },
    guard   => q{SELECT interlock.enable_marker('job', '10 ms', holder_column => 'locked_by')},
    lost    => 'SELECT NOT done FROM job',
    without => sub {
        my ($key, $ann, $ben) = @_;
        my $take = q{UPDATE job SET locked_by = '%s' WHERE id = 1 AND locked_by IS NULL};
        is($ann->ask(sprintf $take, 'A'), 'UPDATE 1', 'A takes it');
        dies($ann);
        my $answer = $ben->ask(sprintf $take, 'B');
        $ben->ask('UPDATE job SET done = true WHERE id = 1') if $answer eq 'UPDATE 1';
    },
    with => sub {
        my ($key, $ann, $ben) = @_;
        is($ann->ask(q{SELECT key FROM interlock.claim_rows('job', 'A', match => '{"done": false}')}), '{"id": 1}', 'A takes it');
        dies($ann);
        $ben->asks_until(q{SELECT key FROM interlock.claim_rows('job', 'B', match => '{"done": false}', ttl => '1 h')}, qr/^{"id": 1}$/);
        $ben->ask(q{SELECT interlock.save_row('job', 1, 'B', '{"done": true}')});
        return $ben->ask(q{SELECT interlock.save_row('job', 1, 'A', '{"done": true}')});
    },
    refused => qr/^IL005$/;

# What failed is undone by writing the values that were read before it.
anomaly 'An undo that writes old values', loses => 'every level',
    tables => q{
        CREATE TABLE stock (id int PRIMARY KEY, on_hand int NOT NULL);
        INSERT INTO stock VALUES (1, 5);
    },
    guard   => q{SELECT interlock.enable_versioning('stock')},
    lost    => 'SELECT on_hand = 5 FROM stock',
    without => sub {
        my ($key, $ann, $ben) = @_;
        my $read = $ann->ask('SELECT on_hand FROM stock WHERE id = 1');
        $_->ask('UPDATE stock SET on_hand = on_hand - 1 WHERE id = 1') for $ann, $ben;
        $ann->ask("UPDATE stock SET on_hand = $read WHERE id = 1");
    },
    with => sub {
        my ($key, $ann, $ben) = @_;
        my $version = $ann->ask('UPDATE stock SET on_hand = on_hand - 1 WHERE id = 1 RETURNING version');
        $ben->ask('UPDATE stock SET on_hand = on_hand - 1 WHERE id = 1');
        return $ann->ask(qq{SELECT interlock.versioned_update('stock', 1, $version, '{"on_hand": 5}')});
    },
    refused => qr/^IL001$/;

# The session ends in the middle of its work.
sub dies { my ($session) = @_; return given("SELECT pg_terminate_backend($session->{pid}, 600000)"); }

heading_is_tested('Ad hoc transactions');

1;
