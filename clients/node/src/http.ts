// The Idempotency-Key of HTTP, after the draft "The Idempotency-Key HTTP Header Field". Express, Fastify and Hono share it.

import type { Driver } from './driver.js';
import { claimed, type OnceOptions } from './once.js';
import { fromJson, hashOf, idempotencyKeyText, seconds, toJson, type Duration } from './values.js';

export interface EndpointOptions<Request> {
    /**
     * Who asks: the name or number of the user whom the application has authenticated. Two users who send one key do not
     * meet. No user (undefined, null or '') is answered with 401.
     */
    user: (request: Request) => string | number | bigint | null | undefined | Promise<string | number | bigint | null | undefined>;
    /** How long a repeated request waits for the first one; 0 by default: 409 at once. It occupies a connection meanwhile. */
    wait?: Duration;
    /** How long the answer is remembered, at most the scope's ttl. */
    ttl?: Duration;
    /** How long the handler may take, 60 s by default. Then its transaction is rolled back, and the answer is 503. */
    timeout?: Duration;
    /** The header with the key, 'Idempotency-Key' by default. */
    header?: string;
}

export interface HttpRequest {
    method: string;
    path: string;
    key: string | undefined;
    user: string | number | bigint | null | undefined;
    body: unknown;
}

export interface Answer {
    status: number;
    headers: Record<string, string | string[]>;
    body: Buffer;
}

// Not kept: of one connection, of one moment, or a secret of one client.
const passing = new Set(['connection', 'keep-alive', 'proxy-authenticate', 'te', 'trailer', 'transfer-encoding', 'upgrade', 'date',
    'content-length', 'set-cookie']);

/** An answer of 500 and more: nothing is kept, and its key is free. */
class NotKept {
    readonly answer: Answer;
    constructor(answer: Answer) { this.answer = answer; }
}

/** Works once for the request's key. `handler` answers; what it throws is thrown on, and leaves no effect and no key. */
export async function answerOnce<Tx>(driver: Driver<Tx>, scope: string, request: HttpRequest, options: Omit<EndpointOptions<never>, 'user'>,
    handler: (tx: Tx) => Promise<Answer>): Promise<Answer> {
    const { method, path, user, body } = request;
    const sent = keyOf(request.key);
    if (sent === undefined) {
        return problem(400, `the header ${options.header ?? 'Idempotency-Key'} is required once: 1 to 255 visible characters of ASCII`);
    }
    if (user === undefined || user === null || user === '') return problem(401, 'an idempotent request needs a user');
    const key = idempotencyKeyText([String(user), method, path, sent]);
    const timeout = seconds(options.timeout ?? 60) * 1000;
    try {
        const { claim, result } = await claimed(driver, scope, key, hashOf({ method, path, body }), onceOptions(options), async (tx) => {
            const answer = await inTime(timeout, handler(tx));
            if (answer.status >= 500) throw new NotKept(answer);
            return { result: answer, stored: storedOf(answer) };
        });
        switch (claim.outcome) {
            case 'acquired': return result!;
            case 'replay': return replayOf(claim);
            case 'in_progress': return problem(409, 'a request with this key is being processed', { 'Retry-After': String(claim.retryAfter) });
            case 'mismatch': return problem(422, 'this key was used with another request');
            default: return problem(500, 'the request has failed');
        }
    } catch (error) {
        if (error instanceof NotKept) return error.answer;
        throw error;
    }
}

const onceOptions = ({ wait, ttl }: OnceOptions): OnceOptions => ({ ...(wait === undefined ? {} : { wait }), ...(ttl === undefined ? {} : { ttl }) });

// The header is a string in quotes; clients that send it without are accepted. Two headers arrive joined by a comma and a blank.
const keyOf = (header: string | undefined) => /^"([!#-~]{1,255})"$|^([!#-~]{1,255})$/.exec(header ?? '')?.slice(1).find((key) => key !== undefined);

async function inTime(milliseconds: number, answer: Promise<Answer>): Promise<Answer> {
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<never>((_, reject) => {
        timer = setTimeout(() => reject(new NotKept(problem(503, 'the request took too long', { 'Retry-After': '1' }))), milliseconds);
    });
    answer.catch(() => {});
    try {
        return await Promise.race([answer, late]);
    } finally {
        clearTimeout(timer);
    }
}

// The status and the place are kept even where the body is too large to be: in the id of the result.
function storedOf({ status, headers, body }: Answer) {
    const kept = Object.fromEntries(Object.entries(headers).filter(([name]) => !passing.has(name.toLowerCase())));
    const location = Object.entries(kept).find(([name]) => name.toLowerCase() === 'location')?.[1];
    const resultId = typeof location === 'string' && location.length < 1000 ? `${status} ${location}` : String(status);
    return { response: toJson({ status, headers: kept }), resultId, body };
}

function replayOf({ response, resultId, body }: { response: string | null; resultId: string | null; body: Buffer | null }): Answer {
    if (response !== null) {
        const { status, headers } = fromJson(response) as Omit<Answer, 'body'>;
        return { status, headers: { ...headers, 'Idempotent-Replayed': 'true' }, body: body ?? Buffer.alloc(0) };
    }
    const [, status, location] = /^(\d{3})(?: (.*))?$/.exec(resultId ?? '') ?? [];
    return { status: Number(status ?? 204), headers: { ...(location ? { Location: location } : {}), 'Idempotent-Replayed': 'true' }, body: Buffer.alloc(0) };
}

/** A problem as RFC 9457 has it. */
export function problem(status: number, title: string, headers: Record<string, string> = {}): Answer {
    return { status, headers: { 'Content-Type': 'application/problem+json', ...headers }, body: Buffer.from(JSON.stringify({ status, title })) };
}

/** Headers that are new, or have another value than before. */
export function changedHeaders(before: Record<string, unknown>, after: Record<string, unknown>): Answer['headers'] {
    const changed: Answer['headers'] = {};
    for (const [name, value] of Object.entries(after)) {
        if (value === undefined || String(before[name]) === String(value)) continue;
        changed[name] = Array.isArray(value) ? value.map(String) : String(value);
    }
    return changed;
}

/** A body that nobody has read cannot be compared with that of a repeated request. */
export function checkParsed(body: unknown, headers: Record<string, unknown>, how: string): void {
    const sent = headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0;
    if (sent && (body === undefined || body === null)) throw new TypeError(`an idempotent endpoint needs the body of the request: ${how}`);
}
