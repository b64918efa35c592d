// TypeORM: its transactions for interlock(), and versions that each save compares.

import { notAborted, type Adapter, type Query, type TransactionOptions } from './driver.js';
import { asInterlockError } from './errors.js';
import { quoted, toJson } from './values.js';

/** What we need of an EntityManager. */
export interface TypeormManager { query(sql: string, values?: any[]): Promise<any> }

/** What we need of a DataSource. */
export interface TypeormSource<Manager> extends TypeormManager {
    transaction<T>(work: (manager: Manager) => Promise<T>): Promise<T>;
    transaction<T>(isolation: any, work: (manager: Manager) => Promise<T>): Promise<T>;
}

/** `interlock(ofTypeorm(source), { own: new pg.Pool() })`: `tx` is an EntityManager. */
export function ofTypeorm<Manager extends TypeormManager>(source: TypeormSource<Manager>): Adapter<Manager> {
    const within = (manager: TypeormManager): Query => (sql, values = []) => manager.query(sql, [...values]);
    return {
        adapter: {
            query: within(source),
            within,
            transaction: (work, { isolation }: TransactionOptions = {}) => {
                const checked = notAborted(within, work);
                return isolation ? source.transaction(isolation.toUpperCase(), checked) : source.transaction(checked);
            },
        },
    };
}

interface Column { databaseName: string; getEntityValue(entity: any): unknown }
interface Event {
    entity?: any;
    databaseEntity?: any;
    metadata: { primaryColumns: Column[]; tablePath: string; versionColumn?: Column | undefined };
    queryRunner: { query(sql: string, values?: any[]): Promise<any> };
}

/**
 * `source.subscribers.push(versionSubscriber)`: save(), remove(), softRemove() and recover() of every entity with a @VersionColumn
 * compare its version, which TypeORM does not. Throws StaleVersion. update(), delete() and query builders are not entities.
 */
export const versionSubscriber = {
    beforeUpdate: (event: Event) => assertVersion(event),
    beforeRemove: (event: Event) => assertVersion(event),
    beforeSoftRemove: (event: Event) => assertVersion(event),
    beforeRecover: (event: Event) => assertVersion(event),
};

async function assertVersion({ entity, databaseEntity, metadata, queryRunner }: Event): Promise<void> {
    const { primaryColumns, tablePath, versionColumn } = metadata;
    if (!versionColumn || !entity || !databaseEntity) return;
    const key = Object.fromEntries(primaryColumns.map((column) => [column.databaseName, column.getEntityValue(entity)]));
    const version = versionColumn.getEntityValue(entity);
    if (version === undefined || version === null) throw new TypeError(`an entity of "${tablePath}" is saved without its version`);
    try {
        await queryRunner.query('SELECT interlock.assert_version($1::text::regclass, $2::text::jsonb, $3::text)::text',
            [tablePath.split('.').map(quoted).join('.'), toJson(key), version instanceof Date ? version.toISOString() : String(version)]);
    } catch (error) {
        throw asInterlockError(error);
    }
}
