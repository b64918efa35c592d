-- LEA-51: acquire_permit with bind, resume and notify. Notifications are in lease/lease_notify.pl.
BEGIN;
SELECT plan(12);
CREATE TABLE got (holder text, token bigint, ticket bigint);

INSERT INTO got SELECT 'one', token FROM interlock.acquire_permit('api', 2, holder => 'one', resume => true);
INSERT INTO got SELECT 'two', token FROM interlock.acquire_permit('api', 2, holder => 'two', bind => 'session');
SELECT results_eq($$SELECT outcome, token FROM interlock.acquire_permit('api', 2, '1 min', holder => 'one', resume => true)$$,
    $$SELECT 'resumed', token FROM got WHERE holder = 'one'$$, 'LEA-51: the holder''s permit is resumed, though all are taken');
SELECT results_eq($$SELECT outcome, token FROM interlock.acquire_permit('api', 2, holder => 'two', bind => 'session', resume => true)$$,
    $$SELECT 'resumed', token FROM got WHERE holder = 'two'$$, 'LEA-51: one of the session, too');
SELECT results_eq($$SELECT holder, ttl FROM interlock.leases WHERE key = 'api' ORDER BY holder$$, $$VALUES ('one', '1 min'::interval), ('two', NULL)$$,
    'LEA-51: a permit of the session has no time to live');
SELECT results_eq($$SELECT outcome, token, ticket FROM interlock.acquire_permit('api', 2, holder => 'six', resume => true)$$, $$VALUES ('held', NULL::bigint, NULL::bigint)$$,
    'another holder has none');
UPDATE got SET ticket = (SELECT ticket FROM interlock.acquire_permit('api', 2, holder => 'ann', notify => true)) WHERE holder = 'one';
SELECT isnt(ticket, NULL, 'LEA-51: who is refused gets a ticket') FROM got WHERE holder = 'one';
SELECT results_eq($$SELECT ticket FROM interlock.acquire_permit('api', 2, holder => 'ann', notify => true)$$, $$SELECT ticket FROM got WHERE holder = 'one'$$, 'and the same again');
SELECT ok(interlock.release_lease('api', token), 'a permit is released') FROM got WHERE holder = 'one';
SELECT results_eq($$SELECT outcome, ticket FROM interlock.acquire_permit('api', 2, holder => 'ann', notify => true)$$, $$VALUES ('acquired', NULL::bigint)$$, 'LEA-51: who asks again has it');
SELECT throws_ok($$SELECT interlock.acquire_permit('api', 2, notify => true)$$, '22004', NULL, 'a ticket is a holder''s');
SELECT throws_ok($$SELECT interlock.acquire_permit('api', 2, resume => true)$$, '22004', NULL, 'so is what is resumed');
SELECT throws_ok($$SELECT interlock.acquire_permit('api', 2, bind => 'transaction')$$, '22023', NULL, 'a bond that there is not');
SELECT throws_ok($$SELECT interlock.acquire_permit('api', 3, holder => 'ann', notify => true)$$, '22023', NULL, 'another capacity');
SELECT interlock.release_lease(key, token) FROM interlock.leases;
SELECT * FROM finish();
ROLLBACK;
