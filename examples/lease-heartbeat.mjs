// withLease(pool, key, ttl, work): runs work(lease) while a lease is held and renewed, on node-pg. One copy works at a time.
//
//     pool.on('error', () => {});      // without it a restart of the server ends a node process
//     const { outcome, result } = await withLease(pool, 'report:daily', 30, async ({ token, signal }) => ...);
//
// `pool` should have a connection that nothing else waits on. `outcome` is 'held' when another copy works. It throws when
// the lease is lost or the work throws.
//
// lease.signal is aborted when the lease is lost, or could not be renewed for three quarters of ttl: stop then. A paused
// process sees that too late, so assert lease.token in each transaction that writes.
import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';

export async function withLease(pool, key, ttl, work) {
    // Views show it to an administrator. It is of this call alone: an answer that was lost is asked for again by it.
    const holder = `${hostname()} ${process.pid} ${randomUUID().slice(0, 8)}`;
    const ask = async (sql, ...more) => (await pool.query(sql, [key, ...more])).rows[0];
    const acquire = () => ask('SELECT outcome, token FROM interlock.acquire_lease($1, make_interval(secs => $2), ' +
        'holder => $3, resume => true)', ttl, holder);
    let renewed = performance.now();                     // our own clock, before the request is sent
    const { outcome, token } = await acquire().catch(acquire);
    if (token === null) return { outcome };

    const stop = new AbortController();
    let timer, done = false;
    const beat = async () => {
        const sent = performance.now();
        try {
            const { until } = await ask('SELECT interlock.renew_lease($1, $2) AS until', token);
            if (until === null) return stop.abort(new Error(`lease ${key}: lost`));
            renewed = sent;
        } catch { /* the server cannot be reached: try again, until the watch ends it */ }
        if (!done) timer = setTimeout(beat, renewed === sent ? ttl * 500 : ttl * 100);
    };
    timer = setTimeout(beat, ttl * 500);                 // half of ttl
    const watch = setInterval(() => {
        if (performance.now() > renewed + ttl * 750) stop.abort(new Error(`lease ${key}: could not be renewed`));
    }, ttl * 50);
    try {
        const result = await work({ key, token, signal: stop.signal });
        stop.signal.throwIfAborted();
        return { outcome, result };
    } finally {
        done = true;
        clearTimeout(timer);
        clearInterval(watch);
        await ask('SELECT interlock.release_lease($1, $2)', token).catch(() => {});
    }
}
