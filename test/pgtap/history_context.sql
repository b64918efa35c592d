-- HIS-60: what a transaction says about itself is in each of its entries.
BEGIN;
SELECT plan(34);
CREATE ROLE context_writer;
CREATE TABLE page (id int PRIMARY KEY, body text);
SELECT interlock.enable_history('page');
GRANT ALL ON page TO context_writer;
CREATE FUNCTION contexts() RETURNS SETOF jsonb LANGUAGE sql AS 'SELECT context FROM page_history ORDER BY id DESC LIMIT 1';

INSERT INTO page VALUES (1, 'a');
SELECT results_eq('SELECT contexts()', ARRAY[NULL::jsonb], 'without a context there is none');
SET LOCAL interlock.context = '{"user": "anna", "request": 17}';
UPDATE page SET body = 'b';
SELECT results_eq('SELECT contexts()', ARRAY['{"user": "anna", "request": 17}'::jsonb], 'SET LOCAL');
SELECT set_config('interlock.context', '{"job": {"id": 3, "steps": [1, 2]}}', true);
SET LOCAL interlock.direct_execution = off;
UPDATE page SET body = 'c';
SELECT results_eq('SELECT contexts()', ARRAY['{"job": {"id": 3, "steps": [1, 2]}}'::jsonb], 'set_config, and an entry that a statement writes');
RESET interlock.direct_execution;
SELECT results_eq($$SELECT context FROM interlock.row_history('page', 1)$$,
    $$VALUES (NULL::jsonb), ('{"user": "anna", "request": 17}'), ('{"job": {"id": 3, "steps": [1, 2]}}')$$, 'row_history');
SELECT results_eq($$SELECT context FROM interlock.row_history('page', '1')$$, $$SELECT context FROM page_history ORDER BY id$$, 'with a key as text');

SAVEPOINT s;
SET LOCAL interlock.context = '{"inner": true}';
UPDATE page SET body = 'd';
SELECT results_eq('SELECT contexts()', ARRAY['{"inner": true}'::jsonb], 'in a savepoint');
ROLLBACK TO s;
UPDATE page SET body = 'e';
SELECT results_eq('SELECT contexts()', ARRAY['{"job": {"id": 3, "steps": [1, 2]}}'::jsonb], 'its rollback returns to the one before');
CREATE FUNCTION own_context() RETURNS void LANGUAGE sql SET interlock.context = '{"function": 1}' AS $$UPDATE page SET body = 'f'$$;
SELECT own_context();
SELECT results_eq('SELECT contexts()', ARRAY['{"function": 1}'::jsonb], 'a function that sets it');
UPDATE page SET id = 2;
SELECT results_eq('SELECT context FROM page_history ORDER BY id DESC LIMIT 2', $$SELECT '{"job": {"id": 3, "steps": [1, 2]}}'::jsonb FROM generate_series(1, 2)$$,
    'another key: both entries');
DELETE FROM page;
SELECT results_eq('SELECT contexts()', ARRAY['{"job": {"id": 3, "steps": [1, 2]}}'::jsonb], 'a delete');
INSERT INTO page VALUES (1, 'a');
TRUNCATE page;
SELECT results_eq('SELECT contexts()', ARRAY['{"job": {"id": 3, "steps": [1, 2]}}'::jsonb], 'TRUNCATE');

-- any role, no proof
SET LOCAL ROLE context_writer;
SET LOCAL interlock.context = '{"user": "somebody else"}';
INSERT INTO page VALUES (1, 'a');
RESET ROLE;
SELECT results_eq('SELECT context, changed_by FROM page_history ORDER BY id DESC LIMIT 1', $$VALUES ('{"user": "somebody else"}'::jsonb, 'context_writer')$$,
    'any role sets it, without a grant');

-- what it may be
SELECT is(set_config('interlock.context', c, true), c, 'taken: ' || c) FROM unnest(ARRAY['', '{}', '{"a": null}', ' {"a": "ä\u00e4"} ']) c;
UPDATE page SET body = 'g';
SELECT results_eq('SELECT contexts()', ARRAY['{"a": "ää"}'::jsonb], 'stored as jsonb');
SELECT is(set_config('interlock.context', format('{"a": "%s"}', repeat('x', 8170)), true) IS NOT NULL, true, 'almost 8 kB');
UPDATE page SET body = 'h';
SELECT is((SELECT length(c->>'a') FROM contexts() c), 8170, 'are stored');
SELECT throws_ok(format('SELECT set_config(''interlock.context'', %L, true)', c), '22023', 'setting "interlock.context" ' || rule, left(c, 20))
  FROM (VALUES ('[]', 'must be a JSON object'), ('1', 'must be a JSON object'), ('"a"', 'must be a JSON object'), ('null', 'must be a JSON object'),
               ('user=anna', 'must be a JSON object'), ('{"a": 1', 'must be a JSON object'), (' ', 'must be a JSON object'),
               ('{"a": "\u0000"}', 'must be a JSON object'), ('{"a": 1e1000000}', 'must be a JSON object'),
               (format('{"a": "%s"}', repeat('x', 10000000)), 'must not be longer than 8192 bytes'),
               (format('{"a": [%s 1]}', repeat('1,', 4000)), 'must not need more than 8192 bytes as jsonb'),
               ('{"a": 1e100000}', 'must not print as more than 8192 bytes')) b (c, rule);
SELECT throws_ok($$SET LOCAL interlock.context = 'anna'$$, '22023', NULL, 'SET raises the same');
SELECT results_eq('SELECT length(c->>''a'') FROM contexts() c', ARRAY[8170], 'what was refused changes nothing');
UPDATE page SET body = 'i';
SELECT results_eq('SELECT length(c->>''a'') FROM contexts() c', ARRAY[8170], 'also for later writes');

SELECT * FROM finish();
ROLLBACK;
