# DOC-53: docs/migrating/version-columns.md: no save is lost, whether an ORM with its own token writes, a script, or a new process.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../lib";
use Migration;
use Test::More;

my $page = Migration->begin('version-columns');
$page->run('The old way');
$page->ask('CREATE TABLE saved (rel text, by text)');
$page->start('rails 1', saves('rails', qw(posts :likes :lock_version)));
$page->start('rails 2', saves('rails', qw(posts :likes :lock_version)));
$page->start("ef $_", saves('ef', 'orders', ':pieces', q(:'token'))) for 1, 2;
$page->work;

$page->run('1. A column that is a version');
$page->start('script', \&script);
$page->start('new', saves('new', qw(posts :likes :lock_version)));
$page->work;
$page->run('2. A token that is no version');
$page->start("new ef $_", saves('new ef', qw(orders :pieces :version))) for 1, 2;
$page->work;
$page->run('3. Refuse what compares nothing');
$page->work;
$page->stop('ef 1', 'ef 2');
$page->run('4. When no old process is left');
$page->work;
is($page->ask(q(SELECT count(*) FROM interlock.advise() WHERE severity = 'broken')), 0, 'nothing is broken');

$page->run('The way back');
$page->start("ef $_", saves('ef', 'orders', ':pieces', q(:'token'))) for 3, 4;
$page->work;
$page->stop('new', 'new ef 1', 'new ef 2', 'script');
$page->run('When no new process is left');
$page->work;
$page->stop('rails 1', 'rails 2', 'ef 3', 'ef 4');

is($page->ask('SELECT likes FROM posts'), $page->ask('SELECT count(*) FROM saved WHERE rel = $$posts$$'), 'no save of a post is lost');
is($page->ask('SELECT pieces FROM orders'), $page->ask('SELECT count(*) FROM saved WHERE rel = $$orders$$'), 'no save of an order is lost');
is($page->ask('SELECT count(DISTINCT by) FROM saved'), 5, 'all kinds have saved');
is($page->ask('INSERT INTO posts VALUES (2, 0) RETURNING lock_version'), 0, 'Rails finds its default');
$page->end;

# A save that adds one. The names of what it has read are in the order of the columns.
sub saves
{
    my ($by, $rel, @read) = @_;
    return sub {
        my ($session) = @_;
        my ($read) = $page->by($by);
        my @values = split /\|/, works($session, $read);
        $values[1] = "'$values[1]'" if $read[1] =~ /'/;
        my (undef, $save) = $page->by($by, $read[0] => $values[0], $read[1] => $values[1]);
        works($session, 'BEGIN');
        my $answer = works($session, $save);
        works($session, "INSERT INTO saved VALUES ('$rel', '$by')") if $answer =~ /^(?:UPDATE 1|updated|\d+)$/;
        works($session, 'COMMIT');
        return;
    };
}

sub script
{
    my ($session) = @_;
    my ($update) = $page->by('script');
    works($session, $_) for 'BEGIN', $update, q(INSERT INTO saved VALUES ('posts', 'script')), 'COMMIT';
    return;
}
