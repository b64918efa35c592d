// Providers for interfaces that people already use. Verrou's own test suite runs on its store.

import assert from 'node:assert/strict';
import test from 'node:test';
import { registerStoreTestSuite } from '@verrou/core/test_suite';
import { Verrou } from '@verrou/core';
import { IdempotencyConfig, makeIdempotent } from '@aws-lambda-powertools/idempotency';
import { Idempotency } from '@node-idempotency/core';
import { ClaimLost } from 'pg-interlock';
import { InterlockStorage } from 'pg-interlock/node-idempotency';
import { InterlockPersistenceLayer } from 'pg-interlock/powertools';
import Redlock, { ExecutionError, ResourceLockedError } from 'pg-interlock/redlock';
import { createBackend } from 'pg-interlock/syncguard';
import { interlockStore } from 'pg-interlock/verrou';
import { each, eventually, fresh, run, value } from './lib/shop.mjs';

await run(`SELECT interlock.define_idempotency_scope('requests', model => 'job', ttl => '24 h')`, `SELECT interlock.grant_idempotency_scope('requests', 'app')`,
    `SELECT interlock.define_idempotency_scope('lambda', ttl => '24 h')`, `SELECT interlock.grant_idempotency_scope('lambda', 'app')`);

// --- Verrou ---

// Its tests are written for Japa. Their locks have one name, so none may be left behind.
let connection;
function japa(name, body) {
    let expected;
    test(`verrou, its own suite: ${name}`, () => each(async ({ pool }) => {
        connection = pool;
        const asserts = {
            ...assert, isTrue: (is) => assert.equal(is, true), isFalse: (is) => assert.equal(is, false), isString: (is) => assert.equal(typeof is, 'string'),
            rejects: (work, message) => assert.rejects(work, { message }),
        };
        const running = body({ assert: asserts });
        if (expected) await assert.rejects(running, (error) => error instanceof expected[1] && error.message === expected[0]);
        else await running;
        await run(`SELECT interlock.break_lease(key, 'test') FROM interlock.leases`);
    }));
    return { throws: (...what) => { expected = what; } };
}
registerStoreTestSuite({ test: japa, createStore: () => interlockStore({ connection }).factory() });

test('verrou: names with slashes are no paths; a lock is a lease with its owner', async () => {
    await each(async ({ pool }) => {
        const verrou = new Verrou({ default: 'postgres', stores: { postgres: { driver: interlockStore({ connection: pool }) } } });
        const name = fresh('order');
        const [outer, inner] = [verrou.createLock(name, '10 m'), verrou.createLock(`${name}/line`, '10 m')];
        assert.deepEqual([await outer.acquireImmediately(), await inner.acquireImmediately()], [true, true]);
        assert.equal(await value('SELECT holder FROM interlock.leases WHERE key = $1', name), outer.getOwner());
        await outer.release();
        await inner.release();
        await assert.rejects(inner.release(), { code: 'E_LOCK_NOT_OWNED' });
    });
});

// --- Redlock ---

test('redlock: acquire, extend, release; another client is refused after its retries', async () => {
    await each(async ({ pool }) => {
        const redlock = new Redlock(pool, { retryCount: 1, retryDelay: 10, retryJitter: 0 });
        const resources = [fresh('a'), fresh('b')];
        const seen = [];
        redlock.on('error', (error) => seen.push(error));
        const lock = await redlock.acquire(resources, 600_000);
        const refused = await redlock.acquire([resources[1]], 600_000).catch((raised) => raised);
        assert.ok(refused instanceof ExecutionError && refused.cause instanceof ResourceLockedError && seen.length === 2);
        const { expiration, token } = lock;
        assert.equal((await lock.extend(1_200_000)).token, token);
        assert.ok(lock.expiration > expiration);
        await lock.release();
        await assert.rejects(lock.release(), ExecutionError);
        await assert.rejects(lock.extend(1000), ExecutionError);
        const next = await redlock.acquire([resources[1]], 600_000);
        assert.ok(BigInt(next.token) > BigInt(token));
        await next.release();
        await assert.rejects(redlock.acquire(resources, 0.5), TypeError);
        await redlock.quit();
    });
});

test('redlock: using extends the lock, and tells the routine when it is lost', async () => {
    await each(async ({ pool }) => {
        const redlock = new Redlock(pool, { retryDelay: 50, retryCount: -1 });
        const name = fresh('used');
        const end = () => value('SELECT expires_at::text FROM interlock.leases WHERE key = $1', name);
        let begin, done = false;
        const begun = new Promise((resolve) => { begin = resolve; });
        const result = redlock.using([name], 10_000, { automaticExtensionThreshold: 9000 }, async (signal) => {
            begin();
            const first = await end();
            await eventually(async () => await end() !== first);
            assert.equal(signal.aborted, false);
            done = true;
            return 7;
        });
        await begun;
        assert.equal(await redlock.using([name], 10_000, async () => done), true); // it has waited
        assert.equal(await result, 7);
        await redlock.using([name], 2000, { automaticExtensionThreshold: 1500 }, async (signal) => {
            await value(`SELECT interlock.break_lease($1, 'test')`, name);
            await eventually(() => signal.aborted);
            assert.ok(signal.error instanceof ExecutionError);
        });
        await assert.rejects(redlock.using([name], 500, async () => assert.fail()), TypeError);
    });
});

// --- syncguard ---

test('syncguard: what its interface promises', async () => {
    await each(async ({ pool }) => {
        const backend = createBackend(pool);
        const key = `${fresh('guard')}/ü`;
        const first = await backend.acquire({ key, ttlMs: 600_000 });
        assert.deepEqual([first.ok, first.fence.length, first.expiresAtMs > Date.now() + 500_000], [true, 19, true]);
        assert.deepEqual(await backend.acquire({ key, ttlMs: 1000 }), { ok: false, reason: 'locked' });
        assert.equal((await backend.acquire({ key: `${key}/below`, ttlMs: 1000 })).ok, true); // no path
        assert.equal(await backend.isLocked({ key }), true);
        const info = await backend.lookup({ key });
        assert.deepEqual([info.fence, info.keyHash.length, info.expiresAtMs], [first.fence, 24, first.expiresAtMs]);
        assert.deepEqual(await backend.lookup({ lockId: first.lockId }), info);
        assert.ok((await backend.extend({ lockId: first.lockId, ttlMs: 1_200_000 })).expiresAtMs > first.expiresAtMs);
        assert.deepEqual(await backend.release({ lockId: first.lockId }), { ok: true });
        assert.deepEqual([await backend.release({ lockId: first.lockId }), await backend.extend({ lockId: first.lockId, ttlMs: 1000 })], [{ ok: false }, { ok: false }]);
        assert.deepEqual([await backend.isLocked({ key }), await backend.lookup({ key }), await backend.lookup({ lockId: first.lockId })], [false, null, null]);
        const second = await backend.acquire({ key, ttlMs: 600_000 });
        assert.ok(second.fence > first.fence);
        assert.equal(await backend.lookup({ lockId: first.lockId }), null); // of another holder
        await assert.rejects(backend.release({ lockId: 'none' }), TypeError);
        await assert.rejects(backend.acquire({ key, ttlMs: 1000, signal: AbortSignal.abort() }), { name: 'AbortError' });
    });
});

// --- node-idempotency ---

test('node-idempotency: the first answer is kept, others are refused meanwhile', async () => {
    await each(async ({ pool }) => {
        const idempotency = new Idempotency(new InterlockStorage({ pool, scope: 'requests' }), { cacheTTLMS: 3_600_000 });
        const request = (body, key) => ({ headers: { 'idempotency-key': key }, path: '/pay', method: 'POST', body });
        const key = fresh('key');
        assert.equal(await idempotency.onRequest(request({ amount: 1 }, key)), undefined);
        await assert.rejects(idempotency.onRequest(request({ amount: 1 }, key)), { code: 'REQUEST_IN_PROGRESS' });
        await idempotency.onResponse(request({ amount: 1 }, key), { body: { id: 7 }, additional: { statusCode: 201 } });
        assert.deepEqual(await idempotency.onRequest(request({ amount: 1 }, key)), { body: { id: 7 }, additional: { statusCode: 201 } });
        await assert.rejects(idempotency.onRequest(request({ amount: 2 }, key)), { code: 'IDEMPOTENCY_FINGERPRINT_MISSMATCH' });
    });
});

test('node-idempotency: eight at once are one; a request that was taken over cannot save its answer', async () => {
    await each(async ({ pool }) => {
        const key = fresh('key');
        const storages = Array.from({ length: 8 }, () => new InterlockStorage({ pool, scope: 'requests' }));
        const claimed = await Promise.all(storages.map((storage) => storage.setIfNotExists(key, 'working', { ttl: 3_600_000 })));
        assert.equal(claimed.filter((each) => each).length, 1);
        const [first, second] = [storages[claimed.indexOf(true)], storages[claimed.indexOf(false)]];
        assert.equal(await second.get(key), 'working');
        await assert.rejects(second.set(key, 'theirs', {}), ClaimLost);
        await value('SELECT interlock.idempotency_forget($1, $2, $3, force => true)', 'requests', key, 'test');
        assert.equal(await second.get(key), undefined);
        assert.equal(await second.setIfNotExists(key, 'again', {}), true);
        await assert.rejects(first.set(key, 'late', {}), ClaimLost);
        await second.set(key, 'done', {});
        assert.equal(await first.get(key), 'done');
    });
});

// --- Powertools ---

function configured(options = {}) {
    const config = new IdempotencyConfig(options);
    config.registerLambdaContext({ getRemainingTimeInMillis: () => 60_000 });
    return config;
}

test('powertools: a function runs once for its payload, and again after it has thrown', async () => {
    await each(async ({ pool }) => {
        const persistenceStore = new InterlockPersistenceLayer({ pool, scope: 'lambda' });
        let calls = 0;
        const pay = makeIdempotent(async (order) => {
            calls++;
            if (calls === 1) throw new RangeError('of the work');
            return { id: order.id, large: '9007199254740993' };
        }, { persistenceStore, keyPrefix: fresh('pay'), config: configured() });
        const order = { id: fresh('order'), amount: 5 };
        await assert.rejects(pay(order), RangeError);
        assert.deepEqual([await pay(order), await pay(order), calls], [{ id: order.id, large: '9007199254740993' }, { id: order.id, large: '9007199254740993' }, 2]);
        await pay({ ...order, amount: 6 });
        assert.equal(calls, 3);
        const record = await persistenceStore.getRecord(order);
        assert.deepEqual([record.getStatus(), record.responseData.id], ['COMPLETED', order.id]);
    });
});

test('powertools: payload validation, and a call while another one works', async () => {
    await each(async ({ pool }) => {
        const gate = {};
        gate.open = new Promise((resolve) => { gate.resolve = resolve; });
        let begun = false;
        const config = () => configured({ eventKeyJmesPath: 'id', payloadValidationJmesPath: 'amount' });
        const make = (work, keyPrefix) => makeIdempotent(work, { persistenceStore: new InterlockPersistenceLayer({ pool, scope: 'lambda' }), keyPrefix, config: config() });
        const prefix = fresh('pay');
        const pay = make(async () => { begun = true; await gate.open; return 'paid'; }, prefix);
        const first = pay({ id: 1, amount: 5 });
        await eventually(() => begun);
        await assert.rejects(pay({ id: 1, amount: 5 }), { name: 'IdempotencyAlreadyInProgressError' });
        await assert.rejects(pay({ id: 1, amount: 6 }), { name: 'IdempotencyValidationError' });
        gate.resolve();
        assert.deepEqual([await first, await pay({ id: 1, amount: 5 })], ['paid', 'paid']);
        await assert.rejects(pay({ id: 1, amount: 6 }), { name: 'IdempotencyValidationError' });
    });
});

test('powertools: a function that was taken over cannot save its answer', async () => {
    await each(async ({ pool }) => {
        const persistenceStore = new InterlockPersistenceLayer({ pool, scope: 'lambda' });
        const late = makeIdempotent(async (order) => {
            const key = persistenceStore.getHashedIdempotencyKey(order);
            await value(`SELECT interlock.idempotency_forget('lambda', $1, 'test', force => true)`, key);
            await value(`SELECT interlock.idempotency_claim('lambda', $1)`, key);
            return 'late';
        }, { keyPrefix: fresh('pay'), config: configured(), persistenceStore });
        const error = await late({ id: fresh('order') }).catch((raised) => raised);
        assert.ok(error instanceof ClaimLost || error.cause instanceof ClaimLost, error);
    });
});
