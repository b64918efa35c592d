# Reservations in a dump and in a base backup: a copy has those that were committed, under the same tokens, for the roles of the same
# names, and each of them can end there once. A cancellation that is not committed is in no dump.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../lib";
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Server;

my $node = start_server("interlock.sweeper = off\nmax_prepared_transactions = 5\nwal_level = replica\nmax_wal_senders = 5");
$node->safe_psql('postgres', q(
CREATE ROLE clerk; CREATE ROLE other;
CREATE DATABASE source;
));
$node->safe_psql('source', q(
CREATE EXTENSION pg_interlock;
CREATE TABLE item (id int PRIMARY KEY, stock numeric(8, 2) NOT NULL CHECK (stock BETWEEN 0 AND 10));
SELECT interlock.enable_escrow('item', 'stock', maximum => 10);
INSERT INTO item VALUES (1, 10), (2, 10);
GRANT SELECT, UPDATE ON item TO clerk;
CREATE TABLE kept (n int, token bigint);
GRANT INSERT ON kept TO clerk;
CREATE TABLE gone (id int PRIMARY KEY, stock int NOT NULL);
INSERT INTO gone VALUES (1, 10);
SELECT interlock.enable_escrow('gone', 'stock'), interlock.adjust('gone', 1, 'stock', -1);
));
$node->safe_psql('source', "SELECT interlock.adjust('item', i, 'stock', $_) FROM generate_series(1, 2) i") for -1, 1;
$node->safe_psql('source', "SET ROLE clerk; INSERT INTO kept SELECT $_, token FROM interlock.reserve('item', 1, 'stock', 1.25, '1 day', 'cart $_')") for 1 .. 4;
$node->safe_psql('source', "INSERT INTO kept SELECT 5, token FROM interlock.reserve('item', 2, 'stock', 4, '1 ms')");
$node->safe_psql('source', "SELECT interlock.reserve('gone', 1, 'stock', 1, '1 h')");
$node->safe_psql('source', 'DROP TABLE gone');
my %token = map { split /\|/ } split /\n/, $node->safe_psql('source', 'SELECT n, token FROM kept');
$node->safe_psql('source', "SELECT interlock.confirm_reservation($token{1})");
$node->safe_psql('source', "BEGIN; SELECT interlock.cancel_reservation($token{2}); PREPARE TRANSACTION 'cancel'");

my $look = q(SELECT id, interlock.escrow_value('item', id, 'stock'), (SELECT string_agg(concat_ws(' ', token, amount, holder, role, expires_at), ', ' ORDER BY token)
    FROM interlock.reservations WHERE key = format('{%s}', id)) FROM item ORDER BY id);
my $expected = $node->safe_psql('source', $look);
like($expected, qr/^1\|5\.00\|.*cart.*\n2\|6\.00\|/, 'three reservations, one of which is expired, and one undecided');

my $dump = $node->basedir . '/source.dump';
$node->command_ok([ 'pg_dump', '-Fc', '-f', $dump, $node->connstr('source') ], 'a dump');
$node->safe_psql('postgres', 'CREATE DATABASE copy');
$node->safe_psql('copy', 'CREATE TABLE shift_the_oids (id int); DROP TABLE shift_the_oids');
$node->command_ok([ 'pg_restore', '--exit-on-error', '-j', '2', '-d', $node->connstr('copy'), $dump ], 'is restored');
is($node->safe_psql('copy', $look), $expected, 'the copy has the same values, and the same reservations');
is($node->safe_psql('copy', 'SELECT count(*) FROM interlock_internal.escrow_reservation'), 4, 'and none of the table that was dropped');

sub in_copy { my ($role, $sql) = @_; my ($status, $out, $error) = $node->psql('copy', "SET SESSION AUTHORIZATION $role; $sql"); return $status == 0 ? $out : $error; }
my $adjust = "SELECT outcome, remaining FROM interlock.try_adjust('item', 1, 'stock',";
is($node->safe_psql('copy', "$adjust -9.99)"), 'insufficient|5.00', 'what is sold is sold');
is($node->safe_psql('copy', "$adjust 1.26)"), 'pending|5.00', 'and their room is kept');
is($node->safe_psql('copy', "$adjust 1.25)"), 'adjusted|6.25', 'but no more');
$node->safe_psql('copy', "$adjust -1.25)");
is(in_copy('other', "SELECT interlock.cancel_reservation($token{2})"), 'f', 'another role has no right to them');
is(in_copy('clerk', "SELECT interlock.cancel_reservation($token{2})"), 't', 'the role of that name cancels one');
is(in_copy('clerk', "SELECT interlock.confirm_reservation($token{3})"), '', 'confirms one');
is(in_copy('clerk', "SELECT interlock.extend_reservation($token{4}, '2 days') IS NOT NULL"), 't', 'extends one');
is(in_copy('clerk', "SELECT interlock.cancel_reservation($token{3})"), 'f', 'once');
is($node->safe_psql('copy', "SELECT interlock.fold_escrow('item')"), 2, 'what has expired is given back');
is($node->safe_psql('copy', 'SELECT id, stock FROM item ORDER BY id'), "1|6.25\n2|10.00", 'exactly');
is($node->safe_psql('source', $look), $expected, 'the source is as it was');
$node->safe_psql('source', "COMMIT PREPARED 'cancel'");
is($node->safe_psql('source', "SELECT interlock.escrow_value('item', 1, 'stock')"), '6.25', 'and goes on');

$node->backup('backup');
my $other = PostgreSQL::Test::Cluster->new('other');
$other->init_from_backup($node, 'backup');
$other->append_conf('postgresql.conf', 'interlock.sweeper = on');
$other->start;
ok($other->poll_query_until('source', "SELECT stock = 10 FROM item WHERE id = 2"), 'a base backup gives back what has expired');
is($other->safe_psql('source', "SELECT interlock.confirm_reservation($token{3}), interlock.cancel_reservation($token{4}), interlock.escrow_value('item', 1, 'stock')"),
    '|t|6.25', 'and has the others');

$node->stop;
$other->stop;
done_testing();
