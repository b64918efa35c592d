// Versioned rows: read, save, update with retry, ETags.

import assert from 'node:assert/strict';
import test from 'node:test';
import { asInterlockError, etagOf, InterlockError, NotFound, StaleVersion, versionOf } from 'pg-interlock';
import { admin, each, one, run, value } from './lib/shop.mjs';

await run('CREATE TABLE note (id int PRIMARY KEY, slug text NOT NULL UNIQUE, body text, hits int NOT NULL DEFAULT 0, version int NOT NULL)',
    `SELECT interlock.enable_versioning('note', blind_updates => 'reject')`,
    'CREATE TABLE timed ("Id" text, line int, body text, changed timestamptz DEFAULT now(), PRIMARY KEY ("Id", line))', `SELECT interlock.enable_versioning('timed', 'changed')`,
    'CREATE TABLE plain (id int PRIMARY KEY, body text)', 'INSERT INTO plain VALUES (1)');
const fill = () => run('DELETE FROM note WHERE interlock.any_version(version)', `INSERT INTO note (id, slug, body) VALUES (1, 'a', 'old')`);

test('a version is the same text whichever way it was read', async () => {
    await each(async ({ il }) => {
        await fill();
        const { row, version } = await il.read('note', 1);
        assert.deepEqual([row.version, typeof version], [version, 'string']);
        const next = await il.save('note', 1, version, { body: 'new' });
        assert.equal(next, (await il.read('note', { slug: 'a' })).version);
        assert.equal(await il.save('note', { slug: 'a' }, Number(next), {}), await il.save('note', 1, BigInt(next), {}).then(assert.fail, (error) => error.version));
    });
});

test('a stale save is StaleVersion, with the row of now', async () => {
    await each(async ({ il }) => {
        await fill();
        const { version } = await il.read('note', 1);
        const next = await il.save('note', 1, version, { body: 'first' });
        const error = await il.save('note', 1, version, { body: 'second' }).catch((raised) => raised);
        assert.ok(error instanceof StaleVersion && error instanceof InterlockError && error instanceof Error);
        assert.deepEqual([error.code, error.status, error.version, error.current.body, error.current.version], ['IL001', 409, next, 'first', next]);
        assert.deepEqual(JSON.parse(JSON.stringify(error)).current.body, 'first');
        for (const none of [undefined, null]) await assert.rejects(il.save('note', 1, none, {}), TypeError);
        await assert.rejects(il.save('note', 1, 2 ** 60, {}), TypeError);
        await assert.rejects(il.save('note', 7, 1, {}), NotFound);
        await assert.rejects(il.read('note', 7), NotFound);
    });
});

test('with the row that was read, columns that only one side has changed are merged', async () => {
    await each(async ({ il }) => {
        await fill();
        const { row, version } = await il.read('note', 1);
        await il.save('note', 1, version, { hits: 5 });
        await il.save('note', 1, version, { body: 'mine' }, { base: row });
        const merged = await il.read('note', 1);
        assert.deepEqual([merged.row.body, merged.row.hits], ['mine', 5]);
        const error = await il.save('note', 1, version, { body: 'late' }, { base: row }).catch((raised) => raised);
        assert.deepEqual(error.conflicts, ['body']);
    });
});

test('keys of several columns, and versions that are times', async () => {
    await each(async ({ il }) => {
        await run('TRUNCATE timed', `INSERT INTO timed VALUES ('x', 1, 'old')`);
        const key = { Id: 'x', line: 1 };
        const { row, version } = await il.read('timed', key);
        assert.equal(row.body, 'old');
        const next = await il.save('timed', key, version, { body: 'new' });
        assert.deepEqual([(await il.read('timed', key)).version, next > version], [next, true]);
        await assert.rejects(il.save('timed', key, version, { body: 'stale' }), StaleVersion);
        await assert.rejects(il.read('timed', 'x'), TypeError);
        await assert.rejects(il.read('timed', { nothing: 1 }), TypeError);
    });
});

test('eight programs add at once, next to plain SQL: none is lost', async () => {
    await each(async ({ il }) => {
        await fill();
        const add = async () => { for (let n = 0; n < 10; n++) await il.update('note', 1, ({ hits }) => ({ hits: hits + 1 }), { attempts: 1000 }); };
        const raw = async () => { for (let n = 0; n < 20; n++) await admin.query('UPDATE note SET hits = hits + 1 WHERE id = 1 AND interlock.any_version(version)'); };
        await Promise.all([...Array.from({ length: 8 }, add), raw()]);
        assert.equal((await il.read('note', 1)).row.hits, 100);
    });
});

test('an update that changes nothing writes nothing; attempts are counted and end', async () => {
    await one(async ({ il }) => {
        await fill();
        const { version } = await il.read('note', 1);
        assert.deepEqual(await il.update('note', 1, () => null), { version, attempts: 1 });
        let calls = 0;
        const meddle = async ({ hits }) => {
            calls++;
            await admin.query('UPDATE note SET hits = hits + 1 WHERE id = 1 AND interlock.any_version(version)');
            return { hits: hits + 1 };
        };
        await assert.rejects(il.update('note', 1, meddle, { attempts: 4 }), StaleVersion);
        assert.equal(calls, 4);
        await assert.rejects(il.update('note', 1, () => { throw new RangeError('of the work'); }), RangeError);
        await assert.rejects(il.update('note', 7, () => assert.fail()), NotFound);
        await assert.rejects(il.update('plain', 1, () => assert.fail()), TypeError);
    });
});

test('errors of plain SQL become classes, also those that an ORM has wrapped', async () => {
    await one(async ({ il }) => {
        await fill();
        const error = await il.transaction((tx) => tx.query(`SELECT interlock.versioned_update('note', 1, 99, '{}')`)).catch((raised) => raised);
        assert.ok(error instanceof StaleVersion);
        assert.deepEqual([error.detail.key, error.detail.expected, error.version], [{ id: 1 }, '99', error.detail.version]);
        assert.match(error.hint, /Read the row again/);
        assert.equal(asInterlockError(new Error('wrapped', { cause: error.cause })).code, 'IL001');
        const other = new RangeError('other');
        assert.equal(asInterlockError(other), other);
        const blind = await il.transaction((tx) => tx.query(`UPDATE note SET body = 'blind'`)).catch((raised) => raised);
        assert.deepEqual([blind.name, blind.code, blind.status], ['BlindUpdate', 'IL011', 500]);
    });
});

test('ETags: what GET, PUT and DELETE answer', async () => {
    await each(async ({ il }) => {
        await fill();
        const pages = il.etag('note');
        const got = await pages.get(1, {});
        const tag = got.headers.ETag;
        assert.deepEqual([got.status, got.body.body, tag], [200, 'old', etagOf(got.body.version)]);
        for (const header of [tag, `"x", W/${tag}`, '*']) assert.deepEqual(await pages.get(1, { 'if-none-match': header }), { status: 304, headers: { ETag: tag }, body: undefined });
        assert.equal((await pages.get(1, new Headers({ 'If-None-Match': '"0"' }))).status, 200);
        assert.equal((await pages.get(7, {})).status, 404);

        const put = (headers, body) => pages.put(1, headers, { body });
        const saved = await put({ 'if-match': tag }, 'new');
        assert.equal(saved.status, 200);
        const stale = await put(new Headers({ 'If-Match': tag }), 'stale');
        assert.deepEqual([stale.status, stale.headers, stale.body.body], [412, saved.headers, 'new']);
        for (const wrong of ['*', `W/${saved.headers.ETag}`, '"x"', `${tag}, ${saved.headers.ETag}`, '']) assert.equal((await put({ 'if-match': wrong }, 'blind')).status, 412, wrong);
        assert.equal((await put({}, 'blind')).status, 428);
        assert.equal((await put({ 'if-none-match': '*' }, 'again')).status, 412);
        assert.equal((await pages.put(7, { 'if-match': tag }, {})).status, 404);

        assert.equal((await pages.put(2, { 'if-none-match': '*' }, { slug: 'b' })).status, 201);
        assert.equal((await pages.delete(2, {})).status, 428);
        assert.equal((await pages.delete(1, { 'if-match': tag })).status, 412);
        assert.deepEqual(await pages.delete(1, { 'if-match': saved.headers.ETag }), { status: 204, headers: {}, body: undefined });
        assert.equal((await pages.delete(1, { 'if-match': saved.headers.ETag })).status, 404);
        assert.equal(await value('SELECT count(*)::int FROM note'), 1);
    });
});

test('the tag of a time is a tag, and comes back', async () => {
    await one(async ({ il }) => {
        await run('TRUNCATE timed', `INSERT INTO timed VALUES ('x', 1, 'old')`);
        const pages = il.etag('timed'), key = { Id: 'x', line: 1 };
        const { headers: { ETag } } = await pages.get(key, {});
        assert.match(ETag, /^"[!#-~]+"$/);
        assert.equal(versionOf(ETag), (await il.read('timed', key)).version);
        assert.equal((await pages.put(key, { 'if-match': ETag }, { body: 'new' })).status, 200);
        assert.equal((await pages.put(key, { 'if-match': ETag }, { body: 'stale' })).status, 412);
    });
});
