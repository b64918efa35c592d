// postgres.js.

import type { Driver, Own, Row } from './driver.js';
import { Listener, type Ear } from './listen.js';
import { within } from './timing.js';

interface Unsafe { unsafe(sql: string, values?: any[]): PromiseLike<any> }

/** sql = postgres(). Both forms of begin are named, as TypeScript infers the transaction from the last one. */
export interface PostgresSql<Tx> extends Unsafe {
    begin(work: (tx: Tx) => any): Promise<any>;
    begin(options: string, work: (tx: Tx) => any): Promise<any>;
    listen(channel: string, hear: (payload: string) => void, ready?: () => void): Promise<{ unlisten(): Promise<void> }>;
    end(options?: { timeout?: number }): Promise<void>;
    options: unknown;
}

const ignore = () => {};

export function postgresDriver<Tx>(sql: PostgresSql<Tx>, own?: PostgresSql<Tx>): Driver<Tx> {
    return {
        query: (text, values = []) => rowsOf(sql.unsafe(text, [...values])),
        // Within an object, as begin() waits for the elements of an array.
        transaction: async (work, { isolation } = {}) => {
            const { result } = await sql.begin(isolation ? `ISOLATION LEVEL ${isolation.toUpperCase()}` : '',
                async (tx) => ({ result: await work(tx) }));
            return result;
        },
        within: (tx) => (text, values = []) => rowsOf((tx as Unsafe).unsafe(text, [...values])),
        own: () => ownConnections(own ? async () => own : () => copyOf(sql), own === undefined),
    };
}

const rowsOf = async (result: PromiseLike<any>) => [...await result] as Row[];

// A pool of one connection with the options of the application's. The name is no literal, so that bundlers leave it alone.
async function copyOf<Tx>(sql: PostgresSql<Tx>): Promise<PostgresSql<Tx>> {
    const name = 'postgres';
    const { default: postgres } = await import(name).catch((cause: unknown) => {
        throw new Error('postgres.js was not found to make a second connection: give interlock(sql, { own: postgres(...) })', { cause });
    });
    // fetch_types: all of ours are texts, and a connection that breaks while 3.4.9 reads them is an unhandled rejection.
    return postgres({ ...(sql.options as object), max: 1, idle_timeout: 60, connect_timeout: 5, onnotice: ignore, fetch_types: false });
}

function ownConnections<Tx>(make: () => Promise<PostgresSql<Tx>>, ours: boolean): Own {
    const made = new Map<string, Promise<PostgresSql<Tx>>>();
    const one = (name: string) => {
        const kept = made.get(name) ?? make();
        made.set(name, kept);
        kept.catch(() => made.delete(name));
        return kept;
    };
    const end = (sql: PostgresSql<Tx>) => ours ? sql.end({ timeout: 1 }).catch(ignore) : undefined;
    // One that has no answer in time may hang, and is not used again.
    const limited = async (name: string, text: string, values: readonly unknown[], limit: number) => {
        const sql = await one(name);
        try {
            return await within(limit, rowsOf(sql.unsafe(text, [...values])));
        } catch (error) {
            if (/^timeout:/.test((error as Error).message) && ours) {
                made.delete(name);
                void end(sql);
            }
            throw error;
        }
    };
    const listener = new Listener(async (hear) => {
        const sql = await make();
        return ear(sql, hear, () => end(sql));
    });
    return {
        renew: (text, values, limit) => limited('renewals', text, values, limit),
        query: (text, values, limit) => limited('calls', text, values, limit),
        listen: (channel, hear, ready) => listener.subscribe(channel, hear, ready),
        async close() {
            await listener.close();
            await Promise.all([...made.values()].map(async (sql) => end(await sql)));
            made.clear();
        },
    };
}

// sql.listen() connects again by itself, but not if the server is away when it tries (3.4.9), and says nothing of it. So it is
// asked whether it still hears, by a notification of our own.
async function ear<Tx>(sql: PostgresSql<Tx>, hear: (channel: string, payload: string) => void, end: () => unknown): Promise<Ear> {
    const stops = new Map<string, () => Promise<void>>();
    const probe = `interlock_probe_${process.pid}_${Math.random().toString(36).slice(2)}`;
    let again = ignore, heardProbe = ignore;
    const broken = new Promise<void>((resolve) => { again = resolve; });
    const listen = async (channel: string) => {
        let first = true;
        const { unlisten } = await sql.listen(channel, (payload) => channel === probe ? heardProbe() : hear(channel, payload), () => {
            if (!first) again();
            first = false;
        });
        stops.set(channel, unlisten);
    };
    const unlisten = async (channel: string) => {
        await stops.get(channel)?.();
        stops.delete(channel);
    };
    return {
        listen,
        unlisten,
        async check() {
            if (!stops.has(probe)) await listen(probe);
            const heard = new Promise<void>((resolve) => { heardProbe = resolve; });
            await rowsOf(sql.unsafe('SELECT pg_notify($1::text, NULL)', [probe]));
            await heard;
        },
        broken,
        async close() {
            await within(1000, Promise.all([...stops.keys()].map(unlisten))).catch(ignore);
            await end();
        },
    };
}
