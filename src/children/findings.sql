-- Findings about tables of children

CREATE FUNCTION interlock_internal.list_children_findings(
    OUT rel regclass, OUT severity text, OUT finding text, OUT advice text, OUT mechanism text) RETURNS SETOF record
    LANGUAGE sql STABLE
BEGIN ATOMIC
    WITH children AS ( -- what WHEN of their triggers names
        SELECT c.tgrelid, c.parent, c.columns, bit_or(c.tgtype::int4) & 28 AS events -- insert, delete, update
          FROM (SELECT t.tgrelid, t.tgtype, max(d.refobjid) FILTER (WHERE d.refobjid <> t.tgrelid) AS parent,
                       array_agg(d.refobjsubid ORDER BY d.refobjsubid) FILTER (WHERE d.refobjid = t.tgrelid AND d.refobjsubid > 0) AS columns
                  FROM interlock_internal.list_own_triggers() t
                  JOIN pg_depend d ON d.classid = 'pg_trigger'::regclass AND d.objid = t.oid AND d.refclassid = 'pg_class'::regclass
                 WHERE t.kind = 'children_trigger' AND t.tgparentid = 0
                 GROUP BY t.oid, t.tgrelid, t.tgtype) c
         WHERE c.parent IS NOT NULL AND c.columns IS NOT NULL
         GROUP BY c.tgrelid, c.parent, c.columns)
    SELECT c.tgrelid::regclass, 'broken', f.finding, f.advice, 'guard_children'
      FROM children c
     CROSS JOIN LATERAL (
           SELECT format('its rows are children of table %s, and the foreign key is gone: writes are refused', c.parent::regclass),
                  format('SELECT interlock.unguard_children(%L, %L) -- or add the foreign key again', c.tgrelid::regclass, c.parent::regclass)
            WHERE NOT EXISTS (SELECT FROM pg_constraint k
                               WHERE k.conrelid = c.tgrelid AND k.confrelid = c.parent AND k.contype = 'f'
                                 AND ARRAY(SELECT n.attnum::int4 FROM unnest(k.conkey) n (attnum) ORDER BY 1) = c.columns)
            UNION ALL
           SELECT format('its rows are children of table %s, which has neither versions nor markers', c.parent::regclass),
                  format('SELECT interlock.enable_versioning(%L)', c.parent::regclass)
            WHERE NOT EXISTS (SELECT FROM interlock_internal.list_own_triggers() t
                               WHERE t.tgrelid = c.parent AND t.kind IN ('version_trigger', 'marker_trigger'))
            UNION ALL
           SELECT format('its rows are children of table %s, and a trigger is gone: not every change moves their parents', c.parent::regclass),
                  format('SELECT interlock.guard_children(%L, %L, %L)', c.tgrelid::regclass, c.parent::regclass,
                      ARRAY(SELECT a.attname FROM pg_attribute a WHERE a.attrelid = c.tgrelid AND a.attnum = ANY (c.columns) ORDER BY a.attnum))
            WHERE c.events <> 28
            UNION ALL
           SELECT format('its rows are children of table %s, which Citus distributes: writes are refused', c.parent::regclass),
                  format('SELECT interlock.unguard_children(%L, %L)', c.tgrelid::regclass, c.parent::regclass)
            WHERE interlock_internal.distribution(c.parent) IS NOT NULL) f (finding, advice);
END;
COMMENT ON FUNCTION interlock_internal.list_children_findings() IS
'For advise and the view guards: tables of children that have lost a trigger, their foreign key, or the versions of their parents,
and those whose parents Citus distributes.';
