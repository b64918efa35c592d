-- Status transitions
\set SHOW_CONTEXT never
CREATE TYPE order_status AS ENUM ('pending', 'paid', 'shipped', 'cancelled');
CREATE TABLE orders (id int PRIMARY KEY, status order_status NOT NULL DEFAULT 'pending', note text);
SELECT interlock.define_transitions('orders', 'status',
    '{"pending": ["paid", "cancelled"], "paid": ["shipped"]}', initial => '{pending}');
\d orders
INSERT INTO orders VALUES (1), (2), (3);

-- moved by the functions
SELECT interlock.transition('orders', 1, 'pending', 'paid', '{"note": "by card"}');
SELECT * FROM orders WHERE id = 1;
SELECT interlock.transition('orders', 1, 'pending', 'cancelled');
SELECT interlock.transition('orders', 1, 'paid', 'pending');
SELECT interlock.transition('orders', 99, 'pending', 'paid');
SELECT outcome, state FROM interlock.try_transition('orders', 1, 'paid', 'shipped');
-- the same once more: distinguished by the state (TRN-17)
SELECT outcome, state FROM interlock.try_transition('orders', 1, 'paid', 'shipped');
SELECT outcome, state FROM interlock.try_transition('orders', 1, 'shipped', 'paid');
SELECT outcome, state FROM interlock.try_transition('orders', 99, 'paid', 'shipped');
SELECT outcome, state FROM interlock.try_transition('orders', 99, 'shipped', 'paid');
SELECT outcome, state FROM interlock.try_transition('orders', '2', 'pending', 'cancelled', changes => '{"note": null}', state_column => 'status');
SELECT * FROM orders ORDER BY id;

-- and by everybody else (TRN-16)
UPDATE orders SET status = 'shipped' WHERE id = 3;
UPDATE orders SET status = 'pending' WHERE id = 1;
UPDATE orders SET status = status, note = 'same state' WHERE id = 1;
INSERT INTO orders VALUES (4, 'paid');
INSERT INTO orders VALUES (3) ON CONFLICT (id) DO UPDATE SET status = 'shipped';
COPY orders (id, status) FROM stdin;
5	shipped
\.
MERGE INTO orders o USING (VALUES (3)) v (id) ON o.id = v.id WHEN MATCHED THEN UPDATE SET status = 'shipped';
CREATE TABLE states (name order_status PRIMARY KEY);
INSERT INTO states VALUES ('pending'), ('paid');
CREATE TABLE linked (id int PRIMARY KEY, status order_status REFERENCES states ON UPDATE CASCADE ON DELETE SET NULL);
SELECT interlock.define_transitions('linked', 'status', '{"pending": ["paid"]}');
INSERT INTO linked VALUES (1, 'pending'), (2, 'paid');
UPDATE states SET name = 'cancelled' WHERE name = 'pending';
DELETE FROM states WHERE name = 'paid';
-- a trigger that changes the state on the way in (C12)
CREATE FUNCTION jump() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.status := 'shipped'; RETURN NEW; END $$;
CREATE TRIGGER jump BEFORE UPDATE ON orders FOR EACH ROW EXECUTE FUNCTION jump();
UPDATE orders SET note = 'harmless' WHERE id = 3;
DROP TRIGGER jump ON orders;
SELECT * FROM orders ORDER BY id;

-- a transition that is rolled back leaves nothing (TRN-19)
BEGIN;
SAVEPOINT s;
SELECT interlock.transition('orders', 3, 'pending', 'paid', '{"note": "undone"}');
ROLLBACK TO SAVEPOINT s;
SELECT outcome, state FROM interlock.try_transition('orders', 3, 'pending', 'cancelled');
COMMIT;
SELECT * FROM orders WHERE id = 3;

-- defined again: rows in a state that is no longer declared stay, and stay there (TRN-18)
SELECT interlock.define_transitions('orders', 'status', '{"shipped": ["pending"]}');
INSERT INTO orders VALUES (4, 'paid');
UPDATE orders SET status = 'pending' WHERE id = 3;
UPDATE orders SET note = 'still there' WHERE id = 3;
UPDATE orders SET status = 'pending' WHERE id = 1 RETURNING *;
SELECT interlock.define_transitions('orders', 'status', '{}');
UPDATE orders SET status = 'paid' WHERE id = 1;
-- labels of an enum: renamed, and added
ALTER TYPE order_status RENAME VALUE 'pending' TO 'open';
SELECT interlock.define_transitions('orders', 'status', '{"open": ["paid"]}');
UPDATE orders SET status = 'paid' WHERE id = 1 RETURNING *;
SELECT interlock.drop_transitions('orders', 'status');
UPDATE orders SET status = 'open';
SELECT interlock.drop_transitions('orders', 'status');
SELECT interlock.transition('orders', 1, 'open', 'paid');

-- integers, padded and bounded texts, domains; several columns; self transitions; null states
CREATE DOMAIN phase AS varchar(10) CHECK (VALUE <> 'bad');
CREATE TABLE jobs (id text PRIMARY KEY, num smallint, big bigint, pad char(8), vc varchar(5), dom phase);
SELECT interlock.define_transitions('jobs', 'num', '{"0": [1, "02"], "1": ["2"], "2": [2]}', '{0}');
SELECT interlock.define_transitions('jobs', 'big', '{"0": [10000000000]}');
SELECT interlock.define_transitions('jobs', 'pad', '{"new": ["done"]}');
SELECT interlock.define_transitions('jobs', 'vc', '{"a": ["b"]}');
SELECT interlock.define_transitions('jobs', 'dom', '{"a": ["b"]}', '{a}');
INSERT INTO jobs VALUES ('j', 0, 0, 'new', 'a', 'a');
SELECT interlock.transition('jobs', 'j', '0', '1');
SELECT interlock.transition('jobs', 'j', '0', '01', state_column => 'num');
SELECT interlock.transition('jobs', 'j', '0', '10000000000', state_column => 'big');
SELECT interlock.transition('jobs', 'j', 'new', 'done', state_column => 'pad');
SELECT interlock.transition('jobs', 'j', 'a', 'b', state_column => 'vc', changes => '{"dom": "b"}');
SELECT interlock.transition('jobs', 'j', '1', '2', state_column => 'num');
SELECT outcome, state FROM interlock.try_transition('jobs', 'j', '2', '2', state_column => 'num');
SELECT outcome, state FROM interlock.try_transition('jobs', 'j', 'done', 'new', state_column => 'pad');
SELECT * FROM jobs;
UPDATE jobs SET num = NULL;
UPDATE jobs SET pad = 'new';
INSERT INTO jobs (id, num, dom) VALUES ('k', NULL, 'a');
INSERT INTO jobs (id, num, dom) VALUES ('k', 0, 'b');
INSERT INTO jobs (id, num, dom) VALUES ('k', 0, 'a');
SELECT outcome, state FROM interlock.try_transition('jobs', 'k', 'a', 'b', state_column => 'vc');
SELECT interlock.transition('jobs', 'k', 'a', 'b', state_column => 'vc');
UPDATE jobs SET vc = 'c' WHERE id = 'k';
UPDATE jobs SET vc = 'b', dom = 'b' WHERE id = 'k';
UPDATE jobs SET vc = 'b', dom = 'a' WHERE id = 'k' RETURNING *;

-- with a version: there and back passes the state, not the version (TRN-13)
CREATE TABLE docs (id int PRIMARY KEY, status text);
SELECT interlock.define_transitions('docs', 'status', '{"draft": ["review"], "review": ["draft", "live"]}');
SELECT interlock.enable_versioning('docs');
INSERT INTO docs VALUES (1, 'draft');
SELECT interlock.transition('docs', 1, 'draft', 'review'), interlock.transition('docs', 1, 'review', 'draft');
SELECT outcome, version FROM interlock.try_versioned_update('docs', 1, 1, '{"status": "review"}');
SELECT interlock.versioned_update('docs', 1, 3, '{"status": "live"}');
SELECT outcome, state FROM interlock.try_transition('docs', 1, 'draft', 'review');
SELECT * FROM docs;

-- partitions
CREATE TABLE parts (id int, region text, status text, PRIMARY KEY (id, region)) PARTITION BY LIST (region);
CREATE TABLE parts_eu PARTITION OF parts FOR VALUES IN ('eu');
CREATE TABLE parts_us (status text, region text NOT NULL, id int NOT NULL);
SELECT interlock.define_transitions('parts', 'status', '{"a": ["b"]}', '{a}');
ALTER TABLE parts ATTACH PARTITION parts_us FOR VALUES IN ('us');
INSERT INTO parts VALUES (1, 'us', 'b');
INSERT INTO parts VALUES (1, 'us', 'a');
UPDATE parts_us SET status = 'c';
SELECT interlock.transition('parts', '{"id": 1, "region": "us"}', 'a', 'b');
SELECT interlock.transition('parts_us', '{"id": 1, "region": "us"}', 'b', 'c');
SELECT interlock.define_transitions('parts_us', 'status', '{}');
SELECT interlock.drop_transitions('parts_us', 'status');
SELECT interlock.drop_transitions('parts', 'status');
UPDATE parts_us SET status = 'c';

-- names, and a column that is renamed: fails closed
CREATE TABLE "Odd.Table" ("Id" int PRIMARY KEY, "The ""State""" text);
SELECT interlock.define_transitions('"Odd.Table"', 'The "State"', '{"it''s": ["\"q\""]}');
INSERT INTO "Odd.Table" VALUES (1, 'it''s');
SELECT interlock.transition('"Odd.Table"', 1, 'it''s', '"q"');
ALTER TABLE "Odd.Table" RENAME "The ""State""" TO state;
UPDATE "Odd.Table" SET state = 'x';
SELECT interlock.transition('"Odd.Table"', 1, '"q"', 'x');
SELECT interlock.define_transitions('"Odd.Table"', 'state', '{"\"q\"": ["x"]}');
UPDATE "Odd.Table" SET state = 'x';
SELECT interlock.drop_transitions('"Odd.Table"', 'The "State"');
UPDATE "Odd.Table" SET state = 'x';
SELECT * FROM "Odd.Table";

-- bad input
\set VERBOSITY sqlstate
CREATE VIEW order_view AS SELECT * FROM orders;
CREATE TABLE bad (id int PRIMARY KEY, status text, flag boolean, gen text GENERATED ALWAYS AS ('x') STORED, spot point);
CREATE TABLE no_key (status text);
SELECT interlock.define_transitions('order_view', 'status', '{}');
SELECT interlock.define_transitions('pg_class', 'relkind', '{}');
SELECT interlock.define_transitions(NULL, 'status', '{}');
SELECT interlock.define_transitions('bad', 'nowhere', '{}');
SELECT interlock.define_transitions('bad', 'ctid', '{}');
SELECT interlock.define_transitions('bad', NULL, '{}');
SELECT interlock.define_transitions('bad', 'spot', '{}');
SELECT interlock.define_transitions('bad', 'gen', '{}');
SELECT interlock.define_transitions('bad', 'status', NULL);
SELECT interlock.define_transitions('bad', 'status', '[]');
SELECT interlock.define_transitions('bad', 'status', '{"a": "b"}');
SELECT interlock.define_transitions('bad', 'status', '{"a": null}');
SELECT interlock.define_transitions('bad', 'status', '{"a": {"b": 1}}');
SELECT interlock.define_transitions('bad', 'status', '{"a": [["b"]]}');
SELECT interlock.define_transitions('bad', 'status', '{"a": [null]}');
SELECT interlock.define_transitions('bad', 'status', '{"a": [true]}');
SELECT interlock.define_transitions('bad', 'status', '{"a": []}', '{NULL}');
SELECT interlock.define_transitions('jobs', 'num', '{"one": []}');
SELECT interlock.define_transitions('jobs', 'num', '{"1": [70000]}');
SELECT interlock.define_transitions('jobs', 'vc', '{"longer": []}');
SELECT interlock.define_transitions('jobs', 'dom', '{"bad": []}');
SELECT interlock.drop_transitions('bad', 'status');
SELECT interlock.transition('bad', 1, 'a', 'b');
SELECT interlock.define_transitions('bad', 'status', '{"a": ["b"]}');
INSERT INTO bad VALUES (1, 'a');
SELECT interlock.transition('bad', NULL, 'a', 'b');
SELECT interlock.transition('bad', 1, NULL, 'b');
SELECT interlock.transition('bad', 1, 'a', NULL);
SELECT interlock.transition('bad', 1, 'a', 'nowhere');
SELECT interlock.transition('bad', 1, 'a', 'b', NULL);
SELECT interlock.transition('bad', 1, 'a', 'b', '{"status": "b"}');
SELECT interlock.transition('bad', 1, 'a', 'b', '{"nowhere": "b"}');
SELECT interlock.transition('bad', 1, 'a', 'b', '{"gen": "b"}');
SELECT interlock.transition('bad', 1, 'a', 'b', state_column => 'flag');
SELECT interlock.transition('bad', 'x', 'a', 'b');
SELECT interlock.define_transitions('no_key', 'status', '{"a": ["b"]}');
INSERT INTO no_key VALUES ('a');
SELECT interlock.transition('no_key', 1, 'a', 'b');
UPDATE no_key SET status = 'c';
UPDATE no_key SET status = 'b';
SELECT interlock_internal.transition_trigger();
CREATE ROLE interlock_stranger;
SET ROLE interlock_stranger;
SELECT interlock.define_transitions('bad', 'status', '{}');
SELECT interlock.drop_transitions('bad', 'status');
SELECT interlock.transition('bad', 1, 'a', 'b');
RESET ROLE;
GRANT SELECT (id, status), UPDATE (status) ON bad TO interlock_stranger;
SET ROLE interlock_stranger;
SELECT interlock.transition('bad', 1, 'a', 'b', '{"flag": true}');
SELECT outcome, state FROM interlock.try_transition('bad', 1, 'a', 'b');
RESET ROLE;
SELECT * FROM bad;
DROP VIEW order_view;
DROP TABLE orders, linked, states, jobs, docs, parts, "Odd.Table", bad, no_key;
DROP TYPE order_status;
DROP DOMAIN phase;
DROP FUNCTION jump;
DROP ROLE interlock_stranger;
