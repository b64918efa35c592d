-- Findings about tables that Citus distributes

CREATE FUNCTION interlock_internal.distribution(rel oid) RETURNS text
    LANGUAGE c STABLE STRICT AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock_internal.distribution(oid) IS
'For findings: how Citus distributes the table: sharded, or reference. Null if it does not.';

CREATE FUNCTION interlock_internal.list_unguarded_shards(OUT rel oid, OUT shard oid, OUT call text) RETURNS SETOF record
    LANGUAGE c STABLE AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock_internal.list_unguarded_shards() IS
'For findings: the shards on this server that lack a trigger of the extension which their distributed table or another of its shards has. call:
the trigger function with its arguments.';

CREATE FUNCTION interlock_internal.list_citus_findings(
    OUT rel regclass, OUT severity text, OUT finding text, OUT advice text, OUT mechanism text) RETURNS SETOF record
    LANGUAGE sql STABLE
BEGIN ATOMIC
    SELECT t.tgrelid::regclass, 'broken',
           format('Citus distributes the table, and %s does not work for distributed tables', r.what),
           'the owner of the table disables it, or calls undistribute_table for the table', t.mechanism
      FROM interlock_internal.list_own_triggers() t
      JOIN (VALUES ('marker_trigger', 'a marker'), ('history_trigger', 'a history'), ('escrow_trigger', 'an escrow counter'),
                   ('children_trigger', 'guard_children'), ('ownership_trigger', 'own_columns with on_violation skip'),
                   ('version_trigger', 'a time as the version')) r (kind, what) ON r.kind = t.kind
     WHERE interlock_internal.distribution(t.tgrelid) IS NOT NULL
       AND (t.kind <> 'ownership_trigger' OR t.arguments && '{own:skip,once:skip}')
       AND (t.kind <> 'version_trigger' -- each copy of the row gets a time of its own
            OR interlock_internal.distribution(t.tgrelid) = 'reference'
               AND EXISTS (SELECT FROM pg_attribute a
                            WHERE a.attrelid = t.tgrelid AND a.attname = t.arguments[1] AND NOT a.attisdropped
                              AND a.atttypid IN ('timestamp'::regtype, 'timestamptz'::regtype)))
    UNION ALL
    SELECT s.rel::regclass, 'broken', format('shard %s has no trigger that calls %s: its writes are not checked', s.shard::regclass, s.call),
           'the owner of the table calls the enabling function again, with citus.enable_unsafe_triggers = on',
           k.mechanism
      FROM interlock_internal.list_unguarded_shards() s
      JOIN interlock_internal.list_trigger_kinds() k ON k.kind = split_part(s.call, '(', 1);
END;
COMMENT ON FUNCTION interlock_internal.list_citus_findings() IS
'For advise and the view guards: what does not work on a table that Citus distributes, and shards without the triggers of their table.';
