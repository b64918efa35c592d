-- guard_children over tables of each kind: partitioned ones, composite keys, keys of other types and columns, several guards
-- of one row (MRK-6).
\set VERBOSITY terse
SET interlock.direct_execution = on;

\echo -- both are partitioned
CREATE TABLE doc (id int PRIMARY KEY, body text) PARTITION BY RANGE (id);
CREATE TABLE doc_low PARTITION OF doc FOR VALUES FROM (0) TO (100);
CREATE TABLE doc_high (body text, dropped int, id int NOT NULL);
ALTER TABLE doc_high DROP dropped;
ALTER TABLE doc ATTACH PARTITION doc_high FOR VALUES FROM (100) TO (200);
CREATE TABLE line (id int, doc_id int REFERENCES doc ON UPDATE CASCADE ON DELETE CASCADE, qty int) PARTITION BY LIST (qty);
CREATE TABLE line_a PARTITION OF line FOR VALUES IN (1);
CREATE TABLE line_b (qty int, gone text, doc_id int, id int);
ALTER TABLE line_b DROP gone;
SELECT interlock.enable_versioning('doc');
SELECT interlock.guard_children('line', 'doc');
ALTER TABLE line ATTACH PARTITION line_b FOR VALUES IN (2);
INSERT INTO doc VALUES (1), (2), (101), (102);
INSERT INTO line VALUES (1, 1, 1), (2, 101, 2), (3, 101, 1);
SELECT tableoid::regclass, id, version FROM doc ORDER BY id;
UPDATE line SET qty = 2 WHERE id = 1; -- to the other partition
INSERT INTO line_a VALUES (4, 2, 1);
COPY line (id, doc_id, qty) FROM stdin;
5	102	1
6	102	2
\.
SELECT id, version FROM doc ORDER BY id;
BEGIN;
UPDATE doc SET body = 'x' WHERE id = 1;
INSERT INTO line VALUES (7, 1, 1);
COMMIT;
BEGIN;
INSERT INTO doc VALUES (3);
INSERT INTO line VALUES (8, 3, 1);
COMMIT;
BEGIN ISOLATION LEVEL REPEATABLE READ;
INSERT INTO line VALUES (9, 2, 2), (9, 1, 2);
COMMIT;
SELECT id, version FROM doc ORDER BY id;
UPDATE doc SET id = 103 WHERE id = 3;
DELETE FROM doc WHERE id = 102;
SELECT id, version FROM doc ORDER BY id;
\echo -- the marker of a partitioned parent is asked at the end of the transaction
SELECT interlock.enable_marker('doc');
SELECT locked FROM interlock.lock_row('doc', 2, 'ann');
INSERT INTO line VALUES (10, 2, 1);
\echo -- its partition alone
CREATE TABLE note (id int PRIMARY KEY, doc_id int REFERENCES doc_low, body text);
SELECT interlock.guard_children('note', 'doc_low');
INSERT INTO note VALUES (1, 1), (2, 1);
SELECT id, version FROM doc WHERE id = 1;
\echo -- a partition leaves, and its rows are no children any more
ALTER TABLE line DETACH PARTITION line_b;
INSERT INTO line_b (id, doc_id, qty) VALUES (11, 1, 2);
SELECT id, version FROM doc WHERE id = 1;
SELECT interlock.unguard_children('line', 'doc');
INSERT INTO line VALUES (12, 1, 1);
SELECT id, version FROM doc WHERE id = 1;
DROP TABLE note, line, line_b, doc;

\echo -- a composite key, in another order, and MATCH FULL
CREATE TABLE ledger (tenant int, name text COLLATE "C", amount int, UNIQUE (tenant, name));
ALTER TABLE ledger ALTER tenant SET NOT NULL, ALTER name SET NOT NULL;
CREATE TABLE entry (id int PRIMARY KEY, ledger text, tenant int, FOREIGN KEY (ledger, tenant) REFERENCES ledger (name, tenant) MATCH FULL);
SELECT interlock.enable_versioning('ledger');
SELECT interlock.guard_children('entry', 'ledger', '{tenant,ledger}');
INSERT INTO ledger VALUES (1, 'a', 0), (1, 'b', 0), (2, 'a', 0);
INSERT INTO entry VALUES (1, 'a', 1), (2, 'a', 2), (3, NULL, NULL);
INSERT INTO entry VALUES (4, NULL, 1); -- the foreign key refuses it
UPDATE entry SET tenant = 2 WHERE id = 1;
SELECT tenant, name, version FROM ledger ORDER BY tenant, name;
DROP TABLE entry, ledger;

\echo -- keys of other types
CREATE DOMAIN code AS varchar(20);
CREATE DOMAIN numbered AS int CHECK (VALUE > 0);
CREATE TYPE colour AS ENUM ('red', 'green');
CREATE TABLE big (id bigint PRIMARY KEY, name text NOT NULL UNIQUE, price numeric NOT NULL UNIQUE, day timestamp NOT NULL UNIQUE,
    fixed char(5) NOT NULL UNIQUE, colour colour NOT NULL UNIQUE, token uuid NOT NULL UNIQUE, place inet NOT NULL UNIQUE, small int2 NOT NULL UNIQUE);
CREATE TABLE child (id int PRIMARY KEY, big_id numbered REFERENCES big, small int2 REFERENCES big, name code REFERENCES big (name), price int REFERENCES big (price),
    day date REFERENCES big (day), fixed char(5) REFERENCES big (fixed), colour colour REFERENCES big (colour), token uuid REFERENCES big (token),
    place cidr REFERENCES big (place), wide bigint REFERENCES big (small));
SELECT interlock.enable_versioning('big');
SELECT interlock.guard_children('child', 'big', ARRAY[c]::name[])
  FROM unnest('{big_id,small,name,price,day,fixed,colour,token,place,wide}'::name[]) c;
INSERT INTO big VALUES (1, 'one', 1.0, '2026-01-01', 'abc', 'red', '00000000-0000-0000-0000-000000000001', '10.0.0.0/8', 1),
    (2, 'two', 2.00, '2026-01-02', 'de', 'green', '00000000-0000-0000-0000-000000000002', '11.0.0.0/8', 2);
INSERT INTO child (id, big_id) VALUES (1, 1);
INSERT INTO child (id, small) VALUES (2, 1);
INSERT INTO child (id, name) VALUES (3, 'one');
INSERT INTO child (id, price) VALUES (4, 1);
INSERT INTO child (id, day) VALUES (5, '2026-01-01');
INSERT INTO child (id, fixed) VALUES (6, 'abc');
INSERT INTO child (id, colour) VALUES (7, 'red');
INSERT INTO child (id, token) VALUES (8, '00000000-0000-0000-0000-000000000001');
INSERT INTO child (id, place) VALUES (9, '10.0.0.0/8');
INSERT INTO child (id, wide) VALUES (10, 1);
SELECT id, version FROM big ORDER BY id; -- 11
\echo -- a row that is named by several keys moves once
INSERT INTO child VALUES (11, 2, 2, 'two', 2, '2026-01-02', 'de', 'green', '00000000-0000-0000-0000-000000000002', '11.0.0.0/8', 2);
SELECT id, version FROM big ORDER BY id;
INSERT INTO child (id, wide) VALUES (12, 100000);
INSERT INTO child (id, name) VALUES (13, 'nowhere');
\echo -- the type of a key changes meanwhile
BEGIN;
INSERT INTO child (id, big_id) VALUES (14, 1);
ALTER TABLE big ALTER id TYPE int;
COMMIT;
ALTER TABLE big ALTER id TYPE int;
INSERT INTO child (id, big_id) VALUES (14, 1);
SELECT id, version FROM big ORDER BY id;
DROP TABLE child, big;
DROP DOMAIN code, numbered;
DROP TYPE colour;

\echo -- one column names rows of two tables
CREATE TABLE one (id int PRIMARY KEY);
CREATE TABLE two (id int PRIMARY KEY);
CREATE TABLE shared (id int PRIMARY KEY, other int REFERENCES one REFERENCES two);
SELECT interlock.enable_versioning('one'), interlock.enable_versioning('two');
SELECT interlock.guard_children('shared', 'one'), interlock.guard_children('shared', 'two');
INSERT INTO one VALUES (1);
INSERT INTO two VALUES (1);
INSERT INTO shared VALUES (1, 1);
SELECT one.version, two.version FROM one, two;
SELECT interlock.unguard_children('shared', 'one');
INSERT INTO shared VALUES (2, 1);
SELECT one.version, two.version FROM one, two;
\echo -- the parent goes, and the guard with it
DROP TABLE two;
DROP TABLE two CASCADE;
INSERT INTO shared VALUES (3, 1);
SELECT count(*) FROM pg_trigger WHERE tgrelid = 'shared'::regclass AND NOT tgisinternal;
DROP TABLE shared, one;

\echo -- columns that begin alike
CREATE TABLE one (id int PRIMARY KEY);
CREATE TABLE two (id int PRIMARY KEY);
CREATE TABLE alike (id int PRIMARY KEY, customer_of_the_document_that_was_billed_a int REFERENCES one, customer_of_the_document_that_was_billed_b int REFERENCES two,
    customer_of_the_document_that_was_billed_c int REFERENCES two);
SELECT interlock.enable_versioning('one'), interlock.enable_versioning('two');
SELECT interlock.guard_children('alike', 'one'), interlock.guard_children('alike', 'two', '{customer_of_the_document_that_was_billed_b}'),
       interlock.guard_children('alike', 'two', '{customer_of_the_document_that_was_billed_c}');
SELECT count(*) FROM pg_trigger WHERE tgrelid = 'alike'::regclass AND NOT tgisinternal;
INSERT INTO one VALUES (1);
INSERT INTO two VALUES (1), (2);
INSERT INTO alike VALUES (1, 1, 1, 2);
SELECT one.version, two.id, two.version FROM one, two ORDER BY two.id;
SELECT interlock.unguard_children('alike', 'one');
SELECT count(*) FROM pg_trigger WHERE tgrelid = 'alike'::regclass AND NOT tgisinternal;
DROP TABLE alike, one, two;

\echo -- in the transaction of a change, too; unguard_children moves the parents before
CREATE TABLE doc (id int PRIMARY KEY);
CREATE TABLE line (id int PRIMARY KEY, doc_id int REFERENCES doc);
SELECT interlock.enable_versioning('doc');
SELECT interlock.guard_children('line', 'doc');
INSERT INTO doc VALUES (1);
BEGIN;
INSERT INTO line VALUES (1, 1);
SELECT interlock.unguard_children('line', 'doc');
COMMIT;
SELECT version FROM doc;
SELECT interlock.guard_children('line', 'doc');
BEGIN;
INSERT INTO line VALUES (2, 1);
DROP TRIGGER zzz_interlock_children_doc_id_insert ON line;
COMMIT;
BEGIN;
INSERT INTO line VALUES (2, 1);
SET CONSTRAINTS ALL IMMEDIATE;
DROP TRIGGER zzz_interlock_children_doc_id_insert ON line;
COMMIT;
SELECT version FROM doc;
BEGIN;
UPDATE line SET id = 3 WHERE id = 2;
DROP TABLE doc CASCADE;
COMMIT;
SELECT id FROM line ORDER BY id;
DROP TABLE line;

\echo -- tables that inherit have no guard, as they have no foreign key
CREATE TABLE base (id int PRIMARY KEY);
CREATE TABLE derived () INHERITS (base);
CREATE TABLE leaf (id int PRIMARY KEY, base_id int REFERENCES base);
CREATE TABLE derived_leaf () INHERITS (leaf);
SELECT interlock.enable_versioning('base');
SELECT interlock.guard_children('leaf', 'base');
INSERT INTO base VALUES (1);
INSERT INTO derived VALUES (1);
INSERT INTO leaf VALUES (1, 1);
INSERT INTO derived_leaf VALUES (2, 1);
SELECT tableoid::regclass, version FROM base ORDER BY 1;
UPDATE leaf SET id = id + 10;
SELECT tableoid::regclass, version FROM base ORDER BY 1;
DROP TABLE leaf, base CASCADE;

\echo -- temporary tables
CREATE TEMP TABLE sheet (id int PRIMARY KEY);
CREATE TEMP TABLE cell (id int PRIMARY KEY, sheet_id int REFERENCES sheet);
SELECT interlock.enable_versioning('sheet');
SELECT interlock.guard_children('cell', 'sheet');
INSERT INTO sheet VALUES (1);
INSERT INTO cell VALUES (1, 1);
SELECT version FROM sheet;
DROP TABLE cell, sheet;

\echo -- a time as version, an unlogged table, and a deferred foreign key
CREATE UNLOGGED TABLE page (id int PRIMARY KEY, updated timestamptz NOT NULL DEFAULT '2026-01-01');
CREATE UNLOGGED TABLE block (id int PRIMARY KEY, page_id int REFERENCES page DEFERRABLE INITIALLY DEFERRED);
SELECT interlock.enable_versioning('page', 'updated');
SELECT interlock.guard_children('block', 'page');
BEGIN;
INSERT INTO block VALUES (1, 1);
INSERT INTO page VALUES (1);
COMMIT;
SELECT updated = '2026-01-01' AS is_new FROM page;
INSERT INTO block VALUES (2, 1);
SELECT updated > '2026-01-01' AS has_moved FROM page;
DROP TABLE block, page;

\echo -- a foreign table among the partitions
CREATE TABLE root (id int PRIMARY KEY);
CREATE TABLE many (id int, root_id int REFERENCES root) PARTITION BY RANGE (id);
SELECT interlock.enable_versioning('root');
CREATE FOREIGN DATA WRAPPER nowhere;
CREATE SERVER nowhere FOREIGN DATA WRAPPER nowhere;
CREATE FOREIGN TABLE far (id int, root_id int) SERVER nowhere;
SELECT interlock.guard_children('far', 'root');
SELECT interlock.guard_children('many', 'far');
DROP FOREIGN DATA WRAPPER nowhere CASCADE;
DROP TABLE many, root;

-- a foreign key with a period (18) names several rows
DO $$ BEGIN
    IF current_setting('server_version_num')::int < 180000 THEN RAISE 'table "booking" has no foreign key to table "room"'; END IF;
    EXECUTE 'CREATE TABLE room (r int4range, v daterange, PRIMARY KEY (r, v WITHOUT OVERLAPS))';
    EXECUTE 'CREATE UNIQUE INDEX ON room (r, v)';
    EXECUTE 'CREATE TABLE booking (id int PRIMARY KEY, r int4range, v daterange, FOREIGN KEY (r, PERIOD v) REFERENCES room)';
    PERFORM interlock.enable_versioning('room');
    PERFORM interlock.guard_children('booking', 'room');
EXCEPTION WHEN OTHERS THEN RAISE NOTICE '%', sqlerrm;
END $$;
