-- State markers
\set SHOW_CONTEXT never
CREATE TABLE page (id int PRIMARY KEY, body text);
INSERT INTO page SELECT g, 'page ' || g FROM generate_series(1, 5) g;
SELECT interlock.enable_marker('page', '1 hour');
SELECT interlock.enable_versioning('page');
\d page

-- lock, and what others get
SELECT locked, holder, round(extract(epoch FROM expires_at - locked_at)) AS lives FROM interlock.lock_row('page', 1, 'anna', reason => 'typos');
SELECT locked, holder FROM interlock.lock_row('page', 1, 'bert');
SELECT locked, holder, expires_at > locked_at AS in_time, reason FROM interlock.row_lock_of('page', 1);
SELECT * FROM interlock.row_lock_of('page', 2);
SELECT rel, key, holder, reason, live FROM interlock.row_locks;
\set VERBOSITY sqlstate
UPDATE page SET body = 'by nobody' WHERE id = 1;
DELETE FROM page WHERE id = 1;
UPDATE page SET lock_status = 0, lock_by = NULL WHERE id = 1;
UPDATE page SET lock_status = 1, lock_by = 'bert' WHERE id = 1;
INSERT INTO page VALUES (1, 'upsert') ON CONFLICT (id) DO UPDATE SET body = excluded.body;
SELECT interlock.versioned_update('page', 1, 1, '{"body": "versioned"}');
SELECT interlock.save_row('page', 1, 'bert', '{"body": "bert"}');
\set VERBOSITY terse
UPDATE page SET body = 'by nobody' WHERE id = 1;
SELECT interlock.save_row('page', 1, 'bert', '{"body": "bert"}');
-- the version is not moved by housekeeping
SELECT version FROM page WHERE id = 1;
-- the holder: renews, touches, saves
SELECT locked, holder, expires_at - locked_at > '1 hour' AS later FROM interlock.lock_row('page', 1, 'anna', '2 hours');
SELECT interlock.touch_row('page', 1, 'anna') > now() + '119 min'::interval AS never_nearer;
SELECT interlock.touch_row('page', 1, 'bert');
SELECT reason FROM interlock.row_lock_of('page', 1);
SELECT interlock.save_row('page', 1, 'anna', '{"body": "saved"}', 9);
SELECT interlock.save_row('page', 1, 'anna', '{"body": "saved"}', 1);
SELECT * FROM page WHERE id = 1;
SELECT interlock.save_row('page', 1, 'anna', '{"body": "again"}');
SELECT (interlock.lock_row('page', 1, 'anna')).locked;
SELECT interlock.save_row('page', 1, 'anna', '{}');
SELECT interlock.unlock_row('page', 1, 'anna');
SELECT (interlock.lock_row('page', 1, 'anna')).locked, interlock.unlock_row('page', 1, 'bert'), interlock.unlock_row('page', 1, 'anna');

-- the holder with plain SQL: identity belongs to the transaction and follows savepoints
SELECT (interlock.lock_row('page', 2, 'anna')).locked;
BEGIN;
SELECT interlock.set_holder('anna');
UPDATE page SET body = 'plain sql' WHERE id = 2 RETURNING body, version;
SAVEPOINT s;
SELECT interlock.set_holder('bert');
UPDATE page SET body = 'bert' WHERE id = 2;
ROLLBACK TO SAVEPOINT s;
SHOW interlock.holder;
DELETE FROM page WHERE id = 2;
COMMIT;
SHOW interlock.holder;
SET interlock.holder = 'anna';
BEGIN; SELECT interlock.set_holder('anna'); SELECT interlock.set_holder(NULL); SHOW interlock.holder; ROLLBACK;

-- plain SQL that sets the marker as hand-written code does
UPDATE page SET lock_status = 1, lock_by = 'carl', lock_time = now() WHERE id = 3 AND lock_status = 0;
SELECT lock_until > now() + '59 min'::interval AS deadline FROM page WHERE id = 3;
UPDATE page SET lock_status = 1, lock_by = 'dora', lock_time = now() WHERE id = 3 AND lock_status = 0;
UPDATE page SET lock_status = 1, lock_by = 'dora', lock_time = now() WHERE id = 3;
UPDATE page SET lock_status = 1 WHERE id = 4;
BEGIN; SELECT interlock.set_holder('emil'); UPDATE page SET lock_status = 1 WHERE id = 4 RETURNING lock_by, lock_time IS NOT NULL AS since; ROLLBACK;
INSERT INTO page (id, body, lock_status, lock_by) VALUES (6, 'new', 1, 'carl') RETURNING lock_until > now() AS live;
INSERT INTO page (id, body, lock_status, lock_by, lock_until) VALUES (7, 'new', 1, 'carl', 'infinity');
INSERT INTO page (id, body, lock_status) VALUES (7, 'new', 1);
BEGIN;
SELECT interlock.set_holder('carl');
UPDATE page SET lock_by = 'dora' WHERE id = 3 RETURNING lock_by;
ROLLBACK;
BEGIN;
SELECT interlock.set_holder('carl');
UPDATE page SET lock_status = 0 WHERE id = 3 RETURNING lock_by, lock_time, lock_until, lock_reason;
COMMIT;

-- expired: free at once for everybody, swept or not; leaving it alone does not renew it
SELECT (interlock.lock_row('page', 4, 'emil', '1 millisecond')).locked;
SELECT (interlock.lock_row('page', 5, 'emil', '1 millisecond')).locked;
SELECT pg_sleep(0.01);
SELECT * FROM interlock.row_lock_of('page', 4);
SELECT key, holder, live FROM interlock.row_locks ORDER BY key->'id';
UPDATE page SET body = 'free' WHERE id = 4 RETURNING lock_status, lock_until < clock_timestamp() AS still_expired;
SELECT interlock.touch_row('page', 4, 'emil'), interlock.unlock_row('page', 4, 'emil');
SELECT interlock.save_row('page', 4, 'emil', '{"body": "late"}');
SELECT locked, holder FROM interlock.lock_row('page', 4, 'fred');
SELECT * FROM interlock.sweep(1);
SELECT * FROM interlock.sweep();
SELECT lock_status, lock_by, lock_time, lock_until FROM page WHERE id = 5;

-- by force: audited, and with a grant of its own
CREATE ROLE interlock_editor;
GRANT SELECT, UPDATE ON page TO interlock_editor;
SET ROLE interlock_editor;
SELECT interlock.force_unlock_row('page', 4, 'on holiday');
SELECT interlock.sweep();
RESET ROLE;
GRANT EXECUTE ON FUNCTION interlock.force_unlock_row(regclass, "any", text) TO interlock_editor;
SET ROLE interlock_editor;
SELECT interlock.force_unlock_row('page', 4, 'on holiday');
SELECT interlock.force_unlock_row('page', 4, 'on holiday');
SELECT interlock.force_unlock_row('page', 4, '');
SELECT interlock.force_unlock_row('page', 4, NULL);
SELECT interlock.force_unlock_row('page', 99, 'nobody');
SELECT * FROM interlock.row_lock_audit;
RESET ROLE;
SELECT forced_by, table_name, key, holder, reason FROM interlock.row_lock_audit;
-- others see the locks they may read
CREATE ROLE interlock_guest;
SET ROLE interlock_guest;
SELECT * FROM interlock.row_locks;
SELECT interlock.lock_row('page', 6, 'guest');
RESET ROLE;
ALTER TABLE page ENABLE ROW LEVEL SECURITY;
CREATE POLICY odd ON page USING (id % 2 = 1);
SET ROLE interlock_editor;
SELECT * FROM interlock.row_locks;
SELECT interlock.lock_row('page', 6, 'editor');
SELECT (interlock.lock_row('page', 5, 'editor')).locked;
RESET ROLE;
ALTER TABLE page DISABLE ROW LEVEL SECURITY;

-- settings changed by calling it again: not enforced, but nobody takes over
SELECT interlock.enable_marker('page', '1 min', enforce => false);
UPDATE page SET body = 'anybody' WHERE id = 5 RETURNING lock_by;
UPDATE page SET lock_by = 'thief' WHERE id = 5;
UPDATE page SET lock_status = 0 WHERE id = 5 RETURNING lock_by;
SELECT round(extract(epoch FROM expires_at - locked_at)) AS lives FROM interlock.lock_row('page', 5, 'anna');
SELECT interlock.disable_marker('page');
UPDATE page SET lock_by = 'thief' WHERE id = 5;
SELECT interlock.lock_row('page', 5, 'anna');
SELECT interlock.disable_marker('page');
SELECT indexrelid::regclass FROM pg_index WHERE indrelid = 'page'::regclass;
DROP TABLE page;

-- a table that had such columns before; rows that were marked get a deadline
CREATE TABLE old (id int PRIMARY KEY, body text, lock_status int, lock_by varchar(20) NOT NULL DEFAULT '', lock_time timestamp);
INSERT INTO old VALUES (1, 'free', 0), (3, 'null', NULL);
INSERT INTO old VALUES (2, 'held', 1, 'gina', now() - '3 days'::interval);
SELECT interlock.enable_marker('old', '1 hour');
SELECT id, lock_status, lock_by, lock_until > now() AS live FROM old ORDER BY id;
SELECT locked, holder FROM interlock.lock_row('old', 2, 'hans');
SELECT locked, holder FROM interlock.lock_row('old', 3, 'hans');
SELECT interlock.unlock_row('old', 3, 'hans');
SELECT id, lock_status, lock_by, lock_time FROM old WHERE id = 3;
SELECT interlock.lock_row('old', 1, 'a name of more than twenty characters');
UPDATE old SET lock_status = 2 WHERE id = 1 RETURNING lock_status;
SELECT locked, holder FROM interlock.lock_row('old', 1, 'hans');
DROP TABLE old;

-- with a timestamp as version, with transitions, and with both moved by one save
CREATE TABLE memo (id int PRIMARY KEY, body text, status text DEFAULT 'draft', updated_time timestamptz DEFAULT '2026-01-01');
SELECT interlock.enable_marker('memo'), interlock.enable_versioning('memo', 'updated_time'),
       interlock.define_transitions('memo', 'status', '{"draft": ["live"]}');
INSERT INTO memo VALUES (1, 'text');
SELECT (interlock.lock_row('memo', 1, 'anna')).locked;
SELECT updated_time = '2026-01-01' AS unmoved FROM memo;
SELECT interlock.save_row('memo', 1, 'anna', '{"status": "gone"}');
SELECT interlock.save_row('memo', 1, 'anna', '{"status": "live"}', 1);
SELECT interlock.save_row('memo', 1, 'anna', '{"status": "live"}');
SELECT status, lock_status, updated_time > '2026-02-01' AS moved FROM memo;
DROP TABLE memo;

-- the sweep acts as the owner, never as who calls it, in a safe search path; one bad row keeps nobody
CREATE ROLE interlock_plain;
GRANT CREATE ON SCHEMA public TO interlock_plain;
SET ROLE interlock_plain;
CREATE TABLE swept (id int PRIMARY KEY, body text);
CREATE TABLE seen (who text, path text);
SELECT interlock.enable_marker('swept', '1 millisecond');
CREATE FUNCTION spy() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    IF NEW.lock_status = 0 THEN INSERT INTO public.seen VALUES (current_user, current_setting('search_path')); END IF;
    IF NEW.body = 'bad' THEN RAISE EXCEPTION 'bad row %', NEW.id; END IF;
    RETURN NEW; END $$;
CREATE FUNCTION escape() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    SET ROLE postgres; RETURN NEW; END $$;
INSERT INTO swept SELECT g, CASE WHEN g IN (3, 40) THEN 'bad' END FROM generate_series(1, 50) g;
SELECT count(interlock.lock_row('swept', id, 'anna')) FROM swept;
CREATE TRIGGER spy BEFORE UPDATE ON swept FOR EACH ROW EXECUTE FUNCTION spy();
SELECT pg_sleep(0.01);
RESET ROLE;
SELECT * FROM interlock.sweep();
SELECT id, lock_by FROM swept WHERE lock_status = 1 ORDER BY id;
SELECT who, path, count(*) FROM seen GROUP BY 1, 2;
UPDATE swept SET body = NULL;
DROP TRIGGER spy ON swept;
CREATE TRIGGER escape BEFORE UPDATE ON swept FOR EACH ROW EXECUTE FUNCTION escape();
SELECT * FROM interlock.sweep();
DROP TRIGGER escape ON swept;
SELECT * FROM interlock.sweep();
-- a marker column that was renamed: reported, and the others are swept
CREATE TABLE other (id int PRIMARY KEY);
SELECT interlock.enable_marker('other', '1 millisecond');
INSERT INTO other VALUES (1);
SELECT (interlock.lock_row('other', 1, 'anna')).locked, pg_sleep(0.01);
ALTER TABLE swept RENAME lock_until TO deadline;
SELECT * FROM interlock.sweep();
UPDATE swept SET body = 'x';
SELECT interlock.lock_row('swept', 1, 'anna');
SELECT rel FROM interlock.row_locks;
SELECT interlock.enable_marker('swept', until_column => 'deadline');
SELECT (interlock.lock_row('swept', 1, 'anna')).locked;
DROP TABLE swept, seen, other;
DROP FUNCTION spy, escape;
REVOKE CREATE ON SCHEMA public FROM interlock_plain;

-- partitions
CREATE TABLE sheet (id int, region text, body text, PRIMARY KEY (id, region)) PARTITION BY LIST (region);
CREATE TABLE sheet_eu PARTITION OF sheet FOR VALUES IN ('eu');
SELECT interlock.enable_marker('sheet', '1 millisecond');
CREATE TABLE sheet_us PARTITION OF sheet FOR VALUES IN ('us');
INSERT INTO sheet VALUES (1, 'eu'), (2, 'us'), (3, 'us');
SELECT (interlock.lock_row('sheet', '{"id": 1, "region": "eu"}', 'anna')).locked,
       (interlock.lock_row('sheet', '{"id": 2, "region": "us"}', 'anna')).locked,
       (interlock.lock_row('sheet', '{"id": 3, "region": "us"}'::jsonb, 'anna', '1 hour')).locked;
UPDATE sheet SET region = 'eu' WHERE id = 3;
SELECT pg_sleep(0.01);
SELECT rel, key, live FROM interlock.row_locks ORDER BY key->'id';
SELECT * FROM interlock.sweep();
SELECT interlock.enable_marker('sheet_us');
DROP TABLE sheet;

-- names, and bad input
CREATE TABLE "Odd ""Page""" ("The.Id" int PRIMARY KEY, "Body" text);
SELECT interlock.enable_marker('"Odd ""Page"""', '1 hour', true, 'full', 'S t', 'H"o', 'T.i', 'U', 'R');
INSERT INTO "Odd ""Page""" VALUES (1, 'x');
SELECT locked, holder FROM interlock.lock_row('"Odd ""Page"""', 1, 'o''hara "x"');
UPDATE "Odd ""Page""" SET "Body" = 'y';
SELECT rel, key, holder FROM interlock.row_locks;
SELECT interlock.save_row('"Odd ""Page"""', 1, 'o''hara "x"', '{"Body": "z"}');
DROP TABLE "Odd ""Page""";
\set VERBOSITY sqlstate
CREATE TABLE bad (id int PRIMARY KEY, body text, flag boolean, lock_reason int, gen int GENERATED ALWAYS AS (1) STORED, naive timestamp);
CREATE VIEW bad_view AS SELECT * FROM bad;
SELECT interlock.enable_marker('bad_view');
SELECT interlock.enable_marker('pg_class');
SELECT interlock.enable_marker(NULL);
SELECT interlock.enable_marker('bad');
SELECT interlock.enable_marker('bad', reason_column => 'body', status_column => 'flag');
SELECT interlock.enable_marker('bad', reason_column => 'body', status_column => 'gen');
SELECT interlock.enable_marker('bad', reason_column => 'body', status_column => 'id');
SELECT interlock.enable_marker('bad', reason_column => 'body', until_column => 'naive');
SELECT interlock.enable_marker('bad', reason_column => 'body', holder_column => 'body');
SELECT interlock.enable_marker('bad', '0', reason_column => 'body');
SELECT interlock.enable_marker('bad', '-1 min', reason_column => 'body');
SELECT interlock.enable_marker('bad', '1000 years', reason_column => 'body');
SELECT interlock.enable_marker('bad', NULL, reason_column => 'body');
SELECT interlock.enable_marker('bad', enforce => NULL, reason_column => 'body');
SELECT interlock.disable_marker('bad');
SELECT interlock.lock_row('bad', 1, 'anna');
SELECT interlock.enable_marker('bad', reason_column => 'body');
INSERT INTO bad (id) VALUES (1);
SELECT interlock.lock_row(NULL, 1, 'anna');
SELECT interlock.lock_row('bad', NULL, 'anna');
SELECT interlock.lock_row('bad', 1, NULL);
SELECT interlock.lock_row('bad', 1, '');
SELECT interlock.lock_row('bad', 1, repeat('x', 1048576));
SELECT (interlock.lock_row('bad', 1, repeat('x', 1024))).locked;
SELECT interlock.lock_row('bad', 1, 'anna', '0');
SELECT interlock.lock_row('bad', 1, 'anna', '-1 s');
SELECT interlock.lock_row('bad', 1, 'anna', '178000000 years');
SELECT interlock.lock_row('bad', 2, 'anna');
SELECT interlock.row_lock_of('bad', 2);
SELECT interlock.unlock_row('bad', 2, 'anna'), interlock.touch_row('bad', 2, 'anna');
SELECT interlock.save_row('bad', 2, 'anna', '{}');
SELECT interlock.save_row('bad', 1, 'anna', '{"lock_by": "x"}');
SELECT interlock.save_row('bad', 1, 'anna', '{"nowhere": "x"}');
SELECT interlock.save_row('bad', 1, 'anna', '{}', 1);
SELECT interlock.save_row('bad', 1, 'anna', NULL);
SELECT interlock.set_holder('');
SELECT interlock.set_holder(repeat('x', 1025));
INSERT INTO bad (id, lock_status, lock_by) VALUES (3, 1, repeat('x', 1025));
SELECT interlock.sweep(0);
SELECT interlock.sweep(-1);
SELECT interlock_internal.marker_trigger();
SET ROLE interlock_guest;
SELECT interlock.enable_marker('bad');
SELECT interlock.disable_marker('bad');
RESET ROLE;
ALTER TABLE bad DISABLE TRIGGER zzz_interlock_marker;
SELECT interlock.lock_row('bad', 1, 'anna');
-- without a key no function can name a row, but plain SQL is checked
CREATE TABLE no_key (body text);
SELECT interlock.enable_marker('no_key', notify => 'full');
INSERT INTO no_key VALUES ('x');
UPDATE no_key SET lock_status = 1, lock_by = 'anna';
UPDATE no_key SET body = 'y';
SELECT interlock.lock_row('no_key', 1, 'anna');
SELECT key, holder FROM interlock.row_locks WHERE rel = 'no_key'::regclass;
DROP TABLE bad, no_key CASCADE;
DROP OWNED BY interlock_editor;
DROP ROLE interlock_editor, interlock_guest, interlock_plain;
