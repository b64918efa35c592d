-- guard_children: what it needs, whose it is, what it leaves. What the guard does is in test/sql/children.sql, whose statements
-- have transactions of their own.
BEGIN;
SELECT plan(44);

CREATE TABLE doc (id int PRIMARY KEY, code text NOT NULL UNIQUE DEFAULT gen_random_uuid(), total int DEFAULT 0);
CREATE TABLE line (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, doc_id int REFERENCES doc ON DELETE CASCADE ON UPDATE CASCADE, qty int);
CREATE TABLE part (id int PRIMARY KEY, line_id int REFERENCES line ON DELETE CASCADE, size int);
SELECT interlock.enable_versioning('doc');

-- what it needs (bad input)
CREATE VIEW doc_view AS SELECT * FROM doc;
CREATE TABLE loose (id int PRIMARY KEY, doc_id int);
CREATE TABLE transfer (id int PRIMARY KEY, from_doc int REFERENCES doc, to_doc int REFERENCES doc);
CREATE TABLE bare (id int PRIMARY KEY);
CREATE TABLE bare_line (id int PRIMARY KEY, bare_id int REFERENCES bare);
CREATE TABLE indexed (id int PRIMARY KEY, version bigint NOT NULL DEFAULT 1, UNIQUE (id, version));
CREATE TABLE indexed_line (id int PRIMARY KEY, indexed_id int REFERENCES indexed);
CREATE TABLE tree (id int PRIMARY KEY, up int REFERENCES tree);
CREATE TABLE nullable (id int PRIMARY KEY, code text UNIQUE);
CREATE TABLE nullable_line (id int PRIMARY KEY, code text REFERENCES nullable (code));
SELECT interlock.enable_versioning('indexed'), interlock.enable_versioning('tree'), interlock.enable_versioning('nullable');
SELECT throws_ok($$SELECT interlock.guard_children('loose', 'doc')$$, '22023', 'table "loose" has no foreign key to table "doc"');
SELECT throws_ok($$SELECT interlock.guard_children('transfer', 'doc')$$, '22023', NULL, 'several foreign keys');
SELECT throws_ok($$SELECT interlock.guard_children('transfer', 'doc', '{id}')$$, '22023', NULL, 'columns of no foreign key');
SELECT throws_ok($$SELECT interlock.guard_children('transfer', 'doc', '{nowhere}')$$, '42703');
SELECT throws_ok($$SELECT interlock.guard_children('transfer', 'doc', '{}')$$, '22023');
SELECT throws_ok($$SELECT interlock.guard_children('transfer', 'doc', '{NULL}')$$, '22004');
SELECT throws_ok($$SELECT interlock.guard_children('bare_line', 'bare')$$, '55000', 'table "bare" has neither versions nor markers');
SELECT throws_ok($$SELECT interlock.guard_children('indexed_line', 'indexed')$$, '55000',
    'version column "version" of table "indexed" is in unique index "indexed_id_version_key"');
SELECT throws_ok($$SELECT interlock.guard_children('tree', 'tree')$$, '55000', NULL, 'its own parent');
SELECT throws_ok($$SELECT interlock.guard_children('nullable_line', 'nullable')$$, '55000', NULL, 'a key with nulls');
SELECT throws_ok($$SELECT interlock.guard_children('line', 'doc_view')$$, '42809');
SELECT throws_ok($$SELECT interlock.guard_children('doc_view', 'doc')$$, '42809');
SELECT throws_ok($$SELECT interlock.guard_children('pg_class', 'doc')$$, '42809');
SELECT throws_ok($$SELECT interlock.guard_children(NULL, 'doc')$$, '22004');
SELECT throws_ok($$SELECT interlock.guard_children('line', NULL)$$, '22004');
SELECT throws_ok($$SELECT interlock.guard_children('line', 1)$$, '42P01');
SELECT throws_ok($$SELECT interlock.unguard_children('line', 'doc')$$, '55000', 'rows of table "line" are not guarded as children of table "doc"');

SELECT lives_ok($$SELECT interlock.guard_children('line', 'doc')$$, 'guarded');
SELECT lives_ok($$SELECT interlock.guard_children('line', 'doc', '{doc_id}')$$, 'again: it stays');
SELECT is(count(*), 3::bigint, 'by three triggers') FROM pg_trigger WHERE tgrelid = 'line'::regclass AND NOT tgisinternal;

-- a circle through other tables
ALTER TABLE doc ADD line_id int REFERENCES line;
SELECT throws_ok($$SELECT interlock.guard_children('doc', 'line')$$, '55000', 'table "line" has neither versions nor markers');
SELECT interlock.enable_versioning('line');
SELECT throws_ok($$SELECT interlock.guard_children('doc', 'line')$$, '55000', 'rows of table "doc" cannot be children of table "line"');
SELECT interlock.disable_versioning('line');
ALTER TABLE doc DROP line_id;

SELECT is(pg_get_triggerdef(oid), 'CREATE CONSTRAINT TRIGGER zzz_interlock_children_doc_id_insert AFTER INSERT ON public.line '
    'DEFERRABLE INITIALLY DEFERRED FOR EACH ROW WHEN (interlock_internal.changes_parent(''doc''::regclass, new.tableoid, new.doc_id)) '
    'EXECUTE FUNCTION interlock_internal.children_trigger()', 'which no name but that of the table is in')
  FROM pg_trigger WHERE tgrelid = 'line'::regclass AND tgname LIKE '%insert';

-- of whom: the owner of the children, with TRIGGER on the parent
CREATE ROLE tap_children_owner;
CREATE ROLE tap_children_other;
ALTER TABLE loose OWNER TO tap_children_owner;
ALTER TABLE loose ADD FOREIGN KEY (doc_id) REFERENCES doc;
SET LOCAL ROLE tap_children_owner;
SELECT throws_ok($$SELECT interlock.guard_children('loose', 'doc')$$, '42501', 'permission denied for table doc', 'without TRIGGER on the parent');
SELECT throws_ok($$SELECT interlock.guard_children('line', 'doc')$$, '42501', 'must be owner of table line', 'not the owner');
SELECT throws_ok($$SELECT interlock.unguard_children('line', 'doc')$$, '42501', 'must be owner of table line', 'nor to end it');
RESET ROLE;
GRANT TRIGGER ON doc TO tap_children_owner;
SET LOCAL ROLE tap_children_owner;
SELECT lives_ok($$SELECT interlock.guard_children('loose', 'doc')$$, 'with it');
SELECT lives_ok($$SELECT interlock.unguard_children('loose', 'doc')$$, 'and ended');
RESET ROLE;
SELECT is(count(*), 0::bigint, 'nothing is left') FROM pg_trigger WHERE tgrelid = 'loose'::regclass AND NOT tgisinternal;

-- a partition is guarded with its table
CREATE TABLE parted (id int, doc_id int REFERENCES doc) PARTITION BY RANGE (id);
CREATE TABLE parted_one PARTITION OF parted FOR VALUES FROM (1) TO (100);
SELECT interlock.guard_children('parted', 'doc');
SELECT throws_ok($$SELECT interlock.guard_children('parted_one', 'doc')$$, '55000', 'table "parted_one" is a partition and configured with its parent');
SELECT throws_ok($$SELECT interlock.unguard_children('parted_one', 'doc')$$, '55000', 'table "parted_one" is a partition and configured with its parent');

-- parameters without a type
PREPARE untyped AS SELECT interlock.guard_children($1, $2, $3);
SELECT is(parameter_types::text, '{regclass,regclass,name[]}', 'parameters without a type') FROM pg_prepared_statements WHERE name = 'untyped';
SELECT lives_ok($$EXECUTE untyped('transfer', 'doc', '{from_doc}')$$, 'work');
SELECT lives_ok($$SELECT interlock.guard_children('transfer', 'doc', '{to_doc}')$$, 'a second foreign key to the same table');
SELECT is(count(*), 6::bigint, 'has triggers of its own') FROM pg_trigger WHERE tgrelid = 'transfer'::regclass AND NOT tgisinternal;
SELECT lives_ok($$SELECT interlock.unguard_children('transfer', 'doc')$$, 'both are ended');
SELECT is(count(*), 0::bigint, 'by one call') FROM pg_trigger WHERE tgrelid = 'transfer'::regclass AND NOT tgisinternal;

-- only such a trigger asks and moves
INSERT INTO doc VALUES (1);
INSERT INTO line (doc_id) VALUES (1);
SELECT throws_ok($$SELECT interlock_internal.changes_parent('doc'::regclass, tableoid, doc_id) FROM line$$, '39P01', NULL, 'not by hand');
SELECT throws_ok($$SELECT interlock_internal.changes_parent('doc'::regclass, 'line'::regclass, 1)$$, '39P01', NULL, 'nor with constants');
SELECT throws_ok($$SELECT interlock_internal.changes_parent()$$, NULL, NULL, 'nor without arguments');
SELECT throws_ok($$UPDATE line SET qty = 1 WHERE interlock_internal.changes_parent('doc'::regclass, tableoid, doc_id)$$, '39P01', NULL, 'nor in WHERE');
SELECT throws_ok($$SELECT interlock_internal.children_trigger()$$, '39P01', NULL, 'a trigger function');
CREATE TRIGGER zzzz_both AFTER INSERT OR UPDATE ON line FOR EACH ROW
    WHEN (interlock_internal.changes_parent('doc'::regclass, new.tableoid, new.doc_id)) EXECUTE FUNCTION interlock_internal.children_trigger();
SELECT is(findings, ARRAY['trigger "zzzz_both" is not as interlock.guard_children creates it: writes are refused'], 'a trigger of two events')
  FROM interlock.guards WHERE rel = 'line'::regclass;
DROP TRIGGER zzzz_both ON line;
INSERT INTO doc VALUES (2);
CREATE TRIGGER a_argument AFTER INSERT ON line FOR EACH ROW
    WHEN (interlock_internal.changes_parent('doc'::regclass, new.tableoid, new.doc_id)) EXECUTE FUNCTION interlock_internal.children_trigger('x');
SELECT throws_ok('INSERT INTO line (doc_id) VALUES (2)', '39P01', 'trigger "a_argument" of table "line" is not as interlock.guard_children creates it', 'a trigger with an argument');
DROP TRIGGER a_argument ON line;
SELECT * FROM finish();
ROLLBACK;
