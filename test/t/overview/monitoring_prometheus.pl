# The files of docs/operations/monitoring: an exporter whose role has the rights that the page says, Debian's prometheus that
# scrapes it, the alerts, and every query of the dashboard.
# only with --long

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../lib";
use JSON::PP;
use Prometheus;
use PostgreSQL::Test::Utils;
use Server;
use Test::More;

my $folder = 'docs/operations/monitoring';
my $page = slurp_file('docs/operations/monitoring.md');
my $node = start_server('fsync = off');

sub sql { my ($sql, $database) = @_; return $node->safe_psql($database // 'postgres', $sql); }

# The role, by the statements of the page
my ($setup, $role) = $page =~ /<!--sql\n(.*?)^-->\n```sql\n(.*?)^```/ms;
sql($setup);
sql($role);
is(sql(q(SELECT rolsuper FROM pg_roles WHERE rolname = 'prometheus')), 'f', 'the role of the page is no superuser');
for my $secret ('body FROM page', 'response FROM interlock.idempotency', 'given FROM interlock.write_log')
{
    my ($status, undef, $error) = $node->psql('postgres', "SET ROLE prometheus; SELECT $secret");
    like($error, qr/permission denied/, "and does not read $secret");
}

my $exporter = start_exporter($node, 'postgres');
my $prometheus = start_prometheus($exporter);
my %alerts = alerts($prometheus);
ok(until_true($prometheus, 'interlock_usage_used'), 'prometheus scrapes it');

# What the page says of the exporter
my $queries = slurp_file("$folder/queries.yml");
my ($namespace, @metrics);
for my $line (split /\n/, $queries)
{
    $namespace = $1 if $line =~ /^(\w+):$/;
    push @metrics, "${namespace}_$1" if $line =~ /^    - (\w+): \{usage: (?!LABEL)/;
}
# Lines of roles and of tables are there once there is something to count, and rates when it is counted again.
lived_in();
busy();
ok(until_true($prometheus, 'interlock_contention_conflicts_total > 0'), 'conflicts are counted');
busy();
for my $metric (@metrics)
{
    ok(until_true($prometheus, $metric), "$metric is there");
}
unlike(slurp_file($exporter->{log}), qr/level=error/i, 'the exporter has no errors');
is((samples($prometheus, $_))[0]{value}[1], 0, $_) for 'pg_exporter_last_scrape_error', 'pg_exporter_user_queries_load_error';

# Nothing that is unbounded
sql(q(
    DO $$ BEGIN FOR n IN 1 .. 30 LOOP
        EXECUTE format('CREATE TABLE t%s (id int PRIMARY KEY); SELECT interlock.enable_history(%L)', n, 't' || n);
        EXECUTE format('CREATE ROLE r%s', n);
        EXECUTE format('SET LOCAL ROLE r%s', n);
        PERFORM FROM interlock.acquire_lease('r/' || n, '1 h');
        RESET ROLE;
    END LOOP; END $$));
for my $bound ('count(interlock_role_usage_used{what="leases"}) == 20', 'count(interlock_relation_bytes{purpose="history"}) == 20')
{
    ok(until_true($prometheus, $bound), $bound);
}
my %cached = map { $_ => 1 } $queries =~ /^(\w+):\n  cache_seconds: \d/mg;
for my $name ($page =~ /^\| `(interlock_\w+?)_(?:\*|findings|bytes)` \|/mg)
{
    ok(delete $cached{$name}, "$name is cached, as the page says");
}
is(join(' ', keys %cached), '', 'and nothing else is');

# The alerts, and where they lead
my $promtool = monitoring_program('promtool');
for my $check ([ 'check', 'rules', "$folder/alerts.yml" ], [ 'test', 'rules', 'test/prometheus/alerts.yml' ])
{
    my $output = '';
    my $good = IPC::Run::run([ $promtool, @$check ], '>', \$output, '2>&1');
    ok($good, "promtool @$check") or diag $output;
}
my $tests = slurp_file('test/prometheus/alerts.yml');
my $runbook = slurp_file('docs/operations/runbook.md');
my %sections = map { lc($_) =~ tr/ /-/r => 1 } $runbook =~ /^## (.*)$/mg;
cmp_ok(scalar keys %alerts, '>=', 10, 'there are alerts');
for my $name (sort keys %alerts)
{
    my $where = $alerts{$name}{annotations}{runbook} // '';
    ok($where =~ m{^docs/operations/runbook\.md#(.+)$} && $sections{$1}, "$name leads to a section of the runbook: $where");
    like($runbook, qr/^\*\*Alert:\*\* .*`$name`/m, 'which names it');
    like($page, qr/^\|.*`$name`.*\|/m, 'and so does the page');
    like($tests, qr/alertname: $name$/m, 'and a test of rules');
    ok(eval { samples($prometheus, $alerts{$name}{query}); 1 }, "$name has no error") or diag $@;
}

# The dashboard
my $dashboard = decode_json(slurp_file("$folder/dashboard.json"));
my %variables = ('$__rate_interval' => '1h', '$instance' => '.*', '$database' => '.*');
for my $variable (grep { $_->{type} eq 'query' } @{ $dashboard->{templating}{list} })
{
    my ($series, $label) = $variable->{query}{query} =~ /^label_values\((.*), (\w+)\)$/;
    ok((grep { defined $_->{metric}{$label} } samples($prometheus, $series)), "variable $variable->{name} has values");
    ok($variables{"\$$variable->{name}"}, 'and is known here');
}
for my $panel (@{ $dashboard->{panels} })
{
    for my $target (@{ $panel->{targets} // [] })
    {
        my $expression = $target->{expr} =~ s/(\$\w+)/$variables{$1} \/\/ die "variable $1"/ger;
        ok(until_true($prometheus, $expression), "panel $panel->{title}: $target->{expr}");
    }
}
for my $annotation (@{ $dashboard->{annotations}{list} })
{
    ok(eval { samples($prometheus, $annotation->{expr}); 1 }, "annotation $annotation->{name}");
}

# Several databases by one exporter: lines of the server once, others for each. Names in no valid encoding break nothing.
sql(q(CREATE DATABASE crm ENCODING 'SQL_ASCII' LOCALE 'C' TEMPLATE template0));
sql(q(CREATE EXTENSION pg_interlock; SELECT interlock.grant_access('monitor', 'prometheus')), 'crm');
sql(q(
    SET client_min_messages = error;
    DO $$
    DECLARE
        bad text := convert_from('\x78ff', 'SQL_ASCII');
    BEGIN
        EXECUTE format('CREATE TABLE %I (id int PRIMARY KEY)', bad);
        PERFORM interlock.enable_versioning(bad::regclass), interlock.enable_history(bad::regclass);
        EXECUTE format('INSERT INTO %I VALUES (1); UPDATE %1$I SET id = 2', bad);
        PERFORM FROM interlock.acquire_lease(bad || ':1');
    END $$), 'crm');
my ($several) = $page =~ /(--auto-discover-databases \S+)'$/m;
my $second = start_exporter($node, 'postgres', undef, split / /, $several);
my $text = metrics($second);
like($text, qr/^interlock_leases_held\{datname="$_",.*\} \d/m, "metrics of database $_") for qw(postgres crm);
ok(index($text, "\n$_") > 0, "a line $_") for 'interlock_contention_calls_total{datname="crm",key_class="",kind="versioning",rel="public.\"x\\\\377\""',
    'interlock_contention_calls_total{datname="crm",key_class="x\\\\377",kind="lease"',
    'interlock_relation_bytes{datname="crm",purpose="history",relation="public.\"x\\\\377_history\""';
unlike(slurp_file($second->{log}), qr/level=error/i, 'without errors');
is(() = $text =~ /^interlock_usage_used\{.*what="leases"/mg, 1, 'of the server once');
stop_program($second);

# Without the rights of the page there are no metrics, and alerts for that
sql(q(SELECT interlock.revoke_access('monitor', 'prometheus'); REVOKE pg_monitor FROM prometheus));
ok(until_true($prometheus, 'pg_exporter_last_scrape_error == 1'), 'rights are needed');
stop_program($exporter);
ok(until_true($prometheus, $alerts{InterlockExporterDown}{query}), 'the exporter is down');

# Nor do names of roles and databases, which the exporter's own queries do not survive
sql(q(
    DO $$ BEGIN
        EXECUTE format('CREATE ROLE %I', convert_from('\x78ff', 'SQL_ASCII'));
        EXECUTE format('SET LOCAL ROLE %I', convert_from('\x78ff', 'SQL_ASCII'));
        PERFORM FROM generate_series(1, 99) n CROSS JOIN LATERAL interlock.acquire_lease('role:' || n);
    END $$), 'crm');
my ($usage) = $queries =~ /^interlock_role_usage:\n.*?query: >-\n(.*?)^  metrics:/ms;
like(sql("SELECT string_agg(role, ' ') FROM ($usage) q"), qr/(?:^| )x\\377(?: |$)/, 'the name of a role is ASCII');

stop_program($prometheus);
$node->stop;
done_testing();

# A little of everything
sub lived_in
{
    sql(q(
        CREATE ROLE app;
        SET client_min_messages = error;
        CREATE TABLE orders (id int PRIMARY KEY, total int);
        SELECT interlock.enable_versioning('orders'), interlock.enable_history('orders');
        INSERT INTO orders VALUES (1, 1);
        SELECT interlock.grant_idempotency_scope('pay', 'app');
        SET ROLE app;
        SELECT FROM interlock.acquire_lease('job', '1 h');));
    return;
}

sub busy
{
    sql(q(
        SELECT outcome FROM interlock.acquire_lease('job');
        SELECT outcome FROM interlock.try_versioned_update('orders', 1, 0, '{"total": 2}');
        UPDATE orders SET total = 3;
        SET ROLE app;
        SELECT FROM interlock.idempotency_claim('pay', 'order-17');));
    return;
}
