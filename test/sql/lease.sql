-- Leases within one session: outcomes, tokens, modes, permits, paths, several at once, expiry, what
-- transactions do to them, breaking, the session's end, views. Bad input is in lease_input; what two
-- sessions do to each other is in the isolation tests. Tokens and times are compared, never shown.
\pset null '(null)'
\set SHOW_CONTEXT never
\set VERBOSITY terse
CREATE SCHEMA lease;
SET search_path = lease;
SET application_name = 'the application';
CREATE VIEW lease AS SELECT key, mode, holder, ttl, pid = pg_backend_pid() AS bound_here, pins, durable FROM interlock.leases ORDER BY key, token;
CREATE FUNCTION release_all() RETURNS bigint LANGUAGE sql AS 'SELECT count(*) FILTER (WHERE interlock.release_lease(key, token)) FROM interlock.leases';

-- acquire, held, release
SELECT outcome, token > 0 AS has_token, expires_at > clock_timestamp() AS live, expires_at <= clock_timestamp() + interval '30 s' AS in_time, holder
    FROM interlock.acquire_lease('a');
SELECT token AS first FROM interlock.leases WHERE key = 'a' \gset
SELECT * FROM lease;
SELECT outcome, token, expires_at > clock_timestamp() AS live, holder FROM interlock.acquire_lease('a', '10 s', holder => 'bert');
-- it is not reentrant: whoever asks, the token is what tells them apart
SELECT outcome, token, holder FROM interlock.acquire_lease('a');
SELECT interlock.release_lease('a', :first), interlock.release_lease('a', :first);
SELECT * FROM lease;
SELECT outcome, token > :first AS newer, holder FROM interlock.acquire_lease('a', '10 s', '0', 'bert', 'exclusive', 'ttl');
SELECT token AS second FROM interlock.leases WHERE key = 'a' \gset
-- S2: the older token is good for nothing
SELECT interlock.release_lease('a', :first), interlock.renew_lease('a', :first), interlock.assert_lease('a', :second);
SELECT interlock.assert_lease('a', :first);
SELECT holder FROM lease;
SELECT interlock.release_lease('a', :second);
-- IL006, with what an application needs
\set VERBOSITY default
SELECT interlock.assert_lease('a "quoted"', 7);
\set VERBOSITY terse
DO $$
BEGIN
    PERFORM interlock.assert_lease('a', 7);
EXCEPTION WHEN SQLSTATE 'IL006' THEN
    RAISE NOTICE 'IL006';
END $$;
-- a call for each row of FROM; one call, one lease
SELECT n, outcome FROM generate_series(1, 3) n, LATERAL interlock.acquire_lease('a', holder => n::text);
SELECT release_all();

-- S3: tokens only grow, whatever the key and the mode
CREATE TABLE seen (n serial, token bigint);
INSERT INTO seen (token) SELECT token FROM generate_series(1, 200) n, LATERAL interlock.acquire_lease('k' || n % 3, mode => CASE n % 2 WHEN 0 THEN 'shared' ELSE 'exclusive' END),
    LATERAL interlock.release_lease('k' || n % 3, token);
INSERT INTO seen (token) SELECT unnest(tokens) FROM interlock.acquire_leases('{t3,t1,t2}');
SELECT release_all();
SELECT count(*), count(token), bool_and(token > before) AS grows FROM (SELECT n, token, lag(token) OVER (ORDER BY n) AS before FROM seen WHERE n <= 200) x;
SELECT count(*), min(token) > (SELECT max(token) FROM seen WHERE n <= 200) AS grows FROM seen WHERE n > 200;

-- renew: from now on, never shorter, and as often as one likes
SELECT outcome, expires_at AS first_end FROM interlock.acquire_lease('r', '20 s') \gset
SELECT token AS r FROM interlock.leases WHERE key = 'r' \gset
SELECT interlock.renew_lease('r', :r) AS second_end \gset
SELECT :'second_end'::timestamptz >= :'first_end' AS later;
SELECT interlock.renew_lease('r', :r, '50 s') AS third_end \gset
SELECT :'third_end'::timestamptz - :'second_end' > interval '25 s' AS longer;
SELECT ttl FROM lease;
SELECT abs(extract(epoch FROM interlock.renew_lease('r', :r, '1 s') - :'third_end'::timestamptz)) < 1 AS not_shorter;
SELECT ttl FROM lease;
SELECT abs(extract(epoch FROM expires_at - :'third_end'::timestamptz)) < 1 AS as_answered FROM interlock.leases;
SELECT interlock.renew_lease('r', :r + 1), interlock.renew_lease('s', :r);
SELECT interlock.release_lease('r', :r), interlock.renew_lease('r', :r);

-- a lease that is longer than lease_durable_after has a record of its own, and loses nothing by a renewal
SELECT outcome, expires_at - clock_timestamp() > interval '1 h 59 min' AS long FROM interlock.acquire_lease('long', '2 h');
SELECT token AS long FROM interlock.leases \gset
SELECT * FROM lease;
SELECT interlock.renew_lease('long', :long, '1 s') - clock_timestamp() > interval '1 h 59 min' AS long;
SELECT key, durable FROM lease;
SELECT interlock.renew_lease('long', :long, '5 h') - clock_timestamp() > interval '4 h 59 min' AS longer;
SELECT outcome FROM interlock.acquire_lease('long', '2 h');
SELECT interlock.release_lease('long', :long), interlock.release_lease('long', :long);
-- and one that becomes long is recorded then
SELECT outcome FROM interlock.acquire_lease('long', '2 s');
SELECT key, durable FROM lease;
SELECT token AS long FROM interlock.leases \gset
SELECT interlock.renew_lease('long', :long, '1 day') IS NOT NULL AS renewed;
SELECT key, durable FROM lease;
SELECT interlock.release_lease('long', :long);
SELECT * FROM lease;

-- expiry: free at once for others, and the old token is dead when somebody has taken it
SELECT outcome FROM interlock.acquire_lease('e', '1 ms', holder => 'slow');
SELECT token AS slow FROM interlock.acquire_lease('f', '1 ms', holder => 'slow') \gset
SELECT pg_sleep(0.02);
SELECT * FROM lease;
SELECT interlock.assert_lease('f', :slow);
SELECT interlock.release_lease('f', :slow);
SELECT token AS slow FROM interlock.acquire_lease('f', '1 ms', holder => 'slow') \gset
SELECT pg_sleep(0.02);
SELECT outcome, token > :slow AS newer FROM interlock.acquire_lease('f', '1 min', holder => 'next');
SELECT interlock.renew_lease('f', :slow), interlock.release_lease('f', :slow);
SELECT interlock.assert_lease('f', :slow);
-- one that expired is renewed as long as nobody took it, also in another mode or place
SELECT token AS slow FROM interlock.acquire_lease('g/h', '1 ms') \gset
SELECT pg_sleep(0.02);
SELECT interlock.renew_lease('g/h', :slow, '1 min') > clock_timestamp() AS renewed;
SELECT interlock.release_lease('g/h', :slow);
SELECT token AS slow FROM interlock.acquire_lease('g/h', '1 ms') \gset
SELECT pg_sleep(0.02);
SELECT outcome FROM interlock.acquire_lease('g', '1 min', mode => 'shared');
SELECT interlock.renew_lease('g/h', :slow, '1 min'), interlock.release_lease('g/h', :slow);
SELECT outcome FROM interlock.acquire_permit('p', 1, '1 ms', holder => 'slow');
SELECT pg_sleep(0.02);
SELECT outcome, holder FROM interlock.acquire_permit('p', 1, holder => 'next');
SELECT release_all();

-- shared and exclusive
SELECT outcome FROM interlock.acquire_lease('s', mode => 'shared', holder => 'one');
SELECT outcome FROM interlock.acquire_lease('s', mode => 'shared', holder => 'two');
SELECT outcome, holder IN ('one', 'two') AS named FROM interlock.acquire_lease('s');
SELECT * FROM lease;
SELECT interlock.release_lease('s', token) FROM interlock.leases WHERE holder = 'one';
SELECT outcome, holder FROM interlock.acquire_lease('s');
SELECT interlock.release_lease('s', token) FROM interlock.leases WHERE holder = 'two';
SELECT outcome FROM interlock.acquire_lease('s', holder => 'three');
SELECT outcome, holder FROM interlock.acquire_lease('s', mode => 'shared');
SELECT release_all();

-- permits: at most so many, whatever else is there
SELECT n, outcome, token IS NOT NULL AS has_token FROM generate_series(1, 4) n, LATERAL interlock.acquire_permit('pool', 3, '1 min', holder => 'worker ' || n);
SELECT count(interlock.release_lease(key, token)) FROM interlock.leases WHERE holder = 'worker 2';
SELECT outcome, holder FROM interlock.acquire_permit('pool', 3, '50 s', '0', 'worker 5');
SELECT * FROM lease;
-- of a full pool, the one that ends first is named
SELECT outcome, holder FROM interlock.acquire_permit('pool', 3, holder => 'worker 6');
SELECT outcome FROM interlock.acquire_lease('pool');
SELECT outcome, holder FROM interlock.acquire_lease('pool', mode => 'shared', holder => 'reader');
SELECT outcome, holder FROM interlock.acquire_permit('pool', 3, holder => 'worker 7');
SELECT token AS worker FROM interlock.leases WHERE holder = 'worker 1' \gset
SELECT interlock.assert_lease('pool', :worker), interlock.renew_lease('pool', :worker) > clock_timestamp() AS renewed, interlock.release_lease('pool', :worker);
SELECT outcome, holder FROM interlock.acquire_permit('pool', 3, holder => 'a shared lease does not count');
-- SEC-2: the first holder has fixed the capacity, for as long as a permit is held
\set VERBOSITY default
SELECT outcome FROM interlock.acquire_permit('pool', 4);
\set VERBOSITY sqlstate
SELECT outcome FROM interlock.acquire_permit('pool', 1000000000, wait => '1 min');
SELECT outcome FROM interlock.acquire_permit('pool', 1, '2 h');
\set VERBOSITY terse
SELECT count(*) FROM lease WHERE mode = 'permit';
SELECT count(interlock.release_lease(key, token)) FROM interlock.leases WHERE mode = 'permit';
SELECT outcome, holder FROM interlock.acquire_permit('pool', 1, '1 ms', holder => 'expires');
SELECT pg_sleep(0.02);
SELECT outcome, holder FROM interlock.acquire_permit('pool', 2000000000, '2 h', holder => 'one of very many');
SELECT outcome, holder FROM interlock.acquire_permit('pool', 2147483647, holder => 'another');
SELECT interlock.break_lease('pool', 'all of them');
DELETE FROM interlock.lease_audit;
SELECT outcome, holder FROM interlock.acquire_permit('pool', 2, '1 min', holder => 'asserts');
BEGIN;
SELECT interlock.assert_lease(key, token), interlock.release_lease(key, token) FROM interlock.leases WHERE key = 'pool';
SELECT outcome FROM interlock.acquire_permit('pool', 1);
SELECT outcome FROM interlock.acquire_permit('pool', 2);
COMMIT;
SELECT release_all();
SELECT outcome FROM interlock.acquire_lease('pool', holder => 'exclusive');
SELECT outcome, holder FROM interlock.acquire_permit('pool', 3);
SELECT outcome, holder FROM interlock.acquire_permit('pool/below', 3);
SELECT release_all();
SELECT outcome FROM interlock.acquire_permit('pool/below', 1, holder => 'below');
SELECT outcome FROM interlock.acquire_permit('pool', 1, holder => 'above: it is another pool');
SELECT outcome, holder FROM interlock.acquire_lease('pool', holder => 'exclusive');
SELECT release_all();

-- paths: the same, ancestors and descendants; a level is a whole one
SELECT outcome FROM interlock.acquire_lease('doc/assets', holder => 'middle');
CREATE FUNCTION try(key text, mode text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    answer record;
BEGIN
    SELECT * INTO answer FROM interlock.acquire_lease(key, mode => mode);
    IF answer.outcome = 'acquired' THEN
        PERFORM interlock.release_lease(key, answer.token);
    END IF;
    RETURN answer.outcome;
END $$;
CREATE TABLE path (n serial, key text);
INSERT INTO path (key) VALUES ('doc'), ('doc/assets'), ('doc/assets/thumb'), ('doc/assets/thumb/small'), ('doc/asset'), ('doc/assets-old'), ('doc/assets.'),
    ('doc/price'), ('do'), ('doc-a'), ('docs'), ('docs/assets'), ('assets'), ('Doc/assets');
SELECT key, try(key, 'exclusive') AS exclusive, try(key, 'shared') AS shared FROM path ORDER BY n;
SELECT release_all();
SELECT outcome FROM interlock.acquire_lease('doc/assets', mode => 'shared');
SELECT key, try(key, 'exclusive') AS exclusive, try(key, 'shared') AS shared FROM path ORDER BY n;
SELECT outcome FROM interlock.acquire_lease('doc/assets/thumb', mode => 'shared');
SELECT outcome FROM interlock.acquire_lease('doc', mode => 'shared');
SELECT * FROM lease;
SELECT release_all();
-- siblings at once, and the parent only when the last of them is gone
SELECT n, outcome FROM generate_series(1, 3) n, LATERAL interlock.acquire_lease('doc/' || n, holder => n::text);
SELECT outcome FROM interlock.acquire_lease('doc');
SELECT count(interlock.release_lease(key, token)) FROM interlock.leases WHERE key <> 'doc/2';
SELECT outcome, holder FROM interlock.acquire_lease('doc');
SELECT count(interlock.release_lease(key, token)) FROM interlock.leases;
SELECT outcome FROM interlock.acquire_lease('doc');
SELECT release_all();
-- a token is of one key, not of what is below it
SELECT token AS doc FROM interlock.acquire_lease('doc') \gset
SELECT interlock.renew_lease('doc/x', :doc), interlock.release_lease('doc/x', :doc);
SELECT interlock.assert_lease('doc/x', :doc);
SELECT release_all();

-- several: tokens in the order of keys, one for equal keys
SELECT outcome, cardinality(tokens), tokens[2] = tokens[4] AS same, tokens[1] <> tokens[2] AND tokens[2] <> tokens[3] AS others, expires_at > clock_timestamp() AS live, blocked_by, holder
    FROM interlock.acquire_leases('{c,a,b/x,a}', '1 min', holder => 'several');
SELECT * FROM lease;
SELECT outcome, tokens, expires_at > clock_timestamp() AS live, blocked_by, holder FROM interlock.acquire_leases('{z,b,a-b,y}', holder => 'other');
SELECT outcome, blocked_by FROM interlock.acquire_leases('{a-b,y}', holder => 'other');
SELECT outcome, tokens, blocked_by, holder FROM interlock.acquire_leases('{b/x/y,z}', wait => '20 ms');
SELECT count(*) FROM interlock.leases;
SELECT release_all();
SELECT outcome, tokens FROM interlock.acquire_leases('{c,a,b}') \gset
SELECT key, interlock.release_lease(key, token) FROM unnest('{c,a,b}'::text[], :'tokens'::bigint[]) x(key, token);
SELECT outcome, (SELECT count(*) FROM unnest(tokens)) FROM interlock.acquire_leases('{1,2,3}', '2 h', '1 s', NULL);
SELECT * FROM lease;
SELECT release_all();
-- none is none
SELECT outcome, tokens, expires_at, blocked_by FROM interlock.acquire_leases('{}');
SELECT outcome, cardinality(tokens) FROM interlock.acquire_leases('{{a,b},{c,d}}');
SELECT release_all();
-- keys of one call must not exclude each other
SELECT interlock.acquire_leases('{a/b,x,a}');
SELECT interlock.acquire_leases('{a/b/c,a-b,a}', wait => '1 s');
SELECT outcome FROM interlock.acquire_leases('{a-b,a,a.b/c,ab,aa/b}');
SELECT release_all();
-- one that has expired is not in the way, though its loss has to be durable first
SELECT outcome FROM interlock.acquire_lease('lost', '1 ms');
SELECT pg_sleep(0.02);
SELECT outcome, cardinality(tokens), blocked_by FROM interlock.acquire_leases('{free,lost}', '1 min');
SELECT key FROM lease;
SELECT release_all();
-- a shared lease is in the way too
SELECT outcome FROM interlock.acquire_lease('m/n', mode => 'shared', holder => 'reader');
SELECT outcome, blocked_by, holder FROM interlock.acquire_leases('{l,m,n}');
SELECT * FROM lease;
SELECT release_all();

-- waiting ends with wait, lock_timeout (as held), or an error, and nothing of it stays
SELECT outcome FROM interlock.acquire_lease('w', '1 min', holder => 'holder');
SELECT outcome, holder FROM interlock.acquire_lease('w', wait => '20 ms');
SET lock_timeout = '20 ms';
SELECT outcome, holder FROM interlock.acquire_lease('w', wait => '1 h');
SELECT outcome, holder FROM interlock.acquire_permit('w', 3, wait => NULL);
SELECT outcome, blocked_by FROM interlock.acquire_leases('{v,w,x}', wait => NULL);
RESET lock_timeout;
SET statement_timeout = '100 ms';
SELECT interlock.acquire_lease('w', wait => NULL);
SELECT interlock.acquire_leases('{v,w,x}', wait => '1 h');
RESET statement_timeout;
SELECT * FROM lease;
SELECT count(*) FROM interlock.lease_waiters;
SELECT release_all();
-- it is woken by expiry
SELECT outcome FROM interlock.acquire_lease('w', '30 ms');
SELECT outcome FROM interlock.acquire_lease('w', wait => '1 min', holder => 'patient');
SELECT outcome FROM interlock.acquire_lease('x/y', '30 ms');
SELECT outcome FROM interlock.acquire_leases('{x,v}', wait => '1 min', holder => 'patient');
SELECT key, holder FROM lease;
SELECT release_all();

-- leases and transactions: rollback keeps them, and a release is not undone
BEGIN;
SELECT outcome FROM interlock.acquire_lease('kept', '1 min');
SAVEPOINT s;
SELECT outcome FROM interlock.acquire_lease('kept too', '1 min');
ROLLBACK TO s;
SELECT key FROM lease;
ROLLBACK;
SELECT key FROM lease;
BEGIN;
SELECT release_all();
ROLLBACK;
SELECT key FROM lease;
-- a transaction that failed afterwards
DO $$
BEGIN
    PERFORM interlock.acquire_lease('in a block', '1 min');
    PERFORM 1 / 0;
EXCEPTION WHEN division_by_zero THEN
    PERFORM interlock.acquire_lease('in its handler', '1 min');
END $$;
SELECT key FROM lease;
SELECT release_all();
-- and procedures that commit
CREATE PROCEDURE work() LANGUAGE plpgsql AS $$
DECLARE
    mine bigint;
BEGIN
    SELECT token INTO mine FROM interlock.acquire_lease('work', '1 min');
    FOR i IN 1..3 LOOP
        PERFORM interlock.assert_lease('work', mine);
        RAISE NOTICE '% pins', (SELECT pins FROM interlock.leases);
        IF i = 2 THEN ROLLBACK; ELSE COMMIT; END IF;
        RAISE NOTICE '% pins', (SELECT pins FROM interlock.leases);
    END LOOP;
    RAISE NOTICE 'released: %', interlock.release_lease('work', mine);
END $$;
CALL work();

-- read-only, REPEATABLE READ, SERIALIZABLE
BEGIN READ ONLY;
SELECT token AS t FROM interlock.acquire_lease('read only', '1 min') \gset
SELECT interlock.assert_lease('read only', :t), interlock.renew_lease('read only', :t, '2 h') > clock_timestamp() AS renewed, interlock.release_lease('read only', :t);
SELECT outcome FROM interlock.acquire_lease('long', '3 h');
SELECT key, pins, durable FROM lease;
SELECT outcome FROM interlock.acquire_permit('pool', 2);
SELECT outcome FROM interlock.acquire_leases('{read,only}');
SELECT release_all();
COMMIT;
BEGIN ISOLATION LEVEL REPEATABLE READ;
SELECT outcome FROM interlock.acquire_lease('rr');
SELECT count(*) FROM lease;
SELECT release_all();
COMMIT;
BEGIN ISOLATION LEVEL SERIALIZABLE READ ONLY DEFERRABLE;
SELECT outcome FROM interlock.acquire_lease('ser');
SELECT count(*) FROM lease;
SELECT release_all();
COMMIT;
-- C6: time counts from the clock, not from the start of the transaction
BEGIN;
SELECT pg_sleep(0.05);
SELECT outcome, expires_at >= now() + interval '1.05 s' AS counted_from_now FROM interlock.acquire_lease('clock', '1 s');
SELECT since >= now() + interval '0.05 s' AS since_now FROM interlock.leases;
COMMIT;
SELECT release_all();

-- assertions pin to the end of the transaction, however the lease ends
SELECT token AS t FROM interlock.acquire_lease('pin/ned', '1 min', holder => 'pinner') \gset
BEGIN;
SELECT interlock.assert_lease('pin/ned', :t), interlock.assert_lease('pin/ned', :t);
SELECT key, pins FROM lease;
SAVEPOINT s;
SELECT interlock.release_lease('pin/ned', :t), interlock.release_lease('pin/ned', :t);
SELECT key, pins FROM lease;
SELECT outcome, holder FROM interlock.acquire_lease('pin/ned', mode => 'shared');
SELECT outcome, holder FROM interlock.acquire_lease('pin');
SELECT outcome, holder FROM interlock.acquire_lease('pin/ned/below');
SELECT outcome FROM interlock.acquire_lease('pin/other');
SELECT interlock.renew_lease('pin/ned', :t);
SELECT interlock.assert_lease('pin/ned', :t);
ROLLBACK TO s;
SELECT outcome, holder FROM interlock.acquire_lease('pin/ned', wait => '20 ms');
COMMIT;
SELECT outcome FROM interlock.acquire_lease('pin/ned', '1 min');
SELECT token AS t FROM interlock.leases WHERE key = 'pin/ned' \gset
-- a savepoint that is rolled back gives no pin back
BEGIN;
SAVEPOINT s;
SELECT interlock.assert_lease('pin/ned', :t);
ROLLBACK TO s;
SELECT key, pins FROM lease;
ROLLBACK;
SELECT key, pins FROM lease;
-- many of them
SELECT tokens AS many FROM interlock.acquire_leases(ARRAY(SELECT 'many' || n FROM generate_series(1, 100) n), '1 min') \gset
BEGIN;
SELECT count(*) FROM unnest(:'many'::bigint[]) WITH ORDINALITY t(token, n), LATERAL interlock.assert_lease('many' || n, token);
SELECT pins, count(*) FROM lease GROUP BY pins ORDER BY pins;
ROLLBACK;
SELECT pins, count(*) FROM lease GROUP BY pins ORDER BY pins;
-- a pinned permit keeps its place
SELECT token AS t FROM interlock.acquire_permit('pinned pool', 1, '1 min', holder => 'pinner') \gset
BEGIN;
SELECT interlock.assert_lease('pinned pool', :t), interlock.release_lease('pinned pool', :t);
SELECT outcome, holder FROM interlock.acquire_permit('pinned pool', 1);
COMMIT;
SELECT outcome FROM interlock.acquire_permit('pinned pool', 1);
SELECT release_all();
-- a prepared transaction would keep the pin for ever
SELECT token AS t FROM interlock.acquire_lease('pin', '1 min') \gset
BEGIN;
SELECT interlock.assert_lease('pin', :t);
PREPARE TRANSACTION 'pin';
SELECT key, pins FROM lease;
SELECT release_all();

-- break: from whoever has it, audited, and only with a grant
CREATE ROLE regress_lease_user;
CREATE ROLE regress_lease_admin;
CREATE ROLE regress_lease_stats;
GRANT pg_read_all_stats TO regress_lease_stats;
GRANT USAGE ON SCHEMA lease TO regress_lease_user, regress_lease_admin, regress_lease_stats;
GRANT SELECT ON lease.lease TO PUBLIC;
SELECT token AS t FROM interlock.acquire_lease('broken', '1 min', holder => 'anna') \gset
SET ROLE regress_lease_user;
SELECT interlock.break_lease('broken', 'mine now');
SELECT * FROM interlock.lease_audit;
SELECT * FROM interlock_internal.lease_store;
RESET ROLE;
SELECT holder FROM lease;
GRANT EXECUTE ON FUNCTION interlock.break_lease(text, text, boolean) TO regress_lease_admin;
SET ROLE regress_lease_admin;
SELECT interlock.break_lease('broken', 'anna has left');
SELECT interlock.break_lease('broken', 'once more');
SELECT interlock.renew_lease('broken', :t), interlock.release_lease('broken', :t);
SELECT interlock.assert_lease('broken', :t);
RESET ROLE;
SELECT key, holder, token = :t AS same_token, broken_by, reason, would_expire_at > broken_at AS was_live, broken_at <= clock_timestamp() AS in_time FROM interlock.lease_audit ORDER BY id;
-- several holders, a long lease, a pinned one; nothing above or below the key
SELECT count(outcome) FROM unnest('{one,two}'::text[]) h, LATERAL interlock.acquire_lease('crowd/x', '1 min', mode => 'shared', holder => h);
SELECT outcome FROM interlock.acquire_permit('crowd', 1, '1 min', holder => 'above');
SELECT interlock.break_lease('crowd/x/y', 'nobody is there'), interlock.break_lease('cro', 'nor there');
SELECT string_agg(h, ', ' ORDER BY h) FROM regexp_split_to_table(interlock.break_lease('crowd/x', 'all of them'), ', ') h;
SELECT key FROM lease;
SELECT outcome FROM interlock.acquire_lease('long', '1 day', holder => 'long');
SELECT interlock.break_lease('long', 'too long');
SELECT outcome FROM interlock.acquire_lease('long', '1 day');
SELECT token AS t FROM interlock.acquire_lease('pinned', '1 min', holder => 'pinner') \gset
BEGIN;
SELECT interlock.assert_lease('pinned', :t);
SELECT key, pins, pinned_by = ARRAY[pg_backend_pid()] AS by_me, pinned_since = now() AS since_my_start FROM interlock.leases WHERE key = 'pinned';
\set VERBOSITY default
SAVEPOINT s;
SELECT interlock.break_lease('pinned', 'SEC-3: not while it is pinned', true);
\set VERBOSITY terse
ROLLBACK TO s;
SELECT interlock.break_lease('pinned', 'SEC-3: not while it is pinned', NULL);
ROLLBACK TO s;
SELECT interlock.break_lease('pinned', 'SEC-3: not while it is pinned');
ROLLBACK TO s;
SELECT outcome, holder FROM interlock.acquire_lease('pinned');
COMMIT;
SELECT interlock.break_lease('pinned', 'once is enough'), interlock.break_lease('pinned', 'once is enough');
SELECT outcome FROM interlock.acquire_lease('pinned');
SELECT key, holder, reason FROM interlock.lease_audit ORDER BY key, holder, id;
-- nothing is broken where nothing can be audited
BEGIN READ ONLY;
SELECT interlock.break_lease('pinned', 'without a trace');
ROLLBACK;
SELECT key FROM lease;
-- broken is broken, whatever becomes of the transaction
BEGIN;
SELECT interlock.break_lease('pinned', 'rolled back');
ROLLBACK;
SELECT key FROM lease;
SELECT count(*) FROM interlock.lease_audit WHERE reason = 'rolled back';
SELECT release_all();
DELETE FROM interlock.lease_audit;

-- tokens are shown to the role that acquired them and to its members (more in lease_role)
SET SESSION AUTHORIZATION regress_lease_user;
SELECT outcome, token AS mine FROM interlock.acquire_lease('mine', '1 min') \gset
SELECT key, token = :mine AS shown FROM interlock.leases;
RESET SESSION AUTHORIZATION;
SELECT token AS other FROM interlock.acquire_lease('other', '1 min', holder => 'postgres') \gset
SET SESSION AUTHORIZATION regress_lease_user;
SELECT key, holder, token = :mine AS shown, ttl FROM interlock.leases ORDER BY key;
SET SESSION AUTHORIZATION regress_lease_admin;
SELECT key, token IS NOT NULL AS shown FROM interlock.leases ORDER BY key;
SET SESSION AUTHORIZATION regress_lease_stats;
SELECT key, token IN (:mine, :other) AS shown FROM interlock.leases ORDER BY key;
RESET SESSION AUTHORIZATION;
GRANT regress_lease_user TO regress_lease_admin;
SET SESSION AUTHORIZATION regress_lease_admin;
SELECT key, token = :mine AS shown FROM interlock.leases ORDER BY key;
-- another's is not released
SELECT interlock.release_lease('other', :other);
SELECT count(*) FROM interlock.lease_waiters;
RESET SESSION AUTHORIZATION;
SELECT release_all();

-- bound to the session: no time to live, and gone with it
SET application_name = '';
SELECT outcome, expires_at, holder = 'process ' || pg_backend_pid() AS default_holder FROM interlock.acquire_lease('bound/to', bind => 'session');
SET application_name = 'the application';
SELECT token AS bound FROM interlock.leases \gset
SELECT key, ttl, bound_here, pins, durable FROM lease;
SELECT interlock.renew_lease('bound/to', :bound), interlock.renew_lease('bound/to', :bound, '1 s');
SELECT outcome, expires_at FROM interlock.acquire_lease('bound');
SELECT interlock.release_lease('bound/to', :bound), interlock.release_lease('bound/to', :bound);
SELECT outcome, token AS bound FROM interlock.acquire_lease('bound', holder => 'first session', mode => 'shared', bind => 'session') \gset
SELECT outcome FROM interlock.acquire_lease('stays', '1 min', holder => 'first session');
SELECT outcome FROM interlock.acquire_lease('broken', bind => 'session', holder => 'first session');
SELECT interlock.break_lease('broken', 'the session does not know');
DELETE FROM interlock.lease_audit;
-- many that were given back leave nothing behind in the session
SELECT count(*) FROM generate_series(1, 2000) n, LATERAL interlock.acquire_lease('turn' || n, bind => 'session') l, LATERAL interlock.release_lease('turn' || n, l.token);
SELECT sum(total_bytes) < 100000 AS small FROM pg_backend_memory_contexts WHERE name = 'pg_interlock bound leases';
-- the end of the session ends its transaction, too
BEGIN;
SELECT interlock.assert_lease('bound', :bound), interlock.assert_lease('stays', (SELECT token FROM interlock.leases WHERE key = 'stays'));
\c -
SET search_path = lease;
\set VERBOSITY terse
SELECT outcome, holder FROM interlock.acquire_lease('bound', wait => '1 min', holder => 'second session');
SELECT key, holder FROM lease;
SELECT interlock.renew_lease('bound', :bound), interlock.release_lease('bound', :bound);
DO $$
BEGIN
    FOR i IN 1..1000 LOOP
        EXIT WHEN (SELECT pins = 0 FROM interlock.leases WHERE key = 'stays');
        PERFORM pg_sleep(0.01);
    END LOOP;
END $$;
SELECT key, pins FROM lease;
SELECT release_all();

DROP SCHEMA lease CASCADE;
REVOKE EXECUTE ON FUNCTION interlock.break_lease(text, text, boolean) FROM regress_lease_admin;
DROP ROLE regress_lease_user, regress_lease_admin, regress_lease_stats;
SELECT count(*) FROM interlock.leases;
