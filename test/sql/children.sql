-- MRK-6: a change of children moves their parent's version, once for the transaction and at its end, and is refused while
-- the parent is being edited.
\set VERBOSITY terse
CREATE TABLE folder (id int PRIMARY KEY, name text);
CREATE TABLE doc (id int PRIMARY KEY, folder_id int REFERENCES folder, total int);
CREATE TABLE line (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, doc_id int REFERENCES doc ON DELETE CASCADE ON UPDATE CASCADE, qty int);
SELECT interlock.enable_versioning('doc');
SELECT interlock.guard_children('line', 'doc');
INSERT INTO doc SELECT g FROM generate_series(1, 9) g;

-- Which documents have moved since the last look, and by how much if it is not 1
CREATE TABLE seen (id int PRIMARY KEY, version bigint);
INSERT INTO seen SELECT id, version FROM doc;
CREATE FUNCTION moved() RETURNS text LANGUAGE plpgsql AS $$
DECLARE result text;
BEGIN
    SELECT string_agg(d.id || CASE d.version - s.version WHEN 1 THEN '' ELSE '+' || d.version - s.version END, ' ' ORDER BY d.id)
      INTO result
      FROM doc d JOIN seen s USING (id) WHERE d.version <> s.version;
    DELETE FROM seen;
    INSERT INTO seen SELECT id, version FROM doc;
    RETURN COALESCE(result, '-');
END $$;

\echo -- each way to change rows
INSERT INTO line (doc_id, qty) VALUES (1, 1), (2, 1), (1, 2), (NULL, 3);
SELECT moved();
UPDATE line SET qty = qty + 1 WHERE doc_id = 1;
SELECT moved();
UPDATE line SET qty = qty WHERE doc_id = 1; -- which changes nothing
SELECT moved();
UPDATE line SET doc_id = 3 WHERE doc_id = 2;
SELECT moved();
UPDATE line SET doc_id = NULL WHERE doc_id = 3;
SELECT moved();
UPDATE line SET doc_id = 4 WHERE doc_id IS NULL;
SELECT moved();
UPDATE line SET qty = 0 WHERE id < 0;
SELECT moved();
DELETE FROM line WHERE doc_id = 4;
SELECT moved();
COPY line (doc_id, qty) FROM stdin;
1	5
5	5
\.
SELECT moved();
INSERT INTO line (id, doc_id, qty) OVERRIDING SYSTEM VALUE VALUES (1, 6, 0) ON CONFLICT (id) DO NOTHING;
SELECT moved();
INSERT INTO line (id, doc_id, qty) OVERRIDING SYSTEM VALUE VALUES (1, 6, 0) ON CONFLICT (id) DO UPDATE SET qty = 100;
SELECT moved();
MERGE INTO line l USING (VALUES (1, 1), (2, 7)) v (doc_id, qty) ON l.doc_id = v.doc_id
    WHEN MATCHED AND l.qty = 100 THEN DELETE WHEN MATCHED THEN UPDATE SET qty = v.qty WHEN NOT MATCHED THEN INSERT (doc_id, qty) VALUES (v.doc_id, v.qty);
SELECT moved();
WITH gone AS (DELETE FROM line WHERE doc_id = 2 RETURNING qty) INSERT INTO line (doc_id, qty) SELECT 3, qty FROM gone;
SELECT moved();

\echo -- the functions, with and without a statement
SELECT interlock.enable_versioning('line');
SELECT interlock.versioned_update('line', (SELECT min(id) FROM line WHERE doc_id = 3), 1, '{"qty": 8}');
SELECT moved();
SET interlock.direct_execution = off;
SELECT interlock.versioned_update('line', (SELECT min(id) FROM line WHERE doc_id = 3), 2, '{"qty": 9}');
SELECT moved();
RESET interlock.direct_execution;
\echo -- of a versioned row the version says whether it has changed
UPDATE line SET qty = qty WHERE doc_id = 3;
SELECT moved();
SELECT interlock.enable_versioning('line', ignore_columns => '{qty}');
UPDATE line SET qty = 77 WHERE doc_id = 3;
SELECT moved();
SELECT interlock.disable_versioning('line');
\echo -- a marker of a child is no change
SELECT interlock.enable_marker('line');
SELECT locked FROM interlock.lock_row('line', (SELECT min(id) FROM line WHERE doc_id = 3), 'ann');
SELECT moved();
SELECT interlock.save_row('line', (SELECT min(id) FROM line WHERE doc_id = 3), 'ann', '{"qty": 10}');
SELECT moved();
SELECT interlock.disable_marker('line');

\echo -- once in a transaction, with savepoints
BEGIN;
INSERT INTO line (doc_id) VALUES (1);
UPDATE line SET qty = 5 WHERE doc_id = 1;
SAVEPOINT a;
INSERT INTO line (doc_id) VALUES (2), (1);
ROLLBACK TO a;
INSERT INTO line (doc_id) VALUES (3);
RELEASE a;
SAVEPOINT b;
DELETE FROM line WHERE doc_id = 1;
RELEASE b;
SELECT moved(); -- not before the end
COMMIT;
SELECT moved();
\echo -- SET CONSTRAINTS, and back behind it
BEGIN;
INSERT INTO line (doc_id) VALUES (1);
SAVEPOINT a;
INSERT INTO line (doc_id) VALUES (2);
SET CONSTRAINTS ALL IMMEDIATE;
SELECT moved();
INSERT INTO line (doc_id) VALUES (1), (3);
SELECT moved();
ROLLBACK TO a;
SELECT doc.version - s.version AS rolled_back FROM doc JOIN seen s USING (id) WHERE id IN (1, 2, 3) ORDER BY id;
COMMIT;
SELECT moved();
\echo -- a PL/pgSQL block that is rolled back
DO $$
BEGIN
    BEGIN
        INSERT INTO line (doc_id) VALUES (4);
        RAISE division_by_zero;
    EXCEPTION WHEN division_by_zero THEN
        INSERT INTO line (doc_id) VALUES (5);
    END;
END $$;
SELECT moved();

\echo -- a parent that the transaction writes itself
BEGIN;
INSERT INTO doc VALUES (20);
INSERT INTO line (doc_id) VALUES (20);
COMMIT;
SELECT version FROM doc WHERE id = 20;
BEGIN;
UPDATE doc SET total = 1 WHERE id = 1;
INSERT INTO line (doc_id) VALUES (1);
COMMIT;
SELECT moved();
BEGIN;
INSERT INTO line (doc_id) VALUES (1);
SELECT interlock.versioned_update('doc', 1, (SELECT version FROM doc WHERE id = 1), '{"total": 2}') > 0;
COMMIT;
SELECT moved();
BEGIN;
SAVEPOINT a;
UPDATE doc SET total = 3 WHERE id = 1;
ROLLBACK TO a;
INSERT INTO line (doc_id) VALUES (1);
COMMIT;
SELECT moved();
SELECT interlock.enable_versioning('doc', ignore_columns => '{total}');
BEGIN;
UPDATE doc SET total = 4 WHERE id = 1; -- which does not move it
INSERT INTO line (doc_id) VALUES (1);
COMMIT;
SELECT moved();
\echo -- that is deleted, or gets another key
DELETE FROM doc WHERE id = 20;
SELECT count(*) FROM line WHERE doc_id = 20;
UPDATE doc SET id = 30 WHERE id = 5;
SELECT id, version FROM doc WHERE id = 30;
TRUNCATE seen;
INSERT INTO seen SELECT id, version FROM doc;

\echo -- 100,000 rows of one parent
INSERT INTO line (doc_id, qty) SELECT 7, g FROM generate_series(1, 100000) g;
SELECT moved();
UPDATE line SET qty = 0 WHERE doc_id = 7 AND qty <= 20000;
SELECT moved();
DELETE FROM line WHERE doc_id = 7;
SELECT moved();
\echo -- 5,000 rows of as many parents
INSERT INTO doc SELECT g FROM generate_series(1000, 5999) g;
INSERT INTO line (doc_id) SELECT id FROM doc WHERE id >= 1000 ORDER BY id DESC;
SELECT version, count(*) FROM doc WHERE id >= 1000 GROUP BY version;
DELETE FROM line WHERE doc_id >= 1000;
SELECT version, count(*) FROM doc WHERE id >= 1000 GROUP BY version;
DELETE FROM doc WHERE id >= 1000;

\echo -- levels
SELECT interlock.enable_versioning('folder');
SELECT interlock.guard_children('doc', 'folder');
INSERT INTO folder VALUES (1, 'a'), (2, 'b');
UPDATE doc SET folder_id = 1 WHERE id IN (1, 2);
UPDATE doc SET folder_id = 2 WHERE id = 3;
SELECT moved();
SELECT id, version FROM folder ORDER BY id;
INSERT INTO line (doc_id) VALUES (1), (2);
SELECT moved();
SELECT id, version FROM folder ORDER BY id;
BEGIN;
UPDATE doc SET folder_id = 2 WHERE id = 1;
INSERT INTO line (doc_id) VALUES (3), (1);
COMMIT;
SELECT moved();
SELECT id, version FROM folder ORDER BY id;
SELECT interlock.unguard_children('doc', 'folder');

\echo -- the marker of the parent
SELECT interlock.enable_marker('doc');
SELECT locked FROM interlock.lock_row('doc', 1, 'ann', '1 hour');
SELECT moved();
INSERT INTO line (doc_id) VALUES (1);
UPDATE line SET qty = 1 WHERE doc_id = 1;
UPDATE line SET doc_id = 1 WHERE doc_id = 2;
DELETE FROM line WHERE doc_id = 1;
INSERT INTO line (doc_id) VALUES (2);
SELECT moved();
BEGIN;
SELECT interlock.set_holder('ann');
INSERT INTO line (doc_id) VALUES (1);
COMMIT;
SELECT moved();
\set VERBOSITY sqlstate
INSERT INTO line (doc_id) VALUES (1);
\set VERBOSITY terse
BEGIN;
INSERT INTO line (doc_id) SELECT 3;
SELECT locked FROM interlock.lock_row('doc', 3, 'ben');
SAVEPOINT a;
INSERT INTO line (doc_id) VALUES (3); -- asked again by each statement
ROLLBACK TO a;
COMMIT; -- and decided at the end
SELECT interlock.save_row('doc', 1, 'ann', '{"total": 9}') IS NOT NULL;
SELECT moved();
INSERT INTO line (doc_id) VALUES (1);
SELECT moved();
\echo -- a parent that has markers alone
SELECT interlock.disable_versioning('doc');
SELECT locked FROM interlock.lock_row('doc', 1, 'ann', '1 hour');
INSERT INTO line (doc_id) VALUES (1);
INSERT INTO line (doc_id) VALUES (2);
SELECT interlock.unlock_row('doc', 1, 'ann');
INSERT INTO line (doc_id) VALUES (1);
SELECT interlock.disable_marker('doc');
\echo -- and one without versions and markers
INSERT INTO line (doc_id) VALUES (1);
SELECT interlock.enable_versioning('doc');

\echo -- it is no blind update, and has no entry, as only the version moves
SELECT interlock.enable_versioning('doc', blind_updates => 'reject');
SELECT interlock.enable_history('doc');
INSERT INTO line (doc_id) VALUES (1), (1);
SET interlock.direct_execution = off;
INSERT INTO line (doc_id) VALUES (1);
RESET interlock.direct_execution;
SELECT operation, row_data ->> 'id' AS id, version, changed FROM doc_history ORDER BY id;
SELECT moved();

\echo -- a trigger that is disabled is found (VER-16)
ALTER TABLE line DISABLE TRIGGER zzz_interlock_children_doc_id_insert;
SELECT finding, advice FROM interlock.advise() WHERE rel = 'line'::regclass AND severity = 'broken';
ALTER TABLE line ENABLE TRIGGER zzz_interlock_children_doc_id_insert;
SELECT finding, advice FROM interlock.advise() WHERE rel = 'line'::regclass AND severity = 'broken';

\echo -- so is a guard that does not hold, or refuses all writes (VER-16)
CREATE TABLE part (id int PRIMARY KEY, doc_id int REFERENCES doc);
SELECT interlock.guard_children('part', 'doc');
CREATE VIEW found AS SELECT finding, advice, enforced FROM interlock.advise() f JOIN interlock.guards g USING (rel) WHERE rel = 'part'::regclass ORDER BY 1;
DROP TRIGGER zzz_interlock_children_doc_id_update ON part;
SELECT * FROM found;
SELECT interlock.guard_children('part', 'doc', '{doc_id}');
SELECT * FROM found;
ALTER TABLE part DROP CONSTRAINT part_doc_id_fkey;
SELECT * FROM found;
CREATE TABLE plain (id int PRIMARY KEY);
SELECT interlock.enable_versioning('plain');
ALTER TABLE part ADD FOREIGN KEY (doc_id) REFERENCES plain;
SELECT interlock.unguard_children('part', 'doc');
SELECT interlock.guard_children('part', 'plain');
SELECT * FROM found;
SELECT interlock.disable_versioning('plain');
SELECT * FROM found;
DROP VIEW found;
DROP TABLE part, plain;

\echo -- many parents that are children, without deferring anything
CREATE TABLE shelf (id int PRIMARY KEY);
CREATE TABLE box (id int PRIMARY KEY, shelf int REFERENCES shelf, touched int);
CREATE TABLE item (id serial, box int REFERENCES box);
SELECT interlock.enable_versioning('shelf'), interlock.enable_versioning('box');
SELECT interlock.guard_children('box', 'shelf'), interlock.guard_children('item', 'box');
INSERT INTO shelf SELECT generate_series(1, 5000);
INSERT INTO box SELECT id, id FROM shelf;
CREATE TABLE versions AS SELECT s.id, s.version AS shelf, b.version AS box FROM shelf s JOIN box b USING (id);
BEGIN;
SET CONSTRAINTS ALL IMMEDIATE;
INSERT INTO item (box) SELECT id FROM box;
COMMIT;
SELECT s.version - v.shelf AS shelf, b.version - v.box AS box, count(*) FROM versions v JOIN shelf s USING (id) JOIN box b USING (id) GROUP BY 1, 2;
\echo -- what a trigger of a parent changes besides has reached its parents at the end of its statement
CREATE FUNCTION touches() RETURNS trigger LANGUAGE plpgsql AS $$ DECLARE before bigint; BEGIN
    SELECT version INTO before FROM shelf WHERE id = 2;
    INSERT INTO box VALUES (9999, 2);
    RAISE NOTICE 'shelf 2 moved by %', (SELECT version - before FROM shelf WHERE id = 2);
    RETURN NULL;
END $$;
CREATE TRIGGER touches AFTER UPDATE ON box FOR EACH ROW WHEN (OLD.id = 1) EXECUTE FUNCTION touches();
BEGIN;
SET CONSTRAINTS ALL IMMEDIATE;
INSERT INTO item (box) VALUES (1);
COMMIT;
DROP TABLE versions, item, box, shelf;
DROP FUNCTION touches;

\echo -- renamed, and moved to another schema
CREATE SCHEMA other;
ALTER TABLE line RENAME COLUMN doc_id TO document;
ALTER TABLE line RENAME CONSTRAINT line_doc_id_fkey TO belongs;
ALTER TABLE line RENAME TO row;
ALTER TABLE doc RENAME COLUMN id TO number;
ALTER TABLE doc SET SCHEMA other;
ALTER TABLE other.doc RENAME TO document;
INSERT INTO "row" (document) VALUES (1);
SELECT number, version FROM other.document WHERE number = 1;
SELECT interlock.guard_children('row', 'other.document');
ALTER TABLE "row" DROP CONSTRAINT belongs;
INSERT INTO "row" (document) VALUES (1);
SELECT interlock.guard_children('row', 'other.document');
SELECT interlock.unguard_children('row', 'other.document');
INSERT INTO "row" (document) VALUES (1);
DROP TABLE "row";
DROP SCHEMA other CASCADE;
DROP FUNCTION moved;
DROP TABLE seen, folder, doc_history;
