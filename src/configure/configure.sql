-- The configuration of a table in one call, and of all tables in a view

CREATE FUNCTION interlock.configure(rel regclass, settings jsonb, dry_run boolean = false, OUT change text) RETURNS SETOF text
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.configure(regclass, jsonb, boolean) IS
'Brings a table to these settings, all or nothing, and returns the statements that it has run: none if they hold already. For migrations, which repeat it.
Members: versioning, transitions (by state column), marker, ownership ({columns, groups}), history, require_lease (by key), guard_children ({parent: {foreign_keys}}); their members are
the arguments of enable_versioning, define_transitions, enable_marker, enable_history and require_lease. Members that are not named stay
unchanged. A member that is null is removed as by disable_versioning and similar functions: a history table stays. An argument that is null
gets its default. dry_run: returns the statements and runs none. For the owner of the table. If there is no difference, it waits for no reader or writer.
Errors: 42501 not the owner, 22023 an unknown member or a value of another type, and those of the functions.';

CREATE FUNCTION interlock.configuration(rel regclass) RETURNS jsonb
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.configuration(regclass) IS
'The settings of a table as configure takes them, with all arguments, also those that have their default; {} if there are none. Arrays are sorted. A
partition has those of its parent. Waits for no lock. Needs some privilege on the table or a column. Errors: 42501, 42P01, 42809 not a table.';

CREATE FUNCTION interlock_internal.list_guards(
    OUT rel regclass, OUT mechanism text, OUT settings jsonb, OUT enforced boolean, OUT findings text[]) RETURNS SETOF record
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock_internal.list_guards() IS 'For the view guards: what is configured, from the catalog alone.';

CREATE FUNCTION interlock_internal.list_visible_tables(
    OUT oid oid, OUT relkind "char", OUT relnamespace oid, OUT relispartition boolean, OUT reltuples real, OUT relpersistence "char") RETURNS SETOF record
    LANGUAGE sql STABLE
BEGIN ATOMIC
    SELECT c.oid, c.relkind, c.relnamespace, c.relispartition, c.reltuples, c.relpersistence
      FROM pg_class c
     WHERE c.relkind IN ('r', 'p', 'f')
       AND (c.relpersistence <> 't' OR c.relnamespace = pg_my_temp_schema())
       AND (has_table_privilege(c.oid, 'SELECT, INSERT, UPDATE, DELETE, TRUNCATE, REFERENCES, TRIGGER')
            OR has_any_column_privilege(c.oid, 'SELECT, INSERT, UPDATE, REFERENCES')
            OR pg_has_role('pg_read_all_stats', 'USAGE'));
END;
COMMENT ON FUNCTION interlock_internal.list_visible_tables() IS 'For findings: tables on which the reader has some privilege; all for pg_monitor.';

CREATE FUNCTION interlock_internal.list_findings(
    OUT rel regclass, OUT severity text, OUT finding text, OUT advice text, OUT mechanism text) RETURNS SETOF record
    LANGUAGE sql STABLE
BEGIN ATOMIC
    WITH found AS MATERIALIZED (
        SELECT * FROM interlock_internal.list_trigger_findings()
        UNION ALL
        SELECT * FROM interlock_internal.list_citus_findings()
        UNION ALL
        SELECT * FROM interlock_internal.list_late_trigger_findings()
        UNION ALL
        SELECT * FROM interlock_internal.list_version_findings()
        UNION ALL
        SELECT * FROM interlock_internal.list_version_default_findings()
        UNION ALL
        SELECT * FROM interlock_internal.list_detached_findings()
        UNION ALL
        SELECT * FROM interlock_internal.list_transition_findings()
        UNION ALL
        SELECT * FROM interlock_internal.list_marker_findings()
        UNION ALL
        SELECT * FROM interlock_internal.list_children_findings()
        UNION ALL
        SELECT * FROM interlock_internal.list_escrow_findings()
        UNION ALL
        SELECT * FROM interlock_internal.list_lease_findings()
        UNION ALL
        SELECT * FROM interlock_internal.list_ownership_findings()
        UNION ALL
        SELECT * FROM interlock_internal.list_history_findings()
        UNION ALL
        SELECT g.rel, CASE WHEN g.enforced THEN 'risk' ELSE 'broken' END, f.finding,
               'the owner of the table drops triggers that no function of the extension has made', g.mechanism
          FROM interlock_internal.list_guards() g
         CROSS JOIN LATERAL unnest(g.findings) f (finding)),
    tables AS MATERIALIZED ( -- once each: to ask for privileges on columns takes long where there are many
        SELECT v.oid FROM interlock_internal.list_visible_tables() v WHERE v.oid IN (SELECT f.rel::oid FROM found f))
    SELECT f.rel, f.severity, f.finding, f.advice, f.mechanism
      FROM found f
     WHERE f.rel::oid IN (SELECT t.oid FROM tables t);
END;
COMMENT ON FUNCTION interlock_internal.list_findings() IS
'For advise and the view guards: what is wrong with mechanisms that are configured, from the catalog alone; of tables on which the caller has
some privilege. A finding that is about two mechanisms has two rows.';

CREATE VIEW interlock.guards AS
WITH findings AS (
    SELECT f.rel, f.mechanism, array_agg(f.finding ORDER BY f.finding) AS findings, bool_and(f.severity <> 'broken') AS enforced
      FROM interlock_internal.list_findings() f
     GROUP BY f.rel, f.mechanism)
SELECT COALESCE(g.rel, f.rel) AS rel, COALESCE(g.mechanism, f.mechanism) AS mechanism, g.settings,
       g.rel IS NOT NULL AND COALESCE(f.enforced, true) AS enforced, COALESCE(f.findings, '{}') AS findings
  FROM interlock_internal.list_guards() g
  FULL JOIN findings f ON f.rel = g.rel AND f.mechanism = g.mechanism;
GRANT SELECT ON interlock.guards TO PUBLIC;
COMMENT ON VIEW interlock.guards IS
'The configuration of every table and partition on which the reader has some privilege; pg_monitor sees all. mechanism (versioning, transitions, marker,
ownership, history, require_lease, guard_children, escrow) with its settings as in configure. enforced: false if a finding lets writes pass or refuses
all of them. findings: the findings of advise about the mechanism, except for reused keys. The view reads only the catalog, and waits for no lock.
settings is null if something is missing: a trigger was dropped, or a table inherits from a protected table.';
