-- Declaring transitions: what is refused, and names
\set VERBOSITY terse
\set SHOW_CONTEXT never
CREATE TABLE shape (id int PRIMARY KEY, state text, num int);
CREATE FUNCTION try_define(state_column name, transitions jsonb) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    PERFORM interlock.define_transitions('shape', state_column, transitions);
    RETURN 'defined';
EXCEPTION WHEN OTHERS THEN
    RETURN SQLSTATE;
END $$;

-- anything but an object of arrays of states, at every level
SELECT t AS transitions, try_define('state', t::jsonb) FROM unnest(ARRAY[
    '1', '"a"', 'true', 'null', '[]', '[{}]', '[["a"]]',
    '{"a": {}}', '{"a": {"b": ["c"]}}', '{"a": {"b": {"c": {}}}}', '{"a": 1}', '{"a": "b"}', '{"a": true}', '{"a": null}',
    '{"a": {}, "b": ["c"]}', '{"a": ["b"], "b": {}}', '{"a": ["b"], "b": null}',
    '{"a": [{}]}', '{"a": [{"b": ["c"]}]}', '{"a": [[]]}', '{"a": [["b"]]}', '{"a": ["b", ["c"]]}', '{"a": ["b", {}]}',
    '{"a": [null]}', '{"a": [true]}', '{"a": ["b", null]}',
    '{}', '{"a": []}', '{"a": ["b", 1], "1": [1.50]}']) t;
SELECT pg_get_triggerdef(oid) FROM pg_trigger WHERE tgrelid = 'shape'::regclass;
\set VERBOSITY default
SELECT interlock.define_transitions('shape', 'state', '{"a": {"b": ["c"]}}');
\set VERBOSITY terse

-- two spellings of one state, which would replace each other
SELECT t AS transitions, try_define('num', t::jsonb) FROM unnest(ARRAY[
    '{"01": ["2"], "1": ["3"]}', '{"1": ["2"], " 1": ["3"], "2": []}', '{"1": ["2", "02", 2]}']) t;
SELECT pg_get_triggerdef(oid) FROM pg_trigger WHERE tgname = 'zzz_interlock_transition_num';
\set VERBOSITY default
SELECT interlock.define_transitions('shape', 'num', '{"01": ["2"], "1": ["3"]}');
\set VERBOSITY terse

DROP TABLE shape;
DROP FUNCTION try_define;
