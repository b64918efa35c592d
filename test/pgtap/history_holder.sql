-- HIS-65: the user of an application is the writer of an entry, without a grant, also in one call with the write; row_history leaves
-- out the columns of a marker.
BEGIN;
SELECT plan(23);
CREATE ROLE interlock_app;
CREATE TABLE page (id int PRIMARY KEY, body text);
SELECT interlock.enable_versioning('page'), interlock.enable_history('page');
GRANT SELECT, INSERT, UPDATE, DELETE ON page TO interlock_app;
GRANT SELECT ON page_history TO interlock_app;
CREATE FUNCTION writers() RETURNS SETOF text LANGUAGE sql AS $$SELECT format('%s by %s (%s, %s)', operation, writer, writer_from, changed_by) FROM interlock.row_history('page', 1)$$;

-- a table without markers
SET ROLE interlock_app;
SELECT interlock.set_holder('anna');
INSERT INTO page VALUES (1, 'a');
SELECT interlock.versioned_update('page', 1, 1, '{"body": "b"}');
SELECT interlock.set_holder('bert');
UPDATE page SET body = 'c' WHERE id = 1;
SELECT interlock.set_holder(NULL);
UPDATE page SET body = 'd' WHERE id = 1;
SELECT results_eq('SELECT writers()', ARRAY['insert by anna (holder, interlock_app)', 'update by anna (holder, interlock_app)',
    'update by bert (holder, interlock_app)', 'update by  (, interlock_app)'], 'the holder of the transaction, and the role');
RESET ROLE;
DELETE FROM page_history;

-- in one call with the write: the function in FROM runs before the row is written
SET ROLE interlock_app;
SELECT is((SELECT interlock.versioned_update('page', 1, 4, '{"body": "e"}') FROM interlock.set_holder('web 1')), 5::bigint, 'versioned_update');
SELECT interlock.set_holder(NULL);
SELECT results_eq($$SELECT outcome FROM interlock.set_holder('web 2'), interlock.try_versioned_update('page', 1, 5, '{"body": "f"}')$$, $$VALUES ('updated')$$, 'try_versioned_update');
SELECT interlock.set_holder(NULL);
UPDATE page SET body = 'g' FROM interlock.set_holder('web 3') WHERE id = 1;
SELECT interlock.set_holder(NULL);
INSERT INTO page SELECT 1, 'h' FROM interlock.set_holder('web 4') ON CONFLICT (id) DO UPDATE SET body = excluded.body;
SELECT interlock.set_holder(NULL);
DELETE FROM page USING interlock.set_holder('web 5') WHERE id = 1;
SELECT interlock.set_holder(NULL);
INSERT INTO page SELECT i, 'new' FROM interlock.set_holder('web 6'), generate_series(1, 3) i;
SELECT results_eq('SELECT writers()', ARRAY['update by web 1 (holder, interlock_app)', 'update by web 2 (holder, interlock_app)', 'update by web 3 (holder, interlock_app)',
    'update by web 4 (holder, interlock_app)', 'delete by web 5 (holder, interlock_app)', 'insert by web 6 (holder, interlock_app)'], 'all of them');
RESET ROLE;
SELECT is((SELECT count(*) FROM page_history WHERE writer = 'web 6'), 3::bigint, 'each of several rows');
-- a writer that was granted comes first, and a name alone grants nothing
SELECT interlock.grant_writer('importer', 'interlock_app');
SELECT interlock.own_columns('page', 'importer', '{body}');
SET ROLE interlock_app;
SELECT throws_ok($$UPDATE page SET body = 'x' FROM interlock.set_holder('importer') WHERE id = 1$$, 'IL007', NULL, 'a holder is no writer');
UPDATE page SET body = 'x' FROM interlock.set_holder('anna'), interlock.set_writer('importer') WHERE id = 1;
SELECT results_eq($$SELECT writer, writer_from FROM interlock.row_history('page', 1) ORDER BY id DESC LIMIT 1$$, $$VALUES ('importer', 'set_writer')$$, 'a writer comes first');
RESET ROLE;
SELECT interlock.set_writer(NULL), interlock.set_holder(NULL);

-- save_row names its holder, and row_history shows no columns of the marker
CREATE TABLE doc (id int PRIMARY KEY, body text);
INSERT INTO doc VALUES (1, 'a');
SELECT interlock.enable_versioning('doc'), interlock.enable_marker('doc'), interlock.enable_history('doc');
SELECT is(locked, true, 'locked') FROM interlock.lock_row('doc', 1, 'anna');
SELECT is(interlock.save_row('doc', 1, 'anna', '{"body": "b"}', keep => true), 2::bigint, 'kept');
SELECT is(interlock.save_row('doc', 1, 'anna', '{"body": "c"}'), 3::bigint, 'saved');
SELECT is(locked, true, 'locked') FROM interlock.lock_row('doc', 1, 'anna');
SELECT lives_ok($$SELECT interlock.delete_row('doc', 1, 'anna')$$, 'deleted');
SELECT results_eq($$SELECT operation, writer, row_data, changed, before FROM interlock.row_history('doc', 1)$$,
    $$VALUES ('update', 'anna', '{"id": 1, "body": "b", "version": 2}'::jsonb, '{body,version}'::text[], '{"body": "a", "version": 1}'::jsonb),
             ('update', 'anna', '{"id": 1, "body": "c", "version": 3}', '{body,version}', '{"body": "b", "version": 2}'),
             ('delete', 'anna', '{"id": 1, "body": "c", "version": 3}', NULL, NULL)$$, 'entries without the columns of the marker');
SELECT results_eq($$SELECT changed, before->>'lock_by' FROM interlock.row_history('doc', 1, true) WHERE operation = 'update' ORDER BY id$$,
    $$VALUES ('{body,version,lock_time,lock_until}'::text[], NULL), ('{body,version,lock_status,lock_by,lock_time,lock_until}', 'anna')$$, 'with them');
SELECT results_eq($$SELECT row_data ? 'lock_by', changed IS NULL FROM interlock.row_history('doc', 1, markers => true) WHERE operation = 'delete'$$, $$VALUES (true, true)$$, 'by name');
SELECT results_eq($$SELECT row_data ? 'lock_by' FROM interlock.row_history('doc', 1, markers => false) WHERE operation = 'delete'$$, $$VALUES (false)$$, 'not wanted');
SELECT is((SELECT row_data ? 'lock_by' FROM doc_history ORDER BY id DESC LIMIT 1), true, 'the history table has them');
-- recorded, they are shown
SELECT interlock.enable_history('doc', record_markers => true);
INSERT INTO doc VALUES (2, 'a');
SELECT is(locked, true, 'locked') FROM interlock.lock_row('doc', 2, 'anna');
SELECT results_eq($$SELECT operation, row_data->>'lock_by', cardinality(changed) FROM interlock.row_history('doc', 2)$$, $$VALUES ('insert', NULL, NULL), ('update', 'anna', 4)$$, 'if they are recorded');
SELECT results_eq($$SELECT operation, row_data ? 'lock_by', changed FROM interlock.row_history('doc', 2, false)$$, $$VALUES ('insert', false, NULL::text[]), ('update', false, '{}')$$, 'unless they are not wanted');
-- columns of other names; a table whose markers have ended has none
SELECT interlock.disable_marker('doc');
SELECT interlock.enable_history('doc');
SELECT is((SELECT count(*) FROM interlock.row_history('doc', 2) WHERE row_data ? 'lock_by'), 2::bigint, 'columns of a former marker are like others');
CREATE TABLE sheet (id int, region text, state int DEFAULT 0, editor text, PRIMARY KEY (id, region)) PARTITION BY LIST (region);
CREATE TABLE sheet_eu PARTITION OF sheet FOR VALUES IN ('eu');
SELECT interlock.enable_marker('sheet', status_column => 'state', holder_column => 'editor', reason_column => 'why'), interlock.enable_history('sheet');
INSERT INTO sheet VALUES (1, 'eu');
SELECT results_eq($$SELECT row_data FROM interlock.row_history('sheet_eu', '{"id": 1, "region": "eu"}')$$, $$VALUES ('{"id": 1, "region": "eu"}'::jsonb)$$, 'a partition');
SELECT is((SELECT count(*) FROM interlock.row_history('page', 1, NULL)), 7::bigint, 'a table without markers');

SELECT * FROM finish();
ROLLBACK;
