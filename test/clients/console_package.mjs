// The package of the console, as somebody installs it who has neither a clone nor a registry with pg-interlock: packed from the sources,
// installed in an empty folder and started by npx. Prints TAP. Connects as the environment says (PGHOST, PGPORT, PGUSER, PGDATABASE).
// express and pg come from the cache of npm, else from the registry.
//
// npm: typescript@5 @types/node @aws-lambda-powertools/idempotency

import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { cpSync, existsSync, mkdtempSync, readFileSync, readdirSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { check } from './lib/page.mjs';

const sources = `${process.cwd()}/sources`, shop = mkdtempSync(`${tmpdir()}/shop-`);
for (const part of ['console', 'clients/node', 'script']) cpSync(`${process.env.ROOT}/${part}`, `${sources}/${part}`, { recursive: true, filter: (path) => !/node_modules/.test(path) });
const run = (command, args, cwd) => execFileSync(command, args, { cwd, encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'] });
const read = (file) => JSON.parse(readFileSync(file, 'utf8'));
const installed = `${shop}/node_modules/pg-interlock-console`;

await check('npm pack puts the package for Node.js into the archive', () => {
    run('npm', ['pack', '--silent', '--pack-destination', shop], `${sources}/console`);
    assert.deepEqual(readdirSync(shop), [`pg-interlock-console-${read(`${sources}/console/package.json`).version}.tgz`]);
    const names = run('tar', ['-tf', readdirSync(shop)[0]], shop).split('\n');
    for (const name of ['server.mjs', 'public/index.html', 'node_modules/pg-interlock/package.json', 'node_modules/pg-interlock/dist/index.mjs'])
        assert.ok(names.includes(`package/${name}`), name);
    assert.deepEqual(names.filter((name) => /demo|bundle$|\.ts$/.test(name) && !name.endsWith('.d.ts')), []);
});

await check('npm installs it in an empty folder', () => {
    run('npm', ['install', '--prefer-offline', '--no-audit', '--no-fund', '--loglevel=error', `./${readdirSync(shop)[0]}`], shop);
    const { packages } = read(`${shop}/package-lock.json`);
    assert.deepEqual(Object.keys(packages).filter((path) => path.endsWith('/pg-interlock')), ['node_modules/pg-interlock-console/node_modules/pg-interlock']);
    assert.equal(packages['node_modules/pg-interlock-console/node_modules/pg-interlock'].inBundle, true);
    assert.equal(read(`${installed}/node_modules/pg-interlock/package.json`).version, read(`${process.env.ROOT}/clients/node/package.json`).version);
    assert.equal(existsSync(`${shop}/node_modules/express`), true);
});

await check('npx opens it, and it answers', async () => {
    const child = spawn('npx', ['pg-interlock-console', '--port', '0'], { cwd: shop, stdio: ['ignore', 'pipe', 'inherit'], detached: true });
    try {
        const url = await new Promise((found, failed) => {
            child.stdout.once('data', (data) => found(String(data).trim()));
            child.once('exit', (code) => failed(new Error(`it has ended: ${code}`)));
        });
        assert.match(url, /^http:\/\/127\.0\.0\.1:\d+\/$/);
        const page = await (await fetch(url)).text();
        assert.equal((await fetch(`${url}${/src="([^"]+)"/.exec(page)[1]}`)).status, 200);
        const state = await (await fetch(`${url}api/state`)).json();
        assert.deepEqual([state.installed, state.database, state.actions], [true, process.env.PGDATABASE, false]);
        assert.equal((await fetch(`${url}api/read/held`)).status, 200);
    } finally {
        process.kill(-child.pid);
    }
});

console.log(`1..${check.count}`);
