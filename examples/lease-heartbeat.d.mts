// The types of lease-heartbeat.mjs, for TypeScript.

export interface Lease {
    key: string;
    token: string;
    signal: AbortSignal;
}

export interface Pool {
    query(sql: string, values: any[]): Promise<{ rows: any[] }>;
}

// What listen() uses of a pg.Client.
export interface Client {
    on(event: string, heard: (...values: any[]) => void): Client;
    connect(): Promise<unknown>;
    query(sql: string): Promise<unknown>;
    end(): Promise<void>;
}

export interface Listener {
    woken: Map<string, () => void>;
    close(): Promise<void>;
}

export interface Options {
    wait?: number;
    listener?: Listener;
    signal?: AbortSignal;
    name?: string;
}

export function withLease<T>(pool: Pool, key: string, ttl: number, work: (lease: Lease) => Promise<T>, options?: Options):
    Promise<{ outcome: string; result?: T }>;

export function listen(connect: () => Client): Listener;
