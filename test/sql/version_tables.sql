-- Versioned rows: kinds of keys, tokens and tables
\set VERBOSITY terse

-- keys of many types, as literals without a type and with their own
CREATE DOMAIN short AS varchar(4);
CREATE TYPE mood AS ENUM ('sad', 'glad');
CREATE TABLE k2 (id smallint PRIMARY KEY, a int);
CREATE TABLE k8 (id bigint PRIMARY KEY, a int);
CREATE TABLE kn (id numeric PRIMARY KEY, a int);
CREATE TABLE kt (id text PRIMARY KEY, a int);
CREATE TABLE kv (id varchar(8) PRIMARY KEY, a int);
CREATE TABLE kc (id char(8) PRIMARY KEY, a int);
CREATE TABLE ku (id uuid PRIMARY KEY, a int);
CREATE TABLE kd (id date PRIMARY KEY, a int);
CREATE TABLE ke (id mood PRIMARY KEY, a int);
CREATE TABLE ko (id short PRIMARY KEY, a int);
CREATE TABLE kj (id jsonb PRIMARY KEY, a int);
CREATE TABLE kk (tenant int, name text, a int, PRIMARY KEY (name, tenant));
CREATE TABLE kq (id int NOT NULL UNIQUE, other int UNIQUE, a int);
DO $$ DECLARE t text; BEGIN
    FOREACH t IN ARRAY '{k2,k8,kn,kt,kv,kc,ku,kd,ke,ko,kj,kk,kq}'::text[] LOOP
        PERFORM interlock.enable_versioning(t::regclass); END LOOP; END $$;
INSERT INTO k2 VALUES (1); INSERT INTO k8 VALUES (5000000000); INSERT INTO kn VALUES (1.50); INSERT INTO kt VALUES ('it''s');
INSERT INTO kv VALUES ('v'); INSERT INTO kc VALUES ('c'); INSERT INTO ku VALUES ('00000000-0000-0000-0000-000000000001');
INSERT INTO kd VALUES ('2026-02-28'); INSERT INTO ke VALUES ('glad'); INSERT INTO ko VALUES ('o'); INSERT INTO kj VALUES ('{"x": 1}');
INSERT INTO kk VALUES (7, 'n'); INSERT INTO kq VALUES (1, NULL);
SELECT interlock.versioned_update('k2', 1, 1, '{"a": 1}'), interlock.versioned_update('k2', 1::smallint, 2, '{"a": 2}'),
       interlock.versioned_update('k2', '1', 3, '{"a": 3}'), interlock.versioned_update('k2', 1::bigint, 4, '{"a": 4}');
SELECT interlock.versioned_update('k8', 5000000000, 1, '{"a": 1}'), interlock.versioned_update('k8', '5000000000', 2, '{"a": 2}'),
       interlock.versioned_update('k8', '{"id": 5000000000}'::jsonb, 3, '{"a": 3}'), interlock.versioned_update('k8', '5000000000'::jsonb, 4, '{"a": 4}');
SELECT interlock.versioned_update('kn', 1.5, 1, '{"a": 1}'), interlock.versioned_update('kn', '1.500', 2, '{"a": 2}');
SELECT interlock.versioned_update('kt', 'it''s', 1, '{"a": 1}'), interlock.versioned_update('kt', '{"id": "it''s"}'::jsonb, 2, '{"a": 2}');
SELECT interlock.versioned_update('kv', 'v', 1, '{"a": 1}'), interlock.versioned_update('kv', 'v'::varchar, 2, '{"a": 2}');
SELECT interlock.versioned_update('kc', 'c', 1, '{"a": 1}'), interlock.versioned_update('kc', 'c'::char(8), 2, '{"a": 2}');
SELECT interlock.versioned_update('ku', '00000000-0000-0000-0000-000000000001', 1, '{"a": 1}'),
       interlock.versioned_update('ku', '00000000-0000-0000-0000-000000000001'::uuid, 2, '{"a": 2}');
SELECT interlock.versioned_update('kd', '2026-02-28', 1, '{"a": 1}'), interlock.versioned_update('kd', date '2026-02-28', 2, '{"a": 2}');
SELECT interlock.versioned_update('ke', 'glad', 1, '{"a": 1}'), interlock.versioned_update('ke', 'glad'::mood, 2, '{"a": 2}');
SELECT interlock.versioned_update('ko', 'o', 1, '{"a": 1}'), interlock.versioned_update('ko', 'o'::short, 2, '{"a": 2}');
SELECT interlock.versioned_update('kj', '{"x": 1.0}'::jsonb, 1, '{"a": 1}'), interlock.versioned_update('kj', '{"x": 1}', 2, '{"a": 2}');
SELECT interlock.versioned_update('kk', '{"tenant": 7, "name": "n"}'::jsonb, 1, '{"a": 1}'), interlock.versioned_update('kk', '{"name": "n", "tenant": "7"}', 2, '{"a": 2}');
SELECT interlock.versioned_update('kq', 1, 1, '{"other": 5}');
SELECT key, outcome FROM interlock.versioned_update_many('kk', '[{"key": {"tenant": 7, "name": "n"}, "version": 3, "changes": {"a": 9}}]');
-- what does not fit
SELECT interlock.versioned_update('k2', 70000, 1, '{"a": 1}');
SELECT interlock.versioned_update('k2', 'one', 1, '{"a": 1}');
SELECT interlock.versioned_update('ku', 1, 1, '{"a": 1}');
SELECT interlock.versioned_update('kk', 1, 1, '{"a": 1}');
SELECT interlock.versioned_update('kk', '{"tenant": 7}'::jsonb, 1, '{"a": 1}');
SELECT interlock.versioned_update('kk', '{"tenant": 7, "name": null}'::jsonb, 1, '{"a": 1}');
SELECT interlock.versioned_update('kk', '{"tenant": 7, "name": "n", "a": 1}'::jsonb, 1, '{"a": 1}');
SELECT interlock.versioned_update('kk', '[7, "n"]'::jsonb, 1, '{"a": 1}');
SELECT interlock.versioned_update('kk', 'n', 1, '{"a": 1}');
SELECT interlock.versioned_update('k8', '{"id": null}'::jsonb, 1, '{"a": 1}');
SELECT interlock.versioned_update('k8', 'null'::jsonb, 1, '{"a": 1}');
SELECT interlock.versioned_update('k8', ARRAY[1, 2], 1, '{"a": 1}');
SELECT interlock.versioned_update('k8', ROW(1, 2), 1, '{"a": 1}');
DROP TABLE k2, k8, kn, kt, kv, kc, ku, kd, ke, ko, kj, kk, kq;

-- tokens: an adopted integer that may be null, and timestamps
CREATE TABLE adopted (id int PRIMARY KEY, a int, v int DEFAULT 0);
INSERT INTO adopted VALUES (1, 1, NULL), (2, 1, 5), (3, 1, 2147483647);
SELECT interlock.enable_versioning('adopted', 'v');
UPDATE adopted SET a = 2 WHERE id < 3 RETURNING *;
UPDATE adopted SET v = NULL WHERE id = 1;
SELECT interlock.disable_versioning('adopted');
UPDATE adopted SET v = NULL WHERE id = 1;
SELECT interlock.enable_versioning('adopted', 'v');
SELECT interlock.versioned_update('adopted', 1, 0, '{"a": 3}');
-- also one that older rows need not have (18)
UPDATE adopted SET a = 2 WHERE id = 1;
ALTER TABLE adopted DISABLE TRIGGER ALL;
UPDATE adopted SET v = NULL WHERE id = 1;
ALTER TABLE adopted ENABLE TRIGGER ALL;
DO $$ BEGIN
    IF current_setting('server_version_num')::int >= 180000 THEN EXECUTE 'ALTER TABLE adopted ADD CONSTRAINT not_yet NOT NULL v NOT VALID'; END IF;
END $$;
SELECT interlock.versioned_update('adopted', 1, 0, '{"a": 3}');
UPDATE adopted SET a = 2 WHERE id = 3;
SELECT interlock.versioned_update('adopted', 3, 2147483647, '{"a": 3}');
SELECT outcome, version FROM interlock.try_versioned_update('adopted', 2, 9223372036854775807, '{"a": 3}');
SELECT outcome, version FROM interlock.try_versioned_update('adopted', 2, -1, '{"a": 3}');
CREATE TABLE big (id int PRIMARY KEY, version bigint NOT NULL);
INSERT INTO big VALUES (1, 9223372036854775806), (2, -5);
SELECT interlock.enable_versioning('big');
UPDATE big SET id = id RETURNING *;
UPDATE big SET id = id WHERE id = 1;

CREATE TABLE stamped (id int PRIMARY KEY, a int, updated_time timestamptz, local_time timestamp(0));
INSERT INTO stamped VALUES (1, 1, '2026-01-01 00:00:00.123456+00', '2026-01-01 00:00:00'), (2, 1, NULL, NULL);
SELECT interlock.enable_versioning('stamped', 'updated_time');
-- C6: two updates in one transaction, where now() stands still
BEGIN;
UPDATE stamped SET a = 2, updated_time = now() WHERE id = 1;
SELECT updated_time AS first FROM stamped WHERE id = 1 \gset
UPDATE stamped SET a = 3, updated_time = now() WHERE id = 1;
SELECT updated_time AS second FROM stamped WHERE id = 1 \gset
UPDATE stamped SET a = 4 WHERE id = 1;
SELECT updated_time > :'second'::timestamptz AND :'second'::timestamptz > :'first'::timestamptz AS moves_forward FROM stamped WHERE id = 1;
COMMIT;
-- a time that is ahead of the clock (which was set back) moves on by the smallest step; one in the past is not taken
ALTER TABLE stamped DISABLE TRIGGER ALL;
UPDATE stamped SET updated_time = date_trunc('second', now() + interval '12 hours') WHERE id = 1 RETURNING updated_time AS ahead \gset
ALTER TABLE stamped ENABLE TRIGGER ALL;
UPDATE stamped SET a = 5 WHERE id = 1 RETURNING updated_time - :'ahead' AS later;
UPDATE stamped SET updated_time = '2026-01-01' WHERE id = 1 RETURNING updated_time - :'ahead' AS later;
UPDATE stamped SET updated_time = 'infinity' WHERE id = 1;
UPDATE stamped SET updated_time = NULL WHERE id = 1 RETURNING updated_time - :'ahead' AS later;
SELECT interlock.versioned_update('stamped', 1, :'ahead'::timestamptz + interval '3 microseconds', '{"a": 6}') - :'ahead' AS later;
SELECT interlock.versioned_update('stamped', 1, (:'ahead'::timestamptz + interval '4 microseconds')::text, '{"a": 7}')::timestamptz - :'ahead' AS later;
SELECT outcome, version - :'ahead' AS later FROM interlock.try_versioned_update('stamped', 1, '2026-01-01'::timestamptz, '{"a": 6}');
SELECT interlock.versioned_update('stamped', 1, 5, '{"a": 6}');
SELECT outcome, version IS NULL AS no_counter, version_time - :'ahead' AS later
  FROM interlock.versioned_update_many('stamped', format('[{"key": 1, "version": "%s", "changes": {"a": 8}}]', :'ahead'::timestamptz + interval '5 microseconds')::jsonb);
-- a null time counts as -infinity
SELECT interlock.versioned_update('stamped', 2, '-infinity'::timestamptz, '{"a": 2}') > '2026-01-01' AS moved;
SELECT interlock.disable_versioning('stamped');
-- whole seconds without a zone: two updates in the same second differ by one
SELECT interlock.enable_versioning('stamped', 'local_time');
ALTER TABLE stamped DISABLE TRIGGER ALL;
UPDATE stamped SET local_time = date_trunc('second', now() + interval '12 hours') WHERE id = 1 RETURNING local_time AS ahead \gset
ALTER TABLE stamped ENABLE TRIGGER ALL;
UPDATE stamped SET a = 1 WHERE id = 1 RETURNING local_time - :'ahead' AS later;
SELECT interlock.versioned_update('stamped', 1, (:'ahead'::timestamp + interval '1 second')::text, '{"a": 2}')::timestamp - :'ahead' AS later;
SELECT interlock.versioned_update('stamped', 1, 7, '{"a": 2}');
-- local times that the session's zone leaves out, and that it has twice
CREATE TABLE clock (id int PRIMARY KEY, a int, changed timestamp);
INSERT INTO clock VALUES (1, 1, '2126-03-31 02:30:00'), (2, 1, '2126-10-27 02:30:00'), (3, 1, '2126-03-31 02:30:00');
SELECT interlock.enable_versioning('clock', 'changed');
SET timezone = 'Europe/Berlin';
SELECT changed::timestamptz AT TIME ZONE 'UTC' AS utc FROM clock ORDER BY id;
SELECT interlock.versioned_update('clock', id, changed::timestamptz, '{"a": 2}') > '2026-01-01' AS moved FROM clock ORDER BY id;
ALTER TABLE clock DISABLE TRIGGER ALL;
UPDATE clock SET changed = CASE id WHEN 2 THEN '2126-10-27 02:30:00.000001'::timestamp ELSE '2126-03-31 02:30:00.000001' END;
ALTER TABLE clock ENABLE TRIGGER ALL;
SELECT outcome FROM clock, interlock.try_versioned_update('clock', id, changed::timestamptz - interval '1 microsecond', '{"a": 3}') ORDER BY id;
SELECT outcome FROM interlock.try_versioned_update('clock', 1, '2126-03-31 03:30:00.000001', '{"a": 3}');
SELECT outcome FROM interlock.try_versioned_update('clock', 1, '2126-03-31 02:30:00.000001', '{"a": 3}');
SELECT outcome FROM clock, interlock.try_versioned_delete('clock', id, changed::timestamptz) WHERE id > 1 ORDER BY id;
RESET timezone;
DROP TABLE clock;
DROP TABLE adopted, big, stamped;

-- partitions: other column order, rows that move, detached and attached ones
CREATE TABLE part (id int, region text, a int, PRIMARY KEY (id, region)) PARTITION BY LIST (region);
CREATE TABLE part_eu PARTITION OF part FOR VALUES IN ('eu');
CREATE TABLE part_us (a int, junk int, region text NOT NULL, id int NOT NULL);
ALTER TABLE part_us DROP COLUMN junk;
ALTER TABLE part ATTACH PARTITION part_us FOR VALUES IN ('us');
SELECT interlock.enable_versioning('part');
INSERT INTO part VALUES (1, 'eu', 1), (2, 'us', 1);
SELECT interlock.versioned_update('part', '{"id": 2, "region": "us"}', 1, '{"a": 2}');
SELECT outcome, current FROM interlock.try_versioned_update('part', '{"id": 2, "region": "us"}', 1, '{"a": 2}');
UPDATE part SET region = 'us' WHERE id = 1 RETURNING *;
SELECT tableoid::regclass, id, region, a, version FROM part ORDER BY id;
DELETE FROM part WHERE id = 2;
INSERT INTO part VALUES (2, 'us', 5) RETURNING version;
CREATE TABLE part_asia PARTITION OF part FOR VALUES IN ('asia');
INSERT INTO part VALUES (3, 'asia', 1);
UPDATE part_asia SET a = 9 RETURNING version;
SELECT interlock.versioned_update('part_asia', '{"id": 3, "region": "asia"}', 5, '{"a": 2}');
ALTER TABLE part DETACH PARTITION part_asia;
UPDATE part_asia SET a = 10 RETURNING version;
SELECT interlock.enable_versioning('part_eu');
SELECT interlock.disable_versioning('part_eu');
SELECT interlock.disable_versioning('part');
INSERT INTO part_asia VALUES (4, 'asia', 1) RETURNING version;
SELECT tgrelid::regclass FROM pg_trigger WHERE tgname = 'zzz_interlock_version';
DROP TABLE part, part_asia;

-- names with quotes, dots and capitals; a search path that lies
CREATE SCHEMA "My.Schema";
CREATE TABLE "My.Schema"."Odd ""Table""" ("Id.1" int PRIMARY KEY, "A b" text);
SELECT interlock.enable_versioning('"My.Schema"."Odd ""Table"""', 'Version "x"', '{"A b"}');
INSERT INTO "My.Schema"."Odd ""Table""" VALUES (1, 'a');
SELECT interlock.versioned_update('"My.Schema"."Odd ""Table"""', 1, 1, '{}');
SELECT interlock.versioned_update('"My.Schema"."Odd ""Table"""', 1, 1, '{"A b": "c"}');
\set VERBOSITY default
SELECT interlock.versioned_update('"My.Schema"."Odd ""Table"""', 1, 1, '{"a b": "c"}');
\set VERBOSITY terse
CREATE SCHEMA liar;
CREATE FUNCTION liar.never(int, int) RETURNS boolean LANGUAGE sql AS 'SELECT false';
CREATE OPERATOR liar.= (LEFTARG = int, RIGHTARG = int, FUNCTION = liar.never);
CREATE TABLE liar.victim (id int PRIMARY KEY, a int);
SET search_path = liar, pg_catalog;
SELECT interlock.enable_versioning('victim');
INSERT INTO victim VALUES (1, 1);
SELECT interlock.versioned_update('victim', 1, 1, '{"a": 2}');
SELECT outcome FROM interlock.try_versioned_update('victim', 1, 1, '{"a": 2}');
RESET search_path;
-- the same session sees every change of the table: renamed, moved, retyped
ALTER TABLE liar.victim RENAME TO renamed;
SELECT interlock.versioned_update('liar.renamed', 1, 2, '{"a": 3}');
ALTER SCHEMA liar RENAME TO honest;
SELECT interlock.versioned_update('honest.renamed', 1, 3, '{"a": 4}');
ALTER TABLE honest.renamed SET SCHEMA public;
SELECT interlock.versioned_update('renamed', 1, 4, '{"a": 5}');
ALTER TABLE renamed ALTER a TYPE text, ADD b int, ALTER id TYPE bigint;
SELECT interlock.versioned_update('renamed', 1, 5, '{"a": "text now", "b": 1}');
ALTER TABLE renamed DROP b;
SELECT interlock.versioned_update('renamed', 1, 7, '{"b": 1}');
ALTER TABLE renamed RENAME a TO z;
SELECT interlock.versioned_update('renamed', 1, 6, '{"z": "renamed"}');
-- another table by the name of the first
ALTER TABLE renamed RENAME TO gone;
CREATE TABLE renamed (id int PRIMARY KEY, a int);
SELECT interlock.versioned_update('renamed', 1, 6, '{"z": "renamed"}');
-- the version column renamed: fails closed, and says so
ALTER TABLE gone RENAME version TO ver;
UPDATE gone SET z = 'lost';
SELECT interlock.versioned_update('gone', 1, 7, '{"z": "lost"}');
SELECT rel, finding FROM interlock.advise();
SELECT interlock.disable_versioning('gone');
SELECT interlock.enable_versioning('gone', 'ver');
UPDATE gone SET z = 'safe' RETURNING *;
DROP TABLE gone, renamed, "My.Schema"."Odd ""Table""";
DROP SCHEMA "My.Schema";
DROP SCHEMA honest CASCADE;

-- values are exact: what to_jsonb writes comes back as it was
CREATE TYPE pair AS (x int, y text);
CREATE DOMAIN positive AS int CHECK (VALUE > 0);
CREATE TABLE exact (id int PRIMARY KEY, n numeric, m numeric(10, 2), f float8, t text, c char(5), b bytea, d date, ts timestamptz,
    i interval, r int4range, p pair, pp pair[], dom positive, e mood, j json, jb jsonb, u uuid, ip inet, arr text[][], boo boolean,
    x tsvector, bits bit(3), g int GENERATED ALWAYS AS (id * 2) STORED);
INSERT INTO exact VALUES (1);
SELECT interlock.enable_versioning('exact');
SELECT interlock.versioned_update('exact', 1, 1, '{"n": 12345678901234567890.123456789000, "m": 1.005, "f": 0.1, "t": "snow \u2603 \"q\"",
    "c": "ab", "b": "\\xdeadbeef", "d": "2026-02-28", "ts": "2026-02-28T10:00:00.123456+01:00", "i": "1 mon 2 days 03:04:05.6", "r": "[1,5)",
    "p": {"x": 1, "y": "z"}, "pp": [{"x": 2, "y": null}, null], "dom": 5, "e": "sad", "j": {"b": 1, "a": [1.0]}, "jb": {"b": 1, "a": [1.0]},
    "u": "00000000-0000-0000-0000-000000000001", "ip": "10.0.0.1/8", "arr": [["a", "b"], ["c", null]], "boo": true, "x": "<a/>", "bits": "101"}');
SELECT n, m, f, t, c, b, d, ts AT TIME ZONE 'UTC' AS ts, i, r, p, pp, dom, e, j, jb, u, ip, arr, boo, x, bits, g FROM exact \gx
SELECT interlock.versioned_update('exact', 1, 2, to_jsonb(whole) - '{id,version,g}'::text[]) FROM exact whole;
SELECT n, m, f, t, c, b, d, ts AT TIME ZONE 'UTC' AS ts, i, r, p, pp, dom, e, j, jb, u, ip, arr, boo, x, bits, g FROM exact \gx
SELECT interlock.versioned_update('exact', 1, 3, '{"arr": "{x,y}", "p": "(3,text)", "t": {"an": "object"}, "n": "1e3", "boo": "yes"}');
SELECT arr, p, t, n, boo FROM exact;
-- and refused when they are none of the type
SELECT interlock.versioned_update('exact', 1, 4, '{"n": "many"}');
SELECT interlock.versioned_update('exact', 1, 4, '{"dom": -1}');
SELECT interlock.versioned_update('exact', 1, 4, '{"e": "angry"}');
SELECT interlock.versioned_update('exact', 1, 4, '{"c": "too long"}');
SELECT interlock.versioned_update('exact', 1, 4, '{"bits": "10"}');
SELECT interlock.versioned_update('exact', 1, 4, '{"d": 5}');
SELECT interlock.versioned_update('exact', 1, 4, '{"g": 5}');
ALTER TYPE pair ADD ATTRIBUTE z int;
SELECT interlock.versioned_update('exact', 1, 4, '{"p": {"x": 1, "y": "a", "z": 3}}');
SELECT p FROM exact;
DROP TABLE exact;
DROP TYPE pair, mood;
DROP DOMAIN positive, short;

-- merging with the row the client read (C17, C19)
CREATE TABLE doc (id int PRIMARY KEY, title text, price numeric, body jsonb, raw json);
INSERT INTO doc VALUES (1, 'a', 1.0, '{"x": 1, "y": 2}', '{"x": 1}');
SELECT interlock.enable_versioning('doc');
UPDATE doc SET title = 'theirs';
SELECT * FROM interlock.try_versioned_update('doc', 1, 1, '{"price": 2}', '{"price": 1.00}', 'merge');
-- a client that sends the whole row it read, with one change, and numbers and keys in other forms
SELECT outcome, version, conflicts FROM interlock.try_versioned_update('doc', 1, 1,
    '{"title": "a", "price": 1, "body": {"y": 2.0, "x": 1}, "raw": {"x": 2}}',
    '{"id": 1, "title": "a", "price": 1.000, "body": {"y": 2, "x": 1.0}, "raw": {"x": 1}, "version": 1}', 'merge');
SELECT * FROM doc;
-- types without an equality of their own are compared as jsonb, which the base is
CREATE TABLE sheet (id int PRIMARY KEY, note text, raw json, raws json[], place point);
INSERT INTO sheet VALUES (1, 'a', '{"x":1,  "y":[1.0]}', '{"{\"z\":1}"}', '(1,2)');
SELECT interlock.enable_versioning('sheet');
SELECT to_jsonb(sheet) AS base FROM sheet \gset
UPDATE sheet SET note = 'theirs';
SELECT outcome, version, conflicts FROM interlock.try_versioned_update('sheet', 1, 1, '{"raw": {"x": 2}, "raws": [{"z": 2}], "place": "(3,4)"}', :'base', 'merge');
UPDATE sheet SET raw = '{"x": 3}';
SELECT outcome, version, conflicts FROM interlock.try_versioned_update('sheet', 1, 1, '{"raw": {"x": 4}, "note": "mine"}', :'base', 'merge');
SELECT outcome, version, conflicts FROM interlock.try_versioned_update('sheet', 1, 1, '{"raw": {"x": 3.0}}', :'base', 'merge');
SELECT * FROM sheet;
DROP TABLE sheet;
-- both changed it: to the same, which is none, and to different values
SELECT outcome, version, conflicts FROM interlock.try_versioned_update('doc', 1, 1, '{"title": "theirs"}', '{"title": "a"}', 'merge');
SELECT outcome, version, conflicts, current->'title' AS title FROM interlock.try_versioned_update('doc', 1, 1, '{"title": "mine", "price": 9}', '{"title": "a", "price": 1}', 'merge');
SELECT outcome, version, conflicts FROM interlock.try_versioned_update('doc', 1, 1, '{"title": null}', '{"title": "a"}', 'merge');
SELECT outcome, version FROM interlock.try_versioned_update('doc', 9, 1, '{"title": "x"}', '{"title": "a"}', 'merge');
SELECT interlock.try_versioned_update('doc', 1, 1, '{"title": "x"}', '{"price": 1}', 'merge');
SELECT interlock.try_versioned_update('doc', 1, 1, '{"title": "x"}', '[1]', 'merge');
SELECT interlock.try_versioned_update('doc', 1, 1, '{"title": "x"}', on_conflict => 'merge');
SELECT interlock.try_versioned_update('doc', 1, 1, '{"title": "x"}', on_conflict => 'overwrite');
DROP TABLE doc;
