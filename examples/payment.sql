-- A payment that is charged once, however often it is sent.
CREATE TABLE payment (id int PRIMARY KEY, amount int NOT NULL);
CREATE FUNCTION pay(request jsonb) RETURNS jsonb LANGUAGE sql AS
    $$INSERT INTO payment SELECT (request->>'id')::int, (request->>'amount')::int RETURNING jsonb_build_object('paid', amount)$$;

-- effect and completion in one transaction; the second one gets the answer of the first
SELECT * FROM interlock.run_once('payment', interlock.idempotency_key('order', '17'), 'pay(jsonb)', '{"id": 17, "amount": 10}');
SELECT * FROM interlock.run_once('payment', interlock.idempotency_key('order', '17'), 'pay(jsonb)', '{"id": 17, "amount": 10}');

-- an import that takes longer than a transaction: it is resumed where its last worker stopped
SELECT interlock.define_idempotency_scope('statement', model => 'job', ttl => '30 days', stale_after => '5 min');
SELECT token, attempt, coalesce(checkpoint, 'the beginning') AS resume_at
  FROM interlock.idempotency_claim('statement', '2030-01') \gset
\echo resuming at :resume_at
BEGIN;
SELECT interlock.idempotency_assert('statement', '2030-01', :token);
-- ... the rows of page 1 ...
SELECT interlock.idempotency_checkpoint('statement', '2030-01', :token, 'page 2');
COMMIT;
SELECT interlock.idempotency_complete('statement', '2030-01', :token, result_id => 'statement 2030-01');
