-- TRN-3: from one of several states, only if other columns still have their values, and the row for the loser.
BEGIN;
SELECT plan(57);

CREATE TABLE ticket (id int PRIMARY KEY, code text UNIQUE NOT NULL, status text NOT NULL DEFAULT 'open', agent text, price numeric(6, 2), tags jsonb, closed_at timestamptz);
SELECT interlock.define_transitions('ticket', 'status', '{"open": ["claimed", "cancelled"], "claimed": ["closed", "cancelled"], "closed": ["open"]}');
INSERT INTO ticket (id, code, status, agent, price, tags) SELECT i, 't' || i, 'claimed', 'ann', 9.5, '{"a": 1, "b": 2}' FROM generate_series(1, 9) i;

-- only the agent of a ticket closes it
SELECT results_eq($$SELECT outcome, state, current->>'agent' FROM interlock.try_transition('ticket', 1, 'claimed', 'closed', match => '{"agent": "bob"}')$$,
    $$VALUES ('no_match', 'claimed', 'ann')$$, 'another agent');
SELECT results_eq($$SELECT outcome, state, current FROM interlock.try_transition('ticket', 1, 'claimed', 'closed', '{"closed_at": "2026-01-01"}', match => '{"agent": "ann"}')$$,
    $$VALUES ('transitioned', 'closed', NULL::jsonb)$$, 'the agent');
SELECT results_eq($$SELECT outcome, state, current->'closed_at' IS NOT NULL FROM interlock.try_transition('ticket', 1, 'claimed', 'closed', match => '{"agent": "bob"}')$$,
    $$VALUES ('state_changed', 'closed', true)$$, 'the state comes first');
SELECT throws_ok($$SELECT interlock.transition('ticket', 2, 'claimed', 'closed', match => '{"agent": "bob"}')$$, 'IL003',
    'row in table "ticket" does not match: column "agent" has another value', 'transition raises');
SELECT lives_ok($$SELECT interlock.transition('ticket', 2, 'claimed', 'closed', match => '{"agent": "ann", "price": 9.5}')$$, 'or not');
CREATE FUNCTION pg_temp.refusal(call text, OUT state text, OUT detail text, OUT hint text) LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE 'SELECT ' || call;
EXCEPTION WHEN OTHERS THEN
    GET STACKED DIAGNOSTICS state = RETURNED_SQLSTATE, detail = PG_EXCEPTION_DETAIL, hint = PG_EXCEPTION_HINT;
END $$;
SELECT is((SELECT detail FROM pg_temp.refusal($$interlock.transition('ticket', 3, 'claimed', 'closed', match => '{"agent": "bob", "price": 9.5, "closed_at": "2026-01-01"}')$$)),
    '{"table": "public.ticket", "key": {"id": 3}, "column": "status", "expected": "claimed", "state": "claimed", "differ": ["agent", "closed_at"]}', 'with what differs');

-- values: null, other ways to write one, a document, the state itself, the key
CREATE FUNCTION pg_temp.outcome_of(given jsonb) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    result text;
BEGIN
    UPDATE ticket SET status = 'closed' WHERE id = 3 AND status = 'claimed';
    UPDATE ticket SET status = 'open' WHERE id = 3 AND status = 'closed';
    UPDATE ticket SET status = 'claimed' WHERE id = 3;
    SELECT outcome INTO result FROM interlock.try_transition('ticket', 3, 'claimed', 'closed', match => given);
    RETURN result;
END $$;
SELECT is(pg_temp.outcome_of(m.given), m.outcome, m.given::text)
  FROM (VALUES ('{}'::jsonb, 'transitioned'), ('{"agent": null}', 'no_match'), ('{"closed_at": null}', 'transitioned'), ('{"price": 9.50}', 'transitioned'),
               ('{"price": "9.5"}', 'transitioned'), ('{"price": 9.51}', 'no_match'), ('{"tags": {"b": 2, "a": 1.0}}', 'transitioned'), ('{"tags": null}', 'no_match'),
               ('{"tags": {"a": 1}}', 'no_match'), ('{"status": "claimed"}', 'transitioned'), ('{"status": "open"}', 'no_match'), ('{"id": 3}', 'transitioned'),
               ('{"id": 4}', 'no_match'), ('{"code": "t3", "agent": "ann"}', 'transitioned'), ('{"agent": "Ann"}', 'no_match')) m (given, outcome);
SELECT is(pg_temp.outcome_of(to_jsonb(t) - 'status'), 'transitioned', 'the whole row as it was read') FROM ticket t WHERE id = 3;

-- what match cannot be
SELECT is((SELECT state || ' ' || hint FROM pg_temp.refusal($$interlock.transition('ticket', 3, 'claimed', 'closed', match => '{"agnet": "ann"}')$$)),
    '42703 Perhaps you meant column "agent".', 'an unknown column');
SELECT is((SELECT state || ' ' || hint FROM pg_temp.refusal($$interlock.transition('ticket', 3, 'claimed', 'closed', match => '{"Closed_at": null}')$$)),
    '42703 Perhaps you meant column "closed_at".', 'in another case');
SELECT is((SELECT state || ' ' || hint FROM pg_temp.refusal($$interlock.transition('ticket', 3, 'claimed', 'closed', match => '{"assignee": "ann"}')$$)),
    '42703 Column names are matched exactly, with upper and lower case.', 'nothing like it');
SELECT is((SELECT state FROM pg_temp.refusal(format($$interlock.transition('ticket', 3, 'claimed', 'closed', match => jsonb_build_object(%L, 1))$$, n))), '42703', 'nor ' || left(n, 10))
  FROM unnest(ARRAY['', 'ctid', repeat('x', 100000), '"agent"']) n;
SELECT is((SELECT state FROM pg_temp.refusal(format($$interlock.transition('ticket', 3, 'claimed', 'closed', match => '%s')$$, m))), '22023', m)
  FROM unnest(ARRAY['[]', '1', 'null', '"agent"', '["agent"]']) m;
SELECT throws_ok($$SELECT interlock.transition('ticket', 3, 'claimed', 'closed', match => NULL)$$, '22004', 'argument "match" must not be null', 'null');
SELECT throws_ok($$SELECT interlock.transition('ticket', 3, 'claimed', 'closed', match => '{"price": "cheap"}')$$, '22P02', NULL, 'no value of the type');
SELECT results_eq(format($$SELECT outcome FROM interlock.try_transition('ticket', 3, 'claimed', 'closed', match => '{"agent": %s}')$$, to_jsonb(repeat('x', 1000000))),
    $$VALUES ('state_changed')$$, 'a long value');

-- from several states
INSERT INTO ticket (id, code) VALUES (10, 't10'), (11, 't11');
SELECT results_eq($$SELECT outcome, state FROM interlock.try_transition('ticket', 10, ARRAY['open', 'claimed'], 'cancelled')$$, $$VALUES ('transitioned', 'cancelled')$$, 'from the first');
SELECT results_eq($$SELECT outcome, state FROM interlock.try_transition('ticket', 4, ARRAY['open', 'claimed'], 'cancelled')$$, $$VALUES ('transitioned', 'cancelled')$$, 'or the second');
SELECT results_eq($$SELECT outcome, state, current->>'agent' FROM interlock.try_transition('ticket', 4, ARRAY['open', 'claimed'], 'cancelled')$$, $$VALUES ('state_changed', 'cancelled', 'ann')$$, 'once');
SELECT results_eq($$SELECT outcome, state FROM interlock.try_transition('ticket', 1, ARRAY['open', 'closed'], 'cancelled')$$, $$VALUES ('not_allowed', 'closed')$$, 'a state in which it is not declared');
SELECT results_eq($$SELECT outcome, state FROM interlock.try_transition('ticket', 1, ARRAY['closed', 'cancelled'], 'claimed')$$, $$VALUES ('not_allowed', 'closed')$$, 'declared in none');
SELECT results_eq($$SELECT outcome, state FROM interlock.try_transition('ticket', 99, ARRAY['open'], 'cancelled')$$, $$VALUES ('not_found', NULL::text)$$, 'no row');
SELECT results_eq($$SELECT outcome, state FROM interlock.try_transition('ticket', '{"code": "t11"}'::jsonb, ARRAY['open', 'claimed'], 'cancelled', '{"price": 1}', match => '{"agent": null}')$$,
    $$VALUES ('transitioned', 'cancelled')$$, 'named by another key, with changes and a match');
SELECT throws_ok($$SELECT interlock.transition('ticket', 4, ARRAY['open', 'claimed', 'closed'], 'cancelled')$$, 'IL003', 'state of the row in table "ticket" is "cancelled", not "open", "claimed" or "closed"', 'raised');
SELECT is((SELECT detail FROM pg_temp.refusal($$interlock.transition('ticket', 4, ARRAY['open', 'claimed'], 'cancelled')$$)),
    '{"table": "public.ticket", "key": {"id": 4}, "column": "status", "expected": ["open", "claimed"], "state": "cancelled"}', 'with all of them');
SELECT throws_ok($$SELECT interlock.transition('ticket', 4, '{}'::text[], 'cancelled')$$, '22023', 'argument "from_state" must not be empty', 'none');
SELECT throws_ok($$SELECT interlock.transition('ticket', 4, ARRAY['open', NULL], 'cancelled')$$, '22004', 'argument "from_state" must not contain nulls', 'null');
SELECT throws_ok($$SELECT interlock.transition('ticket', 4, NULL::text[], 'cancelled')$$, '22004', 'argument "from_state" must not be null', 'no array');
SELECT results_eq($$SELECT outcome FROM interlock.try_transition('ticket', 5, '{closed,cancelled}', 'cancelled')$$, $$VALUES ('not_allowed')$$, 'a literal without a type');
PREPARE several AS SELECT outcome, state FROM interlock.try_transition($1, $2, $3::text[], $4);
SELECT results_eq($$EXECUTE several('ticket', '5', '{open,claimed}', 'cancelled')$$, $$VALUES ('transitioned', 'cancelled')$$, 'as a driver sends it');
CREATE TABLE biz (id int PRIMARY KEY, state smallint NOT NULL DEFAULT 0);
SELECT interlock.define_transitions('biz', 'state', '{"0": [1, 9], "1": [9]}');
INSERT INTO biz VALUES (1), (2);
SELECT results_eq('SELECT outcome, state FROM interlock.try_transition(''biz'', 1, ARRAY[0, 1], 9)', $$VALUES ('transitioned', '9')$$, 'numbers');
SELECT results_eq('SELECT outcome, state FROM interlock.try_transition(''biz'', 2, ARRAY[0, 1]::smallint[], 9::smallint)', $$VALUES ('transitioned', '9')$$, 'of the type of the column');

-- current: what the caller may SELECT, and match needs SELECT
CREATE ROLE interlock_stranger;
GRANT SELECT (id, status), UPDATE (status) ON ticket TO interlock_stranger;
SET ROLE interlock_stranger;
SELECT results_eq($$SELECT current FROM interlock.try_transition('ticket', 6, 'open', 'claimed')$$, $$VALUES ('{"id": 6, "status": "claimed"}'::jsonb)$$, 'current');
SELECT throws_ok($$SELECT * FROM interlock.try_transition('ticket', 6, 'claimed', 'closed', match => '{"agent": "ann"}')$$, '42501', NULL, 'no match on a column that is not to be seen');
SELECT results_eq($$SELECT outcome FROM interlock.try_transition('ticket', 6, ARRAY['open', 'claimed'], 'closed', match => '{"id": 6}')$$, $$VALUES ('transitioned')$$, 'on others');
RESET ROLE;

-- by statements the same
SET LOCAL interlock.direct_execution = off;
SELECT is(string_agg(pg_temp.outcome_of(m), ' ' ORDER BY n), 'transitioned no_match transitioned no_match', 'by statements')
  FROM unnest(ARRAY['{"agent": "ann"}', '{"agent": "bob"}', '{"closed_at": null, "price": 9.5}', '{"agent": null}']::jsonb[]) WITH ORDINALITY u (m, n);

SELECT * FROM finish();
ROLLBACK;
