# A waiter that is paused is granted a lease, which expires and is followed by another before it wakes up: it waits
# again, and is not told of what has taken its place.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../lib";
use PostgreSQL::Test::Utils;
use Server;
use Test::More;

my $node = start_server();

my $token = $node->safe_psql('postgres', "SELECT token FROM interlock.acquire_lease('job', holder => 'first')");
my $waiter = $node->background_psql('postgres');
my $pid = $waiter->query_safe('SELECT pg_backend_pid()');
$waiter->query_until(qr/waits/, qq(\\echo waits
    SELECT outcome, holder, token FROM interlock.acquire_lease('job', '100 ms', null, 'second') \\gset\n));
ok($node->poll_query_until('postgres', 'SELECT count(*) = 1 FROM interlock.lease_waiters'), 'it waits');
kill 'STOP', $pid;
my ($third, $fourth) = split /\|/, $node->safe_psql('postgres', qq(
    SELECT interlock.release_lease('job', $token), pg_sleep(0.2) \\gset
    SELECT third.token, fourth.token
        FROM interlock.acquire_lease('job', holder => 'third') third, interlock.acquire_lease('job 2', holder => 'fourth') fourth));
kill 'CONT', $pid;
ok($node->poll_query_until('postgres', 'SELECT count(*) = 1 FROM interlock.lease_waiters'), 'it waits again');
is($node->safe_psql('postgres', 'SELECT key, holder FROM interlock.leases ORDER BY key'), "job|third\njob 2|fourth", 'the others are there');
is($node->safe_psql('postgres', "SELECT interlock.release_lease('job', $third)"), 't', 'the third releases');
is($waiter->query_safe('\echo :outcome :holder'), 'acquired second', 'it has its lease');
cmp_ok($waiter->query_safe('\echo :token'), '>', $fourth, 'with a token that is newer than theirs');
is($node->safe_psql('postgres', "SELECT interlock.release_lease('job 2', $fourth)"), 't', 'the other one is still there');
eval { $waiter->quit };
$node->stop;
done_testing();
