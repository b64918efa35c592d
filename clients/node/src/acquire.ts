// Acquiring a lease: asks until it is granted or the wait is over, and holds no connection meanwhile.

import type { Own } from './driver.js';
import { asInterlockError, Held, isLostConnection } from './errors.js';
import type { Tickets } from './tickets.js';
import { pause } from './timing.js';

export interface Wanted {
    keys: readonly string[];
    holder: string;
    ttl: number; // seconds, as all of these
    wait: number;
    atLeast: number | undefined;
    mode: 'exclusive' | 'shared';
    capacity: number | undefined; // of permits
    signal: AbortSignal | undefined;
}

export interface Granted {
    tokens: string[];
    expiresAt: Date;
    sent: number; // by our clock, before the request
    roundTrip: number;
}

interface Answer extends Partial<Granted> {
    outcome: string;
    key: string | null; // of several: the one that was not free
    holder: string | null;
    ticket: string | null;
    remaining: number; // milliseconds until the lease in the way expires
}

const times = `(extract(epoch FROM expires_at) * 1000)::text AS expires, (extract(epoch FROM expires_at - clock_timestamp()) * 1000)::text AS remaining`;

// All or none. The server has tickets for single keys: one for the key that was not free, under a name of its own. If that key has
// become free meanwhile, there is no ticket, and the lease that was granted instead is released.
const all = `WITH wanted AS (SELECT ARRAY(SELECT jsonb_array_elements_text($1::text::jsonb)) AS keys),
    answer AS MATERIALIZED (
      SELECT granted.*, coalesce(blocked_by, keys[1]) AS key FROM wanted, interlock.acquire_leases(keys, $2::text::float8,
          holder => $3::text, mode => $5::text, resume => true) AS granted),
    asked AS MATERIALIZED (
      SELECT *, CASE WHEN tokens IS NULL AND $4::text::boolean
          THEN interlock.acquire_lease(key, '1 s', holder => $6::text, mode => $5::text, notify => true) END AS ask FROM answer)
  SELECT outcome, to_json(tokens::text[])::text AS tokens, key, holder, (ask).ticket::text, ${times},
      CASE WHEN (ask).token IS NOT NULL THEN interlock.release_lease(key, (ask).token) END::text AS released FROM asked`;

function statementOf(wanted: Wanted): [sql: string, values: unknown[]] {
    const { keys, ttl, holder, wait, mode, atLeast, capacity } = wanted;
    const what = `SELECT outcome, to_json(ARRAY[token::text])::text AS tokens, NULL AS key, holder, ticket::text, ${times} FROM interlock`;
    const given = [String(ttl), holder, String(wait > 0)];
    if (keys.length > 1) return [all, [JSON.stringify(keys), ...given, mode, waiterOf(wanted)]];
    const values = [keys[0], ...given];
    if (capacity !== undefined) {
        return [`${what}.acquire_permit($1::text, $5::text::integer, $2::text::float8, holder => $3::text, resume => true, notify => $4::text::boolean)`,
            [...values, String(capacity)]];
    }
    return [`${what}.acquire_lease($1::text, $2::text::float8, holder => $3::text, resume => true, notify => $4::text::boolean, mode => $5::text,
        at_least => $6::text::float8)`, [...values, mode, atLeast === undefined ? null : String(atLeast)]];
}

// The name of the tickets for several keys: they are withdrawn by it, and the leases stay.
const waiterOf = ({ holder }: Wanted) => `${holder} waits`;

/** The lease, or Held when the wait is over. Throws the reason of the signal. What was asked for is withdrawn then. */
export async function acquire(own: Own, tickets: Tickets, wanted: Wanted): Promise<Granted> {
    const limit = performance.now() + wanted.wait * 1000;
    wanted.signal?.throwIfAborted();
    if (wanted.wait > 0) tickets.enter();
    try {
        const { granted, waited } = await acquireUntil(limit, own, tickets, wanted);
        if (waited && wanted.keys.length > 1) await withdraw(own, wanted, [waiterOf(wanted)]);
        return granted;
    } catch (error) {
        // By the name: also a lease whose answer was lost.
        if (!(error instanceof Held && wanted.wait === 0)) await withdraw(own, wanted, [wanted.holder, waiterOf(wanted)]);
        throw asInterlockError(error);
    } finally {
        if (wanted.wait > 0) tickets.leave();
    }
}

async function acquireUntil(limit: number, own: Own, tickets: Tickets, wanted: Wanted): Promise<{ granted: Granted; waited: boolean }> {
    let ticket: string | null = null;
    let expected: ReturnType<Tickets['expect']> | undefined;
    try {
        for (;;) {
            const answer: Answer = await ask(own, wanted, limit);
            const { tokens, expiresAt, sent, roundTrip } = answer;
            if (tokens !== undefined) return { granted: { tokens, expiresAt: expiresAt!, sent: sent!, roundTrip: roundTrip! }, waited: ticket !== null };
            wanted.signal?.throwIfAborted();
            if (performance.now() >= limit) throw heldBy(answer.key ?? wanted.keys[0]!, answer);
            if (answer.ticket === null) { // of several keys: what was in the way is gone
                await pause(20 * Math.random(), wanted.signal).over;
                continue;
            }
            if (answer.ticket !== ticket) { // it can have been called before we had its number: ask once more
                expected?.forget();
                ticket = answer.ticket;
                expected = tickets.expect(ticket!, wanted.signal);
                continue;
            }
            // A notification can be lost, and an expiry sends none where no sweeper runs.
            const next = Math.min(Math.max(answer.remaining, 500) + 500 * Math.random(), 30_000);
            await expected!.wait(Math.min(next, limit - performance.now()));
            wanted.signal?.throwIfAborted();
            expected!.forget();
            expected = tickets.expect(ticket!, wanted.signal);
        }
    } finally {
        expected?.forget();
    }
}

// Asks, and again under the same name after an answer that was lost: the server resumes what it has granted.
async function ask(own: Own, wanted: Wanted, limit: number): Promise<Answer> {
    const { ttl, signal } = wanted;
    for (let attempt = 1; ; attempt++) {
        const sent = performance.now();
        try {
            const [row] = await own.query(...statementOf(wanted), Math.max(ttl * 1000, 5000));
            const { outcome, tokens, key, holder: of, ticket, expires, remaining } = row!;
            const known = { outcome: outcome!, key: key!, holder: of!, ticket: ticket!, remaining: Number(remaining), expiresAt: new Date(Number(expires)) };
            const granted = JSON.parse(tokens ?? '[null]') as [string | null];
            return granted[0] === null ? known : { ...known, tokens: granted as string[], sent, roundTrip: performance.now() - sent };
        } catch (error) {
            signal?.throwIfAborted();
            if (!isLostConnection(error) || attempt >= 3 && performance.now() >= limit) throw error;
            await pause(Math.min(100 * attempt, 1000), signal).over;
        }
    }
}

async function withdraw(own: Own, { keys }: Wanted, holders: readonly string[]): Promise<void> {
    await own.query(`SELECT interlock.release_lease(key, holder => holder)::text
        FROM jsonb_array_elements_text($1::text::jsonb) AS key, jsonb_array_elements_text($2::text::jsonb) AS holder`,
        [JSON.stringify(keys), JSON.stringify(holders)], 5000).catch(() => {});
}

function heldBy(key: string, { outcome, holder, expiresAt, remaining }: Answer): Held {
    const detail = { key, outcome, holder, expires_at: expiresAt?.toISOString() };
    const by = outcome === 'recovering' ? 'the server grants no lease shortly after a crash' : `"${holder}" holds it`;
    const held = new Held(`lease "${key}" is not free: ${by}`, { detail });
    held.retryAfter = Math.max(1, Math.ceil(remaining / 1000));
    if (outcome === 'recovering') Object.assign(held, { status: 503, statusCode: 503 });
    return held;
}
