-- What a role without privileges can hold up, and what a caller's schemas can get into
\set VERBOSITY terse
\set SHOW_CONTEXT never
CREATE TABLE secret (id int PRIMARY KEY, a int, status text);
SELECT interlock.enable_versioning('secret'), interlock.define_transitions('secret', 'status', '{"x": ["y"]}'), interlock.enable_marker('secret');
INSERT INTO secret VALUES (1, 1, 'x');
CREATE ROLE interlock_nobody;
CREATE VIEW locks_held AS SELECT mode FROM pg_locks WHERE pid = pg_backend_pid() AND relation = 'secret'::regclass;
GRANT SELECT ON locks_held TO interlock_nobody;

-- refused before anything is locked, also where there would be nothing to do
SET ROLE interlock_nobody;
SELECT interlock.versioned_update_many('secret', '[]');
SELECT interlock.versioned_update('secret', 1, 1, '{"a": 2}');
SELECT interlock.try_versioned_delete('secret', 1, 1);
SELECT interlock.update_with_retry('secret', 1, 'jsonb_concat(jsonb, jsonb)');
SELECT interlock.try_transition('secret', 1, 'x', 'y');
SELECT interlock.select_for_update('secret', '{}'::int[]);
SELECT interlock.lock_row('secret', 1, 'nobody');
SELECT interlock.row_lock_of('secret', 1);
RESET ROLE;
-- a reader reads
GRANT SELECT ON secret TO interlock_nobody;
SET ROLE interlock_nobody;
SELECT interlock.versioned_update_many('secret', '[]');
SELECT interlock.select_for_update('secret', '{}'::int[]);
BEGIN;
SELECT interlock.row_lock_of('secret', 1);
SELECT * FROM locks_held;
COMMIT;
RESET ROLE;
-- a right on one column, or to delete, will do
REVOKE SELECT ON secret FROM interlock_nobody;
GRANT UPDATE (a) ON secret TO interlock_nobody;
SET ROLE interlock_nobody;
BEGIN;
SELECT interlock.versioned_update_many('secret', '[]');
SELECT * FROM locks_held;
COMMIT;
RESET ROLE;
REVOKE UPDATE (a) ON secret FROM interlock_nobody;
GRANT SELECT, DELETE ON secret TO interlock_nobody;
SET ROLE interlock_nobody;
SELECT outcome FROM interlock.try_versioned_delete('secret', 1, 1);
RESET ROLE;
-- an owner who has taken the rights from himself configures still
ALTER TABLE secret OWNER TO interlock_nobody;
REVOKE ALL ON secret FROM interlock_nobody;
GRANT CREATE ON SCHEMA public TO interlock_nobody;
SET ROLE interlock_nobody;
SELECT interlock.versioned_update_many('secret', '[]');
SELECT interlock.disable_versioning('secret');
SELECT interlock.drop_transitions('secret', 'status');
RESET ROLE;
-- a counter needs a sequence beside the table, and so CREATE on the schema; a timestamp does not
REVOKE CREATE ON SCHEMA public FROM interlock_nobody;
GRANT ALL ON secret TO interlock_nobody;
ALTER TABLE secret ADD changed timestamptz;
SET ROLE interlock_nobody;
SELECT interlock.enable_versioning('secret');
SELECT interlock.enable_versioning('secret', 'changed');
RESET ROLE;
DROP VIEW locks_held;
DROP TABLE secret;

-- nothing of the caller's schemas is called, whatever its search_path
CREATE SCHEMA trap;
DO $$ DECLARE kind text; BEGIN
    FOREACH kind IN ARRAY '{int2,int4,int8,text,varchar,bpchar,timestamp,timestamptz,jsonb,numeric}'::text[] LOOP
        EXECUTE format('CREATE FUNCTION trap.f(a %1$s, b %1$s) RETURNS boolean LANGUAGE plpgsql AS $f$ BEGIN RAISE EXCEPTION ''the trap has sprung''; END $f$', kind);
        EXECUTE format('CREATE OPERATOR trap.= (LEFTARG = %1$s, RIGHTARG = %1$s, FUNCTION = trap.f)', kind);
        EXECUTE format('CREATE OPERATOR trap.<> (LEFTARG = %1$s, RIGHTARG = %1$s, FUNCTION = trap.f)', kind);
        EXECUTE format('CREATE OPERATOR trap.< (LEFTARG = %1$s, RIGHTARG = %1$s, FUNCTION = trap.f)', kind);
        EXECUTE format('CREATE OPERATOR trap.> (LEFTARG = %1$s, RIGHTARG = %1$s, FUNCTION = trap.f)', kind);
    END LOOP;
    CREATE FUNCTION trap.f(a int, b bigint) RETURNS boolean LANGUAGE plpgsql AS $f$ BEGIN RAISE EXCEPTION 'the trap has sprung'; END $f$;
    CREATE OPERATOR trap.= (LEFTARG = int, RIGHTARG = bigint, FUNCTION = trap.f);
END $$;
CREATE FUNCTION trap.first_version(text) RETURNS bigint LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'the trap has sprung'; END $$;
CREATE FUNCTION trap.to_jsonb(anyelement) RETURNS jsonb LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'the trap has sprung'; END $$;
CREATE TABLE prey (id int, name varchar(9), region bpchar, a numeric, status varchar(5), phase int, body json, v int, PRIMARY KEY (id, name, region)) PARTITION BY LIST (region);
CREATE TABLE prey_a PARTITION OF prey FOR VALUES IN ('a');
CREATE TABLE prey_b PARTITION OF prey FOR VALUES IN ('b');
CREATE TABLE prey_time (id bigint PRIMARY KEY, a int, changed timestamp);
CREATE FUNCTION bait(jsonb, jsonb) RETURNS jsonb LANGUAGE sql AS $$ SELECT '{"a": 7}'::jsonb $$;
SET search_path = trap, pg_catalog;
SELECT 1 = 1;
SELECT interlock.enable_versioning('public.prey', 'v'), interlock.enable_versioning('public.prey_time', 'changed');
SELECT interlock.define_transitions('public.prey', 'status', '{"x": ["y"], "y": ["z"]}', '{x}'), interlock.define_transitions('public.prey', 'phase', '{"1": [2]}');
INSERT INTO public.prey VALUES (1, 'n', 'a', 1, 'x', 1, '{}');
INSERT INTO public.prey_time VALUES (1, 1, '2026-01-01');
SELECT interlock.versioned_update('public.prey', '{"id": 1, "name": "n", "region": "a"}', 1, '{"a": 2}');
SELECT outcome, conflicts FROM interlock.try_versioned_update('public.prey', '{"id": 1, "name": "n", "region": "a"}', 1, '{"body": {"k": 1}}', '{"body": {}}', 'merge');
SELECT outcome FROM interlock.try_versioned_update('public.prey', '{"id": 1, "name": "n", "region": "a"}', 1, '{"a": 3}');
SELECT outcome FROM interlock.versioned_update_many('public.prey', '[{"key": {"id": 1, "name": "n", "region": "a"}, "version": 3, "changes": {"a": 4}}]');
SELECT outcome FROM interlock.update_with_retry('public.prey', '{"id": 1, "name": "n", "region": "a"}', 'public.bait(jsonb, jsonb)');
SELECT interlock.transition('public.prey', '{"id": 1, "name": "n", "region": "a"}', 'x', 'y', state_column => 'status');
SELECT interlock.transition('public.prey', '{"id": 1, "name": "n", "region": "a"}', '1', '2', state_column => 'phase');
SELECT outcome FROM interlock.try_transition('public.prey', '{"id": 1, "name": "n", "region": "a"}', 'x', 'y', state_column => 'status');
UPDATE public.prey SET region = 'b';
UPDATE public.prey SET id = 2;
INSERT INTO public.prey VALUES (1, 'n', 'b', 1, 'x', 1, '{}');
SELECT interlock.select_for_update('public.prey', '[{"id": 2, "name": "n", "region": "b"}]'::jsonb);
SELECT outcome FROM interlock.try_versioned_delete('public.prey', '{"id": 2, "name": "n", "region": "b"}', 9);
SELECT outcome FROM interlock.try_versioned_update('public.prey_time', 1, '2026-01-01', '{"a": 4}');
SELECT rel FROM interlock.advise();
SELECT interlock.disable_versioning('public.prey'), interlock.drop_transitions('public.prey', 'status');
RESET search_path;
DROP TABLE prey, prey_time;
\set VERBOSITY sqlstate
SET client_min_messages = warning;
DROP SCHEMA trap CASCADE;
RESET client_min_messages;
DROP FUNCTION bait;
DROP ROLE interlock_nobody;
