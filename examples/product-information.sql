-- A product that editors, an importer and workers write, each of them saving the whole product as it was read before.
CREATE EXTENSION IF NOT EXISTS pg_interlock;

CREATE TABLE product (
    id int PRIMARY KEY,
    title text,
    price numeric,
    stock int NOT NULL DEFAULT 0,
    thumbnail text,
    labels text[] NOT NULL DEFAULT '{}');

-- Who may write as whom. The workers have a role of their own, and need not say that they are workers.
DO $$ BEGIN
    IF to_regrole('pim_app') IS NULL THEN CREATE ROLE pim_app; END IF;
    IF to_regrole('pim_worker') IS NULL THEN CREATE ROLE pim_worker; END IF;
END $$;
GRANT SELECT, UPDATE ON product TO pim_app, pim_worker;
SELECT interlock.grant_writer('editor', 'pim_app'), interlock.grant_writer('importer', 'pim_app'),
       interlock.grant_writer('worker', 'pim_worker', is_default => true);

-- Each column has its writer, or is merged. What others save along with theirs is skipped. The history is for people: what
-- workers write makes no entry in it.
SELECT interlock.configure('product', '{
    "versioning": {},
    "ownership": {"columns": {
        "title":     {"writer": "editor", "on_violation": "skip"},
        "price":     {"writer": "importer", "on_violation": "skip"},
        "thumbnail": {"writer": "worker", "on_violation": "skip"},
        "labels":    {"strategy": "merge"},
        "stock":     {"strategy": "merge"}}},
    "history": {"keep_versions": 50, "keep_for": "1 year", "ignore_writers": ["worker"]}}');

-- A migration can repeat that: what is as it says is left alone.
SELECT count(*) FROM interlock.configure('product', '{"history": {"keep_versions": 50}}');
-- => 0

INSERT INTO product VALUES (1, 'Chair', 10, 5, NULL, '{wood}');

-- 1. The editor saves.
BEGIN;
SELECT interlock.set_writer('editor');
UPDATE product SET title = 'Oak chair' WHERE id = 1;
COMMIT;

-- The importer saves a new price, with the title that it read before.
BEGIN;
SELECT interlock.set_writer('importer');
UPDATE product SET title = 'Chair', price = 12 WHERE id = 1;
COMMIT;

-- A worker, an ORM in autocommit mode, saves a thumbnail with the title and price that it read at the very beginning.
SET ROLE pim_worker;
UPDATE product SET title = 'Chair', price = 10, thumbnail = 'chair.png' WHERE id = 1;
RESET ROLE;

-- Nothing is lost, and what was skipped is known.
SELECT title, price, thumbnail FROM product;
-- => Oak chair | 12 | chair.png
SELECT writer, owner, columns FROM interlock.skipped_writes WHERE rel = 'product'::regclass ORDER BY writer, owner;
-- => importer | editor | {title}
-- => worker | editor | {title}
-- => worker | importer | {price}

-- 2. Two people have read version 1. One adds a label, the other one a label and three pieces. All of it is kept.
SELECT outcome, current->'labels' AS labels FROM interlock.try_versioned_update('product', 1, 1,
    '{"labels": ["wood", "sale"]}', base => '{"labels": ["wood"]}', on_conflict => 'merge');
-- => merged | ["wood", "sale"]
SELECT outcome, current->'labels' AS labels, current->'stock' AS stock FROM interlock.try_versioned_update('product', 1, 1,
    '{"labels": ["wood", "new"], "stock": 8}', base => '{"labels": ["wood"], "stock": 5}', on_conflict => 'merge');
-- => merged | ["wood", "sale", "new"] | 8

-- 3. The workers share a table of jobs. No two get the same one, and the jobs of one that dies come back after two minutes.
CREATE TABLE job (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, kind text NOT NULL, product int NOT NULL REFERENCES product);
CREATE INDEX ON job (kind, id);
GRANT SELECT, UPDATE, DELETE ON job TO pim_worker;
SELECT interlock.enable_marker('job', '2 min');
INSERT INTO job (kind, product) SELECT 'scale', 1 FROM generate_series(1, 3);

SET ROLE pim_worker;
SELECT key, current->'product' AS product FROM interlock.claim_rows('job', 'worker 1', 2, '{"kind": "scale"}', 'id');
-- => {"id": 1} | 1
-- => {"id": 2} | 1
SELECT key FROM interlock.claim_rows('job', 'worker 2', 2, '{"kind": "scale"}', 'id');
-- => {"id": 3}

-- What a job writes and its end are one transaction: a worker that is late gets IL005, and has written nothing.
BEGIN;
UPDATE product SET thumbnail = 'chair-2.png' WHERE id = 1;
SELECT interlock.delete_row('job', 1, 'worker 1');
COMMIT;
SELECT interlock.delete_row('job', 3, 'worker 1');
-- => ERROR:  "worker 1" does not hold the row of table "job"
RESET ROLE;

-- 4. The editor makes a mistake, and takes it back: a new version with the old values, written through the same rules.
BEGIN;
SELECT interlock.set_writer('editor');
UPDATE product SET title = 'Oka chair' WHERE id = 1;
COMMIT;
BEGIN;
SELECT interlock.set_writer('editor');
SELECT outcome FROM interlock.try_revert_row('product', 1, to_version => 6);
-- => reverted
COMMIT;

-- What people did to the product. The two thumbnails are lines of the operation log.
SELECT operation, writer, array_remove(changed, 'version') AS changed, row_data->>'title' AS title
  FROM interlock.row_history('product', 1);
-- => insert | | | Chair
-- => update | editor | {title} | Oak chair
-- => update | importer | {price} | Oak chair
-- => update | | {labels} | Oak chair
-- => update | | {stock,labels} | Oak chair
-- => update | editor | {title} | Oka chair
-- => update | editor | {title} | Oak chair
SELECT operation, array_remove(columns, 'version') AS columns, writer, reason FROM interlock.operation_log ORDER BY written_at;
-- => update | {thumbnail} | worker | ignore_writers
-- => update | {thumbnail} | worker | ignore_writers
