# Article 004: product information that editors, importers and six workers write.

use strict;
use warnings;
use Story;
use Test::More;

my $product = q{
    CREATE TABLE product (id int PRIMARY KEY, name text, description text, price numeric, thumbnail text, stock int DEFAULT 0);
    INSERT INTO product VALUES (1, 'mug', 'a mug', 10);
};
my $versioned = $product . q{SELECT interlock.enable_versioning('product', 'version_count');};

# What a worker does that has read a whole object, and saves all of it later.
my $read = 'SELECT name, description, price FROM product WHERE id = 1';
sub save { my ($read, $thumbnail) = @_; return sprintf q{UPDATE product SET name = '%s', description = '%s', price = %s, thumbnail = '%s' WHERE id = 1}, split(/\|/, $read), $thumbnail; }

row '4.1', 'a worker that saves the whole object does not overwrite the editor', sub {
    given($product . q{SELECT interlock.own_columns('product', 'editor', '{name,description}', 'skip')});
    my ($editor, $worker) = sessions(2);
    my $old = $worker->ask($read);
    $editor->ask(q{BEGIN; SELECT interlock.set_writer('editor')});
    is($editor->ask(q{UPDATE product SET description = 'a blue mug' WHERE id = 1}), 'UPDATE 1', 'the editor writes');
    $worker->begins_to_wait(save($old, 'a.png'));
    $editor->ask('COMMIT');
    is($worker->answer, 'UPDATE 1', 'the worker saves what it has read before');
    is(given('SELECT description, thumbnail FROM product'), 'a blue mug|a.png', 'both are kept');
    is(given(q{SELECT columns, owner FROM interlock.skipped_writes WHERE rel = 'product'::regclass}), '{description}|editor', 'and what was skipped is known');
};

row '4.2', 'the file of fields and their owners is one call, which a migration repeats', sub {
    my $fields = q{
        versioning => { "version_column": "version_count" },
        ownership => { "columns": { "name": { "writer": "editor" }, "description": { "writer": "editor", "on_violation": "skip" },
            "thumbnail": { "writer": "system" }, "price": { "strategy": "retry", "blind_updates": "reject" }, "stock": { "strategy": "merge" } } },
        history => { "ignore_writers": ["system"] } };
    my $call = sprintf q{SELECT interlock.configure('product', '{%s}')}, $fields =~ s/(\w+) =>/"$1":/gr;
    given($product);
    my ($editor, $worker) = sessions(2);
    is(scalar(split /\n/, $editor->ask($call)), 7, 'seven statements are run');
    is($worker->ask($call), 'SELECT 0', 'and none the next time');
    $editor->ask(q{BEGIN; SELECT interlock.set_writer('editor')});
    is($editor->ask(q{UPDATE product SET name = 'cup', description = 'a cup' WHERE id = 1 AND version_count = 1}), 'UPDATE 1', 'the editor writes what is the editor\'s');
    $worker->begins_to_wait(save('mug|a mug|10', 'a.png'));
    $editor->ask('COMMIT');
    is($worker->answer, 'IL007', 'a worker does not overwrite it');
    is($worker->ask(q{UPDATE product SET description = 'a mug', stock = 3 WHERE id = 1 AND version_count = 2}), 'UPDATE 1', 'a description is skipped');
    is($worker->ask('UPDATE product SET price = 11 WHERE id = 1'), 'IL011', 'a price that was not read is not overwritten');
    is(given('SELECT name, description, price, stock FROM product'), 'cup|a cup|10|3', 'all is as it was declared');
    is($editor->ask(q{SELECT interlock.configure('product', '{"ownership": {"columns": {"description": {"writer": "editor"}}}}')}), 'SELECT 0', 'declared again, skip stays skip');
    like($editor->ask(q{SELECT interlock.configure('product', '{"ownership": {"columns": {"description": {"writer": "system"}}}}')}),
        qr/hand_over_columns.*to_writer => 'system'/, 'another owner is handed what the first one had');
};

row '4.3', 'columns of the system are written by many workers, and by nobody else', sub {
    given($product . q{
        DROP ROLE IF EXISTS scaler, indexer, shop;
        CREATE ROLE scaler; CREATE ROLE indexer; CREATE ROLE shop;
        GRANT USAGE ON SCHEMA public TO scaler, indexer, shop;
        GRANT SELECT, UPDATE ON product TO scaler, indexer, shop;
        SELECT interlock.own_columns('product', 'system', '{thumbnail}');
        SELECT interlock.grant_writer('system', 'scaler', is_default => true), interlock.grant_writer('system', 'indexer', is_default => true);
    });
    my $write = q{UPDATE product SET thumbnail = '%s.png' WHERE id = 1};
    my %answers;
    for my $role ('scaler', 'indexer', 'shop')
    {
        my ($session) = sessions(1);
        $session->ask("SET ROLE $role");
        $answers{$role} = $session->ask(sprintf $write, $role);
    }
    is_deeply(\%answers, { scaler => 'UPDATE 1', indexer => 'UPDATE 1', shop => 'IL007' }, 'two workers, and not the shop');
};

row '4.4', 'shared columns: retry, skip, merge, and no silent overwriting', sub {
    given($versioned . q{
        SELECT interlock.share_columns('product', '{price}', 'retry', blind_updates => 'reject'),
               interlock.share_columns('product', '{name}', 'skip'), interlock.share_columns('product', '{stock}', 'merge');
    });
    my ($ann, $ben) = sessions(2);
    is($ann->ask('UPDATE product SET price = 12 WHERE id = 1'), 'IL011', 'a price that was not read is not overwritten');
    is($ann->ask('UPDATE product SET price = 12 WHERE id = 1 AND version_count = 1'), 'UPDATE 1', 'A saves the price');
    is($ben->ask('UPDATE product SET price = 11 WHERE id = 1 AND version_count = 1'), 'UPDATE 0', 'B had read the old one');
    is($ben->ask('UPDATE product SET description = \'blue\' WHERE id = 1'), 'UPDATE 1', 'other columns are free');
    $ann->ask(q{UPDATE product SET name = 'cup', stock = 5 WHERE id = 1});
    my $merge = q{SELECT outcome, current->>'name', current->>'stock' FROM interlock.try_versioned_update('product', 1, 1, '%s',
        base => '{"name": "mug", "stock": 0, "price": 10}', on_conflict => 'merge')};
    is($ben->ask(sprintf $merge, '{"name": "glass", "stock": 3}'), 'merged|cup|8', 'what is stored stays, and numbers add up');
    is($ben->ask(sprintf $merge, '{"price": 11}'), 'conflict|cup|8', 'the price has to be read again');
};

row '4.5', 'a worker in autocommit is known by its role', sub {
    given($product . q{
        DROP ROLE IF EXISTS importer;
        CREATE ROLE importer;
        GRANT USAGE ON SCHEMA public TO importer;
        GRANT SELECT, UPDATE ON product TO importer;
        SELECT interlock.own_columns('product', 'importer', '{price}'), interlock.grant_writer('importer', 'importer', is_default => true);
        SELECT interlock.enable_history('product');
    });
    my ($importer, $editor) = sessions(2);
    $importer->ask('SET ROLE importer');
    is($importer->ask('UPDATE product SET price = 11 WHERE id = 1'), 'UPDATE 1', 'the statement of an ORM');
    is($editor->ask('UPDATE product SET price = 12 WHERE id = 1'), 'IL007', 'which is not everybody\'s');
    is(given(q{SELECT writer, writer_from FROM interlock.row_history('product', 1) ORDER BY id DESC LIMIT 1}), 'importer|role', 'the history has its name');
};

row '4.6', 'updateWithOptimisticLock: eight who append forty times lose nothing', sub {
    given($versioned . q{
        CREATE FUNCTION append(current jsonb, args jsonb) RETURNS jsonb LANGUAGE sql AS $$
            SELECT jsonb_build_object('description', concat_ws(' ', current->>'description', args->>'word')) $$;
        UPDATE product SET description = NULL;
    });
    my @sessions = sessions(8);
    my %outcomes;
    for my $turn (1 .. 5)
    {
        Protocol::send_query($sessions[$_], sprintf q{SELECT outcome FROM interlock.update_with_retry('product', 1, 'append(jsonb,jsonb)', '{"word": "w%d"}', 3)}, $turn * 8 + $_) for 0 .. 7;
        $outcomes{ $_->answer }++ for @sessions;
    }
    is_deeply(\%outcomes, { updated => 40 }, 'all succeed');
    is(given(q{SELECT count(DISTINCT word) FROM product, regexp_split_to_table(description, ' ') word}), 40, 'each is there');
};

row '4.6', 'the same by the loop of the article: read, compute, UPDATE with the version, at most three repetitions', sub {
    given($versioned . q{UPDATE product SET description = '-'});
    my @sessions = sessions(8);
    my ($acknowledged, $conflicts) = (0, 0);
    for my $turn (1 .. 5)
    {
        my %left = map { $_ => 1 } 0 .. 7;
        for my $attempt (0 .. 3)
        {
            my %read = map { $_ => [ split /\|/, $sessions[$_]->ask('SELECT version_count, description FROM product WHERE id = 1') ] } keys %left;
            Protocol::send_query($sessions[$_], sprintf q{UPDATE product SET description = '%s w%d' WHERE id = 1 AND version_count = %d},
                $read{$_}[1], $turn * 8 + $_, $read{$_}[0]) for keys %left;
            my %answers = map { $_ => $sessions[$_]->answer } keys %left;
            $acknowledged += grep { $_ eq 'UPDATE 1' } values %answers;
            $conflicts += grep { $_ eq 'UPDATE 0' } values %answers;
            delete @left{ grep { $answers{$_} eq 'UPDATE 1' } keys %answers };
        }
    }
    is($acknowledged, 20, 'of eight that have read one version one succeeds, four times a turn');
    is($conflicts, 5 * (7 + 6 + 5 + 4), 'the others find no row');
    is(given(q{SELECT count(DISTINCT word) FROM product, regexp_split_to_table(description, ' ') word WHERE word <> '-'}), $acknowledged, 'what was acknowledged is there');
};

row '4.7', 'the conditional statement with version_count', sub {
    given($versioned);
    my ($ann, $ben) = sessions(2);
    my $save = q{UPDATE product SET price = %d, version_count = version_count + 1 WHERE id = 1 AND version_count = 1 RETURNING version_count};
    $ann->ask('BEGIN');
    is($ann->ask(sprintf $save, 12), 2, 'the first has the next version');
    $ben->begins_to_wait(sprintf $save, 13);
    $ann->ask('COMMIT');
    is($ben->answer, 'UPDATE 0', 'the second has none');
};

row '4.8', 'the statement of TypeORM\'s save() does not pass', sub {
    given($product . q{SELECT interlock.enable_versioning('product', blind_updates => 'reject')});
    my ($ann, $ben) = sessions(2);
    my $save = q{UPDATE product SET name = '%s', "version" = "version" + 1 WHERE id IN (1)};
    is($ann->ask(sprintf $save, 'by A'), 'IL011', 'it compares no version');
    my $subscribed = 'BEGIN; SELECT interlock.assert_version(\'product\', 1, 1); ' . sprintf $save, 'by %s';
    is($ann->ask(sprintf $subscribed, 'A'), 'UPDATE 1', 'with the subscriber of the guide it does');
    $ben->begins_to_wait(sprintf $subscribed, 'B');
    $ann->ask('COMMIT');
    is($ben->answer, 'IL001', 'and a stale entity has the conflict');
    is(given('SELECT name, version FROM product'), 'by A|2', 'nothing is lost');
};

row '4.22', 'workers make no versions while history is suppressed', sub {
    given($product . q{SELECT interlock.enable_history('product')});
    my ($editor, $worker) = sessions(2);
    $editor->ask(q{UPDATE product SET description = 'a blue mug' WHERE id = 1});
    for (1 .. 6)
    {
        $worker->ask(q{BEGIN; SELECT interlock.suppress_history('product', 'images are made again')});
        is($worker->ask(qq{UPDATE product SET thumbnail = '$_.png' WHERE id = 1}), 'UPDATE 1', "worker $_ writes");
        $worker->ask('COMMIT');
    }
    is(given(q{SELECT operation, changed FROM interlock.row_history('product', 1)}), 'update|{description}', 'one version and not seven');
    is(given(q{SELECT count(*), sum(row_count) FROM interlock.operation_log WHERE reason = 'images are made again'}), '6|6', 'and a line for each');
};

row '4.23', 'scopes are nested, and are of one session', sub {
    given($product . q{SELECT interlock.enable_history('product')});
    my ($worker, $editor) = sessions(2);
    my $entries = q{SELECT count(*) FROM interlock.row_history('product', 1)};
    $worker->ask(q{BEGIN; SELECT interlock.suppress_history('product', 'outer'); SELECT interlock.suppress_history('product', 'inner')});
    $worker->ask(q{SELECT interlock.restore_history('product')});
    $worker->ask(q{UPDATE product SET thumbnail = 'a.png' WHERE id = 1});
    is($worker->ask($entries), 0, 'the outer scope goes on when the inner one ends');
    $editor->begins_to_wait(q{UPDATE product SET name = 'cup' WHERE id = 1});
    $worker->ask(q{SELECT interlock.restore_history('product'); UPDATE product SET thumbnail = 'b.png' WHERE id = 1; COMMIT});
    is($editor->answer, 'UPDATE 1', 'an editor writes meanwhile');
    is(given(q{SELECT string_agg(changed::text, ' ' ORDER BY id) FROM interlock.row_history('product', 1)}), '{thumbnail} {name}', 'what came after the scope, and the editor\'s');
    $worker->ask(q{BEGIN; SELECT interlock.suppress_history('product', 'fails'); SELECT 1/0});
    $worker->ask('ROLLBACK');
    $worker->ask(q{UPDATE product SET thumbnail = 'c.png' WHERE id = 1});
    is(given($entries), 3, 'an error leaves nothing suppressed');
};

row '4.24', 'operations of the system never make versions, by a rule', sub {
    given($product . q{
        DROP ROLE IF EXISTS worker;
        CREATE ROLE worker;
        GRANT USAGE ON SCHEMA public TO worker;
        GRANT SELECT, UPDATE ON product TO worker;
        SELECT interlock.grant_writer('system', 'worker', is_default => true);
        SELECT interlock.enable_history('product', ignore_columns => '{thumbnail}', ignore_writers => '{system}');
    });
    my ($worker, $editor) = sessions(2);
    is($editor->ask(q{UPDATE product SET thumbnail = 'a.png' WHERE id = 1}), 'UPDATE 1', 'a column, by anybody, in autocommit');
    $worker->ask('SET ROLE worker');
    is($worker->ask('UPDATE product SET stock = 7 WHERE id = 1'), 'UPDATE 1', 'any column, by the system');
    is($editor->ask(q{UPDATE product SET description = 'a blue mug' WHERE id = 1}), 'UPDATE 1', 'the text, by an editor');
    is(given(q{SELECT operation, changed FROM interlock.row_history('product', 1)}), 'update|{description}', 'one version');
    is(given(q{SELECT string_agg(reason, ' ' ORDER BY reason) FROM interlock.operation_log WHERE reason LIKE 'ignore%'}), 'ignore_columns ignore_writers', 'and a line for the others');
};

row '4.25', 'an editor compares versions, and takes one back', sub {
    given($versioned . q{SELECT interlock.enable_history('product'); INSERT INTO product VALUES (2, 'cup', 'a cup', 5)});
    my ($editor, $worker) = sessions(2);
    $editor->ask(q{UPDATE product SET description = 'a mistake' WHERE id = 2});
    $worker->ask(q{UPDATE product SET thumbnail = 'a.png' WHERE id = 2});
    is($editor->ask(q{SELECT version, array_remove(changed, 'version_count'), before - 'version_count'
        FROM interlock.row_history('product', 2) WHERE operation = 'update'}),
        qq(2|{description}|{"description": "a cup"}\n3|{thumbnail}|{"thumbnail": null}), 'what changed, and what it was');
    my $revert = q{SELECT outcome FROM interlock.try_revert_row('product', 2, to_version => 1, expected => %d)};
    is($editor->ask(sprintf $revert, 2), 'conflict', 'not over what was not seen');
    is($editor->ask(sprintf $revert, 3), 'reverted', 'the old values are a new version');
    is($editor->ask('SELECT version_count, description, thumbnail IS NULL FROM product WHERE id = 2'), '4|a cup|t', 'of the whole row');
};

row '4.26', 'the eight pitfalls have their answers (docs/choosing.md)', sub {
    given($versioned . q{
        SELECT interlock.own_columns('product', 'worker', '{thumbnail}', 'skip');
        SELECT interlock.enable_history('product', ignore_columns => '{thumbnail}');
        SELECT interlock.define_idempotency_scope('report', 'job', stale_after => '200 ms');
    });
    my ($ann, $ben) = sessions(2);

    # 1. Every writer saves the whole object. The editor has read it before the worker wrote.
    my $old = $ann->ask('SELECT name, description, price FROM product WHERE id = 1');
    $ben->ask(q{BEGIN; SELECT interlock.set_writer('worker')});
    is($ben->ask(q{UPDATE product SET thumbnail = 'a.png' WHERE id = 1}), 'UPDATE 1', '1. a worker writes its column');
    $ben->ask('COMMIT');
    is($ann->ask(save($old =~ s/a mug/a blue mug/r, 'none.png')), 'UPDATE 1', '1. the editor saves everything');
    is(given('SELECT description, thumbnail FROM product'), 'a blue mug|a.png', '1. and both are kept');

    # 2. The last write wins.
    given(q{SELECT interlock.enable_versioning('product', 'version_count', blind_updates => 'reject')});
    my $read = $ann->ask('SELECT version_count FROM product WHERE id = 1');
    is($ben->ask(q{UPDATE product SET name = 'cup' WHERE id = 1}), 'IL011', '2. a save that compares nothing is refused');
    is($ben->ask(qq{UPDATE product SET name = 'cup' WHERE id = 1 AND version_count = $read}), 'UPDATE 1', '2. one that compares passes');
    is($ann->ask(qq{UPDATE product SET name = 'jug' WHERE id = 1 AND version_count = $read}), 'UPDATE 0', '2. the stale one finds no row');

    # 3. A lock without an end, and a worker that outlives its lock.
    my $lease = q{SELECT token FROM interlock.acquire_lease('lock:product/1', '%s', holder => '%s', wait => '%s')};
    my $token = $ann->ask(sprintf $lease, '200 ms', 'worker 1', '0');
    like($ben->ask(sprintf $lease, '60 s', 'worker 2', '60 s'), qr/^\d+$/, '3. the lock of a worker that says nothing ends');
    is($ann->ask(qq{SELECT interlock.renew_lease('lock:product/1', $token)}), '', '3. it learns that at its heartbeat');
    is($ann->ask(qq{BEGIN; SELECT interlock.assert_lease('lock:product/1', $token)}), 'IL006', '3. and cannot write any more');
    $ann->ask('ROLLBACK');

    # 4. One lock for the whole object.
    my $group = q{SELECT outcome FROM interlock.acquire_lease('lock:product/2%s', '60 s')};
    is($ann->ask(sprintf $group, '/generatedAssets'), 'acquired', '4. one group of columns');
    is($ben->ask(sprintf $group, '/searchIndex'), 'acquired', '4. another one beside it');
    is($ben->ask(sprintf $group, '/generatedAssets'), 'held', '4. not the same');
    is($ben->ask(sprintf $group, ''), 'held', '4. nor all of it');

    # 5. A key without the request that it stands for.
    my $claim = q{SELECT outcome FROM interlock.idempotency_claim('redeem', 'user 1', '{"points": %d}')};
    is($ann->ask(sprintf $claim, 500), 'acquired', '5. a request');
    is($ben->ask(sprintf $claim, 900), 'mismatch', '5. another one under its key');

    # 6. Keys that are pending for ever, or that several workers recover.
    my $begin = q{SELECT token FROM interlock.idempotency_claim('report', 'daily', wait => '%s')};
    $token = $ann->ask(sprintf $begin, '0');
    is($ann->ask(qq{SELECT interlock.idempotency_checkpoint('report', 'daily', $token, 'page 7')}), '', '6. a worker gets as far as page 7, and hangs');
    given(q{SELECT pg_sleep(0.05)}) until given(q{SELECT deadline < clock_timestamp() FROM interlock.idempotency WHERE scope = 'report'}) eq 't';
    given(q{SELECT interlock.define_idempotency_scope('report', 'job', stale_after => '1 hour')});
    my @answers = together(8, sub { q{SELECT outcome, CASE outcome WHEN 'acquired' THEN checkpoint END FROM interlock.idempotency_claim('report', 'daily')} });
    is_deeply([ sort @answers ], [ 'acquired|page 7', ('in_progress|') x 7 ], '6. one of eight goes on there');
    is($ann->ask(qq{SELECT interlock.idempotency_complete('report', 'daily', $token)}), 'IL008', '6. the one that hung does not complete it');

    # 7. One model for requests and jobs: a request is answered anew, a job is resumed.
    given(q{SELECT interlock.define_idempotency_scope('redeem', 'api')});
    $token = $ann->ask(q{SELECT token FROM interlock.idempotency_claim('redeem', 'user 2')});
    is($ann->ask(qq{SELECT interlock.idempotency_checkpoint('redeem', 'user 2', $token, 'page 7')}), '55000', '7. a request has no checkpoint');

    # 8. Versions that nobody asked for, and the flag against them that stays set.
    my $entries = given(q{SELECT count(*) FROM interlock.row_history('product', 1)});
    $ben->ask(qq{BEGIN; SELECT interlock.set_writer('worker'); UPDATE product SET thumbnail = '$_.png' WHERE interlock.any_version(version_count); COMMIT}) for 1 .. 6;
    is(given(q{SELECT count(*) FROM interlock.row_history('product', 1)}), $entries, '8. six thumbnails make no version');
    $ben->ask(q{BEGIN; SELECT interlock.suppress_history('product', 'an import'); SELECT 1/0});
    $ben->ask('ROLLBACK');
    is($ben->ask(q{UPDATE product SET name = 'glass' WHERE interlock.any_version(version_count)}), 'UPDATE 1', '8. after an import that failed');
    is(given(q{SELECT count(*) FROM interlock.row_history('product', 1)}), $entries + 1, '8. versions are made again');
};

row '4.10', 'acquire, extend and release a lock', sub {
    my ($ann, $ben) = sessions(2);
    my ($outcome, $token) = split /\|/, $ann->ask(q(SELECT outcome, token FROM interlock.acquire_lease('lock:product/123', 30)));
    is($outcome, 'acquired', 'a worker acquires it');
    is($ben->ask(q(SELECT outcome FROM interlock.acquire_lease('lock:product/123', 30))), 'held', 'another does not');
    is($ann->ask("SELECT interlock.renew_lease('lock:product/123', $token, 600) > now() + '9 min'"), 't', 'it is extended');
    is($ann->ask("SELECT interlock.release_lease('lock:product/123', $token)"), 't', 'and released');
};

row '4.11', 'a heartbeat at half of the time, and what becomes of a worker that has lost its lock', sub {
    my ($ann) = sessions(1);
    my $token = $ann->ask(q(SELECT token FROM interlock.acquire_lease('lock:product/124', 1)));
    is($ann->ask("SELECT pg_sleep(0.5); SELECT interlock.renew_lease('lock:product/124', $token) IS NOT NULL"), 't', 'the heartbeat');
    given(q{SELECT interlock.break_lease('lock:product/124', 'test')});
    is($ann->ask("SELECT interlock.renew_lease('lock:product/124', $token) IS NOT NULL"), 'f', 'the next one finds the lock lost');
    is($ann->ask("SELECT interlock.assert_lease('lock:product/124', $token)"), 'IL006', 'and the worker writes nothing');
};

row '4.12', 'scopes: the element, and a part of it', sub {
    my ($ann, $ben) = sessions(2);
    is($ann->ask(q(SELECT outcome FROM interlock.acquire_lease('lock:product/125/generatedAssets', 30))), 'acquired', 'a part');
    is($ben->ask(q(SELECT outcome FROM interlock.acquire_lease('lock:product/125', 30))), 'held', 'excludes the element');
    is($ben->ask(q(SELECT blocks_key FROM interlock.lease_of('lock:product/125'))), 'lock:product/125/generatedAssets', 'and it is seen why');
    $ann->ask(q(SELECT FROM interlock.acquire_lease('lock:product:126:generatedAssets', 30)));
    is($ben->ask(q(SELECT outcome FROM interlock.acquire_lease('lock:product:126', 30))), 'acquired', 'a colon separates no levels');
};

row '4.13', 'the same group waits, other groups go on', sub {
    my ($ann, $ben, $cem) = sessions(3);
    my $token = $ann->ask(q(SELECT token FROM interlock.acquire_lease('lock:product/127/prices', 600)));
    is($cem->ask(q(SELECT outcome FROM interlock.acquire_lease('lock:product/127/texts', 30))), 'acquired', 'another group');
    my $wait = q(SELECT outcome, ticket FROM interlock.acquire_lease('lock:product/127/prices', 30, holder => 'ben', notify => true));
    $ben->ask('LISTEN interlock_lease');
    my ($outcome, $ticket) = split /\|/, $ben->ask($wait);
    is($outcome, 'held', 'the same group');
    $ann->ask("SELECT interlock.release_lease('lock:product/127/prices', $token)");
    $ben->ask('SELECT 1') until @{ $ben->{notifications} // [] };
    is($ben->{notifications}[0], $ticket, 'is notified when its turn has come');
    is($ben->ask($wait), 'acquired|', 'and goes on');
};

1;
