-- What callers of key locks, application locks and row locks rely on.
BEGIN;
SELECT plan(59);

SELECT lives_ok($$SELECT interlock.lock_key('a')$$, 'lock_key');
SELECT lives_ok($$SELECT interlock.lock_keys('{c,b}', 'shared', '1 s', 'transaction')$$, 'lock_keys');
SELECT results_eq($$SELECT interlock.try_lock_keys('{a,d/e}', 'update')$$, ARRAY[true], 'try_lock_keys');
SELECT set_eq('SELECT key, mode FROM interlock.key_locks WHERE pid = pg_backend_pid() AND NOT waiting',
    $$VALUES ('a', 'exclusive'), ('a', 'update'), ('b', 'shared'), ('c', 'shared'), ('d', 'intent_exclusive'), ('d/e', 'update')$$, 'key_locks');
SELECT lives_ok($$SELECT interlock.lock_key('s', scope => 'session')$$, 'a session lock');
SELECT results_eq($$SELECT interlock.unlock_keys('{s}')$$, ARRAY[true], 'unlock_keys');
SELECT results_eq($$SELECT interlock.unlock_keys('{s}')$$, ARRAY[false], 'unlock_keys, once more');
SELECT results_eq($$SELECT interlock.try_lock_key('s', scope => 'session')$$, ARRAY[true], 'OPS-15: try_lock_key');
SELECT results_eq($$SELECT interlock.unlock_key('s', 'shared')$$, ARRAY[false], 'OPS-15: unlock_key, in another mode');
SELECT results_eq($$SELECT interlock.unlock_key('s')$$, ARRAY[true], 'OPS-15: unlock_key');
SELECT results_eq($$SELECT interlock.unlock_key('s')$$, ARRAY[false], 'OPS-15: unlock_key, once more');
SELECT throws_ok($$SELECT interlock.try_lock_key(NULL)$$, '22004');
SELECT throws_ok($$SELECT interlock.try_lock_key('s', wait => '-1 s')$$, '22023');
SELECT throws_ok($$SELECT interlock.unlock_key(NULL)$$, '22004');
SELECT throws_ok($$SELECT interlock.unlock_key('s', 'none')$$, '22023');
PREPARE keys AS SELECT interlock.try_lock_keys($1, $2, $3, $4);
SELECT results_eq($$EXECUTE keys('{x}', 'shared', NULL, 'transaction')$$, ARRAY[true], 'parameters without a type');
SELECT throws_ok($$SELECT interlock.lock_key(NULL)$$, '22004');
SELECT throws_ok($$SELECT interlock.lock_key('')$$, '22023');
SELECT throws_ok($$SELECT interlock.lock_key(repeat('x', 1048576))$$, '22023');
SELECT throws_ok($$SELECT interlock.lock_keys('{a,NULL}')$$, '22004');
SELECT throws_ok($$SELECT interlock.lock_keys(NULL)$$, '22004');
SELECT throws_ok($$SELECT interlock.lock_key('a', 'none')$$, '22023');
SELECT throws_ok($$SELECT interlock.lock_key('a', scope => 'statement')$$, '22023');
SELECT throws_ok($$SELECT interlock.lock_key('a', wait => '-1 ms')$$, '22023');
SET LOCAL interlock.lock_order = error;
SELECT throws_ok($$SELECT interlock.lock_key('aa')$$, '55000');
RESET interlock.lock_order;

SELECT results_eq($$SELECT interlock.getapplock('form', 'Exclusive')$$, ARRAY[0], 'getapplock');
SELECT results_eq($$SELECT interlock.applock_mode('public', 'form')$$, ARRAY['Exclusive'], 'applock_mode');
SELECT results_eq($$SELECT interlock.applock_test('public', 'form', 'Shared')$$, ARRAY[1], 'applock_test');
SELECT results_eq($$SELECT interlock.releaseapplock('form')$$, ARRAY[0], 'releaseapplock');
SELECT results_eq($$SELECT interlock.releaseapplock('form')$$, ARRAY[-999], 'releaseapplock, once more');
SELECT results_eq($$SELECT interlock.getapplock(NULL, 'Exclusive')$$, ARRAY[-999], 'a bad call');
SELECT throws_ok($$SELECT interlock.applock_mode('public', NULL)$$, '22004');
-- KEY-52: as a procedure of SQL Server names them
SELECT is(interlock.getapplock(resource => 'form', lockmode => 'Update', lockowner => 'Session', locktimeout => 0, dbprincipal => 'public'), 0, 'KEY-52: all names');
SELECT is(interlock.applock_mode(dbprincipal => 'Public', resource => 'form', lockowner => 'Session'), 'Update', 'KEY-52: of APPLOCK_MODE');
SELECT is(interlock.applock_test(dbprincipal => 'PUBLIC', resource => 'form', lockmode => 'Shared', lockowner => 'Session'), 1, 'KEY-52: of APPLOCK_TEST');
SELECT is(interlock.releaseapplock(resource => 'form', lockowner => 'Session', dbprincipal => 'public'), 0, 'KEY-52: of sp_releaseapplock');
CREATE ROLE applock_team;
CREATE ROLE applock_member IN ROLE applock_team;
CREATE ROLE applock_stranger;
SET LOCAL ROLE applock_member;
SELECT is(interlock.getapplock('form', 'Exclusive', dbprincipal => 'applock_team'), 0, 'KEY-52: a resource of a role, by a member');
SELECT is(ARRAY[interlock.applock_mode('applock_team', 'form'), interlock.applock_mode('public', 'form'), interlock.applock_mode('applock_member', 'form')],
    '{Exclusive,NoLock,NoLock}', 'KEY-52: each role has resources of its own');
SELECT results_eq($$SELECT key, kind, mode FROM interlock.key_locks WHERE kind = 'applock'$$,
    $$SELECT oid || ':form', 'applock', 'Exclusive' FROM pg_roles WHERE rolname = 'applock_team'$$, 'KEY-52: which the view shows by its number');
SELECT is((SELECT count(*)::int FROM interlock.held WHERE kind = 'applock' AND name LIKE '%:form'), 1, 'KEY-52: and view held');
SET LOCAL ROLE applock_stranger;
SET LOCAL client_min_messages = error;
SELECT is(interlock.getapplock('form', 'Shared', locktimeout => 0, dbprincipal => principal), -999, 'KEY-52: not for ' || coalesce(principal, 'null'))
FROM unnest('{applock_team,applock_member,applock_nobody,"",NULL}'::text[]) principal;
SELECT throws_ok($$SELECT interlock.applock_mode('applock_team', 'form')$$, '42501', 'must be a member of role "applock_team"');
SELECT throws_ok($$SELECT interlock.applock_test('applock_nobody', 'form', 'Shared')$$, '42704', 'role "applock_nobody" does not exist');
SELECT is(interlock.releaseapplock('form', dbprincipal => 'applock_nobody'), -999, 'KEY-52: nothing is held of a role that is not there');
SELECT is(interlock.releaseapplock('form', dbprincipal => 'applock_team'), 0, 'KEY-52: what the session holds it releases, whatever role it has taken');
RESET client_min_messages;
RESET ROLE;
SELECT throws_ok($$SELECT interlock.applock_test('public', 'form', 'None')$$, '22023');

CREATE TABLE account (id int PRIMARY KEY);
INSERT INTO account VALUES (1), (2);
SELECT results_eq($$SELECT * FROM interlock.select_for_update('account', '{2,1,3}')$$, $$VALUES ('{"id": 1}'::jsonb), ('{"id": 2}')$$, 'select_for_update');
SELECT results_eq($$SELECT * FROM interlock.select_for_update('account', ARRAY[2], 'share', '0')$$, $$VALUES ('{"id": 2}'::jsonb)$$, 'of an array');
SELECT is(count(*), 2::bigint, 'skips, and waits not at all') FROM interlock.select_for_update('account', '{2,1}', wait => '0', skip_locked => true);
SELECT throws_ok($$SELECT interlock.select_for_update('account', NULL)$$, '22004');
SELECT throws_ok($$SELECT interlock.select_for_update('account', '{1}', skip_locked => NULL)$$, '22004');
SELECT throws_ok($$SELECT interlock.select_for_update('account', '{1}', 'none')$$, '22023');
SELECT throws_ok($$SELECT interlock.select_for_update('account', '{1}', wait => '-1 s')$$, '22023');
SELECT throws_ok($$SELECT interlock.select_for_update('account', '{x}')$$, '22P02');
SELECT throws_ok($$SELECT interlock.select_for_update('pg_class', '{1}')$$, '42809');

SELECT * FROM finish();
ROLLBACK;
