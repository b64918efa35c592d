-- Versioned rows: what an application does with them
\set VERBOSITY default
CREATE TABLE config (
    id int PRIMARY KEY, title text, price numeric, tags text[], body jsonb, seen timestamptz);
INSERT INTO config VALUES (1, 'one', 1.50, '{a,b}', '{"k": 1}'), (2, 'two', 2, NULL, NULL);
SELECT interlock.enable_versioning('config', ignore_columns => '{seen}');
SELECT * FROM config ORDER BY id;
\d config

-- update, and a stale update
SELECT interlock.versioned_update('config', 1, 1, '{"title": "new", "price": 1.5000, "tags": ["c"], "body": {"z": [1]}}');
SELECT * FROM config WHERE id = 1;
SELECT interlock.versioned_update('config', 1, 1, '{"title": "stale"}');
SELECT * FROM interlock.try_versioned_update('config', 1, 1, '{"title": "stale"}');
SELECT * FROM interlock.try_versioned_update('config', 99, 1, '{"title": "nobody"}');
SELECT interlock.versioned_update('config', 99, 1, '{"title": "nobody"}');
-- null and no changes
SELECT interlock.versioned_update('config', 1, 2, '{"price": null}');
SELECT interlock.versioned_update('config', 1, 3, '{}');
SELECT * FROM config WHERE id = 1;

-- every writer moves the version (VER-14)
UPDATE config SET title = 'plain' WHERE id = 1 RETURNING version;
UPDATE config SET title = title WHERE id = 1 RETURNING version;
INSERT INTO config (id, title) VALUES (1, 'upsert') ON CONFLICT (id) DO UPDATE SET title = excluded.title RETURNING version;
-- an upsert that does nothing moves nothing (VER-15, C4)
INSERT INTO config (id, title) VALUES (1, 'upsert') ON CONFLICT (id) DO NOTHING RETURNING version;
INSERT INTO config (id, title) VALUES (1, 'upsert') ON CONFLICT (id) DO UPDATE SET title = 'x' WHERE false RETURNING version;
SELECT title, version FROM config WHERE id = 1;
MERGE INTO config c USING (VALUES (1, 'merged')) v (id, title) ON c.id = v.id
    WHEN MATCHED THEN UPDATE SET title = v.title;
SELECT title, version FROM config WHERE id = 1;
-- a foreign key's cascade
CREATE TABLE parent (id int PRIMARY KEY);
CREATE TABLE child (id int PRIMARY KEY, parent int REFERENCES parent ON UPDATE CASCADE ON DELETE SET NULL);
SELECT interlock.enable_versioning('child');
INSERT INTO parent VALUES (1);
INSERT INTO child VALUES (1, 1);
UPDATE parent SET id = 2;
DELETE FROM parent;
SELECT * FROM child;
-- a trigger on another table
CREATE FUNCTION touch_config() RETURNS trigger LANGUAGE plpgsql AS
    $$ BEGIN UPDATE config SET title = 'by trigger' WHERE id = 1; RETURN NULL; END $$;
CREATE TRIGGER touch AFTER INSERT ON parent FOR EACH ROW EXECUTE FUNCTION touch_config();
INSERT INTO parent VALUES (3);
SELECT title, version FROM config WHERE id = 1;

-- a writer may set exactly the next version, as ORMs do; nothing else (VER-18)
UPDATE config SET title = 'orm', version = version + 1 WHERE id = 1 AND version = 9 RETURNING version;
UPDATE config SET title = 'orm', version = 11 WHERE id = 1 AND version = 10 RETURNING version;
UPDATE config SET version = 99 WHERE id = 1;
UPDATE config SET version = 1 WHERE id = 1;
UPDATE config SET version = NULL WHERE id = 1;
-- the present one counts as not set: a whole object is saved
UPDATE config SET title = 'whole object', version = 11 WHERE id = 1 RETURNING version;

-- ignored columns do not move it, alone; whatever else the statement names
UPDATE config SET seen = '2026-01-01' WHERE id = 1 RETURNING version;
UPDATE config SET seen = '2026-01-01' WHERE id = 1 RETURNING version;
UPDATE config SET seen = '2026-01-02', title = 'whole object' WHERE id = 1 RETURNING version;
UPDATE config SET seen = '2026-01-03', title = 'changed' WHERE id = 1 RETURNING version;
SELECT interlock.versioned_update('config', 1, 13, '{"seen": "2026-01-04"}');
UPDATE config SET seen = '2026-01-05', version = version + 1 WHERE id = 1 RETURNING version;
-- a trigger that fires before ours and changes more (C12)
CREATE FUNCTION shout() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.title := upper(NEW.title); RETURN NEW; END $$;
CREATE TRIGGER shout BEFORE UPDATE ON config FOR EACH ROW EXECUTE FUNCTION shout();
UPDATE config SET seen = '2026-01-06' WHERE id = 1 RETURNING title, version;
UPDATE config SET seen = '2026-01-07' WHERE id = 1 RETURNING title, version;
DROP TRIGGER shout ON config;

-- delete
SELECT interlock.versioned_delete('config', 2, 7);
SELECT * FROM interlock.try_versioned_delete('config', 2, 7);
SELECT interlock.versioned_delete('config', 2, 1);
SELECT * FROM interlock.try_versioned_delete('config', 2, 1);
SELECT interlock.versioned_delete('config', 2, 1);
-- a row that is inserted again does not start at a version that somebody may still hold (VER-19)
SELECT * FROM interlock.try_versioned_delete('config', 1, 15);
INSERT INTO config (id, title) VALUES (1, 'again') RETURNING version;
SELECT outcome, version FROM interlock.try_versioned_update('config', 1, 14, '{"title": "held since before"}');
-- nor one whose key another row had
UPDATE config SET id = 3 WHERE id = 1 RETURNING version;
INSERT INTO config (id, title) VALUES (1, 'old key') RETURNING version;
-- a rolled back delete may raise it, never lower it
BEGIN; DELETE FROM config WHERE id = 3; ROLLBACK;
DELETE FROM config WHERE id = 1;
INSERT INTO config (id, title) VALUES (1, 'third') RETURNING version;

-- savepoints (VER-20) and the token within one transaction (VER-13, C5)
BEGIN;
SELECT interlock.versioned_update('config', 3, 17, '{"title": "in"}');
SAVEPOINT s;
SELECT interlock.versioned_update('config', 3, 18, '{"title": "undone"}');
ROLLBACK TO SAVEPOINT s;
SELECT interlock.versioned_update('config', 3, 18, '{"title": "kept"}');
SELECT outcome, version FROM interlock.try_versioned_update('config', 3, 17, '{"title": "old"}');
COMMIT;
SELECT title, version FROM config WHERE id = 3;

-- many rows in one call: results in the order given, a row given twice conflicts with itself
INSERT INTO config (id, title, version) SELECT g, 'row ' || g, 1 FROM generate_series(10, 13) g;
SELECT * FROM interlock.versioned_update_many('config',
    '[{"key": 12, "version": 1, "changes": {"title": "a"}},
      {"key": {"id": 10}, "version": "1", "changes": {"title": "b", "price": 3}},
      {"key": "11", "version": 7, "changes": {"title": "c"}},
      {"key": 12, "version": 1, "changes": {"title": "d"}},
      {"key": 12, "version": 2, "changes": {"title": "e"}},
      {"key": 77, "version": 1, "changes": {"title": "f"}}]');
SELECT id, title, price, version FROM config WHERE id >= 10 ORDER BY id;
SELECT * FROM interlock.versioned_update_many('config', '[]');
SELECT * FROM interlock.versioned_update_many('config',
    '[{"key": 13, "version": 1, "changes": {"title": "all"}}, {"key": 11, "version": 7, "changes": {"title": "or"}}]', true);
SELECT * FROM interlock.versioned_update_many('config',
    '[{"key": 13, "version": 1, "changes": {"title": "all"}}, {"key": 77, "version": 7, "changes": {"title": "nothing"}}]', true);
SELECT title, version FROM config WHERE id = 13;

-- with retries (VER-21)
CREATE FUNCTION raise_price(current jsonb, args jsonb) RETURNS jsonb LANGUAGE sql AS
    $$ SELECT jsonb_build_object('price', (current->>'price')::numeric + (args->>'by')::numeric) $$;
SELECT * FROM interlock.update_with_retry('config', 10, 'raise_price(jsonb, jsonb)', '{"by": 0.01}');
SELECT price FROM config WHERE id = 10;
SELECT * FROM interlock.update_with_retry('config', 99, 'raise_price(jsonb, jsonb)', '{"by": 1}');
CREATE FUNCTION no_change(current jsonb, args jsonb) RETURNS jsonb LANGUAGE sql AS $$ SELECT args->'answer' $$;
SELECT * FROM interlock.update_with_retry('config', 10, 'no_change(jsonb, jsonb)');
SELECT * FROM interlock.update_with_retry('config', 10, 'no_change(jsonb, jsonb)', '{"answer": {}}');
-- a transform that is overtaken each time: the retry has the row locked, so a second overtaking is our own
CREATE FUNCTION overtaken(current jsonb, args jsonb) RETURNS jsonb LANGUAGE plpgsql AS
    $$ BEGIN UPDATE config SET title = 'overtook' WHERE id = 10; RETURN '{"title": "late"}'; END $$;
SELECT * FROM interlock.update_with_retry('config', 10, 'overtaken(jsonb, jsonb)');
SELECT title, version FROM config WHERE id = 10;

-- configuration
SELECT interlock.enable_versioning('config', ignore_columns => '{title}');
SELECT tgargs FROM pg_trigger WHERE tgrelid = 'config'::regclass AND tgname = 'zzz_interlock_version';
SELECT interlock.disable_versioning('config');
UPDATE config SET title = 'unversioned' WHERE id = 13 RETURNING version;
SELECT interlock.versioned_update('config', 13, 1, '{"title": "x"}');
INSERT INTO config (id) VALUES (50) RETURNING version;
\d config
SELECT interlock.enable_versioning('config');
UPDATE config SET title = 'versioned again' WHERE id = 13 RETURNING version;
DROP TABLE config, parent, child;
DROP FUNCTION touch_config, shout, raise_price, no_change, overtaken;

-- a row that takes the key of a deleted one does not meet its versions
CREATE TABLE place (list int, pos int, item text, PRIMARY KEY (list, pos));
SELECT interlock.enable_versioning('place');
INSERT INTO place VALUES (1, 1, 'milk'), (1, 2, 'bread');
UPDATE place SET item = 'milk 1%' WHERE pos = 1;
SELECT interlock.versioned_delete('place', '{"list": 1, "pos": 1}', 2);
UPDATE place SET pos = 1 WHERE pos = 2 AND version = 1 RETURNING *;
SELECT interlock.versioned_update('place', '{"list": 1, "pos": 1}', 2, '{"item": "milk 3%"}');
-- unless its writer sets the next version
INSERT INTO place VALUES (1, 3, 'jam', 1);
UPDATE place SET pos = 4, version = 2 WHERE pos = 3 AND version = 1 RETURNING *;
UPDATE place SET item = 'marmalade' WHERE pos = 4 RETURNING *;
-- also of a key whose change alone moves no version
SELECT interlock.enable_versioning('place', ignore_columns => '{pos}');
DELETE FROM place WHERE pos = 4;
UPDATE place SET pos = 4 WHERE pos = 1 RETURNING *;
DROP TABLE place;
