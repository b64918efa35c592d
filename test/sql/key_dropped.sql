-- OPS-13: the check of a domain drops the index of the key that the call has chosen
\set VERBOSITY terse
\set SHOW_CONTEXT never
SET client_min_messages = warning;
CREATE FUNCTION checked(value int) RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN
    IF current_setting('key_dropped.armed', true) = 'on' THEN
        PERFORM set_config('key_dropped.armed', 'off', false);
        DROP INDEX IF EXISTS the_key;
    END IF;
    RETURN true; END $$;
CREATE DOMAIN number AS int CHECK (checked(VALUE));
CREATE TABLE rows (id number NOT NULL, body text, size number);
CREATE UNIQUE INDEX the_key ON rows (id);
SELECT interlock.enable_versioning('rows'), interlock.enable_marker('rows'), interlock.enable_history('rows');
INSERT INTO rows VALUES (1, 'a'), (2, 'b');
UPDATE rows SET size = 2 WHERE id = 2;
CREATE FUNCTION attempt(command text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE result text;
BEGIN
    BEGIN
        PERFORM set_config('key_dropped.armed', 'on', false);
        EXECUTE 'SELECT r::text FROM ' || command || ' r' INTO result;
        RAISE EXCEPTION '%', 'passed ' || (to_regclass('the_key') IS NULL)::text;
    EXCEPTION WHEN OTHERS THEN
        RETURN sqlstate || ' ' || sqlerrm;
    END;
END $$;
CREATE VIEW attempts AS SELECT left(command, 40) AS command, attempt('interlock.' || command) AS attempt FROM unnest(ARRAY[
    $$versioned_update('rows', 1, 1, '{"size": 5}')$$, $$try_versioned_update('rows', 1, 1, '{"size": 5}', '{"size": 4}', 'merge')$$,
    $$versioned_upsert('rows', 3, NULL::bigint, '{"size": 5}')$$, $$versioned_update_many('rows', '[{"key": 1, "version": 1, "changes": {"size": 5}}]')$$,
    $$save_row('rows', 1, 'me', '{"size": 5}')$$, $$revert_row('rows', 2, 1)$$]) command;
SELECT interlock.lock_row('rows', 1, 'me') IS NOT NULL AS locked;
SELECT * FROM attempts;
-- by statements the errors are those of the statements
SET interlock.direct_execution = off;
SELECT * FROM attempts;
DROP VIEW attempts;
DROP TABLE rows, rows_history;
DROP DOMAIN number;
DROP FUNCTION checked, attempt;
