# Key locks and application locks between sessions and over the life of a server: the compatibility matrix,
# prepared transactions, cancels and kills, limits, names with the same hash, a standby.

use strict;
use warnings;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('main');
$node->init(allows_streaming => 1);
$node->append_conf('postgresql.conf', q(
shared_preload_libraries = 'pg_interlock'
max_prepared_transactions = 5
max_connections = 20
log_lock_waits = on
deadlock_timeout = 100ms
interlock.key_names = 64
interlock.sweeper = off
));
$node->start;
$node->safe_psql('postgres', 'CREATE EXTENSION pg_interlock');

sub session { return $node->background_psql('postgres', on_error_stop => 0); }

# The one value a session's query returns, or its error.
sub ask
{
    my ($session, $sql) = @_;
    my $answer = $session->query($sql);
    my $error = $session->{stderr};
    $session->{stderr} = '';
    return $error =~ /(ERROR: .*)/ ? $1 : $answer;
}

sub wait_for_waiter
{
    ok($node->poll_query_until('postgres', 'SELECT count(*) > 0 FROM interlock.key_locks WHERE waiting'), "$_[0]: it waits");
}

# A session that sends a statement and does not wait for its end.
sub start_waiting
{
    my ($session, $sql, $name) = @_;
    $session->query_until(qr/started/, "\\echo started\n$sql\n\\echo finished\n");
    wait_for_waiter($name);
}

my $one = session();
my $two = session();

# The compatibility matrix of SQL Server, all 25 pairs, in two sessions
my %compatible = (
    intent_shared    => { map { $_ => 1 } qw(intent_shared shared update intent_exclusive) },
    shared           => { map { $_ => 1 } qw(intent_shared shared update) },
    update           => { map { $_ => 1 } qw(intent_shared shared) },
    intent_exclusive => { map { $_ => 1 } qw(intent_shared intent_exclusive) },
    exclusive        => {});
my %applock_name = (intent_shared => 'IntentShared', shared => 'Shared', update => 'Update',
    intent_exclusive => 'IntentExclusive', exclusive => 'Exclusive');
for my $held (sort keys %compatible)
{
    for my $asked (sort keys %compatible)
    {
        my $expected = $compatible{$held}{$asked} ? 't 0 1' : 'f -1 0';
        $one->query_safe("BEGIN; SELECT interlock.lock_key('k', '$held'); SELECT interlock.getapplock('k', '$applock_name{$held}');");
        my $got = $two->query_safe("BEGIN; SELECT concat_ws(' ', interlock.try_lock_keys('{k}', '$asked')::text::char(1),
            interlock.getapplock('k', '$applock_name{$asked}', 'Transaction', 0),
            interlock.applock_test('public', 'k', '$applock_name{$asked}')); COMMIT;");
        $one->query_safe('COMMIT');
        is($got, $expected, "$asked beside $held");
    }
}

# SharedIntentExclusive and UpdateIntentExclusive exclude everything but IntentShared
for my $first ('shared', 'update')
{
    $one->query_safe("BEGIN; SELECT interlock.lock_key('k', '$first'), interlock.lock_key('k', 'intent_exclusive')");
    is($two->query_safe(q(SELECT string_agg(mode, ' ' ORDER BY mode) FROM unnest(
        '{intent_shared,shared,update,intent_exclusive,exclusive}'::text[]) mode WHERE interlock.try_lock_keys('{k}', mode))),
        'intent_shared', "beside $first and intent_exclusive");
    $one->query_safe('COMMIT');
}

# A wait names the key, in the log and in the error
$one->query_safe("BEGIN; SELECT interlock.lock_key('invoice:7')");
my $log_start = -s $node->logfile;
like(ask($two, "SET lock_timeout = '300 ms'; SELECT interlock.lock_key('invoice:7', 'shared')"),
    qr/could not lock key "invoice:7" in mode shared/, 'lock_timeout ends the wait');
$two->query_safe('RESET lock_timeout');
# PostgreSQL 19 says first what the server waits for.
ok($node->wait_for_log(qr/still waiting for (?s:.*?)CONTEXT:  (?:waiting for .*\n\t)?waiting for key "invoice:7" in mode shared/, $log_start),
    'the log names the key');
my ($status, $stdout, $stderr) = $node->psql('postgres', "SELECT interlock.lock_key('invoice:7', wait => '0')");
like($stderr, qr/DETAIL:  \{"key": "invoice:7", "mode": "exclusive", "others": \[\{"pid": \d+, "mode": "exclusive", "waiting": false\}\]\}/,
    'the error tells who has it');

# A row that is locked by others: the error says which, and what to do
$node->safe_psql('postgres', q(CREATE TABLE seat (id int PRIMARY KEY); INSERT INTO seat VALUES (1), (2);
    CREATE FUNCTION closed() RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN RAISE SQLSTATE '55P03' USING MESSAGE = 'closed today'; END $$;
    CREATE TABLE policed (id int PRIMARY KEY); INSERT INTO policed VALUES (1); ALTER TABLE policed ENABLE ROW LEVEL SECURITY;
    CREATE POLICY p ON policed USING (closed()); CREATE ROLE visitor; GRANT SELECT, UPDATE ON policed TO visitor));
my $row_holder = session();
ask($row_holder, 'BEGIN; SELECT FROM seat WHERE id = 2 FOR UPDATE; SELECT FROM policed FOR UPDATE');
for my $call (["'seat', '[1, 2]', wait => '50 ms'", 'seat', 2], ["'seat', '[1, 2]', wait => '0'", 'seat', 2], ["'policed', '[1]', wait => '50 ms'", 'policed', 1])
{
    my ($arguments, $table, $id) = @$call;
    my (undef, undef, $error) = $node->psql('postgres', "SELECT interlock.select_for_update($arguments)");
    like($error, qr/ERROR:  could not lock row of table "$table"\nDETAIL:  \{"table": "public.$table", "key": \{"id": $id\}\}\nHINT:  [^\n]*skip_locked => true/,
        "select_for_update($arguments) says which row is locked, and what to do");
}
my (undef, undef, $own_error) = $node->psql('postgres', "SET ROLE visitor; SELECT interlock.select_for_update('policed', '[1]')");
like($own_error, qr/ERROR:  closed today/, 'what a policy raises with this SQLSTATE is left');
$row_holder->quit;

# One deadline over the whole call, though each of its waits is shorter
$one->query_safe("SELECT interlock.lock_key('a', scope => 'session'); COMMIT;");
my $three = session();
$three->query_safe("SELECT interlock.lock_key('b', scope => 'session')");
start_waiting($two, "SELECT interlock.try_lock_keys('{a,b}', wait => '1 s') AS got;", 'two waits');
$one->query_safe("SELECT pg_sleep(0.7); SELECT interlock.unlock_keys('{a}')");
$three->query_safe("SELECT pg_sleep(0.6); SELECT interlock.unlock_keys('{b}')");
is(ask($two, 'SELECT count(*) FROM interlock.key_locks'), "f\nfinished\n0", 'both waits together were too long');

# Cancels, timeouts and kills leave nothing half held
for my $how ('pg_cancel_backend', 'pg_terminate_backend', 'statement_timeout')
{
    my $victim = session();
    $victim->query_safe("SET statement_timeout = '300 ms'") if $how eq 'statement_timeout';
    $one->query_safe("BEGIN; SELECT interlock.lock_key('m')");
    start_waiting($victim, "SELECT interlock.lock_keys('{l,m,n}', scope => 'session');", $how);
    $node->safe_psql('postgres', "SELECT $how(pid) FROM interlock.key_locks WHERE waiting") if $how ne 'statement_timeout';
    ok($node->poll_query_until('postgres', "SELECT array_agg(key) = '{m}' FROM interlock.key_locks"), "$how: nothing half held");
    $one->query_safe('COMMIT');
    eval { $victim->quit };
}
$one->query_safe("BEGIN; SELECT interlock.lock_key('m')");
$node->safe_psql('postgres', "SELECT pg_terminate_backend(pid) FROM interlock.key_locks WHERE NOT waiting");
ok($node->poll_query_until('postgres', 'SELECT count(*) = 0 FROM interlock.key_locks'), 'a killed holder holds nothing');
$one = session();

# The wait for a session lock times out in the moment in which the lock is granted: it is granted
my $granted_after_all = 0;
my ($holder, $waiter) = (session(), session());
$waiter->query("SET client_min_messages = debug1; SET deadlock_timeout = '10 s'");
$node->safe_psql('postgres', q(CREATE PROCEDURE hold(seconds float) LANGUAGE plpgsql AS $$ BEGIN
    PERFORM interlock.getapplock('race', 'Exclusive'); PERFORM pg_sleep(seconds); COMMIT; END $$));
for my $round (1 .. 4000)
{
    $holder->query_until(qr/started/, sprintf("\\echo started\nCALL hold(%f);\n", 0.003 + 0.00005 * ($round % 40)));
    my $code = $waiter->query("SELECT interlock.getapplock('race', 'Exclusive', 'Session', 3)");
    my $noise = $waiter->{stderr};
    $waiter->{stderr} = '';
    $granted_after_all++ if $noise =~ /timed out and was granted/;
    my $mode = $waiter->query("SELECT interlock.applock_mode('public', 'race', 'Session')");
    my $consistent = $code eq '-1' ? $mode eq 'NoLock' : $mode eq 'Exclusive';
    fail("code $code, mode $mode: $noise") if !$consistent || $noise =~ /ERROR/;
    $waiter->query("SELECT interlock.releaseapplock('race', 'Session')");
    $holder->query_safe('SELECT 1');
    last if $granted_after_all >= 3;
}
cmp_ok($granted_after_all, '>=', 1, 'a lock granted in the moment of the timeout was hit');

# Names are forgotten with their locks, however these end
$node->safe_psql('postgres', join('', map { "BEGIN; SELECT interlock.lock_key('name $_'); COMMIT;" } 1 .. 100));
$node->safe_psql('postgres', join('', map { "SELECT interlock.lock_key('name $_', scope => 'session'); DISCARD ALL;" } 1 .. 100));
$node->safe_psql('postgres', join('', map { "DO \$\$ BEGIN PERFORM interlock.lock_key('name $_'); RAISE division_by_zero;
    EXCEPTION WHEN division_by_zero THEN NULL; END \$\$;" } 1 .. 100));
$node->safe_psql('postgres', "SELECT interlock.lock_key('name $_', scope => 'session')") for 1 .. 70;
is($node->safe_psql('postgres', q(SELECT interlock.try_lock_keys(array_agg('name ' || g)) FROM generate_series(1, 64) g)), 't',
    'as many names as interlock.key_names fit');
($status, $stdout, $stderr) = $node->psql('postgres', q(\set VERBOSITY sqlstate
    SELECT interlock.lock_keys(array_agg('name ' || g), scope => 'session') FROM generate_series(1, 64 + 9) g;
    SELECT count(*) FROM interlock.key_locks;), on_error_stop => 0);
like($stderr, qr/53400/, 'one more than those and the reserve of superusers does not');
is($stdout, '0', 'and nothing is half held');

# HIS-22: prepared transactions keep their locks and the names of these, over a crash; afterwards nothing of them is left
sub prepared { return $node->safe_psql('postgres', q(SELECT string_agg(concat_ws(' ', key, kind, mode), ', ' ORDER BY key, mode) FROM interlock.key_locks WHERE pid IS NULL)); }
$node->safe_psql('postgres', "CREATE ROLE prep; CREATE ROLE other; SELECT interlock.define_idempotency_scope('pay'); SELECT interlock.grant_idempotency_scope('pay', 'prep')");
$node->safe_psql('postgres', q(BEGIN; SET LOCAL transaction_read_only = on; SELECT interlock.lock_key('doc/a');
    SAVEPOINT s; SELECT interlock.lock_keys('{gone,doc/a}', 'shared'); ROLLBACK TO s;
    SELECT interlock.lock_key('session', scope => 'session'); SELECT interlock.getapplock('a''b', 'Update'); PREPARE TRANSACTION 'p'));
$node->safe_psql('postgres', "SET ROLE prep; BEGIN; SELECT interlock.idempotency_claim('pay', 'k'); PREPARE TRANSACTION 'q'");
my $prepared = "a'b applock Update, doc key intent_exclusive, doc/a key exclusive, pay\nk idempotency exclusive";
is(prepared(), $prepared, 'a prepared transaction holds its keys by name');
eval { $_->quit } for ($one, $two, $three, $holder, $waiter);
$node->stop('immediate');
$node->start;
is($node->safe_psql('postgres', "SELECT interlock.try_lock_keys('{doc/a}'), interlock.try_lock_keys('{doc/b}')"), 'f|t', 'after a crash, too');
is(prepared(), $prepared, 'it has the names');
is($node->safe_psql('postgres', "SET ROLE $_->[0]; SELECT count(key), count(hash) FROM interlock.key_locks WHERE kind = 'idempotency'"), $_->[1],
    "$_->[0]: names of idempotency and their hashes are for the role") for [ 'prep', '1|1' ], [ 'other', '0|0' ];
is($node->safe_psql('postgres', 'SELECT count(*) FROM interlock_internal.prepared_key'), 0, 'no snapshot shows the table\'s rows');
$node->safe_psql('postgres', 'VACUUM FREEZE interlock_internal.prepared_key');
$node->safe_psql('postgres', 'VACUUM FULL interlock_internal.prepared_key');
$node->restart;
is(prepared(), $prepared, 'vacuum leaves them');
$node->safe_psql('postgres', "COMMIT PREPARED 'p'");
is($node->safe_psql('postgres', "SELECT interlock.try_lock_keys('{doc/a}')"), 't', 'until it is committed');
$node->safe_psql('postgres', "ROLLBACK PREPARED 'q'");
is(prepared(), '', 'nothing is shown of those that are decided');
$node->safe_psql('postgres', 'VACUUM interlock_internal.prepared_key');
is($node->safe_psql('postgres', "SELECT pg_relation_size('interlock_internal.prepared_key')"), 0, 'nor left');
($status, $stdout, $stderr) = $node->psql('postgres',
    "BEGIN; SELECT interlock.lock_key('a'), interlock.lock_key('a', scope => 'session'); PREPARE TRANSACTION 'p'");
like($stderr, qr/cannot PREPARE while holding both session-level and transaction-level locks/, 'a key held both ways');

# Names stay known as long as their locks are held
$one = session();
$one->query_safe(q(CREATE PROCEDURE busy() LANGUAGE plpgsql AS $$ BEGIN
    FOR i IN 1 .. 3000 LOOP PERFORM interlock.lock_key('busy'); COMMIT; END LOOP; END $$));
$one->query_until(qr/started/, "\\echo started\nCALL busy();\n");
is($node->safe_psql('postgres', q(SELECT sum((SELECT count(*) FROM interlock.key_locks WHERE key IS NULL AND g > 0)) FROM generate_series(1, 3000) g)), '0',
    'no lock without a name');
$one->query_safe('DROP PROCEDURE busy');
eval { $one->quit };

# A parallel plan takes no key twice, nor in a worker
my $parallel = $node->safe_psql('postgres', q(SELECT setting FROM pg_settings WHERE name IN ('force_parallel_mode', 'debug_parallel_query')
    AND set_config(name, 'on', false) = 'on'));
is($node->safe_psql('postgres', "SELECT count(interlock.lock_key('k' || (oid::int % 5))) > 0, (SELECT count(*) FROM interlock.key_locks) FROM pg_class"),
    't|5', 'parallel query');

# A standby has locks of its own
$node->backup('backup');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($node, 'backup', has_streaming => 1);
$standby->start;
is($standby->safe_psql('postgres', "SELECT interlock.try_lock_keys('{a}'), interlock.getapplock('r', 'Shared', 'Session'),
    interlock.try_lock_keys('{b}', wait => '1 s')"), 't|0|t', 'locks on a standby');
# HIS-22, after a failover
$node->safe_psql('postgres', "BEGIN; SELECT interlock.lock_key('kept'); PREPARE TRANSACTION 'f'");
$node->wait_for_catchup($standby);
$standby->promote;
is($standby->safe_psql('postgres', 'SELECT key, mode, pid FROM interlock.key_locks'), 'kept|exclusive|', 'a promoted standby has the names of prepared transactions');
$standby->safe_psql('postgres', "COMMIT PREPARED 'f'");
$standby->stop;
$node->safe_psql('postgres', "ROLLBACK PREPARED 'f'");

# The lock table is exhausted: a clear error, nothing half held
$node->append_conf('postgresql.conf', "max_locks_per_transaction = 10\ninterlock.key_names = 100000");
$node->restart;
for my $call ('lock_keys', 'try_lock_keys')
{
    ($status, $stdout, $stderr) = $node->psql('postgres', qq(\\set VERBOSITY verbose
        SELECT interlock.$call(array_agg('name ' || g), scope => 'session') FROM generate_series(1, 90000) g;
        SELECT count(*) FROM interlock.key_locks;), on_error_stop => 0);
    like($stderr, qr/53200.*out of shared memory/, "$call: the lock table is full");
    is($stdout, '0', "$call: nothing is half held");
}
is($node->safe_psql('postgres', q(SELECT interlock.try_lock_keys(array_agg('name ' || g)) FROM generate_series(1, 100) g)), 't', 'and it works again');
is($node->safe_psql('postgres', q(DO $$ BEGIN
    FOR i IN 1 .. 90000 LOOP
        BEGIN PERFORM pg_advisory_xact_lock(i); EXCEPTION WHEN out_of_memory THEN EXIT; END;
    END LOOP;
    FOR i IN 1 .. 300 LOOP
        BEGIN PERFORM interlock.lock_key('name ' || i, scope => 'session'); EXCEPTION WHEN out_of_memory THEN NULL; END;
    END LOOP; END $$;
    SELECT used = (SELECT count(*) FROM interlock.key_locks) FROM interlock.usage WHERE what = 'key names' AND role IS NULL AND database IS NULL)), 't', 'no name stays that was not locked');

# Names with the same hash: two locks, never one, never a false grant
$node->append_conf('postgresql.conf', 'interlock.key_hash_bits = 1');
$node->restart;
($one, $two) = (session(), session());
my @names = map { "twin $_" } 1 .. 12;
my $all_names = join(',', @names);
$one->query_safe("BEGIN; SELECT interlock.lock_keys('{" . join(',', @names[0 .. 5]) . "}')");
is($two->query_safe("SELECT string_agg(name, ',') FROM unnest('{$all_names}'::text[]) name WHERE interlock.try_lock_keys(ARRAY[name])"),
    join(',', @names[6 .. 11]), 'only those that are free are granted');
is($node->safe_psql('postgres', 'SELECT count(DISTINCT key), count(DISTINCT hash) FROM interlock.key_locks'), '6|2', 'six names, two hashes');
like(ask($one, "PREPARE TRANSACTION 'p'"), qr/cannot prepare a transaction that holds key "twin \d"/, 'they are not prepared');
my $six = join(',', reverse @names[0 .. 5]);
$one->query_safe("SELECT interlock.lock_keys('{$six}', scope => 'session')");
for my $n (0 .. 5)
{
    $one->query_safe("SELECT interlock.unlock_keys('{$names[$n]}')");
    is($two->query_safe("SELECT string_agg(name, ',') FROM unnest('{$six}'::text[]) name WHERE interlock.try_lock_keys(ARRAY[name])"),
        join(',', reverse @names[0 .. $n]), "$names[$n] is free, and those after it keep their locks");
}
is($two->query_safe("SELECT interlock.try_lock_keys('{$all_names}', scope => 'session')"), 't', 'all of them when they are free');
($status, $stdout, $stderr) = $node->psql('postgres', q(SELECT interlock.lock_keys(array_agg('other ' || g)) FROM generate_series(1, 40) g));
like($stderr, qr/too many keys with the same hash/, 'more than sixteen with one hash are refused');
eval { $two->quit };
ok($node->poll_query_until('postgres', 'SELECT count(*) = 0 FROM interlock.key_locks'), 'all free');
$node->safe_psql('postgres', "BEGIN; SELECT interlock.lock_key('twin 1'); PREPARE TRANSACTION 'p'");
($status, $stdout, $stderr) = $node->psql('postgres', "SELECT interlock.lock_keys('{$all_names}', wait => '100 ms')");
like($stderr, qr/cannot be distinguished from another|could not lock key/, 'beside a prepared one nothing is granted that may be held');
$node->safe_psql('postgres', "COMMIT PREPARED 'p'");
eval { $one->quit };

# Without preload everything works, but names are not known
$node->append_conf('postgresql.conf', "shared_preload_libraries = ''");
$node->restart;
is($node->safe_psql('postgres', "BEGIN; SELECT interlock.lock_key('a/b'); SELECT key IS NULL, kind, mode, hash <> 0 FROM interlock.key_locks ORDER BY mode"),
    "\nt|key|exclusive|t\nt|key|intent_exclusive|t", 'without preload the view shows numbers');
# The views of what is in shared memory say so (docs/reference/views.md)
for my $view ('leases', 'lease_waiters', 'sweeper')
{
    $node->psql('postgres', "\\set VERBOSITY sqlstate\nSELECT * FROM interlock.$view", stderr => \my $error);
    like($error, qr/ERROR:  55000/, "without preload: $view");
}
for my $view ('usage', 'blind_updates')
{
    is($node->safe_psql('postgres', "SELECT count(*) FROM interlock.$view"), 0, "without preload: $view is empty");
}
ok(slurp_file($node->logfile) !~ /PANIC|TRAP|terminated by signal/, 'nothing crashed');
$node->stop;
done_testing();
