# The suites "seeds" and "anomalies": files of scenarios, each of which is one line of TAP. All files share a server.
# STORIES names files of the folders seeds and anomalies, such as seeds/002_state_marker; all by default.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/t/lib";
use PostgreSQL::Test::Utils;
use Server;
use Story;
use Test::More;

my @stories = split ' ', $ENV{STORIES} // '';
@stories = map { s{.*/(\w+/\w+)\.pl$}{$1}r } glob("$FindBin::RealBin/{seeds,anomalies}/*.pl") unless @stories;

# Sessions that a row has closed may still be there in the next ones.
my $node = start_server("max_connections = 200\nlog_statement = none");
for my $name (sort @stories)
{
    article($node, $name);
    do "$FindBin::RealBin/$name.pl" or die $@ || $!;
}
$node->stop;
done_testing();
