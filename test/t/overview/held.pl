# View held: every kind of hold, for whom, and that it waits for nobody; with preload, without, and on a standby.

use strict;
use warnings;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('primary');
$node->init(allows_streaming => 1);
$node->append_conf('postgresql.conf', q(
shared_preload_libraries = 'pg_interlock'
interlock.sweeper = off
interlock.key_names = 4096
max_prepared_transactions = 5
max_locks_per_transaction = 256
max_connections = 20
));
$node->start;

my $asked = $node;
sub ask { return $asked->safe_psql('postgres', $_[0]); }
sub as_role { my ($role, $sql) = @_; return ask("SET ROLE $role; $sql"); }
# A session of the role: the role of the session has what it has reserved.
sub as_login { my ($role, $sql) = @_; return $asked->safe_psql('postgres', $sql, extra_params => [ '-U', $role ]); }
sub held
{
    my ($where, $columns) = @_;
    return 'SELECT concat_ws(\' \', ' . ($columns // 'kind, name, rel, holder, role, waiters, mode, note') . ") FROM interlock.held WHERE $where ORDER BY 1";
}
sub session { my (%options) = @_; return $node->background_psql('postgres', on_error_stop => 0, %options); }
sub start_waiting { my ($session, $sql) = @_; $session->query_until(qr/started/, "\\echo started\n$sql;\n"); return; }

ask(q(
    CREATE EXTENSION pg_interlock;
    CREATE ROLE owner; CREATE ROLE reader LOGIN; CREATE ROLE other LOGIN; CREATE ROLE monitor LOGIN; CREATE ROLE app;
    GRANT pg_monitor TO monitor;
    GRANT CREATE ON SCHEMA public TO owner;
    SET ROLE owner;
    CREATE TABLE "Odd ""table" (id int, part text, PRIMARY KEY (id, part));
    INSERT INTO "Odd ""table" SELECT i, 'p' FROM generate_series(1, 3) i;
    SELECT interlock.enable_marker('"Odd ""table"', '1 day');
    GRANT SELECT ON "Odd ""table" TO reader;
    CREATE TABLE renamed (id int PRIMARY KEY);
    SELECT interlock.enable_marker('renamed');
    ALTER TABLE renamed RENAME COLUMN lock_until TO gone;
    GRANT SELECT ON renamed TO reader;
    CREATE TABLE item (id int PRIMARY KEY, stock int NOT NULL);
    INSERT INTO item VALUES (7, 5);
    SELECT interlock.enable_escrow('item', 'stock');
    GRANT SELECT ON item TO reader;
    RESET ROLE;
    CREATE TABLE memo (id int);
    SELECT interlock.define_idempotency_scope('pay', ttl => '7 days', stale_after => '1 day'), interlock.grant_idempotency_scope('pay', 'app');
));

# --- Every kind --------------------------------------------------------------------------------------------------

ask(q(SELECT interlock.acquire_lease('a/b', '1 day', holder => 'worker 1'), interlock.acquire_lease('s', '1 day', holder => 'reader', mode => 'shared'),
    interlock.acquire_permit('p', 2, '1 day', holder => 'first'), interlock.acquire_permit('p', 2, '1 day', holder => 'second')));
ask(q(SELECT interlock.lock_row('"Odd ""table"', '{"id": 1, "part": "p"}'::jsonb, 'anna'), interlock.lock_row('"Odd ""table"', '{"id": 2, "part": "p"}'::jsonb, 'ben', '1 ms')));
ask(q(SELECT interlock.idempotency_claim('pay', 'order 1'), interlock.idempotency_claim('pay', 'done')));
ask(q(SELECT interlock.idempotency_complete('pay', 'done', (SELECT token FROM interlock.idempotency WHERE key = 'done'))));
ask(q(SELECT interlock.reserve('item', 7, 'stock', 2, '1 day', holder => 'cart 1'), interlock.reserve('item', 7, 'stock', 1, '1 us')));
ask(q(SELECT interlock.adjust('item', 7, 'stock', -1)));
ask(q(BEGIN; SELECT interlock.lock_key('prepared'); PREPARE TRANSACTION 'it''s'));
ask(q(BEGIN; INSERT INTO memo VALUES (1); SAVEPOINT s; INSERT INTO memo VALUES (2); SELECT interlock.getapplock('app lock', 'Update'); PREPARE TRANSACTION 'other'));
my $one = session(extra_params => ['-v', 'x=y']);
$one->query_safe(q(SET application_name = 'batch'; BEGIN; SELECT interlock.lock_key('doc/1'), interlock.idempotency_claim('pay', 'open'), interlock.lock_key('both', 'shared')));
my $me = ask('SELECT current_user');

is(ask(held('true')), join("\n", "applock app lock prepared transaction \"other\" $me 0 Update",
        'idempotency_claim pay:open batch ' . "$me 0 not committed", 'idempotency_claim pay:order 1 0 pending',
        "key_lock both batch $me 0 shared", "key_lock doc batch $me 0 intent_exclusive", "key_lock doc/1 batch $me 0 exclusive",
        "key_lock prepared prepared transaction \"it's\" $me 0 exclusive", "lease a/b worker 1 $me 0 exclusive", "lease s reader $me 0 shared",
        "permit p first $me 0 permit", "permit p second $me 0 permit",
        "reservation {7} item cart 1 $me 0",
        'row_marker renamed not looked at: A marker column is gone or has another type.', 'row_marker {"id": 1, "part": "p"} "Odd ""table" anna 0'), 'each hold has a line');
is(ask(held('true', 'count(*), count(since), count(expires_at), count(pid)')), '14 13 7 4', 'with times and processes');
is(ask(q(SELECT bool_and(since <= now() AND (expires_at IS NULL OR expires_at > now())) FROM interlock.held)), 't', 'which are those of live holds');
ask(q(SELECT interlock.acquire_lease('bound', bind => 'session')));
is(ask(held(q(name = 'bound'))), '', 'what ends with its session is gone');

# --- Waiters -----------------------------------------------------------------------------------------------------

my @waiters = map { session() } 1 .. 6;
start_waiting($waiters[0], q(SELECT interlock.acquire_lease('a/b', wait => '1 day')));
start_waiting($waiters[1], q(SELECT interlock.acquire_lease('a', wait => '1 day')));
start_waiting($waiters[2], q(SELECT interlock.acquire_permit('p', 2, wait => '1 day')));
start_waiting($waiters[3], q(SELECT interlock.lock_key('doc/1')));
start_waiting($waiters[4], q(SELECT interlock.idempotency_claim('pay', 'order 1', wait => '1 day')));
start_waiting($waiters[5], q(SELECT interlock.idempotency_claim('pay', 'open', wait => '1 day')));
ok($node->poll_query_until('postgres', 'SELECT sum(waiters) = 6 FROM interlock.held'), 'six sessions wait');
is(ask(held('waiters > 0', 'kind, name, holder, waiters')), join("\n", 'idempotency_claim pay:open batch 1', 'idempotency_claim pay:order 1 1', 'key_lock doc/1 batch 1',
        'lease a/b worker 1 2', 'permit p first 1'), 'each is counted at what keeps it waiting');

# --- Only the kinds asked for are read ---------------------------------------------------------------------------

sub scans { return join ' ', sort(ask("EXPLAIN (COSTS off, VERBOSE) SELECT * FROM interlock.held WHERE $_[0]") =~ /Function Scan on interlock_internal\.(\w+)/g); }
is(scans(q(kind = 'lease')), 'list_held_leases', 'one kind is one scan');
is(scans(q(kind IN ('row_marker', 'permit'))), 'list_held_leases list_held_markers', 'two kinds are two');
is(scans(q(kind = 'none')), '', 'no kind is none');
is(scans('true'), 'list_held_claims ' . join(' ', ('list_held_keys') x 3, ('list_held_leases') x 2, 'list_held_markers'), 'all kinds are all');

# --- Rights ------------------------------------------------------------------------------------------------------

my $marks = q(kind = 'row_marker' AND note IS NULL);
is(as_role('reader', held($marks, 'name, holder')), '{"id": 1, "part": "p"} anna', 'a role with SELECT sees the marker');
is(as_role('other', held(q(kind = 'row_marker'))), '', 'another does not, nor what was not looked at');
is(as_role('monitor', held($marks, q(coalesce(name, '-'), rel, holder))), '- "Odd ""table" anna', 'a monitor sees it without the key');
is(as_login('reader', held(q(kind = 'reservation'), 'name, holder')), '{7} cart 1', 'ESC-53: a role with SELECT sees the reservation');
is(as_login('other', held(q(kind = 'reservation'))), '', 'another does not');
is(as_login('monitor', held(q(kind = 'reservation'), q(coalesce(name, '-'), rel, holder))), '- item cart 1', 'ESC-53: a monitor sees it without the key');
is(as_login('monitor', q(SELECT key IS NULL, amount IS NULL, token IS NULL, column_name, holder, expired FROM interlock.reservations ORDER BY expired)),
    "t|t|t|stock|cart 1|f\nt|t|t|stock||t", 'ESC-53: in the view of reservations, too');
is(as_login('monitor', q(SELECT rel, column_name, parts > 0, behind IS NOT NULL FROM interlock.escrow WHERE num_nulls(key, amount, remaining, at_most, undecided, reserved) = 6)),
    'item|stock|t|t', 'ESC-53: and how far the fold is behind, without the numbers');
is(as_login('other', q(SELECT count(*) FROM interlock.escrow)), 0, 'no other role sees that');
is(as_role('other', held(q(kind = 'idempotency_claim'), q(coalesce(name, '-')))), '-', 'SEC-10: another role sees no claim, and no name of one that is not committed');
is(as_role('app', held(q(kind = 'idempotency_claim'), q(coalesce(name, '-')))), "-\npay:order 1", 'a role with the scope sees what is committed');
is(as_role('monitor', held(q(kind = 'idempotency_claim'), 'name')), "pay:open\npay:order 1", 'a monitor sees both');
is(as_role('other', held(q(kind = 'lease'), 'name')), "a/b\ns", 'leases are shown to all, as in the view leases');

# --- Row security ------------------------------------------------------------------------------------------------

as_role('owner', q(
    CREATE FUNCTION spy() RETURNS boolean LANGUAGE plpgsql COST 1 AS $$BEGIN RAISE EXCEPTION 'spied'; END$$;
    ALTER TABLE "Odd ""table" ENABLE ROW LEVEL SECURITY;
    CREATE POLICY p ON "Odd ""table" USING (spy())));
is(as_role('reader', held(q(kind = 'row_marker' AND rel = '"Odd ""table"'::regclass), 'name, note')),
    'not looked at: Its row security would run code of its owner.', 'SEC-5: policies of others do not run, and the view says so');
is(as_role('monitor', held($marks, q(coalesce(name, '-'), holder))), '- anna', 'a monitor sees the marker without them');
as_role('owner', 'ALTER TABLE "Odd ""table" DISABLE ROW LEVEL SECURITY');

# --- It waits for no lock ----------------------------------------------------------------------------------------

my $two = session();
$two->query_safe(q(BEGIN; LOCK TABLE "Odd ""table", interlock_internal.prepared_key));
is(ask(q(SET lock_timeout = '5 s'; ) . held('note IS NOT NULL', q(kind, coalesce(name, '-'), rel, note))), join("\n",
        'row_marker - "Odd ""table" not looked at: Another transaction has locked it.', 'row_marker - renamed not looked at: A marker column is gone or has another type.'),
    'OPS-3: a table that another transaction has locked is named');
is(ask(q(SET lock_timeout = '5 s'; ) . held(q(kind = 'key_lock' AND pid IS NULL), q(coalesce(name, '-'), holder))), q(- prepared transaction "it's"),
    'names that cannot be looked up are left out');
is(as_role('monitor', q(SET lock_timeout = '5 s'; ) . held(q(kind = 'row_marker' AND rel = '"Odd ""table"'::regclass), 'note')),
    'not looked at: Another transaction has locked it.', 'for a monitor, too');
$two->query_safe('ROLLBACK');

# --- Scale -------------------------------------------------------------------------------------------------------

ask(q(DO $$BEGIN FOR i IN 1 .. 200 LOOP
    EXECUTE format('CREATE TABLE many_%s (id int PRIMARY KEY)', i);
    EXECUTE format('INSERT INTO many_%s VALUES (1)', i);
    PERFORM interlock.enable_marker(format('many_%s', i)::regclass, '1 day');
    PERFORM interlock.lock_row(format('many_%s', i)::regclass, 1, 'holder ' || i);
    END LOOP; END$$));
ask(q(SELECT count(interlock.acquire_lease('many/' || i % 70 || '/' || i, '1 day')) FROM generate_series(1, 3000) i));
ask(q(BEGIN; SELECT interlock.lock_keys(array_agg('many ' || i)) FROM generate_series(1, 1000) i; PREPARE TRANSACTION 'many'));
is(ask(q(SELECT string_agg(kind || ' ' || n, ', ' ORDER BY kind) FROM (SELECT kind, count(*) AS n FROM interlock.held WHERE note IS NULL GROUP BY 1) t)),
    'applock 1, idempotency_claim 2, key_lock 1005, lease 3002, permit 2, reservation 1, row_marker 201', 'thousands of holds are listed');
is(ask(q(SELECT sum(waiters) FROM interlock.held)), 6, 'and waiters among them');

# --- On a standby, and without preload ---------------------------------------------------------------------------

$node->backup('base');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($node, 'base', has_streaming => 1);
$standby->start;
$node->wait_for_catchup($standby, 'replay', $node->lsn('insert'));
$asked = $standby;
is(ask(q(SELECT string_agg(kind || ' ' || n, ', ' ORDER BY kind) FROM (SELECT kind, count(*) AS n FROM interlock.held WHERE note IS NULL GROUP BY 1) t)),
    'idempotency_claim 1, reservation 1, row_marker 201', 'a standby has what tables have');
$standby->stop;
$asked = $node;

ask('SELECT count(pg_terminate_backend(pid)) FROM interlock.blocking');
ok($node->poll_query_until('postgres', 'SELECT sum(waiters) = 0 FROM interlock.held'), 'ended sessions do not wait');
$_->{run}->kill_kill for @waiters;
is(ask(held(q(kind = 'idempotency_claim'), 'name, mode')), "pay:open not committed\npay:order 1 pending", 'what they waited for is held');
$_->quit for $one, $two;
$node->adjust_conf('postgresql.conf', 'shared_preload_libraries', "''");
$node->restart;
is(ask(q(SELECT string_agg(kind || ' ' || n, ', ' ORDER BY kind) FROM (SELECT kind, count(*) AS n FROM interlock.held WHERE note IS NULL GROUP BY 1) t)),
    'applock 1, idempotency_claim 1, key_lock 1001, reservation 1, row_marker 201', 'without preload there are no leases');
is(ask(held(q(kind = 'idempotency_claim'), q(name, coalesce(waiters::text, '-')))), 'pay:order 1 -', 'and waiters for claims are not known');
ask(q(ROLLBACK PREPARED 'many')); ask(q(ROLLBACK PREPARED 'other')); ask(q(ROLLBACK PREPARED 'it''s'));
$two = session();
$two->query_safe('BEGIN; LOCK TABLE interlock.idempotency');
is(ask(q(SET lock_timeout = '5 s'; ) . held(q(kind = 'idempotency_claim'), 'rel, note')), 'interlock.idempotency not looked at: Another transaction has locked it.',
    'nor is the table of claims waited for');
$two->quit;
$node->stop;
done_testing();
