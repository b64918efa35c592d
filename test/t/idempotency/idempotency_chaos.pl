# IDM-28: eight clients send every payment many times, and the server is killed every few seconds, before and
# after effects are committed: every payment is charged once, and no key stays stuck. A payment whose key is forgotten is
# charged once more, and a worker that finds no checkpoint never finds an effect. CHAOS_SECONDS=600 runs it for longer.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../lib";
use PostgreSQL::Test::Utils;
use Server;
use Test::More;

my $seconds = $ENV{CHAOS_SECONDS} || 8;
my $payments = 50 * $seconds;
my $node = start_server("log_statement = none");
$node->safe_psql('postgres', q(
    SELECT interlock.define_idempotency_scope('job', 'job', stale_after => '500 ms');
    SELECT interlock.define_idempotency_scope('once', 'api', stale_after => '500 ms');
    SELECT interlock.define_idempotency_scope('away', 'job', stale_after => '500 ms');
    CREATE TABLE charge (kind text, payment int);
    -- A provider has transactions of its own, and knows the keys of its calls
    CREATE TABLE provider (payment int PRIMARY KEY);
    CREATE TABLE violation (what text);
    CREATE TABLE forgotten (payment int);
    CREATE FUNCTION again(request jsonb) RETURNS jsonb LANGUAGE sql AS
        $$INSERT INTO charge VALUES ('again', (request->>'payment')::int); SELECT request$$;
    -- Whatever is running is not forgotten
    CREATE FUNCTION forget(payment int) RETURNS void LANGUAGE plpgsql AS
        $$BEGIN INSERT INTO forgotten SELECT payment WHERE interlock.idempotency_forget('once', 'again ' || payment, 'chaos'); EXCEPTION WHEN object_in_use THEN NULL; END$$;
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
SELECT outcome FROM interlock.run_once('once', 'again ' || :payment, 'again(jsonb)', jsonb_build_object('payment', :payment), wait => '10 ms');
\\if :forgets = 1
SELECT forget(:payment);
\\endif
));

# The effect is elsewhere: a claim with its own deadline and state, a checkpoint before the call, and an answer with a body.
# Some are given back before the call. Some stop after it.
my $away = $node->basedir . '/away.load';
append_to_file($away, qq(
\\set payment random(1, $payments)
\\set fate random(1, 8)
\\set held false
SELECT outcome = 'acquired' AS mine, coalesce(token, 0) AS token, coalesce(checkpoint, '') = 'calling' AS called FROM interlock.idempotency_claim('away', 'payment ' || :payment,
    wait => CASE WHEN :fate = 8 THEN '20 ms' ELSE '0' END::interval, request_hash => sha256(:payment::text::bytea),
    stale_after => CASE WHEN :fate % 2 = 0 THEN '300 ms' END::interval, state => to_jsonb(:payment)) \\gset
\\if :mine
SELECT interlock.idempotency_extend('away', 'payment ' || :payment, :token) IS NOT NULL AS held \\gset
\\endif
\\if :held and not :called
INSERT INTO violation SELECT 'an effect without a checkpoint: ' || payment FROM provider, interlock.idempotency_lookup('away', 'payment ' || payment) k
    WHERE payment = :payment AND k.checkpoint IS NULL;
\\if :fate = 1
SELECT NOT interlock.idempotency_release('away', 'payment ' || :payment, :token) AND false AS held \\gset
\\else
BEGIN;
SELECT interlock.idempotency_extend('away', 'payment ' || :payment, :token) IS NOT NULL AS held \\gset
\\if :held
SELECT interlock.idempotency_checkpoint('away', 'payment ' || :payment, :token, 'calling', to_jsonb(:payment));
\\endif
COMMIT;
\\endif
\\endif
\\if :held
INSERT INTO provider VALUES (:payment) ON CONFLICT DO NOTHING;
\\endif
\\if :held and :fate <> 2
BEGIN;
SELECT interlock.idempotency_extend('away', 'payment ' || :payment, :token) IS NOT NULL AS held \\gset
\\if :held
INSERT INTO charge VALUES ('away', :payment);
SELECT interlock.idempotency_complete('away', 'payment ' || :payment, :token, to_jsonb(:payment), body => decode(lpad(to_hex(:payment), 8, '0'), 'hex'));
\\endif
COMMIT;
\\endif
));

my @pgbench = ('pgbench', '-n', '-c', 8, '-j', 2, '-f', $load, '-f', $away, '-h', $node->host, '-p', $node->port);
my $end = time + $seconds;
my $kills = 0;
my @errors;
while (time < $end)
{
    my $run = IPC::Run::start([ @pgbench, '-T', 60, 'postgres' ], '>', \my $out, '2>', \my $err);
    select(undef, undef, undef, 1 + rand(2));
    my ($postmaster) = slurp_file($node->data_dir . '/postmaster.pid') =~ /^(\d+)/;
    $node->kill9;
    $kills++;
    $run->finish;
    # A claim that was taken over is lost; the rest is the end of the server.
    push @errors, grep { /meta-command|ERROR: (?!  ?the claim of)/ } split /\n/, $err;
    for (1 .. 100) { last unless kill 0, $postmaster; select(undef, undef, undef, 0.1); }
    $node->start;
}
note("killed $kills times");
is(join("\n", @errors), '', 'no load failed');
is($node->safe_psql('postgres', 'SELECT count(DISTINCT kind) FROM charge'), 4, 'payments of each kind were charged');
is($node->safe_psql('postgres', q(SELECT count(*) FROM (SELECT FROM charge WHERE kind <> 'again' GROUP BY kind, payment HAVING count(*) > 1) twice)), 0, 'none of them twice');
is($node->safe_psql('postgres', q(SELECT count(*) FROM interlock.idempotency WHERE status = 'completed' AND expires_at > now())),
    $node->safe_psql('postgres', 'SELECT (SELECT count(*) FROM charge) - (SELECT count(*) FROM forgotten)'), 'every charge has its key, and every key its charge');
is($node->safe_psql('postgres', 'SELECT count(*) FROM forgotten'), $node->safe_psql('postgres', 'SELECT count(*) FROM interlock.idempotency_audit'), 'IDM-3: what is forgotten is audited');
is($node->safe_psql('postgres', q(SELECT count(*) FROM (SELECT payment, count(*) - (SELECT count(*) FROM forgotten f WHERE f.payment = c.payment) AS rest
    FROM charge c WHERE kind = 'again' GROUP BY payment) counted WHERE rest NOT BETWEEN 0 AND 1)), 0, 'IDM-3: and its work is done once more');
is($node->safe_psql('postgres', 'SELECT * FROM violation'), '', 'IDM-6: no effect came before its checkpoint');
is($node->safe_psql('postgres', q(SELECT count(*) FROM interlock.idempotency WHERE scope = 'away' AND status = 'completed'
    AND body IS DISTINCT FROM decode(lpad(to_hex(response::int), 8, '0'), 'hex'))), 0, 'IDM-5: each answer has its body');
is($node->safe_psql('postgres', q(SELECT count(*) FROM charge WHERE kind = 'away' AND payment NOT IN (SELECT payment FROM provider))), 0, 'what is completed was done');

# Nothing is stuck: whoever comes now gets every payment done
$node->safe_psql('postgres', 'SELECT pg_sleep(0.6)');
$node->safe_psql('postgres', qq(
    SELECT count(*) FROM generate_series(1, $payments) payment,
        LATERAL interlock.run_once('once', 'payment ' || payment, 'charge(jsonb)', jsonb_build_object('payment', payment));
    WITH claimed AS MATERIALIZED (
        SELECT payment, c.* FROM generate_series(1, $payments) payment, LATERAL interlock.idempotency_claim('job', 'payment ' || payment) c),
    charged AS (INSERT INTO charge SELECT 'job', payment FROM claimed WHERE outcome = 'acquired')
    SELECT interlock.idempotency_complete('job', 'payment ' || payment, token, '1') FROM claimed WHERE outcome = 'acquired';
    WITH claimed AS MATERIALIZED (
        SELECT payment, c.* FROM generate_series(1, $payments) payment,
            LATERAL interlock.idempotency_claim('away', 'payment ' || payment, request_hash => sha256(payment::text::bytea)) c),
    called AS (INSERT INTO provider SELECT payment FROM claimed WHERE outcome = 'acquired' ON CONFLICT DO NOTHING),
    charged AS (INSERT INTO charge SELECT 'away', payment FROM claimed WHERE outcome = 'acquired')
    SELECT interlock.idempotency_complete('away', 'payment ' || payment, token, '1') FROM claimed WHERE outcome = 'acquired'));
is($node->safe_psql('postgres', q(SELECT kind, count(*), count(DISTINCT payment) FROM charge WHERE kind <> 'again' GROUP BY kind ORDER BY kind)),
    "away|$payments|$payments\njob|$payments|$payments\nonce|$payments|$payments", 'every payment is charged once');
is($node->safe_psql('postgres', q(SELECT count(*) FROM interlock.idempotency WHERE status <> 'completed' AND expires_at > now())), 0, 'no key is stuck');
unlike(slurp_file($node->logfile), qr/TRAP|terminated by signal (?!9)/, 'nothing crashed by itself');
$node->stop;
done_testing();
