-- MRK-7: workers claim rows that are free and match.
BEGIN;
SELECT plan(86);
CREATE TYPE urgency AS ENUM ('low', 'high');
CREATE DOMAIN urgent AS urgency;
CREATE TABLE job (id int PRIMARY KEY, queue text NOT NULL DEFAULT 'mail', place int, at timestamptz, body jsonb, done bool, tags text[],
    price numeric, urgency urgency, urgent urgent, code char(4), raw json, dot point);
SELECT interlock.enable_marker('job', '1 hour');
INSERT INTO job (id, queue, place) SELECT i, CASE WHEN i <= 6 THEN 'mail' ELSE 'print' END, 10 - i FROM generate_series(1, 9) i;
CREATE FUNCTION marked(which text = 'job') RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    answer text;
BEGIN
    EXECUTE format('SELECT string_agg(id || '' '' || lock_by, '', '' ORDER BY id) FROM %s WHERE lock_status = 1', which) INTO answer;
    RETURN answer;
END$$;
CREATE FUNCTION free() RETURNS void LANGUAGE sql AS $$
    SELECT interlock.unlock_row('job', id, lock_by) FROM job WHERE lock_status = 1$$;
CREATE FUNCTION lapse(lapsed int) RETURNS void LANGUAGE plpgsql AS $$BEGIN
    SET LOCAL session_replication_role = replica;
    UPDATE job SET lock_until = now() - interval '1 min' WHERE id = lapsed;
    SET LOCAL session_replication_role = origin;
END$$;
-- what is claimed, by keys
CREATE FUNCTION claimed(max_rows int = 1, match jsonb = '{}', order_column name = NULL, holder text = 'w') RETURNS jsonb LANGUAGE sql AS
    $$SELECT jsonb_agg(key->'id') FROM interlock.claim_rows('job', holder, max_rows, match, order_column)$$;

-- the answer
SELECT results_eq($$SELECT key, current->>'lock_by', (current->>'lock_until')::timestamptz = expires_at, expires_at > now() + interval '59 min'
        FROM interlock.claim_rows('job', 'w1', order_column => 'id')$$, $$VALUES ('{"id": 1}'::jsonb, 'w1', true, true)$$, 'one, as it is now');
SELECT current FROM interlock.claim_rows('job', 'w1', order_column => 'id') \gset
SELECT is(:'current', to_jsonb(job), 'with all columns; the next one for the same holder') FROM job WHERE id = 2;
SELECT is(marked(), '1 w1, 2 w1', 'both are held');
SELECT is(claimed(3, order_column => 'id'), '[3, 4, 5]', 'several');
SELECT is(jsonb_array_length(claimed(9)), 4, 'the rest, in any order');
SELECT is(claimed(9), NULL, 'none is left');
SELECT is((SELECT count(*) FROM job WHERE lock_status = 1 AND lock_until > now() AND lock_time <= clock_timestamp()), 9::bigint, 'all are held');

-- the order
SELECT free();
SELECT is(claimed(3, '{}', 'place'), '[9, 8, 7]', 'the least first');
SELECT free();
UPDATE job SET place = NULL WHERE id = 9;
SELECT is(claimed(9, '{}', 'place')->8, '9', 'nulls last');
SELECT free();
UPDATE job SET at = now() - id * interval '1 s', urgency = CASE id WHEN 3 THEN 'low' ELSE 'high' END::urgency, urgent = CASE id WHEN 4 THEN 'high' END::urgency, price = -id;
SELECT is(claimed(1, '{}', c), e, 'by ' || c) FROM (VALUES ('at', '[9]'::jsonb), ('urgency', '[3]'), ('urgent', '[4]'), ('price', '[8]')) v (c, e);
SELECT throws_ok($$SELECT claimed(1, '{}', 'raw')$$, '42883', 'rows of table "job" cannot be sorted by column "raw": type json has no ordering operator');
SELECT throws_ok($$SELECT claimed(1, '{}', 'dot')$$, '42883');
SELECT throws_ok($$SELECT claimed(1, '{}', 'nope')$$, '42703');
SELECT throws_ok($$SELECT claimed(1, '{}', 'ctid')$$, '42703');
SELECT throws_ok($$SELECT claimed(1, '{}', 'id; DROP TABLE job')$$, '42703');

-- what must match
SELECT free();
UPDATE job SET body = '{"a": 1.0}', done = id = 3, tags = '{x,y}', price = 1.50, code = 'ab' WHERE id IN (2, 3);
SELECT is(claimed(9, m, 'id'), e, m::text) FROM (VALUES ('{"queue": "print"}'::jsonb, '[7, 8, 9]'::jsonb), ('{"queue": "fax"}', NULL)) v (m, e);
SELECT free();
SELECT is(claimed(9, '{"done": true}'), '[3]', 'bool');
SELECT is(claimed(9, '{"done": false, "queue": "mail"}'), '[2]', 'several columns');
SELECT free();
SELECT is(claimed(9, '{"done": null, "queue": "print"}', 'id'), '[7, 8, 9]', 'null');
SELECT is(claimed(9, '{"place": null}'), NULL, 'which is held');
SELECT free();
SELECT is(claimed(9, '{"place": null}'), '[9]', 'null alone');
SELECT is(claimed(9, '{"body": {"a": 1}, "tags": ["x", "y"], "price": 1.5, "code": "ab", "done": true}'), '[3]', 'jsonb, array, numeric, char');
SELECT is(claimed(9, '{"urgency": "low"}'), NULL, 'an enum, of a row that is held');
SELECT is(claimed(9, '{"urgent": "high"}'), '[4]', 'a domain over an enum');
SELECT is(claimed(9, '{"id": "2"}'), '[2]', 'the key');
SELECT is(claimed(9, '{"lock_reason": null, "lock_by": null, "queue": "mail"}', 'id'), '[1, 5, 6]', 'columns of the marker');
SELECT throws_ok(format('SELECT claimed(1, %L)', m), s, NULL, m) FROM (VALUES ('{"nope": 1}', '42703'), ('{"nope": null}', '42703'), ('{"ctid": "(0,1)"}', '42703'), ('{"raw": 1}', '42883'), ('{"raw": null}', '42883'), ('{"dot": 1}', '42883'),
    ('{"id": "x"}', '22P02'), ('{"urgency": "middle"}', '22P02'), ('[]', '22023'), ('"queue"', '22023'), ('1', '22023'), ('{"id = 1 OR true": 1}', '42703')) v (m, s);

-- what is free
SELECT free();
SELECT lapse(6) FROM (SELECT interlock.lock_row('job', 6, 'gone', NULL, 'why')) held;
SELECT is(claimed(9, '{"queue": "mail"}', 'id'), '[1, 2, 3, 4, 5, 6]', 'also what has lapsed');
SELECT is((SELECT lock_reason FROM job WHERE id = 6), NULL, 'the reason is gone');
SELECT free();
CREATE TABLE adopted (id int PRIMARY KEY, flag int, who text, since timestamp);
INSERT INTO adopted VALUES (1, NULL, NULL, NULL), (2, 0, NULL, NULL), (3, 1, NULL, now()), (4, 1, 'x', now()), (5, 0, NULL, NULL);
SELECT interlock.enable_marker('adopted', '1 hour', false, 'off', 'flag', 'who', 'since');
SET LOCAL session_replication_role = replica;
UPDATE adopted SET flag = 7 WHERE id = 5;
RESET session_replication_role;
SELECT results_eq($$SELECT key->>'id' FROM interlock.claim_rows('adopted', 'w', 9, order_column => 'id')$$, $$VALUES ('1'), ('2')$$, 'null is free, 1 is not, nor what is no status');
SELECT is((SELECT who FROM adopted WHERE id = 1), 'w', 'without enforcement');

-- the end of a claim
SELECT is(claimed(3, order_column => 'id'), '[1, 2, 3]', 'claimed');
SELECT lives_ok($$SELECT interlock.save_row('job', '{"id": 1}'::jsonb, 'w', '{"done": true}')$$, 'save_row, with the key of the answer');
SELECT lives_ok($$SELECT interlock.delete_row('job', 2, 'w')$$, 'delete_row');
SELECT lapse(3);
SELECT is(claimed(1, '{"id": 3}', holder => 'w2'), '[3]', 'another worker takes what has lapsed');
SELECT throws_ok($$SELECT interlock.save_row('job', 3, 'w', '{"done": true}')$$, 'IL005', NULL, 'the first one is late');
SELECT throws_ok($$SELECT interlock.delete_row('job', 3, 'w')$$, 'IL005', NULL, 'in both ways');
SELECT is((SELECT expires_at < now() + interval '2 min' FROM interlock.claim_rows('job', 'w', 1, '{}', NULL, '1 min')), true, 'a ttl of its own');

-- arguments
SELECT free();
SELECT throws_ok(format('SELECT * FROM interlock.claim_rows(%s)', a), s, NULL, a) FROM (VALUES ($$NULL, 'w'$$, '22004'), ($$'job', NULL$$, '22004'), ($$'job', ''$$, '22023'), ($$'job', 'w', NULL$$, '22004'), ($$'job', 'w', 0$$, '22023'), ($$'job', 'w', -1$$, '22023'),
    ($$'job', 'w', 1, NULL$$, '22004'), ($$'job', 'w', ttl => '0'$$, '22023'), ($$'pg_class', 'w'$$, '42809')) v (a, s);
PREPARE claim AS SELECT key FROM interlock.claim_rows($1, $2, $3, $4, $5, $6);
SELECT results_eq($$EXECUTE claim('job', 'w', '1', '{"queue": "print"}', 'id', '1 min')$$, $$VALUES ('{"id": 7}'::jsonb)$$, 'parameters without a type');
SELECT is((SELECT count(*) FROM interlock.claim_rows('job', 'w', 2147483647)), 7::bigint, 'all there are');
CREATE TABLE bare (id int);
SELECT throws_ok($$SELECT * FROM interlock.claim_rows('bare', 'w')$$, '55000', 'table "bare" has no markers');
SELECT interlock.enable_marker('bare');
SELECT throws_ok($$SELECT * FROM interlock.claim_rows('bare', 'w')$$, '55000', NULL, 'a table without a key');
DO $$BEGIN
    EXECUTE 'CREATE TABLE wide (id int PRIMARY KEY' || (SELECT string_agg(', c' || i || ' int', '') FROM generate_series(1, 900) i) || ')';
END$$;
SELECT interlock.enable_marker('wide');
INSERT INTO wide (id, c900) VALUES (1, 5);
SELECT throws_ok($$SELECT * FROM interlock.claim_rows('wide', 'w', 1, '{"c1": null}')$$, '0A000');
SELECT results_eq($$SELECT current->'c900' FROM interlock.claim_rows('wide', 'w', 1, '{"c900": 5}')$$, $$VALUES ('5'::jsonb)$$, 'a value is matched there');

-- the plan: the index that has the columns of match and the order, also where the server knows nothing of the rows yet
CREATE TABLE many (id int PRIMARY KEY, queue text, place int, body text);
INSERT INTO many SELECT i, 'q', i, repeat('x', 100) FROM generate_series(1, 3000) i;
CREATE INDEX many_next ON many (queue, place);
SELECT interlock.enable_marker('many');
SELECT is((SELECT count(*) FROM interlock.claim_rows('many', 'w', 10, '{"queue": "q"}', 'place')), 10::bigint, 'ten of many');
SELECT is(pg_stat_get_xact_tuples_returned('many_next'::regclass) < 30, true, 'of which few are read');
SELECT is((SELECT pg_stat_get_xact_numscans('many_next'::regclass)), 1::bigint, 'by the index');

-- partitions, other concepts, and what listeners of the row see
CREATE TABLE part (area text, id int, version bigint, state text DEFAULT 'new', PRIMARY KEY (area, id)) PARTITION BY LIST (area);
CREATE TABLE part_n PARTITION OF part FOR VALUES IN ('north');
CREATE TABLE part_s PARTITION OF part FOR VALUES IN ('south');
SELECT interlock.enable_versioning('part');
SELECT interlock.enable_marker('part', '1 hour');
SELECT interlock.enable_history('part');
SELECT interlock.define_transitions('part', 'state', '{"new": ["done"]}', '{new}');
INSERT INTO part (area, id) VALUES ('south', 2), ('north', 1), ('south', 3);
SELECT results_eq($$SELECT key, current->'version' FROM interlock.claim_rows('part', 'w', 2, '{"state": "new"}', 'id')$$,
    $$VALUES ('{"id": 1, "area": "north"}'::jsonb, '1'::jsonb), ('{"id": 2, "area": "south"}', '1')$$, 'of two partitions; the version stands, as for lock_row');
SELECT is((SELECT count(*) FROM interlock.row_history('part', '{"id": 1, "area": "north"}')), 1::bigint, 'history has no entry of it, as of lock_row');
SELECT is(interlock.save_row('part', '{"id": 1, "area": "north"}', 'w', '{"state": "done"}', 1), 2::bigint, 'the state is moved with the save');
SELECT throws_ok($$SELECT interlock.save_row('part', '{"id": 2, "area": "south"}', 'w', '{"state": "gone"}')$$, 'IL002');
SELECT is((SELECT current->'id' FROM interlock.claim_rows('part', 'w', 9, '{"state": "new"}')), '3', 'what is done does not match');

-- who may
SELECT free();
CREATE ROLE marker_claim_role;
GRANT USAGE ON SCHEMA public TO marker_claim_role;
CREATE FUNCTION as_worker(command text) RETURNS SETOF jsonb LANGUAGE plpgsql AS $$BEGIN
    SET LOCAL ROLE marker_claim_role;
    RETURN QUERY EXECUTE command;
    RESET ROLE;
END$$;
SELECT throws_ok($$SELECT as_worker('SELECT key FROM interlock.claim_rows(''job'', ''w'')')$$, '42501');
GRANT SELECT (id, lock_status, lock_by, lock_time, lock_until, lock_reason), UPDATE (lock_status, lock_by, lock_time, lock_until, lock_reason) ON job TO marker_claim_role;
SELECT results_eq($$SELECT as_worker('SELECT jsonb_object_agg(k, true) FROM interlock.claim_rows(''job'', ''w'', 1), jsonb_object_keys(current) k')$$,
    $$VALUES ('{"id": true, "lock_by": true, "lock_time": true, "lock_until": true, "lock_reason": true, "lock_status": true}'::jsonb)$$, 'columns that it may read');
SELECT throws_ok($$SELECT as_worker('SELECT key FROM interlock.claim_rows(''job'', ''w'', 1, ''{"queue": "mail"}'')')$$, '42501', NULL, 'and match');
SELECT throws_ok($$SELECT as_worker('SELECT key FROM interlock.claim_rows(''job'', ''w'', 1, ''{"done": null}'')')$$, '42501', NULL, 'also a null');
SELECT throws_ok($$SELECT as_worker('SELECT key FROM interlock.claim_rows(''job'', ''w'', 1, order_column => ''place'')')$$, '42501', NULL, 'and sort by');
GRANT SELECT, UPDATE ON job TO marker_claim_role;
ALTER TABLE job ENABLE ROW LEVEL SECURITY;
CREATE POLICY seen ON job FOR SELECT TO marker_claim_role USING (id <> 9);
CREATE POLICY written ON job FOR UPDATE TO marker_claim_role USING (id > 6);
SELECT free();
SELECT results_eq($$SELECT as_worker('SELECT key FROM interlock.claim_rows(''job'', ''w'', 9, order_column => ''id'')')$$, $$VALUES ('{"id": 7}'::jsonb), ('{"id": 8}')$$, 'policies apply');
-- a plan that cannot be made leaves nothing behind
CREATE FUNCTION plans_left() RETURNS bigint LANGUAGE sql AS $$SELECT count(*) FROM pg_backend_memory_contexts WHERE name = 'CachedPlanSource'$$;
CREATE POLICY fails ON job FOR SELECT TO marker_claim_role USING (1 / 0 = 1);
CREATE TEMP TABLE plans AS SELECT plans_left() AS before;
DO $$ BEGIN FOR i IN 1 .. 50 LOOP
    BEGIN PERFORM as_worker('SELECT key FROM interlock.claim_rows(''job'', ''w'', 9, order_column => ''id'')'); EXCEPTION WHEN division_by_zero THEN NULL; END;
END LOOP; END $$;
SELECT ok(plans_left() - before < 25, 'a statement that cannot be planned is not kept') FROM plans;
DROP POLICY fails ON job;
ALTER TABLE job DISABLE ROW LEVEL SECURITY;

-- triggers of others; by statements
SELECT free();
SET LOCAL interlock.direct_execution = off;
SELECT is(claimed(2, '{"queue": "mail"}', 'id'), '[1, 3]', 'by statements');
RESET interlock.direct_execution;
CREATE FUNCTION suppress() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';
CREATE TRIGGER a_suppress BEFORE UPDATE ON job FOR EACH ROW WHEN (OLD.id = 5) EXECUTE FUNCTION suppress();
SELECT throws_ok($$SELECT claimed(9, '{"queue": "mail"}', 'id')$$, '09000');
DROP TRIGGER a_suppress ON job;
CREATE FUNCTION take_next() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN
    PERFORM interlock.lock_row('job', 5, 'trigger');
    DELETE FROM job WHERE id = 6;
    RETURN NULL;
END$$;
CREATE TRIGGER b_take AFTER UPDATE ON job FOR EACH ROW WHEN (NEW.id = 4) EXECUTE FUNCTION take_next();
SELECT is(claimed(9, '{"queue": "mail"}', 'id'), '[4]', 'what a trigger takes or deletes meanwhile is not claimed');

SELECT * FROM finish();
ROLLBACK;
