// A program on the four ORMs, for tsc --strict. node_orms.mjs compiles it.

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
