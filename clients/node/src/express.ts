// Express: a handler whose answer is sent when its transaction is committed.

import type { IncomingMessage, OutgoingHttpHeaders, ServerResponse } from 'node:http';
import type { Driver } from './driver.js';
import { answerOnce, changedHeaders, checkParsed, type Answer, type EndpointOptions } from './http.js';

/** What we need of a request of Express. */
export interface ExpressRequest extends IncomingMessage { originalUrl: string; body?: any }
export type ExpressNext = (error?: any) => void;

export function expressHandler<Tx, Req extends ExpressRequest, Res extends ServerResponse>(driver: Driver<Tx>, scope: string,
    options: EndpointOptions<Req>, handler: (req: Req, res: Res, tx: Tx) => unknown) {
    return async (req: Req, res: Res, next: ExpressNext): Promise<void> => {
        let capture: Capture | undefined;
        try {
            checkParsed(req.body, req.headers, 'call app.use(express.json()) before');
            const key = req.headers[(options.header ?? 'Idempotency-Key').toLowerCase()];
            const answer = await answerOnce(driver, scope, {
                method: req.method ?? '', path: req.originalUrl.split('?')[0]!, key: Array.isArray(key) ? key.join(', ') : key,
                user: await options.user(req), body: { query: req.originalUrl.split('?')[1], body: req.body },
            }, options, (tx) => {
                const capturing = capture = new Capture(res);
                return Promise.race([capturing.answer, failure(async () => handler(req, res, tx))]);
            });
            capture?.end();
            send(res, answer);
        } catch (error) {
            capture?.end();
            next(error);
        }
    };
}

// Rejects as the handler does, and never resolves: the answer ends it.
const failure = (handler: () => Promise<unknown>) => new Promise<never>((_, reject) => { handler().catch(reject); });

function send(res: ServerResponse, { status, headers, body }: Answer): void {
    if (res.headersSent || res.destroyed) return;
    res.statusCode = status;
    for (const [name, value] of Object.entries(headers)) res.setHeader(name, value);
    if (status === 204 || status === 304) res.end();
    else res.setHeader('Content-Length', body.length).end(body);
}

/** Takes what is written to a response, until end(). */
class Capture {
    readonly answer: Promise<Answer>;
    readonly end: () => void;

    constructor(res: ServerResponse) {
        const before = res.getHeaders();
        const { write, end, writeHead, flushHeaders } = res;
        const chunks: Buffer[] = [];
        const keep = (chunk: unknown, encoding: unknown) => {
            if (chunk === undefined || chunk === null || typeof chunk === 'function') return;
            chunks.push(typeof chunk === 'string' ? Buffer.from(chunk, typeof encoding === 'string' ? encoding as BufferEncoding : 'utf8') : Buffer.from(chunk as Uint8Array));
        };
        const callback = (...values: unknown[]) => { const last = values.at(-1); if (typeof last === 'function') queueMicrotask(() => last()); };
        let resolve: (answer: Answer) => void = () => {};
        this.answer = new Promise((done) => { resolve = done; });
        this.end = () => Object.assign(res, { write, end, writeHead, flushHeaders });
        Object.assign(res, {
            write(chunk: unknown, encoding?: unknown, done?: unknown) { keep(chunk, encoding); callback(encoding, done); return true; },
            end(chunk?: unknown, encoding?: unknown, done?: unknown) {
                keep(chunk, encoding);
                callback(chunk, encoding, done);
                resolve({ status: res.statusCode, headers: changedHeaders(before, res.getHeaders()), body: Buffer.concat(chunks) });
                return res;
            },
            writeHead(status: number, ...more: unknown[]) {
                res.statusCode = status;
                const headers = more.at(-1) as OutgoingHttpHeaders | undefined;
                if (headers && typeof headers === 'object') {
                    for (const [name, value] of Object.entries(headers)) if (value !== undefined) res.setHeader(name, value);
                }
                return res;
            },
            flushHeaders() {},
        });
    }
}
