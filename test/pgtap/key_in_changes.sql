-- Changes that repeat the key of their row, as the body of a PUT does: in each function that takes changes.
BEGIN;
SELECT plan(35);

CREATE TABLE doc (id bigint PRIMARY KEY, slug text NOT NULL UNIQUE DEFAULT gen_random_uuid(), body text, state text DEFAULT 'new');
CREATE TABLE numbered (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, body text);
CREATE DOMAIN code AS varchar(4);
CREATE TABLE pair (a numeric, b code, body text, PRIMARY KEY (a, b));
CREATE TABLE tagged (id uuid PRIMARY KEY, body text);
CREATE TABLE ranged (id int4range PRIMARY KEY, body text);
SELECT interlock.enable_versioning(t) FROM unnest('{doc,numbered,pair,tagged,ranged}'::regclass[]) t;
SELECT interlock.define_transitions('doc', 'state', '{"new": ["open"], "open": ["done"]}');
SELECT interlock.enable_marker('doc');
CREATE FUNCTION hint_of(command text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE hint text;
BEGIN
    EXECUTE command;
    RETURN NULL;
EXCEPTION WHEN OTHERS THEN
    GET STACKED DIAGNOSTICS hint = PG_EXCEPTION_HINT;
    RETURN hint;
END $$;
CREATE FUNCTION same(current jsonb, args jsonb) RETURNS jsonb LANGUAGE sql AS 'SELECT jsonb_build_object(''id'', current->''id'') || args';

-- versioned_upsert, and with one value more
SELECT is(interlock.versioned_upsert('doc', 901, NULL, '{"id": 901, "body": "a"}'), '1', 'a row is inserted');
SELECT results_eq('SELECT id, body FROM doc', $$VALUES (901::bigint, 'a')$$, 'under its key');
SELECT is(interlock.versioned_upsert('doc', 901, 1, '{"id": "901", "body": "b"}'), 2::bigint, 'and updated');
SELECT results_eq($$SELECT outcome, version FROM interlock.try_versioned_upsert('doc', '902', NULL::bigint, '{"body": "a", "id": 902}')$$,
    $$VALUES ('inserted', 1::bigint)$$, 'try_versioned_upsert');
SELECT throws_ok($$SELECT interlock.versioned_upsert('doc', 903, NULL, '{"id": 904}')$$, '22023',
    'column "id" is part of the key and cannot be changed', 'another value is an error');
SELECT is(hint_of($$SELECT interlock.versioned_upsert('doc', 903, NULL, '{"id": 904}')$$),
    'Leave it out of the changes, or give the value that the key has. To change the key of a row, use a plain UPDATE.', 'whose hint suits a new row');
SELECT throws_ok($$SELECT interlock.versioned_upsert('doc', 903, NULL, '{"id": null}')$$, '22023', NULL, 'and so is null');
SELECT throws_ok($$SELECT interlock.versioned_upsert('doc', 903, NULL, '{"id": "x"}')$$, '22P02', NULL, 'or no value at all');

-- versioned_update and the others
SELECT is(interlock.versioned_update('doc', 901, 2, '{"id": 901, "body": "c"}'), 3::bigint, 'versioned_update');
SELECT is(interlock.versioned_update('doc', 901, 3, '{"id": 901}'), 4::bigint, 'no other changes move the version alone');
SELECT results_eq($$SELECT outcome, version FROM interlock.try_versioned_update('doc', 901, 4, '{"id": 901, "body": "d"}')$$,
    $$VALUES ('updated', 5::bigint)$$, 'try_versioned_update');
SELECT results_eq($$SELECT outcome, current->>'state' FROM interlock.try_versioned_update('doc', 901, 1, '{"id": 901, "body": "e"}', '{"id": 901, "body": "d"}', 'merge')$$,
    $$VALUES ('merged', 'new')$$, 'a merge');
SELECT results_eq($$SELECT outcome, version FROM interlock.versioned_update_many('doc', '[{"key": 901, "version": 6, "changes": {"id": 901, "body": "f"}}]')$$,
    $$VALUES ('updated', 7::bigint)$$, 'versioned_update_many');
SELECT results_eq($$SELECT outcome, version FROM interlock.update_with_retry('doc', 901, 'same(jsonb, jsonb)', '{"body": "g"}')$$,
    $$VALUES ('updated', 8::bigint)$$, 'update_with_retry');
SELECT results_eq($$SELECT outcome, version FROM interlock.update_with_retry('doc', 901, 'same(jsonb, jsonb)', '{}')$$,
    $$VALUES ('unchanged', 8::bigint)$$, 'for which the key alone is no change');
SELECT lives_ok($$SELECT interlock.transition('doc', 901, 'new', 'open', '{"id": 901, "body": "h"}')$$, 'transition');
SELECT results_eq($$SELECT outcome FROM interlock.try_transition('doc', 901, 'open', 'done', '{"id": 901, "body": "i"}')$$,
    $$VALUES ('transitioned')$$, 'try_transition');
SELECT lives_ok($$SELECT interlock.lock_row('doc', 901, 'anna')$$, 'the row is locked');
SELECT is(interlock.save_row('doc', 901, 'anna', '{"id": 901, "body": "j"}'), 11::bigint, 'save_row');
SELECT results_eq('SELECT id, body, state FROM doc WHERE id = 901', $$VALUES (901::bigint, 'j', 'done')$$, 'all were written');
SELECT throws_ok($$SELECT interlock.versioned_update('doc', 901, 12, '{"id": 902}')$$, '22023', NULL, 'another value in versioned_update');
SELECT throws_ok($$SELECT * FROM interlock.try_versioned_update('doc', 901, 12, '{"id": 902}')$$, '22023', NULL, 'in try_versioned_update');
SELECT throws_ok($$SELECT interlock.transition('doc', 901, 'done', 'done', '{"id": 902}')$$, '22023', NULL, 'in transition');
SELECT throws_ok($$SELECT interlock.save_row('doc', 901, 'anna', '{"id": 902}')$$, '22023', NULL, 'and in save_row');

-- keys of other types
SELECT is(interlock.versioned_upsert('pair', '{"a": 1, "b": "x"}', NULL::bigint, '{"a": 1.0, "b": "x", "body": "a"}'), 1::bigint, 'a composite key');
SELECT is(interlock.versioned_update('pair', '{"a": 1.0, "b": "x"}', 1, '{"b": "x", "body": "b"}'), 2::bigint, 'or a part of it');
SELECT throws_ok($$SELECT interlock.versioned_update('pair', '{"a": 1, "b": "x"}', 2, '{"a": 1, "b": "X"}')$$, '22023',
    'column "b" is part of the key and cannot be changed', 'one part differs');
SELECT is(interlock.versioned_upsert('tagged', 'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11', NULL::bigint, '{"id": "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"}'), 1::bigint, 'a uuid');
SELECT is(interlock.versioned_upsert('ranged', '[1,3]'::int4range, NULL::bigint, '{"id": "[1,4)"}'), 1::bigint, 'a range');
INSERT INTO numbered (body) VALUES ('a');
SELECT is(interlock.versioned_update('numbered', 1, 1, '{"id": 1, "body": "b"}'), 2::bigint, 'a key that the server makes');
SELECT throws_ok($$SELECT interlock.versioned_update('numbered', 1, 2, '{"id": 2, "body": "b"}')$$, '428C9');

-- named by another key
UPDATE doc SET slug = 'nine', body = 'k' WHERE id = 901;
SELECT is(interlock.versioned_update('doc', '{"slug": "nine"}', 12, '{"slug": "nine", "body": "l"}'), 13::bigint, 'another key');
SELECT is(hint_of($$SELECT interlock.versioned_update('doc', '{"slug": "nine"}', 13, '{"slug": "ten"}')$$),
    'Leave it out of the changes, give the value that the key has, or name the row by another key, such as ("id").', 'of another value');
SELECT is(hint_of($$SELECT interlock.versioned_update('doc', '{"slug": "nine"}', 13, '{"id": 901}')$$),
    'Leave it out of the changes, or name the row by ("id"). To change the key of a row, use a plain UPDATE.', 'and the key of the table');
SELECT is(interlock.versioned_update('doc', 901, 13, '{"id": 901, "slug": "ten"}'), 14::bigint, 'the other key changes where the row has its name by the first');

SELECT * FROM finish();
ROLLBACK;
