-- The one list of findings: what is off, what could be guarded, and where writers collide

CREATE FUNCTION interlock_internal.list_unguarded_tables(
    OUT rel regclass, OUT severity text, OUT finding text, OUT evidence text, OUT advice text) RETURNS SETOF record
    LANGUAGE sql STABLE
BEGIN ATOMIC
    WITH tables AS ( -- that users have made
        SELECT v.oid
          FROM interlock_internal.list_visible_tables() v
          JOIN pg_namespace n ON n.oid = v.relnamespace
         WHERE v.relkind IN ('r', 'p') AND v.relpersistence <> 't' AND n.nspname !~ '^pg_' AND n.nspname <> 'information_schema'
           AND NOT EXISTS (SELECT FROM pg_depend d WHERE d.classid = 'pg_class'::regclass AND d.objid = v.oid AND d.deptype = 'e')
           AND NOT EXISTS (SELECT FROM pg_attribute a -- a history, also one that is not recorded any more
                            WHERE a.attrelid = v.oid AND NOT a.attisdropped AND a.attname IN ('row_data', 'operation', 'changed_at')
                           HAVING count(*) = 3)),
    columns AS ( -- that a mechanism could use
        SELECT t.oid, a.attnum, a.attname::text AS attname, a.atttypid,
               lower(regexp_replace(a.attname::text, '[^[:alnum:]]', '', 'g')) AS word,
               a.atttypid IN ('int2'::regtype, 'int4'::regtype, 'int8'::regtype) AS is_integer
          FROM tables t
          JOIN pg_attribute a ON a.attrelid = t.oid
         WHERE a.attnum > 0 AND NOT a.attisdropped AND a.attinhcount = 0 AND a.attidentity = '' AND a.attgenerated = ''),
    holders AS ( -- of manual locks, with the other columns of such a lock
        SELECT h.oid, h.attname,
               min(c.attname) FILTER (WHERE c.atttypid IN ('timestamp'::regtype, 'timestamptz'::regtype)
                                        AND c.attname ~* '^(lock_?time|lock(ed)?_?at|checked_?out_?at)$') AS time_column,
               bool_or(c.attname = 'status' AND c.atttypid IN ('int2'::regtype, 'int4'::regtype)) AS has_status
          FROM columns h
          JOIN columns c ON c.oid = h.oid
         WHERE h.word IN ('lockby', 'lockedby', 'lockuser', 'lockeduser', 'lockedbyuser', 'lockowner', 'lockholder', 'checkedoutby')
           AND h.atttypid IN ('text'::regtype, 'varchar'::regtype)
         GROUP BY h.oid, h.attname),
    lists AS ( -- columns that have a list of states: an enum, or a CHECK (... IN (...)) of the column alone
        SELECT c.oid, c.attname, c.is_integer,
               COALESCE((SELECT format('type %s', e.oid::regtype) FROM pg_type e WHERE e.oid = c.atttypid AND e.typtype = 'e'),
                        (SELECT format('constraint "%s"', min(k.conname))
                           FROM pg_constraint k
                          WHERE k.conrelid = c.oid AND k.contype = 'c' AND k.conkey = ARRAY[c.attnum]
                            AND substr(k.conbin::text, 1, 65536) ~ '\{SCALARARRAYOPEXPR [^{]*:useOr true'
                         HAVING count(*) > 0)) AS evidence
          FROM columns c
         WHERE c.attname ~* '(status|state)$'),
    guarded AS MATERIALIZED (SELECT g.rel::oid AS oid, g.mechanism, g.settings FROM interlock.guards g)
    SELECT c.oid::regclass, 'risk', format('updates do not move column "%s": a stale save is not refused', c.attname), 'the name of the column',
           format('SELECT interlock.enable_versioning(%L, %L)', c.oid::regclass, c.attname)
      FROM columns c
     WHERE c.word IN ('version', 'lockversion', 'rowversion', 'rowver', 'recordversion', 'entityversion', 'objectversion', 'optlock', 'optimisticlock')
       AND c.atttypid IN ('int4'::regtype, 'int8'::regtype)
       AND c.oid NOT IN (SELECT g.oid FROM guarded g WHERE g.mechanism = 'versioning')
       -- versions of a document, each in a row of its own
       AND NOT EXISTS (SELECT FROM pg_index i WHERE i.indrelid = c.oid AND i.indisunique AND c.attnum = ANY (i.indkey))
       AND NOT EXISTS (SELECT FROM pg_constraint f WHERE f.conrelid = c.oid AND f.contype = 'f' AND c.attnum = ANY (f.conkey))
    UNION ALL
    SELECT l.oid::regclass, 'risk', format('column "%s" has a list of states, and may change from each to each', l.attname), l.evidence,
           format('its owner calls interlock.define_transitions(%L, %L, ...), which declares which state may follow which', l.oid::regclass, l.attname)
      FROM lists l
     WHERE l.evidence IS NOT NULL
       AND (l.oid, l.attname) NOT IN (SELECT g.oid, k.name FROM guarded g CROSS JOIN LATERAL jsonb_object_keys(g.settings) k (name)
                                       WHERE g.mechanism = 'transitions')
       AND l.oid NOT IN (SELECT g.oid FROM guarded g WHERE g.mechanism = 'transitions' AND g.settings IS NULL)
       AND (l.oid, l.attname) NOT IN (SELECT g.oid, g.settings ->> 'status_column' FROM guarded g
                                       WHERE g.mechanism = 'marker' AND g.settings IS NOT NULL)
       AND NOT (l.is_integer AND l.oid IN (SELECT h.oid FROM holders h)) -- that of the lock
    UNION ALL
    SELECT h.oid::regclass, 'risk',
           format('column "%s" belongs to a manual lock: other writers need not look at it, and it does not expire; '
                  'with a marker the program calls lock_row and save_row', h.attname),
           'the name of the column',
           format('SELECT interlock.enable_marker(%L, holder_column => %L%s%s)', h.oid::regclass, h.attname,
               CASE WHEN h.time_column IS NOT NULL THEN format(', time_column => %L', h.time_column) END,
               CASE WHEN h.has_status THEN ', status_column => ''status''' END)
      FROM holders h
     WHERE h.oid NOT IN (SELECT g.oid FROM guarded g WHERE g.mechanism = 'marker');
END;
COMMENT ON FUNCTION interlock_internal.list_unguarded_tables() IS
'For advise: columns that look like versions, states or manual locks, in tables where no mechanism guards them.';

CREATE FUNCTION interlock_internal.list_server_findings(
    OUT rel regclass, OUT severity text, OUT finding text, OUT evidence text, OUT advice text) RETURNS SETOF record
    LANGUAGE sql STABLE
BEGIN ATOMIC
    WITH guarded AS MATERIALIZED (SELECT g.rel, g.mechanism, g.settings FROM interlock_internal.list_guards() g),
    preload AS (
        SELECT p.for_all,
               (SELECT count(*) FROM guarded g WHERE g.mechanism = 'marker') AS markers,
               (SELECT count(*) FROM guarded g
                 WHERE g.mechanism = 'history' AND num_nonnulls(g.settings ->> 'keep_versions', g.settings ->> 'keep_for') > 0) AS histories,
               (SELECT count(DISTINCT g.rel::oid) FROM guarded g
                 WHERE g.mechanism IN ('versioning', 'transitions', 'ownership', 'require_lease')) AS counted
          FROM interlock_internal.is_preloaded() p)
    SELECT g.rel, 'tune',
           CASE WHEN t.arguments[8] IS NULL THEN 'the index for sweeps is gone: each one reads the whole table'
                ELSE 'no index for sweeps: each one reads the whole table' END,
           CASE WHEN v.reltuples < 0 THEN 'never analyzed' ELSE format('%s rows, by the last ANALYZE', v.reltuples::int8) END,
           format('SELECT interlock.configure(%L, %L)', g.rel, '{"marker": {"sweep_index": true}}')
      FROM guarded g
      JOIN interlock_internal.list_visible_tables() v ON v.oid = g.rel::oid AND NOT v.relispartition
      JOIN interlock_internal.list_own_triggers() t ON t.tgrelid = g.rel::oid AND t.kind = 'marker_trigger'
     WHERE g.mechanism = 'marker' AND g.settings ->> 'sweep_index' = 'false'
       AND (t.arguments[8] IS NULL OR v.reltuples >= 10000) -- or enabled without it
    UNION ALL
    SELECT NULL, 'risk', 'shared_preload_libraries does not have the library: no worker releases expired markers, nor trims histories',
           format('tables with markers: %s, with histories of a limited length: %s', p.markers, p.histories),
           'the administrator of the server adds pg_interlock to shared_preload_libraries, and restarts it'
      FROM preload p
     WHERE NOT p.for_all AND p.markers + p.histories > 0
    UNION ALL
    SELECT NULL, 'tune', 'shared_preload_libraries does not have the library: nothing counts how often writers collide',
           format('guarded tables: %s', p.counted),
           'the administrator of the server adds pg_interlock to shared_preload_libraries, and restarts it'
      FROM preload p
     WHERE NOT p.for_all AND p.markers + p.histories = 0 AND p.counted > 0
    UNION ALL
    SELECT e.rel, 'risk', format('parts of column "%s" wait for the sweeper: plain reads of it are late, and the journal grows', e.column_name),
           format('%s parts of %s rows, for up to %s; from 10 seconds on', sum(e.parts), count(*), max(e.behind)),
           format('SELECT interlock.fold_escrow(%L) -- or look who has locked its rows, and at last_error of view sweeper', e.rel)
      FROM interlock.escrow e
     WHERE e.parts > 0 AND e.behind > '10 seconds' -- the first is cheap
     GROUP BY e.rel, e.column_name
    UNION ALL
    SELECT NULL, 'risk', format('%s is nearly too small', m.setting), format('%s: %s of %s; from 80 %% on', u.what, u.used, u."of"),
           format('ALTER SYSTEM SET %s = %s -- by a superuser, who restarts the server', m.setting, u."of" * 2)
      FROM interlock_internal.list_usage() u
      JOIN (VALUES ('leases', 'interlock.max_leases'), ('key names', 'interlock.key_names'),
                   ('contention lines', 'interlock.max_contention_lines')) m (what, setting) ON m.what = u.what
     WHERE u.role IS NULL AND u.database IS NULL AND u.used * 10 >= u."of" * 8;
END;
COMMENT ON FUNCTION interlock_internal.list_server_findings() IS
'For advise: what the sweeper lacks or does not get to, and settings that are too small.';

CREATE FUNCTION interlock_internal.percent(part bigint, whole bigint) RETURNS numeric
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
BEGIN ATOMIC
    SELECT round(part * 100.0 / NULLIF(whole, 0), 1);
END;
COMMENT ON FUNCTION interlock_internal.percent(bigint, bigint) IS 'For advise: what share of the calls something is.';

CREATE FUNCTION interlock_internal.list_row_contention(
    OUT rel regclass, OUT severity text, OUT finding text, OUT evidence text, OUT advice text) RETURNS SETOF record
    LANGUAGE sql STABLE
BEGIN ATOMIC
    WITH counted AS MATERIALIZED ( -- of this database
        SELECT c.*, to_char(c.since, 'YYYY-MM-DD HH24:MI') AS begin
          FROM interlock_internal.list_contention() c
         WHERE c.database = current_database() AND c.rel::oid IN (SELECT v.oid FROM interlock_internal.list_visible_tables() v)),
    guarded AS MATERIALIZED (SELECT g.rel, g.mechanism, g.settings FROM interlock_internal.list_guards() g),
    keys AS ( -- an expression for the keys of some rows, which runs no function of another type
        SELECT i.indrelid AS oid,
               format('(SELECT pg_catalog.jsonb_agg(pg_catalog.to_jsonb(k)) FROM (SELECT %s FROM %s LIMIT 1) k)',
                   string_agg(quote_ident(a.attname), ', ' ORDER BY array_position(i.indkey::int2[], a.attnum)), i.indrelid::regclass) AS expression
          FROM pg_index i
          JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = ANY (i.indkey)
         WHERE i.indisprimary
         GROUP BY i.indrelid, i.indkey
        HAVING bool_and(a.atttypid < 16384::oid))
    SELECT c.rel, 'tune',
           format('more than 5 %% of the calls are conflicts (%s): read again before each attempt, and from about 30 %% on lock the row first', c.kind),
           format('%s of %s calls, %s %%, since %s', c.conflicts, c.calls, interlock_internal.percent(c.conflicts, c.calls), c.begin),
           format('SELECT * FROM interlock.select_for_update(%L, %s, wait => ''2 s'') -- with the key of the row, first in its transaction',
               c.rel, COALESCE(k.expression, '...'))
      FROM counted c
      LEFT JOIN keys k ON k.oid = c.rel::oid
     WHERE c.kind IN ('versioning', 'transitions') AND c.calls >= 1000 AND interlock_internal.percent(c.conflicts, c.calls) > 5
    UNION ALL
    SELECT c.rel, 'tune',
           format('calls wait for a row more than 10 ms on average (%s): docs/guide/hot-rows.md is for numbers that all change, docs/choosing.md for the rest', c.kind),
           format('%s of %s calls, %s in all, since %s', c.waits, c.calls, c.wait_time, c.begin),
           format('SELECT * FROM interlock.blocking WHERE kind = ''row'' AND rel OPERATOR(pg_catalog.=) %L::pg_catalog.regclass', c.rel)
      FROM counted c
     WHERE c.kind <> 'escrow' AND c.calls >= 1000 AND c.wait_time / NULLIF(c.calls, 0) > '10 ms'
    UNION ALL
    SELECT c.rel, 'tune',
           'more than half of the calls of the escrow counters are pending: open transactions hold what is left, and may still return it',
           format('%s of %s calls, %s %%, since %s', c.conflicts + c.timeouts, c.calls,
               interlock_internal.percent(c.conflicts + c.timeouts, c.calls), c.begin),
           format('SELECT key, column_name, remaining, at_most, undecided, reserved FROM interlock.escrow WHERE rel OPERATOR(pg_catalog.=) %L::pg_catalog.regclass '
                  '-- commit soon after adjust, give a wait, or hold goods by reserve with a short ttl', c.rel)
      FROM counted c
     WHERE c.kind = 'escrow' AND c.calls >= 1000 AND interlock_internal.percent(c.conflicts + c.timeouts, c.calls) > 50
    UNION ALL
    SELECT c.rel, 'risk', 'statements write rows without comparing their version: a stale one overwrites the other',
           format('%s rows since %s; from 100 on', c.blind_updates, c.begin),
           format('SELECT interlock.configure(%L, %L)', c.rel, '{"versioning": {"blind_updates": "reject"}}')
      FROM counted c
      JOIN guarded g ON g.rel = c.rel AND g.mechanism = 'versioning' AND g.settings ->> 'blind_updates' = 'allow'
     WHERE c.kind = 'versioning' AND c.blind_updates >= 100
    UNION ALL
    SELECT c.rel, 'risk', 'more than 5 % of the markers expire under their holders: touch_row prolongs one, or the ttl is too short',
           format('%s expired at %s calls, %s %%, since %s', c.expiries, c.calls, interlock_internal.percent(c.expiries, c.calls), c.begin),
           format('SELECT interlock.configure(%L, %L)', c.rel,
               jsonb_build_object('marker', jsonb_build_object('ttl', ((g.settings ->> 'ttl')::interval * 2)::text)))
      FROM counted c
      JOIN guarded g ON g.rel = c.rel AND g.mechanism = 'marker'
     WHERE c.kind = 'marker' AND c.calls >= 100 AND interlock_internal.percent(c.expiries, c.calls) > 5;
END;
COMMENT ON FUNCTION interlock_internal.list_row_contention() IS
'For advise: conflicts, waits, pending counters, blind updates and expired markers of tables, where enough was counted.';

CREATE FUNCTION interlock_internal.list_key_contention(
    OUT rel regclass, OUT severity text, OUT finding text, OUT evidence text, OUT advice text) RETURNS SETOF record
    LANGUAGE sql STABLE
BEGIN ATOMIC
    WITH counted AS MATERIALIZED ( -- of this database
        SELECT c.*, to_char(c.since, 'YYYY-MM-DD HH24:MI') AS begin
          FROM interlock_internal.list_contention() c
         WHERE c.database = current_database() AND c.key_class IS NOT NULL)
    SELECT NULL, 'risk', format('more than 5 %% of the leases of class "%s" expire under their holders', c.key_class),
           format('%s expired at %s calls, %s %%, since %s', c.expiries, c.calls, interlock_internal.percent(c.expiries, c.calls), c.begin),
           format('SELECT key, holder, ttl, expires_at FROM interlock.leases WHERE starts_with(key, %L) -- renew them after a third of it', c.key_class)
      FROM counted c
     WHERE c.kind = 'lease' AND c.calls >= 100 AND interlock_internal.percent(c.expiries, c.calls) > 5
    UNION ALL
    SELECT NULL, 'risk', format('leases of class "%s" are renewed after half of their ttl: a pause of the holder loses them', c.key_class),
           format('%s of %s renewals since %s; from 20 %% on', c.late_renewals, c.renewals, c.begin),
           format('SELECT key, holder, ttl, expires_at FROM interlock.leases WHERE starts_with(key, %L) -- renew them after a third of it', c.key_class)
      FROM counted c
     WHERE c.kind = 'lease' AND c.renewals >= 100 AND c.late_renewals * 5 >= c.renewals
    UNION ALL
    SELECT NULL, 'tune', format('more than half of the calls for leases of class "%s" are refused: callers that poll could wait', c.key_class),
           format('%s of %s calls, %s %%, since %s', c.conflicts, c.calls, interlock_internal.percent(c.conflicts, c.calls), c.begin),
           format('SELECT * FROM interlock.acquire_lease(%L, wait => ''10 s'')', c.key_class)
      FROM counted c
     WHERE c.kind = 'lease' AND c.calls >= 1000 AND interlock_internal.percent(c.conflicts, c.calls) > 50
    UNION ALL
    SELECT NULL, 'tune', format('more than 5 %% of the waits for keys of class "%s" (%s) are given up', c.key_class, c.kind),
           format('%s of %s calls, %s %%, since %s', c.timeouts, c.calls, interlock_internal.percent(c.timeouts, c.calls), c.begin),
           format('SELECT * FROM interlock.blocking WHERE starts_with(name, %L)', c.key_class)
      FROM counted c
     WHERE c.calls >= 1000 AND interlock_internal.percent(c.timeouts, c.calls) > 5
    UNION ALL
    SELECT NULL, 'risk', format('more than 5 %% of the claims of scope "%s" become stale and are taken over', c.key_class),
           format('%s of %s claims, %s %%, since %s', c.takeovers, c.calls, interlock_internal.percent(c.takeovers, c.calls), c.begin),
           format('SELECT interlock.define_idempotency_scope(%L, model => %L, ttl => %L, stale_after => %L, replay_failures => %L, max_response_bytes => %s, max_attempts => %s)',
               c.key_class, COALESCE(s.model, 'api'), COALESCE(s.ttl, '24 hours'), COALESCE(s.stale_after, '1 min') * 2,
               COALESCE(s.replay_failures, false), COALESCE(s.max_response_bytes, 65536), COALESCE(s.max_attempts::text, 'null'))
      FROM counted c
      LEFT JOIN interlock.idempotency_scope s ON s.scope = c.key_class
     WHERE c.kind = 'idempotency' AND c.calls >= 100 AND interlock_internal.percent(c.takeovers, c.calls) > 5
       AND octet_length(c.key_class) < 63; -- else it may be cut
END;
COMMENT ON FUNCTION interlock_internal.list_key_contention() IS
'For advise: leases that expire or are renewed late, callers that poll or give up, and stale claims, where enough was counted.';

CREATE FUNCTION interlock.advise(rel regclass = NULL, OUT rel regclass, OUT severity text, OUT finding text, OUT evidence text, OUT advice text)
    RETURNS SETOF record
    LANGUAGE sql STABLE
BEGIN ATOMIC
    WITH configured AS (
        SELECT * FROM interlock_internal.list_findings()
        UNION ALL
        SELECT r.* FROM interlock_internal.list_reused_key_findings() r JOIN interlock_internal.list_visible_tables() v ON v.oid = r.rel::oid),
    found AS (
        SELECT c.rel, c.severity, c.finding, string_agg(c.mechanism, ', ' ORDER BY c.mechanism) AS evidence, c.advice
          FROM configured c
         GROUP BY c.rel, c.severity, c.finding, c.advice
        UNION ALL
        SELECT * FROM interlock_internal.list_unguarded_tables()
        UNION ALL
        SELECT * FROM interlock_internal.list_server_findings()
        UNION ALL
        SELECT * FROM interlock_internal.list_row_contention()
        UNION ALL
        SELECT * FROM interlock_internal.list_key_contention())
    SELECT f.rel, f.severity, f.finding, f.evidence, f.advice
      FROM found f
     WHERE $1 IS NULL OR f.rel = $1 OR $1 IN (SELECT a.relid FROM pg_partition_ancestors(f.rel) a (relid))
     ORDER BY array_position(ARRAY['broken', 'risk', 'tune'], f.severity), f.rel::text NULLS FIRST, f.finding;
END;
COMMENT ON FUNCTION interlock.advise(regclass) IS
'What to change in this table and its partitions, or in the database and the server. severity is broken if configured protection does not
work, or refuses every write. Examples: a trigger is off, gone or fires too early; a column, key or foreign key is gone; a table inherits without the
protection; no function of the extension has made the trigger. risk: what can go wrong, such as versions that nothing moves or remembers, manual locks, states
without transitions, markers and leases that expire, settings that are nearly too small. tune: conflicts and waits of what was called often enough.
evidence: what says so. advice: a statement, or who can do what. Tables on which the caller has some privilege; all for pg_monitor. Waits for no lock.
No row means that nothing of this was found.';
