-- VER-1, ORM-4: what docs/guide/versions.md says of writers that compare the version and of those that do not
CREATE TABLE item (id int PRIMARY KEY, name text, version int NOT NULL DEFAULT 1);
SELECT interlock.enable_versioning('item');
-- what becomes of the statement of a writer that has read version 7 of a row that another writer has moved on to `stored`
CREATE FUNCTION stale(statement text, stored int, OUT rows_affected bigint, OUT name text, OUT version int) LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM item;
    INSERT INTO item VALUES (1, 'theirs', stored);
    EXECUTE statement;
    GET DIAGNOSTICS rows_affected = ROW_COUNT;
    SELECT i.name, i.version INTO name, version FROM item i;
EXCEPTION WHEN SQLSTATE 'IL001' THEN name := 'IL001';
END $$;
SELECT statement, s.stored, r.* FROM (VALUES
    ($$SELECT interlock.versioned_update('item', 1, 7, '{"name": "mine"}')$$, 8),
    ($$UPDATE item SET name = 'mine', version = 8 WHERE id = 1 AND version = 7$$, 8),
    ($$UPDATE item SET name = 'mine' WHERE id = 1 AND version = 7$$, 8),
    ($$UPDATE item SET name = 'mine', version = version + 1 WHERE id IN (1)$$, 8),
    ($$UPDATE item SET name = 'mine' WHERE id = 1$$, 8),
    ($$UPDATE item SET name = 'mine', version = 8 WHERE id = 1$$, 8),
    ($$UPDATE item SET name = 'mine', version = 8 WHERE id = 1$$, 9)) s(statement, stored), stale(statement, s.stored) r;
-- a writer that inserts its own first version: a stale save of the deleted row succeeds on the new one; with the default it does not
DELETE FROM item;
INSERT INTO item VALUES (2, 'old', 1);
DELETE FROM item;
INSERT INTO item VALUES (2, 'new', 1);
UPDATE item SET name = 'stale', version = 2 WHERE id = 2 AND version = 1 RETURNING *;
DELETE FROM item;
INSERT INTO item VALUES (2, 'new');
UPDATE item SET name = 'stale', version = 2 WHERE id = 2 AND version = 1 RETURNING *;
-- ORM-5: one unit of work updates the row twice, the second time without the version; its next save is a false conflict
DELETE FROM item;
ALTER TABLE item ADD place int;
INSERT INTO item VALUES (3, 'new', 1);
UPDATE item SET name = 'saved', version = 2 WHERE id = 3 AND version = 1 RETURNING version;
UPDATE item SET place = 1 WHERE id = 3;
UPDATE item SET name = 'saved again', version = 3 WHERE id = 3 AND version = 2 RETURNING version;
-- ignore_columns cures that
SELECT interlock.enable_versioning('item', ignore_columns => '{place}');
UPDATE item SET name = 'saved', version = 4 WHERE id = 3 AND version = 3 RETURNING version;
UPDATE item SET place = 2 WHERE id = 3;
UPDATE item SET name = 'saved again', version = 5 WHERE id = 3 AND version = 4 RETURNING version;
DROP TABLE item;
DROP FUNCTION stale;
