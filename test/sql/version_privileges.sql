-- What a role without privileges can hold up, and what a caller's schemas can get into
\set VERBOSITY terse
\set SHOW_CONTEXT never
CREATE TABLE secret (id int PRIMARY KEY, a int, status text);
SELECT interlock.enable_versioning('secret'), interlock.define_transitions('secret', 'status', '{"x": ["y"]}'), interlock.enable_marker('secret');
INSERT INTO secret VALUES (1, 1, 'x');
CREATE ROLE interlock_nobody;
CREATE VIEW locks_held AS SELECT mode FROM pg_locks WHERE pid = pg_backend_pid() AND relation = 'secret'::regclass;
GRANT SELECT ON locks_held TO interlock_nobody;

-- refused before anything is locked, also where there would be nothing to do
SET ROLE interlock_nobody;
SELECT interlock.versioned_update_many('secret', '[]');
SELECT interlock.versioned_update('secret', 1, 1, '{"a": 2}');
SELECT interlock.try_versioned_delete('secret', 1, 1);
SELECT interlock.update_with_retry('secret', 1, 'jsonb_concat(jsonb, jsonb)');
SELECT interlock.try_transition('secret', 1, 'x', 'y');
SELECT interlock.lock_rows('secret', '{}'::int[]);
SELECT interlock.lock_row('secret', 1, 'nobody');
SELECT interlock.row_lock('secret', 1);
RESET ROLE;
-- a reader reads
GRANT SELECT ON secret TO interlock_nobody;
SET ROLE interlock_nobody;
SELECT interlock.versioned_update_many('secret', '[]');
SELECT interlock.lock_rows('secret', '{}'::int[]);
BEGIN;
SELECT interlock.row_lock('secret', 1);
SELECT * FROM locks_held;
COMMIT;
RESET ROLE;
-- a right on one column, or to delete, will do
REVOKE SELECT ON secret FROM interlock_nobody;
GRANT UPDATE (a) ON secret TO interlock_nobody;
SET ROLE interlock_nobody;
BEGIN;
SELECT interlock.versioned_update_many('secret', '[]');
SELECT * FROM locks_held;
COMMIT;
RESET ROLE;
REVOKE UPDATE (a) ON secret FROM interlock_nobody;
GRANT SELECT, DELETE ON secret TO interlock_nobody;
SET ROLE interlock_nobody;
SELECT outcome FROM interlock.try_versioned_delete('secret', 1, 1);
RESET ROLE;
-- an owner who has taken the rights from himself configures still
ALTER TABLE secret OWNER TO interlock_nobody;
REVOKE ALL ON secret FROM interlock_nobody;
GRANT CREATE ON SCHEMA public TO interlock_nobody;
SET ROLE interlock_nobody;
SELECT interlock.versioned_update_many('secret', '[]');
SELECT interlock.disable_versioning('secret');
SELECT interlock.drop_transitions('secret', 'status');
RESET ROLE;
DROP VIEW locks_held;
DROP TABLE secret;
REVOKE CREATE ON SCHEMA public FROM interlock_nobody;
DROP ROLE interlock_nobody;
