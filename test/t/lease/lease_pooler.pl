# Leases behind a pooler in transaction mode: each statement may come by another connection to the server.

use strict;
use warnings;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

# Installed, or unpacked by script/test for the run
my ($pgbouncer) = grep { -x } map { "$_/pgbouncer" } split(/:/, $ENV{PGBOUNCER_PATH} || ''), split(/:/, $ENV{PATH}), '/usr/sbin';
die 'please install pgbouncer' if !$pgbouncer;

my $node = PostgreSQL::Test::Cluster->new('main');
$node->init;
$node->append_conf('postgresql.conf', "shared_preload_libraries = 'pg_interlock'\ninterlock.sweeper = off");
$node->start;
$node->safe_psql('postgres', 'CREATE EXTENSION pg_interlock; CREATE TABLE work (done text)');

my $directory = PostgreSQL::Test::Utils::tempdir_short();
my $port = PostgreSQL::Test::Cluster::get_free_port();
my $user = $node->safe_psql('postgres', 'SELECT current_user');
append_to_file("$directory/users", qq("$user" ""\n));
append_to_file("$directory/pgbouncer.ini", qq(
[databases]
postgres = host=@{[ $node->host ]} port=@{[ $node->port ]} dbname=postgres
[pgbouncer]
pool_mode = transaction
default_pool_size = 10
auth_type = trust
auth_file = $directory/users
listen_addr =
listen_port = $port
unix_socket_dir = $directory
ignore_startup_parameters = extra_float_digits, options
));
my $run;
{
    local $ENV{LD_LIBRARY_PATH} = join(':', grep { $_ } $ENV{PGBOUNCER_LIBRARIES}, $ENV{LD_LIBRARY_PATH});
    $run = IPC::Run::start([ $pgbouncer, "$directory/pgbouncer.ini" ], '>', \my $out, '2>', \my $err);
}
for (1 .. 600) { last if -e "$directory/.s.PGSQL.$port"; select(undef, undef, undef, 0.1); }

# The same server by way of the pooler
my $pooler = bless { %$node, _host => $directory, _port => $port }, ref $node;

sub session { return $pooler->background_psql('postgres', on_error_stop => 0); }

END { $run->signal('TERM') if $run; }

# A client that keeps the connection it gets from others, for as long as its transaction takes
sub occupy
{
    my $session = session();
    return ($session, $session->query_safe('BEGIN; SELECT pg_backend_pid()'));
}

my $client = session();
my ($token, $first) = split(/\|/, $client->query_safe("SELECT token, pg_backend_pid() FROM interlock.acquire_lease('job', '1 min')"));
my ($other, $other_pid) = occupy();
is($other_pid, $first, 'the connection that acquired is in use by another client');
my ($renewed, $second) = split(/\|/, $client->query_safe("SELECT interlock.renew_lease('job', $token) IS NOT NULL, pg_backend_pid()"));
is($renewed, 't', 'renewed');
isnt($second, $first, 'by another connection');
my ($another, $another_pid) = occupy();
is($another_pid, $second, 'that is in use, too');
my $third = $client->query_safe("BEGIN; SELECT interlock.assert_lease('job', $token); INSERT INTO work VALUES ('done'); SELECT pg_backend_pid(); COMMIT") =~ /(\d+)$/ ? $1 : '';
isnt($third, $first, 'asserted, and the work done,');
isnt($third, $second, 'by a third');
is($client->query_safe("SELECT pins FROM interlock.leases WHERE key = 'job'"), 0, 'which keeps nothing when it is handed on');

# A waiter is woken by a release that comes by another connection
my $waiter = session();
$waiter->query_until(qr/asked/, "\\echo asked\nSELECT outcome, pg_backend_pid() FROM interlock.acquire_lease('job', '1 min', wait => '10 min', holder => 'next');\n");
ok($node->poll_query_until('postgres', 'SELECT count(*) = 1 FROM interlock.lease_waiters'), 'another client waits');
is($other->query_safe("SELECT interlock.release_lease('job', $token)"), 't', 'released by a client that has the token');
like($waiter->query_safe('SELECT 1'), qr/^acquired\|\d+\n1$/, 'and granted to the one that waits');
is($client->query_safe("SELECT outcome, holder FROM interlock.acquire_lease('job')"), 'held|next', 'who has it');
$_->query_safe('COMMIT') for $other, $another;

# LEA-1: the pooler closes the connection of a client that goes while it waits
my $gone = session();
$gone->query_until(qr/asked/, "\\echo asked\nSELECT interlock.acquire_lease('job', '1 min', wait => '10 min');\n");
ok($node->poll_query_until('postgres', 'SELECT count(*) = 1 FROM interlock.lease_waiters'), 'a client waits');
$gone->{run}->signal('KILL');
ok($node->poll_query_until('postgres', 'SELECT count(*) = 0 FROM interlock.lease_waiters'), 'and does no more when it is killed');
eval { $gone->quit };

# What is bound to the session is bound to the pooler's, which goes on: docs/guide/leases.md says not to do this
my $bound = session();
$bound->query_safe("SELECT FROM interlock.acquire_lease('bound', bind => 'session')");
$bound->quit;
is($client->query_safe("SELECT outcome FROM interlock.acquire_lease('bound')"), 'held', 'a session is nobody\'s behind a pooler');
like(slurp_file('docs/guide/leases.md'), qr/behind a pooler/, 'as the documentation says');

eval { $_->quit } for $client, $waiter, $other, $another;
$run->signal('TERM');
$run->finish;
$run = undef;
ok($node->poll_query_until('postgres', "SELECT count(*) = 0 FROM interlock.leases WHERE key = 'bound'"), 'it ends with the pooler');
$node->stop;
done_testing();
