// Three processes that add to a counter, under one lease. lost.test.mjs runs it.

import cluster from 'node:cluster';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { interlock } from 'pg-interlock';
import { drivers, sleep } from './shop.mjs';

const key = process.argv[2];
if (cluster.isPrimary) {
    cluster.setupPrimary({ exec: fileURLToPath(import.meta.url) });
    const workers = [1, 2, 3].map(() => cluster.fork());
    const codes = await Promise.all(workers.map(async (worker) => (await once(worker, 'exit'))[0]));
    process.exit(Math.max(...codes));
}
const { pool: make, rows } = drivers.pg;
const pool = make();
const il = interlock(pool);
for (let n = 0; n < 10; n++) {
    await il.lease(key, { ttl: '10 min', wait: '10 min' }, async (lease) => {
        const { rows: [counter] } = await pool.query('SELECT n FROM counter');
        await sleep(5);
        await lease.transaction((tx) => rows(tx, 'UPDATE counter SET n = $1', counter.n + 1));
        if (n === 0) await pool.query('INSERT INTO effect VALUES ($1)', [`${process.pid} cluster`]);
    });
}
await il.close();
await pool.end();
process.disconnect();
