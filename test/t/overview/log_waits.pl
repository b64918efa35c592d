# interlock.log_waits: waits for leases, key locks and claims in the server log, once each, with their holders.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../lib";
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Server;

my $node = start_server(q(
interlock.sweeper = off
interlock.log_waits = '50 ms'
deadlock_timeout = '20 ms'
log_lock_waits = off
));

sub ask { return $node->safe_psql('postgres', $_[0]); }
sub logged { return slurp_file($node->logfile, $_[0]); }
sub session { my $psql = $node->background_psql('postgres', on_error_stop => 0); return ($psql, $psql->query_safe('SELECT pg_backend_pid()')); }

# A session waits by the statement; what is logged of it, until it has ended by what ends the wait.
sub wait_for
{
    my ($sql, $end, $ended) = @_;
    my $from = -s $node->logfile;
    my ($waiter, $pid) = session();
    $waiter->query_until(qr/started/, "\\echo started\n$sql;\n");
    ok($node->wait_for_log(qr/LOG:  process $pid still waiting/, $from), 'a line when it has lasted so long');
    if ($end)
    {
        ok($node->poll_query_until('postgres', "SELECT count(*) = 1 FROM interlock.blocking WHERE pid = $pid"), 'it goes on waiting');
        $end->();
    }
    ok($node->wait_for_log(qr/LOG:  process $pid $ended/, $from), 'and one when it has ended');
    $waiter->quit;
    my $log = logged($from);
    is(scalar(() = $log =~ /process $pid still waiting/g), 1, 'one line for each wait');
    return ($log, $pid);
}

# --- Leases ------------------------------------------------------------------------------------------------------

my $token = ask(q(SELECT token FROM interlock.acquire_lease('a/b', '1 day', holder => 'worker 1')));
my $role = ask('SELECT current_user');
my ($log) = wait_for(q(SELECT interlock.acquire_lease('a', wait => '1 day')), sub { ask("SELECT interlock.release_lease('a/b', $token)") }, 'acquired lease "a" after');
like($log, qr/still waiting for lease "a" after \d+\.\d{3} ms\n.*DETAIL:  It is held by "worker 1" \(role "$role"\) until 2/, 'holder and role of the lease in the way');
ask(q(SELECT interlock.break_leases('%', 'test')));
my ($pinner, $pinner_pid) = session();
$pinner->query_safe(q(BEGIN; SELECT interlock.assert_lease('p', (interlock.acquire_lease('p', '1 day', holder => 'pinner')).token)));
($log) = wait_for(q(SELECT interlock.acquire_lease('p', wait => '1 day')), sub { ask(q(SELECT interlock.break_lease('p', 'test', terminate => true))) }, 'acquired lease "p" after');
like($log, qr/DETAIL:  It is held by "pinner" \(role "$role", process $pinner_pid\)/, 'the process that pins it');
$token = ask(q(SELECT token FROM interlock.acquire_lease('t', '1 day')));
($log) = wait_for(q(SELECT interlock.acquire_lease('t', wait => '1 s')), undef, 'gave up waiting for lease "t" after');

# --- Key locks ---------------------------------------------------------------------------------------------------

my ($holder, $holder_pid) = session();
$holder->query_safe(q(BEGIN; SELECT interlock.lock_key('doc')));
($log) = wait_for(q(SELECT interlock.lock_key('doc')), sub { $holder->query_safe('COMMIT') }, 'acquired AccessExclusiveLock on advisory lock');
like($log, qr/DETAIL:  Process holding the lock: $holder_pid\..*\n.*CONTEXT:  (?:waiting for .*\n\t)?waiting for key "doc" in mode exclusive/, 'the holder, and the name of the key');
is(ask('SHOW log_lock_waits'), 'off', 'other locks are not logged');
$holder->query_safe(q(BEGIN; SELECT interlock.lock_key('doc')));
my $from = -s $node->logfile;
ask(q(SET interlock.log_waits = -1; SELECT interlock.try_lock_key('doc', wait => '200 ms')));
unlike(logged($from), qr/still waiting/, '-1 logs nothing');
ask(q(SELECT interlock.try_lock_key('doc', wait => '200 ms'), pg_sleep(0.1), current_setting('log_lock_waits')));
is(ask(q(SELECT interlock.try_lock_key('doc', wait => '200 ms'); SHOW log_lock_waits)), "f\noff", 'the setting of the server is as before, after a timeout too');
$holder->query_safe('COMMIT');

# --- Claims ------------------------------------------------------------------------------------------------------

ask(q(SELECT interlock.define_idempotency_scope('pay', ttl => '7 days', stale_after => '1 day')));
$holder->query_safe(q(BEGIN; SELECT interlock.idempotency_claim('pay', 'open')));
($log) = wait_for(q(SELECT interlock.idempotency_claim('pay', 'open', wait => '1 day')), sub { $holder->query_safe('ROLLBACK') }, 'acquired AccessExclusiveLock on advisory lock');
like($log, qr/Process holding the lock: $holder_pid\..*\n.*CONTEXT:  (?:waiting for .*\n\t)?waiting for idempotency key "pay:open"/, 'a claim that is not committed');
my $claim = ask(q(SELECT token FROM interlock.idempotency_claim('pay', 'done')));
($log) = wait_for(q(SELECT interlock.idempotency_claim('pay', 'done', wait => '1 day')), sub { ask("SELECT interlock.idempotency_release('pay', 'done', $claim)") }, 'acquired idempotency key "pay:done" after');
like($log, qr/DETAIL:  It is claimed until 2/, 'a claim that is committed');

# --- Names of waits ----------------------------------------------------------------------------------------------

my $named = ask(q(SELECT current_setting('server_version_num')::int >= 170000)) eq 't';
ask(q(SELECT interlock.acquire_lease('named', '1 day')));
my ($waiter, $pid) = session();
$waiter->query_until(qr/started/, "\\echo started\nSELECT interlock.acquire_lease('named', wait => '1 day');\n");
ok($node->poll_query_until('postgres', "SELECT wait_event_type = 'Extension' FROM pg_stat_activity WHERE pid = $pid"), 'pg_stat_activity shows that it waits');
is(ask("SELECT wait_event FROM pg_stat_activity WHERE pid = $pid"), $named ? 'PgInterlockLease' : 'Extension', 'by a name, where the server has names');
ask('SELECT count(pg_terminate_backend(pid)) FROM interlock.blocking');
$waiter->{run}->kill_kill;
$holder->quit;
$pinner->{run}->kill_kill;

is(($node->psql('postgres', 'CREATE ROLE app; SET ROLE app; SET interlock.log_waits = 0'))[2] =~ /permission denied/ ? 1 : 0, 1, 'other roles cannot set it');
$node->stop;
done_testing();
