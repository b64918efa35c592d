-- Demanding a lease: whoever writes a row must have asserted the lease for it
\set VERBOSITY terse
\set SHOW_CONTEXT never
CREATE TABLE doc (id int PRIMARY KEY, body text, seen int DEFAULT 0);
INSERT INTO doc SELECT g, 'old' FROM generate_series(1, 9) g;
SELECT interlock.require_lease('doc');
SELECT regexp_replace(pg_get_triggerdef(oid), '_[0-9a-f]{16} ', '_(hash) ') AS trigger FROM pg_trigger WHERE tgrelid = 'doc'::regclass;

-- hold('a', 'b') asserts leases on them, drop_leases() gives all back; attempt(sql) runs a statement, and undoes what it did
CREATE FUNCTION hold(VARIADIC keys text[]) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    k text;
    t bigint;
BEGIN
    FOREACH k IN ARRAY keys LOOP
        SELECT token INTO t FROM interlock.leases l WHERE l.key = k;
        IF NOT FOUND THEN
            SELECT token INTO t FROM interlock.acquire_lease(k, '1 hour');
        END IF;
        PERFORM interlock.assert_lease(k, t);
    END LOOP;
END $$;
CREATE FUNCTION drop_leases() RETURNS bigint LANGUAGE sql AS $$
    WITH held AS MATERIALIZED (SELECT key, token FROM interlock.leases WHERE token IS NOT NULL)
    SELECT count(*) FROM held WHERE interlock.release_lease(key, token) $$;
CREATE FUNCTION attempt(command text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE n bigint;
BEGIN
    EXECUTE command;
    GET DIAGNOSTICS n = ROW_COUNT;
    RAISE SQLSTATE 'UNDO0' USING MESSAGE = format('%s written', n);
EXCEPTION
    WHEN SQLSTATE 'UNDO0' THEN RETURN SQLERRM;
    WHEN OTHERS THEN RETURN SQLSTATE || ' ' || SQLERRM;
END $$;

-- every kind of write, without and with
CREATE TABLE way (n serial, command text);
INSERT INTO way (command) VALUES
    ('INSERT INTO doc VALUES (10)'), ('INSERT INTO doc VALUES (1) ON CONFLICT DO NOTHING'),
    ('INSERT INTO doc VALUES (1) ON CONFLICT (id) DO UPDATE SET body = ''new'''),
    ('UPDATE doc SET body = ''new'' WHERE id = 1'), ('UPDATE doc SET body = body WHERE id = 1'), ('UPDATE doc SET id = 10 WHERE id = 1'),
    ('UPDATE doc SET id = 10 WHERE id = 2'), ('DELETE FROM doc WHERE id = 1'), ('SELECT FROM doc WHERE id = 1 FOR UPDATE'),
    ('MERGE INTO doc USING (VALUES (1)) v (id) ON doc.id = v.id WHEN MATCHED THEN UPDATE SET body = ''m'''),
    ('MERGE INTO doc USING (VALUES (1)) v (id) ON doc.id = v.id WHEN MATCHED THEN DELETE'),
    ('MERGE INTO doc USING (VALUES (10)) v (id) ON doc.id = v.id WHEN NOT MATCHED THEN INSERT VALUES (v.id)'),
    ('WITH w AS (UPDATE doc SET body = ''w'' WHERE id = 1) SELECT 1'), ('TRUNCATE doc');
SELECT n, command, attempt(command) FROM way ORDER BY n;
BEGIN; SELECT hold('doc:1'); SELECT n, attempt(command) FROM way ORDER BY n; ROLLBACK;
BEGIN; SELECT hold('doc:10'); SELECT n, attempt(command) FROM way ORDER BY n; ROLLBACK;
BEGIN; SELECT hold('doc:1', 'doc:10'); SELECT n, attempt(command) FROM way ORDER BY n; ROLLBACK;
BEGIN; SELECT hold('doc'); SELECT attempt('UPDATE doc SET body = ''x'' WHERE id = 1'); ROLLBACK;
SELECT drop_leases();
COPY doc FROM stdin;
10	x	0
\.
\set VERBOSITY default
UPDATE doc SET body = 'new' WHERE id = 2;
\set VERBOSITY terse
-- one row of several without it undoes the statement
BEGIN;
SELECT hold('doc:1', 'doc:2');
UPDATE doc SET body = 'new' WHERE id <= 2;
SAVEPOINT s;
UPDATE doc SET body = 'newer' WHERE id <= 3;
ROLLBACK TO s;
COMMIT;
SELECT id, body FROM doc WHERE id <= 3 ORDER BY id;

-- held, but not asserted; how, and for how long
SELECT attempt('UPDATE doc SET body = ''x'' WHERE id = 1') AS not_asserted;
SELECT drop_leases();
BEGIN;
SELECT hold('doc:1');
SELECT drop_leases();
SELECT attempt('UPDATE doc SET body = ''x'' WHERE id = 1') AS released;
ROLLBACK;
BEGIN;
SELECT interlock.assert_lease('doc:1', token) FROM interlock.acquire_lease('doc:1', mode => 'shared');
SELECT attempt('UPDATE doc SET body = ''x'' WHERE id = 1') AS shared;
SELECT interlock.assert_lease('doc:2', token) FROM interlock.acquire_permit('doc:2', 1);
SELECT attempt('UPDATE doc SET body = ''x'' WHERE id = 2') AS permit;
SELECT drop_leases();
ROLLBACK;
BEGIN;
SELECT interlock.assert_lease('doc:1', token) FROM interlock.acquire_lease('doc:1', '0.2 s');
SELECT pg_sleep(0.3);
SELECT outcome FROM interlock.acquire_lease('doc:1');
SELECT attempt('UPDATE doc SET body = ''x'' WHERE id = 1') AS expired;
ROLLBACK;
BEGIN;
SAVEPOINT s;
SELECT hold('doc:1');
ROLLBACK TO s;
SELECT attempt('UPDATE doc SET body = ''x'' WHERE id = 1') AS asserted_in_a_savepoint;
ROLLBACK;
SELECT drop_leases();
-- asserted by the very statement that writes
WITH l AS (SELECT interlock.assert_lease('doc:1', token) FROM interlock.acquire_lease('doc:1', '1 min'))
UPDATE doc SET body = 'one statement' FROM l WHERE id = 1 RETURNING id, body;
SELECT drop_leases();

-- only some columns
SELECT interlock.require_lease('doc', columns => '{body}');
SELECT regexp_replace(pg_get_triggerdef(oid), '_[0-9a-f]{16} ', '_(hash) ') AS trigger FROM pg_trigger WHERE tgrelid = 'doc'::regclass;
SELECT command, attempt(command) FROM (VALUES
    ('UPDATE doc SET seen = 1'), ('UPDATE doc SET seen = 1, body = body'), ('UPDATE doc SET seen = 1, body = ''x'' WHERE id = 1'),
    ('UPDATE doc SET body = NULL WHERE id = 1'), ('UPDATE doc SET id = 10 WHERE id = 1'), ('INSERT INTO doc (id) VALUES (10)'),
    ('DELETE FROM doc WHERE id = 1')) v (command);

-- several at once; the same again replaces one
SELECT interlock.require_lease('doc', 'doc seen', '{seen}');
SELECT interlock.require_lease('doc', 'doc/{id}/body', '{body,seen}');
SELECT interlock.require_lease('doc', 'doc/{id}/body', '{body}');
SELECT count(*), count(DISTINCT tgname), bool_and(tgname ~ '^zzz_interlock_lease_[0-9a-f]{16}$'), bool_and(tgname < 'zzz_interlock_marker')
  FROM pg_trigger WHERE tgrelid = 'doc'::regclass;
BEGIN;
SELECT hold('doc:1', 'doc/1');
SELECT attempt('UPDATE doc SET body = ''x'' WHERE id = 1');
SELECT attempt('UPDATE doc SET seen = 1 WHERE id = 1');
SELECT hold('doc seen');
SELECT attempt('UPDATE doc SET seen = 1');
ROLLBACK;
SELECT drop_leases();
SELECT interlock.unrequire_lease('doc');
SELECT interlock.unrequire_lease('doc', 'doc seen');
SELECT interlock.unrequire_lease('doc', 'doc seen');
SELECT interlock.unrequire_lease('doc', 'doc:{id}');
SELECT attempt('UPDATE doc SET body = ''x'' WHERE id = 1');
SELECT interlock.unrequire_lease('doc');
SELECT attempt('UPDATE doc SET body = ''x''');
SELECT interlock.unrequire_lease('doc');
-- a trigger renamed by hand is found again; one of another making is not replaced
SELECT interlock.require_lease('doc', 'all');
SELECT tgname AS made FROM pg_trigger WHERE tgrelid = 'doc'::regclass \gset
ALTER TRIGGER :made ON doc RENAME TO mine;
SELECT interlock.require_lease('doc', 'all', '{seen}');
SELECT regexp_replace(pg_get_triggerdef(oid), '_[0-9a-f]{16} ', '_(hash) ') AS trigger FROM pg_trigger WHERE tgrelid = 'doc'::regclass;
SELECT interlock.unrequire_lease('doc', 'all');
CREATE TRIGGER :made BEFORE UPDATE ON doc FOR EACH ROW EXECUTE FUNCTION suppress_redundant_updates_trigger();
SELECT regexp_replace(attempt('SELECT interlock.require_lease(''doc'', ''all'')'), '_[0-9a-f]{16}', '_(hash)') AS attempt;
DROP TRIGGER :made ON doc;

-- a key without braces is one lease for all rows: a column behind a separator was perhaps to be in some
\set VERBOSITY default
SELECT interlock.require_lease('doc', 'doc:id');
SELECT interlock.unrequire_lease('doc', 'doc:id'), interlock.require_lease('doc', 'doc:{id}');
SELECT interlock.unrequire_lease('doc', 'doc:{id}');
CREATE TEMP TABLE "It's" (tenant int, "Id" int);
SELECT interlock.require_lease('"It''s"', 'x/tenant/of:Id:"Id"');
\set VERBOSITY terse
SELECT key, attempt(format('SELECT interlock.require_lease(%L, %L)', 'doc', key))
  FROM unnest(ARRAY['doc', 'id', 'doc:ids', 'doc:i', 'doc:ID', 'doc:ctid', 'doc:{id}/seen']) key;

-- templates: braces, levels, columns, types
CREATE TYPE color AS ENUM ('red', 'dark red');
CREATE DOMAIN code AS varchar(20);
CREATE TABLE kinds (i2 smallint, i8 bigint, n numeric, t text, v varchar, c char(3), d code, b bool, u uuid, e color, day date, ts timestamp, tz timestamptz,
    f float8, i interval, j jsonb, a int[], by bytea, r regclass, m money, ip inet, "Up {x}" int, g text GENERATED ALWAYS AS (t || '!') STORED);
CREATE FUNCTION try_require(key text, columns name[] = NULL) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    PERFORM interlock.require_lease('kinds', key, columns);
    PERFORM interlock.unrequire_lease('kinds', key);
    RETURN 'fine';
EXCEPTION WHEN OTHERS THEN
    RETURN SQLSTATE || ' ' || SQLERRM;
END $$;
SELECT left(key, 12) AS key, length(key), try_require(key) FROM unnest(ARRAY['k', 'a:{t}', '{t}', '{t}{v}', '{t}/{v}', '{{t}}', '{{{t}}}', '{{}}{t}{{',
    '', '{', '}', '{t', 't}', '{}', '{t}}', '{{t}', '{t{v}', '{t/v}', '/', '/a', 'a/', 'a//b', '/{t}', '{t}/', '{t}//{v}', '{nope}', '{T}', '{ t }', '{ctid}',
    '{Up {x}}', repeat('x', 1023) || '{t}', repeat('x', 1024) || '{t}', repeat('a/', 63) || '{t}', repeat('a/', 64) || '{t}']) key;
SELECT attname, try_require('{' || attname || '}') FROM pg_attribute WHERE attrelid = 'kinds'::regclass AND attnum > 0 ORDER BY attnum;
SELECT columns, try_require('k', columns) FROM unnest(ARRAY['{f,j,"Up {x}"}', '{}', '{NULL}', '{nope}', '{t,ctid}']) c, LATERAL (SELECT c::name[]) s (columns);
\set VERBOSITY default
SELECT interlock.require_lease('kinds', 'x:{');
SELECT interlock.require_lease('kinds', 'x:{f}');
SELECT interlock.require_lease('kinds');
\set VERBOSITY terse
-- nor what is computed on reading, where the server has such columns
DO $$
BEGIN
    IF current_setting('server_version_num')::int < 180000 THEN RETURN; END IF;
    EXECUTE 'ALTER TABLE kinds ADD COLUMN virtual text GENERATED ALWAYS AS (t || ''!'') VIRTUAL';
    ASSERT try_require('{virtual}') ~ '^428C9 .* virtual generated column', try_require('{virtual}');
    ASSERT try_require('k', '{t,virtual}') ~ '^428C9 .* virtual generated column', try_require('k', '{t,virtual}');
    ALTER TABLE kinds DROP COLUMN virtual;
END $$;
-- values print the same whatever the session's settings
SELECT interlock.require_lease('kinds', '{{{i2}|{i8}|{n}|{t}|{v}|{c}|{d}|{b}|{u}|{e}|{day}|{ts}|{tz}|{g}}}');
SET DateStyle = 'SQL, DMY';
SET TimeZone = 'Asia/Kolkata';
INSERT INTO kinds VALUES (1, -2, 3.50, 't', ' v ', 'c', 'd', true, '00000000-0000-0000-0000-00000000000A', 'dark red', '2001-02-03', '2001-02-03 04:05:06.789', '2001-02-03 04:05:06+00');
INSERT INTO kinds VALUES (1, -2, 'NaN', '', '', '', '', false, '00000000-0000-0000-0000-00000000000A', 'red', 'infinity', '0044-03-15 BC', '-infinity');
RESET DateStyle;
RESET TimeZone;
-- a row that cannot have a lease
SELECT interlock.unrequire_lease('kinds');
SELECT interlock.require_lease('kinds', 'k:{t}/{v}');
SELECT t, v, attempt(format('INSERT INTO kinds (t, v) VALUES (%L, %L)', t, v)) FROM (VALUES
    ('a', 'b'), ('', 'b'), ('a', ''), ('a', NULL), (NULL, 'b'), ('a/b', 'c'), ('a', '/'), ('a', '..')) x (t, v);
INSERT INTO kinds (t, v) VALUES ('a', repeat('x', 1025));
INSERT INTO kinds (t, v) VALUES ('a', repeat('x', 1024));
BEGIN; SELECT hold('k:a'); INSERT INTO kinds (t, v) VALUES ('a', 'b'); INSERT INTO kinds (t, v) VALUES ('a', 'b/c'); ROLLBACK;
-- a slash in a value is no level: what is above the key guards the row, what only looks like it does not
BEGIN; SELECT hold('k:' || interlock.key_path('a/b', 'c%')); INSERT INTO kinds (t, v) VALUES ('a/b', 'c%'); ROLLBACK;
BEGIN; SELECT hold('k:x/b'); INSERT INTO kinds (t, v) VALUES ('x/b', 'c'); ROLLBACK;
BEGIN; SELECT hold('k:a'); INSERT INTO kinds (t, v) VALUES ('a:b', 'b'); ROLLBACK;
SELECT drop_leases();
DROP TABLE kinds;

-- what other triggers and generated columns make of the row is what counts
CREATE TABLE made (id int, k text, g text GENERATED ALWAYS AS (k || '!') STORED, v int);
CREATE FUNCTION change() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.k := 'changed'; RETURN NEW; END $$;
SELECT interlock.require_lease('made', 'made:{k}');
SELECT interlock.require_lease('made', 'generated:{g}', '{g}');
CREATE TRIGGER zzzz BEFORE INSERT OR UPDATE ON made FOR EACH ROW EXECUTE FUNCTION change();
BEGIN;
SELECT hold('made:a', 'generated:a!');
SELECT attempt('INSERT INTO made VALUES (1, ''a'')');
SELECT hold('made:changed');
SELECT attempt('INSERT INTO made VALUES (1, ''a'')');
SELECT hold('generated:changed!');
SELECT attempt('INSERT INTO made VALUES (1, ''a'')');
ALTER TABLE made DISABLE TRIGGER zzzz;
INSERT INTO made VALUES (1, 'a');
COMMIT;
SELECT attempt('UPDATE made SET v = 1');
BEGIN; SELECT hold('made:a'); SELECT attempt('UPDATE made SET v = 1'); SELECT attempt('UPDATE made SET k = ''b'''); SELECT hold('made:b');
SELECT attempt('UPDATE made SET k = ''b'''); SELECT hold('generated:a!'); SELECT attempt('UPDATE made SET k = ''b'''); ROLLBACK;
SELECT drop_leases();
DROP TABLE made;
-- and one that suppresses the write needs no lease
CREATE FUNCTION suppress() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';
SELECT interlock.require_lease('doc');
CREATE TRIGGER zzzz BEFORE UPDATE ON doc FOR EACH ROW EXECUTE FUNCTION suppress();
SELECT attempt('UPDATE doc SET body = ''x''');
DROP TRIGGER zzzz ON doc;

-- cascades need the leases of the rows they reach
CREATE TABLE line (doc int REFERENCES doc ON DELETE CASCADE ON UPDATE CASCADE, n int, PRIMARY KEY (doc, n));
INSERT INTO line VALUES (1, 1), (1, 2);
SELECT interlock.require_lease('line');
BEGIN;
SELECT hold('doc:1', 'doc:10');
SELECT attempt('DELETE FROM doc WHERE id = 1');
SELECT attempt('UPDATE doc SET id = 10 WHERE id = 1');
SELECT hold('line:1:1', 'line:1:2');
SELECT attempt('DELETE FROM doc WHERE id = 1');
SELECT attempt('UPDATE doc SET id = 10 WHERE id = 1');
SELECT hold('line:10:1', 'line:10:2');
SELECT attempt('UPDATE doc SET id = 10 WHERE id = 1');
ROLLBACK;
SELECT drop_leases();
DROP TABLE line;

-- not for what does not fire triggers
SET session_replication_role = replica;
SELECT attempt('UPDATE doc SET body = ''x''');
RESET session_replication_role;
-- together with the other concepts: their functions are writers, too
SELECT interlock.enable_versioning('doc'), interlock.enable_marker('doc');
SELECT attempt($$SELECT interlock.versioned_update('doc', 1, 1, '{"body": "x"}')$$), attempt($$SELECT interlock.lock_row('doc', 1, 'anna')$$);
BEGIN;
SELECT hold('doc:1');
SELECT attempt($$SELECT interlock.versioned_update('doc', 1, 1, '{"body": "x"}')$$), attempt($$SELECT interlock.lock_row('doc', 1, 'anna')$$);
ROLLBACK;
SELECT interlock.require_lease('doc', columns => '{body}');
SELECT attempt($$SELECT interlock.versioned_update('doc', 1, 1, '{"body": "x"}')$$), attempt($$SELECT interlock.lock_row('doc', 1, 'anna')$$);
SELECT drop_leases();

-- renamed, dropped, of another type: it fails closed, until it is named anew
ALTER TABLE doc RENAME body TO text;
SELECT attempt('UPDATE doc SET seen = 1');
\set VERBOSITY default
DELETE FROM doc;
\set VERBOSITY terse
ALTER TABLE doc RENAME text TO body;
ALTER TABLE doc RENAME id TO number;
SELECT attempt('DELETE FROM doc');
SELECT interlock.unrequire_lease('doc');
SELECT interlock.require_lease('doc', columns => '{body}');
SELECT attempt('DELETE FROM doc WHERE number = 1'), attempt('UPDATE doc SET seen = 1 WHERE number = 1');
ALTER TABLE doc DROP COLUMN body;
SELECT attempt('UPDATE doc SET seen = 1');
SELECT interlock.require_lease('doc');
ALTER TABLE doc ALTER number TYPE float8;
SELECT attempt('UPDATE doc SET seen = 1');
ALTER TABLE doc ALTER number TYPE text;
SELECT attempt('UPDATE doc SET seen = 1 WHERE number = ''1''');
-- the table's own name stays what it was
ALTER TABLE doc RENAME TO document;
SELECT attempt('UPDATE document SET seen = 1 WHERE number = ''1''');
SELECT interlock.unrequire_lease('document');
DROP TABLE document;

-- names that need quotes, temporary tables, what is no table, whose it is
CREATE SCHEMA "Sche""ma";
CREATE TABLE "Sche""ma"."Ta'b{le}" ("Ke""y" int, "k'2" text, "col\umn" int, PRIMARY KEY ("k'2", "Ke""y"));
SELECT interlock.require_lease('"Sche""ma"."Ta''b{le}"', columns => '{"col\\umn"}');
SELECT regexp_replace(pg_get_triggerdef(oid), '_[0-9a-f]{16} ', '_(hash) ') AS trigger FROM pg_trigger WHERE tgrelid = '"Sche""ma"."Ta''b{le}"'::regclass;
\set VERBOSITY default
INSERT INTO "Sche""ma"."Ta'b{le}" VALUES (1, '"q"');
\set VERBOSITY terse
BEGIN;
SELECT hold('Ta''b{le}:"q":1');
INSERT INTO "Sche""ma"."Ta'b{le}" VALUES (1, '"q"');
COMMIT;
SELECT attempt($$UPDATE "Sche""ma"."Ta'b{le}" SET "col\umn" = 1$$);
SELECT drop_leases();
SELECT interlock.unrequire_lease('"Sche""ma"."Ta''b{le}"');
DROP SCHEMA "Sche""ma" CASCADE;
CREATE TEMP TABLE mine (id int PRIMARY KEY);
SELECT interlock.require_lease('mine');
SELECT attempt('INSERT INTO mine VALUES (1)');
CREATE VIEW seen AS SELECT 1 AS id;
CREATE FOREIGN DATA WRAPPER nothing;
CREATE SERVER nowhere FOREIGN DATA WRAPPER nothing;
CREATE FOREIGN TABLE far (id int) SERVER nowhere;
SELECT t, attempt(format('SELECT interlock.require_lease(%L, ''x'')', t)), attempt(format('SELECT interlock.unrequire_lease(%L, ''x'')', t))
  FROM unnest('{seen,far,pg_class,0}'::text[]) t;
DROP VIEW seen;
DROP FOREIGN DATA WRAPPER nothing CASCADE;
SELECT interlock.require_lease(NULL);
CREATE ROLE regress_stranger;
GRANT ALL ON mine TO regress_stranger;
GRANT USAGE ON SCHEMA interlock TO regress_stranger;
SET ROLE regress_stranger;
SELECT interlock.require_lease('mine', 'x');
SELECT interlock.unrequire_lease('mine');
SELECT attempt('INSERT INTO mine VALUES (1)');
BEGIN; SELECT hold('mine:1'); SELECT attempt('INSERT INTO mine VALUES (1)'); COMMIT;
SELECT drop_leases();
RESET ROLE;
REVOKE USAGE ON SCHEMA interlock FROM regress_stranger;
DROP TABLE mine;
DROP ROLE regress_stranger;

-- partitions: a row that moves is deleted there and inserted here
CREATE TABLE pt (id int, region text, v int, w int, PRIMARY KEY (id, region)) PARTITION BY LIST (region);
CREATE TABLE pt_a PARTITION OF pt FOR VALUES IN ('a');
INSERT INTO pt VALUES (1, 'a'), (2, 'a');
SELECT interlock.require_lease('pt', 'pt:{id}', '{v}');
CREATE TABLE pt_b (w int, junk int, region text NOT NULL, v int, id int NOT NULL);
ALTER TABLE pt_b DROP COLUMN junk;
ALTER TABLE pt ATTACH PARTITION pt_b FOR VALUES IN ('b');
SELECT interlock.require_lease('pt_a', 'pt:{id}');
SELECT interlock.unrequire_lease('pt_a', 'pt:{id}');
CREATE TABLE ptway (n serial, command text);
INSERT INTO ptway (command) VALUES ('UPDATE pt SET v = 1 WHERE id = 1'), ('UPDATE pt_a SET v = 1 WHERE id = 1'), ('UPDATE pt SET w = 1 WHERE id = 1'),
    ('UPDATE pt SET region = ''b'' WHERE id = 1'), ('INSERT INTO pt_b (id, region) VALUES (1, ''b'')'), ('DELETE FROM pt WHERE id = 1'), ('DELETE FROM pt WHERE id = 2');
SELECT command, attempt(command) FROM ptway ORDER BY n;
BEGIN; SELECT hold('pt:1'); SELECT command, attempt(command) FROM ptway ORDER BY n; ROLLBACK;
SELECT interlock.require_lease('pt_a', 'only a');
BEGIN; SELECT hold('pt:1'); SELECT command, attempt(command) FROM ptway ORDER BY n; ROLLBACK;
SELECT interlock.unrequire_lease('pt_a', 'only a');
SELECT interlock.unrequire_lease('pt');
SELECT command, attempt(command) FROM ptway WHERE n = 1;
SELECT drop_leases();
DROP TABLE pt, ptway;
-- a table that inherits has no triggers of its parent
CREATE TABLE parent (id int);
CREATE TABLE child () INHERITS (parent);
INSERT INTO child VALUES (1);
SELECT interlock.require_lease('parent', 'parent');
SELECT attempt('INSERT INTO parent VALUES (1)'), attempt('UPDATE parent SET id = 2'), attempt('DELETE FROM child');
DROP TABLE parent CASCADE;

-- the trigger's function by hand
SELECT interlock_internal.lease_trigger();
CREATE TABLE odd (id int);
CREATE TRIGGER t BEFORE INSERT ON odd FOR EACH ROW EXECUTE FUNCTION interlock_internal.lease_trigger('x');
INSERT INTO odd VALUES (1);
DROP TRIGGER t ON odd;
CREATE TRIGGER t AFTER INSERT ON odd FOR EACH STATEMENT EXECUTE FUNCTION interlock_internal.lease_trigger('x');
INSERT INTO odd VALUES (1);
DROP TRIGGER t ON odd;
CREATE TRIGGER t AFTER INSERT ON odd FOR EACH ROW EXECUTE FUNCTION interlock_internal.lease_trigger('x{');
INSERT INTO odd VALUES (1);
CREATE OR REPLACE TRIGGER t AFTER INSERT ON odd FOR EACH ROW EXECUTE FUNCTION interlock_internal.lease_trigger();
INSERT INTO odd VALUES (1);
CREATE OR REPLACE TRIGGER t AFTER INSERT ON odd FOR EACH ROW EXECUTE FUNCTION interlock_internal.lease_trigger('a//{id}');
INSERT INTO odd VALUES (1);
SELECT findings FROM interlock.guards WHERE rel = 'odd'::regclass;
DROP TABLE odd, way;
DROP FUNCTION hold, drop_leases, attempt, try_require, change, suppress;
DROP DOMAIN code;
DROP TYPE color;
