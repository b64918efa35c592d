# A page of docs/migrating as a test: its steps run while processes of the old way and of the new way work.
#
#   my $page = Migration->begin('status-columns', '5 min' => '1 s');      # its server; what the test replaces in its SQL
#   $page->run('The old way');                                            # the blocks of SQL below that heading
#   $page->start('old 1', sub { my ($session) = @_; ... });               # a process that does this again and again
#   $page->run('1. ...');
#   $page->work;                                                          # until each process has done it some more times
#   $page->stop('old 1');
#   $page->end;
#
# A block below the line <!--by NAME--> is what a process does. by(NAME) returns its statements; run() leaves it out.

package Migration;

use strict;
use warnings;
use Exporter 'import';
use IO::Select;
use PostgreSQL::Test::Utils;
use POSIX ();
use Server;
use Story;
use Test::More;

our @EXPORT = qw(works);

sub begin
{
    my ($class, $name, %replaced) = @_;
    my $page = bless { file => "docs/migrating/$name.md", running => {}, sections => {}, by => {} }, $class;
    $page->read_blocks(%replaced);
    $page->{node} = start_server("fsync = off");
    article($page->{node}, 'page');
    return $page;
}

# Its blocks of SQL, by the heading above them.
sub read_blocks
{
    my ($page, %replaced) = @_;
    my ($heading, $text) = ('', slurp_file($page->{file}));
    while ($text =~ /^#+ ([^\n]*)\n|^(?:<!--by ([\w ]+)-->\n)?```sql\n(.*?)^```$|^<!--sql\n(.*?)^-->$/msg)
    {
        my ($new_heading, $by, $sql) = ($1, $2, $3 // $4);
        if (defined $new_heading) { $heading = $new_heading; next; }
        $sql =~ s/\Q$_\E/$replaced{$_}/g for keys %replaced;
        if (defined $by) { $page->{by}{$by} = [ statements($sql) ]; }
        else { push @{ $page->{sections}{$heading} }, $sql; }
    }
    return;
}

# Statements end with ";" or "\gset" at the end of a line, or before a comment.
sub statements
{
    my ($sql) = @_;
    return grep { /\S/ } split /(?:;|[ ]\\gset)[ ]*(?:--[^\n]*)?\n/, $sql;
}

# by(NAME, TEXT => OTHER TEXT...): the statements, with names and values of this process.
sub by
{
    my ($page, $name, %values) = @_;
    my @statements = @{ $page->{by}{$name} // die "$page->{file} has no block by $name" };
    my $any = join('|', map { quotemeta } keys %values);
    if ($any) { s/(?<![\w:])($any)(?!\w)/$values{$1}/g for @statements; }
    return @statements;
}

sub run
{
    my ($page, $heading) = @_;
    my $blocks = $page->{sections}{$heading} or die "$page->{file} has no SQL below \"$heading\"";
    for my $sql (@$blocks)
    {
        my ($status, undef, $printed) = $page->{node}->psql('page', $sql, on_error_stop => 1);
        is($status, 0, "$heading") or diag($printed);
    }
    return;
}

# start(NAME, SUB [, ROUNDS]): a process of its own with a session. It ends at stop(), or when the sub dies. So many rounds are
# some more.
sub start
{
    my ($page, $name, $round, $rounds) = @_;
    pipe(my $progress, my $report) or die "pipe: $!";
    pipe(my $told, my $tell) or die "pipe: $!";
    my $pid = fork() // die "fork: $!";
    if ($pid == 0)
    {
        close $_ for $progress, $tell;
        POSIX::_exit(rounds($round, $report, $told));
    }
    close $_ for $report, $told;
    $page->{running}{$name} = { pid => $pid, progress => $progress, tell => $tell, said => '', rounds => $rounds // 10 };
    return $name;
}

# A dot for each round; what it died of.
sub rounds
{
    my ($round, $report, $told) = @_;
    srand($$);
    my $lived = eval {
        my ($session) = sessions(1);
        until (IO::Select->new($told)->can_read(0)) { $round->($session); syswrite($report, '.'); }
        1;
    };
    syswrite($report, "!$@") unless $lived;
    return $lived ? 0 : 1;
}

# More rounds of each process.
sub work
{
    my ($page) = @_;
    for my $name (sort keys %{ $page->{running} })
    {
        my $process = $page->{running}{$name};
        my $rounds = $process->{rounds};
        1 while IO::Select->new($process->{progress})->can_read(0) && hears($process);
        $process->{said} =~ s/^\.+//;
        1 while $process->{said} =~ /^\.*\z/ && length $process->{said} < $rounds && hears($process);
        next if $process->{said} =~ /^\.+\z/;
        $page->stop($name);
        die "$name has ended";
    }
    return;
}

# Waits for a report of the process. False when it has ended.
sub hears { my ($process) = @_; return sysread($process->{progress}, $process->{said}, 65536, length $process->{said}); }

# stop(NAME...): they end their round.
sub stop
{
    my ($page, @names) = @_;
    for my $name (@names)
    {
        my $process = delete $page->{running}{$name} or next;
        syswrite($process->{tell}, '.');
        1 while hears($process);
        waitpid($process->{pid}, 0);
        is($?, 0, "$name has worked without an error") or diag($process->{said} =~ s/^\.*!//r);
    }
    return;
}

# works(SESSION, SQL): the answer to a statement that no other process can make fail.
sub works
{
    my ($session, $sql) = @_;
    my $answer = $session->ask($sql);
    die "$session->{error} $session->{message} in $sql" if defined $session->{error};
    return $answer;
}

sub ask { my ($page, $sql) = @_; return $page->{node}->safe_psql('page', $sql); }

sub end
{
    my ($page) = @_;
    $page->stop(sort keys %{ $page->{running} });
    $page->{node}->stop;
    done_testing();
    return;
}

1;
