// An application of six features on one pool. Conflicts are errors with a status.
import express from 'express';
import { orders } from './buttons.mjs';
import { carts } from './cart.mjs';
import { documents } from './edit-lock.mjs';
import { pay } from './endpoint.mjs';
import { importFile } from './importer.mjs';
import { nightly } from './nightly-job.mjs';

export const app = express()
    .use((req, res, next) => { req.user = req.get('X-User'); next(); })        // whom your application has authenticated
    .use('/documents', documents).use('/carts', carts).use('/orders', orders).post('/payments', express.json(), pay)
    .post('/imports/:name', express.json(), async (req, res) => res.json(await importFile(req.params.name, req.body)))
    .use((error, req, res, next) => res.status(error.status ?? 500).set(error.headers ?? {}).json({ title: error.message, current: error.current }));
export const tick = (time = new Date()) => nightly(new Intl.DateTimeFormat('sv-SE', { timeZone: 'Europe/London' }).format(time));
