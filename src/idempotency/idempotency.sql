-- Idempotency

-- Names are compared by their bytes: no upgrade of the system's locales puts a key where it is not found.
CREATE TABLE interlock.idempotency_scope (
    scope text COLLATE "C" PRIMARY KEY,
    model text NOT NULL,
    ttl interval NOT NULL,
    stale_after interval NOT NULL,
    replay_failures boolean NOT NULL,
    max_response_bytes integer NOT NULL,
    max_attempts integer,
    CONSTRAINT idempotency_scope_model CHECK (model = ANY ('{api,job}')),
    CONSTRAINT idempotency_scope_ttl CHECK (ttl > '0' AND ttl <= '3653 days'),
    CONSTRAINT idempotency_scope_stale_after
        CHECK (stale_after > '0' AND stale_after <= '3653 days'),
    CONSTRAINT idempotency_scope_max_response_bytes CHECK (max_response_bytes >= 0),
    CONSTRAINT idempotency_scope_max_attempts CHECK (max_attempts > 0));
COMMENT ON TABLE interlock.idempotency_scope IS 'Settings of idempotency scopes; written by define_idempotency_scope.';
GRANT SELECT ON interlock.idempotency_scope TO PUBLIC;
SELECT pg_catalog.pg_extension_config_dump('interlock.idempotency_scope', '');

CREATE FUNCTION interlock_internal.idempotency_scope_trigger() RETURNS trigger LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock_internal.idempotency_scope_trigger() IS
'Announces changes of idempotency_scope and idempotency_grant to all sessions, which cache these tables. Without it each
claim reads the table.';
CREATE TRIGGER zzz_interlock_scope BEFORE INSERT OR UPDATE OR DELETE ON interlock.idempotency_scope
    FOR EACH ROW EXECUTE FUNCTION interlock_internal.idempotency_scope_trigger();
ALTER TABLE interlock.idempotency_scope ENABLE ALWAYS TRIGGER zzz_interlock_scope;
COMMENT ON TRIGGER zzz_interlock_scope ON interlock.idempotency_scope IS 'See idempotency_scope_trigger.';

CREATE TABLE interlock.idempotency_grant (
    scope text COLLATE "C" NOT NULL,
    role_name text COLLATE "C" NOT NULL,
    granted_by text NOT NULL,
    granted_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (scope, role_name));
COMMENT ON TABLE interlock.idempotency_grant IS
'Which roles may use the keys of which scopes, by name, so that it survives dump and restore; scope "*" is all scopes, role
"public" everybody. grant_idempotency_scope and revoke_idempotency_scope write it. Rows of a role that is renamed or dropped
stay: call revoke_idempotency_scope.';
SELECT pg_catalog.pg_extension_config_dump('interlock.idempotency_grant', '');
CREATE TRIGGER zzz_interlock_scope BEFORE INSERT OR UPDATE OR DELETE ON interlock.idempotency_grant
    FOR EACH ROW EXECUTE FUNCTION interlock_internal.idempotency_scope_trigger();
ALTER TABLE interlock.idempotency_grant ENABLE ALWAYS TRIGGER zzz_interlock_scope;
COMMENT ON TRIGGER zzz_interlock_scope ON interlock.idempotency_grant IS 'See idempotency_scope_trigger.';

CREATE SEQUENCE interlock.idempotency_token;
COMMENT ON SEQUENCE interlock.idempotency_token IS 'Tokens of claims: each is greater than all before.';
SELECT pg_catalog.pg_extension_config_dump('interlock.idempotency_token', '');

CREATE TABLE interlock.idempotency (
    scope text COLLATE "C" NOT NULL,
    key text COLLATE "C" NOT NULL,
    status text NOT NULL DEFAULT 'pending',
    request_hash bytea,
    token bigint NOT NULL DEFAULT nextval('interlock.idempotency_token'),
    attempt integer NOT NULL DEFAULT 1,
    claimed_at timestamptz NOT NULL,
    deadline timestamptz NOT NULL,
    finished_at timestamptz,
    expires_at timestamptz NOT NULL,
    retryable boolean NOT NULL DEFAULT false,
    response jsonb,
    response_omitted boolean NOT NULL DEFAULT false,
    result_id text,
    checkpoint text,
    state jsonb,
    body bytea,
    ttl interval,
    stale_after interval,
    PRIMARY KEY (scope, key),
    CHECK (status = ANY ('{pending,completed,failed}')))
    WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02);
CREATE INDEX idempotency_expires_idx ON interlock.idempotency (expires_at);
COMMENT ON TABLE interlock.idempotency IS
'The keys: pending until the deadline, then completed or failed until they expire. response_omitted: it was larger than the
scope allows. ttl, stale_after: of this claim, null: the scope''s. Callers of the functions need a grant of the scope (grant_idempotency_scope) and no privilege on this table. The functions
run with the owner''s privileges and bypass row security.';
COMMENT ON INDEX interlock.idempotency_expires_idx IS 'Finds expired keys for the sweeper.';
SELECT pg_catalog.pg_extension_config_dump('interlock.idempotency', '');

CREATE TABLE interlock.idempotency_audit (
    id bigint GENERATED ALWAYS AS IDENTITY,
    forgotten_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    forgotten_by text NOT NULL,
    scope text NOT NULL,
    key text NOT NULL,
    status text NOT NULL,
    attempt integer NOT NULL,
    reason text NOT NULL,
    PRIMARY KEY (id, forgotten_at));
COMMENT ON TABLE interlock.idempotency_audit IS 'Every use of idempotency_forget: time, user, key, what it was, reason.';
COMMENT ON SEQUENCE interlock.idempotency_audit_id_seq IS 'Numbers the rows of idempotency_audit.';
SELECT pg_catalog.pg_extension_config_dump('interlock.idempotency_audit', '');
SELECT pg_catalog.pg_extension_config_dump('interlock.idempotency_audit_id_seq', '');

-- The defaults are those of kDefaults (scope_read.cpp), which are used for scopes without a row.
CREATE FUNCTION interlock.define_idempotency_scope(
    scope text, model text = 'api', ttl interlock.seconds = '24 h', stale_after interlock.seconds = '1 min',
    replay_failures boolean = false, max_response_bytes integer = 65536, max_attempts integer = NULL) RETURNS void
    LANGUAGE c AS 'MODULE_PATHNAME';
REVOKE EXECUTE ON FUNCTION interlock.define_idempotency_scope(text, text, interlock.seconds, interlock.seconds, boolean, integer, integer) FROM PUBLIC;
COMMENT ON FUNCTION interlock.define_idempotency_scope(text, text, interlock.seconds, interlock.seconds, boolean, integer, integer) IS
'Defines how long keys of a scope live: ttl after they ended, and stale_after without a sign of life until another claim may take over.
model: api (the response is replayed) or job (checkpoints, which a takeover gets). replay_failures: retryable failures, too.
A larger response, its body included, is not kept; but its key is never run again. max_attempts: so many claims of one key,
null: any number. A scope that is not defined has these defaults.
Only superusers may call it until EXECUTE is granted. Errors: 22004, 22023.';

CREATE FUNCTION interlock.grant_idempotency_scope(scope text, role name) RETURNS void
    LANGUAGE c AS 'MODULE_PATHNAME';
REVOKE EXECUTE ON FUNCTION interlock.grant_idempotency_scope(text, name) FROM PUBLIC;
COMMENT ON FUNCTION interlock.grant_idempotency_scope(text, name) IS
'Lets members of a role (''public'': everybody) use the keys of a scope (''*'': all scopes), which they share. Only superusers may
call it until EXECUTE is granted. Errors: 42704 no such role, 22004, 22023.';

CREATE FUNCTION interlock.revoke_idempotency_scope(scope text, role name) RETURNS void
    LANGUAGE c AS 'MODULE_PATHNAME';
REVOKE EXECUTE ON FUNCTION interlock.revoke_idempotency_scope(text, name) FROM PUBLIC;
COMMENT ON FUNCTION interlock.revoke_idempotency_scope(text, name) IS
'Revokes what grant_idempotency_scope granted, from the commit on, also for calls that are waiting then. Only superusers may
call it until EXECUTE is granted. Errors: 42704 it was not granted, 22004, 22023.';

CREATE TYPE interlock.idempotency_claim_result AS (
    outcome text, token bigint, attempt integer, response jsonb, result_id text, checkpoint text, state jsonb,
    body bytea, has_response boolean, deadline timestamptz);
COMMENT ON TYPE interlock.idempotency_claim_result IS
'What idempotency_claim returns: the outcome, of a claim its token and progress, of a key that has ended the answer.';

CREATE FUNCTION interlock.idempotency_claim(
    scope text, key text, request jsonb = NULL, wait interlock.seconds = '0', request_hash bytea = NULL,
    ttl interlock.seconds = NULL, stale_after interlock.seconds = NULL, state jsonb = NULL) RETURNS interlock.idempotency_claim_result
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.idempotency_claim(text, text, jsonb, interlock.seconds, bytea, interlock.seconds, interlock.seconds, jsonb) IS
'Claims a key, or returns why it cannot be claimed. outcome: acquired (with the token); replay: completed before, with its response and body; failed;
exhausted: tried as often as the scope allows; in_progress: another caller has the claim; mismatch: the key was used with another request.
A claim whose worker gave no sign of life for stale_after is taken over.
request: equal JSON is the same request. request_hash: a hash, instead of the request. wait: how long to wait for the end of another claim; null: as lock_timeout
allows. ttl, stale_after: of this claim, instead of those of the scope. ttl is at most the ttl of the scope, and
stale_after at most the longer of the scope''s ttl and stale_after. state: of a job that begins. has_response: whether
there was a response, also if it was too large to be kept. deadline: of this claim, or of the other claim; null while the other claim is not committed. This function and the functions below need a grant of the scope.
Errors: 42501 the scope is not granted to a role of the current user; 40001 under REPEATABLE READ and above if the key changed after
the snapshot; 22004, 22023.';

CREATE FUNCTION interlock.idempotency_complete(
    scope text, key text, token bigint, response jsonb = NULL, result_id text = NULL, body bytea = NULL) RETURNS boolean
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.idempotency_complete(text, text, bigint, jsonb, text, bytea) IS
'Marks the claim as completed, and returns whether response and body are kept: false when they are larger than the scope allows. A
second call with the same token and answer does nothing. Errors: IL008 the claim was taken over or has ended.';

CREATE FUNCTION interlock.idempotency_release(scope text, key text, token bigint) RETURNS boolean
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.idempotency_release(text, text, bigint) IS
'Releases a claim whose work certainly had no effect. The key is as before the claim, and the attempt does not count. After a first attempt any
request can claim the key. False if the claim is lost: it was taken over or has ended.';

CREATE FUNCTION interlock.idempotency_forget(scope text, key text, reason text, force boolean = false) RETURNS boolean
    LANGUAGE c AS 'MODULE_PATHNAME';
REVOKE EXECUTE ON FUNCTION interlock.idempotency_forget(text, text, text, boolean) FROM PUBLIC;
COMMENT ON FUNCTION interlock.idempotency_forget(text, text, text, boolean) IS
'Makes a key as never claimed, with its request and response; false when there is none. Its work may be done again. force: also one that
is claimed and whose deadline is not over; its owner has lost it then, as by a takeover. Audited in idempotency_audit. Only superusers may
call it until EXECUTE is granted. Errors: 55006 the key is claimed and its deadline not over, or a transaction uses it; 22004, 22023.';

CREATE FUNCTION interlock.idempotency_lookup(
    scope text, key text,
    OUT status text, OUT has_response boolean, OUT attempt integer, OUT retryable boolean, OUT response jsonb, OUT result_id text,
    OUT checkpoint text, OUT state jsonb, OUT claimed_at timestamptz, OUT deadline timestamptz, OUT finished_at timestamptz,
    OUT expires_at timestamptz, OUT body bytea)
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.idempotency_lookup(text, text) IS
'What is known of a key, without claiming it: pending, stale (claimed, and past its deadline), completed or failed. A key whose claim by
another transaction is not committed is pending, with nulls. A key that was never claimed, or has expired, is null.';

CREATE FUNCTION interlock.idempotency_fail(
    scope text, key text, token bigint, error jsonb = NULL, retryable boolean = true) RETURNS void
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.idempotency_fail(text, text, bigint, jsonb, boolean) IS
'Marks the claim as failed. If retryable, the next claim tries again; else it gets outcome failed with the error. Errors: IL008.';

CREATE FUNCTION interlock.idempotency_checkpoint(
    scope text, key text, token bigint, name text, state jsonb = NULL) RETURNS void
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.idempotency_checkpoint(text, text, bigint, text, jsonb) IS
'Records the progress of a job for a takeover, and extends its claim. Errors: IL008, 55000 the scope is not of model job.';

CREATE FUNCTION interlock.idempotency_extend(scope text, key text, token bigint) RETURNS timestamptz
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.idempotency_extend(text, text, bigint) IS
'Extends the claim to stale_after from now, and returns the new deadline; null when the claim is lost: taken over, or ended.';

CREATE FUNCTION interlock.idempotency_assert(scope text, key text, token bigint) RETURNS void
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.idempotency_assert(text, text, bigint) IS
'Raises IL008 unless the claim is held. Until the transaction ends nobody takes it over: a former owner cannot commit after a
takeover.';

CREATE FUNCTION interlock.run_once(
    scope text, key text, command text, request jsonb = NULL, wait interlock.seconds = '0',
    OUT outcome text, OUT response jsonb)
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.run_once(text, text, text, jsonb, interlock.seconds) IS
'Claims the key, runs command(request jsonb), which returns jsonb or void, and completes the key with the result, all in the caller''s
transaction. outcome: completed, or replay, failed, exhausted, in_progress or mismatch as for idempotency_claim. wait: how long to wait for
the response of another call with the key. The command is named as ''pay'' or ''pay(jsonb)''. Errors: 42883 no such function, 22023 another signature, 42501 no EXECUTE on it.';

CREATE FUNCTION interlock.idempotency_request_hash(request jsonb) RETURNS bytea
    LANGUAGE c IMMUTABLE PARALLEL SAFE AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.idempotency_request_hash(jsonb) IS
'The hash of a request that idempotency_claim compares, 32 bytes; equal JSON has the same. Errors: 22004.';

CREATE FUNCTION interlock.idempotency_key(VARIADIC parts text[]) RETURNS text
    LANGUAGE c IMMUTABLE PARALLEL SAFE AS 'MODULE_PATHNAME';
CREATE FUNCTION interlock.idempotency_key(VARIADIC parts "any") RETURNS text
    LANGUAGE c STABLE PARALLEL SAFE AS 'MODULE_PATHNAME', 'idempotency_key_any';
COMMENT ON FUNCTION interlock.idempotency_key(text[]) IS
'Joins the parts with : and escapes what is in them, so that different parts never make one key. Errors: 22004, 22023.';
COMMENT ON FUNCTION interlock.idempotency_key("any") IS
'As idempotency_key(text[]), for parts of other types. Parts are printed as by a cast to text under default settings. Dates and times are
printed as in JSON, and times with a time zone in UTC.';
CREATE FUNCTION interlock.idempotency_key(part text, VARIADIC parts "any") RETURNS text
    LANGUAGE c STABLE PARALLEL SAFE AS 'MODULE_PATHNAME', 'idempotency_key_text_and_any';
COMMENT ON FUNCTION interlock.idempotency_key(text, "any") IS
'As idempotency_key("any"): a first part without a type is text, also next to parts that have one.';

CREATE FUNCTION interlock.idempotency_sweep(max_rows integer = 1000) RETURNS bigint
    LANGUAGE c AS 'MODULE_PATHNAME';
REVOKE EXECUTE ON FUNCTION interlock.idempotency_sweep(integer) FROM PUBLIC;
COMMENT ON FUNCTION interlock.idempotency_sweep(integer) IS
'Deletes one batch of expired keys, oldest first, and returns how many; the sweeper does so by itself. Only superusers may call it
until EXECUTE is granted.';
