# docs/operations/runbook.md: each incident is made here. The alerts that its section names come, the statements of the page
# print what it says, and the alerts go. Statements run as the role that their first line names, else as the page's role on call.
# only with --long

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../lib";
use Prometheus;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $file = 'docs/operations/runbook.md';
my ($introduction, @sections) = split /^## /m, slurp_file($file);

# The share of a role is half of it. The grace after a failover is longer than this test.
my $node = PostgreSQL::Test::Cluster->new('main');
$node->init(allows_streaming => 1);
$node->append_conf('postgresql.conf', "shared_preload_libraries = 'pg_interlock'\nfsync = off\nlc_messages = 'C'\n"
      . "interlock.max_leases = 400\ninterlock.lease_durable_after = '30min'");
$node->start;
$node->safe_psql('postgres', 'CREATE DATABASE shop');
sql('CREATE EXTENSION pg_interlock');
sql(q(
    CREATE ROLE owner LOGIN; CREATE ROLE worker LOGIN; CREATE ROLE importer LOGIN; CREATE ROLE app LOGIN;
    GRANT ALL ON SCHEMA public TO owner;));
as('owner', q(
    CREATE TABLE page (id int PRIMARY KEY, body text);
    CREATE TABLE orders (id int PRIMARY KEY, total int);
    CREATE TABLE product (id int PRIMARY KEY, price int);
    SET client_min_messages = error;
    SELECT interlock.enable_marker('page'), interlock.enable_versioning('orders'), interlock.enable_history('product');
    INSERT INTO page SELECT n, 'text' FROM generate_series(1, 9) n;
    INSERT INTO orders VALUES (1, 1);
    INSERT INTO product VALUES (1, 1);
    GRANT SELECT, INSERT, UPDATE, DELETE ON page, orders, product TO app, worker;));

# The roles that the pages make
sql($_) for blocks($introduction)->[0]{sql};
sql(q(
    CREATE ROLE prometheus LOGIN; GRANT pg_monitor TO prometheus;
    SELECT interlock.grant_access('monitor', 'prometheus');
    GRANT SELECT (id, lock_status, lock_by, lock_time, lock_until, lock_reason) ON page TO prometheus;));

my %variables; # of psql
my $exporter = start_exporter($node, 'shop');
my $prometheus = start_prometheus($exporter);
ok(until_true($prometheus, 'interlock_usage_used'), 'prometheus scrapes the server');
my %alerts = alerts($prometheus);
my %named;
is(scalar samples($prometheus, $alerts{$_}{query}), 0, "$_ is quiet") for sort keys %alerts;

my %make = (
    'Leases are nearly full' => sub {
        as('importer', q(SELECT count(*) FROM generate_series(1, 190) n CROSS JOIN interlock.acquire_lease('import:' || n, '1 h')));
    },
    'Leases of a team that is gone' => sub {
        sql('CREATE ROLE reports LOGIN');
        as('reports', q(SELECT count(*) FROM generate_series(1, 3) n CROSS JOIN interlock.acquire_lease('report:eu:' || n, '1 day')));
    },
    'A lease is pinned' => sub {
        return session('worker', q(
            SELECT token FROM interlock.acquire_lease('report:daily', '1 h', holder => 'worker 1') \gset
            BEGIN;
            SELECT interlock.assert_lease('report:daily', :token);
            UPDATE product SET price = 2 WHERE id = 1;
            \echo done));
    },
    'Sessions wait behind an idle one' => sub {
        my $first = session('app', q(
            SET application_name = 'shop 1';
            BEGIN;
            SELECT FROM orders WHERE id = 1 FOR UPDATE;
            \echo done));
        my $second = session('app', q(
            SET application_name = 'shop 2';
            BEGIN;
            SELECT interlock.lock_key('stock:1');
            \echo done
            SELECT FROM orders WHERE id = 1 FOR UPDATE;
            COMMIT;));
        my $third = session('app', q(
            SET application_name = 'shop 3';
            BEGIN;
            \echo done
            SELECT interlock.lock_key('stock:1');
            COMMIT;));
        ok($node->poll_query_until('shop', 'SELECT count(*) = 2 FROM interlock.blocking'), 'a chain of sessions');
        return ($first, $second, $third);
    },
    'The sweeper is off' => sub {
        sql('ALTER SYSTEM SET interlock.sweeper = off');
        sql('SELECT pg_reload_conf()');
        as('app', q(SELECT FROM interlock.lock_row('page', 1, 'anna', '0.1 s')));
    },
    'Expired markers pile up' => sub {
        as('owner', q(
            CREATE FUNCTION closed() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
                IF NEW.lock_by IS NULL THEN RAISE 'the month is closed'; END IF;
                RETURN NEW;
            END $$;
            CREATE TRIGGER closed BEFORE UPDATE ON page FOR EACH ROW EXECUTE FUNCTION closed()));
        as('app', q(SELECT FROM interlock.lock_rows('page', ARRAY[1, 2, 3], 'anna', '0.1 s')));
    },
    'A document was left open' => sub {
        as('app', q(SELECT FROM interlock.lock_row('page', 7, 'anna', '8 hours', reason => 'final review')));
        my ($status, undef, $error) = $node->psql('shop', q(UPDATE page SET body = 'the text of bert' WHERE id = 7), extra_params => [ '-U', 'app', '-v', 'VERBOSITY=sqlstate' ]);
        like($error, qr/IL004/, 'another user cannot save');
    },
    'Counters are not folded' => sub {
        my $adjust = q(SELECT interlock.adjust('item', 1, 'stock', -1));
        as('owner', q(
            CREATE TABLE item (id int PRIMARY KEY, stock int NOT NULL);
            INSERT INTO item VALUES (1, 9);
            SELECT interlock.enable_escrow('item', 'stock');
            GRANT SELECT, UPDATE ON item TO app));
        as('app', $adjust);
        as('owner', q(
            CREATE FUNCTION counting() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'the warehouse is being counted'; END $$;
            CREATE TRIGGER counting BEFORE UPDATE ON item FOR EACH ROW EXECUTE FUNCTION counting()));
        as('app', $adjust) for 1 .. 3;
        $node->poll_query_until('shop', q(SELECT count(*) = 1 FROM interlock.sweeper WHERE database = 'shop' AND last_error LIKE '%being counted%'));
    },
    'Carts do not end' => sub {
        as('owner', q(
            CREATE TABLE ticket (id int PRIMARY KEY, seats int NOT NULL);
            INSERT INTO ticket VALUES (1, 5);
            SELECT interlock.enable_escrow('ticket', 'seats');
            GRANT SELECT, UPDATE ON ticket TO app));
        as('app', q(SELECT count(*) FROM generate_series(1, 5) n CROSS JOIN interlock.reserve('ticket', 1, 'seats', 1, '7 days', holder => 'kiosk 3 cart ' || n)));
        is(as('app', q(SELECT outcome FROM interlock.reserve('ticket', 1, 'seats', 1, '10 min'))), 'pending', 'the next customer gets nothing');
    },
    'Writers collide on one row' => sub {
        # The alert compares rates: it takes two looks at the counters.
        my $load = q(DO $$ BEGIN FOR n IN 1 .. 1001 LOOP
            PERFORM FROM orders o CROSS JOIN LATERAL interlock.versioned_update('orders', 1, o.version, '{"total": 2}') WHERE id = 1;
            PERFORM FROM interlock.try_versioned_update('orders', 1, 0, '{"total": 3}');
        END LOOP; END $$);
        for (1 .. 100)
        {
            as('app', $load);
            last if samples($prometheus, expression('InterlockConflicts'));
        }
    },
    'A release writes blindly' => sub { as('app', 'UPDATE orders SET total = 9 WHERE id = 1'); },
    'Claims are stale' => sub {
        sql(q(SELECT interlock.grant_idempotency_scope('pay', 'app')));
        as('app', q(SELECT FROM interlock.idempotency_claim('pay', 'order-17', stale_after => '0.1 s')));
    },
    'Protection is off' => sub { as('owner', 'ALTER TABLE orders DISABLE TRIGGER zzz_interlock_version'); },
    'A history grows' => sub {
        as('app', q(DO $$ BEGIN FOR n IN 1 .. 5000 LOOP UPDATE product SET price = n; END LOOP; END $$));
        as('owner', 'ANALYZE product_history');
    },
    'A failover' => sub {
        $variables{token} = as('worker', q(SELECT token FROM interlock.acquire_lease('report:hourly', '10 min')));
        $node->backup('standby');
        my $standby = PostgreSQL::Test::Cluster->new('standby');
        $standby->init_from_backup($node, 'standby', has_streaming => 1);
        $standby->start;
        $node->wait_for_catchup($standby);
        stop_program($exporter);
        $exporter = start_exporter($standby, 'shop', $exporter->{port});
        ok(until_true($prometheus, 'interlock_server_in_recovery == 1'), 'the standby has metrics');
        $node->stop('immediate');
        $node = $standby;
        $node->promote;
    },
    'No metrics' => sub {
        sql(q(ALTER SYSTEM SET shared_preload_libraries = 'plpgsql'));
        $node->restart;
    });

# These look back.
my %lasting = map { $_ => 1 } qw(InterlockServerRestarted InterlockConflicts InterlockBlindUpdates);
my @later;
for my $section (@sections)
{
    my ($title) = $section =~ /^(.*)$/m;
    next if !$make{$title};
    my @sessions = grep { ref $_ } $make{$title}->();
    # The exporter itself ends in overview/monitoring_prometheus.pl.
    my @names = grep { $_ ne 'InterlockExporterDown' } map { /`(\w+)`/g } $section =~ /^\*\*Alert:\*\* (.*)$/m;
    $named{$_} = 1 for @names;
    ok(until_true($prometheus, expression($_)), "$title: $_") for @names;
    runs($title, $_) for @{ blocks($section) };
    eval { $_->quit } for @sessions;
    push @later, [ $title, $_ ] for grep { !$lasting{$_} } @names;
}
for my $alert (@later)
{
    my ($title, $name) = @$alert;
    ok(until_false($prometheus, expression($name)), "$title: $name is gone");
}

stop_program($_) for $prometheus, $exporter;
$node->stop;
done_testing();

sub sql { my ($sql) = @_; return $node->safe_psql('shop', $sql); }
sub as { my ($role, $sql) = @_; return $node->safe_psql('shop', $sql, extra_params => [ '-U', $role ]); }

# One that goes on after it has said that it is done.
sub session
{
    my ($role, $sql) = @_;
    my $session = $node->background_psql('shop', extra_params => [ '-U', $role ], on_error_stop => 0);
    $session->query_until(qr/done/, "$sql\n");
    return $session;
}

# The alert as it would be after minutes, or gigabytes.
sub expression
{
    my ($name) = @_;
    my $expression = $alerts{$name}{query} // die "no alert $name";
    $expression =~ s/> (?:60|300|3600)\b/> 0/g;
    $expression =~ s/> (?:1e\+10|10000000000)\b/> 1e+06/;
    return $expression;
}

# The statements of a part of the page: as whom, what they print, and whether they verify that it is cured.
sub blocks
{
    my ($text) = @_;
    my @blocks;
    while ($text =~ /^```sql\n(.*?)^```\n(?:```output\n(.*?)^```\n)?/msg)
    {
        my ($sql, $expected, $before) = ($1, $2, substr($text, 0, $-[0]));
        my ($role) = $sql =~ /^-- as (?:an? |the )?(\w+)/;
        push @blocks, { sql => $sql, expected => $expected, role => $role // 'oncall', verifies => scalar($before =~ /^\*\*Verify:\*\*/m) };
    }
    return \@blocks;
}

# What verifies may take the server a moment.
sub runs
{
    my ($title, $block) = @_;
    return runs_often($title, $block) if $block->{sql} =~ /^--.* many at once$/m;
    my @user = $block->{role} eq 'superuser' ? () : ('-U', $block->{role});
    my $name = "$title: " . ($block->{sql} =~ /^(?!--)(.*)$/m)[0];
    my $printed = '';
    for (1 .. ($block->{verifies} ? 600 : 1))
    {
        $printed = '';
        IPC::Run::run([ 'psql', '-Xq', '-d', $node->connstr('shop'), @user, map { ('-v', "$_=$variables{$_}") } keys %variables ], '<', \$block->{sql}, '>', \$printed, '2>&1');
        last if !defined $block->{expected} || masked($printed) eq masked($block->{expected});
        select(undef, undef, undef, 0.1);
    }
    my $good = defined $block->{expected} ? is(masked($printed), masked($block->{expected}), $name) : unlike($printed, qr/ERROR/, $name);
    diag $printed if !$good;
    $node->restart if $block->{sql} =~ /^--.* restarts the server$/m;
    return;
}

sub runs_often
{
    my ($title, $block) = @_;
    my $script = PostgreSQL::Test::Utils::tempdir() . '/block.sql';
    append_to_file($script, $block->{sql});
    my $output = '';
    my $good = IPC::Run::run([ qw(pgbench -n -c 4 -t 50 -U), $block->{role}, '-f', $script, $node->connstr('shop') ], '>', \$output, '2>&1');
    ok($good && $output =~ m{actually processed: 200/200}, "$title: four at once") or diag $output;
    return;
}

# Without times, processes and large counts, which differ, and the layout that depends on them.
sub masked
{
    my ($text) = @_;
    $text =~ s/^(?:WARNING|DETAIL|HINT):.*\n//mg;
    $text =~ s/\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d+)?[+-]\d\d/TIME/g;
    $text = join '', map { without_processes($_) } split /^(?=\()/m, $text;
    $text =~ s/\b\d{4,}\b/N/g;
    $text =~ s/-{3,}/--/g;
    $text =~ s/ +/ /g;
    $text =~ s/^ | $//mg;
    return $text =~ s/^\n//mgr;
}

# A process may have few digits, as has a count that must be right: the column tells them apart.
sub without_processes
{
    my ($table) = @_;
    my ($head) = $table =~ /^(.*)\n-+(?:\+-+)*$/m;
    my @columns = split /\|/, $head // '';
    my @processes = grep { $columns[$_] =~ /^\s*(?:pid|head_pid|blocked_by)\s*$/ } 0 .. $#columns;
    my @lines = map { [ split /\|/, $_, -1 ] } split /^/m, $table;
    for my $line (grep { @$_ == @columns } @lines)
    {
        $line->[$_] =~ s/\d+/N/ for @processes;
    }
    return join '', map { join '|', @$_ } @lines;
}
