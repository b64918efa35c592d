-- SEC-7: a time that is far ahead of the clock is no version, and a row that has one all the same is not lost
SET client_min_messages = warning;
\getenv abs_srcdir PG_ABS_SRCDIR
\set helper :abs_srcdir '/helpers/try.sql'
\i :helper
-- with a zone, and without one in the zones that are furthest from each other
CREATE TABLE tv (id int PRIMARY KEY, a int, seen int, updated_time timestamptz DEFAULT now());
INSERT INTO tv VALUES (1), (2), (3);
SELECT interlock.enable_versioning('tv', 'updated_time', '{seen}');
UPDATE tv SET updated_time = '294276-12-31 23:59:59.999998+00';
SELECT try(format('UPDATE tv SET updated_time = %s WHERE id = 1', value)) FROM unnest(ARRAY['now() + interval ''1 hour''', 'now() + interval ''30 s''',
    '''2200-01-01''', '''infinity''', '''-infinity''', 'NULL', '''294276-12-31 23:59:59.999999+00''']) value;
SELECT try(format('INSERT INTO tv VALUES (9, 1, 1, %s)', value)) FROM unnest(ARRAY['now() + interval ''1 hour''', '''infinity''', '''294276-12-31 23:59:59.999999+00''']) value;
SELECT try(format('INSERT INTO tv VALUES (%s, 1, 1, %s) ON CONFLICT (id) DO UPDATE SET updated_time = excluded.updated_time', id, value))
FROM (VALUES (10, 'now() + interval ''30 s'''), (11, '''-infinity'''), (12, 'NULL'), (13, '''2020-01-01'''), (1, '''2200-01-01''')) v(id, value);
SELECT try($$MERGE INTO tv USING (SELECT 1 AS id) s ON tv.id = s.id WHEN MATCHED THEN UPDATE SET updated_time = '2200-01-01'$$);
SELECT updated_time <= now() + interval '1 min' AS sane, a FROM tv WHERE id = 1;
CREATE TABLE local (id int PRIMARY KEY, a int, updated_time timestamp(0));
INSERT INTO local VALUES (1);
SELECT interlock.enable_versioning('local', 'updated_time');
SET timezone = 'Pacific/Kiritimati';
UPDATE local SET updated_time = now() + interval '10 s' RETURNING updated_time <= now() + interval '11 s' AS given;
SELECT try($$UPDATE local SET updated_time = now() + interval '1 hour'$$), try($$INSERT INTO local VALUES (2, 1, now() + interval '1 hour')$$);
SET timezone = 'Pacific/Pago_Pago';
UPDATE local SET a = 1 RETURNING updated_time > now() AT TIME ZONE 'Asia/Tokyo' AS goes_on;
SELECT try($$UPDATE local SET updated_time = now() AT TIME ZONE 'UTC'$$), try($$INSERT INTO local VALUES (2, 1, now() AT TIME ZONE 'Pacific/Kiritimati')$$),
    try($$UPDATE local SET updated_time = now() + interval '3 days'$$);
RESET timezone;
DROP TABLE local;

-- one that is there all the same: from before, or past the trigger
SELECT interlock.disable_versioning('tv');
DELETE FROM tv WHERE id > 3;
UPDATE tv SET updated_time = '294276-12-31 23:59:59.999999+00' WHERE id = 1;
UPDATE tv SET updated_time = 'infinity' WHERE id = 2;
UPDATE tv SET updated_time = '2100-01-01 00:00:00+00' WHERE id = 3;
SELECT interlock.enable_versioning('tv', 'updated_time', '{seen}');
-- an ignored column, a plain update and a function; the version is the clock again, and moves on
UPDATE tv SET seen = 1;
SELECT id, updated_time > now() + interval '1 day' AS ahead FROM tv ORDER BY id;
SELECT interlock.versioned_update('tv', id, updated_time, '{"a": 1}') < now() + interval '1 day' AS is_now FROM tv WHERE id <> 2 ORDER BY id;
UPDATE tv SET a = 2 WHERE id = 2 RETURNING updated_time BETWEEN now() AND now() + interval '1 day' AS is_now;
SELECT outcome FROM interlock.try_versioned_update('tv', 1, '294276-12-31 23:59:59.999999+00'::timestamptz, '{}');
BEGIN;
SELECT updated_time AS before FROM tv WHERE id = 1 \gset
UPDATE tv SET a = 3 WHERE id = 1 RETURNING updated_time > :'before' AS later;
COMMIT;
-- the owner sets it himself
ALTER TABLE tv DISABLE TRIGGER ALL;
UPDATE tv SET updated_time = 'infinity' WHERE id = 1;
UPDATE tv SET updated_time = '2100-01-01' WHERE id = 2;
ALTER TABLE tv ENABLE TRIGGER ALL;
UPDATE tv SET updated_time = now();
SELECT id, updated_time <= now() AS is_now FROM tv ORDER BY id;
-- a clock that was set back by some hours does not set versions back
ALTER TABLE tv DISABLE TRIGGER ALL;
UPDATE tv SET updated_time = now() + interval '12 hours' WHERE id = 1 RETURNING updated_time AS before \gset
ALTER TABLE tv ENABLE TRIGGER ALL;
UPDATE tv SET a = 4 WHERE id = 1 RETURNING updated_time - :'before' AS step;
UPDATE tv SET updated_time = now() WHERE id = 1 RETURNING updated_time - :'before' AS steps;
DROP TABLE tv;

-- a row that moves is checked as a new one, and its version as that of an old one
CREATE TABLE pv (id int, a int, seen int, updated_time timestamptz) PARTITION BY RANGE (id);
CREATE TABLE pv1 PARTITION OF pv FOR VALUES FROM (0) TO (10);
CREATE TABLE pv2 PARTITION OF pv DEFAULT;
INSERT INTO pv VALUES (1, 1, 1, '2100-01-01'), (2, 1, 1, now() + interval '12 hours'), (3, 1, 1, 'infinity'), (4, 1, 1, '2020-01-01'), (5, 1, 1, '2100-01-01');
SELECT interlock.enable_versioning('pv', 'updated_time', '{id, seen}');
UPDATE pv SET id = id + 10, a = 2 WHERE id < 5;
UPDATE pv SET id = id + 10 WHERE id = 5;
SELECT tableoid::regclass, id, updated_time <= now() + interval '1 min' AS sane, updated_time > '2025-01-01' AS moved FROM pv ORDER BY id;
SELECT try($$UPDATE pv SET id = id - 10, updated_time = '2100-01-01' WHERE id = 11$$), try($$UPDATE pv SET id = id - 10 WHERE id = 11$$);
-- the last word on a new row
CREATE TRIGGER zzzz BEFORE INSERT ON pv1 FOR EACH ROW EXECUTE FUNCTION suppress_redundant_updates_trigger();
SELECT try('INSERT INTO pv (id) VALUES (7)'), try('INSERT INTO pv (id) VALUES (17)');
SELECT interlock.disable_versioning('pv');
CREATE TRIGGER zzzz BEFORE INSERT ON pv2 FOR EACH ROW EXECUTE FUNCTION suppress_redundant_updates_trigger();
DROP TRIGGER zzzz ON pv1;
SELECT try($$SELECT interlock.enable_versioning('pv2', 'updated_time')$$);
DROP TABLE pv;
DROP FUNCTION try;
