-- Escrow counters: bad input, privileges, kinds of columns, plain writes, what other concepts make of it. Several sessions, crashes and
-- prepared transactions are in test/t/escrow/escrow_sessions.pl.
BEGIN;
SELECT plan(99);

CREATE TABLE item (id int PRIMARY KEY, stock int NOT NULL, price numeric(8,2) NOT NULL DEFAULT 1, note text);
INSERT INTO item VALUES (1, 10), (2, 0);

-- what it needs
CREATE TABLE parted (id int PRIMARY KEY, n int NOT NULL) PARTITION BY RANGE (id);
CREATE TABLE parted_1 PARTITION OF parted FOR VALUES FROM (0) TO (9);
CREATE UNLOGGED TABLE crashes (id int PRIMARY KEY, n int NOT NULL);
CREATE TEMP TABLE leaves (id int PRIMARY KEY, n int NOT NULL);
CREATE TABLE keyless (n int NOT NULL);
CREATE TABLE dated (id date PRIMARY KEY, n int NOT NULL);
CREATE DOMAIN amount AS int CHECK (VALUE >= 0);
CREATE TABLE odd (id int PRIMARY KEY, nullable int, made int NOT NULL GENERATED ALWAYS AS (1) STORED, numbered int GENERATED ALWAYS AS IDENTITY,
    approximate float NOT NULL, loose numeric NOT NULL, wide numeric(20,2) NOT NULL, coarse numeric(3,-2) NOT NULL, own amount NOT NULL,
    single int NOT NULL UNIQUE, other int NOT NULL REFERENCES item, t text NOT NULL);
SELECT throws_ok($$SELECT interlock.enable_escrow('parted', 'n')$$, '0A000', NULL, 'a partitioned table');
SELECT throws_ok($$SELECT interlock.enable_escrow('parted_1', 'n')$$, '0A000', NULL, 'a partition');
SELECT throws_ok($$SELECT interlock.enable_escrow('crashes', 'n')$$, '0A000', NULL, 'an unlogged table');
SELECT throws_ok($$SELECT interlock.enable_escrow('leaves', 'n')$$, '0A000', NULL, 'a temporary table');
SELECT throws_ok($$SELECT interlock.enable_escrow('keyless', 'n')$$, '55000', NULL, 'no key');
SELECT throws_ok($$SELECT interlock.enable_escrow('dated', 'n')$$, '0A000', NULL, 'a key whose text depends on settings');
CREATE TABLE made_key (a int, id int GENERATED ALWAYS AS (a * 10) STORED PRIMARY KEY, n int NOT NULL);
SELECT throws_ok($$SELECT interlock.enable_escrow('made_key', 'n')$$, '0A000', NULL, 'a key that is generated');
CREATE TABLE made_unique (id int PRIMARY KEY, n int NOT NULL, g int GENERATED ALWAYS AS (n * 2) STORED UNIQUE);
SELECT throws_ok($$SELECT interlock.enable_escrow('made_unique', 'n')$$, '55000', NULL, 'a column of which a unique one is generated');
CREATE TABLE partly_listed (id int PRIMARY KEY);
CREATE TABLE made_condition (id int PRIMARY KEY, grp int, n int NOT NULL, big bool GENERATED ALWAYS AS (n > 3) STORED);
CREATE UNIQUE INDEX ON made_condition (grp) WHERE big;
SELECT throws_ok($$SELECT interlock.enable_escrow('made_condition', 'n')$$, '55000', NULL, 'or its condition');
CREATE TABLE made_reference (id int PRIMARY KEY, n int NOT NULL, l int GENERATED ALWAYS AS (n / 10) STORED REFERENCES partly_listed);
SELECT throws_ok($$SELECT interlock.enable_escrow('made_reference', 'n')$$, '55000', NULL, 'or a foreign key');
CREATE TABLE partly_unique (id int PRIMARY KEY, n int NOT NULL, k int);
CREATE UNIQUE INDEX ON partly_unique (k) WHERE n > 0;
SELECT throws_ok($$SELECT interlock.enable_escrow('partly_unique', 'n')$$, '55000', NULL, 'or on which it depends whether others are unique');
SELECT throws_ok(format('SELECT interlock.enable_escrow(%L, %L)', 'odd', c), s, NULL, 'column ' || c)
  FROM (VALUES ('nullable', '55000'), ('made', '55000'), ('numbered', '55000'), ('approximate', '42804'), ('loose', '42804'), ('wide', '42804'),
               ('coarse', '42804'), ('own', '42804'), ('single', '55000'), ('other', '55000'), ('id', '55000'), ('t', '42804'), ('nowhere', '42703')) v (c, s);
SELECT throws_ok($$SELECT interlock.enable_escrow('item', 'stock', 1)$$, '55000', '1 rows of table "item" have a value of column "stock" outside of the limits');
SELECT throws_ok($$SELECT interlock.enable_escrow('item', 'stock', maximum => 9)$$, '55000', NULL, 'a value above the maximum');
SELECT throws_ok($$SELECT interlock.enable_escrow('item', 'stock', 5, 4)$$, '22023', NULL, 'a maximum below the minimum');
SELECT throws_ok($$SELECT interlock.enable_escrow('item', 'stock', 0.5)$$, '22023', NULL, 'a minimum with a fraction');
SELECT throws_ok($$SELECT interlock.enable_escrow('item', 'stock', 'NaN')$$, '22023', NULL, 'a minimum that is no number');
SELECT throws_ok($$SELECT interlock.enable_escrow('item', 'stock', NULL)$$, '22004', NULL, 'no minimum');
SELECT throws_ok($$SELECT interlock.enable_escrow('item', 'stock', plain_updates => 'fold')$$, '22023', NULL, 'an unknown word');
SELECT throws_ok($$SELECT interlock.disable_escrow('item', 'stock')$$, '55000', 'column "stock" of table "item" has no escrow counters');
SELECT throws_ok($$SELECT interlock.adjust('item', 1, 'stock', -1)$$, '55000', 'column "stock" of table "item" has no escrow counters');

SELECT lives_ok($$SELECT interlock.enable_escrow('item', 'stock'), interlock.enable_escrow('item', 'price', 0, 1000.5)$$, 'two columns');
SELECT is(interlock.configuration('item'), '{"escrow": {"price": {"maximum": "1000.50", "minimum": "0.00", "plain_updates": "reject", "fold_moves_version": false, "notify": "off"},
    "stock": {"maximum": null, "minimum": "0", "plain_updates": "reject", "fold_moves_version": false, "notify": "off"}}}'::jsonb, 'configuration() has them');
SELECT results_eq($$SELECT mechanism, enforced, cardinality(findings) FROM interlock.guards WHERE rel = 'item'::regclass$$,
    $$VALUES ('escrow', true, 0)$$, 'guards too');
SELECT is_empty($$SELECT interlock.configure('item', interlock.configuration('item'), dry_run => true)$$, 'configure() has nothing to do');

-- adjusting
SELECT is(interlock.adjust('item', 1, 'stock', -3), 7::numeric, 'a take');
SELECT is(interlock.adjust('item', 1, 'stock', 2), 9::numeric, 'a return');
SELECT is(interlock.adjust('item', '{"id": 1}'::jsonb, 'price', 0.25), 1.25, 'numeric, and a key as jsonb');
SELECT is(interlock.adjust('item', '1', 'stock', '-1', '1 s'), 8::numeric, 'untyped');
SELECT is(interlock.escrow_value('item', 1, 'stock'), 8::numeric, 'the value');
SELECT is(interlock.escrow_value('item', 3, 'stock'), NULL, 'of no row');
SELECT results_eq($$SELECT outcome, remaining FROM interlock.try_adjust('item', 1, 'price', 999.26)$$, $$VALUES ('insufficient', 1.25)$$, 'above the maximum');
SELECT throws_ok($$SELECT interlock.adjust('item', 1, 'price', 999.26)$$, 'IL012', 'not enough room in column "price" of table "item" to change it by 999.26');
SELECT throws_ok($$SELECT interlock.adjust('item', 2, 'stock', -1)$$, 'IL012', 'not enough left in column "stock" of table "item" to change it by -1');
SELECT throws_ok($$SELECT interlock.adjust('item', 9, 'stock', -1)$$, 'P0002');
SELECT throws_ok($$SELECT interlock.adjust('item', 1, 'stock', 0)$$, '22023', 'argument "delta" must not be zero');
SELECT throws_ok($$SELECT interlock.adjust('item', 1, 'stock', 'NaN')$$, '22023');
SELECT throws_ok($$SELECT interlock.adjust('item', 1, 'stock', '-Infinity')$$, '22023');
SELECT throws_ok($$SELECT interlock.adjust('item', 1, 'stock', 1e30)$$, '22023', 'argument "delta" is too large');
SELECT throws_ok($$SELECT interlock.adjust('item', 1, 'price', 0.001)$$, '22023', 'argument "delta" must not have more than 2 digits behind the point');
SELECT throws_ok($$SELECT interlock.adjust('item', 1, 'stock', NULL)$$, '22004');
SELECT throws_ok($$SELECT interlock.adjust('item', NULL::int, 'stock', 1)$$, '22004');
SELECT throws_ok($$SELECT interlock.adjust('item', 1, 'nowhere', 1)$$, '42703');
SELECT throws_ok($$SELECT interlock.adjust('item', 1, 'note', 1)$$, '55000');
SELECT throws_ok($$SELECT interlock.adjust('item', 1, 'stock', 1, '-1 s')$$, '22023');
SELECT throws_ok($$SELECT interlock.adjust('pg_class', 1, 'stock', 1)$$, '42809');
SELECT throws_ok($$SELECT interlock.adjust('item', 1, 'stock', 3000000000)$$, 'IL012', NULL, 'beyond the type');
SELECT is(interlock.fold_escrow('item') >= 0, true, 'a fold');
SELECT is((SELECT stock FROM item WHERE id = 1), 8, 'of the row');

-- plain writes
SELECT throws_ok($$UPDATE item SET stock = stock - 1 WHERE id = 1$$, '55000', 'column "stock" of table "item" has escrow counters', 'ESC-11: a plain UPDATE');
SELECT lives_ok($$UPDATE item SET note = 'x', stock = stock WHERE id = 1$$, 'ESC-11: another column');
SELECT throws_ok($$INSERT INTO item VALUES (3, -1)$$, 'IL012', 'value of column "stock" of table "item" is outside of the limits of its escrow counter');
SELECT lives_ok($$INSERT INTO item VALUES (3, 1)$$, 'a new row');
SELECT throws_ok($$MERGE INTO item USING (VALUES (1)) v (i) ON id = i WHEN MATCHED THEN UPDATE SET stock = 1$$, '55000', NULL, 'ESC-11: MERGE');
SELECT throws_ok($$INSERT INTO item VALUES (1, 5) ON CONFLICT (id) DO UPDATE SET stock = excluded.stock$$, '55000', NULL, 'ESC-11: ON CONFLICT');
SELECT lives_ok($$SELECT interlock.set_escrow('item', 1, 'stock', 5)$$, 'set_escrow');
SELECT is((SELECT stock FROM item WHERE id = 1), 5, 'writes the row');
SELECT throws_ok($$SELECT interlock.set_escrow('item', 1, 'stock', -5)$$, '22023', 'argument "value" is outside of the limits of the counter');
SELECT throws_ok($$SELECT interlock.set_escrow('item', 9, 'stock', 5)$$, 'P0002');
SELECT lives_ok($$SELECT interlock.configure('item', '{"escrow": {"stock": {"minimum": "0", "plain_updates": "delta"}}}')$$, 'delta, by configure');
SELECT lives_ok($$UPDATE item SET stock = stock - 2 WHERE id = 1$$, 'is a change by the difference');
SELECT is(interlock.escrow_value('item', 1, 'stock'), 3::numeric, 'of the value');
SELECT throws_ok($$UPDATE item SET stock = stock - 4 WHERE id = 1$$, 'IL012', NULL, 'within the limits');
SELECT throws_ok($$UPDATE item SET stock = NULL WHERE id = 1$$, '23502', NULL, 'and never null');
SELECT lives_ok($$DELETE FROM item WHERE id = 1$$, 'a delete');
SELECT is_empty($$SELECT FROM interlock.escrow WHERE rel = 'item'::regclass AND key = '{1}'$$, 'ends the counters of the row');

-- versions and ownership
SELECT interlock.enable_escrow('item', 'stock');
SELECT interlock.enable_versioning('item'), interlock.adjust('item', 3, 'stock', 4), interlock.fold_escrow('item');
SELECT is((SELECT version FROM item WHERE id = 3), 1::bigint, 'no change of a counter moves the version');
SELECT throws_ok($$SELECT interlock.versioned_update('item', 3, 1, '{"stock": 9}')$$, '55000', NULL, 'no function writes the column');
SELECT throws_ok($$SELECT interlock.own_columns('item', 'shop', '{stock}')$$, '55000', 'column "stock" of table "item" has escrow counters', 'it gets no owner');
SELECT throws_ok($$SELECT interlock.share_columns('item', '{stock}')$$, '55000', 'column "stock" of table "item" has escrow counters', 'and is not shared');

-- privileges
CREATE ROLE escrow_seller;
CREATE ROLE escrow_stranger;
GRANT SELECT (id, stock), UPDATE (stock) ON item TO escrow_seller;
SET LOCAL ROLE escrow_seller;
SELECT is(interlock.adjust('item', 3, 'stock', -1), 4::numeric, 'UPDATE of the column and SELECT of it and the key');
SELECT throws_ok($$SELECT interlock.adjust('item', 3, 'price', 1)$$, '42501', NULL, 'not of another column');
SELECT throws_ok($$SELECT interlock.enable_escrow('item', 'stock')$$, '42501', NULL, 'only the owner enables');
SELECT throws_ok($$SELECT interlock.disable_escrow('item', 'stock')$$, '42501', NULL, 'and disables');
SELECT isnt_empty($$SELECT FROM interlock.escrow WHERE column_name = 'stock'$$, 'the view has what the role may read');
SELECT is_empty($$SELECT FROM interlock.escrow WHERE column_name = 'price'$$, 'and nothing else');
SET LOCAL ROLE escrow_stranger;
SELECT throws_ok($$SELECT interlock.adjust('item', 3, 'stock', -1)$$, '42501');
SELECT throws_ok($$SELECT interlock.escrow_value('item', 3, 'stock')$$, '42501');
SELECT throws_ok($$SELECT interlock.set_escrow('item', 3, 'stock', 1)$$, '42501');
SELECT throws_ok($$SELECT interlock.fold_escrow('item')$$, '42501');
SELECT is_empty($$SELECT FROM interlock.escrow$$, 'a stranger sees nothing');
SELECT throws_ok($$SELECT * FROM interlock_internal.escrow_part$$, '42501');
RESET ROLE;

-- more than one change can have
CREATE TABLE deep (id int PRIMARY KEY, n bigint NOT NULL);
SELECT interlock.enable_escrow('deep', 'n', -5, plain_updates => 'delta');
INSERT INTO deep VALUES (1, 9223372036854775807);
SELECT throws_ok('UPDATE deep SET n = -1', '22003', 'the change of escrow column "n" is too large');
SELECT lives_ok('UPDATE deep SET n = n - 1000000000000000000', 'the largest one');

-- the end
SELECT lives_ok($$SELECT interlock.disable_escrow('item', 'stock')$$, 'disabled');
SELECT lives_ok($$UPDATE item SET stock = 1 WHERE id = 3$$, 'plain again');
TRUNCATE item CASCADE;
SELECT is_empty($$SELECT FROM interlock.escrow WHERE rel = 'item'::regclass$$, 'TRUNCATE ends the counters');

SELECT * FROM finish();
ROLLBACK;
