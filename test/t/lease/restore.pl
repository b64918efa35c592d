# Leases from before a crash are restored when their database uses leases first, also into memory that expired ones of another
# database have taken: nobody need have looked for room since.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../lib";
use PostgreSQL::Test::Utils;
use Server;
use Test::More;

my $node = start_server("interlock.max_leases = 1024\ninterlock.lease_durable_after = '2 s'\ninterlock.sweeper = off\nmax_connections = 20");
$node->safe_psql('postgres', "CREATE ROLE $_") for 'ann', 'ben', 'cem';
for my $database ('shop', 'other')
{
    $node->safe_psql('postgres', "CREATE DATABASE $database");
    $node->safe_psql($database, 'CREATE EXTENSION pg_interlock');
}
sub acquire { return $node->safe_psql($_[0], "SET ROLE $_[1]; SELECT count(token) FROM generate_series(1, $_[2]) i, interlock.acquire_lease('$_[1]' || i, '$_[3]')"); }

is(acquire('shop', $_, 350, '1 h'), 350, "$_ has durable leases") for 'ann', 'ben';
$node->stop('immediate');
$node->start;
is(acquire('other', 'cem', 512, '1 us'), 512, 'another role takes half of the room for a moment');
is($node->safe_psql('shop', "SET ROLE cem; SELECT outcome FROM interlock.acquire_lease('ann1')"), 'held', 'the leases from before are restored');
is($node->safe_psql('shop', 'SELECT count(*) FROM interlock.leases'), 700, 'all of them');
unlike(slurp_file($node->logfile), qr/PANIC|TRAP|terminated by signal/, 'nothing crashed');
$node->stop;
done_testing();
