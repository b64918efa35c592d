-- Field ownership: who may change which columns
\set SHOW_CONTEXT never
CREATE ROLE own_app;
SELECT interlock.grant_writer('editor', 'own_app'), interlock.grant_writer('importer', 'own_app'), interlock.grant_writer('admin', 'own_app', true);
-- attempt(writer, sql) runs a statement as a writer, and undoes what it did
CREATE FUNCTION attempt(writer text, command text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE n bigint; r text;
BEGIN
    PERFORM interlock.set_writer(writer);
    IF command ~ '^(UPDATE|INSERT INTO) doc ' THEN
        EXECUTE command || ' RETURNING doc::text' INTO r;
    ELSE
        EXECUTE command;
    END IF;
    GET DIAGNOSTICS n = ROW_COUNT;
    RAISE SQLSTATE 'UNDO0' USING MESSAGE = coalesce(r, format('%s written', n));
EXCEPTION
    WHEN SQLSTATE 'UNDO0' THEN RETURN SQLERRM;
    WHEN OTHERS THEN RETURN SQLSTATE || ' ' || SQLERRM;
END $$;

CREATE TABLE doc (id int PRIMARY KEY, title text, body text, price numeric, seen int DEFAULT 0);
INSERT INTO doc VALUES (1, 'title', 'body', 10), (2, 'title', NULL, NULL), (3, 'title', 'body', 10);
SELECT interlock.own_columns('doc', 'editor', '{title,body}');
SELECT interlock.own_columns('doc', 'importer', '{price}', on_violation => 'skip');
SELECT pg_get_triggerdef(oid) AS trigger FROM pg_trigger WHERE tgrelid = 'doc'::regclass;
SELECT * FROM interlock.column_ownership;

-- what an update changes, whoever says what
SELECT w AS writer, command, attempt(w, command) FROM (VALUES
    (1, 'UPDATE doc SET title = ''new'' WHERE id = 1'), (2, 'UPDATE doc SET title = NULL WHERE id = 1'),
    (3, 'UPDATE doc SET body = '''' WHERE id = 2'), (4, 'UPDATE doc SET price = 12, seen = 1 WHERE id = 1'),
    (5, 'UPDATE doc SET price = 12 WHERE id = 2'), (6, 'UPDATE doc SET price = 12, title = ''new'' WHERE id = 1'),
    (7, 'UPDATE doc SET seen = 1 WHERE id = 1')) c (n, command), unnest('{editor,importer,other,NULL}'::text[]) w ORDER BY n, w;

-- OWN-9: unchanged columns are no claim: SET a = a, upserts and MERGE of whole rows
SELECT w AS writer, command, attempt(w, command) FROM (VALUES
    (1, 'UPDATE doc SET title = title, body = body, price = price, seen = 1 WHERE id = 1'),
    (2, 'UPDATE doc SET (title, body, price, seen) = (''title'', ''body'', 10, 1) WHERE id = 1'),
    (3, 'INSERT INTO doc VALUES (1, ''title'', ''body'', 10, 1) ON CONFLICT (id) DO UPDATE SET (title, body, price, seen) = (excluded.title, excluded.body, excluded.price, excluded.seen)'),
    (4, 'INSERT INTO doc VALUES (1, ''new'', ''body'', 11, 1) ON CONFLICT (id) DO UPDATE SET (title, body, price, seen) = (excluded.title, excluded.body, excluded.price, excluded.seen)'),
    (5, 'INSERT INTO doc VALUES (1, ''title'', ''body'', 11, 1) ON CONFLICT (id) DO UPDATE SET (title, body, price, seen) = (excluded.title, excluded.body, excluded.price, excluded.seen)'),
    (6, 'MERGE INTO doc USING (VALUES (1, ''title'')) v (id, t) ON doc.id = v.id WHEN MATCHED THEN UPDATE SET title = v.t, seen = 2'),
    (7, 'MERGE INTO doc USING (VALUES (1, ''new'')) v (id, t) ON doc.id = v.id WHEN MATCHED THEN UPDATE SET title = v.t'),
    (8, 'INSERT INTO doc VALUES (4, ''inserted'', ''by anybody'', 1)'), (9, 'DELETE FROM doc WHERE id = 1'),
    (10, 'UPDATE doc SET price = 10.0 WHERE id = 1'))
    c (n, command), unnest('{editor,importer}'::text[]) w ORDER BY n, w;
-- COPY inserts, which claims nothing (OWN-5)
BEGIN;
COPY doc (id, title, price) FROM stdin;
5	copied	5
\.
SELECT * FROM doc WHERE id = 5;
ROLLBACK;

-- the error, for one owner at a time; reject wins over skip, and nothing is logged then
DO $$
DECLARE s text; m text; d text; h text;
BEGIN
    PERFORM interlock.set_writer('importer');
    UPDATE doc SET title = 'x', body = 'y' WHERE id = 1;
EXCEPTION WHEN OTHERS THEN
    GET STACKED DIAGNOSTICS s = RETURNED_SQLSTATE, m = MESSAGE_TEXT, d = PG_EXCEPTION_DETAIL, h = PG_EXCEPTION_HINT;
    RAISE NOTICE E'%\n%\n%\n%', s, m, d, h;
END $$;

UPDATE doc SET title = 'x', price = 11 WHERE id = 1;
SELECT count(*) AS logged FROM interlock.skipped_writes WHERE table_name = 'public.doc';

-- C13, OWN-2: a save of the whole row as it was read before keeps what is stored; each statement leaves one line
BEGIN;
SELECT interlock.set_writer('editor');
UPDATE doc SET price = id * 100, seen = seen + 1 RETURNING *;
SELECT count(*) AS seen_at_once FROM interlock.skipped_writes WHERE table_name = 'public.doc';
UPDATE doc SET price = 7 WHERE id = 2 RETURNING price;
SELECT interlock.set_writer('importer');
UPDATE doc SET price = 20 WHERE id = 1 RETURNING price;
COMMIT;
SELECT decision, rel, table_name, key, columns, row_count, owner, writer, stored, given FROM interlock.skipped_writes WHERE table_name = 'public.doc' ORDER BY id;
TRUNCATE interlock.write_log;
-- it goes with the savepoint
BEGIN;
SELECT interlock.set_writer('editor');
SAVEPOINT s;
UPDATE doc SET price = 8 WHERE id = 1;
ROLLBACK TO s;
SAVEPOINT t;
UPDATE doc SET price = 9 WHERE id = 1;
RELEASE t;
SELECT count(*) AS logged FROM interlock.skipped_writes WHERE table_name = 'public.doc';
COMMIT;

-- OWN-8: force, by a writer who may, and a line for each row and owner
BEGIN;
SELECT interlock.set_writer('admin');
SAVEPOINT s;
UPDATE doc SET title = 'forced' WHERE id = 1;
ROLLBACK TO s;
SELECT interlock.set_writer('admin', force => true);
UPDATE doc SET title = 'forced', price = 30 WHERE id IN (1, 3) RETURNING *;
UPDATE doc SET seen = 5 WHERE id = 1;
COMMIT;
SELECT rel, key, columns, owner, writer, stored, given FROM interlock.forced_writes WHERE table_name = 'public.doc' ORDER BY id;
SELECT column_name, forced FROM interlock.column_ownership WHERE rel = 'doc'::regclass ORDER BY 1;
-- two who force each other show in the counter
BEGIN;
SELECT interlock.set_writer('admin', force => true);
UPDATE doc SET title = 'again' WHERE id = 1;
SELECT interlock.set_writer('other', force => true);
UPDATE doc SET title = 'and again' WHERE id = 1;
COMMIT;
SELECT column_name, forced FROM interlock.column_ownership WHERE rel = 'doc'::regclass AND forced > 0 ORDER BY 1;
TRUNCATE interlock.write_log;
SET ROLE own_app;
SELECT interlock.set_writer('editor', force => true);
RESET ROLE;

-- OWN-4: an identity ends with its transaction and its savepoint, and cannot be forged
BEGIN;
SELECT interlock.set_writer('editor');
COMMIT;
UPDATE doc SET title = 'left over' WHERE id = 1;
BEGIN;
SELECT interlock.set_writer('importer');
SAVEPOINT s;
SELECT interlock.set_writer('editor');
UPDATE doc SET title = 'in a savepoint' WHERE id = 1;
ROLLBACK TO s;
UPDATE doc SET title = 'after it' WHERE id = 1;
ROLLBACK;
GRANT ALL ON doc TO own_app;
SET ROLE own_app;
SET interlock.writers = '10 ! editor';
SELECT set_config('interlock.writers', '10 ! editor', true);
UPDATE doc SET title = 'forged' WHERE id = 1;
SELECT interlock.set_writer('stranger');
BEGIN;
SELECT interlock.set_writer('editor');
UPDATE doc SET title = 'granted' WHERE id = 1;
COMMIT;
RESET ROLE;
-- what a SECURITY DEFINER function says counts in it, and is gone afterwards
CREATE FUNCTION retitle(t text) RETURNS void LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
    PERFORM interlock.set_writer('editor');
    UPDATE doc SET title = t WHERE id = 1;
END $$;
SET ROLE own_app;
BEGIN;
SELECT retitle('by the function');
SELECT interlock.current_writer();
UPDATE doc SET title = 'leaked' WHERE id = 1;
ROLLBACK;
RESET ROLE;
DROP FUNCTION retitle;

-- OWN-5, C12: other BEFORE triggers change columns that the statement does not name; they are checked, too
CREATE FUNCTION change() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.title := TG_ARGV[0]; RETURN NEW; END $$;
CREATE TRIGGER before_ours BEFORE UPDATE OF seen ON doc FOR EACH ROW EXECUTE FUNCTION change('by a trigger');
UPDATE doc SET seen = 9 WHERE id = 3;
BEGIN;
SELECT interlock.set_writer('editor');
UPDATE doc SET seen = 9 WHERE id = 3 RETURNING title;
ROLLBACK;
DROP TRIGGER before_ours ON doc;
-- one that would come after ours stops every update until it is renamed or off, ours or the owner's
CREATE TRIGGER zzz_later BEFORE UPDATE OF seen ON doc FOR EACH ROW WHEN (OLD.id = 99) EXECUTE FUNCTION change('later');
UPDATE doc SET price = 1 WHERE id = 3;
SELECT interlock.own_columns('doc', 'editor', '{seen}');
ALTER TABLE doc DISABLE TRIGGER zzz_later;
UPDATE doc SET seen = 9 WHERE id = 3 RETURNING seen;
ALTER TABLE doc ENABLE REPLICA TRIGGER zzz_later;
UPDATE doc SET seen = 10 WHERE id = 3 RETURNING seen;
ALTER TABLE doc ENABLE TRIGGER zzz_later;
UPDATE doc SET seen = 11 WHERE id = 3 RETURNING seen;
ALTER TRIGGER zzz_later ON doc RENAME TO aaa_earlier;
UPDATE doc SET seen = 11 WHERE id = 3 RETURNING seen;
DROP TRIGGER aaa_earlier ON doc;
-- AFTER, INSERT and statement triggers do no harm
CREATE TRIGGER zzz_after AFTER UPDATE ON doc FOR EACH ROW EXECUTE FUNCTION change('after');
CREATE TRIGGER zzz_insert BEFORE INSERT ON doc FOR EACH ROW EXECUTE FUNCTION change('insert');
UPDATE doc SET seen = 12 WHERE id = 3 RETURNING seen;
DROP TRIGGER zzz_after ON doc;
DROP TRIGGER zzz_insert ON doc;
-- it sorts after ours by name alone, wherever ours was renamed to
ALTER TRIGGER zzz_interlock_columns ON doc RENAME TO "Mine";
CREATE TRIGGER before_ours BEFORE UPDATE ON doc FOR EACH ROW EXECUTE FUNCTION change('by a trigger');
UPDATE doc SET seen = 13 WHERE id = 3;
DROP TRIGGER before_ours ON doc;
SELECT interlock.own_columns('doc', 'importer', '{price}', on_violation => 'reject');
SELECT tgname FROM pg_trigger WHERE tgrelid = 'doc'::regclass;
SELECT attempt('editor', 'UPDATE doc SET price = 1 WHERE id = 3');
SELECT interlock.own_columns('doc', 'importer', '{price}', on_violation => 'skip');
ALTER TRIGGER "Mine" ON doc RENAME TO zzz_interlock_columns;

-- off: disabled, or for a replica's session
ALTER TABLE doc DISABLE TRIGGER zzz_interlock_columns;
UPDATE doc SET title = 'off' WHERE id = 3 RETURNING title;
ALTER TABLE doc ENABLE TRIGGER zzz_interlock_columns;
UPDATE doc SET title = 'on' WHERE id = 3;
SET session_replication_role = replica;
UPDATE doc SET title = 'replica' WHERE id = 3 RETURNING title;
ALTER TABLE doc ENABLE ALWAYS TRIGGER zzz_interlock_columns;
UPDATE doc SET title = 'always' WHERE id = 3;
RESET session_replication_role;

-- OWN-6: rules change: a prepared statement and the session that has run it see it at once
PREPARE retitle AS UPDATE doc SET title = $1 WHERE id = 3 RETURNING title;
BEGIN; SELECT interlock.set_writer('editor'); EXECUTE retitle('before'); COMMIT;
SELECT interlock.hand_over_columns('doc', '{title}', 'importer');
BEGIN; SELECT interlock.set_writer('editor'); EXECUTE retitle('after'); ROLLBACK;
BEGIN; SELECT interlock.set_writer('importer'); EXECUTE retitle('handed over'); COMMIT;
SELECT interlock.release_columns('doc', '{title}');
EXECUTE retitle('released');
SELECT interlock.own_columns('doc', 'editor', '{title}');
EXECUTE retitle('owned');
-- a change of the rules is part of its transaction
BEGIN; SELECT interlock.hand_over_columns('doc', '{title,body}', 'other'); ROLLBACK;
SELECT column_name, writer, on_violation FROM interlock.column_ownership WHERE rel = 'doc'::regclass ORDER BY 1;
SELECT interlock.hand_over_columns('doc', '{price,title}', 'editor');
SELECT column_name, writer, on_violation FROM interlock.column_ownership WHERE rel = 'doc'::regclass ORDER BY 1;

-- OWN-10: columns that are renamed, dropped, of another type: fail closed until released
ALTER TABLE doc RENAME body TO "Body";
UPDATE doc SET seen = 1 WHERE id = 3;
SELECT interlock.own_columns('doc', 'editor', '{Body}');
UPDATE doc SET seen = 1 WHERE id = 3;
SELECT interlock.release_columns('doc', '{body}');
UPDATE doc SET "Body" = 'x' WHERE id = 3;
UPDATE doc SET seen = 1 WHERE id = 3 RETURNING seen;
ALTER TABLE doc ALTER price TYPE text;
UPDATE doc SET price = 'x' WHERE id = 3;
ALTER TABLE doc DROP price;
UPDATE doc SET seen = 2 WHERE id = 3;
SELECT interlock.release_columns('doc', '{price}');
UPDATE doc SET seen = 2 WHERE id = 3 RETURNING seen;
ALTER TABLE doc RENAME TO "Doc";
UPDATE "Doc" SET title = 'x' WHERE id = 3;
VACUUM FULL "Doc";
ALTER TABLE "Doc" ADD extra int DEFAULT 5;
UPDATE "Doc" SET title = 'x' WHERE id = 3;
SELECT interlock.own_columns('"Doc"', 'editor', '{extra}', 'skip');
UPDATE "Doc" SET extra = 6 WHERE id = 3 RETURNING extra;
-- with the last rule the trigger goes
SELECT interlock.release_columns('"Doc"', '{title,Body,extra}');
SELECT count(*) FROM pg_trigger WHERE tgrelid = '"Doc"'::regclass;
UPDATE "Doc" SET title = 'free' WHERE id = 3 RETURNING title;
DROP TABLE "Doc";
TRUNCATE interlock.write_log;

-- quoted names, in every place
CREATE SCHEMA "My Own";
CREATE TABLE "My Own"."Tab ""le" ("Id ""x" int PRIMARY KEY, "it's \""a" text, b text);
INSERT INTO "My Own"."Tab ""le" VALUES (1, 'a', 'b');
SELECT interlock.own_columns('"My Own"."Tab ""le"', E'wri''ter "\\', ARRAY['it''s \"a']);
SELECT interlock.own_columns('"My Own"."Tab ""le"', 'ü', '{b}', 'skip');
SELECT * FROM interlock.column_ownership;
UPDATE "My Own"."Tab ""le" SET "it's \""a" = 'x';
BEGIN;
SELECT interlock.set_writer(E'wri''ter "\\');
UPDATE "My Own"."Tab ""le" SET "it's \""a" = 'x', b = 'x' RETURNING *;
COMMIT;
SELECT rel, key, columns, owner, writer, stored, given FROM interlock.skipped_writes;
DROP SCHEMA "My Own" CASCADE;
TRUNCATE interlock.write_log;

-- partitions: rules of the parent, other column order, a row that moves
CREATE TABLE part (id int, region text, a int, b int, PRIMARY KEY (id, region)) PARTITION BY LIST (region);
CREATE TABLE part_eu PARTITION OF part FOR VALUES IN ('eu');
CREATE TABLE part_us (b int, junk int, a int, region text NOT NULL, id int NOT NULL);
ALTER TABLE part_us DROP COLUMN junk;
ALTER TABLE part ATTACH PARTITION part_us FOR VALUES IN ('us');
INSERT INTO part VALUES (1, 'eu', 1, 1), (2, 'us', 1, 1);
SELECT interlock.own_columns('part', 'editor', '{a}');
SELECT interlock.own_columns('part', 'importer', '{b}', 'skip');
UPDATE part SET a = 2 WHERE id = 2;
UPDATE part_us SET a = 2;
UPDATE part SET b = 2 RETURNING tableoid::regclass, *;
UPDATE part SET region = 'us', b = 2 WHERE id = 1 RETURNING tableoid::regclass, *;
UPDATE part SET region = 'eu', a = 2 WHERE id = 1;
SELECT rel, key, columns, row_count, stored, given FROM interlock.skipped_writes ORDER BY id;
-- an owned partition key keeps the row where it is
SELECT interlock.own_columns('part', 'importer', '{region}', 'skip');
UPDATE part SET region = 'eu' RETURNING tableoid::regclass, *;
-- partitions are configured with their parent, new ones follow, detached ones are free
SELECT interlock.own_columns('part_eu', 'editor', '{a}');
SELECT interlock.release_columns('part_eu', '{a}');
SELECT interlock.share_columns('part_eu', '{a}');
SELECT rel, column_name FROM interlock.column_ownership ORDER BY 1, 2;
CREATE TABLE part_asia PARTITION OF part FOR VALUES IN ('asia');
INSERT INTO part VALUES (3, 'asia', 1, 1);
UPDATE part_asia SET a = 2;
ALTER TABLE part DETACH PARTITION part_asia;
UPDATE part_asia SET a = 2 RETURNING a;
SELECT interlock.hand_over_columns('part', '{a}', 'importer');
UPDATE part_us SET a = 2 WHERE id = 2;
CREATE TRIGGER zzz BEFORE UPDATE ON part_us FOR EACH ROW EXECUTE FUNCTION suppress_redundant_updates_trigger();
UPDATE part SET b = 1 WHERE id = 2;
SELECT interlock.release_columns('part', '{a,b,region}');
SELECT count(*) FROM pg_trigger WHERE tgfoid = 'interlock_internal.ownership_trigger'::regproc;
DROP TABLE part, part_asia;
TRUNCATE interlock.write_log;

-- foreign keys that cascade: as whom the statement is (OWN-5)
CREATE TABLE country (code text PRIMARY KEY);
CREATE TABLE city (id int PRIMARY KEY, country text REFERENCES country ON UPDATE CASCADE ON DELETE SET NULL, name text);
INSERT INTO country VALUES ('d'), ('f'); INSERT INTO city VALUES (1, 'd', 'Berlin'), (2, 'f', 'Paris');
SELECT interlock.own_columns('city', 'editor', '{country}');
UPDATE country SET code = 'D' WHERE code = 'd';
DELETE FROM country WHERE code = 'd';
BEGIN;
SELECT interlock.set_writer('editor');
UPDATE country SET code = 'D' WHERE code = 'd';
DELETE FROM country WHERE code = 'f';
SELECT * FROM city ORDER BY id;
COMMIT;
-- a cascade is not skipped: the key would refer to nothing
SELECT interlock.own_columns('city', 'editor', '{country}', 'skip');
UPDATE country SET code = 'x' WHERE code = 'D';
-- the owned column of a view's table, and of one that inherits, which has no rules
CREATE VIEW towns AS SELECT id, country, upper(name) AS loud, name FROM city;
UPDATE towns SET country = NULL, name = 'Bonn' WHERE id = 1 RETURNING *;
CREATE TABLE suburb () INHERITS (city);
INSERT INTO suburb VALUES (7, NULL, 'Kreuzberg');
UPDATE city SET country = 'D' WHERE id = 7 RETURNING tableoid::regclass, country;
DROP TABLE country, city, suburb CASCADE;
TRUNCATE interlock.write_log;

-- C14: column privileges and row security: another trigger may write what the role may not, and is checked;
-- the error tells no key that the role could not read
CREATE TABLE secret (id int PRIMARY KEY, a text, b text, owner name DEFAULT 'own_app');
INSERT INTO secret VALUES (1, 'a', 'b', 'own_app'), (2, 'a', 'b', 'nobody');
GRANT UPDATE (a, b), SELECT (a) ON secret TO own_app;
SELECT interlock.own_columns('secret', 'importer', '{b}');
SELECT interlock.own_columns('secret', 'importer', '{a}', 'skip');
CREATE FUNCTION change_b() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.b := 'by a trigger'; RETURN NEW; END $$;
SET ROLE own_app;
UPDATE secret SET b = 'x' WHERE a = 'a';
UPDATE secret SET a = 'x' RETURNING a;
RESET ROLE;
REVOKE UPDATE (b) ON secret FROM own_app;
CREATE TRIGGER change_b BEFORE UPDATE ON secret FOR EACH ROW EXECUTE FUNCTION change_b();
SET ROLE own_app;
UPDATE secret SET a = 'x';
UPDATE secret SET b = b;
BEGIN;
SELECT interlock.set_writer('importer');
UPDATE secret SET a = 'x' RETURNING a;
COMMIT;
RESET ROLE;
SELECT * FROM secret ORDER BY id;
ALTER TABLE secret ENABLE ROW LEVEL SECURITY;
CREATE POLICY p ON secret USING (owner = current_user);
GRANT SELECT, UPDATE ON secret TO own_app;
SET ROLE own_app;
UPDATE secret SET a = 'y' RETURNING id, a;
UPDATE secret SET b = 'y' WHERE id = 2;
RESET ROLE;
SELECT key, columns, row_count, stored, given FROM interlock.skipped_writes ORDER BY id;
SET ROLE own_app;
SELECT count(*) AS not_mine FROM interlock.skipped_writes;
SELECT column_name, writer FROM interlock.column_ownership ORDER BY 1;
RESET ROLE;
DROP TABLE secret;
DROP FUNCTION change_b;
TRUNCATE interlock.write_log;

-- values out of line: unchanged, changed, put back, sampled by their size; and a row without a key
CREATE TABLE big (id int, a text, b text, n int);
ALTER TABLE big ALTER a SET STORAGE EXTERNAL, ALTER b SET STORAGE EXTERNAL;
INSERT INTO big VALUES (1, repeat('a', 1000000), repeat('b', 20000), 1);
SELECT interlock.own_columns('big', 'editor', '{a}');
SELECT interlock.own_columns('big', 'editor', '{b}', 'skip');
UPDATE big SET n = 2 RETURNING n;
UPDATE big SET a = a, b = repeat('b', 20000) RETURNING n;
UPDATE big SET a = repeat('a', 999999) || 'b';
UPDATE big SET b = repeat('c', 30000), n = 3 RETURNING n, md5(b) = md5(repeat('b', 20000)) AS same;
VACUUM FULL big;
SELECT md5(a) = md5(repeat('a', 1000000)) AND md5(b) = md5(repeat('b', 20000)) AS same FROM big;
SELECT key, stored, given FROM interlock.skipped_writes;
DROP TABLE big;
TRUNCATE interlock.write_log;

-- generated columns follow what is stored in the end
CREATE TABLE gen (id int PRIMARY KEY, a int, twice int GENERATED ALWAYS AS (a * 2) STORED, always int GENERATED ALWAYS AS IDENTITY);
INSERT INTO gen VALUES (1, 1);
SELECT interlock.own_columns('gen', 'editor', '{a}', 'skip');
UPDATE gen SET a = 5 RETURNING *;
SELECT interlock.own_columns('gen', 'editor', '{always}');
UPDATE gen SET always = DEFAULT;
-- a rule for a column that has become a generated one
ALTER TABLE gen DROP a CASCADE;
ALTER TABLE gen ADD a int GENERATED ALWAYS AS (id + 1) STORED;
UPDATE gen SET id = 2;
SELECT interlock.release_columns('gen', '{a}');
UPDATE gen SET id = 2 RETURNING a;
DROP TABLE gen;
TRUNCATE interlock.write_log;
-- virtual ones, where the server has them
DO $$ BEGIN EXECUTE 'CREATE TABLE gen (id int PRIMARY KEY, twice int GENERATED ALWAYS AS (a * 2) '
    || CASE WHEN current_setting('server_version_num')::int >= 180000 THEN 'VIRTUAL' ELSE 'STORED' END || ', a int, b int)'; END $$;
INSERT INTO gen VALUES (1, DEFAULT, 1, 1);
SELECT interlock.own_columns('gen', 'editor', '{a}', 'skip');
SELECT interlock.own_columns('gen', 'editor', '{b}');
SELECT interlock.own_columns('gen', 'editor', '{twice}');
UPDATE gen SET a = 5 RETURNING *;
UPDATE gen SET b = 5;
SELECT columns, stored, given FROM interlock.skipped_writes;
DROP TABLE gen;
TRUNCATE interlock.write_log;

-- all at once: version, marker, transitions and owned columns
CREATE TABLE orders (id int PRIMARY KEY, status text DEFAULT 'new', note text, price int);
INSERT INTO orders VALUES (1, 'new', 'n', 1);
SELECT interlock.enable_versioning('orders', ignore_columns => '{price}'), interlock.enable_marker('orders', '1 hour'),
       interlock.define_transitions('orders', 'status', '{"new": ["paid"], "paid": ["sent"]}');
SELECT interlock.own_columns('orders', 'cashier', '{status}');
SELECT interlock.own_columns('orders', 'clerk', '{note}', 'skip');
SELECT interlock.own_columns('orders', 'clerk', '{version}');
SELECT interlock.own_columns('orders', 'clerk', '{lock_by}');
SELECT locked FROM interlock.lock_row('orders', 1, 'anna');
SELECT interlock.save_row('orders', 1, 'anna', '{"note": "by anna", "price": 2}');
SELECT note, price, version, lock_status FROM orders;
SELECT interlock.transition('orders', 1, 'new', 'paid');
UPDATE orders SET status = 'sent';
BEGIN;
SELECT interlock.set_writer('cashier');
SELECT interlock.transition('orders', 1, 'new', 'paid', '{"note": "by the cashier"}');
UPDATE orders SET status = 'new';
ROLLBACK;
BEGIN;
SELECT interlock.set_writer('cashier');
SELECT interlock.transition('orders', 1, 'new', 'paid', '{"note": "by the cashier"}');
COMMIT;
-- a skipped write moves the version all the same
SELECT status, note, version FROM orders;
SELECT interlock.versioned_update('orders', 1, version, '{"note": "x"}') FROM orders;
SELECT status, note, version FROM orders;
SELECT key, columns, owner, writer, given FROM interlock.skipped_writes ORDER BY id;
SELECT rel, severity, finding, advice FROM interlock.advise();
-- a column that is owned already becomes the version
CREATE TABLE late (id int PRIMARY KEY, v int NOT NULL DEFAULT 1, a int);
SELECT interlock.own_columns('late', 'editor', '{v,a}');
INSERT INTO late VALUES (1, 1, 1);
SELECT interlock.enable_versioning('late', 'v');
UPDATE late SET id = id RETURNING v;
UPDATE late SET a = 2;
DROP TABLE orders, late;
TRUNCATE interlock.write_log;

-- what nobody should do by hand
CREATE TABLE odd (id int PRIMARY KEY, a int, b int);
INSERT INTO odd VALUES (1, 1, 1);
CREATE TRIGGER t BEFORE UPDATE ON odd FOR EACH ROW EXECUTE FUNCTION interlock_internal.ownership_trigger('a', 'own:maybe', 'w');
UPDATE odd SET a = 2;
SELECT interlock.own_columns('odd', 'w', '{a}');
DROP TRIGGER t ON odd;
CREATE TRIGGER t BEFORE UPDATE ON odd FOR EACH ROW EXECUTE FUNCTION interlock_internal.ownership_trigger('a', 'own:reject');
UPDATE odd SET a = 2;
DROP TRIGGER t ON odd;
CREATE TRIGGER t AFTER UPDATE ON odd FOR EACH ROW EXECUTE FUNCTION interlock_internal.ownership_trigger('a', 'own:reject', 'w');
UPDATE odd SET a = 2;
DROP TRIGGER t ON odd;
CREATE TRIGGER t BEFORE UPDATE ON odd FOR EACH STATEMENT EXECUTE FUNCTION interlock_internal.ownership_trigger('a', 'own:reject', 'w');
UPDATE odd SET a = 2;
DROP TRIGGER t ON odd;
CREATE TRIGGER t BEFORE INSERT OR UPDATE OR DELETE ON odd FOR EACH ROW EXECUTE FUNCTION interlock_internal.ownership_trigger('a', 'own:reject', 'w', 'b', 'group', '1');
INSERT INTO odd VALUES (2, 2, 2);
DELETE FROM odd WHERE id = 2;
UPDATE odd SET a = 2;
-- of two triggers with rules neither counts
CREATE TRIGGER u BEFORE UPDATE ON odd FOR EACH ROW EXECUTE FUNCTION interlock_internal.ownership_trigger('b', 'own:reject', 'w');
UPDATE odd SET id = 1;
DROP TABLE odd;
SELECT interlock_internal.ownership_trigger();

-- the writer is shown as it was, though a policy says another while the error is made
CREATE ROLE own_policy;
CREATE TABLE guarded (id int PRIMARY KEY, a text);
INSERT INTO guarded VALUES (1, 'a');
SELECT interlock.grant_writer(w, 'own_policy') FROM unnest('{importer,editor}'::text[]) w;
SELECT interlock.own_columns('guarded', 'editor', '{a}');
CREATE FUNCTION say_another() RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    IF pg_trigger_depth() > 0 THEN PERFORM interlock.set_writer(NULL); PERFORM interlock.set_writer('editor'); END IF;
    RETURN true;
END $$;
ALTER TABLE guarded ENABLE ROW LEVEL SECURITY;
CREATE POLICY p ON guarded USING (say_another());
GRANT ALL ON guarded TO own_policy;
SET ROLE own_policy;
DO $$
DECLARE d text;
BEGIN
    PERFORM interlock.set_writer('importer');
    UPDATE guarded SET a = 'b' WHERE id = 1;
EXCEPTION WHEN OTHERS THEN
    GET STACKED DIAGNOSTICS d = PG_EXCEPTION_DETAIL;
    RAISE NOTICE '% %', SQLSTATE, d::jsonb->>'writer';
END $$;
RESET ROLE;
DROP TABLE guarded;
DROP FUNCTION say_another;
SELECT interlock.revoke_writer(w, 'own_policy') FROM unnest('{importer,editor}'::text[]) w;
DROP OWNED BY own_policy;
DROP ROLE own_policy;

-- a trigger that a cascade fires is no cascade: what it changes is skipped as ever
CREATE TABLE country (code text PRIMARY KEY);
CREATE TABLE city (id int PRIMARY KEY, country text REFERENCES country ON UPDATE CASCADE, mayor text);
CREATE TABLE board (id int PRIMARY KEY, mayor text, note text);
INSERT INTO country VALUES ('d');
INSERT INTO city VALUES (1, 'd', 'm');
INSERT INTO board VALUES (1, 'm', 'n');
SELECT interlock.own_columns('city', 'editor', '{mayor}', 'skip'), interlock.own_columns('board', 'editor', '{mayor}', 'skip');
CREATE FUNCTION elect() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE board SET mayor = 'elected', note = 'elected';
    NEW.mayor := 'elected';
    RETURN NEW;
END $$;
CREATE TRIGGER elect BEFORE UPDATE OF country ON city FOR EACH ROW EXECUTE FUNCTION elect();
UPDATE country SET code = 'D';
SELECT * FROM city, board;
SELECT interlock.own_columns('city', 'editor', '{country}', 'skip');
UPDATE country SET code = 'x';
DROP TABLE city, country, board;
DROP FUNCTION elect;
TRUNCATE interlock.write_log;

-- a state that its owner keeps has not moved
CREATE TABLE task (id int PRIMARY KEY, state text, note text);
INSERT INTO task VALUES (1, 'open', 'x');
SELECT interlock.define_transitions('task', 'state', '{"open": ["open", "done"], "done": []}'), interlock.own_columns('task', 'editor', '{state}', 'skip');
SELECT interlock.transition('task', 1, 'open', 'done', '{"note": "y"}');
SELECT outcome, state FROM interlock.try_transition('task', 1, 'open', 'done');
SELECT outcome, state FROM interlock.try_transition('task', 1, 'open', 'open');
BEGIN;
SELECT interlock.set_writer('editor');
SELECT outcome, state FROM interlock.try_transition('task', 1, 'open', 'done');
SELECT interlock.set_writer(NULL);
SELECT outcome, state FROM interlock.try_transition('task', 1, 'open', 'done');
COMMIT;
SELECT * FROM task;
DROP TABLE task;
TRUNCATE interlock.write_log;

-- OWN-10: a shared column that is gone, or one of a group, hinders only what it is for
CREATE TABLE parts (id int PRIMARY KEY, a int, b int, c int, d int);
INSERT INTO parts VALUES (1, 1, 1, 1, 1);
SELECT interlock.enable_versioning('parts'), interlock.share_columns('parts', '{a}', 'merge'), interlock.group_columns('parts', '{b,c}');
ALTER TABLE parts RENAME a TO a2;
ALTER TABLE parts RENAME b TO b2;
UPDATE parts SET d = 2 RETURNING d;
SELECT outcome, conflicts FROM interlock.try_versioned_update('parts', 1, 1, '{"d": 3}', '{"d": 2}', 'merge');
SELECT outcome, conflicts FROM interlock.try_versioned_update('parts', 1, 1, '{"a": 3}', '{"a": 2}', 'merge');
SELECT outcome, conflicts FROM interlock.try_versioned_update('parts', 1, 1, '{"a2": 3}', '{"a2": 2}', 'merge');
SELECT outcome, conflicts FROM interlock.try_versioned_update('parts', 1, 1, '{"c": 3}', '{"c": 1, "b2": 1}', 'merge');
SELECT interlock.release_columns('parts', '{a,b}');
SELECT outcome, conflicts FROM interlock.try_versioned_update('parts', 1, 1, '{"c": 3}', '{"c": 1}', 'merge');
DROP TABLE parts;

-- samples of json that is no jsonb
CREATE TYPE pair AS (n int, j json);
CREATE TABLE loose (id int PRIMARY KEY, j json, js json[], p pair, ps pair[]);
INSERT INTO loose VALUES (1, '{"a": "\u0000"}', ARRAY['{"a": "\u0000"}'::json], (1, '"\u0000"'), ARRAY[(1, '"\u0000"')::pair]), (2, '1', '{1}', (1, '{"a": "b"}'), '{}');
SELECT interlock.own_columns('loose', 'editor', '{j,js,p,ps}', 'skip');
UPDATE loose SET j = '1e1000000', js = '{1e1000000}', p = (1, '1e1000000'), ps = ARRAY[(1, '1e1000000')::pair] WHERE id = 1 RETURNING id;
UPDATE loose SET j = '"\ud800"' WHERE id = 2 RETURNING j;
UPDATE loose SET j = '{"a": [1, 2.5]}', js = '{2}', p = NULL WHERE id = 2 RETURNING j;
SELECT stored, given FROM interlock.skipped_writes ORDER BY id;
DROP TABLE loose;
DROP TYPE pair;
TRUNCATE interlock.write_log;

-- the view: readers without the table's schema, what forcing counts for whom, whether it is enforced
CREATE SCHEMA closed;
CREATE TABLE closed."Doc" (id int PRIMARY KEY, "A" int);
INSERT INTO closed."Doc" VALUES (1, 1);
SELECT interlock.own_columns('closed."Doc"', 'editor', '{A}');
BEGIN;
SELECT interlock.set_writer('admin', force => true);
UPDATE closed."Doc" SET "A" = 2;
SELECT column_name, forced, enforced FROM interlock.column_ownership;
COMMIT;
SELECT column_name, forced, enforced FROM interlock.column_ownership;
SET ROLE own_app;
SELECT column_name, forced, enforced FROM interlock.column_ownership;
RESET ROLE;
SET session_replication_role = replica;
SELECT column_name, forced, enforced FROM interlock.column_ownership;
RESET session_replication_role;
ALTER TABLE closed."Doc" DISABLE TRIGGER zzz_interlock_columns;
SELECT column_name, forced, enforced FROM interlock.column_ownership;
DROP SCHEMA closed CASCADE;
TRUNCATE interlock.write_log;

DROP FUNCTION change, attempt;
SELECT interlock.revoke_writer(w, 'own_app') FROM unnest('{editor,importer,admin}'::text[]) w;
DROP OWNED BY own_app;
DROP ROLE own_app;

-- forced writes are counted, however the writer quotes names
CREATE TABLE counted (id int PRIMARY KEY, a int);
INSERT INTO counted VALUES (1, 1);
SELECT interlock.own_columns('counted', 'w', '{a}');
BEGIN;
SELECT interlock.set_writer('other', force => true);
UPDATE counted SET a = 2;
SET LOCAL quote_all_identifiers = on;
UPDATE counted SET a = 3;
SELECT forced FROM interlock.column_ownership WHERE rel = 'counted'::regclass;
COMMIT;
SELECT forced FROM interlock.column_ownership WHERE rel = 'counted'::regclass;
DROP TABLE counted;

-- VER-55: value_writers outlives its declaration: whom values belong to again is said, and how a renamed column keeps them
CREATE TABLE kept (id int PRIMARY KEY, price int, cost int);
INSERT INTO kept VALUES (1, 100, 50);
SELECT interlock.own_columns('kept', 'editor', '{price}', 'skip', once_changed => true);
BEGIN;
SELECT interlock.set_writer('editor');
UPDATE kept SET price = 90;
COMMIT;
ALTER TABLE kept RENAME price TO amount;
UPDATE kept SET cost = 51;
ALTER TABLE kept RENAME amount TO price;
SELECT interlock.grant_writer('editor', 'public');
SELECT interlock.own_columns('kept', 'editor', '{price,cost}', once_changed => true);
SELECT interlock.release_columns('kept', '{price,cost}');
UPDATE kept SET price = 101;
SELECT interlock.own_columns('kept', 'editor', '{price,cost}', 'skip', once_changed => true);
UPDATE kept SET price = 102;
SELECT interlock.release_values('kept', 1, '{price}');
UPDATE kept SET price = 102;
TABLE kept;
SELECT interlock.revoke_writer('editor', 'public');
DROP TABLE kept;
