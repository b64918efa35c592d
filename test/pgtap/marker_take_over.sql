-- MRK-53: take_over_row gives a row to another holder, and row_lock_audit says who had it.
BEGIN;
SELECT plan(56);
CREATE ROLE interlock_editor;
CREATE ROLE interlock_support;
SELECT interlock.grant_access('operator', 'interlock_support');

CREATE TABLE doc (id int PRIMARY KEY, body text NOT NULL);
CREATE UNIQUE INDEX ON doc (body);
SELECT interlock.enable_versioning('doc'), interlock.enable_marker('doc', '1 hour');
INSERT INTO doc VALUES (1, 'one'), (2, 'two'), (3, 'three');
GRANT SELECT, UPDATE ON doc TO interlock_editor, interlock_support;
CREATE FUNCTION take(key int, holder text, ttl text = NULL, OUT outcome text, OUT previous text, OUT lives text)
LANGUAGE sql AS $$SELECT outcome, previous_holder, CASE WHEN expires_at > clock_timestamp() + '90 min'::interval THEN 'longer'
    WHEN expires_at > clock_timestamp() + '50 min'::interval THEN 'an hour' WHEN expires_at > clock_timestamp() THEN 'less' ELSE 'over' END
    FROM interlock.take_over_row('doc', key, holder, 'why not', ttl::interval)$$;
CREATE FUNCTION expire(key int) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    SET LOCAL session_replication_role = replica;
    UPDATE doc SET lock_until = now() - '1 s'::interval WHERE id = key;
    SET LOCAL session_replication_role = origin;
END $$;
-- Both ways to write must do the same.
CREATE FUNCTION both_ways(prepare text, query text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE way text; answer text;
BEGIN
    FOREACH way IN ARRAY '{on,off}'::text[] LOOP
        PERFORM set_config('interlock.direct_execution', way, true);
        EXECUTE prepare;
        EXECUTE query INTO answer;
        RETURN NEXT answer;
    END LOOP;
    PERFORM set_config('interlock.direct_execution', 'on', true);
END $$;

-- By default a marker is taken over after its deadline only.
SELECT is((SELECT interlock.configuration('doc')->'marker'->>'take_over'), 'expired', 'the default');
SELECT is((SELECT tgnargs FROM pg_trigger WHERE tgrelid = 'doc'::regclass AND tgname = 'zzz_interlock_marker'), 7::smallint, 'which adds nothing to the trigger');
SELECT results_eq($$SELECT * FROM take(1, 'anna')$$, $$VALUES ('free', NULL, 'an hour')$$, 'a free row is locked');
SELECT results_eq($$SELECT locked, holder, reason FROM interlock.row_lock_of('doc', 1)$$, $$VALUES (true, 'anna', 'why not')$$, 'with the reason');
SELECT results_eq($$SELECT * FROM take(1, 'anna', '2 hours')$$, $$VALUES ('free', NULL, 'longer')$$, 'one''s own is renewed');
SELECT results_eq($$SELECT * FROM take(1, 'anna', '1 min')$$, $$VALUES ('free', NULL, 'longer')$$, 'and never shortened');
SELECT is_empty('SELECT FROM interlock.row_lock_audit', 'nobody lost a row');
SELECT results_eq($$SELECT * FROM take(1, 'bert')$$, $$VALUES ('refused', 'anna', 'longer')$$, 'a live marker');
SELECT ok(since = locked_at AND t.expires_at = l.expires_at, 'says since when and until when')
  FROM interlock.take_over_row('doc', 1, 'bert', 'why not') t, interlock.row_lock_of('doc', 1) l;
SET ROLE interlock_support;
SELECT is(outcome, 'refused', 'for an operator, too') FROM interlock.take_over_row('doc', 1, 'bert', 'why not');
RESET ROLE;
SELECT results_eq($$SELECT both_ways('SELECT take(1, ''anna''), expire(1)', 'SELECT (outcome, previous, lives)::text FROM take(1, ''bert'')')$$,
    $$VALUES ('(taken,anna,"an hour")'), ('(free,,"an hour")')$$, 'an expired marker, and then one''s own');
SELECT results_eq($$SELECT both_ways('SELECT expire(1), interlock.lock_row(''doc'', 1, ''anna''), expire(1)', 'SELECT (outcome, previous, lives)::text FROM take(1, ''bert'')')$$,
    $$VALUES ('(taken,anna,"an hour")'), ('(taken,anna,"an hour")')$$, 'an expired marker');
SELECT results_eq($$SELECT * FROM take(99, 'bert')$$, $$VALUES ('not_found', NULL, 'over')$$, 'a row that does not exist');

-- allow
SELECT interlock.enable_marker('doc', '1 hour', take_over => 'allow');
SELECT is((SELECT interlock.configuration('doc')->'marker'->>'take_over'), 'allow', 'the setting');
SELECT is(locked, true, 'locked') FROM interlock.lock_row('doc', 2, 'anna', '2 hours', 'on the price list');
SELECT is(interlock.save_row('doc', 3, 'anna', '{"body": "3"}'), 2::bigint, 'saved') FROM interlock.lock_row('doc', 3, 'anna');
DELETE FROM interlock.row_lock_audit;
SET ROLE interlock_editor;
SELECT results_eq($$SELECT outcome, previous_holder, since IS NOT NULL FROM interlock.take_over_row('doc', '{"body": "two"}', 'bert', 'Anna is at lunch', '30 min')$$,
    $$VALUES ('taken', 'anna', true)$$, 'a live marker, by a role without special rights, and by another key');
RESET ROLE;
SELECT results_eq($$SELECT holder, reason, locked_at > now() - '1 min'::interval, expires_at < clock_timestamp() + '31 min'::interval FROM interlock.row_lock_of('doc', 2)$$,
    $$VALUES ('bert', 'Anna is at lunch', true, true)$$, 'is the new holder''s, with his deadline and reason');
SELECT results_eq($$SELECT forced_by, action, table_name, key, holder, taken_by, would_expire_at > clock_timestamp() + '110 min'::interval, reason FROM interlock.row_lock_audit$$,
    $$VALUES ('interlock_editor', 'take_over_row', 'public.doc', '{"id": 2}'::jsonb, 'anna', 'bert', true, 'Anna is at lunch')$$, 'MRK-53: audited');
SELECT results_eq($$SELECT role, kind, action, name, holder, reason, after FROM interlock.audit WHERE action = 'take_over_row'$$,
    $$VALUES ('interlock_editor', 'force', 'take_over_row', '{"id": 2}', 'anna', 'Anna is at lunch', '{"holder": "bert"}'::jsonb)$$, 'MRK-53: also in the view');
SELECT throws_ok($$SELECT interlock.save_row('doc', 2, 'anna', '{"body": "late"}')$$, 'IL005', '"anna" does not hold the row of table "doc"', 'who lost the row cannot save');
SELECT is(interlock.touch_row('doc', 2, 'anna'), NULL, 'nor touch');
SELECT throws_ok($$UPDATE doc SET body = 'late' WHERE id = 2$$, 'IL004', NULL, 'nor write in plain SQL');
SELECT is(interlock.save_row('doc', 2, 'bert', '{"body": "better"}', 1), 2::bigint, 'the new holder can, and the version is unmoved');
SELECT results_eq($$SELECT both_ways('SELECT interlock.force_unlock_row(''doc'', 1, ''again''), interlock.lock_row(''doc'', 1, ''anna'')', 'SELECT (outcome, previous, lives)::text FROM take(1, ''bert'')')$$,
    $$VALUES ('(taken,anna,"an hour")'), ('(taken,anna,"an hour")')$$, 'a live marker, both ways to write');
SELECT is(interlock.unlock_row('doc', 1, 'bert'), true, 'it can be released');

-- operators
SELECT interlock.enable_marker('doc', '1 hour', take_over => 'operators', sweep_index => false);
SELECT results_eq($$SELECT interlock.configuration('doc')->'marker'->>k FROM unnest('{take_over,sweep_index}'::text[]) k$$, $$VALUES ('operators'), ('false')$$, 'with another setting');
SELECT is(locked, true, 'locked') FROM interlock.lock_row('doc', 1, 'anna');
SET ROLE interlock_editor;
SELECT results_eq($$SELECT outcome, previous_holder FROM interlock.take_over_row('doc', 1, 'bert', 'why not')$$, $$VALUES ('refused', 'anna')$$, 'not by every role');
SET ROLE interlock_support;
SELECT results_eq($$SELECT outcome, previous_holder FROM interlock.take_over_row('doc', 1, 'bert', 'why not')$$, $$VALUES ('taken', 'anna')$$, 'by an operator');
RESET ROLE;
SELECT expire(1);
SET ROLE interlock_editor;
SELECT results_eq($$SELECT outcome, previous_holder FROM interlock.take_over_row('doc', 1, 'carl', 'why not')$$, $$VALUES ('taken', 'bert')$$, 'after the deadline by every role');
RESET ROLE;
-- the finding about a column that is gone keeps the setting
SAVEPOINT a;
ALTER TABLE doc DROP COLUMN lock_reason;
SELECT matches(advice, 'sweep_index => false, take_over => ''operators''\)', 'and its advice') FROM interlock.advise('doc') WHERE finding ~ 'is gone';
ROLLBACK TO a;

-- a marker without a holder, which an adopted column may have
SELECT interlock.enable_marker('doc', '1 hour', take_over => 'allow');
SET LOCAL session_replication_role = replica;
UPDATE doc SET lock_status = 1, lock_by = NULL, lock_until = now() + '1 hour'::interval WHERE id = 3;
SET LOCAL session_replication_role = origin;
SELECT results_eq($$SELECT * FROM take(3, 'bert')$$, $$VALUES ('taken', '', 'an hour')$$, 'has the empty name');
-- what suppresses the write is an error
CREATE FUNCTION swallow() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';
CREATE TRIGGER a_swallow BEFORE UPDATE ON doc FOR EACH ROW EXECUTE FUNCTION swallow();
SELECT throws_ok($$SELECT take(3, 'carl')$$, '09000', NULL, 'a trigger that suppresses it');
SELECT throws_ok($$SELECT take(1, 'carl'), take(2, 'carl')$$, '09000', NULL, 'or the lock of a free row');
DROP TRIGGER a_swallow ON doc;

-- without enforcement a marker can still not be taken over by another function
SELECT interlock.enable_marker('doc', '1 hour', enforce => false, take_over => 'allow');
SELECT results_eq($$SELECT locked, holder FROM interlock.lock_row('doc', 3, 'carl')$$, $$VALUES (false, 'bert')$$, 'not by lock_row');
SELECT throws_ok($$UPDATE doc SET lock_by = 'carl' WHERE id = 3$$, 'IL004', NULL, 'nor in plain SQL');
SELECT results_eq($$SELECT * FROM take(3, 'carl')$$, $$VALUES ('taken', 'bert', 'an hour')$$, 'but by take_over_row');

-- hand_over_row is for the holder, and audited
DELETE FROM interlock.row_lock_audit;
SELECT isnt(interlock.hand_over_row('doc', 3, 'carl', 'dora'), NULL, 'handed over');
SELECT isnt(interlock.hand_over_row('doc', 3, 'dora', 'dora'), NULL, 'to oneself');
SELECT throws_ok($$SELECT interlock.hand_over_row('doc', 3, 'carl', 'bert')$$, 'IL005', NULL, 'by who has it no more');
SELECT results_eq($$SELECT action, key, holder, taken_by, would_expire_at, reason FROM interlock.row_lock_audit$$,
    $$VALUES ('hand_over_row', '{"id": 3}'::jsonb, 'carl', 'dora', NULL::timestamptz, NULL::text)$$, 'MRK-53: an entry');
SELECT results_eq($$SELECT action, holder, reason, after FROM interlock.audit WHERE action = 'hand_over_row'$$,
    $$VALUES ('hand_over_row', 'carl', NULL, '{"holder": "dora"}'::jsonb)$$, 'MRK-53: in the view');

-- a history that records markers names the new holder
CREATE TABLE memo (id int PRIMARY KEY, body text);
SELECT interlock.enable_marker('memo', take_over => 'allow'), interlock.enable_history('memo', record_markers => true);
INSERT INTO memo VALUES (1);
SELECT is(outcome, 'taken', 'a row with a history') FROM interlock.lock_row('memo', 1, 'anna') l, interlock.take_over_row('memo', 1, 'bert', 'why not');
SELECT results_eq($$SELECT operation, writer FROM interlock.row_history('memo', 1)$$, $$VALUES ('insert', NULL), ('update', 'anna'), ('update', 'bert')$$, 'who writes is the new holder');

-- partitions
CREATE TABLE sheet (id int, region text, PRIMARY KEY (id, region)) PARTITION BY LIST (region);
CREATE TABLE sheet_eu PARTITION OF sheet FOR VALUES IN ('eu');
SELECT interlock.enable_marker('sheet', take_over => 'allow');
INSERT INTO sheet VALUES (1, 'eu');
SELECT is(locked, true, 'a row of a partition') FROM interlock.lock_row('sheet', '{"id": 1, "region": "eu"}', 'anna');
SELECT results_eq($$SELECT outcome, previous_holder FROM interlock.take_over_row('sheet_eu', '{"id": 1, "region": "eu"}', 'bert', 'why not')$$, $$VALUES ('taken', 'anna')$$, 'has the setting of its parent');

-- bad input
SELECT throws_ok($$SELECT interlock.take_over_row('doc', 1, 'bert', NULL)$$, '22004', 'argument "reason" must not be null');
SELECT throws_ok($$SELECT interlock.take_over_row('doc', 1, 'bert', '')$$, '22023', 'argument "reason" must not be empty');
SELECT throws_ok($$SELECT interlock.take_over_row('doc', 1, '', 'why')$$, '22023');
SELECT throws_ok($$SELECT interlock.take_over_row('doc', 1, 'bert', 'why', 0)$$, '22023');
SELECT throws_ok($$SELECT interlock.take_over_row('doc', NULL::int, 'bert', 'why')$$, '22004');
SELECT throws_ok($$SELECT interlock.take_over_row('pg_class', 1, 'bert', 'why')$$, '42809');
SELECT throws_ok($$SELECT interlock.enable_marker('doc', take_over => 'never')$$, '22023', 'unknown value "never" for argument "take_over"');
SELECT throws_ok($$SELECT interlock.enable_marker('doc', take_over => NULL)$$, '22004');
CREATE ROLE interlock_guest;
SET ROLE interlock_guest;
SELECT throws_ok($$SELECT interlock.take_over_row('doc', 3, 'bert', 'why')$$, '42501', 'permission denied for table doc');
RESET ROLE;

SELECT * FROM finish();
ROLLBACK;
