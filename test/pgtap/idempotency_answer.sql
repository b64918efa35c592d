-- What a claim asks for and answers: hashes, times and states of its own, bodies, deadlines; what gives a key back.
BEGIN;
SELECT plan(95);

CREATE FUNCTION token(k text) RETURNS bigint LANGUAGE sql AS 'SELECT token FROM interlock.idempotency WHERE key = k';
CREATE FUNCTION overdue(k text) RETURNS void LANGUAGE sql AS 'UPDATE interlock.idempotency SET deadline = now() - interval ''1 s'' WHERE key = k';
CREATE FUNCTION seconds(until timestamptz) RETURNS int LANGUAGE sql AS 'SELECT (extract(epoch FROM until - clock_timestamp()) / 100)::int * 100';
SELECT interlock.define_idempotency_scope('a', max_response_bytes => 100);
SELECT interlock.define_idempotency_scope('j', 'job', ttl => '1 day', stale_after => '1000 s', max_attempts => 2);

-- The request, or its hash
SELECT results_eq($$SELECT outcome FROM interlock.idempotency_claim('a', 'h', request_hash => sha256('body'))$$, ARRAY['acquired'], 'a hash in place of the request');
SELECT results_eq($$SELECT outcome FROM interlock.idempotency_claim('a', 'h', request_hash => sha256('body'))$$, ARRAY['in_progress'], 'the same');
SELECT results_eq($$SELECT outcome FROM interlock.idempotency_claim('a', 'h', request_hash => sha256('other'))$$, ARRAY['mismatch'], 'another');
SELECT results_eq($$SELECT outcome FROM interlock.idempotency_claim('a', 'h', '{"any": 1}')$$, ARRAY['mismatch'], 'a request');
SELECT is(interlock.idempotency_request_hash('{"a": 1, "b": [true]}'), interlock.idempotency_request_hash('{"b": [true], "a": 1.0}'), 'equal JSON has one hash');
SELECT isnt(interlock.idempotency_request_hash('{"a": [1], "b": 2}'), interlock.idempotency_request_hash('{"a": [1, 2]}'), 'other JSON has another');
SELECT is(length(interlock.idempotency_request_hash('null')), 32, 'of 32 bytes');
SELECT results_eq($$SELECT outcome FROM interlock.idempotency_claim('a', 'r', '{"a": 1}')$$, ARRAY['acquired'], 'a request');
SELECT results_eq($$SELECT outcome FROM interlock.idempotency_claim('a', 'r', request_hash => interlock.idempotency_request_hash('{"a": 1.0}'))$$, ARRAY['in_progress'],
    'is the same as its hash');
SELECT throws_ok($$SELECT interlock.idempotency_claim('a', 'x', '1', request_hash => '\x01')$$, '22023', 'argument "request_hash" must be null where "request" is given');
SELECT throws_ok($$SELECT interlock.idempotency_claim('a', 'x', request_hash => '')$$, '22023');
SELECT throws_ok($$SELECT interlock.idempotency_claim('a', 'x', request_hash => convert_to(repeat('x', 65), 'UTF8'))$$, '22023');
SELECT throws_ok($$SELECT interlock.idempotency_request_hash(NULL)$$, '22004');

-- IDM-5: a body is kept byte by byte, with its status and headers
SELECT ok((interlock.idempotency_complete('a', 'h', token('h'), '{"status": 201}', body => '\x00ff0a7b')), 'IDM-5: complete says that the answer is kept');
SELECT ok((interlock.idempotency_complete('a', 'h', token('h'), '{"status": 201}', body => '\x00ff0a7b')), 'IDM-5: also when it is repeated');
SELECT throws_ok($$SELECT interlock.idempotency_complete('a', 'h', token('h'), '{"status": 201}', body => '\x00')$$, 'IL008', NULL, 'but not with another body');
SELECT results_eq($$SELECT outcome, response, body, has_response FROM interlock.idempotency_claim('a', 'h')$$, $$VALUES ('replay', '{"status": 201}'::jsonb, '\x00ff0a7b'::bytea, true)$$,
    'IDM-5: zero bytes are replayed');

SELECT lives_ok($$UPDATE interlock.idempotency SET expires_at = now() WHERE key = 'h'; SELECT interlock.idempotency_claim('a', 'h', request_hash => sha256('next'))$$, 'IDM-21: a key that has expired');
SELECT ok(interlock.idempotency_complete('a', 'h', token('h')), 'is completed without an answer');
SELECT results_eq($$SELECT outcome, response, body, has_response FROM interlock.idempotency_claim('a', 'h')$$, $$VALUES ('replay', NULL::jsonb, NULL::bytea, false)$$,
    'IDM-21: and has none of before');
SELECT interlock.idempotency_forget('a', 'h', 'made anew below');
DELETE FROM interlock.idempotency_audit;
SELECT interlock.idempotency_claim('a', 'h', request_hash => sha256('body'));
SELECT interlock.idempotency_complete('a', 'h', token('h'), '{"status": 201}', body => '\x00ff0a7b');

-- IDM-6: none, or one that was too large
SELECT ok(interlock.idempotency_complete('a', 'r', token('r')), 'no answer is kept as none');
SELECT results_eq($$SELECT outcome, response, body, has_response FROM interlock.idempotency_claim('a', 'r')$$, $$VALUES ('replay', NULL::jsonb, NULL::bytea, false)$$, 'IDM-6: none');
SELECT lives_ok($$SELECT interlock.idempotency_claim('a', 'l')$$);
SELECT is(interlock.idempotency_complete('a', 'l', token('l'), '{"status": 200}', 'id', convert_to(repeat('x', 101), 'UTF8')), false, 'IDM-27, IDM-6: complete says that the answer is too large');
SELECT is(interlock.idempotency_complete('a', 'l', token('l'), '{"status": 200}', 'id', convert_to(repeat('x', 101), 'UTF8')), false, 'and again');
SELECT results_eq($$SELECT outcome, response, result_id, body, has_response FROM interlock.idempotency_claim('a', 'l')$$, $$VALUES ('replay', NULL::jsonb, 'id', NULL::bytea, true)$$,
    'IDM-6: one that was too large');
SELECT lives_ok($$SELECT interlock.idempotency_claim('a', 'sum')$$);
SELECT is(interlock.idempotency_complete('a', 'sum', token('sum'), to_jsonb(repeat('x', 60)), body => convert_to(repeat('x', 60), 'UTF8')), false, 'response and body count together');

-- IDM-6: the deadline
SELECT results_eq($$SELECT outcome, seconds(deadline), has_response FROM interlock.idempotency_claim('j', 'd')$$, $$VALUES ('acquired', 1000, NULL::boolean)$$, 'IDM-6: of the claim');
SELECT results_eq($$SELECT outcome, seconds(deadline), has_response FROM interlock.idempotency_claim('j', 'd')$$, $$VALUES ('in_progress', 1000, NULL::boolean)$$, 'IDM-6: of the one in the way');

-- Times of one claim
SELECT results_eq($$SELECT outcome, seconds(deadline) FROM interlock.idempotency_claim('j', 'o', ttl => '500 s', stale_after => '5000 s')$$, $$VALUES ('acquired', 5000)$$, 'its own');
SELECT is(seconds(interlock.idempotency_extend('j', 'o', token('o'))), 5000, 'extend uses them');
SELECT lives_ok($$SELECT overdue('o'), interlock.idempotency_checkpoint('j', 'o', token('o'), 'c')$$);
SELECT results_eq($$SELECT seconds(deadline), expires_at - deadline < '600 s' FROM interlock.idempotency WHERE key = 'o'$$, $$VALUES (5000, true)$$, 'so does a checkpoint');
SELECT ok(interlock.idempotency_complete('j', 'o', token('o')), 'and complete');
SELECT throws_ok($$SELECT interlock.idempotency_extend('j', 'o', 'x')$$, '22P02');
SELECT is(interlock.idempotency_extend('j', 'o', token('o')), NULL, 'it has ended');
SELECT results_eq($$SELECT outcome FROM interlock.idempotency_claim('j', 'o')$$, ARRAY['replay'], 'and is replayed');
SELECT lives_ok($$SELECT interlock.idempotency_claim('j', 'o2', ttl => '500 s', stale_after => '1 s'), overdue('o2')$$);
SELECT results_eq($$SELECT outcome, seconds(deadline) FROM interlock.idempotency_claim('j', 'o2')$$, $$VALUES ('acquired', 1000)$$, 'a takeover has the scope''s again');
SELECT is(seconds(interlock.idempotency_extend('j', 'o2', token('o2'))), 1000, 'and extend uses these');
SELECT throws_ok($$SELECT interlock.idempotency_claim('j', 'x', ttl => '25 h')$$, '22023', 'argument "ttl" must not be longer than that of the scope');
SELECT throws_ok($$SELECT interlock.idempotency_claim('j', 'x', stale_after => '25 h')$$, '22023', 'argument "stale_after" must not be longer than the longer of the scope''s ttl and stale_after', 'DOC-52: the longer of both is the limit');
SELECT lives_ok($$SELECT interlock.idempotency_claim('j', 'a day', stale_after => '24 h')$$, 'as long as the scope keeps keys');
SELECT lives_ok($$SELECT interlock.define_idempotency_scope('long work', ttl => '1 s', stale_after => '2 h'), interlock.idempotency_claim('long work', 'x', stale_after => '2 h')$$,
    'or as long as its claims live');
SELECT throws_ok($$SELECT interlock.idempotency_claim('j', 'x', ttl => '0')$$, '22023');
SELECT throws_ok($$SELECT interlock.idempotency_claim('j', 'x', stale_after => '-1 s')$$, '22023');
SELECT throws_ok($$SELECT interlock.idempotency_claim('j', 'x', stale_after => '4000 days')$$, '22023');

-- IDM-6: a claim carries a state; a takeover gets the newest. There is an end to attempts.
SELECT results_eq($$SELECT outcome, state FROM interlock.idempotency_claim('j', 's', state => '{"ref": 1}')$$, $$VALUES ('acquired', '{"ref": 1}'::jsonb)$$, 'IDM-6: with a state');
SELECT lives_ok($$SELECT overdue('s')$$);
SELECT results_eq($$SELECT outcome, attempt, checkpoint, state FROM interlock.idempotency_claim('j', 's', state => '{"ref": 2}')$$,
    $$VALUES ('acquired', 2, NULL, '{"ref": 1}'::jsonb)$$, 'IDM-6: a takeover gets it');
SELECT lives_ok($$SELECT interlock.idempotency_checkpoint('j', 's', token('s'), 'paying', '{"ref": 3}'), overdue('s')$$);
SELECT results_eq($$SELECT outcome, token, attempt, checkpoint, state, has_response FROM interlock.idempotency_claim('j', 's')$$,
    $$VALUES ('exhausted', NULL::bigint, 2, 'paying', '{"ref": 3}'::jsonb, false)$$, 'IDM-6: exhausted, with what it was doing');
SELECT ok(interlock.idempotency_extend('j', 's', token('s')) IS NOT NULL, 'the last worker has it still');
SELECT lives_ok($$SELECT interlock.idempotency_fail('j', 's', token('s'), '"down"')$$);
SELECT results_eq($$SELECT outcome, attempt, response, has_response FROM interlock.idempotency_claim('j', 's')$$, $$VALUES ('exhausted', 2, '"down"'::jsonb, true)$$,
    'IDM-6: exhausted, with the last error');
SELECT lives_ok($$SELECT interlock.define_idempotency_scope('j', 'job', ttl => '1 day', stale_after => '1000 s', max_attempts => 3)$$);
SELECT results_eq($$SELECT outcome, attempt FROM interlock.idempotency_claim('j', 's')$$, $$VALUES ('acquired', 3)$$, 'one more after the limit is raised');
SELECT throws_ok($$SELECT interlock.define_idempotency_scope('j', max_attempts => 0)$$, '22023');
SELECT lives_ok($$UPDATE interlock.idempotency SET expires_at = now() WHERE key = 's'$$);
SELECT results_eq($$SELECT outcome, attempt, state FROM interlock.idempotency_claim('j', 's', state => '4')$$, $$VALUES ('acquired', 1, '4'::jsonb)$$, 'IDM-21: it starts anew');

-- IDM-3: a claim is given back
SELECT is(interlock.idempotency_release('j', 'd', token('d') + 1), false, 'IDM-3: not by another token');
CREATE TEMP TABLE given ON COMMIT DROP AS SELECT token('d') AS token;
SELECT ok(interlock.idempotency_release('j', 'd', token), 'IDM-3: given back') FROM given;
SELECT is(interlock.idempotency_release('j', 'd', token), false, 'IDM-3: once') FROM given;
SELECT throws_ok($$SELECT interlock.idempotency_complete('j', 'd', token) FROM given$$, 'IL008', NULL, 'IDM-3: its owner has it no longer');
SELECT results_eq($$SELECT status, attempt FROM interlock.idempotency_lookup('j', 'd')$$, $$VALUES (NULL::text, NULL::int)$$, 'IDM-3: as never claimed');
SELECT results_eq($$SELECT outcome, attempt, c.token > given.token FROM given, interlock.idempotency_claim('j', 'd', '{"other": 1}') c$$, $$VALUES ('acquired', 1, true)$$, 'IDM-3: by any request');
SELECT lives_ok($$SELECT interlock.idempotency_checkpoint('j', 'd', token('d'), 'c'), overdue('d')$$);
SELECT results_eq($$SELECT outcome, attempt FROM interlock.idempotency_claim('j', 'd', '{"other": 1}')$$, $$VALUES ('acquired', 2)$$, 'a second attempt');
SELECT ok(interlock.idempotency_release('j', 'd', token('d')), 'IDM-3: gives back what it got');
SELECT results_eq($$SELECT status, attempt, checkpoint FROM interlock.idempotency_lookup('j', 'd')$$, $$VALUES ('stale', 1, 'c')$$, 'IDM-3: as the first attempt left it');
SELECT results_eq($$SELECT outcome FROM interlock.idempotency_claim('j', 'd', '{"third": 1}')$$, ARRAY['mismatch'], 'with its request');

-- IDM-3: a key is forgotten, and audited
SELECT results_eq($$SELECT status, has_response, attempt, response, result_id, body FROM interlock.idempotency_lookup('a', 'h')$$,
    $$VALUES ('completed', true, 1, '{"status": 201}'::jsonb, NULL::text, '\x00ff0a7b'::bytea)$$, 'IDM-3: what is known of a key');
SELECT ok(interlock.idempotency_forget('a', 'h', 'a wrong request'), 'IDM-3: forgotten');
SELECT is(interlock.idempotency_forget('a', 'h', 'a wrong request'), false, 'IDM-3: once');
SELECT results_eq($$SELECT forgotten_by = current_user, scope, key, status, attempt, reason FROM interlock.idempotency_audit$$, $$VALUES (true, 'a', 'h', 'completed', 1, 'a wrong request')$$,
    'IDM-3: audited');
SELECT results_eq($$SELECT request_hash, response, body FROM interlock.idempotency WHERE key = 'h'$$, $$VALUES (NULL::bytea, NULL::jsonb, NULL::bytea)$$, 'IDM-7: its data is gone at once');
SELECT results_eq($$SELECT outcome, attempt FROM interlock.idempotency_claim('a', 'h', '{"corrected": 1}')$$, $$VALUES ('acquired', 1)$$, 'IDM-3: free');
SELECT throws_ok($$SELECT interlock.idempotency_forget('a', 'h', 'r')$$, '55006', 'idempotency key "h" is claimed', 'IDM-3: not a claim that is running');
SELECT lives_ok($$SELECT overdue('h')$$);
SELECT ok(interlock.idempotency_forget('a', 'h', 'its worker died'), 'IDM-3: but one whose deadline is over');
SELECT lives_ok($$SELECT interlock.idempotency_claim('a', 'hogged', '1', stale_after => '1 h')$$);
CREATE TEMP TABLE hogged AS SELECT token('hogged') AS token;
SELECT throws_ok($$SELECT interlock.idempotency_forget('a', 'hogged', 'r', NULL)$$, '22004');
SELECT throws_ok($$SELECT interlock.idempotency_forget('a', 'hogged', 'r', false)$$, '55006', 'idempotency key "hogged" is claimed');
SELECT ok(interlock.idempotency_forget('a', 'hogged', 'nobody ends it', true), 'IDM-3: by force a claim that is running');
SELECT results_eq($$SELECT status, reason FROM interlock.idempotency_audit WHERE key = 'hogged'$$, $$VALUES ('pending', 'nobody ends it')$$, 'IDM-3: audited');
SELECT throws_ok($$SELECT interlock.idempotency_complete('a', 'hogged', token, '1') FROM hogged$$, 'IL008', NULL, 'IDM-3: its owner has lost it');
SELECT throws_ok($$SELECT interlock.idempotency_assert('a', 'hogged', token) FROM hogged$$, 'IL008', NULL, 'IDM-3: and cannot act under it');
SELECT is(interlock.idempotency_extend('a', 'hogged', token), NULL, 'IDM-3: nor prolong it') FROM hogged;
SELECT results_eq($$SELECT outcome, attempt FROM interlock.idempotency_claim('a', 'hogged', '2')$$, $$VALUES ('acquired', 1)$$, 'IDM-3: free for any request');
SELECT throws_ok($$SELECT interlock.idempotency_complete('a', 'hogged', token, '1') FROM hogged$$, 'IL008', NULL, 'IDM-3: nor from the next one');
SELECT throws_ok($$SELECT interlock.idempotency_forget('a', 'h', '')$$, '22023');
SELECT throws_ok($$SELECT interlock.idempotency_forget('a', 'h', NULL)$$, '22004');

-- Any bytes are a key
SELECT is((SELECT count(*) FROM generate_series(1, 255) c, LATERAL interlock.idempotency_claim('a', 'k' || chr(c)) WHERE outcome = 'acquired'), 255::bigint, 'each character');
SELECT results_eq($$SELECT DISTINCT interlock.idempotency_release('a', key, token) FROM interlock.idempotency WHERE key ~ '^k.$'$$, ARRAY[true], 'is one of its own');

SELECT * FROM finish();
ROLLBACK;
