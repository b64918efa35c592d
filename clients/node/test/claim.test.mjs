// Workers on a table of jobs.

import assert from 'node:assert/strict';
import test from 'node:test';
import { MarkerLost } from 'pg-interlock';
import { aborted, admin, each, eventually, fresh, held, one, run, value } from './lib/shop.mjs';

await run(`CREATE TABLE job (id int PRIMARY KEY, queue text NOT NULL DEFAULT 'mail', address text)`, `SELECT interlock.enable_marker('job', '10 min')`,
    'CREATE TABLE sent (address text)');
const fill = (count) => run('TRUNCATE job, sent', `INSERT INTO job SELECT i, 'mail', 'user ' || i FROM generate_series(1, ${count}) i`);
const left = () => value('SELECT count(*)::int FROM job');
const send = (rows, address) => (tx) => rows(tx, 'INSERT INTO sent VALUES ($1)', address);

test('two workers with four places each do each job once, and stop when they are told', async () => {
    await each(async ({ il, rows }) => {
        await fill(60);
        await run(`INSERT INTO job VALUES (100, 'other', 'x')`);
        const stop = new AbortController();
        let working = 0, most = 0;
        const worker = () => il.claim('job', { match: { queue: 'mail' }, order: 'id', concurrency: 4, signal: stop.signal, every: 0.05 }, async ({ address }, job) => {
            most = Math.max(most, ++working);
            await job.done(send(rows, address));
            working--;
        });
        const workers = [worker(), worker()];
        await eventually(async () => await left() === 1);
        stop.abort();
        await Promise.all(workers);
        assert.deepEqual([await value('SELECT count(DISTINCT address)::int FROM sent'), await value('SELECT count(*)::int FROM sent'), most <= 8], [60, 60, true]);
    });
});

test('a job ends with its handler: deleted, or saved with what it returns', async () => {
    await each(async ({ il }) => {
        await fill(2);
        const stop = new AbortController();
        const worker = il.claim('job', { match: { queue: 'mail' }, order: 'id', signal: stop.signal, every: 0.05 }, async ({ id }) => id === 1 ? undefined : { queue: 'done' });
        await eventually(async () => await left() === 1 && await value('SELECT queue FROM job') === 'done');
        stop.abort();
        await worker;
        assert.deepEqual((await admin.query('SELECT id, queue, lock_status FROM job')).rows, [{ id: 2, queue: 'done', lock_status: 0 }]);
    });
});

test('a job that throws stays hidden until its deadline, and its effect is undone', async () => {
    await each(async ({ il, rows }) => {
        await fill(2);
        const stop = new AbortController();
        const errors = [];
        const worker = il.claim('job', { order: 'id', signal: stop.signal, every: 0.05, onError: (error, row) => errors.push([error.message, row.id]) }, async ({ id, address }, job) => {
            await job.done(async (tx) => {
                await send(rows, address)(tx);
                if (id === 1) throw new RangeError('of the work');
            });
        });
        await eventually(async () => await left() === 1 && errors.length === 1);
        stop.abort();
        await worker;
        assert.deepEqual([errors, await value('SELECT string_agg(address, \',\') FROM sent'), await value('SELECT lock_status FROM job')], [[['of the work', 1]], 'user 2', 1]);
    });
});

test('a job that is lost: an aborted signal, and no effect', async () => {
    await each(async ({ il, rows }) => {
        await fill(1);
        const stop = new AbortController();
        const errors = [];
        const worker = il.claim('job', { ttl: '2 s', signal: stop.signal, every: 0.05, onError: (error) => errors.push(error) }, async ({ address }, job) => {
            await admin.query(`SELECT interlock.force_unlock_row('job', 1, 'test'), interlock.lock_row('job', 1, 'other')`);
            await aborted(job.signal);
            assert.ok(job.signal.reason instanceof MarkerLost);
            await job.done(send(rows, address));
        });
        await eventually(() => errors.length === 1);
        stop.abort();
        await worker;
        assert.ok(errors[0] instanceof MarkerLost);
        assert.deepEqual([await left(), await value('SELECT count(*)::int FROM sent')], [1, 0]);
    });
});

test('a long job is kept by its worker', async () => {
    await each(async ({ il }) => {
        await fill(1);
        const stop = new AbortController();
        const worker = il.claim('job', { ttl: '1 s', signal: stop.signal, every: 0.05 }, async (row, job) => {
            const first = await value('SELECT lock_until::text FROM job');
            await eventually(() => value(`SELECT lock_until > $1::timestamptz + interval '1 s' FROM job`, first));
            assert.equal(job.signal.aborted, false);
            stop.abort();
        });
        await worker;
        assert.equal(await left(), 0);
    });
});

test('a stop waits for the job that runs, and begins no other; a release gives it back', async () => {
    await each(async ({ il }) => {
        await fill(3);
        const stop = new AbortController();
        let done = 0;
        await il.claim('job', { order: 'id', signal: stop.signal }, async () => {
            stop.abort();
            await new Promise((resolve) => setTimeout(resolve, 100));
            done++;
        });
        assert.deepEqual([done, await left()], [1, 2]);
        const again = new AbortController();
        await il.claim('job', { order: 'id', signal: again.signal }, async (row, job) => { again.abort(); await job.release(); });
        assert.equal(await value('SELECT sum(lock_status)::int FROM job'), 0);
    });
});

test('a notification wakes a worker that waits', async () => {
    await each(async ({ il }) => {
        await fill(0);
        const stop = new AbortController();
        const worker = il.claim('job', { signal: stop.signal, channel: 'new_jobs', every: '1 h' }, async () => { stop.abort(); });
        await eventually(async () => await value(`SELECT count(*)::int FROM pg_stat_activity WHERE usename = 'app' AND query ILIKE 'listen%new_jobs%'`) === 1);
        await run(`INSERT INTO job VALUES (1)`, 'NOTIFY new_jobs');
        await worker;
        assert.equal(await left(), 0);
    });
});

test('a worker hears its channel while others wait for a lease, on one connection', async () => {
    await each(async ({ il }) => {
        await fill(0);
        const key = fresh('channels');
        const first = await il.acquire(key, { ttl: '10 min' });
        const waiting = il.lease(key, { wait: '10 min' }, async () => 'served');
        await eventually(async () => await held() === 2);
        const stop = new AbortController();
        const listeners = () => value(`SELECT count(*)::int FROM pg_stat_activity WHERE usename = 'app' AND query ILIKE 'listen%'`);
        await eventually(async () => await listeners() === 1);
        const worker = il.claim('job', { signal: stop.signal, channel: 'New jobs', every: '1 h' }, async () => { stop.abort(); });
        await eventually(async () => await value(`SELECT count(*)::int FROM pg_stat_activity WHERE usename = 'app' AND query ILIKE 'listen "new jobs"'`) === 1);
        assert.equal(await listeners(), 1);
        await run(`INSERT INTO job VALUES (1)`, 'NOTIFY "New jobs"');
        await worker;
        await first.release();
        assert.equal(await waiting, 'served');
    });
});

test('a job that throws without onError is a warning of the process', async () => {
    await one(async ({ il }) => {
        await fill(1);
        const stop = new AbortController();
        const warned = new Promise((resolve) => { process.once('warning', resolve); });
        await il.claim('job', { signal: stop.signal }, async () => { stop.abort(); throw new RangeError('of the work'); });
        assert.match((await warned).message, /of the work/);
    });
});

test('what cannot pass ends the loop with its error', async () => {
    await one(async ({ il }) => {
        await assert.rejects(il.claim('nothing', {}, () => assert.fail()), { code: '42P01' });
        await assert.rejects(il.claim('job', { match: { nothing: 1 } }, () => assert.fail()), { code: '42703' });
    });
});
