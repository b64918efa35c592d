-- What the catalog says against a database: what is off, and what could be guarded

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
