-- Documents that stay open in an editor: a business lock in the row, with holder, time and deadline.
CREATE EXTENSION IF NOT EXISTS pg_interlock;

CREATE TABLE document (
    id int PRIMARY KEY,
    body text,
    status int NOT NULL DEFAULT 0,      -- 1 while somebody edits it
    lock_by text,
    lock_time timestamptz);
INSERT INTO document VALUES (1, 'first text'), (2, 'second text'), (3, 'third text');

-- The columns that are there are used, those for deadline and reason are added. A lock lasts ten minutes unless it is renewed.
SELECT interlock.enable_marker('document', '10 min', status_column => 'status');
SELECT interlock.enable_versioning('document');
SELECT interlock.enable_history('document');

-- 1. The three statements of a lock by hand: lock, save and release, clean up. They work as they stand, and are enforced.
UPDATE document SET status = 1, lock_by = 'ann', lock_time = now() WHERE id = 1 AND status = 0;
-- => UPDATE 1

-- Ben does not get it, and neither do his save and an import.
UPDATE document SET status = 1, lock_by = 'ben', lock_time = now() WHERE id = 1 AND status = 0;
-- => UPDATE 0
UPDATE document SET body = 'imported' WHERE id = 1;
-- => ERROR:  row of table "document" is being edited by "ann"

-- The job that releases what is old may stay. It is not needed: the sweeper does that, at the deadline.
UPDATE document SET status = 0, lock_by = NULL WHERE status = 1 AND lock_time < now() - interval '10 min';
-- => UPDATE 0

-- Ann saves. Her name in the WHERE is what the server asks for.
UPDATE document SET body = 'a better text', status = 0 WHERE id = 1 AND lock_by = 'ann';
-- => UPDATE 1

-- 2. The same by functions, which answer more. The holder is user and tab, so that two tabs of Ann are two holders.
SELECT locked, holder FROM interlock.lock_row('document', 1, 'ann/tab1', reason => 'new chapter');
-- => t | ann/tab1
SELECT locked, holder FROM interlock.lock_row('document', 1, 'ben/tab9');
-- => f | ann/tab1
SELECT split_part(holder, '/', 1) AS who, reason FROM interlock.row_lock_of('document', 1);
-- => ann | new chapter

-- The editor calls this every few minutes while she types. Null would say that she has lost it.
SELECT interlock.touch_row('document', 1, 'ann/tab1') IS NOT NULL AS still_hers;
-- => t

-- She saves with the version that she has read: the lock may have ended meanwhile, and somebody else may have saved.
SELECT interlock.save_row('document', 1, 'ann/tab1', '{"body": "the best text"}', expected => 2) AS version;
-- => 3

-- 3. Several documents, all or none.
SELECT locked FROM interlock.lock_row('document', 3, 'ben/tab9');
-- => t
SELECT locked, blocked->0->>'holder' AS who_has_one FROM interlock.lock_rows('document', '{1,2,3}', 'ann/tab1');
-- => f | ben/tab9

-- 4. Ben goes home, and hands his document over. It is Ann's now: what he saves later is refused.
SELECT interlock.hand_over_row('document', 3, 'ben/tab9', 'ann/tab1') IS NOT NULL AS given;
-- => t
SELECT interlock.save_row('document', 3, 'ben/tab9', '{"body": "too late"}');
-- => ERROR:  "ben/tab9" does not hold the row of table "document"
SELECT interlock.delete_row('document', 3, 'ann/tab1');

-- 5. A document that somebody left open, and that is needed at once. Operators may do that, and it is written down.
SELECT locked FROM interlock.lock_row('document', 2, 'cleo/tab3');
-- => t
SELECT interlock.force_unlock_row('document', 2, 'Cleo is on holiday') AS taken_from;
-- => cleo/tab3
SELECT holder, reason FROM interlock.row_lock_audit;
-- => cleo/tab3 | Cleo is on holiday

-- 6. The lines of a document are rows of their own. Its lock covers them, and a change of them moves its version, once.
CREATE TABLE document_line (id int PRIMARY KEY, document int NOT NULL REFERENCES document, body text);
SELECT interlock.guard_children('document_line', 'document');
SELECT locked FROM interlock.lock_row('document', 2, 'ann/tab1');
-- => t
INSERT INTO document_line VALUES (1, 2, 'imported');
-- => ERROR:  row of table "document" is being edited by "ann/tab1"
BEGIN;
SELECT interlock.set_holder('ann/tab1');
INSERT INTO document_line VALUES (1, 2, 'first line'), (2, 2, 'second line');
COMMIT;
SELECT interlock.save_row('document', 2, 'ann/tab1', '{"body": "with two lines"}', expected => 1);
-- => ERROR:  version conflict in table "document": expected 1, found 2
SELECT interlock.save_row('document', 2, 'ann/tab1', '{"body": "with two lines"}', expected => 2) AS version;
-- => 3

-- 7. The log has one entry for each edit, and none for locking, touching and releasing. The functions record the holder.
SELECT version, operation, writer, before->>'body' AS before FROM interlock.row_history('document', 1);
-- => 2 | update | | first text
-- => 3 | update | ann/tab1 | a better text
