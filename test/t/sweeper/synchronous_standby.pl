# OPS-5: the sweeper waits for no synchronous standby. OPS-3: its errors name tables.

use strict;
use warnings;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('main');
$node->init(allows_streaming => 1);
$node->append_conf('postgresql.conf', "shared_preload_libraries = 'pg_interlock'");
$node->start;
$node->safe_psql('postgres', q(
    CREATE EXTENSION pg_interlock;
    CREATE SCHEMA "Odd";
    CREATE TABLE page (id int PRIMARY KEY, note text);
    CREATE TABLE "Odd".renamed (id int PRIMARY KEY);
    CREATE TABLE aged (id int PRIMARY KEY);
    SELECT interlock.enable_marker('page', '100 ms'), interlock.enable_marker('"Odd".renamed', '100 ms');
    SELECT interlock.enable_history('aged', keep_for => '1 s');
    INSERT INTO page VALUES (1); INSERT INTO "Odd".renamed VALUES (1); INSERT INTO aged VALUES (1);
    UPDATE aged_history SET changed_at = changed_at - interval '1 day';));

# As this session does, a client has to choose for itself
$node->append_conf('postgresql.conf', "synchronous_standby_names = 'away'");
$node->reload;
ok($node->poll_query_until('postgres', "SELECT current_setting('synchronous_standby_names') = 'away'"), 'a standby is away');
sub sql { return $node->safe_psql('postgres', "SET synchronous_commit = local; $_[0]"); }
sub comes { my ($query, $name) = @_; return ok($node->poll_query_until('postgres', $query), $name); }

sql("SELECT interlock.lock_row('page', 1, 'anna')");
comes('SELECT lock_status = 0 FROM page', 'OPS-5: markers are released while the standby is away');
sql('INSERT INTO aged VALUES (2)');
comes("SELECT count(*) = 0 FROM aged_history WHERE changed_at < now() - interval '1 hour'", 'OPS-5: history is trimmed');

# A wait for the standby would be canceled as what a hanging trigger does is.
unlike(slurp_file($node->logfile), qr/waiting for synchronous replication|wait for synchronous replication/, 'OPS-5: no commit of the sweeper has waited');

# OPS-3
sql(q(SELECT interlock.lock_row('"Odd".renamed', 1, 'anna'); ALTER TABLE "Odd".renamed RENAME lock_until TO deadline));
comes(q(SELECT last_error ~ '^table "Odd".renamed: a marker column of table' FROM interlock.sweeper WHERE database = 'postgres'),
    'OPS-3: last_error names the table');
my ($ret, $out, $err) = $node->psql('postgres', 'SELECT count(*) FROM interlock.row_locks');
like($err, qr/WARNING:  could not list every marker of "renamed".*A marker column is gone or has another type/s, 'OPS-3: row_locks says what it leaves out');
sql('CREATE ROLE reader');
($ret, $out, $err) = $node->psql('postgres', 'SET synchronous_commit = local; SET ROLE reader; SELECT count(*) FROM interlock.row_locks');
is("$out/$err", '0/', 'OPS-3: but to nobody who may not read the table');

$node->stop;
done_testing();
