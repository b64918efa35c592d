-- Key locks

CREATE TABLE interlock_internal.prepared_key (
    space smallint NOT NULL,
    hash bigint NOT NULL,
    name text NOT NULL,
    role oid NOT NULL);
COMMENT ON TABLE interlock_internal.prepared_key IS
'The names of keys that prepared transactions hold, for the view key_locks: rows that such a transaction has inserted and deleted, which
no snapshot shows.';

CREATE FUNCTION interlock.lock_key(
    key text, mode text = 'exclusive', wait interlock.seconds = NULL, scope text = 'transaction') RETURNS void
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.lock_key(text, text, interlock.seconds, text) IS
'Locks a name. Modes: shared, update, exclusive, intent_shared, intent_exclusive. Scopes: transaction (until the transaction or
savepoint ends), session (until unlock_key). wait: null as lock_timeout says, zero not at all. A key with / is a path: its
ancestors get the intent mode. Errors: 55P03 not available in time, with the other holders and waiters in DETAIL; 40P01 deadlock; 53400 too many keys.';

CREATE FUNCTION interlock.lock_keys(
    keys text[], mode text = 'exclusive', wait interlock.seconds = NULL, scope text = 'transaction') RETURNS void
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.lock_keys(text[], text, interlock.seconds, text) IS
'As lock_key, for several names: all or none, in one order whatever order they are given in, so that two calls never deadlock;
wait is for all of them together.';

CREATE FUNCTION interlock.try_lock_key(
    key text, mode text = 'exclusive', wait interlock.seconds = '0', scope text = 'transaction') RETURNS boolean
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.try_lock_key(text, text, interlock.seconds, text) IS
'As lock_key, but returns false when the name is not available in time.';

CREATE FUNCTION interlock.try_lock_keys(
    keys text[], mode text = 'exclusive', wait interlock.seconds = '0', scope text = 'transaction') RETURNS boolean
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.try_lock_keys(text[], text, interlock.seconds, text) IS
'As lock_keys, but returns false and holds none of them when they are not all available in time.';

CREATE FUNCTION interlock.unlock_key(key text, mode text = 'exclusive') RETURNS boolean
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.unlock_key(text, text) IS
'Releases a session lock once; false when the session did not hold it in that mode. A lock that was acquired several times needs as
many releases. Transaction locks end with their transaction.';

CREATE FUNCTION interlock.unlock_keys(keys text[], mode text = 'exclusive') RETURNS boolean
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.unlock_keys(text[], text) IS
'As unlock_key, for several names, each once; false when the session did not hold all of them.';

CREATE FUNCTION interlock_internal.list_key_locks(
    OUT key text, OUT kind text, OUT mode text, OUT pid integer, OUT waiting boolean, OUT waiting_since timestamptz,
    OUT hash bigint) RETURNS SETOF record
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock_internal.list_key_locks() IS 'The rows of the view key_locks.';

CREATE VIEW interlock.key_locks AS SELECT * FROM interlock_internal.list_key_locks();
GRANT SELECT ON interlock.key_locks TO PUBLIC;
COMMENT ON VIEW interlock.key_locks IS
'Holders and waiters of the key locks and application locks of this database. key is null where the name is not known: of
sessions without preload. The pid is null for prepared transactions. Keys of idempotency and their hashes are shown to the role of
the session, or of the prepared transaction, and to members of pg_read_all_stats.';

-- Application locks: the names of arguments are those of SQL Server, in lower case.

CREATE FUNCTION interlock.getapplock(
    resource text, lockmode text, lockowner text = 'Transaction', locktimeout integer = -1, dbprincipal text = 'public')
    RETURNS integer
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.getapplock(text, text, text, integer, text) IS
'SQL Server''s sp_getapplock. lockmode: Shared, Update, IntentShared, IntentExclusive, Exclusive. lockowner: Transaction, Session.
locktimeout: milliseconds, -1 for ever. dbprincipal: public, or a role that the caller is a member of; each role has resources of its own.
Returns 0 granted, 1 granted after waiting, -1 timeout, -2 canceled, -3 deadlock victim, -999 bad call; the transaction continues after each.
Errors: 55000 out of order, with interlock.lock_order = error.';

CREATE FUNCTION interlock.releaseapplock(
    resource text, lockowner text = 'Transaction', dbprincipal text = 'public') RETURNS integer
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.releaseapplock(text, text, text) IS
'SQL Server''s sp_releaseapplock: 0 released, -999 not held by that owner. A lock that was acquired several times is free after
as many releases, with all its modes.';

CREATE FUNCTION interlock.applock_mode(dbprincipal text, resource text, lockowner text = 'Transaction') RETURNS text
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.applock_mode(text, text, text) IS
'SQL Server''s APPLOCK_MODE: the mode that this owner of the session holds: NoLock, IntentShared, IntentExclusive, Shared, Update, Exclusive,
SharedIntentExclusive or UpdateIntentExclusive. Errors: 22004, 22023, 42704 no such role, 42501 not a member of it.';

CREATE FUNCTION interlock.applock_test(
    dbprincipal text, resource text, lockmode text, lockowner text = 'Transaction') RETURNS integer
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.applock_test(text, text, text, text) IS
'SQL Server''s APPLOCK_TEST: 1 when getapplock would be granted at once, else 0. It locks nothing. Errors: 22004, 22023, 42704 no such
role, 42501 not a member of it.';

-- Row locks

CREATE FUNCTION interlock.select_for_update(
    rel regclass, keys text, strength text = 'update', wait interlock.seconds = NULL, skip_locked boolean = false, OUT key jsonb)
    RETURNS SETOF jsonb
    LANGUAGE c AS 'MODULE_PATHNAME';
CREATE FUNCTION interlock.select_for_update(
    rel regclass, keys "any", strength text = 'update', wait interlock.seconds = NULL, skip_locked boolean = false, OUT key jsonb)
    RETURNS SETOF jsonb
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.select_for_update(regclass, text, text, interlock.seconds, boolean) IS
'SELECT ... FOR UPDATE in the order of the keys, whatever order they are given in, so that two calls never deadlock; returns the
keys of the rows that are there. keys: an array of the primary key''s type ({1,2}), or a JSON array of values and of objects, as versioned_update takes them.
strength: update, no_key_update, share, key_share. wait: for all rows together; null as lock_timeout says, zero not at all.
skip_locked: pass over rows that are locked. Needs the privileges of the SELECT. Errors: 55P03 not available in time, 55000 no key,
40001 under REPEATABLE READ and above when a row changed after the snapshot.';
COMMENT ON FUNCTION interlock.select_for_update(regclass, "any", text, interlock.seconds, boolean) IS
'As select_for_update(regclass, text, text, interlock.seconds, boolean), for an array of any type, or a jsonb array.';
