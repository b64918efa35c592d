// Keys, durations and JSON, next to what the server makes of them.

import assert from 'node:assert/strict';
import test from 'node:test';
import { idempotencyKeyText, keyText, seconds } from 'pg-interlock';
import { each, run, value } from './lib/shop.mjs';

test('durations are seconds, or text with units', () => {
    const right = [[30, 30], [0.5, 0.5], ['30', 30], ['30 s', 30], ['1.5h', 5400], ['1 h 30 min', 5400], ['500 ms', 0.5], ['2 days', 172800], [0, 0]];
    for (const [given, expected] of right) assert.equal(seconds(given), expected, String(given));
    for (const wrong of [-1, NaN, Infinity, '', 'soon', '5 parsecs', '-5 s', '5 s later', undefined, null]) assert.throws(() => seconds(wrong), TypeError);
});

test('a duration of text is the same as the interval of the server', async () => {
    for (const text of ['30 s', '5 min', '1 h 30 min', '500 ms', '2 days', '5 m', '3 hours']) {
        assert.equal(seconds(text), Number(await value('SELECT extract(epoch FROM $1::interval)', text)), text);
    }
});

test('keys of levels and parts are those of key_path and idempotency_key', async () => {
    const hard = ['a/b', 'c%d', 'e:f', '%2F', 'ü', ' ', '1', 'a\\b', '"', "'", '\n'];
    assert.equal(keyText(hard), await value('SELECT interlock.key_path(VARIADIC $1::text[])', hard));
    assert.equal(idempotencyKeyText(hard), await value('SELECT interlock.idempotency_key(VARIADIC $1::text[])', hard));
    assert.equal(keyText(['shop', 7, 9007199254740993n, true]), 'shop/7/9007199254740993/true');
    assert.throws(() => keyText([]), TypeError);
});

test('a row keeps all digits, and its types do not depend on its values', async () => {
    await run(`CREATE TABLE number (id bigint PRIMARY KEY, n numeric, i int, r float8, j jsonb, t text)`,
        `SELECT interlock.enable_versioning('number')`,
        `INSERT INTO number VALUES (9007199254740993, 1.50, 5, 0.25, '{"small": 1, "big": 9007199254740993, "text": "12345678901234567890"}', '9007199254740993'),
            (7, 2, 6, 1e300, '[1, 1.10, 1e400]', 'a "quoted\\" 1')`);
    await each(async ({ il }) => {
        await run(`UPDATE number SET n = 2 WHERE id = 7`);
        const { row, version } = await il.read('number', 9007199254740993n);
        assert.deepEqual(row, { id: '9007199254740993', n: '1.50', i: 5, r: 0.25, t: '9007199254740993', version,
            j: { small: 1, big: '9007199254740993', text: '12345678901234567890' } });
        const small = await il.read('number', '7');
        assert.deepEqual([small.row.id, small.row.n, small.row.r, small.row.t], ['7', '2', 1e300, 'a "quoted\\" 1']);
        assert.equal(typeof small.version, 'string');
        // The row of a conflict is the same row.
        const error = await il.save('number', 7, '99', {}).catch((raised) => raised);
        assert.deepEqual([error.current, error.version], [small.row, small.version]);
        // A bigint is written with all of its digits.
        await il.save('number', 7, small.version, { n: 12345678901234567890n });
        assert.equal((await il.read('number', 7)).row.n, '12345678901234567890');
        assert.doesNotThrow(() => JSON.stringify([error, small, row]));
    });
});

test('a table that is altered after it was read is read as it is now', async () => {
    await run(`CREATE TABLE altered (id int PRIMARY KEY, v text)`, `SELECT interlock.enable_versioning('altered')`, `INSERT INTO altered VALUES (1, 'x')`);
    await each(async ({ il }) => {
        await run('ALTER TABLE altered DROP COLUMN IF EXISTS other', 'ALTER TABLE altered DROP COLUMN IF EXISTS name');
        const before = await il.read('altered', 1);
        await run('ALTER TABLE altered ADD COLUMN name int', 'ALTER TABLE altered RENAME COLUMN id TO other', 'ALTER TABLE altered RENAME COLUMN other TO id');
        assert.deepEqual(await il.read('altered', 1), { row: { ...before.row, name: null }, version: before.version });
        await run('ALTER TABLE altered RENAME COLUMN id TO nr');
        assert.equal((await il.read('altered', 1)).row.nr, 1);
        await run('ALTER TABLE altered RENAME COLUMN nr TO id');
    });
});
