-- select_for_update within one session: keys of any type, what is returned, privileges, bad input.
CREATE SCHEMA select_for_update;
SET search_path = select_for_update;
CREATE TABLE account (id int PRIMARY KEY, balance int);
INSERT INTO account SELECT g, 100 FROM generate_series(1, 10) g;
SELECT * FROM interlock.select_for_update('account', '{10,2,1,2,99}');
SELECT * FROM interlock.select_for_update('account', ARRAY[3, 1]);
SELECT * FROM interlock.select_for_update('account', ARRAY[3, 1]::bigint[], 'share', '0');
SELECT * FROM interlock.select_for_update('account', '[3, "1"]'::jsonb, 'key_share', skip_locked => true);
SELECT * FROM interlock.select_for_update('account', '{}', wait => '2 s');
SELECT count(*) FROM interlock.select_for_update('account', ARRAY[3], 'no_key_update', '0');

-- other keys
CREATE TABLE "Mixed Case" ("Key" uuid PRIMARY KEY);
INSERT INTO "Mixed Case" VALUES ('00000000-0000-0000-0000-000000000002'), ('00000000-0000-0000-0000-000000000001');
SELECT * FROM interlock.select_for_update('"Mixed Case"', (SELECT array_agg("Key") FROM "Mixed Case"));
CREATE TABLE seat (show date, row text COLLATE "C", number numeric, PRIMARY KEY (show, row, number));
INSERT INTO seat VALUES ('2030-01-01', 'B', 1.0), ('2030-01-01', 'A', 2), ('2029-01-01', 'Z', 3);
SELECT * FROM interlock.select_for_update('seat', '[{"show": "2030-01-01", "row": "B", "number": 1}, {"show": "2030-01-01", "row": "A", "number": 2},
    {"show": "2029-01-01", "row": "Z", "number": 3}]'::jsonb);
CREATE TABLE part (id text COLLATE "C", PRIMARY KEY (id)) PARTITION BY HASH (id);
CREATE TABLE part_0 PARTITION OF part FOR VALUES WITH (MODULUS 2, REMAINDER 0);
CREATE TABLE part_1 PARTITION OF part FOR VALUES WITH (MODULUS 2, REMAINDER 1);
INSERT INTO part SELECT chr(64 + g) FROM generate_series(1, 6) g;
SELECT * FROM interlock.select_for_update('part', '{F,A,D}');

-- the rows are locked, in the order of their keys
BEGIN;
SELECT count(*) FROM interlock.select_for_update('account', '{2,1}', 'no_key_update');
SELECT count(*) FROM account WHERE xmax::text::bigint = pg_current_xact_id()::text::bigint;
ROLLBACK;

-- privileges are those of the SELECT; row security holds
GRANT USAGE ON SCHEMA select_for_update TO PUBLIC;
CREATE ROLE interlock_guest;
SET ROLE interlock_guest;
SELECT * FROM interlock.select_for_update('account', '{}');
RESET ROLE;
GRANT SELECT ON account TO interlock_guest;
SET ROLE interlock_guest;
SELECT * FROM interlock.select_for_update('account', '{1}', 'key_share');
SELECT * FROM interlock.select_for_update('account', '{1}');
RESET ROLE;
GRANT UPDATE (balance) ON account TO interlock_guest;
ALTER TABLE account ENABLE ROW LEVEL SECURITY;
CREATE POLICY even ON account USING (id % 2 = 0);
SET ROLE interlock_guest;
SELECT * FROM interlock.select_for_update('account', '{1,2,3,4}');
RESET ROLE;
DROP OWNED BY interlock_guest;
DROP ROLE interlock_guest;

-- bad input
CREATE TABLE keyless (a int);
CREATE VIEW accounts AS SELECT * FROM account;
\set SHOW_CONTEXT never
SELECT * FROM interlock.select_for_update('account', NULL);
SELECT * FROM interlock.select_for_update('account', '{1,NULL}');
SELECT * FROM interlock.select_for_update('account', '[1, null]'::jsonb);
SELECT * FROM interlock.select_for_update('account', '{"id": 1}'::jsonb);
SELECT * FROM interlock.select_for_update('account', 1);
SELECT * FROM interlock.select_for_update('account', '{one}');
SELECT * FROM interlock.select_for_update('seat', '{1}');
SELECT * FROM interlock.select_for_update('account', '{1}', 'exclusive');
SELECT * FROM interlock.select_for_update('account', '{1}', NULL);
SELECT * FROM interlock.select_for_update('account', '{1}', wait => '2 s', skip_locked => true);
SELECT * FROM interlock.select_for_update('account', '{1}', wait => '-1 s');
SELECT * FROM interlock.select_for_update('account', '{1}', wait => '5 parsecs');
SELECT * FROM interlock.select_for_update('keyless', '{1}');
SELECT * FROM interlock.select_for_update('accounts', '{1}');
SELECT * FROM interlock.select_for_update('pg_class', '{1}');
SELECT * FROM interlock.select_for_update(NULL, '{1}');
\set VERBOSITY default
-- a list takes long to read: a cancel comes before the null at its end
CREATE TEMPORARY TABLE list AS SELECT to_jsonb(array_fill('{"id": 1}'::jsonb, ARRAY[100000])) || 'null' AS keys;
SET statement_timeout = '20 ms';
SELECT count(s) FROM list, interlock.select_for_update('account', keys) s;
RESET statement_timeout;
BEGIN READ ONLY;
SELECT * FROM interlock.select_for_update('account', '{1}');
ROLLBACK;
SET client_min_messages = warning;
DROP SCHEMA select_for_update CASCADE;

-- many dead entries in the key's index
RESET search_path;
CREATE TABLE worn (id int PRIMARY KEY, filler text) WITH (autovacuum_enabled = off);
CREATE INDEX ON worn (filler);
INSERT INTO worn SELECT g, repeat('x', 200) FROM generate_series(1, 300) g;
UPDATE worn SET filler = repeat('y', 200);
SELECT count(*) FROM interlock.select_for_update('worn', (SELECT array_agg(g) FROM generate_series(1, 300) g));
DROP TABLE worn;
