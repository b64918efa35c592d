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
DROP TABLE reborn;
DROP FUNCTION change_key;
