// Acquiring a lease: asks until it is granted or the wait is over, and holds no connection meanwhile.

import type { Own } from './driver.js';
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
    signal: AbortSignal | undefined;
}

export interface Granted {
    token: string;
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

const sql = `SELECT outcome, token::text, holder, ticket::text, (extract(epoch FROM expires_at) * 1000)::text AS expires,
    (extract(epoch FROM expires_at - clock_timestamp()) * 1000)::text AS remaining
  FROM interlock.acquire_lease($1::text, $2::text::float8, holder => $3::text, mode => $4::text, resume => true,
      at_least => $5::text::float8, notify => $6::text::boolean)`;

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
            const { token, expiresAt, sent, roundTrip } = answer;
            if (token !== undefined) return { token, expiresAt: expiresAt!, sent: sent!, roundTrip: roundTrip! };
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
async function ask(own: Own, { key, holder, ttl, wait, atLeast, mode, signal }: Wanted, limit: number): Promise<Answer> {
    for (let attempt = 1; ; attempt++) {
        const sent = performance.now();
        try {
            const [row] = await own.query(sql, [key, String(ttl), holder, mode, atLeast === undefined ? null : String(atLeast), String(wait > 0)],
                Math.max(ttl * 1000, 5000));
            const { outcome, token, holder: of, ticket, expires, remaining } = row!;
            const known = { outcome: outcome!, holder: of!, ticket: ticket!, remaining: Number(remaining), expiresAt: new Date(Number(expires)) };
            return token ? { ...known, token, sent, roundTrip: performance.now() - sent } : known;
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
    await own.query('SELECT interlock.release_lease($1::text, holder => $2::text)::text', [key, holder], 5000).catch(() => {});
}

function heldBy(key: string, { outcome, holder, expiresAt, remaining }: Answer): Held {
    const detail = { key, outcome, holder, expires_at: expiresAt!.toISOString() };
    const by = outcome === 'recovering' ? 'the server grants no lease shortly after a crash' : `"${holder}" holds it`;
    const held = new Held(`lease "${key}" is not free: ${by}`, { detail });
    held.retryAfter = Math.max(1, Math.ceil(remaining / 1000));
    if (outcome === 'recovering') Object.assign(held, { status: 503, statusCode: 503 });
    return held;
}
