-- Findings about versions

CREATE FUNCTION interlock_internal.list_version_columns(
    OUT tgrelid oid, OUT tgenabled "char", OUT tgparentid oid, OUT attname text, OUT attnum smallint, OUT is_counter boolean, OUT settings text)
    RETURNS SETOF record
    LANGUAGE sql STABLE
BEGIN ATOMIC
    SELECT t.tgrelid, t.tgenabled, t.tgparentid, t.arguments[1], a.attnum, a.atttypid IN ('int4'::regtype, 'int8'::regtype),
           format('%L%s%s%s', t.arguments[1],
               CASE WHEN cardinality(t.arguments) > 3 THEN format(', %L', t.arguments[4:]) END, -- ignore_columns
               CASE WHEN t.arguments[2] <> 'allow' THEN format(', blind_updates => %L', t.arguments[2]) END,
               CASE WHEN t.arguments[3] <> 'move' THEN format(', unchanged => %L', t.arguments[3]) END)
      FROM interlock_internal.list_own_triggers() t
      LEFT JOIN pg_attribute a
        ON a.attrelid = t.tgrelid AND a.attname = t.arguments[1] AND NOT a.attisdropped
       AND a.atttypid IN ('int4'::regtype, 'int8'::regtype, 'timestamp'::regtype, 'timestamptz'::regtype)
     WHERE t.kind = 'version_trigger' AND t.tgnargs > 0;
END;
COMMENT ON FUNCTION interlock_internal.list_version_columns() IS
'For findings: the version column of each versioned table and partition, without attnum if it is gone or has another type, and
the arguments of enable_versioning.';

CREATE FUNCTION interlock_internal.list_version_defaults(
    OUT oid oid, OUT adrelid oid, OUT adnum smallint, OUT relowner oid, OUT relkind "char", OUT named text, OUT owns_sequence boolean) RETURNS SETOF record
    LANGUAGE sql STABLE
BEGIN ATOMIC
    SELECT d.oid, d.adrelid, d.adnum, c.relowner, c.relkind,
           COALESCE(substring(substr(d.adbin::text, 1, 4096) FROM ':constvalue [^]]*\]'), d.oid::text), -- the sequence that it names
           EXISTS (SELECT FROM pg_depend o JOIN pg_class s ON s.oid = o.objid AND s.relkind = 'S'
                    WHERE o.classid = 'pg_class'::regclass AND o.refclassid = 'pg_class'::regclass AND o.deptype = 'a'
                      AND o.refobjid = d.adrelid AND o.refobjsubid = d.adnum)
      FROM pg_depend u
      JOIN pg_attrdef d ON d.oid = u.objid
      JOIN pg_class c ON c.oid = d.adrelid AND (c.relpersistence <> 't' OR c.relnamespace = pg_my_temp_schema())
     WHERE u.classid = 'pg_attrdef'::regclass AND u.refclassid = 'pg_proc'::regclass
       AND u.refobjid = 'interlock.first_version(text)'::regprocedure::oid;
END;
COMMENT ON FUNCTION interlock_internal.list_version_defaults() IS
'For findings: the defaults that call first_version. What they name is compared as it is stored: to read an expression as text would wait for
a table that somebody has locked.';

CREATE FUNCTION interlock_internal.list_version_findings(
    OUT rel regclass, OUT severity text, OUT finding text, OUT advice text, OUT mechanism text) RETURNS SETOF record
    LANGUAGE sql STABLE
BEGIN ATOMIC
    SELECT v.tgrelid::regclass, 'broken', format('version column "%s" is gone or has another type', v.attname),
           format('SELECT interlock.disable_versioning(%L) -- then interlock.enable_versioning with the current name', v.tgrelid::regclass),
           'versioning'
      FROM interlock_internal.list_version_columns() v
     WHERE v.attnum IS NULL
    UNION ALL
    SELECT v.tgrelid::regclass, 'broken', 'a subscription writes to the table without firing the trigger',
           'the owner of the table on the publisher versions it there, and applications write there alone', 'versioning'
      FROM interlock_internal.list_version_columns() v
      JOIN pg_subscription_rel s ON s.srrelid = v.tgrelid
     WHERE v.tgenabled <> 'A'
    UNION ALL
    SELECT d.adrelid::regclass, 'broken',
           format(CASE WHEN d.owns_sequence THEN 'the version trigger is gone: updates do not move column "%s"'
                       -- loaded by a schema tool that knows defaults, and neither sequences nor triggers
                       ELSE 'no version trigger is there, and the default of column "%s" calls first_version' END, a.attname),
           format('SELECT interlock.enable_versioning(%L, %L)', d.adrelid::regclass, a.attname)
               || CASE WHEN d.owns_sequence THEN '' ELSE ' -- or drop the default of the column' END,
           'versioning'
      FROM interlock_internal.list_version_defaults() d
      JOIN pg_attribute a ON a.attrelid = d.adrelid AND a.attnum = d.adnum
     WHERE NOT EXISTS (SELECT FROM interlock_internal.list_version_columns() v WHERE v.tgrelid = d.adrelid)
       AND (d.owns_sequence
            OR (d.named, d.relowner) NOT IN ( -- of a table that it copies
                   SELECT o.named, o.relowner FROM interlock_internal.list_version_defaults() o WHERE o.owns_sequence))
    UNION ALL
    SELECT v.tgrelid::regclass, 'broken',
           format('Citus distributes the table, and the default of column "%s" calls first_version: inserts are refused', v.attname),
           format('SELECT interlock.enable_versioning(%L, %s)', v.tgrelid::regclass, v.settings), 'versioning'
      FROM interlock_internal.list_version_columns() v
      JOIN interlock_internal.list_version_defaults() d ON d.adrelid = v.tgrelid AND d.adnum = v.attnum
     WHERE interlock_internal.distribution(v.tgrelid) IS NOT NULL
    UNION ALL
    SELECT v.tgrelid::regclass, 'risk', format('column "%s" is null in some rows: a comparison by = finds none of them', v.attname),
           format('UPDATE %s SET %I = %s WHERE %I IS NULL AND interlock.any_version(%I) -- then ANALYZE', v.tgrelid::regclass, v.attname,
               CASE WHEN v.is_counter THEN '1' ELSE 'now()' END, v.attname, v.attname),
           'versioning'
      FROM interlock_internal.list_version_columns() v
      JOIN pg_class c ON c.oid = v.tgrelid AND c.relkind = 'r'
      JOIN pg_namespace n ON n.oid = c.relnamespace
      JOIN pg_stats s ON s.schemaname = n.nspname AND s.tablename = c.relname AND s.attname = v.attname AND s.null_frac > 0
    UNION ALL
    SELECT v.rel::regclass, 'broken',
           CASE v.blind_updates WHEN 'reject' THEN 'the library was not preloaded: statements that were planned before it was loaded are refused'
                                ELSE 'the library was not preloaded: blind updates that were planned before it was loaded are not warned of' END,
           format('ALTER DATABASE %I SET session_preload_libraries = %s -- by a superuser; or add pg_interlock to shared_preload_libraries',
               current_database(),
               (SELECT string_agg(quote_literal(btrim(l.name, ' "')), ', ' ORDER BY l.n)
                  FROM string_to_table(concat_ws(',', NULLIF(current_setting('session_preload_libraries'), ''), 'pg_interlock'), ',')
                       WITH ORDINALITY l (name, n))),
           v.mechanism
      FROM (SELECT t.tgrelid AS rel, t.mechanism, t.arguments[2] AS blind_updates
              FROM interlock_internal.list_own_triggers() t
             WHERE t.kind = 'version_trigger'
             UNION
            SELECT t.tgrelid, t.mechanism, min(t.arguments[i + 2] COLLATE "C") -- reject, if any is
              FROM interlock_internal.list_own_triggers() t
             CROSS JOIN LATERAL generate_series(1, cardinality(t.arguments), 3) i
             WHERE t.kind = 'ownership_trigger' AND t.arguments[i + 1] = 'blind'
             GROUP BY t.tgrelid, t.mechanism) v
     CROSS JOIN interlock_internal.is_preloaded() p
     WHERE NOT p.for_statements AND v.blind_updates IN ('warn', 'reject');
END;
COMMENT ON FUNCTION interlock_internal.list_version_findings() IS
'For advise and the view guards: versions that do not move, whatever the triggers of the table are.';

CREATE FUNCTION interlock_internal.list_version_default_findings(
    OUT rel regclass, OUT severity text, OUT finding text, OUT advice text, OUT mechanism text) RETURNS SETOF record
    LANGUAGE sql STABLE
BEGIN ATOMIC
    WITH tops AS ( -- counters, with the table that versions are enabled on
        SELECT DISTINCT ON (v.tgrelid) v.tgrelid, v.attname, v.attnum, v.settings, t.top, b.attnum AS top_attnum, t.top <> v.tgrelid AS is_partition
          FROM interlock_internal.list_version_columns() v
         CROSS JOIN LATERAL (
               SELECT COALESCE((SELECT a.relid::oid
                                  FROM pg_partition_ancestors(v.tgrelid) a (relid)
                                  JOIN interlock_internal.list_version_columns() e ON e.tgrelid = a.relid::oid AND e.tgparentid = 0
                                 WHERE v.tgparentid <> 0 AND a.relid::oid <> v.tgrelid
                                 LIMIT 1), v.tgrelid)) t (top)
          JOIN pg_attribute b ON b.attrelid = t.top AND b.attname = v.attname AND b.attnum > 0
         WHERE v.is_counter
         ORDER BY v.tgrelid, v.tgparentid DESC),
    tables AS ( -- and tables above, which have no versions: rows that are inserted through them get their defaults
        SELECT t.tgrelid, t.attname, t.attnum, t.settings, t.top, t.top_attnum, t.is_partition, t.top AS enabled_on
          FROM tops t
         UNION
        SELECT a.relid::oid, t.attname, b.attnum, t.settings, t.top, t.top_attnum, true, p.root::oid
          FROM tops t
         CROSS JOIN LATERAL pg_partition_root(t.top) p (root)
         CROSS JOIN LATERAL pg_partition_ancestors(t.top) a (relid)
          JOIN pg_attribute b ON b.attrelid = a.relid::oid AND b.attname = t.attname AND b.attnum > 0
         WHERE NOT t.is_partition AND a.relid::oid <> t.top),
    starts AS ( -- where new rows start by them
        SELECT t.tgrelid, t.attname, t.is_partition, s.sequence,
               substr(d.adbin::text, 1, 4096) AS expression,
               r.oid IS NOT NULL AS reads_sequence,
               COALESCE(r.named <> top.named, false) AS reads_another,
               top.oid IS NOT NULL AND s.sequence IS NOT NULL AS has_to_read,
               format('SELECT interlock.enable_versioning(%L, %s)', t.enabled_on::regclass, t.settings) AS enable
          FROM tables t
          LEFT JOIN pg_attrdef d ON d.adrelid = t.tgrelid AND d.adnum = t.attnum
          LEFT JOIN interlock_internal.list_version_defaults() r ON r.oid = d.oid
          LEFT JOIN interlock_internal.list_version_defaults() top ON top.adrelid = t.top AND top.adnum = t.top_attnum
         CROSS JOIN LATERAL (
               SELECT (SELECT format('%I.%I', n.nspname, s.relname)
                         FROM pg_depend o
                         JOIN pg_class s ON s.oid = o.objid AND s.relkind = 'S'
                         JOIN pg_namespace n ON n.oid = s.relnamespace
                        WHERE o.classid = 'pg_class'::regclass AND o.refclassid = 'pg_class'::regclass AND o.deptype = 'a'
                          AND o.refobjid = t.top AND o.refobjsubid = t.top_attnum
                        ORDER BY s.oid LIMIT 1)) s (sequence))
    SELECT DISTINCT d.tgrelid::regclass, 'risk',
           format(CASE WHEN d.reads_another THEN 'the default of column "%s" reads the sequence of another table: a key that is used again meets old versions'
                       WHEN d.reads_sequence THEN 'the default of column "%s" has no sequence: a key that is used again meets old versions'
                       WHEN d.expression IS NULL THEN 'column "%s" has no default: a key that is used again meets old versions'
                       ELSE 'the default of column "%s" is not first_version: a key that is used again meets old versions' END, d.attname),
           CASE WHEN d.sequence IS NULL OR d.reads_sequence OR d.is_partition THEN d.enable
                ELSE format('ALTER TABLE %s ALTER COLUMN %I SET DEFAULT interlock.first_version(%L)', d.tgrelid::regclass, d.attname, d.sequence) END,
           'versioning'
      FROM starts d
     WHERE interlock_internal.distribution(d.tgrelid) IS NULL -- for which there is no sequence
       AND CASE WHEN d.reads_sequence THEN d.sequence IS NULL OR d.reads_another
                WHEN d.expression IS NULL OR d.sequence IS NOT NULL AND NOT d.is_partition THEN true
                ELSE d.expression ~ '^(\{FUNCEXPR [^{}]*:funcformat [12] [^{}]*:args \()?\{CONST ' END -- a constant, or the cast of one
       AND (NOT d.is_partition OR d.has_to_read);
END;
COMMENT ON FUNCTION interlock_internal.list_version_default_findings() IS
'For advise and the view guards: version columns whose default does not remember deleted versions.';

CREATE FUNCTION interlock_internal.list_detached_findings(
    OUT rel regclass, OUT severity text, OUT finding text, OUT advice text, OUT mechanism text) RETURNS SETOF record
    LANGUAGE sql STABLE
BEGIN ATOMIC
    WITH signs AS ( -- what DETACH leaves: the default that names the sequence of the partitioned table, which LIKE copies as well
        SELECT d.adrelid AS rel, p.adrelid AS parent
          FROM interlock_internal.list_version_defaults() d
          JOIN interlock_internal.list_version_defaults() p ON p.named = d.named AND p.relowner = d.relowner
         WHERE p.owns_sequence AND p.relkind = 'p' AND NOT d.owns_sequence
         UNION -- and the trigger of a history, which then records nothing
        SELECT t.tgrelid, p.tgrelid
          FROM interlock_internal.list_own_triggers() t
          JOIN pg_trigger p ON p.oid = t.tgparentid),
    detached AS (
        SELECT s.rel, s.parent
          FROM signs s
         WHERE s.rel NOT IN (SELECT a.relid::oid FROM pg_partition_ancestors(s.parent) a (relid))
           AND s.parent NOT IN (SELECT a.relid::oid FROM pg_partition_ancestors(s.rel) a (relid)))
    SELECT DISTINCT d.rel::regclass, 'broken', format('the table was detached from %s or is a copy of it, and lacks what protects its rows', d.parent::regclass),
           format('SELECT interlock.configure(%L, interlock.configuration(%L)) '
                  '-- or attach it again, after disable_history if it has one; a copy can drop the default of its version column',
               d.rel::regclass, d.parent::regclass),
           t.mechanism
      FROM detached d
      JOIN pg_class c ON c.oid = d.rel
      JOIN interlock_internal.list_own_triggers() t ON t.tgrelid = d.parent
     WHERE NOT EXISTS (SELECT FROM interlock_internal.list_own_triggers() o
                        WHERE o.tgrelid = d.rel AND o.kind = t.kind AND (o.tgparentid = 0 OR c.relispartition))
       AND NOT EXISTS (SELECT FROM pg_partition_ancestors(d.rel) a (relid) JOIN detached e ON e.rel = a.relid::oid WHERE e.rel <> d.rel);
END;
COMMENT ON FUNCTION interlock_internal.list_detached_findings() IS
'For advise and the view guards: tables that were partitions, and what their partitioned tables have and they have not.';
