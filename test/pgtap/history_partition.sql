-- HIS-66: what callers of a partitioned history rely on: retention drops partitions, and no write fails because one is missing.
BEGIN;
SELECT plan(71);
SET LOCAL client_min_messages = error;
SET LOCAL timezone = 'America/Los_Angeles';

CREATE ROLE iso_owner;
CREATE ROLE iso_other;
GRANT SET ON PARAMETER interlock.direct_execution TO iso_owner, iso_other;
CREATE SCHEMA shop AUTHORIZATION iso_owner;
ALTER DEFAULT PRIVILEGES FOR ROLE iso_owner GRANT ALL ON TABLES TO PUBLIC;
SET ROLE iso_owner;
CREATE TABLE shop.page (id int PRIMARY KEY, body text);
SELECT interlock.enable_versioning('shop.page');
SELECT interlock.enable_history('shop.page', keep_for => '90 days', partition_by => '30 days', notify => 'on');
SET search_path = shop, public;

-- partitions of a history: name, and its bounds in periods from the current one
CREATE VIEW part AS
    SELECT c.oid::regclass AS part, pg_get_expr(c.relpartbound, c.oid) AS bound, c.relowner::regrole::text AS owner, c.relacl,
           substring(pg_get_expr(c.relpartbound, c.oid) FROM $$FROM \('([^']*)$$)::timestamptz AS starts,
           substring(pg_get_expr(c.relpartbound, c.oid) FROM $$TO \('([^']*)$$)::timestamptz AS ends
      FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid WHERE i.inhparent = 'page_history'::regclass;

SELECT is((SELECT relkind FROM pg_class WHERE oid = 'page_history'::regclass), 'p', 'the history table is partitioned');
SELECT is((SELECT pg_get_partkeydef('page_history'::regclass)), 'RANGE (changed_at)', 'by time');
SELECT is((SELECT count(*) FROM part), 4::bigint, 'three periods, and the default partition');
SELECT is((SELECT bound FROM part WHERE part = 'page_history_default'::regclass), 'DEFAULT');
SELECT is((SELECT count(*) FROM part WHERE owner = 'iso_owner'), 4::bigint, 'they belong to the owner');
SELECT is((SELECT count(*) FROM part WHERE has_table_privilege('iso_other', part, 'SELECT')), 0::bigint, 'and default privileges do not apply');
SELECT ok((SELECT min(starts) <= clock_timestamp() AND min(ends) > clock_timestamp() FROM part), 'the first one includes the current time');
SELECT ok((SELECT max(ends) - min(ends) = '60 days' FROM part), 'two more periods are there');
SELECT ok((SELECT bool_and(extract(epoch FROM ends - '2000-01-01 00:00+00') % (30 * 86400) = 0) FROM part), 'periods are counted from 2000-01-01 UTC');
SELECT is((SELECT count(*) FROM part p JOIN part q ON q.starts = p.ends), 2::bigint, 'and follow each other');
SELECT is((SELECT count(*) FROM pg_index WHERE indrelid = (SELECT part FROM part ORDER BY starts LIMIT 1)), 3::bigint, 'with the indexes of the history');

-- entries
INSERT INTO page VALUES (1, 'a');
UPDATE page SET body = 'b';
SELECT is((SELECT count(*) FROM page_history h WHERE h.tableoid = (SELECT part FROM part ORDER BY starts LIMIT 1)), 2::bigint, 'entries are in the current partition');
SET interlock.direct_execution = off;
UPDATE page SET body = 'c';
RESET interlock.direct_execution;
UPDATE page SET body = 'd';
SELECT results_eq('SELECT id, version, operation FROM interlock.row_history(''page'', 1)',
    $$VALUES (1::bigint, 1::bigint, 'insert'), (2, 2, 'update'), (3, 3, 'update'), (4, 4, 'update')$$, 'with and without a statement');
SELECT is((SELECT count(DISTINCT tableoid) FROM page_history), 1::bigint, 'all in one partition');
SELECT is(interlock.row_as_of('page', 1, clock_timestamp())->>'body', 'd', 'row_as_of');
SELECT results_eq('SELECT body FROM interlock.rows_as_of(NULL::page, clock_timestamp())', ARRAY['d'], 'rows_as_of');
SELECT is((SELECT count(*) FROM interlock.history_since('page')), 0::bigint, 'history_since: nothing is committed');
SELECT is(interlock.revert_row('page', 1, to_version => 2), 5::bigint, 'revert_row');
SELECT is((SELECT body FROM page), 'b');
-- the writer needs no privilege on the partitions
GRANT USAGE ON SCHEMA shop TO iso_other;
GRANT SELECT, UPDATE ON page TO iso_other;
SET ROLE iso_other;
SELECT lives_ok($$UPDATE shop.page SET body = 'other'$$, 'a writer without privileges on the history');
SET interlock.direct_execution = off;
SELECT lives_ok($$UPDATE shop.page SET body = 'other, too'$$, 'also with a statement');
RESET interlock.direct_execution;
SET ROLE iso_owner;

-- retention drops what is past it as a whole
SELECT min(starts) AS first FROM part \gset
CREATE TABLE old PARTITION OF page_history FOR VALUES FROM ('2001-01-01') TO ('2001-02-01');
CREATE TABLE oldest PARTITION OF page_history FOR VALUES FROM (MINVALUE) TO ('2000-01-01');
CREATE TABLE partly PARTITION OF page_history FOR VALUES FROM ('2002-01-01') TO (:'first');
CREATE FUNCTION forge(at timestamptz) RETURNS void LANGUAGE sql AS
    $$INSERT INTO page_history (key, changed_at, changed_by, operation, row_data, transaction, command) VALUES ('{"id": 1}', at, 'x', 'insert', '{"id": 1}', 3, 0)$$;
SELECT forge('2001-01-15'), forge('1999-01-01'), forge('2003-01-01'), forge('2000-06-01');
SELECT results_eq($$SELECT tableoid::regclass::text FROM page_history WHERE changed_at < '2020-01-01' ORDER BY changed_at$$,
    ARRAY['oldest', 'page_history_default', 'old', 'partly'], 'an entry without another partition is in the default partition');
SELECT results_eq('SELECT * FROM interlock.trim_history(''page'')', $$VALUES ('page'::regclass, 1::bigint, 2)$$,
    'two partitions are dropped, and the default partition is trimmed');
SELECT ok(to_regclass('old') IS NULL AND to_regclass('oldest') IS NULL AND to_regclass('partly') IS NOT NULL, 'those whose whole range is past retention');
SELECT results_eq($$SELECT tableoid::regclass::text FROM page_history WHERE changed_at < '2020-01-01' ORDER BY changed_at$$, ARRAY['partly'],
    'an entry waits for its partition');
SELECT results_eq('SELECT * FROM interlock.trim_history(''page'')', $$VALUES ('page'::regclass, 0::bigint, 0)$$, 'then nothing is left to do');
SELECT is(interlock.row_as_of('page', 1, '2001-01-20'), NULL, 'row_as_of: the history does not reach back');
SELECT throws_ok($$SELECT * FROM interlock.rows_as_of(NULL::page, '2001-01-20')$$, 'P0002');

-- another keep_for, keep_versions, and neither
CREATE TABLE old PARTITION OF page_history FOR VALUES FROM ('2001-01-01') TO ('2001-02-01');
DELETE FROM page_history WHERE changed_at > '2020-01-01'; -- what follows is older, but has higher ids
SELECT forge('2001-01-15');
UPDATE page SET body = 'newest';
SELECT interlock.enable_history('page', keep_versions => 1, keep_for => '90 days');
SELECT results_eq('SELECT * FROM interlock.trim_history(''page'')', $$VALUES ('page'::regclass, 2::bigint, 0)$$, 'with keep_versions, entries are trimmed in all partitions');
SELECT ok(to_regclass('old') IS NOT NULL, 'and partitions stay');
SELECT forge('2001-01-15');
SELECT interlock.enable_history('page');
SELECT is_empty('SELECT * FROM interlock.trim_history()', 'without retention, nothing is trimmed');
SELECT interlock.enable_history('page', keep_for => '3650 days');
SELECT is((SELECT dropped_partitions FROM interlock.trim_history('page')), 1, 'keep_for alone drops it, also without partition_by');
SELECT interlock.enable_history('page', keep_for => '90 days', partition_by => '7 days');
SELECT ok((SELECT count(*) BETWEEN 0 AND 3 FROM part WHERE ends - starts = '7 days'), 'another partition_by: only times without a partition get one');
SELECT results_eq($$SELECT settings->>'partition_by' FROM interlock.guards WHERE rel = 'page'::regclass AND mechanism = 'history'$$, ARRAY['7 days'], 'the view guards');

-- partitions that are missing
ALTER TABLE page_history DETACH PARTITION partly;
DROP TABLE page_history_default;
SELECT results_eq($$SELECT finding ~ 'no default partition' FROM interlock.advise('page') WHERE finding ~ 'partition'$$, ARRAY[true], 'advise reports a missing default partition');
SELECT lives_ok($$SELECT * FROM interlock.trim_history('page')$$);
SELECT ok(to_regclass('page_history_default') IS NOT NULL, 'it is created again');
DO $$
DECLARE
    each regclass;
BEGIN
    FOR each IN SELECT part FROM part WHERE bound <> 'DEFAULT' LOOP
        EXECUTE format('DROP TABLE %s', each);
    END LOOP;
END $$;
UPDATE page SET body = 'e';
SELECT results_eq($$SELECT tableoid::regclass::text FROM page_history ORDER BY id DESC LIMIT 1$$, ARRAY['page_history_default'], 'a write without a partition');
SELECT lives_ok($$SELECT * FROM interlock.trim_history('page')$$);
SELECT is((SELECT count(*) FROM part WHERE starts IS NOT NULL), 3::bigint, 'partitions are created next to entries of the same period in the default partition');
UPDATE page SET body = 'f';
SELECT isnt((SELECT tableoid::regclass::text FROM page_history ORDER BY id DESC LIMIT 1), 'page_history_default', 'and are used');
-- a clock that was ahead
SELECT max(ends) AS last FROM part \gset
SELECT forge(:'last'::timestamptz + interval '30 days');
SELECT lives_ok($$SELECT * FROM interlock.trim_history('page')$$, 'an entry of the future');
-- nothing at all
DROP TABLE page_history_default;
SELECT format('DROP TABLE %s', string_agg(part::text, ', ')) AS drop_all FROM part \gset
:drop_all;
SELECT throws_ok($$UPDATE page SET body = 'g'$$, '23514', 'no partition of relation "page_history" found for row', 'without any partition, a write is refused');
SELECT lives_ok($$SELECT * FROM interlock.trim_history('page')$$);
SELECT lives_ok($$UPDATE page SET body = 'g'$$, 'until the partitions are created again');

-- partitions that cannot be dropped do not stop the others
CREATE TABLE used PARTITION OF page_history FOR VALUES FROM ('2001-01-01') TO ('2001-02-01');
CREATE VIEW user_of_used AS SELECT * FROM used;
CREATE TABLE old PARTITION OF page_history FOR VALUES FROM ('2001-02-01') TO ('2001-03-01');
SELECT is((SELECT dropped_partitions FROM interlock.trim_history('page')), 1, 'a partition with a view stays, the next one is dropped');
DROP VIEW user_of_used;
SELECT is((SELECT dropped_partitions FROM interlock.trim_history('page')), 1, 'and is dropped later');

-- names
ALTER TABLE page_history RENAME TO "Page's history";
ALTER TABLE page RENAME TO "Page";
RESET ROLE;
ALTER SCHEMA shop RENAME TO "Shop";
SET search_path = "Shop", public;
DROP VIEW part;
DO $$
DECLARE
    each regclass;
BEGIN
    FOR each IN SELECT inhrelid FROM pg_inherits WHERE inhparent = '"Page''s history"'::regclass LOOP
        EXECUTE format('DROP TABLE %s', each);
    END LOOP;
END $$;
SELECT lives_ok($$SELECT * FROM interlock.trim_history('"Page"')$$);
SELECT is((SELECT count(*) FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
            WHERE i.inhparent = '"Page''s history"'::regclass AND c.relname LIKE 'Page''s history\_%' AND c.relowner = 'iso_owner'::regrole), 4::bigint,
    'after renames, also by a superuser: partitions of the owner');
SELECT lives_ok($$UPDATE "Page" SET body = 'h'$$);

-- code of other roles does not run with the owner's rights
CREATE FUNCTION pg_temp.harm() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END';
ALTER FUNCTION pg_temp.harm() OWNER TO iso_other;
SELECT inhrelid::regclass AS current FROM pg_inherits WHERE inhparent = '"Page''s history"'::regclass ORDER BY inhrelid::regclass::text = '"Page''s history_default"', 1 LIMIT 1 \gset
CREATE TRIGGER harm BEFORE INSERT OR DELETE ON :current FOR EACH ROW EXECUTE FUNCTION pg_temp.harm();
SELECT throws_ok($$UPDATE "Page" SET body = 'i'$$, '42501', NULL, 'a trigger of another role on the partition');
DROP TRIGGER harm ON :current;
ALTER TABLE :current ADD CHECK (id > 0);
ALTER TABLE :current OWNER TO iso_other;
SELECT throws_ok($$UPDATE "Page" SET body = 'i'$$, '55000', NULL, 'a partition of another role, with a check');
SELECT results_eq($$SELECT severity, advice FROM interlock.advise('"Page"') WHERE finding ~ 'belongs to another role'$$,
    format($$VALUES ('risk', %L)$$, format('ALTER TABLE %s OWNER TO iso_owner', :'current')), 'advise reports it');
ALTER TABLE :current OWNER TO iso_owner;
SELECT lives_ok($$UPDATE "Page" SET body = 'i'$$, 'a partition with a check of the owner');

-- history again, and bad input
SELECT interlock.disable_history('"Page"');
ALTER TABLE "Page's history" RENAME TO "Page_history";
SELECT lives_ok($$SELECT interlock.enable_history('"Page"', keep_for => '1 day', partition_by => '1 hour')$$, 'a partitioned history table is used again');
SELECT results_eq($$SELECT tgconstrrelid::regclass FROM pg_trigger WHERE tgrelid = '"Page"'::regclass AND tgconstrrelid <> 0$$, $$VALUES ('"Page_history"'::regclass)$$);
CREATE TABLE configured (id int PRIMARY KEY);
SELECT interlock.configure('configured', '{"history": {"keep_for": "90 days", "partition_by": "30 days"}}');
SELECT is((SELECT relkind FROM pg_class WHERE oid = 'configured_history'::regclass), 'p', 'configure');
SELECT is((SELECT count(*) FROM interlock.configure('configured', interlock.configuration('configured'))), 0::bigint, 'and what it reads is no change');

-- HIS-67: a short entry builds on none in another partition
CREATE TABLE wide (id int PRIMARY KEY, body text, note text);
SELECT interlock.enable_history('wide', keep_for => '90 days', partition_by => '30 days', whole_every => 16);
INSERT INTO wide VALUES (1, 'a', 'x');
UPDATE wide SET body = 'b';
SELECT results_eq('SELECT distance FROM wide_history ORDER BY id', ARRAY[0, 1], 'short in one partition');
DO $$BEGIN EXECUTE 'ALTER TABLE wide_history DETACH PARTITION ' || (SELECT tableoid::regclass FROM wide_history LIMIT 1); END$$;
UPDATE wide SET body = 'c';
SELECT results_eq($$SELECT row_data->>'note' FROM interlock.row_history('wide', 1)$$, ARRAY['x'], 'whole in the next one');

CREATE TABLE deep (id int PRIMARY KEY);
SELECT interlock.enable_history('deep', keep_for => '90 days', partition_by => '30 days');
DO $$DECLARE part regclass; BEGIN
    FOR part IN SELECT inhrelid FROM pg_inherits WHERE inhparent = 'deep_history'::regclass LOOP EXECUTE 'DROP TABLE ' || part; END LOOP;
END$$;
CREATE TABLE deep_part PARTITION OF deep_history DEFAULT PARTITION BY RANGE (changed_at);
CREATE TABLE deep_leaf PARTITION OF deep_part DEFAULT;
SELECT throws_ok('INSERT INTO deep VALUES (1)', '55000', NULL, 'a partition that has partitions itself');

CREATE TABLE plain (id int PRIMARY KEY);
SELECT throws_ok($$SELECT interlock.enable_history('plain', partition_by => '1 day')$$, '22023', NULL, 'without keep_for');
SELECT throws_ok($$SELECT interlock.enable_history('plain', 10, '90 days', partition_by => '1 day')$$, '22023', NULL, 'with keep_versions');
SELECT throws_ok($$SELECT interlock.enable_history('plain', keep_for => '90 days', partition_by => '1 hour')$$, '22023', NULL, 'too many partitions');
SELECT throws_ok($$SELECT interlock.enable_history('plain', keep_for => '1 second', partition_by => '0.1 seconds')$$, '22023', NULL, 'too short');
SELECT throws_ok(format($$SELECT interlock.enable_history('plain', keep_for => '90 days', partition_by => %L)$$, v), '22023', NULL, v)
  FROM unnest('{-1 day,0,NaN,20 years}'::text[]) v;
SELECT interlock.enable_history('plain', keep_for => '90 days');
SELECT throws_ok($$SELECT interlock.enable_history('plain', keep_for => '90 days', partition_by => '1 day')$$, '55000', NULL, 'the history table is an ordinary one');
CREATE TEMP TABLE passing (id int PRIMARY KEY);
SELECT throws_ok($$SELECT interlock.enable_history('passing', keep_for => '90 days', partition_by => '1 day')$$, '0A000', NULL, 'a temporary table');

SELECT * FROM finish();
ROLLBACK;
