-- State markers and what the caller may do: hostile search paths, errors that tell no secrets
\set SHOW_CONTEXT never
\set VERBOSITY terse

-- no name in a statement of ours is looked up in the caller's search_path
CREATE SCHEMA marker_trap;
DO $$
DECLARE
    pair record;
BEGIN
    FOR pair IN
        SELECT o, l, r
        FROM unnest('{=,<>,<,<=,>,>=,+}'::text[]) o,
            (VALUES ('int2', 'int4'), ('int2', 'int2'), ('int4', 'int4'), ('text', 'text'), ('varchar', 'text'),
                ('timestamptz', 'timestamptz'), ('timestamptz', 'interval')) t(l, r)
    LOOP
        EXECUTE format('CREATE OR REPLACE FUNCTION marker_trap.sprung(%s, %s) RETURNS boolean LANGUAGE plpgsql AS
            $f$ BEGIN RAISE EXCEPTION ''a trap for %% %% %%'', %L, %L, %L; END $f$', pair.l, pair.r, pair.l, pair.o, pair.r);
        EXECUTE format('CREATE OPERATOR marker_trap.%s (LEFTARG = %s, RIGHTARG = %s, FUNCTION = marker_trap.sprung)', pair.o, pair.l, pair.r);
    END LOOP;
END $$;
CREATE DOMAIN marker_trap.text AS pg_catalog.text;
CREATE DOMAIN marker_trap.int2 AS pg_catalog.int2;
CREATE DOMAIN marker_trap.timestamptz AS pg_catalog.timestamptz;
CREATE FUNCTION marker_trap.clock_timestamp() RETURNS pg_catalog.timestamptz LANGUAGE sql AS $$ SELECT 'epoch'::pg_catalog.timestamptz $$;
SET search_path = marker_trap, pg_catalog;
CREATE TABLE public.note (id int PRIMARY KEY, body pg_catalog.text, state pg_catalog.text);
SELECT interlock.enable_marker('public.note', '1 hour'), interlock.enable_versioning('public.note'),
    interlock.define_transitions('public.note', 'state', '{"a": ["b"]}');
INSERT INTO public.note VALUES (1, 'x', 'a'), (2, 'x', 'a');
SELECT (interlock.lock_row('public.note', 1, 'anna')).locked;
SELECT (interlock.lock_row('public.note', 1, 'anna')).locked;
SELECT (interlock.lock_row('public.note', 1, 'bert')).locked;
SELECT interlock.touch_row('public.note', 1, 'anna') IS NULL;
SELECT interlock.save_row('public.note', 1, 'anna', '{"body": "saved"}', 1);
SELECT (interlock.lock_row('public.note', 1, 'anna')).locked;
SELECT interlock.unlock_row('public.note', 1, 'anna');
SELECT (interlock.lock_row('public.note', 1, 'anna')).locked;
SELECT interlock.force_unlock_row('public.note', 1, 'a trap');
SELECT (interlock.lock_row('public.note', 1, 'anna', '1 millisecond')).locked, pg_sleep(0.01);
SELECT key, holder FROM interlock.row_locks;
SELECT * FROM interlock.sweep();
SELECT interlock.versioned_update('public.note', 1, 2, '{"body": "again"}');
SELECT outcome FROM interlock.versioned_update_many('public.note', '[{"key": {"id": 2}, "version": 1, "changes": {"body": "y"}}]');
SELECT interlock.transition('public.note', 1, 'a', 'b');
SELECT * FROM interlock.lock_rows('public.note', '{1,2}'::int[]);
SELECT interlock.disable_marker('public.note'), interlock.disable_versioning('public.note'), interlock.drop_transitions('public.note', 'state');
RESET search_path;
\d note
DROP TABLE note;
SET client_min_messages = warning;
DROP SCHEMA marker_trap CASCADE;
RESET client_min_messages;
