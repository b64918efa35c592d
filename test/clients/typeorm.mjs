// TypeORM with the code of docs/clients/typeorm.md, and without its subscriber.
// Prints TAP. Connects as the environment says (PGHOST, PGPORT, PGUSER, PGDATABASE).
// npm: esbuild reflect-metadata typescript @types/node
// only with --all

import assert from 'node:assert/strict';
import pg from 'pg';
import { DataSource, EntitySchema } from 'typeorm';
import { callAll } from './lib/calls.mjs';
import { checkPage, codeOf, freshNotes } from './lib/client.mjs';
import { check, load, strictErrors, strictErrorsOf } from './lib/page.mjs';

const client = new pg.Client();
await client.connect();
const page = await load('clients/typeorm', client);
const { Draft, Note, VersionSubscriber } = page;
await page.source.initialize();
const stored = async () => (await client.query('SELECT body, version FROM note WHERE id = 1')).rows[0];

// From a row of version 1 each time.
const fresh = (name, body) => check(name, async () => {
    await client.query(`DELETE FROM note WHERE interlock.any_version(version); INSERT INTO note (id, body, version) VALUES (1, 'old', 1)`);
    await body();
});

const connect = (subscribers = [], more = {}) => new DataSource({
    type: 'postgres', database: process.env.PGDATABASE, entities: [Note], subscribers, ...more,
}).initialize();
const refused = (call, code) => assert.rejects(call, (error) => {
    assert.equal(codeOf(error), code, error);
    return true;
});

const owner = await connect([], { username: client.user, synchronize: true });
const sources = [owner, page.source, await connect(), await connect([VersionSubscriber])];
const [, , plain, guarded] = sources.map((source) => source.getRepository(Note));

await check('ORM-50: the code of the page passes tsc --strict', () => assert.equal(strictErrors('clients/typeorm'), ''));
await check('ORM-50: so does the call that leases.md documents', () => assert.equal(strictErrorsOf(`
    import { type Client, type Pool, listen, withLease } from './lease-heartbeat.mjs'
    export async function run(pool: Pool, connect: () => Client) {
        const listener = listen(connect)
        const stop = new AbortController()
        const { outcome, result } = await withLease(pool, 'report:daily', 30, async ({ token, signal }) => signal.aborted ? '' : token,
            { wait: 60, listener, signal: stop.signal, name: 'node 1' })
        await listener.close()
        return outcome === 'held' ? undefined : result?.length
    }`), ''));
await fresh('schema synchronization leaves an integer column and its default', async () => {
    const { rows: [{ type }] } = await client.query(
        `SELECT format_type(atttypid, atttypmod) AS type FROM pg_attribute WHERE attrelid = 'note'::regclass AND attname = 'version'`);
    assert.equal(type, 'integer');
    assert.deepEqual((await client.query(`SELECT finding FROM interlock.advise() WHERE severity = 'broken'`)).rows, []);
    assert.equal(typeof (await plain.findOneBy({ id: 1 })).version, 'number');
});

// What schema:log prints.
async function schemaChanges(entities) {
    const source = await connect([], { username: client.user, entities });
    const { upQueries } = await source.driver.createSchemaBuilder().log();
    await source.destroy();
    return upQueries.map(({ query }) => query);
}
await check('ORM-50: after enable_* the schema tool has nothing to change', async () => {
    assert.deepEqual(await schemaChanges([Note, Draft]), []);
    await client.query(`CREATE TABLE counted (id int PRIMARY KEY, stock int NOT NULL, state text NOT NULL, version int NOT NULL);
        SELECT interlock.enable_versioning('counted'), interlock.enable_escrow('counted', 'stock'),
            interlock.define_transitions('counted', 'state', '{"open": ["paid"]}'), interlock.own_columns('counted', 'w', '{state}')`);
    const columns = { id: { type: 'int', primary: true }, stock: { type: 'int' }, state: { type: 'text' },
        version: { type: 'int', version: true, default: () => `interlock.first_version('public.counted_version_start')` } };
    assert.deepEqual(await schemaChanges([new EntitySchema({ name: 'counted', columns })]), []);
});
await check('ORM-50: nor has it if it has made the table itself', async () => {
    await client.query('DROP TABLE draft, draft_history');
    const source = await connect([], { username: client.user, entities: [Draft], synchronize: true });
    await source.destroy();
    await client.query(`SELECT interlock.enable_versioning('draft'), interlock.enable_history('draft'), interlock.enable_marker('draft')`);
    assert.deepEqual(await schemaChanges([Draft]), []);
    assert.deepEqual((await client.query(`SELECT finding FROM interlock.advise() WHERE severity = 'broken'`)).rows, []);
});
await check('ORM-50: without the default, or the index, it drops them', async () => {
    const columns = { id: { type: 'int', primary: true }, body: { type: 'text' }, version: { type: 'int', version: true } };
    const changes = (await schemaChanges([new EntitySchema({ name: 'draft', columns })])).join(';');
    assert.match(changes, /DROP INDEX "public"."draft_interlock_sweep_idx"/);
    assert.match(changes, /ALTER COLUMN "version" DROP DEFAULT/);
    assert.match(changes, /DROP COLUMN "lock_status"/);
});
await check('ORM-50: the subscriber compares whatever table and key an entity has', async () => {
    await client.query(`CREATE SCHEMA "My shop"; GRANT USAGE ON SCHEMA "My shop" TO app;
        CREATE TABLE "My shop"."Line" ("Order" int, nr int, body text NOT NULL, rev int NOT NULL, PRIMARY KEY ("Order", nr));
        SELECT interlock.enable_versioning('"My shop"."Line"', 'rev');
        GRANT SELECT, INSERT, UPDATE, DELETE ON "My shop"."Line" TO app; INSERT INTO "My shop"."Line" VALUES (1, 2, 'old', 1)`);
    const columns = { order: { name: 'Order', type: 'int', primary: true }, nr: { type: 'int', primary: true }, body: { type: 'text' },
        version: { name: 'rev', type: 'int', version: true } };
    const Line = new EntitySchema({ name: 'Line', tableName: 'Line', schema: 'My shop', columns });
    const source = await connect([VersionSubscriber], { entities: [Line] });
    const lines = source.getRepository(Line);
    const [first, second] = await Promise.all([lines.findOneBy({ nr: 2 }), lines.findOneBy({ nr: 2 })]);
    await lines.save(Object.assign(first, { body: 'first' }));
    await refused(lines.save(Object.assign(second, { body: 'second' })), 'IL001');
    await lines.save(Object.assign(first, { body: 'again' }));
    await source.destroy();
});

// The row, soft-removed already for recover(), as it was before another writer changed it.
async function stale(repository, method) {
    if (method === 'recover') await client.query('UPDATE note SET deleted = now() WHERE id = 1');
    const note = await repository.findOne({ where: { id: 1 }, withDeleted: true });
    await client.query(`UPDATE note SET body = 'of another writer' WHERE id = 1`);
    if (method === 'save') note.body = 'mine';
    return note;
}

await fresh('without the subscriber, save() of a stale entity is IL001', async () => {
    await refused(plain.save(await stale(plain, 'save')), 'IL001');
});
for (const method of ['softRemove', 'recover', 'remove']) {
    await fresh(`${method}() of one succeeds`, async () => {
        const note = await stale(plain, method);
        const { version } = await stored();
        await plain[method](note);
        assert.notEqual((await stored())?.version, version);
    });
}
await fresh('and an object without a version overwrites', async () => {
    await client.query(`UPDATE note SET body = 'of another writer'`);
    await plain.save({ id: 1, body: 'mine' });
    assert.equal((await stored()).body, 'mine');
});

await fresh('with it, save() of an entity that is not stale moves the version', async () => {
    const note = await guarded.findOneBy({ id: 1 });
    await guarded.save(Object.assign(note, { body: 'mine' }));
    await guarded.save(Object.assign(note, { body: 'mine again' }));
    assert.deepEqual([note.version, await stored()], [3, { body: 'mine again', version: 3 }]);
});
await fresh('and softRemove(), recover(), remove() work', async () => {
    const note = await guarded.findOneBy({ id: 1 });
    await guarded.softRemove(note);
    await guarded.recover(note);
    assert.deepEqual([note.version, (await stored()).version], [3, 3]);
    await guarded.remove(note);
    assert.equal(await stored(), undefined);
});
for (const method of ['save', 'softRemove', 'recover', 'remove']) {
    await fresh(`${method}() of a stale entity is IL001`, async () => {
        const note = await stale(guarded, method);
        const before = await stored();
        await refused(guarded[method](note), 'IL001');
        assert.deepEqual(await stored(), before);
    });
}
await fresh('an object without a version is 22004', async () => {
    await refused(guarded.save({ id: 1, body: 'mine' }), '22004');
});
await fresh('new rows are inserted, and update() compares what it names', async () => {
    await guarded.save({ id: 2, body: 'new' });
    assert.equal((await guarded.update({ id: 2, version: 1 }, { body: 'changed' })).affected, 1);
    assert.equal((await guarded.update({ id: 2, version: 1 }, { body: 'stale' })).affected, 0);
});

// VER-1: eight workers with a connection each, first without the subscriber.
const careless = await Promise.all(Array.from({ length: 8 }, () => connect()));
const careful = await Promise.all(Array.from({ length: 8 }, () => connect([VersionSubscriber])));
sources.push(...careless, ...careful);
const notes = (workers) => workers.map((worker) => worker.getRepository(Note));
const codes = (results) => results.map(({ reason }) => reason ? codeOf(reason) ?? reason : 'saved').sort();

// All of them read the row before any of them saves it.
async function saveAll(workers, change) {
    const repositories = notes(workers);
    const read = await Promise.all(repositories.map((repository) => repository.findOneBy({ id: 1 })));
    return codes(await Promise.allSettled(repositories.map((repository, n) => repository.save(change(read[n], n)))));
}
const asForm = (note, n) => ({ id: note.id, body: `of ${n}` });
const asEntity = (note, n) => Object.assign(note, { body: `of ${n}` });

await fresh('eight saves of what all of them have read: seven are lost', async () => {
    assert.deepEqual(await saveAll(careless, asForm), Array(8).fill('saved'));
    assert.equal((await stored()).version, 9);
});
await client.query(`SELECT interlock.enable_versioning('note', blind_updates => 'reject')`);
await fresh('with blind updates refused none passes', async () => {
    assert.deepEqual(await saveAll(careless, asForm), Array(8).fill('IL011'));
    assert.deepEqual(await saveAll(careless, asEntity), Array(8).fill('IL011'));
    assert.deepEqual(await stored(), { body: 'old', version: 1 });
});
for (const method of ['softRemove', 'recover', 'remove']) {
    await fresh(`nor does ${method}()`, async () => {
        const note = await plain.findOneBy({ id: 1 });
        if (method === 'recover') await client.query('UPDATE note SET deleted = now() WHERE version = 1');
        await refused(plain[method](note), 'IL011');
    });
}
await fresh('and with the subscriber one passes', async () => {
    assert.deepEqual(await saveAll(careful, asEntity), [...Array(7).fill('IL001'), 'saved']);
});
await fresh('eight workers that save again after a conflict lose nothing', async () => {
    await client.query(`UPDATE note SET body = '0' WHERE version = 1`);
    let conflicts = 0;
    await Promise.all(notes(careful).map(async (repository) => {
        for (let saved = 0; saved < 8;) {
            const note = await repository.findOneBy({ id: 1 });
            try {
                await repository.save(Object.assign(note, { body: String(Number(note.body) + 1) }));
                saved++;
            } catch (error) {
                assert.equal(codeOf(error), 'IL001', error);
                conflicts++;
            }
        }
    }));
    assert.equal((await stored()).body, '64');
    console.log(`# ${conflicts} conflicts`);
});

await checkPage(page, client, [
    async (id) => (await page.query('SELECT id, hits FROM plain_note WHERE id = $1', id))[0],
    ({ id, hits }) => page.query('UPDATE plain_note SET hits = $1 WHERE id = $2', hits + 1, id),
]);
await check('what the page does under a lease', async () => {
    await freshNotes(client);
    await client.query(`UPDATE note SET body = '' WHERE id = 1 AND version = 1`);
    assert.equal((await page.tidy()).outcome, 'acquired');
    assert.equal(await stored(), undefined);
});
const runner = owner.createQueryRunner();
await callAll('typeorm', async (text, values) => (await runner.query(text, values, true)).records.map(Object.values));
await runner.release();

console.log(`1..${check.count}`);
for (const each of sources)
    await each.destroy();
await client.end();
