-- The configuration of a table in one call, and of all tables in a view

CREATE FUNCTION interlock.configure(rel regclass, settings jsonb, dry_run boolean = false, OUT change text) RETURNS SETOF text
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.configure(regclass, jsonb, boolean) IS
'Brings a table to these settings, all or nothing, and returns the statements that it has run: none if they hold already. For migrations, which repeat it.
Members: versioning, transitions (by state column), marker, ownership ({columns, groups}), history, require_lease (by key), guard_children ({parent: {foreign_keys}}); their members are
the arguments of enable_versioning, define_transitions, enable_marker, enable_history and require_lease. What is not named stays as it is; null
for a member removes it (disable_versioning and its like, with their rules: a history table stays), and null for an argument sets its
default. dry_run: returns the statements and runs none. For the owner of the table. Without a difference it waits for nobody who reads or writes.
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

CREATE VIEW interlock.guards AS
WITH listed AS MATERIALIZED (
    SELECT f.rel, f.finding, f.mechanisms, f.enforced FROM interlock_internal.list_findings(false) f),
tables AS MATERIALIZED ( -- once each: to ask for privileges on columns takes long where there are many
    SELECT DISTINCT l.rel FROM listed l),
findings AS (
    SELECT l.rel, m.mechanism, pg_catalog.array_agg(l.finding ORDER BY l.finding) AS findings, pg_catalog.bool_and(l.enforced) AS enforced
      FROM listed l
     CROSS JOIN LATERAL pg_catalog.unnest(l.mechanisms) m (mechanism)
     WHERE l.rel OPERATOR(pg_catalog.=) ANY (
               SELECT t.rel
                 FROM tables t
                WHERE pg_catalog.has_table_privilege(t.rel, 'SELECT, INSERT, UPDATE, DELETE, TRUNCATE, REFERENCES, TRIGGER')
                   OR pg_catalog.has_any_column_privilege(t.rel, 'SELECT, INSERT, UPDATE, REFERENCES')
                   OR pg_catalog.pg_has_role('pg_read_all_stats', 'USAGE'))
     GROUP BY l.rel, m.mechanism)
SELECT COALESCE(g.rel, f.rel) AS rel, COALESCE(g.mechanism, f.mechanism) AS mechanism, g.settings,
       COALESCE(g.enforced, false) AND COALESCE(f.enforced, true) AS enforced,
       COALESCE(g.findings, '{}'::pg_catalog.text[]) OPERATOR(pg_catalog.||) COALESCE(f.findings, '{}'::pg_catalog.text[]) AS findings
  FROM interlock_internal.list_guards() g
  FULL JOIN findings f ON f.rel OPERATOR(pg_catalog.=) g.rel AND f.mechanism OPERATOR(pg_catalog.=) g.mechanism;
GRANT SELECT ON interlock.guards TO PUBLIC;
COMMENT ON VIEW interlock.guards IS
'What is configured on every table and partition on which the reader has some privilege, or for pg_monitor: mechanism (versioning, transitions, marker,
ownership, history, require_lease, guard_children) with its settings as in configure. enforced: false when a finding lets writes pass, or refuses them all. findings:
as check_versioning has them, but for keys that are used again: it reads the catalog alone, and waits for no lock. settings is null where something is missing: a trigger was dropped, or a table inherits from a protected one.';
