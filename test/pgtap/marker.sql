-- What callers of markers rely on.
BEGIN;
SELECT plan(24);

CREATE TABLE page (id int PRIMARY KEY, body text);
SELECT interlock.enable_versioning('page');
SELECT interlock.enable_marker('page', '1 hour', notify => 'full');
INSERT INTO page VALUES (1, 'x'), (2, 'x');

SELECT has_column('public', 'page', c, c) FROM unnest('{lock_status,lock_by,lock_time,lock_until,lock_reason}'::text[]) c;
SELECT results_eq($$SELECT locked, holder, locked_at IS NOT NULL, expires_at > locked_at FROM interlock.lock_row('page', 1, 'anna')$$,
    $$VALUES (true, 'anna', true, true)$$, 'locked');
SELECT results_eq($$SELECT locked, holder FROM interlock.lock_row('page', 1, 'bert')$$, $$VALUES (false, 'anna')$$, 'refused without an error');
PREPARE untyped AS SELECT locked, holder FROM interlock.lock_row('page', $1, $2, $3);
SELECT results_eq($$EXECUTE untyped('1', 'anna', '2 hours')$$, $$VALUES (true, 'anna')$$, 'renewed, with parameters without a type');
SELECT results_eq($$SELECT locked, holder, reason FROM interlock.row_lock('page', 1)$$, $$VALUES (true, 'anna', NULL)$$, 'row_lock');
SELECT results_eq($$SELECT rel, key, holder, live FROM interlock.row_locks$$, $$VALUES ('page'::regclass, '{"id": 1}'::jsonb, 'anna', true)$$, 'row_locks');
SELECT throws_ok($$UPDATE page SET body = 'y' WHERE id = 1$$, 'IL004');
SELECT throws_ok($$DELETE FROM page WHERE id = 1$$, 'IL004');
SELECT throws_ok($$SELECT interlock.versioned_update('page', 1, 1, '{"body": "y"}')$$, 'IL004');
SELECT throws_ok($$SELECT interlock.save_row('page', 1, 'bert', '{"body": "y"}')$$, 'IL005');
SELECT throws_ok($$SELECT interlock.save_row('page', 1, 'anna', '{"body": "y"}', 7)$$, 'IL001');
SELECT throws_ok($$SELECT interlock.lock_row('page', 99, 'anna')$$, 'P0002');
SELECT throws_ok($$SELECT interlock.lock_row('page', 2, '')$$, '22023');
SELECT throws_ok($$SELECT interlock.lock_row('page', 2, 'anna', '0')$$, '22023');
SELECT isnt(interlock.touch_row('page', 1, 'anna'), NULL, 'touched');
SELECT is(interlock.touch_row('page', 1, 'bert'), NULL, 'not by another');
SELECT is(interlock.save_row('page', 1, 'anna', '{"body": "y"}', 1), 2::bigint, 'saved');
SELECT is(interlock.unlock_row('page', 1, 'anna'), false, 'and released with it');
SELECT results_eq('SELECT body, lock_status, lock_by FROM page WHERE id = 1', $$VALUES ('y', 0::smallint, NULL::text)$$, 'in one step');
SELECT function_privs_are('interlock', 'force_unlock_row', ARRAY['regclass', 'text', 'text'], 'public', '{}'::text[]);

SELECT * FROM finish();
ROLLBACK;
