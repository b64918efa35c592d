\echo Use "ALTER EXTENSION pg_interlock UPDATE TO '0.10.0'" to load this file. \quit

-- A preloaded library stays until the server restarts.
SELECT interlock_internal.require_library('0.10.0');

-- Versions.

-- Transitions.

-- Markers.

-- Leases.

DROP FUNCTION interlock.acquire_leases(text[], interval, interval, text);
DROP FUNCTION interlock.acquire_leases(text[], interlock.seconds, interlock.seconds, text);
CREATE FUNCTION interlock.acquire_leases(
    keys text[], ttl interval = '30 s', wait interval = '0', holder text = NULL,
    mode text = 'exclusive', bind text = 'ttl',
    OUT outcome text, OUT tokens bigint[], OUT expires_at timestamptz, OUT blocked_by text, OUT holder text)
    LANGUAGE c AS 'MODULE_PATHNAME';
CREATE FUNCTION interlock.acquire_leases(
    keys text[], ttl interlock.seconds, wait interlock.seconds = '0', holder text = NULL,
    mode text = 'exclusive', bind text = 'ttl',
    OUT outcome text, OUT tokens bigint[], OUT expires_at timestamptz, OUT blocked_by text, OUT holder text)
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.acquire_leases(text[], interval, interval, text, text, text) IS
'Acquires leases on all the keys or on none; tokens are in the order of keys. A key that is given twice has one lease, and its token twice. If
held: blocked_by is the key that was not available, holder its holder. Calls that wait acquire their keys in one order, so that two such calls never
deadlock. mode and bind: as of acquire_lease. Errors: as acquire_lease; 22023 when one key is below another.';
COMMENT ON FUNCTION interlock.acquire_leases(text[], interlock.seconds, interlock.seconds, text, text, text) IS
'As acquire_leases(text[], interval, interval, text, text, text), for times as numbers of seconds.';

DROP FUNCTION interlock.release_lease(text, bigint);
CREATE FUNCTION interlock.release_lease(key text, token bigint = NULL, holder text = NULL) RETURNS boolean
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.release_lease(text, bigint, text) IS
'Releases the lease, and returns whether it was held. holder in place of token: all leases with that label on exactly this key. If open
transactions have asserted it, it is free for others when they have ended. For members of the role that acquired the lease. Errors: 22004, 22023,
25006, 55000.';

-- Views of users on interlock.leases stay.
ALTER FUNCTION interlock_internal.list_leases() RENAME TO list_leases_of_before;
CREATE FUNCTION interlock_internal.list_leases(
    OUT key text, OUT mode text, OUT holder text, OUT token bigint, OUT since timestamptz, OUT expires_at timestamptz,
    OUT ttl interval, OUT pid integer, OUT pins integer, OUT durable boolean, OUT pinned_by integer[], OUT pinned_since timestamptz,
    OUT role text)
    RETURNS SETOF record
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock_internal.list_leases() IS 'The rows of the view leases.';
CREATE OR REPLACE VIEW interlock.leases AS SELECT * FROM interlock_internal.list_leases();
DROP FUNCTION interlock_internal.list_leases_of_before();
COMMENT ON VIEW interlock.leases IS
'The leases of this database. token is shown to members of the role that acquired it; pid is the session it is bound to;
pins counts open transactions that have asserted it, pinned_by are their processes and pinned_since the start of the oldest; durable is
true for a lease with a record of its own; role has acquired it.';

CREATE FUNCTION interlock.lease_of(
    key text, OUT mode text, OUT holder text, OUT token bigint, OUT role text, OUT pid integer, OUT since timestamptz,
    OUT expires_at timestamptz, OUT blocks_key text, OUT pinned_by integer[], OUT pinned_since timestamptz)
    RETURNS SETOF record
    LANGUAGE c ROWS 1 AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.lease_of(text) IS
'The lease that is in the way of an exclusive one on the key, no row if there is none: at the key, else above it, else below it; blocks_key is its
key. The other columns are those of the view leases. It costs the same however many leases there are. Errors: 22004, 22023, 25006,
55000.';

-- Key locks.

CREATE TABLE interlock_internal.prepared_key (
    space smallint NOT NULL,
    hash bigint NOT NULL,
    name text NOT NULL,
    role oid NOT NULL);
COMMENT ON TABLE interlock_internal.prepared_key IS
'The names of keys that prepared transactions hold, for the view key_locks: rows that such a transaction has inserted and deleted, which
no snapshot shows.';

COMMENT ON VIEW interlock.key_locks IS
'Holders and waiters of the key locks and application locks of this database. key is null where the name is not known: of
sessions without preload. The pid is null for prepared transactions. Keys of idempotency are shown to the role of the session, or of the
prepared transaction, and to members of pg_read_all_stats.';

COMMENT ON FUNCTION interlock.getapplock(text, text, text, integer) IS
'SQL Server''s sp_getapplock. lock_mode: Shared, Update, IntentShared, IntentExclusive, Exclusive. lock_owner: Transaction, Session.
lock_timeout: milliseconds, -1 for ever. Returns 0 granted, 1 granted after waiting, -1 timeout, -2 canceled, -3 deadlock
victim, -999 bad call; the transaction goes on after each. Errors: 55000 out of order, with interlock.lock_order = error.';

-- Idempotency.

-- Ownership and history.

-- What spans concepts.
