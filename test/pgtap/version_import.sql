-- VER-55: an import of 100,000 rows that have not changed moves no version. By functions it writes no row, and the history has no entry.
BEGIN;
SELECT plan(10);
SET LOCAL client_min_messages = error;

CREATE TABLE article (sku int PRIMARY KEY, name text, price numeric, stock int);
INSERT INTO article SELECT g, 'article ' || g, g / 100.0, g % 7 FROM generate_series(1, 100000) g;
SELECT interlock.enable_versioning('article', unchanged => 'keep');
SELECT interlock.enable_history('article');
CREATE TABLE delivery AS SELECT * FROM article;
CREATE TABLE place AS SELECT sku, ctid AS was FROM article;
CREATE FUNCTION written() RETURNS bigint LANGUAGE sql AS 'SELECT count(*) FROM article JOIN place USING (sku) WHERE article.ctid <> was';
CREATE FUNCTION moved() RETURNS bigint LANGUAGE sql AS 'SELECT count(*) FROM article WHERE version <> 1';
ANALYZE;

SELECT results_eq($$SELECT outcome, count(*) FROM interlock.versioned_update_many('article',
        (SELECT jsonb_agg(jsonb_build_object('key', sku, 'version', version, 'changes', to_jsonb(d) - 'sku' - 'version')) FROM delivery d)) GROUP BY 1$$,
    $$VALUES ('unchanged', 100000::bigint)$$, 'versioned_update_many of all rows');
SELECT is((SELECT count(*) FROM delivery d, interlock.try_versioned_upsert('article', d.sku, d.version, jsonb_build_object('name', name, 'price', price)) u
            WHERE u.outcome = 'unchanged'), 100000::bigint, 'try_versioned_upsert of each');
SELECT is(written(), 0::bigint, 'no row is written');
SELECT is((SELECT count(*) FROM article_history), 0::bigint, 'no entry is made');
INSERT INTO article SELECT * FROM delivery ON CONFLICT (sku) DO UPDATE SET name = excluded.name, price = excluded.price, stock = excluded.stock;
SELECT is(written(), 100000::bigint, 'INSERT ... ON CONFLICT writes each row');
SELECT is(moved(), 0::bigint, 'and moves no version');
SELECT is((SELECT count(*) FROM article_history), 0::bigint, 'and makes no entry');

UPDATE delivery SET price = price + 1 WHERE sku <= 10;
SELECT results_eq($$SELECT outcome, count(*) FROM interlock.versioned_update_many('article',
        (SELECT jsonb_agg(jsonb_build_object('key', sku, 'version', version, 'changes', jsonb_build_object('price', price, 'stock', stock))) FROM delivery)) GROUP BY 1 ORDER BY 2$$,
    $$VALUES ('updated', 10::bigint), ('unchanged', 99990)$$, 'rows that have changed');
SELECT is(moved(), 10::bigint, 'move their versions');
SELECT is((SELECT count(*) FROM article_history WHERE 'price' = ANY(changed)), 10::bigint, 'and have an entry each');

SELECT * FROM finish();
ROLLBACK;
