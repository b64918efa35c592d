# The examples of the README print what the README says, and those in examples/ run.

use strict;
use warnings;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('main');
$node->init;
$node->append_conf('postgresql.conf', "shared_preload_libraries = 'pg_interlock'");
$node->start;

my $text = slurp_file('README.md');
my $examples = 0;
# A block of SQL, and the output that may follow it: that of its last statement.
# One pipe for both, else what psql says to stderr may come last.
while ($text =~ /^```sql\n(.*?)^```\n(?:```output\n(.*?)^```\n)?/msg)
{
    my ($sql, $expected) = ($1, $2);
    my $printed = '';
    IPC::Run::run([ 'psql', '-Xq', '-d', $node->connstr('postgres') ], '<', \$sql, '>', \$printed, '2>&1');
    if (defined $expected)
    {
        $examples++;
        is(substr($printed, -length $expected), $expected, "example $examples");
    }
    else
    {
        unlike($printed, qr/ERROR/, 'an example without output runs');
    }
}
cmp_ok($examples, '>=', 8, 'there are examples');

for my $file (glob 'examples/*.sql')
{
    $node->command_ok([ 'psql', '-Xq', '-v', 'ON_ERROR_STOP=1', '-d', $node->connstr('postgres'), '-f', $file ], $file);
}
$node->stop;
done_testing();
