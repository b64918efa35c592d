-- ORM-8: every function can be called with parameters without a type, as drivers send them, and then means the form
-- that docs/reference documents. A server-typed driver (asyncpg, pgx, Npgsql) sends values of these types.
BEGIN;
SELECT plan(5);

-- Who may execute it, and the types that the parameters get, all of them given. A new function needs its line here.
CREATE TEMP TABLE documented (name text PRIMARY KEY, types text[], is_public boolean) ON COMMIT DROP;
-- Everybody:
INSERT INTO documented SELECT name, types::text[], true FROM (VALUES
    ('acquire_lease', '{text,interlock.seconds,interlock.seconds,text,text,text,boolean,interlock.seconds,boolean}'),
    ('acquire_leases', '{text[],interlock.seconds,interlock.seconds,text,text,text,boolean}'),
    ('acquire_permit', '{text,integer,interlock.seconds,interlock.seconds,text,text,boolean,boolean}'),
    ('adjust', '{regclass,text,name,numeric,interlock.seconds}'),
    ('advise', '{regclass}'),
    ('any_version', '{text}'),
    ('applock_mode', '{text,text,text}'),
    ('applock_test', '{text,text,text,text}'),
    ('assert_lease', '{text,bigint}'),
    ('assert_version', '{regclass,text,text}'),
    ('cancel_reservation', '{bigint}'),
    ('claim_rows', '{regclass,text,integer,jsonb,name,interlock.seconds}'),
    ('confirm_reservation', '{bigint,numeric,jsonb}'),
    ('configuration', '{regclass}'),
    ('configure', '{regclass,jsonb,boolean}'),
    ('current_writer', '{}'),
    ('define_transitions', '{regclass,name,jsonb,text[],text,jsonb}'),
    ('delete_row', '{regclass,text,text}'),
    ('disable_escrow', '{regclass,name}'),
    ('disable_history', '{regclass}'),
    ('disable_marker', '{regclass}'),
    ('disable_versioning', '{regclass}'),
    ('drop_transitions', '{regclass,name}'),
    ('enable_escrow', '{regclass,name,numeric,numeric,text,boolean,text}'),
    ('enable_history', '{regclass,integer,interlock.seconds,name[],text[],text,boolean,interlock.seconds,integer}'),
    ('enable_marker', '{regclass,interlock.seconds,boolean,text,name,name,name,name,name,boolean,text}'),
    ('enable_versioning', '{regclass,name,name[],text,text}'),
    ('escrow_check', '{regclass}'),
    ('escrow_value', '{regclass,text,name}'),
    ('extend_reservation', '{bigint,interlock.seconds}'),
    ('first_version', '{text}'),
    ('fold_escrow', '{regclass,text}'),
    ('getapplock', '{text,text,text,integer,text}'),
    ('grant_access', '{text,name}'),
    ('group_columns', '{regclass,name[]}'),
    ('guard_children', '{regclass,regclass,name[]}'),
    ('hand_over_columns', '{regclass,name[],text}'),
    ('hand_over_row', '{regclass,text,text,text,interlock.seconds}'),
    ('history_position', '{}'),
    ('history_since', '{regclass,text,integer}'),
    ('idempotency_assert', '{text,text,bigint}'),
    ('idempotency_checkpoint', '{text,text,bigint,text,jsonb}'),
    ('idempotency_claim', '{text,text,jsonb,interlock.seconds,bytea,interlock.seconds,interlock.seconds,jsonb}'),
    ('idempotency_complete', '{text,text,bigint,jsonb,text,bytea}'),
    ('idempotency_extend', '{text,text,bigint}'),
    ('idempotency_fail', '{text,text,bigint,jsonb,boolean}'),
    ('idempotency_key', '{text,text,text}'),
    ('idempotency_lookup', '{text,text}'),
    ('idempotency_release', '{text,text,bigint}'),
    ('idempotency_request_hash', '{jsonb}'),
    ('key_path', '{text,text,text}'),
    ('lease_of', '{text}'),
    ('lock_key', '{text,text,interlock.seconds,text}'),
    ('lock_keys', '{text[],text,interlock.seconds,text}'),
    ('lock_row', '{regclass,text,text,interlock.seconds,text}'),
    ('lock_rows', '{regclass,text,text,interlock.seconds,text}'),
    ('next_states', '{regclass,text,name}'),
    ('next_states_many', '{regclass,text,name}'),
    ('own_columns', '{regclass,text,name[],text,boolean}'),
    ('release_columns', '{regclass,name[]}'),
    ('release_values', '{regclass,text,name[]}'),
    ('release_lease', '{text,bigint,text}'),
    ('releaseapplock', '{text,text,text}'),
    ('renew_lease', '{text,bigint,interlock.seconds,text,interlock.seconds}'),
    ('renew_leases', '{text[],bigint[],interlock.seconds,text}'),
    ('require_lease', '{regclass,text,name[]}'),
    ('restore_history', '{regclass}'),
    ('reserve', '{regclass,text,name,numeric,interlock.seconds,text,interlock.seconds}'),
    ('reserve_many', '{jsonb,interlock.seconds,text,interlock.seconds}'),
    ('resync_sequences', '{}'),
    ('revert_row', '{regclass,text,bigint,timestamptz,text}'),
    ('revoke_access', '{text,name}'),
    ('row_as_of', '{regclass,text,timestamptz}'),
    ('row_history', '{regclass,text,boolean}'),
    ('row_lock_of', '{regclass,text}'),
    ('rows_as_of', '{anyelement,timestamptz}'), -- the first one names a table by its type
    ('run_once', '{text,text,text,jsonb,interlock.seconds}'),
    ('save_row', '{regclass,text,text,jsonb,text,boolean}'),
    ('select_for_update', '{regclass,text,text,interlock.seconds,boolean}'),
    ('set_escrow', '{regclass,text,name,numeric}'),
    ('set_holder', '{text}'),
    ('set_writer', '{text,boolean}'),
    ('share_columns', '{regclass,name[],text,text}'),
    ('take_over_row', '{regclass,text,text,text,interlock.seconds}'),
    ('touch_row', '{regclass,text,text,interlock.seconds}'),
    ('transition', '{regclass,text,text,text,jsonb,name,jsonb}'),
    ('trim_history', '{regclass,integer}'),
    ('try_adjust', '{regclass,text,name,numeric,interlock.seconds}'),
    ('try_lock_key', '{text,text,interlock.seconds,text}'),
    ('try_lock_keys', '{text[],text,interlock.seconds,text}'),
    ('try_revert_row', '{regclass,text,bigint,timestamptz,text}'),
    ('try_save_row', '{regclass,text,text,jsonb,text,boolean}'),
    ('try_transition', '{regclass,text,text,text,jsonb,name,jsonb}'),
    ('try_versioned_delete', '{regclass,text,text}'),
    ('try_versioned_upsert', '{regclass,text,text,jsonb}'),
    ('try_versioned_update', '{regclass,text,text,jsonb,jsonb,text}'),
    ('ungroup_columns', '{regclass,name[]}'),
    ('unguard_children', '{regclass,regclass}'),
    ('unlock_key', '{text,text}'),
    ('unlock_keys', '{text[],text}'),
    ('unlock_row', '{regclass,text,text}'),
    ('unrequire_lease', '{regclass,text}'),
    ('update_with_retry', '{regclass,text,text,jsonb,integer}'),
    ('version', '{}'),
    ('versioned_delete', '{regclass,text,text}'),
    ('versioned_update', '{regclass,text,text,jsonb}'),
    ('versioned_update_many', '{regclass,jsonb,boolean}'),
    ('versioned_upsert', '{regclass,text,text,jsonb}')) f (name, types);
-- Roles that it was granted to:
INSERT INTO documented SELECT name, types::text[], false FROM (VALUES
    ('break_lease', '{text,text,boolean}'),
    ('break_leases', '{text,text,name}'),
    ('confirm_stop', '{}'),
    ('define_idempotency_scope', '{text,text,interlock.seconds,interlock.seconds,boolean,integer,integer}'),
    ('end_grace', '{text,bigint,interlock.seconds}'),
    ('force_unlock_row', '{regclass,text,text}'),
    ('grant_idempotency_scope', '{text,name}'),
    ('grant_writer', '{text,name,boolean,boolean}'),
    ('idempotency_forget', '{text,text,text,boolean}'),
    ('idempotency_sweep', '{integer}'),
    ('reset_contention', '{}'),
    ('revoke_idempotency_scope', '{text,name}'),
    ('revoke_writer', '{text,name}'),
    ('suppress_history', '{regclass,text}'),
    ('sweep', '{integer}')) f (name, types);

CREATE TEMP VIEW functions AS
SELECT p.proname AS name, min(p.pronargs - p.pronargdefaults) AS required, max(p.pronargs) AS most, bool_or(p.provariadic <> 0) AS is_variadic
FROM pg_proc p
WHERE p.pronamespace = 'interlock'::regnamespace
GROUP BY 1;

SELECT is_empty('SELECT f.name AS of_catalog, d.name AS of_list FROM functions f FULL JOIN documented d USING (name) WHERE f.name IS NULL OR d.name IS NULL',
    'every function is in the list');
SELECT is_empty('SELECT name FROM functions JOIN documented USING (name) WHERE NOT is_variadic AND most <> cardinality(types)', 'with all of its arguments');

SELECT is_empty($$SELECT p.oid::regprocedure FROM pg_proc p JOIN documented ON name = proname
      WHERE p.pronamespace = 'interlock'::regnamespace AND is_public <> EXISTS (
            SELECT FROM aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) a WHERE a.grantee = 0 AND a.privilege_type = 'EXECUTE')$$,
    'each can be executed by everybody, or must be granted, as the list says');

-- Each call, from the required arguments to all of them.
CREATE FUNCTION pg_temp.types_of_parameters(name text, count int) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    result text;
BEGIN
    EXECUTE format('PREPARE untyped AS SELECT * FROM interlock.%I(%s)', name, (SELECT string_agg('$' || i, ', ') FROM generate_series(1, count) i));
    SELECT parameter_types::text INTO result FROM pg_prepared_statements s WHERE s.name = 'untyped';
    DEALLOCATE untyped;
    RETURN replace(result, '"timestamp with time zone"', 'timestamptz');
EXCEPTION WHEN ambiguous_function OR indeterminate_datatype OR undefined_function THEN
    RETURN SQLSTATE || ' ' || SQLERRM;
END $$;
SELECT is_empty(
    $$SELECT name, resolved FROM functions JOIN documented USING (name) CROSS JOIN generate_series(required, cardinality(types)) count
        CROSS JOIN LATERAL (SELECT pg_temp.types_of_parameters(name, count) WHERE 'anyelement' <> ALL (types)) r (resolved)
      WHERE resolved <> types[:count]::text$$,
    'parameters without a type get the documented types');

-- Named, as "key => $2" is sent: the same.
CREATE FUNCTION pg_temp.types_of_named_parameters(function oid) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    result text;
BEGIN
    EXECUTE (SELECT format('PREPARE untyped AS SELECT * FROM interlock.%I(%s)', proname,
                 (SELECT string_agg(quote_ident(name) || ' => $' || n, ', ') FROM unnest(proargnames[:pronargs]) WITH ORDINALITY a (name, n)))
             FROM pg_proc WHERE oid = function);
    SELECT parameter_types::text INTO result FROM pg_prepared_statements s WHERE s.name = 'untyped';
    DEALLOCATE untyped;
    RETURN replace(result, '"timestamp with time zone"', 'timestamptz');
EXCEPTION WHEN ambiguous_function OR indeterminate_datatype OR undefined_function THEN
    RETURN SQLSTATE || ' ' || SQLERRM;
END $$;
SELECT is_empty(
    $$SELECT p.oid::regprocedure, resolved FROM pg_proc p JOIN documented ON name = proname CROSS JOIN LATERAL (SELECT pg_temp.types_of_named_parameters(p.oid) WHERE 'anyelement' <> ALL (types)) r (resolved)
      WHERE p.pronamespace = 'interlock'::regnamespace AND p.provariadic = 0 AND p.pronargs = cardinality(types) AND resolved <> types::text$$,
    'by name as by position');

SELECT * FROM finish();
ROLLBACK;
