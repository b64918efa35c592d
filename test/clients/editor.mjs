// The program of examples/editor, in a browser: several people edit, collide, merge, hand over, take over and lose a lock. Its server
// runs on the package from its archive, as the role app. Prints TAP. Connects as the environment says (PGHOST, PGPORT, PGUSER,
// PGDATABASE). With PICTURES=docs/guide/editing it also makes the pictures of docs/guide/editing.md.
//
// needs: chromium fonts-dejavu-core
// npm: typescript pg express @types/node @aws-lambda-powertools/idempotency playwright-core axe-core

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { cpSync, mkdirSync, readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import pg from 'pg';
import { chromium } from 'playwright-core';
import { compile, install, pack } from './lib/package.mjs';
import { check, eventually } from './lib/page.mjs';

const program = `${process.env.ROOT}/examples/editor`, shop = `${process.cwd()}/shop`;
const pictures = process.env.PICTURES && resolve(process.env.ROOT, process.env.PICTURES);
const client = new pg.Client();
await client.connect();
await client.query(readFileSync(`${program}/schema.sql`, 'utf8'));
const value = async (sql, ...values) => Object.values((await client.query(sql, values)).rows[0] ?? {})[0];
const bodyOf = (id) => value('SELECT body FROM document WHERE id = $1', id);
const holderOf = (id) => value(`SELECT holder FROM interlock.row_lock_of('document', $1::int) WHERE locked`, id);
compile();
install(pack().archive, shop);
cpSync(program, shop, { recursive: true });

// --- Servers and tabs ---

const servers = new Set();
async function serve(port = 0) {
    const child = spawn(process.execPath, ['server.mjs'], { cwd: shop, env: { ...process.env, PGUSER: 'app', PORT: String(port) }, stdio: ['ignore', 'pipe', 'inherit'] });
    servers.add(child);
    const [line] = await new Promise((found, failed) => {
        child.stdout.once('data', (data) => found(String(data).split('\n')));
        child.once('exit', (code) => failed(new Error(`the server has ended: ${code}`)));
    });
    return { child, url: line, port: new URL(line).port };
}
async function end({ child }) {
    const ended = new Promise((resolve) => child.once('exit', resolve));
    child.kill('SIGKILL');
    await ended;
    servers.delete(child);
}

const browser = await chromium.launch({ executablePath: '/usr/bin/chromium', args: ['--no-sandbox'] });
const wrong = []; // what no page may do
async function tab(server, user, document, options = {}, ...script) {
    const context = await browser.newContext({ viewport: { width: 1040, height: 700 }, deviceScaleFactor: 1.5, locale: 'en-GB', ...options });
    if (script.length) await context.addInitScript(...script);
    const page = await context.newPage();
    context.setDefaultTimeout(180_000);
    page.on('pageerror', (error) => wrong.push(`${user}: ${error}`));
    page.on('dialog', (dialog) => { wrong.push(`${user}: ${dialog.message()}`); void dialog.dismiss(); });
    page.on('console', (message) => { if (/Content Security Policy|Trusted/i.test(message.text())) wrong.push(`${user}: ${message.text()}`); });
    await page.goto(`${server.url}?${new URLSearchParams({ user, document })}`);
    await page.locator('#history li').first().waitFor();
    return page;
}
const close = (...pages) => Promise.all(pages.map((page) => page.context().close()));
const button = (page, name) => page.getByRole('button', { name, exact: true });
const shows = (page, text) => page.getByText(text).first().waitFor();
const canWrite = (page) => page.locator('#body:not([readonly])').waitFor();
const looks = (page) => page.locator('#body[readonly]').waitFor();
async function edit(page) {
    await button(page, 'Edit').click();
    await canWrite(page);
}
async function write(page, text) {
    await page.locator('#body').fill(text);
    await page.locator('#saved', { hasText: /^Saved$/ }).waitFor();
}
const historyIs = async (page, id) => page.locator('#history li').first().filter({ hasText: `version ${await value('SELECT version FROM document WHERE id = $1', id)} ` }).waitFor();
async function finish(page) {
    await button(page, 'Done').click();
    await looks(page);
}
const picture = async (page, name) => {
    await page.mouse.move(0, 0);
    if (pictures) await page.screenshot({ path: `${pictures}/${name}.png` });
};
if (pictures) mkdirSync(pictures, { recursive: true });

async function accessible(page, what) {
    await page.evaluate(readFileSync('node_modules/axe-core/axe.min.js', 'utf8'));
    const { violations } = await page.evaluate(() => globalThis.axe.run());
    assert.deepEqual(violations.map(({ id, nodes }) => [id, nodes.map(({ html }) => html)]), [], what);
}

// --- What a merge is ---

await check('a merge has both changes, or says that they collide', async () => {
    const { merge, joined, conflictsOf, diff } = await import(`${shop}/public/merge.js`);
    const merged = (...texts) => { const parts = merge(...texts); return conflictsOf(parts).length ? null : joined(parts); };
    assert.equal(merged('a\nb\nc', 'A\nb\nc', 'a\nb\nC'), 'A\nb\nC');
    assert.equal(merged('a\nb\nc', 'a\nc', 'a\nb\nc\nd'), 'a\nc\nd');
    assert.equal(merged('a', 'b', 'b'), 'b');
    assert.equal(merged('a\nb', 'x\nb', 'y\nb'), null);
    assert.equal(joined(merge('a\nb', 'x\nb', 'y\nb'), [['y', 'x']]), 'y\nx\nb');
    let seed = 1;
    const random = (n) => (seed = seed * 48271 % 2147483647) % n;
    const text = () => Array.from({ length: random(9) }, () => 'abc'[random(3)]).join('\n');
    for (let i = 0; i < 2000; i++) {
        const [base, one, two] = [text(), text(), text()];
        assert.equal(merged(base, one, base), one);
        assert.equal(merged(base, base, two), two);
        assert.equal(merged(base, one, one), one);
        const parts = merge(base, one, two);
        assert.deepEqual(conflictsOf(parts), conflictsOf(merge(base, two, one)).map(({ base, mine, theirs }) => ({ base, mine: theirs, theirs: mine })));
        const lines = diff(base, one);
        assert.equal(lines.filter(({ kind }) => kind !== 'removed').map(({ line }) => line).join('\n'), one);
        assert.equal(lines.filter(({ kind }) => kind !== 'added').map(({ line }) => line).join('\n'), base);
    }
    const long = Array.from({ length: 50_000 }, (_, i) => `line ${i}`).join('\n');
    assert.equal(merged(long, `first\n${long}`, `${long}\nlast`), `first\n${long}\nlast`);
});

// --- The program ---

let one = await serve();
const two = await serve(); // another process, on the same database

await check('the server is less than 250 lines', () => assert.ok(readFileSync(`${program}/server.mjs`, 'utf8').split('\n').length < 250));

await check('a strict CSP on every answer, and no answer to somebody without a name', async () => {
    for (const path of ['', 'app.js', 'api/documents', 'nothing']) {
        const response = await fetch(one.url + path);
        const policy = response.headers.get('content-security-policy');
        assert.match(policy, /^default-src 'none'; script-src 'self';.*require-trusted-types-for 'script'$/, path);
        assert.doesNotMatch(policy, /unsafe|\*|https?:/, path);
        assert.equal(response.headers.get('x-content-type-options'), 'nosniff');
    }
    assert.equal((await fetch(`${one.url}api/documents`)).status, 400);
    const simple = await fetch(`${one.url}api/documents/1/edit`, { method: 'POST', headers: { 'Content-Type': 'text/plain' }, body: '{}' });
    assert.deepEqual([simple.status, await holderOf(1)], [400, undefined]);
});

let anna = await tab(one, 'Anna', 1), bert = await tab(one, 'Bert', 1);

await check('one edits, the other sees who, for how long, and each change', async () => {
    await shows(bert, 'Nobody edits');
    await edit(anna);
    await shows(bert, 'edits for');
    assert.match(await bert.locator('#people').innerText(), /^Anna edits for [01]:\d\d · You look$/);
    assert.equal(await bert.locator('#body').getAttribute('readonly'), '');
    await anna.locator('#title').fill('Opening hours');
    await write(anna, 'Monday to Friday: 9 to 5\nSaturday: 10 to 2\nSunday: closed\n');
    await bert.waitForFunction(() => document.querySelector('#body').value.startsWith('Monday to Friday'));
    await shows(bert, 'Opening hours');
    await picture(bert, '1-somebody-edits');
    const late = await fetch(`${one.url}api/documents/1`, { method: 'PUT', headers: { 'Content-Type': 'application/json', 'X-User': 'Bert', 'X-Tab': '00000000' },
        body: JSON.stringify({ title: 'x', body: 'x', version: '2', keep: true }) });
    assert.deepEqual([late.status, (await late.json()).name], [423, 'MarkerHeld']);
});

await check('asked for it, the editor saves and hands over', async () => {
    await button(bert, 'Ask Anna for it').click();
    await shows(anna, 'Bert asks for this document.');
    await anna.locator('#body').fill('Monday to Friday: 9 to 6\nSaturday: 10 to 2\nSunday: closed\n');
    await picture(anna, '2-asked');
    await accessible(anna, 'asked');
    await button(anna, 'Save and hand over').click();
    await canWrite(bert);
    await looks(anna);
    assert.match(await bodyOf(1), /^Monday to Friday: 9 to 6/);
    assert.match(await holderOf(1), /^Bert\//);
    assert.match(await bert.locator('#body').inputValue(), /^Monday to Friday: 9 to 6/);
});

await check('taken over with a reason: what was not saved is kept, and merged as others changed other lines', async () => {
    await bert.context().setOffline(true);
    await bert.locator('#body').fill('Monday to Friday: 9 to 6\nSaturday: 10 to 2\nSunday: 11 to 1\n');
    await shows(bert, 'The server cannot be reached');
    await button(anna, 'Take over…').click();
    await accessible(anna, 'the reason of a take over');
    await anna.getByLabel('Reason, which is recorded').fill('Bert is at lunch');
    await picture(anna, '3-take-over');
    await anna.locator('#take-over').getByRole('button', { name: 'Take over', exact: true }).click();
    await canWrite(anna);
    assert.equal(await value(`SELECT reason FROM interlock.audit WHERE action = 'take_over_row'`), 'Bert is at lunch');
    await write(anna, 'Monday to Friday: 8 to 6\nSaturday: 10 to 2\nSunday: closed\n');
    await bert.context().setOffline(false);
    await looks(bert);
    await shows(bert, 'They are kept in this browser.');
    await finish(anna);
    await button(bert, 'Edit and merge them').click();
    await eventually(async () => await bodyOf(1) === 'Monday to Friday: 8 to 6\nSaturday: 10 to 2\nSunday: 11 to 1\n');
    await shows(bert, 'They are merged.');
    await finish(bert);
});

await check('a paused server loses the lock: the same line is a choice between three texts', async () => {
    const carl = await tab(two, 'Carl', 1);
    await edit(anna);
    one.child.kill('SIGSTOP');
    await anna.locator('#body').fill('Monday to Friday: 8 to 6\nSaturday: 10 to 4\nSunday: 11 to 1\nHolidays: closed\n');
    await client.query(`SELECT interlock.touch_row('document', 1, $1, ttl => 0.05)`, [await holderOf(1)]);
    await edit(carl);
    await write(carl, 'Monday to Friday: 8 to 6\nSaturday: 9 to 1\nSunday: 11 to 1\n');
    await finish(carl);
    one.child.kill('SIGCONT');
    await looks(anna);
    assert.match(await bodyOf(1), /Saturday: 9 to 1/);
    await button(anna, 'Edit and merge them').click();
    await shows(anna, 'You and somebody else have changed the same lines');
    const merge = anna.locator('#merge');
    assert.deepEqual(await merge.locator('pre').allInnerTexts(), ['Saturday: 10 to 2', 'Saturday: 10 to 4', 'Saturday: 9 to 1']);
    await accessible(anna, 'a merge');
    await picture(anna, '4-merge');
    await merge.getByLabel('Use theirs').check();
    await button(anna, 'Merge and save').click();
    await eventually(async () => await bodyOf(1) === 'Monday to Friday: 8 to 6\nSaturday: 9 to 1\nSunday: 11 to 1\nHolidays: closed\n');
    await finish(anna);
    await close(carl);
});

await check('text that was typed while the server was down is saved later', async () => {
    await edit(bert);
    await end(one);
    await bert.locator('#body').fill('closed\n');
    await shows(bert, 'The server cannot be reached');
    one = await serve(one.port);
    await eventually(async () => await bodyOf(1) === 'closed\n');
    await finish(bert);
    await eventually(async () => await holderOf(1) === undefined);
});

await check('history says who, shows what changed, and restores', async () => {
    await historyIs(bert, 1);
    const entries = bert.locator('#history li');
    assert.match(await entries.last().innerText(), /^the first author created it/);
    const compare = entries.first().getByRole('button', { name: /^What changed/ });
    await compare.click();
    await entries.first().locator('ins').first().waitFor();
    assert.deepEqual(await entries.first().locator('ins').allInnerTexts(), ['+ closed']);
    assert.equal(await entries.first().locator('del').count(), 4);
    await accessible(bert, 'history');
    await bert.locator('#history-title').evaluate((heading) => heading.scrollIntoView());
    await picture(bert, '5-history');
    await entries.nth(1).getByRole('button', { name: /^Restore/ }).click();
    await eventually(async () => (await bodyOf(1)).endsWith('Holidays: closed\n'));
    await anna.waitForFunction(() => document.querySelector('#body').value.endsWith('Holidays: closed\n'));
});

await check('status: the buttons that are allowed, and why not the others', async () => {
    const dora = await tab(one, 'Dora', 3, { colorScheme: 'dark' });
    await edit(dora);
    await button(dora, '→ review').click();
    await shows(dora, 'the text is empty');
    assert.equal(await button(dora, '→ published').isDisabled(), true);
    await accessible(dora, 'dark');
    await picture(dora, '6-status');
    await write(dora, 'not empty');
    await dora.locator('#status button:enabled', { hasText: 'published' }).click();
    await eventually(async () => await value('SELECT status FROM document WHERE id = 3') === 'published');
    await finish(dora);
    assert.equal(await value(`SELECT writer FROM interlock.row_history('document', 3) WHERE 'status' = ANY (changed) ORDER BY id DESC LIMIT 1`),
        `Dora/${await dora.evaluate(() => sessionStorage.tab)}`);
    await close(dora);
});

await check('hostile names and texts are shown as they are', async () => {
    const name = '<img src=x onerror=alert(1)>', title = `"'><script>alert(2)</script>\u202e`, text = '</textarea><script>alert(3)</script>\n\u05d0\u05d1 e\u0301';
    const mallory = await tab(one, name, 2);
    await edit(mallory);
    await mallory.locator('#title').fill(title);
    await write(mallory, text);
    await anna.locator('#list button', { hasText: '<script>' }).click();
    await shows(anna, 'edits for');
    assert.ok((await anna.locator('#people').innerText()).startsWith(`${name} edits for`));
    assert.equal(await anna.locator('#shown-title').innerText(), title);
    await anna.waitForFunction((wanted) => document.querySelector('#body').value === wanted, text);
    await button(anna, `Ask ${name} for it`).click();
    await finish(mallory);
    await historyIs(anna, 2);
    await anna.locator('#history li').first().getByRole('button', { name: /^What changed/ }).click();
    await anna.locator('#history ins', { hasText: '</textarea>' }).waitFor();
    assert.equal(await anna.locator('img, script:not([src="app.js"])').count(), 0);
    await accessible(anna, 'hostile names');
    await close(mallory);
});

await check('a megabyte of text is saved', async () => {
    const long = `${'x'.repeat(99)}\n`.repeat(10_000);
    await edit(anna);
    await anna.locator('#body').evaluate((body, text) => {     // as pasted; typed keys would take minutes
        body.value = text;
        body.dispatchEvent(new Event('input', { bubbles: true }));
    }, long);
    await anna.locator('#saved', { hasText: /^Saved$/ }).waitFor();
    assert.equal(await bodyOf(2), long);
    await finish(anna);
});

await check('a document that is deleted meanwhile: the text is kept', async () => {
    await bert.locator('#list button', { hasText: 'An empty page' }).click();
    await bert.waitForFunction(() => document.querySelector('#body').value === 'not empty');
    await client.query('DELETE FROM document WHERE id = 3');
    await shows(bert, 'This document was deleted.');
});

const anna2 = await tab(one, 'Anna', 1), emma = await tab(two, 'Emma', 1);

await check('a document that is deleted while somebody types: the text is kept', async () => {
    const id = await value(`INSERT INTO document (title) VALUES ('Soon gone') RETURNING id`), gert = await tab(one, 'Gert', id);
    await edit(gert);
    await gert.context().setOffline(true);
    await gert.locator('#body').fill('typed in a tunnel');
    await shows(gert, 'The server cannot be reached');
    await client.query('BEGIN');
    await client.query('SELECT interlock.set_holder($1)', [await holderOf(id)]);
    await client.query('DELETE FROM document WHERE id = $1', [id]);
    await client.query('COMMIT');
    await gert.context().setOffline(false);
    await shows(gert, 'This document was deleted.');
    await looks(gert);
    assert.equal(await gert.locator('#body').inputValue(), 'typed in a tunnel');
    assert.equal(JSON.parse(await gert.evaluate((key) => localStorage[key], `draft Gert ${id}`)).body, 'typed in a tunnel');
    await close(gert);
});

await check('two tabs of one user are two holders, also when one is a copy of the other', async () => {
    const user = '\u05e2\u05b2\u05e0\u05b8\u05ea e\u0301', first = await tab(one, user, 1);         // Hebrew with points, and a combining accent
    const opened = first.context().waitForEvent('page');
    await first.evaluate(() => { globalThis.open(location.href); });      // as a duplicated tab: it has a copy of sessionStorage
    const second = await opened;
    await second.locator('#history li').first().waitFor();
    assert.notEqual(...await Promise.all([first, second].map((page) => page.evaluate(() => sessionStorage.tab))));
    await edit(first);
    await shows(second, 'You, in another tab,');
    await looks(second);
    await shows(bert.locator('#list'), user);
    const text = 'e\u0301 \u00e9 \u1112\u1161\u11ab Z\u0351\u036b\u0343 \u05d0\u05b8\u05d1 (12) \u0627\u0644\u0639\u0631\u0628\u064a\u0629';
    await write(first, text);
    assert.equal(await bodyOf(1), text, 'no form of Unicode is changed to another one');
    const holder = await holderOf(1);
    await first.reload();
    await first.locator('#history li').first().waitFor();
    assert.equal(await first.evaluate(() => sessionStorage.tab), holder.split('/')[1], 'a reload stays the same tab');
    await edit(first);
    await button(second, 'Take over…').click();
    await second.getByLabel('Reason, which is recorded').fill('I am here');
    await second.locator('#take-over').getByRole('button', { name: 'Take over', exact: true }).dblclick();
    await canWrite(second);
    await looks(first);
    assert.equal(await value(`SELECT count(*)::int FROM interlock.audit WHERE reason = 'I am here'`), 1, 'two clicks are one takeover');
    await finish(second);
    await close(first);
});

await check('whoever takes over takes from nobody else than the page has named', async () => {
    const [hans, ida, jan] = [await tab(one, 'Hans', 1), await tab(two, 'Ida', 1), await tab(one, 'Jan', 1)];
    await edit(hans);
    for (const page of [ida, jan]) {
        await button(page, 'Take over…').click();
        await page.getByLabel('Reason, which is recorded').fill('Hans is away');
    }
    const confirm = (page) => page.locator('#take-over').getByRole('button', { name: 'Take over', exact: true }).click();
    await confirm(ida);
    await canWrite(ida);
    await confirm(jan);
    await shows(jan, 'Ida edits this document by now. Nothing was changed.');
    assert.match(await holderOf(1), /^Ida\//);
    assert.equal(await value(`SELECT count(*)::int FROM interlock.audit WHERE reason = 'Hans is away'`), 1);
    await finish(ida);
    await close(hans, ida, jan);
});

await check('of several who take over at the same time, on two servers, one gets the document', async () => {
    const people = [...Array(6)].map((_, i) => ({ server: i % 2 ? two : one, user: `Taker${i}`, tab: `0000000${i}` }));
    const named = ({ user, tab }) => `${user}/${tab}`;
    const post = async ({ server, user, tab }, what, body) => {
        const response = await fetch(`${server.url}api/documents/1/${what}`, { method: 'POST', body: JSON.stringify(body),
            headers: { 'Content-Type': 'application/json', 'X-User': user, 'X-Tab': tab } });
        return { status: response.status, ...await response.json() };
    };
    let has = people[0];
    assert.equal((await post(has, 'edit', {})).status, 200);
    for (let round = 0; round < 30; round++) {
        const others = people.filter((each) => each !== has), from = named(has), takeOver = `round ${round}`;
        const answers = await Promise.all(others.map((each) => post(each, 'edit', { takeOver, from })));
        assert.deepEqual(answers.map(({ status }) => status).sort(), [200, 409, 409, 409, 409], takeOver);
        has = others[answers.findIndex(({ status }) => status === 200)];
        assert.equal(await holderOf(1), named(has));
        for (const { status, takenFrom, title, holder } of answers)
            assert.deepEqual(status === 200 ? [takenFrom] : [holder, title],
                status === 200 ? [from] : [named(has), `${has.user} edits this document by now. Nothing was changed.`]);
        assert.equal(await value('SELECT count(*)::int FROM interlock.audit WHERE reason = $1', takeOver), 1);
        assert.equal(await value(`SELECT reason FROM interlock.row_lock_of('document', 1)`), takeOver);
    }
    assert.equal((await post(has, 'release', {})).held, true);
});

await check('a tab that sleeps for an hour has lost the lock, and keeps its text', async () => {
    const karl = await tab(one, 'Karl', 1);
    await edit(karl);
    await write(karl, 'first\nsecond\n');
    await karl.context().setOffline(true);
    await karl.locator('#body').fill('first\nsecond\nnot saved before the sleep\n');
    const devtools = await karl.context().newCDPSession(karl);
    await devtools.send('Page.setWebLifecycleState', { state: 'frozen' });
    await client.query(`SELECT interlock.touch_row('document', 1, $1, ttl => 0.05)`, [await holderOf(1)]);
    await eventually(async () => await holderOf(1) === undefined);
    await edit(anna2);
    await write(anna2, 'FIRST\nsecond\n');
    await finish(anna2);
    await karl.context().setOffline(false);
    await devtools.send('Page.setWebLifecycleState', { state: 'active' });
    await looks(karl);
    assert.equal(await bodyOf(1), 'FIRST\nsecond\n', 'it overwrites nothing');
    await button(karl, 'Edit and merge them').click();
    await eventually(async () => await bodyOf(1) === 'FIRST\nsecond\nnot saved before the sleep\n');
    await finish(karl);
    await close(karl);
});

await check('a clock that is ten minutes off shows the time that is left', async () => {
    for (const minutes of [-10, 10]) {
        const lena = await tab(one, 'Lena', 1, {}, (ms) => {
            const Right = Date;
            globalThis.Date = class extends Right {
                constructor(...args) { super(...args.length ? args : [Right.now() + ms]); }
                static now() { return Right.now() + ms; }
            };
        }, minutes * 60_000);
        assert.ok(Math.abs(await lena.evaluate(() => Date.now()) - Date.now() - minutes * 60_000) < 300_000);
        await edit(lena);
        await write(lena, `clock ${minutes}`);
        assert.match(await lena.locator('#left').innerText(), /^[01]:\d\d$/);
        assert.equal(await lena.locator('#notice-soon').count(), 0);
        await finish(lena);
        await close(lena);
    }
});

await check('a database that goes away and comes back: the text is saved, and others see it', async () => {
    await edit(anna2);
    await anna2.locator('#body').fill('before');
    await client.query(`ALTER ROLE app NOLOGIN; SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'app' AND datname = current_database()`);
    await anna2.locator('#body').fill('while it was away');
    await shows(anna2, 'The server cannot be reached');
    await client.query('ALTER ROLE app LOGIN');
    await eventually(async () => await bodyOf(1) === 'while it was away');
    await emma.waitForFunction(() => document.querySelector('#body').value === 'while it was away');
    await finish(anna2);
});

await check('by keyboard alone, on a phone', async () => {
    const emil = await tab(one, 'Emil', 1, { viewport: { width: 390, height: 800 } });
    await accessible(emil, 'a phone');
    assert.equal(await emil.evaluate(() => document.documentElement.scrollWidth), 390);
    await button(emil, 'Edit').focus();
    await emil.keyboard.press('Enter');
    await canWrite(emil);
    await emil.waitForFunction(() => document.activeElement.id === 'body');
    await emil.context().setOffline(true);
    await emil.keyboard.type('by keys ');
    await shows(emil, 'The server cannot be reached');
    const { y } = await emil.locator('#offline').boundingBox();
    assert.ok(y >= 0 && y < 800, `the banner is seen wherever the page is scrolled: ${y}`);
    await emil.context().setOffline(false);
    await emil.locator('#offline').waitFor({ state: 'hidden' });
    await emil.locator('#body').focus();
    await emil.keyboard.press('Shift+Tab');
    await emil.keyboard.press('Shift+Tab');
    await emil.keyboard.press('Enter');
    await looks(emil);
    await eventually(async () => (await bodyOf(1)).includes('by keys '));
    await close(emil);
});

await check('no page has broken a rule', () => assert.deepEqual(wrong, []));

await browser.close();
for (const child of servers) child.kill('SIGKILL');
await client.end();
console.log(`1..${check.count}`);
