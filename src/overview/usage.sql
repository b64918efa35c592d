-- Shared memory in use

CREATE FUNCTION interlock_internal.list_usage(
    OUT what text, OUT database text, OUT role text, OUT used bigint, OUT "of" bigint) RETURNS SETOF record
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock_internal.list_usage() IS 'The rows of the view usage.';

CREATE VIEW interlock.usage AS SELECT * FROM interlock_internal.list_usage();
GRANT SELECT ON interlock.usage TO PUBLIC;
COMMENT ON VIEW interlock.usage IS
'How much of each fixed-size resource in shared memory is used on the whole server: in total (no role, no database), by role, and by role
and database. of: the limit; for a role its share, null for superusers. All users see the totals. Members of a role see its lines, and
pg_monitor sees all lines.';
