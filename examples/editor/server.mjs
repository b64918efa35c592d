// Documents that several people edit: HTTP and server-sent events over pg-interlock. The pages are in public/.
//
// The connection is that of PGHOST, PGUSER and similar variables. PORT is 8080 by default, HOST is 127.0.0.1. There are no passwords: a
// tab says who its user is, in the header X-User. A program of your own takes the user of its session there. So listen on loopback only.

import express from 'express';
import pg from 'pg';
import { fileURLToPath } from 'node:url';
import { interlock } from 'pg-interlock';

const pool = new pg.Pool().on('error', console.error);
const il = interlock(pool);
const states = il.states('document');

// --- The tabs that look, and their events ---

const tabs = new Map();                                // holder -> { document, send }
const edits = new Map();                               // document and holder -> Edit
const editOf = (id, holder) => `${id} ${holder}`;
const tellAll = (event, data) => { for (const { send } of tabs.values()) send(event, data); };

// Who edits and who looks. The time that is left is a number of milliseconds: the clock of a tab may be wrong.
async function showPeople() {
    const { rows } = await pool.query(
        `SELECT (key->>'id')::int AS id, holder, reason, (extract(epoch FROM expires_at - clock_timestamp()) * 1000)::int AS "left"
           FROM interlock.row_locks WHERE rel = 'document'::regclass AND live`);
    tellAll('people', { editing: rows, looking: [...tabs].map(([holder, { document }]) => ({ id: document, holder })) });
}
const show = () => void showPeople().catch(console.error);

// A lock that changes, in whichever process or program.
async function followLocks() {
    for await (const _ of il.watch('document')) show();
}

// A text that changes, in whichever program. A tab reads the list again, and its document if the version is another one.
async function followTexts() {
    for (;;) {
        const client = new pg.Client();
        const ended = new Promise((resolve) => client.on('error', () => {}).on('end', resolve));
        try {
            await client.connect();
            client.on('notification', () => tellAll('changed'));
            await client.query('LISTEN interlock_history');
            tellAll('changed');
            await ended;
        } catch (error) {
            console.error(error.message);
            await client.end().catch(() => {});
        }
        await new Promise((resolve) => setTimeout(resolve, 1000));
    }
}

// --- Editing ---

// The same holder may call it again: after a takeover, a reload of the page, or a restart of this process.
async function open(id, holder, reason) {
    const edit = await il.edit('document', id, holder, reason ? { reason } : {});
    const key = editOf(id, holder);
    const end = (event, by) => {
        if (edits.get(key) !== edit) return;
        edits.delete(key);
        tabs.get(holder)?.send(event, { id, by });
    };
    edits.set(key, edit.on('taken', (by) => end('taken', by)).on('lost', () => end('lost')));
    show();
    return edit;
}

// Only from the named holder. The row stays locked from the check to the takeover, so of two people who take over at the same time one
// is refused: the check of the second waits for the first, and finds the new holder.
const takeFrom = (id, from, holder, reason) => il.transaction(async (tx) => {
    await tx.query('SELECT FROM document WHERE id = $1 FOR UPDATE', [id]);
    const { rows: [now] } = await tx.query(`SELECT holder FROM interlock.row_lock_of('document', $1::int) WHERE locked`, [id]);
    if (now && now.holder !== from && now.holder !== holder) return { refused: now.holder };
    const { rows: [{ outcome, previous_holder }] } = await tx.query(
        `SELECT outcome, previous_holder FROM interlock.take_over_row('document', $1::int, $2, $3)`, [id, holder, reason]);
    return { from: outcome === 'taken' ? previous_holder : null };
});

// What is written in the transaction belongs to the holder: the row may be locked for it, and the history has the name.
const as = (holder, sql, ...values) => il.transaction(async (tx) => {
    await tx.query('SELECT interlock.set_holder($1)', [holder]);
    return (await tx.query(sql, values)).rows[0];
});

// --- HTTP ---

const api = express.Router();
api.use(express.json({ limit: '4mb' }), (req, res, next) => {
    const user = decodeURIComponent(req.get('X-User') ?? req.query.user ?? ''), tab = req.get('X-Tab') ?? req.query.tab ?? '';
    if (!/^[0-9a-f]{8}$/.test(tab) || user.trim() === '' || user.length > 100) return res.status(400).json({ title: 'say who you are' });
    req.holder = `${user}/${tab}`;
    res.set('Cache-Control', 'no-store');
    next();
});
api.param('id', (req, res, next, id) => /^\d{1,9}$/.test(id) ? next() : res.status(404).json({ title: 'there is no such document' }));

api.get('/events', (req, res) => {
    const { holder } = req, send = (event, data = null) => res.write(`event: ${event}\ndata: ${JSON.stringify(data)}\n\n`);
    res.type('text/event-stream').flushHeaders();
    const tab = { document: Number(req.query.document) || null, send };
    tabs.set(holder, tab);
    show();
    // The lock is not released: a tab that was offline continues with it, or it ends by itself.
    res.on('close', () => {
        if (tabs.get(holder) === tab) tabs.delete(holder);
        show();
    });
});

api.get('/documents', async (req, res) => {
    const { rows } = await pool.query('SELECT id, title, status, version::text FROM document ORDER BY id');
    res.json(rows);
});
api.post('/documents', async (req, res) => {
    res.status(201).json(await as(req.holder, 'INSERT INTO document (title) VALUES ($1) RETURNING id', String(req.body.title)));
});
api.get('/documents/:id', async (req, res) => res.json(await states.of(req.params.id)));

// `takeOver` is the reason. The page names in `from` whom it has shown as the holder.
api.post('/documents/:id/edit', async (req, res) => {
    const { params: { id }, holder, body: { takeOver, from } } = req;
    const taken = takeOver ? await takeFrom(id, from, holder, takeOver) : {};
    if (taken.refused)
        return res.status(409).json({
            title: `${taken.refused.replace(/\/[^/]*$/, '')} edits this document by now. Nothing was changed.`,
            holder: taken.refused,
        });
    const { row, version } = await open(id, holder, takeOver);
    res.json({ row, version, takenFrom: taken.from ?? null });
});
// `version` is that of the text that the tab began with, so that a save that comes late is merged and overwrites nothing.
api.put('/documents/:id', async (req, res) => {
    const { params: { id }, holder, body: { title, body, version, keep } } = req;
    const edit = edits.get(editOf(id, holder)) ?? await open(id, holder);
    const saved = await edit.save({ title: String(title), body: String(body) }, { expected: String(version), keep: Boolean(keep) });
    if (!keep) edits.delete(editOf(id, holder));
    res.json({ version: saved });
    show();
});
api.post('/documents/:id/touch', async (req, res) => {
    const edit = edits.get(editOf(req.params.id, req.holder));
    res.json({ held: edit ? await edit.touch() : false });
    show();
});
api.post('/documents/:id/release', async (req, res) => {
    const key = editOf(req.params.id, req.holder), edit = edits.get(key);
    edits.delete(key);
    res.json({ held: edit ? await edit.release() : false });
});

api.post('/documents/:id/ask', (req, res) => {
    const tab = tabs.get(req.body.holder);
    tab?.send('asked', { id: req.params.id, by: req.holder });
    res.status(tab ? 200 : 404).json({ title: tab ? 'asked' : 'the tab of that person is not connected' });
});
api.post('/documents/:id/hand-over', async (req, res) => {
    const { params: { id }, holder, body: { to } } = req;
    edits.delete(editOf(id, holder));                  // it ends by our own wish: no event
    await pool.query('SELECT interlock.hand_over_row($1, $2::int, $3, $4)', ['document', id, holder, to]);
    tabs.get(to)?.send('yours', { id, from: holder });
    res.json({ title: 'handed over' });
});

// The holder changes the status while the row is locked, anybody else while nobody edits. Another program may have been faster: 409.
api.post('/documents/:id/status', async (req, res) => {
    const { params: { id }, holder, body: { from, to } } = req;
    await as(holder, 'SELECT interlock.transition($1, $2::int, $3, $4)', 'document', id, String(from), String(to));
    res.json(await states.of(id));
});

api.get('/documents/:id/history', async (req, res) => {
    const { rows } = await pool.query(
        `SELECT h.id::text, version::text, changed_at, writer, operation, changed FROM interlock.row_history('document', $1::int) h
          ORDER BY h.id DESC LIMIT 100`, [req.params.id]);
    res.json(rows);
});
api.get('/documents/:id/history/:entry', async (req, res) => {
    const { rows: [entry] } = await pool.query(
        `SELECT before, row_data AS row FROM interlock.row_history('document', $1::int) WHERE id::text = $2`, [req.params.id, req.params.entry]);
    res.status(entry ? 200 : 404).json(entry ?? { title: 'that version is no longer kept' });
});
api.post('/documents/:id/revert', async (req, res) => {
    const { params: { id }, holder, body: { to, expected } } = req;
    res.json(await as(holder, `SELECT interlock.revert_row('document', $1::int, to_version => $2::bigint, expected => $3::bigint)::text AS version`,
        id, String(to), String(expected)));
});

// Conflicts have a status and the row as it is now. What the data types refuse is the caller's error; the rest may pass.
api.use((error, req, res, next) => {
    if (res.headersSent) return next(error);
    const status = error.status ?? (/^2[23]/.test(error.code) ? 400 : 503);
    if (status >= 500) console.error(error);
    const { name, message, current, version, holder, reason } = error;
    res.status(status).json({ name, title: message, current, version, holder: holder ?? error.detail?.holder, reason });
});

express().disable('x-powered-by')
    .use((req, res, next) => {
        res.set({
            'Content-Security-Policy': `default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; ` +
                `form-action 'none'; base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'`,
            'X-Content-Type-Options': 'nosniff', 'Referrer-Policy': 'no-referrer',
        });
        next();
    })
    .use('/api', api)
    .use(express.static(fileURLToPath(new URL('public', import.meta.url))))
    .use((req, res) => res.status(404).json({ title: 'there is no such page' }))
    .listen(Number(process.env.PORT ?? 8080), process.env.HOST || '127.0.0.1', function (error) {
        if (error) throw error;
        console.log(`http://127.0.0.1:${this.address().port}/`);
    });
followTexts();
await followLocks();
