# SEC-3: a lease that open transactions have asserted stays in the way when it is over. The view shows whose they are,
# break_lease names them, and ends them if it is asked to.

use strict;
use warnings;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('main');
$node->init;
$node->append_conf('postgresql.conf', q(
shared_preload_libraries = 'pg_interlock'
interlock.sweeper = off
));
$node->start;
$node->safe_psql('postgres', q(
CREATE EXTENSION pg_interlock;
CREATE ROLE worker LOGIN;
CREATE ROLE operator LOGIN;
GRANT EXECUTE ON FUNCTION interlock.break_lease TO operator;
CREATE TABLE work (done text);
GRANT ALL ON work TO worker));

sub ask { return $node->safe_psql('postgres', $_[0]); }

# The SQLSTATE, message and detail of the first error, else what the statement returns.
sub attempt
{
    my ($role, $sql) = @_;
    my ($status, $out, $error) =
      $node->psql('postgres', "\\set VERBOSITY verbose\n$sql", extra_params => [ '-U', $role ]);
    return $error =~ /ERROR: +(.*)/s ? $1 : $out;
}

sub acquire
{
    my ($role, $key, $ttl, $more) = @_;
    return ask("SET ROLE $role; SELECT token FROM interlock.acquire_lease('$key', '$ttl'" . ($more // '') . ')');
}

# A session of the role whose transaction has asserted the lease.
sub pinner
{
    my ($role, $key, $token) = @_;
    my $psql = $node->background_psql('postgres', on_error_stop => 0, extra_params => [ '-U', $role ]);
    my $pid = $psql->query_safe('SELECT pg_backend_pid()');
    $psql->query_safe("BEGIN; INSERT INTO work VALUES ('$key'); SELECT interlock.assert_lease('$key', $token)");
    return { psql => $psql, pid => $pid };
}

sub finish { eval { $_->{psql}->quit } for @_; return; }

my $me = ask('SELECT current_user');

# --- In a parallel worker, by a function that is wrongly said to be safe there --------------------------

$node->safe_psql('postgres', q(
    SELECT interlock.acquire_lease('parallel', '1 h');
    CREATE TABLE parallel_row (id int PRIMARY KEY DEFAULT 1, version int NOT NULL DEFAULT 1);
    SELECT interlock.enable_versioning('parallel_row'), interlock.enable_history('parallel_row'), interlock.enable_marker('parallel_row');
    INSERT INTO parallel_row DEFAULT VALUES;
    CREATE FUNCTION run(sql text) RETURNS void PARALLEL SAFE LANGUAGE plpgsql AS 'BEGIN EXECUTE sql; END'));
my $parallel = ask(q(SELECT name FROM pg_settings WHERE name IN ('force_parallel_mode', 'debug_parallel_query')));
for my $sql (q(SELECT interlock.assert_lease('parallel', token) FROM interlock.leases WHERE key = 'parallel'),
    q(SELECT interlock.acquire_lease('bound', bind => 'session')), q(SELECT interlock.acquire_leases('{bound}', bind => 'session')),
    q(SELECT interlock.lock_key('k')), q(SELECT interlock.try_lock_keys('{k}', scope => 'session')),
    q(SELECT interlock.getapplock('r', 'Shared', 'Session')), q(SELECT interlock.select_for_update('parallel_row', '[1]')),
    q(SELECT interlock.assert_version('parallel_row', 1, 1)), q(SELECT interlock.claim_rows('parallel_row', 'h', 1)),
    q(SELECT interlock.revert_row('parallel_row', 1, 1)), q(SELECT interlock.try_revert_row('parallel_row', 1, 1)),
    q(SELECT interlock.disable_history('parallel_row')), q(SELECT interlock.enable_marker('parallel_row')), q(SELECT interlock.suppress_history('parallel_row')),
    q(SELECT interlock_internal.escrow_entry(1)))
{
    my ($name) = $sql =~ /interlock\w*\.(\w+)/;
    like(attempt($me, "SET $parallel = on; SELECT run(\$\$$sql\$\$)"), qr/^25000: cannot execute (?:interlock\.\w+\(\)|SELECT FOR UPDATE|a function that configures a table|a function of escrow counters) during a parallel operation/,
        "$name is refused in a worker");
}
like(attempt($me, "SET $parallel = on; SELECT run(\$\$SELECT interlock.idempotency_lookup('s', 'k')\$\$)"),
    qr/^25000: cannot execute a function of interlock\.idempotency during a parallel operation/, 'idempotency keys are, too');
is(ask("SELECT pins FROM interlock.leases WHERE key = 'parallel'"), 0, 'and nothing is left pinned');
is(ask("SELECT interlock.break_lease('parallel', 'test') IS NOT NULL"), 't', 'the lease can be broken');
ask('DELETE FROM interlock.lease_audit');

# --- Who pins it ---------------------------------------------------------------------------------

my $token = acquire('worker', 'k', '2 s', ", holder => 'worker 1'");
is(ask("SELECT pins, pinned_by, pinned_since FROM interlock.leases WHERE key = 'k'"), '0||', 'not pinned: nothing to show');
my $pinner = pinner('worker', 'k', $token);
ok($node->poll_query_until('postgres', "SELECT expires_at < clock_timestamp() FROM interlock.leases WHERE key = 'k'"), 'it is over');
is(ask(q(SELECT pins, pinned_by, pinned_since = xact_start FROM interlock.leases, pg_stat_activity a
    WHERE key = 'k' AND a.pid = ANY (pinned_by))), "1|{$pinner->{pid}}|t", 'SEC-3: the view shows the process and the start of its transaction');

my $break = "SELECT interlock.break_lease('k', 'it hangs')";
my $terminate = "SELECT interlock.break_lease('k', 'it hangs', terminate => true)";
like(attempt('operator', $break), qr/^55006: .*DETAIL:  Processes: $pinner->{pid}\..*HINT: .*terminate => true/s,
    'SEC-3: break_lease says who pins it, and what to do');
like(attempt('operator', $terminate), qr/^42501: /, 'SEC-3: ending another session takes the right to');
ask('GRANT pg_signal_backend TO operator');
ask('REVOKE EXECUTE ON FUNCTION pg_terminate_backend FROM PUBLIC');
like(attempt('operator', $terminate), qr/^42501: permission denied for function pg_terminate_backend/, 'and so does the function');
ask('GRANT EXECUTE ON FUNCTION pg_terminate_backend TO PUBLIC');
my $super = pinner($me, 'super', acquire($me, 'super', '1 h', ", holder => 'super'"));
like(attempt('operator', "SELECT interlock.break_lease('super', 'x', true)"), qr/^42501: /, 'SEC-3: a superuser\'s session is for superusers');
is(ask("SELECT key, expires_at > clock_timestamp(), pinned_by FROM interlock.leases WHERE key = 'super'"), "super|t|{$super->{pid}}", 'and nothing is broken');
is(ask('SELECT count(*) FROM interlock.lease_audit'), 0, 'nor audited');

# --- Ending it -----------------------------------------------------------------------------------

my $waiter = $node->background_psql('postgres');
$waiter->query_until(qr/asked/, "\\echo asked\nSELECT outcome FROM interlock.acquire_lease('k', '1 h', null, 'next') \\gset\n");
ok($node->poll_query_until('postgres', 'SELECT count(*) = 1 FROM interlock.lease_waiters'), 'somebody waits');
is(attempt('operator', $terminate), 'worker 1', 'SEC-3: terminated and broken');
is($waiter->query_safe('\echo :outcome'), 'acquired', 'SEC-3: the next one has it');
is(ask("SELECT count(*) FROM work WHERE done = 'k'"), 0, 'what the transaction wrote is gone');
is(ask('SELECT broken_by, key, holder, reason, terminated FROM interlock.lease_audit'), "operator|k|worker 1|it hangs|{$pinner->{pid}}", 'SEC-3: audited');
like(slurp_file($node->logfile), qr/lease "k" of "worker 1" was broken: it hangs/, 'and logged');
is(ask("SELECT interlock.break_lease('super', 'x', true)"), 'super', 'a superuser may end any session');
$waiter->quit;
finish($pinner, $super);

# A live one, one that was released, and one that its transaction leaves meanwhile
for my $how ('live', 'released', 'left')
{
    $token = acquire('worker', $how, '1 h', ", holder => '$how'");
    $pinner = pinner('worker', $how, $token);
    ask("SELECT interlock.release_lease('$how', $token)") if $how eq 'released';
    like(attempt($me, "SELECT interlock.break_lease('$how', 'x')"), qr/^55006: /, "$how: it is pinned");
    $pinner->{psql}->query_safe('COMMIT') if $how eq 'left';
    is(ask("SELECT interlock.break_lease('$how', 'x', true)"), $how, "$how: broken");
    is(ask("SELECT outcome FROM interlock.acquire_lease('$how', '1 s')"), 'acquired', "$how: free");
    is(ask("SELECT count(*) FROM pg_stat_activity WHERE pid = $pinner->{pid}"), $how eq 'left' ? 1 : 0, "$how: whether its session is left");
    finish($pinner);
}
is(ask("SELECT string_agg(done, ',') FROM work"), 'left', 'only what was committed is there');

# Several that pin it, one of whom may not be ended; and several leases, one of which is pinned by oneself
my $other = acquire($me, 'mixed', '1 h', ", mode => 'shared'");
$token = acquire('worker', 'mixed', '1 h', ", mode => 'shared'");
my @mixed = (pinner('worker', 'mixed', $token), pinner($me, 'mixed', $token), pinner('worker', 'mixed', $token), pinner($me, 'mixed', $other));
my $ends = "SELECT interlock.break_lease('mixed', 'x', true)";
like(attempt('operator', $ends), qr/^42501: .*"mixed"/s, 'SEC-3: one of the sessions may not be ended');
like(attempt($me, "BEGIN; SELECT interlock.assert_lease('mixed', $other); $ends"), qr/^55006: .*pinned by the current transaction/, 'or is the own one');
is(ask('SELECT count(*) FROM pg_stat_activity WHERE pid IN (' . join(', ', map { $_->{pid} } @mixed) . ')'), 4, 'SEC-3: then none is ended');
is(ask("SELECT string_agg(pins::text, ' ' ORDER BY token) FROM interlock.leases WHERE key = 'mixed'"), '1 3', 'and no lease is broken');
is(ask("SELECT count(*) FROM (SELECT FROM regexp_split_to_table(($ends), ', ')) h"), 2, 'a superuser breaks them');
finish(@mixed);

# One's own transaction
like(attempt($me, q(BEGIN; SELECT interlock.assert_lease('own', token) FROM interlock.acquire_lease('own');
    SELECT interlock.break_lease('own', 'x', true))), qr/^55006: .*pinned by the current transaction/, 'not oneself');

# --- Many that pin one lease ---------------------------------------------------------------------

$token = acquire($me, 'many', '1 h', ", mode => 'shared'");
my $load = $node->basedir . '/pin.load';
append_to_file($load, "BEGIN;\nSELECT interlock.assert_lease('many', $token);\nSELECT pg_sleep(random() / 100);\nEND;\n");
my ($out, $error) = ('', '');
my @pgbench = ('pgbench', '-n', '-c', 40, '-t', 20, '-f', $load, '-h', $node->host, '-p', $node->port, 'postgres');
ok(IPC::Run::run(\@pgbench, '>', \$out, '2>', \$error), 'forty sessions assert one lease and end in any order') or diag($error);
is(ask("SELECT pins, pinned_by FROM interlock.leases WHERE key = 'many'"), '0|', 'none is left');

append_to_file($load, "BEGIN;\nSELECT interlock.assert_lease('many', $token);\nSELECT pg_sleep(600);\nEND;\n");
my $run = IPC::Run::start(\@pgbench, '>', \$out, '2>', \$error);
ok($node->poll_query_until('postgres', q(SELECT pins = 40 AND cardinality(pinned_by) = 40 AND pinned_by <@ array_agg(a.pid)
    FROM interlock.leases, pg_stat_activity a WHERE key = 'many' GROUP BY pins, pinned_by)), 'all of them are shown');
ok(ask("SELECT interlock.break_lease('many', 'too many', true) IS NOT NULL"), 'all of them are terminated');
is(ask('SELECT count(*) FROM interlock.leases WHERE pins > 0'), 0, 'and none pins it');
$run->finish;
unlike(slurp_file($node->logfile), qr/PANIC|TRAP|terminated by signal/, 'nothing crashed');
$node->stop;
done_testing();
