-- States by their names: labels that are renamed, rows that are found again, names that no transition has.
BEGIN;
SELECT plan(30);

CREATE FUNCTION says(command text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    message text; hint text; detail text;
BEGIN
    EXECUTE command;
    RETURN 'done';
EXCEPTION WHEN OTHERS THEN
    GET STACKED DIAGNOSTICS message = MESSAGE_TEXT, hint = PG_EXCEPTION_HINT, detail = PG_EXCEPTION_DETAIL;
    RETURN concat_ws(E'\n', SQLSTATE || ': ' || message, nullif(detail, ''), nullif(hint, ''));
END $$;
CREATE FUNCTION key_in(command text) RETURNS jsonb LANGUAGE sql AS $$SELECT (regexp_match(says(command), '\n(\{.*\})'))[1]::jsonb -> 'key'$$;

-- TRN-50: ALTER TYPE renames a label: the transitions keep the old name, which a finding and each error say, with the way back
CREATE TYPE payment AS ENUM ('new', 'paid', 'shipped');
CREATE TABLE orders (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, status payment DEFAULT 'new');
CREATE FUNCTION any_order(old orders, new orders) RETURNS boolean LANGUAGE sql AS 'SELECT true';
SELECT interlock.define_transitions('orders', 'status', '{"new": ["paid"], "paid": ["shipped"]}', initial => '{new}', on_repeat => 'reject',
    guards => '{"new": {"paid": "any_order(orders,orders)"}}');
INSERT INTO orders DEFAULT VALUES;
INSERT INTO orders DEFAULT VALUES;
SELECT is_empty($$SELECT * FROM interlock.advise('orders')$$, 'TRN-50: nothing is found');
ALTER TYPE payment RENAME VALUE 'paid' TO 'settled';
SELECT is(says($$UPDATE orders SET status = 'settled' WHERE id = 1$$),
    'IL002: "status" in table "orders" cannot go from "new" to "settled"' || E'\n' ||
    '{"table": "public.orders", "key": {"id": 1}, "column": "status", "from": "new", "to": "settled", "allowed": ["paid"]}' || E'\n' ||
    'The transitions of the column name states that its type payment does not have: "paid". The table''s owner defines them again with '
    'interlock.define_transitions; SELECT interlock.configuration(''public.orders'') shows them.', 'TRN-50: a plain update');
SELECT matches(says($$SELECT interlock.transition('orders', 1, 'new', 'settled')$$), '^22023: .*does not have: "paid"', 'TRN-50: the new name');
SELECT matches(says($$SELECT interlock.transition('orders', 1, 'new', 'paid')$$), '^22P02: .*does not have: "paid"', 'TRN-50: the old name');
CREATE TABLE elsewhere (id int PRIMARY KEY, status payment);
SELECT is(says($$SELECT interlock.configure('elsewhere', interlock.configuration('orders') #- '{transitions,status,guards,new}')$$),
    '22P02: invalid input value for enum payment: "paid"' || E'\n' || 'Labels of type payment: "new", "settled", "shipped".', 'TRN-50: the settings elsewhere');
SELECT results_eq($$SELECT rel, severity, finding FROM interlock.advise('orders')$$,
    $$VALUES ('orders'::regclass, 'broken', 'transitions of column "status" name states that type payment does not have: "paid"')$$,
    'TRN-50: a finding');
DO $$BEGIN EXECUTE (SELECT advice FROM interlock.advise('orders')); END$$; -- as it says
SELECT is_empty($$SELECT * FROM interlock.advise('orders')$$, 'TRN-50: and it is gone');
SELECT is(interlock.configuration('orders') #> '{transitions,status}', '{"guards": {"new": {"settled": "public.any_order(public.orders,public.orders)"}},
    "initial": ["new"], "on_repeat": "reject", "transitions": {"new": ["settled"], "settled": ["shipped"]}}', 'TRN-50: nothing else has changed');
SELECT is(says($$UPDATE orders SET status = 'settled' WHERE id = 1$$), 'done', 'TRN-50: the update passes');
-- two at once: nobody knows which is which
ALTER TYPE payment RENAME VALUE 'settled' TO 'a';
ALTER TYPE payment RENAME VALUE 'shipped' TO 'b';
SELECT results_eq($$SELECT finding, advice FROM interlock.advise('orders')$$,
    $$VALUES ('transitions of column "status" name states that type payment does not have: "settled", "shipped"',
              'the owner of the table calls interlock.define_transitions with the labels that the type has; SELECT interlock.configuration(''orders'') shows the current transitions')$$,
    'TRN-50: two labels');
-- a new label is in no transition: no finding, and no state
SELECT interlock.define_transitions('orders', 'status', '{"new": ["a"], "a": ["b"]}');
ALTER TYPE payment ADD VALUE 'refunded';
SELECT is_empty($$SELECT * FROM interlock.advise('orders')$$, 'TRN-50: a label that was added');

-- TRN-51: a new row that is refused is named, with a key that the server has made, of many rows too
CREATE TABLE task (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, title text, state text);
CREATE TABLE coded (code text GENERATED ALWAYS AS (upper(title)) STORED PRIMARY KEY, title text, state text);
CREATE TABLE parted (id int, state text, PRIMARY KEY (id)) PARTITION BY RANGE (id);
CREATE TABLE parted_1 PARTITION OF parted DEFAULT;
SELECT interlock.define_transitions(t, 'state', '{"open": ["done"]}', initial => '{open}') FROM unnest('{task,coded,parted}'::regclass[]) t;
SELECT is(key_in($$INSERT INTO task (title, state) SELECT 'row ' || i, CASE i WHEN 3 THEN 'done' ELSE 'open' END FROM generate_series(1, 5) i$$),
    '{"id": 3}', 'TRN-51: one row of many');
SELECT is(key_in($$INSERT INTO coded (title, state) VALUES ('a', 'open'), ('b', 'opne')$$), '{"code": "B"}', 'TRN-51: a generated key');
SELECT is(key_in($$INSERT INTO parted VALUES (1, 'open'), (2, 'done')$$), '{"id": 2}', 'TRN-51: in a partition');
CREATE ROLE transition_states_writer;
GRANT INSERT ON task TO transition_states_writer;
GRANT USAGE ON SCHEMA public TO transition_states_writer;
SET LOCAL ROLE transition_states_writer;
SELECT is(key_in($$INSERT INTO task (title, state) VALUES ('x', 'done')$$), 'null', 'TRN-51: not for one who may not read it');
RESET ROLE;

-- TRN-52: a name that no transition has is an error with the nearest one, and not the answer not_allowed
CREATE TABLE ticket (id int PRIMARY KEY, status text, level int);
INSERT INTO ticket VALUES (1, 'open', 0), (2, 'open', 0), (3, 'claimed', 0), (4, 'archived', 0), (5, 'open', 0), (6, 'open', 0);
SELECT interlock.define_transitions('ticket', 'status', '{"open": ["claimed", "cancelled"], "claimed": ["closed", "cancelled"]}');
SELECT interlock.define_transitions('ticket', 'level', '{"0": [1], "1": [2]}');
PREPARE try (text, text, text, text) AS SELECT outcome FROM interlock.try_transition('ticket', $1, $2, $3, state_column => $4::name);
SELECT is(says($$EXECUTE try('1', 'opened', 'claimed', 'status')$$),
    '22023: argument "from_state": no transition of column "status" of table "ticket" names the state "opened"' || E'\n' ||
    'Perhaps "open" is meant. Declared states of column "status": "open", "claimed", "cancelled", "closed".', 'TRN-52: where from');
SELECT matches(says($$EXECUTE try('1', 'open', 'Claimed', 'status')$$), '^22023: argument "to_state".*\nPerhaps "claimed" is meant', 'TRN-52: where to');
SELECT matches(says($$SELECT interlock.transition('ticket', 1, ARRAY['open', 'claimd'], 'cancelled', state_column => 'status')$$),
    '^22023: argument "from_state".*"claimd"\nPerhaps "claimed" is meant', 'TRN-52: one of several');
SELECT matches(says($$SELECT interlock.transition('ticket', 1, 'open', 'zzzzzzzz', state_column => 'status')$$),
    '^22023: .*\nDeclared states', 'TRN-52: nothing is near');
SELECT matches(says($$SELECT interlock.transition('ticket', 1, 7, 1, state_column => 'level')$$), '^22023: .*"7"\nDeclared states of column "level": "0", "1", "2"',
    'TRN-52: a number');
SELECT results_eq($$EXECUTE try('1', 'open', 'closed', 'status')$$, $$VALUES ('not_allowed')$$, 'TRN-52: what is not declared is an answer');
SELECT matches(says($$SELECT interlock.define_transitions('ticket', 'status', '{"open": ["claimed"]}', guards => '{"opne": {"claimed": "f(ticket,ticket)"}}')$$),
    '^22023: argument "guards".*"opne"\nPerhaps "open" is meant', 'TRN-52: a guard');
-- an array that came without its type
SELECT results_eq($$EXECUTE try('2', '{open,claimed}', 'cancelled', 'status')$$, $$VALUES ('transitioned')$$, 'TRN-52: a list');
SELECT results_eq($$EXECUTE try('3', '{"open","claimed"}', 'cancelled', 'status')$$, $$VALUES ('transitioned')$$, 'TRN-52: as node-postgres sends it');
SELECT results_eq($$EXECUTE try('5', '{0,1}', '1', 'level')$$, $$VALUES ('transitioned')$$, 'TRN-52: of numbers');
SELECT matches(says($$EXECUTE try('6', '{open,claimd}', 'cancelled', 'status')$$), '^22023: .*"claimd"\nPerhaps "claimed" is meant', 'TRN-52: a misspelled one in it');
SELECT matches(says($$EXECUTE try('6', '{open', 'cancelled', 'status')$$), '^22023: .*"\{open"\nPerhaps "open" is meant', 'TRN-52: half of a list');
SELECT matches(says($$EXECUTE try('6', '{"open}', 'cancelled', 'status')$$), '^22P02: .*\nGive several states as an array: \$1::text\[\]', 'TRN-52: a broken list');
-- a state may be called so
SELECT interlock.define_transitions('ticket', 'status', '{"{open,claimed}": ["closed"], "open": ["{open,claimed}"]}');
SELECT results_eq($$EXECUTE try('6', 'open', '{open,claimed}', 'status')$$, $$VALUES ('transitioned')$$, 'TRN-52: a state of such a name');
SELECT results_eq($$EXECUTE try('6', '{open,claimed}', 'closed', 'status')$$, $$VALUES ('transitioned')$$, 'TRN-52: is that state');

SELECT * FROM finish();
ROLLBACK;
