-- Everything that is held

CREATE FUNCTION interlock_internal.list_held_leases(
    permits boolean, OUT name text, OUT holder text, OUT role text, OUT pid integer, OUT since timestamptz,
    OUT expires_at timestamptz, OUT waiters bigint, OUT mode text)
    RETURNS SETOF record
    LANGUAGE c ROWS 1000 AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock_internal.list_held_leases(boolean) IS
'For the view held: the permits of this database, or all other leases.';

CREATE FUNCTION interlock_internal.list_held_keys(
    kind text, OUT name text, OUT mode text, OUT pid integer, OUT transaction xid, OUT waiters bigint)
    RETURNS SETOF record
    LANGUAGE c ROWS 1000 AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock_internal.list_held_keys(text) IS
'For the view held: the key locks of this database of one kind (key, applock, idempotency).';

CREATE FUNCTION interlock_internal.list_held_claims(
    OUT name text, OUT rel regclass, OUT since timestamptz, OUT expires_at timestamptz, OUT waiters bigint, OUT note text)
    RETURNS SETOF record
    LANGUAGE c ROWS 1000 AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock_internal.list_held_claims() IS
'For the view held: committed claims before their deadline, of scopes that the reader may use.';

CREATE FUNCTION interlock_internal.list_held_markers(
    OUT rel regclass, OUT name text, OUT holder text, OUT since timestamptz, OUT expires_at timestamptz, OUT note text)
    RETURNS SETOF record
    LANGUAGE c ROWS 1000 AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock_internal.list_held_markers() IS
'For the view held: live markers, and a line for each table that could not be looked at.';

CREATE VIEW interlock.held AS
SELECT 'lease'::text AS kind, l.name, NULL::regclass AS rel, l.holder, l.role, l.pid, l.since, l.expires_at, l.waiters,
       l.mode, NULL::text AS note
  FROM interlock_internal.list_held_leases(false) l
 UNION ALL
SELECT 'permit', l.name, NULL, l.holder, l.role, l.pid, l.since, l.expires_at, l.waiters, l.mode, NULL
  FROM interlock_internal.list_held_leases(true) l
 UNION ALL
SELECT 'key_lock', k.name, NULL, COALESCE(NULLIF(a.application_name, ''), 'prepared transaction "' || p.gid || '"'),
       COALESCE(a.usename, p.owner)::text, k.pid, COALESCE(a.xact_start, p.prepared), NULL, k.waiters, k.mode, NULL
  FROM interlock_internal.list_held_keys('key') k
  LEFT JOIN pg_stat_activity a ON a.pid = k.pid
  LEFT JOIN pg_prepared_xacts p ON p.transaction = k.transaction
 UNION ALL
SELECT 'applock', k.name, NULL, COALESCE(NULLIF(a.application_name, ''), 'prepared transaction "' || p.gid || '"'),
       COALESCE(a.usename, p.owner)::text, k.pid, COALESCE(a.xact_start, p.prepared), NULL, k.waiters, k.mode, NULL
  FROM interlock_internal.list_held_keys('applock') k
  LEFT JOIN pg_stat_activity a ON a.pid = k.pid
  LEFT JOIN pg_prepared_xacts p ON p.transaction = k.transaction
 UNION ALL
SELECT 'idempotency_claim', regexp_replace(k.name, E'\n', ':'), NULL,
       COALESCE(NULLIF(a.application_name, ''), 'prepared transaction "' || p.gid || '"'),
       COALESCE(a.usename, p.owner)::text, k.pid, COALESCE(a.xact_start, p.prepared), NULL, k.waiters, 'not committed', NULL
  FROM interlock_internal.list_held_keys('idempotency') k
  LEFT JOIN pg_stat_activity a ON a.pid = k.pid
  LEFT JOIN pg_prepared_xacts p ON p.transaction = k.transaction
 UNION ALL
SELECT 'idempotency_claim', c.name, c.rel, NULL, NULL, NULL, c.since, c.expires_at, c.waiters,
       CASE WHEN c.note IS NULL THEN 'pending' END, c.note
  FROM interlock_internal.list_held_claims() c
 UNION ALL
SELECT 'row_marker', m.name, m.rel, m.holder, NULL, NULL, m.since, m.expires_at, CASE WHEN m.note IS NULL THEN 0 END, NULL, m.note
  FROM interlock_internal.list_held_markers() m
 UNION ALL
SELECT 'reservation', r.key COLLATE "default", r.rel, r.holder, r.role::text, NULL, r.reserved_at, r.expires_at, 0, NULL, NULL
  FROM interlock.reservations r
 WHERE NOT r.expired;
GRANT SELECT ON interlock.held TO PUBLIC;
COMMENT ON VIEW interlock.held IS
'Every live hold, by kind: lease, permit, key_lock, applock, idempotency_claim, row_marker, reservation. Only the kinds asked for are read. name: the key;
of a claim scope:key, of a marker or a reservation the key of the row in table rel. since: of locks, the start of the transaction. expires_at: null: with the
transaction or session. waiters: sessions that it keeps waiting. note: why a table was not looked at. It waits for no lock. Markers and reservations are
shown to those who may read the row, claims to those who may use the scope; pg_read_all_stats sees all, but keys of rows.';
