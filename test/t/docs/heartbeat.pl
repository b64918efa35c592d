# examples/lease-heartbeat.sh: one copy works, keeps its lease while it works, and is ended when it cannot.
# only with --long

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../lib";
use IPC::Run;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Server;

my $node = start_server();
my $script = "$FindBin::RealBin/../../../examples/lease-heartbeat.sh";
my $file = "$PostgreSQL::Test::Utils::tmp_check/work";
local @ENV{qw(PGHOST PGPORT PGDATABASE)} = ($node->host, $node->port, 'postgres');

# Starts it; its work writes its token and its process to a file and waits for long. A second run appends.
sub start_work
{
    my ($key, $ttl, $beat) = @_;
    unlink $file;
    local $ENV{LEASE_BEAT} = $beat;
    my $run = { out => '', err => '' };
    $run->{harness} = IPC::Run::start([ $script, $key, $ttl, 'bash', '-c', qq(echo "\$LEASE_TOKEN \$\$" >$file.new; mv $file.new $file; sleep 3000 & wait) ],
        '>', \$run->{out}, '2>', \$run->{err});
    for (1 .. $PostgreSQL::Test::Utils::timeout_default * 10) { last if -e $file; select(undef, undef, undef, 0.1) }
    ($run->{token}, $run->{pid}) = split ' ', slurp_file($file);
    return $run;
}

# Its exit status
sub end_of { my ($run) = @_; IPC::Run::finish($run->{harness}); return $run->{harness}->result(0); }
sub is_gone { my ($run) = @_; return kill(0, $run->{pid}) == 0; }
sub lease { my ($column) = @_; return $node->safe_psql('postgres', "SELECT $column FROM interlock.leases WHERE key = 'it''s a key'"); }

# What the command gets and gives
command_ok([ $script, 'k', 1000, 'bash', '-c', 'test $LEASE_KEY = k && test $LEASE_TOKEN -gt 0' ], 'the command has key and token');
is($node->safe_psql('postgres', 'SELECT count(*) FROM interlock.leases'), 0, 'the lease is given back');
command_exit_is([ $script, 'k', 1000, 'bash', '-c', 'exit 7' ], 7, 'the exit status is that of the command');
is($node->safe_psql('postgres', 'SELECT count(*) FROM interlock.leases'), 0, 'the lease is given back, too');
command_exit_is([ $script, 'k' ], 64, 'a call without a command');
command_exit_is([ $script, q('; DROP TABLE x; --), 1000, 'true' ], 0, 'a key is data');

# One copy, which keeps the lease
my $run = start_work("it's a key", 1000, 1);
my $expires = lease('expires_at');
ok($node->poll_query_until('postgres', "SELECT expires_at > '$expires' FROM interlock.leases WHERE key = 'it''s a key'"), 'it renews the lease while it works');
my ($stdout, $stderr) = run_command([ $script, "it's a key", 1000, 'echo', 'second' ]);
is($stdout, '', 'a second copy does not work');
like($stderr, qr/^lease it's a key: held by \S+ \d+$/, 'and says which one does');
command_exit_is([ $script, "it's a key", 1000, 'true' ], 75, 'its exit status says that it can try later');
is(lease('holder') =~ / \d+$/, 1, 'the first one has the lease all the time');

# A second copy that may wait gets it in time, or gives up, or is ended
{
    local $ENV{LEASE_WAIT} = 1;
    command_exit_is([ $script, "it's a key", 1000, 'true' ], 75, 'a wait with a limit');
    $ENV{LEASE_WAIT} = 1000;
    my $waiting = IPC::Run::start([ $script, "it's a key", 1000, 'true' ]);
    $node->poll_query_until('postgres', 'SELECT count(*) = 1 FROM interlock.lease_waiters') or die 'it does not wait';
    IPC::Run::signal($waiting, 'TERM');
    IPC::Run::finish($waiting);
    is($waiting->result(0), 143, 'a signal ends the wait');
    is($node->safe_psql('postgres', 'SELECT count(*) FROM interlock.lease_waiters'), 0, 'which leaves the queue');
    $waiting = IPC::Run::start([ $script, 'free soon', 1000, 'true' ]) if $node->safe_psql('postgres', q(SELECT interlock.acquire_lease('free soon', '10 min', holder => 'h')));
    $node->poll_query_until('postgres', 'SELECT count(*) = 1 FROM interlock.lease_waiters') or die 'it does not wait';
    $node->safe_psql('postgres', q(SELECT interlock.release_lease('free soon', holder => 'h')));
    IPC::Run::finish($waiting);
    is($waiting->result(0), 0, 'it works when its turn has come');
}

# What ends the command: a broken lease, a signal, a server that is away
$node->safe_psql('postgres', q(SELECT interlock.break_lease('it''s a key', 'test')));
is(end_of($run), 76, 'a lost lease ends it');
ok(is_gone($run), 'with the command');
like($run->{err}, qr/^lease it's a key: lost$/m, 'which it says');

$run = start_work("it's a key", 1000, 1);
IPC::Run::signal($run->{harness}, 'TERM');
is(end_of($run), 143, 'a signal ends it');
ok(is_gone($run), 'with the command');
is(lease('count(*)'), 0, 'the lease is given back');

$run = start_work("it's a key", 12, 1);
$node->stop('immediate');
is(end_of($run), 76, 'it ends when the server is away');
ok(is_gone($run), 'with the command');
like($run->{err}, qr/could not renew it/, 'which it says');
command_exit_is([ $script, 'k', 1000, 'true' ], 69, 'without a server it does not begin');

done_testing();
