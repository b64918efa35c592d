# Eight clients for some seconds, and what must be true of the data afterwards. The same loads without the
# extension break it: that shows that the checks can fail.
# only with --long

use strict;
use warnings;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $seconds = $ENV{STRESS_SECONDS} || 3;
my $node = PostgreSQL::Test::Cluster->new('main');
$node->init;
$node->append_conf('postgresql.conf', "shared_preload_libraries = 'pg_interlock'\nfsync = off");
$node->start;

# Runs a load on fresh tables, with the extension set up by $sql if that is given. The loads are those of script/demo, and those
# of hot rows, which are of this test.
sub load_on
{
    my ($setup, $load, $sql, @options) = @_;
    my $home = $setup eq 'hot' ? 'test/load' : 'demo/load';
    $node->safe_psql('postgres', 'DROP DATABASE IF EXISTS stress');
    $node->safe_psql('postgres', 'CREATE DATABASE stress');
    $node->safe_psql('stress', slurp_file("$home/$setup.sql"));
    $node->safe_psql('stress', "CREATE EXTENSION pg_interlock; $sql") if $sql;
    $node->command_ok([ 'pgbench', '-n', '-c', 8, '-j', 2, '-T', $seconds, @options, '-f', "$home/$load.load", 'stress' ], "load $load");
}

my $lost = 'SELECT (SELECT count(*) FROM saved) - (SELECT sum(n) FROM config)';
load_on('config', 'config_without');
cmp_ok($node->safe_psql('stress', $lost), '>', 0, 'without: saves are lost');
load_on('config', 'config_counter', "SELECT interlock.enable_versioning('config')");
is($node->safe_psql('stress', $lost), 0, 'with a counter: none');
is($node->safe_psql('stress', 'SELECT count(*) FROM config WHERE version <> n + 1'), 0, 'every save moved the version by one');
load_on('config', 'config_time', "SELECT interlock.enable_versioning('config', 'updated_time')");
is($node->safe_psql('stress', $lost), 0, 'with updated_time: none');

my $twice = 'SELECT count(*) FROM (SELECT id FROM redeemed GROUP BY id HAVING count(*) > 1) t';
load_on('coupons', 'coupons_without');
cmp_ok($node->safe_psql('stress', $twice), '>', 0, 'without: coupons are redeemed twice');
load_on('coupons', 'coupons_with', q(SELECT interlock.define_transitions('coupon', 'status', '{"unused": ["redeemed"]}')));
is($node->safe_psql('stress', $twice), 0, 'with: never');

$twice = 'SELECT count(*) FROM (SELECT seat FROM ticket GROUP BY seat HAVING count(*) > 1) t';
load_on('seats', 'seats_without');
cmp_ok($node->safe_psql('stress', $twice), '>', 0, 'without: seats are sold twice');
load_on('seats', 'seats_with', q(SELECT interlock.define_transitions('seat', 'status', '{"free": ["sold"]}')));
is($node->safe_psql('stress', $twice), 0, 'with: none');
is($node->safe_psql('stress', 'SELECT count(*) FROM ticket'), $node->safe_psql('stress', q(SELECT count(*) FROM seat WHERE status = 'sold')), 'and one for each that was');

load_on('documents', 'documents_without');
cmp_ok($node->safe_psql('stress', 'SELECT count(*) FROM overwritten'), '>', 0, 'without: edits are written over');
load_on('documents', 'documents_with', "SELECT interlock.enable_marker('document', '1 s')");
is($node->safe_psql('stress', 'SELECT count(*) FROM overwritten'), 0, 'with: none');
ok($node->poll_query_until('stress', 'SELECT count(*) = 0 FROM document WHERE lock_status = 1'), 'and none is stuck');

# Three rows that all clients want: rows that nobody has locked are written without a lock, and often somebody else is faster.
$lost = 'SELECT count(*) FROM hot JOIN (SELECT id, count(*) AS written FROM won GROUP BY id) w USING (id) WHERE n <> written';
load_on('hot', 'hot_version', "SELECT interlock.enable_versioning('hot')");
is($node->safe_psql('stress', $lost), 0, 'no update of a hot row is lost');
is($node->safe_psql('stress', 'SELECT count(*) FROM hot WHERE version <> n + 1'), 0, 'each moved its version by one');
load_on('hot', 'hot_marker', "SELECT interlock.enable_marker('hot')", '-D', 'rows=3');
is($node->safe_psql('stress', $lost), 0, 'no edit of a hot row is lost');
load_on('hot', 'hot_marker', "SELECT interlock.enable_versioning('hot'), interlock.enable_marker('hot')", '-D', 'rows=40', '-f',
    'test/load/hot_analyze.load');
is($node->safe_psql('stress', $lost), 0, 'nor refused while what is known of the table gets old');

my $deadlocks = "SELECT deadlocks FROM pg_stat_database WHERE datname = 'stress'";
load_on('bank', 'bank_without', undef, '--max-tries=0');
cmp_ok($node->safe_psql('stress', $deadlocks), '>', 0, 'without: transfers deadlock');
cmp_ok($node->safe_psql('stress', 'SELECT count(*) FROM overdraft'), '>', 0, 'without: accounts are overdrawn');
load_on('bank', 'bank_with', 'SELECT 1', '--max-tries=0');
is($node->safe_psql('stress', $deadlocks), 0, 'with: none deadlocks');
is($node->safe_psql('stress', 'SELECT count(*) FROM overdraft'), 0, 'with: none is overdrawn');
is($node->safe_psql('stress', 'SELECT sum(balance) FROM account'), 20000, 'and the sum is what it was');

$twice = 'SELECT count(*) FROM (SELECT FROM charge GROUP BY payment HAVING count(*) > 1) t';
load_on('payments', 'payments_without');
cmp_ok($node->safe_psql('stress', $twice), '>', 0, 'without: payments are charged twice');
load_on('payments', 'payments_with', q(SELECT interlock.define_idempotency_scope('pay', 'job', stale_after => '200 ms')));
is($node->safe_psql('stress', $twice), 0, 'with: never');
cmp_ok($node->safe_psql('stress', 'SELECT count(*) FROM charge'), '>', 0, 'but charged they are');
$node->stop;
done_testing();
