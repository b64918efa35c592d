# Two million reservations of one role that have expired and cannot be given back: those of others are, and counters are folded.
# only with --long

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../lib";
use PostgreSQL::Test::Utils;
use Server;
use Test::More;

my $node = start_server();
$node->safe_psql('postgres', q(
CREATE ROLE mallory; CREATE ROLE shop;
CREATE SCHEMA m AUTHORIZATION mallory; CREATE SCHEMA s AUTHORIZATION shop;
SET SESSION AUTHORIZATION mallory;
CREATE TABLE m.item (id int PRIMARY KEY, stock bigint NOT NULL);
INSERT INTO m.item VALUES (1, 1000000000);
SELECT interlock.enable_escrow('m.item', 'stock');
SELECT interlock.reserve('m.item', 1, 'stock', 1, '1 hour');
SET SESSION AUTHORIZATION shop;
CREATE TABLE s.item (id int PRIMARY KEY, stock bigint NOT NULL);
INSERT INTO s.item VALUES (1, 100), (2, 100);
SELECT interlock.enable_escrow('s.item', 'stock');
RESET SESSION AUTHORIZATION;
ALTER TABLE m.item DISABLE TRIGGER ALL;
INSERT INTO interlock_internal.escrow_reservation (token, counter, amount, holder, role_name, rows, reserved_at, expires_at)
SELECT (random() * 9e18)::int8, r.counter, r.amount, r.holder, r.role_name, r.rows, r.reserved_at, r.expires_at - interval '3 hours' + g * interval '1 ms'
  FROM interlock_internal.escrow_reservation r, generate_series(1, 2000000) g;
));
$node->safe_psql('postgres', 'VACUUM ANALYZE interlock_internal.escrow_reservation');

$node->safe_psql('postgres', q(SELECT interlock.reserve('s.item', 1, 'stock', 5, '2 s')));
$node->safe_psql('postgres', q(SELECT interlock.adjust('s.item', 2, 'stock', -1))) for 1, 2;
ok($node->poll_query_until('postgres', q(SELECT count(*) = 0 FROM interlock.reservations WHERE rel = 's.item'::regclass)), 'that of another role is given back');
ok($node->poll_query_until('postgres', q(SELECT sum(parts) = 0 FROM interlock.escrow WHERE rel = 's.item'::regclass)), 'and its counters are folded');
is($node->safe_psql('postgres', 'SELECT string_agg(stock::text, $$ $$ ORDER BY id) FROM s.item'), '100 98', 'nothing is lost');
like($node->safe_psql('postgres', 'SELECT last_error FROM interlock.sweeper'), qr/^table m\.item: .* does not fire in all sessions/, 'the view names the table');
is($node->safe_psql('postgres', 'SELECT count(*) FROM interlock_internal.escrow_reservation'), 2000001, 'whose reservations stay');

$node->stop;
done_testing();
