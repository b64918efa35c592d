-- Entries written with and without a statement: each case does the same work on a table and on a twin for which
-- interlock.direct_execution is off. Entries, their ids, sizes and commands, what the indexes find, and errors must be the same. Only what is
-- written without a statement keeps its locks on the indexes, which tells how it was done.
\set SHOW_CONTEXT never
\set VERBOSITY verbose
SET client_min_messages = warning;
CREATE ROLE direct_owner;
CREATE ROLE direct_member;
CREATE TYPE public.mood AS ENUM ('low', 'high');
CREATE TYPE public.pair AS (a int, b text);
CREATE DOMAIN public.short AS varchar(5);

-- What a piece of work raises, and leaves behind.
CREATE FUNCTION effect(work text) RETURNS text LANGUAGE plpgsql SET enable_seqscan = off SET enable_bitmapscan = off SET jit = off AS $$
DECLARE state text; message text; entries text; found text;
BEGIN
    BEGIN
        EXECUTE work;
    EXCEPTION WHEN OTHERS THEN
        GET STACKED DIAGNOSTICS message = MESSAGE_TEXT, state = RETURNED_SQLSTATE;
    END;
    EXECUTE 'SELECT jsonb_agg(to_jsonb(h) - ''{changed_at,transaction,command}''::text[] || jsonb_build_object(''size'', pg_column_size(h.*), ''row size'',
        pg_column_size(h.row_data), ''mine'', transaction = pg_current_xact_id()::text::bigint, ''command'', command - least) ORDER BY command, id)
        FROM t_history h, (SELECT min(command) AS least FROM t_history) m' INTO entries;
    EXECUTE 'SELECT concat_ws('' '', (SELECT count(*) FROM t_history WHERE id > -1000), (SELECT jsonb_agg((t.id, h.operation, h.row_data) ORDER BY h.command, h.id)
        FROM t, t_history h WHERE jsonb_hash_extended(h.key, 0) = jsonb_hash_extended(jsonb_build_object(''id'', t.id), 0)))' INTO found;
    RETURN concat_ws(E'\n', state, regexp_replace(message, '(ours|twin)\.?', ''), entries, found);
END $$;

CREATE FUNCTION make_table(place text, setup text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE format('DROP SCHEMA IF EXISTS %1$I CASCADE; CREATE SCHEMA %1$I; GRANT USAGE ON SCHEMA %1$I TO direct_owner; SET search_path = %1$I, public', place);
    CREATE TABLE t (id int PRIMARY KEY, a int, b text, version bigint NOT NULL DEFAULT 1);
    PERFORM interlock.enable_versioning('t');
    PERFORM interlock.enable_history('t');
    EXECUTE setup;
END $$;

CREATE FUNCTION try(setup text, work text DEFAULT NULL, OUT how text, OUT as_twin boolean, OUT answer text) LANGUAGE plpgsql AS $$
DECLARE ours text; twin text; full_work text;
BEGIN
    full_work := coalesce(work, $q$INSERT INTO t VALUES (1, 1, 'one'), (2, 2, 'two'), (3, 3, 'three'); UPDATE t SET a = a + 1; UPDATE t SET b = NULL WHERE id = 1;
        UPDATE t SET id = 7 WHERE id = 2; DELETE FROM t WHERE id = 3$q$);
    PERFORM make_table('ours', setup);
    ours := effect(full_work);
    how := CASE WHEN ours !~ '"operation"' THEN 'nothing' WHEN EXISTS (SELECT FROM pg_locks l JOIN pg_index i ON i.indexrelid = l.relation
        WHERE i.indrelid = to_regclass('ours.t_history') AND l.mode = 'RowExclusiveLock') THEN 'direct' ELSE 'statement' END;
    SET LOCAL interlock.direct_execution = off;
    PERFORM make_table('twin', setup);
    twin := effect(full_work);
    RESET interlock.direct_execution;
    as_twin := ours = twin AND NOT EXISTS (SELECT FROM pg_locks l JOIN pg_index i ON i.indexrelid = l.relation
        WHERE i.indrelid = to_regclass('twin.t_history') AND l.mode = 'RowExclusiveLock'); -- which did run a statement
    answer := CASE WHEN NOT as_twin THEN ours || E'\n<>\n' || twin WHEN ours !~ '^[[]' THEN replace(split_part(ours, E'\n[', 1), E'\n', ' ') END;
    RESET search_path;
END $$;

-- Without a statement
SELECT * FROM try('');
SELECT * FROM try('', $$INSERT INTO t SELECT g, g, repeat(md5(g::text), 200) FROM generate_series(1, 500) g; UPDATE t SET a = 0$$);
SELECT * FROM try('', $$INSERT INTO t VALUES (1, 1, 'one'), (2, 2, 'two'); TRUNCATE t$$);
SELECT * FROM try('', $$INSERT INTO t VALUES (1, 1, 'one'); SELECT 1 / 0$$); -- an error after a write
SELECT * FROM try('', $$DO 'BEGIN INSERT INTO t VALUES (1, 1, ''one''); BEGIN UPDATE t SET a = 2; UPDATE t SET a = 1 / 0; EXCEPTION WHEN OTHERS THEN UPDATE t SET a = 3; END; END'$$);
SELECT * FROM try($$ALTER TABLE t_history DROP CONSTRAINT t_history_pkey$$);
SELECT * FROM try($$ALTER TABLE t_history DROP CONSTRAINT t_history_pkey; DROP INDEX t_history_jsonb_hash_extended_id_idx$$); -- and no index to tell by
SELECT * FROM try($$ALTER TABLE t_history ALTER id SET INCREMENT BY -1 SET MINVALUE -100 SET START -1 RESTART$$);
SELECT * FROM try($$ALTER TABLE t_history ALTER row_data SET COMPRESSION pglz, ALTER row_data SET STORAGE EXTERNAL$$, $$INSERT INTO t VALUES (1, 1, repeat('x', 9000)); UPDATE t SET a = 2$$);
SELECT * FROM try($$ALTER TABLE t_history SET UNLOGGED$$);
SELECT * FROM try($$ALTER TABLE t_history ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY; ALTER TABLE t OWNER TO direct_owner; ALTER TABLE t_history OWNER TO direct_owner$$);
SELECT * FROM try($$CREATE FUNCTION again() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN UPDATE t SET a = 100 WHERE id = NEW.id AND a < 100; RETURN NULL; END';
    CREATE TRIGGER "000_again" AFTER INSERT OR UPDATE ON t FOR EACH ROW EXECUTE FUNCTION again()$$);
SELECT * FROM try($$CREATE FUNCTION twice() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN DELETE FROM t WHERE id = NEW.id + 1; RETURN NEW; END';
    CREATE TRIGGER twice BEFORE UPDATE ON t FOR EACH ROW EXECUTE FUNCTION twice()$$);
SELECT * FROM try($$CREATE TABLE parent (id int PRIMARY KEY); INSERT INTO parent VALUES (1), (2), (3), (7); ALTER TABLE t ADD FOREIGN KEY (id) REFERENCES parent ON DELETE CASCADE ON UPDATE CASCADE$$,
    $$INSERT INTO t VALUES (1, 1, 'one'), (2, 2, 'two'); UPDATE parent SET id = 9 WHERE id = 1; DELETE FROM parent WHERE id = 2$$);
-- Errors
SELECT * FROM try($$INSERT INTO t VALUES (1, 1, 'one'), (2, 2, 'two'); ALTER TABLE t_history ALTER id RESTART 2$$, 'UPDATE t SET a = 5');
SELECT * FROM try($$ALTER TABLE t_history ALTER id SET MAXVALUE 4$$);
SELECT * FROM try($$CREATE FUNCTION closing() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN SET LOCAL transaction_read_only = on; RETURN NEW; END';
    CREATE TRIGGER closing BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION closing()$$);

-- With a statement, as the table is not as it was made
SELECT * FROM try($$ALTER TABLE t_history ADD COLUMN note text$$);
SELECT * FROM try($$ALTER TABLE t_history ADD COLUMN note text DEFAULT 'x'$$);
SELECT * FROM try($$ALTER TABLE t_history ADD COLUMN note text GENERATED ALWAYS AS (operation || '!') STORED$$);
SELECT * FROM try($$ALTER TABLE t_history ALTER writer SET DEFAULT 'somebody'$$);
SELECT * FROM try($$ALTER TABLE t_history ALTER writer SET NOT NULL$$);
SELECT * FROM try($$ALTER TABLE t_history ALTER key DROP NOT NULL$$);
SELECT * FROM try($$ALTER TABLE t_history ALTER id DROP IDENTITY$$);
SELECT * FROM try($$ALTER TABLE t_history ALTER id SET GENERATED BY DEFAULT$$);
SELECT * FROM try($$ALTER TABLE t_history RENAME writer TO author$$);
SELECT * FROM try($$ALTER TABLE t_history ALTER operation TYPE varchar(3)$$);
SELECT * FROM try($$ALTER TABLE t_history ALTER writer TYPE text COLLATE "POSIX"$$);
SELECT * FROM try($$ALTER TABLE t_history ALTER changed_at TYPE timestamptz(0)$$);
SELECT * FROM try($$ALTER TABLE t_history ADD CHECK (operation <> 'delete')$$);
SELECT * FROM try($$CREATE INDEX ON t_history (transaction)$$);
SELECT * FROM try($$DROP INDEX t_history_jsonb_hash_extended_id_idx; CREATE INDEX ON t_history ((jsonb_hash_extended(key, 1)), id)$$);
SELECT * FROM try($$DROP INDEX t_history_jsonb_hash_extended_id_idx; CREATE INDEX ON t_history ((jsonb_hash_extended(row_data, 0)), id)$$);
SELECT * FROM try($$DROP INDEX t_history_jsonb_hash_extended_id_idx; CREATE INDEX ON t_history ((jsonb_hash(key)), id)$$);
SELECT * FROM try($$DROP INDEX t_history_jsonb_hash_extended_id_idx; CREATE UNIQUE INDEX ON t_history ((jsonb_hash_extended(key, 0)), id)$$);
SELECT * FROM try($$DROP INDEX t_history_jsonb_hash_extended_id_idx; CREATE INDEX ON t_history (id, (jsonb_hash_extended(key, 0)))$$);
SELECT * FROM try($$DROP INDEX t_history_jsonb_hash_extended_id_idx; CREATE INDEX ON t_history ((jsonb_hash_extended(key, 0)), id) WHERE operation = 'insert'$$);
SELECT * FROM try($$DROP INDEX t_history_jsonb_hash_extended_id_idx; CREATE INDEX ON t_history USING hash (id)$$);
SELECT * FROM try($$DROP INDEX t_history_jsonb_hash_extended_id_idx; CREATE INDEX ON t_history (command)$$);
SELECT * FROM try($$DROP INDEX t_history_jsonb_hash_extended_id_idx; CREATE UNIQUE INDEX ON t_history (key)$$);
SELECT * FROM try($$ALTER TABLE t_history DROP CONSTRAINT t_history_pkey, ADD PRIMARY KEY (id) DEFERRABLE INITIALLY DEFERRED$$);
SELECT * FROM try($$ALTER TABLE t_history DROP CONSTRAINT t_history_pkey, ADD EXCLUDE USING btree (id WITH =)$$);
SELECT * FROM try($$CREATE FUNCTION quiet() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN NEW.writer = TG_TABLE_NAME; RETURN NEW; END';
    CREATE TRIGGER quiet BEFORE INSERT ON t_history FOR EACH ROW EXECUTE FUNCTION quiet()$$);
SELECT * FROM try($$CREATE RULE other AS ON INSERT TO t_history DO INSTEAD NOTHING$$);
SELECT * FROM try($$ALTER TABLE t_history ALTER id DROP IDENTITY, ALTER id SET DEFAULT 9; CREATE TABLE whole (LIKE t_history) PARTITION BY RANGE (id); ALTER TABLE whole ATTACH PARTITION t_history FOR VALUES FROM (1) TO (5)$$);
-- Who may write
CREATE FUNCTION owned(more text) RETURNS text LANGUAGE sql RETURN 'ALTER TABLE t OWNER TO direct_owner; ALTER TABLE t_history OWNER TO direct_owner; ' || more;
SELECT * FROM try(owned(''));
SELECT * FROM try(owned('REVOKE INSERT ON t_history FROM direct_owner'));
SELECT * FROM try(owned('REVOKE INSERT ON t_history FROM direct_owner; GRANT INSERT ON t_history TO direct_member; GRANT direct_member TO direct_owner'));
SELECT * FROM try(owned('REVOKE INSERT ON t_history FROM direct_owner; GRANT INSERT (key, version, changed_at, writer, changed_by, operation, row_data, changed, before, transaction, command, writer_from, context, builds_on, distance, row_hash) ON t_history TO direct_owner'));
SELECT * FROM try(owned($$DO 'BEGIN EXECUTE ''REVOKE USAGE ON SCHEMA '' || current_schema || '' FROM direct_owner''; END'$$));

-- What changes between two writes of a transaction
CREATE ROLE direct_former;
CREATE FUNCTION own_database(owner text) RETURNS text LANGUAGE sql RETURN format('ALTER DATABASE %I OWNER TO %I', current_database(), owner);
SELECT own_database(current_user) AS back \gset
CREATE FUNCTION then_do(change text) RETURNS text LANGUAGE sql RETURN $$INSERT INTO t VALUES (1, 1, 'one'), (2, 2, 'two'); $$ || change || '; UPDATE t SET id = id + 10';
SELECT * FROM try(owned(''), then_do('REVOKE INSERT ON t_history FROM direct_owner'));
SELECT * FROM try(owned('GRANT direct_member TO direct_owner; REVOKE INSERT ON t_history FROM direct_owner; GRANT INSERT ON t_history TO direct_member'), then_do('REVOKE direct_member FROM direct_owner'));
SELECT * FROM try(owned(''), then_do($$DO 'BEGIN EXECUTE ''REVOKE USAGE ON SCHEMA '' || current_schema || '' FROM direct_owner''; END'$$));
SELECT * FROM try(owned(own_database('direct_owner') || '; REVOKE INSERT ON t_history FROM direct_owner; GRANT INSERT ON t_history TO pg_database_owner'), then_do(own_database('direct_former')));
SELECT * FROM try(owned('ALTER ROLE direct_owner SUPERUSER; REVOKE INSERT ON t_history FROM direct_owner'), then_do('ALTER ROLE direct_owner NOSUPERUSER'));
SELECT * FROM try('', then_do('ALTER TABLE t_history ADD CHECK (operation <> ''update'')'));
SELECT * FROM try('', then_do('CREATE INDEX ON t_history (writer)'));
SELECT * FROM try('', then_do('ALTER TABLE t_history DROP CONSTRAINT t_history_pkey, ADD PRIMARY KEY (id)'));
SELECT * FROM try('', then_do('REINDEX TABLE t_history'));
SELECT * FROM try('', then_do('TRUNCATE t_history RESTART IDENTITY'));
SELECT * FROM try('', then_do('ALTER TABLE t_history ALTER id DROP IDENTITY, ALTER id ADD GENERATED ALWAYS AS IDENTITY (START 100)'));
SELECT * FROM try('', then_do('ALTER TABLE t RENAME b TO longer; ALTER TABLE t ADD COLUMN c int DEFAULT 5; ALTER TABLE t DROP COLUMN a; ALTER TABLE t ADD COLUMN a text'));
SELECT * FROM try('', then_do('CREATE FUNCTION pass() RETURNS trigger LANGUAGE plpgsql AS ''BEGIN RETURN NEW; END''; CREATE TRIGGER pass BEFORE INSERT ON t_history FOR EACH ROW EXECUTE FUNCTION pass()'));
ALTER ROLE direct_owner NOSUPERUSER;
:back;
DROP FUNCTION own_database;
DROP ROLE direct_former;

-- At every level
SET default_transaction_isolation = 'repeatable read';
SELECT * FROM try('');
SET default_transaction_isolation = 'serializable';
SELECT * FROM try('');
RESET default_transaction_isolation;

-- Rows of all kinds of values, with the settings that they print by: as to_jsonb makes them.
DROP SCHEMA ours, twin CASCADE;
CREATE TABLE kinds (id int PRIMARY KEY, s int2, i int4, l int8, n numeric, n2 numeric(10, 4), f4 float4, f8 float8, yes bool, t text, v varchar(20), c char(8),
    "char" "char", name name, d date, ts timestamp, tz timestamptz, ti time, iv interval, u uuid, jb jsonb, js json, ia int[], ta text[], p pair, pa pair[], m mood, sh short, b bytea,
    ip inet, r int4range, "Größe" int, zz int, "a b" int, gone int, g int GENERATED ALWAYS AS (id * 2) STORED, x tsvector);
ALTER TABLE kinds DROP COLUMN gone;
INSERT INTO kinds (id) VALUES (0);
ALTER TABLE kinds ADD COLUMN late text DEFAULT 'later';
SELECT interlock.enable_history('kinds');
INSERT INTO kinds (id, s, i, l, n, n2, f4, f8, yes, t, v, c, "char", name, d, ts, tz, ti, iv, u, jb, js, ia, ta, p, pa, m, sh, b, ip, r, "Größe", zz, "a b", x) VALUES
    (1, -32768, 2147483647, -9223372036854775808, 1.500, 1.5, 0.1, 1e300, true, 'a "b" \ ü', 'v', 'c', 'x', 'some name', '2024-02-29', '2024-02-29 12:34:56.789', '2024-02-29 12:34:56.789+05', '12:34', '1 day 2 s',
     'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', '{"b": [1, {"c": null}], "a": 1.0}', '{"b": 1, "b": 2, "a": [ ]}', '{{1,2},{3,null}}', '{a,NULL}', '(1,x)', '{"(1,x)"}', 'high', 'sh', '\x00ff', '::1', '[1,5)', 1, 2, 3, '<a/>'),
    (2, 0, 0, 0, 'NaN', 0, 'NaN', '-Infinity', false, '', '', '', '', '', 'infinity', '-infinity', 'infinity', '24:00', '-1 mon', '00000000-0000-0000-0000-000000000000', '"scalar"', '17', '{}', '{}', '(,)', '{}', 'low', '', '', '10.0.0.0/8', 'empty', NULL, NULL, NULL, NULL),
    (3, 100, 10000, 100000000, 'Infinity', -0.0001, 0, 0, NULL, repeat('long ', 20000), NULL, NULL, NULL, NULL, '0044-03-15 BC', '0044-03-15 00:00:00 BC', '0044-03-15 00:00:00 BC', NULL, NULL, NULL, 'null', 'null', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
    (4, 1, 10, 1000000000000, 123456789012345678901234567890.000, 12, 1, 1, true, 't', 'v', 'c', 'c', 'n', 'today', 'epoch', 'epoch', '00:00', '0', NULL, '[]', '{}', '{1}', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO kinds (id, n) SELECT g, n FROM unnest('{0.00,100,1000000,-10000,1e-20,1.10,-Infinity}'::numeric[]) WITH ORDINALITY AS x(n, o), LATERAL (SELECT 10 + o) AS y(g);
-- Of the newest entries: how many there are, and how many are to the last byte what to_jsonb says.
CREATE VIEW compared AS
SELECT count(*) AS entries, count(*) FILTER (WHERE h.row_data = to_jsonb(k) AND h.row_data::text = to_jsonb(k)::text
    AND pg_column_size(h.row_data || '{}') = pg_column_size(to_jsonb(k) || '{}') AND pg_column_size(h.row_data->'n') = pg_column_size(to_jsonb(k)->'n')) AS equal
FROM kinds k CROSS JOIN LATERAL (SELECT * FROM kinds_history h WHERE h.key = jsonb_build_object('id', k.id) ORDER BY h.id DESC LIMIT 1) h;
SET datestyle = 'ISO, MDY'; -- as entries have it
SET intervalstyle = postgres;
TABLE compared;
SET datestyle = 'SQL, DMY';
SET intervalstyle = iso_8601;
SET extra_float_digits = 0;
SET bytea_output = escape;
UPDATE kinds SET late = 'now', f8 = f8 + 1.0 / 3.0;
SET datestyle = 'ISO, MDY';
SET intervalstyle = postgres;
RESET extra_float_digits;
RESET bytea_output;
TABLE compared;
SELECT changed, before, count(*) FROM kinds_history WHERE operation = 'update' GROUP BY 1, 2 ORDER BY 1, 2;

-- What the owner of the history puts into an index is not called with the rights of who writes
CREATE SCHEMA direct_own AUTHORIZATION direct_owner;
SET ROLE direct_owner;
CREATE TABLE direct_own.t (id int PRIMARY KEY);
SELECT interlock.enable_history('direct_own.t');
CREATE FUNCTION direct_own.planned(int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS $$
BEGIN IF current_user <> 'direct_owner' THEN RAISE WARNING 'planned by %', current_user; END IF; RETURN 1; END $$;
SELECT indexrelid::regclass AS of_keys FROM pg_index WHERE indrelid = 'direct_own.t_history'::regclass AND NOT indisprimary \gset
DROP INDEX :of_keys;
CREATE INDEX ON direct_own.t_history (direct_own.planned(7));
RESET ROLE;
\c
INSERT INTO direct_own.t VALUES (1);
SELECT operation, changed_by = current_user AS by_me FROM direct_own.t_history;
SET client_min_messages = warning;
DROP SCHEMA direct_own CASCADE;

DROP VIEW compared;
DROP TABLE kinds, kinds_history;
DROP FUNCTION try, owned, then_do, make_table, effect;
DROP TYPE mood, pair;
DROP DOMAIN short;
DROP ROLE direct_owner, direct_member;
