-- Versioned rows: bad input, privileges, row security, protection that is off
\set VERBOSITY verbose
\set SHOW_CONTEXT never
\pset null '(null)'
CREATE TABLE t (id int PRIMARY KEY, a int, gen int GENERATED ALWAYS AS (a * 2) STORED, ident int GENERATED ALWAYS AS IDENTITY, version bigint);
INSERT INTO t (id, a) VALUES (1, 1);
\set VERBOSITY sqlstate
-- tables that cannot be versioned
CREATE VIEW v AS SELECT * FROM t;
CREATE MATERIALIZED VIEW mv AS SELECT * FROM t;
CREATE FOREIGN DATA WRAPPER nothing;
CREATE SERVER nowhere FOREIGN DATA WRAPPER nothing;
CREATE FOREIGN TABLE ft (id int) SERVER nowhere;
SELECT interlock.enable_versioning('v');
SELECT interlock.enable_versioning('mv');
SELECT interlock.enable_versioning('ft');
SELECT interlock.enable_versioning('t_pkey');
SELECT interlock.enable_versioning('pg_class');
SELECT interlock.enable_versioning('information_schema.sql_features');
SELECT interlock.enable_versioning(987654321);
SELECT interlock.enable_versioning(NULL);
SELECT interlock.versioned_update('v', 1, 1, '{"a": 2}');
SELECT interlock.versioned_update('ft', 1, 1, '{"a": 2}');
SELECT interlock.versioned_update('pg_class', 1, 1, '{"a": 2}');
SELECT interlock.versioned_update(987654321, 1, 1, '{"a": 2}');
-- columns that cannot be the version, or ignored
SELECT interlock.enable_versioning('t', 'id');
SELECT interlock.enable_versioning('t', 'gen');
SELECT interlock.enable_versioning('t', 'ident');
SELECT interlock.enable_versioning('t', NULL);
ALTER TABLE t ADD name text;
SELECT interlock.enable_versioning('t', 'name');
SELECT interlock.enable_versioning('t', ignore_columns => '{nowhere}');
SELECT interlock.enable_versioning('t', ignore_columns => '{version}');
SELECT interlock.enable_versioning('t', ignore_columns => '{NULL}');
SELECT interlock.enable_versioning('t', ignore_columns => NULL);
SELECT interlock.versioned_update('t', 1, 1, '{"a": 2}');
SELECT interlock.enable_versioning('t');
SELECT interlock.enable_versioning('t', 'a');
SELECT interlock.disable_versioning('v');
-- nothing has happened to the row
SELECT * FROM t;

-- arguments
SELECT interlock.versioned_update(NULL, 1, 1, '{"a": 2}');
SELECT interlock.versioned_update('t', NULL, 1, '{"a": 2}');
SELECT interlock.versioned_update('t', NULL::int, 1, '{"a": 2}');
SELECT interlock.versioned_update('t', 1, NULL::bigint, '{"a": 2}');
SELECT interlock.versioned_update('t', 1, 0, NULL);
SELECT interlock.versioned_update('t', 1, 0, '[]');
SELECT interlock.versioned_update('t', 1, 0, '5');
SELECT interlock.versioned_update('t', 1, 0, '{"nowhere": 2}');
SELECT interlock.versioned_update('t', 1, 0, '{"ctid": "(0,1)"}');
SELECT interlock.versioned_update('t', 1, 0, '{"id": 2}');
SELECT interlock.versioned_update('t', 1, 0, '{"version": 2}');
SELECT interlock.versioned_update('t', 1, 0, '{"gen": 2}');
SELECT interlock.versioned_update('t', 1, 0, '{"ident": 2}');
SELECT interlock.versioned_update('t', 1, 0, '{"a": 1.5}');
SELECT interlock.versioned_update('t', 1, 0, '{"a": 3000000000}');
SELECT interlock.versioned_update('t', 1, 0, '{"a": {}}');
SELECT interlock.versioned_update('t', 1, 'one', '{"a": 2}');
SELECT interlock.versioned_update('t', 1, '2026-01-01'::timestamptz, '{"a": 2}');
SELECT interlock.versioned_update('t', 1, 0, jsonb_build_object(repeat('x', 1000000), 1));
SELECT interlock.versioned_update('t', repeat('1', 1000000), 0, '{"a": 2}');
SELECT interlock.versioned_update('t', 1, 0, '{"a": 2}') FROM generate_series(1, 2);
SELECT interlock.try_versioned_update('t', 1, 0, '{"a": 2}', on_conflict => NULL);
SELECT interlock.versioned_update_many('t', '{}');
SELECT interlock.versioned_update_many('t', '5');
SELECT interlock.versioned_update_many('t', NULL);
SELECT interlock.versioned_update_many('t', '[5]');
SELECT interlock.versioned_update_many('t', '[{"key": 1}]');
SELECT interlock.versioned_update_many('t', '[{"key": 1, "version": null, "changes": {}}]');
SELECT interlock.versioned_update_many('t', '[{"key": 1, "version": {}, "changes": {}}]');
SELECT interlock.versioned_update_many('t', '[{"key": 1, "version": "x", "changes": {}}]');
SELECT interlock.versioned_update_many('t', '[{"key": 1, "version": 0, "changes": []}]');
SELECT interlock.versioned_update_many('t', '[{"key": null, "version": 0, "changes": {}}]');
SELECT interlock.versioned_update_many('t', '[]', NULL);
CREATE FUNCTION wrong(a jsonb) RETURNS jsonb LANGUAGE sql AS 'SELECT a';
CREATE FUNCTION fails(a jsonb, b jsonb) RETURNS jsonb LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION USING ERRCODE = 'XX123'; END $$;
CREATE FUNCTION no_object(a jsonb, b jsonb) RETURNS jsonb LANGUAGE sql AS $$ SELECT '[1]'::jsonb $$;
SELECT interlock.update_with_retry('t', 1, 'wrong(jsonb)');
SELECT interlock.update_with_retry('t', 1, 'fails(jsonb, jsonb)');
SELECT interlock.update_with_retry('t', 1, 'no_object(jsonb, jsonb)');
SELECT interlock.update_with_retry('t', 1, 'interlock.first_version(text)');
SELECT interlock.update_with_retry('t', 1, 987654321);
SELECT interlock.update_with_retry('t', 1, 'fails(jsonb, jsonb)', NULL);
SELECT interlock.update_with_retry('t', 1, 'fails(jsonb, jsonb)', max_retries => -1);
-- triggers called by hand, or attached in another way
SELECT interlock_internal.version_trigger();
CREATE TABLE odd (id int PRIMARY KEY);
CREATE TRIGGER after_row AFTER UPDATE ON odd FOR EACH ROW EXECUTE FUNCTION interlock_internal.version_trigger('version', 'allow', 'move');
CREATE TRIGGER no_argument BEFORE INSERT ON odd FOR EACH ROW EXECUTE FUNCTION interlock_internal.version_trigger();
INSERT INTO odd VALUES (1);
DROP TRIGGER no_argument ON odd;
INSERT INTO odd VALUES (1);
UPDATE odd SET id = 2;
SELECT interlock.first_version('public.t_pkey');
SELECT interlock.first_version(NULL);
-- a table without a key is versioned for every writer, but no function can name its rows
CREATE TABLE keyless (a int);
INSERT INTO keyless VALUES (1);
SELECT interlock.enable_versioning('keyless');
UPDATE keyless SET a = 2 RETURNING version;
UPDATE keyless SET version = 9;
SELECT interlock.versioned_update('keyless', 1, 1, '{"a": 2}');
CREATE UNIQUE INDEX ON keyless (a) WHERE a > 0;
SELECT interlock.versioned_update('keyless', 1, 1, '{"a": 2}');
CREATE UNIQUE INDEX ON keyless (a);
SELECT interlock.versioned_update('keyless', 2, 2, '{"version": 2}');
ALTER TABLE keyless ALTER a SET NOT NULL;
SELECT interlock.versioned_update('keyless', 2, 2, '{}');
-- a read-only transaction, and a prepared one
BEGIN READ ONLY;
SELECT interlock.versioned_update('t', 1, 0, '{"a": 9}');
ROLLBACK;
-- 1,600 columns, and a value of a megabyte
DO $$ BEGIN
    EXECUTE 'CREATE TABLE wide (id int PRIMARY KEY, ' || (SELECT string_agg('c' || g || ' int', ', ') FROM generate_series(1, 1598) g) || ')';
    PERFORM interlock.enable_versioning('wide');
END $$;
INSERT INTO wide (id) VALUES (1);
SELECT interlock.versioned_update('wide', 1, 1, (SELECT jsonb_object_agg('c' || g, 1) FROM generate_series(1, 1000) g));
SELECT outcome, (SELECT count(*) FROM jsonb_object_keys(current)) FROM interlock.try_versioned_update('wide', 1, 1, '{"c1598": 2}');
CREATE TABLE heavy (id int PRIMARY KEY, body text);
SELECT interlock.enable_versioning('heavy');
INSERT INTO heavy VALUES (1, '');
SELECT interlock.versioned_update('heavy', 1, 1, jsonb_build_object('body', repeat('x', 1048576)));
SELECT outcome, length(current->>'body') FROM interlock.try_versioned_update('heavy', 1, 1, '{"body": ""}');

-- privileges are those of the UPDATE by hand (C14)
CREATE ROLE interlock_owner;
CREATE ROLE interlock_writer;
CREATE TABLE owned (id int PRIMARY KEY, a int, secret int);
INSERT INTO owned VALUES (1, 1, 42);
SET ROLE interlock_writer;
SELECT interlock.enable_versioning('owned');
SELECT interlock.disable_versioning('owned');
RESET ROLE;
GRANT CREATE ON SCHEMA public TO interlock_owner;
ALTER TABLE owned OWNER TO interlock_owner;
SET ROLE interlock_owner;
SELECT interlock.enable_versioning('owned');
SET ROLE interlock_writer;
SELECT interlock.versioned_update('owned', 1, 1, '{"a": 2}');
RESET ROLE;
GRANT SELECT (id, a, version), UPDATE (a) ON owned TO interlock_writer;
SET ROLE interlock_writer;
SELECT interlock.versioned_update('owned', 1, 1, '{"a": 2}');
SELECT interlock.versioned_update('owned', 1, 2, '{"secret": 2}');
SELECT * FROM interlock.try_versioned_update('owned', 1, 1, '{"a": 3}');
SELECT interlock.versioned_update('owned', 1, 2, '{}');
SELECT interlock.try_versioned_update('owned', 1, 1, '{"secret": 1}', '{"secret": 42}', 'merge');
SELECT interlock.versioned_delete('owned', 1, 2);
RESET ROLE;
REVOKE EXECUTE ON FUNCTION no_object(jsonb, jsonb) FROM PUBLIC;
SET ROLE interlock_writer;
SELECT interlock.update_with_retry('owned', 1, 'no_object(jsonb, jsonb)');
-- a writer without any right on the sequence deletes and inserts, and the start holds (VER-19)
RESET ROLE;
GRANT SELECT, INSERT, DELETE ON owned TO interlock_writer;
SET ROLE interlock_writer;
DELETE FROM owned;
INSERT INTO owned VALUES (1, 1, 1) RETURNING version;
RESET ROLE;
-- row security: hidden rows are no rows, rows that may be seen but not written are refused
GRANT UPDATE ON owned TO interlock_writer;
ALTER TABLE owned ENABLE ROW LEVEL SECURITY;
INSERT INTO owned VALUES (2, 2, 2), (3, 3, 3);
CREATE POLICY see ON owned FOR SELECT USING (a <> 2);
CREATE POLICY write ON owned FOR UPDATE USING (a <> 3) WITH CHECK (a <> 100);
SET ROLE interlock_writer;
SELECT version AS v FROM owned WHERE id = 1 \gset
SELECT interlock.versioned_update('owned', 1, :v, '{"a": 5}') = :v + 1;
SELECT interlock.versioned_update('owned', 1, :v + 1, '{"a": 100}');
SELECT outcome FROM interlock.try_versioned_update('owned', 2, :v, '{"a": 5}');
SELECT interlock.versioned_update('owned', 3, :v, '{"a": 5}');
SELECT outcome FROM interlock.try_versioned_update('owned', 3, 99, '{"a": 5}');
RESET ROLE;
-- a trigger that suppresses the write
CREATE FUNCTION suppress() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';
CREATE TRIGGER suppress BEFORE UPDATE ON heavy FOR EACH ROW EXECUTE FUNCTION suppress();
SELECT interlock.versioned_update('heavy', 1, 2, '{"body": ""}');
DROP TRIGGER suppress ON heavy;

-- protection that is off is reported, and the functions refuse to work on it (VER-16, C11)
SELECT rel, finding FROM interlock.advise();
ALTER TABLE heavy DISABLE TRIGGER zzz_interlock_version;
ALTER TABLE wide ENABLE REPLICA TRIGGER zzz_interlock_version;
CREATE TRIGGER zzzz_late BEFORE UPDATE ON owned FOR EACH ROW EXECUTE FUNCTION suppress();
CREATE TABLE heir () INHERITS (keyless);
SELECT rel, finding FROM interlock.advise() ORDER BY 1, 2;
SELECT interlock.versioned_update('heavy', 1, 2, '{"body": ""}');
SET session_replication_role = replica;
SELECT rel, finding FROM interlock.advise() WHERE rel = 't'::regclass;
UPDATE t SET a = 7 WHERE id = 1 RETURNING version;
SELECT interlock.versioned_update('t', 1, 2, '{"a": 2}');
RESET session_replication_role;
ALTER TABLE t ENABLE ALWAYS TRIGGER zzz_interlock_version;
SET session_replication_role = replica;
UPDATE t SET a = 8 WHERE id = 1 RETURNING version;
SELECT finding FROM interlock.advise() WHERE rel = 't'::regclass;
RESET session_replication_role;

DROP TABLE heir;
DROP TABLE t, odd, keyless, wide, heavy, owned CASCADE;
DROP FOREIGN DATA WRAPPER nothing CASCADE;
DROP FUNCTION wrong, fails, no_object, suppress;
REVOKE CREATE ON SCHEMA public FROM interlock_owner;
DROP ROLE interlock_owner, interlock_writer;
-- a rule that leaves no query, or one of no table
CREATE TABLE ruled (id int PRIMARY KEY, a int);
SELECT interlock.enable_versioning('ruled');
INSERT INTO ruled VALUES (1, 1);
CREATE RULE nothing AS ON UPDATE TO ruled DO INSTEAD NOTHING;
CREATE RULE notifies AS ON DELETE TO ruled DO INSTEAD NOTIFY ruled;
SELECT interlock.try_versioned_update('ruled', 1, 1::bigint, '{"a": 2}');
SELECT interlock.try_versioned_delete('ruled', 1, 1::bigint);
DROP RULE notifies ON ruled;
SELECT outcome FROM interlock.try_versioned_delete('ruled', 1, 1::bigint);
INSERT INTO ruled VALUES (2, 1);
CREATE RULE nothing_deleted AS ON DELETE TO ruled DO INSTEAD NOTHING;
SELECT outcome FROM interlock.try_versioned_delete('ruled', 2, 2::bigint);
DROP RULE nothing_deleted ON ruled;
SELECT outcome FROM interlock.try_versioned_delete('ruled', 2, 2::bigint);
-- rules whose actions begin with another table
DROP RULE nothing ON ruled;
CREATE TABLE rule_log (id int, a int);
CREATE RULE logs AS ON UPDATE TO ruled DO ALSO INSERT INTO rule_log SELECT NEW.id, NEW.a;
INSERT INTO ruled VALUES (3, 1);
SELECT interlock.versioned_update('ruled', 3, 3::bigint, '{"a": 2}');
CREATE RULE kept AS ON DELETE TO ruled DO INSTEAD INSERT INTO rule_log SELECT OLD.id, -1;
SELECT interlock.try_versioned_delete('ruled', 3, 4::bigint);
CREATE RULE logs_constants AS ON UPDATE TO ruled DO ALSO INSERT INTO rule_log SELECT 0, 0;
SELECT interlock.versioned_update('ruled', 3, 4::bigint, '{"a": 3}');
SELECT * FROM rule_log ORDER BY id, a;
DROP TABLE ruled, rule_log;
