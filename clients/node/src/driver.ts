// What this package needs of a driver. Statements return texts only: each column is cast, so that no type parser counts.

import type { PgClient, PgPool } from './driver_pg.js';
import { pgDriver } from './driver_pg.js';
import type { PostgresSql } from './driver_postgres.js';
import { postgresDriver } from './driver_postgres.js';
import { asInterlockError } from './errors.js';

/** A row of texts. */
export type Row = Record<string, string | null>;
export type Query = (sql: string, values?: readonly unknown[]) => Promise<Row[]>;

export interface TransactionOptions {
    /** The isolation level, such as 'repeatable read'. As the server says by default. */
    isolation?: 'read committed' | 'repeatable read' | 'serializable';
}

export interface Driver<Tx> {
    /** On any connection of the pool of the application. */
    query: Query;
    /** BEGIN, work, COMMIT. What throws closes the connection, so that no later statement of the work is committed alone. */
    transaction<T>(work: (tx: Tx) => Promise<T>, options?: TransactionOptions): Promise<T>;
    within(tx: Tx): Query;
    /** Connections of our own, which the application's work does not occupy. */
    own(): Own;
}

export interface Own {
    /** Renewals of leases: a connection that nothing else waits on. After the milliseconds it is closed. */
    renew(sql: string, values: readonly unknown[], milliseconds: number): Promise<Row[]>;
    /** All else that must not wait for the pool of the application. */
    query(sql: string, values: readonly unknown[], milliseconds: number): Promise<Row[]>;
    /**
     * Hears the channel until stop() is called. `ready` is called after each connect, as what came before may be lost. One
     * connection hears all channels.
     */
    listen(channel: string, hear: (payload: string) => void, ready: () => void): { stop(): void };
    close(): Promise<void>;
}

/** The transactions of an ORM: what its subpath makes of it, such as `ofTypeorm(source)`. */
export interface Adapter<Tx> {
    readonly adapter: {
        query: Query;
        transaction<T>(work: (tx: Tx) => Promise<T>, options?: TransactionOptions): Promise<T>;
        within(tx: Tx): Query;
    };
}

export type AnyPool<Tx> = PgPool<Tx> | PostgresSql<Tx> | Adapter<Tx>;

/** own: a second pool of the same driver. Without it one is made with the options of the first. */
export function driverOf<Tx>(pool: AnyPool<Tx>, own?: AnyPool<Tx>): Driver<Tx> {
    if (pool !== null && typeof pool === 'object' && 'adapter' in pool) {
        if (!own) throw new TypeError('give interlock(orm, { own }) a pool: three connections, for heartbeats and LISTEN');
        return { ...pool.adapter, own: () => driverOf(own, own).own() };
    }
    if (typeof pool === 'function' && 'begin' in pool) return postgresDriver(pool as PostgresSql<Tx>, own as PostgresSql<Tx>);
    if (pool !== null && typeof pool === 'object' && 'connect' in pool && 'query' in pool) {
        return pgDriver(pool as PgPool<Tx & PgClient>, own as PgPool<Tx & PgClient>) as Driver<Tx>;
    }
    throw new TypeError('interlock(pool) takes a Pool of pg, or sql = postgres() of postgres.js');
}

/** The pool's query, with errors as classes of this package. */
export function queryOf<Tx>(pool: AnyPool<Tx>): Query {
    const { query } = driverOf(pool);
    return async (sql, values) => {
        try {
            return await query(sql, values);
        } catch (error) {
            throw asInterlockError(error);
        }
    };
}

/**
 * Work in a transaction of an ORM. A statement whose error the work has swallowed has ended the transaction: this raises it, where
 * the ORM would report a COMMIT.
 */
export const notAborted = <Tx, T>(within: (tx: Tx) => Query, work: (tx: Tx) => Promise<T>) => async (tx: Tx): Promise<T> => {
    const result = await work(tx);
    await within(tx)(`SELECT 'ok' AS ok`);
    return result;
};
