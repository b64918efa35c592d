// What the page of each client promises, by the names that its code exports on every page:
//
//   query(sql, ...values)            the rows, as objects
//   StaleError                       the library's own error, or that of the page
//   mapped(work), retry(work, attempts)   the errors of work as the library's own; work again, if reading again cures it
//   saveNote(id, version, changes)   a save of what a form has sent: StaleError if another writer was faster
//   addHit(id)                       reads, adds, saves, and again after a conflict
//   oneAtATime(name, work)           work in a transaction that has locked the name
//   underLease(key, ttl, work)       withLease of examples/lease-heartbeat.mjs
//   pay(customer, key, request)      an endpoint: { status, id }
//
// `client` is a connection of node-postgres that looks at what is stored.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { once } from 'node:events';
import { check, eventually } from './page.mjs';

export const stored = async (client, id = 1) => (await client.query('SELECT body, hits, version FROM note WHERE id = $1', [id])).rows[0];
const number = async (client, sql, ...values) => Number(Object.values((await client.query(sql, values)).rows[0])[0]);

// The table of notes of the page, with two rows of version 1.
export const freshNotes = (client) => client.query(`
    DELETE FROM note WHERE interlock.any_version(version);
    INSERT INTO note (id, body, version) OVERRIDING SYSTEM VALUE VALUES (1, 'old', 1), (2, 'old', 1)`);

// careless is a pair of functions, read(id) and write(row), which add to a row of the table plain_note without versions.
export async function checkPage(page, client, careless) {
    await checkConflicts(page, client);
    await checkVersions(page, client);
    await checkRetry(page);
    await checkTransactions(page, client);
    await checkRace(page, client, careless);
    await checkLease(page, client);
    await checkEndpoint(page, client);
    await checkBadInput(page, client);
    await checkLostConnections(page, client);
    await checkLostCalls(page, client);
}

async function checkConflicts({ query, saveNote, StaleError }, client) {
    await check('the second of two forms that show one version is refused, as the error of the library', async () => {
        await freshNotes(client);
        const { version } = await stored(client);
        await saveNote(1, version, { body: 'first' });
        await assert.rejects(saveNote(1, version, { body: 'second' }), StaleError);
        assert.deepEqual(await stored(client), { body: 'first', hits: 0, version: 2 });
    });
    await check('so is one whose row is gone, also when its key is used again', async () => {
        await client.query('DELETE FROM note WHERE id = 2 AND version = 1');
        await assert.rejects(saveNote(2, 1, { body: 'second' }), StaleError);
        await client.query(`INSERT INTO note (id, body) OVERRIDING SYSTEM VALUE VALUES (2, 'new')`);
        await assert.rejects(saveNote(2, 1, { body: 'second' }), StaleError);
        assert.equal((await stored(client, 2)).body, 'new');
    });
    await check('a form that has lost its version is refused', async () => {
        await freshNotes(client);
        for (const none of [undefined, null]) await assert.rejects(async () => saveNote(1, none, { body: 'blind' }));
        assert.deepEqual(await stored(client), { body: 'old', hits: 0, version: 1 });
    });
    await check('and an update that compares nothing is IL011', async () => {
        await assert.rejects(query(`UPDATE note SET body = 'blind' WHERE id = 1`), (error) => codeOf(error) === 'IL011');
    });
}

async function checkVersions({ query, saveNote }, client) {
    await check('ORM-52: a version that was read and one that a function has returned are the same, and each is taken back', async () => {
        await freshNotes(client);
        const [{ version: read }] = await query('SELECT version FROM note WHERE id = 1');
        assert.equal(read, 1);
        const save = async (version) => (await query(`SELECT interlock.versioned_update('note', $1, $2, $3) AS version`, 1, version, { body: 'new' }))[0].version;
        const returned = await save(read);
        assert.ok(['string', 'bigint'].includes(typeof returned), typeof returned);
        assert.equal(String(returned), String((await stored(client)).version));
        const next = await save(returned);
        assert.equal(String(next), '3');
        await saveNote(1, Number(next), { body: 'by the page' });
        assert.equal((await stored(client)).version, 4);
    });
}

async function checkTransactions({ query, oneAtATime }, client) {
    const isFree = async () => (await client.query(`SELECT interlock.try_lock_key('one') AS free`)).rows[0].free;
    await check('a lock of a name lasts as long as the transaction of the page, and protects nothing outside of one', async () => {
        assert.equal(await oneAtATime('one', async () => await isFree()), false);
        assert.equal(await isFree(), true);
        await query('SELECT interlock.lock_key($1)::text AS locked', 'one');
        assert.equal(await isFree(), true);
    });
}

// The SQLSTATE, wherever a library puts the driver's error.
export function codeOf(error) {
    for (let each = error; each; each = each.cause ?? each.driverError ?? each.original ?? each.nativeError ?? each.previous) {
        const code = each.meta?.driverAdapterError?.cause?.originalCode ?? each.meta?.code ?? each.code;
        if (/^[0-9A-Z]{5}$/.test(code) && !/^P2/.test(code)) return code;
    }
}

async function checkRetry({ query, mapped, retry }) {
    const tries = async (code) => {
        let count = 0;
        await assert.rejects(retry(() => {
            count++;
            return mapped(() => query(`DO 'BEGIN RAISE EXCEPTION USING ERRCODE = ''${code}''; END'`));
        }, 2));
        return count;
    };
    const table = { IL001: 2, 40001: 2, '40P01': 2, IL002: 1, IL003: 1, IL004: 1, IL005: 1, IL006: 1, IL007: 1, IL008: 1, P0002: 1 };
    await check('what reading again cures is repeated, and what is hopeless is tried once', async () => {
        const tried = {};
        for (const code of Object.keys(table)) tried[code] = await tries(code);
        assert.deepEqual(tried, table);
    });
}

const ids = [1, 2];
const workers = Array.from({ length: 8 }, (_, n) => n);
const rounds = 8;

// Whether a hit was acknowledged, by whichever writer, and is not stored.
async function lostHits(client, table, work) {
    const raw = async () => {
        const condition = table === 'note' ? 'AND interlock.any_version(version)' : '';
        for (let n = 0; n < rounds; n++)
            for (const id of ids)
                await client.query(`UPDATE ${table} SET hits = hits + 1 WHERE id = $1 ${condition}`, [id]);
        return rounds * ids.length;
    };
    const acknowledged = (await Promise.all([...work(), raw()])).reduce((sum, hits) => sum + hits);
    return acknowledged - await number(client, `SELECT sum(hits) FROM ${table}`);
}

async function checkRace({ addHit, retry }, client, [read, write]) {
    await check('eight workers on two rows beside a writer in plain SQL: 0 lost', async () => {
        await freshNotes(client);
        const work = async (worker) => {
            // on a slow machine the attempts of one call can all meet the other writers
            for (let n = 0; n < rounds; n++) await retry(() => addHit(ids[(worker + n) % 2]));
            return rounds;
        };
        assert.equal(await lostHits(client, 'note', () => workers.map(work)), 0);
    });
    await check('without versions hits are lost', async () => {
        await client.query(`
            CREATE TABLE IF NOT EXISTS plain_note (id int PRIMARY KEY, body text NOT NULL DEFAULT '', hits int NOT NULL DEFAULT 0);
            INSERT INTO plain_note VALUES (1), (2)`);
        // in each round all of them have read before any of them writes
        const all = async () => {
            for (let n = 0; n < rounds; n++) {
                const rows = await Promise.all(workers.map((worker) => read(ids[(worker + n) % 2])));
                await Promise.all(rows.map(write));
            }
            return rounds * workers.length;
        };
        const lost = await lostHits(client, 'plain_note', () => [all()]);
        assert.ok(lost > 0);
        console.log(`# ${lost} of ${rounds * (workers.length + ids.length)} lost`);
    });
}

async function checkLease({ query, underLease }, client) {
    await check('work runs under a lease, which excludes others', async () => {
        const { outcome, result } = await underLease('client', 60, async ({ key, token }) => {
            const [lease] = await query('SELECT token FROM interlock.lease_of($1)', key);
            assert.equal(String(lease.token), String(token));
            assert.equal((await underLease('client', 60, () => assert.fail())).outcome, 'held');
            return 7;
        });
        assert.deepEqual([outcome, result], ['acquired', 7]);
        assert.equal(await number(client, `SELECT count(*) FROM interlock.lease_of('client')`), 0);
    });
    await check('it is renewed, and work whose lease is lost ends', async () => {
        await assert.rejects(underLease('client', 3, async ({ signal }) => {
            const end = () => number(client, `SELECT extract(epoch FROM expires_at) FROM interlock.lease_of('client')`);
            const first = await end();
            await eventually(async () => await end() > first);
            await client.query(`SELECT interlock.break_lease('client', 'test')`);
            if (!signal.aborted) await once(signal, 'abort');
        }), /lost/);
    });
}

async function checkEndpoint({ pay }, client) {
    const payments = (customer) => number(client, 'SELECT count(*) FROM payment WHERE customer = $1', customer);
    await check('of eight payments with one key one is made', async () => {
        const answers = await Promise.all(workers.map(() => pay('anna', 'key-1', { amount: 5 })));
        const statuses = answers.map(({ status }) => status);
        assert.ok(statuses.includes(201) && statuses.every((status) => [201, 409].includes(status)), String(statuses));
        assert.equal(await payments('anna'), 1);
    });
    await check('it is replayed, and another request with the key is refused', async () => {
        const answer = await pay('anna', 'key-1', { amount: 5 });
        assert.deepEqual([answer.status, answer.id], [201, await number(client, `SELECT id FROM payment WHERE customer = 'anna'`)]);
        assert.equal((await pay('anna', 'key-1', { amount: 6 })).status, 422);
        assert.equal(await payments('anna'), 1);
    });
    await check('a request without a key is refused, and has not the key of another one without', async () => {
        for (const key of [undefined, null, '', '']) assert.equal((await pay('dora', key, { amount: 5 })).status, 400);
        assert.equal(await payments('dora'), 0);
    });
    await check('a payment that fails leaves its key free', async () => {
        await assert.rejects(pay('bert', 'key-1', { amount: 'much' }));
        assert.equal((await pay('bert', 'key-1', { amount: 5 })).status, 201);
        assert.equal(await payments('bert'), 1);
    });
}

const update = 'SELECT interlock.versioned_update($1, $2, $3, $4)';
const bad = {
    'a uuid as key of a number': [update, 'note', '0d8f0c5e-7a3b-4f0e-9f3a-5d2c1b0a9e8f', 1, {}],
    'a key of another type': [update, 'note', 'abc', 1, {}],
    'a key without a value': [update, 'note', undefined, 1, {}],
    'an array as key': [update, 'note', [1, 2], 1, {}],
    'bytes as key': [update, 'note', Buffer.from([0, 255]), 1, {}],
    'a number that is no integer of the key': [update, 'note', 2 ** 53, 1, {}],
    'bytes as version': [update, 'note', 1, Buffer.from([1]), {}],
    'an array as version': [update, 'note', 1, [1, 2], {}],
    'no value as version': [update, 'note', 1, undefined, {}],
    'no value as changes': [update, 'note', 1, 1, undefined],
    'null as version': [update, 'note', 1, null, {}],
    'NaN as version': [update, 'note', 1, NaN, {}],
    'a fraction as version': [update, 'note', 1, 1.5, {}],
    'a number that is no bigint': [update, 'note', 1, 1e21, {}],
    'a bigint that is none of PostgreSQL': [update, 'note', 1, 2n ** 64n, {}],
    'a date as version': [update, 'note', 1, new Date(-1), {}],
    'an invalid date as version': [update, 'note', 1, new Date(NaN), {}],
    'null as changes': [update, 'note', 1, 1, null],
    'a number as changes': [update, 'note', 1, 1, 7],
    'text as changes': [update, 'note', 1, 1, 'body'],
    'an array as changes': [update, 'note', 1, 1, ['body']],
    'an unknown column': [update, 'note', 1, 1, { title: 'x' }],
    'a value of another type': [update, 'note', 1, 1, { hits: 'many' }],
    'NaN as a value, which is null in JSON': [update, 'note', 1, 1, { hits: NaN }],
    'a character that PostgreSQL has not': [update, 'note', 1, 1, { body: 'a\0b' }],
    'an unknown table': [update, 'nothing', 1, 1, {}],
    'a ttl that is none': ['SELECT interlock.acquire_lease($1, $2)', 'client', 'soon'],
    'NaN as ttl': ['SELECT interlock.acquire_lease($1, $2)', 'client', NaN],
    'a date as ttl': ['SELECT interlock.acquire_lease($1, $2)', 'client', new Date(-1)],
    'a key that is empty': ['SELECT interlock.acquire_lease($1)', ''],
    'no value as key of a lease': ['SELECT interlock.acquire_lease($1)', undefined],
    'NaN as token': ['SELECT interlock.assert_lease($1, $2)', 'client', NaN],
    'a token that was never given': ['SELECT interlock.assert_lease($1, $2)', 'client', 2n ** 63n - 1n],
    'no value as idempotency key': ['SELECT interlock.idempotency_claim($1, $2)', 'POST /payments', undefined],
    'bytes as token of a claim': ['SELECT interlock.idempotency_complete($1, $2, $3)', 'POST /payments', 'client', Buffer.from([1])],
    'NaN as what a counter is changed by': ['SELECT interlock.adjust($1, $2, $3, $4)', 'note', 1, 'hits', NaN],
};

async function checkBadInput({ query, saveNote }, client) {
    for (const [name, [sql, ...values]] of Object.entries(bad)) {
        await check(`${name} is an error and changes nothing`, async () => {
            await freshNotes(client);
            await assert.rejects(async () => query(sql, ...values));
            assert.deepEqual(await stored(client), { body: 'old', hits: 0, version: 1 });
            assert.equal(await number(client, `SELECT count(*) FROM interlock.leases WHERE key IN ('', 'client')`), 0);
        });
    }
    await check('then the connection is as good as before', async () => {
        await freshNotes(client);
        await saveNote(1, 1, { body: 'new' });
        assert.equal((await stored(client)).body, 'new');
    });
}

// The session that waits for ours is ended by the administrator.
async function killWaiter(client) {
    await eventually(() => killWaiters(client));
}

export async function killWaiters(client) {
    await client.query('SELECT pg_stat_clear_snapshot()');
    return await number(client, `SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
        WHERE datname = current_database() AND pid <> pg_backend_pid() AND state = 'active' AND wait_event IS NOT NULL
          AND query ~ 'interlock|note|payment|call_' AND (wait_event_type = 'Lock' OR query ~ 'acquire_lease' AND wait_event_type <> 'Client')`) > 0;
}

async function checkLostConnections({ query, saveNote, pay }, client) {
    const lost = async (lock, call) => {
        await client.query('BEGIN');
        await client.query(lock);
        const refused = assert.rejects(call());
        await killWaiter(client);
        await refused;
        await client.query('ROLLBACK');
        // a pool may hand out the lost connection once more
        await eventually(() => query('SELECT 1').then(() => true, () => false));
    };
    await check('a connection that is lost while a save waits: nothing is written, and the save can be repeated', async () => {
        await freshNotes(client);
        await lost('SELECT FROM note WHERE id = 1 FOR UPDATE', () => saveNote(1, 1, { body: 'new' }));
        assert.equal((await stored(client)).body, 'old');
        await saveNote(1, 1, { body: 'new' });
        assert.deepEqual(await stored(client), { body: 'new', hits: 0, version: 2 });
    });
    await check('while a payment is made: the next one with the key makes it', async () => {
        await lost('LOCK TABLE payment', () => pay('carl', 'key-1', { amount: 5 }));
        assert.equal((await pay('carl', 'key-1', { amount: 5 })).status, 201);
        assert.equal(await number(client, `SELECT count(*) FROM payment WHERE customer = 'carl'`), 1);
    });
    await check('while a lock of a name waits: it is free afterwards', async () => {
        await lost(`SELECT interlock.lock_key('client')`, () => query('SELECT interlock.lock_key($1)', 'client'));
        assert.equal((await query('SELECT interlock.try_lock_key($1) AS free', 'client'))[0].free, true);
    });
    await check('while a lease is waited for: it is not granted to the dead', async () => {
        const acquire = 'SELECT outcome FROM interlock.acquire_lease($1, $2, $3)';
        await client.query(acquire, ['client', '5 min', '0']);
        await lost('SELECT', () => query(acquire, 'client', '5 min', '5 min'));
        await client.query(`SELECT interlock.break_lease('client', 'test')`);
        await eventually(async () => (await query(acquire, 'client', '1 s', '0'))[0].outcome === 'acquired');
    });
}

// lost.json: functions that change something. The session of each ends after the call, and before its statement ends.
//
//   setup    statements of the owner before, and teardown: after all calls
//   state    a query of what is stored
//   calls    each is lost; then it is called again, with the answer "first"; then it is repeated, as a client does that does not
//            know that it came through: with the answer "again", or null, an error
async function checkLostCalls({ query }, client) {
    const { setup, teardown, state, calls } = JSON.parse(readFileSync(new URL('lost.json', import.meta.url), 'utf8'));
    for (const sql of setup) await client.query(sql);
    const look = async () => (await client.query(state)).rows[0].state;
    const answer = async (sql) => Object.values((await query(sql))[0])[0];
    for (const { name, sql, first, again } of calls)
        await check(`${name} that is lost in the middle changes nothing and can be repeated, also after an unknown outcome`, async () => {
            const before = await look();
            await assert.rejects(query(`WITH done AS MATERIALIZED (${sql})
                SELECT (SELECT count(done) FROM done), pg_terminate_backend(pg_backend_pid()), pg_sleep(600)::text`));
            await eventually(() => query('SELECT 1').then(() => true, () => false)); // a pool may hand out the lost connection
            assert.equal(await look(), before);
            assert.equal(await answer(sql), first);
            if (again === null) await assert.rejects(query(sql));
            else assert.equal(await answer(sql), again);
        });
    for (const sql of teardown) await client.query(sql);
}
