-- What callers of leases rely on: signatures, results, privileges, and each promise of docs/guide/leases.md that one
-- session can see.
BEGIN;
SELECT * FROM no_plan();
SET LOCAL intervalstyle = 'postgres';
SET LOCAL application_name = 'the application';

-- Signatures
SELECT is(pg_get_function_arguments(p::regprocedure) || ' -> ' || pg_get_function_result(p::regprocedure), signature, split_part(p, '(', 1))
FROM (VALUES
    ('interlock.acquire_lease(text,interlock.seconds,interlock.seconds,text,text,text,boolean,interlock.seconds,boolean)',
     'key text, ttl interlock.seconds DEFAULT ''00:00:30''::interlock.seconds, wait interlock.seconds DEFAULT ''00:00:00''::interlock.seconds, holder text DEFAULT NULL::text, mode text DEFAULT ''exclusive''::text, '
     'bind text DEFAULT ''ttl''::text, resume boolean DEFAULT false, at_least interlock.seconds DEFAULT NULL::interlock.seconds, notify boolean DEFAULT false -> interlock.acquire_lease_result'),
    ('interlock.acquire_permit(text,integer,interlock.seconds,interlock.seconds,text,text,boolean,boolean)',
     'key text, capacity integer, ttl interlock.seconds DEFAULT ''00:00:30''::interlock.seconds, wait interlock.seconds DEFAULT ''00:00:00''::interlock.seconds, holder text DEFAULT NULL::text, '
     'bind text DEFAULT ''ttl''::text, resume boolean DEFAULT false, notify boolean DEFAULT false -> interlock.acquire_lease_result'),
    ('interlock.acquire_leases(text[],interlock.seconds,interlock.seconds,text,text,text,boolean)',
     'keys text[], ttl interlock.seconds DEFAULT ''00:00:30''::interlock.seconds, wait interlock.seconds DEFAULT ''00:00:00''::interlock.seconds, holder text DEFAULT NULL::text, '
     'mode text DEFAULT ''exclusive''::text, bind text DEFAULT ''ttl''::text, resume boolean DEFAULT false -> interlock.acquire_leases_result'),
    ('interlock.renew_lease(text,bigint,interlock.seconds,text,interlock.seconds)',
     'key text, token bigint DEFAULT NULL::bigint, ttl interlock.seconds DEFAULT NULL::interlock.seconds, holder text DEFAULT NULL::text, at_least interlock.seconds DEFAULT NULL::interlock.seconds -> timestamp with time zone'),
    ('interlock.renew_leases(text[],bigint[],interlock.seconds,text)',
     'keys text[], tokens bigint[], ttl interlock.seconds DEFAULT NULL::interlock.seconds, holder text DEFAULT NULL::text -> timestamp with time zone'),
    ('interlock.release_lease(text,bigint,text)', 'key text, token bigint DEFAULT NULL::bigint, holder text DEFAULT NULL::text -> boolean'),
    ('interlock.assert_lease(text,bigint)', 'key text, token bigint -> void'),
    ('interlock.break_lease(text,text,boolean)', 'key text, reason text, terminate boolean DEFAULT false -> text'),
    ('interlock.break_leases(text,text,name)', 'pattern text, reason text, role name DEFAULT NULL::name -> bigint'),
    ('interlock.confirm_stop()', 'OUT run bigint, OUT time_left interval -> record'),
    ('interlock.end_grace(text,bigint,interlock.seconds)', 'reason text, run bigint, time_left interlock.seconds -> timestamp with time zone')) f(p, signature);
SELECT is(count(*), 1::bigint, name || ' has one form') FROM unnest('{acquire_lease,acquire_permit,acquire_leases,renew_lease,renew_leases,release_lease,assert_lease,break_lease,break_leases,confirm_stop,end_grace}'::text[]) name
    LEFT JOIN pg_proc ON proname = name AND pronamespace = 'interlock'::regnamespace GROUP BY name;
SELECT columns_are('interlock', 'leases', '{key,mode,holder,token,since,expires_at,ttl,pid,pins,durable,pinned_by,pinned_since,role,released}'::name[]);
SELECT columns_are('interlock', 'lease_waiters', '{key,mode,holder,pid,waiting_since,place}'::name[]);
SELECT columns_are('interlock', 'lease_audit', '{id,broken_at,broken_by,key,holder,token,would_expire_at,reason,terminated}'::name[]);
SELECT columns_are('interlock', 'usage', '{what,database,role,used,of}'::name[]);
SELECT col_type_is('interlock', 'leases', c, t, 'leases.' || c) FROM (VALUES ('key'::name, 'text'), ('mode', 'text'), ('holder', 'text'), ('token', 'bigint'), ('since', 'timestamp with time zone'),
    ('expires_at', 'timestamp with time zone'), ('ttl', 'interval'), ('pid', 'integer'), ('pins', 'integer'), ('durable', 'boolean'),
    ('pinned_by', 'integer[]'), ('pinned_since', 'timestamp with time zone')) c(c, t);
SELECT col_type_is('interlock', 'lease_waiters', c, t, 'lease_waiters.' || c) FROM (VALUES ('key'::name, 'text'), ('mode', 'text'), ('holder', 'text'), ('pid', 'integer'),
    ('waiting_since', 'timestamp with time zone'), ('place', 'integer')) c(c, t);

-- All of it happens at once, whatever becomes of the query: nothing may be planned away or run in another process
SELECT is_empty($$SELECT oid::regprocedure FROM pg_proc WHERE pronamespace::regnamespace::text ~ '^interlock' AND proname ~ '(^|_)lease|permit'
    AND proname <> 'list_lease_findings' AND (provolatile <> 'v' OR proparallel <> 'u' OR proisstrict OR prosecdef)$$, 'volatile, not parallel, not strict, with the rights of the caller');
SELECT isnt(obj_description(oid, 'pg_proc'), NULL, proname || ' has a comment') FROM pg_proc WHERE pronamespace::regnamespace::text ~ '^interlock' AND proname ~ '(^|_)lease|permit' AND proname !~ 'require|trigger'
    ORDER BY proname;
SELECT isnt(obj_description(c::regclass, 'pg_class'), NULL, c || ' has a comment') FROM unnest('{interlock.leases,interlock.lease_waiters,interlock.lease_audit,interlock_internal.lease_store}'::text[]) c;

-- Settings
SELECT is(name || ' = ' || boot_val || coalesce(' ' || unit, '') || ', ' || context, promise, name) FROM (VALUES
    ('interlock.max_lease_ttl = 86400 s, superuser'), ('interlock.lease_durable_after = 60 s, sighup'), ('interlock.lease_recovery = safe, sighup'),
    ('interlock.max_leases = 65536, postmaster'), ('interlock.max_leases_per_role = -1, sighup'), ('interlock.max_key_names_per_role = -1, sighup')) s(promise) LEFT JOIN pg_settings ON name = split_part(promise, ' ', 1);

-- Privileges
CREATE ROLE lease_plain;
SELECT function_privs_are('interlock', f::name, string_to_array(a, ','), 'lease_plain', '{EXECUTE}', f || ' is for everybody')
FROM (VALUES ('acquire_lease', 'text,interlock.seconds,interlock.seconds,text,text,text,boolean,interlock.seconds,boolean'), ('acquire_permit', 'text,integer,interlock.seconds,interlock.seconds,text,text,boolean,boolean'), ('acquire_leases', 'text[],interlock.seconds,interlock.seconds,text,text,text,boolean'), ('lease_of', 'text'),
    ('renew_lease', 'text,bigint,interlock.seconds,text,interlock.seconds'), ('renew_leases', 'text[],bigint[],interlock.seconds,text'), ('release_lease', 'text,bigint,text'), ('assert_lease', 'text,bigint')) f(f, a);
SELECT function_privs_are('interlock', 'break_lease', '{text,text,boolean}', 'lease_plain', '{}', 'break_lease is for nobody');
SELECT function_privs_are('interlock', 'break_leases', '{text,text,name}', 'lease_plain', '{}', 'break_leases is for nobody');
SELECT function_privs_are('interlock', 'confirm_stop', '{}', 'lease_plain', '{}', 'confirm_stop is for nobody');
SELECT function_privs_are('interlock', 'end_grace', '{text,bigint,interlock.seconds}', 'lease_plain', '{}', 'end_grace is for nobody');
SELECT table_privs_are('interlock', t, 'lease_plain', '{SELECT}', t || ' can be read by everybody, and not changed') FROM unnest('{leases,lease_waiters,usage}'::name[]) t;
SELECT table_privs_are(s, t, 'lease_plain', '{}', t || ' is for nobody') FROM (VALUES ('interlock'::name, 'lease_audit'::name), ('interlock_internal', 'lease_store')) i (s, t);

-- acquire_lease
CREATE TABLE got (key text, token bigint, expires_at timestamptz);
GRANT ALL ON got TO lease_plain;
CREATE FUNCTION token(k text) RETURNS bigint LANGUAGE sql AS 'SELECT token FROM got WHERE key = k';
SELECT results_eq($$WITH l AS (SELECT * FROM interlock.acquire_lease('a', '1 min')), i AS (INSERT INTO got SELECT 'a', token, expires_at FROM l)
    SELECT outcome, token > 0, expires_at > clock_timestamp(), holder FROM l$$, $$VALUES ('acquired', true, true, 'the application')$$, 'acquired');
SELECT results_eq($$SELECT outcome, token, expires_at > clock_timestamp(), holder FROM interlock.acquire_lease('a')$$,
    $$VALUES ('held', NULL::bigint, true, 'the application')$$, 'held, with its holder and its end');
SELECT results_eq($$SELECT outcome FROM interlock.acquire_lease('a/b', mode => 'shared')$$, ARRAY['held'], 'a path excludes its descendants');
SELECT results_eq($$SELECT outcome FROM interlock.acquire_lease('a-b')$$, ARRAY['acquired'], 'and nothing beside it');
SELECT results_eq($$SELECT outcome FROM interlock.acquire_lease('s', mode => 'shared') UNION ALL SELECT outcome FROM interlock.acquire_lease('s', mode => 'shared')$$,
    ARRAY['acquired', 'acquired'], 'shared leases exclude each other not');
SELECT results_eq($$SELECT outcome FROM interlock.acquire_lease('s')$$, ARRAY['held'], 'but an exclusive one');
SELECT results_eq($$SELECT outcome, expires_at FROM interlock.acquire_lease('bound', bind => 'session')$$, $$VALUES ('acquired', 'infinity'::timestamptz)$$, 'bound to the session it never expires');
SELECT results_eq($$SELECT outcome FROM interlock.acquire_lease('a', wait => '10 ms')$$, ARRAY['held'], 'it waits for wait at most');
SET LOCAL lock_timeout = '10 ms';
SELECT results_eq($$SELECT outcome FROM interlock.acquire_lease('a', wait => NULL)$$, ARRAY['held'], 'or for lock_timeout');
SET LOCAL lock_timeout = 0;
PREPARE acquire AS SELECT outcome, holder FROM interlock.acquire_lease($1, $2, $3, $4, $5, $6);
SELECT results_eq($$EXECUTE acquire('p', '1 min', '0', 'me', 'shared', 'ttl')$$, $$VALUES ('acquired', 'me')$$, 'parameters without a type');
SELECT results_eq($$SELECT outcome, expires_at - clock_timestamp() BETWEEN '23 h' AND '1 day' FROM interlock.acquire_lease('long', '1 day')$$, $$VALUES ('acquired', true)$$, 'a day long');
SELECT results_eq($$SELECT durable FROM interlock.leases WHERE key IN ('a', 'long') ORDER BY key$$, ARRAY[false, true], 'which is durable by itself');

-- renew_lease, assert_lease, release_lease
SELECT ok(interlock.renew_lease('a', token('a')) > (SELECT expires_at FROM got WHERE key = 'a'), 'renew_lease extends');
SELECT ok(interlock.renew_lease('a', token('a'), '1 s') > clock_timestamp() + interval '30 s', 'and never shortens');
SELECT is(interlock.renew_lease('a', token('a') + 1), NULL, 'null with another token');
SELECT lives_ok($$SELECT interlock.assert_lease('a', token('a'))$$, 'assert_lease');
SELECT results_eq($$SELECT pins FROM interlock.leases WHERE key = 'a'$$, ARRAY[1], 'pins the lease');
SELECT throws_ok($$SELECT interlock.assert_lease('a', 1)$$, 'IL006');
SELECT throws_ok($$SELECT interlock.assert_lease('nobody has it', 1)$$, 'IL006');
SELECT is(interlock.release_lease('a', token('a') + 1), false, 'release_lease: not with another token');
SELECT is(interlock.release_lease('a', token('a')), true, 'release_lease');
SELECT is(interlock.release_lease('a', token('a')), false, 'once more is no error');
SELECT is(interlock.renew_lease('a', token('a')), NULL, 'what was released is not renewed');
SELECT results_eq($$SELECT outcome FROM interlock.acquire_lease('a')$$, ARRAY['held'], 'nobody gets it before the transaction has ended that asserted it');

-- tokens only grow
INSERT INTO got SELECT 'k' || n, token FROM generate_series(1, 3) n, LATERAL interlock.acquire_lease('k' || n, '1 min');
SELECT ok(token('a') < token('k1') AND token('k1') < token('k2') AND token('k2') < token('k3'), 'each token is larger than all before it');

-- acquire_leases
SELECT results_eq($$SELECT outcome, cardinality(tokens), tokens[1] = tokens[3], blocked_by, holder FROM interlock.acquire_leases('{m2,m1,m2}', holder => 'me')$$,
    $$VALUES ('acquired', 3, true, NULL::text, NULL::text)$$, 'acquire_leases: a token for each key');
SELECT results_eq($$SELECT outcome, tokens, blocked_by, holder FROM interlock.acquire_leases('{new,m1,m2}')$$, $$VALUES ('held', NULL::bigint[], 'm1', 'me')$$, 'none of them, and which one was in the way');
SELECT results_eq($$SELECT outcome FROM interlock.acquire_lease('new')$$, ARRAY['acquired'], 'the others are free');
SELECT throws_ok($$SELECT interlock.acquire_leases('{x/y,x}')$$, '22023');

-- acquire_permit
SELECT results_eq($$SELECT outcome FROM generate_series(1, 3) n, LATERAL interlock.acquire_permit('pool', 2, holder => n::text)$$, ARRAY['acquired', 'acquired', 'held'], 'acquire_permit: so many and no more');

-- break_lease
SELECT is(interlock.break_lease('k1', 'to see it'), 'the application', 'break_lease says whom it was taken from');
SELECT is(interlock.break_lease('k1', 'to see it'), NULL, 'null when nobody had it');
SELECT results_eq($$SELECT key, holder, token, reason, broken_by FROM interlock.lease_audit$$, $$SELECT 'k1', 'the application', token('k1'), 'to see it', current_user::text COLLATE "default"$$, 'and is audited');
SELECT is(interlock.renew_lease('k1', token('k1')), NULL, 'a broken lease is lost');
SELECT throws_ok($$SELECT interlock.break_lease('k1', NULL)$$, '22004');
SELECT throws_ok($$SELECT interlock.break_lease('k1', '')$$, '22023');

-- A planned switchover: switchover.pl has one
SELECT throws_ok($$SELECT interlock.confirm_stop()$$, '55000', 'this server is not a standby', 'a primary confirms nothing');
SELECT throws_ok($$SELECT interlock.end_grace('test', 1, '0')$$, '55000', 'there is no grace period of leases after that run', 'there is no grace to end');
SELECT throws_ok(format('SELECT interlock.end_grace(%s)', a), e, NULL, 'end_grace: ' || a) FROM (VALUES
    ($$NULL, 1, '0'$$, '22004'::char(5)), ($$'x', NULL, '0'$$, '22004'), ($$'x', 1, NULL$$, '22004'), ($$'', 1, '0'$$, '22023'), ($$'x', 1, '-1 s'$$, '22023'), ($$'x', 1, '11 years'$$, '22023')) c (a, e);

-- errors
SELECT throws_ok(format('SELECT interlock.%s', call), code, NULL, call) FROM (VALUES
    ('acquire_lease(NULL)', '22004'), ('acquire_lease('''')', '22023'), ('acquire_lease(''a//b'')', '22023'), ('acquire_lease(repeat(''x'', 1025))', '22023'), ('acquire_lease(repeat(''x/'', 64) || ''x'')', '22023'),
    ('acquire_lease(''e'', NULL)', '22004'), ('acquire_lease(''e'', ''0'')', '22023'), ('acquire_lease(''e'', ''2 days'')', '22023'), ('acquire_lease(''e'', wait => ''-1 s'')', '22023'),
    ('acquire_lease(''e'', holder => repeat(''x'', 256))', '22023'), ('acquire_lease(''e'', mode => ''update'')', '22023'), ('acquire_lease(''e'', bind => ''forever'')', '22023'),
    ('acquire_permit(''e'', 0)', '22023'), ('acquire_permit(''e'', NULL)', '22004'), ('acquire_leases(NULL)', '22004'), ('acquire_leases(''{e,NULL}'')', '22004'),
    ('renew_lease(''e'', NULL)', '22004'), ('renew_lease(''e'', 1, ''0'')', '22023'), ('release_lease(''e'', NULL)', '22004'), ('assert_lease(''e'', NULL)', '22004')) e(call, code);

-- what a role without privileges can do, and see
SET LOCAL SESSION AUTHORIZATION lease_plain;
SELECT lives_ok($$INSERT INTO got SELECT 'plain', token FROM interlock.acquire_lease('plain', '1 min')$$, 'everybody may take a lease');
SELECT results_eq($$SELECT key, token = (SELECT token FROM got WHERE got.key = 'plain') FROM interlock.leases WHERE key IN ('plain', 'k2') ORDER BY key$$,
    $$VALUES ('k2', NULL), ('plain', true)$$, 'and sees the tokens that are its own');
SELECT throws_ok($$SELECT interlock.break_lease('k2', 'mine now')$$, '42501');
SELECT throws_ok($$SET interlock.max_lease_ttl = '1 year'$$, '42501');
SELECT is(interlock.release_lease('k2', token('k2')), false, 'SEC-2: the token of another role is a wrong one to release_lease');
SELECT is(interlock.renew_lease('k2', token('k2')), NULL, 'to renew_lease');
SELECT throws_ok($$SELECT interlock.assert_lease('k2', token('k2'))$$, 'IL006', NULL, 'and to assert_lease');
RESET SESSION AUTHORIZATION;
GRANT pg_read_all_stats TO lease_plain;
SET LOCAL SESSION AUTHORIZATION lease_plain;
SELECT results_eq($$SELECT token FROM interlock.leases WHERE key = 'k2'$$, ARRAY[NULL::bigint], 'pg_read_all_stats does not see it');
RESET SESSION AUTHORIZATION;
DO $$ BEGIN EXECUTE format('GRANT %I TO lease_plain', current_user); END $$;
SET LOCAL SESSION AUTHORIZATION lease_plain;
SELECT isnt(interlock.renew_lease('k2', token('k2')), NULL, 'a member of the role that acquired it renews');
SELECT lives_ok($$SELECT interlock.assert_lease('k2', token('k2'))$$, 'asserts');
SELECT is(interlock.release_lease('k2', token('k2')), true, 'and releases');
RESET SESSION AUTHORIZATION;

-- read-only transactions can take them; rollback gives none back
SET LOCAL transaction_read_only = on;
SELECT results_eq($$SELECT outcome FROM interlock.acquire_lease('read only', '1 min')$$, ARRAY['acquired'], 'in a read-only transaction');
SELECT lives_ok($$SELECT interlock.assert_lease('read only', token) FROM interlock.leases WHERE key = 'read only'$$, 'an assertion, too');
SAVEPOINT s;
SELECT lives_ok($$SELECT interlock.acquire_lease('rolled back', '1 min')$$, 'a lease in a savepoint');
ROLLBACK TO s;
SELECT results_eq($$SELECT key FROM interlock.leases WHERE key = 'rolled back'$$, ARRAY['rolled back'], 'is kept when that is rolled back');
DO $$ BEGIN PERFORM interlock.release_lease(key, token) FROM interlock.leases; END $$;

-- LEA-7: what has expired and was granted to nobody is renewed
SELECT token AS expired FROM interlock.acquire_lease('expired', '1 ms') \gset
SELECT pg_sleep(0.01);
SELECT is(interlock.renew_lease('expired', :expired, '1 min') > clock_timestamp(), true, 'LEA-7: an expired lease is renewed');
SELECT is((SELECT outcome FROM interlock.acquire_lease('expired', '1 min')), 'held', 'and held again');
-- LEA-8: no upgrade
SELECT interlock.acquire_lease('no upgrade', '1 min', mode => 'shared');
SELECT is((SELECT outcome FROM interlock.acquire_lease('no upgrade', '1 min')), 'held', 'LEA-8: one''s own shared lease excludes one''s own exclusive one');
DO $$ BEGIN PERFORM interlock.release_lease(key, token) FROM interlock.leases; END $$;

SELECT * FROM finish();
ROLLBACK;
