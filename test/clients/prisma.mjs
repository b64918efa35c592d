// What an application on Prisma does, with the code of docs/clients/prisma.md.
// Prints TAP. Connects as the environment says (PGHOST, PGPORT, PGUSER, PGDATABASE).
// npm: prisma
// only with --all

import pg from 'pg';
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { callAll, calls } from './lib/calls.mjs';
import { checkPage, codeOf, freshNotes, stored } from './lib/client.mjs';
import { blocks, check, load } from './lib/page.mjs';

// The client runs without a program of its own, and so does the generator: any path keeps it from downloading one.
writeFileSync('schema.prisma', blocks('clients/prisma', 'prisma').join('\n'));
execFileSync('npx', ['prisma', 'generate', '--schema', 'schema.prisma'],
    { env: { ...process.env, PRISMA_SCHEMA_ENGINE_BINARY: '/bin/true', CHECKPOINT_DISABLE: '1' }, stdio: ['ignore', 'ignore', 'inherit'] });

const client = new pg.Client();
await client.connect();
const page = await load('clients/prisma', client);
const { prisma, StaleError } = page;
await client.query('ALTER TABLE note ALTER id RESTART WITH 100');

const blind = (call) => assert.rejects(async () => call, (error) => codeOf(error) === 'IL011');

await check('what names no version is refused, and what names an older one changes no row', async () => {
    await freshNotes(client);
    const [where, data] = [{ id: 1 }, { body: 'mine' }];
    await blind(prisma.note.update({ where, data }));
    await blind(prisma.note.update({ where, data: { hits: { increment: 1 } } }));
    await blind(prisma.note.updateMany({ where, data }));
    await blind(prisma.note.delete({ where }));
    await blind(prisma.note.update({ where: { id: 1, version: undefined }, data }));
    await blind(prisma.note.upsert({ where, update: data, create: { id: 1, body: 'mine' } }));
    const old = { id: 1, version: 7 };
    await assert.rejects(prisma.note.update({ where: old, data }), { code: 'P2025' });
    await assert.rejects(prisma.note.delete({ where: old }), { code: 'P2025' });
    assert.equal((await prisma.note.updateMany({ where: old, data })).count, 0);
    assert.equal((await prisma.note.deleteMany({ where: old })).count, 0);
    assert.deepEqual(await stored(client), { body: 'old', hits: 0, version: 1 });
    assert.equal(await prisma.$executeRaw`UPDATE note SET hits = hits + 1 WHERE id = ${1} AND interlock.any_version(version)`, 1);
});
await check('an upsert of a stale version inserts another row', async () => {
    await freshNotes(client);
    const note = await prisma.note.upsert({ where: { id: 1, version: 7 }, update: { body: 'mine' }, create: { body: 'mine' } });
    assert.ok(note.id > 2);
    assert.deepEqual(await stored(client), { body: 'old', hits: 0, version: 1 });
});
await check('the hint of an error is in its cause', () => assert.rejects(async () => prisma.note.delete({ where: { id: 1 } }),
    ({ meta }) => /any_version/.test(meta.driverAdapterError.cause.hint)));
await check('a transaction goes on after P2025, and not after an error of the server', async () => {
    await freshNotes(client);
    await prisma.$transaction(async (tx) => {
        await assert.rejects(tx.note.update({ where: { id: 1, version: 7 }, data: { hits: 1 } }), { code: 'P2025' });
        await tx.note.update({ where: { id: 1, version: 1 }, data: { hits: 1 } });
    });
    assert.equal((await stored(client)).hits, 1);
    await assert.rejects(prisma.$transaction(async (tx) => {
        await assert.rejects(tx.note.update({ where: { id: 1 }, data: { hits: 2 } }));
        await tx.note.update({ where: { id: 1, version: 2 }, data: { hits: 2 } });
    }), (error) => codeOf(error) === '25P02');
});
await check('ORM-51: a view with types that Prisma does not know is P2010, and each view can be read as JSON', async () => {
    await client.query(`CREATE TABLE viewed (id int PRIMARY KEY, state text NOT NULL DEFAULT 'open');
        SELECT interlock.define_transitions('viewed', 'state', '{"open": ["paid"]}'), interlock.enable_marker('viewed');
        INSERT INTO viewed VALUES (1); SELECT interlock.lock_row('viewed', 1, 'anna'), interlock.acquire_lease('viewed', '1 hour')`);
    for (const view of ['transitions', 'row_locks', 'leases'])
        await assert.rejects(page.query(`SELECT * FROM interlock.${view}`), { code: 'P2010' });
    const { rows } = await client.query(`SELECT relname AS view FROM pg_class WHERE relkind = 'v' AND relnamespace = 'interlock'::regnamespace AND has_table_privilege('app', oid, 'SELECT')`);
    for (const { view } of rows) await page.query(`SELECT to_jsonb(v) AS row FROM interlock.${view} v`);
    const [{ lease }] = await page.query(`SELECT to_jsonb(l) AS lease FROM interlock.leases l WHERE key = 'viewed'`);
    assert.equal(lease.key, 'viewed');
    assert.equal((await page.query('SELECT rel::text AS rel FROM interlock.transitions'))[0].rel, 'viewed');
    await client.query(`SELECT interlock.break_lease('viewed', 'test'); DROP TABLE viewed`);
});
await check('a row that is gone is tried once, where the work reads it', async () => {
    let tries = 0;
    await assert.rejects(page.retry(() => prisma.note.findUniqueOrThrow({ where: { id: 0 } }).finally(() => tries++)), { code: 'P2025' });
    assert.equal(tries, 1);
});
await check('a Date is a version in a column of milliseconds, not of microseconds', async () => {
    const outcome = async (type) => {
        await client.query(`CREATE TABLE stamped (id int PRIMARY KEY, changed ${type} NOT NULL DEFAULT '2024-02-29 12:34:56.789123');
            SELECT interlock.enable_versioning('stamped', 'changed'); INSERT INTO stamped VALUES (1)`);
        const outcomes = [];
        for (let n = 0; n < 3; n++) {
            const { changed } = (await prisma.$queryRaw`SELECT changed FROM stamped`)[0];
            const sql = `SELECT outcome FROM interlock.try_versioned_update('stamped', 1, $1, '{}')`;
            outcomes.push((await page.query(sql, changed))[0].outcome);
        }
        await client.query('DROP TABLE stamped');
        return outcomes;
    };
    assert.deepEqual(await outcome('timestamp(3)'), ['updated', 'updated', 'updated']);
    assert.deepEqual(await outcome('timestamptz'), ['conflict', 'conflict', 'conflict']);
});
await check('the version of a result is that of the row, after create, createMany and updates', async () => {
    const same = async ({ id, version }) => assert.equal(version, (await stored(client, id)).version);
    const note = await prisma.note.create({ data: { body: 'a' } });
    await same(note);
    for (const each of await prisma.note.createManyAndReturn({ data: [{ body: 'b' }, { body: 'c' }] })) await same(each);
    await same(await prisma.note.update({ where: { id: note.id, version: note.version }, data: { body: 'd' } }));
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

const { PrismaClient } = await import('@prisma/client');
const { PrismaPg } = await import('@prisma/adapter-pg');
const owner = new PrismaClient({ adapter: new PrismaPg({ user: client.user, max: 1 }) });
// What returns nothing, which has the type void, is executed.
const read = new Set(calls.flatMap((call) => [
    ...call.answer ? [call.sql, call.drivers?.prisma?.sql] : [], ...call.arguments.map((argument) => argument?.$query)]));
await callAll('prisma', async (text, values = []) =>
    read.has(text) ? (await owner.$queryRawUnsafe(text, ...values)).map(Object.values) : (await owner.$executeRawUnsafe(text, ...values), []));
await owner.$disconnect();

console.log(`1..${check.count}`);
await prisma.$disconnect();
await client.end();
