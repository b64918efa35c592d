// What an application on node-postgres does: the code of docs/clients/pg.md, and beside it parameters without a type, errors
// by SQLSTATE, JSON in DETAIL.
// Prints TAP. Connects as the environment says (PGHOST, PGPORT, PGUSER, PGDATABASE).

import pg from 'pg';
import assert from 'node:assert/strict';
import { asText, callAll, calls, valuesOf } from './lib/calls.mjs';
import { checkPage, freshNotes, killWaiters, stored } from './lib/client.mjs';
import { check, eventually, load } from './lib/page.mjs';

const client = new pg.Client();
await client.connect();

const one = async (sql, ...parameters) => (await client.query(sql, parameters)).rows[0];

await client.query(`
    CREATE TABLE doc (id uuid PRIMARY KEY DEFAULT gen_random_uuid(), body text, updated_time timestamptz DEFAULT now());
    SELECT interlock.enable_versioning('doc');
    SELECT interlock.enable_marker('doc');
    CREATE TABLE memo (id int PRIMARY KEY, body text, updated_time timestamptz NOT NULL DEFAULT now());
    SELECT interlock.enable_versioning('memo', 'updated_time');
    INSERT INTO memo VALUES (1, 'x')`);
const { id } = await one(`INSERT INTO doc (body) VALUES ('x') RETURNING id`);

await check('an update with parameters without a type', async () => {
    const { version } = await one('SELECT interlock.versioned_update($1, $2, $3, $4) AS version',
        'doc', id, 1, { body: 'from node' });
    assert.equal(version, '2');
});
await check('a conflict is reported with the row', async () => {
    const { outcome, version, current } = await one('SELECT * FROM interlock.try_versioned_update($1, $2, $3, $4)',
        'doc', id, 1, { body: 'stale' });
    assert.deepEqual([outcome, version, current.body], ['conflict', '2', 'from node']);
});
await check('or raised, with a SQLSTATE and JSON in DETAIL', async () => {
    await assert.rejects(one('SELECT interlock.versioned_update($1, $2, $3, $4)', 'doc', id, 1, {}), (error) => {
        assert.equal(error.code, 'IL001');
        assert.deepEqual(JSON.parse(error.detail), { table: 'public.doc', key: { id }, expected: 1, version: 2 });
        return true;
    });
});
await check('the UPDATE of an ORM is safe', async () => {
    const sql = 'UPDATE doc SET body = $1, version = version + 1 WHERE id = $2 AND version = $3';
    assert.equal((await client.query(sql, ['orm', id, 2])).rowCount, 1);
    assert.equal((await client.query(sql, ['orm', id, 2])).rowCount, 0);
});
await check('a timestamp travels as text, to the microsecond', async () => {
    const { token } = await one('SELECT updated_time::text AS token FROM memo');
    const { version } = await one('SELECT interlock.versioned_update($1, $2, $3, $4) AS version', 'memo', 1, token, { body: 'y' });
    assert.notEqual(version, token);
    const next = await one('SELECT outcome FROM interlock.try_versioned_update($1, $2, $3, $4)', 'memo', 1, version, { body: 'z' });
    assert.equal(next.outcome, 'updated');
});
await check('a row is locked, refused and saved', async () => {
    const mine = await one('SELECT * FROM interlock.lock_row($1, $2, $3, $4)', 'doc', id, 'anna', '10 minutes');
    assert.deepEqual([mine.locked, mine.holder], [true, 'anna']);
    assert.ok(mine.expires_at > mine.locked_at);
    const other = await one('SELECT * FROM interlock.lock_row($1, $2, $3)', 'doc', id, 'bert');
    assert.deepEqual([other.locked, other.holder], [false, 'anna']);
    await assert.rejects(client.query('DELETE FROM doc WHERE id = $1', [id]), { code: 'IL004' });
    const { version } = await one('SELECT interlock.save_row($1, $2, $3, $4) AS version', 'doc', id, 'anna', { body: 'saved' });
    assert.equal(version, '4');
});

await check('states of an integer and of a boolean column', async () => {
    await client.query(`
        CREATE TABLE seat (id int PRIMARY KEY, state int NOT NULL DEFAULT 0, reserved boolean NOT NULL DEFAULT false);
        SELECT interlock.define_transitions('seat', 'state', '{"0": [1]}'),
            interlock.define_transitions('seat', 'reserved', '{"false": [true]}');
        INSERT INTO seat VALUES (1)`);
    const sql = 'SELECT outcome, state FROM interlock.try_transition($1, $2, $3, $4, state_column => $5)';
    const move = async (from, to, column) => Object.values(await one(sql, 'seat', 1, from, to, column));
    assert.deepEqual(await move(0, 1, 'state'), ['transitioned', '1']);
    assert.deepEqual(await move(0, 1, 'state'), ['state_changed', '1']);
    assert.deepEqual(await move(false, true, 'reserved'), ['transitioned', 'true']);
    await assert.rejects(move('paid', 1, 'state'), { code: '22P02', hint: 'Declared states of column "state": "0", "1".' });
});

await check('a lease is taken, refused, renewed, asserted and released; its token travels as text', async () => {
    const mine = await one('SELECT * FROM interlock.acquire_lease($1, $2, $3, $4)', `doc/${id}`, '1 minute', '0', 'anna');
    assert.deepEqual([mine.outcome, typeof mine.token, mine.holder], ['acquired', 'string', 'anna']);
    assert.ok(mine.expires_at > new Date());
    const other = await one('SELECT * FROM interlock.acquire_lease($1, holder => $2)', `doc/${id}/body`, 'bert');
    assert.deepEqual([other.outcome, other.token, other.holder], ['held', null, 'anna']);
    const { renewed } = await one('SELECT interlock.renew_lease($1, $2, $3) AS renewed', `doc/${id}`, mine.token, '2 minutes');
    assert.ok(renewed > mine.expires_at);
    await one('SELECT interlock.assert_lease($1, $2)', `doc/${id}`, mine.token);
    const release = 'SELECT interlock.release_lease($1, $2) AS released';
    assert.equal((await one(release, `doc/${id}`, mine.token)).released, true);
    assert.equal((await one(release, `doc/${id}`, mine.token)).released, false);
    await assert.rejects(one('SELECT interlock.assert_lease($1, $2)', `doc/${id}`, mine.token), (error) => {
        assert.equal(error.code, 'IL006');
        // a token is larger than what a number of JavaScript is sure to hold
        assert.ok(error.detail.includes(`"token": ${mine.token}`));
        return true;
    });
});
await check('several leases at once, as an array', async () => {
    const keys = ['b', 'a', 'b'];
    const { outcome, tokens } = await one('SELECT * FROM interlock.acquire_leases($1, $2)', keys, '1 minute');
    assert.deepEqual([outcome, tokens.length, tokens[0] === tokens[2]], ['acquired', 3, true]);
    const refused = await one('SELECT * FROM interlock.acquire_leases($1)', ['c', 'a']);
    assert.deepEqual([refused.outcome, refused.tokens, refused.blocked_by], ['held', null, 'a']);
    for (const i of [0, 1])
        assert.equal((await one('SELECT interlock.release_lease($1, $2) AS released', keys[i], tokens[i])).released, true);
});
await check('numbers are seconds, as parameters and as literals', async () => {
    const tensOfMinutes = async (sql, ...parameters) => {
        const { outcome, tens } = await one(`SELECT outcome, round(extract(epoch FROM expires_at - clock_timestamp()) / 600)::int AS tens FROM ${sql}`, ...parameters);
        return [outcome, tens];
    };
    assert.deepEqual(await tensOfMinutes('interlock.acquire_lease($1, $2)', 'number 1', 3000), ['acquired', 5]);
    assert.deepEqual(await tensOfMinutes('interlock.acquire_lease($1, 3000, 0)', 'number 2'), ['acquired', 5]);
    assert.deepEqual(await tensOfMinutes('interlock.acquire_lease($1, $2::int)', 'number 3', 3000), ['acquired', 5]);
});
await check('keys of parts that are no texts', async () => {
    const { key } = await one('SELECT interlock.idempotency_key($1, $2, $3) AS key', 'redeem', 123, id);
    assert.equal(key, `redeem:123:${id}`);
    const { path } = await one('SELECT interlock.key_path($1::text, $2::int, $3::uuid) AS path', 'a/b', 7, id);
    assert.equal(path, `a%2Fb/7/${id}`);
});
await check('a permit of a pool', async () => {
    const take = () => one('SELECT * FROM interlock.acquire_permit($1, $2, $3)', 'pool', 1, '1 minute');
    const mine = await take();
    assert.deepEqual([mine.outcome, (await take()).outcome], ['acquired', 'held']);
    assert.equal((await one('SELECT interlock.release_lease($1, $2) AS released', 'pool', mine.token)).released, true);
});

const page = await load('clients/pg', client);
await checkPage(page, client, [
    async (id) => (await page.query('SELECT id, hits FROM plain_note WHERE id = $1', id))[0],
    ({ id, hits }) => page.query('UPDATE plain_note SET hits = $1 WHERE id = $2', hits + 1, id),
]);
await check('what the page does under a lease', async () => {
    await freshNotes(client);
    await client.query(`UPDATE note SET body = '' WHERE id = 1 AND version = 1`);
    assert.equal((await page.tidy()).outcome, 'acquired');
    assert.deepEqual([await stored(client, 1), (await stored(client, 2)).body], [undefined, 'old']);
});
await page.pool.end();

await callAll('pg', async (text, values) => (await client.query({ text, values, rowMode: 'array' })).rows);
// Each call that waits for a row is killed while it waits. It has done nothing: the same call has the answer of the first then.
const tables = ['call_doc', 'call_line', 'call_note', 'call_config', 'call_day', 'call_seat', 'call_task', 'interlock.idempotency'];
const answerOf = async (connection, text, values) => (await connection.query({ text, values, rowMode: 'array' })).rows[0]?.map(asText);
let killed = 0;
for (const call of calls.filter(({ setup, transaction }) => setup && !transaction)) {
    const worker = new pg.Client({ user: client.user });
    await worker.on('error', () => {}).connect();
    for (const sql of call.setup) await client.query(sql);
    const values = await valuesOf(call, async (sql) => (await client.query({ text: sql, rowMode: 'array' })).rows);
    await client.query('BEGIN');
    for (const table of tables) await client.query(`SELECT FROM ${table} FOR UPDATE`);
    let ended = false;
    const first = answerOf(worker, call.sql, values).then(() => 'answered', (error) => error).finally(() => { ended = true; });
    await eventually(async () => ended || await killWaiters(client));
    await client.query('ROLLBACK');
    if (await first !== 'answered') {
        await check(`${call.name}: lost while it waits, and repeated`, async () => {
            const answer = await answerOf(client, call.sql, values);
            if (call.answer) assert.deepEqual(answer, call.answer);
        });
        killed++;
    }
    await worker.end().catch(() => {});
}
await check('most functions on rows have waited', () => assert.ok(killed > 20, `${killed} have`));

await check('calls.json has every function of the API', async () => {
    const { rows } = await client.query(
        `SELECT DISTINCT proname FROM pg_proc WHERE pronamespace = 'interlock'::regnamespace AND prorettype <> 'trigger'::regtype`);
    const called = calls.map(({ sql }) => sql).join();
    assert.deepEqual(rows.filter(({ proname }) => !called.includes(`interlock.${proname}(`)), []);
});

console.log(`1..${check.count}`);
await client.end();
