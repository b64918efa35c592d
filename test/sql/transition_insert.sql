-- Initial states: which rows are new, and which only move or are found again
\set VERBOSITY terse
\set SHOW_CONTEXT never
CREATE TABLE sale (id int PRIMARY KEY, status text, v int);
SELECT interlock.define_transitions('sale', 'status', '{"new": ["paid"], "paid": ["sent"]}', '{new}');
INSERT INTO sale VALUES (1, 'new'), (2, 'new');
UPDATE sale SET status = 'paid' WHERE id = 1;

-- upserts of a whole object: the row that is there is checked as an update
INSERT INTO sale VALUES (1, 'paid', 5) ON CONFLICT (id) DO UPDATE SET v = excluded.v RETURNING *;
INSERT INTO sale VALUES (1, 'sent', 6) ON CONFLICT (id) DO UPDATE SET status = excluded.status, v = excluded.v RETURNING *;
INSERT INTO sale VALUES (1, 'paid', 7) ON CONFLICT (id) DO UPDATE SET status = excluded.status;
INSERT INTO sale VALUES (1, 'paid', 7) ON CONFLICT DO NOTHING;
INSERT INTO sale VALUES (3, 'paid', 7) ON CONFLICT (id) DO UPDATE SET v = excluded.v;
INSERT INTO sale VALUES (3, 'paid', 7) ON CONFLICT DO NOTHING;
INSERT INTO sale VALUES (3, NULL, 7) ON CONFLICT DO NOTHING;
MERGE INTO sale s USING (VALUES (1, 'paid'), (4, 'paid')) n (id, status) ON s.id = n.id
    WHEN MATCHED THEN UPDATE SET v = 8 WHEN NOT MATCHED THEN INSERT VALUES (n.id, n.status);
MERGE INTO sale s USING (VALUES (1, 'paid'), (4, 'new')) n (id, status) ON s.id = n.id
    WHEN MATCHED THEN UPDATE SET v = 8 WHEN NOT MATCHED THEN INSERT VALUES (n.id, n.status);
COPY sale FROM stdin;
5	paid	1
\.
COPY sale FROM stdin;
5	new	1
\.
-- several rows, and the row as it is stored, whoever made it so
INSERT INTO sale VALUES (6, 'new'), (7, 'paid');
CREATE FUNCTION make_paid() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.status := 'paid'; RETURN NEW; END $$;
CREATE TRIGGER zzzz BEFORE INSERT ON sale FOR EACH ROW EXECUTE FUNCTION make_paid();
INSERT INTO sale VALUES (8, 'new');
DROP TRIGGER zzzz ON sale;
SET session_replication_role = replica;
INSERT INTO sale VALUES (9, 'sent');
RESET session_replication_role;
SELECT * FROM sale ORDER BY id;

-- the trigger for inserts comes and goes with the initial states
CREATE VIEW sale_triggers AS SELECT tgname, tgtype & 66 AS before, tgtype & 28 AS events FROM pg_trigger WHERE tgrelid = 'sale'::regclass ORDER BY 1;
SELECT * FROM sale_triggers;
SELECT interlock.define_transitions('sale', 'status', '{"new": ["paid"]}');
SELECT * FROM sale_triggers;
INSERT INTO sale VALUES (10, 'anything');
SELECT interlock.define_transitions('sale', 'status', '{"new": ["paid"]}', '{paid}');
SELECT interlock.define_transitions('sale', 'status', '{"new": ["paid"]}', '{new,paid}');
INSERT INTO sale VALUES (11, 'paid');
INSERT INTO sale VALUES (12, 'sent');
SELECT interlock.define_transitions('sale', 'status', '{"new": ["paid"]}', '{}');
INSERT INTO sale VALUES (12, 'new');
-- renamed, it fails closed, until it is dropped by its old name
ALTER TABLE sale RENAME status TO state;
INSERT INTO sale VALUES (12, 'new');
SELECT interlock.drop_transitions('sale', 'status');
SELECT * FROM sale_triggers;
SELECT interlock.define_transitions('sale', 'state', '{"new": ["paid"]}', '{new}');
-- without the other trigger it fails closed, too
DROP TRIGGER zzz_interlock_transition_state ON sale;
\set VERBOSITY default
INSERT INTO sale VALUES (12, 'new');
\set VERBOSITY terse
SELECT interlock.drop_transitions('sale', 'state');
SELECT interlock.drop_transitions('sale', 'state');
-- called in any other way
SELECT interlock_internal.initial_state_trigger();
CREATE TRIGGER early BEFORE INSERT ON sale FOR EACH ROW EXECUTE FUNCTION interlock_internal.initial_state_trigger('state');
INSERT INTO sale VALUES (12, 'new');
DROP VIEW sale_triggers;
DROP TABLE sale;

-- a row that moves to another partition is no new row
CREATE TABLE pt (id int, region text, status text, kind int, v int DEFAULT 0, PRIMARY KEY (id, region)) PARTITION BY LIST (region);
CREATE TABLE pt_a PARTITION OF pt FOR VALUES IN ('a');
CREATE TABLE pt_b (v int, junk int, status text, region text NOT NULL, kind int, id int NOT NULL);
ALTER TABLE pt_b DROP COLUMN junk;
ALTER TABLE pt ATTACH PARTITION pt_b FOR VALUES IN ('b');
CREATE TABLE pt_c PARTITION OF pt FOR VALUES IN ('c', 'cc') PARTITION BY RANGE (id);
CREATE TABLE pt_c1 PARTITION OF pt_c FOR VALUES FROM (0) TO (100);
CREATE TABLE pt_c2 PARTITION OF pt_c FOR VALUES FROM (100) TO (200);
CREATE TABLE pt_d PARTITION OF pt DEFAULT;
SELECT interlock.define_transitions('pt', 'status', '{"new": ["paid"], "paid": ["sent"]}', '{new}');
SELECT interlock.define_transitions('pt', 'kind', '{"0": [1], "1": [2]}', '{0}');
SELECT interlock.enable_versioning('pt'), interlock.enable_marker('pt');
INSERT INTO pt SELECT g, 'a', 'new', 0 FROM generate_series(1, 6) g;
UPDATE pt SET status = 'paid', kind = 1;
UPDATE pt SET region = 'b' WHERE id = 1 RETURNING tableoid::regclass, id, region, status, kind, version;
UPDATE pt SET region = 'c' WHERE id <= 2 RETURNING tableoid::regclass, id, region, status, kind, version;
UPDATE pt SET region = 'x' WHERE id <= 3 RETURNING tableoid::regclass, id, region, status, kind, version;
UPDATE pt_c SET id = 150 WHERE id = 1;
UPDATE pt SET region = 'c' WHERE id = 1;
UPDATE pt_c SET id = 150 WHERE id = 1 RETURNING tableoid::regclass, id, region, status, kind, version;
MERGE INTO pt USING (VALUES (2)) n (id) ON pt.id = n.id WHEN MATCHED THEN UPDATE SET region = 'a';
-- together with a transition; not together with a jump, or with a change of key to another's
UPDATE pt SET region = 'b', status = 'sent' WHERE id = 4 RETURNING tableoid::regclass, id, region, status, kind, version;
UPDATE pt SET region = 'b', status = 'new' WHERE id = 5;
UPDATE pt SET region = 'b', id = 4 WHERE id = 5;
UPDATE pt SET region = 'y' WHERE id = 3 RETURNING tableoid::regclass, status;
SELECT interlock.transition('pt', '{"id": 5, "region": "a"}', 'paid', 'sent', state_column => 'status');
SELECT tableoid::regclass, id, region, status, kind FROM pt ORDER BY id;

-- nobody else profits from a move: in the same statement, before, after, in a subtransaction
WITH moved AS (UPDATE pt SET region = 'b' WHERE id = 6) INSERT INTO pt VALUES (7, 'b', 'paid', 0);
WITH moved AS (UPDATE pt SET region = 'b' WHERE id = 6) INSERT INTO pt VALUES (6, 'a', 'paid', 0);
WITH moved AS (UPDATE pt SET region = 'b' WHERE id = 6) INSERT INTO pt VALUES (6, 'c', 'paid', 1);
WITH moved AS (UPDATE pt SET region = 'b' WHERE id = 6) INSERT INTO pt VALUES (6, 'b', 'paid', 1);
WITH moved AS (UPDATE pt SET region = 'b' WHERE id = 6) INSERT INTO pt VALUES (7, 'b', 'new', 0);
DO $$ BEGIN
    UPDATE pt SET region = 'a' WHERE id = 6;
    DELETE FROM pt WHERE id = 6;
    BEGIN
        INSERT INTO pt VALUES (6, 'a', 'paid', 1);
    EXCEPTION WHEN SQLSTATE 'IL002' THEN RAISE NOTICE 'refused after the move'; END;
    BEGIN
        UPDATE pt SET region = 'a' WHERE id = 4;
        RAISE EXCEPTION 'undo';
    EXCEPTION WHEN raise_exception THEN NULL; END;
    BEGIN
        INSERT INTO pt VALUES (4, 'a', 'sent', 1);
    EXCEPTION WHEN SQLSTATE 'IL002' THEN RAISE NOTICE 'refused after a move undone'; END;
END $$;
-- a trigger that loses the moved row on its way leaves nothing that a later insert could use
CREATE FUNCTION lose() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';
CREATE TRIGGER lose BEFORE DELETE ON pt_b FOR EACH ROW EXECUTE FUNCTION lose();
BEGIN;
UPDATE pt SET region = 'a' WHERE id = 4;
DROP TRIGGER lose ON pt_b;
INSERT INTO pt VALUES (4, 'a', 'sent', 1);
ROLLBACK;
-- nor does one that writes other rows while a row moves
CREATE FUNCTION write_others() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF current_setting('test.v') = '1' THEN INSERT INTO pt (id, region, status, kind, v) VALUES (90, 'a', 'new', 0, 2); END IF;
    IF current_setting('test.v') = '3' THEN INSERT INTO pt (id, region, status, kind, v) VALUES (91, 'a', OLD.status, OLD.kind, 4); END IF;
    RETURN OLD;
END $$;
DROP TRIGGER lose ON pt_b;
CREATE TRIGGER write_others BEFORE DELETE ON pt_b FOR EACH ROW EXECUTE FUNCTION write_others();
SET test.v = 3;
UPDATE pt SET region = 'a', v = 3 WHERE id = 4;
SET test.v = 1;
UPDATE pt SET region = 'a', v = 1 WHERE id = 4;
SELECT tableoid::regclass, id, region, status, kind, v FROM pt WHERE id IN (4, 90, 91) ORDER BY id;
DROP TRIGGER write_others ON pt_b;

-- partitions with keys of their own, and one with a generated column
CREATE TABLE trip (id int NOT NULL, region text NOT NULL, status text, twice int GENERATED ALWAYS AS (id * 2) STORED) PARTITION BY LIST (region);
CREATE TABLE trip_a (region text NOT NULL, id int PRIMARY KEY, status text, twice int GENERATED ALWAYS AS (id * 2) STORED);
ALTER TABLE trip ATTACH PARTITION trip_a FOR VALUES IN ('a');
CREATE TABLE trip_b PARTITION OF trip FOR VALUES IN ('b');
ALTER TABLE trip_b ALTER twice SET NOT NULL, ADD UNIQUE (region, twice);
CREATE TABLE trip_c PARTITION OF trip FOR VALUES IN ('c');
SELECT interlock.define_transitions('trip', 'status', '{"new": ["paid"]}', '{new}');
INSERT INTO trip VALUES (1, 'a', 'new'), (2, 'a', 'new');
UPDATE trip SET status = 'paid';
UPDATE trip SET region = 'b';
UPDATE trip SET region = 'c';
UPDATE trip SET region = 'a' RETURNING tableoid::regclass, *;
WITH moved AS (UPDATE trip SET region = 'c' WHERE id = 1) INSERT INTO trip VALUES (3, 'c', 'paid');
INSERT INTO trip VALUES (3, 'a', 'paid');
DROP TABLE trip;

-- many at once, by a cascade, and without a key
UPDATE pt SET status = 'paid', kind = 1 WHERE kind = 0;
INSERT INTO pt SELECT g, 'a', 'new', 0 FROM generate_series(1000, 1999) g;
UPDATE pt SET status = 'paid', kind = 1 WHERE id >= 1000;
UPDATE pt SET region = CASE WHEN id % 2 = 0 THEN 'b' ELSE 'z' END WHERE id >= 1000;
SELECT tableoid::regclass, status, kind, count(*) FROM pt WHERE id >= 1000 GROUP BY 1, 2, 3 ORDER BY 1;
CREATE TABLE place (region text PRIMARY KEY);
INSERT INTO place VALUES ('a'), ('b');
CREATE TABLE visit (n int, region text REFERENCES place ON UPDATE CASCADE, status text) PARTITION BY LIST (region);
CREATE TABLE visit_a PARTITION OF visit FOR VALUES IN ('a');
CREATE TABLE visit_other PARTITION OF visit DEFAULT;
SELECT interlock.define_transitions('visit', 'status', '{"new": ["paid"]}', '{new}');
INSERT INTO visit VALUES (1, 'a', 'new'), (2, 'a', 'new');
UPDATE visit SET status = 'paid';
UPDATE place SET region = 'q' WHERE region = 'a';
SELECT tableoid::regclass, * FROM visit ORDER BY n;
INSERT INTO place VALUES ('a');
WITH moved AS (UPDATE visit SET region = 'a' WHERE n = 1) INSERT INTO visit VALUES (3, 'b', 'paid');
-- COPY FREEZE leaves rows of no transaction, while the move of another row waits for its insert
BEGIN;
ALTER TABLE visit_other DISABLE TRIGGER zzz_interlock_initial_status;
UPDATE visit SET region = 'b' WHERE n = 1;
CREATE TABLE frozen (n int PRIMARY KEY, status text);
SELECT interlock.define_transitions('frozen', 'status', '{"new": ["paid"]}', '{new}');
COPY frozen FROM stdin WITH (FREEZE);
1	paid
\.
ROLLBACK;
DROP TABLE pt, visit, place;
DROP FUNCTION make_paid, lose, write_others;
