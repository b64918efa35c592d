# OPS-2: a logical subscriber takes over. Rows came along, sequences did not, until resync_sequences.

use strict;
use warnings;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my ($old, $new) = map { PostgreSQL::Test::Cluster->new($_) } qw(old new);
for my $node ($old, $new)
{
    $node->init(allows_streaming => 'logical');
    $node->append_conf('postgresql.conf', "shared_preload_libraries = 'pg_interlock'\ninterlock.sweeper = off");
    $node->start;
}
$old->safe_psql('postgres', q(
    CREATE EXTENSION pg_interlock;
    CREATE TABLE doc (id int PRIMARY KEY, note text);
    CREATE TABLE "Odd Part" (id int, r text, PRIMARY KEY (id, r)) PARTITION BY LIST (r);
    CREATE TABLE part_a PARTITION OF "Odd Part" FOR VALUES IN ('a');
    SELECT interlock.enable_versioning('doc'), interlock.enable_history('doc');
    SELECT interlock.enable_versioning('"Odd Part"'), interlock.enable_history('"Odd Part"');
    CREATE TABLE plain (id int PRIMARY KEY);
    SELECT interlock.enable_versioning('plain');
    CREATE ROLE owner; GRANT CREATE ON SCHEMA public TO owner;));
my $schema = $old->basedir . '/schema.sql';
$old->command_ok([ 'pg_dump', '-s', '-f', $schema, $old->connstr('postgres') ], 'the schema');
$new->safe_psql('postgres', 'CREATE ROLE owner');
$new->command_ok([ 'psql', '-qX', '-v', 'ON_ERROR_STOP=1', '-d', $new->connstr('postgres'), '-f', $schema ], 'is loaded');
$old->safe_psql('postgres', q(CREATE PUBLICATION all_of_it FOR TABLE doc, doc_history, plain, "Odd Part", "Odd Part_history", interlock.idempotency,
    interlock.idempotency_audit, interlock.row_lock_audit, interlock.lease_audit, interlock.configuration_audit, interlock.write_log));
my $connection = $old->connstr('postgres');
$connection =~ s/'/''/g;
$new->safe_psql('postgres', "CREATE SUBSCRIPTION standby CONNECTION '$connection' PUBLICATION all_of_it");
$old->safe_psql('postgres', q(
    INSERT INTO doc VALUES (1, 'a'), (2, 'b');
    UPDATE doc SET note = note || '!';
    UPDATE doc SET note = note || '!' WHERE id = 2;
    DELETE FROM doc WHERE id = 2;
    INSERT INTO "Odd Part" VALUES (1, 'a');
    INSERT INTO plain VALUES (1); UPDATE plain SET id = 1; UPDATE plain SET id = 1;
    SELECT interlock.idempotency_claim('pay', g::text) FROM generate_series(1, 5) g;
    SELECT interlock.idempotency_complete('pay', 'answered', token, '1', body => '\x00ff') FROM interlock.idempotency_claim('pay', 'answered', ttl => '1 h');
    SELECT interlock.idempotency_claim('pay', 'forgotten', stale_after => '1 us'), pg_sleep(0.01);
    SELECT interlock.idempotency_forget('pay', 'forgotten', 'a test');
    CREATE TABLE page (id int PRIMARY KEY, note text);
    INSERT INTO page VALUES (1, 'a');
    SELECT interlock.enable_marker('page'), interlock.own_columns('page', 'editors', '{note}'), interlock.grant_writer('shop', current_user, may_force => true);
    SELECT interlock.lock_row('page', 1, 'anna'), interlock.force_unlock_row('page', 1, 'a test');
    SELECT interlock.acquire_lease('job'), interlock.break_lease('job', 'a test');
    BEGIN; SELECT interlock.set_writer('shop', force => true); UPDATE page SET note = 'b'; COMMIT));
$new->wait_for_subscription_sync($old, 'standby');
$old->wait_for_catchup('standby');
my $old_sequences = $old->safe_psql('postgres',
    q(SELECT oid::regclass, pg_sequence_last_value(oid) FROM pg_class WHERE relkind = 'S' AND relnamespace = 'interlock'::regnamespace ORDER BY oid::regclass::text COLLATE "C"));
$old->stop;
$new->safe_psql('postgres', 'ALTER SUBSCRIPTION standby DISABLE; ALTER SUBSCRIPTION standby SET (slot_name = NONE); DROP SUBSCRIPTION standby');

my ($ret, $out, $err) = $new->psql('postgres', "UPDATE doc SET note = 'lost'");
like($err, qr/duplicate key value violates unique constraint "doc_history_pkey"/, 'OPS-2: without it the history has no numbers left');

# Only the owner's
is($new->safe_psql('postgres', 'SET ROLE owner; SELECT * FROM interlock.resync_sequences()'), '', 'OPS-2: a role that owns nothing moves nothing');
$new->safe_psql('postgres', 'ALTER TABLE plain OWNER TO owner; ALTER TABLE doc OWNER TO owner');
is($new->safe_psql('postgres', 'SET ROLE owner; SELECT sequence FROM interlock.resync_sequences() ORDER BY 1::text'),
    "doc_version_start\nplain_version_start", 'OPS-2: an owner moves his, and not the history of another role');
$new->safe_psql('postgres', 'ALTER TABLE doc OWNER TO CURRENT_USER; ALTER TABLE plain OWNER TO CURRENT_USER');
$new->safe_psql('postgres', 'CREATE TABLE moved AS SELECT * FROM interlock.resync_sequences()');
is($new->safe_psql('postgres', q(SELECT sequence, after FROM moved WHERE sequence::text NOT LIKE 'interlock.%' AND sequence <> 'doc_version_start'::regclass ORDER BY sequence::text COLLATE "C")),
    qq("Odd Part_history_id_seq"|1\n"Odd Part_version_start"|1\ndoc_history_id_seq|6), 'OPS-2: a superuser all');
is($new->safe_psql('postgres', q(SELECT sequence, after FROM moved WHERE sequence::text LIKE 'interlock.%' ORDER BY sequence::text COLLATE "C")),
    $old_sequences, 'OPS-2: each sequence of the extension, to what the publisher had');
is($new->safe_psql('postgres', 'SELECT count(*) FROM interlock.resync_sequences()'), 0, 'OPS-2: once is enough');
$new->safe_psql('postgres', "SELECT setval('doc_history_id_seq', 1000)");
is($new->safe_psql('postgres', 'SELECT count(*) FROM interlock.resync_sequences()'), 0, 'OPS-2: none is set back');

$new->safe_psql('postgres', "UPDATE doc SET note = 'kept'; INSERT INTO \"Odd Part\" VALUES (2, 'a')");
is($new->safe_psql('postgres', q(SELECT string_agg(row_data->>'note', ' ' ORDER BY id) FROM interlock.row_history('doc', 1))), 'a a! kept', 'OPS-2: the history goes on');
is($new->safe_psql('postgres', "INSERT INTO doc VALUES (2, 'again') RETURNING version"), 4, 'OPS-2: a key that is used again starts above what its history has');
is($new->safe_psql('postgres', 'DELETE FROM plain; INSERT INTO plain VALUES (1) RETURNING version'), 4, 'OPS-2: or above every row');
is($new->safe_psql('postgres', "SELECT token > 8 FROM interlock.idempotency_claim('pay', 'new')"), 't', 'OPS-2: tokens are new');
is($new->safe_psql('postgres', q(SELECT outcome, body FROM interlock.idempotency_claim('pay', 'answered'))), 'replay|\x00ff', 'IDM-5: bodies are there');
is($new->safe_psql('postgres', q(SELECT outcome FROM interlock.idempotency_claim('pay', 'forgotten', '{"other": 1}'))), 'acquired', 'IDM-3: and what was forgotten');

is($new->safe_psql('postgres', "SELECT interlock.enable_marker('plain')"), '', 'OPS-2: what is configured has a number, too');

# It waits for who is writing
my $session = $new->background_psql('postgres');
$session->query_safe("BEGIN; UPDATE doc SET note = 'open';");
($ret, $out, $err) = $new->psql('postgres', "SET lock_timeout = '100ms'; SET client_min_messages = warning; SELECT * FROM interlock.resync_sequences()");
like($err, qr/WARNING:  sequence "doc_history_id_seq" was not set: canceling statement due to lock timeout/, 'OPS-2: it waits for writers, and says what it left');
$session->query_safe('COMMIT');
$session->quit;

$new->stop;
done_testing();
