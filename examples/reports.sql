-- Work that takes longer than a transaction, and that one of many workers does at a time: leases, also called distributed locks.
-- Needs shared_preload_libraries = 'pg_interlock'. For scripts of the shell there is lease-heartbeat.sh.
CREATE EXTENSION IF NOT EXISTS pg_interlock;

CREATE TABLE report (day date PRIMARY KEY, body text);

-- 1. Each worker asks, one gets the lease, and the others learn who has it.
SELECT outcome, token FROM interlock.acquire_lease('report:weekly', '30 s', holder => 'worker 1') \gset first_
\echo :first_outcome
-- => acquired
SELECT outcome, holder FROM interlock.acquire_lease('report:weekly', '30 s', holder => 'worker 2');
-- => held | worker 1

-- The heartbeat, after half of the time. Null would say that the lease is lost: stop working then.
SELECT interlock.renew_lease('report:weekly', :first_token) IS NOT NULL AS still_mine;
-- => t

-- The transaction that writes asserts the lease: until it ends, no other worker gets it.
BEGIN;
SELECT interlock.assert_lease('report:weekly', :first_token);
INSERT INTO report VALUES ('2030-01-01', 'all is well');
COMMIT;
SELECT interlock.release_lease('report:weekly', :first_token) AS was_held;
-- => t

-- 2. A worker that was paused, and wakes up when its lease is over, cannot write over its successor.
SELECT token FROM interlock.acquire_lease('report:weekly', '30 s', holder => 'worker 1') \gset first_
SELECT interlock.break_lease('report:weekly', 'as if worker 1 were paused for a minute') AS was_held_by;
-- => worker 1
SELECT outcome FROM interlock.acquire_lease('report:weekly', '30 s', holder => 'worker 2');
-- => acquired
BEGIN;
SELECT interlock.assert_lease('report:weekly', :first_token);
-- => ERROR:  lease "report:weekly" is not held with this token
UPDATE report SET body = 'stale' WHERE day = '2030-01-01';
-- => ERROR:  current transaction is aborted, commands ignored until end of transaction block
ROLLBACK;

-- 3. A rule for every writer: a report of a day is written under the lease of that day.
SELECT interlock.require_lease('report', 'report:{day}');
INSERT INTO report VALUES ('2030-01-02', 'without a lease');
-- => ERROR:  writing to table "report" needs lease "report:2030-01-02"
SELECT token FROM interlock.acquire_lease('report:2030-01-02') \gset
BEGIN;
SELECT interlock.assert_lease('report:2030-01-02', :token);
INSERT INTO report VALUES ('2030-01-02', 'with its lease');
-- => INSERT 0 1
COMMIT;

-- 4. Parts of one product at the same time, but not beside work on all of it. At most two imports at once.
SELECT outcome FROM interlock.acquire_lease('product:7/assets/thumb', '1 min');
-- => acquired
SELECT outcome FROM interlock.acquire_lease('product:7/search', '1 min');
-- => acquired
SELECT outcome FROM interlock.acquire_lease('product:7', '1 min');
-- => held
SELECT (interlock.acquire_permit('import', 2, '1 min', holder => 'import ' || i)).outcome FROM generate_series(1, 3) i;
-- => acquired
-- => acquired
-- => held

-- 5. Once a day is something else: a lease that was released can be acquired again. A key that is completed cannot.
SELECT interlock.define_idempotency_scope('report', model => 'job', ttl => '2 days', stale_after => '10 min');
SELECT outcome, token FROM interlock.idempotency_claim('report', 'daily:2030-01-01') \gset
\echo :outcome
-- => acquired
SELECT interlock.idempotency_complete('report', 'daily:2030-01-01', :token);
SELECT outcome FROM interlock.idempotency_claim('report', 'daily:2030-01-01');       -- the next node, an hour later
-- => replay
