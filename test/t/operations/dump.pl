# pg_dump and restore into new oids: versions, their start, transitions and markers go with the tables.

use strict;
use warnings;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('main');
$node->init;
$node->append_conf('postgresql.conf', "shared_preload_libraries = 'pg_interlock'\ninterlock.sweeper_rescan = 1\ninterlock.sweeper = off");
$node->start;
$node->safe_psql('postgres', 'CREATE DATABASE source');
$node->safe_psql('source', q(
    CREATE EXTENSION pg_interlock;
    CREATE TABLE doc (id int PRIMARY KEY, body text, seen timestamptz);
    SELECT interlock.enable_versioning('doc', ignore_columns => '{seen}');
    SELECT interlock.enable_marker('doc', '1 hour', notify => 'full', take_over => 'allow');
    INSERT INTO doc VALUES (1, 'a'), (2, 'b'), (3, 'c');
    UPDATE doc SET body = body || '!' WHERE id = 3;
    UPDATE doc SET body = body || '!' WHERE id = 3;
    DELETE FROM doc WHERE id = 3;
    CREATE TABLE orders (id int PRIMARY KEY, status text);
    SELECT interlock.define_transitions('orders', 'status', '{"new": ["paid"], "paid": ["it''s \"sent\""]}', '{new}');
    INSERT INTO orders VALUES (1, 'new'); UPDATE orders SET status = 'paid';
    CREATE TABLE ticket (id int, region text, status text, agent text, PRIMARY KEY (id, region)) PARTITION BY LIST (region);
    CREATE TABLE ticket_eu PARTITION OF ticket FOR VALUES IN ('eu');
    CREATE SCHEMA "Rules";
    CREATE FUNCTION "Rules"."Why not"(old ticket, new ticket) RETURNS text LANGUAGE sql AS $$ SELECT CASE WHEN new.agent <> old.agent THEN 'only ' || old.agent END $$;
    CREATE FUNCTION may_open(old ticket, new ticket) RETURNS boolean LANGUAGE sql AS $$ SELECT new.agent IS NULL $$;
    SELECT interlock.define_transitions('ticket', 'status', '{"open": ["closed"], "closed": ["open"]}', on_repeat => 'reject',
        guards => '{"open": {"closed": "\"Rules\".\"Why not\"(ticket, ticket)"}, "closed": {"open": "may_open(ticket, ticket)"}}');
    INSERT INTO ticket VALUES (1, 'eu', 'open', 'ann'), (2, 'eu', 'closed', 'ann');
    CREATE TABLE part (id int, region text, body text, PRIMARY KEY (id, region)) PARTITION BY LIST (region);
    CREATE TABLE part_eu PARTITION OF part FOR VALUES IN ('eu');
    SELECT interlock.enable_versioning('part');
    INSERT INTO part VALUES (1, 'eu', 'x'); UPDATE part SET body = 'y';
    CREATE TABLE sheet (id int, "Kind" text, body text, seen int, PRIMARY KEY (id, "Kind")) PARTITION BY LIST (id);
    CREATE TABLE sheet_1 PARTITION OF sheet FOR VALUES IN (1);
    INSERT INTO sheet VALUES (1, 'a', 'x');
    SELECT interlock.require_lease('sheet', columns => '{body}');
    SELECT interlock.require_lease('sheet', '{{it''s "\"}}/{Kind}', '{seen}');
    CREATE TABLE shared (id int, region text, "It's ""a" text, price int, qty int, PRIMARY KEY (id, region)) PARTITION BY LIST (region);
    CREATE TABLE shared_eu PARTITION OF shared FOR VALUES IN ('eu');
    INSERT INTO shared VALUES (1, 'eu', 'a', 1, 1);
    SELECT interlock.grant_writer('ed''itor "\', 'public');
    SELECT interlock.own_columns('shared', 'ed''itor "\', ARRAY['It''s "a'], 'skip');
    SELECT interlock.share_columns('shared', '{price}', 'merge'); SELECT interlock.group_columns('shared', '{price,qty}');
    UPDATE shared SET "It's ""a" = 'skipped';
    CREATE TABLE page (id int, lang text, title text, body text, PRIMARY KEY (id, lang)) PARTITION BY LIST (lang);
    CREATE TABLE page_de (body text, lang text NOT NULL, title text, id int NOT NULL);
    ALTER TABLE page ATTACH PARTITION page_de FOR VALUES IN ('de');
    CREATE TABLE page_en PARTITION OF page FOR VALUES IN ('en');
    SELECT interlock.enable_history('page', whole_every => 4);
    INSERT INTO page VALUES (1, 'de', 'a', 'x'); UPDATE page SET title = 'b'; UPDATE page SET lang = 'en'; UPDATE page SET title = 'c';
    SELECT interlock.lock_row('doc', 1, 'anna', '1 hour', 'over the dump');
    SELECT interlock.lock_row('doc', 2, 'bert');
    SELECT interlock.force_unlock_row('doc', 2, 'for the audit');
    SELECT interlock.lock_row('doc', 2, 'bert', '1 s');));

my $dump = $node->basedir . '/source.dump';
$node->command_ok([ 'pg_dump', '-Fc', '-f', $dump, $node->connstr('source') ], 'pg_dump');
# Another database, with other oids
$node->safe_psql('postgres', 'CREATE DATABASE target');
$node->safe_psql('target', 'CREATE TABLE shift_the_oids (id int); DROP TABLE shift_the_oids;');
$node->command_ok([ 'pg_restore', '--exit-on-error', '-d', $node->connstr('target'), $dump ], 'pg_restore');

is($node->safe_psql('target', 'SELECT id, version, lock_by FROM doc ORDER BY id'), "1|1|anna\n2|1|bert", 'rows, versions and markers');
is($node->safe_psql('target', "SELECT (interlock.row_lock_of('doc', 1)).holder, (interlock.row_lock_of('doc', 1)).reason"),
    'anna|over the dump', 'the marker still holds');
my ($ret, $out, $err) = $node->psql('target', "UPDATE doc SET body = 'stolen' WHERE id = 1");
like($err, qr/being edited by "anna"/, 'and is enforced');
$node->safe_psql('target', "UPDATE page SET body = 'y'");
is($node->safe_psql('target', "SELECT l, operation, row_data->>'title', row_data->>'body' FROM unnest('{de,en}'::text[]) l, interlock.row_history('page', jsonb_build_object('id', 1, 'lang', l))"),
    "de|insert|a|x\nde|update|b|x\nde|moved|b|x\nen|insert|b|x\nen|update|c|x\nen|update|c|y", 'HIS-67: short entries of partitions are read');
is($node->safe_psql('target', 'SELECT distance FROM page_history ORDER BY id DESC LIMIT 1'), 2, 'HIS-67: and the next one builds on them');
$node->append_conf('postgresql.conf', 'interlock.sweeper = on');
$node->reload;
ok($node->poll_query_until('target', 'SELECT lock_status = 0 FROM doc WHERE id = 2'), 'the sweeper finds a restored marker');
is($node->safe_psql('target', "SELECT interlock.versioned_update('doc', 2, 1, '{\"body\": \"new\"}')"), 2, 'versions move on');
is($node->safe_psql('target', "UPDATE doc SET seen = now() WHERE id = 2 RETURNING version"), 2, 'ignored columns are ignored still');
is($node->safe_psql('target', "INSERT INTO doc VALUES (3, 'again') RETURNING version"), 4, 'VER-19: the start came along');
($ret, $out, $err) = $node->psql('target', "UPDATE orders SET status = 'new'");
like($err, qr/cannot go from "paid" to "new"/, 'transitions are enforced');
($ret, $out, $err) = $node->psql('target', "INSERT INTO orders VALUES (2, 'paid')");
like($err, qr/new row in table "orders" cannot be "paid"/, 'initial states, too');
is($node->safe_psql('target', "INSERT INTO orders VALUES (1, 'paid') ON CONFLICT (id) DO UPDATE SET status = excluded.status RETURNING status"), 'paid', 'for rows that are new');
is($node->safe_psql('target', q(SELECT outcome FROM interlock.try_transition('orders', 1, 'paid', 'it''s "sent"'))), 'transitioned', 'and allowed');
my $declared = 'SELECT rel, from_state, to_state, guard FROM interlock.transitions WHERE state_column = \'status\' ORDER BY rel::text, 2, 3';
is($node->safe_psql('target', $declared), $node->safe_psql('source', $declared), 'TRN-3: what is declared came along');
for my $table ('ticket', 'ticket_eu')
{
    ($ret, $out, $err) = $node->psql('target', "UPDATE $table SET status = 'closed', agent = 'bob' WHERE id = 1");
    like($err, qr/cannot go from "open" to "closed": only ann/, "TRN-3: and the guard of $table");
    ($ret, $out, $err) = $node->psql('target', "UPDATE $table SET status = 'open' WHERE id = 2");
    like($err, qr/guard may_open\(ticket,ticket\) does not allow it/, 'TRN-3: each for its transition');
    ($ret, $out, $err) = $node->psql('target', "UPDATE $table SET status = 'closed' WHERE id = 2");
    like($err, qr/cannot go from "closed" to "closed"/, 'TRN-1: and what becomes of a repeated state');
}
($ret, $out, $err) = $node->psql('target', 'DROP FUNCTION "Rules"."Why not"');
like($err, qr/because other objects depend on it/, 'TRN-3: which cannot be dropped');
is($node->safe_psql('target', "UPDATE part_eu SET body = 'z' RETURNING version"), 3, 'partitions are versioned');
for ([ "UPDATE sheet SET body = 'y'", 'sheet:1:a' ], [ 'UPDATE sheet_1 SET seen = 2', q({it's "\"}/a) ])
{
    ($ret, $out, $err) = $node->psql('target', $_->[0]);
    like($err, qr/needs lease "\Q$_->[1]\E"/, "lease $_->[1] is required still");
}
$node->safe_psql('target', q(SELECT interlock.unrequire_lease('sheet', '{{it''s "\"}}/{Kind}')));
is($node->safe_psql('target', "UPDATE sheet SET seen = 2 RETURNING seen"), 2, 'one by one');
is($node->safe_psql('target', q(BEGIN; SELECT interlock.assert_lease('sheet:1:a', token) FROM interlock.acquire_lease('sheet:1:a');
    UPDATE sheet SET body = 'y' RETURNING body; COMMIT)), "\ny", 'and is enough');
is($node->safe_psql('target', 'SELECT rel, column_name, writer, on_violation, strategy, group_number FROM interlock.column_ownership ORDER BY 2'),
    qq(shared|It's "a|ed'itor "\\|skip||\nshared|price|||merge|1\nshared|qty||||1), 'rules of columns');
is($node->safe_psql('target', q(UPDATE shared_eu SET "It's ""a" = 'x' RETURNING "It's ""a")), 'a', 'hold in partitions');
is($node->safe_psql('target', q(BEGIN; SELECT interlock.set_writer('ed''itor "\'); UPDATE shared SET "It's ""a" = 'x' RETURNING "It's ""a"; COMMIT)),
    "\nx", 'for the writer who owns them');
is($node->safe_psql('target', 'SELECT rel, owner, given FROM interlock.skipped_writes ORDER BY id'),
    qq(shared|ed'itor "\\|{"It's \\"a": "skipped"}\nshared|ed'itor "\\|{"It's \\"a": "x"}), 'what was skipped came along');
is($node->safe_psql('target', 'SELECT holder, reason FROM interlock.row_lock_audit'), 'bert|for the audit', 'the audit came along');
is($node->safe_psql('target', "SELECT outcome, previous_holder FROM interlock.take_over_row('doc', 1, 'carl', 'next')"), 'taken|anna', 'who may take over, too');
is($node->safe_psql('target', "SELECT interlock.force_unlock_row('doc', 1, 'next')"), 'carl', 'and goes on');
is($node->safe_psql('target', "SELECT count(*) FROM interlock.advise() WHERE severity = 'broken'"), 0, 'nothing is off');

# C11, VER-16: a subscriber is not protected by its own trigger, and is told
$node->safe_psql('target', 'CREATE SUBSCRIPTION sub CONNECTION \'dbname=nowhere\' PUBLICATION p WITH (connect = false)');
$node->safe_psql('target', q(
    INSERT INTO pg_subscription_rel (srsubid, srrelid, srsubstate)
    SELECT oid, 'doc'::regclass, 'r' FROM pg_subscription;), extra_params => [ '-c', 'SET allow_system_table_mods = on' ]);
is($node->safe_psql('target', "SELECT rel FROM interlock.advise() WHERE finding ~ 'subscription'"), 'doc', 'C11: a subscription is noticed');
is($node->safe_psql('target', "SELECT count(*) FROM interlock.advise() WHERE advice ~ 'ENABLE ALWAYS'"), 0,
    'C11: the advice is not to check again what the publisher checked: a refusal stops the subscription');

# Dropped with the extension, nothing is left behind that stops a writer
$node->safe_psql('source', 'DROP EXTENSION pg_interlock CASCADE');
$node->safe_psql('source', "UPDATE doc SET body = 'free', version = 77");
is($node->safe_psql('source', "SELECT count(*) FROM pg_depend WHERE refobjid = 'interlock'::regnamespace"), 0, 'SEC-11: the schema is empty');
$node->stop;
done_testing();
