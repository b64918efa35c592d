-- HIS-20, MRK-4: columns and writers that a history ignores, the writer of an entry, notifications of readers.
BEGIN;
SELECT plan(78);
SET LOCAL client_min_messages = error;

CREATE TABLE page (id int PRIMARY KEY, body text, thumb text, seen int DEFAULT 0);
SELECT interlock.enable_versioning('page');
SELECT interlock.enable_history('page', 10, ignore_columns => '{thumb,seen}', ignore_writers => '{importer}');
INSERT INTO page VALUES (1, 'a'), (2, 'a');
CREATE FUNCTION entries(table_name text = 'page_history') RETURNS SETOF text LANGUAGE plpgsql AS $$
    BEGIN RETURN QUERY EXECUTE format('SELECT concat_ws('' '', operation, changed, writer) FROM %I ORDER BY id', table_name);
    EXECUTE format('DELETE FROM %I', table_name); END $$;
CREATE TABLE passed (count bigint);
INSERT INTO passed VALUES (0);
CREATE FUNCTION logged() RETURNS SETOF text LANGUAGE sql AS $$
    SELECT concat_ws(' ', operation, columns, row_count, key, reason, writer) FROM interlock.operation_log
    ORDER BY written_at OFFSET (SELECT count FROM passed) $$;
CREATE FUNCTION forget() RETURNS void LANGUAGE sql AS 'UPDATE passed SET count = (SELECT count(*) FROM interlock.operation_log)';

-- ignored columns
SELECT results_eq('SELECT entries()', ARRAY['insert', 'insert'], 'rows that are inserted are recorded');
UPDATE page SET thumb = 'x', seen = 1 WHERE id = 1;
SELECT is_empty('SELECT entries()', 'ignored columns alone make no entry');
SELECT results_eq('SELECT logged()', ARRAY['update {thumb,seen,version} 1 {"id": 1} ignore_columns'], 'but a line');
SELECT is((SELECT version FROM page WHERE id = 1), 2::bigint, 'and the version moves');
UPDATE page SET body = 'b', seen = 2 WHERE id = 1;
SELECT results_eq($$SELECT changed, before, row_data FROM page_history$$,
    $$VALUES ('{body,seen,version}'::text[], '{"body": "a", "seen": 1, "version": 2}'::jsonb,
              '{"id": 1, "body": "b", "seen": 2, "thumb": "x", "version": 3}'::jsonb)$$,
    'an entry has what its own write changed, and the row as it is stored');
SELECT results_eq('SELECT entries()', ARRAY['update {body,seen,version}'], 'together with others they are recorded');
UPDATE page SET seen = seen + 1;
SELECT results_eq('SELECT logged()', ARRAY['update {thumb,seen,version} 1 {"id": 1} ignore_columns', 'update {seen,version} 2 ignore_columns'],
    'a line for each statement');
UPDATE page SET body = CASE id WHEN 1 THEN 'c' ELSE body END, seen = 9;
SELECT results_eq('SELECT entries()', ARRAY['update {body,seen,version}'], 'row by row in one statement');
UPDATE page SET body = body WHERE id = 1;
SELECT is_empty('SELECT entries()', 'HIS-61: what changes nothing makes no entry');
SELECT versioned_update FROM interlock.versioned_update('page', 1, (SELECT version FROM page WHERE id = 1), '{"body": "c"}');
SELECT is_empty('SELECT entries()', 'HIS-61: nor does a function that writes the same values');
SELECT set_config('interlock.direct_execution', 'off', true);
SELECT versioned_update FROM interlock.versioned_update('page', 1, (SELECT version FROM page WHERE id = 1), '{"body": "c"}');
SELECT is_empty('SELECT entries()', 'HIS-61: nor by a statement');
SELECT set_config('interlock.direct_execution', 'on', true);
INSERT INTO page VALUES (1, 'c') ON CONFLICT (id) DO UPDATE SET body = excluded.body;
SELECT is_empty('SELECT entries()', 'HIS-61: nor an import that meets the same row');
SELECT is((SELECT version FROM page WHERE id = 1), 9::bigint, 'the version moves');
SELECT forget();
UPDATE page SET version = version + 1;
SELECT is_empty('SELECT entries()', 'HIS-61: nor a move of the version alone');
SELECT is_empty('SELECT logged()', 'which leaves no line either');
CREATE TABLE bare (id int PRIMARY KEY, body text, amount numeric);
SELECT interlock.enable_history('bare');
INSERT INTO bare VALUES (1, 'a', 1);
UPDATE bare SET body = body, amount = 1;
SELECT results_eq($$SELECT entries('bare_history')$$, ARRAY['insert'], 'HIS-61: the same without a version');
UPDATE bare SET amount = 1.00;
SELECT results_eq($$SELECT entries('bare_history')$$, ARRAY['update {}'], 'but a value that looks different is recorded as it looks');
UPDATE bare SET amount = NULL;
SELECT results_eq($$SELECT entries('bare_history')$$, ARRAY['update {amount}'], 'and a change is recorded');
DELETE FROM page WHERE id = 2;
SELECT results_eq('SELECT entries()', ARRAY['delete'], 'and what is deleted');
UPDATE page SET id = 3;
SELECT results_eq('SELECT entries()', ARRAY['moved', 'update {id,version}'], 'and another key');

-- as of a time, and undo, with ignored columns that moved in between
CREATE TABLE clock (n int, at timestamptz);
CREATE TABLE t (id int PRIMARY KEY, body text, seen int DEFAULT 0);
SELECT interlock.enable_history('t', ignore_columns => '{seen}');
INSERT INTO t VALUES (1, 'a');
INSERT INTO clock VALUES (1, clock_timestamp());
UPDATE t SET seen = 5;
INSERT INTO clock VALUES (2, clock_timestamp());
UPDATE t SET body = 'b';
SELECT results_eq($$SELECT interlock.row_as_of('t', 1, at) FROM clock ORDER BY n$$,
    $$VALUES ('{"id": 1, "body": "a", "seen": 0}'::jsonb), ('{"id": 1, "body": "a", "seen": 0}')$$,
    'an ignored column has the value of the last entry');
SELECT is(interlock.row_as_of('t', 1, clock_timestamp())->>'seen', '5', 'or what the next one has found');
SELECT results_eq($$SELECT changed, before FROM interlock.row_history('t', 1) WHERE operation = 'update'$$,
    $$VALUES ('{body}'::text[], '{"body": "a"}'::jsonb)$$, 'an entry does not have what moved before it');
-- ignored writers
SELECT forget();
SELECT interlock.set_writer('importer');
INSERT INTO page VALUES (10, 'i'), (11, 'i');
UPDATE page SET body = 'j' WHERE id = 10;
DELETE FROM page WHERE id = 11;
SELECT is_empty('SELECT entries()', 'an ignored writer leaves no entry');
SELECT results_eq('SELECT logged()', ARRAY['insert 2 ignore_writers importer', 'update {body,version} 1 {"id": 10} ignore_writers importer',
    'delete 1 {"id": 11} ignore_writers importer'], 'but lines');
SELECT interlock.set_writer('editor');
UPDATE page SET body = 'k' WHERE id = 10;
SELECT results_eq('SELECT entries()', ARRAY['update {body,version} editor'], 'another one does');
SELECT interlock.set_writer(NULL), interlock.set_holder('importer');
UPDATE page SET body = 'l' WHERE id = 10;
SELECT results_eq('SELECT writer, writer_from, changed FROM page_history', $$VALUES ('importer', 'holder', '{body,version}'::text[])$$,
    'SEC-1: a holder of that name is not ignored, as anybody can be one');
SELECT entries();
SELECT interlock.set_holder(NULL);
SELECT forget();
SELECT interlock.set_writer('importer');
SELECT interlock.suppress_history('page', 'both');
UPDATE page SET body = 'm';
SELECT interlock.restore_history('page');
SELECT results_eq('SELECT logged()', ARRAY['update {body,version} 2 both importer'], 'HIS-7: what suppresses comes first');
SELECT forget();
TRUNCATE page;
SELECT results_eq('SELECT logged()', ARRAY['truncate 2 ignore_writers importer'], 'TRUNCATE of an ignored writer');
SELECT interlock.set_writer(NULL);
SELECT entries();

-- another setting
INSERT INTO page VALUES (1, 'a');
SELECT interlock.enable_history('page', 10);
UPDATE page SET seen = 7;
SELECT results_eq('SELECT entries()', ARRAY['insert', 'update {seen,version}'], 'called again without them nothing is ignored');
SELECT interlock.enable_history('page', ignore_columns => '{seen}');
ALTER TABLE page RENAME seen TO views;
UPDATE page SET views = 8;
SELECT results_eq('SELECT entries()', ARRAY['update {views,version}'], 'a column of another name is recorded');
SELECT results_eq($$SELECT finding FROM interlock.advise() WHERE rel = 'page'::regclass$$,
    ARRAY['column "seen" in ignore_columns of the history is gone: changes under another name are recorded'], 'ADV-6: which is found');
ALTER TABLE page RENAME views TO seen;

-- generated columns follow
CREATE TABLE g (id int PRIMARY KEY, a int, b int GENERATED ALWAYS AS (a * 2) STORED);
SELECT interlock.enable_history('g', ignore_columns => '{a}');
INSERT INTO g VALUES (1, 1);
UPDATE g SET a = 2;
SELECT results_eq($$SELECT entries('g_history')$$, ARRAY['insert', 'update {a,b}'], 'a generated column counts by itself');
SELECT interlock.enable_history('g', ignore_columns => '{a,b}');
UPDATE g SET a = 3;
SELECT is_empty($$SELECT entries('g_history')$$, 'and is ignored by its name');

-- partitions
CREATE TABLE p (id int, region text, body text, seen int, PRIMARY KEY (id, region)) PARTITION BY LIST (region);
CREATE TABLE p_a PARTITION OF p FOR VALUES IN ('a');
CREATE TABLE p_b (extra int, seen int, body text, region text NOT NULL, id int NOT NULL);
ALTER TABLE p_b DROP COLUMN extra;
ALTER TABLE p ATTACH PARTITION p_b FOR VALUES IN ('b');
SELECT interlock.enable_history('p', ignore_columns => '{seen}');
INSERT INTO p VALUES (1, 'a', 'x', 0), (2, 'b', 'x', 0);
SELECT entries('p_history');
UPDATE p SET seen = 1;
UPDATE p_b SET seen = 2;
SELECT is_empty($$SELECT entries('p_history')$$, 'partitions, also with columns in another order');
UPDATE p SET body = 'y' WHERE region = 'b';
SELECT results_eq($$SELECT entries('p_history')$$, ARRAY['update {body}'], 'recorded');
SELECT throws_ok($$SELECT interlock.enable_history('p_a', ignore_columns => '{seen}')$$, '55000', NULL, 'a partition is configured with its parent');

-- markers
CREATE TABLE doc (id int PRIMARY KEY, title text);
SELECT interlock.enable_versioning('doc'), interlock.enable_history('doc'), interlock.enable_marker('doc', '1 hour');
INSERT INTO doc VALUES (1, 'first');
SELECT entries('doc_history');
SELECT forget();
SELECT interlock.lock_row('doc', 1, 'anna');
SELECT interlock.touch_row('doc', 1, 'anna') FROM generate_series(1, 5);
SELECT interlock.save_row('doc', 1, 'anna', '{"title": "second"}', 1);
SELECT results_eq($$SELECT operation, row_data->>'title', before->>'title', writer, writer_from FROM interlock.row_history('doc', 1)$$,
    $$VALUES ('update', 'second', 'first', 'anna', 'holder')$$, 'MRK-4: one edit is one entry, and it has the holder''s name');
SELECT is_empty('SELECT logged()', 'MRK-4: the marker''s moves leave no lines');
SELECT entries('doc_history');
SELECT interlock.lock_row('doc', 1, 'anna');
SELECT interlock.unlock_row('doc', 1, 'anna');
UPDATE doc SET lock_status = 1, lock_by = 'bert', lock_time = clock_timestamp(), lock_until = clock_timestamp() + interval '1 hour';
SELECT interlock.force_unlock_row('doc', 1, 'gone');
SELECT is_empty($$SELECT entries('doc_history')$$, 'MRK-4: an edit that saves nothing is none, nor is a plain UPDATE of the marker');
SELECT interlock.set_holder('anna');
UPDATE doc SET title = 'third';
SELECT interlock.set_writer('editor');
UPDATE doc SET title = 'fourth';
SELECT results_eq('SELECT writer, writer_from FROM doc_history ORDER BY id', $$VALUES ('anna', 'holder'), ('editor', 'set_writer')$$,
    'set_holder, and the writer before it');
SELECT interlock.set_writer(NULL), interlock.set_holder(NULL);
SELECT entries('doc_history');
SELECT interlock.enable_history('doc', record_markers => true);
SELECT interlock.lock_row('doc', 1, 'anna');
SELECT interlock.unlock_row('doc', 1, 'anna');
SELECT results_eq('SELECT operation, writer FROM doc_history', $$VALUES ('update', 'anna'), ('update', 'anna')$$, 'MRK-4: recorded if wanted');
SELECT interlock.enable_history('doc', ignore_columns => '{title}', record_markers => true);
SELECT entries('doc_history');
UPDATE doc SET title = title || '!', lock_by = 'carl';
SELECT results_eq($$SELECT entries('doc_history')$$, ARRAY['update {title,version,lock_by}'], 'also together with an ignored column');
SELECT interlock.enable_history('doc', record_markers => true);
SELECT entries('doc_history');
SELECT interlock.enable_history('doc', ignore_columns => '{lock_by}');
SELECT interlock.lock_row('doc', 1, 'anna');
SELECT is_empty($$SELECT entries('doc_history')$$, 'a marker column can be ignored by name');
SELECT results_eq('SELECT logged()', ARRAY['update {lock_status,lock_by,lock_time,lock_until} 1 {"id": 1} ignore_columns'], 'and leaves a line then');
SELECT interlock.enable_history('doc');
SELECT interlock.disable_marker('doc');
UPDATE doc SET lock_by = 'someone';
SELECT results_eq($$SELECT entries('doc_history')$$, ARRAY['update {version,lock_by}'], 'columns of a former marker are like others');

-- notifications
SELECT interlock.enable_history('doc', notify => 'on');
SELECT has_index('doc_history', 'doc_history_transaction_id_idx', ARRAY['transaction', 'id'], 'an index for readers');
SELECT interlock.enable_history('doc', notify => 'full');
SELECT is((SELECT count(*) FROM pg_index WHERE indrelid = 'doc_history'::regclass), 3::bigint, 'once');
UPDATE doc SET title = 'fifth';
SELECT results_eq($$SELECT entries('doc_history')$$, ARRAY['update {title,version}'], 'recorded through three indexes');
SELECT is((SELECT count(*) FROM doc_history WHERE transaction = 0), 0::bigint, 'which are read');

-- arguments
SELECT throws_ok($$SELECT interlock.enable_history('doc', ignore_columns => '{nosuch}')$$, '42703', 'column "nosuch" of table "doc" does not exist');
SELECT throws_ok($$SELECT interlock.enable_history('doc', ignore_columns => '{ctid}')$$, '42703');
SELECT throws_ok($$SELECT interlock.enable_history('doc', ignore_columns => '{id}')$$, '22023', 'column "id" is part of the key and cannot be ignored');
SELECT throws_ok($$SELECT interlock.enable_history('doc', ignore_columns => '{version}')$$, '22023', 'version column "version" cannot be ignored');
SELECT throws_ok($$SELECT interlock.enable_history('doc', ignore_columns => '{title,title}')$$, '22023', 'column "title" is named twice');
SELECT throws_ok($$SELECT interlock.enable_history('doc', ignore_columns => '{NULL}')$$, '22004');
SELECT throws_ok($$SELECT interlock.enable_history('doc', ignore_columns => NULL)$$, '22004', 'argument "ignore_columns" must not be null');
SELECT throws_ok($$SELECT interlock.enable_history('doc', ignore_writers => '{a,a}')$$, '22023', 'writer "a" is named twice');
SELECT throws_ok($$SELECT interlock.enable_history('doc', ignore_writers => '{""}')$$, '22023');
SELECT throws_ok($$SELECT interlock.enable_history('doc', ignore_writers => ARRAY[repeat('x', 257)])$$, '22023');
SELECT throws_ok($$SELECT interlock.enable_history('doc', ignore_writers => ARRAY[E'a\nb'])$$, '22023');
SELECT throws_ok($$SELECT interlock.enable_history('doc', ignore_writers => ARRAY[NULL])$$, '22004');
SELECT throws_ok($$SELECT interlock.enable_history('doc', ignore_writers => (SELECT array_agg(g::text) FROM generate_series(1, 101) g))$$, '22023');
SELECT throws_ok($$SELECT interlock.enable_history('doc', notify => 'loud')$$, '22023');
SELECT throws_ok($$SELECT interlock.enable_history('doc', notify => NULL)$$, '22004');
SELECT throws_ok($$SELECT interlock.enable_history('doc', record_markers => NULL)$$, '22004');
SELECT lives_ok($$SELECT interlock.enable_history('doc', ignore_columns => '{}', ignore_writers => '{}', notify => 'no')$$);

-- names that need quotes
CREATE TABLE "O'Hara \ ""x""" (id int PRIMARY KEY, "it's" int, "a, b" int, "{}" int);
SELECT interlock.enable_history('"O''Hara \ ""x"""', ignore_columns => ARRAY['it''s', 'a, b', '{}'], notify => 'full',
    ignore_writers => ARRAY['o''hara', '\', '''); DROP TABLE doc; --', 'ignored columns', '1 ignored columns', 'ä']);
INSERT INTO "O'Hara \ ""x""" VALUES (1);
UPDATE "O'Hara \ ""x""" SET "it's" = 1, "a, b" = 2, "{}" = 3;
SELECT results_eq($$SELECT entries('O''Hara \ "x"_history')$$, ARRAY['insert'], 'names in quotes');
SELECT interlock.set_writer(''');'' DROP TABLE doc; --');
UPDATE "O'Hara \ ""x""" SET id = 2;
SELECT is((SELECT count(*) FROM "O'Hara \ ""x""_history"), 2::bigint, 'another writer');
SELECT interlock.set_writer('''); DROP TABLE doc; --');
UPDATE "O'Hara \ ""x""" SET id = 3;
SELECT is((SELECT count(*) FROM "O'Hara \ ""x""_history"), 2::bigint, 'that writer');
SELECT interlock.set_writer(NULL);

-- of another owner
CREATE ROLE ignore_other;
GRANT SELECT, UPDATE ON doc TO ignore_other;
SET LOCAL ROLE ignore_other;
SELECT throws_ok($$SELECT interlock.enable_history('doc', ignore_columns => '{title}')$$, '42501');
RESET ROLE;

-- forged triggers: nothing is raised where they are loaded, only where they are used
CREATE TABLE f (id int PRIMARY KEY, v int);
SELECT interlock.enable_history('f');
CREATE FUNCTION forge(arguments text) RETURNS text LANGUAGE plpgsql AS $$
    DECLARE state text;
    BEGIN
        EXECUTE 'DROP TRIGGER "000_interlock_history" ON f';
        EXECUTE format('CREATE CONSTRAINT TRIGGER "000_interlock_history" AFTER INSERT OR UPDATE ON f FROM f_history FOR EACH ROW '
            'EXECUTE FUNCTION interlock_internal.history_trigger(%s)', arguments);
        PERFORM FROM interlock.advise();
        INSERT INTO f VALUES (1);
        DELETE FROM f;
        RETURN 'recorded';
    EXCEPTION WHEN OTHERS THEN
        RETURN SQLSTATE;
    END $$;
SELECT is(forge($$'', '', '0 microseconds since 2000-01-01 UTC', 'notify off', 'ignore markers', '', '1 entries per whole row', '0 ignored columns', '0 ignored writers', 'id', 'integer'$$), 'recorded', 'as it is made');
SELECT is(forge(a), '39P01', a) FROM unnest(ARRAY[
    $$'', '', '0', 'id', 'integer'$$,
    $$'', '', '0 microseconds since 2000-01-01 UTC', 'notify some', 'ignore markers', '', '1 entries per whole row', '0 ignored columns', '0 ignored writers', 'id', 'integer'$$,
    $$'', '', '0 microseconds since 2000-01-01 UTC', 'notify off', 'markers', '', '1 entries per whole row', '0 ignored columns', '0 ignored writers', 'id', 'integer'$$,
    $$'', '', '0 microseconds since 2000-01-01 UTC', 'notify off', 'ignore markers', '', '1 entries per whole row', '5 ignored columns', '0 ignored writers', 'id', 'integer'$$,
    $$'', '', '0 microseconds since 2000-01-01 UTC', 'notify off', 'ignore markers', '', '1 entries per whole row', '-1 ignored columns', '0 ignored writers', 'id', 'integer'$$,
    $$'', '', '0 microseconds since 2000-01-01 UTC', 'notify off', 'ignore markers', '', '1 entries per whole row', '0 ignored columns', '99999999999999999999 ignored writers'$$]) a;

SELECT * FROM finish();
ROLLBACK;
