# ESC-55: carts of three items that are reserved, confirmed, confirmed in part, cancelled and extended, while backends are killed by SIGKILL, so that
# the server restarts, and others are terminated: at every look what was stocked is left, reserved or sold, no cart is reserved in part,
# no two carts deadlock, and escrow_check finds no difference.
# CARTS=10000 goes on until so many carts were reserved; ten_thousand_carts.pl does.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../lib";
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Server;

my $seconds = 1;
my $carts = $ENV{CARTS} // 50;
my $node = start_server(q(
restart_after_crash = on
log_statement = none
log_min_error_statement = panic
));
$node->safe_psql('postgres', q(
CREATE TABLE item (id int PRIMARY KEY, stock int NOT NULL CHECK (stock BETWEEN 0 AND 100));
INSERT INTO item SELECT i, 50 FROM generate_series(1, 6) i;
SELECT interlock.enable_escrow('item', 'stock', maximum => 100);
CREATE TABLE sold (id int, n int);
CREATE TABLE cart (token bigint PRIMARY KEY, items jsonb);
CREATE TABLE made (token bigint PRIMARY KEY);

-- cart has tokens of reservations that may be gone; a sale is what a confirmation has got.
CREATE FUNCTION try_cart() RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    what float := random();
    answer record;
    mine record;
    part jsonb;
BEGIN
    IF what < 0.5 THEN
        SELECT jsonb_agg(jsonb_build_object('rel', 'item', 'key', i, 'column', 'stock', 'amount', 1 + floor(random() * 3)::int)) INTO part
          FROM (SELECT i FROM generate_series(1, 6) i ORDER BY random() LIMIT 3) i;
        SELECT * INTO answer FROM interlock.reserve_many(part, CASE WHEN random() < 0.3 THEN '20 ms' ELSE '2 s' END::interval,
            wait => CASE WHEN random() < 0.5 THEN '0' ELSE '100 ms' END::interval);
        IF answer.outcome = 'reserved' THEN
            INSERT INTO cart VALUES (answer.token, part);
            INSERT INTO made VALUES (answer.token);
        END IF;
        RETURN answer.outcome;
    END IF;
    SELECT * INTO mine FROM cart ORDER BY random() LIMIT 1 FOR UPDATE SKIP LOCKED;
    IF NOT FOUND THEN
        RETURN 'none';
    END IF;
    DELETE FROM cart WHERE token = mine.token;
    part := mine.items;
    IF what < 0.65 THEN
        PERFORM interlock.confirm_reservation(mine.token);
    ELSIF what < 0.75 THEN
        part := jsonb_set(part, '{0,amount}', '1') - 1;
        PERFORM interlock.confirm_reservation(mine.token, items => part);
    ELSIF what < 0.9 THEN
        PERFORM interlock.cancel_reservation(mine.token);
        part := '[]';
    ELSE
        IF interlock.extend_reservation(mine.token, '1 s') IS NOT NULL THEN
            INSERT INTO cart VALUES (mine.token, mine.items);
        END IF;
        part := '[]';
    END IF;
    INSERT INTO sold SELECT (l->>'key')::int, (l->>'amount')::int FROM jsonb_array_elements(part) l;
    RETURN 'ended';
EXCEPTION WHEN SQLSTATE 'IL008' THEN
    RETURN 'lost';
END $$;
-- What returns comes back to the shop from time to time, for there to be something to do.
CREATE FUNCTION restock() RETURNS void LANGUAGE sql AS $$
    WITH back AS (DELETE FROM sold WHERE n > 0 AND ctid IN (SELECT ctid FROM sold WHERE n > 0 LIMIT 10 FOR UPDATE SKIP LOCKED) RETURNING id, n)
    SELECT interlock.adjust('item', id, 'stock', sum(n)) FROM back GROUP BY id ORDER BY id $$;
CREATE FUNCTION check_all() RETURNS text LANGUAGE sql STABLE AS $$
    SELECT string_agg(wrong, '; ') FROM (
        SELECT format('item %s: %s left, %s reserved, %s sold', i.id, v.value, r.reserved, s.sold) AS wrong
          FROM item i CROSS JOIN LATERAL (SELECT interlock.escrow_value('item', i.id, 'stock') AS value) v
         CROSS JOIN LATERAL (SELECT coalesce(sum(n), 0) AS sold FROM sold WHERE sold.id = i.id) s
         CROSS JOIN LATERAL (SELECT coalesce(sum(amount), 0) AS reserved FROM interlock.reservations WHERE key = format('{%s}', i.id)) r
         WHERE v.value NOT BETWEEN 0 AND 100 OR v.value + r.reserved > 100 OR i.stock NOT BETWEEN 0 AND 100 OR v.value + r.reserved + s.sold <> 50
         UNION ALL
        SELECT format('cart %s: %s of 3 items', token, count(*)) FROM interlock.reservations GROUP BY token HAVING count(*) <> 3 AND NOT bool_or(expired)
         UNION ALL
        SELECT format('books of %s: %s', key, difference) FROM interlock.escrow_check('item') WHERE difference <> 0 OR stored IS NULL) w $$;
));
my $script = $node->basedir . '/cart.sql';
append_to_file($script, q(
\set what random(1, 100)
BEGIN;
SELECT try_cart();
\if :what < 30
SELECT try_cart();
\endif
\if :what < 5
SELECT restock();
\endif
\if :what < 90
COMMIT;
\else
ROLLBACK;
\endif
));

# One call to a transaction cannot deadlock with others; two can, as the second one begins again at the first counter.
my $one_call = $node->basedir . '/one.sql';
append_to_file($one_call, 'SELECT try_cart();');

my $looks = 0;
my $wrong = '';
sub look { $looks++; $wrong ||= eval { $node->safe_psql('postgres', 'SELECT check_all()') } // ''; }
sub run_clients
{
    my ($file, $seconds, $disturb) = @_;
    my $handle = IPC::Run::start([ 'pgbench', '-n', '-h', $node->host, '-p', $node->port, '-c', 4, '-j', 2, '-T', $seconds, '--max-tries', 1, '-f', $file, 'postgres' ],
        '>', \my $out, '2>', \my $errors);
    my $end = time + $seconds;
    for (my $number = 0; $number < 2 || time < $end; $number++)
    {
        look();
        last if $disturb && $disturb->($number);
    }
    IPC::Run::finish($handle);
    return $out . $errors;
}
sub client { $node->safe_psql('postgres', q(SELECT pid FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid() AND state <> 'idle' ORDER BY random() LIMIT 1)) }

sub made { $node->safe_psql('postgres', 'SELECT count(*) FROM made') }

my $report = run_clients($one_call, $seconds);
unlike($report, qr/deadlock|aborted|ERROR/, 'carts in any order never deadlock');
is($wrong, '', 'and what was stocked is there at each look');

my $made = 0;
for (my $round = 1; $round <= 2 || $made < $carts; $round++)
{
    my $offset = -s $node->logfile;
    my $enough = $made + $carts / 10;
    my $terminated = 0;
    run_clients($script, $seconds + 180, sub { # the kill ends it
        my ($number) = @_;
        my $pid = eval { client() } or return 0;
        return kill('KILL', $pid) if $number >= 1 && (eval { made() } // 0) >= $enough;
        $terminated++ if $terminated < 2 && eval { $node->safe_psql('postgres', "SELECT pg_terminate_backend($pid)") };
        return 0;
    });
    ok($node->log_contains('was terminated by signal 9', $offset), "round $round: a backend was killed");
    ok($node->poll_query_until("postgres", "SELECT true"), "round $round: the server is back");
    $made = made();
    look();
    is($wrong, '', "and the books of $made carts agree");
}
cmp_ok($looks, '>', 4, 'looks');
cmp_ok($node->safe_psql('postgres', 'SELECT count(*) FROM sold'), '>', 20, 'there was something to do');
ok($node->poll_query_until('postgres', 'SELECT count(*) = 0 FROM interlock.reservations'), 'all reservations end');
is($node->safe_psql('postgres', 'SELECT check_all()'), '', 'and are given back once');
is($node->safe_psql('postgres', q(SELECT count(*) FROM interlock.escrow_check('item') WHERE difference = 0)), 6, 'each counter is proved');

done_testing();
