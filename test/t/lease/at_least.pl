# LEA-12: what at_least promises after a release holds over crashes and restarts, for short and long leases.
# LEA-4, LEA-9: after a crash a lease is resumed, and has its holder again.
# only with --long

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../lib";
use PostgreSQL::Test::Utils;
use Server;
use Test::More;

my $node = start_server("interlock.sweeper = off\ninterlock.lease_durable_after = '10 s'\nrestart_after_crash = on");

sub ask { return $node->safe_psql('postgres', $_[0]); }

sub acquire
{
    my ($key, $arguments) = @_;
    return ask("SELECT token FROM interlock.acquire_lease('$key', $arguments)");
}

sub release { return ask("SELECT interlock.release_lease('$_[0]', $_[1])"); }

# Outcome and holder of one who asks now
sub outcome { return ask("SELECT concat_ws('|', outcome, holder) FROM interlock.acquire_lease('$_[0]', '1 s')"); }

sub crash
{
    my ($postmaster) = slurp_file($node->data_dir . '/postmaster.pid') =~ /^(\d+)/;
    $node->kill9;
    for (1 .. 10 * $PostgreSQL::Test::Utils::timeout_default) { last unless kill 0, $postmaster; select(undef, undef, undef, 0.1); }
    $node->start;
    return;
}

# --- A short one ----------------------------------------------------------------------------------------------------------

my $token = acquire('short', "'9 s', at_least => '9 s', holder => 'node 1'");
my $until = ask("SELECT expires_at FROM interlock.leases WHERE key = 'short'");
is(release('short', $token), 't', 'a short lease is released');
crash();
isnt(outcome('short'), 'acquired|lease/at_least.pl', 'LEA-12: it stays after a crash') if ask("SELECT clock_timestamp() < '$until'") eq 't';
is(ask(qq(SELECT outcome FROM interlock.acquire_lease('short', '1 min', wait => '10 min'))), 'acquired', 'it is granted');
is(ask("SELECT since >= '$until' FROM interlock.leases WHERE key = 'short'"), 't', 'LEA-12: but not before at_least is over');

# --- Long ones ------------------------------------------------------------------------------------------------------------

# The time from the grant to the end
my $stays = q(SELECT released, expires_at - since BETWEEN '1 h' AND '90 min' FROM interlock.leases WHERE key = '%s');

my %token = map { $_ => acquire($_, "'2 h', at_least => '1 h', holder => 'node 1'") } qw(released renewed held other);
is(release('released', $token{released}), 't', 'a long lease is released');
is(ask(sprintf $stays, 'released'), 't|t', 'LEA-12: it stays for at_least');
isnt(ask("SELECT interlock.renew_lease('renewed', $token{renewed}, '5 h')"), '', 'another one is renewed');
my $short = acquire('short 2', "'9 s', holder => 'worker 1'");
crash();
is(ask("SELECT interlock.renew_lease('short 2', $short, '1 min', 'worker 1') IS NOT NULL"), 't', 'a holder reclaims its lease');
is(outcome('short 2'), 'held|worker 1', 'LEA-9: others see that it is held, and by which holder');
is(outcome('new'), 'recovering', 'of others they see that the server recovers');
is(outcome('released'), 'held|node 1', 'LEA-12: the released lease stays after a crash');
is(ask(sprintf $stays, 'released'), 't|t', 'as long as before');
is(ask("SELECT interlock.renew_lease('released', $token{released}) IS NULL"), 't', 'and its token renews nothing');
is(ask("SELECT outcome, token = $token{held} FROM interlock.acquire_lease('held', '2 h', holder => 'node 1', resume => true)"), 'resumed|t', 'LEA-4: a long lease is resumed after a crash');
is(ask("SELECT released, expires_at - since > '4 h' FROM interlock.leases WHERE key = 'renewed'"), 'f|t', 'one that was renewed lasts as long as that');
is(release($_, $token{$_}), 't', "$_: released after the crash") for qw(renewed held);
is(ask(sprintf $stays, $_), 't|t', "LEA-12, $_: it stays for at_least, which the crash did not change") for qw(renewed held);
$node->poll_query_until('postgres', q(SELECT outcome = 'acquired' FROM interlock.acquire_lease('end of grace', '1 ms'))) or die 'the grace does not end';

# --- A clean restart ------------------------------------------------------------------------------------------------------

$node->restart;
is(outcome('released'), 'held|node 1', 'LEA-12: it stays after a restart');
is(ask(sprintf $stays, $_), 't|t', "$_: as long as before") for qw(released renewed held);
is(release('other', $token{other}), 't', 'one that is released after the restart');
is(ask(sprintf $stays, 'other'), 't|t', 'LEA-12: stays, too');
ask("SELECT interlock.break_lease('other', 'test')");
crash();
is(ask("SELECT count(*) FROM interlock.leases WHERE key = 'other'"), 0, 'one that was broken does not');
is(ask("SELECT count(*) FROM interlock.leases WHERE released"), 3, 'all others do');

$node->stop;
done_testing();
