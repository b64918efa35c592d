-- What every object of the extension owes its users, whatever its concept.
BEGIN;
SELECT plan(4);

-- The extension's own objects, not those that come with them (row types, indexes).
CREATE TEMP VIEW objects AS
SELECT d.classid, d.objid, o.type, o.schema, o.identity
FROM pg_depend d
    JOIN pg_extension e ON d.refclassid = 'pg_extension'::regclass AND d.refobjid = e.oid
    CROSS JOIN LATERAL pg_identify_object(d.classid, d.objid, 0) o
WHERE e.extname = 'pg_interlock' AND d.deptype = 'e'
    AND NOT (d.classid = 'pg_type'::regclass
        AND (SELECT t.typrelid <> 0 AND c.relkind <> 'c' OR t.typelem <> 0 AND t.typlen = -1
             FROM pg_type t LEFT JOIN pg_class c ON c.oid = t.typrelid
             WHERE t.oid = d.objid));

SELECT isnt_empty('SELECT * FROM objects', 'the extension has objects');

SELECT is_empty(
    $$SELECT type, identity FROM objects WHERE obj_description(objid, classid::regclass::name) IS NULL$$,
    'every object has a comment');

SELECT is_empty(
    $$SELECT type, identity FROM objects WHERE schema <> 'interlock'$$,
    'everything lives in schema interlock');

SELECT is_empty(
    $$SELECT o.identity
      FROM objects o JOIN pg_proc p ON o.classid = 'pg_proc'::regclass AND o.objid = p.oid
      WHERE p.prosecdef AND NOT EXISTS (
          SELECT FROM unnest(p.proconfig) setting WHERE setting LIKE 'search_path=%')$$,
    'no function with its owner''s rights leaves the search_path open');

SELECT * FROM finish();
ROLLBACK;
