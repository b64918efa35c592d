-- Sweeper

CREATE FUNCTION interlock_internal.sweeper_status(
    OUT database text, OUT state text, OUT runs bigint, OUT released bigint, OUT failed bigint, OUT last_run timestamptz,
    OUT last_error text, OUT next_deadline timestamptz, OUT lag interval, OUT max_lag interval) RETURNS SETOF record
    LANGUAGE c AS 'MODULE_PATHNAME';
REVOKE EXECUTE ON FUNCTION interlock_internal.sweeper_status() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION interlock_internal.sweeper_status() TO pg_monitor;
COMMENT ON FUNCTION interlock_internal.sweeper_status() IS
'The rows of the view sweeper. Errors: 55000 when pg_interlock is not in shared_preload_libraries.';

CREATE VIEW interlock.sweeper AS SELECT * FROM interlock_internal.sweeper_status();
GRANT SELECT ON interlock.sweeper TO pg_monitor;
COMMENT ON VIEW interlock.sweeper IS
'State of the sweeper in each database: off, idle, waiting for next_deadline, due or running; markers released and failed releases
since the server started; the last error, null when the last run succeeded; the lag of the last run and the longest lag.';

CREATE FUNCTION interlock_internal.wake_sweeper() RETURNS void
    LANGUAGE c AS 'MODULE_PATHNAME';
REVOKE EXECUTE ON FUNCTION interlock_internal.wake_sweeper() FROM PUBLIC;
COMMENT ON FUNCTION interlock_internal.wake_sweeper() IS
'Wakes the sweeper for this database when the transaction commits; without preload it does nothing.';
SELECT interlock_internal.wake_sweeper();
