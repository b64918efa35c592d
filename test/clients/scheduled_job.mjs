// The job of docs/recipes/scheduled-job.md, with the code of the page, on three nodes.
// Prints TAP. Connects as the environment says (PGHOST, PGPORT, PGUSER, PGDATABASE).

import pg from 'pg';
import assert from 'node:assert/strict';
import { load, check, eventually } from './lib/page.mjs';

const client = new pg.Client();
await client.connect();
const { pool, tick, dayOf } = await load('recipes/scheduled-job', client);
const value = async (sql, ...parameters) => Object.values((await client.query(sql, parameters)).rows[0])[0];
const save = (node) => (its, { day, lines }) => its.query('INSERT INTO report VALUES ($1, $2, $3)', [day, lines, node]);
const run = (day, node, work = async () => {}) => tick(day, async (signal) => { await work(signal); return { day, lines: 7 }; }, save(node), 20);
const reports = (day) => value('SELECT count(*)::int FROM report WHERE day = $1', day);

await check('three nodes that tick at once make one report', async () => {
    const outcomes = await Promise.all(['a', 'b', 'c'].map((node) => run('2030-01-01', node)));
    assert.equal(outcomes.filter((outcome) => outcome === 'completed').length, 1);
    assert.equal(await reports('2030-01-01'), 1);
});
await check('three nodes that tick one after the other make one report', async () => {
    const outcomes = [];
    for (const node of ['a', 'b', 'c'])
        outcomes.push(await run('2030-01-02', node));
    assert.deepEqual(outcomes, ['completed', 'replay', 'replay']);
    assert.equal(await run('2030-01-03', 'b'), 'completed');
});
await check('IDM-50: at half past midnight in London each night of spring has a day of its own', async () => {
    const nights = ['2030-03-30T00:30Z', '2030-03-31T00:30Z', '2030-03-31T23:30Z', '2030-04-01T23:30Z'].map((time) => new Date(time));
    assert.deepEqual(nights.map((night) => dayOf(night, 'Europe/London')), ['2030-03-30', '2030-03-31', '2030-04-01', '2030-04-02']);
    const outcomes = [];
    for (const night of nights) outcomes.push(await run(dayOf(night, 'Europe/London'), 'a'));
    assert.deepEqual(outcomes, Array(4).fill('completed'));
});
await check('a node that works has the claim for as long as its heart beats', async () => {
    const deadline = () => value(`SELECT deadline::text FROM interlock.idempotency_lookup('report', '2030-01-04')`);
    await run('2030-01-04', 'a', async () => {
        const first = await deadline();
        await eventually(async () => await deadline() > first);
        assert.equal(await run('2030-01-04', 'b'), 'in_progress');
    });
});
await check('the report of a node that died or was paused is made by another, once', async () => {
    const paused = run('2030-01-05', 'a', async (signal) => {
        await client.query(`UPDATE interlock.idempotency SET deadline = now() - interval '1 s' WHERE key = '2030-01-05'`);
        let outcome;
        while ((outcome = await run('2030-01-05', 'b')) === 'in_progress')
            await client.query(`UPDATE interlock.idempotency SET deadline = now() - interval '1 s' WHERE key = '2030-01-05' AND status = 'pending'`);
        assert.equal(outcome, 'completed');
        await eventually(async () => signal.aborted);
    });
    await assert.rejects(paused, { code: 'IL008' });
    assert.equal(await value(`SELECT node FROM report WHERE day = '2030-01-05'`), 'b');
});
await check('a report that fails is tried again, and given up', async () => {
    const fails = () => { throw new Error('no data'); };
    for (let attempt = 0; attempt < 3; attempt++)
        await assert.rejects(run('2030-01-06', 'a', fails), /no data/);
    assert.equal(await run('2030-01-06', 'a'), 'exhausted');
    assert.equal(await value(`SELECT interlock.idempotency_forget('report', '2030-01-06', 'the data came late')`), true);
    assert.equal(await run('2030-01-06', 'a'), 'completed');
});

console.log(`1..${check.count}`);
await Promise.all([pool.end(), client.end()]);
