# The suite "seeds": what readers of the articles behind this project type, in their form, over their tables and numbers. Each row
# of their list is one line of TAP with its number. All articles share a server.
# SEEDS names files of the folder seeds, without .pl; all by default.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/seeds/lib", "$FindBin::RealBin/t/lib";
use PostgreSQL::Test::Utils;
use Server;
use Story;
use Test::More;

my @articles = split ' ', $ENV{SEEDS} // '';
@articles = map { s{.*/}{}r =~ s/\.pl$//r } glob("$FindBin::RealBin/seeds/*.pl") unless @articles;

# Sessions that a row has closed may still be there in the next ones.
my $node = start_server("max_connections = 200\nlog_statement = none");
for my $name (sort @articles)
{
    article($node, $name);
    do "$FindBin::RealBin/seeds/$name.pl" or die $@ || $!;
}
$node->stop;
done_testing();
