# Article 000: an administration program with EF Core. Configuration, orders, coupons, refunds and work orders.

use strict;
use warnings;
use Story;
use Test::More;

my $config = q{
    CREATE TABLE sys_config (id int PRIMARY KEY, config_key text NOT NULL UNIQUE, config_value text, updated_time timestamptz);
    INSERT INTO sys_config VALUES (1, 'site', 'old', '2026-01-01 12:00+00'), (2, 'mail', 'old', NULL);
    SELECT interlock.enable_versioning('sys_config', 'updated_time');
};
my $order = q{
    CREATE TABLE biz_order (id int PRIMARY KEY, status int NOT NULL DEFAULT 0, updated_time timestamptz DEFAULT now());
    INSERT INTO biz_order VALUES (1), (2), (3);
    SELECT interlock.define_transitions('biz_order', 'status', '{"0": [1, 4], "1": [2, 4], "2": [3]}', initial => '{0}');
};
my $work_order = q{
    CREATE TABLE work_order (id int PRIMARY KEY, status text NOT NULL DEFAULT 'open', agent text);
    INSERT INTO work_order VALUES (1);
    SELECT interlock.define_transitions('work_order', 'status', '{"open": ["claimed", "cancelled"], "claimed": ["closed", "cancelled"]}');
};
my $refund = q{
    CREATE TABLE refund (id int PRIMARY KEY, status text NOT NULL DEFAULT 'pending', approved_by text);
    INSERT INTO refund VALUES (1);
    SELECT interlock.define_transitions('refund', 'status', '{"pending": ["approved", "rejected"]}', on_repeat => 'reject');
};

# race(FIRST, SECOND): what the second of two answers that write one row at once, when the first has committed.
sub race
{
    my ($first, $second) = @_;
    my ($ann, $ben) = sessions(2);
    $ann->ask('BEGIN');
    is($ann->ask($first), 'UPDATE 1', 'the first succeeds');
    $ben->begins_to_wait($second);
    is($ann->ask('COMMIT'), 'COMMIT', 'and commits');
    return $ben->answer;
}

row '0.1', 'of two who save what they have both read the second is refused', sub {
    given($config);
    my $save = q{UPDATE sys_config SET config_value = '%s', updated_time = now() WHERE id = 1 AND updated_time = '2026-01-01 12:00+00'};
    is(race(sprintf($save, 'by A'), sprintf($save, 'by B')), 'UPDATE 0', 'the second finds no row');
    is(given('SELECT config_value FROM sys_config WHERE id = 1'), 'by A', 'nothing is lost');
};

row '0.2', 'the update time that is there is the token, and may be null', sub {
    given($config);
    is(given(q{SELECT count(*) FROM pg_attribute WHERE attrelid = 'sys_config'::regclass AND attnum > 0}), 4, 'no column was added');
    my $save = q{UPDATE sys_config SET config_value = '%s', updated_time = now() WHERE id = 2 AND updated_time IS NULL};
    is(race(sprintf($save, 'by A'), sprintf($save, 'by B')), 'UPDATE 0', 'the second finds no row');
    given('UPDATE sys_config SET updated_time = NULL; DELETE FROM sys_config; INSERT INTO sys_config VALUES (2, \'mail\')');
    my ($ann) = sessions(1);
    my $call = q{SELECT outcome FROM interlock.try_versioned_update('sys_config', 2, '-infinity'::timestamptz, '{"config_value": "by A"}')};
    is($ann->ask($call), 'updated', 'a function says -infinity');
    is($ann->ask($call), 'conflict', 'once');
};

row '0.3', 'whole seconds are precise enough', sub {
    given(q{
        CREATE TABLE sys_config (id int PRIMARY KEY, config_value text, updated_time timestamp(0) DEFAULT now());
        INSERT INTO sys_config VALUES (1, 'old');
        SELECT interlock.enable_versioning('sys_config', 'updated_time');
    });
    my ($ann, $ben) = sessions(2);
    my %answers;
    for (1 .. 20)
    {
        my $read = $ann->ask('SELECT updated_time FROM sys_config');
        my $save = qq{UPDATE sys_config SET config_value = 'new', updated_time = now() WHERE id = 1 AND updated_time = '$read'};
        $answers{ join ', ', $ann->ask($save), $ben->ask($save) }++;
    }
    is_deeply(\%answers, { 'UPDATE 1, UPDATE 0' => 20 }, '20 times within a second or two');
};

row '0.4', 'a statement that does not touch the update time is noticed', sub {
    given($config);
    my ($ann, $ben) = sessions(2);
    my $read = $ann->ask('SELECT updated_time FROM sys_config WHERE id = 1');
    is($ben->ask(q{UPDATE sys_config SET config_value = 'by a script' WHERE id = 1}), 'UPDATE 1', 'a script saves');
    is($ann->ask(qq{UPDATE sys_config SET config_value = 'by A', updated_time = now() WHERE id = 1 AND updated_time = '$read'}),
        'UPDATE 0', 'who has read before finds no row');
};

row '0.5', 'a client whose clock is late saves twice', sub {
    given($config);
    my ($ann, $ben) = sessions(2);
    my $read = '2026-01-01 12:00+00';
    my $save = q{UPDATE sys_config SET config_value = '%s', updated_time = '2025-12-31 12:00+00' WHERE id = 1 AND updated_time = '%s'};
    is($ann->ask(sprintf $save, 'first', $read), 'UPDATE 1', 'it saves');
    is($ben->ask(sprintf $save, 'stale', $read), 'UPDATE 0', 'who has read before finds no row');
    is($ben->ask(sprintf $save, 'stale', '2025-12-31 12:00+00'), 'UPDATE 0', 'the time of that clock is not stored');

    # ValueGeneratedOnAddOrUpdate: EF Core leaves the column out and reads what the server has made.
    my $mapped = q{UPDATE sys_config SET config_value = '%s' WHERE id = 1 AND updated_time = '%s' RETURNING updated_time};
    $read = $ann->ask('SELECT updated_time FROM sys_config WHERE id = 1');
    my $next = $ann->ask(sprintf $mapped, 'second', $read);
    like($next, qr/^20\d\d-/, 'the mapped column comes back with a save');
    like($ann->ask(sprintf $mapped, 'third', $next), qr/^20\d\d-/, 'so that the same entity is saved again');
    is($ben->ask(sprintf $mapped, 'stale', $next), 'UPDATE 0', 'and a stale one is not');
};

row '0.6', 'who lost can be told what happened', sub {
    given($config);
    my ($ann, $ben) = sessions(2);
    is($ann->ask(q{UPDATE sys_config SET config_value = 'by A' WHERE id = 1}), 'UPDATE 1', 'A saves');
    my $call = q{interlock.%s('sys_config', 1, '2026-01-01 12:00+00'::timestamptz, '{"config_value": "by B"}')};
    is($ben->ask('SELECT ' . sprintf $call, 'versioned_update'), 'IL001', 'a function raises an SQLSTATE of its own');
    like($ben->{detail}, qr/"expected": "2026-01-01.*"version": "/, 'with both versions');
    is($ben->ask(q{SELECT outcome, current->>'config_value' FROM } . sprintf $call, 'try_versioned_update'), 'conflict|by A', 'or answers with the row');
};

row '0.7', 'a configuration is named by its key', sub {
    given($config);
    my ($ann, $ben) = sessions(2);
    my $save = q{UPDATE sys_config SET config_value = '%s', updated_time = now() WHERE config_key = 'site' AND updated_time = '2026-01-01 12:00+00'};
    is($ann->ask(sprintf $save, 'by A'), 'UPDATE 1', 'A saves');
    is($ben->ask(sprintf $save, 'by B'), 'UPDATE 0', 'B does not');
    is($ben->ask(q{SELECT outcome, current->>'config_value' FROM
        interlock.try_versioned_update('sys_config', '{"config_key": "site"}', '2026-01-01 12:00+00', '{"config_value": "by B"}')}),
        'conflict|by A', 'nor by a function');
};

row '0.8', 'a role is saved with its menus: the second of two saves is refused', sub {
    given(q{
        CREATE TABLE sys_role (id int PRIMARY KEY, name text);
        CREATE TABLE sys_role_menu (role_id int REFERENCES sys_role, menu_id int, PRIMARY KEY (role_id, menu_id));
        INSERT INTO sys_role VALUES (1, 'editors');
        SELECT interlock.enable_versioning('sys_role');
    });
    my ($ann, $ben) = sessions(2);
    my $save = q{UPDATE sys_role SET name = 'editors' WHERE id = 1 AND version = 1};
    $ann->ask('BEGIN');
    is($ann->ask($save), 'UPDATE 1', 'the role, although only its menus change');
    is($ann->ask('INSERT INTO sys_role_menu VALUES (1, 10)'), 'INSERT 0 1', 'and its menus');
    $ben->ask('BEGIN');
    $ben->begins_to_wait($save);
    is($ann->ask('COMMIT'), 'COMMIT', 'A commits');
    is($ben->answer, 'UPDATE 0', 'B finds no row');
    $ben->ask('ROLLBACK; BEGIN');
    is($ben->ask(q{SELECT interlock.assert_version('sys_role', 1, 1)}), 'IL001', 'nor can B write menus under an assertion');
};

row '0.8', 'who writes the menus of a role alone moves it, too', sub {
    given(q{
        CREATE TABLE sys_role (id int PRIMARY KEY, name text);
        CREATE TABLE sys_role_menu (role_id int REFERENCES sys_role, menu_id int, PRIMARY KEY (role_id, menu_id));
        INSERT INTO sys_role VALUES (1, 'editors'), (2, 'authors');
        INSERT INTO sys_role_menu VALUES (1, 10), (1, 11), (2, 10);
        SELECT interlock.enable_versioning('sys_role');
    });
    my ($ann, $ben, $program) = sessions(3);
    my $read = q{SELECT version FROM sys_role WHERE id = 1};
    my $save = q{UPDATE sys_role SET name = 'editors of 10 and 11' WHERE id = 1 AND version = %d};
    is($ben->ask($read), '1', 'B opens the role, with two menus');
    is($ann->ask('DELETE FROM sys_role_menu WHERE role_id = 1 AND menu_id = 11'), 'DELETE 1', 'A takes one away');
    is($ben->ask(sprintf $save, 1), 'UPDATE 1', 'without the guard B saves what is no longer so');
    given(q{SELECT interlock.guard_children('sys_role_menu', 'sys_role')});
    is($ben->ask($read), '2', 'B opens the role again');
    $ann->ask('BEGIN');
    is($ann->ask('DELETE FROM sys_role_menu WHERE role_id = 1'), 'DELETE 1', 'A replaces its menus, as EF Core does');
    is($ann->ask('INSERT INTO sys_role_menu VALUES (1, 11), (1, 12), (1, 13)'), 'INSERT 0 3', 'by three');
    is($program->ask('INSERT INTO sys_role_menu VALUES (1, 20)'), 'INSERT 0 1', 'a program that adds one does not wait for A');
    is($ann->ask('COMMIT'), 'COMMIT', 'A commits');
    is($ben->ask(sprintf $save, 2), 'UPDATE 0', 'B finds no row');
    is($ben->ask($read), '4', 'each transaction has moved the role once');
    is($ben->ask(q{SELECT version FROM sys_role WHERE id = 2}), '1', 'and no other role');
};

row '0.9', 'a status of numbers changes along declared transitions', sub {
    given($order);
    my ($ann) = sessions(1);
    is($ann->ask('UPDATE biz_order SET status = 1 WHERE id = 1'), 'UPDATE 1', '0 to 1');
    is($ann->ask('UPDATE biz_order SET status = 0 WHERE id = 1'), 'IL002', 'not back');
    is($ann->ask('UPDATE biz_order SET status = 2 WHERE id = 2'), 'IL002', 'no step is left out');
    is($ann->ask('INSERT INTO biz_order VALUES (9, 3)'), 'IL002', 'a new order begins at the start');
};

row '0.10', 'PayOrder from 0 to 1, with the numbers of the program', sub {
    given($order);
    my ($ann, $ben) = sessions(2);
    is($ann->ask(q{SELECT outcome, state FROM interlock.try_transition('biz_order', 1, 0, 1)}), 'transitioned|1', 'once');
    is($ben->ask(q{SELECT outcome, state FROM interlock.try_transition('biz_order', 1, 0, 1)}), 'state_changed|1', 'not twice');
};

row '0.11', 'of eight who pay and cancel at once one succeeds', sub {
    given($order);
    my @by_hand = together(8, sub { sprintf 'UPDATE biz_order SET status = %d WHERE id = 1 AND status = 0', $_[0] % 2 ? 1 : 4 });
    is_deeply([ sort @by_hand ], [ ('UPDATE 0') x 7, 'UPDATE 1' ], 'by plain SQL');
    my @by_function = together(8, sub { sprintf q{SELECT outcome FROM interlock.try_transition('biz_order', 2, 0, %d)}, $_[0] % 2 ? 1 : 4 });
    is_deeply([ sort @by_function ], [ ('state_changed') x 7, 'transitioned' ], 'by the function');
};

row '0.12', 'the statement of EF Core succeeds once', sub {
    given($order);
    my $pay = 'UPDATE biz_order SET status = 1 WHERE id = 1 AND status = 0';
    is(race($pay, $pay), 'UPDATE 0', 'the second finds no row');
};

row '0.13', 'a coupon is redeemed once by plain SQL', sub {
    given(q{
        CREATE TABLE coupon (code text PRIMARY KEY, status text NOT NULL DEFAULT 'Unused', used_by int);
        INSERT INTO coupon VALUES ('SPRING');
        SELECT interlock.define_transitions('coupon', 'status', '{"Unused": ["Used"]}', on_repeat => 'reject');
    });
    my $redeem = q{UPDATE coupon SET status = 'Used', used_by = %d WHERE code = 'SPRING'};
    is(race(sprintf($redeem, 1), sprintf($redeem, 2)), 'IL002', 'the second is refused, although it does not look at the status');
    is(given('SELECT used_by FROM coupon'), 1, 'the first has it');

    my @answers = together(8, sub { sprintf $redeem, $_[0] });
    is_deeply([ sort @answers ], [ ('IL002') x 8 ], 'and keeps it');
};

row '0.14', 'status and update time are written together', sub {
    given($order . q{; SELECT interlock.enable_versioning('biz_order', 'updated_time')});
    my $read = given('SELECT updated_time FROM biz_order WHERE id = 1');
    my $pay = qq{UPDATE biz_order SET status = 1, updated_time = now() WHERE id = 1 AND status = 0 AND updated_time = '$read'};
    is(race($pay, $pay), 'UPDATE 0', 'the second finds no row');
    is(given(qq{SELECT status, updated_time > '$read' FROM biz_order WHERE id = 1}), '1|t', 'both were written');
    my ($ann) = sessions(1);
    is($ann->ask(q{SELECT outcome FROM interlock.try_transition('biz_order', 1, 1, 2)}), 'transitioned', 'by the function');
    is(given(qq{SELECT status, updated_time > '$read' FROM biz_order WHERE id = 1}), '2|t', 'the time moves by itself');
};

row '0.15', 'of approve and reject at once one succeeds, and the other learns who did it', sub {
    given($refund);
    my $decide = q{UPDATE refund SET status = '%s', approved_by = '%s' WHERE id = 1 AND status = 'pending'};
    is(race(sprintf($decide, 'approved', 'A'), sprintf($decide, 'rejected', 'B')), 'UPDATE 0', 'by plain SQL');
    my ($ben) = sessions(1);
    is($ben->ask(q{SELECT outcome, state, current->>'approved_by'
        FROM interlock.try_transition('refund', 1, 'pending', 'rejected', '{"approved_by": "B"}')}), 'state_changed|approved|A', 'by the function');
};

row '0.16', 'a work order is claimed by one agent', sub {
    given($work_order);
    my @answers = together(8, sub { sprintf q{UPDATE work_order SET status = 'claimed', agent = 'agent %d' WHERE id = 1 AND status = 'open'}, $_[0] });
    is_deeply([ sort @answers ], [ ('UPDATE 0') x 7, 'UPDATE 1' ], 'of eight');
};

row '0.17', 'a work order is closed by the agent who has claimed it', sub {
    given($work_order . q{
        CREATE FUNCTION whose(old work_order, new work_order) RETURNS text LANGUAGE sql AS $$
            SELECT CASE WHEN old.agent IS DISTINCT FROM current_setting('app.agent', true) THEN 'it is the order of ' || old.agent END $$;
        SELECT interlock.define_transitions('work_order', 'status', '{"open": ["claimed", "cancelled"], "claimed": ["closed", "cancelled"]}',
            guards => '{"claimed": {"closed": "whose(work_order, work_order)"}}');
    });
    my ($ann, $ben) = sessions(2);
    $_->[0]->ask("SET app.agent = '$_->[1]'") for [ $ann, 'ann' ], [ $ben, 'ben' ];
    is($ann->ask(q{UPDATE work_order SET status = 'claimed', agent = 'ann' WHERE id = 1 AND status = 'open'}), 'UPDATE 1', 'Ann claims it');
    is($ben->ask(q{UPDATE work_order SET status = 'closed' WHERE id = 1 AND status = 'claimed' AND agent = 'ben'}), 'UPDATE 0', 'not by Ben, who asks');
    is($ben->ask(q{SELECT outcome, current->>'agent' FROM interlock.try_transition('work_order', 1, 'claimed', 'closed', match => '{"agent": "ben"}')}),
        'no_match|ann', 'also by the function');
    is($ben->ask(q{UPDATE work_order SET status = 'closed' WHERE id = 1}), 'IL002', 'nor when he does not ask');
    like($ben->{message}, qr/: it is the order of ann$/, 'which is said');
    is($ann->ask(q{UPDATE work_order SET status = 'closed' WHERE id = 1}), 'UPDATE 1', 'Ann closes it');
};

row '0.18', 'a work order is cancelled from several states', sub {
    given($work_order);
    my $cancel = q{UPDATE work_order SET status = 'cancelled' WHERE id = 1 AND status IN ('open', 'claimed')};
    is(race(q{UPDATE work_order SET status = 'claimed', agent = 'ann' WHERE id = 1 AND status = 'open'}, $cancel), 'UPDATE 1', 'just claimed, by plain SQL');
    given(q{INSERT INTO work_order VALUES (2, 'claimed', 'ann'), (3, 'closed', 'ann')});
    my ($ben) = sessions(1);
    my $call = q{SELECT outcome FROM interlock.try_transition('work_order', %d, ARRAY['open', 'claimed'], 'cancelled')};
    is($ben->ask(sprintf $call, 2), 'transitioned', 'by the function');
    is($ben->ask(sprintf $call, 3), 'state_changed', 'not from another one');
    is($ben->ask(q{UPDATE work_order SET status = 'cancelled' WHERE id = 3}), 'IL002', 'nor by plain SQL');
};

row '0.19', 'a coupon is redeemed once, and not when it has expired', sub {
    given(q{
        CREATE TABLE coupon (code text PRIMARY KEY, status text NOT NULL DEFAULT 'Unused', expires_at timestamptz, used_by int, used_at timestamptz);
        INSERT INTO coupon VALUES ('SPRING', 'Unused', 'infinity'), ('WINTER', 'Unused', '2020-03-01');
        CREATE FUNCTION may_redeem(old coupon, new coupon) RETURNS boolean LANGUAGE sql AS $$ SELECT old.expires_at > clock_timestamp() $$;
        SELECT interlock.define_transitions('coupon', 'status', '{"Unused": ["Used"]}', on_repeat => 'reject',
            guards => '{"Unused": {"Used": "may_redeem(coupon, coupon)"}}');
    });
    my $redeem = q{UPDATE coupon SET status = 'Used', used_by = %d, used_at = now() WHERE code = '%s'};
    is(race(sprintf($redeem, 1, 'SPRING'), sprintf($redeem, 2, 'SPRING')), 'IL002', 'the second is refused');
    is(given(q{SELECT used_by FROM coupon WHERE code = 'SPRING'}), 1, 'the first has it');
    my ($ben) = sessions(1);
    is($ben->ask(sprintf $redeem, 2, 'WINTER'), 'IL002', 'an old one is refused');
    is($ben->ask(q{SELECT outcome FROM interlock.try_transition('coupon', 'WINTER', 'Unused', 'Used')}), 'not_allowed', 'by the function as well');
    is(given(q{SELECT status, used_by FROM coupon WHERE code = 'WINTER'}), 'Unused|', 'and is as it was');
};

row '0.20', 'a refund is approved once, also by a statement that does not look', sub {
    given($refund);
    my $approve = q{UPDATE refund SET status = 'approved', approved_by = '%s' WHERE id = 1};
    is(race(sprintf($approve, 'A'), sprintf($approve, 'B')), 'IL002', 'the second is refused');
    is(given('SELECT approved_by FROM refund'), 'A', 'the first has approved it');
};

row '0.21', '"the status does not allow it" and "somebody was faster" are two answers', sub {
    given($order . q{; UPDATE biz_order SET status = 4 WHERE id = 2});
    my ($ann) = sessions(1);
    is($ann->ask('UPDATE biz_order SET status = 1 WHERE id = 2'), 'IL002', 'a cancelled order cannot be paid');
    like($ann->{message}, qr/cannot go from "4" to "1"/, 'which the message says');
    is($ann->ask('UPDATE biz_order SET status = 1 WHERE id = 2 AND status = 0'), 'UPDATE 0', 'it is no longer open');
    is($ann->ask(q{SELECT outcome FROM interlock.try_transition('biz_order', 2, 4, 1)}), 'not_allowed', 'by the function: never');
    is($ann->ask(q{SELECT outcome, state FROM interlock.try_transition('biz_order', 2, 0, 1)}), 'state_changed|4', 'not any more');
    is($ann->ask(q{SELECT interlock.transition('biz_order', 2, 4, 1)}), 'IL002', 'and as errors');
    is($ann->ask(q{SELECT interlock.transition('biz_order', 2, 0, 1)}), 'IL003', 'of their own');
};

row '0.22', 'a page draws the buttons that a status has', sub {
    given($order);
    my ($ann) = sessions(1);
    my $buttons = q{SELECT string_agg(t.to_state, ' ' ORDER BY t.to_state) FROM biz_order o
        JOIN interlock.transitions t ON t.rel = 'biz_order'::regclass AND t.from_state = o.status::text WHERE o.id = 1};
    is($ann->ask($buttons), '1 4', 'pay and cancel');
    $ann->ask('UPDATE biz_order SET status = 1 WHERE id = 1');
    is($ann->ask($buttons), '2 4', 'then others');
    $ann->ask('UPDATE biz_order SET status = 4 WHERE id = 1');
    is($ann->ask($buttons), '', 'and none at the end');
};

row '0.23', 'a lock around what belongs together, and the status below', sub {
    given($order);
    my ($ann, $ben) = sessions(2);
    my $pay = 'UPDATE biz_order SET status = 1 WHERE id = 3 AND status = 0';
    my $lock = q{BEGIN; SELECT interlock.lock_key('order:3', wait => '60 s')};
    $ann->ask($lock);
    $ben->begins_to_wait($lock);
    is($ann->ask($pay), 'UPDATE 1', 'A pays');
    is($ann->ask('COMMIT'), 'COMMIT', 'and commits');
    $ben->answer;
    is($ben->ask($pay), 'UPDATE 0', 'B had to wait, and finds it paid');
};

my $sale = q{
    CREATE TABLE product (id int PRIMARY KEY, stock int NOT NULL);
    CREATE TABLE sold (buyer int);
    INSERT INTO product VALUES (1, 10);
};

# What the service does: it reads the stock, looks at it, and writes what it has computed.
sub buys
{
    my ($lock, $buyer) = @_;
    return sprintf q{DO $$ DECLARE left_over int; BEGIN
        %s
        SELECT stock INTO left_over FROM product WHERE id = 1;
        IF left_over > 0 THEN
            UPDATE product SET stock = left_over - 1 WHERE id = 1;
            INSERT INTO sold VALUES (%d);
        END IF;
    END $$}, $lock, $buyer;
}

row '0.24', 'of thirty who buy the last ten pieces under a lock ten have one', sub {
    given($sale);
    my @answers = together(30, sub { buys(q{PERFORM interlock.lock_key('product:1', wait => '60 s');}, $_[0]) });
    is_deeply(\@answers, [ ('DO') x 30 ], 'all come to their turn');
    is(given('SELECT stock, (SELECT count(DISTINCT buyer) FROM sold) FROM product'), '0|10', 'none is sold twice');
    given('UPDATE product SET stock = 10');
    @answers = together(30, sub { 'UPDATE product SET stock = stock - 1 WHERE id = 1 AND stock > 0' });
    is_deeply([ sort @answers ], [ ('UPDATE 0') x 20, ('UPDATE 1') x 10 ], 'nor without a lock by the statement that looks');

    # What the lock is for.
    given('UPDATE product SET stock = 10; DELETE FROM sold');
    my ($ann, $ben) = sessions(2);
    $ann->ask('BEGIN; ' . buys('', 1));
    $ben->begins_to_wait(buys('', 2));
    $ann->ask('COMMIT');
    $ben->answer;
    is(given('SELECT stock, (SELECT count(*) FROM sold) FROM product'), '9|2', 'without it two are sold as one');
};

row '0.25', 'a client waits for a lock, or is refused at once', sub {
    my ($ann, $ben) = sessions(2);
    my $lock = q{SELECT interlock.lock_key('order:1', wait => '%s')};
    $ann->ask('BEGIN; ' . sprintf $lock, '0');
    is($ben->ask('BEGIN; ' . sprintf $lock, '0'), '55P03', 'at once, as an error');
    $ben->ask('ROLLBACK');
    is($ben->ask(q{SELECT interlock.try_lock_key('order:1')}), 'f', 'at once, as an answer');
    is($ben->ask('BEGIN; ' . sprintf $lock, '50 ms'), '55P03', 'after a time');
    $ben->ask('ROLLBACK; BEGIN');
    $ben->begins_to_wait(sprintf $lock, '60 s');
    $ann->ask('COMMIT');
    $ben->answer;
    is($ben->{error}, undef, 'or in its turn');
    $ann->ask(q{SELECT interlock.acquire_lease('order:2', '60 s')});
    is($ben->ask(q{SELECT outcome FROM interlock.acquire_lease('order:2', '60 s')}), 'held', 'the same of a lock that outlives the transaction');
};

my $requests = $sale . q{
    SELECT interlock.enable_versioning('product', blind_updates => 'reject');
    CREATE TABLE request (id int PRIMARY KEY, buyer int, status text NOT NULL DEFAULT 'new');
    INSERT INTO request SELECT i, i FROM generate_series(1, 60) i;
    SELECT interlock.define_transitions('request', 'status', '{"new": ["sold", "sold out"]}', on_repeat => 'reject');
};

row '0.26', 'a flash sale by a queue: consumers never take the same request', sub {
    given($requests);
    my @consumers = sessions(6);
    my $next = q{SELECT id FROM request WHERE status = 'new' ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED};
    is(join(' ', map { $_->ask("BEGIN; $next") } @consumers), '1 2 3 4 5 6', 'the statement of everybody, while a transaction is open');
    $_->ask('ROLLBACK') for @consumers;

    given(q{SELECT interlock.enable_marker('request', '5 min')});
    my @taken;
    for my $turn (1 .. 10)
    {
        Protocol::send_query($consumers[ $_ - 1 ], qq{SELECT key->'id' FROM interlock.claim_rows('request', 'consumer $_', 1, '{"status": "new"}', 'id')}) for 1 .. 6;
        push @taken, map { $_->answer } @consumers;
    }
    is_deeply([ sort { $a <=> $b } @taken ], [ 1 .. 60 ], 'claims outlive the transaction: each request is taken once');
    is($consumers[0]->ask(q{SELECT count(*) FROM interlock.claim_rows('request', 'consumer 1', 1, '{"status": "new"}', 'id')}), 0, 'none is left');
};

row '0.27', 'queue, lock and version together: sixty requests for ten pieces', sub {
    given($requests . q{SELECT interlock.enable_marker('request', '5 min')});
    my $consume = q{DO $$ DECLARE taken int; left_over int; read_version int; BEGIN
        SELECT (key->>'id')::int INTO taken FROM interlock.claim_rows('request', 'consumer %1$d', 1, '{"status": "new"}', 'id');
        PERFORM interlock.lock_key('product:1', wait => '60 s');
        SELECT stock, version INTO left_over, read_version FROM product WHERE id = 1;
        IF left_over > 0 THEN
            UPDATE product SET stock = left_over - 1 WHERE id = 1 AND version = read_version;
            IF NOT FOUND THEN RAISE 'the lock was for nothing'; END IF;
            INSERT INTO sold VALUES (taken);
        END IF;
        UPDATE request SET status = CASE WHEN left_over > 0 THEN 'sold' ELSE 'sold out' END, lock_status = 0
         WHERE id = taken AND status = 'new' AND lock_by = 'consumer %1$d';
    END $$};
    my @consumers = sessions(6);
    my %answers;
    for my $turn (1 .. 10)
    {
        Protocol::send_query($consumers[ $_ - 1 ], sprintf $consume, $_) for 1 .. 6;
        $answers{ $_->answer }++ for @consumers;
    }
    is_deeply(\%answers, { DO => 60 }, 'six consumers, without an error');
    is(given(q{SELECT stock, (SELECT count(DISTINCT buyer) FROM sold) FROM product}), '0|10', 'ten are sold');
    is(given(q{SELECT string_agg(status || ' ' || n, ', ' ORDER BY status) FROM (SELECT status, count(*) AS n FROM request GROUP BY 1) r}), 'sold 10, sold out 50', 'each request has its answer');
};

1;
