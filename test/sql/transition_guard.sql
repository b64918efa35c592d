-- Guards: functions that decide whether a row may go from one state to another (TRN-3)
\set SHOW_CONTEXT never
CREATE TABLE work_order (id int PRIMARY KEY, status text NOT NULL DEFAULT 'open', agent text, expires_at timestamptz);
CREATE FUNCTION may_claim(old work_order, new work_order) RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN RETURN new.agent <> 'bert'; END $$;
CREATE FUNCTION why_not_closed(old work_order, new work_order) RETURNS text LANGUAGE sql AS $$
    SELECT CASE WHEN old.agent <> new.agent THEN format('only %s may close it', old.agent) WHEN old.agent IS NULL THEN '' END $$;
CREATE FUNCTION has_time(old work_order, new work_order) RETURNS text LANGUAGE sql AS $$
    SELECT CASE WHEN old.expires_at <= clock_timestamp() THEN 'it has expired' END $$;
SELECT interlock.define_transitions('work_order', 'status',
    '{"open": ["claimed", "closed"], "claimed": ["closed", "open", "open"]}', '{open}',
    guards => '{"open": {"claimed": "may_claim(work_order, work_order)"},
                "claimed": {"closed": "why_not_closed(work_order, work_order)", "open": "has_time(work_order, work_order)"}}');
SELECT pg_get_triggerdef(oid) FROM pg_trigger WHERE tgname = 'zzz_interlock_transition_status';
INSERT INTO work_order (id) SELECT generate_series(1, 9);

-- a boolean guard: false and null refuse
UPDATE work_order SET status = 'claimed', agent = 'anna' WHERE id = 1;
UPDATE work_order SET status = 'claimed', agent = 'bert' WHERE id = 2;
UPDATE work_order SET status = 'claimed' WHERE id = 2;
-- a text: null and '' let go
UPDATE work_order SET status = 'closed', agent = 'bert' WHERE id = 1;
UPDATE work_order SET status = 'closed' WHERE id = 1 RETURNING *;
UPDATE work_order SET status = 'closed' WHERE id = 3 RETURNING *;
UPDATE work_order SET agent = 'x' WHERE id = 1 RETURNING *;
-- functions; the answer says why
SELECT * FROM interlock.try_transition('work_order', 4, 'open', 'claimed', '{"agent": "bert"}');
SELECT * FROM interlock.try_transition('work_order', 4, 'open', 'claimed', '{"agent": "anna", "expires_at": "2020-01-01 00:00Z"}');
SET timezone = 'UTC';
SELECT * FROM interlock.try_transition('work_order', 4, 'claimed', 'open');
SELECT * FROM interlock.try_transition('work_order', 4, ARRAY['open', 'claimed'], 'open', match => '{"agent": "anna"}');
SELECT interlock.transition('work_order', 4, 'claimed', 'open');
SELECT interlock.transition('work_order', 4, 'claimed', 'closed', '{"agent": "bert"}');
SELECT * FROM interlock.try_transition('work_order', 4, 'claimed', 'claimed');
SET interlock.direct_execution = off;
SELECT * FROM interlock.try_transition('work_order', 4, 'claimed', 'open');
SELECT * FROM interlock.try_transition('work_order', 4, 'claimed', 'closed');
RESET interlock.direct_execution;
-- other writers
INSERT INTO work_order (id) VALUES (5) ON CONFLICT (id) DO UPDATE SET status = 'claimed', agent = 'bert';
MERGE INTO work_order w USING (VALUES (5)) v (id) ON w.id = v.id WHEN MATCHED THEN UPDATE SET status = 'claimed', agent = 'bert';
SELECT interlock.enable_versioning('work_order');
SELECT interlock.versioned_update('work_order', 5, 1, '{"status": "claimed", "agent": "bert"}');
SELECT outcome, version FROM interlock.try_versioned_update('work_order', 5, 1, '{"status": "claimed", "agent": "anna"}');
SELECT interlock.disable_versioning('work_order');
-- what a trigger of others makes of the row is what the guard sees (C12)
CREATE FUNCTION as_bert() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.agent := 'bert'; RETURN NEW; END $$;
CREATE TRIGGER as_bert BEFORE UPDATE ON work_order FOR EACH ROW EXECUTE FUNCTION as_bert();
SELECT outcome, reason FROM interlock.try_transition('work_order', 6, 'open', 'claimed', '{"agent": "anna"}');
DROP TRIGGER as_bert ON work_order;
-- only the row of the function gets an answer: what its triggers write to other rows raises the error
CREATE FUNCTION claim_next() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE work_order SET status = 'claimed', agent = 'bert' WHERE id = NEW.id + 1;
    RETURN NEW;
END $$;
CREATE TRIGGER claim_next BEFORE UPDATE ON work_order FOR EACH ROW WHEN (NEW.id = 6) EXECUTE FUNCTION claim_next();
SELECT outcome, reason FROM interlock.try_transition('work_order', 6, 'open', 'claimed', '{"agent": "anna"}');
DROP TRIGGER claim_next ON work_order;
SELECT * FROM work_order ORDER BY id;

-- a guard that raises, changes its arguments, writes the row, loops, changes the table
CREATE OR REPLACE FUNCTION may_claim(old work_order, new work_order) RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN RAISE 'no claims today' USING ERRCODE = 'P0099'; END $$;
UPDATE work_order SET status = 'claimed' WHERE id = 7;
SELECT * FROM interlock.try_transition('work_order', 7, 'open', 'claimed');
CREATE OR REPLACE FUNCTION may_claim(old work_order, new work_order) RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN new.agent := 'forged'; old.status := 'x'; RETURN true; END $$;
UPDATE work_order SET status = 'claimed', agent = 'anna' WHERE id = 7 RETURNING *;
CREATE OR REPLACE FUNCTION may_claim(old work_order, new work_order) RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN UPDATE work_order SET agent = 'forged' WHERE id = old.id; RETURN true; END $$;
UPDATE work_order SET status = 'claimed', agent = 'anna' WHERE id = 8 RETURNING *;
SELECT * FROM interlock.try_transition('work_order', 8, 'open', 'claimed');
CREATE OR REPLACE FUNCTION may_claim(old work_order, new work_order) RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN LOOP PERFORM pg_sleep(0.01); END LOOP; END $$;
SET statement_timeout = '100ms';
UPDATE work_order SET status = 'claimed' WHERE id = 8;
SELECT * FROM interlock.try_transition('work_order', 8, 'open', 'claimed');
RESET statement_timeout;
CREATE OR REPLACE FUNCTION may_claim(old work_order, new work_order) RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN ALTER TABLE work_order ADD extra int; RETURN true; END $$;
UPDATE work_order SET status = 'claimed' WHERE id = 8;
CREATE OR REPLACE FUNCTION may_claim(old work_order, new work_order) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    PERFORM interlock.define_transitions('work_order', 'status', '{"open": ["claimed"]}', '{open}', guards => '{"open": {"claimed": "may_claim(work_order, work_order)"}}');
    RETURN old.id = 8;
END $$;
UPDATE work_order SET status = 'claimed' WHERE id IN (8, 9);
CREATE OR REPLACE FUNCTION may_claim(old work_order, new work_order) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    RETURN old.id = 8 AND (SELECT outcome = 'not_allowed' FROM interlock.try_transition('work_order', 9, 'open', 'claimed'));
END $$;
SELECT outcome FROM interlock.try_transition('work_order', 8, 'open', 'claimed');
SELECT id, status FROM work_order WHERE id > 6 ORDER BY 1;

-- dropped, replaced, renamed
DROP FUNCTION may_claim(work_order, work_order);
CREATE OR REPLACE FUNCTION may_claim(old work_order, new work_order) RETURNS boolean LANGUAGE sql AS $$ SELECT new.agent = 'anna' $$;
UPDATE work_order SET status = 'claimed', agent = 'carl' WHERE id = 9;
CREATE SCHEMA elsewhere;
ALTER FUNCTION may_claim(work_order, work_order) RENAME TO "May claim";
ALTER FUNCTION "May claim"(work_order, work_order) SET SCHEMA elsewhere;
ALTER TABLE work_order RENAME TO "Order";
CREATE FUNCTION may_claim(old "Order", new "Order") RETURNS boolean LANGUAGE sql AS 'SELECT true';
UPDATE "Order" SET status = 'claimed', agent = 'carl' WHERE id = 9;
UPDATE "Order" SET status = 'claimed', agent = 'anna' WHERE id = 9 RETURNING *;
-- columns come, go and change, and the guard stays
ALTER TABLE "Order" ADD extra int GENERATED ALWAYS AS (id * 2) STORED, DROP expires_at, ALTER agent TYPE varchar(20);
CREATE OR REPLACE FUNCTION elsewhere."May claim"(old "Order", new "Order") RETURNS boolean LANGUAGE sql AS 'SELECT old.extra = old.id * 2 AND new.extra IS NULL';
INSERT INTO "Order" (id) VALUES (10), (11);
UPDATE "Order" SET status = 'claimed' WHERE id = 10 RETURNING *;
SELECT outcome, current FROM interlock.try_transition('"Order"', 11, 'open', 'claimed');
-- with CASCADE it takes the trigger along
\set VERBOSITY terse
DROP FUNCTION elsewhere."May claim"("Order", "Order") CASCADE;
UPDATE "Order" SET status = 'anything' WHERE id = 10 RETURNING status;
DROP TABLE "Order" CASCADE;
DROP SCHEMA elsewhere;
\set VERBOSITY default

-- whose function it is, and who may execute it
CREATE ROLE interlock_anna;
CREATE ROLE interlock_mallory;
CREATE SCHEMA open_to_all;
GRANT ALL ON SCHEMA open_to_all TO interlock_anna, interlock_mallory;
SET ROLE interlock_anna;
CREATE TABLE open_to_all.t (id int PRIMARY KEY, status text, secret text);
INSERT INTO open_to_all.t VALUES (1, 'a', 's'), (2, 'a', 's');
GRANT SELECT (id), UPDATE ON open_to_all.t TO interlock_mallory;
RESET ROLE;
SET ROLE interlock_mallory;
CREATE FUNCTION open_to_all.says(old open_to_all.t, new open_to_all.t) RETURNS text LANGUAGE plpgsql AS $$ BEGIN RETURN 'run as ' || current_user; END $$;
REVOKE EXECUTE ON FUNCTION open_to_all.says FROM PUBLIC;
SELECT interlock.define_transitions('open_to_all.t', 'status', '{"a": ["b"]}', guards => '{"a": {"b": "open_to_all.says(open_to_all.t, open_to_all.t)"}}');
SET ROLE interlock_anna;
SELECT interlock.define_transitions('open_to_all.t', 'status', '{"a": ["b"]}', guards => '{"a": {"b": "open_to_all.says(open_to_all.t, open_to_all.t)"}}');
SET ROLE interlock_mallory;
GRANT EXECUTE ON FUNCTION open_to_all.says TO interlock_anna;
SET ROLE interlock_anna;
SELECT interlock.define_transitions('open_to_all.t', 'status', '{"a": ["b"]}', guards => '{"a": {"b": "open_to_all.says(open_to_all.t, open_to_all.t)"}}');
SET ROLE interlock_mallory;
UPDATE open_to_all.t SET status = 'b';
REVOKE EXECUTE ON FUNCTION open_to_all.says FROM interlock_mallory;
UPDATE open_to_all.t SET status = 'b';
ALTER FUNCTION open_to_all.says SECURITY DEFINER;
SET ROLE interlock_anna;
UPDATE open_to_all.t SET status = 'b';
RESET ROLE;
DROP TABLE open_to_all.t CASCADE;
DROP SCHEMA open_to_all CASCADE;

-- partitions: with columns in another order, a row that moves, one that is attached later
CREATE TABLE seat (id int, hall text, status text, note text, PRIMARY KEY (id, hall)) PARTITION BY LIST (hall);
CREATE TABLE seat_a PARTITION OF seat FOR VALUES IN ('a');
CREATE FUNCTION may_take(old seat, new seat) RETURNS text LANGUAGE sql RETURN CASE WHEN new.note IS DISTINCT FROM 'paid' THEN format('seat %s of hall %s is %s', old.id, old.hall, old.status) END;
SELECT interlock.define_transitions('seat', 'status', '{"free": ["taken"]}', '{free}', guards => '{"free": {"taken": "may_take(seat, seat)"}}');
CREATE TABLE seat_b (note text, status text, gone int, hall text NOT NULL, id int NOT NULL);
ALTER TABLE seat_b DROP gone;
ALTER TABLE seat ATTACH PARTITION seat_b FOR VALUES IN ('b');
INSERT INTO seat SELECT i, h, 'free' FROM generate_series(1, 2) i, unnest(ARRAY['a', 'b']) h;
UPDATE seat SET status = 'taken' WHERE id = 1 AND hall = 'b';
UPDATE seat_b SET status = 'taken' WHERE id = 1;
SELECT * FROM interlock.try_transition('seat', '{"id": 1, "hall": "b"}', 'free', 'taken');
SELECT * FROM interlock.try_transition('seat_b', '{"id": 1, "hall": "b"}', 'free', 'taken');
UPDATE seat SET status = 'taken', hall = 'b', id = 3 WHERE id = 1 AND hall = 'a';
UPDATE seat SET status = 'taken', hall = 'b', id = 3, note = 'paid' WHERE id = 1 AND hall = 'a';
SELECT * FROM interlock.try_transition('seat', '{"id": 1, "hall": "b"}', 'free', 'taken', '{"note": "paid"}');
SELECT tableoid::regclass, * FROM seat ORDER BY id, hall;
ALTER TABLE seat DETACH PARTITION seat_b;
UPDATE seat_b SET status = 'taken', note = NULL;
DROP TABLE seat, seat_b CASCADE;

-- states of other types, a repeated state, null, several columns, domains
CREATE TABLE biz (id int PRIMARY KEY, state smallint, flag boolean DEFAULT false);
CREATE FUNCTION never(old biz, new biz) RETURNS boolean LANGUAGE sql RETURN false;
CREATE FUNCTION null_says(old biz, new biz) RETURNS boolean LANGUAGE sql RETURN NULL::boolean;
SELECT interlock.define_transitions('biz', 'state', '{"0": [0, 1], "1": [0]}', on_repeat => 'reject', guards => '{"00": {"1": "never(biz, biz)", "0": "null_says(biz,biz)"}}');
SELECT interlock.define_transitions('biz', 'flag', '{"false": [true], "true": [false]}', guards => '{"f": {"t": "never(biz, biz)"}}');
INSERT INTO biz VALUES (1, 0), (2, NULL), (3, 1);
UPDATE biz SET state = 1 WHERE id = 1;
UPDATE biz SET state = 0 WHERE id = 1;
UPDATE biz SET state = 1 WHERE id = 2;
UPDATE biz SET state = 0 WHERE id = 3;
UPDATE biz SET flag = true WHERE id = 1;
SELECT outcome, state, reason FROM interlock.try_transition('biz', 1, 0, 1, state_column => 'state');
SELECT outcome, state, reason FROM interlock.try_transition('biz', 1, false, true, state_column => 'flag');
SELECT * FROM biz ORDER BY id;

-- what a guard cannot be
\set VERBOSITY default
CREATE FUNCTION bad_result(old biz, new biz) RETURNS int LANGUAGE sql RETURN 1;
CREATE FUNCTION bad_set(old biz, new biz) RETURNS SETOF boolean LANGUAGE sql AS 'SELECT true';
CREATE FUNCTION bad_count(old biz) RETURNS boolean LANGUAGE sql RETURN true;
CREATE FUNCTION bad_type(old jsonb, new jsonb) RETURNS boolean LANGUAGE sql RETURN true;
CREATE TABLE other (id int);
CREATE FUNCTION bad_table(old other, new other) RETURNS boolean LANGUAGE sql RETURN true;
CREATE PROCEDURE bad_procedure(old biz, new biz) LANGUAGE sql AS '';
CREATE FUNCTION step(boolean, biz, biz) RETURNS boolean LANGUAGE sql RETURN true;
CREATE AGGREGATE bad_aggregate(biz, biz) (SFUNC = step, STYPE = boolean);
CREATE DOMAIN a_biz AS biz;
CREATE FUNCTION bad_domain(old a_biz, new a_biz) RETURNS boolean LANGUAGE sql RETURN true;
SELECT interlock.define_transitions('biz', 'state', '{"0": [1]}', guards => '{"0": {"1": "bad_result(biz, biz)"}}');
\set VERBOSITY terse
CREATE FUNCTION try_guards(guards jsonb, transitions jsonb = '{"0": [1]}') RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    hint text;
BEGIN
    PERFORM interlock.define_transitions('biz', 'state', transitions, guards => guards);
    RETURN 'defined';
EXCEPTION WHEN OTHERS THEN
    GET STACKED DIAGNOSTICS hint = PG_EXCEPTION_HINT;
    RETURN concat_ws(' ', SQLSTATE, SQLERRM);
END $$;
SELECT f, try_guards(jsonb_build_object('0', jsonb_build_object('1', f))) FROM unnest(ARRAY['bad_set(biz, biz)', 'bad_count(biz)', 'bad_type(jsonb, jsonb)', 'bad_table(other, other)',
    'bad_procedure(biz, biz)', 'bad_aggregate(biz, biz)', 'bad_domain(a_biz, a_biz)', 'never', 'never(biz)', 'never(biz, nowhere)', 'nowhere(biz, biz)', '', '-', '12345678', '(', 'never(biz, biz) x']) f;
SELECT g, try_guards(g) FROM unnest(ARRAY['[]', '1', 'null', '"f"', '{"0": []}', '{"0": "never(biz,biz)"}', '{"0": null}', '{"0": {"1": null}}', '{"0": {"1": ["never(biz,biz)"]}}', '{"0": {"1": {"a": "b"}}}',
    '{"1": {"0": "never(biz,biz)"}}', '{"0": {"2": "never(biz,biz)"}}', '{"x": {}}', '{"0": {"x": "never(biz,biz)"}}', '{"0": {"1": "never(biz,biz)", "01": "null_says(biz,biz)"}}',
    '{"0": {"1": "never(biz,biz)"}, "00": {"1": "null_says(biz,biz)"}}', '{"0": {}}', '{}', '{"0": {"1": "never(biz,biz)"}}']::jsonb[]) g;
SELECT interlock.define_transitions('biz', 'state', '{}', guards => NULL);
SELECT pg_get_triggerdef(oid) FROM pg_trigger WHERE tgname = 'zzz_interlock_transition_state';
DROP FUNCTION null_says(biz, biz);
SELECT interlock.define_transitions('biz', 'state', '{"0": [1]}');
SELECT pg_get_triggerdef(oid) FROM pg_trigger WHERE tgname = 'zzz_interlock_transition_state';

-- triggers of others on our function: with arguments or a condition that define_transitions does not write (SEC-1)
CREATE TABLE forged (id int PRIMARY KEY, status text);
INSERT INTO forged VALUES (1, 'a');
CREATE FUNCTION yes(old forged, new forged) RETURNS boolean LANGUAGE sql RETURN true;
CREATE FUNCTION forge(condition text, arguments text) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE format('CREATE OR REPLACE TRIGGER zzz BEFORE UPDATE ON forged FOR EACH ROW %s EXECUTE FUNCTION interlock_internal.transition_trigger(''status'', ''{"a": ["b"], "b": ["a"]}'', '''', ''allow''%s)', condition, arguments);
    RETURN (SELECT outcome FROM interlock.try_transition('forged', 1, (SELECT status FROM forged), (SELECT CASE status WHEN 'a' THEN 'b' ELSE 'a' END FROM forged)));
EXCEPTION WHEN OTHERS THEN
    RETURN SQLSTATE;
END $$;
SELECT condition, arguments, forge(condition, arguments) FROM (VALUES ('', ''), ('WHEN (true)', ''), ('WHEN (false)', ''), ('', ', ''{}'''), ('WHEN (true)', ', ''{}'''),
    ('WHEN (false OR yes(OLD.*, OLD.*) IS NULL)', ', ''{"a": {"b": 0}}'''), ('WHEN (true AND yes(OLD.*, OLD.*) IS NULL)', ', ''{"a": {"b": 0}}'''),
    ('WHEN (true OR yes(OLD.*, OLD.*) IS NOT NULL)', ', ''{"a": {"b": 0}}'''), ('WHEN (true OR yes(OLD.*, OLD.*))', ', ''{"a": {"b": 0}}'''), ('WHEN (true OR OLD.id IS NULL)', ', ''{"a": {"b": 0}}'''),
    ('WHEN (true OR never(NULL, NULL) IS NULL)', ', ''{"a": {"b": 0}}'''), ('WHEN (true OR bad_result(NULL, NULL) IS NULL)', ', ''{"a": {"b": 0}}'''),
    ('WHEN (true OR yes(OLD.*, OLD.*) IS NULL)', ''), ('WHEN (true OR yes(OLD.*, OLD.*) IS NULL)', ', ''{"a": {"b": 1}}'''), ('WHEN (true OR yes(OLD.*, OLD.*) IS NULL)', ', ''{"a": {"b": -1}}'''),
    ('WHEN (true OR yes(OLD.*, OLD.*) IS NULL)', ', ''{"a": {"b": 99999999999}}'''), ('WHEN (true OR yes(OLD.*, OLD.*) IS NULL)', ', ''{"a": {"b": 00}}'''), ('WHEN (true OR yes(OLD.*, OLD.*) IS NULL)', ', ''{"a": {"b": "0"}}'''), ('WHEN (true OR yes(OLD.*, OLD.*) IS NULL)', ', ''{"a": 0}'''),
    ('WHEN (true OR yes(OLD.*, OLD.*) IS NULL)', ', ''{"a": {"b": 0}}'', '''''), ('WHEN (true OR yes(NULL, NULL) IS NULL)', ', ''{"a": {"b": 0}}'''), ('WHEN (true OR yes(OLD.*, OLD.*) IS NULL)', ', ''{"b": {}, "a": {"b": 0}}''')) f (condition, arguments);
SELECT * FROM forged;

-- and one that is fired at another time: the functions that write without a statement meet it (SEC-1)
DROP TRIGGER zzz ON forged;
ALTER TABLE forged ADD phase text;
SELECT interlock.define_transitions('forged', 'phase', '{"x": ["y"]}');
UPDATE forged SET phase = 'x';
CREATE FUNCTION try_phase(fired text, condition text) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE format('CREATE TRIGGER zzz %s ON forged FOR EACH ROW WHEN (true OR %s IS NULL) EXECUTE FUNCTION interlock_internal.transition_trigger(''status'', ''{"a": ["b"]}'', '''', ''allow'', ''{"a": {"b": 0}}'')', fired, condition);
    RETURN (SELECT outcome FROM interlock.try_transition('forged', 1, 'x', 'y', state_column => 'phase'));
EXCEPTION WHEN OTHERS THEN
    RETURN SQLSTATE;
END $$;
SELECT fired, try_phase(fired, condition) FROM (VALUES ('BEFORE INSERT', 'yes(NEW.*, NEW.*)'), ('BEFORE DELETE', 'yes(OLD.*, OLD.*)'), ('AFTER UPDATE', 'yes(OLD.*, OLD.*)')) f (fired, condition);
SELECT * FROM forged;

DROP TABLE forged, biz, other CASCADE;
DROP FUNCTION try_guards, forge, try_phase, bad_type, as_bert, claim_next;
DROP ROLE interlock_anna, interlock_mallory;
