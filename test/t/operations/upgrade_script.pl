# REL-2, REL-3: each released version upgrades to the current one. The catalogs are then those of a new installation, and the
# data keeps working. Install scripts of released versions never change. The mechanism is tested with made-up later versions.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../lib";
use Catalog;
use Protocol;
use Server;
use PostgreSQL::Test::Utils;
use Test::More;

my ($version) = slurp_file('pg_interlock.control') =~ /^default_version = '(.*)'$/m;
my $changelog = slurp_file('CHANGELOG.md');
my %released = map { $_ => 1 } $changelog =~ /^## (\S+) \(\d{4}-\d\d-\d\d\)$/mg;
my %frozen = map { $_ => slurp_file("sql/pg_interlock--$_.sql") } map { m{^sql/pg_interlock--((?:(?!--).)+)\.sql$} ? $1 : () } glob('sql/*.sql');
my $script = qx(script/install-script);

# --- REL-3: scripts of released versions ----------------------------------------------------------------------------------

is(join(' ', sort keys %frozen), join(' ', sort keys %released), 'REL-3: sql/ has the install script of each version to which CHANGELOG.md gives a date, and no other');
if ($changelog =~ /^## \Q$version\E \(unreleased\)$/m) { pass("REL-3: $version is not released yet"); }
else
{
    ok($script eq ($frozen{$version} // ''), "REL-3: the install script is that of $version")
        or diag("the install script has changed since $version was released: raise the version (script/release --begin) and write sql/pg_interlock--$version--X.sql");
}

# --- REL-2: upgrades ------------------------------------------------------------------------------------------------------

my $node = start_server('interlock.sweeper = off');
my $present = catalog($node, 'postgres');

sub create { my ($database, $of) = @_; $node->safe_psql('postgres', "CREATE DATABASE $database"); $node->safe_psql($database, "CREATE EXTENSION pg_interlock VERSION '$of'"); return; }

sub add_own_columns
{
    my ($database) = @_;
    $node->safe_psql($database, 'ALTER TABLE interlock.idempotency ADD COLUMN mine text; ALTER TABLE interlock.idempotency_scope ADD COLUMN mine text');
    return;
}

# Tables that are guarded, and what is held, under the version of before
sub fill
{
    my ($database) = @_;
    $node->safe_psql($database, q(
        CREATE TABLE doc (id int PRIMARY KEY, note text, state text DEFAULT 'new', price int DEFAULT 1);
        SELECT interlock.enable_versioning('doc'), interlock.enable_history('doc'), interlock.enable_marker('doc');
        SELECT interlock.define_transitions('doc', 'state', '{"new": ["paid"], "paid": []}');
        SELECT interlock.grant_writer('importer', current_user), interlock.own_columns('doc', 'importer', '{price}');
        INSERT INTO doc (id, note) VALUES (1, 'a'), (2, 'a'), (3, 'a'), (4, 'a');
        UPDATE doc SET note = 'b' WHERE id = 1;
        DELETE FROM doc WHERE id = 3;
        SELECT interlock.lock_row('doc', 2, 'anna', '1 h');
        SELECT interlock.grant_idempotency_scope('pay', current_user);
        CREATE FUNCTION pay(request jsonb) RETURNS jsonb LANGUAGE sql AS 'SELECT ''{"paid": 1}''::jsonb';
        SELECT interlock.run_once('pay', 'done', 'pay(jsonb)');
        CREATE TABLE begun AS SELECT token FROM interlock.idempotency_claim('pay', 'begun');
        SELECT interlock.define_idempotency_scope('brief', 'job', stale_after => '1 us');
        SELECT interlock.grant_idempotency_scope('brief', current_user);
        SELECT interlock.idempotency_checkpoint('brief', 'job', token, 'half'), interlock.idempotency_extend('brief', 'job', token),
            interlock.idempotency_fail('brief', 'job', token) FROM interlock.idempotency_claim('brief', 'job');
        SELECT 1 / (outcome = 'acquired' AND attempt = 2 AND checkpoint = 'half')::int FROM interlock.idempotency_claim('brief', 'job');
        SELECT interlock.idempotency_claim('pay', 'stale');
        UPDATE interlock.idempotency SET deadline = now() WHERE key = 'stale';
        CREATE TABLE held AS SELECT token FROM interlock.acquire_lease('k', '1 h')));
    return;
}

# works(DATABASE, NAME): what fill() has made goes on. A null stands for an error.
sub works
{
    my ($database, $name) = @_;
    my $says = sub { my ($sql, $wanted, $what) = @_; is($node->safe_psql($database, $sql), $wanted, "REL-2: $name: $what"); };
    $says->(q(SELECT interlock.versioned_update('doc', 1, 2, '{"note": "c"}')), 3, 'versions move');
    $says->(q(SELECT outcome FROM interlock.try_versioned_update('doc', 1, 2, '{"note": "d"}')), 'conflict', 'and are compared');
    $says->(q(INSERT INTO doc (id, note) VALUES (3, 'b') RETURNING version), 2, 'versions of deleted rows are known');
    $says->(q(SELECT string_agg(operation, ' ' ORDER BY id) FROM interlock.row_history('doc', 1)), 'insert update update', 'history goes on');
    $says->(q(SELECT outcome FROM interlock.try_transition('doc', 3, 'new', 'paid')), 'transitioned', 'transitions go on');
    $says->(q(SELECT holder FROM interlock.row_lock_of('doc', 2)), 'anna', 'markers stay');
    $says->(q(SELECT interlock.unlock_row('doc', 2, 'anna')), 't', 'and are given back by their holders');
    $says->(q(SELECT outcome, response FROM interlock.run_once('pay', 'done', 'pay(jsonb)')), 'replay|{"paid": 1}', 'responses are replayed');
    $says->(q(SELECT interlock.idempotency_complete('pay', 'begun', token, '{}') FROM begun), 't', 'claims are completed');
    $says->(q(SELECT interlock.idempotency_complete('pay', 'body', token, body => '\x00') FROM interlock.idempotency_claim('pay', 'body', ttl => '1 h')), 't', 'claims have times and bodies');
    $says->(q(SELECT outcome, attempt, body FROM interlock.idempotency_claim('pay', 'body')), 'replay|1|\x00', 'which are replayed');
    $says->(q(SELECT outcome, attempt FROM interlock.idempotency_claim('pay', 'stale', stale_after => '1 h')), 'acquired|2', 'stale claims are taken over');
    $says->(q(SELECT interlock.define_idempotency_scope('brief', 'job', stale_after => '1 us', max_attempts => 3)), '', 'scopes are defined anew');
    $says->(q(SELECT outcome, attempt, checkpoint FROM interlock.idempotency_claim('brief', 'job'); SELECT outcome FROM interlock.idempotency_claim('brief', 'job')), "acquired|3|half\nexhausted", 'attempts have an end');
    $says->(q(SELECT interlock.renew_lease('k', token, '1 h') IS NOT NULL FROM held), 't', 'leases are renewed');
    $says->('SELECT count(*) FROM interlock.advise()', 0, 'protection is on');
    for my $refused ('UPDATE doc SET price = 2', q(UPDATE doc SET state = 'new' WHERE id = 3))
    {
        isnt($node->psql($database, $refused, on_error_stop => 1), 0, "REL-2: $name: refused: $refused");
    }
    return;
}

# upgrade(DATABASE, VERSION): while a session is connected, which goes on.
sub upgrade
{
    my ($database, $to, $name) = @_;
    my $connected = start($node, $database);
    my $save = q(UPDATE doc SET note = note WHERE id = 4 RETURNING version);
    like(query($connected, $save), qr{^\d+$}, "$name: a session is connected");
    $node->safe_psql($database, "ALTER EXTENSION pg_interlock UPDATE TO '$to'");
    is($node->safe_psql($database, q(SELECT extversion FROM pg_extension WHERE extname = 'pg_interlock')), $to, "REL-2: $name: upgraded to $to");
    like(query($connected, $save), qr{^\d+$}, "REL-2: $name: a session that was connected goes on");
    is(query($connected, 'SELECT version FROM doc WHERE id = 1'), 2, "REL-2: $name: and reads");
    return;
}

# The first lines in which two texts differ
sub difference
{
    my ($one, $other) = @_;
    my %count;
    $count{$_}++ for split /\n/, $one;
    $count{$_}-- for split /\n/, $other;
    my @lines = map { ($count{$_} > 0 ? '+ ' : '- ') . $_ } grep { $count{$_} } sort keys %count;
    return join("\n", @lines > 40 ? @lines[ 0 .. 39 ] : @lines);
}

for my $old (grep { $_ ne $version } sort keys %frozen)
{
    my $database = 'from_' . ($old =~ tr/./_/r);
    create($database, $old);
    fill($database);
    upgrade($database, $version, $old);
    is(difference(catalog($node, $database), $present), '', "REL-2: $old: the catalogs are those of a new $version");
    works($database, $old);

    create("own_$database", $old);
    add_own_columns("own_$database");
    fill("own_$database");
    upgrade("own_$database", $version, "$old, with columns of the owner");
    works("own_$database", "$old, with columns of the owner");
}

# --- The comparison itself, by versions that there are not ------------------------------------------------------------------

my $directory = $node->config_data('--sharedir') . '/extension';
my @written;
END { unlink @written; }
sub install { my ($name, $text) = @_; push @written, "$directory/pg_interlock--$name.sql"; append_to_file($written[-1], $text); return; }

SKIP:
{
    skip "cannot write to $directory", 1 unless -w $directory;

    my ($major, $minor, $patch) = split /\./, $version;
    my ($next, $later) = map { "$major.$minor." . ($patch + $_) } 1, 2;
    my $column = "ALTER TABLE interlock.idempotency ADD COLUMN simulated_change text;\n";
    my $change = <<"SQL";
CREATE FUNCTION interlock.simulated_change(n integer DEFAULT 1) RETURNS integer LANGUAGE sql AS 'SELECT n';
COMMENT ON FUNCTION interlock.simulated_change(integer) IS 'For a test.';
REVOKE EXECUTE ON FUNCTION interlock.simulated_change(integer) FROM PUBLIC;
$column
SQL
    # a view and a function that are there before are to change, too
    my $changed = $script =~ s{(CREATE VIEW interlock\.usage AS SELECT \*)}{$1, 1 AS simulated_change}r =~ s{(CREATE FUNCTION interlock_internal\.has_column[^;]*? STABLE STRICT)}{$1 COST 77}r;
    like($changed, qr/1 AS simulated_change.*COST 77|COST 77.*1 AS simulated_change/s, 'a view and a function differ');
    install($next, "$changed$change");
    create('fresh', $next);
    my $fresh = catalog($node, 'fresh');
    isnt(difference($fresh, $present), '', 'the install script of a new version has other objects');

    my $work = PostgreSQL::Test::Utils::tempdir();
    my $write = sub { my ($name, $text) = @_; append_to_file("$work/$name", $text); return "$work/$name"; };
    my @scripts = ($write->('old.sql', $script), $write->('new.sql', "$changed$change"));
    my (undef, $says) = run_command([ 'script/upgrade-script', @scripts, $write->('nothing.sql', '') ]);
    like($says, qr/new: ALTER TABLE interlock\.idempotency/, 'REL-2: script/upgrade-script says what has to be written by hand');
    (undef, $says) = run_command([ 'script/upgrade-script', reverse(@scripts), $write->('back.sql', '') ]);
    like($says, qr/gone: FUNCTION interlock\.simulated_change/, 'REL-2: and what has to be dropped');
    command_ok([ 'script/upgrade-script', @scripts, $write->('upgrade.sql', $column) ], 'REL-2: it writes the rest');
    install("$version--$next", slurp_file("$work/upgrade.sql"));
    create('complete', $version);
    fill('complete');
    upgrade('complete', $next, 'simulated');
    is(difference(catalog($node, 'complete'), $fresh), '', 'REL-2: the catalogs are the same if the upgrade makes the same changes');
    works('complete', 'simulated');
    create('own_columns', $version);
    add_own_columns('own_columns');
    fill('own_columns');
    upgrade('own_columns', $next, 'simulated, with columns of the owner');
    works('own_columns', 'simulated, with columns of the owner');

    # What an upgrade can forget
    my %less = (
        'a comment' => 'COMMENT ON FUNCTION interlock.simulated_change(integer) IS NULL',
        'a right' => 'GRANT EXECUTE ON FUNCTION interlock.simulated_change(integer) TO PUBLIC',
        'a column' => 'ALTER TABLE interlock.idempotency DROP COLUMN simulated_change',
        'a volatility' => 'ALTER FUNCTION interlock.simulated_change(integer) STABLE',
        'a default of an argument' => q(CREATE OR REPLACE FUNCTION interlock.simulated_change(n integer DEFAULT 2) RETURNS integer LANGUAGE sql AS 'SELECT n'),
        'a body' => q(CREATE OR REPLACE FUNCTION interlock.simulated_change(n integer DEFAULT 1) RETURNS integer LANGUAGE sql AS 'SELECT n + 1'),
        'a constraint' => 'ALTER TABLE interlock.idempotency ADD CHECK (simulated_change IS NULL)',
        'a default of a column' => q(ALTER TABLE interlock.idempotency ALTER simulated_change SET DEFAULT 'a'),
        'an index' => 'CREATE INDEX ON interlock.idempotency (simulated_change)',
        'a view' => 'ALTER VIEW interlock.usage SET (security_barrier)',
        'a function' => 'ALTER EXTENSION pg_interlock DROP FUNCTION interlock.simulated_change(integer)');
    for my $what (sort keys %less)
    {
        isnt(difference(catalog($node, 'complete', $less{$what}), $fresh), '', "REL-2: a difference of $what is found");
    }

    # What a script that upgrades says to an older library
    install("$next--$later", "SELECT interlock_internal.require_library('$later');\n");
    my (undef, undef, $err) = $node->psql('complete', "ALTER EXTENSION pg_interlock UPDATE TO '$later'");
    like($err, qr/version \Q$later\E of the pg_interlock library is needed, and version \Q$version\E is loaded/, 'REL-1: an upgrade before the restart is refused');
    install("$next--$later.1", q(CREATE FUNCTION interlock.absent() RETURNS void LANGUAGE c AS 'MODULE_PATHNAME';));
    (undef, undef, $err) = $node->psql('complete', "ALTER EXTENSION pg_interlock UPDATE TO '$later.1'");
    like($err, qr/could not find function "absent" in file/, 'REL-1: so is one that forgets to ask, by the server');
    is($node->safe_psql('complete', q(SELECT extversion FROM pg_extension WHERE extname = 'pg_interlock')), $next, 'REL-1: and nothing has changed');
}

$node->stop;
done_testing();
