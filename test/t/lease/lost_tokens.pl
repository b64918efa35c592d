# A role that loses very many leases of its own does not keep the others from theirs after a crash: what is lost is noted by
# role, too (R4 in docs/internals/leases.md). Which roles share a note depends on their oids: there are three, and one is enough.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../lib";
use PostgreSQL::Test::Utils;
use Server;
use Test::More;

my $node = start_server("interlock.sweeper = off\ninterlock.lease_durable_after = '10 min'");
$node->safe_psql('postgres', 'CREATE ROLE loser LOGIN');

sub as
{
    my ($role, $sql) = @_;
    return $node->safe_psql('postgres', $sql, extra_params => [ '-U', $role ]);
}

my @roles = map { "holder_$_" } 1 .. 3;
my %token;
for my $role (@roles)
{
    as('postgres', "CREATE ROLE $role LOGIN");
    $token{$role} = as($role, "SELECT token FROM interlock.acquire_lease('$role', '5 min')");
}

# Expired leases that are released are lost; what is lost is durable when something is granted after it in the same one of the 64
# partitions
as('loser', q(
    CREATE TEMP TABLE lost AS SELECT n, (SELECT token FROM interlock.acquire_lease('lost ' || n, '1 ms')) AS token FROM generate_series(1, 6000) n;
    SELECT pg_sleep(0.01);
    SELECT count(*) FILTER (WHERE interlock.release_lease('lost ' || n, token)) FROM lost;
));
my $expired = as('loser', "SELECT token FROM interlock.acquire_lease('expired', '1 ms')");
as('loser', "SELECT pg_sleep(0.01); SELECT interlock.release_lease('expired', $expired)");
as('loser', "SELECT count(token) FROM generate_series(1, 3000) n, interlock.acquire_lease('after ' || n, '1 ms')");
$node->stop('immediate');
$node->start;

sub renew { my ($role, $key, $token) = @_; return as($role, "SELECT interlock.renew_lease('$key', $token) IS NOT NULL"); }
is(renew('loser', 'expired', $expired), 'f', 'what a role has lost it cannot reclaim');
my $renewed = grep { renew($_, $_, $token{$_}) eq 't' } @roles;
cmp_ok($renewed, '>', 0, "others can: $renewed of 3");

# A store whose floors have an earlier form is refused
my $store = $node->data_dir . '/' . as('postgres', "SELECT pg_relation_filepath('interlock_internal.lease_store')");
my $has_checksums = as('postgres', 'SHOW data_checksums') eq 'on';
$node->stop;
SKIP:
{
    skip 'pages with checksums', 1 if $has_checksums;
    my $bytes = slurp_file($store);
    open my $file, '+<:raw', $store or die "$store: $!";
    seek $file, index($bytes, pack('L', 0x494c5334)), 0;
    print $file pack('L', 0x494c5333);
    close $file;
    $node->start;
    my (undef, undef, $error) = $node->psql('postgres', "\\set VERBOSITY verbose\nSELECT interlock.acquire_lease('k')");
    like($error, qr/ERROR:  XX001: .*HINT:  Drop and create the extension/s, 'a store of an earlier form is refused');
    $node->stop;
}
done_testing();
