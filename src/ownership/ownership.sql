-- Writers

CREATE TABLE interlock.writer_grant (
    writer text COLLATE "C" NOT NULL,
    role_name text COLLATE "C" NOT NULL,
    may_force boolean NOT NULL,
    is_default boolean NOT NULL DEFAULT false,
    granted_by text NOT NULL,
    granted_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (writer, role_name));
COMMENT ON TABLE interlock.writer_grant IS
'Which roles may write as which writer, by name, so that it survives dump and restore; "public" is everybody. grant_writer and
revoke_writer write it. Rows of a role that is renamed or dropped stay: call revoke_writer.';
SELECT pg_catalog.pg_extension_config_dump('interlock.writer_grant', '');
CREATE UNIQUE INDEX writer_grant_default ON interlock.writer_grant (role_name) WHERE is_default;
COMMENT ON INDEX interlock.writer_grant_default IS 'A role has one default writer.';

CREATE FUNCTION interlock.grant_writer(writer text, role name, may_force boolean = false, is_default boolean = false) RETURNS void
    LANGUAGE c AS 'MODULE_PATHNAME';
REVOKE EXECUTE ON FUNCTION interlock.grant_writer(text, name, boolean, boolean) FROM PUBLIC;
COMMENT ON FUNCTION interlock.grant_writer(text, name, boolean, boolean) IS
'Lets members of a role (''public'': everybody) call set_writer for the writer; with may_force also to write what other writers
own. With is_default the role itself, not its members, writes as the writer wherever no set_writer counts; without force.
Calling it again changes may_force and is_default. Only superusers may call it until EXECUTE is granted.
Errors: 42704 no such role, 22023 a writer that is empty, longer than 256 bytes, or has control characters, or a default of everybody,
55000 the role has another default.';

CREATE FUNCTION interlock.revoke_writer(writer text, role name) RETURNS void
    LANGUAGE c AS 'MODULE_PATHNAME';
REVOKE EXECUTE ON FUNCTION interlock.revoke_writer(text, name) FROM PUBLIC;
COMMENT ON FUNCTION interlock.revoke_writer(text, name) IS
'Revokes what grant_writer granted, from the next set_writer on, and a default from the next statement on. Errors: 42704 it was not granted.';

CREATE FUNCTION interlock.set_writer(writer text, force boolean = false) RETURNS void
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.set_writer(text, boolean) IS
'Sets the writer for the rest of the transaction, or until the rollback of a savepoint before it; null: none. With force
the writer also writes columns that others own, and each such row is logged in forced_writes.
Called in a SECURITY DEFINER function it counts for what runs with its owner''s rights, and the caller''s counts again afterwards;
after SET ROLE it no longer counts.
Errors: 42501 not granted to a role of the current user (grant_writer), 22023 a writer that is empty, longer than 256 bytes, or has control characters.';

CREATE FUNCTION interlock.current_writer() RETURNS text
    LANGUAGE c STABLE PARALLEL RESTRICTED AS 'MODULE_PATHNAME', 'sql_current_writer';
COMMENT ON FUNCTION interlock.current_writer() IS
'The writer of the transaction, as set by set_writer, else the default of the role (grant_writer), or null.';

-- The write log

CREATE TABLE interlock.write_log (
    id bigint GENERATED ALWAYS AS IDENTITY,
    written_at timestamptz NOT NULL,
    decision text NOT NULL,
    table_name text NOT NULL,
    table_owner text NOT NULL,
    operation text NOT NULL,
    key jsonb,
    columns text[],
    row_count bigint NOT NULL,
    owner text,
    writer text,
    written_by text NOT NULL,
    reason text,
    stored jsonb,
    given jsonb,
    PRIMARY KEY (id, written_at));
COMMENT ON TABLE interlock.write_log IS
'Lines about writes that were not stored as given (decision skipped, merged or forced), not recorded in the history
(suppressed), or not checked (blind): time, user, table and columns, number of rows, the key of a single one. Lines of the current transaction
are written when their savepoint or transaction ends; the views over it show them before. The sweeper deletes them after
interlock.write_log_keep.';
COMMENT ON SEQUENCE interlock.write_log_id_seq IS 'Numbers the rows of write_log.';
SELECT pg_catalog.pg_extension_config_dump('interlock.write_log', '');
SELECT pg_catalog.pg_extension_config_dump('interlock.write_log_id_seq', '');

CREATE FUNCTION interlock_internal.list_unwritten_lines() RETURNS SETOF interlock.write_log
    LANGUAGE c VOLATILE PARALLEL RESTRICTED AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock_internal.list_unwritten_lines() IS
'Lines of this transaction that are not in write_log yet, about tables of the caller''s roles; their id is null.';

CREATE VIEW interlock_internal.all_writes WITH (security_barrier) AS
    SELECT w.*,
           (SELECT c.oid::regclass
              FROM pg_class c
              JOIN pg_namespace n ON n.oid = c.relnamespace
             WHERE n.nspname = (parse_ident(w.table_name))[1]::name
               AND c.relname = (parse_ident(w.table_name))[2]::name) AS rel
      FROM (SELECT * FROM interlock.write_log UNION ALL SELECT * FROM interlock_internal.list_unwritten_lines()) w
      LEFT JOIN pg_roles r ON r.rolname = w.table_owner::name
     WHERE pg_has_role(COALESCE(r.oid, 10::oid), 'USAGE');
COMMENT ON VIEW interlock_internal.all_writes IS
'The lines of write_log that the reader may see: those about tables that belonged to one of the reader''s roles; superusers see all.
rel is the table that has the name now.';

CREATE VIEW interlock.operation_log WITH (security_barrier) AS
    SELECT id, written_at, rel, table_name, operation, key, columns, row_count, writer, written_by, reason
      FROM interlock_internal.all_writes
     WHERE decision = ANY (ARRAY['suppressed', 'blind']);
GRANT SELECT ON interlock.operation_log TO PUBLIC;
COMMENT ON VIEW interlock.operation_log IS
'A line for each statement and table: writer, columns, number of rows, reason. It has writes while history was suppressed, writes that history
ignores (reason ignore_columns or ignore_writers), and blind updates by an owner with interlock.blind_updates = allow. Owners of a table
see its lines. In the order of written_at.';

CREATE VIEW interlock.skipped_writes WITH (security_barrier) AS
    SELECT id, written_at, decision, rel, table_name, key, columns, row_count, owner, writer, written_by, stored, given
      FROM interlock_internal.all_writes WHERE decision = ANY (ARRAY['skipped', 'merged']);
GRANT SELECT ON interlock.skipped_writes TO PUBLIC;
COMMENT ON VIEW interlock.skipped_writes IS
'Values of a writer that were not stored as given. skipped: columns stayed unchanged; a line for each transaction or savepoint, table, owner and
writer. merged: columns were combined with what another writer had stored; a line for each row. stored and given are from the first row.
Owners of a table see its lines.';

CREATE VIEW interlock.forced_writes WITH (security_barrier) AS
    SELECT id, written_at, rel, table_name, key, columns, owner, writer, written_by, stored, given
      FROM interlock_internal.all_writes WHERE decision = 'forced';
GRANT SELECT ON interlock.forced_writes TO PUBLIC;
COMMENT ON VIEW interlock.forced_writes IS
'Columns that a writer with force wrote over their owner: a line for each row and owner, with what was stored before. Owners of a table
see its lines.';

-- Field ownership

CREATE FUNCTION interlock_internal.ownership_trigger() RETURNS trigger
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock_internal.ownership_trigger() IS
'Checks every update against the owners of the columns that it changes. Created by own_columns, share_columns and group_columns;
arguments: triples of column, kind (own:reject, own:skip, once:reject, once:skip, share:retry, share:skip, share:merge, group, blind) and value (writer, number, mode).
Errors: IL007 a column belongs to another writer, 55000 an owned column is gone or another BEFORE trigger fires later.';

CREATE FUNCTION interlock.own_columns(
    rel regclass, writer text, columns name[], on_violation text = 'reject', once_changed boolean = false) RETURNS void
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.own_columns(regclass, text, name[], text, boolean) IS
'Allows only the writer (set_writer) to change these columns by UPDATE, by any statement, function, trigger or cascade. An
update that leaves a column as it is stored is always allowed. on_violation: reject (IL007), or skip: the stored value stays, and
skipped_writes has a line. once_changed: a column is free in each row until the writer changes it there; then it belongs to the writer in that
row until release_values. The table gets a column value_writers (jsonb) for it. For the owner of the table; waits for transactions that write to it.
Again for the same writer: changes on_violation and once_changed.
Warns when the writer has not been granted to any role. Errors: 42501 not the owner, 42703 no such column, 428C9 generated column,
22023 version or marker column, no column, one named twice, empty or long writer, unknown on_violation, 42804 a column value_writers of
another type, 55000 another writer''s or shared, a partition, a BEFORE trigger that fires later; 22004, 42809 no table.';

CREATE FUNCTION interlock.share_columns(
    rel regclass, columns name[], strategy text = 'retry', blind_updates text = 'allow') RETURNS void
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.share_columns(regclass, name[], text, text) IS
'Declares what try_versioned_update with on_conflict => ''merge'' does if both writers changed a column. retry keeps the conflict. skip keeps the
stored value. merge combines both: the changes of numbers are added, arrays without duplicates are sets, jsonb objects are combined member by member.
Values that cannot be combined stay a conflict. skipped_writes shows what was skipped and merged. blind_updates: as for enable_versioning,
for updates that change one of the columns. For the owner of the table; again: changes both. Errors: as own_columns; 22023 unknown strategy, merge of a column in ignore_columns of enable_versioning,
unknown blind_updates, 55000 owned by a writer, not versioned or not preloaded for blind_updates. Of a merge: 22003 a sum out of range.';

CREATE FUNCTION interlock.release_columns(rel regclass, columns name[]) RETURNS void
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.release_columns(regclass, name[]) IS
'Columns are neither owned nor shared any more. Takes names of columns that were dropped or renamed as well, and removes all their rules.
For the owner of the table; takes an ACCESS EXCLUSIVE lock. Errors: 42501 not the owner, 42703 no such column, 55000 neither owned nor
shared, a partition; 22004, 22023.';

CREATE FUNCTION interlock.release_values(rel regclass, key text, columns name[]) RETURNS boolean
    LANGUAGE c AS 'MODULE_PATHNAME';
CREATE FUNCTION interlock.release_values(rel regclass, key "any", columns name[]) RETURNS boolean
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.release_values(regclass, text, name[]) IS
'Values of a row belong to nobody any more: any writer may change them. For columns that are owned once changed (own_columns). True if one of
them belonged to a writer. For that writer, and for the owner of the table. The values and the version stay.
Errors: IL007 one belongs to another writer, P0002 no such row, 42703 no such column, 55000 a column that is not owned once changed, 42501.';
COMMENT ON FUNCTION interlock.release_values(regclass, "any", name[]) IS
'As release_values(regclass, text, name[]), for a key of another type.';

CREATE FUNCTION interlock.hand_over_columns(rel regclass, columns name[], to_writer text) RETURNS void
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.hand_over_columns(regclass, name[], text) IS
'Gives owned columns to another writer, all or none, at one moment: it waits for transactions that write to the table, and those that
come later find the new owner. For the owner of the table. Errors: as own_columns; 55000 not owned.';

CREATE FUNCTION interlock.group_columns(rel regclass, columns name[]) RETURNS void
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.group_columns(regclass, name[]) IS
'Columns that belong together (price, quantity, total): in a merge a change of one conflicts with another writer''s change of any, whatever
their strategies. A group may be named again with more columns. For the owner of the table.
Errors: as own_columns; 22023 fewer than two columns, 55000 one is in a group with others.';

CREATE FUNCTION interlock.ungroup_columns(rel regclass, columns name[]) RETURNS void
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.ungroup_columns(regclass, name[]) IS
'Takes columns out of their groups; a group of one column ends. For the owner of the table; takes an ACCESS EXCLUSIVE lock.
Errors: as release_columns; 55000 in no group.';

CREATE FUNCTION interlock_internal.list_column_rules(
    OUT rel regclass, OUT column_name name, OUT writer text, OUT on_violation text, OUT strategy text, OUT group_number integer,
    OUT enforced boolean, OUT once_changed boolean)
    RETURNS SETOF record
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock_internal.list_column_rules() IS 'The rules of the view column_ownership.';

CREATE VIEW interlock.column_ownership AS
    SELECT r.rel, r.column_name, r.writer, r.on_violation, r.strategy, r.group_number, COALESCE(f.forced, 0) AS forced, r.enforced, r.once_changed
      FROM interlock_internal.list_column_rules() r
      JOIN pg_class c ON c.oid = r.rel::oid
      LEFT JOIN (SELECT w.rel, u.column_name, count(*) AS forced
                   FROM interlock.forced_writes w CROSS JOIN LATERAL unnest(w.columns) u (column_name)
                  GROUP BY 1, 2) f
        ON f.rel::oid = c.oid
       AND f.column_name = r.column_name::text;
GRANT SELECT ON interlock.column_ownership TO PUBLIC;
COMMENT ON VIEW interlock.column_ownership IS
'The rules of every table''s columns: the writer and on_violation of an owned column, the strategy of a shared one, the group.
forced counts the lines of forced_writes about the column that the reader may see; enforced is false when the trigger is disabled or
does not fire in this session. A table whose trigger has been given invalid arguments is left out: its updates fail.';
