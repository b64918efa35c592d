-- What has to be the same after an upgrade: rows, and what the functions and views make of them.

CREATE SCHEMA kept;

CREATE FUNCTION kept.state() RETURNS TABLE (what text, content text) LANGUAGE plpgsql AS $$
DECLARE
    rel regclass;
    moment timestamptz;
BEGIN
    -- The page of lease_store is written at the first use. The leases are compared instead.
    FOR rel IN SELECT oid FROM pg_class WHERE relkind IN ('r', 'p') AND NOT relispartition AND relname <> 'lease_store'
            AND relnamespace IN ('public'::regnamespace, 'interlock'::regnamespace, 'interlock_internal'::regnamespace) LOOP
        RETURN QUERY EXECUTE format('SELECT %L, row_of::text FROM %s row_of', rel, rel);
    END LOOP;
    FOREACH rel IN ARRAY ARRAY['doc', 'entry']::regclass[] LOOP
        RETURN QUERY EXECUTE format($q$SELECT 'row_history of %1$s', concat_ws(' ', key, h) FROM
            (SELECT DISTINCT key FROM interlock.history_since('%1$s')) k, interlock.row_history('%1$s', key::text) h$q$, rel);
        FOR moment IN SELECT at FROM public.upgrade LOOP
            RETURN QUERY EXECUTE format('SELECT %L, r::text FROM interlock.rows_as_of(NULL::%s, %L) r', concat_ws(' ', rel, 'as of', moment), rel, moment);
        END LOOP;
        RETURN QUERY EXECUTE format('SELECT %L, interlock.configuration(%L)::text', 'configuration of ' || rel, rel);
    END LOOP;
    RETURN QUERY SELECT 'lease', concat_ws(' ', key, mode, holder, token, ttl, role) FROM interlock.leases WHERE durable;
    RETURN QUERY SELECT 'guard', g::text FROM interlock.guards g;
    RETURN QUERY SELECT 'owned column', c::text FROM interlock.column_ownership c;
    RETURN QUERY SELECT 'transition', t::text FROM interlock.transitions t;
    RETURN QUERY SELECT 'marker', m::text FROM interlock.row_locks m;
    RETURN QUERY SELECT 'reservation', r::text FROM interlock.reservations r;
    RETURN QUERY SELECT 'counter', concat_ws(' ', id, interlock.escrow_value('item', id::text, 'stock')) FROM public.item;
    RETURN QUERY SELECT 'audit', a::text FROM interlock.audit a;
    RETURN QUERY SELECT 'version', v::text FROM interlock.version() v;
    RETURN QUERY SELECT 'sequence', concat_ws(' ', schemaname, sequencename, last_value) FROM pg_sequences;
    RETURN QUERY SELECT 'trigger', concat_ws(' ', tgenabled, pg_get_triggerdef(oid)) FROM pg_trigger WHERE NOT tgisinternal;
    RETURN QUERY SELECT 'default', concat_ws(' ', adrelid::regclass, adnum, pg_get_expr(adbin, adrelid)) FROM pg_attrdef;
    -- 17 has added MAINTAIN to what an owner has.
    RETURN QUERY SELECT 'right', concat_ws(' ', object, grantee::regrole, privilege_type, is_grantable) FROM (
            SELECT nspname::text, nspacl FROM pg_namespace WHERE nspname LIKE 'interlock%'
            UNION ALL SELECT oid::regclass::text, relacl FROM pg_class WHERE relnamespace = 'interlock'::regnamespace
            UNION ALL SELECT oid::regprocedure::text, proacl FROM pg_proc WHERE pronamespace = 'interlock'::regnamespace) o (object, acl),
        aclexplode(acl) WHERE privilege_type <> 'MAINTAIN';
    RETURN QUERY SELECT 'setting', concat_ws(' ', setrole::regrole, setconfig) FROM pg_db_role_setting;
END $$;

CREATE TABLE kept.before (what text, content text);
