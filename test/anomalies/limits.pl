# What guards do not help against.

use strict;
use warnings;
use Anomaly;
use Story;
use Test::More;

# Each transaction reads both rows and writes one. No row is written twice, so no version differs.
limit 'A rule over several rows, with versions alone', loses => 'READ COMMITTED, REPEATABLE READ',
    tables => q{
        CREATE TABLE doctor (id int PRIMARY KEY, on_call boolean NOT NULL);
        INSERT INTO doctor VALUES (1, true), (2, true);
    },
    guard => q{SELECT interlock.enable_versioning('doctor', blind_updates => 'reject')},
    lost  => 'SELECT NOT bool_or(on_call) FROM doctor',
    with  => sub {
        my ($key, $ann, $ben) = @_;
        $_->ask('BEGIN') for $ann, $ben;
        is($_->ask('SELECT count(*) FROM doctor WHERE on_call'), 2, 'another one is on call') for $ann, $ben;
        $ann->ask('UPDATE doctor SET on_call = false WHERE id = 1 AND version = 1');
        $ben->ask('UPDATE doctor SET on_call = false WHERE id = 2 AND version = 1');
        $_->ask('COMMIT') for $ann, $ben;
    };

# The row that the rule is about is read, and another one is inserted.
limit 'A rule over rows that are inserted, with versions alone', loses => 'READ COMMITTED, REPEATABLE READ',
    tables => q{
        CREATE TABLE voucher (code text PRIMARY KEY, uses int NOT NULL);
        CREATE TABLE redemption (code text REFERENCES voucher);
        INSERT INTO voucher VALUES ('X', 1);
    },
    guard => q{SELECT interlock.enable_versioning('voucher', blind_updates => 'reject')},
    lost  => 'SELECT count(*) > 1 FROM redemption',
    with  => sub {
        my ($key, $ann, $ben) = @_;
        $_->ask('BEGIN') for $ann, $ben;
        is($_->ask(q{SELECT uses > (SELECT count(*) FROM redemption) FROM voucher WHERE code = 'X'}), 't', 'it may be used') for $ann, $ben;
        $_->ask(q{INSERT INTO redemption VALUES ('X')}) for $ann, $ben;
        $_->ask('COMMIT') for $ann, $ben;
    };

# A name says nothing to those that do not ask for it.
limit 'A lock by name, and a writer that does not take it', loses => 'every level',
    tables => q{
        CREATE TABLE cart (id int PRIMARY KEY, items int NOT NULL, price int NOT NULL, paid int);
        INSERT INTO cart VALUES (1, 3, 10);
    },
    lost => 'SELECT paid <> items * price FROM cart',
    with => sub {
        my ($key, $ann, $ben) = @_;
        $ann->ask("SELECT interlock.lock_key('$key', scope => 'session')");
        my $due = $ann->ask('SELECT items * price FROM cart WHERE id = 1');
        is($ben->ask('UPDATE cart SET items = 1 WHERE id = 1'), 'UPDATE 1', 'B removes two');
        $ann->ask("UPDATE cart SET paid = $due WHERE id = 1");
    };

# The snapshot is of the time before the wait, so what the former holder has inserted is not in it.
limit 'A lock by name after the snapshot', loses => 'REPEATABLE READ',
    tables => 'CREATE TABLE redemption (code text)',
    lost   => 'SELECT count(*) > 1 FROM redemption',
    with   => sub {
        my ($key, $ann, $ben) = @_;
        my $lock = "BEGIN; SELECT interlock.lock_key('$key')";
        $ann->ask($lock);
        $ben->begins_to_wait($lock);
        $ann->ask($_) for 'INSERT INTO redemption SELECT 1 WHERE NOT EXISTS (SELECT FROM redemption)', 'COMMIT';
        $ben->answer;
        $ben->ask($_) for 'INSERT INTO redemption SELECT 1 WHERE NOT EXISTS (SELECT FROM redemption)', 'COMMIT';
    };

# The owner of a table, or a superuser, can switch guards off.
limit 'A writer that switches the guard off', loses => 'every level',
    tables => q{
        CREATE TABLE config (id int PRIMARY KEY, title text);
        INSERT INTO config VALUES (1, 'old');
    },
    guard => q{SELECT interlock.enable_versioning('config', blind_updates => 'reject')},
    lost  => q{SELECT title = 'by B' FROM config},
    with  => sub {
        my ($key, $ann, $ben) = @_;
        is($ann->ask(q{UPDATE config SET title = 'by A' WHERE id = 1 AND version = 1}), 'UPDATE 1', 'A saves');
        $ben->ask('SET session_replication_role = replica');
        is($ben->ask(q{UPDATE config SET title = 'by B' WHERE id = 1}), 'UPDATE 1', 'B overwrites it');
    };

heading_is_tested('What stays lost');

1;
