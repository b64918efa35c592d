-- State markers on tables that had such columns before, or that are unlike others
\set SHOW_CONTEXT never
\set VERBOSITY terse

-- holder and reason are text, byte for byte: other string types pad, cut or fold names
CREATE DOMAIN marker_person AS text;
CREATE TABLE typed (id int PRIMARY KEY, as_name name, padded char(10), one char, listed marker_person, short varchar(3), free text);
SELECT interlock.enable_marker('typed', holder_column => 'as_name');
SELECT interlock.enable_marker('typed', holder_column => 'padded');
SELECT interlock.enable_marker('typed', holder_column => 'one');
SELECT interlock.enable_marker('typed', reason_column => 'as_name');
SELECT interlock.enable_marker('typed', reason_column => 'padded');
SELECT interlock.enable_marker('typed', holder_column => 'short', reason_column => 'free');
INSERT INTO typed (id) VALUES (1);
SELECT locked, holder FROM interlock.lock_row('typed', 1, 'ann', reason => 'why');
-- an altered column is noticed before it is read
ALTER TABLE typed ALTER free TYPE name;
UPDATE typed SET padded = 'x';
SELECT * FROM interlock.row_lock_of('typed', 1);
ALTER TABLE typed ALTER free TYPE text;
SELECT interlock.unlock_row('typed', 1, 'ann');

-- what the trigger fills in fits the column as it would by hand
\set VERBOSITY default
BEGIN; SELECT interlock.set_holder('averylongname'); UPDATE typed SET lock_status = 1; ROLLBACK;
BEGIN; SELECT interlock.set_holder('averylongname'); UPDATE typed SET lock_status = 1, short = 'averylongname'; ROLLBACK;
\set VERBOSITY terse
SELECT interlock.lock_row('typed', 1, 'averylongname');
ALTER TABLE typed ALTER lock_time TYPE timestamp(0), ALTER lock_until TYPE timestamptz(0);
SELECT locked, locked_at = date_trunc('second', locked_at) AS since, expires_at = date_trunc('second', expires_at) AS until
FROM interlock.lock_row('typed', 1, 'ann');
SELECT interlock.unlock_row('typed', 1, 'ann');
BEGIN;
SELECT interlock.set_holder('ann');
UPDATE typed SET lock_status = 1
RETURNING short, lock_time = date_trunc('second', lock_time) AS since, lock_until = date_trunc('second', lock_until) AS until;
ROLLBACK;

-- and no domain, whose constraints it would write past
CREATE DOMAIN marker_flag AS smallint DEFAULT 0;
CREATE DOMAIN marker_moment AS timestamptz CHECK (VALUE IS NOT NULL);
CREATE TABLE ruled (id int PRIMARY KEY, lock_by marker_person, state marker_flag, moment marker_moment DEFAULT 'now');
\set VERBOSITY default
SELECT interlock.enable_marker('ruled');
\set VERBOSITY terse
SELECT interlock.enable_marker('ruled', holder_column => 'who', status_column => 'state');
SELECT interlock.enable_marker('ruled', holder_column => 'who', time_column => 'moment');
SELECT interlock.enable_marker('ruled', holder_column => 'who', until_column => 'moment');
SELECT interlock.enable_marker('ruled', holder_column => 'who', reason_column => 'lock_by');
DROP TABLE typed, ruled;
DROP DOMAIN marker_person, marker_flag, marker_moment;

-- other triggers: what one writes during a function is checked as any write, and a deadline it gives counts
CREATE TABLE twin (id int PRIMARY KEY, body text);
SELECT interlock.enable_marker('twin', '1 hour');
INSERT INTO twin VALUES (1, 'a'), (2, 'b');
CREATE FUNCTION marker_twin() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    UPDATE twin SET body = 'follows' WHERE id = 2; RETURN NEW; END $$;
CREATE FUNCTION marker_brief() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    NEW.lock_until := '2100-01-01'; RETURN NEW; END $$;
SELECT (interlock.lock_row('twin', 1, 'anna')).locked, (interlock.lock_row('twin', 2, 'anna', '1 millisecond')).locked, pg_sleep(0.01);
CREATE TRIGGER twin BEFORE UPDATE ON twin FOR EACH ROW WHEN (NEW.id = 1) EXECUTE FUNCTION marker_twin();
SELECT interlock.save_row('twin', 1, 'anna', '{"body": "leads"}');
SELECT id, body, lock_status FROM twin ORDER BY id;
DROP TRIGGER twin ON twin;
CREATE TRIGGER brief BEFORE UPDATE ON twin FOR EACH ROW WHEN (NEW.lock_status = 1) EXECUTE FUNCTION marker_brief();
SELECT locked, holder, expires_at = '2100-01-01' AS given FROM interlock.lock_row('twin', 1, 'anna');
DROP TABLE twin;
DROP FUNCTION marker_twin, marker_brief;

-- marked rows without a holder, from before: nobody's, and an administrator can force them
CREATE TABLE orphan (id int PRIMARY KEY, body text, lock_status int, lock_by text, lock_time timestamptz DEFAULT now());
CREATE TABLE unnamed (id int PRIMARY KEY, body text, lock_status int, lock_by varchar NOT NULL DEFAULT '', lock_time timestamptz DEFAULT now());
INSERT INTO orphan VALUES (1, 'a', 1), (2, 'b', 1);
INSERT INTO unnamed VALUES (1, 'a', 1);
SELECT interlock.enable_marker('orphan', '1 hour'), interlock.enable_marker('unnamed', '1 hour');
SELECT locked, holder FROM interlock.lock_row('orphan', 1, 'anna');
SELECT locked, holder FROM interlock.row_lock_of('orphan', 1);
UPDATE orphan SET body = 'x' WHERE id = 1;
SELECT interlock.force_unlock_row('orphan', 1, 'nobody''s') IS NULL AS free_already;
SELECT interlock.force_unlock_row('unnamed', 1, 'nobody''s') IS NULL AS free_already;
SELECT interlock.force_unlock_row('unnamed', 1, 'nobody''s') IS NULL AS free_already;
SELECT table_name, key, holder FROM interlock.row_lock_audit WHERE reason = 'nobody''s' ORDER BY id;
SELECT id, body, lock_status, lock_by, lock_until IS NULL AS free FROM orphan ORDER BY id;
SELECT locked, holder FROM interlock.lock_row('orphan', 1, 'anna');
DROP TABLE orphan, unnamed;

-- the holder's own writes: a deadline moves only when the row is marked again, and never nearer
CREATE TABLE longer (id int PRIMARY KEY, body text);
SELECT interlock.enable_marker('longer', '1 min');
INSERT INTO longer VALUES (1, 'a');
SELECT (interlock.lock_row('longer', 1, 'anna', '1 hour')).locked;
BEGIN;
SELECT interlock.set_holder('anna');
UPDATE longer SET lock_reason = 'lunch' RETURNING lock_until > now() + '59 min'::interval AS kept;
UPDATE longer SET lock_time = clock_timestamp() RETURNING lock_until > now() + '59 min'::interval AS kept;
UPDATE longer SET lock_until = now() + '30 s'::interval RETURNING lock_until = now() + '30 s'::interval AS given;
UPDATE longer SET lock_reason = 'back' RETURNING lock_until = now() + '30 s'::interval AS kept;
UPDATE longer SET lock_time = clock_timestamp() RETURNING lock_until > now() + '59 s'::interval AS renewed;
UPDATE longer SET lock_until = NULL RETURNING lock_until > now() + '59 s'::interval AS renewed;
UPDATE longer SET lock_until = now() + '1 hour'::interval;
UPDATE longer SET lock_by = 'bert' RETURNING lock_until < now() + '2 min'::interval AS another_holder;
COMMIT;
DROP TABLE longer;

-- the index of the deadlines finds a free name, and goes with the markers
CREATE TABLE a_table_with_a_name_of_more_than_forty_three_bytes_one (id int PRIMARY KEY);
CREATE TABLE a_table_with_a_name_of_more_than_forty_three_bytes_two (id int PRIMARY KEY);
CREATE VIEW marker_indexes AS SELECT indexrelid::regclass AS index FROM pg_index
WHERE indrelid::regclass::text LIKE 'a_table%' AND NOT indisprimary ORDER BY indexrelid;
SELECT interlock.enable_marker('a_table_with_a_name_of_more_than_forty_three_bytes_one'),
    interlock.enable_marker('a_table_with_a_name_of_more_than_forty_three_bytes_two');
TABLE marker_indexes;
-- another deadline column gets another index
SELECT interlock.enable_marker('a_table_with_a_name_of_more_than_forty_three_bytes_two', '1 hour'),
    interlock.enable_marker('a_table_with_a_name_of_more_than_forty_three_bytes_one', until_column => 'deadline');
TABLE marker_indexes;
SELECT interlock.disable_marker('a_table_with_a_name_of_more_than_forty_three_bytes_two');
TABLE marker_indexes;
SELECT interlock.disable_marker('a_table_with_a_name_of_more_than_forty_three_bytes_one');
TABLE marker_indexes;
DROP VIEW marker_indexes;
DROP TABLE a_table_with_a_name_of_more_than_forty_three_bytes_one, a_table_with_a_name_of_more_than_forty_three_bytes_two;

-- a statement for one marked row does not read the index over all of them
CREATE TABLE many (id int PRIMARY KEY, body text);
INSERT INTO many SELECT g FROM generate_series(1, 1000) g;
SELECT interlock.enable_marker('many');
ANALYZE many;
BEGIN ISOLATION LEVEL REPEATABLE READ;
CREATE VIEW scans AS SELECT pg_stat_get_xact_numscans(indexrelid) AS scans FROM pg_index WHERE indrelid = 'many'::regclass AND NOT indisprimary;
SELECT scans AS before FROM scans \gset
SELECT locked FROM interlock.lock_row('many', 1, 'anna');
SELECT interlock.touch_row('many', 1, 'anna') IS NOT NULL AS touched, interlock.save_row('many', 1, 'anna', '{"body": "b"}');
SELECT locked, interlock.unlock_row('many', 1, 'anna') FROM interlock.lock_row('many', 1, 'anna');
SELECT scans - :before AS scans FROM scans;
ROLLBACK;
DROP TABLE many;

-- MRK-3: which columns were adopted and which were added
CREATE TABLE biz_order (id int PRIMARY KEY, amount int, status int, lock_by text, lock_time timestamptz);
INSERT INTO biz_order VALUES (123, 10, 1, 'anna', now()), (124, 10, 0, NULL, NULL);
\set VERBOSITY default
-- a hand-made lock whose status has another name is not left out without notice
SELECT interlock.enable_marker('biz_order');
SELECT interlock.enable_marker('biz_order', status_column => 'lock_status');
SELECT column_name FROM information_schema.columns WHERE table_name = 'biz_order' ORDER BY ordinal_position;
SELECT interlock.enable_marker('biz_order', status_column => 'status', reason_column => 'why "so"');
SELECT locked, holder FROM interlock.lock_row('biz_order', 123, 'bert');
SELECT interlock.enable_marker('biz_order', '1 hour', status_column => 'status', reason_column => 'why "so"');
DROP TABLE biz_order;
-- nor one that nobody holds, while its status could be one of markers
CREATE TABLE biz_order (id int PRIMARY KEY, status bigint, lock_by varchar(20));
INSERT INTO biz_order VALUES (1, 0, NULL), (2, 1, ''), (3, NULL, NULL);
SELECT interlock.enable_marker('biz_order');
BEGIN;
SELECT interlock.enable_marker('biz_order', status_column => 'lock_status');
ROLLBACK;
BEGIN;
UPDATE biz_order SET status = 2 WHERE id = 3;
SELECT interlock.enable_marker('biz_order');
ROLLBACK;
-- holders alone: of a status with a name that cannot be known, or of a domain
ALTER TABLE biz_order DROP status;
CREATE DOMAIN flag AS int;
ALTER TABLE biz_order ADD status flag, ADD being_edited int DEFAULT 0;
BEGIN;
SELECT interlock.enable_marker('biz_order');
ROLLBACK;
UPDATE biz_order SET lock_by = 'anna' WHERE id < 3;
SELECT interlock.enable_marker('biz_order');
SELECT interlock.enable_marker('biz_order', holder_column => 'held_by');
SELECT lock_by, held_by, lock_status FROM biz_order ORDER BY id;
\set VERBOSITY terse
DROP TABLE biz_order;
DROP DOMAIN flag;
-- SEC-7: a time without zone at an end of its range, which is beyond that of times with a zone in some zones
CREATE TABLE ends (id int PRIMARY KEY, body text, lock_time timestamp);
SELECT interlock.enable_marker('ends', status_column => 'lock_status');
SET timezone = 'UTC';
INSERT INTO ends (id, lock_time) VALUES (1, '294276-12-31 23:59:59'), (2, '4714-11-24 00:00:00 BC'), (3, 'infinity'), (4, '-infinity');
SET timezone = 'America/Los_Angeles';
UPDATE ends SET body = 'b';
SELECT id, locked FROM ends, interlock.lock_row('ends', id, 'anna');
UPDATE ends SET lock_time = '294276-12-31 23:59:59' WHERE id = 1;
SET timezone = 'Pacific/Kiritimati';
UPDATE ends SET body = 'c';
SELECT id, (interlock.row_lock_of('ends', id)).holder FROM ends ORDER BY 1;
SELECT interlock.unlock_row('ends', id, 'anna') FROM ends;
DELETE FROM ends;
RESET timezone;
DROP TABLE ends;
