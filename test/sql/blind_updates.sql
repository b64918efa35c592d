-- VER-1: what happens to blind updates of a versioned table, and which are none
\set VERBOSITY default
\set SHOW_CONTEXT never
CREATE TABLE item (id int PRIMARY KEY, body text, views int DEFAULT 0);
INSERT INTO item SELECT i, 'old' FROM generate_series(1, 9) i;
SELECT interlock.enable_versioning('item', ignore_columns => '{views}', blind_updates => 'never');
SELECT interlock.enable_versioning('item', ignore_columns => '{views}', blind_updates => NULL);
SELECT interlock.enable_versioning('item', ignore_columns => '{views}', blind_updates => 'reject');
SELECT pg_get_triggerdef(oid) FROM pg_trigger WHERE tgrelid = 'item'::regclass;

-- the error, for what it was
UPDATE item SET body = 'new' WHERE id = 1;
DELETE FROM item WHERE id = 1;
INSERT INTO item VALUES (1, 'new') ON CONFLICT (id) DO UPDATE SET body = excluded.body;
UPDATE item SET body = 'new' WHERE id = 1 AND version = 1;
UPDATE item SET body = 'new' WHERE id = 1 AND version = 1;
-- what writes no row is no blind update
INSERT INTO item VALUES (10, 'new') ON CONFLICT (id) DO UPDATE SET body = excluded.body;
UPDATE item SET body = 'new' WHERE id = 99;
DO $$ BEGIN -- PostgreSQL 19 can return the row that is there
    IF current_setting('server_version_num')::int >= 190000 THEN EXECUTE 'INSERT INTO item VALUES (1) ON CONFLICT (id) DO SELECT FOR UPDATE RETURNING id'; END IF;
END $$;
EXPLAIN (COSTS OFF) UPDATE item SET body = 'new' WHERE id = 1;
EXPLAIN (COSTS OFF, ANALYZE, TIMING OFF, SUMMARY OFF) UPDATE item SET body = 'new' WHERE id = 1;
COPY (UPDATE item SET body = 'new' WHERE id = 1 RETURNING id) TO stdout;
\set VERBOSITY terse
-- ignored columns alone, and those that keep their value
UPDATE item SET views = views + 1 WHERE id = 1;
UPDATE item SET views = views WHERE id = 1;
UPDATE item SET views = views + 1, body = 'other' WHERE id = 1;
UPDATE item SET body = body WHERE id = 1;
-- they tell nothing of the others
BEGIN;
UPDATE item SET views = views + 1 WHERE id = 1;
UPDATE item SET body = 'other' WHERE id = 1;
ROLLBACK;
BEGIN;
UPDATE item SET views = views + 1 WHERE id = 1;
SAVEPOINT one;
UPDATE item SET body = body WHERE id = 1 AND version > 0;
ROLLBACK TO one;
UPDATE item SET body = body || '?' WHERE id = 1 AND interlock.any_version(version);
UPDATE item SET views = views + 1 WHERE id = 1;
UPDATE item SET body = 'other' WHERE id = 1;
ROLLBACK;
-- a statement that is right for any version; the planner removes the function
UPDATE item SET body = body || '!' WHERE id = 1 AND interlock.any_version(version);
EXPLAIN (COSTS OFF) UPDATE item SET body = body || '!' WHERE id = 1 AND interlock.any_version(version);
SELECT interlock.any_version(now()), interlock.any_version(1), interlock.any_version('1'), interlock.any_version(NULL);
-- a version that the statement sets itself
UPDATE item SET body = 'x', version = 3 WHERE id = 1;

-- rows of the transaction: written by it, and not by a savepoint that is rolled back
BEGIN;
UPDATE item SET body = 'mine' WHERE id = 2 AND version = 1;
UPDATE item SET body = 'mine again' WHERE id = 2;
INSERT INTO item VALUES (11, 'new');
UPDATE item SET body = 'mine' WHERE id = 11;
SAVEPOINT a;
UPDATE item SET body = 'mine' WHERE id = 3 AND version = 1;
UPDATE item SET body = 'mine again' WHERE id = 3;
RELEASE a;
UPDATE item SET body = 'mine again' WHERE id = 3;
SAVEPOINT b;
UPDATE item SET body = 'mine' WHERE id = 4 AND version = 1;
ROLLBACK TO b;
UPDATE item SET body = 'mine again' WHERE id = 4;
ROLLBACK;

-- rows that assert_version holds
BEGIN;
SELECT interlock.assert_version('item', 2, 1);
UPDATE item SET body = 'asserted' WHERE id = 2;
UPDATE item SET id = 20 WHERE id = 2;
UPDATE item SET body = 'asserted' WHERE id = 20;
SAVEPOINT a;
SELECT interlock.assert_version('item', 3, 1);
SAVEPOINT b;
SELECT interlock.assert_version('item', 4, 1), interlock.assert_version('item', 4, 1);
RELEASE b;
UPDATE item SET body = 'asserted' WHERE id = 4;
ROLLBACK TO a;
DELETE FROM item WHERE id = 3;
ROLLBACK;
BEGIN;
SELECT interlock.assert_version('item', 3, 1);
COMMIT;
UPDATE item SET body = 'later' WHERE id = 3;
BEGIN ISOLATION LEVEL REPEATABLE READ;
SELECT interlock.assert_version('item', 3, 1);
DELETE FROM item WHERE id = 3;
ROLLBACK;

-- cursors: the row as it was fetched
BEGIN;
DECLARE c CURSOR FOR SELECT * FROM item WHERE id = 3;
FETCH c;
UPDATE item SET body = 'by cursor' WHERE CURRENT OF c;
ROLLBACK;
DO $$
DECLARE
    c CURSOR FOR SELECT * FROM item WHERE id < 4 FOR UPDATE;
BEGIN
    FOR r IN c LOOP
        UPDATE item SET body = 'by cursor' WHERE CURRENT OF c;
    END LOOP;
    RAISE EXCEPTION USING ERRCODE = 'ZZ999', MESSAGE = 'all updated';
END $$;

-- functions, by a statement and without one, and where they fire triggers of others
CREATE FUNCTION other() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN new; END';
CREATE FUNCTION run_calls() RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    PERFORM interlock.versioned_update('item', 5, 1, '{"body": "by a call"}'),
            interlock.try_versioned_update('item', 6, 1, '{"body": "by a call"}', '{"body": "old"}', 'merge'),
            interlock.versioned_upsert('item', 6, 2, '{"body": "by a call"}'),
            interlock.versioned_delete('item', 5, 2),
            interlock.lock_row('item', 7, 'A'), interlock.touch_row('item', 7, 'A'),
            interlock.save_row('item', 7, 'A', '{"body": "by its holder"}'), interlock.force_unlock_row('item', 7, 'done');
    RAISE EXCEPTION USING ERRCODE = 'ZZ999', MESSAGE = 'all done';
END $$;
SELECT interlock.enable_marker('item');
SELECT run_calls();
SET interlock.direct_execution = off;
SELECT run_calls();
CREATE TRIGGER a_other BEFORE UPDATE ON item FOR EACH ROW EXECUTE FUNCTION other();
SELECT run_calls();
RESET interlock.direct_execution;
SELECT run_calls();
-- a function that runs inside of a blind statement, and the statement itself
UPDATE item SET body = 'new' WHERE CASE WHEN id = 1 THEN interlock.versioned_update('item', 6, 1, '{"body": "inside"}') = '2' END;
DROP TRIGGER a_other ON item;
-- a trigger that a function fires writes on its own account
CREATE FUNCTION writes_blindly() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN UPDATE item SET body = ''by a trigger'' WHERE id = 1; RETURN new; END';
CREATE TRIGGER a_writes BEFORE UPDATE ON item FOR EACH ROW WHEN (new.id = 8) EXECUTE FUNCTION writes_blindly();
SELECT interlock.versioned_update('item', 8, 1, '{"body": "by a call"}');
DROP TRIGGER a_writes ON item;
CREATE TRIGGER a_writes AFTER UPDATE ON item FOR EACH ROW WHEN (new.id = 8) EXECUTE FUNCTION writes_blindly();
SELECT interlock.versioned_update('item', 8, 1, '{"body": "by a call"}');
DROP TRIGGER a_writes ON item;
SELECT interlock.disable_marker('item');

-- actions of foreign keys, but not what the triggers of their rows do
CREATE TABLE line (id int PRIMARY KEY, item int REFERENCES item ON UPDATE CASCADE ON DELETE CASCADE, body text);
CREATE TABLE note (id int PRIMARY KEY, line int REFERENCES line ON DELETE SET NULL);
INSERT INTO line VALUES (1, 8, 'old'), (2, 9, 'old');
INSERT INTO note VALUES (1, 1);
SELECT interlock.enable_versioning(rel, blind_updates => 'reject') FROM unnest('{line,note}'::regclass[]) rel;
BEGIN;
UPDATE item SET id = 80 WHERE id = 8 AND version = 1;
DELETE FROM item WHERE id = 80;
SELECT * FROM line;
SELECT * FROM note;
ROLLBACK;
BEGIN;
UPDATE item SET id = 80 WHERE id = 8 AND version = 1;
UPDATE line SET body = 'new' WHERE id = 1;
ROLLBACK;
CREATE FUNCTION writes_other() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE line SET body = 'by a trigger' WHERE id = 2;
    RETURN coalesce(new, old);
END $$;
CREATE TRIGGER a_writes BEFORE UPDATE ON line FOR EACH ROW WHEN (new.id = 1) EXECUTE FUNCTION writes_other();
UPDATE item SET id = 80 WHERE id = 8 AND version = 1;
DROP TRIGGER a_writes ON line;
CREATE TRIGGER a_writes AFTER DELETE ON line FOR EACH ROW WHEN (old.id = 1) EXECUTE FUNCTION writes_other();
DELETE FROM item WHERE id = 8 AND version = 1;
DROP TABLE note, line;
-- also where the sweeper deletes
CREATE TABLE charge (id int PRIMARY KEY, scope text, key text, FOREIGN KEY (scope, key) REFERENCES interlock.idempotency ON DELETE SET NULL);
SELECT interlock.enable_versioning('charge', blind_updates => 'reject');
SELECT interlock.define_idempotency_scope('charge');
SELECT outcome FROM interlock.idempotency_claim('charge', 'first', '{}');
INSERT INTO charge VALUES (1, 'charge', 'first');
UPDATE interlock.idempotency SET expires_at = now() - interval '1 s', claimed_at = now() - interval '1 d', deadline = now() - interval '1 h' WHERE scope = 'charge';
SELECT interlock.idempotency_sweep();
SELECT * FROM charge;
DROP TABLE charge;
DELETE FROM interlock.idempotency_scope WHERE scope = 'charge';

-- plans that were made before, and that outlive a change of the mode
CREATE TABLE early (id int PRIMARY KEY, body text);
INSERT INTO early VALUES (1, 'old');
SET plan_cache_mode = force_generic_plan;
PREPARE early_update AS UPDATE early SET body = 'prepared' WHERE id = $1;
CREATE FUNCTION early_update() RETURNS void LANGUAGE plpgsql AS 'BEGIN UPDATE early SET body = ''in a function'' WHERE id = 1; END';
EXECUTE early_update(1);
SELECT early_update();
SELECT interlock.enable_versioning('early');
EXECUTE early_update(1);
SELECT interlock.enable_versioning('early', blind_updates => 'reject');
EXECUTE early_update(1);
SELECT early_update();
SELECT interlock.enable_versioning('early', blind_updates => 'warn');
EXECUTE early_update(1);
SELECT early_update();
SELECT interlock.disable_versioning('early');
EXECUTE early_update(1);
SELECT early_update();
DEALLOCATE early_update;
RESET plan_cache_mode;
DROP TABLE early;
DROP FUNCTION early_update;

-- a warning for each statement and table
SELECT interlock.enable_versioning('item', ignore_columns => '{views}', blind_updates => 'warn');
UPDATE item SET body = 'new';
UPDATE item SET body = 'newer', views = 1 WHERE id = 1;
DELETE FROM item WHERE id > 5;
-- and none
SELECT interlock.enable_versioning('item', ignore_columns => '{views}');
UPDATE item SET body = 'newest' WHERE id < 3;

-- the owner's exemption: for the owner alone, and logged
SELECT interlock.enable_versioning('item', blind_updates => 'reject');
\set VERBOSITY default
CREATE ROLE interlock_owner;
CREATE ROLE interlock_clerk;
ALTER TABLE item OWNER TO interlock_owner;
GRANT SELECT (id), UPDATE, DELETE ON item TO interlock_clerk;
CREATE FUNCTION of_owner() RETURNS void SECURITY DEFINER LANGUAGE sql AS $$UPDATE item SET body = 'by definer' WHERE id = 1$$;
ALTER FUNCTION of_owner() OWNER TO interlock_owner;
SET ROLE interlock_owner;
BEGIN;
SET LOCAL interlock.blind_updates = 'allow';
DELETE FROM item WHERE id = 5;
UPDATE item SET body = upper(body);
SELECT rel, operation, key, row_count, writer, reason, written_by FROM interlock.operation_log ORDER BY written_at, operation;
COMMIT;
SELECT rel, operation, key, row_count, reason FROM interlock.operation_log ORDER BY operation;
UPDATE item SET body = lower(body);
SET interlock.blind_updates = 'reject';
SET ROLE interlock_clerk;
SET interlock.blind_updates = 'allow';
UPDATE item SET body = 'by a clerk' WHERE id = 1;
SELECT of_owner();
SELECT * FROM interlock.operation_log;
-- DETAIL shows what the writer may SELECT
DELETE FROM item;
RESET interlock.blind_updates;
RESET ROLE;

\set VERBOSITY terse
-- row security: its conditions are not the statement's
ALTER TABLE item ENABLE ROW LEVEL SECURITY;
CREATE POLICY all_rows ON item USING (version = version) WITH CHECK (true);
CREATE POLICY current_version ON item AS RESTRICTIVE USING (version <= 100);
GRANT SELECT ON item TO interlock_clerk;
SET ROLE interlock_clerk;
UPDATE item SET body = 'by a clerk' WHERE id = 1;
SELECT version AS now FROM item WHERE id = 1 \gset
UPDATE item SET body = 'by a clerk' WHERE id = 1 AND version = :now;
BEGIN;
SELECT interlock.assert_version('item', 1, :now + 1);
UPDATE item SET body = 'asserted' WHERE id = 1;
ROLLBACK;
RESET ROLE;

-- a partitioned table: rows of its partitions, and those that move
CREATE TABLE part (id int, body text, PRIMARY KEY (id)) PARTITION BY RANGE (id);
CREATE TABLE part_1 PARTITION OF part FOR VALUES FROM (0) TO (10);
CREATE TABLE part_2 PARTITION OF part FOR VALUES FROM (10) TO (20);
INSERT INTO part VALUES (1, 'old'), (11, 'old');
SELECT interlock.enable_versioning('part', blind_updates => 'reject');
UPDATE part SET body = 'new';
BEGIN;
SELECT interlock.assert_version('part', 1, 1);
UPDATE part SET body = 'asserted' WHERE id = 1;
UPDATE part SET id = 12 WHERE id = 1;
SELECT interlock.assert_version('part', 11, 1);
UPDATE part_2 SET body = 'asserted' WHERE id = 11;
UPDATE part SET id = 2 WHERE id = 11;
ROLLBACK;
-- without SELECT on the table its place is not known
GRANT SELECT (id, version), UPDATE ON part TO interlock_clerk;
SET ROLE interlock_clerk;
BEGIN;
SELECT interlock.assert_version('part', 1, 1);
UPDATE part SET body = 'asserted' WHERE id = 1;
ROLLBACK;
RESET ROLE;
BEGIN;
SET LOCAL interlock.blind_updates = 'allow';
UPDATE part SET body = 'by a migration';
COMMIT;
SELECT rel, operation, row_count FROM interlock.operation_log WHERE rel = 'part'::regclass;
SELECT interlock.enable_versioning('part', ignore_columns => '{id}', blind_updates => 'reject');
BEGIN;
UPDATE part SET id = 13 WHERE id = 1;
DELETE FROM part WHERE id = 13 AND version = 1;
DELETE FROM part WHERE id = 11;
ROLLBACK;
SELECT interlock.enable_versioning('part', blind_updates => 'warn');
UPDATE part SET id = 13 WHERE id = 1;
SELECT blind FROM interlock.blind_updates WHERE rel = 'part'::regclass;
DROP TABLE part;

-- shared columns
CREATE TABLE product (id int PRIMARY KEY, price int, title text);
INSERT INTO product VALUES (1, 10, 'old');
SELECT interlock.share_columns('product', '{price}', blind_updates => 'reject');
SELECT interlock.enable_versioning('product');
SELECT interlock.share_columns('product', '{price}', blind_updates => 'perhaps');
SELECT interlock.share_columns('product', '{price}', blind_updates => 'reject');
SELECT interlock.group_columns('product', '{price,title}');
SELECT pg_get_triggerdef(oid) FROM pg_trigger WHERE tgrelid = 'product'::regclass AND tgname ~ 'columns';
UPDATE product SET title = 'new' WHERE id = 1;
UPDATE product SET title = 'newer', price = 10 WHERE id = 1;
UPDATE product SET price = 11 WHERE id = 1;
UPDATE product SET price = 11 WHERE id = 1 AND version = 3;
DELETE FROM product WHERE id = 1 RETURNING price;
INSERT INTO product VALUES (1, 10, 'old');
SELECT interlock.disable_versioning('product');
SELECT interlock.share_columns('product', '{price}', blind_updates => 'warn');
UPDATE product SET price = price + 1;
SELECT interlock.release_columns('product', '{price}');
UPDATE product SET price = price + 1;
SELECT interlock.share_columns('product', '{price}');
UPDATE product SET price = price + 1;
DROP TABLE product;

-- counts, in each mode and refused ones, too
CREATE TABLE counted (id int PRIMARY KEY, body text);
INSERT INTO counted SELECT i FROM generate_series(1, 4) i;
SELECT interlock.enable_versioning('counted');
UPDATE counted SET body = 'blind';
UPDATE counted SET body = 'over it' WHERE id < 3;
UPDATE counted SET body = 'sighted' WHERE version = 2;
SELECT rel, blind, overwrote, since <= clock_timestamp() AS since FROM interlock.blind_updates WHERE rel = 'counted'::regclass;
SELECT interlock.enable_versioning('counted', blind_updates => 'reject');
UPDATE counted SET body = 'refused' WHERE id = 1;
SELECT blind, overwrote FROM interlock.blind_updates WHERE rel = 'counted'::regclass;
SELECT what, used > 0 AS used, "of" FROM interlock.usage WHERE what ~ 'blind';
-- those of tables that the reader may SELECT
SET ROLE interlock_clerk;
SELECT rel FROM interlock.blind_updates WHERE rel = 'counted'::regclass;
RESET ROLE;
GRANT SELECT (id) ON counted TO interlock_clerk;
SET ROLE interlock_clerk;
SELECT rel FROM interlock.blind_updates WHERE rel = 'counted'::regclass;
RESET ROLE;
DROP TABLE counted;

-- what functions have written of a row that nobody need have read is no reason to write it blindly
CREATE TABLE stock (id int PRIMARY KEY, name text, n int NOT NULL DEFAULT 5);
CREATE TABLE part (id int PRIMARY KEY, stock_id int REFERENCES stock);
INSERT INTO stock VALUES (1, 'a');
SELECT interlock.enable_versioning('stock', blind_updates => 'reject'), interlock.guard_children('part', 'stock'), interlock.enable_escrow('stock', 'n', fold_moves_version => true);
BEGIN;
SELECT interlock.adjust('stock', 1, 'n', -1);
UPDATE stock SET name = 'stale' WHERE id = 1;
ROLLBACK;
SELECT interlock.adjust('stock', 1, 'n', -1);
BEGIN;
SELECT interlock.adjust('stock', 1, 'n', -1);
SELECT interlock.fold_escrow('stock');
UPDATE stock SET name = 'stale' WHERE id = 1;
ROLLBACK;
BEGIN;
SELECT interlock.set_escrow('stock', 1, 'n', 3);
UPDATE stock SET name = 'stale' WHERE id = 1;
ROLLBACK;
BEGIN;
INSERT INTO part VALUES (1, 1);
SET CONSTRAINTS ALL IMMEDIATE;
UPDATE stock SET name = 'stale' WHERE id = 1;
ROLLBACK;
BEGIN;
SELECT interlock.assert_version('stock', 1, 2);
SELECT interlock.set_escrow('stock', 1, 'n', 3);
UPDATE stock SET name = 'asserted' WHERE id = 1;
SELECT interlock.adjust('stock', 1, 'n', 1);
UPDATE stock SET name = 'read' WHERE id = 1 AND version = 5;
UPDATE stock SET name = 'its own' WHERE id = 1;
SELECT * FROM stock;
ROLLBACK;
DROP TABLE part, stock;
-- also where no trigger is fired for the write
CREATE TABLE doc (id int PRIMARY KEY, name text);
CREATE TABLE line (id int PRIMARY KEY, doc_id int REFERENCES doc);
INSERT INTO doc VALUES (1, 'a');
SELECT interlock.enable_versioning('doc', blind_updates => 'reject'), interlock.guard_children('line', 'doc');
BEGIN;
INSERT INTO line VALUES (1, 1);
SET CONSTRAINTS ALL IMMEDIATE;
UPDATE doc SET name = 'stale' WHERE id = 1;
ROLLBACK;
BEGIN;
SELECT interlock.versioned_update('doc', 1, 1, '{"name": "b"}');
INSERT INTO line VALUES (1, 1);
SET CONSTRAINTS ALL IMMEDIATE;
UPDATE doc SET name = 'c' WHERE id = 1;
ROLLBACK;
DROP TABLE line, doc;

-- triggers that enable_versioning did not make
CREATE TABLE forged (id int PRIMARY KEY, version int DEFAULT 1);
INSERT INTO forged VALUES (1);
CREATE TRIGGER v BEFORE UPDATE ON forged FOR EACH ROW EXECUTE FUNCTION interlock_internal.version_trigger('version', 'often', 'move');
UPDATE forged SET id = 2;
DROP TRIGGER v ON forged;
CREATE TRIGGER v BEFORE UPDATE ON forged FOR EACH ROW EXECUTE FUNCTION interlock_internal.version_trigger('version', 'reject', 'move');
UPDATE forged SET id = 2;
DROP TABLE forged;

DROP TABLE item;
DROP FUNCTION other, run_calls, writes_blindly, writes_other, of_owner;
DROP ROLE interlock_owner;
DROP ROLE interlock_clerk;
