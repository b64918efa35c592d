// The shape of Redlock 5, on leases: acquire, using, extend, release. The first argument is a pool instead of clients of Redis.

import { EventEmitter } from 'node:events';
import { randomUUID } from 'node:crypto';
import { driverOf, type AnyPool, type Query } from './driver.js';
import { isPassing } from './errors.js';
import { keyText } from './values.js';

export interface Settings {
    /** How often to try again, -1: without end. */
    retryCount: number;
    /** Milliseconds. */
    retryDelay: number;
    retryJitter: number;
    /** `using` extends so many milliseconds before the end. */
    automaticExtensionThreshold: number;
    /** Not used: there is one clock, that of the server. */
    driftFactor: number;
}

const defaults: Settings = { retryCount: 10, retryDelay: 200, retryJitter: 100, automaticExtensionThreshold: 500, driftFactor: 0.01 };

/** Of a resource that is locked by another client. It is emitted as 'error', too, if somebody listens. */
export class ResourceLockedError extends Error {
    override readonly name = 'ResourceLockedError';
}

/** Of a call that has failed for good. */
export class ExecutionError extends Error {
    override readonly name = 'ExecutionError';
    readonly attempts: readonly Promise<never>[] = [];
}

export type RedlockAbortSignal = AbortSignal & { error?: Error };

export class Lock {
    readonly resources: string[];
    /** The holder, as the view leases shows it. */
    readonly value: string;
    /** The largest token of its leases: a fence for receivers outside of the database. Redlock has none. */
    readonly token: string;
    /** By our clock, in milliseconds of the epoch. */
    expiration: number;
    readonly #redlock: Redlock;

    constructor(redlock: Redlock, resources: string[], value: string, expiration: number, token: string) {
        this.#redlock = redlock;
        this.resources = resources;
        this.value = value;
        this.expiration = expiration;
        this.token = token;
    }

    release(): Promise<void> { return this.#redlock.release(this); }
    extend(duration: number): Promise<Lock> { return this.#redlock.extend(this, duration); }
}

export class Redlock extends EventEmitter {
    readonly settings: Readonly<Settings>;
    readonly #query: Query;

    constructor(pool: AnyPool<any>, settings: Partial<Settings> = {}) {
        super();
        this.settings = { ...defaults, ...settings };
        this.#query = driverOf(pool).query;
    }

    /** All of the resources, or none. Throws ExecutionError when it has tried often enough. */
    async acquire(resources: string[], duration: number, settings: Partial<Settings> = {}): Promise<Lock> {
        whole(duration);
        const holder = randomUUID();
        const names = [...new Set(resources)];
        return this.#retry(settings, async () => {
            const sent = Date.now();
            const [row] = await this.#query(
                `SELECT outcome, (SELECT max(token)::text FROM unnest(tokens) token) AS token, blocked_by
                   FROM interlock.acquire_leases(ARRAY(SELECT jsonb_array_elements_text($1::text::jsonb)), $2::text::float8, holder => $3::text, resume => true)`,
                [keysOf(names), String(duration / 1000), holder]);
            if (row!.token === null) throw new ResourceLockedError(`the resource is locked: ${row!.blocked_by}`);
            return new Lock(this, resources, holder, sent + duration, row!.token!);
        }, () => this.#release(names, holder));
    }

    /** Throws ExecutionError if it was no longer held. */
    async release(lock: Lock): Promise<void> {
        const released = await this.#release(lock.resources, lock.value);
        lock.expiration = 0;
        if (!released) throw new ExecutionError('the lock was no longer held');
    }

    /** The duration counts from now. Throws ExecutionError if the lock is lost. */
    async extend(lock: Lock, duration: number, settings: Partial<Settings> = {}): Promise<Lock> {
        whole(duration);
        return this.#retry(settings, async () => {
            const sent = Date.now();
            const [row] = await this.#query(
                `SELECT bool_and(interlock.renew_lease(key, ttl => $2::text::float8, holder => $3::text) IS NOT NULL)::text AS held
                   FROM jsonb_array_elements_text($1::text::jsonb) AS key`, [keysOf(lock.resources), String(duration / 1000), lock.value]);
            if (row!.held !== 'true') throw new ExecutionError('the lock is lost');
            lock.expiration = sent + duration;
            return lock;
        });
    }

    /** The routine under a lock that is extended. Its signal is aborted when an extension has failed. */
    async using<T>(resources: string[], duration: number, settings: Partial<Settings> | ((signal: RedlockAbortSignal) => Promise<T>),
        routine?: (signal: RedlockAbortSignal) => Promise<T>): Promise<T> {
        const own = typeof settings === 'function' ? {} : settings;
        const work = typeof settings === 'function' ? settings : routine!;
        const threshold = own.automaticExtensionThreshold ?? this.settings.automaticExtensionThreshold;
        if (threshold > duration - 100) throw new TypeError('a lock has to be at least 100 ms longer than its automaticExtensionThreshold');
        const lock = await this.acquire(resources, duration, own);
        const stop = new AbortController();
        const signal: RedlockAbortSignal = stop.signal;
        let timer: NodeJS.Timeout | undefined, extending: Promise<void> | undefined;
        const plan = () => {
            timer = setTimeout(() => {
                extending = this.extend(lock, duration).then(plan, (error: Error) => {
                    signal.error = error;
                    stop.abort(error);
                });
            }, Math.max(0, lock.expiration - Date.now() - threshold));
        };
        plan();
        try {
            return await work(signal);
        } finally {
            clearTimeout(timer);
            await extending;
            clearTimeout(timer);
            await this.release(lock).catch(() => {}); // lost: the signal has told it
        }
    }

    /** The pool stays open: it is the application's. */
    async quit(): Promise<void> {}

    async #release(resources: string[], holder: string): Promise<boolean> {
        const [row] = await this.#query(
            `SELECT bool_and(interlock.release_lease(key, holder => $2::text))::text AS released FROM jsonb_array_elements_text($1::text::jsonb) AS key`,
            [keysOf(resources), holder]);
        return row!.released === 'true';
    }

    async #retry<T>(given: Partial<Settings>, attempt: () => Promise<T>, withdraw?: () => Promise<unknown>): Promise<T> {
        const { retryCount, retryDelay, retryJitter } = { ...this.settings, ...given };
        for (let attempts = 0; ; attempts++) {
            try {
                return await attempt();
            } catch (error) {
                if (error instanceof ExecutionError || !(error instanceof ResourceLockedError) && !isPassing(error)) throw error;
                if (this.listenerCount('error') > 0) this.emit('error', error);
                if (retryCount !== -1 && attempts >= retryCount) {
                    if (!(error instanceof ResourceLockedError)) await withdraw?.().catch(() => {});
                    throw new ExecutionError(`it has failed ${attempts + 1} times`, { cause: error });
                }
                await new Promise((resolve) => setTimeout(resolve, Math.max(0, retryDelay + Math.floor((Math.random() * 2 - 1) * retryJitter))));
            }
        }
    }
}

export default Redlock;

// One level: a slash in a name makes no path.
const keysOf = (resources: string[]) => JSON.stringify([...new Set(resources)].map((resource) => keyText([resource])));

function whole(duration: number): void {
    if (!Number.isInteger(duration)) throw new TypeError('the duration is a whole number of milliseconds');
}
