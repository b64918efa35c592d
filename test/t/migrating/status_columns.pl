# DOC-53: docs/migrating/status-columns.md: each job is done once, whoever takes it, while processes of both ways work and some die.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../lib";
use Migration;
use Story;
use Test::More;

my $page = Migration->begin('status-columns', '5 min' => '1 s');
$page->run('The old way');
$page->start($_, by('old', $_)) for 'old 1', 'old 2';
$page->work;

$page->run('1. Let the marker use the columns');
$page->work;
is($page->ask('SELECT count(*) FROM job WHERE (lock_status = 1) <> (status = $$running$$)'), 0, 'both columns say the same');
$page->start($_, by('new', $_)) for 'new 1', 'new 2';
$page->work;
$page->stop('old 1', 'old 2');
$page->run('3. Stop the old processes, and enforce');
$page->work;
keeps_its_ttl();

$page->run('The way back');
$page->start('old 3', by('old', 'old 3'));
$page->work;
$page->stop('new 1', 'new 2');
$page->run('When no new process is left');
$page->work;

$page->stop('old 3');

# What is left, and the jobs of processes that have died
my $last = by('old', 'old 4', 1);
my ($session) = sessions(1);
$last->($session) until $session->ask(q(SELECT count(*) FROM job WHERE status <> 'done')) eq '0';
is($page->ask('SELECT count(*) FROM sent GROUP BY job HAVING count(*) > 1'), '', 'no job was done twice');
is($page->ask('SELECT count(*) FROM job LEFT JOIN sent ON job = id WHERE job IS NULL'), 0, 'no job was lost');
is($page->ask(q(SELECT count(DISTINCT left(by, 3)) FROM sent)), 2, 'both ways did some');

$page->run('An edit lock without a status');
$page->ask(q(INSERT INTO document VALUES (3, 'text', 'anna', now())));
is($page->ask(q(SELECT locked, holder FROM interlock.lock_row('document', 3, 'bert'))),
    'f|anna', 'a document that an old program inserts as locked is locked');
$page->end;

# What a process of that way does again and again. One of ten times it dies after it has taken a job. The last one lives.
sub by
{
    my ($way, $name, $lasts) = @_;
    return sub {
        my ($session) = @_;
        my ($take) = $page->by($way, "$way 1" => $name);
        works($session, 'INSERT INTO job DEFAULT VALUES') if !$lasts && rand() < 0.8;
        my $own = "INSERT INTO job (status, locked_by, locked_at) VALUES ('running', '$name', now()) RETURNING id";
        my $id = works($session, $way eq 'old' && !$lasts && rand() < 0.2 ? $own : $take);
        return if $id !~ /^\d+$/ || !$lasts && rand() < 0.1;
        my ($beat, $begin, $effect, $end, $commit) = ($page->by($way, "$way 1" => $name, ':id' => $id))[ 1 .. 5 ];
        works($session, $_) for $beat, $begin, $effect;
        my $ended = $session->ask($end);
        works($session, $ended eq 'UPDATE 0' || $ended eq 'IL005' ? 'ROLLBACK' : $commit);
        die "$name gets $ended" if $ended !~ /^(?:UPDATE [01]|IL005|)$/;
        return;
    };
}

# A job of one hour keeps its time when its holder writes it.
sub keeps_its_ttl
{
    my ($session) = sessions(1);
    works($session, 'BEGIN');
    my $id = works($session, 'INSERT INTO job DEFAULT VALUES RETURNING id');
    works($session, "SELECT interlock.lock_row('job', $id, 'long', ttl => '1 h')");
    works($session, "SELECT interlock.set_holder('long')");
    works($session, "UPDATE job SET address = 'dora' WHERE id = $id");
    is(works($session, "SELECT status, lock_until - locked_at FROM job WHERE id = $id"),
        'running|01:00:00', 'a job of one hour keeps its time');
    works($session, "SELECT interlock.save_row('job', $id, 'long', '{\"status\": \"done\"}')");
    works($session, "INSERT INTO sent VALUES ($id, 'new long')");
    works($session, 'COMMIT');
    return;
}
