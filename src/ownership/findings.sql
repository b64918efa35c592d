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
     WHERE t.kind = 'ownership_trigger' AND t.tgparentid = 0 AND (starts_with(c.rule, 'own:') OR starts_with(c.rule, 'once:'))
       AND NOT interlock_internal.has_column(t.tgrelid, c.name)
    UNION ALL
    SELECT DISTINCT t.tgrelid::regclass, 'broken', 'column "value_writers" is gone or has another type: writes are refused',
           format('SELECT interlock.own_columns(%L, %L, ARRAY[%L], %L, once_changed => true) -- after the column of that name, if any, was renamed',
               t.tgrelid::regclass, t.arguments[i + 2], t.arguments[i], substr(t.arguments[i + 1], 6)),
           t.mechanism
      FROM interlock_internal.list_own_triggers() t
     CROSS JOIN LATERAL generate_series(1, cardinality(t.arguments), 3) i
     WHERE t.kind = 'ownership_trigger' AND t.tgparentid = 0 AND starts_with(t.arguments[i + 1], 'once:')
       AND NOT EXISTS (SELECT FROM pg_attribute a
                        WHERE a.attrelid = t.tgrelid AND a.attname = 'value_writers' AND a.atttypid = 'jsonb'::regtype AND a.attgenerated = ''
                          AND NOT a.attisdropped);
END;
COMMENT ON FUNCTION interlock_internal.list_ownership_findings() IS 'For advise and the view guards: owned columns that are gone.';
