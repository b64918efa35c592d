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
