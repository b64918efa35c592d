-- Who looks at row_locks never named the tables in it: nothing of their owners runs with his rights
\set SHOW_CONTEXT never
CREATE ROLE interlock_mallory;
CREATE ROLE interlock_viewer;
CREATE SCHEMA mallory AUTHORIZATION interlock_mallory;
SET ROLE interlock_mallory;
GRANT USAGE ON SCHEMA mallory TO PUBLIC;
CREATE TYPE mallory.e AS ENUM ('a', 'b');
CREATE FUNCTION mallory.evil(mallory.e) RETURNS json LANGUAGE plpgsql AS $$ BEGIN
    PERFORM set_config('search_path', 'mallory, pg_catalog', false);
    RAISE WARNING 'the cast runs as %', current_user;
    RETURN '"cast"'; END $$;
CREATE CAST (mallory.e AS json) WITH FUNCTION mallory.evil(mallory.e);
CREATE FUNCTION mallory.plan() RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN
    IF current_user <> 'interlock_mallory' THEN RAISE WARNING 'the planner runs it as %', current_user; END IF;
    RETURN 1; END $$;
CREATE TABLE mallory.t (k mallory.e PRIMARY KEY);
SELECT interlock.enable_marker('mallory.t');
CREATE INDEX ON mallory.t ((lock_status + mallory.plan()));
INSERT INTO mallory.t (k, lock_status, lock_by) VALUES ('a', 1, 'm');
GRANT SELECT ON mallory.t TO PUBLIC;
RESET ROLE;
\c
SELECT rel, key, holder FROM interlock.row_locks;
SHOW search_path;
SET ROLE interlock_viewer;
SELECT rel, key, holder FROM interlock.row_locks;
RESET ROLE;

-- a table that fails is a warning, also when it pretends to be a cancel; the others are shown
SET ROLE interlock_mallory;
CREATE OR REPLACE FUNCTION mallory.evil(mallory.e) RETURNS json LANGUAGE plpgsql AS $$ BEGIN
    RAISE EXCEPTION 'not cancelled' USING ERRCODE = 'query_canceled'; END $$;
CREATE OR REPLACE FUNCTION mallory.plan() RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT 1';
RESET ROLE;
CREATE TABLE page (id int PRIMARY KEY);
SELECT interlock.enable_marker('page');
INSERT INTO page VALUES (1), (2);
SELECT (interlock.lock_row('page', id, 'anna')).locked FROM page;
SELECT rel, key, holder FROM interlock.row_locks;

-- policies: another's are not evaluated, the table is left out; a superuser's and one's own are
SET ROLE interlock_mallory;
CREATE FUNCTION mallory.spy() RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN
    RAISE WARNING 'the policy runs as %', current_user; RETURN true; END $$;
DROP TABLE mallory.t;
CREATE TABLE mallory.forced (id int PRIMARY KEY);
SELECT interlock.enable_marker('mallory.forced');
INSERT INTO mallory.forced (id, lock_status, lock_by) VALUES (1, 1, 'm'), (2, 1, 'm');
CREATE POLICY spy ON mallory.forced USING (mallory.spy() AND id = 1);
ALTER TABLE mallory.forced ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
GRANT SELECT ON mallory.forced TO PUBLIC;
RESET ROLE;
CREATE POLICY odd ON page USING (id % 2 = 1 AND current_user = 'interlock_viewer');
ALTER TABLE page ENABLE ROW LEVEL SECURITY;
GRANT SELECT ON page TO interlock_viewer;
SELECT rel, key, holder FROM interlock.row_locks ORDER BY rel::text, key->'id';
SET ROLE interlock_viewer;
SELECT rel, key, holder FROM interlock.row_locks;
RESET ROLE;
SET ROLE interlock_mallory;
SELECT rel, key, holder FROM interlock.row_locks;
RESET ROLE;
SELECT rel, key, holder FROM interlock.row_locks ORDER BY rel::text, key->'id';

DROP TABLE page;
DROP SCHEMA mallory CASCADE;
DROP ROLE interlock_viewer, interlock_mallory;
