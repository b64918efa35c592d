// What the console reads: views of the extension, and nothing else. A query is a function of the parameters of a page. Its columns
// are read as texts, so that no number loses a digit. Names are compared and shown, and never become part of a statement.

const pageSize = 50;

// Values of a statement: `$(value)` is their place in it.
function statement(write) {
    const values = [];
    const $ = (value) => `$${values.push(value)}`;
    return { sql: write($), values };
}

// One page of a query, and how many rows there are.
const paged = (write) => (params) => statement(($) =>
    `SELECT *, count(*) OVER () AS total FROM (${write($, params)}) q LIMIT ${pageSize} OFFSET ${$(pageSize * Math.max(Number.parseInt(params.page, 10) || 0, 0))}::int8`);
const plain = (sql) => () => ({ sql, values: [] });

const has = ($, text, ...columns) => text ? `AND strpos(lower(concat_ws(' ', ${columns.join(', ')})), lower(${$(String(text))})) > 0` : '';
const table = (rel = 'rel') => `${rel}::oid::text AS relid, ${rel}::text AS rel`;
const seconds = (interval) => `extract(epoch FROM ${interval})`;
const preloaded = `current_setting('interlock.key_names', true) IS NOT NULL`;

const orders = {
    waiters: 'waiters DESC NULLS LAST, since, kind, name',
    oldest: 'since NULLS LAST, kind, name',
    ends: 'expires_at NULLS LAST, kind, name',
    name: 'name, kind, since',
};
const logs = {
    operation_log: `operation AS what, reason AS why, NULL AS stored, NULL AS given`,
    skipped_writes: `decision AS what, owner AS why, stored, given`,
    forced_writes: `'forced' AS what, owner AS why, stored, given`,
};
const choice = (choices, name) => choices[Object.hasOwn(choices, name) ? name : Object.keys(choices)[0]];

// Whether the schema is the extension's: another role may have made views of these names.
export const isInstalled = `
    SELECT count(*) > 0 AS installed FROM pg_depend d JOIN pg_extension e ON e.oid = d.refobjid AND e.extname = 'pg_interlock'
     WHERE d.classid = 'pg_class'::regclass AND d.objid = to_regclass('interlock.blocking')
       AND d.refclassid = 'pg_extension'::regclass AND d.deptype = 'e'`;

export const server = `
    SELECT current_database() AS database, current_user AS role, pg_is_in_recovery() AS standby, ${preloaded} AS preloaded,
           current_setting('server_version') AS server, clock_timestamp() AS now`;

export const rights = `
    SELECT v.library, v.sql, pg_has_role('pg_read_all_stats', 'USAGE') AS reads_stats,
           has_table_privilege('interlock.sweeper', 'SELECT') AS reads_sweeper,
           has_column_privilege('interlock.idempotency', 'deadline', 'SELECT') AS reads_claims,
           has_function_privilege('interlock.break_lease(text, text, boolean)', 'EXECUTE') AS may_break,
           has_function_privilege('interlock.break_leases(text, text, name)', 'EXECUTE') AS may_break_all,
           has_function_privilege('interlock.force_unlock_row(regclass, "any", text)', 'EXECUTE') AS may_release,
           has_function_privilege('interlock.take_over_row(regclass, "any", text, text, interlock.seconds)', 'EXECUTE') AS may_take_over,
           has_function_privilege('interlock.idempotency_forget(text, text, text, boolean)', 'EXECUTE') AS may_forget,
           m.unreadable, m.filtered
      FROM interlock.version() v
     CROSS JOIN (SELECT count(*) FILTER (WHERE NOT has_any_column_privilege(g.rel, 'SELECT')) AS unreadable,
                        count(*) FILTER (WHERE has_any_column_privilege(g.rel, 'SELECT') AND row_security_active(g.rel)) AS filtered
                   FROM interlock.guards g WHERE g.mechanism IN ('marker', 'escrow')) m`;

export const queries = {
    kinds: plain(`SELECT kind, count(*) FILTER (WHERE note IS NULL) AS holds, count(note) AS unread FROM interlock.held GROUP BY kind ORDER BY 2 DESC, 1`),
    usage: plain(`SELECT what, role, used, "of" FROM interlock.usage WHERE database IS NULL AND "of" IS NOT NULL ORDER BY used::float8 / NULLIF("of", 0) DESC NULLS LAST, what LIMIT 20`),
    sweeper: plain(`
        SELECT state, runs, released, failed, last_run, last_error, next_deadline, next_deadline < clock_timestamp() - interval '1 min' AS overdue
          FROM interlock.sweeper WHERE database = current_database()`),
    attention: plain(`
        SELECT b.waiting, b.longest, m.markers, c.counters, r.reservations, f.broken, f.risks, u.full_limits,
               CASE WHEN ${preloaded} THEN (SELECT count(*) FROM interlock.leases WHERE pins > 0 AND pinned_since < clock_timestamp() - interval '1 min') END AS pinned,
               CASE WHEN ${preloaded} THEN (SELECT count(*) FROM interlock.leases l WHERE ttl > interval '1 h' AND NOT EXISTS (
                   SELECT FROM pg_stat_activity a WHERE a.usename = l.role)) END AS abandoned
          FROM (SELECT count(DISTINCT pid) AS waiting, ${seconds('clock_timestamp() - min(since)')} AS longest FROM interlock.blocking) b,
               (SELECT count(*) AS markers FROM interlock.row_locks WHERE NOT live AND expires_at < clock_timestamp() - interval '1 min') m,
               (SELECT count(*) AS counters FROM interlock.escrow WHERE behind > interval '1 min') c,
               (SELECT count(*) AS reservations FROM interlock.reservations WHERE reserved_at < clock_timestamp() - interval '1 h') r,
               (SELECT count(*) AS full_limits FROM interlock.usage WHERE database IS NULL AND used > 0.8 * "of") u,
               (SELECT count(*) FILTER (WHERE severity = 'broken') AS broken, count(*) FILTER (WHERE severity = 'risk') AS risks FROM interlock.advise()) f`),

    held: paged(($, { kind, q, sort }) => `
        SELECT kind, name, ${table()}, left(holder, 2000) AS holder, role, pid, since, expires_at, waiters, mode, note FROM interlock.held
         WHERE ${kind ? `kind = ${$(String(kind))}` : 'true'} ${has($, q, 'name', 'rel::text', 'holder', 'role', 'pid', 'note')} ORDER BY ${choice(orders, sort)}`),
    waiting: plain(`
        SELECT pid, role, holder, kind, name, rel::text, since, blocked_by, blocked_by_holder, blocked_by_role, blocked_until, head_pid, head_holder, head_role,
               left(head_activity, 300) AS head_activity, depth, is_circle, count(*) OVER () AS total FROM interlock.blocking ORDER BY depth, since, pid LIMIT 1000`),

    pinned: paged(() => `SELECT key, mode, holder, role, since, expires_at, pinned_by, pinned_since FROM interlock.leases WHERE pins > 0 ORDER BY pinned_since, key`),
    owners: paged(() => `
        SELECT role, left(class, 100) AS class, count(*) AS leases, min(key) AS first_key, max(${seconds('ttl')}) AS ttl, max(expires_at) AS last,
               EXISTS (SELECT FROM pg_stat_activity a WHERE a.usename = l.role) AS has_session
          FROM (SELECT *, split_part(key, ':', 1) AS class FROM interlock.leases) l GROUP BY l.role, l.class ORDER BY 3 DESC, 1, 2`),
    expired: paged(() => `SELECT ${table()}, count(*) AS markers, min(expires_at) AS oldest FROM interlock.row_locks WHERE NOT live GROUP BY row_locks.rel ORDER BY 3 DESC, 2`),
    // A key that was forgotten stays in the table until the sweeper deletes it.
    claims: paged(($, { stale, q }) => `
        SELECT scope, key, attempt, claimed_at, deadline, deadline < clock_timestamp() AS stale FROM interlock.idempotency
         WHERE status = 'pending' AND expires_at > clock_timestamp() ${stale ? 'AND deadline < clock_timestamp()' : ''} ${has($, q, 'scope', 'key')} ORDER BY deadline, scope, key`),

    counters: paged(($, { q }) => `
        SELECT ${table()}, key, column_name, amount, remaining, at_most, undecided, reserved, parts, folded_at, ${seconds('behind')} AS behind
          FROM interlock.escrow WHERE true ${has($, q, 'rel::text', 'key', 'column_name')} ORDER BY behind DESC NULLS LAST, parts DESC, 2, key, column_name`),
    reservations: paged(($, { q }) => `
        SELECT ${table()}, key, column_name, amount, holder, role, token, reserved_at, expires_at, expired
          FROM interlock.reservations WHERE true ${has($, q, 'rel::text', 'key', 'holder', 'role')} ORDER BY reserved_at, token`),

    contention: plain(`
        SELECT database, rel::text, kind, key_class, calls, conflicts, refusals, blind_updates, waits, ${seconds('wait_time')} AS wait_time, timeouts, expiries,
               takeovers, since, ${seconds('clock_timestamp()')} AS clock
          FROM interlock.contention ORDER BY conflicts + refusals + waits + timeouts DESC, calls DESC LIMIT 500`),

    findings: paged(($, { severity, q }) => `
        SELECT ${table()}, severity, finding, evidence, advice FROM interlock.advise() WHERE ${severity ? `severity = ${$(String(severity))}` : 'true'}
         ${has($, q, 'rel::text', 'finding')} ORDER BY array_position(ARRAY['broken', 'risk', 'tune'], severity), 2, finding`),
    guards: paged(($, { q }) => `
        SELECT ${table()}, mechanism, left(jsonb_pretty(settings), 5000) AS settings, enforced, array_to_string(findings, E'\\n') AS findings FROM interlock.guards
         WHERE true ${has($, q, 'rel::text', 'mechanism')} ORDER BY enforced, 2, mechanism`),

    recorded: plain(`SELECT ${table()} FROM interlock.guards WHERE mechanism = 'history' ORDER BY 2 LIMIT 1000`),
    // A key is an object of JSON, or the value of the primary key. An entry has the columns that differ, or all of a row that came or went.
    history: paged(($, { relid, key }) => `
        SELECT id, version, changed_at, writer, changed_by, operation, left(context::text, 2000) AS context,
               (SELECT jsonb_agg(jsonb_build_array(c.name, left(CASE operation WHEN 'delete' THEN row_data ELSE before END ->> c.name, 4000),
                                                   left(CASE operation WHEN 'delete' THEN NULL ELSE row_data END ->> c.name, 4000)) ORDER BY c.name)
                  FROM (SELECT DISTINCT name FROM unnest(COALESCE(changed, ARRAY(SELECT jsonb_object_keys(row_data)))) name ORDER BY 1 LIMIT 200) c) AS columns
          FROM interlock.row_history(${$(String(relid))}::oid::regclass, ${isObject(key) ? `${$(key)}::jsonb` : `${$(String(key))}::text`}) h ORDER BY h.id DESC`),

    audit: paged(($, { kind, q }) => `
        SELECT at, role, kind, action, name, table_name, holder, reason, left(before::text, 3000) AS before, left(after::text, 3000) AS after FROM interlock.audit
         WHERE ${kind ? `kind = ${$(String(kind))}` : 'true'} ${has($, q, 'role', 'action', 'name', 'table_name', 'holder', 'reason')} ORDER BY at DESC`),
    writes: paged(($, { log, q }) => `
        SELECT written_at, table_name, key::text, array_to_string(columns, ', ') AS columns, row_count, writer, written_by, what, why,
               left(stored::text, 3000) AS stored, left(given::text, 3000) AS given
          FROM (SELECT id, written_at, table_name, key, columns, row_count, writer, written_by, ${choice(logs, log)} FROM interlock.${Object.hasOwn(logs, log) ? log : 'operation_log'}) l
         WHERE true ${has($, q, 'table_name', 'key::text', 'writer', 'written_by')} ORDER BY id DESC NULLS FIRST`),
};

// Whether row_history would run policies that another role has made, with the rights of the console's role.
export const foreignPolicies = `
    SELECT count(*) > 0 AS found FROM pg_class c
     WHERE (c.oid = $1::oid OR c.oid IN (SELECT tgconstrrelid FROM pg_trigger WHERE tgrelid = $1::oid)) AND row_security_active(c.oid)
       AND c.relowner <> (SELECT oid FROM pg_roles WHERE rolname = current_user) AND NOT (SELECT rolsuper FROM pg_roles WHERE oid = c.relowner)`;

export function isObject(key) {
    try {
        return typeof key === 'string' && /^\s*\{/.test(key) && typeof JSON.parse(key) === 'object';
    } catch {
        return false;
    }
}
