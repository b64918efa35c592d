-- MRK-5: several rows are marked for one holder, all or none.
BEGIN;
SELECT plan(55);

CREATE TABLE page (id int PRIMARY KEY, body text);
SELECT interlock.enable_versioning('page');
SELECT interlock.enable_marker('page', '1 hour');
INSERT INTO page SELECT i, 'x' FROM generate_series(1, 9) i;
CREATE FUNCTION marked() RETURNS text LANGUAGE sql AS
    $$SELECT string_agg(id || ' ' || lock_by, ', ' ORDER BY id) FROM page WHERE lock_status = 1$$;

SELECT results_eq($$SELECT locked, blocked, expires_at > now() + interval '59 min' FROM interlock.lock_rows('page', '{3,1,3}', 'anna')$$,
    $$VALUES (true, NULL::jsonb, true)$$, 'locked');
SELECT is(marked(), '1 anna, 3 anna', 'each row once');
SELECT is(pg_stat_get_xact_tuples_updated('page'::regclass), 2::bigint, 'written once');
SELECT results_eq($$SELECT locked, blocked->0->'key', blocked->0->>'holder', (blocked->0->>'expires_at')::timestamptz > now(), jsonb_array_length(blocked), expires_at
    FROM interlock.lock_rows('page', ARRAY[2, 3, 4], 'bert')$$,
    $$VALUES (false, '{"id": 3}'::jsonb, 'anna', true, 1, NULL::timestamptz)$$, 'refused, with the row that is held');
SELECT is(marked(), '1 anna, 3 anna', 'and none is taken');
SELECT is(pg_stat_get_xact_tuples_updated('page'::regclass), 2::bigint, 'nor written');
SELECT is((SELECT jsonb_path_query_array(blocked, '$[*].key.id') FROM interlock.lock_rows('page', '[9, 3, 1, 2]', 'bert')), '[1, 3]', 'all that are held, in the order of keys');
SELECT is((SELECT locked FROM interlock.lock_rows('page', ARRAY[2, 3]::bigint[], 'anna', '2 hours', 'both')), true, 'the same holder prolongs');
SELECT results_eq('SELECT id, lock_reason, lock_until > now() + interval ''90 min'' FROM page WHERE lock_status = 1 ORDER BY id',
    $$VALUES (1, NULL, false), (2, 'both', true), (3, 'both', true)$$, 'with its ttl and reason');
SELECT results_eq($$SELECT * FROM interlock.lock_rows('page', '{}', 'anna')$$, $$VALUES (true, NULL::jsonb, NULL::timestamptz)$$, 'no rows');
SELECT throws_ok($$SELECT interlock.lock_rows('page', '{4,99}', 'anna')$$, 'P0002');
SELECT throws_ok($$SELECT interlock.lock_rows('page', '{99,3}', 'bert')$$, 'P0002', NULL, 'a missing row, whoever has the others');
SELECT is(marked(), '1 anna, 2 anna, 3 anna', 'and nothing has changed');

-- one that has expired is free
SET LOCAL session_replication_role = replica;
UPDATE page SET lock_until = now() - interval '1 min', lock_by = 'gone' WHERE id = 2;
RESET session_replication_role;
SELECT is((SELECT locked FROM interlock.lock_rows('page', '{2,4}', 'bert')), true, 'an expired marker');
SELECT is((SELECT lock_reason FROM page WHERE id = 2), NULL, 'and its reason is gone');
-- the functions on one row go on from there
SELECT is(interlock.unlock_row('page', 4, 'bert'), true, 'unlock_row');
SELECT isnt(interlock.touch_row('page', 2, 'bert'), NULL, 'touch_row');
SELECT is(interlock.save_row('page', 2, 'bert', '{"body": "y"}', 1), 2::bigint, 'save_row');

-- arguments
SELECT throws_ok($$SELECT interlock.lock_rows('page', NULL, 'anna')$$, '22004');
SELECT throws_ok($$SELECT interlock.lock_rows('page', ARRAY[4, NULL], 'anna')$$, '22004');
SELECT throws_ok($$SELECT interlock.lock_rows(NULL, '{4}', 'anna')$$, '22004');
SELECT throws_ok($$SELECT interlock.lock_rows('page', '{4}', '')$$, '22023');
SELECT throws_ok($$SELECT interlock.lock_rows('page', '{4}', 'anna', '0')$$, '22023');
SELECT throws_ok($$SELECT interlock.lock_rows('page', 4, 'anna')$$, '22023');
SELECT throws_ok($$SELECT interlock.lock_rows('page', '4', 'anna')$$, '22P02');
SELECT throws_ok($$SELECT interlock.lock_rows('page', '{x}', 'anna')$$, '22P02');
PREPARE mark AS SELECT locked FROM interlock.lock_rows($1, $2, $3);
SELECT results_eq($$EXECUTE mark('page', '{5,6}', 'anna')$$, 'VALUES (true)', 'parameters without a type');
PREPARE mark_for AS SELECT locked FROM interlock.lock_rows($1, $2, $3, $4, $5);
SELECT results_eq($$EXECUTE mark_for('page', '[5,6]', 'anna', '1 day', 'why')$$, 'VALUES (true)', 'all of them');
SELECT is(marked(), '1 anna, 3 anna, 5 anna, 6 anna', 'marked');

-- a call that means SELECT ... FOR UPDATE
CREATE FUNCTION hint_of(command text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    hint text;
BEGIN
    EXECUTE command;
    RETURN 'no error';
EXCEPTION WHEN null_value_not_allowed THEN
    GET STACKED DIAGNOSTICS hint = PG_EXCEPTION_HINT;
    RETURN hint;
END $$;
CREATE TABLE account (id int PRIMARY KEY);
INSERT INTO account VALUES (1), (2);
SELECT matches(hint_of($$SELECT interlock.lock_rows('account', '{2,1}')$$), 'interlock\.select_for_update\(''account'', ''\{2,1\}''\)', 'a hint that can be typed');
SELECT matches(hint_of($$SELECT interlock.lock_rows('account', ARRAY[2, 1])$$), 'interlock\.select_for_update\(''account'', ''\{2,1\}''\)', 'also for an array');
SELECT is((SELECT count(*) FROM interlock.select_for_update('account', '{2,1}')), 2::bigint, 'and does what was meant');
SELECT matches(hint_of($$SELECT interlock.lock_rows('account', NULL)$$), 'select_for_update\(''account'', keys\)', 'without keys');
SELECT throws_ok($$SELECT interlock.lock_rows('account', '{1}', 'anna')$$, '55000');
SELECT throws_ok($$SELECT interlock.lock_rows(NULL, NULL)$$, '22004');

-- keys of several columns, a partitioned table
CREATE TABLE part (area text, id int, body text, PRIMARY KEY (area, id)) PARTITION BY LIST (area);
CREATE TABLE part_n PARTITION OF part FOR VALUES IN ('north');
CREATE TABLE part_s PARTITION OF part FOR VALUES IN ('south');
SELECT interlock.enable_marker('part');
INSERT INTO part VALUES ('north', 1), ('north', 2), ('south', 1);
SELECT is((SELECT locked FROM interlock.lock_rows('part', '[{"area": "south", "id": 1}, {"area": "north", "id": 2}]'::jsonb, 'anna')), true, 'composite keys, of two partitions');
SELECT is((SELECT blocked->0->'key' FROM interlock.lock_rows('part', '[{"area": "north", "id": 1}, {"id": 2, "area": "north"}]', 'bert')),
    '{"id": 2, "area": "north"}', 'refused');
SELECT is((SELECT string_agg(area || id, ' ' ORDER BY area, id) FROM part WHERE lock_by IS NOT NULL), 'north2 south1', 'marked there');

-- rows that another unique key names: the table's key says which are held
CREATE TABLE article (id int PRIMARY KEY, slug text NOT NULL UNIQUE);
SELECT interlock.enable_marker('article');
INSERT INTO article VALUES (1, 'z'), (2, 'a');
SELECT is((SELECT locked FROM interlock.lock_rows('article', '[{"slug": "z"}, {"id": 1}]'::jsonb, 'anna')), true, 'one row by two keys');
SELECT is((SELECT jsonb_path_query_array(blocked, '$[*].key') FROM interlock.lock_rows('article', '[{"slug": "a"}, {"slug": "z"}]'::jsonb, 'bert')),
    '[{"id": 1}]', 'refused');

-- markers that only advise, and history
CREATE TABLE advice (id int PRIMARY KEY, body text);
SELECT interlock.enable_marker('advice', enforce => false);
SELECT interlock.enable_history('advice', record_markers => true);
INSERT INTO advice VALUES (1), (2);
SELECT is((SELECT locked FROM interlock.lock_rows('advice', '{1,2}', 'anna')), true, 'without enforcement');
SELECT is((SELECT locked FROM interlock.lock_rows('advice', '{1,2}', 'bert')), false, 'refused all the same');
SELECT is((SELECT count(*) FROM interlock.row_history('advice', 1)), 2::bigint, 'an entry of what was written');

-- the way without a statement and the statement do the same
SET LOCAL interlock.direct_execution = off;
SELECT is((SELECT locked FROM interlock.lock_rows('page', '{1,4}', 'anna')), true, 'by statements');
SELECT is((SELECT jsonb_path_query_array(blocked, '$[*].key.id') FROM interlock.lock_rows('page', '{7,1,4}', 'bert')), '[1, 4]', 'refused');
RESET interlock.direct_execution;

-- who may
CREATE ROLE marker_rows_role;
GRANT USAGE ON SCHEMA public TO marker_rows_role;
SET LOCAL ROLE marker_rows_role;
SELECT throws_ok($$SELECT interlock.lock_rows('page', '{7}', 'carl')$$, '42501');
RESET ROLE;
GRANT SELECT, UPDATE (body) ON page TO marker_rows_role;
SET LOCAL ROLE marker_rows_role;
SELECT throws_ok($$SELECT interlock.lock_rows('page', '{7}', 'carl')$$, '42501');
RESET ROLE;
GRANT UPDATE (lock_status, lock_by, lock_time, lock_until, lock_reason) ON page TO marker_rows_role;
SET LOCAL ROLE marker_rows_role;
SELECT is((SELECT locked FROM interlock.lock_rows('page', '{7,8}', 'carl')), true, 'privileges on the columns alone');
RESET ROLE;
-- row security: a row that cannot be seen is not there, one that cannot be written is not taken
ALTER TABLE page ENABLE ROW LEVEL SECURITY;
CREATE POLICY seen ON page FOR SELECT TO marker_rows_role USING (id <> 9);
CREATE POLICY written ON page FOR UPDATE TO marker_rows_role USING (id <> 8);
SET LOCAL ROLE marker_rows_role;
SELECT throws_ok($$SELECT interlock.lock_rows('page', '{7,9}', 'carl')$$, 'P0002');
SELECT throws_ok($$SELECT interlock.lock_rows('page', '{7,8}', 'carl')$$, '42501');
SELECT is((SELECT locked FROM interlock.lock_rows('page', '{7}', 'carl')), true, 'the others are');
RESET ROLE;
-- a trigger that suppresses a write
CREATE FUNCTION suppress() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';
CREATE TRIGGER a_suppress BEFORE UPDATE ON page FOR EACH ROW WHEN (OLD.id = 5) EXECUTE FUNCTION suppress();
SELECT throws_ok($$SELECT interlock.lock_rows('page', '{4,5}', 'anna')$$, '09000');

-- a thousand rows
CREATE TABLE many (id int PRIMARY KEY);
SELECT interlock.enable_marker('many');
INSERT INTO many SELECT generate_series(1, 1000);
SELECT is((SELECT locked FROM interlock.lock_rows('many', array(SELECT id FROM many ORDER BY random()), 'anna')), true, 'a thousand rows');
SELECT is((SELECT count(*) FROM many WHERE lock_by = 'anna'), 1000::bigint, 'are marked');
SELECT is((SELECT jsonb_array_length(blocked) FROM interlock.lock_rows('many', array(SELECT id FROM many), 'bert')), 1000, 'and blocked');

SELECT * FROM finish();
ROLLBACK;
