// node-postgres.

import type { Driver, Own, Row, TransactionOptions } from './driver.js';
import { Listener, type Ear } from './listen.js';
import { within } from './timing.js';
import { quoted } from './values.js';

interface Result { rows: unknown[]; command?: string }

export interface PgClient {
    query(sql: string, values?: unknown[]): Promise<Result>;
    release(error?: Error | boolean): void;
    on(event: string, listener: (...values: any[]) => void): unknown;
    removeListener(event: string, listener: (...values: any[]) => void): unknown;
}

/** A Pool of pg. Both forms of connect are named, as TypeScript infers the client from the last one. */
export interface PgPool<Client> {
    connect(): Promise<Client>;
    connect(callback: (error: any, client: Client | undefined, done: any) => void): void;
    query(sql: string, values?: any[]): Promise<any>;
    end(): Promise<void>;
    options?: unknown;
    on(event: 'error', listener: (error: Error) => void): unknown;
}

const ignore = () => {};

export function pgDriver<Client extends PgClient>(pool: PgPool<Client>, own?: PgPool<Client>): Driver<Client> {
    guard(pool);
    if (own) guard(own);
    return {
        query: (sql, values = []) => rowsOf(pool.query(sql, [...values])),
        transaction: (work, options) => transaction(pool, work, options),
        within: (tx) => (sql, values = []) => rowsOf(tx.query(sql, [...values])),
        own: () => ownConnections(own ? [own, own, own] : copies(pool), own === undefined),
    };
}

// A connection that the server ends in the moment it is made raises an event before anybody can listen to it, which would end the
// process. Its query is rejected anyway.
function guard<Client>(pool: PgPool<Client>): void {
    if (guarded.has(pool)) return;
    guarded.add(pool);
    (pool as { on(event: string, listener: (client: any) => void): unknown }).on('connect', (client: PgClient) => client.on('error', ignore));
}
const guarded = new WeakSet<object>();

const rowsOf = async (result: Promise<Result>) => (await result).rows as Row[];

async function transaction<Client extends PgClient, T>(pool: PgPool<Client>, work: (tx: Client) => Promise<T>,
    { isolation }: TransactionOptions = {}): Promise<T> {
    const client = await pool.connect();
    client.on('error', ignore); // a connection that breaks rejects its query; its event would end the process, too
    try {
        await client.query(isolation ? `BEGIN ISOLATION LEVEL ${isolation.toUpperCase()}` : 'BEGIN');
        const result = await work(client);
        const { command } = await client.query('COMMIT');
        if (command === 'ROLLBACK') throw new Error('the transaction was rolled back: a statement in it has failed, and its error was not thrown on');
        client.removeListener('error', ignore);
        client.release();
        return result;
    } catch (error) {
        client.release(error instanceof Error ? error : true); // closes it, which rolls back
        throw error;
    }
}

// Pools of one connection each, with the options of the application's: for renewals, for other calls, to listen.
function copies<Client>(pool: PgPool<Client>): PgPool<Client>[] {
    const options = pool.options as Record<string, unknown> | undefined;
    const Pool = pool.constructor as new (options: object) => PgPool<Client>;
    if (!options) throw new TypeError('this pool has no options to make a second one with: give interlock(pool, { own })');
    return [0, 1, 2].map(() => {
        // The password is not enumerable. A server that accepts a connection and says nothing must not keep the only one for ever.
        const connectionTimeoutMillis = Math.min(Number(options.connectionTimeoutMillis) || 5000, 5000);
        const copy = new Pool({ ...options, password: options.password, min: 0, max: 1, maxUses: Infinity, connectionTimeoutMillis,
            idleTimeoutMillis: 60_000, allowExitOnIdle: true });
        copy.on('error', ignore);
        guard(copy);
        return copy;
    });
}

function ownConnections<Client extends PgClient>(pools: PgPool<Client>[], ours: boolean): Own {
    const [renewals, calls, listeners] = pools as [PgPool<Client>, PgPool<Client>, PgPool<Client>];
    const listener = new Listener((hear) => ear(listeners, hear));
    return {
        renew: (sql, values, limit) => limited(renewals, sql, values, limit),
        query: (sql, values, limit) => limited(calls, sql, values, limit),
        listen: (channel, hear, ready) => listener.subscribe(channel, hear, ready),
        async close() {
            await listener.close();
            if (ours) await Promise.all(pools.map((pool) => pool.end().catch(ignore)));
        },
    };
}

// A query that has no answer in time closes its connection: it may hang, and would keep all that come after it.
async function limited<Client extends PgClient>(pool: PgPool<Client>, sql: string, values: readonly unknown[], limit: number) {
    const end = performance.now() + limit;
    const connecting = pool.connect();
    const client = await within(limit, connecting).catch((error: unknown) => {
        connecting.then((late) => late.release(), ignore);
        throw error;
    });
    client.on('error', ignore);
    try {
        const rows = await within(end - performance.now(), rowsOf(client.query(sql, [...values])));
        client.removeListener('error', ignore);
        client.release();
        return rows;
    } catch (error) {
        client.release(true);
        throw error;
    }
}

async function ear<Client extends PgClient>(pool: PgPool<Client>, hear: (channel: string, payload: string) => void): Promise<Ear> {
    const client = await pool.connect();
    const broken = new Promise<void>((resolve) => {
        client.on('error', () => resolve());
        client.on('end', () => resolve());
    });
    client.on('notification', ({ channel, payload }: { channel: string; payload?: string }) => hear(channel, payload ?? ''));
    return {
        listen: (channel) => client.query(`LISTEN ${quoted(channel)}`),
        unlisten: (channel) => client.query(`UNLISTEN ${quoted(channel)}`),
        check: () => client.query('SELECT 1'),
        broken,
        close: () => client.release(true),
    };
}
