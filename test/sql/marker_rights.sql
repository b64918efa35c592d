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
SELECT * FROM interlock.select_for_update('public.note', '{1,2}'::int[]);
SELECT interlock.disable_marker('public.note'), interlock.disable_versioning('public.note'), interlock.drop_transitions('public.note', 'state');
RESET search_path;
\d note
DROP TABLE note;
SET client_min_messages = warning;
DROP SCHEMA marker_trap CASCADE;
RESET client_min_messages;

-- an error tells of the row what the writer could read of it
CREATE FUNCTION marker_says(command text, OUT message text, OUT key text, OUT holder text, OUT since boolean, OUT until boolean)
LANGUAGE plpgsql AS $$
DECLARE
    said text;
    detail text;
BEGIN
    EXECUTE command;
EXCEPTION WHEN OTHERS THEN
    GET STACKED DIAGNOSTICS said = MESSAGE_TEXT, detail = PG_EXCEPTION_DETAIL;
    message := said;
    IF detail LIKE '{%' THEN
        key := detail::jsonb->>'key'; holder := detail::jsonb->>'holder';
        since := detail::jsonb->>'locked_at' IS NOT NULL; until := detail::jsonb->>'expires_at' IS NOT NULL;
    END IF;
END $$;
CREATE TABLE secret (id int PRIMARY KEY, body text);
CREATE TABLE parts (secret_id int, body text, region text) PARTITION BY LIST (region);
-- with its columns in another order
CREATE TABLE parts_eu (region text, body text, secret_id int);
ALTER TABLE parts ATTACH PARTITION parts_eu FOR VALUES IN ('eu');
ALTER TABLE parts ADD PRIMARY KEY (secret_id, region);
SELECT interlock.enable_marker('secret', '1 hour'), interlock.enable_marker('parts', '1 hour');
INSERT INTO secret VALUES (1, 'x');
INSERT INTO parts VALUES (1, 'x', 'eu');
SELECT (interlock.lock_row('secret', 1, 'anna')).locked, (interlock.lock_row('parts', '{"secret_id": 1, "region": "eu"}', 'anna')).locked;
CREATE ROLE interlock_blind;
CREATE ROLE interlock_peeping;
GRANT UPDATE (body) ON secret, parts TO interlock_blind, interlock_peeping;
GRANT SELECT (id, lock_by) ON secret TO interlock_peeping;
GRANT SELECT (secret_id, region, lock_by) ON parts TO interlock_peeping;
SELECT * FROM marker_says('UPDATE secret SET body = 1');
SET ROLE interlock_blind;
SELECT * FROM marker_says('UPDATE secret SET body = 1');
SELECT * FROM marker_says('UPDATE parts SET body = 1');
SET ROLE interlock_peeping;
SELECT * FROM marker_says('UPDATE secret SET body = 1');
SELECT * FROM marker_says('UPDATE parts SET body = 1');
RESET ROLE;
-- row security: who may change a row that he may not see, and who may do both
ALTER TABLE secret ENABLE ROW LEVEL SECURITY;
ALTER TABLE parts ENABLE ROW LEVEL SECURITY;
GRANT SELECT ON secret, parts TO interlock_blind, interlock_peeping;
CREATE POLICY write ON secret FOR UPDATE USING (true);
CREATE POLICY write ON parts FOR UPDATE USING (true);
CREATE POLICY read ON secret FOR SELECT TO interlock_peeping USING (true);
CREATE POLICY read ON parts FOR SELECT TO interlock_peeping USING (true);
SET ROLE interlock_blind;
SELECT * FROM marker_says('UPDATE secret SET body = 1');
SELECT * FROM marker_says('UPDATE parts SET body = 1');
SET ROLE interlock_peeping;
SELECT * FROM marker_says('UPDATE secret SET body = 1');
SELECT * FROM marker_says('UPDATE parts SET body = 1');
RESET ROLE;
DROP TABLE secret, parts;
DROP FUNCTION marker_says;
DROP ROLE interlock_blind, interlock_peeping;
