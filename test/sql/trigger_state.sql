-- What ALTER TABLE said of a trigger stays when a function replaces it
\set SHOW_CONTEXT never
CREATE ROLE state_app;
SELECT interlock.grant_writer('editor', 'state_app');
CREATE FUNCTION configure(tab regclass) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM interlock.own_columns(tab, 'editor', '{a}'), interlock.share_columns(tab, '{b}'), interlock.group_columns(tab, '{a,b}'), interlock.hand_over_columns(tab, '{a}', 'editor');
    PERFORM interlock.enable_versioning(tab), interlock.enable_marker(tab, '1 hour', notify => 'full'), interlock.enable_history(tab);
    PERFORM interlock.define_transitions(tab, 'state', '{"new": ["old"]}', '{new}'), interlock.require_lease(tab, 'Key:{id}');
END $$;
CREATE FUNCTION states(tab regclass) RETURNS TABLE (rel regclass, states text) LANGUAGE sql AS $$
    SELECT tgrelid::regclass, string_agg(format('%s %s', tgname, tgenabled), E'\n' ORDER BY tgname) FROM pg_trigger
     WHERE tgname LIKE '%interlock%' AND (tgrelid = tab OR tgrelid IN (SELECT relid FROM pg_partition_tree(tab))) GROUP BY tgrelid ORDER BY tgrelid::regclass::text $$;
CREATE TABLE doc (id int PRIMARY KEY, a int, b int, state text);
SELECT configure('doc');
SELECT * FROM states('doc');
DO $$ DECLARE name text; state text; before text; BEGIN
    FOREACH state IN ARRAY '{DISABLE,ENABLE ALWAYS,ENABLE REPLICA,ENABLE}'::text[] LOOP
        FOR name IN SELECT tgname FROM pg_trigger WHERE tgrelid = 'doc'::regclass AND tgname LIKE '%interlock%' LOOP
            EXECUTE format('ALTER TABLE doc %s TRIGGER %I', state, name);
        END LOOP;
        SELECT s.states INTO before FROM states('doc') s;
        PERFORM configure('doc');
        RAISE NOTICE '%: %, kept: %', state, (SELECT string_agg(DISTINCT tgenabled::text, ' ') FROM pg_trigger WHERE tgrelid = 'doc'::regclass AND tgname LIKE '%interlock%'),
            (SELECT s.states = before FROM states('doc') s);
    END LOOP;
END $$;
DROP TABLE doc;
DROP TABLE doc_history;
-- a partition may differ from its parent, and belong to another
CREATE TABLE part (id int PRIMARY KEY, a int, b int, state text) PARTITION BY LIST (id);
CREATE TABLE part_1 PARTITION OF part FOR VALUES IN (1) PARTITION BY LIST (id);
CREATE TABLE part_1_1 PARTITION OF part_1 FOR VALUES IN (1);
CREATE TABLE part_2 PARTITION OF part FOR VALUES IN (2);
GRANT CREATE ON SCHEMA public TO state_app;
ALTER TABLE part OWNER TO state_app;
GRANT TRIGGER ON part_1, part_1_1, part_2 TO state_app;
SELECT interlock.own_columns('part', 'editor', '{a}'), interlock.enable_history('part');
ALTER TABLE part_2 DISABLE TRIGGER zzz_interlock_columns;
ALTER TABLE part_1_1 ENABLE ALWAYS TRIGGER zzz_interlock_columns;
ALTER TABLE part_1_1 DISABLE TRIGGER "000_interlock_history";
ALTER TABLE ONLY part ENABLE REPLICA TRIGGER zzz_interlock_columns;
SELECT * FROM states('part');
SET ROLE state_app;
SELECT interlock.share_columns('part', '{b}');
RESET ROLE;
SELECT interlock.enable_history('part');
SELECT * FROM states('part');
INSERT INTO part_2 VALUES (2, 1);
UPDATE part SET a = 2 RETURNING a;
ALTER TABLE part ENABLE TRIGGER zzz_interlock_columns;
UPDATE part SET a = 3;
-- a new trigger is a new one
ALTER TABLE part DISABLE TRIGGER zzz_interlock_columns;
SELECT interlock.release_columns('part', '{a,b}'), interlock.own_columns('part', 'editor', '{a}');
SELECT * FROM states('part');
DROP TABLE part CASCADE;
DROP TABLE part_history;
DROP FUNCTION configure, states;
SELECT interlock.revoke_writer('editor', 'state_app');
DROP OWNED BY state_app;
DROP ROLE state_app;

-- a trigger that was renamed is the same one
CREATE TABLE renamed (id int PRIMARY KEY, status text DEFAULT 'new');
SELECT interlock.enable_versioning('renamed'), interlock.enable_marker('renamed'), interlock.define_transitions('renamed', 'status', '{"new": ["paid"]}');
ALTER TRIGGER zzz_interlock_version ON renamed RENAME TO "Zzz v";
ALTER TRIGGER zzz_interlock_marker ON renamed RENAME TO "Zzz m";
SELECT interlock.enable_versioning('renamed', blind_updates => 'reject'), interlock.enable_marker('renamed', '1 min');
SELECT tgname FROM pg_trigger WHERE tgrelid = 'renamed'::regclass ORDER BY 1;
-- and another one for the same, which a role with TRIGGER can make, is refused
INSERT INTO renamed VALUES (1);
CREATE TRIGGER zzzz BEFORE UPDATE ON renamed FOR EACH ROW EXECUTE FUNCTION interlock_internal.version_trigger('id', 'allow', 'move');
UPDATE renamed SET status = 'paid' WHERE version = 1;
SELECT interlock.versioned_update('renamed', 1, 1, '{"status": "paid"}');
SELECT interlock.enable_versioning('renamed');
SELECT interlock.disable_versioning('renamed');
SELECT rel, finding, advice FROM interlock.advise() WHERE rel = 'renamed'::regclass AND finding ~ 'same';
SELECT mechanism, enforced FROM interlock.guards WHERE rel = 'renamed'::regclass ORDER BY 1;
DROP TRIGGER zzzz ON renamed;
CREATE TRIGGER zzzz BEFORE UPDATE ON renamed FOR EACH ROW EXECUTE FUNCTION interlock_internal.marker_trigger('1 microseconds', 'advise', 'lock_status', 'lock_by', 'lock_time', 'lock_until', 'lock_reason');
SELECT interlock.lock_row('renamed', 1, 'anna');
UPDATE renamed SET status = 'paid' WHERE version = 1;
SELECT interlock.disable_marker('renamed');
DROP TRIGGER zzzz ON renamed;
CREATE TRIGGER aaa BEFORE UPDATE ON renamed FOR EACH ROW EXECUTE FUNCTION interlock_internal.transition_trigger('status', '{"new": ["x"]}', '', 'allow');
UPDATE renamed SET status = 'x' WHERE version = 1;
SELECT interlock.transition('renamed', 1, 'new', 'x');
DROP TRIGGER aaa ON renamed;
UPDATE renamed SET status = 'paid' WHERE version = 1;
SELECT interlock.disable_versioning('renamed'), interlock.disable_marker('renamed'), interlock.drop_transitions('renamed', 'status');
SELECT count(*) FROM pg_trigger WHERE tgrelid = 'renamed'::regclass;
DROP TABLE renamed;

-- a history, too
CREATE TABLE recorded (id int PRIMARY KEY, n int NOT NULL DEFAULT 0);
SELECT interlock.enable_history('recorded');
ALTER TRIGGER "000_interlock_history" ON recorded RENAME TO "000 h";
SELECT interlock.enable_history('recorded');
INSERT INTO recorded VALUES (1);
SELECT count(*) FROM recorded_history;
SELECT interlock.disable_history('recorded');
SELECT count(*) FROM pg_trigger WHERE tgrelid = 'recorded'::regclass;
-- also where the history table is another role's, and its table was a partition
SELECT interlock.enable_history('recorded');
ALTER TRIGGER "000_interlock_history" ON recorded RENAME TO "000 h";
CREATE ROLE state_owner;
ALTER TABLE recorded OWNER TO state_owner;
INSERT INTO recorded VALUES (2);
SELECT interlock.disable_history('recorded');
SELECT count(*) FROM pg_trigger WHERE tgrelid = 'recorded'::regclass;
ALTER TABLE recorded OWNER TO CURRENT_USER;
SELECT interlock.enable_history('recorded');
ALTER TRIGGER "000_interlock_history" ON recorded RENAME TO "000 h";
ALTER TABLE recorded_history OWNER TO state_owner;
SELECT interlock.enable_history('recorded');
INSERT INTO recorded VALUES (3);
SELECT tgname, tgconstrrelid::regclass FROM pg_trigger WHERE tgrelid = 'recorded'::regclass ORDER BY 1;
SELECT interlock.disable_history('recorded');
DROP OWNED BY state_owner;
DROP ROLE state_owner;
CREATE TABLE whole (id int PRIMARY KEY) PARTITION BY LIST (id);
CREATE TABLE part PARTITION OF whole FOR VALUES IN (1);
SELECT interlock.enable_history('part');
ALTER TRIGGER "000_interlock_history" ON part RENAME TO "000 h";
SELECT interlock.enable_history('whole');
SELECT interlock.disable_history('part');
SELECT interlock.enable_history('whole');
ALTER TRIGGER "000_interlock_history" ON whole RENAME TO "000 h";
ALTER TABLE whole DETACH PARTITION part;
SELECT interlock.disable_history('part');
SELECT count(*) FROM pg_trigger WHERE tgrelid = 'part'::regclass;
ALTER TABLE whole ATTACH PARTITION part FOR VALUES IN (1);
ALTER TABLE whole DETACH PARTITION part;
SELECT interlock.enable_history('part');
SELECT tgname FROM pg_trigger WHERE tgrelid = 'part'::regclass ORDER BY 1;
-- a trigger of a partition's own beside that of its parent
SELECT interlock.disable_history('part');
SELECT interlock.enable_versioning('part');
ALTER TRIGGER zzz_interlock_version ON part RENAME TO zzz_v;
SELECT interlock.enable_versioning('whole');
DROP TABLE part;
CREATE TABLE part PARTITION OF whole FOR VALUES IN (1);
CREATE TRIGGER zzz_v BEFORE UPDATE OR DELETE ON part FOR EACH ROW EXECUTE FUNCTION interlock_internal.version_trigger('version', 'allow', 'move');
SELECT rel, finding FROM interlock.advise() WHERE rel IN ('whole', 'part');
DROP TABLE whole;
-- and the notifications of markers
CREATE TABLE noted (id int PRIMARY KEY);
SELECT interlock.enable_marker('noted', notify => 'on');
ALTER TRIGGER zzz_interlock_marker_notify ON noted RENAME TO "notify m";
SELECT interlock.enable_marker('noted', notify => 'full');
SELECT tgname, tgnargs FROM pg_trigger WHERE tgrelid = 'noted'::regclass AND tgnargs < 2;
SELECT interlock.disable_marker('noted');
SELECT count(*) FROM pg_trigger WHERE tgrelid = 'noted'::regclass;
DROP TABLE noted;

-- the trigger of counters fires after all of ours, which is no finding, and others do not fire after it
SELECT interlock.enable_versioning('recorded'), interlock.enable_marker('recorded'), interlock.enable_escrow('recorded', 'n');
SELECT finding FROM interlock.advise() WHERE rel = 'recorded'::regclass;
SELECT mechanism, enforced FROM interlock.guards WHERE rel = 'recorded'::regclass ORDER BY 1;
CREATE TABLE inherits () INHERITS (recorded);
SELECT finding FROM interlock.advise() WHERE rel = 'inherits'::regclass ORDER BY 1;
DROP TABLE inherits;
CREATE FUNCTION keeps() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN COALESCE(NEW, OLD); END';
CREATE TRIGGER zzzzz BEFORE UPDATE ON recorded FOR EACH ROW EXECUTE FUNCTION keeps();
SELECT finding FROM interlock.advise() WHERE rel = 'recorded'::regclass;
DROP TRIGGER zzzzz ON recorded;
-- and it fires for DELETE, and for INSERT after the one of versions
CREATE TRIGGER zzz_keep BEFORE DELETE ON recorded FOR EACH ROW EXECUTE FUNCTION keeps();
DELETE FROM recorded;
SELECT finding FROM interlock.advise() WHERE rel = 'recorded'::regclass;
DROP TRIGGER zzz_keep ON recorded;
CREATE TRIGGER zzz_keep BEFORE INSERT ON recorded FOR EACH ROW EXECUTE FUNCTION keeps();
INSERT INTO recorded VALUES (4);
SELECT finding FROM interlock.advise() WHERE rel = 'recorded'::regclass;
SELECT mechanism, enforced FROM interlock.guards WHERE rel = 'recorded'::regclass ORDER BY 1;
DROP TRIGGER zzz_keep ON recorded;
SELECT interlock.disable_escrow('recorded', 'n');
CREATE TRIGGER zzz_keep BEFORE DELETE ON recorded FOR EACH ROW EXECUTE FUNCTION keeps();
SELECT interlock.enable_escrow('recorded', 'n');
DROP TABLE recorded;
DROP FUNCTION keeps();
