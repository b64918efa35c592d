# DOC-53: docs/migrating/idempotency-tables.md: each request is charged once, and all who send it get the same response.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../lib";
use Migration;
use Test::More;

my $page = Migration->begin('idempotency-tables');
$page->run('The old way');
$page->ask('CREATE SEQUENCE orders; CREATE TABLE answered (key text, response jsonb)');
# Some of the work takes longer: a step may begin while it is done.
$page->ask(q(ALTER FUNCTION charge(jsonb) RENAME TO charge_at_once;
    CREATE FUNCTION charge(request jsonb) RETURNS jsonb LANGUAGE plpgsql AS $$
    BEGIN
        PERFORM pg_sleep(CASE WHEN hashtext(request->>'key') % 8 = 0 THEN 0.2 ELSE 0 END);
        RETURN charge_at_once(request);
    END $$));
$page->start($_, \&old) for 'old 1', 'old 2';
$page->work;

$page->run('1. Let new processes take both keys');
$page->start($_, \&new) for 'new 1', 'new 2';
$page->work;
$page->stop('old 1', 'old 2');
$page->run('3. Import the keys');
is($page->ask('SELECT count(*) FROM request LEFT JOIN interlock.idempotency i USING (key) WHERE i.key IS NULL'), 0, 'all keys are imported');
$page->work;
cmp_ok($page->ask('SELECT count(*) FROM interlock.idempotency LEFT JOIN request r USING (key) WHERE r.key IS NULL'), '>', 0, 'new keys are in one table');

$page->run('The way back');
$page->start('old 3', \&old);
$page->work;
$page->stop('new 1', 'new 2');
$page->work;
$page->stop('old 3');
is($page->ask('SELECT key FROM charge GROUP BY key HAVING count(*) > 1'), '', 'no request was charged twice');
is($page->ask('SELECT key FROM answered GROUP BY key HAVING count(DISTINCT response) > 1'), '', 'all who sent a request got one response');
is($page->ask('SELECT count(*) FROM answered LEFT JOIN charge USING (key) WHERE amount IS NULL OR response IS DISTINCT FROM jsonb_build_object($$charged$$, amount)'),
    0, 'it is the response to what was done');
cmp_ok($page->ask('SELECT count(*) - count(DISTINCT key) FROM answered'), '>', 20, 'requests were sent again');
$page->end;

# One of the orders, mostly a late one. An old process asks for another amount each time.
sub request
{
    my ($session) = @_;
    return (works($session, q(SELECT 'order ' || floor(nextval('orders') / 4 * (1 - random() ^ 4)))), int rand 1000);
}

sub answered
{
    my ($session, $key, $response) = @_;
    works($session, "INSERT INTO answered VALUES ('$key', '$response')");
    return;
}

sub old
{
    my ($session) = @_;
    my ($key, $amount) = request($session);
    my ($begin, $insert, $work, $commit, $read) = $page->by('old', 'order 17' => $key, '"amount": 10' => qq("amount": $amount));
    works($session, $begin);
    works($session, $work) if works($session, $insert) eq $key;
    works($session, $commit);
    answered($session, $key, works($session, $read));
    return;
}

sub new
{
    my ($session) = @_;
    my ($key) = request($session);
    my ($amount) = $key =~ /(\d+)/;
    my ($call) = $page->by('new', 'order 17' => $key, '"amount": 10' => qq("amount": $amount));
    my ($outcome, $response) = split /\|/, works($session, $call);
    die "$outcome" if $outcome !~ /^(?:completed|replay)$/;
    answered($session, $key, $response);
    return;
}
