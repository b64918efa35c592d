-- OPS-18: a session keeps nothing of tables that were dropped: pooled sessions create and drop temporary tables for years.
\set VERBOSITY terse

SET default_transaction_isolation = 'repeatable read'; -- so that functions take plans

CREATE VIEW kept AS
    SELECT count(*) FILTER (WHERE name = 'interlock relation') AS tables,
           count(*) FILTER (WHERE name = 'CachedPlanSource' AND ident ~ 'dropped_table') AS plans
    FROM pg_backend_memory_contexts;

CREATE TEMP TABLE dropped_table (id int PRIMARY KEY, body text);
SELECT interlock.enable_versioning('dropped_table');
INSERT INTO dropped_table VALUES (1, 'a');
SELECT interlock.versioned_update('dropped_table', 1, version, '{"body": "b"}') FROM dropped_table;
DROP TABLE dropped_table;
TABLE kept;

-- A table that was altered is read again, at its next use.
CREATE TEMP TABLE dropped_table (id int PRIMARY KEY, body text);
SELECT interlock.enable_versioning('dropped_table');
INSERT INTO dropped_table VALUES (1, 'a');
BEGIN;
SELECT interlock.versioned_update('dropped_table', 1, version, '{"body": "b"}') FROM dropped_table;
ALTER TABLE dropped_table ADD COLUMN note text;
SELECT interlock.versioned_update('dropped_table', 1, version, '{"note": "c"}') FROM dropped_table;
ROLLBACK;
SELECT interlock.versioned_update('dropped_table', 1, version, '{"note": "c"}') FROM dropped_table;
SELECT interlock.versioned_update('dropped_table', 1, version, '{"body": "c"}') FROM dropped_table;
TABLE dropped_table;

DROP TABLE dropped_table;
DROP VIEW kept;
