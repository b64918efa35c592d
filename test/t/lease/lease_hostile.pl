# Leases under those who mean harm, or have bad luck: extensions that come and go, settings that change at the worst
# moment, memory that is full, records that are overwritten, first uses that are canceled.
# only with --long

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../lib";
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Protocol ();
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('main');
$node->init(allows_streaming => 'logical');
$node->append_conf('postgresql.conf', q(
shared_preload_libraries = 'pg_interlock'
interlock.sweeper = off
interlock.max_leases = 110000
interlock.lease_durable_after = '20 s'
));
$node->start;

# The SQLSTATE of the first error, else what the statements return.
sub ask
{
    my ($database, @sql) = @_;
    my ($status, $out, $error) = $node->psql($database, "\\set VERBOSITY sqlstate\n" . join(";\n", @sql));
    return $error =~ /(?:ERROR|FATAL): +(\w+)/ ? $1 : $out;
}

sub create
{
    my ($database) = @_;
    $node->safe_psql('postgres', "CREATE DATABASE $database");
    $node->safe_psql($database, 'CREATE EXTENSION pg_interlock');
    return $database;
}

sub acquire
{
    my ($database, $key, $arguments) = @_;
    return ask($database, "SELECT token FROM interlock.acquire_lease('$key', $arguments)");
}

sub outcome { return ask($_[0], "SELECT outcome FROM interlock.acquire_lease('$_[1]', " . ($_[2] || "'1 s'") . ')'); }
sub renew { return ask($_[0], "SELECT interlock.renew_lease('$_[1]', $_[2], '$_[3]') IS NOT NULL"); }
sub release { return ask($_[0], "SELECT interlock.release_lease('$_[1]', $_[2])"); }
sub pause { select(undef, undef, undef, $_[0]); return; }

# What starts from now on has the setting.
sub change
{
    my ($setting, $value) = @_;
    $node->safe_psql('postgres', "ALTER SYSTEM SET $setting = '$value'");
    $node->reload;
    $node->poll_query_until('postgres', "SHOW $setting", $value) or die "$setting does not become $value";
    return;
}

sub restart_with
{
    my ($how, @settings) = @_;
    $node->safe_psql('postgres', "ALTER SYSTEM SET $_") for @settings;
    $node->stop($how);
    $node->start;
    return;
}

sub session
{
    my ($database, $name) = @_;
    my $psql = $node->background_psql($database, on_error_stop => 0);
    $psql->query_safe("SET application_name = '$name'; SET statement_timeout = '3 min'");
    return $psql;
}

# LEA-10: a query that is left to run, and its answer. One that does not wait can answer before the read that finds
# "asked" is over.
sub begin
{
    my ($session, $sql) = @_;
    my $read = $session->query_until(qr/asked\n/, "\\set VERBOSITY sqlstate\n\\echo asked\n$sql;\n");
    $session->{early} = $read =~ /asked\n(.*)/s ? $1 : '';
    return;
}

sub answer
{
    my ($session) = @_;
    my $answer = $session->{early} . $session->query('SELECT 1');
    $session->{early} = '';
    my $error = $session->{stderr};
    $session->{stderr} = '';
    return $1 if $error =~ /(?:ERROR|FATAL): +(\w+)/;
    return (split(/\n/, $answer))[0];
}

sub is_waiting
{
    my ($database, $name) = @_;
    ok($node->poll_query_until($database, "SELECT count(*) = 1 FROM interlock.lease_waiters WHERE holder = '$name'"), "$name waits");
    return;
}

# --- Those who wait ----------------------------------------------------------------------------------

# A call that has to wait itself has what it got so far until it has all, and then for a time
create('waiting');
my $token = acquire('waiting', 'b', "'1 h'");
my $many = session('waiting', 'many');
begin($many, "SELECT outcome FROM interlock.acquire_leases('{a,b}', '1 s', null)");
is_waiting('waiting', 'many');
my $behind = session('waiting', 'behind');
begin($behind, "SELECT outcome FROM interlock.acquire_lease('a', '1 s', null)");
is_waiting('waiting', 'behind');
release('waiting', 'b', $token);
is(answer($many), 'acquired', 'all of them, when the last is free');
is(answer($behind), 'acquired', 'who waits behind is granted when they expire');
eval { $_->quit } for $many, $behind;

# Calls whose keys are in one another's way, but not in the order of their bytes
$token = acquire('waiting', 'a-x', "'1 h'");
my @calls = map { session('waiting', "call $_") } 1 .. 2;
my @keys = ('{a-x,a/b}', '{a,a-x}');
for my $i (0, 1)
{
    begin($calls[$i], "SELECT outcome, interlock.release_lease(k, t) FROM interlock.acquire_leases('$keys[$i]', '15 s', null),
        unnest('$keys[$i]'::text[], tokens) AS u(k, t)");
    is_waiting('waiting', 'call ' . ($i + 1));
}
release('waiting', 'a-x', $token);
is(answer($calls[$_]), 'acquired|t', "call with $keys[$_]: no deadlock") for 0, 1;
eval { $_->quit } for @calls;

my @runs;
for my $keys (@keys, '{a/b/c,b,a.}', '{a/b-,b/c,a-}')
{
    my $load = $node->basedir . '/calls' . @runs . '.load';
    append_to_file($load, "SELECT 1 / count(interlock.release_lease(k, t))
        FROM interlock.acquire_leases('$keys', '15 s', '12 s'), unnest('$keys'::text[], tokens) AS u(k, t);\n");
    my @pgbench = ('pgbench', '-n', '-c', 2, '-t', 150, '-f', $load, '-h', $node->host, '-p', $node->port, 'waiting');
    push @runs, { keys => $keys, run => IPC::Run::start(\@pgbench, '>', \my $out, '2>', \my $error) };
}
ok($_->{run}->finish, "calls with $_->{keys}: never for long in one another's way") for @runs;
is(ask('waiting', 'SELECT count(*) FROM interlock.leases'), 0, 'nothing is left of them');

# A call that is canceled gives back what it has, to those who wait for it
$token = acquire('waiting', 'd', "'1 h'");
$many = session('waiting', 'many');
begin($many, "SELECT outcome FROM interlock.acquire_leases('{c,d}', '1 s', null)");
is_waiting('waiting', 'many');
$behind = session('waiting', 'behind');
begin($behind, "SELECT outcome FROM interlock.acquire_lease('c', '1 s', null)");
is_waiting('waiting', 'behind');
ask('waiting', q(SELECT pg_cancel_backend(pid) FROM interlock.lease_waiters WHERE holder = 'many'));
is(answer($behind), 'acquired', 'who waits behind is granted when the call is canceled');
is(answer($many), '57014', 'which is told');
release('waiting', 'd', $token);
eval { $_->quit } for $many, $behind;

# A transaction cannot wait for its own assertion
for my $mine ('p', 'p/below')
{
    my $me = session('waiting', 'me');
    my $other = session('waiting', 'other');
    $token = acquire('waiting', $mine, "'19 s'");
    $_->query_safe("BEGIN; SELECT interlock.assert_lease('$mine', $token)") for $me, $other;
    is($me->query_safe("SELECT interlock.release_lease('$mine', $token)"), 't', "$mine: released");
    begin($me, "SELECT outcome FROM interlock.acquire_lease('p', '1 s', '10 min')");
    pause(0.5);
    $other->query_safe('COMMIT');
    is(answer($me), 'held', "$mine: nobody but oneself is in the way: held, and no wait");
    $me->query_safe('ROLLBACK');
    is(outcome('waiting', 'p'), 'acquired', "$mine: and free at the end");
    ask('waiting', "SELECT interlock.break_lease('p', 'test')");
    eval { $_->quit } for $me, $other;
}

# Its own lease and that of another are below the key. If its own is found first, it does not wait at all (LEA-55). Else it waits
# until the other one has ended, in whatever way.
for my $how ('commit', 'release', 'expiry')
{
    my $waited = 0;
    for my $mine (0, 1)
    {
        my ($me, $other) = map { session('waiting', $_) } 'me', 'other';
        my ($own, $others) = ("$how $mine/$mine", "$how $mine/" . (1 - $mine));
        my %tokens = map { $_ => acquire('waiting', $_, $how eq 'expiry' && $_ eq $others ? "'3 s'" : "'19 s'") } sort $own, $others;
        for my $held ($how eq 'commit' ? ([$me, $own], [$other, $others]) : [$me, $own])
        {
            $held->[0]->query_safe("BEGIN; SELECT interlock.assert_lease('$held->[1]', $tokens{$held->[1]})");
            release('waiting', $held->[1], $tokens{$held->[1]});
        }
        begin($me, "SELECT outcome FROM interlock.acquire_lease('$how $mine', '1 s', '10 min')");
        $node->poll_query_until('waiting', q(SELECT wait_event_type = 'Extension' OR state LIKE 'idle%' AND query LIKE 'SELECT outcome%'
            FROM pg_stat_activity WHERE application_name = 'me'));
        $waited += ask('waiting', q(SELECT count(*) FROM interlock.lease_waiters WHERE holder = 'me'));
        $other->query_safe('COMMIT') if $how eq 'commit';
        release('waiting', $others, $tokens{$others}) if $how eq 'release';
        is(answer($me), 'held', "$how $mine: held when the other one is gone");
        eval { $_->quit } for $me, $other;
    }
    # what expires may have done so before it was looked at
    is($waited, 1, "$how: one of both waits") if $how ne 'expiry';
}

# --- Releases that do not come to their end ----------------------------------------------------------

for my $how ('release', 'break', 'drop')
{
    $token = acquire('waiting', $how, "'1 h'");
    my $below = acquire('waiting', "$how other/below", "'1 h'");
    my $call = {
        release => "SELECT interlock.release_lease('release', $token)",
        break => q(SELECT interlock.break_lease('break', 'test') IS NOT NULL),
        drop => "SELECT bool_and(interlock.release_lease(k, t)) FROM (VALUES ('drop', $token), ('drop other/below', $below)) x(k, t)",
    }->{$how};
    change('synchronous_standby_names', 'nobody');
    for (1 .. 100)
    {
        last if ask('waiting', "SET statement_timeout = '100 ms'", "SELECT outcome FROM interlock.acquire_lease('probe $_', '1 h')") eq '57014';
    }
    is(ask('waiting', "SET statement_timeout = '300 ms'", $call), '57014', "$how: canceled while its record is cleared");
    is(ask('waiting', "SET statement_timeout = '300 ms'", $call), '57014', "$how: twice") if $how eq 'drop';
    change('synchronous_standby_names', '');
    like(ask('waiting', $call), qr/^[tf]$/, "$how: and once more") if $how ne 'break';
    is(outcome('waiting', $how, "'1 h', '5 s'"), 'acquired', "$how: the key is not blocked");
    isnt(outcome('waiting', "$how other", "'1 h', '0'"), $how eq 'drop' ? '' : 'acquired', "$how: what is held stays held");
}
$token = acquire('waiting', 'twice', "'1 h'");
is(release('waiting', 'twice', $token) . release('waiting', 'twice', $token), 'tf', 'twice: only the first counts');
is(outcome('waiting', 'twice', "'1 h'"), 'acquired', 'twice: it is free');

# --- The first use after a clean restart is canceled -----------------------------------------------------

my $long = 3000;
create('many');
is(ask('many', "SELECT count(*) FROM generate_series(1, $long) i, interlock.acquire_lease('long/' || i, '1 h') WHERE outcome = 'acquired'"),
    $long, 'many long leases');
$token = acquire('many', 'short', "'20 s'");
restart_with('fast');
sub first_uses
{
    my @told = map { ask('many', "SET statement_timeout = '$_ ms'", "SELECT outcome FROM interlock.acquire_lease('first $_', '1 s')") } @_;
    is(scalar(grep { !/^(57014|acquired)$/ } @told), 0, "first uses: @told");
    return;
}
first_uses(1, 2, 3);
restart_with('fast');
first_uses(1, 2, 3, 5, 10);
is(outcome('many', 'next'), 'acquired', 'then it is used: no grace');
is(outcome('many', 'short'), 'held', 'the short lease is there');
is(renew('many', 'short', $token, '20 s'), 't', 'its holder renews');
is(ask('many', "SELECT count(*) FROM interlock.leases WHERE key LIKE 'long/%'"), $long, 'and the long ones');

# --- The table behind it -------------------------------------------------------------------------------

ask('many', 'CREATE EXTENSION amcheck SCHEMA public');
my $check = q(SELECT blkno, offnum, attnum, msg FROM public.verify_heapam('interlock_internal.lease_store') LIMIT 5);
is(ask('many', $check), '', 'the store is a proper heap');
ask('many', 'VACUUM FREEZE interlock_internal.lease_store');
ask('many', 'VACUUM FULL interlock_internal.lease_store');
is(ask('many', $check), '', 'also when it was vacuumed');

# Logical replication of all tables does not bring leases of another server
create('publisher');
create('subscriber');
acquire('publisher', 'theirs', "'1 h'");
my $tokens = acquire('subscriber', 'ours', "'1 h'");
my $rows = 'SELECT count(*) FROM interlock_internal.lease_store';
my $before = ask('subscriber', $rows);
ask('publisher', $_) for 'CREATE TABLE public.thing (id int PRIMARY KEY)', 'INSERT INTO public.thing VALUES (1)',
    'CREATE PUBLICATION p FOR ALL TABLES', q(SELECT pg_create_logical_replication_slot('s', 'pgoutput'));
ask('subscriber', 'CREATE TABLE public.thing (id int PRIMARY KEY)');
is(ask('subscriber', "CREATE SUBSCRIPTION s CONNECTION 'host=" . $node->host . ' port=' . $node->port . q( dbname=publisher' PUBLICATION p
    WITH (create_slot = false, slot_name = 's'))), '', 'subscribed to all tables');
ok($node->poll_query_until('subscriber', q(SELECT count(*) = 0 FROM pg_subscription_rel WHERE srsubstate NOT IN ('r', 's'))), 'copied');
is(ask('subscriber', 'SELECT count(*) FROM public.thing'), 1, 'what is to be replicated is');
is(ask('subscriber', $rows), $before, 'the store has the rows of before');
is(outcome('subscriber', 'ours') . outcome('subscriber', 'theirs', "'1 h'"), 'heldacquired', 'leases work');
ask('subscriber', 'ALTER SUBSCRIPTION s DISABLE');

# --- A renewal that fails before it is recorded -----------------------------------------------------------

# A later one must not wait for time that no horizon has.
create('unrecorded');
my $renewed = acquire('unrecorded', 'a', "'10 s'");
my $lock = $node->background_psql('unrecorded');
$lock->query_safe('BEGIN; LOCK TABLE interlock_internal.lease_store');
is(ask('unrecorded', "SET statement_timeout = '200 ms'", "SELECT interlock.renew_lease('a', $renewed, '1 h')"), '57014', 'unrecorded: a renewal is canceled');
$lock->query_safe('COMMIT');
is(ask('unrecorded', "SELECT durable, expires_at > now() + '5 min' FROM interlock.leases"), 'f|t', 'the lease lasts, and has no record');
is(ask('unrecorded', "SET statement_timeout = '60 s'", "SELECT interlock.renew_lease('a', $renewed, '15 s') IS NOT NULL"), 't', 'unrecorded: a shorter one is not');
is(ask('unrecorded', 'SELECT durable FROM interlock.leases'), 't', 'and it has a record then');
$lock->quit;

# --- A reclaim that takes a lease from another -------------------------------------------------------------

# Who waits for the one that was taken is served when the new one ends. Each session's latch is set within ten seconds of its
# last statement, which would hide that it is not.
change('interlock.lease_durable_after', '1min');
create('reclaimed');
my $first = acquire('reclaimed', 'a', "'5 s'");
release('reclaimed', 'a', $first);
my $second = acquire('reclaimed', 'a', "'8 s'");
restart_with('immediate');
is(outcome('reclaimed', 'other'), 'recovering', 'reclaimed: in the grace');
$lock = $node->background_psql('reclaimed');
$lock->query_safe('BEGIN; LOCK TABLE interlock_internal.lease_store');
is(ask('reclaimed', "SET statement_timeout = '200 ms'", "SELECT interlock.renew_lease('a', $first, '1 h')"), '57014', 'reclaimed: a renewal that is canceled has a lease in memory');
$lock->query_safe('COMMIT');
$lock->quit;
my ($waits, $waits_for_end, $waits_longer) = map { Protocol::start($node, 'reclaimed') } 1 .. 3;
Protocol::send_query($waits, "SELECT outcome FROM interlock.acquire_lease('a', '1 h', wait => '50 min')");
Protocol::send_query($waits_for_end, "SELECT outcome FROM interlock.acquire_lease('b', '1 h', wait => '50 min')");
$node->poll_query_until('reclaimed', q(SELECT count(*) = 2 FROM interlock.lease_waiters)) or die 'nobody waits';
pause(11);
is(renew('reclaimed', 'a', $second, '1 s'), 't', 'reclaimed: by a higher token');
is(Protocol::answer($waits_for_end), 'acquired', 'reclaimed: the grace is over');
is(outcome('reclaimed', 'c', "'8 s'"), 'acquired', 'reclaimed: another lease');
is(Protocol::query($waits_longer, "SELECT outcome FROM interlock.acquire_lease('c', '5 s', wait => '50 min')"), 'acquired', 'reclaimed: ends later');
is(ask('reclaimed', "SELECT state FROM pg_stat_activity WHERE pid = $waits->{pid}"), 'idle', 'reclaimed: who waits was served when that one had ended');
is(Protocol::answer($waits), 'acquired', 'reclaimed: with the lease');

# --- A record that another has reused --------------------------------------------------------------------

my %before;
change('interlock.lease_durable_after', '1s');
create('reused');
$before{reused} = acquire('reused', 'a', "'1100 ms'");
pause(1.3);
acquire('reused', 'b', "'1 min'");
is(renew('reused', 'a', $before{reused}, '1 h'), 't', 'reused: renewed, as nobody took it');

# --- Extensions that come and go ---------------------------------------------------------------------------

# In the transaction that creates their extension there are no leases: a rollback would take along what they rely on.
# What is held outlives the table: in the new one, before anybody has used it, or in the one of before.
my %ways = (
    undone => ['CREATE EXTENSION pg_interlock', 'ROLLBACK; CREATE EXTENSION pg_interlock'],
    dropped => ['DROP EXTENSION pg_interlock; CREATE EXTENSION pg_interlock', 'COMMIT'],
    unused => ['DROP EXTENSION pg_interlock; CREATE EXTENSION pg_interlock', 'COMMIT'],
    redone => ['DROP EXTENSION pg_interlock CASCADE; CREATE EXTENSION pg_interlock', 'ROLLBACK'],
);
change('interlock.lease_durable_after', '30s');
for my $way (sort keys %ways)
{
    my ($change, $end) = @{ $ways{$way} };
    $way eq 'undone' ? $node->safe_psql('postgres', "CREATE DATABASE $way") : create($way);
    my $session = session($way, $way);
    ($before{$way}, $before{"long $way"}) = map { acquire($way, $_->[0], "'$_->[1]'") } ['k', '30 s'], ['long', '1 h'] if $way ne 'undone';
    $session->query_safe("BEGIN; $change");
    if ($way ne 'unused')
    {
        begin($session, q(SAVEPOINT s; SELECT outcome FROM interlock.acquire_lease('early')));
        is(answer($session), '55000', "$way: no leases in the transaction that creates the extension");
        $session->query_safe('ROLLBACK TO s');
    }
    $session->query_safe($_) for split /; /, $end;
    $before{$way} = acquire($way, 'k', "'30 s'") if $way eq 'undone';
    eval { $session->quit };
}
$before{subscriber} = acquire('subscriber', 'short', "'30 s'");

# --- The setting is lowered while somebody waits --------------------------------------------------------

# Last before the crash, and long: what follows has to find the lease before its time to live is over.
change('interlock.lease_durable_after', '59s');
create('lowered');
my $first = session('lowered', 'first');
$token = $first->query_safe("SELECT token FROM interlock.acquire_lease('k', bind => 'session')");
my $victim = session('lowered', 'victim');
begin($victim, "SELECT token FROM interlock.acquire_lease('k', '58 s', '15 s')");
is_waiting('lowered', 'victim');
change('interlock.lease_durable_after', '1s');
is(release('lowered', 'k', $token), 't', 'lowered: released');
$before{lowered} = answer($victim);
like($before{lowered}, qr/^\d+$/, 'lowered: the waiter is granted the lease');
change('interlock.lease_durable_after', '30s');

# --- The crash after all that ----------------------------------------------------------------------------------

eval { $_->quit } for $first, $victim;
restart_with('immediate');
isnt(outcome('lowered', 'k'), 'acquired', 'lowered: nobody else has it after a crash');
is(renew('lowered', 'k', $before{lowered}, '30 s'), 't', 'lowered: but its holder');
for my $way (sort keys(%ways), 'subscriber')
{
    my $key = $way eq 'subscriber' ? 'short' : 'k';
    is(outcome($way, 'new') . ' ' . outcome($way, $key), 'recovering recovering', "$way: a grace after a crash");
    # what was acquired before the table was made is older than its epoch
    is(renew($way, $key, $before{$way}, '30 s'), $way =~ /dropped|unused/ ? 'f' : 't', "$way: whether the holder reclaims");
}
for my $way ('dropped', 'redone', 'unused')
{
    isnt(outcome($way, 'long'), 'acquired', "$way: nobody else has the long lease");
}
is(renew('redone', 'long', $before{'long redone'}, '1 h'), 't', 'redone: but its holder');
is(outcome('reused', 'new', "'1 s', '90 s'"), 'acquired', 'reused: the grace is over');
is(outcome('reused', 'a'), 'held', 'reused: held after a crash');
is(renew('reused', 'a', $before{reused}, '1 h'), 't', 'reused: by its holder');
is(outcome('reused', 'b'), 'held', 'reused: as the other one');
# The horizon of the table that was made anew stands for its long leases, too
for my $way ('redone', 'undone', 'subscriber')
{
    cmp_ok(acquire($way, 'new', "'1 s', '90 s'"), '>', $before{$way}, "$way: tokens go on after the grace");
}
is(outcome('subscriber', 'ours') . outcome('subscriber', 'theirs'), 'heldheld', 'subscriber: long leases are there');

# --- Memory that does not suffice -------------------------------------------------------------------------------

# In one session, and gone with it
create('view');
is(ask('view', q(SELECT count(*) FROM generate_series(1, 100000) i, interlock.acquire_lease('job ' || i, bind => 'session') WHERE outcome = 'acquired'),
    q(SELECT count(*) FROM interlock.leases WHERE key LIKE 'job%')), "100000\n100000", 'a view of a hundred thousand');

restart_with('fast', 'interlock.max_leases = 64', q(interlock.lease_durable_after = '1 s'));
my ($status, $out, $error) = $node->psql('many', "\\set VERBOSITY verbose\nSELECT interlock.acquire_lease('new')");
like($error, qr/53400: .*HINT: .*interlock\.max_leases/s, 'fewer than there are: 53400, and what to do');
is(outcome('many', 'new'), '53400', 'and again');
restart_with('fast', 'interlock.max_leases = 5000');
is(ask('many', "SELECT count(*) FROM interlock.leases WHERE key LIKE 'long/%'"), $long, 'as many as before: all are there');
isnt(outcome('many', 'long/1'), 'acquired', 'and in the way of others');
unlike(slurp_file($node->logfile), qr/PANIC|TRAP|terminated by signal/, 'nothing crashed');
$node->stop;

$node = PostgreSQL::Test::Cluster->new('small');
$node->init;
$node->append_conf('postgresql.conf', q(
shared_preload_libraries = 'pg_interlock'
interlock.sweeper = off
interlock.max_leases = 64
interlock.lease_durable_after = '1 s'
));
$node->start;
sub fill
{
    my ($database, $prefix, $count, $ttl) = @_;
    return ask($database, "SELECT count(*) FROM generate_series(1, $count) i, interlock.acquire_lease('$prefix' || i, '$ttl') WHERE outcome = 'acquired'");
}
create('one');
is(fill('one', 'a', 64, '1100 ms'), 64, 'as many long leases as there may be');
pause(1.3);
is(outcome('one', 'new'), 'acquired', 'expired: there is room for another');
is(fill('one', 'b', 60, '1100 ms'), 60, 'and for more');
pause(1.3);
is(fill('one', 'c', 60, '1 s'), 60, 'for short ones, too');
pause(1.1);
is(fill('one', 'd', 60, '1 h'), 60, 'long ones of a database');
$node->safe_psql('postgres', 'DROP DATABASE one');
create('two');
is(fill('two', 'e', 60, '1 h'), 60, 'that is dropped: they do not keep the room');
is(fill('two', 'e', 60, '1 h'), 0, 'held');
$node->append_conf('postgresql.conf', "interlock.lease_durable_after = '2 h'");
$node->restart;
($status, $out, $error) = $node->psql('two', "\\set VERBOSITY verbose\nSELECT interlock.acquire_lease('f' || i, '1 h') FROM generate_series(1, 5000) i");
like($error, qr/53400/, 'not as many as one likes');
my $held = ask('two', 'SELECT count(*) FROM interlock.leases');
ok($held >= 64 && $held < 450, "$held where there may be 64, one for each connection, and the reserve of superusers");
unlike(slurp_file($node->logfile), qr/PANIC|TRAP|terminated by signal/, 'nothing crashed');
$node->stop;
done_testing();
