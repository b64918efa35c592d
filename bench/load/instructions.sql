-- What script/bench --instructions needs beside the tables of bench.sql and plpgsql.sql.
CREATE EXTENSION pg_prewarm;
SELECT interlock.define_idempotency_scope('import', model => 'job');
CREATE TABLE rows (id int);

-- The updates of a thousand rows each, as a client sends them: text that the server has yet to read.
CREATE TABLE batches (id int PRIMARY KEY, updates text);
ALTER TABLE batches ALTER updates SET STORAGE EXTERNAL;
INSERT INTO batches SELECT b, (SELECT jsonb_agg(jsonb_build_object('key', b * 1000 + k, 'version', 1,
        'changes', jsonb '{"a": 1, "b": "y", "c": 2.5}'))::text FROM generate_series(1, 1000) k)
    FROM generate_series(0, 63) b;

-- Options, each in a table of its own that is otherwise like machine, recorded, plain.
CREATE TABLE repeating (LIKE plain INCLUDING ALL) WITH (fillfactor = 50);
INSERT INTO repeating SELECT * FROM plain;
SELECT interlock.define_transitions('repeating', 'status', '{"a": ["a", "b"]}', on_repeat => 'reject');
CREATE TABLE conditional (LIKE plain INCLUDING ALL) WITH (fillfactor = 50);
INSERT INTO conditional SELECT * FROM plain;
CREATE FUNCTION may_move(old conditional, new conditional) RETURNS boolean LANGUAGE sql STABLE AS 'SELECT new.a >= 0';
SELECT interlock.define_transitions('conditional', 'status', '{"a": ["a", "b"]}',
    guards => '{"a": {"b": "may_move(conditional, conditional)"}}');
CREATE TABLE ignoring (LIKE plain INCLUDING ALL) WITH (fillfactor = 50);
INSERT INTO ignoring SELECT * FROM plain;
SELECT interlock.enable_history('ignoring', ignore_columns => '{a}');
CREATE TABLE notifying (LIKE plain INCLUDING ALL) WITH (fillfactor = 50);
INSERT INTO notifying SELECT * FROM plain;
SELECT interlock.enable_history('notifying', notify => 'full');
-- 40 columns. Each row has an entry on which the next one can build.
CREATE TABLE wide (id int PRIMARY KEY, a int) WITH (fillfactor = 50);
DO $$ BEGIN EXECUTE (SELECT 'ALTER TABLE wide ' || string_agg(format('ADD number_%1$s int DEFAULT %1$s, ADD text_%1$s text DEFAULT %2$L, '
        'ADD amount_%1$s numeric DEFAULT %1$s.25, ADD time_%1$s timestamptz DEFAULT %3$L', g, 'some words of text ' || g, '2026-01-01'), ', ')
    FROM generate_series(1, 10) g); END $$;
ALTER TABLE wide DROP number_9, DROP number_10;
INSERT INTO wide SELECT g, 0 FROM generate_series(1, 100000) g;
CREATE TABLE wide_short (LIKE wide INCLUDING ALL) WITH (fillfactor = 50);
INSERT INTO wide_short SELECT * FROM wide;
SELECT interlock.enable_history('wide'), interlock.enable_history('wide_short', whole_every => 16);
UPDATE wide SET a = a + 1;
UPDATE wide_short SET a = a + 1;
CREATE TABLE shared (LIKE plain INCLUDING ALL) WITH (fillfactor = 50);
INSERT INTO shared SELECT * FROM plain;
SELECT interlock.enable_versioning('shared'), interlock.share_columns('shared', '{a}', blind_updates => 'reject');

-- A table of their own: a foreign key would make the other statements on it dearer.
CREATE TABLE document (LIKE plain INCLUDING ALL) WITH (fillfactor = 50);
INSERT INTO document SELECT * FROM plain;
SELECT interlock.enable_versioning('document');
CREATE TABLE line (id int PRIMARY KEY, doc int REFERENCES document, b text);
CREATE TABLE unguarded_line (id int PRIMARY KEY, doc int REFERENCES document, b text);
SELECT interlock.guard_children('line', 'document');

CREATE TABLE stocked (id int PRIMARY KEY, stock bigint NOT NULL);
CREATE TABLE hand_stocked (LIKE stocked INCLUDING ALL);
INSERT INTO stocked VALUES (1, 1000000000);
INSERT INTO hand_stocked TABLE stocked;
CREATE TABLE part (item bigint NOT NULL, amount numeric NOT NULL);
CREATE INDEX ON part (item);
SELECT interlock.enable_escrow('stocked', 'stock');
