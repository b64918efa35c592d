-- The write log: who sees its lines, and what one line is.
CREATE ROLE log_alice;
CREATE ROLE log_bob;
CREATE SCHEMA log_private AUTHORIZATION log_alice;
GRANT CREATE ON SCHEMA public TO log_alice, log_bob;
GRANT EXECUTE ON FUNCTION interlock.suppress_history TO log_alice, log_bob;
SET client_min_messages = error; -- of writers that were granted to nobody

-- Lines are visible to the owner of the table, also those of this transaction that are not written yet.
SET ROLE log_alice;
CREATE TABLE secret (id int PRIMARY KEY, price int, note text);
INSERT INTO secret VALUES (1, 10, 'classified');
SELECT interlock.own_columns('secret', 'w', '{price,note}', 'skip');
GRANT SELECT (id), UPDATE ON secret TO log_bob;
CREATE TABLE log_private.hidden (id int PRIMARY KEY, note text);
SELECT interlock.own_columns('log_private.hidden', 'w', '{note}', 'skip');
INSERT INTO log_private.hidden VALUES (1, 'hidden');
UPDATE log_private.hidden SET note = 'x';
SET ROLE log_bob;
BEGIN;
UPDATE secret SET note = 'x', price = 5 WHERE id = 1;
SELECT count(*) FROM interlock_internal.list_unwritten_lines();
SELECT count(*) FROM interlock.skipped_writes;
SET LOCAL ROLE log_alice;
SELECT table_name, stored FROM interlock_internal.list_unwritten_lines();
COMMIT;
SET ROLE log_bob;
-- neither by a function that is cheaper than the filter, nor by the name of the table
CREATE FUNCTION leak(text) RETURNS boolean LANGUAGE plpgsql COST 0.0000001 AS $$
BEGIN
    RAISE EXCEPTION 'seen: %', $1;
END $$;
SELECT count(*) FROM interlock.skipped_writes WHERE leak(stored::text);
SELECT count(*) FROM interlock.operation_log WHERE leak(key::text);
SELECT count(*) FROM interlock.forced_writes WHERE leak(stored::text);
TABLE interlock.write_log;
TABLE interlock_internal.all_writes;
SET ROLE log_alice;
ALTER TABLE secret RENAME TO renamed;
SET ROLE log_bob;
CREATE TABLE secret (x int);
SELECT count(*) FROM interlock.skipped_writes;
SET ROLE log_alice;
SELECT rel, table_name, columns, stored, given, owner FROM interlock.skipped_writes ORDER BY id;
-- a reader who may not use the schema
RESET ROLE;
REVOKE ALL ON SCHEMA log_private FROM log_alice;
SET ROLE log_alice;
SELECT rel, table_name FROM interlock.skipped_writes ORDER BY id;
RESET ROLE;
TRUNCATE interlock.write_log;

-- A line for each owner of columns, and for each writer
CREATE TABLE two (id int PRIMARY KEY, a int, b int);
SELECT interlock.own_columns('two', 'w2', '{a}', 'skip'), interlock.own_columns('two', 'w3', '{b}', 'skip');
INSERT INTO two SELECT g, 0, 0 FROM generate_series(1, 4) g;
UPDATE two SET a = 1, b = 1;
CREATE FUNCTION as_writer(n int) RETURNS int LANGUAGE plpgsql AS $$
BEGIN
    PERFORM interlock.set_writer('w' || n % 2);
    RETURN n;
END $$;
UPDATE two SET a = as_writer(id) WHERE id > 0;
SELECT columns, owner, writer, row_count, key FROM interlock.skipped_writes ORDER BY owner, writer NULLS FIRST;
TRUNCATE interlock.write_log;

-- One line for a statement, whatever writes in between: 200 rows, and a trigger that writes for each
CREATE TABLE outer_rows (id int PRIMARY KEY, a int);
CREATE TABLE inner_rows (id int PRIMARY KEY, a int);
INSERT INTO outer_rows SELECT g, 0 FROM generate_series(1, 200) g;
INSERT INTO inner_rows SELECT g, 0 FROM generate_series(1, 3) g;
CREATE FUNCTION write_inner() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE inner_rows SET a = a + 1;
    RETURN NULL;
END $$;
CREATE TRIGGER write_inner AFTER UPDATE ON outer_rows FOR EACH ROW EXECUTE FUNCTION write_inner();
SELECT interlock.enable_history('outer_rows'), interlock.enable_history('inner_rows');
BEGIN;
SELECT interlock.suppress_history();
UPDATE outer_rows SET a = 1;
SELECT table_name, count(*), min(row_count), max(row_count) FROM interlock.operation_log GROUP BY 1 ORDER BY 1;
COMMIT;
SELECT table_name, count(*), min(row_count), max(row_count) FROM interlock.operation_log GROUP BY 1 ORDER BY 1;
TRUNCATE interlock.write_log;

-- Partitions that take turns: the columns are listed once
CREATE TABLE turns (id int, a int, b int, PRIMARY KEY (id)) PARTITION BY HASH (id);
CREATE TABLE turns_0 PARTITION OF turns FOR VALUES WITH (MODULUS 2, REMAINDER 0);
CREATE TABLE turns_1 PARTITION OF turns FOR VALUES WITH (MODULUS 2, REMAINDER 1);
SELECT interlock.own_columns('turns', 'w', '{a,b}', 'skip');
INSERT INTO turns SELECT g, 0, 0 FROM generate_series(1, 100) g;
UPDATE turns SET a = 1, b = 1;
SELECT table_name, columns, row_count FROM interlock.skipped_writes;
TRUNCATE interlock.write_log;

-- A transaction that says late that it only reads
BEGIN;
UPDATE two SET b = 3 WHERE id = 1;
SET TRANSACTION READ ONLY;
COMMIT;
SELECT table_name, row_count FROM interlock.skipped_writes;
TRUNCATE interlock.write_log;

-- A cast that would write lines while a line is made is not called
CREATE TYPE mood AS ENUM ('good', 'bad');
CREATE FUNCTION mood_json(mood) RETURNS json LANGUAGE plpgsql AS $$
BEGIN
    FOR i IN 1..100 LOOP
        UPDATE two SET b = 100 + i WHERE id = 1;
    END LOOP;
    RETURN to_json(repeat($1::text, 100));
END $$;
CREATE CAST (mood AS json) WITH FUNCTION mood_json(mood);
CREATE TABLE moody (id int PRIMARY KEY, m mood);
INSERT INTO moody VALUES (1, 'good');
SELECT interlock.own_columns('moody', 'w', '{m}', 'skip');
BEGIN;
UPDATE moody SET m = 'bad';
UPDATE moody SET m = 'bad';
COMMIT;
SELECT table_name, row_count, left(given->>'m', 6) AS given FROM interlock.skipped_writes ORDER BY table_name;
-- numbers that are short in memory and long as text
TRUNCATE interlock.write_log;
CREATE TABLE numbers (id int PRIMARY KEY, n numeric, a numeric[], j jsonb);
INSERT INTO numbers VALUES (1, 1, '{1}', '1');
SELECT interlock.own_columns('numbers', 'w', '{n,a,j}', 'skip');
UPDATE numbers SET n = 1e131000, a = ARRAY[1e131000, 2], j = to_jsonb(1e131000);
SELECT given, stored FROM interlock.skipped_writes;
DROP TABLE numbers;

TRUNCATE interlock.write_log;
RESET client_min_messages;
DROP TABLE two, outer_rows, inner_rows, outer_rows_history, inner_rows_history, turns, moody;
DROP FUNCTION as_writer, write_inner;
DROP TYPE mood CASCADE;
DROP OWNED BY log_alice, log_bob;
DROP ROLE log_alice, log_bob;
