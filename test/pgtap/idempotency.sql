-- What callers of idempotency rely on.
BEGIN;
SELECT plan(31);

CREATE FUNCTION effect(request jsonb) RETURNS jsonb LANGUAGE sql AS 'SELECT request';
CREATE FUNCTION token(k text) RETURNS bigint LANGUAGE sql AS 'SELECT token FROM interlock.idempotency WHERE scope = ''s'' AND key = k';
SELECT results_eq($$SELECT outcome, attempt FROM interlock.idempotency_claim('s', 'k', '{"a": 1}')$$, $$VALUES ('acquired', 1)$$, 'acquired');
SELECT results_eq($$SELECT outcome FROM interlock.idempotency_claim('s', 'k', '{"a": 1.0}')$$, ARRAY['in_progress'], 'in_progress');
SELECT results_eq($$SELECT outcome FROM interlock.idempotency_claim('s', 'k', '{"a": 2}')$$, ARRAY['mismatch'], 'IDP-9: mismatch');
SELECT lives_ok($$SELECT interlock.idempotency_extend('s', 'k', token('k'))$$, 'extend');
SELECT lives_ok($$SELECT interlock.idempotency_assert('s', 'k', token('k'))$$, 'assert');
SELECT throws_ok($$SELECT interlock.idempotency_checkpoint('s', 'k', token('k'), 'c')$$, '55000');
SELECT throws_ok($$SELECT interlock.idempotency_complete('s', 'k', 0)$$, 'IL008');
CREATE FUNCTION detail_of_lost() RETURNS text LANGUAGE plpgsql AS $$
DECLARE detail text;
BEGIN
    PERFORM interlock.idempotency_assert('s', 'k', 0);
EXCEPTION WHEN SQLSTATE 'IL008' THEN
    GET STACKED DIAGNOSTICS detail = PG_EXCEPTION_DETAIL;
    RETURN detail;
END $$;
SELECT is(detail_of_lost()::jsonb, '{"scope": "s", "key": "k", "token": 0, "status": "pending"}', 'IL008 does not say the present token, which would release the claim');
SELECT lives_ok($$SELECT interlock.idempotency_complete('s', 'k', token('k'), '1', 'id')$$, 'complete');
SELECT results_eq($$SELECT outcome, response, result_id FROM interlock.idempotency_claim('s', 'k')$$, $$VALUES ('replay', '1'::jsonb, 'id')$$, 'replay');
SELECT is(interlock.idempotency_extend('s', 'k', token('k')), NULL, 'IDP-5: a claim that has ended is not extended');
SELECT is(interlock.idempotency_extend('s', 'none', 1), NULL, 'nor one that never was');
SELECT throws_ok($$SELECT interlock.idempotency_extend('s', 'k', NULL)$$, '22004');
SELECT lives_ok($$SELECT interlock.idempotency_claim('s', 'f'); SELECT interlock.idempotency_fail('s', 'f', token('f'), '"e"', false)$$, 'fail');
SELECT results_eq($$SELECT outcome, response FROM interlock.idempotency_claim('s', 'f')$$, $$VALUES ('failed', '"e"'::jsonb)$$, 'IDP-16: failed');
SELECT results_eq($$SELECT * FROM interlock.run_once('s', 'r', 'effect(jsonb)', '7')$$, $$VALUES ('completed', '7'::jsonb)$$, 'run_once');
SELECT results_eq($$SELECT * FROM interlock.run_once('s', 'r', 'effect(jsonb)', '7')$$, $$VALUES ('replay', '7'::jsonb)$$, 'run_once, once more');
PREPARE claim AS SELECT outcome FROM interlock.idempotency_claim($1, $2, $3, $4);
SELECT results_eq($$EXECUTE claim('s', 'p', '{}', '0')$$, ARRAY['acquired'], 'parameters without a type');
SELECT throws_ok($$SELECT interlock.idempotency_claim(NULL, 'k')$$, '22004');
SELECT throws_ok($$SELECT interlock.idempotency_claim('s', '')$$, '22023');
SELECT isnt(interlock.idempotency_key('a', 'b:c'), interlock.idempotency_key('a:b', 'c'), 'different parts, different keys');

-- SEC-10: a scope belongs to the roles that it is granted to
CREATE ROLE tap_app;
CREATE ROLE tap_other;
PREPARE give AS SELECT interlock.grant_idempotency_scope($1, $2);
PREPARE take AS SELECT interlock.revoke_idempotency_scope($1, $2);
SELECT lives_ok($$EXECUTE give('s', 'tap_app')$$, 'parameters without a type');
GRANT ALL ON ALL TABLES IN SCHEMA pg_temp TO tap_app, tap_other;
GRANT ALL ON ALL SEQUENCES IN SCHEMA pg_temp TO tap_app, tap_other;
SET LOCAL ROLE tap_app;
SELECT results_eq($$SELECT outcome, response FROM interlock.idempotency_claim('s', 'k')$$, $$VALUES ('replay', '1'::jsonb)$$, 'SEC-10: granted');
SELECT throws_ok($$UPDATE interlock.idempotency SET response = '2'$$, '42501', NULL, 'SEC-10: no right on the table');
SET LOCAL ROLE tap_other;
SELECT throws_ok($$SELECT interlock.idempotency_claim('s', 'k')$$, '42501', 'idempotency scope "s" is not granted to role "tap_other"', 'SEC-10: not granted');
SELECT throws_ok($$EXECUTE give('s', 'tap_other')$$, '42501', NULL, 'SEC-10: granted by superusers');
RESET ROLE;
SELECT lives_ok($$EXECUTE take('s', 'tap_app')$$, 'revoked');
SELECT throws_ok($$EXECUTE take('s', 'tap_app')$$, '42704');
SELECT throws_ok($$EXECUTE give('s', 'tap_nobody')$$, '42704');
-- IDM-1: a takeover's token is greater, though the sequence was set back
SELECT lives_ok($$SELECT interlock.idempotency_claim('s', 't'); UPDATE interlock.idempotency SET token = 1000000, deadline = now() WHERE key = 't'$$, 'claimed');
SELECT results_eq($$SELECT token > 1000000 FROM interlock.idempotency_claim('s', 't')$$, ARRAY[true], 'IDM-1: a greater token');

SELECT * FROM finish();
ROLLBACK;
