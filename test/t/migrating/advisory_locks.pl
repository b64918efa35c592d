# DOC-53: docs/migrating/advisory-locks.md: who reads and writes under the lock loses nothing, with one lock, the other, or both.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../lib";
use Migration;
use Test::More;

my $page = Migration->begin('advisory-locks');
$page->run('The old way');
$page->ask('CREATE TABLE saved (invoice int, by text)');
$page->start($_, works_as('old')) for 'old 1', 'old 2';
$page->work;

$page->run('1. A function that takes both');
$page->start($_, works_as('new')) for 'new 1', 'new 2';
$page->work;
$page->stop('old 1', 'old 2');
$page->run('3. When no old process is left');
$page->work;

$page->start('slow', works_as('new', 0.2), 2);
$page->run('The way back');
$page->start($_, works_as('old')) for 'old 3', 'old 4';
$page->work;
$page->stop('new 1', 'new 2', 'slow');
$page->work;
$page->stop('old 3', 'old 4');
is($page->ask('SELECT id FROM invoice WHERE positions <> (SELECT count(*) FROM saved WHERE invoice = id)'), '', 'no position is lost');
is($page->ask('SELECT count(DISTINCT by) FROM saved'), 2, 'both kinds have worked');
$page->end;

sub works_as
{
    my ($way, $pause) = @_;
    return sub {
        my ($session) = @_;
        my $id = rand() < 0.5 ? 7 : 9;
        my ($begin, $lock, $read) = $page->by($way, 7 => $id);
        works($session, $_) for $begin, $lock;
        my $positions = works($session, $read);
        works($session, "SELECT pg_sleep($pause)") if $pause;
        my (undef, undef, undef, $write, $commit) = $page->by($way, 7 => $id, ':positions' => $positions);
        works($session, $_) for $write, "INSERT INTO saved VALUES ($id, '$way')", $commit;
        return;
    };
}
