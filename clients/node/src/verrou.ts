// The store of Verrou: `new Verrou({ default: 'postgres', stores: { postgres: { driver: interlockStore({ connection: pool }) } } })`.

import { driverOf, type AnyPool, type Query } from './driver.js';
import { keyText } from './values.js';

export interface VerrouOptions<Tx = unknown> {
    /** A Pool of pg, or sql = postgres() of postgres.js. */
    connection: AnyPool<Tx>;
}

/** What Verrou asks of a store. */
export interface VerrouStore {
    save(key: string, owner: string, ttl: number | null): Promise<boolean>;
    delete(key: string, owner: string): Promise<void>;
    forceDelete(key: string): Promise<void>;
    exists(key: string): Promise<boolean>;
    extend(key: string, owner: string, duration: number): Promise<void>;
}

/**
 * Locks of Verrou are leases: others see them in the view leases, and the owner is the holder. A lock without a ttl ends after
 * the server's interlock.max_lease_ttl, a day by default.
 */
export function interlockStore<Tx>({ connection }: VerrouOptions<Tx>): { config: VerrouOptions<Tx>; factory: () => VerrouStore } {
    return { config: { connection }, factory: () => new InterlockStore(driverOf(connection).query) };
}

class InterlockStore implements VerrouStore {
    readonly #query: Query;
    readonly #saving = new Map<string, Promise<void>>();

    constructor(query: Query) {
        this.#query = query;
    }

    // Calls of this process for one key are asked in their order, whichever connections they get.
    save(key: string, owner: string, ttl: number | null): Promise<boolean> {
        const saved = (this.#saving.get(key) ?? Promise.resolve()).then(() => this.#save(key, owner, ttl));
        const settled = saved.then(() => {}, () => {}).finally(() => { if (this.#saving.get(key) === settled) this.#saving.delete(key); });
        this.#saving.set(key, settled);
        return saved;
    }

    async delete(key: string, owner: string): Promise<void> {
        const [row] = await this.#query('SELECT interlock.release_lease($1::text, holder => $2::text)::text AS released', [nameOf(key), owner]);
        if (row!.released !== 'true') throw await notOwned();
    }

    async forceDelete(key: string): Promise<void> {
        await this.#query('SELECT interlock.release_lease($1::text, holder => l.holder)::text FROM interlock.lease_of($1::text) l', [nameOf(key)]);
    }

    async exists(key: string): Promise<boolean> {
        return (await this.#query('SELECT FROM interlock.lease_of($1::text)', [nameOf(key)])).length > 0;
    }

    async extend(key: string, owner: string, duration: number): Promise<void> {
        const [row] = await this.#query(`SELECT interlock.renew_lease($1::text, ttl => $3::text::float8, holder => $2::text)::text AS until`,
            [nameOf(key), owner, secondsOf(duration)]);
        if (row!.until === null) throw await notOwned();
    }

    // Without a ttl: for as long as the server allows.
    async #save(key: string, owner: string, ttl: number | null): Promise<boolean> {
        const [row] = await this.#query(
            `SELECT outcome FROM interlock.acquire_lease($1::text, coalesce(make_interval(secs => $2::text::float8), current_setting('interlock.max_lease_ttl')::interval),
                 holder => $3::text)`, [nameOf(key), ttl === null ? null : secondsOf(ttl), owner]);
        return row!.outcome === 'acquired';
    }
}

// One level: a slash in a name of Verrou makes no path.
const nameOf = (key: string) => keyText([key]);
const secondsOf = (milliseconds: number) => String(milliseconds / 1000);

// Verrou is an ES module. Its name is no literal, so that this file needs no types of it.
async function notOwned(): Promise<Error> {
    const name = '@verrou/core';
    const { E_LOCK_NOT_OWNED } = await import(name) as { E_LOCK_NOT_OWNED: new () => Error };
    return new E_LOCK_NOT_OWNED();
}
