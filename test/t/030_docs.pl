# The examples of README.md and docs/ print what the pages say, and those in examples/ run. Each page has a database of its own.

use strict;
use warnings;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('main');
$node->init;
$node->append_conf('postgresql.conf', "shared_preload_libraries = 'pg_interlock'");
$node->start;

my %examples;
for my $page ('README.md', glob('docs/*.md docs/*/*.md'))
{
    $examples{$page} = run_examples($page);
}
cmp_ok($examples{'README.md'}, '>=', 3, 'there are examples in README.md');

$node->safe_psql('postgres', 'CREATE EXTENSION pg_interlock');
for my $file (glob 'examples/*.sql')
{
    $node->command_ok([ 'psql', '-Xq', '-v', 'ON_ERROR_STOP=1', '-d', $node->connstr('postgres'), '-f', $file ], $file);
}
$node->stop;
done_testing();

# Runs the blocks of SQL of a page, each in a session of its own. The output that may follow a block is that of its last
# statement; without one the block may not fail. What the reader need not see is in comments that begin with <!--sql.
sub run_examples
{
    my ($page) = @_;
    my $text = slurp_file($page);
    return 0 if $text !~ /^(?:```|<!--)sql$/m;

    my $database = lc($page) =~ s/\.md$//r =~ s/\W/_/gr;
    $node->safe_psql('postgres', qq(CREATE DATABASE "$database"));
    $node->safe_psql($database, 'CREATE EXTENSION pg_interlock') if $page ne 'README.md';
    my $compared = 0;
    while ($text =~ /^(?:```sql\n(.*?)^```\n(?:```output\n(.*?)^```\n)?|<!--sql\n(.*?)^-->$)/msg)
    {
        my ($sql, $expected) = ($1 // $3, $2);
        my $line = 1 + (substr($text, 0, $-[0]) =~ tr/\n//);
        # One pipe for both, else what psql says to stderr may come last.
        my $printed = '';
        IPC::Run::run([ 'psql', '-Xq', '-d', $node->connstr($database) ], '<', \$sql, '>', \$printed, '2>&1');
        if (defined $expected)
        {
            $compared++;
            my ($got, $wanted) = (trimmed($printed), trimmed($expected));
            is(length $got > length $wanted ? substr($got, -length $wanted) : $got, $wanted, "$page:$line prints what it says");
        }
        else
        {
            unlike($printed, qr/ERROR/, "$page:$line runs");
        }
    }
    return $compared;
}

# Blanks at the ends of lines, and blank lines at the end, need not be in a page.
sub trimmed
{
    my ($text) = @_;
    $text =~ s/[ \t]+$//mg;
    return $text =~ s/\s+\z/\n/r;
}
