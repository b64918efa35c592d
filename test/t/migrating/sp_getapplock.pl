# DOC-53: docs/migrating/sp-getapplock.md: transfers under a lock of one's own, under getapplock, or under both lose no money.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../lib";
use Migration;
use Test::More;

my $page = Migration->begin('sp-getapplock', 1000 => '1000000', 5000 => '600000');
$page->run('The old way');
$page->ask('CREATE TABLE moved (account int, by text)');
$page->start($_, transfers('old')) for 'old 1', 'old 2';
$page->work;

$page->run('1. Take both locks');
$page->start($_, transfers('new')) for 'new 1', 'new 2';
$page->work;
$page->stop('old 1', 'old 2');
$page->run('3. When no old process is left');
$page->work;

$page->start('slow', transfers('new', 0.2), 2);
$page->run('The way back');
$page->start($_, transfers('old')) for 'old 3', 'old 4';
$page->work;
$page->stop('new 1', 'new 2', 'slow');
$page->work;
$page->stop('old 3', 'old 4');
is($page->ask('SELECT id FROM account WHERE balance <> 1000000 + (SELECT sum(CASE WHEN account = id THEN -1 ELSE 1 END) FROM moved)'), '', 'no transfer is lost');
is($page->ask('SELECT count(DISTINCT by) FROM moved'), 2, 'both kinds have worked');
$page->end;

# From either account; the locks are taken in one order.
sub transfers
{
    my ($way, $pause) = @_;
    return sub {
        my ($session) = @_;
        my @accounts = rand() < 0.5 ? (9 => 9, 10 => 10) : (9 => 10, 10 => 9);
        my ($begin, $lock) = $page->by($way);
        my (undef, undef, $read) = $page->by($way, @accounts);
        works($session, $begin);
        my $codes = works($session, $lock);
        die "codes $codes" if $codes !~ /^[01]\|[01]$/;
        my $balance = works($session, $read);
        works($session, "SELECT pg_sleep($pause)") if $pause;
        my (undef, undef, undef, @rest) = $page->by($way, @accounts, ':balance' => $balance);
        works($session, $_) for "INSERT INTO moved VALUES ($accounts[1], '$way')", @rest;
        return;
    };
}
