-- TRN-2: states of the column's own type, as drivers and literals give them.
BEGIN;
SELECT plan(39);

-- An integer column
CREATE TABLE biz_order (id bigint PRIMARY KEY, state smallint NOT NULL, note text);
SELECT interlock.define_transitions('biz_order', 'state', '{"0": [1, 9], "1": [2]}', '{0}');
INSERT INTO biz_order VALUES (1, 0);
SELECT results_eq($$SELECT outcome, state FROM interlock.try_transition('biz_order', 1, 0, 1)$$, $$VALUES ('transitioned', '1')$$, 'integers');
SELECT results_eq($$SELECT outcome, state FROM interlock.try_transition('biz_order', 1, 0::bigint, 1::numeric)$$, $$VALUES ('state_changed', '1')$$, 'other numbers');
SELECT results_eq($$SELECT outcome, state FROM interlock.try_transition('biz_order', '1', 1::smallint, '2')$$, $$VALUES ('transitioned', '2')$$, 'a literal beside a number');
SELECT results_eq($$SELECT outcome, state FROM interlock.try_transition('biz_order', 1, 2, 0)$$, $$VALUES ('not_allowed', '2')$$, 'not declared');
SELECT throws_ok($$SELECT interlock.transition('biz_order', 1, 0, 1)$$, 'IL003', 'state of the row in table "biz_order" is "2", not "0"', 'messages');
SELECT throws_ok($$SELECT interlock.transition('biz_order', 1, 2, 0)$$, 'IL002', '"state" in table "biz_order" cannot go from "2" to "0"', 'of both kinds');
SELECT throws_ok($$SELECT interlock.transition('biz_order', 1, NULL::int, 1)$$, '22004', 'argument "from_state" must not be null', 'null');
PREPARE literals AS SELECT outcome, state FROM interlock.try_transition('biz_order', $1, 0, 1);
PREPARE typed (unknown, unknown, int, int) AS SELECT outcome, state FROM interlock.try_transition($1, $2, $3, $4);
PREPARE typed_key (unknown, bigint, unknown, unknown) AS SELECT outcome, state FROM interlock.try_transition($1, $2, $3, $4);
SELECT results_eq($$EXECUTE literals('1')$$, $$VALUES ('state_changed', '2')$$, 'an untyped key beside numbers');
SELECT results_eq($$EXECUTE typed('biz_order', '1', 0, 1)$$, $$VALUES ('state_changed', '2')$$, 'typed parameters');
SELECT results_eq($$EXECUTE typed_key('biz_order', 1, '0', '1')$$, $$VALUES ('state_changed', '2')$$, 'a typed key');

-- What the type cannot hold
CREATE FUNCTION pg_temp.refusal(call text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    state text;
    hint text;
BEGIN
    EXECUTE 'SELECT ' || call;
    RETURN 'no error';
EXCEPTION WHEN OTHERS THEN
    GET STACKED DIAGNOSTICS state = RETURNED_SQLSTATE, hint = PG_EXCEPTION_HINT;
    RETURN state || ': ' || hint;
END $$;
SELECT is(pg_temp.refusal($$interlock.transition('biz_order', 1, 'paid', 'shipped')$$),
    '22P02: Declared states of column "state": "0", "1", "9", "2".', 'a word');
SELECT is(pg_temp.refusal($$interlock.transition('biz_order', 1, 0, 70000)$$),
    '22003: Declared states of column "state": "0", "1", "9", "2".', 'a number too large');
SELECT is(pg_temp.refusal($$interlock.transition('biz_order', 1, true, false)$$),
    '22P02: Declared states of column "state": "0", "1", "9", "2".', 'a boolean');
SELECT is(pg_temp.refusal($$interlock.transition('biz_order', 1, 0, ARRAY[0, 1])$$),
    '22P02: Declared states of column "state": "0", "1", "9", "2".', 'an array, of which only from_state can be one');
SELECT is(pg_temp.refusal($$interlock.transition('biz_order', 1, ROW(0), ROW(1))$$),
    '22P02: Declared states of column "state": "0", "1", "9", "2".', 'a row');
SELECT interlock.define_transitions('biz_order', 'note', (SELECT jsonb_object_agg(n, '[]'::jsonb) FROM generate_series(100, 199) n));
ALTER TABLE biz_order ALTER COLUMN note TYPE int USING note::int;
SELECT is(pg_temp.refusal($$interlock.transition('biz_order', 1, 'x', 'y', state_column => 'note')$$),
    '22P02: Declared states of column "note": ' || (SELECT string_agg(format('"%s"', n), ', ' ORDER BY n) FROM generate_series(100, 119) n) || ', ....',
    'of many states, some');

-- A boolean column
CREATE TABLE seat (id int PRIMARY KEY, "IsReserved" boolean NOT NULL);
SELECT interlock.define_transitions('seat', 'IsReserved', '{"false": ["true"], "true": []}', '{false}');
INSERT INTO seat VALUES (1, false), (2, false);
SELECT results_eq($$SELECT outcome, state FROM interlock.try_transition('seat', 1, false, true)$$, $$VALUES ('transitioned', 'true')$$, 'booleans');
SELECT results_eq($$SELECT outcome, state FROM interlock.try_transition('seat', 1, false, true)$$, $$VALUES ('state_changed', 'true')$$, 'taken');
SELECT results_eq($$SELECT outcome, state FROM interlock.try_transition('seat', 2, 'f', 'yes')$$, $$VALUES ('transitioned', 'true')$$, 'and their texts');
SELECT throws_ok($$UPDATE seat SET "IsReserved" = false$$, 'IL002', '"IsReserved" in table "seat" cannot go from "true" to "false"', 'for every writer');
SELECT throws_ok($$INSERT INTO seat VALUES (3, true)$$, 'IL002', '"IsReserved" of a new row in table "seat" cannot be "true"', 'initial');
SELECT lives_ok($$SELECT interlock.define_transitions('seat', 'IsReserved', '{"f": [true], "true": [false]}', '{f}')$$, 'as JSON booleans');
SELECT results_eq($$SELECT outcome, state FROM interlock.try_transition('seat', 1, true, false)$$, $$VALUES ('transitioned', 'false')$$, 'and back');
SELECT throws_ok($$SELECT interlock.define_transitions('seat', 'IsReserved', '{"false": [], "f": []}')$$, '22023', 'transitions name a state of column "IsReserved" twice', 'two spellings');
SELECT is(pg_temp.refusal($$interlock.transition('seat', 1, 2, 3)$$),
    '22P02: Declared states of column "IsReserved": "true", "false".', 'no boolean');

-- An enum
CREATE TYPE mood AS ENUM ('new', 'paid', 'done');
CREATE TABLE bill (id uuid PRIMARY KEY, mood mood);
SELECT interlock.define_transitions('bill', 'mood', '{"new": ["paid"], "paid": ["done"]}');
INSERT INTO bill VALUES ('00000000-0000-0000-0000-000000000001', 'new');
PREPARE enums (uuid, mood, mood) AS SELECT outcome, state FROM interlock.try_transition('bill', $1, $2, $3);
SELECT results_eq($$EXECUTE enums('00000000-0000-0000-0000-000000000001', 'new', 'paid')$$, $$VALUES ('transitioned', 'paid')$$, 'enums');
SELECT results_eq($$SELECT outcome, state FROM interlock.try_transition('bill', '00000000-0000-0000-0000-000000000001', 'paid'::varchar, 'done'::mood)$$, $$VALUES ('transitioned', 'done')$$, 'and a text');
SELECT is(pg_temp.refusal($$interlock.transition('bill', '00000000-0000-0000-0000-000000000001', 'lost', 'done'::mood)$$),
    '22P02: Declared states of column "mood": "new", "paid", "done".', 'no label');

-- A number of type numeric is one state however it is written, and a uuid, and a domain
CREATE DOMAIN step AS numeric CHECK (VALUE < 10);
CREATE TABLE wide (id int PRIMARY KEY, num numeric, scaled numeric(3, 1), ref uuid, step step);
SELECT interlock.define_transitions('wide', 'num', '{"1": [2, "3.50"]}'), interlock.define_transitions('wide', 'scaled', '{"1": [1.5]}'),
    interlock.define_transitions('wide', 'ref', '{"10000000-0000-0000-0000-000000000000": ["20000000-0000-0000-0000-000000000000"]}'),
    interlock.define_transitions('wide', 'step', '{"1": ["2"]}');
INSERT INTO wide VALUES (1, 1.00, 1, '10000000-0000-0000-0000-000000000000', 1.0);
SELECT results_eq($$SELECT outcome, state FROM interlock.try_transition('wide', 1, 1.0, 3.5000, state_column => 'num')$$, $$VALUES ('transitioned', '3.5')$$, 'numeric');
SELECT results_eq($$SELECT outcome, state FROM interlock.try_transition('wide', 1, 1, 2, state_column => 'num')$$, $$VALUES ('state_changed', '3.5')$$, 'changed');
SELECT results_eq($$SELECT outcome, state FROM interlock.try_transition('wide', 1, 1, 1.5, state_column => 'scaled')$$, $$VALUES ('transitioned', '1.5')$$, 'of a scale');
SELECT results_eq($$SELECT outcome, state FROM interlock.try_transition('wide', 1, '10000000-0000-0000-0000-000000000000'::uuid, '20000000-0000-0000-0000-000000000000'::uuid, state_column => 'ref')$$,
    $$VALUES ('transitioned', '20000000-0000-0000-0000-000000000000')$$, 'uuid');
SELECT results_eq($$SELECT outcome, state FROM interlock.try_transition('wide', 1, 1.00, '2.0', state_column => 'step')$$, $$VALUES ('transitioned', '2')$$, 'a domain');
SELECT is(pg_temp.refusal($$interlock.transition('wide', 1, 2, 12, state_column => 'step')$$),
    '23514: Declared states of column "step": "1", "2".', 'outside of it');
SELECT results_eq('SELECT num, scaled, step::numeric FROM wide', 'VALUES (3.5000, 1.5, 2.0)', 'what is stored');

-- A text column takes the text of anything
CREATE TABLE word (id int PRIMARY KEY, state text);
SELECT interlock.define_transitions('word', 'state', '{"1": ["true"], "true": ["x"]}');
INSERT INTO word VALUES (1, '1');
SELECT results_eq($$SELECT outcome, state FROM interlock.try_transition('word', 1, 1, true)$$, $$VALUES ('transitioned', 'true')$$, 'texts of other types');
SELECT results_eq($$SELECT outcome, state FROM interlock.try_transition('word', 1, true, 'x '::char(3))$$, $$VALUES ('transitioned', 'x')$$, 'without the blanks of a char');

-- Which function a call means
PREPARE untyped AS SELECT interlock.transition($1, $2, $3, $4);
PREPARE with_key AS SELECT interlock.transition($1, 1, $2, $3);
PREPARE with_states AS SELECT interlock.transition($1, $2, 0, 1);
SELECT results_eq($$SELECT name, parameter_types::text FROM pg_prepared_statements WHERE name IN ('untyped', 'with_key', 'with_states') ORDER BY 1$$,
    $$VALUES ('untyped', '{regclass,text,text,text}'), ('with_key', '{regclass,text,text}'), ('with_states', '{regclass,text}')$$,
    'untyped parameters are texts');
SELECT throws_ok('PREPARE mixed AS SELECT interlock.transition($1, $2, $3, 1)', '42P18', NULL, 'but one beside a state with a type needs one, too');

SELECT * FROM finish();
ROLLBACK;
