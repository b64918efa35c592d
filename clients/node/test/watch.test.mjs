// Who edits what.

import assert from 'node:assert/strict';
import test from 'node:test';
import { interlock } from 'pg-interlock';
import { drivers, each, eventually, one, run, value } from './lib/shop.mjs';
import { proxy } from './lib/proxy.mjs';

await run('CREATE TABLE page (id int PRIMARY KEY, body text)', `SELECT interlock.enable_marker('page', notify => 'on')`,
    'CREATE TABLE "Quiet Page" (id int PRIMARY KEY, body text)', `SELECT interlock.enable_marker('"Quiet Page"')`,
    'CREATE TABLE plain (id int PRIMARY KEY)',
    'CREATE TABLE parted (id int PRIMARY KEY) PARTITION BY RANGE (id)', 'CREATE TABLE parted_1 PARTITION OF parted FOR VALUES FROM (0) TO (10)',
    `SELECT interlock.enable_marker('parted', notify => 'on')`);
const fill = () => run('TRUNCATE page', 'INSERT INTO page SELECT i FROM generate_series(1, 9) i', 'TRUNCATE "Quiet Page"', 'INSERT INTO "Quiet Page" VALUES (1)',
    'TRUNCATE parted', 'INSERT INTO parted VALUES (1)');
const shown = ({ rows, changes }) => [rows.map(({ key, holder }) => `${key.id} ${holder}`), changes.map(({ event, row }) => `${event} ${row.key.id} ${row.holder}`)];
const lock = (id, holder, ttl = '10 min', rel = 'page') => value('SELECT locked FROM interlock.lock_row($1::regclass, $2::int, $3, $4::text::interval)', rel, id, holder, ttl);

test('the state first, then what changes', async () => {
    await each(async ({ il }) => {
        await fill();
        await lock(1, 'anna');
        const watching = il.watch('page', { every: '1 h' });
        const next = async () => shown((await watching.next()).value);
        assert.deepEqual(await next(), [['1 anna'], ['locked 1 anna']]);
        const second = next();
        await lock(2, 'bert');
        assert.deepEqual(await second, [['1 anna', '2 bert'], ['locked 2 bert']]);
        const third = next();
        await value(`SELECT interlock.hand_over_row('page', 1, 'anna', 'carl')`);
        assert.deepEqual((await third)[1], ['taken 1 carl']);
        const fourth = next();
        await value(`SELECT interlock.unlock_row('page', 2, 'bert')`);
        assert.deepEqual(await fourth, [['1 carl'], ['released 2 bert']]);
        await lock(3, 'dora');                             // while nobody asks for the next one
        await value(`SELECT interlock.force_unlock_row('page', 1, 'test')`);
        assert.deepEqual(await next(), [['3 dora'], ['released 1 carl', 'locked 3 dora']]);
        await watching.return();
        assert.deepEqual(await watching.next(), { value: undefined, done: true });
    });
});

test('a marker that expires is released at its time, which no notification tells', async () => {
    await one(async ({ il }) => {
        await fill();
        await lock(1, 'anna', '1 s');
        const events = [];
        for await (const { changes } of il.watch('page', { every: '1 h' })) {
            events.push(...changes.map(({ event }) => event));
            if (events.length === 2) break;
        }
        assert.deepEqual(events, ['locked', 'released']);
    });
});

test('a connection that is lost: what changed meanwhile is found', async () => {
    for (const [driver, { pool: make }] of Object.entries(drivers)) {
        await fill();
        const between = await proxy();
        const pool = make({ ...between.options, database: process.env.PGDATABASE });
        const il = interlock(pool);
        const watching = il.watch('page', { every: '1 h' });
        const listens = () => value(`SELECT count(*)::int FROM pg_stat_activity WHERE usename = 'app' AND query ILIKE 'listen%'`);
        assert.deepEqual(shown((await watching.next()).value), [[], []], driver);
        const next = watching.next();
        await eventually(async () => await listens() === 1);
        between.set('refuse');
        between.cut();
        await eventually(async () => await listens() === 0);
        await lock(1, 'anna');                             // nobody hears of it
        between.set('open');
        assert.deepEqual(shown((await next).value), [['1 anna'], ['locked 1 anna']], driver);
        const last = watching.next();
        await eventually(async () => await listens() === 1);
        await lock(2, 'bert');                             // it hears again
        assert.deepEqual(shown((await last).value)[1], ['locked 2 bert'], driver);
        await watching.return();
        await il.close();
        await (driver === 'pg' ? pool.end() : pool.end({ timeout: 1 }));
        between.close();
    }
});

test('a signal ends it, also while it waits', async () => {
    await each(async ({ il }) => {
        await fill();
        const stop = new AbortController();
        let states = 0;
        setTimeout(() => stop.abort(), 300);
        for await (const { rows } of il.watch('page', { every: '1 h', signal: stop.signal })) states += 1 + rows.length;
        assert.equal(states, 1);
        await assert.rejects(il.watch('page', { signal: stop.signal }).next(), { name: 'AbortError' });
    });
});

test('a table without notifications is read now and then; other tables wake nobody; partitions', async () => {
    await one(async ({ il }) => {
        await fill();
        const watching = il.watch('"Quiet Page"', { every: '0.2 s' });
        assert.deepEqual(shown((await watching.next()).value), [[], []]);
        await lock(1, 'anna', '10 min', 'page');
        for (const payload of ['', 'garbage', 'null', '[]', '{"table": {}}']) await value(`SELECT pg_notify('interlock_row_lock', $1)`, payload);
        const next = watching.next();
        await lock(1, 'bert', '10 min', '"Quiet Page"');
        assert.deepEqual(shown((await next).value), [['1 bert'], ['locked 1 bert']]);
        await watching.return();

        const parts = il.watch('parted', { every: '1 h' });
        assert.deepEqual(shown((await parts.next()).value), [[], []]);
        const part = parts.next();
        await lock(1, 'carl', '10 min', 'parted');
        assert.deepEqual(shown((await part).value), [['1 carl'], ['locked 1 carl']]);
        await parts.return();
    });
});

test('a table without a marker, and one that is none', async () => {
    await one(async ({ il }) => {
        await assert.rejects(il.watch('plain').next(), TypeError);
        await assert.rejects(il.watch('nothing').next(), { code: '42P01' });
    });
});
