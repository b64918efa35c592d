-- KEY-51: every argument that says how long takes an interval, a number of seconds, or a text of either. VER-3: nothing else
-- is taken for a duration.
BEGIN;
SELECT * FROM no_plan();
SET LOCAL intervalstyle = 'postgres';

-- The type: of all arguments that are durations, and of nothing else
CREATE TEMP VIEW durations AS
SELECT p.oid, p.proname::text AS function, p.proargnames[n] AS argument
FROM pg_proc p CROSS JOIN unnest(p.proargtypes) WITH ORDINALITY a (type, n)
WHERE p.pronamespace = 'interlock'::regnamespace AND type = 'interlock.seconds'::regtype;
SELECT is_empty($$SELECT p.oid::regprocedure FROM pg_proc p WHERE pronamespace = 'interlock'::regnamespace AND 'interval'::regtype = ANY (proargtypes)$$,
    'KEY-51: no argument is only an interval');
SELECT is_empty(
    $$SELECT p.oid::regprocedure FROM pg_proc p CROSS JOIN unnest(p.proallargtypes, p.proargmodes) a (type, mode)
      WHERE pronamespace::regnamespace::text ~ '^interlock' AND type = 'interlock.seconds'::regtype AND mode <> 'i'$$, 'results are intervals');
SELECT is_empty($$SELECT attrelid::regclass, attname FROM pg_attribute WHERE atttypid = 'interlock.seconds'::regtype$$, 'and so are columns');

-- How it is written
CREATE TEMP TABLE forms (form text, printed text);
INSERT INTO forms VALUES
    ('3', '00:00:03'), ('3::smallint', '00:00:03'), ('3::bigint', '00:00:03'), ('0.5', '00:00:00.5'), ('1.25::real', '00:00:01.25'),
    ('0.1::double precision', '00:00:00.1'), ('interval ''15 min''', '00:15:00'), ('''900''', '00:15:00'), ('''0.5''', '00:00:00.5'),
    ('''1e2''', '00:01:40'), ('''15 min''', '00:15:00'), ('''PT15M''', '00:15:00'), ('NULL', NULL);
SELECT results_eq(format('SELECT (%s)::interlock.seconds::text', form), ARRAY[printed], form) FROM forms;
CREATE DOMAIN pg_temp.whole AS bigint;
CREATE DOMAIN pg_temp.half AS numeric;
SELECT is(ARRAY[2::pg_temp.whole::interlock.seconds::text, 1.5::pg_temp.half::interlock.seconds::text], '{00:00:02,00:00:01.5}', 'domains over numbers');

-- The error of a call, or null: with its hint, as far as it has one
CREATE FUNCTION pg_temp.error_of(sql text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    hint text;
BEGIN
    EXECUTE sql;
    RETURN NULL;
EXCEPTION WHEN OTHERS THEN
    GET STACKED DIAGNOSTICS hint = PG_EXCEPTION_HINT;
    RETURN SQLSTATE || CASE WHEN hint <> '' THEN ' with a hint' ELSE '' END;
END $$;

-- A call is planned and not run: required arguments are null.
CREATE FUNCTION pg_temp.call_of(function oid, argument text, form text) RETURNS text LANGUAGE sql AS $$
    SELECT format('EXPLAIN SELECT * FROM interlock.%I(%s)', proname,
        string_agg(format('%I => %s', name, CASE WHEN name = argument THEN form WHEN type = '"any"'::regtype THEN '1' ELSE format('NULL::%s', type::regtype) END), ', ' ORDER BY n))
    FROM pg_proc CROSS JOIN unnest(proargtypes, proargnames[:pronargs]) WITH ORDINALITY a (type, name, n)
    WHERE oid = function AND (n <= pronargs - pronargdefaults OR name = argument) GROUP BY proname $$;
SELECT is_empty(format($$SELECT form, pg_temp.error_of(pg_temp.call_of(%s, %L, form)) FROM forms WHERE pg_temp.error_of(pg_temp.call_of(%s, %L, form)) IS NOT NULL$$,
    oid, argument, oid, argument), 'KEY-51: ' || function || ' takes all of them as ' || argument) FROM durations ORDER BY 1;
SELECT is(pg_temp.error_of(format('SELECT interlock.lock_key(''k'', wait => %s)', form)), '42883 with a hint', form || ' is no duration')
FROM unnest(ARRAY['now()', '''30''::text', 'true', 'current_date', '''{}''::jsonb']) form;
SELECT is(pg_temp.error_of('SELECT interlock.lock_key(''k'', wait => ''soon'')'), '22007 with a hint', 'nor is a text that is neither');
SELECT throws_ok('SELECT now() + 30', '42883', NULL, 'numbers are intervals nowhere else');

-- What no function takes
CREATE TABLE thing (id int PRIMARY KEY, body text, stock int NOT NULL DEFAULT 10);
CREATE TABLE fresh (id int PRIMARY KEY);
CREATE FUNCTION pg_temp.command(request jsonb) RETURNS jsonb LANGUAGE sql AS 'SELECT request';
SELECT interlock.enable_versioning('thing');
SELECT interlock.enable_marker('thing');
SELECT interlock.enable_escrow('thing', 'stock');
INSERT INTO thing (id) VALUES (1);
SELECT interlock.define_idempotency_scope('seconds');
CREATE TEMP TABLE calls (function text, argument text, call text);
INSERT INTO calls VALUES
    ('acquire_lease', 'ttl', '(''k'', %s)'), ('acquire_lease', 'wait', '(''k'', wait => %s)'), ('acquire_lease', 'at_least', '(''k'', at_least => %s)'),
    ('acquire_permit', 'ttl', '(''k'', 3, %s)'), ('acquire_permit', 'wait', '(''k'', 3, wait => %s)'),
    ('acquire_leases', 'ttl', '(''{k}'', %s)'), ('acquire_leases', 'wait', '(''{k}'', wait => %s)'), ('renew_lease', 'ttl', '(''k'', 1, %s)'),
    ('renew_lease', 'at_least', '(''k'', 1, 60, at_least => %s)'), ('renew_leases', 'ttl', '(''{k}'', ''{1}'', %s)'),
    ('lock_key', 'wait', '(''k'', wait => %s)'), ('lock_keys', 'wait', '(''{k}'', wait => %s)'),
    ('try_lock_key', 'wait', '(''k'', wait => %s)'), ('try_lock_keys', 'wait', '(''{k}'', wait => %s)'),
    ('select_for_update', 'wait', '(''thing'', ''{1}'', wait => %s)'),
    ('lock_row', 'ttl', '(''thing'', 1, ''anna'', %s)'), ('lock_rows', 'ttl', '(''thing'', ''{1}'', ''anna'', %s)'),
    ('claim_rows', 'ttl', '(''thing'', ''anna'', ttl => %s)'), ('touch_row', 'ttl', '(''thing'', 1, ''anna'', %s)'),
    ('hand_over_row', 'ttl', '(''thing'', 1, ''anna'', ''bert'', %s)'), ('take_over_row', 'ttl', '(''thing'', 1, ''bert'', ''why'', %s)'), ('enable_marker', 'ttl', '(''fresh'', %s)'),
    ('adjust', 'wait', '(''thing'', 1, ''stock'', -1, %s)'), ('try_adjust', 'wait', '(''thing'', 1, ''stock'', -1, %s)'),
    ('reserve', 'ttl', '(''thing'', 1, ''stock'', 1, %s)'), ('reserve', 'wait', '(''thing'', 1, ''stock'', 1, 900, wait => %s)'),
    ('reserve_many', 'ttl', '(''[{"rel": "thing", "key": 1, "column": "stock", "amount": 1}]'', %s)'),
    ('reserve_many', 'wait', '(''[{"rel": "thing", "key": 1, "column": "stock", "amount": 1}]'', 900, wait => %s)'),
    ('extend_reservation', 'ttl', '(1, %s)'), ('enable_history', 'keep_for', '(''fresh'', keep_for => %s)'),
    ('enable_history', 'partition_by', '(''fresh'', keep_for => 60, partition_by => %s)'), ('end_grace', 'time_left', '(''why'', 1, %s)'),
    ('define_idempotency_scope', 'ttl', '(''other'', ttl => %s)'), ('define_idempotency_scope', 'stale_after', '(''other'', stale_after => %s)'),
    ('idempotency_claim', 'wait', '(''seconds'', ''k'', wait => %s)'), ('idempotency_claim', 'ttl', '(''seconds'', ''k'', ttl => %s)'),
    ('idempotency_claim', 'stale_after', '(''seconds'', ''k'', stale_after => %s)'), ('run_once', 'wait', '(''seconds'', ''k'', ''pg_temp.command(jsonb)'', wait => %s)');
SELECT is_empty('SELECT function, argument FROM durations EXCEPT SELECT function, argument FROM calls', 'each duration has its call');
SELECT is_empty(format($$SELECT form, error FROM unnest(%L::text[]) form CROSS JOIN pg_temp.error_of(format(%L, form)) error WHERE error IS DISTINCT FROM '22023 with a hint'$$,
    ARRAY['-1', '-0.5', '-9e18::bigint', '''-1''', '''-1 s''', 'interval ''-1 s''', '1e18', '''1e18''', '''NaN''', '''Infinity''', '''NaN''::float8', '''NaN''::real',
          '''NaN''::numeric', '''Infinity''::float8', '''-Infinity''::float8', '''-Infinity''::numeric', '1e400', 'interval ''11 years'''],
    'SELECT * FROM interlock.' || function || call), format('KEY-51: %s of %s is no negative number, nor one that is none', argument, function)) FROM calls;
SELECT is(pg_temp.error_of('SELECT * FROM interlock.' || function || format(call, 0)), CASE WHEN argument = 'time_left' THEN '55000 with a hint' WHEN argument NOT IN ('wait', 'at_least') THEN '22023 with a hint' END,
    format('%s of %s is %s', argument, function, CASE WHEN argument IN ('wait', 'at_least', 'time_left') THEN 'nothing at all' ELSE 'above zero' END)) FROM calls;
SELECT is((SELECT count(*)::int FROM interlock.reservations), 2, 'what was refused has had no effect');

-- How long that is
SELECT outcome FROM interlock.acquire_lease('k1', 30) UNION ALL SELECT outcome FROM interlock.acquire_lease('k2', '1.5', 0)
UNION ALL SELECT outcome FROM interlock.acquire_lease('k3', 3600::bigint) UNION ALL SELECT outcome FROM interlock.acquire_permit('k4', 2, 90::float8)
UNION ALL SELECT outcome FROM interlock.acquire_leases('{k5}', '5 s', 0);
SELECT is((SELECT ttl FROM interlock.leases WHERE key = t.key), t.ttl, t.ttl::text)
FROM (VALUES ('k1', interval '30 s'), ('k2', '1.5 s'), ('k3', '1 h'), ('k4', '90 s'), ('k5', '5 s')) t (key, ttl);
SELECT is((interlock.acquire_lease('k1', 30, 0)).outcome, 'held', 'held');
SELECT interlock.define_idempotency_scope('hours', ttl => 7200, stale_after => 0.5);
SELECT results_eq($$SELECT ttl, stale_after FROM interlock.idempotency_scope WHERE scope = 'hours'$$, $$VALUES (interval '2 h', interval '0.5 s')$$, 'in a table it is an interval');
SELECT is(interlock.configuration('thing') #>> '{marker,ttl}', '00:05:00', 'and a text in a configuration');
SELECT is(pg_temp.error_of(format('SELECT interlock.configure(''thing'', %L)', format('{"marker": {"ttl": %s}}', ttl))), '22023 with a hint', 'a ttl of ' || ttl)
FROM unnest('{-1,1e18,"\"NaN\"","\"-5 s\"",1e-9}'::text[]) ttl;

SELECT * FROM finish();
ROLLBACK;
