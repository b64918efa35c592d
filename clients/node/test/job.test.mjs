// Jobs that run once for their key, across workers.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import test from 'node:test';
import { ClaimLost, Mismatch } from 'pg-interlock';
import { aborted, admin, drivers, each, eventually, fresh, one, run, value } from './lib/shop.mjs';

await run('CREATE TABLE report (day text, part text)',
    `SELECT interlock.define_idempotency_scope('nightly', model => 'job', ttl => '7 days', stale_after => '1 min', max_attempts => 3)`,
    `SELECT interlock.grant_idempotency_scope('nightly', 'app')`);
const parts = (day) => value(`SELECT string_agg(part, ',' ORDER BY part) FROM report WHERE day = $1`, day);

test('eight workers at midnight: one runs the job, later calls get its result', async () => {
    await each(async ({ il, rows }) => {
        const day = fresh('day');
        let runs = 0;
        const gate = {};
        gate.open = new Promise((resolve) => { gate.resolve = resolve; });
        const tick = () => il.job('nightly', day, {}, async (job) => {
            runs++;
            await gate.open;
            await job.done((tx) => rows(tx, 'INSERT INTO report VALUES ($1, $2)', day, 'all'), { lines: 7, large: 2n ** 60n });
        });
        const all = Array.from({ length: 8 }, tick);
        await eventually(() => runs === 1);
        gate.resolve();
        const results = await Promise.all(all);
        assert.deepEqual([results.filter(({ ran }) => ran), runs, await parts(day)], [[{ ran: true, result: { lines: 7, large: '1152921504606846976' } }], 1, 'all']);
        for (const { ran, outcome, retryAfter } of results.filter((each) => !each.ran)) assert.ok(!ran && outcome === 'in_progress' && retryAfter > 0 || outcome === 'completed');
        assert.deepEqual(await tick(), { ran: false, outcome: 'completed', result: { lines: 7, large: '1152921504606846976' } });
        assert.deepEqual(await il.job('nightly', fresh('day'), {}, async () => 'returned'), { ran: true, result: 'returned' });
    });
});

test('a job that throws leaves what it has committed, and the next call continues at its checkpoint', async () => {
    await each(async ({ il, rows }) => {
        const day = fresh('day');
        const attempts = [];
        const tick = () => il.job('nightly', day, {}, async (job) => {
            attempts.push([job.attempt, job.checkpoint, job.state]);
            if (job.checkpoint === null) await job.save('first', { next: 2 }, (tx) => rows(tx, 'INSERT INTO report VALUES ($1, $2)', day, '1'));
            await job.transaction((tx) => rows(tx, 'INSERT INTO report VALUES ($1, $2)', day, String(job.attempt + 1)));
            if (job.attempt < 3) throw new RangeError('of the work');
        });
        await assert.rejects(tick(), RangeError);
        await assert.rejects(tick(), RangeError);
        assert.deepEqual(await tick(), { ran: true, result: undefined });
        assert.deepEqual(attempts, [[1, null, undefined], [2, 'first', { next: 2 }], [3, 'first', { next: 2 }]]);
        assert.equal(await parts(day), '1,2,3,4');
    });
});

test('a job that has failed as often as its scope allows is exhausted', async () => {
    await one(async ({ il }) => {
        const day = fresh('day');
        for (let n = 0; n < 3; n++) await assert.rejects(il.job('nightly', day, {}, async () => { throw new RangeError('of the work'); }), RangeError);
        assert.deepEqual(await il.job('nightly', day, {}, () => assert.fail()), { ran: false, outcome: 'exhausted', result: undefined });
    });
});

test('an effect that fails leaves the job open', async () => {
    await each(async ({ il, rows }) => {
        const day = fresh('day');
        await assert.rejects(il.job('nightly', day, {}, (job) => job.done(async (tx) => {
            await rows(tx, 'INSERT INTO report VALUES ($1, $2)', day, 'undone');
            throw new RangeError('of the effect');
        })), RangeError);
        assert.equal(await parts(day), null);
        assert.equal((await il.job('nightly', day, {}, async (job) => job.attempt)).result, 2);
    });
});

test('a long job is kept; one that is taken over gets an aborted signal, and writes nothing', async () => {
    await each(async ({ il, rows }) => {
        const day = fresh('day');
        const deadline = () => value('SELECT deadline::text FROM interlock.idempotency_lookup($1, $2)', 'nightly', day);
        const error = await il.job('nightly', day, { staleAfter: '2 s' }, async (job) => {
            const first = await deadline();
            await eventually(async () => await deadline() !== first);
            assert.equal(job.signal.aborted, false);
            await admin.query('SELECT interlock.idempotency_forget($1, $2, $3, force => true)', ['nightly', day, 'test']);
            await admin.query('SELECT interlock.idempotency_claim($1, $2)', ['nightly', day]);
            await aborted(job.signal);
            await job.done((tx) => rows(tx, 'INSERT INTO report VALUES ($1, $2)', day, 'late'));
        }).catch((raised) => raised);
        assert.ok(error instanceof ClaimLost, error);
        assert.equal(await parts(day), null);
        assert.equal(await value('SELECT status FROM interlock.idempotency_lookup($1, $2)', 'nightly', day), 'pending');
    });
});

test('a takeover that nobody has told: the transaction finds it', async () => {
    await each(async ({ il, rows }) => {
        const day = fresh('day');
        await assert.rejects(il.job('nightly', day, {}, async (job) => {
            await admin.query('SELECT interlock.idempotency_forget($1, $2, $3, force => true)', ['nightly', day, 'test']);
            await assert.rejects(job.transaction((tx) => rows(tx, 'INSERT INTO report VALUES ($1, $2)', day, 'late')), ClaimLost);
            assert.equal(job.signal.aborted, true);
            throw job.signal.reason;
        }), ClaimLost);
        assert.equal(await parts(day), null);
    });
});

test('another request is a mismatch; a signal reaches the run', async () => {
    await one(async ({ il }) => {
        const day = fresh('day');
        const stop = new AbortController();
        await il.job('nightly', day, { request: { region: 'north' }, signal: stop.signal }, async (job) => {
            stop.abort(new RangeError('told to stop'));
            assert.ok(job.signal.aborted && job.signal.reason instanceof RangeError);
            await job.transaction(async () => {}); // told to stop, and not lost
        });
        await assert.rejects(il.job('nightly', day, { request: { region: 'south' } }, () => assert.fail()), Mismatch);
        await assert.rejects(il.job('nightly', day, { signal: stop.signal }, () => assert.fail()), RangeError);
        await assert.rejects(il.job('nothing', day, {}, () => assert.fail()), { code: '42501' });
    });
});

test('a worker that is killed is taken over, and continues at the checkpoint', async () => {
    for (const driver of Object.keys(drivers)) {
        const day = fresh('day');
        const child = spawn(process.execPath, [new URL('lib/worker.mjs', import.meta.url).pathname, driver, day], { stdio: ['ignore', 'pipe', 'inherit'] });
        const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
        assert.equal((await lines.next()).value, 'first is saved', driver);
        child.kill('SIGKILL');
        await once(child, 'exit');
        await one(async ({ il, rows }) => {
            await eventually(async () => (await il.job('nightly', day, {}, async (job) => {
                assert.deepEqual([job.attempt, job.checkpoint], [2, 'first']);
                await job.done((tx) => rows(tx, 'INSERT INTO report VALUES ($1, $2)', day, '2'));
            })).ran);
        });
        assert.equal(await parts(day), '1,2', driver);
    }
});
