// Errors as classes, by SQLSTATE. `instanceof` also holds for the classes of a second copy of this package.

import { rowFromJson, type JsonRow, type Version } from './values.js';

const kinds = Symbol.for('pg-interlock/kinds');

/** What the server says of a conflict, from its DETAIL. Tokens and versions are texts. */
export type Detail = Record<string, unknown>;

export interface ErrorFields {
    code?: string;
    detail?: Detail;
    hint?: string;
    cause?: unknown;
}

/**
 * A conflict. `status` is the HTTP status of its answer; Express, Fastify and http-errors read it, too.
 * `code` is the SQLSTATE, or '' for an outcome that is no error of the server.
 */
export class InterlockError extends Error {
    static readonly kind: string = 'InterlockError';
    static readonly status: number = 500;

    readonly code: string;
    readonly status: number;
    readonly statusCode: number;
    readonly detail: Detail;
    readonly hint: string | undefined;
    /** Seconds after which a repetition can succeed, where that is known. */
    retryAfter?: number;
    /** The row as it is now, where the call has read it. */
    current?: JsonRow;
    /** The version of the row now, where it is known. */
    version?: Version;

    constructor(message: string, { code = '', detail = {}, hint, cause }: ErrorFields = {}) {
        super(message, cause === undefined ? undefined : { cause });
        this.name = new.target.kind;
        this.code = code;
        this.status = this.statusCode = new.target.status;
        this.detail = detail;
        this.hint = hint;
        const names = new Set<string>();
        for (let each: unknown = new.target; typeof each === 'function' && 'kind' in each; each = Object.getPrototypeOf(each)) {
            names.add(String(each.kind));
        }
        Object.defineProperty(this, kinds, { value: names });
    }

    static override [Symbol.hasInstance](value: unknown): boolean {
        if (!Object.hasOwn(this, 'kind')) return Function.prototype[Symbol.hasInstance].call(this, value);
        return typeof value === 'object' && value !== null && (value as { [kinds]?: Set<string> })[kinds]?.has(this.kind) === true;
    }

    /** Headers of an answer: Express sends them with the error. */
    get headers(): Record<string, string> {
        return this.retryAfter === undefined ? {} : { 'Retry-After': String(this.retryAfter) };
    }

    toJSON(): object {
        const { name, code, status, message, detail, hint, retryAfter, current, version } = this;
        return { name, code, status, message, detail, hint, retryAfter, current, version };
    }
}

/** IL001, 409: another writer has moved the row's version. `current` and `version` are those of now, where they were read. */
export class StaleVersion extends InterlockError {
    static override readonly kind: string = 'StaleVersion';
    static override readonly status: number = 409;
    /** Columns that both sides have changed, after a save with `base`. */
    conflicts?: string[];
}

/** IL002, 422: the transition is not declared, or a guard refuses it. `reason` is the guard's text. */
export class TransitionRefused extends InterlockError {
    static override readonly kind: string = 'TransitionRefused';
    static override readonly status: number = 422;
    get reason(): string | undefined { return this.detail.reason as string | undefined; }
}

/** IL003, 409: the row is in another state, or does not match. `state` is that of now. */
export class StateChanged extends InterlockError {
    static override readonly kind: string = 'StateChanged';
    static override readonly status: number = 409;
    get state(): string | undefined { return this.detail.state as string | undefined; }
}

/** IL004, 423: another holder has the marker of the row. */
export class MarkerHeld extends InterlockError {
    static override readonly kind: string = 'MarkerHeld';
    static override readonly status: number = 423;
    get holder(): string | undefined { return this.detail.holder as string | undefined; }
    get expiresAt(): Date | undefined { return dateOf(this.detail.expires_at); }
}

/** IL005, 409: the caller has lost its marker. */
export class MarkerLost extends InterlockError {
    static override readonly kind: string = 'MarkerLost';
    static override readonly status: number = 409;
}

/** IL006, 409: the caller has lost its lease, or could not renew it in time. */
export class LeaseLost extends InterlockError {
    static override readonly kind: string = 'LeaseLost';
    static override readonly status: number = 409;
}

/** IL007, 403: the column belongs to another writer. */
export class ColumnOwned extends InterlockError {
    static override readonly kind: string = 'ColumnOwned';
    static override readonly status: number = 403;
}

/** IL008, 409: a claim was taken over or has ended, or a reservation has. */
export class ClaimLost extends InterlockError {
    static override readonly kind: string = 'ClaimLost';
    static override readonly status: number = 409;
}

/** IL011, 500: a statement that does not compare the row's version. */
export class BlindUpdate extends InterlockError {
    static override readonly kind: string = 'BlindUpdate';
    static override readonly status: number = 500;
}

/** IL012, 409: not enough is left. `pending`: it may be, once open transactions or reservations have ended. */
export class NotEnough extends InterlockError {
    static override readonly kind: string = 'NotEnough';
    static override readonly status: number = 409;
    get pending(): boolean { return this.detail.outcome === 'pending'; }
    /** The items of a cart that are short, each with its outcome and what remains. */
    get short(): { rel: string; key: unknown; column: string; amount: number; outcome: string; remaining: number | null }[] {
        return (this.detail.short ?? []) as NotEnough['short'];
    }
}

/** P0002, 404: there is no such row, or none that the role may see. */
export class NotFound extends InterlockError {
    static override readonly kind: string = 'NotFound';
    static override readonly status: number = 404;
}

/** 55P03, 53200, 53400, 40001, 40P01 and a session that was ended, 503: the whole transaction may be repeated. */
export class TryAgain extends InterlockError {
    static override readonly kind: string = 'TryAgain';
    static override readonly status: number = 503;
}

/** 423: the lease is held by another client. `recovering` (503): the server grants none shortly after a crash. */
export class Held extends InterlockError {
    static override readonly kind: string = 'Held';
    static override readonly status: number = 423;
    get holder(): string | undefined { return this.detail.holder as string | undefined; }
    get expiresAt(): Date | undefined { return dateOf(this.detail.expires_at); }
    get recovering(): boolean { return this.detail.outcome === 'recovering'; }
}

/** 409: another call works under the idempotency key. `retryAfter` has the seconds to its deadline. */
export class InProgress extends InterlockError {
    static override readonly kind: string = 'InProgress';
    static override readonly status: number = 409;
}

/** 422: the idempotency key was used with another request. */
export class Mismatch extends InterlockError {
    static override readonly kind: string = 'Mismatch';
    static override readonly status: number = 422;
}

/** 500: the work under the key has failed for good, or was tried as often as its scope allows. `detail.error` has the last error. */
export class Failed extends InterlockError {
    static override readonly kind: string = 'Failed';
    static override readonly status: number = 500;
}

const classes: Record<string, typeof InterlockError> = {
    IL001: StaleVersion, IL002: TransitionRefused, IL003: StateChanged, IL004: MarkerHeld, IL005: MarkerLost, IL006: LeaseLost,
    IL007: ColumnOwned, IL008: ClaimLost, IL011: BlindUpdate, IL012: NotEnough, P0002: NotFound,
    '55P03': TryAgain, 53200: TryAgain, 53400: TryAgain, 40001: TryAgain, '40P01': TryAgain, '57P01': TryAgain,
};

interface Raised { code?: unknown; message?: unknown; detail?: unknown; hint?: unknown; cause?: unknown }

/**
 * The error as a class of this package, by its SQLSTATE. Another error comes back unchanged. An ORM's error is looked
 * through: `cause`, `driverError`, `original`, `nativeError`, and what Prisma has in `meta`.
 */
export function asInterlockError(error: unknown): unknown {
    if (error instanceof InterlockError) return error;
    const seen = new Set<unknown>();
    for (let each = error as Raised & Record<string, unknown>; each && typeof each === 'object' && !seen.has(each);) {
        seen.add(each);
        const code = typeof each.originalCode === 'string' ? each.originalCode : String(each.code);
        const type = Object.hasOwn(classes, code) ? classes[code] : undefined;
        if (type) return raised(type, { ...each, message: each.originalMessage ?? each.message, detail: each.detail, hint: each.hint, code }, error);
        const { driverAdapterError } = (each.meta ?? {}) as { driverAdapterError?: unknown };
        each = (driverAdapterError ?? each.cause ?? each.driverError ?? each.original ?? each.nativeError) as typeof each;
    }
    return error;
}

function raised(type: typeof InterlockError, { code, message, detail, hint }: Raised, cause: unknown): InterlockError {
    const made = new type(String(message), {
        code: String(code), detail: parsedDetail(detail), cause, ...(typeof hint === 'string' ? { hint } : {}),
    });
    const { version } = made.detail;
    if (version !== undefined && version !== null) made.version = String(version);
    return made;
}

function parsedDetail(detail: unknown): Detail {
    if (typeof detail !== 'string' || !detail.startsWith('{')) return {};
    try {
        return rowFromJson(detail, ['token', 'version', 'expected']);
    } catch {
        return {};
    }
}

/** Whether the connection was lost or the server cannot be reached: whether the call had an effect is not known then. */
export function isLostConnection(error: unknown): boolean {
    const { code, message } = (error ?? {}) as { code?: unknown; message?: unknown };
    if (typeof code === 'string' && /^[0-9A-DF-Z][0-9A-Z]{4}$/.test(code)) return /^(08|57P0)/.test(code);
    return typeof code === 'string' || /terminat|timeout|closed|connection/i.test(String(message));
}

/** For a loop that goes on: the server is away, or the rows are contended. */
export function isPassing(error: unknown): boolean {
    const { code } = (error ?? {}) as { code?: unknown };
    return isLostConnection(error) || typeof code === 'string' && /^(08|40|53|57|55P03)/.test(code);
}

function dateOf(value: unknown): Date | undefined {
    const date = new Date(String(value));
    return Number.isNaN(date.getTime()) ? undefined : date;
}
