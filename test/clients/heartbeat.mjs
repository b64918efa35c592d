// examples/lease-heartbeat.mjs, as an application runs it: renewed, lost, with a server that cannot be reached.
// Prints TAP. Connects as the environment says (PGHOST, PGPORT, PGUSER, PGDATABASE).

import pg from 'pg';
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { check, eventually } from './lib/page.mjs';

const example = `${process.env.ROOT}/examples/lease-heartbeat.mjs`;
const { listen, withLease } = await import(example);
const pool = new pg.Pool();

const one = async (sql, ...parameters) => (await pool.query(sql, parameters)).rows[0];
const lost = (signal) => signal.aborted || once(signal, 'abort');

// A pool whose queries fail as the function says.
const failing = (fails) => ({
    query: async (sql, parameters) => {
        const answer = await pool.query(sql, parameters);
        if (fails(sql)) throw new Error('connection lost');
        return answer;
    },
});

await check('work runs under the lease, with its token', async () => {
    const { outcome, result } = await withLease(pool, 'report', 1000, async ({ key, token }) => {
        assert.equal((await one('SELECT token FROM interlock.lease_of($1)', key)).token, token);
        assert.equal((await withLease(pool, 'report', 1000, () => assert.fail())).outcome, 'held');
        return 7;
    });
    assert.deepEqual([outcome, result], ['acquired', 7]);
    assert.equal(await one('SELECT FROM interlock.lease_of($1)', 'report'), undefined);
});
await check('it is renewed at half of its ttl', async () => {
    await withLease(pool, 'report', 20, async () => {
        const end = async () => (await one(`SELECT extract(epoch FROM expires_at)::float AS at FROM interlock.lease_of('report')`)).at;
        for (const first = await end(); await end() <= first;) await new Promise((resolve) => setTimeout(resolve, 100));
    });
});
await check('work that throws gives it back', async () => {
    await assert.rejects(withLease(pool, 'report', 1000, async () => { throw new Error('of the work'); }), /of the work/);
    assert.equal(await one('SELECT FROM interlock.lease_of($1)', 'report'), undefined);
});
await check('a lease that is lost ends the work', async () => {
    await assert.rejects(withLease(pool, 'report', 2, async ({ signal }) => {
        await one(`SELECT interlock.break_lease('report', 'test')`);
        await lost(signal);
    }), /lost/);
});
await check('a server that cannot be reached ends it before the lease ends', async () => {
    const away = failing((sql) => sql.includes('renew_lease'));
    await assert.rejects(withLease(away, 'report', 4, ({ signal }) => lost(signal)), /could not be renewed/);
});
await check('LEA-4: an acquire whose answer was lost is repeated', async () => {
    let calls = 0;
    const { outcome } = await withLease(failing((sql) => sql.includes('acquire_lease') && calls++ === 0), 'answer', 1000, async () => {});
    assert.equal(outcome, 'resumed');
});
const listener = listen(() => new pg.Client());
// Those of this database: other clients on the server leave leases.
const tickets = async () => (await one(`SELECT coalesce(sum(used), 0)::int AS used FROM interlock.usage
    WHERE what = 'leases' AND database = current_database()`)).used;
await check('LEA-53: it waits without a connection, and works when its turn has come', async () => {
    const first = await one(`SELECT token FROM interlock.acquire_lease('turn', '10 min', holder => 'first')`);
    const second = withLease(pool, 'turn', 600, () => 'worked', { wait: 600, listener });
    await eventually(() => listener.woken.size === 1 && pool.idleCount === pool.totalCount);
    await one('SELECT interlock.release_lease($1, $2)', 'turn', first.token);
    assert.deepEqual(await second, { outcome: 'acquired', result: 'worked' });
    assert.equal(listener.woken.size, 0);
});
await check('LEA-53: when the time is over it has no ticket', async () => {
    await withLease(pool, 'turn', 600, async () => {
        assert.equal((await withLease(pool, 'turn', 600, () => assert.fail(), { wait: 0.2, listener })).outcome, 'held');
    });
    assert.equal(await tickets(), 0);
});
await check('LEA-53: a signal ends the wait, which leaves no ticket', async () => {
    await withLease(pool, 'turn', 600, async () => {
        const stop = new AbortController();
        const waiting = withLease(pool, 'turn', 600, () => assert.fail(), { wait: 600, listener, signal: stop.signal });
        await eventually(() => listener.woken.size === 1);
        assert.equal(await tickets(), 2);
        stop.abort(new Error('told to stop'));
        await assert.rejects(waiting, /told to stop/);
        assert.equal(listener.woken.size, 0);
    });
    assert.equal(await tickets(), 0);
});
await check('a signal ends the work', async () => {
    const stop = new AbortController();
    const working = withLease(pool, 'turn', 600, ({ signal }) => lost(signal), { signal: stop.signal });
    await eventually(async () => await one(`SELECT FROM interlock.lease_of('turn')`) !== undefined);
    stop.abort();
    await working;
    assert.equal(await one(`SELECT FROM interlock.lease_of('turn')`), undefined);
});
await listener.close();
console.log(`1..${check.count}`);
await pool.end();
