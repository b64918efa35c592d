// The edit of a row.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import test from 'node:test';
import { MarkerHeld, MarkerLost, NotFound, StaleVersion } from 'pg-interlock';
import { admin, each, eventually, one, run, value } from './lib/shop.mjs';

await run('CREATE TABLE page (id int PRIMARY KEY, body text)', `SELECT interlock.enable_versioning('page')`, `SELECT interlock.enable_marker('page')`,
    'CREATE TABLE loose (id int PRIMARY KEY, body text)', `SELECT interlock.enable_marker('loose')`);
const fill = () => run('TRUNCATE page', 'TRUNCATE loose', `INSERT INTO page VALUES (1, 'text')`, `INSERT INTO loose VALUES (1, 'text')`);
const holder = () => value('SELECT holder FROM interlock.row_lock_of($1, 1)', 'page');

test('one edits, others learn who; the save releases', async () => {
    await each(async ({ il }) => {
        await fill();
        const edit = await il.edit('page', 1, 'anna/1', { reason: 'a typo' });
        assert.deepEqual([edit.row.body, edit.version, edit.holder], ['text', edit.row.version, 'anna/1']);
        const error = await il.edit('page', 1, 'bert/1').catch((raised) => raised);
        assert.ok(error instanceof MarkerHeld);
        assert.deepEqual([error.status, error.holder], [423, 'anna/1']);
        assert.ok(error.expiresAt > new Date());
        const version = await edit.save({ body: 'better' });
        assert.deepEqual([await holder(), (await il.read('page', 1)).version], [null, version]);
        assert.equal(await edit.release(), false);
        assert.equal(await edit.touch(), false);
    });
});

test('a plain write by others raises MarkerHeld', async () => {
    await each(async ({ il, rows }) => {
        await fill();
        await il.edit('page', 1, 'anna/1');
        const error = await il.transaction((tx) => rows(tx, `UPDATE page SET body = 'imported'`)).catch((raised) => raised);
        assert.deepEqual([error instanceof MarkerHeld, error.holder], [true, 'anna/1']);
    });
});

test('a save from an older version is StaleVersion with the row of now, and the marker stays', async () => {
    await each(async ({ il }) => {
        await fill();
        const { version: before } = await il.read('page', 1);
        await il.save('page', 1, before, { body: 'by another' });
        const edit = await il.edit('page', 1, 'anna/1');
        const error = await edit.save({ body: 'mine' }, { expected: before }).catch((raised) => raised);
        assert.ok(error instanceof StaleVersion);
        assert.deepEqual([error.current.body, error.version, await holder()], ['by another', edit.version, 'anna/1']);
        await edit.save({ body: 'both' }, { expected: error.version });
        assert.equal((await il.read('page', 1)).row.body, 'both');
    });
});

test('closing it releases the row; a row that is none is NotFound', async () => {
    await each(async ({ il }) => {
        await fill();
        const edit = await il.edit('page', 1, 'anna/1');
        await edit[Symbol.asyncDispose]();
        assert.equal(await holder(), null);
        await assert.rejects(il.edit('page', 7, 'anna/1'), NotFound);
    });
});

test('activity prolongs it, without it the time runs out', async () => {
    await each(async ({ il }) => {
        await fill();
        const edit = await il.edit('page', 1, 'anna/1', { ttl: '2 s' });
        const first = edit.expiresAt;
        await eventually(async () => { assert.equal(await edit.touch(), true); return edit.expiresAt > first; });
        let lost = false;
        edit.on('lost', () => { lost = true; });
        await eventually(() => lost);
        assert.deepEqual([edit.signal.aborted, edit.signal.reason instanceof MarkerLost, await edit.touch()], [true, true, false]);
        await assert.rejects(edit.save({ body: 'late' }), MarkerLost);
    });
});

test('a row that another holder has taken: an event with the name, and nothing is written', async () => {
    await each(async ({ il }) => {
        await fill();
        const edit = await il.edit('page', 1, 'anna/1', { ttl: '10 min' });
        await admin.query(`SELECT interlock.force_unlock_row('page', 1, 'test')`);
        await il.edit('page', 1, 'bert/1');
        const taken = once(edit, 'taken');
        await assert.rejects(edit.save({ body: 'late' }), MarkerLost);
        assert.deepEqual(await taken, ['bert/1']);
        assert.equal((await il.read('page', 1)).row.body, 'text');
    });
});

test('autosave: saves while it stays open, at once and one after the other', async () => {
    await each(async ({ il }) => {
        await fill();
        const edit = await il.edit('page', 1, 'anna/1');
        const { version } = edit;
        const versions = await Promise.all(['a', 'ab', 'abc'].map((body) => edit.save({ body }, { keep: true })));
        assert.deepEqual([versions.map(Number), edit.version, await holder()], [[1, 2, 3].map((n) => Number(version) + n), versions[2], 'anna/1']);
        assert.equal((await il.read('page', 1)).row.body, 'abc');
        assert.equal(await edit.save({ body: 'done' }), (await il.read('page', 1)).version);
        assert.equal(await holder(), null);
        const late = await edit.save({ body: 'late' }, { keep: true }).catch((raised) => raised);
        assert.ok(late instanceof MarkerLost);
        assert.deepEqual([late.current.body, late.version], ['done', edit.version]);
    });
});

test('autosave after another writer: StaleVersion, and the marker stays', async () => {
    await each(async ({ il }) => {
        await fill();
        const edit = await il.edit('page', 1, 'anna/1');
        const raised = await edit.save({ body: 'mine' }, { keep: true, expected: Number(edit.version) - 1 }).catch((error) => error);
        assert.ok(raised instanceof StaleVersion);
        assert.deepEqual([raised.current.body, raised.version, await holder()], ['text', edit.version, 'anna/1']);
        await edit.save({ body: 'mine' }, { keep: true });
        await edit.release();
        assert.equal((await il.read('page', 1)).row.body, 'mine');
    });
});

test('a colleague takes over, with a reason; the former editor learns it, and saves nothing', async () => {
    await each(async ({ il }) => {
        await fill();
        const anna = await il.edit('page', 1, 'anna/1', { ttl: '10 min' });
        const refused = await il.edit('page', 1, 'bert/1', { takeOver: 'lunch' }).catch((raised) => raised);
        assert.ok(refused instanceof MarkerHeld);
        assert.deepEqual([refused.holder, refused.expiresAt > new Date(), await holder()], ['anna/1', true, 'anna/1']);
        assert.match(refused.hint, /enable_marker\(rel, take_over => 'allow'\)/);
        assert.equal((await il.edit('page', 1, 'bert/1').catch((raised) => raised)).hint, undefined);
        await run(`SELECT interlock.enable_marker('page', take_over => 'allow')`);
        try {
            const bert = await il.edit('page', 1, 'bert/1', { takeOver: 'lunch' });
            assert.deepEqual([bert.takenFrom, bert.row.body, anna.takenFrom], ['anna/1', 'text', null]);
            assert.equal(await value('SELECT reason FROM interlock.row_lock_of($1, 1)', 'page'), 'lunch');
            const taken = once(anna, 'taken');
            await assert.rejects(anna.save({ body: 'late' }), MarkerLost);
            assert.deepEqual(await taken, ['bert/1']);
            await bert.save({ body: 'by bert' });
            assert.equal((await il.read('page', 1)).row.body, 'by bert');
            const free = await il.edit('page', 1, 'carl/1', { takeOver: 'nobody is there' });
            assert.equal(free.takenFrom, null);
            await free.release();
            await assert.rejects(il.edit('page', 7, 'carl/1', { takeOver: 'x' }), NotFound);
        } finally {
            await run(`SELECT interlock.enable_marker('page', take_over => 'expired')`);
        }
    });
});

test('with notifications the former editor learns at once who has taken over, and others learn nothing', async () => {
    await run(`SELECT interlock.enable_marker('page', notify => 'on', take_over => 'allow')`);
    try {
        await each(async ({ il }) => {
            await fill();
            await run(`INSERT INTO page VALUES (2, 'text'), (3, 'text')`);
            const [anna, other] = [await il.edit('page', 1, 'anna/1', { ttl: '10 min' }), await il.edit('page', 2, 'carl/1', { ttl: '10 min' })];
            const taken = once(anna, 'taken');
            const listens = () => value(`SELECT count(*)::int FROM pg_stat_activity WHERE usename = 'app' AND query ILIKE 'listen%'`);
            await eventually(async () => await listens() === 1);
            const bert = await il.edit('page', 1, 'bert/1', { takeOver: 'lunch' });
            assert.deepEqual([await taken, anna.signal.aborted], [['bert/1'], true]);
            const forced = once(bert, 'lost');
            await value(`SELECT interlock.force_unlock_row('page', 1, 'test')`);
            await forced;
            const events = [];
            for (const event of ['lost', 'taken']) other.on(event, () => events.push(event));
            for (let n = 0; n < 20; n++) { // its own saves and releases are no loss
                const third = await il.edit('page', 3, 'dora/1');
                for (const event of ['lost', 'taken']) third.on(event, () => events.push(event));
                const saving = third.save({ body: String(n) });
                await value('SELECT interlock.lock_row($1, 1, $2), interlock.force_unlock_row($1, 1, $2)', 'page', 'test');
                await saving;
            }
            await other.save({ body: 'mine' });
            assert.deepEqual(events, []);
        });
    } finally {
        await run(`SELECT interlock.enable_marker('page', notify => 'off', take_over => 'expired')`);
    }
});

test('a row that cannot be read is not left locked', async () => {
    await each(async ({ il }) => {
        await run('CREATE TABLE IF NOT EXISTS two (a int, b int, PRIMARY KEY (a, b))', `SELECT interlock.enable_marker('two')`, 'INSERT INTO two VALUES (1, 1) ON CONFLICT DO NOTHING');
        await run('REVOKE SELECT ON two FROM app', 'GRANT SELECT (a, b, lock_status, lock_by, lock_time, lock_until, lock_reason) ON two TO app', 'ALTER TABLE two ADD COLUMN IF NOT EXISTS secret text');
        await assert.rejects(il.edit('two', { a: 1, b: 1 }, 'anna/1'), { code: '42501' });
        assert.equal(await value('SELECT lock_status FROM two'), 0);
    });
});

test('a table without versions', async () => {
    await one(async ({ il }) => {
        await fill();
        const edit = await il.edit('loose', 1, 'anna/1');
        assert.deepEqual([edit.version, edit.row.body], [null, 'text']);
        assert.equal(await edit.save({ body: 'kept' }, { keep: true }), null);
        assert.equal(await value(`SELECT holder FROM interlock.row_lock_of('loose', 1)`), 'anna/1');
        assert.equal(await edit.save({ body: 'new' }), null);
        assert.equal(await value('SELECT body FROM loose'), 'new');
    });
});
