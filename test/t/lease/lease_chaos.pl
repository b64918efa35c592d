# Eight clients read and write sets under leases, while clients and backends are paused, killed and canceled, and
# the server is killed, restarted and replaced by its standby. A checker then reads what each client was told.
#
# LEASE_CHAOS_SECONDS=1800 runs it for longer. LEASE_CHAOS_FAULT=no_assert lets the clients write without
# asserting, LEASE_CHAOS_FAULT=immediate takes the grace away: then the checker has to find what goes wrong.
# only with --long

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../lib";
use IPC::Open3;
use List::Util qw(any first max min shuffle);
use POSIX ();
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Server;
use Test::More;
use Time::HiRes qw(clock_gettime sleep CLOCK_MONOTONIC);

my $seconds = $ENV{LEASE_CHAOS_SECONDS} || 40;
my $fault = $ENV{LEASE_CHAOS_FAULT} || '';
my $clients = 8;
my $durable_after = 3;
my $grace = 1.25 * $durable_after;
my $longest_ttl = 5;
my @keys = qw(a a/x a/x/1 a/y b b/z b/z/1 c d e f g h i);
my @pairs = (['c', 'a/y'], ['d', 'b'], ['a/x', 'c'], ['d', 'a'], ['b/z', 'a/x/1'], ['g', 'e']);
my $main = $$;

sub now { return clock_gettime(CLOCK_MONOTONIC); }
sub pick { return $_[ rand @_ ]; }
sub chance { return rand() < $_[0]; }

# --- A session: psql at the other end of two pipes -----------------------------------------------------------

my $current; # the file that says who is the primary: host and port

sub connect_to_primary
{
    my ($name) = @_;
    my ($host, $port) = split ' ', slurp_file($current);
    local $ENV{PGAPPNAME} = $name;
    my $pid = open3(my $in, my $out, undef, 'psql', '-XqAt', '-v', 'VERBOSITY=sqlstate', '-h', $host, '-p', $port, 'postgres');
    return { pid => $pid, in => $in, out => $out, buffer => '', asked => 0 };
}

sub disconnect
{
    my ($session) = @_;
    close $session->{in};
    close $session->{out};
    waitpid $session->{pid}, 0;
}

# Rows and the first error. Dies with "gone" when the session is over, and "hung" when it says nothing.
sub ask
{
    my ($session, $sql) = @_;
    my $mark = ':: ' . ++$session->{asked};
    syswrite($session->{in}, "$sql;\n\\echo $mark\n") or die "gone\n";
    until ($session->{buffer} =~ /^\Q$mark\E$/m)
    {
        my $readable = '';
        vec($readable, fileno $session->{out}, 1) = 1;
        die "hung\n" unless select($readable, undef, undef, 60);
        sysread($session->{out}, $session->{buffer}, 65536, length $session->{buffer}) or die "gone\n";
    }
    my ($answer) = $session->{buffer} =~ /^(.*?)^\Q$mark\E\n/ms;
    $session->{buffer} = '';
    my ($error) = $answer =~ /(?:ERROR|FATAL|WARNING):  (\w+)/;
    die "gone\n" if $answer =~ /FATAL|57P0|25006/; # or it has become a session of a standby
    return { rows => [ grep { length && !/^[A-Z]+:/ } split /\n/, $answer ], error => $error };
}

# --- A client ------------------------------------------------------------------------------------------------
#
# It logs what it does before it does it and what it is told once it is told, and holds leases that are
# { key, token, until }, where `until` is what it was told last, on the clock of all clients. Some it forgets, but
# for a heartbeat that comes too late.

my ($session, $log, $me, $number, $elements, @held, @forgotten);
my $asked = 0;

sub note_down { syswrite($log, join("\t", @_) . "\n"); }

# What the server shows of its monotonic time, back on that clock. A pause in between makes it earlier.
sub told
{
    my ($epoch) = @_;
    my $monotonic = now();
    return sprintf '%.6f', $epoch - Time::HiRes::time() + $monotonic;
}

# An error that is not one of the chaos is noted.
sub ask_server
{
    my ($sql) = @_;
    my $call = now();
    my $answer = ask($session, $sql);
    note_down('error', $answer->{error}, $sql =~ s/\s+/ /gr) if ($answer->{error} || '40001') !~ /^(IL006|40001|57014|01000)$/;
    return ($call, now(), $answer->{error}, @{ $answer->{rows} });
}

sub acquire
{
    my $ttl = chance(0.2) ? pick(4, $longest_ttl) : pick(0.4, 1, 1.5, 2);
    my $wait = chance(0.7) ? 0 : sprintf '%.3f', rand(2);
    my $mode = chance(0.2) ? 'shared' : 'exclusive';
    my @wanted = chance(0.15) ? @{ pick(@pairs) } : (pick(@keys));
    $mode = 'exclusive' if @wanted > 1;
    my $keys = join ',', @wanted;
    my $times = "'$ttl s', '$wait s'";
    my $holder = "$me.$number " . ++$asked;
    my $stay = @wanted == 1 && chance(0.15) ? sprintf '%.3f', rand(min($ttl, 1.5)) : 0;
    my $more = "holder => '$holder', at_least => '$stay s', resume => " . (chance(0.3) ? 'true' : 'false') . ', notify => ' . (chance(0.3) ? 'true' : 'false');
    note_down('acquire', now(), $keys, $mode, $ttl, $wait, $stay);
    my ($call, $answer, $error, $row) = ask_server(@wanted > 1
        ? "SELECT outcome, array_to_string(tokens, ','), extract(epoch FROM expires_at) FROM interlock.acquire_leases('{$keys}', $times)"
        : "SELECT outcome, token, extract(epoch FROM expires_at) FROM interlock.acquire_lease('$keys', $times, mode => '$mode', $more)");
    return if $error;
    my ($outcome, $tokens, $epoch) = split /\|/, $row;
    note_down($outcome, $call, $answer, $keys) if $outcome ne 'acquired';
    return if $outcome ne 'acquired';
    my @tokens = split /,/, $tokens;
    my $until = told($epoch);
    my $long = $ttl > $durable_after ? 1 : 0;
    for my $i (0 .. $#wanted)
    {
        note_down('grant', $wanted[$i], $tokens[$i], $mode, $call, $answer, $until, $long, $stay ? $call + $stay : 0);
        push @held, { key => $wanted[$i], token => $tokens[$i], until => $until, mode => $mode, holder => @wanted == 1 ? $holder : undef };
    }
}

# As after an acquire whose answer was lost: the lease must be the same one, or lost.
sub resume
{
    my ($lease) = @_;
    my $ttl = pick(0.4, 1, 2);
    my ($call, $answer, $error, $row) = ask_server("SELECT outcome, token, extract(epoch FROM expires_at) "
        . "FROM interlock.acquire_lease('$lease->{key}', '$ttl s', mode => '$lease->{mode}', holder => '$lease->{holder}', resume => true)");
    return if $error;
    my ($outcome, $token, $epoch) = split /\|/, $row;
    return if $outcome eq 'held' || $outcome eq 'recovering';
    my $until = told($epoch);
    note_down('changed', 'resumed', $token, $lease->{token}) if $outcome eq 'resumed' && $token != $lease->{token};
    note_down('renew', $lease->{token}, $call, $answer, $outcome eq 'resumed' ? $until : 'lost', 0);
    if ($outcome eq 'resumed') { $lease->{until} = $until; return; }
    lose($lease);
    note_down('grant', $lease->{key}, $token, $lease->{mode}, $call, $answer, $until, 0, 0);
    push @held, { %$lease, token => $token, until => $until };
}

sub lose { my ($lease) = @_; @held = grep { $_ != $lease } @held; }

sub forget { push @forgotten, splice @held; splice @forgotten, 0, max(0, @forgotten - 8); }

# After a crash nobody but the holder knows the time to live.
sub renew
{
    my ($lease, $reclaims) = @_;
    my $ttl = !$reclaims && chance(0.6) ? 0 : chance(0.2) ? 4 : pick(0.4, 1, 2);
    my $arguments = "'$lease->{key}', $lease->{token}" . ($ttl ? ", '$ttl s'" : '');
    my ($call, $answer, $error, $row) = ask_server("SELECT coalesce(extract(epoch FROM interlock.renew_lease($arguments))::text, 'lost')");
    return if $error;
    my $until = $row eq 'lost' ? 'lost' : told($row);
    note_down('renew', $lease->{token}, $call, $answer, $until, $ttl > $durable_after ? 1 : 0);
    $lease->{until} = $until;
    lose($lease) if $until eq 'lost';
    @forgotten = grep { $_ != $lease } @forgotten;
}

sub release
{
    my ($lease) = @_;
    note_down('release', $lease->{token}, now());
    lose($lease);
    my ($call, $answer, $error, $row) = ask_server("SELECT interlock.release_lease('$lease->{key}', $lease->{token})");
    note_down('released', $lease->{token}, $call, $answer, $row) unless $error;
}

sub dawdle { sleep(chance(0.85) ? rand(0.02) : chance(0.8) ? rand(0.5) : 2.5); }

# The keys whose sets a lease covers.
sub below { my ($key) = @_; return grep { "$_/" =~ m{^\Q$key\E/} } @keys; }

# The set of a key as it is now, and nothing if it cannot be told.
sub read_set
{
    my ($rows, $key) = @_;
    my $row = first { /^set\|\Q$key\E\|/ } @$rows or return;
    return [ split /,/, (split /\|/, $row, 4)[3] // '' ];
}

sub select_set { return "SELECT 'set', key, token, array_to_string(elements, ',') FROM sets WHERE key = '$_[0]'"; }

# Reads the sets, works, and writes them with one more element; the row is not protected by anything but the
# leases. In mode shared it only reads, twice.
sub work
{
    my @leases = @held;
    my $shared = $leases[0]{mode} eq 'shared';
    my @sets = map { pick(below($_->{key})) } @leases;
    my $isolation = $shared || chance(0.9) ? 'READ COMMITTED' : 'REPEATABLE READ';
    my @asserts = map { "SELECT interlock.assert_lease('$_->{key}', $_->{token})" } @leases;
    @asserts = () if $fault eq 'no_assert';
    my ($call, $answer, $error, @rows) = ask_server(join '; ', "BEGIN ISOLATION LEVEL $isolation", @asserts, map { select_set($_) } @sets);
    my $lost = ($error || '') eq 'IL006';
    note_down('assert', join(',', map { $_->{token} } @leases), $call, $answer, $lost ? 'lost' : 'held') if @asserts && (!$error || $lost);
    if ($error)
    {
        ask_server('ROLLBACK');
        @held = () if $lost;
        return;
    }
    dawdle();
    renew(pick(@held)) if @held && chance(0.2);
    release(pick(@held)) if @held && chance(0.1); # the assertion protects what is left of the transaction
    return read_again(\@leases, \@sets, \@rows, $answer) if $shared;
    write_sets(\@leases, \@sets, \@rows, $answer);
}

sub read_again
{
    my ($leases, $sets, $before, $since) = @_;
    my (undef, undef, $error, @rows) = ask_server(select_set($sets->[0]));
    my ($first, $second) = map { join ',', @{ read_set($_, $sets->[0]) || ['?'] } } $before, \@rows;
    finish('COMMIT', $leases, $since, $error);
    note_down('changed', $sets->[0], $leases->[0]{token}, $first, $second) if !$error && $first ne $second;
}

sub write_sets
{
    my ($leases, $sets, $rows, $since) = @_;
    my (@sql, @new);
    for my $i (0 .. $#$sets)
    {
        my $set = read_set($rows, $sets->[$i]);
        my $element = $number . sprintf '%05d', ++$elements;
        if (@$set >= 40) # a set that is full is put away
        {
            push @sql, "INSERT INTO archive SELECT '$sets->[$i]', unnest('{" . join(',', @$set) . "}'::int8[])";
            $set = [];
        }
        push @sql, "UPDATE sets SET elements = '{" . join(',', @$set, $element) . "}', token = $leases->[$i]{token} WHERE key = '$sets->[$i]'",
            "INSERT INTO history (key, token, element) VALUES ('$sets->[$i]', $leases->[$i]{token}, $element)";
        note_down('write', $element, $sets->[$i], $leases->[$i]{token});
        push @new, $element;
    }
    my (undef, undef, $error) = ask_server(join '; ', @sql);
    my $done = finish(chance(0.05) ? 'ROLLBACK' : 'COMMIT', $leases, $since, $error);
    note_down($done, join ',', @new);
}

# Ends the transaction, which has kept others out since it asserted. A warning leaves its outcome open.
sub finish
{
    my ($how, $leases, $since, $error) = @_;
    $how = 'ROLLBACK' if $error;
    my ($call, undef, $warning) = ask_server($how);
    return 'unknown' if $warning;
    note_down('open', join(',', map { $_->{token} } @$leases), $since, $call) unless $error || $fault eq 'no_assert';
    return lc $how;
}

sub hold
{
    for (1 .. int rand 4)
    {
        return unless @held;
        my @named = grep { defined $_->{holder} } @held;
        if (@named && chance(0.15)) { resume(pick(@named)); }
        elsif (chance(0.65)) { work(); }
        elsif (chance(0.7)) { renew(pick(@held)); }
        else { dawdle(); }
    }
    my $how = rand();
    if ($how < 0.85) { release($_) for @held; }
    elsif ($how < 0.95) { forget(); } # it expires
    elsif (@held) { sleep(max(0, $held[0]{until} - now()) + rand(0.3)); } # and writes when it is too late
}

sub run_client
{
    until (-e "$current.stop")
    {
        eval {
            if (!$session)
            {
                $session = connect_to_primary("client $me");
                ask($session, 'SELECT 1');
                note_down('connected', now());
                my @late = grep { chance(0.5) } @forgotten;
                renew($_, 1) for @held, @late;
                @held = grep { $_->{until} > now() } @held;
            }
            acquire() unless @held;
            hold() if @held;
            sleep(rand(0.02));
        };
        next unless $@;
        note_down('gone', now(), $@ =~ s/\n//r);
        disconnect($session);
        $session = undef;
        sleep(0.1);
    }
    $SIG{ALRM} = 'DEFAULT';
    eval { release($_) for @held; };
    note_down('end', now());
}

# --- The checker ---------------------------------------------------------------------------------------------

my $slack = 0.002; # what the two clocks can differ between two reads

sub conflicts
{
    my ($x, $y) = @_;
    return 0 if $x->{mode} eq 'shared' && $y->{mode} eq 'shared';
    return "$x->{key}/" =~ m{^\Q$y->{key}\E/} || "$y->{key}/" =~ m{^\Q$x->{key}\E/};
}

# Nothing that a holder has believed lasts longer than to that moment.
sub cut
{
    my ($lease, $moment) = @_;
    $_->[1] = min($_->[1], $moment) for @{ $lease->{believed} };
}

# What the logs say: grants by token, with the times in which their holders could rely on them, and elements.
# A loss is judged at once: before its time only a crash takes a lease, and never one with a record of its own.
sub read_logs
{
    my ($crashes, @lines) = @_;
    my %seen = (grants => {}, elements => {}, wrong => [], checks => [], order => []);
    my $grants = $seen{grants};
    my $wrong = sub { push @{ $seen{wrong} }, "@_"; };
    my $lost = sub {
        my ($lease, $answer, $line) = @_;
        my $until = $lease->{believed}[-1][1];
        my $crashed = any { $_->[1] >= $lease->{call} && $_->[0] <= $answer } @$crashes;
        $wrong->('lost early:', $line, "until $until") if $answer + $slack < $until && !$lease->{released} && ($lease->{long} || !$crashed);
        cut($lease, $answer);
        $lease->{lost} = 1;
    };
    for my $line (@lines)
    {
        my ($what, @rest) = split /\t/, $line;
        if ($what eq 'grant')
        {
            my ($key, $token, $mode, $call, $answer, $until, $long, $stays) = @rest;
            my $lease = { key => $key, token => $token, mode => $mode, call => $call, answer => $answer, long => $long, believed => [ [ $answer, $until ] ], open => [] };
            $wrong->('same token twice:', $line) if $grants->{$token};
            $grants->{$token} = $lease;
            push @{ $lease->{open} }, [ $answer, $stays ] if $stays; # released or not
            push @{ $seen{order} }, $lease;
        }
        elsif ($what eq 'renew')
        {
            my ($token, $call, $answer, $until, $long) = @rest;
            my $lease = $grants->{$token};
            if ($until eq 'lost') { $lost->($lease, $answer, $line); next; }
            $lease->{long} ||= $long;
            push @{ $seen{checks} }, [ $lease, $call, $answer, $line ];
            push @{ $lease->{believed} }, [ $answer, $until ] if $answer > $lease->{believed}[-1][1];
            $lease->{believed}[-1][1] = max($lease->{believed}[-1][1], $until);
        }
        elsif ($what eq 'release') { cut($grants->{ $rest[0] }, $rest[1]); $grants->{ $rest[0] }{released} = 1; }
        elsif ($what eq 'assert')
        {
            my ($tokens, $call, $answer, $outcome) = @rest;
            my @leases = map { $grants->{$_} } split /,/, $tokens;
            if ($outcome eq 'held') { push @{ $seen{checks} }, [ $_, $call, $answer, $line ] for @leases; }
            elsif (@leases == 1) { $lost->($leases[0], $answer, $line); }
            else { cut($_, $answer) for @leases; }
        }
        elsif ($what eq 'open') { push @{ $grants->{$_}{open} }, [ @rest[1, 2] ] for split /,/, $rest[0]; }
        elsif ($what eq 'write') { $seen{elements}{ $rest[0] } = { key => $rest[1], token => $rest[2], outcome => 'unknown' }; }
        elsif ($what eq 'commit' || $what eq 'rollback') { $seen{elements}{$_}{outcome} = $what for split /,/, $rest[0]; }
        elsif ($what eq 'changed' || $what eq 'error' || ($what eq 'gone' && $rest[1] eq 'hung')) { $wrong->($line); }
    }
    return \%seen;
}

# A grant that was answered before another was asked for has the smaller token.
sub check_tokens
{
    my ($seen) = @_;
    my @wrong;
    my $highest = 0;
    my @answered = sort { $a->{answer} <=> $b->{answer} } @{ $seen->{order} };
    for my $lease (sort { $a->{call} <=> $b->{call} } @{ $seen->{order} })
    {
        $highest = max($highest, shift(@answered)->{token}) while @answered && $answered[0]{answer} < $lease->{call};
        push @wrong, "token went back: $lease->{token} of $lease->{key} after $highest" if $lease->{token} <= $highest;
    }
    return @wrong;
}

# Two that exclude each other are never held at the same time: each as long as its holder could believe it, or
# had a transaction open that has asserted it.
sub check_overlaps
{
    my ($seen) = @_;
    my (@wrong, @active);
    my @times;
    for my $lease (@{ $seen->{order} })
    {
        push @times, map { [ $lease, @$_ ] } grep { $_->[0] < $_->[1] } @{ $lease->{believed} }, @{ $lease->{open} };
    }
    for my $time (sort { $a->[1] <=> $b->[1] } @times)
    {
        my ($lease, $from, $to) = @$time;
        @active = grep { $_->[2] > $from + $slack } @active;
        for my $other (@active)
        {
            next if $other->[0] == $lease || !conflicts($lease, $other->[0]) || min($to, $other->[2]) - $from <= $slack;
            push @wrong, sprintf 'overlap: %s %s %s from %s to %s beside %s %s %s from %s to %s',
                (map { ($_->[0]{token}, $_->[0]{mode}, $_->[0]{key}, $_->[1], $_->[2]) } $time, $other);
        }
        push @active, $time;
    }
    return @wrong;
}

# Once something that excludes it was granted, an older token cannot be asserted or renewed.
sub check_stale
{
    my ($seen) = @_;
    my (%of, @wrong);
    push @{ $of{ $_->{key} } }, $_ for sort { $a->{answer} <=> $b->{answer} } @{ $seen->{order} };
    for my $check (@{ $seen->{checks} })
    {
        my ($lease, $call, undef, $line) = @$check;
        for my $grants (values %of)
        {
            next unless conflicts({ key => $grants->[0]{key}, mode => 'exclusive' }, $lease);
            my ($low, $high) = (0, scalar @$grants); # the first that was answered after the call
            while ($low < $high)
            {
                my $middle = int(($low + $high) / 2);
                if ($grants->[$middle]{answer} < $call) { $low = $middle + 1; } else { $high = $middle; }
            }
            for (my $i = $low - 1; $i >= 0 && $grants->[$i]{answer} > $lease->{call}; $i--)
            {
                push @wrong, "stale: $line after the grant of $grants->[$i]{token}"
                    if $grants->[$i]{token} > $lease->{token} && conflicts($grants->[$i], $lease);
            }
        }
    }
    return @wrong;
}

# Sets and history as the database has them, [key, element] and [key, token, element] in the order of commits.
sub check_sets
{
    my ($seen, $sets, $history) = @_;
    my (%is, %last, %was, @wrong);
    my $elements = $seen->{elements};
    for (@$sets)
    {
        my ($key, $element) = @$_;
        push @wrong, "twice: $element" if $is{$element}++;
        push @wrong, "nobody wrote: $element of $key" unless $elements->{$element} && $elements->{$element}{key} eq $key;
        push @wrong, "rolled back: $element" if ($elements->{$element}{outcome} || '') eq 'rollback';
    }
    for (@$history)
    {
        my ($key, $token, $element) = @$_;
        $was{$element} = 1;
        push @wrong, "old token: $token of $key after $last{$key}" if $token < ($last{$key} || 0);
        push @wrong, "lost: $element of $key, in the history" unless $is{$element};
        $last{$key} = max($token, $last{$key} || 0);
    }
    push @wrong, map { "lost: $_ of $elements->{$_}{key}, confirmed" } grep { $elements->{$_}{outcome} eq 'commit' && !($is{$_} && $was{$_}) } keys %$elements;
    return @wrong;
}

sub check_all
{
    my ($seen, $sets, $history) = @_;
    return (@{ $seen->{wrong} }, check_tokens($seen), check_overlaps($seen), check_stale($seen), check_sets($seen, $sets, $history));
}

sub kind_of { my ($kind) = $_[0] =~ /^([a-z ]+)/; return $kind; }

# --- The checker sees what it is there to see ----------------------------------------------------------------

sub check_lines
{
    my ($sets, $history, @lines) = @_;
    my $seen = read_logs([ [ 100, 101 ] ], map { s/ /\t/gr } @lines);
    my @wrong = check_all($seen, [ map { [ split / / ] } @$sets ], [ map { [ split / / ] } @$history ]);
    return join ', ', sort map { kind_of($_) } @wrong;
}

my @good = ('grant a 4 exclusive 1 2 12 0', 'assert 4 2 3 held', 'write 1 a 4', 'commit 1', 'open 4 3 4', 'release 4 5',
    'grant a/x 8 exclusive 5.5 6 16 0', 'assert 8 6 7 held', 'write 2 a 8', 'commit 2', 'open 8 7 8');
is(check_lines([ 'a 1', 'a 2' ], [ 'a 4 1', 'a 8 2' ], @good), '', 'a good history is good');
is(check_lines([], [], 'grant a 4 exclusive 1 2 12 0 6', 'release 4 3', 'grant a/x 8 exclusive 3.5 4 16 0 0'), 'overlap', 'a lease that did not stay is found');
is(check_lines([], [], 'grant a 4 exclusive 1 2 12 0 3.5', 'release 4 3', 'grant a/x 8 exclusive 3.5 4 16 0 0'), '', 'and one that did is good');
is(check_lines(['a 2'], [ 'a 4 1', 'a 8 2' ], @good), 'lost, lost', 'a lost element is found');
is(check_lines([ 'a 1', 'a 2', 'a 2' ], [ 'a 4 1', 'a 8 2' ], @good), 'twice', 'and one that is there twice');
is(check_lines([ 'a 1', 'a 2', 'a 3' ], [ 'a 4 1', 'a 8 2' ], @good), 'nobody wrote', 'one that nobody wrote');
is(check_lines([ 'a 1', 'a 2' ], [ 'a 8 2', 'a 4 1' ], @good), 'old token', 'a write with an old token');
is(check_lines(['a 1'], ['a 4 1'], 'grant a 4 exclusive 1 2 12 0', 'write 1 a 4', 'rollback 1'), 'rolled back', 'one that was rolled back');
is(check_lines([], [], 'grant a 4 exclusive 1 2 12 0', 'grant a/x 8 shared 5 6 16 0'), 'overlap', 'two at once');
is(check_lines([], [], 'grant a 4 shared 1 2 12 0', 'grant a/x 8 shared 5 6 16 0'), '', 'but not two that share');
is(check_lines([], [], 'grant a/x 4 exclusive 1 2 12 0', 'grant a/y 8 exclusive 5 6 16 0'), '', 'nor siblings');
is(check_lines([], [], 'grant a 4 exclusive 1 2 12 0', 'renew 4 10 11 lost', 'grant a 8 exclusive 11 12 22 0'), 'lost early', 'one lost before its time');
is(check_lines([], [], 'grant a 4 exclusive 99 100 112 0', 'renew 4 110 111 lost', 'grant a 8 exclusive 111 112 122 0'), '', 'but not after a crash');
is(check_lines([], [], 'grant a 4 exclusive 99 100 112 1', 'renew 4 110 111 lost'), 'lost early', 'unless it has a record');
is(check_lines([], [], 'grant a 4 exclusive 1 2 3 0', 'grant a 8 exclusive 4 5 6 0', 'renew 4 7 8 9 0'), 'stale', 'a renewal of what another had meanwhile');
is(check_lines([], [], 'grant a 4 exclusive 1 2 3 0', 'open 4 2.5 6', 'grant a 8 exclusive 4 5 7 0'), 'overlap', 'a grant beside an open transaction');
is(check_lines([], [], 'grant a 8 exclusive 1 2 3 0', 'grant b 4 exclusive 4 5 6 0'), 'token went back', 'a token that goes back');
is(check_lines([], [], 'grant a 4 exclusive 1 2 3 0', 'grant b 4 exclusive 4 5 6 0'), 'same token twice, token went back', 'and one that is used twice');

# --- The servers ---------------------------------------------------------------------------------------------

my (@nodes, $primary, $standby);

sub standby_for_primary
{
    my $name = 'standby' . scalar @nodes;
    $primary->backup($name);
    $standby = PostgreSQL::Test::Cluster->new($name);
    $standby->init_from_backup($primary, $name, has_streaming => 1);
    $standby->append_conf('postgresql.conf', "synchronous_standby_names = ''");
    $standby->start;
    push @nodes, $standby;
    $primary->poll_query_until('postgres', 'SELECT count(*) > 0 FROM pg_stat_replication');
    $primary->append_conf('postgresql.conf', "synchronous_standby_names = '$name'");
    $primary->reload;
    $primary->poll_query_until('postgres', "SELECT count(*) = 1 FROM pg_stat_replication WHERE sync_state = 'sync'");
}

sub point_clients { append_to_file("$current.new", join ' ', $primary->host, $primary->port); rename "$current.new", $current; }

# What a query of the chaos says; nothing when there is no server, or it is in the way of itself.
sub look
{
    my ($sql) = @_;
    my ($out, $late) = ('', 0);
    my $status = $primary->psql('postgres', $sql, stdout => \$out, stderr => \my $err, timeout => 5, timed_out => \$late);
    return $late || $status ? '' : $out;
}

# --- The chaos -----------------------------------------------------------------------------------------------

my (@running, %paused, @crashes, @phases, %count, @logs, @idle);
my $generation = 0;
my $patience = 120; # on a machine that is busy with other things

sub start_client
{
    my ($slot) = @_;
    my $file = "$current.client.$slot." . ++$generation;
    my $pid = fork // die;
    if ($pid == 0)
    {
        setpgrp;
        @SIG{qw(TERM INT PIPE)} = ('DEFAULT', 'DEFAULT', 'IGNORE');
        srand($$ + int(now() * 1000));
        ($me, $number, $elements) = ($slot, $generation, 0);
        open($log, '>', $file) or POSIX::_exit(1);
        eval { run_client() };
        note_down('error', $@) if $@;
        POSIX::_exit(0);
    }
    setpgrp $pid, $pid;
    push @logs, { slot => $slot, file => $file };
    $running[$slot] = $pid;
}

# Pauses a process, or with a negative number its group.
sub pause
{
    my ($pid, $duration) = @_;
    $paused{$pid} = now() + $duration if kill 'STOP', $pid;
}

sub wake
{
    my (@pids) = @_;
    for (@pids) { kill 'CONT', $_; delete $paused{$_}; }
}

sub wake_backends { wake(grep { $_ > 0 } keys %paused); }

# Waits, and wakes who has been paused for long enough.
sub let_pass
{
    my ($until) = @_;
    do
    {
        wake(grep { $paused{$_} <= now() } keys %paused);
        sleep(0.02);
    } while (now() < $until);
}

# When the client was granted a lease last.
sub last_grant
{
    my ($slot) = @_;
    return max(0, map { (split /\t/)[5] } map { grep { /^grant/ } split /\n/, slurp_file($_->{file}) } grep { $_->{slot} == $slot && -e $_->{file} } @logs);
}

# Waits until some of the clients, or all of them, were granted leases after the last large disturbance.
sub await_grants
{
    my ($who, $enough) = @_;
    my $up = $phases[-1]{up};
    my $from = now();
    my @without;
    do
    {
        let_pass(now() + 0.1);
        @without = grep { last_grant($_) <= $up } 0 .. $clients - 1;
        return if $clients - @without >= $enough;
    } while (now() < $from + $patience);
    push @idle, "$who after $phases[-1]{what}: clients @without";
}

sub backend { return look("SELECT pid, application_name FROM pg_stat_activity WHERE application_name ~ '^client' AND $_[0] ORDER BY random() LIMIT 1"); }

my %small = (
    pause_client => sub { pause(-$running[ rand $clients ], 0.5 + rand 2.5); },
    pause_client_in_transaction => sub {
        my ($slot) = backend("state = 'idle in transaction'") =~ /client (\d+)/ or return;
        pause(-$running[$slot], 0.5 + rand 2.5);
    },
    pause_backend => sub {
        my ($pid) = backend(pick('true', "state <> 'idle'", "wait_event = 'PgInterlockLease'")) =~ /^(\d+)/ or return;
        pause($pid, 0.5 + rand 2.5);
    },
    kill_client => sub {
        my $slot = int rand $clients;
        wake(-$running[$slot]) if $paused{ -$running[$slot] };
        kill 'KILL', -$running[$slot];
        waitpid $running[$slot], 0;
        start_client($slot);
    },
    cancel_waiter => sub { look('SELECT pg_cancel_backend(pid) FROM interlock.lease_waiters ORDER BY random() LIMIT 1'); },
    terminate => sub {
        my ($pid) = backend("state <> 'idle'") =~ /^(\d+)/ or return;
        look("SELECT pg_terminate_backend($pid)");
    },
    terminate_waiter => sub { look('SELECT pg_terminate_backend(pid) FROM interlock.lease_waiters ORDER BY random() LIMIT 1'); });

# Kills a server, and returns when no process of it is left, as far as one can see.
sub kill_server
{
    my ($node) = @_;
    my ($postmaster) = slurp_file($node->data_dir . '/postmaster.pid') =~ /^(\d+)/;
    my $directory = $node->data_dir;
    $node->kill9;
    for (1 .. 1000)
    {
        last unless kill(0, $postmaster) || any { (readlink("$_/cwd") || '') eq $directory } glob '/proc/[0-9]*';
        let_pass(now());
    }
}

my %large = (
    crash => sub {
        my ($pid) = backend(pick('true', "state <> 'idle'")) =~ /^(\d+)/ or return;
        kill 'KILL', $pid;
        poll_over_crash($primary, 'SELECT true');
    },
    kill => sub { kill_server($primary); $primary->start; },
    immediate => sub { $primary->stop('immediate'); $primary->start; },
    restart => sub { $primary->stop('fast'); $primary->start; },
    promote => sub {
        if (chance(0.5)) { kill_server($primary); } else { $primary->stop('immediate'); }
        $standby->promote;
        ($primary, $standby) = ($standby, undef);
        point_clients();
    });

sub disturb
{
    my ($what) = @_;
    wake_backends();
    pause(-$running[$_], 0.5 + rand 2.5) for $what eq 'restart' ? () : (shuffle 0 .. $clients - 1)[ 0, 1 ];
    my $start = now();
    $large{$what}->();
    $count{$what}++;
    push @crashes, [ $start, now() ] if $what ne 'restart';
    push @phases, { what => $what, start => $start, up => now() };
}

END
{
    if ($$ == $main)
    {
        my $status = $?;
        kill 'CONT', $_ for keys %paused;
        kill 'KILL', map { -$_ } grep { $_ } @running;
        $? = $status;
    }
}

$primary = PostgreSQL::Test::Cluster->new('primary');
push @nodes, $primary;
$current = $primary->basedir . '/current';
$primary->init(allows_streaming => 1);
$primary->append_conf('postgresql.conf', qq(
shared_preload_libraries = 'pg_interlock'
restart_after_crash = on
log_statement = none
log_min_messages = log
log_min_error_statement = panic
interlock.sweeper = off
interlock.lease_durable_after = '$durable_after s'
wal_retrieve_retry_interval = '100 ms'
max_wal_senders = 5
));
$primary->append_conf('postgresql.conf', 'interlock.lease_recovery = immediate') if $fault eq 'immediate';
$primary->start;
$primary->safe_psql('postgres', q(
    CREATE EXTENSION pg_interlock;
    CREATE TABLE sets (key text PRIMARY KEY, token int8 NOT NULL DEFAULT 0, elements int8[] NOT NULL DEFAULT '{}');
    CREATE TABLE archive (key text, element int8);
    CREATE TABLE history (serial bigserial PRIMARY KEY, key text, token int8, element int8);
));
$primary->safe_psql('postgres', "INSERT INTO sets VALUES ('$_')") for @keys;
standby_for_primary();
point_clients();

my $begin = now();
my $end = $begin + $seconds;
start_client($_) for 0 .. $clients - 1;
my @deck;
my @promotions = $seconds < 120 ? ($begin + $seconds / 2) : map { $begin + 45 * $_ } 1 .. $seconds / 45;
my $next_large = $begin + 4;
my $served = 1; # since the last large disturbance, or the next one comes before the grace is over
while (now() < $end - 3)
{
    let_pass(now() + 0.3 + rand 0.9);
    if ($standby && @promotions && now() >= $promotions[0])
    {
        shift @promotions;
        await_grants('nobody', 1) if @phases && $served;
        disturb('promote');
        standby_for_primary() if @promotions;
        ($served, $next_large) = (1, now() + 7);
    }
    elsif (now() >= $next_large)
    {
        @deck = shuffle grep { $_ ne 'promote' } keys %large unless @deck;
        await_grants('nobody', 1) if @phases && $served;
        disturb(shift @deck);
        $served = chance(0.75);
        $next_large = now() + ($served ? 7 : 1 + rand 1); # or again, during the grace
    }
    else
    {
        my $what = pick(sort keys %small);
        $small{$what}->();
        $count{$what}++;
    }
}
let_pass($end);
wake(keys %paused);
await_grants('not all', $clients);
append_to_file("$current.stop", '');

# --- The end -------------------------------------------------------------------------------------------------

my @hung;
for my $slot (0 .. $clients - 1)
{
    my $done = 0;
    for (1 .. 900) { last if $done = waitpid($running[$slot], POSIX::WNOHANG()); sleep(0.1); }
    push @hung, $slot unless $done;
    kill 'KILL', -$running[$slot] unless $done;
    $running[$slot] = 0;
}
is("@hung", '', 'every client comes to its end');

my $wait = $longest_ttl + $grace + $patience;
my @stuck = grep { $primary->safe_psql('postgres', qq(
    WITH lease AS MATERIALIZED (SELECT * FROM interlock.acquire_lease('$_', '1 min', '$wait s'))
    SELECT outcome, interlock.release_lease('$_', token) FROM lease)) ne 'acquired|t' } @keys;
is("@stuck", '', 'every key is free after the longest time to live and the grace');
is($primary->safe_psql('postgres', 'SELECT count(*) FROM interlock.lease_waiters'), 0, 'nobody waits');

my @sets = map { [ split /\|/ ] } split /\n/, $primary->safe_psql('postgres', 'SELECT key, unnest(elements) FROM sets UNION ALL TABLE archive');
my @history = map { [ split /\|/ ] } split /\n/, $primary->safe_psql('postgres', 'SELECT key, token, element FROM history ORDER BY serial');
my @lines;
for my $client (@logs)
{
    push @lines, split /\n/, slurp_file($client->{file});
}
my $seen = read_logs(\@crashes, @lines);
my @wrong = check_all($seen, \@sets, \@history);

my @grants = @{ $seen->{order} };
my (%before, %takes);
$takes{ $_->{token} } = 1 for grep { my $last = $before{ $_->{key} }; $before{ $_->{key} } = $_; $last && !$last->{released} && $_->{mode} eq 'exclusive' }
    sort { $a->{token} <=> $b->{token} } @grants;
note(sprintf '%d s: %d grants (%d long), %d renewals and assertions, %d losses told, %d commits, %d elements, %d expiries, %d takeovers',
    $seconds, scalar @grants, scalar(grep { $_->{long} } @grants), scalar @{ $seen->{checks} }, scalar(grep { $_->{lost} } @grants),
    scalar(grep { $_->{outcome} eq 'commit' } values %{ $seen->{elements} }), scalar @sets, scalar(grep { !$_->{released} } @grants), scalar keys %takes);
note(join ', ', map { "$_ $count{$_}" } sort keys %count);

if ($fault)
{
    my %kinds;
    $kinds{ kind_of($_) }++ for @wrong;
    note('found: ' . join ', ', map { "$_ $kinds{$_}" } sort keys %kinds);
    my $expected = $fault eq 'immediate' ? qr/^overlap/ : qr/^(lost:|old token)/;
    cmp_ok(scalar(grep { /$expected/ } @wrong), '>', 0, "the fault $fault is found");
}
else
{
    is(join("\n", @wrong[ 0 .. min(19, $#wrong) ]), '', 'nobody was told what is not so');
    is(join(', ', @idle), '', 'leases are granted in every phase, and to every client at the end');
}
cmp_ok(scalar @grants, '>', 100, 'leases are granted');
cmp_ok(scalar(grep { $_->{outcome} eq 'commit' } values %{ $seen->{elements} }), '>', 50, 'elements are written');
cmp_ok($count{promote} || 0, '>', 0, 'a standby was promoted');
unlike(slurp_file($_->logfile), qr/PANIC|TRAP|terminated by signal (?!9)/, $_->name . ' did not crash by itself') for @nodes;
$_->stop('immediate') for $primary, grep { $_ } $standby;
done_testing();
