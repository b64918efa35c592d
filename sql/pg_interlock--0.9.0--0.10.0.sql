\echo Use "ALTER EXTENSION pg_interlock UPDATE TO '0.10.0'" to load this file. \quit

-- A preloaded library stays until the server restarts.
SELECT interlock_internal.require_library('0.10.0');

-- Counters.

CREATE FUNCTION interlock_internal.list_contention(
    OUT database name, OUT rel regclass, OUT kind text, OUT key_class text, OUT calls bigint, OUT conflicts bigint, OUT refusals bigint,
    OUT blind_updates bigint, OUT waits bigint, OUT wait_time interval, OUT timeouts bigint, OUT expiries bigint, OUT takeovers bigint,
    OUT replays bigint, OUT mismatches bigint, OUT retries bigint, OUT since timestamptz, OUT renewals bigint, OUT late_renewals bigint)
    RETURNS SETOF record
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock_internal.list_contention() IS 'The rows of the view contention.';

CREATE VIEW interlock.contention AS SELECT * FROM interlock_internal.list_contention();
GRANT SELECT ON interlock.contention TO PUBLIC;
COMMENT ON VIEW interlock.contention IS
'How often writers collide, by table and mechanism, and by class of keys: the text before the first : or / of a lease or key lock, the scope
of an idempotency key. Counted since the last reset_contention(), over clean restarts, what is rolled back too. Tables that the caller may
SELECT, and what roles have counted that the caller is a member of; all of the server for pg_monitor. No lines without preload.';

CREATE FUNCTION interlock.reset_contention() RETURNS void
    LANGUAGE c AS 'MODULE_PATHNAME';
REVOKE EXECUTE ON FUNCTION interlock.reset_contention() FROM PUBLIC;
COMMENT ON FUNCTION interlock.reset_contention() IS
'Sets the counters of the view contention to zero, for all databases of the server. Needs a grant of EXECUTE.';

-- Versions.

COMMENT ON FUNCTION interlock.update_with_retry(regclass, text, regprocedure, jsonb, integer) IS
'Reads the row, calls transform(current jsonb, args jsonb) for the changes, writes them if the row is still the same, and
starts again when it is not. Where another transaction has the row, and for a retry, it locks the row before it reads; calls
wait for a row in turn. Outcomes: updated, unchanged (the transform returned null or {}), conflict (after max_retries),
not_found. The transform runs with the caller''s rights and may run several times.
Errors: 42501 no EXECUTE on the transform, 22023 another signature, 55P03 after lock_timeout, 40001 under REPEATABLE READ and above.';

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

CREATE OR REPLACE FUNCTION interlock.check_versioning(OUT rel regclass, OUT finding text, OUT advice text) RETURNS SETOF record
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

-- Transitions.

-- Markers.

-- Children.

CREATE FUNCTION interlock_internal.changes_parent(VARIADIC "any") RETURNS boolean
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock_internal.changes_parent("any") IS
'In WHEN of the triggers that guard_children creates: true for the first change of children of a parent in this transaction or
savepoint. Refuses the change while the parent is being edited by another holder (IL004). Only such a trigger can call it (39P01).';

CREATE FUNCTION interlock_internal.children_trigger() RETURNS trigger
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock_internal.children_trigger() IS
'Moves the versions of the parents whose children have changed. Created by guard_children, three for each foreign key, which are
deferred to the end of the transaction.';

CREATE FUNCTION interlock.guard_children(child regclass, parent regclass, foreign_key name[] = NULL) RETURNS void
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.guard_children(regclass, regclass, name[]) IS
'Makes rows of child belong to the row of parent that their foreign key names: a change of them moves its version, once, at the end
of the transaction, and is refused while it is being edited (IL004). For the owner of child, with TRIGGER on parent.
foreign_key: the columns, where child has several foreign keys to parent.
Writers of child need what UPDATE of the version of parent needs: SELECT of its key and its version, UPDATE of its version.
Errors: 42501 not the owner, or no TRIGGER on parent, 55000 parent has neither versions nor markers, its version is in a unique
index, its key can be null, or tables in a circle, 22023 no such foreign key, or several and none named, 42809 not a table.';

CREATE FUNCTION interlock.unguard_children(child regclass, parent regclass) RETURNS void
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.unguard_children(regclass, regclass) IS
'Ends what guard_children began, for all foreign keys from child to parent. For the owner of child.
Errors: 42501 not the owner, 55000 not guarded.';

-- Escrow counters.

CREATE SEQUENCE interlock_internal.escrow_counter_id;
REVOKE ALL ON SEQUENCE interlock_internal.escrow_counter_id FROM PUBLIC;
SELECT pg_catalog.pg_extension_config_dump('interlock_internal.escrow_counter_id', '');

COMMENT ON SEQUENCE interlock_internal.escrow_counter_id IS
'Numbers of escrow counters.';

CREATE TYPE interlock_internal.counted_table;
CREATE FUNCTION interlock_internal.counted_table_in(cstring) RETURNS interlock_internal.counted_table
    LANGUAGE c STABLE STRICT AS 'MODULE_PATHNAME';
CREATE FUNCTION interlock_internal.counted_table_out(interlock_internal.counted_table) RETURNS cstring
    LANGUAGE c STABLE STRICT AS 'MODULE_PATHNAME';
CREATE FUNCTION interlock_internal.counted_table_recv(internal) RETURNS interlock_internal.counted_table
    LANGUAGE c STABLE STRICT AS 'MODULE_PATHNAME';
CREATE FUNCTION interlock_internal.counted_table_send(interlock_internal.counted_table) RETURNS bytea
    LANGUAGE c STABLE STRICT AS 'MODULE_PATHNAME';
CREATE TYPE interlock_internal.counted_table (
    INPUT = interlock_internal.counted_table_in, OUTPUT = interlock_internal.counted_table_out,
    RECEIVE = interlock_internal.counted_table_recv, SEND = interlock_internal.counted_table_send, LIKE = pg_catalog.oid);
COMMENT ON TYPE interlock_internal.counted_table IS
'A table by name, as regclass; none where no table has the name.';
COMMENT ON FUNCTION interlock_internal.counted_table_in(cstring) IS 'Input of type counted_table.';
COMMENT ON FUNCTION interlock_internal.counted_table_out(interlock_internal.counted_table) IS 'Output of type counted_table.';
COMMENT ON FUNCTION interlock_internal.counted_table_recv(internal) IS 'Binary input of type counted_table.';
COMMENT ON FUNCTION interlock_internal.counted_table_send(interlock_internal.counted_table) IS 'Binary output of type counted_table.';
CREATE CAST (interlock_internal.counted_table AS oid) WITHOUT FUNCTION AS IMPLICIT;
COMMENT ON CAST (interlock_internal.counted_table AS oid) IS 'For the index.';
CREATE CAST (interlock_internal.counted_table AS regclass) WITHOUT FUNCTION;
COMMENT ON CAST (interlock_internal.counted_table AS regclass) IS 'For views.';

CREATE TABLE interlock_internal.escrow_counter (
    id bigint NOT NULL,
    rel interlock_internal.counted_table NOT NULL,
    column_name name NOT NULL,
    key text COLLATE pg_catalog."C" NOT NULL,
    CONSTRAINT escrow_counter_pkey PRIMARY KEY (id),
    CONSTRAINT escrow_counter_name UNIQUE (rel, column_name, key));
REVOKE ALL ON TABLE interlock_internal.escrow_counter FROM PUBLIC;

CREATE FUNCTION interlock_internal.counted_table_trigger() RETURNS trigger
    LANGUAGE c AS 'MODULE_PATHNAME';
REVOKE ALL ON FUNCTION interlock_internal.counted_table_trigger() FROM PUBLIC;
COMMENT ON FUNCTION interlock_internal.counted_table_trigger() IS
'Leaves out the counters of tables that are not there, when a dump is restored.';
CREATE TRIGGER zzz_interlock_counted_table BEFORE INSERT ON interlock_internal.escrow_counter
    FOR EACH ROW EXECUTE FUNCTION interlock_internal.counted_table_trigger();
ALTER TABLE interlock_internal.escrow_counter ENABLE ALWAYS TRIGGER zzz_interlock_counted_table;
COMMENT ON TRIGGER zzz_interlock_counted_table ON interlock_internal.escrow_counter IS 'See counted_table_trigger.';
-- A table that was dropped would be dumped as its oid, which may be that of another table in the copy.
SELECT pg_catalog.pg_extension_config_dump('interlock_internal.escrow_counter',
    'WHERE EXISTS (SELECT FROM pg_catalog.pg_class t WHERE t.oid = rel)');
COMMENT ON TABLE interlock_internal.escrow_counter IS
'The rows and columns that are changed by parts. key: the values of the table''s key. An id is never used again.';

CREATE SEQUENCE interlock_internal.escrow_part_number INCREMENT BY 1024;
REVOKE ALL ON SEQUENCE interlock_internal.escrow_part_number FROM PUBLIC;
SELECT pg_catalog.pg_extension_config_dump('interlock_internal.escrow_part_number', '');
COMMENT ON SEQUENCE interlock_internal.escrow_part_number IS
'Numbers of parts of escrow counters: a session takes 1,024 at once.';

CREATE TABLE interlock_internal.escrow_part (
    counter bigint NOT NULL,
    number bigint NOT NULL,
    amount numeric NOT NULL,
    reserved numeric) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);
CREATE UNIQUE INDEX escrow_part_counter ON interlock_internal.escrow_part (counter, number);
ALTER TABLE interlock_internal.escrow_part REPLICA IDENTITY USING INDEX escrow_part_counter;
REVOKE ALL ON TABLE interlock_internal.escrow_part FROM PUBLIC;
SELECT pg_catalog.pg_extension_config_dump('interlock_internal.escrow_part',
    'WHERE counter IN (SELECT c.id FROM interlock_internal.escrow_counter c JOIN pg_catalog.pg_class t ON t.oid = c.rel)');
COMMENT ON TABLE interlock_internal.escrow_part IS
'What transactions have added to counters, or taken from them, and no fold has added to the row yet. reserved: what they have added to
reservations, or taken from them. number: by which a subscriber finds the part, nearly in the order in which they came.';

CREATE TABLE interlock_internal.escrow_reservation (
    token bigint NOT NULL,
    counter bigint NOT NULL,
    amount numeric NOT NULL,
    expires_at timestamptz NOT NULL,
    reserved_at timestamptz NOT NULL,
    role_name name NOT NULL,
    holder text,
    CONSTRAINT escrow_reservation_pkey PRIMARY KEY (token));
CREATE INDEX escrow_reservation_counter ON interlock_internal.escrow_reservation (counter);
CREATE INDEX escrow_reservation_expires_at ON interlock_internal.escrow_reservation (expires_at);
REVOKE ALL ON TABLE interlock_internal.escrow_reservation FROM PUBLIC;
SELECT pg_catalog.pg_extension_config_dump('interlock_internal.escrow_reservation',
    'WHERE counter IN (SELECT c.id FROM interlock_internal.escrow_counter c JOIN pg_catalog.pg_class t ON t.oid = c.rel)');
COMMENT ON TABLE interlock_internal.escrow_reservation IS
'What was taken from counters until a deadline. Who deletes a row has ended the reservation.';

CREATE FUNCTION interlock_internal.escrow_trigger() RETURNS trigger
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock_internal.escrow_trigger() IS
'Keeps plain writes of a column with escrow counters within its limits. Created by enable_escrow; arguments: the column, minimum, maximum,
plain_updates, fold_moves_version, and the columns of the key.';

CREATE FUNCTION interlock_internal.escrow_truncate_trigger() RETURNS trigger
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock_internal.escrow_truncate_trigger() IS
'Ends the escrow counters of all rows of the table. Created by enable_escrow.';

CREATE FUNCTION interlock_internal.escrow_entry(
    counter bigint, OUT inf bigint, OUT sup bigint, OUT folded_at timestamptz, OUT changed_at timestamptz)
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock_internal.escrow_entry(bigint) IS
'For the view escrow: what shared memory has of a counter, in the smallest steps of its column. Null where it has nothing, and for a counter that the caller may not read.';

CREATE FUNCTION interlock_internal.may_read_counter(rel regclass, column_name name) RETURNS boolean
    LANGUAGE c STABLE AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock_internal.may_read_counter(regclass, name) IS
'For the views escrow and reservations: whether the caller may read the column, and the key by which its counters go.';

CREATE FUNCTION interlock.enable_escrow(
    rel regclass, column_name name, minimum numeric = '0', maximum numeric = NULL, plain_updates text = 'reject',
    fold_moves_version boolean = false) RETURNS void
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.enable_escrow(regclass, name, numeric, numeric, text, boolean) IS
'Makes the column an escrow counter in each row: adjust changes it without waiting for the commits of others, and it never leaves the limits
in any snapshot. For the owner of the table. The column is smallint, integer, bigint or numeric(p, s) with at most 18 digits, NOT NULL, and in no key
or unique index. plain_updates: an UPDATE that changes the column is refused (reject), or taken as a change by the
difference (delta: for SET c = c - 1). fold_moves_version: whether folding parts into the row moves its version. Calling it again changes the settings.
Waits for all transactions that adjust. Errors: 42501 not the owner, 42804 type, 22023 limits or plain_updates, 0A000 a partitioned, temporary or
unlogged table or a key of another type than integer, uuid or text, 55000 a value outside of the limits, or the column is used otherwise.';

CREATE FUNCTION interlock.disable_escrow(rel regclass, column_name name) RETURNS void
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.disable_escrow(regclass, name) IS
'Adds all parts to the rows and removes the triggers. For the owner of the table. Waits for all transactions that adjust.
Errors: 42501 not the owner, 55000 the column has no escrow counters.';

CREATE FUNCTION interlock.adjust(
    rel regclass, key text, column_name name, delta numeric, wait interval = '0', OUT remaining numeric)
    LANGUAGE c AS 'MODULE_PATHNAME';
CREATE FUNCTION interlock.adjust(
    rel regclass, key "any", column_name name, delta numeric, wait interval = '0', OUT remaining numeric)
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.adjust(regclass, text, name, numeric, interval) IS
'Changes the counter by delta, and returns what is left for certain: the value if all open transactions that take commit, and those that
return do not. Needs what UPDATE ... SET column = column + delta WHERE key = ... needs. key: the table''s primary key, else its narrowest unique
key. wait: for transactions whose end decides whether it fits. Under SERIALIZABLE, row security, and without shared_preload_libraries the row itself is changed, under its
lock. Errors: IL012 not enough left, or not enough room below the maximum, P0002 no such row, 22023 delta is zero, not finite or has too many
digits, 55000 no escrow counters, or their triggers do not fire, 25006 read-only transaction, IL004 being edited (where the row is changed).';
COMMENT ON FUNCTION interlock.adjust(regclass, "any", name, numeric, interval) IS
'As adjust(regclass, text, name, numeric, interval), for a key of another type.';

CREATE FUNCTION interlock.try_adjust(
    rel regclass, key text, column_name name, delta numeric, wait interval = '0', OUT outcome text, OUT remaining numeric)
    LANGUAGE c AS 'MODULE_PATHNAME';
CREATE FUNCTION interlock.try_adjust(
    rel regclass, key "any", column_name name, delta numeric, wait interval = '0', OUT outcome text, OUT remaining numeric)
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.try_adjust(regclass, text, name, numeric, interval) IS
'As adjust, but answers. outcome: adjusted; insufficient, it does not fit whatever becomes of open transactions; pending, it would fit if some of
them end well; not_found.';
COMMENT ON FUNCTION interlock.try_adjust(regclass, "any", name, numeric, interval) IS
'As try_adjust(regclass, text, name, numeric, interval), for a key of another type.';

CREATE FUNCTION interlock.set_escrow(rel regclass, key text, column_name name, value numeric) RETURNS void
    LANGUAGE c AS 'MODULE_PATHNAME';
CREATE FUNCTION interlock.set_escrow(rel regclass, key "any", column_name name, value numeric) RETURNS void
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.set_escrow(regclass, text, name, numeric) IS
'Sets the counter, after all open transactions that adjust it have ended; others wait for this transaction then. As after a
stocktaking. Needs UPDATE of the column. Errors: P0002 no such row, 22023 value outside of the limits, 55000 no escrow counters,
IL004 being edited, 40001 under REPEATABLE READ and above when the counter changed after the snapshot.';
COMMENT ON FUNCTION interlock.set_escrow(regclass, "any", name, numeric) IS
'As set_escrow(regclass, text, name, numeric), for a key of another type.';

CREATE FUNCTION interlock.escrow_value(rel regclass, key text, column_name name) RETURNS numeric
    LANGUAGE c STABLE AS 'MODULE_PATHNAME';
CREATE FUNCTION interlock.escrow_value(rel regclass, key "any", column_name name) RETURNS numeric
    LANGUAGE c STABLE AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.escrow_value(regclass, text, name) IS
'The value of the counter in the snapshot of the caller: the row and its parts. Null when there is no such row, or the caller may not see it. The column
of the row alone may be behind by what was not folded yet. Needs SELECT on the column and the key. Also on a standby.';
COMMENT ON FUNCTION interlock.escrow_value(regclass, "any", name) IS
'As escrow_value(regclass, text, name), for a key of another type.';

CREATE FUNCTION interlock.fold_escrow(rel regclass, key text = NULL) RETURNS bigint
    LANGUAGE c AS 'MODULE_PATHNAME';
CREATE FUNCTION interlock.fold_escrow(rel regclass, key "any") RETURNS bigint
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.fold_escrow(regclass, text) IS
'Adds the committed parts of counters to their rows, as the sweeper does normally within a second, and returns the number of counters. key: of one row
alone. Gives back what expired reservations have taken before. Waits for the locks of the rows, and has them to the end of the transaction. The values stay the same. Runs as the table''s owner, restricted. Needs UPDATE on some
column. Errors: IL004 being edited, 09000 a trigger suppresses it, 42501 row security hides rows from the caller.';
COMMENT ON FUNCTION interlock.fold_escrow(regclass, "any") IS
'As fold_escrow(regclass, text), for a key of another type.';

CREATE VIEW interlock.escrow WITH (security_barrier) AS
    SELECT c.rel::pg_catalog.regclass, c.key, c.column_name, p.parts, p.amount,
           pg_catalog.round(e.inf::pg_catalog.numeric OPERATOR(pg_catalog./) s.step, s.digits) AS remaining,
           pg_catalog.round(e.sup::pg_catalog.numeric OPERATOR(pg_catalog./) s.step, s.digits) AS at_most,
           pg_catalog.round((e.sup::pg_catalog.numeric OPERATOR(pg_catalog.-) e.inf::pg_catalog.numeric) OPERATOR(pg_catalog./) s.step, s.digits)
               OPERATOR(pg_catalog.-) v.reserved AS undecided, v.reserved,
           e.folded_at, CASE WHEN p.parts OPERATOR(pg_catalog.>) 0 THEN pg_catalog.clock_timestamp() OPERATOR(pg_catalog.-) e.changed_at END AS behind
      FROM interlock_internal.escrow_counter c
      JOIN pg_catalog.pg_class t ON t.oid OPERATOR(pg_catalog.=) c.rel::pg_catalog.oid
      JOIN pg_catalog.pg_attribute a ON a.attrelid OPERATOR(pg_catalog.=) t.oid AND a.attname OPERATOR(pg_catalog.=) c.column_name AND NOT a.attisdropped
     CROSS JOIN LATERAL (
           SELECT pg_catalog.count(*) AS parts, COALESCE(pg_catalog.sum(j.amount), 0::pg_catalog.numeric) AS amount
             FROM interlock_internal.escrow_part j
            WHERE j.counter OPERATOR(pg_catalog.=) c.id) p
     CROSS JOIN LATERAL (
           SELECT COALESCE(pg_catalog.sum(r.amount), 0::pg_catalog.numeric) AS reserved
             FROM interlock_internal.escrow_reservation r
            WHERE r.counter OPERATOR(pg_catalog.=) c.id) v
     CROSS JOIN LATERAL (
           SELECT d.digits, pg_catalog.power(10::pg_catalog.numeric, d.digits::pg_catalog.numeric) AS step
             FROM (SELECT CASE WHEN a.atttypid OPERATOR(pg_catalog.=) 'pg_catalog.numeric'::pg_catalog.regtype
                               THEN (a.atttypmod OPERATOR(pg_catalog.-) 4) OPERATOR(pg_catalog.&) 2047 ELSE 0 END AS digits) d) s
     CROSS JOIN LATERAL interlock_internal.escrow_entry(c.id) e
     WHERE interlock_internal.may_read_counter(c.rel::pg_catalog.regclass, c.column_name);
GRANT SELECT ON interlock.escrow TO PUBLIC;
COMMENT ON VIEW interlock.escrow IS
'Counters that were adjusted, of tables of which the caller may read the column and the key: its values, the committed parts that are not folded yet and their sum, and
what is left for certain (remaining) and at most if all open transactions end in the best way. undecided: what these take and return together. These three are null while the counter is not in shared memory. reserved: what
reservations hold. folded_at: when the sweeper has added parts to the row last. behind: for how long parts have waited for that; null if there are none. Tables whose
rows row security hides from the caller are left out.';

CREATE FUNCTION interlock.reserve(
    rel regclass, key text, column_name name, amount numeric, ttl interval, holder text = NULL, wait interval = '0',
    OUT outcome text, OUT token bigint, OUT expires_at timestamptz)
    LANGUAGE c AS 'MODULE_PATHNAME';
CREATE FUNCTION interlock.reserve(
    rel regclass, key "any", column_name name, amount numeric, ttl interval, holder text = NULL, wait interval = '0',
    OUT outcome text, OUT token bigint, OUT expires_at timestamptz)
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.reserve(regclass, text, name, numeric, interval, text, interval) IS
'Takes the amount from the escrow counter until expires_at, as for a cart: confirm_reservation makes it a sale, cancel_reservation gives it back, and so does
the sweeper when it has expired. outcome: reserved; insufficient, it does not fit whatever becomes of open transactions and reservations; pending, it would fit if some of
them end well; not_found. token: for those functions. ttl: from now, above zero. holder: a label of at most 255 bytes. wait: for
transactions whose end decides whether it fits. Needs what adjust needs. The room below the maximum is kept, so it can be given back at any time. Under SERIALIZABLE, row
security, and without shared_preload_libraries the row itself is changed, under its lock. Errors: 22023 the amount is not above zero, not finite or has
too many digits, or ttl, holder or wait, 55000 no escrow counters, or their triggers do not fire, 25006 read-only transaction, IL004 being edited (where the row is changed).';
COMMENT ON FUNCTION interlock.reserve(regclass, "any", name, numeric, interval, text, interval) IS
'As reserve(regclass, text, name, numeric, interval, text, interval), for a key of another type.';

CREATE FUNCTION interlock.confirm_reservation(token bigint) RETURNS void
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.confirm_reservation(bigint) IS
'Ends a reservation for good: what it has taken is sold if this transaction commits. For members of the role that has reserved. Waits for
other transactions that end or extend it. Errors: IL008 it has expired or ended, or there is none with that token for the caller, 55000 no escrow counters, or their triggers do not fire.';

CREATE FUNCTION interlock.cancel_reservation(token bigint) RETURNS boolean
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.cancel_reservation(bigint) IS
'Gives back what a reservation has taken; others can take it when this transaction has committed. False when it has expired or ended, or there is none with
that token for the caller. For members of the role that has reserved, and for the owner of the table. Waits for other transactions that end or extend it.
Errors: 55000 the triggers of the escrow counters do not fire.';

CREATE FUNCTION interlock.extend_reservation(token bigint, ttl interval) RETURNS timestamptz
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.extend_reservation(bigint, interval) IS
'Moves the deadline of a reservation to ttl from now, and returns it; null when it has expired or ended, or there is none with that token for the caller. For members of the role
that has reserved. Waits for other transactions that end or extend it. Errors: 22023 ttl, 55000 the triggers of the escrow counters do not fire.';

CREATE FUNCTION interlock_internal.may_end_reservation(role_name name, rel regclass) RETURNS boolean
    LANGUAGE c STABLE AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock_internal.may_end_reservation(name, regclass) IS
'For the view reservations: whether the caller is a member of the role, or the owner of the table.';

CREATE VIEW interlock.reservations WITH (security_barrier) AS
    SELECT c.rel::pg_catalog.regclass, c.key, c.column_name, r.amount, r.holder, r.role_name AS role,
           CASE WHEN m.may_end THEN r.token END AS token, r.reserved_at, r.expires_at,
           r.expires_at OPERATOR(pg_catalog.<=) pg_catalog.clock_timestamp() AS expired
      FROM interlock_internal.escrow_reservation r
      JOIN interlock_internal.escrow_counter c ON c.id OPERATOR(pg_catalog.=) r.counter
      JOIN pg_catalog.pg_class t ON t.oid OPERATOR(pg_catalog.=) c.rel::pg_catalog.oid
     CROSS JOIN LATERAL (SELECT interlock_internal.may_end_reservation(r.role_name, c.rel::pg_catalog.regclass) AS may_end) m
     WHERE m.may_end OR interlock_internal.may_read_counter(c.rel::pg_catalog.regclass, c.column_name);
GRANT SELECT ON interlock.reservations TO PUBLIC;
COMMENT ON VIEW interlock.reservations IS
'Reservations of escrow counters: those of the caller''s roles and tables, and those of tables of which the caller may read the column and the
key, but not of tables whose rows row security hides from the caller. token: null for those who may not end it. expired: its deadline has passed, and the sweeper has not given it back yet.';

-- Leases.

DROP FUNCTION interlock.acquire_lease(text, interval, interval, text, text, text);
DROP FUNCTION interlock.acquire_lease(text, interlock.seconds, interlock.seconds, text, text, text);
CREATE TYPE interlock.acquire_lease_result AS (
    outcome text, token bigint, expires_at timestamptz, holder text, ticket bigint);
COMMENT ON TYPE interlock.acquire_lease_result IS
'What acquire_lease returns: the outcome, of a lease its token, expiry and holder, of one that is held those of it, and the ticket of a
caller that is to be notified.';

CREATE FUNCTION interlock.acquire_lease(
    key text, ttl interval = '30 s', wait interval = '0', holder text = NULL, mode text = 'exclusive', bind text = 'ttl',
    resume boolean = false, at_least interval = NULL, notify boolean = false)
    RETURNS interlock.acquire_lease_result
    LANGUAGE c AS 'MODULE_PATHNAME';
CREATE FUNCTION interlock.acquire_lease(
    key text, ttl interlock.seconds, wait interlock.seconds = '0', holder text = NULL, mode text = 'exclusive', bind text = 'ttl',
    resume boolean = false, at_least interlock.seconds = NULL, notify boolean = false)
    RETURNS interlock.acquire_lease_result
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.acquire_lease(text, interval, interval, text, text, text, boolean, interval, boolean) IS
'Acquires a lease on the key, a path if it has slashes, for ttl. outcome: acquired (with the token that proves it), resumed, held (with
holder and expires_at of the lease in the way), recovering (after a crash, until expires_at). wait: how long to wait at most
(null: as lock_timeout says), first come, first served. holder is a label. mode: exclusive, shared. bind: ttl, or session: no time to live, it
ends with the session. resume: if the same role has it under the same holder, in the same mode, it is renewed, and the answer has its token.
at_least: how long it stays in the way even when it is released, at most ttl. notify: a caller that is refused gets a ticket, and a notification
on channel interlock_lease with the number of the ticket when it should ask again.
Takes effect at once, whether or not the transaction commits. Errors: 22004, 22023, 25006 on a standby, 53400 too many, 55000 not preloaded.';
COMMENT ON FUNCTION interlock.acquire_lease(text, interlock.seconds, interlock.seconds, text, text, text, boolean, interlock.seconds, boolean) IS
'As acquire_lease(text, interval, interval, text, text, text, boolean, interval, boolean), for times as numbers of seconds.';

DROP FUNCTION interlock.acquire_leases(text[], interval, interval, text);
DROP FUNCTION interlock.acquire_leases(text[], interlock.seconds, interlock.seconds, text);
CREATE TYPE interlock.acquire_leases_result AS (
    outcome text, tokens bigint[], expires_at timestamptz, blocked_by text, holder text);
COMMENT ON TYPE interlock.acquire_leases_result IS
'What acquire_leases returns: the outcome, of leases their tokens and expiry, else the key that was not available, and its holder.';

CREATE FUNCTION interlock.acquire_leases(
    keys text[], ttl interval = '30 s', wait interval = '0', holder text = NULL,
    mode text = 'exclusive', bind text = 'ttl')
    RETURNS interlock.acquire_leases_result
    LANGUAGE c AS 'MODULE_PATHNAME';
CREATE FUNCTION interlock.acquire_leases(
    keys text[], ttl interlock.seconds, wait interlock.seconds = '0', holder text = NULL,
    mode text = 'exclusive', bind text = 'ttl')
    RETURNS interlock.acquire_leases_result
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.acquire_leases(text[], interval, interval, text, text, text) IS
'Acquires leases on all the keys or on none; tokens are in the order of keys. A key that is given twice has one lease, and its token twice. If
held: blocked_by is the key that was not available, holder its holder. Calls that wait acquire their keys in one order, so that two such calls never
deadlock. mode and bind: as of acquire_lease. Errors: as acquire_lease; 22023 when one key is below another, 54000 more than 10000 keys.';
COMMENT ON FUNCTION interlock.acquire_leases(text[], interlock.seconds, interlock.seconds, text, text, text) IS
'As acquire_leases(text[], interval, interval, text, text, text), for times as numbers of seconds.';

DROP FUNCTION interlock.renew_lease(text, bigint, interval);
DROP FUNCTION interlock.renew_lease(text, bigint, interlock.seconds);
CREATE FUNCTION interlock.renew_lease(key text, token bigint, ttl interval = NULL, holder text = NULL) RETURNS timestamptz
    LANGUAGE c AS 'MODULE_PATHNAME';
CREATE FUNCTION interlock.renew_lease(key text, token bigint, ttl interlock.seconds, holder text = NULL) RETURNS timestamptz
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.renew_lease(text, bigint, interval, text) IS
'Extends the lease to ttl from now (null: its ttl), and returns its expiry; null when it is lost. It never shortens a lease. One that has
expired and that nobody acquired since is renewed. After a crash it reclaims the lease (null: for 30 s), with the holder as its label. For
members of the role that acquired the lease. Errors: 22004, 22023, 25006, 55000.';
COMMENT ON FUNCTION interlock.renew_lease(text, bigint, interlock.seconds, text) IS
'As renew_lease(text, bigint, interval, text), for times as numbers of seconds.';

DROP FUNCTION interlock.release_lease(text, bigint);
CREATE FUNCTION interlock.release_lease(key text, token bigint = NULL, holder text = NULL) RETURNS boolean
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.release_lease(text, bigint, text) IS
'Releases the lease, and returns whether it was held. holder in place of token: all leases with that label on exactly this key. If open
transactions have asserted it, it is free for others when they have ended. For members of the role that acquired the lease. Errors: 22004, 22023,
25006, 55000.';

COMMENT ON FUNCTION interlock.break_leases(text, text, name) IS
'Breaks all leases of this database whose keys match the LIKE pattern, of the role (null: of all), and returns how many. Each is audited as by
break_lease. Those that open transactions have asserted are skipped, with a warning that counts them. role: tickets of the role for such keys end, too.
Only superusers may call it until EXECUTE is granted. Errors: 22004, 22023, 22025 the pattern, 25006, 42704 no such role, 55000.';

-- Views of users on interlock.leases stay.
ALTER FUNCTION interlock_internal.list_leases() RENAME TO list_leases_of_before;
CREATE FUNCTION interlock_internal.list_leases(
    OUT key text, OUT mode text, OUT holder text, OUT token bigint, OUT since timestamptz, OUT expires_at timestamptz,
    OUT ttl interval, OUT pid integer, OUT pins integer, OUT durable boolean, OUT pinned_by integer[], OUT pinned_since timestamptz,
    OUT role text, OUT released boolean)
    RETURNS SETOF record
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock_internal.list_leases() IS 'The rows of the view leases.';
CREATE OR REPLACE VIEW interlock.leases AS SELECT * FROM interlock_internal.list_leases();
DROP FUNCTION interlock_internal.list_leases_of_before();
COMMENT ON VIEW interlock.leases IS
'The leases of this database. token is shown to members of the role that acquired it; pid is the session it is bound to;
pins counts open transactions that have asserted it, pinned_by are their processes and pinned_since the start of the oldest; durable is
true for a lease with a record of its own; role has acquired it; released is true for one that stays until its at_least is over.';

CREATE FUNCTION interlock.lease_of(
    key text, OUT mode text, OUT holder text, OUT token bigint, OUT role text, OUT pid integer, OUT since timestamptz,
    OUT expires_at timestamptz, OUT blocks_key text, OUT pinned_by integer[], OUT pinned_since timestamptz)
    RETURNS SETOF record
    LANGUAGE c ROWS 1 AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.lease_of(text) IS
'The lease that is in the way of an exclusive one on the key, no row if there is none: at the key, else above it, else below it; blocks_key is its
key. The other columns are those of the view leases. It costs the same however many leases there are. Errors: 22004, 22023, 25006,
55000.';

CREATE FUNCTION interlock.key_path(part text, VARIADIC parts "any") RETURNS text
    LANGUAGE c STABLE PARALLEL SAFE AS 'MODULE_PATHNAME', 'key_path_text_and_any';
COMMENT ON FUNCTION interlock.key_path(text, "any") IS
'As key_path("any"): a first part without a type is text, also beside parts that have one.';

-- Key locks.

CREATE TABLE interlock_internal.prepared_key (
    space smallint NOT NULL,
    hash bigint NOT NULL,
    name text NOT NULL,
    role oid NOT NULL);
COMMENT ON TABLE interlock_internal.prepared_key IS
'The names of keys that prepared transactions hold, for the view key_locks: rows that such a transaction has inserted and deleted, which
no snapshot shows.';

COMMENT ON VIEW interlock.key_locks IS
'Holders and waiters of the key locks and application locks of this database. key is null where the name is not known: of
sessions without preload. The pid is null for prepared transactions. Keys of idempotency and their hashes are shown to the role of
the session, or of the prepared transaction, and to members of pg_read_all_stats.';

COMMENT ON FUNCTION interlock.getapplock(text, text, text, integer) IS
'SQL Server''s sp_getapplock. lock_mode: Shared, Update, IntentShared, IntentExclusive, Exclusive. lock_owner: Transaction, Session.
lock_timeout: milliseconds, -1 for ever. Returns 0 granted, 1 granted after waiting, -1 timeout, -2 canceled, -3 deadlock
victim, -999 bad call; the transaction goes on after each. Errors: 55000 out of order, with interlock.lock_order = error.';

-- Idempotency.

ALTER TABLE interlock.idempotency_scope ADD COLUMN max_attempts integer,
    ADD CONSTRAINT idempotency_scope_max_attempts CHECK (max_attempts OPERATOR(pg_catalog.>) 0);

-- Nullable and without a default: existing rows stay as they are.
ALTER TABLE interlock.idempotency ADD COLUMN body bytea, ADD COLUMN ttl interval, ADD COLUMN stale_after interval;
COMMENT ON TABLE interlock.idempotency IS
'The keys: pending until the deadline, then completed or failed until they expire. response_omitted: it was larger than the
scope allows. ttl, stale_after: of this claim, null: the scope''s. Callers of the functions need a grant of the scope (grant_idempotency_scope) and no privilege on this table. The functions
run with the owner''s privileges and bypass row security.';

CREATE TABLE interlock.idempotency_audit (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    forgotten_at timestamptz NOT NULL DEFAULT pg_catalog.clock_timestamp(),
    forgotten_by text NOT NULL,
    scope text NOT NULL,
    key text NOT NULL,
    status text NOT NULL,
    attempt integer NOT NULL,
    reason text NOT NULL);
COMMENT ON TABLE interlock.idempotency_audit IS 'Every use of idempotency_forget: time, user, key, what it was, reason.';
COMMENT ON SEQUENCE interlock.idempotency_audit_id_seq IS 'Numbers the rows of idempotency_audit.';
SELECT pg_catalog.pg_extension_config_dump('interlock.idempotency_audit', '');
SELECT pg_catalog.pg_extension_config_dump('interlock.idempotency_audit_id_seq', '');

DROP FUNCTION interlock.define_idempotency_scope(text, text, interval, interval, boolean, integer);
CREATE FUNCTION interlock.define_idempotency_scope(
    scope text, model text = 'api', ttl interval = '24 h', stale_after interval = '1 min',
    replay_failures boolean = false, max_response_bytes integer = 65536, max_attempts integer = NULL) RETURNS void
    LANGUAGE c AS 'MODULE_PATHNAME';
REVOKE EXECUTE ON FUNCTION interlock.define_idempotency_scope(text, text, interval, interval, boolean, integer, integer) FROM PUBLIC;
COMMENT ON FUNCTION interlock.define_idempotency_scope(text, text, interval, interval, boolean, integer, integer) IS
'Defines how long keys of a scope live: ttl after they ended, and stale_after without a sign of life until another claim may take over.
model: api (the response is replayed) or job (checkpoints, which a takeover gets). replay_failures: retryable failures, too.
A larger response, its body included, is not kept; its key is never run again all the same. max_attempts: so many claims of one key,
null: any number. A scope that is not defined has these defaults.
Only superusers may call it until EXECUTE is granted. Errors: 22004, 22023.';

DROP FUNCTION interlock.idempotency_claim(text, text, jsonb, interval);
CREATE TYPE interlock.idempotency_claim_result AS (
    outcome text, token bigint, attempt integer, response jsonb, result_id text, checkpoint text, state jsonb,
    body bytea, has_response boolean, deadline timestamptz);
COMMENT ON TYPE interlock.idempotency_claim_result IS
'What idempotency_claim returns: the outcome, of a claim its token and progress, of a key that has ended the answer.';

CREATE FUNCTION interlock.idempotency_claim(
    scope text, key text, request jsonb = NULL, wait interval = '0', request_hash bytea = NULL,
    ttl interval = NULL, stale_after interval = NULL, state jsonb = NULL) RETURNS interlock.idempotency_claim_result
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.idempotency_claim(text, text, jsonb, interval, bytea, interval, interval, jsonb) IS
'Claims a key, or returns why not: acquired (with the token), replay (completed, with its response and body), failed, exhausted (tried
as often as the scope allows), in_progress (claimed by another; wait: how long to wait for its end, null: as lock_timeout says),
mismatch (the key was used with another request; equal JSON is equal; request_hash: the hash of it in its place). ttl, stale_after: of
this claim, in place of the scope''s; ttl not longer, stale_after not longer than both. state: of a job that begins. Takes over a claim without a sign of life for
stale_after. has_response: that there was one, also if it was too large to keep. deadline: of the claim, or of the one in the way, null
while that is not committed. This and the functions below need a grant of the scope. Errors: 42501 the scope is not granted to a role of
the current user; 40001 under REPEATABLE READ and above when the key changed after the snapshot; 22004, 22023.';

DROP FUNCTION interlock.idempotency_complete(text, text, bigint, jsonb, text);
CREATE FUNCTION interlock.idempotency_complete(
    scope text, key text, token bigint, response jsonb = NULL, result_id text = NULL, body bytea = NULL) RETURNS boolean
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.idempotency_complete(text, text, bigint, jsonb, text, bytea) IS
'Marks the claim as completed, and returns whether response and body are kept: false when they are larger than the scope allows. A
second call with the same token and answer does nothing. Errors: IL008 the claim was taken over or has ended.';

CREATE FUNCTION interlock.idempotency_release(scope text, key text, token bigint) RETURNS boolean
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.idempotency_release(text, text, bigint) IS
'Gives a claim back whose work certainly had no effect: the key is as before the claim, free for any request if this was the first
attempt, else for the next attempt, as this one does not count. False when the claim is lost: taken over, or ended.';

CREATE FUNCTION interlock.idempotency_forget(scope text, key text, reason text, force boolean = false) RETURNS boolean
    LANGUAGE c AS 'MODULE_PATHNAME';
REVOKE EXECUTE ON FUNCTION interlock.idempotency_forget(text, text, text, boolean) FROM PUBLIC;
COMMENT ON FUNCTION interlock.idempotency_forget(text, text, text, boolean) IS
'Makes a key as never claimed, with its request and response; false when there is none. Its work may be done again. force: also one that
is claimed and whose deadline is not over; its owner has lost it then, as by a takeover. Audited in idempotency_audit. Only superusers may
call it until EXECUTE is granted. Errors: 55006 the key is claimed and its deadline not over, or a transaction uses it; 22004, 22023.';

CREATE FUNCTION interlock.idempotency_lookup(
    scope text, key text,
    OUT status text, OUT has_response boolean, OUT attempt integer, OUT retryable boolean, OUT response jsonb, OUT result_id text,
    OUT checkpoint text, OUT state jsonb, OUT claimed_at timestamptz, OUT deadline timestamptz, OUT finished_at timestamptz,
    OUT expires_at timestamptz, OUT body bytea)
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.idempotency_lookup(text, text) IS
'What is known of a key, without claiming it: pending, stale (claimed, and past its deadline), completed or failed; nulls for a key that
was never claimed, whose claim is not committed, or that has expired.';

DROP FUNCTION interlock.run_once(text, text, regprocedure, jsonb);
CREATE FUNCTION interlock.run_once(
    scope text, key text, command regprocedure, request jsonb = NULL, wait interval = '0',
    OUT outcome text, OUT response jsonb)
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.run_once(text, text, regprocedure, jsonb, interval) IS
'Claims the key, runs command(request jsonb), which returns jsonb or void, and completes the key with what it returns, all in
the caller''s transaction: completed; else replay, failed, exhausted, in_progress or mismatch as idempotency_claim. wait: how long to wait
for another call with the key, to get its response. The command is named with its argument types: ''pay(jsonb)''.';

CREATE FUNCTION interlock.idempotency_request_hash(request jsonb) RETURNS bytea
    LANGUAGE c IMMUTABLE PARALLEL SAFE AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.idempotency_request_hash(jsonb) IS
'The hash of a request that idempotency_claim compares, 32 bytes; equal JSON has the same. Errors: 22004.';

CREATE FUNCTION interlock.idempotency_key(part text, VARIADIC parts "any") RETURNS text
    LANGUAGE c STABLE PARALLEL SAFE AS 'MODULE_PATHNAME', 'idempotency_key_text_and_any';
COMMENT ON FUNCTION interlock.idempotency_key(text, "any") IS
'As idempotency_key("any"): a first part without a type is text, also beside parts that have one.';

-- Ownership and history.

-- What spans concepts.

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

CREATE FUNCTION interlock.advise(OUT rel regclass, OUT finding text, OUT evidence text, OUT advice text) RETURNS SETOF record
    LANGUAGE sql STABLE
BEGIN ATOMIC
    WITH visible AS (
        SELECT c.oid, c.relispartition, c.reltuples
          FROM pg_catalog.pg_class c
         WHERE c.relkind OPERATOR(pg_catalog.=) ANY ('{r,p}'::pg_catalog."char"[])
           AND c.relpersistence OPERATOR(pg_catalog.<>) 't'
           AND (pg_catalog.has_table_privilege(c.oid, 'SELECT, INSERT, UPDATE, DELETE, TRUNCATE, REFERENCES, TRIGGER')
                OR pg_catalog.has_any_column_privilege(c.oid, 'SELECT, INSERT, UPDATE, REFERENCES')
                OR pg_catalog.pg_has_role('pg_read_all_stats', 'USAGE'))),
    tables AS ( -- that users have made
        SELECT v.oid
          FROM visible v
          JOIN pg_catalog.pg_class c ON c.oid OPERATOR(pg_catalog.=) v.oid
          JOIN pg_catalog.pg_namespace n ON n.oid OPERATOR(pg_catalog.=) c.relnamespace
         WHERE n.nspname OPERATOR(pg_catalog.!~) '^pg_' AND n.nspname OPERATOR(pg_catalog.<>) 'information_schema'
           AND NOT EXISTS (SELECT FROM pg_catalog.pg_depend d
                            WHERE d.classid OPERATOR(pg_catalog.=) 'pg_catalog.pg_class'::pg_catalog.regclass
                              AND d.objid OPERATOR(pg_catalog.=) v.oid AND d.deptype OPERATOR(pg_catalog.=) 'e')
           AND NOT EXISTS (SELECT FROM pg_catalog.pg_attribute a -- a history, also one that is not recorded any more
                            WHERE a.attrelid OPERATOR(pg_catalog.=) v.oid AND NOT a.attisdropped
                              AND a.attname OPERATOR(pg_catalog.=) ANY ('{row_data,operation,changed_at}'::pg_catalog.name[])
                           HAVING pg_catalog.count(*) OPERATOR(pg_catalog.=) 3)),
    columns AS ( -- that a mechanism could use
        SELECT t.oid, a.attnum, a.attname, a.atttypid,
               pg_catalog.lower(pg_catalog.regexp_replace(a.attname::pg_catalog.text, '[^[:alnum:]]', '', 'g')) AS word
          FROM tables t
          JOIN pg_catalog.pg_attribute a ON a.attrelid OPERATOR(pg_catalog.=) t.oid
         WHERE a.attnum OPERATOR(pg_catalog.>) 0 AND NOT a.attisdropped AND a.attinhcount OPERATOR(pg_catalog.=) 0
           AND a.attidentity OPERATOR(pg_catalog.=) '' AND a.attgenerated OPERATOR(pg_catalog.=) ''),
    holders AS ( -- of locks made by hand, with what else such a lock has; a table can have hundreds that are named like that
        SELECT c.oid, c.attname, c.time_column, c.has_status
          FROM (SELECT c.oid, c.attname, c.word, c.atttypid,
                       pg_catalog.min(c.attname::pg_catalog.text) FILTER (
                           WHERE c.atttypid OPERATOR(pg_catalog.=) ANY (ARRAY['pg_catalog.timestamp'::pg_catalog.regtype,
                                     'pg_catalog.timestamptz'::pg_catalog.regtype]::pg_catalog.oid[])
                             AND c.attname OPERATOR(pg_catalog.~*) '^(lock_?time|lock(ed)?_?at|checked_?out_?at)$') OVER of_table AS time_column,
                       pg_catalog.bool_or(c.attname OPERATOR(pg_catalog.=) 'status'
                           AND c.atttypid OPERATOR(pg_catalog.=) ANY (ARRAY['pg_catalog.int2'::pg_catalog.regtype,
                                   'pg_catalog.int4'::pg_catalog.regtype]::pg_catalog.oid[])) OVER of_table AS has_status
                  FROM columns c
                WINDOW of_table AS (PARTITION BY c.oid)) c
         WHERE c.word OPERATOR(pg_catalog.=) ANY ('{lockby,lockedby,lockuser,lockeduser,lockedbyuser,lockowner,lockholder,checkedoutby}'::pg_catalog.text[])
           AND c.atttypid OPERATOR(pg_catalog.=) ANY (ARRAY['pg_catalog.text'::pg_catalog.regtype, 'pg_catalog.varchar'::pg_catalog.regtype]::pg_catalog.oid[])),
    status AS (
        SELECT c.oid, c.attnum, c.attname, c.atttypid FROM columns c WHERE c.attname OPERATOR(pg_catalog.~*) '(status|state)$'),
    lists AS ( -- columns that have a list of states: an enum, or a CHECK (... IN (...)) of the column alone; a table can have thousands of both
        SELECT l.oid, pg_catalog.min(l.attname) AS attname, pg_catalog.bool_or(l.is_integer) AS is_integer, pg_catalog.min(l.evidence) AS evidence
          FROM (SELECT s.oid, s.attnum, s.attname::pg_catalog.text AS attname,
                       s.atttypid OPERATOR(pg_catalog.=) ANY (ARRAY['pg_catalog.int2'::pg_catalog.regtype, 'pg_catalog.int4'::pg_catalog.regtype,
                           'pg_catalog.int8'::pg_catalog.regtype]::pg_catalog.oid[]) AS is_integer,
                       (SELECT pg_catalog.format('type %s', e.oid::pg_catalog.regtype)
                          FROM pg_catalog.pg_type e
                         WHERE e.oid OPERATOR(pg_catalog.=) s.atttypid AND e.typtype OPERATOR(pg_catalog.=) 'e') AS evidence
                  FROM status s
                 UNION ALL
                SELECT k.conrelid, k.conkey[1], NULL, NULL, pg_catalog.format('constraint "%s"', k.conname)
                  FROM pg_catalog.pg_constraint k
                 WHERE k.conrelid OPERATOR(pg_catalog.=) ANY (SELECT s.oid FROM status s)
                   AND k.contype OPERATOR(pg_catalog.=) 'c' AND pg_catalog.cardinality(k.conkey) OPERATOR(pg_catalog.=) 1
                   AND pg_catalog.substr(k.conbin::pg_catalog.text, 1, 65536) OPERATOR(pg_catalog.~) '\{SCALARARRAYOPEXPR [^{]*:useOr true') l
         GROUP BY l.oid, l.attnum
        HAVING pg_catalog.min(l.attname) IS NOT NULL AND pg_catalog.min(l.evidence) IS NOT NULL),
    guards AS MATERIALIZED (
        SELECT g.rel, g.mechanism, g.settings, g.findings FROM interlock_internal.list_guards() g),
    findings AS MATERIALIZED (
        SELECT f.rel, f.finding, f.mechanisms, f.advice
          FROM interlock_internal.list_findings(true) f
          JOIN visible v ON v.oid OPERATOR(pg_catalog.=) f.rel::pg_catalog.oid),
    guarded AS (
        SELECT g.rel::pg_catalog.oid AS oid, g.mechanism FROM guards g
         UNION
        SELECT f.rel::pg_catalog.oid, m.mechanism FROM findings f CROSS JOIN LATERAL pg_catalog.unnest(f.mechanisms) m (mechanism)),
    states AS ( -- columns that are guarded, as such or as those of a marker
        SELECT g.rel::pg_catalog.oid AS oid, k.name
          FROM guards g
         CROSS JOIN LATERAL pg_catalog.jsonb_object_keys(g.settings) k (name)
         WHERE g.mechanism OPERATOR(pg_catalog.=) 'transitions'
         UNION ALL
        SELECT g.rel::pg_catalog.oid, g.settings OPERATOR(pg_catalog.->>) 'status_column'
          FROM guards g
         WHERE g.mechanism OPERATOR(pg_catalog.=) 'marker' AND g.settings IS NOT NULL),
    preload AS (
        SELECT p.for_all,
               (SELECT pg_catalog.count(*) FROM guards g WHERE g.mechanism OPERATOR(pg_catalog.=) 'marker') AS markers,
               (SELECT pg_catalog.count(*) FROM guards g
                 WHERE g.mechanism OPERATOR(pg_catalog.=) 'history'
                   AND pg_catalog.num_nonnulls(g.settings OPERATOR(pg_catalog.->>) 'keep_versions', g.settings OPERATOR(pg_catalog.->>) 'keep_for')
                       OPERATOR(pg_catalog.>) 0) AS histories
          FROM interlock_internal.is_preloaded() p),
    counted AS ( -- of this database; a share is of the calls, in percent
        SELECT c.*, pg_catalog.to_char(c.since, 'YYYY-MM-DD HH24:MI') AS begin,
               pg_catalog.round(c.conflicts OPERATOR(pg_catalog.*) 100.0 OPERATOR(pg_catalog./) NULLIF(c.calls, 0), 1) AS conflict_share,
               pg_catalog.round(c.timeouts OPERATOR(pg_catalog.*) 100.0 OPERATOR(pg_catalog./) NULLIF(c.calls, 0), 1) AS timeout_share,
               pg_catalog.round(c.expiries OPERATOR(pg_catalog.*) 100.0 OPERATOR(pg_catalog./) NULLIF(c.calls, 0), 1) AS expiry_share,
               pg_catalog.round(c.takeovers OPERATOR(pg_catalog.*) 100.0 OPERATOR(pg_catalog./) NULLIF(c.calls, 0), 1) AS takeover_share
          FROM interlock_internal.list_contention() c
         WHERE c.database OPERATOR(pg_catalog.=) pg_catalog.current_database()
           AND (c.rel IS NULL OR c.rel::pg_catalog.oid OPERATOR(pg_catalog.=) ANY (SELECT v.oid FROM visible v))),
    keys AS ( -- an expression for the keys of some rows, which runs no function of another type
        SELECT i.indrelid AS oid,
               pg_catalog.format('(SELECT pg_catalog.jsonb_agg(pg_catalog.to_jsonb(k)) FROM (SELECT %s FROM %s LIMIT 1) k)',
                   pg_catalog.string_agg(pg_catalog.quote_ident(a.attname), ', ' ORDER BY pg_catalog.array_position(i.indkey::pg_catalog.int2[], a.attnum)),
                   i.indrelid::pg_catalog.regclass) AS expression
          FROM pg_catalog.pg_index i
          JOIN pg_catalog.pg_attribute a ON a.attrelid OPERATOR(pg_catalog.=) i.indrelid AND a.attnum OPERATOR(pg_catalog.=) ANY (i.indkey)
         WHERE i.indisprimary AND i.indrelid OPERATOR(pg_catalog.=) ANY (SELECT c.rel::pg_catalog.oid FROM counted c)
         GROUP BY i.indrelid, i.indkey
        HAVING pg_catalog.bool_and(a.atttypid OPERATOR(pg_catalog.<) 16384::pg_catalog.oid)),
    limits AS ( -- that are nearly reached
        SELECT u.what, u.used, u."of", m.setting
          FROM interlock_internal.list_usage() u
          JOIN (VALUES ('leases', 'interlock.max_leases'), ('key names', 'interlock.key_names'),
                       ('contention lines', 'interlock.max_contention_lines')) m (what, setting) ON m.what OPERATOR(pg_catalog.=) u.what
         WHERE u.role IS NULL AND u.database IS NULL AND (u.used OPERATOR(pg_catalog.*) 10) OPERATOR(pg_catalog.>=) (u."of" OPERATOR(pg_catalog.*) 8)),
    found AS (
        SELECT f.rel, f.finding, pg_catalog.array_to_string(f.mechanisms, ', ') AS evidence, f.advice FROM findings f
        UNION ALL
        SELECT g.rel, f.finding, g.mechanism,
               CASE WHEN pg_catalog.starts_with(f.finding, 'trigger ') THEN 'drop the trigger: no function of the extension has made it'
                    ELSE 'drop triggers that no function of the extension has made' END
          FROM guards g
         CROSS JOIN LATERAL pg_catalog.unnest(g.findings) f (finding)
        UNION ALL
        SELECT c.oid::pg_catalog.regclass, pg_catalog.format('updates do not move column "%s": a stale save is not refused', c.attname),
               'the name of the column',
               pg_catalog.format('SELECT interlock.enable_versioning(%L, %L)', c.oid::pg_catalog.regclass, c.attname)
          FROM columns c
         WHERE c.word OPERATOR(pg_catalog.=)
                   ANY ('{version,lockversion,rowversion,rowver,recordversion,entityversion,objectversion,optlock,optimisticlock}'::pg_catalog.text[])
           AND c.atttypid OPERATOR(pg_catalog.=) ANY (ARRAY['pg_catalog.int4'::pg_catalog.regtype, 'pg_catalog.int8'::pg_catalog.regtype]::pg_catalog.oid[])
           AND NOT c.oid OPERATOR(pg_catalog.=) ANY (SELECT g.oid FROM guarded g WHERE g.mechanism OPERATOR(pg_catalog.=) 'versioning')
           AND NOT ROW (c.oid, c.attnum) OPERATOR(pg_catalog.=) ANY ( -- versions of a document, each in a row of its own
                       SELECT i.indrelid, k.attnum
                         FROM pg_catalog.pg_index i CROSS JOIN LATERAL pg_catalog.unnest(i.indkey::pg_catalog.int2[]) k (attnum)
                        WHERE i.indisunique)
           AND NOT ROW (c.oid, c.attnum) OPERATOR(pg_catalog.=) ANY (
                       SELECT f.conrelid, k.attnum
                         FROM pg_catalog.pg_constraint f CROSS JOIN LATERAL pg_catalog.unnest(f.conkey) k (attnum)
                        WHERE f.contype OPERATOR(pg_catalog.=) 'f')
        UNION ALL
        SELECT c.oid::pg_catalog.regclass, pg_catalog.format('column "%s" has a list of states, and may change from each to each', c.attname), c.evidence,
               pg_catalog.format('interlock.define_transitions(%L, %L, ...) declares which state may follow which', c.oid::pg_catalog.regclass, c.attname)
          FROM lists c
         WHERE NOT ROW (c.oid, c.attname) OPERATOR(pg_catalog.=) ANY (SELECT g.oid, g.name FROM states g)
           AND NOT c.oid OPERATOR(pg_catalog.=) ANY (SELECT g.rel::pg_catalog.oid FROM guards g
                                                      WHERE g.mechanism OPERATOR(pg_catalog.=) 'transitions' AND g.settings IS NULL)
           AND NOT (c.is_integer AND c.oid OPERATOR(pg_catalog.=) ANY (SELECT h.oid FROM holders h)) -- that of the lock
        UNION ALL
        SELECT h.oid::pg_catalog.regclass, pg_catalog.format('column "%s" is of a lock made by hand: other writers need not look at it, and it does not expire; with a marker the program calls lock_row and save_row', h.attname),
               'the name of the column',
               pg_catalog.format('SELECT interlock.enable_marker(%L, holder_column => %L%s%s)', h.oid::pg_catalog.regclass, h.attname,
                   CASE WHEN h.time_column IS NOT NULL THEN pg_catalog.format(', time_column => %L', h.time_column) END,
                   CASE WHEN h.has_status THEN ', status_column => ''status''' END)
          FROM holders h
         WHERE NOT h.oid OPERATOR(pg_catalog.=) ANY (SELECT g.oid FROM guarded g WHERE g.mechanism OPERATOR(pg_catalog.=) 'marker')
        UNION ALL
        SELECT g.rel, 'no index for sweeps: each one reads the whole table', pg_catalog.format('%s rows, by the last ANALYZE', v.reltuples::pg_catalog.int8),
               pg_catalog.format('SELECT interlock.configure(%L, %L)', g.rel, '{"marker": {"sweep_index": true}}')
          FROM guards g
          JOIN visible v ON v.oid OPERATOR(pg_catalog.=) g.rel::pg_catalog.oid AND NOT v.relispartition
         WHERE g.mechanism OPERATOR(pg_catalog.=) 'marker' AND g.settings OPERATOR(pg_catalog.->>) 'sweep_index' OPERATOR(pg_catalog.=) 'false'
           AND v.reltuples OPERATOR(pg_catalog.>=) 10000
        UNION ALL
        SELECT NULL::pg_catalog.regclass, 'shared_preload_libraries does not have the library: no worker releases expired markers, nor trims histories',
               pg_catalog.format('tables with markers: %s, with histories of a limited length: %s', p.markers, p.histories),
               'add pg_interlock to shared_preload_libraries, and restart the server'
          FROM preload p
         WHERE NOT p.for_all AND p.markers OPERATOR(pg_catalog.+) p.histories OPERATOR(pg_catalog.>) 0
        UNION ALL
        SELECT NULL::pg_catalog.regclass, 'shared_preload_libraries does not have the library: nothing counts how often writers collide',
               pg_catalog.format('guarded tables: %s', g.tables), 'add pg_interlock to shared_preload_libraries, and restart the server'
          FROM preload p
         CROSS JOIN (SELECT pg_catalog.count(DISTINCT g.rel::pg_catalog.oid) AS tables FROM guards g
                      WHERE g.mechanism OPERATOR(pg_catalog.=) ANY ('{versioning,transitions,ownership,require_lease}'::pg_catalog.text[])) g
         WHERE NOT p.for_all AND p.markers OPERATOR(pg_catalog.+) p.histories OPERATOR(pg_catalog.=) 0 AND g.tables OPERATOR(pg_catalog.>) 0
        UNION ALL
        SELECT c.rel, pg_catalog.format('more than 5 %% of the calls are conflicts (%s): read again before each attempt, and from about 30 %% on lock the row first', c.kind),
               pg_catalog.format('%s of %s calls, %s %%, since %s', c.conflicts, c.calls, c.conflict_share, c.begin),
               pg_catalog.format('SELECT * FROM interlock.select_for_update(%L, %s, wait => ''2 s'') -- with the key of the row, first in its transaction', c.rel, COALESCE(k.expression, '...'))
          FROM counted c
          LEFT JOIN keys k ON k.oid OPERATOR(pg_catalog.=) c.rel::pg_catalog.oid
         WHERE c.kind OPERATOR(pg_catalog.=) ANY ('{versioning,transitions}'::pg_catalog.text[]) AND c.calls OPERATOR(pg_catalog.>=) 1000 AND c.conflict_share OPERATOR(pg_catalog.>) 5
        UNION ALL
        SELECT c.rel, pg_catalog.format('calls wait for a row more than 10 ms on average (%s): docs/guide/hot-rows.md is for numbers that all change, docs/choosing.md for the rest', c.kind),
               pg_catalog.format('%s of %s calls, %s in all, since %s', c.waits, c.calls, c.wait_time, c.begin),
               pg_catalog.format('SELECT * FROM interlock.blocking WHERE kind = ''row'' AND rel OPERATOR(pg_catalog.=) %L::pg_catalog.regclass', c.rel)
          FROM counted c
         WHERE c.rel IS NOT NULL AND c.kind OPERATOR(pg_catalog.<>) 'escrow' AND c.calls OPERATOR(pg_catalog.>=) 1000 AND (c.wait_time OPERATOR(pg_catalog./) NULLIF(c.calls, 0)) OPERATOR(pg_catalog.>) '10 ms'::pg_catalog.interval
        UNION ALL
        SELECT c.rel, 'statements write rows without comparing their version: a stale one overwrites the other',
               pg_catalog.format('%s rows since %s; from 100 on', c.blind_updates, c.begin),
               pg_catalog.format('SELECT interlock.configure(%L, %L)', c.rel, '{"versioning": {"blind_updates": "reject"}}')
          FROM counted c
          JOIN guards g ON g.rel::pg_catalog.oid OPERATOR(pg_catalog.=) c.rel::pg_catalog.oid AND g.mechanism OPERATOR(pg_catalog.=) 'versioning'
         WHERE c.kind OPERATOR(pg_catalog.=) 'versioning' AND c.blind_updates OPERATOR(pg_catalog.>=) 100
           AND g.settings OPERATOR(pg_catalog.->>) 'blind_updates' OPERATOR(pg_catalog.=) 'allow'
        UNION ALL
        SELECT c.rel, 'more than 5 % of the markers expire under their holders: touch_row prolongs one, or the ttl is too short',
               pg_catalog.format('%s expired at %s calls, %s %%, since %s', c.expiries, c.calls, c.expiry_share, c.begin),
               pg_catalog.format('SELECT interlock.configure(%L, %L)', c.rel,
                   pg_catalog.jsonb_build_object('marker', pg_catalog.jsonb_build_object('ttl',
                       ((g.settings OPERATOR(pg_catalog.->>) 'ttl')::pg_catalog.interval OPERATOR(pg_catalog.*) 2)::pg_catalog.text)))
          FROM counted c
          JOIN guards g ON g.rel::pg_catalog.oid OPERATOR(pg_catalog.=) c.rel::pg_catalog.oid AND g.mechanism OPERATOR(pg_catalog.=) 'marker'
         WHERE c.kind OPERATOR(pg_catalog.=) 'marker' AND c.calls OPERATOR(pg_catalog.>=) 100 AND c.expiry_share OPERATOR(pg_catalog.>) 5
        UNION ALL
        SELECT NULL::pg_catalog.regclass, pg_catalog.format('more than 5 %% of the leases of class "%s" expire under their holders', c.key_class),
               pg_catalog.format('%s expired at %s calls, %s %%, since %s', c.expiries, c.calls, c.expiry_share, c.begin),
               pg_catalog.format('SELECT key, holder, ttl, expires_at FROM interlock.leases WHERE starts_with(key, %L) -- renew them after a third of it', c.key_class)
          FROM counted c
         WHERE c.kind OPERATOR(pg_catalog.=) 'lease' AND c.calls OPERATOR(pg_catalog.>=) 100 AND c.expiry_share OPERATOR(pg_catalog.>) 5
        UNION ALL
        SELECT NULL::pg_catalog.regclass, pg_catalog.format('leases of class "%s" are renewed after half of their ttl: a pause of the holder loses them', c.key_class),
               pg_catalog.format('%s of %s renewals since %s; from 20 %% on', c.late_renewals, c.renewals, c.begin),
               pg_catalog.format('SELECT key, holder, ttl, expires_at FROM interlock.leases WHERE starts_with(key, %L) -- renew them after a third of it', c.key_class)
          FROM counted c
         WHERE c.kind OPERATOR(pg_catalog.=) 'lease' AND c.renewals OPERATOR(pg_catalog.>=) 100
           AND c.late_renewals OPERATOR(pg_catalog.*) 5.0 OPERATOR(pg_catalog.>=) c.renewals
        UNION ALL
        SELECT NULL::pg_catalog.regclass, pg_catalog.format('more than half of the calls for leases of class "%s" are refused: callers that poll could wait', c.key_class),
               pg_catalog.format('%s of %s calls, %s %%, since %s', c.conflicts, c.calls, c.conflict_share, c.begin),
               pg_catalog.format('SELECT * FROM interlock.acquire_lease(%L, wait => ''10 s'')', c.key_class)
          FROM counted c
         WHERE c.kind OPERATOR(pg_catalog.=) 'lease' AND c.calls OPERATOR(pg_catalog.>=) 1000 AND c.conflict_share OPERATOR(pg_catalog.>) 50
        UNION ALL
        SELECT NULL::pg_catalog.regclass, pg_catalog.format('more than 5 %% of the waits for keys of class "%s" (%s) are given up', c.key_class, c.kind),
               pg_catalog.format('%s of %s calls, %s %%, since %s', c.timeouts, c.calls, c.timeout_share, c.begin),
               pg_catalog.format('SELECT * FROM interlock.blocking WHERE starts_with(name, %L)', c.key_class)
          FROM counted c
         WHERE c.key_class IS NOT NULL AND c.calls OPERATOR(pg_catalog.>=) 1000 AND c.timeout_share OPERATOR(pg_catalog.>) 5
        UNION ALL
        SELECT NULL::pg_catalog.regclass, pg_catalog.format('more than 5 %% of the claims of scope "%s" become stale and are taken over', c.key_class),
               pg_catalog.format('%s of %s claims, %s %%, since %s', c.takeovers, c.calls, c.takeover_share, c.begin),
               pg_catalog.format('SELECT interlock.define_idempotency_scope(%L, model => %L, ttl => %L, stale_after => %L, replay_failures => %L, max_response_bytes => %s, max_attempts => %s)',
                   c.key_class, COALESCE(s.model, 'api'), COALESCE(s.ttl, '24 hours'), COALESCE(s.stale_after, '1 min') OPERATOR(pg_catalog.*) 2,
                   COALESCE(s.replay_failures, false), COALESCE(s.max_response_bytes, 65536), COALESCE(s.max_attempts::pg_catalog.text, 'null'))
          FROM counted c
          LEFT JOIN interlock.idempotency_scope s ON s.scope OPERATOR(pg_catalog.=) c.key_class
         WHERE c.kind OPERATOR(pg_catalog.=) 'idempotency' AND c.calls OPERATOR(pg_catalog.>=) 100 AND c.takeover_share OPERATOR(pg_catalog.>) 5
           AND pg_catalog.octet_length(c.key_class) OPERATOR(pg_catalog.<) 63 -- else it may be cut
        UNION ALL
        SELECT e.rel, pg_catalog.format('parts of column "%s" wait for the sweeper: plain reads of it are late, and the journal grows', e.column_name),
               pg_catalog.format('%s parts of %s rows, for up to %s; from 10 seconds on', pg_catalog.sum(e.parts), pg_catalog.count(*), pg_catalog.max(e.behind)),
               pg_catalog.format('SELECT interlock.fold_escrow(%L) -- or look who has locked its rows, and at last_error of view sweeper', e.rel)
          FROM interlock.escrow e
         WHERE e.parts OPERATOR(pg_catalog.>) 0 AND e.behind OPERATOR(pg_catalog.>) '10 seconds'::pg_catalog.interval -- the first is cheap
         GROUP BY e.rel, e.column_name
        UNION ALL
        SELECT NULL::pg_catalog.regclass, pg_catalog.format('%s is nearly too small', l.setting),
               pg_catalog.format('%s: %s of %s; from 80 %% on', l.what, l.used, l."of"),
               pg_catalog.format('ALTER SYSTEM SET %s = %s -- and restart the server', l.setting, l."of" OPERATOR(pg_catalog.*) 2)
          FROM limits l)
    SELECT f.rel, f.finding, f.evidence, f.advice FROM found f ORDER BY f.rel::pg_catalog.text NULLS FIRST, f.finding;
END;
COMMENT ON FUNCTION interlock.advise() IS
'What to change, as the catalog and the counters of view contention show it: all that check_versioning lists, triggers that no function of the
extension has made, columns that look like versions and are not moved by updates, states with a CHECK or an enum and no transitions, locks made by
hand and no marker, large tables with markers and no index for sweeps, the library that is not preloaded; and, of what was called often enough,
conflicts, waits, blind updates, markers and leases that expire, leases that are renewed late, stale claims, escrow counters whose parts the sweeper does not
get to, and settings that are too small.
evidence: what says so. Tables on which the caller has some privilege; all for pg_monitor. Waits for no lock. No row means that nothing of this was found.';

-- Views of what is held and who waits.

CREATE FUNCTION interlock_internal.list_held_leases(
    permits boolean, OUT name text, OUT holder text, OUT role text, OUT pid integer, OUT since timestamptz,
    OUT expires_at timestamptz, OUT waiters bigint, OUT mode text)
    RETURNS SETOF record
    LANGUAGE c ROWS 1000 AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock_internal.list_held_leases(boolean) IS
'For the view held: the permits of this database, or all other leases.';

CREATE FUNCTION interlock_internal.list_held_keys(
    kind text, OUT name text, OUT mode text, OUT pid integer, OUT transaction xid, OUT waiters bigint)
    RETURNS SETOF record
    LANGUAGE c ROWS 1000 AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock_internal.list_held_keys(text) IS
'For the view held: the key locks of this database of one kind (key, applock, idempotency).';

CREATE FUNCTION interlock_internal.list_held_claims(
    OUT name text, OUT rel regclass, OUT since timestamptz, OUT expires_at timestamptz, OUT waiters bigint, OUT note text)
    RETURNS SETOF record
    LANGUAGE c ROWS 1000 AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock_internal.list_held_claims() IS
'For the view held: committed claims before their deadline, of scopes that the reader may use.';

CREATE FUNCTION interlock_internal.list_held_markers(
    OUT rel regclass, OUT name text, OUT holder text, OUT since timestamptz, OUT expires_at timestamptz, OUT note text)
    RETURNS SETOF record
    LANGUAGE c ROWS 1000 AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock_internal.list_held_markers() IS
'For the view held: live markers, and a line for each table that could not be looked at.';

CREATE VIEW interlock.held AS
SELECT 'lease'::pg_catalog.text AS kind, l.name, NULL::pg_catalog.regclass AS rel, l.holder, l.role, l.pid, l.since, l.expires_at, l.waiters,
       l.mode, NULL::pg_catalog.text AS note
  FROM interlock_internal.list_held_leases(false) l
 UNION ALL
SELECT 'permit', l.name, NULL, l.holder, l.role, l.pid, l.since, l.expires_at, l.waiters, l.mode, NULL
  FROM interlock_internal.list_held_leases(true) l
 UNION ALL
SELECT 'key_lock', k.name, NULL, COALESCE(NULLIF(a.application_name, ''), 'prepared transaction "' OPERATOR(pg_catalog.||) p.gid OPERATOR(pg_catalog.||) '"'),
       COALESCE(a.usename, p.owner)::pg_catalog.text, k.pid, COALESCE(a.xact_start, p.prepared), NULL, k.waiters, k.mode, NULL
  FROM interlock_internal.list_held_keys('key') k
  LEFT JOIN pg_catalog.pg_stat_activity a ON a.pid OPERATOR(pg_catalog.=) k.pid
  LEFT JOIN pg_catalog.pg_prepared_xacts p ON p.transaction OPERATOR(pg_catalog.=) k.transaction
 UNION ALL
SELECT 'applock', k.name, NULL, COALESCE(NULLIF(a.application_name, ''), 'prepared transaction "' OPERATOR(pg_catalog.||) p.gid OPERATOR(pg_catalog.||) '"'),
       COALESCE(a.usename, p.owner)::pg_catalog.text, k.pid, COALESCE(a.xact_start, p.prepared), NULL, k.waiters, k.mode, NULL
  FROM interlock_internal.list_held_keys('applock') k
  LEFT JOIN pg_catalog.pg_stat_activity a ON a.pid OPERATOR(pg_catalog.=) k.pid
  LEFT JOIN pg_catalog.pg_prepared_xacts p ON p.transaction OPERATOR(pg_catalog.=) k.transaction
 UNION ALL
SELECT 'idempotency_claim', pg_catalog.regexp_replace(k.name, E'\n', ':'), NULL,
       COALESCE(NULLIF(a.application_name, ''), 'prepared transaction "' OPERATOR(pg_catalog.||) p.gid OPERATOR(pg_catalog.||) '"'),
       COALESCE(a.usename, p.owner)::pg_catalog.text, k.pid, COALESCE(a.xact_start, p.prepared), NULL, k.waiters, 'not committed', NULL
  FROM interlock_internal.list_held_keys('idempotency') k
  LEFT JOIN pg_catalog.pg_stat_activity a ON a.pid OPERATOR(pg_catalog.=) k.pid
  LEFT JOIN pg_catalog.pg_prepared_xacts p ON p.transaction OPERATOR(pg_catalog.=) k.transaction
 UNION ALL
SELECT 'idempotency_claim', c.name, c.rel, NULL, NULL, NULL, c.since, c.expires_at, c.waiters,
       CASE WHEN c.note IS NULL THEN 'pending' END, c.note
  FROM interlock_internal.list_held_claims() c
 UNION ALL
SELECT 'row_marker', m.name, m.rel, m.holder, NULL, NULL, m.since, m.expires_at, CASE WHEN m.note IS NULL THEN 0 END, NULL, m.note
  FROM interlock_internal.list_held_markers() m;
GRANT SELECT ON interlock.held TO PUBLIC;
COMMENT ON VIEW interlock.held IS
'Every live hold, by kind: lease, permit, key_lock, applock, idempotency_claim, row_marker. Only the kinds asked for are read. name: the key;
of a claim scope:key, of a marker the key of the row in table rel. since: of locks, the start of the transaction. expires_at: null: with the
transaction or session. waiters: sessions that it keeps waiting. note: why a table was not looked at. It waits for no lock. Markers are shown to those
who may read the row, claims to those who may use the scope; pg_read_all_stats sees all, but keys of rows.';

CREATE FUNCTION interlock_internal.list_blocking(
    OUT pid integer, OUT kind text, OUT name text, OUT holder text, OUT rel regclass, OUT since timestamptz,
    OUT blocked_by integer, OUT blocked_by_holder text, OUT blocked_by_role text, OUT blocked_until timestamptz,
    OUT blocked_by_transaction xid, OUT blocked_by_what text,
    OUT head_pid integer, OUT head_holder text, OUT head_role text, OUT head_until timestamptz, OUT head_transaction xid, OUT head_what text,
    OUT depth integer, OUT is_circle boolean)
    RETURNS SETOF record
    LANGUAGE c ROWS 100 AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock_internal.list_blocking() IS
'For the view blocking: waits and the ends of their chains, of this server; leases and claims of this database.';

CREATE VIEW interlock.blocking AS
WITH activity AS MATERIALIZED (
    SELECT a.pid, a.datid, a.usename, a.application_name, a.state, a.query FROM pg_catalog.pg_stat_activity a)
SELECT b.pid, w.usename::pg_catalog.text AS role, COALESCE(b.holder, NULLIF(w.application_name, '')) AS holder, b.kind,
       CASE WHEN b.kind OPERATOR(pg_catalog.=) 'idempotency_claim' THEN pg_catalog.regexp_replace(b.name, E'\n', ':') ELSE b.name END AS name,
       b.rel, b.since, b.blocked_by,
       COALESCE(b.blocked_by_holder, NULLIF(f.application_name, ''),
                'prepared transaction "' OPERATOR(pg_catalog.||) fp.gid OPERATOR(pg_catalog.||) '"') AS blocked_by_holder,
       COALESCE(b.blocked_by_role, f.usename::pg_catalog.text, fp.owner::pg_catalog.text) AS blocked_by_role, b.blocked_until,
       b.head_pid,
       COALESCE(b.head_holder, NULLIF(h.application_name, ''),
                'prepared transaction "' OPERATOR(pg_catalog.||) hp.gid OPERATOR(pg_catalog.||) '"') AS head_holder,
       COALESCE(b.head_role, h.usename::pg_catalog.text, hp.owner::pg_catalog.text) AS head_role,
       CASE WHEN b.is_circle THEN 'circle'
            WHEN b.head_pid IS NOT NULL THEN h.state OPERATOR(pg_catalog.||) COALESCE(': ' OPERATOR(pg_catalog.||) NULLIF(h.query, ''), '')
            WHEN b.head_transaction IS NOT NULL THEN pg_catalog.format('prepared transaction "%s" of %s', hp.gid, hp.prepared)
            WHEN b.head_until IS NOT NULL THEN pg_catalog.format('%s until %s', b.head_what, b.head_until)
            ELSE b.head_what END AS head_activity,
       b.depth, b.is_circle
  FROM interlock_internal.list_blocking() b
  JOIN activity w ON w.pid OPERATOR(pg_catalog.=) b.pid
   AND w.datid OPERATOR(pg_catalog.=) (SELECT d.oid FROM pg_catalog.pg_database d WHERE d.datname OPERATOR(pg_catalog.=) pg_catalog.current_database())
  LEFT JOIN activity f ON f.pid OPERATOR(pg_catalog.=) b.blocked_by
  LEFT JOIN activity h ON h.pid OPERATOR(pg_catalog.=) b.head_pid
  LEFT JOIN pg_catalog.pg_prepared_xacts fp ON fp.transaction OPERATOR(pg_catalog.=) b.blocked_by_transaction
  LEFT JOIN pg_catalog.pg_prepared_xacts hp ON hp.transaction OPERATOR(pg_catalog.=) b.head_transaction;
GRANT SELECT ON interlock.blocking TO PUBLIC;
COMMENT ON VIEW interlock.blocking IS
'A line for each waiting session of this database and each that keeps it waiting, at most eight: leases and their pins, key locks, claims, rows and
all other locks of the server. kind and name: what it waits for. blocked_by: the process that holds it, or, if none does, the one that waits before
it; null: a lease, claim or prepared transaction. head_pid and head_activity: the end of the chain, which waits for nobody, and what it does.
is_circle: there is no end. Texts of statements are shown as in pg_stat_activity.';

-- Who broke, forced, granted or configured what

CREATE TABLE interlock.configuration_audit (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    changed_at timestamptz NOT NULL DEFAULT pg_catalog.clock_timestamp(),
    changed_by text NOT NULL,
    kind text NOT NULL,
    action text NOT NULL,
    name text,
    table_name text,
    grantee text,
    before jsonb,
    after jsonb);
COMMENT ON TABLE interlock.configuration_audit IS
'Every call of a function that configures a table or an idempotency scope (kind configuration), or grants or revokes something (kind
grant): time, user, function, what it is about, and the settings that the call has changed, before and after. Statements that change triggers
without these functions are not here.';
COMMENT ON SEQUENCE interlock.configuration_audit_id_seq IS 'Numbers the rows of configuration_audit.';
SELECT pg_catalog.pg_extension_config_dump('interlock.configuration_audit', '');
SELECT pg_catalog.pg_extension_config_dump('interlock.configuration_audit_id_seq', '');

CREATE VIEW interlock.audit WITH (security_barrier) AS
SELECT a.at, a.role, a.kind, a.action, a.name, a.table_name, a.holder, a.reason, a.before, a.after
  FROM (SELECT l.broken_at AS at, l.broken_by AS role, 'break'::pg_catalog.text AS kind, 'break_lease'::pg_catalog.text AS action, l.key AS name,
               NULL::pg_catalog.text AS table_name, l.holder, l.reason, NULL::pg_catalog.jsonb AS before, NULL::pg_catalog.jsonb AS after,
               NULL::pg_catalog.text AS owner
          FROM interlock.lease_audit l
         UNION ALL
        SELECT r.forced_at, r.forced_by, 'force', 'force_unlock_row', r.key::pg_catalog.text, r.table_name, r.holder, r.reason, NULL, NULL, NULL
          FROM interlock.row_lock_audit r
         UNION ALL
        SELECT i.forgotten_at, i.forgotten_by, 'forget', 'idempotency_forget', pg_catalog.concat(i.scope, ':', i.key), NULL, NULL, i.reason,
               pg_catalog.jsonb_build_object('status', i.status, 'attempt', i.attempt), NULL, NULL
          FROM interlock.idempotency_audit i
         UNION ALL
        SELECT w.written_at, w.written_by, 'force',
               CASE w.decision WHEN 'forced' THEN 'forced_write' WHEN 'blind' THEN 'blind_update' ELSE 'suppress_history' END,
               NULL, w.table_name, w.owner, w.reason, NULL,
               pg_catalog.jsonb_build_object('operation', w.operation, 'columns', w.columns, 'rows', w.row_count, 'writer', w.writer), w.table_owner
          FROM interlock.write_log w
         WHERE w.decision OPERATOR(pg_catalog.=) ANY (ARRAY['forced', 'blind', 'suppressed'])
           AND (w.decision OPERATOR(pg_catalog.<>) 'suppressed' OR w.reason IS NULL
                OR NOT w.reason OPERATOR(pg_catalog.=) ANY (ARRAY['ignore_columns', 'ignore_writers']))
         UNION ALL
        SELECT c.changed_at, c.changed_by, 'configuration', c.action, c.name, c.table_name, c.grantee, NULL, c.before, c.after, NULL
          FROM interlock.configuration_audit c WHERE c.kind OPERATOR(pg_catalog.=) 'configuration'
         UNION ALL
        SELECT c.changed_at, c.changed_by, 'grant', c.action, c.name, c.table_name, c.grantee, NULL, c.before, c.after, NULL
          FROM interlock.configuration_audit c WHERE c.kind OPERATOR(pg_catalog.=) 'grant') a
 WHERE (SELECT pg_catalog.pg_has_role('pg_read_all_stats', 'USAGE')
            OR pg_catalog.has_table_privilege('interlock.configuration_audit'::pg_catalog.regclass, 'SELECT'))
    OR EXISTS (SELECT FROM pg_catalog.pg_roles r
                WHERE r.rolname::pg_catalog.text OPERATOR(pg_catalog.=) ANY (ARRAY[a.role, a.owner]) AND pg_catalog.pg_has_role(r.oid, 'USAGE'));
GRANT SELECT ON interlock.audit TO PUBLIC;
COMMENT ON VIEW interlock.audit IS
'Every break of a lease (kind break), write over an owner or a marker, blind update by setting and suppressed history (force), forgotten
idempotency key (forget), grant and revocation (grant) and change of configuration (configuration): who, when, what and why. Roles see
what their members did, and forced writes of tables that were theirs; pg_read_all_stats, and roles with SELECT on configuration_audit, see all.';
