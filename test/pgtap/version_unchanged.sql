-- VER-55: with unchanged => 'keep' an update that changes nothing does not move the version, and functions do not write the row.
BEGIN;
SELECT plan(80);
SET LOCAL client_min_messages = error;

CREATE TABLE item (id int PRIMARY KEY, sku text NOT NULL UNIQUE, price numeric(10,2), amount numeric, code char(5), note text, body jsonb, seen int DEFAULT 0,
    at timestamptz(3), twice numeric GENERATED ALWAYS AS (price * 2) STORED);
INSERT INTO item (id, sku, price, amount, code, body, at) VALUES (1, 'a', 10, 1.0, 'x', '{"a": 1}', '2026-01-01 00:00:00.123+00'), (2, 'b', NULL, 2, NULL, NULL, NULL);

-- the setting
SELECT throws_ok($$SELECT interlock.enable_versioning('item', unchanged => 'stay')$$, '22023', NULL, 'another word');
SELECT throws_ok($$SELECT interlock.enable_versioning('item', unchanged => NULL)$$, '22004', NULL, 'a null');
SELECT interlock.enable_versioning('item', ignore_columns => '{seen}');
UPDATE item SET note = note;
SELECT is((SELECT version FROM item WHERE id = 1), 2::bigint, 'an update that changes nothing moves the version');
SELECT is(interlock.versioned_update('item', 1, 2, '{"price": 10}'), 3::bigint, 'as a function does');
SELECT is(interlock.configuration('item')->'versioning'->>'unchanged', 'move', 'which is what the configuration says');
SELECT interlock.enable_versioning('item', ignore_columns => '{seen}', unchanged => 'keep');
SELECT is(interlock.configuration('item')->'versioning'->>'unchanged', 'keep', 'a second call changes it');
SELECT interlock.disable_versioning('item');
SELECT interlock.configure('item', '{"versioning": {"ignore_columns": ["seen"], "unchanged": "keep"}}');
SELECT is(interlock.configuration('item')->'versioning'->>'unchanged', 'keep', 'so does a configuration');

-- plain SQL writes the row and leaves the version
CREATE FUNCTION version_of(key int) RETURNS bigint LANGUAGE sql AS 'SELECT version FROM item WHERE id = key';
CREATE FUNCTION place_of(key int) RETURNS tid LANGUAGE sql AS 'SELECT ctid FROM item WHERE id = key';
CREATE TEMP TABLE before AS SELECT id, version, ctid AS place FROM item;
CREATE FUNCTION changed() RETURNS SETOF text LANGUAGE plpgsql AS $$BEGIN -- since the last call
    RETURN QUERY SELECT concat_ws(' ', i.id, CASE WHEN i.ctid <> b.place THEN 'written' END, CASE WHEN i.version <> b.version THEN 'moved ' || i.version - b.version END)
        FROM item i JOIN before b USING (id) WHERE i.ctid <> b.place ORDER BY i.id;
    DELETE FROM before;
    INSERT INTO before SELECT id, version, ctid FROM item;
END $$;
UPDATE item SET price = 10, note = note WHERE id = 1;
SELECT results_eq('SELECT changed()', ARRAY['1 written'], 'an UPDATE writes the row, and the version stays');
UPDATE item SET price = 10.00, code = 'x', amount = 1.0, body = '{ "a" : 1 }', at = '2026-01-01 00:00:00.1230001+00' WHERE id = 1;
SELECT results_eq('SELECT changed()', ARRAY['1 written'], 'values are compared as they are stored');
UPDATE item SET amount = 1.00 WHERE id = 1;
SELECT results_eq('SELECT changed()', ARRAY['1 written moved 1'], 'equal numbers of another form are a change, as they are to those who read them');
UPDATE item SET note = '' WHERE id = 1;
SELECT results_eq('SELECT changed()', ARRAY['1 written moved 1'], 'so is an empty text for a null');
UPDATE item SET note = NULL, seen = 1 WHERE id = 1;
SELECT results_eq('SELECT changed()', ARRAY['1 written moved 1'], 'and a null');
UPDATE item SET seen = seen + 1, price = price;
SELECT results_eq('SELECT changed()', ARRAY['1 written', '2 written'], 'ignored columns are written, and move nothing');
UPDATE item SET price = 10, version = version + 1 WHERE id = 1;
SELECT results_eq('SELECT changed()', ARRAY['1 written moved 1'], 'a statement that sets the next version moves it');
UPDATE item SET version = version WHERE id = 1;
SELECT results_eq('SELECT changed()', ARRAY['1 written'], 'one that sets the version that is stored does not');
SELECT throws_ok('UPDATE item SET version = version + 2', 'IL001', NULL, 'any other version is refused');
SELECT throws_ok('UPDATE item SET version = NULL', 'IL001', NULL, 'so is none');
INSERT INTO item (id, sku, price) VALUES (1, 'a', 10), (2, 'b', 7) ON CONFLICT (id) DO UPDATE SET sku = excluded.sku, price = excluded.price;
SELECT results_eq('SELECT changed()', ARRAY['1 written', '2 written moved 1'], 'an import by ON CONFLICT moves the rows that it changes');
MERGE INTO item t USING (VALUES (1, 10::numeric), (2, 8)) s (id, price) ON t.id = s.id WHEN MATCHED THEN UPDATE SET price = s.price;
SELECT results_eq('SELECT changed()', ARRAY['1 written', '2 written moved 1'], 'as one by MERGE');
UPDATE item SET id = 3 WHERE id = 2;
SELECT is(version_of(3) > (SELECT version FROM before WHERE id = 2), true, 'another key is a change');
UPDATE item SET id = 2 WHERE id = 3;
DELETE FROM before;
INSERT INTO before SELECT id, version, ctid FROM item;

-- functions: with and without a statement the same
CREATE FUNCTION both_ways(call text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE answer text; answers text[]; setting text;
BEGIN
    call = replace(replace(call, '%v1', version_of(1)::text), '%v2', version_of(2)::text);
    FOREACH setting IN ARRAY '{on,off}'::text[] LOOP
        PERFORM set_config('interlock.direct_execution', setting, true);
        BEGIN
            EXECUTE call INTO answer;
            RAISE EXCEPTION USING MESSAGE = concat_ws(' ', answer, '|', (SELECT string_agg(c, ', ') FROM changed() c)), ERRCODE = 'ZZZZZ';
        EXCEPTION WHEN SQLSTATE 'ZZZZZ' THEN answers = array_append(answers, SQLERRM);
        WHEN OTHERS THEN answers = array_append(answers, SQLSTATE);
        END;
    END LOOP;
    RESET interlock.direct_execution;
    RETURN CASE WHEN answers[1] = answers[2] THEN answers[1] ELSE array_to_string(answers, ' <> ') END;
END $$;
SELECT is(both_ways($$SELECT interlock.versioned_update('item', 1, %v1, '{"price": 10}') - %v1$$), '0 |', 'versioned_update does not write what is stored');
SELECT is(both_ways($$SELECT interlock.versioned_update('item', 1, %v1, '{"price": 10.00, "sku": "a", "code": "x", "note": null, "body": {"a": 1.0}}') - %v1$$),
    '1 | 1 written moved 1', 'a jsonb number of another form is a change');
SELECT is(both_ways($$SELECT interlock.versioned_update('item', 1, %v1, '{"price": 10.00, "sku": "a", "code": "x", "note": null, "at": "2026-01-01T00:00:00.123Z"}') - %v1$$),
    '0 |', 'values of every type are compared as they would be stored');
SELECT is(both_ways($$SELECT interlock.versioned_update('item', 1, %v1, '{}') - %v1$$), '0 |', 'no changes are none');
SELECT is(both_ways($$SELECT interlock.versioned_update('item', 1, %v1, '{"seen": 2}') - %v1$$), '0 |', 'an ignored column that is the same');
SELECT is(version_of(1), interlock.versioned_update('item', 1, version_of(1), '{"price": 10, "seen": 3}'), 'one that is not');
SELECT results_eq('SELECT changed()', ARRAY['1 written'], 'is written');
SELECT is(both_ways($$SELECT interlock.versioned_update('item', 1, %v1 - 1, '{"price": 10}')$$), 'IL001', 'an old version conflicts, also with the same values');
SELECT is(both_ways($$SELECT interlock.versioned_update('item', 9, 1, '{"price": 10}')$$), 'P0002', 'a row that is not there');
SELECT is(both_ways($$SELECT interlock.versioned_update('item', '{"sku": "a"}', %v1, '{"price": 10}') - %v1$$), '0 |', 'by another key');
SELECT is(both_ways($$SELECT interlock.versioned_update('item', 1, %v1::text, '{"price": 10}')::bigint - %v1$$), '0 |', 'the version as text');
SELECT is(both_ways($$SELECT outcome || ' ' || version - %v1 FROM interlock.try_versioned_update('item', 1, %v1, '{"price": 10}')$$), 'unchanged 0 |', 'try_versioned_update says so');
SELECT is(both_ways($$SELECT outcome FROM interlock.try_versioned_update('item', 1, %v1 - 1, '{"price": 10}')$$), 'conflict |', 'and a conflict');
SELECT is(both_ways($$SELECT interlock.versioned_upsert('item', 1, %v1, '{"price": 10}') - %v1$$), '0 |', 'versioned_upsert');
SELECT is(both_ways($$SELECT outcome || ' ' || version - %v1 FROM interlock.try_versioned_upsert('item', 1, %v1, '{"price": 10}')$$), 'unchanged 0 |', 'try_versioned_upsert');
SELECT is(both_ways($$SELECT interlock.versioned_upsert('item', 1, NULL::bigint, '{"price": 10}')$$), 'IL001', 'a row that is expected not to be there');
SELECT is(both_ways($$SELECT string_agg(outcome, ' ') FROM interlock.versioned_update_many('item', '[{"key": 2, "version": %v2, "changes": {"price": 8}},
    {"key": 1, "version": %v1, "changes": {"price": 10, "note": null}}, {"key": 1, "version": %v1, "changes": {"seen": 3}}]')$$),
    'unchanged unchanged unchanged |', 'versioned_update_many');
SELECT is(both_ways($$SELECT string_agg(outcome || version - %v1, ' ') FROM interlock.versioned_update_many('item', '[{"key": 1, "version": %v1, "changes": {"price": 10}},
    {"key": 1, "version": %v1, "changes": {"note": "new"}}]')$$), 'unchanged0 updated1 | 1 written moved 1', 'a row of it that changes is written');
SELECT is(both_ways($$SELECT outcome || ' ' || version - %v1 FROM interlock.try_versioned_update('item', 1, %v1 - 1, '{"price": 10}', base => '{"price": 9}', on_conflict => 'merge')$$),
    'merged 0 |', 'a merge to what is stored');
CREATE FUNCTION same_price(current jsonb, args jsonb) RETURNS jsonb LANGUAGE sql IMMUTABLE AS $$SELECT jsonb_build_object('price', current->'price')$$;
SELECT is(both_ways($$SELECT outcome || ' ' || version - %v1 FROM interlock.update_with_retry('item', 1, 'same_price', '{}')$$), 'unchanged 0 |', 'update_with_retry');

-- what a function skips, no trigger sees
CREATE FUNCTION count_fired() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM nextval(''fired''); RETURN NEW; END';
CREATE SEQUENCE fired;
CREATE TRIGGER a BEFORE UPDATE ON item FOR EACH ROW EXECUTE FUNCTION count_fired();
SELECT is(both_ways($$SELECT interlock.versioned_update('item', 1, %v1, '{"price": 10}') - %v1$$), '0 |', 'with a trigger');
SELECT is(nextval('fired'), 1::bigint, 'which does not fire');
SELECT is(version_of(1) + 1, interlock.versioned_update('item', 1, version_of(1), '{"price": 11}'), 'it fires');
SELECT is(nextval('fired'), 3::bigint, 'for a row that is written');
CREATE OR REPLACE FUNCTION count_fired() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN NEW.price = OLD.price; RETURN NEW; END';
SELECT changed();
SELECT is(version_of(1), interlock.versioned_update('item', 1, version_of(1), '{"price": 12}'), 'a trigger that restores the value restores the version');
SELECT results_eq('SELECT changed()', ARRAY['1 written'], 'of a row that is written');
CREATE OR REPLACE FUNCTION count_fired() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN NEW.note = clock_timestamp(); RETURN NEW; END';
UPDATE item SET price = price WHERE id = 1;
SELECT results_eq('SELECT changed()', ARRAY['1 written moved 1'], 'a trigger that changes a value moves it');
DROP TRIGGER a ON item;

-- toasted values
CREATE TABLE wide (id int PRIMARY KEY, n int, long text, short text);
ALTER TABLE wide ALTER long SET STORAGE EXTERNAL;
SELECT interlock.enable_versioning('wide', unchanged => 'keep');
INSERT INTO wide VALUES (1, 1, repeat('x', 9000), 'y');
UPDATE wide SET n = n;
SELECT is((SELECT version FROM wide), 1::bigint, 'a toasted value that is not named');
UPDATE wide SET long = repeat('x', 9000);
SELECT is((SELECT version FROM wide), 1::bigint, 'one that is named');
SELECT is(interlock.versioned_update('wide', 1, 1, jsonb_build_object('long', repeat('x', 9000))), 1::bigint, 'one that a function names');
UPDATE wide SET long = repeat('x', 8999) || 'y';
SELECT is((SELECT version FROM wide), 2::bigint, 'one of the same length that differs');
SET LOCAL interlock.direct_execution = off;
SELECT is(interlock.versioned_update('wide', 1, 2, jsonb_build_object('long', repeat('x', 8999) || 'y')), 2::bigint, 'compared by a statement');
SELECT is(interlock.versioned_update('wide', 1, 2, jsonb_build_object('long', repeat('x', 9000))), 3::bigint, 'and written by one');
RESET interlock.direct_execution;

-- a version that is a time, one that is null
CREATE TABLE timed (id int PRIMARY KEY, body text, at timestamptz DEFAULT '2026-01-01 00:00:00.123456+00');
SELECT interlock.enable_versioning('timed', 'at', unchanged => 'keep');
INSERT INTO timed VALUES (1, 'a'), (2, 'a');
ALTER TABLE timed DISABLE TRIGGER zzz_interlock_version;
UPDATE timed SET at = NULL WHERE id = 2;
ALTER TABLE timed ENABLE TRIGGER zzz_interlock_version;
UPDATE timed SET body = 'a';
SELECT results_eq('SELECT at FROM timed ORDER BY id', $$VALUES ('2026-01-01 00:00:00.123456+00'::timestamptz), (NULL)$$, 'a time stays, and so does a null');
SELECT is(interlock.versioned_update('timed', 1, '2026-01-01 00:00:00.123456+00', '{"body": "a"}'), '2026-01-01 00:00:00.123456+00', 'by a function');
SELECT is((SELECT outcome FROM interlock.try_versioned_update('timed', 1, '2026-01-01 00:00:00.123+00'::timestamptz, '{"body": "a"}')), 'conflict', 'a cut time conflicts');
UPDATE timed SET body = 'a', at = '2026-01-02' WHERE id = 1;
SELECT is((SELECT at FROM timed WHERE id = 1), '2026-01-02', 'a later time is a move');
UPDATE timed SET body = 'b' WHERE id = 1;
SELECT ok((SELECT at FROM timed WHERE id = 1) > '2026-01-02', 'as a change is');

-- markers
CREATE TABLE page (id int PRIMARY KEY, body text, state text DEFAULT 'a', n int DEFAULT 5);
SELECT interlock.enable_versioning('page', unchanged => 'keep');
SELECT interlock.enable_marker('page', enforce => true);
INSERT INTO page (id, body) VALUES (1, 'one');
SELECT interlock.lock_row('page', 1, 'anna');
SELECT is(interlock.save_row('page', 1, 'anna', '{"body": "one"}', 1), 1::bigint, 'save_row keeps the version of what it does not change');
SELECT is((SELECT lock_status FROM page), 0::int2, 'and releases the marker');
SELECT interlock.lock_row('page', 1, 'anna');
SELECT is(interlock.save_row('page', 1, 'anna', '{}'), 1::bigint, 'also without changes');
SELECT interlock.lock_row('page', 1, 'anna');
SELECT is(interlock.save_row('page', 1, 'anna', '{"body": "two"}', 1), 2::bigint, 'a save that changes moves it');
SELECT interlock.lock_row('page', 1, 'anna');
SELECT is(interlock.versioned_update('page', 1, 2, '{"body": "two"}'), 2::bigint, 'what changes nothing does not meet the marker of another');
SELECT throws_ok($$SELECT interlock.versioned_update('page', 1, 2, '{"body": "three"}')$$, 'IL004', NULL, 'what changes does');
SELECT interlock.unlock_row('page', 1, 'anna');

-- owned columns: what is skipped has not changed
CREATE TABLE owned (id int PRIMARY KEY, price int, stock int);
SELECT interlock.enable_versioning('owned', unchanged => 'keep');
SELECT interlock.own_columns('owned', 'editor', '{price}', 'skip');
INSERT INTO owned VALUES (1, 10, 5);
UPDATE owned SET price = 11, stock = 5;
SELECT results_eq('SELECT price, version FROM owned', 'VALUES (10, 1::bigint)', 'an update of which everything is skipped');
SELECT is(interlock.versioned_update('owned', 1, 1, '{"price": 11}'), 1::bigint, 'by a function');
UPDATE owned SET price = 11, stock = 6;
SELECT results_eq('SELECT price, version FROM owned', 'VALUES (10, 2::bigint)', 'one of which something is stored');

-- history: what is not written has no entry, and a row that is as it was is not reverted
SELECT interlock.enable_history('item');
UPDATE item SET price = 20 WHERE id = 1;
SELECT is((SELECT count(*) FROM interlock.row_history('item', 1)), 1::bigint, 'an entry');
SELECT interlock.versioned_update('item', 1, version_of(1), '{"price": 20}');
SELECT is((SELECT count(*) FROM interlock.row_history('item', 1)), 1::bigint, 'and none');
SELECT is((SELECT outcome FROM interlock.try_revert_row('item', 1, version_of(1))), 'unchanged', 'nothing to revert');

-- partitions
CREATE TABLE parted (id int, part text, n int, PRIMARY KEY (id, part)) PARTITION BY LIST (part);
CREATE TABLE parted_a PARTITION OF parted FOR VALUES IN ('a');
SELECT interlock.enable_versioning('parted', unchanged => 'keep');
CREATE TABLE parted_b PARTITION OF parted FOR VALUES IN ('b');
INSERT INTO parted VALUES (1, 'a', 1), (1, 'b', 1);
UPDATE parted SET n = 1;
SELECT results_eq('SELECT version FROM parted', ARRAY[1::bigint, 1::bigint], 'partitions, also later ones');
SELECT is(interlock.versioned_update('parted', '{"id": 1, "part": "b"}', 1, '{"n": 1}'), 1::bigint, 'by a function');
SELECT is(interlock.versioned_update('parted', '{"id": 1, "part": "b"}', 1, '{"n": 2}'), 2::bigint, 'that changes it');
SELECT is((SELECT interlock.configuration('parted')->'versioning'->>'unchanged'), 'keep', 'the setting of the parent');

-- advise
DROP SEQUENCE item_version_start CASCADE;
SELECT is((SELECT min(advice) FROM interlock.advise('item')), $$SELECT interlock.enable_versioning('item', 'version', '{seen}', unchanged => 'keep')$$,
    'the advice to enable versions again has the setting');

-- rights: who may not read a column cannot ask what it has
CREATE ROLE tap_importer;
GRANT SELECT (id, version, sku), UPDATE (sku, price) ON item TO tap_importer;
SELECT interlock.enable_versioning('item', ignore_columns => '{seen}', unchanged => 'keep');
SELECT changed();
SELECT version_of(1) AS version \gset
SET LOCAL ROLE tap_importer;
SELECT is(interlock.versioned_update('item', 1, :version, '{"sku": "a"}'), :version::bigint, 'a column that may be read');
RESET ROLE;
SELECT is_empty('SELECT changed()', 'is not written');
SET LOCAL ROLE tap_importer;
SELECT is(interlock.versioned_update('item', 1, :version, '{"price": 20}'), :version::bigint, 'one that may not');
RESET ROLE;
SELECT results_eq('SELECT changed()', ARRAY['1 written'], 'is written');
SET LOCAL ROLE tap_importer;
SELECT throws_ok($$SELECT interlock.versioned_update('item', 1, 1, '{"note": null}')$$, '42501', NULL, 'a column that may not be written');
RESET ROLE;

SELECT * FROM finish();
ROLLBACK;
