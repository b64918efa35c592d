-- What transitions and markers write, without a statement and with interlock.direct_execution = off, which makes each a statement: answers,
-- errors and rows must be the same, whatever the types of the columns and the values that were stored before. The context of an AFTER
-- trigger shows how the function ran.
\set SHOW_CONTEXT never
SET client_min_messages = warning;
CREATE SCHEMA direct_write;
SET search_path = direct_write;
CREATE ROLE direct_write_role;
GRANT USAGE ON SCHEMA direct_write TO direct_write_role;
CREATE SEQUENCE how; -- 1 when the call wrote directly, 2 by a statement, 3 not at all
CREATE FUNCTION note_how() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE context text;
BEGIN
    GET DIAGNOSTICS context = PG_CONTEXT;
    PERFORM setval('direct_write.how', CASE WHEN context ~ 'SQL statement "UPDATE .* AS t SET' THEN 2 ELSE 1 END);
    RETURN NULL;
END $$;

-- What the function answers or raises, and leaves behind. Of times only what can be the same.
CREATE FUNCTION effect(setup text, call text, role text, directly boolean) RETURNS text LANGUAGE plpgsql AS $$
DECLARE answer text; detail text; state text; stored text;
BEGIN
    DROP TABLE IF EXISTS t;
    CREATE TABLE t (id int PRIMARY KEY, a int, b text, version bigint DEFAULT 1);
    INSERT INTO t VALUES (1, 1, 'one'), (2, 2, 'two');
    EXECUTE setup;
    CREATE TRIGGER note_how AFTER UPDATE ON t FOR EACH ROW EXECUTE FUNCTION note_how();
    PERFORM setval('how', 3);
    PERFORM set_config('interlock.direct_execution', directly::text, true);
    BEGIN
        IF role IS NOT NULL THEN EXECUTE format('SET LOCAL ROLE %I', role); END IF;
        EXECUTE call INTO answer;
    EXCEPTION WHEN OTHERS THEN
        GET STACKED DIAGNOSTICS answer = MESSAGE_TEXT, detail = PG_EXCEPTION_DETAIL, state = RETURNED_SQLSTATE;
    END;
    RESET ROLE;
    SELECT string_agg(concat_ws(' ', regexp_replace((to_jsonb(t) - '{lock_time,lock_until}'::text[])::text, '"20[0-9]{2}-[^"]*"', 'a time'),
        CASE WHEN to_jsonb(t) ? 'lock_until' THEN
            concat_ws(' ', (to_jsonb(t)->>'lock_time')::timestamptz BETWEEN now() - interval '1 s' AND clock_timestamp() + interval '1 s',
                (to_jsonb(t)->>'lock_until')::timestamptz > clock_timestamp()) END), E'\n' ORDER BY id) INTO stored FROM t;
    RETURN concat_ws(E'\n', concat_ws(' ', state, answer, regexp_replace(detail, ' "[0-9]{4}-[^"]*"', ' a time', 'g')), stored);
END $$;

-- One case: whether both are the same, and what they are.
CREATE FUNCTION try(setup text, call text, role text DEFAULT NULL, OUT how text, OUT same boolean, OUT effect text) LANGUAGE plpgsql AS $$
DECLARE by_statement text;
BEGIN
    effect := effect(setup, call, role, true);
    how := (SELECT ('{direct,statement,no row}'::text[])[last_value] FROM how);
    by_statement := effect(setup, call, role, false);
    same := effect = by_statement AND (SELECT last_value > 1 FROM how);
    IF NOT same THEN effect := effect || E'\n<>\n' || by_statement; END IF;
END $$;

-- Transitions: states of every kind of type, and with other values
CREATE TYPE mood AS ENUM ('low', 'high');
SELECT * FROM try($$SELECT interlock.define_transitions('t', 'b', '{"one": ["two"]}')$$, $$SELECT interlock.try_transition('t', 1, 'one', 'two')$$);
SELECT * FROM try($$SELECT interlock.define_transitions('t', 'b', '{"one": ["two"]}')$$, $$SELECT interlock.try_transition('t', 1, 'one', 'two', '{"a": 7}')$$);
SELECT * FROM try($$SELECT interlock.define_transitions('t', 'b', '{"one": ["two"]}')$$, $$SELECT interlock.try_transition('t', 2, 'one', 'two', '{"a": 7}')$$);
SELECT * FROM try($$SELECT interlock.define_transitions('t', 'b', '{"one": ["two"]}')$$, $$SELECT interlock.try_transition('t', 9, 'one', 'two', '{"a": 7}')$$);
SELECT * FROM try($$SELECT interlock.define_transitions('t', 'b', '{"one": ["two"]}')$$, $$SELECT interlock.transition('t', 2, 'one', 'two')$$);
SELECT * FROM try($$ALTER TABLE t ALTER b TYPE varchar(3); SELECT interlock.define_transitions('t', 'b', '{"one": ["two"]}')$$, $$SELECT interlock.transition('t', 1, 'one', 'two')$$);
SELECT * FROM try($$ALTER TABLE t ALTER b TYPE text COLLATE "C"; SELECT interlock.define_transitions('t', 'b', '{"one": ["two"]}')$$, $$SELECT interlock.transition('t', 1, 'one', 'two')$$);
SELECT * FROM try($$SELECT interlock.define_transitions('t', 'a', '{"1": ["2"]}')$$, $$SELECT interlock.transition('t', 1, '01', '2', '{"b": null}')$$);
SELECT * FROM try($$ALTER TABLE t ADD m mood DEFAULT 'low'; SELECT interlock.define_transitions('t', 'm', '{"low": ["high"]}')$$, $$SELECT interlock.transition('t', 1, 'low', 'high')$$);
SELECT * FROM try($$ALTER TABLE t ADD m mood; SELECT interlock.define_transitions('t', 'm', '{"low": ["high"]}')$$, $$SELECT interlock.try_transition('t', 1, 'low', 'high')$$);
SELECT * FROM try($$ALTER TABLE t ADD m mood DEFAULT 'low'; SELECT interlock.define_transitions('t', 'm', '{"low": ["high"]}'); SELECT interlock.define_transitions('t', 'b', '{"one": ["two"]}')$$,
    $$SELECT interlock.transition('t', 1, 'low', 'high', '{"b": "two"}', 'm')$$);
SELECT * FROM try($$SELECT interlock.define_transitions('t', 'b', '{"one": ["two"]}'); CREATE OR REPLACE FUNCTION keep() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN NEW.b := OLD.b; RETURN NEW; END';
    CREATE TRIGGER keep BEFORE UPDATE ON t FOR EACH ROW EXECUTE FUNCTION keep()$$, $$SELECT interlock.transition('t', 1, 'one', 'two')$$);
-- who may not call the = of the state's type may not move
SELECT * FROM try($$ALTER TABLE t ADD m mood DEFAULT 'low'; SELECT interlock.define_transitions('t', 'm', '{"low": ["high"]}'); GRANT SELECT, UPDATE ON t TO direct_write_role$$,
    $$SELECT interlock.transition('t', 1, 'low', 'high')$$, 'direct_write_role');
BEGIN;
REVOKE EXECUTE ON FUNCTION enum_eq FROM public;
SELECT * FROM try($$ALTER TABLE t ADD m mood DEFAULT 'low'; SELECT interlock.define_transitions('t', 'm', '{"low": ["high"]}'); GRANT SELECT, UPDATE ON t TO direct_write_role$$,
    $$SELECT interlock.transition('t', 1, 'low', 'high')$$, 'direct_write_role');
ROLLBACK;

-- Markers: columns of every type that a role can have, and what may be stored in adopted ones
CREATE FUNCTION marked(status text, holder text, since text, until text, reason text, version int DEFAULT 1) RETURNS text LANGUAGE sql AS $$
SELECT format('SELECT interlock.enable_marker(''t''); ALTER TABLE t ALTER lock_status DROP NOT NULL; SET LOCAL session_replication_role = replica; UPDATE t SET lock_status = %L, lock_by = %L, lock_time = %s, lock_until = %s, lock_reason = %L, version = %L WHERE id = 1;
    SET LOCAL session_replication_role = origin; SELECT interlock.enable_versioning(''t'')', status, holder, since, until, reason, version) $$;
CREATE FUNCTION held(holder text, reason text DEFAULT 'why') RETURNS text LANGUAGE sql AS $$ SELECT marked('1', holder, 'now()', $t$now() + interval '1 h'$t$, reason) $$;
CREATE FUNCTION typed(status text, texts text, since text, until text) RETURNS text LANGUAGE sql AS $$
SELECT format('ALTER TABLE t ADD lock_status %s, ADD lock_by %s, ADD lock_reason %2$s, ADD lock_time %s, ADD lock_until %s;', status, texts, since, until) $$;
SELECT * FROM try(held('anna'), $$SELECT row(locked, holder) FROM interlock.lock_row('t', 1, 'anna')$$);
SELECT * FROM try(held('anna'), $$SELECT row(locked, holder) FROM interlock.lock_row('t', 1, 'anna', '1 min', 'because')$$);
SELECT * FROM try(held('anna'), $$SELECT row(locked, holder) FROM interlock.lock_row('t', 1, 'Anna')$$);
SELECT * FROM try(held('anna', NULL), $$SELECT row(locked, holder) FROM interlock.lock_row('t', 1, 'anna')$$);
SELECT * FROM try(held(NULL), $$SELECT row(locked, holder) FROM interlock.lock_row('t', 1, 'anna')$$);
SELECT * FROM try(held(''), $$SELECT row(locked, holder) FROM interlock.lock_row('t', 1, 'anna')$$);
SELECT * FROM try(marked(NULL, NULL, 'NULL', 'NULL', NULL), $$SELECT row(locked, holder) FROM interlock.lock_row('t', 1, 'anna')$$);
SELECT * FROM try(marked('0', 'bert', 'now()', $$now() + interval '1 h'$$, 'left'), $$SELECT row(locked, holder) FROM interlock.lock_row('t', 1, 'anna')$$);
SELECT * FROM try(marked('1', 'bert', 'now()', $$now() - interval '1 s'$$, 'late'), $$SELECT row(locked, holder) FROM interlock.lock_row('t', 1, 'anna')$$);
SELECT * FROM try(marked('1', 'bert', 'now()', 'NULL', 'open'), $$SELECT row(locked, holder) FROM interlock.lock_row('t', 1, 'anna')$$);
SELECT * FROM try(marked('2', 'bert', 'now()', $$now() + interval '1 h'$$, 'other'), $$SELECT row(locked, holder) FROM interlock.lock_row('t', 1, 'anna')$$);
SELECT * FROM try(marked('0', NULL, 'NULL', 'NULL', NULL), $$SELECT row(locked, holder) FROM interlock.lock_row('t', 9, 'anna')$$);
SELECT tried.* FROM (VALUES ('{smallint,varchar(4),timestamp(0),timestamptz(0)}'::text[]), ('{bigint,varchar,timestamptz(3),timestamptz}'), ('{integer,text,timestamp,timestamptz(3)}')) kinds (types),
    (VALUES ('anna', 'why', 1), ('berta', 'why', 1), ('anna', 'because', 1), ('berta', 'because', 9)) calls (holder, reason, id),
    LATERAL try(typed(types[1], types[2], types[3], types[4]) || $$SELECT interlock.enable_marker('t')$$, format('SELECT row(locked, holder) FROM interlock.lock_row(''t'', %s, %L, ''1 h'', %L)', id, holder, reason)) tried
    ORDER BY types::text COLLATE "C", holder COLLATE "C", reason COLLATE "C";
-- what ends or extends a marker
SELECT setup, call, tried.* FROM (VALUES ('own', held('anna')), ('no holder', held(NULL)), ('of another', held('bert')), ('expired', marked('1', 'anna', 'now()', $$now() - interval '1 s'$$, 'late')),
        ('open end', marked('1', 'anna', 'now()', 'NULL', 'open')), ('free', marked('0', 'anna', 'now()', $$now() + interval '1 h'$$, 'left')), ('null', marked(NULL, 'anna', 'NULL', 'NULL', NULL)),
        ('of four bytes', typed('smallint', 'varchar(4)', 'timestamp(0)', 'timestamptz(0)') || held('anna'))) setups (setup, text),
    (VALUES ($$SELECT interlock.unlock_row('t', 1, 'anna')$$), ($$SELECT interlock.touch_row('t', 1, 'anna') > now()$$), ($$SELECT interlock.force_unlock_row('t', 1, 'gone home')$$),
        ($$SELECT interlock.save_row('t', 1, 'anna', '{"a": 7}')$$), ($$SELECT interlock.save_row('t', 1, 'anna', '{}', 1)$$), ($$SELECT interlock.save_row('t', 1, 'anna', '{"b": null}', 2)$$)) calls (call),
    LATERAL try(text, call) tried
    ORDER BY call COLLATE "C", setup COLLATE "C";
-- what a save returns of the version
SELECT kind, tried.* FROM (VALUES ('none', 'bigint', $$ALTER TABLE t DROP version$$), ('integer', 'int', ''), ('null', 'bigint', ''), ('timestamptz', '', $$ALTER TABLE t DROP version; ALTER TABLE t ADD version timestamptz(0) DEFAULT '2020-01-01'$$)) kinds (kind, type, change),
    (VALUES ($$SELECT interlock.save_row('t', 1, 'anna', '{"a": 7}') IS NULL$$), ($$SELECT interlock.save_row('t', 1, 'anna', '{"a": 7}', 0)$$),
        ($$SELECT interlock.save_row('t', 1, 'anna', '{"a": 7}', '0')$$), ($$SELECT interlock.save_row('t', 1, 'anna', '{"a": 7}', '2020-01-01'::timestamptz) > '2020-01-01'$$),
        ($$SELECT interlock.save_row('t', 1, 'anna', '{"a": 7}', NULL::text) > '2020-01-01'$$)) calls (call),
    LATERAL try(format('%s; SELECT interlock.enable_marker(''t''); %s; %s; SELECT interlock.lock_row(''t'', 1, ''anna'')', change,
        CASE WHEN kind = 'integer' THEN 'ALTER TABLE t ALTER version TYPE int; UPDATE t SET version = 0' WHEN kind = 'null' THEN 'UPDATE t SET version = NULL' ELSE 'SELECT' END,
        CASE WHEN kind <> 'none' THEN 'SELECT interlock.enable_versioning(''t'')' ELSE 'SELECT' END), call) tried
    ORDER BY kind COLLATE "C", call COLLATE "C";

DELETE FROM interlock.row_lock_audit WHERE table_name = 'direct_write.t';
DROP SCHEMA direct_write CASCADE;
DROP ROLE direct_write_role;
