-- The tables of script/bench: one each for what is done by hand, by PL/pgSQL and by the extension, all of the same rows.
-- Pages have room for another version of each row: else whoever comes later would find what earlier lines have freed.
CREATE EXTENSION pg_interlock;

CREATE TABLE plain (id int PRIMARY KEY, a int, b text, c numeric, version bigint NOT NULL DEFAULT 1, status text DEFAULT 'a',
    lock_status int NOT NULL DEFAULT 0, lock_by text, lock_time timestamptz, lock_until timestamptz) WITH (fillfactor = 50);
INSERT INTO plain (id, a, b, c) SELECT g, 0, 'x', 0 FROM generate_series(1, 100000) g;

CREATE TABLE versioned (LIKE plain INCLUDING ALL) WITH (fillfactor = 50);
INSERT INTO versioned SELECT * FROM plain;
SELECT interlock.enable_versioning('versioned');

-- bench/measure.sh gives it a trigger that does nothing.
CREATE TABLE triggered (LIKE plain INCLUDING ALL) WITH (fillfactor = 50);
INSERT INTO triggered SELECT * FROM plain;

CREATE TABLE refusing (LIKE plain INCLUDING ALL) WITH (fillfactor = 50);
INSERT INTO refusing SELECT * FROM plain;
SELECT interlock.enable_versioning('refusing', blind_updates => 'reject');

CREATE TABLE owned (LIKE plain INCLUDING ALL) WITH (fillfactor = 50);
INSERT INTO owned SELECT * FROM plain;
SELECT interlock.grant_writer('editor', 'public'), interlock.own_columns('owned', 'editor', '{b,c,status}');

CREATE TABLE recorded (LIKE plain INCLUDING ALL) WITH (fillfactor = 50);
INSERT INTO recorded SELECT * FROM plain;
SELECT interlock.enable_history('recorded');

CREATE TABLE batch (id int PRIMARY KEY, a int, b text, c numeric, version bigint NOT NULL DEFAULT 1) WITH (fillfactor = 50);
INSERT INTO batch SELECT g, 0, 'x', 0 FROM generate_series(1, 64000) g;
CREATE TABLE hand_batch (LIKE batch INCLUDING ALL) WITH (fillfactor = 50);
INSERT INTO hand_batch SELECT * FROM batch;
SELECT interlock.enable_versioning('batch');
-- What each client sends: its thousand updates as text, with % for the version.
CREATE TABLE sent (client int PRIMARY KEY, updates text);
ALTER TABLE sent ALTER updates SET STORAGE EXTERNAL;
INSERT INTO sent SELECT c, (SELECT '[' || string_agg(format('{"key": %s, "version": %%, "changes": {"a": 1, "b": "y", "c": 2.5}}', c * 1000 + g), ', ') || ']'
    FROM generate_series(1, 1000) g) FROM generate_series(0, 63) c;

-- Rows that are imported again with the values that they have. hand_kept, for plain SQL, has no trigger.
CREATE TABLE hand_kept (LIKE batch INCLUDING ALL);
INSERT INTO hand_kept SELECT g, 1, 'y', 2.5, 1 FROM generate_series(1, 64000) g;
CREATE TABLE kept (LIKE batch INCLUDING ALL);
INSERT INTO kept SELECT * FROM hand_kept;
-- With --against, another version may not have the option.
SELECT EXISTS (SELECT FROM pg_proc WHERE proname = 'enable_versioning' AND 'unchanged' = ANY (proargnames)) AS has_keep \gset
\if :has_keep
SELECT interlock.enable_versioning('kept', unchanged => 'keep');
\else
SELECT interlock.enable_versioning('kept');
\endif

CREATE TABLE marked (LIKE plain INCLUDING ALL) WITH (fillfactor = 50);
INSERT INTO marked SELECT * FROM plain;
SELECT interlock.enable_marker('marked');

CREATE TABLE unswept (LIKE plain INCLUDING ALL) WITH (fillfactor = 50);
INSERT INTO unswept SELECT * FROM plain;
SELECT interlock.enable_marker('unswept', sweep_index => false);

-- By hand, with the index that finds expired markers.
CREATE TABLE hand_marked (LIKE plain INCLUDING ALL) WITH (fillfactor = 50);
INSERT INTO hand_marked SELECT * FROM plain;
CREATE INDEX ON hand_marked (lock_until) WHERE lock_status = 1;

-- A queue, and one by hand.
CREATE TABLE hand_queue (id int PRIMARY KEY, kind text NOT NULL, place int NOT NULL, b text, lock_status int2 NOT NULL DEFAULT 0, lock_by text,
    lock_time timestamptz, lock_until timestamptz, lock_reason text) WITH (fillfactor = 50);
INSERT INTO hand_queue SELECT g, 'mail', random() * 1000000, 'x' FROM generate_series(1, 10000) g;
CREATE INDEX ON hand_queue (kind, place);
CREATE INDEX ON hand_queue (lock_until) WHERE lock_status = 1;
CREATE TABLE queue (LIKE hand_queue INCLUDING ALL) WITH (fillfactor = 50);
INSERT INTO queue SELECT * FROM hand_queue;
SELECT interlock.enable_marker('queue');

CREATE TABLE machine (LIKE plain INCLUDING ALL) WITH (fillfactor = 50);
INSERT INTO machine SELECT * FROM plain;
SELECT interlock.define_transitions('machine', 'status', '{"a": ["a", "b"]}');

CREATE TABLE keys (scope text, key text, status text, request_hash bytea, token bigint, response jsonb, created timestamptz,
    PRIMARY KEY (scope, key));
CREATE INDEX ON keys (created);
-- By hand, with all that the extension keeps of a key.
CREATE TABLE full_keys (LIKE interlock.idempotency INCLUDING ALL) WITH (fillfactor = 80);
CREATE SEQUENCE requests;
