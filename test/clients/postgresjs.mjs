// What an application on postgres.js does, with the code of docs/clients/postgresjs.md.
// Prints TAP. Connects as the environment says (PGHOST, PGPORT, PGUSER, PGDATABASE).
// only with --all

import pg from 'pg';
import assert from 'node:assert/strict';
import postgres from 'postgres';
import { callAll } from './lib/calls.mjs';
import { checkPage, freshNotes, stored } from './lib/client.mjs';
import { check, load } from './lib/page.mjs';

const client = new pg.Client();
await client.connect();
const page = await load('clients/postgresjs', client);
const { sql } = page;

await checkPage(page, client, [
    async (id) => (await sql`SELECT id, hits FROM plain_note WHERE id = ${id}`)[0],
    ({ id, hits }) => sql`UPDATE plain_note SET hits = ${hits + 1} WHERE id = ${id}`,
]);
await check('what the page does under a lease', async () => {
    await freshNotes(client);
    await client.query(`UPDATE note SET body = '' WHERE id = 1 AND version = 1`);
    assert.equal((await page.tidy()).outcome, 'acquired');
    assert.deepEqual([await stored(client, 1), (await stored(client, 2)).body], [undefined, 'old']);
});

const owner = postgres({ user: client.user, max: 1, onnotice: () => {} });
await callAll('postgresjs', (text, values) => owner.unsafe(text, values).values());
await owner.end();

console.log(`1..${check.count}`);
await sql.end({ timeout: 1 });
await client.end();
