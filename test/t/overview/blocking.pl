# View blocking: who waits for whom, through leases, their pins, key locks, claims, rows and tables, to the end of each chain.

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
interlock.key_names = 4096
max_prepared_transactions = 5
max_connections = 200
deadlock_timeout = '1 h'
));

sub ask { return $node->safe_psql('postgres', $_[0]); }

# A session with a name; its process is $pid{name}.
my (%session, %pid);
sub session
{
    my ($name) = @_;
    my $psql = $node->background_psql('postgres', on_error_stop => 0);
    $pid{$name} = $psql->query_safe("SET application_name = '$name'; SELECT pg_backend_pid()");
    return $session{$name} = $psql;
}
sub start_waiting { my ($name, $sql) = @_; (session($name))->query_until(qr/started/, "\\echo started\n$sql;\n"); return; }

sub blocking
{
    my ($where, $columns) = @_;
    return ask("SELECT concat_ws(' ', " . ($columns // 'holder, kind, name, blocked_by_holder, head_holder, depth') . ") FROM interlock.blocking WHERE $where ORDER BY 1");
}
sub wait_for_waits
{
    my ($count, $name) = @_;
    ok($node->poll_query_until('postgres', "SELECT count(*) = $count FROM interlock.blocking"), $name) or diag(blocking('true'));
    return;
}
sub end_all
{
    ask(q(SELECT count(pg_terminate_backend(pid)) FROM interlock.blocking));
    $node->poll_query_until('postgres', 'SELECT count(*) = 0 FROM interlock.blocking');
    for my $psql (values %session) { $psql->{run}->kill_kill }
    (%session, %pid) = ();
    ask(q(SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'));
    $node->poll_query_until('postgres', q(SELECT count(*) = 1 FROM pg_stat_activity WHERE backend_type = 'client backend'));
    ask(q(SELECT interlock.break_leases('%', 'test')));
    return;
}

ask('CREATE TABLE page (id int PRIMARY KEY, body text); INSERT INTO page SELECT i FROM generate_series(1, 9) i; CREATE ROLE other; CREATE ROLE monitor; GRANT pg_monitor TO monitor');

is(blocking('true'), '', 'nobody waits');

# --- One chain through everything --------------------------------------------------------------------------------

# idle <- row <- key lock <- pin of a lease <- lease
session('idle')->query_safe('BEGIN; UPDATE page SET body = 1 WHERE id = 1');
start_waiting('row', q(BEGIN; SELECT interlock.lock_key('doc/1'); UPDATE page SET body = 2 WHERE id = 1));
wait_for_waits(1, 'one waits for the row');
start_waiting('key', q(BEGIN; SELECT interlock.assert_lease('job', (interlock.acquire_lease('job', '1 day', holder => 'worker')).token); SELECT interlock.lock_key('doc/1')));
wait_for_waits(2, 'one for the key lock');
start_waiting('lease', q(SELECT interlock.acquire_lease('job', wait => '1 day', holder => 'next worker')));
wait_for_waits(3, 'and one for the lease');
is(blocking('true'), join("\n", 'key key_lock doc/1 row idle 2', 'next worker lease job worker idle 3', "row row public.page (0,1) idle idle 1"), 'each line has the head of the chain');
is(blocking('true', 'pid, blocked_by, head_pid'), join("\n", sort("$pid{row} $pid{idle} $pid{idle}", "$pid{key} $pid{row} $pid{idle}", "$pid{lease} $pid{key} $pid{idle}")), 'with processes');
is(blocking(q(kind = 'lease'), q(rtrim(head_activity, E';\n'))), 'idle in transaction: UPDATE page SET body = 1 WHERE id = 1', 'and what it does');
is(blocking(q(kind = 'row'), 'rel'), 'page', 'the table of a row');
is(ask(q(SELECT count(*) FROM interlock.blocking WHERE since <= clock_timestamp() AND NOT is_circle)), 3, 'since when');
is(ask(q(SELECT bool_and(ARRAY[blocked_by] = pg_blocking_pids(pid)) FROM interlock.blocking WHERE kind <> 'lease')), 't', 'as the server sees it');

is(ask(q(SET ROLE other; SELECT count(*) || ' ' || count(head_pid) || ' ' || count(NULLIF(head_activity, '')) FROM interlock.blocking)), '3 3 0', 'others see who waits, and no statement');
is(ask(q(SET ROLE monitor; SELECT count(NULLIF(head_activity, '')) FROM interlock.blocking)), '3', 'a monitor sees the statements');
end_all();

# --- Turns at a row ------------------------------------------------------------------------------------------------

ask(q(SELECT interlock.enable_versioning('page'); CREATE FUNCTION same(jsonb, jsonb) RETURNS jsonb LANGUAGE sql AS $$SELECT jsonb_build_object('body', 'x')$$));
session('writer')->query_safe('BEGIN; UPDATE page SET body = 1 WHERE id = 2');
my $update = q(SELECT interlock.update_with_retry('page', 2, 'same(jsonb, jsonb)', '{}'));
start_waiting('first', $update);
wait_for_waits(1, 'one waits for the row');
start_waiting('second', $update);
wait_for_waits(2, 'and one for its turn');
is(blocking(q(kind = 'row' AND rel = 'page'::regclass), 'holder, name, blocked_by_holder, head_holder, depth'),
    "first public.page (0,2) writer writer 1\nsecond public.page first writer 2", 'a wait for a turn is one for a row of the table');
end_all();
ask(q(SELECT interlock.disable_versioning('page')));

# --- Leases ------------------------------------------------------------------------------------------------------

ask(q(SELECT interlock.acquire_lease('a/b', '1 day', holder => 'worker 1')));
start_waiting('above', q(SELECT interlock.acquire_lease('a', wait => '1 day', holder => 'above')));
wait_for_waits(1, 'a lease above waits');
start_waiting('beside', q(SELECT interlock.acquire_lease('a/c', wait => '1 day', holder => 'beside')));
wait_for_waits(2, 'one beside it waits for that one');
is(blocking('true', q(holder, name, blocked_by_holder, coalesce(blocked_by::text, '-'), head_holder, coalesce(head_pid::text, '-'), depth,
    head_activity ~ '^lease until 20', blocked_until IS NULL)), "above a worker 1 - worker 1 - 1 t f\nbeside a/c above $pid{above} worker 1 - 2 t t", 'the lease is the head');
session('bound')->query_safe(q(SELECT interlock.acquire_lease('bound', bind => 'session', holder => 'daemon')));
start_waiting('for bound', q(SELECT interlock.acquire_lease('bound', wait => '1 day')));
wait_for_waits(3, 'one waits for a lease of a session');
is(blocking(q(name = 'bound'), 'blocked_by_holder, head_pid, head_activity ~ \'^idle: \''), "daemon $pid{bound} t", 'which is a process');
ask(q(SELECT interlock.acquire_permit('p', 1, '1 day', holder => 'first')));
start_waiting('for permit', q(SELECT interlock.acquire_permit('p', 1, wait => '1 day')));
wait_for_waits(4, 'one waits for a permit');
is(blocking(q(kind = 'permit'), 'name, blocked_by_holder'), 'p first', 'for the first that ends');
session('pinner')->query_safe(q(BEGIN; SELECT interlock.assert_lease('brief', (interlock.acquire_lease('brief', '200 ms', holder => 'brief')).token)));
start_waiting('for pin', q(SELECT interlock.acquire_lease('brief', wait => '1 day')));
ok($node->poll_query_until('postgres', q(SELECT count(*) = 1 FROM interlock.blocking WHERE name = 'brief' AND blocked_until < clock_timestamp())), 'SEC-3: one waits for a lease that has expired');
is(blocking(q(name = 'brief'), q(blocked_by_holder, blocked_by, split_part(head_activity, ':', 1))), "brief $pid{pinner} idle in transaction", 'SEC-3: and that an idle transaction pins');
end_all();

# --- Claims ------------------------------------------------------------------------------------------------------

ask(q(SELECT interlock.idempotency_claim('pay', 'committed', stale_after => '1 day') FROM (SELECT interlock.define_idempotency_scope('pay', ttl => '7 days', stale_after => '1 day')) s));
session('open')->query_safe(q(BEGIN; SELECT interlock.idempotency_claim('pay', 'open')));
start_waiting('one', q(SELECT interlock.idempotency_claim('pay', 'committed', wait => '1 day')));
start_waiting('two', q(SELECT interlock.idempotency_claim('pay', 'open', wait => '1 day')));
wait_for_waits(2, 'two wait for claims');
is(blocking('true', q(holder, kind, name, coalesce(blocked_by::text, '-'), regexp_replace(head_activity, '(until|:).*', '\1'))),
    "one idempotency_claim pay:committed - claim until\ntwo idempotency_claim pay:open $pid{open} idle in transaction:", 'for one that is committed, and for one that is not');
is(ask(q(SET ROLE other; SELECT count(name) FROM interlock.blocking)), 0, 'SEC-10: others do not see their keys');
end_all();

# --- Locks of the server -----------------------------------------------------------------------------------------

session('reader')->query_safe('BEGIN; SELECT FROM page');
start_waiting('alter', 'ALTER TABLE page ADD COLUMN more int');
wait_for_waits(1, 'ALTER TABLE waits for a reader');
start_waiting('late reader', 'SELECT FROM page');
wait_for_waits(2, 'and a later reader for ALTER TABLE');
is(blocking('true'), "alter relation public.page reader reader 1\nlate reader relation public.page alter reader 2", 'which does not hold the lock yet');
end_all();
ask(q(BEGIN; INSERT INTO page VALUES (100); PREPARE TRANSACTION 'half'));
start_waiting('duplicate', 'INSERT INTO page VALUES (100)');
wait_for_waits(1, 'one waits for a prepared transaction');
is(blocking('true', q(kind, coalesce(blocked_by::text, '-'), blocked_by_holder, regexp_replace(head_activity, ' of .*', ''))),
    'transactionid - prepared transaction "half" prepared transaction "half"', 'which has no process');
end_all();
ask(q(ROLLBACK PREPARED 'half'));

# --- Circles -----------------------------------------------------------------------------------------------------

# A lease and a key lock: no deadlock that the server sees
ask(q(SELECT interlock.acquire_lease('bound', '1 day', holder => 'x')));
session('left')->query_safe(q(BEGIN; SELECT interlock.break_lease('bound', 'test'), interlock.acquire_lease('bound', bind => 'session', holder => 'left')));
session('right')->query_safe(q(BEGIN; SELECT interlock.lock_key('k')));
$session{left}->query_until(qr/started/, "\\echo started\nSELECT interlock.lock_key('k');\n");
$session{right}->query_until(qr/started/, "\\echo started\nSELECT interlock.acquire_lease('bound', wait => '1 day', holder => 'right');\n");
wait_for_waits(2, 'two wait for each other');
start_waiting('third', q(SELECT interlock.lock_key('k')));
wait_for_waits(3, 'and a third for one of them');
is(blocking('true', q(holder, is_circle, coalesce(head_pid::text, '-'), head_activity)), "left t - circle\nright t - circle\nthird t - circle", 'a circle has no head, and an end');
end_all();

# --- Many --------------------------------------------------------------------------------------------------------

session('holder')->query_safe(q(SELECT interlock.lock_key('many', scope => 'session'), interlock.acquire_lease('many', '1 day', holder => 'keeper')));
start_waiting("k$_", q(SELECT interlock.lock_key('many'))) for 1 .. 40;
start_waiting("l$_", q(SELECT interlock.acquire_lease('many', wait => '1 day'))) for 1 .. 40;
wait_for_waits(80, '80 sessions wait');
is(ask(q(SELECT string_agg(DISTINCT concat_ws(' ', kind, blocked_by_holder, head_holder, depth), ', ') FROM interlock.blocking)), 'key_lock holder holder 1, lease keeper keeper 1',
    'all for the two that hold');
session('shared 1')->query_safe(q(BEGIN; SELECT interlock.lock_key('wide', 'shared')));
for my $i (2 .. 20) { session("shared $i")->query_safe(q(BEGIN; SELECT interlock.lock_key('wide', 'shared'))) }
start_waiting('wide', q(SELECT interlock.lock_key('wide')));
ok($node->poll_query_until('postgres', q(SELECT count(*) = 8 FROM interlock.blocking WHERE name = 'wide')), 'eight of twenty holders are shown');
end_all();

$node->stop;
done_testing();
