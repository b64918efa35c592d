// Callers that wait for a lease without a connection, by examples/lease-heartbeat.mjs.
// Prints TAP. Connects as the environment says (PGHOST, PGPORT, PGUSER, PGDATABASE).

import pg from 'pg';
import assert from 'node:assert/strict';
import { check, eventually } from './lib/page.mjs';

const { listen, withLease } = await import(`${process.env.ROOT}/examples/lease-heartbeat.mjs`);
const pool = new pg.Pool();
pool.on('error', () => {});

const client = new pg.Client();
await client.connect();
const listener = listen(() => new pg.Client());
const { woken } = listener;
const listeners = async () => (await client.query(`SELECT pid FROM pg_stat_activity
    WHERE datname = current_database() AND query LIKE 'LISTEN%'`)).rows.map(({ pid }) => pid);
const release = (token) => client.query('SELECT interlock.release_lease($1, $2)', ['job:7', token]);
const { rows: [first] } = await client.query(`SELECT token FROM interlock.acquire_lease('job:7', '10 min', holder => 'first')`);

let working = 0, most = 0, served = 0;
const caller = async (_, i) => {
    await withLease(pool, 'job:7', 600, async ({ token }) => {
        most = Math.max(most, ++working);
        await pool.query('SELECT interlock.assert_lease($1, $2)', ['job:7', token]);
        served++;
        working--;
    }, { wait: 3600, listener, name: `request ${i}` });
};
const callers = Promise.all(Array.from({ length: 30 }, caller));

await check('LEA-2: thirty callers wait, and no connection of the pool with them', async () => {
    await eventually(() => woken.size === 30 && pool.idleCount === pool.totalCount && pool.waitingCount === 0);
    assert.equal(served, 0);
});
await check('LEA-2: a listener that ends makes room for another one', async () => {
    await eventually(async () => (await listeners()).length === 1);
    const [pid] = await listeners();
    await client.query('SELECT pg_terminate_backend($1)', [pid]);
    await eventually(async () => (await listeners()).some((other) => other !== pid));
});
await check('LEA-2: each is served, one at a time', async () => {
    await release(first.token);
    await eventually(() => served === 30);
    await callers;
    assert.equal(most, 1);
    assert.equal(woken.size, 0);
});
console.log(`1..${check.count}`);
await listener.close();
await pool.end();
await client.end();
