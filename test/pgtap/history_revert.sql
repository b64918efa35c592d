-- HIS-21: revert_row makes a new version with the values of an old one, through every check of the table.
BEGIN;
SELECT plan(67);
SET LOCAL client_min_messages = error;
CREATE ROLE revert_editor;
CREATE ROLE revert_blind;

CREATE TABLE page (id int PRIMARY KEY, slug text UNIQUE NOT NULL, body text, tags text[], meta jsonb, price numeric(8,2), seen int DEFAULT 0,
    twice numeric GENERATED ALWAYS AS (price * 2) STORED, serial bigint GENERATED ALWAYS AS IDENTITY);
SELECT interlock.enable_versioning('page');
SELECT interlock.enable_marker('page');
SELECT interlock.enable_history('page', ignore_columns => '{seen}');
INSERT INTO page (id, slug, body, tags, meta, price) VALUES (1, 'one', 'first', '{a,"b c"}', '{"n": [1, null]}', 1.50);
CREATE TABLE clock AS SELECT clock_timestamp() AS at;
UPDATE page SET body = 'second', tags = NULL, meta = NULL, price = 2, seen = 5;
UPDATE page SET body = 'third';

-- by version
SELECT is(interlock.revert_row('page', 1, 1), 4::bigint, 'a new version');
SELECT results_eq('SELECT body, tags, meta, price, twice, version FROM page',
    $$VALUES ('first', '{a,"b c"}'::text[], '{"n": [1, null]}'::jsonb, 1.50, 3.00, 4::bigint)$$, 'with the old values');
SELECT is((SELECT seen FROM page), 5, 'an ignored column stays');
SELECT results_eq($$SELECT operation, changed, before->>'body' FROM page_history ORDER BY id DESC LIMIT 1$$,
    $$VALUES ('update', '{body,tags,meta,price,twice,version}'::text[], 'third')$$, 'and an entry of its own');
SELECT is(interlock.revert_row('page', 1, 1), 4::bigint, 'again: nothing is to be done');
SELECT is((SELECT count(*) FROM page_history), 4::bigint, 'nor recorded');
SELECT is(interlock.revert_row('page', 1, to_version => 3), 5::bigint, 'back again');
SELECT is((SELECT body FROM page), 'third', 'the third');
SELECT is(interlock.revert_row('page', '{"slug": "one"}'::jsonb, 2), 6::bigint, 'by another key');
SELECT is((SELECT body FROM page), 'second', 'the second');
SELECT is((SELECT interlock.revert_row('page', '1', 3)), 7::bigint, 'by a text');

-- by time
SELECT is(interlock.revert_row('page', 1, at => (SELECT at FROM clock)), 8::bigint, 'by time');
SELECT is((SELECT body FROM page), 'first', 'as row_as_of says');
SELECT throws_ok($$SELECT interlock.revert_row('page', 1, at => '2000-01-01')$$, 'P0002', NULL, 'before history was enabled');
SELECT results_eq($$SELECT outcome, version FROM interlock.try_revert_row('page', 1, at => '2000-01-01')$$, $$VALUES ('not_recorded', NULL::bigint)$$, 'as an outcome');
SELECT throws_ok($$SELECT interlock.revert_row('page', 1, at => '-infinity')$$, 'P0002');
SELECT is(interlock.revert_row('page', 1, at => 'infinity'), 8::bigint, 'as it is now');

-- expected
SELECT throws_ok($$SELECT interlock.revert_row('page', 1, 2, expected => 7)$$, 'IL001', 'version conflict in table "page": expected 7, found 8');
SELECT results_eq($$SELECT outcome, version, current->>'body' FROM interlock.try_revert_row('page', 1, 2, expected => 7)$$, $$VALUES ('conflict', 8::bigint, 'first')$$, 'conflict');
SELECT results_eq($$SELECT outcome, version, current FROM interlock.try_revert_row('page', 1, 2, expected => 8)$$, $$VALUES ('reverted', 9::bigint, NULL::jsonb)$$, 'reverted');
SELECT results_eq($$SELECT outcome, version FROM interlock.try_revert_row('page', 1, 2)$$, $$VALUES ('unchanged', 9::bigint)$$, 'unchanged');
SELECT results_eq($$SELECT outcome, version FROM interlock.try_revert_row('page', 1, 3, NULL, '9'::text)$$, $$VALUES ('reverted', '10'::text)$$, 'as text');
SELECT throws_ok($$SELECT interlock.revert_row('page', 1, 1, NULL, now())$$, '42804', NULL, 'a time for a counter');

-- arguments
SELECT throws_ok($$SELECT interlock.revert_row('page', 1)$$, '22023', 'give either argument "to_version" or argument "at"');
SELECT throws_ok($$SELECT interlock.revert_row('page', 1, 1, now())$$, '22023', 'give either argument "to_version" or argument "at"');
SELECT throws_ok($$SELECT interlock.revert_row(NULL, 1, 1)$$, '22004');
SELECT throws_ok($$SELECT interlock.revert_row('page', NULL::int, 1)$$, '22004');
SELECT throws_ok($$SELECT interlock.revert_row('clock', 1, 1)$$, '55000', 'table "clock" has no history');
SELECT throws_ok($$SELECT interlock.revert_row('page', 1, 99)$$, 'P0002', 'history of table "page" has no version 99 of the row');
SELECT results_eq($$SELECT outcome FROM interlock.try_revert_row('page', 1, 99)$$, $$VALUES ('not_recorded')$$, 'not_recorded');
SELECT throws_ok($$SELECT interlock.revert_row('page', 2, 1)$$, 'P0002', 'table "page" has no such row');
SELECT results_eq($$SELECT outcome FROM interlock.try_revert_row('page', 2, 1)$$, $$VALUES ('not_found')$$, 'not_found');

-- what was trimmed, and a row that is gone
DELETE FROM page_history WHERE version = 1;
SELECT throws_ok($$SELECT interlock.revert_row('page', 1, 1)$$, 'P0002', 'history of table "page" has no version 1 of the row', 'trimmed');
SAVEPOINT gone;
DELETE FROM page;
SELECT throws_ok($$SELECT interlock.revert_row('page', 1, 3)$$, 'P0002', 'table "page" has no such row', 'deleted');
INSERT INTO page (id, slug, body) SELECT id, slug, body
  FROM jsonb_populate_record(NULL::page, (SELECT row_data FROM interlock.row_history('page', 1) WHERE operation = 'delete'));
SELECT is((SELECT interlock.revert_row('page', 1, 2) > 10 AND body = 'third' FROM page), true, 'inserted again');
SELECT results_eq('SELECT body, price, twice FROM page', $$VALUES ('second', 2.00, 4.00)$$, 'and reverted');
ROLLBACK TO gone;

-- guards: transitions, markers, ownership, constraints
SAVEPOINT guards;
SELECT interlock.define_transitions('page', 'body', '{"third": ["fourth"], "fourth": []}');
SELECT throws_ok($$SELECT interlock.revert_row('page', 1, 2)$$, 'IL002', NULL, 'a transition that is not declared');
ROLLBACK TO guards;
SELECT interlock.lock_row('page', 1, 'anna');
SELECT throws_ok($$SELECT interlock.revert_row('page', 1, 2)$$, 'IL004', NULL, 'another holder''s row');
SELECT interlock.set_holder('anna');
SELECT is(interlock.revert_row('page', 1, 2), 11::bigint, 'one''s own');
SELECT results_eq('SELECT lock_by, body FROM page', $$VALUES ('anna', 'second')$$, 'which stays one''s own');
SELECT is((SELECT writer FROM page_history ORDER BY id DESC LIMIT 1), 'anna', 'and the entry has the name');
ROLLBACK TO guards;
SELECT interlock.own_columns('page', 'importer', '{price}');
SELECT throws_ok($$SELECT interlock.revert_row('page', 1, 1000000)$$, 'P0002');
UPDATE page SET body = 'fourth';
SELECT is(interlock.revert_row('page', 1, 3), 12::bigint, 'a column that keeps its value claims nothing');
SELECT interlock.set_writer('importer');
UPDATE page SET price = 7;
SELECT interlock.set_writer(NULL);
SELECT throws_ok($$SELECT interlock.revert_row('page', 1, 3)$$, 'IL007', NULL, 'one of another writer does');
ROLLBACK TO guards;
ALTER TABLE page ADD CHECK (body <> 'second');
SELECT throws_ok($$SELECT interlock.revert_row('page', 1, 2)$$, '23514', NULL, 'a check');
ROLLBACK TO guards;
CREATE FUNCTION nothing() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';
CREATE TRIGGER a_nothing BEFORE UPDATE ON page FOR EACH ROW EXECUTE FUNCTION nothing();
SELECT throws_ok($$SELECT interlock.revert_row('page', 1, 2)$$, '09000', NULL, 'a trigger that suppresses it');
ROLLBACK TO guards;

-- columns that are gone, were added, or have another type
ALTER TABLE page ADD COLUMN added text;
UPDATE page SET added = 'new';
SELECT is((SELECT interlock.revert_row('page', 1, 2) > 0), true, 'a column that was added');
SELECT results_eq('SELECT body, added FROM page', $$VALUES ('second', 'new')$$, 'stays');
ALTER TABLE page RENAME tags TO labels;
SELECT throws_ok($$SELECT interlock.revert_row('page', 1, 3)$$, '55000', 'row of table "page" cannot be reverted: column "tags" of that version is gone');
SELECT throws_ok($$SELECT * FROM interlock.try_revert_row('page', 1, 3)$$, '55000');
ROLLBACK TO guards;
ALTER TABLE page ALTER COLUMN body TYPE int USING 5;
SELECT throws_ok($$SELECT interlock.revert_row('page', 1, 2)$$, '22P02', 'invalid input syntax for type integer: "second"');
ROLLBACK TO guards;
ALTER TABLE page DROP COLUMN twice, ALTER COLUMN price TYPE text;
SELECT throws_ok($$SELECT interlock.revert_row('page', 1, 2)$$, '55000', NULL, 'a generated column that is gone');
ROLLBACK TO guards;

-- whose privileges
GRANT SELECT, UPDATE (body) ON page TO revert_editor;
GRANT SELECT ON page_history TO revert_editor;
GRANT SELECT, UPDATE ON page TO revert_blind;
SET LOCAL ROLE revert_blind;
SELECT throws_ok($$SELECT interlock.revert_row('page', 1, 2)$$, '42501', 'permission denied for table page_history');
RESET ROLE;
UPDATE page SET body = 'fourth';
SET LOCAL ROLE revert_editor;
SELECT is((SELECT interlock.revert_row('page', 1, 3) > 0), true, 'UPDATE on the columns that differ');
SELECT throws_ok($$UPDATE page SET price = 8$$, '42501');
RESET ROLE;
UPDATE page SET price = 8;
SET LOCAL ROLE revert_editor;
SELECT throws_ok($$SELECT interlock.revert_row('page', 1, 3)$$, '42501', NULL, 'and on no others');
RESET ROLE;
ALTER TABLE page_history ENABLE ROW LEVEL SECURITY;
SET LOCAL ROLE revert_editor;
SELECT throws_ok($$SELECT interlock.revert_row('page', 1, 3)$$, 'P0002', 'history of table "page" has no version 3 of the row', 'policies of the history');
RESET ROLE;

-- without versions the number is that of the entry; with times too
CREATE TABLE plain (id int PRIMARY KEY, body text);
SELECT interlock.enable_history('plain');
INSERT INTO plain VALUES (1, 'a');
UPDATE plain SET body = 'b';
SELECT is(interlock.revert_row('plain', 1, (SELECT min(id) FROM plain_history)), NULL, 'no version is returned');
SELECT is((SELECT body FROM plain), 'a', 'by the id of the entry');
SELECT throws_ok($$SELECT interlock.revert_row('plain', 1, 1, expected => 1)$$, '55000', NULL, 'no version to expect');
CREATE TABLE timed (id int PRIMARY KEY, body text, changed timestamptz);
SELECT interlock.enable_versioning('timed', 'changed');
SELECT interlock.enable_history('timed');
INSERT INTO timed VALUES (1, 'a');
UPDATE timed SET body = 'b';
SELECT is(interlock.revert_row('timed', 1, (SELECT min(id) FROM timed_history), NULL, changed) > changed, true, 'a version that is a time') FROM timed;

-- entries that the owner of the history has written (SEC-1)
ALTER TABLE plain_history ALTER row_data DROP NOT NULL;
CREATE FUNCTION revert_to(entry jsonb) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    UPDATE plain_history SET row_data = entry;
    RETURN (SELECT outcome FROM interlock.try_revert_row('plain', 1, (SELECT min(id) FROM plain_history)));
EXCEPTION WHEN OTHERS THEN
    RETURN SQLSTATE;
END $$;
SELECT is(revert_to(NULL), 'not_recorded', 'no row');
SELECT is(revert_to('1'), '22023', 'a number');
SELECT is(revert_to('["body"]'), '22023', 'an array');
SELECT is(revert_to('{"": 1}'), '55000', 'no column');
SELECT is(revert_to('{}'), 'unchanged', 'nothing');
SELECT throws_ok($$UPDATE plain_history SET row_data = NULL; SELECT interlock.revert_row('plain', 1, (SELECT min(id) FROM plain_history))$$, 'P0002');

SELECT * FROM finish();
ROLLBACK;
