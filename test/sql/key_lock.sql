-- Key locks within one session: arguments, paths, counts, scopes, savepoints, and what ends a lock.
-- What two sessions do to each other is in the isolation tests.

CREATE VIEW mine AS SELECT key, mode, waiting FROM interlock.key_locks WHERE pid = pg_backend_pid() ORDER BY key, mode;

-- a transaction lock ends with the transaction; keys are sorted and distinct
BEGIN;
SELECT interlock.lock_keys('{b,a,b}');
SELECT * FROM mine;
SELECT interlock.lock_key('Ünï cödé "quoted"', 'shared');
SELECT * FROM mine;
COMMIT;
SELECT * FROM mine;
SELECT interlock.lock_keys('{}'), interlock.try_lock_keys('{}'), interlock.unlock_keys('{}');

-- paths take intent locks on their ancestors
BEGIN;
SELECT interlock.lock_key('product:1/assets/thumb');
SELECT interlock.lock_key('product:2/assets', 'shared');
SELECT interlock.lock_key('product:3/price', 'update');
SELECT interlock.lock_key('product:4/price', 'intent_shared');
SELECT interlock.lock_key('product:5/price', 'intent_exclusive');
SELECT interlock.lock_key('/a//b/');
SELECT * FROM mine;
COMMIT;

-- a key and its descendant in one call
BEGIN;
SELECT interlock.lock_keys('{a/b,a}', 'update');
SELECT * FROM mine;
ROLLBACK;
BEGIN;
SELECT interlock.lock_keys('{a/b,a}', 'exclusive');
SELECT * FROM mine;
ROLLBACK;

-- session locks: they outlive the transaction, and are counted
SELECT interlock.lock_keys('{a,b/c}', scope => 'session');
BEGIN;
SELECT interlock.lock_key('b/d', scope => 'session');
ROLLBACK;
SELECT * FROM mine;
SELECT interlock.lock_key('a', scope => 'session');
SELECT interlock.unlock_keys('{a}'), (SELECT count(*) FROM mine WHERE key = 'a');
SELECT interlock.unlock_keys('{a}'), (SELECT count(*) FROM mine WHERE key = 'a');
SELECT interlock.unlock_keys('{a}');
SELECT interlock.unlock_keys('{b/c}', 'update'), (SELECT count(*) FROM mine);
SELECT interlock.unlock_keys('{nobody,b/c,b/d}'), (SELECT count(*) FROM mine);
BEGIN;
SELECT interlock.lock_key('a');
SELECT interlock.unlock_keys('{a}');
SELECT * FROM mine;
COMMIT;

-- both scopes at once
BEGIN;
SELECT interlock.lock_key('a', scope => 'session');
SELECT interlock.lock_key('a');
SELECT interlock.unlock_keys('{a}'), interlock.unlock_keys('{a}');
SELECT * FROM mine;
COMMIT;
SELECT * FROM mine;

-- savepoints and PL/pgSQL blocks: what they took goes when they are rolled back, session locks stay
BEGIN;
SELECT interlock.lock_key('before');
SAVEPOINT s;
SELECT interlock.lock_keys('{before,inner}'), interlock.lock_key('held', scope => 'session');
SAVEPOINT t;
SELECT interlock.lock_key('innermost');
RELEASE SAVEPOINT t;
SELECT * FROM mine;
ROLLBACK TO s;
SELECT * FROM mine;
SAVEPOINT u;
SELECT interlock.lock_key('kept');
RELEASE SAVEPOINT u;
DO $$ BEGIN
    PERFORM interlock.lock_key('in a block');
    RAISE division_by_zero;
EXCEPTION WHEN division_by_zero THEN
    PERFORM interlock.lock_key('in its handler');
END $$;
SELECT * FROM mine;
COMMIT;
SELECT * FROM mine;
SELECT interlock.unlock_keys('{held}');

-- what releases session locks behind our back
SELECT interlock.lock_key('a', scope => 'session'), interlock.lock_key('b', 'shared', scope => 'session');
SELECT pg_advisory_unlock_all();
SELECT * FROM mine;
SELECT interlock.unlock_keys('{a}');
SELECT interlock.lock_key('a', scope => 'session');
SELECT interlock.unlock_keys('{a}'), interlock.unlock_keys('{a}');
SELECT interlock.lock_key('a', scope => 'session');
DISCARD ALL;
SELECT * FROM mine;
-- in the transaction of the release, too
BEGIN;
SELECT interlock.lock_key('a', scope => 'session');
SELECT pg_advisory_unlock_all();
SELECT interlock.lock_key('a', scope => 'session');
SELECT interlock.unlock_keys('{a}'), interlock.unlock_keys('{a}');
COMMIT;

-- the server's own advisory locks are another space
BEGIN;
SELECT interlock.lock_key('a');
SELECT pg_advisory_unlock(hash) FROM interlock.key_locks;
SELECT key, mode FROM interlock.key_locks;
COMMIT;

-- a cursor, a procedure that commits, a function in a query
BEGIN;
DECLARE c CURSOR FOR SELECT interlock.lock_key('k' || g) FROM generate_series(1, 3) g;
FETCH 2 FROM c;
CLOSE c;
SELECT * FROM mine;
COMMIT;
DO $$ BEGIN
    PERFORM interlock.lock_key('a');
    COMMIT;
    RAISE NOTICE 'held after commit: %', (SELECT count(*) FROM mine);
END $$;
BEGIN READ ONLY;
SELECT interlock.lock_key('a');
COMMIT;

-- lock_order
SET interlock.lock_order = 'warn';
BEGIN;
SELECT interlock.lock_key('m');
SELECT interlock.lock_key('m'), interlock.lock_key('n', 'shared');
SELECT interlock.lock_key('a');
SELECT interlock.lock_key('n', 'update');
SELECT interlock.lock_key('n', 'exclusive');
SELECT interlock.lock_key('n', 'shared');
COMMIT;
BEGIN;
SELECT interlock.lock_keys('{n}', 'update'), interlock.lock_key('p');
SELECT interlock.lock_key('n', 'exclusive');
COMMIT;
SET interlock.lock_order = 'error';
BEGIN;
SELECT interlock.lock_keys('{x,b/c}');
SELECT interlock.lock_key('x/y');
SELECT interlock.lock_key('b/d');
ROLLBACK;
-- harmless: other names, what cannot wait, what nobody else can hold
BEGIN;
SELECT interlock.getapplock('z', 'Exclusive');
SELECT interlock.lock_keys('{a,b}');
SELECT interlock.try_lock_keys('{0}'), interlock.lock_key('a/x'), interlock.lock_key('a/x/y', 'shared');
COMMIT;
-- getapplock has an order of its own: keys are not compared with it, '/' is a letter, and a call that does not wait is never at fault
BEGIN;
SELECT interlock.lock_key('k'), interlock.getapplock('b', 'Shared'), interlock.getapplock('b', 'Shared', 'Session'), interlock.lock_key('l');
SAVEPOINT s;
SELECT interlock.getapplock('a', 'Exclusive');
ROLLBACK TO s;
SELECT interlock.getapplock('b', 'Exclusive', locktimeout => 1000);
ROLLBACK TO s;
SELECT interlock.getapplock('a', 'Exclusive', locktimeout => 0), interlock.releaseapplock('a');
SELECT interlock.getapplock('c', 'Exclusive');
SELECT interlock.getapplock('c', 'Shared'), interlock.getapplock('c/d', 'Exclusive'), interlock.getapplock('c/c', 'Exclusive');
ROLLBACK;
SELECT interlock.releaseapplock('b', 'Session');
SET interlock.lock_order = 'warn';
BEGIN;
SELECT interlock.getapplock('Account:9', 'Exclusive'), interlock.getapplock('Account:10', 'Exclusive');
COMMIT;
SET interlock.lock_order = 'error';
-- VER-3: keys sort as texts, so the order of their numbers is another one
BEGIN;
SELECT interlock.lock_key('account:9');
SELECT interlock.lock_key('account:10');
ROLLBACK;
BEGIN;
SELECT interlock.lock_key('account:0009'), interlock.lock_key('account:0010');
COMMIT;
SET interlock.lock_order = 'sometimes';
RESET interlock.lock_order;

-- bad input
\set SHOW_CONTEXT never
SELECT interlock.lock_key(NULL);
SELECT interlock.lock_key('');
SELECT interlock.lock_key(repeat('x', 1025));
SELECT interlock.lock_key(repeat('x', 1000000));
SELECT interlock.lock_key(repeat('/x', 65));
SELECT interlock.lock_keys(NULL);
SELECT interlock.lock_keys('{a,NULL}');
SELECT interlock.lock_keys('{a,""}');
SELECT interlock.lock_key('a', 'Exclusive');
SELECT interlock.lock_key('a', NULL);
SELECT interlock.lock_key('a', scope => 'statement');
SELECT interlock.lock_key('a', scope => NULL);
SELECT interlock.lock_key('a', wait => '-1 s');
SELECT interlock.unlock_keys('{a}', 'none');
SELECT interlock.unlock_keys(NULL);
\set VERBOSITY default
SELECT * FROM mine;
-- a long time is for ever; as long as the key is free no time passes
SELECT interlock.lock_key('a', wait => '9 years'), interlock.lock_key('b', wait => '0');
SELECT interlock.lock_key(repeat('/', 64), 'shared');
SELECT interlock.lock_keys('{{a,b},{c,d}}');

-- 10,000 keys do not fit, and nothing is half held
\set VERBOSITY sqlstate
SELECT interlock.lock_keys(array_agg('key ' || g), scope => 'session') FROM generate_series(1, 100000) g;
SELECT interlock.try_lock_keys(array_agg('key ' || g), scope => 'session') FROM generate_series(1, 100000) g;
SELECT count(*) FROM interlock.key_locks;
SELECT interlock.lock_keys(array_agg('key ' || g)) FROM generate_series(1, 2000) g;
DROP VIEW mine;
