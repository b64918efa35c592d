// What an application on Drizzle does, with the code of docs/clients/drizzle.md.
// Prints TAP. Connects as the environment says (PGHOST, PGPORT, PGUSER, PGDATABASE).
// only with --all

import pg from 'pg';
import assert from 'node:assert/strict';
import { pushSchema } from 'drizzle-kit/api';
import { and, eq, sql } from 'drizzle-orm';
import { drizzle } from 'drizzle-orm/node-postgres';
import { integer, pgTable, text } from 'drizzle-orm/pg-core';
import { callAll } from './lib/calls.mjs';
import { checkPage, codeOf, freshNotes, stored } from './lib/client.mjs';
import { check, load } from './lib/page.mjs';

const client = new pg.Client();
await client.connect();
const page = await load('clients/drizzle', client);
const { db, note } = page;
await client.query('ALTER TABLE note ALTER id RESTART WITH 100');

const blind = (call) => assert.rejects(async () => call, (error) => codeOf(error) === 'IL011');

await check('what names no version is refused, and what names an older one changes no row', async () => {
    await freshNotes(client);
    await blind(db.update(note).set({ body: 'mine' }).where(eq(note.id, 1)));
    await blind(db.delete(note).where(eq(note.id, 1)));
    const upsert = (options) => db.insert(note).values({ id: 1, body: 'mine' })
        .onConflictDoUpdate({ target: note.id, set: { body: 'mine' }, ...options }).returning();
    await blind(upsert());
    assert.deepEqual(await upsert({ setWhere: eq(note.version, 7) }), []);
    assert.equal((await db.delete(note).where(and(eq(note.id, 1), eq(note.version, 7)))).rowCount, 0);
    assert.deepEqual(await stored(client), { body: 'old', hits: 0, version: 1 });
    const counted = await db.update(note).set({ hits: sql`${note.hits} + 1` })
        .where(and(eq(note.id, 1), sql`interlock.any_version(${note.version})`)).returning();
    assert.equal(counted[0].version, 2);
});
await check('what returning() says is what is stored, after inserts, a batch, updates and a rollback to a savepoint', async () => {
    const same = async ({ id, version }) => assert.equal(version, (await stored(client, id)).version);
    const rows = await db.insert(note).values([{ body: 'a' }, { body: 'b' }]).returning();
    for (const row of rows) await same(row);
    await same((await db.update(note).set({ body: 'c' }).where(and(eq(note.id, rows[0].id), eq(note.version, rows[0].version))).returning())[0]);
    const save = (tx, version, body) =>
        tx.update(note).set({ body }).where(and(eq(note.id, rows[1].id), eq(note.version, version))).returning();
    await same(await db.transaction(async (tx) => {
        await tx.transaction(async (savepoint) => {
            assert.equal((await save(savepoint, rows[1].version, 'undone')).length, 1);
            savepoint.rollback();
        }).catch(() => {});
        return (await save(tx, rows[1].version, 'done'))[0];
    }));
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

const owner = drizzle({ client });
const push = async (schema) => (await pushSchema({ ...schema, payment: page.payment }, owner, ['public'], ['note', 'payment'])).statementsToExecute;
await check('drizzle-kit push leaves the table with the default of the page, and drops the default without', async () => {
    assert.deepEqual(await push({ note }), []);
    const plain = pgTable('note', {
        id: integer().primaryKey().generatedByDefaultAsIdentity(), body: text().notNull(),
        hits: integer().notNull().default(0), version: integer().notNull(),
    });
    assert.match((await push({ note: plain })).join(), /"version" DROP DEFAULT/);
});
await check('beside a history it wants to drop a sequence, which the server refuses', async () => {
    await client.query(`SELECT interlock.enable_history('note')`);
    const statements = await push({ note });
    assert.deepEqual(statements, ['DROP SEQUENCE "public"."note_history_id_seq";']);
    await assert.rejects(client.query(statements[0]), { code: '2BP01' });
});
await page.pool.end();

// The text of a call as a template of Drizzle.
const template = (text, values = []) => sql.join(text.split(/\$\d+/).flatMap((part, n) =>
    [sql.raw(part), ...n < values.length ? [Array.isArray(values[n]) ? sql.param(values[n]) : sql`${values[n]}`] : []]));
await callAll('drizzle', async (text, values) =>
    (await owner.execute(values ? template(text, values) : sql.raw(text))).rows.map(Object.values));

console.log(`1..${check.count}`);
await client.end();
