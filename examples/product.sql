-- A product that an editor, an importer and a worker save as a whole, each with what it read before the others saved.
CREATE TABLE catalog_product (
    id int PRIMARY KEY,
    title text,
    price numeric,
    thumbnail text,
    labels text[] NOT NULL DEFAULT '{}');
INSERT INTO catalog_product VALUES (1, 'Chair', 10, NULL, '{wood}');

SELECT interlock.enable_versioning('catalog_product');
SELECT interlock.enable_history('catalog_product', keep_versions => 50);
SELECT interlock.own_columns('catalog_product', 'editor', '{title}', on_violation => 'skip');
SELECT interlock.own_columns('catalog_product', 'importer', '{price}', on_violation => 'skip');
SELECT interlock.own_columns('catalog_product', 'thumbnails', '{thumbnail}', on_violation => 'skip');
SELECT interlock.share_columns('catalog_product', '{labels}', strategy => 'merge');

-- the editor saves
BEGIN;
SELECT interlock.set_writer('editor');
UPDATE catalog_product SET title = 'Oak chair' WHERE id = 1;
COMMIT;

-- the worker saves the whole product as it was before, with the thumbnail it made; that is no version worth keeping
BEGIN;
SELECT interlock.set_writer('thumbnails');
SELECT interlock.suppress_history('catalog_product', 'thumbnail');
UPDATE catalog_product SET title = 'Chair', price = 10, thumbnail = 'chair.png' WHERE id = 1;
COMMIT;

-- nothing is lost
SELECT title, price, thumbnail FROM catalog_product;
SELECT owner, columns, given, writer FROM interlock.skipped_writes WHERE table_name = 'public.catalog_product';

-- two people who read version 1 label it: both labels stay
SELECT outcome, current->'labels' AS labels
  FROM interlock.try_versioned_update('catalog_product', 1, 1, '{"labels": ["wood", "sale"]}', base => '{"labels": ["wood"]}', on_conflict => 'merge');
SELECT outcome, current->'labels' AS labels
  FROM interlock.try_versioned_update('catalog_product', 1, 1, '{"labels": ["wood", "new"]}', base => '{"labels": ["wood"]}', on_conflict => 'merge');

SELECT version, operation, writer, changed FROM interlock.row_history('catalog_product', 1);
