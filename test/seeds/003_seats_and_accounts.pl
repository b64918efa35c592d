# Article 003: seats of a theatre and accounts of a bank, from SQL Server and EF Core, with its names in quotes.

use strict;
use warnings;
use PostgreSQL::Test::Utils;
use Story;
use Test::More;

my $accounts = q{
    CREATE TABLE "Accounts" ("Id" int PRIMARY KEY, "Balance" int NOT NULL);
    INSERT INTO "Accounts" VALUES (1, 1000);
};
my $seats = q{
    CREATE TABLE "ShowSeats" ("Id" int PRIMARY KEY, "ShowId" int NOT NULL, "SeatId" int NOT NULL, "IsReserved" boolean NOT NULL DEFAULT false,
        "ReservedBy" int, UNIQUE ("ShowId", "SeatId"));
    INSERT INTO "ShowSeats" VALUES (14, 10, 11), (15, 10, 12), (16, 10, 13);
};
my $versioned = $seats . q{SELECT interlock.enable_versioning('"ShowSeats"', 'RowVer');};

row '3.1', 'an account of 1000 does not pay 700 and 500', sub {
    # Both read 1000, and both write what they have computed from it.
    given($accounts . q{SELECT interlock.enable_versioning('"Accounts"', 'RowVer', blind_updates => 'reject')});
    my ($ann, $ben) = sessions(2);
    is($_->ask('SELECT "Balance", "RowVer" FROM "Accounts" WHERE "Id" = 1'), '1000|1', 'both read') for $ann, $ben;
    is($ann->ask('UPDATE "Accounts" SET "Balance" = 300 WHERE "Id" = 1'), 'IL011', 'a balance cannot be written without a look');
    $ann->ask('BEGIN');
    is($ann->ask('UPDATE "Accounts" SET "Balance" = 300 WHERE "Id" = 1 AND "RowVer" = 1'), 'UPDATE 1', '700 are paid');
    $ben->begins_to_wait('UPDATE "Accounts" SET "Balance" = 500 WHERE "Id" = 1 AND "RowVer" = 1');
    $ann->ask('COMMIT');
    is($ben->answer, 'UPDATE 0', '500 are not');

    # Both lock the row, and read it after that.
    given('UPDATE "Accounts" SET "Balance" = 1000 WHERE interlock.any_version("RowVer")');
    my $lock = q{BEGIN; SELECT FROM interlock.select_for_update('"Accounts"', '{1}'); SELECT "Balance" FROM "Accounts" WHERE "Id" = 1};
    is($ann->ask($lock), 1000, 'A reads 1000');
    $ben->begins_to_wait($lock);
    is($ann->ask('UPDATE "Accounts" SET "Balance" = "Balance" - 700 WHERE "Id" = 1 AND "Balance" >= 700 AND interlock.any_version("RowVer"); COMMIT'), 'COMMIT', 'and pays');
    is($ben->answer, 300, 'B reads 300');
    is($ben->ask('UPDATE "Accounts" SET "Balance" = "Balance" - 500 WHERE "Id" = 1 AND "Balance" >= 500 AND interlock.any_version("RowVer")'), 'UPDATE 0', 'and does not');
};

row '3.2', 'of twenty who buy seat 12 one gets a ticket', sub {
    given($versioned . q{
        CREATE TABLE "Tickets" ("Id" int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, "ShowId" int, "SeatId" int, "Buyer" int, UNIQUE ("ShowId", "SeatId"));
    });
    my @answers = together(20, sub { sprintf q{
        BEGIN;
        UPDATE "ShowSeats" SET "IsReserved" = true, "ReservedBy" = %d WHERE "Id" = 15 AND "RowVer" = 1;
        INSERT INTO "Tickets" ("ShowId", "SeatId", "Buyer") SELECT "ShowId", "SeatId", %1$d FROM "ShowSeats" WHERE "Id" = 15 AND "ReservedBy" = %1$d;
        COMMIT}, $_[0] });
    is_deeply(\@answers, [ ('COMMIT') x 20 ], 'nobody has an error');
    is(given('SELECT count(*), min("Buyer") = (SELECT "ReservedBy" FROM "ShowSeats" WHERE "Id" = 15) FROM "Tickets"'), '1|t', 'one has the seat and the ticket');
    @answers = together(20, sub { sprintf q{INSERT INTO "Tickets" ("ShowId", "SeatId", "Buyer") VALUES (10, 13, %d)}, $_[0] });
    is_deeply([ sort @answers ], [ ('23505') x 19, 'INSERT 0 1' ], 'a unique index refuses those who forget it');
};

row '3.3', 'what cannot be a row version is refused with what can', sub {
    given($seats . q{ALTER TABLE "ShowSeats" ADD "RowVer" bytea});
    my ($ann) = sessions(1);
    my $enable = q{SELECT interlock.enable_versioning('"ShowSeats"', '%s')};
    is($ann->ask(sprintf $enable, 'RowVer'), '42804', 'a ROWVERSION that came over as bytea');
    is($ann->ask(sprintf $enable, 'xmin'), '42703', 'nor the system column of the driver');
    $ann->ask('ALTER TABLE "ShowSeats" DROP "RowVer"');
    $ann->ask(sprintf $enable, 'RowVer');
    is($ann->ask('SELECT DISTINCT "RowVer", pg_typeof("RowVer") FROM "ShowSeats"'), '1|bigint', 'a counter of that name');
};

row '3.4', 'names in quotes are used as they are', sub {
    given($versioned);
    my ($ann) = sessions(1);
    is($ann->ask('UPDATE "ShowSeats" SET "ReservedBy" = 1 WHERE "Id" = 15 AND "RowVer" = 1'), 'UPDATE 1', 'in a statement');
    is($ann->ask(q{SELECT interlock.versioned_update('"ShowSeats"', 15, 2, '{"ReservedBy": 2}')}), 3, 'in a function, quoted for the table alone');
    is($ann->ask(q{SELECT interlock.versioned_update('ShowSeats', 15, 3, '{}')}), '42P01', 'without quotes it is another table');
};

row '3.5', 'a seat is named by its show and number', sub {
    given($versioned);
    my ($ann, $ben) = sessions(2);
    my $reserve = q{UPDATE "ShowSeats" SET "IsReserved" = true, "ReservedBy" = %d WHERE "ShowId" = 10 AND "SeatId" = 12 AND "RowVer" = 1};
    is($ann->ask(sprintf $reserve, 1), 'UPDATE 1', 'A reserves it');
    is($ben->ask(sprintf $reserve, 2), 'UPDATE 0', 'B does not');
    is($ben->ask(q{SELECT outcome, current->'ReservedBy' FROM interlock.try_versioned_update('"ShowSeats"', '{"ShowId": 10, "SeatId": 12}', 1, '{"ReservedBy": 2}')}),
        'conflict|1', 'by a function');
    is($ben->ask(q{SELECT key FROM interlock.select_for_update('"ShowSeats"', '[{"ShowId": 10, "SeatId": 12}]'::jsonb)}), '{"SeatId": 12, "ShowId": 10}', 'and for a lock');
};

row '3.6', 'IsReserved is a state, although it is a boolean', sub {
    given($seats . q{SELECT interlock.define_transitions('"ShowSeats"', 'IsReserved', '{"false": [true]}', on_repeat => 'reject')});
    my ($ann, $ben) = sessions(2);
    my $reserve = q{UPDATE "ShowSeats" SET "IsReserved" = true, "ReservedBy" = %d WHERE "ShowId" = 10 AND "SeatId" = 12};
    $ann->ask('BEGIN');
    is($ann->ask(sprintf $reserve, 1), 'UPDATE 1', 'A reserves the seat');
    $ben->begins_to_wait(sprintf $reserve, 2);
    $ann->ask('COMMIT');
    is($ben->answer, 'IL002', 'B, who does not look, is refused');
    is($ben->ask('UPDATE "ShowSeats" SET "IsReserved" = false WHERE "Id" = 15'), 'IL002', 'nobody sells it again');
    is($ben->ask(q{SELECT outcome, state FROM interlock.try_transition('"ShowSeats"', 15, false, true)}), 'state_changed|true', 'by the function');
};

row '3.7', 'UPDLOCK and HOLDLOCK: of twenty who lock, look and write one reserves', sub {
    given($seats);
    my $look = q{UPDATE "ShowSeats" SET "IsReserved" = true, "ReservedBy" = %d WHERE "Id" = %d AND NOT "IsReserved"};
    for my $lock ([ 14, q{SELECT "IsReserved" FROM "ShowSeats" WHERE "ShowId" = 10 AND "SeatId" = 11 FOR NO KEY UPDATE} ],
        [ 15, q{SELECT FROM interlock.select_for_update('"ShowSeats"', '{15}')} ], [ 16, q{SELECT interlock.lock_key('ShowSeats:10/13')} ])
    {
        my ($id, $statement) = @$lock;
        my @sessions = sessions(20);
        Protocol::send_query($sessions[ $_ - 1 ], "BEGIN; $statement; " . sprintf($look, $_, $id) . '; COMMIT') for 1 .. 20;
        is_deeply([ map { $_->answer } @sessions ], [ ('COMMIT') x 20 ], "all come to their turn with $statement");
        like(given(qq{SELECT "ReservedBy" FROM "ShowSeats" WHERE "Id" = $id}), qr/^\d+$/, 'one has the seat');
    }
    # The lock of one who looks holds others back, as UPDLOCK does.
    given('UPDATE "ShowSeats" SET "IsReserved" = false WHERE "Id" = 14');
    my ($ann, $ben) = sessions(2);
    my $read = q{BEGIN; SELECT FROM interlock.select_for_update('"ShowSeats"', '{14}'); SELECT "IsReserved" FROM "ShowSeats" WHERE "Id" = 14};
    is($ann->ask($read), 'f', 'A looks');
    $ben->begins_to_wait($read);
    $ann->ask(sprintf($look, 1, 14) . '; COMMIT');
    is($ben->answer, 't', 'B sees what A has written');
};

row '3.8', 'the optimistic transaction with the row version', sub {
    given($versioned);
    my ($ann, $ben) = sessions(2);
    my $reserve = q{UPDATE "ShowSeats" SET "IsReserved" = true, "ReservedBy" = %d WHERE "Id" = 15 AND "RowVer" = %s};
    my $read = $ann->ask('SELECT "RowVer" FROM "ShowSeats" WHERE "Id" = 15');
    $ann->ask('BEGIN');
    is($ann->ask(sprintf $reserve, 1, $read), 'UPDATE 1', 'A');
    $ben->ask('BEGIN');
    $ben->begins_to_wait(sprintf $reserve, 2, $read);
    $ann->ask('COMMIT');
    is($ben->answer, 'UPDATE 0', 'B has @@ROWCOUNT = 0, and rolls back');
};

row '3.9', 'who has the conflict sees whether the seat is reserved now', sub {
    given($versioned . q{UPDATE "ShowSeats" SET "ReservedBy" = NULL WHERE "Id" = 14});
    my ($ann, $ben) = sessions(2);
    is($ann->ask(q{UPDATE "ShowSeats" SET "IsReserved" = true, "ReservedBy" = 1 WHERE "Id" = 15 AND "RowVer" = 1}), 'UPDATE 1', 'A reserves');
    is($ben->ask(q{UPDATE "ShowSeats" SET "IsReserved" = true, "ReservedBy" = 2 WHERE "Id" = 15 AND "RowVer" = 1}), 'UPDATE 0', 'B finds no row');
    is($ben->ask(q{SELECT "IsReserved", "RowVer" FROM "ShowSeats" WHERE "Id" = 15}), 't|2', 'and reads again, as EF Core does by GetDatabaseValues');
    my $call = q{SELECT outcome, current->'IsReserved' FROM interlock.try_versioned_update('"ShowSeats"', %d, 1, '{"IsReserved": true}')};
    is($ben->ask(sprintf $call, 15), 'conflict|true', 'a function answers both');
    is($ben->ask(sprintf $call, 14), 'conflict|false', 'or that it is not, and tries again');
};

# The procedure is the one of the example, over the article's table.
my $example = slurp_file("$FindBin::RealBin/../examples/sql-server-transfer.sql");
my ($procedure) = $example =~ /(^CREATE TABLE Accounts.*?^END \$\$;)/ms;

row '3.10', 'sp_TransferAmount with sp_getapplock, in both directions', sub {
    given($procedure);
    given(q{CREATE PROCEDURE many(FromId int, ToId int) LANGUAGE plpgsql AS $$
        BEGIN FOR i IN 1 .. 20 LOOP CALL sp_TransferAmount(FromId, ToId, 5); COMMIT; END LOOP; END $$});
    is_deeply([ together(8, sub { $_[0] % 2 ? 'CALL many(9, 10)' : 'CALL many(10, 9)' }) ], [ ('CALL') x 8 ], 'eight who transfer 20 times have no error');
    is(given('SELECT sum(Balance), min(Balance) FROM Accounts'), '2000.00|1000.00', 'and no money is lost');
    my ($ann) = sessions(1);
    is($ann->ask("CALL sp_TransferAmount($_->[0])"), $_->[1], "THROW $_->[1]")
        for [ '9, 10, 0', 50001 ], [ '9, 9, 1', 50002 ], [ '9, 11, 1', 50004 ], [ '9, 10, 1001', 50005 ];
    is(given('SELECT sum(Balance), (SELECT count(*) FROM interlock.key_locks) FROM Accounts'), '2000.00|0', 'nothing is written, nothing stays locked');
};

row '1.11', 'transfers that lock both accounts by name, in both directions', sub {
    given($procedure);
    given(q{CREATE PROCEDURE many(FromId int, ToId int) LANGUAGE plpgsql AS $$
        BEGIN
            FOR i IN 1 .. 20 LOOP
                PERFORM interlock.lock_keys(ARRAY['acc:' || FromId, 'acc:' || ToId]);
                UPDATE Accounts SET Balance = Balance - 5 WHERE Id = FromId;
                UPDATE Accounts SET Balance = Balance + 5 WHERE Id = ToId;
                COMMIT;
            END LOOP;
        END $$});
    is_deeply([ together(8, sub { $_[0] % 2 ? 'CALL many(9, 10)' : 'CALL many(10, 9)' }) ], [ ('CALL') x 8 ], 'eight who transfer 20 times do not deadlock');
    is(given('SELECT sum(Balance), min(Balance) FROM Accounts'), '2000.00|1000.00', 'and no money is lost');
};

row '3.11', 'its arguments have the names of SQL Server', sub {
    my ($ann) = sessions(1);
    is($ann->ask(q{SELECT interlock.getapplock(resource => 'Account:1', lockmode => 'Exclusive', lockowner => 'Session', locktimeout => 5000)}), 0, 'sp_getapplock');
    is($ann->ask(q{SELECT interlock.getapplock(Resource => 'Account:1', LockMode => 'EXCLUSIVE', LockOwner => 'session')}), 0, 'in any case');
    is($ann->ask(q{SELECT interlock.applock_mode('public', 'Account:1', 'Session'), interlock.applock_test('public', 'Account:1', 'Shared', 'Session')}), 'Exclusive|1', 'APPLOCK_MODE, APPLOCK_TEST');
    is($ann->ask(q{SELECT interlock.releaseapplock(resource => 'Account:1', lockowner => 'Session')}), 0, 'sp_releaseapplock') for 1, 2;
    is($ann->ask(q{SELECT interlock.releaseapplock('Account:1', 'Session')}), -999, 'which says that there is nothing more to release');
};

row '3.12', 'who waits in vain gets -1, and goes on', sub {
    given($procedure);
    my ($ann, $ben) = sessions(2);
    $ann->ask(q{BEGIN; SELECT interlock.getapplock(AccountLock(9), 'Exclusive')});
    is($ben->ask(q{BEGIN; SELECT interlock.getapplock(AccountLock(9), 'Exclusive', locktimeout => 100)}), -1, 'a timeout');
    is($ben->ask('SELECT 1; ROLLBACK'), 'ROLLBACK', 'is no error of the transaction');
    my ($cid) = sessions(1);
    $cid->ask('SET lock_timeout = 100');
    is($cid->ask('CALL sp_TransferAmount(10, 9, 1)'), '50003', 'the procedure throws');
    $ann->ask('COMMIT');
    is($cid->ask('RESET lock_timeout; CALL sp_TransferAmount(10, 9, 1)'), 'CALL', 'until the account is free');
};

row '3.13', 'the order of the numbers and that of the texts', sub {
    my ($ann, $ben) = sessions(2);
    # Code that orders its accounts by number, beside lock_keys, which orders the bytes of their names
    $_->ask(q{SET deadlock_timeout = '10ms'}) for $ann, $ben;
    $ann->ask(q{BEGIN; SELECT interlock.lock_key('Account:9')});
    $ben->begins_to_wait(q{SELECT interlock.lock_keys('{Account:9,Account:10}')});
    Protocol::send_query($ann, q{SELECT interlock.lock_key('Account:10')});
    is(join(' ', sort grep { $_ eq '40P01' } ($ann->answer, $ben->answer)), '40P01', 'one of two who lock both is the victim of a deadlock');
    $ann->ask('ROLLBACK');
    for my $lock (q{interlock.lock_key('%s')}, q{interlock.getapplock('%s', 'Exclusive')})
    {
        my $both = sub { join ', ', map { sprintf $lock, $_ } @_ };
        is($ann->ask(q{BEGIN; SET LOCAL interlock.lock_order = 'error'; SELECT } . $both->('Account:9', 'Account:10')), '55000', "$lock: a test finds it");
        $ann->ask('ROLLBACK');
        like($ann->ask(q{BEGIN; SET LOCAL interlock.lock_order = 'error'; SELECT } . $both->('Account:0009', 'Account:0010')), qr/^0?\|0?$/, "$lock: numbers of one width are in order");
        $ann->ask('ROLLBACK');
    }
};

row '3.14', 'getapplock and lock_key of one name do not meet', sub {
    my ($ann, $ben) = sessions(2);
    is($ann->ask(q{BEGIN; SELECT interlock.getapplock('Account:9', 'Exclusive')}), 0, 'A has the application lock');
    is($ben->ask(q{BEGIN; SELECT interlock.try_lock_key('Account:9')}), 't', 'B has the key: use one of the two everywhere');
    is($ben->ask(q{SELECT string_agg(kind, ' ' ORDER BY kind) FROM interlock.key_locks WHERE key = 'Account:9'}), 'applock key', 'the view shows both');
    $_->ask('ROLLBACK') for $ann, $ben;
};

row '3.16', 'constraints are the last line of defence', sub {
    given(q{
        CREATE TABLE "Accounts" ("Id" int PRIMARY KEY, "Balance" int NOT NULL CHECK ("Balance" >= 0));
        INSERT INTO "Accounts" VALUES (1, 1000);
        SELECT interlock.enable_versioning('"Accounts"', 'RowVer');
        SELECT interlock.share_columns('"Accounts"', '{Balance}', 'merge');
    });
    my ($ann, $ben) = sessions(2);
    $ann->ask('BEGIN');
    is($ann->ask('UPDATE "Accounts" SET "Balance" = "Balance" - 700 WHERE "Id" = 1'), 'UPDATE 1', '700 are paid');
    $ben->begins_to_wait('UPDATE "Accounts" SET "Balance" = "Balance" - 500 WHERE "Id" = 1');
    $ann->ask('COMMIT');
    is($ben->answer, '23514', '500 are refused');
    is($ben->ask(q{SELECT outcome FROM interlock.try_versioned_update('"Accounts"', 1, 1, '{"Balance": 500}', base => '{"Balance": 1000}', on_conflict => 'merge')}),
        '23514', 'also by a merge of both');
};

row '3.17', 'a seat is held while its buyer pays', sub {
    given($seats . q{SELECT interlock.enable_marker('"ShowSeats"', '10 min')});
    my ($ann, $ben) = sessions(2);
    my $hold = q{UPDATE "ShowSeats" SET lock_status = 1, lock_by = '%s' WHERE "ShowId" = 10 AND "SeatId" = 12 AND lock_status = 0 AND NOT "IsReserved"};
    is($ann->ask(sprintf $hold, 'A'), 'UPDATE 1', 'A holds the seat');
    is($ben->ask(sprintf $hold, 'B'), 'UPDATE 0', 'B does not');
    is($ben->ask('UPDATE "ShowSeats" SET "IsReserved" = true, "ReservedBy" = 2 WHERE "Id" = 15 AND NOT "IsReserved"'), 'IL004', 'nor can B reserve it');
    is($ben->ask(q{SELECT locked, blocked->0->'key', blocked->0->>'holder' FROM interlock.lock_rows('"ShowSeats"', '{14,15,16}', 'B')}),
        'f|{"Id": 15}|A', 'nor hold three seats, of which it is one');
    is($ann->ask(q{UPDATE "ShowSeats" SET "IsReserved" = true, "ReservedBy" = 1, lock_status = 0 WHERE "Id" = 15 AND lock_by = 'A'}), 'UPDATE 1', 'A has paid');
    is($ben->ask(q{SELECT locked FROM interlock.lock_rows('"ShowSeats"', '{14,16}', 'B')}), 't', 'B holds the two beside it');
};

1;
