-- Shared columns: what try_versioned_update makes of a column that both sides changed (OWN-3)
\set VERBOSITY terse
\set SHOW_CONTEXT never
CREATE DOMAIN small AS int CHECK (value < 100);
CREATE DOMAIN price AS numeric(5,2);
CREATE DOMAIN labels AS text[] CHECK (cardinality(value) < 4);
CREATE TABLE doc (id int PRIMARY KEY, i2 int2, i4 int, i8 int8, n numeric(8,2), f4 real, f8 float8, d small, p price, t text, ts timestamptz,
    ia int[], ta text[], na numeric[], ja json[], l labels, j jsonb, js json, p8 pg_lsn, b boolean);
SELECT interlock.enable_versioning('doc');
SELECT interlock.share_columns('doc', '{i2,i4,i8,n,f4,f8,d,p,t,ts,ia,ta,na,ja,l,j,js,p8,b}', 'merge');

-- merge(column, base, theirs, mine): what becomes of it; each argument as JSON
CREATE FUNCTION merge(col text, base jsonb, theirs jsonb, mine jsonb) RETURNS text LANGUAGE plpgsql AS $$
DECLARE r record; stored text;
BEGIN
    DELETE FROM doc;
    INSERT INTO doc SELECT * FROM jsonb_populate_record(NULL::doc, jsonb_build_object('id', 1, col, base, 'version', 1));
    PERFORM interlock.versioned_update('doc', 1, 1, jsonb_build_object(col, theirs));
    SELECT * INTO r FROM interlock.try_versioned_update('doc', 1, 1, jsonb_build_object(col, mine), jsonb_build_object(col, base), 'merge');
    EXECUTE format('SELECT %I::text FROM doc', col) INTO stored;
    RETURN concat_ws(' ', r.outcome, r.version, coalesce(stored, 'null'), r.conflicts);
EXCEPTION WHEN OTHERS THEN RETURN SQLSTATE || ' ' || SQLERRM;
END $$;

-- numbers: both changes, also when both are the same
SELECT c, base, theirs, mine, merge(c, base::jsonb, theirs::jsonb, mine::jsonb) FROM (VALUES
    ('i2', '10', '12', '15'), ('i2', '10', '11', '11'), ('i2', '10', '5', '10'), ('i2', '10', '10', '5'), ('i2', '0', '32767', '1'), ('i2', '0', '-32768', '-1'), ('i2', '0', '32766', '1'),
    ('i4', '10', '12', '15'), ('i4', '2147483647', '-2147483648', '2147483646'), ('i4', '0', '2147483647', '1'), ('i4', '-2147483648', '0', '2147483647'),
    ('i8', '10', '12', '15'), ('i8', '9223372036854775807', '-9223372036854775808', '9223372036854775806'), ('i8', '-9223372036854775808', '-1', '9223372036854775807'),
    ('i8', '0', '9223372036854775807', '1'), ('i8', '-9223372036854775808', '-9223372036854775807', '9223372036854775807'),
    ('n', '10.50', '11', '9.25'), ('n', '0', '999999.99', '0.01'), ('n', '0', '"NaN"', '1'),
    ('f4', '1', '1.5', '3'), ('f4', '0', '3e38', '3e38'), ('f4', '0', '"Infinity"', '1'), ('f8', '1', '1.5', '3'), ('f8', '0', '1e308', '1e308'), ('f8', '"-Infinity"', '0', '1'),
    ('d', '10', '50', '60'), ('d', '10', '60', '60'), ('p', '0', '999.99', '0.01'), ('p', '1.10', '2.20', '0.10'),
    ('i4', 'null', '1', '2'), ('i4', '1', 'null', '2'), ('i4', '1', '2', 'null'), ('i4', 'null', '1', '1'), ('i4', '1', 'null', 'null')) v (c, base, theirs, mine);
-- no merge for these
SELECT c, base, theirs, mine, merge(c, base::jsonb, theirs::jsonb, mine::jsonb) FROM (VALUES
    ('t', '"a"', '"b"', '"c"'), ('t', '"a"', '"b"', '"b"'), ('ts', '"2026-01-01"', '"2026-01-02"', '"2026-01-03"'), ('b', 'null', 'true', 'false'),
    ('p8', '"0/10000001"', '"0/10000002"', '"0/10000003"'), ('js', '{}', '{"a": 1}', '{"b": 1}'), ('ja', '[{}]', '[{}, {}]', '[]')) v (c, base, theirs, mine);
-- arrays: sets, in their order, then what was added
SELECT c, base, theirs, mine, merge(c, base::jsonb, theirs::jsonb, mine::jsonb) FROM (VALUES
    ('ia', '[1,2,3]', '[3,1]', '[1,2,3,4]'), ('ia', '[1,2,3]', '[1,2,3,4,5]', '[3,6,4]'), ('ia', '[1]', '[2]', '[3]'), ('ia', '[1]', '[1,2]', '[]'), ('ia', '[1]', '[]', '[1,2]'),
    ('ia', '[1]', '[]', '[]'), ('ia', '[1,2]', '[1]', '[2]'), ('ia', 'null', '[1]', '[2]'), ('ia', '[1]', 'null', '[1,2]'), ('ia', '[1]', '[2]', 'null'),
    ('ia', '[1,1]', '[1]', '[1,2]'), ('ia', '[1]', '[1,2,2]', '[1,3]'), ('ia', '[1]', '[1,2]', '[3,3]'), ('ia', '[null]', '[null,1]', '[null,2]'), ('ia', '[1]', '[1,null]', '[1,null,2]'),
    ('ia', '[1,null]', '[1,null,2]', '[1]'), ('ia', '[null,null]', '[1]', '[2]'), ('ia', '[[1,2]]', '[[1,2],[3,4]]', '[[5,6]]'), ('ia', '[]', '[1,2]', '[2,1]'), ('ia', '[1,2]', '[2,1]', '[1,2,3]'),
    ('ta', '["a"]', '["a","b"]', '["a","B",""]'), ('na', '[1.0,2]', '[1,2.00,3]', '[2]'), ('l', '["a"]', '["a","b"]', '["a","c"]'), ('l', '["a","b"]', '["a","b","c"]', '["a","b","d"]')) v (c, base, theirs, mine);
SELECT merge('ia', '"[5:6]={1,2}"', '"[0:2]={1,2,3}"', '"[5:7]={1,2,4}"') AS lower_bounds;
-- jsonb: objects member by member, also nested, deletions too; arrays as sets; scalars do not combine
SELECT base, theirs, mine, merge('j', base::jsonb, theirs::jsonb, mine::jsonb) FROM (VALUES
    ('{"a": 1}', '{"a": 1, "b": 1}', '{"a": 1, "c": 1}'), ('{"a": 1, "b": 1}', '{"b": 1}', '{"a": 1}'), ('{"a": 1}', '{"a": 2}', '{"a": 1, "b": 1}'), ('{"a": 1}', '{"a": 2}', '{"a": 3}'),
    ('{"a": 1}', '{"a": 2}', '{"a": 2.0, "b": 1}'), ('{"a": 1, "c": 1}', '{"a": 2, "c": 1}', '{"c": 1}'), ('{"a": 1, "c": 1}', '{"c": 1}', '{"a": 2, "c": 1}'), ('{"a": 1, "c": 1}', '{}', '{"c": 1}'),
    ('{"o": {"x": {"y": 1}}}', '{"o": {"x": {"y": 1, "z": 2}}}', '{"o": {"x": {}, "w": null}}'), ('{}', '{"o": {"x": 1}}', '{"o": {"y": 1}}'), ('{"o": null}', '{"o": {"x": 1}}', '{"o": {"y": 1}}'),
    ('{"o": 1}', '{"o": {"x": 1}}', '{"o": {"y": 1}}'), ('{"o": {"x": 1}}', '{"o": {"x": 1, "y": 1}}', '{"o": null}'), ('{"o": {}}', '{"o": [1]}', '{"o": {"x": 1}}'),
    ('{"s": [1, 2]}', '{"s": [1, 2, 3]}', '{"s": [2, "3", null]}'), ('{"s": []}', '{"s": [{"a": 1.0}]}', '{"s": [{"a": 1}, [1]]}'), ('{"s": [1]}', '{"s": [1, 1]}', '{"s": [2]}'),
    ('[1, 2]', '[1, 2, 3]', '[1, 2, 4]'), ('[1]', '{"a": 1}', '[2]'), ('1', '2', '3'), ('"a"', '{"a": 1}', '{"b": 1}'), ('null', '{"a": 1}', '{"b": 1}'), ('{"a": 1}', 'null', '{"b": 1}'), ('{"a": 1}', '{"a": 2}', 'null'),
    ('{}', '{"": 1}', '{"é\"": 2}')) v (base, theirs, mine);
SELECT merge('j', j, jsonb_set(j, '{k1}', '-1'), j || '{"k2": -2, "new": 0}') LIKE 'merged 3 {"k1": -1, "k2": -2, %' AS large
  FROM (SELECT jsonb_object_agg('k' || g, repeat('x', 100)) AS j FROM generate_series(1, 1000) g) o;
SELECT merge('ia', to_jsonb(array_agg(g)), to_jsonb(array_agg(g) || 0), to_jsonb(array_agg(g) || -1)) LIKE '%,19999,20000,0,-1}' AS large FROM generate_series(1, 20000) g;
SELECT merge('j', to_jsonb(array_agg(g)), to_jsonb(array_agg(g) || 0), to_jsonb(array_agg(g) || -1)) LIKE '%, 9999, 10000, 0, -1]' AS large FROM generate_series(1, 10000) g;
-- arrays of objects are no sets: a side's change of one would make two of it
SELECT merge('j', '[{"id": 1, "n": 1}]', '[{"id": 1, "n": 2}]', '[{"id": 1, "n": 3}]') AS changed, merge('j', '[[1]]', '[[1], [2]]', '[[1], [3]]') AS nested,
       merge('j', '{"a": [{}], "b": 1}', '{"a": [{}], "b": 2}', '{"a": [{}, 1], "b": 1}') AS one_side, merge('j', '[1, null, true, "1", "a"]', '[1.0, null, "1"]', '[1, true, "a", false, "1"]') AS scalars;
-- in bounded memory: some hundred bytes for each element
CREATE TEMP TABLE used AS SELECT 0::bigint AS bytes;
CREATE FUNCTION note_memory() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN UPDATE used SET bytes = (SELECT sum(total_bytes) FROM pg_backend_memory_contexts); RETURN NULL; END $$;
CREATE TRIGGER note_memory AFTER UPDATE ON doc FOR EACH ROW EXECUTE FUNCTION note_memory();
SELECT merge('j', to_jsonb(array_agg(g)), to_jsonb(array_agg(g) || 0), to_jsonb(array_agg(g) || -1)) LIKE '%, 0, -1]' AS large FROM generate_series(1, 50000) g;
SELECT bytes < 150000000 AS bounded FROM used;
DROP TRIGGER note_memory ON doc;
DROP FUNCTION note_memory;
DROP TABLE used;
-- a float's change that is lost beside theirs
SELECT merge('f8', '1', '1e300', '2'), merge('f4', '1', '1e30', '2'), merge('f8', '1', '1e300', '1'), merge('f8', '1', '1e10', '2');
-- what the type calls equal may be a change: blanks at the end, a month of 30 days
CREATE TABLE loose (id int PRIMARY KEY, name bpchar, every interval, n numeric, ns numeric[], f float8, at timestamptz);
SELECT interlock.enable_versioning('loose');
CREATE FUNCTION merge_loose(col text, base jsonb, theirs jsonb, mine jsonb) RETURNS text LANGUAGE plpgsql AS $$
DECLARE r record;
BEGIN
    DELETE FROM loose;
    INSERT INTO loose SELECT * FROM jsonb_populate_record(NULL::loose, jsonb_build_object('id', 1, col, theirs, 'version', 2));
    SELECT * INTO r FROM interlock.try_versioned_update('loose', 1, 1, jsonb_build_object(col, mine), jsonb_build_object(col, base), 'merge');
    RETURN concat_ws(' ', r.outcome, r.current->col, r.conflicts);
END $$;
SELECT c, base, theirs, mine, merge_loose(c, base::jsonb, theirs::jsonb, mine::jsonb) FROM (VALUES
    ('name', '"a"', '"a"', '"a "'), ('name', '"a"', '"a "', '"b"'), ('every', '"1 month"', '"1 month"', '"30 days"'), ('every', '"1 month"', '"30 days"', '"1 day"'),
    ('n', '1', '1.00', '2'), ('ns', '[1, 2]', '[1.0, 2.00]', '[3]'), ('f', '0', '-0.0', '1'), ('at', '"2026-01-01 00:00+00"', '"2026-01-01 01:00+01"', '"2026-01-02 00:00+00"')) v (c, base, theirs, mine);
DROP TABLE loose;
DROP FUNCTION merge_loose;
-- deeply nested
SELECT left(merge('j', (repeat('{"a": ', 300) || '1' || repeat('}', 300))::jsonb, (repeat('{"a": ', 300) || '{"b": 2}' || repeat('}', 300))::jsonb, (repeat('{"a": ', 300) || '{"c": 3}' || repeat('}', 300))::jsonb), 8) AS deep;

-- three writers in every order: the same result
TRUNCATE doc;
CREATE FUNCTION three(col text, base jsonb, m1 jsonb, m2 jsonb, m3 jsonb) RETURNS TABLE (result text, ways bigint) LANGUAGE plpgsql AS $$
DECLARE a jsonb[]; o int[]; r record;
BEGIN
    a := ARRAY[m1, m2, m3];
    CREATE TEMP TABLE seen (v text) ON COMMIT DROP;
    FOR o IN VALUES ('{1,2,3}'::int[]), ('{1,3,2}'), ('{2,1,3}'), ('{2,3,1}'), ('{3,1,2}'), ('{3,2,1}') LOOP
        DELETE FROM doc;
        INSERT INTO doc SELECT * FROM jsonb_populate_record(NULL::doc, jsonb_build_object('id', 1, col, base, 'version', 1));
        FOR i IN 1..3 LOOP
            SELECT * INTO STRICT r FROM interlock.try_versioned_update('doc', 1, 1, jsonb_build_object(col, a[o[i]]), jsonb_build_object(col, base), 'merge');
            IF r.outcome = 'conflict' THEN RAISE 'conflict'; END IF;
        END LOOP;
        INSERT INTO seen SELECT CASE jsonb_typeof(d.j) WHEN 'array' THEN (SELECT jsonb_agg(e ORDER BY e) FROM jsonb_array_elements(d.j) e)::text ELSE d.j::text END
            FROM (SELECT to_jsonb(doc)->col AS j FROM doc) d;
    END LOOP;
    RETURN QUERY SELECT v, count(*) FROM seen GROUP BY 1;
    DROP TABLE seen;
END $$;
SELECT * FROM three('i4', '10', '11', '11', '7');
SELECT * FROM three('n', '1.5', '2.5', '0.25', '2.5');
SELECT * FROM three('ta', '["a", "b"]', '["a", "b", "c"]', '["b", "d"]', '["a", "c", "e"]');
SELECT * FROM three('j', '{"a": 1, "b": 1}', '{"a": 1, "b": 1, "c": 1}', '{"b": 1}', '{"a": 1, "b": 2, "d": {"x": 1}}');

-- the strategies beside each other: owned, undeclared, retry, skip, merge; and what is logged
CREATE TABLE mix (id int PRIMARY KEY, owned int, plain int, retry int, skip int, merge int);
SELECT interlock.enable_versioning('mix'), interlock.own_columns('mix', 'importer', '{owned}', 'skip'), interlock.share_columns('mix', '{retry}'),
       interlock.share_columns('mix', '{skip}', 'skip'), interlock.share_columns('mix', '{merge}', 'merge');
SELECT pg_get_triggerdef(oid) AS trigger FROM pg_trigger WHERE tgname = 'zzz_interlock_columns' AND tgrelid = 'mix'::regclass;
INSERT INTO mix VALUES (1, 0, 0, 0, 0, 0);
BEGIN; SELECT interlock.set_writer('importer'); UPDATE mix SET owned = 1, plain = 1, retry = 1, skip = 1, merge = 1; COMMIT;
TRUNCATE interlock.write_log;
SELECT changes, r.* FROM (VALUES ('{"owned": 2}'::jsonb), ('{"plain": 2}'), ('{"retry": 2}'), ('{"skip": 2, "retry": 2}'), ('{"skip": 2}'), ('{"merge": 5}'), ('{"skip": 3, "merge": 2, "retry": 1, "plain": 0}')) v (changes),
    interlock.try_versioned_update('mix', 1, 1, changes, '{"owned": 0, "plain": 0, "retry": 0, "skip": 0, "merge": 0}', 'merge') r;
SELECT decision, rel, key, columns, row_count, owner, stored, given FROM interlock.skipped_writes ORDER BY id;
-- without merge the strategies do nothing
SELECT outcome, version FROM interlock.try_versioned_update('mix', 1, 1, '{"merge": 9, "skip": 9}');
-- a merge that writes an owned column is held to its owner
SELECT outcome, version, current FROM interlock.try_versioned_update('mix', 1, 1, '{"owned": 1, "plain": 3}', '{"owned": 1, "plain": 1}', 'merge');
SELECT outcome, version, current FROM interlock.try_versioned_update('mix', 1, 1, '{"owned": 7}', '{"owned": 1}', 'merge');
SELECT interlock.own_columns('mix', 'importer', '{owned}');
SELECT outcome, version, current FROM interlock.try_versioned_update('mix', 1, 1, '{"owned": 7}', '{"owned": 1}', 'merge');
TRUNCATE interlock.write_log;
DROP TABLE mix;

-- OWN-7, C17: columns that belong together conflict together
CREATE TABLE item (id int PRIMARY KEY, price int, qty int, total int, note text, hits int);
SELECT interlock.enable_versioning('item'), interlock.share_columns('item', '{qty,hits}', 'merge'), interlock.group_columns('item', '{price,qty,total}');
INSERT INTO item VALUES (1, 5, 2, 10, 'n', 0);
SELECT interlock.versioned_update('item', 1, 1, '{"price": 6, "total": 12}');
CREATE FUNCTION merge_item(changes jsonb, base jsonb = '{"price": 5, "qty": 2, "total": 10, "note": "n", "hits": 0}') RETURNS text LANGUAGE plpgsql AS $$
DECLARE r record;
BEGIN
    SELECT * INTO r FROM interlock.try_versioned_update('item', 1, 1, changes, base, 'merge');
    RAISE SQLSTATE 'UNDO0' USING MESSAGE = concat_ws(' ', r.outcome, r.version, r.current, r.conflicts);
EXCEPTION WHEN OTHERS THEN RETURN SQLSTATE || ' ' || SQLERRM;
END $$;
SELECT changes, merge_item(changes) FROM (VALUES ('{"qty": 3, "total": 15}'::jsonb), ('{"qty": 3}'), ('{"qty": 2, "note": "x"}'), ('{"price": 6, "total": 12}'), ('{"price": 6, "total": 18, "qty": 3}'),
    ('{"price": 5, "note": "x"}'), ('{"note": "x", "hits": 1}'), ('{"price": 7}')) v (changes);
SELECT merge_item('{"qty": 3}', '{"qty": 2}');
SELECT merge_item('{"note": "x"}', '{"note": "n"}');
-- without the group both pass, and total is not price * qty
SELECT interlock.ungroup_columns('item', '{price}');
SELECT merge_item('{"price": 7}'), merge_item('{"qty": 3}');
SELECT interlock.ungroup_columns('item', '{qty}');
SELECT merge_item('{"qty": 3}');
SELECT column_name, strategy, group_number FROM interlock.column_ownership WHERE rel = 'item'::regclass ORDER BY 1;
-- privileges: the columns of a group must be readable
CREATE ROLE merge_app;
SELECT interlock.group_columns('item', '{price,qty}');
GRANT SELECT (id, version, qty), UPDATE ON item TO merge_app;
SET ROLE merge_app;
SELECT outcome FROM interlock.try_versioned_update('item', 1, 1, '{"qty": 3}', '{"qty": 2, "price": 5}', 'merge');
RESET ROLE;
GRANT SELECT (price) ON item TO merge_app;
SET ROLE merge_app;
SELECT outcome, conflicts FROM interlock.try_versioned_update('item', 1, 1, '{"qty": 3}', '{"qty": 2, "price": 5}', 'merge');
RESET ROLE;
DROP TABLE item, doc;
DROP OWNED BY merge_app;
DROP ROLE merge_app;
DROP FUNCTION merge, merge_item, three;
DROP DOMAIN small, price, labels;
-- partitions have the strategies of their parent
CREATE TABLE part (id int, region text, n int, PRIMARY KEY (id, region)) PARTITION BY LIST (region);
CREATE TABLE part_eu PARTITION OF part FOR VALUES IN ('eu');
SELECT interlock.enable_versioning('part'), interlock.share_columns('part', '{n}', 'merge');
INSERT INTO part VALUES (1, 'eu', 1);
UPDATE part SET n = 2;
SELECT outcome, current FROM interlock.try_versioned_update('part', '{"id": 1, "region": "eu"}', 1, '{"n": 5}', '{"n": 1}', 'merge');
SELECT outcome, current FROM interlock.try_versioned_update('part_eu', '{"id": 1, "region": "eu"}', 1, '{"n": 5}', '{"n": 1}', 'merge');
SELECT decision, rel, key, columns, stored, given FROM interlock.skipped_writes ORDER BY id;
DROP TABLE part;
TRUNCATE interlock.write_log;
