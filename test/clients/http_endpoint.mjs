// The endpoint of docs/recipes/http-endpoint.md, with the code of the page, as its clients meet it.
// Prints TAP. Connects as the environment says (PGHOST, PGPORT, PGUSER, PGDATABASE).

import pg from 'pg';
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { once as event } from 'node:events';
import { load, check, eventually } from './lib/page.mjs';

const client = new pg.Client();
await client.connect();
const page = await load('recipes/http-endpoint', client);
const { pool, server } = page;
server.listen(0);
await event(server, 'listening');

const url = `http://localhost:${server.address().port}/payments`;
const post = (key, body, headers = {}) => fetch(url, { method: 'POST', body: JSON.stringify(body),
    headers: { ...(key === undefined ? {} : { 'Idempotency-Key': key }), ...headers }, redirect: 'manual' });
const value = async (sql, ...parameters) => Object.values((await client.query(sql, parameters)).rows[0])[0];
const payments = () => value('SELECT count(*)::int FROM payment');

await check('a request without a key, or with one that is none, is 400', async () => {
    for (const key of [undefined, '', '"short"', 'with blanks in it', 'x'.repeat(201)]) {
        const response = await post(key, { amount: 1 });
        assert.deepEqual([response.status, response.headers.get('content-type')], [400, 'application/problem+json']);
    }
    assert.equal(await payments(), 0);
});
await check('the first request is 201, the second replays its bytes', async () => {
    const first = await post('"payment-1"', { amount: 10 });
    const bytes = await first.text();
    assert.deepEqual([first.status, first.headers.get('location'), first.headers.get('idempotent-replayed')], [201, '/payments/1', null]);
    for (const key of ['"payment-1"', 'payment-1']) {
        const second = await post(key, { amount: 10 });
        assert.deepEqual([second.status, second.headers.get('location'), second.headers.get('idempotent-replayed'), await second.text()],
            [201, '/payments/1', 'true', bytes]);
    }
    assert.equal(await payments(), 1);
});
await check('another request is 422, another customer is another key', async () => {
    const other = await post('payment-1', { amount: 99 });
    assert.deepEqual([other.status, (await other.json()).title], [422, 'this key was used with another request']);
    assert.equal((await post('payment-1', { amount: 99 }, { Authorization: 'bob' })).status, 201);
});
await check('of eight at once one works, and the others are 409 with Retry-After, or 422', async () => {
    await client.query('BEGIN; LOCK TABLE payment IN EXCLUSIVE MODE');
    const first = post('payment-2', { amount: 5 });
    await eventually(async () => await value('SELECT count(*)::int FROM pg_locks WHERE NOT granted AND relation = $1::regclass', 'payment') === 1);
    const others = await Promise.all([1, 2, 3, 4, 5, 6, 7].map(() => post('payment-2', { amount: 5 })));
    assert.deepEqual(others.map((response) => [response.status, response.headers.get('retry-after')]), others.map(() => [409, '1']));
    assert.equal((await post('payment-2', { amount: 6 })).status, 422);
    await client.query('COMMIT');
    assert.equal((await first).status, 201);
    assert.equal(await (await post('payment-2', { amount: 5 })).text(), await (await first).text());
});
await check('work that fails leaves nothing, and its key is free', async () => {
    const before = await payments();
    assert.equal((await post('payment-3', { amount: -1 })).status, 500);
    assert.equal(await payments(), before);
    assert.equal((await post('payment-3', { amount: 1 })).status, 201);
});
await check('a process that dies before the end leaves nothing, and its key is free', async () => {
    const before = await payments();
    const hash = createHash('sha256').update('x').digest();
    const dying = page.once('POST /payments', 'dying', hash, async (its) => {
        await its.query(`INSERT INTO payment (customer, amount) VALUES ('dying', 1)`);
        await client.query('SELECT pg_terminate_backend($1, 60000)', [its.processID]);
        return { status: 201, headers: {}, body: Buffer.from('') };
    });
    await assert.rejects(dying);
    assert.equal(await payments(), before);
    assert.equal((await page.once('POST /payments', 'dying', hash, () => ({ status: 201, headers: {}, body: Buffer.from([0, 255]) }))).status, 201);
    assert.deepEqual((await page.once('POST /payments', 'dying', hash)).body, Buffer.from([0, 255]));
});
await check('an answer that was too large leads to its result', async () => {
    const hash = createHash('sha256').update('y').digest();
    const large = () => ({ status: 200, headers: { Location: '/exports/7' }, body: Buffer.alloc(100_000) });
    assert.equal((await page.once('POST /payments', 'large', hash, large)).body.length, 100_000);
    const replayed = await page.once('POST /payments', 'large', hash);
    assert.deepEqual([replayed.status, replayed.headers.Location], [303, '/exports/7']);
});

// A provider that charges and is not heard, or cannot be reached.
const provider = {
    charges: new Map(), calls: 0, fault: null,
    async charge(reference, { amount }) {
        this.calls++;
        if (this.fault === 'unreachable')
            throw Object.assign(new Error('the provider cannot be reached'), { notSent: true });
        this.charges.set(reference, { amount, number: this.charges.size + 1 });
        if (this.fault === 'silent')
            throw new Error('no answer');
        return this.charges.get(reference);
    },
    async find(reference) { return this.charges.get(reference); },
};
const hash = createHash('sha256').update('order').digest();
const charge = (key) => page.charge('POST /charges', key, hash, { amount: 10 }, provider);
const stale = () => client.query(`UPDATE interlock.idempotency SET deadline = now() WHERE scope = 'POST /charges' AND status = 'pending'`);

await check('a charge is made once and replayed', async () => {
    const first = await charge('charge-1');
    const second = await charge('charge-1');
    assert.deepEqual([first.status, second.status, second.body, provider.calls], [201, 201, first.body, 1]);
});
await check('a provider that was not reached is called again', async () => {
    provider.fault = 'unreachable';
    assert.equal((await charge('charge-2')).status, 503);
    provider.fault = null;
    assert.equal((await charge('charge-2')).status, 201);
    assert.equal(provider.charges.size, 2);
});
await check('one whose answer is lost is asked after the deadline, and not called again', async () => {
    provider.fault = 'silent';
    await assert.rejects(charge('charge-3'));
    provider.fault = null;
    const calls = provider.calls;
    const early = await charge('charge-3');
    const wait = early.headers['Retry-After'];
    assert.equal(early.status, 409);
    assert.ok(wait >= 1 && wait <= 30, `Retry-After: ${wait}`);
    await stale();
    const late = await charge('charge-3');
    assert.deepEqual([late.status, JSON.parse(late.body).number, provider.calls], [201, 3, calls]);
});
await check('after five attempts it is given up', async () => {
    provider.fault = 'unreachable';
    for (let attempt = 0; attempt < 5; attempt++)
        assert.equal((await charge('charge-4')).status, 503);
    const given = await charge('charge-4');
    assert.deepEqual([given.status, JSON.parse(given.body).title], [502, 'the provider cannot be reached']);
});

console.log(`1..${check.count}`);
server.close();
await Promise.all([pool.end(), client.end()]);
