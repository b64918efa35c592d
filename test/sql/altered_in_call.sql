-- SEC-1: the check of a domain renames columns of the table in the call, or alters the history, which is not open then: no value is
-- taken for one of another type
\set VERBOSITY terse
\set SHOW_CONTEXT never
SET client_min_messages = warning;
CREATE FUNCTION checked(value int) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE commands text := current_setting('altered.armed', true);
BEGIN
    IF commands <> '' THEN
        PERFORM set_config('altered.armed', '', false);
        EXECUTE commands;
    END IF;
    RETURN true; END $$;
CREATE DOMAIN number AS int CHECK (checked(VALUE));
CREATE TYPE pair AS (a number);
CREATE TABLE rows (id pair PRIMARY KEY, body text, n bigint DEFAULT 4242424242424242, m number DEFAULT 1, status text DEFAULT 'a');
SELECT interlock.enable_versioning('rows'), interlock.enable_marker('rows'), interlock.enable_history('rows'),
    interlock.define_transitions('rows', 'status', '{"a": ["b"]}');
INSERT INTO rows VALUES ('(1)', 'a'), ('(2)', 'b');
UPDATE rows SET body = 'c';
SELECT interlock.lock_row('rows', '(1)', 'me') IS NOT NULL AS locked;
CREATE FUNCTION swap(one name, other name) RETURNS text LANGUAGE sql AS $$
    SELECT format('ALTER TABLE rows RENAME %1$I TO between; ALTER TABLE rows RENAME %2$I TO %1$I; ALTER TABLE rows RENAME between TO %2$I', one, other) $$;
CREATE FUNCTION attempt(command text, alteration text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE result text;
BEGIN
    BEGIN
        PERFORM set_config('altered.armed', alteration, false);
        EXECUTE 'SELECT r::text FROM interlock.' || command || ' r' INTO result;
        RAISE EXCEPTION 'passed';
    EXCEPTION WHEN OTHERS THEN
        RETURN sqlstate || ' ' || sqlerrm;
    END;
END $$;
CREATE VIEW renamed AS SELECT left(command, 40) AS command, attempt(command, swap(one, other)) FROM (VALUES
    ($$row_lock_of('rows', '(1)')$$, 'lock_by', 'n'), ($$unlock_row('rows', '(1)', 'me')$$, 'lock_by', 'n'),
    ($$lock_row('rows', '(1)', 'me')$$, 'lock_reason', 'n'), ($$touch_row('rows', '(1)', 'me')$$, 'lock_until', 'body'),
    ($$claim_rows('rows', 'me', 9, '{"m": 1}')$$, 'id', 'n'),
    ($$versioned_update('rows', '(1)', 2, '{"body": "x"}')$$, 'version', 'body'), ($$try_versioned_update('rows', '(1)', 1, '{"body": "x"}')$$, 'body', 'n'),
    ($$versioned_upsert('rows', '(3)', NULL::bigint, '{"body": "x"}')$$, 'body', 'n'), ($$assert_version('rows', '(1)', 2)$$, 'version', 'body'),
    ($$try_transition('rows', '(1)', 'b', 'a')$$, 'status', 'n'), ($$save_row('rows', '(1)', 'me', '{"body": "x"}')$$, 'lock_by', 'n'),
    ($$revert_row('rows', '(1)', 1)$$, 'version', 'body')) c (command, one, other);
SELECT * FROM renamed;
SET interlock.direct_execution = off;
SELECT * FROM renamed;
RESET interlock.direct_execution;
-- the history
SELECT left(command, 40) AS command, alteration, attempt(command, 'ALTER TABLE rows_history ' || alteration) FROM unnest(ARRAY[
    $$row_as_of('rows', '(1)', now())$$, $$row_history('rows', '(1)')$$, $$revert_row('rows', '(1)', 1)$$]) command,
    unnest(ARRAY['ALTER row_data TYPE bigint USING 4242424242424242', 'ALTER writer TYPE bigint USING 4242424242424242',
                 'RENAME row_data TO x; ALTER TABLE rows_history RENAME command TO row_data; ALTER TABLE rows_history RENAME x TO command']) alteration;
-- entries are trimmed while the predicate of an index, which is planned with constants, renames columns
CREATE FUNCTION constant(int) RETURNS boolean IMMUTABLE LANGUAGE plpgsql AS 'BEGIN RETURN public.checked($1); END';
SELECT interlock.enable_history('rows', keep_versions => 1);
CREATE INDEX ON rows_history (id) WHERE constant(1);
UPDATE rows_history SET changed_at = '2001-01-01';
SELECT attempt('trim_history(''rows'')', 'ALTER TABLE public.rows_history RENAME key TO x; ALTER TABLE public.rows_history RENAME command TO key; ALTER TABLE public.rows_history RENAME x TO command');
DROP VIEW renamed;
DROP TABLE rows, rows_history;
DROP FUNCTION attempt, swap, constant;
DROP TYPE pair;
DROP DOMAIN number;
DROP FUNCTION checked;
-- what is rolled back in the call is as it was before: the triggers of the table, in the call and for the rest of the session
CREATE TABLE undone (id int PRIMARY KEY, a int DEFAULT 0);
SELECT interlock.enable_versioning('undone'), interlock.enable_marker('undone');
INSERT INTO undone VALUES (1), (2), (3);
CREATE FUNCTION undo(commands text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE commands;
    RAISE EXCEPTION 'undone';
EXCEPTION WHEN OTHERS THEN
    PERFORM NULL;
END $$;
CREATE FUNCTION transform(current jsonb, commands jsonb) RETURNS jsonb LANGUAGE plpgsql AS $$
BEGIN
    PERFORM undo(commands #>> '{}');
    RETURN jsonb_build_object('a', 77 + (current->>'a')::int);
END $$;
CREATE FUNCTION returns_new() RETURNS text LANGUAGE sql AS $$SELECT 'CREATE FUNCTION made() RETURNS trigger LANGUAGE plpgsql AS ''BEGIN RETURN NEW; END''; CREATE TRIGGER made BEFORE UPDATE ON undone FOR EACH ROW EXECUTE FUNCTION made()'$$;
SELECT interlock.update_with_retry('undone', 1, 'transform(jsonb,jsonb)', to_jsonb(commands)) FROM (VALUES ('DROP TRIGGER zzz_interlock_version ON undone'), (returns_new()),
    ('CREATE TABLE referencing (id int REFERENCES undone)'), ($$SELECT interlock.disable_versioning('undone')$$),
    ('ALTER TABLE undone RENAME TO other'), ('CREATE SCHEMA elsewhere; ALTER TABLE undone SET SCHEMA elsewhere')) c (commands);
CREATE FUNCTION undo_in_trigger() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN PERFORM undo(returns_new()); RETURN NEW; END$$;
CREATE TRIGGER a_undo BEFORE UPDATE ON undone FOR EACH ROW EXECUTE FUNCTION undo_in_trigger();
SELECT outcome, version FROM interlock.versioned_update_many('undone', '[{"key": 2, "version": 1, "changes": {"a": 1}}, {"key": 3, "version": 1, "changes": {"a": 1}}]');
SELECT locked, blocked FROM interlock.lock_rows('undone', '{1,2,3}', 'anna');
SELECT interlock.unlock_row('undone', id, 'anna') FROM undone;
SELECT count(*) FROM interlock.claim_rows('undone', 'bert', 3);
SELECT id, a, version, lock_by FROM undone ORDER BY id;
DROP TABLE undone;
-- nor is another table written which had the name there, by this call or the next
CREATE TABLE rows (id int PRIMARY KEY, a int DEFAULT 0);
CREATE TABLE others (id int PRIMARY KEY, a int DEFAULT 0);
SELECT interlock.enable_versioning(t), interlock.enable_marker(t) FROM unnest('{rows,others}'::regclass[]) t;
INSERT INTO rows VALUES (1), (2), (3);
INSERT INTO others VALUES (1), (2), (3);
CREATE FUNCTION nothing() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';
CREATE TRIGGER nothing BEFORE UPDATE ON rows FOR EACH STATEMENT EXECUTE FUNCTION nothing();
SELECT interlock.update_with_retry('rows', 1, 'transform(jsonb,jsonb)', to_jsonb('ALTER TABLE others RENAME TO third; ALTER TABLE rows RENAME TO others'::text));
SELECT outcome FROM interlock.try_versioned_update('rows', 2, 1::bigint, '{"a": 6}');
CREATE ROLE interlock_clerk;
GRANT SELECT, UPDATE ON rows TO interlock_clerk;
GRANT CREATE ON SCHEMA public TO interlock_clerk;
CREATE FUNCTION swap() RETURNS boolean LANGUAGE plpgsql AS $$BEGIN
    PERFORM undo('ALTER TABLE others RENAME TO third; ALTER TABLE rows RENAME TO others');
    RETURN true; END$$;
ALTER TABLE rows ENABLE ROW LEVEL SECURITY;
ALTER TABLE rows FORCE ROW LEVEL SECURITY;
CREATE POLICY all_rows ON rows USING (swap());
ALTER TABLE rows OWNER TO interlock_clerk;
ALTER TABLE others OWNER TO interlock_clerk;
SET ROLE interlock_clerk;
SELECT locked FROM interlock.lock_rows('rows', '{1,2}', 'anna');
SELECT count(*) FROM interlock.claim_rows('rows', 'bert', 3);
SELECT outcome FROM interlock.try_versioned_update('rows', 3, 1::bigint, '{"a": 7}');
RESET ROLE;
SELECT 'rows' AS of, id, a, version, lock_by FROM rows UNION ALL SELECT 'others', id, a, version, lock_by FROM others ORDER BY 1, 2;
DROP TABLE rows, others;
REVOKE CREATE ON SCHEMA public FROM interlock_clerk;
DROP ROLE interlock_clerk;
DROP FUNCTION undo, transform, returns_new, undo_in_trigger, nothing, swap;
