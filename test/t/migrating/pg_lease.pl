# DOC-53: docs/migrating/pg-lease.md: one process works at a time, whether it takes the lease of pg_lease, of pg_interlock, or both.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../lib";
use Migration;
use Test::More;

my $page = Migration->begin('pg-lease');
$page->run('The old way');
$page->ask('CREATE TABLE works (id int PRIMARY KEY, process text); CREATE TABLE saved (process text)');
$page->start($_, works_as($_, 'old')) for 'old 1', 'old 2';
$page->work;

$page->run('1. Functions that take both');
$page->start($_, works_as($_, 'new')) for 'new 1', 'new 2';
$page->work;
$page->stop('old 1', 'old 2');
$page->run('3. When no old process is left');
$page->start('slow', works_as('slow', 'new', 1), 2);
$page->work;
is($page->ask(q(SELECT count(*) FROM lease.leases WHERE owner LIKE 'new%' AND expires_at > now() + interval '1 hour')), 0, 'no lease of pg_lease is left behind');

$page->run('The way back');
$page->start($_, works_as($_, 'old')) for 'old 3', 'old 4';
$page->work;
$page->stop('new 1', 'new 2', 'slow');
$page->work;
$page->stop('old 3', 'old 4');
is($page->ask('SELECT pages FROM report'), $page->ask('SELECT count(*) FROM saved'), 'no work is lost');
is($page->ask(q(SELECT count(DISTINCT left(process, 3)) FROM saved WHERE process <> 'slow')), 2, 'both kinds have worked');
$page->end;

# Row "works" and a page that is read before it is written find two processes that work at the same time.
sub works_as
{
    my ($process, $way, $pause) = @_;
    return sub {
        my ($session) = @_;
        my @values = ('worker 1' => $process, 'worker 2' => $process);
        my ($first, $second) = split /\|/, works($session, ($page->by($way, @values))[0]), -1;
        return if $first !~ /^(?:t|\d+)$/;
        push @values, $way eq 'old' ? (':epoch' => $second) : (':token' => $first, ':epoch' => $second eq '' ? 'NULL' : $second);
        my @statements = $page->by($way, @values);
        works($session, "INSERT INTO works VALUES (1, '$process')");
        works($session, "SELECT pg_sleep($pause)") if $pause;
        works($session, $_) for @statements[ 1 .. $#statements - 3 - ($way eq 'new') ];
        my $pages = works($session, $statements[ $way eq 'old' ? 1 : 3 ]);
        @statements = $page->by($way, @values, ':pages' => $pages);
        my ($write, $release) = @statements[ $way eq 'old' ? 2 : 4, -1 ];
        works($session, $_) for $write, "INSERT INTO saved VALUES ('$process')";
        works($session, 'COMMIT') if $way eq 'new';
        works($session, $_) for 'DELETE FROM works', $release;
        return;
    };
}
