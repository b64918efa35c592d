-- assert_version: ways to call it, what it raises, whose rights it takes, and that it locks and moves nothing.
BEGIN;
SELECT plan(31);

CREATE TABLE doc (id bigint PRIMARY KEY, body text);
CREATE TABLE tagged (id uuid PRIMARY KEY, at timestamp DEFAULT '2026-01-01 00:00:00.123456');
CREATE TABLE pair (a int, b text, body text, PRIMARY KEY (a, b));
CREATE TABLE parted (id int PRIMARY KEY, body text) PARTITION BY RANGE (id);
CREATE TABLE parted_one PARTITION OF parted FOR VALUES FROM (1) TO (100);
CREATE TABLE plain (id int PRIMARY KEY);
CREATE VIEW doc_view AS SELECT * FROM doc;
SELECT interlock.enable_versioning('doc'), interlock.enable_versioning('tagged', 'at'), interlock.enable_versioning('pair'),
       interlock.enable_versioning('parted');
INSERT INTO doc VALUES (1, 'x'), (2, 'hidden');
INSERT INTO tagged VALUES ('00000000-0000-0000-0000-000000000001');
INSERT INTO pair VALUES (1, 'b', 'x');
INSERT INTO parted VALUES (1, 'x');

-- every way to name a row and a version
SELECT lives_ok($$SELECT interlock.assert_version('doc', 1, 1)$$, 'integer key and version');
SELECT lives_ok($$SELECT interlock.assert_version('doc', '1', 1)$$, 'a key as text');
SELECT lives_ok($$SELECT interlock.assert_version('doc', '1', '1')$$, 'a key and a version as text');
SELECT lives_ok($$SELECT interlock.assert_version(rel => 'doc', key => 1, expected => 1)$$, 'named arguments');
SELECT lives_ok($$SELECT interlock.assert_version('pair', '{"a": 1, "b": "b"}', 1)$$, 'a composite key');
SELECT lives_ok($$SELECT interlock.assert_version('tagged', '00000000-0000-0000-0000-000000000001'::uuid, '2026-01-01 00:00:00.123456'::timestamptz)$$,
    'a timestamp');
SELECT lives_ok($$SELECT interlock.assert_version('parted', 1, 1)$$, 'a partitioned table');
SELECT lives_ok($$SELECT interlock.assert_version('parted_one', 1, 1)$$, 'a partition');
PREPARE untyped AS SELECT interlock.assert_version('doc', $1, $2);
SELECT is(parameter_types::text, '{text,text}', 'parameters without a type are text') FROM pg_prepared_statements WHERE name = 'untyped';
SELECT lives_ok($$EXECUTE untyped('1', '1')$$, 'and work');

-- it moves nothing; what is written then is seen as any write is (VER-13)
SELECT is(version, 1::bigint, 'the version stays') FROM doc WHERE id = 1;
SELECT results_eq($$UPDATE doc SET body = 'y' WHERE id = 1 RETURNING version$$, $$VALUES (2::bigint)$$, 'a plain UPDATE writes it');
SELECT throws_ok($$SELECT interlock.assert_version('doc', 1, 1)$$, 'IL001', NULL, 'and the asserted version is stale then');
SELECT lives_ok($$SELECT interlock.assert_version('doc', 1, 2)$$, 'the new one is not');

-- errors
CREATE FUNCTION detail_of(command text) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE detail text;
BEGIN
    EXECUTE command;
    RETURN NULL;
EXCEPTION WHEN OTHERS THEN
    GET STACKED DIAGNOSTICS detail = PG_EXCEPTION_DETAIL;
    RETURN detail;
END $$;
SELECT is(detail_of($$SELECT interlock.assert_version('doc', 1, 1)$$),
    '{"table": "public.doc", "key": {"id": 1}, "expected": 1, "version": 2}', 'IL001 says what it met');
SELECT throws_ok($$SELECT interlock.assert_version('doc', 99, 1)$$, 'P0002');
SELECT throws_ok($$SELECT interlock.assert_version('doc', NULL, 1)$$, '22004');
SELECT throws_ok($$SELECT interlock.assert_version('doc', 1, NULL)$$, '22004');
SELECT throws_ok($$SELECT interlock.assert_version('doc', 1, now())$$, '42804');
SELECT throws_ok($$SELECT interlock.assert_version('plain', 1, 1)$$, '55000');
SELECT throws_ok($$SELECT interlock.assert_version('doc_view', 1, 1)$$, '42809');

-- the rights of SELECT ... FOR NO KEY UPDATE
CREATE ROLE tap_asserter;
SET LOCAL ROLE tap_asserter;
SELECT throws_ok($$SELECT interlock.assert_version('doc', 1, 2)$$, '42501', NULL, 'no right at all');
RESET ROLE;
GRANT SELECT ON doc TO tap_asserter;
SET LOCAL ROLE tap_asserter;
SELECT throws_ok($$SELECT interlock.assert_version('doc', 1, 2)$$, '42501', NULL, 'who may only read locks nothing');
RESET ROLE;
REVOKE SELECT ON doc FROM tap_asserter;
GRANT UPDATE ON doc TO tap_asserter;
SET LOCAL ROLE tap_asserter;
SELECT throws_ok($$SELECT interlock.assert_version('doc', 1, 2)$$, '42501', NULL, 'who may not read the version learns nothing of it');
RESET ROLE;
REVOKE UPDATE ON doc FROM tap_asserter;
GRANT SELECT (id, version), UPDATE (body) ON doc TO tap_asserter;
SET LOCAL ROLE tap_asserter;
SELECT lives_ok($$SELECT interlock.assert_version('doc', 1, 2)$$, 'the columns it reads, and one to write, will do');
RESET ROLE;

-- row security: a row that the caller may not read, and one that he may not write
ALTER TABLE doc ENABLE ROW LEVEL SECURITY;
CREATE POLICY reads ON doc FOR SELECT USING (body <> 'hidden');
CREATE POLICY writes ON doc FOR UPDATE USING (body = 'z');
SET LOCAL ROLE tap_asserter;
SELECT throws_ok($$SELECT interlock.assert_version('doc', 2, 1)$$, 'P0002', NULL, 'a hidden row');
SELECT throws_ok($$SELECT interlock.assert_version('doc', 1, 2)$$, '42501', NULL, 'a row that cannot be written');
RESET ROLE;

-- with interlock.direct_execution = off by a statement
SET LOCAL interlock.direct_execution = off;
SELECT lives_ok($$SELECT interlock.assert_version('pair', '{"a": 1, "b": "b"}', 1)$$, 'by a statement');
SELECT throws_ok($$SELECT interlock.assert_version('pair', '{"a": 1, "b": "b"}', 2)$$, 'IL001', NULL, 'which conflicts too');
SELECT throws_ok($$SELECT interlock.assert_version('pair', '{"a": 9, "b": "b"}', 2)$$, 'P0002', NULL, 'and finds no row');
SET LOCAL transaction_read_only = on;
SELECT throws_ok($$SELECT interlock.assert_version('pair', '{"a": 1, "b": "b"}', 1)$$, '25006', NULL, 'nothing is locked in a read-only transaction');

SELECT * FROM finish();
ROLLBACK;
