-- What callers of idempotency rely on.
BEGIN;
SELECT plan(18);

CREATE FUNCTION effect(request jsonb) RETURNS jsonb LANGUAGE sql AS 'SELECT request';
CREATE FUNCTION token(k text) RETURNS bigint LANGUAGE sql AS 'SELECT token FROM interlock.idempotency WHERE scope = ''s'' AND key = k';
SELECT results_eq($$SELECT outcome, attempt FROM interlock.idempotency_claim('s', 'k', '{"a": 1}')$$, $$VALUES ('acquired', 1)$$, 'acquired');
SELECT results_eq($$SELECT outcome FROM interlock.idempotency_claim('s', 'k', '{"a": 1.0}')$$, ARRAY['in_progress'], 'in_progress');
SELECT results_eq($$SELECT outcome FROM interlock.idempotency_claim('s', 'k', '{"a": 2}')$$, ARRAY['mismatch'], 'IDP-9: mismatch');
SELECT lives_ok($$SELECT interlock.idempotency_extend('s', 'k', token('k'))$$, 'extend');
SELECT lives_ok($$SELECT interlock.idempotency_assert('s', 'k', token('k'))$$, 'assert');
SELECT throws_ok($$SELECT interlock.idempotency_checkpoint('s', 'k', token('k'), 'c')$$, '55000');
SELECT throws_ok($$SELECT interlock.idempotency_complete('s', 'k', 0)$$, 'IL008');
SELECT lives_ok($$SELECT interlock.idempotency_complete('s', 'k', token('k'), '1', 'id')$$, 'complete');
SELECT results_eq($$SELECT outcome, response, result_id FROM interlock.idempotency_claim('s', 'k')$$, $$VALUES ('replay', '1'::jsonb, 'id')$$, 'replay');
SELECT throws_ok($$SELECT interlock.idempotency_extend('s', 'k', token('k'))$$, 'IL008');
SELECT lives_ok($$SELECT interlock.idempotency_claim('s', 'f'); SELECT interlock.idempotency_fail('s', 'f', token('f'), '"e"', false)$$, 'fail');
SELECT results_eq($$SELECT outcome, response FROM interlock.idempotency_claim('s', 'f')$$, $$VALUES ('failed', '"e"'::jsonb)$$, 'IDP-16: failed');
SELECT results_eq($$SELECT * FROM interlock.run_once('s', 'r', 'effect(jsonb)', '7')$$, $$VALUES ('completed', '7'::jsonb)$$, 'run_once');
SELECT results_eq($$SELECT * FROM interlock.run_once('s', 'r', 'effect(jsonb)', '7')$$, $$VALUES ('replay', '7'::jsonb)$$, 'run_once, once more');
PREPARE claim AS SELECT outcome FROM interlock.idempotency_claim($1, $2, $3, $4);
SELECT results_eq($$EXECUTE claim('s', 'p', '{}', '0')$$, ARRAY['acquired'], 'parameters without a type');
SELECT throws_ok($$SELECT interlock.idempotency_claim(NULL, 'k')$$, '22004');
SELECT throws_ok($$SELECT interlock.idempotency_claim('s', '')$$, '22023');
SELECT isnt(interlock.idempotency_key('a', 'b:c'), interlock.idempotency_key('a:b', 'c'), 'different parts, different keys');

SELECT * FROM finish();
ROLLBACK;
