\echo Use "CREATE EXTENSION pg_interlock" to load this file. \quit

-- The schema may have been there before (src/install.cpp).
CREATE FUNCTION interlock.check_schema() RETURNS void
    LANGUAGE c AS 'MODULE_PATHNAME';
SELECT interlock.check_schema();
DROP FUNCTION interlock.check_schema();

GRANT USAGE ON SCHEMA interlock TO PUBLIC;
COMMENT ON SCHEMA interlock IS 'pg_interlock: keeps concurrent writers from hurting each other''s data';

-- Every verb that takes a key exists twice: for text, which also takes parameters that a driver sends without
-- a type, and for a value of any other type (bigint, uuid, ...; a jsonb object for composite keys).

-- Versioned rows

CREATE FUNCTION interlock.version_trigger() RETURNS trigger
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.version_trigger() IS
'Moves the version of an updated row. Created by enable_versioning; arguments: version column, ignored columns.
Accepts a counter set to exactly old+1, refuses any other value (IL001); a timestamp always moves forward, and is refused
when it is more than a minute ahead of the clock (22008), in new rows too.';

CREATE FUNCTION interlock.first_version(floor text) RETURNS bigint
    LANGUAGE c STABLE AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.first_version(text) IS
'The version a new row starts at: above the version of every row of the table that was deleted.
The default of a version column calls it with the name of the sequence that keeps that version. The sequence is found when a row is inserted,
also after it, its table or its schema was renamed; without one a row starts at 1, until enable_versioning creates it.
Errors: 22004, 22023 not schema.sequence, 42809 no sequence, 42501 no SELECT on it.';

CREATE FUNCTION interlock.enable_versioning(
    rel regclass, version_column name = 'version', ignore_columns name[] = '{}') RETURNS void
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.enable_versioning(regclass, name, name[]) IS
'Lets every update of a row move its version, whoever writes. For the owner of the table.
The column is an integer or bigint counter, or an existing timestamp; a missing one is added as bigint, 1 in every row.
Updates that change ignored columns only do not move it. Calling it again changes the ignored columns.
A counter gets a sequence beside the table, which remembers the versions of rows that were deleted; hence the caller also
needs CREATE on its schema.
Errors: 42501 not the owner, or no CREATE on the schema, 42804 column of another type, 42703 unknown ignored column,
22023 an ignored column that share_columns merges, 55000 versioned by another column.';

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
'As versioned_update, but reports a conflict instead of raising. Outcomes: updated (version is the new one), conflict
(version and current are the row as it is now, as far as the caller may read it), not_found, and with
on_conflict => ''merge'' and the row the client read as base: merged (current is the row after it), where columns that
only one side changed are combined; columns both changed stay a conflict and are named in conflicts.';
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
'As versioned_delete, but reports. Outcomes: deleted, conflict (with the row''s version and content), not_found.';
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

CREATE FUNCTION interlock.versioned_update_many(
    rel regclass, updates jsonb, all_or_nothing boolean = false,
    OUT key jsonb, OUT outcome text, OUT version bigint, OUT version_time timestamptz) RETURNS SETOF record
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.versioned_update_many(regclass, jsonb, boolean) IS
'try_versioned_update for many rows: updates is [{"key": ..., "version": ..., "changes": {...}}, ...]. One result row for
each, in the order given; the rows are written in key order, so that two calls cannot deadlock over them. version is the
counter, version_time the timestamp, after updated the new one and after conflict the present one.
With all_or_nothing the first conflict (IL001) or missing row (P0002) is raised and nothing is written.';

CREATE FUNCTION interlock.update_with_retry(
    rel regclass, key text, transform regprocedure, args jsonb = '{}', max_retries integer = 3,
    OUT outcome text, OUT version bigint, OUT attempts integer, OUT version_time timestamptz)
    LANGUAGE c AS 'MODULE_PATHNAME';
CREATE FUNCTION interlock.update_with_retry(
    rel regclass, key "any", transform regprocedure, args jsonb = '{}', max_retries integer = 3,
    OUT outcome text, OUT version bigint, OUT attempts integer, OUT version_time timestamptz)
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.update_with_retry(regclass, text, regprocedure, jsonb, integer) IS
'Reads the row, asks transform(current jsonb, args jsonb) for the changes, writes them if the row is still the same, and
starts again when it is not; a retry locks the row before it reads. Outcomes: updated, unchanged (the transform returned
null or {}), conflict (after max_retries), not_found. The transform runs with the caller''s rights and may run several times.
Errors: 42501 no EXECUTE on the transform, 22023 another signature, 40001 under REPEATABLE READ and above.';
COMMENT ON FUNCTION interlock.update_with_retry(regclass, "any", regprocedure, jsonb, integer) IS
'As update_with_retry(regclass, text, regprocedure, jsonb, integer), for a key of another type.';

CREATE FUNCTION interlock.check_versioning(OUT rel regclass, OUT finding text, OUT advice text) RETURNS SETOF record
    LANGUAGE sql STABLE
BEGIN ATOMIC
    WITH own AS (
        SELECT p.oid, p.proname
          FROM pg_catalog.pg_proc p
          JOIN pg_catalog.pg_proc v ON v.pronamespace OPERATOR(pg_catalog.=) p.pronamespace
         WHERE v.oid OPERATOR(pg_catalog.=) 'interlock.version_trigger()'::pg_catalog.regprocedure
           AND p.proname OPERATOR(pg_catalog.=) ANY ('{version_trigger,transition_trigger,marker_trigger,ownership_trigger}'::pg_catalog.name[])),
    checks AS (
        SELECT t.oid, t.tgrelid, t.tgname, t.tgenabled, t.tgparentid, t.tgtype, t.tgfoid, own.proname AS kind,
               pg_catalog.convert_from(
                   pg_catalog.substring(t.tgargs, 1, pg_catalog.position(t.tgargs, '\x00'::pg_catalog.bytea) - 1),
                   pg_catalog.getdatabaseencoding()) AS subject
          FROM pg_catalog.pg_trigger t
          JOIN own ON own.oid OPERATOR(pg_catalog.=) t.tgfoid
         WHERE t.tgnargs OPERATOR(pg_catalog.>) 0
           AND (own.proname OPERATOR(pg_catalog.<>) 'ownership_trigger'
                OR pg_catalog.position(t.tgargs, '\x006f776e3a'::pg_catalog.bytea) OPERATOR(pg_catalog.>) 0)), -- own:
    versioned AS (
        SELECT c.oid, c.tgrelid, c.tgname, c.tgenabled, c.tgparentid, c.subject AS version_column
          FROM checks c
         WHERE c.kind OPERATOR(pg_catalog.=) 'version_trigger'),
    defaults AS ( -- of counters; to ask for an expression as it is written would wait for a table that somebody has locked
        SELECT v.oid, v.tgrelid, v.tgparentid, v.version_column, d.adbin::pg_catalog.text AS expression,
               EXISTS (SELECT FROM pg_catalog.pg_depend u
                         JOIN pg_catalog.pg_proc p ON p.oid OPERATOR(pg_catalog.=) u.refobjid
                        WHERE u.classid OPERATOR(pg_catalog.=) 'pg_catalog.pg_attrdef'::pg_catalog.regclass
                          AND u.objid OPERATOR(pg_catalog.=) d.oid
                          AND u.refclassid OPERATOR(pg_catalog.=) 'pg_catalog.pg_proc'::pg_catalog.regclass
                          AND p.proname OPERATOR(pg_catalog.=) 'first_version'
                          AND p.pronamespace OPERATOR(pg_catalog.=) (
                                  SELECT o.pronamespace FROM pg_catalog.pg_proc o
                                   WHERE o.oid OPERATOR(pg_catalog.=) 'interlock.version_trigger()'::pg_catalog.regprocedure)) AS reads_floor,
               (SELECT pg_catalog.format('%I.%I', n.nspname, s.relname)
                  FROM pg_catalog.pg_depend o
                  JOIN pg_catalog.pg_class s ON s.oid OPERATOR(pg_catalog.=) o.objid AND s.relkind OPERATOR(pg_catalog.=) 'S'
                  JOIN pg_catalog.pg_namespace n ON n.oid OPERATOR(pg_catalog.=) s.relnamespace
                 WHERE o.classid OPERATOR(pg_catalog.=) 'pg_catalog.pg_class'::pg_catalog.regclass
                   AND o.refclassid OPERATOR(pg_catalog.=) 'pg_catalog.pg_class'::pg_catalog.regclass
                   AND o.refobjid OPERATOR(pg_catalog.=) v.tgrelid AND o.refobjsubid OPERATOR(pg_catalog.=) a.attnum
                   AND o.deptype OPERATOR(pg_catalog.=) 'a'
                 ORDER BY s.oid LIMIT 1) AS floor
          FROM versioned v
          JOIN pg_catalog.pg_attribute a
            ON a.attrelid OPERATOR(pg_catalog.=) v.tgrelid AND a.attname OPERATOR(pg_catalog.=) v.version_column::pg_catalog.name
           AND a.atttypid OPERATOR(pg_catalog.=) ANY (ARRAY['pg_catalog.int4'::pg_catalog.regtype,
                   'pg_catalog.int8'::pg_catalog.regtype]::pg_catalog.oid[])
          LEFT JOIN pg_catalog.pg_attrdef d
            ON d.adrelid OPERATOR(pg_catalog.=) v.tgrelid AND d.adnum OPERATOR(pg_catalog.=) a.attnum)
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
           'disable_versioning, then enable_versioning with the present name'
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
           CASE WHEN d.floor IS NULL OR d.reads_floor THEN 'enable_versioning again, with the same ignore_columns'
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
    SELECT v.tgrelid::pg_catalog.regclass, 'a subscription writes to the table without firing the trigger',
           pg_catalog.format('version the rows on the publisher, or ALTER TABLE %s ENABLE ALWAYS TRIGGER %I',
               v.tgrelid::pg_catalog.regclass, v.tgname)
      FROM versioned v
      JOIN pg_catalog.pg_subscription_rel s ON s.srrelid OPERATOR(pg_catalog.=) v.tgrelid
     WHERE v.tgenabled OPERATOR(pg_catalog.<>) 'A'
    UNION ALL
    SELECT i.inhrelid::pg_catalog.regclass,
           CASE c.kind WHEN 'version_trigger' THEN 'the table inherits from a versioned one and is not versioned itself'
                       WHEN 'transition_trigger' THEN
                           pg_catalog.format('the table inherits from one with transitions of column "%s" and has none itself', c.subject)
                       WHEN 'marker_trigger' THEN 'the table inherits from one with markers and has none itself'
                       ELSE 'the table inherits from one with owned columns and has none itself' END,
           CASE c.kind WHEN 'version_trigger' THEN 'enable_versioning for it as well'
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
'Lists tables whose versions do not protect every write: trigger disabled, for replicas only or not firing in this session,
version column gone or without the default that remembers deleted versions, a subscription that writes past the trigger, an
inheriting table, also of one with transitions, markers or owned columns; and BEFORE triggers that fire after ours, so that
writes are refused. No rows: all is well.';

-- Status transitions

CREATE FUNCTION interlock.transition_trigger() RETURNS trigger
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.transition_trigger() IS
'Refuses a change of state that is not declared (IL002). Created by define_transitions; arguments: state column,
transitions, initial states.
Judges updates; new rows are judged by initial_state_trigger.';

CREATE FUNCTION interlock.initial_state_trigger() RETURNS trigger
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.initial_state_trigger() IS
'Refuses a new row whose state is not initial (IL002). Created by define_transitions when there are initial states;
argument: state column.';

CREATE FUNCTION interlock.define_transitions(
    rel regclass, state_column name, transitions jsonb, initial text[] = NULL) RETURNS void
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.define_transitions(regclass, name, jsonb, text[]) IS
'Declares which states may follow which: {"pending": ["paid", "cancelled"], "paid": ["shipped"]}. For the owner of the table.
The column is of a text, integer or enum type. Every writer is held to it, raw SQL too; when initial is given, inserted rows
start in one of those states. Calling it again replaces the declaration; rows in a state that is no longer declared stay and
cannot leave it. Errors: 42501 not the owner, 42703 no such column, 42804 type, 22023 shape, 22P02 no state of that type.';

CREATE FUNCTION interlock.drop_transitions(rel regclass, state_column name) RETURNS void
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.drop_transitions(regclass, name) IS
'Lets the column change freely again. For the owner of the table. Errors: 55000 no transitions.';

CREATE FUNCTION interlock.transition(
    rel regclass, key text, from_state text, to_state text, changes jsonb = '{}', state_column name = NULL) RETURNS void
    LANGUAGE c AS 'MODULE_PATHNAME';
CREATE FUNCTION interlock.transition(
    rel regclass, key "any", from_state text, to_state text, changes jsonb = '{}', state_column name = NULL) RETURNS void
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.transition(regclass, text, text, text, jsonb, name) IS
'Moves one row from one state to another and makes the other changes with it, if it is still in the first state: of callers
that race exactly one wins. state_column is needed where several columns have transitions.
Errors: IL002 not declared, IL003 the row is in another state, P0002 no such row, 55000 no transitions,
09000 the owner of the state column, or a trigger, has kept the state, 40001 under REPEATABLE READ and above when the row changed after the snapshot.';
COMMENT ON FUNCTION interlock.transition(regclass, "any", text, text, jsonb, name) IS
'As transition(regclass, text, text, text, jsonb, name), for a key of another type.';

CREATE FUNCTION interlock.try_transition(
    rel regclass, key text, from_state text, to_state text, changes jsonb = '{}', state_column name = NULL,
    OUT outcome text, OUT state text)
    LANGUAGE c AS 'MODULE_PATHNAME';
CREATE FUNCTION interlock.try_transition(
    rel regclass, key "any", from_state text, to_state text, changes jsonb = '{}', state_column name = NULL,
    OUT outcome text, OUT state text)
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.try_transition(regclass, text, text, text, jsonb, name) IS
'As transition, but reports. Outcomes: transitioned, state_changed, not_allowed, not_found; state is the row''s state afterwards.';
COMMENT ON FUNCTION interlock.try_transition(regclass, "any", text, text, jsonb, name) IS
'As try_transition(regclass, text, text, text, jsonb, name), for a key of another type.';

-- State markers

CREATE FUNCTION interlock.marker_trigger() RETURNS trigger
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.marker_trigger() IS
'Judges every write to a table with markers. Created by enable_marker; arguments: timeout, enforce or advise, and the columns
for status, holder, time, deadline and reason.';

CREATE FUNCTION interlock.marker_notify_trigger() RETURNS trigger
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.marker_notify_trigger() IS
'Tells listeners what became of the markers of a table, after the write. Created by enable_marker with notify;
argument: full, to tell key and holder too.';

CREATE FUNCTION interlock.enable_marker(
    rel regclass, timeout interval = '5 min', enforce boolean = true, notify text = 'off',
    status_column name = 'lock_status', holder_column name = 'lock_by', time_column name = 'lock_time',
    until_column name = 'lock_until', reason_column name = 'lock_reason', sweep_index boolean = true) RETURNS void
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.enable_marker(regclass, interval, boolean, text, name, name, name, name, name, boolean) IS
'Lets people and programs hold rows while they edit them: status 0 is free, 1 is being edited. For the owner of the table.
Missing columns are added, existing ones adopted. timeout is how long a marker lives without a touch. enforce: nobody but the
live holder may update or delete the row (IL004); without it the marker only keeps others from taking it over. notify: NOTIFY
interlock_row_lock with {table, event} (on), or {table, key, event, holder} (full): every listener sees them. sweep_index: an index over the deadlines of marked rows, so that a sweep
takes no longer in a large table; without it a sweep reads the table, and rows are marked and released in their page (HOT).
Calling it again changes the settings. A status column with other values than 0 and 1, with a 1 that has no holder and no time,
with transitions or with a CHECK that lets other values in is refused. Errors: 42501 not the owner, 42804 column type, 22023
timeout not positive, 55000 the status column means something else.';

CREATE FUNCTION interlock.disable_marker(rel regclass) RETURNS void
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.disable_marker(regclass) IS
'Removes the trigger and its index; the columns and what they say stay. For the owner of the table.';

CREATE FUNCTION interlock.set_holder(holder text) RETURNS void
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.set_holder(text) IS
'Says who writes for the rest of this transaction, so that the holder of a marked row may update it with plain SQL.
Ends with the transaction and rolls back with a savepoint. Null: nobody. Errors: 22023 empty or longer than 1024 bytes.';

CREATE TYPE interlock.lock_row_result AS (
    locked boolean, holder text, locked_at timestamptz, expires_at timestamptz);
COMMENT ON TYPE interlock.lock_row_result IS
'What lock_row answers: whether the caller holds the row now, and who holds it since when and until when.';

CREATE FUNCTION interlock.lock_row(
    rel regclass, key text, holder text, timeout interval = NULL, reason text = NULL) RETURNS interlock.lock_row_result
    LANGUAGE c AS 'MODULE_PATHNAME';
CREATE FUNCTION interlock.lock_row(
    rel regclass, key "any", holder text, timeout interval = NULL, reason text = NULL) RETURNS interlock.lock_row_result
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.lock_row(regclass, text, text, interval, text) IS
'Marks the row as edited by the holder, or says who holds it: a refusal is no error. The same holder renews; an expired marker
is free. timeout: of this marker, instead of the table''s. Waits while a transaction is writing the row (lock_timeout counts).
Errors: P0002 no such row, 22023 holder empty or longer than 1024 bytes or timeout not positive, 55000 no markers,
40001 under REPEATABLE READ and above when the row changed after the snapshot.';
COMMENT ON FUNCTION interlock.lock_row(regclass, "any", text, interval, text) IS
'As lock_row(regclass, text, text, interval, text), for a key of another type.';

CREATE FUNCTION interlock.unlock_row(rel regclass, key text, holder text) RETURNS boolean
    LANGUAGE c AS 'MODULE_PATHNAME';
CREATE FUNCTION interlock.unlock_row(rel regclass, key "any", holder text) RETURNS boolean
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.unlock_row(regclass, text, text) IS
'Gives the marker back. False when the holder no longer had it: expired, taken by another, or the row is gone.';
COMMENT ON FUNCTION interlock.unlock_row(regclass, "any", text) IS
'As unlock_row(regclass, text, text), for a key of another type.';

CREATE FUNCTION interlock.touch_row(rel regclass, key text, holder text) RETURNS timestamptz
    LANGUAGE c AS 'MODULE_PATHNAME';
CREATE FUNCTION interlock.touch_row(rel regclass, key "any", holder text) RETURNS timestamptz
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.touch_row(regclass, text, text) IS
'Moves the deadline to the table''s timeout from now, never nearer, and returns it; null when the holder no longer had the marker.';
COMMENT ON FUNCTION interlock.touch_row(regclass, "any", text) IS
'As touch_row(regclass, text, text), for a key of another type.';

CREATE FUNCTION interlock.save_row(
    rel regclass, key text, holder text, changes jsonb, expected bigint = NULL) RETURNS bigint
    LANGUAGE c AS 'MODULE_PATHNAME';
CREATE FUNCTION interlock.save_row(
    rel regclass, key "any", holder text, changes jsonb, expected bigint = NULL) RETURNS bigint
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.save_row(regclass, text, text, jsonb, bigint) IS
'Writes the changes and gives the marker back in one step, if the holder still has it and, when expected is given, the version
is still that one. Returns the new version, null for a table without a version counter.
Errors: IL005 marker not held, IL001 version conflict, P0002 no such row, and those of versioned_update for the changes.';
COMMENT ON FUNCTION interlock.save_row(regclass, "any", text, jsonb, bigint) IS
'As save_row(regclass, text, text, jsonb, bigint), for a key of another type.';

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
'Every use of force_unlock_row: when, by whom, on which row, who held it, and why.';
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
'Takes the marker from whoever holds it and returns the holder; null when nobody did. Audited in row_lock_audit, in the same
transaction. Nobody but superusers may until it is granted; the caller also needs UPDATE on the table.';
COMMENT ON FUNCTION interlock.force_unlock_row(regclass, "any", text) IS
'As force_unlock_row(regclass, text, text), for a key of another type.';

CREATE FUNCTION interlock.row_lock(
    rel regclass, key text,
    OUT locked boolean, OUT holder text, OUT locked_at timestamptz, OUT expires_at timestamptz, OUT reason text)
    LANGUAGE c AS 'MODULE_PATHNAME';
CREATE FUNCTION interlock.row_lock(
    rel regclass, key "any",
    OUT locked boolean, OUT holder text, OUT locked_at timestamptz, OUT expires_at timestamptz, OUT reason text)
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.row_lock(regclass, text) IS
'Who holds the row, since when, until when and why; locked is false and the rest null when it is free or expired.
Errors: P0002 no such row.';
COMMENT ON FUNCTION interlock.row_lock(regclass, "any") IS
'As row_lock(regclass, text), for a key of another type.';

CREATE FUNCTION interlock.list_row_locks(
    OUT rel regclass, OUT key jsonb, OUT holder text, OUT locked_at timestamptz, OUT expires_at timestamptz,
    OUT reason text, OUT live boolean) RETURNS SETOF record
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.list_row_locks() IS
'The rows of the view row_locks. Tables the caller may not read are left out, and those whose row security applies to it, unless
they are its own or a superuser''s. Waits for no lock and calls nothing that the tables'' owners wrote; a table that is locked, or fails, is a
warning.';

CREATE VIEW interlock.row_locks AS SELECT * FROM interlock.list_row_locks();
GRANT SELECT ON interlock.row_locks TO PUBLIC;
COMMENT ON VIEW interlock.row_locks IS
'Every marked row that the current user may read, in all tables but those of other owners (superusers apart) whose row security
applies to it; live is false for a marker past its deadline.';

-- Sweeper

CREATE FUNCTION interlock.sweep(max_rows integer = NULL, OUT rel regclass, OUT released bigint) RETURNS SETOF record
    LANGUAGE c AS 'MODULE_PATHNAME';
REVOKE EXECUTE ON FUNCTION interlock.sweep(integer) FROM PUBLIC;
COMMENT ON FUNCTION interlock.sweep(integer) IS
'Releases expired markers now, of all tables, each as its owner, and says how many; at most max_rows. What cannot be released
is a warning and stays. Locked rows are left for the next time. Call it outside a transaction block, or after SET CONSTRAINTS ALL
IMMEDIATE: tables with deferred triggers are not released otherwise. Nobody but superusers may until it is granted.';

CREATE FUNCTION interlock.sweeper_status(
    OUT database text, OUT state text, OUT runs bigint, OUT released bigint, OUT failed bigint, OUT last_run timestamptz,
    OUT last_error text, OUT next_deadline timestamptz, OUT lag interval, OUT max_lag interval) RETURNS SETOF record
    LANGUAGE c AS 'MODULE_PATHNAME';
REVOKE EXECUTE ON FUNCTION interlock.sweeper_status() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION interlock.sweeper_status() TO pg_monitor;
COMMENT ON FUNCTION interlock.sweeper_status() IS
'The rows of the view sweeper. Errors: 55000 when pg_interlock is not in shared_preload_libraries.';

CREATE VIEW interlock.sweeper AS SELECT * FROM interlock.sweeper_status();
GRANT SELECT ON interlock.sweeper TO pg_monitor;
COMMENT ON VIEW interlock.sweeper IS
'What the sweeper does, by database: off, idle, waiting for next_deadline, due or running; markers released and releases that
failed since the server started; the last error, null when the last run went well; how late the last and the latest run began.';

CREATE FUNCTION interlock.wake_sweeper() RETURNS void
    LANGUAGE c AS 'MODULE_PATHNAME';
REVOKE EXECUTE ON FUNCTION interlock.wake_sweeper() FROM PUBLIC;
COMMENT ON FUNCTION interlock.wake_sweeper() IS
'Lets the sweeper look at this database as soon as the transaction has committed; without preload it does nothing.';
SELECT interlock.wake_sweeper();

-- Leases

CREATE TABLE interlock.lease_store (content bytea NOT NULL) WITH (autovacuum_enabled = off);
ALTER TABLE interlock.lease_store ALTER COLUMN content SET STORAGE PLAIN;
-- It has the secret of tokens, which pg_read_all_data must not see either.
ALTER TABLE interlock.lease_store ENABLE ROW LEVEL SECURITY;
COMMENT ON TABLE interlock.lease_store IS
'What has to be known of leases after a crash, and the secret of their tokens: written in place by the server, outside of transactions.
Never change it by hand, and let nobody read it: row security without a policy leaves it to superusers and roles with BYPASSRLS.';

CREATE FUNCTION interlock.lease_store_trigger() RETURNS trigger LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.lease_store_trigger() IS
'Keeps everybody from changing lease_store: 55000. Rows that logical replication brings are passed over.';
CREATE TRIGGER zzz_interlock_store BEFORE INSERT OR UPDATE OR DELETE ON interlock.lease_store
    FOR EACH ROW EXECUTE FUNCTION interlock.lease_store_trigger();
CREATE TRIGGER zzz_interlock_store_truncate BEFORE TRUNCATE ON interlock.lease_store
    FOR EACH STATEMENT EXECUTE FUNCTION interlock.lease_store_trigger();
ALTER TABLE interlock.lease_store ENABLE ALWAYS TRIGGER zzz_interlock_store;
ALTER TABLE interlock.lease_store ENABLE ALWAYS TRIGGER zzz_interlock_store_truncate;
COMMENT ON TRIGGER zzz_interlock_store ON interlock.lease_store IS 'See lease_store_trigger.';
COMMENT ON TRIGGER zzz_interlock_store_truncate ON interlock.lease_store IS 'See lease_store_trigger.';

CREATE FUNCTION interlock.note_lease_store() RETURNS void LANGUAGE c AS 'MODULE_PATHNAME';
REVOKE EXECUTE ON FUNCTION interlock.note_lease_store() FROM PUBLIC;
COMMENT ON FUNCTION interlock.note_lease_store() IS
'Tells the running server that lease_store is a new table, into which it has to write what it knows. Called when the extension is created.';
SELECT interlock.note_lease_store();

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
'Every use of break_lease: when, by whom, which lease, who held it, why, and the processes that were terminated because their
transactions pinned it.';
COMMENT ON SEQUENCE interlock.lease_audit_id_seq IS 'Numbers the rows of lease_audit.';
SELECT pg_catalog.pg_extension_config_dump('interlock.lease_audit', '');
SELECT pg_catalog.pg_extension_config_dump('interlock.lease_audit_id_seq', '');

CREATE FUNCTION interlock.acquire_lease(
    key text, ttl interval = '30 s', wait interval = '0', holder text = NULL, mode text = 'exclusive', bind text = 'ttl',
    OUT outcome text, OUT token bigint, OUT expires_at timestamptz, OUT holder text)
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.acquire_lease(text, interval, interval, text, text, text) IS
'Takes a lease on the key, a path if it has slashes, for ttl. outcome: acquired (with the token that proves it), held (holder and
expires_at of who has it), recovering (after a crash; expires_at says until when). Waits for wait at most (null: for ever), first
come, first served. holder is a label. mode: exclusive, shared. bind: ttl, or session: no time to live, it ends with the session.
Counts at once, whatever becomes of the transaction. Errors: 22004, 22023, 25006 on a standby, 53400 too many, 55000 not preloaded.';

CREATE FUNCTION interlock.acquire_permit(
    key text, capacity integer, ttl interval = '30 s', wait interval = '0', holder text = NULL,
    OUT outcome text, OUT token bigint, OUT expires_at timestamptz, OUT holder text)
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.acquire_permit(text, integer, interval, interval, text) IS
'As acquire_lease, for one of at most capacity permits on the key. It is renewed and released as a lease. Errors: as acquire_lease; 22023
for another capacity than that of permits that are held.';

CREATE FUNCTION interlock.acquire_leases(
    keys text[], ttl interval = '30 s', wait interval = '0', holder text = NULL,
    OUT outcome text, OUT tokens bigint[], OUT expires_at timestamptz, OUT blocked_by text, OUT holder text)
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.acquire_leases(text[], interval, interval, text) IS
'Takes leases on all the keys or on none, exclusive; tokens are in the order of keys. held: blocked_by is the key that could not be
had, holder who has it. Calls that wait take their keys in one order, so that two such calls never deadlock. Errors: as acquire_lease; 22023 when
one key is below another.';

CREATE FUNCTION interlock.renew_lease(key text, token bigint, ttl interval = NULL) RETURNS timestamptz
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.renew_lease(text, bigint, interval) IS
'Extends the lease to ttl from now (null: its ttl), never shortens it, and returns when it expires; null when it is lost. After a crash it
reclaims the lease (null: for 30 s). For members of the role that acquired the lease. Errors: 22004, 22023, 25006, 55000.';

CREATE FUNCTION interlock.release_lease(key text, token bigint) RETURNS boolean
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.release_lease(text, bigint) IS
'Gives the lease back, and returns whether it was held. If the transaction has asserted it, it is free for others when that has ended.
For members of the role that acquired the lease. Errors: 22004, 22023, 25006, 55000.';

CREATE FUNCTION interlock.assert_lease(key text, token bigint) RETURNS void
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.assert_lease(text, bigint) IS
'Raises IL006 unless a role that the caller is a member of holds the lease with the token, and keeps everybody from being granted it until the transaction has ended: who
lost it cannot commit over a successor. A transaction that has asserted a lease cannot be prepared. Errors: IL006, 22004, 22023, 25006,
53400, 55000.';

CREATE FUNCTION interlock.break_lease(key text, reason text, terminate boolean = false) RETURNS text
    LANGUAGE c AS 'MODULE_PATHNAME';
REVOKE EXECUTE ON FUNCTION interlock.break_lease(text, text, boolean) FROM PUBLIC;
COMMENT ON FUNCTION interlock.break_lease(text, text, boolean) IS
'Takes the lease on exactly this key from whoever holds it, at once, and returns the holder, several separated by commas; null when nobody
did. While open transactions pin the lease it raises 55006 and names their processes; terminate ends these sessions first, as
pg_terminate_backend does and with the rights that it needs. Audited in lease_audit, and in the server log, which stays when the transaction is
rolled back. Nobody but superusers may until it is granted. Errors: 22004, 22023, 25006, 42501, 55000, 55006.';

CREATE FUNCTION interlock.break_leases(pattern text, reason text, role name = NULL) RETURNS bigint
    LANGUAGE c AS 'MODULE_PATHNAME';
REVOKE EXECUTE ON FUNCTION interlock.break_leases(text, text, name) FROM PUBLIC;
COMMENT ON FUNCTION interlock.break_leases(text, text, name) IS
'Breaks all leases of this database whose keys match the LIKE pattern, of the role (null: of all), and returns how many. Each is audited as by
break_lease. Those that open transactions have asserted are passed over, with a warning that counts them. Nobody but superusers may until it is granted. Errors: 22004, 22023, 22025
the pattern, 25006, 42704 no such role, 55000.';

CREATE FUNCTION interlock.list_leases(
    OUT key text, OUT mode text, OUT holder text, OUT token bigint, OUT since timestamptz, OUT expires_at timestamptz,
    OUT ttl interval, OUT pid integer, OUT pins integer, OUT durable boolean, OUT pinned_by integer[], OUT pinned_since timestamptz)
    RETURNS SETOF record
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.list_leases() IS 'The rows of the view leases.';

CREATE VIEW interlock.leases AS SELECT * FROM interlock.list_leases();
GRANT SELECT ON interlock.leases TO PUBLIC;
COMMENT ON VIEW interlock.leases IS
'The leases of this database. token is shown to members of the role that acquired it; pid is the session it is bound to;
pins counts open transactions that have asserted it, pinned_by are their processes and pinned_since the start of the oldest; durable tells
one that has a record of its own.';

CREATE FUNCTION interlock.list_lease_waiters(
    OUT key text, OUT mode text, OUT holder text, OUT pid integer, OUT waiting_since timestamptz, OUT place integer)
    RETURNS SETOF record
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.list_lease_waiters() IS 'The rows of the view lease_waiters.';

CREATE VIEW interlock.lease_waiters AS SELECT * FROM interlock.list_lease_waiters();
GRANT SELECT ON interlock.lease_waiters TO PUBLIC;
COMMENT ON VIEW interlock.lease_waiters IS
'Who waits for leases of this database: all that have the first level of their keys in common are in one queue, place is the place there.';

CREATE FUNCTION interlock.list_usage(
    OUT what text, OUT database text, OUT role text, OUT used bigint, OUT "of" bigint) RETURNS SETOF record
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.list_usage() IS 'The rows of the view usage.';

CREATE VIEW interlock.usage AS SELECT * FROM interlock.list_usage();
GRANT SELECT ON interlock.usage TO PUBLIC;
COMMENT ON VIEW interlock.usage IS
'What is used of everything in shared memory that has a fixed size, on the whole server: in all (no role, no database), by role (of: the
share of the role, null for superusers) and by role and database. Totals are shown to everybody, the lines of a role to its members, and
all of them to pg_monitor.';

CREATE FUNCTION interlock.lease_trigger() RETURNS trigger
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.lease_trigger() IS
'Refuses a write in a transaction that has not asserted the lease for the row (IL006). Created by require_lease; arguments: template of
the key, columns whose change needs the lease (none: all).';

CREATE FUNCTION interlock.require_lease(rel regclass, key text = NULL, columns name[] = NULL) RETURNS void
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.require_lease(regclass, text, name[]) IS
'From now on whoever inserts, updates or deletes a row must have asserted, in the same transaction, an exclusive lease on its key or above it,
else IL006. For the owner of the table. key is a template: product:{id}/thumb, with {{ and }} for braces; null: the table''s name and
its key, doc:{id}. columns: updates need the lease only if they change one of them, or the key; inserts and deletes always do. A table
may require several leases; the same key again replaces the columns. Errors: 42501 not the owner, 42703 no such column, 42804 type, 428C9
virtual column, 22004, 22023 template, 42809 no table, 55000 no key. Errors of a write: IL006; 22004 null and 22023 slash in a
column of the key; 55000 the columns do not fit any more.';

CREATE FUNCTION interlock.unrequire_lease(rel regclass, key text = NULL) RETURNS void
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.unrequire_lease(regclass, text) IS
'Lets everybody write again without the lease of that template; null: the only one that the table requires. For the owner of the table.
Errors: 42501 not the owner, 22023 it requires several, 55000 it does not require it.';

-- Key locks

CREATE FUNCTION interlock.lock_key(
    key text, mode text = 'exclusive', timeout interval = NULL, scope text = 'transaction') RETURNS void
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.lock_key(text, text, interval, text) IS
'Locks a name. Modes: shared, update, exclusive, intent_shared, intent_exclusive. Scopes: transaction (until the transaction or
savepoint ends), session (until unlock_keys). timeout: null waits without end, zero not at all. A key with / is a path: its
ancestors get the intent mode. Errors: 55P03 not free in time, with the others in DETAIL; 40P01 deadlock; 53400 too many keys.';

CREATE FUNCTION interlock.lock_keys(
    keys text[], mode text = 'exclusive', timeout interval = NULL, scope text = 'transaction') RETURNS void
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.lock_keys(text[], text, interval, text) IS
'As lock_key, for several names: all or none, in one order whatever order they are given in, so that two calls never deadlock;
timeout is for all of them together.';

CREATE FUNCTION interlock.try_lock_keys(
    keys text[], mode text = 'exclusive', timeout interval = '0', scope text = 'transaction') RETURNS boolean
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.try_lock_keys(text[], text, interval, text) IS
'As lock_keys, but returns false, holding none of them, when they are not all free in time.';

CREATE FUNCTION interlock.unlock_keys(keys text[], mode text = 'exclusive') RETURNS boolean
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.unlock_keys(text[], text) IS
'Gives session locks back, each as often as it was taken; false when the session did not hold all of them in that mode.
Transaction locks end with their transaction.';

CREATE FUNCTION interlock.list_key_locks(
    OUT key text, OUT kind text, OUT mode text, OUT pid integer, OUT waiting boolean, OUT wait_start timestamptz,
    OUT hash bigint) RETURNS SETOF record
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.list_key_locks() IS 'The rows of the view key_locks.';

CREATE VIEW interlock.key_locks AS SELECT * FROM interlock.list_key_locks();
GRANT SELECT ON interlock.key_locks TO PUBLIC;
COMMENT ON VIEW interlock.key_locks IS
'Who holds and who waits for the key locks and application locks of this database. key is null where the name is not known:
without preload, and for prepared transactions, whose pid is null; of idempotency also in sessions of other roles, but for
members of pg_read_all_stats.';

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
'SQL Server''s sp_releaseapplock: 0 released, -999 not held by that owner. A lock that was got several times is free after as
many releases, with all its modes.';

CREATE FUNCTION interlock.applock_mode(resource text, lock_owner text = 'Transaction') RETURNS text
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.applock_mode(text, text) IS
'SQL Server''s APPLOCK_MODE: what this session''s owner holds: NoLock, IntentShared, IntentExclusive, Shared, Update, Exclusive,
SharedIntentExclusive or UpdateIntentExclusive. Errors: 22004, 22023.';

CREATE FUNCTION interlock.applock_test(resource text, lock_mode text, lock_owner text = 'Transaction') RETURNS integer
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.applock_test(text, text, text) IS
'SQL Server''s APPLOCK_TEST: 1 when getapplock would be granted at once, else 0. It takes nothing. Errors: 22004, 22023.';

-- Row locks

CREATE FUNCTION interlock.lock_rows(rel regclass, keys text, strength text = 'update', wait text = 'wait', OUT key jsonb)
    RETURNS SETOF jsonb
    LANGUAGE c AS 'MODULE_PATHNAME';
CREATE FUNCTION interlock.lock_rows(rel regclass, keys "any", strength text = 'update', wait text = 'wait', OUT key jsonb)
    RETURNS SETOF jsonb
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.lock_rows(regclass, text, text, text) IS
'Locks rows in the order of their keys, whatever order they are given in, so that two calls never deadlock; returns the keys of
the rows that are there. keys: an array of the key''s type ({1,2}), or for a composite key a JSON array of objects. strength: update, no_key_update, share, key_share. wait: wait, nowait, skip_locked, or a time for all
of them together. Needs the privileges of the SELECT ... FOR it runs. Errors: 55P03 not free in time, 55000 no key,
40001 under REPEATABLE READ and above when a row changed after the snapshot.';
COMMENT ON FUNCTION interlock.lock_rows(regclass, "any", text, text) IS
'As lock_rows(regclass, text, text, text), for an array of any type, or a jsonb array.';

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
COMMENT ON TABLE interlock.idempotency_scope IS 'How the keys of a scope live and end; written by define_idempotency_scope.';
GRANT SELECT ON interlock.idempotency_scope TO PUBLIC;
SELECT pg_catalog.pg_extension_config_dump('interlock.idempotency_scope', '');

CREATE FUNCTION interlock.idempotency_scope_trigger() RETURNS trigger LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.idempotency_scope_trigger() IS
'Announces changes of idempotency_scope and idempotency_grant to all sessions, which cache what they say. Without it each
claim reads the table.';
CREATE TRIGGER zzz_interlock_scope BEFORE INSERT OR UPDATE OR DELETE ON interlock.idempotency_scope
    FOR EACH ROW EXECUTE FUNCTION interlock.idempotency_scope_trigger();
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
"public" everybody. grant_idempotency_scope and revoke_idempotency_scope write it. A role that is renamed or dropped loses
nothing here: revoke_idempotency_scope does that.';
SELECT pg_catalog.pg_extension_config_dump('interlock.idempotency_grant', '');
CREATE TRIGGER zzz_interlock_scope BEFORE INSERT OR UPDATE OR DELETE ON interlock.idempotency_grant
    FOR EACH ROW EXECUTE FUNCTION interlock.idempotency_scope_trigger();
ALTER TABLE interlock.idempotency_grant ENABLE ALWAYS TRIGGER zzz_interlock_scope;
COMMENT ON TRIGGER zzz_interlock_scope ON interlock.idempotency_grant IS 'See idempotency_scope_trigger.';

CREATE SEQUENCE interlock.idempotency_token;
COMMENT ON SEQUENCE interlock.idempotency_token IS 'The tokens of claims: each is greater than all before.';
SELECT pg_catalog.pg_extension_config_dump('interlock.idempotency_token', '');

CREATE TABLE interlock.idempotency (
    scope text COLLATE pg_catalog."C" NOT NULL,
    key text COLLATE pg_catalog."C" NOT NULL,
    status text NOT NULL DEFAULT 'PENDING',
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
    CHECK (status OPERATOR(pg_catalog.=) ANY ('{PENDING,COMPLETED,FAILED}')))
    WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02);
CREATE INDEX idempotency_expires_idx ON interlock.idempotency (expires_at);
COMMENT ON TABLE interlock.idempotency IS
'The keys: PENDING until the deadline, then COMPLETED or FAILED until they expire. response_omitted: it was larger than the
scope allows. Users of the functions need a grant of the scope (grant_idempotency_scope) and no right here; the functions work
with the owner''s rights, past row security.';
COMMENT ON INDEX interlock.idempotency_expires_idx IS 'What the sweeper deletes.';
SELECT pg_catalog.pg_extension_config_dump('interlock.idempotency', '');

CREATE FUNCTION interlock.define_idempotency_scope(
    scope text, model text = 'api', ttl interval = '24 h', stale_after interval = '1 min',
    replay_failures boolean = false, max_response_bytes integer = 65536) RETURNS void
    LANGUAGE c AS 'MODULE_PATHNAME';
REVOKE EXECUTE ON FUNCTION interlock.define_idempotency_scope(text, text, interval, interval, boolean, integer) FROM PUBLIC;
COMMENT ON FUNCTION interlock.define_idempotency_scope(text, text, interval, interval, boolean, integer) IS
'How the keys of a scope live: ttl after their end, stale_after without a sign of life before somebody else may take them over.
model: api (the response is replayed) or job (checkpoints, which a takeover gets). replay_failures: retryable failures, too.
A larger response is not kept; its key is never run again all the same. A scope that is not defined has these defaults.
Needs INSERT and UPDATE on interlock.idempotency_scope. Errors: 22004, 22023.';

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
'Claims a key, or says what is in the way: acquired (with the token), replay (it is completed, with its response), failed,
in_progress (somebody has it; waits for the end as long as wait says), mismatch (the key was used with another request; equal
JSON is equal). Takes over what had no sign of life for stale_after. This and the functions below need a grant of the scope.
Errors: 42501 the scope is not granted to a role of the current user; 40001 under REPEATABLE READ and above when the key changed after the snapshot; 22004, 22023.';

CREATE FUNCTION interlock.idempotency_complete(
    scope text, key text, token bigint, response jsonb = NULL, result_id text = NULL) RETURNS void
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.idempotency_complete(text, text, bigint, jsonb, text) IS
'Ends a claim well. Once more with the same token and response does nothing. Errors: IL008 the claim was taken over or has ended.';

CREATE FUNCTION interlock.idempotency_fail(
    scope text, key text, token bigint, error jsonb = NULL, retryable boolean = true) RETURNS void
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.idempotency_fail(text, text, bigint, jsonb, boolean) IS
'Ends a claim badly: the next claim tries again if it is retryable, else it is told failed with the error. Errors: IL008.';

CREATE FUNCTION interlock.idempotency_checkpoint(
    scope text, key text, token bigint, name text, state jsonb = NULL) RETURNS void
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.idempotency_checkpoint(text, text, bigint, text, jsonb) IS
'Notes how far a job has come, for who takes it over, and extends its claim. Errors: IL008, 55000 the scope is not of model job.';

CREATE FUNCTION interlock.idempotency_extend(scope text, key text, token bigint) RETURNS timestamptz
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.idempotency_extend(text, text, bigint) IS
'A sign of life: the deadline is stale_after from now, and returned. Errors: IL008.';

CREATE FUNCTION interlock.idempotency_assert(scope text, key text, token bigint) RETURNS void
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.idempotency_assert(text, text, bigint) IS
'Raises IL008 unless the claim is held, and keeps everybody from taking it over until the transaction has ended: who lost it
cannot commit.';

CREATE FUNCTION interlock.run_once(
    scope text, key text, command regprocedure, request jsonb = NULL, OUT outcome text, OUT response jsonb)
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.run_once(text, text, regprocedure, jsonb) IS
'Claims the key, runs command(request jsonb), which returns jsonb or void, and completes the key with what it returns, all in
the caller''s transaction: completed; else replay, failed, in_progress or mismatch as idempotency_claim.';

CREATE FUNCTION interlock.idempotency_key(VARIADIC parts text[]) RETURNS text
    LANGUAGE c IMMUTABLE PARALLEL SAFE AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.idempotency_key(text[]) IS
'Joins the parts with : and escapes what is in them, so that different parts never make one key. Errors: 22004, 22023.';

CREATE FUNCTION interlock.idempotency_sweep(max_rows integer = 1000) RETURNS bigint
    LANGUAGE c AS 'MODULE_PATHNAME';
REVOKE EXECUTE ON FUNCTION interlock.idempotency_sweep(integer) FROM PUBLIC;
COMMENT ON FUNCTION interlock.idempotency_sweep(integer) IS
'Deletes one batch of expired keys, oldest first, and returns how many; the sweeper does it by itself. Nobody but superusers may
until it is granted.';

-- Writers

CREATE TABLE interlock.writer_grant (
    writer text COLLATE "C" NOT NULL,
    role_name text COLLATE "C" NOT NULL,
    may_force boolean NOT NULL,
    granted_by text NOT NULL,
    granted_at timestamptz NOT NULL DEFAULT pg_catalog.clock_timestamp(),
    PRIMARY KEY (writer, role_name));
COMMENT ON TABLE interlock.writer_grant IS
'Which roles may write as which writer, by name, so that it survives dump and restore; "public" is everybody. grant_writer and
revoke_writer keep it. A role that is renamed or dropped loses nothing here: revoke_writer does that.';
SELECT pg_catalog.pg_extension_config_dump('interlock.writer_grant', '');

CREATE FUNCTION interlock.grant_writer(writer text, role name, may_force boolean = false) RETURNS void
    LANGUAGE c AS 'MODULE_PATHNAME';
REVOKE EXECUTE ON FUNCTION interlock.grant_writer(text, name, boolean) FROM PUBLIC;
COMMENT ON FUNCTION interlock.grant_writer(text, name, boolean) IS
'Lets members of a role (''public'': everybody) call set_writer for the writer; with may_force also to write what other writers
own. Calling it again changes may_force. Nobody but superusers may until it is granted.
Errors: 42704 no such role, 22023 a writer that is empty, longer than 256 bytes, or has control characters.';

CREATE FUNCTION interlock.revoke_writer(writer text, role name) RETURNS void
    LANGUAGE c AS 'MODULE_PATHNAME';
REVOKE EXECUTE ON FUNCTION interlock.revoke_writer(text, name) FROM PUBLIC;
COMMENT ON FUNCTION interlock.revoke_writer(text, name) IS
'Takes back what grant_writer gave, from the next set_writer on. Errors: 42704 it was not granted.';

CREATE FUNCTION interlock.set_writer(writer text, force boolean = false) RETURNS void
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.set_writer(text, boolean) IS
'Says who writes for the rest of the transaction, or until the rollback of a savepoint before it; null: nobody again. With force
the writer also writes columns that others own, and each such row is logged in forced_writes.
Called in a SECURITY DEFINER function it counts for what runs with its owner''s rights, and the caller''s counts again afterwards;
after SET ROLE it no longer counts.
Errors: 42501 not granted to a role of the current user (grant_writer), 22023 a writer that is empty, longer than 256 bytes, or has control characters.';

CREATE FUNCTION interlock.current_writer() RETURNS text
    LANGUAGE c STABLE PARALLEL RESTRICTED AS 'MODULE_PATHNAME', 'sql_current_writer';
COMMENT ON FUNCTION interlock.current_writer() IS
'Who the transaction writes as here: what set_writer was given, or null.';

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
'Lines about writes that were stored otherwise than they said (decision skipped, merged or forced), or without being recorded
(suppressed): when, by whom, which table and columns, how many rows, the key of a single one. Lines of the present transaction
are written when their savepoint or transaction ends; the views over it show them before. The sweeper deletes them after
interlock.write_log_keep.';
COMMENT ON SEQUENCE interlock.write_log_id_seq IS 'Numbers the rows of write_log.';
SELECT pg_catalog.pg_extension_config_dump('interlock.write_log', '');
SELECT pg_catalog.pg_extension_config_dump('interlock.write_log_id_seq', '');

CREATE FUNCTION interlock.list_unwritten_lines() RETURNS SETOF interlock.write_log
    LANGUAGE c VOLATILE PARALLEL RESTRICTED AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.list_unwritten_lines() IS
'Lines of this transaction that are not in write_log yet, about tables of the caller''s roles; their id is null.';

CREATE VIEW interlock.all_writes WITH (security_barrier) AS
    SELECT w.*,
           (SELECT c.oid::pg_catalog.regclass
              FROM pg_catalog.pg_class c
              JOIN pg_catalog.pg_namespace n ON n.oid OPERATOR(pg_catalog.=) c.relnamespace
             WHERE n.nspname OPERATOR(pg_catalog.=) (pg_catalog.parse_ident(w.table_name))[1]::pg_catalog.name
               AND c.relname OPERATOR(pg_catalog.=) (pg_catalog.parse_ident(w.table_name))[2]::pg_catalog.name) AS rel
      FROM (SELECT * FROM interlock.write_log UNION ALL SELECT * FROM interlock.list_unwritten_lines()) w
      LEFT JOIN pg_catalog.pg_roles r ON r.rolname OPERATOR(pg_catalog.=) w.table_owner::pg_catalog.name
     WHERE pg_catalog.pg_has_role(COALESCE(r.oid, 10::pg_catalog.oid), 'USAGE');
COMMENT ON VIEW interlock.all_writes IS
'The lines of write_log that the reader may see: those about tables of his own roles, as they were owned then; superusers see all.
rel is the table that has the name now.';

CREATE VIEW interlock.operation_log WITH (security_barrier) AS
    SELECT id, written_at, rel, table_name, operation, key, columns, row_count, writer, written_by, reason
      FROM interlock.all_writes WHERE decision OPERATOR(pg_catalog.=) 'suppressed';
GRANT SELECT ON interlock.operation_log TO PUBLIC;
COMMENT ON VIEW interlock.operation_log IS
'What was written while history was suppressed, a line for each statement and table: who, which columns, how many rows, why. Owners
of a table see its lines. In the order of written_at.';

CREATE VIEW interlock.skipped_writes WITH (security_barrier) AS
    SELECT id, written_at, decision, rel, table_name, key, columns, row_count, owner, writer, written_by, stored, given
      FROM interlock.all_writes WHERE decision OPERATOR(pg_catalog.=) ANY (ARRAY['skipped', 'merged']);
GRANT SELECT ON interlock.skipped_writes TO PUBLIC;
COMMENT ON VIEW interlock.skipped_writes IS
'What a writer gave and was not stored as given: columns kept as they were (skipped: a line for each transaction or savepoint, table, owner and
writer) or combined with what another writer had stored (merged: a line for each row); stored and given are those of the first row.
Owners of a table see its lines.';

CREATE VIEW interlock.forced_writes WITH (security_barrier) AS
    SELECT id, written_at, rel, table_name, key, columns, owner, writer, written_by, stored, given
      FROM interlock.all_writes WHERE decision OPERATOR(pg_catalog.=) 'forced';
GRANT SELECT ON interlock.forced_writes TO PUBLIC;
COMMENT ON VIEW interlock.forced_writes IS
'Columns that a writer with force wrote over their owner: a line for each row and owner, with what was stored before. Owners of a table
see its lines.';

-- Field ownership

CREATE FUNCTION interlock.ownership_trigger() RETURNS trigger
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.ownership_trigger() IS
'Holds every update to the owners of the columns that it changes. Created by own_columns, share_columns and group_columns;
arguments: triples of column, kind (own:reject, own:skip, share:retry, share:skip, share:merge, group) and value (writer, number).
Errors: IL007 a column belongs to another writer, 55000 an owned column is gone or another BEFORE trigger fires later.';

CREATE FUNCTION interlock.own_columns(
    rel regclass, writer text, columns name[], on_violation text = 'reject') RETURNS void
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.own_columns(regclass, text, name[], text) IS
'From now on only the writer (set_writer) may change these columns by UPDATE, whatever statement, function, trigger or cascade does it. An
update that leaves a column as it is stored claims nothing. on_violation: reject (IL007), or skip: the stored value stays, and
skipped_writes tells. For the owner of the table; waits for transactions that write to it. Again for the same writer: changes on_violation.
Warns when the writer has been granted to nobody. Errors: 42501 not the owner, 42703 no such column, 428C9 generated column,
22023 version or marker column, no column, one named twice, empty or long writer, unknown on_violation, 55000 another writer''s or
shared, a partition, a BEFORE trigger that fires later; 22004, 42809 no table.';

CREATE FUNCTION interlock.share_columns(rel regclass, columns name[], strategy text = 'retry') RETURNS void
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.share_columns(regclass, name[], text) IS
'Says what try_versioned_update with on_conflict => ''merge'' does where both sides changed a column: retry leaves the conflict,
skip keeps what is stored, merge combines: numbers add up both changes, arrays without duplicates are sets, jsonb objects combine
member by member; what cannot be combined stays a conflict. skipped_writes tells what was skipped and merged. For the owner of the table;
again: changes the strategy. Errors: as own_columns; 22023 unknown strategy, merge of a column in ignore_columns of enable_versioning,
55000 owned by a writer. Of a merge: 22003 a sum out of range.';

CREATE FUNCTION interlock.release_columns(rel regclass, columns name[]) RETURNS void
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.release_columns(regclass, name[]) IS
'Columns are neither owned nor shared any more. Takes names of columns that were dropped or renamed as well: of those nothing is kept.
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
'Columns that belong together (price, quantity, total): in a merge a change of one conflicts with another side''s change of any, whatever
their strategies. A group may be named again with more columns. For the owner of the table.
Errors: as own_columns; 22023 fewer than two columns, 55000 one is in a group with others.';

CREATE FUNCTION interlock.ungroup_columns(rel regclass, columns name[]) RETURNS void
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.ungroup_columns(regclass, name[]) IS
'Takes columns out of their groups; a group of one column ends. For the owner of the table; takes an ACCESS EXCLUSIVE lock.
Errors: as release_columns; 55000 in no group.';

CREATE FUNCTION interlock.list_column_rules(
    OUT rel regclass, OUT column_name name, OUT writer text, OUT on_violation text, OUT strategy text, OUT group_number integer,
    OUT enforced boolean)
    RETURNS SETOF record
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.list_column_rules() IS 'The rules of the view column_ownership.';

CREATE VIEW interlock.column_ownership AS
    SELECT r.rel, r.column_name, r.writer, r.on_violation, r.strategy, r.group_number, COALESCE(f.forced, 0) AS forced, r.enforced
      FROM interlock.list_column_rules() r
      JOIN pg_catalog.pg_class c ON c.oid OPERATOR(pg_catalog.=) r.rel::pg_catalog.oid
      JOIN pg_catalog.pg_namespace n ON n.oid OPERATOR(pg_catalog.=) c.relnamespace
      LEFT JOIN (SELECT w.table_name, u.column_name, pg_catalog.count(*) AS forced
                   FROM interlock.forced_writes w CROSS JOIN LATERAL pg_catalog.unnest(w.columns) u (column_name)
                  GROUP BY 1, 2) f
        ON f.table_name OPERATOR(pg_catalog.=) pg_catalog.format('%I.%I', n.nspname, c.relname)
       AND f.column_name OPERATOR(pg_catalog.=) r.column_name::pg_catalog.text;
GRANT SELECT ON interlock.column_ownership TO PUBLIC;
COMMENT ON VIEW interlock.column_ownership IS
'The rules of every table''s columns: the writer and on_violation of an owned column, the strategy of a shared one, the group.
forced counts the lines of forced_writes about the column that the reader may see; enforced is false when the trigger is disabled or
does not fire in this session. A table whose trigger has been given arguments that are no rules is left out: its updates fail.';

-- Version history

CREATE TABLE interlock.history_position (
    history oid PRIMARY KEY,
    position bigint NOT NULL);
COMMENT ON TABLE interlock.history_position IS
'How far the trimming of each history table has come. Not dumped: a restored table is looked through from the start.';

CREATE FUNCTION interlock.history_trigger() RETURNS trigger
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.history_trigger() IS
'Writes an entry for each row that is inserted, updated or deleted. Created by enable_history as a constraint trigger FROM the history
table; arguments: keep_versions, keep_for, since when the history is whole, the columns of the key and their types.';

CREATE FUNCTION interlock.history_truncate_trigger() RETURNS trigger
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.history_truncate_trigger() IS
'Writes an entry for each row that TRUNCATE takes away. Created by enable_history.';

CREATE FUNCTION interlock.enable_history(
    rel regclass, keep_versions integer = NULL, keep_for interval = NULL) RETURNS void
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.enable_history(regclass, integer, interval) IS
'From now on every version of every row is kept, whoever writes, in <table>_history beside the table: a table of the same owner, who
grants who may read it. An entry is kept as long as it is among the newest keep_versions of its key or younger than keep_for, whichever
are given; without both for ever. Calling it again changes that. A history table that disable_history has left is used again.
For the owner of the table, who needs CREATE on its schema. Waits for all users of the table (ACCESS EXCLUSIVE).
Errors: 42501 not the owner, or no CREATE, 55000 no key, a partition, or one of its partitions has a history of its own, 22023 keep_versions below one, keep_for not above zero or above ten
years, 42809 no table. Errors of a write: 55000 the key is gone, or the history table belongs to another role; 09000 a trigger keeps the entry from being written, 42501 another role has put it there; whatever writing
the entry raises. The entry is written at every isolation
level in the transaction of the write.';

CREATE FUNCTION interlock.disable_history(rel regclass) RETURNS void
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.disable_history(regclass) IS
'Stops recording. The history table stays. For the owner of the table. Errors: 42501 not the owner, 55000 no history, or a partition.';

CREATE FUNCTION interlock.row_history(
    rel regclass, key text, OUT version bigint, OUT changed_at timestamptz, OUT writer text, OUT operation text, OUT "row" jsonb,
    OUT changed text[], OUT before jsonb, OUT changed_by text, OUT id bigint) RETURNS SETOF record
    LANGUAGE c AS 'MODULE_PATHNAME';
CREATE FUNCTION interlock.row_history(
    rel regclass, key "any", OUT version bigint, OUT changed_at timestamptz, OUT writer text, OUT operation text, OUT "row" jsonb,
    OUT changed text[], OUT before jsonb, OUT changed_by text, OUT id bigint) RETURNS SETOF record
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.row_history(regclass, text) IS
'The entries of one row, oldest first: its counter if it is versioned, the clock when it was written, the writer (set_writer), the
operation (insert, update, delete, truncate, moved: to another key), the row (the last one, if it is gone), the changed columns and their
values before, and the role. Needs SELECT on the table and on its history table, whose row security holds. Sees what a
statement of its own would see at that level. Errors: 42501, 55000 no history or no key, 22004, 22023 and what the key''s type raises.';
COMMENT ON FUNCTION interlock.row_history(regclass, "any") IS
'As row_history(regclass, text), for a key of another type.';

CREATE FUNCTION interlock.row_as_of(rel regclass, key text, at timestamptz) RETURNS jsonb
    LANGUAGE c AS 'MODULE_PATHNAME';
CREATE FUNCTION interlock.row_as_of(rel regclass, key "any", at timestamptz) RETURNS jsonb
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.row_as_of(regclass, text, timestamptz) IS
'The row as it was at that time by the clock of its writers, as far as its history tells; null when there was none, or when the
history does not reach back that far. A row without an entry since history was enabled is read from the table.
Needs SELECT on the table and on its history table. Errors: as row_history.';
COMMENT ON FUNCTION interlock.row_as_of(regclass, "any", timestamptz) IS
'As row_as_of(regclass, text, timestamptz), for a key of another type.';

CREATE FUNCTION interlock.trim_history(
    INOUT rel regclass = NULL, max_rows integer = NULL, OUT trimmed bigint) RETURNS SETOF record
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.trim_history(regclass, integer) IS
'Deletes the entries that retention does not keep, about max_rows at most, of one table or of all that the caller owns; returns how
many. The sweeper does it by itself. Acts as the owner of the history table, if that is the owner of the table. One of all that fails is a
warning. Errors: 42501 not the owner, or others have put triggers on the history table, 22023.';

CREATE FUNCTION interlock.suppress_history(rel regclass = NULL, reason text = NULL) RETURNS integer
    LANGUAGE c AS 'MODULE_PATHNAME';
REVOKE EXECUTE ON FUNCTION interlock.suppress_history(regclass, text) FROM PUBLIC;
COMMENT ON FUNCTION interlock.suppress_history(regclass, text) IS
'Stops recording what this transaction writes to the table, or with null to all tables, until as many restore_history; returns how
many scopes of that table, or of all, are open. A rollback to a savepoint undoes it, and the end of the transaction ends it. Each
statement that it hides leaves a line with the reason in operation_log; versions move as ever. A partition stands for its parent.
Nobody but superusers may until it is granted. Errors: 42501, 55000 no history.';

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
that were moved, and sets none back. Waits for transactions that have taken values or locked a table, as long as lock_timeout says. One that fails is a warning.';
