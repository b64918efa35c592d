// Work once for each key.

import assert from 'node:assert/strict';
import test from 'node:test';
import { Failed, InProgress, Mismatch } from 'pg-interlock';
import { admin, each, eventually, fresh, one, run, value } from './lib/shop.mjs';

await run('CREATE TABLE charge (amount int)', `SELECT interlock.grant_idempotency_scope('pay', 'app')`,
    `SELECT interlock.define_idempotency_scope('pay', max_response_bytes => 1000)`);
const charges = () => value('SELECT count(*)::int FROM charge');
const charge = (rows, result) => async (tx) => { await rows(tx, 'INSERT INTO charge VALUES (10)'); return result; };

test('the first call works, the next ones get the same value', async () => {
    await each(async ({ il, rows }) => {
        await run('TRUNCATE charge');
        const key = [fresh('order'), 'a:b'];
        const given = { id: 9007199254740993n, at: new Date(0), list: [1.5, null, 'ü'], none: undefined };
        const kept = { id: '9007199254740993', at: '1970-01-01T00:00:00.000Z', list: [1.5, null, 'ü'] };
        assert.deepEqual(await il.once('pay', key, { amount: 10, currency: 'EUR' }, charge(rows, given)), { outcome: 'completed', value: kept });
        assert.deepEqual(await il.once('pay', key, { currency: 'EUR', amount: 10 }, () => assert.fail()), { outcome: 'replay', value: kept });
        assert.equal(await charges(), 1);
    });
});

test('another request under the key is a mismatch; none is not compared', async () => {
    await each(async ({ il, rows }) => {
        const key = fresh('order');
        await il.once('pay', key, { amount: 10 }, charge(rows, 1));
        const error = await il.once('pay', key, { amount: 99 }, () => assert.fail()).catch((raised) => raised);
        assert.ok(error instanceof Mismatch);
        assert.equal(error.status, 422);
        assert.equal((await il.once('pay', key, undefined, () => assert.fail())).value, 1);
    });
});

test('work that throws leaves nothing, and the key is free', async () => {
    await each(async ({ il, rows }) => {
        await run('TRUNCATE charge');
        const key = fresh('order');
        await assert.rejects(il.once('pay', key, 1, async (tx) => { await charge(rows)(tx); throw new RangeError('of the work'); }), RangeError);
        await assert.rejects(il.once('pay', key, 1, charge(rows, 'a zero: \u0000'))); // no JSON of the server
        assert.equal(await charges(), 0);
        assert.equal((await il.once('pay', key, 2, charge(rows, 'done'))).outcome, 'completed');
        assert.equal(await charges(), 1);
    });
});

test('while one call works the others are in progress, or wait for its value', async () => {
    await each(async ({ il, rows }) => {
        await run('TRUNCATE charge');
        const key = fresh('order');
        let go;
        const gate = new Promise((resolve) => { go = resolve; });
        let working = false;
        const first = il.once('pay', key, 1, async (tx) => { working = true; await gate; return charge(rows, 'first')(tx); });
        await eventually(() => working);
        const error = await il.once('pay', key, 1, () => assert.fail()).catch((raised) => raised);
        assert.ok(error instanceof InProgress);
        assert.deepEqual([error.status, error.retryAfter, error.headers], [409, 1, { 'Retry-After': '1' }]);
        const waiting = Promise.all([1, 2, 3].map(() => il.once('pay', key, 1, () => assert.fail(), { wait: '10 min' })));
        await eventually(async () => await value(`SELECT count(*)::int FROM pg_stat_activity WHERE usename = 'app' AND wait_event_type IN ('Extension', 'Lock', 'IPC')`) > 0);
        go();
        assert.deepEqual((await first).outcome, 'completed');
        assert.deepEqual(await waiting, [1, 2, 3].map(() => ({ outcome: 'replay', value: 'first' })));
        assert.equal(await charges(), 1);
    });
});

test('a hundred calls at once on a pool of one are one effect', async () => {
    await each(async ({ il, rows }) => {
        await run('TRUNCATE charge');
        const key = fresh('order');
        const results = await Promise.all(Array.from({ length: 100 }, () => il.once('pay', key, 1, charge(rows, 'x'))));
        assert.equal(results.filter(({ outcome }) => outcome === 'completed').length, 1);
        assert.equal(await charges(), 1);
    }, { pool: { max: 1 } });
});

test('a value that is too large is not kept, and its work is not repeated', async () => {
    await each(async ({ il, rows }) => {
        await run('TRUNCATE charge');
        const key = fresh('order');
        assert.equal((await il.once('pay', key, 1, charge(rows, 'x'.repeat(5000)))).value.length, 5000);
        assert.deepEqual(await il.once('pay', key, 1, () => assert.fail()), { outcome: 'replay', value: undefined });
        assert.equal(await charges(), 1);
    });
});

test('work without a value', async () => {
    await each(async ({ il, rows }) => {
        const key = fresh('order');
        assert.deepEqual(await il.once('pay', key, 1, charge(rows)), { outcome: 'completed', value: undefined });
        assert.deepEqual(await il.once('pay', key, 1, charge(rows)), { outcome: 'replay', value: undefined });
    });
});

test('what failed for good by another call is Failed, with its error', async () => {
    await one(async ({ il }) => {
        const key = fresh('order');
        await admin.query(`SELECT interlock.idempotency_fail('pay', $1, token, '{"error": "declined"}', false) FROM interlock.idempotency_claim('pay', $1)`, [key]);
        const error = await il.once('pay', key, null, () => assert.fail()).catch((raised) => raised);
        assert.ok(error instanceof Failed);
        assert.deepEqual(error.detail.error, { error: 'declined' });
    });
});

test('a scope that the role may not use is the error of the server', async () => {
    await one(async ({ il }) => {
        await assert.rejects(il.once('forbidden', 'k', 1, () => assert.fail()), { code: '42501' });
        await assert.rejects(il.once('pay', [], 1, () => assert.fail()), TypeError);
    });
});
