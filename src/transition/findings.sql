-- Findings about transitions

CREATE FUNCTION interlock_internal.list_transition_findings(
    OUT rel regclass, OUT severity text, OUT finding text, OUT advice text, OUT mechanism text) RETURNS SETOF record
    LANGUAGE sql STABLE
BEGIN ATOMIC
    SELECT t.tgrelid::regclass, 'broken', format('state column "%s" is gone: writes are refused', t.arguments[1]),
           -- No name stands in a comment: it could end the line.
           format('SELECT interlock.drop_transitions(%L, %L) -- if it was renamed, first interlock.define_transitions for its present name',
               t.tgrelid::regclass, t.arguments[1]),
           t.mechanism
      FROM interlock_internal.list_own_triggers() t
     WHERE t.kind = 'transition_trigger' AND t.tgparentid = 0 AND NOT interlock_internal.has_column(t.tgrelid, t.arguments[1]);
END;
COMMENT ON FUNCTION interlock_internal.list_transition_findings() IS 'For advise and the view guards: state columns that are gone.';
