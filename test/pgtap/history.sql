-- What callers of version history rely on.
BEGIN;
SELECT plan(36);

CREATE TABLE page (id int PRIMARY KEY, body text);
SELECT interlock.enable_versioning('page');
SELECT interlock.enable_history('page', 10, '30 days');
SELECT is_empty($$SELECT attname FROM pg_attribute WHERE attrelid = 'page_history'::regclass AND quote_ident(attname) <> attname$$,
    'no column of a history table needs quotes');

SELECT has_table('page_history');
SELECT has_column('public', 'page_history', c, c) FROM unnest('{id,key,version,changed_at,writer,changed_by,operation,row_data,changed,before,transaction,command,writer_from,context}'::text[]) c;
-- ORM-3: tools for schemas know these types, and the number is that of the transaction
SELECT set_eq($$SELECT DISTINCT atttypid::regtype::text FROM pg_attribute WHERE attrelid = 'page_history'::regclass AND attnum > 0$$,
    ARRAY['bigint', 'integer', 'jsonb', 'text', 'text[]', 'timestamp with time zone'], 'ORM-3: types of the history table');
INSERT INTO page VALUES (1, 'a');
SELECT results_eq('SELECT transaction::text::xid8 FROM page_history', 'SELECT pg_current_xact_id()', 'ORM-3: the number of the transaction');
SELECT results_eq('SELECT pg_visible_in_snapshot(transaction::text::xid8, pg_snapshot(transaction || '':'' || transaction || '':'')) FROM page_history',
    'VALUES (false)', 'ORM-3: and snapshots are asked about it');
SELECT interlock.set_writer('anna');
UPDATE page SET body = 'b';
SELECT results_eq($$SELECT version, writer, operation, row_data, changed, before, changed_by FROM interlock.row_history('page', 1)$$,
    $$VALUES (1::bigint, NULL, 'insert', '{"id": 1, "body": "a", "version": 1}'::jsonb, NULL::text[], NULL::jsonb, current_user::text COLLATE "default"),
             (2, 'anna', 'update', '{"id": 1, "body": "b", "version": 2}', '{body,version}', '{"body": "a", "version": 1}', current_user)$$, 'row_history');
PREPARE untyped AS SELECT count(*) FROM interlock.row_history('page', $1);
SELECT results_eq($$EXECUTE untyped('1')$$, $$VALUES (2::bigint)$$, 'with a parameter without a type');
SELECT is(interlock.row_as_of('page', 1, clock_timestamp())->>'body', 'b', 'row_as_of');
SELECT is(interlock.suppress_history('page', 'load'), 1, 'suppressed');
UPDATE page SET body = 'c';
SELECT is(interlock.restore_history('page'), 0, 'restored');
SELECT is((SELECT count(*) FROM page_history), 2::bigint, 'nothing recorded');
SELECT is((SELECT version FROM page), 3::bigint, 'the version moved');
SELECT results_eq('SELECT rel, operation, key, columns, row_count, writer, reason FROM interlock.operation_log',
    $$VALUES ('page'::regclass, 'update', '{"id": 1}'::jsonb, '{body,version}'::text[], 1::bigint, 'anna', 'load')$$, 'but logged');
SELECT throws_ok($$SELECT interlock.restore_history('page')$$, '55000');
SELECT results_eq('SELECT * FROM interlock.trim_history()', $$VALUES ('page'::regclass, 0::bigint, 0)$$, 'trim_history');
SELECT lives_ok($$SELECT interlock.disable_history('page')$$);
SELECT throws_ok($$SELECT * FROM interlock.row_history('page', 1)$$, '55000');
SELECT function_privs_are('interlock', 'suppress_history', ARRAY['regclass', 'text'], 'public', '{}'::text[]);

-- entries that the owner of a history has written (SEC-1): those without a key stay
CREATE TABLE forged (id int PRIMARY KEY);
SELECT interlock.enable_history('forged', keep_for => '1 day', keep_versions => 1);
DO $$
DECLARE
    name name;
BEGIN
    FOREACH name IN ARRAY '{key,changed_at,changed_by,operation,row_data,transaction,command}'::name[] LOOP
        EXECUTE format('ALTER TABLE forged_history ALTER %I DROP NOT NULL', name);
    END LOOP;
END $$;
INSERT INTO forged_history (changed_at) VALUES ('2001-01-01');
INSERT INTO forged_history (key, changed_at) VALUES ('{"id": 1}', '2001-01-01'), ('{"id": 1}', '2001-01-01');
SELECT is((SELECT trimmed FROM interlock.trim_history('forged')), 1::bigint, 'a surplus entry is trimmed');
SELECT results_eq('SELECT key FROM forged_history ORDER BY id', $$VALUES (NULL::jsonb), ('{"id": 1}')$$, 'and not one without a key');
SELECT is((SELECT count(*) FROM interlock.row_history('forged', 1)), 1::bigint, 'row_history');
INSERT INTO forged_history (key, changed_at) VALUES ('{"id": 1}', '294276-12-31 23:59:59.999999'), ('{"id": 1}', 'infinity');
SELECT is((SELECT trimmed FROM interlock.trim_history('forged')), 0::bigint, 'entries of the last times there are');

SELECT * FROM finish();
ROLLBACK;
