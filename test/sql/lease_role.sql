-- SEC-2: only members of the role that acquired a lease can renew, release or assert it, or see its token; to
-- others it is as with a wrong token. What a crash and a restart leave of that is in lease/role.pl.
\pset null '(null)'
\set SHOW_CONTEXT never
\set VERBOSITY terse
CREATE SCHEMA lease_role;
SET search_path = lease_role;
CREATE ROLE regress_lease_app;
CREATE ROLE regress_lease_member;
CREATE ROLE regress_lease_noinherit NOINHERIT;
CREATE ROLE regress_lease_tenant;
CREATE ROLE regress_lease_thief;
CREATE ROLE regress_lease_stats;
GRANT regress_lease_app TO regress_lease_member, regress_lease_noinherit;
GRANT regress_lease_tenant TO regress_lease_app;
GRANT pg_read_all_stats TO regress_lease_stats;
GRANT USAGE ON SCHEMA lease_role TO PUBLIC;
GRANT CREATE ON SCHEMA lease_role TO regress_lease_thief, regress_lease_tenant;

-- What a role that knows the token can do with it.
CREATE FUNCTION attempt(key text, token bigint) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    renewed bool = interlock.renew_lease(key, token, '5 min') IS NOT NULL;
    asserted bool = true;
BEGIN
    BEGIN
        PERFORM interlock.assert_lease(key, token);
    EXCEPTION WHEN SQLSTATE 'IL006' THEN
        asserted = false;
    END;
    RETURN format('renewed %s, asserted %s, released %s', renewed, asserted, interlock.release_lease(key, token));
END $$;
CREATE FUNCTION acquired(key text, ttl interval = '1 min', mode text = 'exclusive') RETURNS bigint LANGUAGE sql AS
    'SELECT token FROM interlock.acquire_lease(key, ttl, mode => mode)';

-- another role with the very token, and one without: the same answers
SET SESSION AUTHORIZATION regress_lease_app;
SELECT acquired('app') AS app, acquired('long', '2 h') AS long \gset
SET SESSION AUTHORIZATION regress_lease_thief;
SELECT attempt('app', :app) AS right_token, attempt('app', :app + 262144) AS wrong_token, attempt('nobody', :app) AS no_lease;
SELECT attempt('long', :long);
SELECT outcome FROM interlock.acquire_lease('app', mode => 'shared');
\set VERBOSITY default
SELECT interlock.assert_lease('app', 7);
\set VERBOSITY terse
-- and one who sees how tokens grow, and counts down from one that is its own
SELECT acquired('probe') AS probe \gset
SELECT bool_or(interlock.release_lease('app', :probe - n)) AS guessed FROM generate_series(1, 300000) n;
SELECT interlock.release_lease('probe', :probe);
-- who may see it
SELECT key, token FROM interlock.leases ORDER BY key;
SET SESSION AUTHORIZATION regress_lease_stats;
SELECT key, token FROM interlock.leases ORDER BY key;
SET SESSION AUTHORIZATION regress_lease_noinherit;
SELECT key, token FROM interlock.leases ORDER BY key;
SELECT attempt('app', :app);
SET ROLE regress_lease_app;
SELECT key, token IN (:app, :long) AS shown FROM interlock.leases ORDER BY key;
SELECT attempt('app', :app);
RESET ROLE;
SET SESSION AUTHORIZATION regress_lease_member;
SELECT key, token = :long AS shown FROM interlock.leases;
SELECT attempt('long', :long);
-- what a member acquires is not the role's
SELECT acquired('member') AS member \gset
SET SESSION AUTHORIZATION regress_lease_app;
SELECT attempt('member', :member);
SET SESSION AUTHORIZATION regress_lease_member;
SELECT attempt('member', :member);
RESET SESSION AUTHORIZATION;

-- a superuser is a member of every role
SET SESSION AUTHORIZATION regress_lease_app;
SELECT acquired('app') AS app \gset
RESET SESSION AUTHORIZATION;
SELECT key, token = :app AS shown FROM interlock.leases;
SELECT attempt('app', :app);

-- pools: acquired before SET ROLE, and used after it
SET SESSION AUTHORIZATION regress_lease_app;
SELECT acquired('app') AS app \gset
SET ROLE regress_lease_tenant;
SELECT key, token = :app AS shown FROM interlock.leases;
SELECT attempt('app', :app);
-- and the other way
SELECT acquired('tenant') AS tenant \gset
RESET ROLE;
SELECT attempt('tenant', :tenant);
SET SESSION AUTHORIZATION regress_lease_noinherit;
SET ROLE regress_lease_app;
SELECT acquired('app') AS app \gset
RESET ROLE;
SELECT attempt('app', :app);
SET ROLE regress_lease_app;
SELECT attempt('app', :app);
RESET ROLE;
-- a session that is another's now
SELECT acquired('noinherit') AS noinherit \gset
SET SESSION AUTHORIZATION regress_lease_thief;
SELECT attempt('noinherit', :noinherit);
RESET SESSION AUTHORIZATION;
SELECT attempt('noinherit', :noinherit);

-- a function with the rights of its owner owns what it acquires, and gets nothing of the session
SET SESSION AUTHORIZATION regress_lease_thief;
CREATE FUNCTION wrapped_acquire(key text) RETURNS bigint LANGUAGE sql SECURITY DEFINER AS 'SELECT token FROM interlock.acquire_lease(key, ''1 min'')';
CREATE FUNCTION wrapped_attempt(key text, token bigint) RETURNS text LANGUAGE sql SECURITY DEFINER AS 'SELECT lease_role.attempt(key, token)';
CREATE FUNCTION wrapped_tokens() RETURNS bigint LANGUAGE sql SECURITY DEFINER AS 'SELECT count(token) FROM interlock.leases';
SET SESSION AUTHORIZATION regress_lease_app;
SELECT wrapped_acquire('wrapped') AS wrapped, acquired('app') AS app \gset
SELECT key, token = :app AS shown FROM interlock.leases ORDER BY key;
SELECT attempt('wrapped', :wrapped), wrapped_attempt('app', :app), wrapped_tokens();
SELECT wrapped_attempt('wrapped', :wrapped);
RESET SESSION AUTHORIZATION;
SELECT wrapped_attempt('app', :app), wrapped_tokens();
-- nor has it once the transaction has asserted the lease
BEGIN;
SELECT interlock.assert_lease('app', :app);
SELECT wrapped_attempt('app', :app);
COMMIT;
-- so with the functions of an index, whoever rebuilds it
SET SESSION AUTHORIZATION regress_lease_thief;
CREATE FUNCTION indexed(n bigint) RETURNS bigint LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    RAISE NOTICE 'in the index: %, % tokens', lease_role.attempt('app', n), (SELECT count(token) FROM interlock.leases);
    RETURN n;
END $$;
CREATE TABLE snare (token bigint);
CREATE INDEX snare_index ON snare (indexed(token));
INSERT INTO snare VALUES (:app);
RESET SESSION AUTHORIZATION;
REINDEX INDEX snare_index;
SELECT attempt('app', :app);

-- shared leases and permits: each token is of its own role
SET SESSION AUTHORIZATION regress_lease_app;
SELECT acquired('shared', mode => 'shared') AS shared, (interlock.acquire_permit('pool', 2, '1 min')).token AS permit \gset
SET SESSION AUTHORIZATION regress_lease_thief;
SELECT acquired('shared', mode => 'shared') AS other_shared, (interlock.acquire_permit('pool', 2, '1 min')).token AS other_permit \gset
SELECT key, token IN (:other_shared, :other_permit) AS mine FROM interlock.leases ORDER BY key, mine;
SELECT attempt('shared', :shared), attempt('pool', :permit);
SELECT attempt('shared', :other_shared), attempt('pool', :other_permit);
-- several at once, and one that is bound to the session
SET SESSION AUTHORIZATION regress_lease_app;
SELECT tokens[1] AS one, tokens[2] AS two FROM interlock.acquire_leases('{one,two}', '1 min') \gset
SELECT token AS bound FROM interlock.acquire_lease('bound', bind => 'session') \gset
SET SESSION AUTHORIZATION regress_lease_thief;
SELECT attempt('one', :one), attempt('two', :two), attempt('bound', :bound);
SET SESSION AUTHORIZATION regress_lease_app;
SELECT attempt('shared', :shared), attempt('pool', :permit);
SELECT attempt('one', :one), attempt('two', :two), attempt('bound', :bound);

-- what the transaction has asserted allows its writes, whoever it is meanwhile
RESET SESSION AUTHORIZATION;
CREATE TABLE doc (id int PRIMARY KEY);
SELECT interlock.require_lease('doc');
GRANT INSERT ON doc TO regress_lease_tenant, regress_lease_app;
SET SESSION AUTHORIZATION regress_lease_app;
SELECT acquired('doc:1') AS doc \gset
BEGIN;
SELECT interlock.assert_lease('doc:1', :doc);
SET LOCAL ROLE regress_lease_tenant;
INSERT INTO doc VALUES (1);
COMMIT;
SELECT interlock.release_lease('doc:1', :doc);
RESET SESSION AUTHORIZATION;

-- a role that was dropped: nobody's but a superuser's
CREATE ROLE regress_lease_gone;
SET SESSION AUTHORIZATION regress_lease_gone;
SELECT acquired('gone') AS gone, acquired('gone too', '2 h') AS gone_too \gset
RESET SESSION AUTHORIZATION;
DROP ROLE regress_lease_gone;
SET SESSION AUTHORIZATION regress_lease_app;
SELECT key, token FROM interlock.leases ORDER BY key;
SELECT attempt('gone', :gone), attempt('gone too', :gone_too);
RESET SESSION AUTHORIZATION;
SELECT key, token IN (:gone, :gone_too) AS shown FROM interlock.leases ORDER BY key;
SELECT attempt('gone', :gone), attempt('gone too', :gone_too);

SELECT count(*) FROM interlock.leases;
DROP SCHEMA lease_role CASCADE;
DROP ROLE regress_lease_app, regress_lease_member, regress_lease_noinherit, regress_lease_tenant, regress_lease_thief, regress_lease_stats;
