-- Where a new row starts is found out when it is inserted, from the text that its default gives (ORM-1)
\set VERBOSITY terse
CREATE SCHEMA "Odd.Schema";
CREATE SCHEMA other;
-- a schema file makes the table first, or never makes the sequence
CREATE TABLE post (id int PRIMARY KEY, a int, lock_version int NOT NULL DEFAULT interlock.first_version('public.post_lock_version_start'::text));
INSERT INTO post VALUES (1) RETURNING *;
-- and is adopted, with a start of its own
SELECT interlock.enable_versioning('post', 'lock_version');
SELECT pg_get_expr(adbin, adrelid) FROM pg_attrdef WHERE adrelid = 'post'::regclass;
UPDATE post SET a = 1;
DELETE FROM post;
INSERT INTO post VALUES (1) RETURNING *;
-- again: nothing changes
SELECT interlock.enable_versioning('post', 'lock_version'), (SELECT count(*) FROM pg_class WHERE relname ~ '^post_lock_version_start');
-- what a schema tool dropped or replaced is put back, and the start is the old one
ALTER TABLE post ALTER lock_version SET DEFAULT 0;
SELECT interlock.enable_versioning('post', 'lock_version'), (SELECT count(*) FROM pg_class WHERE relname ~ '^post_lock_version_start');
DELETE FROM post;
INSERT INTO post VALUES (1) RETURNING *;
-- renamed and moved: table, column, sequence, schema
ALTER TABLE post RENAME TO "Post It";
INSERT INTO "Post It" VALUES (2) RETURNING *;
ALTER SEQUENCE post_lock_version_start RENAME TO "a 'start'";
INSERT INTO "Post It" VALUES (3) RETURNING *;
ALTER TABLE "Post It" SET SCHEMA "Odd.Schema";
INSERT INTO "Odd.Schema"."Post It" VALUES (4) RETURNING *;
ALTER SCHEMA "Odd.Schema" RENAME TO odd;
INSERT INTO odd."Post It" VALUES (5) RETURNING *;
UPDATE odd."Post It" SET a = 1 WHERE id = 5;
DELETE FROM odd."Post It" WHERE id = 5;
INSERT INTO odd."Post It" VALUES (5) RETURNING *;
-- enabled again it is called by its current name
SELECT interlock.enable_versioning('odd."Post It"', 'lock_version');
SELECT pg_get_expr(adbin, adrelid) FROM pg_attrdef WHERE adrelid = 'odd."Post It"'::regclass;
INSERT INTO odd."Post It" VALUES (6) RETURNING *;
-- two schemas that change their names: each table has its own start
CREATE SCHEMA blue;
CREATE SCHEMA green;
CREATE TABLE blue.t (id int PRIMARY KEY);
CREATE TABLE green.t (id int PRIMARY KEY);
SELECT interlock.enable_versioning('blue.t'), interlock.enable_versioning('green.t');
INSERT INTO blue.t VALUES (1, 41);
INSERT INTO green.t VALUES (1, 7);
DELETE FROM blue.t;
DELETE FROM green.t;
ALTER SCHEMA blue RENAME TO red;
ALTER SCHEMA green RENAME TO blue;
ALTER SCHEMA red RENAME TO green;
INSERT INTO green.t VALUES (1) RETURNING *;
INSERT INTO blue.t VALUES (1) RETURNING *;
-- a copy of the table starts where that one does, until it has a start of its own
CREATE TABLE copied (LIKE green.t INCLUDING ALL);
INSERT INTO copied VALUES (1) RETURNING *;
SELECT interlock.enable_versioning('copied');
INSERT INTO copied VALUES (2) RETURNING *;
DELETE FROM copied WHERE id = 2;
DROP SCHEMA green, blue CASCADE;
INSERT INTO copied VALUES (2) RETURNING *;
-- a table that inherits, too
CREATE TABLE parent (id int PRIMARY KEY);
SELECT interlock.enable_versioning('parent');
CREATE TABLE child (PRIMARY KEY (id)) INHERITS (parent);
SELECT interlock.enable_versioning('child');
INSERT INTO child VALUES (1, 30);
DELETE FROM child;
INSERT INTO child VALUES (1) RETURNING *;
INSERT INTO parent VALUES (1) RETURNING *;
DROP TABLE parent CASCADE;
-- partitions have that of the table; detached they go on above it
CREATE TABLE parted (id int PRIMARY KEY) PARTITION BY LIST (id);
CREATE TABLE parted_1 PARTITION OF parted FOR VALUES IN (1);
SELECT interlock.enable_versioning('parted');
CREATE TABLE parted_2 PARTITION OF parted FOR VALUES IN (2);
INSERT INTO parted VALUES (1, 5), (2, 5);
DELETE FROM parted;
INSERT INTO parted_1 VALUES (1) RETURNING *;
INSERT INTO parted_2 VALUES (2) RETURNING *;
ALTER SEQUENCE parted_version_start RENAME TO renamed_start;
INSERT INTO parted_2 VALUES (3) ON CONFLICT DO NOTHING;
DELETE FROM parted_2;
INSERT INTO parted_2 VALUES (2) RETURNING *;
ALTER TABLE parted DETACH PARTITION parted_2;
SELECT interlock.enable_versioning('parted_2');
DELETE FROM parted_2;
DROP TABLE parted;
INSERT INTO parted_2 VALUES (2) RETURNING *;
DROP TABLE parted_2;
-- the sequence is needed by the default
DROP SEQUENCE copied_version_start;
-- CASCADE takes the default with it
DROP SEQUENCE copied_version_start CASCADE;
SELECT interlock.enable_versioning('copied');
-- another role's table that gives the same text raises nobody's rows beyond what leaves room, and stands for none that is there
CREATE ROLE interlock_thief;
CREATE ROLE interlock_inserter;
GRANT CREATE, USAGE ON SCHEMA other TO interlock_thief;
CREATE TABLE early (id int PRIMARY KEY, version int DEFAULT interlock.first_version('public.early_version_start'));
SET ROLE interlock_thief;
CREATE TABLE other.bait (id int PRIMARY KEY, version bigint DEFAULT interlock.first_version('public.early_version_start'), w bigint DEFAULT interlock.first_version('public.copied_version_start'));
CREATE SEQUENCE other.high OWNED BY other.bait.version;
CREATE SEQUENCE other.higher OWNED BY other.bait.w;
SELECT setval('other.high', 9223372036854775807), setval('other.higher', 9223372036854775807);
RESET ROLE;
INSERT INTO copied VALUES (7) RETURNING *;
INSERT INTO early VALUES (1) RETURNING *;
GRANT SELECT ON SEQUENCE other.high TO PUBLIC;
SELECT interlock.enable_versioning('early');
INSERT INTO early VALUES (2) RETURNING version < 2 ^ 31;
-- what others create under the name of a start that is missing stops nobody, and is found
CREATE TABLE other.shop (id int PRIMARY KEY, version int);
SELECT interlock.enable_versioning('other.shop');
ALTER TABLE other.shop ALTER version DROP DEFAULT;
DROP SEQUENCE other.shop_version_start;
ALTER TABLE other.shop ALTER version SET DEFAULT interlock.first_version('other.shop_version_start');
SET ROLE interlock_thief;
CREATE VIEW other.shop_version_start AS SELECT 1;
RESET ROLE;
INSERT INTO other.shop VALUES (1) RETURNING *;
SET ROLE interlock_thief;
DROP VIEW other.shop_version_start;
CREATE SEQUENCE other.shop_version_start;
SELECT setval('other.shop_version_start', 9223372036854775807);
RESET ROLE;
GRANT INSERT, SELECT ON other.shop TO interlock_inserter;
GRANT USAGE ON SCHEMA other TO interlock_inserter;
INSERT INTO other.shop VALUES (2) RETURNING *;
SET ROLE interlock_inserter;
INSERT INTO other.shop VALUES (3) RETURNING *;
RESET ROLE;
SELECT rel, severity, finding, advice FROM interlock.advise() WHERE rel = 'other.shop'::regclass;
SELECT interlock.enable_versioning('other.shop');
SELECT pg_get_expr(adbin, adrelid) FROM pg_attrdef WHERE adrelid = 'other.shop'::regclass;
INSERT INTO other.shop VALUES (6, 1);
DELETE FROM other.shop;
INSERT INTO other.shop VALUES (6) RETURNING *;
DROP TABLE other.shop;
-- a table that has the old name of one that was moved has another sequence
CREATE SCHEMA attic;
CREATE TABLE doc (id int PRIMARY KEY, version bigint);
SELECT interlock.enable_versioning('doc');
INSERT INTO doc VALUES (1, 7);
DELETE FROM doc;
ALTER TABLE doc SET SCHEMA attic;
CREATE TABLE doc (id int PRIMARY KEY, version bigint);
SELECT interlock.enable_versioning('doc');
INSERT INTO doc VALUES (1) RETURNING *;
INSERT INTO attic.doc VALUES (1) RETURNING *;
DROP TABLE doc;
DROP SCHEMA attic CASCADE;
-- a start that the reader may not read
REVOKE SELECT ON SEQUENCE copied_version_start FROM PUBLIC;
GRANT INSERT ON copied TO interlock_thief;
GRANT USAGE ON SCHEMA public TO interlock_thief;
SET ROLE interlock_thief;
INSERT INTO copied VALUES (8);
RESET ROLE;
-- no names of sequences
SELECT interlock.first_version('nowhere.to_be_seen'), interlock.first_version('public.nothing');
SELECT interlock.first_version('unqualified');
SELECT interlock.first_version('a.b.c');
SELECT interlock.first_version('"a');
SELECT interlock.first_version('');
SELECT interlock.first_version('public.copied');
SELECT interlock.first_version(repeat('x', 1000) || '.y');
SELECT interlock.first_version(NULL);
DROP TABLE copied, early;
DROP SCHEMA other, odd CASCADE;
DROP OWNED BY interlock_thief;
DROP ROLE interlock_thief, interlock_inserter;
