// The types of lease-heartbeat.mjs, for TypeScript.

export interface Lease {
    key: string;
    token: string;
    signal: AbortSignal;
}

export interface Pool {
    query(sql: string, values: any[]): Promise<{ rows: any[] }>;
}

export function withLease<T>(pool: Pool, key: string, ttl: number, work: (lease: Lease) => Promise<T>):
    Promise<{ outcome: string; result?: T }>;
