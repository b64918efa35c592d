// Work once for each key: claim, effect and answer in one transaction.

import type { Driver, Query } from './driver.js';
import { asInterlockError, Failed, InProgress, Mismatch, type InterlockError } from './errors.js';
import { fromJson, hashOf, idempotencyKeyText, seconds, toJson, type Duration, type Key } from './values.js';

export interface OnceOptions {
    /** How long to wait for another call with the key, to get its result; 0 by default. It occupies a connection. */
    wait?: Duration;
    /** How long the result is remembered, at most the scope's ttl. */
    ttl?: Duration;
}

export interface Once<R> {
    /** 'replay': the work was done before, and this is its result. */
    outcome: 'completed' | 'replay';
    /** What the work has returned, as JSON. Undefined if it was too large to be kept. */
    value: R;
}

export interface Claim {
    outcome: string;
    token: string | null;
    response: string | null;
    resultId: string | null;
    body: Buffer | null;
    retryAfter: number;
    attempt: number;
    checkpoint: string | null;
    state: string | null;
    left: number; // milliseconds until its deadline
}

/** An answer as it is stored. */
export interface Stored { response: string | null; resultId?: string; body?: Buffer }

export async function claim(query: Query, scope: string, key: string, hash: Buffer | null, { wait = 0, ttl, staleAfter }: OnceOptions & { staleAfter?: number } = {}): Promise<Claim> {
    const [row] = await query(
        `SELECT outcome, token::text, response::text, result_id, encode(body, 'base64') AS body,
             attempt::text, checkpoint, state::text, (extract(epoch FROM deadline - clock_timestamp()) * 1000)::text AS left
           FROM interlock.idempotency_claim($1::text, $2::text, request_hash => decode($3::text, 'hex'), wait => $4::text::float8,
               ttl => $5::text::float8, stale_after => $6::text::float8)`,
        [scope, key, hash?.toString('hex') ?? null, String(seconds(wait)), ttl === undefined ? null : String(seconds(ttl)),
            staleAfter === undefined ? null : String(staleAfter)]);
    const { outcome, token, response, result_id, body, attempt, checkpoint, state } = row!;
    const left = Number(row!.left ?? 0);
    return {
        outcome: outcome!, token: token!, response: response!, resultId: result_id!,
        body: body === null || body === undefined ? null : Buffer.from(body, 'base64'), retryAfter: Math.max(1, Math.ceil(left / 1000)),
        attempt: Number(attempt), checkpoint: checkpoint!, state: state!, left,
    };
}

export async function complete(query: Query, scope: string, key: string, token: string, { response, resultId, body }: Stored): Promise<void> {
    await query(
        `SELECT interlock.idempotency_complete($1::text, $2::text, $3::text::bigint, $4::text::jsonb, $5::text, $6::bytea)::text`,
        [scope, key, token, response, resultId ?? null, body ?? null]);
}

/** Claims, and works if the claim is new. Another outcome changes nothing. */
export async function claimed<Tx, T>(driver: Driver<Tx>, scope: string, key: string, hash: Buffer | null, options: OnceOptions,
    work: (tx: Tx) => Promise<{ result: T; stored: Stored }>): Promise<{ claim: Claim; result?: T }> {
    try {
        return await driver.transaction(async (tx) => {
            const query = driver.within(tx);
            const made = await claim(query, scope, key, hash, options);
            if (made.outcome !== 'acquired') return { claim: made };
            const { result, stored } = await work(tx);
            await complete(query, scope, key, made.token!, stored);
            return { claim: made, result };
        });
    } catch (error) {
        throw asInterlockError(error);
    }
}

export async function once<Tx, R>(driver: Driver<Tx>, scope: string, key: Key, request: unknown, work: (tx: Tx) => Promise<R>,
    options: OnceOptions = {}): Promise<Once<R>> {
    const name = idempotencyKeyText(key);
    const hash = request === undefined || request === null ? null : hashOf(request);
    const { claim: made, result } = await claimed(driver, scope, name, hash, options, async (tx) => {
        const value = await work(tx);
        const response = value === undefined ? null : toJson(value);
        return { result: response, stored: { response } };
    });
    // Both ways round by JSON: the first caller and the second get the same value.
    if (made.outcome === 'acquired') return { outcome: 'completed', value: valueOf(result) };
    if (made.outcome === 'replay') return { outcome: 'replay', value: valueOf(made.response) };
    throw refusal(made, scope, name);
}

/** The value of JSON; undefined if there is none. */
export const valueOf = <R>(text: string | null | undefined) => (text ? fromJson(text) : undefined) as R;

/** The error of a claim that is neither acquired nor a replay. */
export function refusal({ outcome, response, retryAfter }: Claim, scope: string, key: string): InterlockError {
    const detail = { scope, key, outcome };
    switch (outcome) {
        case 'in_progress': {
            const error = new InProgress(`another call works under the key "${key}"`, { detail });
            error.retryAfter = retryAfter;
            return error;
        }
        case 'mismatch':
            return new Mismatch(`the key "${key}" was used with another request`, { detail });
        default: // failed, exhausted
            return new Failed(`the work under the key "${key}" has failed`, { detail: { ...detail, error: valueOf(response) } });
    }
}
