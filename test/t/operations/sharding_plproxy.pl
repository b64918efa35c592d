# examples/sharding on four servers: a router with PL/Proxy, two shards, and a third one that is added while clients work.
# only with --long

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../lib";
use IPC::Run;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Protocol;
use Test::More;

my $folder = 'examples/sharding';
chomp(my $extensions = qx(pg_config --sharedir) . '/extension');
$extensions =~ s/\n//g;
if (!-e "$extensions/plproxy.control")
{
    SKIP: { skip 'Debian has no PL/Proxy for this major version', 1 }
    done_testing();
    exit;
}

my %node;
for my $name (qw(router shard1 shard2 shard3))
{
    my $node = $node{$name} = PostgreSQL::Test::Cluster->new($name);
    $node->init;
    $node->append_conf('postgresql.conf', "shared_preload_libraries = 'pg_interlock'\ninterlock.sweeper = off") if $name ne 'router';
    $node->start;
    run_file($name, $name eq 'router' ? 'router.sql' : 'shard.sql');
}

sub run_file
{
    my ($name, $file) = @_;
    $node{$name}->command_ok([ 'psql', '-qX', '-v', 'ON_ERROR_STOP=1', '-d', $node{$name}->connstr('postgres'), '-f', "$folder/$file" ], "$file runs on $name");
    return;
}

sub on { my ($name, @sql) = @_; return $node{$name}->safe_psql('postgres', join(";\n", @sql)); }
sub conninfo { my ($name) = @_; return $node{$name}->connstr('postgres') =~ s/'//gr; }
sub move { my ($first, $last, $shard) = @_; return [ "$folder/move-slots.sh", conninfo('router'), $first, $last, $shard ]; }

# Which shards have the row, the lease or the key.
sub shards_with { my ($query) = @_; return join(' ', grep { on($_, "SELECT EXISTS ($query)") eq 't' } qw(shard1 shard2 shard3)); }

on('router', map { "INSERT INTO shard VALUES ('$_', '@{[ conninfo($_) ]}')" } qw(shard1 shard2 shard3));
my %whose = (invoice => 'tenant', payment => 'tenant', 'interlock.idempotency' => 'key');
my %slots = (shard1 => [ 0, 127 ], shard2 => [ 128, 255 ]);
while (my ($shard, $slots) = each %slots)
{
    my ($first, $last) = @$slots;
    on($shard, "SELECT set_slot(s, 'open') FROM generate_series($first, $last) s");
    on('router', "SELECT assign_slots($first, $last, '$shard')");
}

# These tenants are on shard 1, and acme is on shard 2.
my %slot = (zeta => 92, gale => 44, acme => 130);
for my $tenant (sort keys %slot)
{
    is(on($_, "SELECT slot_of('$tenant/anything')"), $slot{$tenant}, "$_ computes the slot of $tenant") for 'router', 'shard1';
}

my ($session, $other) = (start($node{router}), start($node{router}));

# The rows of the answer, or the SQLSTATE.
sub ask_in
{
    my ($asking, $sql) = @_;
    my $answer = query($asking, $sql);
    return $asking->{error} // join("\n", map { join('|', map { $_ // '' } @$_) } @{ $asking->{rows} });
}

sub ask { return ask_in($session, @_); }

# The 25P01 of its last answer. After an error, PL/Proxy says that it connects again.
sub warnings { return join("\n", grep { /^25P01/ } @{ $session->{warnings} }); }

# Calls are routed by the first level of the path
like(ask(q(SELECT * FROM lease('zeta/billing', '10 min', 'anna'))), qr/^acquired\|(\d+)\|/, 'a lease is granted');
my $token = $session->{rows}[0][1];
is(ask_in($other, q(SELECT outcome, holder FROM lease('zeta/billing', '10 min', 'bert'))), 'held|anna', 'and held for another client');
is(shards_with(q(SELECT FROM interlock.leases WHERE key = 'zeta/billing')), 'shard1', 'the lease is on the shard');
is(ask(q(SELECT add_invoice('zeta', 1, 10))), 1, 'a row is inserted');
is(ask(q(SELECT add_invoice('acme', 1, 20))), 1, 'a row of another tenant');
is(shards_with(q(SELECT FROM invoice WHERE tenant = 'zeta')), 'shard1', 'the row is on the shard of its lease');
is(shards_with(q(SELECT FROM invoice WHERE tenant = 'acme')), 'shard2', 'the other one is on the other shard');
is(ask("SELECT pay_invoice('zeta', 1, 1, $token)"), 2, 'the assertion and the write in one function');
is(ask("SELECT pay_invoice('zeta', 1, 1, $token)"), 'IL001', 'a stale version is refused');
is(ask('SELECT pay_invoice(\'zeta\', 1, 2, ' . ($token + 4) . ')'), 'IL006', 'another token is refused');
is(warnings(), '', 'the function on the shard does not warn');
ask(q(SELECT add_invoice('zeta', 2, 5)));
is(ask(q(SELECT * FROM unpaid() ORDER BY tenant)), "acme|1|20\nzeta|2|5", 'a report from all shards');
like(ask(q(SELECT outcome, response FROM charge('zeta', 'order 1', 10))), qr/^completed\|\{"payment"/, 'a request is charged');
my $response = $session->{rows}[0][1];
is(ask_in($other, q(SELECT outcome, response FROM charge('zeta', 'order 1', 10))), "replay|$response", 'once');
is(shards_with(q(SELECT FROM interlock.idempotency WHERE key = 'zeta/order 1')), 'shard1', 'its key is on the shard');

# KEY-50: alone behind a router, these functions protect nothing, and warn.
on('router', q(CREATE FUNCTION lock_key(key text) RETURNS void LANGUAGE plproxy AS $$ CLUSTER 'shards'; RUN ON slot_of(key); TARGET interlock.lock_key; $$),
    q(CREATE FUNCTION assert_lease(key text, token bigint) RETURNS void LANGUAGE plproxy
        AS $$ CLUSTER 'shards'; RUN ON slot_of(key); TARGET interlock.assert_lease; $$),
    q(CREATE FUNCTION set_holder(path text, holder text) RETURNS void LANGUAGE plproxy
        AS $$ CLUSTER 'shards'; RUN ON slot_of(path); SELECT r FROM interlock.set_holder(holder) r; $$));
sub warning { ask(@_); return warnings(); }

ask('BEGIN');
like(warning(q(SELECT lock_key('zeta/stock'))), qr/^25P01 .*the lock is already released/, 'KEY-50: lock_key alone warns through the router');
ask_in($other, 'BEGIN');
is(ask_in($other, q(SELECT 'locked' FROM lock_key('zeta/stock'))), 'locked', 'another transaction has the lock at the same time');
ask_in($other, 'ROLLBACK');
like(warning("SELECT assert_lease('zeta/billing', $token)"), qr/^25P01 .*the lease is no longer asserted/, 'KEY-50: assert_lease alone warns through the router');
is(ask_in($other, "SELECT release('zeta/billing', $token)"), 't', 'the lease is released meanwhile');
like(ask_in($other, q(SELECT * FROM lease('zeta/billing', '10 min', 'bert'))), qr/^acquired/, 'and granted to another client in the transaction that has asserted it');
my $later = $other->{rows}[0][1];
like(warning(q(SELECT set_holder('zeta', 'anna'))), qr/^25P01 .*the holder is already reset/, 'KEY-50: set_holder alone warns through the router');
ask('ROLLBACK');
is(ask("SELECT pay_invoice('zeta', 2, 1, $token)"), 'IL006', 'in one function the older token is refused');

# A slot is moved with a lease that is held
ask(q(SELECT add_invoice('zeta', 3, 7)));
my ($out, $err) = ('', '');
my $moving = IPC::Run::start(move(92, 92, 'shard3'), '<', \undef, '>', \$out, '2>', \$err);
ok($node{shard1}->poll_query_until('postgres', q(SELECT state = 'draining' FROM slot WHERE slot = 92)), 'the slot is drained');
is(ask(q(SELECT * FROM lease('zeta/other', '10 min', 'anna'))), 'SH001', 'SHD-1: no new lease is granted');
is(ask("SELECT renew('zeta/billing', $later) IS NOT NULL"), 't', 'the one that is held is renewed,');
is(ask("SELECT pay_invoice('zeta', 2, 1, $later)"), 2, 'its holder writes,');
is(ask_in($other, q(SELECT outcome, response FROM charge('zeta', 'order 1', 10))), "replay|$response", 'and others do');
is(on('shard3', 'SELECT count(*) FROM invoice'), 0, 'SHD-1: nothing has moved');
is(ask("SELECT release('zeta/billing', $later)"), 't', 'the lease is released');
$moving->finish;
is("$err$out", '', 'the slot moves');
is(on('router', 'SELECT shard FROM slot WHERE slot = 92'), 'shard3', 'the map leads to the new shard');
is(shards_with(qq(SELECT FROM $_ WHERE slot_of($whose{$_}) = 92)), 'shard3', "$_: the rows are there, and there only") for sort keys %whose;
is(ask(q(SELECT outcome, response FROM charge('zeta', 'order 1', 10))), "replay|$response", 'SHD-1: a request from before is not charged again');
like(ask(q(SELECT * FROM lease('zeta/billing', '10 min', 'anna'))), qr/^acquired/, 'a lease is granted on the new shard');
$token = $session->{rows}[0][1];
is(shards_with(q(SELECT FROM interlock.leases WHERE key = 'zeta/billing')), 'shard3', 'it is there');
is(ask("SELECT pay_invoice('zeta', 3, 7, $token)"), 'IL001', 'the versions are those of before:');
is(ask("SELECT pay_invoice('zeta', 3, 1, $token)"), 2, 'the current one is accepted');
is(on('shard3', q(INSERT INTO invoice VALUES ('zeta', 4, 1) RETURNING version > 2)), 't', 'a row that is inserted now begins above all that have come');

# A move waits for a transaction that has entered the slot
my $direct = start($node{shard2});
ask_in($direct, q(BEGIN; SELECT enter('fern'); INSERT INTO invoice VALUES ('fern', 1, 1)));
$moving = IPC::Run::start(move(240, 240, 'shard3'), '<', \undef, '>', \$out, '2>', \$err);
$node{shard2}->poll_query_until('postgres', q(SELECT NOT EXISTS (SELECT FROM slot WHERE slot = 240)
    OR EXISTS (SELECT FROM pg_stat_activity WHERE query LIKE 'SELECT set_slot_240, %' AND wait_event_type = 'Lock')));
ask_in($direct, 'COMMIT');
$moving->finish;
is(shards_with(q(SELECT FROM invoice WHERE tenant = 'fern')), 'shard3', 'SHD-1: a row that is not committed when the move begins is moved');

# Clients with the old map are refused
my $stale = start($node{shard1});
is(ask_in($stale, $_), 'SH001', "the old shard refuses $_") for q(SELECT * FROM lease('zeta/billing', '10 min', 'eve')), "SELECT renew('zeta/billing', $later)",
    q(SELECT add_invoice('zeta', 9, 1)), q(SELECT * FROM charge('zeta', 'order 1', 10));
is(ask_in($stale, q(BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT enter('gale'))), '25000', 'a snapshot that may be older than the move is refused');
ask_in($stale, 'ROLLBACK');

# A move that ended after the slot was closed, and one that ended before the map was changed, are continued
ask(q(SELECT add_invoice('acme', 2, 20)));
on('shard2', q(SELECT set_slot(130, 'closed')));
is(ask(q(SELECT add_invoice('acme', 3, 20))), 'SH001', 'SHD-1: a closed slot is served nowhere');
is(ask(q(SELECT count(*) FROM unpaid() WHERE tenant = 'acme')), 0, 'and is in no report');
command_ok(move(130, 130, 'shard3'), 'the move is done again');
is(ask(q(SELECT count(*) FROM unpaid() WHERE tenant = 'acme')), 2, 'and has its rows');
on('router', q(SELECT assign_slots(130, 130, 'shard2')));
is(ask(q(SELECT add_invoice('acme', 3, 20))), 'SH001', 'a wrong map is refused by the shard');
command_ok(move(130, 130, 'shard3'), 'the map is corrected by the move');
like(ask(q(SELECT add_invoice('acme', 3, 20))), qr/^\d+$/, 'and served');
is(shards_with(q(SELECT FROM invoice WHERE tenant = 'acme')), 'shard3', 'the rows are on one shard');

# Five slots move while three clients work on gale. Each checks that no other one is inside of the lease, and notes what was acknowledged.
on('router', 'CREATE TABLE acknowledged (id int PRIMARY KEY)', 'CREATE TABLE inside_twice (worker int)', 'CREATE TABLE refused (worker int, times int)',
    q(CREATE PROCEDURE work(worker int) LANGUAGE plpgsql AS $$
    DECLARE
        granted record;
        n int := 0;
        refused int := 0;
    BEGIN
        WHILE EXISTS (SELECT FROM refused WHERE refused.worker = 0) LOOP
            n := n + 1;
            BEGIN
                SELECT * INTO granted FROM lease('gale/billing', '1 min', worker::text);
                IF granted.outcome = 'acquired' THEN
                    IF NOT pg_try_advisory_lock(44) THEN INSERT INTO inside_twice VALUES (worker); END IF;
                    PERFORM add_invoice('gale', worker * 1000000 + n, 1);
                    INSERT INTO acknowledged VALUES (worker * 1000000 + n);
                    PERFORM charge('gale', format('order %s %s', worker, n), 1), charge('gale', format('order %s %s', worker, n), 1);
                    PERFORM pg_advisory_unlock(44);
                    PERFORM release('gale/billing', granted.token);
                END IF;
            EXCEPTION WHEN SQLSTATE 'SH001' THEN
                PERFORM pg_advisory_unlock(44);
                refused := refused + 1;
            END;
            COMMIT;
        END LOOP;
        INSERT INTO refused VALUES (worker, refused);
    END $$));
on('router', 'INSERT INTO refused VALUES (0, 0)');
my @workers = map { start($node{router}) } 1 .. 3;
send_query($workers[ $_ - 1 ], "CALL work($_)") for 1 .. 3;
my $enough = sub { my ($shard, $count) = @_; return $node{$shard}->poll_query_until('postgres', "SELECT count(*) > $count FROM invoice WHERE tenant = 'gale'"); };
ok($enough->('shard1', 20), 'clients work on the old shard');
command_ok(move(42, 46, 'shard3'), 'the slots move meanwhile');
my $moved = on('shard3', q(SELECT count(*) FROM invoice WHERE tenant = 'gale'));
ok($enough->('shard3', $moved + 20), 'and they work on the new shard');
on('router', 'DELETE FROM refused WHERE worker = 0');
is(answer($_) // 'ended', 'ended', 'a client ends well') for @workers;
my ($acknowledged) = on('router', 'SELECT count(*) FROM acknowledged');
note "$acknowledged rows, refused: " . on('router', 'SELECT string_agg(times::text, $$ $$) FROM refused');
is(on('router', 'SELECT count(*) FROM inside_twice'), 0, 'SHD-1: no lease was granted twice');
is(on('shard3', q(SELECT count(*) FROM invoice WHERE tenant = 'gale')), $acknowledged, 'SHD-1: no row was lost');
is(on('shard3', q(SELECT count(*) FROM payment WHERE tenant = 'gale')), $acknowledged, 'SHD-1: each request was charged once');
is(shards_with(q(SELECT FROM invoice WHERE tenant = 'gale')), 'shard3', 'the rows are on one shard');

$_->stop for values %node;
done_testing();
