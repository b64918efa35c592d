// The package as a module: import and require, its types, spans.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { createRequire } from 'node:module';
import { dirname } from 'node:path';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import test from 'node:test';
import { metrics, trace } from '@opentelemetry/api';
import * as imported from 'pg-interlock';
import { fresh, one, run, value } from './lib/shop.mjs';

test('import and require are one package', () => {
    const required = createRequire(import.meta.url)('pg-interlock');
    for (const [name, each] of Object.entries(required)) assert.equal(imported[name], each, name);
    assert.ok(Object.keys(required).length > 25);
});

test('an error of a second copy is of the same class', () => {
    const require = createRequire(import.meta.url);
    const other = require.resolve('pg-interlock');
    for (const name of Object.keys(require.cache)) if (name.startsWith(dirname(other))) delete require.cache[name];
    const copy = require(other);
    assert.notEqual(copy.StaleVersion, imported.StaleVersion);
    const error = new copy.StaleVersion('x');
    assert.ok(error instanceof imported.StaleVersion && error instanceof imported.InterlockError && error instanceof Error);
    assert.ok(!(error instanceof imported.Held) && !(new Error('x') instanceof imported.InterlockError));
    class Own extends imported.StaleVersion {}
    assert.ok(new Own('x') instanceof Own && new Own('x') instanceof imported.StaleVersion && !(error instanceof Own));
});

test('a pool that is none is refused', () => {
    for (const none of [undefined, null, {}, 'postgres://', () => {}]) assert.throws(() => imported.interlock(none), TypeError);
});

const program = `
import pg from 'pg';
import postgres from 'postgres';
import express from 'express';
import fastify from 'fastify';
import { Hono } from 'hono';
import { interlock, StaleVersion, type Interlock, type Lease } from 'pg-interlock';
import { InterlockStorage } from 'pg-interlock/node-idempotency';
import { InterlockPersistenceLayer } from 'pg-interlock/powertools';
import Redlock, { type Lock } from 'pg-interlock/redlock';
import { interlockStore } from 'pg-interlock/verrou';
import { Verrou } from '@verrou/core';
import { IdempotencyConfig, makeIdempotent } from '@aws-lambda-powertools/idempotency';
import { Idempotency } from '@node-idempotency/core';

const il = interlock(new pg.Pool());
const typed: Interlock<pg.PoolClient> = il;
const n: number = await il.lease(['report', 7], { ttl: '30 s', wait: 60 }, async (lease: Lease<pg.PoolClient>) => {
    lease.signal.throwIfAborted();
    const { rows } = await lease.transaction((tx) => tx.query<{ id: number }>('SELECT 1 AS id'));
    return rows[0]!.id;
});
{
    await using lease = await typed.acquire('x');
    const token: string = lease.token;
    void token;
}
const { outcome, value } = await il.once('scope', ['a', 1], { a: 1 }, async (tx) => { await tx.query('SELECT 1'); return { id: n }; });
const id: number = value.id;
void outcome; void id;

const app = express();
app.post('/x', express.json(), il.express<express.Request, express.Response>('scope', { user: (req) => req.get('X-User') }, async (req, res, tx) => {
    await tx.query('SELECT 1');
    res.status(201).json(req.body);
}));
const server = fastify();
server.post('/x', il.fastify('scope', { user: (request) => String(request.headers['x-user']) }, async (_request, reply, tx) => {
    await tx.query('SELECT 1');
    return reply.code(201).send({});
}));
const hono = new Hono();
hono.post('/x', il.hono('scope', { user: (c) => c.req.header('X-User') }, async (_c, tx) => { await tx.query('SELECT 1'); return new Response(); }));

const sql = postgres();
const js = interlock(sql);
await js.lease('x', {}, (lease) => lease.transaction(async (tx) => { await tx\`SELECT 1\`; }));
await js.claim<{ id: number }>('job', { match: { queue: 'mail' } }, async ({ id: job }, { done }) => { void job; void done; });
const edit = await js.edit('page', 1, 'anna', { ttl: '5 min' });
edit.on('taken', (holder: string) => void holder);
try { await js.save('page', 1, '7', {}); } catch (error) { if (error instanceof StaleVersion) console.log(error.current?.body, error.version); }
const { ran } = await js.job('nightly', 'day', { staleAfter: '1 min' }, async (run) => { await run.done(async (tx) => { await tx\`SELECT 1\`; }, run.attempt + 1); });
for await (const { rows, changes } of il.watch('page')) console.log(ran, rows[0]?.holder, changes.map(({ event }) => event));
await il.cart('c', 60).confirm((tx) => tx.query('SELECT 1'), { items: [] });
new Verrou({ default: 'pg', stores: { pg: { driver: interlockStore({ connection: new pg.Pool() }) }, js: { driver: interlockStore({ connection: sql }) } } });
const lock: Lock = await new Redlock(sql, { retryCount: 1 }).acquire(['a'], 1000);
await lock.release();
makeIdempotent(async (order: { id: number }) => order.id, { persistenceStore: new InterlockPersistenceLayer({ pool: new pg.Pool(), scope: 's' }), config: new IdempotencyConfig({}) });
new Idempotency(new InterlockStorage({ pool: sql, scope: 's' }), {});
// @ts-expect-error a query of pg is none of postgres.js
await js.transaction((tx) => tx.query('SELECT 1'));
// @ts-expect-error the user is required
il.express('scope', {}, () => {});
`;

test('tsc --strict takes a program of its users, as a module and as CommonJS', () => {
    const directory = mkdtempSync(new URL('../types-', import.meta.url).pathname);
    try {
        writeFileSync(`${directory}/program.mts`, program);
        writeFileSync(`${directory}/program.cts`, `import { interlock } from 'pg-interlock';\nimport { Pool } from 'pg';\nexport const row = async () => (await interlock(new Pool()).read('page', 1)).row;\n`);
        const options = '--strict --noEmit --target es2022 --lib es2023,esnext.disposable --module nodenext --types node --skipLibCheck';
        const { stdout } = spawnSync('npx', ['tsc', ...options.split(' '), 'program.mts', 'program.cts'], { cwd: directory, encoding: 'utf8' });
        assert.equal(stdout, '');
    } finally {
        rmSync(directory, { recursive: true });
    }
});

test('the types of the package need those of no driver', () => {
    const directory = mkdtempSync(new URL('../types-', import.meta.url).pathname);
    try {
        writeFileSync(`${directory}/program.mts`, `import { interlock } from 'pg-interlock';\nexport { interlock };\n`);
        const listed = spawnSync('npx', ['tsc', ...'--strict --noEmit --listFiles --target es2022 --lib es2023,esnext.disposable --module nodenext --types node'.split(' '), 'program.mts'], { cwd: directory, encoding: 'utf8' }).stdout;
        const read = listed.split('\n').filter((line) => line !== '');
        assert.deepEqual(read.filter((line) => /error TS|node_modules\/(@types\/(pg|express)|postgres|fastify|hono|@opentelemetry)\//.test(line)), []);
        assert.ok(read.some((line) => line.endsWith('dist/interlock.d.ts')));
    } finally {
        rmSync(directory, { recursive: true });
    }
});

test('calls are spans of OpenTelemetry', async () => {
    const ended = [];
    const tracer = {
        startActiveSpan(name, { attributes }, work) {
            const span = { name, attributes: { ...attributes }, status: { code: 0 }, exceptions: [] };
            return work({
                setAttribute(attribute, given) { span.attributes[attribute] = given; },
                recordException(error) { span.exceptions.push(error.message); },
                setStatus(status) { span.status = status; },
                end() { ended.push(span); },
            });
        },
    };
    assert.ok(trace.setGlobalTracerProvider({ getTracer: () => tracer }));
    const counts = {};
    const counter = (name) => ({ add(n, attributes) { const of = [name, ...Object.values(attributes)].join(' '); counts[of] = (counts[of] ?? 0) + n; } });
    assert.ok(metrics.setGlobalMeterProvider({ getMeter: () => ({ createCounter: counter }) }));
    await run(`SELECT interlock.grant_idempotency_scope('traced', 'app')`);
    await one(async ({ il }) => {
        const key = fresh('traced');
        await il.lease(key, {}, async () => { await il.lease(key, {}, () => assert.fail()).catch(() => {}); });
        await il.lease(key, {}, async () => { throw new RangeError('of the work'); }).catch(() => {});
        await il.once('traced', key, 1, async () => 1);
        const spans = ended.map(({ name, status, attributes }) => [name, status.code, attributes['error.type'] ?? attributes['interlock.outcome']]);
        assert.deepEqual(spans, [['interlock.acquire', 0, undefined], ['interlock.acquire', 0, 'Held'], ['interlock.lease', 0, 'Held'], ['interlock.lease', 0, undefined],
            ['interlock.acquire', 0, undefined], ['interlock.lease', 2, 'RangeError'], ['interlock.once', 0, 'completed']]);
        assert.deepEqual(counts, { 'interlock.calls interlock.acquire': 2, 'interlock.calls interlock.acquire Held': 1, 'interlock.calls interlock.lease': 1,
            'interlock.calls interlock.lease Held': 1, 'interlock.calls interlock.lease RangeError': 1, 'interlock.calls interlock.once': 1 });
        assert.deepEqual(ended.flatMap(({ exceptions }) => exceptions), ['of the work']);
        assert.equal(ended[0].attributes['interlock.key'], key);
        assert.equal(await value('SELECT count(*)::int FROM interlock.leases WHERE key = $1', key), 0);
    });
});
