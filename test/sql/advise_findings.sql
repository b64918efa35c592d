-- What advise() finds wrong with mechanisms that are configured
SET client_min_messages = warning;
-- advise() with a plan that stays, as to plan it takes ten times as long as to run it
CREATE FUNCTION advised(OUT rel regclass, OUT severity text, OUT finding text, OUT evidence text, OUT advice text) RETURNS SETOF record LANGUAGE plpgsql AS $$
BEGIN
    RETURN QUERY SELECT * FROM interlock.advise();
END $$;
-- SEC-12, ORM-2: the default that remembers deleted versions, after a schema tool was there
CREATE TABLE "Post" (id int PRIMARY KEY, "Lock" int NOT NULL DEFAULT 0);
CREATE TABLE note (id int PRIMARY KEY);
CREATE TABLE own_default (id int PRIMARY KEY, version bigint NOT NULL DEFAULT (extract(epoch FROM clock_timestamp()) * 1000)::bigint);
CREATE TABLE timed (id int PRIMARY KEY, updated_at timestamptz);
SELECT interlock.enable_versioning('"Post"', 'Lock'), interlock.enable_versioning('note', 'version', '{id}'), interlock.enable_versioning('own_default'),
    interlock.enable_versioning('timed', 'updated_at');
SELECT rel, severity, finding, advice FROM advised();
ALTER TABLE "Post" ALTER "Lock" DROP DEFAULT;
ALTER TABLE note ALTER version DROP DEFAULT;
SELECT rel, severity, finding, advice FROM advised() ORDER BY 1;
ALTER TABLE "Post" ALTER "Lock" SET DEFAULT 0;
ALTER TABLE note ALTER version SET DEFAULT 1;
ALTER TABLE own_default ALTER version SET DEFAULT 0;
SELECT rel, severity, finding, advice FROM advised() ORDER BY 1;
-- replaced by an expression, where there is a sequence
ALTER TABLE note ALTER version SET DEFAULT (random() * 10)::bigint;
ALTER TABLE "Post" ALTER "Lock" SET DEFAULT -1;
ALTER TABLE own_default ALTER version SET DEFAULT NULL;
SELECT rel, finding FROM advised() ORDER BY 1;
-- the advice helps, and what was remembered is not forgotten
INSERT INTO note VALUES (1, 7);
DELETE FROM note;
SELECT advice FROM advised() WHERE rel <> 'own_default'::regclass ORDER BY rel \gexec
SELECT interlock.enable_versioning('own_default');
SELECT rel, severity, finding, advice FROM advised();
INSERT INTO note VALUES (1) RETURNING version;
-- a default without its sequence
ALTER TABLE note ALTER version DROP DEFAULT;
DROP SEQUENCE note_version_start;
ALTER TABLE note ALTER version SET DEFAULT interlock.first_version('public.note_version_start');
SELECT rel, severity, finding, advice FROM advised();
SELECT interlock.enable_versioning('note', 'version', '{id}');
SELECT rel, severity, finding, advice FROM advised();
DROP TABLE "Post", note, own_default, timed;
-- partitions: the parent alone, and one that was attached with a default of its own
CREATE TABLE part (id int, version bigint NOT NULL DEFAULT 1) PARTITION BY RANGE (id);
CREATE TABLE part_1 PARTITION OF part FOR VALUES FROM (0) TO (10);
SELECT interlock.enable_versioning('part');
CREATE TABLE part_2 (id int, version bigint NOT NULL DEFAULT 1);
ALTER TABLE part ATTACH PARTITION part_2 DEFAULT;
SELECT rel, finding FROM advised();
ALTER TABLE part ALTER version SET DEFAULT 1;
SELECT rel, finding FROM advised();
DROP TABLE part;

-- ADV-4: the trigger was dropped, and the default and its sequence are there
CREATE TABLE "No trigger" (id int PRIMARY KEY, "Lock" int);
SELECT interlock.enable_versioning('"No trigger"', 'Lock');
CREATE TABLE copied (LIKE "No trigger" INCLUDING ALL);
SELECT rel, severity, finding, advice FROM advised();
DROP TRIGGER zzz_interlock_version ON "No trigger";
SELECT rel, severity, finding, advice FROM advised();
SELECT advice FROM advised() \gexec
SELECT rel, severity, finding, advice FROM advised();
INSERT INTO "No trigger" VALUES (1);
UPDATE "No trigger" SET id = 1 RETURNING "Lock";
SELECT interlock.disable_versioning('"No trigger"');
SELECT rel, severity, finding, advice FROM advised();
DROP TABLE "No trigger", copied;
-- ORM-1: a schema file has the default, and neither the sequence nor the trigger
CREATE TABLE loaded (id int PRIMARY KEY, version int NOT NULL DEFAULT interlock.first_version('public.loaded_version_start'::text));
SELECT rel, severity, finding, advice FROM advised();
SELECT interlock.enable_versioning('loaded');
CREATE TABLE copied (LIKE loaded INCLUDING ALL);
SELECT rel, severity, finding, advice FROM advised();
DROP TABLE loaded, copied;
CREATE TABLE part (id int, version bigint) PARTITION BY RANGE (id);
CREATE TABLE part_1 PARTITION OF part DEFAULT;
SELECT interlock.enable_versioning('part');
DROP TRIGGER zzz_interlock_version ON part;
SELECT rel, severity, finding, advice FROM advised();
DROP TABLE part;

-- ORM-4: a history shows writers that insert their own first version
CREATE VIEW reused AS SELECT rel, finding, advice FROM advised() WHERE finding ~ 'used again';
CREATE TABLE "Post" (id int PRIMARY KEY, seen int);
SELECT interlock.enable_versioning('"Post"', 'Lock', '{seen}'), interlock.enable_history('"Post"');
-- the default gives versions; a version above the old one is right, too
INSERT INTO "Post" (id) VALUES (1), (2), (3), (4), (5);
UPDATE "Post" SET id = id;
DELETE FROM "Post" WHERE id < 4;
INSERT INTO "Post" (id) VALUES (1);
INSERT INTO "Post" (id, "Lock") VALUES (2, 7), (6, 1);
DELETE FROM "Post" WHERE id = 6;
BEGIN;
INSERT INTO "Post" (id, "Lock") VALUES (3, 1);
ROLLBACK;
SELECT * FROM reused;
-- a lower one, and the same; after a deletion, TRUNCATE, and a change of the key; in one transaction, too
INSERT INTO "Post" (id, "Lock") VALUES (3, 1), (6, 1);
SELECT * FROM reused;
BEGIN;
DELETE FROM "Post" WHERE id = 4;
INSERT INTO "Post" (id, "Lock") VALUES (4, 0);
COMMIT;
UPDATE "Post" SET id = 50 WHERE id = 5;
INSERT INTO "Post" (id, "Lock") VALUES (5, 1);
SELECT finding FROM reused;
TRUNCATE "Post";
INSERT INTO "Post" (id, "Lock") VALUES (50, 1);
SELECT finding FROM reused;
-- what the guide's page finds the keys by
SELECT i.key, i.version FROM "Post_history" i
 WHERE i.operation = 'insert'
   AND EXISTS (SELECT FROM "Post_history" d WHERE d.key = i.key AND d.id < i.id
                  AND d.operation IN ('delete', 'truncate', 'moved') AND d.version >= i.version)
 ORDER BY i.id;
-- more indexes and columns do not matter; it ends after a week
ALTER TABLE "Post_history" ADD note text;
CREATE INDEX ON "Post_history" (changed_at);
CREATE INDEX ON "Post_history" (id DESC);
SELECT finding FROM reused;
BEGIN;
UPDATE "Post_history" SET changed_at = changed_at - interval '6 days 23 hours';
SELECT finding FROM reused;
UPDATE "Post_history" SET changed_at = changed_at - interval '2 hours';
SELECT finding FROM reused;
ROLLBACK;
-- after 10000 younger entries it ends as well
BEGIN;
INSERT INTO "Post_history" (key, changed_at, changed_by, operation, row_data, transaction, command)
    SELECT '{"id": -1}', now(), 'nobody', 'update', '{}', 1, i FROM generate_series(1, 9999) i;
SELECT finding FROM reused;
INSERT INTO "Post_history" (key, changed_at, changed_by, operation, row_data, transaction, command)
    VALUES ('{"id": -1}', now(), 'nobody', 'update', '{}', 1, 1);
SELECT finding FROM reused;
ROLLBACK;
-- not without versions, nor in a session that may not read the history, or not all of it
CREATE ROLE advise_reader;
SET ROLE advise_reader;
SELECT finding FROM reused;
RESET ROLE;
GRANT SELECT ON reused, "Post" TO advise_reader;
CREATE FUNCTION reused_by() RETURNS bigint LANGUAGE sql AS $$ SELECT count(*) FROM advised() WHERE finding ~ 'used again' $$;
SET ROLE advise_reader;
SELECT reused_by();
RESET ROLE;
GRANT SELECT (id, key, version, changed_at, operation, transaction) ON "Post_history" TO advise_reader;
SET ROLE advise_reader;
SELECT reused_by();
RESET ROLE;
GRANT SELECT (command) ON "Post_history" TO advise_reader;
SET ROLE advise_reader;
SELECT reused_by();
RESET ROLE;
REVOKE SELECT ON "Post" FROM advise_reader;
SET ROLE advise_reader;
SELECT reused_by();
RESET ROLE;
GRANT SELECT ON "Post" TO advise_reader;
ALTER TABLE "Post_history" ENABLE ROW LEVEL SECURITY;
CREATE POLICY everything ON "Post_history" USING (reused_by() > 100);
SET ROLE advise_reader;
SELECT reused_by();
RESET ROLE;
SELECT reused_by();
SELECT interlock.disable_versioning('"Post"');
SELECT reused_by();
DROP TABLE "Post", "Post_history";
-- of a partitioned table, one finding; a row that goes on in another partition is not inserted again
CREATE TABLE part (id int, day int, version bigint NOT NULL, PRIMARY KEY (id, day)) PARTITION BY RANGE (day);
CREATE TABLE part_1 PARTITION OF part FOR VALUES FROM (0) TO (10);
CREATE TABLE part_2 PARTITION OF part DEFAULT;
SELECT interlock.enable_versioning('part', ignore_columns => '{day}'), interlock.enable_history('part');
INSERT INTO part (id, day) VALUES (1, 1), (2, 2);
UPDATE part SET day = 11 WHERE id = 1;
SELECT reused_by();
DELETE FROM part WHERE id = 2;
INSERT INTO part VALUES (2, 2, 1);
SELECT rel, finding FROM reused;
DROP TABLE part, part_history;
-- within a transaction the order of commands counts: a trigger that deletes what is inserted
CREATE TABLE brief (id int PRIMARY KEY);
CREATE FUNCTION delete_it() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN DELETE FROM brief WHERE id = NEW.id; RETURN NULL; END $$;
CREATE TRIGGER a AFTER INSERT ON brief FOR EACH ROW EXECUTE FUNCTION delete_it();
SELECT interlock.enable_versioning('brief'), interlock.enable_history('brief');
INSERT INTO brief VALUES (1);
SELECT operation, version FROM brief_history ORDER BY id;
SELECT reused_by();
DROP TABLE brief, brief_history;
DROP FUNCTION delete_it;
DROP OWNED BY advise_reader;
DROP ROLE advise_reader;
DROP VIEW reused;
DROP FUNCTION reused_by;

-- SEC-12: tables that inherit
CREATE TABLE parent (id int, status text, step text);
SELECT interlock.define_transitions('parent', 'status', '{"a": ["b"]}'), interlock.define_transitions('parent', 'step', '{"a": ["b"]}'),
    interlock.enable_versioning('parent'), interlock.enable_marker('parent'), interlock.own_columns('parent', 'w', '{id}');
CREATE TABLE child () INHERITS (parent);
SELECT rel, finding, advice FROM advised() ORDER BY 2;
SELECT interlock.define_transitions('child', 'step', '{"a": ["b"]}'), interlock.enable_versioning('child'), interlock.enable_marker('child');
SELECT rel, finding FROM advised() ORDER BY 2;
DROP TABLE parent CASCADE;

-- triggers that are off, with the line that enables them
CREATE TABLE "Off one" (id int PRIMARY KEY);
SELECT interlock.enable_versioning('"Off one"');
ALTER TABLE "Off one" DISABLE TRIGGER zzz_interlock_version;
SELECT rel, severity, finding, advice FROM advised();
SELECT advice FROM advised() \gexec
ALTER TABLE "Off one" ENABLE REPLICA TRIGGER zzz_interlock_version;
SELECT rel, severity, finding, advice FROM advised();
SELECT advice FROM advised() \gexec
SELECT rel, severity, finding, advice FROM advised();
DROP TABLE "Off one";

-- those of other concepts, too
CREATE TABLE "All off" (id int PRIMARY KEY, status text);
SELECT interlock.define_transitions('"All off"', 'status', '{"a": ["b"]}', '{a}'), interlock.enable_marker('"All off"', notify => 'on'),
    interlock.own_columns('"All off"', 'w', '{id}'), interlock.enable_history('"All off"'), interlock.require_lease('"All off"', 'x:{id}');
SELECT rel, severity, finding, advice FROM advised();
ALTER TABLE "All off" DISABLE TRIGGER USER;
SELECT finding FROM advised() ORDER BY finding COLLATE "C";
SELECT advice FROM advised() ORDER BY advice COLLATE "C" \gexec
SELECT rel, severity, finding, advice FROM advised();
ALTER TABLE "All off" ENABLE REPLICA TRIGGER zzz_interlock_columns;
SET session_replication_role = replica;
SELECT finding, advice FROM advised() ORDER BY finding COLLATE "C" LIMIT 3;
RESET session_replication_role;
SELECT finding, advice FROM advised();
DROP TABLE "All off", "All off_history";

-- SEC-6: triggers that fire after ours, with the line that renames them
CREATE TABLE "Late one" (id int PRIMARY KEY, status text);
SELECT interlock.define_transitions('"Late one"', 'status', '{"a": ["b"]}'), interlock.enable_versioning('"Late one"');
CREATE FUNCTION nothing() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END';
CREATE TRIGGER "zzzz Touch" BEFORE UPDATE ON "Late one" FOR EACH ROW EXECUTE FUNCTION nothing();
CREATE TRIGGER zzzz_insert BEFORE INSERT ON "Late one" FOR EACH ROW EXECUTE FUNCTION nothing();
CREATE TRIGGER zzzz_after AFTER UPDATE ON "Late one" FOR EACH ROW EXECUTE FUNCTION nothing();
CREATE TRIGGER zzzz_off BEFORE UPDATE ON "Late one" FOR EACH ROW EXECUTE FUNCTION nothing();
CREATE TRIGGER zzzz_replica BEFORE UPDATE ON "Late one" FOR EACH ROW EXECUTE FUNCTION nothing();
ALTER TABLE "Late one" DISABLE TRIGGER zzzz_off, ENABLE REPLICA TRIGGER zzzz_replica;
SELECT rel, severity, finding, advice FROM advised();
ALTER TABLE "Late one" ENABLE ALWAYS TRIGGER zzz_interlock_version;
SELECT rel, severity, finding, advice FROM advised() ORDER BY 2;
ALTER TABLE "Late one" ENABLE TRIGGER zzz_interlock_version;
SELECT advice FROM advised() \gexec
SELECT rel, severity, finding, advice FROM advised();
SELECT tgname FROM pg_trigger WHERE tgrelid = '"Late one"'::regclass AND tgname ~ 'Touch';
ALTER TABLE "Late one" ADD COLUMN seen int;
SELECT interlock.enable_marker('"Late one"');
DROP TRIGGER zzzz_insert ON "Late one";
SELECT interlock.enable_marker('"Late one"');
CREATE TRIGGER zzzz_insert BEFORE INSERT ON "Late one" FOR EACH ROW EXECUTE FUNCTION nothing();
SELECT rel, severity, finding, advice FROM advised();
DROP TABLE "Late one";
-- of a partitioned table, and of one partition
CREATE TABLE late (id int, version bigint) PARTITION BY RANGE (id);
CREATE TABLE late_1 PARTITION OF late FOR VALUES FROM (0) TO (10) PARTITION BY RANGE (id);
CREATE TABLE late_1a PARTITION OF late_1 DEFAULT;
CREATE TRIGGER zzzz BEFORE UPDATE ON late FOR EACH ROW EXECUTE FUNCTION nothing();
ALTER TABLE late DISABLE TRIGGER zzzz;
SELECT interlock.enable_versioning('late_1');
ALTER TABLE late ENABLE TRIGGER zzzz;
SELECT rel, severity, finding, advice FROM advised() WHERE finding ~ 'zzzz';
DROP TRIGGER zzzz ON late;
CREATE TRIGGER zzzz BEFORE UPDATE ON late_1 FOR EACH ROW EXECUTE FUNCTION nothing();
CREATE TRIGGER zzzy BEFORE UPDATE ON late_1a FOR EACH ROW EXECUTE FUNCTION nothing();
CREATE TRIGGER zzzz_own BEFORE UPDATE ON late_1a FOR EACH ROW EXECUTE FUNCTION nothing();
SELECT rel, severity, finding, advice FROM advised() WHERE finding ~ 'zzzz' ORDER BY 1;
DROP TABLE late;
DROP FUNCTION nothing;

-- ADV-5: columns that triggers of other concepts name, dropped and renamed
CREATE TABLE "Gone one" (id int PRIMARY KEY, "State" text, tenant int, price int, a int, b text);
SELECT interlock.define_transitions('"Gone one"', 'State', '{"a": ["b"]}', '{a}'),
    interlock.enable_marker('"Gone one"', '7 min', false, 'full', reason_column => 'why'),
    interlock.own_columns('"Gone one"', 'w', '{price}'), interlock.own_columns('"Gone one"', 'v', '{b}', 'skip'), interlock.share_columns('"Gone one"', '{a}'),
    interlock.require_lease('"Gone one"', '{{x}}:{tenant}/{id}', '{a,b}');
SELECT rel, severity, finding, advice FROM advised();
BEGIN;
ALTER TABLE "Gone one" RENAME lock_by TO holder;
ALTER TABLE "Gone one" DROP price, DROP a, DROP b;
ALTER TABLE "Gone one" RENAME "State" TO state;
ALTER TABLE "Gone one" RENAME tenant TO "Tenant";
SELECT rel, severity, finding, advice FROM advised() ORDER BY finding COLLATE "C";
-- each advice can be run as it is
SELECT DISTINCT ON (advice COLLATE "C") advice FROM advised() ORDER BY advice COLLATE "C" \gexec
SELECT rel, severity, finding, advice FROM advised();
SELECT interlock.define_transitions('"Gone one"', 'state', '{"a": ["b"]}', '{a}');
INSERT INTO "Gone one" (id, state) VALUES (2, 'a');
UPDATE "Gone one" SET state = 'b' RETURNING state;
COMMIT;
DROP TABLE "Gone one";
-- a marker keeps what it was
CREATE TABLE kept (id int PRIMARY KEY);
SELECT interlock.enable_marker('kept', '7 min', false, 'full', reason_column => 'why', take_over => 'allow');
SELECT tgname, tgnargs FROM pg_trigger WHERE tgrelid = 'kept'::regclass ORDER BY 1;
SELECT encode(tgargs, 'escape') AS arguments FROM pg_trigger WHERE tgrelid = 'kept'::regclass AND tgname = 'zzz_interlock_marker' \gset
ALTER TABLE kept DROP why;
SELECT advice FROM advised() \gexec
SELECT encode(tgargs, 'escape') = :'arguments' AS same FROM pg_trigger WHERE tgrelid = 'kept'::regclass AND tgname = 'zzz_interlock_marker';
SELECT tgname, tgnargs FROM pg_trigger WHERE tgrelid = 'kept'::regclass ORDER BY 1;
DROP TABLE kept;
-- a name that would end a comment
CREATE TABLE lines (id int PRIMARY KEY, "x
y" text);
SELECT interlock.own_columns('lines', 'w', E'{"x\ny"}');
ALTER TABLE lines DROP "x
y";
SELECT advice FROM advised() \gexec
SELECT rel, severity, finding, advice FROM advised();
DROP TABLE lines;

-- ADV-6: a history without a key, of another owner, and without one of its columns
CREATE ROLE advise_role;
CREATE TABLE "Past" ("Id" int, part int, PRIMARY KEY (part, "Id"));
SELECT interlock.enable_history('"Past"', 5, '1 day');
SELECT rel, severity, finding, advice FROM advised();
ALTER TABLE "Past" DROP CONSTRAINT "Past_pkey";
SELECT rel, severity, finding, advice FROM advised();
SELECT advice FROM advised() \gexec
ALTER TABLE "Past_history" OWNER TO advise_role;
SELECT finding, advice FROM advised();
ALTER TABLE "Past_history" OWNER TO CURRENT_USER;
SELECT rel, severity, finding, advice FROM advised();
ALTER TABLE "Past_history" DROP writer;
SELECT rel, severity, finding, advice FROM advised();
SELECT advice FROM advised() \gexec
SELECT rel, severity, finding, advice FROM advised();
INSERT INTO "Past" VALUES (1, 2);
SELECT count(*) FROM interlock.row_history('"Past"', '{"part": 2, "Id": 1}');
DROP TABLE "Past", "Past_history", "Past_history1";
DROP ROLE advise_role;

-- VER-50: a partition that was detached has lost the triggers of its parent
CREATE TABLE whole (id int, r text, state text, note text, version bigint NOT NULL DEFAULT 1, PRIMARY KEY (id, r)) PARTITION BY LIST (r);
CREATE TABLE part_a PARTITION OF whole FOR VALUES IN ('a');
CREATE TABLE part_b PARTITION OF whole FOR VALUES IN ('b');
CREATE TABLE part_c PARTITION OF whole FOR VALUES IN ('c') PARTITION BY LIST (r);
CREATE TABLE part_c1 PARTITION OF part_c DEFAULT;
SELECT interlock.configure('whole', '{"versioning": {}, "history": {}, "transitions": {"state": {"transitions": {"new": ["paid"]}}}, "marker": {},
    "ownership": {"columns": {"note": {"writer": "w"}}}, "require_lease": {"{id}": {}}}') IS NOT NULL AS configured;
SELECT * FROM advised();
ALTER TABLE whole DETACH PARTITION part_a;
ALTER TABLE whole DETACH PARTITION part_b CONCURRENTLY;
ALTER TABLE whole DETACH PARTITION part_c;
SELECT rel, severity, finding, evidence FROM advised();
SELECT advice FROM interlock.advise('part_a');
SELECT mechanism, enforced FROM interlock.guards WHERE rel = 'part_b'::regclass ORDER BY 1;
-- the advice makes the table what its parent is; the other ways are in its comment
SELECT advice FROM interlock.advise('part_a') \gexec
SELECT interlock.configuration('part_a') = interlock.configuration('whole') AS same;
SELECT interlock.disable_history('part_b');
ALTER TABLE whole ATTACH PARTITION part_b FOR VALUES IN ('b');
SELECT advice FROM interlock.advise('part_c') \gexec
SELECT rel, severity, finding FROM advised();
CREATE TABLE copied (LIKE whole INCLUDING DEFAULTS);
SELECT rel, severity, finding, evidence FROM advised() WHERE severity = 'broken';
ALTER TABLE copied ALTER version DROP DEFAULT;
SELECT rel, severity, finding, evidence FROM advised() WHERE severity = 'broken';
DROP TABLE whole, whole_history, part_a, part_a_history, part_c, part_c_history, copied;
-- without versions the trigger of the history is what is left
CREATE TABLE whole (id int PRIMARY KEY) PARTITION BY RANGE (id);
CREATE TABLE part_a PARTITION OF whole DEFAULT;
SELECT interlock.enable_history('whole');
ALTER TABLE whole DETACH PARTITION part_a;
INSERT INTO part_a VALUES (1);
SELECT count(*) FROM whole_history;
SELECT rel, severity, finding, evidence FROM advised();
SELECT advice FROM advised() \gexec
SELECT * FROM advised();
DROP TABLE whole, whole_history, part_a, part_a_history;

-- VER-54: rows without a version, in a column that was there before
CREATE TABLE adopted (id int PRIMARY KEY, version int, seen timestamptz);
INSERT INTO adopted (id, version) VALUES (1, NULL), (2, 7);
SET client_min_messages = notice;
SELECT interlock.enable_versioning('adopted', blind_updates => 'reject');
-- it says so once; advise() says so by the statistics
SELECT interlock.enable_versioning('adopted', blind_updates => 'reject');
ANALYZE adopted;
SELECT rel, severity, finding, evidence, advice FROM interlock.advise('adopted');
SELECT advice FROM interlock.advise('adopted') \gexec
SELECT id, version FROM adopted ORDER BY id;
ANALYZE adopted;
SELECT * FROM interlock.advise('adopted');
SELECT interlock.disable_versioning('adopted');
SELECT interlock.enable_versioning('adopted', 'seen');
SET client_min_messages = warning;
ANALYZE adopted;
SELECT advice FROM interlock.advise('adopted') WHERE finding ~ 'null' \gexec
SELECT count(seen) FROM adopted;
DROP TABLE adopted;

-- ORM-50: an index for sweeps that a schema tool has dropped; none that was not wanted
CREATE TABLE edited (id int PRIMARY KEY);
SELECT interlock.enable_marker('edited');
DROP INDEX edited_interlock_sweep_idx;
SELECT * FROM interlock.advise('edited');
SELECT advice FROM interlock.advise('edited') \gexec
SELECT * FROM interlock.advise('edited');
SELECT interlock.enable_marker('edited', sweep_index => false);
SELECT * FROM interlock.advise('edited');
SELECT interlock.lock_row('edited', 1, 'anna') WHERE EXISTS (SELECT FROM edited);
ALTER TABLE edited DROP lock_reason;
SELECT advice FROM interlock.advise('edited') \gexec
SELECT * FROM interlock.advise('edited');
DROP TABLE edited;
DROP FUNCTION advised();
