// The storage of node-idempotency: `new Idempotency(new InterlockStorage({ pool, scope: 'requests' }))`. The scope is of model 'job'.

import { queryOf, type AnyPool, type Query } from './driver.js';
import { ClaimLost } from './errors.js';

export interface StorageOptions<Tx = unknown> {
    /** A Pool of pg, or sql = postgres() of postgres.js. */
    pool: AnyPool<Tx>;
    /** `define_idempotency_scope(scope, model => 'job')`, with a ttl that is not shorter than cacheTTLMS. */
    scope: string;
}

/** A request whose process has died is free again after the scope's stale_after, and not only after cacheTTLMS. */
export class InterlockStorage<Tx = unknown> {
    readonly #query: Query;
    readonly #scope: string;
    readonly #tokens = new Map<string, string>();

    constructor({ pool, scope }: StorageOptions<Tx>) {
        this.#query = queryOf(pool);
        this.#scope = scope;
    }

    async setIfNotExists(key: string, val: string, { ttl }: { ttl?: number } = {}): Promise<boolean> {
        const [row] = await this.#query(
            `SELECT token::text FROM interlock.idempotency_claim($1::text, $2::text, ttl => $3::text::float8, state => to_jsonb($4::text))
              WHERE outcome = 'acquired'`, [this.#scope, key, ttl === undefined ? null : String(ttl / 1000), val]);
        if (!row) return false;
        this.#tokens.set(key, row.token!);
        return true;
    }

    /** The answer. Throws ClaimLost if this object has not claimed the key, or another process has taken it over. */
    async set(key: string, val: string, _options: { ttl?: number } = {}): Promise<void> {
        const token = this.#tokens.get(key);
        if (token === undefined) throw new ClaimLost(`the key "${key}" is not claimed`, { code: 'IL008', detail: { scope: this.#scope, key } });
        this.#tokens.delete(key);
        await this.#query('SELECT interlock.idempotency_complete($1::text, $2::text, $3::text::bigint, to_jsonb($4::text))::text', [this.#scope, key, token, val]);
    }

    async get(key: string): Promise<string | undefined> {
        const [row] = await this.#query(
            `SELECT CASE status WHEN 'completed' THEN response ELSE state END #>> '{}' AS val FROM interlock.idempotency_lookup($1::text, $2::text)
              WHERE status IN ('pending', 'stale', 'completed')`, [this.#scope, key]);
        return row?.val ?? undefined;
    }

    async connect(): Promise<void> {}
    async disconnect(): Promise<void> {} // the pool is the application's
}
