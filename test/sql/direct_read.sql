-- Reading and locking rows with and without a statement: each case runs on a table and on a twin for which direct
-- work is turned off; what is answered or raised, and which rows were locked, must be the same. The plans that the session
-- has kept tell how the row was read.
\set SHOW_CONTEXT never
SET client_min_messages = warning;
CREATE ROLE reading_role;

-- What a piece of SQL answers or raises, and which versions of rows are locked or dead.
CREATE FUNCTION effect(work text, role text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE answer text; detail text; state text; locked text;
BEGIN
    BEGIN
        IF role IS NOT NULL THEN EXECUTE format('SET LOCAL ROLE %I', role); END IF;
        EXECUTE work INTO answer;
    EXCEPTION WHEN OTHERS THEN
        GET STACKED DIAGNOSTICS answer = MESSAGE_TEXT, detail = PG_EXCEPTION_DETAIL, state = RETURNED_SQLSTATE;
    END;
    RESET ROLE;
    SELECT string_agg(concat_ws(':', id, xmax <> 0), ' ' ORDER BY id) INTO locked FROM t;
    RETURN concat_ws(E'\n', state, answer, regexp_replace(detail, '(ours|twin)\.', '', 'g'), locked);
END $$;

CREATE FUNCTION make_table(place text, setup text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE format('DROP SCHEMA IF EXISTS %1$I CASCADE; CREATE SCHEMA %1$I; GRANT USAGE ON SCHEMA %1$I TO reading_role; SET search_path = %1$I, public', place);
    CREATE TABLE t (id int PRIMARY KEY, a int, b text NOT NULL, c numeric, version bigint NOT NULL DEFAULT 1);
    INSERT INTO t VALUES (1, 1, 'one', 1.0), (2, 2, 'two', 2.50), (3, 3, 'three', NULL);
    EXECUTE setup;
END $$;

-- Those of tables that were dropped are still among them.
CREATE FUNCTION kept_plans(place text) RETURNS bigint LANGUAGE sql AS
    'SELECT count(*) FROM pg_backend_memory_contexts WHERE ident LIKE ''SELECT %'' || place || ''.%''';

-- One case.
CREATE FUNCTION try(setup text, work text, role text DEFAULT NULL, OUT how text, OUT as_twin boolean, OUT answer text) LANGUAGE plpgsql AS $$
DECLARE ours text; twin text; before bigint;
BEGIN
    PERFORM make_table('ours', setup);
    before := kept_plans('ours');
    ours := effect(work, role);
    how := CASE WHEN kept_plans('ours') > before THEN 'statement' ELSE 'direct' END;
    PERFORM make_table('twin', setup);
    PERFORM set_config('interlock.direct_execution', 'off', true);
    twin := effect(work, role);
    PERFORM set_config('interlock.direct_execution', 'on', true);
    as_twin := ours = twin;
    answer := replace(ours, E'\n', ' | ');
    IF NOT as_twin THEN answer := ours || E'\n<>\n' || twin; END IF;
    RESET search_path;
END $$;
-- select_for_update of some keys, with further arguments
CREATE FUNCTION try_rows(setup text, keys text DEFAULT $$'{3,99,1}'$$, role text DEFAULT NULL, OUT how text, OUT as_twin boolean, OUT answer text) LANGUAGE sql AS $$
    SELECT * FROM try(setup, format('SELECT string_agg(key::text, '' '') FROM interlock.select_for_update(''t'', %s)', keys), role) $$;

-- Plain tables, every strength and every way to wait
SELECT * FROM try_rows('');
SELECT * FROM try_rows('', $$ARRAY[3, 1], 'no_key_update'$$);
SELECT * FROM try_rows('', $$ARRAY[3, 1]::bigint[], 'share', '0'$$);
SELECT * FROM try_rows('', $$'["3", 1]'::jsonb, 'key_share', skip_locked => true$$);
SELECT * FROM try_rows('', $$'{1,2,3}', 'update', '5 s'$$);
SELECT * FROM try_rows('', $$'{99}', wait => '0'$$);
SELECT * FROM try_rows('CREATE TRIGGER x BEFORE UPDATE ON t FOR EACH ROW EXECUTE FUNCTION suppress_redundant_updates_trigger()');

-- Keys of every kind; what is returned is the key as it is stored
SELECT * FROM try_rows('ALTER TABLE t DROP CONSTRAINT t_pkey, ADD PRIMARY KEY (b, id)', $$'[{"id": 3, "b": "three"}, {"id": 1, "b": "one"}, {"id": 1, "b": "two"}]'::jsonb$$);
SELECT * FROM try_rows('DELETE FROM t WHERE id = 3; ALTER TABLE t DROP CONSTRAINT t_pkey, ADD PRIMARY KEY (c)', $$ARRAY[2.5, 1.000]$$);
SELECT * FROM try_rows('INSERT INTO t SELECT 7, 7, 7, ''NaN''; DELETE FROM t WHERE id = 3; ALTER TABLE t DROP CONSTRAINT t_pkey, ADD PRIMARY KEY (c)', $$ARRAY[2.5, 'NaN']::numeric[]$$);
SELECT * FROM try_rows('ALTER TABLE t DROP CONSTRAINT t_pkey, ADD PRIMARY KEY (b)', $$'{two,"t wo"}'$$);
SELECT * FROM try_rows('ALTER TABLE t DROP CONSTRAINT t_pkey, ALTER b TYPE varchar(9), ADD PRIMARY KEY (b)', $$'{two,one}'$$);
SELECT * FROM try_rows('ALTER TABLE t DROP CONSTRAINT t_pkey, ALTER b TYPE char(9), ADD PRIMARY KEY (b)', $$'{two,one}'$$);
SELECT * FROM try_rows('ALTER TABLE t DROP CONSTRAINT t_pkey, ADD COLUMN k uuid DEFAULT ''00000000-0000-0000-0000-00000000000a''; DELETE FROM t WHERE id > 1; ALTER TABLE t ADD PRIMARY KEY (k)', $$'{00000000-0000-0000-0000-00000000000A}'$$);
SELECT * FROM try_rows('ALTER TABLE t DROP CONSTRAINT t_pkey, ADD COLUMN k date DEFAULT ''2030-01-02'', ADD COLUMN l timestamptz DEFAULT ''infinity'', ADD COLUMN m boolean DEFAULT true; ALTER TABLE t ADD PRIMARY KEY (id, k, l, m)',
    $$'[{"id": 2, "k": "2030-01-02", "l": "infinity", "m": "yes"}]'::jsonb$$);
SELECT * FROM try_rows('ALTER TABLE t DROP CONSTRAINT t_pkey, ADD COLUMN k float8; UPDATE t SET k = id + 0.5; UPDATE t SET k = ''infinity'' WHERE id = 3; ALTER TABLE t ADD PRIMARY KEY (k)', $$ARRAY[1.5, 'infinity']::float8[]$$);
SELECT * FROM try_rows('ALTER TABLE t DROP CONSTRAINT t_pkey, ADD COLUMN k int[]; UPDATE t SET k = ARRAY[id, 7]; ALTER TABLE t ADD PRIMARY KEY (k)', $$'["{3,7}", "{1,7}"]'::jsonb$$);
SELECT * FROM try_rows('CREATE TYPE colour AS ENUM (''red'', ''blue''); ALTER TABLE t DROP CONSTRAINT t_pkey, ADD COLUMN k colour DEFAULT ''blue'', ADD PRIMARY KEY (id, k)', $$'[{"id": 2, "k": "blue"}]'::jsonb$$);
SELECT * FROM try_rows('CREATE DOMAIN small AS smallint; ALTER TABLE t ALTER id TYPE small', $$'{2,3,1}'$$);
SELECT * FROM try_rows('CREATE DOMAIN small AS int', $$ARRAY[2, 1]::small[]$$);
SELECT * FROM try_rows('ALTER TABLE t DROP CONSTRAINT t_pkey, ADD COLUMN k jsonb; UPDATE t SET k = jsonb_build_object(''z'', id); ALTER TABLE t ADD PRIMARY KEY (id, k)', $$'[{"id": 1, "k": {"z": 1}}]'::jsonb$$);
SELECT * FROM try_rows('ALTER TABLE t DROP CONSTRAINT t_pkey, DROP COLUMN a; ALTER TABLE t RENAME b TO "B ""x"""; ALTER TABLE t ADD PRIMARY KEY ("B ""x""")', $$'{two,one}'$$);

-- Indexes that do not say which key is equal, and constraints that are checked late
SELECT * FROM try_rows('ALTER TABLE t DROP CONSTRAINT t_pkey; CREATE UNIQUE INDEX ON t (b COLLATE "POSIX")', $$'{two,one}'$$);
SELECT * FROM try_rows('ALTER TABLE t DROP CONSTRAINT t_pkey, ADD PRIMARY KEY (id) DEFERRABLE INITIALLY DEFERRED');

-- Tables that are not plain
SELECT * FROM try_rows('CREATE RULE r AS ON UPDATE TO t DO ALSO NOTHING');
SELECT * FROM try_rows('CREATE TABLE child () INHERITS (t); INSERT INTO child VALUES (99, 9, ''child'')');
SELECT * FROM try_rows('CREATE TABLE parent (id int PRIMARY KEY, a int, b text, c numeric, version bigint) PARTITION BY RANGE (id); DROP TABLE t; CREATE TABLE t PARTITION OF parent FOR VALUES FROM (0) TO (50); INSERT INTO t VALUES (1), (3)');
SELECT * FROM try_rows('DROP TABLE t; CREATE TABLE t (id int PRIMARY KEY, a int, b text, c numeric, version bigint) PARTITION BY RANGE (id); CREATE TABLE low PARTITION OF t FOR VALUES FROM (0) TO (2); CREATE TABLE high PARTITION OF t FOR VALUES FROM (2) TO (50); INSERT INTO t VALUES (1), (3)');
SELECT * FROM try_rows('DROP TABLE t; CREATE TABLE real_t (id int PRIMARY KEY); CREATE VIEW t AS SELECT *, 0 AS xmax FROM real_t');

-- Privileges
SELECT * FROM try_rows('GRANT SELECT, UPDATE ON t TO reading_role', role => 'reading_role');
SELECT * FROM try_rows('GRANT SELECT, UPDATE (a) ON t TO reading_role', role => 'reading_role');
SELECT * FROM try_rows('GRANT SELECT (id), UPDATE ON t TO reading_role', role => 'reading_role');
SELECT * FROM try_rows('GRANT SELECT (a), UPDATE ON t TO reading_role', role => 'reading_role');
SELECT * FROM try_rows('GRANT SELECT ON t TO reading_role', role => 'reading_role');
SELECT * FROM try_rows('GRANT SELECT, UPDATE ON t TO reading_role; ALTER TABLE t ENABLE ROW LEVEL SECURITY', role => 'reading_role');
SELECT * FROM try_rows('GRANT SELECT, UPDATE ON t TO reading_role; ALTER TABLE t ENABLE ROW LEVEL SECURITY; CREATE POLICY p ON t USING (id < 3)', role => 'reading_role');
SELECT * FROM try_rows('ALTER TABLE t ENABLE ROW LEVEL SECURITY; CREATE POLICY p ON t USING (id < 3)');
SELECT * FROM try_rows('CREATE POLICY p ON t USING (id < 3); ALTER TABLE t OWNER TO reading_role, ENABLE ROW LEVEL SECURITY', role => 'reading_role');
SELECT * FROM try_rows('CREATE POLICY p ON t USING (id < 3); ALTER TABLE t OWNER TO reading_role, ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY', role => 'reading_role');

-- What the same transaction, or the same command, has written
SELECT * FROM try_rows('UPDATE t SET a = 7; DELETE FROM t WHERE id = 3; INSERT INTO t VALUES (99, 9, ''new'')');
SELECT * FROM try_rows('UPDATE t SET id = id + 10', $$'{1,11,13}'$$);
SELECT * FROM try('', $$UPDATE t SET a = 7 WHERE id = 1 RETURNING (SELECT string_agg(key::text, ' ') FROM interlock.select_for_update('t', ARRAY[id, 2]))$$);
SELECT * FROM try('', $$UPDATE t SET id = 9 WHERE id = 1 RETURNING (SELECT string_agg(key::text, ' ') FROM interlock.select_for_update('t', '{1,2,9}'))$$);
SELECT * FROM try('', $$DELETE FROM t WHERE id = 1 RETURNING (SELECT string_agg(key::text, ' ') FROM interlock.select_for_update('t', ARRAY[id, 2]))$$);
SELECT * FROM try('', $$INSERT INTO t VALUES (99, 9, 'new') RETURNING (SELECT string_agg(key::text, ' ') FROM interlock.select_for_update('t', ARRAY[id, 2]))$$);
SELECT * FROM try('', $$SELECT concat(count(k1), ' ', count(k2)) FROM interlock.select_for_update('t', '{1,2}', 'key_share') k1, interlock.select_for_update('t', '{2,3}') k2$$);

-- The row that a conflict shows is read without a lock
SELECT * FROM try($$SELECT interlock.enable_versioning('t')$$, $$SELECT r::text FROM interlock.try_versioned_update('t', 2, 9, '{"a": 7}') r$$);
SELECT * FROM try($$SELECT interlock.enable_versioning('t')$$, $$SELECT r::text FROM interlock.try_versioned_update('t', 3, 9, '{"a": 7}') r$$);
SELECT * FROM try($$SELECT interlock.enable_versioning('t')$$, $$SELECT interlock.versioned_update('t', 2, 9, '{"a": 7}')$$);
SELECT * FROM try($$SELECT interlock.enable_versioning('t')$$, $$SELECT r::text FROM interlock.try_versioned_update('t', 99, 9, '{"a": 7}') r$$);
SELECT * FROM try($$SELECT interlock.enable_versioning('t'); ALTER TABLE t ADD COLUMN d text; UPDATE t SET d = repeat('long ', 2000)$$, $$SELECT md5(r::text) FROM interlock.try_versioned_update('t', 1, 9, '{"a": 7}') r$$);
SELECT * FROM try($$SELECT interlock.enable_versioning('t'); ALTER TABLE t DROP COLUMN a, ADD COLUMN e int DEFAULT 5$$, $$SELECT r::text FROM interlock.try_versioned_update('t', 1, 9, '{"b": "x"}') r$$);
SELECT * FROM try($$SELECT interlock.enable_versioning('t'); CREATE RULE r AS ON UPDATE TO t DO ALSO NOTHING$$, $$SELECT r::text FROM interlock.try_versioned_update('t', 1, 9, '{"a": 7}') r$$);
SELECT * FROM try($$SELECT interlock.enable_versioning('t'); GRANT SELECT, UPDATE ON t TO reading_role$$, $$SELECT r::text FROM interlock.try_versioned_update('t', 1, 9, '{"a": 7}') r$$, 'reading_role');
SELECT * FROM try($$SELECT interlock.enable_versioning('t'); GRANT SELECT (id, b, version), UPDATE ON t TO reading_role$$, $$SELECT r::text FROM interlock.try_versioned_update('t', 1, 9, '{"a": 7}') r$$, 'reading_role');
SELECT * FROM try($$SELECT interlock.enable_versioning('t'); GRANT SELECT, UPDATE ON t TO reading_role; ALTER TABLE t ENABLE ROW LEVEL SECURITY; CREATE POLICY p ON t USING (id < 3)$$, $$SELECT r::text FROM interlock.try_versioned_update('t', 3, 9, '{"a": 7}') r$$, 'reading_role');
SELECT * FROM try($$SELECT interlock.enable_versioning('t'); GRANT SELECT, UPDATE ON t TO reading_role; ALTER TABLE t ENABLE ROW LEVEL SECURITY; CREATE POLICY p ON t USING (id < 3)$$, $$SELECT r::text FROM interlock.try_versioned_update('t', 2, 9, '{"a": 7}') r$$, 'reading_role');
SELECT * FROM try('SELECT interlock.define_transitions(''t'', ''b'', ''{"one": ["two"], "two": ["one"]}'')', $$SELECT r::text FROM interlock.try_transition('t', 1, 'two', 'one') r$$);
SELECT * FROM try('SELECT interlock.enable_marker(''t''); SELECT interlock.lock_row(''t'', 1, ''bert'', reason => ''typos'')', $$SELECT row(locked, holder) FROM interlock.lock_row('t', 1, 'anna')$$);
SELECT * FROM try('SELECT interlock.enable_marker(''t''); SELECT interlock.lock_row(''t'', 1, ''bert'')', $$SELECT row(locked, holder) FROM interlock.lock_row('t', 99, 'anna')$$);

-- Transactions that are not read committed, or may not lock
SELECT make_table('ours', '');
BEGIN ISOLATION LEVEL REPEATABLE READ;
SELECT kept_plans('ours') AS before \gset
SELECT string_agg(key::text, ' '), kept_plans('ours') > :before AS by_statement FROM interlock.select_for_update('t', '{3,1}');
ROLLBACK;
SELECT make_table('ours', '');
BEGIN ISOLATION LEVEL SERIALIZABLE;
SELECT kept_plans('ours') AS before \gset
SELECT string_agg(key::text, ' '), kept_plans('ours') > :before AS by_statement FROM interlock.select_for_update('t', '{3,1}');
ROLLBACK;
BEGIN READ ONLY;
SELECT * FROM interlock.select_for_update('t', '{3,1}');
ROLLBACK;
-- a schema that the caller may not use
GRANT SELECT, UPDATE ON t TO reading_role;
SELECT 't'::regclass::oid AS closed \gset
REVOKE USAGE ON SCHEMA ours FROM reading_role;
SET ROLE reading_role;
\set VERBOSITY terse
SELECT * FROM interlock.select_for_update(:closed::regclass, '{3,1}');
RESET ROLE;

RESET search_path;
DROP SCHEMA ours, twin CASCADE;
DROP FUNCTION try_rows, try, kept_plans, make_table, effect;
DROP ROLE reading_role;
