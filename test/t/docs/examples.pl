# DOC-1: examples/*.sql run in a fresh database each, as they stand, and print what the lines "-- => " below a statement say.
# An error that no such line announces fails the example.
# only with --long

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../lib";
use PostgreSQL::Test::Utils;
use Server;
use Test::More;

my $node = start_server();
my $readme = slurp_file('examples/README.md');
for my $file (glob 'examples/*')
{
    my $name = $file =~ s{.*/}{}r;
    like($readme, qr/\(\Q$name\E\)/, "examples/README.md has $name") if $name ne 'README.md';
    runs($file, $name =~ s/\.sql$//r) if $name =~ /\.sql$/;
}
$node->stop;
done_testing();

# runs(FILE, DATABASE): the marks that take the place of the lines cut what is printed into the answers to each.
sub runs
{
    my ($file, $database) = @_;
    my ($sql, @announced) = ('');
    for my $line (split /^/, slurp_file($file))
    {
        my ($answer) = $line =~ /^-- => (.*\n)/;
        if (!defined $answer) { $sql .= $line; next; }
        if ($sql !~ /^\\echo mark \d+\n\z/m) { $sql .= "\\echo mark @{[ scalar @announced ]}\n"; push @announced, ''; }
        $announced[-1] .= $answer;
    }
    $node->safe_psql('postgres', qq(CREATE DATABASE "$database"));
    my $printed = '';
    IPC::Run::run([ 'psql', '-XAt', '-F', ' | ', '-d', $node->connstr($database) ], '<', \$sql, '>', \$printed, '2>&1');
    my @answers = split /^mark \d+\n/m, $printed, -1;
    is(scalar @answers, @announced + 1, "$file runs to its end") or return;
    for my $i (0 .. $#answers)
    {
        my ($got, $wanted) = (plain($answers[$i]), plain($announced[$i] // ''));
        my $answer = last_lines($got, $wanted);
        is($answer, $wanted, "$file prints what answer $i says") if length $wanted;
        unlike(substr($got, 0, length($got) - length($answer)), qr/^(?:ERROR|FATAL|WARNING)/m, "$file has no error before answer $i");
    }
    return;
}

# What is compared: no blanks around values, no lines that explain an error.
sub plain
{
    my ($text) = @_;
    $text =~ s/^(?:DETAIL|HINT|CONTEXT|NOTICE|LINE \d+|QUERY):.*\n//mg;
    $text =~ s/^ *\^\n//mg;
    $text =~ s/[ \t]*\|[ \t]*/|/g;
    return $text =~ s/^\s*\n//mgr;
}

# As many of its lines as the other text has.
sub last_lines
{
    my ($text, $other) = @_;
    my @lines = split /^/, $text;
    my $count = () = $other =~ /\n/g;
    return join '', @lines > $count ? @lines[ -$count .. -1 ] : @lines;
}
