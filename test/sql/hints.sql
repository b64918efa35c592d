-- Calls as the reader of an article types them: each ends in a result, or in an error whose hint leads to the call that works.
-- Names, parameters and literals of other types than a function takes are the server's errors (42883, 22P02); they are not here.
\pset tuples_only on
SET client_min_messages = warning;
CREATE SCHEMA hints;
SET search_path = hints;
CREATE FUNCTION says(statement text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    code text; message text; hint text; result text;
BEGIN
    EXECUTE format('SELECT string_agg(x::text, E''\n'') FROM (%s) x', statement) INTO result;
    RETURN coalesce(result, '(no row)');
EXCEPTION WHEN OTHERS THEN
    GET STACKED DIAGNOSTICS code = RETURNED_SQLSTATE, message = MESSAGE_TEXT, hint = PG_EXCEPTION_HINT;
    RETURN concat_ws(E'\n', code || ': ' || message, 'HINT: ' || nullif(hint, ''));
END $$;

-- VER-4: a version column of SQL Server or Npgsql, and names as they are quoted in SQL
CREATE TABLE "ShowSeats" ("Id" int PRIMARY KEY, "ShowId" int NOT NULL, "SeatId" int NOT NULL, "IsReserved" boolean NOT NULL DEFAULT false,
    "RowVer" bytea, "At" timestamp, UNIQUE ("ShowId", "SeatId"));
INSERT INTO "ShowSeats" VALUES (1, 10, 12), (15, 10, 13);
SELECT says($$SELECT interlock.enable_versioning('"ShowSeats"', 'RowVer')$$);
SELECT says($$SELECT interlock.enable_versioning('"ShowSeats"', 'xmin')$$);
SELECT says($$SELECT interlock.enable_versioning('"ShowSeats"', '"At"')$$);
SELECT says($$SELECT interlock.enable_versioning('"ShowSeats"', 'Id')$$);
SELECT says($$SELECT interlock.versioned_update('"ShowSeats"', 15, 1, '{"IsReserved": true}')$$);
-- as the first hint says
SELECT says($$SELECT interlock.enable_versioning('hints."ShowSeats"', 'row_version')$$);
SELECT says($$SELECT interlock.enable_versioning('"ShowSeats"', 'RowVer')$$);

-- VER-4: what is expected
SELECT says($$SELECT interlock.versioned_update('"ShowSeats"', 15, NULL, '{"IsReserved": true}')$$);
SELECT says($$SELECT interlock.versioned_update('"ShowSeats"', 15, '\x00000000000007d1', '{"IsReserved": true}')$$);
SELECT says($$SELECT interlock.versioned_update('"ShowSeats"', 15, now(), '{"IsReserved": true}')$$);
SELECT says($$SELECT interlock.versioned_update('"ShowSeats"', 15, 1, '{"IsReserved": true}')$$);
CREATE TABLE orders (id int PRIMARY KEY, amount numeric, status int NOT NULL DEFAULT 0, lock_by text, lock_time timestamptz);
SELECT interlock.enable_versioning('orders');
CREATE TABLE sys_config (id int PRIMARY KEY, config_key text NOT NULL UNIQUE, value text, updated_time timestamp);
INSERT INTO sys_config VALUES (1, 'site', 'a');
SELECT interlock.enable_versioning('sys_config', 'updated_time');
SELECT says($$SELECT interlock.versioned_update('sys_config', 1, NULL, '{"value": "b"}')$$);
SELECT says($$SELECT interlock.versioned_update('sys_config', 1, '1', '{"value": "b"}')$$);
SELECT says($$SELECT interlock.versioned_update('sys_config', 1, 1, '{"value": "b"}')$$);
SELECT says($$SELECT interlock.versioned_update('sys_config', 1, '-infinity', '{"value": "b"}') > '2020-01-01'$$);

-- VER-2: keys
SELECT says($$SELECT interlock.versioned_update('"ShowSeats"', ARRAY[10, 13], 2, '{"IsReserved": false}')$$);
SELECT says($$SELECT interlock.versioned_update('"ShowSeats"', '10/13', 2, '{"IsReserved": false}')$$);
SELECT says($$SELECT interlock.versioned_update('"ShowSeats"', '{"SeatId": 13}', 2, '{"IsReserved": false}')$$);
SELECT says($$SELECT interlock.versioned_update('"ShowSeats"', '{"ShowId": 10, "SeatId": 13}', 2, '{"IsReserved": false}')$$);
SELECT says($$SELECT interlock.versioned_update('sys_config', 'site', '-infinity', '{"value": "b"}')$$);
SELECT says($$SELECT interlock.versioned_update('orders', '#124', 1, '{}')$$);
-- where the key is a text, an object without a type is that text
CREATE TABLE page (slug text PRIMARY KEY, id int NOT NULL UNIQUE, title text);
INSERT INTO page VALUES ('a', 1, 'x');
SELECT interlock.enable_versioning('page');
SELECT says($$SELECT interlock.versioned_update('page', '{"id": 1}', 1, '{"title": "y"}')$$);
SELECT says($$SELECT interlock.versioned_update('page', '{"id": 1}'::jsonb, 1, '{"title": "y"}')$$);
SELECT says($$SELECT interlock.versioned_update('page', 'b', 1, '{"title": "y"}')$$);
SELECT says($$SELECT * FROM interlock.select_for_update('"ShowSeats"', '{A15}')$$);
SELECT says($$SELECT * FROM interlock.select_for_update('"ShowSeats"', 15)$$);
SELECT says($$SELECT * FROM interlock.select_for_update('"ShowSeats"', '15')$$);
SELECT says($$SELECT * FROM interlock.select_for_update('"ShowSeats"', '{"ShowId": 10, "SeatId": 12}')$$);
SELECT says($$SELECT * FROM interlock.select_for_update('"ShowSeats"', '{15}', 'updlock')$$);

-- changes, batches, merges, transforms
SELECT says($$SELECT interlock.versioned_update('"ShowSeats"', 15, 2, '{"isreserved": true}')$$);
SELECT says($$SELECT interlock.versioned_update('"ShowSeats"', 15, 2, '{"\"IsReserved\"": true}')$$);
SELECT says($$SELECT interlock.versioned_update('"ShowSeats"', 15, 2, '["IsReserved", true]')$$);
SELECT says($$SELECT * FROM interlock.try_versioned_update('"ShowSeats"', 15, 1, '{"IsReserved": true}', on_conflict => 'merge')$$);
SELECT says($$SELECT * FROM interlock.try_versioned_update('"ShowSeats"', 15, 1, '{"IsReserved": true}', on_conflict => 'retry')$$);
SELECT says($$SELECT * FROM interlock.update_with_retry('"ShowSeats"', 15, 'jsonb_typeof(jsonb)')$$);
SELECT says($$SELECT * FROM interlock.versioned_update_many('"ShowSeats"', '{"key": 15, "version": 1, "changes": {}}')$$);
SELECT says($$SELECT * FROM interlock.versioned_update_many('"ShowSeats"', '[{"Id": 15, "IsReserved": true}]')$$);

-- TRN-2: states
CREATE TABLE biz_order (id int PRIMARY KEY, status int NOT NULL DEFAULT 0, reserved boolean NOT NULL DEFAULT false, note jsonb, at timestamptz);
INSERT INTO biz_order VALUES (1);
SELECT says($$SELECT interlock.transition('biz_order', 1, '0', '1')$$);
SELECT says($$SELECT interlock.define_transitions('biz_order', 'note', '{"0": [1]}')$$);
SELECT says($$SELECT interlock.define_transitions('biz_order', 'Status', '{"0": [1]}')$$);
SELECT says($$SELECT interlock.define_transitions('biz_order', '"status"', '{"0": [1]}')$$);
SELECT says($$SELECT interlock.define_transitions('biz_order', 'status', '[[0, 1]]')$$);
SELECT says($$SELECT interlock.define_transitions('biz_order', 'status', '{"pending": ["paid"]}')$$);
SELECT says($$SELECT interlock.define_transitions('biz_order', 'status', '{"0": [1, 4]}', '{pending}')$$);
SELECT interlock.define_transitions('biz_order', 'status', '{"0": [1, 4], "1": [2]}', '{0}');
SELECT says($$SELECT outcome, state FROM interlock.try_transition('biz_order', 1, 0, 1)$$);
SELECT says($$SELECT outcome, state FROM interlock.try_transition('biz_order', 1, 'pending', 'paid')$$);
SELECT says($$SELECT outcome, state FROM interlock.try_transition('biz_order', 1, 'status', '1', '2')$$);
SELECT says($$SELECT interlock.transition('biz_order', 1, 0, 4)$$);
SELECT says($$SELECT interlock.transition('biz_order', 1, 1, 0)$$);
SELECT says($$SELECT interlock.transition('biz_order', 7, 1, 2)$$);
SELECT interlock.define_transitions('biz_order', 'reserved', '{"false": [true]}');
SELECT says($$SELECT interlock.transition('biz_order', 1, 1, 2)$$);
SELECT says($$SELECT outcome, state FROM interlock.try_transition('biz_order', 1, false, true, state_column => 'reserved')$$);

-- MRK-3: columns of one's own, and what is a time to live
INSERT INTO orders VALUES (123, 10), (124, 10);
SELECT says($$SELECT * FROM interlock.lock_row('orders', 123, 'A')$$);
SELECT says($$SELECT interlock.enable_marker('orders', status_column => '"status"')$$);
SELECT says($$SELECT interlock.enable_marker('orders', notify => 'all')$$);
SELECT says($$SELECT interlock.enable_marker('orders', '0')$$);
SET client_min_messages = notice;
SELECT interlock.enable_marker('orders', status_column => 'status');
SET client_min_messages = warning;
SELECT says($$SELECT locked, holder FROM interlock.lock_row('orders', 123, 'A', '0')$$);
SELECT says($$SELECT locked, holder FROM interlock.lock_row('orders', 123, 'A', '1 h')$$);
SELECT says($$SELECT locked, holder FROM interlock.lock_row('orders', 123, 'B')$$);
SELECT says($$SELECT interlock.save_row('orders', 123, 'B', '{"amount": 11}')$$);
SELECT says($$SELECT interlock.lock_row('orders', 99, 'A')$$);

-- LEA-9: keys that are no paths
SELECT says($$SELECT outcome FROM interlock.acquire_lease('https://example.org/a')$$);
SELECT says($$SELECT outcome, interlock.release_lease(interlock.key_path('https://example.org/a'), token)
    FROM interlock.acquire_lease(interlock.key_path('https://example.org/a'))$$);
SELECT says($$SELECT outcome FROM interlock.acquire_lease('it''s/')$$);
SELECT says($$SELECT outcome FROM interlock.acquire_lease('order-88', '0')$$);
SELECT says($$SELECT outcome FROM interlock.acquire_lease('order-88', '2 days')$$);
SELECT says($$SELECT outcome FROM interlock.acquire_lease('order-88', mode => 'write')$$);
SELECT says($$SELECT outcome FROM interlock.acquire_lease('order-88', bind => 'transaction')$$);
SELECT says($$SELECT interlock.assert_lease('order-88', 1)$$);
SELECT says($$SELECT outcome FROM interlock.acquire_permit('sale', 0)$$);
SELECT says($$SELECT interlock.require_lease('orders', 'order:{nr}')$$);
SELECT says($$SELECT interlock.require_lease('orders', 'order:{id')$$);

-- key locks
SELECT says($$SELECT interlock.lock_key('Account:1', '5 s')$$);
SELECT says($$SELECT interlock.lock_key('Account:1', 'X')$$);
SELECT says($$SELECT interlock.lock_key('Account:1', scope => 'statement')$$);

-- getapplock raises nothing: a warning says what is wrong
SELECT interlock.getapplock('Account:1', 'Exclusive');
SELECT interlock.getapplock('Exclusive', 'Account:1');
SELECT interlock.getapplock('Account:1', 'X');
SELECT interlock.getapplock('Account:1', 'Exclusive', 'Statement');
SELECT interlock.getapplock('Account:1', 'Exclusive', 'Transaction', -2);
SELECT interlock.getapplock('Account:1', 'Exclusive', NULL);
SELECT says($$SELECT interlock.applock_test('public', 'Account:1', 'X')$$);

-- children before their parents, and a parent without a guard
CREATE TABLE invoice (id int PRIMARY KEY);
CREATE TABLE invoice_line (id int PRIMARY KEY, invoice_id int REFERENCES invoice);
SELECT says($$SELECT interlock.guard_children('hints.invoice', 'hints.invoice_line')$$);
SELECT says($$SELECT interlock.guard_children('hints.invoice_line', 'hints.invoice')$$);
SELECT says($$SELECT interlock.enable_versioning('hints.invoice')$$);
SELECT says($$SELECT interlock.guard_children('hints.invoice_line', 'hints.invoice')$$);

-- a version without an entry, and a call for a table by its name
CREATE TABLE draft (id int PRIMARY KEY, body text, seen int);
SELECT interlock.enable_versioning('draft'), interlock.enable_history('draft', ignore_columns => '{seen}');
INSERT INTO draft VALUES (1, 'a');
UPDATE draft SET seen = 2;
UPDATE draft SET body = 'c';
UPDATE draft SET seen = 4;
SELECT says(format('SELECT interlock.revert_row(%L, 1, to_version => %s)', 'draft', v)) FROM unnest('{0,2,4}'::int[]) v;
DELETE FROM draft_history;
SELECT says($$SELECT interlock.revert_row('draft', 1, to_version => 2)$$);
CREATE TABLE unversioned (id int PRIMARY KEY, body text);
SELECT interlock.enable_history('unversioned');
INSERT INTO unversioned VALUES (1, 'a'), (2, 'b');
UPDATE unversioned SET body = 'c';
SELECT says(format('SELECT interlock.revert_row(%L, 1, to_version => %s)', 'unversioned', v)) FROM unnest('{2,4}'::int[]) v;
SELECT says($$SELECT * FROM interlock.rows_as_of('draft'::text, now())$$);
SELECT says($$SELECT * FROM interlock.rows_as_of('draft'::regclass, now())$$);
SELECT says($$SELECT * FROM interlock.rows_as_of(1, now())$$);
SELECT says($$SELECT interlock.rows_as_of('draft'::text, now())$$);

-- idempotency and writers
SELECT says($$SELECT interlock.run_once('pay', 'k', 'now()')$$);
SELECT says($$SELECT interlock.define_idempotency_scope('pay', 'request')$$);
SELECT says($$SELECT interlock.own_columns('orders', 'importer', '{Amount}')$$);
SELECT says($$SELECT interlock.own_columns('orders', 'importer', '{amount}', 'ignore')$$);
SELECT says($$SELECT interlock.share_columns('orders', '{amount}', 'last_write_wins')$$);
SELECT says($$SELECT * FROM interlock.row_history('orders', 123)$$);
CREATE ROLE interlock_reader;
GRANT USAGE ON SCHEMA hints TO interlock_reader;
GRANT SELECT, UPDATE ON orders TO interlock_reader;
SET ROLE interlock_reader;
SELECT says($$SELECT outcome FROM interlock.idempotency_claim('pay', 'k')$$);
SELECT says($$SELECT interlock.set_writer('importer')$$);
SELECT says($$SELECT interlock.break_lease('order-88', 'stuck')$$);
SELECT says($$SELECT interlock.enable_history('orders')$$);
RESET ROLE;
DROP SCHEMA hints CASCADE;
DROP ROLE interlock_reader;
