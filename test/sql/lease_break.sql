-- SEC-4: taking many leases from their holders at once.
\set VERBOSITY terse
CREATE ROLE break_one;
CREATE ROLE break_two;
CREATE TABLE got (key text, token bigint);
GRANT ALL ON got TO PUBLIC;
SET ROLE break_one;
INSERT INTO got SELECT key, token FROM unnest('{a_1,a_2,ab2,"a%",A_1}'::text[]) key, interlock.acquire_lease(key, '10 min');
SELECT outcome FROM interlock.acquire_lease('deep/er/path', '10 min');
SELECT outcome FROM generate_series(1, 2) g, interlock.acquire_lease(repeat('k', 1000), '1 h', holder => g::text, mode => 'shared');
SET ROLE break_two;
SELECT outcome FROM interlock.acquire_lease('two', '10 min');

-- Who may
SELECT interlock.break_leases('%', 'mine');
RESET ROLE;
SELECT interlock.break_leases(NULL, 'r');
SELECT interlock.break_leases('%', NULL);
SELECT interlock.break_leases('%', '');
SELECT interlock.break_leases('a\', 'r');
SELECT interlock.break_leases('%', 'r', 'nobody at all');
SELECT interlock.break_leases('nothing', 'r');

-- Patterns are those of LIKE
SELECT interlock.break_leases('a\_1', 'one');
SELECT interlock.break_leases('a\%', 'a percent sign');
SELECT interlock.break_leases('a__', 'two', 'break_two');
SELECT interlock.break_leases('a__', 'of the role', 'break_one');
SELECT interlock.break_leases('deep', 'not what is below');
SELECT interlock.break_leases('deep/%', 'but this is');
PREPARE broken(text, text, name) AS SELECT interlock.break_leases($1, $2, $3);
EXECUTE broken('kkk%', 'shared by two', 'break_one');
SELECT key, holder <> '' AS holder, reason, broken_by = session_user AS by FROM interlock.lease_audit
    WHERE reason IN ('one', 'a percent sign', 'of the role', 'but this is') ORDER BY reason COLLATE "C", key COLLATE "C";
SELECT count(*), count(DISTINCT token) FROM interlock.lease_audit WHERE reason = 'shared by two';
SELECT key, count(*) FROM interlock.leases WHERE key IN (SELECT key FROM got) OR key = 'two' GROUP BY key ORDER BY key COLLATE "C";
SET ROLE break_one;
SELECT key, interlock.renew_lease(key, token) IS NOT NULL AS held FROM got ORDER BY key COLLATE "C";
RESET ROLE;

-- Pinned ones stay
BEGIN;
SET LOCAL ROLE break_one;
SELECT interlock.assert_lease(key, token) FROM got WHERE key = 'A_1';
RESET ROLE;
SELECT interlock.break_leases('%', 'all', 'break_one');
COMMIT;
SELECT interlock.break_leases('%', 'all', 'break_one');
SELECT key, count(*) FROM interlock.leases WHERE key IN (SELECT key FROM got) OR key = 'two' GROUP BY key ORDER BY key COLLATE "C";
SELECT interlock.break_leases('two', 'clean');
-- A rollback takes the audit, and not what was done
BEGIN;
SELECT outcome FROM interlock.acquire_lease('rolled back', '10 min');
SELECT interlock.break_leases('rolled back', 'rolled back');
ROLLBACK;
SELECT count(*) FROM interlock.lease_audit WHERE reason = 'rolled back';
SELECT count(*) FROM interlock.leases WHERE key = 'rolled back';
DELETE FROM interlock.lease_audit;
DROP TABLE got;
DROP ROLE break_one;
DROP ROLE break_two;
