-- acquire_lease with resume and at_least: what one session can see. Crashes and restarts are in lease/at_least.pl.
BEGIN;
SELECT plan(73);
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

-- LEA-54: at_least of a renewal
INSERT INTO got SELECT 'later', token FROM interlock.acquire_lease('later', '1 min', holder => 'node 1');
SELECT ok(interlock.renew_lease('later', token('later'), '2 min', at_least => '1 min') > clock_timestamp() + '1 min', 'LEA-54: a lease that did not stay is renewed');
SELECT ok(interlock.renew_lease('later', token('later'), '3 min', at_least => '1 s') > clock_timestamp() + '2 min', 'and once more, for a shorter time');
SELECT ok(interlock.renew_lease('later', token('later')) > clock_timestamp() + '2 min', 'and without');
SELECT ok(interlock.release_lease('later', token('later')), 'it is released');
SELECT results_eq($$SELECT outcome, holder, expires_at BETWEEN clock_timestamp() + '30 s' AND clock_timestamp() + '61 s' FROM interlock.acquire_lease('later', '1 min')$$, $$VALUES ('held', 'node 1', true)$$,
    'LEA-54: and stays for what the first renewal said');
SELECT throws_ok($$SELECT interlock.renew_lease('k', 1, '1 min', at_least => '61 s')$$, '22023', 'argument "at_least" must not be longer than ttl');
SELECT throws_ok($$SELECT interlock.renew_lease('k', 1, '1 min', at_least => '-1 s')$$, '22023', 'argument "at_least" must be a duration of zero to ten years');
SELECT throws_ok($$SELECT interlock.renew_lease('k', 1, at_least => '1 s')$$, '22023', 'argument "at_least" needs a ttl');
INSERT INTO got SELECT 'of session', token FROM interlock.acquire_lease('of session', bind => 'session');
SELECT throws_ok($$SELECT interlock.renew_lease('of session', token('of session'), '1 min', at_least => '1 s')$$, '22023', 'argument "at_least" needs a lease with a ttl');

-- LEA-54: renewal by the name of the holder
INSERT INTO got SELECT 'named', token FROM interlock.acquire_lease('named', '1 min', holder => 'request 9');
SELECT ok(interlock.renew_lease('named', ttl => '5 min', holder => 'request 9') > clock_timestamp() + '4 min', 'LEA-54: the holder renews by its name');
SELECT is(interlock.renew_lease('named', ttl => '5 min', holder => 'request 8'), NULL, 'another name has none');
SELECT is(interlock.renew_lease('named/b', ttl => '5 min', holder => 'request 9'), NULL, 'nor has another key');
SELECT throws_ok($$SELECT interlock.renew_lease('named')$$, '22004', 'argument "token" must not be null');
INSERT INTO got SELECT 'permit ' || n, token FROM generate_series(1, 2) n, LATERAL interlock.acquire_permit('permits', 5, n * interval '10 min', holder => 'h');
SELECT ok(interlock.renew_lease('permits', ttl => '1 min', holder => 'h') < clock_timestamp() + '15 min', 'of several it is the earliest expiry');
SELECT ok(interlock.release_lease('permits', holder => 'h'), 'which are released by the name');
SET LOCAL ROLE lease_app;
INSERT INTO got SELECT 'of the app', token FROM interlock.acquire_lease('of the app', '1 min', holder => 'h');
RESET ROLE;

-- LEA-54: several at one moment
CREATE FUNCTION ends(wanted text) RETURNS timestamptz LANGUAGE sql AS 'SELECT expires_at FROM interlock.leases WHERE key = wanted';
INSERT INTO got SELECT k, t FROM interlock.acquire_leases('{many/a,many/b,many more}', '1 min', holder => 'request 10'), unnest('{many/a,many/b,many more}'::text[], tokens) u (k, t);
CREATE FUNCTION tokens() RETURNS bigint[] LANGUAGE sql AS $$SELECT ARRAY[token('many/b'), token('many more'), token('many/a')]$$;
SELECT ok(interlock.renew_leases('{many/b,many more,many/a}', tokens(), '5 min') > clock_timestamp() + '4 min', 'LEA-54: several leases are renewed');
SELECT ok(ends('many/a') > clock_timestamp() + '4 min' AND ends('many/b') > clock_timestamp() + '4 min' AND ends('many more') > clock_timestamp() + '4 min', 'all of them');
SELECT is(interlock.renew_leases('{many/b,many more,many/a,of the app}', tokens() || 7::bigint, '10 min'), NULL, 'LEA-54: with one that is lost');
SELECT ok(ends('many/a') < clock_timestamp() + '6 min' AND ends('many more') < clock_timestamp() + '6 min', 'none of them is');
SELECT ok(interlock.renew_leases('{many/a,named}', ARRAY[token('many/a'), token('named')]) < clock_timestamp() + '6 min', 'each for its own time, and the earliest expiry');
SELECT ok(interlock.renew_leases('{many/a,of the app}', ARRAY[token('many/a'), token('of the app')], '2 h') > clock_timestamp() + '1 h', 'long ones, too, and those of a role that the caller is a member of');
SELECT is(interlock.renew_leases('{of session}', ARRAY[token('of session')]), 'infinity', 'one of the session lasts as long as that');
SELECT is(interlock.renew_leases('{}', '{}'), 'infinity', 'none');
SELECT throws_ok($$SELECT interlock.renew_leases('{a,b}', '{1}')$$, '22023', 'argument "tokens" must have as many elements as keys');
SELECT throws_ok($$SELECT interlock.renew_leases('{a,NULL}', '{1,2}')$$, '22004');
SELECT throws_ok($$SELECT interlock.renew_leases('{a,b}', '{1,NULL}')$$, '22004');
SELECT throws_ok($$SELECT interlock.renew_leases(array_fill('a'::text, '{10001}'), array_fill(1::bigint, '{10001}'))$$, '54000');
SELECT throws_ok($$SELECT interlock.renew_leases(NULL, '{}')$$, '22004', 'argument "keys" must not be null');

-- LEA-54: acquire_leases after a lost answer
SELECT results_eq($$SELECT outcome, tokens, expires_at > clock_timestamp() + '4 min', blocked_by, holder FROM interlock.acquire_leases('{many/b,many more,many/a}', '1 min', holder => 'request 10', resume => true)$$,
    $$VALUES ('resumed', tokens(), true, NULL, NULL)$$, 'LEA-54: acquire_leases gives the holder its tokens again');
SELECT results_eq($$SELECT outcome, blocked_by FROM interlock.acquire_leases('{many/b,many more,many/a}', '1 min', holder => 'request 10')$$, $$VALUES ('held', 'many/a')$$, 'not without resume');
SELECT results_eq($$SELECT outcome, blocked_by FROM interlock.acquire_leases('{many/b,many more,many/a}', '1 min', holder => 'request 11', resume => true)$$, $$VALUES ('held', 'many/a')$$, 'nor another holder');
SELECT results_eq($$SELECT outcome, blocked_by FROM interlock.acquire_leases('{many/b,many more,many o}', '1 min', '10 min', holder => 'request 10', resume => true)$$, $$VALUES ('held', 'many/b')$$,
    'LEA-54: nor with a key that the holder does not have, and the call does not wait for its own leases');
SELECT results_eq($$SELECT outcome FROM interlock.acquire_leases('{many o,many p}', '1 min', holder => 'request 12', resume => true)$$, ARRAY['acquired'], 'what is free is acquired');
SELECT throws_ok($$SELECT interlock.acquire_leases('{many o}', resume => true)$$, '22004', 'argument "holder" must not be null');

-- LEA-55: a wait that cannot end
INSERT INTO got SELECT 'mine', token FROM interlock.acquire_lease('mine', '1 h', holder => 'h');
SELECT interlock.assert_lease('mine', token('mine'));
SELECT results_eq($$SELECT outcome, holder FROM interlock.acquire_lease('mine', '1 min', '10 min')$$, $$VALUES ('held', 'h')$$, 'LEA-55: nobody waits for a lease that the same transaction has asserted');
SELECT results_eq($$SELECT outcome, holder FROM interlock.acquire_lease('of session', '1 min', '10 min')$$, $$VALUES ('held', current_setting('application_name'))$$, 'LEA-55: nor for one that is bound to the session');

SELECT * FROM finish();
ROLLBACK;
