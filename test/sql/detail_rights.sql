-- SEC-8: an error tells of a row what the writer could SELECT of it, in the message and in DETAIL
\set SHOW_CONTEXT never
SET client_min_messages = warning;
CREATE ROLE interlock_blind;
CREATE ROLE interlock_seeing;
CREATE FUNCTION says(command text, OUT code text, OUT message text, OUT detail text) LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE command;
EXCEPTION WHEN OTHERS THEN
    GET STACKED DIAGNOSTICS code = RETURNED_SQLSTATE, message = MESSAGE_TEXT, detail = PG_EXCEPTION_DETAIL;
END $$;
CREATE TABLE doc (id int PRIMARY KEY, body text, status text);
CREATE TABLE paper (id int PRIMARY KEY, secret text, body text);
INSERT INTO paper VALUES (17, 's3cret', 'x'), (18, '', 'z');
SELECT interlock.enable_versioning('doc'), interlock.define_transitions('doc', 'status', '{"pending": ["paid"], "paid": ["shipped"]}', '{pending}'),
    interlock.require_lease('paper', 't:{secret}', '{body}');
INSERT INTO doc VALUES (17, 'x', 'pending');
GRANT INSERT, UPDATE, DELETE ON doc, paper TO interlock_blind, interlock_seeing;
GRANT SELECT (body) ON doc, paper TO interlock_blind;
GRANT SELECT ON doc, paper TO interlock_seeing;
-- what errors show where there is something to show
SET ROLE interlock_seeing;
SELECT * FROM says('UPDATE doc SET version = 7');
SELECT * FROM says($$UPDATE doc SET status = 'shipped'$$);
SELECT * FROM says($$INSERT INTO doc VALUES (18, 'x', 'paid')$$);
SELECT * FROM says('UPDATE paper SET body = 1 WHERE id = 17');
SELECT * FROM says($$INSERT INTO paper VALUES (19, 'other', 'x')$$);
SELECT * FROM says($$DELETE FROM paper WHERE id = 17$$);
-- and to whom there is not
SET ROLE interlock_blind;
SELECT * FROM says('UPDATE doc SET version = 7');
SELECT * FROM says($$UPDATE doc SET status = 'shipped'$$);
SELECT * FROM says($$UPDATE doc SET status = NULL$$);
SELECT * FROM says($$INSERT INTO doc VALUES (18, 'x', 'paid')$$);
SELECT * FROM says($$UPDATE paper SET body = 1 WHERE body = 'x'$$);
SELECT * FROM says($$INSERT INTO paper VALUES (19, 'other', 'x')$$);
SELECT * FROM says($$INSERT INTO paper VALUES (19, 'a/b', 'x')$$);
SELECT * FROM says($$DELETE FROM paper WHERE body = 'x'$$);
-- an empty level of a lease's key does not show the others either
RESET ROLE;
SELECT interlock.unrequire_lease('paper', 't:{secret}'), interlock.require_lease('paper', '{body}/{secret}', '{body}');
SET ROLE interlock_blind;
SELECT * FROM says($$UPDATE paper SET body = 1 WHERE body = 'z'$$);
RESET ROLE;
-- the functions need SELECT for what they compare and tell
SET ROLE interlock_blind;
SELECT * FROM says($$SELECT interlock.versioned_update('doc', 17, 9, '{"body": "y"}')$$);
SELECT * FROM says($$SELECT interlock.transition('doc', 17, 'paid', 'shipped')$$);
SELECT * FROM says($$SELECT interlock.transition('doc', 17, 'pending', 'shipped')$$);
SELECT * FROM says($$SELECT * FROM interlock.versioned_update_many('doc', '[{"key": {"id": 17}, "version": 9, "changes": {}}]', true)$$);
RESET ROLE;

-- row security: the columns may be read, the row may not
SELECT interlock.unrequire_lease('paper', '{body}/{secret}'), interlock.require_lease('paper', 't:{secret}', '{body}');
GRANT SELECT ON doc, paper TO interlock_blind;
ALTER TABLE doc ENABLE ROW LEVEL SECURITY;
ALTER TABLE paper ENABLE ROW LEVEL SECURITY;
CREATE POLICY w ON doc FOR UPDATE USING (true);
CREATE POLICY i ON doc FOR INSERT WITH CHECK (true);
CREATE POLICY w ON paper FOR UPDATE USING (true);
CREATE POLICY i ON paper FOR INSERT WITH CHECK (true);
CREATE POLICY r ON doc FOR SELECT TO interlock_seeing USING (true);
CREATE POLICY r ON paper FOR SELECT TO interlock_seeing USING (true);
SET ROLE interlock_seeing;
SELECT * FROM says('UPDATE doc SET version = 7');
SELECT * FROM says($$UPDATE doc SET status = 'shipped'$$);
SELECT * FROM says($$INSERT INTO doc VALUES (18, 'x', 'paid')$$);
SELECT * FROM says($$UPDATE paper SET body = '1' WHERE id = 17$$);
SELECT * FROM says($$INSERT INTO paper VALUES (19, 'other', 'x')$$);
SET ROLE interlock_blind;
SELECT * FROM says('UPDATE doc SET version = 7');
SELECT * FROM says($$UPDATE doc SET status = 'shipped'$$);
SELECT * FROM says($$INSERT INTO doc VALUES (18, 'x', 'paid')$$);
SELECT * FROM says($$UPDATE paper SET body = '1'$$);
SELECT * FROM says($$INSERT INTO paper VALUES (19, 'other', 'x')$$);
SELECT * FROM says($$SELECT interlock.versioned_update('doc', 17, 9, '{"body": "y"}')$$);
RESET ROLE;
-- a partition, through the table that the writer may read
CREATE TABLE region (id int, region text, status text, PRIMARY KEY (id, region)) PARTITION BY LIST (region);
CREATE TABLE region_eu (status text, region text NOT NULL, id int NOT NULL);
ALTER TABLE region ATTACH PARTITION region_eu FOR VALUES IN ('eu');
SELECT interlock.enable_versioning('region'), interlock.define_transitions('region', 'status', '{"a": ["b"]}');
INSERT INTO region VALUES (1, 'eu', 'a');
GRANT UPDATE ON region TO interlock_blind, interlock_seeing;
GRANT SELECT ON region TO interlock_seeing;
SET ROLE interlock_seeing;
SELECT * FROM says('UPDATE region SET version = 7');
SELECT * FROM says($$UPDATE region SET status = 'c'$$);
SET ROLE interlock_blind;
SELECT * FROM says('UPDATE region SET version = 7');
SELECT * FROM says($$UPDATE region SET status = 'c'$$);
RESET ROLE;
-- the difference that a plain update of a counter makes tells the stored value, and its sign something of it
CREATE TABLE store (id int PRIMARY KEY, qty int NOT NULL, price numeric(8,2) NOT NULL);
SELECT interlock.enable_escrow('store', 'qty', 0, 1000, 'delta'), interlock.enable_escrow('store', 'price', 0, 1000, 'delta');
INSERT INTO store VALUES (17, 43, 19.99);
SELECT outcome FROM interlock.reserve('store', 17, 'qty', 9, '1 h');
GRANT SELECT, UPDATE ON store TO interlock_seeing;
GRANT SELECT (id), UPDATE ON store TO interlock_blind;
SET ROLE interlock_seeing;
SELECT * FROM says('UPDATE store SET qty = 5000');
SELECT * FROM says('UPDATE store SET qty = -1');
SELECT * FROM says('UPDATE store SET price = 5000');
SELECT * FROM says($$SELECT interlock.adjust('store', 17, 'qty', -100)$$);
SET ROLE interlock_blind;
SELECT * FROM says('UPDATE store SET qty = 5000');
SELECT * FROM says('UPDATE store SET qty = -1');
SELECT * FROM says('UPDATE store SET price = 5000');
RESET ROLE;
GRANT SELECT ON store TO interlock_blind;
SET ROLE interlock_blind;
SELECT * FROM says('UPDATE store SET qty = 5000');
RESET ROLE;
ALTER TABLE store ENABLE ROW LEVEL SECURITY;
CREATE POLICY w ON store FOR UPDATE USING (true);
CREATE POLICY r ON store FOR SELECT TO interlock_seeing USING (true);
SET ROLE interlock_seeing;
SELECT * FROM says('UPDATE store SET qty = 5000');
SET ROLE interlock_blind;
SELECT * FROM says('UPDATE store SET qty = 5000');
SELECT * FROM says('UPDATE store SET qty = -1');
RESET ROLE;
-- what the owner's expressions say of an entry is for those who may read the entries
CREATE TABLE pay (id int PRIMARY KEY, note text, salary text);
SELECT interlock.enable_history('pay');
INSERT INTO pay VALUES (1, 'x', 'about 4711');
GRANT SELECT (id, note), UPDATE (note) ON pay TO interlock_blind, interlock_seeing;
GRANT SELECT ON pay_history TO interlock_seeing;
CREATE FUNCTION try_indexes(definition text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    TRUNCATE pay_history;
    EXECUTE 'CREATE INDEX fails ON pay_history (' || definition || ')';
END $$;
CREATE FUNCTION said(command text, OUT code text, OUT message text, OUT detail text, OUT context text) LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE command;
EXCEPTION WHEN OTHERS THEN
    GET STACKED DIAGNOSTICS code = RETURNED_SQLSTATE, message = MESSAGE_TEXT, detail = PG_EXCEPTION_DETAIL, context = PG_EXCEPTION_CONTEXT;
    context := context LIKE '%4711%';
END $$;
SELECT try_indexes($$((row_data ->> 'salary')::int)$$);
SET ROLE interlock_seeing;
SELECT * FROM said('UPDATE pay SET note = 1');
SET ROLE interlock_blind;
SELECT * FROM said('UPDATE pay SET note = 1');
RESET ROLE;
DROP INDEX fails;
SELECT try_indexes($$((row_data ->> 'salary')::jsonb)$$);
SET ROLE interlock_seeing;
SELECT * FROM said('UPDATE pay SET note = 1');
SET ROLE interlock_blind;
SELECT * FROM said('UPDATE pay SET note = 1');
RESET ROLE;
DROP INDEX fails;
-- types that refuse a value as a syntax error, or as the name of nothing
SELECT try_indexes($$((row_data ->> 'salary')::tsquery)$$);
SET ROLE interlock_seeing;
SELECT * FROM said('UPDATE pay SET note = 1');
SET ROLE interlock_blind;
SELECT * FROM said('UPDATE pay SET note = 1');
RESET ROLE;
DROP INDEX fails;
ALTER TABLE pay_history ADD CONSTRAINT named CHECK (replace(row_data ->> 'salary', ' ', '_')::regclass IS NULL) NOT VALID;
SET ROLE interlock_seeing;
SELECT code, message, detail FROM said('UPDATE pay SET note = 1');
SET ROLE interlock_blind;
SELECT * FROM said('UPDATE pay SET note = 1');
RESET ROLE;
ALTER TABLE pay_history DROP CONSTRAINT named;
ALTER TABLE pay_history ADD CONSTRAINT low CHECK (row_data ->> 'salary' < 'a') NOT VALID;
SET ROLE interlock_seeing;
SELECT code, message, detail LIKE '%4711%' AS tells FROM said('UPDATE pay SET note = 1');
SET ROLE interlock_blind;
SELECT * FROM said('UPDATE pay SET note = 1');
RESET ROLE;
DROP TABLE pay, pay_history;
DROP FUNCTION try_indexes, said;
DROP TABLE doc, paper, region, store;
DROP FUNCTION says;
DROP ROLE interlock_blind, interlock_seeing;
