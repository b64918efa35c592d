-- What the scopes say is kept by each session, and must be what the table says: after each change a claim tells how long it may be
-- without a sign of life, and whether it had to read the table, which it locks for that.
\set SHOW_CONTEXT never
\set VERBOSITY terse
SET client_min_messages = warning;
CREATE FUNCTION try(of_scope text = 's', OUT stale_after interval, OUT "read" boolean) LANGUAGE plpgsql AS $$
BEGIN
    PERFORM interlock.idempotency_claim(of_scope, 'k');
    SELECT deadline - claimed_at FROM interlock.idempotency WHERE scope = of_scope INTO stale_after;
    DELETE FROM interlock.idempotency WHERE scope = of_scope;
    "read" := EXISTS (SELECT FROM pg_locks WHERE pid = pg_backend_pid() AND relation = 'interlock.idempotency_scope'::regclass AND mode = 'AccessShareLock');
END $$;
CREATE FUNCTION define(hours int, name text = 's') RETURNS void LANGUAGE sql AS
'SELECT interlock.define_idempotency_scope(name, stale_after => make_interval(hours => hours))';

SELECT * FROM try();
SELECT * FROM try();
SELECT * FROM try('another');
SELECT define(2);
SELECT * FROM try();
SELECT * FROM try();
SELECT * FROM try('t'), try('ss') ss, try('S') s;
UPDATE interlock.idempotency_scope SET stale_after = '3 h' WHERE scope = 's';
SELECT * FROM try();
UPDATE interlock.idempotency_scope SET scope = 't';
SELECT s.stale_after, t.stale_after FROM try() s, try('t') t;
DELETE FROM interlock.idempotency_scope;
SELECT * FROM try('t');

-- Changed by the transaction itself, which may be rolled back, to a savepoint or altogether
SELECT define(1);
SELECT * FROM try();
BEGIN;
SELECT define(2);
SELECT * FROM try();
SAVEPOINT a;
UPDATE interlock.idempotency_scope SET stale_after = '3 h';
SELECT * FROM try();
ROLLBACK TO a;
SELECT * FROM try();
SAVEPOINT b;
DELETE FROM interlock.idempotency_scope;
SELECT * FROM try();
RELEASE b;
SELECT * FROM try();
ROLLBACK;
SELECT * FROM try();
BEGIN;
SAVEPOINT a;
SELECT define(2);
ROLLBACK TO a;
SELECT * FROM try();
COMMIT;
SELECT * FROM try();
DO $$ BEGIN PERFORM define(2); PERFORM try(); RAISE division_by_zero; EXCEPTION WHEN division_by_zero THEN END $$;
SELECT * FROM try();
-- by the same statement
WITH changed AS (UPDATE interlock.idempotency_scope SET stale_after = '2 h' RETURNING 1) SELECT (SELECT count(*) FROM changed), (SELECT stale_after FROM try());
SELECT * FROM try();
-- TRUNCATE
SELECT * FROM try();
BEGIN;
TRUNCATE interlock.idempotency_scope;
SELECT stale_after FROM try();
ROLLBACK;
SELECT * FROM try();
BEGIN;
SAVEPOINT a;
TRUNCATE interlock.idempotency_scope;
SELECT stale_after FROM try();
ROLLBACK TO a;
SELECT stale_after FROM try();
TRUNCATE interlock.idempotency_scope;
SELECT define(7);
SELECT stale_after FROM try();
TRUNCATE interlock.idempotency_scope;
SELECT stale_after FROM try();
COMMIT;
SELECT stale_after FROM try();

-- COPY, a session whose triggers do not fire otherwise, and an ALTER TABLE that rewrites it
COPY interlock.idempotency_scope FROM stdin;
s	api	1 day	4 h	f	1	\N
\.
SELECT * FROM try();
SELECT * FROM try();
SET session_replication_role = replica;
UPDATE interlock.idempotency_scope SET stale_after = '5 h';
SELECT * FROM try();
RESET session_replication_role;
SELECT * FROM try();
ALTER TABLE interlock.idempotency_scope ADD rewritten_at timestamptz DEFAULT clock_timestamp();
SELECT * FROM try();
SELECT * FROM try();
ALTER TABLE interlock.idempotency_scope DROP rewritten_at;
-- Without the trigger, or with one that does not always fire, nothing is kept
BEGIN;
ALTER TABLE interlock.idempotency_scope DISABLE TRIGGER zzz_interlock_scope;
SELECT define(2);
SELECT stale_after FROM try();
SELECT define(3);
SELECT stale_after FROM try();
SAVEPOINT a;
SELECT define(4);
ALTER TABLE interlock.idempotency_scope ENABLE ALWAYS TRIGGER zzz_interlock_scope;
SELECT stale_after FROM try();
ROLLBACK TO a;
SELECT stale_after FROM try();
ROLLBACK;
SELECT * FROM try();
-- OPS-3: with one that fires in ordinary sessions, as after a restore with --disable-triggers, they are kept for a while
ALTER TABLE interlock.idempotency_scope ENABLE TRIGGER zzz_interlock_scope;
CREATE TABLE reads (n int, "read" boolean);
DO $$ BEGIN
    FOR n IN 1 .. 100 LOOP
        INSERT INTO reads SELECT n, t."read" FROM try() t;
        COMMIT;
    END LOOP;
END $$;
SELECT bool_or("read") AS some, bool_and("read") AS "all" FROM reads;
DROP TABLE reads;
SELECT define(5);
SELECT stale_after FROM try();
SET session_replication_role = replica;
SELECT define(6);
SELECT * FROM try();
RESET session_replication_role;
SELECT define(7);
SELECT stale_after FROM try();
ALTER TABLE interlock.idempotency_scope ENABLE REPLICA TRIGGER zzz_interlock_scope;
SELECT * FROM try();
SELECT define(5);
SELECT * FROM try();
DROP TRIGGER zzz_interlock_scope ON interlock.idempotency_scope;
CREATE TRIGGER zzz_interlock_scope BEFORE INSERT OR UPDATE OR DELETE ON interlock.idempotency_scope
    FOR EACH ROW WHEN (pg_trigger_depth() > 5) EXECUTE FUNCTION interlock_internal.idempotency_scope_trigger();
ALTER TABLE interlock.idempotency_scope ENABLE ALWAYS TRIGGER zzz_interlock_scope;
SELECT * FROM try();
SELECT define(6);
SELECT * FROM try();
DROP TRIGGER zzz_interlock_scope ON interlock.idempotency_scope;
CREATE TRIGGER zzz_interlock_scope BEFORE INSERT OR UPDATE OF model OR DELETE ON interlock.idempotency_scope
    FOR EACH ROW EXECUTE FUNCTION interlock_internal.idempotency_scope_trigger();
ALTER TABLE interlock.idempotency_scope ENABLE ALWAYS TRIGGER zzz_interlock_scope;
SELECT * FROM try();
UPDATE interlock.idempotency_scope SET stale_after = '7 h';
SELECT * FROM try();
DROP TRIGGER zzz_interlock_scope ON interlock.idempotency_scope;
CREATE TRIGGER zzz_interlock_scope BEFORE INSERT OR UPDATE OR DELETE ON interlock.idempotency_scope
    FOR EACH ROW EXECUTE FUNCTION interlock_internal.idempotency_scope_trigger();
ALTER TABLE interlock.idempotency_scope ENABLE ALWAYS TRIGGER zzz_interlock_scope;
SELECT * FROM try();
SELECT * FROM try();
SELECT interlock_internal.idempotency_scope_trigger();

-- Many
INSERT INTO interlock.idempotency_scope SELECT 'n' || n, 'api', '1 day', make_interval(mins => n), false, 1 FROM generate_series(998, 1, -1) n;
SELECT count(*), bool_and(stale_after = make_interval(mins => n)) FROM generate_series(1, 998, 7) n, try('n' || n);
INSERT INTO interlock.idempotency_scope SELECT 'n' || n, 'api', '1 day', make_interval(mins => n), false, 1 FROM generate_series(1100, 999, -1) n;
SELECT count(*), bool_and(stale_after = make_interval(mins => n)) FROM generate_series(1, 1100, 7) n, try('n' || n);
DELETE FROM interlock.idempotency_scope WHERE scope ~ 'n';

-- OPS-3: what define_idempotency_scope refuses a plain statement is refused, too
INSERT INTO interlock.idempotency_scope VALUES ('bad', 'queue', '1 day', '1 h', false, 1);
INSERT INTO interlock.idempotency_scope VALUES ('bad', 'api', '-1 day', '1 h', false, 1);
INSERT INTO interlock.idempotency_scope VALUES ('bad', 'api', '3654 days', '1 h', false, 1);
INSERT INTO interlock.idempotency_scope VALUES ('bad', 'api', '1 day', '0', false, 1);
INSERT INTO interlock.idempotency_scope VALUES ('bad', 'api', '1 day', '178000000 years', false, 1);
INSERT INTO interlock.idempotency_scope VALUES ('bad', 'api', '1 day', '1 h', false, -1);
-- and what gets in without the constraints does no harm
BEGIN;
ALTER TABLE interlock.idempotency_scope DROP CONSTRAINT idempotency_scope_ttl, DROP CONSTRAINT idempotency_scope_stale_after,
    DROP CONSTRAINT idempotency_scope_max_response_bytes;
INSERT INTO interlock.idempotency_scope VALUES ('bad', 'api', '-1 day', '-178000000 years', false, -1), ('worse', 'api', '178000000 years', '178000000 years', false, 1);
SELECT stale_after FROM try('bad');
SELECT justify_interval(stale_after) FROM try('worse');
SET LOCAL interlock.direct_execution = off;
SELECT stale_after FROM try('bad');
SELECT justify_interval(stale_after) FROM try('worse');
ROLLBACK;

-- A scope is the same for everybody: no right on the table is needed, and its policies do not count
CREATE ROLE scope_role;
SELECT interlock.grant_idempotency_scope('s', 'scope_role');
GRANT SELECT, DELETE ON interlock.idempotency TO scope_role;
SELECT * FROM try();
SET ROLE scope_role;
SELECT * FROM try();
RESET ROLE;
REVOKE SELECT ON interlock.idempotency_scope FROM PUBLIC;
SELECT * FROM try();
SET ROLE scope_role;
SELECT * FROM try();
BEGIN ISOLATION LEVEL REPEATABLE READ;
SELECT * FROM try();
COMMIT;
RESET ROLE;
GRANT SELECT ON interlock.idempotency_scope TO PUBLIC;
SELECT * FROM try();
ALTER TABLE interlock.idempotency_scope ENABLE ROW LEVEL SECURITY;
SELECT * FROM try();
SET ROLE scope_role;
SELECT * FROM try();
BEGIN ISOLATION LEVEL REPEATABLE READ;
SELECT * FROM try();
COMMIT;
RESET ROLE;
ALTER TABLE interlock.idempotency_scope DISABLE ROW LEVEL SECURITY;
SELECT * FROM try();
BEGIN ISOLATION LEVEL REPEATABLE READ;
SELECT * FROM try();
COMMIT;
SET interlock.direct_execution = off;
SELECT * FROM try();
RESET interlock.direct_execution;

DELETE FROM interlock.idempotency_scope;
DELETE FROM interlock.idempotency_grant;
REVOKE ALL ON interlock.idempotency FROM scope_role;
DROP ROLE scope_role;
DROP FUNCTION try, define;
