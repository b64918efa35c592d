\echo Use "ALTER EXTENSION pg_interlock UPDATE TO '0.10.0'" to load this file. \quit

-- A preloaded library stays until the server restarts.
SELECT interlock_internal.require_library('0.10.0');

-- Versions.

-- Transitions.

-- Markers.

-- Children.

CREATE FUNCTION interlock_internal.changes_parent(VARIADIC "any") RETURNS boolean
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock_internal.changes_parent("any") IS
'In WHEN of the triggers that guard_children creates: true for the first change of children of a parent in this transaction or
savepoint. Refuses the change while the parent is being edited by another holder (IL004). Only such a trigger can call it (39P01).';

CREATE FUNCTION interlock_internal.children_trigger() RETURNS trigger
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock_internal.children_trigger() IS
'Moves the versions of the parents whose children have changed. Created by guard_children, three for each foreign key, which are
deferred to the end of the transaction.';

CREATE FUNCTION interlock.guard_children(child regclass, parent regclass, foreign_key name[] = NULL) RETURNS void
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.guard_children(regclass, regclass, name[]) IS
'Makes rows of child belong to the row of parent that their foreign key names: a change of them moves its version, once, at the end
of the transaction, and is refused while it is being edited (IL004). For the owner of child, with TRIGGER on parent.
foreign_key: the columns, where child has several foreign keys to parent.
Writers of child need what UPDATE of the version of parent needs: SELECT of its key and its version, UPDATE of its version.
Errors: 42501 not the owner, or no TRIGGER on parent, 55000 parent has neither versions nor markers, its version is in a unique
index, its key can be null, or tables in a circle, 22023 no such foreign key, or several and none named, 42809 not a table.';

CREATE FUNCTION interlock.unguard_children(child regclass, parent regclass) RETURNS void
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.unguard_children(regclass, regclass) IS
'Ends what guard_children began, for all foreign keys from child to parent. For the owner of child.
Errors: 42501 not the owner, 55000 not guarded.';

-- Leases.

DROP FUNCTION interlock.acquire_lease(text, interval, interval, text, text, text);
DROP FUNCTION interlock.acquire_lease(text, interlock.seconds, interlock.seconds, text, text, text);
CREATE FUNCTION interlock.acquire_lease(
    key text, ttl interval = '30 s', wait interval = '0', holder text = NULL, mode text = 'exclusive', bind text = 'ttl',
    resume boolean = false, at_least interval = NULL, notify boolean = false,
    OUT outcome text, OUT token bigint, OUT expires_at timestamptz, OUT holder text, OUT ticket bigint)
    LANGUAGE c AS 'MODULE_PATHNAME';
CREATE FUNCTION interlock.acquire_lease(
    key text, ttl interlock.seconds, wait interlock.seconds = '0', holder text = NULL, mode text = 'exclusive', bind text = 'ttl',
    resume boolean = false, at_least interlock.seconds = NULL, notify boolean = false,
    OUT outcome text, OUT token bigint, OUT expires_at timestamptz, OUT holder text, OUT ticket bigint)
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.acquire_lease(text, interval, interval, text, text, text, boolean, interval, boolean) IS
'Acquires a lease on the key, a path if it has slashes, for ttl. outcome: acquired (with the token that proves it), resumed, held (with
holder and expires_at of the lease in the way), recovering (after a crash, until expires_at). wait: how long to wait at most
(null: as lock_timeout says), first come, first served. holder is a label. mode: exclusive, shared. bind: ttl, or session: no time to live, it
ends with the session. resume: if the same role has it under the same holder, in the same mode, it is renewed, and the answer has its token.
at_least: how long it stays in the way even when it is released, at most ttl. notify: a caller that is refused gets a ticket, and a notification
on channel interlock_lease with the number of the ticket when it should ask again.
Takes effect at once, whether or not the transaction commits. Errors: 22004, 22023, 25006 on a standby, 53400 too many, 55000 not preloaded.';
COMMENT ON FUNCTION interlock.acquire_lease(text, interlock.seconds, interlock.seconds, text, text, text, boolean, interlock.seconds, boolean) IS
'As acquire_lease(text, interval, interval, text, text, text, boolean, interval, boolean), for times as numbers of seconds.';

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

DROP FUNCTION interlock.renew_lease(text, bigint, interval);
DROP FUNCTION interlock.renew_lease(text, bigint, interlock.seconds);
CREATE FUNCTION interlock.renew_lease(key text, token bigint, ttl interval = NULL, holder text = NULL) RETURNS timestamptz
    LANGUAGE c AS 'MODULE_PATHNAME';
CREATE FUNCTION interlock.renew_lease(key text, token bigint, ttl interlock.seconds, holder text = NULL) RETURNS timestamptz
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.renew_lease(text, bigint, interval, text) IS
'Extends the lease to ttl from now (null: its ttl), and returns its expiry; null when it is lost. It never shortens a lease. One that has
expired and that nobody acquired since is renewed. After a crash it reclaims the lease (null: for 30 s), with the holder as its label. For
members of the role that acquired the lease. Errors: 22004, 22023, 25006, 55000.';
COMMENT ON FUNCTION interlock.renew_lease(text, bigint, interlock.seconds, text) IS
'As renew_lease(text, bigint, interval, text), for times as numbers of seconds.';

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
    OUT role text, OUT released boolean)
    RETURNS SETOF record
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock_internal.list_leases() IS 'The rows of the view leases.';
CREATE OR REPLACE VIEW interlock.leases AS SELECT * FROM interlock_internal.list_leases();
DROP FUNCTION interlock_internal.list_leases_of_before();
COMMENT ON VIEW interlock.leases IS
'The leases of this database. token is shown to members of the role that acquired it; pid is the session it is bound to;
pins counts open transactions that have asserted it, pinned_by are their processes and pinned_since the start of the oldest; durable is
true for a lease with a record of its own; role has acquired it; released is true for one that stays until its at_least is over.';

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

ALTER TABLE interlock.idempotency_scope ADD COLUMN max_attempts integer,
    ADD CONSTRAINT idempotency_scope_max_attempts CHECK (max_attempts OPERATOR(pg_catalog.>) 0);

-- Nullable and without a default: existing rows stay as they are.
ALTER TABLE interlock.idempotency ADD COLUMN body bytea, ADD COLUMN ttl interval, ADD COLUMN stale_after interval;
COMMENT ON TABLE interlock.idempotency IS
'The keys: pending until the deadline, then completed or failed until they expire. response_omitted: it was larger than the
scope allows. ttl, stale_after: of this claim, null: the scope''s. Callers of the functions need a grant of the scope (grant_idempotency_scope) and no privilege on this table. The functions
run with the owner''s privileges and bypass row security.';

CREATE TABLE interlock.idempotency_audit (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    forgotten_at timestamptz NOT NULL DEFAULT pg_catalog.clock_timestamp(),
    forgotten_by text NOT NULL,
    scope text NOT NULL,
    key text NOT NULL,
    status text NOT NULL,
    attempt integer NOT NULL,
    reason text NOT NULL);
COMMENT ON TABLE interlock.idempotency_audit IS 'Every use of idempotency_forget: time, user, key, what it was, reason.';
COMMENT ON SEQUENCE interlock.idempotency_audit_id_seq IS 'Numbers the rows of idempotency_audit.';
SELECT pg_catalog.pg_extension_config_dump('interlock.idempotency_audit', '');
SELECT pg_catalog.pg_extension_config_dump('interlock.idempotency_audit_id_seq', '');

DROP FUNCTION interlock.define_idempotency_scope(text, text, interval, interval, boolean, integer);
CREATE FUNCTION interlock.define_idempotency_scope(
    scope text, model text = 'api', ttl interval = '24 h', stale_after interval = '1 min',
    replay_failures boolean = false, max_response_bytes integer = 65536, max_attempts integer = NULL) RETURNS void
    LANGUAGE c AS 'MODULE_PATHNAME';
REVOKE EXECUTE ON FUNCTION interlock.define_idempotency_scope(text, text, interval, interval, boolean, integer, integer) FROM PUBLIC;
COMMENT ON FUNCTION interlock.define_idempotency_scope(text, text, interval, interval, boolean, integer, integer) IS
'Defines how long keys of a scope live: ttl after they ended, and stale_after without a sign of life until another claim may take over.
model: api (the response is replayed) or job (checkpoints, which a takeover gets). replay_failures: retryable failures, too.
A larger response, its body included, is not kept; its key is never run again all the same. max_attempts: so many claims of one key,
null: any number. A scope that is not defined has these defaults.
Only superusers may call it until EXECUTE is granted. Errors: 22004, 22023.';

DROP FUNCTION interlock.idempotency_claim(text, text, jsonb, interval);
CREATE TYPE interlock.idempotency_claim_result AS (
    outcome text, token bigint, attempt integer, response jsonb, result_id text, checkpoint text, state jsonb,
    body bytea, has_response boolean, deadline timestamptz);
COMMENT ON TYPE interlock.idempotency_claim_result IS
'What idempotency_claim returns: the outcome, of a claim its token and progress, of a key that has ended the answer.';

CREATE FUNCTION interlock.idempotency_claim(
    scope text, key text, request jsonb = NULL, wait interval = '0', request_hash bytea = NULL,
    ttl interval = NULL, stale_after interval = NULL, state jsonb = NULL) RETURNS interlock.idempotency_claim_result
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.idempotency_claim(text, text, jsonb, interval, bytea, interval, interval, jsonb) IS
'Claims a key, or returns why not: acquired (with the token), replay (completed, with its response and body), failed, exhausted (tried
as often as the scope allows), in_progress (claimed by another; wait: how long to wait for its end, null: as lock_timeout says),
mismatch (the key was used with another request; equal JSON is equal; request_hash: the hash of it in its place). ttl, stale_after: of
this claim, in place of the scope''s; ttl not longer. state: of a job that begins. Takes over a claim without a sign of life for
stale_after. has_response: that there was one, also if it was too large to keep. deadline: of the claim, or of the one in the way, null
while that is not committed. This and the functions below need a grant of the scope. Errors: 42501 the scope is not granted to a role of
the current user; 40001 under REPEATABLE READ and above when the key changed after the snapshot; 22004, 22023.';

DROP FUNCTION interlock.idempotency_complete(text, text, bigint, jsonb, text);
CREATE FUNCTION interlock.idempotency_complete(
    scope text, key text, token bigint, response jsonb = NULL, result_id text = NULL, body bytea = NULL) RETURNS boolean
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.idempotency_complete(text, text, bigint, jsonb, text, bytea) IS
'Marks the claim as completed, and returns whether response and body are kept: false when they are larger than the scope allows. A
second call with the same token and answer does nothing. Errors: IL008 the claim was taken over or has ended.';

CREATE FUNCTION interlock.idempotency_release(scope text, key text, token bigint) RETURNS boolean
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.idempotency_release(text, text, bigint) IS
'Gives a claim back whose work certainly had no effect: the key is as before the claim, free for any request if this was the first
attempt, else for the next attempt, as this one does not count. False when the claim is lost: taken over, or ended.';

CREATE FUNCTION interlock.idempotency_forget(scope text, key text, reason text) RETURNS boolean
    LANGUAGE c AS 'MODULE_PATHNAME';
REVOKE EXECUTE ON FUNCTION interlock.idempotency_forget(text, text, text) FROM PUBLIC;
COMMENT ON FUNCTION interlock.idempotency_forget(text, text, text) IS
'Makes a key as never claimed, with its request and response; false when there is none. Its work may be done again. Audited in
idempotency_audit. Only superusers may call it until EXECUTE is granted. Errors: 55006 the key is claimed and its deadline not over,
22004, 22023.';

CREATE FUNCTION interlock.idempotency_lookup(
    scope text, key text,
    OUT status text, OUT has_response boolean, OUT attempt integer, OUT retryable boolean, OUT response jsonb, OUT result_id text,
    OUT checkpoint text, OUT state jsonb, OUT claimed_at timestamptz, OUT deadline timestamptz, OUT finished_at timestamptz,
    OUT expires_at timestamptz, OUT body bytea)
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.idempotency_lookup(text, text) IS
'What is known of a key, without claiming it: pending, stale (claimed, and past its deadline), completed or failed; nulls for a key that
was never claimed, whose claim is not committed, or that has expired.';

DROP FUNCTION interlock.run_once(text, text, regprocedure, jsonb);
CREATE FUNCTION interlock.run_once(
    scope text, key text, command regprocedure, request jsonb = NULL, wait interval = '0',
    OUT outcome text, OUT response jsonb)
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.run_once(text, text, regprocedure, jsonb, interval) IS
'Claims the key, runs command(request jsonb), which returns jsonb or void, and completes the key with what it returns, all in
the caller''s transaction: completed; else replay, failed, exhausted, in_progress or mismatch as idempotency_claim. wait: how long to wait
for another call with the key, to get its response. The command is named with its argument types: ''pay(jsonb)''.';

CREATE FUNCTION interlock.idempotency_request_hash(request jsonb) RETURNS bytea
    LANGUAGE c IMMUTABLE PARALLEL SAFE AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.idempotency_request_hash(jsonb) IS
'The hash of a request that idempotency_claim compares, 32 bytes; equal JSON has the same. Errors: 22004.';

-- Ownership and history.

-- What spans concepts.
