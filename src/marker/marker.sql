-- State markers

CREATE FUNCTION interlock_internal.marker_trigger() RETURNS trigger
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock_internal.marker_trigger() IS
'Checks every write to a table with markers. Created by enable_marker; arguments: ttl, enforce or advise, and the columns
for status, holder, time, deadline and reason.';

CREATE FUNCTION interlock_internal.marker_notify_trigger() RETURNS trigger
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock_internal.marker_notify_trigger() IS
'Notifies listeners of changes of the markers of a table, after the write. Created by enable_marker with notify;
argument: full, to send key and holder, too.';

CREATE FUNCTION interlock.enable_marker(
    rel regclass, ttl interlock.seconds = '5 min', enforce boolean = true, notify text = 'off',
    status_column name = NULL, holder_column name = NULL, time_column name = NULL,
    until_column name = NULL, reason_column name = NULL, sweep_index boolean = true,
    take_over text = 'expired') RETURNS void
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.enable_marker(regclass, interlock.seconds, boolean, text, name, name, name, name, name, boolean, text) IS
'Enables markers, with which users and programs hold rows while they edit them: status 0 is free, 1 is being edited. For the owner of the table.
Missing columns are added, existing ones adopted (a NOTICE lists both). A null name of a column means the column of the table''s marker,
or lock_status, lock_by, lock_time, lock_until or lock_reason if the table has no marker. ttl: how long a row is held without a touch. enforce: only the
holder may update or delete the row before the deadline (IL004). Without enforce, a marker stops only other markers. notify: sends
{table, event} (on), or {table, key, event, holder} (full) on channel interlock_row_lock: every role can listen.
sweep_index: an index over the deadlines of marked rows, so that a sweep
is fast in a large table too. Without it a sweep reads the whole table, but marking and releasing changes no index (HOT). take_over: who can take a row from its
holder with take_over_row before the deadline. expired: nobody; operators: roles that may call force_unlock_row; allow: each role that may write the row.
Calling it again changes the settings, and other columns only while no row is held. A status column is refused if it has other values than 0 and 1, a 1 without holder and time,
transitions, or a CHECK that allows other values. A new status column is refused if the holder column has holders, because a manual lock would be
ignored. It is also refused if status_column is null and there is a column for the holder or the time. Errors: 42501 not the owner, 42804 column type, 22023
ttl not positive or unknown take_over, 55000 the status column means something else, or rows are held in other columns.';

CREATE FUNCTION interlock.disable_marker(rel regclass) RETURNS void
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.disable_marker(regclass) IS
'Removes the trigger and its index; the columns and their values stay. For the owner of the table.';

CREATE FUNCTION interlock.set_holder(holder text) RETURNS void
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.set_holder(text) IS
'Sets the holder for the rest of this transaction, so that the holder of a marked row may update it with plain SQL.
Ends with the transaction and rolls back with a savepoint. Null: nobody. Errors: 22023 empty or longer than 1024 bytes.';

CREATE TYPE interlock.lock_row_result AS (
    locked boolean, holder text, locked_at timestamptz, expires_at timestamptz);
COMMENT ON TYPE interlock.lock_row_result IS
'What lock_row answers: whether the caller holds the row now, who has locked or touched it when, and until when.';

CREATE FUNCTION interlock.lock_row(
    rel regclass, key text, holder text, ttl interlock.seconds = NULL, reason text = NULL) RETURNS interlock.lock_row_result
    LANGUAGE c AS 'MODULE_PATHNAME';
CREATE FUNCTION interlock.lock_row(
    rel regclass, key "any", holder text, ttl interlock.seconds = NULL, reason text = NULL) RETURNS interlock.lock_row_result
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.lock_row(regclass, text, text, interlock.seconds, text) IS
'Marks the row as edited by the holder, or returns the current holder: a refusal is no error. The same holder renews, and never shortens; an
expired marker is free. ttl: of this marker, instead of the table''s. Waits while a transaction is writing the row (lock_timeout counts).
Errors: P0002 no such row, 22023 holder empty or longer than 1024 bytes or ttl not positive, 55000 no markers,
40001 under REPEATABLE READ and above when the row changed after the snapshot.';
COMMENT ON FUNCTION interlock.lock_row(regclass, "any", text, interlock.seconds, text) IS
'As lock_row(regclass, text, text, interlock.seconds, text), for a key of another type.';

CREATE FUNCTION interlock.lock_rows(
    rel regclass, keys text, holder text = NULL, ttl interlock.seconds = NULL, reason text = NULL,
    OUT locked boolean, OUT blocked jsonb, OUT expires_at timestamptz)
    LANGUAGE c AS 'MODULE_PATHNAME';
CREATE FUNCTION interlock.lock_rows(
    rel regclass, keys "any", holder text = NULL, ttl interlock.seconds = NULL, reason text = NULL,
    OUT locked boolean, OUT blocked jsonb, OUT expires_at timestamptz)
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.lock_rows(regclass, text, text, interlock.seconds, text) IS
'As lock_row, for several rows: all or none, in the order of their keys, so that two calls never deadlock. keys: an array of the
key''s type ({1,2}), or a jsonb array of objects, each with the columns of a unique key ([{"id": 1}]). expires_at is the earliest deadline. If other holders have
some of the rows, none is taken, and blocked lists those rows: [{key, holder, expires_at}]. Errors: as lock_row; 22004 no holder:
row locks without one are select_for_update.';
COMMENT ON FUNCTION interlock.lock_rows(regclass, "any", text, interlock.seconds, text) IS
'As lock_rows(regclass, text, text, interlock.seconds, text), for an array of any type, or a jsonb array.';

CREATE FUNCTION interlock.claim_rows(
    rel regclass, holder text, max_rows integer = 1, match jsonb = '{}', order_column name = NULL, ttl interlock.seconds = NULL,
    OUT key jsonb, OUT current jsonb, OUT expires_at timestamptz) RETURNS SETOF record
    LANGUAGE c ROWS 10 AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.claim_rows(regclass, text, integer, jsonb, name, interlock.seconds) IS
'Marks up to max_rows free rows for the holder, for workers that take the next rows of a queue. Returns the keys and the columns that the caller
may read. It skips rows that are held, also by the same holder, and rows that another transaction has locked. A row past its deadline is
free. match: {column: value}, null for IS NULL. order_column: the least first, nulls last. The row is free again
at expires_at unless save_row, unlock_row or delete_row ends the claim before. Needs SELECT on the columns of match and
order_column. Errors: 42703 no such column, 42883 a type without equality or order, 22023 match no object, max_rows or
ttl not positive, 55000 no markers or no key, 40001 under REPEATABLE READ and above when a row changed after the snapshot.';

CREATE FUNCTION interlock.unlock_row(rel regclass, key text, holder text) RETURNS boolean
    LANGUAGE c AS 'MODULE_PATHNAME';
CREATE FUNCTION interlock.unlock_row(rel regclass, key "any", holder text) RETURNS boolean
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.unlock_row(regclass, text, text) IS
'Releases the marker. False when the holder no longer had it: expired, taken by another, or the row was deleted.';
COMMENT ON FUNCTION interlock.unlock_row(regclass, "any", text) IS
'As unlock_row(regclass, text, text), for a key of another type.';

CREATE FUNCTION interlock.touch_row(rel regclass, key text, holder text, ttl interlock.seconds = NULL) RETURNS timestamptz
    LANGUAGE c AS 'MODULE_PATHNAME';
CREATE FUNCTION interlock.touch_row(rel regclass, key "any", holder text, ttl interlock.seconds = NULL) RETURNS timestamptz
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.touch_row(regclass, text, text, interlock.seconds) IS
'Moves the deadline to ttl from now, and the time to now. With null it uses the ttl of the table and never shortens. Returns the deadline; null if
the holder no longer had the marker. Errors: 22023 ttl not positive.';
COMMENT ON FUNCTION interlock.touch_row(regclass, "any", text, interlock.seconds) IS
'As touch_row(regclass, text, text, interlock.seconds), for a key of another type.';

CREATE FUNCTION interlock.hand_over_row(
    rel regclass, key text, holder text, to_holder text, ttl interlock.seconds = NULL) RETURNS timestamptz
    LANGUAGE c AS 'MODULE_PATHNAME';
CREATE FUNCTION interlock.hand_over_row(
    rel regclass, key "any", holder text, to_holder text, ttl interlock.seconds = NULL) RETURNS timestamptz
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.hand_over_row(regclass, text, text, text, interlock.seconds) IS
'Gives the marker to another holder, for ttl from now (null: the table''s), and returns the new deadline. The reason stays. Audited in row_lock_audit.
Errors: IL005 marker not held, P0002 no such row, 22023 a holder empty or longer than 1024 bytes or ttl not positive.';
COMMENT ON FUNCTION interlock.hand_over_row(regclass, "any", text, text, interlock.seconds) IS
'As hand_over_row(regclass, text, text, text, interlock.seconds), for a key of another type.';

CREATE FUNCTION interlock.delete_row(rel regclass, key text, holder text) RETURNS void
    LANGUAGE c AS 'MODULE_PATHNAME';
CREATE FUNCTION interlock.delete_row(rel regclass, key "any", holder text) RETURNS void
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.delete_row(regclass, text, text) IS
'Deletes the row, if the holder still has its marker. Errors: IL005 marker not held, P0002 no such row, 42501 without DELETE on
the table.';
COMMENT ON FUNCTION interlock.delete_row(regclass, "any", text) IS
'As delete_row(regclass, text, text), for a key of another type.';

CREATE FUNCTION interlock.save_row(
    rel regclass, key text, holder text, changes jsonb, expected bigint = NULL, keep boolean = false) RETURNS bigint
    LANGUAGE c AS 'MODULE_PATHNAME';
CREATE FUNCTION interlock.save_row(
    rel regclass, key "any", holder text, changes jsonb, expected bigint = NULL, keep boolean = false) RETURNS bigint
    LANGUAGE c AS 'MODULE_PATHNAME';
CREATE FUNCTION interlock.save_row(
    rel regclass, key text, holder text, changes jsonb, expected timestamptz, keep boolean = false) RETURNS timestamptz
    LANGUAGE c AS 'MODULE_PATHNAME';
CREATE FUNCTION interlock.save_row(
    rel regclass, key "any", holder text, changes jsonb, expected timestamptz, keep boolean = false) RETURNS timestamptz
    LANGUAGE c AS 'MODULE_PATHNAME';
CREATE FUNCTION interlock.save_row(
    rel regclass, key text, holder text, changes jsonb, expected text, keep boolean = false) RETURNS text
    LANGUAGE c AS 'MODULE_PATHNAME';
CREATE FUNCTION interlock.save_row(
    rel regclass, key "any", holder text, changes jsonb, expected text, keep boolean = false) RETURNS text
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.save_row(regclass, text, text, jsonb, bigint, boolean) IS
'Writes the changes and releases the marker in one step, if the holder still has it and the version is still the expected one;
a null version is not compared. keep: the marker stays, and its deadline moves to the table''s ttl from now and never nearer. It moves the version
without changes, too. Returns the new version; null for a table without versions, or versioned by a timestamp.
Errors: IL005 marker not held, IL001 version conflict, P0002 no such row, 42804 a version of another type, and those of
versioned_update for the changes.';
COMMENT ON FUNCTION interlock.save_row(regclass, "any", text, jsonb, bigint, boolean) IS
'As save_row(regclass, text, text, jsonb, bigint, boolean), for a key of another type.';
COMMENT ON FUNCTION interlock.save_row(regclass, text, text, jsonb, timestamptz, boolean) IS
'As save_row(regclass, text, text, jsonb, bigint, boolean), for a table versioned by a timestamp.';
COMMENT ON FUNCTION interlock.save_row(regclass, "any", text, jsonb, timestamptz, boolean) IS
'As save_row(regclass, text, text, jsonb, bigint, boolean), for a key of another type and a table versioned by a timestamp.';
COMMENT ON FUNCTION interlock.save_row(regclass, text, text, jsonb, text, boolean) IS
'As save_row(regclass, text, text, jsonb, bigint, boolean), with the version as text: for parameters without a type, and for
timestamps that a client would round.';
COMMENT ON FUNCTION interlock.save_row(regclass, "any", text, jsonb, text, boolean) IS
'As save_row(regclass, text, text, jsonb, text, boolean), for a key of another type.';

CREATE FUNCTION interlock.try_save_row(
    rel regclass, key text, holder text, changes jsonb, expected bigint = NULL, keep boolean = false,
    OUT outcome text, OUT version bigint, OUT current jsonb)
    LANGUAGE c AS 'MODULE_PATHNAME';
CREATE FUNCTION interlock.try_save_row(
    rel regclass, key "any", holder text, changes jsonb, expected bigint = NULL, keep boolean = false,
    OUT outcome text, OUT version bigint, OUT current jsonb)
    LANGUAGE c AS 'MODULE_PATHNAME';
CREATE FUNCTION interlock.try_save_row(
    rel regclass, key text, holder text, changes jsonb, expected timestamptz, keep boolean = false,
    OUT outcome text, OUT version timestamptz, OUT current jsonb)
    LANGUAGE c AS 'MODULE_PATHNAME';
CREATE FUNCTION interlock.try_save_row(
    rel regclass, key "any", holder text, changes jsonb, expected timestamptz, keep boolean = false,
    OUT outcome text, OUT version timestamptz, OUT current jsonb)
    LANGUAGE c AS 'MODULE_PATHNAME';
CREATE FUNCTION interlock.try_save_row(
    rel regclass, key text, holder text, changes jsonb, expected text, keep boolean = false,
    OUT outcome text, OUT version text, OUT current jsonb)
    LANGUAGE c AS 'MODULE_PATHNAME';
CREATE FUNCTION interlock.try_save_row(
    rel regclass, key "any", holder text, changes jsonb, expected text, keep boolean = false,
    OUT outcome text, OUT version text, OUT current jsonb)
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.try_save_row(regclass, text, text, jsonb, bigint, boolean) IS
'As save_row, but returns what happened. Outcomes: saved (version is the new one), conflict (the marker stays), lost (the holder has the marker
no more), not_found. After conflict and lost, version and current are the row as it is now, as far as the caller may read it.';
COMMENT ON FUNCTION interlock.try_save_row(regclass, "any", text, jsonb, bigint, boolean) IS
'As try_save_row(regclass, text, text, jsonb, bigint, boolean), for a key of another type.';
COMMENT ON FUNCTION interlock.try_save_row(regclass, text, text, jsonb, timestamptz, boolean) IS
'As try_save_row(regclass, text, text, jsonb, bigint, boolean), for a table versioned by a timestamp.';
COMMENT ON FUNCTION interlock.try_save_row(regclass, "any", text, jsonb, timestamptz, boolean) IS
'As try_save_row(regclass, text, text, jsonb, bigint, boolean), for a key of another type and a table versioned by a timestamp.';
COMMENT ON FUNCTION interlock.try_save_row(regclass, text, text, jsonb, text, boolean) IS
'As try_save_row(regclass, text, text, jsonb, bigint, boolean), with the version as text: for parameters without a type, and for
timestamps that a client would round.';
COMMENT ON FUNCTION interlock.try_save_row(regclass, "any", text, jsonb, text, boolean) IS
'As try_save_row(regclass, text, text, jsonb, text, boolean), for a key of another type.';

CREATE TABLE interlock.row_lock_audit (
    id bigint GENERATED ALWAYS AS IDENTITY,
    forced_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    forced_by text NOT NULL,
    action text NOT NULL,
    table_name text NOT NULL,
    key jsonb NOT NULL,
    holder text NOT NULL,
    taken_by text,
    would_expire_at timestamptz,
    reason text,
    PRIMARY KEY (id, forced_at));
COMMENT ON TABLE interlock.row_lock_audit IS
'Every use of force_unlock_row, take_over_row and hand_over_row: time, user, function, row, former and new holder, reason.';
COMMENT ON SEQUENCE interlock.row_lock_audit_id_seq IS 'Numbers the rows of row_lock_audit.';
SELECT pg_catalog.pg_extension_config_dump('interlock.row_lock_audit', '');
SELECT pg_catalog.pg_extension_config_dump('interlock.row_lock_audit_id_seq', '');

CREATE FUNCTION interlock.force_unlock_row(rel regclass, key text, reason text) RETURNS text
    LANGUAGE c AS 'MODULE_PATHNAME';
CREATE FUNCTION interlock.force_unlock_row(rel regclass, key "any", reason text) RETURNS text
    LANGUAGE c AS 'MODULE_PATHNAME';
REVOKE EXECUTE ON FUNCTION interlock.force_unlock_row(regclass, text, text) FROM PUBLIC;
REVOKE EXECUTE ON FUNCTION interlock.force_unlock_row(regclass, "any", text) FROM PUBLIC;
COMMENT ON FUNCTION interlock.force_unlock_row(regclass, text, text) IS
'Takes the marker from its holder and returns the holder; null when nobody held it. Audited in row_lock_audit, in the same
transaction. Only superusers may call it until EXECUTE is granted; the caller also needs UPDATE on the
table.';
COMMENT ON FUNCTION interlock.force_unlock_row(regclass, "any", text) IS
'As force_unlock_row(regclass, text, text), for a key of another type.';

CREATE FUNCTION interlock.take_over_row(
    rel regclass, key text, holder text, reason text, ttl interlock.seconds = NULL,
    OUT outcome text, OUT previous_holder text, OUT since timestamptz, OUT expires_at timestamptz)
    LANGUAGE c AS 'MODULE_PATHNAME';
CREATE FUNCTION interlock.take_over_row(
    rel regclass, key "any", holder text, reason text, ttl interlock.seconds = NULL,
    OUT outcome text, OUT previous_holder text, OUT since timestamptz, OUT expires_at timestamptz)
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.take_over_row(regclass, text, text, text, interlock.seconds) IS
'Gives the row to the holder for ttl from now (null: the ttl of the table), and returns the previous holder. outcome: taken: the previous holder
cannot save any more; free: no other holder had the row, and the call locks it as lock_row does; refused: the previous holder keeps the row until expires_at;
not_found. A marker past its deadline can always be taken. Before the deadline, the setting take_over of enable_marker decides. Of two concurrent
calls, one takes the row and the other is refused. since: when the previous holder locked or touched the row. taken writes an entry to row_lock_audit in the same
transaction. Errors: 22004 and 22023 no reason, an invalid holder or ttl; 55000 no markers; 40001 as lock_row.';
COMMENT ON FUNCTION interlock.take_over_row(regclass, "any", text, text, interlock.seconds) IS
'As take_over_row(regclass, text, text, text, interlock.seconds), for a key of another type.';

CREATE FUNCTION interlock.row_lock_of(
    rel regclass, key text,
    OUT locked boolean, OUT holder text, OUT locked_at timestamptz, OUT expires_at timestamptz, OUT reason text)
    LANGUAGE c AS 'MODULE_PATHNAME';
CREATE FUNCTION interlock.row_lock_of(
    rel regclass, key "any",
    OUT locked boolean, OUT holder text, OUT locked_at timestamptz, OUT expires_at timestamptz, OUT reason text)
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.row_lock_of(regclass, text) IS
'The holder of the row, when it was locked or touched last, until when and why; locked is false and the rest null when it is free or expired.
Errors: P0002 no such row.';
COMMENT ON FUNCTION interlock.row_lock_of(regclass, "any") IS
'As row_lock_of(regclass, text), for a key of another type.';

CREATE FUNCTION interlock_internal.list_row_locks(
    OUT rel regclass, OUT key jsonb, OUT holder text, OUT locked_at timestamptz, OUT expires_at timestamptz,
    OUT reason text, OUT live boolean) RETURNS SETOF record
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock_internal.list_row_locks() IS
'The rows of the view row_locks. Tables the caller may not read are left out, and those whose row security applies to it, unless
they are its own or a superuser''s. Waits for no lock and runs no code of the tables'' owners; a table that is locked, or fails, is a
warning.';

CREATE VIEW interlock.row_locks AS SELECT * FROM interlock_internal.list_row_locks();
GRANT SELECT ON interlock.row_locks TO PUBLIC;
COMMENT ON VIEW interlock.row_locks IS
'Every marked row that the current user may read. Tables of other owners whose row security applies to the user are left out, except for
superusers. live is false for a marker past its deadline.';

CREATE FUNCTION interlock.sweep(max_rows integer = NULL, OUT rel regclass, OUT released bigint) RETURNS SETOF record
    LANGUAGE c AS 'MODULE_PATHNAME';
REVOKE EXECUTE ON FUNCTION interlock.sweep(integer) FROM PUBLIC;
COMMENT ON FUNCTION interlock.sweep(integer) IS
'Releases expired markers now, of all tables, each as its owner, and returns how many; at most max_rows. What cannot be
released is a warning and stays. Locked rows are left for the next time. Call it outside a transaction block, or after SET CONSTRAINTS ALL
IMMEDIATE: tables with deferred triggers are not released otherwise. Only superusers may call it until EXECUTE is granted.';
