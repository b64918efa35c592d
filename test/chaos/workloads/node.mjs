// The same work over clients/node: leases, once, edits, jobs and carts, all at the same time in one process.
// What it records is what client.py records.

import { appendFileSync, readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { interlock } from 'pg-interlock';

const [name, directory] = process.argv.slice(2);
const { begin, mistake, proxy } = JSON.parse(readFileSync(`${directory}/load.json`, 'utf8'));
const pool = new pg.Pool({ host: '127.0.0.1', port: proxy, user: 'postgres', database: 'postgres', max: 6, connectionTimeoutMillis: 5000, query_timeout: 8000 });
const il = interlock(pool, { name });

const now = () => Number(process.hrtime.bigint()) / 1e9;    // the clock of Python's time.monotonic()
const random = (n) => Math.floor(Math.random() * n);
const round = () => Math.floor((now() - begin) * 2) + 1;
const errs = (kind) => mistake === kind && Math.random() < 0.3;
let operations = 0;
const newName = () => `${name}.${++operations}`;

// A commit that is done on the primary, and perhaps not on the standby, is a warning, which is no promise.
let doubt = 0;
pool.on('error', () => {});
pool.on('connect', (client) => client.on('notice', ({ message }) => { if (message?.includes('synchronous replication')) doubt = now(); }));

function record(what, sent, answered, values) {
    if (answered !== null && doubt >= sent) answered = null;
    appendFileSync(`${directory}/records/${name}.json`, JSON.stringify({ do: what, sent, answered, ...values }) + '\n');
}

// Records what a promise has brought, and goes on with its error.
async function recorded(what, values, promise, sent = now()) {
    try {
        const result = await promise();
        record(what, sent, now(), values);
        return result;
    } catch (error) {
        record(what, sent, null, values);
        throw error;
    }
}

const effect = (tx, op, kind) => tx.query('INSERT INTO effect VALUES ($1, $2)', [op, kind]);

const works = {
    async lease() {
        const key = `job/${1 + random(4)}`, sent = now();
        await il.lease(key, { ttl: 3, wait: 1 }, async (lease) => {
            const values = { key, token: Number(lease.token) }, granted = now();
            record('acquire', sent, granted, { ...values, ttl: 0 });
            for (let n = random(8); n >= 0; n--) {
                const time = now();
                if (lease.signal.aborted) { if (!errs('no_assert')) return; } else record('hold', time, granted, values);
                await sleep(random(4) ? random(100) : random(3000));
                await write(lease, values);
            }
        });
    },

    async once() {
        const op = `node once ${round()}`;
        await recorded('once', { op }, () => il.once('node once', op, { op }, async (tx) => { await effect(tx, op, 'once'); return { op }; }));
    },

    async edit() {
        const key = 3 + random(2), holder = newName(), sent = now();
        const edit = await il.edit('page', key, holder, { ttl: 2 });
        record('mark', sent, now(), { key, token: holder, ttl: 2 });
        try {
            for (let n = random(3); n >= 0; n--) {
                const op = newName();
                await recorded('edit', { key, op }, () => edit.save({ body: op }, { keep: true }));
                await sleep(random(200));
            }
        } finally {
            record('unmark', now(), null, { key, token: holder });
            await edit.release();
        }
    },

    async job() {
        await il.claim('job', { order: 'id', concurrency: 2, ttl: 2, name, signal: AbortSignal.timeout(5000), onError: unlessPassing }, async ({ id }, job) => {
            await sleep(random(10) ? random(50) : random(3000));
            const op = `job ${id}`;
            await recorded('job', { key: id, op }, () => job.done((tx) => effect(tx, op, 'job')));
        });
    },

    async cart() {
        const op = newName(), cart = il.cart(op, 3);
        const items = [...new Set([1 + random(30), 1 + random(30)])].map((key) => ({ rel: 'item', key, column: 'stock', amount: 1 + random(3) }));
        await cart.add(...items);
        await sleep(random(5) ? random(200) : random(4000));
        if (random(4) === 0) return cart.cancel();
        const sold = random(2) ? cart.items : cart.items.slice(0, 1);
        await recorded('sell', { op }, () => cart.confirm(async (tx) => {
            await effect(tx, op, 'sell');
            for (const { key, amount } of sold) await tx.query('INSERT INTO sold VALUES ($1, $2, $3)', [op, key, amount]);
        }, { items: sold }));
    },
};

async function write(lease, { key, token }) {
    const op = newName();
    const change = async (tx) => {
        await tx.query(`WITH counted AS (UPDATE writes SET n = n + 1 WHERE key = $1 RETURNING n) INSERT INTO work SELECT $2, $1, n, $3 FROM counted`, [key, op, token]);
        await effect(tx, op, 'write');
    };
    await recorded('write', { key, token, op }, () => errs('no_assert') ? unasserted(change) : lease.transaction(change));
}

async function unasserted(change) {
    await sleep(random(6000));
    const client = await pool.connect();
    try {
        await client.query('BEGIN');
        await change(client);
        await client.query('COMMIT');
        client.release();
    } catch (error) {
        client.release(error);
        throw error;
    }
}

// An error of this program ends it. All others are what the faults bring.
function unlessPassing(error) {
    if (error instanceof TypeError || error instanceof ReferenceError || error instanceof RangeError || error.code?.startsWith('42')) {
        console.error(error);
        process.exit(1);
    }
}

for (const work of [works.lease, works.lease, works.once, works.edit, works.job, works.cart]) {
    (async () => {
        for (;;) {
            await work().catch(unlessPassing);
            await sleep(random(100));
        }
    })();
}
