-- reserve_many, the confirmation of a part of a reservation, and escrow_check: bad input, privileges, all or none. Several sessions are in
-- test/specs/iso_cart.spec, crashes in test/t/escrow/cart.pl.
BEGIN;
SELECT plan(111);

CREATE TABLE item (id int PRIMARY KEY, stock int NOT NULL, price numeric(8,2) NOT NULL DEFAULT 1, note text);
INSERT INTO item VALUES (1, 10), (2, 0), (3, 5), (4, 5);
CREATE TABLE seat (area text, gate int, free bigint NOT NULL, PRIMARY KEY (area, gate));
INSERT INTO seat VALUES ('A', 1, 100), ('B', 2, 3);
CREATE TABLE plain (id int PRIMARY KEY, stock int NOT NULL);
SELECT interlock.enable_escrow('item', 'stock', maximum => 20), interlock.enable_escrow('item', 'price', 0, 1000.5), interlock.enable_escrow('seat', 'free');
CREATE TABLE kept (n text PRIMARY KEY, outcome text, token bigint, expires_at timestamptz, short jsonb);
CREATE FUNCTION keep(n text, items jsonb, ttl interval = '1 h', holder text = NULL) RETURNS text LANGUAGE sql AS
$$INSERT INTO kept SELECT n, r.* FROM interlock.reserve_many(items, ttl, holder) r RETURNING outcome$$;
CREATE FUNCTION token(name text) RETURNS bigint LANGUAGE sql AS $$SELECT token FROM kept WHERE n = name$$;
CREATE FUNCTION values_of_all() RETURNS text LANGUAGE sql AS $$
SELECT string_agg(interlock.escrow_value('item', id, 'stock')::text, ' ' ORDER BY id) || ' / ' ||
       (SELECT string_agg(interlock.escrow_value('seat', jsonb_build_object('area', area, 'gate', gate), 'free')::text, ' ' ORDER BY area) FROM seat) FROM item $$;
CREATE FUNCTION wrong() RETURNS bigint LANGUAGE sql AS $$SELECT count(*) FROM interlock.escrow_check() WHERE difference <> 0 OR stored IS NULL$$;
CREATE FUNCTION item_of(rel text, key jsonb, column_name text, amount numeric) RETURNS jsonb LANGUAGE sql AS
$$SELECT jsonb_build_object('rel', rel, 'key', key, 'column', column_name, 'amount', amount)$$;

-- bad input
SELECT throws_ok(format('SELECT interlock.reserve_many(%s)', a), s, m, m) FROM (VALUES
    ($$NULL, '1 min'$$, '22004', 'argument "items" must not be null'),
    ($$'[]', '1 min'$$, '22023', 'argument "items" must not be empty'),
    ($$'{}', '1 min'$$, '22023', 'argument "items" must be an array'),
    ($$'7', '1 min'$$, '22023', 'argument "items" must be an array'),
    ($$'null', '1 min'$$, '22023', 'argument "items" must be an array'),
    ($$'[null]', '1 min'$$, '22004', 'argument "items" must not contain nulls'),
    ($$'[7]', '1 min'$$, '22023', 'argument "items[1]" must be an object'),
    ($$'[[]]', '1 min'$$, '22023', 'argument "items[1]" must be an object'),
    ($$'[{}]', '1 min'$$, '22023', 'argument "items[1].key" must be given'),
    ($$'[{"rel": "item", "key": 1, "column": "stock"}]', '1 min'$$, '22023', 'argument "items[1].amount" must be given'),
    ($$'[{"rel": "item", "key": 1, "amount": 1}]', '1 min'$$, '22023', 'argument "items[1].column" must be given'),
    ($$'[{"key": 1, "column": "stock", "amount": 1}]', '1 min'$$, '22023', 'argument "items[1].rel" must be given'),
    ($$'[{"rel": "item", "key": 1, "column": "stock", "amount": 1, "ttl": 5}]', '1 min'$$, '22023', 'argument "items[1].ttl" is not a member of an item'),
    ($$'[{"rel": null, "key": 1, "column": "stock", "amount": 1}]', '1 min'$$, '22004', 'argument "items[1].rel" must not be null'),
    ($$'[{"rel": "item", "key": null, "column": "stock", "amount": 1}]', '1 min'$$, '22004', 'argument "items[1].key" must not be null'),
    ($$'[{"rel": "item", "key": 1, "column": null, "amount": 1}]', '1 min'$$, '22004', 'argument "items[1].column" must not be null'),
    ($$'[{"rel": "item", "key": 1, "column": "stock", "amount": null}]', '1 min'$$, '22004', 'argument "items[1].amount" must not be null'),
    ($$'[{"rel": 7, "key": 1, "column": "stock", "amount": 1}]', '1 min'$$, '22023', 'argument "items[1].rel" must be a string'),
    ($$'[{"rel": "item", "key": 1, "column": ["stock"], "amount": 1}]', '1 min'$$, '22023', 'argument "items[1].column" must be a string'),
    ($$'[{"rel": "item", "key": 1, "column": "stock", "amount": "1"}]', '1 min'$$, '22023', 'argument "items[1].amount" must be a number'),
    ($$'[{"rel": "item", "key": 3, "column": "stock", "amount": 1}, {"rel": "item", "key": 1, "column": "stock", "amount": 0}]', '1 min'$$, '22023', 'argument "items[2].amount" must be above zero'),
    ($$'[{"rel": "item", "key": 1, "column": "stock", "amount": -1}]', '1 min'$$, '22023', 'argument "items[1].amount" must be above zero'),
    ($$'[{"rel": "item", "key": 1, "column": "stock", "amount": 0.5}]', '1 min'$$, '22023', 'argument "items[1].amount" must not have more than 0 digits behind the point'),
    ($$'[{"rel": "item", "key": 1, "column": "stock", "amount": 1e30}]', '1 min'$$, '22023', 'argument "items[1].amount" is too large'),
    ($$jsonb_build_array(item_of('item', '1', 'stock', 9e17), item_of('item', '1', 'stock', 9e17)), '1 min'$$, '22023', 'argument "items" must not have more than 10^18 steps of one counter'),
    ($$'[{"rel": "nowhere", "key": 1, "column": "stock", "amount": 1}]', '1 min'$$, '42P01', 'relation "nowhere" does not exist'),
    ($$'[{"rel": "item", "key": 1, "column": "nowhere", "amount": 1}]', '1 min'$$, '42703', NULL),
    ($$'[{"rel": "item", "key": 1, "column": "note", "amount": 1}]', '1 min'$$, '55000', NULL),
    ($$'[{"rel": "plain", "key": 1, "column": "stock", "amount": 1}]', '1 min'$$, '55000', NULL),
    ($$'[{"rel": "pg_class", "key": 1, "column": "relname", "amount": 1}]', '1 min'$$, '42809', NULL),
    ($$'[{"rel": "item", "key": [1], "column": "stock", "amount": 1}]', '1 min'$$, '22023', NULL),
    ($$'[{"rel": "seat", "key": 1, "column": "free", "amount": 1}]', '1 min'$$, '22023', NULL),
    ($$'[{"rel": "item", "key": 1, "column": "stock", "amount": 1}]', NULL$$, '22004', 'argument "ttl" must not be null'),
    ($$'[{"rel": "item", "key": 1, "column": "stock", "amount": 1}]', '0'$$, '22023', NULL),
    ($$'[{"rel": "item", "key": 1, "column": "stock", "amount": 1}]', '1 min', ''$$, '22023', 'argument "holder" must not be empty'),
    ($$'[{"rel": "item", "key": 1, "column": "stock", "amount": 1}]', '1 min', 'a', '-1 s'$$, '22023', NULL)) v (a, s, m);
SELECT throws_ok($$SELECT interlock.reserve_many((SELECT jsonb_agg(item_of('item', '1', 'stock', 1)) FROM generate_series(1, 1001)), '1 min')$$, '22023',
    'argument "items" must not have more than 1000 elements');
SELECT is(values_of_all(), '10 0 5 5 / 100 3', 'no call has taken anything');
SELECT is_empty($$SELECT FROM interlock.reservations$$, 'or reserved it');

-- all
SELECT is(keep('a', '[{"rel": "seat", "key": {"gate": 1, "area": "A"}, "column": "free", "amount": 2}, {"rel": "item", "key": 3, "column": "stock", "amount": 4},
    {"rel": "item", "key": "1", "column": "stock", "amount": 3}]', '1 h', 'cart 7'), 'reserved', 'three counters of two tables');
SELECT results_eq($$SELECT short, expires_at > clock_timestamp() + '50 min' FROM kept WHERE n = 'a'$$, $$VALUES (NULL::jsonb, true)$$, 'nothing is short');
SELECT is(values_of_all(), '7 0 1 5 / 98 3', 'each is taken');
SELECT results_eq($$SELECT rel, key, amount, holder, token = token('a') FROM interlock.reservations ORDER BY rel::text, key$$,
    $$VALUES ('item'::regclass, '{1}'::text COLLATE "C", 3::numeric, 'cart 7'::text, true), ('item', '{3}', 4, 'cart 7', true), ('seat', '{A,1}', 2, 'cart 7', true)$$, 'under one token');
SELECT is((SELECT count(*) FROM interlock.held WHERE kind = 'reservation' AND holder = 'cart 7'), 3::bigint, 'view held shows them');
SELECT is(wrong(), 0::bigint, 'the books agree');
SELECT is(keep('twice', jsonb_build_array(item_of('item', '1', 'stock', 2), item_of('public.item', '{"id": 1}', 'stock', 3))), 'reserved', 'one counter twice');
SELECT is((SELECT array_agg(amount) FROM interlock.reservations WHERE token = token('twice')), '{5}'::numeric[], 'is one reservation of the sum');
SELECT is(interlock.cancel_reservation(token('twice')), true, 'and is given back');

-- none
SELECT is(keep('short', jsonb_build_array(item_of('item', '1', 'stock', 1), item_of('item', '3', 'stock', 3), item_of('item', '2', 'stock', 1), item_of('seat', '{"area": "B", "gate": 2}', 'free', 3))),
    'insufficient', 'one cannot be had');
SELECT is(short, '[{"rel": "item", "key": 2, "column": "stock", "amount": 1, "outcome": "insufficient", "remaining": 0},
    {"rel": "item", "key": 3, "column": "stock", "amount": 3, "outcome": "pending", "remaining": 1}]', 'the answer has all that are short') FROM kept WHERE n = 'short';
SELECT results_eq($$SELECT token, expires_at FROM kept WHERE n = 'short'$$, $$VALUES (NULL::bigint, NULL::timestamptz)$$, 'and no token');
SELECT is(values_of_all(), '7 0 1 5 / 98 3', 'nothing is taken');
SELECT is((SELECT count(*) FROM interlock.reservations), 3::bigint, 'or reserved');
SELECT is(keep('pending', jsonb_build_array(item_of('item', '4', 'stock', 5), item_of('item', '3', 'stock', 2))), 'pending', 'one is reserved by others');
SELECT is(keep('nowhere', jsonb_build_array(item_of('item', '2', 'stock', 5), item_of('item', '99', 'stock', 2))), 'not_found', 'one is not there');
SELECT is((SELECT short->1 FROM kept WHERE n = 'nowhere'), '{"rel": "item", "key": 99, "column": "stock", "amount": 2, "outcome": "not_found", "remaining": null}', 'as the answer says');
SELECT is(keep('sum', jsonb_build_array(item_of('item', '4', 'stock', 3), item_of('item', '4', 'stock', 3))), 'insufficient', 'the sum of two items is too much');
SELECT is(values_of_all(), '7 0 1 5 / 98 3', 'nothing is taken by any of them');

-- confirming in part
SELECT throws_ok($$SELECT interlock.confirm_reservation(token('a'), 1, '[]')$$, '22023', 'argument "items" must be null if "amount" is given');
SELECT throws_ok($$SELECT interlock.confirm_reservation(token('a'), 1)$$, '22023', 'argument "amount" must be null for a reservation of several counters');
SELECT throws_ok($$SELECT interlock.confirm_reservation(token('a'), items => '[]')$$, '22023', 'argument "items" must not be empty');
SELECT throws_ok($$SELECT interlock.confirm_reservation(token('a'), items => jsonb_build_array(item_of('item', '1', 'stock', 1), item_of('item', '3', 'stock', 5)))$$, '22023',
    'argument "items[2].amount" must not be more than was reserved');
SELECT throws_ok($$SELECT interlock.confirm_reservation(token('a'), items => jsonb_build_array(item_of('item', '1', 'stock', 2), item_of('item', '1', 'stock', 2)))$$, '22023',
    'argument "items[2].amount" must not be more than was reserved', 'together, too');
SELECT throws_ok($$SELECT interlock.confirm_reservation(token('a'), items => jsonb_build_array(item_of('item', '4', 'stock', 1)))$$, '22023', 'argument "items[1]" must be in the reservation');
SELECT throws_ok($$SELECT interlock.confirm_reservation(token('a'), items => jsonb_build_array(item_of('item', '1', 'price', 1)))$$, '22023', 'argument "items[1]" must be in the reservation', 'nor of another column');
SELECT throws_ok($$SELECT interlock.confirm_reservation(token('a'), items => jsonb_build_array(item_of('plain', '1', 'stock', 1)))$$, '22023', 'argument "items[1]" must be in the reservation', 'nor of another table');
SELECT is((SELECT count(*) FROM interlock.reservations WHERE token = token('a')), 3::bigint, 'all of it is reserved as before');
SELECT lives_ok($$SELECT interlock.confirm_reservation(token('a'), items => jsonb_build_array(item_of('item', '{"id": 1}', 'stock', 1), item_of('item', '3', 'stock', 4), item_of('item', '1', 'stock', 1)))$$, 'a part is sold');
SELECT is(values_of_all(), '8 0 1 5 / 100 3', 'the rest is given back');
SELECT throws_ok($$SELECT interlock.confirm_reservation(token('a'))$$, 'IL008', NULL, 'once');
SELECT is(wrong(), 0::bigint, 'the books agree');
INSERT INTO kept SELECT 'one', r.* FROM interlock.reserve('item', 4, 'stock', 4, '1 h') r;
SELECT throws_ok($$SELECT interlock.confirm_reservation(token('one'), 5)$$, '22023', 'argument "amount" must not be more than was reserved');
SELECT throws_ok($$SELECT interlock.confirm_reservation(token('one'), 0)$$, '22023', 'argument "amount" must be above zero');
SELECT throws_ok($$SELECT interlock.confirm_reservation(token('one'), 'NaN')$$, '22023', 'argument "amount" must be a finite number');
SELECT throws_ok($$SELECT interlock.confirm_reservation(token('one'), 0.5)$$, '22023', 'argument "amount" must not have more than 0 digits behind the point');
SELECT lives_ok($$SELECT interlock.confirm_reservation(token('one'), 1)$$, 'one of four');
SELECT is(interlock.escrow_value('item', 4, 'stock'), 4::numeric, 'is sold, and three given back');
SELECT throws_ok($$SELECT interlock.confirm_reservation(NULL, 1)$$, '22004', 'argument "token" must not be null');

-- the whole cart ends; what this transaction has given back it cannot take again, but for set_escrow
SELECT interlock.set_escrow('item', 1, 'stock', 8), interlock.set_escrow('item', 4, 'stock', 4);
SELECT is(keep('b', jsonb_build_array(item_of('item', '1', 'stock', 8), item_of('seat', '{"area": "B", "gate": 2}', 'free', 1))), 'reserved', 'a cart');
SELECT is(interlock.extend_reservation(token('b'), '2 h') > clock_timestamp() + '90 min', true, 'is extended');
SELECT is((SELECT count(DISTINCT expires_at) FROM interlock.reservations WHERE token = token('b')), 1::bigint, 'with all of its rows');
SELECT is(interlock.cancel_reservation(token('b')), true, 'is cancelled');
SELECT is(values_of_all(), '8 0 1 4 / 100 3', 'with all of its rows');
SELECT interlock.set_escrow('item', 1, 'stock', 8);
SELECT is(keep('c', jsonb_build_array(item_of('item', '1', 'stock', 8), item_of('seat', '{"area": "B", "gate": 2}', 'free', 1))), 'reserved', 'a cart');
SELECT lives_ok($$SELECT interlock.confirm_reservation(token('c'))$$, 'is sold');
SELECT is(values_of_all(), '0 0 1 4 / 100 2', 'with all of its rows');
SELECT is(keep('late', jsonb_build_array(item_of('item', '4', 'stock', 2), item_of('seat', '{"area": "B", "gate": 2}', 'free', 1)), '1 us'), 'reserved', 'one that expires at once');
SELECT throws_ok($$SELECT interlock.confirm_reservation(token('late'))$$, 'IL008', NULL, 'is not sold');
SELECT is(interlock.fold_escrow('seat') > 0, true, 'one of its counters is swept');
SELECT is(interlock.extend_reservation(token('late'), '1 h'), NULL, 'the other one is not extended');
UPDATE interlock_internal.escrow_reservation SET expires_at = clock_timestamp() + '1 h' WHERE token = token('late'); -- as if the clock had been set back
SELECT throws_ok($$SELECT interlock.confirm_reservation(token('late'))$$, 'IL008', NULL, 'or sold without the first, whatever the clock says');
SELECT is(interlock.cancel_reservation(token('late')), true, 'what is left of it is given back');
SELECT is(values_of_all(), '0 0 1 4 / 100 2', 'exactly');

-- 1,000 items
INSERT INTO item SELECT g, 1 FROM generate_series(1001, 2000) g;
SELECT is(keep('many', (SELECT jsonb_agg(item_of('item', to_jsonb(g), 'stock', 1) ORDER BY random()) FROM generate_series(1001, 2000) g)), 'reserved', '1,000 counters');
SELECT is((SELECT count(*) FROM interlock.reservations WHERE token = token('many')), 1000::bigint, 'in one cart');
SELECT is(keep('many 2', (SELECT jsonb_agg(item_of('item', to_jsonb(g), 'stock', 1) ORDER BY random()) FROM generate_series(1001, 2000) g)), 'pending', 'once');
SELECT is((SELECT jsonb_array_length(short) FROM kept WHERE n = 'many 2'), 1000, 'as each item says');
SELECT is(interlock.cancel_reservation(token('many')), true, 'and given back');
SELECT is(wrong(), 0::bigint, 'the books agree');

-- a token of another role, and what a role needs
CREATE ROLE cart_shop; CREATE ROLE cart_other; CREATE ROLE cart_owner;
GRANT SELECT (id, stock), UPDATE (stock) ON item TO cart_shop, cart_other;
GRANT SELECT, INSERT ON kept TO cart_shop, cart_other, cart_owner;
ALTER TABLE item OWNER TO cart_owner;
SELECT interlock.set_escrow('item', 3, 'stock', 5), interlock.set_escrow('item', 4, 'stock', 5);
SET SESSION AUTHORIZATION cart_shop;
SELECT throws_ok($$SELECT interlock.reserve_many(jsonb_build_array(item_of('item', '3', 'stock', 1), item_of('seat', '{"area": "A", "gate": 1}', 'free', 1)), '1 min')$$, '42501', NULL, 'rights on all tables');
SELECT throws_ok($$SELECT interlock.reserve_many(jsonb_build_array(item_of('item', '3', 'price', 1)), '1 min')$$, '42501', NULL, 'and columns');
SELECT is(keep('mine', jsonb_build_array(item_of('item', '3', 'stock', 1), item_of('item', '4', 'stock', 2))), 'reserved', 'those of the columns are enough');
RESET SESSION AUTHORIZATION;
GRANT SELECT, UPDATE ON seat TO cart_shop;
SET SESSION AUTHORIZATION cart_shop;
SELECT is(keep('two tables', jsonb_build_array(item_of('item', '3', 'stock', 1), item_of('seat', '{"area": "A", "gate": 1}', 'free', 1))), 'reserved', 'of two owners');
SET SESSION AUTHORIZATION cart_other;
SELECT throws_ok($$SELECT interlock.confirm_reservation(token('mine'), items => jsonb_build_array(item_of('item', '3', 'stock', 1)))$$, 'IL008', NULL, 'another role does not confirm it');
SELECT is(interlock.cancel_reservation(token('mine')), false, 'or cancel it');
SELECT is(interlock.extend_reservation(token('mine'), '1 h'), NULL, 'or extend it');
SELECT results_eq($$SELECT DISTINCT rel FROM interlock.escrow_check()$$, $$VALUES ('item'::regclass)$$, 'and has the books of its tables alone');
SET SESSION AUTHORIZATION cart_owner;
SELECT is(interlock.cancel_reservation(token('mine')), true, 'the owner of its tables cancels it');
SELECT is(interlock.cancel_reservation(token('two tables')), false, 'but not one of the tables of others');
RESET SESSION AUTHORIZATION;
SELECT is_empty($$SELECT * FROM interlock.escrow_check('item') WHERE difference <> 0$$, 'the books agree');
-- what escrow_check finds
INSERT INTO interlock_internal.escrow_part SELECT id, -1, -1000, NULL FROM interlock_internal.escrow_counter WHERE rel::oid = 'seat'::regclass AND key = '{A,1}';
SELECT results_eq($$SELECT key::text COLLATE "C", difference < 0 FROM interlock.escrow_check('seat') WHERE difference <> 0$$, $$VALUES ('{A,1}'::text COLLATE "C", true)$$, 'a part too many is found');

SELECT * FROM finish();
ROLLBACK;
