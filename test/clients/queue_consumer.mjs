// The consumer of docs/recipes/queue-consumer.md, with the code of the page, on a queue that delivers several times.
// Prints TAP. Connects as the environment says (PGHOST, PGPORT, PGUSER, PGDATABASE).

import pg from 'pg';
import assert from 'node:assert/strict';
import { setTimeout } from 'node:timers/promises';
import { load, check } from './lib/page.mjs';

const client = new pg.Client();
await client.connect();
const { pool, handle, ship, consume } = await load('recipes/queue-consumer', client);
const value = async (sql, ...parameters) => Object.values((await client.query(sql, parameters)).rows[0])[0];
const message = (order, quantity = 1) => ({ id: `order-${order}`, body: JSON.stringify({ order, quantity }), deliveries: 1 });

// Every message comes once more while it is being worked on, and its first acknowledgement is lost.
class Queue {
    constructor(messages) {
        this.waiting = messages.flatMap((one) => [{ ...one }, { ...one }]);
        this.out = 0;
        this.lost = new Set();
        this.letters = [];
    }
    async receive() {
        while (this.waiting.length === 0 && this.out > 0)
            await setTimeout(5);
        const next = this.waiting.shift();
        this.out += next === undefined ? 0 : 1;
        return next;
    }
    again(one) {
        this.waiting.push({ ...one, deliveries: one.deliveries + 1 });
        this.out--;
    }
    async acknowledge(one) {
        if (this.lost.has(one.id))
            this.out--;
        else
            this.lost.add(one.id) && this.again(one);
    }
    async later(one) { this.again(one); }
    async dead(one) { this.letters.push(one.id); this.out--; }
}

await check('of a hundred messages that come three times each is shipped once, by four consumers', async () => {
    const queue = new Queue(Array.from({ length: 100 }, (_, order) => message(order)));
    await Promise.all([1, 2, 3, 4].map(() => consume(queue)));
    assert.deepEqual(queue.letters, []);
    assert.equal(await value('SELECT count(*)::int FROM shipment'), 100);
    assert.equal(await value('SELECT count(DISTINCT order_id)::int FROM shipment'), 100);
});
await check('also when consumers are killed while they work', async () => {
    await client.query('TRUNCATE shipment');
    let work = 0;
    const dies = async (its, order) => {
        await ship(its, order);
        if (++work % 7 === 0)
            await client.query('SELECT pg_terminate_backend($1, 60000)', [its.processID]);
    };
    const queue = new Queue(Array.from({ length: 60 }, (_, order) => message(1000 + order)));
    await Promise.all([1, 2, 3, 4].map(() => consume(queue, dies, 1000)));
    assert.deepEqual([queue.letters, await value('SELECT count(*)::int FROM shipment'), await value('SELECT count(DISTINCT order_id)::int FROM shipment')], [[], 60, 60]);
});
await check('a message that is being worked on comes later', async () => {
    const fate = await handle(message(5000), async () => {
        assert.equal(await handle(message(5000), ship), 'later');
        assert.equal(await handle(message(5000, 2), ship), 'dead');
    });
    assert.equal(fate, 'done');
    assert.equal(await handle(message(5000), ship), 'done');
});
await check('what always fails goes to the dead letters, and leaves nothing', async () => {
    const before = await value('SELECT count(*)::int FROM shipment');
    const queue = new Queue([message(6000)]);
    queue.waiting.pop();
    await consume(queue, async (its, order) => { await ship(its, order); throw new Error('out of stock'); });
    assert.deepEqual([queue.letters, await value('SELECT count(*)::int FROM shipment')], [['order-6000'], before]);
    assert.equal(await handle(message(6000, 3), ship), 'done');
});

console.log(`1..${check.count}`);
await Promise.all([pool.end(), client.end()]);
