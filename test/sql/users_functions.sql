-- Functions of users that a call runs: the checks of domains, casts, defaults. What one leaves behind, after an error or in
-- the middle of a call of its own, is not met by the next call.
\set VERBOSITY terse
SET client_min_messages = warning;
CREATE ROLE interlock_temporary;
CREATE FUNCTION sqlstate_of(command text) RETURNS text LANGUAGE plpgsql AS $$ BEGIN
    EXECUTE command; RETURN 'passed';
EXCEPTION WHEN OTHERS THEN RETURN sqlstate || ': ' || sqlerrm; END $$;
GRANT EXECUTE ON FUNCTION sqlstate_of TO public;
SET ROLE interlock_temporary;

-- A check that reads a table while it fails
CREATE FUNCTION pg_temp.is_small(x int) RETURNS bool LANGUAGE sql AS $$ SELECT 1;
    SELECT 100 / (x - 5) + c.relnatts - c.relnatts > -200 FROM pg_class c ORDER BY c.oid DESC LIMIT 1 $$;
CREATE DOMAIN pg_temp.small AS int CHECK (pg_temp.is_small(value));
CREATE TYPE pg_temp.small_range AS RANGE (subtype = pg_temp.small);

-- in a key, and in columns
CREATE TEMP TABLE period (id pg_temp.small_range PRIMARY KEY, version bigint NOT NULL DEFAULT 1);
SELECT interlock.enable_versioning('period');
INSERT INTO period VALUES ('[1,2)');
CREATE TEMP TABLE doc (id int PRIMARY KEY, version bigint NOT NULL DEFAULT 1, tags pg_temp.small[], periods pg_temp.small_range[]);
SELECT interlock.enable_versioning('doc');
INSERT INTO doc VALUES (1);
BEGIN;
SELECT interlock.versioned_update('period', '[1,2)', 1, '{}'), interlock.versioned_update('doc', 1, 1, '{"tags": [1], "periods": ["[1,2)"]}');
SELECT sqlstate_of($$SELECT interlock.versioned_update('period', '[5,6)', 2, '{}')$$), sqlstate_of($$SELECT interlock.versioned_update('doc', 1, 2, '{"tags": [5]}')$$),
    sqlstate_of($$SELECT interlock.versioned_update('doc', 1, 2, '{"periods": ["[5,6)"]}')$$);
SELECT interlock.versioned_update('period', '[1,2)', 2, '{}'), interlock.versioned_update('doc', 1, 2, '{"tags": [6], "periods": ["[6,7)"]}');
COMMIT;
SELECT * FROM period, doc;

-- in the cast of a guarded child
CREATE TYPE pg_temp.letter AS ENUM ('a', 'b');
CREATE FUNCTION pg_temp.number_of(x pg_temp.letter) RETURNS int LANGUAGE sql AS $$ SELECT 1;
    SELECT 100 / ascii(x::text) * 0 + 1 / (98 - ascii(x::text)) + c.relnatts - c.relnatts FROM pg_class c ORDER BY c.oid DESC LIMIT 1 $$;
CREATE CAST (pg_temp.letter AS int) WITH FUNCTION pg_temp.number_of(pg_temp.letter) AS IMPLICIT;
CREATE TEMP TABLE parent (id int PRIMARY KEY, version bigint NOT NULL DEFAULT 1);
SELECT interlock.enable_versioning('parent');
CREATE TEMP TABLE child (id int PRIMARY KEY, parent pg_temp.letter REFERENCES parent);
SELECT interlock.guard_children('child', 'parent');
BEGIN;
INSERT INTO parent VALUES (1);
INSERT INTO child VALUES (1, 'a');
SELECT sqlstate_of($$INSERT INTO child VALUES (2, 'b')$$);
INSERT INTO child VALUES (3, 'a');
COMMIT;
SELECT * FROM child, parent;
-- which may be another one; PostgreSQL 19 keeps the first one for the session, so its own check of the foreign key fails
BEGIN;
DROP CAST (pg_temp.letter AS int);
DROP FUNCTION pg_temp.number_of(pg_temp.letter);
CREATE FUNCTION pg_temp.number_of(x pg_temp.letter) RETURNS int LANGUAGE sql AS 'SELECT 1';
CREATE CAST (pg_temp.letter AS int) WITH FUNCTION pg_temp.number_of(pg_temp.letter) AS IMPLICIT;
COMMIT;
\set VERBOSITY sqlstate
INSERT INTO child VALUES (4, 'b');
\set VERBOSITY terse
DROP CAST (pg_temp.letter AS int);
SELECT sqlstate_of($$INSERT INTO child VALUES (5, 'b')$$);
CREATE CAST (pg_temp.letter AS int) WITH INOUT AS ASSIGNMENT;
SELECT sqlstate_of($$INSERT INTO child VALUES (6, 'b')$$);
SELECT * FROM child, parent;

-- A check that calls the same function for another row
CREATE TEMP TABLE nested (id int PRIMARY KEY, version bigint NOT NULL DEFAULT 1);
CREATE FUNCTION pg_temp.writes(x int) RETURNS bool LANGUAGE plpgsql AS $$ BEGIN
    IF x = -5 THEN PERFORM interlock.versioned_update('nested', 2, 1, '{"tags": [7]}'); END IF; RETURN true; END $$;
CREATE DOMAIN pg_temp.above_zero AS int CHECK (pg_temp.writes(value) AND value > 0);
ALTER TABLE nested ADD tags pg_temp.above_zero[];
SELECT interlock.enable_versioning('nested');
INSERT INTO nested VALUES (1), (2);
SELECT interlock.versioned_update('nested', 1, 1, '{"tags": [1]}');
SELECT interlock.versioned_update('nested', 1, 2, '{"tags": [-5]}');
SELECT interlock.versioned_update('nested', 1, 2, '{"tags": [2]}');
SELECT * FROM nested ORDER BY id;

-- A default that is not what it was
CREATE FUNCTION pg_temp.usual() RETURNS int LANGUAGE plpgsql IMMUTABLE AS 'BEGIN RETURN 1; END';
CREATE DOMAIN pg_temp.wanted AS int;
CREATE TEMP TABLE defaults (id int PRIMARY KEY, version bigint NOT NULL DEFAULT 1, a int DEFAULT pg_temp.usual(), b int DEFAULT 1::pg_temp.wanted, c timestamptz DEFAULT now());
SELECT interlock.enable_versioning('defaults');
SELECT interlock.versioned_upsert('defaults', 1, NULL::bigint, '{}');
CREATE OR REPLACE FUNCTION pg_temp.usual() RETURNS int LANGUAGE plpgsql IMMUTABLE AS 'BEGIN RETURN 2; END';
SELECT interlock.versioned_upsert('defaults', 2, NULL::bigint, '{}');
SELECT id, a, b, c IS NOT NULL AS has_time FROM defaults ORDER BY id;
ALTER DOMAIN pg_temp.wanted ADD CHECK (value > 1);
SELECT interlock.versioned_upsert('defaults', 3, NULL::bigint, '{}');

DISCARD TEMP;
RESET ROLE;
DROP OWNED BY interlock_temporary;
DROP ROLE interlock_temporary;
DROP FUNCTION sqlstate_of(text);
