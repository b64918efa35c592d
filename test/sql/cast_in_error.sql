-- SEC-1: the key is shown in an error by its text: a cast to json that the owner of its type has made, and that catches errors,
-- is not called
\set VERBOSITY terse
SET client_min_messages = warning;
CREATE TYPE letter AS ENUM ('a', 'b', 'c');
CREATE FUNCTION letter_to_json(letter) RETURNS json LANGUAGE plpgsql AS $$ BEGIN
    BEGIN
        PERFORM 1 / 0;
    EXCEPTION WHEN OTHERS THEN
        NULL;
    END;
    RETURN to_json('letter ' || $1::text); END $$;
CREATE CAST (letter AS json) WITH FUNCTION letter_to_json(letter);
CREATE TABLE rows (id letter PRIMARY KEY, body text, status text DEFAULT 'x');
INSERT INTO rows VALUES ('a');
SELECT interlock.enable_versioning('rows', blind_updates => 'reject'), interlock.enable_marker('rows'),
    interlock.define_transitions('rows', 'status', '{"x": ["y"], "y": ["z"]}');
CREATE FUNCTION attempt(command text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE detail text; context text;
BEGIN
    EXECUTE command;
    RETURN 'passed';
EXCEPTION WHEN OTHERS THEN
    GET STACKED DIAGNOSTICS detail = PG_EXCEPTION_DETAIL, context = PG_EXCEPTION_CONTEXT;
    RETURN concat_ws(' ', sqlstate, sqlerrm, substring(detail || context from '"id": [^}]*'));
END $$;
SELECT command, attempt('SELECT interlock.' || command) FROM unnest(ARRAY[
    $$versioned_update('rows', 'b', 1, '{"body": "x"}')$$, $$versioned_update('rows', 'a', 7, '{"body": "x"}')$$,
    $$versioned_upsert('rows', 'a', NULL::bigint, '{"body": "x"}')$$, $$save_row('rows', 'a', 'me', '{"body": "x"}')$$,
    $$transition('rows', 'a', 'y', 'z')$$, $$transition('rows', 'a', 'x', 'y', match => '{"body": "x"}')$$, $$transition('rows', 'a', 'x', 'z')$$,
    $$select_for_update('rows', '{a,b}')$$]) command;
-- an error that is not that of the lock
CREATE FUNCTION unreadable() RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN RAISE 'unreadable'; END $$;
CREATE ROLE interlock_reader;
GRANT ALL ON rows TO interlock_reader;
ALTER TABLE rows ENABLE ROW LEVEL SECURITY;
CREATE POLICY all_rows ON rows USING (unreadable());
SET ROLE interlock_reader;
SELECT attempt($$SELECT * FROM interlock.select_for_update('rows', '{a}')$$);
RESET ROLE;
DROP POLICY all_rows ON rows;
-- a policy, which is asked what the error may show
CREATE FUNCTION readable() RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN
    PERFORM 1 / 0;
EXCEPTION WHEN OTHERS THEN
    RETURN true; END $$;
CREATE POLICY all_rows ON rows USING (readable());
SET ROLE interlock_reader;
SELECT attempt($$UPDATE rows SET body = 'x'$$);
RESET ROLE;
DROP TABLE rows;
DROP ROLE interlock_reader;
DROP TYPE letter CASCADE;
DROP FUNCTION attempt, readable, unreadable;
