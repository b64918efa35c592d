# SEC-4: what one role may use of leases and names of keys, what is left for superusers, and view usage.
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
interlock.sweeper = off
interlock.max_leases = 100
interlock.key_names = 64
max_connections = 20
max_prepared_transactions = 2
));
$node->start;
my @roles = map { "role_$_" } 'a' .. 'j';
$node->safe_psql('postgres', join(';', 'CREATE EXTENSION pg_interlock', map { "CREATE ROLE $_ LOGIN" } @roles));

# As the role, or as the superuser: what the statements return, and the error.
sub ask
{
    my ($role, @sql) = @_;
    my ($status, $out, $error) =
        $node->psql('postgres', join("\n", "\\set VERBOSITY verbose", ($role eq '' ? () : "SET ROLE $role;"), map { "$_;" } @sql), on_error_stop => 0);
    return wantarray ? ($out, $error) : $out;
}

# Leases named prefix1 and so on, as many as wanted: how many were acquired.
sub fill
{
    my ($role, $prefix, $count, $ttl, $more) = @_;
    return ask($role, 'SELECT count(*) FILTER (WHERE outcome = \'acquired\') FROM '
        . "generate_series(1, $count) i, interlock.acquire_lease('$prefix' || i, '$ttl'" . ($more || '') . ')');
}

# used and of; empty when there is no such line. A role or database '' is none.
sub usage
{
    my ($what, $role, $database, $as) = @_;
    my $where = join(' AND ', "what = '$what'", map { $_->[1] ? "$_->[0] = '$_->[1]'" : "$_->[0] IS NULL" } ['role', $role], ['database', $database]);
    return ask($as || '', "SELECT used || coalesce(' of ' || \"of\", '') FROM interlock.usage WHERE $where");
}

sub set
{
    my ($setting, $value) = @_;
    $node->safe_psql('postgres', "ALTER SYSTEM SET $setting = $value");
    $node->reload;
    $node->poll_query_until('postgres', "SHOW $setting", "$value") or die "$setting does not become $value";
    return;
}

# --- Sizes of leases -------------------------------------------------------------------------------------------

# SEC-4: what a role takes and gives back, in whatever sizes, leaves no memory that others cannot use
sub keep
{
    my ($prefix, $count, $key, $holder, $kept) = @_;
    ask('role_a', "SELECT count(interlock.acquire_lease('$prefix' || i || $key, '10 min', holder => $holder)) FROM generate_series(1, $count) i",
        "SELECT count(interlock.release_lease(key, token)) FROM interlock.leases WHERE key ~ '^${prefix}[0-9]' AND key !~ '^$prefix($kept)(x|\$)'");
    return;
}
keep('f', 20, "repeat('x', 300)", "'h'", '1|20');
keep('s', 30, "''", "repeat('h', 100)", '1');
keep('t', 43, "''", "'h'", '1|43');
is(ask('', 'SELECT count(*) FROM interlock.leases'), 5, 'a role keeps some of the leases that it took');
is(fill('role_b', 'k' x 990, 10, '10 min'), 10, 'SEC-4: others have their share of long keys');
is(usage('leases', 'role_b'), '50 of 50', 'all of it');
is(fill('role_c', 'c', 25, '10 min') . fill('role_c', 'd', 12, '10 min', ", holder => repeat('h', 200)"), '2512', 'and of short ones, and long holders');
is(ask('', "SELECT count(*) FROM interlock.leases WHERE length(holder) = 200 AND holder = repeat('h', 200) OR key LIKE repeat('k', 990) || '%' AND length(key) < 993"), 22,
    'which are what was given');
is(ask('', "SELECT interlock.break_leases('%', 'r')"), 52, 'long keys and short ones');
is(usage('lease memory') =~ s/ of .*//r, 0, 'nothing of it is left');

# --- Leases ----------------------------------------------------------------------------------------------------

is(fill('role_a', 'a', 50, '10 min'), 50, 'SEC-4: a role has its share');
my ($out, $error) = ask('role_a', "SELECT * FROM interlock.acquire_lease('more')");
like($error, qr/ERROR:  53400: role "role_a" has used up its share of leases\n.*50.*HINT:.*interlock\.max_leases_per_role/s, 'and not more: 53400, whose it is, and what to do');
($out, $error) = ask('role_a', "SELECT * FROM interlock.acquire_leases('{more,most}')");
like($error, qr/53400: role "role_a" has used up its share/, 'several at once');
($out, $error) = ask('role_a', "SELECT * FROM interlock.acquire_lease('a1', wait => '1 s')");
like($error, qr/53400: role "role_a" has used up its share/, 'nor waits for one');
is(fill('role_b', 'b', 1, '10 min'), 1, 'another role has its own');

# The view has one partition after the other
is(ask('', 'SELECT bool_and(partition >= before) FROM (SELECT partition, lag(partition) OVER (ORDER BY n) AS before FROM (
    SELECT hashtextextended(key, (SELECT oid::bigint FROM pg_database WHERE datname = current_database())) >> 32 & 63 AS partition, n
    FROM (SELECT key, row_number() OVER () AS n FROM interlock.leases) l) p) o'), 'f', 'SEC-4: nobody can know which keys have the same hash');
is(fill('', 's', 60, '10 min'), 60, 'a superuser has no share');
is(usage('leases', 'role_a'), '50 of 50', 'usage: the role');
is(usage('leases', 'role_a', 'postgres'), '50', 'by database');
is(usage('leases'), '111 of 100', 'in all');
is(usage('leases', $node->safe_psql('postgres', 'SELECT current_user')), '60', 'of the superuser, without a limit');
is(ask('', "SELECT interlock.break_leases('s%', 'done')"), 60, 'break_leases: by pattern');
is(ask('role_a', q(SELECT count(interlock.release_lease(key, token)) FROM interlock.leases WHERE key = 'a7')) . fill('role_a', 'again', 1, '1 ms'), '11',
    'what was released can be acquired');
ask('', 'SELECT pg_sleep(0.01)');
is(fill('role_a', 'and again', 1, '10 min'), 1, 'and what expired');

# Who sees what
is(usage('leases', 'role_a', '', 'role_b') . usage('leases', 'role_b', '', 'role_b'), '1 of 50', 'a role sees its own line');
is(usage('leases', '', '', 'role_b'), '51 of 100', 'and the totals');
ask('', 'GRANT pg_monitor TO role_b');
is(usage('leases', 'role_a', '', 'role_b'), '50 of 50', 'pg_monitor sees all');
ask('', 'REVOKE pg_monitor FROM role_b');

# SET ROLE counts for the role that is set
ask('', 'GRANT role_b TO role_a');
$node->safe_psql('postgres', "SET SESSION AUTHORIZATION role_a; SET ROLE role_b; SELECT interlock.acquire_lease('as b', '10 min')");
is(usage('leases', 'role_a') . ' ' . usage('leases', 'role_b'), '50 of 50 2 of 50', 'SET ROLE: of the current role');

# Long keys and deep ones count for what they take
is(fill('role_c', 'x/y/z', 2, '10 min'), 2, 'deep keys');
is(usage('leases', 'role_c'), '4 of 50', 'count as two each');
is(fill('role_c', 'x' x 300 . '/' . 'y' x 600, 6, '10 min'), 6, 'and long ones');
is(usage('leases', 'role_c'), '43 of 50', 'as more');

# All room of ordinary roles is taken
fill($_, $_, 50, '10 min') for @roles[2 .. 9];
($out, $error) = ask('role_j', "SELECT * FROM interlock.acquire_lease('full')");
like($error, qr/53400: there are too many leases\n.*interlock\.max_leases.*interlock\.usage/s, 'the room of all is taken: 53400, and where to look');
my ($used, $of) = split(/ of /, usage('lease memory'));
cmp_ok($used, '<=', $of, 'usage: not more memory than there is');
is(fill('', 'super', 8, '10 min'), 8, 'a superuser finds room');
is(ask('', "SELECT outcome FROM interlock.acquire_lease(repeat('k', 1000), '10 min')"), 'acquired', 'for a long key, too');
($out, $error) = ask('role_j', "SELECT * FROM interlock.acquire_lease('full')");
like($error, qr/53400: there are too many leases/, 'which is not the room of others');
is(ask('', "SELECT interlock.break_leases('super%', 'r') + interlock.break_leases('kkk%', 'r')"), 9, 'and leaves it');

# To look for room again and again keeps others waiting: a role that has looked in vain pauses, and does not see at once
# that its only lease is over
ask('', "SELECT interlock.break_lease(min(key), 'r') FROM interlock.leases WHERE key ~ '^role_d'");
is(ask('role_j', q(CREATE TEMP TABLE seen AS SELECT false AS pause),
    q(DO $$ DECLARE is_over boolean; BEGIN
        FOR n IN 1 .. 100 LOOP
            BEGIN
                is_over := false;
                PERFORM interlock.acquire_lease('brief', '2 ms');
                BEGIN
                    PERFORM interlock.acquire_lease('more', '1 ms');
                EXCEPTION WHEN configuration_limit_exceeded THEN
                    PERFORM pg_sleep(0.003);
                    is_over := true;
                    PERFORM interlock.acquire_lease('again', '1 ms');
                END;
            EXCEPTION WHEN configuration_limit_exceeded THEN
                UPDATE seen SET pause = pause OR is_over;
                PERFORM pg_sleep(0.012);
            END;
        END LOOP;
    END $$), 'SELECT pause FROM seen'), 't', 'SEC-4: to look for room in vain is not repeated at once');
ask('', "SELECT interlock.acquire_leases('{brief,more,again}', '10 min')"); # drops those that are over

# break_leases
is(ask('', "SELECT interlock.break_leases('%', 'too many', 'role_a')"), 50, 'break_leases: of one role');
is(ask('', "SELECT count(*), count(DISTINCT token), min(reason) FROM interlock.lease_audit WHERE reason = 'too many'"), '50|50|too many', 'each of them is audited');
is(usage('leases', 'role_a'), '', 'its room is free');
is(fill('role_a', 'a', 1, '10 min'), 1, 'for itself');
is(fill('role_j', 'full', 1, '10 min'), 1, 'and for others');
is(ask('', "BEGIN; DO \$\$ BEGIN PERFORM interlock.assert_lease(key, token) FROM interlock.leases WHERE key = 'a1'; END \$\$;
    SELECT interlock.break_leases('a%', 'r', 'role_a'); ROLLBACK"), 0, 'a pinned one is not broken');
($out, $error) = ask('', "BEGIN; DO \$\$ BEGIN PERFORM interlock.assert_lease(key, token) FROM interlock.leases WHERE key = 'a1'; END \$\$;
    SELECT interlock.break_leases('a1', 'r'); ROLLBACK");
like($error, qr/WARNING:.* 1 lease is pinned/, 'and counted');
ask('', "SELECT interlock.break_leases('%', 'r')");
is(ask('', "SELECT count(*) FROM interlock.usage WHERE what LIKE 'lease%' AND role IS NOT NULL") . ' ' . usage('leases'), '0 0 of 100', 'no lease is left: nothing is counted');

# Who pins a lease is noted in its memory
is(fill('role_a', 'a', 1, '10 min'), 1, 'a lease');
my @pinning = map { $node->background_psql('postgres', on_error_stop => 0) } 1 .. 2;
$_->query_safe("SET ROLE role_a; BEGIN; SELECT interlock.assert_lease(key, token) FROM interlock.leases WHERE key = 'a1'") for @pinning;
is(usage('leases', 'role_a') . ' ' . usage('leases', 'role_a', 'postgres'), '2 of 50 2', 'two transactions that pin it count');
$pinning[0]->query_safe('COMMIT');
is(usage('leases', 'role_a'), '1 of 50', 'one of them does not');
$_->quit for @pinning;
ask('', "SELECT interlock.break_leases('a1', 'r')");

# However a session ends
my $session = $node->background_psql('postgres', on_error_stop => 0);
$session->query_safe("SET ROLE role_a; SELECT interlock.acquire_lease('bound ' || i, bind => 'session') FROM generate_series(1, 20) i");
is(usage('leases', 'role_a'), '20 of 50', 'leases of a session');
is(ask('role_b', "SELECT outcome FROM interlock.acquire_lease('bound 1', wait => '10 ms')"), 'held', 'waited for');
is(usage('leases', 'role_b'), '', 'a wait that is over counts nothing');
my $waiter = $node->background_psql('postgres', on_error_stop => 0);
$waiter->query_until(qr/asked/, "SET ROLE role_b;\n\\echo asked\nSELECT interlock.acquire_lease('bound 1', wait => '10 min');\n");
$node->poll_query_until('postgres', q(SELECT count(*) = 1 FROM interlock.lease_waiters));
is(usage('leases', 'role_b') . ' ' . usage('lease waiters', 'role_b') . ' ' . usage('lease waiters', 'role_b', 'postgres'), '1 of 50 1 1', 'a waiter counts');
my $pids = "pid <> pg_backend_pid() AND backend_type = 'client backend'";
ask('', "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE $pids AND query LIKE '%10 min%'");
$node->poll_query_until('postgres', 'SELECT count(*) = 0 FROM interlock.lease_waiters');
is(usage('leases', 'role_b'), '', 'until its session ends');
ask('', "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE $pids");
$node->poll_query_until('postgres', 'SELECT count(*) = 0 FROM interlock.leases');
is(usage('leases', 'role_a'), '', 'so do leases bound to one');
eval { $_->quit } for ($session, $waiter);

# Restarts, roles and databases that go
is(fill('role_a', 'long', 20, '1 h') . fill('role_b', 'short', 5, '10 s'), '205', 'long leases and short ones');
$node->restart;
is(usage('leases', 'role_a') . ' ' . usage('leases', 'role_b'), '20 of 50 5 of 50', 'a clean restart: counted as before');
$node->stop('immediate');
$node->start;
is(ask('role_a', "SELECT outcome FROM interlock.acquire_lease('long1')") =~ /held|recovering/ && usage('leases', 'role_a'), '20 of 50', 'a crash: long leases count again');
is(usage('leases', 'role_b'), '', 'short ones are not there');
ask('', "SELECT interlock.break_leases('%', 'r')");
$node->poll_query_until('postgres', q(SELECT outcome = 'acquired' FROM interlock.acquire_lease('after the grace', '1 ms')));
is(fill('role_j', 'j', 3, '10 min'), 3, 'leases of a role');
my $oid = ask('', "SELECT oid FROM pg_roles WHERE rolname = 'role_j'");
ask('', 'DROP ROLE role_j');
is(usage('leases', "unknown (OID=$oid)"), '3 of 50', 'that is dropped');
is(ask('', "SELECT interlock.break_leases('j%', 'r')") . usage('leases', "unknown (OID=$oid)"), '3', 'can be broken');
$node->safe_psql('postgres', 'CREATE DATABASE other');
$node->safe_psql('other', 'CREATE EXTENSION pg_interlock');
$node->safe_psql('other', "SET ROLE role_a; SELECT count(interlock.acquire_lease('other ' || i, '10 min')) FROM generate_series(1, 50) i");
is(usage('leases', 'role_a', 'other'), '50', 'leases of a database');
($out, $error) = ask('role_a', "SELECT interlock.acquire_lease('here')");
like($error, qr/53400: role "role_a"/, 'count in all of them');
$node->safe_psql('postgres', 'DROP DATABASE other');
is(fill('role_a', 'here', 50, '10 min'), 50, 'one that is dropped gives its room');

# Settings
set('interlock.max_leases_per_role', 55);
is(fill('role_a', 'there', 5, '10 min') . ' ' . usage('leases', 'role_a'), '5 55 of 55', 'a larger share');
set('interlock.max_leases_per_role', 0);
($out, $error) = ask('role_b', "SELECT interlock.acquire_lease('nothing')");
like($error, qr/53400: role "role_b"/, 'none at all');
is(ask('role_a', "SELECT count(interlock.renew_lease(key, token)) FROM interlock.leases"), 55, 'what is there can be renewed');
is(fill('', 's', 1, '10 min'), 1, 'superusers need none');
set('interlock.max_leases_per_role', -1);
ask('', "SELECT interlock.break_leases('%', 'r')");

# --- Names of keys ---------------------------------------------------------------------------------------------

sub hold
{
    my ($role, $prefix, $count) = @_;
    my $holder = $node->background_psql('postgres', on_error_stop => 0);
    $holder->query_safe(($role eq '' ? '' : "SET ROLE $role;") . "BEGIN; SELECT count(interlock.lock_key('$prefix' || i)) FROM generate_series(1, $count) i");
    return $holder;
}

my $a = hold('role_a', 'a', 31);
is(usage('key names', 'role_a') . ' ' . usage('key names', 'role_a', 'postgres') . ' ' . usage('key names'), '31 of 32 31 31 of 64', 'names of keys');
is(ask('role_a', "SELECT interlock.lock_key('a32')"), '', 'up to the share');
($out, $error) = ask('role_a', "SELECT interlock.lock_keys('{k1,k2}')");
like($error, qr/53400: role "role_a" has used up its share of keys\n.*32.*HINT:.*interlock\.max_key_names_per_role/s, 'and not more');
is(usage('key names', 'role_a'), '31 of 32', 'all or none');
is(ask('role_a', "SELECT interlock.try_lock_keys('{a1,a2,a3}')"), 'f', 'a name counts once for a role');
is(ask('role_b', "BEGIN; SELECT interlock.try_lock_keys('{a1,b1}'), interlock.try_lock_keys('{b1,b2}'); SELECT used FROM interlock.usage WHERE what = 'key names' AND role = 'role_b' AND database IS NULL; ROLLBACK"),
    "f|t\n2", 'another role has its share');
my $b = hold('role_b', 'b', 32);
($out, $error) = ask('role_c', "BEGIN; SELECT interlock.lock_key('c1'), interlock.lock_key('c2'); ROLLBACK");
like($error, qr/53400: too many keys are in use at once\n.*interlock\.key_names/s, 'the room of all is taken');
is(ask('', "BEGIN; SELECT count(interlock.lock_key('s' || i)) FROM generate_series(1, 7) i; ROLLBACK"), 7, 'a superuser finds room');
$a->query_safe('COMMIT');
is(usage('key names', 'role_a') . usage('key names', 'role_a', 'postgres'), '', 'the end of a transaction gives it back');
ask('', "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE $pids AND query LIKE '%lock_key%'");
$node->poll_query_until('postgres', 'SELECT count(*) = 0 FROM interlock.key_locks');
is(usage('key names'), '0 of 64', 'so does the end of a session');
$node->safe_psql('postgres', "SET ROLE role_a; BEGIN; SELECT interlock.lock_key('p'); PREPARE TRANSACTION 'p'");
is(usage('key names'), '0 of 64', 'and PREPARE TRANSACTION');
$node->safe_psql('postgres', "ROLLBACK PREPARED 'p'");
($out, $error) = ask('', 'SET interlock.max_key_names_per_role = 1');
like($error, qr/cannot be changed now/, 'the setting is not for sessions');
set('interlock.max_key_names_per_role', 3);
($out, $error) = ask('role_a', "BEGIN; SELECT interlock.lock_keys('{k1,k2,k3,k4}'); ROLLBACK");
like($error, qr/53400: role "role_a"/, 'another share');
eval { $_->quit } for ($a, $b);
$node->stop;

# --- Counts stay exact -----------------------------------------------------------------------------------------

$node = PostgreSQL::Test::Cluster->new('busy');
$node->init;
$node->append_conf('postgresql.conf', q(
shared_preload_libraries = 'pg_interlock'
interlock.sweeper = off
interlock.max_leases = 120
interlock.key_names = 256
interlock.lease_durable_after = '10 s'
fsync = off
));
$node->start;
$node->safe_psql('postgres', join(';', 'CREATE EXTENSION pg_interlock', map { "CREATE ROLE $_ LOGIN" } @roles));
my $load = $node->basedir . '/mix.load';
append_to_file($load, q(
\set role random(0, 9)
\set key random(1, 60)
\set what random(1, 6)
SELECT set_config('role', 'role_' || chr(97 + :role), false);
SELECT outcome = 'acquired' AS mine, coalesce(token, 0) AS token
    FROM interlock.acquire_lease('k/' || :key, CASE :what WHEN 1 THEN '1 ms' WHEN 2 THEN '1 min' ELSE '5 s' END::interval, wait => CASE WHEN :what = 5 THEN '5 ms' ELSE '0' END::interval) \gset
BEGIN;
SELECT interlock.try_lock_keys(ARRAY['k/' || :key, 'l' || :role]);
\if :mine
SELECT interlock.assert_lease('k/' || :key, :token) WHERE :what = 3;
SELECT interlock.release_lease('k/' || :key, :token) WHERE :what <> 4;
\endif
SELECT fail() WHERE :what = 6;
COMMIT;
));
ask('', q(CREATE FUNCTION fail() RETURNS void LANGUAGE plpgsql AS $$ BEGIN RAISE serialization_failure; END $$));
my ($printed, $noise);
my $ran = IPC::Run::run([ 'pgbench', '-n', '-j', 2, '-c', 8, '-t', 120, '-f', $load, '-h', $node->host, '-p', $node->port, 'postgres' ], '>', \$printed, '2>', \$noise);
ok($ran && $printed =~ /failed transactions: [1-9]/, 'ten roles acquire, release, let expire, assert and fail') or diag("$printed $noise");
# By role: what is counted, and what is there
my $differ = q(SELECT count(*) FROM (SELECT what, role, sum(used) FILTER (WHERE database IS NULL) AS counted, sum(used) FILTER (WHERE database IS NOT NULL) AS there
    FROM interlock.usage WHERE role IS NOT NULL GROUP BY 1, 2) u WHERE counted IS DISTINCT FROM there);
cmp_ok(usage('leases') =~ s/ of .*//r, '>', 0, 'leases are left');
is(ask('', $differ), 0, 'after all kinds of ends what is counted is what is there');
is(usage('key names'), '0 of 256', 'no name is left');
ask('', "SELECT interlock.break_leases('%', 'r'), pg_sleep(0.1)");
is(fill('role_a', 'single', 40, '10 min'), 40, 'leases of one level');
is(ask('', "SELECT used - (SELECT count(*) FROM interlock.leases WHERE key LIKE 'single%') FROM interlock.usage WHERE what = 'leases' AND role = 'role_a' AND database IS NULL"),
    0, 'as many as the view leases has');
unlike(slurp_file($node->logfile), qr/PANIC|TRAP|terminated by signal/, 'nothing crashed');
$node->stop;
done_testing();
