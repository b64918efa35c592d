# A server of its own for a TAP test. The test says where this is:
#
#   use FindBin;
#   use lib "$FindBin::RealBin/lib";
#   use Server;

package Server;

use strict;
use warnings;
use Exporter 'import';
use PostgreSQL::Test::Cluster;

our @EXPORT = qw(start_server);

# start_server(SETTINGS): runs, with the extension preloaded and created in database "postgres".
sub start_server
{
    my ($settings) = @_;
    my $node = PostgreSQL::Test::Cluster->new('main');
    $node->init;
    $node->append_conf('postgresql.conf', join("\n", "shared_preload_libraries = 'pg_interlock'", $settings // ''));
    $node->start;
    $node->safe_psql('postgres', 'CREATE EXTENSION pg_interlock');
    return $node;
}

1;
