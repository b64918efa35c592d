-- CFG-1 to CFG-3: configure brings a table to its settings, by the statements that it returns, and says what is wrong with them before.
BEGIN;
SELECT * FROM no_plan();
SET client_min_messages = error;

CREATE TABLE product (id int PRIMARY KEY, name text, price numeric, stock int, status text NOT NULL DEFAULT 'draft', kind smallint, thumbnail text);
CREATE FUNCTION changes(settings jsonb, dry_run boolean = false, rel regclass = 'product') RETURNS text[] LANGUAGE sql AS
    $$SELECT coalesce(array_agg(regexp_replace(change, '^SELECT interlock\.(\w+)\(''public\.\w+''(, )?(.*)\);$', '\1 \3') ORDER BY n), '{}')
      FROM interlock.configure(rel, settings, dry_run) WITH ORDINALITY c (change, n)$$;
CREATE FUNCTION hint_of(statement text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE message text; hint text;
BEGIN
    EXECUTE statement;
    RETURN 'no error';
EXCEPTION WHEN OTHERS THEN
    GET STACKED DIAGNOSTICS message = MESSAGE_TEXT, hint = PG_EXCEPTION_HINT;
    RETURN concat_ws(' | ', SQLSTATE, message, nullif(hint, ''));
END $$;

-- one of each
SELECT is(interlock.configuration('product'), '{}', 'nothing is configured');
SELECT is(changes('{}'), '{}', 'and nothing is wanted');
SELECT is(changes('{"versioning": null, "transitions": null, "marker": null, "history": null, "ownership": null, "require_lease": null}'), '{}', 'nor removed');
SELECT is(changes('{"versioning": {"version_column": "v"}}', true), ARRAY['enable_versioning version_column => ''v'''], 'dry_run: what would be run');
SELECT is(interlock.configuration('product'), '{}', 'and nothing has been');
SELECT hasnt_column('product', 'v', 'nor added');
SELECT is(changes('{"versioning": {"version_column": "v"}}'), ARRAY['enable_versioning version_column => ''v'''], 'what has been run');
SELECT has_column('product', 'v', 'was run');
SELECT is(changes('{"versioning": {"version_column": "v"}}'), '{}', 'once');
SELECT is(interlock.configuration('product'), '{"versioning": {"version_column": "v", "ignore_columns": [], "blind_updates": "allow", "unchanged": "move"}}', 'defaults are shown');
SELECT is((SELECT change FROM interlock.configure('product', '{"versioning": {"ignore_columns": ["thumbnail"]}}')),
    $$SELECT interlock.enable_versioning('public.product', version_column => 'v', ignore_columns => '{thumbnail}');$$, 'a statement that can be pasted');
SELECT is(changes('{"versioning": {"blind_updates": "reject"}}'),
    ARRAY['enable_versioning version_column => ''v'', ignore_columns => ''{thumbnail}'', blind_updates => ''reject'''], 'an argument that is not named keeps its value');
SELECT is(changes('{"versioning": {"ignore_columns": null}}'), ARRAY['enable_versioning version_column => ''v'', blind_updates => ''reject'''], 'null sets the default');
SELECT is(changes('{"versioning": {"ignore_columns": ["name", "thumbnail"]}}'),
    ARRAY['enable_versioning version_column => ''v'', ignore_columns => ''{name,thumbnail}'', blind_updates => ''reject'''], 'several columns');
SELECT is(changes('{"versioning": {"ignore_columns": ["thumbnail", "name", "name"]}}'), '{}', 'in any order');

-- transitions, by column
SELECT is(changes('{"transitions": {"status": {"transitions": {"draft": ["public", "gone"]}, "initial": ["draft"]}, "kind": {"transitions": {"1": [2, "03"]}, "initial": [1]}}}'),
    ARRAY['define_transitions state_column => ''kind'', transitions => ''{"1": [2, "03"]}'', initial => ''{1}''',
          'define_transitions state_column => ''status'', transitions => ''{"draft": ["public", "gone"]}'', initial => ''{draft}'''], 'transitions of two columns');
SELECT is(changes('{"transitions": {"kind": {"transitions": {"1": ["3", "2"]}, "initial": ["01"]}}}'), '{}', 'states in another form');
SELECT is(changes('{"transitions": {"kind": {"on_repeat": "reject"}}}'),
    ARRAY['define_transitions state_column => ''kind'', transitions => ''{"1": ["2", "3"]}'', initial => ''{1}'', on_repeat => ''reject'''], 'one argument');
SELECT is(interlock.configuration('product')->'transitions', '{"kind": {"transitions": {"1": ["2", "3"]}, "initial": ["1"], "on_repeat": "reject", "guards": {}},
    "status": {"transitions": {"draft": ["gone", "public"]}, "initial": ["draft"], "on_repeat": "allow", "guards": {}}}', 'the other column stays');
CREATE FUNCTION may(old product, new product) RETURNS boolean LANGUAGE sql AS 'SELECT true';
SELECT is(cardinality(changes('{"transitions": {"status": {"guards": {"draft": {"public": "may(product, product)"}}}}}')), 1, 'a guard');
SELECT is(interlock.configuration('product')#>>'{transitions,status,guards}', '{"draft": {"public": "public.may(public.product,public.product)"}}', 'with its schema');
SELECT is(changes('{"transitions": {"status": {"guards": {"draft": {"public": "public.may(product,public.product)"}}}}}'), '{}', 'the same guard in other words');
SELECT is(changes(interlock.configuration('product')), '{}', 'the same configuration');
SELECT is(changes('{"transitions": {"kind": null}}'), ARRAY['drop_transitions state_column => ''kind'''], 'one is removed');
SELECT is((SELECT array_agg(k) FROM jsonb_object_keys(interlock.configuration('product')->'transitions') k), '{status}', 'the other stays');

-- markers: durations, and an index that is there
SELECT is(changes('{"marker": {"ttl": 90, "notify": "yes"}}'), ARRAY['enable_marker ttl => ''00:01:30'', notify => ''yes'''], 'seconds');
SELECT is(changes('{"marker": {"ttl": "1 min 30 s", "notify": "on", "status_column": null, "enforce": true}}'), '{}', 'another form of it');
SELECT is(interlock.configuration('product')->'marker', '{"ttl": "00:01:30", "enforce": true, "notify": "on", "status_column": "lock_status", "holder_column": "lock_by",
    "time_column": "lock_time", "until_column": "lock_until", "reason_column": "lock_reason", "sweep_index": true, "take_over": "expired"}', 'a marker');
SELECT is(changes('{"marker": {"notify": "full", "ttl": "36 h"}}'), ARRAY['enable_marker ttl => ''1 day 12:00:00'', notify => ''full'', status_column => ''lock_status'', holder_column => ''lock_by'', time_column => ''lock_time'', until_column => ''lock_until'', reason_column => ''lock_reason'''], 'another notify');
SELECT is(interlock.configuration('product')#>>'{marker,notify}', 'full', 'is read');
SELECT is(cardinality(changes('{"marker": {"sweep_index": false, "notify": "off"}}')), 1, 'without the index');
SELECT is(changes('{"marker": {"sweep_index": false, "notify": "off"}}'), '{}', 'once');
CREATE INDEX ON product (lock_until);
SELECT is(changes('{"marker": {"sweep_index": false}}'), '{}', 'an index of the owner stays');
SELECT is(interlock.configuration('product')#>'{marker,sweep_index}', 'true', 'and serves');
SELECT is(changes('{"marker": {"sweep_index": true}}'), '{}', 'so that no other is needed');

-- history
SELECT is(changes('{"history": {"keep_versions": 3, "keep_for": "30 days", "ignore_columns": ["thumbnail"], "ignore_writers": ["system"], "notify": "full", "record_markers": true, "whole_every": 16}}'),
    ARRAY['enable_history keep_versions => 3, keep_for => ''30 days'', ignore_columns => ''{thumbnail}'', ignore_writers => ''{system}'', notify => ''full'', record_markers => true, whole_every => 16'], 'history');
SELECT is(interlock.configuration('product')->'history', '{"keep_versions": 3, "keep_for": "30 days", "ignore_columns": ["thumbnail"], "ignore_writers": ["system"], "notify": "full",
    "record_markers": true, "partition_by": null, "whole_every": 16}', 'is read');
INSERT INTO product VALUES (1, 'mug');
SELECT is(changes('{"history": null}'), ARRAY['disable_history '], 'removed');
SELECT is((SELECT count(*) FROM product_history), 1::bigint, 'its entries stay');
SELECT is(changes('{"history": {}}'), ARRAY['enable_history '], 'enabled again');
SELECT is((SELECT count(*) FROM interlock.row_history('product', 1)), 1::bigint, 'with the entries that it had');

-- writers of columns
SELECT is(cardinality(changes('{"versioning": {"ignore_columns": []}}')), 1, 'nothing is ignored');
SELECT is(changes('{"ownership": {"columns": {"price": {"writer": "importer", "on_violation": "skip"}, "stock": {"strategy": "merge"}, "name": {"strategy": "merge"}}, "groups": [["stock", "price"]]}}'),
    ARRAY['group_columns ''{stock,price}''', 'share_columns columns => ''{name,stock}'', strategy => ''merge''', 'own_columns columns => ''{price}'', writer => ''importer'', on_violation => ''skip'''],
    'owned and shared columns');
SELECT is(interlock.configuration('product')->'ownership', '{"columns": {"price": {"writer": "importer", "on_violation": "skip", "once_changed": false}, "stock": {"strategy": "merge", "blind_updates": "allow"},
    "name": {"strategy": "merge", "blind_updates": "allow"}}, "groups": [["price", "stock"]]}', 'are read');
SELECT is(changes('{"ownership": {"columns": {"price": {"writer": "importer"}}}}'), '{}', 'declared again, skip stays skip');
SELECT is(changes('{"ownership": {"columns": {"price": {}, "stock": {}}, "groups": [["price", "stock"]]}}'), '{}', 'nothing named');
SELECT is(changes('{"ownership": {"columns": {"price": {"on_violation": null}}}}'), ARRAY['own_columns columns => ''{price}'', writer => ''importer'''], 'null sets the default');
SELECT is(changes('{"ownership": {"columns": {"price": {"writer": "editor", "on_violation": "skip"}}}}'),
    ARRAY['hand_over_columns columns => ''{price}'', to_writer => ''editor''', 'own_columns columns => ''{price}'', writer => ''editor'', on_violation => ''skip'''], 'another writer');
SELECT is(changes('{"ownership": {"columns": {"price": {"strategy": "retry", "blind_updates": "reject"}, "name": null, "stock": {"writer": "stock"}}}}'),
    ARRAY['release_columns columns => ''{name,price,stock}''', 'share_columns columns => ''{price}'', blind_updates => ''reject''', 'own_columns columns => ''{stock}'', writer => ''stock'''],
    'owned becomes shared, shared becomes owned, and one is free');
SELECT is(changes('{"ownership": {"groups": [["name", "thumbnail"], ["stock", "price"]]}}'), ARRAY['group_columns ''{name,thumbnail}'''], 'a second group');
SELECT is(changes('{"ownership": {"groups": [["name", "thumbnail", "status"]]}}'),
    ARRAY['ungroup_columns ''{name,thumbnail}''', 'ungroup_columns ''{price,stock}''', 'group_columns ''{name,thumbnail,status}'''], 'these groups and no other');
SELECT is(changes('{"versioning": null, "ownership": null}'),
    ARRAY['ungroup_columns ''{name,status,thumbnail}''', 'release_columns columns => ''{price,stock}''', 'disable_versioning '], 'what needs the version goes first');
SELECT is(interlock.configuration('product') ? 'ownership', false, 'gone');
SELECT is(changes('{"ownership": {"columns": {"price": {"blind_updates": "warn"}}}, "versioning": {"version_column": "v"}}'),
    ARRAY['enable_versioning version_column => ''v''', 'share_columns columns => ''{price}'', blind_updates => ''warn'''], 'and comes first');

-- leases
SELECT is(changes('{"require_lease": {"product:{id}": {}, "catalog/{id}": {"columns": ["price", "name"]}}}'),
    ARRAY['require_lease key => ''catalog/{id}'', columns => ''{price,name}''', 'require_lease key => ''product:{id}'''], 'leases');
SELECT is(changes('{"require_lease": {"product:{id}": {"columns": null}, "catalog/{id}": {"columns": ["name", "price"]}}}'), '{}', 'in another order');
SELECT is(changes('{"require_lease": {"product:{id}": null}}'), ARRAY['unrequire_lease key => ''product:{id}'''], 'one is removed');
SELECT is(changes('{"require_lease": null}'), ARRAY['unrequire_lease key => ''catalog/{id}'''], 'all are');

-- children, by parent
CREATE TABLE invoice (id int PRIMARY KEY, version bigint NOT NULL DEFAULT 1);
SELECT interlock.enable_versioning('invoice');
CREATE TABLE line (id int PRIMARY KEY, invoice_id int REFERENCES invoice, credit_of int REFERENCES invoice);
SELECT is(changes('{"guard_children": {"invoice": {"foreign_keys": [["invoice_id"]]}}}', rel => 'line'), ARRAY['guard_children parent => ''public.invoice'', foreign_key => ''{invoice_id}'''], 'children');
SELECT is(interlock.configuration('line'), '{"guard_children": {"public.invoice": {"foreign_keys": [["invoice_id"]]}}}', 'are read');
SELECT is(changes('{"guard_children": {"public.invoice": {"foreign_keys": [["invoice_id"]]}}}', rel => 'line'), '{}', 'once');
SELECT is(changes('{"guard_children": {"invoice": {}}}', rel => 'line'), '{}', 'as they are');
SELECT is(changes('{"guard_children": {"invoice": true}}', rel => 'line'), '{}', 'true is an empty object');
DROP TRIGGER zzz_interlock_children_invoice_id_update ON line;
SELECT is(interlock.configuration('line'), '{"guard_children": {"public.invoice": {"foreign_keys": []}}}', 'without one of its triggers a key is not guarded');
SELECT is(changes('{"guard_children": {"public.invoice": {"foreign_keys": [["invoice_id"]]}}}', rel => 'line'), ARRAY['guard_children parent => ''public.invoice'', foreign_key => ''{invoice_id}'''], 'and is guarded again');
SELECT is(interlock.configuration('line'), '{"guard_children": {"public.invoice": {"foreign_keys": [["invoice_id"]]}}}', 'with all of them');
SELECT is(changes('{"guard_children": {"invoice": {"foreign_keys": [["credit_of"], ["invoice_id"]]}}}', rel => 'line'), ARRAY['guard_children parent => ''public.invoice'', foreign_key => ''{credit_of}'''], 'one more');
SELECT is(changes(interlock.configuration('line'), rel => 'line'), '{}', 'the same');
SELECT results_eq($$SELECT mechanism, enforced, settings FROM interlock.guards WHERE rel = 'line'::regclass$$,
    $$VALUES ('guard_children', true, '{"public.invoice": {"foreign_keys": [["credit_of"], ["invoice_id"]]}}'::jsonb)$$, 'in the view');
SELECT is(changes('{"guard_children": {"invoice": {"foreign_keys": [["credit_of"]]}}}', rel => 'line'),
    ARRAY['unguard_children parent => ''public.invoice''', 'guard_children parent => ''public.invoice'', foreign_key => ''{credit_of}'''], 'one less');
ALTER TABLE line DISABLE TRIGGER USER;
SELECT is((SELECT enforced FROM interlock.guards WHERE rel = 'line'::regclass), false, 'which is off');
SELECT is(changes('{"guard_children": null}', rel => 'line'), ARRAY['unguard_children parent => ''public.invoice'''], 'removed');
SELECT is(interlock.configuration('line'), '{}', 'and gone');
CREATE TABLE note_of_invoice (id int PRIMARY KEY, invoice_id int REFERENCES invoice);
SELECT is(changes('{"guard_children": {"invoice": true}}', rel => 'note_of_invoice'), ARRAY['guard_children parent => ''public.invoice'''], 'true guards the only foreign key');
SELECT is(changes('{"guard_children": {"invoice": null}}', rel => 'note_of_invoice'), ARRAY['unguard_children parent => ''public.invoice'''], 'and null removes that');
SELECT throws_ok($$SELECT interlock.configure('line', '{"guard_children": {"nowhere": {}}}', true)$$, '42P01', NULL, 'a parent that does not exist');

-- all or nothing
SELECT throws_ok($$SELECT interlock.configure('product', '{"marker": null, "history": {"ignore_columns": ["nowhere"]}}')$$, '42703', NULL, 'the last one fails');
SELECT is(interlock.configuration('product') ? 'marker', true, 'and the first has not happened');

-- what is wrong with it
SELECT is(hint_of($$SELECT interlock.configure('product', '{"versionning": {}}')$$),
    '22023 | settings: unknown member "versionning" | Perhaps "versioning" is meant. Members are versioning, transitions, marker, guard_children, require_lease, history, escrow, ownership.', 'an unknown member');
SELECT is(hint_of($$SELECT interlock.configure('product', '{"marker": {"tll": 1}}')$$),
    '22023 | settings: unknown member "marker.tll" | Perhaps "ttl" is meant. Members are ttl, enforce, notify, status_column, holder_column, time_column, until_column, reason_column, sweep_index, take_over.',
    'of a concept');
SELECT is(hint_of($$SELECT interlock.configure('product', '{"ownership": {"columns": {"price": {"writter": "a"}}}}')$$),
    '22023 | settings: unknown member "ownership.columns.price.writter" | Perhaps "writer" is meant. Members are writer, on_violation, once_changed, strategy, blind_updates.', 'of a column');
SELECT is(left(hint_of(format($$SELECT interlock.configure('product', '{"transitions": {"status": {"%s": 1}}}')$$, repeat('x', 300))), 58), '22023 | settings: unknown member "transitions.status.xxxxx', 'a long one');
SELECT is(hint_of(format('SELECT interlock.configure(''product'', %L)', s)), e, s)
  FROM (VALUES
    ('[]', '22023 | argument "settings" must be a jsonb object | For example {"versioning": {"version_column": "version"}}.'),
    ('1', '22023 | argument "settings" must be a jsonb object | For example {"versioning": {"version_column": "version"}}.'),
    ('{"versioning": false}', '22023 | settings: "versioning" must be an object, true for an empty one, or null to remove it'),
    ('{"versioning": {"version_column": 1}}', '22023 | settings: "versioning.version_column" must be a string'),
    ('{"versioning": {"ignore_columns": "name"}}', '22023 | settings: "versioning.ignore_columns" must be an array of strings'),
    ('{"versioning": {"ignore_columns": [null]}}', '22023 | settings: "versioning.ignore_columns" must be an array of strings'),
    ('{"versioning": {"blind_updates": "never"}}', '22023 | unknown value "never" for argument "blind_updates" | Use ''allow'', ''warn'' or ''reject''.'),
    ('{"versioning": {"version_column": "w"}}', '55000 | table "product" is already versioned by column "v" | Disable that first: SELECT interlock.disable_versioning(''public.product'');'),
    ('{"transitions": []}', '22023 | settings: "transitions" must be an object, true for an empty one, or null to remove it'),
    ('{"transitions": {"status": []}}', '22023 | settings: "transitions.status" must be an object, true for an empty one, or null to remove it'),
    ('{"transitions": {"kind": {}}}', '22023 | settings: "transitions.kind.transitions" is missing'),
    ('{"transitions": {"kind": {"transitions": null}}}', '22023 | settings: "transitions.kind.transitions" must not be null'),
    ('{"transitions": {"kind": {"transitions": 1}}}', '22023 | settings: "transitions.kind.transitions" must be an object'),
    ('{"transitions": {"kind": {"transitions": {}, "initial": 1}}}', '22023 | settings: "transitions.kind.initial" must be an array'),
    ('{"transitions": {"kind": {"transitions": {}, "initial": [{}]}}}', '22023 | settings: "transitions.kind.initial" must be a string'),
    ('{"marker": {"enforce": "yes"}}', '22023 | settings: "marker.enforce" must be true or false'),
    ('{"marker": {"ttl": true}}', '22023 | settings: "marker.ttl" must be an interval or a number of seconds'),
    ('{"marker": {"ttl": "soon"}}', '22007 | invalid input syntax for type interval: "soon" | Member "marker.ttl" is an interval or a number of seconds.'),
    ('{"marker": {"ttl": 0}}', '22023 | argument "marker.ttl" must be a duration above zero and at most ten years | For example ''5 min'', or 300 for seconds.'),
    ('{"history": {"keep_versions": 1.5}}', '22023 | settings: "history.keep_versions" must be an integer'),
    ('{"history": {"keep_versions": 3000000000}}', '22023 | settings: "history.keep_versions" must be an integer'),
    ('{"history": {"keep_versions": "5"}}', '22023 | settings: "history.keep_versions" must be an integer'),
    ('{"ownership": {"columns": []}}', '22023 | settings: "ownership.columns" must be an object, true for an empty one, or null to remove it'),
    ('{"ownership": {"columns": {"name": {}}}}', '22023 | settings: "ownership.columns.name" needs a writer or a strategy | A column is owned, {"writer": "importer"}, or shared, {"strategy": "merge"}.'),
    ('{"ownership": {"columns": {"name": {"writer": "a", "strategy": "skip"}}}}', '22023 | settings: "ownership.columns.name" cannot be both owned and shared | A column is owned, {"writer": "importer"}, or shared, {"strategy": "merge"}.'),
    ('{"ownership": {"columns": {"name": {"writer": null}}}}', '22023 | settings: "ownership.columns.name.writer" must be a string'),
    ('{"ownership": {"columns": {"name": {"strategy": "join"}}}}', '22023 | unknown value "join" for argument "strategy" | Use ''retry'', ''skip'' or ''merge''.'),
    ('{"ownership": {"groups": ["name"]}}', '22023 | settings: "ownership.groups" must be an array of strings'),
    ('{"ownership": {"groups": [["name"]]}}', '22023 | settings: "ownership.groups" has a group of fewer than two columns'),
    ('{"require_lease": {"x{": {}}}', '22023 | braces of lease key "x{" do not match | For example product:{id}; write {{ and }} for braces.')) v (s, e);
SELECT throws_ok(format('SELECT interlock.configure(''product'', %L, true)', s), c, NULL, 'found by dry_run: ' || s)
  FROM (VALUES ('{"transitions": {"nowhere": {"transitions": {}}}}', '42703'), ('{"transitions": {"price": {"transitions": {"x": []}}}}', '22P02'),
               ('{"transitions": {"kind": {"transitions": {"1": [2], "01": []}}}}', '22023'), ('{"transitions": {"status": {"guards": {"draft": {"public": "nosuch(product, product)"}}}}}', '42883'),
               ('{"transitions": {"status": {"guards": 5}}}', '22023'), ('{"transitions": {"status": {"guards": {"draft": 5}}}}', '22023'), ('{"transitions": {"status": {"guards": {"x": {"y": "may(product,product)"}}}}}', '22023')) v (s, c);
SELECT throws_ok($$SELECT interlock.configure(NULL, '{}')$$, '22004', 'argument "rel" must not be null');
SELECT throws_ok($$SELECT interlock.configure('product', NULL)$$, '22004', 'argument "settings" must not be null');
SELECT throws_ok($$SELECT interlock.configure('product', '{}', NULL)$$, '22004', 'argument "dry_run" must not be null');
SELECT throws_ok($$SELECT interlock.configuration(NULL)$$, '22004', 'argument "rel" must not be null');
CREATE VIEW seen AS SELECT * FROM product;
CREATE FOREIGN DATA WRAPPER nothing;
CREATE SERVER nothing FOREIGN DATA WRAPPER nothing;
CREATE FOREIGN TABLE far (id int) SERVER nothing;
CREATE TYPE row_type AS (id int);
SELECT throws_ok(format('SELECT interlock.%s', f), c, NULL, f)
  FROM (VALUES ('configure(''seen'', ''{}'')', '42809'), ('configuration(''seen'')', '42809'), ('configure(''far'', ''{}'')', '42809'), ('configuration(''far'')', '42809'),
               ('configure(''pg_class'', ''{}'')', '42809'), ('configuration(''pg_class'')', '42809'), ('configure(1, ''{}'')', '42P01'), ('configuration(1)', '42P01'),
               ('configure(4294967295, ''{}'')', '42P01'), ('configuration(4294967295)', '42P01'), ('configure(0, ''{}'')', '42P01'), ('configuration(0)', '42P01'),
               ('configure(''product_pkey'', ''{}'')', '42809'), ('configuration(''row_type'')', '42809')) v (f, c);

-- rights: those of the functions, and some privilege to see it
CREATE ROLE interlock_anna;
CREATE ROLE interlock_owner;
GRANT CREATE, USAGE ON SCHEMA public TO interlock_owner;
SET ROLE interlock_anna;
SELECT throws_ok($$SELECT interlock.configure('product', '{}', true)$$, '42501', 'must be owner of table product');
SELECT throws_ok($$SELECT interlock.configuration('product')$$, '42501', 'permission denied for table product');
RESET ROLE;
GRANT INSERT (id) ON product TO interlock_anna;
GRANT SELECT, UPDATE ON product TO interlock_anna;
SET ROLE interlock_anna;
SELECT isnt(interlock.configuration('product'), '{}', 'with a privilege');
SELECT throws_ok($$SELECT interlock.configure('product', '{"marker": null}')$$, '42501', 'must be owner of table product');
SET ROLE interlock_owner;
CREATE TABLE own (id int PRIMARY KEY);
SELECT is(changes('{"versioning": {}, "history": {}}', rel => 'own'), '{"enable_versioning ","enable_history "}', 'the owner');
RESET ROLE;
SELECT is((SELECT count(*) FROM interlock.configure('own', '{"marker": {}}')), 1::bigint, 'a superuser');
SELECT is((SELECT string_agg(DISTINCT tableowner, ',') FROM pg_tables WHERE tablename LIKE 'own%'), 'interlock_owner', 'for the owner');

-- names
CREATE SCHEMA "The ""Schema";
CREATE TABLE "The ""Schema"."Ta'ble" ("I d" int PRIMARY KEY, "Sta'te" text, "a\b" text);
SELECT is(changes('{"versioning": {"version_column": "V \"er", "ignore_columns": ["a\\b"]}, "transitions": {"Sta''te": {"transitions": {"it''s": ["a\\\"b,{}"]}, "initial": ["it''s", "null", ""]}},
        "ownership": {"columns": {"a\\b": {"writer": "O''Brien"}}, "groups": [["a\\b", "Sta''te"]]}, "require_lease": {"k/{I d}": {"columns": ["a\\b"]}}, "marker": {"holder_column": "Who?"}}',
        rel => '"The ""Schema"."Ta''ble"') <> '{}', true, 'any names');
SELECT is(changes(interlock.configuration('"The ""Schema"."Ta''ble"'), rel => '"The ""Schema"."Ta''ble"'), '{}', 'are the same');
CREATE TEMP TABLE mine (id int PRIMARY KEY);
SELECT is((SELECT array_agg(change) FROM interlock.configure('mine', '{"versioning": {}}')), ARRAY['SELECT interlock.enable_versioning(''pg_temp.mine'');'], 'a temporary table');
SELECT is((SELECT count(*) FROM interlock.configure('mine', '{"versioning": {}}')), 0::bigint, 'once');

-- partitions are configured with their parent
CREATE TABLE part (id int PRIMARY KEY, status text, lock_status int2 NOT NULL DEFAULT 0) PARTITION BY RANGE (id);
CREATE TABLE part_1 PARTITION OF part FOR VALUES FROM (0) TO (10);
SELECT is(cardinality(changes('{"versioning": {}, "transitions": {"status": {"transitions": {"a": ["b"]}}}, "marker": {}, "history": {}, "ownership": {"columns": {"status": {"strategy": "skip"}}}, "require_lease": {"p/{id}": {}}}',
    rel => 'part')), 6, 'a partitioned table');
SELECT is(interlock.configuration('part_1'), interlock.configuration('part'), 'a partition has what its parent has');
SELECT is(changes(interlock.configuration('part'), rel => 'part'), '{}', 'the same for the parent');
SELECT is(changes(interlock.configuration('part'), rel => 'part_1'), '{}', 'and for the partition');
SELECT throws_ok(format('SELECT interlock.configure(''part_1'', %L)', s), '55000', 'table "part_1" is a partition and configured with its parent', s)
  FROM (VALUES ('{"versioning": null}'), ('{"versioning": {"blind_updates": "warn"}}'), ('{"transitions": null}'), ('{"transitions": {"status": {"on_repeat": "reject"}}}'), ('{"marker": null}'), ('{"marker": {"ttl": 5}}'),
               ('{"history": null}'), ('{"ownership": null}'), ('{"ownership": {"columns": {"status": {"strategy": "merge"}}}}'), ('{"require_lease": null}'), ('{"require_lease": {"p/{id}": {"columns": ["status"]}}}')) v (s);
CREATE TABLE part_2 PARTITION OF part FOR VALUES FROM (10) TO (20);
SELECT is(interlock.configuration('part_2'), interlock.configuration('part'), 'a new one');
ALTER TABLE part DETACH PARTITION part_2;
SELECT is(interlock.configuration('part_2'), '{}', 'and none that is one no more');

-- renamed and dropped between
ALTER TABLE product RENAME TO goods;
ALTER FUNCTION may RENAME TO might;
ALTER TABLE goods RENAME COLUMN status TO state;
SELECT is(interlock.configuration('goods')#>>'{transitions,status,guards,draft,public}', 'public.might(public.goods,public.goods)', 'a renamed guard, and a column under its old name');
SELECT throws_ok($$SELECT interlock.configure('goods', interlock.configuration('goods'))$$, '42703', NULL, 'which is not there');
SELECT is((SELECT array_agg(change) FROM interlock.configure('goods', '{"transitions": {"status": null, "state": {"transitions": {"draft": []}}}}')),
    ARRAY[$$SELECT interlock.drop_transitions('public.goods', state_column => 'status');$$, $$SELECT interlock.define_transitions('public.goods', state_column => 'state', transitions => '{"draft": []}');$$], 'is declared for the current name');
SELECT is(interlock.configuration('goods')->'transitions' ? 'status', false, 'and no more for the old one');

-- who sees it
CREATE ROLE interlock_watcher IN ROLE pg_monitor;
CREATE ROLE interlock_other;
SET ROLE interlock_watcher;
SELECT isnt_empty($$SELECT FROM interlock.guards WHERE rel = 'goods'::regclass$$, 'pg_monitor sees what is configured on all tables');
SELECT isnt_empty($$SELECT FROM interlock.advise()$$, 'and what advise finds');
SET ROLE interlock_other;
SELECT is_empty($$SELECT FROM interlock.guards WHERE rel = 'goods'::regclass$$, 'others do not without a privilege');
RESET ROLE;

SELECT * FROM finish();
ROLLBACK;
