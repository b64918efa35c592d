-- Findings about transitions

CREATE FUNCTION interlock_internal.list_lost_states(
    OUT rel regclass, OUT finding text, OUT advice text) RETURNS SETOF record
    LANGUAGE sql STABLE
BEGIN ATOMIC
    WITH declared AS (
        SELECT t.rel, t.state_column, t.from_state, t.to_state, t.guard, t.is_initial,
               COALESCE(NULLIF(y.typbasetype, 0::oid), y.oid) AS type
          FROM interlock_internal.list_transitions() t
          JOIN pg_attribute a ON a.attrelid = t.rel::oid AND a.attname = t.state_column AND NOT a.attisdropped
          JOIN pg_type y ON y.oid = a.atttypid),
    named AS ( -- labels of an enum, each once
        SELECT d.rel, d.state_column, d.type, s.state
          FROM declared d
         CROSS JOIN LATERAL (VALUES (d.from_state), (d.to_state)) s (state)
         WHERE s.state IS NOT NULL
           AND EXISTS (SELECT FROM pg_enum e WHERE e.enumtypid = d.type)
         GROUP BY d.rel, d.state_column, d.type, s.state),
    lost AS (
        SELECT n.rel, n.state_column, n.type, array_agg(n.state ORDER BY n.state) AS states
          FROM named n
         WHERE NOT EXISTS (SELECT FROM pg_enum e
                            WHERE e.enumtypid = n.type
                              AND e.enumlabel::text = n.state)
         GROUP BY n.rel, n.state_column, n.type),
    faults AS ( -- if one state is lost, and one label is in no transition, that is its new name
        SELECT l.rel, l.state_column, l.type, l.states,
               CASE WHEN cardinality(l.states) = 1 AND u.count = 1 THEN u.label END AS new_name
          FROM lost l
         CROSS JOIN LATERAL (
            SELECT count(*) AS count, min(e.enumlabel::text) AS label
              FROM pg_enum e
             WHERE e.enumtypid = l.type
               AND NOT EXISTS (SELECT FROM named n
                                WHERE n.rel::oid = l.rel::oid
                                  AND n.state_column = l.state_column
                                  AND n.state = e.enumlabel::text)) u),
    renamed AS ( -- the declaration with the new name
        SELECT f.rel, f.state_column,
               CASE d.from_state WHEN f.states[1] THEN f.new_name ELSE d.from_state END AS from_state,
               CASE d.to_state WHEN f.states[1] THEN f.new_name ELSE d.to_state END AS to_state,
               d.guard, d.is_initial
          FROM faults f
          JOIN declared d ON d.rel::oid = f.rel::oid
                         AND d.state_column = f.state_column
         WHERE f.new_name IS NOT NULL),
    states AS (
        SELECT r.rel, r.state_column, r.from_state, bool_and(r.is_initial) AS is_initial,
               jsonb_agg(r.to_state ORDER BY r.to_state) FILTER (WHERE r.to_state IS NOT NULL) AS targets,
               jsonb_object_agg(r.to_state, r.guard::text) FILTER (WHERE r.guard IS NOT NULL) AS guards
          FROM renamed r
         GROUP BY r.rel, r.state_column, r.from_state),
    statements AS (
        SELECT s.rel, s.state_column,
               format('SELECT interlock.define_transitions(%L, %L, %L, initial => %s, on_repeat => %L, guards => %L)',
                   s.rel, s.state_column,
                   COALESCE(jsonb_object_agg(s.from_state, s.targets) FILTER (WHERE s.targets IS NOT NULL), '{}'::jsonb),
                   CASE t.arguments[3] WHEN '' THEN 'NULL'
                        ELSE quote_literal(COALESCE(
                                 array_agg(s.from_state ORDER BY s.from_state) FILTER (WHERE s.is_initial), '{}'::text[])::text) END,
                   t.arguments[4],
                   COALESCE(jsonb_object_agg(s.from_state, s.guards) FILTER (WHERE s.guards IS NOT NULL), '{}'::jsonb)) AS statement
          FROM states s
          JOIN interlock_internal.list_own_triggers() t
            ON t.tgrelid = s.rel::oid AND t.kind = 'transition_trigger' AND t.tgparentid = 0 AND t.arguments[1] = s.state_column::text
         GROUP BY s.rel, s.state_column, t.arguments)
    SELECT f.rel,
           format('transitions of column "%s" name states that type %s does not have: "%s"', f.state_column, format_type(f.type, NULL),
                  array_to_string(f.states, '", "')),
           COALESCE(s.statement,
                    format('the owner of the table calls interlock.define_transitions with the labels that the type has; '
                           'SELECT interlock.configuration(%L) shows the current transitions', f.rel))
      FROM faults f
      LEFT JOIN statements s ON s.rel::oid = f.rel::oid
                            AND s.state_column = f.state_column;
END;
COMMENT ON FUNCTION interlock_internal.list_lost_states() IS
'For advise: transitions that name labels which their enum does not have, as it was altered since.';

CREATE FUNCTION interlock_internal.list_transition_findings(
    OUT rel regclass, OUT severity text, OUT finding text, OUT advice text, OUT mechanism text) RETURNS SETOF record
    LANGUAGE sql STABLE
BEGIN ATOMIC
    SELECT t.tgrelid::regclass, 'broken', format('state column "%s" is gone: writes are refused', t.arguments[1]),
           -- No name stands in a comment: it could end the line.
           format('SELECT interlock.drop_transitions(%L, %L) -- if it was renamed, first interlock.define_transitions for its current name',
               t.tgrelid::regclass, t.arguments[1]),
           t.mechanism
      FROM interlock_internal.list_own_triggers() t
     WHERE t.kind = 'transition_trigger' AND t.tgparentid = 0 AND NOT interlock_internal.has_column(t.tgrelid, t.arguments[1])
    UNION ALL
    SELECT l.rel, 'broken', l.finding, l.advice, 'transitions' FROM interlock_internal.list_lost_states() l;
END;
COMMENT ON FUNCTION interlock_internal.list_transition_findings() IS 'For advise and the view guards: state columns that are gone, and states that were renamed.';
