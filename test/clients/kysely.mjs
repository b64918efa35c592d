// What an application on Kysely does, with the code of docs/clients/kysely.md.
// Prints TAP. Connects as the environment says (PGHOST, PGPORT, PGUSER, PGDATABASE).
// only with --all

import pg from 'pg';
import assert from 'node:assert/strict';
import { CompiledQuery, Kysely, PostgresDialect, sql } from 'kysely';
import { callAll } from './lib/calls.mjs';
import { checkPage, codeOf, freshNotes, stored } from './lib/client.mjs';
import { check, load } from './lib/page.mjs';

const client = new pg.Client();
await client.connect();
const page = await load('clients/kysely', client);
const { db } = page;
await client.query('ALTER TABLE note ALTER id RESTART WITH 100');

const blind = (statement) => assert.rejects(statement.execute(), (error) => codeOf(error) === 'IL011');

await check('what names no version is refused, and what names an older one changes no row', async () => {
    await freshNotes(client);
    const update = (set) => db.updateTable('note').set(set).where('id', '=', 1);
    await blind(update({ body: 'mine' }));
    await blind(db.deleteFrom('note').where('id', '=', 1));
    const upsert = (condition) => db.insertInto('note').values({ id: 1, body: 'mine' })
        .onConflict((oc) => condition(oc.column('id').doUpdateSet({ body: 'mine' })));
    await blind(upsert((oc) => oc));
    assert.deepEqual(await upsert((oc) => oc.where('note.version', '=', 7)).returningAll().execute(), []);
    assert.equal((await update({ body: 'mine' }).where('version', '=', 7).executeTakeFirst()).numUpdatedRows, 0n);
    assert.equal((await db.deleteFrom('note').where('id', '=', 1).where('version', '=', 7).executeTakeFirst()).numDeletedRows, 0n);
    assert.deepEqual(await stored(client), { body: 'old', hits: 0, version: 1 });
    const counted = await update({ hits: sql`hits + 1` }).where(sql`interlock.any_version(version)`).returning('version').execute();
    assert.equal(counted[0].version, 2);
});
await check('what returning() says is what is stored, after inserts, a batch, updates and a rollback to a savepoint', async () => {
    const same = async ({ id, version }) => assert.equal(version, (await stored(client, id)).version);
    const rows = await db.insertInto('note').values([{ body: 'a' }, { body: 'b' }]).returningAll().execute();
    for (const row of rows) await same(row);
    const save = (on, { id, version }, body) =>
        on.updateTable('note').set({ body }).where('id', '=', id).where('version', '=', version).returningAll().executeTakeFirst();
    await same(await save(db, rows[0], 'c'));
    const transaction = await db.startTransaction().execute();
    const savepoint = await transaction.savepoint('one').execute();
    assert.ok(await save(savepoint, rows[1], 'undone'));
    await savepoint.rollbackToSavepoint('one').execute();
    const saved = await save(transaction, rows[1], 'done');
    await transaction.commit().execute();
    await same(saved);
});

await checkPage(page, client, [
    (id) => db.selectFrom('plain_note').select(['id', 'hits']).where('id', '=', id).executeTakeFirst(),
    ({ id, hits }) => db.updateTable('plain_note').set({ hits: hits + 1 }).where('id', '=', id).execute(),
]);
await check('what the page does under a lease', async () => {
    await freshNotes(client);
    await client.query(`UPDATE note SET body = '' WHERE id = 1 AND version = 1`);
    assert.equal((await page.tidy()).outcome, 'acquired');
    assert.deepEqual([await stored(client, 1), (await stored(client, 2)).body], [undefined, 'old']);
});

const owner = new Kysely({ dialect: new PostgresDialect({ pool: new pg.Pool({ user: client.user }) }) });
await owner.connection().execute((single) => callAll('kysely', async (text, values) =>
    (await single.executeQuery(CompiledQuery.raw(text, values))).rows.map(Object.values)));

console.log(`1..${check.count}`);
await owner.destroy();
await db.destroy();
await client.end();
