-- A report that one of many workers makes, and that no worker can write after it lost the lease.
CREATE TABLE report (day date PRIMARY KEY, body text, token bigint);

-- every worker asks; one gets it, the others get its name
SELECT outcome, token FROM interlock.acquire_lease('report:weekly', '30 s', holder => 'worker 1') \gset first_
SELECT outcome, holder FROM interlock.acquire_lease('report:weekly', '30 s', holder => 'worker 2');

-- a heartbeat while it works; null would mean that the lease is lost
SELECT interlock.renew_lease('report:weekly', :first_token) IS NOT NULL AS still_mine;

-- the write asks for itself: from the assertion to the end of the transaction nobody else gets the lease
BEGIN;
SELECT interlock.assert_lease('report:weekly', :first_token);
INSERT INTO report VALUES ('2030-01-01', 'all is well', :first_token);
COMMIT;
SELECT interlock.release_lease('report:weekly', :first_token);

-- every writer has to: an INSERT without the lease of its day is refused
SELECT interlock.require_lease('report', 'report:{day}');
SELECT token FROM interlock.acquire_lease('report:2030-01-02') \gset
BEGIN;
SELECT interlock.assert_lease('report:2030-01-02', :token);
INSERT INTO report VALUES ('2030-01-02', 'still well', :token);
COMMIT;
SELECT interlock.release_lease('report:2030-01-02', :token);
SELECT interlock.unrequire_lease('report');

-- parts of one product at the same time, at most two imports at once
SELECT outcome FROM interlock.acquire_lease('product:7/assets/thumb', '1 s');
SELECT outcome FROM interlock.acquire_lease('product:7/search', '1 s');
SELECT outcome FROM interlock.acquire_permit('import', 2, '1 s');
