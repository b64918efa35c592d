-- VER-3: numbers are seconds where a lease is for a time, and nothing else means something else for it.
BEGIN;
SELECT plan(48);

-- Which function a call means: by the second of its arguments that are times
CREATE FUNCTION pg_temp.meant(call text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    result text;
BEGIN
    EXECUTE 'DROP VIEW IF EXISTS meant';
    EXECUTE 'CREATE TEMP VIEW meant AS SELECT * FROM interlock.' || call;
    SELECT string_agg(format_type(argtype, NULL), ', ' ORDER BY n) INTO result
    FROM pg_depend d JOIN pg_rewrite r ON d.classid = 'pg_rewrite'::regclass AND r.oid = d.objid
        JOIN pg_proc p ON d.refclassid = 'pg_proc'::regclass AND p.oid = d.refobjid
        CROSS JOIN unnest(p.proargtypes) WITH ORDINALITY a (argtype, n)
    WHERE r.ev_class = 'meant'::regclass AND p.proname ~ '^(acquire|renew)_' AND p.proargnames[n] IN ('ttl', 'wait');
    RETURN result;
EXCEPTION WHEN undefined_function OR ambiguous_function THEN
    RETURN SQLSTATE;
END $$;
SET LOCAL client_min_messages = warning;

SELECT is(pg_temp.meant(call), types, call) FROM (VALUES
    ($$acquire_lease('k')$$, 'interval, interval'),
    ($$acquire_lease('k', '30 s')$$, 'interval, interval'),
    ($$acquire_lease('k', NULL)$$, 'interval, interval'),
    ($$acquire_lease('k', wait => '5 s')$$, 'interval, interval'),
    ($$acquire_lease('k', interval '30 s', '5')$$, 'interval, interval'),
    ($$acquire_lease('k', '30', interval '5 s')$$, 'interval, interval'),
    ($$acquire_lease('k', time '00:30')$$, 'interval, interval'),
    ($$acquire_lease('k', 30)$$, 'interlock.seconds, interlock.seconds'),
    ($$acquire_lease('k', 30::smallint)$$, 'interlock.seconds, interlock.seconds'),
    ($$acquire_lease('k', 30::bigint)$$, 'interlock.seconds, interlock.seconds'),
    ($$acquire_lease('k', 0.5)$$, 'interlock.seconds, interlock.seconds'),
    ($$acquire_lease('k', 30::float8)$$, 'interlock.seconds, interlock.seconds'),
    ($$acquire_lease('k', 30, 5)$$, 'interlock.seconds, interlock.seconds'),
    ($$acquire_lease('k', 30, '5 s')$$, 'interlock.seconds, interlock.seconds'),
    ($$acquire_lease('k', 30, NULL)$$, 'interlock.seconds, interlock.seconds'),
    ($$acquire_lease('k', 30, interval '5 s')$$, 'interlock.seconds, interlock.seconds'),
    ($$acquire_lease('k', '30 s', 5)$$, 'interlock.seconds, interlock.seconds'),
    ($$acquire_lease('k', interval '30 s', 5)$$, 'interlock.seconds, interlock.seconds'),
    ($$acquire_lease('k', ttl => 30, wait => 5.5, holder => 'h')$$, 'interlock.seconds, interlock.seconds'),
    ($$acquire_lease('k', now())$$, '42883'),
    ($$acquire_lease('k', '30'::text)$$, '42883'),
    ($$acquire_lease('k', true)$$, '42883'),
    ($$acquire_permit('k', 3, 30)$$, 'interlock.seconds, interlock.seconds'),
    ($$acquire_permit('k', 3, '30')$$, 'interval, interval'),
    ($$acquire_leases('{k}', 30, 1)$$, 'interlock.seconds, interlock.seconds'),
    ($$acquire_leases('{k}', '30 s')$$, 'interval, interval'),
    ($$renew_lease('k', 1, 30)$$, 'interlock.seconds'),
    ($$renew_lease('k', 1, '30 s')$$, 'interval'),
    ($$renew_lease('k', 1)$$, 'interval')) c (call, types);

PREPARE untyped AS SELECT interlock.acquire_lease($1, $2, $3), interlock.renew_lease($1, $4, $2);
SELECT results_eq($$SELECT parameter_types::text FROM pg_prepared_statements WHERE name = 'untyped'$$,
    $$VALUES ('{text,interval,interval,bigint}')$$, 'parameters without a type are intervals');

-- How long that is
SELECT outcome FROM interlock.acquire_lease('k1', 30) UNION ALL SELECT outcome FROM interlock.acquire_lease('k2', 1.5)
UNION ALL SELECT outcome FROM interlock.acquire_lease('k3', 3600::bigint) UNION ALL SELECT outcome FROM interlock.acquire_permit('k4', 2, 90::float8)
UNION ALL SELECT outcome FROM interlock.acquire_leases('{k5}', '5 s', 0);
SELECT is((SELECT ttl FROM interlock.leases WHERE key = t.key), t.ttl, t.ttl::text)
FROM (VALUES ('k1', interval '30 s'), ('k2', '1.5 s'), ('k3', '1 h'), ('k4', '90 s'), ('k5', '5 s')) t (key, ttl);
SELECT is((interlock.acquire_lease('k1', 30, 0)).outcome, 'held', 'held');

CREATE DOMAIN pg_temp.whole AS bigint;
CREATE DOMAIN pg_temp.half AS numeric;
SELECT is(ARRAY[2::pg_temp.whole::interlock.seconds::text, 1.5::pg_temp.half::interlock.seconds::text], '{00:00:02,00:00:01.5}', 'domains over numbers');

-- What is no time
SELECT throws_ok(format('SELECT interlock.acquire_lease(%L, %s)', 'k', number), state, NULL, number) FROM (VALUES
    ('0', '22023'), ('-1', '22023'), ('1e30', '22008'), ('''NaN''::float8', '22008'), ('''-Infinity''::float8', '22008'),
    ('''NaN''::numeric', '22008'), (format('%s::bigint', 1::bigint << 62), '22008'), ('1e9::int', '22023')) n (number, state);
SELECT throws_ok($$SELECT interlock.acquire_lease('k', 30, 'soon')$$, '22007', NULL, 'a wait that is none');
SELECT throws_ok($$SELECT interlock.acquire_lease('k', 30, -1)$$, '22023', NULL, 'a negative wait');

-- Numbers are intervals nowhere else
SELECT throws_ok('SELECT now() + 30', '42883', NULL, 'numbers are no intervals');

SELECT * FROM finish();
ROLLBACK;
