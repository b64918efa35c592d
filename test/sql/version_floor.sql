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
DROP TABLE reborn;
DROP FUNCTION change_key;
