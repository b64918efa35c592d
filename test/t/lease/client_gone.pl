# LEA-1: a client that is gone gets no lease. Its call leaves the queue when the client closes the connection, and a lease
# that was granted to it before is given back. Each of these leases would last longer than the test.
# only with --long

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../lib";
use PostgreSQL::Test::Utils;
use Protocol;
use Server;
use Test::More;

my $node = start_server("interlock.lease_durable_after = '1 h'");

sub ask { return $node->safe_psql('postgres', $_[0]); }
sub acquire { return ask("SELECT token FROM interlock.acquire_lease('$_[0]', '3000 s', null)"); }
sub release { return ask("SELECT interlock.release_lease('$_[0]', $_[1])"); }

sub has_waiters
{
    my ($count, $name) = @_;
    ok($node->poll_query_until('postgres', "SELECT count(*) = $count FROM interlock.lease_waiters"), $name);
    return;
}

my $acquire_lease = ask("SELECT 'interlock.acquire_lease(text,interlock.seconds,interlock.seconds,text,text,text,boolean,interlock.seconds,boolean)'::regprocedure::oid");

# --- While it waits ----------------------------------------------------------------------------------

# Programs that are killed
my $token = acquire('job');
my @killed;
for my $i (1 .. 5)
{
    my @psql = ('psql', '-XAtq', '-d', $node->connstr('postgres'), '-c', q(SELECT interlock.acquire_lease('job', '3000 s', null)));
    push @killed, IPC::Run::start(\@psql, '>', \my $out, '2>', \my $error);
    has_waiters($i, "$i wait");
}
my $live = start($node);
send_query($live, "SELECT outcome FROM interlock.acquire_lease('job', '3000 s', null)");
has_waiters(6, 'and one more');
$_->signal('KILL') for @killed;
$_->finish for @killed;
has_waiters(1, 'LEA-1: those whose client was killed leave the queue');
release('job', $token);
is(answer($live), 'acquired', 'LEA-1: the lease goes to the live one');
release('job', ask('SELECT token FROM interlock.leases'));
$live->{socket}->close;

# Connections that are closed, as by the timeout of a client, whatever they wait for; in a transaction or not, by a
# statement or a function call
my %calls = (
    'a lease' => "acquire_lease('KEY', '3000 s', null)",
    'a shared lease' => "acquire_lease('KEY', '3000 s', null, mode => 'shared')",
    'a lease of the session' => "acquire_lease('KEY', '3000 s', null, bind => 'session')",
    'a long lease' => "acquire_lease('KEY', '10 h', null)",
    'a permit' => "acquire_permit('KEY', 1, '3000 s', null)",
    'leases' => "acquire_leases('{a,KEY}', '3000 s', null)",
    'a function call' => undef,
);
for my $name (sort keys %calls)
{
    my $key = "of $name";
    $token = acquire($key);
    my $client = start($node);
    query($client, 'BEGIN') if $name =~ /permit/;
    send_call($client, $acquire_lease, $key, '3000 s', undef, undef, 'exclusive', 'ttl', 'f', undef, 'f') if !$calls{$name};
    send_query($client, "SELECT * FROM interlock." . ($calls{$name} =~ s/KEY/$key/r)) if $calls{$name};
    has_waiters(1, "$name: it waits");
    $client->{socket}->close;
    has_waiters(0, "LEA-1, $name: it leaves the queue");
    is(ask('SELECT key FROM interlock.leases'), $key, "$name: nothing but what is held");
    release($key, $token);
}
like(slurp_file($node->logfile), qr/connection to client lost/, 'as the server ends the session of a client that is gone');

# --- At the grant ------------------------------------------------------------------------------------

# The process is stopped while its client goes and the lease is granted to it
$token = acquire('job');
my $gone = start($node);
send_query($gone, "SELECT outcome FROM interlock.acquire_lease('job', '3000 s', null, 'gone')");
has_waiters(1, 'it waits');
$live = start($node);
send_query($live, "SELECT outcome FROM interlock.acquire_lease('job', '3000 s', null, 'live')");
has_waiters(2, 'and another one');
kill 'STOP', $gone->{pid};
END { kill 'CONT', $gone->{pid} if $gone && $gone->{pid}; }
$gone->{socket}->close;
release('job', $token);
is(ask('SELECT holder FROM interlock.leases'), 'gone', 'granted to the one whose client has gone');
kill 'CONT', $gone->{pid};
is(answer($live), 'acquired', 'LEA-1: it gives the lease back, and the next one has it');
undef $gone->{pid};
release('job', ask('SELECT token FROM interlock.leases'));

# --- What is no reason -------------------------------------------------------------------------------

# Statements that were sent ahead
$token = acquire('job');
send_query($live, "SELECT outcome FROM interlock.acquire_lease('job', '3000 s', null, 'ahead')");
send_query($live, "SELECT 'next'");
has_waiters(1, 'it waits, with another statement on the way');
release('job', $token);
is(answer($live), 'acquired', 'a statement that was sent ahead does not count');
is(answer($live), 'next', 'and has its answer');

# A process without a client waits as before
ask(q(
    CREATE TABLE page (id int PRIMARY KEY, body text, outcome text);
    INSERT INTO page VALUES (1);
    SELECT interlock.enable_marker('page', '1 s');
    CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        IF NEW.lock_by IS NULL THEN
            NEW.outcome := (SELECT outcome FROM interlock.acquire_lease('job', '1 s', '100 ms'));
        END IF;
        RETURN NEW;
    END $$;
    CREATE TRIGGER a_note BEFORE UPDATE ON page FOR EACH ROW EXECUTE FUNCTION note();
    SELECT interlock.lock_row('page', 1, 'anna');
));
ok($node->poll_query_until('postgres', q(SELECT outcome = 'held' FROM page)), 'a worker waits without a client');

$live->{socket}->close;
$node->stop;
unlike(slurp_file($node->logfile), qr/PANIC|TRAP|terminated by signal/, 'nothing crashed');
done_testing();
