# IDP-18: eight clients send every payment many times, and the server is killed every few seconds, before and
# after effects are committed: every payment is charged once, and no key stays stuck. CHAOS_SECONDS=600 runs it for longer.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";
use PostgreSQL::Test::Utils;
use Server;
use Test::More;

my $seconds = $ENV{CHAOS_SECONDS} || 8;
my $payments = 50 * $seconds;
my $node = start_server("log_statement = none");
$node->safe_psql('postgres', q(
    SELECT interlock.define_idempotency_scope('job', 'job', stale_after => '500 ms');
    SELECT interlock.define_idempotency_scope('once', 'api', stale_after => '500 ms');
    CREATE TABLE charge (kind text, payment int);
    CREATE FUNCTION charge(request jsonb) RETURNS jsonb LANGUAGE sql AS
        $$INSERT INTO charge VALUES ('once', (request->>'payment')::int); SELECT pg_sleep(random() * 0.002); SELECT request$$;
));

# One transaction: claim, effect and end. Several: claim, then effect and end under the token, as a worker does
# whose claim must outlive it; a fifth of these forget what they have claimed.
my $load = $node->basedir . '/payment.load';
append_to_file($load, qq(
\\set payment random(1, $payments)
\\set forgets random(1, 5)
SELECT outcome FROM interlock.run_once('once', 'payment ' || :payment, 'charge(jsonb)', jsonb_build_object('payment', :payment));
SELECT outcome = 'acquired' AS mine, coalesce(token, 0) AS token FROM interlock.idempotency_claim('job', 'payment ' || :payment) \\gset
\\if :mine
\\sleep 1 ms
\\if :forgets > 1
BEGIN;
SELECT interlock.idempotency_assert('job', 'payment ' || :payment, :token);
INSERT INTO charge VALUES ('job', :payment);
SELECT interlock.idempotency_complete('job', 'payment ' || :payment, :token, '1');
COMMIT;
\\endif
\\endif
));

my @pgbench = ('pgbench', '-n', '-c', 8, '-j', 2, '-f', $load, '-h', $node->host, '-p', $node->port);
my $end = time + $seconds;
my $kills = 0;
while (time < $end)
{
    my $run = IPC::Run::start([ @pgbench, '-T', 60, 'postgres' ], '>', \my $out, '2>', \my $err);
    select(undef, undef, undef, 1 + rand(2));
    my ($postmaster) = slurp_file($node->data_dir . '/postmaster.pid') =~ /^(\d+)/;
    $node->kill9;
    $kills++;
    $run->finish;
    for (1 .. 100) { last unless kill 0, $postmaster; select(undef, undef, undef, 0.1); }
    $node->start;
}
note("killed $kills times");
cmp_ok($node->safe_psql('postgres', 'SELECT count(*) FROM charge'), '>', 0, 'payments were charged');
is($node->safe_psql('postgres', 'SELECT count(*) FROM (SELECT FROM charge GROUP BY kind, payment HAVING count(*) > 1) twice'), 0, 'none of them twice');
is($node->safe_psql('postgres', q(SELECT count(*) FROM interlock.idempotency WHERE status = 'completed')),
    $node->safe_psql('postgres', 'SELECT count(*) FROM charge'), 'every charge has its key, and every key its charge');

# Nothing is stuck: whoever comes now gets every payment done
$node->safe_psql('postgres', 'SELECT pg_sleep(0.6)');
$node->safe_psql('postgres', qq(
    SELECT count(*) FROM generate_series(1, $payments) payment,
        LATERAL interlock.run_once('once', 'payment ' || payment, 'charge(jsonb)', jsonb_build_object('payment', payment));
    WITH claimed AS MATERIALIZED (
        SELECT payment, c.* FROM generate_series(1, $payments) payment, LATERAL interlock.idempotency_claim('job', 'payment ' || payment) c),
    charged AS (INSERT INTO charge SELECT 'job', payment FROM claimed WHERE outcome = 'acquired')
    SELECT interlock.idempotency_complete('job', 'payment ' || payment, token, '1') FROM claimed WHERE outcome = 'acquired'));
is($node->safe_psql('postgres', 'SELECT kind, count(*), count(DISTINCT payment) FROM charge GROUP BY kind ORDER BY kind'),
    "job|$payments|$payments\nonce|$payments|$payments", 'every payment is charged once');
is($node->safe_psql('postgres', q(SELECT count(*) FROM interlock.idempotency WHERE status <> 'completed')), 0, 'no key is stuck');
unlike(slurp_file($node->logfile), qr/TRAP|terminated by signal (?!9)/, 'nothing crashed by itself');
$node->stop;
done_testing();
