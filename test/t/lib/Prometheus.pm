# Debian's prometheus and postgres_exporter, with the files of docs/operations/monitoring, for a test with a server of its own.
# script/test has unpacked them, unless they are installed.
#
#   my $exporter = start_exporter($node, 'postgres');
#   my $prometheus = start_prometheus($exporter);
#   until_true($prometheus, 'interlock_usage_used > 0');

package Prometheus;

use strict;
use warnings;
use Cwd 'abs_path';
use Exporter 'import';
use HTTP::Tiny;
use JSON::PP;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes 'time';

our @EXPORT = qw(monitoring_program start_exporter start_prometheus stop_program metrics samples alerts until_true until_false);

my $folder = 'docs/operations/monitoring';
my @running;

# Its path.
sub monitoring_program
{
    my ($name) = @_;
    my ($program) = grep { -x } map { "$_/$name" } split(/:/, $ENV{PROMETHEUS_PATH} // ''), '/usr/bin';
    return $program // die "please install $name";
}

# start_exporter(NODE, DATABASE, [PORT, ARGUMENT...]): as docs/operations/monitoring.md sets it up, but that nothing is cached.
sub start_exporter
{
    my ($node, $database, $port, @arguments) = @_;
    my $directory = PostgreSQL::Test::Utils::tempdir();
    $port //= PostgreSQL::Test::Cluster::get_free_port();
    my $queries = slurp_file("$folder/queries.yml");
    $queries =~ s/^ *cache_seconds: \d+\n//mg;
    append_to_file("$directory/queries.yml", $queries);
    local $ENV{DATA_SOURCE_NAME} = sprintf "user=prometheus host=%s port=%d dbname=%s sslmode=disable", $node->host, $node->port, $database;
    return start_program('prometheus-postgres-exporter', $port, '/metrics',
        "--extend.query-path=$directory/queries.yml", @arguments, "--web.listen-address=127.0.0.1:$port");
}

# start_prometheus(EXPORTER): with the configuration for newcomers, but that it looks as often as this machine can.
sub start_prometheus
{
    my ($exporter) = @_;
    my $start = time;
    metrics($exporter);
    my $interval = int(200 + 10_000 * (time - $start)) . 'ms';
    my $directory = PostgreSQL::Test::Utils::tempdir();
    my $port = PostgreSQL::Test::Cluster::get_free_port();
    my $rules = abs_path("$folder/alerts.yml");
    my $configuration = slurp_file("$folder/prometheus.yml");
    $configuration =~ s/localhost:9187/127.0.0.1:$exporter->{port}/ or die 'no target';
    $configuration =~ s/scrape_interval: 30s/scrape_interval: $interval\n    scrape_timeout: $interval/ or die 'no interval';
    $configuration =~ s{/etc/prometheus/pg_interlock-alerts\.yml}{$rules} or die 'no rules';
    append_to_file("$directory/prometheus.yml", $configuration);
    return start_program('prometheus', $port, '/-/ready', "--config.file=$directory/prometheus.yml",
        "--storage.tsdb.path=$directory/data", "--web.listen-address=127.0.0.1:$port");
}

# Ended with the test.
sub start_program
{
    my ($name, $port, $path, @arguments) = @_;
    my $program = { name => $name, port => $port, log => PostgreSQL::Test::Utils::tempdir() . "/$name.log" };
    $program->{run} = IPC::Run::start([ monitoring_program($name), @arguments ], '<', \undef, '>', $program->{log}, '2>&1');
    push @running, $program;
    for (1 .. 1800)
    {
        return $program if get($program, $path)->{success};
        last if !$program->{run}->pumpable;
        select(undef, undef, undef, 0.1);
    }
    die "$name does not answer: " . slurp_file($program->{log});
}

sub stop_program
{
    my ($program) = @_;
    return if !$program->{run};
    $program->{run}->signal('TERM');
    $program->{run}->finish;
    delete $program->{run};
    return;
}

END { my $status = $?; stop_program($_) for @running; $? = $status; }

sub get
{
    my ($program, $path) = @_;
    return HTTP::Tiny->new(timeout => 180)->get("http://127.0.0.1:$program->{port}$path");
}

# What the exporter says, as text.
sub metrics { my ($exporter) = @_; return get($exporter, '/metrics')->{content}; }

# What prometheus answers at a path of its API.
sub api
{
    my ($prometheus, $path, %parameters) = @_;
    my $query = HTTP::Tiny->new->www_form_urlencode(\%parameters);
    my $answer = decode_json(get($prometheus, "/api/v1/$path?$query")->{content});
    die "$path $query: $answer->{error}" if $answer->{status} ne 'success';
    return $answer->{data};
}

# samples(PROMETHEUS, EXPRESSION): the values, each with its labels.
sub samples
{
    my ($prometheus, $expression) = @_;
    my $data = api($prometheus, 'query', query => $expression);
    return ({ metric => {}, value => $data->{result} }) if $data->{resultType} eq 'scalar';
    return @{ $data->{result} };
}

# alerts(PROMETHEUS): the rules, by their names.
sub alerts
{
    my ($prometheus) = @_;
    return map { $_->{name} => $_ } map { @{ $_->{rules} } } @{ api($prometheus, 'rules')->{groups} };
}

# until_true(PROMETHEUS, EXPRESSION), until_false: whether it is, at some time, as after poll_query_until. Without an answer of
# the exporter nothing is known to be false.
sub until_true { return until_samples(1, @_); }
sub until_false { my ($prometheus, $expression) = @_; return until_samples('', $prometheus, qq(($expression) or up{job="interlock"} == 0)); }

sub until_samples
{
    my ($wanted, $prometheus, $expression) = @_;
    for (1 .. 1800)
    {
        return 1 if !!samples($prometheus, $expression) eq $wanted;
        select(undef, undef, undef, 0.1);
    }
    diag("$expression: ", explain [ samples($prometheus, $expression) ]);
    return 0;
}

1;
