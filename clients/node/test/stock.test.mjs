// Carts and states.

import assert from 'node:assert/strict';
import test from 'node:test';
import { ClaimLost, NotEnough, NotFound, StateChanged, TransitionRefused } from 'pg-interlock';
import { each, run, value } from './lib/shop.mjs';

await run('CREATE TABLE item (id int PRIMARY KEY, stock int NOT NULL)', `SELECT interlock.enable_escrow('item', 'stock')`, 'CREATE TABLE sale (item int)',
    `CREATE TABLE ticket (id int PRIMARY KEY, status text NOT NULL DEFAULT 'open', agent text)`,
    `CREATE FUNCTION why_not(old ticket, new ticket) RETURNS text LANGUAGE plpgsql AS $$ BEGIN RETURN CASE WHEN new.agent IS NULL THEN 'nobody has it' END; END $$`,
    `SELECT interlock.define_transitions('ticket', 'status', '{"open": ["claimed", "closed"], "claimed": ["closed"]}', guards => '{"open": {"claimed": "why_not(ticket, ticket)"}}')`);
const stock = (id) => value(`SELECT interlock.escrow_value('item', $1::int, 'stock')::int`, id);
const items = (...ids) => ids.map((key) => ({ rel: 'item', key, column: 'stock', amount: 1 }));

test('a cart holds all of its items or none, and sells them with the order', async () => {
    await each(async ({ il, rows }) => {
        await run('TRUNCATE sale', 'DELETE FROM item', 'INSERT INTO item VALUES (1, 1), (2, 5)');
        const cart = il.cart('cart 1', '10 min');
        const [held, second] = await cart.add(...items(2, 1));
        assert.deepEqual([typeof held.token, held.key, held.token === second.token, await stock(1), await stock(2)], ['string', 2, true, 0, 4]);
        const other = il.cart('cart 2', '10 min');
        const error = await other.add(...items(1, 2)).catch((raised) => raised);
        assert.ok(error instanceof NotEnough);
        assert.deepEqual([error.status, error.pending, other.items, await stock(2)], [409, true, [], 4]);
        assert.deepEqual(error.short, [{ rel: 'item', key: 1, column: 'stock', amount: 1, outcome: 'pending', remaining: 0 }]);
        const soldOut = await other.add(...items(2), { ...items(1)[0], amount: 3 }).catch((raised) => raised);
        assert.deepEqual([soldOut.pending, soldOut.short.map(({ key }) => key), soldOut.detail.key], [false, [1], 1]);
        await assert.rejects(other.add(...items(7)), NotFound);
        assert.deepEqual(await other.add(), []);

        const later = il.cart('cart 1', '10 min', JSON.parse(JSON.stringify(cart.items))); // another process
        assert.ok(await later.extend('20 min') > new Date());
        await assert.rejects(later.confirm(async (tx) => { await rows(tx, 'INSERT INTO sale VALUES (1)'); throw new RangeError('of the order'); }), RangeError);
        assert.equal(later.items.length, 2);
        assert.equal(await later.confirm(async (tx) => { await rows(tx, 'INSERT INTO sale VALUES (1)'); return 'sold'; }), 'sold');
        assert.deepEqual([later.items, await stock(1), await value('SELECT count(*)::int FROM sale')], [[], 0, 1]);
        await assert.rejects(cart.confirm((tx) => rows(tx, 'INSERT INTO sale VALUES (2)')), ClaimLost); // it is sold already
        await assert.rejects(cart.extend(), ClaimLost);
        assert.equal(await value('SELECT count(*)::int FROM sale'), 1);
    });
});

test('a part of a cart is sold, and the rest is given back', async () => {
    await each(async ({ il, rows }) => {
        await run('TRUNCATE sale', 'DELETE FROM item', 'INSERT INTO item VALUES (1, 9), (2, 9), (3, 9)');
        const cart = il.cart('cart 1', '10 min');
        await cart.add({ ...items(1)[0], amount: '4' }, ...items(2));
        await cart.add(...items(3, 1)); // a second reservation, also of the same counter
        assert.deepEqual([await stock(1), await stock(2), await stock(3)], [4, 8, 8]);
        const order = (tx) => rows(tx, 'INSERT INTO sale VALUES (1)');
        await assert.rejects(cart.confirm(order, { items: [{ ...cart.items[0], amount: 5 }] }), { code: '22023' }); // more than is held
        assert.deepEqual([await stock(1), await value('SELECT count(*)::int FROM sale'), cart.items.length], [4, 0, 4]);
        await cart.confirm(order, { items: [{ ...cart.items[0], amount: 3 }] });
        assert.deepEqual([cart.items, await stock(1), await stock(2), await stock(3), await value('SELECT count(*)::int FROM sale')], [[], 6, 9, 9, 1]);
    });
});

test('an amount keeps its digits, and what is no amount is an error before anything is asked', async () => {
    await each(async ({ il }) => {
        await run('DELETE FROM item', 'INSERT INTO item VALUES (1, 9)', 'DROP TABLE IF EXISTS tank', 'CREATE TABLE tank (id text PRIMARY KEY, litres numeric(18, 4) NOT NULL)',
            `SELECT interlock.enable_escrow('tank', 'litres')`, `INSERT INTO tank VALUES ('a "1"', 10000000000000.0001)`);
        const cart = il.cart('cart 1', '10 min');
        await cart.add({ rel: 'tank', key: 'a "1"', column: 'litres', amount: '9999999999999.0001' });
        assert.equal(await value(`SELECT interlock.escrow_value('tank', 'a "1"', 'litres')::text`), '1.0000');
        for (const amount of ['1e3', '-1', 'NaN', '', '1}', NaN, -1, null]) await assert.rejects(cart.add({ ...items(1)[0], amount }), TypeError);
        await assert.rejects(cart.add({ ...items(1)[0], amount: 0 }), { code: '22023' });
        await cart.cancel();
    });
});

test('a cart that is emptied gives everything back', async () => {
    await each(async ({ il }) => {
        await run('DELETE FROM item', 'INSERT INTO item VALUES (1, 3), (2, 5)');
        const cart = il.cart('cart 1', '10 min');
        await cart.add(...items(1, 2));
        await cart.cancel();
        assert.deepEqual([cart.items, await stock(1), await stock(2)], [[], 3, 5]);
    });
});

test('the buttons of a row, and the loser of two clicks', async () => {
    await each(async ({ il }) => {
        await run('TRUNCATE ticket', 'INSERT INTO ticket VALUES (1), (2)');
        const states = il.states('ticket');
        const { state, next, row } = await states.of(1);
        assert.deepEqual([state, next, row.agent], ['open',
            [{ state: 'claimed', allowed: false, reason: 'nobody has it' }, { state: 'closed', allowed: true, reason: null }], null]);
        const refused = await states.move(1, 'open', 'claimed').catch((raised) => raised);
        assert.ok(refused instanceof TransitionRefused);
        assert.deepEqual([refused.status, refused.reason, refused.current.status], [422, 'nobody has it', 'open']);
        await states.move(1, 'open', 'claimed', { changes: { agent: 'ann' } });
        const late = await states.move(1, 'open', 'closed').catch((raised) => raised);
        assert.ok(late instanceof StateChanged);
        assert.deepEqual([late.status, late.state, late.current.agent], [409, 'claimed', 'ann']);
        await assert.rejects(states.move(1, ['open', 'claimed'], 'closed', { match: { agent: 'bob' } }), StateChanged);
        await states.move(1, ['open', 'claimed'], 'closed', { match: { agent: 'ann' } });
        assert.deepEqual([(await states.of(1)).state, (await states.of(1)).next], ['closed', []]);
        await assert.rejects(states.move(7, 'open', 'closed'), NotFound);
        await assert.rejects(il.states('item').of(1), TypeError);
    });
});
