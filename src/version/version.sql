-- Versioned rows

CREATE FUNCTION interlock_internal.version_trigger() RETURNS trigger
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock_internal.version_trigger() IS
'Moves the version of an updated row. Created by enable_versioning; arguments: version column, blind_updates, unchanged, ignored columns.
Refuses blind updates where the owner wants it (IL011). Accepts a counter set to exactly old+1, refuses any other value (IL001); a timestamp always moves forward, and is refused
when it is more than a minute ahead of the clock (22008), in new rows too.';

CREATE FUNCTION interlock.first_version(sequence text) RETURNS bigint
    LANGUAGE c STABLE AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.first_version(text) IS
'The first version of a new row: above the version of every deleted row of the table. The default of a version column calls it with the name of
the sequence that stores that version. The sequence is found also after the column, table or schema was renamed. Without a sequence a row
starts at 1, until enable_versioning creates one.
Errors: 22004, 22023 not schema.sequence, 42501 no SELECT on it.';

CREATE FUNCTION interlock.enable_versioning(
    rel regclass, version_column name = 'version', ignore_columns name[] = '{}', blind_updates text = 'allow',
    unchanged text = 'move')
    RETURNS void
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.enable_versioning(regclass, name, name[], text, text) IS
'Makes every update of a row move its version, for all writers. For the owner of the table.
The column is an integer or bigint counter, or an existing timestamp; a missing one is added as bigint, 1 in every row. Rows in which an
existing one is null stay as they are; a NOTICE says so.
Updates that change ignored columns only do not move it. Calling it again changes the ignored columns, blind_updates and unchanged.
blind_updates: what happens to a row that an UPDATE, DELETE or MERGE writes without comparing its version: allow, warn (a WARNING
for each statement), or reject (IL011). The view blind_updates counts them in each mode.
unchanged: the version of a row whose values an update leaves as they are, byte for byte: move, or keep. With keep, functions do not
write such a row and do not lock it. An UPDATE still writes it, and counts it.
A counter gets a sequence next to the table, which remembers the versions of rows that were deleted; hence the caller also
needs CREATE on its schema.
Errors: 42501 not the owner, or no CREATE on the schema, 42804 column of another type, 42703 unknown ignored column,
22023 an ignored column that share_columns merges, unknown blind_updates or unchanged, 55000 versioned by another column, or statements are not
known, as the library is not preloaded.';

CREATE FUNCTION interlock.any_version(version text) RETURNS boolean
    LANGUAGE sql IMMUTABLE PARALLEL SAFE AS 'SELECT true';
CREATE FUNCTION interlock.any_version(version anyelement) RETURNS boolean
    LANGUAGE sql IMMUTABLE PARALLEL SAFE AS 'SELECT true';
COMMENT ON FUNCTION interlock.any_version(text) IS
'True. In the WHERE of a statement, with the version column, it says that the statement is right for any version of the row, and so
no blind update: UPDATE stock SET available = available - 1 WHERE id = 1 AND interlock.any_version(version). The planner removes it.';
COMMENT ON FUNCTION interlock.any_version(anyelement) IS 'As any_version(text), for a version of any other type.';

CREATE FUNCTION interlock_internal.list_blind_updates(
    OUT rel regclass, OUT blind bigint, OUT overwrote bigint, OUT since timestamptz) RETURNS SETOF record
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock_internal.list_blind_updates() IS 'The rows of the view blind_updates.';

CREATE VIEW interlock.blind_updates AS SELECT * FROM interlock_internal.list_blind_updates();
GRANT SELECT ON interlock.blind_updates TO PUBLIC;
COMMENT ON VIEW interlock.blind_updates IS
'Rows of each versioned table that an UPDATE, DELETE or MERGE wrote without comparing their version, since the server started:
refused and rolled back ones, too. overwrote: those that another transaction had written within interlock.blind_window. Only tables of
which the reader may SELECT a column, and with shared_preload_libraries.';

CREATE FUNCTION interlock.disable_versioning(rel regclass) RETURNS void
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.disable_versioning(regclass) IS
'Stops moving the version. The column and its values stay. For the owner of the table. Errors: 55000 not versioned.';

CREATE FUNCTION interlock.versioned_update(rel regclass, key text, expected bigint, changes jsonb) RETURNS bigint
    LANGUAGE c AS 'MODULE_PATHNAME';
CREATE FUNCTION interlock.versioned_update(rel regclass, key "any", expected bigint, changes jsonb) RETURNS bigint
    LANGUAGE c AS 'MODULE_PATHNAME';
CREATE FUNCTION interlock.versioned_update(rel regclass, key text, expected timestamptz, changes jsonb) RETURNS timestamptz
    LANGUAGE c AS 'MODULE_PATHNAME';
CREATE FUNCTION interlock.versioned_update(rel regclass, key "any", expected timestamptz, changes jsonb) RETURNS timestamptz
    LANGUAGE c AS 'MODULE_PATHNAME';
CREATE FUNCTION interlock.versioned_update(rel regclass, key text, expected text, changes jsonb) RETURNS text
    LANGUAGE c AS 'MODULE_PATHNAME';
CREATE FUNCTION interlock.versioned_update(rel regclass, key "any", expected text, changes jsonb) RETURNS text
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.versioned_update(regclass, text, bigint, jsonb) IS
'Changes the columns {column: value} of one row if its version is still the expected one; returns the new version.
key: the value of the primary key, or a jsonb object with exactly the columns of any unique key.
No changes ({}) only move the version. With unchanged => ''keep'' a row that has these values already is neither written nor
locked, and the version is the current one. Needs the privileges of the UPDATE it runs; row security holds.
Errors: IL001 the version is another one, P0002 no such row, 42703/428C9/22023 unknown, generated or key column,
55000 not versioned, 40001 under REPEATABLE READ and above when the row changed after the snapshot.';
COMMENT ON FUNCTION interlock.versioned_update(regclass, "any", bigint, jsonb) IS
'As versioned_update(regclass, text, bigint, jsonb), for a key of another type.';
COMMENT ON FUNCTION interlock.versioned_update(regclass, text, timestamptz, jsonb) IS
'As versioned_update(regclass, text, bigint, jsonb), for a table versioned by a timestamp.';
COMMENT ON FUNCTION interlock.versioned_update(regclass, "any", timestamptz, jsonb) IS
'As versioned_update(regclass, text, bigint, jsonb), for a key of another type and a table versioned by a timestamp.';
COMMENT ON FUNCTION interlock.versioned_update(regclass, text, text, jsonb) IS
'As versioned_update(regclass, text, bigint, jsonb), with the version as text: for parameters without a type, and for
timestamps that a client would round.';
COMMENT ON FUNCTION interlock.versioned_update(regclass, "any", text, jsonb) IS
'As versioned_update(regclass, text, text, jsonb), for a key of another type.';

CREATE FUNCTION interlock.try_versioned_update(
    rel regclass, key text, expected bigint, changes jsonb, base jsonb = NULL, on_conflict text = 'report',
    OUT outcome text, OUT version bigint, OUT current jsonb, OUT conflicts text[])
    LANGUAGE c AS 'MODULE_PATHNAME';
CREATE FUNCTION interlock.try_versioned_update(
    rel regclass, key "any", expected bigint, changes jsonb, base jsonb = NULL, on_conflict text = 'report',
    OUT outcome text, OUT version bigint, OUT current jsonb, OUT conflicts text[])
    LANGUAGE c AS 'MODULE_PATHNAME';
CREATE FUNCTION interlock.try_versioned_update(
    rel regclass, key text, expected timestamptz, changes jsonb, base jsonb = NULL, on_conflict text = 'report',
    OUT outcome text, OUT version timestamptz, OUT current jsonb, OUT conflicts text[])
    LANGUAGE c AS 'MODULE_PATHNAME';
CREATE FUNCTION interlock.try_versioned_update(
    rel regclass, key "any", expected timestamptz, changes jsonb, base jsonb = NULL, on_conflict text = 'report',
    OUT outcome text, OUT version timestamptz, OUT current jsonb, OUT conflicts text[])
    LANGUAGE c AS 'MODULE_PATHNAME';
CREATE FUNCTION interlock.try_versioned_update(
    rel regclass, key text, expected text, changes jsonb, base jsonb = NULL, on_conflict text = 'report',
    OUT outcome text, OUT version text, OUT current jsonb, OUT conflicts text[])
    LANGUAGE c AS 'MODULE_PATHNAME';
CREATE FUNCTION interlock.try_versioned_update(
    rel regclass, key "any", expected text, changes jsonb, base jsonb = NULL, on_conflict text = 'report',
    OUT outcome text, OUT version text, OUT current jsonb, OUT conflicts text[])
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.try_versioned_update(regclass, text, bigint, jsonb, jsonb, text) IS
'As versioned_update, but returns a conflict as an outcome. Outcomes: updated (version is the new one), unchanged (the current
one, with unchanged => ''keep'' of enable_versioning), conflict (version and current are the row as it is now, as far as the caller may read it), not_found, and with
on_conflict => ''merge'' and the row the client read as base: merged (current is the row after it), where columns that
only one writer changed are combined; columns that both changed stay a conflict. With base, conflicts names these in the
outcome conflict, also where nothing is merged; an empty array says that a merge would succeed.';
COMMENT ON FUNCTION interlock.try_versioned_update(regclass, "any", bigint, jsonb, jsonb, text) IS
'As try_versioned_update(regclass, text, bigint, jsonb, jsonb, text), for a key of another type.';
COMMENT ON FUNCTION interlock.try_versioned_update(regclass, text, timestamptz, jsonb, jsonb, text) IS
'As try_versioned_update(regclass, text, bigint, jsonb, jsonb, text), for a table versioned by a timestamp.';
COMMENT ON FUNCTION interlock.try_versioned_update(regclass, "any", timestamptz, jsonb, jsonb, text) IS
'As try_versioned_update(regclass, text, bigint, jsonb, jsonb, text), for a key of another type and a table versioned
by a timestamp.';
COMMENT ON FUNCTION interlock.try_versioned_update(regclass, text, text, jsonb, jsonb, text) IS
'As try_versioned_update(regclass, text, bigint, jsonb, jsonb, text), with the version as text.';
COMMENT ON FUNCTION interlock.try_versioned_update(regclass, "any", text, jsonb, jsonb, text) IS
'As try_versioned_update(regclass, text, bigint, jsonb, jsonb, text), for a key of another type, with the version as text.';

CREATE FUNCTION interlock.versioned_delete(rel regclass, key text, expected bigint) RETURNS void
    LANGUAGE c AS 'MODULE_PATHNAME';
CREATE FUNCTION interlock.versioned_delete(rel regclass, key "any", expected bigint) RETURNS void
    LANGUAGE c AS 'MODULE_PATHNAME';
CREATE FUNCTION interlock.versioned_delete(rel regclass, key text, expected timestamptz) RETURNS void
    LANGUAGE c AS 'MODULE_PATHNAME';
CREATE FUNCTION interlock.versioned_delete(rel regclass, key "any", expected timestamptz) RETURNS void
    LANGUAGE c AS 'MODULE_PATHNAME';
CREATE FUNCTION interlock.versioned_delete(rel regclass, key text, expected text) RETURNS void
    LANGUAGE c AS 'MODULE_PATHNAME';
CREATE FUNCTION interlock.versioned_delete(rel regclass, key "any", expected text) RETURNS void
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.versioned_delete(regclass, text, bigint) IS
'Deletes one row if its version is still the expected one. Errors: as versioned_update.';
COMMENT ON FUNCTION interlock.versioned_delete(regclass, "any", bigint) IS
'As versioned_delete(regclass, text, bigint), for a key of another type.';
COMMENT ON FUNCTION interlock.versioned_delete(regclass, text, timestamptz) IS
'As versioned_delete(regclass, text, bigint), for a table versioned by a timestamp.';
COMMENT ON FUNCTION interlock.versioned_delete(regclass, "any", timestamptz) IS
'As versioned_delete(regclass, text, bigint), for a key of another type and a table versioned by a timestamp.';
COMMENT ON FUNCTION interlock.versioned_delete(regclass, text, text) IS
'As versioned_delete(regclass, text, bigint), with the version as text.';
COMMENT ON FUNCTION interlock.versioned_delete(regclass, "any", text) IS
'As versioned_delete(regclass, text, bigint), for a key of another type, with the version as text.';

CREATE FUNCTION interlock.try_versioned_delete(
    rel regclass, key text, expected bigint, OUT outcome text, OUT version bigint, OUT current jsonb)
    LANGUAGE c AS 'MODULE_PATHNAME';
CREATE FUNCTION interlock.try_versioned_delete(
    rel regclass, key "any", expected bigint, OUT outcome text, OUT version bigint, OUT current jsonb)
    LANGUAGE c AS 'MODULE_PATHNAME';
CREATE FUNCTION interlock.try_versioned_delete(
    rel regclass, key text, expected timestamptz, OUT outcome text, OUT version timestamptz, OUT current jsonb)
    LANGUAGE c AS 'MODULE_PATHNAME';
CREATE FUNCTION interlock.try_versioned_delete(
    rel regclass, key "any", expected timestamptz, OUT outcome text, OUT version timestamptz, OUT current jsonb)
    LANGUAGE c AS 'MODULE_PATHNAME';
CREATE FUNCTION interlock.try_versioned_delete(
    rel regclass, key text, expected text, OUT outcome text, OUT version text, OUT current jsonb)
    LANGUAGE c AS 'MODULE_PATHNAME';
CREATE FUNCTION interlock.try_versioned_delete(
    rel regclass, key "any", expected text, OUT outcome text, OUT version text, OUT current jsonb)
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.try_versioned_delete(regclass, text, bigint) IS
'As versioned_delete, but returns an outcome: deleted, conflict (with the row''s version and content), not_found.';
COMMENT ON FUNCTION interlock.try_versioned_delete(regclass, "any", bigint) IS
'As try_versioned_delete(regclass, text, bigint), for a key of another type.';
COMMENT ON FUNCTION interlock.try_versioned_delete(regclass, text, timestamptz) IS
'As try_versioned_delete(regclass, text, bigint), for a table versioned by a timestamp.';
COMMENT ON FUNCTION interlock.try_versioned_delete(regclass, "any", timestamptz) IS
'As try_versioned_delete(regclass, text, bigint), for a key of another type and a table versioned by a timestamp.';
COMMENT ON FUNCTION interlock.try_versioned_delete(regclass, text, text) IS
'As try_versioned_delete(regclass, text, bigint), with the version as text.';
COMMENT ON FUNCTION interlock.try_versioned_delete(regclass, "any", text) IS
'As try_versioned_delete(regclass, text, bigint), for a key of another type, with the version as text.';

CREATE FUNCTION interlock.versioned_upsert(rel regclass, key text, expected bigint, changes jsonb) RETURNS bigint
    LANGUAGE c AS 'MODULE_PATHNAME';
CREATE FUNCTION interlock.versioned_upsert(rel regclass, key "any", expected bigint, changes jsonb) RETURNS bigint
    LANGUAGE c AS 'MODULE_PATHNAME';
CREATE FUNCTION interlock.versioned_upsert(rel regclass, key text, expected timestamptz, changes jsonb) RETURNS timestamptz
    LANGUAGE c AS 'MODULE_PATHNAME';
CREATE FUNCTION interlock.versioned_upsert(rel regclass, key "any", expected timestamptz, changes jsonb) RETURNS timestamptz
    LANGUAGE c AS 'MODULE_PATHNAME';
CREATE FUNCTION interlock.versioned_upsert(rel regclass, key text, expected text, changes jsonb) RETURNS text
    LANGUAGE c AS 'MODULE_PATHNAME';
CREATE FUNCTION interlock.versioned_upsert(rel regclass, key "any", expected text, changes jsonb) RETURNS text
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.versioned_upsert(regclass, text, bigint, jsonb) IS
'With null as expected inserts the row {key, changes}, which must not exist (If-None-Match: *); else updates it as
versioned_update does (If-Match). Returns the row''s version. Columns that are not named get their defaults.
Needs the privileges of the INSERT ... ON CONFLICT DO NOTHING RETURNING, or of the UPDATE; row security holds.
Errors: as versioned_update, and IL001 the row is there, 22023 its key would be stored as another one, 23505 and what else
the INSERT raises.';
COMMENT ON FUNCTION interlock.versioned_upsert(regclass, "any", bigint, jsonb) IS
'As versioned_upsert(regclass, text, bigint, jsonb), for a key of another type.';
COMMENT ON FUNCTION interlock.versioned_upsert(regclass, text, timestamptz, jsonb) IS
'As versioned_upsert(regclass, text, bigint, jsonb), for a table versioned by a timestamp.';
COMMENT ON FUNCTION interlock.versioned_upsert(regclass, "any", timestamptz, jsonb) IS
'As versioned_upsert(regclass, text, bigint, jsonb), for a key of another type and a table versioned by a timestamp.';
COMMENT ON FUNCTION interlock.versioned_upsert(regclass, text, text, jsonb) IS
'As versioned_upsert(regclass, text, bigint, jsonb), with the version as text: for parameters without a type, and for
timestamps that a client would round.';
COMMENT ON FUNCTION interlock.versioned_upsert(regclass, "any", text, jsonb) IS
'As versioned_upsert(regclass, text, text, jsonb), for a key of another type.';

CREATE FUNCTION interlock.try_versioned_upsert(
    rel regclass, key text, expected bigint, changes jsonb, OUT outcome text, OUT version bigint, OUT current jsonb)
    LANGUAGE c AS 'MODULE_PATHNAME';
CREATE FUNCTION interlock.try_versioned_upsert(
    rel regclass, key "any", expected bigint, changes jsonb, OUT outcome text, OUT version bigint, OUT current jsonb)
    LANGUAGE c AS 'MODULE_PATHNAME';
CREATE FUNCTION interlock.try_versioned_upsert(
    rel regclass, key text, expected timestamptz, changes jsonb, OUT outcome text, OUT version timestamptz, OUT current jsonb)
    LANGUAGE c AS 'MODULE_PATHNAME';
CREATE FUNCTION interlock.try_versioned_upsert(
    rel regclass, key "any", expected timestamptz, changes jsonb, OUT outcome text, OUT version timestamptz, OUT current jsonb)
    LANGUAGE c AS 'MODULE_PATHNAME';
CREATE FUNCTION interlock.try_versioned_upsert(
    rel regclass, key text, expected text, changes jsonb, OUT outcome text, OUT version text, OUT current jsonb)
    LANGUAGE c AS 'MODULE_PATHNAME';
CREATE FUNCTION interlock.try_versioned_upsert(
    rel regclass, key "any", expected text, changes jsonb, OUT outcome text, OUT version text, OUT current jsonb)
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.try_versioned_upsert(regclass, text, bigint, jsonb) IS
'As versioned_upsert, but returns a conflict as an outcome. Outcomes: inserted (version is the first one), updated, unchanged,
conflict (version and current are the row as it is now, as far as the caller may read it), not_found (a version was expected,
and there is no row).';
COMMENT ON FUNCTION interlock.try_versioned_upsert(regclass, "any", bigint, jsonb) IS
'As try_versioned_upsert(regclass, text, bigint, jsonb), for a key of another type.';
COMMENT ON FUNCTION interlock.try_versioned_upsert(regclass, text, timestamptz, jsonb) IS
'As try_versioned_upsert(regclass, text, bigint, jsonb), for a table versioned by a timestamp.';
COMMENT ON FUNCTION interlock.try_versioned_upsert(regclass, "any", timestamptz, jsonb) IS
'As try_versioned_upsert(regclass, text, bigint, jsonb), for a key of another type and a table versioned by a timestamp.';
COMMENT ON FUNCTION interlock.try_versioned_upsert(regclass, text, text, jsonb) IS
'As try_versioned_upsert(regclass, text, bigint, jsonb), with the version as text.';
COMMENT ON FUNCTION interlock.try_versioned_upsert(regclass, "any", text, jsonb) IS
'As try_versioned_upsert(regclass, text, bigint, jsonb), for a key of another type, with the version as text.';

CREATE FUNCTION interlock.assert_version(rel regclass, key text, expected bigint) RETURNS void
    LANGUAGE c AS 'MODULE_PATHNAME';
CREATE FUNCTION interlock.assert_version(rel regclass, key "any", expected bigint) RETURNS void
    LANGUAGE c AS 'MODULE_PATHNAME';
CREATE FUNCTION interlock.assert_version(rel regclass, key text, expected timestamptz) RETURNS void
    LANGUAGE c AS 'MODULE_PATHNAME';
CREATE FUNCTION interlock.assert_version(rel regclass, key "any", expected timestamptz) RETURNS void
    LANGUAGE c AS 'MODULE_PATHNAME';
CREATE FUNCTION interlock.assert_version(rel regclass, key text, expected text) RETURNS void
    LANGUAGE c AS 'MODULE_PATHNAME';
CREATE FUNCTION interlock.assert_version(rel regclass, key "any", expected text) RETURNS void
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.assert_version(regclass, text, bigint) IS
'Locks one row until the end of the transaction if its version is still the expected one; any statement may then write it.
Moves nothing. A rollback to an earlier savepoint releases the lock. Needs the privileges of SELECT ... FOR NO KEY UPDATE.
Errors: IL001 the version is another one, P0002 no such row, 55000 not versioned, 40001 under REPEATABLE READ and above
when the row changed after the snapshot.';
COMMENT ON FUNCTION interlock.assert_version(regclass, "any", bigint) IS
'As assert_version(regclass, text, bigint), for a key of another type.';
COMMENT ON FUNCTION interlock.assert_version(regclass, text, timestamptz) IS
'As assert_version(regclass, text, bigint), for a table versioned by a timestamp.';
COMMENT ON FUNCTION interlock.assert_version(regclass, "any", timestamptz) IS
'As assert_version(regclass, text, bigint), for a key of another type and a table versioned by a timestamp.';
COMMENT ON FUNCTION interlock.assert_version(regclass, text, text) IS
'As assert_version(regclass, text, bigint), with the version as text.';
COMMENT ON FUNCTION interlock.assert_version(regclass, "any", text) IS
'As assert_version(regclass, text, bigint), for a key of another type, with the version as text.';

CREATE FUNCTION interlock.versioned_update_many(
    rel regclass, updates jsonb, all_or_nothing boolean = false,
    OUT key jsonb, OUT outcome text, OUT version bigint, OUT version_time timestamptz) RETURNS SETOF record
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.versioned_update_many(regclass, jsonb, boolean) IS
'try_versioned_update for many rows: updates is [{"key": ..., "version": ..., "changes": {...}}, ...]. One result row for
each, in the order given; the rows are written in key order, so that two calls cannot deadlock over them. version is the
counter, version_time the timestamp, after updated the new one, after unchanged and conflict the current one.
With all_or_nothing the first conflict (IL001) or missing row (P0002) is raised and nothing is written.';

CREATE FUNCTION interlock.update_with_retry(
    rel regclass, key text, transform text, args jsonb = '{}', max_retries integer = 3,
    OUT outcome text, OUT version bigint, OUT version_time timestamptz, OUT attempts integer)
    LANGUAGE c AS 'MODULE_PATHNAME';
CREATE FUNCTION interlock.update_with_retry(
    rel regclass, key "any", transform text, args jsonb = '{}', max_retries integer = 3,
    OUT outcome text, OUT version bigint, OUT version_time timestamptz, OUT attempts integer)
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.update_with_retry(regclass, text, text, jsonb, integer) IS
'Reads the row, calls transform(current jsonb, args jsonb) for the changes, writes them if the row is still the same, and
starts again when it is not. Where another transaction has the row, and for a retry, it locks the row before it reads; calls
wait for a row in turn. Outcomes: updated, unchanged (the transform returned null or {}), conflict (after max_retries),
not_found. The transform is named as ''add_tag'' or ''add_tag(jsonb, jsonb)''; it runs with the caller''s rights and may run several times.
Errors: 42883 no such function, 42501 no EXECUTE on the transform, 22023 another signature, 55P03 after lock_timeout, 40001 under REPEATABLE READ and above.';
COMMENT ON FUNCTION interlock.update_with_retry(regclass, "any", text, jsonb, integer) IS
'As update_with_retry(regclass, text, text, jsonb, integer), for a key of another type.';

CREATE FUNCTION interlock_internal.is_preloaded(OUT for_statements boolean, OUT for_all boolean)
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock_internal.is_preloaded() IS
'For findings: whether the session has had the library since its first statement, and whether the server has it.';
