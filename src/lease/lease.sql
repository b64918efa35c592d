-- Leases

CREATE TABLE interlock_internal.lease_store (content bytea NOT NULL) WITH (autovacuum_enabled = off);
ALTER TABLE interlock_internal.lease_store ALTER COLUMN content SET STORAGE PLAIN;
-- It has the secret of tokens, which pg_read_all_data must not see either.
ALTER TABLE interlock_internal.lease_store ENABLE ROW LEVEL SECURITY;
COMMENT ON TABLE interlock_internal.lease_store IS
'What the server needs to know about leases after a crash, and the secret of their tokens. The server writes it in place, outside of
transactions. Do not change it by plain SQL, and do not grant it: row security without a policy hides it from all but superusers and
roles with BYPASSRLS.';

CREATE FUNCTION interlock_internal.lease_store_trigger() RETURNS trigger LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock_internal.lease_store_trigger() IS
'Refuses changes of lease_store (55000). Skips rows that logical replication applies.';
CREATE TRIGGER zzz_interlock_store BEFORE INSERT OR UPDATE OR DELETE ON interlock_internal.lease_store
    FOR EACH ROW EXECUTE FUNCTION interlock_internal.lease_store_trigger();
CREATE TRIGGER zzz_interlock_store_truncate BEFORE TRUNCATE ON interlock_internal.lease_store
    FOR EACH STATEMENT EXECUTE FUNCTION interlock_internal.lease_store_trigger();
ALTER TABLE interlock_internal.lease_store ENABLE ALWAYS TRIGGER zzz_interlock_store;
ALTER TABLE interlock_internal.lease_store ENABLE ALWAYS TRIGGER zzz_interlock_store_truncate;
COMMENT ON TRIGGER zzz_interlock_store ON interlock_internal.lease_store IS 'See lease_store_trigger.';
COMMENT ON TRIGGER zzz_interlock_store_truncate ON interlock_internal.lease_store IS 'See lease_store_trigger.';

CREATE FUNCTION interlock_internal.note_lease_store() RETURNS void LANGUAGE c AS 'MODULE_PATHNAME';
REVOKE EXECUTE ON FUNCTION interlock_internal.note_lease_store() FROM PUBLIC;
COMMENT ON FUNCTION interlock_internal.note_lease_store() IS
'Announces to the running server that lease_store is a new table, so that it writes its state there. Called by CREATE EXTENSION.';
SELECT interlock_internal.note_lease_store();

CREATE TABLE interlock.lease_audit (
    id bigint GENERATED ALWAYS AS IDENTITY,
    broken_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    broken_by text NOT NULL,
    key text NOT NULL,
    holder text NOT NULL,
    token bigint NOT NULL,
    would_expire_at timestamptz NOT NULL,
    reason text NOT NULL,
    terminated integer[] NOT NULL,
    PRIMARY KEY (id, broken_at));
COMMENT ON TABLE interlock.lease_audit IS
'Every use of break_lease and break_leases: time, user, lease, holder, reason, and the processes that were terminated because
their transactions pinned it.';
COMMENT ON SEQUENCE interlock.lease_audit_id_seq IS 'Numbers the rows of lease_audit.';
SELECT pg_catalog.pg_extension_config_dump('interlock.lease_audit', '');
SELECT pg_catalog.pg_extension_config_dump('interlock.lease_audit_id_seq', '');

CREATE TYPE interlock.acquire_lease_result AS (
    outcome text, token bigint, expires_at timestamptz, holder text, ticket bigint);
COMMENT ON TYPE interlock.acquire_lease_result IS
'What acquire_lease returns: the outcome, and the token, expiry and holder of the acquired lease. If another holder has the lease, its
expiry and holder. The ticket of a caller that will be notified.';

CREATE FUNCTION interlock.acquire_lease(
    key text, ttl interlock.seconds = '30 s', wait interlock.seconds = '0', holder text = NULL, mode text = 'exclusive', bind text = 'ttl',
    resume boolean = false, at_least interlock.seconds = NULL, notify boolean = false)
    RETURNS interlock.acquire_lease_result
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.acquire_lease(text, interlock.seconds, interlock.seconds, text, text, text, boolean, interlock.seconds, boolean) IS
'Acquires a lease on the key for ttl. A key with slashes is a path. outcome: acquired (with the token that proves it), resumed, held (with
holder and expires_at of the other lease), recovering (after a crash, until expires_at). wait: how long to wait at most (null: as long as
lock_timeout allows), first come, first served. holder is a label. mode: exclusive or shared. bind: ttl, or session: it has no time to live and ends
with the session. resume: if the same role and holder have the lease in the same mode, it is renewed, and the answer has its token. at_least: how
long the lease excludes others even if it is released, at most ttl. notify: a caller that is refused gets a ticket. A notification on channel
interlock_lease has the number of the ticket when the caller should call again. With bind session the ticket ends with the session too.
Takes effect at once, whether or not the transaction commits. Errors: 22004, 22023, 25006 on a standby, 53400 too many, 55000 not preloaded.';

CREATE FUNCTION interlock.acquire_permit(
    key text, capacity integer, ttl interlock.seconds = '30 s', wait interlock.seconds = '0', holder text = NULL, bind text = 'ttl',
    resume boolean = false, notify boolean = false)
    RETURNS interlock.acquire_lease_result
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.acquire_permit(text, integer, interlock.seconds, interlock.seconds, text, text, boolean, boolean) IS
'As acquire_lease, for one of at most capacity permits on the key. It is renewed and released as a lease. Errors: as acquire_lease; 22023
when permits of the key are held with another capacity.';

CREATE TYPE interlock.acquire_leases_result AS (
    outcome text, tokens bigint[], expires_at timestamptz, blocked_by text, holder text);
COMMENT ON TYPE interlock.acquire_leases_result IS
'What acquire_leases returns: the outcome, and the tokens and expiry of the leases. Otherwise the key that was not available, and its holder.';

CREATE FUNCTION interlock.acquire_leases(
    keys text[], ttl interlock.seconds = '30 s', wait interlock.seconds = '0', holder text = NULL,
    mode text = 'exclusive', bind text = 'ttl', resume boolean = false)
    RETURNS interlock.acquire_leases_result
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.acquire_leases(text[], interlock.seconds, interlock.seconds, text, text, text, boolean) IS
'Acquires leases on all the keys or on none; tokens are in the order of keys. A key that is given twice has one lease, and its token twice. If
held: blocked_by is the key that was not available, holder its holder. Calls that wait acquire their keys in one order, so that two such calls never
deadlock. mode and bind: as of acquire_lease. resume: if the same role has all of them under the same holder, they are renewed (outcome
resumed). Errors: as acquire_lease; 22023 when one key is below another, 54000 more than 10000 keys.';

CREATE FUNCTION interlock.renew_lease(
    key text, token bigint = NULL, ttl interlock.seconds = NULL, holder text = NULL, at_least interlock.seconds = NULL)
    RETURNS timestamptz
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.renew_lease(text, bigint, interlock.seconds, text, interlock.seconds) IS
'Extends the lease to ttl from now (null: its ttl), and returns its expiry; null if the lease is lost. It never shortens a lease. It renews an
expired lease that nobody has acquired since. After a crash it reclaims the lease (null: for 30 s), with the holder as its label. Without a
token it renews all leases with the label holder on exactly this key, as release_lease finds them, and returns the earliest expiry. at_least: how
long the lease excludes others from now on even if it is released, at most ttl. For members of the role that acquired the lease. Errors: 22004, 22023,
25006, 55000.';

CREATE FUNCTION interlock.renew_leases(
    keys text[], tokens bigint[], ttl interlock.seconds = NULL, holder text = NULL)
    RETURNS timestamptz
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.renew_leases(text[], bigint[], interlock.seconds, text) IS
'Extends all the leases as renew_lease does, or none of them, and returns the earliest expiry; null when one of them is lost. tokens are in the
order of keys. Errors: as renew_lease; 54000 more than 10000 keys.';

CREATE FUNCTION interlock.release_lease(key text, token bigint = NULL, holder text = NULL) RETURNS boolean
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.release_lease(text, bigint, text) IS
'Releases the lease, and returns whether it was held. holder instead of token: all leases with that label on exactly this key; tickets with that
label end too. If another session was granted a lease under that label after this session''s lease, that lease stays, with a WARNING, unless this
session has released its own. If open transactions have asserted the lease, it is free for others when they have ended. For members of the role that
acquired the lease. Errors: 22004, 22023, 25006, 55000.';

CREATE FUNCTION interlock.assert_lease(key text, token bigint) RETURNS void
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.assert_lease(text, bigint) IS
'Raises IL006 unless a role of which the caller is a member holds the lease with the token. Until the transaction ends, the lease
is granted to nobody else: a former holder cannot commit after a later grant (fencing). A transaction that has asserted a lease cannot be prepared. Errors: IL006, 22004, 22023, 25006,
53400, 55000.';

CREATE FUNCTION interlock.break_lease(key text, reason text, terminate boolean = false) RETURNS text
    LANGUAGE c AS 'MODULE_PATHNAME';
REVOKE EXECUTE ON FUNCTION interlock.break_lease(text, text, boolean) FROM PUBLIC;
COMMENT ON FUNCTION interlock.break_lease(text, text, boolean) IS
'Takes the lease on exactly this key from its holder, at once, and returns the holder, several separated by commas; null when nobody
held it. While open transactions pin the lease it raises 55006 and names their processes; terminate ends these sessions first, as
pg_terminate_backend does and with the rights that it needs. Audited in lease_audit, and in the server log, which stays when the transaction is
rolled back. Only superusers may call it until EXECUTE is granted. Errors: 22004, 22023, 25006, 42501, 55000, 55006.';

CREATE FUNCTION interlock.break_leases(pattern text, reason text, role name = NULL) RETURNS bigint
    LANGUAGE c AS 'MODULE_PATHNAME';
REVOKE EXECUTE ON FUNCTION interlock.break_leases(text, text, name) FROM PUBLIC;
COMMENT ON FUNCTION interlock.break_leases(text, text, name) IS
'Breaks all leases of this database whose keys match the LIKE pattern, of the role (null: of all), and returns how many. Each is audited as by
break_lease. Those that open transactions have asserted are skipped, with a warning that counts them. role: tickets of the role for such keys end, too.
Only superusers may call it until EXECUTE is granted. Errors: 22004, 22023, 22025 the pattern, 25006, 42704 no such role, 55000.';

CREATE FUNCTION interlock.confirm_stop(OUT run bigint, OUT time_left interval)
    LANGUAGE c AS 'MODULE_PATHNAME';
REVOKE EXECUTE ON FUNCTION interlock.confirm_stop() FROM PUBLIC;
COMMENT ON FUNCTION interlock.confirm_stop() IS
'For a planned switchover. Called on the server that was the primary before and is a standby now. If it was stopped cleanly and has not run as a
primary since, returns the number of its run as the primary, and how long the last of its short leases of this database still lasts. Otherwise nulls.
Only superusers may call it until EXECUTE is granted. Errors: 42501, 55000 not a standby, or not preloaded.';

CREATE FUNCTION interlock.end_grace(reason text, run bigint, time_left interlock.seconds) RETURNS timestamptz
    LANGUAGE c AS 'MODULE_PATHNAME';
REVOKE EXECUTE ON FUNCTION interlock.end_grace(text, bigint, interlock.seconds) FROM PUBLIC;
COMMENT ON FUNCTION interlock.end_grace(text, bigint, interlock.seconds) IS
'For a planned switchover. Called on the new primary with what confirm_stop returned on the server that was the primary directly before. The grace
period of this database ends when time_left is over, at once if it is zero. It never gets longer. Returns when it ends. With other values, or if
another server was the primary in between, a lease can be granted twice. Takes effect at once, whether or not the transaction commits. Audited in
view audit, and in the server log. Only superusers may call it until EXECUTE is granted. Errors: 22004, 22023, 25006, 42501, 55000 no grace period
after that run.';

CREATE FUNCTION interlock_internal.list_leases(
    OUT key text, OUT mode text, OUT holder text, OUT token bigint, OUT since timestamptz, OUT expires_at timestamptz,
    OUT ttl interval, OUT pid integer, OUT pins integer, OUT durable boolean, OUT pinned_by integer[], OUT pinned_since timestamptz,
    OUT role text, OUT released boolean)
    RETURNS SETOF record
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock_internal.list_leases() IS 'The rows of the view leases.';

CREATE VIEW interlock.leases AS SELECT * FROM interlock_internal.list_leases();
GRANT SELECT ON interlock.leases TO PUBLIC;
COMMENT ON VIEW interlock.leases IS
'The leases of this database. token is shown to members of the role that acquired the lease. pid is the session to which it is bound.
pins counts open transactions that have asserted it, pinned_by are their processes, pinned_since is the start of the oldest. durable is
true for a lease with its own record. role has acquired it. released is true for a released lease that stays until its at_least is over.';

CREATE FUNCTION interlock.lease_of(
    key text, OUT mode text, OUT holder text, OUT token bigint, OUT role text, OUT pid integer, OUT since timestamptz,
    OUT expires_at timestamptz, OUT blocks_key text, OUT pinned_by integer[], OUT pinned_since timestamptz)
    RETURNS SETOF record
    LANGUAGE c ROWS 1 AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.lease_of(text) IS
'The lease that excludes an exclusive lease on the key: at the key, otherwise above it, otherwise below it. No row if there is none. blocks_key is its
key. The other columns are those of the view leases. It costs the same however many leases there are. Errors: 22004, 22023, 25006,
55000.';

CREATE FUNCTION interlock_internal.list_lease_waiters(
    OUT key text, OUT mode text, OUT holder text, OUT pid integer, OUT waiting_since timestamptz, OUT place integer)
    RETURNS SETOF record
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock_internal.list_lease_waiters() IS 'The rows of the view lease_waiters.';

CREATE VIEW interlock.lease_waiters AS SELECT * FROM interlock_internal.list_lease_waiters();
GRANT SELECT ON interlock.lease_waiters TO PUBLIC;
COMMENT ON VIEW interlock.lease_waiters IS
'Sessions that wait for leases of this database. Keys with the same first level share one queue; place is the place in it.';

CREATE FUNCTION interlock_internal.lease_trigger() RETURNS trigger
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock_internal.lease_trigger() IS
'Refuses a write in a transaction that has not asserted the lease for the row (IL006). Created by require_lease; arguments: template of
the key, columns whose change needs the lease (none: all).';

CREATE FUNCTION interlock.require_lease(rel regclass, key text = NULL, columns name[] = NULL) RETURNS void
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.require_lease(regclass, text, name[]) IS
'Requires that each transaction that inserts, updates or deletes a row has asserted an exclusive lease on the row''s key or above it. Otherwise
the write raises IL006. For the owner of the table. key is a template: product:{id}/thumb, with {{ and }} for braces; null: the table''s name and
its key, doc:{id}. Without braces it is one lease for all rows, with a WARNING if a word in it is a column. columns: updates need the lease only if they change one of them, or the key; inserts and deletes always do. A table
may require several leases; the same key again replaces the columns. Errors: 42501 not the owner, 42703 no such column, 42804 type, 428C9
virtual column, 22004, 22023 template, 42809 not a table, 55000 no key. Errors of a write: IL006; 22004 null in a
column of the key; 55000 the columns no longer match.';

CREATE FUNCTION interlock.unrequire_lease(rel regclass, key text = NULL) RETURNS void
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.unrequire_lease(regclass, text) IS
'Allows writes without the lease of that template again; null: the only one that the table requires. For the owner of the table.
Errors: 42501 not the owner, 22023 it requires several, 55000 it does not require it.';

CREATE FUNCTION interlock.key_path(VARIADIC parts text[]) RETURNS text
    LANGUAGE c IMMUTABLE PARALLEL SAFE AS 'MODULE_PATHNAME';
CREATE FUNCTION interlock.key_path(VARIADIC parts "any") RETURNS text
    LANGUAGE c STABLE PARALLEL SAFE AS 'MODULE_PATHNAME', 'key_path_any';
COMMENT ON FUNCTION interlock.key_path(text[]) IS
'A key that is a path, for leases and key locks: joins the parts with /. A part is one level, whatever is in it: its / becomes %2F,
its % becomes %25. Errors: 22004, 22023 an empty part.';
COMMENT ON FUNCTION interlock.key_path("any") IS
'As key_path(text[]), for parts of other types. Parts are printed as by a cast to text under default settings. Dates and times are printed as
in JSON, and times with a time zone in UTC.';
CREATE FUNCTION interlock.key_path(part text, VARIADIC parts "any") RETURNS text
    LANGUAGE c STABLE PARALLEL SAFE AS 'MODULE_PATHNAME', 'key_path_text_and_any';
COMMENT ON FUNCTION interlock.key_path(text, "any") IS
'As key_path("any"): a first part without a type is text, also next to parts that have one.';
