-- acquire_lease with resume and at_least: what one session can see. Crashes and restarts are in 094_lease_stay.pl.
BEGIN;
SELECT plan(37);
CREATE ROLE lease_app;
CREATE ROLE lease_member;
GRANT lease_app TO lease_member;
CREATE TABLE got (key text, token bigint, expires_at timestamptz);
GRANT ALL ON got TO PUBLIC;
CREATE FUNCTION token(wanted text) RETURNS bigint LANGUAGE sql AS 'SELECT token FROM got WHERE key = wanted';

-- LEA-4: resume
SELECT results_eq($$WITH l AS (SELECT * FROM interlock.acquire_lease('again', '30 s', holder => 'request 7', resume => true)), i AS (INSERT INTO got SELECT 'again', token, expires_at FROM l)
    SELECT outcome FROM l$$, ARRAY['acquired'], 'a lease that is free is acquired');
SELECT results_eq($$SELECT outcome, token, holder FROM interlock.acquire_lease('again', '1 min', holder => 'request 7', resume => true)$$, $$VALUES ('resumed', token('again'), 'request 7')$$,
    'LEA-4: the same holder gets the token again');
SELECT results_eq($$SELECT expires_at > clock_timestamp() + '50 s', ttl FROM interlock.leases WHERE key = 'again'$$, $$VALUES (true, '1 min'::interval)$$, 'and the ttl of this call');
SELECT results_eq($$SELECT outcome, expires_at > clock_timestamp() + '50 s' FROM interlock.acquire_lease('again', '1 s', holder => 'request 7', resume => true)$$, $$VALUES ('resumed', true)$$,
    'it is never shortened');
SELECT results_eq($$SELECT outcome, token FROM interlock.acquire_lease('again', '1 min', holder => 'request 7')$$, $$VALUES ('held', NULL::bigint)$$, 'not without resume');
SELECT results_eq($$SELECT outcome, token FROM interlock.acquire_lease('again', '1 min', holder => 'request 8', resume => true)$$, $$VALUES ('held', NULL::bigint)$$, 'nor another holder');
SELECT results_eq($$SELECT outcome, token FROM interlock.acquire_lease('again', '1 min', holder => 'request 7', mode => 'shared', resume => true)$$, $$VALUES ('held', NULL::bigint)$$, 'nor another mode');
SELECT results_eq($$SELECT outcome, token FROM interlock.acquire_lease('again', '1 min', holder => 'request 7', bind => 'session', resume => true)$$, $$VALUES ('held', NULL::bigint)$$, 'nor another bond');
SELECT results_eq($$SELECT outcome, token FROM interlock.acquire_lease('again/b', '1 min', holder => 'request 7', resume => true)$$, $$VALUES ('held', NULL::bigint)$$, 'nor another key');
SELECT lives_ok($$SELECT interlock.assert_lease('again', token('again'))$$, 'the token is the lease''again s');
SELECT ok(interlock.release_lease('again', token('again')), 'which is released with it');
SELECT results_eq($$SELECT outcome FROM interlock.acquire_lease('again bound', holder => 'h', bind => 'session', resume => true) UNION ALL SELECT outcome FROM interlock.acquire_lease('again bound', holder => 'h', bind => 'session', resume => true)$$,
    ARRAY['acquired', 'resumed'], 'a lease of the session is resumed in it');
SELECT results_eq($$SELECT outcome FROM interlock.acquire_lease('again s', holder => 'h', mode => 'shared', resume => true) UNION ALL SELECT outcome FROM interlock.acquire_lease('again s', holder => 'h', mode => 'shared', resume => true)$$,
    ARRAY['acquired', 'resumed'], 'and a shared one');
SELECT results_eq($$SELECT count(*) FROM interlock.leases WHERE key = 'again s'$$, ARRAY[1::bigint], 'of which there is one');
SELECT results_eq($$SELECT outcome FROM interlock.acquire_lease('again brief', '1 ms', holder => 'h')$$, ARRAY['acquired'], 'one that expires');
SELECT lives_ok('SELECT pg_sleep(0.01)');
SELECT results_eq($$SELECT outcome FROM interlock.acquire_lease('again brief', '1 min', holder => 'h', resume => true)$$, ARRAY['resumed'], 'is resumed, as it is renewed, if nobody has had it since');
SELECT throws_ok($$SELECT interlock.acquire_lease('again x', resume => true)$$, '22004', 'argument "holder" must not be null', 'the default holder is not the caller''s own');
SELECT throws_ok($$SELECT interlock.acquire_lease('again x', holder => 'h', resume => NULL)$$, '22004');

-- SEC-2: the role, and not its members or superusers
SET LOCAL ROLE lease_app;
SELECT results_eq($$SELECT outcome FROM interlock.acquire_lease('again app', holder => 'h')$$, ARRAY['acquired'], 'a lease of a role');
SET LOCAL ROLE lease_member;
SELECT results_eq($$SELECT outcome, token FROM interlock.acquire_lease('again app', holder => 'h', resume => true)$$, $$VALUES ('held', NULL::bigint)$$, 'SEC-2: is not resumed by a member');
RESET ROLE;
SELECT results_eq($$SELECT outcome, token FROM interlock.acquire_lease('again app', holder => 'h', resume => true)$$, $$VALUES ('held', NULL::bigint)$$, 'SEC-2: nor by a superuser');

-- LEA-12: at_least
SELECT results_eq($$WITH l AS (SELECT * FROM interlock.acquire_lease('tick', '2 min', at_least => '1 min', holder => 'node 1')), i AS (INSERT INTO got SELECT 'tick', token, expires_at FROM l)
    SELECT outcome FROM l$$, ARRAY['acquired'], 'a lease that stays');
SELECT ok(interlock.release_lease('tick', token('tick')), 'LEA-12: is released');
SELECT results_eq($$SELECT outcome, holder, expires_at BETWEEN clock_timestamp() + '50 s' AND clock_timestamp() + '1 min' FROM interlock.acquire_lease('tick', '1 min')$$, $$VALUES ('held', 'node 1', true)$$,
    'LEA-12: and stays in the way until at_least is over');
SELECT results_eq($$SELECT holder, released FROM interlock.leases WHERE key = 'tick'$$, $$VALUES ('node 1', true)$$, 'the view says so');
SELECT is(interlock.release_lease('tick', token('tick')), false, 'it is released once');
SELECT is(interlock.renew_lease('tick', token('tick'), '5 min'), NULL, 'its token renews nothing');
SELECT throws_ok($$SELECT interlock.assert_lease('tick', token('tick'))$$, 'IL006');
SELECT results_eq($$SELECT outcome FROM interlock.acquire_lease('tick', '1 min', holder => 'node 1', resume => true)$$, ARRAY['held'], 'nor is it resumed');
SELECT is(interlock.break_lease('tick', 'test'), 'node 1', 'it can be broken');
SELECT results_eq($$SELECT outcome FROM interlock.acquire_lease('tick', '1 ms', at_least => '1 ms')$$, ARRAY['acquired'], 'then it is free');
SELECT results_eq($$SELECT outcome FROM interlock.acquire_lease('none', '1 min', at_least => '0') UNION ALL SELECT interlock.release_lease('none', holder => current_setting('application_name'))::text
    UNION ALL SELECT outcome FROM interlock.acquire_lease('none')$$, ARRAY['acquired', 'true', 'acquired'], 'zero is none');
SELECT throws_ok($$SELECT interlock.acquire_lease('again x', '1 min', at_least => '61 s')$$, '22023', 'argument "at_least" must not be longer than ttl');
SELECT throws_ok($$SELECT interlock.acquire_lease('again x', '1 min', at_least => '-1 s')$$, '22023', 'argument "at_least" must be a duration of zero to ten years');
SELECT throws_ok($$SELECT interlock.acquire_lease('again x', '1 min', bind => 'session', at_least => '1 s')$$, '22023', 'argument "at_least" needs a lease with a ttl');
SELECT results_eq($$SELECT outcome FROM interlock.acquire_lease('seconds', 60, at_least => 30)$$, ARRAY['acquired'], 'seconds are numbers');

SELECT * FROM finish();
ROLLBACK;
