// One person edits a document: it is saved while it stays open, a colleague can take over, and all see who edits.
import express from 'express';
import { il } from './db.mjs';

const open = new Map();                                // the editors of this process
const stream = (res) => (event, data = null) => res.write(`event: ${event}\ndata: ${JSON.stringify(data)}\n\n`);

export const documents = express.Router()
    .get('/:id/edit', async (req, res) => {            // open as long as the editor is
        const takeOver = req.query.why, holder = `${req.user}/${req.query.tab}`;
        const edit = await il.edit('document', req.params.id, holder, takeOver ? { takeOver } : {});   // 423: who has it
        const send = stream(res.type('text/event-stream'));
        open.set(holder, edit.on('taken', (by) => send('taken', by)).on('lost', () => send('lost')));
        res.on('close', () => open.delete(holder) && edit.release().catch(console.error));
        send('open', edit.row);
    })
    .put('/:id', express.json(), async (req, res) => { // at each pause of typing, and at the end
        const { tab, close, body } = req.body, edit = open.get(`${req.user}/${tab}`);
        if (!edit) return res.status(409).json({ title: 'open the document again' });
        res.json({ version: await edit.save({ body }, { keep: !close }) });                            // 409: it was taken
    })
    .get('/editors', async (req, res) => {
        const send = stream(res.type('text/event-stream')), stop = new AbortController();
        res.on('close', () => stop.abort());
        for await (const { rows } of il.watch('document', { signal: stop.signal })) send('editors', rows.map(({ key, holder }) => [key.id, holder]));
    });
