// The candidates of docs/recipes/leader-election.md, with the code of the page.
// Prints TAP. Connects as the environment says (PGHOST, PGPORT, PGUSER, PGDATABASE).

import pg from 'pg';
import assert from 'node:assert/strict';
import { setTimeout } from 'node:timers/promises';
import { load, check, eventually } from './lib/page.mjs';

const client = new pg.Client();
await client.connect();
const { pool, candidate, send } = await load('recipes/leader-election', client);
const value = async (sql, ...parameters) => Object.values((await client.query(sql, parameters)).rows[0])[0];
const leader = () => value(`SELECT max(split_part(holder, ' ', 1)) FROM interlock.leases WHERE key = $1`, 'leader/mail');

// Leads by a write now and then.
const leading = new Map();
const works = (name) => async (token, lost) => {
    leading.set(name, token);
    while (!lost.aborted) {
        await send(name, token);
        await setTimeout(5);
    }
};
const start = (name, options) => {
    const stop = new AbortController();
    return { name, stop, ended: candidate(name, works(name), stop.signal, options) };
};

const candidates = new Map(['a', 'b', 'c'].map((name) => [name, start(name, { ttl: 600 })]));

await check('of three candidates one leads', async () => {
    await eventually(async () => await value('SELECT count(*)::int FROM sent') > 10);
    assert.equal(await value('SELECT count(DISTINCT leader)::int FROM sent'), 1);
    assert.equal(await value('SELECT max(leader) FROM sent'), await leader());
});
await check('a leader that stops makes room for the next at once', async () => {
    const first = await leader();
    const { stop, ended } = candidates.get(first);
    stop.abort();
    await ended;
    candidates.delete(first);
    await eventually(async () => await value('SELECT count(DISTINCT leader)::int FROM sent') === 2);
});
await check('a leader that has lost its lease cannot write, and another one leads', async () => {
    const second = await leader();
    const token = leading.get(second);
    // While a write of it is open, it is passed over.
    await eventually(async () => await value('SELECT interlock.break_leases($1, $2)::int', 'leader/mail', 'test') === 1);
    await eventually(async () => await value('SELECT count(*)::int FROM interlock.leases WHERE key = $1 AND token > $2', 'leader/mail', token) === 1);
    await assert.rejects(send(second, token), { code: 'IL006' });
    await eventually(async () => await value('SELECT count(*)::int FROM sent WHERE token > $1', token) > 0);
});
await check('leaders have written one after the other, under growing tokens', async () => {
    assert.equal(await value('SELECT count(*)::int FROM (SELECT token < lag(token) OVER (ORDER BY id) AS back FROM sent) s WHERE back'), 0);
    assert.ok(await value('SELECT count(DISTINCT token)::int FROM sent') >= 3);
});
await check('a leader renews, and learns of a loss by its heartbeat', async () => {
    for (const { stop, ended } of candidates.values()) {
        stop.abort();
        await ended;
    }
    const stop = new AbortController();
    const seen = [];
    const ended = candidate('idle', async (token, lost) => {
        seen.push(token);
        const until = () => value('SELECT expires_at::text FROM interlock.leases WHERE key = $1', 'leader/idle');
        const first = await until();
        await eventually(async () => await until() > first);
        if (seen.length === 1)
            await client.query('SELECT interlock.break_leases($1, $2)', ['leader/idle', 'test']);
        else
            stop.abort();
        await eventually(async () => lost.aborted);
    }, stop.signal, { lease: 'leader/idle', ttl: 2 });
    await ended;
    assert.ok(seen.length >= 2 && seen.every((token, n) => n === 0 || BigInt(token) > BigInt(seen[n - 1])), `${seen}`);
});

console.log(`1..${check.count}`);
await Promise.all([pool.end(), client.end()]);
