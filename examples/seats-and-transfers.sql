-- Seats of a theatre and money in accounts: what must not be sold or paid twice, however many ask at once.
CREATE EXTENSION IF NOT EXISTS pg_interlock;

CREATE TABLE show_seat (
    id int PRIMARY KEY,
    show_id int NOT NULL,
    seat_no int NOT NULL,
    is_reserved boolean NOT NULL DEFAULT false,
    reserved_by int,
    UNIQUE (show_id, seat_no));
INSERT INTO show_seat SELECT i, 10, i FROM generate_series(1, 4) i;
CREATE TABLE ticket (show_id int, seat_no int, buyer int, UNIQUE (show_id, seat_no));    -- the last line of defence: always have it

-- A seat is sold once, whatever statement sells it.
SELECT interlock.define_transitions('show_seat', 'is_reserved', '{"false": [true]}', on_repeat => 'reject');
SELECT interlock.enable_versioning('show_seat', 'row_version');
SELECT interlock.enable_marker('show_seat', '10 min');

-- 1. Optimistic: two buyers have read seat 1 with version 1. The second one has @@ROWCOUNT = 0.
UPDATE show_seat SET is_reserved = true, reserved_by = 7 WHERE id = 1 AND row_version = 1;
-- => UPDATE 1
UPDATE show_seat SET is_reserved = true, reserved_by = 8 WHERE id = 1 AND row_version = 1;
-- => UPDATE 0

-- Is it gone, or did only its row move? The answer has the row. The seat is named by show and number.
SELECT outcome, current->>'is_reserved' AS is_reserved
  FROM interlock.try_versioned_update('show_seat', '{"show_id": 10, "seat_no": 1}', 1, '{"is_reserved": true, "reserved_by": 8}');
-- => conflict | true

-- A program that does not look is refused, too.
UPDATE show_seat SET is_reserved = true, reserved_by = 8 WHERE id = 1;
-- => ERROR:  "is_reserved" in table "show_seat" cannot go from "true" to "true"

-- 2. Pessimistic (UPDLOCK): lock, look, decide, write. Others wait for the rows, which are locked in the order of their keys.
BEGIN;
SELECT key FROM interlock.select_for_update('show_seat', '{3,2}', wait => '2 s');
-- => {"id": 2}
-- => {"id": 3}
SELECT bool_and(NOT is_reserved) AS free FROM show_seat WHERE id IN (2, 3) \gset
\if :free
UPDATE show_seat SET is_reserved = true, reserved_by = 7 WHERE id IN (2, 3);
INSERT INTO ticket SELECT show_id, seat_no, 7 FROM show_seat WHERE id IN (2, 3);
-- => INSERT 0 2
\endif
COMMIT;

-- 3. While a buyer pays, a marker keeps the seat for ten minutes: no transaction stays open for that long.
SELECT locked FROM interlock.lock_rows('show_seat', '{4}', 'buyer 7');
-- => t
UPDATE show_seat SET is_reserved = true, reserved_by = 8 WHERE id = 4 AND NOT is_reserved;
-- => ERROR:  row of table "show_seat" is being edited by "buyer 7"
SELECT interlock.save_row('show_seat', 4, 'buyer 7', '{"is_reserved": true, "reserved_by": 7}') IS NOT NULL AS sold;
-- => t

-- 4. A transfer. Names in one order, all or none: two transfers in opposite directions do not deadlock.
CREATE TABLE account (id int PRIMARY KEY, balance int NOT NULL CHECK (balance >= 0));
INSERT INTO account VALUES (1, 1000), (2, 0);

BEGIN;
SELECT interlock.lock_keys('{account:2,account:1}', wait => '5 s');
UPDATE account SET balance = balance - 700 WHERE id = 1 AND balance >= 700;
-- => UPDATE 1
UPDATE account SET balance = balance + 700 WHERE id = 2;
COMMIT;

-- The second payment, of 500, finds 300.
BEGIN;
SELECT interlock.lock_keys('{account:1,account:2}', wait => '5 s');
UPDATE account SET balance = balance - 500 WHERE id = 1 AND balance >= 500;
-- => UPDATE 0
ROLLBACK;

-- 5. Procedures of SQL Server keep their calls and codes: 0 and 1 are granted, below 0 is refused.
BEGIN;
SELECT interlock.getapplock('Account:1', 'Exclusive', locktimeout => 5000) AS code;
-- => 0
COMMIT;

-- A job that must not run twice at a time, whichever server starts it.
SELECT interlock.try_lock_keys('{nightly balance}', scope => 'session') AS mine \gset
\if :mine
SELECT sum(balance) FROM account;
-- => 1000
SELECT interlock.unlock_keys('{nightly balance}');
\endif
