-- SEC-4: what a role uses of leases and names of keys, and taking many leases from it at once.
\set VERBOSITY terse
CREATE ROLE usage_one;
CREATE ROLE usage_two;
CREATE VIEW used AS SELECT what, database = current_database() AS here, role, used, "of"
    FROM interlock.usage WHERE role IN ('usage_one', 'usage_two');
GRANT SELECT ON used TO PUBLIC;
CREATE TABLE got (key text, token bigint);
GRANT ALL ON got TO PUBLIC;

-- Leases, with levels, with a long key, and names of keys
SET ROLE usage_one;
INSERT INTO got SELECT key, token FROM unnest('{a_1,a_2,ab2,"a%",A_1}'::text[]) key, interlock.acquire_lease(key, '10 min');
SELECT outcome FROM interlock.acquire_lease('deep/er/path', '10 min');
SELECT outcome FROM generate_series(1, 2) g, interlock.acquire_lease(repeat('k', 1000), '1 h', holder => g::text, mode => 'shared');
SELECT outcome FROM interlock.acquire_lease('a_1', '10 min');
SELECT * FROM used ORDER BY what, here, role;
BEGIN;
SELECT interlock.lock_keys('{k/1,k/2}');
SAVEPOINT s;
SELECT interlock.lock_key('k/3');
SELECT * FROM used WHERE what = 'key names' ORDER BY here, role;
ROLLBACK TO s;
SELECT * FROM used WHERE what = 'key names' ORDER BY here, role;
SET LOCAL ROLE usage_two;
SELECT interlock.lock_keys('{k/1,k/4}');
COMMIT;
SELECT * FROM used WHERE what = 'key names';
RESET ROLE;
-- Claims that are not committed hold a name each
BEGIN;
SELECT outcome FROM interlock.idempotency_claim('usage', 'claimed', '{}');
SELECT used > 0 FROM interlock.usage WHERE what = 'key names' AND role = current_user AND database IS NULL AND "of" IS NULL;
ROLLBACK;
SELECT what, used >= 0 AS used, "of" > 0 AS of FROM interlock.usage WHERE role IS NULL AND database IS NULL ORDER BY what;

-- Others see their own lines, and the totals
SET ROLE usage_two;
SELECT outcome FROM interlock.acquire_lease('two', '10 min');
SELECT * FROM used ORDER BY what, here, role;
SELECT DISTINCT what FROM interlock.usage WHERE role IS NULL ORDER BY what;

-- What is given back counts no more
RESET ROLE;
SELECT interlock.break_leases('%', 'usage', 'usage_one'), interlock.break_leases('%', 'usage', 'usage_two');
SELECT * FROM used ORDER BY what, here, role;
DROP VIEW used;
DELETE FROM interlock.lease_audit;
DROP TABLE got;
DROP ROLE usage_one;
DROP ROLE usage_two;
