-- VER-55, OWN-51: columns that are owned once changed: the value of a row belongs to the writer who changed it, until it is released.
BEGIN;
SELECT plan(60);
SET LOCAL client_min_messages = error;

CREATE TABLE product (id int PRIMARY KEY, price numeric, name text, stock int, tags text[]);
INSERT INTO product VALUES (1, 10, 'desk', 5), (2, 20, 'lamp', 9), (3, 30, 'vase', 1);
CREATE FUNCTION as_writer(writer text, command text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE answer text;
BEGIN
    IF writer IS NOT NULL THEN PERFORM interlock.set_writer(writer, false); ELSE PERFORM set_config('interlock.tap', '', true); END IF;
    EXECUTE command INTO answer;
    RETURN answer;
EXCEPTION WHEN OTHERS THEN RETURN SQLSTATE;
END $$;

-- declaring it
SELECT throws_ok($$SELECT interlock.own_columns('product', 'editor', '{price}', once_changed => NULL)$$, '22004', NULL, 'a null');
SELECT interlock.share_columns('product', '{tags}', 'merge');
SELECT throws_ok($$SELECT interlock.own_columns('product', 'editor', '{tags}', once_changed => true)$$, '55000', NULL, 'a column that is merged is shared');
SELECT hasnt_column('product', 'value_writers', 'nothing is added by a call that fails');
SELECT interlock.own_columns('product', 'editor', '{price}', 'skip', once_changed => true), interlock.own_columns('product', 'editor', '{name}', once_changed => true);
SELECT col_type_is('product', 'value_writers', 'jsonb', 'the table gets a column');
SELECT throws_ok($$SELECT interlock.share_columns('product', '{price}', 'merge')$$, '55000', NULL, 'and the column cannot be shared');
SELECT throws_ok($$SELECT interlock.own_columns('product', 'editor', '{value_writers}')$$, '22023', NULL, 'nor can the writers have one');
SELECT results_eq($$SELECT column_name::text COLLATE "default", writer, on_violation, once_changed FROM interlock.column_ownership WHERE rel = 'product'::regclass ORDER BY 1$$,
    $$VALUES ('name', 'editor', 'reject', true), ('price', 'editor', 'skip', true), ('tags', NULL, NULL, NULL)$$, 'view column_ownership');
SELECT is(interlock.configuration('product')->'ownership'->'columns'->'price', '{"writer": "editor", "on_violation": "skip", "once_changed": true}'::jsonb, 'configuration');
CREATE TABLE copy (LIKE product INCLUDING ALL);
SELECT interlock.configure('copy', interlock.configuration('product'));
SELECT is(interlock.configuration('copy'), interlock.configuration('product'), 'of another table');
SELECT results_eq($$SELECT interlock.configure('copy', '{"ownership": {"columns": {"price": {"once_changed": false}}}}')$$,
    ARRAY[$$SELECT interlock.own_columns('public.copy', columns => '{price}', writer => 'editor', on_violation => 'skip');$$], 'that is changed');
SELECT throws_ok($$SELECT interlock.configure('copy', '{"ownership": {"columns": {"price": {"once_changed": "yes"}}}}')$$, '22023', NULL, 'to no boolean');
CREATE TABLE taken (id int PRIMARY KEY, a int, value_writers text);
SELECT throws_ok($$SELECT interlock.own_columns('taken', 'editor', '{a}', once_changed => true)$$, '42804', NULL, 'a column of that name of another type');

-- who changes a value
SELECT interlock.enable_versioning('product', unchanged => 'keep');
CREATE FUNCTION writers(key int) RETURNS jsonb LANGUAGE sql AS 'SELECT value_writers FROM product WHERE id = key';
UPDATE product SET price = 11, name = 'a desk' WHERE id = 1;
SELECT is(writers(1), NULL, 'others change a value, which then belongs to nobody');
SELECT is((SELECT price FROM product WHERE id = 1), 11::numeric, 'and is stored');
SELECT is(as_writer('importer', 'UPDATE product SET price = 12 WHERE id = 1 RETURNING value_writers'), NULL, 'another writer, too');
SELECT is(as_writer('editor', 'UPDATE product SET price = 90 WHERE id = 1 RETURNING value_writers'), '{"price": "editor"}', 'the value that the writer changes belongs to him');
SELECT is(as_writer('editor', 'UPDATE product SET price = 20, stock = 8 WHERE id = 2 RETURNING value_writers'), NULL, 'one that he leaves does not');
SELECT results_eq('SELECT version FROM product ORDER BY id', 'VALUES (4::bigint), (2), (1)', 'versions count the changes alone');
SELECT is(as_writer('importer', 'UPDATE product SET price = 13, stock = 6 WHERE id = 1 RETURNING price'), '90', 'skip: the import does not change it');
SELECT results_eq('SELECT price, stock, version, value_writers FROM product WHERE id = 1', $$VALUES (90::numeric, 6, 5::bigint, '{"price": "editor"}'::jsonb)$$, 'but the rest');
SELECT is(as_writer('importer', 'UPDATE product SET price = 13, stock = 6 WHERE id = 1 RETURNING version'), '5', 'what is skipped moves no version');
SELECT is(as_writer('importer', 'UPDATE product SET price = 13 WHERE id = 2 RETURNING price'), '13', 'nor does it hold in another row');
SELECT is(as_writer('importer', $$INSERT INTO product (id, price) VALUES (1, 14) ON CONFLICT (id) DO UPDATE SET price = excluded.price RETURNING price$$), '90', 'ON CONFLICT');
SELECT is(as_writer('importer', $$SELECT interlock.versioned_update('product', 1, 5, '{"price": 15}')$$), '5', 'versioned_update');
SELECT is(as_writer('importer', $$SELECT string_agg(outcome, ' ') FROM interlock.versioned_update_many('product', '[{"key": 1, "version": 5, "changes": {"price": 15}}]')$$),
    'updated', 'versioned_update_many');
SELECT is((SELECT price FROM product WHERE id = 1), 90::numeric, 'the correction survives');
SELECT is(as_writer('editor', 'UPDATE product SET name = ''my desk'' WHERE id = 1 RETURNING value_writers'), '{"name": "editor", "price": "editor"}', 'several columns');
SELECT is(as_writer('importer', 'UPDATE product SET name = ''x'' WHERE id = 1'), 'IL007', 'reject: the import is refused');
SELECT is(as_writer('importer', 'UPDATE product SET name = ''my desk'', price = 90 WHERE id = 1 RETURNING name'), 'my desk', 'the same value is no change');
SELECT is(as_writer('editor', 'UPDATE product SET price = 91 WHERE id = 1 RETURNING price'), '91', 'the writer changes it again');
CREATE FUNCTION detail_of(command text) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE detail text;
BEGIN EXECUTE command; RETURN NULL;
EXCEPTION WHEN OTHERS THEN GET STACKED DIAGNOSTICS detail = PG_EXCEPTION_DETAIL; RETURN detail; END $$;
SELECT interlock.set_writer('importer');
SELECT is(detail_of('UPDATE product SET name = ''x'' WHERE id = 1'),
    '{"table": "public.product", "key": {"id": 1}, "columns": ["name"], "owner": "editor", "writer": "importer"}'::jsonb, 'the detail names the owner of the value');
SET CONSTRAINTS ALL IMMEDIATE;

-- nobody forges it
SELECT is(as_writer('importer', $$UPDATE product SET value_writers = NULL, price = 1 WHERE id = 1 RETURNING price || ' ' || value_writers$$), '91 {"name": "editor", "price": "editor"}',
    'a statement cannot remove the writers');
SELECT is(as_writer('importer', $$UPDATE product SET value_writers = '{"stock": "importer"}' WHERE id = 3 RETURNING value_writers$$), NULL, 'nor set them');
SELECT is(as_writer('importer', $$SELECT interlock.versioned_update('product', 3, 1, '{"value_writers": {"price": "importer"}}')$$), '1', 'by a function');
SELECT is(writers(3), NULL, 'it stays as it was');
INSERT INTO product (id, price, value_writers) VALUES (4, 1, '[1]'), (5, 1, '{"price": 7}'), (6, 1, '"price"');
UPDATE product SET price = 2 WHERE id IN (4, 5, 6);
SELECT is((SELECT count(*) FROM product WHERE price = 2), 3::bigint, 'what is no object of names holds nobody');
SELECT is(as_writer('editor', 'UPDATE product SET price = 3 WHERE id = 4 RETURNING value_writers'), '{"price": "editor"}', 'and is replaced');

-- releasing it
SELECT is(as_writer('importer', $$SELECT interlock.release_values('product', 1, '{stock}')$$), '55000', 'a column without writers of values');
SELECT is(as_writer('importer', $$SELECT interlock.release_values('product', 1, '{nothing}')$$), '42703', 'no column');
SELECT is(as_writer('importer', $$SELECT interlock.release_values('product', 1, '{}')$$), '22023', 'none');
SELECT is(as_writer('editor', $$SELECT interlock.release_values('product', 9, '{price}')$$), 'P0002', 'no row');
CREATE ROLE tap_app;
GRANT SELECT, UPDATE ON product TO tap_app;
SELECT interlock.grant_writer('importer', 'tap_app'), interlock.grant_writer('editor', 'tap_app');
SET LOCAL ROLE tap_app;
SELECT is(as_writer('importer', $$SELECT interlock.release_values('product', 1, '{price}')$$), 'IL007', 'another writer cannot release it');
SELECT is(as_writer('editor', $$SELECT interlock.release_values('product', 1, '{price}')$$), 'true', 'the writer can');
SELECT is((SELECT value_writers FROM product WHERE id = 1), '{"name": "editor"}'::jsonb, 'this value alone');
SELECT is(as_writer('editor', $$SELECT interlock.release_values('product', 1, '{price}')$$), 'false', 'once');
SELECT is(as_writer('importer', 'UPDATE product SET price = 16 WHERE id = 1 RETURNING price'), '16', 'then the import changes it');
RESET ROLE;
SELECT is(as_writer('importer', $$SELECT interlock.release_values('product', '{"id": 1}', '{name,price}')$$), 'true', 'the owner of the table can');
SELECT is(writers(1), NULL, 'an object without members is a null');
SELECT is((SELECT version FROM product WHERE id = 1) - 7, 1::bigint, 'which moves no version');
SET LOCAL interlock.direct_execution = off;
SELECT is(as_writer('editor', 'UPDATE product SET price = 17 WHERE id = 1 RETURNING value_writers'), '{"price": "editor"}', 'again');
SELECT is(as_writer('editor', $$SELECT interlock.release_values('product', 1, '{price}')$$), 'true', 'by a statement');
RESET interlock.direct_execution;

-- the column goes, and comes back
ALTER TABLE product RENAME value_writers TO old_writers;
SELECT is(as_writer('editor', 'UPDATE product SET stock = 1 WHERE id = 1'), '55000', 'without the column no row is written');
SELECT results_eq($$SELECT severity, advice FROM interlock.advise('product') WHERE finding LIKE '%value_writers%' ORDER BY 2$$,
    $$VALUES ('broken', 'SELECT interlock.own_columns(''product'', ''editor'', ARRAY[''name''], ''reject'', once_changed => true) -- after the column of that name, if any, was renamed'),
             ('broken', 'SELECT interlock.own_columns(''product'', ''editor'', ARRAY[''price''], ''skip'', once_changed => true) -- after the column of that name, if any, was renamed')$$, 'advise');
SELECT interlock.own_columns('product', 'editor', '{name}', once_changed => true);
SELECT is(as_writer('editor', 'UPDATE product SET stock = 1 WHERE id = 1 RETURNING stock'), '1', 'own_columns adds it again');

-- partitions; a writer whose columns are handed over keeps his values; force
CREATE TABLE parted (id int, part int, a int, b int, PRIMARY KEY (id, part)) PARTITION BY LIST (part);
CREATE TABLE parted_1 PARTITION OF parted FOR VALUES IN (1);
CREATE TABLE parted_2 (b int, gone int, part int NOT NULL, a int, id int NOT NULL);
ALTER TABLE parted_2 DROP gone;
ALTER TABLE parted ATTACH PARTITION parted_2 FOR VALUES IN (2);
SELECT interlock.own_columns('parted', 'editor', '{a}', 'skip', once_changed => true);
INSERT INTO parted VALUES (1, 1, 1, 1), (1, 2, 1, 1);
SELECT is(as_writer('editor', 'WITH u AS (UPDATE parted SET a = 2 RETURNING value_writers) SELECT string_agg(value_writers::text, '' '') FROM u'), '{"a": "editor"} {"a": "editor"}', 'partitions');
SELECT interlock.hand_over_columns('parted', '{a}', 'chief');
SELECT is(as_writer('chief', 'WITH u AS (UPDATE parted SET a = 3 RETURNING a) SELECT string_agg(a::text, '' '') FROM u'), '2 2', 'hand_over_columns leaves values to their writers');
SELECT interlock.set_writer('chief', true);
UPDATE parted SET a = 4;
SELECT results_eq('SELECT a, value_writers FROM parted', $$VALUES (4, '{"a": "editor"}'::jsonb), (4, '{"a": "editor"}')$$, 'force changes a value, which stays the writer''s');

-- a column that becomes the version has no owner any more
CREATE TABLE late (id int PRIMARY KEY, a int, v int NOT NULL DEFAULT 1);
SELECT interlock.own_columns('late', 'editor', '{v}', once_changed => true), interlock.enable_versioning('late', 'v');
INSERT INTO late VALUES (1, 1, 1);
UPDATE late SET a = 2, value_writers = '{"v": "editor"}';
SELECT results_eq('SELECT v, value_writers FROM late', 'VALUES (2, NULL::jsonb)', 'which nobody can forge, either');

-- HIS-61: to release a value is no change that a history records
CREATE TABLE recorded (id int PRIMARY KEY, a int);
SELECT interlock.own_columns('recorded', 'editor', '{a}', once_changed => true), interlock.enable_history('recorded');
INSERT INTO recorded VALUES (1, 1);
SELECT is(as_writer('editor', 'UPDATE recorded SET a = 2 RETURNING a'), '2', 'a value becomes the writer''s');
SELECT interlock.release_values('recorded', 1, '{a}');
SELECT results_eq('SELECT operation FROM recorded_history ORDER BY id', $$VALUES ('insert'), ('update')$$, 'HIS-61: its release has no entry');

SELECT * FROM finish();
ROLLBACK;
