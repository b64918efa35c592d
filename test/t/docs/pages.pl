# The examples of README.md and docs/ print what the pages say. Each page has a database of its own.
# Blocks of bash run where the sources are copied to, with the page's database in the environment.
# only with --long

use strict;
use warnings;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('main');
$node->init;
$node->append_conf('postgresql.conf', "shared_preload_libraries = 'pg_interlock'");
$node->start;

# The role of the reader's application
$node->safe_psql('postgres', 'CREATE ROLE app LOGIN');

my %examples;
# The runbook needs its incidents: overview/runbook_prometheus.pl.
for my $page ('README.md', grep { !m{/runbook\.md$} } glob('docs/*.md docs/*/*.md'))
{
    $examples{$page} = run_examples($page);
}
cmp_ok($examples{'README.md'}, '>=', 3, 'there are examples in README.md');

$node->stop;
done_testing();

# Runs the blocks of SQL of a page, each in a session of its own, and of bash. The output that may follow a block is that of
# its last statement; without one the block may not fail. What the reader need not see is in comments that begin with <!--sql.
# A block of bash after <!--until QUERY--> is another terminal: it runs on when the query is true, until the page ends.
sub run_examples
{
    my ($page) = @_;
    my $text = slurp_file($page);
    return 0 if $text !~ /^(?:```|<!--)sql$/m;

    my $database = lc($page) =~ s/\.md$//r =~ s/\W/_/gr;
    $node->safe_psql('postgres', qq(CREATE DATABASE "$database"));
    $node->safe_psql($database, 'CREATE EXTENSION pg_interlock') if $page ne 'README.md';
    local @ENV{qw(PGHOST PGPORT PGDATABASE)} = ($node->host, $node->port, $database);
    my $compared = 0;
    my @terminals;
    while ($text =~ /^(?:(?:<!--until (.*?)-->\n)?```(sql|bash)\n(.*?)^```\n(?:```output\n(.*?)^```\n)?|<!--sql\n(.*?)^-->$)/msg)
    {
        my ($until, $language, $code, $expected) = ($1, $2 // 'sql', $3 // $5, $4);
        my $line = 1 + (substr($text, 0, $-[0]) =~ tr/\n//);
        if (defined $until)
        {
            push @terminals, start_terminal($code);
            ok($node->poll_query_until($database, $until), "$page:$line runs on");
            next;
        }
        # One pipe for both, else what psql says to stderr may come last.
        my $printed = '';
        IPC::Run::run($language eq 'sql' ? [ 'psql', '-Xq' ] : [ 'bash', '-s' ], '<', \$code, '>', \$printed, '2>&1');
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
    IPC::Run::signal($_, 'TERM') for @terminals;
    IPC::Run::finish($_) for @terminals;
    return $compared;
}

sub start_terminal { my ($code) = @_; return IPC::Run::start([ 'bash', '-c', "exec $code" ], '<', \undef, '>', '/dev/null', '2>&1'); }

# Blanks at the ends of lines, and blank lines at the end, need not be in a page.
sub trimmed
{
    my ($text) = @_;
    $text =~ s/[ \t]+$//mg;
    return $text =~ s/\s+\z/\n/r;
}
