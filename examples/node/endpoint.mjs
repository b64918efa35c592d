// A payment that is sent twice with one Idempotency-Key is made once, and answered twice.
import { il } from './db.mjs';

export const pay = il.express('payment', { user: (req) => req.user }, async (req, res, tx) => {
    const { order, amount } = req.body;
    const { rows: [{ id }] } = await tx.query('INSERT INTO payment (order_id, amount) VALUES ($1, $2) RETURNING id', [order, amount]);
    await tx.query(`SELECT interlock.transition('orders', $1::int, 'pending', 'paid', jsonb_build_object('paid', $2::numeric))`, [order, amount]);
    res.status(201).location(`/payments/${id}`).json({ id });
});
