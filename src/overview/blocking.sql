-- Who waits for whom

CREATE FUNCTION interlock_internal.list_blocking(
    OUT pid integer, OUT kind text, OUT name text, OUT holder text, OUT rel regclass, OUT since timestamptz,
    OUT blocked_by integer, OUT blocked_by_holder text, OUT blocked_by_role text, OUT blocked_until timestamptz,
    OUT blocked_by_transaction xid, OUT blocked_by_what text,
    OUT head_pid integer, OUT head_holder text, OUT head_role text, OUT head_until timestamptz, OUT head_transaction xid, OUT head_what text,
    OUT depth integer, OUT is_circle boolean)
    RETURNS SETOF record
    LANGUAGE c ROWS 100 AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock_internal.list_blocking() IS
'For the view blocking: waits and the ends of their chains, of this server; leases and claims of this database.';

CREATE VIEW interlock.blocking AS
WITH activity AS MATERIALIZED (
    SELECT a.pid, a.datid, a.usename, a.application_name, a.state, a.query FROM pg_stat_activity a)
SELECT b.pid, w.usename::text AS role, COALESCE(b.holder, NULLIF(w.application_name, '')) AS holder, b.kind,
       CASE WHEN b.kind = 'idempotency_claim' THEN regexp_replace(b.name, E'\n', ':') ELSE b.name END AS name,
       b.rel, b.since, b.blocked_by,
       COALESCE(b.blocked_by_holder, NULLIF(f.application_name, ''),
                'prepared transaction "' || fp.gid || '"') AS blocked_by_holder,
       COALESCE(b.blocked_by_role, f.usename::text, fp.owner::text) AS blocked_by_role, b.blocked_until,
       b.head_pid,
       COALESCE(b.head_holder, NULLIF(h.application_name, ''),
                'prepared transaction "' || hp.gid || '"') AS head_holder,
       COALESCE(b.head_role, h.usename::text, hp.owner::text) AS head_role,
       CASE WHEN b.is_circle THEN 'circle'
            WHEN b.head_pid IS NOT NULL THEN h.state || COALESCE(': ' || NULLIF(h.query, ''), '')
            WHEN b.head_transaction IS NOT NULL THEN format('prepared transaction "%s" of %s', hp.gid, hp.prepared)
            WHEN b.head_until IS NOT NULL THEN format('%s until %s', b.head_what, b.head_until)
            ELSE b.head_what END AS head_activity,
       b.depth, b.is_circle
  FROM interlock_internal.list_blocking() b
  JOIN activity w ON w.pid = b.pid
   AND w.datid = (SELECT d.oid FROM pg_database d WHERE d.datname = current_database())
  LEFT JOIN activity f ON f.pid = b.blocked_by
  LEFT JOIN activity h ON h.pid = b.head_pid
  LEFT JOIN pg_prepared_xacts fp ON fp.transaction = b.blocked_by_transaction
  LEFT JOIN pg_prepared_xacts hp ON hp.transaction = b.head_transaction;
GRANT SELECT ON interlock.blocking TO PUBLIC;
COMMENT ON VIEW interlock.blocking IS
'A line for each waiting session of this database and each blocker, at most eight for a session. It covers leases and their pins, key locks, claims,
rows and all other locks of the server. kind and name: what the session waits for. blocked_by: the process that holds it, otherwise the process that waits
before it; null: a lease, claim or prepared transaction. head_pid and head_activity: the process at the end of the chain, which does not wait, and what it does.
is_circle: the chain has no end. Texts of statements are shown as in pg_stat_activity.';
