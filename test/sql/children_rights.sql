-- guard_children: whose privileges the parents are moved with, and triggers of others that use its functions (MRK-6, SEC-1).
\set VERBOSITY terse
CREATE ROLE regress_children_owner;
CREATE ROLE regress_children_writer;
CREATE ROLE regress_children_stranger;
GRANT CREATE, USAGE ON SCHEMA public TO regress_children_owner, regress_children_stranger;
CREATE TABLE doc (id int PRIMARY KEY, body text);
CREATE TABLE line (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, doc_id int REFERENCES doc ON DELETE CASCADE, qty int);
ALTER TABLE doc OWNER TO regress_children_owner;
ALTER TABLE line OWNER TO regress_children_owner;
SET ROLE regress_children_owner;
SELECT interlock.enable_versioning('doc');
SELECT interlock.guard_children('line', 'doc');
INSERT INTO doc VALUES (1, 'a'), (2, 'b');
GRANT INSERT, SELECT, UPDATE, DELETE ON line TO regress_children_writer;

\echo -- a writer of lines alone
SET ROLE regress_children_writer;
\set VERBOSITY default
\set SHOW_CONTEXT never
INSERT INTO line (doc_id) VALUES (1);
\set VERBOSITY terse
SET ROLE regress_children_owner;
GRANT UPDATE (version) ON doc TO regress_children_writer;
SET ROLE regress_children_writer;
INSERT INTO line (doc_id) VALUES (1);
SET ROLE regress_children_owner;
GRANT SELECT (id, version), UPDATE (version) ON doc TO regress_children_writer;
SET ROLE regress_children_writer;
INSERT INTO line (doc_id) VALUES (1);
SELECT id, version FROM doc ORDER BY id;
UPDATE doc SET body = 'c';

\echo -- INSERT on documents is enough for their first lines
SET ROLE regress_children_owner;
REVOKE ALL ON doc FROM regress_children_writer;
GRANT INSERT ON doc TO regress_children_writer;
SET ROLE regress_children_writer;
BEGIN;
INSERT INTO doc VALUES (3);
INSERT INTO line (doc_id) VALUES (3);
COMMIT;
INSERT INTO line (doc_id) VALUES (3);
\echo -- the delete of a document with its lines is no change of it
SET ROLE regress_children_owner;
REVOKE INSERT ON doc FROM regress_children_writer;
GRANT DELETE, SELECT (id) ON doc TO regress_children_writer;
SET ROLE regress_children_writer;
DELETE FROM doc WHERE id = 3;

\echo -- the privileges and the search_path are those of the change, also where another role ends the transaction
RESET ROLE;
REVOKE ALL ON doc FROM regress_children_writer;
SET ROLE regress_children_owner;
CREATE FUNCTION add_line(doc int) RETURNS void LANGUAGE sql SECURITY DEFINER SET search_path = public AS $$INSERT INTO line (doc_id) VALUES (doc)$$;
CREATE TABLE who (role name);
GRANT INSERT ON who TO PUBLIC;
CREATE FUNCTION note_role() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN INSERT INTO public.who VALUES (current_user); RETURN NULL; END$$;
CREATE TRIGGER who AFTER UPDATE ON doc FOR EACH ROW EXECUTE FUNCTION note_role();
SET ROLE regress_children_writer;
SELECT add_line(1);
RESET ROLE;
BEGIN;
INSERT INTO line (doc_id) VALUES (2);
SET LOCAL ROLE regress_children_writer;
COMMIT;
SELECT * FROM who;
SELECT id, version FROM doc ORDER BY id;
SET ROLE regress_children_owner;
CREATE FUNCTION helps() RETURNS text LANGUAGE sql AS $$SELECT 'helped'$$;
CREATE OR REPLACE FUNCTION note_role() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN RAISE NOTICE '% by %', helps(), current_user; RETURN NULL; END$$;
RESET ROLE;
CREATE SCHEMA regress_children_trap AUTHORIZATION regress_children_stranger;
SET ROLE regress_children_stranger;
CREATE FUNCTION regress_children_trap.helps() RETURNS text LANGUAGE sql AS $$SELECT 'trapped'$$;
GRANT USAGE ON SCHEMA regress_children_trap TO PUBLIC;
SET search_path = regress_children_trap, public;
SELECT add_line(1);
BEGIN;
SELECT add_line(1);
SELECT helps();
COMMIT;
RESET search_path;
RESET ROLE;
DROP SCHEMA regress_children_trap CASCADE;
BEGIN;
SET LOCAL ROLE regress_children_writer;
INSERT INTO line (doc_id) VALUES (2);
ROLLBACK;
DROP TRIGGER who ON doc;

\echo -- each role that changes children is asked, and not the first one of the transaction alone
SET ROLE regress_children_owner;
CREATE FUNCTION save(int) RETURNS void LANGUAGE sql SECURITY DEFINER SET search_path = public AS $$UPDATE doc SET body = 's' WHERE id = $1$$;
CREATE FUNCTION add_doc(doc int) RETURNS void LANGUAGE sql SECURITY DEFINER SET search_path = public AS
$$INSERT INTO doc VALUES (doc); INSERT INTO line (doc_id) VALUES (doc)$$;
CREATE TABLE part_doc (id int PRIMARY KEY, body text) PARTITION BY LIST (id);
CREATE TABLE part_doc_1 PARTITION OF part_doc FOR VALUES IN (1);
CREATE TABLE part_line (id int GENERATED ALWAYS AS IDENTITY, doc_id int REFERENCES part_doc);
SELECT interlock.enable_versioning('part_doc');
SELECT interlock.guard_children('part_line', 'part_doc');
INSERT INTO part_doc VALUES (1);
GRANT INSERT ON part_line TO regress_children_writer;
CREATE FUNCTION add_part_line() RETURNS void LANGUAGE sql SECURITY DEFINER SET search_path = public AS $$INSERT INTO part_line (doc_id) VALUES (1)$$;
CREATE FUNCTION save_part() RETURNS void LANGUAGE sql SECURITY DEFINER SET search_path = public AS $$UPDATE part_doc SET body = 's'$$;
CREATE FUNCTION in_turn(VARIADIC statements text[]) RETURNS text LANGUAGE plpgsql AS $$
DECLARE statement text;
BEGIN
    FOREACH statement IN ARRAY statements LOOP EXECUTE statement; END LOOP;
    SET CONSTRAINTS ALL IMMEDIATE;
    SET CONSTRAINTS ALL DEFERRED;
    RETURN 'passes';
EXCEPTION WHEN insufficient_privilege THEN
    RETURN SQLERRM;
END $$;
SET ROLE regress_children_writer;
BEGIN;
SELECT in_turn('SELECT add_line(1)', 'INSERT INTO line (doc_id, qty) VALUES (1, 77)');
SELECT in_turn('SELECT add_line(1)', 'UPDATE line SET qty = 77 WHERE doc_id = 1');
SELECT in_turn('SELECT add_line(1)', 'DELETE FROM line WHERE doc_id = 1');
SELECT in_turn('SELECT add_line(1)', 'UPDATE line SET doc_id = 1 WHERE doc_id = 2');
SELECT in_turn('SELECT add_line(1)', 'SET CONSTRAINTS ALL IMMEDIATE', 'INSERT INTO line (doc_id, qty) VALUES (1, 77)');
SELECT in_turn('SELECT add_line(1), save(1)', 'INSERT INTO line (doc_id, qty) VALUES (1, 77)');
SELECT in_turn('SELECT save(1)', 'INSERT INTO line (doc_id, qty) VALUES (1, 77)');
SELECT in_turn('SELECT add_part_line()', 'INSERT INTO part_line (doc_id) VALUES (1)');
SELECT in_turn('SELECT save_part()', 'INSERT INTO part_line (doc_id) VALUES (1)');
SELECT in_turn('SELECT add_line(1)', 'SELECT add_line(1)');
\echo -- but not of a document of this transaction
SELECT in_turn('SELECT add_doc(4)', 'INSERT INTO line (doc_id, qty) VALUES (4, 77)');
SELECT in_turn('SELECT add_doc(5), save(5)', 'INSERT INTO line (doc_id, qty) VALUES (5, 77)');
ROLLBACK;
\echo -- a role that may is not the first
SET ROLE regress_children_owner;
GRANT SELECT (id, version), UPDATE (version) ON doc TO regress_children_writer;
SELECT version FROM doc WHERE id = 1;
SET ROLE regress_children_writer;
SELECT in_turn('SELECT add_line(1)', 'INSERT INTO line (doc_id) VALUES (1)', 'SELECT add_line(1)', 'INSERT INTO line (doc_id) VALUES (1)');
SET ROLE regress_children_owner;
SELECT version FROM doc WHERE id = 1;
REVOKE ALL ON doc FROM regress_children_writer;
DROP TABLE part_line, part_doc;
DROP FUNCTION save, add_doc, add_part_line, save_part, in_turn;
RESET ROLE;

\echo -- row security of the parent
SET ROLE regress_children_owner;
ALTER TABLE doc ENABLE ROW LEVEL SECURITY;
CREATE POLICY reads ON doc FOR SELECT USING (true);
CREATE POLICY writes ON doc FOR UPDATE USING (id = 1);
GRANT SELECT, UPDATE ON doc TO regress_children_writer;
SET ROLE regress_children_writer;
INSERT INTO line (doc_id) VALUES (1);
INSERT INTO line (doc_id) VALUES (2);
SELECT id, version FROM doc ORDER BY id;
\echo -- what a refusal shows of a parent that cannot be read
SET ROLE regress_children_owner;
ALTER TABLE doc DISABLE ROW LEVEL SECURITY;
SELECT interlock.enable_marker('doc');
SELECT locked FROM interlock.lock_row('doc', 1, 'ann');
REVOKE ALL ON doc FROM regress_children_writer;
GRANT SELECT (id, version), UPDATE (version) ON doc TO regress_children_writer;
SET ROLE regress_children_writer;
\set VERBOSITY default
INSERT INTO line (doc_id) VALUES (1);
\set VERBOSITY terse
SET ROLE regress_children_owner;
SELECT interlock.unlock_row('doc', 1, 'ann'), interlock.disable_marker('doc');

\echo -- triggers of others with these functions
RESET ROLE;
SET ROLE regress_children_stranger;
CREATE TABLE own (id int, doc_id int);
CREATE FUNCTION nothing() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';
CREATE TRIGGER a AFTER INSERT ON own FOR EACH ROW WHEN (interlock_internal.changes_parent('doc'::regclass, new.tableoid, new.doc_id))
    EXECUTE FUNCTION nothing();
INSERT INTO own VALUES (1, 1);
DROP TRIGGER a ON own;
CREATE TRIGGER a AFTER INSERT ON own FOR EACH ROW WHEN (interlock_internal.changes_parent('doc'::regclass, new.tableoid, new.doc_id))
    EXECUTE FUNCTION interlock_internal.children_trigger();
INSERT INTO own VALUES (1, 1); -- no foreign key
SELECT interlock.unguard_children('own', 'doc');
CREATE FUNCTION tries(VARIADIC conditions text[]) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE condition text; state text;
BEGIN
    FOREACH condition IN ARRAY conditions LOOP
        BEGIN
            EXECUTE 'CREATE TRIGGER b AFTER INSERT ON own FOR EACH ROW WHEN (' || condition || ') EXECUTE FUNCTION nothing()';
            INSERT INTO own VALUES (1, 1);
            RETURN NEXT 'ok';
            DROP TRIGGER b ON own;
        EXCEPTION WHEN OTHERS THEN
            RETURN NEXT SQLSTATE || ' ' || SQLERRM;
        END;
    END LOOP;
END $$;
SELECT tries(
    'interlock_internal.changes_parent(new.tableoid, new.doc_id)',
    'interlock_internal.changes_parent(NULL::regclass, new.tableoid, new.doc_id)',
    'interlock_internal.changes_parent(''doc''::regclass, new.doc_id)',
    'interlock_internal.changes_parent(''doc''::regclass, new.tableoid)',
    'interlock_internal.changes_parent(''doc''::regclass, 1::oid, new.doc_id)',
    'interlock_internal.changes_parent(''doc''::regclass, ''line''::regclass::oid, new.doc_id)',
    'interlock_internal.changes_parent(''doc''::regclass, new.tableoid, new.doc_id + 1)',
    'interlock_internal.changes_parent(''doc''::regclass, new.tableoid, new.ctid, new.doc_id)',
    'interlock_internal.changes_parent(''doc''::regclass, new.tableoid, new.*)',
    'interlock_internal.changes_parent(VARIADIC ARRAY[1, 2, 3])',
    'interlock_internal.changes_parent()',
    'NOT interlock_internal.changes_parent(''doc''::regclass, new.tableoid, new.doc_id)');
CREATE TRIGGER c AFTER INSERT OR UPDATE ON own FOR EACH STATEMENT EXECUTE FUNCTION interlock_internal.children_trigger();
INSERT INTO own VALUES (1, 1);
DROP TRIGGER c ON own;
CREATE TRIGGER c BEFORE INSERT ON own FOR EACH ROW EXECUTE FUNCTION interlock_internal.children_trigger();
INSERT INTO own VALUES (1, 1);
DROP TRIGGER c ON own;
CREATE TRIGGER c AFTER INSERT ON own FOR EACH ROW EXECUTE FUNCTION interlock_internal.children_trigger('x', 'y');
INSERT INTO own VALUES (1, 1);
SELECT interlock.unguard_children('own', 'doc');
DROP TRIGGER c ON own;
\echo -- one that takes the first change before ours, and does nothing with it
RESET ROLE;
GRANT TRIGGER ON line TO regress_children_stranger;
SET ROLE regress_children_stranger;
CREATE TRIGGER aaa AFTER INSERT ON line FOR EACH ROW WHEN (interlock_internal.changes_parent('doc'::regclass, new.tableoid, new.doc_id))
    EXECUTE FUNCTION nothing();
SET ROLE regress_children_owner;
INSERT INTO line (doc_id) VALUES (1);
DROP TRIGGER aaa ON line;
\echo -- one that fires ours early, of a table of his
SET ROLE regress_children_stranger;
CREATE TRIGGER c AFTER INSERT ON own FOR EACH ROW EXECUTE FUNCTION interlock_internal.children_trigger();
SET ROLE regress_children_owner;
GRANT INSERT ON line TO regress_children_stranger;
SET ROLE regress_children_stranger;
GRANT INSERT ON own TO regress_children_owner;
SET ROLE regress_children_owner;
BEGIN;
INSERT INTO line (doc_id) VALUES (1);
INSERT INTO own VALUES (1, 1);
COMMIT;
RESET ROLE;
DROP TABLE own, line, doc, who;
DROP FUNCTION add_line, note_role, helps, nothing, tries;
REVOKE ALL ON SCHEMA public FROM regress_children_owner, regress_children_stranger;
DROP ROLE regress_children_owner, regress_children_writer, regress_children_stranger;
