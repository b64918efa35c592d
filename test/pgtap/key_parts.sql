-- VER-3: keys of several parts, whatever their types and the session's settings are.
BEGIN;
SELECT plan(40);

SELECT is(interlock.idempotency_key('redeem', 123, 500), 'redeem:123:500', 'numbers');
SELECT is(interlock.idempotency_key('redeem', '123', '500'), 'redeem:123:500', 'make the key of their texts');
SELECT is(interlock.idempotency_key(1), '1', 'one part');
SELECT is(interlock.idempotency_key('notify', 7::bigint, date '2026-03-01'), 'notify:7:2026-03-01', 'a date');
SELECT is(interlock.idempotency_key('a:b', 1, 'c\d'), 'a\:b:1:c\\d', 'parts are escaped');
SELECT is(interlock.idempotency_key('x', uuid '00000000-0000-0000-0000-00000000000A', 5.00, true, 'y '::char(3)),
    'x:00000000-0000-0000-0000-00000000000a:5.00:true:y', 'uuid, numeric, boolean, char');
SELECT is(interlock.idempotency_key(VARIADIC ARRAY['a', 'b']), 'a:b', 'an array of texts');
SELECT is(interlock.idempotency_key(VARIADIC ARRAY[1, 2]), '1:2', 'an array of numbers');
SELECT throws_ok($$SELECT interlock.idempotency_key('a', NULL, 1)$$, '22004', 'part 2 of the key must not be null', 'null');
SELECT throws_ok($$SELECT interlock.idempotency_key(1, NULL)$$, '22004', 'part 2 of the key must not be null', 'null beside a number');
SELECT throws_ok($$SELECT interlock.idempotency_key(VARIADIC NULL::int[])$$, '22004', 'argument "parts" must not be null', 'no array');
SELECT throws_ok($$SELECT interlock.idempotency_key(VARIADIC '{}'::int[])$$, '22023', 'argument "parts" must not be empty', 'an empty one');

SELECT is(interlock.key_path('tenant', 7, 'doc', 42), 'tenant/7/doc/42', 'a path');
SELECT is(interlock.key_path('a/b', 'c%d'), 'a%2Fb/c%25d', 'a part is one level');
SELECT isnt(interlock.key_path('a/b'), interlock.key_path('a%2Fb'), 'different parts, different paths');
SELECT is(interlock.key_path(VARIADIC ARRAY['https://example.org/x', 'y']), 'https:%2F%2Fexample.org%2Fx/y', 'a URL');
SELECT is(interlock.key_path('day', date '2026-03-01', true), 'day/2026-03-01/true', 'of other types');
SELECT throws_ok($$SELECT interlock.key_path('a', '')$$, '22023', 'part 2 of the key must not be empty', 'an empty part');
SELECT throws_ok($$SELECT interlock.key_path('a', NULL)$$, '22004', 'part 2 of the key must not be null', 'a null');
SELECT throws_ok($$SELECT interlock.key_path(VARIADIC '{}'::text[])$$, '22023', 'argument "parts" must not be empty', 'nothing');

-- a slash in a part guards that part alone
SELECT is(outcome, 'acquired', 'a lease') FROM interlock.acquire_lease(interlock.key_path('file', 'a/b'));
SELECT is(outcome, 'acquired', 'of a path that only looks like one below') FROM interlock.acquire_lease(interlock.key_path('file', 'a'));
SELECT is(outcome, 'held', 'and of what is above both') FROM interlock.acquire_lease('file');
SELECT lives_ok($$SELECT interlock.lock_key(interlock.key_path('file', 'a/b')), interlock.lock_key(interlock.key_path('file', 7))$$, 'key locks');

-- the session's settings change nothing
CREATE TEMP VIEW settled AS SELECT interlock.idempotency_key(1, date '2026-03-01', timestamp '2026-03-01 10:00', timestamptz '2026-03-01 10:00+00',
    interval '1 day 2 s', 0.1::float8, 1e-7::float4, '\x01'::bytea, ARRAY[timestamptz '2026-03-01 10:00+00'], '{"a": 1}'::jsonb, ROW(1, date '2026-03-01'),
    int4range(1, 3), 'infinity'::timestamptz) AS key;
CREATE TEMP TABLE before AS SELECT key FROM settled;
SELECT is(key, '1:2026-03-01:2026-03-01T10\:00\:00:2026-03-01T10\:00\:00+00\:00:1 day 00\:00\:02:0.1:1e-07:\\x01:{"2026-03-01 10\:00\:00+00"}:{"a"\: 1}:(1,2026-03-01):[1,3):infinity',
    'every type') FROM before;
SET LOCAL DateStyle = 'German, DMY';
SET LOCAL TimeZone = 'Asia/Kolkata';
SET LOCAL IntervalStyle = 'iso_8601';
SET LOCAL extra_float_digits = -10;
SET LOCAL bytea_output = 'escape';
SELECT is(s.key, b.key, 'in other settings') FROM settled s, before b;
SELECT is(current_setting('DateStyle') || current_setting('TimeZone') || current_setting('bytea_output'), 'German, DMYAsia/Kolkataescape', 'which are left alone');

PREPARE untyped AS SELECT interlock.idempotency_key($1, $2), interlock.key_path($1, $2);
SELECT results_eq($$SELECT parameter_types::text FROM pg_prepared_statements WHERE name = 'untyped'$$, $$VALUES ('{text,text}')$$, 'untyped parameters are texts');
SELECT results_eq($$EXECUTE untyped('a', 'b')$$, $$VALUES ('a:b', 'a/b')$$, 'of any number');
PREPARE typed (text, int, uuid) AS SELECT interlock.idempotency_key($1, $2, $3);
SELECT results_eq($$EXECUTE typed('a', 5, '00000000-0000-0000-0000-00000000000A')$$, $$VALUES ('a:5:00000000-0000-0000-0000-00000000000a')$$, 'typed ones are values');

-- drivers send numbers with their types and texts without one
PREPARE mixed (unknown, smallint, int) AS SELECT interlock.idempotency_key($1, $2, $3), interlock.key_path($1, $2, $3);
SELECT results_eq($$EXECUTE mixed('a:b', 5, 7)$$, $$VALUES ('a\:b:5:7', 'a:b/5/7')$$, 'a text without a type beside numbers');
SELECT results_eq($$SELECT parameter_types::text FROM pg_prepared_statements WHERE name = 'mixed'$$, $$VALUES ('{text,smallint,integer}')$$, 'is text');
SELECT is(interlock.key_path('a'::varchar, 7, 'b'::name), 'a/7/b', 'a varchar');
SELECT is(interlock.key_path('a'::name, 7), 'a/7', 'a name');
SELECT is(interlock.key_path('a'::char(3), 7), 'a/7', 'a char');
SELECT is(interlock.key_path('a', VARIADIC ARRAY[1, 2]), 'a/1/2', 'a text before an array');
SELECT is(interlock.key_path('a', VARIADIC '{}'::int[]), 'a', 'which may be empty');
SELECT throws_ok($$SELECT interlock.key_path('a', VARIADIC NULL::int[])$$, '22004', 'argument "parts" must not be null', 'and not null');
SELECT throws_ok($$SELECT interlock.key_path(NULL, 7)$$, '22004', 'part 1 of the key must not be null', 'nor may the text be');
SELECT throws_ok($$SELECT interlock.idempotency_key('a', 7, NULL)$$, '22004', 'part 3 of the key must not be null', 'nor a part after it');

SELECT * FROM finish();
ROLLBACK;
