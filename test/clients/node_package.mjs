// clients/node, as a shop installs it: built, packed, installed from its archive, and its own tests run on that.
// Prints TAP. Connects as the environment says (PGHOST, PGPORT, PGUSER, PGDATABASE).
//
// npm: typescript pg postgres express fastify hono @hono/node-server @opentelemetry/api @types/node @types/pg @types/express
// npm: @verrou/core @aws-lambda-powertools/idempotency @node-idempotency/core

import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { cpSync, readdirSync } from 'node:fs';
import { build, compile, install, pack } from './lib/package.mjs';
import { check } from './lib/page.mjs';

const shop = `${process.cwd()}/shop`;
let archive;
await check('it is built by tsc, without a word', () => assert.equal(compile(), ''));
await check('its archive has what a shop needs, and nothing else', () => {
    const packed = pack();
    archive = packed.archive;
    for (const name of ['package.json', 'README.md', 'LICENSE', 'dist/index.js', 'dist/index.mjs', 'dist/index.d.ts', 'dist/index.d.mts', 'dist/verrou.mjs', 'dist/redlock.d.ts', 'dist/prisma.mjs'])
        assert.ok(packed.names.includes(name), name);
    assert.deepEqual(packed.names.filter((name) => !/^(package\.json|README\.md|LICENSE|dist\/[\w-]+(\.d)?\.m?[jt]s)$/.test(name)), []);
});
await check('it is installed without a registry, and brings nothing along', () => {
    install(archive, shop);
    assert.deepEqual(readdirSync(`${shop}/node_modules`).filter((name) => !name.startsWith('.')), ['pg-interlock']);
});

cpSync(`${build}/test`, `${shop}/test`, { recursive: true });
cpSync(`${build}/README.md`, `${shop}/README.md`);
cpSync(`${process.env.ROOT}/docs/guide/leases.md`, `${shop}/leases.md`);
for (const file of readdirSync(`${shop}/test`).filter((name) => name.endsWith('.test.mjs'))) {
    const database = `shop_${file.split('.')[0]}`;
    execFileSync('createdb', [database]);
    execFileSync('psql', ['-qXd', database, '-c', 'CREATE EXTENSION pg_interlock']);
    const { stdout, status } = spawnSync(process.execPath, ['--test-reporter=tap', `test/${file}`],
        { cwd: shop, encoding: 'utf8', env: { ...process.env, PGDATABASE: database }, stdio: ['ignore', 'pipe', 'inherit'] });
    const results = stdout.split(/^(?=(?:not )?ok \d+)/m).slice(1);
    for (const result of results) {
        const [line, ...rest] = result.split('\n');
        await check(`${file.split('.')[0]}: ${line.replace(/^(not )?ok \d+ - /, '')}`, () => assert.ok(line.startsWith('ok'), rest.join('\n')));
    }
    if (status !== 0 || results.length === 0) await check(`${file} runs to its end`, () => assert.ok(results.some((result) => result.startsWith('not ok')), stdout));
    execFileSync('dropdb', ['--force', database]);
}
console.log(`1..${check.count}`);
