// Work that runs once for its key, across all workers, and may take long: claimed, kept by a heartbeat, ended with its effect.

import type { Driver, Own, TransactionOptions } from './driver.js';
import { asInterlockError, ClaimLost } from './errors.js';
import { Heartbeat } from './heartbeat.js';
import { claim, complete, refusal, valueOf, type Claim } from './once.js';
import { hashOf, idempotencyKeyText, seconds, toJson, type Duration, type Key } from './values.js';

export interface JobOptions {
    /** How long the job is left alone without a sign of life of its worker, as the scope says by default. It is prolonged. */
    staleAfter?: Duration;
    /** How long the result is remembered, at most the scope's ttl. */
    ttl?: Duration;
    /** Tells another request under the same key: then Mismatch. */
    request?: unknown;
    /** Also aborts the signal of the run. */
    signal?: AbortSignal;
}

/** 'completed': it was done before. 'in_progress': another worker does it. 'failed', 'exhausted': it has failed for good. */
export type Ran<R> = { ran: true; result: R } | { ran: false; outcome: 'completed' | 'in_progress' | 'failed' | 'exhausted'; result: R | undefined; retryAfter?: number };

/** One attempt. */
export class Run<Tx> {
    /** 1, and more after a worker that has died or has failed. */
    readonly attempt: number;
    /** Where the last attempt stopped: the name of its last checkpoint, and its state. */
    readonly checkpoint: string | null;
    readonly state: unknown;
    readonly #driver: Driver<Tx>;
    readonly #claimed: readonly [scope: string, key: string, token: string];
    readonly #stop = new AbortController();
    readonly #signal: AbortSignal;
    readonly #heartbeat: Heartbeat;
    #result: string | null | undefined;

    /** @internal */
    constructor(driver: Driver<Tx>, own: Own, scope: string, key: string, { token, attempt, checkpoint, state, left }: Claim, sent: number, signal?: AbortSignal) {
        this.attempt = attempt;
        this.checkpoint = checkpoint;
        this.state = valueOf(state);
        this.#driver = driver;
        this.#claimed = [scope, key, token!];
        this.#signal = signal ? AbortSignal.any([this.#stop.signal, signal]) : this.#stop.signal;
        this.#heartbeat = new Heartbeat(sent, left, async (limit) => {
            const [row] = await own.renew(
                `SELECT (extract(epoch FROM until - clock_timestamp()) * 1000)::text AS left
                   FROM interlock.idempotency_extend($1::text, $2::text, $3::text::bigint) AS until`, this.#claimed, limit);
            return row?.left ? Number(row.left) : undefined;
        }, () => this.#lose());
    }

    /** Aborted when another worker has taken over, or could have. Stop the work then. */
    get signal(): AbortSignal {
        this.#heartbeat.check();
        return this.#signal;
    }

    /** BEGIN, assert the claim, work, COMMIT. Nobody takes over until it has ended. Throws ClaimLost without any effect. */
    transaction<T>(work: (tx: Tx) => Promise<T>, options?: TransactionOptions): Promise<T> {
        return this.#transaction((tx) => work(tx), options);
    }

    /** Where the next attempt continues if this one dies. With an effect, in one transaction. */
    async save(checkpoint: string, state: unknown = null, effect?: (tx: Tx) => Promise<void>): Promise<void> {
        await this.#transaction(async (tx) => {
            await effect?.(tx);
            await this.#driver.within(tx)('SELECT interlock.idempotency_checkpoint($1::text, $2::text, $3::text::bigint, $4::text, $5::text::jsonb)::text',
                [...this.#claimed, checkpoint, toJson(state)]);
        });
    }

    /** Effect and end in one transaction. Without it, the job ends when the work has returned. */
    async done(effect?: (tx: Tx) => Promise<void>, result?: unknown): Promise<void> {
        const response = result === undefined ? null : toJson(result);
        await this.#transaction(async (tx) => {
            await effect?.(tx);
            await complete(this.#driver.within(tx), ...this.#claimed, { response });
        });
        this.#result = response;
        this.#heartbeat.stop();
    }

    /** @internal Calls the work, ends the job with what it returns, or marks it as failed. */
    async run<R>(work: (run: Run<Tx>) => Promise<R>): Promise<R> {
        try {
            const result = await work(this);
            if (this.#result === undefined) await this.done(undefined, result);
            return valueOf(this.#result);
        } catch (error) {
            await this.#fail(error);
            throw error;
        } finally {
            this.#heartbeat.stop();
        }
    }

    // The next call tries again at once. A claim that is lost belongs to another worker.
    async #fail(error: unknown): Promise<void> {
        if (this.#result !== undefined || error instanceof ClaimLost) return;
        const message = error instanceof Error ? error.message : String(error);
        await this.#driver.query('SELECT interlock.idempotency_fail($1::text, $2::text, $3::text::bigint, $4::text::jsonb)::text',
            [...this.#claimed, toJson({ error: message })]).catch(() => {});
    }

    async #transaction<T>(work: (tx: Tx) => Promise<T>, options?: TransactionOptions): Promise<T> {
        this.#heartbeat.check();
        if (this.#stop.signal.aborted) throw this.#stop.signal.reason;
        try {
            return await this.#driver.transaction(async (tx) => {
                await this.#driver.within(tx)('SELECT interlock.idempotency_assert($1::text, $2::text, $3::text::bigint)::text', this.#claimed);
                return work(tx);
            }, options);
        } catch (error) {
            const known = asInterlockError(error);
            if (known instanceof ClaimLost && this.#result === undefined) this.#lose(known);
            throw known;
        }
    }

    #lose(reason?: ClaimLost): void {
        this.#heartbeat.stop();
        const [scope, key] = this.#claimed;
        this.#stop.abort(reason ?? new ClaimLost(`the claim of "${key}" is lost, or could not be extended in time`, { code: 'IL008', detail: { scope, key } }));
    }
}

export async function job<Tx, R>(driver: Driver<Tx>, own: Own, scope: string, key: Key, { staleAfter, ttl, request, signal }: JobOptions,
    work: (run: Run<Tx>) => Promise<R>): Promise<Ran<R>> {
    signal?.throwIfAborted();
    const name = idempotencyKeyText(key);
    const hash = request === undefined || request === null ? null : hashOf(request);
    const sent = performance.now();
    let made: Claim;
    try {
        made = await claim(driver.query, scope, name, hash, { ...(ttl === undefined ? {} : { ttl }), ...(staleAfter === undefined ? {} : { staleAfter: seconds(staleAfter) }) });
    } catch (error) {
        throw asInterlockError(error);
    }
    switch (made.outcome) {
        case 'acquired': return { ran: true, result: await new Run(driver, own, scope, name, made, sent, signal).run(work) };
        case 'replay': return { ran: false, outcome: 'completed', result: valueOf(made.response) };
        case 'in_progress': return { ran: false, outcome: 'in_progress', result: undefined, retryAfter: made.retryAfter };
        case 'failed': case 'exhausted': return { ran: false, outcome: made.outcome, result: undefined };
        default: throw refusal(made, scope, name);
    }
}
