-- Version history

CREATE TABLE interlock_internal.history_position (
    history oid PRIMARY KEY,
    reached bigint NOT NULL);
COMMENT ON TABLE interlock_internal.history_position IS
'The progress of trimming in each history table. Not dumped: a restored table is scanned from the start.';

CREATE FUNCTION interlock_internal.history_trigger() RETURNS trigger
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock_internal.history_trigger() IS
'Writes an entry for each row that is inserted, updated or deleted. Created by enable_history as a constraint trigger FROM the history
table; arguments: keep_versions, keep_for, since when the history is complete, notify, whether markers are ignored, partition_by, whole_every, the number of
ignored columns and their names, the number of ignored writers and their names, the columns of the key and their types.';

CREATE FUNCTION interlock_internal.history_truncate_trigger() RETURNS trigger
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock_internal.history_truncate_trigger() IS
'Writes an entry for each row that TRUNCATE removes. Created by enable_history.';

CREATE FUNCTION interlock.enable_history(
    rel regclass, keep_versions integer = NULL, keep_for interlock.seconds = NULL, ignore_columns name[] = '{}', ignore_writers text[] = '{}',
    notify text = 'off', record_markers boolean = false, partition_by interlock.seconds = NULL, whole_every integer = 1) RETURNS void
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.enable_history(regclass, integer, interlock.seconds, name[], text[], text, boolean, interlock.seconds, integer) IS
'Records every version of every row, for all writers, in <table>_history next to the table: a table of the same owner, who
grants SELECT on it. An entry is kept as long as it is among the newest keep_versions of its key or younger than keep_for, whichever
are given; without both for ever. An UPDATE that changes nothing, or only the version, has no entry. An UPDATE that changes ignore_columns alone, and whatever a writer of ignore_writers writes (set_writer,
or a default of grant_writer), has no entry and is summed up in operation_log; an UPDATE that moves the marker of a row alone has neither,
unless record_markers. whole_every: of so many entries of a row, one has the whole row, and the others the new values of what changed; at most 100.
Functions that read the history return whole rows. notify: on sends {table} once for each transaction on channel interlock_history, full {table, key} for each row.
partition_by: the history table is partitioned by changed_at. The sweeper creates a partition of this length for each period, and drops the
partitions in which all entries are older than keep_for. It needs keep_for, and no keep_versions.
Calling it again replaces all of these settings. A history table that disable_history left is used again.
For the owner of the table, who needs CREATE on its schema. Waits for all users of the table (ACCESS EXCLUSIVE).
Errors: 42501 not the owner, or no CREATE, 55000 no key, a partition, or one of its partitions has a history of its own, 42703 no such column,
22023 keep_versions below one, keep_for or partition_by not above zero or above ten years, partition_by without keep_for, with keep_versions, below one
second or below a hundredth of keep_for, whole_every below 1 or above 100, a column of the key or the version is ignored, a name twice, more than
100 writers or a name that no writer can have, unknown notify, 42809 not a table, 55000 partition_by for a history table that is not partitioned, 0A000 or for a temporary table. Errors of a write: 55000 the key was dropped, or the history table
belongs to another role; 09000 a trigger suppresses the entry, 42501 a trigger of another role; and the errors of the INSERT of the entry. The entry
is written at every isolation level in the transaction of the write. A transaction that has sent a notification cannot be prepared (0A000).';

CREATE FUNCTION interlock_internal.history_row(entries oid, id bigint, row_data jsonb, row_hash bigint) RETURNS jsonb
    LANGUAGE c STABLE AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock_internal.history_row(oid, bigint, jsonb, bigint) IS
'For functions that read a history: the row of an entry, after its hash was compared. Errors: XX001 the row is not the one that was recorded, or an
entry that it needs is gone; 42501 row security may hide that entry.';

CREATE FUNCTION interlock.disable_history(rel regclass) RETURNS void
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.disable_history(regclass) IS
'Stops recording. The history table stays. For the owner of the table. Errors: 42501 not the owner, 55000 no history, or a partition.';

CREATE FUNCTION interlock.row_history(
    rel regclass, key text, markers boolean = NULL, OUT version bigint, OUT changed_at timestamptz, OUT writer text, OUT operation text, OUT row_data jsonb,
    OUT changed text[], OUT before jsonb, OUT changed_by text, OUT id bigint, OUT writer_from text,
    OUT context jsonb) RETURNS SETOF record
    LANGUAGE c AS 'MODULE_PATHNAME';
CREATE FUNCTION interlock.row_history(
    rel regclass, key "any", markers boolean = NULL, OUT version bigint, OUT changed_at timestamptz, OUT writer text, OUT operation text, OUT row_data jsonb,
    OUT changed text[], OUT before jsonb, OUT changed_by text, OUT id bigint, OUT writer_from text,
    OUT context jsonb) RETURNS SETOF record
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.row_history(regclass, text, boolean) IS
'The entries of one row, oldest first. An entry has the counter of a versioned row, the time by the clock, the writer, the operation (insert,
update, delete, truncate, moved: to another key), the row (after a delete the last row), the changed columns and their previous values, and the
role. It also says where the writer is from: set_writer, role (its default), or holder (save_row, set_holder: no grant is needed). markers: whether
row, changed columns and previous values have the columns of the marker; null: if enable_history records markers. context: what
the transaction had as interlock.context. Needs SELECT on the table and on its history table, whose row security applies. Sees what a
separate statement would see at that isolation level. Errors: 42501, 55000 no history or no key, 22004, 22023 and what the key''s type raises.';
COMMENT ON FUNCTION interlock.row_history(regclass, "any", boolean) IS
'As row_history(regclass, text, boolean), for a key of another type.';

CREATE FUNCTION interlock.row_as_of(rel regclass, key text, at timestamptz) RETURNS jsonb
    LANGUAGE c AS 'MODULE_PATHNAME';
CREATE FUNCTION interlock.row_as_of(rel regclass, key "any", at timestamptz) RETURNS jsonb
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.row_as_of(regclass, text, timestamptz) IS
'The row at that time, by the clock of its writers, as its history shows it. Null if there was no row, or if the history does not
reach back that far. A row without an entry since history was enabled is read from the table.
Needs SELECT on the table and on its history table. Errors: as row_history.';
COMMENT ON FUNCTION interlock.row_as_of(regclass, "any", timestamptz) IS
'As row_as_of(regclass, text, timestamptz), for a key of another type.';

CREATE FUNCTION interlock_internal.history_key_of(of_table record) RETURNS jsonb
    LANGUAGE c STABLE STRICT AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock_internal.history_key_of(record) IS
'For rows_as_of: the key of a row of a table with history, as its entries have it.';

CREATE FUNCTION interlock.rows_as_of(table_type anyelement, at timestamptz) RETURNS SETOF anyelement
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.rows_as_of(anyelement, timestamptz) IS
'All rows of a table as they were at that time, also those that are deleted now: SELECT * FROM interlock.rows_as_of(NULL::orders, ''2026-01-01'').
The value of the first argument does not matter. Each row is what row_as_of returns of it, with the columns that the table has now. Reads the whole
history and the whole table, in one statement. Needs SELECT on the table and on its history table.
Errors: 42501, 55000 no history, a partition, row security may hide entries, or the columns have changed meanwhile;
P0002 the history does not reach back that far, or retention may have removed entries of a row; 22023 not the row type of a table, 22004, and what a type says of a value that it cannot read any more.';

CREATE FUNCTION interlock.revert_row(
    rel regclass, key text, to_version bigint = NULL, at timestamptz = NULL, expected bigint = NULL) RETURNS bigint
    LANGUAGE c AS 'MODULE_PATHNAME';
CREATE FUNCTION interlock.revert_row(
    rel regclass, key "any", to_version bigint = NULL, at timestamptz = NULL, expected bigint = NULL) RETURNS bigint
    LANGUAGE c AS 'MODULE_PATHNAME';
CREATE FUNCTION interlock.revert_row(
    rel regclass, key text, to_version bigint, at timestamptz, expected timestamptz) RETURNS timestamptz
    LANGUAGE c AS 'MODULE_PATHNAME';
CREATE FUNCTION interlock.revert_row(
    rel regclass, key "any", to_version bigint, at timestamptz, expected timestamptz) RETURNS timestamptz
    LANGUAGE c AS 'MODULE_PATHNAME';
CREATE FUNCTION interlock.revert_row(
    rel regclass, key text, to_version bigint, at timestamptz, expected text) RETURNS text
    LANGUAGE c AS 'MODULE_PATHNAME';
CREATE FUNCTION interlock.revert_row(
    rel regclass, key "any", to_version bigint, at timestamptz, expected text) RETURNS text
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.revert_row(regclass, text, bigint, timestamptz, bigint) IS
'Makes a new version of one row with former values. Pass one of two: the version (in a table without a counter the id of an entry of
row_history), or a time as for row_as_of. Returns the new version; null for a table without versions, or versioned by a timestamp. It is
an UPDATE of the caller and passes every check of the table; columns that have the value already are not written. Unchanged are: the key, the version, the
marker, generated columns, ignore_columns of the history, and columns that were added since. expected: the row''s version, null is not compared.
Needs the privileges of that UPDATE, and SELECT on the row''s columns and on the history table. Errors: P0002 no such row, or the version is not recorded,
as when it was trimmed; IL001 the row''s version is not the expected one; 55000 no history, or a column of that version is gone; 22023 both or none of to_version and at;
what a type says of a value that it cannot read any more; and all errors of the UPDATE.';
COMMENT ON FUNCTION interlock.revert_row(regclass, "any", bigint, timestamptz, bigint) IS
'As revert_row(regclass, text, bigint, timestamptz, bigint), for a key of another type.';
COMMENT ON FUNCTION interlock.revert_row(regclass, text, bigint, timestamptz, timestamptz) IS
'As revert_row(regclass, text, bigint, timestamptz, bigint), for a table versioned by a timestamp.';
COMMENT ON FUNCTION interlock.revert_row(regclass, "any", bigint, timestamptz, timestamptz) IS
'As revert_row(regclass, text, bigint, timestamptz, bigint), for a key of another type, for a table versioned by a timestamp.';
COMMENT ON FUNCTION interlock.revert_row(regclass, text, bigint, timestamptz, text) IS
'As revert_row(regclass, text, bigint, timestamptz, bigint), with the version as text.';
COMMENT ON FUNCTION interlock.revert_row(regclass, "any", bigint, timestamptz, text) IS
'As revert_row(regclass, text, bigint, timestamptz, bigint), for a key of another type, with the version as text.';

CREATE FUNCTION interlock.try_revert_row(
    rel regclass, key text, to_version bigint = NULL, at timestamptz = NULL, expected bigint = NULL,
    OUT outcome text, OUT version bigint, OUT current jsonb)
    LANGUAGE c AS 'MODULE_PATHNAME';
CREATE FUNCTION interlock.try_revert_row(
    rel regclass, key "any", to_version bigint = NULL, at timestamptz = NULL, expected bigint = NULL,
    OUT outcome text, OUT version bigint, OUT current jsonb)
    LANGUAGE c AS 'MODULE_PATHNAME';
CREATE FUNCTION interlock.try_revert_row(
    rel regclass, key text, to_version bigint, at timestamptz, expected timestamptz,
    OUT outcome text, OUT version timestamptz, OUT current jsonb)
    LANGUAGE c AS 'MODULE_PATHNAME';
CREATE FUNCTION interlock.try_revert_row(
    rel regclass, key "any", to_version bigint, at timestamptz, expected timestamptz,
    OUT outcome text, OUT version timestamptz, OUT current jsonb)
    LANGUAGE c AS 'MODULE_PATHNAME';
CREATE FUNCTION interlock.try_revert_row(
    rel regclass, key text, to_version bigint, at timestamptz, expected text,
    OUT outcome text, OUT version text, OUT current jsonb)
    LANGUAGE c AS 'MODULE_PATHNAME';
CREATE FUNCTION interlock.try_revert_row(
    rel regclass, key "any", to_version bigint, at timestamptz, expected text,
    OUT outcome text, OUT version text, OUT current jsonb)
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.try_revert_row(regclass, text, bigint, timestamptz, bigint) IS
'As revert_row, but returns what happened. Outcomes: reverted (version is the new one), unchanged (the row has these values), conflict (version and
current are the row as it is now, as far as the caller may read it), not_found, and not_recorded.';
COMMENT ON FUNCTION interlock.try_revert_row(regclass, "any", bigint, timestamptz, bigint) IS
'As try_revert_row(regclass, text, bigint, timestamptz, bigint), for a key of another type.';
COMMENT ON FUNCTION interlock.try_revert_row(regclass, text, bigint, timestamptz, timestamptz) IS
'As try_revert_row(regclass, text, bigint, timestamptz, bigint), for a table versioned by a timestamp.';
COMMENT ON FUNCTION interlock.try_revert_row(regclass, "any", bigint, timestamptz, timestamptz) IS
'As try_revert_row(regclass, text, bigint, timestamptz, bigint), for a key of another type, for a table versioned by a timestamp.';
COMMENT ON FUNCTION interlock.try_revert_row(regclass, text, bigint, timestamptz, text) IS
'As try_revert_row(regclass, text, bigint, timestamptz, bigint), with the version as text.';
COMMENT ON FUNCTION interlock.try_revert_row(regclass, "any", bigint, timestamptz, text) IS
'As try_revert_row(regclass, text, bigint, timestamptz, bigint), for a key of another type, with the version as text.';

CREATE FUNCTION interlock.history_since(
    rel regclass, since text = NULL, max_rows integer = NULL, OUT id bigint, OUT key jsonb, OUT operation text, OUT version bigint,
    OUT row_data jsonb, OUT changed text[], OUT before jsonb, OUT writer text, OUT changed_by text, OUT changed_at timestamptz,
    OUT transaction bigint, OUT writer_from text, OUT context jsonb, OUT up_to text) RETURNS SETOF record
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.history_since(regclass, text, integer) IS
'The entries of transactions that have committed since the position, each once, whatever the order of commits; null: from the first
that is kept. Entries of a row come in their order. up_to is the same in all rows: the position to begin the next call with; without
rows the old one still holds. max_rows ends a page, perhaps inside of a transaction; it has a few more where a trigger wrote a row again. What
the calling transaction itself has written comes when it has committed. Needs SELECT on the table and on its history table, whose row
security holds. Errors: 42501, 55000 no history, 22023 not a position, or one of another server, max_rows below one.';

CREATE FUNCTION interlock.history_position() RETURNS text
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.history_position() IS
'The position of now, for a reader that begins with what is committed from here on (history_since).';

CREATE FUNCTION interlock.trim_history(
    INOUT rel regclass = NULL, max_rows integer = NULL, OUT trimmed bigint, OUT dropped_partitions integer) RETURNS SETOF record
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.trim_history(regclass, integer) IS
'Deletes the entries that retention does not keep, about max_rows at most, of one table or of all that the caller owns; returns how
many. Creates and drops the partitions of a partitioned history table first; entries in dropped partitions are not counted. It waits 100 ms for
the lock that this needs, and keeps it until the end of the transaction. The sweeper does it by itself. Acts as the owner of the history table, if that is the owner of the table. For all tables, a failure of
one is a warning. Errors: 42501 not the owner, or triggers of other roles on the history table, 22023.';

CREATE FUNCTION interlock.suppress_history(rel regclass = NULL, reason text = NULL) RETURNS integer
    LANGUAGE c AS 'MODULE_PATHNAME';
REVOKE EXECUTE ON FUNCTION interlock.suppress_history(regclass, text) FROM PUBLIC;
COMMENT ON FUNCTION interlock.suppress_history(regclass, text) IS
'Opens a scope in which writes of this transaction to the table are not recorded; null: writes to all tables. restore_history closes it. Returns
how many scopes of that table, or of all tables, are open. A rollback to a savepoint undoes it, and the end of the transaction closes it. Each
hidden statement leaves a line with the reason in operation_log. Versions move as usual. A partition means its parent.
Only superusers may call it until EXECUTE is granted. Errors: 42501, 55000 no history.';

CREATE FUNCTION interlock.restore_history(rel regclass = NULL) RETURNS integer
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.restore_history(regclass) IS
'Ends the innermost suppress_history for the same table, or for all; returns how many are still open. Errors: 55000 none is open.';

-- Logical failover

CREATE FUNCTION interlock.resync_sequences(OUT sequence regclass, OUT before bigint, OUT after bigint) RETURNS SETOF record
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.resync_sequences() IS
'Sets sequences above the values in their tables, because logical replication carries rows and no sequences. These are ids of history entries and
starts of versions; for superusers also tokens of idempotency keys, and ids of audits and of the write log. Call it on a subscriber when it takes over, in a
separate transaction, after the last change was applied and before the first write. For tables that the caller owns. Returns the sequences
that were moved. It never sets a sequence back. Waits for transactions that have taken values or locked a table, as long as lock_timeout says. A failure of one is a warning.';
