-- Versioned rows: where a row starts whose key was there before (OCC-9)
\set VERBOSITY terse
CREATE TABLE reborn (id int PRIMARY KEY, a int);
SELECT interlock.enable_versioning('reborn');
CREATE FUNCTION change_key() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.id := OLD.id + 1; RETURN NEW; END $$;
-- a row that lost its key, whoever took it
INSERT INTO reborn VALUES (1), (10);
UPDATE reborn SET a = a;
CREATE TRIGGER change_key BEFORE UPDATE ON reborn FOR EACH ROW EXECUTE FUNCTION change_key();
UPDATE reborn SET a = 1 WHERE id = 1 RETURNING *;
DROP TRIGGER change_key ON reborn;
INSERT INTO reborn VALUES (1) RETURNING *;
UPDATE reborn SET id = 11 WHERE id = 10 RETURNING *;
INSERT INTO reborn VALUES (10) RETURNING *;
-- constant defaults, that of an integer cast to bigint among them, give way to the floor, others stay
CREATE TABLE defaults (id int PRIMARY KEY, i int DEFAULT 1, b bigint DEFAULT 1, e bigint DEFAULT 1::bigint, r bigint DEFAULT (random() * 0)::bigint + 7);
SELECT interlock.enable_versioning('defaults', 'i'), interlock.disable_versioning('defaults');
SELECT interlock.enable_versioning('defaults', 'e'), interlock.disable_versioning('defaults');
SELECT interlock.enable_versioning('defaults', 'r'), interlock.disable_versioning('defaults');
SELECT interlock.enable_versioning('defaults', 'b'), interlock.disable_versioning('defaults'), interlock.enable_versioning('defaults', 'b');
INSERT INTO defaults VALUES (1) RETURNING *;
UPDATE defaults SET id = 1;
DELETE FROM defaults;
INSERT INTO defaults VALUES (1) RETURNING *;
DROP TABLE defaults;
-- an administrator enables it for the owner
CREATE ROLE interlock_owner2;
CREATE TABLE others (id int PRIMARY KEY);
ALTER TABLE others OWNER TO interlock_owner2;
SELECT interlock.enable_versioning('others');
SET ROLE interlock_owner2;
INSERT INTO others VALUES (1);
UPDATE others SET id = 2;
INSERT INTO others VALUES (1) RETURNING *;
SELECT interlock.disable_versioning('others');
-- the owner needs CREATE on the schema, for the sequence
SELECT interlock.enable_versioning('others');
RESET ROLE;
DROP TABLE others;
DROP ROLE interlock_owner2;
-- the sequence is looked for once; gone, or another, it is looked for again
CREATE TABLE forgetful (id int PRIMARY KEY);
SELECT interlock.enable_versioning('forgetful');
INSERT INTO forgetful SELECT generate_series(1, 5);
DELETE FROM forgetful WHERE id = 1;
ALTER TABLE forgetful ALTER version DROP DEFAULT;
DROP SEQUENCE forgetful_version_floor;
DELETE FROM forgetful WHERE id = 2;
CREATE SEQUENCE other_floor OWNED BY forgetful.version;
UPDATE forgetful SET id = 9 WHERE id = 3;
DELETE FROM forgetful WHERE id = 9;
SELECT last_value, is_called FROM other_floor;
DROP TABLE forgetful;
-- nobody uses the range up for the others, not even in a transaction that is rolled back
CREATE ROLE interlock_clerk;
CREATE TABLE reborn4 (id int PRIMARY KEY, version int);
CREATE TABLE reborn8 (id int PRIMARY KEY, version bigint);
SELECT interlock.enable_versioning('reborn4'), interlock.enable_versioning('reborn8');
GRANT SELECT, INSERT, UPDATE, DELETE ON reborn4, reborn8 TO interlock_clerk;
SET ROLE interlock_clerk;
BEGIN;
INSERT INTO reborn4 VALUES (1, 2147483647);
INSERT INTO reborn8 VALUES (1, 9223372036854775807);
DELETE FROM reborn4;
DELETE FROM reborn8;
ROLLBACK;
INSERT INTO reborn4 VALUES (2) RETURNING *;
INSERT INTO reborn8 VALUES (2) RETURNING *;
UPDATE reborn4 SET id = 3 RETURNING *;
UPDATE reborn8 SET id = 3 RETURNING *;
INSERT INTO reborn4 VALUES (2) RETURNING *;
INSERT INTO reborn8 VALUES (2) RETURNING *;
RESET ROLE;
DROP TABLE reborn4, reborn8;
DROP ROLE interlock_clerk;
-- a key that is generated, which our trigger sees before it is computed: the floor holds for it as well
CREATE TABLE made (base int NOT NULL, id int GENERATED ALWAYS AS (base * 10) STORED PRIMARY KEY, v text);
SELECT interlock.enable_versioning('made');
INSERT INTO made (base) VALUES (1);
UPDATE made SET v = 'a';
UPDATE made SET v = 'b';
UPDATE made SET base = 2;
INSERT INTO made (base) VALUES (1) RETURNING id, version > 3 AS above;
SELECT interlock.versioned_update('made', 10, version, '{"base": 3}') > version AS moves FROM made WHERE id = 10;
INSERT INTO made (base) VALUES (1);
SELECT (SELECT version FROM made WHERE id = 10) > (SELECT version FROM made WHERE id = 30) - 1 AS above;
SET interlock.direct_execution = off;
SELECT interlock.versioned_update('made', 10, version, '{"base": 4}') > version AS moves FROM made WHERE id = 10;
RESET interlock.direct_execution;
INSERT INTO made (base) VALUES (1);
SELECT (SELECT version FROM made WHERE id = 10) > (SELECT version FROM made WHERE id = 40) - 1 AS above;
DROP TABLE made;
DROP TABLE reborn;
DROP FUNCTION change_key;
-- the floor of a default with an old name is looked for once, and again when a sequence gets a column
CREATE TABLE renamed (id int PRIMARY KEY);
SELECT interlock.enable_versioning('renamed');
ALTER SEQUENCE renamed_version_floor RENAME TO elsewhere;
INSERT INTO renamed VALUES (1), (2) RETURNING *;
CREATE TABLE twin (version bigint DEFAULT interlock.first_version('public.renamed_version_floor'));
CREATE SEQUENCE twin_floor START 100;
SELECT nextval('twin_floor');
INSERT INTO renamed VALUES (3) RETURNING *;
ALTER SEQUENCE twin_floor OWNED BY twin.version;
INSERT INTO renamed VALUES (4) RETURNING *;
DROP TABLE twin;
INSERT INTO renamed VALUES (5) RETURNING *;
DROP TABLE renamed;
