# What leases survive: clean restarts, crashes of all kinds, a crash during the grace, saved files that are not
# theirs, a failover. R1 to R12 are the rules of docs/internals/leases.md.
# only with --long

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../lib";
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Server;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('main');
$node->init(allows_streaming => 1);
$node->append_conf('postgresql.conf', q(
shared_preload_libraries = 'pg_interlock'
restart_after_crash = on
interlock.sweeper = off
));
$node->start;

my $database;

# The leases of one database have nothing to do with those of another: each has a grace of its own.
# Keys of a database share floors of tokens, by a hash of both (src/lease/database.cpp). With an OID of its own choice two keys
# of a test could share one in some builds, and what one loses cannot be reclaimed by the other.
my $next_oid = 200_000;

sub use_database
{
    ($database) = @_;
    $node->safe_psql('postgres', "CREATE DATABASE $database OID = " . $next_oid++);
    $node->safe_psql($database, 'CREATE EXTENSION pg_interlock');
}

sub ask { return $node->safe_psql($database, join(";\n", @_)); }

sub state_of
{
    my ($sql) = @_;
    my ($status, $out, $err) = $node->psql($database, "\\set VERBOSITY sqlstate\n$sql");
    return $err =~ /ERROR:  (\w+)/ ? $1 : $out;
}

# The arguments of acquire_lease after the key, as SQL. Tokens are the proof that the lease was acquired.
sub acquire
{
    my ($key, $arguments) = @_;
    return ask("SELECT token FROM interlock.acquire_lease('$key'" . ($arguments ? ", $arguments" : '') . ')');
}

sub outcome { return ask("SELECT outcome FROM interlock.acquire_lease('$_[0]', '5 s')"); }
sub renew { return ask("SELECT interlock.renew_lease('$_[0]', $_[1], '9 s') IS NOT NULL"); }
sub release { return ask("SELECT interlock.release_lease('$_[0]', $_[1])"); }
sub is_held { return state_of("SELECT interlock.assert_lease('$_[0]', $_[1])") ne 'IL006'; }

# All there is to know, but for times, which are shown in the system's.
sub leases
{
    return ask('SELECT key, mode, holder, token, since, ttl, durable FROM interlock.leases WHERE pid IS NULL ORDER BY key, token');
}

sub largest_token { return ask('SELECT max(token) FROM interlock.leases'); }
sub session { return $node->background_psql($database, on_error_stop => 0); }

# As a clean stop leaves it; that of before 17 returns nothing.
sub stop_and_start
{
    $node->stop('fast');
    $node->start;
}

sub kill_postmaster
{
    my ($postmaster) = slurp_file($node->data_dir . '/postmaster.pid') =~ /^(\d+)/;
    $node->kill9;
    for (1 .. 600) { last unless kill 0, $postmaster; select(undef, undef, undef, 0.1); }
}

# A backend that is killed takes all others with it, and the memory they share.
sub crash_backend
{
    my $victim = session();
    my $pid = $victim->query_safe('SELECT pg_backend_pid()');
    my $started = $node->safe_psql('postgres', 'SELECT pg_postmaster_start_time()');
    my $log = -s $node->logfile;
    kill 'KILL', $pid;
    ok($node->wait_for_log(qr/all server processes terminated; reinitializing/, $log), 'a backend was killed');
    ok(poll_over_crash($node, 'SELECT true'), 'the server is back');
    is($node->safe_psql('postgres', 'SELECT pg_postmaster_start_time()'), $started, 'by itself');
    eval { $victim->quit };
}

# --- A clean restart -------------------------------------------------------------------------------

use_database('clean');
my %token;
$token{a} = acquire('a/b', "'50 s', holder => 'anna'");
$token{s1} = acquire('s', "'50 s', holder => 'sara', mode => 'shared'");
$token{s2} = acquire('s', "'50 s', holder => 'susi', mode => 'shared'");
ask("SELECT token FROM interlock.acquire_permit('p', 2, '50 s')") for 1, 2;
$token{long} = acquire('long', "'1 hour', holder => 'lena'");
release('released', acquire('released'));
$token{gone} = acquire('gone', "'100 ms'");
ask('SELECT pg_sleep(0.2)');
my $bound = session();
$token{bound} = $bound->query_safe("SELECT token FROM interlock.acquire_lease('bound', bind => 'session')");
my $before = leases();
like($before, qr{^a/b\|exclusive\|anna\|$token{a}\|.*\|00:00:50\|f$}m, 'a lease');
like($before, qr{^long\|exclusive\|lena\|$token{long}\|.*\|01:00:00\|t$}m, 'a long one has a record');
my $expiry = ask("SELECT expires_at FROM interlock.leases WHERE key = 'a/b'");
my $largest = largest_token();
$node->stop('fast');
eval { $bound->quit };
$node->start;
is(leases(), $before, 'restart: the same leases');
is(ask("SELECT expires_at - '$expiry' BETWEEN '-1 s' AND '1 s' FROM interlock.leases WHERE key = 'a/b'"), 't', 'restart: as long as they were');
is(ask("SELECT count(*) FROM interlock.leases WHERE key = 'bound'"), 0, 'restart: what was bound to a session is gone');
is(renew('bound', $token{bound}) . renew('gone', $token{gone}), 'ff', 'restart: with its token, as what has expired');
cmp_ok(acquire('new', "'50 s'"), '>', $largest, 'restart: no grace, and tokens go on');
is(outcome('a') . outcome('a/b/c') . outcome('s') . outcome('long'), 'held' x 4, 'restart: leases are in the way of others');
is(ask("SELECT outcome FROM interlock.acquire_permit('p', 2)"), 'held', 'restart: permits are');
is(state_of("SELECT outcome FROM interlock.acquire_permit('p', 3)"), '22023', 'restart: for their capacity (SEC-2)');
isnt(acquire('s', "'50 s', mode => 'shared'"), '', 'restart: shared is shared');
ok(is_held('a/b', $token{a}), 'restart: the holder asserts');
is(renew('a/b', $token{a}) . release('a/b', $token{a}) . outcome('a/b'), 'ttacquired', 'restart: renews, and releases');
is(release('long', $token{long}) . outcome('long'), 'tacquired', 'restart: a long one, too');

acquire('kept', "'50 s'");
$before = leases();
stop_and_start() for 1 .. 2;
is(leases(), $before, 'two restarts without a use between them: the same leases');
isnt(acquire('fresh', "'50 s'"), '', 'two restarts: no grace');
is(outcome('kept'), 'held', 'two restarts: held');

# --- Crashes ---------------------------------------------------------------------------------------

$node->append_conf('postgresql.conf', "interlock.lease_durable_after = '10 s'");
stop_and_start();
use_database('crash');
$token{a} = acquire('a/b', "'9 s'");
$token{$_} = acquire($_, "'9 s'") for 'idle', 'keep', 'pair', 'upper/lower';
$token{"shared $_"} = acquire('shared', "'9 s', mode => 'shared'") for 1, 2;
$token{"permit $_"} = ask("SELECT token FROM interlock.acquire_permit('permit', 2, '9 s')") for 1, 2;
$token{'long permit'} = ask("SELECT token FROM interlock.acquire_permit('long permit', 2, '10 min')");
is(release('pair', $token{pair}) . release('upper/lower', $token{'upper/lower'}), 'tt', 'released');
$token{'pair 2'} = acquire('pair', "'9 s'");
$token{upper} = acquire('upper', "'9 s'");
$token{$_} = acquire($_, "'100 ms'") for 'expired', 'too late';
ask('SELECT pg_sleep(0.2)');
is(release('too late', $token{'too late'}), 'f', 'a release that comes too late is answered so');
$token{'too late 2'} = acquire('too late', "'9 s'");
$token{'expired 2'} = acquire('expired', "'9 s'");
$token{broken} = acquire('broken', "'9 s'");
ask("SELECT interlock.break_lease('broken', 'test')");
$token{long} = acquire('long', "'10 min', holder => 'lena', mode => 'shared'");
$token{'long released'} = acquire('long released', "'10 min'");
release('long released', $token{'long released'});
$token{'long renewed'} = acquire('long renewed', "'10 min'");
isnt(ask("SELECT interlock.renew_lease('long renewed', $token{'long renewed'}, '20 min')"), '', 'a long one is renewed');
my $long = leases() =~ /^(long\|.*)/m ? $1 : 'not there';
$largest = largest_token();
crash_backend();

is(ask(q(SELECT outcome, token IS NULL, holder IS NULL, expires_at BETWEEN clock_timestamp() AND clock_timestamp() + '13 s'
        FROM interlock.acquire_lease('new'))), 'recovering|t|t|t', 'R2: nothing new is granted');
is(state_of("SELECT interlock.assert_lease('a/b', $token{a})"), 'IL006', 'what was not reclaimed is not held');
is(renew('broken', $token{broken}), 'f', 'R4: what was broken is not reclaimed');
is(renew('expired', $token{expired}), 'f', 'R4: nor what expired and was taken over');
is(renew('too late', $token{'too late'}), 'f', 'R4: nor what expired, was released then, and was taken over (LEA-6)');
is(is_held('too late', $token{'too late'}), '', 'S2: nor is it asserted');
is(renew('expired', $token{'expired 2'}), 't', 'R5: but by whom it was taken over');
is(renew('a/b', $token{a}), 't', 'R5: a holder reclaims');
is(renew('a/b', ~0 >> 1), 'f', 'R5: not with a token that nobody was given');
ok(is_held('a/b', $token{a}), 'R5: and asserts');
is(renew('pair', $token{pair}) . renew('pair', $token{'pair 2'}) . renew('pair', $token{pair}), 'ttf', 'R7: of two the higher token has it');
is(is_held('pair', $token{'pair 2'}) . '|' . is_held('pair', $token{pair}), '1|', 'R7: alone');
is(renew('upper', $token{upper}) . renew('upper/lower', $token{'upper/lower'}), 'tf', 'R7: of two paths, too');
is(renew('permit', $token{"permit $_"}) . renew('shared', $token{"shared $_"}), 'tt', "R5: permit and shared lease $_") for 1, 2;
is(ask(q(SELECT string_agg(mode, ' ' ORDER BY mode) FROM interlock.leases WHERE key IN ('shared', 'permit', 'a/b'))),
    'exclusive permit permit shared shared', 'R5: with their modes');
is(renew('keep', $token{keep}), 't', 'one to keep');
like(leases(), qr/^\Q$long\E$/m, 'R9: a long one is still there');
is(state_of("SELECT outcome FROM interlock.acquire_permit('long permit', 3)"), '22023', 'R9: a permit is, for its capacity (SEC-2)');
is(renew('long renewed', $token{'long renewed'}), 't', 'R9: and can be renewed');
is(ask("SELECT count(*) FROM interlock.leases WHERE key = 'long released'"), 0, 'R9: one that was released is not');

# The grace is not over because the server is restarted in it
stop_and_start();
is(outcome('idle'), 'recovering', 'R2: a clean restart does not end the grace');
is(renew('a/b', $token{a}) . renew('keep', $token{keep}), 'tt', 'R5: what was reclaimed in it is reclaimed once more');

my @waiters = map { session() } 1 .. 2;
$waiters[0]->query_until(qr/asked/, "\\echo asked\nSELECT outcome, token FROM interlock.acquire_lease('idle', '5 s', wait => '1 min');\n");
$waiters[1]->query_until(qr/asked/, "\\echo asked\nSELECT outcome, token FROM interlock.acquire_lease('a', '5 s', wait => '1 min');\n");
like($waiters[0]->query_safe('SELECT 1'), qr/^acquired\|(\d+)\n1$/, 'R2: a waiter is served when the grace is over');
like($waiters[1]->query_safe('SELECT 1'), qr/^acquired\|(\d+)\n1$/, 'R2: and one for what was reclaimed when that expires');
$_->quit for @waiters;
$token{new} = acquire('new', "'9 s'");
cmp_ok($token{new}, '>', $largest, 'R3: tokens go on');
is(renew('idle', $token{idle}), 'f', 'R5: nobody reclaims after the grace');
is(renew('keep', $token{keep}), 't', 'R5: but what was reclaimed goes on');
ok(is_held('long', $token{long}), 'R9: the long one is held');
is(state_of("SELECT outcome FROM interlock.acquire_permit('long permit', 3)"), '22023', 'R9: the permit, too');
is(release('long permit', $token{'long permit'}) . ask("SELECT outcome FROM interlock.acquire_permit('long permit', 3, '1 s')"), 'tacquired', 'R9: until it is released');
is(renew('long', $token{long}) . release('long', $token{long}), 'tt', 'R9: renewed and released');

# --- A crash, and another during its grace -----------------------------------------------------------

$token{kept} = acquire('kept', "'9 s'");
$token{old} = acquire('old', "'9 s'");
my $file = $node->data_dir . '/pg_stat/pg_interlock.leases';
$node->stop('fast');
my $saved = slurp_file($file);
$node->start;
ok(is_held('old', $token{old}), 'saved and restored');
ok(!-e $file, 'R10: what is used is not there again');
is(release('old', $token{old}), 't', 'released');
$token{second} = acquire('second', "'9 s'");
$largest = $token{second};
$node->stop('immediate');
ok(!-e $file, 'R10: nothing is saved at an immediate stop');
$node->start;
is(outcome('free'), 'recovering', 'R2: after an immediate stop');
is(renew('second', $token{second}), 't', 'R5: reclaimed');
is(renew('keep', $token{keep}), 'f', 'R6: not from the epoch before the last');
is(ask("SELECT count(*) FROM interlock.leases WHERE key = 'long'"), 0, 'R9: what was released after one crash is gone after the next');
kill_postmaster();
append_to_file($file, $saved);
$node->start;
is(outcome('old'), 'recovering', 'R10: an old saved file put back counts for nothing');
is(ask("SELECT string_agg(key, ' ') FROM interlock.leases"), 'long renewed', 'R10: nothing of it is there');
is(renew('second', $token{second}) . renew('kept', $token{kept}), 'tt', 'R5: reclaimed once more after a crash in the grace');
ok(is_held('second', $token{second}), 'R5: and asserted');
is(release('kept', $token{kept}), 't', 'released');
cmp_ok(acquire('kept', "'9 s', wait => '1 min'"), '>', $largest, 'R3: tokens go on');

# --- Saved files that are not whole ------------------------------------------------------------------

my %damage = (
    half => sub { substr($_[0], 0, length($_[0]) / 2) },
    short => sub { substr($_[0], 0, -1) },
    empty => sub { '' },
    flipped => sub { my $bytes = $_[0]; substr($bytes, -200, 1) ^= "\x01"; $bytes },
    longer => sub { $_[0] . "\0" },
);
for my $how (sort keys %damage)
{
    use_database("file_$how");
    $token{a} = acquire('a', "'9 s', holder => 'anna'");
    $node->stop('fast');
    $saved = slurp_file($file);
    open(my $handle, '>:raw', $file) or die;
    print $handle $damage{$how}->($saved);
    close($handle);
    $node->start;
    is(outcome('b'), 'recovering', "R10: a file that is $how counts for nothing");
    is(leases(), '', "R10: $how: no lease of it");
    is(renew('a', $token{a}), 't', "R5: $how: the holder reclaims");
}
unlink($file);

use_database('gone');
$token{a} = acquire('a', "'9 s'");
$node->stop('fast');
unlink($file);
$node->start;
is(outcome('a'), 'recovering', 'R10: no file, but a clean stop: grace');

# --- Without a grace ---------------------------------------------------------------------------------

use_database('immediate');
$node->append_conf('postgresql.conf', 'interlock.lease_recovery = immediate');
$token{a} = acquire('a', "'9 s'");
$node->stop('immediate');
$node->start;
$token{b} = acquire('a', "'9 s'");
cmp_ok($token{b} || 0, '>', $token{a}, 'immediate: granted at once, with a larger token');
is(renew('a', $token{a}), 'f', 'immediate: the first holder is told when it renews');

# --- Failover ----------------------------------------------------------------------------------------

$node->append_conf('postgresql.conf', "interlock.lease_recovery = safe\ninterlock.lease_durable_after = '4 s'");
$node->reload;
$node->backup('backup');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($node, 'backup', has_streaming => 1);
$standby->start;
use_database('failover');
$token{a} = acquire('a', "'4 s', mode => 'shared'");
$token{lost} = acquire('lost', "'4 s'");
ask("SELECT interlock.break_lease('lost', 'test')");
$token{long} = acquire('long', "'10 min', holder => 'lena'");
$long = leases() =~ /^(long\|.*)/m ? $1 : 'not there';
$node->wait_for_catchup($standby);
my $primary = $node;
$node = $standby;
for my $call ("acquire_lease('x')", "acquire_permit('x', 1)", "acquire_leases('{x}')", "renew_lease('a', $token{a})", "release_lease('a', $token{a})",
    "assert_lease('a', $token{a})")
{
    is(state_of("SELECT * FROM interlock.$call"), '25006', "not on a standby: $call");
}
is(state_of("SELECT interlock.break_lease('a', 'test')"), '25006', 'not on a standby: break_lease');
is(state_of('SELECT * FROM interlock.leases; SELECT * FROM interlock.lease_waiters'), '', 'on a standby the views are empty');
is(ask("SELECT coalesce(sum(used), 0) FROM interlock.usage WHERE what ~ '^lease'"), 0, 'and usage has no leases');
$primary->stop('immediate');
$standby->promote;
is(outcome('new'), 'recovering', 'R11: after the promotion nothing new is granted');
is(renew('a', $token{a}) . renew('lost', $token{lost}), 'tf', 'R5: a holder reclaims, whoever lost it does not');
is(renew('a', $token{a} ^ 4), 'f', 'R5: with its own token alone, for the secret has come along (SEC-2)');
ok(is_held('a', $token{a}), 'R5: and asserts');
is(leases() =~ /^\Q$long\E$/m, 1, 'R9: a long one is there');
$token{new} = acquire('new', "'4 s', wait => '1 min'");
cmp_ok($token{new} >> 48, '==', 2, 'R11: tokens begin at the timeline');
is(outcome('long'), 'held', 'R9: the long one is held');
is(release('long', $token{long}) . outcome('long'), 'tacquired', 'R9: until it is released');
$before = largest_token();
stop_and_start();
cmp_ok(acquire('later', "'4 s'"), '>', $before, 'and a clean restart is one on this timeline, too');
$standby->stop;
unlike(slurp_file($_->logfile), qr/PANIC|TRAP|terminated by signal (?!9)/, $_->name . ': nothing crashed by itself') for $primary, $standby;
done_testing();
