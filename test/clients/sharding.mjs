// examples/sharding/shards.mjs: a client that computes the shard itself, on the package of clients/node. The shards are three
// databases, which have leases, locks and keys of their own.
// Prints TAP. Connects as the environment says (PGHOST, PGPORT, PGUSER, PGDATABASE).
//
// npm: typescript pg @types/node @aws-lambda-powertools/idempotency

import assert from 'node:assert/strict';
import { execFile, execFileSync } from 'node:child_process';
import { cpSync } from 'node:fs';
import { promisify } from 'node:util';
import pg from 'pg';
import { compile, install, pack } from './lib/package.mjs';
import { check, eventually } from './lib/page.mjs';

const example = `${process.env.ROOT}/examples/sharding`;
const shop = `${process.cwd()}/shop`;
compile();
install(pack().archive, shop);
cpSync(`${example}/shards.mjs`, `${shop}/shards.mjs`);
const { Shards, slotOf } = await import(`${shop}/shards.mjs`);

const names = ['shard1', 'shard2', 'shard3'];
const database = (name) => `sharding_${name}`;
const conninfo = (name) => `host=${process.env.PGHOST} port=${process.env.PGPORT} user=${process.env.PGUSER} dbname=${name}`;
const psql = (name, ...options) => execFileSync('psql', ['-qXAt', '-v', 'ON_ERROR_STOP=1', '-d', name, ...options], { encoding: 'utf8' }).trim();
const on = (name, sql) => psql(database(name), '-c', sql);
psql(process.env.PGDATABASE, '-f', `${example}/map.sql`);
const router = new pg.Pool();
for (const name of names) {
    execFileSync('createdb', [database(name)]);
    psql(database(name), '-f', `${example}/shard.sql`);
    await router.query('INSERT INTO shard VALUES ($1, $2)', [name, conninfo(database(name))]);
}
for (const [name, first, last] of [['shard1', 0, 127], ['shard2', 128, 255]]) {
    on(name, `SELECT set_slot(s, 'open') FROM generate_series(${first}, ${last}) s`);
    await router.query('SELECT assign_slots($1, $2, $3)', [first, last, name]);
}
const move = (slot, name) => promisify(execFile)(`${example}/move-slots.sh`, [conninfo(process.env.PGDATABASE), slot, slot, name]);
const shards = new Shards(router);
const add = (tenant, id) => shards.transaction(tenant, (tx) => tx.query('INSERT INTO invoice VALUES ($1, $2, 1)', [tenant, id]));

await check('SHD-2: the client computes the slot that the servers compute', async () => {
    for (const path of ['gale', 'gale/billing', 'acme', '', '/', 'Zoë/1', '日本', 'a b']) {
        const { rows: [{ slot }] } = await router.query('SELECT slot_of($1) AS slot', [path]);
        assert.equal(slotOf(path), slot, path);
    }
});
await check('SHD-2: a lease and the rows that it protects are on the shard of their tenant', async () => {
    await add('gale', 1);
    await add('acme', 1);
    assert.deepEqual(names.map((name) => on(name, 'SELECT tenant FROM invoice')), ['gale', 'acme', '']);
    await shards.lease('gale/billing', {}, async (lease, transaction) => {
        assert.deepEqual(names.map((name) => on(name, 'SELECT key FROM interlock.leases')), ['gale/billing', '', '']);
        await transaction((tx) => tx.query(`UPDATE invoice SET paid = true WHERE tenant = 'gale' AND id = 1`));
        await assert.rejects(shards.lease('gale/billing', {}, () => {}), { name: 'Held' });
    });
    assert.equal(on('shard1', 'SELECT paid FROM invoice'), 't');
});
await check('SHD-1: a slot moves when the holder has finished, and the next holder is on the new shard', async () => {
    let moving, next;
    await shards.lease('gale/billing', {}, async (lease, transaction) => {
        moving = move(44, 'shard3');
        await eventually(() => on('shard1', 'SELECT state FROM slot WHERE slot = 44') === 'draining');
        next = shards.lease('gale/other', {}, async (lease, transaction) => {
            // The script asks the old shard for a lease of a second.
            assert.deepEqual(names.map((name) => on(name, `SELECT key FROM interlock.leases WHERE key <> 'move-slots'`)), ['', '', 'gale/other']);
            await transaction((tx) => tx.query(`INSERT INTO invoice VALUES ('gale', 3, 1)`));
        });
        await transaction((tx) => tx.query(`INSERT INTO invoice VALUES ('gale', 2, 1)`));
        assert.deepEqual(on('shard3', 'SELECT count(*) FROM invoice'), '0');
    });
    await moving;
    await next;
    assert.deepEqual(names.map((name) => on(name, `SELECT string_agg(id::text, ' ' ORDER BY id) FROM invoice WHERE tenant = 'gale'`)), ['', '', '1 2 3']);
});
await check('SHD-1: nothing is lost or written twice while clients write and the slot moves back', async () => {
    let stop = false, inside = 0, written = 3, twice = 0;
    const workers = [1, 2, 3].map(async (worker) => {
        for (let n = 1; !stop; n++) {
            await shards.lease('gale/billing', { wait: '5 min' }, async (lease, transaction) => {
                if (inside++ > 0) twice++;
                await transaction((tx) => tx.query('INSERT INTO invoice VALUES ($1, $2, 1)', ['gale', worker * 1000000 + n]));
                written++;
                inside--;
            });
        }
    });
    await eventually(() => written > 20);
    await move(44, 'shard1');
    const before = written;
    await eventually(() => written > before + 20);
    stop = true;
    await Promise.all(workers);
    assert.equal(twice, 0);
    assert.deepEqual(names.map((name) => on(name, `SELECT count(*) FROM invoice WHERE tenant = 'gale'`)), [String(written), '0', '0']);
});
await shards.close();
await router.end();
console.log(`1..${check.count}`);
