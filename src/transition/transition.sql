-- Status transitions

CREATE FUNCTION interlock_internal.transition_trigger() RETURNS trigger
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock_internal.transition_trigger() IS
'Refuses a change of state that is not declared (IL002). Created by define_transitions; arguments: state column,
transitions, initial states, what becomes of a repeated state, numbers of guards. Its condition is always true, and names the guards. Checks updates; initial_state_trigger checks new rows.';

CREATE FUNCTION interlock_internal.initial_state_trigger() RETURNS trigger
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock_internal.initial_state_trigger() IS
'Refuses a new row whose state is not initial (IL002). Created by define_transitions when there are initial states;
argument: state column.';

CREATE FUNCTION interlock.define_transitions(
    rel regclass, state_column name, transitions jsonb, initial text[] = NULL, on_repeat text = 'allow',
    guards jsonb = '{}') RETURNS void
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.define_transitions(regclass, name, jsonb, text[], text, jsonb) IS
'Declares which states may follow which: {"pending": ["paid", "cancelled"], "paid": ["shipped"]}. For the owner of the table.
The column is of a text, integer, numeric, boolean, uuid or enum type. It holds for every writer, plain SQL too; when initial is given, inserted rows
start in one of those states. on_repeat: an update that names the column and leaves the state as it is may do so (allow), or is a
transition from the state to itself, which must be declared (reject). guards: {"open": {"claimed": "may_claim"}}, functions
of the old and the new row that run as the writer, and return boolean, or a text that says why not. Calling it again replaces the declaration; rows in a state that is no longer declared stay and
cannot leave it. Errors: 42501 not the owner, 42703 no such column, 42804 type, 22023 shape, 22P02 no state of that type.';

CREATE FUNCTION interlock.drop_transitions(rel regclass, state_column name) RETURNS void
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.drop_transitions(regclass, name) IS
'Lets the column change freely again. For the owner of the table. Errors: 55000 no transitions.';

CREATE FUNCTION interlock.transition(
    rel regclass, key text, from_state text, to_state text, changes jsonb = '{}', state_column name = NULL, match jsonb = '{}') RETURNS void
    LANGUAGE c AS 'MODULE_PATHNAME';
CREATE FUNCTION interlock.transition(
    rel regclass, key "any", from_state text, to_state text, changes jsonb = '{}', state_column name = NULL, match jsonb = '{}') RETURNS void
    LANGUAGE c AS 'MODULE_PATHNAME';
CREATE FUNCTION interlock.transition(
    rel regclass, key text, from_state "any", to_state "any", changes jsonb = '{}', state_column name = NULL, match jsonb = '{}') RETURNS void
    LANGUAGE c AS 'MODULE_PATHNAME';
CREATE FUNCTION interlock.transition(
    rel regclass, key "any", from_state "any", to_state "any", changes jsonb = '{}', state_column name = NULL, match jsonb = '{}') RETURNS void
    LANGUAGE c AS 'MODULE_PATHNAME';
CREATE FUNCTION interlock.transition(
    rel regclass, key text, from_state text[], to_state text, changes jsonb = '{}', state_column name = NULL, match jsonb = '{}') RETURNS void
    LANGUAGE c AS 'MODULE_PATHNAME';
CREATE FUNCTION interlock.transition(
    rel regclass, key "any", from_state text[], to_state text, changes jsonb = '{}', state_column name = NULL, match jsonb = '{}') RETURNS void
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.transition(regclass, text, text, text, jsonb, name, jsonb) IS
'Moves one row from one state to another and makes the other changes with it, if it is still in the first state: of callers
that race exactly one wins. States are values of the column''s type, or their text; from_state is one, or an array. match: only if these
columns still have these values, null for a column that is null. state_column is needed where several columns have transitions.
Errors: IL002 not declared, IL003 the row is in another state or does not match, P0002 no such row, 55000 no transitions, 22023 a state that no
transition names, 22P02 no state of that type,
42703 match of an unknown column, 09000 the owner of the state column, or a trigger, has restored the state, 40001 under REPEATABLE READ and above
when the row changed after the snapshot.';
COMMENT ON FUNCTION interlock.transition(regclass, "any", text, text, jsonb, name, jsonb) IS
'As transition(regclass, text, text, text, jsonb, name, jsonb), for a key of another type.';
COMMENT ON FUNCTION interlock.transition(regclass, text, "any", "any", jsonb, name, jsonb) IS
'As transition(regclass, text, text, text, jsonb, name, jsonb), for states of another type, or an array of states.';
COMMENT ON FUNCTION interlock.transition(regclass, "any", "any", "any", jsonb, name, jsonb) IS
'As transition(regclass, text, text, text, jsonb, name, jsonb), for a key and states of other types.';
COMMENT ON FUNCTION interlock.transition(regclass, text, text[], text, jsonb, name, jsonb) IS
'As transition(regclass, text, text, text, jsonb, name, jsonb), for several states that the row may be in.';
COMMENT ON FUNCTION interlock.transition(regclass, "any", text[], text, jsonb, name, jsonb) IS
'As transition(regclass, text, text, text, jsonb, name, jsonb), for a key of another type and several states.';

CREATE FUNCTION interlock.try_transition(
    rel regclass, key text, from_state text, to_state text, changes jsonb = '{}', state_column name = NULL, match jsonb = '{}',
    OUT outcome text, OUT state text, OUT current jsonb, OUT reason text)
    LANGUAGE c AS 'MODULE_PATHNAME';
CREATE FUNCTION interlock.try_transition(
    rel regclass, key "any", from_state text, to_state text, changes jsonb = '{}', state_column name = NULL, match jsonb = '{}',
    OUT outcome text, OUT state text, OUT current jsonb, OUT reason text)
    LANGUAGE c AS 'MODULE_PATHNAME';
CREATE FUNCTION interlock.try_transition(
    rel regclass, key text, from_state "any", to_state "any", changes jsonb = '{}', state_column name = NULL, match jsonb = '{}',
    OUT outcome text, OUT state text, OUT current jsonb, OUT reason text)
    LANGUAGE c AS 'MODULE_PATHNAME';
CREATE FUNCTION interlock.try_transition(
    rel regclass, key "any", from_state "any", to_state "any", changes jsonb = '{}', state_column name = NULL, match jsonb = '{}',
    OUT outcome text, OUT state text, OUT current jsonb, OUT reason text)
    LANGUAGE c AS 'MODULE_PATHNAME';
CREATE FUNCTION interlock.try_transition(
    rel regclass, key text, from_state text[], to_state text, changes jsonb = '{}', state_column name = NULL, match jsonb = '{}',
    OUT outcome text, OUT state text, OUT current jsonb, OUT reason text)
    LANGUAGE c AS 'MODULE_PATHNAME';
CREATE FUNCTION interlock.try_transition(
    rel regclass, key "any", from_state text[], to_state text, changes jsonb = '{}', state_column name = NULL, match jsonb = '{}',
    OUT outcome text, OUT state text, OUT current jsonb, OUT reason text)
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.try_transition(regclass, text, text, text, jsonb, name, jsonb) IS
'As transition, but returns an outcome: transitioned, state_changed, no_match, not_allowed, not_found; state is the row''s state afterwards,
current the row as it is where it was not moved, with the columns that the caller may SELECT; reason what a guard says against it.';
COMMENT ON FUNCTION interlock.try_transition(regclass, "any", text, text, jsonb, name, jsonb) IS
'As try_transition(regclass, text, text, text, jsonb, name, jsonb), for a key of another type.';
COMMENT ON FUNCTION interlock.try_transition(regclass, text, "any", "any", jsonb, name, jsonb) IS
'As try_transition(regclass, text, text, text, jsonb, name, jsonb), for states of another type, or an array of states.';
COMMENT ON FUNCTION interlock.try_transition(regclass, "any", "any", "any", jsonb, name, jsonb) IS
'As try_transition(regclass, text, text, text, jsonb, name, jsonb), for a key and states of other types.';
COMMENT ON FUNCTION interlock.try_transition(regclass, text, text[], text, jsonb, name, jsonb) IS
'As try_transition(regclass, text, text, text, jsonb, name, jsonb), for several states that the row may be in.';
COMMENT ON FUNCTION interlock.try_transition(regclass, "any", text[], text, jsonb, name, jsonb) IS
'As try_transition(regclass, text, text, text, jsonb, name, jsonb), for a key of another type and several states.';

CREATE FUNCTION interlock_internal.list_transitions(
    OUT rel regclass, OUT state_column name, OUT from_state text, OUT to_state text, OUT guard regprocedure, OUT is_initial boolean)
    RETURNS SETOF record
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock_internal.list_transitions() IS 'The rows of the view transitions.';

CREATE VIEW interlock.transitions AS SELECT * FROM interlock_internal.list_transitions();
GRANT SELECT ON interlock.transitions TO PUBLIC;
COMMENT ON VIEW interlock.transitions IS
'Every declared transition of the tables on which the reader has some privilege, with its guard; a state from which none is declared
has a line without to_state. is_initial: a new row may have from_state. Partitions are as the table that they belong to.';

CREATE FUNCTION interlock_internal.list_lost_states(
    OUT rel regclass, OUT severity text, OUT finding text, OUT evidence text, OUT advice text) RETURNS SETOF record
    LANGUAGE sql STABLE
BEGIN ATOMIC
    WITH declared AS (
        SELECT t.rel, t.state_column, t.from_state, t.to_state, t.guard, t.is_initial,
               COALESCE(NULLIF(y.typbasetype, 0::pg_catalog.oid), y.oid) AS type
          FROM interlock_internal.list_transitions() t
          JOIN pg_catalog.pg_attribute a
            ON a.attrelid OPERATOR(pg_catalog.=) t.rel::pg_catalog.oid AND a.attname OPERATOR(pg_catalog.=) t.state_column AND NOT a.attisdropped
          JOIN pg_catalog.pg_type y ON y.oid OPERATOR(pg_catalog.=) a.atttypid),
    named AS ( -- labels of an enum, each once
        SELECT d.rel, d.state_column, d.type, s.state
          FROM declared d
         CROSS JOIN LATERAL (VALUES (d.from_state), (d.to_state)) s (state)
         WHERE s.state IS NOT NULL
           AND EXISTS (SELECT FROM pg_catalog.pg_enum e WHERE e.enumtypid OPERATOR(pg_catalog.=) d.type)
         GROUP BY d.rel, d.state_column, d.type, s.state),
    lost AS (
        SELECT n.rel, n.state_column, n.type, pg_catalog.array_agg(n.state ORDER BY n.state) AS states
          FROM named n
         WHERE NOT EXISTS (SELECT FROM pg_catalog.pg_enum e
                            WHERE e.enumtypid OPERATOR(pg_catalog.=) n.type
                              AND e.enumlabel::pg_catalog.text OPERATOR(pg_catalog.=) n.state)
         GROUP BY n.rel, n.state_column, n.type),
    faults AS ( -- if one state is lost, and one label is in no transition, that is its new name
        SELECT l.rel, l.state_column, l.type, l.states,
               CASE WHEN pg_catalog.cardinality(l.states) OPERATOR(pg_catalog.=) 1 AND u.count OPERATOR(pg_catalog.=) 1 THEN u.label END AS new_name
          FROM lost l
         CROSS JOIN LATERAL (
            SELECT pg_catalog.count(*) AS count, pg_catalog.min(e.enumlabel::pg_catalog.text) AS label
              FROM pg_catalog.pg_enum e
             WHERE e.enumtypid OPERATOR(pg_catalog.=) l.type
               AND NOT EXISTS (SELECT FROM named n
                                WHERE n.rel::pg_catalog.oid OPERATOR(pg_catalog.=) l.rel::pg_catalog.oid
                                  AND n.state_column OPERATOR(pg_catalog.=) l.state_column
                                  AND n.state OPERATOR(pg_catalog.=) e.enumlabel::pg_catalog.text)) u),
    renamed AS ( -- the declaration with the new name
        SELECT f.rel, f.state_column,
               CASE d.from_state WHEN f.states[1] THEN f.new_name ELSE d.from_state END AS from_state,
               CASE d.to_state WHEN f.states[1] THEN f.new_name ELSE d.to_state END AS to_state,
               d.guard, d.is_initial
          FROM faults f
          JOIN declared d ON d.rel::pg_catalog.oid OPERATOR(pg_catalog.=) f.rel::pg_catalog.oid
                         AND d.state_column OPERATOR(pg_catalog.=) f.state_column
         WHERE f.new_name IS NOT NULL),
    states AS (
        SELECT r.rel, r.state_column, r.from_state, pg_catalog.bool_and(r.is_initial) AS is_initial,
               pg_catalog.jsonb_agg(r.to_state ORDER BY r.to_state) FILTER (WHERE r.to_state IS NOT NULL) AS targets,
               pg_catalog.jsonb_object_agg(r.to_state, r.guard::pg_catalog.text) FILTER (WHERE r.guard IS NOT NULL) AS guards
          FROM renamed r
         GROUP BY r.rel, r.state_column, r.from_state),
    statements AS (
        SELECT s.rel, s.state_column,
               pg_catalog.format('SELECT interlock.define_transitions(%L, %L, %L, initial => %s, on_repeat => %L, guards => %L)',
                   s.rel, s.state_column,
                   COALESCE(pg_catalog.jsonb_object_agg(s.from_state, s.targets) FILTER (WHERE s.targets IS NOT NULL), '{}'::pg_catalog.jsonb),
                   CASE t.texts[3] WHEN '' THEN 'NULL'
                        ELSE pg_catalog.quote_literal(COALESCE(
                                 pg_catalog.array_agg(s.from_state ORDER BY s.from_state) FILTER (WHERE s.is_initial), '{}'::pg_catalog.text[])::pg_catalog.text) END,
                   t.texts[4],
                   COALESCE(pg_catalog.jsonb_object_agg(s.from_state, s.guards) FILTER (WHERE s.guards IS NOT NULL), '{}'::pg_catalog.jsonb)) AS statement
          FROM states s
         CROSS JOIN LATERAL (
            SELECT interlock_internal.split_arguments(g.tgargs) AS texts
              FROM pg_catalog.pg_trigger g
              JOIN pg_catalog.pg_proc p ON p.oid OPERATOR(pg_catalog.=) g.tgfoid
             WHERE g.tgrelid OPERATOR(pg_catalog.=) s.rel::pg_catalog.oid AND g.tgparentid OPERATOR(pg_catalog.=) 0::pg_catalog.oid
               AND p.oid OPERATOR(pg_catalog.=) 'interlock_internal.transition_trigger()'::pg_catalog.regprocedure::pg_catalog.oid) t
         WHERE t.texts[1] OPERATOR(pg_catalog.=) s.state_column::pg_catalog.text
         GROUP BY s.rel, s.state_column, t.texts)
    SELECT f.rel, 'broken',
           pg_catalog.format('transitions of column "%s" name states that its type does not have: "%s"', f.state_column,
                             pg_catalog.array_to_string(f.states, '", "')),
           pg_catalog.format('the labels of type %s', pg_catalog.format_type(f.type, NULL)),
           COALESCE(s.statement,
                    pg_catalog.format('the owner of the table calls interlock.define_transitions with the labels that the type has; '
                                      'SELECT interlock.configuration(%L) shows the present transitions', f.rel))
      FROM faults f
      LEFT JOIN statements s ON s.rel::pg_catalog.oid OPERATOR(pg_catalog.=) f.rel::pg_catalog.oid
                            AND s.state_column OPERATOR(pg_catalog.=) f.state_column;
END;
COMMENT ON FUNCTION interlock_internal.list_lost_states() IS
'For advise: transitions that name labels which their enum does not have, as it was altered since.';
