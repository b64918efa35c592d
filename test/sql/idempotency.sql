-- Idempotency within one session: outcomes, tokens, hashes, checkpoints, expiry, privileges, bad input.
\pset null '(null)'
\set SHOW_CONTEXT never
\set VERBOSITY terse
CREATE SCHEMA idempotency;
SET search_path = idempotency;

-- claim, complete, replay
SELECT outcome, token IS NOT NULL AS has_token, attempt FROM interlock.idempotency_claim('pay', 'order 1', '{"amount": 10}');
SELECT outcome, token, attempt FROM interlock.idempotency_claim('pay', 'order 1', '{"amount": 10}');
CREATE FUNCTION token(scope text, key text) RETURNS bigint LANGUAGE sql AS
    'SELECT token FROM interlock.idempotency i WHERE i.scope = $1 AND i.key = $2';
SELECT interlock.idempotency_complete('pay', 'order 1', token('pay', 'order 1'), '{"receipt": 7}', 'charge_7');
SELECT outcome, token, attempt, response, result_id FROM interlock.idempotency_claim('pay', 'order 1', '{"amount": 10}');
-- once more is fine, something else is not
SELECT interlock.idempotency_complete('pay', 'order 1', token('pay', 'order 1'), '{"receipt": 7.0}', 'charge_7');
SELECT interlock.idempotency_complete('pay', 'order 1', token('pay', 'order 1'), '{"receipt": 8}', 'charge_7');
SELECT interlock.idempotency_fail('pay', 'order 1', token('pay', 'order 1'));
SELECT interlock.idempotency_extend('pay', 'order 1', token('pay', 'order 1'));
SELECT interlock.idempotency_assert('pay', 'order 1', token('pay', 'order 1'));
SELECT interlock.idempotency_complete('pay', 'no such key', 1);

-- C19: equal JSON is equal; the request is compared only where there is one
SELECT request, outcome FROM unnest(ARRAY['{"a": 1, "b": [1, {"c": "é"}]}', '{"b": [1.0, {"c": "\u00e9"}], "a": 1e0}', '{"a": 2, "a": 1.00, "b":[1,{"c":"é"}]}',
    '{"a": "1", "b": [1, {"c": "é"}]}', '{"a": 1, "b": [[1], {"c": "é"}]}', '{"a": 1, "b": [1, {"c": "e"}]}', '{"a": 1}', '[]', 'null', NULL]::jsonb[]) request,
    LATERAL interlock.idempotency_claim('hash', 'k', request) ORDER BY request IS NULL;
CREATE FUNCTION hash(request jsonb) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    hash text;
BEGIN
    DELETE FROM interlock.idempotency WHERE scope = 'property';
    PERFORM interlock.idempotency_claim('property', 'k', request);
    SELECT encode(request_hash, 'hex') INTO hash FROM interlock.idempotency WHERE scope = 'property';
    RETURN hash;
END $$;
-- a property: equal requests have equal hashes and others have not
CREATE TABLE request (id serial, body jsonb);
INSERT INTO request (body) SELECT jsonb_build_object('n', n, 'v', v) FROM
    (VALUES ('1'::jsonb), ('1.0'), ('10'), ('1e1'), ('0'), ('-0'), ('0.10'), ('0.1'), ('100'), ('"1"'), ('true'), ('"true"'), ('null'), ('[]'), ('{}'), ('[[]]'),
        ('[1,2]'), ('[[1],2]'), ('[1,[2]]'), ('{"a":1,"b":2}'), ('{"b":2,"a":1.0}'), ('{"a":{"b":2}}'), ('""'), ('"s1:"'), ('["a","b"]'), ('["ab"]'),
        ('"\ud83d\ude00"'), ('12345678901234567890123456789012345678901234567890'), ('1e100'), ('1e-100')) x(v), generate_series(1, 2) n;
WITH hashed AS MATERIALIZED (SELECT id, body, hash(body) FROM request)
SELECT count(*) AS pairs, count(*) FILTER (WHERE (a.body = b.body) <> (a.hash = b.hash)) AS wrong FROM hashed a, hashed b WHERE a.id < b.id;

-- C18: a key is one key on every day
UPDATE interlock.idempotency SET claimed_at = claimed_at - interval '1 day' WHERE key = 'order 1';
SELECT outcome FROM interlock.idempotency_claim('pay', 'order 1');

-- failures: retryable, final, and a scope that replays them all
SELECT outcome FROM interlock.idempotency_claim('pay', 'order 2');
SELECT interlock.idempotency_fail('pay', 'order 2', token('pay', 'order 2'), '{"error": "card network down"}');
SELECT outcome, attempt FROM interlock.idempotency_claim('pay', 'order 2');
SELECT interlock.idempotency_fail('pay', 'order 2', token('pay', 'order 2'), '{"error": "card refused"}', retryable => false);
SELECT outcome, attempt, response FROM interlock.idempotency_claim('pay', 'order 2');
SELECT interlock.define_idempotency_scope('strict', replay_failures => true);
SELECT outcome FROM interlock.idempotency_claim('strict', 'k');
SELECT interlock.idempotency_fail('strict', 'k', token('strict', 'k'), '{"error": "timeout"}');
SELECT outcome, response FROM interlock.idempotency_claim('strict', 'k');

-- IDM-27: a response that is too large leaves a key that never runs again
SELECT interlock.define_idempotency_scope('small', max_response_bytes => 100);
SELECT outcome FROM interlock.idempotency_claim('small', 'k');
SELECT interlock.idempotency_complete('small', 'k', token('small', 'k'), to_jsonb(repeat('x', 1000)), 'id');
SELECT outcome, response, result_id FROM interlock.idempotency_claim('small', 'k');
SELECT response_omitted FROM interlock.idempotency WHERE scope = 'small';

-- a job: checkpoints, extended by them, and taken over with them
SELECT interlock.define_idempotency_scope('job', 'job', ttl => '30 days', stale_after => '1 hour');
SELECT outcome FROM interlock.idempotency_claim('job', 'import 5');
SELECT interlock.idempotency_checkpoint('job', 'import 5', token('job', 'import 5'), 'rows', '{"done": 1000}');
UPDATE interlock.idempotency SET deadline = now() WHERE scope = 'job';
SELECT token('job', 'import 5') AS old \gset
SELECT outcome, token > :old AS newer, attempt, checkpoint, state FROM interlock.idempotency_claim('job', 'import 5');
-- IDM-13, IDM-14, IDM-15: the one that was taken over can do nothing any more
SELECT interlock.idempotency_complete('job', 'import 5', :old);
SELECT interlock.idempotency_fail('job', 'import 5', :old);
SELECT interlock.idempotency_checkpoint('job', 'import 5', :old, 'rows');
SELECT interlock.idempotency_extend('job', 'import 5', :old);
SELECT interlock.idempotency_assert('job', 'import 5', :old);
-- IDM-18: past its deadline, but not taken over: it is still good
UPDATE interlock.idempotency SET deadline = now() WHERE scope = 'job';
SELECT interlock.idempotency_assert('job', 'import 5', token('job', 'import 5'));
SELECT interlock.idempotency_extend('job', 'import 5', token('job', 'import 5')) > now() + interval '59 min' AS extended;
UPDATE interlock.idempotency SET deadline = now() WHERE scope = 'job';
SELECT interlock.idempotency_complete('job', 'import 5', token('job', 'import 5'), '{"rows": 5000}');
SELECT interlock.idempotency_checkpoint('pay', 'order 1', 1, 'x');

-- IDM-19: taken over with another request
SELECT outcome FROM interlock.idempotency_claim('pay', 'order 3', '{"amount": 1}');
UPDATE interlock.idempotency SET deadline = now() WHERE key = 'order 3';
SELECT outcome FROM interlock.idempotency_claim('pay', 'order 3', '{"amount": 2}');
SELECT outcome, attempt, checkpoint FROM interlock.idempotency_claim('pay', 'order 3', '{"amount": 1}');
-- nor does a takeover without a request forget the first one's
UPDATE interlock.idempotency SET deadline = now() WHERE key = 'order 3';
SELECT outcome FROM interlock.idempotency_claim('pay', 'order 3');
SELECT interlock.idempotency_complete('pay', 'order 3', token('pay', 'order 3'));
SELECT outcome FROM interlock.idempotency_claim('pay', 'order 3', '{"amount": 999}');

-- IDM-21: after its time a key starts anew, with any request; the sweeper deletes it
UPDATE interlock.idempotency SET expires_at = now() WHERE key = 'order 1';
SELECT outcome, attempt, response FROM interlock.idempotency_claim('pay', 'order 1', '{"amount": 99}');
SELECT interlock.idempotency_sweep();
UPDATE interlock.idempotency SET expires_at = now() WHERE scope IN ('hash', 'small');
SELECT interlock.idempotency_sweep(1), interlock.idempotency_sweep(), (SELECT count(*) FROM interlock.idempotency WHERE scope IN ('hash', 'small'));
-- the time to live counts from the end, and most ends do not move the index
SELECT interlock.define_idempotency_scope('long', ttl => '10 days', stale_after => '1 hour');
SELECT outcome FROM interlock.idempotency_claim('long', 'k');
SELECT expires_at AS before FROM interlock.idempotency WHERE scope = 'long' \gset
SELECT interlock.idempotency_complete('long', 'k', token('long', 'k'));
SELECT expires_at = :'before' AS unmoved FROM interlock.idempotency WHERE scope = 'long';

-- IDM-23: savepoints
BEGIN;
SAVEPOINT s;
SELECT outcome FROM interlock.idempotency_claim('pay', 'order 4');
ROLLBACK TO s;
SELECT outcome FROM interlock.idempotency_claim('pay', 'order 4');
COMMIT;
SELECT outcome FROM interlock.idempotency_claim('pay', 'order 4');
SELECT count(*) FROM interlock.key_locks;

-- IDM-22, C6: the deadline counts from the clock, not from the start of the transaction
BEGIN;
SELECT pg_sleep(0.1);
SELECT outcome FROM interlock.idempotency_claim('pay', 'late');
SELECT deadline > now() + interval '1 min 0.1 s' AS full_minute FROM interlock.idempotency WHERE key = 'late';
COMMIT;

-- the time to live counts from the end, however long the work took
SELECT interlock.define_idempotency_scope('slow', ttl => '6 s', stale_after => '3 s');
SELECT outcome FROM interlock.idempotency_claim('slow', 'k');
UPDATE interlock.idempotency SET expires_at = now() + interval '1 s' WHERE scope = 'slow';
SELECT interlock.idempotency_complete('slow', 'k', token('slow', 'k'));
SELECT expires_at >= finished_at + interval '6 s' AS whole_ttl FROM interlock.idempotency WHERE scope = 'slow';
-- without a time of its own a wait ends as lock_timeout says
SET lock_timeout = '20 ms';
SELECT outcome FROM interlock.idempotency_claim('hash', 'patient', wait => NULL);
SELECT outcome FROM interlock.idempotency_claim('hash', 'patient', wait => NULL);
RESET lock_timeout;
-- a claim of one's own is not waited for
BEGIN;
SELECT outcome FROM interlock.idempotency_claim('pay', 'own');
SELECT outcome FROM interlock.idempotency_claim('pay', 'own', wait => '1 hour');
COMMIT;
-- numbers with long digits are no burden
SELECT outcome FROM interlock.idempotency_claim('hash', 'long', ('[' || repeat('1e131071,', 9000) || '1e-16383]')::jsonb);
SELECT outcome FROM interlock.idempotency_claim('hash', 'long', ('[' || repeat('1e131071,', 9000) || '0.1e-16382]')::jsonb);
-- deleting runs nobody else's code
CREATE ROLE interlock_guest;
CREATE TABLE child (scope text, key text, FOREIGN KEY (scope, key) REFERENCES interlock.idempotency ON DELETE CASCADE);
SELECT interlock.idempotency_sweep();
ALTER TABLE child OWNER TO interlock_guest;
SELECT interlock.idempotency_sweep();
ALTER TABLE child DROP CONSTRAINT child_scope_key_fkey, ADD FOREIGN KEY (scope, key) REFERENCES interlock.idempotency;
SELECT interlock.idempotency_sweep();
DROP TABLE child;
CREATE FUNCTION deleted() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN OLD; END';
ALTER FUNCTION deleted() OWNER TO interlock_guest;
CREATE TRIGGER deleted BEFORE DELETE ON interlock.idempotency FOR EACH ROW EXECUTE FUNCTION deleted();
SELECT interlock.idempotency_sweep();
DROP TRIGGER deleted ON interlock.idempotency;
DROP FUNCTION deleted;
DROP ROLE interlock_guest;

-- IDM-1: a takeover's token is greater than the row's, though the sequence was set back
CREATE FUNCTION take_over(directly boolean) RETURNS TABLE (held bigint, outcome text, is_greater boolean) LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM interlock.idempotency WHERE scope = 'job';
    PERFORM set_config('interlock.direct_execution', directly::text, true);
    PERFORM setval('interlock.idempotency_token', 1000000);
    held := (SELECT c.token FROM interlock.idempotency_claim('job', 'k') c);
    PERFORM setval('interlock.idempotency_token', held - 1);
    UPDATE interlock.idempotency SET deadline = now() WHERE scope = 'job';
    SELECT c.outcome, c.token > held FROM interlock.idempotency_claim('job', 'k') c INTO outcome, is_greater;
    RETURN NEXT;
    PERFORM setval('interlock.idempotency_token', 5);
    UPDATE interlock.idempotency SET deadline = now(), expires_at = now() WHERE scope = 'job';
    SELECT c.outcome, c.token > held + 1 FROM interlock.idempotency_claim('job', 'k') c INTO outcome, is_greater;
    RETURN NEXT;
END $$;
SELECT * FROM take_over(true);
SELECT interlock.idempotency_assert('job', 'k', 1000001);
SELECT interlock.idempotency_checkpoint('job', 'k', 1000001, 'c');
SELECT interlock.idempotency_complete('job', 'k', 1000001);
SELECT * FROM take_over(false);
SELECT interlock.idempotency_assert('job', 'k', 1000001);
SELECT interlock.idempotency_checkpoint('job', 'k', 1000001, 'c');
-- nor does it begin anew at the end of all numbers
UPDATE interlock.idempotency SET token = 9223372036854775807, deadline = now() WHERE scope = 'job';
SELECT interlock.idempotency_claim('job', 'k');
SET interlock.direct_execution = off;
SELECT interlock.idempotency_claim('job', 'k');
RESET interlock.direct_execution;

DELETE FROM interlock.idempotency WHERE scope = 'job';

-- run_once
CREATE TABLE charge (amount int);
CREATE FUNCTION charge(request jsonb) RETURNS jsonb LANGUAGE plpgsql AS $$ BEGIN
    INSERT INTO charge VALUES ((request->>'amount')::int);
    IF (request->>'amount')::int < 0 THEN RAISE 'negative amount'; END IF;
    RETURN jsonb_build_object('charged', request->'amount'); END $$;
SELECT * FROM interlock.run_once('pay', 'order 5', 'charge(jsonb)', '{"amount": 5}');
SELECT * FROM interlock.run_once('pay', 'order 5', 'charge(jsonb)', '{"amount": 5}');
SELECT * FROM interlock.run_once('pay', 'order 5', 'charge(jsonb)', '{"amount": 6}');
SELECT * FROM interlock.run_once('pay', 'order 6', 'charge(jsonb)', '{"amount": -1}');
SELECT * FROM interlock.run_once('pay', 'order 6', 'charge(jsonb)', '{"amount": 1}');
SELECT * FROM charge;
SELECT * FROM interlock.run_once('pay', 'order 7', 'pg_backend_pid()');
SELECT * FROM interlock.run_once('pay', 'order 7', 'no_such(jsonb)');

-- keys that mean something, and never the same thing
SELECT interlock.idempotency_key('wishlist', 'user 7', 'product:9'), interlock.idempotency_key('wishlist', 'user 7:product', '9'),
    interlock.idempotency_key('a\', 'b'), interlock.idempotency_key('a', '\b'), interlock.idempotency_key(''), interlock.idempotency_key('', '');
SELECT interlock.idempotency_key('a', NULL);
SELECT interlock.idempotency_key(VARIADIC '{}'::text[]);
SELECT interlock.idempotency_key(VARIADIC NULL::text[]);

-- bad input
SELECT interlock.idempotency_claim(NULL, 'k');
SELECT interlock.idempotency_claim('s', NULL);
SELECT interlock.idempotency_claim('', 'k');
SELECT interlock.idempotency_claim('s', '');
SELECT interlock.idempotency_claim(E'a\nb', 'c');
SELECT interlock.idempotency_claim(repeat('s', 256), 'k');
SELECT interlock.idempotency_claim('s', repeat('k', 1048576));
SELECT interlock.idempotency_claim('s', 'k', wait => '-1 s');
SELECT interlock.idempotency_complete('s', 'k', NULL);
SELECT interlock.define_idempotency_scope('s', 'queue');
SELECT interlock.define_idempotency_scope('s', ttl => '-1 s');
SELECT interlock.define_idempotency_scope('s', ttl => '0');
SELECT interlock.define_idempotency_scope('s', stale_after => '0');
SELECT interlock.define_idempotency_scope('s', max_response_bytes => -1);
SELECT interlock.define_idempotency_scope(NULL);
SELECT interlock.idempotency_sweep(0);

-- a setting that is null, as its owner may have allowed it, is the default, however it is read
BEGIN;
SELECT interlock.define_idempotency_scope('bare', 'job', ttl => '10 days', stale_after => '1 hour', replay_failures => true, max_response_bytes => 1);
ALTER TABLE interlock.idempotency_scope ALTER model DROP NOT NULL, ALTER ttl DROP NOT NULL, ALTER stale_after DROP NOT NULL,
    ALTER replay_failures DROP NOT NULL, ALTER max_response_bytes DROP NOT NULL;
UPDATE interlock.idempotency_scope SET (model, ttl, stale_after, replay_failures, max_response_bytes) = ROW(NULL, NULL, NULL, NULL, NULL) WHERE scope = 'bare';
SELECT outcome, token AS bare FROM interlock.idempotency_claim('bare', 'k') \gset
SELECT interlock.idempotency_fail('bare', 'k', :bare, '{"e": 1}');
SELECT status, response, retryable, deadline - claimed_at AS stale_after, date_trunc('hour', expires_at - claimed_at) AS ttl FROM interlock.idempotency WHERE scope = 'bare';
SELECT outcome FROM interlock.idempotency_claim('bare', 'k');
SET LOCAL interlock.direct_execution = off;
SELECT outcome FROM interlock.idempotency_claim('bare', 'm');
SELECT deadline - claimed_at AS stale_after, date_trunc('hour', expires_at - claimed_at) AS ttl FROM interlock.idempotency WHERE key = 'm';
ROLLBACK;

-- a table or sequence that is not there
\set VERBOSITY sqlstate
BEGIN;
ALTER TABLE interlock.idempotency RENAME TO away;
SELECT interlock.idempotency_claim('s', 'k');
ROLLBACK;
BEGIN;
SELECT outcome FROM interlock.idempotency_claim('away', 'k');
UPDATE interlock.idempotency SET deadline = now() WHERE scope = 'away';
ALTER SEQUENCE interlock.idempotency_token RENAME TO away;
SELECT interlock.idempotency_claim('away', 'k');
ROLLBACK;
\set VERBOSITY terse

TRUNCATE interlock.idempotency, interlock.idempotency_scope;
SET client_min_messages = warning;
DROP SCHEMA idempotency CASCADE;
