-- What the findings of all mechanisms are made from, and the findings about triggers of any mechanism

CREATE FUNCTION interlock_internal.split_arguments(arguments bytea) RETURNS text[]
    LANGUAGE c IMMUTABLE PARALLEL SAFE AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock_internal.split_arguments(bytea) IS
'For findings: the arguments of a trigger, as pg_trigger.tgargs has them. None if they have more than 4 MB: no function of the
extension makes such.';

CREATE FUNCTION interlock_internal.has_column(rel oid, name text) RETURNS boolean
    LANGUAGE sql STABLE STRICT
BEGIN ATOMIC
    SELECT EXISTS (SELECT FROM pg_attribute a
                    WHERE a.attrelid = has_column.rel AND a.attname = has_column.name AND a.attnum > 0 AND NOT a.attisdropped);
END;
COMMENT ON FUNCTION interlock_internal.has_column(oid, text) IS 'For findings: whether the table has a column of this name.';

CREATE FUNCTION interlock_internal.list_trigger_kinds(OUT kind text, OUT mechanism text, OUT effect text) RETURNS SETOF record
    LANGUAGE sql IMMUTABLE
BEGIN ATOMIC
    VALUES ('version_trigger', 'versioning', 'updates do not move versions'),
           ('transition_trigger', 'transitions', 'changes of state are not checked'),
           ('initial_state_trigger', 'transitions', 'states of new rows are not checked'),
           ('marker_trigger', 'marker', 'markers are not enforced'),
           ('marker_notify_trigger', 'marker', 'nobody is notified of markers'),
           ('lease_trigger', 'require_lease', 'writes need no lease'),
           ('children_trigger', 'guard_children', 'changes of children do not move their parents'),
           ('ownership_trigger', 'ownership', 'columns are written by anybody'),
           ('history_trigger', 'history', 'changes are not recorded'),
           ('history_truncate_trigger', 'history', 'TRUNCATE is not recorded'),
           ('escrow_trigger', 'escrow', 'writes pass by the counters, which cannot be adjusted'),
           ('escrow_truncate_trigger', 'escrow', 'TRUNCATE leaves parts of the counters');
END;
COMMENT ON FUNCTION interlock_internal.list_trigger_kinds() IS
'For findings: the trigger functions of the extension, the mechanism of each, and what a table lacks while the trigger does not fire.';

CREATE FUNCTION interlock_internal.list_own_triggers(
    OUT oid oid, OUT tgrelid oid, OUT tgname name, OUT tgenabled "char", OUT tgparentid oid, OUT tgtype smallint, OUT tgconstrrelid oid,
    OUT tgnargs smallint, OUT kind text, OUT mechanism text, OUT effect text, OUT arguments text[], OUT is_check boolean) RETURNS SETOF record
    -- Not part of the plan of its callers, as a stable function would be: it splits the arguments once, and the planner expects
    -- a thousand triggers, not one.
    LANGUAGE sql VOLATILE
BEGIN ATOMIC
    SELECT t.oid, t.tgrelid, t.tgname, t.tgenabled, t.tgparentid, t.tgtype, t.tgconstrrelid, t.tgnargs,
           k.kind, k.mechanism, k.effect, interlock_internal.split_arguments(t.tgargs),
           k.kind IN ('version_trigger', 'transition_trigger', 'marker_trigger', 'escrow_trigger')
           OR k.kind = 'ownership_trigger' AND (position('own:'::bytea IN t.tgargs) > 0 OR position('once:'::bytea IN t.tgargs) > 0)
      FROM interlock_internal.list_trigger_kinds() k
      JOIN pg_proc p ON p.proname = k.kind AND p.pronamespace = 'interlock_internal'::regnamespace
      JOIN pg_trigger t ON t.tgfoid = p.oid
      JOIN pg_class c ON c.oid = t.tgrelid AND (c.relpersistence <> 't' OR c.relnamespace = pg_my_temp_schema());
END;
COMMENT ON FUNCTION interlock_internal.list_own_triggers() IS
'For findings: the triggers of the extension with their arguments, the mechanism that they are of, and what a table lacks while they do not
fire. is_check: it checks the row as it will be, so no other trigger may change the row after it. Without those of temporary tables of other sessions.';

CREATE FUNCTION interlock_internal.list_trigger_findings(
    OUT rel regclass, OUT severity text, OUT finding text, OUT advice text, OUT mechanism text) RETURNS SETOF record
    LANGUAGE sql STABLE
BEGIN ATOMIC
    SELECT t.tgrelid::regclass, CASE t.kind WHEN 'marker_notify_trigger' THEN 'risk' ELSE 'broken' END,
           format('trigger "%s" %s: %s', t.tgname,
               CASE WHEN t.tgenabled = 'D' THEN 'is disabled'
                    WHEN t.tgenabled = 'R' THEN 'fires on a replica only'
                    WHEN t.mechanism = 'escrow' THEN 'does not fire in all sessions'
                    ELSE 'does not fire in this session, where session_replication_role is replica' END, t.effect),
           CASE WHEN t.mechanism = 'escrow' THEN format('ALTER TABLE %s ENABLE ALWAYS TRIGGER %I', t.tgrelid::regclass, t.tgname)
                WHEN t.tgenabled = 'O' THEN 'RESET session_replication_role'
                ELSE format('ALTER TABLE %s ENABLE TRIGGER %I', t.tgrelid::regclass, t.tgname) END,
           t.mechanism
      FROM interlock_internal.list_own_triggers() t
     WHERE t.tgenabled IN ('D', 'R')
        OR t.tgenabled = 'O' AND (t.mechanism = 'escrow' OR current_setting('session_replication_role') = 'replica')
    UNION ALL
    SELECT t.tgrelid::regclass, 'broken',
           format('triggers "%s" and "%s" say the same: writes are refused', min(t.tgname::text), max(t.tgname::text)),
           'the owner of the table drops the one that no function of pg_interlock has made: a role with TRIGGER on the table has made it',
           t.mechanism
      FROM interlock_internal.list_own_triggers() t
     WHERE t.kind IN ('version_trigger', 'transition_trigger', 'marker_trigger', 'ownership_trigger', 'history_trigger', 'escrow_trigger')
     GROUP BY t.tgrelid, t.mechanism, CASE WHEN t.kind IN ('transition_trigger', 'escrow_trigger') THEN t.arguments[1] END
    HAVING count(*) > 1
       AND bool_or(t.tgparentid = 0) -- not those of a partitioned table alone, where they are found
    UNION ALL
    SELECT DISTINCT t.tgrelid::regclass, 'broken', 'the partition is a foreign table, where no row can be checked: writes that fire its triggers are refused',
           'the owner of the table detaches the partition', t.mechanism
      FROM interlock_internal.list_own_triggers() t
      JOIN pg_class c ON c.oid = t.tgrelid AND c.relkind = 'f'
    UNION ALL
    SELECT DISTINCT i.inhrelid::regclass, 'broken',
           CASE t.kind WHEN 'version_trigger' THEN 'the table inherits from a versioned one and is not versioned itself'
                       WHEN 'transition_trigger' THEN
                           format('the table inherits from one with transitions of column "%s" and has none itself', t.arguments[1])
                       WHEN 'marker_trigger' THEN 'the table inherits from one with markers and has none itself'
                       ELSE 'the table inherits from one with owned columns and has none itself' END,
           CASE t.kind WHEN 'version_trigger' THEN
                           format('SELECT interlock.enable_versioning(%L, %L)', i.inhrelid::regclass, t.arguments[1])
                       WHEN 'transition_trigger' THEN 'the owner of the table calls define_transitions for it as well'
                       WHEN 'marker_trigger' THEN 'the owner of the table calls enable_marker for it as well'
                       ELSE 'the owner of the table calls own_columns for it as well' END,
           t.mechanism
      FROM interlock_internal.list_own_triggers() t
      JOIN pg_inherits i ON i.inhparent = t.tgrelid
     WHERE t.is_check AND t.mechanism <> 'escrow' -- counters are of rows of the table alone
       AND (t.kind <> 'transition_trigger' OR interlock_internal.has_column(t.tgrelid, t.arguments[1])) -- which the heirs have as well
       AND NOT EXISTS (SELECT FROM interlock_internal.list_own_triggers() o
                        WHERE o.tgrelid = i.inhrelid AND o.kind = t.kind AND o.is_check
                          AND (t.kind <> 'transition_trigger' OR o.arguments[1] = t.arguments[1]));
END;
COMMENT ON FUNCTION interlock_internal.list_trigger_findings() IS
'For advise and the view guards: triggers of the extension that are off, that stand twice on a table, that a foreign partition has, or that a
table which inherits lacks.';

CREATE FUNCTION interlock_internal.list_late_trigger_findings(
    OUT rel regclass, OUT severity text, OUT finding text, OUT advice text, OUT mechanism text) RETURNS SETOF record
    LANGUAGE sql STABLE
BEGIN ATOMIC
    WITH checks AS (
        SELECT t.tgrelid, t.tgname, t.tgenabled, t.mechanism, t.tgtype & 20 AS events -- insert, update
          FROM interlock_internal.list_own_triggers() t
         WHERE t.is_check AND t.mechanism <> 'escrow' AND t.tgenabled <> 'D'
         UNION ALL -- and delete, after the first trigger of any mechanism
        SELECT e.tgrelid, t.tgname, e.tgenabled, e.mechanism, 28
          FROM interlock_internal.list_own_triggers() e
          JOIN interlock_internal.list_own_triggers() t ON t.tgrelid = e.tgrelid
         WHERE e.kind = 'escrow_trigger' AND t.is_check AND e.tgenabled <> 'D'),
    late AS ( -- triggers for each row, before the change
        SELECT l.tgrelid, l.tgname, l.tgparentid, c.mechanism,
               min(min(c.tgname::text COLLATE "C")) OVER (PARTITION BY l.oid) AS first
          FROM pg_trigger l
          JOIN checks c ON c.tgrelid = l.tgrelid AND c.tgname < l.tgname AND l.tgtype & c.events <> 0
                       AND (c.tgenabled = l.tgenabled OR c.tgenabled = 'A' OR l.tgenabled = 'A')
         WHERE l.tgtype & 3 = 3 AND l.tgenabled <> 'D'
           AND NOT EXISTS (SELECT FROM interlock_internal.list_own_triggers() o
                            WHERE o.oid = l.oid AND o.mechanism IN ('versioning', 'transitions', 'marker', 'ownership', 'escrow')
                              AND o.kind <> 'initial_state_trigger')
           AND NOT EXISTS (SELECT FROM pg_trigger p JOIN checks k ON k.tgrelid = p.tgrelid WHERE p.oid = l.tgparentid) -- found there
         GROUP BY l.oid, l.tgrelid, l.tgname, l.tgparentid, c.mechanism)
    SELECT l.tgrelid::regclass, 'broken', format('trigger "%s" fires after trigger "%s": writes are refused', l.tgname, l.first),
           format('ALTER TRIGGER %I ON %s RENAME TO %I', l.tgname, r.root, CASE WHEN 'a_' < l.first THEN 'a_' ELSE '0_' END || l.tgname),
           l.mechanism
      FROM late l
     CROSS JOIN LATERAL ( -- A trigger of a partitioned table is renamed there.
           SELECT COALESCE((SELECT t.tgrelid
                              FROM pg_partition_ancestors(l.tgrelid) WITH ORDINALITY a (relid, level)
                              JOIN pg_trigger t ON t.tgrelid = a.relid::oid
                             WHERE l.tgparentid <> 0 AND t.tgparentid = 0 AND t.tgname = l.tgname
                             ORDER BY a.level LIMIT 1), l.tgrelid)::regclass) r (root);
END;
COMMENT ON FUNCTION interlock_internal.list_late_trigger_findings() IS
'For advise and the view guards: BEFORE triggers of others that fire after those of the extension, so that writes are refused.';
