-- MRK-1: a column that means something else is no marker's status, and no function writes over what it says
SET client_min_messages = warning;
\getenv abs_srcdir PG_ABS_SRCDIR
\set helper :abs_srcdir '/helpers/try.sql'
\i :helper
-- what enable_marker says of a table doc whose status is declared so
CREATE FUNCTION adopt(declared text, setup text = '', columns text = '') RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    answer text;
BEGIN
    EXECUTE format('CREATE TABLE doc (id int PRIMARY KEY, body text, who text, since timestamptz, status %s)', declared);
    EXECUTE setup;
    answer := try(format($f$SELECT interlock.enable_marker('doc', status_column => 'status'%s)$f$, columns));
    DROP TABLE doc;
    RETURN answer;
END $$;

-- rows say it
CREATE TABLE doc (id int PRIMARY KEY, body text, status int DEFAULT 2);
INSERT INTO doc VALUES (1, '', 2), (2, '', 2), (3, '', 1), (4, '', 0), (5, '', NULL), (6, '', -1);
SELECT interlock.enable_marker('doc', status_column => 'status');
SELECT id, status FROM doc ORDER BY id;
DELETE FROM doc WHERE status NOT IN (0, 1);
SELECT interlock.enable_marker('doc', status_column => 'status');
DELETE FROM doc WHERE status = 1;
SELECT interlock.enable_marker('doc', status_column => 'status');
SELECT (interlock.lock_row('doc', 5, 'anna')).locked, (interlock.lock_row('doc', 4, 'anna')).locked;
SELECT interlock.enable_marker('doc', '1 hour', status_column => 'status');
DROP TABLE doc;
SELECT declared, adopt(declared, 'INSERT INTO doc VALUES (1, '''', NULL, NULL, 3), (2, ''x'', ''anna'', now(), 1)')
FROM unnest('{smallint,int,bigint}'::text[]) declared;
-- a 1 that nobody holds since no time; with either it was a marker
SELECT columns, adopt('int', format('INSERT INTO doc VALUES (1, '''', %s, %s, 1), (2, '''', NULL, NULL, 0)', who, since), columns)
FROM (VALUES ('NULL', 'now()'), ('''anna''', 'now()'), ('NULL', 'NULL'), ('''''', 'NULL'), ('''anna''', 'NULL'), ('NULL', 'now()')) v(who, since),
    (VALUES (', holder_column => ''who'', time_column => ''since'''), (', holder_column => ''who'''), (', time_column => ''since'''), ('')) c(columns)
ORDER BY columns, who, since;
-- of a partitioned table all rows count, of one that others inherit from its own
CREATE TABLE parted (id int, status int) PARTITION BY RANGE (id);
CREATE TABLE parted_1 PARTITION OF parted DEFAULT;
INSERT INTO parted VALUES (1, 7), (2, 7);
SELECT try($$SELECT interlock.enable_marker('parted', status_column => 'status')$$);
CREATE TABLE parent (id int, status int);
CREATE TABLE child () INHERITS (parent);
INSERT INTO child VALUES (1, 7);
SELECT try($$SELECT interlock.enable_marker('parent', status_column => 'status')$$);
DROP TABLE parted, parent, child;

-- the definition says it: transitions, in either order
CREATE TABLE doc (id int PRIMARY KEY, status int);
SELECT interlock.define_transitions('doc', 'status', '{"0": [1], "1": [2]}');
SELECT try($$SELECT interlock.enable_marker('doc', status_column => 'status')$$);
SELECT interlock.drop_transitions('doc', 'status'), interlock.enable_marker('doc', status_column => 'status');
SELECT try($$SELECT interlock.define_transitions('doc', 'status', '{"0": [1], "1": [2]}')$$);
DROP TABLE doc;
-- a CHECK, whatever its form; one that has room for more is none
SELECT type, rule, adopt(format('%s CHECK (%s)', type, rule))
FROM unnest('{smallint,int,bigint}'::text[]) type,
    unnest(ARRAY['status IN (0, 1)', 'status = ANY (ARRAY[0, 1])', 'status BETWEEN 0 AND 1', 'status >= 0', 'status < 2 AND status > -1',
        'status = 0 OR status = 1', 'status IN (0, 1, 2)', 'status = ANY (''{0, 1, 3}'')', 'status BETWEEN 0 AND 5', 'status <> 9', 'status = 0 OR status = 1 OR status = 2', 'status IN (10, 20)',
        'status IS NOT NULL', 'status IN (0, 1) OR body IS NULL']) rule
WHERE type = 'int' OR rule ~ 'IN \(0, 1|BETWEEN 0 AND 5';
SELECT adopt('int CHECK (status >= 0)', 'ALTER TABLE doc ADD CHECK (status <= 1)'), adopt('int CHECK (status >= 0)', 'ALTER TABLE doc ADD CHECK (status <= 2)'),
    adopt('smallint CHECK (status <= 32767)'), adopt('bigint CHECK (status < 9223372036854775807)'), adopt('smallint CHECK (status < 99999)');

-- a write of another value, whoever writes, also where markers only advise
CREATE TABLE doc (id int PRIMARY KEY, body text, status smallint);
SELECT interlock.enable_marker('doc', '1 hour', status_column => 'status');
INSERT INTO doc VALUES (1, 'x', 0), (2, 'x', NULL);
UPDATE doc SET status = 2 WHERE id = 1;
SELECT try(command) FROM unnest(ARRAY['INSERT INTO doc VALUES (3, '''', 2)', 'UPDATE doc SET status = -1', 'UPDATE doc SET status = NULL WHERE id = 1',
    'INSERT INTO doc VALUES (1, '''', 0) ON CONFLICT (id) DO UPDATE SET status = 5', 'MERGE INTO doc USING (SELECT 1 AS id) s ON s.id = doc.id WHEN MATCHED THEN UPDATE SET status = 7',
    $$SELECT interlock.lock_row('doc', 1, 'anna')$$, $$SELECT interlock.save_row('doc', 1, 'anna', '{"status": 2}')$$]) command;
SELECT interlock.enable_marker('doc', '1 hour', false, status_column => 'status');
SELECT try('UPDATE doc SET status = 2 WHERE id = 1');
-- a row that has another value nevertheless: no function and no sweep changes it, directly or by a statement; plain SQL can set it
SET session_replication_role = replica;
INSERT INTO doc VALUES (5, 'x', 2, 'hand', now(), now() - interval '1 min');
RESET session_replication_role;
SELECT try($$SELECT interlock.lock_row('doc', 5, 'anna')$$), try($$SELECT interlock.touch_row('doc', 5, 'hand')$$), try($$SELECT interlock.unlock_row('doc', 5, 'hand')$$),
    try($$SELECT interlock.force_unlock_row('doc', 5, 'why')$$), try($$SELECT interlock.save_row('doc', 5, 'hand', '{"body": "y"}')$$);
SET interlock.direct_execution = off;
SELECT try($$SELECT interlock.lock_row('doc', 5, 'anna')$$), try($$SELECT interlock.unlock_row('doc', 5, 'hand')$$);
RESET interlock.direct_execution;
SELECT interlock.sweep() IS NOT NULL AS swept;
SELECT try($$UPDATE doc SET body = 'y' WHERE id = 5$$);
SELECT id, body, status, lock_by FROM doc WHERE id = 5;
SELECT try($$UPDATE doc SET status = 0 WHERE id = 5$$), try($$SELECT interlock.lock_row('doc', 5, 'anna')$$);
SELECT id, body, status, lock_by FROM doc WHERE id = 5;
DROP TABLE doc;
DROP FUNCTION try, adopt;
