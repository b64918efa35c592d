-- HIS-21: a reader of what is new, in one session; the isolation spec and t/085_history_reader.pl have several.
BEGIN;
SELECT plan(36);
SET LOCAL client_min_messages = error;
CREATE ROLE since_reader;
CREATE TABLE page (id int PRIMARY KEY, body text);
SELECT interlock.enable_versioning('page'), interlock.enable_history('page', notify => 'on');
CREATE TABLE other (id int PRIMARY KEY);
CREATE TABLE reader (up_to text);
INSERT INTO reader VALUES (interlock.history_position());
-- the entries of this test stay: others cannot see them before they are committed
COMMIT;

CREATE FUNCTION news(max_rows int = NULL) RETURNS SETOF text LANGUAGE plpgsql AS $$
    DECLARE n record;
    BEGIN
        FOR n IN SELECT * FROM interlock.history_since('page', (SELECT up_to FROM reader), max_rows) LOOP
            UPDATE reader SET up_to = n.up_to;
            RETURN NEXT concat_ws(' ', n.operation, n.key->>'id', n.row_data->>'body');
        END LOOP;
    END $$;
SELECT is_empty('SELECT news()', 'nothing is new');
INSERT INTO page VALUES (1, 'a');
SELECT results_eq('SELECT news()', ARRAY['insert 1 a'], 'an entry');
SELECT is_empty('SELECT news()', 'once');
UPDATE page SET body = 'b';
INSERT INTO page SELECT g, 'x' FROM generate_series(2, 7) g;
DELETE FROM page WHERE id = 7;
SELECT results_eq('SELECT news(3)', ARRAY['update 1 b', 'insert 2 x', 'insert 3 x'], 'a page');
SELECT matches((SELECT up_to FROM reader), '^[0-9]+:[0-9]+:[0-9,]*;[0-9]+:[0-9]+:[0-9,]*;[0-9]+$', 'a position inside of it');
SELECT results_eq('SELECT news(3)', ARRAY['insert 4 x', 'insert 5 x', 'insert 6 x'], 'the next');
INSERT INTO page VALUES (8, 'late');
SELECT results_eq('SELECT news(3)', ARRAY['insert 7 x', 'delete 7 x'], 'what came meanwhile belongs to the next turn');
SELECT matches((SELECT up_to FROM reader), '^[0-9]+:[0-9]+:[0-9,]*$', 'a position at its end');
SELECT results_eq('SELECT news(3)', ARRAY['insert 8 late'], 'which is this one');
UPDATE page SET body = 'c' WHERE id < 4;
SELECT results_eq('SELECT news(3)', ARRAY['update 1 c', 'update 2 c', 'update 3 c'], 'exactly a page');
SELECT is_empty('SELECT news(3)', 'and nothing after it');
SELECT is((SELECT count(DISTINCT up_to) FROM interlock.history_since('page')), 1::bigint, 'all rows have the same position');
SELECT is((SELECT count(*) FROM interlock.history_since('page')), (SELECT count(*) FROM page_history), 'from the first entry');
SELECT results_eq($$SELECT id, key, operation, version, row_data, changed, before, writer, changed_by, changed_at, transaction, writer_from FROM interlock.history_since('page')$$,
    'SELECT id, key, operation, version, row_data, changed, before, writer, changed_by, changed_at, transaction, writer_from FROM page_history ORDER BY id', 'with all columns');
SELECT is((SELECT count(*) FROM interlock.history_since('page', pg_current_snapshot()::text)), 0::bigint, 'a snapshot is a position');

-- what the transaction itself has written
BEGIN;
INSERT INTO page VALUES (20, 'own');
SELECT is_empty('SELECT news()', 'one''s own writes come later');
UPDATE page SET body = 'own' WHERE id = 1;
SELECT is_empty('SELECT news()', 'also those after the first reading');
COMMIT;
SELECT results_eq('SELECT news()', ARRAY['insert 20 own', 'update 1 own'], 'when they are committed');
BEGIN;
SAVEPOINT s;
INSERT INTO page VALUES (21, 'rolled back');
ROLLBACK TO s;
SAVEPOINT s;
INSERT INTO page VALUES (22, 'in a savepoint');
RELEASE s;
COMMIT;
SELECT results_eq('SELECT news(1)', ARRAY['insert 22 in a savepoint'], 'savepoints');
BEGIN ISOLATION LEVEL REPEATABLE READ;
SELECT is_empty('SELECT news()', 'repeatable read');
INSERT INTO page VALUES (23, 'x');
SELECT is_empty('SELECT news()', 'and after a write');
COMMIT;
SELECT results_eq('SELECT news()', ARRAY['insert 23 x'], 'comes later');
-- a reader that is rolled back reads again
UPDATE page SET body = 'd' WHERE id = 2;
BEGIN;
SELECT results_eq('SELECT news()', ARRAY['update 2 d'], 'read');
ROLLBACK;
SELECT results_eq('SELECT news()', ARRAY['update 2 d'], 'and read again');

-- rows that a trigger writes again have ids in another order than commands: no page ends between them
CREATE FUNCTION touch_next() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN IF pg_trigger_depth() = 1 THEN UPDATE page SET body = body || '!' WHERE id > new.id AND id < 4; END IF; RETURN NULL; END $$;
CREATE TRIGGER touch_next AFTER UPDATE ON page FOR EACH ROW EXECUTE FUNCTION touch_next();
UPDATE page SET body = 'e' WHERE id < 4;
SELECT results_eq('SELECT news(2)', ARRAY['update 1 e', 'update 2 e', 'update 3 e', 'update 2 e!', 'update 3 e!', 'update 3 e!!'], 'HIS-9: in their order, on one page');
SELECT is_empty('SELECT news()', 'all of them');
DROP TRIGGER touch_next ON page;

-- arguments
CREATE FUNCTION answer(since text) RETURNS text LANGUAGE plpgsql AS $$
    BEGIN PERFORM FROM interlock.history_since('page', since); RETURN 'taken: ' || since;
    EXCEPTION WHEN OTHERS THEN RETURN SQLSTATE || ' ' || SQLERRM; END $$;
SELECT results_eq($$SELECT DISTINCT answer(a) FROM unnest(ARRAY['', 'x', '1', '1:2', '1:2:3', '1:2:1,', '0:0:', '2:1:', '1:1:;', '1:1:;1:1:;', '1:1:;1:1:;x',
    '1:1:;1:1:;-1', '99999999999999999999:1:', '1:2:1;', ' 1:1:', '1:2:,1', ';;', '1:1:;1:1:;1;', '1:1:;1:1:;99999999999999999999', repeat('1', 3000)]) a$$,
    ARRAY['22023 argument "since" is not a position of this function'], 'what are no positions');
SELECT throws_ok($$SELECT * FROM interlock.history_since('page', '9000000000000000000:9000000000000000000:')$$, '22023',
    'argument "since" is a position of another server, or of a later time');
SELECT throws_ok($$SELECT * FROM interlock.history_since('page', NULL, 0)$$, '22023');
SELECT throws_ok($$SELECT * FROM interlock.history_since(NULL)$$, '22004');
SELECT throws_ok($$SELECT * FROM interlock.history_since('other')$$, '55000', 'table "other" has no history');
SELECT lives_ok($$SELECT * FROM interlock.history_since('page', '1:1:', 2147483647)$$, 'the largest page');
SELECT is((SELECT count(*) FROM interlock.history_since('page', '1:1:;1:1:;9223372036854775807')), 0::bigint, 'a position behind everything');

-- privileges
GRANT SELECT ON page TO since_reader;
SET ROLE since_reader;
SELECT throws_ok($$SELECT * FROM interlock.history_since('page')$$, '42501', 'permission denied for table page_history');
RESET ROLE;
GRANT SELECT ON page_history TO since_reader;
ALTER TABLE page_history ENABLE ROW LEVEL SECURITY;
CREATE POLICY some_rows ON page_history USING (key->>'id' = '1');
SET ROLE since_reader;
SELECT is((SELECT string_agg(DISTINCT key->>'id', ' ') FROM interlock.history_since('page')), '1', 'what the policies show');
RESET ROLE;
SELECT isnt(interlock.history_position(), NULL, 'everybody may ask for the position');

DROP TABLE page, page_history, other, reader;
DROP FUNCTION news(int), touch_next(), answer(text);
DROP ROLE since_reader;
SELECT * FROM finish();
