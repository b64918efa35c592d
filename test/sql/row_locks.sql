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


-- SEC-5: nor what decides which rows an index has, or into which partition a row belongs; what the viewer has locked stays locked
SET ROLE interlock_mallory;
CREATE FUNCTION mallory.unlock(int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN
    PERFORM pg_advisory_unlock_all();
    IF current_user <> 'interlock_mallory' THEN RAISE WARNING 'it runs as %', current_user; END IF;
    RETURN $1; END $$;
CREATE INDEX ON mallory.t (k) WHERE lock_status = mallory.unlock(1);
CREATE INDEX ON mallory.t (lock_until) WHERE lock_status = 1 AND mallory.unlock(1) = 1;
CREATE TABLE mallory.p (id int NOT NULL, state text) PARTITION BY LIST ((id + mallory.unlock(1)));
CREATE TABLE mallory.p1 PARTITION OF mallory.p FOR VALUES IN (2);
ALTER TABLE mallory.p1 ADD PRIMARY KEY (id);
SELECT interlock.enable_marker('mallory.p'), interlock.define_transitions('mallory.p', 'state', '{"a": ["b"]}');
INSERT INTO mallory.p (id, state, lock_status, lock_by, lock_until) VALUES (1, 'a', 1, 'm', '2020-01-01');
GRANT SELECT ON mallory.p TO PUBLIC;
RESET ROLE;
\c
SELECT pg_advisory_lock(5);
SELECT rel, key, holder FROM interlock.row_locks ORDER BY rel::text;
SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid();
SET ROLE interlock_viewer;
SELECT rel, key, holder FROM interlock.row_locks ORDER BY rel::text;
RESET ROLE;
SELECT pg_advisory_unlock(5);
-- the sweep runs what the owner wrote as the owner alone
SELECT * FROM interlock.sweep();
SET ROLE interlock_mallory;
DROP TABLE mallory.p;
RESET ROLE;
CREATE TABLE page (id int PRIMARY KEY);
SELECT interlock.enable_marker('page');
INSERT INTO page VALUES (1), (2);
SELECT (interlock.lock_row('page', id, 'anna')).locked FROM page;

-- partitions, and a key that is no column of the server's own types
CREATE DOMAIN small AS int;
CREATE TABLE sheet (id small, k mallory.e, part int, PRIMARY KEY (id, k, part)) PARTITION BY LIST (part);
CREATE TABLE sheet1 (part int NOT NULL, dropped int, k mallory.e NOT NULL, id small NOT NULL);
ALTER TABLE sheet1 DROP COLUMN dropped;
ALTER TABLE sheet ATTACH PARTITION sheet1 FOR VALUES IN (1);
CREATE TABLE sheet2 PARTITION OF sheet FOR VALUES IN (2);
SELECT interlock.enable_marker('sheet', sweep_index => false);
INSERT INTO sheet VALUES (1, 'a', 1), (2, 'b', 1), (3, 'a', 2);
UPDATE sheet SET lock_status = 1, lock_by = 'anna', lock_reason = repeat('why ', 3000) WHERE id <> 2;
SELECT rel, key, holder, length(reason) FROM interlock.row_locks WHERE rel = 'sheet'::regclass ORDER BY key->'id';
-- rows of a table that inherits are not those of the table: its triggers do not check them
CREATE TABLE heir () INHERITS (page);
INSERT INTO heir (id, lock_status, lock_by) VALUES (3, 1, 'nobody');
SELECT rel, key FROM interlock.row_locks WHERE rel <> 'sheet'::regclass ORDER BY rel::text, key->'id';
-- two triggers on one table show its rows once
CREATE TRIGGER twice BEFORE INSERT ON page FOR EACH ROW
    EXECUTE FUNCTION interlock_internal.marker_trigger('1 microseconds', 'enforce', 'lock_status', 'lock_by', 'lock_time', 'lock_until', 'lock_reason');
SELECT rel, key FROM interlock.row_locks WHERE rel = 'page'::regclass ORDER BY key->'id';
DROP TRIGGER twice ON page;
DROP TABLE heir, sheet;

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
-- nor is what is in the indexes of another role's partition planned for policies of its parent
CREATE TABLE whole (id int PRIMARY KEY) PARTITION BY RANGE (id);
CREATE TABLE part PARTITION OF whole FOR VALUES FROM (1) TO (10);
SELECT interlock.enable_marker('whole');
INSERT INTO whole (id, lock_status, lock_by) VALUES (1, 1, 'anna');
CREATE POLICY anybody ON whole USING (true);
ALTER TABLE whole ENABLE ROW LEVEL SECURITY;
GRANT SELECT ON whole TO interlock_viewer;
SET ROLE interlock_mallory;
CREATE FUNCTION mallory.look(int) RETURNS boolean IMMUTABLE LANGUAGE plpgsql AS $$ BEGIN
    IF current_user <> 'interlock_mallory' THEN RAISE WARNING 'planned as %', current_user; END IF; RETURN true; END $$;
RESET ROLE;
SET ROLE interlock_viewer;
SELECT key, holder FROM interlock.row_locks WHERE rel = 'whole'::regclass;
RESET ROLE;
ALTER TABLE part OWNER TO interlock_mallory;
CREATE INDEX ON part (id) WHERE mallory.look(1);
SET ROLE interlock_viewer;
SELECT key, holder FROM interlock.row_locks WHERE rel = 'whole'::regclass;
RESET ROLE;

DROP TABLE page, whole;
DROP DOMAIN small;
DROP SCHEMA mallory CASCADE;
DROP ROLE interlock_viewer, interlock_mallory;
