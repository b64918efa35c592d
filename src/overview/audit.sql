-- Who broke, forced, granted or configured what

CREATE TABLE interlock.configuration_audit (
    id bigint GENERATED ALWAYS AS IDENTITY,
    changed_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    changed_by text NOT NULL,
    kind text NOT NULL,
    action text NOT NULL,
    name text,
    table_name text,
    grantee text,
    before jsonb,
    after jsonb,
    PRIMARY KEY (id, changed_at));
COMMENT ON TABLE interlock.configuration_audit IS
'Every call of a function that configures a table or an idempotency scope (kind configuration), or grants or revokes something (kind
grant), and of end_grace (kind force). It has the time, the user, the function, the object, and the changed settings before and after. Statements that change triggers
without these functions are not recorded.';
COMMENT ON SEQUENCE interlock.configuration_audit_id_seq IS 'Numbers the rows of configuration_audit.';
SELECT pg_catalog.pg_extension_config_dump('interlock.configuration_audit', '');
SELECT pg_catalog.pg_extension_config_dump('interlock.configuration_audit_id_seq', '');

CREATE VIEW interlock.audit WITH (security_barrier) AS
SELECT a.at, a.role, a.kind, a.action, a.name, a.table_name, a.holder, a.reason, a.before, a.after
  FROM (SELECT l.broken_at AS at, l.broken_by AS role, 'break'::text AS kind, 'break_lease'::text AS action, l.key AS name,
               NULL::text AS table_name, l.holder, l.reason, NULL::jsonb AS before, NULL::jsonb AS after,
               NULL::text AS owner
          FROM interlock.lease_audit l
         UNION ALL
        SELECT r.forced_at, r.forced_by, 'force', r.action, r.key::text, r.table_name, r.holder, r.reason, NULL,
               CASE WHEN r.taken_by IS NOT NULL THEN jsonb_build_object('holder', r.taken_by) END, NULL
          FROM interlock.row_lock_audit r
         UNION ALL
        SELECT i.forgotten_at, i.forgotten_by, 'forget', 'idempotency_forget', concat(i.scope, ':', i.key), NULL, NULL, i.reason,
               jsonb_build_object('status', i.status, 'attempt', i.attempt), NULL, NULL
          FROM interlock.idempotency_audit i
         UNION ALL
        SELECT w.written_at, w.written_by, 'force',
               CASE w.decision WHEN 'forced' THEN 'forced_write' WHEN 'blind' THEN 'blind_update' ELSE 'suppress_history' END,
               NULL, w.table_name, w.owner, w.reason, NULL,
               jsonb_build_object('operation', w.operation, 'columns', w.columns, 'rows', w.row_count, 'writer', w.writer), w.table_owner
          FROM interlock.write_log w
         WHERE w.decision = ANY (ARRAY['forced', 'blind', 'suppressed'])
           AND (w.decision <> 'suppressed' OR w.reason IS NULL
                OR NOT w.reason = ANY (ARRAY['ignore_columns', 'ignore_writers']))
         UNION ALL
        SELECT c.changed_at, c.changed_by, 'configuration', c.action, c.name, c.table_name, c.grantee, NULL, c.before, c.after, NULL
          FROM interlock.configuration_audit c WHERE c.kind = 'configuration'
         UNION ALL
        SELECT c.changed_at, c.changed_by, 'force', c.action, NULL, NULL, NULL, c.after ->> 'reason', NULL, c.after, NULL
          FROM interlock.configuration_audit c WHERE c.kind = 'force'
         UNION ALL
        SELECT c.changed_at, c.changed_by, 'grant', c.action, c.name, c.table_name, c.grantee, NULL, c.before, c.after, NULL
          FROM interlock.configuration_audit c WHERE c.kind = 'grant') a
 WHERE (SELECT pg_has_role('pg_read_all_stats', 'USAGE')
            OR has_table_privilege('interlock.configuration_audit'::regclass, 'SELECT'))
    OR EXISTS (SELECT FROM pg_roles r
                WHERE r.rolname::text = ANY (ARRAY[a.role, a.owner]) AND pg_has_role(r.oid, 'USAGE'));
GRANT SELECT ON interlock.audit TO PUBLIC;
COMMENT ON VIEW interlock.audit IS
'Every break of a lease (kind break), write over an owner or a marker, blind update by setting, suppressed history and end_grace (force), forgotten
idempotency key (forget), grant and revocation (grant) and change of configuration (configuration): who, when, what and why. Roles see
what their members did, and forced writes of tables that were theirs; pg_read_all_stats, and roles with SELECT on configuration_audit, see all.';
