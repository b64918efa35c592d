# The system's clock is set back and forth by an hour while leases are held, and the machine is started anew: no
# lease dies of it, and none is granted twice.
# only with --long

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../lib";
use Clock;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $clock = Clock->new;
my $node = PostgreSQL::Test::Cluster->new('main');
$node->init;
$node->append_conf('postgresql.conf', q(
shared_preload_libraries = 'pg_interlock'
restart_after_crash = on
interlock.lease_durable_after = '15 s'
interlock.sweeper = off
));

sub start
{
    local @ENV{ $clock->names } = $clock->values;
    $node->start;
}

sub ask { return $node->safe_psql('postgres', $_[0]); }

sub acquire
{
    my ($key, $arguments) = @_;
    return ask("SELECT token FROM interlock.acquire_lease('$key'" . ($arguments ? ", $arguments" : '') . ')');
}

sub outcome { return ask("SELECT outcome FROM interlock.acquire_lease('$_[0]', '100 ms')"); }
sub renew { return ask("SELECT interlock.renew_lease('$_[0]', $_[1], '$_[2]') IS NOT NULL"); }
sub release { return ask("SELECT interlock.release_lease('$_[0]', $_[1])"); }
sub is_held { return ($node->psql('postgres', "SELECT interlock.assert_lease('$_[0]', $_[1])"))[0] == 0; }
sub hours { return ask('SELECT round(extract(epoch FROM clock_timestamp()) / 3600 - ' . time . ' / 3600.0)'); }

# Whether what is shown of a lease agrees with the clock of now
sub is_shown
{
    my ($key, $least, $most) = @_;
    return ask("SELECT expires_at - clock_timestamp() BETWEEN '$least' AND '$most' FROM interlock.leases WHERE key = '$key'");
}

start();
ask('CREATE EXTENSION pg_interlock');
is(hours(), 0, 'the clock is right');

# --- While the server runs ---------------------------------------------------------------------------

for my $hour (1, -1)
{
    my $token = acquire('held', "'15 s'");
    my $long = acquire('long', "'20 min'");
    acquire("brief $hour", "'1 s'");
    my $waiter = $node->background_psql('postgres', on_error_stop => 0);
    my $early = $waiter->query_until(qr/asked\n/, "\\echo asked\nSELECT outcome FROM interlock.acquire_lease('brief $hour', '100 ms', wait => '1 min');\n");
    $clock->set($hour * 3600);
    is(hours(), $hour, "the clock is set by $hour hours");
    is(outcome('held') . outcome('long'), 'held' x 2, "$hour h: nothing is granted twice");
    is(is_shown('held', '0', '18 s') . is_shown('long', '18 min', '21 min'), 'tt', "$hour h: what is shown goes by the new clock");
    ok(is_held('held', $token) && is_held('long', $long), "$hour h: the holders assert");
    is(renew('held', $token, '15 s') . renew('long', $long, '20 min'), 'tt', "$hour h: and renew");
    like($early . $waiter->query_safe('SELECT 1'), qr/^asked\nacquired\n1$/, "$hour h: what is over is over after its time: the waiter gets it");
    is(release('held', $token) . release('long', $long), 'tt', "$hour h: releases");
    $waiter->quit;
    $clock->set(0);
}

# --- While it is down --------------------------------------------------------------------------------

my $largest = 0;
for my $how ('fast', 'immediate')
{
    for my $hour (1, -1)
    {
        for my $reboots (0, 1)
        {
            my $name = "$how stop, $hour h" . ($reboots ? ', reboot' : '');
            my $token = acquire('held', "'15 s', wait => '1 min'");
            my $long = acquire('long', "'20 min'");
            ok($token > $largest, "$name: tokens grow");
            $node->stop($how);
            $clock->set($hour * 3600);
            $clock->reboot if $reboots;
            start();
            is(hours(), $hour, "$name: the clock is set");
            is(outcome('held'), $how eq 'fast' ? 'held' : 'recovering', "$name: nothing is granted twice");
            is(renew('held', $token, '15 s') . renew('long', $long, '20 min'), 'tt', "$name: the holders renew");
            ok(is_held('held', $token) && is_held('long', $long), "$name: and assert");
            is(is_shown('held', '0', '16 s') . is_shown('long', '18 min', '21 min'), 'tt', "$name: what is shown goes by the new clock");
            is(release('held', $token) . release('long', $long), 'tt', "$name: releases");
            $largest = acquire('next', "'100 ms', wait => '1 min'");
            cmp_ok($largest, '>', $long, "$name: what is new is granted, in the end");
            $clock->set(0);
        }
    }
}
unlike(slurp_file($node->logfile), qr/PANIC|TRAP|terminated by signal/, 'nothing crashed');
$node->stop;
done_testing();
