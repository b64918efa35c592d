// Leases: held, renewed, asserted, released, waited for.

import assert from 'node:assert/strict';
import test from 'node:test';
import { Held, LeaseLost } from 'pg-interlock';
import { aborted, admin, each, eventually, fresh, held, one, run, sleep, value } from './lib/shop.mjs';

await run('CREATE TABLE report (body text)');

test('work runs under the lease, and its result comes back', async () => {
    await each(async ({ il }) => {
        const key = fresh('report');
        const result = await il.lease(key, { ttl: '10 min' }, async (lease) => {
            const { token, role } = (await admin.query('SELECT token::text, role FROM interlock.leases WHERE key = $1', [key])).rows[0];
            assert.deepEqual([lease.token, lease.key, role, lease.lost], [token, key, 'app', false]);
            assert.equal((await il.lookup(key)).holder, lease.holder);
            assert.ok(lease.expiresAt > new Date());
            return 7;
        });
        assert.equal(result, 7);
        assert.equal(await il.lookup(key), null);
    });
});

test('a lease that is held is refused, with its holder', async () => {
    await each(async ({ il }) => {
        const key = fresh('report');
        await il.lease(key, { ttl: '10 min', name: 'anna' }, async (lease) => {
            const error = await il.lease(key, {}, () => assert.fail()).catch((raised) => raised);
            assert.ok(error instanceof Held);
            assert.deepEqual([error.status, error.holder, error.recovering], [423, lease.holder, false]);
            assert.match(error.holder, /^anna \d+ [0-9a-f]{8}$/);
            assert.ok(error.retryAfter > 0 && error.headers['Retry-After'] === String(error.retryAfter));
            const tried = await il.tryLease(key, {}, () => assert.fail());
            assert.deepEqual([tried.ran, tried.holder], [false, lease.holder]);
        });
        assert.deepEqual(await il.tryLease(key, {}, async () => 'done'), { ran: true, result: 'done' });
    });
});

test('work that throws releases it', async () => {
    await each(async ({ il }) => {
        const key = fresh('report');
        await assert.rejects(il.lease(key, { ttl: '10 min' }, async () => { throw new RangeError('of the work'); }), RangeError);
        await assert.rejects(il.lease(key, { ttl: '10 min' }, () => { throw new RangeError('at once'); }), RangeError);
        assert.equal(await il.lookup(key), null);
    });
});

test('it is renewed at half of its ttl, by a connection of its own', async () => {
    await each(async ({ il }) => {
        const key = fresh('report');
        await il.lease(key, { ttl: '4 s' }, async (lease) => {
            const first = lease.expiresAt;
            await eventually(() => lease.expiresAt > first);
            assert.equal(lease.signal.aborted, false);
            assert.ok(await lease.renew('10 min'));
            assert.ok(lease.expiresAt - Date.now() > 300_000);
        });
    });
});

test('a transaction under it is one that no later holder can meet', async () => {
    await each(async ({ il, rows }) => {
        const key = fresh('report');
        await run('TRUNCATE report');
        await il.lease(key, { ttl: '10 min' }, async (lease) => {
            const result = await lease.transaction(async (tx) => {
                await rows(tx, 'INSERT INTO report VALUES ($1)', 'by the holder');
                assert.equal((await il.lookup(key)).pinnedBy.length, 1);
                return 'result';
            });
            assert.equal(result, 'result');
            await assert.rejects(lease.transaction(async (tx) => {
                await rows(tx, 'INSERT INTO report VALUES ($1)', 'rolled back');
                throw new RangeError('of the work');
            }), RangeError);
        });
        assert.deepEqual((await admin.query('SELECT body FROM report')).rows, [{ body: 'by the holder' }]);
    });
});

test('a lease that is lost: no effect, an aborted signal, LeaseLost', async () => {
    await each(async ({ il, rows }) => {
        const key = fresh('report');
        await run('TRUNCATE report');
        const error = await il.lease(key, { ttl: '10 min' }, async (lease) => {
            await value(`SELECT interlock.break_lease($1, 'test')`, key);
            await il.lease(key, { ttl: '10 min' }, async () => {
                await assert.rejects(lease.transaction((tx) => rows(tx, 'INSERT INTO report VALUES ($1)', 'stale')), LeaseLost);
            });
            assert.ok(lease.lost && lease.signal.aborted && lease.signal.reason instanceof LeaseLost);
            await assert.rejects(lease.transaction(() => assert.fail()), LeaseLost);
        }).catch((raised) => raised);
        assert.ok(error instanceof LeaseLost);
        assert.deepEqual([error.status, error.code, error.detail.state], [409, 'IL006', 'gone']);
        assert.equal(typeof error.detail.token, 'string');
        assert.equal(await value('SELECT count(*)::int FROM report'), 0);
    });
});

test('the heartbeat finds that it is lost, and tells the work', async () => {
    await each(async ({ il }) => {
        const key = fresh('report');
        await assert.rejects(il.lease(key, { ttl: '2 s' }, async (lease) => {
            await value(`SELECT interlock.break_lease($1, 'test')`, key);
            await aborted(lease.signal);
        }), LeaseLost);
    });
});

test('await using releases it; what is released cannot write', async () => {
    await each(async ({ il }) => {
        const key = fresh('report');
        const lease = await il.acquire(key, { ttl: '10 min' });
        await lease[Symbol.asyncDispose]();
        assert.equal(await il.lookup(key), null);
        await assert.rejects(lease.transaction(() => assert.fail()), LeaseLost);
        await assert.rejects(lease.renew(), LeaseLost);
        assert.equal(await lease.release(), true); // the answer of the one release
    });
});

test('two keys are two leases; paths exclude what is above and below', async () => {
    await each(async ({ il }) => {
        const name = fresh('shop');
        await il.lease([name, 'a'], {}, () => il.lease([name, 'b'], {}, async () => {
            await assert.rejects(il.acquire([name]), Held);
            await assert.rejects(il.acquire([name, 'a', 1]), Held);
            await assert.rejects(il.acquire([name, 'a']), Held); // it is not reentrant
        }));
        await il.lease([name], { mode: 'shared' }, () => il.lease([name], { mode: 'shared' }, async () => {
            await assert.rejects(il.acquire([name]), Held);
        }));
    });
});

test('permits: so many at a time, and waiters are served', async () => {
    await each(async ({ il, rows }) => {
        await run('TRUNCATE report');
        const key = fresh('permits');
        let working = 0, most = 0, served = 0;
        const gate = {};
        gate.open = new Promise((resolve) => { gate.resolve = resolve; });
        const all = Promise.all(Array.from({ length: 12 }, () => il.lease(key, { capacity: 3, ttl: '10 min', wait: '10 min' }, async (lease) => {
            most = Math.max(most, ++working);
            await gate.open;
            await lease.transaction((tx) => rows(tx, 'INSERT INTO report VALUES ($1)', 'by a permit'));
            working--;
            served++;
        })));
        await eventually(() => working === 3);
        await assert.rejects(il.acquire(key, { capacity: 3 }), Held);
        await assert.rejects(il.acquire(key, { capacity: 4 }), { code: '22023' });
        await assert.rejects(il.acquire(key), Held);
        await assert.rejects(il.acquire(key, { capacity: 3, mode: 'shared' }), TypeError);
        gate.resolve();
        await all;
        assert.deepEqual([served, most, await value('SELECT count(*)::int FROM report')], [12, 3, 12]);
        await eventually(async () => await held() === 0);
    });
});

test('a permit is renewed, and one that is lost cannot write', async () => {
    await each(async ({ il, rows }) => {
        await run('TRUNCATE report');
        const key = fresh('permits');
        await assert.rejects(il.lease(key, { capacity: 2, ttl: '3 s' }, async (lease) => {
            const first = lease.expiresAt;
            await eventually(() => lease.expiresAt > first);
            await il.lease(key, { capacity: 2 }, async (other) => { assert.notEqual(other.token, lease.token); });
            await value(`SELECT interlock.break_lease($1, 'test')`, key);
            await lease.transaction((tx) => rows(tx, 'INSERT INTO report VALUES ($1)', 'stale'));
        }), LeaseLost);
        assert.equal(await value('SELECT count(*)::int FROM report'), 0);
    });
});

const below = (name) => value(`SELECT count(*)::int FROM interlock.leases WHERE starts_with(key, $1 || '/')`, name);

test('leases on several keys: all or none, renewed, asserted and released together', async () => {
    await each(async ({ il, rows }) => {
        await run('TRUNCATE report');
        const name = fresh('several');
        const keys = [[name, 'b'], [name, 'a'], [name, 'b']];
        await il.leaseAll(keys, { ttl: '3 s' }, async (lease) => {
            assert.deepEqual(lease.held.map(({ key }) => key), [`${name}/b`, `${name}/a`]);
            const first = lease.expiresAt;
            await eventually(() => lease.expiresAt > first);
            const error = await il.acquireAll([[name, 'c'], [name, 'a']]).catch((raised) => raised);
            assert.ok(error instanceof Held);
            assert.deepEqual([error.detail.key, error.holder, await below(name)], [`${name}/a`, lease.holder, 2]);
            await lease.transaction((tx) => rows(tx, 'INSERT INTO report VALUES ($1)', 'under both'));
            for (const key of [`${name}/a`, `${name}/b`]) assert.equal((await il.lookup(key)).holder, lease.holder);
        });
        assert.equal(await below(name), 0);
        await assert.rejects(il.leaseAll(keys, { ttl: '10 min' }, async (lease) => {
            await value(`SELECT interlock.break_lease($1, 'test')`, `${name}/a`); // one is lost: all of it is
            await lease.transaction((tx) => rows(tx, 'INSERT INTO report VALUES ($1)', 'stale'));
        }), LeaseLost);
        assert.deepEqual([await below(name), await value('SELECT count(*)::int FROM report')], [0, 1]);
        await assert.rejects(il.leaseAll([], {}, () => assert.fail()), TypeError);
        await assert.rejects(il.leaseAll([name, [name, 'a']], {}, () => assert.fail()), { code: '22023' });
    });
});

test('leases on several keys: the lost heartbeat of one tells the work', async () => {
    await one(async ({ il }) => {
        const name = fresh('several');
        await assert.rejects(il.leaseAll([[name, 'a'], [name, 'b']], { ttl: '2 s' }, async (lease) => {
            await value(`SELECT interlock.break_lease($1, 'test')`, `${name}/b`);
            await aborted(lease.signal);
        }), LeaseLost);
        assert.equal(await below(name), 0);
    });
});

test('calls for several keys in all orders wait for each other, and none for ever', async () => {
    await each(async ({ il, rows }) => {
        await run('TRUNCATE report');
        const name = fresh('several');
        let working = 0, most = 0;
        const ways = [['a', 'b'], ['b', 'a'], ['b', 'c'], ['c', 'a', 'b']].map((levels) => levels.map((level) => [name, level]));
        await Promise.all([...ways, ...ways].map((keys) => il.leaseAll(keys, { ttl: '10 min', wait: '10 min' }, async (lease) => {
            most = Math.max(most, ++working); // each has b
            await lease.transaction((tx) => rows(tx, 'INSERT INTO report VALUES ($1)', 'x'));
            working--;
        })));
        assert.deepEqual([most, await value('SELECT count(*)::int FROM report'), await below(name)], [1, 8, 0]);
    });
});

test('a wait for several keys holds no connection of the pool', async () => {
    await one(async ({ il, pool }) => {
        const name = fresh('several');
        let waiting;
        await il.lease([name, 'b'], { ttl: '10 min' }, async (lease) => {
            const before = await held();
            waiting = [1, 2].map(() => il.leaseAll([[name, 'a'], [name, 'b']], { wait: '10 min', ttl: '10 min' }, async () => {}));
            await eventually(async () => await held() >= before + 2); // they have tickets
            assert.deepEqual([pool.waitingCount, pool.idleCount], [0, pool.totalCount]);
            await lease.transaction(async () => {});
        });
        await Promise.all(waiting);
        assert.equal(await held(), 0);
    }, { pool: { max: 1 } });
});

test('a wait for several keys that is over, or ended by its signal, leaves nothing', async () => {
    await one(async ({ il }) => {
        const name = fresh('several');
        await il.lease([name, 'b'], { ttl: '10 min' }, async () => {
            await assert.rejects(il.acquireAll([[name, 'a'], [name, 'b']], { wait: '0.3 s' }), Held);
            const stop = new AbortController();
            const waiting = il.acquireAll([[name, 'a'], [name, 'b']], { wait: '10 min', ttl: '10 min', signal: stop.signal });
            waiting.catch(() => {});
            stop.abort(new RangeError('told to stop'));
            await assert.rejects(waiting, RangeError);
            assert.equal(await below(name), 1);
        });
    });
});

test('atLeast keeps it in the way', async () => {
    await one(async ({ il }) => {
        const key = fresh('tick');
        await il.lease(key, { ttl: '10 min', atLeast: '10 min' }, async () => {});
        await assert.rejects(il.acquire(key), Held);
        await value(`SELECT interlock.break_lease($1, 'test')`, key);
    });
});

test('what is no option is an error before anything is asked', async () => {
    await one(async ({ il }) => {
        for (const options of [{ ttl: 'soon' }, { ttl: -1 }, { wait: NaN }, { atLeast: '1 parsec' }]) await assert.rejects(il.acquire('x', options), TypeError);
        await assert.rejects(il.acquire('x', { ttl: 0 }), { code: '22023' });
        await assert.rejects(il.acquire('', {}), { code: '22023' });
        await assert.rejects(il.acquire('x', { ttl: '1 s', atLeast: '2 s' }), { code: '22023' });
    });
});

test('a thousand waiters on a pool of ten are served one at a time and hold no connection meanwhile; those that have left are passed', async () => {
    await each(async ({ il, pool, driver }) => {
        const key = fresh('turn');
        const first = await il.acquire(key, { ttl: '10 min' });
        const stop = new AbortController();
        const leaves = (n) => n % 20 === 7;
        let working = 0, most = 0;
        const tokens = [];
        const waiters = Array.from({ length: 1000 }, (_, n) => il.lease(key, { ttl: '10 min', wait: '30 min', ...(leaves(n) ? { signal: stop.signal } : {}) }, async (lease) => {
            most = Math.max(most, ++working);
            await lease.transaction(async () => { tokens.push(BigInt(lease.token)); });
            working--;
        }));
        const settled = Promise.allSettled(waiters);
        await eventually(async () => await held() === 1001);
        if (driver === 'pg') assert.deepEqual([pool.totalCount - pool.idleCount, pool.waitingCount], [0, 0]);
        assert.equal(await value(`SELECT count(*)::int FROM pg_stat_activity WHERE usename = 'app' AND query ILIKE 'listen%'`), 1);
        stop.abort();
        await eventually(async () => await held() === 951);
        await first.release();
        assert.deepEqual((await settled).map(({ status }) => status === 'fulfilled'), waiters.map((_, n) => !leaves(n)));
        assert.deepEqual([tokens.length, most], [950, 1]);
        assert.ok(tokens.every((token, n) => n === 0 || token > tokens[n - 1]));
        await eventually(async () => await held() === 0);
    }, { pool: { max: 10 } });
});

test('a wait that is over, or ended by its signal, leaves no ticket', async () => {
    await each(async ({ il }) => {
        const key = fresh('turn');
        await il.lease(key, { ttl: '10 min' }, async () => {
            await assert.rejects(il.acquire(key, { wait: '0.3 s' }), Held);
            assert.equal(await held(), 1);
            const stop = new AbortController();
            const waiting = il.acquire(key, { wait: '10 min', signal: stop.signal });
            await eventually(async () => await held() === 2);
            stop.abort(new RangeError('told to stop'));
            await assert.rejects(waiting, RangeError);
            assert.equal(await held(), 1);
            await assert.rejects(il.acquire(key, { signal: stop.signal }), RangeError);
        });
    });
});

test('a signal tells the work to stop, and the lease protects it until then', async () => {
    await one(async ({ il }) => {
        const key = fresh('turn');
        const stop = new AbortController();
        const result = await il.lease(key, { ttl: '10 min', signal: stop.signal }, async (lease) => {
            stop.abort();
            await aborted(lease.signal);
            await lease.transaction(async () => {}); // it is told to stop, and is not lost
            return 'tidied';
        });
        assert.equal(result, 'tidied');
    });
});

test('a listener that is ended, and what is released meanwhile', async () => {
    await each(async ({ il }) => {
        const key = fresh('turn');
        const first = await il.acquire(key, { ttl: '10 min' });
        const second = il.lease(key, { wait: '10 min' }, async () => 'served');
        await eventually(async () => await held() === 2);
        const listeners = `FROM pg_stat_activity WHERE usename = 'app' AND query ILIKE 'listen%'`;
        await eventually(async () => await value(`SELECT count(*)::int ${listeners}`) > 0);
        await run(`SELECT pg_terminate_backend(pid, 10000) ${listeners}`);
        await first.release(); // its notification is heard by nobody
        assert.equal(await second, 'served');
    });
});

test('work that never ends holds it for its limit, and no longer', async () => {
    await one(async ({ il }) => {
        const key = fresh('endless');
        let told;
        const endless = il.lease(key, { ttl: '1 s', limit: '1 s' }, (lease) => { told = aborted(lease.signal); return new Promise(() => {}); });
        endless.catch(() => {});
        assert.equal(await il.lease(key, { wait: '10 min' }, async () => 'served'), 'served');
        assert.equal(await told, true);
    });
});

test('a connection of the pool that is used up does not hold up the heartbeat, nor a lease on a pool of one', async () => {
    await each(async ({ il, pool, rows, driver }) => {
        const key = fresh('small pool');
        const inTransaction = driver === 'pg' ? (work) => il.transaction(work) : (work) => pool.begin(work);
        await inTransaction(async (tx) => {
            // The only connection is in use for longer than the lease lives without a renewal.
            await il.lease(key, { ttl: '1 s' }, async (lease) => {
                for (let n = 0; n < 15; n++) await rows(tx, 'SELECT pg_sleep(0.1)');
                assert.equal(lease.lost, false);
                assert.equal(await value('SELECT outcome FROM interlock.acquire_lease($1)', key), 'held');
            });
        });
        await il.lease(key, {}, (lease) => lease.transaction((tx) => rows(tx, 'SELECT 1')));
    }, { pool: { max: 1 } });
});

test('a transaction whose error was swallowed is an error, not a commit that has lost it', async () => {
    await each(async ({ il, rows }) => {
        await run('TRUNCATE report');
        await assert.rejects(il.transaction(async (tx) => {
            await rows(tx, 'INSERT INTO report VALUES ($1)', 'lost');
            await rows(tx, 'SELECT 1/0').catch(() => {});
        }));
        assert.equal(await value('SELECT count(*)::int FROM report'), 0);
    });
});

test('what a failed work does later is not committed by itself', async () => {
    await one(async ({ il }) => {
        await run('TRUNCATE report');
        let late;
        await assert.rejects(il.transaction(async (tx) => {
            late = sleep(50).then(() => tx.query(`INSERT INTO report VALUES ('late')`));
            late.catch(() => {});
            throw new RangeError('of the work');
        }), RangeError);
        await assert.rejects(late);
        assert.equal(await value('SELECT count(*)::int FROM report'), 0);
    });
});
