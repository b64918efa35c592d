-- What callers of markers rely on.
BEGIN;
SELECT plan(58);

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
SELECT results_eq($$SELECT locked, holder, reason FROM interlock.row_lock_of('page', 1)$$, $$VALUES (true, 'anna', NULL)$$, 'row_lock_of');
SELECT results_eq($$SELECT rel, key, holder, live FROM interlock.row_locks$$, $$VALUES ('page'::regclass, '{"id": 1}'::jsonb, 'anna', true)$$, 'row_locks');
SELECT throws_ok($$UPDATE page SET body = 'y' WHERE id = 1$$, 'IL004');
SELECT throws_ok($$DELETE FROM page WHERE id = 1$$, 'IL004');
SELECT throws_ok($$SELECT interlock.versioned_update('page', 1, 1, '{"body": "y"}')$$, 'IL004');
SELECT throws_ok($$SELECT interlock.save_row('page', 1, 'bert', '{"body": "y"}')$$, 'IL005');
SELECT throws_ok($$SELECT interlock.save_row('page', 1, 'anna', '{"body": "y"}', 7)$$, 'IL001');
SELECT throws_ok($$SELECT interlock.lock_row('page', 99, 'anna')$$, 'P0002');
SELECT throws_ok($$SELECT interlock.row_lock_of('page', 99)$$, 'P0002');
SELECT throws_ok($$SELECT interlock.save_row('page', 99, 'anna', '{"body": "y"}')$$, 'P0002');
SELECT is(interlock.touch_row('page', 99, 'anna'), NULL, 'a row that does not exist holds no marker');
SELECT is(interlock.unlock_row('page', 99, 'anna'), false, 'so there is none to give back');
SELECT throws_ok($$SELECT interlock.lock_row('page', 2, '')$$, '22023');
SELECT throws_ok($$SELECT interlock.lock_row('page', 2, 'anna', '0')$$, '22023');
SELECT isnt(interlock.touch_row('page', 1, 'anna'), NULL, 'touched');
SELECT is(interlock.touch_row('page', 1, 'bert'), NULL, 'not by another');
SELECT ok(interlock.touch_row('page', 1, 'anna', '3 hours') > now() + '2 hours 59 min'::interval, 'for another time than the table''s');
SELECT ok(interlock.touch_row('page', 1, 'anna', ttl => '1 min') > now() + '2 hours 59 min'::interval, 'never nearer');
SET LOCAL interlock.direct_execution = off;
SELECT ok(interlock.touch_row('page', 1, 'anna', make_interval(hours => 4)) > now() + '3 hours 59 min'::interval, 'also by a statement');
RESET interlock.direct_execution;
SELECT throws_ok($$SELECT interlock.touch_row('page', 1, 'anna', '-1 s')$$, '22023', 'argument "ttl" must be a duration above zero and at most ten years');
SELECT throws_ok($$SELECT interlock.touch_row('page', 1, 'bert', '0')$$, '22023');
SELECT is(interlock.save_row('page', 1, 'anna', '{"body": "y"}', 1), 2::bigint, 'saved');
SELECT is(interlock.unlock_row('page', 1, 'anna'), false, 'and released with it');
SELECT results_eq('SELECT body, lock_status, lock_by FROM page WHERE id = 1', $$VALUES ('y', 0::smallint, NULL::text)$$, 'in one step');
SELECT function_privs_are('interlock', 'force_unlock_row', ARRAY['regclass', 'text', 'text'], 'public', '{}'::text[]);

-- MRK-5: a save compares versions of any type, and returns the new one in it
CREATE TABLE memo (id int PRIMARY KEY, body text, updated_time timestamptz DEFAULT '2026-01-01');
SELECT interlock.enable_versioning('memo', 'updated_time');
SELECT interlock.enable_marker('memo', '1 hour');
INSERT INTO memo VALUES (1);
CREATE FUNCTION locked(rel regclass) RETURNS regclass LANGUAGE sql AS $$SELECT rel FROM interlock.lock_row(rel, 1, 'anna') WHERE locked$$;
CREATE FUNCTION token() RETURNS timestamptz LANGUAGE sql AS 'SELECT updated_time FROM memo';
SELECT is(interlock.save_row(locked('memo'), 1, 'anna', '{"body": "a"}', '2026-01-01'::timestamptz), token(), 'a time');
SELECT isnt(token(), '2026-01-01', 'that has moved');
SELECT is(interlock.save_row(locked('memo'), 1, 'anna', '{"body": "b"}', token()::text), token()::text, 'a time as text');
SELECT throws_ok($$SELECT interlock.save_row(locked('memo'), 1, 'anna', '{"body": "c"}', '2026-01-01'::timestamptz)$$, 'IL001');
SELECT throws_ok($$SELECT interlock.save_row(locked('memo'), 1, 'anna', '{"body": "c"}', '2026-01-01')$$, 'IL001');
SELECT throws_ok($$SELECT interlock.save_row(locked('memo'), 1, 'anna', '{"body": "c"}', 7)$$, '42804');
SELECT throws_ok($$SELECT interlock.save_row(locked('memo'), 1, 'anna', '{"body": "c"}', 'x')$$, '22007');
SELECT is(interlock.save_row(locked('memo'), 1, 'anna', '{"body": "c"}', NULL::timestamptz), token(), 'null is not compared');
SELECT is(interlock.save_row(locked('memo'), 1, 'anna', '{"body": "d"}'), NULL, 'a number is none');
SELECT is(interlock.save_row(locked('page'), 1, 'anna', '{"body": "z"}', '2'), '3', 'a counter as text');
SELECT is(interlock.save_row(locked('page'), 1, 'anna', '{"body": "y"}', NULL::text), '4', 'null, as text');
SELECT throws_ok($$SELECT interlock.save_row(locked('page'), 1, 'anna', '{"body": "z"}', '2')$$, 'IL001');
SELECT throws_ok($$SELECT interlock.save_row(locked('page'), 1, 'anna', '{"body": "z"}', now())$$, '42804');
SELECT throws_ok($$SELECT interlock.save_row(locked('page'), 1, 'anna', '{"version": 9}', '4')$$, '22023');
PREPARE save AS SELECT interlock.save_row($1, $2, $3, $4, $5);
SELECT results_eq($$EXECUTE save(locked('page'), '1', 'anna', '{"body": "z"}', '4')$$, $$VALUES ('5')$$, 'parameters without a type');
PREPARE save_unseen AS SELECT interlock.save_row($1, $2, $3, $4);
SELECT results_eq($$EXECUTE save_unseen(locked('page'), '1', 'anna', '{"body": "y"}')$$, $$VALUES (6::bigint)$$, 'without a version');
CREATE TABLE bare (id int PRIMARY KEY, body text);
SELECT interlock.enable_marker('bare');
INSERT INTO bare VALUES (1);
SELECT is(interlock.save_row(locked('bare'), 1, 'anna', '{"body": "z"}', NULL::text), NULL, 'a table without versions');
SELECT throws_ok($$SELECT interlock.save_row(locked('bare'), 1, 'anna', '{"body": "z"}', '1')$$, '55000');
-- a time without zone that was read where clocks were put forward
CREATE TABLE local (id int PRIMARY KEY, body text, updated_time timestamp);
SELECT interlock.enable_marker('local');
INSERT INTO local VALUES (1, 'x', '2026-03-29 02:30');
SELECT interlock.enable_versioning('local', 'updated_time');
SET timezone = 'Europe/Berlin';
SELECT ok(interlock.save_row(locked('local'), 1, 'anna', '{"body": "y"}', '2026-03-29 03:30+02'::timestamptz) > '2026-03-29', 'is the one that was shown');
RESET timezone;
-- values that no verb writes, which an owner can make of any size
CREATE TABLE vast (id text PRIMARY KEY);
SELECT interlock.enable_marker('vast');
ALTER TABLE vast DISABLE TRIGGER USER;
INSERT INTO vast VALUES ('1', 1, repeat('é', 3000000), now(), now() + interval '1 day', repeat('r', 8191) || 'é'), (repeat('k', 8192), 1, 'anna', now(), now() + interval '1 day', NULL);
SELECT results_eq($$SELECT key, length(holder), octet_length(holder), length(reason) FROM interlock.row_locks WHERE rel = 'vast'::regclass ORDER BY key$$,
    $$VALUES ('{"id": "1"}'::jsonb, 4096, 8192, 8191), (NULL, 4, 4, NULL)$$, 'row_locks has the first 8 kB, between characters, and no long key');
SELECT results_eq($$SELECT name, octet_length(holder) FROM interlock.held WHERE rel = 'vast'::regclass ORDER BY name$$,
    $$VALUES ('{"id": "1"}', 8192), (NULL, 4)$$, 'so has held');
CREATE TABLE numbered (n numeric, i int[], s int4range, PRIMARY KEY (n, i, s));
CREATE TABLE numbers (n numeric[] PRIMARY KEY);
CREATE TYPE inner_quotes AS (a text);
CREATE TYPE outer_quotes AS (b inner_quotes);
CREATE TABLE quoted (k inner_quotes PRIMARY KEY);
CREATE TABLE nested (k outer_quotes PRIMARY KEY);
CREATE TABLE sparse (k int[] PRIMARY KEY);
CREATE TABLE flags (k bool[] PRIMARY KEY);
SELECT interlock.enable_marker(t) FROM unnest('{numbered,numbers,quoted,nested,sparse,flags}'::regclass[]) t;
INSERT INTO sparse VALUES (array_fill(NULL::int, ARRAY[9000])), (array_fill(NULL::int, ARRAY[7000]));
INSERT INTO flags VALUES (array_fill(true, ARRAY[900]));
INSERT INTO quoted VALUES (ROW('"'));
INSERT INTO nested VALUES (ROW(ROW('"')));
SELECT interlock.claim_rows(t, 'anna', 9) FROM unnest('{quoted,nested,sparse,flags}'::regclass[]) t;
INSERT INTO numbered VALUES (12.5, '{1}', '[1,2)'), (1e1000, '{2}', '[1,2)'), (1e-1001, '{3}', '[1,2)'), ('NaN', '{4}', '[1,2)'), ('-Infinity', '{5}', '[1,2)'), (-1e999, '{6}', '[1,2)');
INSERT INTO numbers VALUES ('{1}');
SELECT is((SELECT count(*) FROM interlock.lock_rows('numbered', (SELECT jsonb_agg(to_jsonb(k)) FROM (SELECT n, i, s FROM numbered) k), 'anna')), 1::bigint, 'keys of numbers');
SELECT is((SELECT count(*) FROM interlock.claim_rows('numbers', 'anna', 9)), 1::bigint, 'and of lists of them');
SELECT results_eq($$SELECT rel, count(*), count(key) FROM interlock.row_locks WHERE rel = ANY ('{numbered,numbers,quoted,nested,sparse,flags}'::regclass[]) GROUP BY rel ORDER BY 1$$,
    $$VALUES ('numbered'::regclass, 6::bigint, 4::bigint), ('numbers'::regclass, 1, 0), ('quoted'::regclass, 1, 1), ('nested'::regclass, 1, 0), ('sparse'::regclass, 2, 0), ('flags'::regclass, 1, 1)$$, 'no key is shown that is far longer as text');
ALTER TABLE vast ENABLE TRIGGER USER;
SELECT is((SELECT length(holder) FROM interlock.row_lock_of('vast', '1')), 3000000, 'who names the row gets all of it');

SELECT * FROM finish();
ROLLBACK;
