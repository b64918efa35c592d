-- first_version: a sequence of another role for the same default cannot stop inserts, nor use up an integer's range.
BEGIN;
SELECT plan(4);

CREATE ROLE interlock_owner;
CREATE ROLE interlock_other;
CREATE SCHEMA shop;
GRANT ALL ON SCHEMA shop TO interlock_owner, interlock_other;

-- the other role's table has the name first, and is moved; its start is recorded for the same default
SET ROLE interlock_other;
CREATE TABLE shop.orders (id int PRIMARY KEY, version bigint NOT NULL);
SELECT interlock.enable_versioning('shop.orders');
INSERT INTO shop.orders VALUES (1, 4503599627370000);
DELETE FROM shop.orders;
ALTER TABLE shop.orders RENAME TO others;
ALTER SEQUENCE shop.orders_version_start RENAME TO others_version_start;
REVOKE SELECT ON SEQUENCE shop.others_version_start FROM PUBLIC;

-- a schema tool made the owner's table with the default of its file
SET ROLE interlock_owner;
CREATE TABLE shop.orders (id int PRIMARY KEY, version int NOT NULL DEFAULT interlock.first_version('shop.orders_version_start'));
SELECT lives_ok($$INSERT INTO shop.orders VALUES (1)$$, 'a sequence that may not be read does not stop inserts');
RESET ROLE;
GRANT SELECT ON SEQUENCE shop.others_version_start TO PUBLIC;
SET ROLE interlock_owner;
SELECT lives_ok($$INSERT INTO shop.orders VALUES (2)$$, 'nor does one beyond the range of an integer');

-- both are recorded: the owner's sequence was renamed, and the other role's has its name
CREATE TABLE shop.carts (id int PRIMARY KEY, version int NOT NULL);
SELECT interlock.enable_versioning('shop.carts');
INSERT INTO shop.carts VALUES (1, 40);
DELETE FROM shop.carts;
ALTER SEQUENCE shop.carts_version_start RENAME TO kept;
SET ROLE interlock_other;
CREATE TABLE shop.baskets (id int PRIMARY KEY, version bigint NOT NULL);
SELECT interlock.enable_versioning('shop.baskets');
ALTER SEQUENCE shop.baskets_version_start RENAME TO carts_version_start;
SELECT interlock.enable_versioning('shop.baskets');
REVOKE SELECT ON SEQUENCE shop.carts_version_start FROM PUBLIC;
SET ROLE interlock_owner;
SELECT lives_ok($$INSERT INTO shop.carts VALUES (1)$$, 'a recorded sequence of another role does not stop inserts');
SELECT is((SELECT version FROM shop.carts), 41, 'the renamed sequence still counts');
RESET ROLE;
SELECT * FROM finish();
ROLLBACK;
