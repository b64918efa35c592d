-- Every object of the extension: its kind, its owner, whose rights it runs with, and what roles other
-- than its owner may do with it. A line that changes here changes what a role can do: SECURITY.md says
-- why each grant is there.
\pset tuples_only on
SET search_path = pg_catalog;

CREATE TEMP VIEW members AS
SELECT d.classid, d.objid, o.type, o.identity
FROM pg_depend d
    JOIN pg_extension e ON d.refclassid = 'pg_extension'::regclass AND d.refobjid = e.oid
    CROSS JOIN LATERAL pg_identify_object(d.classid, d.objid, 0) o
WHERE e.extname = 'pg_interlock' AND d.deptype = 'e';

-- The rights of everybody but the owner; null when there are none.
CREATE FUNCTION pg_temp.granted(acl aclitem[], kind "char", owner oid) RETURNS text LANGUAGE sql AS $$
    SELECT string_agg(grantee || ' ' || rights, ', ' ORDER BY grantee COLLATE "C")
    FROM (SELECT CASE a.grantee WHEN 0 THEN 'PUBLIC' ELSE pg_get_userbyid(a.grantee) END AS grantee,
              string_agg(a.privilege_type || CASE WHEN a.is_grantable THEN '*' ELSE '' END, '+'
                         ORDER BY a.privilege_type COLLATE "C") AS rights
          FROM aclexplode(coalesce(acl, acldefault(kind, owner))) a
          WHERE a.grantee <> owner
          GROUP BY 1) g
$$;

CREATE FUNCTION pg_temp.owned(owner oid) RETURNS text LANGUAGE sql AS $$
    SELECT CASE WHEN owner = (SELECT extowner FROM pg_extension WHERE extname = 'pg_interlock')
        THEN '' ELSE ' owned by ' || pg_get_userbyid(owner) END
$$;

-- Schemas: the one that the control file names is no member
SELECT n.nspname || pg_temp.owned(n.nspowner) || ': '
    || coalesce(pg_temp.granted(n.nspacl, 'n', n.nspowner), '-')
FROM pg_namespace n
WHERE n.oid = (SELECT extnamespace FROM pg_extension WHERE extname = 'pg_interlock')
    OR n.oid IN (SELECT objid FROM members WHERE classid = 'pg_namespace'::regclass)
ORDER BY n.nspname COLLATE "C";

-- Functions that PUBLIC may execute: volatility, parallel safety. Without those that users call, if they are
-- volatile and run with the caller's rights: test/pgtap/prepared.sql has a list of them.
SELECT m.identity || ' ' || concat(p.provolatile, p.proparallel)
    || CASE WHEN p.prosecdef THEN ' SECURITY DEFINER' ELSE '' END
    || coalesce(' ' || p.proconfig::text, '') || pg_temp.owned(p.proowner)
FROM members m JOIN pg_proc p ON m.classid = 'pg_proc'::regclass AND p.oid = m.objid
WHERE pg_temp.granted(p.proacl, 'f', p.proowner) IS NOT DISTINCT FROM 'PUBLIC EXECUTE'
    AND NOT (p.pronamespace = 'interlock'::regnamespace AND concat(p.provolatile, p.proparallel) = 'vu'
             AND NOT p.prosecdef AND p.proconfig IS NULL AND pg_temp.owned(p.proowner) = '')
ORDER BY m.identity COLLATE "C";

-- Functions that must be granted
SELECT m.identity || ' ' || concat(p.provolatile, p.proparallel)
    || CASE WHEN p.prosecdef THEN ' SECURITY DEFINER' ELSE '' END
    || coalesce(' ' || p.proconfig::text, '') || pg_temp.owned(p.proowner) || ': '
    || coalesce(pg_temp.granted(p.proacl, 'f', p.proowner), '-')
FROM members m JOIN pg_proc p ON m.classid = 'pg_proc'::regclass AND p.oid = m.objid
WHERE pg_temp.granted(p.proacl, 'f', p.proowner) IS DISTINCT FROM 'PUBLIC EXECUTE'
ORDER BY m.identity COLLATE "C";

-- Tables, views and sequences: options, and columns with rights of their own
SELECT m.type || ' ' || m.identity || coalesce(' ' || c.reloptions::text, '')
    || CASE WHEN c.relrowsecurity THEN ' row security' ELSE '' END
    || pg_temp.owned(c.relowner) || ': '
    || coalesce(pg_temp.granted(c.relacl, CASE c.relkind WHEN 'S' THEN 's' ELSE 'r' END::"char", c.relowner), '-')
    || coalesce((SELECT string_agg('; ' || a.attname || ' ' || pg_temp.granted(a.attacl, 'c', c.relowner), ''
                                   ORDER BY a.attnum)
                 FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attacl IS NOT NULL), '')
FROM members m JOIN pg_class c ON m.classid = 'pg_class'::regclass AND c.oid = m.objid
WHERE c.relkind <> 'c'
ORDER BY m.identity COLLATE "C";

-- Types that are not the row of a table or view
SELECT m.identity || pg_temp.owned(t.typowner) || ': ' || coalesce(pg_temp.granted(t.typacl, 'T', t.typowner), '-')
FROM members m JOIN pg_type t ON m.classid = 'pg_type'::regclass AND t.oid = m.objid
    LEFT JOIN pg_class c ON c.oid = t.typrelid
WHERE t.typtype <> 'b' AND (c.oid IS NULL OR c.relkind = 'c')
ORDER BY m.identity COLLATE "C";

-- Members of any other kind
SELECT m.type || ' ' || m.identity FROM members m
WHERE m.classid NOT IN ('pg_namespace'::regclass, 'pg_proc'::regclass, 'pg_class'::regclass, 'pg_type'::regclass)
ORDER BY 1;

-- Settings: who may change them
SELECT name || ' ' || context FROM pg_settings WHERE name LIKE 'interlock.%' ORDER BY name COLLATE "C";
