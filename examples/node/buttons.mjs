// The buttons of an order: what may be clicked now and why not, and the click. Of two clicks at once one is 409.
import express from 'express';
import { il } from './db.mjs';

export const orders = express.Router()
    .get('/:id', async (req, res) => res.json(await il.states('orders').of(req.params.id)))
    .post('/:id/:from/:to', async (req, res) => {
        await il.states('orders').move(req.params.id, req.params.from, req.params.to);
        res.json(await il.states('orders').of(req.params.id));
    });
