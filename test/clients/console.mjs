// The console, in a browser: what it shows of a server at work, five incidents of docs/operations/runbook.md that it cures, and what it
// refuses. It runs on a server of its own, which is also stopped, is not preloaded, and is a standby. Prints TAP.
// With PICTURES=docs/operations/console it also makes the pictures of docs/operations/console.md.
// only with --all
//
// needs: chromium fonts-dejavu-core
// npm: typescript pg express @types/node @aws-lambda-powertools/idempotency playwright-core axe-core

import assert from 'node:assert/strict';
import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { request } from 'node:http';
import { resolve } from 'node:path';
import pg from 'pg';
import { chromium } from 'playwright-core';
import { compile, install, pack } from './lib/package.mjs';
import { check, eventually } from './lib/page.mjs';

const { startServer } = await import(`${process.env.ROOT}/clients/node/test/lib/server.mjs`);
const program = `${process.env.ROOT}/console`, shop = `${process.cwd()}/shop`;
const pictures = process.env.PICTURES && resolve(process.env.ROOT, process.env.PICTURES);
if (pictures) mkdirSync(pictures, { recursive: true });
compile();
install(pack().archive, shop);
cpSync(program, shop, { recursive: true });

const own = await startServer();
const socket = `${own.options.host}/.s.PGSQL.5432`;
const env = { ...process.env, PGHOST: own.options.host, PGPORT: '5432', PGDATABASE: 'postgres', DATABASE_URL: '', CONSOLE_PASSWORD: '' };
const connect = async (options = {}) => {
    const client = new pg.Client({ ...own.options, ...options });
    await client.on('error', () => {}).connect();
    return client;
};
let client = await connect();
const value = async (sql, ...values) => Object.values((await client.query(sql, values)).rows[0] ?? {})[0];

// --- Consoles and tabs ---

const children = new Set();
function start(file, { args = [], ...options } = {}) {
    const child = spawn(process.execPath, [file, ...args], { cwd: shop, stdio: ['ignore', 'pipe', 'ignore'], ...options });
    children.add(child.once('exit', () => children.delete(child)));
    return new Promise((found, failed) => {
        child.stdout.once('data', (data) => found({ child, line: String(data).split('\n')[0] }));
        child.once('exit', (code) => failed(new Error(`${file} has ended: ${code}`)));
    });
}
async function serve(user, { args = [], ...more } = {}) {
    const { child, line } = await start('server.mjs', { args: ['--port', '0', ...args], env: { ...env, PGUSER: user, ...more } });
    return { child, url: line };
}

const browser = await chromium.launch({ executablePath: '/usr/bin/chromium', args: ['--no-sandbox'] });
const wrong = []; // what no page may do
async function tab({ url }, options = {}, ...script) {
    const context = await browser.newContext({ viewport: { width: 1180, height: 760 }, deviceScaleFactor: 1.5, locale: 'en-GB', ...options });
    if (script.length) await context.addInitScript(...script);
    const page = await context.newPage();
    page.setDefaultTimeout(180_000);
    page.on('pageerror', (error) => wrong.push(String(error)));
    page.on('dialog', (dialog) => { wrong.push(dialog.message()); void dialog.dismiss(); });
    page.on('console', (message) => { if (/Content Security Policy|Trusted/i.test(message.text())) wrong.push(message.text()); });
    page.base = url;
    return page;
}
async function go(page, place, params = {}) {
    await page.goto(`${page.base}#/${place}?${new URLSearchParams(params)}`);
    await page.locator('#content:not([aria-busy])', { hasNotText: 'Reading…' }).waitFor();
}
const button = (page, name) => page.getByRole('button', { name, exact: true });
const shows = (page, text) => page.locator('#content').getByText(text).first().waitFor();
const row = (page, text) => page.locator('#content tbody tr', { hasText: text }).first();
async function act(page, name, reason, { to, terminate, clicks = 1 } = {}) {
    if (to) await page.getByLabel('New holder').fill(to);
    if (terminate) await page.getByLabel('End the sessions').check();
    await page.getByLabel('Reason, which is recorded').fill(reason);
    await page.locator('#act').getByRole('button', { name, exact: true }).click({ clickCount: clicks });
}
async function done(page) {
    await page.locator('#act:not([open]), #act-error:not([hidden])').first().waitFor({ state: 'attached' });
    assert.equal(await page.locator('#act[open] #act-error').allInnerTexts().then(String), '');
}
const audited = (reason) => value('SELECT count(*)::int FROM interlock.audit WHERE reason = $1', reason);
const picture = async (page, name) => {
    await page.mouse.move(0, 0);
    if (pictures) await page.screenshot({ path: `${pictures}/${name}.png` });
};
async function accessible(page, what) {
    await page.evaluate(readFileSync('node_modules/axe-core/axe.min.js', 'utf8'));
    const { violations } = await page.evaluate(() => globalThis.axe.run());
    assert.deepEqual(violations.map(({ id, nodes }) => [id, nodes.map(({ html }) => html)]), [], what);
}
const places = ['overview', 'holds', 'waiting', 'stuck', 'stock', 'hot', 'guards', 'history', 'audit', 'writes'];

// --- The program ---

await check('the server is less than 300 lines, and the package has what it imports', () => {
    assert.ok(readFileSync(`${program}/server.mjs`, 'utf8').split('\n').length < 300);
    const [{ files }] = JSON.parse(execFileSync('npm', ['pack', '--json', '--dry-run', '--silent', '--ignore-scripts'], { cwd: shop, encoding: 'utf8' }));
    const names = new Set(files.map(({ path }) => path));
    for (const name of ['server.mjs', 'queries.mjs', 'actions.mjs', 'public/index.html', 'public/app.js', 'public/pages.js', 'public/hot.js', 'public/lib.js', 'public/style.css'])
        assert.ok(names.has(name), name);
    assert.ok(!names.has('demo.mjs'));
    const [{ dependencies, version: ours }, { version }] = [`${program}/package.json`, `${process.env.ROOT}/clients/node/package.json`].map((file) => JSON.parse(readFileSync(file, 'utf8')));
    assert.deepEqual([dependencies['pg-interlock'], ours], [version, version]);
});

await check('no file writes HTML', () => {
    for (const name of ['app.js', 'pages.js', 'hot.js', 'lib.js'])
        assert.doesNotMatch(readFileSync(`${program}/public/${name}`, 'utf8'), /innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(/, name);
});

await check('it refuses other addresses without a password or a proxy, and wrong options', () => {
    const run = (args, more = {}) => {
        const { status, stderr, stdout } = spawnSync(process.execPath, ['server.mjs', ...args], { cwd: shop, env: { ...env, ...more }, encoding: 'utf8' });
        return [status, stderr + stdout];
    };
    for (const host of ['0.0.0.0', '::', '192.0.2.1', 'example.org', '']) assert.match(run(['--host', host]).join(' '), /^2 .*set CONSOLE_PASSWORD, or name the header/, host);
    assert.match(run(['--what']).join(' '), /^2 pg-interlock-console: Unknown option/);
    for (const port of ['x', '70000', '-1']) assert.match(run([`--port=${port}`]).join(' '), /^2 .*takes a number/, port);
    assert.match(run(['--user-header', 'a b']).join(' '), /^2 .*takes the name of a header/);
    assert.match(run(['--help']).join(' '), /^0 A console for pg_interlock/);
});

// --- A server at work ---

await client.query('CREATE EXTENSION pg_interlock');
await start('demo.mjs', { env: { ...env, PGUSER: 'postgres' } });
const relid = await value(`SELECT 'page'::regclass::oid::text`);
await client.query(`
    CREATE SCHEMA other;
    CREATE TABLE other."hostile"" <img src=x onerror=alert(1)>
'name" (id text PRIMARY KEY, "<b>state</b>" text, body text);
    SELECT interlock.enable_marker(rel), interlock.enable_history(rel), interlock.define_transitions(rel, '<b>state</b>', '{"<script>alert(2)</script>": ["\u202edone"]}')
      FROM (SELECT oid::regclass AS rel FROM pg_class WHERE relname LIKE 'hostile%' AND relkind = 'r') t;
    CREATE ROLE nobody LOGIN; CREATE ROLE "o'n""call <i>" LOGIN IN ROLE oncall`);
const reader = await serve('oncall'), operator = await serve('oncall', { args: ['--allow-actions'] });
const page = await tab(operator);

await check('a strict CSP on every answer, and no answer under another name', async () => {
    for (const path of ['', 'app.js', 'api/state', 'api/read/held', 'api/read/nothing', 'nothing']) {
        const { headers } = await fetch(reader.url + path), policy = headers.get('content-security-policy');
        assert.match(policy, /^default-src 'none'; script-src 'self';.*require-trusted-types-for 'script'/, path);
        assert.doesNotMatch(policy, /unsafe|\*|https?:/, path);
        assert.equal(headers.get('x-content-type-options'), 'nosniff');
    }
    const { port } = new URL(reader.url);
    const under = (host) => new Promise((found, failed) => request({ port, path: '/api/state', headers: { host } }, ({ statusCode }) => found(statusCode)).on('error', failed).end());
    assert.equal((await fetch(`${reader.url}api/read/held`, { headers: { 'Sec-Fetch-Site': 'cross-site' } })).status, 403, 'a picture of another site');
    assert.deepEqual(await Promise.all(['rebound.example', `localhost:${port}`, '[::1]:1', '127.0.0.1.example'].map(under)), [421, 200, 200, 421]);
});

await check('a request of another site changes nothing', async () => {
    const { token } = await (await fetch(`${operator.url}api/state`)).json();
    const first = await fetch(`${operator.url}api/state`), cookie = first.headers.get('set-cookie');
    assert.match(cookie, /^console=[0-9a-f]{32}; Path=\/; HttpOnly; SameSite=Strict$/);
    const ours = (await first.json()).token, json = 'application/json';
    const post = async (headers, { url } = operator, reason = 'x') => (await fetch(`${url}api/act/break-all`, { method: 'POST', headers: { cookie: cookie.split(';')[0], ...headers },
        body: JSON.stringify({ pattern: '%', reason }) })).status;
    assert.equal(await post({ 'Content-Type': json }), 403, 'no token');
    assert.equal(await post({ 'Content-Type': json, 'X-CSRF-Token': token }), 403, 'the token of another cookie');
    assert.equal(await post({ 'Content-Type': 'text/plain', 'X-CSRF-Token': ours }), 403, 'a form');
    assert.equal(await post({ 'Content-Type': json, 'X-CSRF-Token': ours, 'Sec-Fetch-Site': 'cross-site' }), 403, 'another site');
    assert.equal(await post({ 'Content-Type': json, 'X-CSRF-Token': ours, cookie: '' }), 403, 'no cookie');
    assert.equal(await post({ 'Content-Type': json, 'X-CSRF-Token': ours }, operator, ' '), 400, 'no reason');
    assert.equal(await value('SELECT count(*)::int FROM interlock.lease_audit'), 0);
    const about = await fetch(`${reader.url}api/state`), { token: last } = await about.json();
    assert.equal(await post({ 'Content-Type': json, 'X-CSRF-Token': last, cookie: about.headers.get('set-cookie').split(';')[0] }, reader), 403, 'it only reads');
});

await check('on another address: a password, or the header of a proxy', async () => {
    const guarded = await serve('oncall', { args: ['--host', '0.0.0.0', '--allow-actions'], CONSOLE_PASSWORD: 'geheim:ü' });
    const at = `http://127.0.0.1:${new URL(guarded.url).port}/`, as = (text) => ({ authorization: `Basic ${Buffer.from(text).toString('base64')}` });
    for (const path of ['', 'app.js', 'api/state', 'api/read/held']) assert.equal((await fetch(at + path)).status, 401, path);
    for (const text of ['', 'anna', 'anna:', 'anna:geheim', 'anna:geheim:ü ']) assert.equal((await fetch(at, { headers: as(text) })).status, 401, text);
    assert.equal((await (await fetch(`${at}api/state`, { headers: as('anna:geheim:ü') })).json()).user, 'anna');
    const behind = await serve('oncall', { args: ['--host', '0.0.0.0', '--user-header', 'X-User'] }), there = `http://127.0.0.1:${new URL(behind.url).port}/api/state`;
    assert.equal((await fetch(there)).status, 401);
    assert.equal((await (await fetch(there, { headers: { 'X-User': 'bert' } })).json()).user, 'bert');
    const proxied = (host) => new Promise((found, failed) => request(there, { headers: { host, 'X-User': 'bert' } }, ({ statusCode }) => found(statusCode)).on('error', failed).end());
    assert.deepEqual(await Promise.all(['rebound.example', 'console.example'].map(proxied)), [421, 421], 'under another name a page could name a user itself');
    guarded.child.kill();
    behind.child.kill();
    const named = await serve('oncall', { args: ['--user-header', 'X-User', '--name', 'console.example'] });
    const underName = (host) => new Promise((found, failed) => request(`${named.url}api/state`, { headers: { host, 'X-User': 'bert' } }, ({ statusCode }) => found(statusCode)).on('error', failed).end());
    assert.deepEqual(await Promise.all(['rebound.example', 'console.example'].map(underName)), [421, 200]);
    named.child.kill();
});

await check('policies of other roles are not run with the rights of the console', async () => {
    await client.query(`CREATE ROLE spy; CREATE TABLE watched (id int PRIMARY KEY, body text); ALTER TABLE watched OWNER TO spy;
        CREATE SCHEMA spy AUTHORIZATION spy; ALTER TABLE watched SET SCHEMA spy; SET ROLE spy; SELECT interlock.enable_history('spy.watched');
        INSERT INTO spy.watched VALUES (1, 'a'); CREATE FUNCTION spy.spy() RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'the policy runs'; END $$;
        CREATE POLICY p ON spy.watched_history USING (spy.spy()); ALTER TABLE spy.watched_history ENABLE ROW LEVEL SECURITY;
        GRANT USAGE ON SCHEMA spy TO PUBLIC; GRANT SELECT ON spy.watched, spy.watched_history TO PUBLIC; RESET ROLE`);
    const answer = await fetch(`${reader.url}api/read/history?key=1&relid=${await value(`SELECT 'spy.watched'::regclass::oid::text`)}`);
    assert.equal(answer.status, 403);
    assert.match((await answer.json()).title, /Another role has policies/);
    await client.query('DROP SCHEMA spy CASCADE; DROP ROLE spy');
});

await check('each page, by axe, on a wide screen and on a phone, light and dark', async () => {
    const phone = await tab(reader, { viewport: { width: 390, height: 800 }, colorScheme: 'dark' });
    for (const place of places) {
        await go(page, place, place === 'history' ? { relid, key: '7' } : {});
        await accessible(page, place);
        assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), 1180, place);
        await go(phone, place, place === 'history' ? { relid, key: '7' } : {});
        await accessible(phone, `${place} on a phone`);
        assert.equal(await phone.evaluate(() => document.documentElement.scrollWidth), 390, place);
    }
    await go(phone, 'holds', { kind: 'row_marker' });
    assert.equal(await row(phone, 'anna').locator('td').first().evaluate((cell) => getComputedStyle(cell).display), 'grid', 'a row is a card');
    await picture(phone, '6-phone');
    await phone.context().close();
});

await check('the overview says what needs somebody', async () => {
    await client.query(`ALTER SYSTEM SET interlock.sweeper = off`);
    await client.query('SELECT pg_reload_conf()');
    await go(page, 'overview');
    await shows(page, /3 sessions wait, the longest for/);
    await shows(page, '1 table or setting is not protected as asked');
    await shows(page, /long leases belong to roles without a session/);
    await shows(page, 'The sweeper is off');
    assert.equal(await page.locator('.cards li', { hasText: 'Lease' }).first().innerText(), '65\nLeases'.replace('65', await value(`SELECT count(*)::text FROM interlock.held WHERE kind = 'lease'`)));
    await picture(page, '1-overview');
    await client.query('ALTER SYSTEM RESET interlock.sweeper');
    await client.query('SELECT pg_reload_conf()');
});

await check('chains: who waits behind whom, and the statement that ends the first', async () => {
    await go(page, 'waiting');
    const chain = page.locator('.chain');
    assert.equal(await chain.count(), 1);
    assert.match(await chain.locator('.head').innerText(), /^shop 1 process \d+, role app/);
    assert.match(await chain.locator('.tree > li > .wait').innerText(), /^shop 2 process \d+ waits for Row public.orders \(0,20\)/);
    assert.deepEqual((await chain.locator('.tree ul .wait').allInnerTexts()).map((text) => text.slice(0, 6)).sort(), ['shop 3', 'shop 4']);
    await picture(page, '2-waiting');
    const oncall = await connect({ user: 'oncall' });
    await oncall.query(await chain.locator('code').first().innerText());
    await oncall.end();
    await chain.waitFor({ state: 'detached' });
    await shows(page, 'Nobody waits.');
});

await check('sessions that wait for each other in a circle', async () => {
    const [one, two] = await Promise.all(['round 1', 'round 2'].map((application_name) => connect({ application_name })));
    for (const [session, id] of [[one, 1], [two, 2]]) await session.query(`SET deadlock_timeout = '1 h'; BEGIN; SELECT interlock.lock_key('round:${id}')`);
    const ends = [one.query(`SELECT interlock.lock_key('round:2')`), two.query(`SELECT interlock.lock_key('round:1')`)].map((query) => query.catch(() => {}));
    const chain = page.locator('.chain', { hasText: 'wait for each other' });
    await chain.waitFor();
    assert.deepEqual((await chain.locator('.wait').allInnerTexts()).map((text) => text.slice(0, 7)).sort(), ['round 1', 'round 2']);
    await client.query(await chain.locator('code').first().innerText());
    await Promise.all(ends.concat(one.end().catch(() => {}), two.end().catch(() => {})));
    await shows(page, 'Nobody waits.');
});

await check('incident: leases are nearly full', async () => {
    await go(page, 'stuck');
    await row(page, 'import').getByRole('button', { name: 'Break all' }).click();
    await act(page, 'Break all', 'the import does not release');
    await done(page);
    await page.getByText('60 leases were broken.').waitFor();
    assert.equal(await value(`SELECT count(*)::int FROM interlock.leases WHERE role = 'importer'`), 0);
    assert.equal(await audited('the import does not release'), 60);
});

await check('incident: leases of a team that is gone', async () => {
    await row(page, 'reports').filter({ hasText: 'no session' }).getByRole('button', { name: 'Break all' }).click();
    await act(page, 'Break all', 'the team reports is gone');
    await done(page);
    assert.equal(await value(`SELECT count(*)::int FROM interlock.leases WHERE role = 'reports'`), 0);
    assert.equal(await audited('the team reports is gone'), 3);
});

await check('incident: a lease is pinned', async () => {
    await row(page, 'worker 1').getByRole('button', { name: 'Break' }).click();
    await act(page, 'Break', 'worker 1 hangs');
    await page.locator('#act-error', { hasText: 'report:daily' }).waitFor();
    await accessible(page, 'a refused break');
    await picture(page, '3-break');
    await act(page, 'Break', 'worker 1 hangs', { terminate: true });
    await done(page);
    assert.equal(await value(`SELECT count(*)::int FROM interlock.lease_of('report:daily')`), 0);
    assert.equal(await audited('worker 1 hangs'), 1);
});

await check('incident: claims are stale', async () => {
    await row(page, 'order-17').getByRole('button', { name: 'Forget' }).click();
    await act(page, 'Forget', 'the provider knows of no payment');
    await done(page);
    assert.equal(await value(`SELECT count(*)::int FROM interlock.idempotency WHERE key = 'order-17' AND expires_at > clock_timestamp()`), 0);
    assert.equal(await audited('the provider knows of no payment'), 1);
    await shows(page, 'No claim is open.');
});

await check('incident: a document was left open', async () => {
    await go(page, 'holds', { kind: 'row_marker', q: 'anna' });
    await row(page, 'anna').getByRole('button', { name: 'Release' }).click();
    await act(page, 'Release', 'anna is on holiday');
    await done(page);
    assert.equal(await value(`SELECT locked FROM interlock.row_lock_of('page', 7)`), false);
    assert.equal(await audited('anna is on holiday'), 1);
    await shows(page, 'No hold matches.');
});

await check('a row is taken over for another holder', async () => {
    await go(page, 'holds', { kind: 'row_marker' });
    await row(page, 'bert').getByRole('button', { name: 'Take over' }).click();
    await accessible(page, 'a dialog');
    await act(page, 'Take over', 'bert asked carl', { to: 'carl', clicks: 2 });
    await done(page);
    assert.equal(await value(`SELECT holder FROM interlock.row_lock_of('page', 12)`), 'carl');
    assert.equal(await audited('bert asked carl'), 1);
});

await check('whoever came meanwhile loses nothing', async () => {
    await client.query(`SELECT interlock.acquire_lease('report:new', '1 h', holder => 'old'), interlock.idempotency_claim('pay', 'order-18')`);
    await go(page, 'holds', { q: 'report:new' });
    await button(page, 'Break').click();
    await client.query(`SELECT interlock.break_lease('report:new', 'test'), interlock.acquire_lease('report:new', '1 h', holder => 'new')`);
    await act(page, 'Break', 'too late');
    await page.locator('#act-error', { hasText: 'has another holder by now' }).waitFor();
    await button(page, 'Cancel').click();
    await go(page, 'holds', { kind: 'row_marker', q: 'carl' });
    await button(page, 'Release').click();
    await client.query(`SELECT interlock.hand_over_row('page', 12, 'carl', 'dora')`);
    await act(page, 'Release', 'too late');
    await page.locator('#act-error', { hasText: 'dora. Nothing was changed.' }).waitFor();
    await button(page, 'Cancel').click();
    await go(page, 'stuck', { q: 'order-18' });
    await row(page, 'order-18').getByRole('button', { name: 'Forget' }).click();
    await client.query(`SELECT interlock.idempotency_forget('pay', 'order-18', 'test', true), interlock.idempotency_claim('pay', 'order-18')`);
    await act(page, 'Forget', 'too late');
    await page.locator('#act-error', { hasText: 'was made again by now' }).waitFor();
    await button(page, 'Cancel').click();
    assert.deepEqual([await value(`SELECT holder FROM interlock.lease_of('report:new')`), await value(`SELECT holder FROM interlock.row_lock_of('page', 12)`),
        await value(`SELECT count(*)::int FROM interlock.idempotency WHERE key = 'order-18' AND expires_at > clock_timestamp()`), await audited('too late')], ['new', 'dora', 1, 0]);
});

await check('hot tables and keys over time', async () => {
    await go(page, 'hot');
    const line = row(page, 'public.orders');
    await line.locator('polyline').waitFor();
    assert.match(await line.innerText(), /versioning\s+[\d,]+\s+[\d,]+\s+\d+ %/);
    const rate = Number.parseFloat(await line.locator('td').nth(7).innerText());
    assert.ok(rate > 0, `${rate}`);
    if (pictures) await eventually(async () => (await line.locator('polyline').getAttribute('points')).split(' ').length > 6);
    await picture(page, '4-hot');
});

await check('findings, with a statement that helps', async () => {
    await go(page, 'guards', { severity: 'broken' });
    await page.context().grantPermissions(['clipboard-read', 'clipboard-write']);
    const finding = page.locator('.findings li', { hasText: 'public.invoice' });
    await finding.getByRole('button', { name: /^Copy/ }).click();
    const sql = await page.evaluate(() => navigator.clipboard.readText());
    assert.equal(sql, 'ALTER TABLE public.invoice ENABLE TRIGGER zzz_interlock_version');
    await client.query(sql);
    await page.getByText('Nothing was found.').waitFor();
    await shows(page, 'versioning');
});

await check('history of a row: who, and what differs', async () => {
    await go(page, 'history', { relid, key: '{"id": 7}' });
    const entry = page.locator('.history li', { hasText: 'Opening hours' });
    assert.match(await entry.locator('p').innerText(), /^update anna .* version 3, role app$/);
    assert.deepEqual(await entry.locator('dt').allInnerTexts(), ['body', 'title', 'version']);
    assert.deepEqual(await entry.locator('dd').first().locator('del, ins').allInnerTexts(), ['Monday to Friday: 9 to 5', 'Monday to Friday: 9 to 6']);
    await picture(page, '5-history');
    await page.getByLabel('Key: a value').fill('no number');
    await button(page, 'Show').click();
    await shows(page, /invalid input syntax/);
});

await check('the audit has all of it', async () => {
    await go(page, 'audit', { kind: 'break' });
    await shows(page, 'worker 1 hangs');
    await page.getByLabel('Search').fill('reports is gone');
    await button(page, 'Show').click();
    await eventually(async () => await page.locator('tbody tr').count() === 3);
});

// --- What others have made ---

await check('hostile names and texts are shown as they are', async () => {
    const rel = await value(`SELECT oid::text FROM pg_class WHERE relname LIKE 'hostile%' AND relkind = 'r'`);
    const name = await value('SELECT $1::oid::regclass::text', rel);
    const holder = `<img src=x onerror=alert(3)>"'\n\u202egnp.exe\u200b`, key = `{"a": "</td><script>alert(4)</script>"}`;
    await client.query(`INSERT INTO ${name} VALUES ($1, '<script>alert(2)</script>', 'a'), ('{"id": 1}', NULL, NULL)`, [key]);
    await client.query(`GRANT USAGE ON SCHEMA other TO oncall; GRANT UPDATE ON ${name} TO oncall`);
    await client.query('SELECT interlock.lock_row($1::oid::regclass, $2::text, $3)', [rel, key, holder]);
    await client.query(`UPDATE ${name} SET body = $1 WHERE id = $2`, [`<svg onload=alert(5)>${holder}`, key]).catch(() => {});
    await client.query('SELECT interlock.acquire_lease($1, 60, holder => $2)', [`<img src=x onerror=alert(6)>\r\n%_\\`, holder]);
    await client.query(`SELECT interlock.define_idempotency_scope('<i>scope</i>'), interlock.idempotency_claim('<i>scope</i>', $1)`, [holder]);
    for (const [place, params] of [['holds', { q: 'onerror' }], ['stuck', {}], ['guards', { q: 'hostile' }], ['history', { relid: rel, key: JSON.stringify({ id: key }) }], ['audit', { q: 'hostile' }]]) {
        await go(page, place, params);
        await shows(page, place === 'audit' || place === 'guards' ? /hostile/ : /onerror|alert/);
        assert.equal(await page.locator('img, #content script, #content i, #content b, #content svg[onload]').count(), 0, place);
        await accessible(page, `hostile names in ${place}`);
    }
    await go(page, 'holds', { kind: 'row_marker', q: 'hostile' });
    const shown = await row(page, 'onerror').innerText();
    for (const part of [`<img src=x onerror=alert(3)>"'`, 'U+000A', 'U+202E', 'U+200B', 'hostile"" <img src=x onerror=alert(1)>']) assert.ok(shown.includes(part), `${part} in ${shown}`);
    assert.ok(!/[\u202e\u200b]/.test(shown));
    await row(page, 'onerror').getByRole('button', { name: 'Release' }).click();
    await act(page, 'Release', `<b>"'; DROP TABLE page; --`);
    await done(page);
    assert.equal(await value('SELECT locked FROM interlock.row_lock_of($1::oid::regclass, $2::text)', rel, key), false);
    await go(page, 'stuck');
    await row(page, '<i>scope</i>').getByRole('button', { name: 'Forget' }).click();
    await act(page, 'Forget', 'hostile');
    await done(page);
    await row(page, 'onerror=alert(6)').getByRole('button', { name: 'Break all' }).click();
    await act(page, 'Break all', 'hostile');
    await done(page);
    await page.getByText('1 lease was broken.').waitFor();
    assert.equal(await value('SELECT count(*)::int FROM page'), 40);
});

await check('right-to-left and combining characters, and a megabyte of text', async () => {
    const holder = '\u05e2\u05b2\u05e0\u05b8\u05ea e\u0301 \u1112\u1161\u11ab Z\u0351\u036b', long = `${'x'.repeat(99)}\n`.repeat(10_000);
    await client.query('SELECT interlock.acquire_lease($1, 60, holder => $2)', ['\u0627\u0644\u0639\u0631\u0628\u064a\u0629', holder]);
    await go(page, 'holds', { kind: 'lease', q: holder });
    await shows(page, '1 hold');
    assert.equal(await page.locator('#content tbody bdi', { hasText: 'e\u0301' }).first().innerText(), holder);
    await client.query('UPDATE page SET body = $1 WHERE id = 30', [long]);
    await client.query(`SELECT interlock.set_holder('gina'); UPDATE page SET body = 'short' WHERE id = 30`);
    await go(page, 'history', { relid, key: '30' });
    const entry = page.locator('.history li', { hasText: 'gina' });
    assert.match(await entry.locator('del').first().innerText(), /^x{99}/);
    const answer = await (await fetch(`${reader.url}api/read/history?key=30&relid=${relid}`)).text();
    assert.ok(answer.length < 100_000, `${answer.length}`);
});

await check('a clock that is ten minutes off shows the times of the server', async () => {
    await client.query(`SELECT interlock.acquire_lease('clock', '5 min')`);
    for (const minutes of [-10, 10]) {
        const view = await tab(reader, {}, (ms) => {
            const Right = Date;
            globalThis.Date = class extends Right {
                constructor(...args) { super(...args.length ? args : [Right.now() + ms]); }
                static now() { return Right.now() + ms; }
            };
        }, minutes * 60_000);
        await go(view, 'holds', { q: 'clock' });
        assert.match(await row(view, 'clock').locator('time').last().innerText(), /^in ([1-5] min|\d+ s)$/, `${minutes} minutes`);
        assert.match(await row(view, 'clock').locator('time').first().innerText(), /^([\d.]+ s|[1-4] min) ago$/, `${minutes} minutes`);
        await view.context().close();
    }
});

await check('right with 100,000 holds, by pages of the server', async () => {
    await client.query(`CREATE TABLE big (id int PRIMARY KEY); INSERT INTO big SELECT generate_series(1, 100000); SELECT interlock.enable_marker('big');
        UPDATE big SET lock_status = 1, lock_by = 'worker ' || id % 7, lock_time = now(), lock_until = now() + interval '1 h'`);
    await go(page, 'holds', { kind: 'row_marker', sort: 'name', q: 'public.big' });
    await shows(page, '100,000 holds');
    assert.equal(await page.locator('#content tbody tr').count(), 50);
    const first = await row(page, 'public.big').innerText();
    await page.getByRole('link', { name: 'Last' }).click();
    await shows(page, '99,951 to 100,000 of 100,000');
    assert.equal(await page.locator('#content tbody tr').count(), 50);
    assert.notEqual(await row(page, 'public.big').innerText(), first);
    await page.getByLabel('Search').fill('{"id": 77777}');
    await button(page, 'Show').click();
    await shows(page, '1 hold');
    await client.query('DROP TABLE big');
    await shows(page, 'No hold matches.');
});

await check('a table that is dropped while it is shown', async () => {
    await client.query(`CREATE TABLE gone (id int PRIMARY KEY); INSERT INTO gone VALUES (1); SELECT interlock.enable_marker('gone'), interlock.enable_history('gone'), interlock.lock_row('gone', 1, 'erna');
        GRANT SELECT, UPDATE ON gone TO oncall`);
    await go(page, 'holds', { q: 'erna' });
    await button(page, 'Release').click();
    const oid = await value(`SELECT 'gone'::regclass::oid::text`);
    await client.query('DROP TABLE gone');
    await act(page, 'Release', 'dropped');
    await page.locator('#act-error:not([hidden])').waitFor();
    await button(page, 'Cancel').click();
    await go(page, 'history', { relid: oid, key: '1' });
    await page.locator('#content .note').waitFor();
    await go(page, 'holds');
    await shows(page, /hold/);
});

await check('by keyboard alone', async () => {
    await client.query(`SELECT interlock.lock_row('page', 20, 'fred')`);
    await page.goto('about:blank');
    await go(page, 'overview');
    await page.keyboard.press('Tab');
    assert.equal(await page.evaluate(() => document.activeElement.className), 'skip');
    await page.getByRole('link', { name: 'Holds', exact: true }).press('Enter');
    await page.getByLabel('Search').focus();
    await page.keyboard.type('fred');
    await page.keyboard.press('Enter');
    await eventually(async () => await button(page, 'Release').count() === 1); // what was found is shown
    await button(page, 'Release').focus();
    const held = await page.locator('time').first().innerText();
    await eventually(async () => await page.locator('time').first().innerText() !== held);
    assert.equal(await page.evaluate(() => document.activeElement.textContent), 'Release', 'the focus survives a new reading');
    await page.keyboard.press('Enter');
    await page.keyboard.press('Escape');
    await page.locator('#act').waitFor({ state: 'hidden' });
    await page.keyboard.press('Enter');
    await page.getByLabel('Reason, which is recorded').waitFor();
    await page.getByLabel('Reason, which is recorded').focus();
    await page.keyboard.type('by keys');
    await page.keyboard.press('Enter');
    await done(page);
    assert.equal(await audited('by keys'), 1);
    await button(page, 'Pause').press('Enter');
    assert.equal(await button(page, 'Pause').getAttribute('aria-pressed'), 'true');
    await button(page, 'Pause').press('Enter');
});

// --- What a role may not see, and servers that lack something ---

await check('no rights at all: what is hidden is said, with the statement that shows it', async () => {
    const poor = await serve('nobody', { args: ['--allow-actions'] }), view = await tab(poor);
    for (const place of places) {
        await go(view, place);
        await accessible(view, `${place} without rights`);
        assert.equal(await view.getByRole('button', { name: /^(Break|Break all|Release|Take over|Forget)$/ }).count(), 0, place);
    }
    await go(view, 'overview');
    await shows(view, 'GRANT pg_monitor TO "nobody"');
    await shows(view, `SELECT interlock.grant_access('monitor', 'nobody')`);
    await shows(view, 'permission denied for view sweeper');
    await go(view, 'stuck');
    await shows(view, 'permission denied for table idempotency');
    await view.context().close();
    poor.child.kill();
    const strange = await serve(`o'n"call <i>`), other = await tab(strange);
    await go(other, 'overview');
    assert.equal(await other.locator('#where').innerText(), `postgres as o'n"call <i>`);
    await client.query((await other.locator('.hidden-list code').allInnerTexts()).join(';'));
    await other.context().close();
    strange.child.kill();
});

await check('a database without the extension, or with views of others in its place', async () => {
    await client.query('CREATE DATABASE bare');
    const bare = await serve('postgres', { PGDATABASE: 'bare', args: ['--allow-actions'] }), view = await tab(bare);
    await go(view, 'holds');
    await shows(view, 'The database bare does not have the extension pg_interlock.');
    await accessible(view, 'not installed');
    const other = await connect({ database: 'bare' });
    await other.query(`CREATE SCHEMA interlock; CREATE FUNCTION interlock.trap() RETURNS int LANGUAGE plpgsql AS 'BEGIN RAISE ''sprung''; END';
        CREATE VIEW interlock.blocking AS SELECT interlock.trap() AS pid; CREATE VIEW interlock.held AS SELECT interlock.trap() AS kind`);
    await other.end();
    const answer = await fetch(`${bare.url}api/read/held`);
    assert.deepEqual([answer.status, (await answer.json()).title], [404, 'The database bare does not have the extension pg_interlock.']);
    await view.context().close();
    bare.child.kill();
});

await check('a database that goes away and comes back', async () => {
    await go(page, 'holds');
    renameSync(socket, `${socket}.away`);
    await client.query(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'pg-interlock-console'`);
    await page.getByText('The database cannot be reached').waitFor();
    assert.ok(await page.locator('#content tbody tr').count() > 0, 'the old content is still there');
    renameSync(`${socket}.away`, socket);
    await page.locator('#offline').waitFor({ state: 'hidden' });
    assert.equal(await page.locator('#content.old').count(), 0);
});

await check('a server that is not preloaded, and a standby', async () => {
    await client.query(readFileSync(`${process.env.ROOT}/examples/editor/schema.sql`, 'utf8'));
    await client.query('ALTER SYSTEM SET shared_preload_libraries = plpgsql');
    await client.end();
    await own.restart('fast');
    for (const place of places) {
        await go(page, place);
        await shows(page, 'The library is not preloaded');
    }
    client = await connect();
    const document = async (method, path, body) => {
        const answer = await fetch(`${editor.line}api/documents${path}`, { method, body: body && JSON.stringify(body), headers: { 'Content-Type': 'application/json', 'X-User': 'Anna', 'X-Tab': '00000001' } });
        return { status: answer.status, ...await answer.json() };
    };
    cpSync(`${process.env.ROOT}/examples/editor`, `${shop}/editor`, { recursive: true });
    const editor = await start('editor/server.mjs', { env: { ...env, PGUSER: 'app', PORT: '0' } });
    const { status, version } = await document('POST', '/1/edit', {});
    assert.equal(status, 200, 'the editor needs no preloading');
    assert.equal((await document('PUT', '/1', { title: 'a', body: 'b', version })).status, 200);
    await client.query('ALTER SYSTEM RESET shared_preload_libraries');
    await client.end();
    writeFileSync(`${own.options.host}/data/standby.signal`, '');
    await own.restart('fast');
    for (const place of places) {
        await go(page, place);
        await shows(page, 'This server is a standby');
        assert.equal(await page.getByRole('button', { name: /^(Break|Break all|Release|Take over|Forget)$/ }).count(), 0, place);
    }
    await accessible(page, 'a standby');
    const about = await fetch(`${operator.url}api/state`), { token } = await about.json();
    const refused = await fetch(`${operator.url}api/act/break`, { method: 'POST', body: JSON.stringify({ key: 'clock', reason: 'test' }),
        headers: { 'Content-Type': 'application/json', 'X-CSRF-Token': token, cookie: about.headers.get('set-cookie').split(';')[0] } });
    assert.deepEqual([refused.status, (await refused.json()).title], [409, 'This server is a standby: nothing can be changed here. Connect to the primary.']);
    assert.equal((await fetch(`${reader.url}api/read/held`)).status, 200);
    await eventually(async () => (await document('GET', '/1')).status === 200); // it has connected again
    assert.deepEqual([(await document('POST', '/1/edit', {})).status, editor.child.exitCode], [503, null], 'the editor keeps the text, and tries again');
    client = await connect();
});

await check('no page has broken a rule', () => assert.deepEqual(wrong, []));

await browser.close();
for (const child of children) child.kill('SIGKILL');
await client.end();
await own.stop();
console.log(`1..${check.count}`);
