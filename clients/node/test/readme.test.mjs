// The examples of README.md, and those of docs/guide/leases.md, run as they are there.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import test from 'node:test';
import { admin, eventually, run, value } from './lib/shop.mjs';
import { NotEnough, StaleVersion } from 'pg-interlock';

const read = (name) => readFileSync(new URL(`../${name}`, import.meta.url), 'utf8');
const blocks = (language, name = 'README.md') => [...read(name).matchAll(new RegExp(`^\`\`\`${language}\n(.*?)^\`\`\`$`, 'gms'))].map((match) => match[1]);

await run(...blocks('sql'));
process.env.PGUSER = 'app';
const file = new URL(`../readme-${process.pid}.mjs`, import.meta.url);
writeFileSync(file, `import express from 'express';\nexport const app = express();\nconst compute = async (day) => \`report of \${day}\`;\n${[...blocks('js'), ...blocks('javascript', 'leases.md')].join('\n')}
export const calls = { most: 0, now: 0 };
const addUp = async () => 7;
async function callCarrier(order) {
    calls.most = Math.max(calls.most, ++calls.now);
    await new Promise((resolve) => { setTimeout(resolve, 20); });
    calls.now--;
    return \`label of \${order}\`;
}`);
const page = await import(file).finally(() => rmSync(file));
const server = page.app.listen(0);
await once(server, 'listening');
const url = `http://127.0.0.1:${server.address().port}`;

test('a lease takes five lines, an idempotent endpoint three', () => {
    const lines = (name) => blocks('js').find((block) => block.includes(name)).trim().split('\n').length;
    assert.ok(lines('il.lease(') <= 5);
    const endpoint = blocks('js').find((block) => block.includes('il.express(')).trim().split('\n').filter((line) => !/^\}/.test(line));
    assert.ok(endpoint.length <= 3);
});

test('the report is made by one of two', async () => {
    const results = await Promise.allSettled([page.makeReport('2030-01-01'), page.makeReport('2030-01-01')]);
    assert.deepEqual(results.map(({ status }) => status).sort(), ['fulfilled', 'rejected']); // the second finds its day in the table
    assert.deepEqual((await admin.query('SELECT body FROM report')).rows, [{ body: 'report of 2030-01-01' }]);
});

test('the endpoint charges once', async () => {
    const pay = () => fetch(`${url}/payments`, { method: 'POST', body: '{"amount": 10}', headers: { 'Content-Type': 'application/json', 'Idempotency-Key': 'key-1', 'X-User': 'anna' } });
    const first = await pay(), second = await pay();
    assert.deepEqual([first.status, second.status, second.headers.get('idempotent-replayed'), await second.text()], [201, 201, 'true', await first.text()]);
    const order = { id: 17, customer: 'bert', amount: 5 };
    assert.deepEqual([await page.charge(order), await page.charge(order)], [{ outcome: 'completed', value: { charged: 5 } }, { outcome: 'replay', value: { charged: 5 } }]);
    assert.equal(await value('SELECT count(*)::int FROM payment'), 2);
});

test('pages: versions, tags, an editor', async () => {
    await admin.query(`INSERT INTO page VALUES (1, 'text')`);
    const { version } = await page.il.read('page', 1);
    await page.savePage(1, version, 'new');
    await assert.rejects(page.savePage(1, version, 'stale'), StaleVersion);
    await Promise.all([1, 2, 3].map(() => page.hit(1)));
    const got = await fetch(`${url}/pages/1`);
    assert.deepEqual([got.status, (await got.json()).hits], [200, 3]);
    const put = (tag) => fetch(`${url}/pages/1`, { method: 'PUT', body: '{"body": "by a form"}', headers: { 'Content-Type': 'application/json', ...(tag ? { 'If-Match': tag } : {}) } });
    assert.equal((await put(got.headers.get('etag'))).status, 200);
    assert.equal((await put(got.headers.get('etag'))).status, 412);
    assert.equal((await put()).status, 428);
    const edit = await page.openEditor(1, 'anna/1');
    await assert.rejects(page.openEditor(1, 'bert/1'), { holder: 'anna/1' });
    await edit.save({ body: 'by an editor' });
});

test('the nightly report is made once', async () => {
    const ran = await Promise.all([1, 2, 3].map(() => page.nightly('2030-02-01')));
    assert.equal(ran.filter((each) => each.ran).length, 1);
    assert.deepEqual(await page.nightly('2030-02-01'), { ran: false, outcome: 'completed', result: undefined });
    assert.equal(await value(`SELECT count(*)::int FROM report WHERE day = '2030-02-01'`), 1);
});

test('who edits what', async () => {
    const stop = new AbortController();
    const shown = [];
    const showing = page.showEditors(stop.signal, (rows, changes) => shown.push(...changes.map(({ event, row }) => `${event} ${row.holder}`)));
    const edit = await page.openEditor(1, 'anna/2');
    await eventually(() => shown.includes('locked anna/2'));
    await edit.release();
    await eventually(() => shown.includes('released anna/2'));
    stop.abort();
    await showing;
});

test('a cart, and the buttons of an order', async () => {
    await run(`INSERT INTO item VALUES (1, 'lamp', 2), (2, 'bulb', 1)`, 'INSERT INTO orders (id) VALUES (17)');
    await page.checkout('cart 1', [{ item: 1, amount: 1 }, { item: 2, amount: 1 }]);
    const error = await page.checkout('cart 2', [{ item: 1, amount: 1 }, { item: 2, amount: 1 }]).catch((raised) => raised);
    assert.ok(error instanceof NotEnough);
    assert.deepEqual([error.short.map(({ key }) => key), (await admin.query('SELECT item FROM order_line ORDER BY item')).rows], [[2], [{ item: 1 }, { item: 2 }]]);
    assert.deepEqual(await page.buttons(17), [{ state: 'paid', allowed: false, reason: 'nothing is paid' }, { state: 'cancelled', allowed: true, reason: null }]);
    await assert.rejects(page.pay(17, null), { reason: 'nothing is paid' });
    await page.pay(17, 5);
    await assert.rejects(page.pay(17, 5), { state: 'paid' });
});

test('docs/guide/leases.md: a lease, permits, several keys', async () => {
    await run('CREATE TABLE closed (day date PRIMARY KEY, total int)', 'CREATE TABLE invoice (id int PRIMARY KEY, customer int NOT NULL)',
        'INSERT INTO invoice SELECT i, i % 3 FROM generate_series(1, 750) i');
    await page.closeDay('2030-01-01');
    assert.equal(await value('SELECT total FROM closed'), 7);
    const labels = await Promise.all([1, 2, 3, 4, 5, 6, 7, 8].map((order) => page.shipLabel(order)));
    assert.deepEqual([labels[7], page.calls.most], ['label of 8', 3]);
    const [held] = await Promise.all([page.mergeCustomers(0, 1), page.mergeCustomers(0, 2), page.mergeCustomers(0, 1)]);
    assert.deepEqual(held.map(({ key }) => key), ['customer/0', 'customer/1']);
    assert.equal(await value('SELECT count(DISTINCT customer)::int FROM invoice'), 1);
});

test('a worker', async () => {
    await admin.query(`INSERT INTO job (address) SELECT 'user ' || i FROM generate_series(1, 10) i`);
    const stop = new AbortController();
    const working = page.worker(stop.signal);
    await eventually(async () => await value('SELECT count(*)::int FROM job') === 0);
    stop.abort();
    await working;
    assert.equal(await value(`SELECT count(DISTINCT customer)::int FROM payment WHERE customer LIKE 'user %'`), 10);
});

test.after(async () => {
    server.closeAllConnections();
    server.close();
    await page.il.close();
    await page.pool.end();
});
