# Article 002: a status with holder and time in the row as a business lock on documents.

use strict;
use warnings;
use Story;
use Test::More;

# The columns of the article, with a time to live of its five minutes.
my $table = q{
    CREATE TABLE orders (id int PRIMARY KEY, amount int, status int NOT NULL DEFAULT 0, lock_by text, lock_time timestamptz);
    INSERT INTO orders VALUES (123, 10), (124, 20), (125, 30);
};
my $orders = $table . q{SELECT interlock.enable_marker('orders', '5 min', status_column => 'status');};
my $expires = $table . q{SELECT interlock.enable_marker('orders', '%s', status_column => 'status');};

# The three statements of the article: to lock, to save and release, and that of the job which runs every few minutes.
sub locks { my ($who, $id) = @_; return sprintf q{UPDATE orders SET status = 1, lock_by = '%s', lock_time = now() WHERE id = %d AND status = 0}, $who, $id // 123; }
sub saves { my ($who, $amount) = @_; return sprintf q{UPDATE orders SET amount = %d, status = 0 WHERE id = 123 AND lock_by = '%s'}, $amount, $who; }
my $job = q{UPDATE orders SET status = 0, lock_by = NULL, lock_time = NULL WHERE status = 1 AND lock_time < now() - interval '5 minutes'};

# Until the query is true.
sub wait_until
{
    my ($query) = @_;
    for (1 .. 3600)
    {
        return 1 if given($query) eq 't';
        select(undef, undef, undef, 0.05);
    }
    return 0;
}

row '2.1', 'without the extension a forgotten lock stays, an import writes, a late save overwrites', sub {
    given($table);
    my ($ann, $ben) = sessions(2);
    is($ann->ask(locks('A')), 'UPDATE 1', 'A locks and goes to lunch');
    is($ben->ask('UPDATE orders SET amount = 99'), 'UPDATE 3', 'an import does not look');
    is($ben->ask(locks('B')), 'UPDATE 0', 'B waits for ever');
    $ben->ask(q{UPDATE orders SET status = 0, lock_by = NULL WHERE id = 123});
    is($ben->ask(locks('B')), 'UPDATE 1', 'until somebody releases it');
    is($ann->ask('UPDATE orders SET amount = 11, status = 0 WHERE id = 123'), 'UPDATE 1', 'A is back and saves over it');
};

row '2.2', 'the columns of the article are used as they are named', sub {
    given($table);
    my ($ann, $ben) = sessions(2);
    $ann->ask(q{UPDATE orders SET status = 1, lock_by = 'A', lock_time = now() WHERE id = 123});
    is($ben->ask(q{SELECT interlock.enable_marker('orders')}), '55000', 'nothing is guessed: a status beside the holder has to be named');
    $ben->ask(q{SELECT interlock.enable_marker('orders', status_column => 'status')});
    is($ben->{error}, undef, 'then it is used');
    is($ben->ask(locks('B')), 'UPDATE 0', 'A, who had it by hand, has it still');
    is($ben->ask(q{SELECT locked, holder FROM interlock.lock_row('orders', 123, 'B')}), 'f|A', 'which the function says, too');
};

row '2.3', 'a status with other states is not made a marker, and none comes in later', sub {
    given($table . q{UPDATE orders SET status = 2 WHERE id = 124});
    my ($ann) = sessions(1);
    is($ann->ask(q{SELECT interlock.enable_marker('orders', status_column => 'status')}), '55000', 'refused');
    is($ann->ask('SELECT status FROM orders WHERE id = 124'), 2, 'and the state is there');
    given(q{UPDATE orders SET status = 0; SELECT interlock.enable_marker('orders', status_column => 'status')});
    is($ann->ask('UPDATE orders SET status = 2 WHERE id = 124'), '23514', 'nor can it be set');
};

row '2.4', 'step 1: who locks by the article\'s statement has the row', sub {
    given($orders);
    my ($ann, $ben) = sessions(2);
    $ann->ask('BEGIN');
    is($ann->ask(locks('A')), 'UPDATE 1', 'A');
    $ben->begins_to_wait(locks('B'));
    $ann->ask('COMMIT');
    is($ben->answer, 'UPDATE 0', 'and not B');
    is(given(q{SELECT lock_by, lock_until >= lock_time + interval '5 minutes' FROM orders WHERE id = 123}), 'A|t', 'it has a deadline');
};

row '2.5', 'step 2: others see who edits it', sub {
    given($orders);
    my ($ann, $ben) = sessions(2);
    $ann->ask(locks('A'));
    is($ben->ask('SELECT status, lock_by, lock_time <= clock_timestamp() FROM orders WHERE id = 123'), '1|A|t', 'in the row');
    is($ben->ask(q{SELECT key, holder FROM interlock.row_locks WHERE rel = 'orders'::regclass}), '{"id": 123}|A', 'in the view of all');
    is($ben->ask(q{SELECT locked, holder FROM interlock.lock_row('orders', 123, 'B')}), 'f|A', 'and in the answer of the function');
};

row '2.6', 'step 3: the article\'s save writes and releases, by its holder alone', sub {
    given($orders);
    my ($ann, $ben) = sessions(2);
    $ann->ask(locks('A'));
    is($ben->ask(saves('B', 66)), 'UPDATE 0', 'not by another name');
    is($ben->ask('UPDATE orders SET amount = 66, status = 0 WHERE id = 123'), 'IL004', 'not without a name');
    is($ben->ask(q{UPDATE orders SET amount = 66, lock_by = 'A', status = 0 WHERE id = 123}), 'IL004', 'not by writing the name of the holder');
    is($ben->ask('UPDATE orders SET amount = 66'), 'IL004', 'nor by an import');
    is($ann->ask(saves('A', 11)), 'UPDATE 1', 'A saves');
    is(given('SELECT amount, status FROM orders WHERE id = 123'), '11|0', 'and has released it');

    $ann->ask(locks('A'));
    is($ann->ask(q{UPDATE orders SET amount = 12, status = 0, lock_by = NULL, lock_time = NULL WHERE id = 123 AND lock_by = 'A'}),
        'UPDATE 1', 'also with all columns cleared');
    is($ben->ask(locks('B')), 'UPDATE 1', 'the next one has it');
};

row '2.7', 'step 4: the message in the words of the user', sub {
    given($orders);
    my ($ann, $ben) = sessions(2);
    $ann->ask(q{UPDATE orders SET status = 1, lock_by = '张三', lock_time = now() WHERE id = 123 AND status = 0});
    my $said = $ben->ask(q{SELECT CASE WHEN NOT locked THEN format('单据已被%s占用', holder) END FROM interlock.lock_row('orders', 123, '李四')});
    is($said, '单据已被张三占用', 'names whoever edits the document');
};

row '2.8', 'a background job releases what is forgotten', sub {
    given(sprintf $expires, '300 ms');
    my ($ann) = sessions(1);
    $ann->ask(locks('A'));
    ok(wait_until('SELECT status = 0 AND lock_by IS NULL FROM orders WHERE id = 123'), 'without a job of one\'s own');
    is($ann->ask(locks('B')), 'UPDATE 1', 'the row is free for the article\'s statement');
};

row '2.9', 'the article\'s own job can stay: it takes no row that is held', sub {
    given($orders);
    my ($ann, $ben) = sessions(2);
    $ann->ask(locks('A'));
    is($ben->ask($job), 'UPDATE 0', 'A is at work');
    is($ben->ask($job =~ s/ AND lock_time.*//r), 'IL004', 'a job that takes all is refused');
    is($ann->ask(saves('A', 11)), 'UPDATE 1', 'A saves');

    given('DROP TABLE orders');
    given(sprintf $expires, '300 ms');
    $ann->ask(locks('A'));
    ok(wait_until('SELECT status = 0 OR lock_until < clock_timestamp() FROM orders WHERE id = 123'), 'when A has forgotten it');
    like($ben->ask($job =~ s/5 minutes/1 ms/r), qr/^UPDATE [01]$/, 'the job may release it, unless the sweeper was faster');
    is(given('SELECT status, lock_by FROM orders WHERE id = 123'), '0|', 'it is free');
};

row '2.10', 'a lock time that is set back makes the deadline no nearer', sub {
    given($orders);
    my ($ann) = sessions(1);
    is($ann->ask(q{UPDATE orders SET status = 1, lock_by = 'A', lock_time = now() - interval '1 day' WHERE id = 123 AND status = 0}), 'UPDATE 1', 'A locks');
    is($ann->ask('SELECT lock_until > now() - interval \'1 hour\' FROM orders WHERE id = 123'), 't', 'the clock of the server counts');
};

row '2.11', 'who saves too late does not overwrite the next holder', sub {
    given(sprintf $expires, '300 ms');
    my ($ann, $ben) = sessions(2);
    $ann->ask(locks('A'));
    ok(wait_until('SELECT status = 0 FROM orders WHERE id = 123'), 'the lock of A ends');
    given(q{SELECT interlock.enable_marker('orders', '5 min', status_column => 'status')});
    is($ben->ask(locks('B')), 'UPDATE 1', 'B has the row');
    is($ann->ask(saves('A', 11)), 'UPDATE 0', 'A finds no row');
    is($ann->ask(q{SELECT interlock.save_row('orders', 123, 'A', '{"amount": 11}')}), 'IL005', 'the function says why');
    is($ben->ask(saves('B', 12)), 'UPDATE 1', 'B saves');
};

row '2.12', 'of twenty at once one has it', sub {
    given($orders);
    my @answers = together(20, sub { locks("user $_[0]") });
    is_deeply([ sort @answers ], [ ('UPDATE 0') x 19, 'UPDATE 1' ], 'by the article\'s statement');
    @answers = together(20, sub { sprintf q{SELECT locked FROM interlock.lock_row('orders', 124, 'user %d')}, $_[0] });
    is_deeply([ sort @answers ], [ ('f') x 19, 't' ], 'by the function');
};

row '2.13', 'a page asks again, or is notified', sub {
    given($table . q{SELECT interlock.enable_marker('orders', '5 min', status_column => 'status', notify => 'on')});
    my ($ann, $ben) = sessions(2);
    $ben->ask('LISTEN interlock_row_lock');
    $ann->ask(locks('A'));
    is($ben->ask('SELECT lock_by FROM orders WHERE id = 123'), 'A', 'asked');
    $ann->ask(saves('A', 11));
    is($ben->ask('SELECT lock_by FROM orders WHERE id = 123'), '', 'and asked again');
    for (1 .. 600)
    {
        last if @{ $ben->{notifications} } >= 2;
        select(undef, undef, undef, 0.05);
        $ben->ask('SELECT 1');
    }
    is_deeply([ map { /"event": *"(\w+)"/ ? $1 : $_ } @{ $ben->{notifications} } ], [ 'locked', 'unlocked' ], 'notified');
};

row '2.14', 'two tabs of one user are two holders', sub {
    given($orders);
    my ($first, $second) = sessions(2);
    is($first->ask(locks('anna/1')), 'UPDATE 1', 'the first tab');
    is($second->ask(locks('anna/2')), 'UPDATE 0', 'not the second');
    is($second->ask(q{SELECT interlock.unlock_row('orders', 123, 'anna/2')}), 'f', 'which frees nothing when it is closed');
    is($second->ask(q{SELECT split_part(lock_by, '/', 1) FROM orders WHERE id = 123}), 'anna', 'others see the user');
    is($first->ask(saves('anna/1', 11)), 'UPDATE 1', 'the first tab saves');
};

row '2.15', 'the log of operations has one entry for an edit, with its writer', sub {
    given($orders . q{SELECT interlock.enable_history('orders')});
    my ($ann) = sessions(1);
    $ann->ask(locks('A'));
    $ann->ask(q{SELECT interlock.touch_row('orders', 123, 'A')}) for 1 .. 3;
    is($ann->ask(saves('A', 11)), 'UPDATE 1', 'A locks, stays, and saves by the article\'s statement');
    is(given(q{SELECT operation, before->'amount' FROM interlock.row_history('orders', 123)}), 'update|10', 'one entry with the old value');
    $ann->ask(locks('A'));
    $ann->ask(q{UPDATE orders SET status = 0 WHERE id = 123 AND lock_by = 'A'});
    is(given(q{SELECT count(*) FROM interlock.row_history('orders', 123)}), 1, 'an edit that was given up is none');
    $ann->ask(locks('A'));
    $ann->ask(q{BEGIN; SELECT interlock.set_holder('A')});
    is($ann->ask('UPDATE orders SET amount = 12, status = 0 WHERE id = 123; COMMIT'), 'COMMIT', 'A saves in a transaction');
    is(given(q{SELECT before->'amount', writer, writer_from FROM interlock.row_history('orders', 123) ORDER BY id DESC LIMIT 1}), '11|A|holder', 'with the name');
};

row '2.16', 'a marker and the update time of the row together', sub {
    given($orders . q{
        ALTER TABLE orders ADD updated_time timestamptz DEFAULT '2026-01-01 12:00+00';
        SELECT interlock.enable_versioning('orders', 'updated_time');
    });
    my ($ann, $ben) = sessions(2);
    my $save = q{UPDATE orders SET amount = %d, status = 0 WHERE id = 123 AND lock_by = '%s' AND updated_time = '2026-01-01 12:00+00'};
    $ben->ask(locks('B'));
    is($ben->ask(sprintf $save, 12, 'B'), 'UPDATE 1', 'B saves what both have read');
    is($ann->ask(locks('A')), 'UPDATE 1', 'A locks after it');
    is($ann->ask(sprintf $save, 11, 'A'), 'UPDATE 0', 'and has read before it');
    is($ann->ask(q{SELECT interlock.save_row('orders', 123, 'A', '{"amount": 11}', '2026-01-01 12:00+00'::timestamptz)}), 'IL001', 'which the function says');
    my $read = $ann->ask('SELECT updated_time FROM orders WHERE id = 123');
    like($ann->ask(qq{SELECT interlock.save_row('orders', 123, 'A', '{"amount": 11}', '$read'::timestamptz)}), qr/^20/, 'A reads again, and saves');
};

row '2.17', 'a marker and a transition in one save', sub {
    given($orders . q{
        ALTER TABLE orders ADD state text DEFAULT 'submitted';
        SELECT interlock.define_transitions('orders', 'state', '{"submitted": ["approved", "rejected"]}', on_repeat => 'reject');
    });
    my ($ann, $ben) = sessions(2);
    $ann->ask(locks('A'));
    is($ben->ask(q{UPDATE orders SET state = 'rejected' WHERE id = 123 AND state = 'submitted'}), 'IL004', 'not by others meanwhile');
    is($ann->ask(q{UPDATE orders SET state = 'approved', status = 0 WHERE id = 123 AND lock_by = 'A'}), 'UPDATE 1', 'A approves and releases');
    $ben->ask(locks('B'));
    is($ben->ask(q{UPDATE orders SET state = 'rejected', status = 0 WHERE id = 123 AND lock_by = 'B'}), 'IL002', 'B, who has it next, cannot reject it');
};

row '2.18', 'the items of a locked order are changed by its holder alone', sub {
    given($orders . q{
        CREATE TABLE order_item (id int PRIMARY KEY, order_id int REFERENCES orders, quantity int);
        INSERT INTO order_item VALUES (1, 123, 1), (2, 123, 2), (3, 124, 3);
    });
    my ($ann, $ben) = sessions(2);
    my $item = q{UPDATE order_item SET quantity = quantity + 1 WHERE id = 1};
    is($ann->ask(locks('A')), 'UPDATE 1', 'A edits the order');
    is($ben->ask($item), 'UPDATE 1', 'without the guard B changes its items meanwhile');
    given(q{SELECT interlock.guard_children('order_item', 'orders')});
    is($ben->ask($item), 'IL004', 'with it B is refused');
    like($ben->{message}, qr/is being edited by "A"/, 'and sees by whom');
    is($ben->ask('DELETE FROM order_item WHERE id = 2'), 'IL004', 'nor does B delete one');
    is($ben->ask('INSERT INTO order_item VALUES (4, 123, 1)'), 'IL004', 'or add one');
    is($ben->ask('UPDATE order_item SET order_id = 123 WHERE id = 3'), 'IL004', 'or move one there');
    is($ben->ask('UPDATE order_item SET quantity = 4 WHERE id = 3'), 'UPDATE 1', 'items of other orders are free');
    $ann->ask(q{BEGIN; SELECT interlock.set_holder('A')});
    is($ann->ask('UPDATE order_item SET quantity = 5 WHERE order_id = 123'), 'UPDATE 2', 'the holder changes them');
    is($ann->ask(saves('A', 11)), 'UPDATE 1', 'with the order');
    is($ann->ask('COMMIT'), 'COMMIT', 'and saves');
    is($ben->ask($item), 'UPDATE 1', 'then they are free');
    $ben->ask('BEGIN');
    is($ben->ask('UPDATE order_item SET quantity = 6 WHERE id = 2'), 'UPDATE 1', 'B changes an item,');
    is($ann->ask(locks('A')), 'UPDATE 1', 'A begins to edit the order before B has committed,');
    is($ben->ask('COMMIT'), 'IL004', 'and B is refused');
};

row '2.19', 'several documents are locked, all or none', sub {
    given($orders);
    my ($ann, $ben) = sessions(2);
    $ben->ask(locks('B', 125));
    my $all = q{SELECT locked, blocked->0->'key', blocked->0->>'holder' FROM interlock.lock_rows('orders', '{123,124,125}', 'A')};
    is($ann->ask($all), 'f|{"id": 125}|B', 'none, and who has the one');
    is(given('SELECT count(*) FROM orders WHERE lock_by = \'A\''), 0, 'none indeed');
    my $by_hand = q{BEGIN; UPDATE orders SET status = 1, lock_by = 'A', lock_time = now() WHERE id IN (123, 124, 125) AND status = 0};
    is($ann->ask($by_hand), 'UPDATE 2', 'the statement of the article has two of three');
    is($ann->ask('ROLLBACK; SELECT count(*) FROM orders WHERE lock_by = \'A\''), 0, 'and gives them back');
    $ben->ask(q{UPDATE orders SET status = 0 WHERE id = 125 AND lock_by = 'B'});
    is($ann->ask($all), 't||', 'then all');
    my @answers = together(8, sub { sprintf q{SELECT locked FROM interlock.lock_rows('orders', '%s', 'user %d')}, $_[0] % 2 ? '{123,125}' : '{125,124,123}', $_[0] });
    is_deeply(\@answers, [ ('f') x 8 ], 'others in any order neither have one nor deadlock');
};

row '2.20', 'a document is handed over to a colleague', sub {
    given($orders);
    my ($ann, $ben) = sessions(2);
    $ann->ask(locks('A'));
    is($ben->ask(q{SELECT interlock.hand_over_row('orders', 123, 'B', 'C')}), 'IL005', 'not by another than the holder');
    is($ben->ask(q{UPDATE orders SET lock_by = 'B' WHERE id = 123}), 'IL004', 'nor taken by a statement');
    like($ann->ask(q{SELECT interlock.hand_over_row('orders', 123, 'A', 'B')}), qr/^20/, 'A gives it to B');
    is($ann->ask(saves('A', 11)), 'UPDATE 0', 'and has it no more');
    is($ben->ask(saves('B', 12)), 'UPDATE 1', 'B saves');
};

row '2.21', 'who needs longer says so when renewing', sub {
    given($orders);
    my ($ann) = sessions(1);
    $ann->ask(locks('A'));
    is($ann->ask(q{SELECT interlock.touch_row('orders', 123, 'A', '1 hour') > now() + interval '50 minutes'}), 't', 'an hour');
    is($ann->ask(q{SELECT interlock.touch_row('orders', 123, 'A', '1 min') < now() + interval '50 minutes'}), 't', 'MRK-51: or less, when the holder says so');
    is($ann->ask(q{SELECT interlock.touch_row('orders', 123, 'B', '1 hour')}), '', 'by the holder alone');

    given(q{UPDATE orders SET status = 0 WHERE lock_by = 'A'});
    $ann->ask(locks('A'));
    my $deadline = given('SELECT lock_until FROM orders WHERE id = 123');
    $ann->ask(q{BEGIN; SELECT interlock.set_holder('A')});
    is($ann->ask(q{UPDATE orders SET lock_time = clock_timestamp() WHERE id = 123 AND lock_by = 'A'}), 'UPDATE 1', 'or writes the time of the lock by hand');
    is($ann->ask(qq{COMMIT; SELECT lock_until > '$deadline' FROM orders WHERE id = 123}), 't', 'which renews it as well');
};

row '2.22', 'who may edit is a matter of privileges', sub {
    given($orders . q{
        DROP ROLE IF EXISTS clerk, visitor;
        CREATE ROLE clerk; CREATE ROLE visitor;
        GRANT USAGE ON SCHEMA public TO clerk, visitor;
        GRANT SELECT, UPDATE ON orders TO clerk;
        GRANT SELECT ON orders TO visitor;
        ALTER TABLE orders ADD department text DEFAULT 'sales';
        UPDATE orders SET department = 'purchase' WHERE id = 125;
        ALTER TABLE orders ENABLE ROW LEVEL SECURITY;
        CREATE POLICY sales ON orders USING (department = 'sales');
    });
    my ($clerk, $visitor) = sessions(2);
    $clerk->ask('SET ROLE clerk');
    $visitor->ask('SET ROLE visitor');
    is($visitor->ask(locks('V')), '42501', 'who reads only cannot lock');
    is($visitor->ask(q{SELECT interlock.lock_row('orders', 123, 'V')}), '42501', 'nor by the function');
    is($clerk->ask(locks('C')), 'UPDATE 1', 'a clerk can');
    is($clerk->ask(locks('C', 125)), 'UPDATE 0', 'not a row of another department');
    is($clerk->ask(q{SELECT interlock.force_unlock_row('orders', 123, 'in a hurry')}), '42501', 'nor take a row away');
    given('DROP OWNED BY clerk, visitor; DROP ROLE clerk, visitor');
};

1;
