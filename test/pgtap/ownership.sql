-- What writers and owners of tables rely on.
BEGIN;
SELECT plan(41);

CREATE TABLE doc (id int PRIMARY KEY, title text, price numeric, tags text[], hits int, qty int, total int);
INSERT INTO doc VALUES (1, 'title', 10, '{a}', 0, 1, 10), (2, 'title', 10, '{a}', 0, 1, 10);
CREATE ROLE tap_writer;
SELECT interlock.grant_writer('editor', 'tap_writer'), interlock.grant_writer('importer', 'tap_writer');
SELECT interlock.enable_versioning('doc');
SELECT lives_ok($$SELECT interlock.own_columns('doc', 'editor', '{title}', on_violation => 'skip')$$, 'own_columns');
SELECT lives_ok($$SELECT interlock.own_columns('doc', 'importer', '{price}')$$, 'for two writers');
SELECT lives_ok($$SELECT interlock.share_columns('doc', '{tags,hits}', 'merge')$$, 'share_columns');
SELECT lives_ok($$SELECT interlock.group_columns('doc', '{qty,total}')$$, 'group_columns');
SELECT results_eq($$SELECT column_name, writer, on_violation, strategy, group_number, forced FROM interlock.column_ownership WHERE rel = 'doc'::regclass ORDER BY 1$$,
    $$VALUES ('hits'::name, NULL, NULL, 'merge', NULL::int, 0::bigint), ('price', 'importer', 'reject', NULL, NULL, 0), ('qty', NULL, NULL, NULL, 1, 0),
      ('tags', NULL, NULL, 'merge', NULL, 0), ('title', 'editor', 'skip', NULL, NULL, 0), ('total', NULL, NULL, NULL, 1, 0)$$, 'column_ownership');

-- OWN-4: nobody
SELECT throws_ok($$UPDATE doc SET price = 11 WHERE id = 1$$, 'IL007', 'column "price" of table "doc" belongs to writer "importer"');
-- OWN-9
SELECT lives_ok($$UPDATE doc SET price = price, hits = 0 WHERE id = 1$$, 'unchanged columns claim nothing');
SELECT results_eq($$UPDATE doc SET title = 'nobody''s', hits = 1 WHERE id = 1 RETURNING title, hits$$, $$VALUES ('title', 1)$$, 'skip keeps the stored value');
SELECT results_eq($$SELECT decision, columns, owner, writer, stored, given FROM interlock.skipped_writes WHERE rel = 'doc'::regclass$$,
    $$VALUES ('skipped', '{title}'::text[], 'editor', NULL::text, '{"title": "title"}'::jsonb, '{"title": "nobody''s"}'::jsonb)$$, 'and skipped_writes tells');

SELECT lives_ok($$SELECT interlock.set_writer('editor')$$, 'set_writer');
SELECT results_eq($$UPDATE doc SET title = 'new' WHERE id = 1 RETURNING title$$, $$VALUES ('new')$$, 'the owner writes');
SELECT throws_ok($$UPDATE doc SET price = 11 WHERE id = 1$$, 'IL007');
SELECT interlock.set_writer('importer');
-- OWN-2
SELECT results_eq($$UPDATE doc SET title = 'title', price = 11 WHERE id = 1 RETURNING title, price$$, $$VALUES ('new', 11::numeric)$$, 'a stale save takes nothing back');
SELECT throws_ok($$SELECT interlock.versioned_update('doc', 2, 1, '{"price": 11, "nothing": 1}')$$, '42703');
SELECT lives_ok($$SELECT interlock.versioned_update('doc', 2, 1, '{"price": 11}')$$, 'the functions are writers as well');

-- OWN-3
SELECT results_eq($$SELECT outcome, current->'tags', current->'hits' FROM interlock.try_versioned_update('doc', 2, 1, '{"tags": ["a", "b"], "hits": 2}', '{"tags": ["a"], "hits": 0}', 'merge')$$,
    $$VALUES ('merged', '["a", "b"]'::jsonb, '2'::jsonb)$$, 'a change of one side');
SELECT results_eq($$SELECT outcome, current->'tags', current->'hits' FROM interlock.try_versioned_update('doc', 2, 1, '{"tags": ["c"], "hits": 3}', '{"tags": ["a"], "hits": 0}', 'merge')$$,
    $$VALUES ('merged', '["b", "c"]'::jsonb, '5'::jsonb)$$, 'changes of both');
SELECT results_eq($$SELECT decision, columns FROM interlock.skipped_writes WHERE rel = 'doc'::regclass AND decision = 'merged'$$,
    $$VALUES ('merged', '{tags,hits}'::text[])$$, 'are logged');
-- OWN-7
SELECT lives_ok($$UPDATE doc SET qty = 2 WHERE id = 2$$, 'a column of a group');
SELECT results_eq($$SELECT outcome, conflicts FROM interlock.try_versioned_update('doc', 2, 1, '{"total": 20}', '{"qty": 1, "total": 10}', 'merge')$$,
    $$VALUES ('conflict', '{total}'::text[])$$, 'conflicts with the others');

-- OWN-8
SELECT interlock.set_writer('admin', force => true);
SELECT results_eq($$UPDATE doc SET price = 13 WHERE id = 1 RETURNING price$$, $$VALUES (13::numeric)$$, 'force');
SELECT results_eq($$SELECT key, columns, owner, writer, stored, given FROM interlock.forced_writes WHERE rel = 'doc'::regclass$$,
    $$VALUES ('{"id": 1}'::jsonb, '{price}'::text[], 'importer', 'admin', '{"price": 11}'::jsonb, '{"price": 13}'::jsonb)$$, 'is logged');
SELECT results_eq($$SELECT forced FROM interlock.column_ownership WHERE rel = 'doc'::regclass AND column_name = 'price'$$, $$VALUES (1::bigint)$$, 'and counted');

-- OWN-6
SELECT lives_ok($$SELECT interlock.hand_over_columns('doc', '{price}', 'editor')$$, 'hand_over_columns');
SELECT interlock.set_writer('importer');
SELECT throws_ok($$UPDATE doc SET price = 14 WHERE id = 1$$, 'IL007');
-- OWN-5, C12
CREATE FUNCTION set_price() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN NEW.price := 99; RETURN NEW; END';
CREATE TRIGGER other BEFORE UPDATE OF hits ON doc FOR EACH ROW EXECUTE FUNCTION set_price();
SELECT throws_ok($$UPDATE doc SET hits = 9 WHERE id = 1$$, 'IL007');
ALTER TRIGGER other ON doc RENAME TO zzz_other;
SELECT throws_ok($$UPDATE doc SET qty = 9 WHERE id = 1$$, '55000');
DROP TRIGGER zzz_other ON doc;
-- OWN-10
ALTER TABLE doc RENAME price TO cost;
SELECT throws_ok($$UPDATE doc SET qty = 9 WHERE id = 1$$, '55000');
SELECT lives_ok($$SELECT interlock.release_columns('doc', '{price,title,tags,hits}'), interlock.ungroup_columns('doc', '{qty,total}')$$, 'release_columns, ungroup_columns');
SELECT is_empty($$SELECT * FROM interlock.column_ownership WHERE rel = 'doc'::regclass$$, 'no rules are left');

-- OWN-50: '*' means all scopes of idempotency, and no writer
SELECT throws_ok($$SELECT interlock.grant_writer('*', 'public')$$, '22023', 'argument "writer" must not be "*"');
SELECT throws_ok($$SELECT interlock.set_writer('*')$$, '22023');
SELECT throws_ok($$SELECT interlock.own_columns('doc', '*', '{price}', 'reject')$$, '22023');
-- and one rule says everywhere whether a column has another value: as JSON
CREATE TABLE equal (id int PRIMARY KEY, n numeric, f float8, j json, ns numeric[], doc jsonb);
INSERT INTO equal VALUES (1, 1.0, '0', '{"a": 1, "b": 2}', '{1.0}', '[1.0]');
SELECT interlock.enable_versioning('equal'), interlock.enable_history('equal'), interlock.own_columns('equal', 'owner', '{n,f,j,ns,doc}', 'reject');
SELECT interlock.set_writer('importer');
SELECT lives_ok($$UPDATE equal SET n = 1.00, f = '-0', j = '{"b":2,"a":1}', ns = '{1.00}', doc = '[1.00]'$$, 'OWN-50: more digits are no other number for own_columns');
SELECT results_eq('SELECT changed FROM equal_history ORDER BY id DESC LIMIT 1', $$VALUES ('{version}'::text[])$$, 'nor for the history');
SELECT results_eq($$SELECT row_data->>'n' FROM equal_history ORDER BY id DESC LIMIT 1$$, $$VALUES ('1.00')$$, 'which has what is stored');
SELECT throws_ok('UPDATE equal SET n = 1.01', 'IL007');
SELECT throws_ok($$UPDATE equal SET ns = '[0:0]={1.0}'$$, 'IL007');
SELECT interlock.set_writer('owner');
UPDATE equal SET n = 1.0;
SELECT results_eq($$SELECT outcome, version FROM interlock.try_revert_row('equal', 1, to_version => 2)$$, $$VALUES ('unchanged', 3::bigint)$$, 'nor for a revert');
SELECT results_eq($$SELECT outcome FROM interlock.try_versioned_update('equal', 1, 1, '{"n": 2}', '{"n": 1}', 'merge')$$, $$VALUES ('merged')$$, 'nor for a merge');
SELECT throws_ok($$SELECT interlock.hand_over_columns('equal', '{n}', '*')$$, '22023');

SELECT * FROM finish();
ROLLBACK;
