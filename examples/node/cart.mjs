// A cart holds its items for 15 minutes, and an order sells them. Tokens stay on the server, in the table cart.
import express from 'express';
import { il, pool } from './db.mjs';

const load = async (id) => il.cart(id, '15 min', (await pool.query('SELECT items FROM cart WHERE id = $1', [id])).rows[0]?.items);

export const carts = express.Router()
    .post('/:id/items', express.json(), async (req, res) => {
        const cart = await load(req.params.id);
        const held = await cart.add(...req.body.map(({ item, amount }) => ({ rel: 'item', key: item, column: 'stock', amount })));    // 409: not enough
        await pool.query('INSERT INTO cart VALUES ($1, $2) ON CONFLICT (id) DO UPDATE SET items = cart.items || excluded.items',
            [cart.holder, JSON.stringify(held)]);
        res.status(201).json({ until: held[0].expiresAt });
    })
    .post('/:id/order', async (req, res) => {
        const cart = await load(req.params.id);
        res.status(201).json({ order: await cart.confirm(async (tx) => {                                                              // 409: too late
            const { rows: [{ id }] } = await tx.query('INSERT INTO orders (cart) VALUES ($1) RETURNING id', [cart.holder]);
            for (const { key, amount } of cart.items) await tx.query('INSERT INTO order_line VALUES ($1, $2, $3)', [id, key, amount]);
            await tx.query('DELETE FROM cart WHERE id = $1', [cart.holder]);
            return id;
        }) });
    });
