// interlock(pool): all of it on one pool.

import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import { acquire } from './acquire.js';
import { Cart, type Reserved } from './cart.js';
import { claim, type ClaimOptions, type Handler } from './claim.js';
import { driverOf, type Adapter, type AnyPool, type Driver, type Own, type Query, type TransactionOptions } from './driver.js';
import type { PgPool } from './driver_pg.js';
import type { PostgresSql } from './driver_postgres.js';
import { Edit, type EditOptions } from './edit.js';
import { asInterlockError, Held } from './errors.js';
import { Etag } from './etag.js';
import { expressHandler, type ExpressRequest } from './express.js';
import { fastifyRoute, type FastifyReplyLike, type FastifyRequestLike } from './fastify.js';
import { honoHandler, type HonoContext } from './hono.js';
import type { EndpointOptions } from './http.js';
import { job, type JobOptions, type Ran, type Run } from './job.js';
import { Lease, type LeaseAllOptions, type LeaseOptions } from './lease.js';
import { once, type Once, type OnceOptions } from './once.js';
import { Rows, type SaveOptions, type UpdateOptions, type Versioned } from './rows.js';
import { States } from './states.js';
import { Tickets } from './tickets.js';
import { traced } from './tracing.js';
import { keyText, seconds, type Duration, type JsonRow, type Key, type RowKey, type Version } from './values.js';
import { Markers, watch, type Watched, type WatchOptions } from './watch.js';
import type { ServerResponse } from 'node:http';

export interface Options<Pool> {
    /**
     * A second pool of the same driver, for heartbeats and LISTEN: three connections. Without it one is made with the options of
     * the first. Needed where the first goes through a pooler in transaction mode, which cannot LISTEN.
     */
    own?: Pool;
    /** What views show of this program's leases, by default the name of the host. */
    name?: string;
}

/** What a lease of another client is. */
export interface LeaseInTheWay { key: string; mode: string; holder: string; since: Date; expiresAt: Date; pinnedBy: number[] }

export type Tried<T> = { ran: true; result: T } | { ran: false; holder: string | undefined; expiresAt: Date | undefined };

export class Interlock<Tx> implements AsyncDisposable {
    readonly #driver: Driver<Tx>;
    readonly #own: Own;
    readonly #tickets: Tickets;
    readonly #rows: Rows;
    readonly #markers: Markers;
    readonly #query: Query;
    readonly #name: string;

    /** @internal Use interlock(pool). */
    constructor(pool: AnyPool<Tx>, { own, name }: Options<AnyPool<Tx>> = {}) {
        this.#driver = driverOf(pool, own);
        this.#own = this.#driver.own();
        this.#tickets = new Tickets(this.#own);
        this.#name = name ?? hostname();
        this.#query = async (sql, values) => {
            try {
                return await this.#driver.query(sql, values);
            } catch (error) {
                throw asInterlockError(error);
            }
        };
        this.#rows = new Rows(this.#query);
        this.#markers = new Markers(this.#query, this.#own);
    }

    // --- Leases ---

    /**
     * Runs the work under a lease that is renewed at half of its ttl, and releases it.
     * Throws Held when the wait is over, LeaseLost when the lease was lost, and what the work throws.
     */
    async lease<T>(key: Key, options: LeaseOptions, work: (lease: Lease<Tx>) => Promise<T>): Promise<T> {
        return traced('interlock.lease', { 'interlock.key': keyText(key) }, async (span) => {
            const lease = await this.acquire(key, options);
            span.setAttribute('interlock.token', lease.token);
            return lease.run(work);
        });
    }

    /** As lease(), with the answer that it is held in place of an error. */
    async tryLease<T>(key: Key, options: LeaseOptions, work: (lease: Lease<Tx>) => Promise<T>): Promise<Tried<T>> {
        let lease: Lease<Tx>;
        try {
            lease = await this.acquire(key, options);
        } catch (error) {
            if (!(error instanceof Held)) throw error;
            return { ran: false, holder: error.holder, expiresAt: error.expiresAt };
        }
        return { ran: true, result: await traced('interlock.lease', { 'interlock.key': lease.key }, () => lease.run(work)) };
    }

    /** The lease alone: `await using lease = await il.acquire('report')`, or call release(). Throws Held. */
    async acquire(key: Key, options: LeaseOptions = {}): Promise<Lease<Tx>> {
        const { atLeast, mode, capacity } = options;
        if (capacity !== undefined && (atLeast !== undefined || mode !== undefined)) throw new TypeError('permits have no mode and no atLeast');
        return this.#acquire([keyText(key)], options);
    }

    /** As lease(), under leases on all of the keys or on none. Two calls never wait for each other. */
    async leaseAll<T>(keys: readonly Key[], options: LeaseAllOptions, work: (lease: Lease<Tx>) => Promise<T>): Promise<T> {
        const lease = await this.acquireAll(keys, options);
        return traced('interlock.lease', { 'interlock.key': lease.key }, () => lease.run(work));
    }

    /** As acquire(), for all of the keys or none. Throws Held, with the key that was not free in `detail`. */
    async acquireAll(keys: readonly Key[], options: LeaseAllOptions = {}): Promise<Lease<Tx>> {
        const texts = [...new Set(keys.map(keyText))];
        if (texts.length === 0) throw new TypeError('name at least one key');
        return this.#acquire(texts, options);
    }

    async #acquire(keys: readonly string[], options: LeaseOptions): Promise<Lease<Tx>> {
        const { ttl = 30, wait = 0, atLeast, mode = 'exclusive', capacity, signal, name = this.#name } = options;
        // The name is of this call alone: an answer that was lost is asked for again by it.
        const holder = `${name} ${process.pid} ${randomUUID().slice(0, 8)}`;
        const granted = await traced('interlock.acquire', { 'interlock.key': keys[0]! }, () => acquire(this.#own, this.#tickets, {
            keys, holder, ttl: seconds(ttl), wait: seconds(wait), mode, capacity, signal, atLeast: atLeast === undefined ? undefined : seconds(atLeast),
        }));
        return new Lease({ driver: this.#driver, own: this.#own }, keys, holder, granted, options);
    }

    /** Which lease keeps the key from being acquired; null if nothing does. */
    async lookup(key: Key): Promise<LeaseInTheWay | null> {
        const [row] = await this.#query(
            `SELECT blocks_key, mode, holder, to_jsonb(since)#>>'{}' AS since, to_jsonb(expires_at)#>>'{}' AS expires_at, to_json(pinned_by)::text AS pinned_by
               FROM interlock.lease_of($1::text)`, [keyText(key)]);
        return row ? {
            key: row.blocks_key!, mode: row.mode!, holder: row.holder!, since: new Date(row.since!), expiresAt: new Date(row.expires_at!),
            pinnedBy: JSON.parse(row.pinned_by ?? '[]') as number[],
        } : null;
    }

    // --- Transactions and idempotency ---

    /** BEGIN, work, COMMIT. Errors of conflicts are classes of this package. */
    async transaction<T>(work: (tx: Tx) => Promise<T>, options?: TransactionOptions): Promise<T> {
        try {
            return await this.#driver.transaction(work, options);
        } catch (error) {
            throw asInterlockError(error);
        }
    }

    /**
     * The work once for the key, in one transaction with its result: what is written with `tx` happens once or not at all.
     * `request` tells another request under the same key; undefined is not compared. Work that throws leaves nothing, and the key is
     * free. Throws InProgress, Mismatch, Failed.
     */
    once<R>(scope: string, key: Key, request: unknown, work: (tx: Tx) => Promise<R>, options?: OnceOptions): Promise<Once<R>> {
        return traced('interlock.once', { 'interlock.scope': scope }, async (span) => {
            const result = await once(this.#driver, scope, key, request, work, options);
            span.setAttribute('interlock.outcome', result.outcome);
            return result;
        });
    }

    /**
     * Work of a schedule, which runs once for its key across all workers, and may take long: `il.job('report', '2030-01-31', {}, work)`.
     * It is kept by a heartbeat. A worker that has died is taken over by the next call, and one that was only paused cannot
     * write any more. The scope is of model 'job'. `ran: false` if it was done before, or another worker does it.
     */
    job<R>(scope: string, key: Key, options: JobOptions, work: (run: Run<Tx>) => Promise<R>): Promise<Ran<R>> {
        return traced('interlock.job', { 'interlock.scope': scope }, async (span) => {
            const result = await job(this.#driver, this.#own, scope, key, options, work);
            span.setAttribute('interlock.outcome', result.ran ? 'completed' : result.outcome);
            return result;
        });
    }

    /** A handler of Express that runs once for each Idempotency-Key: `app.post('/payments', il.express('pay', { user }, handler))`. */
    express<Req extends ExpressRequest = ExpressRequest, Res extends ServerResponse = ServerResponse>(scope: string, options: EndpointOptions<Req>,
        handler: (req: Req, res: Res, tx: Tx) => unknown) {
        return expressHandler(this.#driver, scope, options, handler);
    }

    /** The same for Fastify, as options of a route: `app.post('/payments', il.fastify('pay', { user }, handler))`. */
    fastify<Req extends FastifyRequestLike = FastifyRequestLike, Reply extends FastifyReplyLike = FastifyReplyLike>(scope: string,
        options: EndpointOptions<Req>, handler: (request: Req, reply: Reply, tx: Tx) => unknown) {
        return fastifyRoute(this.#driver, scope, options, handler);
    }

    /** The same for Hono: `app.post('/payments', il.hono('pay', { user }, handler))`. */
    hono<C extends HonoContext = HonoContext>(scope: string, options: EndpointOptions<C>, handler: (c: C, tx: Tx) => Response | Promise<Response>) {
        return honoHandler(this.#driver, scope, options, handler);
    }

    // --- Rows ---

    /** The row and its version. Throws NotFound. */
    read(rel: string, key: RowKey): Promise<Versioned> {
        return this.#rows.read(rel, key);
    }

    /** Changes a row if its version is the one that was read, and returns the new one. Throws StaleVersion with the row of now. */
    save(rel: string, key: RowKey, version: Version | number | bigint, changes: object, options?: SaveOptions): Promise<Version> {
        return traced('interlock.save', { 'interlock.table': rel }, () => this.#rows.save(rel, key, version, changes, options));
    }

    /** Reads a row, changes it, and again if another writer was faster. For programs: a person decides after a conflict. */
    update(rel: string, key: RowKey, change: (row: JsonRow) => object | null | undefined | Promise<object | null | undefined>,
        options?: UpdateOptions): Promise<{ version: Version; attempts: number }> {
        return traced('interlock.update', { 'interlock.table': rel }, () => this.#rows.update(rel, key, change, options));
    }

    /** What GET, PUT and DELETE of a versioned row answer, with ETag, If-Match and If-None-Match. */
    etag(rel: string): Etag {
        return new Etag(rel, this.#rows, this.#query);
    }

    /** Locks a row for editing. Throws MarkerHeld. Use user and tab as the holder, such as 'anna/7f3a'. */
    edit(rel: string, key: RowKey, holder: string, options: EditOptions = {}): Promise<Edit> {
        return Edit.begin(this.#query, this.#rows, this.#markers, rel, key, holder, options);
    }

    /**
     * Who edits which rows of a table, and what changes: `for await (const { rows, changes } of il.watch('page', { signal }))`.
     * It outlasts restarts of the server. The table's owner calls enable_marker(rel, notify => 'on'); without that it is read each
     * two seconds.
     */
    watch(rel: string, options?: WatchOptions): AsyncGenerator<Watched, void, undefined> {
        return watch(this.#query, this.#markers, rel, options);
    }

    /** A worker: claims rows of a table with markers, and runs the handler for each, until the signal. */
    claim<Row extends object = JsonRow>(rel: string, options: ClaimOptions<Row>, handler: Handler<Tx, Row>): Promise<void> {
        return claim(this.#driver, this.#own, this.#rows, this.#name, rel, options,
            (row, job) => traced('interlock.job', { 'interlock.table': rel }, () => handler(row, job)));
    }

    /** Stock that is held for a cart until a deadline, ttl from now. `items` are those of an earlier one. */
    cart(holder: string, ttl: Duration, items?: Reserved[]): Cart<Tx> {
        return new Cart(this.#driver, holder, ttl, items);
    }

    /** Transitions of a table. Name the column if it has several with states. */
    states(rel: string, column?: string): States {
        return new States(this.#query, this.#rows, rel, column);
    }

    /** Ends our own connections. The pool stays open. */
    async close(): Promise<void> {
        this.#tickets.close();
        await this.#own.close();
    }

    [Symbol.asyncDispose](): Promise<void> {
        return this.close();
    }
}

/** The client of pg_interlock on a Pool of pg, or on sql = postgres() of postgres.js. */
export function interlock<Client>(pool: PgPool<Client>, options?: Options<PgPool<Client>>): Interlock<Client>;
export function interlock<Tx>(sql: PostgresSql<Tx>, options?: Options<PostgresSql<Tx>>): Interlock<Tx>;
/** On the transactions of an ORM, with a pool of pg or postgres.js for its own connections. */
export function interlock<Tx>(orm: Adapter<Tx>, options: Options<PgPool<any> | PostgresSql<any>> & { own: PgPool<any> | PostgresSql<any> }): Interlock<Tx>;
export function interlock<Tx>(pool: AnyPool<Tx>, options?: Options<any>): Interlock<Tx> {
    return new Interlock(pool, options);
}
