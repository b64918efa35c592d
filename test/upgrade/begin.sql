-- Everything that a table can have, with rows, open work and stored answers. continue.sql finds it after each upgrade.

CREATE EXTENSION pg_interlock;
CREATE ROLE app;
SELECT interlock.grant_access('operator', 'app');
ALTER ROLE app SET interlock.blind_updates = 'allow';

-- Versions, transitions, markers, and a history that stores every third entry whole.
CREATE TABLE doc (id int PRIMARY KEY, body text, status text NOT NULL DEFAULT 'draft', note text);
SELECT interlock.enable_versioning('doc', unchanged => 'keep');
SELECT interlock.enable_history('doc', whole_every => 3, notify => 'on');
SELECT interlock.enable_marker('doc', ttl => '1 day', notify => 'on');
SELECT interlock.define_transitions('doc', 'status', '{"draft": ["published"], "published": ["draft"]}', initial => '{draft}');
INSERT INTO doc (id, body) VALUES (1, 'first'), (2, 'second'), (3, 'deleted');
UPDATE doc SET body = 'changed' WHERE id IN (1, 3);
DELETE FROM doc WHERE id = 3;
SELECT interlock.lock_row('doc', 2, 'anna', reason => 'over an upgrade');

-- A version that is a time.
CREATE TABLE note (id uuid PRIMARY KEY, body text, updated_time timestamptz NOT NULL DEFAULT now());
SELECT interlock.enable_versioning('note', 'updated_time');
INSERT INTO note VALUES ('00000000-0000-0000-0000-000000000001', 'a');

-- A history in partitions, of a table in partitions.
CREATE TABLE entry (id int, day date, amount numeric, PRIMARY KEY (id, day)) PARTITION BY RANGE (day);
CREATE TABLE entry_old PARTITION OF entry FOR VALUES FROM (MINVALUE) TO ('2020-01-01');
CREATE TABLE entry_new PARTITION OF entry FOR VALUES FROM ('2020-01-01') TO (MAXVALUE);
SELECT interlock.enable_versioning('entry');
SELECT interlock.enable_history('entry', keep_for => '90 days', partition_by => '30 days');
INSERT INTO entry VALUES (1, '2019-05-05', 10), (2, '2024-05-05', 20);
UPDATE entry SET amount = amount + 1;

-- Columns with owners.
CREATE TABLE owned (id int PRIMARY KEY, title text, price numeric, currency text, stock int);
SELECT interlock.enable_versioning('owned');
SELECT interlock.grant_writer('importer', 'app'), interlock.grant_writer('editor', 'app', may_force => true, is_default => true);
SELECT interlock.own_columns('owned', 'importer', '{title}');
SELECT interlock.own_columns('owned', 'editor', '{price,currency}', 'skip', true), interlock.group_columns('owned', '{price,currency}');
SELECT interlock.share_columns('owned', '{stock}', 'merge');
INSERT INTO owned VALUES (1, 'title', 1, 'EUR', 5);
GRANT SELECT, UPDATE ON owned TO app;
BEGIN;
SET LOCAL ROLE app;
SELECT interlock.set_writer('editor', force => true);
UPDATE owned SET price = 2, title = 'forced' WHERE id = 1;
COMMIT;

-- Escrow counters, with a reservation, and changes that are not folded.
CREATE TABLE item (id int PRIMARY KEY, stock int NOT NULL CHECK (stock >= 0));
SELECT interlock.enable_escrow('item', 'stock', maximum => 1000);
INSERT INTO item VALUES (1, 100), (2, 50);
SELECT interlock.adjust('item', 1, 'stock', -10);
CREATE TABLE cart AS SELECT token FROM interlock.reserve_many(
    '[{"rel": "item", "key": 1, "column": "stock", "amount": 5}, {"rel": "item", "key": 2, "column": "stock", "amount": 3}]', '1 day', 'anna');

CREATE TABLE parent (id int PRIMARY KEY);
SELECT interlock.enable_versioning('parent');
CREATE TABLE child (id int PRIMARY KEY, parent int NOT NULL REFERENCES parent);
SELECT interlock.guard_children('child', 'parent');
INSERT INTO parent VALUES (1);

-- An answer that is stored, and a claim that a worker still has.
CREATE FUNCTION pay(request jsonb) RETURNS jsonb LANGUAGE sql AS $$ SELECT jsonb_build_object('paid', request->'amount') $$;
SELECT interlock.define_idempotency_scope('pay', ttl => '30 days'), interlock.grant_idempotency_scope('pay', 'app');
SELECT outcome FROM interlock.run_once('pay', 'k', 'pay', '{"amount": 5}');
SELECT interlock.define_idempotency_scope('jobs', 'job', ttl => '30 days', stale_after => '1 day');
CREATE TABLE job AS SELECT token FROM interlock.idempotency_claim('jobs', 'night', '{"day": 1}');

-- Leases: one with a record, one without, and a table that needs the first one.
CREATE TABLE token (key text, token bigint);
INSERT INTO token SELECT 'long', token FROM interlock.acquire_lease('long', '1 day', holder => 'worker 1');
INSERT INTO token SELECT 'permit', token FROM interlock.acquire_permit('permit', 2, '1 day', holder => 'worker 1');
INSERT INTO token SELECT 'broken', token FROM interlock.acquire_lease('broken', '1 day');
SELECT interlock.break_lease('broken', 'to leave a line in the audit');
CREATE TABLE gate (id int PRIMARY KEY);
SELECT interlock.require_lease('gate', 'long');

CREATE TABLE upgrade (n int, position text, at timestamptz);
INSERT INTO upgrade VALUES (0, interlock.history_position(), clock_timestamp());
INSERT INTO token SELECT 'short', token FROM interlock.acquire_lease('short', '15 s', holder => 'worker 1');
