-- Version history: what it refuses, and tables, keys, values and changes of every kind.
\set VERBOSITY terse
CREATE ROLE history_owner;
CREATE ROLE history_stranger;
CREATE TABLE plain (id int PRIMARY KEY, a int);

-- What is refused
CREATE TABLE keyless (a int);
SELECT interlock.enable_history('keyless');
SELECT interlock.enable_history(NULL);
SELECT interlock.enable_history('plain', 0);
SELECT interlock.enable_history('plain', -1);
SELECT interlock.enable_history('plain', keep_for => '0');
SELECT interlock.enable_history('plain', keep_for => '-1 day');
SELECT interlock.enable_history('plain', keep_for => '11 years');
SELECT interlock.enable_history('pg_class');
CREATE VIEW plain_view AS SELECT * FROM plain;
SELECT interlock.enable_history('plain_view');
SELECT interlock.disable_history('plain');
SELECT * FROM interlock.row_history('plain', 1);
SELECT interlock.row_as_of('plain', 1, now());
SET ROLE history_stranger;
SELECT interlock.enable_history('plain');
SELECT interlock.disable_history('plain');
SELECT * FROM interlock.trim_history('plain');
SELECT * FROM interlock.trim_history();
SELECT * FROM interlock.row_history('plain', 1);
RESET ROLE;
ALTER TABLE plain OWNER TO history_owner;
SET ROLE history_owner;
SELECT interlock.enable_history('plain'); -- may not create a table in the schema
RESET ROLE;
SELECT interlock.enable_history('plain');
SELECT * FROM interlock.row_history('plain', NULL);
SELECT * FROM interlock.row_history('plain', 'one');
SELECT interlock.row_as_of('plain', 1, NULL);
SELECT * FROM interlock.trim_history('plain', 0);
CREATE TRIGGER by_hand AFTER INSERT ON keyless FOR EACH ROW EXECUTE FUNCTION interlock_internal.history_trigger();
INSERT INTO keyless VALUES (1);
DROP TRIGGER by_hand ON keyless;
CREATE TRIGGER by_hand BEFORE INSERT ON keyless FOR EACH ROW EXECUTE FUNCTION interlock_internal.history_trigger();
INSERT INTO keyless VALUES (1);
CREATE TRIGGER by_hand_too AFTER TRUNCATE ON keyless FOR EACH STATEMENT EXECUTE FUNCTION interlock_internal.history_truncate_trigger();
TRUNCATE keyless;
SELECT interlock_internal.history_trigger();
DROP VIEW plain_view; DROP TABLE keyless;

-- Names in need of quotes, keys of several columns, a name that is taken
CREATE SCHEMA "Odd schema";
CREATE TABLE "Odd schema"."The ""T"" Table" ("Id 1" int, "a'b" text, "row" int, PRIMARY KEY ("a'b", "Id 1"));
CREATE TABLE "Odd schema"."The ""T"" Table_history" (not_ours int);
SELECT interlock.enable_history('"Odd schema"."The ""T"" Table"');
INSERT INTO "Odd schema"."The ""T"" Table" VALUES (1, 'x''y', 0);
UPDATE "Odd schema"."The ""T"" Table" SET "row" = 1;
SELECT operation, row_data, changed FROM interlock.row_history('"Odd schema"."The ""T"" Table"', '{"Id 1": 1, "a''b": "x''y"}');
SELECT key FROM "Odd schema"."The ""T"" Table_history1";
SELECT interlock.enable_history('"Odd schema"."The ""T"" Table"', 5);
SELECT relname FROM pg_class WHERE relnamespace = '"Odd schema"'::regnamespace AND relkind = 'r' ORDER BY 1;
-- names as long as they can be; a table of another owner is not taken over
CREATE TABLE a23456789012345678901234567890123456789012345678901234567890123 (id int PRIMARY KEY);
SELECT interlock.enable_history('a23456789012345678901234567890123456789012345678901234567890123');
SELECT relname FROM pg_class WHERE relname LIKE 'a2345%history';
DROP TABLE a23456789012345678901234567890123456789012345678901234567890123, a234567890123456789012345678901234567890123456789012345_history;
CREATE TABLE short (id int PRIMARY KEY);
SELECT interlock.enable_history('short'), interlock.disable_history('short');
ALTER TABLE short_history OWNER TO history_stranger;
SELECT interlock.enable_history('short');
SELECT relname FROM pg_class WHERE relname LIKE 'short_history%' AND relkind = 'r' ORDER BY 1;
-- nor one whose columns are not as they were made
SELECT interlock.disable_history('short');
ALTER TABLE short_history1 ALTER changed_at TYPE timestamptz(0);
SELECT interlock.enable_history('short');
SELECT relname FROM pg_class WHERE relname LIKE 'short_history%' AND relkind = 'r' ORDER BY 1;
DROP TABLE short, short_history, short_history1, short_history2;

-- Keys of every kind; they are the same key whatever the session's settings are
CREATE TYPE mood AS ENUM ('sad', 'glad');
CREATE DOMAIN short AS varchar(4);
CREATE TABLE keys (kt text, kc char(4), kn numeric, ku uuid, kd date, kz timestamptz, ke mood, ko short, kb bytea, kf float8, ki interval, n int,
    PRIMARY KEY (kt, kc, kn, ku, kd, kz, ke, ko, kb, kf, ki));
SELECT interlock.enable_history('keys');
INSERT INTO keys VALUES ('it''s', 'c', 1.50, '00000000-0000-0000-0000-000000000001', '2026-02-28', '2026-02-28 12:00+00', 'glad', 'o', '\x01ff', 0.1, '1 day 2:00');
SET datestyle = 'German'; SET timezone = 'Asia/Kolkata'; SET bytea_output = 'escape'; SET extra_float_digits = 0; SET intervalstyle = 'sql_standard';
UPDATE keys SET kf = kf, n = 1;
SELECT count(*), count(DISTINCT key) FROM keys_history;
SELECT count(*) FROM interlock.row_history('keys', '{"kt": "it''s", "kc": "c", "kn": 1.5, "ku": "00000000-0000-0000-0000-000000000001", "kd": "28.02.2026",
    "kz": "28.02.2026 17:30", "ke": "glad", "ko": "o", "kb": "\\001\\377", "kf": 0.1, "ki": "1 2:00:00"}');
SELECT row_data - 'kz' - 'n' FROM keys_history WHERE operation = 'update';
RESET datestyle; RESET timezone; RESET bytea_output; RESET extra_float_digits; RESET intervalstyle;
DROP TABLE keys, keys_history; DROP TYPE mood; DROP DOMAIN short;
-- a unique index instead of a primary key, and a huge key
CREATE TABLE huge (k text NOT NULL UNIQUE, a int);
ALTER TABLE huge ALTER k SET STORAGE EXTERNAL;
SELECT interlock.enable_history('huge');
INSERT INTO huge SELECT repeat('k', 2600), 1;
UPDATE huge SET a = 2; DELETE FROM huge;
SELECT operation FROM interlock.row_history('huge', repeat('k', 2600));
DROP TABLE huge, huge_history;

-- Values of every kind come back as they were; toasted ones, too, also when they stay as they are
CREATE TYPE pair AS (a int, b text);
CREATE TABLE kinds (id int PRIMARY KEY, big text, raw bytea, p pair, arr int[], texts text[], r int4range, j json, jb jsonb, n numeric, f float8,
    ts timestamp, b bool, nothing text, twice int GENERATED ALWAYS AS (id * 2) STORED);
ALTER TABLE kinds ALTER big SET STORAGE EXTERNAL;
SELECT interlock.enable_history('kinds');
INSERT INTO kinds VALUES (1, repeat('toast ', 5000), '\xdeadbeef', (1, 'one "two"'), '{1,NULL,3}', '{a,"b c"}', '[1,5)', '{"z": 1, "a": [1, 2]}', '{"x": null}',
    12345678901234567890.123456789, 0.1, '2026-01-01 12:00', true, NULL);
UPDATE kinds SET b = false;
UPDATE kinds SET raw = '\x00', p = (2, NULL), arr = NULL, r = 'empty', j = '"text"', jb = '[1, {"y": 2}]', n = 'NaN', nothing = '', id = 1;
UPDATE kinds SET big = big || '!';
SELECT operation, row_data - 'big' AS row_data, length(row_data->>'big') AS big, changed, before - 'big' AS before, length(before->>'big') AS big_before
  FROM interlock.row_history('kinds', 1);
SELECT jsonb_populate_record(NULL::kinds, interlock.row_as_of('kinds', 1, 'infinity'))::text = kinds::text AS same FROM kinds;
DROP TABLE kinds, kinds_history; DROP TYPE pair;

-- HIS-14: columns that come, go, get other names and types; old entries stay as they were
CREATE TABLE shape (id int PRIMARY KEY, a int, b text);
SELECT interlock.enable_history('shape');
INSERT INTO shape VALUES (1, 1, 'x'), (2, 1, 'x');
ALTER TABLE shape ADD c int DEFAULT 7;          UPDATE shape SET a = 2 WHERE id = 1;
ALTER TABLE shape DROP b;                       UPDATE shape SET a = 3 WHERE id = 1;
ALTER TABLE shape RENAME a TO amount;           UPDATE shape SET amount = 4 WHERE id = 1;
ALTER TABLE shape ALTER amount TYPE text;       UPDATE shape SET amount = 'five' WHERE id = 1;
ALTER TABLE shape ALTER id TYPE bigint;         UPDATE shape SET amount = 'six' WHERE id = 1;
VACUUM FULL shape;                              UPDATE shape SET amount = 'seven' WHERE id = 1;
SELECT operation, row_data, changed, before FROM interlock.row_history('shape', 1);
-- the same within one session's prepared statement
PREPARE amount AS UPDATE shape SET amount = $1 WHERE id = 1;
EXECUTE amount('eight'); ALTER TABLE shape DROP c; EXECUTE amount('nine');
SELECT row_data FROM interlock.row_history('shape', 1) ORDER BY id DESC LIMIT 2;
-- a key column that gets another name: entries from before are under the old one, and nobody guesses from them
SELECT clock_timestamp() AS before_rename \gset
ALTER TABLE shape RENAME id TO nr;
UPDATE shape SET amount = 'ten' WHERE nr = 1;
SELECT operation FROM interlock.row_history('shape', 1);
SELECT interlock.row_as_of('shape', 1, :'before_rename'), interlock.row_as_of('shape', 2, :'before_rename');
UPDATE shape_history SET key = jsonb_build_object('nr', key->'id') WHERE key ? 'id';
SELECT interlock.enable_history('shape');
SELECT count(*) FROM interlock.row_history('shape', 1);
-- without a key nothing can be written that could not be recorded
ALTER TABLE shape DROP CONSTRAINT shape_pkey;
UPDATE shape SET amount = 'eleven';
ALTER TABLE shape ADD PRIMARY KEY (nr);
UPDATE shape SET amount = 'eleven';
-- tables with other names, schemas and owners
ALTER TABLE shape RENAME TO form; ALTER TABLE shape_history RENAME TO records; ALTER TABLE records SET SCHEMA "Odd schema";
UPDATE form SET amount = 'twelve'; ALTER TABLE form SET SCHEMA "Odd schema";
GRANT USAGE ON SCHEMA "Odd schema" TO history_owner, history_stranger;
ALTER TABLE "Odd schema".form OWNER TO history_owner; ALTER TABLE "Odd schema".records OWNER TO history_owner;
UPDATE "Odd schema".form SET amount = 'thirteen';
SET ROLE history_owner; UPDATE "Odd schema".form SET amount = 'fourteen'; RESET ROLE;
SELECT row_data->>'amount' AS amount, changed_by = current_user AS mine FROM interlock.row_history('"Odd schema".form', 1) ORDER BY id DESC LIMIT 4;
-- an entry that cannot be written: neither is the row
ALTER TABLE "Odd schema".records ADD CHECK (operation <> 'delete');
DELETE FROM "Odd schema".form WHERE nr = 1;
ALTER TABLE "Odd schema".records RENAME before TO earlier;
UPDATE "Odd schema".form SET amount = 'fifteen';
SELECT nr, amount FROM "Odd schema".form ORDER BY 1;
-- without its table history is over, with or without what is left of it
DROP TABLE "Odd schema".records;
UPDATE "Odd schema".form SET amount = 'sixteen'; TRUNCATE "Odd schema".form;
SELECT tgname FROM pg_trigger WHERE tgrelid = '"Odd schema".form'::regclass;
SELECT interlock.enable_history('"Odd schema".form');
INSERT INTO "Odd schema".form VALUES (1); TRUNCATE "Odd schema".form;
SELECT operation FROM "Odd schema".form_history ORDER BY id;
SELECT interlock.disable_history('"Odd schema".form');
SELECT tgname FROM pg_trigger WHERE tgrelid = '"Odd schema".form'::regclass;
DROP TABLE "Odd schema".form; -- the history stays
SELECT count(*) FROM "Odd schema".form_history;

-- Partitions: those that are there, that come and go; written through the parent or by themselves; rows that move
CREATE TABLE part (id int, r text, a int, note text, PRIMARY KEY (id, r)) PARTITION BY LIST (r);
CREATE TABLE part_a PARTITION OF part FOR VALUES IN ('a');
CREATE TABLE part_bc PARTITION OF part FOR VALUES IN ('b', 'c') PARTITION BY LIST (r);
CREATE TABLE part_b PARTITION OF part_bc FOR VALUES IN ('b');
SELECT interlock.enable_versioning('part'), interlock.enable_history('part');
CREATE TABLE part_c (dropped int, note text, version bigint NOT NULL DEFAULT 1, r text NOT NULL, a int, id int NOT NULL, UNIQUE (id));
ALTER TABLE part_c DROP dropped;
ALTER TABLE part_bc ATTACH PARTITION part_c FOR VALUES IN ('c');
INSERT INTO part VALUES (1, 'a', 0), (2, 'b', 0), (3, 'c', 0);
UPDATE part SET a = 1;
UPDATE part_c SET a = 2; UPDATE part_bc SET a = 3 WHERE id = 2;
UPDATE part SET r = 'c' WHERE id = 1;
DELETE FROM part WHERE id = 2;
SELECT key, version, operation, row_data, changed, before FROM part_history ORDER BY id;
SELECT operation FROM interlock.row_history('part', '{"id": 1, "r": "a"}');
SELECT operation FROM interlock.row_history('part_c', '{"id": 1, "r": "c"}');
SELECT interlock.enable_history('part_a'); SELECT interlock.disable_history('part_a');
TRUNCATE part_history;
TRUNCATE part;
SELECT key, operation FROM part_history ORDER BY key;
-- what is not captured: a partition truncated by itself, dropped, detached
INSERT INTO part VALUES (1, 'a', 0), (2, 'b', 0), (3, 'c', 0);
TRUNCATE part_history;
TRUNCATE part_a; ALTER TABLE part_bc DETACH PARTITION part_c; UPDATE part_c SET a = 9; DROP TABLE part_b;
SELECT count(*) FROM part_history;
SELECT tgname FROM pg_trigger WHERE tgrelid = 'part_c'::regclass;
-- DETACH leaves a trigger behind, which does nothing; it goes with disable_history or enable_history
ALTER TABLE part_bc ATTACH PARTITION part_c FOR VALUES IN ('c');
SELECT interlock.disable_history('part_c');
SELECT interlock.disable_history('part_c');
ALTER TABLE part_bc ATTACH PARTITION part_c FOR VALUES IN ('c'); UPDATE part_c SET a = 10; ALTER TABLE part_bc DETACH PARTITION part_c;
-- one with a history of its own cannot become a partition before that is off
SELECT interlock.enable_history('part_c');
UPDATE part_c SET a = 11;
ALTER TABLE part_bc ATTACH PARTITION part_c FOR VALUES IN ('c');
SELECT interlock.disable_history('part_c');
ALTER TABLE part_bc ATTACH PARTITION part_c FOR VALUES IN ('c');
SELECT operation, row_data->'a' AS a FROM part_history UNION ALL SELECT 'of its own: ' || operation, row_data->'a' FROM part_c_history ORDER BY 2;
DROP TABLE part_history;
SELECT tgrelid::regclass, tgname FROM pg_trigger WHERE tgrelid::regclass::text LIKE 'part%' AND tgname LIKE '%interlock_history%';
UPDATE part SET a = 12;
DROP TABLE part, part_c_history;
-- the parts of a partitioned table that is detached write nothing into what was its parent's history
CREATE TABLE whole (id int, r text, PRIMARY KEY (id, r)) PARTITION BY LIST (r);
CREATE TABLE half PARTITION OF whole FOR VALUES IN ('a', 'b') PARTITION BY LIST (r);
CREATE TABLE quarter PARTITION OF half FOR VALUES IN ('a');
SELECT interlock.enable_history('whole');
INSERT INTO whole VALUES (1, 'a');
ALTER TABLE whole DETACH PARTITION half;
INSERT INTO half VALUES (2, 'a'); INSERT INTO quarter VALUES (3, 'a');
SELECT key FROM whole_history;
SELECT interlock.disable_history('half');
INSERT INTO half VALUES (4, 'a');
-- a partition's own history must end before that of the whole begins
SELECT interlock.enable_history('half');
SELECT interlock.disable_history('whole');
ALTER TABLE whole ATTACH PARTITION half FOR VALUES IN ('a', 'b');
SELECT interlock.enable_history('whole');
SELECT interlock.disable_history('half');
SELECT interlock.enable_history('whole');
INSERT INTO whole VALUES (5, 'a');
SELECT key FROM whole_history ORDER BY id;
DROP TABLE whole, whole_history, half_history;
-- tables that inherit have a history of their own or none
CREATE TABLE parent (id int PRIMARY KEY); CREATE TABLE child (PRIMARY KEY (id)) INHERITS (parent);
SELECT interlock.enable_history('parent');
INSERT INTO parent VALUES (1); INSERT INTO child VALUES (1); TRUNCATE parent;
SELECT operation FROM parent_history ORDER BY id;
DROP TABLE parent, child, parent_history;
-- temporary tables
CREATE TEMP TABLE passing (id int PRIMARY KEY); SELECT interlock.enable_history('passing');
INSERT INTO passing VALUES (1); SELECT operation FROM interlock.row_history('passing', 1);
DROP TABLE passing, passing_history;

-- Virtual columns (18): they are computed on reading, so no row has them
SELECT current_setting('server_version_num')::int >= 180000 AS virtual \gset
CREATE TABLE calc (id int PRIMARY KEY, a int);
\if :virtual
ALTER TABLE calc ADD b int GENERATED ALWAYS AS (a * 2) VIRTUAL;
\endif
SELECT interlock.enable_history('calc');
INSERT INTO calc VALUES (1, 1); UPDATE calc SET a = 2;
SELECT row_data, changed FROM interlock.row_history('calc', 1);
SELECT interlock.row_as_of('calc', 1, now());
DROP TABLE calc, calc_history;

DROP TABLE plain, plain_history;
SET client_min_messages = warning;
DROP SCHEMA "Odd schema" CASCADE;
DROP ROLE history_owner, history_stranger;
