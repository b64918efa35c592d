// A backend of syncguard: `const backend = createBackend(pool)`, for its lock() and for its functions.

import { createHash, randomUUID } from 'node:crypto';
import { queryOf, type AnyPool } from './driver.js';
import { keyText } from './values.js';

interface Capabilities { supportsFencing: true; timeAuthority: 'server' }
interface KeyOp { key: string; signal?: AbortSignal }
interface LockOp { lockId: string; signal?: AbortSignal }

export interface LockInfo { keyHash: string; lockIdHash: string; expiresAtMs: number; acquiredAtMs: number; fence: string }

export interface Backend {
    readonly capabilities: Readonly<Capabilities>;
    acquire(options: KeyOp & { ttlMs: number }): Promise<{ ok: true; lockId: string; expiresAtMs: number; fence: string } | { ok: false; reason: 'locked' }>;
    release(options: LockOp): Promise<{ ok: true } | { ok: false }>;
    extend(options: LockOp & { ttlMs: number }): Promise<{ ok: true; expiresAtMs: number } | { ok: false }>;
    isLocked(options: KeyOp): Promise<boolean>;
    lookup(options: KeyOp): Promise<LockInfo | null>;
    lookup(options: LockOp): Promise<LockInfo | null>;
}

/** Its locks are leases. A fence is the token with 19 digits: tokens sort as texts, as those of other backends do. */
export function createBackend<Tx>(pool: AnyPool<Tx>): Backend {
    const query = queryOf(pool);
    const ask = async (signal: AbortSignal | undefined, sql: string, values: unknown[]) => {
        signal?.throwIfAborted();
        return (await query(sql, values))[0];
    };
    return {
        capabilities: { supportsFencing: true, timeAuthority: 'server' },
        async acquire({ key, ttlMs, signal }) {
            const row = await ask(signal, `SELECT token::text, ${milliseconds('expires_at')} AS expires FROM interlock.acquire_lease($1::text, $2::text::float8, holder => $3::text)`,
                [keyText([key]), String(ttlMs / 1000), `syncguard ${randomUUID()}`]);
            return row!.token ? { ok: true, lockId: idOf(key, row!.token), expiresAtMs: Number(row!.expires), fence: fenceOf(row!.token) } : { ok: false, reason: 'locked' };
        },
        async release({ lockId, signal }) {
            const row = await ask(signal, 'SELECT interlock.release_lease($1::text, $2::text::bigint)::text AS released', partsOf(lockId));
            return { ok: row!.released === 'true' };
        },
        async extend({ lockId, ttlMs, signal }) {
            const row = await ask(signal, `SELECT ${milliseconds('until')} AS until FROM interlock.renew_lease($1::text, $2::text::bigint, $3::text::float8) AS until`,
                [...partsOf(lockId), String(ttlMs / 1000)]);
            return row?.until ? { ok: true, expiresAtMs: Number(row.until) } : { ok: false };
        },
        async isLocked({ key, signal }) {
            return await ask(signal, 'SELECT true::text AS held FROM interlock.lease_of($1::text)', [keyText([key])]) !== undefined;
        },
        async lookup(options: KeyOp | LockOp): Promise<LockInfo | null> {
            const [name, token] = 'lockId' in options ? partsOf(options.lockId) : [keyText([options.key])];
            const row = await ask(options.signal, `SELECT token::text, ${milliseconds('since')} AS since, ${milliseconds('expires_at')} AS expires FROM interlock.lease_of($1::text)`, [name]);
            if (!row || token !== undefined && token !== row.token) return null;
            const key = 'key' in options ? options.key : Buffer.from(options.lockId.split('.')[1]!, 'base64url').toString();
            return { keyHash: hash(key), lockIdHash: hash(idOf(key, row.token!)), expiresAtMs: Number(row.expires), acquiredAtMs: Number(row.since), fence: fenceOf(row.token!) };
        },
    };
}

const milliseconds = (column: string) => `(extract(epoch FROM ${column}) * 1000)::bigint::text`;
const fenceOf = (token: string) => token.padStart(19, '0');
const hash = (text: string) => createHash('sha256').update(text).digest('hex').slice(0, 24);

// The token and the key, as release() has no other argument.
const idOf = (key: string, token: string) => `${token}.${Buffer.from(key).toString('base64url')}`;

function partsOf(lockId: string): [name: string, token: string] {
    const [, token, key] = /^(\d{1,19})\.([\w-]*)$/.exec(lockId) ?? [];
    if (token === undefined) throw new TypeError('this is no lockId of ours');
    return [keyText([Buffer.from(key!, 'base64url').toString()]), token];
}
