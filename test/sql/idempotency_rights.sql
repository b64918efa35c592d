-- SEC-10: whose keys they are, and with whose rights the functions work.
\set SHOW_CONTEXT never
\set VERBOSITY terse
SET client_min_messages = warning;
CREATE ROLE idem_app;
CREATE ROLE idem_member IN ROLE idem_app;
CREATE ROLE idem_other;
CREATE ROLE "Idem O'dd";
CREATE SCHEMA rights;
GRANT ALL ON SCHEMA rights TO PUBLIC;
SET search_path = rights;
CREATE FUNCTION echo(request jsonb) RETURNS jsonb LANGUAGE sql AS 'SELECT request';

-- Without a grant nothing, and the hint is the statement to run
SET ROLE idem_app;
\set VERBOSITY default
SELECT interlock.idempotency_claim('pay', 'k');
SET ROLE "Idem O'dd";
SELECT interlock.idempotency_claim('it''s', 'k');
\set VERBOSITY terse
SELECT interlock.idempotency_complete('pay', 'k', 1);
SELECT interlock.idempotency_fail('pay', 'k', 1);
SELECT interlock.idempotency_checkpoint('pay', 'k', 1, 'c');
SELECT interlock.idempotency_extend('pay', 'k', 1);
SELECT interlock.idempotency_assert('pay', 'k', 1);
SELECT interlock.run_once('pay', 'k', 'echo(jsonb)');
-- Nobody grants but superusers, until that is granted
SELECT interlock.grant_idempotency_scope('pay', 'idem_app');
SELECT interlock.revoke_idempotency_scope('pay', 'idem_app');
RESET ROLE;
SELECT interlock.grant_idempotency_scope('pay', 'idem_app');
SELECT interlock.grant_idempotency_scope('pay', 'idem_app');
SELECT interlock.grant_idempotency_scope('it''s', 'Idem O''dd');
SELECT scope, role_name, granted_by = current_user AS by_me FROM interlock.idempotency_grant ORDER BY 1;
SELECT interlock.grant_idempotency_scope('pay', 'idem_nobody');
SELECT interlock.grant_idempotency_scope('', 'idem_app');
SELECT interlock.grant_idempotency_scope(NULL, 'idem_app');
SELECT interlock.grant_idempotency_scope('pay', NULL);
SELECT interlock.revoke_idempotency_scope('pay', 'idem_other');
SELECT interlock.revoke_idempotency_scope(NULL, 'idem_other');

-- EXECUTE is all that it takes to define a scope
GRANT EXECUTE ON FUNCTION interlock.define_idempotency_scope TO idem_other;
SET ROLE idem_other;
SELECT interlock.define_idempotency_scope('theirs', 'job');
SELECT interlock.define_idempotency_scope('theirs', ttl => '2 days');
INSERT INTO interlock.idempotency_scope VALUES ('bad', 'api', '1 day', '1 h', false, 1);
RESET ROLE;
REVOKE EXECUTE ON FUNCTION interlock.define_idempotency_scope FROM idem_other;
SELECT model, ttl FROM interlock.idempotency_scope WHERE scope = 'theirs';

-- Members share the keys, and need no right on any table
SET ROLE idem_app;
SELECT outcome, token AS pay FROM interlock.idempotency_claim('pay', 'order 1', '{"a": 1}') \gset
SELECT interlock.idempotency_complete('pay', 'order 1', :pay, '{"receipt": 1}', 'id');
SET ROLE idem_member;
SELECT outcome, response, result_id FROM interlock.idempotency_claim('pay', 'order 1', '{"a": 1}');
TABLE interlock.idempotency;
UPDATE interlock.idempotency SET response = '{"receipt": "forged"}';
DELETE FROM interlock.idempotency;
INSERT INTO interlock.idempotency (scope, key, claimed_at, deadline, expires_at) VALUES ('pay', 'mine', now(), now(), now());
SELECT nextval('interlock.idempotency_token');
TABLE interlock.idempotency_grant;
INSERT INTO interlock.idempotency_grant VALUES ('*', 'idem_other', 'me');
INSERT INTO interlock.idempotency_scope VALUES ('pay', 'api', '1 day', '1 min', false, 1);
-- Others neither read nor change them, whatever they know
SET ROLE idem_other;
SELECT outcome, response FROM interlock.idempotency_claim('pay', 'order 1', '{"a": 1}');
SELECT interlock.idempotency_complete('pay', 'order 1', :pay, '{"receipt": "forged"}');
SELECT interlock.idempotency_fail('pay', 'order 1', :pay, '{"receipt": "forged"}', false);
SELECT interlock.idempotency_extend('pay', 'order 1', :pay);
RESET ROLE;
SELECT status, response FROM interlock.idempotency;

-- All scopes, everybody, and superusers without a grant
SELECT interlock.grant_idempotency_scope('*', 'idem_other');
SET ROLE idem_other;
SELECT outcome FROM interlock.idempotency_claim('pay', 'order 1');
SELECT outcome FROM interlock.idempotency_claim('another', 'k');
SELECT outcome FROM interlock.idempotency_claim('*', 'k');
SET ROLE idem_app;
SELECT outcome FROM interlock.idempotency_claim('another', 'k');
RESET ROLE;
SELECT interlock.revoke_idempotency_scope('*', 'idem_other');
SELECT interlock.grant_idempotency_scope('another', 'public');
SET ROLE idem_app;
SELECT outcome FROM interlock.idempotency_claim('another', 'k');
SELECT outcome FROM interlock.idempotency_claim('*', 'k');
RESET ROLE;
SELECT outcome FROM interlock.idempotency_claim('nobody''s', 'k');
SELECT interlock.revoke_idempotency_scope('another', 'public');
-- Members that do not inherit are none until SET ROLE
REVOKE idem_app FROM idem_member;
ALTER ROLE idem_member NOINHERIT;
GRANT idem_app TO idem_member;
SET ROLE idem_member;
SELECT outcome FROM interlock.idempotency_claim('pay', 'order 1');
RESET ROLE;
REVOKE idem_app FROM idem_member;
ALTER ROLE idem_member INHERIT;
GRANT idem_app TO idem_member;
-- Roles by name, as they are now
SET ROLE idem_app;
SELECT outcome FROM interlock.idempotency_claim('pay', 'order 1');
RESET ROLE;
ALTER ROLE idem_app RENAME TO idem_renamed;
SET ROLE idem_renamed;
SELECT outcome FROM interlock.idempotency_claim('pay', 'order 1');
RESET ROLE;
CREATE ROLE idem_app;
SET ROLE idem_app;
SELECT outcome FROM interlock.idempotency_claim('pay', 'order 1');
RESET ROLE;
DROP ROLE idem_app;
ALTER ROLE idem_renamed RENAME TO idem_app;
REVOKE idem_app FROM idem_member;
SET ROLE idem_member;
SELECT outcome FROM interlock.idempotency_claim('pay', 'order 1');
RESET ROLE;
GRANT idem_app TO idem_member;
SET ROLE idem_member;
SELECT outcome FROM interlock.idempotency_claim('pay', 'order 1');
RESET ROLE;

-- The same for whoever reads the grants by a statement, and in every transaction as last committed
CREATE FUNCTION outcome(key text = 'order 1') RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    RETURN (SELECT outcome FROM interlock.idempotency_claim('pay', key));
EXCEPTION WHEN insufficient_privilege THEN RETURN SQLERRM;
END $$;
CREATE FUNCTION as_app() RETURNS text LANGUAGE plpgsql AS $$
DECLARE result text;
BEGIN
    SET LOCAL ROLE idem_app;
    result := rights.outcome();
    RESET ROLE;
    RETURN result;
END $$;
SELECT as_app();
SET interlock.direct_execution = off;
SELECT as_app();
BEGIN ISOLATION LEVEL REPEATABLE READ;
SELECT as_app();
COMMIT;
SELECT interlock.revoke_idempotency_scope('pay', 'idem_app');
SELECT as_app();
SELECT interlock.grant_idempotency_scope('*', 'idem_app');
SELECT as_app();
SELECT interlock.revoke_idempotency_scope('*', 'idem_app');
RESET interlock.direct_execution;
SELECT as_app();
-- changed by this transaction, and rolled back
BEGIN;
SELECT interlock.grant_idempotency_scope('pay', 'idem_app');
SELECT as_app();
SAVEPOINT s;
SELECT interlock.revoke_idempotency_scope('pay', 'idem_app');
SELECT as_app();
ROLLBACK TO s;
SELECT as_app();
ROLLBACK;
SELECT as_app();
BEGIN ISOLATION LEVEL SERIALIZABLE;
SELECT as_app();
SELECT interlock.grant_idempotency_scope('pay', 'idem_app');
SELECT as_app();
COMMIT;
SELECT as_app();
TRUNCATE interlock.idempotency_grant;
SELECT as_app();
-- however they come in: COPY, a session whose triggers do not fire, and without the trigger
COPY interlock.idempotency_grant FROM stdin;
pay	idem_app	me	2026-01-01
\.
SELECT as_app();
SET session_replication_role = replica;
DELETE FROM interlock.idempotency_grant;
RESET session_replication_role;
SELECT as_app();
ALTER TABLE interlock.idempotency_grant DISABLE TRIGGER zzz_interlock_scope;
SELECT interlock.grant_idempotency_scope('pay', 'idem_app');
SELECT as_app();
SELECT interlock.revoke_idempotency_scope('pay', 'idem_app');
SELECT as_app();
ALTER TABLE interlock.idempotency_grant ENABLE ALWAYS TRIGGER zzz_interlock_scope;
-- more than are kept
INSERT INTO interlock.idempotency_grant SELECT 'n' || n, 'idem_other', 'me' FROM generate_series(1, 1100) n;
SELECT as_app();
SELECT interlock.grant_idempotency_scope('pay', 'idem_app');
SELECT as_app();
SELECT interlock.revoke_idempotency_scope('pay', 'idem_app');
SELECT as_app();
DELETE FROM interlock.idempotency_grant;
SELECT interlock.grant_idempotency_scope('pay', 'idem_app'), interlock.grant_idempotency_scope('job', 'idem_app');

-- A command runs as the caller, its SECURITY DEFINER functions as theirs, and what a key asks for is evaluated by the caller
CREATE FUNCTION who(request jsonb) RETURNS jsonb LANGUAGE sql AS $$
    SELECT jsonb_build_object('user', current_user, 'may_write', has_table_privilege('interlock.idempotency', 'UPDATE'), 'path', current_setting('search_path'))
$$;
CREATE FUNCTION forge(request jsonb) RETURNS void LANGUAGE sql AS $$UPDATE interlock.idempotency SET response = request$$;
SET ROLE idem_app;
SELECT * FROM interlock.run_once('pay', 'who', 'who(jsonb)');
SELECT * FROM interlock.run_once('pay', 'forge', 'forge(jsonb)', '"forged"');
SELECT current_user;
RESET ROLE;
SET interlock.direct_execution = off;
SET ROLE idem_app;
SELECT * FROM interlock.run_once('pay', 'who too', 'who(jsonb)');
RESET ROLE;
RESET interlock.direct_execution;

-- Code on the table: of another role it is refused, to superusers too; the owner's runs restricted, past policies
CREATE TABLE seen (name text, "user" name, path text);
CREATE FUNCTION see() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO rights.seen VALUES (TG_NAME, current_user, current_setting('search_path'));
    RETURN NEW;
END $$;
CREATE FUNCTION hostile() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE 'ALTER ROLE idem_other SUPERUSER';
    RETURN NEW;
END $$;
ALTER FUNCTION hostile() OWNER TO idem_other;
GRANT TRIGGER ON interlock.idempotency TO idem_other;
SET ROLE idem_other;
CREATE TRIGGER hostile BEFORE INSERT OR UPDATE ON interlock.idempotency FOR EACH ROW EXECUTE FUNCTION hostile();
SET ROLE idem_app;
SELECT interlock.idempotency_claim('pay', 'hostile');
RESET ROLE;
SELECT interlock.idempotency_claim('pay', 'hostile');
SET interlock.direct_execution = off;
SET ROLE idem_app;
SELECT interlock.idempotency_claim('pay', 'hostile');
RESET ROLE;
RESET interlock.direct_execution;
DROP TRIGGER hostile ON interlock.idempotency;
SELECT rolsuper FROM pg_roles WHERE rolname = 'idem_other';
CREATE TRIGGER see BEFORE INSERT OR UPDATE ON interlock.idempotency FOR EACH ROW EXECUTE FUNCTION see();
ALTER TABLE interlock.idempotency ENABLE ROW LEVEL SECURITY;
CREATE FUNCTION no_such() RETURNS boolean LANGUAGE sql AS 'SELECT false';
CREATE POLICY nothing ON interlock.idempotency USING (rights.no_such());
SET ROLE idem_app;
SELECT outcome, token AS seen FROM interlock.idempotency_claim('pay', 'seen') \gset
RESET ROLE;
SET interlock.direct_execution = off;
SET ROLE idem_app;
SELECT interlock.idempotency_complete('pay', 'seen', :seen);
SELECT outcome FROM interlock.idempotency_claim('pay', 'seen');
RESET ROLE;
RESET interlock.direct_execution;
SELECT name, "user" = session_user AS owner, path FROM seen;
CREATE OR REPLACE FUNCTION see() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE 'CREATE TEMP TABLE trap ()';
    RETURN NEW;
END $$;
SET ROLE idem_app;
SELECT interlock.idempotency_claim('pay', 'restricted');
SELECT current_user, current_setting('search_path');
RESET ROLE;
DROP TRIGGER see ON interlock.idempotency;
UPDATE interlock.idempotency SET expires_at = now();
CREATE TRIGGER see BEFORE INSERT OR UPDATE ON interlock.idempotency FOR EACH ROW EXECUTE FUNCTION see();
CREATE OR REPLACE FUNCTION see() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';
SET ROLE idem_app;
SELECT outcome FROM interlock.idempotency_claim('pay', 'suppressed');
\set VERBOSITY sqlstate
SELECT interlock.idempotency_claim('pay', 'order 1');
\set VERBOSITY terse
SELECT interlock.idempotency_claim('pay', 'order 1');
RESET ROLE;
DROP TRIGGER see ON interlock.idempotency;
DROP POLICY nothing ON interlock.idempotency;
ALTER TABLE interlock.idempotency DISABLE ROW LEVEL SECURITY;
REVOKE TRIGGER ON interlock.idempotency FROM idem_other;
-- so does what its owner adds: columns, checks and indexes
CREATE FUNCTION note(attempt int) RETURNS int LANGUAGE plpgsql AS $$
BEGIN
    RAISE NOTICE 'as owner: %, search_path: %', current_user = session_user, current_setting('search_path');
    RETURN attempt;
END $$;
SET client_min_messages = notice;
BEGIN;
ALTER TABLE interlock.idempotency ADD CONSTRAINT noted CHECK (rights.note(attempt) > 0) NOT VALID;
SET ROLE idem_app;
SELECT outcome FROM interlock.idempotency_claim('pay', 'checked');
RESET ROLE;
ALTER TABLE interlock.idempotency DROP CONSTRAINT noted, ADD COLUMN noted int;
ALTER TABLE interlock.idempotency ALTER noted SET DEFAULT rights.note(1);
SET ROLE idem_app;
SELECT outcome FROM interlock.idempotency_claim('pay', 'by default');
RESET ROLE;
ROLLBACK;
SET client_min_messages = warning;
-- nor does a trigger on the grants get them
GRANT TRIGGER ON interlock.idempotency_grant TO idem_other;
SET ROLE idem_other;
CREATE TRIGGER hostile BEFORE INSERT OR DELETE ON interlock.idempotency_grant FOR EACH ROW EXECUTE FUNCTION hostile();
RESET ROLE;
SELECT interlock.grant_idempotency_scope('more', 'idem_app');
SELECT interlock.revoke_idempotency_scope('pay', 'idem_app');
DROP TRIGGER hostile ON interlock.idempotency_grant;
REVOKE TRIGGER ON interlock.idempotency_grant FROM idem_other;

TRUNCATE interlock.idempotency, interlock.idempotency_scope, interlock.idempotency_grant;
DROP SCHEMA rights CASCADE;
DROP ROLE idem_app, idem_member, idem_other, "Idem O'dd";
