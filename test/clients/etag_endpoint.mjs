// The endpoint of docs/recipes/etag-endpoint.md, with the code of the page, as its clients meet it.
// Prints TAP. Connects as the environment says (PGHOST, PGPORT, PGUSER, PGDATABASE).

import pg from 'pg';
import assert from 'node:assert/strict';
import { once as event } from 'node:events';
import { load, check } from './lib/page.mjs';

const client = new pg.Client();
await client.connect();
const { pool, server } = await load('recipes/etag-endpoint', client);
server.listen(0);
await event(server, 'listening');

async function send(method, slug, headers = {}, body) {
    const response = await fetch(`http://localhost:${server.address().port}/pages/${slug}`,
        { method, headers, body: body === undefined ? undefined : JSON.stringify(body) });
    const text = await response.text();
    return { status: response.status, tag: response.headers.get('etag'), value: text === '' ? undefined : JSON.parse(text) };
}
const put = (slug, headers, title, body = '') => send('PUT', slug, headers, { title, body });

await check('a page is created once', async () => {
    const created = await put('home', { 'If-None-Match': '*' }, 'Home', 'a');
    assert.deepEqual([created.status, created.tag], [201, '"1"']);
    const again = await put('home', { 'If-None-Match': '*' }, 'Other');
    assert.deepEqual([again.status, again.tag, again.value.title], [412, '"1"', 'Home']);
});
await check('it is read with its tag, and not sent again to a client that has it', async () => {
    const read = await send('GET', 'home');
    assert.deepEqual([read.status, read.tag, read.value], [200, '"1"', { slug: 'home', title: 'Home', body: 'a' }]);
    assert.deepEqual(await send('GET', 'home', { 'If-None-Match': '"1"' }), { status: 304, tag: '"1"', value: undefined });
    assert.equal((await send('GET', 'home', { 'If-None-Match': '"2"' })).status, 200);
});
await check('a save with the tag that was read passes, and with an older one is 412 with the page', async () => {
    assert.deepEqual(await put('home', { 'If-Match': '"1"' }, 'Home', 'b'), { status: 200, tag: '"2"', value: undefined });
    const stale = await put('home', { 'If-Match': '"1"' }, 'Home', 'c');
    assert.deepEqual([stale.status, stale.tag, stale.value.body], [412, '"2"', 'b']);
});
await check('of twenty who have read one version one saves', async () => {
    const { tag } = await send('GET', 'home');
    const answers = await Promise.all(Array.from({ length: 20 }, (_, n) => put('home', { 'If-Match': tag }, 'Home', `writer ${n}`)));
    assert.deepEqual(answers.map(({ status }) => status).sort(), [200, ...Array(19).fill(412)]);
    const winner = answers.findIndex(({ status }) => status === 200);
    assert.equal((await send('GET', 'home')).value.body, `writer ${winner}`);
});
await check('a write without a tag is 428, and with one that is none 412', async () => {
    assert.equal((await put('home', {}, 'x')).status, 428);
    assert.equal((await send('DELETE', 'home')).status, 428);
    for (const tag of ['W/"3"', '3', '"x"', '*', '"1", "2"'])
        assert.equal((await put('home', { 'If-Match': tag }, 'x')).status, 412);
});
await check('a statement that knows nothing of tags makes them stale', async () => {
    const { tag } = await send('GET', 'home');
    await client.query(`UPDATE page SET title = upper(title)`);
    assert.equal((await put('home', { 'If-Match': tag }, 'x')).status, 412);
});
await check('no old tag fits a page that was deleted and created again', async () => {
    const { tag } = await send('GET', 'home');
    assert.equal((await send('DELETE', 'home', { 'If-Match': '"1"' })).status, 412);
    assert.equal((await send('DELETE', 'home', { 'If-Match': tag })).status, 204);
    assert.equal((await put('home', { 'If-Match': tag }, 'x')).status, 404);
    const created = await put('home', { 'If-None-Match': '*' }, 'Home');
    assert.equal(created.status, 201);
    assert.ok(Number(created.tag.slice(1, -1)) > Number(tag.slice(1, -1)));
    assert.equal((await put('home', { 'If-Match': tag }, 'x')).status, 412);
});
await check('wrong input is 400', async () => {
    const { tag } = await send('GET', 'home');
    assert.equal((await put('home', { 'If-Match': tag }, null)).status, 400);
    assert.equal((await put('other', { 'If-None-Match': '*' }, null)).status, 400);
});

console.log(`1..${check.count}`);
server.close();
await Promise.all([pool.end(), client.end()]);
