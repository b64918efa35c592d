-- Findings about names and keys that have changed under escrow counters

CREATE FUNCTION interlock_internal.list_cut_off_counters(
    OUT rel regclass, OUT severity text, OUT finding text, OUT evidence text, OUT advice text) RETURNS SETOF record
    LANGUAGE sql STABLE
BEGIN ATOMIC
    WITH triggers AS ( -- numbers: of the column and of those of the key, where they are of this database
        SELECT t.oid, t.tgrelid, t.texts, c.relispartition,
               CASE WHEN t.texts[7] ~ '^[0-9]{1,4}( [0-9]{1,4})+$'
                     AND (SELECT count(*) FROM unnest(string_to_array(t.texts[7], ' ')) n (number)
                           WHERE EXISTS (SELECT FROM pg_depend d
                                          WHERE d.classid = 'pg_trigger'::regclass
                                            AND d.objid = t.oid
                                            AND d.refclassid = 'pg_class'::regclass
                                            AND d.refobjid = t.tgrelid
                                            AND d.refobjsubid = n.number::int4))
                         = (cardinality(t.texts) - 6)
                    THEN string_to_array(t.texts[7], ' ')::int2[] END AS numbers
          FROM (SELECT t.oid, t.tgrelid, interlock_internal.split_arguments(t.tgargs) AS texts
                  FROM pg_trigger t
                 WHERE t.tgfoid = 'interlock_internal.escrow_trigger()'::regprocedure::oid
                   AND t.tgnargs > 7) t
          JOIN pg_class c ON c.oid = t.tgrelid),
    columns AS ( -- with the names that they have now
        SELECT t.tgrelid, t.texts, t.numbers, t.relispartition, n.names, left(t.texts[1], 64) AS label,
               COALESCE(n.names[1], left(t.texts[1], 64)) AS column_name,
               format('SELECT interlock.enable_escrow(%L, %L, %L, %L, %L, %s%s)', t.tgrelid::regclass,
                   COALESCE(n.names[1], left(t.texts[1], 64)), left(t.texts[2], 64), NULLIF(left(t.texts[3], 64), ''),
                   left(t.texts[4], 64), CASE WHEN t.texts[5] = 'true' THEN 'true' ELSE 'false' END,
                   CASE WHEN t.texts[6] IN ('on', 'full') THEN format(', notify => %L', t.texts[6]) END) AS enable
          FROM triggers t
         CROSS JOIN LATERAL (
               SELECT array_agg(a.attname::text ORDER BY n.place) AS names
                 FROM unnest(t.numbers) WITH ORDINALITY n (number, place)
                 JOIN pg_attribute a ON a.attrelid = t.tgrelid AND a.attnum = n.number) n),
    keys AS ( -- unique indexes that name a row by the columns of the counters
        SELECT c.tgrelid, c.label, bool_or(i.indisprimary) AS is_primary,
               EXISTS (SELECT FROM pg_index p WHERE p.indrelid = c.tgrelid AND p.indisprimary) AS has_primary
          FROM columns c
          JOIN pg_index i ON i.indrelid = c.tgrelid
         WHERE i.indisunique AND i.indimmediate AND i.indisvalid AND i.indpred IS NULL
           AND i.indnkeyatts::int4 = (cardinality(c.numbers) - 1)
           AND (i.indkey::int2[])[0:i.indnkeyatts - 1] <@ c.numbers[2:]
           AND NOT EXISTS (SELECT FROM pg_attribute a
                            WHERE a.attrelid = c.tgrelid AND a.attnum = ANY (c.numbers[2:]) AND NOT a.attnotnull)
         GROUP BY c.tgrelid, c.label),
    findings AS (
        SELECT c.tgrelid, c.column_name, 'broken' AS severity,
               format('column "%s", which has escrow counters, or a column of the key, was renamed or dropped in this copy: writes are refused', c.label) AS finding,
               'rename it back, and call interlock.enable_escrow before it is renamed again; only if it was dropped, call interlock.disable_escrow for its former name' AS advice
          FROM columns c
         WHERE c.numbers IS NULL
           AND EXISTS (SELECT FROM unnest(c.texts[1:1] || c.texts[8:]) n (name)
                        WHERE NOT EXISTS (SELECT FROM pg_attribute a
                                           WHERE a.attrelid = c.tgrelid AND a.attname = left(n.name, 63)::name
                                             AND a.attnum > 0 AND NOT a.attisdropped))
         UNION ALL
        SELECT c.tgrelid, c.column_name, 'broken',
               format('the table has become a partition: the escrow counters of column "%s" cannot be adjusted', c.column_name),
               format('detach it, or SELECT interlock.disable_escrow(%L, %L)', c.tgrelid::regclass, c.column_name)
          FROM columns c
         WHERE c.relispartition
         UNION ALL
        SELECT c.tgrelid, c.column_name, 'broken',
               format('the escrow counters of column "%s" go by (%s), which no unique index is over: they cannot be adjusted, and new rows are refused',
                   c.column_name, (SELECT string_agg(quote_ident(n.name), ', ' ORDER BY n.place) FROM unnest(c.names[2:]) WITH ORDINALITY n (name, place))),
               format('ALTER TABLE %s ADD UNIQUE (%s)', c.tgrelid::regclass,
                   (SELECT string_agg(quote_ident(n.name), ', ' ORDER BY n.place) FROM unnest(c.names[2:]) WITH ORDINALITY n (name, place)))
          FROM columns c
         WHERE c.numbers IS NOT NULL
           AND NOT EXISTS (SELECT FROM keys k WHERE k.tgrelid = c.tgrelid AND k.label = c.label)
         UNION ALL
        SELECT c.tgrelid, c.column_name, 'broken',
               format('the table has another key since the escrow counters of column "%s" were enabled: they cannot be adjusted', c.column_name), c.enable
          FROM columns c
          JOIN keys k ON k.tgrelid = c.tgrelid AND k.label = c.label
         WHERE k.has_primary AND NOT k.is_primary
         UNION ALL
        SELECT c.tgrelid, c.column_name, 'risk',
               format('columns were renamed since the escrow counters of column "%s" were enabled: a restored dump refuses writes until they are renamed back', c.column_name), c.enable
          FROM columns c
         WHERE c.names <> ARRAY(SELECT left(n.name, 64)
                                                       FROM unnest(c.texts[1:1] || c.texts[8:]) WITH ORDINALITY n (name, place)
                                                      ORDER BY n.place)
         UNION ALL
        SELECT DISTINCT e.rel::oid, e.column_name::text, 'broken',
               format('the trigger of the escrow counters of column "%s" is gone: the values in its rows lack changes', e.column_name),
               format('SELECT interlock.disable_escrow(%L, %L)', e.rel, e.column_name)
          FROM interlock.escrow e
         WHERE e.parts > 0
           AND EXISTS (SELECT FROM pg_trigger t
                        WHERE t.tgrelid = e.rel::oid
                          AND t.tgfoid = 'interlock_internal.escrow_truncate_trigger()'::regprocedure::oid)
           AND NOT EXISTS (SELECT FROM columns c
                            WHERE c.tgrelid = e.rel::oid AND c.column_name = e.column_name::text))
    SELECT f.tgrelid::regclass, f.severity, f.finding,
           format('%s changes are in no row yet',
               (SELECT COALESCE(sum(e.parts), 0) FROM interlock.escrow e
                 WHERE e.rel = f.tgrelid::regclass AND e.column_name = left(f.column_name, 63)::name)),
           f.advice
      FROM findings f;
END;
COMMENT ON FUNCTION interlock_internal.list_cut_off_counters() IS
'For advise: escrow counters that a change of names or of the key has cut off, and how to bring them back. evidence: how many changes wait.';
