-- Findings about markers

CREATE FUNCTION interlock_internal.list_marker_findings(
    OUT rel regclass, OUT severity text, OUT finding text, OUT advice text, OUT mechanism text) RETURNS SETOF record
    LANGUAGE sql STABLE
BEGIN ATOMIC
    SELECT t.tgrelid::regclass, 'broken', format('marker column "%s" is gone: writes are refused', c.name),
           format('SELECT interlock.enable_marker(%L, ttl => %L, enforce => %L, notify => %L, status_column => %L, '
                  'holder_column => %L, time_column => %L, until_column => %L, reason_column => %L%s%s) '
                  '-- adds it; for a column that was renamed give its current name',
               t.tgrelid::regclass, t.arguments[1], t.arguments[2] = 'enforce',
               (SELECT CASE WHEN max(n.tgnargs) IS NULL THEN 'off' WHEN max(n.tgnargs) = 0 THEN 'on' ELSE 'full' END
                  FROM interlock_internal.list_own_triggers() n
                 WHERE n.tgrelid = t.tgrelid AND n.kind = 'marker_notify_trigger'),
               t.arguments[3], t.arguments[4], t.arguments[5], t.arguments[6], t.arguments[7],
               CASE WHEN 'no sweep index' = ANY (t.arguments[8:]) THEN ', sweep_index => false' END,
               (SELECT max(format(', take_over => %L', a)) FROM unnest(t.arguments[8:]) a WHERE a <> 'no sweep index')),
           t.mechanism
      FROM interlock_internal.list_own_triggers() t
     CROSS JOIN LATERAL unnest(t.arguments[3:7]) c (name)
     WHERE t.kind = 'marker_trigger' AND t.tgparentid = 0 AND NOT interlock_internal.has_column(t.tgrelid, c.name);
END;
COMMENT ON FUNCTION interlock_internal.list_marker_findings() IS 'For advise and the view guards: columns of markers that are gone.';
