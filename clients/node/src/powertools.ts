// The persistence layer of Powertools for AWS Lambda: `makeIdempotent(handler, { persistenceStore: new InterlockPersistenceLayer({ pool, scope }) })`.

import { IdempotencyItemAlreadyExistsError, IdempotencyItemNotFoundError, IdempotencyRecordStatus } from '@aws-lambda-powertools/idempotency';
import { BasePersistenceLayer, IdempotencyRecord } from '@aws-lambda-powertools/idempotency/persistence';
import { createHash } from 'node:crypto';
import { queryOf, type AnyPool, type Query, type Row } from './driver.js';
import { ClaimLost } from './errors.js';

export interface PersistenceOptions<Tx = unknown> {
    /** A Pool of pg, or sql = postgres() of postgres.js. */
    pool: AnyPool<Tx>;
    /** `define_idempotency_scope(scope)`, with a ttl that is not shorter than expiresAfterSeconds. */
    scope: string;
}

/**
 * Claims have tokens: a function that ran into its timeout, and whose request another one has taken over, cannot save its answer.
 * The remaining time of the function is the time until a takeover.
 */
export class InterlockPersistenceLayer<Tx = unknown> extends BasePersistenceLayer {
    readonly #query: Query;
    readonly #scope: string;
    readonly #tokens = new Map<string, string>();

    constructor({ pool, scope }: PersistenceOptions<Tx>) {
        super();
        this.#query = queryOf(pool);
        this.#scope = scope;
    }

    protected async _putRecord(record: IdempotencyRecord): Promise<void> {
        const { idempotencyKey, payloadHash, inProgressExpiryTimestamp } = record;
        const left = inProgressExpiryTimestamp === undefined ? null : Math.max(inProgressExpiryTimestamp - Date.now(), 1) / 1000;
        const [row] = await this.#query(
            `SELECT outcome, token::text, response::text, (extract(epoch FROM deadline) * 1000)::text AS deadline
               FROM interlock.idempotency_claim($1::text, $2::text, request_hash => decode($3::text, 'hex'), ttl => $4::text::float8, stale_after => $5::text::float8)`,
            [this.#scope, idempotencyKey, payloadHash ? createHash('sha256').update(payloadHash).digest('hex') : null, String(this.getExpiresAfterSeconds()),
                left === null ? null : String(left)]);
        const { outcome, token } = row!;
        if (outcome === 'acquired') {
            this.#tokens.set(idempotencyKey, token!);
            return;
        }
        // Of a mismatch the hash is not ours, which the base class finds.
        const existing = recordOf(idempotencyKey, outcome === 'replay' ? 'completed' : 'pending', row!, outcome === 'mismatch' ? 'another' : payloadHash);
        throw new IdempotencyItemAlreadyExistsError(`the key ${idempotencyKey} exists already`, existing);
    }

    protected async _updateRecord(record: IdempotencyRecord): Promise<void> {
        const { idempotencyKey, payloadHash, responseData } = record;
        await this.#query('SELECT interlock.idempotency_complete($1::text, $2::text, $3::text::bigint, $4::text::jsonb)::text',
            [this.#scope, idempotencyKey, this.#token(idempotencyKey), JSON.stringify({ data: responseData, payloadHash })]);
        this.#tokens.delete(idempotencyKey);
    }

    protected async _getRecord(idempotencyKey: string): Promise<IdempotencyRecord> {
        const [row] = await this.#query(
            `SELECT status, response::text, (extract(epoch FROM deadline) * 1000)::text AS deadline
               FROM interlock.idempotency_lookup($1::text, $2::text) WHERE status IN ('pending', 'completed')`, [this.#scope, idempotencyKey]);
        if (!row) throw new IdempotencyItemNotFoundError(`there is no record of ${idempotencyKey}`);
        return recordOf(idempotencyKey, row.status!, row);
    }

    /** The function has thrown: the next request tries again. */
    protected async _deleteRecord({ idempotencyKey }: IdempotencyRecord): Promise<void> {
        await this.#query('SELECT interlock.idempotency_fail($1::text, $2::text, $3::text::bigint)::text', [this.#scope, idempotencyKey, this.#token(idempotencyKey)]);
        this.#tokens.delete(idempotencyKey);
    }

    #token(key: string): string {
        const token = this.#tokens.get(key);
        if (token === undefined) throw new ClaimLost(`the key "${key}" is not claimed`, { code: 'IL008', detail: { scope: this.#scope, key } });
        return token;
    }
}

function recordOf(idempotencyKey: string, status: string, { response, deadline }: Row, hash?: string): IdempotencyRecord {
    const { data, payloadHash = hash } = (response ? JSON.parse(response) : {}) as { data?: IdempotencyRecord['responseData']; payloadHash?: string };
    return new IdempotencyRecord({
        idempotencyKey, status: status === 'completed' ? IdempotencyRecordStatus.COMPLETED : IdempotencyRecordStatus.INPROGRESS,
        ...(status !== 'completed' && deadline ? { inProgressExpiryTimestamp: Number(deadline) } : {}),
        ...(data === undefined ? {} : { responseData: data }), payloadHash: hash ?? payloadHash ?? '',
    });
}
