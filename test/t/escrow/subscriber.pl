# A subscriber of everything: rows, counters, parts and reservations are those of the publisher at each commit, the subscriber's
# sweeper leaves them alone, and nothing is lost or sold twice when it takes over.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../lib";
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Protocol;
use Test::More;

my ($old, $new) = map { PostgreSQL::Test::Cluster->new($_) } qw(old new);
for my $node ($old, $new)
{
    $node->init(allows_streaming => 'logical');
    $node->append_conf('postgresql.conf', "shared_preload_libraries = 'pg_interlock'\ninterlock.sweeper_rescan = '1s'\nfsync = off");
    $node->append_conf('postgresql.conf', 'interlock.sweeper = off') if $node == $old;
    $node->start;
    $node->safe_psql('postgres', 'CREATE DATABASE shop');
}
$old->safe_psql('shop', q(
    CREATE EXTENSION pg_interlock;
    CREATE TABLE item (id int PRIMARY KEY, stock int NOT NULL);
    CREATE TABLE page (id int PRIMARY KEY, body text) PARTITION BY RANGE (id);
    CREATE TABLE page_1 PARTITION OF page FOR VALUES FROM (0) TO (100);
    CREATE TABLE local (id int PRIMARY KEY);
    SELECT interlock.enable_escrow('item', 'stock', 0, 1000), interlock.enable_marker('page'), interlock.enable_history('page', keep_versions => 1, keep_for => '1 ms'),
        interlock.enable_marker('local')));
my $schema = $old->basedir . '/schema.sql';
$old->command_ok([ 'pg_dump', '-s', '-f', $schema, $old->connstr('shop') ], 'the schema');
$new->command_ok([ 'psql', '-qX', '-v', 'ON_ERROR_STOP=1', '-d', $new->connstr('shop'), '-f', $schema ], 'is loaded');
$old->safe_psql('shop', 'DROP TABLE local; CREATE PUBLICATION all_of_it FOR ALL TABLES WITH (publish_via_partition_root)');

# Both sides have audits with the same numbers.
$new->safe_psql('shop', q(CREATE TABLE own (id int PRIMARY KEY); SELECT interlock.enable_versioning('own'), interlock.enable_marker('own');
    INSERT INTO own VALUES (1); SELECT interlock.lock_row('own', 1, 'anna'), interlock.force_unlock_row('own', 1, 'a test')));
$old->safe_psql('shop', q(INSERT INTO page VALUES (1, 'a'); SELECT interlock.lock_row('page', 1, 'anna'), interlock.force_unlock_row('page', 1, 'a test');
    DELETE FROM page));
is($_->safe_psql('shop', 'SELECT min(id) FROM interlock.configuration_audit UNION ALL SELECT min(id) FROM interlock.row_lock_audit'), "1\n1",
    'audits begin at one on ' . $_->name) for $old, $new;

# What is there before the subscription, with parts
$old->safe_psql('shop', q(INSERT INTO item VALUES (1, 100), (2, 10); SELECT interlock.adjust('item', 1, 'stock', -7);
    SELECT interlock.acquire_lease('long', '1 h')));
my $before = Protocol::start($new, 'shop');
query($before, "BEGIN; INSERT INTO item VALUES (9, 9); SELECT interlock.adjust('item', 9, 'stock', -1); ROLLBACK");
my $connection = $old->connstr('shop') =~ s/'/''/gr;
$new->safe_psql('shop', "CREATE SUBSCRIPTION standby CONNECTION '$connection' PUBLICATION all_of_it WITH (binary = true)");
$new->wait_for_subscription_sync($old, 'standby', 'shop');

my $state = q(SELECT id, stock, interlock.escrow_value('item', id, 'stock') FROM item UNION ALL
    SELECT counter, amount, reserved FROM interlock_internal.escrow_part UNION ALL
    SELECT counter, amount, extract(epoch FROM expires_at) FROM interlock_internal.escrow_reservation ORDER BY 1, 2, 3);
sub same
{
    my ($name) = @_;
    $old->wait_for_catchup('standby');
    return is($new->safe_psql('shop', $state), $old->safe_psql('shop', $state), $name);
}
same('parts from before the subscription');

$old->safe_psql('shop', $_)
    for q(SELECT interlock.acquire_lease('longer', '2 h')), q(SELECT interlock.adjust('item', 1, 'stock', -3), interlock.adjust('item', 2, 'stock', -1)),
    q(SELECT interlock.fold_escrow('item')),
    q(SELECT interlock.adjust('item', 1, 'stock', -2)),
    q(SELECT interlock.set_escrow('item', 2, 'stock', 50)),
    q(SELECT interlock.reserve('item', 2, 'stock', 5, '1 h')),
    q(SELECT interlock.reserve('item', 2, 'stock', 4, '10 ms'));
same('a fold, a set value, parts and reservations');
$old->safe_psql('shop', q(INSERT INTO item VALUES (3, 1); SELECT interlock.adjust('item', 3, 'stock', 5)));
$old->safe_psql('shop', q(DELETE FROM item WHERE id = 3; UPDATE item SET id = 4 WHERE id = 1));
same('a deleted row, and one with another key');
query($before, 'BEGIN; INSERT INTO item VALUES (9, 9)');
like(query($before, "SELECT interlock.adjust('item', 9, 'stock', -1)"), qr/55000/, 'a session from before the subscription makes no counter there');
query($before, 'ROLLBACK');

# The sweeper of the subscriber works on its own table alone
$old->safe_psql('shop', q(INSERT INTO page VALUES (1, 'a'); SELECT interlock.lock_row('page', 1, 'anna', '1 ms');
    SELECT interlock.idempotency_claim('pay', 'old', ttl => '1 ms', stale_after => '1 ms')));
$old->wait_for_catchup('standby');
for my $id (1 .. 3)
{
    $new->safe_psql('shop', "INSERT INTO local VALUES ($id); SELECT interlock.lock_row('local', $id, 'bert', '1 ms')");
    ok($new->poll_query_until('shop', "SELECT lock_status = 0 FROM local WHERE id = $id"), "the sweeper comes by ($id)");
}
is($new->safe_psql('shop', q(SELECT * FROM interlock.sweep())), '', 'nor does sweep() find more');
my $marked = 'SELECT lock_status, (SELECT string_agg(id::text, \' \' ORDER BY id) FROM page_history) FROM page';
is($new->safe_psql('shop', $marked), $old->safe_psql('shop', $marked), 'a marker stays that the publisher has to release');
is($new->safe_psql('shop', 'SELECT count(*) FROM interlock.idempotency'), 1, 'a key that it has to delete');
same('parts and reservations that it has to fold and to give back');

# What others do on the subscriber has numbers that do not arrive; and a table may be another one there
$new->safe_psql('shop', q(
    CREATE ROLE other; CREATE SCHEMA other AUTHORIZATION other; SET ROLE other;
    CREATE TABLE other.item (id int PRIMARY KEY, stock int NOT NULL, a int);
    SELECT interlock.enable_escrow('other.item', 'stock'), interlock.own_columns('other.item', 'editor', '{a}', on_violation => 'skip');
    INSERT INTO other.item VALUES (1, 9, 1), (2, 9, 1), (3, 9, 1);
    UPDATE other.item SET a = 2;
    SELECT interlock.adjust('other.item', id, 'stock', n) FROM other.item, generate_series(1, 2) n));
for my $node ($old, $new)
{
    $node->safe_psql('shop', 'CREATE TABLE swapped (id int PRIMARY KEY, stock int NOT NULL)');
}
for (1 .. 2)
{
    $old->safe_psql('shop', $_)
        for q(SELECT interlock.enable_escrow('swapped', 'stock'); INSERT INTO swapped VALUES (1, 9)), "SELECT interlock.adjust('swapped', 1, 'stock', -1)", "SELECT interlock.adjust('swapped', 1, 'stock', -1)",
        'DROP TABLE swapped; CREATE TABLE swapped (id int PRIMARY KEY, stock int NOT NULL)';
}
$old->safe_psql('shop', q(UPDATE page SET body = 'b'; ALTER TABLE page ADD a int; SELECT interlock.own_columns('page', 'editor', '{a}', on_violation => 'skip');
    INSERT INTO item VALUES (5, 9); SELECT interlock.adjust('item', 5, 'stock', -1)));
$new->safe_psql('shop', 'ALTER TABLE page ADD a int');
$old->safe_psql('shop', "UPDATE page SET a = 1; DELETE FROM item WHERE id = 5");
$old->wait_for_catchup('standby');
is($new->safe_psql('shop', 'SELECT count(*), count(*) FILTER (WHERE id > 1e15) FROM interlock.write_log'), '2|1', 'lines of the write log of both');
is($new->safe_psql('shop', 'SELECT count(*) FILTER (WHERE id > 1e15) FROM interlock.configuration_audit'), '2', 'and of the audits');
is($new->safe_psql('shop', 'SELECT count(*) FROM interlock_internal.escrow_counter WHERE id > 1e15'), '3', 'and counters');

my ($status, $out, $error) = $new->psql('shop', q(INSERT INTO item VALUES (6, 9); SELECT interlock.adjust('item', 6, 'stock', -1)));
like($error, qr/a subscription writes table "item", and its escrow counters/, 'the counters of the publisher are left to it');
$new->safe_psql('shop', 'DELETE FROM item WHERE id = 6');

# An entry in memory that is older than what has arrived. What has expired is given back before: the takeover would do it at any time.
$old->safe_psql('shop', "SELECT interlock.fold_escrow('item'); SELECT interlock.reserve('item', 4, 'stock', 8, '10 ms')");
$old->wait_for_catchup('standby');
is($new->safe_psql('shop', q(SELECT outcome FROM interlock.try_adjust('item', 2, 'stock', -1000))), 'insufficient', 'a look on the subscriber');
$old->safe_psql('shop', q(SELECT interlock.adjust('item', 2, 'stock', -30)));
$old->wait_for_catchup('standby');
my $values = q(SELECT id, interlock.escrow_value('item', id, 'stock') FROM item ORDER BY id);
my $before = $old->safe_psql('shop', $values);
is($before, "2|15\n4|80", 'what is left on the publisher');
is($new->safe_psql('shop', q(SELECT string_agg(DISTINCT subname, '') FROM pg_subscription)), 'standby', 'the subscription is still there');
is($new->safe_psql('shop', q(SELECT count(*) FROM pg_stat_subscription WHERE pid IS NOT NULL AND relid IS NULL)), 1, 'and works');
$old->stop;
$new->safe_psql('shop', 'ALTER SUBSCRIPTION standby DISABLE; ALTER SUBSCRIPTION standby SET (slot_name = NONE); DROP SUBSCRIPTION standby');
$new->safe_psql('shop', 'SELECT count(*) FROM interlock.resync_sequences()');
is($new->safe_psql('shop', q(SELECT outcome, remaining FROM interlock.try_adjust('item', 2, 'stock', -30))), 'insufficient|15', 'the same is left after the takeover');
is($new->safe_psql('shop', 'SELECT last_value < 1000 FROM interlock_internal.escrow_counter_id'), 't', 'numbers of others that are apart do not count');
is($new->safe_psql('shop', q(INSERT INTO item SELECT n, 9 FROM generate_series(10, 20) n;
    SELECT count(interlock.adjust('item', n, 'stock', -1)) FROM generate_series(10, 20) n)), 11, 'new counters have new numbers');

# Now the sweeper has its turn
ok($new->poll_query_until('shop', 'SELECT lock_status = 0 FROM page'), 'the marker is released');
ok($new->poll_query_until('shop', 'SELECT count(*) = 1 FROM interlock_internal.escrow_reservation'), 'the expired reservation is given back');
ok($new->poll_query_until('shop', q(SELECT count(*) = 0 FROM interlock.escrow WHERE rel = 'item'::regclass AND parts > 0)), 'parts are folded');
is($new->safe_psql('shop', "SELECT id, stock FROM item WHERE id < 10 ORDER BY id"), "2|15\n4|88", 'all of them, once');

# resync_sequences forgets no entry that a session is using: its grant may not be in the journal yet
$new->safe_psql('shop', q(INSERT INTO item VALUES (30, 3); SELECT interlock.adjust('item', 30, 'stock', -1)));
$new->safe_psql('shop', q(SELECT interlock.adjust('item', 30, 'stock', -1)));
my ($locker, @takers) = map { Protocol::start($new, 'shop') } 0 .. 2;
my $take = q(SELECT outcome FROM interlock.try_adjust('item', 30, 'stock', -1));
is(Protocol::query($takers[0], q(SELECT outcome FROM interlock.try_adjust('item', 30, 'stock', -9))), 'insufficient', 'an entry is there');
Protocol::query($locker, 'BEGIN; LOCK TABLE interlock_internal.escrow_part IN SHARE MODE');
Protocol::send_query($takers[0], $take);
ok($new->poll_query_until('shop', "SELECT count(*) = 1 FROM pg_locks WHERE pid = $takers[0]{pid} AND NOT granted"), 'one is granted, and waits to write its part');
# which has taken a number of a sequence: that one is left
$new->safe_psql('shop', "SET client_min_messages = error; SET lock_timeout = '200ms'; SELECT count(*) FROM interlock.resync_sequences()");
Protocol::send_query($takers[1], $take);
select(undef, undef, undef, 0.3);
Protocol::query($locker, 'COMMIT');
my @outcomes = map { Protocol::answer($_) } @takers;
like("@outcomes", qr/^adjusted (?:pending|insufficient)$/, 'of two the second gets nothing');
is($new->safe_psql('shop', q(SELECT interlock.escrow_value('item', 30, 'stock'))), 0, 'and the minimum holds');

# nor does a session go on with numbers that it took before rows arrived that have the next ones
my $adjust = q(SELECT interlock.adjust('item', 40, 'stock', -1));
Protocol::query($takers[0], $_) for 'INSERT INTO item VALUES (40, 9)', $adjust, $adjust;
$new->safe_psql('shop', q(INSERT INTO interlock_internal.escrow_part
    SELECT p.counter, p.number + n, -1 FROM interlock_internal.escrow_part p JOIN interlock_internal.escrow_counter c ON c.id = p.counter, generate_series(1, 4) n
     WHERE c.key = '{40}';
    SELECT interlock.resync_sequences()));
is(Protocol::query($takers[0], q(SELECT count(interlock.adjust('item', 40, 'stock', -1)))), 1, 'it takes others');

$new->stop;
done_testing();
