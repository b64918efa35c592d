# What scenarios are told with: sessions that send plain statements, and a line of TAP for each scenario.
#
#   row '0.12', 'of two who pay one order one succeeds', sub {
#       given(q{CREATE TABLE ...});                                 # in an empty schema "public"
#       my ($ann, $ben) = sessions(2);
#       $ann->ask('BEGIN');
#       is($ann->ask('UPDATE ...'), 'UPDATE 1', '...');
#       $ben->begins_to_wait('UPDATE ...');
#       $ann->ask('COMMIT');
#       is($ben->answer, 'UPDATE 0', '...');
#   };
#
# An answer is the SQLSTATE of an error; else the rows, one line each with "|" between the values; else the command tag.

package Story;

use strict;
use warnings;
use Exporter 'import';
use IO::Select;
use Protocol ();
use Test::More;

our @EXPORT = qw(article row given sessions together);

my ($server, $database, $owner);

# article(NODE, NAME): a database for the rows that follow.
sub article
{
    ($server, $database) = @_;
    $server->safe_psql('postgres', qq(CREATE DATABASE "$database"));
    $server->safe_psql($database, 'CREATE EXTENSION pg_interlock');
    ($owner) = sessions(1);
    return;
}

# row(NUMBER, TITLE, SUB): nothing of the rows before is left.
sub row
{
    my ($number, $title, $told) = @_;
    given('DROP SCHEMA public CASCADE; CREATE SCHEMA public');
    subtest("$number $title", sub { eval { $told->(); 1 } or fail("runs to its end: $@") });
    return;
}

# given(SQL): statements of the owner, which have to succeed. Its last answer.
sub given
{
    my ($sql) = @_;
    my $answer = $owner->ask($sql);
    die "$owner->{error} $owner->{message}\nin $sql" if defined $owner->{error};
    return $answer;
}

sub sessions { my ($count) = @_; return map { bless Protocol::start($server, $database) } 1 .. $count; }

# together(COUNT, SUB): what as many sessions answer that all send a statement at once; the sub makes it of 1, 2 ...
sub together
{
    my ($count, $statement) = @_;
    my @sessions = sessions($count);
    Protocol::send_query($sessions[$_], $statement->($_ + 1)) for 0 .. $#sessions;
    return map { $_->answer } @sessions;
}

sub ask
{
    my ($self, $sql) = @_;
    Protocol::send_query($self, $sql);
    return $self->answer;
}

# begins_to_wait(SQL): sent, and waits for another transaction. Its answer comes later.
sub begins_to_wait
{
    my ($self, $sql) = @_;
    die 'answers at once: ' . $self->answer unless $self->starts($sql);
    return;
}

# starts(SQL): sent, and waits for another transaction (true), or has its answer. That is what "answer" returns.
sub starts
{
    my ($self, $sql) = @_;
    Protocol::send_query($self, $sql);
    until (given("SELECT cardinality(pg_blocking_pids($self->{pid})) > 0") eq 't')
    {
        return 0 if IO::Select->new($self->{socket})->can_read(0.02);
    }
    return 1;
}

# asks_until(SQL, PATTERN): again and again, until the answer is like that.
sub asks_until
{
    my ($self, $sql, $pattern) = @_;
    for (1 .. 3600)
    {
        my $answer = $self->ask($sql);
        return $answer if $answer =~ $pattern;
        select(undef, undef, undef, 0.05);
    }
    die "never answers $pattern to $sql";
}

sub answer
{
    my ($self) = @_;
    Protocol::answer($self);
    return $self->{error} if defined $self->{error};
    my @rows = @{ $self->{rows} };
    return @rows ? join("\n", map { join('|', map { $_ // '' } @$_) } @rows) : $self->{tag};
}

1;
