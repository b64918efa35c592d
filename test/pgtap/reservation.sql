-- Reservations of escrow counters: bad input, privileges, what they allow to be done to the row and its table. Several sessions, crashes,
-- the sweeper and dumps are in test/t/escrow/reservation*.pl.
BEGIN;
SELECT plan(88);

CREATE TABLE item (id int PRIMARY KEY, stock int NOT NULL, price numeric(8,2) NOT NULL DEFAULT 1, note text);
INSERT INTO item VALUES (1, 10), (2, 0), (3, 5), (4, 5);
SELECT throws_ok($$SELECT interlock.reserve('item', 1, 'stock', 1, '1 min')$$, '55000', 'column "stock" of table "item" has no escrow counters');
SELECT interlock.enable_escrow('item', 'stock', maximum => 20), interlock.enable_escrow('item', 'price', 0, 1000.5);
CREATE TABLE kept (n text PRIMARY KEY, outcome text, token bigint, expires_at timestamptz);
CREATE FUNCTION keep(n text, key int, amount numeric, ttl interval = '1 h', holder text = NULL) RETURNS text LANGUAGE sql AS
$$INSERT INTO kept SELECT n, r.* FROM interlock.reserve('item', key, 'stock', amount, ttl, holder) r RETURNING outcome$$;
CREATE FUNCTION token(name text) RETURNS bigint LANGUAGE sql AS $$SELECT token FROM kept WHERE n = name$$;
CREATE FUNCTION left_of(key int) RETURNS numeric LANGUAGE sql AS $$SELECT interlock.escrow_value('item', key, 'stock')$$;

-- bad input
SELECT throws_ok(format('SELECT interlock.reserve(%s)', a), s, m, m) FROM (VALUES
    ($$'item', 1, 'stock', 0, '1 min'$$, '22023', 'argument "amount" must be above zero'),
    ($$'item', 1, 'stock', -1, '1 min'$$, '22023', 'argument "amount" must be above zero'),
    ($$'item', 1, 'stock', 'NaN', '1 min'$$, '22023', 'argument "amount" must be a finite number'),
    ($$'item', 1, 'stock', 'Infinity', '1 min'$$, '22023', 'argument "amount" must be a finite number'),
    ($$'item', 1, 'stock', 0.5, '1 min'$$, '22023', 'argument "amount" must not have more than 0 digits behind the point'),
    ($$'item', 1, 'price', 0.001, '1 min'$$, '22023', 'argument "amount" must not have more than 2 digits behind the point'),
    ($$'item', 1, 'stock', 1e30, '1 min'$$, '22023', 'argument "amount" is too large'),
    ($$'item', 1, 'stock', NULL, '1 min'$$, '22004', 'argument "amount" must not be null'),
    ($$'item', 1, 'stock', 1, NULL$$, '22004', 'argument "ttl" must not be null'),
    ($$'item', 1, 'stock', 1, '0'$$, '22023', 'argument "ttl" must be a duration above zero and at most ten years'),
    ($$'item', 1, 'stock', 1, '-1 min'$$, '22023', 'argument "ttl" must be a duration above zero and at most ten years'),
    ($$'item', 1, 'stock', 1, '1 min', ''$$, '22023', 'argument "holder" must not be empty'),
    ($$'item', 1, 'stock', 1, '1 min', repeat('x', 256)$$, '22023', 'argument "holder" must not be longer than 255 bytes'),
    ($$'item', 1, 'stock', 1, '1 min', 'a', '-1 s'$$, '22023', 'argument "wait" must be a duration of zero to ten years'),
    ($$'item', NULL::int, 'stock', 1, '1 min'$$, '22004', 'argument "key" must not be null'),
    ($$'item', 1, NULL, 1, '1 min'$$, '22004', 'argument "column_name" must not be null'),
    ($$NULL, 1, 'stock', 1, '1 min'$$, '22004', 'argument "rel" must not be null'),
    ($$'item', 1, 'nowhere', 1, '1 min'$$, '42703', NULL),
    ($$'item', 1, 'note', 1, '1 min'$$, '55000', NULL),
    ($$'pg_class', 1, 'stock', 1, '1 min'$$, '42809', NULL)) v (a, s, m);
SELECT throws_ok($$SELECT interlock.reserve('item', 1, 'stock', 1, '20 years')$$, '22023', NULL, 'a ttl of more than ten years');
SELECT throws_ok($$SELECT interlock.confirm_reservation(NULL)$$, '22004', 'argument "token" must not be null');
SELECT throws_ok($$SELECT interlock.cancel_reservation(NULL)$$, '22004', 'argument "token" must not be null');
SELECT throws_ok($$SELECT interlock.extend_reservation(NULL, '1 min')$$, '22004', 'argument "token" must not be null');
SELECT throws_ok($$SELECT interlock.extend_reservation(1, NULL)$$, '22004', 'argument "ttl" must not be null');
SELECT throws_ok($$SELECT interlock.extend_reservation(1, '0')$$, '22023', 'argument "ttl" must be a duration above zero and at most ten years');
SELECT results_eq($$SELECT outcome, token, expires_at FROM interlock.reserve('item', 9, 'stock', 1, '1 min')$$,
    $$VALUES ('not_found', NULL::bigint, NULL::timestamptz)$$, 'no such row');
SELECT results_eq($$SELECT outcome, token, expires_at FROM interlock.reserve('item', 2, 'stock', 1, '1 min')$$,
    $$VALUES ('insufficient', NULL::bigint, NULL::timestamptz)$$, 'nothing left');

-- reserving
SELECT is(keep('a', 1, 3, '1 h', 'cart 7'), 'reserved', 'a reservation');
SELECT is(left_of(1), 7::numeric, 'takes');
SELECT results_eq($$SELECT rel, key, column_name, amount, holder, role, token, expires_at, expired FROM interlock.reservations$$,
    $$SELECT 'item'::regclass, '{1}'::text COLLATE "C", 'stock'::name, 3::numeric, 'cart 7'::text, current_user, token, expires_at, false FROM kept$$, 'is in the view');
SELECT ok(expires_at - clock_timestamp() BETWEEN '50 min' AND '1 h', 'until its time to live has passed') FROM kept;
SELECT is((SELECT outcome FROM interlock.try_adjust('item', 1, 'stock', -8)), 'pending', 'what would fit if it were cancelled is pending');
SELECT is((SELECT outcome FROM interlock.try_adjust('item', 1, 'stock', -11)), 'insufficient', 'what would not is insufficient');
SELECT is((SELECT outcome FROM interlock.try_adjust('item', 1, 'stock', 11)), 'pending', 'its room below the maximum is kept');
SELECT is((SELECT outcome FROM interlock.try_adjust('item', 1, 'stock', 10)), 'adjusted', 'the rest can be filled');
SELECT interlock.adjust('item', 1, 'stock', -10);
SELECT is(keep('b', 1, 2), 'reserved', 'another one');
SELECT isnt(token('a'), token('b'), 'has another token');
SELECT is(interlock.extend_reservation(token('b'), '2 h') > clock_timestamp() + '90 min', true, 'extended');
SELECT lives_ok($$SELECT interlock.confirm_reservation(token('b'))$$, 'confirmed');
SELECT is(left_of(1), 5::numeric, 'is sold');
SELECT throws_ok($$SELECT interlock.confirm_reservation(token('b'))$$, 'IL008', format('reservation %s has expired or ended', token('b')), 'once');
SELECT is(interlock.cancel_reservation(token('b')), false, 'and is not given back');
SELECT is(interlock.extend_reservation(token('b'), '1 h'), NULL, 'or extended');
SELECT is(interlock.cancel_reservation(token('a')), true, 'cancelled');
SELECT is(left_of(1), 8::numeric, 'is given back');
SELECT is(interlock.cancel_reservation(token('a')), false, 'once');
SELECT throws_ok($$SELECT interlock.confirm_reservation(token('a'))$$, 'IL008', NULL, 'and is not sold');
SELECT throws_ok($$SELECT interlock.confirm_reservation(-5)$$, 'IL008', 'reservation -5 has expired or ended', 'a token that never was');
SELECT is(interlock.cancel_reservation(-5), false, 'of any function');
SELECT is_empty($$SELECT FROM interlock.reservations$$, 'nothing is reserved');
SELECT results_eq($$SELECT undecided, reserved FROM interlock.escrow WHERE key = '{1}' AND column_name = 'stock'$$,
    $$VALUES (NULL::numeric, 0::numeric)$$, 'as the view of counters says');
SELECT interlock.fold_escrow('item');
SELECT is((SELECT stock FROM item WHERE id = 1), 8, 'the row has it all after a fold');
SELECT is((SELECT outcome FROM interlock.reserve('item', '{"id": 1}'::jsonb, 'price', 0.25, '1 min', wait => '1 s')), 'reserved', 'numeric, and a key as jsonb');
SELECT is((SELECT outcome FROM interlock.reserve('item', '1', 'price', '0.25', '1 min', 'a', '0')), 'reserved', 'untyped');
SELECT is((SELECT sum(amount) FROM interlock.reservations WHERE column_name = 'price'), 0.50, 'with its digits');

-- expiry
SELECT is(keep('late', 1, 8, '1 us'), 'reserved', 'one that expires at once');
SELECT is(expired, true, 'as the view says') FROM interlock.reservations WHERE token = token('late');
SELECT throws_ok($$SELECT interlock.confirm_reservation(token('late'))$$, 'IL008', NULL, 'is not sold, though it was not swept');
SELECT is(interlock.extend_reservation(token('late'), '1 h'), NULL, 'or extended');
SELECT is(interlock.cancel_reservation(token('late')), false, 'cancelling it is too late');
SELECT is(left_of(1), 8::numeric, 'and gives it back');
SELECT interlock.fold_escrow('item');
SELECT is(keep('late 2', 1, 8, '1 us'), 'reserved', 'another one');
SELECT is(interlock.fold_escrow('item', '1') > 0, true, 'fold_escrow');
SELECT is((SELECT stock FROM item WHERE id = 1), 8, 'gives it back, too');
SELECT is(interlock.cancel_reservation(token('late 2')), false, 'it is gone');

-- the row and its table
SELECT is(keep('c', 3, 2), 'reserved', 'a reservation');
SELECT is(keep('d', 3, 1, '1 us'), 'reserved', 'and one that has expired');
SELECT throws_ok($$DELETE FROM item WHERE id = 3$$, '55000', 'column "stock" of table "item" has 1 reservation', 'keeps the row');
SELECT throws_ok($$UPDATE item SET id = 33 WHERE id = 3$$, '55000', 'column "stock" of table "item" has 1 reservation', 'its key');
SELECT throws_ok($$TRUNCATE item$$, '55000', 'column "stock" of table "item" has 1 reservation', 'its table');
SELECT throws_ok($$SELECT interlock.disable_escrow('item', 'stock')$$, '55000', 'column "stock" of table "item" has 1 reservation', 'and its counters');
SELECT throws_ok($$SELECT interlock.set_escrow('item', 3, 'stock', 19)$$, '22023', 'argument "value" leaves no room for what is reserved');
SELECT lives_ok($$SELECT interlock.set_escrow('item', 3, 'stock', 18)$$, 'set_escrow sets what is not reserved');
SELECT is(left_of(3), 18::numeric, 'and ends what has expired');
SELECT throws_ok($$SELECT interlock.enable_escrow('item', 'stock', maximum => 19)$$, '55000',
    'the maximum for column "stock" of table "item" is too small for its reservations');
SELECT lives_ok($$SELECT interlock.enable_escrow('item', 'stock', maximum => 30)$$, 'reservations last over new limits');
SELECT is(interlock.cancel_reservation(token('c')), true, 'and are given back');
SELECT is(left_of(3), 20::numeric, 'exactly');
SELECT is(keep('e', 4, 5, '1 us'), 'reserved', 'one that has expired');
SELECT lives_ok($$UPDATE item SET id = 44 WHERE id = 4$$, 'does not keep the key');
SELECT is((SELECT stock FROM item WHERE id = 44), 5, 'and goes with the row');
SELECT is(keep('f', 44, 2), 'reserved', 'a reservation that is held');
SELECT is(interlock.cancel_reservation(token('f')), true, 'and given back');
SELECT is(keep('g', 44, 3, '1 us'), 'reserved', 'one that has expired');
SELECT lives_ok($$SELECT interlock.disable_escrow('item', 'stock')$$, 'does not keep the counters');
SELECT is((SELECT stock FROM item WHERE id = 44), 5, 'and is given back to the row');

SELECT * FROM finish();
ROLLBACK;
