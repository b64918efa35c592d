-- An administration program: a configuration that several people edit, orders, coupons, refunds, stock.
CREATE EXTENSION IF NOT EXISTS pg_interlock;

-- 1. The configuration. The update time that is there becomes the version: each write moves it, by any program.
CREATE TABLE sys_config (
    id int PRIMARY KEY,
    config_key text NOT NULL UNIQUE,
    config_value text,
    updated_time timestamptz NOT NULL DEFAULT clock_timestamp());
INSERT INTO sys_config (id, config_key, config_value) VALUES (1, 'site.title', 'Shop'), (2, 'mail.from', 'shop@example.org');

SELECT interlock.enable_versioning('sys_config', 'updated_time', blind_updates => 'reject');

-- Ann and Ben have both read the title. Ann saves it as her ORM does.
SELECT updated_time AS read FROM sys_config WHERE id = 1 \gset
UPDATE sys_config SET config_value = 'Big shop', updated_time = now() WHERE id = 1 AND updated_time = :'read';
-- => UPDATE 1

-- Ben's save finds no row: EF Core makes a DbUpdateConcurrencyException of that.
UPDATE sys_config SET config_value = 'My shop', updated_time = now() WHERE id = 1 AND updated_time = :'read';
-- => UPDATE 0

-- By function he gets the present row as well, to show it. Any unique key names the row.
SELECT outcome, current->>'config_value' AS now_it_is
  FROM interlock.try_versioned_update('sys_config', '{"config_key": "site.title"}', :'read', '{"config_value": "My shop"}');
-- => conflict | Big shop

-- A script that does not look at all is refused.
UPDATE sys_config SET config_value = 'Test' WHERE config_key = 'site.title';
-- => ERROR:  blind update of table "sys_config": the statement does not compare column "updated_time"

-- 2. Orders: 0 new, 1 paid, 2 shipped, 3 done, 4 cancelled. Every writer has to take these ways.
CREATE TABLE biz_order (id int PRIMARY KEY, status int NOT NULL DEFAULT 0, paid_with text);
INSERT INTO biz_order VALUES (1), (2);
SELECT interlock.define_transitions('biz_order', 'status', '{"0": [1, 4], "1": [2, 4], "2": [3]}', initial => '{0}');

-- The payment arrives and the customer cancels at the same moment: the payment is first.
UPDATE biz_order SET status = 1, paid_with = 'card' WHERE id = 1 AND status = 0;
-- => UPDATE 1
SELECT outcome, state FROM interlock.try_transition('biz_order', 1, 0, 4);
-- => state_changed | 1

-- A statement that leaves out a step is refused.
UPDATE biz_order SET status = 3 WHERE id = 2;
-- => ERROR:  "status" in table "biz_order" cannot go from "0" to "3"

-- The buttons of a page: what may happen next to a paid order.
SELECT to_state FROM interlock.transitions WHERE rel = 'biz_order'::regclass AND from_state = '1' ORDER BY 1;
-- => 2
-- => 4

-- 3. Coupons are redeemed once, and not when they have expired. on_repeat counts a second "Used" as well.
CREATE TABLE coupon (
    code text PRIMARY KEY,
    status text NOT NULL DEFAULT 'Unused',
    expires_at timestamptz NOT NULL,
    used_by int);
INSERT INTO coupon VALUES ('SPRING', 'Unused', now() + interval '1 month'), ('WINTER', 'Unused', now() - interval '1 day');

CREATE FUNCTION why_not_redeemed(old coupon, new coupon) RETURNS text LANGUAGE sql AS
    $$SELECT CASE WHEN old.expires_at <= clock_timestamp() THEN 'it has expired' END$$;
SELECT interlock.define_transitions('coupon', 'status', '{"Unused": ["Used"]}', on_repeat => 'reject',
    guards => '{"Unused": {"Used": "why_not_redeemed(coupon, coupon)"}}');

UPDATE coupon SET status = 'Used', used_by = 7 WHERE code = 'SPRING';
-- => UPDATE 1
UPDATE coupon SET status = 'Used', used_by = 8 WHERE code = 'SPRING';
-- => ERROR:  "status" in table "coupon" cannot go from "Used" to "Used"
SELECT outcome, reason FROM interlock.try_transition('coupon', 'WINTER', 'Unused', 'Used', '{"used_by": 8}');
-- => not_allowed | it has expired

-- 4. Refunds: of two who decide the second one learns who was first.
CREATE TABLE refund (id int PRIMARY KEY, status text NOT NULL DEFAULT 'pending', decided_by text);
INSERT INTO refund VALUES (1);
SELECT interlock.define_transitions('refund', 'status', '{"pending": ["approved", "rejected"]}', on_repeat => 'reject');

SELECT outcome FROM interlock.try_transition('refund', 1, 'pending', 'approved', '{"decided_by": "Ann"}');
-- => transitioned
SELECT outcome, state, current->>'decided_by' AS decided_by
  FROM interlock.try_transition('refund', 1, 'pending', 'rejected', '{"decided_by": "Ben"}');
-- => state_changed | approved | Ann

-- 5. Work orders are closed by the agent who has claimed them. Null in match is a column without a value.
CREATE TABLE work_order (id int PRIMARY KEY, status text NOT NULL DEFAULT 'open', agent text);
INSERT INTO work_order VALUES (1);
SELECT interlock.define_transitions('work_order', 'status',
    '{"open": ["claimed", "cancelled"], "claimed": ["closed", "cancelled"]}');

SELECT outcome FROM interlock.try_transition('work_order', 1, 'open', 'claimed', '{"agent": "ann"}', match => '{"agent": null}');
-- => transitioned
SELECT outcome, current->>'agent' AS agent FROM interlock.try_transition('work_order', 1, 'claimed', 'closed', match => '{"agent": "ben"}');
-- => no_match | ann

-- It is cancelled from either state.
SELECT outcome FROM interlock.try_transition('work_order', 1, ARRAY['open', 'claimed'], 'cancelled');
-- => transitioned

-- 6. A role is edited with its menus, which are rows of another table. A change of menus alone moves the role's version.
CREATE TABLE sys_role (id int PRIMARY KEY, name text);
CREATE TABLE sys_role_menu (role_id int REFERENCES sys_role, menu_id int, PRIMARY KEY (role_id, menu_id));
SELECT interlock.enable_versioning('sys_role');
SELECT interlock.guard_children('sys_role_menu', 'sys_role');
INSERT INTO sys_role VALUES (1, 'clerk');

-- Ann and Ben have both opened the role, with version 1. Ann adds a menu.
INSERT INTO sys_role_menu VALUES (1, 100);
-- => INSERT 0 1
UPDATE sys_role SET name = 'office clerk' WHERE id = 1 AND version = 1;         -- Ben, who does not see that menu
-- => UPDATE 0

-- 7. Stock needs no version and no lock: the condition is in the statement, and a constraint stands behind it.
CREATE TABLE stock (article int PRIMARY KEY, pieces int NOT NULL CHECK (pieces >= 0));
INSERT INTO stock VALUES (1, 1);
UPDATE stock SET pieces = pieces - 1 WHERE article = 1 AND pieces >= 1;
-- => UPDATE 1
UPDATE stock SET pieces = pieces - 1 WHERE article = 1 AND pieces >= 1;       -- sold out
-- => UPDATE 0
