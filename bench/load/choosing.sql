-- The tables of script/bench --choosing: one for each mechanism, so that each has its own rows in the same run. The value of a
-- row is the number of operations that succeeded on it.
CREATE EXTENSION pg_interlock;
CREATE SCHEMA choosing;
SET search_path = choosing;

CREATE TABLE optimistic (id int PRIMARY KEY, value int NOT NULL DEFAULT 0, version bigint NOT NULL DEFAULT 1) WITH (fillfactor = 50);
CREATE TABLE merge (LIKE optimistic INCLUDING ALL) WITH (fillfactor = 50);
CREATE TABLE retry (LIKE optimistic INCLUDING ALL) WITH (fillfactor = 50);
CREATE TABLE row_lock (LIKE optimistic INCLUDING ALL) WITH (fillfactor = 50);
CREATE TABLE key_lock (LIKE optimistic INCLUDING ALL) WITH (fillfactor = 50);
CREATE TABLE lease (LIKE optimistic INCLUDING ALL) WITH (fillfactor = 50);
CREATE TABLE marker (LIKE optimistic INCLUDING ALL) WITH (fillfactor = 50);
CREATE TABLE conditional (LIKE optimistic INCLUDING ALL) WITH (fillfactor = 50);
CREATE TABLE claim (LIKE optimistic INCLUDING ALL) WITH (fillfactor = 50);

SELECT interlock.enable_versioning(name) FROM unnest('{optimistic,merge,retry}'::regclass[]) name;
SELECT interlock.share_columns('merge', '{value}', strategy => 'merge');
SELECT interlock.enable_marker(name) FROM unnest('{marker,claim}'::regclass[]) name;

CREATE FUNCTION add_one(row_now jsonb, args jsonb) RETURNS jsonb LANGUAGE sql IMMUTABLE
    RETURN jsonb_build_object('value', (row_now->>'value')::int + 1);
