// Prisma: its transactions for interlock(), and an extension that saves by versions.

import { notAborted, type Adapter, type Query, type TransactionOptions } from './driver.js';
import { asInterlockError, StaleVersion } from './errors.js';
import { requireVersion } from './rows.js';
import { toJson } from './values.js';

/** What we need of a client, and of the client of a transaction. */
export interface PrismaTransaction { $queryRawUnsafe<T = unknown>(sql: string, ...values: any[]): PromiseLike<T> }
export interface PrismaClientLike<Tx> extends PrismaTransaction {
    $transaction<R>(work: (tx: Tx) => Promise<R>, options?: { maxWait?: number; timeout?: number; isolationLevel?: any }): Promise<R>;
}

/** `interlock(ofPrisma(prisma), { own: new pg.Pool() })`: `tx` is the client of a transaction. */
export function ofPrisma<Tx extends PrismaTransaction>(prisma: PrismaClientLike<Tx>, limits: { maxWait?: number; timeout?: number } = {}): Adapter<Tx> {
    const within = (client: PrismaTransaction): Query => async (sql, values = []) => client.$queryRawUnsafe(sql, ...values);
    return {
        adapter: {
            query: within(prisma),
            within,
            transaction: (work, { isolation }: TransactionOptions = {}) => prisma.$transaction(notAborted(within, work),
                { ...limits, ...(isolation ? { isolationLevel: levels[isolation] } : {}) }),
        },
    };
}

const levels = { 'read committed': 'ReadCommitted', 'repeatable read': 'RepeatableRead', serializable: 'Serializable' };

/**
 * `prisma.$extends(versions())`: each model has `saveVersion({ where, version, data })`, which returns the saved row and throws
 * StaleVersion with the current one. Errors of conflicts are classes of this package in every call.
 */
export function versions(field = 'version') {
    return {
        name: 'pg-interlock',
        query: {
            async $allOperations({ args, query }: { args: any; query: (args: any) => Promise<any> }): Promise<any> {
                try {
                    return await query(args);
                } catch (error) {
                    throw asInterlockError(error);
                }
            },
        },
        model: {
            $allModels: {
                async saveVersion<Model>(this: Model, { where, version, data }: { where: object; version: number | bigint | string | Date; data: object }): Promise<any> {
                    requireVersion(version);
                    const model = this as { update(args: object): Promise<any>; findUnique(args: object): Promise<any> };
                    try {
                        return await model.update({ where: { ...where, [field]: version }, data });
                    } catch (error) {
                        if ((error as { code?: unknown }).code !== 'P2025') throw error;
                        const stale = new StaleVersion(`the row ${toJson(where)} has another version than ${version}, or is gone`,
                            { code: 'IL001', detail: { key: where, expected: String(version) }, cause: error });
                        const current = await model.findUnique({ where }) as Record<string, unknown> | null;
                        if (current) Object.assign(stale, { current, version: String(current[field]) });
                        throw stale;
                    }
                },
            },
        },
    };
}
