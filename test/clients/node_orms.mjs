// The package for Node.js on the transactions of TypeORM, Prisma, Drizzle and MikroORM, and saves by version in each of them.
// Prints TAP. Connects as the environment says (PGHOST, PGPORT, PGUSER, PGDATABASE).
//
// npm: @mikro-orm/core@6.6.16 @mikro-orm/postgresql@6.6.16 typescript pg reflect-metadata prisma @prisma/client
// npm: @prisma/adapter-pg drizzle-orm typeorm @types/node @types/pg @aws-lambda-powertools/idempotency
// only with --all

import pg from 'pg';
import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { cpSync, writeFileSync } from 'node:fs';
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
  version Int    @default(dbgenerated("interlock.first_version('public.note_version_start'::text)"))
}
model payment {
  id       Int    @id @default(autoincrement())
  customer String
}
`);
execFileSync('npx', ['prisma', 'generate', '--schema', 'shop/schema.prisma'],
    { env: { ...process.env, PRISMA_SCHEMA_ENGINE_BINARY: '/bin/true', CHECKPOINT_DISABLE: '1' }, stdio: ['ignore', 'ignore', 'inherit'] });

cpSync('lib/node_orms.mjs', `${shop}/orms.mjs`);
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

cpSync('lib/node_orms.mts', `${shop}/program.mts`);
await check('tsc --strict takes programs on them', () => {
    const options = '--strict --noEmit --skipLibCheck --target es2022 --lib es2023,esnext.disposable --module nodenext --types node';
    assert.equal(spawnSync('npx', ['tsc', ...options.split(' '), 'shop/program.mts'], { encoding: 'utf8' }).stdout, '');
});
await client.end();
console.log(`1..${check.count}`);
