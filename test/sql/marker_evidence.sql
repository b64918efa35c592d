-- MRK-2: a statement that releases a marker by the name of its holder passes; nothing else is evidence of the holder
\set VERBOSITY terse
\set SHOW_CONTEXT never
CREATE TABLE orders (id int PRIMARY KEY, amount int, status int NOT NULL DEFAULT 0, lock_by text, lock_time timestamptz);
INSERT INTO orders VALUES (123, 10), (124, 10), (125, 10);
CREATE TABLE users (name text PRIMARY KEY);
INSERT INTO users VALUES ('A'), ('B');
SET client_min_messages = warning;
SELECT interlock.enable_marker('orders', status_column => 'status', holder_column => 'lock_by', time_column => 'lock_time');
-- the state-marker article, as it stands: lock, save and release, each by a statement
UPDATE orders SET status = 1, lock_by = 'A', lock_time = now() WHERE id = 123 AND status = 0;
UPDATE orders SET status = 1, lock_by = 'B', lock_time = now() WHERE id = 123 AND status = 0;
UPDATE orders SET amount = 11, status = 0 WHERE id = 123 AND lock_by = 'B';
UPDATE orders SET amount = 11, status = 0 WHERE id = 123 AND lock_by = 'A' RETURNING amount, status, lock_by;
UPDATE orders SET status = 1, lock_by = 'A', lock_time = now() WHERE id = 123 AND status = 0;
UPDATE orders SET amount = 12, status = 0, lock_by = NULL WHERE id = 123 AND lock_by = 'A' RETURNING amount, status, lock_by;

-- each of these is tried on a row that A holds, and rolled back
CREATE FUNCTION tries(statement text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    written int;
BEGIN
    UPDATE orders SET status = 1, lock_by = 'A', lock_time = now() WHERE id = 123;
    EXECUTE statement;
    GET DIAGNOSTICS written = ROW_COUNT;
    RAISE EXCEPTION USING ERRCODE = 'ZZ999', MESSAGE = format('%s row(s)', written);
EXCEPTION
    WHEN SQLSTATE 'IL004' THEN RETURN 'refused';
    WHEN OTHERS THEN RETURN sqlerrm;
END $$;
CREATE FUNCTION my_name() RETURNS text LANGUAGE sql AS $$SELECT 'A'$$;
CREATE FUNCTION releases() RETURNS boolean LANGUAGE plpgsql AS 'BEGIN UPDATE orders SET status = 0 WHERE id = 123; RETURN true; END';
CREATE FUNCTION same(text, text) RETURNS boolean LANGUAGE sql AS 'SELECT $1 = $2';
CREATE VIEW my_orders AS SELECT id, status AS state, lock_by AS who FROM orders;
CREATE TABLE attempt (number serial, statement text);
INSERT INTO attempt (statement) VALUES
    ($q$UPDATE orders SET status = 0 WHERE id = 123 AND lock_by = 'A'$q$),
    ($q$UPDATE orders SET status = 0 WHERE id = 123 AND 'A' = lock_by$q$),
    ($q$UPDATE orders SET status = 0 WHERE id = 123 AND lock_by = my_name()$q$),
    ($q$UPDATE orders SET status = 0 WHERE id = 123 AND lock_by IN ('A')$q$),
    ($q$UPDATE orders SET status = 0 WHERE id = 123 AND lock_by = (SELECT min(name) FROM users)$q$),
    ($q$UPDATE orders SET status = 0 WHERE (id = 123 AND lock_by = 'A') OR (id = 124 AND lock_by = 'B')$q$),
    ($q$UPDATE my_orders SET state = 0 WHERE id = 123 AND who = 'A'$q$),
    ($q$UPDATE orders SET status = 0, lock_by = '' WHERE id = 123 AND lock_by = 'A'$q$),
    ($q$INSERT INTO orders VALUES (123, 10) ON CONFLICT (id) DO UPDATE SET status = 0 WHERE orders.lock_by = 'A'$q$),
    ($q$MERGE INTO orders USING users u ON id = 123 AND lock_by = 'A' AND u.name = 'A' WHEN MATCHED THEN UPDATE SET status = 0$q$),
    -- no release
    ($q$UPDATE orders SET amount = 12 WHERE id = 123 AND lock_by = 'A'$q$),
    ($q$UPDATE orders SET lock_by = 'B' WHERE id = 123 AND lock_by = 'A'$q$),
    ($q$DELETE FROM orders WHERE id = 123 AND lock_by = 'A'$q$),
    -- SET is no evidence: ORMs write back whole rows
    ($q$UPDATE orders SET status = 0, lock_by = 'A' WHERE id = 123$q$),
    ($q$UPDATE orders SET amount = 12, status = 1, lock_by = 'A', lock_time = lock_time WHERE id = 123$q$),
    ($q$UPDATE orders SET amount = 12, status = 1, lock_by = lock_by WHERE id = 123$q$),
    -- nor is what may hold for other holders, too
    ($q$UPDATE orders SET status = 0 WHERE id = 123 AND lock_by IN ('A', 'B')$q$),
    ($q$UPDATE orders SET status = 0 WHERE id = 123 AND (lock_by = 'A' OR amount > 0)$q$),
    ($q$UPDATE orders SET status = 0 WHERE id = 123 AND lock_by = lock_by$q$),
    ($q$UPDATE orders SET status = 0 WHERE id = 123 AND lock_by IS NOT NULL$q$),
    ($q$UPDATE orders SET status = 0 WHERE id = 123 AND lock_by LIKE 'A'$q$),
    ($q$UPDATE orders SET status = 0 WHERE id = 123 AND lock_by <= 'A'$q$),
    ($q$UPDATE orders SET status = 0 WHERE id = 123 AND lower(lock_by) = 'a'$q$),
    ($q$UPDATE orders SET status = 0 WHERE id = 123 AND lock_by::char(9) = 'A'$q$),
    ($q$UPDATE orders SET status = 0 WHERE id = 123 AND lock_by::bpchar = 'A  '$q$),
    ($q$UPDATE orders SET status = 0 WHERE id = 123 AND same(lock_by, 'A')$q$),
    ($q$UPDATE orders SET status = 0 WHERE id = 123 AND lock_by = (SELECT lock_by FROM orders WHERE id = 123)$q$),
    ($q$UPDATE orders SET status = 0 WHERE id = 123 AND lock_by IN (SELECT name FROM users)$q$),
    ($q$UPDATE orders SET status = 0 WHERE id = 123 AND EXISTS (SELECT FROM users WHERE name = lock_by)$q$),
    ($q$UPDATE orders SET status = 0 FROM users WHERE id = 123 AND lock_by = name$q$),
    ($q$UPDATE orders SET status = 0 WHERE id = 123 AND lock_by IS NOT DISTINCT FROM 'A'$q$),
    ($q$UPDATE orders SET status = 0 WHERE id = 123 AND interlock.any_version(lock_by)$q$),
    ($q$WITH w AS (UPDATE orders SET status = 0 WHERE id = 124) UPDATE orders SET status = 0 WHERE id = 123 AND lock_by = 'A'$q$),
    -- nor the comparison of a statement around
    ($q$UPDATE orders SET status = CASE WHEN releases() THEN 0 END WHERE id = 125 AND lock_by = 'C'$q$);
UPDATE orders SET status = 1, lock_by = 'C' WHERE id = 125;
SELECT tries(statement), statement FROM attempt ORDER BY number;

-- prepared, for other holders as well
PREPARE release AS UPDATE orders SET status = 0 WHERE id = $1 AND lock_by = $2;
SET plan_cache_mode = force_generic_plan;
UPDATE orders SET status = 1, lock_by = 'B', lock_time = now() WHERE id = 124;
EXECUTE release(124, 'A');
EXECUTE release(124, NULL);
EXECUTE release(124, 'B');
SELECT id, status, lock_by FROM orders WHERE id = 124;
RESET plan_cache_mode;
DEALLOCATE release;
DROP VIEW my_orders;
DROP TABLE orders, users, attempt;
DROP FUNCTION tries, my_name, same, releases;
