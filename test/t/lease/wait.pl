# Leases between sessions: nothing is granted over a transaction that has asserted, however its session fares,
# and those who wait are served in their order, whatever becomes of one of them.
# only with --long

use strict;
use warnings;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('main');
$node->init;
$node->append_conf('postgresql.conf', q(
shared_preload_libraries = 'pg_interlock'
max_prepared_transactions = 5
interlock.lease_durable_after = '2 s'
interlock.sweeper = off
));
$node->start;
$node->safe_psql('postgres', 'CREATE EXTENSION pg_interlock; CREATE TABLE work (done text)');

my @stopped;

# A session, and the process that serves it.
sub session
{
    my $psql = $node->background_psql('postgres', on_error_stop => 0);
    return { psql => $psql, pid => $psql->query_safe('SELECT pg_backend_pid()') };
}

sub run { return $_[0]->{psql}->query_safe($_[1]); }

# The SQLSTATE of its error, else what the query returns.
sub attempt
{
    my ($session, $sql) = @_;
    $session->{psql}{stderr} = '';
    my $answer = $session->{psql}->query("\\set VERBOSITY verbose\n$sql");
    my $error = $session->{psql}{stderr};
    $session->{psql}{stderr} = '';
    return $error =~ /(?:ERROR|FATAL): +(\w+)/ ? $1 : $answer;
}

sub finish { eval { $_->{psql}->quit } for @_; return; }
sub ask { return $node->safe_psql('postgres', $_[0]); }
sub pause { select(undef, undef, undef, $_[0]); return; }

sub acquire
{
    my ($key, $arguments) = @_;
    return ask("SELECT token FROM interlock.acquire_lease('$key'" . ($arguments ? ", $arguments" : '') . ')');
}

sub outcome { return ask("SELECT outcome FROM interlock.acquire_lease('$_[0]', '100 ms', mode => '" . ($_[1] || 'exclusive') . "')"); }
sub release { return ask("SELECT interlock.release_lease('$_[0]', $_[1])"); }

sub is_waiting
{
    my ($session, $name) = @_;
    ok($node->poll_query_until('postgres', "SELECT count(*) = 1 FROM interlock.lease_waiters WHERE pid = $session->{pid}"), "$name: it waits");
    return;
}

# A new session that waits for the key; the SQL before it may set something.
sub waiter
{
    my ($key, $arguments, $name, $sql) = @_;
    my $session = session();
    run($session, $sql) if $sql;
    $arguments .= ", wait => '10 min'" if $arguments !~ /wait =>/;
    $session->{psql}->query_until(qr/asked/,
        "\\set VERBOSITY verbose\n\\echo asked\nSELECT outcome, token FROM interlock.acquire_lease('$key', $arguments);\n");
    is_waiting($session, $name);
    return $session;
}

# What it was told in the end: the outcome, and the token if there is one; or the SQLSTATE of an error.
sub answer
{
    my ($session) = @_;
    my $answer = $session->{psql}->query('SELECT 1');
    my $error = $session->{psql}{stderr};
    $session->{psql}{stderr} = '';
    return ($1, 0) if $error =~ /(?:ERROR|FATAL): +(\w+)/;
    return split(/\|/, (split(/\n/, $answer))[0]);
}

# A process that is not woken is so all the same by a timer of the server's own, ten seconds after its last query.
sub is_granted
{
    my ($session, $name) = @_;
    my $since = time;
    my ($outcome, $token) = answer($session);
    is($outcome . (time - $since < 8 ? '' : ', late'), 'acquired', $name);
    return $token;
}

sub stop_process
{
    my ($session) = @_;
    push @stopped, $session->{pid};
    kill 'STOP', $session->{pid};
    return;
}

sub continue_process
{
    my ($session) = @_;
    kill 'CONT', $session->{pid};
    @stopped = grep { $_ != $session->{pid} } @stopped;
    return;
}

END { kill 'CONT', $_ for @stopped; }

# --- Fencing ---------------------------------------------------------------------------------------

# From its assertion on a transaction has no successor until it has ended
for my $how ('sleeps', 'is stopped')
{
    ask('TRUNCATE work');
    my $holder = session();
    my $token = run($holder, "SELECT token FROM interlock.acquire_lease('fenced', '1 s')");
    run($holder, "BEGIN; SELECT interlock.assert_lease('fenced', $token)");
    my $next = waiter('fenced', "'1 min'", "$how: a successor");
    stop_process($holder) if $how eq 'is stopped';
    pause(2);
    is(outcome('fenced') . outcome('fenced/below'), 'heldheld', "$how: expired, but not granted");
    is(ask("SELECT expires_at < clock_timestamp(), pins FROM interlock.leases WHERE key = 'fenced'"), 't|1', "$how: it is pinned");
    is(ask("SELECT count(*) FROM interlock.lease_waiters WHERE pid = $next->{pid}"), 1, "$how: the successor waits on");
    continue_process($holder) if $how eq 'is stopped';
    run($holder, "INSERT INTO work VALUES ('by the holder'); COMMIT");
    my $new = is_granted($next, "$how: granted when the transaction has ended");
    is(run($next, 'SELECT done FROM work'), 'by the holder', "$how: and sees all that was done");
    is(attempt($holder, "SELECT interlock.assert_lease('fenced', $token)"), 'IL006', "$how: the holder of before is told");
    is(attempt($holder, "SELECT interlock.renew_lease('fenced', $token)"), '', "$how: cannot renew");
    is(attempt($holder, "SELECT interlock.release_lease('fenced', $token)"), 'f', "$how: and has nothing to release");
    is(release('fenced', $new), 't', "$how: the successor has");
    finish($holder, $next);
}

# Paused before it asserts, it is too late
{
    my $holder = session();
    my $token = run($holder, "SELECT token FROM interlock.acquire_lease('late', '500 ms')");
    run($holder, "BEGIN; INSERT INTO work VALUES ('too late')");
    stop_process($holder);
    my $new = acquire('late', "'1 min', wait => '10 min'");
    continue_process($holder);
    is(attempt($holder, "SELECT interlock.assert_lease('late', $token)"), 'IL006', 'paused before it asserts: IL006');
    is(attempt($holder, 'COMMIT; SELECT count(*) FROM work WHERE done = $$too late$$'), 0, 'nothing was written');
    release('late', $new);
    finish($holder);
}

# Released under the assertion, it is free when the transaction has ended, however it ends
for my $end ('COMMIT', 'ROLLBACK', 'PREPARE', 'terminate', 'savepoint')
{
    my $holder = session();
    my $token = run($holder, "SELECT token FROM interlock.acquire_lease('ended', '1 min')");
    run($holder, 'BEGIN; SAVEPOINT s');
    run($holder, "SELECT interlock.assert_lease('ended', $token)");
    run($holder, 'ROLLBACK TO s') if $end eq 'savepoint';
    my $next = waiter('ended', "'1 min'", $end);
    is(run($holder, "SELECT interlock.release_lease('ended', $token)"), 't', "$end: released");
    if ($end eq 'COMMIT')
    {
        run($holder, 'SAVEPOINT t');
        is(attempt($holder, "SELECT interlock.assert_lease('ended', $token)"), 'IL006', "$end: it is not asserted any more");
        run($holder, 'ROLLBACK TO t');
    }
    is(outcome('ended'), 'held', "$end: but not free");
    is(ask("SELECT count(*) FROM interlock.lease_waiters WHERE pid = $next->{pid}"), 1, "$end: the successor waits");
    is(attempt($holder, "PREPARE TRANSACTION 'p'"), '0A000', "$end: is refused") if $end eq 'PREPARE';
    ask("SELECT pg_terminate_backend($holder->{pid})") if $end eq 'terminate';
    run($holder, $end eq 'ROLLBACK' ? 'ROLLBACK' : 'COMMIT') if $end =~ /COMMIT|ROLLBACK|savepoint/;
    release('ended', is_granted($next, "$end: the successor has it"));
    finish($holder, $next);
}
is(ask('SELECT count(*) FROM pg_prepared_xacts'), 0, 'nothing is prepared');

# An expired lease goes to the waiter when the session that has asserted it is gone
{
    my $holder = session();
    my $token = run($holder, "SELECT token FROM interlock.acquire_lease('gone', '500 ms')");
    run($holder, "BEGIN; SELECT interlock.assert_lease('gone', $token)");
    my $next = waiter('gone', "'1 min'", 'terminated');
    pause(1);
    is(ask("SELECT count(*) FROM interlock.lease_waiters WHERE pid = $next->{pid}"), 1, 'terminated: it waits on');
    ask("SELECT pg_terminate_backend($holder->{pid})");
    release('gone', is_granted($next, 'terminated: the successor has it'));
    finish($holder, $next);
}

# --- Waiting ---------------------------------------------------------------------------------------

# SEC-2: of waiters for permits, the first to be granted one fixes the capacity
{
    my $token = acquire('capacity', "'1 min'");
    my @waiters = map {
        my $session = session();
        $session->{psql}->query_until(qr/asked/,
            "\\set VERBOSITY verbose\n\\echo asked\nSELECT outcome, token FROM interlock.acquire_permit('capacity', $_, '1 min', '10 min');\n");
        is_waiting($session, "capacity $_");
        $session
    } 2, 3, 2;
    release('capacity', $token);
    my @answers = map { [ answer($_) ] } @waiters;
    is(join(' ', map { $_->[0] } @answers), 'acquired 22023 acquired', 'capacity: another one is an error, and in nobody\'s way');
    release('capacity', $answers[$_][1]) for 0, 2;
    finish(@waiters);
}

# First come, first served
my $token = acquire('line', "'1 min', holder => 'zero'");
my @line = map { waiter('line', "'1 min', holder => 'waiter $_'", "waiter $_") } 1 .. 3;
is(ask("SELECT key, mode, holder, place, pid IN ($line[0]{pid}, $line[1]{pid}, $line[2]{pid}), waiting_since < clock_timestamp()
        FROM interlock.lease_waiters ORDER BY place"),
    join("\n", map { "line|exclusive|waiter $_|$_|t|t" } 1 .. 3), 'the view shows the line');
is(ask("SELECT DISTINCT wait_event_type, wait_event FROM pg_stat_activity WHERE pid IN ($line[0]{pid}, $line[1]{pid}, $line[2]{pid})"),
    'Extension|' . (ask("SELECT current_setting('server_version_num')::int >= 170000") eq 't' ? 'PgInterlockLease' : 'Extension'),
    'their wait has a name');
is(ask("SELECT outcome, holder FROM interlock.acquire_lease('line')"), 'held|waiter 1', 'who does not wait is told who is first');
for my $i (0 .. 2)
{
    release('line', $token);
    $token = is_granted($line[$i], 'first come, first served: ' . ($i + 1));
    is(ask('SELECT string_agg(holder, $$ $$ ORDER BY place) FROM interlock.lease_waiters'), join(' ', map { "waiter $_" } $i + 2 .. 3),
        'the others wait');
}
release('line', $token);
finish(@line);

# What wakes a waiter: an expiry, the end of a session, a rollback (a release and a commit did above)
acquire('woken', "'700 ms'");
my $waiter = waiter('woken', "'1 min'", 'expiry');
release('woken', is_granted($waiter, 'expiry: it wakes'));
finish($waiter);
for my $how ('terminate', 'quit')
{
    my $holder = session();
    run($holder, "SELECT token FROM interlock.acquire_lease('woken', bind => 'session')");
    is(ask("SELECT pid, expires_at FROM interlock.leases WHERE key = 'woken'"), "$holder->{pid}|infinity", "$how: it is bound to its session");
    $waiter = waiter('woken', "'1 min'", $how);
    ask("SELECT pg_terminate_backend($holder->{pid})") if $how eq 'terminate';
    finish($holder);
    release('woken', is_granted($waiter, "$how: it wakes when the session ends"));
    finish($waiter);
}

# What ends a wait: its own time, a cancel, timeouts, the end of the session. Those behind are served all the same
for my $how ('wait', 'lock_timeout', 'statement_timeout', 'cancel', 'terminate')
{
    for my $place ('head', 'middle')
    {
        $token = acquire('ended', "'10 min'");
        my $before = $place eq 'middle' ? waiter('ended', "'10 min'", "$how, $place: in front") : undef;
        my $limit = $how eq 'wait' ? ", wait => '2 s'" : '';
        my $victim = waiter('ended', "'10 min'$limit", "$how, $place", $how =~ /timeout/ ? "SET $how = '2 s'" : '');
        my $after = waiter('ended', "'10 min'", "$how, $place: behind");
        ask("SELECT pg_${how}_backend($victim->{pid})") if $how =~ /cancel|terminate/;
        my $told = { wait => 'held', lock_timeout => 'held', statement_timeout => '57014', cancel => '57014', terminate => '57P01' }->{$how};
        my ($outcome) = $how eq 'terminate' ? ('57P01') : answer($victim);
        is($outcome, $told, "$how, $place: it is told");
        ok($node->poll_query_until('postgres', "SELECT count(*) = 0 FROM interlock.lease_waiters WHERE pid = $victim->{pid}"),
            "$how, $place: it is out of the line");
        release('ended', $token);
        if ($before)
        {
            release('ended', is_granted($before, "$how, $place: the one in front is served"));
            finish($before);
        }
        release('ended', is_granted($after, "$how, $place: the one behind is served"));
        finish($victim, $after);
    }
}

# A client that is gone does not wait on
{
    $token = acquire('left', "'10 min'");
    my $lost = waiter('left', "'10 min'", 'client gone');
    my $after = waiter('left', "'10 min'", 'client gone: behind');
    $lost->{psql}{run}->signal('KILL');
    ok($node->poll_query_until('postgres', "SELECT count(*) = 0 FROM interlock.lease_waiters WHERE pid = $lost->{pid}"),
        'client gone: it is out of the line');
    release('left', $token);
    release('left', is_granted($after, 'client gone: the one behind is served'));
    finish($lost, $after);
}

# When the first in the line gives up, those it kept waiting need not wait for a release
for my $how ('cancel', 'terminate')
{
    $token = acquire('shared', "'10 min', mode => 'shared'");
    my $exclusive = waiter('shared', "'10 min'", "$how: exclusive");
    my $shared = waiter('shared/below', "'10 min', mode => 'shared'", "$how: shared behind it");
    is(outcome('shared', 'shared'), 'held', "$how: nobody jumps the line");
    ask("SELECT pg_${how}_backend($exclusive->{pid})");
    release('shared/below', is_granted($shared, "$how: what it kept waiting is granted"));
    is(outcome('shared', 'shared'), 'acquired', "$how: and the line is gone");
    release('shared', $token);
    finish($exclusive, $shared);
}

# Paths: who waits for a path keeps newcomers from what is below it and above it, and from nothing else
$token = acquire('tree/left', "'10 min'");
$waiter = waiter('tree', "'10 min'", 'path');
is(outcome('tree/right') . ' ' . outcome('tree/right', 'shared') . ' ' . outcome('treetop'), 'held held acquired', 'path: newcomers below it wait');
my $below = waiter('tree/right/x', "'10 min'", 'path, below');
release('tree/left', $token);
$token = is_granted($waiter, 'path: granted when what is below is free');
is(ask("SELECT count(*) FROM interlock.lease_waiters WHERE pid = $below->{pid}"), 1, 'path: what is below waits for it');
release('tree', $token);
release('tree/right/x', is_granted($below, 'path: and is granted in turn'));
finish($waiter, $below);
$token = acquire('tree/left', "'10 min'");
$waiter = waiter('tree/left/x', "'10 min'", 'sibling');
my $sibling = acquire('tree/right', "'10 min'");
isnt($sibling, '', 'sibling: a line elsewhere in the tree is in nobody\'s way');
release('tree/right', $sibling);
release('tree/left', $token);
release('tree/left/x', is_granted($waiter, 'sibling: granted'));
finish($waiter);

# A waiter that is stopped delays those behind it by its own time to live, and no longer
for my $how ('release', 'expiry', 'break')
{
    my $holder = acquire('paused', $how eq 'expiry' ? "'1500 ms'" : "'10 min'");
    my $first = waiter('paused', "'1 s'", "stopped, $how: first");
    my $second = waiter('paused', "'1 min'", "stopped, $how: second");
    stop_process($first);
    release('paused', $holder) if $how eq 'release';
    ask("SELECT interlock.break_lease('paused', 'test')") if $how eq 'break';
    my $second_token = is_granted($second, "stopped, $how: the second is granted though the first is stopped");
    my @others = map { acquire("other $_", "'1 min'") } 1 .. 50;
    continue_process($first);
    pause(0.5);
    is(ask("SELECT token FROM interlock.leases WHERE key = 'paused'"), $second_token, "stopped, $how: the second has it");
    release('paused', $second_token);
    my $first_token = is_granted($first, "stopped, $how: the first in the end");
    cmp_ok($first_token, '>', $second_token, "stopped, $how: with a token of its own");
    release("other $_", $others[ $_ - 1 ]) for 1 .. 50;
    finish($first, $second);
    ask("SELECT interlock.break_lease('paused', 'test')");
}

# Nothing is left of all this
ok($node->poll_query_until('postgres', 'SELECT (SELECT count(*) FROM interlock.leases) + (SELECT count(*) FROM interlock.lease_waiters) = 0'),
    'nothing is left');
unlike(slurp_file($node->logfile), qr/PANIC|TRAP|terminated by signal/, 'nothing crashed');
$node->stop;
done_testing();
