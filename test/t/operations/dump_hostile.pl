# What one role stores does not keep what others have from being restored.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../lib";
use PostgreSQL::Test::Utils;
use Test::More;
use Server;

my $node = start_server('interlock.sweeper = off');
$node->safe_psql('postgres', 'CREATE DATABASE source; CREATE ROLE shop LOGIN; CREATE ROLE mallory LOGIN');
sub as { my ($role, $database, $sql) = @_; return $node->safe_psql($database, $sql, extra_params => [ '-U', $role ]); }

$node->safe_psql('source', q(
    CREATE EXTENSION pg_interlock;
    SELECT interlock.grant_idempotency_scope('orders', 'shop'), interlock.grant_idempotency_scope('other', 'mallory');
    CREATE SCHEMA shop AUTHORIZATION shop; CREATE SCHEMA mallory AUTHORIZATION mallory; CREATE SCHEMA more AUTHORIZATION mallory));
as('shop', 'source', q(
    CREATE TABLE shop.item (id int PRIMARY KEY, stock int NOT NULL);
    SELECT interlock.enable_escrow('shop.item', 'stock');
    INSERT INTO shop.item VALUES (1, 10);
    SELECT interlock.adjust('shop.item', 1, 'stock', -1);
    SELECT interlock.adjust('shop.item', 1, 'stock', -6);
    SELECT interlock.reserve('shop.item', 1, 'stock', 2, '1 day');
    SELECT interlock.idempotency_complete('orders', 'order 2', token, '{"paid": true}') FROM interlock.idempotency_claim('orders', 'order 2')));

# A table that no restore can make, and two that are left out of the dump; all three have counters for the same column and key
as('mallory', 'source', q(
    CREATE FUNCTION mallory.f(int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS 'BEGIN RETURN $1; END';
    CREATE TABLE mallory.poison (id int PRIMARY KEY, stock int NOT NULL, g int GENERATED ALWAYS AS (mallory.f(stock)) STORED);
    CREATE TABLE more.left_out (id int PRIMARY KEY, stock int NOT NULL);
    CREATE TABLE more."Left, ""too""" (id int PRIMARY KEY, stock int NOT NULL)));
for my $table ('mallory.poison', 'more.left_out', 'more."Left, ""too"""')
{
    as('mallory', 'source', qq(
        SELECT interlock.enable_escrow('$table', 'stock');
        INSERT INTO $table VALUES (1, 9);
        SELECT interlock.adjust('$table', 1, 'stock', -1);
        SELECT interlock.adjust('$table', 1, 'stock', -1);
        SELECT interlock.reserve('$table', 1, 'stock', 1, '1 day')));
}
as('mallory', 'source', 'ALTER FUNCTION mallory.f(int) VOLATILE');

# An interval that the server prints as it does not read it, on PostgreSQL 15
my $odd = q(make_interval(days => 106751992) + interval '-2562047788:00:54.775807' - interval '0.000001 s');
is(as('mallory', 'source', "SELECT outcome FROM interlock.idempotency_claim('other', 'ttl', ttl => $odd)"), 'acquired', 'a claim with an odd ttl');
is(as('mallory', 'source', "SELECT outcome FROM interlock.idempotency_claim('other', 'stale', stale_after => $odd)"), 'acquired', 'or stale_after');
$node->safe_psql('source', "SELECT interlock.define_idempotency_scope('odd', ttl => $odd, stale_after => $odd)");

# Keys that fit into an index by their compression alone, and JSON that is deeper than it can be read
my ($status, $out, $error) = $node->psql('source', q(
    SET ROLE mallory;
    CREATE TABLE more.long (id text PRIMARY KEY, stock int NOT NULL);
    SELECT interlock.enable_escrow('more.long', 'stock');
    INSERT INTO more.long VALUES (repeat('a', 801), 9), (repeat('b', 798), 9);
    SELECT interlock.adjust('more.long', repeat('b', 798), 'stock', -1);
    SELECT interlock.adjust('more.long', repeat('a', 801), 'stock', -1)));
like($error, qr/54000|a key of table "long" is too long for an escrow counter/, 'a long key has no counter');
is($node->safe_psql('source', 'DELETE FROM more.long RETURNING length(id)'), "801\n798", 'and its row can be deleted');
$node->safe_psql('source', "SELECT interlock.define_idempotency_scope('job', model => 'job'); SELECT interlock.idempotency_claim('job', 'work')");
my $deep = q((SELECT (repeat('{"a":', 1001) || '1' || repeat('}', 1001))::jsonb));
my $large = q(to_jsonb(repeat('a', 1100000)));
my $numbers = q((SELECT jsonb_agg(1e131071) FROM generate_series(1, 2100)));
for my $call ("idempotency_claim('other', 'deep', state => $deep)", "idempotency_claim('other', 'deep', state => $numbers)",
    "idempotency_complete('other', 'ttl', (SELECT token FROM interlock.idempotency WHERE key = 'ttl'), $numbers)", "idempotency_claim('other', 'deep', state => $large)",
    "idempotency_complete('other', 'ttl', (SELECT token FROM interlock.idempotency WHERE key = 'ttl'), $deep)",
    "idempotency_fail('other', 'ttl', (SELECT token FROM interlock.idempotency WHERE key = 'ttl'), $deep)",
    "idempotency_checkpoint('job', 'work', (SELECT token FROM interlock.idempotency WHERE key = 'work'), 'a', $deep)",
    "idempotency_checkpoint('job', 'work', (SELECT token FROM interlock.idempotency WHERE key = 'work'), 'a', $large)")
{
    ($status, $out, $error) = $node->psql('source', "\\set VERBOSITY verbose\nSELECT interlock.$call");
    like($error, qr/ERROR:  54000: /, ($call =~ /^(\w+)/)[0] . ' refuses it');
}

my $archive = $node->basedir . '/source.dump';
$node->command_ok([ 'pg_dump', '-Fc', '-N', 'more', '-f', $archive, $node->connstr('source') ], 'pg_dump');
$node->safe_psql('postgres', 'CREATE DATABASE target');
my $errors = '';
IPC::Run::run([ 'pg_restore', '-d', $node->connstr('target'), $archive ], '2>', \$errors);
unlike($errors, qr/COPY failed|invalid input/, 'what cannot be restored is of mallory alone');

my $state = q(SELECT interlock.escrow_value('shop.item', 1, 'stock'), (SELECT string_agg(amount || ' of ' || rel, ', ') FROM interlock.reservations WHERE rel = 'shop.item'::regclass),
    (SELECT count(*) FROM interlock.idempotency), (SELECT count(*) FROM interlock.idempotency_scope));
is($node->safe_psql('target', $state), '1|2 of shop.item|4|2', 'the value, the reservation and the keys are there');
is($node->safe_psql('target', $state), $node->safe_psql('source', $state), 'as they were');
is(as('shop', 'target', q(SELECT outcome FROM interlock.try_adjust('shop.item', 1, 'stock', -2))), 'pending', 'nothing is sold twice');
is(as('shop', 'target', q(SELECT outcome FROM interlock.idempotency_claim('orders', 'order 2'))), 'replay', 'nor paid');
is($node->safe_psql('target', 'SELECT count(*) FROM interlock_internal.escrow_counter'), 1, 'counters without a table are left out');

# The sweeper deletes what is left of them
$node->append_conf('postgresql.conf', "interlock.sweeper = on\ninterlock.sweeper_rescan = '1s'");
$node->reload;
ok($node->poll_query_until('target', 'SELECT count(*) = 0 FROM interlock_internal.escrow_part WHERE counter NOT IN (SELECT id FROM interlock_internal.escrow_counter)'),
    'parts without a counter go');
is(as('shop', 'target', q(SELECT interlock.escrow_value('shop.item', 1, 'stock'))), 1, 'and others stay');

$node->stop;
done_testing();
