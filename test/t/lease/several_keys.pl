# Calls of acquire_leases concurrently with others: with waiters for a path above their keys, with leases that are broken or
# lost all the time.

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
interlock.lease_durable_after = '1 s'
commit_delay = 20000
commit_siblings = 0
fsync = on
));
$node->start;
$node->safe_psql('postgres', 'CREATE EXTENSION pg_interlock; CREATE TABLE lasting AS SELECT 1');

sub ask { return $node->safe_psql('postgres', $_[0]); }

sub session { return $node->background_psql('postgres', on_error_stop => 0); }

# Sends the statement and does not wait for its end.
sub begin
{
    my ($session, $sql) = @_;
    $session->query_until(qr/asked/, "\\echo asked\n$sql;\n");
    return;
}

sub waits { return ok($node->poll_query_until('postgres', "SELECT count(*) = 1 FROM interlock.lease_waiters WHERE holder = '$_[0]'"), "$_[0] waits"); }

# What the statement that was begun has returned.
sub answer
{
    my ($session) = @_;
    my ($line) = split(/\n/, $session->query('SELECT 1'));
    return $line;
}

sub end_session { $_->quit for @_; return; }

# --- Keys of one call, and waiters for a path above them -------------------------------------------

# The one below gets all its keys; the one above comes after it, and before those that have asked later
for my $mode ('exclusive', 'shared')
{
    my $middle = ask("SELECT token FROM interlock.acquire_lease('tree/b', '10 min')");
    my ($call, $above, $late) = map { session() } 1 .. 3;
    begin($call, "SELECT outcome FROM interlock.acquire_leases(ARRAY['tree/a', 'tree/b', 'tree/c'], '10 min', '10 min', 'call', '$mode')");
    waits('call');
    begin($above, "SELECT outcome FROM interlock.acquire_lease('tree', '10 min', '10 min', 'above')");
    waits('above');
    begin($late, "SELECT outcome FROM interlock.acquire_lease('tree/c', '10 min', '10 min', 'late', '$mode')");
    waits('late');
    ask("SELECT interlock.release_lease('tree/b', $middle)");
    is(answer($call), 'acquired', "$mode: the call has all its keys, though another waits for the path above them");
    is(ask('SELECT string_agg(holder, $$ $$ ORDER BY place) FROM interlock.lease_waiters'), 'above late', "$mode: the others wait in their order");
    ask("SELECT interlock.release_lease(key, holder => 'call') FROM interlock.leases WHERE holder = 'call'");
    is(answer($above), 'acquired', "$mode: then the path above has its turn");
    ask("SELECT interlock.release_lease('tree', holder => 'above')");
    is(answer($late), 'acquired', "$mode: then who came after it");
    ask("SELECT interlock.release_lease('tree/c', holder => 'late')");
    end_session($call, $above, $late);
}

# Who came before it is granted a lease first, where no lease of the call is in the way
{
    my $other = ask("SELECT token FROM interlock.acquire_lease('tree/c', '10 min')");
    my ($first, $call) = (session(), session());
    begin($first, "SELECT outcome FROM interlock.acquire_lease('tree/c', '10 min', '10 min', 'first')");
    waits('first');
    begin($call, "SELECT outcome FROM interlock.acquire_leases(ARRAY['tree/a', 'tree/c'], '10 min', '10 min', 'call')");
    waits('call');
    ask("SELECT interlock.release_lease('tree/c', $other)");
    is(answer($first), 'acquired', 'the first one that waits is granted the lease that is released');
    ask("SELECT interlock.release_lease('tree/c', holder => 'first')");
    is(answer($call), 'acquired', 'the call comes after it');
    ask("SELECT interlock.release_lease(key, holder => 'call') FROM interlock.leases WHERE holder = 'call'");
    end_session($first, $call);
}

# A call that has a lease waits for holders only, also where its lease is of another tree
{
    my $held = ask("SELECT token FROM interlock.acquire_lease('tree/b', '10 min')");
    my $above = session();
    begin($above, "SELECT outcome FROM interlock.acquire_lease('tree', '10 min', '10 min', 'above')");
    waits('above');
    for my $wait ('10 min', '0')
    {
        is(ask("SELECT outcome FROM interlock.acquire_leases(ARRAY['other', 'tree/a'], '10 min', '$wait', 'call')"), 'acquired',
            "wait $wait: a call with a lease passes a waiter for the path above its next key");
        ask("SELECT interlock.release_lease(key, holder => 'call') FROM interlock.leases WHERE holder = 'call'");
    }
    is(ask("SELECT outcome, blocked_by, holder FROM interlock.acquire_leases(ARRAY['tree/a', 'tree/c'], '10 min', '0', 'call')"), 'held|tree/a|above',
        'a call without one does not');
    is(ask("SELECT outcome, blocked_by FROM interlock.acquire_leases(ARRAY['other', 'tree/a', 'tree/b'], '10 min', '0', 'call')"), 'held|tree/b',
        'a call that is refused');
    is(ask("SELECT count(*) FROM interlock.leases WHERE holder = 'call'"), 0, 'has none of its leases');
    ask("SELECT interlock.release_lease('tree/b', $held)");
    is(answer($above), 'acquired', 'the waiter has its turn');
    ask("SELECT interlock.release_lease('tree', holder => 'above')");
    end_session($above);
}

# Two calls, and a shared path above them that waits for one of them, which will want a key of the other: that does not
# wait behind the path
{
    my $middle = ask("SELECT token FROM interlock.acquire_lease('tree/5', '10 min')");
    my ($call, $above, $late, $shared) = map { session() } 1 .. 4;
    begin($call, "SELECT outcome FROM interlock.acquire_leases(ARRAY['tree/1', 'tree/5', 'tree/9'], '10 min', '10 min', 'call')");
    waits('call');
    begin($above, "SELECT outcome FROM interlock.acquire_lease('tree', '10 min', '10 min', 'above', 'shared')");
    waits('above');
    begin($late, "SELECT outcome FROM interlock.acquire_lease('tree/95', '10 min', '10 min', 'late')");
    waits('late');
    begin($shared, "SELECT outcome FROM interlock.acquire_leases(ARRAY['tree/9', 'tree/95'], '10 min', '10 min', 'shared call', 'shared')");
    is(answer($shared), 'acquired', 'a call does not wait for those who wait for another one');
    ask("SELECT interlock.release_lease(key, holder => 'shared call') FROM interlock.leases WHERE holder = 'shared call'");
    ask("SELECT interlock.release_lease('tree/5', $middle)");
    is(answer($call), 'acquired', 'the other call is acquired');
    ask("SELECT interlock.release_lease(key, holder => 'call') FROM interlock.leases WHERE holder = 'call'");
    is(answer($above), 'acquired', 'then the path above them');
    ask("SELECT interlock.release_lease('tree', holder => 'above')");
    is(answer($late), 'acquired', 'then the later key');
    ask("SELECT interlock.release_lease('tree/95', holder => 'late')");
    end_session($call, $above, $late, $shared);
}

# Those behind one that waits for the call come after it, too: shared keys, an exclusive waiter for one of them, a shared
# path behind it, an exclusive waiter for the next key behind that
{
    my $middle = ask("SELECT token FROM interlock.acquire_lease('tree/b', '10 min')");
    my ($call, @line) = map { session() } 1 .. 4;
    begin($call, "SELECT outcome FROM interlock.acquire_leases(ARRAY['tree/a', 'tree/b', 'tree/c'], '10 min', '10 min', 'call', 'shared')");
    waits('call');
    begin($line[0], "SELECT outcome FROM interlock.acquire_lease('tree/a', '10 min', '10 min', 'first')");
    waits('first');
    begin($line[1], "SELECT outcome FROM interlock.acquire_lease('tree', '10 min', '10 min', 'second', 'shared')");
    waits('second');
    begin($line[2], "SELECT outcome FROM interlock.acquire_lease('tree/c', '10 min', '10 min', 'third')");
    waits('third');
    ask("SELECT interlock.release_lease('tree/b', $middle)");
    is(answer($call), 'acquired', 'a call is not kept waiting by those behind its own waiters');
    is(ask('SELECT string_agg(holder, $$ $$ ORDER BY place) FROM interlock.lease_waiters'), 'first second third', 'they keep their order');
    ask("SELECT interlock.release_lease(key, holder => 'call') FROM interlock.leases WHERE holder = 'call'");
    my @keys = ('tree/a', 'tree', 'tree/c');
    for my $i (0 .. 2)
    {
        is(answer($line[$i]), 'acquired', 'one after the other');
        ask("SELECT interlock.release_lease('$keys[$i]', NULL, holder) FROM interlock.leases WHERE key = '$keys[$i]'");
    }
    end_session($call, @line);
}

# --- A lease of a call that is broken while it waits for another -----------------------------------

for my $arguments ("'10 min', '10 min', 'call'", "'500 ms', '10 min', 'call'", "'10 min', '10 min', 'call', bind => 'session'")
{
    my $other = ask("SELECT token FROM interlock.acquire_lease('pair/2', '10 min')");
    my $call = session();
    begin($call, "SELECT outcome, tokens FROM interlock.acquire_leases(ARRAY['pair/1', 'pair/2'], $arguments)");
    waits('call');
    my $broken = ask("SELECT token FROM interlock.leases WHERE key = 'pair/1'");
    ask("SELECT interlock.break_lease('pair/1', 'test')");
    ask("SELECT interlock.release_lease('pair/2', $other)");
    my ($outcome, $first) = answer($call) =~ /^(\w+)\|\{(\d+),/;
    is($outcome, 'acquired', 'a call one of whose leases was broken takes all of them again');
    cmp_ok($first, '>', $broken, 'with a new token');
    $call->query_safe("SELECT interlock.release_lease(key, NULL, 'call') FROM interlock.leases WHERE holder = 'call'");
    end_session($call);
}

# --- Expired leases with records below a path ------------------------------------------------------

# Their records are cleared together, not with a flush of the WAL for each
{
    my $flushes = ask('SELECT current_setting($$server_version_num$$)::integer') >= 180000
        ? "SELECT sum(fsyncs) FROM pg_stat_io WHERE object = 'wal'" : 'SELECT wal_sync FROM pg_stat_wal';
    for my $call ("interlock.acquire_lease('many', '500 ms')", "interlock.acquire_leases(ARRAY['many', 'other'], '500 ms')")
    {
        ask(q(SELECT outcome FROM interlock.acquire_leases((SELECT array_agg('many/' || n) FROM generate_series(1, 150) AS n), '1100 ms')));
        ok($node->poll_query_until('postgres', "SELECT count(*) = 0 FROM interlock.leases WHERE key LIKE 'many/%'"), 'leases with records have expired');
        my ($before, $outcome, $after) = split(/\n+/,
            ask("$flushes; SELECT outcome FROM $call; SELECT pg_stat_force_next_flush(); $flushes;"));
        is($outcome, 'acquired', 'the path above is acquired');
        cmp_ok($after - $before, '<', 50, 'with few flushes');
        ask("SELECT interlock.break_lease('many', 'test')");
    }
}

# --- Leases that are lost all the time -------------------------------------------------------------

my $start = session();
$start->query_safe('SELECT pg_advisory_lock(1)');

# Four sessions take and lose thousands of leases, one after the other, until they are stopped: while one loss becomes
# durable, others come
my @losers = map { session() } 1 .. 4;
begin($_, q(DO $$
DECLARE
    lease record;
BEGIN
    CREATE TEMP TABLE taken (key text, token bigint);
    FOR i IN 1 .. 100 LOOP
        INSERT INTO taken
            SELECT k.key, k.token FROM (SELECT array_agg('lost/' || pg_backend_pid() || '_' || i || '_' || n) AS keys FROM generate_series(1, 70) AS n) AS names,
                LATERAL interlock.acquire_leases(names.keys, '10 ms') AS a, unnest(names.keys, a.tokens) AS k(key, token);
    END LOOP;
    PERFORM pg_advisory_lock_shared(1);
    FOR lease IN SELECT key, token FROM taken ORDER BY token LOOP
        PERFORM interlock.release_lease(lease.key, lease.token);
        PERFORM pg_sleep(random() * 0.008);
        EXIT WHEN NOT EXISTS (SELECT FROM lasting);
    END LOOP;
END $$)) for @losers;
ok($node->poll_query_until('postgres', "SELECT count(*) = 4 FROM pg_stat_activity WHERE wait_event = 'advisory'"), 'others have leases to lose');
$start->quit;
for my $i (1 .. 5)
{
    my $answer = ask("SET statement_timeout = '15 s'; SELECT outcome FROM interlock.acquire_lease('lost/one $i', '10 min')");
    is($answer, 'acquired', 'a call ends before the others have ended');
    $answer = ask("SET statement_timeout = '15 s'; SELECT outcome FROM interlock.acquire_leases(ARRAY['lost/several $i', 'several'], '1 s')");
    like($answer, qr/^(acquired|held)$/, 'a call for several keys, too');
}
ask('DELETE FROM lasting');
answer($_) for @losers;
end_session(@losers);

$node->stop;
done_testing();
