-- Counters of conflicts and waits

CREATE FUNCTION interlock_internal.list_contention(
    OUT database name, OUT rel regclass, OUT kind text, OUT key_class text, OUT calls bigint, OUT conflicts bigint, OUT refusals bigint,
    OUT blind_updates bigint, OUT waits bigint, OUT wait_time interval, OUT timeouts bigint, OUT expiries bigint, OUT takeovers bigint,
    OUT replays bigint, OUT mismatches bigint, OUT retries bigint, OUT since timestamptz, OUT renewals bigint, OUT late_renewals bigint)
    RETURNS SETOF record
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock_internal.list_contention() IS 'The rows of the view contention.';

CREATE VIEW interlock.contention AS SELECT * FROM interlock_internal.list_contention();
GRANT SELECT ON interlock.contention TO PUBLIC;
COMMENT ON VIEW interlock.contention IS
'How often writers collide, by table and mechanism, and by class of keys: the text before the first : or / of a lease or key lock, the scope
of an idempotency key. It counts since the last reset_contention(), over clean restarts, and also what is rolled back. The caller sees tables
that it may SELECT, and the lines of roles of which it is a member. pg_monitor sees the whole server. There are no lines without preload.';

CREATE FUNCTION interlock.reset_contention() RETURNS void
    LANGUAGE c AS 'MODULE_PATHNAME';
REVOKE EXECUTE ON FUNCTION interlock.reset_contention() FROM PUBLIC;
COMMENT ON FUNCTION interlock.reset_contention() IS
'Sets the counters of the view contention to zero, for all databases of the server. Needs a grant of EXECUTE.';
