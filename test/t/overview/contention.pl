# The counters behind the view contention: what is counted for which statement, who sees it, and what becomes of it over restarts.
# only with --long

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../lib";
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Server;
use Test::More;

my $node = start_server("interlock.sweeper = off\ninterlock.lease_recovery = immediate\ninterlock.max_contention_lines = 64\nmax_prepared_transactions = 2");
my @counters = qw(calls conflicts refusals blind_updates waits timeouts expiries takeovers replays mismatches retries renewals late_renewals);

# The counters that are not zero, as text, of the lines that the condition selects.
sub counted
{
    my ($where, $database, $role) = @_;
    my $list = join(', ', map { "CASE WHEN $_ > 0 THEN '$_ ' || $_ END" } @counters);
    return $node->safe_psql($database // 'postgres', ($role ? "SET ROLE $role; " : '')
        . "SELECT kind || ':', concat_ws(' ', $list) FROM interlock.contention WHERE $where ORDER BY kind, key_class", extra_params => ['-F', ' ']);
}

# Runs statements in one session, whatever errors they raise.
sub run
{
    my (@sql) = @_;
    my ($status, $out, $error) = $node->psql('postgres', join("\n", "\\set VERBOSITY sqlstate", map { "$_;" } @sql), on_error_stop => 0);
    return ($out, join(' ', $error =~ /ERROR:  (\w{5})/g));
}

# What the statements count of a table or of a class of keys, from zero.
sub counts
{
    my ($name, $where, $expected, @sql) = @_;
    $node->safe_psql('postgres', 'SELECT interlock.reset_contention()');
    my (undef, $errors) = run(@sql);
    my $got = counted($where);
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    return is($got, $expected, $name) || diag("errors: $errors");
}

$node->safe_psql('postgres', q(
    CREATE TABLE doc (id int PRIMARY KEY, body text, status text DEFAULT 'new', price int);
    SELECT interlock.enable_versioning('doc');
    SELECT interlock.define_transitions('doc', 'status', '{"new": ["open"], "open": ["done"]}', '{new}');
    INSERT INTO doc (id, body) SELECT i, 'a' FROM generate_series(1, 20) i;
    CREATE TABLE page (id int PRIMARY KEY, body text);
    SELECT interlock.enable_marker('page', '1 hour');
    INSERT INTO page SELECT i, 'a' FROM generate_series(1, 20) i;
    CREATE TABLE owned (id int PRIMARY KEY, price int);
    SELECT interlock.own_columns('owned', 'pricing', '{price}');
    INSERT INTO owned VALUES (1, 1);
    CREATE TABLE leased (id int PRIMARY KEY, body text);
    SELECT interlock.require_lease('leased', 'leased/{id}');
    SELECT interlock.define_idempotency_scope('pay', stale_after => '1 s');
    CREATE FUNCTION interferes(current jsonb, args jsonb) RETURNS jsonb LANGUAGE plpgsql AS $$ BEGIN
        UPDATE doc SET body = 'mine' WHERE id = (current ->> 'id')::int AND body <> 'mine';
        RETURN '{"price": 1}'; END $$;
    CREATE FUNCTION tries(current jsonb, args jsonb) RETURNS jsonb LANGUAGE sql AS $$ SELECT '{"body": "b"}'::jsonb $$));

# --- Escrow counters ---------------------------------------------------------------------------------------------

$node->safe_psql('postgres', q(
    CREATE TABLE stock (id int PRIMARY KEY, pieces int NOT NULL CHECK (pieces >= 0));
    INSERT INTO stock VALUES (1, 10), (2, 2), (3, 3), (4, 1);
    SELECT interlock.enable_escrow('stock', 'pieces');
    SELECT interlock.adjust('stock', 4, 'pieces', 1)));
my $stock = "rel = 'stock'::regclass AND kind = 'escrow'";
counts('a take and a return are calls', $stock, 'escrow: calls 2', q(SELECT interlock.adjust('stock', 1, 'pieces', -1)), q(SELECT interlock.try_adjust('stock', 1, 'pieces', 1)));
counts('what is not there is refused, answered or raised', $stock, 'escrow: calls 3 refusals 3', q(SELECT interlock.try_adjust('stock', 1, 'pieces', -11)),
    q(SELECT interlock.adjust('stock', 1, 'pieces', -11)), q(SELECT interlock.reserve('stock', 1, 'pieces', 11, '1 min')));
counts('a reservation is a call', $stock, 'escrow: calls 1', q(SELECT interlock.reserve('stock', 1, 'pieces', 1, '1 min')));
counts('what others may give back is a conflict', $stock, 'escrow: calls 1 conflicts 1', q(SELECT interlock.try_adjust('stock', 1, 'pieces', -10)));
counts('on the direct path, too', $stock, 'escrow: calls 2 refusals 1', 'SET default_transaction_isolation = serializable',
    q(SELECT interlock.try_adjust('stock', 1, 'pieces', -1)), q(SELECT interlock.try_adjust('stock', 1, 'pieces', -11)));

# Of the parts of others that are committed after its snapshot it takes none, and what it is granted rests on them.
$node->safe_psql('postgres', q(INSERT INTO stock VALUES (5, 1); SELECT interlock.adjust('stock', 5, 'pieces', 1)));
$node->safe_psql('postgres', q(SELECT interlock.fold_escrow('stock'), interlock.reset_contention()));
{
    my $late = $node->background_psql('postgres', on_error_stop => 0);
    $late->query_safe('BEGIN ISOLATION LEVEL SERIALIZABLE; SELECT 1');
    $node->safe_psql('postgres', q(SELECT interlock.adjust('stock', 5, 'pieces', 5)));
    $late->query(q(SELECT interlock.try_adjust('stock', 5, 'pieces', -6)));
    like($late->{stderr}, qr/could not serialize access/, 'a take that rests on what the snapshot does not have');
    is($node->safe_psql('postgres', "SELECT calls, conflicts, refusals FROM interlock.contention WHERE $stock"), '2|1|0', 'is a conflict');
    $late->quit;
}

# --- Versions ----------------------------------------------------------------------------------------------------

my $doc = "rel = 'doc'::regclass AND kind = 'versioning'";
counts('an update by its version is a call', $doc, 'versioning: calls 1', q(SELECT interlock.versioned_update('doc', 1, 1, '{"body": "b"}')));
counts('a stale one is a conflict', $doc, 'versioning: calls 1 conflicts 1', q(SELECT interlock.versioned_update('doc', 1, 1, '{"body": "c"}')));
counts('answered or raised', $doc, 'versioning: calls 2 conflicts 2', q(SELECT interlock.try_versioned_update('doc', 1, 1, '{"body": "c"}')),
    q(SELECT interlock.try_versioned_delete('doc', 1, 1)));
counts('a row that is not there is a call', $doc, 'versioning: calls 1', q(SELECT interlock.try_versioned_update('doc', 99, 1, '{"body": "c"}')));
counts('an upsert that finds the row', $doc, 'versioning: calls 2 conflicts 1', q(SELECT interlock.try_versioned_upsert('doc', 1, null::bigint, '{"body": "c"}')),
    q(SELECT interlock.versioned_upsert('doc', 50, null::bigint, '{"body": "c"}')));
counts('each row of many', $doc, 'versioning: calls 3 conflicts 1', q(SELECT * FROM interlock.versioned_update_many('doc',
    '[{"key": 2, "version": 1, "changes": {"body": "b"}}, {"key": 3, "version": 7, "changes": {"body": "b"}}, {"key": 4, "version": 1, "changes": {}}]')));
counts('a stale assertion', $doc, 'versioning: calls 2 conflicts 1', q(SELECT interlock.assert_version('doc', 5, 1)), q(SELECT interlock.assert_version('doc', 5, 9)));
counts('a rollback takes nothing back', $doc, 'versioning: calls 2 conflicts 1',
    'BEGIN', q(SELECT interlock.versioned_update('doc', 6, 1, '{"body": "b"}')), 'SAVEPOINT s', q(SELECT interlock.versioned_update('doc', 6, 1, '{"body": "c"}')), 'ROLLBACK TO s', 'ROLLBACK');
counts('plain statements are calls, and blind', $doc, 'versioning: calls 3 blind_updates 3', q(UPDATE doc SET body = 'd' WHERE id IN (6, 7)), q(DELETE FROM doc WHERE id = 8));
counts('one that compares the version is not', $doc, 'versioning: calls 1', q(UPDATE doc SET body = 'd' WHERE id = 9 AND version = 1));
counts('a writer with a stale version of its own', $doc, 'versioning: calls 1 conflicts 1 blind_updates 1', q(UPDATE doc SET body = 'd', version = 1 WHERE id = 9));
counts('the statement of an ORM that hits no row cannot be counted', $doc, '', q(UPDATE doc SET body = 'e', version = 2 WHERE id = 9 AND version = 1));
counts('a refused blind update', $doc, 'versioning: calls 1 refusals 1 blind_updates 1', q(UPDATE doc SET body = 'x' WHERE id = 10)) if run(q(SELECT interlock.enable_versioning('doc', blind_updates => 'reject')));
run(q(SELECT interlock.enable_versioning('doc')));
counts('a change that is tried again', $doc, 'versioning: calls 3 conflicts 1 blind_updates 1 retries 1', q(SELECT interlock.update_with_retry('doc', 14, 'interferes(jsonb,jsonb)', '{}')));
counts('the functions as statements', $doc, 'versioning: calls 3 conflicts 1', 'SET interlock.direct_execution = off', q(SELECT interlock.versioned_update('doc', 11, 1, '{"body": "b"}')),
    q(SELECT interlock.try_versioned_update('doc', 11, 1, '{"body": "b"}')), q(SELECT interlock.assert_version('doc', 11, 2)));
counts('no temporary table', "kind = 'versioning'", '', 'CREATE TEMP TABLE t (id int PRIMARY KEY)', q(SELECT interlock.enable_versioning('t')), 'INSERT INTO t VALUES (1)', q(SELECT interlock.versioned_update('t', 1, 1, '{}')));
counts('turned off', "kind = 'versioning'", '', 'SET interlock.count_contention = off', q(SELECT interlock.versioned_update('doc', 11, 9, '{}')));

# --- Transitions --------------------------------------------------------------------------------------------------

my $moves = "rel = 'doc'::regclass AND kind = 'transitions'";
counts('transitions: moved, moved before, not allowed', $moves, 'transitions: calls 4 refusals 3', q(SELECT interlock.transition('doc', 1, 'new', 'open')),
    q(SELECT interlock.transition('doc', 1, 'new', 'open')), q(SELECT interlock.transition('doc', 1, 'open', 'new')), q(SELECT outcome FROM interlock.try_transition('doc', 1, 'open', 'new')));
counts('the function as a statement', $moves, 'transitions: calls 1', 'SET interlock.direct_execution = off', q(SELECT interlock.transition('doc', 3, 'new', 'open')));
counts('a row that does not match', $moves, 'transitions: calls 1 conflicts 1', q(SELECT outcome FROM interlock.try_transition('doc', 1, 'open', 'done', match => '{"body": "never"}')));
counts('plain statements that change the state', $moves, 'transitions: calls 2 refusals 1', q(UPDATE doc SET status = 'open' WHERE id = 2), q(UPDATE doc SET status = 'new' WHERE id = 2), q(UPDATE doc SET body = 'f' WHERE id = 2));
counts('a function of another concept that is refused', $moves, 'transitions: calls 1 refusals 1', q(SELECT interlock.versioned_update('doc', 12, 1, '{"status": "done"}')));
counts('a new row in another state', $moves, 'transitions: calls 1 refusals 1', q(INSERT INTO doc (id, status) VALUES (60, 'done')));

# --- Markers --------------------------------------------------------------------------------------------------------

my $page = "rel = 'page'::regclass AND kind = 'marker'";
counts('markers: locked, held, saved', $page, 'marker: calls 3 conflicts 1', q(SELECT interlock.lock_row('page', 1, 'A')), q(SELECT interlock.lock_row('page', 1, 'B')),
    q(SELECT interlock.save_row('page', 1, 'A', '{"body": "b"}')));
counts('a plain write of a marked row', $page, 'marker: calls 2 refusals 1', q(SELECT interlock.lock_row('page', 2, 'A')), q(UPDATE page SET body = 'x' WHERE id = 2));
counts('a marker that is lost', $page, 'marker: calls 2 refusals 1', q(SELECT interlock.save_row('page', 2, 'B', '{"body": "b"}')), q(SELECT interlock.touch_row('page', 2, 'B')));
counts('several rows', $page, 'marker: calls 5 conflicts 1', q(SELECT interlock.lock_rows('page', '{3,4}'::int[], 'A')), q(SELECT interlock.lock_rows('page', '{4,5,6}'::int[], 'B')));
counts('rows of a queue', $page, 'marker: calls 2', q(SELECT * FROM interlock.claim_rows('page', 'W', 2)));
counts('an expired marker is taken over', $page, 'marker: calls 2 expiries 1 takeovers 1', q(SELECT interlock.lock_row('page', 10, 'A', ttl => '1 ms')), 'SELECT pg_sleep(0.02)', q(SELECT interlock.lock_row('page', 10, 'B')));
counts('or swept', $page, 'marker: calls 1 expiries 1', q(SELECT interlock.lock_row('page', 11, 'A', ttl => '1 ms')), 'SELECT pg_sleep(0.02)', q(SELECT interlock.sweep()));
counts('or taken by force', $page, 'marker: calls 2 takeovers 1', q(SELECT interlock.lock_row('page', 12, 'A')), q(SELECT interlock.force_unlock_row('page', 12, 'test')));
counts('renewals, late ones among them', $page, 'marker: calls 3 renewals 2 late_renewals 1', q(SELECT interlock.lock_row('page', 13, 'A')), q(SELECT interlock.touch_row('page', 13, 'A')), q(SELECT interlock.touch_row('page', 13, 'A', ttl => '3 hours')));

# --- Ownership, leases of tables --------------------------------------------------------------------------------------

counts('ownership', "rel = 'owned'::regclass", 'ownership: calls 2 refusals 1', q(UPDATE owned SET price = 2), q(UPDATE owned SET price = 1));
counts('a lease that a table requires', "rel = 'leased'::regclass", 'require_lease: calls 2 refusals 1', q(INSERT INTO leased VALUES (1, 'a')),
    'BEGIN', q(SELECT interlock.assert_lease('leased/2', token) FROM interlock.acquire_lease('leased/2')), q(INSERT INTO leased VALUES (2, 'a')), 'COMMIT');

# --- Leases, key locks, idempotency -------------------------------------------------------------------------------------

my $order = "key_class = 'order'";
counts('leases: acquired, held', $order, 'lease: calls 3 conflicts 2', q(SELECT interlock.acquire_lease('order/1')), q(SELECT interlock.acquire_lease('order/1')), q(SELECT interlock.acquire_lease('order', '1 min')));
counts('a wait that is given up', $order, 'lease: calls 1 waits 1 timeouts 1', q(SELECT interlock.acquire_lease('order/1', wait => '10 ms')));
counts('several leases, one of them held', $order, 'lease: calls 3 conflicts 1', q(SELECT interlock.acquire_leases('{order/1,order/2,order/3}')));
counts('a lease that expires', $order, 'lease: calls 2 expiries 1', q(SELECT interlock.acquire_lease('order/7', '1 ms')), 'SELECT pg_sleep(0.02)', q(SELECT interlock.acquire_lease('order/7')));
counts('renewals, late ones among them', $order, 'lease: calls 1 renewals 2 late_renewals 1', q(CREATE TABLE token AS SELECT token FROM interlock.acquire_lease('order/8', '1 ms')),
    'SELECT pg_sleep(0.02)', q(SELECT interlock.renew_lease('order/8', token, '1 hour') FROM token), q(SELECT interlock.renew_lease('order/8', token) FROM token));
counts('a token that is worth nothing', $order, 'lease: calls 1 refusals 1', q(SELECT interlock.assert_lease('order/9', 1)));
counts('a lease is broken', $order, 'lease: takeovers 1', q(SELECT interlock.break_lease('order/1', 'test')));

counts('key locks', $order, 'key: calls 4', q(SELECT interlock.lock_key('order:1')), q(SELECT interlock.lock_keys('{order/1/2,order/1/3}')), q(SELECT interlock.try_lock_key('order')));
counts('classes of which one begins as the other does', "kind = 'key'", "key: calls 1\nkey: calls 3\nkey: calls 2",
    map { "SELECT interlock.lock_key('$_')" } qw(ord order:1 ord:2 or order ord/3/4));
counts('identifiers are of no class', "kind = 'key'", 'key: calls 3',
    q(SELECT interlock.lock_key('12'), interlock.lock_key('9f1c-04'), interlock.lock_key('order12')));
counts('a class may have digits', "kind = 'key' AND key_class = 'order2'", 'key: calls 2', q(SELECT interlock.lock_key('order2:12'), interlock.lock_key('order2/13')));
counts('a class of two roles is one line', "kind = 'key'", 'key: calls 2',
    q(SELECT interlock.lock_key('order:1')), 'SET ROLE pg_monitor', q(SELECT interlock.lock_key('order:1')), 'RESET ROLE');
my $holder = $node->background_psql('postgres');
$holder->query_safe(q(SELECT interlock.lock_key('order:1', scope => 'session'), interlock.getapplock('order:1', 'Exclusive', 'Session')));
counts('a key that is held', $order, "applock: calls 1 conflicts 1\nkey: calls 2 conflicts 1 waits 1 timeouts 1", q(SELECT interlock.try_lock_key('order:1')),
    q(SELECT interlock.lock_key('order:1', wait => '10 ms')), q(SELECT interlock.getapplock('order:1', 'Exclusive', 'Session', 0)));
counts('a key without a class is one', "key_class = 'nightly report'", 'key: calls 1', q(SELECT interlock.lock_key('nightly report')));

counts('a scope is a class as a whole', "kind = 'idempotency'", "idempotency: calls 1\nidempotency: calls 1",
    q(SELECT outcome FROM interlock.idempotency_claim('pay', 'k')), q(SELECT outcome FROM interlock.idempotency_claim('pay:new', 'k')));
my $pay = "key_class = 'pay'";
counts('idempotency: claimed, replayed, another request', $pay, 'idempotency: calls 3 replays 1 mismatches 1',
    q(SELECT interlock.idempotency_complete('pay', 'k1', token) FROM interlock.idempotency_claim('pay', 'k1', '{"a": 1}')),
    q(SELECT interlock.idempotency_claim('pay', 'k1', '{"a": 1}')), q(SELECT interlock.idempotency_claim('pay', 'k1', '{"a": 2}')));
counts('in progress, stale, lost', $pay, 'idempotency: calls 4 conflicts 1 refusals 1 takeovers 1', q(SELECT interlock.idempotency_claim('pay', 'k2', null)), q(SELECT interlock.idempotency_claim('pay', 'k2', null)),
    'SELECT pg_sleep(1.1)', q(SELECT interlock.idempotency_claim('pay', 'k2', null)), q(SELECT interlock.idempotency_complete('pay', 'k2', 1)));
counts('tried again after a failure', $pay, 'idempotency: calls 2 retries 1',
    q(SELECT interlock.idempotency_fail('pay', 'k3', token, retryable => true) FROM interlock.idempotency_claim('pay', 'k3', null)), q(SELECT interlock.idempotency_claim('pay', 'k3', null)));

# --- Waits for rows ------------------------------------------------------------------------------------------------------

# The statements run while another session has the rows locked, which it commits once they wait.
sub counts_wait
{
    my ($name, $where, $expected, $first, @sql) = @_;
    $node->safe_psql('postgres', 'SELECT interlock.reset_contention()');
    my $other = $node->background_psql('postgres');
    $other->query_safe("BEGIN; $first");
    my $waiter = $node->background_psql('postgres', on_error_stop => 0);
    $waiter->query_until(qr/begun/, join("\n", '\echo begun', map { "$_;" } @sql) . "\n");
    $node->poll_query_until('postgres', "SELECT count(*) > 0 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query NOT LIKE '%pg_stat%'") or die 'nothing waits';
    $other->query_safe('COMMIT');
    $other->quit;
    $waiter->quit;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    is(counted($where), $expected, $name);
    return is($node->safe_psql('postgres', "SELECT bool_and((waits > 0) = (wait_time > '0')) FROM interlock.contention"), 't', 'with its time');
}

my $change = q(UPDATE doc SET body = body || 'z' WHERE id = 15 AND version = version);
counts_wait('a function that waits for a row', "$doc", 'versioning: calls 2 conflicts 1 blind_updates 1 waits 1', $change, q(SELECT interlock.try_versioned_update('doc', 15, 1, '{"body": "b"}')));
counts_wait('a take that waits for what others may give back', $stock, 'escrow: calls 2 refusals 1 waits 1', q(SELECT interlock.adjust('stock', 2, 'pieces', -1)),
    q(SELECT interlock.try_adjust('stock', 2, 'pieces', -2, wait => '1 min')));
counts_wait('a take that waits for the row, to load the counter', $stock, 'escrow: calls 1 waits 1', q(SELECT id FROM stock WHERE id = 3 FOR UPDATE),
    q(SELECT interlock.adjust('stock', 3, 'pieces', 1)));
counts_wait('an assertion', $doc, 'versioning: calls 2 conflicts 1 blind_updates 1 waits 1', $change, q(SELECT interlock.assert_version('doc', 15, 2)));
counts_wait('update_with_retry', $doc, 'versioning: calls 2 blind_updates 1 waits 1', $change, q(SELECT interlock.update_with_retry('doc', 15, 'tries(jsonb,jsonb)', '{}')));
counts_wait('select_for_update', "kind = 'select_for_update'", 'select_for_update: calls 2 waits 1', $change, q(SELECT interlock.select_for_update('doc', '{15,16}'::int[])));
{
    my $other = $node->background_psql('postgres');
    $other->query_safe("BEGIN; $change");
    counts('a wait for a row that is given up', "rel = 'doc'::regclass", "select_for_update: calls 2 conflicts 1 waits 1 timeouts 1\nversioning: calls 2 waits 1 timeouts 2",
        q(SELECT interlock.select_for_update('doc', '{15}'::int[], wait => '10 ms')), q(SELECT interlock.select_for_update('doc', '{15}'::int[], wait => '0')),
        q(SET lock_timeout = '10 ms'), q(SELECT interlock.versioned_update('doc', 15, version, '{}') FROM doc WHERE id = 15), 'SET interlock.direct_execution = off', q(SELECT interlock.versioned_update('doc', 15, version, '{}') FROM doc WHERE id = 15));
    $other->query_safe('ROLLBACK');
    $other->quit;
}
{
    my $other = $node->background_psql('postgres');
    $other->query_safe(q(BEGIN; SELECT interlock.adjust('stock', 4, 'pieces', -1)));
    counts('a wait for what others may give back that is given up', $stock, 'escrow: calls 3 waits 3 timeouts 3',
        q(SELECT interlock.try_adjust('stock', 4, 'pieces', -2, wait => '1 s')), q(SELECT interlock.adjust('stock', 4, 'pieces', -2, wait => '1 s')),
        q(SET lock_timeout = '1 s'), q(SELECT interlock.try_adjust('stock', 4, 'pieces', -2, wait => null)));
    counts('one that is canceled', $stock, 'escrow: calls 1 waits 1', q(SET statement_timeout = '1 s'), q(SELECT interlock.try_adjust('stock', 4, 'pieces', -2, wait => null)));
    $other->query_safe('ROLLBACK');
    $other->query_safe('BEGIN; SELECT pieces FROM stock WHERE id = 4 FOR UPDATE');
    counts('the wait of another function is none of these', $stock, '', q(SET lock_timeout = '10 ms'), q(SELECT interlock.set_escrow('stock', 4, 'pieces', 2)));
    $other->query_safe('ROLLBACK');
    $other->quit;
}
$node->safe_psql('postgres', 'SELECT interlock.reset_contention()');
{
    my $reader = $node->background_psql('postgres', on_error_stop => 0);
    $reader->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1');
    run($change);
    $reader->query(q(SELECT interlock.versioned_update('doc', 15, 7, '{}')));
    $reader->quit;
    is(counted($doc), 'versioning: calls 2 conflicts 1 blind_updates 1', '40001 is a conflict');
}
counts_wait('a key', $order, 'key: calls 2 waits 1', q(SELECT interlock.lock_key('order:2')), q(SELECT interlock.lock_key('order:2')));
counts_wait('a claim that is not committed, and then stale', $pay, 'idempotency: calls 2 waits 1 takeovers 1', q(SELECT interlock.idempotency_claim('pay', 'k9', null)), q(SELECT interlock.idempotency_claim('pay', 'k9', null, wait => '1 min')));
{
    $node->safe_psql('postgres', q(SELECT interlock.break_leases('%', 'test'), interlock.acquire_lease('order/5', '1 hour'); SELECT interlock.reset_contention()));
    my $waiter = $node->background_psql('postgres');
    $waiter->query_until(qr/begun/, qq(\\echo begun\nSELECT interlock.acquire_lease('order/5', wait => '5 min');\n));
    $node->poll_query_until('postgres', 'SELECT count(*) > 0 FROM interlock.lease_waiters') or die 'nothing waits';
    $node->safe_psql('postgres', q(SELECT interlock.break_lease('order/5', 'test')));
    $waiter->quit;
    is(counted($order), 'lease: calls 1 waits 1 takeovers 1', 'a lease that is waited for');
}

# --- Partitions, names, roles ----------------------------------------------------------------------------------------------

$node->safe_psql('postgres', q(
    CREATE TABLE part (id int PRIMARY KEY, body text) PARTITION BY RANGE (id);
    CREATE TABLE part_1 PARTITION OF part FOR VALUES FROM (0) TO (10);
    SELECT interlock.enable_versioning('part');
    INSERT INTO part VALUES (1, 'a')));
counts('partitions count with their table', "kind = 'versioning'", 'versioning: calls 3 conflicts 1 blind_updates 1', q(UPDATE part SET body = 'b'), q(SELECT interlock.try_versioned_update('part', 1, 1, '{}')), q(SELECT interlock.versioned_update('part_1', 1, 2, '{}')));
is($node->safe_psql('postgres', "SELECT rel FROM interlock.contention WHERE kind = 'versioning'"), 'part', 'which is shown');

$node->safe_psql('postgres', 'SELECT interlock.reset_contention()');
my $long = "\xc3\xa9" x 40; # 80 bytes
run(qq(SELECT interlock.lock_key('$long:1')), q(SELECT interlock.lock_key(E'a''b\\n"c;\\\\:1')), q(SELECT interlock.lock_key('/x')), q(SELECT interlock.lock_key(':')));
is($node->safe_psql('postgres', q(SELECT octet_length(key_class), char_length(key_class), calls FROM interlock.contention WHERE kind = 'key' ORDER BY 1)), "0|0|2\n8|8|1\n62|31|1", 'long and hostile classes');

$node->safe_psql('postgres', q(
    CREATE ROLE app LOGIN; CREATE ROLE other LOGIN; CREATE ROLE mon LOGIN IN ROLE pg_monitor; CREATE ROLE reader LOGIN;
    GRANT SELECT (id) ON doc TO reader;
    GRANT SELECT, UPDATE ON doc TO app;
    CREATE DATABASE second;
    SELECT interlock.reset_contention()));
$node->safe_psql('second', q(CREATE EXTENSION pg_interlock; CREATE TABLE there (id int PRIMARY KEY); SELECT interlock.enable_versioning('there');
    INSERT INTO there VALUES (1); SELECT interlock.versioned_update('there', 1, 1, '{}'), interlock.lock_key('there:1')));
run('SET ROLE app', q(SELECT interlock.lock_key('shared:1'), interlock.lock_key('mine:1')), q(UPDATE doc SET body = 'g' WHERE id = 1));
run('SET ROLE other', q(SELECT interlock.lock_key('shared:1')));
sub sees { my ($role, $database) = @_; return $node->safe_psql($database // 'postgres', "SET ROLE $role; SELECT database, rel, kind, key_class, calls FROM interlock.contention ORDER BY 1, 2, 3, 4"); }
is(sees('app'), "postgres|doc|versioning||1\npostgres||key|mine|1\npostgres||key|shared|1", 'a role sees its tables and keys');
is(sees('other'), 'postgres||key|shared|1', 'and nothing of others');
is(sees('reader'), 'postgres|doc|versioning||1', 'nor of keys, with SELECT on a column');
is(sees('mon'), "postgres|doc|versioning||1\npostgres||key|mine|1\npostgres||key|shared|2\nsecond||key|there|1\nsecond||versioning||1", 'pg_monitor sees all');
is(sees('mon', 'second'), "postgres||key|mine|1\npostgres||key|shared|2\npostgres||versioning||1\nsecond|there|versioning||1\nsecond||key|there|1", 'in each database');
for my $role ('app', 'mon') { is((run("SET ROLE $role", 'SELECT interlock.reset_contention()'))[1], '42501', "$role cannot reset them"); }
is($node->safe_psql('postgres', q(SELECT used, "of" FROM interlock.usage WHERE what = 'contention lines')), '6|64', 'view usage shows how many lines there are') or diag(sees('mon'));

# A table that is locked, renamed or gone
{
    my $locker = $node->background_psql('postgres');
    $locker->query_safe('BEGIN; LOCK TABLE doc');
    is($node->safe_psql('postgres', "SET lock_timeout = '1 ms'; SELECT rel, calls FROM interlock.contention WHERE rel IS NOT NULL"), 'doc|1', 'it waits for no lock');
    $locker->query_safe('ROLLBACK; ALTER TABLE doc RENAME TO "Do c"');
    $locker->quit;
    is($node->safe_psql('postgres', 'SELECT rel, calls FROM interlock.contention WHERE rel IS NOT NULL'), '"Do c"|1', 'a new name is shown');
    $node->safe_psql('postgres', 'ALTER TABLE "Do c" RENAME TO doc');
}
run('CREATE TABLE gone (id int PRIMARY KEY)', q(SELECT interlock.enable_versioning('gone')), 'INSERT INTO gone VALUES (1)', 'UPDATE gone SET id = 1', 'DROP TABLE gone');
is($node->safe_psql('postgres', "SELECT count(*) FROM interlock.contention WHERE kind = 'versioning' AND rel IS DISTINCT FROM 'doc'::regclass AND database = 'postgres'"), '0', 'a table that is gone is not');
$node->safe_psql('postgres', 'DROP DATABASE second');
is(sees('mon') =~ /second/ ? 1 : 0, 0, 'nor a database');

# --- More than there is room for ---------------------------------------------------------------------------------------------

$node->safe_psql('postgres', 'SELECT interlock.reset_contention()');
run(q(SELECT count(*) FROM generate_series(1, 100) i, interlock.try_lock_key('class' || translate(i::text, '0123456789', 'abcdefghij'))));
is($node->safe_psql('postgres', q(SELECT kind, count(*), sum(calls), bool_and(database IS NULL) FROM interlock.contention GROUP BY kind ORDER BY 1)), "key|32|32|f\nother|1|68|t", 'half of the lines are for keys, the rest of them are counted together');
$node->safe_psql('postgres', q(DO $$ BEGIN FOR i IN 1 .. 40 LOOP
    EXECUTE format('CREATE TABLE many_%s (id int PRIMARY KEY)', i);
    PERFORM interlock.enable_versioning(format('many_%s', i)::regclass);
    EXECUTE format('INSERT INTO many_%s VALUES (1)', i);
    EXECUTE format('UPDATE many_%s SET id = 1', i); END LOOP; END $$));
is($node->safe_psql('postgres', q(SELECT kind, count(*), sum(calls) FROM interlock.contention GROUP BY kind ORDER BY 1)), "key|32|32\nother|1|76\nversioning|32|32", 'the other half is for tables');
is($node->safe_psql('postgres', q(SELECT used, "of" FROM interlock.usage WHERE what = 'contention lines')), '64|64', 'view usage says so');
$node->safe_psql('postgres', q(DROP TABLE many_1, many_2));
run('SELECT pg_sleep(1.1)', map { "UPDATE many_$_ SET id = 1" } 1 .. 40); # what is gone is looked for once in a second
is($node->safe_psql('postgres', q(SELECT kind, count(*), sum(calls) FROM interlock.contention GROUP BY kind ORDER BY 1)), "key|32|32\nother|1|82\nversioning|32|62", 'lines of tables that are gone are used again');
$node->safe_psql('postgres', 'SELECT interlock.reset_contention()');
run('UPDATE many_40 SET id = 1', q(SELECT interlock.lock_key('classjj')));
is(counted('true'), "key: calls 1\nversioning: calls 1 blind_updates 1", 'after a reset there is room');

# --- Restarts -------------------------------------------------------------------------------------------------------------------

$node->restart;
is(counted('true'), "key: calls 1\nversioning: calls 1 blind_updates 1", 'a clean restart keeps them');
my $since = $node->safe_psql('postgres', 'SELECT min(since) FROM interlock.contention');
my $file = $node->data_dir . '/pg_stat/pg_interlock.contention';
ok(!-e $file, 'the file is read once');
$node->stop('fast');
my $saved = slurp_file($file);
sub start_with { my ($bytes) = @_; open my $out, '>:raw', $file or die; print $out $bytes; close $out; $node->start; return counted('true'); }
is(start_with($saved), "key: calls 1\nversioning: calls 1 blind_updates 1", 'over several restarts');
is($node->safe_psql('postgres', 'SELECT min(since) FROM interlock.contention'), $since, 'with the time since when');
$node->stop('fast');
is(start_with(substr($saved, 0, -7)), '', 'a file that is torn is not read');
$node->stop('fast');
is(start_with($saved =~ s/classjj/classji/r), '', 'nor one that is damaged');
$node->stop('fast');
is(start_with(''), '', 'nor an empty one');
is($node->safe_psql('postgres', 'SELECT count(*) FROM interlock.contention'), '0', 'and the server starts');

# CRC-32C, as the server computes it
sub checksum
{
    my ($bytes) = @_;
    my $sum = 0xFFFFFFFF;
    for my $byte (unpack 'C*', $bytes) { $sum ^= $byte; $sum = $sum & 1 ? ($sum >> 1) ^ 0x82F63B78 : $sum >> 1 for 1 .. 8; }
    return pack 'L', $sum ^ 0xFFFFFFFF;
}
my $body = substr($saved, 0, -4);
is(checksum($body), substr($saved, -4), 'the file ends with its checksum');
$node->stop('fast');
(my $foreign = $body) =~ s/^./\x00/s;
is(start_with($foreign . checksum($foreign)), '', 'a file of another version is not read');
$node->stop('fast');
my $full = $body =~ s/(classjj.{59}.{4}.{8})(.{8})/$1 . pack('q', 9223372036854775806)/ser;
isnt($full, $body, 'counters near their end');
is(start_with($full . checksum($full)) =~ /key: calls 9223372036854775806/ ? 1 : 0, 1, 'are read') or diag(counted('true'));
run(q(SELECT interlock.lock_key('classjj'), interlock.lock_key('classjj'), interlock.lock_key('classjj')));
is(counted("key_class = 'classjj'"), 'key: calls 9223372036854775807', 'and stay there');
$node->restart;
is(counted("key_class = 'classjj'"), 'key: calls 9223372036854775807', 'over a restart, too');
$node->stop('immediate');
$node->start;
is(counted('true'), '', 'a crash begins anew');

# --- What clients saw --------------------------------------------------------------------------------------------------------------

$node->safe_psql('postgres', q(CREATE TABLE hot (id int PRIMARY KEY, n int); SELECT interlock.enable_versioning('hot'); INSERT INTO hot SELECT i, 0 FROM generate_series(1, 3) i;
    CREATE TABLE seen (outcome text, count bigint)));
my @clients = map { $node->background_psql('postgres') } 1 .. 6;
for my $client (@clients)
{
    $client->query_until(qr/begun/, q(\echo begun
        CREATE TEMP TABLE mine (outcome text);
        DO $$ DECLARE v bigint; k int; o text; BEGIN FOR i IN 1 .. 300 LOOP
            k := 1 + i % 3; SELECT version INTO v FROM hot WHERE id = k;
            SELECT outcome INTO o FROM interlock.try_versioned_update('hot', k, v, '{"n": 1}');
            INSERT INTO mine VALUES (o);
            IF i % 10 = 0 THEN ROLLBACK; ELSE COMMIT; END IF;
        END LOOP; END $$;
        INSERT INTO seen SELECT outcome, count(*) FROM mine GROUP BY 1;
));
}
$_->quit for @clients;
is($node->safe_psql('postgres', q(SELECT c.calls = 1800, c.conflicts - sum(s.count) FILTER (WHERE s.outcome = 'conflict') BETWEEN 0 AND 180
    FROM seen s, interlock.contention c WHERE c.rel = 'hot'::regclass GROUP BY c.calls, c.conflicts)), 't|t', 'each call is counted once');
is($node->safe_psql('postgres', q(SELECT calls - conflicts FROM interlock.contention WHERE rel = 'hot'::regclass)) >= $node->safe_psql('postgres', 'SELECT sum(version) - 3 FROM hot'), 1, 'and what was written is no conflict');

# --- Without preload, on a standby ------------------------------------------------------------------------------------------------

$node->append_conf('postgresql.conf', "wal_level = replica\nmax_wal_senders = 4\nhot_standby = on");
$node->restart;
$node->backup('copy');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($node, 'copy', has_streaming => 1);
$standby->start;
is($standby->safe_psql('postgres', q(SELECT count(*) FROM interlock.contention WHERE calls > 0)), '0', 'a standby has counters of its own');
$standby->safe_psql('postgres', q(SELECT interlock.lock_key('standby:1')));
$standby->restart;
is($standby->safe_psql('postgres', q(SELECT key_class, calls FROM interlock.contention)), 'standby|1', 'over its restart, too');
$standby->stop;
$node->append_conf('postgresql.conf', "shared_preload_libraries = ''");
$node->restart;
is($node->safe_psql('postgres', q(SELECT interlock.versioned_update('hot', 1, version, '{}') > 0, (SELECT count(*) FROM interlock.contention) FROM hot WHERE id = 1)), 't|0', 'without preload nothing is counted');
is((run('SELECT interlock.reset_contention()'))[1], '', 'and there is nothing to reset');

done_testing();
