-- What callers of versioned rows rely on: the ways to call, outcomes, SQLSTATEs, and JSON in DETAIL.
BEGIN;
SELECT plan(56);

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

-- VER-52: the version that a function returns is that of the row at its end, also where an AFTER trigger has moved it on
CREATE TABLE moved (id int PRIMARY KEY, body text, edits int);
CREATE TABLE moved_at (id int PRIMARY KEY, body text, edits int, at timestamptz DEFAULT '2026-01-01');
CREATE TABLE moved_parted (id int PRIMARY KEY, body text, edits int) PARTITION BY RANGE (id);
CREATE TABLE moved_parted_1 PARTITION OF moved_parted DEFAULT;
CREATE FUNCTION count_edit() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE format('UPDATE %I SET edits = coalesce(edits, 0) + 1 WHERE id = %s', TG_ARGV[0], NEW.id);
    RETURN NULL;
END $$;
SELECT interlock.enable_versioning('moved'), interlock.enable_versioning('moved_at', 'at'), interlock.enable_versioning('moved_parted'),
    interlock.enable_marker('moved');
CREATE TRIGGER a AFTER INSERT OR UPDATE OF body ON moved FOR EACH ROW EXECUTE FUNCTION count_edit('moved');
CREATE TRIGGER a AFTER INSERT OR UPDATE OF body ON moved_at FOR EACH ROW EXECUTE FUNCTION count_edit('moved_at');
CREATE TRIGGER a AFTER INSERT OR UPDATE OF body ON moved_parted_1 FOR EACH ROW EXECUTE FUNCTION count_edit('moved_parted');
SELECT is(interlock.versioned_upsert('moved', 1, NULL, '{"body": "a"}'), '2', 'VER-52: versioned_upsert');
SELECT is(interlock.versioned_update('moved', 1, 2, '{"body": "b"}'), 4::bigint, 'VER-52: versioned_update');
SELECT is(version, 4::bigint, 'VER-52: the row has it') FROM moved;
SELECT is(interlock.versioned_update('moved', 1, 4, '{}'), 5::bigint, 'VER-52: a trigger that is not fired');
SELECT results_eq($$SELECT outcome, version FROM interlock.try_versioned_update('moved', 1, 5, '{"body": "c"}')$$,
    $$VALUES ('updated', 7::bigint)$$, 'VER-52: try_versioned_update');
SELECT results_eq($$SELECT outcome, version FROM interlock.versioned_update_many('moved', '[{"key": 1, "version": 7, "changes": {"body": "d"}}]')$$,
    $$VALUES ('updated', 9::bigint)$$, 'VER-52: versioned_update_many');
SET LOCAL interlock.direct_execution = off;
SELECT is(interlock.versioned_update('moved', 1, 9, '{"body": "e"}'), 11::bigint, 'VER-52: by a statement');
RESET interlock.direct_execution;
SELECT locked FROM interlock.lock_row('moved', 1, 'anna');
CREATE FUNCTION as_anna() RETURNS regclass LANGUAGE sql AS $$SELECT interlock.set_holder('anna'); SELECT 'moved'::regclass$$;
SELECT throws_ok($$SELECT interlock.save_row(as_anna(), 1, 'anna', '{"body": "f"}', 10)$$, 'IL001');
SELECT is(interlock.save_row(as_anna(), 1, 'anna', '{"body": "f"}', 11), 13::bigint, 'VER-52: save_row');
SELECT is(interlock.versioned_upsert('moved_parted', 1, NULL, '{"body": "a"}'), '2', 'VER-52: into a partition');
SELECT is(interlock.versioned_update('moved_parted', 1, 2, '{"body": "b"}'), 4::bigint, 'VER-52: in a partition');
SELECT ok(interlock.versioned_upsert('moved_at', 1, NULL, '{"body": "a"}') > '2026-01-01', 'VER-52: a time');
CREATE FUNCTION token_of_moved() RETURNS timestamptz LANGUAGE sql AS 'SELECT at FROM moved_at';
SELECT is(interlock.versioned_update('moved_at', 1, token_of_moved(), '{"body": "b"}'), token_of_moved(), 'VER-52: an update of one');

CREATE FUNCTION hint_of(command text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE hint text;
BEGIN
    EXECUTE command;
    RETURN NULL;
EXCEPTION WHEN OTHERS THEN
    GET STACKED DIAGNOSTICS hint = PG_EXCEPTION_HINT;
    RETURN hint;
END $$;
-- VER-53: JavaScript's Date has milliseconds: a version of timestamptz(3) comes back as it is, another one does not
CREATE TABLE exact (id int PRIMARY KEY, body text, at timestamptz(3) DEFAULT '2026-01-01 00:00:00.123456+00');
CREATE TABLE inexact (id int PRIMARY KEY, body text, at timestamptz DEFAULT '2026-01-01 00:00:00.123456+00');
SELECT interlock.enable_versioning('exact', 'at'), interlock.enable_versioning('inexact', 'at');
INSERT INTO exact VALUES (1);
INSERT INTO inexact VALUES (1);
CREATE FUNCTION as_date(at timestamptz) RETURNS timestamptz LANGUAGE sql AS $$SELECT date_trunc('milliseconds', at)$$;
SELECT lives_ok($$SELECT interlock.versioned_update('exact', 1, as_date(at), '{"body": "a"}') FROM exact$$, 'VER-53: a Date is the version');
SELECT lives_ok($$SELECT interlock.versioned_update('exact', 1, as_date(at), '{"body": "b"}') FROM exact$$, 'VER-53: and the next one is');
SELECT is(hint_of($$SELECT interlock.versioned_update('inexact', 1, as_date(at), '{"body": "a"}') FROM inexact$$),
    'The versions differ by less than a millisecond: the client has cut the time to milliseconds, and reading again does not help. Carry the version '
    'as text, or let the table''s owner keep milliseconds only: ALTER TABLE public.inexact ALTER COLUMN at TYPE timestamptz(3).',
    'VER-53: the hint leads out');
ALTER TABLE public.inexact ALTER COLUMN at TYPE timestamptz(3);
SELECT lives_ok($$SELECT interlock.versioned_update('inexact', 1, as_date(at), '{"body": "a"}') FROM inexact$$, 'VER-53: as it says');

SELECT * FROM finish();
ROLLBACK;
