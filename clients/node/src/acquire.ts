// Acquiring a lease: asks until it is granted or the wait is over, and holds no connection meanwhile.

import type { Own, Query } from './driver.js';
import { asInterlockError, Held, isLostConnection } from './errors.js';
import type { Tickets } from './tickets.js';
import { pause } from './timing.js';

export interface Wanted {
    key: string;
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
    holder: string | null;
    ticket: string | null;
    remaining: number; // milliseconds until the lease in the way expires
}

const times = `(extract(epoch FROM expires_at) * 1000)::text AS expires, (extract(epoch FROM expires_at - clock_timestamp()) * 1000)::text AS remaining`;

function statementOf({ key, ttl, holder, wait, mode, atLeast, capacity }: Wanted): [sql: string, values: unknown[]] {
    const what = `SELECT outcome, token::text, holder, ticket::text, ${times} FROM interlock`;
    const values = [key, String(ttl), holder, String(wait > 0)];
    if (capacity !== undefined) {
        return [`${what}.acquire_permit($1::text, $5::text::integer, $2::text::float8, holder => $3::text, resume => true, notify => $4::text::boolean)`,
            [...values, String(capacity)]];
    }
    return [`${what}.acquire_lease($1::text, $2::text::float8, holder => $3::text, resume => true, notify => $4::text::boolean, mode => $5::text,
        at_least => $6::text::float8)`, [...values, mode, atLeast === undefined ? null : String(atLeast)]];
}

/** The lease, or Held when the wait is over. Throws the reason of the signal. What was asked for is withdrawn then. */
export async function acquire(own: Own, tickets: Tickets, wanted: Wanted): Promise<Granted> {
    const limit = performance.now() + wanted.wait * 1000;
    wanted.signal?.throwIfAborted();
    if (wanted.wait > 0) tickets.enter();
    try {
        return await acquireUntil(limit, own, tickets, wanted);
    } catch (error) {
        await withdraw(own, wanted, error);
        throw asInterlockError(error);
    } finally {
        if (wanted.wait > 0) tickets.leave();
    }
}

async function acquireUntil(limit: number, own: Own, tickets: Tickets, wanted: Wanted): Promise<Granted> {
    let ticket: string | null = null;
    let expected: ReturnType<Tickets['expect']> | undefined;
    try {
        for (;;) {
            const answer: Answer = await ask(own, wanted, limit);
            const { tokens, expiresAt, sent, roundTrip } = answer;
            if (tokens !== undefined) return { tokens, expiresAt: expiresAt!, sent: sent!, roundTrip: roundTrip! };
            wanted.signal?.throwIfAborted();
            if (performance.now() >= limit) throw heldBy(wanted.key, answer);
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
            const { outcome, token, holder: of, ticket, expires, remaining } = row!;
            const known = { outcome: outcome!, holder: of!, ticket: ticket!, remaining: Number(remaining), expiresAt: new Date(Number(expires)) };
            return token ? { ...known, tokens: [token], sent, roundTrip: performance.now() - sent } : known;
        } catch (error) {
            signal?.throwIfAborted();
            if (!isLostConnection(error) || attempt >= 3 && performance.now() >= limit) throw error;
            await pause(Math.min(100 * attempt, 1000), signal).over;
        }
    }
}

// By the name: also a lease whose answer was lost.
async function withdraw(own: Own, { key, holder, wait }: Wanted, error: unknown): Promise<void> {
    if (error instanceof Held && wait === 0) return;
    await withdrawAll(own, [key], holder);
}

async function withdrawAll(own: Own, keys: readonly string[], holder: string): Promise<void> {
    await own.query('SELECT interlock.release_lease(key, holder => $2::text)::text FROM jsonb_array_elements_text($1::text::jsonb) AS key',
        [JSON.stringify(keys), holder], 5000).catch(() => {});
}

export interface WantedAll extends Omit<Wanted, 'key' | 'atLeast' | 'capacity'> { keys: readonly string[] }

/**
 * Leases on all of the keys, or on none. The server takes keys in its one order and has no tickets for several: the wait occupies
 * a connection of the application's pool, which `query` uses.
 */
export async function acquireAll(query: Query, own: Own, wanted: WantedAll): Promise<Granted> {
    const { keys, holder, wait, signal } = wanted;
    const limit = performance.now() + wait * 1000;
    signal?.throwIfAborted();
    try {
        for (;;) {
            const answer = await askAll(query, wanted, Math.max(0, Math.min(limit - performance.now(), longestWait)));
            signal?.throwIfAborted();
            if (answer.granted) return answer.granted;
            if (performance.now() >= limit) throw heldBy(answer.key, answer);
            if (answer.outcome !== 'held') await pause(500, signal).over;
        }
    } catch (error) {
        if (!(error instanceof Held)) await withdrawAll(own, keys, holder);
        throw asInterlockError(error);
    }
}

// One statement waits so long: a signal ends the call after that time, and the place in the queue is asked for again.
const longestWait = 2000;

async function askAll(query: Query, { keys, holder, ttl, mode }: WantedAll, wait: number) {
    const sent = performance.now();
    const [row] = await query(
        `SELECT outcome, to_json(tokens::text[])::text AS tokens, blocked_by, holder, ${times},
             (extract(epoch FROM clock_timestamp() - statement_timestamp()) * 1000)::text AS waited
           FROM interlock.acquire_leases(ARRAY(SELECT jsonb_array_elements_text($1::text::jsonb)), $2::text::float8, wait => $3::text::float8,
               holder => $4::text, mode => $5::text, resume => true)`, [JSON.stringify(keys), String(ttl), String(wait / 1000), holder, mode]);
    const received = performance.now();
    const { outcome, tokens, blocked_by, holder: of, expires, remaining, waited } = row!;
    const expiresAt = new Date(Number(expires));
    // The time to live counts from the end of the server's wait.
    const granted = tokens ? { tokens: JSON.parse(tokens) as string[], expiresAt, sent: Math.min(sent + Number(waited), received),
        roundTrip: Math.max(0, received - sent - Number(waited)) } : undefined;
    return { granted, outcome: outcome!, key: blocked_by!, holder: of!, expiresAt: expires ? expiresAt : undefined, remaining: Number(remaining ?? 0) };
}

type Refusal = Pick<Answer, 'outcome' | 'holder' | 'remaining'> & { expiresAt?: Date | undefined };

function heldBy(key: string, { outcome, holder, expiresAt, remaining }: Refusal): Held {
    const detail = { key, outcome, holder, expires_at: expiresAt?.toISOString() };
    const by = outcome === 'recovering' ? 'the server grants no lease shortly after a crash' : `"${holder}" holds it`;
    const held = new Held(`lease "${key}" is not free: ${by}`, { detail });
    held.retryAfter = Math.max(1, Math.ceil(remaining / 1000));
    if (outcome === 'recovering') Object.assign(held, { status: 503, statusCode: 503 });
    return held;
}
