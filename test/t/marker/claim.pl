# MRK-7: workers that are killed at any moment, and a server that crashes once, leave no job undone: each is done once, and begun
# again only after the deadline of the worker before. CLAIM_WORKERS=20 CLAIM_JOBS=10000 runs a larger one.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../lib";
use IPC::Run;
use PostgreSQL::Test::Utils;
use Server;
use Test::More;

my $workers = $ENV{CLAIM_WORKERS} || 8;
my $jobs = $ENV{CLAIM_JOBS} || 1000;
my $node = start_server("log_statement = none\nmax_connections = 100");
$node->safe_psql('postgres', qq(
    CREATE TABLE job (id int PRIMARY KEY, queue text NOT NULL);
    SELECT interlock.enable_marker('job', '2 s');
    INSERT INTO job SELECT i, 'mail' FROM generate_series(1, $jobs) i;
    INSERT INTO job VALUES (0, 'other');
    CREATE INDEX ON job (queue, id);
    ANALYZE job;
    CREATE TABLE begun (job int, worker text, since timestamptz, expires_at timestamptz);
    CREATE TABLE done (job int, worker text);
));

# A claim and what is logged of it commit together, and so do the end of a claim and its effect. In between the worker is at work.
my $load = $node->basedir . '/work.load';
append_to_file($load, q(
WITH claimed AS (SELECT * FROM interlock.claim_rows('job', 'worker ' || :worker, 1, '{"queue": "mail"}', 'id')),
logged AS (INSERT INTO begun SELECT (key->>'id')::int, 'worker ' || :worker, (current->>'lock_time')::timestamptz, expires_at FROM claimed RETURNING job)
SELECT coalesce(max(job), 0) AS job FROM logged \gset
\if :job
\sleep 10 ms
BEGIN;
INSERT INTO done VALUES (:job, 'worker ' || :worker);
SELECT interlock.delete_row('job', :job, 'worker ' || :worker);
COMMIT;
\else
\sleep 50 ms
\endif
));

# One process for each worker. It ends by itself when its claim was lost: pgbench ends at an error.
my ($born, $killed, $late) = (0, 0, 0);
my @running;

sub hire
{
    my ($place) = @_;
    $born++;
    my ($out, $err) = ('', '');
    my $run = IPC::Run::start([ 'pgbench', '-n', '-c', 1, '-T', 3600, '-D', "worker=$born", '-f', $load, '-h', $node->host, '-p', $node->port, 'postgres' ],
        '<', \undef, '>', \$out, '2>', \$err);
    $running[$place] = { run => $run, err => \$err };
}

sub dismiss
{
    my ($place) = @_;
    $running[$place]{run}->signal('KILL');
    $running[$place]{run}->finish;
}

sub left { return $node->safe_psql('postgres', q(SELECT count(*) FROM job WHERE queue = 'mail')); }

hire($_) for 0 .. $workers - 1;
my $crashes = 0;
my $unknown = 0;
while ((my $left = left()) > 0)
{
    if ($left < $jobs / 2 && !$crashes)
    {
        $crashes++;
        my ($postmaster) = slurp_file($node->data_dir . '/postmaster.pid') =~ /^(\d+)/;
        $node->kill9;
        dismiss($_) for 0 .. $workers - 1;
        for (1 .. 100) { last unless kill 0, $postmaster; select(undef, undef, undef, 0.1); }
        $node->start;
        hire($_) for 0 .. $workers - 1;
    }
    my $place = int(rand($workers));
    dismiss($place);
    $killed++;
    hire($place);
    for my $other (0 .. $workers - 1)
    {
        my $worker = $running[$other];
        $worker->{run}->pump_nb;
        next if $worker->{run}->pumpable;
        $worker->{run}->finish;
        ${ $worker->{err} } =~ /does not hold the row|has no such row/ ? $late++ : ($unknown++, diag(${ $worker->{err} }));
        hire($other);
    }
    select(undef, undef, undef, 0.05);
}
dismiss($_) for 0 .. $workers - 1;
note("$born workers, $killed killed, $late that were late");

is($unknown, 0, 'no worker failed but for a claim that it had lost');
cmp_ok($killed, '>', 0, 'workers were killed');
is($crashes, 1, 'and the server');
is($node->safe_psql('postgres', 'SELECT count(*), count(DISTINCT job), min(job), max(job) FROM done'), "$jobs|$jobs|1|$jobs", 'each job was done once');
is($node->safe_psql('postgres', 'SELECT count(*) FROM job'), 1, 'a job of another queue was left alone');
is($node->safe_psql('postgres', 'SELECT count(*) FROM done d WHERE NOT EXISTS (SELECT FROM begun b WHERE (b.job, b.worker) = (d.job, d.worker))'), 0, 'by workers that had claimed it');
is( $node->safe_psql('postgres', q(
        SELECT count(*) FROM (SELECT since, lag(expires_at) OVER (PARTITION BY job ORDER BY since) AS before FROM begun) b WHERE since < before)),
    0, 'none was begun again before its deadline');
cmp_ok($node->safe_psql('postgres', 'SELECT count(*) FROM begun'), '>', $jobs, 'but some were after it');
$node->stop;
done_testing();
