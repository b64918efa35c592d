# Article 001: distributed locks as with Redis: SET NX EX, compare and delete, a watchdog that renews, and what they are used for.

use strict;
use warnings;
use Story;
use Test::More;

# The lines of the article, with what they answer.
sub lock_it { my ($session, $key, $seconds) = @_; return split /\|/, $session->ask("SELECT outcome, token FROM interlock.acquire_lease('$key', $seconds)"), -1; }
sub unlock_it { my ($session, $key, $token) = @_; return $session->ask("SELECT interlock.release_lease('$key', $token)"); }
sub expires { my ($session, $key) = @_; 1 until $session->ask("SELECT count(*) FROM interlock.lease_of('$key')") eq '0'; return; }

row '1.1', 'LockAsync("order-88888944010", 30): one has it, the other does not', sub {
    my ($ann, $ben) = sessions(2);
    my ($outcome, $token) = lock_it($ann, 'order-88888944010', 30);
    is($outcome, 'acquired', 'the first');
    is((lock_it($ben, 'order-88888944010', 30))[0], 'held', 'the second');
    is(unlock_it($ann, 'order-88888944010', $token), 't', 'the first unlocks');
    is((lock_it($ben, 'order-88888944010', 30))[0], 'acquired', 'and the second has it');
};

row '1.2', 'the keys of the article', sub {
    my ($ann) = sessions(1);
    is((lock_it($ann, $_, 30))[0], 'acquired', $_) for 'MyApplication:locker:order:888', 'order:888:lock';
};

row '1.3', 'a value that the client has chosen: who asks again after a lost answer has the lock', sub {
    my ($ann, $ben) = sessions(2);
    my $set = q(SELECT outcome, token FROM interlock.acquire_lease('order:3', 30, holder => '%s', resume => true));
    my ($outcome, $token) = split /\|/, $ann->ask(sprintf $set, 'a0c1-guid');
    is($outcome, 'acquired', 'SET NX');
    is($ann->ask(sprintf $set, 'a0c1-guid'), "resumed|$token", 'once more, with the same value');
    is($ben->ask(sprintf $set, 'b7d2-guid'), 'held|', 'another value');
    is($ben->ask(q(SELECT holder FROM interlock.lease_of('order:3'))), 'a0c1-guid', 'GET');
};

row '1.4', 'UnLockAsync: compare and delete', sub {
    my ($ann, $ben) = sessions(2);
    my (undef, $token) = lock_it($ann, 'order:4', 30);
    is(unlock_it($ben, 'order:4', $token + 1), 'f', 'not with another value');
    is(unlock_it($ann, 'order:4', $token), 't', 'with its own');
    $ann->ask(q(SELECT interlock.acquire_lease('order:4', 30, holder => 'a0c1-guid')));
    is($ben->ask(q(SELECT interlock.release_lease('order:4', holder => 'b7d2-guid'))), 'f', 'not by the value of another');
    is($ann->ask(q(SELECT interlock.release_lease('order:4', holder => 'a0c1-guid'))), 't', 'by the value that the client has chosen');
};

row '1.5', 'a pause: A expires, B has it, A deletes', sub {
    my ($ann, $ben) = sessions(2);
    my (undef, $old) = lock_it($ann, 'order:5', 0.05);
    expires($ben, 'order:5');
    my ($outcome, $new) = lock_it($ben, 'order:5', 30);
    is($outcome, 'acquired', 'B has it');
    is(unlock_it($ann, 'order:5', $old), 'f', 'A deletes nothing');
    is($ann->ask("SELECT interlock.renew_lease('order:5', $old) IS NULL"), 't', 'and renews nothing');
    is($ben->ask("SELECT token FROM interlock.lease_of('order:5')"), $new, 'B keeps it');
};

row '1.6', 'and A writes', sub {
    given(q{CREATE TABLE report (id int PRIMARY KEY, body text); INSERT INTO report VALUES (1, '')});
    my ($ann, $ben) = sessions(2);
    my (undef, $old) = lock_it($ann, 'report:6', 0.05);
    expires($ben, 'report:6');
    my (undef, $new) = lock_it($ben, 'report:6', 30);
    $ben->ask("BEGIN; SELECT interlock.assert_lease('report:6', $new); UPDATE report SET body = 'of B'; COMMIT");
    is($ann->ask("BEGIN; SELECT interlock.assert_lease('report:6', $old); UPDATE report SET body = 'of A'"), 'IL006', 'A asserts before it writes');
    $ann->ask('ROLLBACK');
    is(given('SELECT body FROM report'), 'of B', 'what B wrote stays');
    is($ann->ask(q(UPDATE report SET body = 'of A')), 'UPDATE 1', 'who does not assert writes over it');
    given(q{SELECT interlock.require_lease('report', 'report:6')});
    is($ann->ask(q(UPDATE report SET body = 'of A again')), 'IL006', 'until the table demands the lease');
};

row '1.7', 'automatic renewal at half of the TTL', sub {
    my ($ann, $ben) = sessions(2);
    my (undef, $token) = lock_it($ann, 'order:7', 1);
    for my $beat (1 .. 3)
    {
        $ann->ask("SELECT pg_sleep(0.5); SELECT interlock.renew_lease('order:7', $token, 60)");
        is((lock_it($ben, 'order:7', 30))[0], 'held', "renewal $beat");
    }
    is($ann->ask(q(SELECT outcome, expires_at FROM interlock.acquire_lease('order:7 too', bind => 'session'))), 'acquired|infinity', 'or as long as the session');
};

row '1.8', 'the renewal stops when the lock is lost', sub {
    my ($ann) = sessions(1);
    my (undef, $token) = lock_it($ann, 'order:8', 30);
    given(q{SELECT interlock.break_lease('order:8', 'test')});
    is($ann->ask("SELECT interlock.renew_lease('order:8', $token) IS NULL"), 't', 'null');
};

row '1.9', 'a TTL of 150 ms', sub {
    my ($ann, $ben) = sessions(2);
    lock_it($ann, 'order:9', 0.15);
    is($ben->ask(q(SELECT outcome FROM interlock.acquire_lease('order:9', 30, 600))), 'acquired', 'who waits has it when it ends');
};

row '1.10', 'a flash sale: thirty buyers, ten pieces', sub {
    given(q{
        CREATE TABLE stock (id int PRIMARY KEY, pieces int); INSERT INTO stock VALUES (1, 10);
        CREATE FUNCTION buy(buyer int) RETURNS text LANGUAGE plpgsql AS $$
        DECLARE
            lease record;
            found_pieces int;
        BEGIN
            SELECT * INTO lease FROM interlock.acquire_lease('sale:1', 60, 600, holder => 'buyer ' || buyer);
            PERFORM interlock.assert_lease('sale:1', lease.token);       -- the lock lasts until the commit
            SELECT pieces INTO found_pieces FROM stock WHERE id = 1;
            IF found_pieces > 0 THEN
                UPDATE stock SET pieces = found_pieces - 1 WHERE id = 1;
            END IF;
            PERFORM interlock.release_lease('sale:1', lease.token);
            RETURN CASE WHEN found_pieces > 0 THEN 'sold' ELSE 'sold out' END;
        END $$});
    my @answers = together(30, sub { "SELECT buy($_[0])" });
    is(scalar(grep { $_ eq 'sold' } @answers), 10, 'ten are sold');
    is(given('SELECT pieces FROM stock'), 0, 'none is left');
};

row '1.11', 'transfers: one at a time for each account', sub {
    given(q{
        CREATE TABLE account (id int PRIMARY KEY, balance int); INSERT INTO account VALUES (1, 1000), (2, 1000);
        CREATE FUNCTION transfer(payer int, payee int) RETURNS text LANGUAGE plpgsql AS $$
        DECLARE
            lease record;
            amount int;
        BEGIN
            SELECT * INTO lease FROM interlock.acquire_leases(ARRAY['acc:' || payer, 'acc:' || payee], 60, 600);
            PERFORM interlock.assert_lease('acc:' || payer, lease.tokens[1]), interlock.assert_lease('acc:' || payee, lease.tokens[2]);
            SELECT balance INTO amount FROM account WHERE id = payer;
            UPDATE account SET balance = amount - 10 WHERE id = payer;
            UPDATE account SET balance = balance + 10 WHERE id = payee;
            PERFORM interlock.release_lease('acc:' || payer, lease.tokens[1]), interlock.release_lease('acc:' || payee, lease.tokens[2]);
            RETURN lease.outcome;
        END $$});
    my @answers = together(20, sub { $_[0] % 2 ? 'SELECT transfer(1, 2)' : 'SELECT transfer(2, 1)' });
    is(scalar(grep { $_ eq 'acquired' } @answers), 20, 'twenty, both ways, and none fails');
    is(given('SELECT string_agg(balance::text, $$ $$ ORDER BY id) FROM account'), '1000 1000', 'no money is lost');
};

row '1.12', 'the daily report on three nodes that tick one after the other is made once', sub {
    given('CREATE TABLE report (made_at timestamptz DEFAULT clock_timestamp(), node int)');
    my @nodes = sessions(3);
    my $tick = sub {
        my ($key, $arguments) = @_;
        for my $node (0 .. 2)
        {
            my ($outcome, $token) = split /\|/, $nodes[$node]->ask("SELECT outcome, token FROM interlock.acquire_lease('$key', 600$arguments)");
            next if $outcome ne 'acquired';
            $nodes[$node]->ask("INSERT INTO report (node) VALUES ($node)");
            $nodes[$node]->ask("SELECT interlock.release_lease('$key', $token)");
        }
        return given('WITH made AS (DELETE FROM report RETURNING node) SELECT count(*) FROM made');
    };
    is($tick->('report:daily', ''), 3, 'with a lease alone each of them makes it');
    is($tick->('report:daily 2', ', at_least => 300'), 1, 'with at_least one of them does');
    given(q{SELECT interlock.define_idempotency_scope('report', model => 'job', ttl => '2 days', stale_after => '10 min'), interlock.grant_idempotency_scope('report', current_user)});
    for my $node (0 .. 2)
    {
        my ($outcome, $token) = split /\|/, $nodes[$node]->ask(q(SELECT outcome, token FROM interlock.idempotency_claim('report', 'daily:2025-03-15')));
        next if $outcome ne 'acquired';
        $nodes[$node]->ask("INSERT INTO report (node) VALUES ($node)");
        $nodes[$node]->ask("SELECT interlock.idempotency_complete('report', 'daily:2025-03-15', $token)");
    }
    is(given('SELECT count(*) FROM report'), 1, 'and with an idempotency key that contains the day');
};

row '1.13', 'a form that is submitted eight times', sub {
    given(q{
        CREATE TABLE entry (id int GENERATED ALWAYS AS IDENTITY, body jsonb);
        CREATE FUNCTION submit(form jsonb) RETURNS jsonb LANGUAGE sql AS $$INSERT INTO entry (body) VALUES (form) RETURNING jsonb_build_object('id', id)$$;
        SELECT interlock.define_idempotency_scope('form'), interlock.grant_idempotency_scope('form', current_user)});
    my @answers = together(8, sub { q(SELECT response FROM interlock.run_once('form', 'user1:form5', 'submit(jsonb)', '{"text": "x"}', '10 min')) });
    is(given('SELECT count(*) FROM entry'), 1, 'one row');
    is(join(' ', sort { $a cmp $b } keys %{ { map { $_ => 1 } @answers } }), '{"id": 1}', 'and eight equal answers');
};

row '1.14', 'an ordinary role', sub {
    given(q{DROP ROLE IF EXISTS shop; CREATE ROLE shop});
    my ($ann) = sessions(1);
    $ann->ask('SET ROLE shop');
    is((lock_it($ann, 'order:14', 30))[0], 'acquired', 'needs no grant for a lease');
    is($ann->ask(q(SELECT outcome FROM interlock.idempotency_claim('shop orders', 'k'))), '42501', 'and one for a scope of idempotency keys');
    given(q{SELECT interlock.grant_idempotency_scope('shop orders', 'shop')});
    is($ann->ask(q(SELECT outcome FROM interlock.idempotency_claim('shop orders', 'k'))), 'acquired', 'which one statement gives');
};

1;
