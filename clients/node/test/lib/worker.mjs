// A worker that saves a checkpoint of its job, and then never ends. job.test.mjs kills it.

import { interlock } from 'pg-interlock';
import { drivers } from './shop.mjs';

const [driver, day] = process.argv.slice(2);
const { pool, rows } = drivers[driver];
await interlock(pool()).job('nightly', day, { staleAfter: '3 s' }, async (job) => {
    await job.save('first', null, (tx) => rows(tx, 'INSERT INTO report VALUES ($1, $2)', day, '1'));
    console.log('first is saved');
    await new Promise(() => {});
});
