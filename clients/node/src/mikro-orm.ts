// MikroORM: its transactions for interlock(), and a save by the version of a form.

import { notAborted, type Adapter, type Query, type TransactionOptions } from './driver.js';
import { asInterlockError, StaleVersion } from './errors.js';
import { requireVersion } from './rows.js';

/** What we need of an EntityManager. */
export interface MikroManager {
    execute(sql: string, values?: any[]): Promise<any>;
    fork(): this;
    transactional<T>(work: (em: this) => Promise<T> | T, options?: any): Promise<T>;
}

/** `interlock(ofMikroOrm(orm.em), { own: new pg.Pool() })`: `tx` is an EntityManager of its own, which is flushed before COMMIT. */
export function ofMikroOrm<Em extends MikroManager>(em: Em): Adapter<Em> {
    // MikroORM writes ? instead of $1. A value is given once for each ?, in the order of the text.
    const within = (of: MikroManager): Query => (sql, values = []) => of.execute(sql.replaceAll(/\$\d+/g, '?'),
        [...sql.matchAll(/\$(\d+)/g)].map(([, number]) => values[Number(number) - 1]));
    return {
        adapter: {
            query: (sql, values) => within(em.fork())(sql, values),
            within,
            transaction: <T>(work: (tx: Em) => Promise<T>, { isolation }: TransactionOptions = {}) =>
                em.fork().transactional(notAborted(within, work) as (tx: MikroManager) => Promise<T>, isolation ? { isolationLevel: isolation } : undefined),
        },
    };
}

/**
 * Compares the version that a form was made with, assigns the changes and flushes. Throws StaleVersion, also where the version has
 * moved since the entity was read. Set useBatchUpdates: false, as a batch does not compare in its UPDATE.
 */
export async function saveVersion<Entity extends object>(em: any, entity: Entity, version: unknown, changes: object): Promise<Entity> {
    requireVersion(version);
    const optimistic = 1; // LockMode.OPTIMISTIC
    try {
        await em.lock(entity, optimistic, version);
        em.assign(entity, changes);
        await em.flush();
        return entity;
    } catch (error) {
        if ((error as Error).name !== 'OptimisticLockError') throw asInterlockError(error);
        throw new StaleVersion((error as Error).message, { code: 'IL001', detail: { expected: String(version) }, cause: error });
    }
}
