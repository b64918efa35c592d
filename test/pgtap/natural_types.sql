-- ORM-8: keys and expected versions as typed drivers send them. "Untyped" is in prepared.sql.
BEGIN;
SELECT plan(84);

CREATE TABLE counted (id int PRIMARY KEY, body text, version bigint NOT NULL DEFAULT 1);
CREATE TABLE timed (id uuid PRIMARY KEY, body text, at timestamptz NOT NULL DEFAULT now());
CREATE TABLE local (id bigint PRIMARY KEY, body text, at timestamp NOT NULL DEFAULT now());
SELECT interlock.enable_versioning('counted'), interlock.enable_versioning('timed', 'at'), interlock.enable_versioning('local', 'at');

-- A call with parameters of these types means the function with this type of version
CREATE FUNCTION pg_temp.version_type(call text, types text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    result text;
BEGIN
    EXECUTE 'DROP VIEW IF EXISTS meant';
    EXECUTE format('CREATE TEMP VIEW meant AS SELECT p1 FROM (SELECT %s) p CROSS JOIN LATERAL interlock.%s',
        (SELECT string_agg(format('NULL::%s AS p%s', type, n), ', ') FROM unnest(string_to_array(types, ', ')) WITH ORDINALITY t (type, n)),
        regexp_replace(call, '\$(\d)', 'p\1', 'g'));
    SELECT format_type(p.proargtypes[array_position(p.proargnames, 'expected') - 1], NULL) INTO result
    FROM pg_depend d JOIN pg_rewrite r ON d.classid = 'pg_rewrite'::regclass AND r.oid = d.objid
        JOIN pg_proc p ON d.refclassid = 'pg_proc'::regclass AND p.oid = d.refobjid
    WHERE r.ev_class = 'meant'::regclass AND p.pronamespace = 'interlock'::regnamespace;
    RETURN result;
EXCEPTION WHEN undefined_function OR ambiguous_function OR indeterminate_datatype THEN
    RETURN SQLSTATE;
END $$;
SET LOCAL client_min_messages = warning;

SELECT is(pg_temp.version_type(call, 'int, ' || type), meant, split_part(call, '(', 1) || ': ' || type)
FROM (VALUES
        ('versioned_update(''counted'', $1, $2, ''{}'')'), ('try_versioned_update(''counted'', $1, $2, ''{}'')'),
        ('versioned_delete(''counted'', $1, $2)'), ('try_versioned_delete(''counted'', $1, $2)'),
        ('versioned_upsert(''counted'', $1, $2, ''{}'')'), ('try_versioned_upsert(''counted'', $1, $2, ''{}'')'),
        ('assert_version(''counted'', $1, $2)'), ('save_row(''counted'', $1, ''h'', ''{}'', $2)')) c (call),
    (VALUES ('smallint', 'bigint'), ('int', 'bigint'), ('bigint', 'bigint'), ('timestamptz', 'timestamp with time zone'),
        ('timestamp', 'timestamp with time zone'), ('date', 'timestamp with time zone'), ('text', 'text'), ('varchar', 'text'),
        ('numeric', '42883')) t (type, meant);

-- And does what it says
INSERT INTO counted SELECT n FROM generate_series(1, 9) n;
SELECT is(interlock.versioned_update('counted', 1::smallint, 1::smallint, '{}'), 2::bigint, 'smallint');
SELECT is(interlock.versioned_update('counted', 1::bigint, 2::bigint, '{}'), 3::bigint, 'bigint');
SELECT is(interlock.versioned_update('counted', 1::numeric, 3, '{}'), 4::bigint, 'a numeric key');
SELECT is(interlock.versioned_update('counted', '1'::varchar, '4'::varchar, '{}'), '5', 'varchar');
SELECT is(interlock.versioned_update('counted', '{"id": 1}'::jsonb, 5, '{}'), 6::bigint, 'a jsonb key');
SELECT throws_ok($$SELECT interlock.versioned_update('counted', 1, now(), '{}')$$, '42804',
    'version column "version" of table "counted" has type bigint', 'a time is no counter');
INSERT INTO timed VALUES ('00000000-0000-0000-0000-00000000000a', 'x', '2020-01-01 00:00+00');
INSERT INTO local VALUES (1, 'x', '2020-01-01 00:00');
SET LOCAL TimeZone = 'UTC';
SELECT lives_ok($$SELECT interlock.assert_version('timed', '00000000-0000-0000-0000-00000000000a'::uuid, timestamp '2020-01-01')$$, 'timestamp');
SELECT lives_ok($$SELECT interlock.assert_version('timed', '00000000-0000-0000-0000-00000000000a'::uuid, date '2020-01-01')$$, 'date');
SELECT lives_ok($$SELECT interlock.assert_version('timed', '00000000-0000-0000-0000-00000000000a', timestamptz '2020-01-01 00:00+00')$$, 'timestamptz');
SELECT lives_ok($$SELECT interlock.assert_version('timed', '00000000-0000-0000-0000-00000000000a'::text, '2020-01-01 00:00+00'::text)$$, 'text');
SELECT lives_ok($$SELECT interlock.assert_version('local', 1, timestamp '2020-01-01')$$, 'timestamp without time zone');
SELECT throws_ok($$SELECT interlock.assert_version('timed', '00000000-0000-0000-0000-00000000000a'::uuid, 1)$$, '42804', NULL, 'a counter is no time');

SELECT * FROM finish();
ROLLBACK;
