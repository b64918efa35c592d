// What an application on Sequelize does, with the code of docs/clients/sequelize.md.
// Prints TAP. Connects as the environment says (PGHOST, PGPORT, PGUSER, PGDATABASE).
// npm: pg-hstore
// only with --all

import pg from 'pg';
import assert from 'node:assert/strict';
import { DataTypes, Op, QueryTypes, Sequelize, literal } from 'sequelize';
import { callAll } from './lib/calls.mjs';
import { checkPage, codeOf, freshNotes, stored } from './lib/client.mjs';
import { check, load } from './lib/page.mjs';

const client = new pg.Client();
await client.connect();
const page = await load('clients/sequelize', client);
const { Note, StaleError, sequelize } = page;

await client.query('ALTER TABLE note ALTER id RESTART WITH 100');
const sameVersion = async (note) => assert.equal(note.version, (await stored(client, note.id)).version);
const blind = (call) => assert.rejects(call, (error) => codeOf(error) === 'IL011');
const stale = async (id = 1) => {
    await freshNotes(client);
    const note = await Note.findByPk(id);
    await client.query(`UPDATE note SET body = 'of another writer' WHERE id = $1 AND interlock.any_version(version)`, [id]);
    return note;
};

await check('save() and update() of a stale instance are OptimisticLockError', async () => {
    await assert.rejects((await stale()).update({ body: 'mine' }), StaleError);
    assert.equal((await stored(client)).body, 'of another writer');
});
await check('destroy() of one deletes nothing', async () => {
    await (await stale()).destroy();
    assert.equal((await stored(client)).body, 'of another writer');
});
await check('increment() of one changes nothing', async () => {
    await (await stale()).increment('hits').catch(() => {});
    assert.equal((await stored(client)).hits, 0);
});
await check('DOC-50: a bigint version, too, is counted and compared', async () => {
    await client.query(`CREATE TABLE large (id int PRIMARY KEY, body text NOT NULL); SELECT interlock.enable_versioning('large', blind_updates => 'reject');
        INSERT INTO large VALUES (1, 'old')`);
    const Large = sequelize.define('large', { id: { type: DataTypes.INTEGER, primaryKey: true }, body: DataTypes.TEXT,
        version: { type: DataTypes.BIGINT, allowNull: false } }, { version: true, timestamps: false, tableName: 'large' });
    const [mine, other] = [await Large.findByPk(1), await Large.findByPk(1)];
    assert.equal(typeof mine.version, 'string');
    for (const body of ['a', 'b']) await mine.update({ body });
    assert.equal(typeof mine.version, 'number');
    assert.deepEqual((await client.query('SELECT body, version FROM large')).rows, [{ body: 'b', version: '3' }]);
    assert.equal(String(mine.version), '3');
    await assert.rejects(other.update({ body: 'c' }), StaleError);
});
await check('what names no version is refused', async () => {
    await stale();
    await blind(Note.update({ body: 'mine' }, { where: { id: 1 } }));
    await blind(Note.destroy({ where: { id: 1 } }));
    await blind(Note.upsert({ id: 1, body: 'mine' }));
    await blind(Note.bulkCreate([{ id: 1, body: 'mine' }], { updateOnDuplicate: ['body'] }));
    await Note.update({ hits: 1 }, { where: { [Op.and]: [{ id: 1 }, literal('interlock.any_version(version)')] } });
    assert.deepEqual([(await stored(client)).body, (await stored(client)).hits], ['of another writer', 1]);
});
await check('the version in memory is that of the row after create, bulkCreate and saves', async () => {
    const note = await Note.create({ body: 'new' });
    await sameVersion(note);
    for (const body of ['a', 'b']) {
        await note.update({ body });
        await sameVersion(note);
    }
    for (const each of await Note.bulkCreate([{ body: 'c' }, { body: 'd' }])) await sameVersion(each);
});
await check('after a rollback to a savepoint a reload makes it so', async () => {
    const note = await Note.create({ body: 'new' });
    await sequelize.transaction(async (transaction) => {
        await sequelize.transaction({ transaction }, async (savepoint) => {
            await note.update({ body: 'undone' }, { transaction: savepoint });
            throw new Error('undo');
        }).catch((error) => assert.equal(error.message, 'undo'));
        await note.reload({ transaction });
        await note.update({ body: 'done' }, { transaction });
    });
    await sameVersion(note);
});

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
const owner = new Sequelize({ ...sequelize.options, database: process.env.PGDATABASE, username: client.user, pool: { max: 1 } });
owner.define('note', Note.rawAttributes, { version: true, timestamps: false, tableName: 'note' });
await check('sync({ alter }) replaces the default, and advise() finds that', async () => {
    await owner.sync();
    const findings = async () => (await client.query(`SELECT finding FROM interlock.advise() WHERE rel = 'note'::regclass`)).rows.length;
    assert.equal(await findings(), 0);
    await owner.sync({ alter: true });
    assert.equal(await findings(), 1);
    await client.query(`SELECT interlock.enable_versioning('note', blind_updates => 'reject')`);
});

await callAll('sequelize', async (text, bind) => (await owner.query(text, { bind, type: QueryTypes.SELECT })).map(Object.values));
await owner.close();

console.log(`1..${check.count}`);
await sequelize.close();
await client.end();
