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
start in one of those states. on_repeat is for an update that names the column and keeps the state. allow: it passes. reject: it
needs a declared transition from the state to itself. guards: {"open": {"claimed": "may_claim"}}, functions
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

CREATE FUNCTION interlock.next_states(
    rel regclass, key text, state_column name = NULL, OUT state text, OUT allowed boolean, OUT reason text)
    RETURNS SETOF record
    LANGUAGE c AS 'MODULE_PATHNAME';
CREATE FUNCTION interlock.next_states(
    rel regclass, key "any", state_column name = NULL, OUT state text, OUT allowed boolean, OUT reason text)
    RETURNS SETOF record
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.next_states(regclass, text, name) IS
'Lists the states that the row may go to from its current state, in the order of the declaration. allowed: whether a change of the
state alone would succeed now. reason: why it would not: the message of the guard, the error that the guard raises, or the privilege that the caller
lacks. Locks nothing, and rolls back what a guard writes. A later transition is checked again. Needs SELECT on the key and the state column, and
on all columns if the table has guards. Errors: P0002 no such row, 55000 no transitions, 22023 several state columns and none is named.';
COMMENT ON FUNCTION interlock.next_states(regclass, "any", name) IS
'As next_states(regclass, text, name), for a key of another type.';

CREATE FUNCTION interlock.next_states_many(
    rel regclass, keys text, state_column name = NULL, OUT key jsonb, OUT state text, OUT allowed boolean, OUT reason text)
    RETURNS SETOF record
    LANGUAGE c AS 'MODULE_PATHNAME';
CREATE FUNCTION interlock.next_states_many(
    rel regclass, keys "any", state_column name = NULL, OUT key jsonb, OUT state text, OUT allowed boolean, OUT reason text)
    RETURNS SETOF record
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.next_states_many(regclass, text, name) IS
'As next_states, for several rows in one call. keys: an array of the primary key''s type, or a JSON array, as select_for_update
takes them. A row that does not exist, or that has no next state, has no line. Errors: 55000 no transitions, 22023 several state columns.';
COMMENT ON FUNCTION interlock.next_states_many(regclass, "any", name) IS
'As next_states_many(regclass, text, name), for an array of any type, or a jsonb array.';

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
