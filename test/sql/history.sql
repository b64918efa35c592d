-- Version history: what is recorded, by whom, in which order.
\set VERBOSITY terse
CREATE ROLE history_owner;
CREATE ROLE history_writer;
CREATE ROLE history_reader;
GRANT CREATE, USAGE ON SCHEMA public TO history_owner;
-- The entries without what differs from run to run
CREATE FUNCTION entries(history regclass) RETURNS TABLE (key jsonb, version bigint, operation text, row_data jsonb, changed text[], before jsonb)
    LANGUAGE plpgsql AS $$ BEGIN RETURN QUERY EXECUTE
    format('SELECT key, version, operation, row_data, changed, before FROM %s ORDER BY max(id) OVER (PARTITION BY transaction), command, id', history); END $$;

-- Every write of every kind, with the counter; HIS-10: each update, not what is left of them
SET ROLE history_owner;
CREATE TABLE doc (id int PRIMARY KEY, title text, price numeric);
SELECT interlock.enable_versioning('doc');
INSERT INTO doc VALUES (1, 'before', 1);
SELECT interlock.enable_history('doc');
\d doc_history
INSERT INTO doc VALUES (2, 'two', 2), (3, 'three', NULL);
UPDATE doc SET price = price + 1;
UPDATE doc SET title = title WHERE id = 3; -- no entry
DELETE FROM doc WHERE id = 3;
SELECT * FROM entries('doc_history');
SELECT version, changed_at > now() - interval '1 min' AS recent, writer, operation, row_data, changed, before, changed_by, id
  FROM interlock.row_history('doc', 3);
-- keys as literals, typed, jsonb; of a row that never was
SELECT (SELECT count(*) FROM interlock.row_history('doc', '2')), (SELECT count(*) FROM interlock.row_history('doc', 2::bigint)),
       (SELECT count(*) FROM interlock.row_history('doc', '{"id": 2}'::jsonb)), (SELECT count(*) FROM interlock.row_history('doc', 99));

-- HIS-9, C21: each version, also within a transaction, with and without savepoints
TRUNCATE doc_history RESTART IDENTITY;
BEGIN; INSERT INTO doc VALUES (4, 'a', 0); UPDATE doc SET title = 'b' WHERE id = 4; UPDATE doc SET title = 'c' WHERE id = 4; DELETE FROM doc WHERE id = 4; COMMIT;
BEGIN; INSERT INTO doc VALUES (5, 'a', 0); SAVEPOINT s; UPDATE doc SET title = 'b' WHERE id = 5; RELEASE s; UPDATE doc SET title = 'c' WHERE id = 5;
SAVEPOINT s; UPDATE doc SET title = 'never' WHERE id = 5; ROLLBACK TO s; SAVEPOINT s; DELETE FROM doc WHERE id = 5; RELEASE s; COMMIT;
BEGIN; UPDATE doc SET title = 'never'; ROLLBACK;
SELECT key, operation, row_data->>'title' AS title FROM entries('doc_history');

-- VER-15, C4: an INSERT that does nothing is none; one that updates is an update; MERGE, COPY and RETURNING are writes like others
TRUNCATE doc_history RESTART IDENTITY;
INSERT INTO doc VALUES (1, 'x') ON CONFLICT DO NOTHING;
INSERT INTO doc VALUES (1, 'x') ON CONFLICT (id) DO UPDATE SET title = excluded.title WHERE false;
INSERT INTO doc VALUES (1, 'upserted') ON CONFLICT (id) DO UPDATE SET title = excluded.title;
MERGE INTO doc USING (VALUES (1, 'merged'), (6, 'new')) v (id, title) ON doc.id = v.id
    WHEN MATCHED THEN UPDATE SET title = v.title WHEN NOT MATCHED THEN INSERT (id, title) VALUES (v.id, v.title);
COPY doc (id, title) FROM stdin;
7	copied
\.
WITH gone AS (DELETE FROM doc WHERE id > 5 RETURNING *) INSERT INTO doc (id, title) SELECT id + 10, title FROM gone;
SELECT * FROM entries('doc_history');

-- A key that changes: the old key ends and the new one begins
TRUNCATE doc_history RESTART IDENTITY;
UPDATE doc SET id = 20, title = 'moved' WHERE id = 16;
UPDATE doc SET id = 16 WHERE id = 20;
SELECT key, operation, row_data->'id' AS id, changed, before FROM entries('doc_history');
SELECT operation FROM interlock.row_history('doc', 16);
SELECT operation FROM interlock.row_history('doc', 20);

-- Who: the writer and the role; a write by nobody in particular has no writer
RESET ROLE;
SELECT interlock.grant_writer('robot', 'history_writer');
GRANT SELECT, INSERT, UPDATE, DELETE, TRUNCATE ON doc TO history_writer, history_reader;
TRUNCATE doc_history;
SET ROLE history_writer;
BEGIN; SELECT interlock.set_writer('robot'); UPDATE doc SET title = 'by robot' WHERE id = 1; COMMIT;
UPDATE doc SET title = 'by nobody' WHERE id = 1;
-- writers need nothing on the history table, and may not read it
SELECT * FROM doc_history;
\set VERBOSITY default
SELECT * FROM interlock.row_history('doc', 1);
SELECT interlock.row_as_of('doc', 1, now());
\set VERBOSITY terse
INSERT INTO doc_history (key) VALUES ('1');
RESET ROLE;
SELECT writer, changed_by, row_data->>'title' AS title FROM interlock.row_history('doc', 1);
-- a writer set within a SECURITY DEFINER function counts there
CREATE FUNCTION rename_doc(int, text) RETURNS void LANGUAGE plpgsql SECURITY DEFINER AS
    $$ BEGIN PERFORM interlock.set_writer('definer'); UPDATE doc SET title = $2 WHERE id = $1; END $$;
SET ROLE history_writer;
SELECT rename_doc(1, 'by definer');
RESET ROLE;
SELECT writer, changed_by FROM interlock.row_history('doc', 1) ORDER BY id DESC LIMIT 1;
-- readers: by GRANT, and under the policies that the owner makes
GRANT SELECT ON doc_history TO history_reader;
SET ROLE history_reader;
SELECT count(*) FROM interlock.row_history('doc', 1);
SET ROLE history_owner;
ALTER TABLE doc_history ENABLE ROW LEVEL SECURITY;
ALTER TABLE doc_history FORCE ROW LEVEL SECURITY;
CREATE POLICY no_robots ON doc_history FOR SELECT USING (writer IS NULL);
SET ROLE history_reader;
SELECT count(*) FROM interlock.row_history('doc', 1);
SET ROLE history_writer;
UPDATE doc SET title = 'past the policies' WHERE id = 1;
SET ROLE history_owner;
SELECT count(*) FROM interlock.row_history('doc', 1);
ALTER TABLE doc_history NO FORCE ROW LEVEL SECURITY;
ALTER TABLE doc_history DISABLE ROW LEVEL SECURITY;
SELECT count(*) FROM interlock.row_history('doc', 1);

-- TRUNCATE, by itself, of a table that refers and by CASCADE
RESET ROLE;
CREATE TABLE doc_note (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, doc int REFERENCES doc ON DELETE CASCADE ON UPDATE CASCADE, note text);
ALTER TABLE doc_note OWNER TO history_owner;
SELECT interlock.enable_history('doc_note');
SELECT tableowner FROM pg_tables WHERE tablename = 'doc_note_history';
INSERT INTO doc_note (doc, note) VALUES (1, 'a'), (2, 'b'), (2, 'c');
TRUNCATE doc_history RESTART IDENTITY;
TRUNCATE doc_note_history;
TRUNCATE doc;
BEGIN; UPDATE doc_note SET note = 'last' WHERE id = 3; TRUNCATE doc CASCADE; SELECT key, operation, row_data FROM entries('doc_note_history'); ROLLBACK;
SELECT count(*) FROM doc_history;
BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM doc_note; TRUNCATE doc_note RESTART IDENTITY; COMMIT;
SELECT key, operation, row_data FROM entries('doc_note_history');
TRUNCATE doc_note_history;

-- Foreign keys that cascade
INSERT INTO doc_note (doc, note) VALUES (1, 'a'), (2, 'b');
UPDATE doc SET id = 30 WHERE id = 1;
DELETE FROM doc WHERE id = 2;
SELECT operation, row_data FROM entries('doc_note_history');

-- HIS-11, C20: what is stored is what is recorded, whatever triggers do to the row on the way
CREATE FUNCTION add_to_price() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.price := NEW.price * 10 + TG_ARGV[0]::int; RETURN NEW; END $$;
CREATE TRIGGER "000_first" BEFORE INSERT OR UPDATE ON doc FOR EACH ROW EXECUTE FUNCTION add_to_price('1');
CREATE TRIGGER zzy_last BEFORE INSERT OR UPDATE ON doc FOR EACH ROW EXECUTE FUNCTION add_to_price('2');
TRUNCATE doc_history RESTART IDENTITY;
INSERT INTO doc VALUES (40, 'triggers', 7);
UPDATE doc SET title = 'again' WHERE id = 40;
SELECT row_data = to_jsonb(doc) AS same, operation, row_data->'price' AS price FROM doc_history h, doc WHERE doc.id = 40 AND h.operation = 'update'
UNION ALL SELECT NULL, operation, row_data->'price' FROM doc_history WHERE operation = 'insert';
DROP TRIGGER "000_first" ON doc; DROP TRIGGER zzy_last ON doc;
-- a BEFORE trigger that lets nothing be written
CREATE FUNCTION write_nothing() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';
CREATE TRIGGER nothing BEFORE UPDATE OR DELETE ON doc FOR EACH ROW EXECUTE FUNCTION write_nothing();
TRUNCATE doc_history RESTART IDENTITY;
UPDATE doc SET title = 'x'; DELETE FROM doc;
SELECT count(*) FROM doc_history;
DROP TRIGGER nothing ON doc;

-- AFTER triggers that write the same row again, or others of the statement: entries are in the order of the versions
CREATE TABLE chain (id int PRIMARY KEY, n int, note text);
SELECT interlock.enable_versioning('chain'), interlock.enable_history('chain');
CREATE FUNCTION again() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    IF NEW.note = 'self' THEN UPDATE chain SET note = 'self again' WHERE id = NEW.id; END IF;
    IF NEW.note = 'others' AND NEW.id = 1 THEN
        UPDATE chain SET n = n + 100 WHERE id = 2; UPDATE chain SET n = n + 100 WHERE id = 2;
        DELETE FROM chain WHERE id = 3; INSERT INTO chain VALUES (3, 0, 'born again'); END IF;
    RETURN NULL; END $$;
CREATE TRIGGER "000_a" AFTER INSERT OR UPDATE ON chain FOR EACH ROW EXECUTE FUNCTION again();
INSERT INTO chain VALUES (1, 0, 'self');
SELECT version, operation, row_data->>'note' AS note FROM interlock.row_history('chain', 1);
INSERT INTO chain VALUES (2, 0, ''), (3, 0, ''), (4, 0, '');
TRUNCATE chain_history RESTART IDENTITY;
BEGIN; UPDATE chain SET n = 1; UPDATE chain SET note = 'others'; COMMIT;
SELECT key, version, operation, row_data->'n' AS n, row_data->>'note' AS note FROM chain_history ORDER BY key, transaction::text, command, id;
-- and the same with what is deleted by the statement
CREATE FUNCTION bring_back() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    IF OLD.id = 1 THEN INSERT INTO chain VALUES (2, 5, 'back'); END IF; RETURN NULL; END $$;
CREATE TRIGGER b AFTER DELETE ON chain FOR EACH ROW EXECUTE FUNCTION bring_back();
TRUNCATE chain_history RESTART IDENTITY;
DELETE FROM chain WHERE id IN (1, 2);
SELECT key, operation, row_data->>'note' AS note FROM chain_history ORDER BY key, transaction::text, command, id;
-- a BEFORE trigger that replaces: its own command is later than the one whose row it makes way for
CREATE FUNCTION make_way() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN DELETE FROM chain WHERE id = NEW.id; RETURN NEW; END $$;
CREATE TRIGGER c BEFORE INSERT ON chain FOR EACH ROW WHEN (NEW.note = 'replaces') EXECUTE FUNCTION make_way();
DROP TRIGGER b ON chain;
INSERT INTO chain VALUES (4, 9, 'replaces');
SELECT operation, row_data->>'note' AS note FROM interlock.row_history('chain', 4) ORDER BY id DESC LIMIT 2;
SELECT interlock.row_as_of('chain', 4, 'infinity')->>'note' AS note;
-- keys that make room for each other while a trigger writes elsewhere
CREATE FUNCTION bump() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN IF NEW.id <> OLD.id THEN UPDATE chain SET n = n + 1 WHERE id = 100; END IF; RETURN NULL; END $$;
DROP TRIGGER "000_a" ON chain; DROP TRIGGER c ON chain; DELETE FROM chain;
INSERT INTO chain VALUES (3, 3, ''), (2, 2, ''), (1, 1, ''), (100, 0, '');
CREATE TRIGGER d AFTER UPDATE ON chain FOR EACH ROW EXECUTE FUNCTION bump();
UPDATE chain SET id = id + 1 WHERE id < 100;
SELECT id, n, interlock.row_as_of('chain', id, 'infinity') = to_jsonb(chain) AS same FROM chain ORDER BY 1;
SELECT operation FROM interlock.row_history('chain', 3);
-- the newest entry is not the one with the highest id, and stays
SELECT interlock.enable_history('chain', 1);
CREATE FUNCTION ahead() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN IF NEW.n = 50 AND NEW.id = 2 THEN UPDATE chain SET n = 51 WHERE id = 3; END IF; RETURN NULL; END $$;
CREATE TRIGGER e AFTER UPDATE ON chain FOR EACH ROW EXECUTE FUNCTION ahead();
DELETE FROM chain WHERE id > 3; UPDATE chain SET n = 40; UPDATE chain SET n = 50;
SELECT trimmed > 0 AS trimmed FROM interlock.trim_history('chain');
SELECT id, n, interlock.row_as_of('chain', id, 'infinity')->'n' AS recorded FROM chain ORDER BY 1;
SELECT interlock.row_as_of('chain', 3, 'infinity')->'n' AS n, count(*) FROM interlock.row_history('chain', 3);
DROP TABLE chain, chain_history;

-- row_as_of: from the entries, from the first one after the time, from the table
RESET ROLE;
CREATE TABLE price (id int PRIMARY KEY, amount int, note text);
INSERT INTO price VALUES (1, 10, 'old'), (2, 20, 'old'), (3, 30, 'old');
SELECT clock_timestamp() AS before_all \gset
SELECT interlock.enable_history('price');
SELECT clock_timestamp() AS t0 \gset
UPDATE price SET amount = 11 WHERE id = 1;
SELECT clock_timestamp() AS t1 \gset
UPDATE price SET amount = 12, note = NULL WHERE id = 1; DELETE FROM price WHERE id = 2; INSERT INTO price VALUES (4, 40, 'new');
SELECT clock_timestamp() AS t2 \gset
INSERT INTO price VALUES (2, 21, 'again'); UPDATE price SET id = 5 WHERE id = 4; TRUNCATE price;
SELECT clock_timestamp() AS t3 \gset
CREATE FUNCTION prices(at timestamptz) RETURNS TABLE (id int, state jsonb) LANGUAGE sql AS
    'SELECT g, interlock.row_as_of(''price'', g, at) FROM generate_series(1, 5) g';
SELECT b.id, b.state AS before_all, t0.state AS t0, t1.state AS t1 FROM prices(:'before_all') b JOIN prices(:'t0') t0 USING (id) JOIN prices(:'t1') t1 USING (id) ORDER BY 1;
SELECT t2.id, t2.state AS t2, t3.state AS t3 FROM prices(:'t2') t2 JOIN prices(:'t3') t3 USING (id) ORDER BY 1;
SELECT interlock.row_as_of('price', '2', 'infinity'), interlock.row_as_of('price', 2, '-infinity');
-- while history was off nothing is known, and what it knew before is not taken for later
INSERT INTO price VALUES (1, 1, 'on');
SELECT interlock.disable_history('price');
UPDATE price SET note = 'off';
SELECT interlock.enable_history('price');
SELECT clock_timestamp() AS t4 \gset
UPDATE price SET note = 'on again';
SELECT interlock.row_as_of('price', 1, :'t4'), interlock.row_as_of('price', 1, now());
SELECT count(*) FROM price_history;
-- C11: without the trigger there is nothing
SET session_replication_role = replica; UPDATE price SET note = 'replica'; RESET session_replication_role;
ALTER TABLE price DISABLE TRIGGER "000_interlock_history"; UPDATE price SET note = 'disabled'; ALTER TABLE price ENABLE TRIGGER "000_interlock_history";
SELECT note FROM price;
SELECT row_data->>'note' AS note FROM interlock.row_history('price', 1) ORDER BY id DESC LIMIT 1;
-- the same again: it goes on without a break; another retention begins anew, and what came before it is not counted
SELECT interlock.enable_history('price', 1);
UPDATE price SET note = 'once' WHERE id = 1;
SELECT interlock.enable_history('price', 1);
SELECT interlock.row_as_of('price', 1, clock_timestamp())->>'note' AS note;
SELECT interlock.enable_history('price', 2);
SELECT interlock.row_as_of('price', 1, clock_timestamp())->>'note' AS from_the_table, count(*) > 2 AS older FROM price_history;
-- another type of the key is another key
SELECT interlock.enable_history('price');
SELECT clock_timestamp() AS t6 \gset
ALTER TABLE price ALTER id TYPE text;
SELECT interlock.row_as_of('price', '1'::text, :'t6');
-- where policies may hide entries nothing is concluded from those that are missing
GRANT SELECT ON price, price_history TO history_reader;
ALTER TABLE price ALTER id TYPE int USING id::int;
SELECT interlock.enable_history('price');
SELECT clock_timestamp() AS t7 \gset
UPDATE price SET note = 'eight' WHERE id = 1;
SELECT interlock.row_as_of('price', 1, :'t7')->>'note' AS note;
ALTER TABLE price_history ENABLE ROW LEVEL SECURITY;
CREATE POLICY nothing ON price_history USING (false);
SET ROLE history_reader;
SELECT interlock.row_as_of('price', 1, :'t7');
RESET ROLE;
DROP TABLE price, price_history; DROP FUNCTION prices;

-- Retention: among the newest, or young enough; both functions of it
CREATE TABLE kept (id int PRIMARY KEY, n int);
SELECT interlock.enable_history('kept', 2);
INSERT INTO kept VALUES (1, 0), (2, 0);
DO $$ BEGIN FOR i IN 1..5 LOOP UPDATE kept SET n = i WHERE id = 1; END LOOP; END $$;
DELETE FROM kept WHERE id = 2;
SELECT count(*) FROM kept_history;
SELECT * FROM interlock.trim_history('kept', 1);
SELECT * FROM interlock.trim_history();
SELECT key, operation, row_data->'n' AS n FROM kept_history ORDER BY id;
-- a key with fewer entries than that was never trimmed, one with as many may have been
SELECT interlock.row_as_of('kept', 1, now() - interval '1 us'), interlock.row_as_of('kept', 2, now());
SELECT interlock.enable_history('kept', 2, '1 day');
DO $$ BEGIN FOR i IN 6..9 LOOP UPDATE kept SET n = i WHERE id = 1; END LOOP; END $$;
SELECT trimmed FROM interlock.trim_history('kept');
UPDATE kept_history SET changed_at = changed_at - interval '2 days' WHERE id <= (SELECT id FROM kept_history WHERE row_data->'n' = '8' );
SELECT trimmed FROM interlock.trim_history('kept');
SELECT key, operation, row_data->'n' AS n FROM kept_history ORDER BY id;
SELECT interlock.enable_history('kept', keep_for => '1 day');
UPDATE kept_history SET changed_at = changed_at - interval '2 days';
SELECT trimmed FROM interlock.trim_history('kept');
SELECT count(*) FROM kept_history;
SELECT encode(tgargs, 'escape') LIKE '%86400000000 microseconds%' AS in_the_trigger FROM pg_trigger WHERE tgrelid = 'kept'::regclass AND tgname = '000_interlock_history';
-- settled entries are left behind for good: the position is past them
UPDATE kept SET n = 10; UPDATE kept_history SET changed_at = changed_at - interval '1 hour';
SELECT interlock.enable_history('kept', 1);
SELECT trimmed FROM interlock.trim_history('kept');
SELECT reached > 0 AS passed FROM interlock_internal.history_position WHERE history = 'kept_history'::regclass;
-- unless its owner has begun the numbers anew
TRUNCATE kept_history RESTART IDENTITY;
UPDATE kept SET n = 11; UPDATE kept SET n = 12;
SELECT trimmed FROM interlock.trim_history('kept');
-- the position stays behind an entry that others may still come before, over all batches
SELECT interlock.enable_history('kept', keep_for => '10 s');
TRUNCATE kept_history RESTART IDENTITY;
INSERT INTO kept SELECT g, 0 FROM generate_series(100, 2000) g;
UPDATE kept_history SET changed_at = changed_at - CASE WHEN id = 1 THEN interval '30 s' ELSE '1 hour' END;
SELECT trimmed FROM interlock.trim_history('kept');
SELECT reached FROM interlock_internal.history_position WHERE history = 'kept_history'::regclass;
DELETE FROM kept WHERE id >= 100;
SELECT interlock.enable_history('kept');
SELECT * FROM interlock.trim_history('kept');
SELECT * FROM interlock.trim_history();
-- what others have put on the history table does not run with its owner's rights
SELECT interlock.enable_history('doc', 1);
GRANT TRIGGER ON doc_history TO history_writer;
GRANT CREATE ON SCHEMA public TO history_writer;
SET ROLE history_writer;
CREATE FUNCTION spy() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RAISE NOTICE ''%'', current_user; RETURN OLD; END';
CREATE TRIGGER spy BEFORE DELETE ON doc_history FOR EACH ROW EXECUTE FUNCTION spy();
SET ROLE history_owner;
SELECT * FROM interlock.trim_history('doc');
RESET ROLE;
-- a table alone fails, the others are trimmed
SELECT interlock.enable_history('kept', 1);
UPDATE kept SET n = 20; UPDATE kept SET n = 21;
SELECT * FROM interlock.trim_history();
-- nor does it run when an entry is written
DROP TRIGGER spy ON doc_history;
SET ROLE history_writer;
CREATE TRIGGER spy BEFORE INSERT ON doc_history FOR EACH ROW EXECUTE FUNCTION spy();
INSERT INTO doc VALUES (60, 'spied on');
RESET ROLE;
DROP TRIGGER spy ON doc_history;
-- what the owner has put there runs with his rights, and not by the writer's search_path
SET ROLE history_owner;
CREATE TABLE copies (operation text);
CREATE FUNCTION copy_entry() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN INSERT INTO copies VALUES (NEW.operation); RETURN NEW; END $$;
CREATE TRIGGER copy BEFORE INSERT ON doc_history FOR EACH ROW EXECUTE FUNCTION copy_entry();
RESET ROLE;
CREATE SCHEMA spies AUTHORIZATION history_writer;
SET ROLE history_writer;
CREATE TABLE spies.copies (operation text); GRANT USAGE ON SCHEMA spies TO PUBLIC; GRANT ALL ON spies.copies TO PUBLIC;
SET search_path = spies, public;
INSERT INTO doc VALUES (60, 'spied on');
RESET search_path;
RESET ROLE;
DROP TABLE spies.copies; DROP SCHEMA spies;
ALTER FUNCTION copy_entry() SET search_path = public, pg_temp;
INSERT INTO doc VALUES (60, 'copied');
SELECT * FROM copies;
DROP TRIGGER copy ON doc_history;
-- an entry that a trigger drops is an error
CREATE FUNCTION drop_entry() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';
CREATE TRIGGER drops BEFORE INSERT ON doc_history FOR EACH ROW EXECUTE FUNCTION drop_entry();
UPDATE doc SET title = 'dropped' WHERE id = 60;
SELECT title FROM doc WHERE id = 60;
DROP TRIGGER drops ON doc_history;
-- triggers that others forge FROM the history table trim nothing of it, and garbage in their arguments stops nobody
SET ROLE history_writer;
CREATE TABLE bogus (id int PRIMARY KEY);
CREATE CONSTRAINT TRIGGER forged AFTER INSERT ON bogus FROM doc_history FOR EACH ROW EXECUTE FUNCTION interlock_internal.history_trigger('', '1 microseconds', 'nonsense', 'notify off', 'ignore markers', '', '1 entries per whole row', '0 ignored columns', '0 ignored writers');
SELECT * FROM interlock.trim_history('bogus');
CREATE TABLE bogus2 (id int PRIMARY KEY);
CREATE CONSTRAINT TRIGGER forged AFTER INSERT ON bogus2 FROM bogus2 FOR EACH ROW EXECUTE FUNCTION interlock_internal.history_trigger('-99999999999999999999', 'x', 'nonsense', 'notify off', 'ignore markers', '', '1 entries per whole row', '0 ignored columns', '0 ignored writers');
INSERT INTO bogus2 VALUES (1);
RESET ROLE;
SELECT count(*) > 0 AS still_there FROM doc_history;
UPDATE kept SET n = 22;
SELECT rel FROM interlock.trim_history();
DROP TABLE bogus, bogus2, copies;
-- nobody has a privilege on a new history table, whatever the defaults are
CREATE TABLE secret (id int PRIMARY KEY);
ALTER DEFAULT PRIVILEGES GRANT ALL ON TABLES TO PUBLIC, history_reader;
ALTER DEFAULT PRIVILEGES GRANT ALL ON SEQUENCES TO history_reader;
SELECT interlock.enable_history('secret');
ALTER DEFAULT PRIVILEGES REVOKE ALL ON TABLES FROM PUBLIC, history_reader;
ALTER DEFAULT PRIVILEGES REVOKE ALL ON SEQUENCES FROM history_reader;
SELECT relname, count(*) FILTER (WHERE a.grantee <> relowner) AS others FROM pg_class c, aclexplode(relacl) a WHERE relname LIKE 'secret_history%' GROUP BY 1 ORDER BY 1;
DROP TABLE secret, secret_history;
-- what comes before TRUNCATE and still writes is captured, too
CREATE TABLE last (id int PRIMARY KEY, n int);
SELECT interlock.enable_history('last'); INSERT INTO last VALUES (1, 0);
CREATE FUNCTION write_first() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN UPDATE last SET n = 1; RETURN NULL; END';
CREATE TRIGGER archive BEFORE TRUNCATE ON last FOR EACH STATEMENT EXECUTE FUNCTION write_first();
TRUNCATE last;
SELECT operation, row_data FROM entries('last_history');
SELECT interlock.row_as_of('last', 1, 'infinity');
DROP TABLE last, last_history;
DROP TABLE kept, kept_history, doc_note, doc_note_history, doc, doc_history;
DROP FUNCTION entries, rename_doc, add_to_price, write_nothing, again, bring_back, spy, make_way, bump, ahead, copy_entry, drop_entry, write_first;
REVOKE ALL ON SCHEMA public FROM history_owner, history_writer;
SELECT interlock.revoke_writer('robot', 'history_writer');
DROP ROLE history_owner, history_writer, history_reader;

-- the key's type is the same under another way to quote
CREATE TABLE quoted (id uuid PRIMARY KEY, note text);
SET quote_all_identifiers = on;
SELECT interlock.enable_history('quoted');
INSERT INTO quoted VALUES ('00000000-0000-0000-0000-000000000001', 'x');
RESET quote_all_identifiers;
SELECT interlock.row_as_of('quoted', '00000000-0000-0000-0000-000000000001', 'infinity')->>'note' AS note;
SELECT tgargs LIKE '%"%' AS quotes FROM (SELECT encode(tgargs, 'escape') AS tgargs FROM pg_trigger WHERE tgrelid = 'quoted'::regclass AND tgname ~ '^000') t;
DROP TABLE quoted, quoted_history;
