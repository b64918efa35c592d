# Sessions that take, return, roll back, prepare and are killed, a sweeper that folds, and crashes of the server: what was sold and
# what is left is what was stocked, and no snapshot sees a value outside of the limits. STRESS_SECONDS=600 runs it for longer.

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

CREATE FUNCTION try_one() RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    item int := CASE WHEN random() < 0.7 THEN 1 ELSE 1 + floor(random() * 20)::int END;
    delta int := CASE WHEN random() < 0.6 THEN -1 - floor(random() * 3)::int ELSE 1 + floor(random() * 3)::int END;
    answer text;
BEGIN
    BEGIN
        SELECT outcome INTO answer FROM interlock.try_adjust('item', item, 'stock', delta);
        IF answer = 'adjusted' THEN
            INSERT INTO sold VALUES (item, -delta);
        END IF;
        IF random() < 0.15 THEN
            RAISE EXCEPTION 'changes its mind' USING ERRCODE = 'P0001';
        END IF;
    EXCEPTION WHEN raise_exception OR lock_not_available THEN -- a prepared transaction may have the lock of a row
        NULL;
    END;
END $$;
CREATE FUNCTION check_all() RETURNS text LANGUAGE sql STABLE AS $$
    SELECT string_agg(format('item %s: %s left, %s sold', i.id, v.value, s.sold), '; ')
      FROM item i CROSS JOIN LATERAL (SELECT interlock.escrow_value('item', i.id, 'stock') AS value) v
     CROSS JOIN LATERAL (SELECT coalesce(sum(n), 0) AS sold FROM sold WHERE sold.id = i.id) s
     WHERE v.value NOT BETWEEN 0 AND 100 OR v.value + s.sold <> CASE WHEN i.id = 1 THEN 60 ELSE 5 END
        OR i.stock NOT BETWEEN 0 AND 100 $$;
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
    while (time < $end)
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
is($node->safe_psql('postgres', "SELECT count(*) FROM item i, interlock.try_adjust('item', i.id, 'stock', -interlock.escrow_value('item', i.id, 'stock')) a
    WHERE interlock.escrow_value('item', i.id, 'stock') > 0 AND outcome <> 'adjusted'"), 0, 'all that is left can be sold, at once');
cmp_ok($node->safe_psql('postgres', 'SELECT count(*) FROM sold'), '>', 20, 'there was something to do');
is($node->safe_psql('postgres', "SELECT interlock.fold_escrow('item') >= 0, (SELECT count(*) FROM item WHERE stock < 0)"), 't|0', 'a fold at the end');

done_testing();
