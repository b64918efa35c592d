// The programs of examples/node, as a shop runs them: on the package from its archive, over HTTP, as the role app.
// Prints TAP. Connects as the environment says (PGHOST, PGPORT, PGUSER, PGDATABASE).
//
// npm: typescript pg express @types/node @aws-lambda-powertools/idempotency

import pg from 'pg';
import assert from 'node:assert/strict';
import { cpSync, readdirSync, readFileSync } from 'node:fs';
import { once } from 'node:events';
import { compile, install, pack } from './lib/package.mjs';
import { blocks, check, eventually } from './lib/page.mjs';

const examples = `${process.env.ROOT}/examples/node`, shop = `${process.cwd()}/shop`;
const client = new pg.Client();
await client.connect();
await client.query(readFileSync(`${examples}/schema.sql`, 'utf8'));
await client.query(`INSERT INTO document VALUES (1, 'draft'), (2, 'draft');
    INSERT INTO item VALUES (1, 'lamp', 'a lamp', 10, 2), (2, 'bulb', 'a bulb', 1, 1)`);
const value = async (sql, ...values) => Object.values((await client.query(sql, values)).rows[0])[0];
compile();
install(pack().archive, shop);
cpSync(examples, shop, { recursive: true });
process.env.PGUSER = 'app';
const { app, tick } = await import(`${shop}/app.mjs`);
const { il, pool } = await import(`${shop}/db.mjs`);
const { importFile } = await import(`${shop}/importer.mjs`);
const server = app.listen(0);
await once(server, 'listening');
const url = `http://127.0.0.1:${server.address().port}`;
const ask = async (user, method, path, body, headers = {}) => {
    const response = await fetch(url + path, { method, body: body && JSON.stringify(body), headers: { 'X-User': user, 'Content-Type': 'application/json', ...headers } });
    return { status: response.status, headers: response.headers, body: await response.json() };
};
// Server-sent events: next() is the next one, as [event, data].
async function events(user, path) {
    const stop = new AbortController();
    const response = await fetch(url + path, { signal: stop.signal, headers: { 'X-User': user } });
    if (response.status !== 200) return { status: response.status, body: await response.json() };
    const chunks = response.body.pipeThrough(new TextDecoderStream())[Symbol.asyncIterator]();
    let text = '';
    const next = async () => {
        while (!text.includes('\n\n')) text += (await chunks.next()).value;
        const [first, ...rest] = text.split('\n\n');
        text = rest.join('\n\n');
        const [, event, data] = /^event: (.*)\ndata: (.*)$/.exec(first);
        return [event, JSON.parse(data)];
    };
    return { status: 200, next, close: () => stop.abort() };
}

await check('all of it is under 110 lines', () => {
    const lines = readdirSync(examples).filter((name) => name.endsWith('.mjs')).map((name) => readFileSync(`${examples}/${name}`, 'utf8').split('\n').length - 1);
    assert.ok(lines.reduce((sum, each) => sum + each) < 110, String(lines));
});

await check('the pages show the programs as they are', () => {
    const pages = { 'edit-lock': 'recipes/document-editor', endpoint: 'recipes/http-endpoint', 'nightly-job': 'recipes/scheduled-job', cart: 'guide/hot-rows',
        buttons: 'guide/transitions', importer: 'guide/ownership' };
    for (const [name, page] of Object.entries(pages)) assert.deepEqual(blocks(page, 'javascript'), [readFileSync(`${examples}/${name}.mjs`, 'utf8')], page);
});

await check('edit lock: one edits, saves and keeps editing, a colleague takes over', async () => {
    const editors = await events('boss', '/documents/editors');
    assert.deepEqual(await editors.next(), ['editors', []]);
    const anna = await events('anna', '/documents/1/edit?tab=1');
    const [event, { body, version }] = await anna.next();
    assert.deepEqual([event, body], ['open', 'draft']);
    assert.deepEqual(await editors.next(), ['editors', [[1, 'anna/1']]]);
    const refused = await events('bert', '/documents/1/edit?tab=1');
    assert.deepEqual([refused.status, refused.body.title.includes('anna/1')], [423, true]);
    const first = await ask('anna', 'PUT', '/documents/1', { tab: 1, body: 'first page' });
    const second = await ask('anna', 'PUT', '/documents/1', { tab: 1, body: 'two pages' });
    assert.deepEqual([first.status, second.status, second.body.version > first.body.version && first.body.version > version], [200, 200, true]);
    assert.equal(await value('SELECT body FROM document WHERE id = 1'), 'two pages');
    const bert = await events('bert', '/documents/1/edit?tab=1&why=lunch');
    assert.equal((await bert.next())[1].body, 'two pages');
    const late = await ask('anna', 'PUT', '/documents/1', { tab: 1, body: 'after lunch' });
    assert.deepEqual([late.status, await anna.next()], [409, ['taken', 'bert/1']]);
    assert.equal((await ask('bert', 'PUT', '/documents/1', { tab: 1, body: 'done', close: true })).status, 200);
    assert.deepEqual([await value('SELECT body FROM document WHERE id = 1'), await value(`SELECT holder FROM interlock.row_lock_of('document', 1)`)], ['done', null]);
    for (const each of [anna, bert, editors]) each.close();
});
await check('edit lock: closing the page releases the document', async () => {
    const carl = await events('carl', '/documents/2/edit?tab=1');
    await carl.next();
    carl.close();
    await eventually(async () => await value(`SELECT holder FROM interlock.row_lock_of('document', 2)`) === null);
    assert.equal((await ask('carl', 'PUT', '/documents/2', { tab: 1, body: 'x' })).status, 409);
});

await check('cart: the last bulb goes to one of two, and is sold with the order', async () => {
    const items = [{ item: 1, amount: 1 }, { item: 2, amount: 1 }];
    const both = await Promise.all(['c1', 'c2'].map((cart) => ask('anna', 'POST', `/carts/${cart}/items`, items)));
    assert.deepEqual(both.map(({ status }) => status).sort(), [201, 409]);
    const winner = both[0].status === 201 ? 'c1' : 'c2', loser = winner === 'c1' ? 'c2' : 'c1';
    assert.equal((await ask('anna', 'POST', `/carts/${loser}/items`, [items[0]])).status, 201);
    const orders = await Promise.all([winner, loser].map((cart) => ask('anna', 'POST', `/carts/${cart}/order`)));
    assert.deepEqual(orders.map(({ status }) => status), [201, 201]);
    assert.equal(await value('SELECT count(*)::int FROM order_line'), 3);
    assert.equal(await value(`SELECT sum(interlock.escrow_value('item', id, 'stock'))::int FROM item`), 0);
    assert.equal(await value('SELECT count(*)::int FROM cart'), 0);
});
await check('cart: an order that comes too late is 409', async () => {
    await client.query(`SELECT interlock.set_escrow('item', 1, 'stock', 5)`);
    await ask('anna', 'POST', '/carts/c3/items', [{ item: 1, amount: 2 }]);
    await client.query(`SELECT interlock.cancel_reservation(token) FROM interlock.reservations`);
    const orders = await value('SELECT count(*)::int FROM orders');
    assert.deepEqual([(await ask('anna', 'POST', '/carts/c3/order')).status, await value('SELECT count(*)::int FROM orders')], [409, orders]);
});

await check('buttons: what may be clicked, and the loser of two clicks', async () => {
    const { body } = await ask('anna', 'GET', '/orders/1');
    assert.deepEqual([body.state, body.next], ['pending', [{ state: 'paid', allowed: false, reason: 'nothing is paid' }, { state: 'cancelled', allowed: true, reason: null }]]);
    assert.equal((await ask('anna', 'POST', '/orders/1/pending/paid')).status, 422);
    const clicks = await Promise.all([1, 2].map(() => ask('anna', 'POST', '/orders/1/pending/cancelled')));
    assert.deepEqual(clicks.map(({ status }) => status).sort(), [200, 409]);
});

await check('endpoint: eight payments with one key are one, and an order that is paid already is 409', async () => {
    const pay = (key) => ask('anna', 'POST', '/payments', { order: 2, amount: 11 }, { 'Idempotency-Key': key });
    const answers = await Promise.all(Array.from({ length: 8 }, () => pay('key-1')));
    assert.ok(answers.every(({ status }) => [201, 409].includes(status)));
    const again = await pay('key-1');
    assert.deepEqual([again.status, again.headers.get('location'), again.headers.get('idempotent-replayed')], [201, '/payments/1', 'true']);
    assert.equal((await pay('key-2')).status, 409);
    assert.deepEqual([await value('SELECT count(*)::int FROM payment'), await value('SELECT status FROM orders WHERE id = 2')], [1, 'paid']);
});

await check('nightly job: of three nodes one makes the report, once', async () => {
    const night = new Date('2030-03-31T23:30Z'); // in London it is April
    const ran = await Promise.all([tick(night), tick(night), tick(night)]);
    assert.equal(ran.filter((each) => each.ran).length, 1);
    assert.equal((await tick(night)).outcome, 'completed');
    assert.deepEqual((await client.query('SELECT day::text, payments, total FROM report')).rows, [{ day: '2030-04-01', payments: 1, total: '11' }]);
});

await check('importer: a file is imported once, descriptions stay, and a crash loses no batch', async () => {
    const rows = Array.from({ length: 25 }, (_, i) => ({ id: i + 1, name: `item ${i + 1}`, description: 'of the importer', price: i }));
    assert.equal((await ask('anna', 'POST', '/imports/monday', rows)).body.ran, true);
    assert.equal((await ask('anna', 'POST', '/imports/monday', rows)).body.outcome, 'completed');
    assert.deepEqual((await client.query('SELECT name, description, price FROM item WHERE id IN (1, 3) ORDER BY id')).rows,
        [{ name: 'item 1', description: 'a lamp', price: '0' }, { name: 'item 3', description: 'of the importer', price: '2' }]);
    const bad = rows.map((row) => ({ ...row, price: row.id === 15 ? 'much' : row.price + 1 }));
    await assert.rejects(importFile('tuesday', bad, 10));
    const good = rows.map((row) => ({ ...row, price: row.price + 1 }));
    const before = await value(`SELECT array_agg(xmin::text ORDER BY id) FROM item WHERE id <= 10`);
    assert.deepEqual(await importFile('tuesday', good, 10), { ran: true, result: 25 });
    assert.deepEqual(await value(`SELECT array_agg(xmin::text ORDER BY id) FROM item WHERE id <= 10`), before); // it has continued behind them
    assert.equal(await value('SELECT sum(price)::int FROM item'), 325);
});

server.closeAllConnections();
server.close();
await il.close();
await pool.end();
await client.end();
console.log(`1..${check.count}`);
