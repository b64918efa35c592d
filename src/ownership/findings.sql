-- Findings about owned columns

CREATE FUNCTION interlock_internal.list_ownership_findings(
    OUT rel regclass, OUT severity text, OUT finding text, OUT advice text, OUT mechanism text) RETURNS SETOF record
    LANGUAGE sql STABLE
BEGIN ATOMIC
    SELECT DISTINCT t.tgrelid::regclass, 'broken', format('owned column "%s" is gone: writes are refused', c.name),
           format('SELECT interlock.release_columns(%L, ARRAY[%L]) -- if it was renamed, then interlock.own_columns for its current name',
               t.tgrelid::regclass, c.name),
           t.mechanism
      FROM interlock_internal.list_own_triggers() t
     CROSS JOIN LATERAL generate_series(1, cardinality(t.arguments), 3) i -- rules of three arguments each
     CROSS JOIN LATERAL (SELECT t.arguments[i], t.arguments[i + 1]) c (name, rule)
     WHERE t.kind = 'ownership_trigger' AND t.tgparentid = 0 AND starts_with(c.rule, 'own:')
       AND NOT interlock_internal.has_column(t.tgrelid, c.name);
END;
COMMENT ON FUNCTION interlock_internal.list_ownership_findings() IS 'For advise and the view guards: owned columns that are gone.';
