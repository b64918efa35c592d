-- Shared memory in use

CREATE FUNCTION interlock_internal.list_usage(
    OUT what text, OUT database text, OUT role text, OUT used bigint, OUT "of" bigint) RETURNS SETOF record
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock_internal.list_usage() IS 'The rows of the view usage.';

CREATE VIEW interlock.usage AS SELECT * FROM interlock_internal.list_usage();
GRANT SELECT ON interlock.usage TO PUBLIC;
COMMENT ON VIEW interlock.usage IS
'What is used of everything in shared memory that has a fixed size, on the whole server: in all (no role, no database), by role (of: the
share of the role, null for superusers) and by role and database. Totals are shown to everybody, the lines of a role to its members, and
all of them to pg_monitor.';
