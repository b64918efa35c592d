-- The last word (SEC-6): no BEFORE trigger of others changes a row after it was checked.
\set VERBOSITY default
SET client_min_messages = warning;
-- The SQLSTATE and message of what a statement raises.
CREATE FUNCTION outcome(statement text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    message text; code text; hint text;
BEGIN
    EXECUTE statement;
    RETURN 'ok';
EXCEPTION WHEN OTHERS THEN
    GET STACKED DIAGNOSTICS message = MESSAGE_TEXT, code = RETURNED_SQLSTATE, hint = PG_EXCEPTION_HINT;
    RETURN concat_ws(': ', code, message, CASE WHEN hint LIKE '%ALTER TRIGGER%' THEN hint END);
END $$;
CREATE FUNCTION meddle() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_TABLE_NAME LIKE 'v%' THEN NEW.version := 1; END IF;
    IF TG_TABLE_NAME LIKE 's%' THEN NEW.status := 'shipped'; END IF;
    IF TG_TABLE_NAME LIKE 'm%' THEN NEW.lock_until := 'infinity'; END IF;
    RETURN NEW;
END $$;
CREATE TABLE v (id int PRIMARY KEY, note text);
CREATE TABLE s (id int PRIMARY KEY, status text, note text);
CREATE TABLE m (id int PRIMARY KEY, note text);
CREATE TABLE "Odd one" (id int PRIMARY KEY, note text);
SELECT interlock.enable_versioning('v');
SELECT interlock.define_transitions('s', 'status', '{"pending": ["paid"], "paid": ["shipped"]}');
SELECT interlock.enable_marker('m', '1 hour');
SELECT interlock.enable_versioning('"Odd one"');
INSERT INTO v VALUES (1);
INSERT INTO s VALUES (1, 'pending');
INSERT INTO m VALUES (1);
INSERT INTO "Odd one" VALUES (1);

-- created after enabling
CREATE TRIGGER zzzz_later BEFORE UPDATE ON v FOR EACH ROW EXECUTE FUNCTION meddle();
CREATE TRIGGER zzzz_later BEFORE UPDATE ON s FOR EACH ROW EXECUTE FUNCTION meddle();
CREATE TRIGGER zzzz_later BEFORE UPDATE ON m FOR EACH ROW EXECUTE FUNCTION meddle();
CREATE TRIGGER "zzzz Later" BEFORE UPDATE ON "Odd one" FOR EACH ROW EXECUTE FUNCTION meddle();
UPDATE v SET note = 'x';
SELECT outcome($$UPDATE s SET status = 'paid'$$);
SELECT outcome($$SELECT interlock.try_transition('s', 1, 'pending', 'paid')$$);
SELECT outcome($$SELECT interlock.versioned_update('v', 1, 1, '{"note": "x"}')$$);
SELECT outcome($$SELECT interlock.lock_row('m', 1, 'anna')$$);
SELECT outcome($$UPDATE "Odd one" SET note = 'x'$$);
-- what it cannot change passes
SELECT outcome('INSERT INTO v VALUES (2)'), outcome('DELETE FROM v WHERE id = 2'), outcome('INSERT INTO m VALUES (2)'),
       outcome('DELETE FROM m WHERE id = 2'), outcome($$SELECT interlock.versioned_update('v', 1, 7, '{}')$$);
-- the advice helps
ALTER TRIGGER "zzzz Later" ON public."Odd one" RENAME TO "a_zzzz Later";
SELECT outcome($$UPDATE "Odd one" SET note = 'x'$$);

-- disabled, never true, for some columns only, for replicas
ALTER TABLE v DISABLE TRIGGER zzzz_later;
SELECT outcome($$UPDATE v SET note = 'x'$$);
ALTER TABLE v ENABLE REPLICA TRIGGER zzzz_later;
SELECT outcome($$UPDATE v SET note = 'x'$$);
SET session_replication_role = replica;
SELECT outcome($$UPDATE v SET note = 'x'$$);
ALTER TABLE v ENABLE ALWAYS TRIGGER zzz_interlock_version;
SELECT outcome($$UPDATE v SET note = 'x'$$);
RESET session_replication_role;
CREATE OR REPLACE TRIGGER zzzz_later BEFORE UPDATE ON v FOR EACH ROW WHEN (false) EXECUTE FUNCTION meddle();
SELECT outcome($$UPDATE v SET note = 'x'$$);
CREATE OR REPLACE TRIGGER zzzz_later BEFORE UPDATE OF id ON v FOR EACH ROW EXECUTE FUNCTION meddle();
SELECT outcome($$UPDATE v SET note = 'x'$$);
CREATE OR REPLACE TRIGGER zzzz_later BEFORE INSERT ON v FOR EACH ROW EXECUTE FUNCTION meddle();
SELECT outcome($$UPDATE v SET note = 'x'$$);
DROP TRIGGER zzzz_later ON v;
CREATE TRIGGER zzzz_later AFTER UPDATE ON v FOR EACH ROW EXECUTE FUNCTION meddle();
SELECT outcome($$UPDATE v SET note = 'x'$$);
DROP TRIGGER zzzz_later ON v;

-- renamed after enabling, theirs and ours
CREATE TRIGGER aaa BEFORE UPDATE ON v FOR EACH ROW WHEN (NEW.note = 'meddle') EXECUTE FUNCTION meddle();
SELECT outcome($$UPDATE v SET note = 'y'$$);
ALTER TRIGGER aaa ON v RENAME TO zzzz;
SELECT outcome($$UPDATE v SET note = 'x'$$);
ALTER TRIGGER zzzz ON v RENAME TO bbb;
ALTER TRIGGER zzz_interlock_version ON v RENAME TO aaa;
SELECT outcome($$UPDATE v SET note = 'x'$$);
DROP TRIGGER bbb ON v;

-- at an insert, where markers are checked
DROP TRIGGER zzzz_later ON m;
CREATE TRIGGER zzzz_insert BEFORE INSERT ON m FOR EACH ROW EXECUTE FUNCTION meddle();
SELECT outcome('INSERT INTO m VALUES (3)'), outcome($$UPDATE m SET note = 'x'$$);
DROP TRIGGER zzzz_insert ON m;

-- already there when the concept is enabled
CREATE TABLE late (id int PRIMARY KEY, status text);
CREATE TRIGGER zzzz BEFORE UPDATE ON late FOR EACH ROW EXECUTE FUNCTION meddle();
SELECT outcome($$SELECT interlock.enable_versioning('late')$$);
SELECT outcome($$SELECT interlock.define_transitions('late', 'status', '{"a": ["b"]}')$$);
SELECT outcome($$SELECT interlock.enable_marker('late')$$);
SELECT outcome($$SELECT interlock.own_columns('late', 'w', '{status}')$$);
CREATE OR REPLACE TRIGGER zzzz BEFORE INSERT ON late FOR EACH ROW EXECUTE FUNCTION meddle();
SELECT outcome($$SELECT interlock.enable_versioning('late')$$), outcome($$SELECT interlock.enable_marker('late')$$);
ALTER TABLE late DISABLE TRIGGER zzzz;
SELECT outcome($$SELECT interlock.enable_marker('late')$$);

-- one partition only, and a trigger that all of them inherited
CREATE TABLE vp (id int, note text, version bigint DEFAULT 1) PARTITION BY RANGE (id);
CREATE TABLE vp1 PARTITION OF vp FOR VALUES FROM (0) TO (10);
CREATE TABLE vp2 (version bigint, extra int, note text, id int);
ALTER TABLE vp2 DROP COLUMN extra;
ALTER TABLE vp ATTACH PARTITION vp2 FOR VALUES FROM (10) TO (20);
CREATE TABLE vp3 PARTITION OF vp FOR VALUES FROM (20) TO (90) PARTITION BY RANGE (id);
CREATE TABLE vp3a PARTITION OF vp3 FOR VALUES FROM (20) TO (30);
CREATE TABLE vp3b PARTITION OF vp3 DEFAULT;
SELECT interlock.enable_versioning('vp');
INSERT INTO vp (id) VALUES (1), (11), (21);
CREATE TRIGGER zzzz BEFORE UPDATE ON vp1 FOR EACH ROW EXECUTE FUNCTION meddle();
SELECT outcome('UPDATE vp SET note = 1 WHERE id = 1'), outcome('UPDATE vp SET note = 1 WHERE id = 11');
DROP TRIGGER zzzz ON vp1;
CREATE TRIGGER zzzz BEFORE UPDATE ON vp FOR EACH ROW EXECUTE FUNCTION meddle();
SELECT outcome('UPDATE vp SET note = 1 WHERE id = 11');
DROP TRIGGER zzzz ON vp;

-- a row that moves: the trigger of the partition that it moves to has any name
UPDATE vp SET note = 'y';
UPDATE vp SET note = 'z';
CREATE TRIGGER aaa BEFORE INSERT ON vp2 FOR EACH ROW EXECUTE FUNCTION meddle();
SELECT outcome('UPDATE vp SET id = 12 WHERE id = 1 AND version = 3');
SELECT outcome('UPDATE vp SET id = 2 WHERE id = 1'), outcome('UPDATE vp SET id = 3 WHERE id = 11'), outcome('UPDATE vp SET id = 22 WHERE id = 2'),
       outcome('INSERT INTO vp VALUES (13)');
SELECT outcome('MERGE INTO vp USING (SELECT 22 AS id) s ON vp.id = s.id WHEN MATCHED THEN UPDATE SET id = 14');
-- out of a partition of a partition, and within it
SELECT outcome('UPDATE vp SET id = 14 WHERE id = 21'), outcome('UPDATE vp SET id = 40 WHERE id = 21'), outcome('UPDATE vp3 SET id = 15 WHERE id = 40'),
       outcome('UPDATE vp SET id = 99 WHERE id = 40'), outcome('UPDATE vp1 SET id = 40');
CREATE TRIGGER aaa BEFORE INSERT ON vp3b FOR EACH ROW WHEN (false) EXECUTE FUNCTION meddle();
SELECT outcome('UPDATE vp3 SET id = 50 WHERE id = 22');
ALTER TABLE vp3b DISABLE TRIGGER aaa;
SELECT outcome('UPDATE vp3 SET id = 50 WHERE id = 22');
SELECT tableoid::regclass, id, version FROM vp ORDER BY id;
DROP TABLE vp;
-- where the version itself is what moves the row
CREATE TABLE vv (id int, note text, version bigint NOT NULL) PARTITION BY RANGE (version);
CREATE TABLE vv1 PARTITION OF vv FOR VALUES FROM (0) TO (2);
CREATE TABLE vv2 PARTITION OF vv DEFAULT;
SELECT interlock.enable_versioning('vv');
INSERT INTO vv VALUES (1, 'x', 1);
CREATE TRIGGER aaa BEFORE INSERT ON vv2 FOR EACH ROW EXECUTE FUNCTION meddle();
SELECT outcome($$UPDATE vv SET note = 'y'$$);
DROP TRIGGER aaa ON vv2;
SELECT outcome($$UPDATE vv SET note = 'y'$$);
DROP TABLE vv;

-- every way of partitioning: the partition that the row goes to is the one that counts
CREATE FUNCTION moves(declared text, VARIADIC bounds text[]) RETURNS TABLE (to_partition text, sets text, says text) LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE format('CREATE TABLE vm (id int, kind text, version bigint) PARTITION BY %s', declared);
    FOR n IN 1 .. array_length(bounds, 1) LOOP
        EXECUTE format('CREATE TABLE vm%s PARTITION OF vm %s', n, bounds[n]);
    END LOOP;
    INSERT INTO vm VALUES (1, 'a', 5);
    PERFORM interlock.enable_versioning('vm');
    FOR n IN 1 .. array_length(bounds, 1) LOOP
        to_partition := 'vm' || n;
        EXECUTE format('CREATE TRIGGER aaa BEFORE INSERT ON %s FOR EACH ROW EXECUTE FUNCTION meddle()', to_partition);
        FOREACH sets IN ARRAY ARRAY['id = 2', 'id = 3', 'id = 40', 'id = NULL', 'kind = ''b''', 'kind = NULL', 'id = 40, kind = ''b'''] LOOP
            BEGIN
                EXECUTE 'UPDATE vm SET ' || sets;
                SELECT tableoid::regclass || ' ' || version INTO says FROM vm;
                RAISE EXCEPTION SQLSTATE 'UNDO1';
            EXCEPTION WHEN SQLSTATE 'UNDO1' THEN NULL;
                WHEN object_not_in_prerequisite_state THEN says := 'refused';
                WHEN check_violation THEN says := 'no partition';
            END;
            RETURN NEXT;
        END LOOP;
        EXECUTE format('DROP TRIGGER aaa ON %s', to_partition);
    END LOOP;
    DROP TABLE vm;
END $$;
SELECT declared, to_partition, string_agg(sets || ': ' || says, ', ' ORDER BY sets COLLATE "C")
FROM (VALUES (1, 'LIST (kind)', ARRAY['FOR VALUES IN (''a'')', 'FOR VALUES IN (''b'')']), (2, 'LIST (kind)', ARRAY['FOR VALUES IN (''a'')', 'FOR VALUES IN (''b'', NULL)']),
        (3, 'LIST (kind)', ARRAY['FOR VALUES IN (''a'')', 'DEFAULT']),
        (4, 'RANGE (id)', ARRAY['FOR VALUES FROM (0) TO (3)', 'FOR VALUES FROM (3) TO (30)', 'DEFAULT']),
        (5, 'RANGE (id, kind)', ARRAY['FOR VALUES FROM (0, ''a'') TO (3, ''b'')', 'FOR VALUES FROM (3, ''b'') TO (50, MAXVALUE)']),
        (6, 'HASH (id)', ARRAY['FOR VALUES WITH (MODULUS 2, REMAINDER 0)', 'FOR VALUES WITH (MODULUS 2, REMAINDER 1)']),
        (7, 'HASH (id, kind)', ARRAY['FOR VALUES WITH (MODULUS 2, REMAINDER 0)', 'FOR VALUES WITH (MODULUS 4, REMAINDER 1)', 'FOR VALUES WITH (MODULUS 4, REMAINDER 3)']),
        (8, 'LIST ((id % 2))', ARRAY['FOR VALUES IN (0)', 'FOR VALUES IN (1)']),
        (9, 'RANGE (kind, (id + 1))', ARRAY['FOR VALUES FROM (''a'', 0) TO (''a'', 9)', 'DEFAULT']),
        (10, 'LIST ((hash_record(vm.*) % 2 = 0))', ARRAY['FOR VALUES IN (true)', 'FOR VALUES IN (false)'])) d(n, declared, bounds),
    moves(declared, VARIADIC bounds)
GROUP BY n, declared, to_partition ORDER BY n, to_partition;
DROP FUNCTION moves;

-- states, with and without initial ones, and markers
CREATE TABLE sp (id int, status text) PARTITION BY RANGE (id);
CREATE TABLE sp1 PARTITION OF sp FOR VALUES FROM (0) TO (10);
CREATE TABLE sp2 PARTITION OF sp DEFAULT;
INSERT INTO sp VALUES (1, 'pending');
SELECT interlock.define_transitions('sp', 'status', '{"pending": ["paid"], "paid": ["shipped"]}');
CREATE TRIGGER aaa BEFORE INSERT ON sp2 FOR EACH ROW EXECUTE FUNCTION meddle();
SELECT outcome('UPDATE sp SET id = 12'), outcome($$UPDATE sp SET id = 12, status = 'paid'$$);
SELECT interlock.define_transitions('sp', 'status', '{"pending": ["paid"], "paid": ["shipped"]}', '{pending,shipped}');
SELECT outcome($$UPDATE sp SET id = 12, status = 'paid'$$), outcome($$UPDATE sp SET status = 'paid'$$);
DROP TRIGGER aaa ON sp2;
SELECT outcome('UPDATE sp SET id = 12');
SELECT * FROM sp;
CREATE TABLE mp (id int PRIMARY KEY, note text) PARTITION BY RANGE (id);
CREATE TABLE mp1 PARTITION OF mp FOR VALUES FROM (0) TO (10);
CREATE TABLE mp2 PARTITION OF mp DEFAULT;
SELECT interlock.enable_marker('mp', '1 hour');
INSERT INTO mp VALUES (1);
CREATE TRIGGER aaa BEFORE INSERT ON mp2 FOR EACH ROW EXECUTE FUNCTION meddle();
SELECT locked FROM interlock.lock_row('mp', 1, 'anna');
BEGIN;
SELECT interlock.set_holder('anna');
SELECT outcome('UPDATE mp SET id = 12');
DROP TRIGGER aaa ON mp2;
SELECT outcome('UPDATE mp SET id = 12');
COMMIT;
SELECT id, lock_by FROM mp WHERE lock_until < 'infinity';
-- owned columns
CREATE TABLE op (id int, status text) PARTITION BY RANGE (id);
CREATE TABLE op1 PARTITION OF op FOR VALUES FROM (0) TO (10);
CREATE TABLE s_op2 PARTITION OF op DEFAULT;
INSERT INTO op VALUES (1, 'a');
SELECT interlock.own_columns('op', 'clerk', '{status}');
CREATE TRIGGER aaa BEFORE INSERT ON s_op2 FOR EACH ROW EXECUTE FUNCTION meddle();
SELECT outcome('UPDATE op SET id = 12'), outcome('UPDATE op SET id = 2');
SELECT * FROM op;

DROP TABLE v, s, m, "Odd one", late, sp, mp, op;
DROP FUNCTION outcome, meddle;
