// A client that computes the shard itself, without a router. It uses the package of clients/node.
//
//     const shards = new Shards(new pg.Pool({ database: 'router' }));
//     await shards.lease('acme/billing', { ttl: '30 s' }, async (lease, transaction) => {
//         await transaction((tx) => tx.query(`UPDATE invoice SET paid = true WHERE tenant = 'acme' AND id = 1`));
//     });
//     await shards.transaction('acme', (tx) => tx.query(`INSERT INTO invoice VALUES ('acme', 2, 10)`));

import { createHash } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { interlock } from 'pg-interlock';

/** What slot_of() of the shards computes. */
export const slotOf = (path) => createHash('sha256').update(path.split('/')[0]).digest()[0];

export class Shards {
    #router;
    #map;
    #shards = new Map();

    /** A pool of pg, of the database that has the map. */
    constructor(router) { this.#router = router; }

    /**
     * Runs work(lease, transaction) under a lease on the path, which is renewed meanwhile. transaction() asserts the lease.
     * Throws Held and LeaseLost, as the package does.
     */
    async lease(path, options, work) {
        const [shard, lease] = await this.#served(async () => {
            const shard = await this.#shardOf(path);
            const lease = await shard.il.acquire(path, options);
            try {
                // Only now is it known that the slot is not being moved: a move waits for the leases that it finds.
                await shard.pool.query('SELECT enter($1, new_lease => true)', [path]);
            } catch (error) {
                await lease.release();
                throw error;
            }
            return [shard, lease];
        });
        return lease.run(() => work(lease, (body) => lease.transaction((tx) => entered(tx, path, body))));
    }

    /** Runs work(tx) in a transaction on the shard of the path. It may run several times; what has failed is rolled back. */
    async transaction(path, work) {
        return this.#served(async () => (await this.#shardOf(path)).il.transaction((tx) => entered(tx, path, work)));
    }

    /** Closes the connections to the shards. */
    async close() {
        for (const { il, pool } of this.#shards.values()) {
            await il.close();
            await pool.end();
        }
    }

    // Reads the map again while the shard that it names refuses the path: for half a minute, as a slot is closed while its rows move.
    async #served(call) {
        for (let attempt = 1; ; attempt++) {
            try {
                return await call();
            } catch (error) {
                if (error.code !== 'SH001' || attempt === 150) throw error;
                this.#map = undefined;
                await sleep(200);
            }
        }
    }

    async #shardOf(path) {
        this.#map ??= new Map((await this.#router.query('SELECT slot, conninfo FROM slot JOIN shard ON name = shard')).rows
            .map(({ slot, conninfo }) => [slot, conninfo]));
        const conninfo = this.#map.get(slotOf(path));
        if (!this.#shards.has(conninfo)) {
            const pool = new pg.Pool(options(conninfo));
            pool.on('error', () => {});        // a connection that the server has ended: the pool opens another one
            this.#shards.set(conninfo, { pool, il: interlock(pool) });
        }
        return this.#shards.get(conninfo);
    }
}

async function entered(tx, path, work) {
    await tx.query('SELECT enter($1)', [path]);
    return work(tx);
}

// host=... port=... dbname=... user=..., without quotes
function options(conninfo) {
    const { dbname, ...others } = Object.fromEntries(conninfo.trim().split(/\s+/).map((part) => part.split(/=(.*)/s, 2)));
    return { ...others, database: dbname };
}
