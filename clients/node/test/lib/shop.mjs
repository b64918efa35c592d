// What the tests share: an administrator, the role app on both drivers, and a wait for what comes true.
// Connects as the environment says (PGHOST, PGPORT, PGUSER, PGDATABASE).

import pg from 'pg';
import postgres from 'postgres';
import { setTimeout as sleep } from 'node:timers/promises';
import { interlock } from 'pg-interlock';

export { sleep };

/** A superuser. */
export const admin = new pg.Pool({ max: 4, allowExitOnIdle: true });
admin.on('error', () => {});
export const value = async (sql, ...values) => Object.values((await admin.query({ text: sql, values })).rows[0] ?? { none: undefined })[0];
export const run = async (...statements) => { for (const sql of statements) await admin.query(sql); };

/** The drivers: pool(options) makes a pool of the role app; rows(tx, sql, ...values) asks with what a transaction gives. */
export const drivers = {
    pg: {
        pool(options = {}) {
            const pool = new pg.Pool({ user: 'app', allowExitOnIdle: true, ...options });
            pool.on('error', () => {});
            return pool;
        },
        rows: async (tx, sql, ...values) => (await tx.query(sql, values)).rows,
    },
    'postgres.js': {
        pool: (options = {}) => postgres({ user: 'app', max: 10, onnotice: () => {}, ...options }),
        rows: async (tx, sql, ...values) => [...await tx.unsafe(sql, values)],
    },
};

/** Calls body({ il, pool, rows, driver }) for each driver, and closes what it has made. */
export async function each(body, options = {}) {
    for (const [driver, { pool: make, rows }] of Object.entries(drivers)) await withClient(driver, make, rows, body, options);
}

async function withClient(driver, make, rows, body, { pool: poolOptions, ...options }) {
    const pool = make(poolOptions);
    const il = interlock(pool, options);
    try {
        await body({ il, pool, rows, driver });
    } catch (error) {
        error.message = `${driver}: ${error.message}`;
        throw error;
    } finally {
        await il.close();
        await pool.end();
    }
}

/** One client on node-postgres, for what does not depend on the driver. */
export const one = (body, options = {}) => withClient('pg', drivers.pg.pool, drivers.pg.rows, body, options);

/** Until it is true; for as long as the whole suite may take. */
export async function eventually(condition) {
    for (const end = Date.now() + 600_000; !await condition(); await sleep(20)) {
        if (Date.now() > end) throw new Error('it does not come true');
    }
}

export const aborted = (signal) => signal.aborted || new Promise((resolve) => { signal.addEventListener('abort', () => resolve(true)); });

/** Leases and tickets of this database: nothing may be left behind. */
export const held = () => value(`SELECT coalesce(sum(used), 0)::int FROM interlock.usage WHERE what = 'leases' AND database = current_database()`);

let names = 0;
/** A name that no other test has. */
export const fresh = (name) => `${name} ${process.pid} ${++names}`;

await run('GRANT CREATE ON SCHEMA public TO app', 'ALTER DEFAULT PRIVILEGES GRANT SELECT, INSERT, UPDATE, DELETE ON TABLES TO app',
    'ALTER DEFAULT PRIVILEGES GRANT USAGE ON SEQUENCES TO app');
