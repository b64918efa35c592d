-- A payment that is charged once, however often it is sent, and an import that is resumed.
CREATE EXTENSION IF NOT EXISTS pg_interlock;

CREATE TABLE payment (id int PRIMARY KEY, amount int NOT NULL);
CREATE FUNCTION pay(request jsonb) RETURNS jsonb LANGUAGE sql AS $$
    INSERT INTO payment SELECT (request->>'id')::int, (request->>'amount')::int
    RETURNING jsonb_build_object('status', 201, 'paid', amount) $$;

-- 1. Effect and completion are one transaction. A second call gets the response of the first, and charges nothing.
SELECT outcome, response FROM interlock.run_once('payment', interlock.idempotency_key('order', 17), 'pay(jsonb)', '{"id": 17, "amount": 10}');
-- => completed | {"paid": 10, "status": 201}
SELECT outcome, response FROM interlock.run_once('payment', interlock.idempotency_key('order', 17), 'pay(jsonb)', '{"id": 17, "amount": 10}');
-- => replay | {"paid": 10, "status": 201}

-- The same key for another request is a mistake of the client: answer 422.
SELECT outcome FROM interlock.run_once('payment', interlock.idempotency_key('order', 17), 'pay(jsonb)', '{"id": 17, "amount": 99}');
-- => mismatch
SELECT count(*), sum(amount) FROM payment;
-- => 1 | 10

-- 2. An import that takes longer than a transaction. Its worker claims the key, and commits.
SELECT interlock.define_idempotency_scope('statement', model => 'job', ttl => '30 days', stale_after => '5 min');
SELECT outcome, token, attempt, coalesce(checkpoint, 'page 1') AS resume_at
  FROM interlock.idempotency_claim('statement', '2030-01') \gset
\echo :outcome, attempt :attempt, from :resume_at
-- => acquired, attempt 1, from page 1

-- Each page is a transaction, with its rows and the place where the next worker would go on.
BEGIN;
SELECT interlock.idempotency_assert('statement', '2030-01', :token);
-- ... the rows of page 1 ...
SELECT interlock.idempotency_checkpoint('statement', '2030-01', :token, 'page 2');
COMMIT;

-- The worker fails, and says so. A worker that is killed loses its claim after five minutes, to the same effect.
SELECT interlock.idempotency_fail('statement', '2030-01', :token, '{"error": "page 2 cannot be read"}', retryable => true);
SELECT outcome, token, attempt, coalesce(checkpoint, 'page 1') AS resume_at
  FROM interlock.idempotency_claim('statement', '2030-01') \gset
\echo :outcome, attempt :attempt, from :resume_at
-- => acquired, attempt 2, from page 2
SELECT interlock.idempotency_complete('statement', '2030-01', :token, result_id => 'statement 2030-01');

-- A later call gets the result.
SELECT outcome, result_id FROM interlock.idempotency_claim('statement', '2030-01');
-- => replay | statement 2030-01
