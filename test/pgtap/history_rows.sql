-- HIS-62: a whole table at a time is what row_as_of says of each of its rows.
BEGIN;
SELECT plan(43);
SET LOCAL client_min_messages = error;
CREATE ROLE rows_reader;
CREATE TABLE clock (n int PRIMARY KEY, at timestamptz);
CREATE FUNCTION tick(n int) RETURNS void LANGUAGE sql AS 'INSERT INTO clock VALUES (n, clock_timestamp())';
CREATE FUNCTION at(n int) RETURNS timestamptz LANGUAGE sql STABLE AS 'SELECT at FROM clock WHERE clock.n = $1';

CREATE TABLE orders (id int PRIMARY KEY, note text, amount numeric, tags text[], extra jsonb);
INSERT INTO orders SELECT g, 'before', g, ARRAY['a', NULL], '{"a": [1]}' FROM generate_series(1, 4) g;
SELECT interlock.enable_versioning('orders'), interlock.enable_history('orders');
SELECT tick(0);
UPDATE orders SET note = 'changed' WHERE id = 1;
DELETE FROM orders WHERE id = 2;
INSERT INTO orders VALUES (5, 'new');
UPDATE orders SET id = 30, note = 'moved' WHERE id = 3;
SELECT tick(1);
DELETE FROM orders WHERE id = 1;
INSERT INTO orders VALUES (1, 'again'), (2, 'back');
UPDATE orders SET note = 'twice' WHERE id = 5;
UPDATE orders SET note = 'three times' WHERE id = 5;
SELECT tick(2);
TRUNCATE orders;
SELECT tick(3);

SELECT results_eq($$SELECT id, note, amount, tags, extra, version FROM interlock.rows_as_of(NULL::orders, at(0)) ORDER BY id$$,
    $$SELECT g, 'before', g::numeric, ARRAY['a', NULL], '{"a": [1]}'::jsonb, 1::bigint FROM generate_series(1, 4) g$$, 'before the first change, whole rows');
SELECT results_eq($$SELECT id, note FROM interlock.rows_as_of(NULL::orders, at(1)) ORDER BY id$$,
    $$VALUES (1, 'changed'), (4, 'before'), (5, 'new'), (30, 'moved')$$, 'after an update, a delete, an insert and another key');
SELECT results_eq($$SELECT id, note FROM interlock.rows_as_of(NULL::orders, at(2)) ORDER BY id$$,
    $$VALUES (1, 'again'), (2, 'back'), (4, 'before'), (5, 'three times'), (30, 'moved')$$, 'keys that are used again, a row written twice');
SELECT is_empty($$SELECT FROM interlock.rows_as_of(NULL::orders, at(3))$$, 'after TRUNCATE');
SELECT is_empty($$SELECT FROM interlock.rows_as_of(NULL::orders, 'infinity')$$, 'in the future');
SELECT results_eq(format($$SELECT to_jsonb(r) FROM interlock.rows_as_of(NULL::orders, at(%1$s)) r ORDER BY id$$, n),
    format($$SELECT r FROM generate_series(1, 30) id, interlock.row_as_of('orders', id, at(%1$s)) r WHERE r IS NOT NULL ORDER BY id$$, n),
    'as row_as_of of each row: ' || n) FROM generate_series(0, 3) n;
SELECT results_eq($$SELECT (interlock.rows_as_of((5, NULL, NULL, NULL, NULL, NULL)::orders, at(1))).id ORDER BY 1$$, 'VALUES (1), (4), (5), (30)',
    'in a list of columns; the value of the argument does not matter');
SELECT results_eq($$SELECT n, count(r.id) FROM clock LEFT JOIN LATERAL interlock.rows_as_of(NULL::orders, at) r ON true GROUP BY n ORDER BY n$$,
    'VALUES (0, 4::bigint), (1, 4), (2, 5), (3, 0)', 'of several times');
PREPARE untyped AS SELECT count(*) FROM interlock.rows_as_of(NULL::orders, $1);
SELECT results_eq(format('EXECUTE untyped(%L)', at(1)), 'VALUES (4::bigint)', 'with a parameter without a type');

-- several writes of one transaction and one statement, in the order of their commands
CREATE TABLE twice (id int PRIMARY KEY, n int);
SELECT interlock.enable_history('twice');
CREATE FUNCTION write_again() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN UPDATE twice SET n = n + 10 WHERE id = NEW.id AND n < 10; RETURN NULL; END $$;
CREATE TRIGGER "000" AFTER INSERT OR UPDATE ON twice FOR EACH ROW EXECUTE FUNCTION write_again();
INSERT INTO twice VALUES (1, 1);
UPDATE twice SET n = 2;
SELECT tick(4);
UPDATE twice SET n = 3;
SELECT results_eq($$SELECT n FROM interlock.rows_as_of(NULL::twice, at(4))$$, 'VALUES (12)', 'the last of the writes');
SELECT results_eq($$SELECT n FROM interlock.rows_as_of(NULL::twice, clock_timestamp())$$, 'VALUES (13)', 'and of the next ones');

-- partitions, columns in another order, and their types
CREATE TABLE part (region text, id int, born date, pay money, note json, PRIMARY KEY (id, region)) PARTITION BY LIST (region);
CREATE TABLE part_a PARTITION OF part FOR VALUES IN ('a');
CREATE TABLE part_b (gone int, note json, pay money, id int NOT NULL, born date, region text NOT NULL);
ALTER TABLE part_b DROP gone;
ALTER TABLE part ATTACH PARTITION part_b FOR VALUES IN ('b');
INSERT INTO part VALUES ('a', 1, '2026-01-01', 1.5, '{"x":1}'), ('b', 2, '2026-01-02', 2.5, NULL);
SELECT interlock.enable_history('part');
SELECT tick(5);
UPDATE part SET region = 'b', born = '2026-02-01' WHERE id = 1;
SELECT tick(6);
UPDATE part SET pay = 9 WHERE id = 2;
SELECT results_eq($$SELECT region, id, born, pay, note::text FROM interlock.rows_as_of(NULL::part, at(5)) ORDER BY id$$,
    $$VALUES ('a', 1, '2026-01-01'::date, '1.5'::money, '{"x": 1}'), ('b', 2, '2026-01-02', '2.5', NULL)$$, 'partitions');
SELECT results_eq($$SELECT region, id, born, pay FROM interlock.rows_as_of(NULL::part, at(6)) ORDER BY id$$,
    $$VALUES ('b', 1, '2026-02-01'::date, '1.5'::money), ('b', 2, '2026-01-02', '2.5')$$, 'a row that moved to another one');
SELECT throws_ok($$SELECT * FROM interlock.rows_as_of(NULL::part_a, at(5))$$, '55000', 'table "part_a" is a partition and recorded with its parent');

-- columns that came, went, or were ignored; names in need of quotes
CREATE TABLE "O'Hara" (id int PRIMARY KEY, r int, key int, seen int, old int);
SELECT interlock.enable_history('"O''Hara"', ignore_columns => '{seen}');
INSERT INTO "O'Hara" VALUES (1, 1, 1, 1, 1), (2, 2, 2, 2, 2);
SELECT tick(7);
ALTER TABLE "O'Hara" DROP old, ADD young int DEFAULT 7, ALTER r TYPE text;
UPDATE "O'Hara" SET seen = 5;
UPDATE "O'Hara" SET key = 9 WHERE id = 1;
SELECT results_eq($$SELECT * FROM interlock.rows_as_of(NULL::"O'Hara", at(7)) ORDER BY id$$,
    $$VALUES (1, '1'::text, 1, 1, NULL::int), (2, '2', 2, 2, NULL)$$, 'columns of today, with the values of then');
ALTER TABLE "O'Hara" ALTER r TYPE date USING NULL;
SELECT throws_ok($$SELECT * FROM interlock.rows_as_of(NULL::"O'Hara", at(7))$$, '22007', NULL, 'a value that its type cannot read now');

-- what is not known is an error
SELECT throws_ok($$SELECT * FROM interlock.rows_as_of(NULL::orders, now() - interval '1 day')$$, 'P0002', NULL, 'before the history');
SELECT throws_ok($$SELECT * FROM interlock.rows_as_of(NULL::orders, '-infinity')$$, 'P0002', NULL, 'before any time');
CREATE TABLE kept (id int PRIMARY KEY, n int);
SELECT interlock.enable_history('kept', keep_versions => 2);
INSERT INTO kept VALUES (1, 0), (2, 0);
SELECT tick(8);
UPDATE kept SET n = 1 WHERE id = 1;
SELECT results_eq($$SELECT id, n FROM interlock.rows_as_of(NULL::kept, at(8)) ORDER BY id$$, 'VALUES (1, 0), (2, 0)', 'retention, and nothing can be gone');
DELETE FROM kept_history WHERE operation = 'insert' AND key = '{"id": 1}';
UPDATE kept SET n = 2 WHERE id = 1;
SELECT throws_like($$SELECT * FROM interlock.rows_as_of(NULL::kept, at(8))$$, 'history of table "kept" does not say what its rows were at %', 'an entry may be gone');
SELECT is(interlock.row_as_of('kept', 1, at(8)), NULL, 'as row_as_of says');
SELECT interlock.enable_history('kept', keep_versions => 2, keep_for => '1 hour');
SELECT tick(9);
UPDATE kept SET n = n + 1;
UPDATE kept SET n = n + 1;
SELECT results_eq($$SELECT id, n FROM interlock.rows_as_of(NULL::kept, at(9)) ORDER BY id$$, 'VALUES (1, 2), (2, 0)', 'keep_for reaches back');
SELECT interlock.enable_history('kept', keep_for => '1 us');
SELECT tick(10);
UPDATE kept SET n = 5;
SELECT throws_ok($$SELECT * FROM interlock.rows_as_of(NULL::kept, at(10))$$, 'P0002', NULL, 'or does not');
SELECT interlock.enable_history('kept');
SELECT tick(11);
ALTER TABLE kept RENAME id TO nr;
SELECT throws_ok($$SELECT * FROM interlock.rows_as_of(NULL::kept, at(11))$$, 'P0002', NULL, 'another key');

-- rights
CREATE TABLE secret (id int PRIMARY KEY, note text);
INSERT INTO secret VALUES (1, 'a'), (2, 'b');
SELECT interlock.enable_history('secret');
UPDATE secret SET note = 'c' WHERE id = 1;
SELECT tick(12);
GRANT SELECT ON clock TO rows_reader;
SET LOCAL ROLE rows_reader;
SELECT throws_ok($$SELECT * FROM interlock.rows_as_of(NULL::secret, at(12))$$, '42501', 'permission denied for table secret');
RESET ROLE;
GRANT SELECT ON secret TO rows_reader;
SET LOCAL ROLE rows_reader;
SELECT throws_ok($$SELECT * FROM interlock.rows_as_of(NULL::secret, at(12))$$, '42501', 'permission denied for table secret_history');
RESET ROLE;
GRANT SELECT ON secret_history TO rows_reader;
SET LOCAL ROLE rows_reader;
SELECT results_eq($$SELECT id, note FROM interlock.rows_as_of(NULL::secret, at(12)) ORDER BY id$$, $$VALUES (1, 'c'), (2, 'b')$$, 'SELECT on both is enough');
RESET ROLE;
REVOKE SELECT ON secret FROM rows_reader;
GRANT SELECT (id) ON secret TO rows_reader;
SET LOCAL ROLE rows_reader;
SELECT throws_ok($$SELECT * FROM interlock.rows_as_of(NULL::secret, at(12))$$, '42501', 'permission denied for table secret', 'not SELECT on a column');
RESET ROLE;
GRANT SELECT ON secret TO rows_reader;
ALTER TABLE secret_history ENABLE ROW LEVEL SECURITY;
SET LOCAL ROLE rows_reader;
SELECT throws_ok($$SELECT * FROM interlock.rows_as_of(NULL::secret, at(12))$$, '55000', 'row security may hide entries of the history of table "secret"');
RESET ROLE;

-- another keep_for removes nothing; with another number of versions entries may be gone
CREATE TABLE longer (id int PRIMARY KEY);
SELECT interlock.enable_history('longer', keep_for => '90 days');
INSERT INTO longer VALUES (1);
CREATE TEMP TABLE moment AS SELECT clock_timestamp() AS at;
SELECT interlock.enable_history('longer', keep_for => '100 days');
SELECT results_eq('SELECT * FROM interlock.rows_as_of(NULL::longer, (SELECT at FROM moment))', 'VALUES (1)', 'keep_for was raised');
SELECT interlock.enable_history('longer', keep_versions => 2, keep_for => '100 days');
SELECT throws_ok('SELECT * FROM interlock.rows_as_of(NULL::longer, (SELECT at FROM moment))', 'P0002', NULL, 'keep_versions was changed');

-- bad input
CREATE TABLE plain (id int PRIMARY KEY);
CREATE TYPE pair AS (a int, b int);
SELECT throws_ok($$SELECT * FROM interlock.rows_as_of(NULL::plain, now())$$, '55000', 'table "plain" has no history');
SELECT throws_ok($$SELECT * FROM interlock.rows_as_of(NULL::orders, NULL)$$, '22004', 'argument "at" must not be null');
SELECT throws_ok($$SELECT interlock.rows_as_of(1, now())$$, '22023', 'argument "table_type" must be of the row type of a table');
SELECT throws_ok($$SELECT interlock.rows_as_of(NULL::text, now())$$, '22023', 'argument "table_type" must be of the row type of a table');
SELECT throws_ok($$SELECT interlock.rows_as_of(NULL::pair, now())$$, '42809');
SELECT throws_ok($$SELECT interlock.rows_as_of(NULL::pg_class, now())$$, '42809');
SELECT throws_ok($$SELECT interlock_internal.history_key_of(ROW(1))$$, '42P01');
SELECT is(interlock_internal.history_key_of(NULL::plain), NULL, 'the key of no row');
SELECT throws_ok($$SELECT interlock_internal.history_key_of(ROW(1)::plain)$$, '55000');

SELECT * FROM finish();
ROLLBACK;
