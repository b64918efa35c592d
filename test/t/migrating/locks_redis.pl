# DOC-53: docs/migrating/redis-locks.md: one process works at a time, whether it takes the lock in Redis, the lease, or both.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../lib";
use IO::Socket::UNIX;
use IPC::Run;
use Migration;
use PostgreSQL::Test::Utils;
use Test::More;

my ($has_redis) = grep { -x "$_/redis-server" } split /:/, $ENV{PATH};
plan skip_all => 'needs redis-server' unless $has_redis;
my $socket = PostgreSQL::Test::Utils::tempdir_short() . '/redis';
my $server = IPC::Run::start([ qw(redis-server --port 0 --save), '', '--unixsocket', $socket ], '>', \my $redis_log, '2>&1');
until (redis_is_up()) { $server->pump_nb; die "no Redis: $redis_log" unless $server->pumpable; select(undef, undef, undef, 0.05); }

END { $server->kill_kill if $server; }

my $page = Migration->begin('redis-locks');
$page->run('The old way');
$page->ask('CREATE TABLE works (id int PRIMARY KEY, process text); CREATE TABLE saved (process text)');
$page->start($_, works_with($_, 'redis')) for 'old 1', 'old 2';
$page->work;

$page->start($_, works_with($_, 'redis', 'lease')) for 'both 1', 'both 2';
$page->work;
$page->stop('old 1', 'old 2');
$page->run('2. When no old process is left');
$page->work;
$page->start($_, works_with($_, 'lease')) for 'new 1', 'new 2';
$page->work;
$page->stop('both 1', 'both 2');
$page->work;

$page->start('both 3', works_with('both 3', 'redis', 'lease'));
$page->work;
$page->stop('new 1', 'new 2');
$page->run('The way back');
$page->start('old 3', works_with('old 3', 'redis'));
$page->work;
$page->stop('both 3');
$page->work;
$page->stop('old 3');
is($page->ask('SELECT pages FROM report'), $page->ask('SELECT count(*) FROM saved'), 'no work is lost');
is($page->ask('SELECT count(DISTINCT left(process, 3)) FROM saved'), 3, 'all kinds have worked');
$page->end;

# Row "works" and a page that is read before it is written find two processes that work at the same time.
sub works_with
{
    my ($process, @locks) = @_;
    my $redis;
    return sub {
        my ($session) = @_;
        my $lease = $locks[-1] eq 'lease';
        $redis //= connect_to_redis();
        if ($locks[0] eq 'redis') { return if redis($redis, 'SET', 'lock:report:1', $process, qw(NX PX 600000)) ne 'OK'; }
        my ($acquire) = $page->by('new', 'worker 1' => $process);
        my ($outcome, $token) = $lease ? split /\|/, works($session, $acquire) : ('acquired', 0);
        if ($outcome eq 'acquired')
        {
            works($session, "INSERT INTO works VALUES (1, '$process')");
            my (undef, $begin, $assert, $read) = $page->by('new', ':token' => $token);
            works($session, $begin);
            works($session, $assert) if $lease;
            my (undef, undef, undef, undef, $write, $commit, $release) = $page->by('new', ':token' => $token, ':pages' => works($session, $read));
            works($session, $_) for $write, "INSERT INTO saved VALUES ('$process')", $commit, 'DELETE FROM works';
            works($session, $release) if $lease;
        }
        if ($locks[0] eq 'redis')
        {
            redis($redis, 'EVAL', q(if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end), 1, 'lock:report:1', $process) eq '1'
                or die 'has lost its lock in Redis';
        }
        return;
    };
}

sub redis_is_up { return defined eval { connect_to_redis() }; }
sub connect_to_redis { return IO::Socket::UNIX->new(Peer => $socket) // die "cannot connect: $!"; }

# The answer to a command: a line without its type, or the value that follows it.
sub redis
{
    my ($connection, @command) = @_;
    print {$connection} '*' . @command . "\r\n", map { '$' . length() . "\r\n$_\r\n" } @command;
    $connection->flush;
    my $line = readline($connection) // die 'Redis has gone';
    my ($type, $rest) = $line =~ /^(.)(.*?)\r\n/;
    die "Redis: $rest" if $type eq '-';
    return $rest;
}
