# LEA-5: the time of a durable lease begins when it is durable. While a synchronous standby is away nothing is answered, and
# what is answered then has its whole ttl, or is no lease.
# only with --long

use strict;
use warnings;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('main');
$node->init(allows_streaming => 1);
$node->append_conf('postgresql.conf', q(
shared_preload_libraries = 'pg_interlock'
interlock.sweeper = off
interlock.lease_durable_after = '1 s'
));
$node->start;
$node->safe_psql('postgres', 'CREATE EXTENSION pg_interlock');

sub ask { return $node->safe_psql('postgres', $_[0]); }

sub acquire
{
    my ($key, $ttl) = @_;
    return ask("SELECT token FROM interlock.acquire_lease('$key', '$ttl')");
}

sub standby_is
{
    my ($where) = @_;
    my $names = $where eq 'away' ? 'nobody' : '';
    ask("ALTER SYSTEM SET synchronous_standby_names = '$names'");
    $node->reload;
    $node->poll_query_until('postgres', 'SHOW synchronous_standby_names', $names) or die 'no reload';
    return;
}

# A call that waits for the standby.
sub begin
{
    my ($query) = @_;
    my $psql = $node->background_psql('postgres', on_error_stop => 0);
    my $pid = $psql->query_safe('SELECT pg_backend_pid()');
    $psql->query_until(qr/asked/, "\\echo asked\n$query;\n");
    $node->poll_query_until('postgres', "SELECT wait_event = 'SyncRep' FROM pg_stat_activity WHERE pid = $pid") or die 'no wait';
    return $psql;
}

sub answer
{
    my ($psql) = @_;
    my $answer = $psql->query('SELECT 1');
    eval { $psql->quit };
    return (split(/\n/, $answer))[0];
}

sub is_over
{
    my ($key) = @_;
    return $node->poll_query_until('postgres', "SELECT count(*) = 0 FROM interlock.leases WHERE key = '$key'");
}

# --- The whole ttl -----------------------------------------------------------------------------------

acquire('before', '1 min');
my $token = acquire('renewed', '5 min');
my %calls = (
    acquire_lease => "SELECT outcome || ' ' || expires_at FROM interlock.acquire_lease('one', '10 min')",
    acquire_leases => "SELECT outcome || ' ' || expires_at FROM interlock.acquire_leases('{two,three}', '10 min')",
    acquire_permit => "SELECT outcome || ' ' || expires_at FROM interlock.acquire_permit('four', 1, '10 min')",
    renew_lease => "SELECT 'acquired ' || interlock.renew_lease('renewed', $token, '10 min')",
);
my %keys = (acquire_lease => ['one'], acquire_leases => [ 'two', 'three' ], acquire_permit => ['four'], renew_lease => ['renewed']);
my %told;
for my $call (sort keys %calls)
{
    standby_is('away');
    my $session = begin($calls{$call});
    my $still_away = ask('SELECT clock_timestamp()');
    standby_is('there');
    my $answer = answer($session);
    $told{$call} = $1 if $answer =~ /^acquired (.*)/;
    is(ask("SELECT '$told{$call}' >= timestamptz '$still_away' + interval '10 min'"), 't', "LEA-5, $call: the time begins when it is durable");
    is(ask("SELECT count(*) FROM interlock.leases WHERE key = '$_' AND abs(extract(epoch FROM expires_at - '$told{$call}')) < 0.1"), 1,
        "$call: the view says so of $_") for @{ $keys{$call} };
}

# One that nobody asks for meanwhile
standby_is('away');
my $session = begin("SELECT outcome || ' ' || expires_at FROM interlock.acquire_lease('brief', '1500 ms')");
ok(is_over('brief'), 'it is over before it is durable');
my $still_away = ask('SELECT clock_timestamp()');
standby_is('there');
my ($outcome, $expires) = answer($session) =~ /^(\w+) (.*)/;
is($outcome . ask("SELECT '$expires' >= timestamptz '$still_away' + interval '1500 ms'"), 'acquiredt', 'LEA-5: it begins anew, as nobody took it');

# --- No lease ----------------------------------------------------------------------------------------

# One that somebody else asks for meanwhile
standby_is('away');
my $first = begin("SELECT outcome, holder FROM interlock.acquire_lease('taken', '1500 ms', holder => 'first')");
ok(is_over('taken'), 'it is over before it is durable');
my $second = begin("SELECT outcome, holder FROM interlock.acquire_lease('taken', '10 min', null, 'second')");
standby_is('there');
is(answer($second), 'acquired|second', 'the one that came when it was over has it');
like(answer($first), qr/^held/, 'LEA-5: and the other one is not told that it has');

# Renewed too late
$token = acquire('late', '2 s');
standby_is('away');
$first = begin("SELECT interlock.renew_lease('late', $token, '2 s') IS NULL");
ok(is_over('late'), 'the renewal is over before it is durable');
$second = begin("SELECT outcome FROM interlock.acquire_lease('late', '10 min', null)");
standby_is('there');
is(answer($second), 'acquired', 'another has it');
is(answer($first), 't', 'LEA-5: the renewal came too late');

# LEA-1: a client that goes while its lease becomes durable
standby_is('away');
$first = begin("SELECT interlock.acquire_lease('gone', '10 min')");
is(ask("SELECT count(*) FROM interlock.leases WHERE key = 'gone'"), 1, 'it is not to be had for others');
$first->{run}->signal('KILL');
eval { $first->quit };
standby_is('there');
ok(is_over('gone'), 'LEA-1: and given back when the client has gone');

# --- Calls that are canceled -----------------------------------------------------------------------------

sub records { return ask("SELECT count(*) FROM interlock_internal.lease_store WHERE position('$_[0]'::bytea IN content) > 0"); }

sub cancel
{
    my ($query) = @_;
    my $session = begin($query);
    ask("SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'");
    return answer($session);
}

my $size;
$token = acquire('stopped renewal', '1 s');
standby_is('away');
for my $i (1 .. 6)
{
    cancel("SELECT interlock.acquire_lease('stopped $i', '10 min')");
    cancel("SELECT interlock.acquire_permit('stopped permit', 9, '10 min')");
    cancel("SELECT interlock.acquire_leases('{stopped a $i,stopped b $i}', '10 min')");
    $size //= ask("SELECT pg_relation_size('interlock_internal.lease_store')");
}
is(records('stopped'), 0, 'SEC-4: calls that are canceled while the standby is away leave no record');
is(ask("SELECT pg_relation_size('interlock_internal.lease_store')"), $size, 'nor a larger table');
cancel("SELECT interlock.renew_lease('stopped renewal', $token, '10 min')");
is(records('stopped renewal'), 1, 'a renewal leaves one');
standby_is('there');
is(ask("SELECT interlock.release_lease('stopped renewal', $token)") . records('stopped renewal'), 't0', 'which goes with the lease');
is(ask("SELECT outcome FROM interlock.acquire_leases('{stopped 1,stopped permit,stopped a 1,stopped b 1}', '10 min')"), 'acquired', 'the keys are free');

# --- What is durable -----------------------------------------------------------------------------------

$node->stop('immediate');
$node->start;
# New leases have to wait for the grace.
is(ask("SELECT token IS NOT NULL FROM interlock.acquire_lease('after', '10 min', wait => '3 min')"), 't', 'there are leases again after a crash');
is(ask("SELECT string_agg(key, ' ' ORDER BY key) FROM interlock.leases WHERE key ~ '^stopped'"),
    'stopped 1 stopped a 1 stopped b 1 stopped permit', 'after a crash nobody has what was canceled');
for my $call (sort keys %calls)
{
    is(ask("SELECT count(*) FROM interlock.leases WHERE key = '$_' AND expires_at >= '$told{$call}'"), 1,
        "$call: after a crash $_ lasts at least as long as was answered") for @{ $keys{$call} };
}
$node->stop;
done_testing();
