-- Findings about escrow counters

CREATE FUNCTION interlock_internal.list_escrow_findings(
    OUT rel regclass, OUT severity text, OUT finding text, OUT advice text, OUT mechanism text) RETURNS SETOF record
    LANGUAGE sql STABLE
BEGIN ATOMIC
    SELECT DISTINCT t.tgrelid::regclass, 'broken', 'the table has become unlogged: inserts, and changes of its escrow counters, are refused',
           format('ALTER TABLE %s SET LOGGED -- after a crash, TRUNCATE it first', t.tgrelid::regclass), t.mechanism
      FROM interlock_internal.list_own_triggers() t
      JOIN pg_class c ON c.oid = t.tgrelid AND c.relpersistence = 'u'
     WHERE t.kind = 'escrow_trigger'
    UNION ALL
    SELECT e.tgrelid::regclass, 'broken', format('trigger "%s" does not fire after all others: writes are refused', e.tgname),
           'the owner of the table renames the triggers of pg_interlock to the names that they had', 'escrow'
      FROM (SELECT t.tgrelid,
                   min(t.tgname::text COLLATE "C") FILTER (WHERE t.kind = 'escrow_trigger') AS tgname,
                   max(t.tgname::text COLLATE "C") FILTER (WHERE t.kind <> 'escrow_trigger') AS last_of_others
              FROM interlock_internal.list_own_triggers() t
             WHERE t.is_check
             GROUP BY t.tgrelid) e
     WHERE e.tgname < 'zzzz' OR e.last_of_others > e.tgname
    UNION ALL
    SELECT c.rel, c.severity, concat_ws('; ', c.finding, c.evidence), c.advice, 'escrow' FROM interlock_internal.list_cut_off_counters() c;
END;
COMMENT ON FUNCTION interlock_internal.list_escrow_findings() IS 'For advise and the view guards: tables whose escrow counters refuse writes or have lost their key.';
