# LEA-2: callers that were refused a lease are notified when it can be had, in the order of asking, and need no connection
# meanwhile: a thousand of them share ten. SEC-9: a notification says nothing but the number of a ticket.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../lib";
use PostgreSQL::Test::Utils;
use Protocol;
use Server;
use Test::More;

my $node = start_server("max_prepared_transactions = 1\nlog_statement = none\nrestart_after_crash = on\ninterlock.sweeper_rescan = '1d'"
      . (qx(pg_config --version) =~ /^PostgreSQL (\d+)/ && $1 >= 17 ? "\nmax_notify_queue_pages = 64" : ''));

sub ask { return $node->safe_psql('postgres', $_[0]); }

my ($listener, $one) = (start($node), start($node));
ask('CREATE ROLE stranger LOGIN');
query($listener, 'LISTEN interlock_lease');

# What a client gets that asks: outcome and ticket, or outcome and token
sub asks
{
    my ($key, $holder, $more) = @_;
    query($one, "SELECT outcome, coalesce(token, ticket) FROM interlock.acquire_lease('$key', '10 min', holder => '$holder', notify => true" . ($more ? ", $more" : '') . ')');
    return @{ $one->{rows}[0] };
}

sub holds
{
    my ($key, $arguments) = @_;
    return query($one, "SELECT token FROM interlock.acquire_lease('$key', " . ($arguments // "'10 min'") . ", holder => 'holder')");
}

sub release { return query($one, "SELECT interlock.release_lease('$_[0]', $_[1])"); }

# Waits for a notification, and returns it; '' if none is there after a while.
my $is_silent = 0;
sub any_notification
{
    for (1 .. 10 * $PostgreSQL::Test::Utils::timeout_default)
    {
        query($listener, 'SELECT 1');
        return shift @{ $listener->{notifications} } if @{ $listener->{notifications} // [] };
        select(undef, undef, undef, 0.1);
    }
    $is_silent = 1;
    return '';
}

# Whoever was passed over by a grant can be notified once more, which is not the next notification.
my %seen;
sub next_notification
{
    my $number = any_notification();
    $number = any_notification() while $number ne '' && $seen{$number}++;
    return $number;
}

sub forget_notifications
{
    query($listener, 'SELECT 1');
    @{ $listener->{notifications} } = ();
}

# Whoever does not answer within a second loses its turn: a slow machine tries again, with another key.
my $tries = 0;
sub tries
{
    my ($expected, $name, $body) = @_;
    my $got = '';
    for (1 .. 50)
    {
        $got = $body->('try ' . ++$tries);
        last if $got eq $expected || $is_silent;
    }
    is($got, $expected, $name);
}

# --- One after the other --------------------------------------------------------------------------------------------------

my $token = holds('job');
my ($outcome, $ticket) = asks('job', 'ann');
is($outcome, 'held', 'a lease that another has');
like($ticket, qr/^\d+$/, 'LEA-2: with a ticket');
is(join(' ', asks('job', 'ann')), "held $ticket", 'who asks again has the same ticket');
my (undef, $second) = asks('job', 'ben');
isnt($second, $ticket, 'another caller has another');
is(query($one, "SELECT count(*) FROM interlock.acquire_lease('job', holder => 'cem') WHERE ticket IS NULL"), 1, 'who does not ask for a notification has none');
query($one, "SELECT interlock.break_leases('job', 'test', current_user)");
tries('ann is notified, acquired, ben is notified, acquired', 'LEA-2, SEC-9: the first is notified by the number of the ticket alone, the next when it releases', sub {
    my ($key) = @_;
    my $token = holds($key);
    my %asked = map { (asks($key, $_))[1] => $_ } 'ann', 'ben';
    my @seen;
    for my $holder ('ann', 'ben')
    {
        release($key, $token);
        my $number = next_notification();
        (my $outcome, $token) = asks($key, $holder);
        push @seen, "$asked{$number} is notified", $outcome;
    }
    release($key, $token);
    query($one, "SELECT interlock.break_leases('$key', 'test', current_user)");
    return join ', ', @seen;
});
is(query($one, q(SELECT used FROM interlock.usage WHERE what = 'leases' AND role IS NULL)), 0, 'no ticket is left');

# Of two permits both are taken: the first who asked is notified when one of them is released, and not before.
tries('nobody, ann is notified, acquired, ben is notified, acquired', 'LEA-51: those who ask for a permit are notified one after the other', sub {
    my ($key) = @_;
    my $permit = sub { query($one, "SELECT coalesce(token, ticket), outcome FROM interlock.acquire_permit('$key', 2, '10 min', holder => '$_[0]', notify => true)"); @{ $one->{rows}[0] } };
    my @tokens = map { ($permit->($_))[0] } 'one', 'two';
    my %asked = map { ($permit->($_))[0] => $_ } 'ann', 'ben';
    forget_notifications();
    $permit->($_) for 'ann', 'ben';
    query($listener, 'SELECT 1');
    my @seen = @{ $listener->{notifications} // [] } ? 'somebody' : 'nobody';
    for my $holder ('ann', 'ben')
    {
        release($key, shift @tokens);
        my $number = next_notification();
        push @seen, "$asked{$number} is notified", ($permit->($holder))[1];
    }
    query($one, "SELECT interlock.break_leases('$key', 'test', current_user)");
    return join ', ', @seen;
});

# Two permits become free at once. Who has got one notifies the next, without the sweeper.
my $launcher = ask(q(SELECT pid FROM pg_stat_activity WHERE backend_type = 'pg_interlock launcher'));
kill 'STOP', $launcher or die 'there is no launcher';
tries('ann is notified, acquired, ben is notified, acquired', 'LEA-51: of two free permits the second is there for who is next', sub {
    my ($key) = @_;
    my $permit = sub { query($one, "SELECT coalesce(token, ticket), outcome FROM interlock.acquire_permit('$key', 2, '10 min', holder => '$_[0]', notify => true)"); @{ $one->{rows}[0] } };
    my @tokens = map { ($permit->($_))[0] } 'one', 'two';
    my %asked = map { ($permit->($_))[0] => $_ } 'ann', 'ben';
    forget_notifications();
    query($one, "SELECT interlock.release_lease('$key', $tokens[0]), interlock.release_lease('$key', $tokens[1])");
    my @seen;
    for (1 .. 2)
    {
        my $holder = $asked{ next_notification() } or return join ', ', @seen, 'nobody is notified';
        push @seen, "$holder is notified", ($permit->($holder))[1];
    }
    query($one, "SELECT interlock.break_leases('$key', 'test', current_user)");
    return join ', ', @seen;
});
kill 'CONT', $launcher;

# A statement that takes long to commit does not cost the first its turn.
tries('ann is notified', 'LEA-2: the first is notified while the statement that released the lease still runs', sub {
    my ($key) = @_;
    my $token = holds($key);
    my %asked = map { (asks($key, $_))[1] => $_ } 'ann', 'ben';
    query($one, "SELECT interlock.release_lease('$key', $token), pg_sleep(3)");
    my $holder = $asked{ next_notification() } // 'nobody';
    query($one, "SELECT interlock.break_leases('$key', 'test', current_user)");
    return "$holder is notified";
});

# --- Behind sessions that wait --------------------------------------------------------------------------------------------

# A ticket counts in its database, too.
$token = holds('shared', "'10 min', mode => 'shared'");
asks('shared', "asker $_") for 1 .. 20;
is(query($one, q(SELECT used = 21 FROM interlock.usage WHERE what = 'leases' AND role = current_user AND database = 'postgres')), 't',
    'a lease and twenty tickets count in their database') || diag($node->safe_psql('postgres', 'TABLE interlock.usage'));
release('shared', $token);
query($one, "SELECT interlock.break_leases('shared', 'test', current_user)");
# What a shared lease excludes is a waiter alone.
query($one, "SET statement_timeout = '100 s'");
for (['shared/one', 'shared/one', ", mode => 'shared'"], ['tree/b', 'tree', ''])
{
    my ($key, $above, $mode) = @$_;
    my $asked = $mode ? $key : 'tree/a';
    my $waiter = start($node);
    $token = holds($key, "'10 min'$mode");
    send_query($waiter, "SELECT outcome FROM interlock.acquire_lease('$above', '10 min', wait => '10 min')");
    $node->poll_query_until('postgres', 'SELECT count(*) = 1 FROM interlock.lease_waiters') or die 'nobody waits';
    forget_notifications();
    ($outcome, $ticket) = asks($asked, 'ann', $mode =~ s/^, //r);
    is($outcome, 'held', "$asked: behind a session that waits");
    like($ticket, qr/^\d+$/, "$asked: it gets a ticket, and does not wait");
    is($one->{rows}[0][0] // $one->{error}, 'held', "$asked: at once");
    query($one, "SELECT pg_cancel_backend($waiter->{pid})");
    answer($waiter);
    is(next_notification(), $ticket, "$asked: it is notified when that one has left");
    ($outcome, my $other) = asks($asked, 'ann', $mode =~ s/^, //r);
    is($outcome, 'acquired', "$asked: and acquires the lease");
    release($asked, $other);
    release($key, $token);
}

# Another caller with a ticket does not come between, while the first may still come.
tries('held acquired', 'LEA-2: who asks between the notification and the answer to it is not served before', sub {
    my ($key) = @_;
    my $token = holds($key);
    asks($key, 'ann');
    release($key, $token);
    my ($between) = asks($key, 'ben');
    my ($first) = asks($key, 'ann');
    return "$between $first";
});
forget_notifications();

# One that does not come
$token = holds('away');
my @tickets = map { (asks('away', "client $_"))[1] } 1 .. 3;
release('away', $token);
my %notified;
$notified{ next_notification() }++ until $notified{ $tickets[2] } || $notified{''};
is(scalar(grep { $notified{$_} } @tickets), 3, 'LEA-2: when the first do not come, the next ones are notified');
is((asks('away', 'client 3'))[0], 'acquired', 'and served');
forget_notifications();

# --- Those who have gone --------------------------------------------------------------------------------------------------

# LEA-53: sixty callers have asked and died. The first is notified, and nobody comes: then whoever asks gets the lease.
$token = holds('dead');
my @dead = map { (asks('dead', "dead $_"))[1] } 1 .. 60;
release('dead', $token);
is(any_notification(), $dead[0], 'LEA-53: the first who asked is notified');
my $told = any_notification();
isnt($told, $dead[0], 'LEA-53: once');
isnt($told, '', 'LEA-53: then the others are, as the lease is open');
($outcome, $token) = asks('dead', 'a live one');
is($outcome, 'acquired', 'LEA-53: whoever asks next has it, however many are before it');
release('dead', $token);
query($one, "SELECT interlock.break_leases('dead', 'test', current_user)");
forget_notifications();

tries('open: acquired, ann held 1, ben held 1, ann notified, ben held 1, ann acquired', 'LEA-53: once, and the rest of the queue keeps its order', sub {
    my ($key) = @_;
    my $token = holds($key);
    my %ticket = map { $_ => (asks($key, $_))[1] } 'dead', 'ann', 'ben';
    release($key, $token);
    my $number = any_notification();
    $number = any_notification() until $number eq $ticket{ben} || $number eq '';
    (my $outcome, $token) = asks($key, 'zoe');
    my @seen = "open: $outcome";
    my $again = sub { my ($outcome, $number) = asks($key, $_[0]); return "$_[0] $outcome" . ($outcome eq 'held' ? ' ' . ($number eq $ticket{ $_[0] } || 0) : '') };
    push @seen, $again->('ann'), $again->('ben');
    forget_notifications();
    release($key, $token);
    push @seen, any_notification() eq $ticket{ann} ? 'ann notified' : 'another notified';
    push @seen, $again->('ben'), $again->('ann');
    query($one, "SELECT interlock.break_leases('$key', 'test', current_user)");
    return join ', ', @seen;
});
forget_notifications();

# A ticket is withdrawn by the name of its holder, by those who may
sub tickets { return ask(q(SELECT coalesce(sum(used), 0) FROM interlock.usage WHERE what = 'leases' AND role = 'postgres' AND database IS NULL)); }
my $used = tickets();
$token = holds('left');
my ($left, $next) = map { (asks('left', $_))[1] } 'ann', 'ben';
$node->safe_psql('postgres', q(SELECT interlock.release_lease('left', holder => 'ann')), connstr => $node->connstr('postgres') . ' user=stranger');
is(tickets() - $used, 3, 'LEA-53: another role withdraws no ticket');
is(query($one, q(SELECT interlock.release_lease('left', holder => 'ann'))), 'f', 'LEA-53: a caller that gives up has no lease');
is(tickets() - $used, 2, 'and withdraws its ticket');
is(query($one, q(SELECT count(*) FROM interlock.leases WHERE key = 'left')), 1, 'the lease stays');
release('left', $token);
is(next_notification(), $next, 'LEA-53: the next one is notified');
query($one, q(SELECT interlock.release_lease('left', holder => 'ben')));
tries('ann notified, ben held, ben notified', 'LEA-53: who was notified and gives up makes room for the next', sub {
    my ($key) = @_;
    my $token = holds($key);
    my %ticket = map { $_ => (asks($key, $_))[1] } 'ann', 'ben';
    release($key, $token);
    my @seen = next_notification() eq $ticket{ann} ? 'ann notified' : '';
    push @seen, 'ben ' . (asks($key, 'ben'))[0];
    query($one, "SELECT interlock.release_lease('$key', holder => 'ann')");
    push @seen, next_notification() eq $ticket{ben} ? 'ben notified' : '';
    query($one, "SELECT interlock.release_lease('$key', holder => 'ben')");
    return join ', ', @seen;
});

# And with the session, if that is asked for
$token = holds('gone');
my $gone = start($node);
is(query($gone, q(SELECT ticket IS NOT NULL FROM interlock.acquire_lease('gone', holder => 'ann', bind => 'session', notify => true))), 't', 'a ticket for a lease of the session');
is(query($gone, q(SELECT ticket IS NOT NULL FROM interlock.acquire_lease('gone', holder => 'stays', notify => true))), 't', 'and one for a lease with a ttl');
$gone->{socket}->close;
ok($node->poll_query_until('postgres', q(SELECT sum(used) = ) . ($used + 2) . q( FROM interlock.usage WHERE what = 'leases' AND role = 'postgres' AND database IS NULL)), 'LEA-53: the first ends with its session, and not the other');
release('gone', $token);
query($one, q(SELECT interlock.release_lease('gone', holder => 'stays')));
is(tickets(), $used, 'no ticket is left');
forget_notifications();

# LEA-55: a call that is repeated after a lost answer does not wait for the lease of its first attempt
$token = holds('lost answer');
my @attempts = (start($node), start($node));
for (0, 1)
{
    send_query($attempts[$_], q(SELECT outcome FROM interlock.acquire_lease('lost answer', '10 min', wait => '1 h', holder => 'request', resume => true)));
    $node->poll_query_until('postgres', 'SELECT count(*) = ' . ($_ + 1) . ' FROM interlock.lease_waiters') or die 'it does not wait';
}
release('lost answer', $token);
is(answer($attempts[0]), 'acquired', 'the first attempt is served');
is(answer($attempts[1]), 'resumed', 'LEA-55: and the second has the lease at once, too');
query($one, q(SELECT interlock.release_lease('lost answer', holder => 'request')));
forget_notifications();

# --- However the lease ends -----------------------------------------------------------------------------------------------

my $other = start($node);
my %ends = (
    'expires' => ["'100 ms'", sub { }],
    'is released in a transaction' => [undef, sub { query($one, 'BEGIN'); release(@_); query($one, 'COMMIT') }],
    'is released in one that is rolled back' => [undef, sub { query($one, 'BEGIN'); release(@_); query($one, 'ROLLBACK') }],
    'is released in one that is prepared' =>
        [undef, sub { query($one, 'BEGIN'); release(@_); is(query($one, q(PREPARE TRANSACTION 'p')), undef, 'which can be prepared'); query($one, q(COMMIT PREPARED 'p')) }],
    'is released by a statement that fails' => [undef, sub { is(query($one, "SELECT interlock.release_lease('$_[0]', $_[1]), 1 / (random() * 0)::int"), '22012', 'which fails') }],
    'is broken' => [undef, sub { ask("SELECT interlock.break_lease('$_[0]', 'test')") }],
    'is released, and a transaction that has asserted it ends' =>
        [undef, sub { query($other, 'BEGIN'); query($other, "SELECT interlock.assert_lease('$_[0]', $_[1])"); release(@_); query($other, 'COMMIT') }],
    'is released before at_least is over' => ["'1 min', at_least => '300 ms'", sub { release(@_) }],
);
for my $end (sort keys %ends)
{
    my ($arguments, $body) = @{ $ends{$end} };
    $token = holds($end, $arguments);
    (undef, $ticket) = asks($end, 'ann');
    $body->($end, $token);
    is(next_notification(), $ticket, "LEA-2: notified of a lease that $end");
    is((asks($end, 'ann'))[0], 'acquired', 'which can be had') unless $end eq 'expires';
    forget_notifications();
}
my $session = start($node);
query($session, q(SELECT FROM interlock.acquire_lease('of a session', bind => 'session')));
(undef, $ticket) = asks('of a session', 'ann');
$session->{socket}->close;
is(next_notification(), $ticket, 'LEA-2: notified of a lease that ends with its session');

# A lease of acquire_leases has no end yet while the call waits for another key.
my $waiting = start($node);
my $last = holds('the last');
send_query($waiting, q(SELECT outcome FROM interlock.acquire_leases(ARRAY['the first', 'the last'], '1 s', wait => '10 min')));
$node->poll_query_until('postgres', q(SELECT count(*) = 1 FROM interlock.leases WHERE key = 'the first')) or die 'it has no lease';
(undef, $ticket) = asks('the first', 'ann');
$node->poll_query_until('postgres', q(SELECT next_deadline > now() + interval '5 min' FROM interlock.sweeper WHERE database = 'postgres')) or diag(ask('TABLE interlock.sweeper')) || die 'the sweeper comes by chance';
forget_notifications();
release('the last', $last);
is(answer($waiting), 'acquired', 'acquire_leases has waited');
is(next_notification(), $ticket, 'LEA-2: who has asked meanwhile is notified when the lease expires');

# On paths, and of those whose notifications nobody hears
tries('acquired, notified', 'a channel that nobody listens to disturbs nobody, a lease above the key was in the way', sub {
    my ($path) = @_;
    my $token = holds("$path/a");
    my %ticket = map { $_ => (asks($_, 'ann'))[1] } $path, "$path/a/b";
    query($listener, 'UNLISTEN *');
    release("$path/a", $token);
    my ($outcome, $of_path) = asks($path, 'ann');
    query($listener, 'LISTEN interlock_lease');
    forget_notifications();
    return $outcome if $outcome ne 'acquired';
    release($path, $of_path);
    return next_notification() eq $ticket{"$path/a/b"} ? 'acquired, notified' : 'another notification';
});

# Input
is(query($one, q(SELECT interlock.acquire_lease('x', notify => true))), '22004', 'a ticket needs a holder');
is(query($one, q(SELECT interlock.acquire_lease('x', holder => 'h', notify => NULL))), '22004', 'true or false');

# --- What counts for a role -----------------------------------------------------------------------------------------------

# SEC-4: break_leases frees the room that tickets of a role have; those of others stay
ask("CREATE ROLE $_") for 'asker', 'patient';
sub used_by { return ask("SELECT coalesce(sum(used), 0) FROM interlock.usage WHERE what = 'leases' AND role = '$_[0]' AND database IS NULL"); }
holds('room', "'1 hour'");
my $as_role = start($node);
query($as_role, 'SET ROLE asker');
is(query($as_role, "SELECT count(ticket) FROM generate_series(1, 320) g, LATERAL interlock.acquire_lease(CASE WHEN g % 16 = 0 THEN 'room/other' ELSE 'room' END,
    holder => 'h' || g, notify => true)"), 320, 'a role has many tickets');
query($as_role, 'SET ROLE patient');
my $patient = query($as_role, q(SELECT ticket FROM interlock.acquire_lease('room', holder => 'h1', notify => true)));
is(used_by('asker'), 330, 'which count');
is(ask(q(SELECT interlock.break_leases('room', 'too many', 'asker'))), 0, 'it has no lease');
is(used_by('asker') . ' ' . used_by('patient'), '30 1', 'SEC-4: break_leases ends the tickets of the role, by the pattern');
is(ask(q(SELECT interlock.break_leases('room%', 'too many', 'asker'))) . ' ' . used_by('asker') . ' ' . used_by('patient'), '0 0 1', 'all of them');
forget_notifications();
is(ask(q(SELECT interlock.break_leases('room', 'of whomever'))), 1, 'without a role it breaks the lease');
is(next_notification(), $patient, 'LEA-2: and who has asked for it is notified');
is(ask(q(SELECT interlock.break_leases('room', 'done', 'patient'))) . used_by('patient'), '00', 'no ticket is left');

# --- A full queue ---------------------------------------------------------------------------------------------------------

SKIP:
{
    skip 'the queue of notifications is too large', 2 if $node->pg_version < 17;
    my $sleeper = start($node);
    query($sleeper, $_) for 'LISTEN x', 'BEGIN', 'SELECT 1';
    query($other, q(DO $$BEGIN PERFORM pg_notify('x', repeat('x', 7000) || i) FROM generate_series(1, 30) i; END$$)) for 1 .. 3;
    1 while (query($other, q(SELECT pg_notify('x', repeat('x', 7900)))) // '') ne '54000' && $other->{error} !~ /./;
    $token = holds('full');
    (undef, $ticket) = asks('full', 'ann');
    is(release('full', $token), 't', 'a full queue of notifications fails no release');
    query($sleeper, 'COMMIT');
    is(next_notification(), $ticket, 'and the notification comes when there is room');
}

# --- A thousand share ten -------------------------------------------------------------------------------------------------

my @pool = map { start($node) } 1 .. 10;
my $clients = 1000;
$token = holds('hot');
my (%client_of, @order, %served, $is_late);
for my $first (0 .. $clients / 10 - 1)
{
    send_query($pool[$_], "SELECT ticket FROM interlock.acquire_lease('hot', '10 min', holder => 'client @{[ $first * 10 + $_ ]}', notify => true)") for 0 .. 9;
    $client_of{ answer($pool[$_]) } = $first * 10 + $_ for 0 .. 9;
}
is(scalar keys %client_of, $clients, 'a thousand wait, none of them on a connection');
is(query($one, q(SELECT count(*) FROM interlock.lease_waiters)), 0, 'no session waits');
forget_notifications();
is(query($pool[0], "SELECT interlock.renew_lease('hot', $token) IS NOT NULL"), 't', 'LEA-2: the holder renews');
is(query($pool[0], "SELECT interlock.release_lease('hot', $token)"), 't', 'and releases');
while (keys %served < $clients and (my $number = any_notification()))
{
    my $session = $pool[ rand @pool ];
    my $client = $client_of{$number};
    next if $served{$client};
    query($session, "SELECT outcome, token, ticket FROM interlock.acquire_lease('hot', '10 min', holder => 'client $client', notify => true)");
    my ($outcome, undef, $again) = @{ $session->{rows}[0] };
    $client_of{$again} = $client if $outcome ne 'acquired';
    $is_late ||= $outcome ne 'acquired';
    next if $outcome ne 'acquired';
    $served{$client} = 1;
    push @order, $number;
    query($session, "SELECT interlock.release_lease('hot', $session->{rows}[0][1])");
}
is(scalar keys %served, $clients, 'LEA-2: a thousand are served');
is_deeply(\@order, [ sort { $a <=> $b } @order ], 'LEA-2: in the order of asking') if !$is_late;

# --- What becomes of tickets ----------------------------------------------------------------------------------------------

$token = holds('crash');
asks('crash', 'ann');
forget_notifications();
$node->restart;
($listener, $one) = (start($node), start($node));
query($listener, 'LISTEN interlock_lease');
is(release('crash', $token), 't', 'after a restart the lease is there');
is((asks('crash', 'ann'))[0], 'acquired', 'and a ticket is not: who polls acquires it');
$node->stop;
done_testing();
