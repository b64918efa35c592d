# What the classes of a study are told with: each is a line of TAP, and a row of a table in docs/guarantees.md.
#
#   anomaly 'A voucher is used twice', loses => 'READ COMMITTED, REPEATABLE READ',
#       tables  => q{CREATE TABLE ...},
#       guard   => q{SELECT interlock...},                     # what the owner runs once
#       lost    => q{SELECT count(*) > 1 FROM ...},            # whether the rule of the application is broken
#       without => sub { my ($key, $ann, $ben) = @_; ... },    # the statements of the application
#       with    => sub { my ($key, $ann, $ben) = @_; ... },    # the guarded ones; returns the loser's answer
#       refused => qr/^(IL001|40001)$/;
#
# Both run at each isolation level. The first breaks the rule at those of "loses" ("every level", or names and commas) and at no
# other; the second at none. $key is a name of its own for what the server remembers by name.

package Anomaly;

use strict;
use warnings;
use Exporter 'import';
use FindBin;
use PostgreSQL::Test::Utils;
use Story;
use Test::More;

our @EXPORT = qw(anomaly limit heading_is_tested);

my @levels = ('READ COMMITTED', 'REPEATABLE READ', 'SERIALIZABLE');
my $page = slurp_file("$FindBin::RealBin/../docs/guarantees.md");
my (%tested, $keys);

sub anomaly
{
    my ($name, %told) = @_;
    $tested{$name} = $told{loses};
    row "$name:", "lost at $told{loses}, and not when guarded", sub {
        for my $level (@levels)
        {
            empty($told{tables});
            $told{without}->(at($level));
            is_lost($level, %told);

            empty($told{tables}, $told{guard});
            like($told{with}->(at($level)), $told{refused}, "$level, guarded: refused");
            is(given($told{lost}), 'f', "$level, guarded: the rule holds");
        }
    };
    return;
}

# limit NAME, ...: what is lost with the guard, too; "without" is left out, and "with" returns nothing that counts.
sub limit
{
    my ($name, %told) = @_;
    $tested{$name} = $told{loses};
    row "$name:", "lost at $told{loses}, also when guarded", sub {
        for my $level (@levels)
        {
            empty($told{tables}, $told{guard});
            $told{with}->(at($level));
            is_lost($level, %told);
        }
    };
    return;
}

# heading_is_tested(HEADING): the rows of the page's table below it are what was tested since the last one.
sub heading_is_tested
{
    my ($heading) = @_;
    my ($section) = $page =~ /^## \Q$heading\E\n(.*?)(?=^## |\z)/ms;
    my %rows;
    for my $line (($section // '') =~ /^(\| .*)$/mg)
    {
        my ($name, @cells) = grep { length } split / *\| */, $line;
        my ($loses) = grep { /^(every level|[A-Z, ]+)$/ } @cells;
        $rows{$name} = $loses if defined $loses;
    }
    is_deeply(\%rows, \%tested, "docs/guarantees.md, $heading, has each with its level");
    %tested = ();
    return;
}

sub is_lost
{
    my ($level, %told) = @_;
    my $loses = $told{loses} eq 'every level' || grep { $_ eq $level } split /, /, $told{loses};
    return is(given($told{lost}), $loses ? 't' : 'f', "$level: lost at $told{loses}");
}

# These statements in an empty schema.
sub empty
{
    given('DROP SCHEMA public CASCADE; CREATE SCHEMA public');
    given($_) for grep { defined } @_;
    return;
}

# A key, and three sessions at the level.
sub at
{
    my ($level) = @_;
    my @sessions = sessions(3);
    $_->ask("SET default_transaction_isolation = '$level'") for @sessions;
    return ('key ' . ++$keys, @sessions);
}

1;
