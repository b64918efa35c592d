// Who edits what: the markers of a table, as they are and as they change.

import type { Own, Query } from './driver.js';
import { isPassing } from './errors.js';
import { pause } from './timing.js';
import { fromJson, seconds, type Duration, type JsonRow } from './values.js';

export interface WatchOptions {
    /** Ends the iteration. */
    signal?: AbortSignal;
    /**
     * How often to read the markers without a notification: 30 s by default, and 2 s for a table whose marker has no
     * `notify`. A marker that expires is read at its deadline.
     */
    every?: Duration;
}

/** A row that is being edited. */
export interface Marked { key: JsonRow; holder: string; since: Date; expiresAt: Date; reason: string | null }

export interface Watched {
    /** All rows that are being edited now. */
    rows: Marked[];
    /** What has changed since the last time; the first time all of them. 'prolonged' is no change. */
    changes: { event: 'locked' | 'taken' | 'released'; row: Marked }[];
}

const channel = 'interlock_row_lock';

/** The notifications of markers. */
export class Markers {
    readonly #query: Query;
    readonly #own: Own;

    constructor(query: Query, own: Own) {
        this.#query = query;
        this.#own = own;
    }

    /** The table as notifications name it, and whether there are any. */
    async describe(rel: string): Promise<{ name: string; notifies: boolean }> {
        const [row] = await this.#query(
            `SELECT quote_ident(n.nspname) || '.' || quote_ident(c.relname) AS name, interlock.configuration(c.oid)->'marker'->>'notify' AS notify
               FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
              WHERE c.oid = coalesce(pg_partition_root($1::text::regclass), $1::text::regclass)`, [rel]);
        const { name, notify } = row!;
        if (notify === null) throw new TypeError(`table "${rel}" has no marker: its owner calls interlock.enable_marker('${rel}')`);
        return { name: name!, notifies: notify !== 'off' };
    }

    /** Calls with each event of the table, and without one after each connect, as what came before may be lost. */
    listen(name: string, call: (event?: string) => void): { stop(): void } {
        return this.#own.listen(channel, (payload) => {
            const { table, event } = parsed(payload);
            if (table === name) call(String(event));
        }, () => call());
    }
}

/**
 * Reads the markers after each notification, and after each connect of LISTEN: what was sent while nobody listened is
 * found by what is there then. So each change that lasts is seen, and one that was undone at once may not be.
 */
export async function* watch(query: Query, markers: Markers, rel: string, { signal, every }: WatchOptions = {}): AsyncGenerator<Watched, void, undefined> {
    signal?.throwIfAborted();
    const table = await markers.describe(rel);
    const longest = seconds(every ?? (table.notifies ? 30 : 2)) * 1000;
    let called = false, ended = false, failures = 0, wake = () => {};
    const call = () => { called = true; wake(); };
    const listening = markers.listen(table.name, call);
    const stop = () => { ended = true; wake(); };
    signal?.addEventListener('abort', stop);
    let known: Map<string, Marked> | undefined;
    try {
        while (!ended) {
            called = false;
            let next = longest;
            try {
                const now = await read(query, rel);
                const isFirst = !known, changes = differences(known ?? new Map<string, Marked>(), now.rows);
                known = now.rows;
                next = Math.min(longest, now.untilNext);
                failures = 0;
                if (isFirst || changes.length > 0) yield { rows: [...known.values()], changes };
            } catch (error) {
                if (!isPassing(error)) throw error;
                next = Math.min(500 * 2 ** failures++, longest);
            }
            if (called || ended) continue;
            const pausing = pause(next);
            wake = pausing.wake;
            await pausing.over;
        }
    } finally {
        signal?.removeEventListener('abort', stop);
        listening.stop();
    }
}

// Any role can send anything.
function parsed(payload: string): { table?: unknown; event?: unknown } {
    try {
        return Object(JSON.parse(payload)) as object;
    } catch {
        return {};
    }
}

async function read(query: Query, rel: string): Promise<{ rows: Map<string, Marked>; untilNext: number }> {
    const found = await query(
        `SELECT key::text, holder, to_jsonb(locked_at)#>>'{}' AS since, to_jsonb(expires_at)#>>'{}' AS expires, reason,
             (extract(epoch FROM expires_at - clock_timestamp()) * 1000)::text AS left
           FROM interlock.row_locks
          WHERE live AND (rel = $1::text::regclass OR rel IN (SELECT relid FROM pg_partition_tree($1::text::regclass))) ORDER BY locked_at, key`, [rel]);
    const rows = new Map(found.map(({ key, holder, since, expires, reason }): [string, Marked] =>
        [key!, { key: fromJson(key!) as JsonRow, holder: holder!, since: new Date(since!), expiresAt: new Date(expires!), reason: reason ?? null }]));
    return { rows, untilNext: Math.min(Infinity, ...found.map(({ left }) => Math.max(Number(left), 0) + 50)) };
}

function differences(before: Map<string, Marked>, now: Map<string, Marked>): Watched['changes'] {
    const changes: Watched['changes'] = [];
    for (const [key, row] of before) if (!now.has(key)) changes.push({ event: 'released', row });
    for (const [key, row] of now) {
        const old = before.get(key);
        if (!old) changes.push({ event: 'locked', row });
        else if (old.holder !== row.holder) changes.push({ event: 'taken', row });
    }
    return changes;
}
