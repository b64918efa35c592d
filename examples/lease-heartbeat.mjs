// withLease(pool, key, ttl, work, options): runs work(lease) while a lease is held and renewed, on node-pg. One copy works at
// a time; the others wait for their turn without a connection.
//
//     pool.on('error', () => {});      // without it a restart of the server ends a node process
//     const listener = listen(() => new pg.Client());      // one for all waiters of the process, past a transaction pooler
//     const stop = new AbortController();
//     process.once('SIGTERM', () => stop.abort());
//     const { outcome, result } = await withLease(pool, 'report:daily', 30, async ({ token, signal }) => ...,
//         { wait: 60, listener, signal: stop.signal });
//
// wait: how many seconds to wait at most, 0 by default. signal: ends the wait, and the work. `outcome` is 'acquired', else
// 'held' or 'recovering': the time is over. `pool` should have a connection that nothing else waits on. withLease throws when
// the lease is lost, or the work throws, or the signal is aborted during the wait. Work that returns after that is a result: a
// lease that was not lost has protected it.
//
// lease.signal is aborted when the lease is lost, or could not be renewed for three quarters of ttl: stop then. A paused
// process sees that too late, so assert lease.token in each transaction that writes.
import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';

const never = new AbortController().signal;

export async function withLease(pool, key, ttl, work, { wait = 0, listener, signal = never, name = hostname() } = {}) {
    // Views show it to an administrator. It is of this call alone: an answer that was lost is asked for again by it.
    const holder = `${name} ${process.pid} ${randomUUID().slice(0, 8)}`;
    const ask = async (sql, ...more) => (await pool.query(sql, [key, ...more])).rows[0];
    const stop = new AbortController();
    let timer, watch, done = false, renewed;             // our own clock, before the request was sent
    const acquire = () => {
        renewed = performance.now();
        return ask('SELECT outcome, token, ticket FROM interlock.acquire_lease($1, make_interval(secs => $2), holder => $3, ' +
            'resume => true, notify => $4)', ttl, holder, wait > 0);
    };
    const beat = async () => {
        const sent = performance.now();
        try {
            const { until } = await ask('SELECT interlock.renew_lease($1, $2) AS until', lease.token);
            if (until === null) return stop.abort(new Error(`lease ${key}: lost`));
            renewed = sent;
        } catch { /* the server cannot be reached: try again, until the watch ends it */ }
        if (!done) timer = setTimeout(beat, renewed === sent ? ttl * 500 : ttl * 100);
    };
    let lease;
    try {
        lease = await waitFor(() => acquire().catch(acquire), wait, listener, signal);
        if (lease.token === null) return { outcome: lease.outcome };
        timer = setTimeout(beat, ttl * 500);             // half of ttl
        watch = setInterval(() => {
            if (performance.now() > renewed + ttl * 750) stop.abort(new Error(`lease ${key}: could not be renewed`));
        }, ttl * 50);
        const result = await work({ key, token: lease.token, signal: AbortSignal.any([stop.signal, signal]) });
        stop.signal.throwIfAborted();
        return { outcome: lease.outcome, result };
    } finally {
        done = true;
        clearTimeout(timer);
        clearInterval(watch);
        // By the name: also the lease of an answer that was lost, and the ticket of a wait that has ended.
        await ask('SELECT interlock.release_lease($1, holder => $2)', holder).catch(() => {});
    }
}

// Asks until it has the lease or the time is over: when it is notified, when the listener has connected, and each half a
// minute, as a notification can be lost.
async function waitFor(acquire, wait, listener, signal) {
    const limit = performance.now() + wait * 1000;
    let ticket;
    try {
        for (;;) {
            signal.throwIfAborted();
            const called = new Promise((wake) => ticket && listener?.woken.set(ticket, wake));
            const lease = await acquire();
            if (lease.token !== null || performance.now() >= limit) return lease;
            if (lease.ticket !== ticket) {               // it can have been notified before we had its number: ask once more
                listener?.woken.delete(ticket);
                ticket = lease.ticket;
                continue;
            }
            const awake = new AbortController();
            const pause = sleep(Math.min(30_000, limit - performance.now()), null, { signal: AbortSignal.any([awake.signal, signal]) });
            await Promise.race([called, pause.catch(() => {})]);
            awake.abort();
        }
    } finally {
        listener?.woken.delete(ticket);
    }
}

// The connection that hears for all waiters. When it ends another one is made, and all ask again.
export function listen(connect) {
    const woken = new Map();                             // by the number of the ticket
    const closed = new AbortController();
    const listening = (async () => {
        while (!closed.signal.aborted) {
            const client = connect();
            const ended = new Promise((end) => {
                client.on('error', end).on('end', end);
                closed.signal.addEventListener('abort', end);
            });
            client.on('notification', ({ payload }) => woken.get(payload)?.());
            try {
                await client.connect();
                await client.query('LISTEN interlock_lease');
                for (const wake of woken.values()) wake();
                await ended;
            } catch { /* the server cannot be reached: try again */ }
            await client.end().catch(() => {});
            await sleep(1000, null, { signal: closed.signal }).catch(() => {});
        }
    })();
    return { woken, close: () => { closed.abort(); return listening; } };
}
