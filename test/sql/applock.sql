-- Application locks within one session: codes, counts, owners and modes.

-- codes without rivals
BEGIN;
SELECT interlock.getapplock('form', 'Exclusive'), interlock.getapplock('form', 'exclusive', 'TRANSACTION', 0);
SELECT interlock.applock_mode('public', 'form'), interlock.applock_mode('public', 'form', 'Session'), interlock.applock_mode('public', 'Form');
COMMIT;
SELECT interlock.applock_mode('public', 'form');
SELECT interlock.releaseapplock('form');

-- -999, the transaction goes on
BEGIN;
SELECT interlock.getapplock(NULL, 'Shared'), interlock.getapplock('form', NULL), interlock.getapplock('form', 'Share'),
    interlock.getapplock('form', 'Shared', 'Nobody'), interlock.getapplock('form', 'Shared', NULL),
    interlock.getapplock('form', 'Shared', 'Transaction', -2), interlock.getapplock('form', 'Shared', 'Transaction', NULL);
SELECT interlock.releaseapplock('form'), interlock.releaseapplock(NULL), interlock.releaseapplock('form', 'Nobody');
COMMIT;

-- modes held together, and every one until the last release
CREATE FUNCTION held(VARIADIC modes text[]) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    wanted text;
    result text;
BEGIN
    FOREACH wanted IN ARRAY modes LOOP
        PERFORM interlock.getapplock('form', wanted, 'Session');
    END LOOP;
    result := interlock.applock_mode('public', 'form', 'Session');
    FOREACH wanted IN ARRAY modes LOOP
        IF interlock.applock_mode('public', 'form', 'Session') <> result THEN RAISE 'a mode was released too early'; END IF;
        PERFORM interlock.releaseapplock('form', 'Session');
    END LOOP;
    IF interlock.applock_mode('public', 'form', 'Session') <> 'NoLock' THEN RAISE 'still held'; END IF;
    RETURN result;
END $$;
SELECT a, b, held(a, b) FROM unnest('{IntentShared,Shared,Update,IntentExclusive,Exclusive}'::text[]) WITH ORDINALITY x(a, i),
    unnest('{IntentShared,Shared,Update,IntentExclusive,Exclusive}'::text[]) WITH ORDINALITY y(b, k) WHERE k >= i ORDER BY i, k;
SELECT held('IntentShared'), held('Shared', 'Update', 'IntentExclusive', 'Shared');
SELECT count(*) FROM interlock.key_locks;

-- both owners
BEGIN;
SELECT interlock.getapplock('form', 'Shared'), interlock.getapplock('form', 'Update', 'Session');
SELECT interlock.applock_mode('public', 'form'), interlock.applock_mode('public', 'form', 'Session');
SELECT interlock.releaseapplock('form', 'Session'), interlock.releaseapplock('form', 'Session');
SELECT interlock.applock_mode('public', 'form'), interlock.applock_mode('public', 'form', 'Session');
SELECT interlock.getapplock('form', 'Update', 'Session');
COMMIT;
SELECT interlock.applock_mode('public', 'form'), interlock.applock_mode('public', 'form', 'Session');
SELECT interlock.releaseapplock('form', 'Session');

-- savepoints: gets and releases of one that is rolled back do not count
BEGIN;
SELECT interlock.getapplock('form', 'Shared'), interlock.getapplock('form', 'Shared');
SAVEPOINT s;
SELECT interlock.releaseapplock('form'), interlock.getapplock('form', 'Exclusive');
SELECT interlock.applock_mode('public', 'form');
ROLLBACK TO s;
SELECT interlock.applock_mode('public', 'form');
SELECT interlock.releaseapplock('form'), interlock.applock_mode('public', 'form');
SELECT interlock.releaseapplock('form'), interlock.applock_mode('public', 'form'), interlock.releaseapplock('form');
SELECT interlock.getapplock('form', 'Shared');
SAVEPOINT s;
SELECT interlock.releaseapplock('form'), interlock.applock_mode('public', 'form');
RELEASE SAVEPOINT s;
SELECT interlock.applock_mode('public', 'form');
COMMIT;

-- releases of what was released behind our back do not count
BEGIN;
SELECT interlock.getapplock('form', 'Shared', 'Session'), interlock.getapplock('form', 'Shared', 'Session');
SELECT interlock.releaseapplock('form', 'Session'), pg_advisory_unlock_all();
SELECT interlock.getapplock('form', 'Shared', 'Session'), interlock.getapplock('form', 'Shared', 'Session');
SELECT interlock.releaseapplock('form', 'Session'), interlock.applock_mode('public', 'form', 'Session');
SELECT interlock.releaseapplock('form', 'Session'), interlock.applock_mode('public', 'form', 'Session');
COMMIT;
-- with both owners it is noticed at the end of the transaction
BEGIN;
SELECT interlock.getapplock('form', 'Shared', 'Session'), interlock.getapplock('form', 'Shared');
SELECT pg_advisory_unlock_all();
COMMIT;
SELECT interlock.applock_mode('public', 'form', 'Session'), interlock.releaseapplock('form', 'Session');

-- names: no paths, cut to 255 characters, even an empty one
BEGIN;
SELECT interlock.getapplock('a/b', 'Exclusive'), interlock.getapplock('', 'Shared');
SELECT interlock.getapplock(repeat('ä', 300), 'Exclusive'), interlock.applock_mode('public', repeat('ä', 255) || 'x');
SELECT kind, mode, length(key) FROM interlock.key_locks ORDER BY length(key);
COMMIT;

-- applock_test takes nothing
SELECT interlock.applock_test('public', 'form', 'Exclusive'), interlock.applock_test('public', 'form', 'Shared', 'Session');
SELECT count(*) FROM interlock.key_locks;

-- bad input of the questions
SELECT interlock.applock_mode('public', NULL);
SELECT interlock.applock_mode('public', 'form', 'Nobody');
SELECT interlock.applock_test('public', 'form', 'Share');
SELECT interlock.applock_test('public', 'form', NULL);
SELECT interlock.applock_test('public', 'form', 'Shared', 'Nobody');
DROP FUNCTION held;
