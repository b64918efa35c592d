#!/usr/bin/env node
// A console for pg_interlock in the browser: who holds what, who waits, what is stuck, what is not protected. The pages are in public/.
//
//   pg-interlock-console                          the server of PGHOST, PGDATABASE and so on, or of DATABASE_URL
//   pg-interlock-console --url postgres://...     any connection
//   pg-interlock-console --allow-actions          with buttons that break, release, take over and forget, for roles that may
//   pg-interlock-console --port 9000              8765 by default
//   pg-interlock-console --host 0.0.0.0           127.0.0.1 by default; another address needs one of the next two:
//   CONSOLE_PASSWORD=... pg-interlock-console     people enter this password, with any name
//   pg-interlock-console --user-header X-User     a proxy in front has asked who it is, and names the user in this header
//   pg-interlock-console --name console.example   the name in the address, if it is not one of this machine and nobody signs in
//
// It reads the views of the extension as its role sees them, and keeps nothing itself.

import express from 'express';
import pg from 'pg';
import { createHash, createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import { isIP } from 'node:net';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { readFileSync } from 'node:fs';
import { interlock } from 'pg-interlock';
import { actions } from './actions.mjs';
import { foreignPolicies, isInstalled, queries, rights, server as serverQuery } from './queries.mjs';

// --- What the command says ---

function options() {
    try {
        const { values } = parseArgs({ options: {
            url: { type: 'string', default: process.env.DATABASE_URL }, host: { type: 'string', default: '127.0.0.1' }, port: { type: 'string', default: '8765' },
            'allow-actions': { type: 'boolean', default: false }, 'user-header': { type: 'string' }, name: { type: 'string' }, help: { type: 'boolean', short: 'h' },
        } });
        return values;
    } catch (error) {
        end(error.message);
    }
}
function end(message) {
    console.error(`pg-interlock-console: ${message}`);
    process.exit(2);
}
const { url, host, port, help, 'allow-actions': allowActions, 'user-header': userHeader, name: ownName } = options();
const password = process.env.CONSOLE_PASSWORD;
if (help) {
    const [, ...comment] = readFileSync(fileURLToPath(import.meta.url), 'utf8').split('\n\n')[0].split('\n');
    console.log(comment.map((line) => line.replace(/^\/\/ ?/, '')).join('\n'));
    process.exit();
}
const isLoopback = host === 'localhost' || host === '::1' || (isIP(host) === 4 && host.startsWith('127.'));
if (!isLoopback && !password && !userHeader) end(`${host} can be reached from other machines: set CONSOLE_PASSWORD, or name the header of a proxy by --user-header`);
if (!/^\d{1,5}$/.test(port) || Number(port) > 65535) end('--port takes a number up to 65535');
if (userHeader !== undefined && !/^[A-Za-z0-9-]+$/.test(userHeader)) end('--user-header takes the name of a header');

// --- The database ---

// All values stay texts.
const pool = new pg.Pool({ ...(url && { connectionString: url }), application_name: 'pg-interlock-console', max: 8, connectionTimeoutMillis: 10_000,
    types: { getTypeParser: () => (value) => value } }).on('error', (error) => console.error(error.message));
const il = interlock(pool);

class NotInstalled extends Error {
    status = 404;
    hint = `Connect to another database, or run CREATE EXTENSION pg_interlock as a superuser.`;
}

// Only functions and operators of the server and of the extension are called, whoever made others.
const inDatabase = (work, mode = 'READ ONLY', timeout = '20s') => il.transaction(async (tx) => {
    await tx.query(`SET TRANSACTION ${mode}; SET LOCAL search_path = pg_catalog; SET LOCAL DateStyle = 'ISO'; SET LOCAL TimeZone = 'UTC';
        SET LOCAL lock_timeout = '2s'; SET LOCAL statement_timeout = '${timeout}'; SET LOCAL jit = off`);
    const ask = async (sql, values = []) => (await tx.query(sql, values)).rows;
    const [{ installed }] = await ask(isInstalled);
    const [state] = await ask(serverQuery);
    if (installed !== 't') throw Object.assign(new NotInstalled(`The database ${state.database} does not have the extension pg_interlock.`), { state });
    return await work(ask, state, tx);
});

// --- Who asks ---

const digest = (text) => createHash('sha256').update(text).digest();
const key = randomBytes(32);
const tokenOf = (cookie) => createHmac('sha256', key).update(cookie).digest('hex');
const cookieOf = (req) => /(?:^|;\s*)console=([0-9a-f]{32})(?:;|$)/.exec(req.headers.cookie ?? '')?.[1];

// A name that leads here from another site would let that site read the answers, and set the header of a proxy: without a password only
// names of this machine, and the one that --name gives.
function isOwnName(req) {
    const name = (req.headers.host ?? '').toLowerCase();
    return Boolean(password) || /^(127(\.\d+){3}|localhost|\[::1\])(:\d+)?$/.test(name) || name === ownName?.toLowerCase();
}

// A page of another site can make a browser send any GET.
const isOtherSite = (req) => ['cross-site', 'same-site'].includes(req.get('Sec-Fetch-Site'));

function authenticate(req, res, next) {
    if (!isOwnName(req)) return res.status(421).json({ title: 'this console has another name', hint: 'Name it by --name.' });
    if (req.path.startsWith('/api') && isOtherSite(req)) return res.status(403).json({ title: 'the request comes from another site' });
    if (password) {
        const given = Buffer.from(/^Basic (.+)$/.exec(req.headers.authorization ?? '')?.[1] ?? '', 'base64').toString();
        const [, name, secret] = /^([^:]*):(.*)$/s.exec(given) ?? [];
        if (secret === undefined || !timingSafeEqual(digest(secret), digest(password)))
            return res.status(401).set('WWW-Authenticate', 'Basic realm="pg_interlock", charset="UTF-8"').json({ title: 'the password is needed' });
        req.user = name;
    }
    if (userHeader) {
        req.user = req.get(userHeader)?.slice(0, 200);
        if (!req.user) return res.status(401).json({ title: `the proxy must name the user in ${userHeader}` });
    }
    next();
}

// Another site can make a browser send a form, with a password that the browser knows. It can neither read the token nor set the header.
function fromOwnPage(req, res, next) {
    const cookie = cookieOf(req), token = req.get('X-CSRF-Token') ?? '';
    const isOwn = cookie && req.is('application/json') && timingSafeEqual(digest(token), digest(tokenOf(cookie)))
        && !isOtherSite(req);
    return isOwn ? next() : res.status(403).json({ title: 'this request does not come from a page of this console: load the page again' });
}

// --- HTTP ---

const api = express.Router();
api.use((req, res, next) => {
    res.set('Cache-Control', 'no-store');
    next();
});

api.get('/state', async (req, res) => {
    const cookie = cookieOf(req) ?? randomBytes(16).toString('hex');
    res.cookie('console', cookie, { httpOnly: true, sameSite: 'strict', path: '/' });
    const about = { actions: allowActions, user: req.user, token: tokenOf(cookie) };
    res.json(await inDatabase(async (ask, state) => ({ ...about, ...state, installed: true, ...(await ask(rights))[0] }))
        .catch((error) => {
            if (error instanceof NotInstalled) return { ...about, ...error.state, installed: false, title: error.message, hint: error.hint };
            throw error;
        }));
});

api.get('/read/:name', async (req, res) => {
    const { name } = req.params;
    if (!Object.hasOwn(queries, name)) return res.status(404).json({ title: 'there is no such view' });
    const { sql, values } = queries[name](Object.fromEntries(Object.entries(req.query).filter(([, value]) => typeof value === 'string')));
    res.json(await inDatabase(async (ask, { now }) => {
        if (name === 'history' && (await ask(foreignPolicies, [String(req.query.relid)]))[0].found === 't')
            throw Object.assign(new Error('Another role has policies on this table or its history. They would run with the rights of the console.'), { status: 403, expose: true });
        const rows = await ask(sql, values);
        return { now, rows, total: rows[0]?.total };
    }));
});

api.post('/act/:name', fromOwnPage, express.json({ limit: '100kb' }), async (req, res) => {
    const { params: { name }, body: { reason, ...rest } = {} } = req;
    if (!allowActions) return res.status(403).json({ title: 'this console only reads: start it with --allow-actions' });
    if (!Object.hasOwn(actions, name)) return res.status(404).json({ title: 'there is no such action' });
    if (typeof reason !== 'string' || reason.trim() === '' || reason.length > 1000) return res.status(400).json({ title: 'give a reason' });
    if (await inDatabase((ask, { standby }) => standby) === 't') return res.status(409).json({ title: 'This server is a standby: nothing can be changed here. Connect to the primary.' });
    const notices = [];
    const title = await inDatabase(async (ask, state, tx) => {
        const hear = ({ severity, message, detail }) => severity === 'WARNING' && notices.push([message, detail].filter(Boolean).join(': '));
        tx.on('notice', hear);
        try {
            return await actions[name](ask, rest, req.user ? `${reason.trim()} (${req.user})` : reason.trim());
        } finally {
            tx.removeListener('notice', hear);
        }
    }, 'READ WRITE', '60s');
    res.json({ title: [title, ...notices].join(' ') });
});

// What the server refuses is shown with its words. 503: the database cannot be reached now, and the page tries again.
api.use((error, req, res, next) => {
    if (res.headersSent) return next(error);
    const code = error.cause?.code ?? error.code, isAnswer = /^[0-9A-Z]{5}$/.test(code ?? '') && !/^(08|57P|53[0-3])/.test(code);
    const status = error instanceof NotInstalled || error.status === 409 ? error.status : isAnswer ? 422 : error.expose ? error.status : 503;
    const detail = error.cause?.detail ?? (typeof error.detail === 'string' ? error.detail : undefined);
    if (status === 503) console.error(error.message || error.code);
    res.status(status).json({ title: error.message || error.code || 'the database does not answer', code, detail, hint: error.hint });
});

const app = express().disable('x-powered-by')
    .use((req, res, next) => {
        res.set({
            'Content-Security-Policy': `default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; ` +
                `form-action 'none'; base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'`,
            'X-Content-Type-Options': 'nosniff', 'Referrer-Policy': 'no-referrer', 'Cross-Origin-Resource-Policy': 'same-origin', 'X-Frame-Options': 'DENY',
            'Cross-Origin-Opener-Policy': 'same-origin',
        });
        next();
    })
    .use(authenticate)
    .use('/api', api)
    .use(express.static(fileURLToPath(new URL('public', import.meta.url))))
    .use((req, res) => res.status(404).json({ title: 'there is no such page' }));

app.listen(Number(port), host, function (error) {
    if (error) end(error.message);
    const { address, family, port } = this.address();
    console.log(`http://${family === 'IPv6' ? `[${address}]` : address}:${port}/`);
});
for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => process.exit());
