// What an application on MikroORM does, with the code of docs/clients/mikroorm.md.
// Prints TAP. Connects as the environment says (PGHOST, PGPORT, PGUSER, PGDATABASE).
// npm: @mikro-orm/core@6.6.16 @mikro-orm/postgresql@6.6.16
// only with --all

import pg from 'pg';
import assert from 'node:assert/strict';
import { raw, MikroORM } from '@mikro-orm/postgresql';
import { callAll } from './lib/calls.mjs';
import { checkPage, codeOf, freshNotes, stored } from './lib/client.mjs';
import { check, load } from './lib/page.mjs';

const client = new pg.Client();
await client.connect();
const page = await load('clients/mikroorm', client);
const { orm, Note, StaleError } = page;
await client.query('ALTER TABLE note ALTER id RESTART WITH 100');

const blind = (call) => assert.rejects(async () => call, (error) => codeOf(error) === 'IL011');
const move = () => client.query(`UPDATE note SET body = 'of another writer' WHERE interlock.any_version(version)`);

await check('a flush of a stale entity is OptimisticLockError, also of several', async () => {
    for (const ids of [[1], [1, 2]]) {
        await freshNotes(client);
        const em = orm.em.fork();
        const notes = await em.find(Note, { id: ids });
        await move();
        for (const note of notes) note.body = 'mine';
        await assert.rejects(em.flush(), StaleError);
        assert.equal((await stored(client)).body, 'of another writer');
    }
});
await check('a batch does not compare in its statement', async () => {
    const batch = await MikroORM.init({ ...orm.config.getAll(), useBatchUpdates: true, contextName: 'batch' });
    await freshNotes(client);
    const em = batch.em.fork();
    for (const note of await em.find(Note, {})) note.body = 'mine';
    await blind(em.flush());
    await batch.close();
});
await check('what names no version is refused, and what names an older one changes no row', async () => {
    await freshNotes(client);
    const em = orm.em.fork();
    await blind(em.fork().nativeUpdate(Note, { id: 1 }, { body: 'mine' }));
    await blind(em.fork().upsert(Note, { id: 1, body: 'mine', hits: 1 }));
    em.remove(await em.findOne(Note, 1));
    await blind(em.flush());
    assert.equal(await em.fork().nativeUpdate(Note, { id: 1, version: 7 }, { body: 'mine' }), 0);
    assert.equal(await em.fork().nativeDelete(Note, { id: 1, version: 7 }), 0);
    assert.deepEqual(await stored(client), { body: 'old', hits: 0, version: 1 });
    assert.equal(await em.fork().nativeUpdate(Note, { id: 1, [raw('interlock.any_version(version)')]: true }, { hits: raw('hits + 1') }), 1);
});
await check('after assert_version a remove() passes, of a stale entity it does not', async () => {
    await freshNotes(client);
    const remove = (version) => page.mapped(() => orm.em.fork().transactional(async (em) => {
        await em.execute(`SELECT interlock.assert_version('note', 1, ?)`, [version]);
        em.remove(await em.findOne(Note, 1));
    }));
    await assert.rejects(remove(7), StaleError);
    await remove(1);
    assert.equal(await stored(client), undefined);
});
await check('the version in memory is that of the row, after inserts, a batch, flushes and a rollback to a savepoint', async () => {
    const same = async ({ id, version }) => assert.equal(version, (await stored(client, id)).version);
    const em = orm.em.fork();
    const notes = ['a', 'b'].map((body) => em.create(Note, { body }));
    await em.flush();
    for (const note of notes) await same(note);
    for (const body of ['c', 'd']) {
        for (const note of notes) note.body = body;
        await em.flush();
        for (const note of notes) await same(note);
    }
    const [{ id, version }] = notes;
    await orm.em.fork().transactional(async (outer) => {
        await outer.transactional(async (inner) => {
            (await inner.findOne(Note, id)).body = 'undone';
            await inner.flush();
            throw new Error('undo');
        }, { clear: true }).catch((error) => assert.equal(error.message, 'undo'));
        const note = await outer.refresh(await outer.findOne(Note, id));
        note.body = 'done';
        await outer.flush();
        assert.equal(note.version, version + 1);
    });
    assert.deepEqual(await stored(client, id), { body: 'done', hits: 0, version: version + 1 });
});

await checkPage(page, client, [
    async (id) => (await page.query('SELECT id, hits FROM plain_note WHERE id = $1', id))[0],
    ({ id, hits }) => page.query('UPDATE plain_note SET hits = $1 WHERE id = $2', hits + 1, id),
]);
await check('what the page does under a lease', async () => {
    await freshNotes(client);
    await client.query(`UPDATE note SET body = '' WHERE id = 1 AND version = 1`);
    assert.equal((await page.tidy()).outcome, 'acquired');
    assert.deepEqual([await stored(client, 1), (await stored(client, 2)).body], [undefined, 'old']);
});
const owner = await MikroORM.init({ ...orm.config.getAll(), user: client.user, pool: { min: 1, max: 1 }, contextName: 'owner' });
await check('the schema generator leaves the version column, and drops a history unless it is told not to', async () => {
    await client.query(`SELECT interlock.enable_history('note')`);
    const statements = (orm) => orm.schema.getUpdateSchemaSQL({ dropDb: false });
    const guarded = await statements(owner);
    assert.doesNotMatch(guarded, /note_history|interlock|alter table "note"/);
    const careless = await MikroORM.init({ ...owner.config.getAll(), schemaGenerator: {}, contextName: 'careless' });
    assert.match(await statements(careless), /drop table if exists "note_history"/);
    await careless.close();
});

const em = owner.em.fork();
await callAll('mikroorm', async (text, values) =>
    (await (values ? em.execute(text.replaceAll('?', '\\?').replaceAll(/\$\d+/g, '?'), values) : em.execute(text))).map(Object.values));
await owner.close();

console.log(`1..${check.count}`);
await orm.close();
await client.end();
