-- TRN-1: with on_repeat 'reject' an update that names the state column and leaves the state is a transition from the state
-- to itself.
BEGIN;
SELECT plan(34);

CREATE TABLE coupon (code text PRIMARY KEY, status text NOT NULL DEFAULT 'Unused', used_by int, note text);
SELECT interlock.define_transitions('coupon', 'status', '{"Unused": ["Used", "Unused"]}', '{Unused}', on_repeat => 'reject');
INSERT INTO coupon VALUES ('C1'), ('C2'), ('C3'), ('C4'), ('C5');
SELECT lives_ok($$UPDATE coupon SET status = 'Used', used_by = 1 WHERE code = 'C1'$$, 'a coupon is redeemed');
SELECT throws_ok($$UPDATE coupon SET status = 'Used', used_by = 2 WHERE code = 'C1'$$, 'IL002',
    '"status" in table "coupon" cannot go from "Used" to "Used"', 'once');
SELECT throws_ok($$UPDATE coupon SET status = status WHERE code = 'C1'$$, 'IL002', NULL, 'naming the column is enough');
SELECT lives_ok($$UPDATE coupon SET note = 'seen' WHERE code = 'C1'$$, 'an update that does not name it passes');
SELECT lives_ok($$UPDATE coupon SET status = 'Unused', note = 'printed' WHERE code = 'C2'$$, 'and so does a repetition that is declared');
SELECT is((SELECT used_by FROM coupon WHERE code = 'C1'), 1, 'the first one stays');

-- other ways to name a column
SELECT throws_ok($$INSERT INTO coupon VALUES ('C1') ON CONFLICT (code) DO UPDATE SET status = 'Used', used_by = 3$$, 'IL002', NULL, 'ON CONFLICT');
SELECT lives_ok($$INSERT INTO coupon VALUES ('C1') ON CONFLICT (code) DO UPDATE SET note = 'again'$$, 'that leaves it alone');
SELECT throws_ok($$MERGE INTO coupon c USING (VALUES ('C1')) v (code) ON c.code = v.code WHEN MATCHED THEN UPDATE SET status = 'Used'$$, 'IL002', NULL, 'MERGE');
SELECT throws_ok($$MERGE INTO coupon c USING (VALUES ('C1')) v (code) ON c.code = v.code
    WHEN MATCHED AND false THEN UPDATE SET status = 'Used' WHEN MATCHED THEN UPDATE SET note = 'merged'$$, 'IL002', NULL, 'MERGE names the columns of all its actions');
CREATE VIEW shown AS SELECT code, status AS state, note FROM coupon;
SELECT throws_ok($$UPDATE shown SET state = 'Used' WHERE code = 'C1'$$, 'IL002', NULL, 'a view');
SELECT lives_ok($$UPDATE shown SET note = 'by a view' WHERE code = 'C1'$$, 'that leaves it alone');
CREATE FUNCTION again() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.status := 'Used'; RETURN NEW; END $$;
CREATE TRIGGER again BEFORE UPDATE ON coupon FOR EACH ROW EXECUTE FUNCTION again();
SELECT lives_ok($$UPDATE coupon SET note = 'by a trigger' WHERE code = 'C1'$$, 'a trigger that sets what is there is no repetition');
DROP TRIGGER again ON coupon;

-- functions, by a statement and without
CREATE FUNCTION pg_temp.try_all() RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
    call text;
BEGIN
    FOREACH call IN ARRAY ARRAY[
        'outcome FROM interlock.try_transition(''coupon'', ''C1'', ''Used'', ''Used'')',
        'outcome FROM interlock.try_transition(''coupon'', ''C3'', ''Unused'', ''Unused'', ''{"note": "n"}'')',
        'interlock.versioned_update(''coupon'', ''C1'', (SELECT version FROM coupon WHERE code = ''C1''), ''{"status": "Used"}'')::text',
        'interlock.versioned_update(''coupon'', ''C1'', (SELECT version FROM coupon WHERE code = ''C1''), ''{"used_by": 1}'') > 0'] LOOP
        BEGIN
            EXECUTE 'SELECT ' || call INTO call;
        EXCEPTION WHEN OTHERS THEN
            call := SQLSTATE;
        END;
        RETURN NEXT call;
    END LOOP;
END $$;
SELECT interlock.enable_versioning('coupon');
SELECT results_eq('SELECT pg_temp.try_all()', $$VALUES ('not_allowed'), ('transitioned'), ('IL002'), ('true')$$, 'functions');
SET LOCAL interlock.direct_execution = off;
SELECT results_eq('SELECT pg_temp.try_all()', $$VALUES ('not_allowed'), ('transitioned'), ('IL002'), ('true')$$, 'by statements');
RESET interlock.direct_execution;
SELECT interlock.disable_versioning('coupon');

-- the other choice, and what else it may be
SELECT interlock.define_transitions('coupon', 'status', '{"Unused": ["Used"]}', on_repeat => 'allow');
SELECT lives_ok($$UPDATE coupon SET status = 'Used', used_by = 5 WHERE code = 'C1'$$, 'allow');
SELECT interlock.define_transitions('coupon', 'status', '{"Unused": ["Used"]}', on_repeat => 'reject');
SELECT interlock.define_transitions('coupon', 'status', '{"Unused": ["Used"]}');
SELECT lives_ok($$UPDATE coupon SET status = 'Used', used_by = 1 WHERE code = 'C1'$$, 'which is the default, also when defined again');
SELECT throws_ok($$SELECT interlock.define_transitions('coupon', 'status', '{}', on_repeat => 'never')$$, '22023', 'unknown value "never" for argument "on_repeat"', 'nothing else');
SELECT throws_ok($$SELECT interlock.define_transitions('coupon', 'status', '{}', on_repeat => 'REJECT')$$, '22023', NULL, 'in lower case');
SELECT throws_ok($$SELECT interlock.define_transitions('coupon', 'status', '{}', on_repeat => NULL)$$, '22004', NULL, 'not null');

-- null is no state, so that it has no transition to itself
ALTER TABLE coupon ALTER status DROP NOT NULL;
SELECT interlock.define_transitions('coupon', 'status', '{"Unused": ["Used"]}', on_repeat => 'reject');
INSERT INTO coupon VALUES ('N', NULL);
SELECT lives_ok($$UPDATE coupon SET status = NULL, note = 'n' WHERE code = 'N'$$, 'null stays null');
SELECT throws_ok($$UPDATE coupon SET status = NULL WHERE code = 'C2'$$, 'IL002', NULL, 'and nothing else gets it');

-- one state that is written in two ways
CREATE TABLE priced (id int PRIMARY KEY, stage numeric);
SELECT interlock.define_transitions('priced', 'stage', '{"1": [2]}');
INSERT INTO priced VALUES (1, 1.0);
SELECT lives_ok('UPDATE priced SET stage = 1.00', 'is no transition');
SELECT interlock.define_transitions('priced', 'stage', '{"1": [2]}', on_repeat => 'reject');
SELECT throws_ok('UPDATE priced SET stage = 1.0', 'IL002', NULL, 'but a repetition');
SELECT throws_ok('UPDATE priced SET stage = 1.000', 'IL002', NULL, 'that is seen');
SELECT lives_ok('UPDATE priced SET stage = 2.0', 'another state is another state');

-- several columns, each with its own
CREATE TABLE two (id int PRIMARY KEY, a text DEFAULT 'x', b text DEFAULT 'x');
SELECT interlock.define_transitions('two', 'a', '{"x": ["y"]}', on_repeat => 'reject'), interlock.define_transitions('two', 'b', '{"x": ["y"]}');
INSERT INTO two VALUES (1);
SELECT lives_ok($$UPDATE two SET b = 'x'$$, 'one allows it');
SELECT throws_ok($$UPDATE two SET a = 'x', b = 'y'$$, 'IL002', NULL, 'one does not');

-- partitions: columns in another order, and a row that moves
CREATE TABLE seat (id int, hall text, status text, PRIMARY KEY (id, hall)) PARTITION BY LIST (hall);
CREATE TABLE seat_a PARTITION OF seat FOR VALUES IN ('a');
CREATE TABLE seat_b (status text, hall text NOT NULL, gone int, id int NOT NULL);
ALTER TABLE seat_b DROP COLUMN gone;
ALTER TABLE seat ATTACH PARTITION seat_b FOR VALUES IN ('b');
SELECT interlock.define_transitions('seat', 'status', '{"free": ["taken"]}', '{free}', 'reject');
INSERT INTO seat VALUES (1, 'a', 'free'), (2, 'b', 'free');
UPDATE seat SET status = 'taken';
SELECT throws_ok($$UPDATE seat SET status = 'taken' WHERE id = 2$$, 'IL002', NULL, 'a partition with other columns');
SELECT throws_ok($$UPDATE seat_b SET status = 'taken' WHERE id = 2$$, 'IL002', NULL, 'by its own name');
SELECT throws_ok($$UPDATE seat SET hall = 'b', status = 'taken' WHERE id = 1$$, 'IL002', NULL, 'a row that moves');
SELECT lives_ok($$UPDATE seat SET hall = 'b' WHERE id = 1$$, 'that moves with its state');
SELECT results_eq('SELECT tableoid::regclass::text, status FROM seat ORDER BY id', $$VALUES ('seat_b', 'taken'), ('seat_b', 'taken')$$, 'has it there');

-- a trigger with other arguments than ours
CREATE TABLE forged (id int PRIMARY KEY, status text);
INSERT INTO forged VALUES (1, 'a');
CREATE TRIGGER forged BEFORE UPDATE ON forged FOR EACH ROW EXECUTE FUNCTION interlock_internal.transition_trigger('status', '{"a": ["b"]}', '', 'never');
SELECT throws_ok($$UPDATE forged SET status = 'b'$$, '39P01', NULL, 'is an error for its writers');

SELECT * FROM finish();
ROLLBACK;
