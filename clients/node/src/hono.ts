// Hono, and whatever else answers a Request with a Response.

import type { Driver } from './driver.js';
import { answerOnce, type Answer, type EndpointOptions } from './http.js';

/** What we need of a context of Hono. */
export interface HonoContext {
    req: { method: string; path: string; url: string; header(name: string): string | undefined; arrayBuffer(): Promise<ArrayBuffer> };
}

export function honoHandler<Tx, C extends HonoContext>(driver: Driver<Tx>, scope: string, options: EndpointOptions<C>,
    handler: (c: C, tx: Tx) => Response | Promise<Response>) {
    return async (c: C): Promise<Response> => {
        const { req } = c;
        const answer = await answerOnce(driver, scope, {
            method: req.method, path: req.path, key: req.header(options.header ?? 'Idempotency-Key'), user: await options.user(c),
            body: { query: new URL(req.url).search, body: parsed(req.header('Content-Type'), Buffer.from(await req.arrayBuffer())) },
        }, options, async (tx) => answerOf(await handler(c, tx)));
        const { status, headers, body } = answer;
        const none = status === 204 || status === 304;
        return new Response(none ? null : new Uint8Array(body), { status, headers: new Headers(pairs(headers)) });
    };
}

async function answerOf(response: Response): Promise<Answer> {
    const headers: Answer['headers'] = {};
    for (const [name, value] of response.headers) {
        if (name === 'set-cookie') headers[name] = response.headers.getSetCookie();
        else headers[name] = value;
    }
    return { status: response.status, headers, body: Buffer.from(await response.arrayBuffer()) };
}

const pairs = (headers: Answer['headers']) =>
    Object.entries(headers).flatMap(([name, value]) => [value].flat().map((each): [string, string] => [name, each]));

// JSON is the same whatever the order of its members is.
function parsed(type: string | undefined, bytes: Buffer): unknown {
    if (!/\bjson\b/.test(type ?? '')) return bytes;
    try {
        return JSON.parse(bytes.toString('utf8'));
    } catch {
        return bytes;
    }
}
