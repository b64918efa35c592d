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

-- columns whose names begin alike, and end beyond what a trigger's name can hold
CREATE TABLE long (id int PRIMARY KEY, this_is_a_rather_long_state_column_name_one text,
    this_is_a_rather_long_state_column_name_two text, this_is_a_rather_long_state_column_name_with_the_most_bytes_123 text, short text);
SELECT interlock.define_transitions('long', attname, '{"a": ["b"]}') FROM pg_attribute
 WHERE attrelid = 'long'::regclass AND attnum > 1 ORDER BY attnum;
SELECT regexp_replace(tgname, '[0-9a-f]{8}$', '(hash)') AS trigger, octet_length(tgname) AS bytes, split_part(encode(tgargs, 'escape'), '\000', 1) AS state_column
  FROM pg_trigger WHERE tgrelid = 'long'::regclass ORDER BY 3;
INSERT INTO long VALUES (1, 'a', 'a', 'a', 'a');
UPDATE long SET this_is_a_rather_long_state_column_name_one = 'x';
UPDATE long SET this_is_a_rather_long_state_column_name_two = 'x';
SELECT interlock.transition('long', 1, 'a', 'b', state_column => 'this_is_a_rather_long_state_column_name_one');
SELECT interlock.define_transitions('long', 'this_is_a_rather_long_state_column_name_one', '{"b": ["c"]}');
SELECT interlock.transition('long', 1, 'b', 'c', state_column => 'this_is_a_rather_long_state_column_name_one');
SELECT interlock.drop_transitions('long', 'this_is_a_rather_long_state_column_name_one');
UPDATE long SET this_is_a_rather_long_state_column_name_one = 'free';
UPDATE long SET this_is_a_rather_long_state_column_name_two = 'x';
-- it sorts between the other triggers, which check the row before and after it
SELECT interlock.enable_versioning('long'), interlock.enable_marker('long');
SELECT count(*) FILTER (WHERE tgname ~ 'transition' AND tgname::text COLLATE "C" > 'zzz_interlock_marker' AND tgname::text COLLATE "C" < 'zzz_interlock_version') AS between,
       count(*) AS triggers FROM pg_trigger WHERE tgrelid = 'long'::regclass;
-- a trigger renamed by hand is found again; one of another making is not replaced
ALTER TRIGGER zzz_interlock_transition_short ON long RENAME TO zzz_interlock_transition_mine;
SELECT interlock.define_transitions('long', 'short', '{"a": ["c"]}');
SELECT pg_get_triggerdef(oid) FROM pg_trigger WHERE tgrelid = 'long'::regclass AND tgname ~ '_(short|mine)$';
SELECT interlock.drop_transitions('long', 'short');
CREATE TRIGGER zzz_interlock_transition_short BEFORE UPDATE ON long FOR EACH ROW EXECUTE FUNCTION suppress_redundant_updates_trigger();
\set VERBOSITY default
SELECT interlock.define_transitions('long', 'short', '{"a": ["c"]}');
\set VERBOSITY terse
DROP TABLE long;

DROP TABLE shape;
DROP FUNCTION try_define;
