// Workers that share a table of jobs: each claims free rows, and ends them in the transaction of their effect.

import { randomUUID } from 'node:crypto';
import type { Driver, Own, Query } from './driver.js';
import { asInterlockError, isPassing, MarkerLost } from './errors.js';
import { Heartbeat } from './heartbeat.js';
import type { Rows } from './rows.js';
import { pause } from './timing.js';
import { fromJson, seconds, toJson, type Duration, type JsonRow } from './values.js';

export interface ClaimOptions<Row> {
    /** Which rows: columns and their values. */
    match?: Record<string, unknown>;
    /** The column that orders them, the least first. */
    order?: string;
    /** How long a job is hidden from other workers without a sign of life; as the table says by default. It is prolonged. */
    ttl?: Duration;
    /** How many jobs at once, 1 by default. */
    concurrency?: number;
    /** How often to look for new rows while there are none, 1 s by default. */
    every?: Duration;
    /** A channel on which a NOTIFY says that there are new rows. */
    channel?: string;
    /** Ends the loop: no job is begun, and those that run are waited for. */
    signal?: AbortSignal;
    /** What views show of the worker, by default the name of the host. */
    name?: string;
    /** A job that has thrown. It stays hidden until its deadline, and is then tried again. Without it the error is a warning of the process. */
    onError?: (error: unknown, row: Row) => void;
}

/** A job. */
export interface Job<Tx> {
    readonly key: JsonRow;
    readonly holder: string;
    /** Aborted when the job is lost to another worker. */
    readonly signal: AbortSignal;
    /** Effect and end in one transaction: the row is deleted, or saved with the changes. Throws MarkerLost without any effect. */
    done(effect?: (tx: Tx) => Promise<void>, changes?: object): Promise<void>;
    /** Gives the job back at once. */
    release(): Promise<void>;
}

/** The end of a job whose handler has not called done(): nothing deletes the row, an object is saved in it. */
export type Handler<Tx, Row> = (row: Row, job: Job<Tx>) => Promise<object | void>;

export async function claim<Tx, Row extends object = JsonRow>(driver: Driver<Tx>, own: Own, rows: Rows, host: string, rel: string, options: ClaimOptions<Row>,
    handler: Handler<Tx, Row>): Promise<void> {
    const { concurrency = 1, signal, channel } = options;
    const every = seconds(options.every ?? 1) * 1000;
    const running = new Set<Promise<void>>();
    let wake = () => {}, called = false;
    const call = () => { called = true; wake(); };
    const listener = channel === undefined ? undefined : own.listen(channel, call, call);
    try {
        let failures = 0;
        while (!signal?.aborted) {
            let job: Claimed<Tx> | undefined;
            called = false;
            try {
                job = running.size < concurrency ? await next(driver, own, rows, host, rel, options) : undefined;
                failures = 0;
            } catch (error) {
                const known = asInterlockError(error);
                if (!isPassing(known)) throw known;
                failures++;
            }
            if (job) {
                const work: Promise<void> = run(job, handler, options).finally(() => { running.delete(work); call(); });
                running.add(work);
                continue;
            }
            if (called) continue;
            const pausing = pause(Math.min(every * 2 ** Math.min(failures, 5), Math.max(every, 30_000)), signal);
            wake = pausing.wake;
            if (called) pausing.wake();
            await pausing.over;
        }
    } finally {
        await Promise.all(running);
        listener?.stop();
    }
}

async function next<Tx>(driver: Driver<Tx>, own: Own, rows: Rows, host: string, rel: string,
    { match = {}, order, ttl, name }: ClaimOptions<never>): Promise<Claimed<Tx> | undefined> {
    // A name for each claim: a worker that is late must not end the next claim of its own process.
    const holder = `${name ?? host} ${process.pid} ${randomUUID().slice(0, 8)}`;
    const length = ttl === undefined ? null : String(seconds(ttl));
    const sent = performance.now();
    const [row] = await driver.query(
        `SELECT key::text, current::text, (extract(epoch FROM expires_at - clock_timestamp()) * 1000)::text AS length
           FROM interlock.claim_rows($1::text::regclass, $2::text, 1, $3::text::jsonb, $4::text::name, $5::text::float8)`,
        [rel, holder, toJson(match), order ?? null, length]);
    return row && new Claimed(driver, own, rel, holder, row.key!, (await rows.row(rel, row.current))!, length, sent, Number(row.length));
}

async function run<Tx, Row extends object>(job: Claimed<Tx>, handler: Handler<Tx, Row>, { onError }: ClaimOptions<Row>): Promise<void> {
    const row = job.row as Row;
    try {
        const changes = await handler(row, job);
        if (!job.ended) await job.done(undefined, changes ?? undefined);
    } catch (error) {
        if (onError) onError(error, row);
        else process.emitWarning(error instanceof Error ? error : String(error));
    } finally {
        job.stop();
    }
}

class Claimed<Tx> implements Job<Tx> {
    readonly key: JsonRow;
    readonly holder: string;
    readonly row: JsonRow;
    ended = false;
    readonly #driver: Driver<Tx>;
    readonly #rel: string;
    readonly #keyText: string;
    readonly #lost = new AbortController();
    readonly #heartbeat: Heartbeat;

    constructor(driver: Driver<Tx>, own: Own, rel: string, holder: string, key: string, row: JsonRow, ttl: string | null, sent: number, length: number) {
        this.#driver = driver;
        this.#rel = rel;
        this.#keyText = key;
        this.key = fromJson(key) as JsonRow;
        this.holder = holder;
        this.row = row;
        this.#heartbeat = new Heartbeat(sent, length, async (limit) => {
            const [touched] = await own.renew(
                `SELECT (extract(epoch FROM until - clock_timestamp()) * 1000)::text AS left
                   FROM interlock.touch_row($1::text::regclass, $2::text::jsonb, $3::text, $4::text::float8) AS until`, [rel, key, holder, ttl], limit);
            return touched?.left ? Number(touched.left) : undefined;
        }, () => this.#lost.abort(new MarkerLost(`row ${key} of table "${rel}" is lost to another worker`, { code: 'IL005' })));
    }

    get signal(): AbortSignal {
        this.#heartbeat.check();
        return this.#lost.signal;
    }

    async done(effect?: (tx: Tx) => Promise<void>, changes?: object): Promise<void> {
        try {
            await this.#driver.transaction(async (tx) => {
                await effect?.(tx);
                await this.#end(this.#driver.within(tx), changes);
            });
        } catch (error) {
            throw asInterlockError(error);
        }
        this.ended = true;
        this.stop();
    }

    async release(): Promise<void> {
        this.ended = true;
        this.stop();
        await this.#driver.query('SELECT interlock.unlock_row($1::text::regclass, $2::text::jsonb, $3::text)::text', [this.#rel, this.#keyText, this.holder]);
    }

    stop(): void {
        this.#heartbeat.stop();
    }

    async #end(query: Query, changes: object | undefined): Promise<void> {
        const row = [this.#rel, this.#keyText, this.holder];
        if (changes) await query('SELECT interlock.save_row($1::text::regclass, $2::text::jsonb, $3::text, $4::text::jsonb)::text', [...row, toJson(changes)]);
        else await query('SELECT interlock.delete_row($1::text::regclass, $2::text::jsonb, $3::text)::text', row);
    }
}
