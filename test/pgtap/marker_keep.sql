-- MRK-58: an editor saves and keeps the row; a save says what happened instead of raising an error.
BEGIN;
SELECT plan(51);
CREATE TABLE doc (id int PRIMARY KEY, body text, secret text);
SELECT interlock.enable_versioning('doc'), interlock.enable_marker('doc', '10 min');
INSERT INTO doc VALUES (1, 'x'), (2, 'x');
CREATE FUNCTION left_of(key int) RETURNS text LANGUAGE sql AS $$
    SELECT CASE WHEN NOT locked THEN 'free' WHEN expires_at > clock_timestamp() + '50 min'::interval THEN 'an hour'
                WHEN expires_at > clock_timestamp() + '9 min'::interval THEN 'ten minutes' ELSE 'less' END
      FROM interlock.row_lock_of('doc', key)$$;
CREATE FUNCTION expire(key int) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    SET LOCAL session_replication_role = replica;
    UPDATE doc SET lock_until = now() - '1 s'::interval WHERE id = key;
    SET LOCAL session_replication_role = origin;
END $$;
CREATE FUNCTION both_ways(prepare text, query text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE way text; answer text;
BEGIN
    FOREACH way IN ARRAY '{on,off}'::text[] LOOP
        PERFORM set_config('interlock.direct_execution', way, true);
        EXECUTE prepare;
        EXECUTE query INTO answer;
        RETURN NEXT answer;
    END LOOP;
    PERFORM set_config('interlock.direct_execution', 'on', true);
END $$;

-- keep
SELECT is(locked, true, 'locked') FROM interlock.lock_row('doc', 1, 'anna', '1 min');
SELECT is(interlock.save_row('doc', 1, 'anna', '{"body": "a"}', 1, keep => true), 2::bigint, 'saved');
SELECT results_eq($$SELECT body, version, lock_by, left_of(1) FROM doc WHERE id = 1$$, $$VALUES ('a', 2::bigint, 'anna', 'ten minutes')$$, 'and kept, for the ttl of the table');
SELECT results_eq($$SELECT both_ways($q$SELECT interlock.touch_row('doc', 1, 'anna', '1 min')$q$, $q$SELECT interlock.save_row('doc', 1, 'anna', '{"body": "b"}', keep => true) > 2 AND left_of(1) = 'ten minutes'$q$)$$,
    $$VALUES ('true'), ('true')$$, 'both ways to write, without a version');
SELECT results_eq($$SELECT both_ways($q$SELECT interlock.touch_row('doc', 1, 'anna', '1 hour')$q$, $q$SELECT left_of(1) FROM interlock.save_row('doc', 1, 'anna', '{"body": "b"}', keep => true) s WHERE s > 0$q$)$$,
    $$VALUES ('an hour'), ('an hour')$$, 'a longer deadline is not shortened');
SELECT is(left_of(1), 'an hour', 'and is stored');
SELECT is(interlock.save_row('doc', 1, 'anna', '{}', keep => true), 7::bigint, 'without changes the version moves as well');
SELECT is(interlock.touch_row('doc', 1, 'anna', '1 min') IS NOT NULL, true, 'touched');
CREATE FUNCTION age() RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    SET LOCAL session_replication_role = replica;
    UPDATE doc SET lock_time = now() - '1 hour'::interval WHERE id = 1;
    SET LOCAL session_replication_role = origin;
END $$;
SELECT age();
SELECT is(interlock.save_row('doc', 1, 'anna', '{"body": "c"}', 7, true), 8::bigint, 'by position');
SELECT ok(lock_time > now() - '1 min'::interval, 'MRK-52: the time moves with the deadline') FROM doc WHERE id = 1;
SELECT is(interlock.save_row('doc', 1, 'anna', '{"body": "d"}', '8', true), '9', 'a version as text');
SELECT throws_ok($$SELECT interlock.save_row('doc', 1, 'anna', '{"body": "e"}', 8, keep => true)$$, 'IL001', NULL, 'another version');
SELECT is(left_of(1), 'ten minutes', 'keeps the marker, too');
SELECT is(interlock.save_row('doc', 1, 'anna', '{"body": "e"}', 9, keep => false), 10::bigint, 'without keep');
SELECT is(left_of(1), 'free', 'the row is released');
SELECT throws_ok($$SELECT interlock.save_row('doc', 1, 'anna', '{"body": "f"}', keep => true)$$, 'IL005', '"anna" does not hold the row of table "doc"', 'who has lost the marker cannot keep it');
SELECT is(locked, true, 'another') FROM interlock.lock_row('doc', 1, 'bert');
SELECT throws_ok($$SELECT interlock.save_row('doc', 1, 'anna', '{"body": "f"}', keep => true)$$, 'IL005', NULL, 'nor take it from the next holder');
SELECT expire(1);
SELECT results_eq($$SELECT both_ways('SELECT 1', $q$SELECT outcome FROM interlock.try_save_row('doc', 1, 'bert', '{"body": "late"}', keep => true)$q$)$$,
    $$VALUES ('lost'), ('lost')$$, 'a marker that has expired does not come back to life');
SELECT is(left_of(1), 'free', 'it does not');
SELECT throws_ok($$SELECT interlock.save_row('doc', 1, 'bert', '{"body": "late"}', keep => true)$$, 'IL005', NULL, 'as an error');
SELECT throws_ok($$SELECT interlock.save_row('doc', 99, 'bert', '{}', keep => true)$$, 'P0002');
SELECT throws_ok($$SELECT interlock.save_row('doc', 1, 'bert', '{}', 1, NULL)$$, '22004', 'argument "keep" must not be null');
SELECT throws_ok($$SELECT interlock.save_row('doc', 1, 'bert', '{"lock_until": "infinity"}', keep => true)$$, '22023');

-- a history has one entry for each save, by its holder
CREATE TABLE memo (id int PRIMARY KEY, body text);
SELECT interlock.enable_marker('memo'), interlock.enable_history('memo');
INSERT INTO memo VALUES (1, 'x');
SELECT is(locked, true, 'locked') FROM interlock.lock_row('memo', 1, 'anna');
SELECT is(interlock.save_row('memo', 1, 'anna', '{"body": "a"}', keep => true), NULL, 'a table without versions');
SELECT is(interlock.save_row('memo', 1, 'anna', '{"body": "b"}', keep => true), NULL, 'again');
SELECT results_eq($$SELECT row_data->>'body', writer, writer_from FROM interlock.row_history('memo', 1) WHERE operation = 'update'$$,
    $$VALUES ('a', 'anna', 'holder'), ('b', 'anna', 'holder')$$, 'has an entry for each');

-- try_save_row
SELECT is(locked, true, 'locked') FROM interlock.lock_row('doc', 2, 'anna');
SELECT results_eq($$SELECT * FROM interlock.try_save_row('doc', 2, 'anna', '{"body": "a"}', 1, keep => true)$$, $$VALUES ('saved', 2::bigint, NULL::jsonb)$$, 'saved');
SELECT is(left_of(2), 'ten minutes', 'and kept');
SELECT results_eq($$SELECT outcome, version, current->>'body', current->>'lock_by' FROM interlock.try_save_row('doc', 2, 'anna', '{"body": "b"}', 1)$$,
    $$VALUES ('conflict', 2::bigint, 'a', 'anna')$$, 'a conflict has the current row');
SELECT is(left_of(2), 'ten minutes', 'and the marker stays');
SELECT results_eq($$SELECT * FROM interlock.try_save_row('doc', 2, 'anna', '{"body": "b"}', '2')$$, $$VALUES ('saved', '3', NULL::jsonb)$$, 'with its version it is saved');
SELECT is(left_of(2), 'free', 'and released');
SELECT results_eq($$SELECT outcome, version, current->>'body', current->>'lock_by' FROM interlock.try_save_row('doc', 2, 'anna', '{"body": "c"}', 3)$$,
    $$VALUES ('lost', 3::bigint, 'b', NULL)$$, 'lost, with the current row');
SELECT is(locked, true, 'another') FROM interlock.lock_row('doc', 2, 'bert');
SELECT results_eq($$SELECT both_ways('SELECT 1', $q$SELECT (outcome, version, current->>'lock_by')::text FROM interlock.try_save_row('doc', 2, 'anna', '{"body": "c"}', 1)$q$)$$,
    $$VALUES ('(lost,3,bert)'), ('(lost,3,bert)')$$, 'to whom, whatever the version');
SELECT results_eq($$SELECT * FROM interlock.try_save_row('doc', 99, 'anna', '{"body": "c"}')$$, $$VALUES ('not_found', NULL::bigint, NULL::jsonb)$$, 'no row');
SELECT results_eq($$SELECT outcome, version, current->>'body' FROM interlock.try_save_row('memo', 1, 'bert', '{"body": "c"}')$$, $$VALUES ('lost', NULL::bigint, 'b')$$, 'without versions');
SELECT results_eq($$SELECT * FROM interlock.try_save_row('memo', 1, 'anna', '{"body": "c"}')$$, $$VALUES ('saved', NULL::bigint, NULL::jsonb)$$, 'saved without versions');
SELECT throws_ok($$SELECT interlock.try_save_row('memo', 1, 'anna', '{"body": "c"}', 1)$$, '55000');
SELECT throws_ok($$SELECT interlock.try_save_row('doc', 2, 'bert', '{"nowhere": 1}')$$, '42703');
SELECT throws_ok($$SELECT interlock.try_save_row('doc', 2, 'bert', '{"body": "c"}', keep => NULL)$$, '22004');
-- a time as version
CREATE TABLE note (id int PRIMARY KEY, body text, updated_time timestamptz DEFAULT '2026-01-01');
SELECT interlock.enable_versioning('note', 'updated_time'), interlock.enable_marker('note');
INSERT INTO note VALUES (1);
SELECT is(locked, true, 'locked') FROM interlock.lock_row('note', 1, 'anna');
SELECT results_eq($$SELECT outcome, version FROM interlock.try_save_row('note', 1, 'anna', '{"body": "a"}', '2026-02-01'::timestamptz)$$,
    $$VALUES ('conflict', '2026-01-01'::timestamptz)$$, 'a conflict of times');
SELECT results_eq($$SELECT outcome, version > '2026-01-01' FROM interlock.try_save_row('note', 1, 'anna', '{"body": "a"}', '2026-01-01'::timestamptz, true)$$,
    $$VALUES ('saved', true)$$, 'a time');
SELECT results_eq($$SELECT outcome, version FROM interlock.try_save_row('note', 1, 'anna', '{"body": "b"}', keep => true)$$, $$VALUES ('saved', NULL::bigint)$$, 'a number is none');
-- what the caller may not read is not shown; a trigger that suppresses the save is an error
CREATE ROLE interlock_editor;
GRANT SELECT (id, body, version, lock_status, lock_by, lock_until, lock_time, lock_reason), UPDATE ON doc TO interlock_editor;
SET ROLE interlock_editor;
SELECT results_eq($$SELECT outcome, current ? 'secret', current ? 'body' FROM interlock.try_save_row('doc', 2, 'anna', '{"body": "c"}')$$, $$VALUES ('lost', false, true)$$, 'columns that the caller may read');
RESET ROLE;
CREATE FUNCTION swallow() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';
CREATE TRIGGER a_swallow BEFORE UPDATE ON doc FOR EACH ROW EXECUTE FUNCTION swallow();
SELECT throws_ok($$SELECT interlock.try_save_row('doc', 2, 'bert', '{"body": "c"}', 3, true)$$, '09000');
SELECT throws_ok($$SELECT interlock.save_row('doc', 2, 'bert', '{"body": "c"}')$$, '09000');

SELECT * FROM finish();
ROLLBACK;
