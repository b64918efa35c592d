-- What was there before an upgrade is the same, and each mechanism continues. Raises an error if not.

CREATE FUNCTION pg_temp.must(name text, actual anyelement, wanted anyelement) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF actual IS DISTINCT FROM wanted THEN
        RAISE EXCEPTION '%: found %, not %', name, actual, wanted;
    END IF;
END $$;

CREATE FUNCTION pg_temp.must_raise(name text, statement text, state text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE statement;
    RAISE EXCEPTION '%: it raised nothing', name USING ERRCODE = 'XX000';
EXCEPTION
    WHEN OTHERS THEN PERFORM pg_temp.must(name, SQLSTATE || ' ' || CASE SQLSTATE WHEN state THEN '' ELSE SQLERRM END, state || ' ');
END $$;

-- Rows, histories, leases, rights: nothing is lost, nothing is new.
CREATE TEMP TABLE differences AS
    (SELECT 'lost' AS kind, b.* FROM (TABLE kept.before EXCEPT ALL SELECT * FROM kept.state()) b)
    UNION ALL (SELECT 'new', s.* FROM (SELECT * FROM kept.state() EXCEPT ALL TABLE kept.before) s);
SELECT pg_temp.must('the state', (SELECT string_agg(left(concat_ws(' ', kind, what, content), 300), E'\n') FROM (TABLE differences LIMIT 10) d), NULL);
SELECT pg_temp.must('findings', (SELECT string_agg(concat_ws(' ', rel, finding), ', ') FROM interlock.advise() WHERE severity = 'broken'), NULL);

UPDATE upgrade SET n = n + 1;
SELECT n, position FROM upgrade \gset

-- Versions, history, transitions: two changes for each upgrade.
SELECT pg_temp.must('the version', interlock.versioned_update('doc', 1, 2 * :n::bigint, jsonb_build_object('note', :n)), 2 * :n::bigint + 1);
SELECT pg_temp.must_raise('an old version', 'SELECT interlock.versioned_update(''doc'', 1, 1::bigint, ''{}'')', 'IL001');
SELECT interlock.transition('doc', 1, status, CASE status WHEN 'draft' THEN 'published' ELSE 'draft' END) FROM doc WHERE id = 1;
SELECT pg_temp.must_raise('a state that is not declared', 'UPDATE doc SET status = ''gone'' WHERE id = 1', 'IL002');
SELECT pg_temp.must('the history', (SELECT count(*) FROM interlock.row_history('doc', 1)), 2 + 2 * :n::bigint);
SELECT pg_temp.must('the first entry', (SELECT row_data->>'body' FROM interlock.row_history('doc', 1) WHERE version = 1), 'first');
SELECT pg_temp.must('what a reader of the history finds', (SELECT string_agg(concat_ws(' ', key->>'id', version), ', ' ORDER BY id) FROM interlock.history_since('doc', :'position')),
    format('1 %s, 1 %s', 2 * :n + 1, 2 * :n + 2));
INSERT INTO doc (id, body) VALUES (3, 'again') RETURNING version > 1 AS starts_above_the_deleted_row \gset
SELECT pg_temp.must('the version of a key that is used again', :'starts_above_the_deleted_row', 't'::text);
DELETE FROM doc WHERE id = 3;

SELECT pg_temp.must('a version that is a time', interlock.versioned_update('note', id, updated_time, '{"body": "b"}') > updated_time, true) FROM note;

UPDATE entry SET amount = amount + 1;
SELECT pg_temp.must('the history in partitions', (SELECT count(*) FROM interlock.row_history('entry', '{"id": 1, "day": "2019-05-05"}')), 2 + :n::bigint);
SELECT pg_temp.must('what is trimmed', (SELECT sum(trimmed + dropped_partitions) FROM interlock.trim_history('entry')), 0::numeric);

-- The marker is held over the upgrade.
SELECT pg_temp.must('the marker', holder, 'anna') FROM interlock.row_lock_of('doc', 2);
SELECT pg_temp.must_raise('a marker of another holder', 'UPDATE doc SET body = ''x'' WHERE id = 2', 'IL004');
SELECT interlock.save_row('doc', 2, 'anna', jsonb_build_object('note', :n), keep => true);

SELECT pg_temp.must_raise('an owned column', 'UPDATE owned SET title = ''x'' WHERE id = 1', 'IL007');
BEGIN;
SET LOCAL ROLE app;
SELECT interlock.set_writer('importer');
UPDATE owned SET title = :'n', price = 100 WHERE id = 1;
COMMIT;
SELECT pg_temp.must('columns of two writers', concat_ws(' ', title, price), concat_ws(' ', :'n', 2)) FROM owned;

-- 100 - 10, a reservation of 5, and 1 for each upgrade.
SELECT interlock.adjust('item', 1, 'stock', -1);
SELECT pg_temp.must('the counter', interlock.escrow_value('item', 1, 'stock'), 85 - :n::numeric);
SELECT pg_temp.must('the books', (SELECT sum(abs(difference)) FROM interlock.escrow_check('item')), 0::numeric);
SELECT pg_temp.must_raise('a plain update of a counter', 'UPDATE item SET stock = 1', '55000');
SELECT pg_temp.must('the reservation', interlock.extend_reservation(token, '1 day') > now() + interval '23 hours', true) FROM cart;

INSERT INTO child VALUES (:n, 1);
SELECT pg_temp.must('the version of the parent', version::bigint, 1 + :n::bigint) FROM parent WHERE id = 1;

SELECT pg_temp.must('the stored answer', outcome || response::text, 'replay{"paid": 5}') FROM interlock.run_once('pay', 'k', 'pay', '{"amount": 5}');
SELECT pg_temp.must('another request', outcome, 'mismatch') FROM interlock.run_once('pay', 'k', 'pay', '{"amount": 6}');
SELECT pg_temp.must('a new key', outcome || response::text, 'completed{"paid": 7}') FROM interlock.run_once('pay', 'upgrade ' || :n, 'pay', '{"amount": 7}');
SELECT interlock.idempotency_checkpoint('jobs', 'night', token, 'upgrade ' || :n) FROM job;

-- The lease with a record is held, by the same token. The other one is over; the wait is for the grace.
BEGIN;
SELECT interlock.assert_lease(key, token) FROM token WHERE key = 'long';
INSERT INTO gate VALUES (:n);
COMMIT;
SELECT pg_temp.must_raise('a write without the lease', 'INSERT INTO gate VALUES (0)', 'IL006');
SELECT pg_temp.must('the renewal', interlock.renew_lease(key, token, '1 day') IS NOT NULL, true) FROM token WHERE key IN ('long', 'permit');
SELECT pg_temp.must('a renewal of a lease that was broken', interlock.renew_lease(key, token), NULL) FROM token WHERE key = 'broken';
SELECT outcome, token FROM interlock.acquire_lease('short', '15 s', wait => '5 min', holder => 'worker 2') \gset
SELECT pg_temp.must('a lease without a record', :'outcome', 'acquired'::text);
SELECT pg_temp.must('the token is larger', (SELECT max(token) FROM token) < :token, true);
SELECT pg_temp.must('a lease of another holder', outcome, 'held') FROM interlock.acquire_lease('long', holder => 'worker 2');
SELECT pg_temp.must('the next permit', outcome, 'acquired') FROM interlock.acquire_permit('permit', 2, '1 s', holder => 'worker 2');
INSERT INTO token VALUES ('short', :token);

-- Key locks are of sessions: none is left, and each kind can be had.
SELECT pg_temp.must('key locks', (SELECT count(*) FROM interlock.key_locks), 0::bigint);
BEGIN;
SELECT interlock.lock_key('a/b'), interlock.lock_key('c', 'shared');
SELECT pg_temp.must('an application lock', interlock.getapplock('r', 'Exclusive'), 0);
SELECT pg_temp.must('key locks', (SELECT count(*) FROM interlock.key_locks), 4::bigint);
COMMIT;
SELECT interlock.lock_key('s', scope => 'session');

UPDATE upgrade SET position = interlock.history_position(), at = clock_timestamp();
