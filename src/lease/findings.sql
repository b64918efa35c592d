-- Findings about tables whose writes need a lease

CREATE FUNCTION interlock_internal.list_lease_findings(
    OUT rel regclass, OUT severity text, OUT finding text, OUT advice text, OUT mechanism text) RETURNS SETOF record
    LANGUAGE sql STABLE
BEGIN ATOMIC
    SELECT t.tgrelid::regclass, 'broken', format('lease column "%s" is gone: writes are refused', c.name),
           format('SELECT interlock.unrequire_lease(%L, %L) -- if it was renamed, then interlock.require_lease with its current name',
               t.tgrelid::regclass, t.arguments[1]),
           t.mechanism
      FROM interlock_internal.list_own_triggers() t
     CROSS JOIN LATERAL (
           SELECT m.name[1] -- of the template of keys
             FROM regexp_matches(replace(replace(t.arguments[1], '{{', ''), '}}', ''), '\{([^{}]+)\}', 'g') m (name)
            UNION
           SELECT a.name FROM unnest(t.arguments[2:]) a (name)) c (name)
     WHERE t.kind = 'lease_trigger' AND t.tgparentid = 0 AND NOT interlock_internal.has_column(t.tgrelid, c.name)
    UNION ALL
    SELECT DISTINCT t.tgrelid::regclass, 'broken', 'shared_preload_libraries does not have the library: there are no leases, and writes are refused',
           'the administrator of the server adds pg_interlock to shared_preload_libraries, and restarts it', t.mechanism
      FROM interlock_internal.list_own_triggers() t
     CROSS JOIN interlock_internal.is_preloaded() p
     WHERE t.kind = 'lease_trigger' AND NOT p.for_all;
END;
COMMENT ON FUNCTION interlock_internal.list_lease_findings() IS
'For advise and the view guards: columns of require_lease that are gone, and a server without leases.';
