# Idempotency over the life of sessions and servers: waiting duplicates wake, killed workers are replaced,
# tokens grow over a crash and a restore, expired keys go.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../lib";
use PostgreSQL::Test::Utils;
use Server;
use Test::More;
use Time::HiRes qw(usleep);

my $node = start_server(q(
max_prepared_transactions = 5
interlock.sweeper_rescan = 1
));
$node->safe_psql('postgres', q(
    SELECT interlock.define_idempotency_scope('job', 'job', stale_after => '1 hour');
    SELECT interlock.define_idempotency_scope('brief', 'job', stale_after => '1 s');
    CREATE ROLE app;
    SELECT interlock.grant_idempotency_scope('job', 'app');
    CREATE FUNCTION token(k text) RETURNS bigint LANGUAGE sql AS 'SELECT token FROM interlock.idempotency WHERE key = k';
));

sub session { return $node->background_psql('postgres', on_error_stop => 0); }

# A session that claims the key and waits for as long as it takes; returned once it sleeps.
sub start_waiting
{
    my ($key, $name, %options) = @_;
    my $session = session();
    $session->query_safe("SET application_name = 'waiter'; $options{begin}") if $options{begin};
    $session->query_safe("SET application_name = 'waiter'") if !$options{begin};
    my $scope = $options{scope} || 'job';
    $session->query_until(qr/started/, "\\echo started\nSELECT outcome, attempt, response FROM interlock.idempotency_claim('$scope', '$key', wait => '1 hour');\n");
    ok($node->poll_query_until('postgres',
            "SELECT count(*) = 1 FROM pg_stat_activity WHERE application_name = 'waiter' AND wait_event_type IN ('Extension', 'Lock')"),
        "$name: it waits");
    return $session;
}

# What its claim returned in the end.
sub answer
{
    my ($session) = @_;
    my $answer = $session->query('SELECT 1');
    my $error = $session->{stderr};
    $session->quit;
    return $error =~ /(ERROR: .*)/ ? $1 : $answer =~ s/\n1$//r;
}

sub claim { return $node->safe_psql('postgres', "SELECT outcome, attempt FROM interlock.idempotency_claim('$_[0]', '$_[1]')"); }

# A duplicate wakes when the first one ends, however it ends
is(claim('job', 'done'), 'acquired|1', 'claimed');
my $waiter = start_waiting('done', 'completed');
$node->safe_psql('postgres', "SELECT interlock.idempotency_complete('job', 'done', token('done'), '{\"a\": 1}')");
is(answer($waiter), 'replay|1|{"a": 1}', 'completed: it gets the response');

claim('job', 'failed');
$waiter = start_waiting('failed', 'failed');
$node->safe_psql('postgres', "SELECT interlock.idempotency_fail('job', 'failed', token('failed'))");
is(answer($waiter), 'acquired|2|', 'failed: it tries again');

claim('job', 'refused');
$waiter = start_waiting('refused', 'refused');
$node->safe_psql('postgres', "SELECT interlock.idempotency_fail('job', 'refused', token('refused'), '\"no\"', false)");
is(answer($waiter), 'failed|1|"no"', 'failed for good: it is told');

claim('job', 'hogged');
$waiter = start_waiting('hogged', 'hogged');
is($node->safe_psql('postgres', "SELECT interlock.idempotency_forget('job', 'hogged', 'nobody ends it', force => true)"), 't', 'hogged: an operator takes it');
is(answer($waiter), 'acquired|1|', 'hogged: who waits for it wakes, and gets it');

claim('job', 'undecided');
$waiter = start_waiting('undecided', 'rolled back');
$node->safe_psql('postgres', "BEGIN; SELECT interlock.idempotency_complete('job', 'undecided', token('undecided')); ROLLBACK;
    SELECT interlock.idempotency_complete('job', 'undecided', token('undecided'), '2')");
is(answer($waiter), 'replay|1|2', 'an end that is rolled back is none');

is(claim('brief', 'stale'), 'acquired|1', 'claimed for a second');
$waiter = start_waiting('stale', 'stale', scope => 'brief');
is(answer($waiter), 'acquired|2|', 'stale: it takes over when the deadline has passed');

claim('brief', 'pinned');
my $pin = session();
$pin->query_safe("BEGIN; SELECT interlock.idempotency_assert('brief', 'pinned', token('pinned')); SELECT pg_sleep(1.2)");
is(claim('brief', 'pinned'), 'in_progress|1', 'asserted: nobody takes it over, stale or not');
$waiter = start_waiting('pinned', 'asserted', scope => 'brief');
$pin->query_safe('COMMIT');
is(answer($waiter), 'acquired|2|', 'asserted: taken over when the transaction has ended');
$pin->quit;

# A change of the row that is not committed is waited for, whatever becomes of it
claim('brief', 'extended');
$node->safe_psql('postgres', 'SELECT pg_sleep(1.1)');
my $holder = session();
for my $end ('ROLLBACK', 'COMMIT')
{
    $holder->query_safe("BEGIN; SELECT interlock.idempotency_extend('brief', 'extended', token('extended'))");
    $waiter = start_waiting('extended', "extended, $end", scope => 'brief');
    $holder->query_safe($end);
    is(answer($waiter), $end eq 'ROLLBACK' ? 'acquired|2|' : 'acquired|3|', "extended, $end: taken over in the end");
    $node->safe_psql('postgres', 'SELECT pg_sleep(1.1)');
}
$holder->quit;
claim('job', 'completed later');
$waiter = start_waiting('completed later', 'prepared end');
$node->safe_psql('postgres', "BEGIN; SELECT interlock.idempotency_complete('job', 'completed later', token('completed later'), '5'); PREPARE TRANSACTION 'p'");
$node->safe_psql('postgres', "COMMIT PREPARED 'p'");
is(answer($waiter), 'replay|1|5', 'prepared end: it wakes');

# Crosswise: the deadlock is seen, though one of the claims is committed
claim('job', 'left');
my ($left, $right) = (session(), session());
$right->query_safe("BEGIN; SELECT interlock.idempotency_complete('job', 'left', token('left'))");
$left->query_safe("BEGIN; SELECT interlock.idempotency_claim('job', 'right')");
$left->query_until(qr/started/, "\\echo started\nSELECT outcome FROM interlock.idempotency_claim('job', 'left', wait => '1 hour');\n");
ok($node->poll_query_until('postgres', "SELECT count(*) = 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock'"), 'crosswise: one waits');
my $crossed = $right->query("SELECT outcome FROM interlock.idempotency_claim('job', 'right', wait => '1 hour')");
my $told = $right->{stderr} . $left->query('SELECT 1') . $left->{stderr};
like($told, qr/deadlock detected/, 'crosswise: a deadlock');
eval { $_->quit } for ($left, $right);

# A client that is gone does not keep the process that waits for it
claim('job', 'gone');
$waiter = start_waiting('gone', 'client gone');
$waiter->{run}->signal('KILL');
eval { $waiter->quit };
ok($node->poll_query_until('postgres', "SELECT count(*) = 0 FROM pg_stat_activity WHERE application_name = 'waiter'"), 'LEA-1, client gone: its wait is over');

# Who waits, or has waited, with an old snapshot holds up nobody
claim('job', 'unhindered');
my $reader = session();
$reader->query_safe("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT interlock.idempotency_claim('job', 'unhindered', wait => '100 ms')");
is($node->safe_psql('postgres', "SET lock_timeout = '5 s'; SELECT interlock.idempotency_complete('job', 'unhindered', token('unhindered'))"), 't',
    'an old snapshot holds up nobody');
like($reader->query("SELECT interlock.idempotency_claim('job', 'unhindered')") . $reader->{stderr}, qr/could not serialize access/,
    'and is told when the key has ended');
eval { $reader->quit };

# A snapshot that is older than the end
claim('job', 'old snapshot');
$waiter = start_waiting('old snapshot', 'old snapshot', begin => 'BEGIN ISOLATION LEVEL REPEATABLE READ');
$node->safe_psql('postgres', "SELECT interlock.idempotency_complete('job', 'old snapshot', token('old snapshot'))");
like(answer($waiter), qr/could not serialize access/, 'old snapshot: 40001');

# IDM-11: a worker whose claim is not committed is killed
my $worker = session();
$worker->query_safe("SET application_name = 'worker'; BEGIN; SELECT interlock.idempotency_claim('job', 'killed')");
$waiter = start_waiting('killed', 'killed');
$node->safe_psql('postgres', "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'worker'");
is(answer($waiter), 'acquired|1|', 'killed: the next one gets it');
eval { $worker->quit };

# A waiter is canceled, and nothing of it is left
claim('job', 'canceled');
$waiter = start_waiting('canceled', 'canceled');
$node->safe_psql('postgres', "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE application_name = 'waiter'");
like(answer($waiter), qr/canceling statement due to user request/, 'canceled: it is told');
is($node->safe_psql('postgres', 'SELECT count(*) FROM interlock.key_locks'), '0', 'canceled: no lock is left');

# A prepared claim is in progress until it is decided
$node->safe_psql('postgres', "BEGIN; SELECT interlock.idempotency_claim('job', 'prepared'); PREPARE TRANSACTION 'p'");
is(claim('job', 'prepared'), 'in_progress|', 'prepared: in progress');
my $lookup = "SELECT status, attempt FROM interlock.idempotency_lookup('job', 'prepared')";
is($node->safe_psql('postgres', $lookup), 'pending|', 'IDM-53: and pending for a lookup');
$node->restart;
is($node->safe_psql('postgres', $lookup), 'pending|', 'IDM-53: over a restart, too');
$waiter = start_waiting('prepared', 'prepared');
$node->safe_psql('postgres', "ROLLBACK PREPARED 'p'");
is(answer($waiter), 'acquired|1|', 'prepared: rolled back, the next one gets it');

# A scope that a prepared transaction defines is that of the claims after its end, for who kept what was before and for who prepared it
my ($keeper, $definer) = (session(), session());
sub stale_after
{
    my ($session, $key) = @_;
    $session->query_safe("SELECT interlock.idempotency_claim('scope', '$key')");
    return $node->safe_psql('postgres', "SELECT deadline - claimed_at FROM interlock.idempotency WHERE scope = 'scope' AND key = '$key'");
}
is(stale_after($keeper, 1), '00:01:00', 'scope: not defined');
$definer->query_safe("BEGIN; SELECT interlock.define_idempotency_scope('scope', stale_after => '2 hours'); PREPARE TRANSACTION 'p'");
is(stale_after($keeper, 2), '00:01:00', 'scope: prepared');
is(stale_after($definer, 3), '00:01:00', 'scope: prepared by itself');
$node->safe_psql('postgres', "COMMIT PREPARED 'p'");
is(stale_after($keeper, 4), '02:00:00', 'scope: committed');
is(stale_after($definer, 5), '02:00:00', 'scope: committed for another');
$_->quit for ($keeper, $definer);

# Tokens grow over a crash; claims and ends that were committed are there
claim('job', 'crash');
my $token = $node->safe_psql('postgres', "SELECT token('crash')");
$node->stop('immediate');
$node->start;
is(claim('job', 'crash'), 'in_progress|1', 'crash: the claim is still there');
claim('job', 'after');
cmp_ok($node->safe_psql('postgres', "SELECT token('after')"), '>', $token, 'crash: tokens grow');
is($node->safe_psql('postgres', "SELECT interlock.idempotency_complete('job', 'crash', $token, '3')"), 't', 'crash: the holder completes');

# and over dump and restore, with scopes and keys
$node->safe_psql('postgres', 'CREATE DATABASE copy');
$node->command_ok([ 'pg_dump', '-Fc', '-f', $node->basedir . '/dump', '-d', $node->connstr('postgres') ], 'dump');
$node->command_ok([ 'pg_restore', '-d', $node->connstr('copy'), $node->basedir . '/dump' ], 'restore');
is($node->safe_psql('copy', "SELECT outcome, response FROM interlock.idempotency_claim('job', 'crash')"), 'replay|3', 'restored: replayed');
is($node->safe_psql('copy', "SELECT count(*) FROM interlock.idempotency_scope"), 3, 'restored: scopes');
$token = $node->safe_psql('postgres', "SELECT max(token) FROM interlock.idempotency");
cmp_ok($node->safe_psql('copy', "SELECT token FROM interlock.idempotency_claim('job', 'restored')"), '>', $token, 'restored: tokens grow');

# SEC-10: with those that they are granted to
my ($ret, $out, $err) = $node->psql('copy', "SET ROLE app; SELECT outcome FROM interlock.idempotency_claim('job', 'crash')");
is($out, 'replay', 'restored: grants');
($ret, $out, $err) = $node->psql('copy', "SET ROLE app; SELECT interlock.idempotency_claim('brief', 'stale')");
like($err, qr/scope "brief" is not granted to role "app"/, 'restored: no more than that');

# OPS-3: a dump of the data alone leaves triggers that do not fire in every session. What the tables say is still read once, and
# what is changed without them is seen a little later
$node->safe_psql('postgres', 'CREATE DATABASE data');
$node->safe_psql('data', 'CREATE EXTENSION pg_interlock');
my $data = $node->basedir . '/data.sql';
$node->command_ok([ 'pg_dump', '--data-only', '--disable-triggers', '-f', $data, '-d', $node->connstr('postgres') ], 'dump of the data');
$node->command_ok([ 'psql', '-qX', '-v', 'ON_ERROR_STOP=1', '-f', $data, '-d', $node->connstr('data') ], 'restore of the data');
is($node->safe_psql('data', "SELECT DISTINCT tgenabled FROM pg_trigger WHERE tgname = 'zzz_interlock_scope'"), 'O', 'data: other triggers');
is($node->safe_psql('data', q(
    CREATE TABLE reads (n int, relation regclass);
    GRANT ALL ON reads TO app;
    SET ROLE app;
    DO $$ BEGIN
        FOR n IN 1 .. 100 LOOP
            PERFORM interlock.idempotency_claim('job', 'crash');
            INSERT INTO reads SELECT n, relation FROM pg_locks WHERE pid = pg_backend_pid() AND mode = 'AccessShareLock'
                AND relation IN ('interlock.idempotency_scope'::regclass, 'interlock.idempotency_grant'::regclass);
            COMMIT;
        END LOOP;
    END $$;
    SELECT count(DISTINCT n) BETWEEN 1 AND 99 FROM reads)), 't', 'data: scopes and grants are not read by each claim');
my $app = $node->background_psql('data', on_error_stop => 0);
$app->query_safe('SET ROLE app');
sub app_claims { my $answer = $app->query("SELECT outcome FROM interlock.idempotency_claim('$_[0]', 'crash')"); $app->{stderr} = ''; return $answer; }
is(app_claims('job'), 'replay', 'data: granted');
is(app_claims('brief'), '', 'data: not granted');
$node->safe_psql('data', "SELECT interlock.grant_idempotency_scope('brief', 'app')");
is(app_claims('brief'), 'acquired', 'data: a grant counts at once');
$node->safe_psql('data', "SET session_replication_role = replica; DELETE FROM interlock.idempotency_grant WHERE scope = 'job'");
my $claimed;
for (1 .. 10 * $PostgreSQL::Test::Utils::timeout_default)
{
    $claimed = app_claims('job');
    last if $claimed eq '';
    usleep(100_000);
}
is($claimed, '', 'data: what is revoked without the trigger is noticed');
$app->quit;

# The sweeper deletes what has expired, and nothing else
$node->safe_psql('postgres', q(
    INSERT INTO interlock.idempotency (scope, key, status, claimed_at, deadline, expires_at)
        SELECT 'job', 'expired ' || g, 'completed', now(), now(), now() - interval '1 s' FROM generate_series(1, 5000) g));
is(claim('job', 'live'), 'acquired|1', 'a live claim');
ok($node->poll_query_until('postgres', "SELECT count(*) = 0 FROM interlock.idempotency WHERE key ~ '^expired'"), 'expired keys are deleted');
is(claim('job', 'live'), 'in_progress|1', 'the live claim is untouched');
ok($node->poll_query_until('postgres', "SELECT last_error IS NULL FROM interlock.sweeper WHERE database = 'postgres'"), 'no error');

# A key that something refers to is left, and does not hold up the others
$node->safe_psql('postgres', q(
    CREATE TABLE item (scope text, key text, FOREIGN KEY (scope, key) REFERENCES interlock.idempotency);
    CREATE TABLE later (scope text, key text, FOREIGN KEY (scope, key) REFERENCES interlock.idempotency DEFERRABLE INITIALLY DEFERRED);
    INSERT INTO interlock.idempotency (scope, key, status, claimed_at, deadline, expires_at)
        SELECT 'job', 'expired ' || g, 'completed', now(), now(), now() + interval '1 h' FROM generate_series(1, 500) g;
    INSERT INTO item VALUES ('job', 'expired 250')));
my $blocker = session(); # even when finding out would mean to wait
$blocker->query_safe('BEGIN; SELECT * FROM item FOR UPDATE');
$node->safe_psql('postgres', "UPDATE interlock.idempotency SET expires_at = now() - interval '1 s' WHERE key ~ '^expired'");
ok($node->poll_query_until('postgres', "SELECT count(*) = 1 FROM interlock.idempotency WHERE key ~ '^expired'"), 'a key in use is left alone');
is($node->safe_psql('postgres', "SELECT key, expires_at > now() FROM interlock.idempotency WHERE key ~ '^expired'"), 'expired 250|t', 'for an hour');
is($node->safe_psql('postgres', q(SELECT outcome FROM interlock.idempotency_claim('job', 'expired 250', '{"other": 1}'))), 'acquired', 'and is as free as it was for any request');
is($node->safe_psql('postgres', "SELECT deadline > now() FROM interlock.idempotency WHERE key = 'expired 250'"), 't', 'with a deadline of its own');
$blocker->quit;
my $token = $node->safe_psql('postgres', "SELECT token FROM interlock.idempotency_claim('job', 'late')");
$node->safe_psql('postgres', "INSERT INTO item VALUES ('job', 'late')");
$blocker = session();
$blocker->query_safe('BEGIN; SELECT * FROM item FOR UPDATE');
$node->safe_psql('postgres', "UPDATE interlock.idempotency SET expires_at = now() - interval '1 s', deadline = now() - interval '1 s' WHERE key = 'late'");
ok($node->poll_query_until('postgres', "SELECT expires_at > now() FROM interlock.idempotency WHERE key = 'late'"), 'a claim that has expired is left, too');
my (undef, undef, $late) = $node->psql('postgres', "\\set VERBOSITY verbose\nSELECT interlock.idempotency_complete('job', 'late', $token, '1')");
like($late, qr/IL008/, 'and its owner has lost it');
is($node->safe_psql('postgres', q(SELECT outcome FROM interlock.idempotency_claim('job', 'late', '{"other": 1}'))), 'acquired', 'to anybody');
$blocker->quit;

# Without preload a waiter looks again and again
$node->append_conf('postgresql.conf', "shared_preload_libraries = ''");
$node->restart;
claim('job', 'polled');
$waiter = start_waiting('polled', 'without preload');
$node->safe_psql('postgres', "SELECT interlock.idempotency_complete('job', 'polled', token('polled'), '4')");
is(answer($waiter), 'replay|1|4', 'without preload: it gets the response');
$node->stop;
done_testing();
