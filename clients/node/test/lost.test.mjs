// What can go wrong under a lease: the server is away, restarted or silent, answers are lost, the process is stopped.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import test from 'node:test';
import { interlock, LeaseLost } from 'pg-interlock';
import { aborted, admin, drivers, eventually, fresh, held, run, sleep, value } from './lib/shop.mjs';
import { proxy } from './lib/proxy.mjs';
import { startServer } from './lib/server.mjs';

await run('CREATE TABLE effect (holder text)');

// Calls body for each driver behind a proxy.
async function behind(body) {
    for (const [driver, { pool: make, rows }] of Object.entries(drivers)) {
        const between = await proxy();
        const pool = make({ ...between.options, database: process.env.PGDATABASE });
        const il = interlock(pool);
        try {
            await body({ il, pool, rows, between, driver });
        } catch (error) {
            error.message = `${driver}: ${error.message}`;
            throw error;
        } finally {
            between.set('open');
            await il.close();
            await (driver === 'pg' ? pool.end() : pool.end({ timeout: 1 }));
            between.close();
        }
    }
}

test('an acquire whose answer was lost is resumed, and leaves one lease', async () => {
    await behind(async ({ il, between }) => {
        const key = fresh('answer');
        await il.lease(fresh('first'), {}, async () => {}); // the connection is there
        between.dropNext((bytes) => bytes.includes('acquired'));
        await il.lease(key, { ttl: '10 min' }, async (lease) => {
            assert.ok(between.dropped);
            assert.equal((await il.lookup(key)).holder, lease.holder);
            await lease.transaction(async () => {});
        });
        assert.equal(await il.lookup(key), null);
        assert.equal(await held(), 0);
    });
});

test('an acquire that gets no answer at all leaves nothing when it has given up', async () => {
    await behind(async ({ il, between }) => {
        await il.lease(fresh('first'), {}, async () => {});
        const stop = new AbortController();
        between.set('refuse');
        between.cut();
        const waiting = il.acquire(fresh('answer'), { ttl: '10 min', wait: '10 min', signal: stop.signal });
        waiting.catch(() => {});
        await sleep(300);
        stop.abort(new RangeError('told to stop'));
        await assert.rejects(waiting, RangeError);
        between.set('open');
        assert.equal(await held(), 0);
    });
});

test('a connection of our own that is cut while it is made rejects nothing outside of a call', async () => {
    await behind(async ({ il, between }) => {
        between.dropNext((bytes) => bytes.includes('typarray')); // postgres.js reads the types of arrays on each new connection
        await il.lease(fresh('types'), { ttl: '10 min' }, async () => {});
        assert.equal(between.dropped, false);
    });
});

test('connections that the server ends in the moment they are ready', async () => {
    await behind(async ({ il, rows, between, driver }) => {
        between.endNext(2);
        await il.lease(fresh('ready'), { ttl: '10 min' }, async (lease) => {
            assert.ok(between.ended);
            if (driver !== 'pg') return; // for connections of the application postgres.js 3.4.9 raises an error outside of any promise
            between.endNext(1);
            await lease.transaction((tx) => rows(tx, 'SELECT 1')).catch(() => {});
            await eventually(() => lease.transaction((tx) => rows(tx, 'SELECT 1')).then(() => between.ended, () => false));
        });
    });
});

test('connections that are cut while it is held are made again by the heartbeat', async () => {
    await behind(async ({ il, between }) => {
        await il.lease(fresh('cut'), { ttl: '3 s' }, async (lease) => {
            for (let n = 0; n < 3; n++) {
                const before = lease.expiresAt;
                between.cut();
                await eventually(() => lease.expiresAt > before);
            }
            assert.equal(lease.lost, false);
            await lease.transaction(async () => {});
        });
    });
});

test('a heartbeat whose connection dies under way is sent again', async () => {
    await behind(async ({ il, between }) => {
        await il.lease(fresh('heartbeat'), { ttl: '3 s' }, async (lease) => {
            const before = lease.expiresAt;
            between.dropNext((bytes) => bytes.includes('until'), 2); // the server has renewed it, and nobody learns it
            await eventually(() => between.dropped);
            await eventually(() => lease.expiresAt > before);
            assert.equal(lease.lost, false);
            await lease.transaction(async () => {});
        });
    });
});

test('an event loop that was blocked for 10 s: the signal is aborted before the work runs a line, a longer lease lives on', async () => {
    await behind(async ({ il, rows }) => {
        await run('TRUNCATE effect');
        const names = [fresh('blocked'), fresh('blocked')];
        await il.lease(names[1], { ttl: '10 min' }, async (long) => {
            await assert.rejects(il.lease(names[0], { ttl: '5 s' }, async (short) => {
                Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 10_000);
                assert.deepEqual([short.signal.aborted, long.signal.aborted], [true, false]);
                await short.transaction((tx) => rows(tx, `INSERT INTO effect VALUES ('stale')`));
            }), LeaseLost);
            await long.transaction((tx) => rows(tx, `INSERT INTO effect VALUES ('long')`));
        });
        assert.deepEqual((await admin.query('SELECT holder FROM effect')).rows, [{ holder: 'long' }]);
    });
});

test('a clock that jumps an hour ahead and two back neither ends a lease nor keeps it', async () => {
    const { Date: real } = globalThis;
    const jump = (milliseconds) => {
        globalThis.Date = class extends real {
            constructor(...values) { super(...(values.length ? values : [real.now() + milliseconds])); }
            static now() { return real.now() + milliseconds; }
        };
    };
    await behind(async ({ il, between }) => {
        try {
            await il.lease(fresh('clock'), { ttl: '3 s' }, async (lease) => {
                for (const milliseconds of [3_600_000, -7_200_000]) {
                    jump(milliseconds);
                    const before = lease.expiresAt;
                    await eventually(() => lease.expiresAt > before);
                    assert.equal(lease.signal.aborted, false);
                }
                await lease.transaction(async () => {});
                between.set('silent');
                await aborted(lease.signal); // although the clock is far behind its deadline
                assert.ok(lease.expiresAt > new Date());
                between.set('open');
                throw new RangeError('seen');
            }).catch((error) => { if (!(error instanceof RangeError)) throw error; });
        } finally {
            globalThis.Date = real;
        }
    });
});

test('the processes of a cluster are clients of their own', async () => {
    await run('CREATE TABLE counter (n int)', 'INSERT INTO counter VALUES (0)');
    const key = fresh('cluster');
    const primary = spawn(process.execPath, [new URL('lib/cluster.mjs', import.meta.url).pathname, key], { stdio: 'inherit' });
    const [code] = await once(primary, 'exit');
    assert.deepEqual([code, await value('SELECT n FROM counter'), await value('SELECT count(DISTINCT holder)::int FROM effect WHERE holder LIKE $1', '% cluster')], [0, 30, 3]);
});

for (const mode of ['refuse', 'silent']) {
    test(`a server that is away (${mode}): the signal is aborted, and nothing is written`, async () => {
        await behind(async ({ il, rows, between }) => {
            await run('TRUNCATE effect');
            const key = fresh('away');
            await assert.rejects(il.lease(key, { ttl: '3 s' }, async (lease) => {
                between.set(mode);
                if (mode === 'refuse') between.cut();
                await aborted(lease.signal);
                await assert.rejects(lease.transaction((tx) => rows(tx, `INSERT INTO effect VALUES ('stale')`)), LeaseLost);
                between.set('open');
            }), LeaseLost);
            assert.equal(await value('SELECT count(*)::int FROM effect'), 0);
        });
    });
}

test('a waiter outlasts a server that is away, and is served', async () => {
    await behind(async ({ il, between }) => {
        const key = fresh('away');
        await value(`SELECT outcome FROM interlock.acquire_lease($1, '10 min', holder => 'other')`, key);
        const waiting = il.lease(key, { wait: '10 min' }, async () => 'served');
        await eventually(async () => await held() === 2);
        between.set('refuse');
        between.cut();
        await value(`SELECT interlock.release_lease($1, holder => 'other')`, key); // nobody hears of it
        await sleep(300);
        between.set('open');
        assert.equal(await waiting, 'served');
    });
});

test('a transaction whose COMMIT has no answer is an error, and one effect at most', async () => {
    await behind(async ({ il, rows, between }) => {
        const guard = () => {}; // postgres.js 3.4.9 raises an error of its own, outside of any promise, for a connection that ends so
        process.on('uncaughtException', guard);
        await run('TRUNCATE effect');
        await il.lease(fresh('commit'), { ttl: '10 min' }, async (lease) => {
            await lease.transaction(async () => {});
            between.dropNext((bytes) => bytes.includes('COMMIT'));
            await assert.rejects(lease.transaction((tx) => rows(tx, `INSERT INTO effect VALUES ('once')`)));
            assert.equal(lease.lost, false);
        });
        assert.equal(await value('SELECT count(*)::int FROM effect'), 1);
        process.removeListener('uncaughtException', guard);
    });
});

test('a process that is stopped for longer than the ttl cannot commit when it wakes up', async () => {
    for (const driver of Object.keys(drivers)) {
        await run('TRUNCATE effect');
        const key = fresh('stopped');
        const child = spawn(process.execPath, [new URL('lib/stopped.mjs', import.meta.url).pathname, driver, key], { stdio: ['pipe', 'pipe', 'inherit'] });
        const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
        assert.equal((await lines.next()).value, 'working', driver);
        child.kill('SIGSTOP');
        await eventually(async () => await value(`SELECT outcome FROM interlock.acquire_lease($1, '10 min', holder => 'next')`, key) !== 'held');
        await admin.query(`INSERT INTO effect VALUES ('next')`);
        child.stdin.write('write\n');
        child.kill('SIGCONT');
        const [code] = await once(child, 'exit');
        const said = [];
        for (let line; !(line = await lines.next()).done;) said.push(line.value);
        assert.deepEqual([said, code], [['transaction: LeaseLost', 'aborted: true', 'lease: LeaseLost'], 0], driver);
        assert.deepEqual((await admin.query('SELECT holder FROM effect')).rows, [{ holder: 'next' }], driver);
        await value(`SELECT interlock.break_lease($1, 'test')`, key);
    }
});

test('a server that is restarted, and one that crashes, during heartbeats', async () => {
    const server = await startServer();
    const { default: pg } = await import('pg');
    const { default: postgres } = await import('postgres');
    const pools = [new pg.Pool({ ...server.options, allowExitOnIdle: true }), postgres({ ...server.options, onnotice: () => {} })];
    pools[0].on('error', () => {});
    try {
        const setup = new pg.Client(server.options);
        await setup.connect();
        await setup.query('CREATE EXTENSION pg_interlock');
        await setup.end();
        for (const pool of pools) {
            const il = interlock(pool);
            for (const mode of ['fast', 'immediate']) {
                await il.lease(fresh(mode), { ttl: '8 s' }, async (lease) => {
                    const waiting = il.lease(lease.key, { wait: '10 min', ttl: '8 s' }, async () => 'served');
                    await server.restart(mode);
                    const before = lease.expiresAt;
                    await eventually(() => lease.lost || lease.expiresAt > before);
                    assert.equal(lease.lost, false, mode);
                    await eventually(() => lease.transaction(async () => true).catch((error) => {
                        if (error instanceof LeaseLost) throw error;
                        return false; // a connection of the pool from before
                    }));
                    await lease.release();
                    assert.equal(await waiting, 'served', mode);
                });
            }
            await il.close();
        }
    } finally {
        await Promise.all(pools.map((pool) => pool.end()));
        await server.stop();
    }
});
