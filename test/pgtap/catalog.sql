-- What every object of the extension owes its users, whatever its concept.
BEGIN;
SELECT plan(10);

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
    $$SELECT type, identity FROM objects WHERE schema NOT IN ('interlock', 'interlock_internal')$$,
    'everything lives in schema interlock or interlock_internal');

-- HOUSE-4: \df interlock.* is the API. What calls a function of ours depends on it: a view (its rule), a function in SQL.
CREATE TEMP VIEW functions AS
SELECT o.schema, p.proname, p.oid::regprocedure AS function, p.prorettype = 'trigger'::regtype AS is_trigger,
    (SELECT array_agg(DISTINCT d.classid::regclass::text)
     FROM pg_depend d JOIN objects caller ON (caller.classid, caller.objid) = (d.classid, d.objid)
        OR d.classid = 'pg_rewrite'::regclass AND caller.objid = (SELECT ev_class FROM pg_rewrite r WHERE r.oid = d.objid)
     WHERE d.refclassid = 'pg_proc'::regclass AND d.refobjid = p.oid AND d.deptype = 'n' AND d.classid <> 'pg_trigger'::regclass) AS callers
FROM objects o JOIN pg_proc p ON o.classid = 'pg_proc'::regclass AND o.objid = p.oid;

SELECT is_empty(
    $$SELECT function FROM functions WHERE schema = 'interlock' AND is_trigger$$,
    'HOUSE-4: no trigger function is in schema interlock');

SELECT is_empty(
    $$SELECT function FROM functions WHERE schema = 'interlock' AND 'pg_rewrite' = ANY (callers)$$,
    'HOUSE-4: nor a function that a view of the extension calls');

SELECT is_empty(
    $$SELECT function FROM functions
      WHERE schema = 'interlock_internal' AND NOT is_trigger AND callers IS NULL
          AND proname NOT IN ('wake_sweeper', 'note_lease_store') -- the install script calls them$$,
    'HOUSE-4: each function of interlock_internal is called by a trigger, a view or a function of the extension');

SELECT is_empty(
    $$SELECT type, identity FROM objects WHERE schema = 'interlock_internal' AND type IN ('table', 'sequence', 'view')
          AND has_table_privilege('public', objid, 'SELECT, INSERT, UPDATE, DELETE, TRUNCATE, REFERENCES, TRIGGER')$$,
    'HOUSE-4: users can do nothing with the tables and views of interlock_internal');

SELECT is(
    (SELECT string_agg(n.nspname || ': ' || a.privilege_type, ', ' ORDER BY n.nspname)
     FROM pg_namespace n CROSS JOIN aclexplode(n.nspacl) a WHERE n.nspname LIKE 'interlock%' AND a.grantee <> n.nspowner),
    'interlock: USAGE, interlock_internal: USAGE', 'SEC-11: only the owner creates objects in either schema');

SELECT is_empty(
    $$SELECT o.identity
      FROM objects o JOIN pg_proc p ON o.classid = 'pg_proc'::regclass AND o.objid = p.oid
      WHERE p.prosecdef AND NOT EXISTS (
          SELECT FROM unnest(p.proconfig) setting WHERE setting LIKE 'search_path=%')$$,
    'no function with its owner''s rights leaves the search_path open');

SELECT is_empty(
    $$SELECT o.identity, n.name
      FROM objects o
          CROSS JOIN LATERAL (
              SELECT unnest(proargnames) FROM pg_proc WHERE o.classid = 'pg_proc'::regclass AND oid = o.objid
              UNION ALL
              SELECT attname FROM pg_attribute
              WHERE attrelid = CASE o.classid WHEN 'pg_class'::regclass THEN o.objid
                                              WHEN 'pg_type'::regclass THEN (SELECT typrelid FROM pg_type WHERE oid = o.objid) END
                  AND NOT attisdropped) n(name)
      WHERE quote_ident(n.name) <> n.name$$,
    'no argument and no column needs quotes');

SELECT * FROM finish();
ROLLBACK;
