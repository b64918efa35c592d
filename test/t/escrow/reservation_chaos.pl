# Sessions that reserve, confirm, cancel, extend, take, roll back, prepare and are killed, a sweeper that gives back and folds, and
# crashes of the server: at every look what was stocked is left, reserved or sold, and no number is outside of its limits.
# STRESS_SECONDS=600 runs it for longer.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../lib";
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Server;

my $seconds = $ENV{STRESS_SECONDS} || 4;
my $node = start_server(q(
max_prepared_transactions = 50
interlock.max_escrow_counters = 16
log_statement = none
log_min_error_statement = panic
));
$node->safe_psql('postgres', q(
CREATE TABLE item (id int PRIMARY KEY, stock int NOT NULL CHECK (stock BETWEEN 0 AND 100));
INSERT INTO item SELECT i, CASE WHEN i = 1 THEN 60 ELSE 5 END FROM generate_series(1, 20) i;
SELECT interlock.enable_escrow('item', 'stock', maximum => 100);
CREATE TABLE sold (id int, n int);
CREATE TABLE cart (token bigint PRIMARY KEY, id int, n int);

-- cart has tokens of reservations that may be gone; a sale is what a confirmation has got.
CREATE FUNCTION try_one() RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    item int := CASE WHEN random() < 0.7 THEN 1 ELSE 1 + floor(random() * 20)::int END;
    amount int := 1 + floor(random() * 3)::int;
    what float := random();
    answer record;
    mine record;
BEGIN
    BEGIN
        IF what < 0.4 THEN
            SELECT * INTO answer FROM interlock.reserve('item', item, 'stock', amount, CASE WHEN random() < 0.3 THEN '20 ms' ELSE '10 s' END::interval);
            IF answer.outcome = 'reserved' THEN
                INSERT INTO cart VALUES (answer.token, item, amount);
            END IF;
        ELSIF what < 0.8 THEN
            SELECT * INTO mine FROM cart ORDER BY random() LIMIT 1 FOR UPDATE SKIP LOCKED;
            IF FOUND THEN
                DELETE FROM cart WHERE token = mine.token;
                IF what < 0.6 THEN
                    PERFORM interlock.confirm_reservation(mine.token);
                    INSERT INTO sold VALUES (mine.id, mine.n);
                ELSIF what < 0.75 THEN
                    PERFORM interlock.cancel_reservation(mine.token);
                ELSIF interlock.extend_reservation(mine.token, '1 s') IS NOT NULL THEN
                    INSERT INTO cart VALUES (mine.token, mine.id, mine.n);
                END IF;
            END IF;
        ELSE
            amount := CASE WHEN what < 0.9 THEN -amount ELSE amount END;
            SELECT * INTO answer FROM interlock.try_adjust('item', item, 'stock', amount);
            IF answer.outcome = 'adjusted' THEN
                INSERT INTO sold VALUES (item, -amount);
            END IF;
        END IF;
        IF random() < 0.1 THEN
            RAISE EXCEPTION 'changes its mind' USING ERRCODE = 'P0001';
        END IF;
    EXCEPTION WHEN raise_exception OR SQLSTATE 'IL008' OR lock_not_available THEN -- a prepared transaction may have a row's lock
        NULL;
    END;
END $$;
CREATE FUNCTION check_all() RETURNS text LANGUAGE sql STABLE AS $$
    SELECT string_agg(format('item %s: %s left, %s reserved, %s sold', i.id, v.value, r.reserved, s.sold), '; ')
      FROM item i CROSS JOIN LATERAL (SELECT interlock.escrow_value('item', i.id, 'stock') AS value) v
     CROSS JOIN LATERAL (SELECT coalesce(sum(n), 0) AS sold FROM sold WHERE sold.id = i.id) s
     CROSS JOIN LATERAL (SELECT coalesce(sum(amount), 0) AS reserved FROM interlock.reservations WHERE key = format('{%s}', i.id)) r
     WHERE v.value NOT BETWEEN 0 AND 100 OR v.value + r.reserved > 100 OR i.stock NOT BETWEEN 0 AND 100
        OR v.value + r.reserved + s.sold <> CASE WHEN i.id = 1 THEN 60 ELSE 5 END $$;
));
my $script = $node->basedir . '/chaos.sql';
append_to_file($script, q(
\set what random(1, 100)
\set number random(1, 1000000000)
SET lock_timeout = '200 ms';
BEGIN;
SELECT try_one();
SELECT try_one();
-- a PREPARE that finds no room would end the client
SELECT count(*) > 3 AS enough FROM pg_prepared_xacts \gset
\if :what < 80
COMMIT;
\elif :what < 95 or :enough
ROLLBACK;
\else
PREPARE TRANSACTION 'p:client_id:number';
\endif
));

my $looks = 0;
my $terminated = 0;
my $wrong = '';
for my $round (1 .. 3)
{
    my $handle = IPC::Run::start([ 'pgbench', '-n', '-h', $node->host, '-p', $node->port, '-c', 8, '-j', 2, '-T', $seconds, '-f', $script, 'postgres' ],
        '>', \my $out, '2>', \my $errors);
    my $end = time + $seconds;
    for (my $number = 0; $number < 2 || time < $end; $number++)
    {
        my $found = eval { $node->safe_psql('postgres', 'SELECT check_all()') } // '';
        $looks++;
        $wrong ||= $found;
        eval {
            # The load goes on with the clients that are left.
            $terminated += $node->safe_psql('postgres', q(SELECT count(pg_terminate_backend(pid)) FROM (SELECT pid FROM pg_stat_activity
                WHERE backend_type = 'client backend' AND pid <> pg_backend_pid() AND state <> 'idle' ORDER BY random() LIMIT 1) a))
                if $round == 2 && $terminated < 7;
            for my $gid (split /\n/, $node->safe_psql('postgres', 'SELECT gid FROM pg_prepared_xacts ORDER BY random() LIMIT 5'))
            {
                $node->safe_psql('postgres', (rand() < 0.5 ? 'COMMIT' : 'ROLLBACK') . " PREPARED '$gid'");
            }
        };
    }
    $node->stop($round == 1 ? 'immediate' : 'fast', fail_ok => 1) if $round != 2;
    IPC::Run::finish($handle);
    unlike($errors, qr/ (?:prepared|counters) /, "round $round: the load goes on to its end");
    $node->start if $round != 2;
    $wrong ||= $node->safe_psql('postgres', 'SELECT check_all()');
    is($wrong, '', "round $round: each look finds what was stocked");
}
cmp_ok($looks, '>', 3, 'looks');
cmp_ok($terminated, '>', 0, 'sessions were terminated');
$node->safe_psql('postgres', "ROLLBACK PREPARED '$_'") for split /\n/, $node->safe_psql('postgres', 'SELECT gid FROM pg_prepared_xacts');
cmp_ok($node->safe_psql('postgres', 'SELECT count(*) FROM sold'), '>', 20, 'there was something to do');
ok($node->poll_query_until('postgres', 'SELECT count(*) = 0 FROM interlock.reservations'), 'all reservations end');
is($node->safe_psql('postgres', 'SELECT check_all()'), '', 'and are given back once');
is($node->safe_psql('postgres', "SELECT count(*) FROM item i, interlock.try_adjust('item', i.id, 'stock', 100 - interlock.escrow_value('item', i.id, 'stock')) a
    WHERE interlock.escrow_value('item', i.id, 'stock') < 100 AND outcome <> 'adjusted'"), 0, 'all room can be filled');
is($node->safe_psql('postgres', "SELECT count(*) FROM item i, interlock.try_adjust('item', i.id, 'stock', -interlock.escrow_value('item', i.id, 'stock')) a
    WHERE interlock.escrow_value('item', i.id, 'stock') > 0 AND outcome <> 'adjusted'"), 0, 'and all that is there sold');

done_testing();
