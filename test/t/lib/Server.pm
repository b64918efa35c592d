# A server of its own for a TAP test. The test says where this is:
#
#   use FindBin;
#   use lib "$FindBin::RealBin/../lib";
#   use Server;

package Server;

use strict;
use warnings;
use Exporter 'import';
use PostgreSQL::Test::Cluster;

our @EXPORT = qw(start_server poll_over_crash);

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

# poll_over_crash(NODE, SQL): as poll_query_until in database "postgres", also while the server refuses connections after a
# crash. A psql that is refused need not read its input, and to write it fails then.
sub poll_over_crash
{
    my ($node, $sql) = @_;
    for (1 .. 100)
    {
        my $answer = eval { $node->poll_query_until('postgres', $sql) };
        return $answer if defined $answer;
    }
    return 0;
}

1;
