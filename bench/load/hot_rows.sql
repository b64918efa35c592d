-- The tables of script/bench --hot-rows: one for each mechanism, of a thousand items in stock.
CREATE EXTENSION pg_interlock;
CREATE SCHEMA hot;
SET search_path = hot;

CREATE TABLE adjust (id int PRIMARY KEY, stock bigint NOT NULL CHECK (stock >= 0)) WITH (fillfactor = 50);
INSERT INTO adjust SELECT id, 1000000000 FROM generate_series(1, 1000) id;
CREATE TABLE conditional (LIKE adjust INCLUDING ALL) WITH (fillfactor = 50);
CREATE TABLE row_lock (LIKE adjust INCLUDING ALL) WITH (fillfactor = 50);
CREATE TABLE key_lock (LIKE adjust INCLUDING ALL) WITH (fillfactor = 50);
CREATE TABLE retry (LIKE adjust INCLUDING ALL, version bigint NOT NULL DEFAULT 1) WITH (fillfactor = 50);
INSERT INTO conditional TABLE adjust;
INSERT INTO row_lock TABLE adjust;
INSERT INTO key_lock TABLE adjust;
INSERT INTO retry TABLE adjust;
SELECT interlock.enable_versioning('retry');
CREATE FUNCTION take_one(row_now jsonb, args jsonb) RETURNS jsonb LANGUAGE sql IMMUTABLE
    RETURN jsonb_build_object('stock', (row_now->>'stock')::bigint - 1);

-- What is sold is inserted, and nothing tests whether it was there.
CREATE TABLE line (item bigint NOT NULL, amount numeric NOT NULL);
CREATE INDEX ON line (item);

SELECT interlock.enable_escrow('adjust', 'stock');
