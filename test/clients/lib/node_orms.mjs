// The ORMs of node_orms.mjs, which copies this file into its shop. Each has il, ask(tx, sql), pay(tx, customer), read(id),
// save(id, version, body), close().

import pg from 'pg';
import { interlock } from 'pg-interlock';

const versionDefault = `interlock.first_version('public.note_version_start'::text)`;
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
            version: { type: 'int', version: true, default: () => versionDefault } } });
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
            version: { type: 'integer', version: true, defaultRaw: versionDefault } } });
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
