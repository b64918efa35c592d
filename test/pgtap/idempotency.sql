-- What callers of idempotency rely on.
BEGIN;
SELECT plan(60);

CREATE FUNCTION effect(request jsonb) RETURNS jsonb LANGUAGE sql AS 'SELECT request';
CREATE FUNCTION token(k text) RETURNS bigint LANGUAGE sql AS 'SELECT token FROM interlock.idempotency WHERE scope = ''s'' AND key = k';
SELECT results_eq($$SELECT outcome, attempt FROM interlock.idempotency_claim('s', 'k', '{"a": 1}')$$, $$VALUES ('acquired', 1)$$, 'acquired');
SELECT results_eq($$SELECT outcome FROM interlock.idempotency_claim('s', 'k', '{"a": 1.0}')$$, ARRAY['in_progress'], 'in_progress');
SELECT results_eq($$SELECT outcome FROM interlock.idempotency_claim('s', 'k', '{"a": 2}')$$, ARRAY['mismatch'], 'IDM-19: mismatch');
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
SELECT is(interlock.idempotency_extend('s', 'k', token('k')), NULL, 'IDM-15: a claim that has ended is not extended');
SELECT is(interlock.idempotency_extend('s', 'none', 1), NULL, 'nor one that never was');
SELECT throws_ok($$SELECT interlock.idempotency_extend('s', 'k', NULL)$$, '22004');
SELECT lives_ok($$SELECT interlock.idempotency_claim('s', 'f'); SELECT interlock.idempotency_fail('s', 'f', token('f'), '"e"', false)$$, 'fail');
SELECT results_eq($$SELECT outcome, response FROM interlock.idempotency_claim('s', 'f')$$, $$VALUES ('failed', '"e"'::jsonb)$$, 'IDM-26: failed');
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

-- IDM-51: a command is named with its argument types or without
CREATE FUNCTION tap_hint(sql text, OUT code text, OUT hint text) LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE sql;
EXCEPTION WHEN OTHERS THEN
    GET STACKED DIAGNOSTICS code = RETURNED_SQLSTATE, hint = PG_EXCEPTION_HINT;
END $$;
CREATE FUNCTION run(command text) RETURNS text LANGUAGE sql AS 'SELECT outcome FROM interlock.run_once(''s'', ''named '' || command, command)';
CREATE SCHEMA tap_named;
CREATE FUNCTION tap_named.submit(request jsonb) RETURNS jsonb LANGUAGE sql AS 'SELECT request';
CREATE FUNCTION tap_named.submit(request text) RETURNS jsonb LANGUAGE sql AS 'SELECT NULL::jsonb';
CREATE FUNCTION tap_named."Submit (now)"(request jsonb) RETURNS void LANGUAGE sql AS '';
CREATE FUNCTION tap_named.texts(request text) RETURNS jsonb LANGUAGE sql AS 'SELECT NULL::jsonb';
SELECT is(run(command), 'completed', 'IDM-51: ' || command)
  FROM (VALUES ('effect'), ('effect(jsonb)'), ('tap_named.submit'), (' tap_named . submit (jsonb)'), ('tap_named."Submit (now)"'), ('tap_named."Submit (now)"(jsonb)')) AS v (command);
SELECT is((tap_hint(format('SELECT run(%L)', command))).code, expected, 'IDM-51: ' || command || ' is refused')
  FROM (VALUES ('submit', '42883'), ('tap_named.texts', '42883'), ('tap_named.texts(text)', '22023'), ('submit(', '22P02'), ('submit(nothing)', '42704'),
               ('', '42602'), ('a b', '42602'), ('0', '42883'), ('-', '42883')) AS v (command, expected);
SELECT matches((tap_hint($$SELECT run('no_schema.submit')$$)).code, '^(3F000|42883)$', 'IDM-51: no_schema.submit is refused'); -- 42883 from PostgreSQL 16 on
SELECT is((tap_hint($$SELECT run('submit')$$)).hint, 'A command takes (request jsonb) and returns jsonb or void: name it as ''pay'' or ''pay(jsonb)''.', 'IDM-51: with a hint');
CREATE TABLE tap_row (id int PRIMARY KEY, a int, status text DEFAULT 'open');
SELECT interlock.enable_versioning('tap_row');
INSERT INTO tap_row VALUES (1, 1);
CREATE FUNCTION tap_named.add(current jsonb, args jsonb) RETURNS jsonb LANGUAGE sql AS $$SELECT jsonb_build_object('a', (current->>'a')::int + 1)$$;
CREATE FUNCTION tap_named.may(tap_row, tap_row) RETURNS boolean LANGUAGE sql AS 'SELECT true';
SELECT results_eq($$SELECT outcome FROM interlock.update_with_retry('tap_row', 1, 'tap_named.add') UNION ALL SELECT outcome FROM interlock.update_with_retry('tap_row', 1, 'tap_named.add(jsonb,jsonb)')$$,
    ARRAY['updated', 'updated'], 'IDM-51: a transform');
SELECT is((tap_hint($$SELECT interlock.update_with_retry('tap_row', 1, 'subtract')$$)).hint,
    'A transform takes (current jsonb, args jsonb) and returns the changes as jsonb: name it as ''add_tag'' or ''add_tag(jsonb, jsonb)''.', 'with a hint');
SELECT lives_ok($$SELECT interlock.define_transitions('tap_row', 'status', '{"open": ["paid", "void"]}', guards => '{"open": {"paid": "tap_named.may", "void": "tap_named.may(tap_row, tap_row)"}}')$$, 'IDM-51: a guard');
SELECT results_eq($$SELECT DISTINCT guard::text FROM interlock.transitions WHERE rel = 'tap_row'::regclass AND guard IS NOT NULL$$, ARRAY['tap_named.may(tap_row,tap_row)'], 'both names are those of one');

-- IDM-50: a job at half past midnight in London, on each of the nights around the change to summer time
CREATE FUNCTION report(request jsonb) RETURNS void LANGUAGE sql AS '';
CREATE FUNCTION outcomes(job text, zone text) RETURNS SETOF text LANGUAGE sql AS $$
SELECT outcome FROM unnest('{2026-03-28 00:30 Europe/London,2026-03-29 00:30 Europe/London,2026-03-30 00:30 Europe/London,2026-03-31 00:30 Europe/London}'::timestamptz[]) AS run,
    interlock.run_once('s', interlock.idempotency_key(job, (run AT TIME ZONE zone)::date), 'report') $$;
SELECT results_eq($$SELECT outcomes('right', 'Europe/London')$$, array_fill('completed'::text, '{4}'), 'IDM-50: with the day of its time zone each night runs');
SELECT results_eq($$SELECT outcomes('wrong', 'UTC')$$, ARRAY['completed', 'completed', 'replay', 'completed'], 'with the day in UTC a night is lost');

-- IDM-52: two paths with different bodies for one effect
SELECT results_eq($$SELECT * FROM interlock.run_once('s', 'c7', 'effect', '{"payment": 7}') UNION ALL SELECT * FROM interlock.run_once('s', 'c7', 'effect', '{"payment": 7}', wait => '10 min')$$,
    $$VALUES ('completed', '{"payment": 7}'::jsonb), ('replay', '{"payment": 7}')$$, 'IDM-52: the request names the effect');
SELECT lives_ok($$SELECT interlock.idempotency_claim('s', 'c8'); SELECT interlock.idempotency_complete('s', 'c8', token('c8'), '1')$$, 'or the key is claimed without a request');
SELECT results_eq($$SELECT outcome, response FROM interlock.idempotency_claim('s', 'c8') UNION ALL SELECT outcome, response FROM interlock.idempotency_claim('s', 'c8', '{"webhook": true}')$$,
    $$VALUES ('replay', '1'::jsonb), ('replay', '1')$$, 'IDM-52: which each body gets an answer to');

-- A call that waits for what cannot come would wait for ten minutes.
SELECT lives_ok($$SELECT interlock.idempotency_claim('s', 'own')$$);
SELECT results_eq($$SELECT outcome FROM interlock.idempotency_claim('s', 'own', wait => '10 min')$$, ARRAY['in_progress'], 'IDM-53: a claim of this transaction is not waited for');
CREATE FUNCTION suppress() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';
CREATE TRIGGER suppress BEFORE INSERT ON interlock.idempotency FOR EACH ROW EXECUTE FUNCTION suppress();
SELECT throws_ok($$SELECT interlock.idempotency_claim('s', 'never', wait => '10 min')$$, '09000', 'a trigger or rule of interlock.idempotency keeps the key from being written', 'IDM-53: nor is a claim that a trigger suppresses');

SELECT * FROM finish();
ROLLBACK;
