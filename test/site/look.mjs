// look DIRECTORY VERSION: looks at that version of a site that script/site has built, in Chromium, on a desktop and on a phone, in light
// and in dark. The site also has version 99.0. Prints TAP. With PICTURES=FOLDER it also makes pictures of some pages.

import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { extname } from 'node:path';
import { chromium } from 'playwright-core';
import { check } from './page.mjs';

const [directory, version] = process.argv.slice(2);
const types = { '.html': 'text/html', '.css': 'text/css', '.js': 'text/javascript', '.json': 'application/json', '.png': 'image/png', '.svg': 'image/svg+xml' };
const server = createServer((request, response) => {
    const path = decodeURIComponent(new URL(request.url, 'http://x').pathname).replace(/\/$/, '/index.html');
    try {
        const body = readFileSync(directory + path);
        response.writeHead(200, { 'Content-Type': types[extname(path)] ?? 'text/plain' }).end(body);
    } catch {
        response.writeHead(404).end();
    }
}).listen(0, '127.0.0.1');
await new Promise((ready) => server.once('listening', ready));
const site = `http://127.0.0.1:${server.address().port}/`;

const screens = { desktop: { width: 1280, height: 900 }, phone: { width: 390, height: 844 } };
const shown = ['index', 'contents', 'guide/editing', 'guide/applock', 'clients/index', 'reference/errors', 'recipes/http-endpoint'];
const wrong = []; // what no page may do
const browser = await chromium.launch({ executablePath: '/usr/bin/chromium', args: ['--no-sandbox'] });
async function open(screen, scheme, path) {
    const context = await browser.newContext({ viewport: screens[screen], colorScheme: scheme, locale: 'en-GB' });
    const page = await context.newPage();
    page.setDefaultTimeout(120_000);
    page.on('pageerror', (error) => wrong.push(`${page.url()}: ${error}`));
    page.on('request', (request) => { if (!/^(data|blob):/.test(request.url()) && !request.url().startsWith(site)) wrong.push(`${page.url()} asks for ${request.url()}`); });
    page.on('response', (response) => { if (response.status() !== 200) wrong.push(`${page.url()}: ${response.status()} for ${response.url()}`); });
    await page.goto(site + path);
    return page;
}
const close = (page) => page.context().close();

for (const screen of Object.keys(screens)) for (const scheme of ['light', 'dark']) {
    await check(`${screen}, ${scheme}: pages fit, and can be read`, async () => {
        const page = await open(screen, scheme, `${version}/index.html`);
        for (const path of shown) {
            await page.goto(`${site}${version}/${path}.html`);
            await page.locator('.md-header__topic .md-version').first().waitFor({ state: 'attached' });
            assert.equal(await page.locator('body').getAttribute('data-md-color-scheme'), { light: 'default', dark: 'slate' }[scheme]);
            assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), screens[screen].width, path);
            if (process.env.PICTURES) await page.screenshot({ path: `${process.env.PICTURES}/${path.replace('/', '-')}-${screen}-${scheme}.png` });
            await page.addScriptTag({ content: readFileSync('node_modules/axe-core/axe.min.js', 'utf8') });
            const { violations } = await page.evaluate(() => globalThis.axe.run('.md-content', { runOnly: ['color-contrast', 'image-alt', 'link-name'] }));
            assert.deepEqual(violations.flatMap(({ id, nodes }) => nodes.map(({ html }) => [path, id, html])), []);
        }
        await close(page);
    });
}

await check('no page is wider than a phone', async () => {
    const page = await open('phone', 'light', `${version}/index.html`);
    const wide = [];
    for (const path of readdirSync(`${directory}/${version}`, { recursive: true }).filter((file) => file.endsWith('.html'))) {
        await page.goto(`${site}${version}/${path}`);
        if (await page.evaluate(() => document.documentElement.scrollWidth) > screens.phone.width) wide.push(path);
    }
    assert.deepEqual(wide, []);
    await close(page);
});

await check('the first page has the table of the demo, the picture of the editor, and where to begin', async () => {
    const page = await open('desktop', 'light', 'index.html');
    await page.waitForURL(`${site}latest/index.html`);
    await page.getByRole('cell', { name: 'seats were sold twice' }).waitFor();
    assert.ok(await page.locator('img[src$="4-merge.png"]').evaluate((image) => image.decode().then(() => image.naturalWidth > 0)));
    await page.getByRole('link', { name: 'Your first afternoon', exact: true }).first().click();
    await page.waitForURL(`${site}latest/guide/first-afternoon.html`);
    await close(page);
});

await check('the search finds a function', async () => {
    const page = await open('desktop', 'light', `${version}/index.html`);
    await page.getByRole('textbox', { name: 'Search' }).fill('try_transition');
    await page.locator('.md-search-result__link', { hasText: 'try_transition' }).first().click();
    await page.waitForURL(/reference\/functions\.html|guide\/transitions\.html/);
    await close(page);
});

await check('a tab shows the code of its language, and an old link leads to the tabs', async () => {
    const page = await open('phone', 'light', `${version}/guide/transitions.html#in-python`);
    const tabs = page.locator('.tabbed-set'), code = tabs.locator('.tabbed-block');
    assert.deepEqual(await tabs.locator('.tabbed-labels label').allInnerTexts(), ['SQL', 'JavaScript', 'Python']);
    await tabs.locator('label', { hasText: 'Python' }).click();
    await code.nth(2).locator('pre').first().waitFor();
    assert.equal(await code.first().isVisible(), false);
    assert.equal(await page.locator('#in-python').count(), 1);
    await close(page);
});

await check('dark and light can be chosen, and stay chosen', async () => {
    const page = await open('desktop', 'light', `${version}/index.html`);
    await page.locator('label[title="Dark"]').click();
    await page.goto(`${site}${version}/choosing.html`);
    assert.equal(await page.locator('body').getAttribute('data-md-color-scheme'), 'slate');
    await close(page);
});

await check('versions can be chosen, and a page that is not of the newest release says so', async () => {
    const page = await open('desktop', 'light', `${version}/guide/versions.html`);
    await page.getByText('not of the newest release').waitFor();
    await page.locator('.md-version').hover();
    assert.deepEqual(await page.locator('.md-version__link').allInnerTexts(), ['99.0', version]);
    await page.locator('.md-version__link', { hasText: '99.0' }).click();
    await page.waitForURL(`${site}99.0/guide/versions.html`);
    await close(page);
    const newest = await open('desktop', 'light', 'latest/guide/versions.html');
    await newest.locator('.md-version').waitFor();
    assert.equal(await newest.getByText('not of the newest release').isVisible(), false);
    await close(newest);
});

await check('a phone has the contents in a drawer', async () => {
    const page = await open('phone', 'dark', `${version}/guide/versions.html`);
    await page.locator('label.md-header__button[for="__drawer"]').click();
    await page.locator('.md-nav').getByText('Status transitions').first().waitFor();
    await close(page);
});

await check('no page asks another host for anything, or has an error', () => assert.deepEqual(wrong, []));

await browser.close();
server.close();
console.log(`1..${check.count}`);
