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

CREATE FUNCTION interlock_internal.list_reused_keys(OUT rel regclass, OUT inserts bigint) RETURNS SETOF record
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock_internal.list_reused_keys() IS
'For check_versioning: tables whose history shows keys that were inserted again with a version that they had had, and how often. Of each history
that the caller may read, without row security, the newest 10000 entries, and of these inserts of the last 7 days.';

CREATE FUNCTION interlock_internal.is_preloaded(OUT for_statements boolean, OUT for_all boolean)
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock_internal.is_preloaded() IS
'For list_findings: whether the session has had the library since its first statement, and whether the server has it.';

CREATE FUNCTION interlock_internal.split_arguments(arguments bytea) RETURNS text[]
    LANGUAGE c IMMUTABLE PARALLEL SAFE AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock_internal.split_arguments(bytea) IS
'For list_findings: the arguments of a trigger, as pg_trigger.tgargs has them. None if they have more than 4 MB, or are more than 14,400: no
function of the extension makes such.';

CREATE FUNCTION interlock_internal.list_findings(
    reads_history boolean, OUT rel regclass, OUT finding text, OUT advice text, OUT mechanisms text[], OUT enforced boolean) RETURNS SETOF record
    LANGUAGE sql STABLE
BEGIN ATOMIC
    WITH functions AS ( -- of triggers
        SELECT p.oid, p.proname,
               CASE WHEN p.proname OPERATOR(pg_catalog.=) 'version_trigger' THEN 'versioning'
                    WHEN p.proname OPERATOR(pg_catalog.=) ANY ('{transition_trigger,initial_state_trigger}'::pg_catalog.name[]) THEN 'transitions'
                    WHEN p.proname OPERATOR(pg_catalog.=) ANY ('{marker_trigger,marker_notify_trigger}'::pg_catalog.name[]) THEN 'marker'
                    WHEN p.proname OPERATOR(pg_catalog.=) 'lease_trigger' THEN 'require_lease'
                    WHEN p.proname OPERATOR(pg_catalog.=) 'ownership_trigger' THEN 'ownership'
                    WHEN p.proname OPERATOR(pg_catalog.=) ANY ('{history_trigger,history_truncate_trigger}'::pg_catalog.name[]) THEN 'history'
                    WHEN p.proname OPERATOR(pg_catalog.=) 'children_trigger' THEN 'guard_children'
                    WHEN p.proname OPERATOR(pg_catalog.=) ANY ('{escrow_trigger,escrow_truncate_trigger}'::pg_catalog.name[]) THEN 'escrow'
                END AS mechanism
          FROM pg_catalog.pg_proc p
          JOIN pg_catalog.pg_proc v ON v.pronamespace OPERATOR(pg_catalog.=) p.pronamespace
         WHERE v.oid OPERATOR(pg_catalog.=) 'interlock_internal.version_trigger()'::pg_catalog.regprocedure),
    own AS (
        SELECT f.oid
          FROM functions f
         WHERE f.proname OPERATOR(pg_catalog.=) ANY ('{version_trigger,transition_trigger,marker_trigger,ownership_trigger,escrow_trigger}'::pg_catalog.name[])),
    temporary AS ( -- tables of other sessions, which any role can make in any number
        SELECT c.oid
          FROM pg_catalog.pg_class c
         WHERE c.relpersistence OPERATOR(pg_catalog.=) 't' AND c.relnamespace OPERATOR(pg_catalog.<>) pg_catalog.pg_my_temp_schema()),
    triggers AS ( -- with their arguments
        SELECT t.oid, t.tgrelid, t.tgname, t.tgenabled, t.tgparentid, t.tgtype, t.tgfoid, t.tgconstrrelid, t.tgnargs, t.tgargs,
               f.proname AS kind, f.mechanism,
               interlock_internal.split_arguments(t.tgargs) AS texts
          FROM functions f
          JOIN pg_catalog.pg_trigger t ON t.tgfoid OPERATOR(pg_catalog.=) f.oid
         WHERE NOT t.tgrelid OPERATOR(pg_catalog.=) ANY (SELECT m.oid FROM temporary m)),
    checks AS (
        SELECT t.oid, t.tgrelid, t.tgname, t.tgenabled, t.tgparentid, t.tgtype, t.tgfoid, t.kind, t.mechanism, t.texts, t.texts[1] AS subject
          FROM triggers t
          JOIN own ON own.oid OPERATOR(pg_catalog.=) t.tgfoid
         WHERE t.tgnargs OPERATOR(pg_catalog.>) 0
           AND (t.kind OPERATOR(pg_catalog.<>) 'ownership_trigger'
                OR pg_catalog.position(t.tgargs, '\x006f776e3a'::pg_catalog.bytea) OPERATOR(pg_catalog.>) 0)), -- own:
    inheritable AS ( -- what a table that inherits should have, too; counters are of rows of the table alone
        SELECT c.tgrelid, c.tgfoid, c.kind, c.mechanism, pg_catalog.min(c.subject) AS subject, c.state_column
          FROM (SELECT c.tgrelid, c.tgfoid, c.kind, c.mechanism, c.subject,
                       CASE WHEN c.kind OPERATOR(pg_catalog.=) 'transition_trigger' THEN COALESCE(c.subject, '') ELSE '' END AS state_column
                  FROM checks c
                 WHERE c.kind OPERATOR(pg_catalog.<>) 'escrow_trigger'
                   AND (c.kind OPERATOR(pg_catalog.<>) 'transition_trigger' OR EXISTS ( -- which the heirs have as well
                            SELECT FROM pg_catalog.pg_attribute a
                             WHERE a.attrelid OPERATOR(pg_catalog.=) c.tgrelid AND a.attname OPERATOR(pg_catalog.=) c.subject::pg_catalog.name))) c
         GROUP BY c.tgrelid, c.tgfoid, c.kind, c.mechanism, c.state_column),
    guards AS ( -- beside versions
        SELECT t.tgrelid, t.tgname, t.tgenabled, t.mechanism, e.effect, t.mechanism OPERATOR(pg_catalog.=) 'escrow' AS always
          FROM triggers t
          JOIN (VALUES ('transition_trigger', 'changes of state are not checked'),
                       ('initial_state_trigger', 'states of new rows are not checked'),
                       ('marker_trigger', 'markers are not enforced'),
                       ('marker_notify_trigger', 'nobody is notified of markers'),
                       ('lease_trigger', 'writes need no lease'),
                       ('children_trigger', 'changes of children do not move their parents'),
                       ('ownership_trigger', 'columns are written by anybody'),
                       ('history_trigger', 'changes are not recorded'),
                       ('history_truncate_trigger', 'TRUNCATE is not recorded'),
                       ('escrow_trigger', 'writes pass by the counters, which cannot be adjusted'),
                       ('escrow_truncate_trigger', 'TRUNCATE leaves parts of the counters')) e (function, effect)
            ON t.kind OPERATOR(pg_catalog.=) e.function::pg_catalog.name),
    versioned AS (
        SELECT c.tgrelid, c.tgname, c.tgenabled, c.tgparentid, pg_catalog.left(c.subject, 64) AS version_column,
               pg_catalog.format('%L%s%s', pg_catalog.left(c.subject, 64),
                   CASE WHEN pg_catalog.cardinality(c.texts) OPERATOR(pg_catalog.>) 2 -- ignore_columns
                        THEN pg_catalog.format(', %L', ARRAY(SELECT pg_catalog.left(i.name, 64) FROM pg_catalog.unnest(c.texts[3:1602]) i (name))) END,
                   CASE WHEN c.texts[2] OPERATOR(pg_catalog.<>) 'allow'
                        THEN pg_catalog.format(', blind_updates => %L', pg_catalog.left(c.texts[2], 64)) END) AS settings
          FROM checks c
         WHERE c.kind OPERATOR(pg_catalog.=) 'version_trigger'),
    notifies AS ( -- tables with markers that notify
        SELECT t.tgrelid, pg_catalog.max(t.tgnargs) AS arguments
          FROM triggers t
         WHERE t.kind OPERATOR(pg_catalog.=) 'marker_notify_trigger'
         GROUP BY t.tgrelid),
    arguments AS ( -- those of partitions have the same
        SELECT t.tgrelid, t.tgname, t.tgconstrrelid, t.kind, t.texts
          FROM triggers t
         WHERE t.tgnargs OPERATOR(pg_catalog.>) 0 AND t.tgparentid OPERATOR(pg_catalog.=) 0),
    rules AS ( -- of ownership, three arguments each
        SELECT t.tgrelid, t.tgparentid, t.mechanism, r.name, r.rule, r.value
          FROM triggers t
         CROSS JOIN LATERAL (
               SELECT u.text AS name, pg_catalog.lead(u.text) OVER w AS rule, pg_catalog.lead(u.text, 2) OVER w AS value, u.n
                 FROM pg_catalog.unnest(t.texts) WITH ORDINALITY u (text, n)
               WINDOW w AS (ORDER BY u.n)) r
         WHERE t.kind OPERATOR(pg_catalog.=) 'ownership_trigger' AND r.n OPERATOR(pg_catalog.%) 3 OPERATOR(pg_catalog.=) 1),
    named AS ( -- by arguments, with what helps when the column is gone. No name stands in a comment: it could end the line;
              -- of what is longer than any column's name there is as much as that, since any role can make triggers with megabytes
        SELECT a.tgrelid, 'marker' AS part, pg_catalog.left(n.name, 64) AS name,
               pg_catalog.format('SELECT interlock.enable_marker(%L, ttl => %L, enforce => %L, notify => %L, status_column => %L, '
                       'holder_column => %L, time_column => %L, until_column => %L, reason_column => %L) '
                       '-- adds it; for a column that was renamed give its present name',
                   a.tgrelid::pg_catalog.regclass, pg_catalog.left(a.texts[1], 100), a.texts[2] OPERATOR(pg_catalog.=) 'enforce',
                   CASE WHEN t.arguments IS NULL THEN 'off' WHEN t.arguments OPERATOR(pg_catalog.=) 0 THEN 'on' ELSE 'full' END,
                   pg_catalog.left(a.texts[3], 64), pg_catalog.left(a.texts[4], 64), pg_catalog.left(a.texts[5], 64),
                   pg_catalog.left(a.texts[6], 64), pg_catalog.left(a.texts[7], 64)) AS advice
          FROM arguments a
         CROSS JOIN LATERAL pg_catalog.unnest(a.texts[3:7]) n (name)
          LEFT JOIN notifies t ON t.tgrelid OPERATOR(pg_catalog.=) a.tgrelid
         WHERE a.kind OPERATOR(pg_catalog.=) 'marker_trigger'
         UNION ALL
        SELECT c.tgrelid, 'state', pg_catalog.left(c.subject, 64),
               pg_catalog.format('SELECT interlock.drop_transitions(%L, %L) '
                       '-- if it was renamed, first interlock.define_transitions for its present name',
                   c.tgrelid::pg_catalog.regclass, pg_catalog.left(c.subject, 64))
          FROM checks c
         WHERE c.kind OPERATOR(pg_catalog.=) 'transition_trigger' AND c.tgparentid OPERATOR(pg_catalog.=) 0
         UNION ALL
        SELECT a.tgrelid, 'lease', pg_catalog.left(n.name, 64),
               pg_catalog.format('SELECT interlock.unrequire_lease(%L, %L) '
                       '-- if it was renamed, then interlock.require_lease with its present name',
                   a.tgrelid::pg_catalog.regclass, pg_catalog.left(a.texts[1], 1024))
          FROM (SELECT a.tgrelid, a.texts, pg_catalog.row_number() OVER (PARTITION BY a.tgrelid ORDER BY a.tgname) AS n
                  FROM arguments a
                 WHERE a.kind OPERATOR(pg_catalog.=) 'lease_trigger') a
         CROSS JOIN LATERAL (
               SELECT m.name[1]
                 FROM pg_catalog.regexp_matches(
                          pg_catalog.replace(pg_catalog.replace(pg_catalog.left(a.texts[1], 1024), '{{', ''), '}}', ''),
                          '\{([^{}]+)\}', 'g') m (name)
                UNION
               SELECT c.name FROM pg_catalog.unnest(a.texts[2:]) c (name)
                LIMIT 10) n (name) -- in each line the template stands again
         WHERE a.n OPERATOR(pg_catalog.<=) 16 -- a table may have thousands of forged ones
         UNION ALL
        SELECT DISTINCT r.tgrelid, 'owned', pg_catalog.left(r.name, 64),
               pg_catalog.format('SELECT interlock.release_columns(%L, ARRAY[%L]) '
                       '-- if it was renamed, then interlock.own_columns for its present name',
                   r.tgrelid::pg_catalog.regclass, pg_catalog.left(r.name, 64))
          FROM rules r
         WHERE r.tgparentid OPERATOR(pg_catalog.=) 0 AND pg_catalog.starts_with(r.rule, 'own:')),
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
    children AS ( -- guards of children: what WHEN of their triggers names
        SELECT c.tgrelid, c.parent, c.columns, pg_catalog.bit_or(c.tgtype::pg_catalog.int4) OPERATOR(pg_catalog.&) 28 AS events
          FROM (SELECT t.tgrelid, t.tgtype, pg_catalog.max(d.refobjid) FILTER (WHERE d.refobjid OPERATOR(pg_catalog.<>) t.tgrelid) AS parent,
                       pg_catalog.array_agg(d.refobjsubid ORDER BY d.refobjsubid)
                           FILTER (WHERE d.refobjid OPERATOR(pg_catalog.=) t.tgrelid AND d.refobjsubid OPERATOR(pg_catalog.>) 0) AS columns
                  FROM triggers t
                  JOIN pg_catalog.pg_depend d
                    ON d.classid OPERATOR(pg_catalog.=) 'pg_catalog.pg_trigger'::pg_catalog.regclass AND d.objid OPERATOR(pg_catalog.=) t.oid
                   AND d.refclassid OPERATOR(pg_catalog.=) 'pg_catalog.pg_class'::pg_catalog.regclass
                 WHERE t.kind OPERATOR(pg_catalog.=) 'children_trigger' AND t.tgparentid OPERATOR(pg_catalog.=) 0
                 GROUP BY t.oid, t.tgrelid, t.tgtype) c
         WHERE c.parent IS NOT NULL AND c.columns IS NOT NULL
         GROUP BY c.tgrelid, c.parent, c.columns),
    floors AS NOT MATERIALIZED ( -- sequences that belong to columns
        SELECT o.refobjid AS relid, o.refobjsubid AS attnum, s.oid, s.relname, s.relnamespace
          FROM pg_catalog.pg_depend o
          JOIN pg_catalog.pg_class s ON s.oid OPERATOR(pg_catalog.=) o.objid AND s.relkind OPERATOR(pg_catalog.=) 'S'
         WHERE o.classid OPERATOR(pg_catalog.=) 'pg_catalog.pg_class'::pg_catalog.regclass
           AND o.refclassid OPERATOR(pg_catalog.=) 'pg_catalog.pg_class'::pg_catalog.regclass
           AND o.deptype OPERATOR(pg_catalog.=) 'a'),
    readers AS MATERIALIZED ( -- defaults that call first_version, and how they name a floor; any role can make one of gigabytes
        SELECT d.oid, d.adrelid, d.adnum, c.relowner,
               COALESCE(pg_catalog.substring(pg_catalog.substr(d.adbin::pg_catalog.text, 1, 4096), ':constvalue [^]]*\]'),
                        d.oid::pg_catalog.text) AS named
          FROM pg_catalog.pg_depend u
          JOIN pg_catalog.pg_attrdef d ON d.oid OPERATOR(pg_catalog.=) u.objid
          JOIN pg_catalog.pg_class c ON c.oid OPERATOR(pg_catalog.=) d.adrelid
         WHERE u.classid OPERATOR(pg_catalog.=) 'pg_catalog.pg_attrdef'::pg_catalog.regclass
           AND u.refclassid OPERATOR(pg_catalog.=) 'pg_catalog.pg_proc'::pg_catalog.regclass
           AND u.refobjid OPERATOR(pg_catalog.=) 'interlock.first_version(text)'::pg_catalog.regprocedure::pg_catalog.oid
           AND NOT c.oid OPERATOR(pg_catalog.=) ANY (SELECT m.oid FROM temporary m)),
    with_floors AS ( -- readers whose column has a sequence
        SELECT r.oid, r.named, r.relowner
          FROM readers r
          JOIN floors s ON s.relid OPERATOR(pg_catalog.=) r.adrelid AND s.attnum OPERATOR(pg_catalog.=) r.adnum),
    counters AS ( -- the columns that are versions, once each: a table can have thousands of forged triggers
        SELECT DISTINCT ON (v.tgrelid, a.attnum) v.tgrelid, v.tgparentid, v.settings, a.attnum, a.attname
          FROM versioned v
          JOIN pg_catalog.pg_attribute a
            ON a.attrelid OPERATOR(pg_catalog.=) v.tgrelid AND a.attname OPERATOR(pg_catalog.=) v.version_column::pg_catalog.name
           AND a.atttypid OPERATOR(pg_catalog.=) ANY (ARRAY['pg_catalog.int4'::pg_catalog.regtype,
                   'pg_catalog.int8'::pg_catalog.regtype]::pg_catalog.oid[])
         ORDER BY v.tgrelid, a.attnum, v.tgparentid DESC, v.tgname),
    tops AS ( -- with the floor of the table that versions are enabled on
        SELECT c.tgrelid, c.attname, c.settings, c.attnum, e.relid AS top, b.attnum AS top_attnum, e.relid AS enabled_on,
               c.tgparentid OPERATOR(pg_catalog.<>) 0 AS is_partition,
               (SELECT pg_catalog.format('%I.%I', n.nspname, s.relname)
                  FROM floors s
                  JOIN pg_catalog.pg_namespace n ON n.oid OPERATOR(pg_catalog.=) s.relnamespace
                 WHERE s.relid OPERATOR(pg_catalog.=) b.attrelid AND s.attnum OPERATOR(pg_catalog.=) b.attnum
                 ORDER BY s.oid LIMIT 1) AS floor
          FROM counters c
         CROSS JOIN LATERAL ( -- from a partition's trigger to the one that it is a copy of
               WITH RECURSIVE up (relid, parent) AS (
                   SELECT c.tgrelid, c.tgparentid
                    UNION ALL
                   SELECT t.tgrelid, t.tgparentid
                     FROM up u
                     JOIN pg_catalog.pg_trigger t ON t.oid OPERATOR(pg_catalog.=) u.parent)
               SELECT u.relid FROM up u WHERE u.parent OPERATOR(pg_catalog.=) 0) e
          JOIN pg_catalog.pg_attribute b
            ON b.attrelid OPERATOR(pg_catalog.=) e.relid AND b.attname OPERATOR(pg_catalog.=) c.attname),
    above AS ( -- and of tables above, which have no versions: rows that are inserted through them get their defaults
        SELECT u.relid::pg_catalog.oid AS tgrelid, t.attname, t.settings, b.attnum, t.top, t.top_attnum,
               p.relids[pg_catalog.cardinality(p.relids)]::pg_catalog.oid AS enabled_on, true AS is_partition, t.floor
          FROM tops t
         CROSS JOIN LATERAL (
               SELECT pg_catalog.array_agg(a.relid ORDER BY a.level)
                 FROM pg_catalog.pg_partition_ancestors(t.top) WITH ORDINALITY a (relid, level)) p (relids)
         CROSS JOIN LATERAL pg_catalog.unnest(p.relids[2:]) u (relid)
          JOIN pg_catalog.pg_attribute b
            ON b.attrelid OPERATOR(pg_catalog.=) u.relid::pg_catalog.oid AND b.attname OPERATOR(pg_catalog.=) t.attname
         WHERE NOT t.is_partition),
    defaults AS ( -- theirs; to ask for an expression as it is written would wait for a table that somebody has locked
        SELECT t.tgrelid, t.attname, t.floor, t.enabled_on, t.settings, t.is_partition,
               pg_catalog.substr(d.adbin::pg_catalog.text, 1, 4096) AS expression,
               pg_catalog.substr(above.adbin::pg_catalog.text, 1, 4096) AS top_expression,
               d.oid IS NOT NULL AND d.oid OPERATOR(pg_catalog.=) ANY (SELECT r.oid FROM readers r) AS reads_floor,
               above.oid IS NOT NULL AND above.oid OPERATOR(pg_catalog.=) ANY (SELECT r.oid FROM readers r) AS top_reads_floor
          FROM (TABLE tops UNION ALL TABLE above) t
          LEFT JOIN pg_catalog.pg_attrdef d
            ON d.adrelid OPERATOR(pg_catalog.=) t.tgrelid AND d.adnum OPERATOR(pg_catalog.=) t.attnum
          LEFT JOIN pg_catalog.pg_attrdef above
            ON above.adrelid OPERATOR(pg_catalog.=) t.top AND above.adnum OPERATOR(pg_catalog.=) t.top_attnum),
    starts AS ( -- where new rows start by them
        SELECT d.tgrelid, d.attname, d.floor, d.is_partition, d.reads_floor, d.expression,
               CASE WHEN d.reads_floor AND d.top_reads_floor
                    THEN pg_catalog.substring(d.expression, ':constvalue [^]]*\]')
                         OPERATOR(pg_catalog.<>) pg_catalog.substring(d.top_expression, ':constvalue [^]]*\]')
                    ELSE false END AS reads_another,
               d.top_reads_floor AND d.floor IS NOT NULL AS has_to_read,
               pg_catalog.format('SELECT interlock.enable_versioning(%L, %s)', d.enabled_on::pg_catalog.regclass, d.settings) AS enable
          FROM defaults d)
    SELECT g.tgrelid::pg_catalog.regclass,
           pg_catalog.format('trigger "%s" %s: %s', g.tgname,
               CASE g.tgenabled WHEN 'D' THEN 'is disabled' WHEN 'R' THEN 'fires on a replica only'
                    ELSE CASE WHEN g.always THEN 'does not fire in all sessions' ELSE 'does not fire in this session' END END,
               g.effect),
           CASE WHEN g.always THEN pg_catalog.format('ALTER TABLE %s ENABLE ALWAYS TRIGGER %I', g.tgrelid::pg_catalog.regclass, g.tgname)
                WHEN g.tgenabled OPERATOR(pg_catalog.=) 'O'
                THEN pg_catalog.format('RESET session_replication_role, or ALTER TABLE %s ENABLE ALWAYS TRIGGER %I',
                         g.tgrelid::pg_catalog.regclass, g.tgname)
                ELSE pg_catalog.format('ALTER TABLE %s ENABLE TRIGGER %I', g.tgrelid::pg_catalog.regclass, g.tgname) END,
           ARRAY[g.mechanism], g.effect OPERATOR(pg_catalog.=) 'nobody is notified of markers'
      FROM guards g
     WHERE g.tgenabled OPERATOR(pg_catalog.=) ANY ('{D,R}')
        OR g.tgenabled OPERATOR(pg_catalog.=) 'O'
           AND (g.always OR pg_catalog.current_setting('session_replication_role') OPERATOR(pg_catalog.=) 'replica')
    UNION ALL
    SELECT v.tgrelid::pg_catalog.regclass, 'the version trigger is disabled',
           pg_catalog.format('ALTER TABLE %s ENABLE TRIGGER %I', v.tgrelid::pg_catalog.regclass, v.tgname),
           ARRAY['versioning'], false
      FROM versioned v
     WHERE v.tgenabled OPERATOR(pg_catalog.=) 'D'
    UNION ALL
    SELECT v.tgrelid::pg_catalog.regclass, 'the version trigger fires on a replica only',
           pg_catalog.format('ALTER TABLE %s ENABLE TRIGGER %I', v.tgrelid::pg_catalog.regclass, v.tgname),
           ARRAY['versioning'], false
      FROM versioned v
     WHERE v.tgenabled OPERATOR(pg_catalog.=) 'R'
    UNION ALL
    SELECT v.tgrelid::pg_catalog.regclass, 'session_replication_role is replica: the trigger does not fire in this session',
           pg_catalog.format('RESET session_replication_role, or ALTER TABLE %s ENABLE ALWAYS TRIGGER %I',
               v.tgrelid::pg_catalog.regclass, v.tgname),
           ARRAY['versioning'], false
      FROM versioned v
     WHERE v.tgenabled OPERATOR(pg_catalog.=) 'O'
       AND pg_catalog.current_setting('session_replication_role') OPERATOR(pg_catalog.=) 'replica'
    UNION ALL
    SELECT v.tgrelid::pg_catalog.regclass,
           pg_catalog.format('version column "%s" is gone or has another type', v.version_column),
           pg_catalog.format('SELECT interlock.disable_versioning(%L), then interlock.enable_versioning with the present name',
               v.tgrelid::pg_catalog.regclass),
           ARRAY['versioning'], false
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
               CASE WHEN 'a_' OPERATOR(pg_catalog.<) l.first THEN 'a_' ELSE '0_' END OPERATOR(pg_catalog.||) l.tgname),
           l.mechanisms, false
      FROM (SELECT later.tgrelid AS rel, later.tgname, pg_catalog.min(c.tgname::pg_catalog.text COLLATE pg_catalog."C") AS first,
                   pg_catalog.array_agg(DISTINCT c.mechanism) AS mechanisms,
                   COALESCE((SELECT r.tgrelid
                               FROM pg_catalog.pg_partition_ancestors(later.tgrelid) WITH ORDINALITY a (relid, level)
                               JOIN pg_catalog.pg_trigger r ON r.tgrelid OPERATOR(pg_catalog.=) a.relid::pg_catalog.oid
                              WHERE later.tgparentid OPERATOR(pg_catalog.<>) 0 AND r.tgparentid OPERATOR(pg_catalog.=) 0
                                AND r.tgname OPERATOR(pg_catalog.=) later.tgname
                              ORDER BY a.level LIMIT 1), later.tgrelid) AS root
              FROM pg_catalog.pg_trigger later
              JOIN (SELECT k.tgrelid, k.tgtype::pg_catalog.int4 OPERATOR(pg_catalog.&) 20 AS events, k.tgenabled, k.mechanism, -- insert, update
                           pg_catalog.min(k.tgname::pg_catalog.text COLLATE pg_catalog."C")::pg_catalog.name AS tgname
                      FROM checks k -- there may be thousands of them
                     WHERE k.tgenabled OPERATOR(pg_catalog.<>) 'D' AND k.mechanism OPERATOR(pg_catalog.<>) 'escrow'
                     GROUP BY k.tgrelid, k.tgtype, k.tgenabled, k.mechanism
                     UNION ALL
                    SELECT e.tgrelid, 28, e.tgenabled, e.mechanism, -- and delete, after the first trigger of any mechanism
                           pg_catalog.min(k.tgname::pg_catalog.text COLLATE pg_catalog."C")::pg_catalog.name
                      FROM (SELECT DISTINCT e.tgrelid, e.tgenabled, e.mechanism
                              FROM checks e
                             WHERE e.tgenabled OPERATOR(pg_catalog.<>) 'D' AND e.mechanism OPERATOR(pg_catalog.=) 'escrow') e
                      JOIN checks k ON k.tgrelid OPERATOR(pg_catalog.=) e.tgrelid
                     GROUP BY e.tgrelid, e.tgenabled, e.mechanism) c
                ON c.tgrelid OPERATOR(pg_catalog.=) later.tgrelid
               AND c.tgname OPERATOR(pg_catalog.<) later.tgname
               AND later.tgtype::pg_catalog.int4 OPERATOR(pg_catalog.&) c.events OPERATOR(pg_catalog.<>) 0
               AND (c.tgenabled OPERATOR(pg_catalog.=) later.tgenabled OR c.tgenabled OPERATOR(pg_catalog.=) 'A'
                    OR later.tgenabled OPERATOR(pg_catalog.=) 'A')
             WHERE later.tgtype::pg_catalog.int4 OPERATOR(pg_catalog.&) 3 OPERATOR(pg_catalog.=) 3 -- row, before
               AND later.tgenabled OPERATOR(pg_catalog.<>) 'D'
               AND NOT later.tgfoid OPERATOR(pg_catalog.=) ANY (SELECT own.oid FROM own)
               AND NOT later.tgparentid OPERATOR(pg_catalog.=) ANY ( -- found there
                       SELECT p.oid FROM pg_catalog.pg_trigger p
                        WHERE p.tgrelid OPERATOR(pg_catalog.=) ANY (SELECT above.tgrelid FROM checks above))
             GROUP BY later.oid, later.tgrelid, later.tgname, later.tgparentid) l
    UNION ALL
    SELECT t.tgrelid::pg_catalog.regclass,
           pg_catalog.format('triggers "%s" and "%s" say the same: writes are refused', pg_catalog.min(t.tgname::pg_catalog.text), pg_catalog.max(t.tgname::pg_catalog.text)),
           'drop the one that no function of pg_interlock has made: a role with TRIGGER on the table has made it',
           ARRAY[t.mechanism], false
      FROM triggers t
     WHERE t.kind OPERATOR(pg_catalog.=) ANY ('{version_trigger,transition_trigger,marker_trigger,ownership_trigger,history_trigger,escrow_trigger}'::pg_catalog.name[])
     GROUP BY t.tgrelid, t.mechanism,
              CASE WHEN t.kind OPERATOR(pg_catalog.=) ANY ('{transition_trigger,escrow_trigger}'::pg_catalog.name[]) THEN t.texts[1] END
    HAVING pg_catalog.count(*) OPERATOR(pg_catalog.>) 1
       AND pg_catalog.bool_or(t.tgparentid OPERATOR(pg_catalog.=) 0) -- not those of a partitioned table alone, where they are found
    UNION ALL
    SELECT DISTINCT e.tgrelid::pg_catalog.regclass,
           'the table has become unlogged: inserts, and changes of its escrow counters, are refused',
           pg_catalog.format('TRUNCATE it if there was a crash, then ALTER TABLE %s SET LOGGED', e.tgrelid::pg_catalog.regclass),
           ARRAY[e.mechanism], false
      FROM checks e
      JOIN pg_catalog.pg_class c ON c.oid OPERATOR(pg_catalog.=) e.tgrelid AND c.relpersistence OPERATOR(pg_catalog.=) 'u'
     WHERE e.kind OPERATOR(pg_catalog.=) 'escrow_trigger'
    UNION ALL
    SELECT e.tgrelid::pg_catalog.regclass,
           pg_catalog.format('trigger "%s" does not fire after all others: writes are refused', e.tgname),
           'ALTER TRIGGER ... RENAME TO: give the triggers of pg_interlock the names back that they had',
           ARRAY['escrow'], false
      FROM (SELECT c.tgrelid,
                   pg_catalog.min(c.tgname::pg_catalog.text COLLATE pg_catalog."C")
                       FILTER (WHERE c.kind OPERATOR(pg_catalog.=) 'escrow_trigger') AS tgname,
                   pg_catalog.max(c.tgname::pg_catalog.text COLLATE pg_catalog."C")
                       FILTER (WHERE c.kind OPERATOR(pg_catalog.<>) 'escrow_trigger') AS last_of_others
              FROM checks c
             GROUP BY c.tgrelid) e
     WHERE e.tgname OPERATOR(pg_catalog.<) 'zzzz' OR e.last_of_others OPERATOR(pg_catalog.>) e.tgname
    UNION ALL
    SELECT DISTINCT d.tgrelid::pg_catalog.regclass,
           pg_catalog.format(CASE WHEN d.reads_another THEN 'the default of column "%s" reads the sequence of another table: a key that is used again meets old versions'
                                  WHEN d.reads_floor THEN 'the default of column "%s" has no sequence: a key that is used again meets old versions'
                                  WHEN d.expression IS NULL THEN 'column "%s" has no default: a key that is used again meets old versions'
                                  ELSE 'the default of column "%s" is not first_version: a key that is used again meets old versions' END,
               d.attname),
           CASE WHEN d.floor IS NULL OR d.reads_floor OR d.is_partition THEN d.enable
                ELSE pg_catalog.format('ALTER TABLE %s ALTER COLUMN %I SET DEFAULT interlock.first_version(%L)',
                         d.tgrelid::pg_catalog.regclass, d.attname, d.floor) END,
           ARRAY['versioning'], true
      FROM starts d
     WHERE CASE WHEN d.reads_floor THEN d.floor IS NULL OR d.reads_another
                WHEN d.expression IS NULL OR d.floor IS NOT NULL AND NOT d.is_partition THEN true
                ELSE d.expression OPERATOR(pg_catalog.~) -- a constant, or the cast of one
                         '^(\{FUNCEXPR [^{}]*:funcformat [12] [^{}]*:args \()?\{CONST ' END
       AND (NOT d.is_partition OR d.has_to_read)
    UNION ALL
    SELECT r.rel,
           pg_catalog.format('a key that is used again meets old versions: its history has inserts that did, in the last 7 days %s', r.inserts),
           pg_catalog.format('leave column "%s" to its default in each INSERT; changed_by in the history says who did not', v.version_column),
           ARRAY['versioning'], true
      FROM interlock_internal.list_reused_keys() r
      JOIN versioned v ON v.tgrelid OPERATOR(pg_catalog.=) r.rel::pg_catalog.oid AND v.tgparentid OPERATOR(pg_catalog.=) 0
     WHERE reads_history
    UNION ALL
    SELECT v.tgrelid::pg_catalog.regclass, 'a subscription writes to the table without firing the trigger',
           'version the rows on the publisher, and write them there alone',
           ARRAY['versioning'], false
      FROM versioned v
      JOIN pg_catalog.pg_subscription_rel s ON s.srrelid OPERATOR(pg_catalog.=) v.tgrelid
     WHERE v.tgenabled OPERATOR(pg_catalog.<>) 'A'
    UNION ALL
    SELECT d.adrelid::pg_catalog.regclass,
           pg_catalog.format('the version trigger is gone: updates do not move column "%s"', a.attname),
           pg_catalog.format('SELECT interlock.enable_versioning(%L, %L)', d.adrelid::pg_catalog.regclass, a.attname),
           ARRAY['versioning'], false
      FROM readers d
      JOIN pg_catalog.pg_attribute a
        ON a.attrelid OPERATOR(pg_catalog.=) d.adrelid AND a.attnum OPERATOR(pg_catalog.=) d.adnum
     WHERE EXISTS (SELECT FROM floors s
                    WHERE s.relid OPERATOR(pg_catalog.=) d.adrelid AND s.attnum OPERATOR(pg_catalog.=) d.adnum)
       AND NOT d.adrelid OPERATOR(pg_catalog.=) ANY (SELECT v.tgrelid FROM versioned v)
    UNION ALL
    SELECT d.adrelid::pg_catalog.regclass, -- loaded by a schema tool that knows defaults, and neither sequences nor triggers
           pg_catalog.format('no version trigger is there, and the default of column "%s" calls first_version', a.attname),
           pg_catalog.format('SELECT interlock.enable_versioning(%L, %L), or ALTER TABLE %s ALTER COLUMN %I DROP DEFAULT',
               d.adrelid::pg_catalog.regclass, a.attname, d.adrelid::pg_catalog.regclass, a.attname),
           ARRAY['versioning'], false
      FROM readers d
      JOIN pg_catalog.pg_attribute a
        ON a.attrelid OPERATOR(pg_catalog.=) d.adrelid AND a.attnum OPERATOR(pg_catalog.=) d.adnum
     WHERE NOT d.adrelid OPERATOR(pg_catalog.=) ANY (SELECT v.tgrelid FROM versioned v)
       AND NOT d.oid OPERATOR(pg_catalog.=) ANY (SELECT o.oid FROM with_floors o)
       AND NOT (d.named, d.relowner) OPERATOR(pg_catalog.=) ANY ( -- of a table that it copies, or was a partition of
               SELECT o.named, o.relowner FROM with_floors o)
    UNION ALL
    SELECT n.tgrelid::pg_catalog.regclass, pg_catalog.format('%s column "%s" is gone: writes are refused', n.part, n.name), n.advice,
           ARRAY[CASE n.part WHEN 'marker' THEN 'marker' WHEN 'state' THEN 'transitions' WHEN 'lease' THEN 'require_lease' ELSE 'ownership' END], false
      FROM named n
     WHERE NOT EXISTS (SELECT FROM pg_catalog.pg_attribute a
                        WHERE a.attrelid OPERATOR(pg_catalog.=) n.tgrelid AND a.attname OPERATOR(pg_catalog.=) n.name::pg_catalog.name
                          AND a.attnum OPERATOR(pg_catalog.>) 0 AND NOT a.attisdropped)
    UNION ALL
    SELECT c.tgrelid::pg_catalog.regclass, f.finding, f.advice, ARRAY['guard_children'], false
      FROM children c
     CROSS JOIN LATERAL (
           SELECT pg_catalog.format('its rows are children of table %s, and the foreign key is gone: writes are refused', c.parent::pg_catalog.regclass),
                  pg_catalog.format('add it again, or SELECT interlock.unguard_children(%L, %L)',
                      c.tgrelid::pg_catalog.regclass, c.parent::pg_catalog.regclass)
            WHERE NOT EXISTS (SELECT FROM pg_catalog.pg_constraint k
                               WHERE k.conrelid OPERATOR(pg_catalog.=) c.tgrelid AND k.confrelid OPERATOR(pg_catalog.=) c.parent
                                 AND k.contype OPERATOR(pg_catalog.=) 'f'
                                 AND ARRAY(SELECT n.attnum::pg_catalog.int4 FROM pg_catalog.unnest(k.conkey) n (attnum) ORDER BY 1)
                                     OPERATOR(pg_catalog.=) c.columns)
            UNION ALL
           SELECT pg_catalog.format('its rows are children of table %s, which has neither versions nor markers', c.parent::pg_catalog.regclass),
                  pg_catalog.format('SELECT interlock.enable_versioning(%L)', c.parent::pg_catalog.regclass)
            WHERE NOT c.parent OPERATOR(pg_catalog.=) ANY (
                      SELECT t.tgrelid FROM triggers t
                       WHERE t.kind OPERATOR(pg_catalog.=) ANY ('{version_trigger,marker_trigger}'::pg_catalog.name[]))
            UNION ALL
           SELECT pg_catalog.format('its rows are children of table %s, and a trigger is gone: not every change moves their parents',
                      c.parent::pg_catalog.regclass),
                  pg_catalog.format('SELECT interlock.guard_children(%L, %L, %L)', c.tgrelid::pg_catalog.regclass, c.parent::pg_catalog.regclass,
                      ARRAY(SELECT a.attname FROM pg_catalog.pg_attribute a
                             WHERE a.attrelid OPERATOR(pg_catalog.=) c.tgrelid AND a.attnum OPERATOR(pg_catalog.=) ANY (c.columns)
                             ORDER BY a.attnum))
            WHERE c.events OPERATOR(pg_catalog.<>) 28) f (finding, advice)
    UNION ALL
    SELECT r.tgrelid::pg_catalog.regclass, 'the table has a history and no key that names one row: writes are refused',
           pg_catalog.format('ALTER TABLE %s ADD PRIMARY KEY (%s)', r.tgrelid::pg_catalog.regclass,
               (SELECT pg_catalog.string_agg(pg_catalog.quote_ident(k.name), ', ' ORDER BY k.n)
                  FROM pg_catalog.unnest(r.texts[r.key_from:]) WITH ORDINALITY k (name, n)
                 WHERE k.n OPERATOR(pg_catalog.%) 2 OPERATOR(pg_catalog.=) 1)),
           ARRAY['history'], false
      FROM recorded r
     WHERE pg_catalog.cardinality(r.texts) OPERATOR(pg_catalog.>=) r.key_from
       AND NOT EXISTS (SELECT FROM pg_catalog.pg_index i
                        WHERE i.indrelid OPERATOR(pg_catalog.=) r.tgrelid AND i.indisunique AND i.indimmediate AND i.indisvalid
                          AND i.indpred IS NULL AND i.indexprs IS NULL)
    UNION ALL
    SELECT r.tgrelid::pg_catalog.regclass,
           pg_catalog.format('the history is in table %s of another owner: writes are refused', r.tgconstrrelid::pg_catalog.regclass),
           -- No statement: roles with TRIGGER on one of the tables can have made the trigger, to get the other one.
           pg_catalog.format('if the table is the history, ALTER TABLE ... OWNER TO gives it back; if not, drop trigger "%s"', r.tgname),
           ARRAY['history'], false
      FROM recorded r
     WHERE r.relowner OPERATOR(pg_catalog.<>) r.history_owner
    UNION ALL
    SELECT r.tgrelid::pg_catalog.regclass,
           pg_catalog.format('column "%s" of history table %s is gone: writes are refused', m.name, r.tgconstrrelid::pg_catalog.regclass),
           pg_catalog.format('SELECT interlock.disable_history(%1$L), interlock.enable_history(%1$L, %2$L, %3$L%4$s) -- into a new table',
               r.tgrelid::pg_catalog.regclass, NULLIF(r.texts[1], ''), NULLIF(r.texts[2], ''), s.others),
           ARRAY['history'], false
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
           'enable_history with the present names',
           ARRAY['history'], true
      FROM recorded r
     CROSS JOIN pg_catalog.unnest(r.ignored_columns) m (name)
     WHERE NOT EXISTS (SELECT FROM pg_catalog.pg_attribute a
                        WHERE a.attrelid OPERATOR(pg_catalog.=) r.tgrelid AND a.attname OPERATOR(pg_catalog.=) m.name::pg_catalog.name
                          AND a.attnum OPERATOR(pg_catalog.>) 0 AND NOT a.attisdropped)
    UNION ALL
    SELECT DISTINCT i.inhrelid::pg_catalog.regclass,
           CASE c.kind WHEN 'version_trigger' THEN 'the table inherits from a versioned one and is not versioned itself'
                       WHEN 'transition_trigger' THEN
                           pg_catalog.format('the table inherits from one with transitions of column "%s" and has none itself', c.subject)
                       WHEN 'marker_trigger' THEN 'the table inherits from one with markers and has none itself'
                       ELSE 'the table inherits from one with owned columns and has none itself' END,
           CASE c.kind WHEN 'version_trigger' THEN
                           pg_catalog.format('SELECT interlock.enable_versioning(%L, %L)', i.inhrelid::pg_catalog.regclass, c.subject)
                       WHEN 'transition_trigger' THEN 'define_transitions for it as well'
                       WHEN 'marker_trigger' THEN 'enable_marker for it as well'
                       ELSE 'own_columns for it as well' END,
           ARRAY[c.mechanism], false
      FROM inheritable c
      JOIN pg_catalog.pg_inherits i ON i.inhparent OPERATOR(pg_catalog.=) c.tgrelid
     WHERE NOT (i.inhrelid, c.tgfoid, c.state_column) OPERATOR(pg_catalog.=) ANY (
               SELECT child.tgrelid, child.tgfoid, child.state_column FROM inheritable child)
    UNION ALL
    SELECT v.tgrelid::pg_catalog.regclass,
           CASE v.blind_updates WHEN 'reject' THEN 'the library was not preloaded: statements that were planned before it was loaded are refused'
                                ELSE 'the library was not preloaded: blind updates that were planned before it was loaded are not warned of' END,
           pg_catalog.format('add pg_interlock to shared_preload_libraries, or ALTER DATABASE %I SET session_preload_libraries = %L',
               pg_catalog.current_database(),
               pg_catalog.concat_ws(', ', NULLIF(pg_catalog.current_setting('session_preload_libraries'), ''), 'pg_interlock')),
           ARRAY[v.mechanism], false
      FROM (SELECT c.tgrelid, c.mechanism, c.texts[2] AS blind_updates
              FROM checks c
             WHERE c.kind OPERATOR(pg_catalog.=) 'version_trigger'
             UNION
            SELECT r.tgrelid, r.mechanism, pg_catalog.min(r.value COLLATE pg_catalog."C") -- reject, if any is
              FROM rules r
             WHERE r.rule OPERATOR(pg_catalog.=) 'blind'
             GROUP BY r.tgrelid, r.mechanism) v
     CROSS JOIN interlock_internal.is_preloaded() p
     WHERE NOT p.for_statements AND v.blind_updates OPERATOR(pg_catalog.=) ANY ('{warn,reject}'::pg_catalog.text[])
    UNION ALL
    SELECT DISTINCT t.tgrelid::pg_catalog.regclass,
           'shared_preload_libraries does not have the library: there are no leases, and writes are refused',
           'add pg_interlock to shared_preload_libraries, and restart the server',
           ARRAY[t.mechanism], false
      FROM triggers t
     CROSS JOIN interlock_internal.is_preloaded() p
     WHERE NOT p.for_all AND t.kind OPERATOR(pg_catalog.=) 'lease_trigger';
END;
COMMENT ON FUNCTION interlock_internal.list_findings(boolean) IS
'For check_versioning and the view guards: what check_versioning lists, the mechanisms that a finding is about, by their names in guards, and
whether they hold nevertheless. Without reads_history it reads the catalog alone, and does not list keys that are used again.';

CREATE FUNCTION interlock.check_versioning(OUT rel regclass, OUT finding text, OUT advice text) RETURNS SETOF record
    LANGUAGE sql STABLE
BEGIN ATOMIC
    SELECT f.rel, f.finding, f.advice FROM interlock_internal.list_findings(true) f;
END;
COMMENT ON FUNCTION interlock.check_versioning() IS
'Lists tables whose versions do not protect every write: trigger gone, disabled, for replicas only or not firing in this session,
version column gone or without the default that remembers deleted versions, inserts that set an old version (where a history shows
them to the caller), a subscription that writes past the trigger, an
inheriting table, also of one with transitions, markers or owned columns; BEFORE triggers that fire after ours, so that
writes are refused; and triggers of other concepts that are disabled or do not fire, or refuse writes: a column that they name is
gone, a history has no key or a table of another owner, children have lost a trigger, their foreign key or the versions of
their parents; or needs the library preloaded where it is not. No rows: all tables are protected.';
