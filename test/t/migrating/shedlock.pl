# DOC-53: docs/migrating/shedlock.md: of nodes that lock by ShedLock's statements, and nodes that lock by leases, one works at a time.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../lib";
use Migration;
use Story;
use Test::More;

my $page = Migration->begin('shedlock');
$page->run('The old way');
$page->ask('CREATE TABLE works (name text PRIMARY KEY, node text); CREATE TABLE saved (name text, node text)');
$page->start($_, old($_)) for 'node 1', 'node 3';
$page->work;

$page->run('1. A lease for each lock');
is($page->ask(q(SELECT holder FROM interlock.lease_of('job:weekly'))), 'shedlock node 9', 'a lock that was held before is a lease');
$page->start($_, new($_)) for 'node 2', 'node 4';
$page->work;
$page->stop('node 1', 'node 3');
$page->run('3. When no old node is left');
$page->work;

$page->run('The way back');
$page->start($_, old($_)) for 'node 5', 'node 6';
$page->work;

# lockAtLeastFor, and a lock that was extended
my ($session) = sessions(1);
my ($lock) = $page->by('old', daily => 'monthly');
my $unlock = q(UPDATE shedlock SET lock_until = locked_at + interval '9 min' WHERE name = 'monthly' AND locked_by = 'node 1');
my $expiry = q(SELECT expires_at - (SELECT lock_until AT TIME ZONE 'utc' FROM shedlock WHERE name = 'monthly') < '10 s' FROM interlock.lease_of('job:monthly'));
works($session, $lock);
works($session, $lock =~ s/10 min/20 min/r =~ s/WHERE.*//sr);
is(works($session, $expiry), 't', 'the lease is extended with the lock');
works($session, $unlock);
is(works($session, q(SELECT outcome FROM interlock.acquire_lease('job:monthly', '1 min'))), 'held', 'lockAtLeastFor keeps new nodes away');


# Without usingDbTime() ShedLock inserts once, and then updates
my $row = q((name, lock_until, locked_at, locked_by) VALUES ('NAME', timezone('utc', now()) + '1 min'::interval, timezone('utc', now()), 'node 1'));
is($session->ask('INSERT INTO shedlock ' . $row =~ s/NAME/monthly/r), '23505', 'a lock that exists is a duplicate, as before');
works($session, q(SELECT outcome FROM interlock.acquire_lease('job:yearly', '1 min')));
is(works($session, 'INSERT INTO shedlock ' . $row =~ s/NAME/yearly/r), 'INSERT 0 0', 'a new name that a new node has locked is not inserted');
is(works($session, 'INSERT INTO shedlock ' . $row =~ s/NAME/once/r), 'INSERT 0 1', 'another new name is');
is(works($session, q(SELECT holder FROM interlock.lease_of('job:once'))), 'shedlock node 1', 'with a lease');

$page->stop('node 2', 'node 4');
$page->run('When no new node is left');
$page->work;
$page->stop('node 5', 'node 6');
is($page->ask('SELECT name FROM report WHERE pages <> (SELECT count(*) FROM saved WHERE saved.name = report.name)'), '', 'no work is lost');
is($page->ask(q(SELECT count(DISTINCT node IN ('node 2', 'node 4')) FROM saved)), 2, 'both kinds have worked');
$page->end;

# What a node does while it has the lock: nothing but the lock keeps it from harm. Row "works" is a second witness.
sub makes_report
{
    my ($session, $name, $node, $check) = @_;
    works($session, "INSERT INTO works VALUES ('$name', '$node')");
    my $pages = works($session, "SELECT pages + 1 FROM report WHERE name = '$name'");
    works($session, $_) for 'BEGIN', $check, "UPDATE report SET pages = $pages WHERE name = '$name'", "INSERT INTO saved VALUES ('$name', '$node')", 'COMMIT';
    works($session, "DELETE FROM works WHERE name = '$name'");
    return;
}

sub old
{
    my ($node) = @_;
    return sub {
        my ($session) = @_;
        my $name = rand() < 0.5 ? 'daily' : 'hourly';
        my ($lock, $unlock) = $page->by('old', daily => $name, 'node 1' => $node);
        return if works($session, $lock) eq 'INSERT 0 0';
        makes_report($session, $name, $node, 'SELECT 1');
        works($session, $unlock);
        return;
    };
}

sub new
{
    my ($node) = @_;
    return sub {
        my ($session) = @_;
        my $name = rand() < 0.5 ? 'daily' : 'hourly';
        my @values = ('job:daily' => "job:$name", 'node 2' => $node);
        my ($outcome, $token) = split /\|/, works($session, ($page->by('new', @values))[0]);
        return if $outcome ne 'acquired';
        my ($assert, $release) = ($page->by('new', @values, ':token' => $token))[ 2, 5 ];
        makes_report($session, $name, $node, $assert);
        works($session, $release);
        return;
    };
}
