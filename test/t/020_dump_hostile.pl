# What one role stores does not keep what others have from being restored.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";
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

my $archive = $node->basedir . '/source.dump';
$node->command_ok([ 'pg_dump', '-Fc', '-N', 'more', '-f', $archive, $node->connstr('source') ], 'pg_dump');
$node->safe_psql('postgres', 'CREATE DATABASE target');
my $errors = '';
IPC::Run::run([ 'pg_restore', '-d', $node->connstr('target'), $archive ], '2>', \$errors);
unlike($errors, qr/COPY failed|invalid input/, 'what cannot be restored is of mallory alone');

my $state = q(SELECT interlock.escrow_value('shop.item', 1, 'stock'), (SELECT string_agg(amount || ' of ' || rel, ', ') FROM interlock.reservations WHERE rel = 'shop.item'::regclass),
    (SELECT count(*) FROM interlock.idempotency), (SELECT count(*) FROM interlock.idempotency_scope));
is($node->safe_psql('target', $state), '1|2 of shop.item|3|1', 'the value, the reservation and the keys are there');
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
