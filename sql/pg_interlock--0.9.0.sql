\echo Use "CREATE EXTENSION pg_interlock" to load this file. \quit

-- What no user calls or reads by name. The statement fails if the schema is there: it would be that of somebody else.
CREATE SCHEMA interlock_internal;

-- Schema interlock may have been there before (src/install.cpp).
CREATE FUNCTION interlock_internal.check_schemas() RETURNS void
    LANGUAGE c AS 'MODULE_PATHNAME';
SELECT interlock_internal.check_schemas();
DROP FUNCTION interlock_internal.check_schemas();

-- Owners of tables name trigger functions when they enable protection or restore a dump.
GRANT USAGE ON SCHEMA interlock, interlock_internal TO PUBLIC;
COMMENT ON SCHEMA interlock_internal IS
'Trigger functions of pg_interlock, functions that its views call, and tables that only the server uses. Its functions of schema
interlock are what applications call.';
COMMENT ON SCHEMA interlock IS 'pg_interlock: prevents lost updates and other write conflicts inside the server';

CREATE FUNCTION interlock.version(OUT library text, OUT sql text)
    LANGUAGE c STABLE AS 'MODULE_PATHNAME', 'interlock_version';
COMMENT ON FUNCTION interlock.version() IS
'The version of the library in this session, and that of the extension''s objects in this database. They differ between the
installation of another version and ALTER EXTENSION pg_interlock UPDATE.';

CREATE FUNCTION interlock_internal.require_library(version text) RETURNS void
    LANGUAGE c STABLE AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock_internal.require_library(text) IS
'Called by scripts that upgrade. Errors: 55000 when the library of this session is older than that, 22023 when it is no version.';

-- Every verb that takes a key exists twice: for text, which also takes parameters that a driver sends without
-- a type, and for a value of any other type (bigint, uuid, ...; a jsonb object for composite keys).

-- Sweeper

CREATE FUNCTION interlock_internal.sweeper_status(
    OUT database text, OUT state text, OUT runs bigint, OUT released bigint, OUT failed bigint, OUT last_run timestamptz,
    OUT last_error text, OUT next_deadline timestamptz, OUT lag interval, OUT max_lag interval) RETURNS SETOF record
    LANGUAGE c AS 'MODULE_PATHNAME';
REVOKE EXECUTE ON FUNCTION interlock_internal.sweeper_status() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION interlock_internal.sweeper_status() TO pg_monitor;
COMMENT ON FUNCTION interlock_internal.sweeper_status() IS
'The rows of the view sweeper. Errors: 55000 when pg_interlock is not in shared_preload_libraries.';

CREATE VIEW interlock.sweeper AS SELECT * FROM interlock_internal.sweeper_status();
GRANT SELECT ON interlock.sweeper TO pg_monitor;
COMMENT ON VIEW interlock.sweeper IS
'State of the sweeper in each database: off, idle, waiting for next_deadline, due or running; markers released and failed releases
since the server started; the last error, null when the last run succeeded; the lag of the last run and the longest lag.';

CREATE FUNCTION interlock_internal.wake_sweeper() RETURNS void
    LANGUAGE c AS 'MODULE_PATHNAME';
REVOKE EXECUTE ON FUNCTION interlock_internal.wake_sweeper() FROM PUBLIC;
COMMENT ON FUNCTION interlock_internal.wake_sweeper() IS
'Wakes the sweeper for this database when the transaction commits; without preload it does nothing.';
SELECT interlock_internal.wake_sweeper();

-- Versioned rows

CREATE FUNCTION interlock_internal.version_trigger() RETURNS trigger
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock_internal.version_trigger() IS
'Moves the version of an updated row. Created by enable_versioning; arguments: version column, blind_updates, ignored columns.
Refuses blind updates where the owner wants it (IL011). Accepts a counter set to exactly old+1, refuses any other value (IL001); a timestamp always moves forward, and is refused
when it is more than a minute ahead of the clock (22008), in new rows too.';

CREATE FUNCTION interlock.first_version(floor text) RETURNS bigint
    LANGUAGE c STABLE AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.first_version(text) IS
'The version a new row starts at: above the version of every row of the table that was deleted.
The default of a version column calls it with the name of the sequence that stores that version. The sequence is found when a row is inserted,
also after it, its table or its schema was renamed; without one a row starts at 1, until enable_versioning creates it.
Errors: 22004, 22023 not schema.sequence, 42809 not a sequence, 42501 no SELECT on it.';

CREATE FUNCTION interlock.enable_versioning(
    rel regclass, version_column name = 'version', ignore_columns name[] = '{}', blind_updates text = 'allow')
    RETURNS void
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.enable_versioning(regclass, name, name[], text) IS
'Makes every update of a row move its version, for all writers. For the owner of the table.
The column is an integer or bigint counter, or an existing timestamp; a missing one is added as bigint, 1 in every row.
Updates that change ignored columns only do not move it. Calling it again changes the ignored columns and blind_updates.
blind_updates: what happens to a row that an UPDATE, DELETE or MERGE writes without comparing its version: allow, warn (a WARNING
for each statement), or reject (IL011). The view blind_updates counts them in each mode.
A counter gets a sequence beside the table, which remembers the versions of rows that were deleted; hence the caller also
needs CREATE on its schema.
Errors: 42501 not the owner, or no CREATE on the schema, 42804 column of another type, 42703 unknown ignored column,
22023 an ignored column that share_columns merges, unknown blind_updates, 55000 versioned by another column, or statements are not
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
No changes ({}) only move the version. Needs the privileges of the UPDATE it runs; row security holds.
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
'As versioned_update, but returns a conflict as an outcome. Outcomes: updated (version is the new one), conflict
(version and current are the row as it is now, as far as the caller may read it), not_found, and with
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
'As versioned_upsert, but returns a conflict as an outcome. Outcomes: inserted (version is the first one), updated,
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
counter, version_time the timestamp, after updated the new one and after conflict the current one.
With all_or_nothing the first conflict (IL001) or missing row (P0002) is raised and nothing is written.';

CREATE FUNCTION interlock.update_with_retry(
    rel regclass, key text, transform regprocedure, args jsonb = '{}', max_retries integer = 3,
    OUT outcome text, OUT version bigint, OUT version_time timestamptz, OUT attempts integer)
    LANGUAGE c AS 'MODULE_PATHNAME';
CREATE FUNCTION interlock.update_with_retry(
    rel regclass, key "any", transform regprocedure, args jsonb = '{}', max_retries integer = 3,
    OUT outcome text, OUT version bigint, OUT version_time timestamptz, OUT attempts integer)
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.update_with_retry(regclass, text, regprocedure, jsonb, integer) IS
'Reads the row, calls transform(current jsonb, args jsonb) for the changes, writes them if the row is still the same, and
starts again when it is not; a retry locks the row before it reads. Outcomes: updated, unchanged (the transform returned
null or {}), conflict (after max_retries), not_found. The transform runs with the caller''s rights and may run several times.
Errors: 42501 no EXECUTE on the transform, 22023 another signature, 40001 under REPEATABLE READ and above.';
COMMENT ON FUNCTION interlock.update_with_retry(regclass, "any", regprocedure, jsonb, integer) IS
'As update_with_retry(regclass, text, regprocedure, jsonb, integer), for a key of another type.';

CREATE FUNCTION interlock_internal.list_reused_keys(OUT rel regclass, OUT inserts bigint) RETURNS SETOF record
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock_internal.list_reused_keys() IS
'For check_versioning: tables whose history shows keys that were inserted again with a version that they had had, and how often. Of each history
that the caller may read, without row security, the newest 10000 entries, and of these inserts of the last 7 days.';

CREATE FUNCTION interlock.check_versioning(OUT rel regclass, OUT finding text, OUT advice text) RETURNS SETOF record
    LANGUAGE sql STABLE
BEGIN ATOMIC
    WITH functions AS ( -- of triggers
        SELECT p.oid, p.proname
          FROM pg_catalog.pg_proc p
          JOIN pg_catalog.pg_proc v ON v.pronamespace OPERATOR(pg_catalog.=) p.pronamespace
         WHERE v.oid OPERATOR(pg_catalog.=) 'interlock_internal.version_trigger()'::pg_catalog.regprocedure),
    own AS (
        SELECT f.oid, f.proname
          FROM functions f
         WHERE f.proname OPERATOR(pg_catalog.=) ANY ('{version_trigger,transition_trigger,marker_trigger,ownership_trigger}'::pg_catalog.name[])),
    triggers AS ( -- with their arguments
        SELECT t.oid, t.tgrelid, t.tgname, t.tgenabled, t.tgparentid, t.tgtype, t.tgfoid, t.tgconstrrelid, t.tgnargs, t.tgargs,
               f.proname AS kind,
               ARRAY(SELECT pg_catalog.convert_from(pg_catalog.decode(m.hex[1], 'hex'), pg_catalog.getdatabaseencoding())
                       FROM pg_catalog.regexp_matches(pg_catalog.encode(t.tgargs, 'hex'), '((?:(?!00)..)*)00', 'g')
                            WITH ORDINALITY m (hex, n)
                      ORDER BY m.n) AS texts
          FROM functions f
          JOIN pg_catalog.pg_trigger t ON t.tgfoid OPERATOR(pg_catalog.=) f.oid),
    checks AS (
        SELECT t.oid, t.tgrelid, t.tgname, t.tgenabled, t.tgparentid, t.tgtype, t.tgfoid, t.kind, t.texts, t.texts[1] AS subject
          FROM triggers t
          JOIN own ON own.oid OPERATOR(pg_catalog.=) t.tgfoid
         WHERE t.tgnargs OPERATOR(pg_catalog.>) 0
           AND (t.kind OPERATOR(pg_catalog.<>) 'ownership_trigger'
                OR pg_catalog.position(t.tgargs, '\x006f776e3a'::pg_catalog.bytea) OPERATOR(pg_catalog.>) 0)), -- own:
    guards AS ( -- beside versions
        SELECT t.tgrelid, t.tgname, t.tgenabled, e.effect
          FROM triggers t
          JOIN (VALUES ('transition_trigger', 'changes of state are not checked'),
                       ('initial_state_trigger', 'states of new rows are not checked'),
                       ('marker_trigger', 'markers are not enforced'),
                       ('marker_notify_trigger', 'nobody is notified of markers'),
                       ('lease_trigger', 'writes need no lease'),
                       ('ownership_trigger', 'columns are written by anybody'),
                       ('history_trigger', 'changes are not recorded'),
                       ('history_truncate_trigger', 'TRUNCATE is not recorded')) e (function, effect)
            ON t.kind OPERATOR(pg_catalog.=) e.function::pg_catalog.name),
    versioned AS (
        SELECT c.oid, c.tgrelid, c.tgname, c.tgenabled, c.tgparentid, c.subject AS version_column,
               pg_catalog.format('SELECT interlock.enable_versioning(%L, %L%s%s)', c.tgrelid::pg_catalog.regclass, c.subject,
                   CASE WHEN pg_catalog.cardinality(c.texts) OPERATOR(pg_catalog.>) 2
                        THEN pg_catalog.format(', %L', c.texts[3:]) END, -- ignore_columns
                   CASE WHEN c.texts[2] OPERATOR(pg_catalog.<>) 'allow'
                        THEN pg_catalog.format(', blind_updates => %L', c.texts[2]) END) AS enable
          FROM checks c
         WHERE c.kind OPERATOR(pg_catalog.=) 'version_trigger'),
    arguments AS ( -- those of partitions have the same
        SELECT t.tgrelid, t.tgname, t.tgconstrrelid, t.kind, t.texts
          FROM triggers t
         WHERE t.tgnargs OPERATOR(pg_catalog.>) 0 AND t.tgparentid OPERATOR(pg_catalog.=) 0),
    named AS ( -- by arguments, with what helps when the column is gone. No name stands in a comment: it could end the line
        SELECT a.tgrelid, 'marker' AS part, n.name,
               pg_catalog.format('SELECT interlock.enable_marker(%L, ttl => %L, enforce => %L, notify => %L, status_column => %L, '
                       'holder_column => %L, time_column => %L, until_column => %L, reason_column => %L) '
                       '-- adds it; for a column that was renamed give its present name',
                   a.tgrelid::pg_catalog.regclass, a.texts[1], a.texts[2] OPERATOR(pg_catalog.=) 'enforce',
                   COALESCE((SELECT CASE t.tgnargs WHEN 0 THEN 'on' ELSE 'full' END
                               FROM triggers t
                              WHERE t.tgrelid OPERATOR(pg_catalog.=) a.tgrelid
                                AND t.kind OPERATOR(pg_catalog.=) 'marker_notify_trigger' LIMIT 1), 'off'),
                   a.texts[3], a.texts[4], a.texts[5], a.texts[6], a.texts[7]) AS advice
          FROM arguments a
         CROSS JOIN LATERAL pg_catalog.unnest(a.texts[3:]) n (name)
         WHERE a.kind OPERATOR(pg_catalog.=) 'marker_trigger'
         UNION ALL
        SELECT c.tgrelid, 'state', c.subject,
               pg_catalog.format('SELECT interlock.drop_transitions(%L, %L) '
                       '-- if it was renamed, first interlock.define_transitions for its present name',
                   c.tgrelid::pg_catalog.regclass, c.subject)
          FROM checks c
         WHERE c.kind OPERATOR(pg_catalog.=) 'transition_trigger' AND c.tgparentid OPERATOR(pg_catalog.=) 0
         UNION ALL
        SELECT a.tgrelid, 'lease', n.name,
               pg_catalog.format('SELECT interlock.unrequire_lease(%L, %L) '
                       '-- if it was renamed, then interlock.require_lease with its present name',
                   a.tgrelid::pg_catalog.regclass, a.texts[1])
          FROM arguments a
         CROSS JOIN LATERAL (
               SELECT m.name[1]
                 FROM pg_catalog.regexp_matches(
                          pg_catalog.replace(pg_catalog.replace(a.texts[1], '{{', ''), '}}', ''), '\{([^{}]+)\}', 'g') m (name)
                UNION
               SELECT c.name FROM pg_catalog.unnest(a.texts[2:]) c (name)) n (name)
         WHERE a.kind OPERATOR(pg_catalog.=) 'lease_trigger'
         UNION ALL
        SELECT a.tgrelid, 'owned', a.texts[i.n],
               pg_catalog.format('SELECT interlock.release_columns(%L, ARRAY[%L]) '
                       '-- if it was renamed, then interlock.own_columns for its present name',
                   a.tgrelid::pg_catalog.regclass, a.texts[i.n])
          FROM arguments a
         CROSS JOIN LATERAL pg_catalog.generate_series(1, pg_catalog.cardinality(a.texts), 3) i (n)
         WHERE a.kind OPERATOR(pg_catalog.=) 'ownership_trigger'
           AND pg_catalog.starts_with(a.texts[i.n OPERATOR(pg_catalog.+) 1], 'own:')),
    recorded AS (
        SELECT a.tgrelid, a.tgname, a.tgconstrrelid, a.texts, c.relowner, h.relowner AS history_owner,
               a.texts[7:6 OPERATOR(pg_catalog.+) n.columns] AS ignored_columns,
               a.texts[8 OPERATOR(pg_catalog.+) n.columns:7 OPERATOR(pg_catalog.+) n.columns OPERATOR(pg_catalog.+) m.writers] AS ignored_writers,
               8 OPERATOR(pg_catalog.+) n.columns OPERATOR(pg_catalog.+) m.writers AS key_from
          FROM arguments a
          JOIN pg_catalog.pg_class c ON c.oid OPERATOR(pg_catalog.=) a.tgrelid
          JOIN pg_catalog.pg_class h ON h.oid OPERATOR(pg_catalog.=) a.tgconstrrelid
         CROSS JOIN LATERAL (SELECT COALESCE(pg_catalog.substring(a.texts[6], '^([0-9]{1,4}) ignored columns$')::pg_catalog.int4, 0)) n (columns)
         CROSS JOIN LATERAL (SELECT COALESCE(pg_catalog.substring(a.texts[7 OPERATOR(pg_catalog.+) n.columns],
                                                                  '^([0-9]{1,4}) ignored writers$')::pg_catalog.int4, 0)) m (writers)
         WHERE a.kind OPERATOR(pg_catalog.=) 'history_trigger'),
    floors AS NOT MATERIALIZED ( -- sequences that belong to columns
        SELECT o.refobjid AS relid, o.refobjsubid AS attnum, s.oid, s.relname, s.relnamespace
          FROM pg_catalog.pg_depend o
          JOIN pg_catalog.pg_class s ON s.oid OPERATOR(pg_catalog.=) o.objid AND s.relkind OPERATOR(pg_catalog.=) 'S'
         WHERE o.classid OPERATOR(pg_catalog.=) 'pg_catalog.pg_class'::pg_catalog.regclass
           AND o.refclassid OPERATOR(pg_catalog.=) 'pg_catalog.pg_class'::pg_catalog.regclass
           AND o.deptype OPERATOR(pg_catalog.=) 'a'),
    readers AS NOT MATERIALIZED ( -- defaults that call first_version
        SELECT d.oid, d.adrelid, d.adnum
          FROM pg_catalog.pg_depend u
          JOIN pg_catalog.pg_attrdef d ON d.oid OPERATOR(pg_catalog.=) u.objid
         WHERE u.classid OPERATOR(pg_catalog.=) 'pg_catalog.pg_attrdef'::pg_catalog.regclass
           AND u.refclassid OPERATOR(pg_catalog.=) 'pg_catalog.pg_proc'::pg_catalog.regclass
           AND u.refobjid OPERATOR(pg_catalog.=) 'interlock.first_version(text)'::pg_catalog.regprocedure::pg_catalog.oid),
    defaults AS ( -- of counters; to ask for an expression as it is written would wait for a table that somebody has locked
        SELECT v.oid, v.tgrelid, v.tgparentid, v.version_column, v.enable, d.adbin::pg_catalog.text AS expression,
               EXISTS (SELECT FROM readers r WHERE r.oid OPERATOR(pg_catalog.=) d.oid) AS reads_floor,
               (SELECT pg_catalog.format('%I.%I', n.nspname, s.relname)
                  FROM floors s
                  JOIN pg_catalog.pg_namespace n ON n.oid OPERATOR(pg_catalog.=) s.relnamespace
                 WHERE s.relid OPERATOR(pg_catalog.=) v.tgrelid AND s.attnum OPERATOR(pg_catalog.=) a.attnum
                 ORDER BY s.oid LIMIT 1) AS floor
          FROM versioned v
          JOIN pg_catalog.pg_attribute a
            ON a.attrelid OPERATOR(pg_catalog.=) v.tgrelid AND a.attname OPERATOR(pg_catalog.=) v.version_column::pg_catalog.name
           AND a.atttypid OPERATOR(pg_catalog.=) ANY (ARRAY['pg_catalog.int4'::pg_catalog.regtype,
                   'pg_catalog.int8'::pg_catalog.regtype]::pg_catalog.oid[])
          LEFT JOIN pg_catalog.pg_attrdef d
            ON d.adrelid OPERATOR(pg_catalog.=) v.tgrelid AND d.adnum OPERATOR(pg_catalog.=) a.attnum)
    SELECT g.tgrelid::pg_catalog.regclass,
           pg_catalog.format('trigger "%s" %s: %s', g.tgname,
               CASE g.tgenabled WHEN 'D' THEN 'is disabled' WHEN 'R' THEN 'fires on a replica only' ELSE 'does not fire in this session' END,
               g.effect),
           CASE WHEN g.tgenabled OPERATOR(pg_catalog.=) 'O'
                THEN pg_catalog.format('RESET session_replication_role, or ALTER TABLE %s ENABLE ALWAYS TRIGGER %I',
                         g.tgrelid::pg_catalog.regclass, g.tgname)
                ELSE pg_catalog.format('ALTER TABLE %s ENABLE TRIGGER %I', g.tgrelid::pg_catalog.regclass, g.tgname) END
      FROM guards g
     WHERE g.tgenabled OPERATOR(pg_catalog.=) ANY ('{D,R}')
        OR g.tgenabled OPERATOR(pg_catalog.=) 'O'
           AND pg_catalog.current_setting('session_replication_role') OPERATOR(pg_catalog.=) 'replica'
    UNION ALL
    SELECT v.tgrelid::pg_catalog.regclass, 'the version trigger is disabled',
           pg_catalog.format('ALTER TABLE %s ENABLE TRIGGER %I', v.tgrelid::pg_catalog.regclass, v.tgname)
      FROM versioned v
     WHERE v.tgenabled OPERATOR(pg_catalog.=) 'D'
    UNION ALL
    SELECT v.tgrelid::pg_catalog.regclass, 'the version trigger fires on a replica only',
           pg_catalog.format('ALTER TABLE %s ENABLE TRIGGER %I', v.tgrelid::pg_catalog.regclass, v.tgname)
      FROM versioned v
     WHERE v.tgenabled OPERATOR(pg_catalog.=) 'R'
    UNION ALL
    SELECT v.tgrelid::pg_catalog.regclass, 'session_replication_role is replica: the trigger does not fire in this session',
           pg_catalog.format('RESET session_replication_role, or ALTER TABLE %s ENABLE ALWAYS TRIGGER %I',
               v.tgrelid::pg_catalog.regclass, v.tgname)
      FROM versioned v
     WHERE v.tgenabled OPERATOR(pg_catalog.=) 'O'
       AND pg_catalog.current_setting('session_replication_role') OPERATOR(pg_catalog.=) 'replica'
    UNION ALL
    SELECT v.tgrelid::pg_catalog.regclass,
           pg_catalog.format('version column "%s" is gone or has another type', v.version_column),
           pg_catalog.format('SELECT interlock.disable_versioning(%L), then interlock.enable_versioning with the present name',
               v.tgrelid::pg_catalog.regclass)
      FROM versioned v
     WHERE NOT EXISTS (
               SELECT FROM pg_catalog.pg_attribute a
                WHERE a.attrelid OPERATOR(pg_catalog.=) v.tgrelid
                  AND a.attname OPERATOR(pg_catalog.=) v.version_column::pg_catalog.name
                  AND NOT a.attisdropped
                  AND a.atttypid OPERATOR(pg_catalog.=) ANY (ARRAY[
                          'pg_catalog.int4'::pg_catalog.regtype, 'pg_catalog.int8'::pg_catalog.regtype,
                          'pg_catalog.timestamp'::pg_catalog.regtype, 'pg_catalog.timestamptz'::pg_catalog.regtype]::pg_catalog.oid[]))
    UNION ALL
    SELECT l.rel::pg_catalog.regclass, pg_catalog.format('trigger "%s" fires after trigger "%s": writes are refused', l.tgname, l.first),
           pg_catalog.format('ALTER TRIGGER %I ON %s RENAME TO %I', l.tgname, l.root::pg_catalog.regclass,
               CASE WHEN 'a_' OPERATOR(pg_catalog.<) l.first THEN 'a_' ELSE '0_' END OPERATOR(pg_catalog.||) l.tgname)
      FROM (SELECT later.tgrelid AS rel, later.tgname, pg_catalog.min(c.tgname::pg_catalog.text COLLATE pg_catalog."C") AS first,
                   COALESCE((SELECT r.tgrelid
                               FROM pg_catalog.pg_partition_ancestors(later.tgrelid) a
                               JOIN pg_catalog.pg_trigger r ON r.tgrelid OPERATOR(pg_catalog.=) a.relid::pg_catalog.oid
                              WHERE later.tgparentid OPERATOR(pg_catalog.<>) 0 AND r.tgparentid OPERATOR(pg_catalog.=) 0
                                AND r.tgname OPERATOR(pg_catalog.=) later.tgname), later.tgrelid) AS root
              FROM pg_catalog.pg_trigger later
              JOIN checks c
                ON c.tgrelid OPERATOR(pg_catalog.=) later.tgrelid
               AND c.tgname OPERATOR(pg_catalog.<) later.tgname
               AND later.tgtype::pg_catalog.int4 OPERATOR(pg_catalog.&) c.tgtype::pg_catalog.int4 OPERATOR(pg_catalog.&) 20
                   OPERATOR(pg_catalog.<>) 0 -- insert, update
               AND (c.tgenabled OPERATOR(pg_catalog.=) later.tgenabled OR c.tgenabled OPERATOR(pg_catalog.=) 'A'
                    OR later.tgenabled OPERATOR(pg_catalog.=) 'A')
             WHERE later.tgtype::pg_catalog.int4 OPERATOR(pg_catalog.&) 3 OPERATOR(pg_catalog.=) 3 -- row, before
               AND later.tgenabled OPERATOR(pg_catalog.<>) 'D' AND c.tgenabled OPERATOR(pg_catalog.<>) 'D'
               AND NOT EXISTS (SELECT FROM own WHERE own.oid OPERATOR(pg_catalog.=) later.tgfoid)
               AND NOT EXISTS (SELECT FROM checks above
                                 JOIN pg_catalog.pg_trigger p ON p.tgrelid OPERATOR(pg_catalog.=) above.tgrelid
                                WHERE p.oid OPERATOR(pg_catalog.=) later.tgparentid) -- found there
             GROUP BY later.oid, later.tgrelid, later.tgname, later.tgparentid) l
    UNION ALL
    SELECT d.tgrelid::pg_catalog.regclass,
           pg_catalog.format(CASE WHEN d.reads_floor THEN 'the default of column "%s" has no sequence: a key that is used again meets old versions'
                                  WHEN d.expression IS NULL THEN 'column "%s" has no default: a key that is used again meets old versions'
                                  ELSE 'the default of column "%s" is not first_version: a key that is used again meets old versions' END,
               d.version_column),
           CASE WHEN d.floor IS NULL OR d.reads_floor THEN d.enable
                ELSE pg_catalog.format('ALTER TABLE %s ALTER COLUMN %I SET DEFAULT interlock.first_version(%L)',
                         d.tgrelid::pg_catalog.regclass, d.version_column, d.floor) END
      FROM defaults d
     WHERE CASE WHEN d.reads_floor THEN d.floor IS NULL
                WHEN d.expression IS NULL OR d.floor IS NOT NULL THEN true
                ELSE d.expression OPERATOR(pg_catalog.~) -- a constant, or the cast of one
                         '^(\{FUNCEXPR [^{}]*:funcformat [12] [^{}]*:args \()?\{CONST ' END
       AND (d.tgparentid OPERATOR(pg_catalog.=) 0
            OR NOT d.reads_floor AND EXISTS (
                   SELECT FROM defaults above
                    WHERE above.oid OPERATOR(pg_catalog.=) d.tgparentid AND above.reads_floor AND above.floor IS NOT NULL))
    UNION ALL
    SELECT r.rel,
           pg_catalog.format('a key that is used again meets old versions: its history has inserts that did, in the last 7 days %s', r.inserts),
           pg_catalog.format('leave column "%s" to its default in each INSERT; changed_by in the history says who did not', v.version_column)
      FROM interlock_internal.list_reused_keys() r
      JOIN versioned v ON v.tgrelid OPERATOR(pg_catalog.=) r.rel::pg_catalog.oid AND v.tgparentid OPERATOR(pg_catalog.=) 0
    UNION ALL
    SELECT v.tgrelid::pg_catalog.regclass, 'a subscription writes to the table without firing the trigger',
           'version the rows on the publisher, and write them there alone'
      FROM versioned v
      JOIN pg_catalog.pg_subscription_rel s ON s.srrelid OPERATOR(pg_catalog.=) v.tgrelid
     WHERE v.tgenabled OPERATOR(pg_catalog.<>) 'A'
    UNION ALL
    SELECT d.adrelid::pg_catalog.regclass,
           pg_catalog.format('the version trigger is gone: updates do not move column "%s"', a.attname),
           pg_catalog.format('SELECT interlock.enable_versioning(%L, %L)', d.adrelid::pg_catalog.regclass, a.attname)
      FROM readers d
      JOIN pg_catalog.pg_attribute a
        ON a.attrelid OPERATOR(pg_catalog.=) d.adrelid AND a.attnum OPERATOR(pg_catalog.=) d.adnum
     WHERE EXISTS (SELECT FROM floors s -- not a copy by LIKE, nor a partition
                    WHERE s.relid OPERATOR(pg_catalog.=) d.adrelid AND s.attnum OPERATOR(pg_catalog.=) d.adnum)
       AND NOT EXISTS (SELECT FROM versioned v WHERE v.tgrelid OPERATOR(pg_catalog.=) d.adrelid)
    UNION ALL
    SELECT n.tgrelid::pg_catalog.regclass, pg_catalog.format('%s column "%s" is gone: writes are refused', n.part, n.name), n.advice
      FROM named n
     WHERE NOT EXISTS (SELECT FROM pg_catalog.pg_attribute a
                        WHERE a.attrelid OPERATOR(pg_catalog.=) n.tgrelid AND a.attname OPERATOR(pg_catalog.=) n.name::pg_catalog.name
                          AND a.attnum OPERATOR(pg_catalog.>) 0 AND NOT a.attisdropped)
    UNION ALL
    SELECT r.tgrelid::pg_catalog.regclass, 'the table has a history and no key that names one row: writes are refused',
           pg_catalog.format('ALTER TABLE %s ADD PRIMARY KEY (%s)', r.tgrelid::pg_catalog.regclass,
               (SELECT pg_catalog.string_agg(pg_catalog.quote_ident(r.texts[i.n]), ', ' ORDER BY i.n)
                  FROM pg_catalog.generate_series(r.key_from, pg_catalog.cardinality(r.texts), 2) i (n)))
      FROM recorded r
     WHERE pg_catalog.cardinality(r.texts) OPERATOR(pg_catalog.>=) r.key_from
       AND NOT EXISTS (SELECT FROM pg_catalog.pg_index i
                        WHERE i.indrelid OPERATOR(pg_catalog.=) r.tgrelid AND i.indisunique AND i.indimmediate AND i.indisvalid
                          AND i.indpred IS NULL AND i.indexprs IS NULL)
    UNION ALL
    SELECT r.tgrelid::pg_catalog.regclass,
           pg_catalog.format('the history is in table %s of another owner: writes are refused', r.tgconstrrelid::pg_catalog.regclass),
           -- No statement: roles with TRIGGER on one of the tables can have made the trigger, to get the other one.
           pg_catalog.format('if the table is the history, ALTER TABLE ... OWNER TO gives it back; if not, drop trigger "%s"', r.tgname)
      FROM recorded r
     WHERE r.relowner OPERATOR(pg_catalog.<>) r.history_owner
    UNION ALL
    SELECT r.tgrelid::pg_catalog.regclass,
           pg_catalog.format('column "%s" of history table %s is gone: writes are refused', m.name, r.tgconstrrelid::pg_catalog.regclass),
           pg_catalog.format('SELECT interlock.disable_history(%1$L), interlock.enable_history(%1$L, %2$L, %3$L%4$s) -- into a new table',
               r.tgrelid::pg_catalog.regclass, NULLIF(r.texts[1], ''), NULLIF(r.texts[2], ''), s.others)
      FROM recorded r
     CROSS JOIN pg_catalog.unnest('{id,key,version,changed_at,writer,changed_by,operation,row_data,changed,before,transaction,command,writer_from}'
                                  ::pg_catalog.name[]) m (name)
     CROSS JOIN LATERAL (SELECT pg_catalog.concat(
               CASE WHEN r.ignored_columns OPERATOR(pg_catalog.<>) '{}' THEN pg_catalog.format(', ignore_columns => %L', r.ignored_columns) END,
               CASE WHEN r.ignored_writers OPERATOR(pg_catalog.<>) '{}' THEN pg_catalog.format(', ignore_writers => %L', r.ignored_writers) END,
               CASE WHEN r.texts[4] OPERATOR(pg_catalog.=) ANY ('{notify on,notify full}') THEN
                   pg_catalog.format(', notify => %L', pg_catalog.substr(r.texts[4], 8)) END,
               CASE WHEN r.texts[5] OPERATOR(pg_catalog.=) 'record markers' THEN ', record_markers => true' END)) s (others)
     WHERE NOT EXISTS (SELECT FROM pg_catalog.pg_attribute a
                        WHERE a.attrelid OPERATOR(pg_catalog.=) r.tgconstrrelid AND a.attname OPERATOR(pg_catalog.=) m.name
                          AND a.attnum OPERATOR(pg_catalog.>) 0 AND NOT a.attisdropped)
    UNION ALL
    SELECT r.tgrelid::pg_catalog.regclass,
           pg_catalog.format('column "%s" in ignore_columns of the history is gone: changes under another name are recorded', m.name),
           'enable_history with the present names'
      FROM recorded r
     CROSS JOIN pg_catalog.unnest(r.ignored_columns) m (name)
     WHERE NOT EXISTS (SELECT FROM pg_catalog.pg_attribute a
                        WHERE a.attrelid OPERATOR(pg_catalog.=) r.tgrelid AND a.attname OPERATOR(pg_catalog.=) m.name::pg_catalog.name
                          AND a.attnum OPERATOR(pg_catalog.>) 0 AND NOT a.attisdropped)
    UNION ALL
    SELECT i.inhrelid::pg_catalog.regclass,
           CASE c.kind WHEN 'version_trigger' THEN 'the table inherits from a versioned one and is not versioned itself'
                       WHEN 'transition_trigger' THEN
                           pg_catalog.format('the table inherits from one with transitions of column "%s" and has none itself', c.subject)
                       WHEN 'marker_trigger' THEN 'the table inherits from one with markers and has none itself'
                       ELSE 'the table inherits from one with owned columns and has none itself' END,
           CASE c.kind WHEN 'version_trigger' THEN
                           pg_catalog.format('SELECT interlock.enable_versioning(%L, %L)', i.inhrelid::pg_catalog.regclass, c.subject)
                       WHEN 'transition_trigger' THEN 'define_transitions for it as well'
                       WHEN 'marker_trigger' THEN 'enable_marker for it as well'
                       ELSE 'own_columns for it as well' END
      FROM checks c
      JOIN pg_catalog.pg_inherits i ON i.inhparent OPERATOR(pg_catalog.=) c.tgrelid
     WHERE NOT EXISTS (SELECT FROM checks child
                        WHERE child.tgrelid OPERATOR(pg_catalog.=) i.inhrelid AND child.tgfoid OPERATOR(pg_catalog.=) c.tgfoid
                          AND (c.kind OPERATOR(pg_catalog.<>) 'transition_trigger' OR child.subject OPERATOR(pg_catalog.=) c.subject));
END;
COMMENT ON FUNCTION interlock.check_versioning() IS
'Lists tables whose versions do not protect every write: trigger gone, disabled, for replicas only or not firing in this session,
version column gone or without the default that remembers deleted versions, inserts that set an old version (where a history shows
them to the caller), a subscription that writes past the trigger, an
inheriting table, also of one with transitions, markers or owned columns; BEFORE triggers that fire after ours, so that
writes are refused; and triggers of other concepts that are disabled or do not fire, or refuse writes: a column that they name is
gone, a history has no key or a table of another owner. No rows: all tables are protected.';

-- Status transitions

CREATE FUNCTION interlock_internal.transition_trigger() RETURNS trigger
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock_internal.transition_trigger() IS
'Refuses a change of state that is not declared (IL002). Created by define_transitions; arguments: state column,
transitions, initial states, what becomes of a repeated state, numbers of guards. Its condition is always true, and names the guards. Checks updates; initial_state_trigger checks new rows.';

CREATE FUNCTION interlock_internal.initial_state_trigger() RETURNS trigger
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock_internal.initial_state_trigger() IS
'Refuses a new row whose state is not initial (IL002). Created by define_transitions when there are initial states;
argument: state column.';

CREATE FUNCTION interlock.define_transitions(
    rel regclass, state_column name, transitions jsonb, initial text[] = NULL, on_repeat text = 'allow',
    guards jsonb = '{}') RETURNS void
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.define_transitions(regclass, name, jsonb, text[], text, jsonb) IS
'Declares which states may follow which: {"pending": ["paid", "cancelled"], "paid": ["shipped"]}. For the owner of the table.
The column is of a text, integer, numeric, boolean, uuid or enum type. It holds for every writer, plain SQL too; when initial is given, inserted rows
start in one of those states. on_repeat: an update that names the column and leaves the state as it is may do so (allow), or is a
transition from the state to itself, which must be declared (reject). guards: {"open": {"claimed": "may_claim(work_order, work_order)"}}, functions
of the old and the new row that run as the writer, and return boolean, or a text that says why not. Calling it again replaces the declaration; rows in a state that is no longer declared stay and
cannot leave it. Errors: 42501 not the owner, 42703 no such column, 42804 type, 22023 shape, 22P02 no state of that type.';

CREATE FUNCTION interlock.drop_transitions(rel regclass, state_column name) RETURNS void
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.drop_transitions(regclass, name) IS
'Lets the column change freely again. For the owner of the table. Errors: 55000 no transitions.';

CREATE FUNCTION interlock.transition(
    rel regclass, key text, from_state text, to_state text, changes jsonb = '{}', state_column name = NULL, match jsonb = '{}') RETURNS void
    LANGUAGE c AS 'MODULE_PATHNAME';
CREATE FUNCTION interlock.transition(
    rel regclass, key "any", from_state text, to_state text, changes jsonb = '{}', state_column name = NULL, match jsonb = '{}') RETURNS void
    LANGUAGE c AS 'MODULE_PATHNAME';
CREATE FUNCTION interlock.transition(
    rel regclass, key text, from_state "any", to_state "any", changes jsonb = '{}', state_column name = NULL, match jsonb = '{}') RETURNS void
    LANGUAGE c AS 'MODULE_PATHNAME';
CREATE FUNCTION interlock.transition(
    rel regclass, key "any", from_state "any", to_state "any", changes jsonb = '{}', state_column name = NULL, match jsonb = '{}') RETURNS void
    LANGUAGE c AS 'MODULE_PATHNAME';
CREATE FUNCTION interlock.transition(
    rel regclass, key text, from_state text[], to_state text, changes jsonb = '{}', state_column name = NULL, match jsonb = '{}') RETURNS void
    LANGUAGE c AS 'MODULE_PATHNAME';
CREATE FUNCTION interlock.transition(
    rel regclass, key "any", from_state text[], to_state text, changes jsonb = '{}', state_column name = NULL, match jsonb = '{}') RETURNS void
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.transition(regclass, text, text, text, jsonb, name, jsonb) IS
'Moves one row from one state to another and makes the other changes with it, if it is still in the first state: of callers
that race exactly one wins. States are values of the column''s type, or their text; from_state is one, or an array. match: only if these
columns still have these values, null for a column that is null. state_column is needed where several columns have transitions.
Errors: IL002 not declared, IL003 the row is in another state or does not match, P0002 no such row, 55000 no transitions, 22P02 no state of that type,
42703 match of an unknown column, 09000 the owner of the state column, or a trigger, has restored the state, 40001 under REPEATABLE READ and above
when the row changed after the snapshot.';
COMMENT ON FUNCTION interlock.transition(regclass, "any", text, text, jsonb, name, jsonb) IS
'As transition(regclass, text, text, text, jsonb, name, jsonb), for a key of another type.';
COMMENT ON FUNCTION interlock.transition(regclass, text, "any", "any", jsonb, name, jsonb) IS
'As transition(regclass, text, text, text, jsonb, name, jsonb), for states of another type, or an array of states.';
COMMENT ON FUNCTION interlock.transition(regclass, "any", "any", "any", jsonb, name, jsonb) IS
'As transition(regclass, text, text, text, jsonb, name, jsonb), for a key and states of other types.';
COMMENT ON FUNCTION interlock.transition(regclass, text, text[], text, jsonb, name, jsonb) IS
'As transition(regclass, text, text, text, jsonb, name, jsonb), for several states that the row may be in.';
COMMENT ON FUNCTION interlock.transition(regclass, "any", text[], text, jsonb, name, jsonb) IS
'As transition(regclass, text, text, text, jsonb, name, jsonb), for a key of another type and several states.';

CREATE FUNCTION interlock.try_transition(
    rel regclass, key text, from_state text, to_state text, changes jsonb = '{}', state_column name = NULL, match jsonb = '{}',
    OUT outcome text, OUT state text, OUT current jsonb, OUT reason text)
    LANGUAGE c AS 'MODULE_PATHNAME';
CREATE FUNCTION interlock.try_transition(
    rel regclass, key "any", from_state text, to_state text, changes jsonb = '{}', state_column name = NULL, match jsonb = '{}',
    OUT outcome text, OUT state text, OUT current jsonb, OUT reason text)
    LANGUAGE c AS 'MODULE_PATHNAME';
CREATE FUNCTION interlock.try_transition(
    rel regclass, key text, from_state "any", to_state "any", changes jsonb = '{}', state_column name = NULL, match jsonb = '{}',
    OUT outcome text, OUT state text, OUT current jsonb, OUT reason text)
    LANGUAGE c AS 'MODULE_PATHNAME';
CREATE FUNCTION interlock.try_transition(
    rel regclass, key "any", from_state "any", to_state "any", changes jsonb = '{}', state_column name = NULL, match jsonb = '{}',
    OUT outcome text, OUT state text, OUT current jsonb, OUT reason text)
    LANGUAGE c AS 'MODULE_PATHNAME';
CREATE FUNCTION interlock.try_transition(
    rel regclass, key text, from_state text[], to_state text, changes jsonb = '{}', state_column name = NULL, match jsonb = '{}',
    OUT outcome text, OUT state text, OUT current jsonb, OUT reason text)
    LANGUAGE c AS 'MODULE_PATHNAME';
CREATE FUNCTION interlock.try_transition(
    rel regclass, key "any", from_state text[], to_state text, changes jsonb = '{}', state_column name = NULL, match jsonb = '{}',
    OUT outcome text, OUT state text, OUT current jsonb, OUT reason text)
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.try_transition(regclass, text, text, text, jsonb, name, jsonb) IS
'As transition, but returns an outcome: transitioned, state_changed, no_match, not_allowed, not_found; state is the row''s state afterwards,
current the row as it is where it was not moved, with the columns that the caller may SELECT; reason what a guard says against it.';
COMMENT ON FUNCTION interlock.try_transition(regclass, "any", text, text, jsonb, name, jsonb) IS
'As try_transition(regclass, text, text, text, jsonb, name, jsonb), for a key of another type.';
COMMENT ON FUNCTION interlock.try_transition(regclass, text, "any", "any", jsonb, name, jsonb) IS
'As try_transition(regclass, text, text, text, jsonb, name, jsonb), for states of another type, or an array of states.';
COMMENT ON FUNCTION interlock.try_transition(regclass, "any", "any", "any", jsonb, name, jsonb) IS
'As try_transition(regclass, text, text, text, jsonb, name, jsonb), for a key and states of other types.';
COMMENT ON FUNCTION interlock.try_transition(regclass, text, text[], text, jsonb, name, jsonb) IS
'As try_transition(regclass, text, text, text, jsonb, name, jsonb), for several states that the row may be in.';
COMMENT ON FUNCTION interlock.try_transition(regclass, "any", text[], text, jsonb, name, jsonb) IS
'As try_transition(regclass, text, text, text, jsonb, name, jsonb), for a key of another type and several states.';

CREATE FUNCTION interlock_internal.list_transitions(
    OUT rel regclass, OUT state_column name, OUT from_state text, OUT to_state text, OUT guard regprocedure, OUT is_initial boolean)
    RETURNS SETOF record
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock_internal.list_transitions() IS 'The rows of the view transitions.';

CREATE VIEW interlock.transitions AS SELECT * FROM interlock_internal.list_transitions();
GRANT SELECT ON interlock.transitions TO PUBLIC;
COMMENT ON VIEW interlock.transitions IS
'Every declared transition of the tables on which the reader has some privilege, with its guard; a state from which none is declared
has a line without to_state. is_initial: a new row may have from_state. Partitions are as the table that they belong to.';

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
    rel regclass, ttl interval = '5 min', enforce boolean = true, notify text = 'off',
    status_column name = NULL, holder_column name = 'lock_by', time_column name = 'lock_time',
    until_column name = 'lock_until', reason_column name = 'lock_reason', sweep_index boolean = true) RETURNS void
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.enable_marker(regclass, interval, boolean, text, name, name, name, name, name, boolean) IS
'Enables markers, with which users and programs hold rows while they edit them: status 0 is free, 1 is being edited. For the owner of the table.
Missing columns are added, existing ones adopted (a NOTICE lists both). status_column null: lock_status. ttl is how long a marker lives without a touch. enforce: only the
holder may update or delete the row (IL004); without it a live marker only cannot be taken over. notify: NOTIFY
interlock_row_lock with {table, event} (on), or {table, key, event, holder} (full): every listener sees them. sweep_index: an index over the deadlines of marked rows, so that a sweep
is as fast in a large table; without it a sweep reads the table, and rows are marked and released in their page (HOT).
Calling it again changes the settings. A status column with other values than 0 and 1, with a 1 that has no holder and no time,
with transitions or with a CHECK that lets other values in is refused, and so is adding one to a table whose holder column has
holders, or that has a column status with nothing but 0 and 1 when status_column is null: a hand-made lock would be ignored. Errors: 42501 not the owner, 42804 column type, 22023
ttl not positive, 55000 the status column means something else.';

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
'What lock_row answers: whether the caller holds the row now, and who holds it since when and until when.';

CREATE FUNCTION interlock.lock_row(
    rel regclass, key text, holder text, ttl interval = NULL, reason text = NULL) RETURNS interlock.lock_row_result
    LANGUAGE c AS 'MODULE_PATHNAME';
CREATE FUNCTION interlock.lock_row(
    rel regclass, key "any", holder text, ttl interval = NULL, reason text = NULL) RETURNS interlock.lock_row_result
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.lock_row(regclass, text, text, interval, text) IS
'Marks the row as edited by the holder, or returns the present holder: a refusal is no error. The same holder renews; an expired marker
is free. ttl: of this marker, instead of the table''s. Waits while a transaction is writing the row (lock_timeout counts).
Errors: P0002 no such row, 22023 holder empty or longer than 1024 bytes or ttl not positive, 55000 no markers,
40001 under REPEATABLE READ and above when the row changed after the snapshot.';
COMMENT ON FUNCTION interlock.lock_row(regclass, "any", text, interval, text) IS
'As lock_row(regclass, text, text, interval, text), for a key of another type.';

CREATE FUNCTION interlock.lock_rows(
    rel regclass, keys text, holder text = NULL, ttl interval = NULL, reason text = NULL,
    OUT locked boolean, OUT blocked jsonb, OUT expires_at timestamptz)
    LANGUAGE c AS 'MODULE_PATHNAME';
CREATE FUNCTION interlock.lock_rows(
    rel regclass, keys "any", holder text = NULL, ttl interval = NULL, reason text = NULL,
    OUT locked boolean, OUT blocked jsonb, OUT expires_at timestamptz)
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.lock_rows(regclass, text, text, interval, text) IS
'As lock_row, for several rows: all or none, in the order of their keys, so that two calls never deadlock. keys: an array of the
key''s type ({1,2}), or a jsonb array of objects, each with the columns of a unique key ([{"id": 1}]). expires_at is the earliest deadline. If other holders have
some of the rows, none is taken, and blocked lists those rows: [{key, holder, expires_at}]. Errors: as lock_row; 22004 no holder:
row locks without one are select_for_update.';
COMMENT ON FUNCTION interlock.lock_rows(regclass, "any", text, interval, text) IS
'As lock_rows(regclass, text, text, interval, text), for an array of any type, or a jsonb array.';

CREATE FUNCTION interlock.claim_rows(
    rel regclass, holder text, max_rows integer = 1, match jsonb = '{}', order_column name = NULL, ttl interval = NULL,
    OUT key jsonb, OUT current jsonb, OUT expires_at timestamptz) RETURNS SETOF record
    LANGUAGE c ROWS 10 AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.claim_rows(regclass, text, integer, jsonb, name, interval) IS
'Marks up to max_rows free rows for the holder, and returns their keys and what the caller may read of them: for workers that
take the next rows of a queue. Rows that are held, also by the same holder, or locked by another transaction are passed over; one past
its deadline is free. match: {column: value}, null for IS NULL. order_column: the least first, nulls last. The row is free again
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

CREATE FUNCTION interlock.touch_row(rel regclass, key text, holder text, ttl interval = NULL) RETURNS timestamptz
    LANGUAGE c AS 'MODULE_PATHNAME';
CREATE FUNCTION interlock.touch_row(rel regclass, key "any", holder text, ttl interval = NULL) RETURNS timestamptz
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.touch_row(regclass, text, text, interval) IS
'Moves the deadline to ttl from now (null: the table''s), never nearer, and returns it; null when the holder no longer had the
marker. Errors: 22023 ttl not positive.';
COMMENT ON FUNCTION interlock.touch_row(regclass, "any", text, interval) IS
'As touch_row(regclass, text, text, interval), for a key of another type.';

CREATE FUNCTION interlock.hand_over_row(
    rel regclass, key text, holder text, to_holder text, ttl interval = NULL) RETURNS timestamptz
    LANGUAGE c AS 'MODULE_PATHNAME';
CREATE FUNCTION interlock.hand_over_row(
    rel regclass, key "any", holder text, to_holder text, ttl interval = NULL) RETURNS timestamptz
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.hand_over_row(regclass, text, text, text, interval) IS
'Gives the marker to another holder, for ttl from now (null: the table''s), and returns the new deadline. The reason stays.
Errors: IL005 marker not held, P0002 no such row, 22023 a holder empty or longer than 1024 bytes or ttl not positive.';
COMMENT ON FUNCTION interlock.hand_over_row(regclass, "any", text, text, interval) IS
'As hand_over_row(regclass, text, text, text, interval), for a key of another type.';

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
    rel regclass, key text, holder text, changes jsonb, expected bigint = NULL) RETURNS bigint
    LANGUAGE c AS 'MODULE_PATHNAME';
CREATE FUNCTION interlock.save_row(
    rel regclass, key "any", holder text, changes jsonb, expected bigint = NULL) RETURNS bigint
    LANGUAGE c AS 'MODULE_PATHNAME';
CREATE FUNCTION interlock.save_row(
    rel regclass, key text, holder text, changes jsonb, expected timestamptz) RETURNS timestamptz
    LANGUAGE c AS 'MODULE_PATHNAME';
CREATE FUNCTION interlock.save_row(
    rel regclass, key "any", holder text, changes jsonb, expected timestamptz) RETURNS timestamptz
    LANGUAGE c AS 'MODULE_PATHNAME';
CREATE FUNCTION interlock.save_row(
    rel regclass, key text, holder text, changes jsonb, expected text) RETURNS text
    LANGUAGE c AS 'MODULE_PATHNAME';
CREATE FUNCTION interlock.save_row(
    rel regclass, key "any", holder text, changes jsonb, expected text) RETURNS text
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.save_row(regclass, text, text, jsonb, bigint) IS
'Writes the changes and releases the marker in one step, if the holder still has it and the version is still the expected one;
a null version is not compared. Returns the new version; null for a table without versions, or versioned by a timestamp.
Errors: IL005 marker not held, IL001 version conflict, P0002 no such row, 42804 a version of another type, and those of
versioned_update for the changes.';
COMMENT ON FUNCTION interlock.save_row(regclass, "any", text, jsonb, bigint) IS
'As save_row(regclass, text, text, jsonb, bigint), for a key of another type.';
COMMENT ON FUNCTION interlock.save_row(regclass, text, text, jsonb, timestamptz) IS
'As save_row(regclass, text, text, jsonb, bigint), for a table versioned by a timestamp.';
COMMENT ON FUNCTION interlock.save_row(regclass, "any", text, jsonb, timestamptz) IS
'As save_row(regclass, text, text, jsonb, bigint), for a key of another type and a table versioned by a timestamp.';
COMMENT ON FUNCTION interlock.save_row(regclass, text, text, jsonb, text) IS
'As save_row(regclass, text, text, jsonb, bigint), with the version as text: for parameters without a type, and for
timestamps that a client would round.';
COMMENT ON FUNCTION interlock.save_row(regclass, "any", text, jsonb, text) IS
'As save_row(regclass, text, text, jsonb, text), for a key of another type.';

CREATE TABLE interlock.row_lock_audit (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    forced_at timestamptz NOT NULL DEFAULT pg_catalog.clock_timestamp(),
    forced_by text NOT NULL,
    table_name text NOT NULL,
    key jsonb NOT NULL,
    holder text NOT NULL,
    would_expire_at timestamptz NOT NULL,
    reason text NOT NULL);
COMMENT ON TABLE interlock.row_lock_audit IS
'Every use of force_unlock_row: time, user, row, holder and reason.';
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

CREATE FUNCTION interlock.row_lock_of(
    rel regclass, key text,
    OUT locked boolean, OUT holder text, OUT locked_at timestamptz, OUT expires_at timestamptz, OUT reason text)
    LANGUAGE c AS 'MODULE_PATHNAME';
CREATE FUNCTION interlock.row_lock_of(
    rel regclass, key "any",
    OUT locked boolean, OUT holder text, OUT locked_at timestamptz, OUT expires_at timestamptz, OUT reason text)
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.row_lock_of(regclass, text) IS
'The holder of the row, since when, until when and why; locked is false and the rest null when it is free or expired.
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
'Every marked row that the current user may read, in all tables but those of other owners (superusers apart) whose row security
applies to it; live is false for a marker past its deadline.';

CREATE FUNCTION interlock.sweep(max_rows integer = NULL, OUT rel regclass, OUT released bigint) RETURNS SETOF record
    LANGUAGE c AS 'MODULE_PATHNAME';
REVOKE EXECUTE ON FUNCTION interlock.sweep(integer) FROM PUBLIC;
COMMENT ON FUNCTION interlock.sweep(integer) IS
'Releases expired markers now, of all tables, each as its owner, and returns how many; at most max_rows. What cannot be
released is a warning and stays. Locked rows are left for the next time. Call it outside a transaction block, or after SET CONSTRAINTS ALL
IMMEDIATE: tables with deferred triggers are not released otherwise. Only superusers may call it until EXECUTE is granted.';

-- Leases

CREATE TABLE interlock_internal.lease_store (content bytea NOT NULL) WITH (autovacuum_enabled = off);
ALTER TABLE interlock_internal.lease_store ALTER COLUMN content SET STORAGE PLAIN;
-- It has the secret of tokens, which pg_read_all_data must not see either.
ALTER TABLE interlock_internal.lease_store ENABLE ROW LEVEL SECURITY;
COMMENT ON TABLE interlock_internal.lease_store IS
'What the server must know of leases after a crash, and the secret of their tokens. The server writes it in place, outside of
transactions. Do not change it by hand, and do not grant it: row security without a policy hides it from all but superusers and
roles with BYPASSRLS.';

CREATE FUNCTION interlock_internal.lease_store_trigger() RETURNS trigger LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock_internal.lease_store_trigger() IS
'Refuses changes of lease_store (55000). Skips rows that logical replication applies.';
CREATE TRIGGER zzz_interlock_store BEFORE INSERT OR UPDATE OR DELETE ON interlock_internal.lease_store
    FOR EACH ROW EXECUTE FUNCTION interlock_internal.lease_store_trigger();
CREATE TRIGGER zzz_interlock_store_truncate BEFORE TRUNCATE ON interlock_internal.lease_store
    FOR EACH STATEMENT EXECUTE FUNCTION interlock_internal.lease_store_trigger();
ALTER TABLE interlock_internal.lease_store ENABLE ALWAYS TRIGGER zzz_interlock_store;
ALTER TABLE interlock_internal.lease_store ENABLE ALWAYS TRIGGER zzz_interlock_store_truncate;
COMMENT ON TRIGGER zzz_interlock_store ON interlock_internal.lease_store IS 'See lease_store_trigger.';
COMMENT ON TRIGGER zzz_interlock_store_truncate ON interlock_internal.lease_store IS 'See lease_store_trigger.';

CREATE FUNCTION interlock_internal.note_lease_store() RETURNS void LANGUAGE c AS 'MODULE_PATHNAME';
REVOKE EXECUTE ON FUNCTION interlock_internal.note_lease_store() FROM PUBLIC;
COMMENT ON FUNCTION interlock_internal.note_lease_store() IS
'Announces to the running server that lease_store is a new table, so that it writes its state there. Called by CREATE EXTENSION.';
SELECT interlock_internal.note_lease_store();

CREATE TABLE interlock.lease_audit (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    broken_at timestamptz NOT NULL DEFAULT pg_catalog.clock_timestamp(),
    broken_by text NOT NULL,
    key text NOT NULL,
    holder text NOT NULL,
    token bigint NOT NULL,
    would_expire_at timestamptz NOT NULL,
    reason text NOT NULL,
    terminated integer[] NOT NULL);
COMMENT ON TABLE interlock.lease_audit IS
'Every use of break_lease and break_leases: time, user, lease, holder, reason, and the processes that were terminated because
their transactions pinned it.';
COMMENT ON SEQUENCE interlock.lease_audit_id_seq IS 'Numbers the rows of lease_audit.';
SELECT pg_catalog.pg_extension_config_dump('interlock.lease_audit', '');
SELECT pg_catalog.pg_extension_config_dump('interlock.lease_audit_id_seq', '');

-- Numbers are seconds where a lease is for a time. An overload for numbers themselves would make literals without a
-- cast ambiguous; this type is of the category of interval, which is preferred there.
CREATE TYPE interlock.seconds;
CREATE FUNCTION interlock_internal.seconds_in(cstring) RETURNS interlock.seconds
    LANGUAGE c STABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME';
CREATE FUNCTION interlock_internal.seconds_out(interlock.seconds) RETURNS cstring
    LANGUAGE internal STABLE STRICT PARALLEL SAFE AS 'interval_out';
CREATE FUNCTION interlock_internal.seconds_recv(internal, oid, integer) RETURNS interlock.seconds
    LANGUAGE internal IMMUTABLE STRICT PARALLEL SAFE AS 'interval_recv';
CREATE FUNCTION interlock_internal.seconds_send(interlock.seconds) RETURNS bytea
    LANGUAGE internal IMMUTABLE STRICT PARALLEL SAFE AS 'interval_send';
CREATE TYPE interlock.seconds (
    INPUT = interlock_internal.seconds_in, OUTPUT = interlock_internal.seconds_out,
    RECEIVE = interlock_internal.seconds_recv, SEND = interlock_internal.seconds_send,
    LIKE = interval, CATEGORY = 'T', PREFERRED = false);
COMMENT ON TYPE interlock.seconds IS
'A duration given as a number of seconds, or as an interval. For arguments of functions; columns are of type interval.';
COMMENT ON FUNCTION interlock_internal.seconds_in(cstring) IS 'Input of type seconds.';
COMMENT ON FUNCTION interlock_internal.seconds_out(interlock.seconds) IS 'Output of type seconds.';
COMMENT ON FUNCTION interlock_internal.seconds_recv(internal, oid, integer) IS 'Binary input of type seconds.';
COMMENT ON FUNCTION interlock_internal.seconds_send(interlock.seconds) IS 'Binary output of type seconds.';

CREATE FUNCTION interlock_internal.to_seconds(smallint) RETURNS interlock.seconds
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'number_to_seconds';
COMMENT ON FUNCTION interlock_internal.to_seconds(smallint) IS 'A number of seconds. Errors: 22008 out of range.';
CREATE CAST (smallint AS interlock.seconds) WITH FUNCTION interlock_internal.to_seconds(smallint) AS IMPLICIT;
COMMENT ON CAST (smallint AS interlock.seconds) IS 'A number of seconds.';
CREATE FUNCTION interlock_internal.to_seconds(integer) RETURNS interlock.seconds
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'number_to_seconds';
COMMENT ON FUNCTION interlock_internal.to_seconds(integer) IS 'A number of seconds. Errors: 22008 out of range.';
CREATE CAST (integer AS interlock.seconds) WITH FUNCTION interlock_internal.to_seconds(integer) AS IMPLICIT;
COMMENT ON CAST (integer AS interlock.seconds) IS 'A number of seconds.';
CREATE FUNCTION interlock_internal.to_seconds(bigint) RETURNS interlock.seconds
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'number_to_seconds';
COMMENT ON FUNCTION interlock_internal.to_seconds(bigint) IS 'A number of seconds. Errors: 22008 out of range.';
CREATE CAST (bigint AS interlock.seconds) WITH FUNCTION interlock_internal.to_seconds(bigint) AS IMPLICIT;
COMMENT ON CAST (bigint AS interlock.seconds) IS 'A number of seconds.';
CREATE FUNCTION interlock_internal.to_seconds(numeric) RETURNS interlock.seconds
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'number_to_seconds';
COMMENT ON FUNCTION interlock_internal.to_seconds(numeric) IS 'A number of seconds. Errors: 22008 out of range.';
CREATE CAST (numeric AS interlock.seconds) WITH FUNCTION interlock_internal.to_seconds(numeric) AS IMPLICIT;
COMMENT ON CAST (numeric AS interlock.seconds) IS 'A number of seconds.';
CREATE FUNCTION interlock_internal.to_seconds(double precision) RETURNS interlock.seconds
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'number_to_seconds';
COMMENT ON FUNCTION interlock_internal.to_seconds(double precision) IS 'A number of seconds. Errors: 22008 out of range.';
CREATE CAST (double precision AS interlock.seconds) WITH FUNCTION interlock_internal.to_seconds(double precision) AS IMPLICIT;
COMMENT ON CAST (double precision AS interlock.seconds) IS 'A number of seconds.';
-- For calls that give one time as a number and another as an interval.
CREATE CAST (interval AS interlock.seconds) WITHOUT FUNCTION AS IMPLICIT;
COMMENT ON CAST (interval AS interlock.seconds) IS 'The interval itself.';

CREATE FUNCTION interlock.acquire_lease(
    key text, ttl interval = '30 s', wait interval = '0', holder text = NULL, mode text = 'exclusive', bind text = 'ttl',
    OUT outcome text, OUT token bigint, OUT expires_at timestamptz, OUT holder text)
    LANGUAGE c AS 'MODULE_PATHNAME';
CREATE FUNCTION interlock.acquire_lease(
    key text, ttl interlock.seconds, wait interlock.seconds = '0', holder text = NULL, mode text = 'exclusive', bind text = 'ttl',
    OUT outcome text, OUT token bigint, OUT expires_at timestamptz, OUT holder text)
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.acquire_lease(text, interval, interval, text, text, text) IS
'Acquires a lease on the key, a path if it has slashes, for ttl. outcome: acquired (with the token that proves it), held (with
holder and expires_at of the lease in the way), recovering (after a crash, until expires_at). wait: how long to wait at most
(null: as lock_timeout says), first come, first served. holder is a label. mode: exclusive, shared. bind: ttl, or session: no time to live, it ends with the session.
Takes effect at once, whether or not the transaction commits. Errors: 22004, 22023, 25006 on a standby, 53400 too many, 55000 not preloaded.';
COMMENT ON FUNCTION interlock.acquire_lease(text, interlock.seconds, interlock.seconds, text, text, text) IS
'As acquire_lease(text, interval, interval, text, text, text), for times as numbers of seconds.';

CREATE FUNCTION interlock.acquire_permit(
    key text, capacity integer, ttl interval = '30 s', wait interval = '0', holder text = NULL,
    OUT outcome text, OUT token bigint, OUT expires_at timestamptz, OUT holder text)
    LANGUAGE c AS 'MODULE_PATHNAME';
CREATE FUNCTION interlock.acquire_permit(
    key text, capacity integer, ttl interlock.seconds, wait interlock.seconds = '0', holder text = NULL,
    OUT outcome text, OUT token bigint, OUT expires_at timestamptz, OUT holder text)
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.acquire_permit(text, integer, interval, interval, text) IS
'As acquire_lease, for one of at most capacity permits on the key. It is renewed and released as a lease. Errors: as acquire_lease; 22023
when permits of the key are held with another capacity.';
COMMENT ON FUNCTION interlock.acquire_permit(text, integer, interlock.seconds, interlock.seconds, text) IS
'As acquire_permit(text, integer, interval, interval, text), for times as numbers of seconds.';

CREATE FUNCTION interlock.acquire_leases(
    keys text[], ttl interval = '30 s', wait interval = '0', holder text = NULL,
    OUT outcome text, OUT tokens bigint[], OUT expires_at timestamptz, OUT blocked_by text, OUT holder text)
    LANGUAGE c AS 'MODULE_PATHNAME';
CREATE FUNCTION interlock.acquire_leases(
    keys text[], ttl interlock.seconds, wait interlock.seconds = '0', holder text = NULL,
    OUT outcome text, OUT tokens bigint[], OUT expires_at timestamptz, OUT blocked_by text, OUT holder text)
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.acquire_leases(text[], interval, interval, text) IS
'Acquires exclusive leases on all the keys or on none; tokens are in the order of keys. If held: blocked_by is the key that was
not available, holder its holder. Calls that wait acquire their keys in one order, so that two such calls never deadlock. Errors: as acquire_lease; 22023 when
one key is below another.';
COMMENT ON FUNCTION interlock.acquire_leases(text[], interlock.seconds, interlock.seconds, text) IS
'As acquire_leases(text[], interval, interval, text), for times as numbers of seconds.';

CREATE FUNCTION interlock.renew_lease(key text, token bigint, ttl interval = NULL) RETURNS timestamptz
    LANGUAGE c AS 'MODULE_PATHNAME';
CREATE FUNCTION interlock.renew_lease(key text, token bigint, ttl interlock.seconds) RETURNS timestamptz
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.renew_lease(text, bigint, interval) IS
'Extends the lease to ttl from now (null: its ttl), and returns its expiry; null when it is lost. It never shortens a lease. One that has
expired and that nobody acquired since is renewed. After a crash it reclaims the lease (null: for 30 s). For members of the role that acquired the lease. Errors: 22004, 22023, 25006, 55000.';
COMMENT ON FUNCTION interlock.renew_lease(text, bigint, interlock.seconds) IS
'As renew_lease(text, bigint, interval), for times as numbers of seconds.';

CREATE FUNCTION interlock.release_lease(key text, token bigint) RETURNS boolean
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.release_lease(text, bigint) IS
'Releases the lease, and returns whether it was held. If open transactions have asserted it, it is free for others when they have ended.
For members of the role that acquired the lease. Errors: 22004, 22023, 25006, 55000.';

CREATE FUNCTION interlock.assert_lease(key text, token bigint) RETURNS void
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.assert_lease(text, bigint) IS
'Raises IL006 unless the lease is held with the token by a role of which the caller is a member. Until the transaction ends,
nobody else is granted it: a former holder cannot commit after a later grant (fencing). A transaction that has asserted a lease cannot be prepared. Errors: IL006, 22004, 22023, 25006,
53400, 55000.';

CREATE FUNCTION interlock.break_lease(key text, reason text, terminate boolean = false) RETURNS text
    LANGUAGE c AS 'MODULE_PATHNAME';
REVOKE EXECUTE ON FUNCTION interlock.break_lease(text, text, boolean) FROM PUBLIC;
COMMENT ON FUNCTION interlock.break_lease(text, text, boolean) IS
'Takes the lease on exactly this key from its holder, at once, and returns the holder, several separated by commas; null when nobody
held it. While open transactions pin the lease it raises 55006 and names their processes; terminate ends these sessions first, as
pg_terminate_backend does and with the rights that it needs. Audited in lease_audit, and in the server log, which stays when the transaction is
rolled back. Only superusers may call it until EXECUTE is granted. Errors: 22004, 22023, 25006, 42501, 55000, 55006.';

CREATE FUNCTION interlock.break_leases(pattern text, reason text, role name = NULL) RETURNS bigint
    LANGUAGE c AS 'MODULE_PATHNAME';
REVOKE EXECUTE ON FUNCTION interlock.break_leases(text, text, name) FROM PUBLIC;
COMMENT ON FUNCTION interlock.break_leases(text, text, name) IS
'Breaks all leases of this database whose keys match the LIKE pattern, of the role (null: of all), and returns how many. Each is audited as by
break_lease. Those that open transactions have asserted are skipped, with a warning that counts them. Only superusers may call it until EXECUTE is
granted. Errors: 22004, 22023, 22025 the pattern, 25006, 42704 no such role, 55000.';

CREATE FUNCTION interlock_internal.list_leases(
    OUT key text, OUT mode text, OUT holder text, OUT token bigint, OUT since timestamptz, OUT expires_at timestamptz,
    OUT ttl interval, OUT pid integer, OUT pins integer, OUT durable boolean, OUT pinned_by integer[], OUT pinned_since timestamptz)
    RETURNS SETOF record
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock_internal.list_leases() IS 'The rows of the view leases.';

CREATE VIEW interlock.leases AS SELECT * FROM interlock_internal.list_leases();
GRANT SELECT ON interlock.leases TO PUBLIC;
COMMENT ON VIEW interlock.leases IS
'The leases of this database. token is shown to members of the role that acquired it; pid is the session it is bound to;
pins counts open transactions that have asserted it, pinned_by are their processes and pinned_since the start of the oldest; durable is
true for a lease with a record of its own.';

CREATE FUNCTION interlock_internal.list_lease_waiters(
    OUT key text, OUT mode text, OUT holder text, OUT pid integer, OUT waiting_since timestamptz, OUT place integer)
    RETURNS SETOF record
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock_internal.list_lease_waiters() IS 'The rows of the view lease_waiters.';

CREATE VIEW interlock.lease_waiters AS SELECT * FROM interlock_internal.list_lease_waiters();
GRANT SELECT ON interlock.lease_waiters TO PUBLIC;
COMMENT ON VIEW interlock.lease_waiters IS
'Sessions that wait for leases of this database. Keys with the same first level share one queue; place is the place in it.';

CREATE FUNCTION interlock_internal.lease_trigger() RETURNS trigger
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock_internal.lease_trigger() IS
'Refuses a write in a transaction that has not asserted the lease for the row (IL006). Created by require_lease; arguments: template of
the key, columns whose change needs the lease (none: all).';

CREATE FUNCTION interlock.require_lease(rel regclass, key text = NULL, columns name[] = NULL) RETURNS void
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.require_lease(regclass, text, name[]) IS
'Requires of each transaction that inserts, updates or deletes a row that it has asserted an exclusive lease on its key or above it,
else IL006. For the owner of the table. key is a template: product:{id}/thumb, with {{ and }} for braces; null: the table''s name and
its key, doc:{id}. Without braces it is one lease for all rows, with a WARNING if a word in it is a column. columns: updates need the lease only if they change one of them, or the key; inserts and deletes always do. A table
may require several leases; the same key again replaces the columns. Errors: 42501 not the owner, 42703 no such column, 42804 type, 428C9
virtual column, 22004, 22023 template, 42809 not a table, 55000 no key. Errors of a write: IL006; 22004 null in a
column of the key; 55000 the columns no longer match.';

CREATE FUNCTION interlock.unrequire_lease(rel regclass, key text = NULL) RETURNS void
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.unrequire_lease(regclass, text) IS
'Allows writes without the lease of that template again; null: the only one that the table requires. For the owner of the table.
Errors: 42501 not the owner, 22023 it requires several, 55000 it does not require it.';

CREATE FUNCTION interlock.key_path(VARIADIC parts text[]) RETURNS text
    LANGUAGE c IMMUTABLE PARALLEL SAFE AS 'MODULE_PATHNAME';
CREATE FUNCTION interlock.key_path(VARIADIC parts "any") RETURNS text
    LANGUAGE c STABLE PARALLEL SAFE AS 'MODULE_PATHNAME', 'key_path_any';
COMMENT ON FUNCTION interlock.key_path(text[]) IS
'A key that is a path, for leases and key locks: joins the parts with /. A part is one level, whatever is in it: its / becomes %2F,
its % becomes %25. Errors: 22004, 22023 an empty part.';
COMMENT ON FUNCTION interlock.key_path("any") IS
'As key_path(text[]), for parts of other types: as a cast to text prints them whatever the session''s settings are, dates and times as
in JSON, those with a zone in UTC.';

-- Key locks

CREATE FUNCTION interlock.lock_key(
    key text, mode text = 'exclusive', wait interval = NULL, scope text = 'transaction') RETURNS void
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.lock_key(text, text, interval, text) IS
'Locks a name. Modes: shared, update, exclusive, intent_shared, intent_exclusive. Scopes: transaction (until the transaction or
savepoint ends), session (until unlock_key). wait: null as lock_timeout says, zero not at all. A key with / is a path: its
ancestors get the intent mode. Errors: 55P03 not available in time, with the other holders and waiters in DETAIL; 40P01 deadlock; 53400 too many keys.';

CREATE FUNCTION interlock.lock_keys(
    keys text[], mode text = 'exclusive', wait interval = NULL, scope text = 'transaction') RETURNS void
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.lock_keys(text[], text, interval, text) IS
'As lock_key, for several names: all or none, in one order whatever order they are given in, so that two calls never deadlock;
wait is for all of them together.';

CREATE FUNCTION interlock.try_lock_key(
    key text, mode text = 'exclusive', wait interval = '0', scope text = 'transaction') RETURNS boolean
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.try_lock_key(text, text, interval, text) IS
'As lock_key, but returns false when the name is not available in time.';

CREATE FUNCTION interlock.try_lock_keys(
    keys text[], mode text = 'exclusive', wait interval = '0', scope text = 'transaction') RETURNS boolean
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.try_lock_keys(text[], text, interval, text) IS
'As lock_keys, but returns false and holds none of them when they are not all available in time.';

CREATE FUNCTION interlock.unlock_key(key text, mode text = 'exclusive') RETURNS boolean
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.unlock_key(text, text) IS
'Releases a session lock once; false when the session did not hold it in that mode. A lock that was acquired several times needs as
many releases. Transaction locks end with their transaction.';

CREATE FUNCTION interlock.unlock_keys(keys text[], mode text = 'exclusive') RETURNS boolean
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.unlock_keys(text[], text) IS
'As unlock_key, for several names, each once; false when the session did not hold all of them.';

CREATE FUNCTION interlock_internal.list_key_locks(
    OUT key text, OUT kind text, OUT mode text, OUT pid integer, OUT waiting boolean, OUT waiting_since timestamptz,
    OUT hash bigint) RETURNS SETOF record
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock_internal.list_key_locks() IS 'The rows of the view key_locks.';

CREATE VIEW interlock.key_locks AS SELECT * FROM interlock_internal.list_key_locks();
GRANT SELECT ON interlock.key_locks TO PUBLIC;
COMMENT ON VIEW interlock.key_locks IS
'Holders and waiters of the key locks and application locks of this database. key is null where the name is not known: without
preload, and for prepared transactions, whose pid is null. Keys of idempotency are shown to the role of the session and to members of
pg_read_all_stats.';

-- Application locks

CREATE FUNCTION interlock.getapplock(
    resource text, lock_mode text, lock_owner text = 'Transaction', lock_timeout integer = -1) RETURNS integer
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.getapplock(text, text, text, integer) IS
'SQL Server''s sp_getapplock. lock_mode: Shared, Update, IntentShared, IntentExclusive, Exclusive. lock_owner: Transaction, Session.
lock_timeout: milliseconds, -1 for ever. Returns 0 granted, 1 granted after waiting, -1 timeout, -2 canceled, -3 deadlock
victim, -999 bad call; the transaction goes on after each.';

CREATE FUNCTION interlock.releaseapplock(resource text, lock_owner text = 'Transaction') RETURNS integer
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.releaseapplock(text, text) IS
'SQL Server''s sp_releaseapplock: 0 released, -999 not held by that owner. A lock that was acquired several times is free after
as many releases, with all its modes.';

CREATE FUNCTION interlock.applock_mode(resource text, lock_owner text = 'Transaction') RETURNS text
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.applock_mode(text, text) IS
'SQL Server''s APPLOCK_MODE: the mode that this owner of the session holds: NoLock, IntentShared, IntentExclusive, Shared, Update, Exclusive,
SharedIntentExclusive or UpdateIntentExclusive. Errors: 22004, 22023.';

CREATE FUNCTION interlock.applock_test(resource text, lock_mode text, lock_owner text = 'Transaction') RETURNS integer
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.applock_test(text, text, text) IS
'SQL Server''s APPLOCK_TEST: 1 when getapplock would be granted at once, else 0. It locks nothing. Errors: 22004, 22023.';

-- Row locks

CREATE FUNCTION interlock.select_for_update(
    rel regclass, keys text, strength text = 'update', wait interval = NULL, skip_locked boolean = false, OUT key jsonb)
    RETURNS SETOF jsonb
    LANGUAGE c AS 'MODULE_PATHNAME';
CREATE FUNCTION interlock.select_for_update(
    rel regclass, keys "any", strength text = 'update', wait interval = NULL, skip_locked boolean = false, OUT key jsonb)
    RETURNS SETOF jsonb
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.select_for_update(regclass, text, text, interval, boolean) IS
'SELECT ... FOR UPDATE in the order of the keys, whatever order they are given in, so that two calls never deadlock; returns the
keys of the rows that are there. keys: an array of the primary key''s type ({1,2}), or a JSON array of values and of objects, as versioned_update takes them.
strength: update, no_key_update, share, key_share. wait: for all rows together; null as lock_timeout says, zero not at all.
skip_locked: pass over rows that are locked. Needs the privileges of the SELECT. Errors: 55P03 not available in time, 55000 no key,
40001 under REPEATABLE READ and above when a row changed after the snapshot.';
COMMENT ON FUNCTION interlock.select_for_update(regclass, "any", text, interval, boolean) IS
'As select_for_update(regclass, text, text, interval, boolean), for an array of any type, or a jsonb array.';

-- Idempotency

-- Names are compared by their bytes: no upgrade of the system's locales puts a key where it is not found.
CREATE TABLE interlock.idempotency_scope (
    scope text COLLATE pg_catalog."C" PRIMARY KEY,
    model text NOT NULL,
    ttl interval NOT NULL,
    stale_after interval NOT NULL,
    replay_failures boolean NOT NULL,
    max_response_bytes integer NOT NULL,
    CONSTRAINT idempotency_scope_model CHECK (model OPERATOR(pg_catalog.=) ANY ('{api,job}')),
    CONSTRAINT idempotency_scope_ttl CHECK (ttl OPERATOR(pg_catalog.>) '0' AND ttl OPERATOR(pg_catalog.<=) '3653 days'),
    CONSTRAINT idempotency_scope_stale_after
        CHECK (stale_after OPERATOR(pg_catalog.>) '0' AND stale_after OPERATOR(pg_catalog.<=) '3653 days'),
    CONSTRAINT idempotency_scope_max_response_bytes CHECK (max_response_bytes OPERATOR(pg_catalog.>=) 0));
COMMENT ON TABLE interlock.idempotency_scope IS 'Settings of idempotency scopes; written by define_idempotency_scope.';
GRANT SELECT ON interlock.idempotency_scope TO PUBLIC;
SELECT pg_catalog.pg_extension_config_dump('interlock.idempotency_scope', '');

CREATE FUNCTION interlock_internal.idempotency_scope_trigger() RETURNS trigger LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock_internal.idempotency_scope_trigger() IS
'Announces changes of idempotency_scope and idempotency_grant to all sessions, which cache these tables. Without it each
claim reads the table.';
CREATE TRIGGER zzz_interlock_scope BEFORE INSERT OR UPDATE OR DELETE ON interlock.idempotency_scope
    FOR EACH ROW EXECUTE FUNCTION interlock_internal.idempotency_scope_trigger();
ALTER TABLE interlock.idempotency_scope ENABLE ALWAYS TRIGGER zzz_interlock_scope;
COMMENT ON TRIGGER zzz_interlock_scope ON interlock.idempotency_scope IS 'See idempotency_scope_trigger.';

CREATE TABLE interlock.idempotency_grant (
    scope text COLLATE pg_catalog."C" NOT NULL,
    role_name text COLLATE pg_catalog."C" NOT NULL,
    granted_by text NOT NULL,
    granted_at timestamptz NOT NULL DEFAULT pg_catalog.clock_timestamp(),
    PRIMARY KEY (scope, role_name));
COMMENT ON TABLE interlock.idempotency_grant IS
'Which roles may use the keys of which scopes, by name, so that it survives dump and restore; scope "*" is all scopes, role
"public" everybody. grant_idempotency_scope and revoke_idempotency_scope write it. Rows of a role that is renamed or dropped
stay: call revoke_idempotency_scope.';
SELECT pg_catalog.pg_extension_config_dump('interlock.idempotency_grant', '');
CREATE TRIGGER zzz_interlock_scope BEFORE INSERT OR UPDATE OR DELETE ON interlock.idempotency_grant
    FOR EACH ROW EXECUTE FUNCTION interlock_internal.idempotency_scope_trigger();
ALTER TABLE interlock.idempotency_grant ENABLE ALWAYS TRIGGER zzz_interlock_scope;
COMMENT ON TRIGGER zzz_interlock_scope ON interlock.idempotency_grant IS 'See idempotency_scope_trigger.';

CREATE SEQUENCE interlock.idempotency_token;
COMMENT ON SEQUENCE interlock.idempotency_token IS 'Tokens of claims: each is greater than all before.';
SELECT pg_catalog.pg_extension_config_dump('interlock.idempotency_token', '');

CREATE TABLE interlock.idempotency (
    scope text COLLATE pg_catalog."C" NOT NULL,
    key text COLLATE pg_catalog."C" NOT NULL,
    status text NOT NULL DEFAULT 'pending',
    request_hash bytea,
    token bigint NOT NULL DEFAULT pg_catalog.nextval('interlock.idempotency_token'),
    attempt integer NOT NULL DEFAULT 1,
    claimed_at timestamptz NOT NULL,
    deadline timestamptz NOT NULL,
    finished_at timestamptz,
    expires_at timestamptz NOT NULL,
    retryable boolean NOT NULL DEFAULT false,
    response jsonb,
    response_omitted boolean NOT NULL DEFAULT false,
    result_id text,
    checkpoint text,
    state jsonb,
    PRIMARY KEY (scope, key),
    CHECK (status OPERATOR(pg_catalog.=) ANY ('{pending,completed,failed}')))
    WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02);
CREATE INDEX idempotency_expires_idx ON interlock.idempotency (expires_at);
COMMENT ON TABLE interlock.idempotency IS
'The keys: pending until the deadline, then completed or failed until they expire. response_omitted: it was larger than the
scope allows. Callers of the functions need a grant of the scope (grant_idempotency_scope) and no privilege on this table. The functions
run with the owner''s privileges and bypass row security.';
COMMENT ON INDEX interlock.idempotency_expires_idx IS 'Finds expired keys for the sweeper.';
SELECT pg_catalog.pg_extension_config_dump('interlock.idempotency', '');

CREATE FUNCTION interlock.define_idempotency_scope(
    scope text, model text = 'api', ttl interval = '24 h', stale_after interval = '1 min',
    replay_failures boolean = false, max_response_bytes integer = 65536) RETURNS void
    LANGUAGE c AS 'MODULE_PATHNAME';
REVOKE EXECUTE ON FUNCTION interlock.define_idempotency_scope(text, text, interval, interval, boolean, integer) FROM PUBLIC;
COMMENT ON FUNCTION interlock.define_idempotency_scope(text, text, interval, interval, boolean, integer) IS
'Defines how long keys of a scope live: ttl after they ended, and stale_after without a sign of life until another claim may take over.
model: api (the response is replayed) or job (checkpoints, which a takeover gets). replay_failures: retryable failures, too.
A larger response is not kept; its key is never run again all the same. A scope that is not defined has these defaults.
Only superusers may call it until EXECUTE is granted. Errors: 22004, 22023.';

CREATE FUNCTION interlock.grant_idempotency_scope(scope text, role name) RETURNS void
    LANGUAGE c AS 'MODULE_PATHNAME';
REVOKE EXECUTE ON FUNCTION interlock.grant_idempotency_scope(text, name) FROM PUBLIC;
COMMENT ON FUNCTION interlock.grant_idempotency_scope(text, name) IS
'Lets members of a role (''public'': everybody) use the keys of a scope (''*'': all scopes), which they share. Only superusers may
call it until EXECUTE is granted. Errors: 42704 no such role, 22004, 22023.';

CREATE FUNCTION interlock.revoke_idempotency_scope(scope text, role name) RETURNS void
    LANGUAGE c AS 'MODULE_PATHNAME';
REVOKE EXECUTE ON FUNCTION interlock.revoke_idempotency_scope(text, name) FROM PUBLIC;
COMMENT ON FUNCTION interlock.revoke_idempotency_scope(text, name) IS
'Revokes what grant_idempotency_scope granted, from the commit on, also for calls that are waiting then. Only superusers may
call it until EXECUTE is granted. Errors: 42704 it was not granted, 22004, 22023.';

CREATE FUNCTION interlock.idempotency_claim(
    scope text, key text, request jsonb = NULL, wait interval = '0',
    OUT outcome text, OUT token bigint, OUT attempt integer, OUT response jsonb, OUT result_id text,
    OUT checkpoint text, OUT state jsonb)
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.idempotency_claim(text, text, jsonb, interval) IS
'Claims a key, or returns why not: acquired (with the token), replay (completed, with its response), failed, in_progress (claimed
by another; wait: how long to wait for its end, null: as lock_timeout says), mismatch (the key was used with another request; equal
JSON is equal). Takes over a claim without a sign of life for stale_after. This and the functions below need a grant of the scope.
Errors: 42501 the scope is not granted to a role of the current user; 40001 under REPEATABLE READ and above when the key changed after the snapshot; 22004, 22023.';

CREATE FUNCTION interlock.idempotency_complete(
    scope text, key text, token bigint, response jsonb = NULL, result_id text = NULL) RETURNS void
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.idempotency_complete(text, text, bigint, jsonb, text) IS
'Marks the claim as completed. A second call with the same token and response does nothing. Errors: IL008 the claim was taken over or has ended.';

CREATE FUNCTION interlock.idempotency_fail(
    scope text, key text, token bigint, error jsonb = NULL, retryable boolean = true) RETURNS void
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.idempotency_fail(text, text, bigint, jsonb, boolean) IS
'Marks the claim as failed. If retryable, the next claim tries again; else it gets outcome failed with the error. Errors: IL008.';

CREATE FUNCTION interlock.idempotency_checkpoint(
    scope text, key text, token bigint, name text, state jsonb = NULL) RETURNS void
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.idempotency_checkpoint(text, text, bigint, text, jsonb) IS
'Records the progress of a job for a takeover, and extends its claim. Errors: IL008, 55000 the scope is not of model job.';

CREATE FUNCTION interlock.idempotency_extend(scope text, key text, token bigint) RETURNS timestamptz
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.idempotency_extend(text, text, bigint) IS
'Extends the claim to stale_after from now, and returns the new deadline; null when the claim is lost: taken over, or ended.';

CREATE FUNCTION interlock.idempotency_assert(scope text, key text, token bigint) RETURNS void
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.idempotency_assert(text, text, bigint) IS
'Raises IL008 unless the claim is held. Until the transaction ends nobody takes it over: a former owner cannot commit after a
takeover.';

CREATE FUNCTION interlock.run_once(
    scope text, key text, command regprocedure, request jsonb = NULL, OUT outcome text, OUT response jsonb)
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.run_once(text, text, regprocedure, jsonb) IS
'Claims the key, runs command(request jsonb), which returns jsonb or void, and completes the key with what it returns, all in
the caller''s transaction: completed; else replay, failed, in_progress or mismatch as idempotency_claim. The command is named
with its argument types: ''pay(jsonb)''.';

CREATE FUNCTION interlock.idempotency_key(VARIADIC parts text[]) RETURNS text
    LANGUAGE c IMMUTABLE PARALLEL SAFE AS 'MODULE_PATHNAME';
CREATE FUNCTION interlock.idempotency_key(VARIADIC parts "any") RETURNS text
    LANGUAGE c STABLE PARALLEL SAFE AS 'MODULE_PATHNAME', 'idempotency_key_any';
COMMENT ON FUNCTION interlock.idempotency_key(text[]) IS
'Joins the parts with : and escapes what is in them, so that different parts never make one key. Errors: 22004, 22023.';
COMMENT ON FUNCTION interlock.idempotency_key("any") IS
'As idempotency_key(text[]), for parts of other types: as a cast to text prints them whatever the session''s settings are, dates and
times as in JSON, those with a zone in UTC.';

CREATE FUNCTION interlock.idempotency_sweep(max_rows integer = 1000) RETURNS bigint
    LANGUAGE c AS 'MODULE_PATHNAME';
REVOKE EXECUTE ON FUNCTION interlock.idempotency_sweep(integer) FROM PUBLIC;
COMMENT ON FUNCTION interlock.idempotency_sweep(integer) IS
'Deletes one batch of expired keys, oldest first, and returns how many; the sweeper does so by itself. Only superusers may call it
until EXECUTE is granted.';

-- Writers

CREATE TABLE interlock.writer_grant (
    writer text COLLATE "C" NOT NULL,
    role_name text COLLATE "C" NOT NULL,
    may_force boolean NOT NULL,
    is_default boolean NOT NULL DEFAULT false,
    granted_by text NOT NULL,
    granted_at timestamptz NOT NULL DEFAULT pg_catalog.clock_timestamp(),
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
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
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
    given jsonb);
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
           (SELECT c.oid::pg_catalog.regclass
              FROM pg_catalog.pg_class c
              JOIN pg_catalog.pg_namespace n ON n.oid OPERATOR(pg_catalog.=) c.relnamespace
             WHERE n.nspname OPERATOR(pg_catalog.=) (pg_catalog.parse_ident(w.table_name))[1]::pg_catalog.name
               AND c.relname OPERATOR(pg_catalog.=) (pg_catalog.parse_ident(w.table_name))[2]::pg_catalog.name) AS rel
      FROM (SELECT * FROM interlock.write_log UNION ALL SELECT * FROM interlock_internal.list_unwritten_lines()) w
      LEFT JOIN pg_catalog.pg_roles r ON r.rolname OPERATOR(pg_catalog.=) w.table_owner::pg_catalog.name
     WHERE pg_catalog.pg_has_role(COALESCE(r.oid, 10::pg_catalog.oid), 'USAGE');
COMMENT ON VIEW interlock_internal.all_writes IS
'The lines of write_log that the reader may see: those about tables that belonged to one of the reader''s roles; superusers see all.
rel is the table that has the name now.';

CREATE VIEW interlock.operation_log WITH (security_barrier) AS
    SELECT id, written_at, rel, table_name, operation, key, columns, row_count, writer, written_by, reason
      FROM interlock_internal.all_writes
     WHERE decision OPERATOR(pg_catalog.=) ANY (ARRAY['suppressed', 'blind']);
GRANT SELECT ON interlock.operation_log TO PUBLIC;
COMMENT ON VIEW interlock.operation_log IS
'Writes while history was suppressed, or that it ignores (reason ignore_columns or ignore_writers), and blind updates by an owner
with interlock.blind_updates = allow, a line for each statement and table: writer, columns, number of rows, reason. Owners of a table
see its lines. In the order of written_at.';

CREATE VIEW interlock.skipped_writes WITH (security_barrier) AS
    SELECT id, written_at, decision, rel, table_name, key, columns, row_count, owner, writer, written_by, stored, given
      FROM interlock_internal.all_writes WHERE decision OPERATOR(pg_catalog.=) ANY (ARRAY['skipped', 'merged']);
GRANT SELECT ON interlock.skipped_writes TO PUBLIC;
COMMENT ON VIEW interlock.skipped_writes IS
'Values of a writer that were not stored as given: columns kept as they were (skipped: a line for each transaction or savepoint, table, owner and
writer) or combined with what another writer had stored (merged: a line for each row); stored and given are those of the first row.
Owners of a table see its lines.';

CREATE VIEW interlock.forced_writes WITH (security_barrier) AS
    SELECT id, written_at, rel, table_name, key, columns, owner, writer, written_by, stored, given
      FROM interlock_internal.all_writes WHERE decision OPERATOR(pg_catalog.=) 'forced';
GRANT SELECT ON interlock.forced_writes TO PUBLIC;
COMMENT ON VIEW interlock.forced_writes IS
'Columns that a writer with force wrote over their owner: a line for each row and owner, with what was stored before. Owners of a table
see its lines.';

-- Field ownership

CREATE FUNCTION interlock_internal.ownership_trigger() RETURNS trigger
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock_internal.ownership_trigger() IS
'Checks every update against the owners of the columns that it changes. Created by own_columns, share_columns and group_columns;
arguments: triples of column, kind (own:reject, own:skip, share:retry, share:skip, share:merge, group, blind) and value (writer, number, mode).
Errors: IL007 a column belongs to another writer, 55000 an owned column is gone or another BEFORE trigger fires later.';

CREATE FUNCTION interlock.own_columns(
    rel regclass, writer text, columns name[], on_violation text = 'reject') RETURNS void
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.own_columns(regclass, text, name[], text) IS
'Allows only the writer (set_writer) to change these columns by UPDATE, by any statement, function, trigger or cascade. An
update that leaves a column as it is stored is always allowed. on_violation: reject (IL007), or skip: the stored value stays, and
skipped_writes has a line. For the owner of the table; waits for transactions that write to it. Again for the same writer: changes on_violation.
Warns when the writer has not been granted to any role. Errors: 42501 not the owner, 42703 no such column, 428C9 generated column,
22023 version or marker column, no column, one named twice, empty or long writer, unknown on_violation, 55000 another writer''s or
shared, a partition, a BEFORE trigger that fires later; 22004, 42809 no table.';

CREATE FUNCTION interlock.share_columns(
    rel regclass, columns name[], strategy text = 'retry', blind_updates text = 'allow') RETURNS void
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.share_columns(regclass, name[], text, text) IS
'Declares what try_versioned_update with on_conflict => ''merge'' does where both writers changed a column: retry leaves the conflict,
skip keeps what is stored, merge combines: numbers add up both changes, arrays without duplicates are sets, jsonb objects combine
member by member; what cannot be combined stays a conflict. skipped_writes shows what was skipped and merged. blind_updates: as for enable_versioning,
for updates that change one of the columns. For the owner of the table; again: changes both. Errors: as own_columns; 22023 unknown strategy, merge of a column in ignore_columns of enable_versioning,
unknown blind_updates, 55000 owned by a writer, not versioned or not preloaded for blind_updates. Of a merge: 22003 a sum out of range.';

CREATE FUNCTION interlock.release_columns(rel regclass, columns name[]) RETURNS void
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.release_columns(regclass, name[]) IS
'Columns are neither owned nor shared any more. Takes names of columns that were dropped or renamed as well, and removes all their rules.
For the owner of the table; takes an ACCESS EXCLUSIVE lock. Errors: 42501 not the owner, 42703 no such column, 55000 neither owned nor
shared, a partition; 22004, 22023.';

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
    OUT enforced boolean)
    RETURNS SETOF record
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock_internal.list_column_rules() IS 'The rules of the view column_ownership.';

CREATE VIEW interlock.column_ownership AS
    SELECT r.rel, r.column_name, r.writer, r.on_violation, r.strategy, r.group_number, COALESCE(f.forced, 0) AS forced, r.enforced
      FROM interlock_internal.list_column_rules() r
      JOIN pg_catalog.pg_class c ON c.oid OPERATOR(pg_catalog.=) r.rel::pg_catalog.oid
      LEFT JOIN (SELECT w.rel, u.column_name, pg_catalog.count(*) AS forced
                   FROM interlock.forced_writes w CROSS JOIN LATERAL pg_catalog.unnest(w.columns) u (column_name)
                  GROUP BY 1, 2) f
        ON f.rel::pg_catalog.oid OPERATOR(pg_catalog.=) c.oid
       AND f.column_name OPERATOR(pg_catalog.=) r.column_name::pg_catalog.text;
GRANT SELECT ON interlock.column_ownership TO PUBLIC;
COMMENT ON VIEW interlock.column_ownership IS
'The rules of every table''s columns: the writer and on_violation of an owned column, the strategy of a shared one, the group.
forced counts the lines of forced_writes about the column that the reader may see; enforced is false when the trigger is disabled or
does not fire in this session. A table whose trigger has been given invalid arguments is left out: its updates fail.';

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
table; arguments: keep_versions, keep_for, since when the history is complete, notify, whether markers are ignored, the number of
ignored columns and their names, the number of ignored writers and their names, the columns of the key and their types.';

CREATE FUNCTION interlock_internal.history_truncate_trigger() RETURNS trigger
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock_internal.history_truncate_trigger() IS
'Writes an entry for each row that TRUNCATE removes. Created by enable_history.';

CREATE FUNCTION interlock.enable_history(
    rel regclass, keep_versions integer = NULL, keep_for interval = NULL, ignore_columns name[] = '{}', ignore_writers text[] = '{}',
    notify text = 'off', record_markers boolean = false) RETURNS void
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.enable_history(regclass, integer, interval, name[], text[], text, boolean) IS
'Records every version of every row, for all writers, in <table>_history beside the table: a table of the same owner, who
grants SELECT on it. An entry is kept as long as it is among the newest keep_versions of its key or younger than keep_for, whichever
are given; without both for ever. An UPDATE that changes ignore_columns alone, and whatever a writer of ignore_writers writes (set_writer,
or a default of grant_writer), has no entry and is summed up in operation_log; an UPDATE that moves the marker of a row alone has neither,
unless record_markers. notify: on sends {table} once for each transaction on channel interlock_history, full {table, key} for each row.
Calling it again sets all of that anew. A history table that disable_history left is used again.
For the owner of the table, who needs CREATE on its schema. Waits for all users of the table (ACCESS EXCLUSIVE).
Errors: 42501 not the owner, or no CREATE, 55000 no key, a partition, or one of its partitions has a history of its own, 42703 no such column,
22023 keep_versions below one, keep_for not above zero or above ten years, a column of the key or the version is ignored, a name twice, more than
100 writers or a name that no writer can have, unknown notify, 42809 not a table. Errors of a write: 55000 the key was dropped, or the history table
belongs to another role; 09000 a trigger suppresses the entry, 42501 a trigger of another role; and the errors of the INSERT of the entry. The entry
is written at every isolation level in the transaction of the write. A transaction that has sent a notification cannot be prepared (0A000).';

CREATE FUNCTION interlock.disable_history(rel regclass) RETURNS void
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.disable_history(regclass) IS
'Stops recording. The history table stays. For the owner of the table. Errors: 42501 not the owner, 55000 no history, or a partition.';

CREATE FUNCTION interlock.row_history(
    rel regclass, key text, OUT version bigint, OUT changed_at timestamptz, OUT writer text, OUT operation text, OUT row_data jsonb,
    OUT changed text[], OUT before jsonb, OUT changed_by text, OUT id bigint, OUT writer_from text) RETURNS SETOF record
    LANGUAGE c AS 'MODULE_PATHNAME';
CREATE FUNCTION interlock.row_history(
    rel regclass, key "any", OUT version bigint, OUT changed_at timestamptz, OUT writer text, OUT operation text, OUT row_data jsonb,
    OUT changed text[], OUT before jsonb, OUT changed_by text, OUT id bigint, OUT writer_from text) RETURNS SETOF record
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.row_history(regclass, text) IS
'The entries of one row, oldest first: its counter if it is versioned, the clock when it was written, the writer, the
operation (insert, update, delete, truncate, moved: to another key), the row (the last one, if it was deleted), the changed columns and their
previous values, the role, and where the writer is from: set_writer, role (its default), or holder (save_row, set_holder: nobody grants holders). Needs SELECT on the table and on its history table, whose row security holds. Sees what a
statement of its own would see at that level. Errors: 42501, 55000 no history or no key, 22004, 22023 and what the key''s type raises.';
COMMENT ON FUNCTION interlock.row_history(regclass, "any") IS
'As row_history(regclass, text), for a key of another type.';

CREATE FUNCTION interlock.row_as_of(rel regclass, key text, at timestamptz) RETURNS jsonb
    LANGUAGE c AS 'MODULE_PATHNAME';
CREATE FUNCTION interlock.row_as_of(rel regclass, key "any", at timestamptz) RETURNS jsonb
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.row_as_of(regclass, text, timestamptz) IS
'The row as it was at that time by the clock of its writers, as far as its history shows; null when there was none, or when the
history does not reach back that far. A row without an entry since history was enabled is read from the table.
Needs SELECT on the table and on its history table. Errors: as row_history.';
COMMENT ON FUNCTION interlock.row_as_of(regclass, "any", timestamptz) IS
'As row_as_of(regclass, text, timestamptz), for a key of another type.';

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
'Makes a new version of one row with the values that it had: of that version (of a table without a counter: of the entry of row_history with
that id), or at that time as row_as_of says; give one of both. Returns the new version; null for a table without versions, or versioned by a timestamp. It is
an UPDATE of the caller and passes every check of the table; columns that have the value already are not written. Left as they are: the key, the version, the
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
    OUT transaction bigint, OUT writer_from text, OUT up_to text) RETURNS SETOF record
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
    INOUT rel regclass = NULL, max_rows integer = NULL, OUT trimmed bigint) RETURNS SETOF record
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.trim_history(regclass, integer) IS
'Deletes the entries that retention does not keep, about max_rows at most, of one table or of all that the caller owns; returns how
many. The sweeper does it by itself. Acts as the owner of the history table, if that is the owner of the table. For all tables, a failure of
one is a warning. Errors: 42501 not the owner, or triggers of other roles on the history table, 22023.';

CREATE FUNCTION interlock.suppress_history(rel regclass = NULL, reason text = NULL) RETURNS integer
    LANGUAGE c AS 'MODULE_PATHNAME';
REVOKE EXECUTE ON FUNCTION interlock.suppress_history(regclass, text) FROM PUBLIC;
COMMENT ON FUNCTION interlock.suppress_history(regclass, text) IS
'Stops recording what this transaction writes to the table, or with null to all tables, until as many restore_history; returns how
many scopes of that table, or of all, are open. A rollback to a savepoint undoes it, and the end of the transaction ends it. Each
statement that it hides leaves a line with the reason in operation_log; versions move as usual. A partition stands for its parent.
Only superusers may call it until EXECUTE is granted. Errors: 42501, 55000 no history.';

CREATE FUNCTION interlock.restore_history(rel regclass = NULL) RETURNS integer
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.restore_history(regclass) IS
'Ends the innermost suppress_history for the same table, or for all; returns how many are still open. Errors: 55000 none is open.';

-- Logical failover

CREATE FUNCTION interlock.resync_sequences(OUT sequence regclass, OUT before bigint, OUT after bigint) RETURNS SETOF record
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.resync_sequences() IS
'Sets sequences above what their tables hold, since logical replication carries rows and no sequences: ids of history entries, floors of
versions, and for superusers tokens of idempotency keys and ids of audits and of the write log. Call it on a subscriber when it takes over, in a
transaction of its own, after the last change was applied and before the first write. For tables that the caller owns; returns the sequences
that were moved; it never sets one back. Waits for transactions that have taken values or locked a table, as long as lock_timeout says. A failure of one is a warning.';

-- Shared memory in use

CREATE FUNCTION interlock_internal.list_usage(
    OUT what text, OUT database text, OUT role text, OUT used bigint, OUT "of" bigint) RETURNS SETOF record
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock_internal.list_usage() IS 'The rows of the view usage.';

CREATE VIEW interlock.usage AS SELECT * FROM interlock_internal.list_usage();
GRANT SELECT ON interlock.usage TO PUBLIC;
COMMENT ON VIEW interlock.usage IS
'What is used of everything in shared memory that has a fixed size, on the whole server: in all (no role, no database), by role (of: the
share of the role, null for superusers) and by role and database. Totals are shown to everybody, the lines of a role to its members, and
all of them to pg_monitor.';

-- Rights of operators, monitors and administrators

CREATE FUNCTION interlock.grant_access(kind text, role name) RETURNS void
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.grant_access(text, name) IS
'Grants a role, in this database, what PUBLIC lacks. ''monitor'': read audits, grants, the sweeper, and the idempotency keys and the
write log without the values in them. ''operator'': force_unlock_row, break_lease, break_leases, sweep, idempotency_sweep.
''administrator'': define, grant and revoke idempotency scopes and writers, suppress_history. Kinds add up. Call it again after an
upgrade, for what is new.
Only the owner of the extension, and superusers, may call it. Errors: 42501 another role, 42704 no such role, 22023 another kind.';

CREATE FUNCTION interlock.revoke_access(kind text, role name) RETURNS void
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.revoke_access(text, name) IS
'Revokes what grant_access grants, and nothing else; also what was granted by hand of it. Does nothing if nothing was granted.
Errors: as grant_access.';
