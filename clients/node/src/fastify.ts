// Fastify: options of a route, with the handler and the hooks that take its answer.

import type { Driver } from './driver.js';
import { answerOnce, changedHeaders, checkParsed, type Answer, type EndpointOptions } from './http.js';

/** What we need of a request and a reply of Fastify. */
export interface FastifyRequestLike { method: string; url: string; headers: Record<string, string | string[] | undefined>; body: unknown }
export interface FastifyReplyLike {
    statusCode: number;
    code(status: any): this;
    header(name: any, value: any): this;
    getHeaders(): object;
    send(payload?: any): this;
}

interface Running {
    before: Record<string, unknown>;
    settle(answer: Answer): void;
    fail(error: unknown): void;
    ended: Promise<Answer>;
    failed: boolean;
}

export function fastifyRoute<Tx, Req extends FastifyRequestLike, Reply extends FastifyReplyLike>(driver: Driver<Tx>, scope: string,
    options: EndpointOptions<Req>, handler: (request: Req, reply: Reply, tx: Tx) => unknown) {
    const requests = new WeakMap<object, Running>();
    return {
        async handler(request: Req, reply: Reply): Promise<unknown> {
            checkParsed(request.body, request.headers, 'Fastify has no parser for its type');
            const [path, query] = request.url.split('?');
            const key = request.headers[(options.header ?? 'Idempotency-Key').toLowerCase()];
            const user = await options.user(request);
            let settle!: Running['settle'], fail!: Running['fail'], begin!: (tx: Tx) => void;
            const answer = new Promise<Answer>((resolve, reject) => { settle = resolve; fail = reject; });
            answer.catch(() => {});
            const begun = new Promise<Tx>((resolve) => { begin = resolve; });
            const ended = answerOnce(driver, scope, {
                method: request.method, path: path!, key: Array.isArray(key) ? key.join(', ') : key, user, body: { query, body: request.body },
            }, options, (tx) => { begin(tx); return answer; });
            const first = await Promise.race([begun.then((tx) => ({ tx })), ended]);
            if ('status' in first) return send(reply, first);
            const running: Running = { before: { ...reply.getHeaders() }, settle, fail, ended, failed: false };
            requests.set(request, running);
            const late = ended.then((it) => { if (requests.delete(request)) send(reply, it); return reply; }, () => new Promise<never>(() => {}));
            try {
                return await Promise.race([Promise.resolve(handler(request, reply, first.tx)), late]);
            } catch (error) {
                await rollBack(running, error);
                throw error;
            }
        },
        // What is sent by reply.send(error) has no effect either.
        async onError(request: Req, _reply: Reply, error: unknown): Promise<void> {
            const running = requests.get(request);
            if (running) await rollBack(running, error);
        },
        // Before the answer is on its way: commit, and keep it.
        async onSend(request: Req, reply: Reply, payload: unknown): Promise<unknown> {
            const running = requests.get(request);
            if (!running) return payload;
            requests.delete(request);
            if (running.failed) return payload;
            const body = await bytesOf(payload);
            running.settle({ status: reply.statusCode, headers: changedHeaders(running.before, reply.getHeaders() as Record<string, unknown>), body });
            const { status } = await running.ended;
            if (status !== reply.statusCode) reply.code(status);
            return body.length === 0 ? payload ?? '' : body;
        },
    };
}

async function rollBack(running: Running, error: unknown): Promise<void> {
    running.failed = true;
    running.fail(error);
    await running.ended.catch(() => {});
}

function send(reply: FastifyReplyLike, { status, headers, body }: Answer): FastifyReplyLike {
    reply.code(status);
    for (const [name, value] of Object.entries(headers)) reply.header(name, value);
    return reply.send(body.length === 0 ? undefined : body);
}

async function bytesOf(payload: unknown): Promise<Buffer> {
    if (payload === undefined || payload === null) return Buffer.alloc(0);
    if (typeof payload === 'string') return Buffer.from(payload);
    if (payload instanceof Uint8Array) return Buffer.from(payload);
    if (payload instanceof ReadableStream || typeof (payload as AsyncIterable<Uint8Array>)[Symbol.asyncIterator] === 'function') {
        const chunks: Buffer[] = [];
        for await (const chunk of payload as AsyncIterable<Uint8Array | string>) chunks.push(Buffer.from(chunk as Uint8Array));
        return Buffer.concat(chunks);
    }
    throw new TypeError('this answer cannot be kept: send text, bytes, JSON or a stream');
}
