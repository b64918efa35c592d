-- What a table's owner can leave behind in the session of who sweeps: nothing that would run with its rights
\set SHOW_CONTEXT never
CREATE ROLE interlock_mallory;
CREATE SCHEMA mallory AUTHORIZATION interlock_mallory;
SET ROLE interlock_mallory;
CREATE TABLE mallory.page (id int PRIMARY KEY);
SELECT interlock.enable_marker('mallory.page', '1 millisecond');
INSERT INTO mallory.page VALUES (1), (2);
CREATE FUNCTION mallory.lower(text) RETURNS text LANGUAGE plpgsql AS $$ BEGIN
    RAISE WARNING 'lower runs as %', current_user; RETURN $1; END $$;
CREATE FUNCTION mallory.stay() RETURNS int LANGUAGE plpgsql AS $$ BEGIN
    RAISE WARNING 'the cursor runs as %', current_user; RETURN 1; END $$;
CREATE TABLE mallory.diary (command text, error text);
CREATE FUNCTION mallory.try_all() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE command text; error text; mine refcursor := 'mine'; BEGIN
    IF NEW.lock_status = 1 THEN RETURN NEW; END IF;
    PERFORM set_config('search_path', 'mallory, pg_catalog', false), set_config('row_security', 'off', false),
            set_config('default_transaction_read_only', 'on', false), set_config('mallory.own', 'x', false);
    FOREACH command IN ARRAY ARRAY[
        'SET ROLE interlock_mallory', 'SET SESSION AUTHORIZATION interlock_mallory', 'RESET SESSION AUTHORIZATION',
        'CREATE TEMP TABLE lasting (a int)', 'LISTEN lasting', 'UNLISTEN *', 'PREPARE lasting AS SELECT 1',
        'DEALLOCATE ALL', 'DISCARD ALL', 'DECLARE lasting CURSOR WITH HOLD FOR SELECT 1',
        'SET session_replication_role = replica', 'RESET ALL', 'CLOSE other']
    LOOP
        BEGIN
            error := NULL;
            EXECUTE command;
        EXCEPTION WHEN OTHERS THEN error := sqlstate;
        END;
        INSERT INTO mallory.diary VALUES (command, error);
    END LOOP;
    PERFORM set_config('search_path', 'mallory, pg_catalog', false);
    CLOSE mine;
    OPEN mine FOR SELECT mallory.stay();
    RETURN NEW; END $$;
CREATE TRIGGER try_all BEFORE UPDATE ON mallory.page FOR EACH ROW EXECUTE FUNCTION mallory.try_all();
SELECT count(interlock.lock_row('mallory.page', id, 'anna')), pg_sleep(0.01) FROM mallory.page;
RESET ROLE;
BEGIN;
DECLARE mine CURSOR FOR SELECT 'the caller''s' AS query;
DECLARE other CURSOR FOR SELECT 'the caller''s, too' AS query;
SELECT * FROM interlock.sweep();
SELECT lower('X'), current_setting('search_path'), current_setting('row_security'),
       current_setting('default_transaction_read_only'), current_setting('mallory.own', true) AS own;
SELECT name FROM pg_cursors WHERE name IN ('mine', 'other', 'lasting');
FETCH other;
SAVEPOINT s;
FETCH mine;
ROLLBACK TO SAVEPOINT s;
COMMIT;
SELECT lower('X'), current_setting('search_path'), current_setting('row_security'),
       current_setting('default_transaction_read_only'), current_setting('mallory.own', true) AS own;
SELECT command, error, count(*) FROM mallory.diary GROUP BY 1, 2 ORDER BY 1, 2;
DROP SCHEMA mallory CASCADE;

-- deferred triggers fire at once when the sweep is alone in its transaction; else the caller decides
CREATE TABLE page (id int PRIMARY KEY, parent int REFERENCES page DEFERRABLE INITIALLY DEFERRED);
INSERT INTO page VALUES (1), (2), (3);
SELECT interlock.enable_marker('page', '1 millisecond');
CREATE FUNCTION late() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    RAISE NOTICE 'row % of % is free', NEW.id, current_user; RETURN NEW; END $$;
CREATE CONSTRAINT TRIGGER late AFTER UPDATE ON page DEFERRABLE INITIALLY DEFERRED FOR EACH ROW
    WHEN (NEW.lock_status = 0) EXECUTE FUNCTION late();
SELECT (interlock.lock_row('page', id, 'anna')).locked, pg_sleep(0.01) FROM page;
BEGIN;
INSERT INTO page VALUES (4, 9);
SELECT * FROM interlock.sweep(1);
SET CONSTRAINTS late IMMEDIATE;
SELECT * FROM interlock.sweep(1);
UPDATE page SET parent = 1 WHERE id = 4;
COMMIT;
DO $$ BEGIN
    INSERT INTO page VALUES (5, 9);
    PERFORM interlock.sweep();
    UPDATE page SET parent = 1 WHERE id = 5; END $$;
SELECT * FROM interlock.sweep();
DROP TABLE page;
DROP FUNCTION late;

-- a batch is locked by the places of its rows, not by another search of the index for all that is due
CREATE TABLE page (id int PRIMARY KEY);
INSERT INTO page SELECT generate_series(1, 2000);
SELECT interlock.enable_marker('page');
VACUUM ANALYZE page;
BEGIN;
SET LOCAL session_replication_role = replica;
UPDATE page SET lock_status = 1, lock_by = 'anna', lock_time = now(), lock_until = now() WHERE id % 200 = 0;
COMMIT;
BEGIN;
SELECT coalesce(sum(idx_scan), 0) AS before FROM pg_stat_xact_user_tables WHERE relname = 'page' \gset
SELECT * FROM interlock.sweep();
SELECT idx_scan - :before AS searches FROM pg_stat_xact_user_tables WHERE relname = 'page';
COMMIT;
DROP TABLE page;

-- without the index: rows are marked and saved in their page (HOT), and swept all the same
CREATE TABLE page (id int PRIMARY KEY, body text) WITH (fillfactor = 50);
INSERT INTO page SELECT generate_series(1, 20);
CREATE FUNCTION sweep_indexes() RETURNS bigint LANGUAGE sql AS
$$ SELECT count(*) FROM pg_index WHERE indrelid = 'page'::regclass AND indpred IS NOT NULL $$;
CREATE FUNCTION updates_in_page() RETURNS bigint LANGUAGE sql AS $$ SELECT pg_stat_get_xact_tuples_hot_updated('page'::regclass) $$;
CREATE FUNCTION marked_in_page() RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE before bigint := updates_in_page();
BEGIN
    PERFORM interlock.lock_row('page', 1, 'anna');
    PERFORM interlock.save_row('page', 1, 'anna', '{"body": "new"}');
    RETURN updates_in_page() - before;
END $$;
SELECT interlock.enable_marker('page', sweep_index => false);
SELECT sweep_indexes(), marked_in_page();
SELECT count((interlock.lock_row('page', g, 'anna', '1 millisecond')).locked) FROM generate_series(1, 5) g;
SELECT pg_sleep(0.01);
SELECT * FROM interlock.sweep(3);
SELECT * FROM interlock.sweep();
SELECT count(*) FROM page WHERE lock_status = 1;
SELECT interlock.enable_marker('page');
SELECT sweep_indexes(), marked_in_page();
SELECT interlock.enable_marker('page', sweep_index => false);
SELECT sweep_indexes();
SELECT interlock.enable_marker('page', sweep_index => NULL);
-- an index of the owner's stays, whatever its name is
CREATE INDEX my_interlock_sweep_idx ON page (body);
SELECT interlock.enable_marker('page', sweep_index => false);
SELECT 'my_interlock_sweep_idx'::regclass;
DROP TABLE page;
-- built beforehand, with the definition of the one that enable_marker makes: adopted, and the owner's
CREATE TABLE page (id int PRIMARY KEY, lock_until timestamptz, lock_status bigint NOT NULL DEFAULT 0);
CREATE INDEX due ON page (lock_until) WHERE lock_status = 1;
SELECT interlock.enable_marker('page');
SELECT indexrelid::regclass FROM pg_index WHERE indrelid = 'page'::regclass AND NOT indisprimary;
SELECT interlock.disable_marker('page');
SELECT 'due'::regclass;
-- another condition, and one that is not valid
DROP INDEX due;
CREATE INDEX other_status ON page (lock_until) WHERE lock_status = 2;
CREATE INDEX other_column ON page (lock_until) WHERE id = 1;
CREATE INDEX invalid ON page (lock_until) WHERE lock_status = 1;
UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'invalid'::regclass;
SELECT interlock.enable_marker('page');
SELECT indexrelid::regclass FROM pg_index WHERE indrelid = 'page'::regclass AND NOT indisprimary ORDER BY indexrelid::regclass::text COLLATE "C";
DROP TABLE page;
DROP FUNCTION sweep_indexes, marked_in_page, updates_in_page;

DROP ROLE interlock_mallory;
