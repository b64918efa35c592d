-- next_states and next_states_many: the buttons of a row, with guards.
BEGIN;
SELECT plan(27);

CREATE TABLE orders (id int PRIMARY KEY, status text DEFAULT 'new', assignee text, total numeric, tax numeric GENERATED ALWAYS AS (total / 10) STORED);
CREATE TABLE calls (id int);
CREATE FUNCTION needs_assignee(old orders, new orders) RETURNS text LANGUAGE sql AS
$$SELECT CASE WHEN (new).assignee IS NULL THEN format('order %s has no assignee', (old).id) END$$;
CREATE FUNCTION is_paid(old orders, new orders) RETURNS boolean LANGUAGE sql AS $$SELECT (new).total > 0 AND (old).tax >= 0 AND (new).status = 'paid'$$;
CREATE FUNCTION raises(old orders, new orders) RETURNS boolean LANGUAGE plpgsql AS
$$BEGIN INSERT INTO calls VALUES ((old).id); IF (old).total < 0 THEN RAISE 'no total of %', (old).total; END IF; RETURN true; END$$;
SELECT interlock.define_transitions('orders', 'status', '{"new": ["open", "paid", "void", "new"], "open": ["paid"], "paid": []}', '{new, open}',
    guards => '{"new": {"open": "needs_assignee", "paid": "is_paid", "void": "raises"}}');
INSERT INTO orders VALUES (1, 'new', NULL, 0), (2, 'new', 'anna', 5), (3, 'new', 'bob', -1), (4, 'open', NULL, 1), (5, 'new', 'eve', 1);
SET session_replication_role = replica;
INSERT INTO orders VALUES (6, NULL, NULL, 1);
RESET session_replication_role;
UPDATE orders SET status = 'open' WHERE id = 5;
UPDATE orders SET status = 'paid' WHERE id = 5;

SELECT results_eq($$SELECT * FROM interlock.next_states('orders', 1)$$,
    $$VALUES ('open', false, 'order 1 has no assignee'), ('paid', false, 'guard is_paid(orders,orders) does not allow it'), ('void', true, NULL), ('new', true, NULL)$$,
    'each next state, in the order of the declaration, with what the guard says');
SELECT results_eq($$SELECT * FROM interlock.next_states('orders', 2)$$,
    $$VALUES ('open', true, NULL), ('paid', true, NULL), ('void', true, NULL), ('new', true, NULL)$$, 'a guard sees the old and the new row');
SELECT results_eq($$SELECT state, allowed, reason FROM interlock.next_states('orders', '3') WHERE state IN ('void', 'new')$$,
    $$VALUES ('void', false, 'no total of -1'), ('new', true, NULL)$$, 'a guard that raises refuses, and the others are asked');
SELECT is_empty('SELECT FROM calls', 'what a guard writes is undone');
SELECT results_eq($$SELECT * FROM interlock.next_states('orders', 4)$$, $$VALUES ('paid', true, NULL::text)$$, 'a transition without a guard');
SELECT is_empty($$SELECT * FROM interlock.next_states('orders', 5)$$, 'a last state has none');
SELECT results_eq($$SELECT * FROM interlock.next_states('orders', 6)$$, $$VALUES ('new', true, NULL::text), ('open', true, NULL)$$,
    'a row without a state may go to an initial one');
SELECT throws_ok($$SELECT * FROM interlock.next_states('orders', 99)$$, 'P0002', NULL, 'no such row');
SELECT throws_ok($$SELECT * FROM interlock.next_states('calls', 1)$$, '55000', NULL, 'no transitions');
SELECT throws_ok($$SELECT * FROM interlock.next_states('orders', 1, 'total')$$, '55000', NULL, 'no transitions of that column');
SELECT throws_ok($$SELECT * FROM interlock.next_states('orders', NULL::int)$$, '22004', NULL, 'no key');

SELECT results_eq($$SELECT key, state, allowed FROM interlock.next_states_many('orders', '{4,1,99,5,4}'::int[])$$,
    $$SELECT jsonb_build_object('id', v.id), v.state, v.allowed
        FROM (VALUES (1, 'open', false), (1, 'paid', false), (1, 'void', true), (1, 'new', true), (4, 'paid', true)) v (id, state, allowed)$$,
    'many: in the order of the keys, each once; rows that are not there have no line');
SELECT results_eq($$SELECT key, state FROM interlock.next_states_many('orders', '[4]')$$, $$VALUES ('{"id": 4}'::jsonb, 'paid')$$, 'many: a JSON array');
SELECT is_empty($$SELECT FROM interlock.next_states_many('orders', '{}'::int[])$$, 'many: no keys');

-- Guards that raise an error for many rows keep nothing of it
CREATE TABLE owed (id int PRIMARY KEY, status text DEFAULT 'new', total int DEFAULT 0);
CREATE FUNCTION divides(old owed, new owed) RETURNS boolean LANGUAGE sql AS 'SELECT 1 / (old).total > 0';
SELECT interlock.define_transitions('owed', 'status', '{"new": ["paid"]}', guards => '{"new": {"paid": "divides"}}');
INSERT INTO owed SELECT generate_series(1, 2000);
SELECT results_eq($$SELECT (SELECT count(*) FROM interlock.next_states_many('owed', ARRAY(SELECT id FROM owed)) WHERE reason = 'division by zero'),
    (SELECT sum(total_bytes) < 30000000 FROM pg_backend_memory_contexts)$$, $$VALUES (2000::bigint, true)$$, 'memory');

-- what it says is what happens
CREATE FUNCTION passes(id int, state text) RETURNS boolean LANGUAGE plpgsql AS $$BEGIN
    UPDATE orders o SET status = passes.state WHERE o.id = passes.id;
    RAISE 'undo it' USING ERRCODE = 'ZZ000';
EXCEPTION WHEN SQLSTATE 'ZZ000' THEN RETURN true; WHEN others THEN RETURN false; END$$;
SELECT is_empty(
    $$SELECT * FROM interlock.next_states_many('orders', '{1,2,3,4,5}'::int[]) n WHERE n.allowed IS DISTINCT FROM passes((n.key ->> 'id')::int, n.state)$$,
    'what it says is what an UPDATE meets');
SELECT is((interlock.try_transition('orders', 1, 'new', 'open')).outcome, 'not_allowed', 'a refused state is refused');
SELECT is((interlock.try_transition('orders', 1, 'new', 'void')).outcome, 'transitioned', 'an allowed state is reached');

-- other types, several columns, partitions
CREATE TYPE mood AS ENUM ('calm', 'loud');
CREATE TABLE parts (id int, r int, state mood, step int DEFAULT 1, PRIMARY KEY (id, r)) PARTITION BY LIST (r);
CREATE TABLE parts_1 PARTITION OF parts FOR VALUES IN (1);
CREATE FUNCTION part_guard(old parts, new parts) RETURNS text LANGUAGE sql AS $$SELECT (old).state::text || ' ' || (new).state::text$$;
SELECT interlock.define_transitions('parts', 'state', '{"calm": ["loud"]}', guards => '{"calm": {"loud": "part_guard"}}'),
    interlock.define_transitions('parts', 'step', '{"1": ["2"]}');
INSERT INTO parts VALUES (1, 1, 'calm');
SELECT throws_ok($$SELECT * FROM interlock.next_states('parts', '{"id": 1, "r": 1}')$$, '22023', NULL, 'two columns of states');
SELECT results_eq($$SELECT * FROM interlock.next_states('parts', '{"id": 1, "r": 1}', 'state')$$, $$VALUES ('loud', false, 'calm loud')$$, 'an enum, in partitions');
SELECT results_eq($$SELECT * FROM interlock.next_states('parts_1', '{"id": 1, "r": 1}', 'state')$$, $$VALUES ('loud', false, 'calm loud')$$, 'the partition itself');
SELECT results_eq($$SELECT * FROM interlock.next_states('parts', '{"id": 1, "r": 1}', 'step')$$, $$VALUES ('2', true, NULL::text)$$, 'an integer');

-- privileges
CREATE ROLE interlock_clerk;
GRANT SELECT ON orders TO interlock_clerk;
CREATE FUNCTION secret(old orders, new orders) RETURNS boolean LANGUAGE sql AS 'SELECT true';
SET ROLE interlock_clerk;
SELECT results_eq($$SELECT * FROM interlock.next_states('orders', 4)$$,
    $$VALUES ('paid', false, 'permission denied to update column "status"')$$, 'a reader who may not update is told so');
RESET ROLE;
REVOKE SELECT ON orders FROM interlock_clerk;
GRANT SELECT (id, status), UPDATE (status) ON orders TO interlock_clerk;
SET ROLE interlock_clerk;
SELECT throws_ok($$SELECT * FROM interlock.next_states('orders', 4)$$, '42501', NULL, 'guards are asked with a row that the caller may see');
RESET ROLE;
GRANT SELECT ON orders TO interlock_clerk;
REVOKE EXECUTE ON FUNCTION raises(orders, orders) FROM PUBLIC;
SET ROLE interlock_clerk;
SELECT results_eq($$SELECT state, reason FROM interlock.next_states('orders', 2) WHERE NOT allowed$$,
    $$VALUES ('void', 'permission denied for function raises')$$, 'a guard that the caller may not execute refuses');
RESET ROLE;
ALTER TABLE orders ENABLE ROW LEVEL SECURITY;
SET ROLE interlock_clerk;
SELECT throws_ok($$SELECT * FROM interlock.next_states('orders', 2)$$, 'P0002', NULL, 'row security hides the row');
SELECT is_empty($$SELECT FROM interlock.next_states_many('orders', '{2}'::int[])$$, 'many: likewise');
RESET ROLE;
SELECT * FROM finish();
ROLLBACK;
