// Drizzle: its transactions for interlock(), and a save by versions.

import { notAborted, type Adapter, type Query, type Row, type TransactionOptions } from './driver.js';
import { asInterlockError, NotFound, StaleVersion } from './errors.js';
import { requireVersion } from './rows.js';

// Its types are two, for import and for require: none is named here.
const { and, eq, sql } = require('drizzle-orm') as { and: (...conditions: unknown[]) => unknown; eq: (left: unknown, right: unknown) => unknown; sql: any };

/** What we need of a database, and of a transaction. */
export interface DrizzleTransaction { execute(query: any): PromiseLike<any> }
export interface DrizzleDatabase<Tx> extends DrizzleTransaction {
    transaction<T>(work: (tx: Tx) => Promise<T>, config?: any): Promise<T>;
}

/** `interlock(ofDrizzle(db), { own: new pg.Pool() })`: `tx` is a transaction of Drizzle. */
export function ofDrizzle<Tx extends DrizzleTransaction>(db: DrizzleDatabase<Tx>): Adapter<Tx> {
    const within = (tx: DrizzleTransaction): Query => async (text, values = []) => {
        const result = await tx.execute(statement(text, values)) as Row[] | { rows: Row[] };
        return Array.isArray(result) ? result : result.rows;
    };
    return {
        adapter: {
            query: within(db),
            within,
            transaction: (work, { isolation }: TransactionOptions = {}) =>
                db.transaction(notAborted(within, work), isolation ? { isolationLevel: isolation } : undefined),
        },
    };
}

function statement(text: string, values: readonly unknown[]): unknown {
    const parts = text.split(/\$(\d+)/);
    return sql.join(parts.map((part, i): unknown => i % 2 === 0 ? sql.raw(part) : sql`${values[Number(part) - 1]}`));
}

/** A table with a column `version`, and its key as a condition: `saveVersion(db, note, eq(note.id, 1), 7, { body })` returns the row. */
export async function saveVersion<Saved = any>(db: any, table: any, key: { getSQL(): unknown } | undefined, version: unknown, changes: object, column = 'version'): Promise<Saved> {
    requireVersion(version);
    if (key === undefined) throw new TypeError('the key of a row is missing');
    try {
        const [saved] = await db.update(table).set(changes).where(and(key, eq(table[column], version))).returning();
        if (saved) return saved;
    } catch (error) {
        throw asInterlockError(error);
    }
    const [current] = await db.select().from(table).where(key);
    if (!current) throw new NotFound('there is no such row', { code: 'P0002' });
    const stale = new StaleVersion(`the row has another version than ${version}`, { code: 'IL001', detail: { expected: String(version) } });
    throw Object.assign(stale, { current, version: String(current[column]) });
}
