-- Findings about histories

CREATE FUNCTION interlock_internal.list_history_findings(
    OUT rel regclass, OUT severity text, OUT finding text, OUT advice text, OUT mechanism text) RETURNS SETOF record
    LANGUAGE sql STABLE
BEGIN ATOMIC
    WITH recorded AS (
        SELECT t.tgrelid, t.tgname, t.tgconstrrelid, t.arguments, c.relowner, h.relowner AS history_owner,
               t.arguments[9:8 + n.columns] AS ignored_columns,
               t.arguments[10 + n.columns:9 + n.columns + m.writers] AS ignored_writers,
               t.arguments[10 + n.columns + m.writers:] AS key -- each column with its type
          FROM interlock_internal.list_own_triggers() t
          JOIN pg_class c ON c.oid = t.tgrelid
          JOIN pg_class h ON h.oid = t.tgconstrrelid
         CROSS JOIN LATERAL (SELECT COALESCE(substring(t.arguments[8] FROM '^([0-9]{1,4}) ignored columns$')::int4, 0)) n (columns)
         CROSS JOIN LATERAL (SELECT COALESCE(substring(t.arguments[9 + n.columns] FROM '^([0-9]{1,4}) ignored writers$')::int4, 0)) m (writers)
         WHERE t.kind = 'history_trigger' AND t.tgnargs > 0 AND t.tgparentid = 0)
    SELECT r.tgrelid::regclass, 'broken', 'the table has a history and no key that names one row: writes are refused',
           format('ALTER TABLE %s ADD PRIMARY KEY (%s)', r.tgrelid::regclass,
               (SELECT string_agg(quote_ident(k.name), ', ' ORDER BY k.n) FROM unnest(r.key) WITH ORDINALITY k (name, n) WHERE k.n % 2 = 1)),
           'history'
      FROM recorded r
     WHERE r.key <> '{}'
       AND NOT EXISTS (SELECT FROM pg_index i
                        WHERE i.indrelid = r.tgrelid AND i.indisunique AND i.indimmediate AND i.indisvalid AND i.indpred IS NULL AND i.indexprs IS NULL)
    UNION ALL
    SELECT r.tgrelid::regclass, 'broken', format('the history is in table %s of another owner: writes are refused', r.tgconstrrelid::regclass),
           -- No statement: roles with TRIGGER on one of the tables can have made the trigger, to get the other one.
           format('a superuser decides: if the table is the history, ALTER TABLE ... OWNER TO returns it; if not, drop trigger "%s"', r.tgname),
           'history'
      FROM recorded r
     WHERE r.relowner <> r.history_owner
    UNION ALL
    SELECT r.tgrelid::regclass, 'broken', format('column "%s" of history table %s is gone: writes are refused', c.name, r.tgconstrrelid::regclass),
           format('SELECT interlock.disable_history(%1$L), interlock.enable_history(%1$L, %2$L, %3$L%4$s%5$s%6$s%7$s%8$s) -- into a new table',
               r.tgrelid::regclass, NULLIF(r.arguments[1], ''), NULLIF(r.arguments[2], ''),
               CASE WHEN r.ignored_columns <> '{}' THEN format(', ignore_columns => %L', r.ignored_columns) END,
               CASE WHEN r.ignored_writers <> '{}' THEN format(', ignore_writers => %L', r.ignored_writers) END,
               CASE WHEN r.arguments[4] IN ('notify on', 'notify full') THEN format(', notify => %L', substr(r.arguments[4], 8)) END,
               CASE WHEN r.arguments[5] = 'record markers' THEN ', record_markers => true' END,
               CASE WHEN r.arguments[6] <> '' THEN format(', partition_by => %L', replace(r.arguments[6], ' a partition', '')) END,
               CASE WHEN r.arguments[7] ~ '^([2-9]|[1-9][0-9]{1,2}) entries per whole row$' THEN format(', whole_every => %s', split_part(r.arguments[7], ' ', 1)) END),
           'history'
      FROM recorded r
     CROSS JOIN unnest('{id,key,version,changed_at,writer,changed_by,operation,row_data,changed,before,transaction,command,writer_from,context,builds_on,distance,row_hash}'::text[]) c (name)
     WHERE NOT interlock_internal.has_column(r.tgconstrrelid, c.name)
    UNION ALL
    SELECT r.tgrelid::regclass, 'risk',
           format('history table %s has no default partition: a write is refused if no other partition includes its time', r.tgconstrrelid::regclass),
           format('CREATE TABLE %s PARTITION OF %s DEFAULT',
               (SELECT quote_ident(n.nspname) || '.' || quote_ident(h.relname || '_other')
                  FROM pg_class h JOIN pg_namespace n ON n.oid = h.relnamespace WHERE h.oid = r.tgconstrrelid), r.tgconstrrelid::regclass),
           'history'
      FROM recorded r
      JOIN pg_partitioned_table p ON p.partrelid = r.tgconstrrelid
     WHERE p.partdefid = 0
    UNION ALL
    SELECT r.tgrelid::regclass, 'risk',
           format('partition %s of history table %s belongs to another role: retention cannot drop it', c.oid::regclass, r.tgconstrrelid::regclass),
           format('ALTER TABLE %s OWNER TO %I', c.oid::regclass, pg_get_userbyid(r.history_owner)), 'history'
      FROM recorded r
      JOIN pg_partitioned_table p ON p.partrelid = r.tgconstrrelid
      JOIN pg_inherits i ON i.inhparent = r.tgconstrrelid
      JOIN pg_class c ON c.oid = i.inhrelid
     WHERE c.relowner <> r.history_owner
    UNION ALL
    SELECT r.tgrelid::regclass, 'risk', format('column "%s" in ignore_columns of the history is gone: changes under another name are recorded', c.name),
           'the owner of the table calls enable_history with the current names', 'history'
      FROM recorded r
     CROSS JOIN unnest(r.ignored_columns) c (name)
     WHERE NOT interlock_internal.has_column(r.tgrelid, c.name);
END;
COMMENT ON FUNCTION interlock_internal.list_history_findings() IS
'For advise and the view guards: histories without a key, a column or their owner.';

CREATE FUNCTION interlock_internal.list_reused_keys(OUT rel regclass, OUT inserts bigint) RETURNS SETOF record
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock_internal.list_reused_keys() IS
'For advise: tables whose history shows keys that were inserted again with a version that they had had, and how often. Of each history
that the caller may read, without row security, the newest 10000 entries, and of these inserts of the last 7 days.';

CREATE FUNCTION interlock_internal.list_reused_key_findings(
    OUT rel regclass, OUT severity text, OUT finding text, OUT advice text, OUT mechanism text) RETURNS SETOF record
    LANGUAGE sql STABLE
BEGIN ATOMIC
    SELECT r.rel, 'risk', format('a key that is used again meets old versions: its history has inserts that did, in the last 7 days %s', r.inserts),
           format('writers leave column "%s" to its default in each INSERT; changed_by in the history says who did not', v.attname), 'versioning'
      FROM interlock_internal.list_reused_keys() r
      JOIN interlock_internal.list_version_columns() v ON v.tgrelid = r.rel::oid AND v.tgparentid = 0;
END;
COMMENT ON FUNCTION interlock_internal.list_reused_key_findings() IS
'For advise: keys that were used again with versions that they had had. Reads histories.';
