// Idempotent endpoints of Express, Fastify and Hono: one list of what a client meets, for each of them.

import assert from 'node:assert/strict';
import http from 'node:http';
import { once } from 'node:events';
import { Readable } from 'node:stream';
import test from 'node:test';
import express from 'express';
import fastify from 'fastify';
import { Hono } from 'hono';
import { admin, each, eventually, fresh, one, run, sleep, value } from './lib/shop.mjs';

await run('CREATE TABLE payment (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, customer text, amount int CHECK (amount > 0))',
    `SELECT interlock.define_idempotency_scope('pay', ttl => '1 h', max_response_bytes => 20000)`, `SELECT interlock.grant_idempotency_scope('pay', 'app')`);
const payments = () => value('SELECT count(*)::int FROM payment');
const insert = async (rows, tx, customer, amount) => (await rows(tx, 'INSERT INTO payment (customer, amount) VALUES ($1::text, $2::text::int) RETURNING id', customer, String(amount)))[0].id;

// What the handlers do, by the amount: each framework has the same ones.
const gates = new Map();
const gate = (name) => gates.get(name) ?? gates.set(name, Promise.withResolvers?.() ?? resolvers()).get(name);
function resolvers() { const made = {}; made.promise = new Promise((resolve, reject) => Object.assign(made, { resolve, reject })); return made; }
const arrived = new Set();

const frameworks = {
    async express(il, rows, options) {
        const app = express();
        app.use((req, res, next) => { res.set('X-Request-Id', String(Math.random())); next(); }, express.json(), express.raw({ type: 'application/octet-stream' }));
        app.post(['/payments', '/other'], il.express('pay', { user: (req) => req.get('X-User'), ...options }, async (req, res, tx) => {
            const { amount, name, status = 201 } = req.body;
            if (amount === undefined) return res.status(200).type('application/octet-stream').send(req.body);
            const id = await insert(rows, tx, req.get('X-User'), amount);
            if (name) { arrived.add(name); await gate(name).promise; }
            if (status === 'next') throw Object.assign(new Error('refused'), { status: 400 });
            if (status === 'stream') {
                res.writeHead(201, { 'Content-Type': 'text/plain', Location: `/payments/${id}` });
                return Readable.from(['one ', 'two ', 'three']).pipe(res);
            }
            if (status === 'never') return undefined;
            res.status(status).location(`/payments/${id}`).cookie('session', 'secret').json({ id, amount });
            return undefined;
        }));
        app.use((error, req, res, next) => { res.status(error.status ?? 500).json({ error: error.message }); void next; });
        const server = app.listen(0);
        await once(server, 'listening');
        return { port: server.address().port, close: () => { server.closeAllConnections(); server.close(); } };
    },
    async fastify(il, rows, options) {
        const app = fastify();
        app.addContentTypeParser('application/octet-stream', { parseAs: 'buffer' }, (request, body, done) => done(null, body));
        app.addHook('onRequest', async (request, reply) => { reply.header('X-Request-Id', String(Math.random())); });
        const route = il.fastify('pay', { user: (request) => request.headers['x-user'], ...options }, async (request, reply, tx) => {
            const { amount, name, status = 201 } = request.body;
            if (amount === undefined) return reply.code(200).type('application/octet-stream').send(request.body);
            const id = await insert(rows, tx, request.headers['x-user'], amount);
            if (name) { arrived.add(name); await gate(name).promise; }
            if (status === 'next') throw Object.assign(new Error('refused'), { statusCode: 400 });
            if (status === 'stream') return reply.code(201).header('Location', `/payments/${id}`).type('text/plain').send(Readable.from(['one ', 'two ', 'three']));
            if (status === 'never') return new Promise(() => {});
            reply.code(status).header('Location', `/payments/${id}`).header('Set-Cookie', 'session=secret');
            return { id, amount };
        });
        app.post('/payments', route);
        app.post('/other', route);
        await app.listen({ port: 0 });
        return { port: app.server.address().port, close: () => app.close() };
    },
    async hono(il, rows, options) {
        const { serve } = await import('@hono/node-server');
        const app = new Hono();
        app.use(async (c, next) => { await next(); c.header('X-Request-Id', String(Math.random())); });
        app.on('POST', ['/payments', '/other'], il.hono('pay', { user: (c) => c.req.header('X-User'), ...options }, async (c, tx) => {
            if (c.req.header('Content-Type') === 'application/octet-stream') return c.body(await c.req.arrayBuffer(), 200, { 'Content-Type': 'application/octet-stream' });
            const { amount, name, status = 201 } = await c.req.json();
            const id = await insert(rows, tx, c.req.header('X-User'), amount);
            if (name) { arrived.add(name); await gate(name).promise; }
            if (status === 'next') throw Object.assign(new Error('refused'), { status: 400 });
            if (status === 'stream') return c.body(Readable.toWeb(Readable.from([Buffer.from('one '), Buffer.from('two '), Buffer.from('three')])), 201, { 'Content-Type': 'text/plain', Location: `/payments/${id}` });
            if (status === 'never') return new Promise(() => {});
            c.header('Set-Cookie', 'session=secret');
            c.header('Location', `/payments/${id}`);
            return c.json({ id, amount }, status);
        }));
        app.onError((error, c) => c.json({ error: error.message }, error.status ?? 500));
        const server = serve({ fetch: app.fetch, port: 0 });
        await once(server, 'listening');
        return { port: server.address().port, close: () => { server.closeAllConnections(); server.close(); } };
    },
};

// Calls body(post, ...) for each framework on node-postgres, or as said.
function forEach(name, body, { clients = one, options = {}, pool = {} } = {}) {
    for (const [framework, serve] of Object.entries(frameworks)) {
        test(`${framework}: ${name}`, async () => {
            await clients(async ({ il, rows, driver }) => {
                await run('TRUNCATE payment RESTART IDENTITY');
                const { port, close } = await serve(il, rows, options);
                const post = (key, sent, { user = 'anna', path = '/payments', headers = {} } = {}) => fetch(`http://127.0.0.1:${port}${path}`, {
                    method: 'POST', redirect: 'manual', body: sent instanceof Uint8Array ? sent : JSON.stringify(sent), headers: {
                        'Content-Type': sent instanceof Uint8Array ? 'application/octet-stream' : 'application/json',
                        ...(key === undefined ? {} : { 'Idempotency-Key': key }), ...(user ? { 'X-User': user } : {}), ...headers,
                    },
                });
                try {
                    await body(post, { port, driver, framework });
                } finally {
                    await close();
                }
            }, { pool });
        });
    }
}

forEach('no key, or one that is none, is 400', async (post) => {
    for (const key of [undefined, '', '""', 'with a blank', 'a, b', 'x'.repeat(10_000), 'k\u00fc', '"open']) {
        const response = await post(key, { amount: 1 });
        assert.deepEqual([response.status, response.headers.get('content-type')], [400, 'application/problem+json'], key);
    }
    assert.equal(await payments(), 0);
});

forEach('two headers are 400', async (post, { port }) => {
    const request = http.request({ port, path: '/payments', method: 'POST', headers: [['Content-Type', 'application/json'], ['X-User', 'anna'],
        ['Idempotency-Key', 'one'], ['Idempotency-Key', 'two'], ['Content-Length', '2']].flat() });
    request.end('{}');
    const [response] = await once(request, 'response');
    response.resume();
    assert.equal(response.statusCode, 400);
});

forEach('the second request gets the status, headers and bytes of the first', async (post) => {
    const key = fresh('key').replaceAll(' ', '-');
    const first = await post(`"${key}"`, { amount: 10 });
    const bytes = await first.text();
    assert.deepEqual([first.status, first.headers.get('location'), first.headers.get('idempotent-replayed')], [201, '/payments/1', null]);
    assert.match(first.headers.get('set-cookie'), /secret/);
    for (const again of [`"${key}"`, key]) {
        const second = await post(again, { amount: 10 });
        assert.deepEqual([second.status, second.headers.get('location'), second.headers.get('idempotent-replayed'), await second.text()], [201, '/payments/1', 'true', bytes]);
        assert.equal(second.headers.get('content-type'), first.headers.get('content-type'));
        assert.equal(second.headers.get('set-cookie'), null); // a secret of one answer
        assert.ok(second.headers.get('x-request-id') !== first.headers.get('x-request-id')); // not of the handler
    }
    assert.equal(await payments(), 1);
}, { clients: each });

forEach('another request is 422; another user or route is another key; no user is 401', async (post) => {
    const key = fresh('key').replaceAll(' ', '-');
    const first = await post(key, { amount: 10 });
    assert.equal(first.status, 201);
    assert.equal((await post(key, { amount: 99 })).status, 422);
    assert.equal((await post(key, { amount: 10 }, { path: '/payments?x=1' })).status, 422);
    assert.equal((await post(key, { amount: 99 }, { user: 'bert' })).status, 201);
    assert.equal((await post(key, { amount: 99 }, { path: '/other' })).status, 201);
    assert.equal((await post(key, { amount: 10 }, { user: null })).status, 401);
    assert.equal(await payments(), 3);
});

forEach('a repeated click is 409 with Retry-After while the first one works', async (post) => {
    const key = fresh('key').replaceAll(' ', '-');
    const sent = { amount: 10, name: key };
    const first = post(key, sent);
    await eventually(() => arrived.has(key));
    for (const again of await Promise.all([1, 2, 3].map(() => post(key, sent)))) {
        assert.deepEqual([again.status, again.headers.get('retry-after')], [409, '1']);
    }
    gate(key).resolve();
    assert.equal((await first).status, 201);
    assert.equal((await post(key, sent)).headers.get('idempotent-replayed'), 'true');
    assert.equal(await payments(), 1);
});

forEach('a client that goes away while its request works: the answer is kept for its next one', async (post, { port }) => {
    const key = fresh('key').replaceAll(' ', '-');
    const sent = JSON.stringify({ amount: 10, name: key });
    const request = http.request({ port, path: '/payments', method: 'POST', headers: { 'Content-Type': 'application/json', 'Idempotency-Key': key, 'X-User': 'anna' } });
    request.on('error', () => {});
    request.end(sent);
    await eventually(() => arrived.has(key));
    request.destroy();
    await sleep(50);
    gate(key).resolve();
    await eventually(async () => await payments() === 1);
    const again = await post(key, JSON.parse(sent));
    assert.deepEqual([again.status, again.headers.get('idempotent-replayed'), (await again.json()).amount], [201, 'true', 10]);
    assert.equal(await payments(), 1);
});

forEach('a handler that throws leaves nothing, and its key is free', async (post) => {
    const key = fresh('key').replaceAll(' ', '-');
    assert.equal((await post(key, { amount: 10, status: 'next' })).status, 400);
    assert.equal((await post(key, { amount: -1 })).status, 500); // a constraint
    assert.equal(await payments(), 0);
    assert.equal((await post(key, { amount: 10 })).status, 201);
    assert.equal(await payments(), 1);
}, { clients: each });

forEach('an answer of 500 and more leaves nothing; one below is kept, with its effect', async (post) => {
    const key = fresh('key').replaceAll(' ', '-');
    assert.equal((await post(key, { amount: 10, status: 502 })).status, 502);
    assert.equal(await payments(), 0);
    assert.equal((await post(key, { amount: 10, status: 402 })).status, 402);
    const again = await post(key, { amount: 10, status: 402 });
    assert.deepEqual([again.status, again.headers.get('idempotent-replayed')], [402, 'true']);
    assert.equal(await payments(), 1);
});

forEach('bytes are kept as they are, and bodies of bytes are compared', async (post) => {
    const key = fresh('key').replaceAll(' ', '-');
    const bytes = Buffer.from([0, 255, 128, 10, 13, 0]);
    for (const replayed of [null, 'true']) {
        const response = await post(key, bytes);
        assert.deepEqual([response.status, response.headers.get('idempotent-replayed')], [200, replayed]);
        assert.deepEqual(Buffer.from(await response.arrayBuffer()), bytes);
    }
    assert.equal((await post(key, Buffer.from([1]))).status, 422);
});

forEach('a body that is no JSON is an error of the client or the handler, and its key is free', async (post, { port }) => {
    const key = fresh('key').replaceAll(' ', '-');
    const headers = { 'Content-Type': 'application/json', 'Idempotency-Key': key, 'X-User': 'anna' };
    for (const body of ['{"amount": ', '\0', 'null']) {
        const response = await fetch(`http://127.0.0.1:${port}/payments`, { method: 'POST', headers, body });
        assert.ok(response.status >= 400, body);
    }
    assert.equal(await payments(), 0);
    assert.equal((await post(key, { amount: 10 })).status, 201);
});

forEach('a body of 50 MB is refused by its parser, or is hashed as it is', async (post, { framework }) => {
    const key = fresh('key').replaceAll(' ', '-');
    const large = Buffer.alloc(50_000_000, 7);
    if (framework === 'hono') { // it has no limit of its own
        assert.equal((await (await post(key, large)).arrayBuffer()).byteLength, large.length);
        large[large.length - 1] = 8;
        assert.equal((await post(key, large)).status, 422);
    } else {
        assert.equal((await post(key, large)).status, 413);
        assert.equal((await post(key, { amount: 10 })).status, 201);
    }
});

forEach('a body in chunks that ends in between never reaches the handler', async (post, { port }) => {
    const key = fresh('key').replaceAll(' ', '-');
    const headers = { 'Content-Type': 'application/json', 'Idempotency-Key': key, 'X-User': 'anna', 'Transfer-Encoding': 'chunked' };
    const request = http.request({ port, path: '/payments', method: 'POST', headers });
    const gone = new Promise((resolve) => { request.on('close', resolve); });
    request.on('error', () => {});
    request.write('{"amount": 10');
    await sleep(50);
    request.destroy();
    await gone;
    const whole = http.request({ port, path: '/payments', method: 'POST', headers });
    whole.write('{"amount"');
    await sleep(20);
    whole.end(': 11}');
    const [response] = await once(whole, 'response');
    response.resume();
    assert.deepEqual([response.statusCode, await value('SELECT amount FROM payment')], [201, 11]);
});

forEach('an answer that is streamed is kept whole', async (post) => {
    const key = fresh('key').replaceAll(' ', '-');
    for (const replayed of [null, 'true']) {
        const response = await post(key, { amount: 10, status: 'stream' });
        assert.deepEqual([response.status, response.headers.get('idempotent-replayed'), await response.text()], [201, replayed, 'one two three']);
        assert.equal(response.headers.get('location'), '/payments/1');
    }
    assert.equal(await payments(), 1);
});

forEach('an answer that is too large to be kept is repeated without its body, and not made again', async (post) => {
    const key = fresh('key').replaceAll(' ', '-');
    const large = Buffer.alloc(30_000, 7);
    assert.equal((await (await post(key, large)).arrayBuffer()).byteLength, 30_000);
    const again = await post(key, large);
    assert.deepEqual([again.status, again.headers.get('idempotent-replayed'), await again.text()], [200, 'true', '']);
});

forEach('a handler that never ends is 503, and its transaction is rolled back', async (post) => {
    const key = fresh('key').replaceAll(' ', '-');
    assert.equal((await post(key, { amount: 10, status: 'never' })).status, 503);
    assert.equal(await payments(), 0);
    await eventually(async () => await value(`SELECT count(*)::int FROM pg_stat_activity WHERE usename = 'app' AND state = 'idle in transaction'`) === 0);
}, { options: { timeout: '1 s' }, pool: { max: 1 } });

forEach('fifty requests at once on a pool of one', async (post) => {
    const key = fresh('key').replaceAll(' ', '-');
    const statuses = await Promise.all(Array.from({ length: 50 }, async () => (await post(key, { amount: 10 })).status));
    assert.deepEqual(new Set(statuses), new Set([201]));
    assert.equal(await payments(), 1);
}, { pool: { max: 1 } });

test('express: a body that nobody has read is an error, not a request without a body', async () => {
    await one(async ({ il }) => {
        const app = express();
        app.post('/payments', il.express('pay', { user: () => 'anna' }, () => assert.fail()));
        app.use((error, req, res, next) => { res.status(500).send(error.message); void next; });
        const server = app.listen(0);
        await once(server, 'listening');
        const response = await fetch(`http://127.0.0.1:${server.address().port}/payments`, { method: 'POST', body: '{}', headers: { 'Idempotency-Key': 'k' } });
        assert.deepEqual([response.status, /express\.json\(\)/.test(await response.text())], [500, true]);
        server.closeAllConnections();
        server.close();
    });
});

test('nothing is left in a transaction', async () => {
    const { rows } = await admin.query(`SELECT query FROM pg_stat_activity WHERE usename = 'app' AND state LIKE 'idle in transaction%' AND datname = current_database()`);
    assert.deepEqual(rows, []);
});
