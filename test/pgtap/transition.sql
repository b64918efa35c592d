-- What callers of transitions rely on.
BEGIN;
SELECT plan(13);

CREATE TABLE orders (id int PRIMARY KEY, status text NOT NULL DEFAULT 'pending', note text);
SELECT interlock.define_transitions('orders', 'status', '{"pending": ["paid", "cancelled"], "paid": ["shipped"]}', '{pending}');
INSERT INTO orders VALUES (1), (2);

SELECT lives_ok($$SELECT interlock.transition('orders', 1, 'pending', 'paid', '{"note": "n"}')$$, 'transition');
SELECT results_eq('SELECT status, note FROM orders WHERE id = 1', $$VALUES ('paid', 'n')$$, 'with other changes');
SELECT results_eq($$SELECT outcome, state FROM interlock.try_transition('orders', 1, 'paid', 'shipped')$$, $$VALUES ('transitioned', 'shipped')$$, 'transitioned');
SELECT results_eq($$SELECT outcome, state FROM interlock.try_transition('orders', 1, 'paid', 'shipped')$$, $$VALUES ('state_changed', 'shipped')$$, 'TRN-17: once more');
SELECT results_eq($$SELECT outcome, state FROM interlock.try_transition('orders', 1, 'shipped', 'paid')$$, $$VALUES ('not_allowed', 'shipped')$$, 'not_allowed');
SELECT results_eq($$SELECT outcome, state FROM interlock.try_transition('orders', '99', 'pending', 'paid')$$, $$VALUES ('not_found', NULL)$$, 'not_found');
SELECT throws_ok($$SELECT interlock.transition('orders', 1, 'shipped', 'paid')$$, 'IL002');
SELECT throws_ok($$UPDATE orders SET status = 'shipped' WHERE id = 2$$, 'IL002');
SELECT throws_ok($$INSERT INTO orders VALUES (3, 'paid')$$, 'IL002');
SELECT throws_ok($$SELECT interlock.transition('orders', 1, 'pending', 'paid')$$, 'IL003');
SELECT throws_ok($$SELECT interlock.transition('orders', 99, 'pending', 'paid')$$, 'P0002');
PREPARE untyped AS SELECT outcome, state FROM interlock.try_transition('orders', $1, $2, $3);
SELECT results_eq($$EXECUTE untyped('2', 'pending', 'paid')$$, $$VALUES ('transitioned', 'paid')$$, 'parameters without a type');
SELECT throws_matching($$UPDATE orders SET status = 'pending' WHERE id = 2$$, 'cannot go from "paid" to "pending"');

SELECT * FROM finish();
ROLLBACK;
