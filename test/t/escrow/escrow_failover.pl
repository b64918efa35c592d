# Escrow counters while everything fails: clients are killed with kill -9, and single processes of the server, and the whole of it;
# a standby is promoted, with prepared transactions in doubt and parts that are not folded, and its base backup is taken under
# load. What was sold and what is left is what was stocked at each look, on the primary and on the standby, no value leaves its
# limits, and no commit that was acknowledged is lost. The interleavings 7, 8, 18 and 22 of docs/internals/escrow.md at random.
# CHAOS_SECONDS=600 CHAOS_CLIENTS=64 runs it for longer, with more clients.
# only with --long

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../lib";
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use POSIX ();
use Test::More;
use Time::HiRes qw(sleep time);
use Protocol;
use Server;

my $seconds = $ENV{CHAOS_SECONDS} || 12;
my $clients = $ENV{CHAOS_CLIENTS} || 8;

my $primary = start_server(q(
max_connections = 100
max_prepared_transactions = 100
max_wal_senders = 5
wal_level = replica
wal_keep_size = 1GB
restart_after_crash = on
interlock.max_escrow_counters = 16
log_statement = none
log_min_error_statement = panic
));
# More counters than entries in memory. Of the first item there is much, and of the others little.
$primary->safe_psql('postgres', q(
CREATE TABLE item (id int PRIMARY KEY, stock int NOT NULL CHECK (stock BETWEEN 0 AND 100), weight numeric(8, 2) NOT NULL CHECK (weight BETWEEN -3 AND 50));
INSERT INTO item SELECT i, CASE WHEN i = 1 THEN 60 ELSE 5 END, 20 FROM generate_series(1, 20) i;
SELECT interlock.enable_escrow('item', 'stock', maximum => 100), interlock.enable_escrow('item', 'weight', minimum => -3, maximum => 50);
CREATE TABLE sold (no text, id int, what name, n numeric);
CREATE VIEW counter AS
    SELECT id, 'stock'::name AS what, stock::numeric AS in_row, interlock.escrow_value('item', id, 'stock') AS value,
           CASE WHEN id = 1 THEN 60 ELSE 5 END AS stocked, 0 AS least, 100 AS most FROM item
    UNION ALL
    SELECT id, 'weight', weight, interlock.escrow_value('item', id, 'weight'), 20, -3, 50 FROM item;
CREATE VIEW violation AS
    SELECT c.*, s.sold FROM counter c LEFT JOIN (SELECT id, what, sum(n) AS sold FROM sold GROUP BY id, what) s USING (id, what)
     WHERE c.value NOT BETWEEN least AND most OR in_row NOT BETWEEN least AND most OR c.value + coalesce(s.sold, 0) <> stocked;
));

my $shared = PostgreSQL::Test::Utils::tempdir();

# --- Clients --------------------------------------------------------------------------------------------------------------------

# What fails when others change the same row on the direct path, when many are prepared, or when the server goes.
my $expected_errors = qr/^(?:40001|40P01|53400|57P0[0-9])$/;

sub write_file { my ($name, $text) = @_; open my $file, '>', "$shared/$name.new" or die $!; print $file $text; close $file; rename "$shared/$name.new", "$shared/$name"; return; }
sub add_line { my ($name, $text) = @_; open my $file, '>>', "$shared/$name" or die $!; syswrite $file, "$text\n"; close $file; return; }

{
    # What Protocol needs to know of a server.
    package Target;
    sub host { my ($self) = @_; return $self->{host}; }
    sub port { my ($self) = @_; return $self->{port}; }
}

# A process that sells and takes back until there is a file "stop". It never comes back.
sub client
{
    my $number = 0;
    my $session;
    srand;
    my $test = getppid;
    while (!-e "$shared/stop" && getppid == $test)
    {
        eval {
            $session //= Protocol::start(bless({ host => $primary->host, port => slurp_file("$shared/port") }, 'Target'), 'postgres');
            transaction($session, "$$." . ++$number);
            1;
        } or do {
            undef $session;
            sleep 0.05;
        };
    }
    POSIX::_exit(0);
}

# ask(SESSION, SQL): whether it succeeded. An error that nobody expects is a line of the file "errors".
sub ask
{
    my ($session, $sql) = @_;
    query($session, $sql);
    return 1 if !defined $session->{error};
    add_line('errors', "$session->{error} $session->{message}: $sql") if $session->{error} !~ $expected_errors;
    return 0;
}

sub adjustment
{
    my ($no) = @_;
    my ($id, $what, $delta) = (rand() < 0.5 ? 1 : 1 + int rand 20, 'stock', rand() < 0.6 ? -1 - int rand 3 : 1 + int rand 3);
    ($what, $delta) = ('weight', $delta * 1.25) if rand() < 0.3;
    my $wait = rand() < 0.1 ? '20 ms' : '0';
    return "WITH a AS MATERIALIZED (SELECT outcome FROM interlock.try_adjust('item', $id, '$what', $delta, '$wait'))"
        . " INSERT INTO sold SELECT '$no', $id, '$what', -($delta) FROM a WHERE outcome = 'adjusted'";
}

# One to three adjustments, some of them in a savepoint that is rolled back, and one of the ways to end. A commit that was
# acknowledged is a line of the file "acknowledged", unless it is not to wait for the disk.
sub transaction
{
    my ($session, $no) = @_;
    my $asynchronous = rand() < 0.15;
    my $inserted = 0;
    ask($session, rand() < 0.05 ? 'BEGIN ISOLATION LEVEL SERIALIZABLE' : 'BEGIN') or return;
    my $fine = !$asynchronous || ask($session, 'SET LOCAL synchronous_commit = off');
    for (0 .. int rand 3)
    {
        last if !$fine;
        if (rand() < 0.15)
        {
            $fine = ask($session, 'SAVEPOINT a') && ask($session, adjustment($no)) && ask($session, 'ROLLBACK TO a');
            next;
        }
        $fine = ask($session, adjustment($no));
        $inserted++ if $fine && $session->{tag} eq 'INSERT 0 1';
    }
    my $way = rand();
    if (!$fine || $way < 0.12) { ask($session, 'ROLLBACK'); return; }
    die 'goes without an end' if $way < 0.14;
    if ($way < 0.20)
    {
        ask($session, "PREPARE TRANSACTION '$no'") && $way < 0.17 or return;
        ask($session, $way < 0.155 ? "ROLLBACK PREPARED '$no'" : "COMMIT PREPARED '$no'") && $way >= 0.155 or return;
    }
    else { ask($session, 'COMMIT') or return; }
    add_line('acknowledged', $no) if $inserted && !$asynchronous;
    return;
}

my %running;
sub hire
{
    my $pid = fork // die "cannot fork: $!";
    client() if $pid == 0;
    $running{$pid} = 1;
    return;
}

# --- What happens to them ---------------------------------------------------------------------------------------------------------

my ($standby, $generation, $wrong, $looks, $standby_looks, %happened) = (undef, 0, '', 0, 0);

sub begin_standby
{
    $generation++;
    $primary->backup("backup$generation");
    $standby = PostgreSQL::Test::Cluster->new("standby$generation");
    $standby->init_from_backup($primary, "backup$generation", has_streaming => 1);
    $standby->start;
    # From now on what is acknowledged is on both.
    $primary->append_conf('postgresql.conf', "synchronous_standby_names = '*'");
    $primary->reload;
    $primary->wait_for_catchup($standby);
    return;
}

# Whether it answers, as after a crash it does not for some time.
sub asked { my ($node, $sql) = @_; my ($status, $out) = $node->psql('postgres', $sql); return $status == 0 ? $out : undef; }

sub look
{
    my $found = asked($primary, 'SELECT * FROM violation');
    if (defined $found) { $looks++; $wrong ||= $found; }
    $found = asked($standby, 'SELECT * FROM violation');
    if (defined $found) { $standby_looks++; $wrong ||= "standby: $found" if $found ne ''; }
    for my $gid (split /\n/, asked($primary, 'SELECT gid FROM pg_prepared_xacts ORDER BY random() LIMIT 2 + (SELECT count(*) / 4 FROM pg_prepared_xacts)') // '')
    {
        asked($primary, (rand() < 0.5 ? 'COMMIT' : 'ROLLBACK') . " PREPARED '$gid'");
    }
    return;
}

sub until_back
{
    for (1 .. 1800) { return if defined asked($primary, 'SELECT 1'); sleep 0.1; }
    die 'the server did not come back';
}

sub children_of
{
    my ($parent) = @_;
    my @stats = map { my $stat = eval { slurp_file($_) } // ''; $stat =~ /^(\d+) .*\) \S (\d+) / && $2 == $parent ? $1 : () } glob '/proc/[0-9]*/stat';
    return @stats;
}

my %event = (
    client => sub {
        my ($pid) = keys %running;
        kill 'KILL', $pid;
        waitpid $pid, 0;
        delete $running{$pid};
        hire();
    },
    backend => sub {
        my $pid = asked($primary, "SELECT pid FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid() AND state <> 'idle' ORDER BY random() LIMIT 1");
        if (!$pid) { return; }
        kill 'KILL', $pid;
        sleep 0.2;
        until_back();
    },
    server => sub {
        my ($postmaster) = slurp_file($primary->data_dir . '/postmaster.pid') =~ /^(\d+)/;
        my @processes = ($postmaster, children_of($postmaster));
        $primary->kill9;
        kill 'KILL', @processes;
        for (1 .. 600) { last if !grep { kill 0, $_ } @processes; sleep 0.1; }
        $primary->start;
        until_back();
    },
    promotion => sub {
        $primary->wait_for_catchup($standby);
        $primary->stop('immediate');
        my $old = $primary;
        $standby->append_conf('postgresql.conf', "synchronous_standby_names = ''");
        $standby->reload;
        $standby->promote;
        $primary = $standby;
        write_file('port', $primary->port);
        $old->clean_node;
        begin_standby();
    });

write_file('port', $primary->port);
hire() for 1 .. $clients;
begin_standby();
my $end = time + $seconds;
my @events = qw(client backend client server client promotion);
for (my $i = 0; $i < @events || time < $end; $i++)
{
    my $until = time + 0.2 + rand($seconds / @events > 4 ? 4 : $seconds / @events);
    do { look() } while (time < $until);
    my $what = $i < @events ? $events[$i] : (qw(client client client client backend backend server promotion))[rand 8];
    $event{$what}->();
    $happened{$what}++;
    look();
}
write_file('stop', '');
waitpid $_, 0 for keys %running;

# --- What is left -----------------------------------------------------------------------------------------------------------------

note("$looks looks, $standby_looks at a standby; " . join(', ', map { "$happened{$_} times $_" } sort keys %happened));
is($wrong, '', 'at each look what was sold and what is left is what was stocked, within the limits');
cmp_ok($looks, '>=', 6, 'there were looks');
cmp_ok($standby_looks, '>=', 1, 'and some at a standby');
is(-e "$shared/errors" ? slurp_file("$shared/errors") : '', '', 'no client got an error that it did not expect');
cmp_ok($primary->safe_psql('postgres', 'SELECT count(*) FROM sold'), '>', 20, 'there was something to do');
$primary->safe_psql('postgres', "CREATE TABLE acknowledged (no text); COPY acknowledged FROM '$shared/acknowledged'");
note($primary->safe_psql('postgres', "SELECT (SELECT count(*) FROM acknowledged) || ' transactions were acknowledged, ' || (SELECT count(DISTINCT no) FROM sold) || ' are there'"));
is($primary->safe_psql('postgres', 'SELECT no FROM acknowledged WHERE no NOT IN (SELECT no FROM sold)'), '', 'nothing that was acknowledged is lost');
asked($primary, "ROLLBACK PREPARED '$_'") for split /\n/, $primary->safe_psql('postgres', 'SELECT gid FROM pg_prepared_xacts');
is($primary->safe_psql('postgres', 'SELECT * FROM violation'), '', 'all decided');
is($primary->safe_psql('postgres', q(SELECT c.* FROM counter c, LATERAL interlock.try_adjust('item', c.id, c.what, least - value) a
    WHERE value > least AND outcome <> 'adjusted')), '', 'all that is left can be sold, at once');
$primary->safe_psql('postgres', "SELECT interlock.fold_escrow('item')");
is($primary->safe_psql('postgres', 'SELECT * FROM counter WHERE in_row <> least OR value <> least'), '', 'and the rows have it after a fold');
unlike(slurp_file($primary->logfile), qr/TRAP|PANIC|terminated by signal (?!9)/, 'nothing crashed by itself');

done_testing();
