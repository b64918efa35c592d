# R12: after a planned switchover the grace ends when the last lease of the former primary has expired, once that server has
# confirmed its stop. It confirms nothing that is not true, and nothing else ends a grace.

use strict;
use warnings;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my @nodes = map { PostgreSQL::Test::Cluster->new($_) } 'a', 'b';
my ($primary, $standby) = @nodes;
$primary->init(allows_streaming => 1);
$primary->append_conf('postgresql.conf', qq(
shared_preload_libraries = 'pg_interlock'
interlock.lease_durable_after = '10 min'
interlock.sweeper = off
));
$primary->start;
$primary->safe_psql('postgres', 'CREATE EXTENSION pg_interlock');
$primary->safe_psql('postgres', 'CREATE ROLE somebody; CREATE ROLE operator');
$primary->safe_psql('postgres', q(SELECT interlock.grant_access('operator', 'operator')));
$primary->backup('base');
$standby->init_from_backup($primary, 'base', has_streaming => 1);
$standby->start;
$_->append_conf('postgresql.conf', "primary_conninfo = '" . ($_ == $primary ? $standby : $primary)->connstr . "'") for @nodes;

sub ask { return $primary->safe_psql('postgres', join(";\n", @_)); }

# On any of the two: its answer, or the SQLSTATE of its error.
sub answer
{
    my ($node, $sql) = @_;
    my ($status, $out, $err) = $node->psql('postgres', "\\set VERBOSITY sqlstate\n$sql");
    return $err =~ /ERROR:  (\w+)/ ? $1 : $out;
}

sub outcome { return ask("SELECT outcome FROM interlock.acquire_lease('$_[0]', '5 min', holder => 'bert')"); }
sub confirmation { return answer($standby, 'SELECT run, time_left FROM interlock.confirm_stop()'); }

sub end_grace
{
    my ($run, $left, $reason) = @_;
    return answer($primary, "SELECT interlock.end_grace('" . ($reason // 'switchover') . "', $run, '$left') IS NOT NULL");
}

# Stops the primary, promotes the standby, and starts the former primary as a standby.
sub switch_over
{
    my ($how) = @_;
    $primary->wait_for_catchup($standby);
    $primary->stop($how // 'fast');
    ($primary, $standby) = ($standby, $primary);
    $primary->promote;
    follow();
}

sub follow
{
    $standby->set_standby_mode;
    $standby->start;
}

# The function has to be asked as soon as the server answers. Before it is consistent it refuses connections.
sub confirmed
{
    my ($name) = @_;
    my ($run, $left) = split /\|/, confirmation();
    like($run, qr/^-?\d+$/, "$name: the former primary confirms");
    return ($run, $left);
}

# --- Nothing is held -----------------------------------------------------------------------------------

my $token = ask(q(SELECT token FROM interlock.acquire_lease('long', '1 hour', holder => 'lena')));
ask(q(SELECT interlock.release_lease('k', token) FROM interlock.acquire_lease('k')));
is(answer($primary, 'SELECT * FROM interlock.confirm_stop()'), '55000', 'a primary confirms nothing');
is(confirmation(), '|', 'nor does a standby that was no primary');
is(end_grace(1, '0'), '55000', 'no grace: nothing to end');
switch_over();
is(outcome('k'), 'recovering', 'the new primary has a grace');
my ($run, $left) = confirmed('nothing held');
is($left, '00:00:00', 'that the last lease is over; the new primary has the record of the long one');
is(answer($standby, "SELECT interlock.end_grace('x', $run, '0')"), '25006', 'a standby has no grace');
is(end_grace($run + 1, $left), '55000', 'another run ends nothing');
is(outcome('k'), 'recovering', 'as shown');
is(answer($primary, "SET ROLE somebody; SELECT interlock.end_grace('x', $run, '0')"), '42501', 'it needs EXECUTE');
is(answer($standby, 'SET ROLE somebody; SELECT * FROM interlock.confirm_stop()'), '42501', 'both do');
my $log = -s $primary->logfile;
is(answer($primary, "SET ROLE operator; SELECT interlock.end_grace('planned', $run, '$left') IS NOT NULL"), 't', 'operators have it');
is(outcome('k'), 'acquired', 'nothing held: the grace is over at once');
is(outcome('long'), 'held', 'the long lease is held');
is(ask("SELECT interlock.renew_lease('long', $token) IS NOT NULL"), 't', 'its holder renews it');
is(ask(q(SELECT role, kind, action, reason, after ->> 'time_left' FROM interlock.audit WHERE action = 'end_grace')),
    'operator|force|end_grace|planned|00:00:00', 'audited');
like(slurp_file($primary->logfile, $log), qr/the grace period of leases ends at .*: planned/, 'and in the log');
is(end_grace($run, $left), '55000', 'it is over');

# A crash of the new primary: it has granted leases, so that the confirmation is void.
$primary->stop('immediate');
$primary->start;
is(end_grace($run, $left), '55000', 'after a crash the former primary cannot end the grace');
is(outcome('k'), 'recovering', 'after a crash there is one');

# --- A stop in the grace -------------------------------------------------------------------------------

switch_over();
is(confirmation(), '|', 'a primary that was stopped in its grace confirms nothing');
is(outcome('k'), 'recovering', 'so there is a whole grace');
$_->append_conf('postgresql.conf', "interlock.lease_recovery = 'immediate'") for @nodes;
$primary->stop('immediate');
$primary->start;
is(outcome('k2'), 'acquired', 'cut short for this test');
ask('CHECKPOINT');
$_->append_conf('postgresql.conf', "interlock.lease_recovery = 'safe'") for @nodes;
$_->reload for @nodes;

# --- A lease is held -----------------------------------------------------------------------------------

ask(q(SELECT interlock.break_lease(key, 'test') FROM interlock.leases));
my ($held, $expires) = split /\|/, ask(q(SELECT token, expires_at FROM interlock.acquire_lease('h', '12 s', holder => 'anna')));
my $twin = ask(q(SELECT token FROM interlock.acquire_lease('twin', '12 s', holder => 'anna')));
switch_over();
is(ask("SELECT interlock.renew_lease('twin', $twin, '10 min') IS NOT NULL"), 't', 'held: a holder renews in the grace');
my $waiter = $primary->background_psql('postgres');
$waiter->query_until(qr/started/, "\\echo started\nSELECT outcome, clock_timestamp() >= '$expires' FROM interlock.acquire_lease('h', wait => '5 min');\n");
$primary->poll_query_until('postgres', 'SELECT count(*) = 1 FROM interlock.lease_waiters') or die 'nobody waits';
($run, $left) = confirmed('held');
is(ask("SELECT '$left'::interval BETWEEN '0 s' AND '12 s'"), 't', 'how long it lasts');
is(end_grace($run, $left), 't', 'held: the grace is shortened');
is(end_grace($run, '9 min'), 't', 'and not made longer');
is($waiter->query('SELECT 1') =~ s/\n/ /gr, 'acquired|t 1', 'held: a waiter is served when the lease is over, and not before');
$waiter->quit;
is(outcome('twin'), 'held', 'held: what was renewed in the grace is held');
is(outcome('other'), 'acquired', 'held: other leases are granted');

# --- The new primary crashes ----------------------------------------------------------------------------

sub crash { $primary->stop('immediate'); $primary->start; }

ask(q(SELECT interlock.break_lease(key, 'test') FROM interlock.leases));
switch_over();
crash();
($run, $left) = confirmed('crash before the first use');
is(end_grace($run, $left), 't', 'crash before the first use: it ends the grace');
crash();
is(outcome('c'), 'recovering', 'crash before the first grant: there is a grace');
is(end_grace($run, $left), '55000', 'crash before the first grant: nobody confirms for this run');
$_->append_conf('postgresql.conf', "interlock.lease_recovery = 'immediate'") for @nodes;
crash();
is(outcome('c'), 'acquired', 'cut short for this test');
$_->append_conf('postgresql.conf', "interlock.lease_recovery = 'safe'") for @nodes;
$_->reload for @nodes;
switch_over();
is(outcome('c2'), 'recovering', 'crash after the first use');
($run, $left) = confirmed('crash after the first use');
crash();
is(end_grace($run, $left), '55000', 'crash after the first use: holders may have renewed before');
is(outcome('c2'), 'recovering', 'crash after the first use: there is a grace');
is(confirmation() =~ s/\|.*//r, $run, 'a standby confirms as often as it is asked');
$standby->restart;
is(confirmation(), '|', 'and not after a restart');

# --- What the former primary must not confirm ----------------------------------------------------------

switch_over('immediate');
is(confirmation(), '|', 'a primary that was not stopped cleanly confirms nothing');
$standby->stop;
unlink $standby->data_dir . '/standby.signal';
unlink $primary->data_dir . '/standby.signal';

# The former primary starts again as a primary, grants, and dies. The standby has not seen that.
$primary->append_conf('postgresql.conf', "interlock.lease_recovery = 'immediate'");
$primary->stop('immediate');
$primary->start;
is(outcome('used'), 'acquired', 'cut short for this test');
ask('CHECKPOINT');
$standby = PostgreSQL::Test::Cluster->new('c');
$primary->backup('again');
$standby->init_from_backup($primary, 'again', has_streaming => 1);
$_->append_conf('postgresql.conf', "interlock.lease_recovery = 'safe'") for $primary, $standby;
$primary->reload;
$standby->start;
$primary->wait_for_catchup($standby);
$primary->stop('fast');
$standby->stop('fast');
$primary->start;
is(outcome('unseen'), 'acquired', 'the former primary grants once more,');
$primary->stop('immediate');
($primary, $standby) = ($standby, $primary);
$primary->start;
$primary->promote;
$standby->append_conf('postgresql.conf', "primary_conninfo = '" . $primary->connstr . "'");
follow();
is(confirmation(), '|', 'and confirms nothing as a standby');
is(outcome('unseen'), 'recovering', 'so that lease has one holder');

$_->stop for $primary, $standby;
unlike(slurp_file($_->logfile), qr/PANIC|TRAP|terminated by signal/, $_->name . ': nothing crashed by itself') for $primary, $standby;
done_testing();
