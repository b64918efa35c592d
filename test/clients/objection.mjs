// What an application on Objection and Knex does, with the code of docs/clients/objection.md.
// Prints TAP. Connects as the environment says (PGHOST, PGPORT, PGUSER, PGDATABASE).
// only with --all

import createKnex from 'knex';
import pg from 'pg';
import assert from 'node:assert/strict';
import { callAll } from './lib/calls.mjs';
import { checkPage, codeOf, freshNotes, stored } from './lib/client.mjs';
import { check, load } from './lib/page.mjs';

const client = new pg.Client();
await client.connect();
const page = await load('clients/objection', client);
const { knex, Note, StaleError } = page;
const owner = createKnex({ ...knex.client.config, connection: { user: client.user }, pool: { min: 1, max: 1 } });
await client.query('ALTER TABLE note ALTER id RESTART WITH 100');

const blind = (call) => assert.rejects(async () => call, (error) => codeOf(error) === 'IL011');

await check('what names no version is refused, and what names an older one changes no row', async () => {
    await freshNotes(client);
    const note = await Note.query().findById(1);
    await blind(note.$query().patch({ body: 'mine' }));
    await blind(Note.query().findById(1).patch({ body: 'mine' }));
    await blind(Note.query().upsertGraph({ id: 1, body: 'mine' }));
    await blind(knex('note').where({ id: 1 }).update({ body: 'mine' }));
    await blind(knex('note').where({ id: 1 }).increment('hits'));
    const upsert = () => knex('note').insert({ id: 1, body: 'mine' }).onConflict('id').merge(['body']);
    await blind(upsert());
    assert.equal((await upsert().where('note.version', 7)).rowCount, 0);
    assert.equal(await Note.query().patch({ body: 'mine' }).where({ id: 1, version: 7 }), 0);
    assert.equal(await Note.query().delete().where({ id: 1, version: 7 }), 0);
    assert.deepEqual(await stored(client), { body: 'old', hits: 0, version: 1 });
    assert.equal(await Note.query().findById(1).increment('hits', 1).whereRaw('interlock.any_version(version)'), 1);
});
await check('save() of a stale object is the error of the page, which is one of Objection', async () => {
    await freshNotes(client);
    const [one, other] = [await Note.query().findById(1), await Note.query().findById(1)];
    await one.save({ body: 'first' });
    await assert.rejects(other.save({ body: 'second' }), (error) => error instanceof StaleError && error.statusCode === 404);
});
await check('the version in memory is that of the row, after inserts, a batch, saves and a rollback to a savepoint', async () => {
    const same = async ({ id, version }) => assert.equal(version, (await stored(client, id)).version);
    const notes = await Note.query().insert([{ body: 'a' }, { body: 'b' }]).returning('*');
    for (const note of notes) await same(note);
    for (const body of ['c', 'd']) {
        await notes[0].save({ body });
        await same(notes[0]);
    }
    await knex.transaction(async (transaction) => {
        await transaction.transaction(async (savepoint) => {
            await (await Note.query(savepoint).findById(notes[1].id)).save({ body: 'undone' }, savepoint);
            throw new Error('undo');
        }).catch((error) => assert.equal(error.message, 'undo'));
        await notes[1].save({ body: 'done' }, transaction);
    });
    await same(notes[1]);
});

await checkPage(page, client, [
    (id) => knex('plain_note').select('id', 'hits').where({ id }).first(),
    ({ id, hits }) => knex('plain_note').where({ id }).update({ hits: hits + 1 }),
]);
await check('what the page does under a lease', async () => {
    await freshNotes(client);
    await client.query(`UPDATE note SET body = '' WHERE id = 1 AND version = 1`);
    assert.equal((await page.tidy()).outcome, 'acquired');
    assert.deepEqual([await stored(client, 1), (await stored(client, 2)).body], [undefined, 'old']);
});
await check('alter() of the version column drops its default, and advise() finds that', async () => {
    const findings = async () => (await client.query(`SELECT finding FROM interlock.advise() WHERE rel = 'note'::regclass`)).rows.length;
    assert.equal(await findings(), 0);
    await owner.schema.alterTable('note', (table) => table.integer('version').notNullable().alter());
    assert.equal(await findings(), 1);
    await client.query(`SELECT interlock.enable_versioning('note', blind_updates => 'reject')`);
});

await callAll('objection', async (text, values) =>
    (await (values ? owner.raw(text.replaceAll('?', '\\?').replaceAll(/\$\d+/g, '?'), values) : owner.raw(text))).rows.map(Object.values));
await owner.destroy();

console.log(`1..${check.count}`);
await knex.destroy();
await client.end();
