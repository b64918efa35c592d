// A program that holds a lease, and writes under it when it is told to. lost.test.mjs stops it in between.

import { once } from 'node:events';
import { interlock } from 'pg-interlock';
import { drivers } from './shop.mjs';

const [driver, key] = process.argv.slice(2);
const { pool: make, rows } = drivers[driver];
const pool = make();
const il = interlock(pool);
await il.lease(key, { ttl: '2 s' }, async (lease) => {
    console.log('working');
    await once(process.stdin, 'data');
    await lease.transaction((tx) => rows(tx, `INSERT INTO effect VALUES ('stopped')`))
        .then(() => console.log('transaction: committed'), (error) => console.log(`transaction: ${error.name}`));
    console.log(`aborted: ${lease.signal.aborted}`);
}).then(() => console.log('lease: held'), (error) => console.log(`lease: ${error.name}`));
process.stdin.destroy();
await il.close();
await pool.end();
