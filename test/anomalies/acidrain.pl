# What "ACIDRain" (SIGMOD 2017) got out of shops by requests sent at once. Its three rules, each broken in two ways: the statements
# are in no transaction (by scope), or in one whose level lets it happen (by level).

use strict;
use warnings;
use Anomaly;
use Story;
use Test::More;

# Sends one statement in all sessions, one after the other, and returns their answers.
sub each_asks { my ($sql, @sessions) = @_; return map { $_->ask($sql) } @sessions; }

# --- A voucher is used as often as it may ------------------------------------

my $voucher = q{
    CREATE TABLE voucher (code text PRIMARY KEY, state text NOT NULL);
    CREATE TABLE redemption (code text REFERENCES voucher, buyer text);
    INSERT INTO voucher VALUES ('X', 'free');
};
my $used = q{SELECT count(*) FROM redemption WHERE code = 'X'};

anomaly 'Voucher, by scope', loses => 'every level',
    tables  => $voucher,
    guard   => q{SELECT interlock.define_transitions('voucher', 'state', '{"free": ["used"]}')},
    lost    => 'SELECT count(*) > 1 FROM redemption',
    without => sub {
        my ($key, $ann, $ben) = @_;
        is_deeply([ each_asks($used, $ann, $ben) ], [ 0, 0 ], 'it is not used');
        each_asks(q{INSERT INTO redemption VALUES ('X', 'a buyer')}, $ann, $ben);
    },
    with => sub {
        my ($key, $ann, $ben) = @_;
        is_deeply([ each_asks($used, $ann, $ben) ], [ 0, 0 ], 'it is not used');
        my @answers;
        for my $session ($ann, $ben)
        {
            push @answers, $session->ask(q{SELECT outcome FROM interlock.try_transition('voucher', 'X', 'free', 'used')});
            $session->ask(q{INSERT INTO redemption VALUES ('X', 'a buyer')}) if $answers[-1] eq 'transitioned';
        }
        return $answers[1];
    },
    refused => qr/^state_changed$/;

anomaly 'Voucher, by level', loses => 'READ COMMITTED, REPEATABLE READ',
    tables => $voucher . q{
        CREATE FUNCTION redeem(request jsonb) RETURNS jsonb LANGUAGE sql AS
            $$ INSERT INTO redemption VALUES (request->>'code', request->>'buyer') RETURNING to_jsonb(redemption) $$;
    },
    lost    => 'SELECT count(*) > 1 FROM redemption',
    without => sub {
        my ($key, $ann, $ben) = @_;
        each_asks('BEGIN', $ann, $ben);
        is_deeply([ each_asks($used, $ann, $ben) ], [ 0, 0 ], 'it is not used');
        each_asks(q{INSERT INTO redemption VALUES ('X', 'a buyer')}, $ann, $ben);
        each_asks('COMMIT', $ann, $ben);
    },
    with => sub {
        my ($key, $ann, $ben) = @_;
        my $redeem = qq{SELECT outcome FROM interlock.run_once('voucher', '$key', 'redeem(jsonb)', '{"code": "X"}')};
        each_asks('BEGIN', $ann, $ben);
        is_deeply([ each_asks($used, $ann, $ben) ], [ 0, 0 ], 'it is not used');
        is($ann->ask($redeem), 'completed', 'A redeems it');
        my $answer = $ben->ask($redeem);
        each_asks('COMMIT', $ann, $ben);
        return $answer;
    },
    refused => qr/^in_progress$/;

# --- A balance is spent once -------------------------------------------------

my $card = q{
    CREATE TABLE card (id int PRIMARY KEY, balance int NOT NULL CHECK (balance >= 0));
    CREATE TABLE payment (card int REFERENCES card, amount int);
    INSERT INTO card VALUES (1, 100);
};
my $balance = 'SELECT balance FROM card WHERE id = 1';
my $overspent = 'SELECT sum(amount) > 100 FROM payment';

# Pays 80 from the balance that was read.
sub pays
{
    my ($session, $read, $condition) = @_;
    return 'not enough' unless $read =~ /^\d+$/ && $read >= 80;
    my $answer = $session->ask(sprintf 'UPDATE card SET balance = %d WHERE id = 1%s', $read - 80, $condition // '');
    $session->ask('INSERT INTO payment VALUES (1, 80)') if $answer eq 'UPDATE 1';
    return $answer;
}

anomaly 'Balance, by scope', loses => 'every level',
    tables  => $card,
    guard   => q{SELECT interlock.enable_versioning('card', blind_updates => 'reject')},
    lost    => $overspent,
    without => sub {
        my ($key, $ann, $ben) = @_;
        my @read = each_asks($balance, $ann, $ben);
        pays($_, shift @read) for $ann, $ben;
    },
    with => sub {
        my ($key, $ann, $ben) = @_;
        my @read = each_asks($balance, $ann, $ben);
        is(pays($ben, $read[1]), 'IL011', 'an update that does not compare the version is refused');
        is(pays($ann, $read[0], ' AND version = 1'), 'UPDATE 1', 'A pays');
        return pays($ben, $read[1], ' AND version = 1');
    },
    refused => qr/^UPDATE 0$/;

anomaly 'Balance, by level', loses => 'READ COMMITTED',
    tables  => $card,
    lost    => $overspent,
    without => sub {
        my ($key, $ann, $ben) = @_;
        each_asks('BEGIN', $ann, $ben);
        my @read = each_asks($balance, $ann, $ben);
        is($ann->ask('UPDATE card SET balance = 20 WHERE id = 1'), 'UPDATE 1', 'A pays');
        $ann->ask('INSERT INTO payment VALUES (1, 80)');
        $ben->begins_to_wait('UPDATE card SET balance = 20 WHERE id = 1');
        $ann->ask('COMMIT');
        $ben->ask('INSERT INTO payment VALUES (1, 80)') if $ben->answer eq 'UPDATE 1';
        $ben->ask('COMMIT');
    },
    with => sub {
        my ($key, $ann, $ben) = @_;
        my $lock = q{SELECT key FROM interlock.select_for_update('card', '{1}')};
        each_asks('BEGIN', $ann, $ben);
        is($ann->ask($lock), '{"id": 1}', 'A locks the card');
        $ben->begins_to_wait($lock);
        is(pays($ann, $ann->ask($balance)), 'UPDATE 1', 'A pays');
        $ann->ask('COMMIT');
        my $answer = $ben->answer;
        $answer = pays($ben, $ben->ask($balance)) if $answer eq '{"id": 1}';
        $ben->ask('COMMIT');
        return $answer;
    },
    refused => qr/^(not enough|40001)$/;

# --- No more is sold than there is -------------------------------------------

anomaly 'Inventory, by scope', loses => 'every level',
    tables => q{
        CREATE TABLE stock (id int PRIMARY KEY, on_hand int NOT NULL);
        INSERT INTO stock VALUES (1, 1);
    },
    guard   => q{SELECT interlock.enable_versioning('stock', blind_updates => 'reject')},
    lost    => 'SELECT on_hand < 0 FROM stock',
    without => sub {
        my ($key, $ann, $ben) = @_;
        is_deeply([ each_asks('SELECT on_hand FROM stock WHERE id = 1', $ann, $ben) ], [ 1, 1 ], 'there is one');
        each_asks('UPDATE stock SET on_hand = on_hand - 1 WHERE id = 1', $ann, $ben);
    },
    with => sub {
        my ($key, $ann, $ben) = @_;
        is($ann->ask('UPDATE stock SET on_hand = on_hand - 1 WHERE id = 1'), 'IL011', 'what does not compare anything is refused');
        my $sell = 'UPDATE stock SET on_hand = on_hand - 1 WHERE id = 1 AND on_hand >= 1 AND interlock.any_version(version)';
        return (each_asks($sell, $ann, $ben))[1];
    },
    refused => qr/^UPDATE 0$/;

my $allocations = q{
    CREATE TABLE stock (id int PRIMARY KEY, quantity int NOT NULL);
    CREATE TABLE allocation (stock int REFERENCES stock, quantity int NOT NULL);
    INSERT INTO stock VALUES (1, 10);
};

anomaly 'Inventory, by level', loses => 'READ COMMITTED, REPEATABLE READ',
    tables  => $allocations,
    guard   => q{SELECT interlock.enable_versioning('stock')},
    lost    => 'SELECT sum(quantity) > 10 FROM allocation',
    without => sub {
        my ($key, $ann, $ben) = @_;
        each_asks('BEGIN', $ann, $ben);
        is_deeply([ each_asks('SELECT coalesce(sum(quantity), 0) FROM allocation WHERE stock = 1', $ann, $ben) ], [ 0, 0 ], 'all is free');
        each_asks('INSERT INTO allocation VALUES (1, 6)', $ann, $ben);
        each_asks('COMMIT', $ann, $ben);
    },
    with => sub {
        my ($key, $ann, $ben) = @_;
        my $move = q{SELECT interlock.versioned_update('stock', 1, 1, '{}')};
        each_asks('BEGIN', $ann, $ben);
        is_deeply([ each_asks('SELECT version FROM stock WHERE id = 1', $ann, $ben) ], [ 1, 1 ], 'both read the version first');
        is_deeply([ each_asks('SELECT coalesce(sum(quantity), 0) FROM allocation WHERE stock = 1', $ann, $ben) ], [ 0, 0 ], 'all is free');
        is($ann->ask($move), 2, 'A moves the version');
        $ben->begins_to_wait($move);
        $ann->ask($_) for 'INSERT INTO allocation VALUES (1, 6)', 'COMMIT';
        my $answer = $ben->answer;
        $ben->ask($_) for 'INSERT INTO allocation VALUES (1, 6)', 'COMMIT';
        return $answer;
    },
    refused => qr/^(IL001|40001)$/;

# --- What is delivered is what was paid --------------------------------------

my $cart = q{
    CREATE TABLE cart (id int PRIMARY KEY, state text NOT NULL, paid int);
    CREATE TABLE cart_item (cart int REFERENCES cart, price int NOT NULL);
    INSERT INTO cart VALUES (1, 'open');
    INSERT INTO cart_item VALUES (1, 10);
};
my $sum = 'SELECT sum(price) FROM cart_item WHERE cart = 1';
my $unpaid = q{SELECT paid < (SELECT sum(price) FROM cart_item) FROM cart WHERE state = 'paid' UNION ALL SELECT false LIMIT 1};

anomaly 'Cart, by scope', loses => 'every level',
    tables  => $cart,
    guard   => q{SELECT interlock.enable_versioning('cart'); SELECT interlock.guard_children('cart_item', 'cart')},
    lost    => $unpaid,
    without => sub {
        my ($key, $ann, $ben) = @_;
        my $due = $ann->ask($sum);
        is($ben->ask(q{SELECT state FROM cart WHERE id = 1}), 'open', 'the cart is open');
        $ben->ask('INSERT INTO cart_item VALUES (1, 1000)');
        $ann->ask("UPDATE cart SET state = 'paid', paid = $due WHERE id = 1");
    },
    with => sub {
        my ($key, $ann, $ben) = @_;
        my $version = $ann->ask('SELECT version FROM cart WHERE id = 1');
        my $due = $ann->ask($sum);
        is($ben->ask('INSERT INTO cart_item VALUES (1, 1000)'), 'INSERT 0 1', 'an item moves the version of its cart');
        return $ann->ask(qq{SELECT interlock.versioned_update('cart', 1, $version, '{"state": "paid", "paid": $due}')});
    },
    refused => qr/^IL001$/;

anomaly 'Cart, by level', loses => 'READ COMMITTED, REPEATABLE READ',
    tables  => $cart,
    guard   => q{SELECT interlock.enable_versioning('cart')},
    lost    => $unpaid,
    without => sub {
        my ($key, $ann, $ben) = @_;
        each_asks('BEGIN', $ann, $ben);
        my $due = $ann->ask($sum);
        is($ben->ask(q{SELECT state FROM cart WHERE id = 1}), 'open', 'the cart is open');
        $ben->ask($_) for 'INSERT INTO cart_item VALUES (1, 1000)', 'COMMIT';
        $ann->ask($_) for "UPDATE cart SET state = 'paid', paid = $due WHERE id = 1", 'COMMIT';
    },
    with => sub {
        my ($key, $ann, $ben) = @_;
        each_asks('BEGIN', $ann, $ben);
        is($ben->ask('SELECT state, version FROM cart WHERE id = 1'), 'open|1', 'the cart is open');
        is($ann->ask(q{SELECT interlock.versioned_update('cart', 1, 1, '{"state": "paying"}')}), 2, 'the checkout moves the version first');
        $ann->ask(q{UPDATE cart SET state = 'paid', paid = } . $ann->ask($sum) . ' WHERE id = 1');
        $ben->begins_to_wait(q{SELECT interlock.assert_version('cart', 1, 1)});
        $ann->ask('COMMIT');
        my $answer = $ben->answer;
        $ben->ask($_) for 'INSERT INTO cart_item VALUES (1, 1000)', 'COMMIT';
        return $answer;
    },
    refused => qr/^(IL001|40001)$/;

heading_is_tested('Attacks on shops');

1;
