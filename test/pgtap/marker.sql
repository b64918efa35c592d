-- What callers of markers rely on.
BEGIN;
SELECT plan(106);

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
SELECT ok(interlock.touch_row('page', 1, 'anna') > now() + '2 hours 59 min'::interval, 'never nearer without one');
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
-- values that no function writes, which an owner can make of any size
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

-- MRK-51: to lock again never shortens; to touch with a ttl may
CREATE TABLE form (id int PRIMARY KEY, body text);
INSERT INTO form VALUES (1), (2);
SELECT interlock.enable_marker('form', '5 min');
CREATE FUNCTION minutes_left() RETURNS text LANGUAGE sql AS
    $$SELECT CASE WHEN lock_until > clock_timestamp() + '20 min'::interval THEN 'half an hour' ELSE 'less' END FROM form WHERE id = 1$$;
CREATE FUNCTION both_ways(command text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE way text;
BEGIN
    FOREACH way IN ARRAY '{on,off}'::text[] LOOP
        PERFORM set_config('interlock.direct_execution', way, true);
        PERFORM interlock.touch_row('form', 1, 'anna', '30 min');
        EXECUTE command;
        RETURN NEXT minutes_left();
    END LOOP;
    PERFORM set_config('interlock.direct_execution', 'on', true);
END $$;
SELECT locked FROM interlock.lock_row('form', 1, 'anna', '30 min');
SELECT results_eq($$SELECT both_ways('SELECT * FROM interlock.lock_row(''form'', 1, ''anna'')')$$, $$VALUES ('half an hour'), ('half an hour')$$, 'MRK-51: lock_row');
SELECT results_eq($$SELECT both_ways('SELECT * FROM interlock.lock_row(''form'', 1, ''anna'', ''1 min'')')$$, $$VALUES ('half an hour'), ('half an hour')$$, 'MRK-51: with a ttl');
SELECT results_eq($$SELECT both_ways('SELECT * FROM interlock.lock_rows(''form'', ''{1,2}'', ''anna'')')$$, $$VALUES ('half an hour'), ('half an hour')$$, 'MRK-51: lock_rows');
SELECT results_eq($$SELECT both_ways('SELECT interlock.touch_row(''form'', 1, ''anna'')')$$, $$VALUES ('half an hour'), ('half an hour')$$, 'MRK-51: touch_row');
SELECT results_eq($$SELECT both_ways('SELECT interlock.touch_row(''form'', 1, ''anna'', ''1 min'')')$$, $$VALUES ('less'), ('less')$$, 'MRK-51: touch_row with a ttl');
SELECT ok(expires_at > clock_timestamp() + '20 min'::interval, 'MRK-51: the answer is what is stored') FROM interlock.lock_row('form', 1, 'anna', '30 min');
SELECT ok(expires_at > clock_timestamp() + '20 min'::interval, 'MRK-51: and stays') FROM interlock.lock_row('form', 1, 'anna');

-- MRK-52: the time of a marker moves when it is touched, so that a job that frees what is old meets no live row
CREATE FUNCTION free_old() RETURNS bigint LANGUAGE sql AS $$
    WITH freed AS (UPDATE form SET lock_status = 0, lock_by = NULL, lock_time = NULL
                    WHERE lock_status = 1 AND lock_time < now() - '30 min'::interval RETURNING 1) SELECT count(*) FROM freed$$;
CREATE FUNCTION age_all() RETURNS void LANGUAGE plpgsql AS $$ -- as if they had been locked an hour ago
BEGIN
    SET LOCAL session_replication_role = replica;
    UPDATE form SET lock_time = lock_time - '1 hour'::interval;
    SET LOCAL session_replication_role = origin;
END $$;
CREATE FUNCTION older_than_an_hour() RETURNS bigint LANGUAGE sql AS $$SELECT count(*) FROM form WHERE lock_time < clock_timestamp() - '59 min'::interval$$;
SELECT age_all();
SELECT is(older_than_an_hour(), 2::bigint, 'MRK-52: two of them');
SELECT throws_ok('SELECT free_old()', 'IL004', NULL, 'MRK-52: live ones that nobody touched');
SELECT isnt(interlock.touch_row('form', id, 'anna'), NULL, 'MRK-52: touched') FROM form;
SELECT is(older_than_an_hour(), 0::bigint, 'MRK-52: none of them');
SELECT is(free_old(), 0::bigint, 'MRK-52: the job leaves them');
SELECT age_all();
SELECT ok(locked_at > clock_timestamp() - '59 min'::interval, 'MRK-52: as to lock again') FROM interlock.lock_row('form', 1, 'anna');
SET LOCAL interlock.direct_execution = off;
SELECT isnt(interlock.touch_row('form', 2, 'anna'), NULL, 'MRK-52: by a statement');
RESET interlock.direct_execution;
SELECT is(older_than_an_hour(), 0::bigint, 'MRK-52: none of them again');

-- MRK-50: half of a lock is not adopted, whatever its status holds; both ways out work
CREATE FUNCTION says(command text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE message text; hint text;
BEGIN
    EXECUTE command;
    RETURN 'done';
EXCEPTION WHEN OTHERS THEN
    GET STACKED DIAGNOSTICS message = MESSAGE_TEXT, hint = PG_EXCEPTION_HINT;
    RETURN SQLSTATE || ': ' || message || E'\n' || hint;
END $$;
CREATE TABLE seat (id int PRIMARY KEY, status int NOT NULL DEFAULT 0, lock_by text, lock_time timestamptz);
INSERT INTO seat VALUES (1, 0), (2, 2);
SELECT is(says($$SELECT interlock.enable_marker('seat')$$), '55000: columns of table "seat" look like a lock whose status is column "status"' || E'\n' ||
    'If it is a lock, adopt its status too, after its other values have moved to another column: SELECT interlock.enable_marker(''public.seat'', status_column => ''status''). '
    'If it means something else, give the marker columns of its own: SELECT interlock.enable_marker(''public.seat'', holder_column => ''marker_by'', '
    'time_column => ''marker_time'').', 'MRK-50: a status that also holds a 2');
SELECT hasnt_column('public', 'seat', 'lock_status', 'MRK-50: nothing was added');
SAVEPOINT before;
SELECT is(says($$SELECT interlock.enable_marker('public.seat', holder_column => 'marker_by', time_column => 'marker_time')$$), 'done', 'MRK-50: columns of its own');
SELECT results_eq($$SELECT locked FROM interlock.lock_row('seat', 1, 'anna')$$, 'VALUES (true)', 'MRK-50: are those of the marker');
SELECT is(lock_by, NULL, 'MRK-50: and the others are left alone') FROM seat WHERE id = 1;
ROLLBACK TO before;
SELECT matches(says($$SELECT interlock.enable_marker('public.seat', status_column => 'status')$$), '^55000: .*other value', 'MRK-50: the status with the 2');
ALTER TABLE seat ADD sold boolean NOT NULL DEFAULT false;
UPDATE seat SET sold = true, status = 0 WHERE status = 2;
SELECT is(says($$SELECT interlock.enable_marker('public.seat', status_column => 'status')$$), 'done', 'MRK-50: and once it has moved');
UPDATE seat SET status = 1, lock_by = 'anna', lock_time = now() WHERE id = 1 AND status = 0;
SELECT results_eq($$SELECT locked, holder FROM interlock.lock_row('seat', 1, 'bert')$$, $$VALUES (false, 'anna')$$, 'MRK-50: there is one holder');
CREATE TABLE owned (id int PRIMARY KEY, lock_by text);
SELECT matches(says($$SELECT interlock.enable_marker('owned')$$), '^55000: column "lock_by" of table "owned" looks like half of a lock', 'MRK-50: a holder alone');
SELECT is(says($$SELECT interlock.enable_marker('owned', status_column => 'lock_status')$$), 'done', 'MRK-50: whose status is to be added');

-- MRK-56: each move of a marker changes xmin, which is no token therefore, and not the version
CREATE TABLE entity (id int PRIMARY KEY, body text);
INSERT INTO entity VALUES (1, 'a');
SELECT interlock.enable_versioning('entity');
SELECT interlock.enable_marker('entity');
CREATE TEMP TABLE loaded AS SELECT ctid AS place, version FROM entity;
SELECT locked FROM interlock.lock_row('entity', 1, 'anna');
SELECT isnt(interlock.touch_row('entity', 1, 'anna'), NULL, 'MRK-56: touched');
SELECT results_eq('SELECT e.ctid = l.place, e.version = l.version FROM entity e, loaded l', 'VALUES (false, true)', 'MRK-56: another row version, and the same version');

-- MRK-54: a save without changes is a save: it moves the version, as versioned_update does; and the way out of IL001 is one
CREATE TABLE draft (id int PRIMARY KEY, body text);
INSERT INTO draft VALUES (1, 'a');
SELECT interlock.enable_versioning('draft');
SELECT interlock.enable_marker('draft');
CREATE FUNCTION hint_of(command text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE hint text;
BEGIN
    EXECUTE command;
    RETURN NULL;
EXCEPTION WHEN OTHERS THEN
    GET STACKED DIAGNOSTICS hint = PG_EXCEPTION_HINT;
    RETURN hint;
END $$;
SELECT locked FROM interlock.lock_row('draft', 1, 'anna');
SELECT is(interlock.save_row('draft', 1, 'anna', '{}', 1), 2::bigint, 'MRK-54: a save without changes');
SELECT locked FROM interlock.lock_row('draft', 1, 'anna');
SELECT is(interlock.save_row('draft', 1, 'anna', '{"body": "a"}', 2), 3::bigint, 'MRK-54: and one of what is there');
SELECT locked FROM interlock.lock_row('draft', 1, 'anna');
SET LOCAL interlock.direct_execution = off;
SELECT is(interlock.save_row('draft', 1, 'anna', '{}'), 4::bigint, 'MRK-54: by a statement');
RESET interlock.direct_execution;
SELECT is(version, 4::bigint, 'MRK-54: is stored') FROM draft;
SELECT is(interlock.unlock_row('draft', 1, 'anna'), false, 'MRK-54: and released');
SELECT locked FROM interlock.lock_row('draft', 1, 'anna');
SELECT is(interlock.unlock_row('draft', 1, 'anna'), true, 'MRK-54: to give up without a save');
SELECT is(version, 4::bigint, 'MRK-54: moves nothing') FROM draft;
SELECT locked FROM interlock.lock_row('draft', 1, 'anna');
SELECT is(hint_of($$SELECT interlock.save_row('draft', 1, 'anna', '{"body": "b"}', 1)$$),
    'The marker is still held. Read the row, and call save_row again with its version, or unlock_row to give up.', 'MRK-54: the hint of a conflict');
SELECT is(interlock.save_row('draft', 1, 'anna', '{"body": "b"}', (SELECT version FROM draft)), 5::bigint, 'MRK-54: as it says');

CREATE TABLE flagged (id int PRIMARY KEY, is_locked boolean NOT NULL DEFAULT false, locked_by text, locked_at timestamptz);
INSERT INTO flagged VALUES (1, true, 'anna', now());
ALTER TABLE flagged ALTER is_locked DROP DEFAULT, ALTER is_locked TYPE int USING is_locked::int, ALTER is_locked SET DEFAULT 0;
SELECT is(says($$SELECT interlock.enable_marker('flagged', status_column => 'is_locked', holder_column => 'locked_by', time_column => 'locked_at')$$), 'done', 'MRK-50: a boolean that became an integer');
SELECT results_eq($$SELECT locked, holder FROM interlock.lock_row('flagged', 1, 'bert')$$, $$VALUES (false, 'anna')$$, 'MRK-50: keeps its holder');

-- MRK-57: a call that names no columns keeps those of the marker, and so every holder
CREATE TABLE adopted (id int PRIMARY KEY, st int NOT NULL DEFAULT 0, locked_by text, locked_at timestamptz);
INSERT INTO adopted VALUES (1), (2);
SELECT interlock.enable_marker('adopted', status_column => 'st', holder_column => 'locked_by', time_column => 'locked_at');
SELECT locked FROM interlock.lock_row('adopted', 1, 'anna');
SELECT is(says($$SELECT interlock.enable_marker('adopted', ttl => '10 min')$$), 'done', 'MRK-57: without names');
SELECT results_eq($$SELECT locked, holder FROM interlock.lock_row('adopted', 1, 'bert')$$, $$VALUES (false, 'anna')$$, 'MRK-57: there is one holder');
SELECT hasnt_column('public', 'adopted', 'lock_status', 'MRK-57: nothing was added');
SELECT is(says($$SELECT interlock.configure('adopted', '{"marker": {"ttl": "20 min"}}')$$), 'done', 'MRK-57: by configure');
SELECT results_eq($$SELECT locked, holder FROM interlock.lock_row('adopted', 1, 'bert')$$, $$VALUES (false, 'anna')$$, 'MRK-57: there is one holder still');
SELECT matches(says($$SELECT interlock.enable_marker('adopted', status_column => 'lock_status')$$),
    '^55000: the marker of table "adopted" cannot move from column "st" to "lock_status" while rows are held: 1', 'MRK-57: another status');
SELECT matches(says($$SELECT interlock.enable_marker('adopted', holder_column => 'lock_by')$$),
    '^55000: the marker of table "adopted" cannot move from column "locked_by" to "lock_by"', 'MRK-57: another holder');
SELECT is(interlock.unlock_row('adopted', 1, 'anna'), true, 'MRK-57: released');
SELECT is(says($$SELECT interlock.enable_marker('adopted', holder_column => 'lock_by')$$), 'done', 'MRK-57: then it moves');

SELECT * FROM finish();
ROLLBACK;
