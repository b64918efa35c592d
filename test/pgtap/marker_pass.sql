-- MRK-5: a marker is handed to another holder, or ends with its row.
BEGIN;
SELECT plan(46);

CREATE TABLE page (id int PRIMARY KEY, slug text NOT NULL UNIQUE, body text);
SELECT interlock.enable_versioning('page');
SELECT interlock.enable_marker('page', '1 hour');
INSERT INTO page SELECT i, 'page ' || i, 'x' FROM generate_series(1, 9) i;
CREATE FUNCTION lapse(lapsed int) RETURNS void LANGUAGE plpgsql AS $$BEGIN
    SET LOCAL session_replication_role = replica;
    UPDATE page SET lock_until = now() - interval '1 min' WHERE id = lapsed;
    SET LOCAL session_replication_role = origin;
END$$;
CREATE FUNCTION both_ways(command text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
    way text;
    answer text;
BEGIN
    FOREACH way IN ARRAY '{on,off}'::text[] LOOP
        PERFORM set_config('interlock.direct_execution', way, true);
        BEGIN
            EXECUTE command INTO answer;
            RAISE EXCEPTION USING ERRCODE = 'XX999', MESSAGE = coalesce(answer, 'null');
        EXCEPTION WHEN OTHERS THEN
            RETURN NEXT CASE SQLSTATE WHEN 'XX999' THEN SQLERRM ELSE SQLSTATE END;
        END;
    END LOOP;
    RESET interlock.direct_execution;
END$$;

-- hand_over_row
SELECT is((SELECT locked FROM interlock.lock_row('page', 1, 'anna', '1 min', 'typing')), true, 'anna has it');
SELECT results_eq($$SELECT * FROM both_ways('SELECT interlock.hand_over_row(''page'', 1, ''anna'', ''bert'') > now() + interval ''59 min''')$$,
    $$VALUES ('true'), ('true')$$, 'handed over, for the ttl of the table');
SELECT results_eq($$SELECT * FROM both_ways('SELECT interlock.hand_over_row(''page'', 1, ''anna'', ''bert'', ''1 s'') < now() + interval ''59 s''')$$,
    $$VALUES ('true'), ('true')$$, 'or for its own');
SET LOCAL session_replication_role = replica;
UPDATE page SET lock_time = now() - interval '1 day' WHERE id = 1;
RESET session_replication_role;
SELECT interlock.hand_over_row('page', 1, 'anna', 'bert') AS deadline \gset
SELECT is(lock_until, :'deadline', 'the new deadline') FROM page WHERE id = 1;
SELECT results_eq('SELECT lock_status::int, lock_by, lock_reason, version, lock_time > now() - interval ''1 h'' FROM page WHERE id = 1',
    $$VALUES (1, 'bert', 'typing', 1::bigint, true)$$, 'held since now, for the same reason; the version stands, as for lock_row');
SELECT throws_ok($$SELECT interlock.save_row('page', 1, 'anna', '{"body": "a"}')$$, 'IL005', NULL, 'anna has it no more');
SELECT is((SELECT holder FROM interlock.lock_row('page', 1, 'anna')), 'bert', 'and cannot take it');
SELECT is(interlock.hand_over_row('page', '{"slug": "page 1"}'::jsonb, 'bert', 'bert') IS NOT NULL, true, 'to oneself: prolonged; the row by another key');
SELECT is(interlock.save_row('page', 1, 'bert', '{"body": "b"}'), 2::bigint, 'bert saves');
-- not held
SELECT results_eq($$SELECT * FROM both_ways('SELECT interlock.hand_over_row(''page'', 1, ''bert'', ''anna'')')$$, $$VALUES ('IL005'), ('IL005')$$, 'released');
SELECT results_eq($$SELECT * FROM both_ways('SELECT interlock.hand_over_row(''page'', 2, ''bert'', ''anna'')')$$, $$VALUES ('IL005'), ('IL005')$$, 'never held');
SELECT results_eq($$SELECT * FROM both_ways('SELECT interlock.hand_over_row(''page'', 99, ''bert'', ''anna'')')$$, $$VALUES ('P0002'), ('P0002')$$, 'no such row');
SELECT is((SELECT locked FROM interlock.lock_row('page', 3, 'anna')), true, 'one that lapses');
SELECT lapse(3);
SELECT results_eq($$SELECT * FROM both_ways('SELECT interlock.hand_over_row(''page'', 3, ''anna'', ''bert'')')$$, $$VALUES ('IL005'), ('IL005')$$, 'is lost');
SELECT is((SELECT lock_by FROM page WHERE id = 3), 'anna', 'and is as it was');
-- arguments
SELECT throws_ok($$SELECT interlock.hand_over_row('page', 1, 'anna', NULL)$$, '22004', 'argument "to_holder" must not be null');
SELECT throws_ok($$SELECT interlock.hand_over_row('page', 1, NULL, 'anna')$$, '22004', 'argument "holder" must not be null');
SELECT throws_ok($$SELECT interlock.hand_over_row('page', NULL, 'anna', 'bert')$$, '22004', 'argument "key" must not be null');
SELECT throws_ok($$SELECT interlock.hand_over_row('page', 1, 'anna', '')$$, '22023', 'argument "to_holder" must not be empty');
SELECT throws_ok($$SELECT interlock.hand_over_row('page', 1, 'anna', repeat('x', 1025))$$, '22023', 'argument "to_holder" must not be longer than 1024 bytes');
SELECT throws_ok($$SELECT interlock.hand_over_row('page', 1, 'anna', 'bert', '0')$$, '22023');
CREATE TABLE short (id int PRIMARY KEY, lock_by varchar(5));
SELECT throws_ok($$SELECT interlock.hand_over_row('short', 1, 'anna', 'bert')$$, '55000');
SELECT interlock.enable_marker('short', status_column => 'lock_status');
INSERT INTO short VALUES (1);
SELECT is((SELECT locked FROM interlock.lock_row('short', 1, 'anna')), true, 'a short column');
SELECT results_eq($$SELECT * FROM both_ways('SELECT interlock.hand_over_row(''short'', 1, ''anna'', ''robert'')')$$, $$VALUES ('22001'), ('22001')$$, 'that the name does not fit into');

-- delete_row
SELECT is((SELECT locked FROM interlock.lock_row('page', 4, 'anna')), true, 'anna has it');
SELECT throws_ok($$SELECT interlock.delete_row('page', 4, 'bert')$$, 'IL005', '"bert" does not hold the row of table "page"');
SELECT lives_ok($$SELECT interlock.delete_row('page', 4, 'anna')$$, 'deleted');
SELECT is((SELECT count(*) FROM page WHERE id = 4), 0::bigint, 'gone');
SELECT throws_ok($$SELECT interlock.delete_row('page', 4, 'anna')$$, 'P0002');
SELECT throws_ok($$SELECT interlock.delete_row('page', 3, 'anna')$$, 'IL005', NULL, 'lapsed');
SELECT throws_ok($$SELECT interlock.delete_row('page', 2, 'anna')$$, 'IL005', NULL, 'free');
SELECT is((SELECT count(*) FROM page WHERE id IN (2, 3)), 2::bigint, 'both are there');
SELECT throws_ok($$SELECT interlock.delete_row('page', 2, '')$$, '22023');
SELECT throws_ok($$SELECT interlock.delete_row('page', NULL, 'anna')$$, '22004');
CREATE TABLE line (page int REFERENCES page);
INSERT INTO line VALUES (5);
SELECT is((SELECT locked FROM interlock.lock_row('page', 5, 'anna')), true, 'a row with lines');
SELECT throws_ok($$SELECT interlock.delete_row('page', 5, 'anna')$$, '23503');
SELECT is((SELECT holder FROM interlock.row_lock_of('page', 5)), 'anna', 'is still held');

-- partitions and parameters without a type
CREATE TABLE part (area text, id int, PRIMARY KEY (area, id)) PARTITION BY LIST (area);
CREATE TABLE part_n PARTITION OF part DEFAULT;
SELECT interlock.enable_marker('part', enforce => false);
INSERT INTO part VALUES ('north', 1);
SELECT interlock.lock_row('part', '{"area": "north", "id": 1}', 'anna');
PREPARE hand_over AS SELECT interlock.hand_over_row($1, $2, $3, $4);
PREPARE delete_it AS SELECT interlock.delete_row($1, $2, $3);
SELECT lives_ok($$EXECUTE hand_over('part', '{"area": "north", "id": 1}', 'anna', 'bert')$$, 'of a partition');
SELECT throws_ok($$EXECUTE delete_it('part', '{"area": "north", "id": 1}', 'anna')$$, 'IL005', NULL, 'by its holder alone, also without enforcement');
SELECT lives_ok($$EXECUTE delete_it('part', '{"area": "north", "id": 1}', 'bert')$$, 'who is another now');

-- who may
CREATE ROLE marker_pass_role;
GRANT USAGE ON SCHEMA public TO marker_pass_role;
GRANT SELECT, UPDATE ON page TO marker_pass_role;
SELECT interlock.lock_row('page', 6, 'anna');
SET LOCAL ROLE marker_pass_role;
SELECT throws_ok($$SELECT interlock.delete_row('page', 6, 'anna')$$, '42501');
SELECT lives_ok($$SELECT interlock.hand_over_row('page', 6, 'anna', 'bert')$$, 'UPDATE is enough to hand over');
RESET ROLE;
GRANT DELETE ON page TO marker_pass_role;
ALTER TABLE page ENABLE ROW LEVEL SECURITY;
CREATE POLICY seen ON page FOR SELECT TO marker_pass_role USING (true);
CREATE POLICY deleted ON page FOR DELETE TO marker_pass_role USING (id <> 6);
SET LOCAL ROLE marker_pass_role;
SELECT throws_ok($$SELECT interlock.delete_row('page', 6, 'bert')$$, '42501', NULL, 'policies apply');
SELECT throws_ok($$SELECT interlock.hand_over_row('page', 6, 'bert', 'anna')$$, '42501', NULL, 'to both');
RESET ROLE;
ALTER TABLE page DISABLE ROW LEVEL SECURITY;
-- a trigger that suppresses a write
CREATE FUNCTION suppress() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';
CREATE TRIGGER a_suppress BEFORE UPDATE OR DELETE ON page FOR EACH ROW EXECUTE FUNCTION suppress();
SELECT throws_ok($$SELECT interlock.hand_over_row('page', 6, 'bert', 'anna')$$, '09000');
SELECT throws_ok($$SELECT interlock.delete_row('page', 6, 'bert')$$, '09000');

SELECT * FROM finish();
ROLLBACK;
