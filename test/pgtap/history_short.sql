-- HIS-67: short entries, whole_every: what is stored, what is read, trimming, and what prevents a short entry.
BEGIN;
SELECT plan(48);
SET LOCAL client_min_messages = error;
SET LOCAL timezone = 'UTC';

CREATE TABLE doc (id int PRIMARY KEY, title text, body text, price numeric, at timestamptz DEFAULT '2026-01-01 12:00+00');
SELECT interlock.enable_history('doc', whole_every => 4);
CREATE FUNCTION stored() RETURNS SETOF text LANGUAGE sql AS $$
    SELECT concat_ws(' ', operation, COALESCE(distance::text, '-'), row_data - 'at') FROM doc_history ORDER BY id $$;
CREATE FUNCTION distances() RETURNS text LANGUAGE sql AS $$
    SELECT string_agg(COALESCE(distance::text, '-'), ' ' ORDER BY id) FROM doc_history $$;

-- settings
SELECT throws_ok($$SELECT interlock.enable_history('doc', whole_every => 0)$$, '22023', 'argument "whole_every" must be between 1 and 100');
SELECT throws_ok($$SELECT interlock.enable_history('doc', whole_every => -1)$$, '22023', 'argument "whole_every" must be between 1 and 100');
SELECT throws_ok($$SELECT interlock.enable_history('doc', whole_every => 1000000)$$, '22023', 'argument "whole_every" must be between 1 and 100');
SELECT throws_ok($$SELECT interlock.enable_history('doc', whole_every => NULL)$$, '22004');
SELECT is((SELECT settings->>'whole_every' FROM interlock.guards WHERE rel = 'doc'::regclass AND mechanism = 'history'), '4', 'view guards');

-- what is stored, and what is read
INSERT INTO doc VALUES (1, 'a', 'long', 1);
UPDATE doc SET title = 'b';
UPDATE doc SET title = 'c', price = 2;
UPDATE doc SET body = NULL;
UPDATE doc SET title = 'd';
UPDATE doc SET title = 'e';
DELETE FROM doc;
SELECT results_eq('SELECT stored()', ARRAY['insert 0 {"id": 1, "body": "long", "price": 1, "title": "a"}', 'update 1 {"title": "b"}',
    'update 2 {"price": 2, "title": "c"}', 'update 3 {"body": null}', 'update 0 {"id": 1, "body": null, "price": 2, "title": "d"}', 'update 1 {"title": "e"}',
    'delete - {"id": 1, "body": null, "price": 2, "title": "e"}'], 'HIS-67: one of four entries has the whole row');
CREATE VIEW expected AS SELECT * FROM (VALUES
    ('insert', '{"id": 1, "body": "long", "price": 1, "title": "a"}'::jsonb, NULL::text[], NULL::jsonb),
    ('update', '{"id": 1, "body": "long", "price": 1, "title": "b"}', '{title}', '{"title": "a"}'),
    ('update', '{"id": 1, "body": "long", "price": 2, "title": "c"}', '{title,price}', '{"price": 1, "title": "b"}'),
    ('update', '{"id": 1, "body": null, "price": 2, "title": "c"}', '{body}', '{"body": "long"}'),
    ('update', '{"id": 1, "body": null, "price": 2, "title": "d"}', '{title}', '{"title": "c"}'),
    ('update', '{"id": 1, "body": null, "price": 2, "title": "e"}', '{title}', '{"title": "d"}'),
    ('delete', '{"id": 1, "body": null, "price": 2, "title": "e"}', NULL, NULL)) e (operation, row_data, changed, before);
SELECT results_eq($$SELECT operation, row_data - 'at', changed, before FROM interlock.row_history('doc', 1)$$, 'SELECT * FROM expected', 'HIS-67: row_history');
SELECT results_eq($$SELECT interlock.row_as_of('doc', 1, changed_at) - 'at' FROM doc_history WHERE operation <> 'delete' ORDER BY id$$,
    $$SELECT row_data FROM expected WHERE operation <> 'delete'$$, 'HIS-67: row_as_of');
SELECT results_eq($$SELECT to_jsonb(r) - 'at' FROM doc_history h, interlock.rows_as_of(NULL::doc, h.changed_at) r ORDER BY h.id$$,
    $$SELECT row_data FROM expected WHERE operation <> 'delete'$$, 'HIS-67: rows_as_of');
INSERT INTO doc VALUES (1, 'new', 'new', 0);
SELECT FROM interlock.revert_row('doc', 1, to_version => (SELECT id FROM doc_history WHERE row_data->>'title' = 'c'));
SELECT results_eq('SELECT title, body, price FROM doc', $$VALUES ('c', 'long', 2::numeric)$$, 'HIS-67: revert_row to a short entry');
SELECT is(outcome, 'reverted', 'HIS-67: try_revert_row') FROM interlock.try_revert_row('doc', 1, at => (SELECT changed_at FROM doc_history WHERE row_data->>'title' = 'b' ORDER BY id LIMIT 1));
SELECT results_eq('SELECT title, body, price FROM doc', $$VALUES ('b', 'long', 1::numeric)$$, 'HIS-67: revert_row to its time');

-- what prevents a short entry
TRUNCATE doc_history;
SELECT is(distances(), NULL, 'nothing is there');
UPDATE doc SET title = 'a';
UPDATE doc SET title = 'b';
SELECT is(distances(), '0 1', 'HIS-67: without an earlier entry it is whole');
SELECT interlock.suppress_history('doc', 'x');
UPDATE doc SET title = 'c';
SELECT interlock.restore_history('doc');
UPDATE doc SET price = 5;
SELECT is(distances(), '0 1 0', 'HIS-67: whole after a suppressed write');
UPDATE doc SET price = 6;
SELECT interlock.suppress_history('doc', 'x');
UPDATE doc SET title = 'd';
UPDATE doc SET title = 'c';
SELECT interlock.restore_history('doc');
UPDATE doc SET price = 7;
SELECT is(distances(), '0 1 0 1 2', 'HIS-67: short if the suppressed writes have changed nothing in the end');
ALTER TABLE doc ADD extra int DEFAULT 3;
UPDATE doc SET price = 8;
UPDATE doc SET extra = 4;
SELECT is(distances(), '0 1 0 1 2 0 1', 'HIS-67: whole after ADD COLUMN');
ALTER TABLE doc RENAME extra TO other;
UPDATE doc SET price = 9;
SELECT is(distances(), '0 1 0 1 2 0 1 0', 'HIS-67: after a rename');
ALTER TABLE doc DROP other;
UPDATE doc SET price = 10;
SELECT is(distances(), '0 1 0 1 2 0 1 0 0', 'HIS-67: after DROP COLUMN');
ALTER TABLE doc ALTER title TYPE text[] USING ARRAY[title];
UPDATE doc SET price = 11;
SELECT is(distances(), '0 1 0 1 2 0 1 0 0 0', 'HIS-67: after another type');
SET LOCAL session_replication_role = replica;
UPDATE doc SET body = 'replica';
RESET session_replication_role;
UPDATE doc SET price = 12;
SELECT is(distances(), '0 1 0 1 2 0 1 0 0 0 0', 'HIS-67: after a write without triggers');
SET LOCAL timezone = 'Asia/Tokyo';
UPDATE doc SET price = 13;
SET LOCAL timezone = 'UTC';
SELECT results_eq('SELECT row_data FROM interlock.row_history(''doc'', 1) ORDER BY id DESC LIMIT 1',
    $$VALUES ((SELECT to_jsonb(doc) FROM doc) || jsonb_build_object('at', (SELECT row_data->>'at' FROM interlock.row_history('doc', 1) ORDER BY id DESC LIMIT 1)))$$,
    'HIS-67: a row that prints in another way');
UPDATE doc SET price = 13.00;
UPDATE doc SET body = 'x';
SELECT results_eq($$SELECT row_data->>'price' FROM interlock.row_history('doc', 1) ORDER BY id DESC LIMIT 2$$, ARRAY['13.00', '13.00'],
    'HIS-67: a value that is equal and looks different');
UPDATE doc SET id = 2;
UPDATE doc SET body = 'y';
SELECT results_eq($$SELECT operation, distance FROM doc_history ORDER BY id DESC LIMIT 3$$,
    $$VALUES ('update', 1), ('update', 0), ('moved', NULL)$$, 'HIS-67: another key begins with a whole entry');
SELECT interlock.enable_history('doc', whole_every => 1);
UPDATE doc SET body = 'z';
SELECT is((SELECT distance FROM doc_history ORDER BY id DESC LIMIT 1), NULL, 'HIS-67: whole without whole_every');
SELECT interlock.enable_history('doc', whole_every => 4);
UPDATE doc SET body = 'w';
SELECT is((SELECT distance FROM doc_history ORDER BY id DESC LIMIT 1), 0, 'HIS-67: nothing builds on an entry without a hash');
SAVEPOINT s;
UPDATE doc SET body = 'v';
ROLLBACK TO s;
UPDATE doc SET body = 'u';
SELECT results_eq('SELECT distance, builds_on = (SELECT max(id) FROM doc_history WHERE distance = 0) FROM doc_history ORDER BY id DESC LIMIT 1',
    'VALUES (1, true)', 'HIS-67: not on one of a savepoint that was rolled back');
SET LOCAL interlock.direct_execution = off;
UPDATE doc SET body = 't';
RESET interlock.direct_execution;
SELECT is((SELECT distance FROM doc_history ORDER BY id DESC LIMIT 1), 2, 'HIS-67: an entry that a statement writes');
CREATE INDEX ON doc_history (changed_at);
UPDATE doc SET body = 's';
SELECT is((SELECT distance FROM doc_history ORDER BY id DESC LIMIT 1), 3, 'HIS-67: with an index of the owner');
DROP INDEX doc_history_jsonb_hash_extended_id_idx;
UPDATE doc SET body = 'r';
UPDATE doc SET body = 'q';
SELECT is((SELECT distance FROM doc_history ORDER BY id DESC LIMIT 1), 0, 'HIS-67: whole without the index of keys');
CREATE INDEX ON doc_history (jsonb_hash_extended(key, 0), id);

-- an entry that was changed or is gone
TRUNCATE doc_history;
UPDATE doc SET body = 'a';
UPDATE doc SET body = 'b';
UPDATE doc SET body = 'c';
SAVEPOINT s;
UPDATE doc_history SET row_data = row_data || '{"price": 99}' WHERE builds_on IS NULL;
SELECT throws_ok($$SELECT * FROM interlock.row_history('doc', 2)$$, 'XX001', NULL, 'HIS-67: a changed entry');
SELECT throws_like($$SELECT interlock.row_as_of('doc', 2, clock_timestamp())$$,
    format('entry %s of history table "doc_history" does not give the row that was recorded', (SELECT max(id) FROM doc_history)), 'HIS-67: the entry is named');
UPDATE doc_history SET row_hash = NULL WHERE distance > 0;
SELECT is(interlock.row_as_of('doc', 2, clock_timestamp())->>'price', '99', 'HIS-67: without the hash it is read');
UPDATE doc SET body = 'd';
SELECT is((SELECT distance FROM doc_history ORDER BY id DESC LIMIT 1), 0, 'HIS-67: and not built on');
ROLLBACK TO s;
DELETE FROM doc_history WHERE distance = 0;
SELECT throws_ok($$SELECT * FROM interlock.row_history('doc', 2)$$, 'XX001', NULL, 'HIS-67: an entry that is gone');
UPDATE doc_history SET builds_on = id;
SELECT throws_ok($$SELECT * FROM interlock.row_history('doc', 2)$$, 'XX001', NULL, 'HIS-67: an entry that builds on itself');
ROLLBACK TO s;
CREATE ROLE short_reader;
GRANT SELECT ON doc, doc_history TO short_reader;
ALTER TABLE doc_history ENABLE ROW LEVEL SECURITY;
CREATE POLICY short_only ON doc_history TO short_reader USING (distance > 0);
SET LOCAL ROLE short_reader;
SELECT throws_ok($$SELECT * FROM interlock.row_history('doc', 2)$$, '42501', NULL, 'HIS-67: an entry that row security hides');
RESET ROLE;
CREATE POLICY all_of_them ON doc_history TO short_reader USING (true);
SET LOCAL ROLE short_reader;
SELECT is((SELECT count(*) FROM interlock.row_history('doc', 2)), 3::bigint, 'HIS-67: a reader without privileges of the owner');
RESET ROLE;
ROLLBACK TO s;

-- trimming
SELECT interlock.enable_history('doc', keep_versions => 2, whole_every => 4);
SELECT is(trimmed, 1::bigint, 'HIS-67: an entry is trimmed') FROM interlock.trim_history('doc');
SELECT results_eq($$SELECT distance, builds_on IS NULL, row_data->>'body', row_data->>'price' FROM doc_history ORDER BY id$$,
    $$VALUES (1, true, 'b', '13.00'), (2, false, 'c', NULL)$$, 'HIS-67: the one that built on it is whole');
SELECT results_eq($$SELECT row_data->>'body', row_data->>'price' FROM interlock.row_history('doc', 2)$$,
    $$VALUES ('b', '13.00'), ('c', '13.00')$$, 'HIS-67: and all of them are read');
UPDATE doc SET body = 'd';
UPDATE doc SET body = 'e';
SELECT is(distances(), '1 2 3 0', 'HIS-67: the distance is counted on');
SELECT interlock.enable_history('doc', keep_versions => 1);
SELECT is(trimmed, 3::bigint, 'HIS-67: trimming without whole_every') FROM interlock.trim_history('doc');
DELETE FROM doc_history;
SELECT interlock.enable_history('doc', keep_versions => 1, whole_every => 4);
UPDATE doc SET body = 'a';
UPDATE doc SET body = 'b';
SELECT interlock.enable_history('doc', keep_versions => 1);
SELECT is(trimmed, 1::bigint, 'HIS-67: short entries from before') FROM interlock.trim_history('doc');
SELECT is((SELECT row_data->>'price' FROM interlock.row_history('doc', 2)), '13.00', 'HIS-67: become whole as well');
SELECT interlock.enable_history('doc', keep_for => '1 hour', whole_every => 4);
DELETE FROM doc_history;
UPDATE doc SET body = 'c';
UPDATE doc SET body = 'd';
UPDATE doc SET body = 'e';
UPDATE doc_history SET changed_at = changed_at - interval '2 hours' WHERE distance < 2;
SELECT is(trimmed, 2::bigint, 'HIS-67: keep_for') FROM interlock.trim_history('doc');
SELECT results_eq($$SELECT distance, builds_on IS NULL, row_data->>'price' FROM doc_history$$, $$VALUES (2, true, '13.00')$$, 'HIS-67: what is left is whole');
UPDATE doc_history SET changed_at = changed_at - interval '2 hours';
UPDATE doc SET body = 'f';
SELECT is(distances(), '2 0', 'HIS-67: nothing builds on an entry that has aged');

SELECT * FROM finish();
ROLLBACK;
