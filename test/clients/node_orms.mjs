// The package for Node.js on the transactions of TypeORM, Prisma, Drizzle and MikroORM, and saves by version in each of them.
// Prints TAP. Connects as the environment says (PGHOST, PGPORT, PGUSER, PGDATABASE).
//
// npm: @mikro-orm/core@6.6.16 @mikro-orm/postgresql@6.6.16 typescript pg reflect-metadata prisma @prisma/client
// npm: @prisma/adapter-pg drizzle-orm typeorm @types/node @types/pg @aws-lambda-powertools/idempotency
// only with --all

import pg from 'pg';
import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { compile, install, pack } from './lib/package.mjs';
import { check } from './lib/page.mjs';

const shop = `${process.cwd()}/shop`;
compile();
install(pack().archive, shop);
const client = new pg.Client();
await client.connect();
await client.query(`
    CREATE TABLE note (id int PRIMARY KEY, body text NOT NULL, version int NOT NULL);
    SELECT interlock.enable_versioning('note', blind_updates => 'reject');
    CREATE TABLE payment (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, customer text NOT NULL CHECK (customer <> 'nobody'));
    SELECT interlock.define_idempotency_scope('pay');
    SELECT interlock.grant_idempotency_scope('pay', 'app');
    GRANT SELECT, INSERT, UPDATE, DELETE ON note, payment TO app`);
const value = async (sql, ...values) => Object.values((await client.query(sql, values)).rows[0])[0];
const payments = () => value('SELECT count(*)::int FROM payment');
const versionDefault = `interlock.first_version('public.note_version_start'::text)`;

writeFileSync(`${shop}/schema.prisma`, `
datasource db {
  provider = "postgresql"
}
generator client {
  provider = "prisma-client-js"
}
model note {
  id      Int    @id
  body    String
  version Int    @default(dbgenerated("${versionDefault}"))
}
model payment {
  id       Int    @id @default(autoincrement())
  customer String
}
`);
execFileSync('npx', ['prisma', 'generate', '--schema', 'shop/schema.prisma'],
    { env: { ...process.env, PRISMA_SCHEMA_ENGINE_BINARY: '/bin/true', CHECKPOINT_DISABLE: '1' }, stdio: ['ignore', 'ignore', 'inherit'] });

// The same for each ORM: il, ask(tx, sql), pay(tx, customer), read(id), save(id, version, body), close().
writeFileSync(`${shop}/orms.mjs`, `
import pg from 'pg';
import { interlock } from 'pg-interlock';
const make = (adapter) => {
    const own = new pg.Pool();
    own.on('error', console.error);
    const il = interlock(adapter, { own });
    return { il, end: async () => { await il.close(); await own.end(); } };
};

export const orms = {
    async typeorm() {
        const { DataSource, EntitySchema } = await import('typeorm');
        const { ofTypeorm, versionSubscriber } = await import('pg-interlock/typeorm');
        const Note = new EntitySchema({ name: 'note', columns: { id: { type: 'int', primary: true }, body: { type: 'text' },
            version: { type: 'int', version: true, default: () => "${versionDefault}" } } });
        const Payment = new EntitySchema({ name: 'payment', columns: { id: { type: 'int', primary: true, generated: 'identity', generatedIdentity: 'ALWAYS' }, customer: { type: 'text' } } });
        const source = await new DataSource({ type: 'postgres', host: process.env.PGHOST, username: process.env.PGUSER, database: process.env.PGDATABASE, entities: [Note, Payment] }).initialize();
        source.subscribers.push(versionSubscriber);
        const { il, end } = make(ofTypeorm(source));
        const notes = source.getRepository(Note);
        return {
            il, ask: async (em, sql) => (await em.query(sql))[0], pay: (em, customer) => em.getRepository(Payment).insert({ customer }), read: (id) => notes.findOneByOrFail({ id }),
            save: (id, version, body) => notes.save({ id, version, body }), close: async () => { await end(); await source.destroy(); },
        };
    },
    async prisma() {
        const { default: { PrismaClient } } = await import('@prisma/client');
        const { PrismaPg } = await import('@prisma/adapter-pg');
        const { ofPrisma, versions } = await import('pg-interlock/prisma');
        const plain = new PrismaClient({ adapter: new PrismaPg({}) });
        const prisma = plain.$extends(versions());
        const { il, end } = make(ofPrisma(prisma, { timeout: 60_000 }));
        return {
            il, ask: async (tx, sql) => (await tx.$queryRawUnsafe(sql))[0], pay: (tx, customer) => tx.payment.create({ data: { customer } }), read: (id) => prisma.note.findUniqueOrThrow({ where: { id } }),
            save: (id, version, body) => prisma.note.saveVersion({ where: { id }, version, data: { body } }), close: async () => { await end(); await plain.$disconnect(); },
            blind: (id) => prisma.note.update({ where: { id }, data: { body: 'blind' } }),
        };
    },
    async drizzle() {
        const { eq, sql } = await import('drizzle-orm');
        const { drizzle } = await import('drizzle-orm/node-postgres');
        const { integer, pgTable, text } = await import('drizzle-orm/pg-core');
        const { ofDrizzle, saveVersion } = await import('pg-interlock/drizzle');
        const note = pgTable('note', { id: integer().primaryKey(), body: text().notNull(), version: integer().notNull() });
        const payment = pgTable('payment', { id: integer().primaryKey().generatedAlwaysAsIdentity(), customer: text().notNull() });
        const pool = new pg.Pool();
        const db = drizzle({ client: pool });
        const { il, end } = make(ofDrizzle(db));
        return {
            il, ask: async (tx, text) => (await tx.execute(sql.raw(text))).rows[0], pay: (tx, customer) => tx.insert(payment).values({ customer }), read: async (id) => (await db.select().from(note).where(eq(note.id, id)))[0],
            save: (id, version, body) => saveVersion(db, note, eq(note.id, id), version, { body }), close: async () => { await end(); await pool.end(); },
        };
    },
    async mikro() {
        const { EntitySchema, MikroORM } = await import('@mikro-orm/postgresql');
        const { ofMikroOrm, saveVersion } = await import('pg-interlock/mikro-orm');
        const Note = new EntitySchema({ name: 'Note', tableName: 'note', properties: { id: { type: 'integer', primary: true }, body: { type: 'text' },
            version: { type: 'integer', version: true, defaultRaw: "${versionDefault}" } } });
        const Payment = new EntitySchema({ name: 'Payment', tableName: 'payment', properties: { id: { type: 'integer', primary: true, generated: 'always as identity' }, customer: { type: 'text' } } });
        const orm = await MikroORM.init({ entities: [Note, Payment], dbName: process.env.PGDATABASE, host: process.env.PGHOST, user: process.env.PGUSER, useBatchUpdates: false });
        const { il, end } = make(ofMikroOrm(orm.em));
        return {
            il, ask: async (em, sql) => (await em.execute(sql))[0], pay: async (em, customer) => { em.create(Payment, { customer }); }, read: (id) => orm.em.fork().findOneOrFail(Note, id),
            save: async (id, version, body) => { const em = orm.em.fork(); return saveVersion(em, await em.findOneOrFail(Note, id), version, { body }); },
            close: async () => { await end(); await orm.close(); },
        };
    },
};
`);
process.env.PGUSER = 'app';
const { orms } = await import(`${shop}/orms.mjs`);
const { LeaseLost, NotFound, StaleVersion } = await import(`${shop}/node_modules/pg-interlock/dist/index.mjs`);

for (const [orm, connect] of Object.entries(orms)) {
    await client.query(`TRUNCATE payment RESTART IDENTITY; DELETE FROM note WHERE interlock.any_version(version); INSERT INTO note (id, body) VALUES (1, 'old')`);
    const { il, ask, pay, read, save, blind, close } = await connect();
    await check(`${orm}: what a transaction under a lease writes is written by its holder, or not at all`, async () => {
        const level = await il.lease('orm', { ttl: '10 min' }, (lease) => lease.transaction(async (tx) => {
            await pay(tx, 'under the lease');
            return ask(tx, 'SHOW transaction_isolation');
        }, { isolation: 'repeatable read' }));
        assert.deepEqual([level.transaction_isolation, await payments()], ['repeatable read', 1]);
        await assert.rejects(il.lease('orm', { ttl: '10 min' }, async (lease) => {
            await client.query(`SELECT interlock.break_lease('orm', 'test')`);
            await lease.transaction((tx) => pay(tx, 'stale'));
        }), LeaseLost);
        assert.equal(await payments(), 1);
    });
    await check(`${orm}: an effect once, with its value; one that throws leaves nothing`, async () => {
        const once = () => il.once('pay', [orm, 17], { amount: 5 }, async (tx) => { await pay(tx, 'anna'); return { charged: 5 }; });
        assert.deepEqual([await once(), await once(), await payments()], [{ outcome: 'completed', value: { charged: 5 } }, { outcome: 'replay', value: { charged: 5 } }, 2]);
        await assert.rejects(il.once('pay', [orm, 18], null, async (tx) => { await pay(tx, 'bert'); throw new RangeError('of the work'); }), RangeError);
        assert.equal(await payments(), 2);
    });
    await check(`${orm}: an error that the work has swallowed is an error of the transaction`, async () => {
        await assert.rejects(il.transaction(async (tx) => {
            await pay(tx, 'lost');
            await (async () => pay(tx, 'nobody'))().catch(() => {});
            if (orm === 'mikro') await tx.flush().catch(() => {});
        }));
        assert.equal(await payments(), 2);
    });
    await check(`${orm}: rows by their versions`, async () => {
        const { row, version } = await il.read('note', { id: 1 });
        assert.equal(row.body, 'old');
        const next = await il.save('note', 1, version, { body: 'by a function' });
        const error = await il.save('note', 1, version, { body: 'stale' }).catch((raised) => raised);
        assert.ok(error instanceof StaleVersion);
        assert.deepEqual([error.current.body, error.version], ['by a function', next]);
        await assert.rejects(il.read('note', 7), NotFound);
    });
    await check(`${orm}: a save by the ORM compares the version that was read`, async () => {
        const { version } = await read(1);
        await save(1, version, 'first');
        const error = await save(1, version, 'second').catch((raised) => raised);
        assert.ok(error instanceof StaleVersion, error);
        if (error.current) assert.deepEqual([error.current.body, error.version], ['first', String((await read(1)).version)]);
        for (const none of [undefined, null]) await assert.rejects(async () => save(1, none, 'blind'), TypeError);
        assert.equal((await read(1)).body, 'first');
        await save(1, (await read(1)).version, 'third');
        assert.equal((await read(1)).body, 'third');
        if (blind) await assert.rejects(async () => blind(1), { name: 'BlindUpdate' });
    });
    await close();
}

await check('an ORM without a pool for our own connections is refused', async () => {
    const { interlock } = await import(`${shop}/node_modules/pg-interlock/dist/index.mjs`);
    assert.throws(() => interlock({ adapter: {} }), TypeError);
});

writeFileSync(`${shop}/program.mts`, `
import pg from 'pg';
import { DataSource } from 'typeorm';
import { PrismaClient } from '@prisma/client';
import { PrismaPg } from '@prisma/adapter-pg';
import { eq } from 'drizzle-orm';
import { drizzle } from 'drizzle-orm/node-postgres';
import { integer, pgTable, text } from 'drizzle-orm/pg-core';
import { MikroORM } from '@mikro-orm/postgresql';
import { interlock } from 'pg-interlock';
import { ofDrizzle, saveVersion } from 'pg-interlock/drizzle';
import { ofMikroOrm } from 'pg-interlock/mikro-orm';
import { ofPrisma, versions } from 'pg-interlock/prisma';
import { ofTypeorm, versionSubscriber } from 'pg-interlock/typeorm';

const own = new pg.Pool();
const source = new DataSource({ type: 'postgres' });
source.subscribers.push(versionSubscriber);
await interlock(ofTypeorm(source), { own }).transaction(async (em) => { await em.query('SELECT 1'); em.getRepository('note'); });
const prisma = new PrismaClient({ adapter: new PrismaPg({}) }).$extends(versions());
await interlock(ofPrisma(prisma), { own }).transaction(async (tx) => { await tx.note.findMany(); });
const saved = await prisma.note.saveVersion({ where: { id: 1 }, version: 7, data: { body: 'x' } });
void saved;
const note = pgTable('note', { id: integer().primaryKey(), body: text(), version: integer().notNull() });
const db = drizzle({ client: own });
await interlock(ofDrizzle(db), { own }).transaction(async (tx) => { await tx.select().from(note); });
await saveVersion<typeof note.$inferSelect>(db, note, eq(note.id, 1), 7, { body: 'x' });
const orm = await MikroORM.init({});
await interlock(ofMikroOrm(orm.em), { own }).transaction(async (em) => { await em.flush(); });
// @ts-expect-error a pool for our own connections is required
interlock(ofDrizzle(db));
`);
await check('tsc --strict takes programs on them', () => {
    const options = '--strict --noEmit --skipLibCheck --target es2022 --lib es2023,esnext.disposable --module nodenext --types node';
    assert.equal(spawnSync('npx', ['tsc', ...options.split(' '), 'shop/program.mts'], { encoding: 'utf8' }).stdout, '');
});
await client.end();
console.log(`1..${check.count}`);
