# Random calls by eight sessions, canceled and killed at random, and a checker that reads what they say they
# hold: no two may hold what excludes each other, nothing may deadlock, nothing may be left over.
#
# A session logs a grant after it has it and a release before it gives it back. All write to one log, so what
# overlaps there was held at the same time. STRESS_SECONDS=600 runs it for longer.

use strict;
use warnings;
use List::Util qw(min);
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $seconds = $ENV{STRESS_SECONDS} || 4;
my $node = PostgreSQL::Test::Cluster->new('main');
$node->init;
$node->append_conf('postgresql.conf', q(
shared_preload_libraries = 'pg_interlock'
log_statement = none
log_error_verbosity = terse
log_min_error_statement = panic
interlock.key_names = 128
interlock.sweeper = off
fsync = off
));
$node->start;
$node->safe_psql('postgres', q(
CREATE EXTENSION pg_interlock;
ALTER DATABASE postgres SET interlock.lock_order = error;

CREATE FUNCTION pick(choices text[]) RETURNS text LANGUAGE sql AS
    'SELECT choices[1 + floor(random() * cardinality(choices))::int]';
CREATE FUNCTION say(what text, keys text[], mode text, scope text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    key text;
BEGIN
    FOREACH key IN ARRAY keys LOOP
        RAISE LOG 'stress: % % % %', what, scope, mode, key;
    END LOOP;
END $$;

-- One call that may be refused or canceled. With a planted fault it says that it has what it never took.
CREATE FUNCTION take(keys text[], mode text, scope text, planted boolean) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    patience interval := pick('{NULL,0,3 ms,20 ms}');
BEGIN
    BEGIN
        IF planted THEN
            NULL;
        ELSIF random() < 0.5 THEN
            PERFORM interlock.lock_keys(keys, mode, patience, scope);
        ELSIF NOT interlock.try_lock_keys(keys, mode, patience, scope) THEN
            RETURN false;
        END IF;
    EXCEPTION WHEN lock_not_available OR object_not_in_prerequisite_state THEN
        RETURN false;
    END;
    PERFORM say('grant', keys, mode, scope);
    RETURN true;
END $$;

CREATE FUNCTION stress(planted boolean) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    keys text[];
    mode text;
    scope text;
    session_keys text[] := '{}';
    session_mode text := pick('{shared,update,exclusive,intent_shared,intent_exclusive}');
BEGIN
    BEGIN
        FOR i IN 1 .. 1 + floor(random() * 3)::int LOOP
            SELECT array_agg(DISTINCT pick('{a,a/x,a/x/1,a/y,b,b/x,c/d/e,c/d,c/f}')) INTO keys
                FROM generate_series(1, 1 + floor(random() * 3)::int);
            IF random() < 0.2 THEN keys := keys || ('only ' || random()); END IF;
            mode := pick('{shared,update,exclusive,intent_shared,intent_exclusive}');
            scope := pick('{transaction,transaction,savepoint,session}');
            IF scope = 'session' THEN
                IF take(keys, session_mode, scope, planted) THEN session_keys := session_keys || keys; END IF;
            ELSIF scope = 'transaction' THEN
                PERFORM take(keys, mode, scope, planted);
            ELSE
                BEGIN
                    IF take(keys, mode, 'transaction', planted) THEN
                        PERFORM pg_sleep(random() * 0.001);
                        PERFORM say('release', keys, mode, 'transaction');
                    END IF;
                    RAISE division_by_zero;
                EXCEPTION WHEN division_by_zero THEN NULL;
                END;
            END IF;
            BEGIN
                IF interlock.getapplock(pick('{p,q}'), pick('{Shared,Update,Exclusive}'), 'Transaction', 5) NOT BETWEEN -3 AND 1 THEN
                    RAISE LOG 'stress: odd code';
                END IF;
            EXCEPTION WHEN object_not_in_prerequisite_state THEN NULL; -- out of order
            END;
            PERFORM pg_sleep(random() * 0.002);
        END LOOP;
        PERFORM say('release', session_keys, session_mode, 'session');
        FOR i IN 1 .. cardinality(session_keys) LOOP
            IF NOT planted AND NOT interlock.unlock_keys(session_keys[i:i], session_mode) THEN
                RAISE LOG 'stress: unlock failed';
            END IF;
        END LOOP;
    EXCEPTION WHEN query_canceled THEN
        RAISE LOG 'stress: gone %', pg_backend_pid();
        PERFORM pg_advisory_unlock_all();
    END;
    RAISE LOG 'stress: end';
END $$;

CREATE PROCEDURE harass() LANGUAGE plpgsql AS $$
DECLARE
    victim int;
BEGIN
    LOOP
        PERFORM pg_sleep(0.02);
        SELECT pid INTO victim FROM pg_stat_activity WHERE application_name = 'pgbench' ORDER BY random() LIMIT 1;
        CONTINUE WHEN victim IS NULL;
        RAISE LOG 'stress: gone %', victim;
        IF random() < 0.1 THEN PERFORM pg_terminate_backend(victim); ELSE PERFORM pg_cancel_backend(victim); END IF;
        RAISE LOG 'stress: signalled %', victim;
        COMMIT;
    END LOOP;
END $$;
));

# --- The checker ---------------------------------------------------------------------------------------------

my %compatible = (
    intent_shared    => { map { $_ => 1 } qw(intent_shared shared update intent_exclusive) },
    shared           => { map { $_ => 1 } qw(intent_shared shared update) },
    update           => { map { $_ => 1 } qw(intent_shared shared) },
    intent_exclusive => { map { $_ => 1 } qw(intent_shared intent_exclusive) },
    exclusive        => {});

sub intent { return $_[0] =~ /shared/ ? 'intent_shared' : 'intent_exclusive'; }

# Whether two holds exclude each other: on the same key, or on a key and its ancestor.
sub exclude
{
    my ($x, $y) = @_;
    return !$compatible{ $x->{mode} }{ $y->{mode} } if $x->{key} eq $y->{key};
    return !$compatible{ $x->{mode} }{ intent($y->{mode}) } if index($y->{key}, "$x->{key}/") == 0;
    return !$compatible{ intent($x->{mode}) }{ $y->{mode} } if index($x->{key}, "$y->{key}/") == 0;
    return 0;
}

# The wrong grants in a log, and how many grants there were. A session that is about to be canceled or killed
# can lose what it holds at any moment: it is not judged until its transaction has ended.
sub check
{
    my ($log) = @_;
    my (%held, %marked, @wrong);
    my $grants = 0;
    for (split /\n/, $log)
    {
        push @wrong, $_ if / ERROR: / && !/canceling statement due to user request/;
        my ($pid, $what) = /\[(\d+)\].* LOG:  stress: (.*)/ or next;
        if ($what =~ /^grant (\w+) (\w+) (.*)/)
        {
            my $new = { scope => $1, mode => $2, key => $3 };
            $grants++;
            next if $marked{$pid};
            for my $other (grep { $_ != $pid } keys %held)
            {
                push @wrong, "$what beside $_->{mode} $_->{key}" for grep { exclude($new, $_) } @{ $held{$other} };
            }
            push @{ $held{$pid} }, $new;
        }
        elsif ($what =~ /^release (\w+) (\w+) (.*)/)
        {
            my ($scope, $mode, $key) = ($1, $2, $3);
            my $holds = $held{$pid} || [];
            my ($i) = grep { $holds->[$_]{scope} eq $scope && $holds->[$_]{mode} eq $mode && $holds->[$_]{key} eq $key } 0 .. $#$holds;
            splice(@$holds, $i, 1) if defined $i;
        }
        elsif ($what =~ /^gone (\d+)/) { delete $held{$1}; $marked{$1} = 'gone' if $1 != $pid; }
        elsif ($what =~ /^signalled (\d+)/) { $marked{$1} = 'signalled'; }
        elsif ($what eq 'end') { delete $held{$pid}; delete $marked{$pid} if ($marked{$pid} || '') eq 'signalled'; }
        else { push @wrong, $what; }
    }
    return ($grants, @wrong);
}

# Runs eight sessions for some seconds, over again as they are killed; returns what they logged.
sub run_for
{
    my ($duration, $planted) = @_;
    my $start = -s $node->logfile;
    my $script = $node->basedir . '/stress.load';
    open(my $file, '>', $script) or die;
    print $file "SELECT stress($planted);\n";
    close($file);
    my $harass = $node->background_psql('postgres', on_error_stop => 0);
    $harass->query_until(qr/started/, "\\echo started\nCALL harass();\n");
    my $end = time + $duration;
    while (time < $end)
    {
        my @pgbench = ('pgbench', '-n', '-c', 8, '-j', 2, '-T', 2, '-f', $script, '-h', $node->host, '-p', $node->port, 'postgres');
        IPC::Run::run(\@pgbench, '>', \my $out, '2>', \my $err);
    }
    $node->safe_psql('postgres', "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query ~ '^CALL harass'");
    eval { $harass->quit };
    $node->poll_query_until('postgres', "SELECT count(*) = 0 FROM pg_stat_activity WHERE application_name = 'pgbench'");
    return slurp_file($node->logfile, $start);
}

my $log = run_for($seconds, 'false');
my ($grants, @wrong) = check($log);
my @lines = split /\n/, $log;

# The lines that match, each with what follows it.
sub lines_like
{
    my ($pattern) = @_;
    return join("\n", map { @lines[$_ .. min($_ + 8, $#lines)] } grep { $lines[$_] =~ $pattern } 0 .. $#lines);
}

cmp_ok($grants, '>', 100, 'locks are granted');
is(join("\n", @wrong[0 .. min(9, $#wrong)]), '', 'none of them beside another that excludes it');
is(lines_like(qr/deadlock detected/), '', 'nothing deadlocks');
is(lines_like(qr/too many keys|out of shared memory/), '', 'no name is left in the registry');
is($node->safe_psql('postgres', 'SELECT count(*) FROM interlock.key_locks'), 0, 'no lock is left');
is($node->safe_psql('postgres', "SELECT interlock.try_lock_keys('{a,a/x,a/x/1,a/y,b,b/x,c/d/e,c/d,c/f}')"), 't', 'every key is free');
is(lines_like(qr/PANIC|TRAP|terminated by signal/), '', 'nothing crashed');
note("$grants grants in $seconds seconds");

# The checker sees what it is there to see
($grants, @wrong) = check(run_for(1, 'true'));
cmp_ok(scalar(@wrong), '>', 0, 'a planted fault is found');
is(scalar(check_lines('1 grant transaction exclusive a', '2 grant transaction shared a/b')), 1, 'an ancestor is one');
is(scalar(check_lines('1 grant transaction shared a', '1 end', '2 grant transaction exclusive a')), 0, 'one after the other is none');
is(scalar(check_lines('1 grant session update a', '2 grant transaction shared a', '2 grant session update a')), 1, 'nor are update and shared');

sub check_lines
{
    my ($count, @found) = check(join("\n", map { /^(\d+) (.*)/; "[$1] x LOG:  stress: $2" } @_));
    return @found;
}

$node->stop;
done_testing();
