-- SEC-1: anybody can put a trigger with any arguments on a table of his. Who uses that table gets an error that says
-- which trigger it is; nobody else meets it.
\set VERBOSITY terse
SET client_min_messages = warning;
CREATE ROLE interlock_mallory;
CREATE ROLE interlock_anna;
CREATE SCHEMA mallory AUTHORIZATION interlock_mallory;
CREATE FUNCTION sqlstate_of(command text) RETURNS text LANGUAGE plpgsql AS $$ BEGIN
    EXECUTE command; RETURN 'passed';
EXCEPTION WHEN OTHERS THEN RETURN sqlstate || ': ' || sqlerrm; END $$;
CREATE TABLE shared (id int PRIMARY KEY, a int);
SELECT interlock.enable_marker('shared');
SELECT interlock.enable_versioning('shared');
INSERT INTO shared VALUES (1);
SELECT (interlock.lock_row('shared', 1, 'anna')).locked;

SET ROLE interlock_mallory;
-- a history trigger without a history table
CREATE TEMP TABLE t (id int PRIMARY KEY, status text, v int NOT NULL DEFAULT 1);
CREATE TRIGGER x AFTER INSERT ON t FOR EACH ROW EXECUTE FUNCTION interlock_internal.history_trigger('', '', '0 microseconds since 2000-01-01 UTC', 'notify off', 'ignore markers', '', '1 entries per whole row', '0 ignored columns', '0 ignored writers', 'id', 'integer');
SELECT interlock.row_as_of('t', 1, now());
SELECT * FROM interlock.row_history('t', 1);
INSERT INTO t VALUES (1);
SELECT * FROM interlock.trim_history('t');
\set VERBOSITY default
INSERT INTO t VALUES (1);
\set VERBOSITY terse
-- the function that creates it puts its own in its place
SELECT interlock.enable_history('t');
INSERT INTO t VALUES (1);
SELECT operation FROM interlock.row_history('t', 1);
SELECT interlock.disable_history('t');
DROP TABLE t_history;
-- one that names what is no table, or a table with other columns: "key" would be taken for jsonb
CREATE TEMP VIEW no_table AS SELECT 1;
CREATE TYPE mallory.pair AS (a int, b text);
CREATE TEMP TABLE no_history (id int, key mallory.pair, version text, changed_at timestamptz, writer int, changed_by bigint, operation int,
    row_data text, changed text, before text, transaction xid8, command int8, writer_from int, context text, builds_on text, distance text, row_hash text);
INSERT INTO no_history VALUES (1, (1, 'x'), 'v', '2020-01-01', 1, 1, 1, 'r', 'c', 'b', '1', 1, 1);
CREATE FUNCTION mallory.to_json(mallory.pair) RETURNS jsonb LANGUAGE sql IMMUTABLE RETURN '{"id": 1}'::jsonb;
CREATE CAST (mallory.pair AS jsonb) WITH FUNCTION mallory.to_json(mallory.pair) AS IMPLICIT;
CREATE CONSTRAINT TRIGGER x AFTER INSERT ON t FROM no_table FOR EACH ROW EXECUTE FUNCTION interlock_internal.history_trigger('1', '', '0 microseconds since 2000-01-01 UTC', 'notify off', 'ignore markers', '', '1 entries per whole row', '0 ignored columns', '0 ignored writers', 'id', 'integer');
INSERT INTO t VALUES (2);
SELECT interlock.row_as_of('t', 1, now());
DROP TRIGGER x ON t;
CREATE CONSTRAINT TRIGGER x AFTER INSERT ON t FROM no_history FOR EACH ROW EXECUTE FUNCTION interlock_internal.history_trigger('1', '', '0 microseconds since 2000-01-01 UTC', 'notify off', 'ignore markers', '', '1 entries per whole row', '0 ignored columns', '0 ignored writers', 'id', 'integer');
\set VERBOSITY sqlstate
INSERT INTO t VALUES (2);
\set VERBOSITY terse
SELECT interlock.row_as_of('t', 1, now());
SELECT * FROM interlock.row_history('t', 1);
SELECT * FROM interlock.trim_history('t');
SELECT * FROM interlock.trim_history();
DROP TRIGGER x ON t;
DROP TYPE mallory.pair CASCADE;

-- one that names the history of somebody else, who let him put triggers on it: nothing is written or deleted there
RESET ROLE;
CREATE TABLE annas (id int PRIMARY KEY);
ALTER TABLE annas OWNER TO interlock_anna;
SELECT interlock.enable_history('annas');
INSERT INTO annas VALUES (1);
GRANT TRIGGER ON annas_history TO interlock_mallory;
CREATE TABLE theirs (id int PRIMARY KEY);
ALTER TABLE theirs OWNER TO interlock_mallory;
SET ROLE interlock_mallory;
CREATE CONSTRAINT TRIGGER x AFTER INSERT ON theirs FROM annas_history FOR EACH ROW
    EXECUTE FUNCTION interlock_internal.history_trigger('1', '1 microseconds', '0 microseconds since 2000-01-01 UTC', 'notify off', 'ignore markers', '', '1 entries per whole row', '0 ignored columns', '0 ignored writers', 'id', 'integer');
INSERT INTO theirs VALUES (1);
SELECT * FROM interlock.trim_history('theirs');
SELECT * FROM interlock.row_history('theirs', 1);
RESET ROLE;
SELECT operation FROM interlock.row_history('annas', 1);
-- nor by an administrator who enables history there
GRANT CREATE ON SCHEMA public TO interlock_mallory;
SELECT interlock.enable_history('theirs');
INSERT INTO theirs VALUES (1);
SELECT operation FROM interlock.row_history('theirs', 1);
SELECT count(*) FROM annas_history;
-- a table that is given away alone has to get its history table back
ALTER TABLE theirs OWNER TO interlock_anna;
INSERT INTO theirs VALUES (2);
ALTER TABLE theirs_history OWNER TO interlock_anna;
INSERT INTO theirs VALUES (2);
SELECT operation FROM interlock.row_history('theirs', 2);
DROP TABLE annas, annas_history, theirs, theirs_history;
REVOKE CREATE ON SCHEMA public FROM interlock_mallory;

-- transitions, with arguments that jsonb refuses, or takes for something else
SET ROLE interlock_mallory;
SELECT arguments, sqlstate_of(format('CREATE OR REPLACE TRIGGER x BEFORE UPDATE ON t FOR EACH ROW EXECUTE FUNCTION interlock_internal.transition_trigger(%s)', arguments))
         || sqlstate_of($$UPDATE t SET status = 'b'$$) || sqlstate_of($$SELECT outcome, state FROM interlock.try_transition('t', 1, 'a', 'b')$$) AS outcome
  FROM unnest(ARRAY[$$$$, $$'status'$$, $$'status', '{'$$, $$'status', '{', '', 'allow'$$, $$'status', '{}', '{', 'allow'$$, $$'status', '[1, 2]', '', 'allow'$$,
      $$'status', '["a"]', '', 'allow'$$, $$'status', '"a"', '', 'allow'$$, $$'status', '1', '', 'allow'$$, $$'status', 'null', '', 'allow'$$, $$'status', '', '', 'allow'$$,
      $$'status', '{"a": [1]}', '', 'allow'$$, $$'status', '{"a": {"b": "c"}}', '', 'allow'$$, $$'status', '{"a": ["\u0000"]}', '', 'allow'$$,
      $$'status', '{"a": ["\ud800"]}', '', 'allow'$$, $$'status', '{"a": [1e1000000]}', '', 'allow'$$, $$'status', '{"a": [["b"]]}', '', 'allow'$$,
      $$'status', '{"a": ["b"]} x', '', 'allow'$$, $$'status', '{"a": ["b"],}', '', 'allow'$$, $$'status', '{"a": ["b"', '', 'allow'$$, $$'status', '{"a": ["\', '', 'allow'$$,
      $$'status', '{"a": ["b"]}', '{}', 'allow'$$, $$'status', '{"a": ["b"]}', '["a"', 'allow'$$, $$'status', '{"a": ["b"]}', ''$$, $$'status', '{"a": ["b"]}', '', ''$$, $$'status', '{"a": ["b"]}', '', 'Allow'$$, $$'status', '{"a": ["b"]}', '', 'allow', '', ''$$,
      $$'id', '{"a": ["b"]}', '', 'allow'$$, $$'', '{"a": ["b"]}', '', 'allow'$$, $$'ctid', '{"a": ["b"]}', '', 'allow'$$]) arguments;
SELECT sqlstate_of(format('CREATE OR REPLACE TRIGGER x BEFORE UPDATE ON t FOR EACH ROW EXECUTE FUNCTION interlock_internal.transition_trigger(%L, %L, %L, %L)',
           'status', repeat('[', 500000), '', 'allow')), sqlstate_of($$UPDATE t SET status = 'b'$$);
SELECT sqlstate_of(format('CREATE OR REPLACE TRIGGER x BEFORE UPDATE ON t FOR EACH ROW EXECUTE FUNCTION interlock_internal.transition_trigger(%L, %L, %L, %L)',
           'status', '{"' || repeat('a', 1048576) || '": []}', '', 'allow')), sqlstate_of($$UPDATE t SET status = 'b'$$);
-- as define_transitions writes them
SELECT sqlstate_of(format('CREATE OR REPLACE TRIGGER x BEFORE UPDATE ON t FOR EACH ROW EXECUTE FUNCTION interlock_internal.transition_trigger(%L, %L, %L, %L)',
           'status', ' { "a" : [ "b" , "\u0001\"\\\/\n" ] , "b" : [ ] } ', '["a"]', 'reject')), sqlstate_of($$SELECT outcome, state FROM interlock.try_transition('t', 1, 'a', 'b')$$);
DROP TRIGGER x ON t;
SELECT sqlstate_of(format($$SELECT interlock.define_transitions('t', 'status', '{"%s": []}')$$, repeat('a', 1048576)));
-- a column that can be no state: json has no equality
CREATE TEMP TABLE odd (id int PRIMARY KEY, j json);
CREATE TRIGGER x BEFORE UPDATE ON odd FOR EACH ROW EXECUTE FUNCTION interlock_internal.transition_trigger('j', '{"1": ["2"]}', '', 'allow');
INSERT INTO odd VALUES (1, '1');
SELECT interlock.transition('odd', 1, '1', '2');
UPDATE odd SET j = '2';
CREATE TRIGGER y AFTER INSERT ON odd FOR EACH ROW EXECUTE FUNCTION interlock_internal.initial_state_trigger('id');
INSERT INTO odd VALUES (2);
DROP TABLE odd;

-- versions, markers, leases, owners
SELECT trigger, sqlstate_of(format('CREATE OR REPLACE TRIGGER x %s ON t FOR EACH ROW EXECUTE FUNCTION interlock_internal.%s', timing, trigger))
         || sqlstate_of($$UPDATE t SET status = 'b'$$) || sqlstate_of($$SELECT interlock.versioned_update('t', 1, 1, '{}')$$)
         || sqlstate_of($$SELECT interlock.lock_row('t', 1, 'm')$$) AS outcome
  FROM (VALUES ('BEFORE UPDATE', $$version_trigger()$$), ('BEFORE UPDATE', $$version_trigger('')$$), ('BEFORE UPDATE', $$version_trigger('status')$$),
      ('BEFORE UPDATE', $$version_trigger('ctid', 'xmin', '')$$), ('AFTER UPDATE', $$version_trigger('v')$$), ('BEFORE UPDATE', $$marker_trigger()$$),
      ('BEFORE UPDATE', $$marker_trigger('', '', '', '', '', '', '')$$), ('BEFORE UPDATE', $$marker_trigger('1', 'enforce', 'v', 'status', 'c', 'd', 'e')$$),
      ('BEFORE UPDATE', $$marker_trigger('9223372036854775807', 'enforce', 'v', 'status', 'c', 'd', 'e')$$),
      ('BEFORE UPDATE', $$marker_trigger('1', 'enforce', 'v', 'status', 'c', 'd', 'status')$$),
      ('AFTER UPDATE', $$marker_notify_trigger()$$), ('AFTER UPDATE', $$lease_trigger()$$), ('AFTER UPDATE', $$lease_trigger('{')$$),
      ('AFTER UPDATE', $$lease_trigger('{none}')$$), ('AFTER UPDATE', $$lease_trigger('', 'none')$$), ('BEFORE UPDATE', $$ownership_trigger()$$),
      ('BEFORE UPDATE', $$ownership_trigger('a', 'group', '99999999999999999999')$$), ('BEFORE UPDATE', $$ownership_trigger('a', 'b')$$),
      ('BEFORE UPDATE', $$idempotency_scope_trigger()$$), ('BEFORE UPDATE', $$lease_store_trigger('x')$$)) forged (timing, trigger);
DROP TRIGGER IF EXISTS x ON t;
-- names that are one once they are truncated
CREATE TEMP TABLE long (id int PRIMARY KEY, status int, name_of_column_that_is_sixty_three_bytes_long_and_not_one_more_0 text, since timestamptz, until timestamptz);
INSERT INTO long VALUES (1);
SELECT format('CREATE TRIGGER x BEFORE UPDATE ON long FOR EACH ROW EXECUTE FUNCTION interlock_internal.marker_trigger(%L, %L, %L, %L, %L, %L, %L)',
              '1000', 'enforce', 'status', attname, 'since', 'until', attname || 'x') FROM pg_attribute WHERE attrelid = 'long'::regclass AND attnum = 3 \gexec
UPDATE long SET status = 1;
SELECT interlock.lock_row('long', 1, 'm');
DROP TABLE long;
-- names that end in the middle of a character
SELECT sqlstate_of(format('CREATE TRIGGER y BEFORE UPDATE ON t FOR EACH ROW EXECUTE FUNCTION interlock_internal.version_trigger(%L)', 'a' || repeat('ä', 40))),
       sqlstate_of('UPDATE t SET v = 2');
-- and several of a kind
CREATE TRIGGER z1 BEFORE UPDATE ON t FOR EACH ROW EXECUTE FUNCTION interlock_internal.marker_trigger();
CREATE TRIGGER z2 BEFORE UPDATE ON t FOR EACH ROW EXECUTE FUNCTION interlock_internal.transition_trigger('status', '{');
CREATE TRIGGER z3 AFTER UPDATE ON t FOR EACH ROW EXECUTE FUNCTION interlock_internal.history_trigger('', '', 'x');
CREATE TRIGGER z4 BEFORE UPDATE ON t FOR EACH ROW EXECUTE FUNCTION interlock_internal.transition_trigger('status', '[');
CREATE TRIGGER z5 BEFORE TRUNCATE ON t FOR EACH STATEMENT EXECUTE FUNCTION interlock_internal.history_truncate_trigger('x');
UPDATE t SET v = 2;
TRUNCATE t;

-- others see what is theirs
RESET ROLE;
SELECT rel, key, holder FROM interlock.row_locks;
SELECT * FROM interlock.column_ownership;
SELECT finding FROM interlock.advise() WHERE rel = 'shared'::regclass;
SELECT * FROM interlock.sweep();
SELECT * FROM interlock.trim_history();
SET ROLE interlock_anna;
SELECT * FROM interlock.row_locks;
SELECT * FROM interlock.column_ownership;
SELECT count(*) > 0 AS listed FROM interlock.advise();
RESET ROLE;

-- a partition's owner cannot raise a sequence of the table that it is a partition of
CREATE TABLE parent (id serial, v int) PARTITION BY LIST (v);
CREATE TABLE part PARTITION OF parent DEFAULT;
ALTER TABLE part OWNER TO interlock_mallory;
SET ROLE interlock_mallory;
CREATE TRIGGER x BEFORE DELETE ON part FOR EACH ROW EXECUTE FUNCTION interlock_internal.version_trigger('id', 'allow', 'move');
INSERT INTO part VALUES (1000000, 1);
DELETE FROM part;
RESET ROLE;
SELECT last_value FROM parent_id_seq;

-- SEC-5: a trigger function of another role gets no rights from the extension's own tables
CREATE FUNCTION mallory.climb() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    ALTER ROLE interlock_mallory SUPERUSER; RETURN NEW; END $$;
ALTER FUNCTION mallory.climb() OWNER TO interlock_mallory;
GRANT TRIGGER ON interlock.writer_grant, interlock.row_lock_audit, interlock.lease_audit, interlock.write_log TO interlock_mallory;
SET ROLE interlock_mallory;
CREATE TRIGGER climb BEFORE INSERT ON interlock.writer_grant FOR EACH ROW EXECUTE FUNCTION mallory.climb();
CREATE TRIGGER climb BEFORE INSERT ON interlock.row_lock_audit FOR EACH ROW EXECUTE FUNCTION mallory.climb();
CREATE TRIGGER climb BEFORE INSERT ON interlock.lease_audit FOR EACH ROW EXECUTE FUNCTION mallory.climb();
CREATE TRIGGER climb BEFORE INSERT ON interlock.write_log FOR EACH ROW EXECUTE FUNCTION mallory.climb();
RESET ROLE;
SELECT interlock.grant_writer('w', 'interlock_anna');
SELECT interlock.force_unlock_row('shared', 1, 'why not');
SELECT outcome FROM interlock.acquire_lease('strangers');
SELECT interlock.break_lease('strangers', 'why not');
SELECT interlock.break_leases('strangers', 'why not');
SELECT interlock.enable_history('shared');
BEGIN;
SELECT interlock.suppress_history();
UPDATE shared SET a = 1 WHERE id = 2;
INSERT INTO shared VALUES (3);
COMMIT;
SELECT interlock.disable_history('shared');
SELECT rolsuper FROM pg_roles WHERE rolname = 'interlock_mallory';
DROP TRIGGER climb ON interlock.writer_grant;
DROP TRIGGER climb ON interlock.row_lock_audit;
DROP TRIGGER climb ON interlock.lease_audit;
DROP TRIGGER climb ON interlock.write_log;
SELECT interlock.break_lease('strangers', 'why not') IS NULL AS anonymous;
REVOKE TRIGGER ON interlock.writer_grant, interlock.row_lock_audit, interlock.lease_audit, interlock.write_log FROM interlock_mallory;

-- a change of children that a forged trigger takes fails the sweep of its table, and not that of all others
SELECT interlock.touch_row('shared', 1, 'anna', ttl => '1 ms') IS NOT NULL AS locked;
SET ROLE interlock_mallory;
CREATE TABLE mallory.parent (id int PRIMARY KEY, version bigint NOT NULL DEFAULT 1);
SELECT interlock.enable_versioning('mallory.parent');
INSERT INTO mallory.parent VALUES (1);
CREATE TABLE mallory.child (id serial PRIMARY KEY, parent int REFERENCES mallory.parent);
SELECT interlock.guard_children('mallory.child', 'mallory.parent');
CREATE FUNCTION mallory.nothing() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';
CREATE CONSTRAINT TRIGGER a AFTER INSERT ON mallory.child FOR EACH ROW
    WHEN (interlock_internal.changes_parent('mallory.parent'::regclass, new.tableoid, new.parent)) EXECUTE FUNCTION mallory.nothing();
CREATE TABLE mallory.marked (id int PRIMARY KEY);
SELECT interlock.enable_marker('mallory.marked');
INSERT INTO mallory.marked VALUES (1);
SELECT (interlock.lock_row('mallory.marked', 1, 'x', ttl => '1 ms')).locked;
CREATE FUNCTION mallory.changes() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN INSERT INTO mallory.child (parent) VALUES (1); RETURN NULL; END';
CREATE TRIGGER changes AFTER UPDATE ON mallory.marked FOR EACH ROW EXECUTE FUNCTION mallory.changes();
RESET ROLE;
SELECT pg_sleep(0.01);
SELECT * FROM interlock.sweep();
SELECT lock_status FROM shared WHERE id = 1;

-- what a forged trigger names is not locked
CREATE TABLE secret (id int PRIMARY KEY);
SET ROLE interlock_mallory;
CREATE TABLE mallory.top (id int PRIMARY KEY, a int, version bigint NOT NULL DEFAULT 1);
SELECT interlock.enable_versioning('mallory.top');
INSERT INTO mallory.top VALUES (1);
CREATE CONSTRAINT TRIGGER forged AFTER INSERT ON mallory.top FOR EACH ROW
    WHEN (interlock_internal.changes_parent('secret'::regclass, new.tableoid, new.a)) EXECUTE FUNCTION interlock_internal.children_trigger();
CREATE TABLE mallory.under (id int PRIMARY KEY, top int REFERENCES mallory.top);
BEGIN;
SELECT interlock.guard_children('mallory.under', 'mallory.top');
INSERT INTO mallory.under VALUES (1, 1);
SELECT relation::regclass, mode FROM pg_locks WHERE relation = 'secret'::regclass;
ROLLBACK;

-- triggers with more arguments than the catalog can count: 40,000 are fewer than none there, 65,537 are one (SEC-1); later
-- servers refuse them
CREATE FUNCTION mallory.meets(function text, timing text, count int) RETURNS text LANGUAGE plpgsql AS $$ BEGIN
    CREATE TEMP TABLE many (id int PRIMARY KEY, status text, v int);
    INSERT INTO many VALUES (1);
    PERFORM sqlstate_of(format('CREATE TRIGGER x %s INSERT OR UPDATE OR DELETE ON many FOR EACH ROW EXECUTE FUNCTION interlock_internal.%I(%s)',
        timing, function, (SELECT string_agg('''x''', ',') FROM generate_series(1, count))));
    RETURN concat_ws('|', sqlstate_of('INSERT INTO many VALUES (2)'), sqlstate_of('UPDATE many SET v = 1'), sqlstate_of('DELETE FROM many'),
        sqlstate_of('SELECT FROM interlock.configuration(''many'')'), sqlstate_of('SELECT FROM interlock.column_ownership'),
        sqlstate_of('SELECT FROM interlock.transitions'), sqlstate_of('SELECT FROM interlock.guards'), sqlstate_of('DROP TABLE many'));
END $$;
SELECT mallory.meets(proname, timing, count) ~ 'XX|cache lookup' AS goes_wrong, count(*) > 20 AS tried
  FROM pg_proc, unnest(ARRAY['BEFORE', 'AFTER'], ARRAY[40000, 65537]) pair (timing, count)
 WHERE pronamespace = 'interlock_internal'::regnamespace AND prorettype = 'trigger'::regtype AND has_function_privilege(pg_proc.oid, 'EXECUTE')
 GROUP BY 1;

-- lists of columns that no table has are refused before each is compared with each
SELECT sqlstate_of($$SELECT interlock.own_columns('shared', 'w', array(SELECT ('c' || i)::name FROM generate_series(1, 1000000) i))$$);
SELECT sqlstate_of($$SELECT interlock.enable_history('shared', ignore_columns => array(SELECT ('c' || i)::name FROM generate_series(1, 1000000) i))$$);

-- a cursor that code of others opens under the name of one of the caller's is not what the caller fetches from
CREATE FUNCTION mallory.opens() RETURNS void LANGUAGE plpgsql AS $$ DECLARE c refcursor := 'c'; BEGIN
    BEGIN CLOSE c; EXCEPTION WHEN OTHERS THEN NULL; END;
    OPEN c FOR SELECT 'run as ' || current_user; END $$;
CREATE FUNCTION mallory.opens_at_write() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM mallory.opens(); RETURN COALESCE(NEW, OLD); END';
CREATE FUNCTION mallory.opens_at_plan(x int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS 'BEGIN PERFORM mallory.opens(); RETURN x; END';
CREATE TABLE mallory.counted (id int PRIMARY KEY, n int NOT NULL);
INSERT INTO mallory.counted VALUES (1, 9);
SELECT interlock.enable_escrow('mallory.counted', 'n');
CREATE TRIGGER opens BEFORE UPDATE ON mallory.counted FOR EACH ROW EXECUTE FUNCTION mallory.opens_at_write();
CREATE TABLE mallory.recorded (id int PRIMARY KEY, n int);
SELECT interlock.enable_history('mallory.recorded', keep_versions => 1, keep_for => '1 ms');
INSERT INTO mallory.recorded VALUES (1, 1);
UPDATE mallory.recorded SET n = 2;
UPDATE mallory.recorded SET n = 3;
CREATE TRIGGER opens BEFORE DELETE ON mallory.recorded_history FOR EACH ROW EXECUTE FUNCTION mallory.opens_at_write();
CREATE TABLE mallory.planned (id int PRIMARY KEY, x int);
SELECT interlock.enable_versioning('mallory.planned');
INSERT INTO mallory.planned VALUES (1, 1);
CREATE INDEX ON mallory.planned (id) WHERE mallory.opens_at_plan(1) = 1;
CREATE TABLE mallory.reserved (id int PRIMARY KEY, n int NOT NULL);
SELECT interlock.enable_escrow('mallory.reserved', 'n');
INSERT INTO mallory.reserved VALUES (1, 9);
SELECT token AS reserved FROM interlock.reserve('mallory.reserved', 1, 'n', 2, '1 h') \gset
CREATE TABLE mallory.reserved_child () INHERITS (mallory.reserved); -- so that a statement locks the row
CREATE INDEX at_plan ON mallory.reserved ((mallory.opens_at_plan(1) + n));
RESET ROLE;
SELECT interlock.adjust('mallory.counted', 1, 'n', -1);
SELECT interlock.adjust('mallory.counted', 1, 'n', -1);
SELECT interlock.adjust('mallory.counted', 1, 'n', -1);
BEGIN;
DECLARE c CURSOR FOR SELECT 'mine';
SELECT interlock.fold_escrow('mallory.counted');
FETCH c;
ROLLBACK;
BEGIN;
DECLARE c CURSOR FOR SELECT 'mine';
SELECT * FROM interlock.trim_history();
FETCH c;
ROLLBACK;
BEGIN;
DECLARE c CURSOR FOR SELECT 'mine';
SELECT count(*) FROM interlock.resync_sequences();
FETCH c;
ROLLBACK;
BEGIN;
DECLARE c CURSOR FOR SELECT 'mine';
SELECT interlock.enable_marker('mallory.planned');
FETCH c;
ROLLBACK;
BEGIN;
DECLARE c CURSOR FOR SELECT 'mine';
SELECT interlock.enable_escrow('mallory.reserved', 'n', maximum => 100);
FETCH c;
ROLLBACK;
BEGIN; -- a counter whose row this transaction has written is not loaded into memory
SELECT interlock.set_escrow('mallory.reserved', 1, 'n', 7);
DECLARE c CURSOR FOR SELECT 'mine';
ALTER INDEX mallory.at_plan RENAME TO planned_again; -- so that statements are planned again
SELECT interlock.cancel_reservation(:reserved);
FETCH c;
ROLLBACK;

-- SQL/JSON calls the checks of a domain that it returns (17): restricted, too, as what is on a history table
SET ROLE interlock_mallory;
CREATE FUNCTION mallory.leaves(text) RETURNS bool LANGUAGE sql AS $$SELECT set_config('mallory.was', 'here', false) = 'here'$$;
CREATE DOMAIN mallory.checked AS text CHECK (mallory.leaves(VALUE));
CREATE TABLE mallory.told (id int PRIMARY KEY, x text);
SELECT interlock.enable_history('mallory.told');
DO $$ BEGIN
    IF current_setting('server_version_num')::int >= 170000 THEN
        EXECUTE $q$CREATE INDEX ON mallory.told_history ((JSON_VALUE(row_data, '$.x' RETURNING mallory.checked)))$q$;
    END IF;
END $$;
RESET ROLE;
RESET mallory.was;
INSERT INTO mallory.told VALUES (1, 'a');
SELECT nullif(current_setting('mallory.was', true), '') AS was;

-- nor can it defer triggers to the end of the caller's transaction, but for the owner itself
SET ROLE interlock_mallory;
CREATE TABLE mallory.later (id int PRIMARY KEY, n int NOT NULL);
CREATE CONSTRAINT TRIGGER later AFTER UPDATE ON mallory.later DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION mallory.nothing();
SELECT interlock.enable_escrow('mallory.later', 'n');
INSERT INTO mallory.later VALUES (1, 9);
SELECT interlock.adjust('mallory.later', 1, 'n', -1);
SELECT interlock.adjust('mallory.later', 1, 'n', -1);
RESET ROLE;
SELECT interlock.fold_escrow('mallory.later');
SET ROLE interlock_mallory;
SELECT interlock.fold_escrow('mallory.later');
RESET ROLE;

DROP TABLE secret CASCADE;
DROP TABLE parent, shared, shared_history;
DROP OWNED BY interlock_mallory CASCADE;
DROP FUNCTION sqlstate_of(text);
DROP ROLE interlock_anna, interlock_mallory;
