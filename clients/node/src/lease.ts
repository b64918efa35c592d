// A lease that is held: renewed at half of its time, lost at the latest before it ends on the server.

import type { Granted } from './acquire.js';
import type { Driver, Own, TransactionOptions } from './driver.js';
import { asInterlockError, LeaseLost } from './errors.js';
import { clamped } from './timing.js';
import { seconds, type Duration } from './values.js';

export interface LeaseOptions {
    /** How long the lease lives without a renewal, 30 s by default. It is renewed at half of that. */
    ttl?: Duration;
    /** How long to wait for it at most, 0 by default. The wait needs no connection of the pool. */
    wait?: Duration;
    /** Ends the wait. It also aborts the signal of a lease that is held; the lease is renewed until the work has ended. */
    signal?: AbortSignal;
    /** How long the lease stays in the way although it is released, at most ttl: for nodes that tick at the same time. */
    atLeast?: Duration;
    /** How long it is renewed at most: for work that may never end. Then the signal aborts, and it ends by itself. */
    limit?: Duration;
    /** 'shared' excludes only 'exclusive', the default. */
    mode?: 'exclusive' | 'shared';
    /** Permits: so many clients have the key at the same time. All of them give the same number. Without mode and atLeast. */
    capacity?: number;
    /** What views show of the holder, by default the name of the host. The process and a random part are added. */
    name?: string;
}

/** Of leases on several keys. */
export type LeaseAllOptions = Omit<LeaseOptions, 'atLeast' | 'capacity'>;

export interface Parts<Tx> { driver: Driver<Tx>; own: Own }

// As a table: one key and its token, or several.
const held = 'jsonb_to_recordset($1::text::jsonb) AS held(key text, token text)';

/** A lease. It is not reentrant: the same process that asks for its key again has to wait like others. */
export class Lease<Tx> implements AsyncDisposable {
    readonly key: string;
    /** The name under which the server shows it: it belongs to this acquisition alone. */
    readonly holder: string;
    /** Its token. Tokens of a key only grow: a receiver outside of the database can refuse a smaller one. */
    readonly token: string;
    /** All of its keys and their tokens: one, or those of leaseAll(), of which `key` and `token` are the first. */
    readonly held: readonly { readonly key: string; readonly token: string }[];
    readonly #parts: Parts<Tx>;
    readonly #ttl: number;
    readonly #limit: number;
    readonly #stop = new AbortController();
    readonly #signal: AbortSignal;
    #expiresAt: Date;
    #deadline = 0;
    #beat: NodeJS.Timeout | undefined;
    #watch: NodeJS.Timeout | undefined;
    #released: Promise<boolean> | undefined;

    constructor(parts: Parts<Tx>, keys: readonly string[], holder: string, { tokens, expiresAt, sent, roundTrip }: Granted,
        { ttl = 30, limit, signal }: LeaseOptions) {
        this.held = keys.map((key, i) => ({ key, token: tokens[i]! }));
        this.key = this.held[0]!.key;
        this.token = this.held[0]!.token;
        this.holder = holder;
        this.#parts = parts;
        this.#ttl = seconds(ttl) * 1000;
        this.#limit = limit === undefined ? Infinity : sent + seconds(limit) * 1000;
        this.#expiresAt = expiresAt;
        this.#signal = signal ? AbortSignal.any([this.#stop.signal, signal]) : this.#stop.signal;
        this.#renewed(sent, roundTrip);
    }

    /** When it ends if it is not renewed, by the server's clock. */
    get expiresAt(): Date { return this.#expiresAt; }

    /** Aborted when the lease is lost, or could not be renewed in time: before it ends on the server. Stop the work then. */
    get signal(): AbortSignal {
        this.#check();
        return this.#signal;
    }

    /** Whether the lease is lost. A paused process learns it late: use transaction() for what writes. */
    get lost(): boolean {
        this.#check();
        return this.#stop.signal.aborted;
    }

    /** BEGIN, assert the lease, work, COMMIT. Until it has ended nobody else gets the lease. Throws LeaseLost without any effect. */
    async transaction<T>(work: (tx: Tx) => Promise<T>, options?: TransactionOptions): Promise<T> {
        this.#throwIfLost();
        try {
            return await this.#parts.driver.transaction(async (tx) => {
                await this.assert(tx);
                return work(tx);
            }, options);
        } catch (error) {
            throw asInterlockError(error);
        }
    }

    /** Makes sure in a transaction that the lease is held, until the transaction has ended. Throws LeaseLost. */
    async assert(tx: Tx): Promise<void> {
        this.#throwIfLost();
        try {
            await this.#parts.driver.within(tx)(`SELECT interlock.assert_lease(key, token::bigint)::text FROM ${held}`, [JSON.stringify(this.held)]);
        } catch (error) {
            const known = asInterlockError(error);
            if (known instanceof LeaseLost) this.#lose(known);
            throw known;
        }
    }

    /** Prolongs it now, to ttl from now or to another time. False: it is lost. */
    async renew(ttl?: Duration): Promise<boolean> {
        this.#throwIfLost();
        const sent = performance.now();
        const [row] = await this.#parts.own.renew(
            `SELECT CASE WHEN count(until) = count(*) THEN extract(epoch FROM min(until)) * 1000 END::text AS until
               FROM ${held} CROSS JOIN LATERAL interlock.renew_lease(key, token::bigint, $2::text::float8) AS until`,
            [JSON.stringify(this.held), ttl === undefined ? null : String(seconds(ttl))], Math.max(this.#ttl / 4, 100));
        const until = row?.until;
        if (!until) {
            this.#lose(new LeaseLost(`lease "${this.key}" is lost: it has ended, or another client has it`, { code: 'IL006', detail: { key: this.key, token: this.token } }));
            return false;
        }
        this.#expiresAt = new Date(Number(until));
        if (!this.#released) this.#renewed(sent, performance.now() - sent);
        return true;
    }

    /** Ends it. False: it was no longer held. */
    release(): Promise<boolean> {
        this.#stopTimers();
        return this.#released ??= this.#release();
    }

    [Symbol.asyncDispose](): Promise<void> {
        return this.release().then(() => {});
    }

    /** What another process needs to act under it. */
    toJSON(): { key: string; token: string; holder: string; expiresAt: string } {
        const { key, token, holder, expiresAt } = this;
        return { key, token, holder, expiresAt: expiresAt.toISOString() };
    }

    /** @internal Runs the work under it, and releases it. */
    async run<T>(work: (lease: this) => Promise<T>): Promise<T> {
        try {
            const result = await work(this);
            if (this.#stop.signal.aborted) throw this.#stop.signal.reason;
            return result;
        } finally {
            await this.release();
        }
    }

    async #release(): Promise<boolean> {
        const ask = () => this.#parts.own.query(`SELECT bool_and(interlock.release_lease(key, token::bigint))::text AS released FROM ${held}`,
            [JSON.stringify(this.held)], 5000);
        try {
            const [row] = await ask().catch(ask);
            return row?.released === 'true';
        } catch {
            return false; // it ends by itself
        }
    }

    #renewed(sent: number, roundTrip: number): void {
        this.#deadline = sent + this.#ttl - roundTrip;
        this.#stopTimers();
        this.#watchUntilDeadline();
        this.#beatIn(sent + this.#ttl / 2 - performance.now());
    }

    #beatIn(milliseconds: number): void {
        clearTimeout(this.#beat);
        this.#beat = setTimeout(() => void this.#renew(), clamped(milliseconds));
    }

    async #renew(): Promise<void> {
        this.#check();
        if (this.#stop.signal.aborted || this.#released) return;
        if (performance.now() >= this.#limit) return this.#lose(new LeaseLost(`lease "${this.key}" was held for as long as its limit`, { detail: { key: this.key } }));
        try {
            await this.renew();
        } catch { // the server cannot be reached: try again until the deadline
            if (!this.#stop.signal.aborted && !this.#released) this.#beatIn(Math.min(this.#ttl / 10, 5000));
        }
    }

    #watchUntilDeadline(): void {
        this.#check();
        if (this.#released || this.#stop.signal.aborted) return;
        this.#watch = setTimeout(() => this.#watchUntilDeadline(), clamped(this.#deadline - performance.now()));
    }

    // Also asked for without a timer: those of a process that was paused are late.
    #check(): void {
        if (this.#released || this.#stop.signal.aborted || performance.now() < this.#deadline) return;
        this.#lose(new LeaseLost(`lease "${this.key}" could not be renewed in time`, { detail: { key: this.key, token: this.token } }));
    }

    #lose(reason: LeaseLost): void {
        this.#stopTimers();
        this.#stop.abort(reason);
    }

    #throwIfLost(): void {
        this.#check();
        if (this.#stop.signal.aborted) throw this.#stop.signal.reason;
        if (this.#released) throw new LeaseLost(`lease "${this.key}" was released`, { detail: { key: this.key } });
    }

    #stopTimers(): void {
        clearTimeout(this.#beat);
        clearTimeout(this.#watch);
    }
}
