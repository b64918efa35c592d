-- Suppressing history: scopes, what they hide, and what they leave behind.
\set VERBOSITY terse
CREATE ROLE suppression_loader;
CREATE TABLE x (id int PRIMARY KEY, a int, b text);
CREATE TABLE y (id int PRIMARY KEY, x int REFERENCES x ON DELETE CASCADE, a int);
CREATE TABLE z (id int PRIMARY KEY);
SELECT interlock.enable_versioning('x'), interlock.enable_history('x'), interlock.enable_history('y');
INSERT INTO x SELECT g, 0, '' FROM generate_series(1, 5) g;
INSERT INTO y SELECT g, g, 0 FROM generate_series(1, 3) g;
TRUNCATE x_history RESTART IDENTITY; TRUNCATE y_history RESTART IDENTITY;
CREATE FUNCTION logged() RETURNS TABLE (rel regclass, operation text, key jsonb, columns text[], row_count bigint, writer text, reason text) LANGUAGE sql
    AS 'SELECT rel, operation, key, columns, row_count, writer, reason FROM interlock.operation_log ORDER BY id NULLS LAST, written_at';

-- HIS-1, C7: the inner scope's end is not the outer one's
BEGIN;
SELECT interlock.suppress_history('x', 'outer');
SELECT interlock.suppress_history('x', 'inner');
SELECT interlock.restore_history('x');
UPDATE x SET a = 1 WHERE id = 1;
SELECT interlock.restore_history('x');
UPDATE x SET a = 2 WHERE id = 1;
COMMIT;
SELECT row_data FROM x_history;
SELECT * FROM logged();

-- HIS-2, C8: scopes follow savepoints, whether opened or closed after them
BEGIN;
SELECT interlock.suppress_history('x');
SAVEPOINT s;
SELECT interlock.suppress_history('x');
SELECT 1/0;
ROLLBACK TO s;
UPDATE x SET a = 3 WHERE id = 1;
SELECT interlock.restore_history('x');
UPDATE x SET a = 4 WHERE id = 1;
SELECT interlock.suppress_history('x');
SAVEPOINT t;
SELECT interlock.restore_history('x');
ROLLBACK TO t;
UPDATE x SET a = 5 WHERE id = 1;
SAVEPOINT u;
SELECT interlock.restore_history('x');
RELEASE u;
UPDATE x SET a = 6 WHERE id = 1;
SAVEPOINT v;
SELECT interlock.suppress_history('x');
RELEASE v;
UPDATE x SET a = 7 WHERE id = 1;
SELECT interlock.restore_history('x');
COMMIT;
SELECT row_data->'a' AS a FROM x_history ORDER BY id;
-- an exception block is a savepoint
BEGIN;
DO $$ BEGIN PERFORM interlock.suppress_history('x'); RAISE 'oh'; EXCEPTION WHEN others THEN NULL; END $$;
UPDATE x SET a = 8 WHERE id = 1;
SELECT interlock.restore_history('x');
ROLLBACK;

-- HIS-3: nothing outlives the transaction, by whatever end; not for the session
BEGIN; SELECT interlock.suppress_history(); COMMIT;
UPDATE x SET a = 9 WHERE id = 1;
BEGIN; SELECT interlock.suppress_history('x'); ROLLBACK;
UPDATE x SET a = 10 WHERE id = 1;
SELECT interlock.suppress_history('x');
UPDATE x SET a = 11 WHERE id = 1;
DO $$ BEGIN PERFORM interlock.suppress_history('x'); COMMIT; UPDATE x SET a = 12 WHERE id = 1; END $$;
SELECT row_data->'a' AS a FROM x_history WHERE (row_data->'a')::int > 8 ORDER BY id;
-- HIS-8: ends that no begin belongs to
SELECT interlock.restore_history('x');
SELECT interlock.restore_history();
BEGIN; SELECT interlock.suppress_history('x'); SELECT interlock.restore_history('y'); ROLLBACK;
BEGIN; SELECT interlock.suppress_history('x'); SELECT interlock.restore_history(); ROLLBACK;
SELECT interlock.suppress_history('z');
SELECT interlock.restore_history('z');
SELECT interlock.suppress_history('pg_class');
SELECT interlock.suppress_history(0);

-- HIS-4: one table only; the others that a statement writes to, by triggers and cascades, are recorded
CREATE FUNCTION touch_y() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN UPDATE y SET a = a + 1 WHERE y.x = NEW.id; RETURN NULL; END';
CREATE TRIGGER touch AFTER UPDATE ON x FOR EACH ROW EXECUTE FUNCTION touch_y();
TRUNCATE x_history RESTART IDENTITY; TRUNCATE y_history RESTART IDENTITY;
BEGIN;
SELECT interlock.suppress_history('x');
UPDATE x SET a = 20 WHERE id <= 2;
DELETE FROM x WHERE id = 3;
COMMIT;
SELECT count(*) FROM x_history;
SELECT operation, row_data FROM y_history ORDER BY id;
-- all tables, and one of them again inside: both must end
BEGIN;
SELECT interlock.suppress_history(reason => 'all'), interlock.suppress_history('y', 'y');
UPDATE x SET a = 21 WHERE id = 2;
SELECT interlock.restore_history();
UPDATE x SET a = 22 WHERE id = 2;
COMMIT;
SELECT row_data->'a' AS a FROM x_history;
SELECT count(*) FROM y_history;
DROP TRIGGER touch ON x;

-- HIS-6, C10: decided when the row is written, not when constraints are checked at the end
CREATE FUNCTION noop() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';
CREATE CONSTRAINT TRIGGER late AFTER UPDATE ON x INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION noop();
TRUNCATE x_history RESTART IDENTITY;
BEGIN;
SET CONSTRAINTS ALL DEFERRED;
SELECT interlock.suppress_history('x');
UPDATE x SET a = 30 WHERE id = 1;
SELECT interlock.restore_history('x');
UPDATE x SET a = 31 WHERE id = 1;
COMMIT;
SELECT row_data->'a' AS a FROM x_history;
DROP TRIGGER late ON x;
-- C9: a function's settings end with it, a scope does not
CREATE FUNCTION with_setting() RETURNS int LANGUAGE sql SET work_mem = '1MB' AS $$ SELECT interlock.suppress_history('x') $$;
BEGIN; SELECT with_setting(); UPDATE x SET a = 32 WHERE id = 1; SELECT interlock.restore_history('x'); COMMIT;
SELECT count(*) FROM x_history;

-- HIS-7: the version moves on, and each statement leaves a line
SELECT version FROM x WHERE id = 1;
DELETE FROM interlock.write_log;
BEGIN;
SELECT interlock.suppress_history('x', 'nightly import');
SELECT interlock.set_writer('importer');
UPDATE x SET a = 40 WHERE id = 1;
UPDATE x SET a = a + CASE id WHEN 2 THEN 1 ELSE 0 END, b = CASE id WHEN 4 THEN 'b' ELSE b END WHERE id IN (2, 4);
INSERT INTO x VALUES (6, 0, ''), (7, 0, '');
DELETE FROM x WHERE id = 7;
UPDATE x SET a = 0 WHERE false;
SELECT * FROM logged();
SELECT interlock.suppress_history('x', 'innermost');
UPDATE x SET id = 8 WHERE id = 6;
ROLLBACK;
SELECT * FROM logged();
BEGIN;
SELECT interlock.suppress_history('x');
SAVEPOINT s;
UPDATE x SET a = 41;
ROLLBACK TO s;
UPDATE x SET a = 42;
COMMIT;
SELECT * FROM logged();
SELECT version FROM x WHERE id = 1;
-- so does TRUNCATE, with the number of rows
BEGIN; SELECT interlock.suppress_history(); TRUNCATE x CASCADE; SELECT rel, operation, key, row_count FROM logged() WHERE operation = 'truncate'; ROLLBACK;
-- a loop that opens and closes does not pile up, and ends at zero
BEGIN;
DO $$ BEGIN FOR i IN 1..1000 LOOP PERFORM interlock.suppress_history('x', repeat('r', 1000));
    BEGIN PERFORM interlock.restore_history('x'); EXCEPTION WHEN others THEN RAISE; END; END LOOP; END $$;
SELECT interlock.suppress_history('x');
COMMIT;

-- Who may: nobody until it is granted, and then with a look at the table
GRANT SELECT, UPDATE ON x TO suppression_loader;
SET ROLE suppression_loader;
SELECT interlock.suppress_history('x');
SELECT interlock.suppress_history();
RESET ROLE;
GRANT EXECUTE ON FUNCTION interlock.suppress_history(regclass, text) TO suppression_loader;
SET ROLE suppression_loader;
SELECT interlock.suppress_history('y');
BEGIN; SELECT interlock.suppress_history('x', 'load'); UPDATE x SET a = 50 WHERE id = 1; COMMIT;
SELECT count(*) FROM interlock.operation_log;
RESET ROLE;
SELECT written_by, reason, operation, row_count FROM interlock.operation_log ORDER BY id DESC LIMIT 1;

-- Partitions stand for their parent, and one statement leaves one line for all of them
CREATE TABLE part (id int, r text, a int, PRIMARY KEY (id, r)) PARTITION BY LIST (r);
CREATE TABLE part_a PARTITION OF part FOR VALUES IN ('a');
CREATE TABLE part_b (a int, r text NOT NULL, id int NOT NULL);
ALTER TABLE part ATTACH PARTITION part_b FOR VALUES IN ('b');
SELECT interlock.enable_history('part');
BEGIN;
SELECT interlock.suppress_history('part_b', 'all of part');
INSERT INTO part VALUES (1, 'a', 0), (2, 'b', 0);
UPDATE part SET a = 1;
UPDATE part_a SET a = 2;
UPDATE part SET r = 'b' WHERE id = 1;
SELECT interlock.restore_history('part');
COMMIT;
SELECT * FROM logged() WHERE rel = 'part'::regclass;
SELECT count(*) FROM part_history;

-- rows of COPY FREEZE, which are of no transaction
BEGIN;
CREATE TABLE frozen (id int PRIMARY KEY);
SELECT interlock.enable_history('frozen'), interlock.suppress_history('frozen');
COPY frozen FROM stdin WITH (FREEZE);
1
2
\.
COMMIT;
SELECT operation, row_count FROM logged() WHERE rel = 'frozen'::regclass;
DROP TABLE frozen, frozen_history;

DROP TABLE x, x_history, y, y_history, z, part, part_history;
DROP FUNCTION logged, touch_y, noop, with_setting;
DELETE FROM interlock.write_log;
REVOKE ALL ON FUNCTION interlock.suppress_history(regclass, text) FROM suppression_loader;
DROP ROLE suppression_loader;
