# Leases in numbers: a million of them, a store that is full, and a thousand who wait for one.
# only with --long

use strict;
use warnings;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $many = 1_000_000;
my $room = 1_100_000;
my $clients = 1000;
my $node = PostgreSQL::Test::Cluster->new('main');
$node->init;
$node->append_conf('postgresql.conf', qq(
shared_preload_libraries = 'pg_interlock'
log_statement = none
max_connections = @{[ $clients + 20 ]}
interlock.max_leases = $room
interlock.lease_durable_after = '1 h'
interlock.sweeper = off
fsync = off
));
$node->start;
$node->safe_psql('postgres', q(
    CREATE EXTENSION pg_interlock;
    CREATE TABLE counter (value int);
    INSERT INTO counter VALUES (0);
    CREATE TABLE served (id int GENERATED ALWAYS AS IDENTITY, client int, token bigint)));

sub ask { return $node->safe_psql('postgres', $_[0]); }

# --- Expired leases under one key, between others that stay: the walk over them is one, and not one for each -----------------

my $children = 150_000;
is(ask("SELECT count(*) FROM generate_series(1, $children) g, LATERAL interlock.acquire_lease('tree/over:' || g, '1 ms') a WHERE a.outcome = 'acquired'"),
    $children, 'leases that expire');
is(ask("SELECT count(*) FROM generate_series(1, $children) g, LATERAL interlock.acquire_lease('tree/shared:' || g, '1 h', mode => 'shared') a
        WHERE a.outcome = 'acquired'"), $children, 'and shared ones that do not');
my ($tree_status, $tree) = $node->psql('postgres', "SELECT outcome FROM interlock.acquire_lease('tree', '1 ms', mode => 'shared')", timeout => 60);
is($tree, 'acquired', 'their parent can be had, at once');
is(ask("SELECT outcome FROM interlock.acquire_lease('tree', '1 h')"), 'held', 'and not alone');
is(ask("SELECT count(*) FROM interlock.leases WHERE key LIKE 'tree/%'"), $children, 'those that have expired are gone, no other is');
ask(q(SELECT interlock.break_leases('tree/%', 'test')));

# --- Shared leases of a name at one key, of one role and another: the walk over them is one ---------------------------------------------

ask('CREATE ROLE other LOGIN; CREATE ROLE mine LOGIN');
my $shared = "SELECT count(*) FROM generate_series(1, $children) g, LATERAL interlock.acquire_lease('one key' || left(g::text, 0), '1 h', holder => 'worker', mode => 'shared') a WHERE a.outcome = 'acquired'";
sub as_role { my ($role, $sql) = @_; return ($node->psql('postgres', $sql, timeout => 60, extra_params => [ '-U', $role ]))[1]; }
is(as_role('other', $shared), $children, 'shared leases of a holder');
is(as_role('mine', "SELECT outcome FROM interlock.acquire_lease('one key', '1 h', holder => 'worker', mode => 'shared')"), 'acquired', 'and one of another role with that name');
is(as_role('mine', "SELECT interlock.release_lease('one key', holder => 'worker')"), 't', 'it is released by its name, at once');
is(ask('SELECT count(*) FROM interlock.leases'), $children, 'and none of the others');
is(as_role('other', "SELECT interlock.release_lease('one key', holder => 'worker')"), 't', 'nor do many of a holder take long');
is(ask('SELECT count(*) FROM interlock.leases'), 0, 'each of which is released');

# Of a session, which lets go of them when it ends
my $bound = $shared =~ s/mode => 'shared'/mode => 'shared', bind => 'session'/r;
my $binder = $node->background_psql('postgres');
is($binder->query_safe($bound), $children, 'as many of one session');
$binder->quit;
ok($node->poll_query_until('postgres', 'SELECT count(*) = 0 FROM interlock.leases'), 'end with it');

# --- A million leases --------------------------------------------------------------------------------

is(ask("SELECT count(DISTINCT token), min(outcome), max(outcome)
        FROM generate_series(1, $many) g, LATERAL interlock.acquire_lease('job:' || g, '1 h')"),
    "$many|acquired|acquired", 'a million leases, each with its own token');
is(ask("SELECT count(*), count(DISTINCT key), count(DISTINCT token) FROM interlock.leases WHERE key ~ '^job:[0-9]+\$'"),
    "$many|$many|$many", 'all of them are in the view');
is(ask("SELECT outcome, count(*) FROM generate_series(1, $many, 1000) g, LATERAL interlock.acquire_lease('job:' || g) GROUP BY outcome"),
    'held|' . $many / 1000, 'and held');

# Those that expire soon give their room when it is needed
ask("SELECT count(*) FROM generate_series(1, 1000) g, LATERAL interlock.acquire_lease('brief:' || g, '1 ms')");
my ($status, $out, $err) = $node->psql('postgres', "\\set VERBOSITY verbose
    SELECT count(*) FROM generate_series(1, $room) g, LATERAL interlock.acquire_lease('more:' || g, '1 h')");
like($err, qr/53400: there are too many leases\n.*interlock\.max_leases/s, 'the store is full: 53400, and what to do');
my $held = ask('SELECT count(*) FROM interlock.leases');
cmp_ok($held, '>=', $room, "it holds $held leases");
is(ask("SELECT count(*) FROM interlock.leases WHERE key LIKE 'brief%'"), 0, 'expired ones are not among them');
is(ask("SELECT interlock.renew_lease(key, token, '1 h') IS NOT NULL, interlock.assert_lease(key, token) FROM interlock.leases WHERE key = 'job:1'"),
    't|', 'full, holders renew and assert');
is(ask("SELECT count(*) FILTER (WHERE interlock.release_lease(key, token)) FROM interlock.leases WHERE key LIKE 'more:%'"),
    ask("SELECT $held - $many"), 'releases');
is(ask("SELECT outcome FROM interlock.acquire_lease('again', '100 ms')"), 'acquired', 'there is room again');

# Durable ones: the search for a free record does not grow with the store
my $looks = q(SELECT coalesce(sum(heap_blks_hit + heap_blks_read), 0) FROM pg_statio_all_tables WHERE relname = 'lease_store');
my $before = ask($looks);
is(ask("SELECT count(DISTINCT token) FROM generate_series(1, 3000) g, LATERAL interlock.acquire_lease('long:' || g, '2 h')"), 3000, 'durable leases');
cmp_ok((ask($looks) - $before) / 3000, '<', 25, 'pages of the store that were looked at for one');
is(ask("SELECT count(*) FILTER (WHERE durable AND interlock.release_lease(key, token)) FROM interlock.leases WHERE key LIKE 'long:%'"), 3000, 'released');

# Without a wait for anybody to release them
ask("SELECT count(*) FROM generate_series(1, $room - $many) g, LATERAL interlock.acquire_lease('soon:' || g, '1 ms')");
ask('SELECT pg_sleep(0.2)');
is(ask("SELECT outcome, count(*) FROM generate_series(1, $room - $many) g, LATERAL interlock.acquire_lease('late:' || g, '1 h') GROUP BY outcome"),
    'acquired|' . ($room - $many), 'expired ones give their room');
is(ask('SELECT count(*) FILTER (WHERE interlock.release_lease(key, token)) FROM interlock.leases'), $room, 'all are released');
is(ask('SELECT count(*) FROM interlock.leases'), 0, 'none is left');

# --- A thousand waiters ------------------------------------------------------------------------------

# Each reads a counter and then writes it: two at once would lose an update.
my $load = $node->basedir . '/wait.load';
append_to_file($load, q(
SELECT outcome = 'acquired' AS mine, coalesce(token, 0) AS token FROM interlock.acquire_lease('one', '10 min', wait => '10 min') \gset
\if :mine
SELECT value FROM counter \gset
INSERT INTO served (client, token) VALUES (:client_id, :token);
UPDATE counter SET value = :value + 1;
SELECT 1 / interlock.release_lease('one', :token)::int;
\endif
));
my $token = ask("SELECT token FROM interlock.acquire_lease('one', '10 min')");
my $pgbench = join(' ', 'pgbench', '-n', '-j', 2, '-c', $clients, '-t', 1, '-f', $load, '-h', $node->host, '-p', $node->port, 'postgres');
my $run = IPC::Run::start([ 'sh', '-c', "ulimit -n 4096; exec $pgbench" ], '>', \my $printed, '2>', \my $errors);
ok($node->poll_query_until('postgres', "SELECT count(*) = $clients FROM interlock.lease_waiters"), 'a thousand wait');
is(ask('SELECT count(DISTINCT place), min(place), max(place) FROM interlock.lease_waiters'), "$clients|1|$clients", 'in a line');
ask("SELECT interlock.release_lease('one', $token)");
ok($run->finish, 'all of them come to an end') or diag($errors);
is(ask('SELECT value FROM counter'), $clients, 'no update was lost: never two at once');
is(ask('SELECT count(*), count(DISTINCT client), count(DISTINCT token) FROM served'), "$clients|$clients|$clients", 'each was served once');
is(ask('SELECT count(*) FROM (SELECT token > lag(token, 1, 0::bigint) OVER (ORDER BY id) AS grows FROM served) s WHERE NOT grows'), 0,
    'one after the other, with growing tokens');
is(ask('SELECT (SELECT count(*) FROM interlock.leases) + (SELECT count(*) FROM interlock.lease_waiters)'), 0, 'nothing is left');
unlike(slurp_file($node->logfile), qr/PANIC|TRAP|terminated by signal/, 'nothing crashed');
$node->stop;
done_testing();
