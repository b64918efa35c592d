-- The functions that update one row, with and without a statement: each case runs the function on a table, on a twin
-- whose statement trigger makes it run a statement, and, for a versioned update, the same UPDATE by hand on a
-- third; rows, triggers fired, HOT updates and errors must be the same. The context of a row trigger tells how the function ran.
\set SHOW_CONTEXT never
SET client_min_messages = warning;
CREATE TABLE fired (name text, event text, was jsonb, became jsonb, pid int DEFAULT pg_backend_pid()); -- the sweeper's are not ours
CREATE SEQUENCE how; -- 1 when the call wrote directly, 2 by a statement, 3 not at all; no rollback takes it back
CREATE FUNCTION log_fired() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE context text;
BEGIN
    GET DIAGNOSTICS context = PG_CONTEXT;
    INSERT INTO public.fired (name, event, was, became) VALUES (TG_NAME, concat_ws(' ', TG_WHEN, TG_LEVEL, TG_OP), to_jsonb(OLD) - '{lock_time,lock_until}'::text[],
        to_jsonb(NEW) - '{lock_time,lock_until}'::text[]);
    PERFORM setval('public.how', CASE WHEN context ~ 'SQL statement "UPDATE .* AS t SET' THEN 2 ELSE 1 END) WHERE TG_NAME = 'first';
    RETURN NEW;
END $$;
-- without telling the sweeper
CREATE FUNCTION expire() RETURNS void LANGUAGE plpgsql SET session_replication_role = replica AS $$
BEGIN UPDATE t SET lock_until = now() - interval '1 s' WHERE id = 1; END $$;
CREATE FUNCTION nothing() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';
CREATE ROLE direct_role;
GRANT SELECT ON fired TO direct_role;

-- What a piece of SQL answers or raises, and leaves behind, as the indexes have it.
CREATE FUNCTION effect(work text, role text) RETURNS text LANGUAGE plpgsql SET enable_seqscan = off SET enable_bitmapscan = off SET jit = off AS $$
DECLARE answer text; detail text; state text; stored text; log text; updates text;
BEGIN
    DELETE FROM fired;
    PERFORM setval('how', 3);
    BEGIN
        IF role IS NOT NULL THEN EXECUTE format('SET LOCAL ROLE %I', role); END IF;
        EXECUTE work INTO answer;
        SET CONSTRAINTS ALL IMMEDIATE;
    EXCEPTION WHEN OTHERS THEN
        GET STACKED DIAGNOSTICS answer = MESSAGE_TEXT, detail = PG_EXCEPTION_DETAIL, state = RETURNED_SQLSTATE;
    END;
    RESET ROLE;
    SELECT concat_ws(' ', jsonb_agg(to_jsonb(t) - '{lock_time,lock_until}'::text[] ORDER BY id), array_agg(pg_column_size(t) ORDER BY id)) INTO stored FROM t;
    stored := concat_ws(' ', stored, (SELECT count(*) FROM t WHERE id > 0));
    SELECT jsonb_agg(to_jsonb(f) - 'pid') INTO log FROM fired f WHERE pid = pg_backend_pid();
    updates := pg_stat_get_xact_tuples_updated('t'::regclass) || ' updated, ' || pg_stat_get_xact_tuples_hot_updated('t'::regclass) || ' hot';
    RETURN concat_ws(E'\n', state, answer, regexp_replace(regexp_replace(detail, '(ours|twin|hand)\.', ''), ' "[0-9]{4}-[^"]*"', ' a time', 'g'), stored, log, updates);
END $$;

CREATE FUNCTION make_table(place text, setup text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE format('DROP SCHEMA IF EXISTS %1$I CASCADE; CREATE SCHEMA %1$I; GRANT USAGE ON SCHEMA %1$I TO direct_role; SET search_path = %1$I, public', place);
    CREATE TABLE t (id int PRIMARY KEY, a int, b text, c numeric, version bigint NOT NULL DEFAULT 1);
    INSERT INTO t VALUES (1, 1, 'one', 1.0), (2, 2, 'two', 2.50);
    PERFORM interlock.enable_versioning('t');
    CREATE TRIGGER first BEFORE UPDATE ON t FOR EACH ROW EXECUTE FUNCTION public.log_fired();
    EXECUTE setup;
    IF place = 'twin' AND (SELECT relkind = 'r' FROM pg_class WHERE oid = 't'::regclass) THEN
        CREATE TRIGGER forced BEFORE UPDATE ON t FOR EACH STATEMENT EXECUTE FUNCTION public.nothing();
    END IF;
END $$;

-- One case. The function's answer is shown in one line.
CREATE FUNCTION try(setup text, call text, by_hand text DEFAULT NULL, role text DEFAULT NULL,
    OUT how text, OUT as_twin boolean, OUT as_by_hand boolean, OUT answer text) LANGUAGE plpgsql AS $$
DECLARE ours text; twin text;
BEGIN
    PERFORM make_table('ours', setup);
    ours := effect(call, role);
    how := (SELECT ('{direct,statement,no row}'::text[])[last_value] FROM public.how);
    PERFORM make_table('twin', setup);
    twin := effect(call, role);
    as_twin := ours = twin AND (SELECT last_value > 1 FROM public.how); -- which did run a statement
    answer := replace(split_part(ours, E'\n[', 1), E'\n', ' ');
    IF NOT as_twin THEN answer := ours || E'\n<>\n' || twin; END IF;
    IF by_hand IS NOT NULL THEN
        PERFORM make_table('hand', setup);
        twin := effect(by_hand, role);
        as_by_hand := ours = twin;
        IF NOT as_by_hand THEN answer := ours || E'\n<>\n' || twin; END IF;
    END IF;
    RESET search_path;
END $$;

-- A versioned update of row 1, and the same by hand.
CREATE FUNCTION try_update(setup text, changes text DEFAULT '{"a": 7, "b": "seven"}', assignments text DEFAULT $$a = 7, b = 'seven'$$, role text DEFAULT NULL,
    OUT how text, OUT as_twin boolean, OUT as_by_hand boolean, OUT answer text) LANGUAGE sql AS $$
SELECT * FROM try(setup, format('SELECT interlock.versioned_update(''t'', 1, 1, %L)', changes),
    format('UPDATE ONLY t SET %s WHERE id = 1 AND version = 1 RETURNING version', assignments), role)
$$;

-- Plain tables, and what the executor does around an update
SELECT * FROM try_update('');
SELECT * FROM try_update('', '{}', 'version = version');
SELECT * FROM try_update('', '{"a": null, "b": null, "c": 3.10}', 'a = NULL, b = NULL, c = 3.10');
SELECT * FROM try_update('ALTER TABLE t DROP COLUMN c; ALTER TABLE t ADD COLUMN d int DEFAULT 5, ADD COLUMN "E f" text');
SELECT * FROM try_update('CREATE INDEX ON t (a)');
SELECT * FROM try_update('CREATE INDEX ON t ((a + 1)) WHERE b IS NOT NULL; CREATE INDEX ON t USING brin (c)');
SELECT * FROM try_update('ALTER TABLE t ADD COLUMN twice int GENERATED ALWAYS AS (a * 2) STORED');
SELECT * FROM try_update('ALTER TABLE t ALTER b SET STORAGE EXTERNAL; SELECT interlock.disable_versioning(''t''); UPDATE t SET b = repeat(''x'', 10000); SELECT interlock.enable_versioning(''t'')', '{"a": 7}', 'a = 7');
-- Errors
SELECT * FROM try_update('ALTER TABLE t ADD CHECK (a < 5)');
SELECT * FROM try_update('ALTER TABLE t ALTER b SET NOT NULL', '{"b": null}', 'b = NULL');
SELECT * FROM try_update('CREATE DOMAIN small AS int CHECK (VALUE < 5); ALTER TABLE t ALTER a TYPE small', '{"a": 4}', 'a = 4');
SELECT * FROM try_update('CREATE UNIQUE INDEX ON t (a)', '{"a": 2}', 'a = 2');
SELECT * FROM try_update('ALTER TABLE t ADD UNIQUE (a) DEFERRABLE INITIALLY DEFERRED', '{"a": 2}', 'a = 2');
SELECT * FROM try_update('ALTER TABLE t ADD EXCLUDE USING btree (a WITH =)', '{"a": 2}', 'a = 2');
SELECT * FROM try_update('CREATE TABLE parent (id int PRIMARY KEY); INSERT INTO parent VALUES (1), (2); ALTER TABLE t ADD FOREIGN KEY (a) REFERENCES parent');
SELECT * FROM try_update('CREATE TABLE parent (id int PRIMARY KEY); INSERT INTO parent VALUES (1), (2); ALTER TABLE t ADD FOREIGN KEY (a) REFERENCES parent DEFERRABLE INITIALLY DEFERRED');
SELECT * FROM try_update('CREATE UNIQUE INDEX ON t (a); CREATE TABLE child (a int REFERENCES t (a)); INSERT INTO child VALUES (1)');
SELECT * FROM try_update('CREATE UNIQUE INDEX ON t (a); CREATE TABLE child (a int REFERENCES t (a) ON UPDATE CASCADE); INSERT INTO child VALUES (1);
    CREATE TRIGGER cascaded AFTER UPDATE ON child FOR EACH ROW EXECUTE FUNCTION public.log_fired()');
SELECT * FROM try_update('ALTER TABLE t REPLICA IDENTITY NOTHING; SET client_min_messages = error; DROP PUBLICATION IF EXISTS direct_publication; CREATE PUBLICATION direct_publication FOR TABLE t; SET client_min_messages = warning');
DROP PUBLICATION direct_publication;
-- Triggers
SELECT * FROM try_update('CREATE TRIGGER of_version BEFORE UPDATE OF version ON t FOR EACH ROW EXECUTE FUNCTION public.log_fired(); CREATE TRIGGER of_a BEFORE UPDATE OF a ON t FOR EACH ROW EXECUTE FUNCTION public.log_fired()',
    '{}', 'version = version');
SELECT * FROM try_update('CREATE TRIGGER of_a BEFORE UPDATE OF a ON t FOR EACH ROW EXECUTE FUNCTION public.log_fired(); CREATE TRIGGER of_c BEFORE UPDATE OF c ON t FOR EACH ROW EXECUTE FUNCTION public.log_fired();
    CREATE TRIGGER late AFTER UPDATE ON t FOR EACH ROW WHEN (OLD.a <> NEW.a) EXECUTE FUNCTION public.log_fired(); CREATE TRIGGER never AFTER UPDATE ON t FOR EACH ROW WHEN (NEW.a = 8) EXECUTE FUNCTION public.log_fired()');
SELECT * FROM try_update('ALTER TABLE t ADD COLUMN twice int GENERATED ALWAYS AS (a * 2) STORED; CREATE TRIGGER of_twice BEFORE UPDATE OF twice ON t FOR EACH ROW EXECUTE FUNCTION public.log_fired()');
SELECT * FROM try_update('CREATE CONSTRAINT TRIGGER late AFTER UPDATE ON t DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION public.log_fired()');
SELECT * FROM try_update('CREATE FUNCTION more() RETURNS trigger LANGUAGE plpgsql AS ''BEGIN NEW.c := 99; RETURN NEW; END''; CREATE TRIGGER more BEFORE UPDATE ON t FOR EACH ROW EXECUTE FUNCTION more()');
SELECT * FROM try_update('CREATE FUNCTION other_key() RETURNS trigger LANGUAGE plpgsql AS ''BEGIN NEW.id := 9; RETURN NEW; END''; CREATE TRIGGER other_key BEFORE UPDATE ON t FOR EACH ROW EXECUTE FUNCTION other_key()');
SELECT * FROM try_update('CREATE FUNCTION itself() RETURNS trigger LANGUAGE plpgsql AS ''BEGIN IF pg_trigger_depth() = 1 THEN UPDATE t SET c = 5 WHERE id = NEW.id; END IF; RETURN NEW; END'';
    CREATE TRIGGER itself BEFORE UPDATE ON t FOR EACH ROW EXECUTE FUNCTION itself()');
SELECT * FROM try_update('CREATE FUNCTION gone() RETURNS trigger LANGUAGE plpgsql AS ''BEGIN DELETE FROM t WHERE id = NEW.id; RETURN NEW; END''; CREATE TRIGGER gone BEFORE UPDATE ON t FOR EACH ROW EXECUTE FUNCTION gone()');
-- VER-52: the version after the trigger's, which RETURNING by hand does not have
SELECT how, as_twin, as_by_hand, left(answer, 1) AS version FROM try_update('CREATE FUNCTION again() RETURNS trigger LANGUAGE plpgsql AS ''BEGIN IF pg_trigger_depth() = 1 THEN UPDATE t SET c = 5 WHERE id = NEW.id; END IF; RETURN NULL; END'';
    CREATE TRIGGER again AFTER UPDATE ON t FOR EACH ROW EXECUTE FUNCTION again()');
SELECT * FROM try('CREATE FUNCTION quiet() RETURNS trigger LANGUAGE plpgsql AS ''BEGIN RETURN NULL; END''; CREATE TRIGGER quiet BEFORE UPDATE ON t FOR EACH ROW EXECUTE FUNCTION quiet()',
    $$SELECT interlock.versioned_update('t', 1, 1, '{"a": 7}')$$);
SELECT * FROM try('', $$SELECT interlock.try_versioned_update('t', 1, 5, '{"a": 7}')$$);
SELECT * FROM try('', $$SELECT interlock.try_versioned_update('t', 3, 1, '{"a": 7}')$$);
-- a row that the caller's own statement has made
SELECT * FROM try('', $$INSERT INTO t VALUES (3, 3, 'three') RETURNING interlock.versioned_update('t', 3, 1, '{"a": 7}')$$);
SELECT * FROM try('', $$SELECT interlock.versioned_update('t', 1, 1, '{"a": 7}') + interlock.versioned_update('t', 1, 2, '{"a": 8}')$$);

-- What is left to a statement
SELECT * FROM try_update('CREATE TRIGGER statement BEFORE UPDATE ON t FOR EACH STATEMENT EXECUTE FUNCTION public.log_fired()');
SELECT * FROM try_update('CREATE TRIGGER statement AFTER UPDATE ON t FOR EACH STATEMENT EXECUTE FUNCTION public.log_fired()');
SELECT * FROM try_update('CREATE TRIGGER changes AFTER UPDATE ON t REFERENCING NEW TABLE AS new_rows FOR EACH ROW EXECUTE FUNCTION public.log_fired()');
SELECT * FROM try_update('CREATE RULE other AS ON UPDATE TO t DO ALSO INSERT INTO public.fired (name) VALUES (''rule'')', '{"a": 7, "b": "seven"}', 'a = 7, b = ''seven''');
SELECT * FROM try_update('CREATE TABLE kept () INHERITS (t); INSERT INTO kept VALUES (1, 1, ''one'', 1, 1)');
SELECT * FROM try('ALTER TABLE t RENAME TO part; CREATE TABLE t (LIKE part) PARTITION BY LIST (id); SELECT interlock.disable_versioning(''part''); ALTER TABLE t ATTACH PARTITION part FOR VALUES IN (1, 2);
    ALTER TABLE t ADD PRIMARY KEY (id); SELECT interlock.enable_versioning(''t'')',
    $$SELECT interlock.versioned_update('t', 1, 1, '{"a": 7}')$$, 'UPDATE t SET a = 7 WHERE id = 1 AND version = 1 RETURNING version');
SELECT * FROM try('ALTER TABLE t RENAME TO part; CREATE TABLE t (LIKE part) PARTITION BY LIST (id); SELECT interlock.disable_versioning(''part''); ALTER TABLE t ATTACH PARTITION part FOR VALUES IN (1, 2);
    ALTER TABLE t ADD PRIMARY KEY (id); SELECT interlock.enable_versioning(''t'')',
    $$SELECT interlock.versioned_update('part', 1, 1, '{"a": 7}')$$, 'UPDATE part SET a = 7 WHERE id = 1 AND version = 1 RETURNING version');
SELECT * FROM try_update('GRANT SELECT, UPDATE ON t TO direct_role', role => 'direct_role');
SELECT * FROM try_update('GRANT SELECT, UPDATE (a, b) ON t TO direct_role', role => 'direct_role');
SELECT * FROM try_update('GRANT SELECT, UPDATE (a) ON t TO direct_role', role => 'direct_role');
SELECT * FROM try_update('GRANT SELECT (id, version), UPDATE ON t TO direct_role', role => 'direct_role');
SELECT * FROM try_update('GRANT UPDATE ON t TO direct_role', role => 'direct_role');
SELECT * FROM try_update('GRANT SELECT, UPDATE ON t TO direct_role; ALTER TABLE t ENABLE ROW LEVEL SECURITY; CREATE POLICY p ON t USING (a < 5)', role => 'direct_role');
SELECT * FROM try_update('GRANT SELECT, UPDATE ON t TO direct_role; ALTER TABLE t ENABLE ROW LEVEL SECURITY; CREATE POLICY p ON t USING (true)', role => 'direct_role');
SELECT * FROM try_update('ALTER TABLE t ENABLE ROW LEVEL SECURITY');
SELECT * FROM try_update('ALTER TABLE t ALTER b TYPE text COLLATE "C"');
SELECT * FROM try('ALTER TABLE t DROP CONSTRAINT t_pkey, ALTER b SET NOT NULL; CREATE UNIQUE INDEX ON t (b COLLATE "POSIX")',
    $$SELECT interlock.versioned_update('t', 'one'::text, 1, '{"a": 7}')$$, $$UPDATE t SET a = 7 WHERE b = 'one' AND version = 1 RETURNING version$$);
-- Who may not call an operator of the key may not update by it
CREATE FUNCTION same(int, int) RETURNS boolean LANGUAGE internal IMMUTABLE STRICT AS 'int4eq';
REVOKE EXECUTE ON FUNCTION same FROM public;
CREATE OPERATOR === (LEFTARG = int, RIGHTARG = int, FUNCTION = same);
CREATE OPERATOR CLASS own_ops FOR TYPE int USING btree AS OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 ===, OPERATOR 4 >=, OPERATOR 5 >, FUNCTION 1 btint4cmp(int, int);
SELECT * FROM try_update('ALTER TABLE t DROP CONSTRAINT t_pkey, ALTER id SET NOT NULL; CREATE UNIQUE INDEX ON t (id own_ops); GRANT SELECT, UPDATE ON t TO direct_role');
SELECT * FROM try('ALTER TABLE t DROP CONSTRAINT t_pkey, ALTER id SET NOT NULL; CREATE UNIQUE INDEX ON t (id own_ops); GRANT SELECT, UPDATE ON t TO direct_role',
    $$SELECT interlock.versioned_update('t', 1, 1, '{"a": 7, "b": "seven"}')$$, $$UPDATE t SET a = 7, b = 'seven' WHERE id === 1 AND version = 1 RETURNING version$$, 'direct_role');
-- Transactions that are not read committed, or may not write
SELECT make_table('ours', '');
BEGIN ISOLATION LEVEL REPEATABLE READ;
SELECT interlock.versioned_update('t', 1, 1, '{"a": 7}');
SELECT last_value AS how FROM how;
ROLLBACK;
BEGIN ISOLATION LEVEL SERIALIZABLE;
SELECT interlock.versioned_update('t', 1, 1, '{"a": 7}');
SELECT last_value AS how FROM how;
ROLLBACK;
BEGIN READ ONLY;
SELECT interlock.versioned_update('t', 1, 1, '{"a": 7}');
ROLLBACK;
RESET search_path;

-- Keys and values of other types
SELECT * FROM try('ALTER TABLE t DROP CONSTRAINT t_pkey, ADD PRIMARY KEY (b, id)', $$SELECT interlock.versioned_update('t', '{"id": 2, "b": "two"}'::jsonb, 1, '{"a": 7}')$$, $$UPDATE t SET a = 7 WHERE id = 2 AND b = 'two' AND version = 1 RETURNING version$$);
SELECT * FROM try('ALTER TABLE t ADD COLUMN u uuid, ADD COLUMN ts timestamptz(0), ADD COLUMN n numeric(5, 1), ADD COLUMN s varchar(3), ADD COLUMN l bigint, ADD COLUMN y boolean, ADD COLUMN j jsonb, ADD COLUMN r int[]',
    $$SELECT interlock.versioned_update('t', 1, 1, '{"u": "00000000-0000-0000-0000-000000000001", "ts": "2020-01-01 00:00:00.7Z", "n": 2.25, "s": "abc", "l": 99, "y": true, "j": {"x": [1]}, "r": [1, null], "c": 1.500}')$$,
    $$UPDATE t SET u = '00000000-0000-0000-0000-000000000001', ts = '2020-01-01 00:00:00.7Z', n = 2.25, s = 'abc', l = 99, y = true, j = '{"x": [1]}', r = '{1,NULL}', c = 1.500 WHERE id = 1 AND version = 1 RETURNING version$$);
SELECT * FROM try_update('', '{"a": "7", "b": 8, "c": "9.50"}', $$a = '7', b = '8', c = '9.50'$$);
SELECT * FROM try_update('ALTER TABLE t ALTER c TYPE numeric(5, 1), ALTER b TYPE varchar(4)', '{"b": "abcd", "c": 2.25}', $$b = 'abcd', c = 2.25$$);
SELECT * FROM try_update('ALTER TABLE t ALTER b TYPE varchar(4)', '{"b": "abcde"}', $$b = 'abcde'$$);
SELECT * FROM try_update('', '{"a": 7.0}', $$a = '7.0'$$);
SELECT * FROM try_update('', '{"a": 3000000000}', $$a = '3000000000'$$);
SELECT * FROM try_update('ALTER TABLE t ADD COLUMN y boolean', '{"y": 1}', $$y = '1'$$);

-- The other functions
SELECT * FROM try('SELECT interlock.define_transitions(''t'', ''b'', ''{"one": ["two"], "two": ["one"]}'')', $$SELECT interlock.try_transition('t', 1, 'one', 'two', '{"a": 7}')$$);
SELECT * FROM try('SELECT interlock.define_transitions(''t'', ''b'', ''{"one": ["two"], "two": ["one"]}'')', $$SELECT interlock.try_transition('t', 1, 'two', 'one', '{"a": 7}')$$);
SELECT * FROM try('SELECT interlock.define_transitions(''t'', ''b'', ''{"one": ["two"], "two": ["one"]}'')', $$SELECT interlock.try_transition('t', 1, 'one', 'two', '{"a": 7}', match => '{"a": 1}')$$);
SELECT * FROM try('SELECT interlock.define_transitions(''t'', ''b'', ''{"one": ["two"], "two": ["one"]}'')', $$SELECT interlock.try_transition('t', 1, ARRAY['two', 'one'], 'two', '{"a": 7}', match => '{"a": 2}')$$);
SELECT * FROM try('SELECT interlock.define_transitions(''t'', ''b'', ''{"one": ["two"], "two": ["one"]}'')', $$SELECT interlock.transition('t', 1, 'one', 'one')$$);
SELECT * FROM try('SELECT interlock.define_transitions(''t'', ''b'', ''{"one": ["two"]}''); ALTER TABLE t ADD CHECK (b <> ''two'' OR a = 2)', $$SELECT interlock.transition('t', 1, 'one', 'two')$$);
SELECT * FROM try('SELECT interlock.enable_marker(''t'')', $$SELECT row(locked, holder) FROM interlock.lock_row('t', 1, 'anna')$$);
SELECT * FROM try('SELECT interlock.enable_marker(''t'')', $$SELECT row(locked, holder) FROM interlock.lock_row('t', 1, 'anna', '1 min', 'typos')$$);
SELECT * FROM try('SELECT interlock.enable_marker(''t''); SELECT interlock.lock_row(''t'', 1, ''bert'')', $$SELECT row(locked, holder) FROM interlock.lock_row('t', 1, 'anna')$$);
SELECT * FROM try('SELECT interlock.enable_marker(''t''); SELECT interlock.lock_row(''t'', 1, ''anna'', reason => ''first'')', $$SELECT row(locked, holder) FROM interlock.lock_row('t', 1, 'anna')$$);
SELECT * FROM try('SELECT interlock.enable_marker(''t''); SELECT interlock.lock_row(''t'', 1, ''anna'')', $$SELECT interlock.save_row('t', 1, 'anna', '{"a": 7}')$$);
SELECT * FROM try('SELECT interlock.enable_marker(''t''); SELECT interlock.lock_row(''t'', 1, ''anna'')', $$SELECT interlock.save_row('t', 1, 'anna', '{"a": 7}', 1)$$);
SELECT * FROM try('SELECT interlock.enable_marker(''t''); SELECT interlock.lock_row(''t'', 1, ''anna'')', $$SELECT interlock.save_row('t', 1, 'anna', '{"a": 7}', 2)$$);
SELECT * FROM try('SELECT interlock.enable_marker(''t''); SELECT interlock.lock_row(''t'', 1, ''anna'')', $$SELECT interlock.save_row('t', 1, 'bert', '{"a": 7}')$$);
SELECT * FROM try('SELECT interlock.enable_marker(''t''); SELECT interlock.lock_row(''t'', 1, ''anna''), public.expire()', $$SELECT interlock.save_row('t', 1, 'anna', '{"a": 7}')$$);
SELECT * FROM try('SELECT interlock.enable_marker(''t''); SELECT interlock.lock_row(''t'', 1, ''anna'')', $$SELECT interlock.unlock_row('t', 1, 'anna')$$);
SELECT * FROM try('SELECT interlock.enable_marker(''t''); SELECT interlock.lock_row(''t'', 1, ''anna'')', $$SELECT interlock.touch_row('t', 1, 'anna') > now()$$);
SELECT * FROM try('SELECT interlock.enable_marker(''t''); SELECT interlock.lock_row(''t'', 1, ''anna'')', $$SELECT interlock.force_unlock_row('t', 1, 'gone home')$$);
-- a name that is too long for the column matters only where there is a row to mark
SELECT * FROM try('ALTER TABLE t ADD COLUMN lock_by varchar(4), ADD COLUMN lock_status smallint; SELECT interlock.enable_marker(''t'')', $$SELECT row(locked, holder) FROM interlock.lock_row('t', 1, 'anna')$$);
SELECT * FROM try('ALTER TABLE t ADD COLUMN lock_by varchar(4), ADD COLUMN lock_status bigint; SELECT interlock.enable_marker(''t'')', $$SELECT row(locked, holder) FROM interlock.lock_row('t', 1, 'berta')$$);
SELECT * FROM try('ALTER TABLE t ADD COLUMN lock_by varchar(4), ADD COLUMN lock_status bigint; SELECT interlock.enable_marker(''t''); SELECT interlock.lock_row(''t'', 1, ''anna'')', $$SELECT row(locked, holder) FROM interlock.lock_row('t', 1, 'berta')$$);
-- Tables on which no BEFORE trigger fires but those of this library, which are then asked without the server: with an AFTER trigger that
-- tells how the function ran, and without any
CREATE FUNCTION log_holder() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN INSERT INTO public.fired (name, event) VALUES (TG_NAME, current_setting('interlock.holder', true)); RETURN NEW; END $$;
CREATE FUNCTION try_own(setup text, call text, by_hand text DEFAULT NULL, role text DEFAULT NULL,
    OUT how text, OUT as_twin boolean, OUT as_by_hand boolean, OUT alone_as_twin boolean, OUT alone_as_by_hand boolean, OUT answer text) LANGUAGE plpgsql AS $$
DECLARE alone record;
BEGIN
    SELECT * INTO alone FROM try('DROP TRIGGER first ON t; ' || setup, call, by_hand, role);
    SELECT t.how, t.as_twin, t.as_by_hand, t.answer INTO how, as_twin, as_by_hand, answer
        FROM try('DROP TRIGGER first ON t; CREATE TRIGGER first AFTER UPDATE ON t FOR EACH ROW EXECUTE FUNCTION public.log_fired(); ' || setup, call, by_hand, role) t;
    alone_as_twin := alone.as_twin;
    alone_as_by_hand := alone.as_by_hand;
    IF NOT (alone.as_twin AND coalesce(alone.as_by_hand, true)) THEN answer := alone.answer; END IF;
END $$;
CREATE FUNCTION try_own_update(setup text, changes text DEFAULT '{"a": 7, "b": "seven"}', assignments text DEFAULT $$a = 7, b = 'seven'$$,
    OUT how text, OUT as_twin boolean, OUT as_by_hand boolean, OUT alone_as_twin boolean, OUT alone_as_by_hand boolean, OUT answer text) LANGUAGE sql AS $$
SELECT * FROM try_own(setup, format('SELECT interlock.versioned_update(''t'', 1, 1, %L)', changes),
    format('UPDATE ONLY t SET %s WHERE id = 1 AND version = 1 RETURNING version', assignments))
$$;
SELECT * FROM try_own_update('');
SELECT * FROM try_own_update('', '{}', 'version = version');
SELECT * FROM try_own_update('', '{"a": null, "b": null, "c": 3.10}', 'a = NULL, b = NULL, c = 3.10');
SELECT * FROM try_own_update('ALTER TABLE t DROP COLUMN c; ALTER TABLE t ADD COLUMN d int DEFAULT 5, ADD COLUMN "E f" text');
SELECT * FROM try_own_update('CREATE INDEX ON t (a)');
SELECT * FROM try_own_update('CREATE INDEX ON t ((a + 1)) WHERE b IS NOT NULL; CREATE INDEX ON t USING brin (c)');
SELECT * FROM try_own_update('ALTER TABLE t ADD COLUMN twice int GENERATED ALWAYS AS (a * 2) STORED');
SELECT * FROM try_own_update('ALTER TABLE t ALTER b SET STORAGE EXTERNAL; SELECT interlock.disable_versioning(''t''); UPDATE t SET b = repeat(''x'', 10000); SELECT interlock.enable_versioning(''t'')', '{"a": 7}', 'a = 7');
SELECT * FROM try_own_update('SELECT interlock.enable_versioning(''t'', ignore_columns => ''{a}'')');
SELECT * FROM try_own_update('SELECT interlock.enable_versioning(''t'', ignore_columns => ''{a}'')', '{"a": 7}', 'a = 7');
SELECT * FROM try_own_update('SELECT interlock.enable_versioning(''t'', ignore_columns => ''{a}'')', '{"a": 1}', 'a = 1');
SELECT * FROM try_own_update('ALTER TABLE t ADD CHECK (a < 5)');
SELECT * FROM try_own_update('CREATE UNIQUE INDEX ON t (a)', '{"a": 2}', 'a = 2');
SELECT * FROM try_own_update('ALTER TABLE t ADD UNIQUE (a) DEFERRABLE INITIALLY DEFERRED', '{"a": 2}', 'a = 2');
SELECT * FROM try_own_update('ALTER TABLE t ADD EXCLUDE USING btree (a WITH =)', '{"a": 2}', 'a = 2');
SELECT * FROM try_own_update('CREATE TABLE parent (id int PRIMARY KEY); INSERT INTO parent VALUES (1), (2); ALTER TABLE t ADD FOREIGN KEY (a) REFERENCES parent DEFERRABLE INITIALLY DEFERRED');
SELECT * FROM try_own_update('CREATE UNIQUE INDEX ON t (a); CREATE TABLE child (a int REFERENCES t (a)); INSERT INTO child VALUES (1)');
SELECT * FROM try_own_update('CREATE UNIQUE INDEX ON t (a); CREATE TABLE child (a int REFERENCES t (a)); INSERT INTO child VALUES (1)', '{"b": "seven"}', 'b = ''seven''');
SELECT * FROM try_own_update('CREATE UNIQUE INDEX ON t (a); CREATE TABLE child (a int REFERENCES t (a) ON UPDATE CASCADE); INSERT INTO child VALUES (1);
    CREATE TRIGGER cascaded AFTER UPDATE ON child FOR EACH ROW EXECUTE FUNCTION public.log_fired()');
SELECT * FROM try_own_update('ALTER TRIGGER zzz_interlock_version ON t RENAME TO aaa; SELECT interlock.define_transitions(''t'', ''b'', ''{"one": ["seven"]}'')');
SELECT * FROM try_own('ALTER TABLE t DISABLE TRIGGER zzz_interlock_version', $$SELECT interlock.versioned_update('t', 1, 1, '{"a": 7}')$$);
-- several concepts on one table
SELECT * FROM try_own_update('SELECT interlock.define_transitions(''t'', ''b'', ''{"one": ["seven"]}'')');
SELECT * FROM try_own_update('SELECT interlock.define_transitions(''t'', ''b'', ''{"one": ["two"]}'')');
SELECT * FROM try_own_update('SELECT interlock.define_transitions(''t'', ''b'', ''{"one": ["two"]}''); ALTER TABLE t DISABLE TRIGGER zzz_interlock_transition_b');
SELECT * FROM try_own_update('SELECT interlock.enable_marker(''t''); SELECT interlock.lock_row(''t'', 1, ''bert'')');
SELECT * FROM try_own_update('SELECT interlock.enable_marker(''t''); SELECT interlock.lock_row(''t'', 1, ''bert''); ALTER TABLE t DISABLE TRIGGER zzz_interlock_marker');
SELECT * FROM try_own_update('SELECT interlock.enable_marker(''t''); SELECT interlock.lock_row(''t'', 1, ''bert''), public.expire()');
SELECT interlock.grant_writer('direct_writer', 'public');
SELECT * FROM try_own_update('SELECT interlock.own_columns(''t'', ''direct_writer'', ''{a}'')');
SELECT interlock.revoke_writer('direct_writer', 'public');
SELECT * FROM try_own('SELECT interlock.enable_marker(''t''); SELECT interlock.lock_row(''t'', 1, ''bert'')', $$SELECT interlock.versioned_update('t', 1, 1, '{"a": 7}') FROM interlock.set_holder('bert')$$);
SELECT * FROM try_own('SELECT interlock.enable_marker(''t'')', $$SELECT row(locked, holder) FROM interlock.lock_row('t', 1, 'anna')$$);
SELECT * FROM try_own('SELECT interlock.enable_marker(''t'')', $$SELECT row(locked, holder) FROM interlock.lock_row('t', 1, 'anna', '1 min', 'typos')$$);
SELECT * FROM try_own('SELECT interlock.enable_marker(''t''); SELECT interlock.lock_row(''t'', 1, ''bert'')', $$SELECT row(locked, holder) FROM interlock.lock_row('t', 1, 'anna')$$);
SELECT * FROM try_own('SELECT interlock.enable_marker(''t''); SELECT interlock.lock_row(''t'', 1, ''anna'', reason => ''first'')', $$SELECT row(locked, holder) FROM interlock.lock_row('t', 1, 'anna')$$);
SELECT * FROM try_own('SELECT interlock.enable_marker(''t''); SELECT interlock.lock_row(''t'', 1, ''anna'')', $$SELECT interlock.save_row('t', 1, 'anna', '{"a": 7}')$$);
SELECT * FROM try_own('SELECT interlock.enable_marker(''t''); SELECT interlock.lock_row(''t'', 1, ''anna''); SELECT interlock.define_transitions(''t'', ''b'', ''{"one": ["two"]}'')', $$SELECT interlock.save_row('t', 1, 'anna', '{"b": "seven"}')$$);
SELECT * FROM try_own('SELECT interlock.enable_marker(''t'', sweep_index => false); SELECT interlock.lock_row(''t'', 1, ''anna'')', $$SELECT interlock.save_row('t', 1, 'anna', '{"a": 7}', 1)$$);
SELECT * FROM try_own('SELECT interlock.enable_marker(''t''); SELECT interlock.lock_row(''t'', 1, ''anna'')', $$SELECT interlock.save_row('t', 1, 'anna', '{"a": 7}', 2)$$);
SELECT * FROM try_own('SELECT interlock.enable_marker(''t''); SELECT interlock.lock_row(''t'', 1, ''anna'')', $$SELECT interlock.save_row('t', 1, 'bert', '{"a": 7}')$$);
SELECT * FROM try_own('SELECT interlock.enable_marker(''t''); SELECT interlock.lock_row(''t'', 1, ''anna''), public.expire()', $$SELECT interlock.save_row('t', 1, 'anna', '{"a": 7}')$$);
SELECT * FROM try_own('SELECT interlock.enable_marker(''t''); SELECT interlock.lock_row(''t'', 1, ''anna'')', $$SELECT interlock.unlock_row('t', 1, 'anna')$$);
SELECT * FROM try_own('SELECT interlock.enable_marker(''t''); SELECT interlock.lock_row(''t'', 1, ''anna'')', $$SELECT interlock.touch_row('t', 1, 'anna') > now()$$);
SELECT * FROM try_own('SELECT interlock.enable_marker(''t''); SELECT interlock.lock_row(''t'', 1, ''anna'')', $$SELECT interlock.force_unlock_row('t', 1, 'gone home')$$);
-- whoever else looks, in an AFTER trigger, a check or a cascade, sees who writes
SELECT * FROM try_own('SELECT interlock.enable_marker(''t''); SELECT interlock.lock_row(''t'', 1, ''anna''); CREATE TRIGGER holder AFTER UPDATE ON t FOR EACH ROW EXECUTE FUNCTION public.log_holder()', $$SELECT interlock.save_row('t', 1, 'anna', '{"a": 7}')$$);
SELECT name, event FROM fired WHERE name = 'holder';
SELECT * FROM try_own('SELECT interlock.enable_marker(''t''); SELECT interlock.lock_row(''t'', 1, ''anna''); CREATE UNIQUE INDEX ON t (a); CREATE TABLE child (a int REFERENCES t (a) ON UPDATE CASCADE); INSERT INTO child VALUES (1);
    CREATE TRIGGER holder BEFORE UPDATE ON child FOR EACH ROW EXECUTE FUNCTION public.log_holder()', $$SELECT interlock.save_row('t', 1, 'anna', '{"a": 7}')$$);
SELECT name, event FROM fired WHERE name = 'holder';
SELECT * FROM try_own('SELECT interlock.enable_marker(''t''); SELECT interlock.lock_row(''t'', 1, ''anna''); ALTER TABLE t ADD CHECK (a < 5 OR current_setting(''interlock.holder'') = ''anna'')', $$SELECT interlock.save_row('t', 1, 'anna', '{"a": 7}')$$);
-- functions of others, which may look at who writes, wait or change the table: an index's, a check's, a trigger's of the row before
SELECT * FROM try_own('SELECT interlock.enable_marker(''t''); SELECT interlock.lock_row(''t'', 1, ''anna''); CREATE FUNCTION seen(a int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS
    ''BEGIN IF a = 7 THEN RAISE ''''seen by an index: %'''', current_setting(''''interlock.holder'''', true); END IF; RETURN a; END''; CREATE INDEX ON t (seen(a))', $$SELECT interlock.save_row('t', 1, 'anna', '{"a": 7}')$$);
SELECT * FROM try_own('SELECT interlock.enable_marker(''t''); SELECT interlock.lock_row(''t'', 1, ''bert''); CREATE FUNCTION small(a int) RETURNS boolean LANGUAGE plpgsql AS ''BEGIN RAISE division_by_zero; END'';
    ALTER TABLE t ADD CHECK (small(a)) NOT VALID', $$SELECT interlock.versioned_update('t', 1, 1, '{"a": 7}')$$);
SELECT * FROM try_own('CREATE FUNCTION more() RETURNS trigger LANGUAGE plpgsql AS ''BEGIN NEW.a := NEW.a + 1000; RETURN NEW; END''; CREATE FUNCTION add_trigger() RETURNS trigger LANGUAGE plpgsql AS
    ''BEGIN CREATE OR REPLACE TRIGGER aaa BEFORE UPDATE ON t FOR EACH ROW EXECUTE FUNCTION more(); RETURN NULL; END''; CREATE TRIGGER add_trigger AFTER UPDATE ON t FOR EACH ROW EXECUTE FUNCTION add_trigger()',
    $$SELECT string_agg(m::text, ' ') FROM interlock.versioned_update_many('t', '[{"key": 1, "version": 1, "changes": {"a": 10}}, {"key": 2, "version": 1, "changes": {"a": 20}}]') m$$);
SELECT * FROM try_own('ALTER TABLE t ADD CONSTRAINT a_small CHECK (a < 100), ADD CONSTRAINT b_small CHECK (a < 1000); CREATE FUNCTION rename() RETURNS trigger LANGUAGE plpgsql AS
    ''BEGIN ALTER TABLE t RENAME CONSTRAINT a_small TO z_small; RETURN NULL; END''; CREATE TRIGGER rename AFTER UPDATE ON t FOR EACH ROW WHEN (NEW.id = 1) EXECUTE FUNCTION rename()',
    $$SELECT string_agg(m::text, ' ') FROM interlock.versioned_update_many('t', '[{"key": 1, "version": 1, "changes": {"a": 10}}, {"key": 2, "version": 1, "changes": {"a": 200}}]') m$$);
-- a batch shares what it opens; rows twice, other columns, a conflict and a missing row in between
SELECT * FROM try_own('INSERT INTO t SELECT g, g, ''more'', g FROM generate_series(3, 6) g', $$SELECT string_agg(m::text, ' ') FROM interlock.versioned_update_many('t',
    '[{"key": 5, "version": 1, "changes": {"a": 50}}, {"key": 1, "version": 1, "changes": {"a": 10}}, {"key": 3, "version": 4, "changes": {"a": 30}}, {"key": 2, "version": 1, "changes": {"b": "other", "c": 1}},
      {"key": 9, "version": 1, "changes": {"a": 90}}, {"key": 5, "version": 2, "changes": {"a": 51}}, {"key": 4, "version": 1, "changes": {}}, {"key": 6, "version": 1, "changes": {"a": 60}}]', false) m$$);
SELECT * FROM try_own('CREATE UNIQUE INDEX ON t (a); INSERT INTO t SELECT g, g, ''more'', g FROM generate_series(3, 6) g', $$SELECT string_agg(m::text, ' ') FROM interlock.versioned_update_many('t',
    '[{"key": 5, "version": 1, "changes": {"a": 50}}, {"key": 4, "version": 1, "changes": {"a": 40}}, {"key": 6, "version": 1, "changes": {"a": 40}}]') m$$);

-- A schema that the caller may not use, and a server that is set to run statements
CREATE SCHEMA direct_closed;
CREATE TABLE direct_closed.t (id int PRIMARY KEY, a int, version bigint NOT NULL DEFAULT 1);
SELECT interlock.enable_versioning('direct_closed.t');
INSERT INTO direct_closed.t VALUES (1, 1);
GRANT SELECT, UPDATE ON direct_closed.t TO direct_role;
SELECT 'direct_closed.t'::regclass::oid AS closed \gset
SET ROLE direct_role;
SELECT interlock.versioned_update(:closed::regclass, 1, 1, '{"a": 7}');
SET interlock.direct_execution = off;
RESET ROLE;
DROP SCHEMA direct_closed CASCADE;
SET interlock.direct_execution = off;
SELECT * FROM try_update('', '{"a": 7}', $$a = 7$$);
RESET interlock.direct_execution;

-- What a check computes from constants alone may come out otherwise when a setting or a privilege is another
CREATE TABLE hand.folded (id int PRIMARY KEY, note text, n int, CHECK (note <> ('\xff'::bytea)::text), CHECK (n < abs(-1000)));
SELECT interlock.enable_versioning('hand.folded');
INSERT INTO hand.folded VALUES (1, 'x', 1);
SELECT interlock.versioned_update('hand.folded', 1, 1, '{"note": "y"}');
SET bytea_output = escape;
SELECT interlock.versioned_update('hand.folded', 1, 2, '{"note": "\\377"}');
RESET bytea_output;
GRANT USAGE ON SCHEMA hand TO direct_role;
GRANT SELECT, UPDATE ON hand.folded TO direct_role;
BEGIN;
REVOKE EXECUTE ON FUNCTION abs(int) FROM PUBLIC;
SET ROLE direct_role;
SELECT interlock.versioned_update('hand.folded', 1, 2, '{"n": 3}');
ROLLBACK;

DELETE FROM interlock.row_lock_audit WHERE table_name IN ('ours.t', 'twin.t');
DROP SCHEMA ours, twin, hand CASCADE;
RESET search_path;
DROP SEQUENCE how;
DROP FUNCTION try_own_update, try_own, try_update, try, make_table, effect, expire, nothing, log_fired, log_holder;
DROP OPERATOR CLASS own_ops USING btree;
DROP OPERATOR FAMILY own_ops USING btree;
DROP OPERATOR === (int, int);
DROP FUNCTION same;
DROP TABLE fired;
DROP ROLE direct_role;
