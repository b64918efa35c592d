-- What is in the way of a key, leases that are released by their holder's name, and modes of acquire_leases.
BEGIN;
SELECT plan(37);
CREATE ROLE lease_app;
CREATE ROLE lease_member;
CREATE ROLE lease_other;
GRANT lease_app TO lease_member;
CREATE TABLE got (key text, token bigint);
GRANT ALL ON got TO PUBLIC;
CREATE FUNCTION take(wanted text, holder text, mode text = 'exclusive') RETURNS text LANGUAGE sql AS $$
    WITH l AS (SELECT * FROM interlock.acquire_lease(wanted, '1 min', holder => holder, mode => mode)),
        i AS (INSERT INTO got SELECT wanted, l.token FROM l WHERE l.token IS NOT NULL) SELECT l.outcome FROM l $$;
CREATE FUNCTION token(wanted text) RETURNS bigint LANGUAGE sql AS 'SELECT token FROM got WHERE key = wanted';

-- LEA-3: lease_of
SELECT is_empty($$SELECT * FROM interlock.lease_of('a/b')$$, 'LEA-3: nothing is in the way of a free key');
DO $$BEGIN PERFORM take('a/b', 'worker 1'); END$$;
SELECT results_eq($$SELECT mode, holder, token, role, pid, since <= clock_timestamp(), expires_at > clock_timestamp(), blocks_key, pinned_by, pinned_since FROM interlock.lease_of('a/b')$$,
    $$VALUES ('exclusive', 'worker 1', token('a/b'), current_user::text COLLATE "default", NULL::int, true, true, 'a/b', NULL::int[], NULL::timestamptz)$$, 'the lease of the key');
SELECT results_eq($$SELECT k, holder, blocks_key FROM unnest('{a,a/b/c,a/b/c/d,a/c,a-b,b}'::text[]) k, interlock.lease_of(k)$$,
    $$VALUES ('a', 'worker 1', 'a/b'), ('a/b/c', 'worker 1', 'a/b'), ('a/b/c/d', 'worker 1', 'a/b')$$, 'LEA-3: one above or below is in the way, too');
SELECT results_eq($$SELECT k, (SELECT outcome FROM interlock.acquire_lease(k)) FROM unnest('{a,a/b/c,a/b/c/d}'::text[]) k$$,
    $$VALUES ('a', 'held'), ('a/b/c', 'held'), ('a/b/c/d', 'held')$$, 'as an acquire says');
DO $$BEGIN PERFORM take('a/b2/c', 'worker 2'); END$$;
DO $$BEGIN PERFORM interlock.break_lease('a/b', 'test'); END$$;
SELECT results_eq($$SELECT blocks_key FROM interlock.lease_of('a')$$, ARRAY['a/b2/c'], 'what has ended is passed over');
SELECT results_eq($$SELECT outcome FROM interlock.acquire_lease('bound', bind => 'session')$$, ARRAY['acquired'], 'a lease of the session');
SELECT results_eq($$SELECT pid, expires_at FROM interlock.lease_of('bound')$$, $$VALUES (pg_backend_pid(), 'infinity'::timestamptz)$$, 'shows the session');
DO $$BEGIN PERFORM take('s', 'reader', 'shared'), (SELECT outcome FROM interlock.acquire_permit('p', 2, holder => 'first')); END$$;
SELECT results_eq($$SELECT k, mode, holder FROM unnest('{s,p}'::text[]) k, interlock.lease_of(k)$$, $$VALUES ('s', 'shared', 'reader'), ('p', 'permit', 'first')$$,
    'shared ones and permits are in the way of an exclusive one');
DO $$BEGIN PERFORM outcome FROM interlock.acquire_lease('brief/x', '1 ms'); END$$;
DO $$BEGIN PERFORM pg_sleep(0.01); END$$;
SELECT is_empty($$SELECT * FROM interlock.lease_of('brief')$$, 'an expired lease is not in the way');
SELECT is_empty($$SELECT * FROM interlock.lease_of('brief/x/y')$$, 'from below neither');

-- Who sees the token
SET LOCAL ROLE lease_app;
DO $$BEGIN PERFORM take('app', 'app'); END$$;
SELECT isnt((SELECT token FROM interlock.lease_of('app')), NULL, 'SEC-2: the role sees the token');
SET LOCAL ROLE lease_member;
SELECT isnt((SELECT token FROM interlock.lease_of('app')), NULL, 'SEC-2: and its members');
RESET ROLE;
-- The role of the session counts as well, and it is a superuser here: lease/role.pl has the others.

-- SEC-3: who pins it
DO $$BEGIN PERFORM interlock.assert_lease('app', token('app')); END$$;
SELECT results_eq($$SELECT pinned_by, pinned_since FROM interlock.lease_of('app/x')$$, $$VALUES (ARRAY[pg_backend_pid()], transaction_timestamp())$$, 'SEC-3: process and start of the transaction that pins it');
SELECT results_eq($$SELECT role, pinned_by FROM interlock.leases WHERE key = 'app'$$, $$VALUES ('lease_app', ARRAY[pg_backend_pid()])$$, 'as in the view');

SELECT throws_ok($$SELECT * FROM interlock.lease_of(NULL)$$, '22004');
SELECT throws_ok($$SELECT * FROM interlock.lease_of('')$$, '22023');
SELECT throws_ok($$SELECT * FROM interlock.lease_of('a//b')$$, '22023');

-- LEA-4: release by the holder's name
DO $$BEGIN PERFORM take('r', 'request 7'); END$$;
SELECT is(interlock.release_lease('r', holder => 'request 8'), false, 'another holder has nothing to release');
SELECT is(interlock.release_lease('r', holder => 'request 7'), true, 'LEA-4: the holder releases it without the token');
SELECT is(interlock.release_lease('r', holder => 'request 7'), false, 'once');
SELECT is_empty($$SELECT * FROM interlock.lease_of('r')$$, 'it is free');
DO $$BEGIN PERFORM take('m', 'many', 'shared'), take('m', 'many', 'shared'), take('m', 'other', 'shared'); END$$;
SELECT is(interlock.release_lease('m', holder => 'many'), true, 'all that the holder has on the key');
SELECT results_eq($$SELECT holder FROM interlock.leases WHERE key = 'm'$$, ARRAY['other'], 'are released, and no other');
SELECT throws_ok($$SELECT interlock.release_lease('r')$$, '22004', 'argument "token" must not be null');
SELECT throws_ok($$SELECT interlock.release_lease('r', 1, 'request 7')$$, '22023', 'argument "holder" must not be given with a token');
SELECT throws_ok($$SELECT interlock.release_lease('r', holder => '')$$, '22023', 'argument "holder" must not be empty');

-- LEA-8: modes of acquire_leases
SELECT results_eq($$SELECT outcome, cardinality(tokens) FROM interlock.acquire_leases('{x,y}', mode => 'shared') UNION ALL SELECT outcome, cardinality(tokens) FROM interlock.acquire_leases('{y,z}', mode => 'shared')$$,
    $$VALUES ('acquired', 2), ('acquired', 2)$$, 'LEA-8: several shared leases');
SELECT results_eq($$SELECT outcome, blocked_by FROM interlock.acquire_leases('{z,w}')$$, $$VALUES ('held', 'z')$$, 'which exclude exclusive ones');
SELECT results_eq($$SELECT outcome, tokens[1] = tokens[2] FROM interlock.acquire_leases('{twice,twice}')$$, $$VALUES ('acquired', true)$$, 'LEA-8: a key that is given twice has one lease and its token twice');
SELECT results_eq($$SELECT outcome, expires_at FROM interlock.acquire_leases('{b1,b2}', bind => 'session')$$, $$VALUES ('acquired', 'infinity'::timestamptz)$$, 'LEA-8: several of the session');
SELECT results_eq($$SELECT key, pid FROM interlock.leases WHERE key IN ('b1', 'b2') ORDER BY key$$, $$VALUES ('b1', pg_backend_pid()), ('b2', pg_backend_pid())$$, 'which are bound to it');
SELECT throws_ok($$SELECT interlock.acquire_leases('{a}', mode => 'permit')$$, '22023');
SELECT throws_ok($$SELECT interlock.acquire_leases('{a}', bind => NULL)$$, '22004');

-- LEA-7: why a lease is not held, for members of its role
CREATE FUNCTION why(key text, token bigint) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    detail text;
BEGIN
    PERFORM interlock.assert_lease(key, token);
    RETURN 'held';
EXCEPTION WHEN SQLSTATE 'IL006' THEN
    GET STACKED DIAGNOSTICS detail = PG_EXCEPTION_DETAIL;
    RETURN detail::json->>'state';
END $$;
DO $$BEGIN PERFORM take('why', 'h'); END$$;
SELECT is(why('why', token('why')) || ' ' || why('why', token('why') + 1), 'held gone', 'LEA-7: a wrong token');
SELECT results_eq($$SELECT outcome FROM interlock.acquire_lease('why not', '1 ms', holder => 'h')$$, ARRAY['acquired'], 'one that expires');
DO $$BEGIN PERFORM pg_sleep(0.01); END$$;
SELECT is(why('why not', (SELECT token FROM interlock.acquire_lease('why not', '1 ms', holder => 'h', resume => true), pg_sleep(0.01))), 'expired', 'LEA-7: is said to have expired');
DO $$BEGIN PERFORM interlock.release_lease('why', token('why')); END$$;
SELECT is(why('why', token('why')), 'ended', 'LEA-7: one that was released while it is pinned has ended');

SELECT * FROM finish();
ROLLBACK;
