-- What callers of versioned rows rely on: the ways to call, outcomes, SQLSTATEs, and JSON in DETAIL.
BEGIN;
SELECT plan(39);

CREATE TABLE doc (id bigint PRIMARY KEY, body text);
CREATE TABLE tagged (id uuid PRIMARY KEY, body text, updated_time timestamptz DEFAULT '2026-01-01 00:00:00.123456+00');
CREATE TABLE pair (a int, b text, body text, PRIMARY KEY (a, b));
SELECT interlock.enable_versioning('doc');
SELECT interlock.enable_versioning('tagged', 'updated_time');
SELECT interlock.enable_versioning('pair');
INSERT INTO doc VALUES (1, 'x'), (2, 'x');
INSERT INTO tagged VALUES ('00000000-0000-0000-0000-000000000001', 'x');
INSERT INTO pair VALUES (1, 'b', 'x');

-- every way to name a row and a version
SELECT is(interlock.versioned_update('doc', 1, 1, '{"body": "a"}'), 2::bigint, 'integer key and version');
SELECT is(interlock.versioned_update('doc', 1::smallint, 2::smallint, '{"body": "a"}'), 3::bigint, 'smallint');
SELECT is(interlock.versioned_update('doc', 1::bigint, 3::bigint, '{"body": "a"}'), 4::bigint, 'bigint');
SELECT is(interlock.versioned_update('doc', '1', 4, '{"body": "a"}'), 5::bigint, 'a key as text');
SELECT is(interlock.versioned_update('doc', '1', '5', '{"body": "a"}'), '6', 'a key and a version as text');
SELECT is(interlock.versioned_update('doc', '{"id": 1}'::jsonb, 6, '{"body": "a"}'), 7::bigint, 'a key as jsonb');
SELECT is(interlock.versioned_update(rel => 'doc', key => 1, expected => 7, changes => '{"body": "a"}'), 8::bigint, 'named arguments');
SELECT is(interlock.versioned_update('pair', '{"a": 1, "b": "b"}', 1, '{"body": "a"}'), 2::bigint, 'a composite key');
SELECT isa_ok(interlock.versioned_update('tagged', '00000000-0000-0000-0000-000000000001'::uuid, '2026-01-01 00:00:00.123456+00'::timestamptz, '{}'),
    'timestamp with time zone', 'the version of a table versioned by a timestamp');
-- VER-2: any unique key
CREATE TABLE named (id bigint PRIMARY KEY, name text NOT NULL UNIQUE, body text);
SELECT interlock.enable_versioning('named');
INSERT INTO named VALUES (1, 'site');
SELECT is(interlock.versioned_update('named', '{"name": "site"}', 1, '{"body": "a"}'), 2::bigint, 'VER-2: a row by its unique name');
PREPARE untyped_name AS SELECT interlock.versioned_update('named', $1, $2, $3);
SELECT lives_ok($$EXECUTE untyped_name('{"name": "site"}', 2, '{"body": "b"}')$$, 'VER-2: and by a parameter without a type');
-- parameters without a type, as drivers send them
PREPARE untyped AS SELECT interlock.versioned_update('doc', $1, $2, $3);
SELECT is(parameter_types::text, '{text,text,jsonb}', 'parameters without a type are text') FROM pg_prepared_statements WHERE name = 'untyped';
PREPARE untyped_try AS SELECT outcome, version FROM interlock.try_versioned_update('doc', $1, $2, $3);
SELECT results_eq($$EXECUTE untyped_try('1', '8', '{"body": "b"}')$$, $$VALUES ('updated', '9')$$, 'and work');
PREPARE untyped_lock AS SELECT interlock.lock_row('doc', $1, $2);
SELECT is(parameter_types::text, '{text,text}', 'for markers too') FROM pg_prepared_statements WHERE name = 'untyped_lock';

-- outcomes
SELECT results_eq($$SELECT outcome, version, current FROM interlock.try_versioned_update('doc', 1, 9, '{"body": "c"}')$$,
    $$VALUES ('updated', 10::bigint, NULL::jsonb)$$, 'updated');
SELECT results_eq($$SELECT outcome, version, current FROM interlock.try_versioned_update('doc', 1, 9, '{"body": "d"}')$$,
    $$VALUES ('conflict', 10::bigint, '{"id": 1, "body": "c", "version": 10}'::jsonb)$$, 'conflict shows the row');
SELECT results_eq($$SELECT outcome, version, current FROM interlock.try_versioned_update('doc', 99, 9, '{"body": "d"}')$$,
    $$VALUES ('not_found', NULL::bigint, NULL::jsonb)$$, 'not_found');
SELECT results_eq($$SELECT outcome, version, conflicts FROM interlock.try_versioned_update('doc', 1, 9, '{"body": "d"}', '{"body": "z"}', 'merge')$$,
    $$VALUES ('conflict', 10::bigint, '{body}'::text[])$$, 'a conflict that cannot be merged names the columns');
SELECT results_eq($$SELECT outcome, version, current->>'body', conflicts FROM interlock.try_versioned_update('doc', 1, 9, '{"body": "d"}', '{"body": "z"}')$$,
    $$VALUES ('conflict', 10::bigint, 'c', '{body}'::text[])$$, 'and so does one that is not to be merged, where the base is given');
SELECT results_eq($$SELECT outcome, version, conflicts FROM interlock.try_versioned_update('doc', 1, 9, '{"body": "d"}', '{"body": "c"}')$$,
    $$VALUES ('conflict', 10::bigint, '{}'::text[])$$, 'with none if a merge would succeed');
SELECT results_eq($$SELECT body, version FROM doc WHERE id = 1$$, $$VALUES ('c', 10::bigint)$$, 'nothing is written');
SELECT results_eq($$SELECT outcome, version, conflicts FROM interlock.try_versioned_update('doc', 99, 9, '{"body": "d"}', '{"body": "c"}')$$,
    $$VALUES ('not_found', NULL::bigint, NULL::text[])$$, 'a row that is gone has none');
SELECT throws_ok($$SELECT interlock.try_versioned_update('doc', 1, 9, '{"body": "d"}', '{}')$$, '22023', NULL, 'a base without the column');
SELECT results_eq($$SELECT outcome, version FROM interlock.try_versioned_delete('doc', 2, 1)$$, $$VALUES ('deleted', NULL::bigint)$$, 'deleted');
SELECT results_eq($$SELECT key, outcome, version FROM interlock.versioned_update_many('doc', '[{"key": 1, "version": 10, "changes": {"body": "m"}}]')$$,
    $$VALUES ('1'::jsonb, 'updated', 11::bigint)$$, 'many');

-- errors
SELECT throws_ok($$SELECT interlock.versioned_update('doc', 1, 1, '{"body": "d"}')$$, 'IL001');
SELECT throws_ok($$UPDATE doc SET version = 3$$, 'IL001');
SELECT throws_ok($$SELECT interlock.versioned_update('doc', 99, 1, '{"body": "d"}')$$, 'P0002');
SELECT throws_ok($$SELECT interlock.versioned_update('doc', 1, 11, '{"nowhere": "d"}')$$, '42703');
SELECT throws_ok($$SELECT interlock.versioned_update('pg_class', 1, 11, '{}')$$, '42809');
SELECT throws_ok($$SELECT interlock.versioned_update('doc', 1, now(), '{}')$$, '42804');
CREATE FUNCTION detail_of(command text) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE detail text;
BEGIN
    EXECUTE command;
    RETURN NULL;
EXCEPTION WHEN OTHERS THEN
    GET STACKED DIAGNOSTICS detail = PG_EXCEPTION_DETAIL;
    RETURN detail;
END $$;
SELECT is(detail_of($$SELECT interlock.versioned_update('doc', 1, 1, '{"body": "d"}')$$),
    '{"table": "public.doc", "key": {"id": 1}, "expected": 1, "version": 11}', 'IL001 says what it met');
SELECT is(detail_of($$UPDATE doc SET version = 3$$),
    '{"table": "public.doc", "key": {"id": 1}, "expected": 3, "version": 11}', 'from the trigger too');
SELECT is(detail_of($$SELECT interlock.versioned_update('tagged', '00000000-0000-0000-0000-000000000001', '2020-01-01'::timestamptz, '{}')$$)->>'table',
    'public.tagged', 'with a timestamp as well');
SELECT is(detail_of($$SELECT interlock.versioned_delete('pair', '{"a": 1, "b": "\"q\""}', 1)$$),
    '{"table": "public.pair", "key": {"a": 1, "b": "\"q\""}}', 'keys are quoted as JSON');

-- the index that is being built has no place for a new version of the row
CREATE TABLE indexed (id int PRIMARY KEY, x text);
SELECT interlock.enable_versioning('indexed');
INSERT INTO indexed VALUES (1, 'a');
CREATE FUNCTION writes(int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$BEGIN
    PERFORM interlock.try_versioned_update('public.indexed', $1, 1, '{"x": "z"}'); RETURN $1; END$$;
SELECT throws_ok('CREATE INDEX ON indexed (writes(id))', 'XX001', NULL, 'a function of an index cannot write the table that is being indexed');

-- what is granted
SELECT function_privs_are('interlock', 'versioned_update', ARRAY['regclass', 'text', 'bigint', 'jsonb'], 'public', ARRAY['EXECUTE']);
SELECT function_privs_are('interlock', 'sweep', ARRAY['integer'], 'public', '{}'::text[]);
SELECT function_privs_are('interlock_internal', 'wake_sweeper', '{}'::text[], 'public', '{}'::text[]);

SELECT * FROM finish();
ROLLBACK;
