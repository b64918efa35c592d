// Rows by their key: read, save, update with retry.

import type { Query, Row } from './driver.js';
import { NotFound, StaleVersion } from './errors.js';
import { quoted, rowFromJson, rowKey, toJson, type JsonRow, type RowKey, type Version } from './values.js';

/** A row as JSON, and its version; null where the table has none. */
export interface Versioned { row: JsonRow; version: Version | null }

export interface UpdateOptions {
    /** How often to try at most, 20 by default. */
    attempts?: number;
}

export interface SaveOptions {
    /** The row as it was read: columns that only one side has changed are merged. */
    base?: JsonRow;
}

/** What the catalog says of a table, for rows that are named by these columns of a unique key. */
interface Table { name: string; version: string | null; texts: string[]; floats: string[]; columns: { name: string; type: string }[] }

export class Rows {
    readonly #query: Query;
    readonly #tables = new Map<string, Promise<Table>>();

    constructor(query: Query) {
        this.#query = query;
    }

    /** Undefined: there is no such row, or none that the role may see. */
    async find(rel: string, key: RowKey): Promise<Versioned | undefined> {
        try {
            return await this.#find(rel, key);
        } catch (error) {
            // The table may have been altered since its columns were read.
            if (!/^(42|22)/.test(String((error as { code?: unknown }).code))) throw error;
            this.#tables.delete(tableId(rel, key));
            return this.#find(rel, key);
        }
    }

    async read(rel: string, key: RowKey): Promise<Versioned> {
        const found = await this.find(rel, key);
        if (!found) throw notFound(rel, key);
        return found;
    }

    /** The new version. Throws StaleVersion with the row of now, NotFound. */
    async save(rel: string, key: RowKey, expected: Version | number | bigint, changes: object, { base }: SaveOptions = {}): Promise<Version> {
        const named = rowKey(key, '$2');
        const [row] = await this.#query(
            `SELECT outcome, version::text, current::text, to_json(conflicts)::text AS conflicts
               FROM interlock.try_versioned_update($1::text::regclass, ${named.sql}, $3::text, $4::text::jsonb, $5::text::jsonb, $6::text)`,
            [rel, named.value, versionText(expected), toJson(changes), base ? toJson(base) : null, base ? 'merge' : 'report']);
        switch (row!.outcome) {
            case 'conflict': throw await this.stale(rel, key, expected, row!);
            case 'not_found': throw notFound(rel, key);
            default: return row!.version!;
        }
    }

    /** Reads, calls change(row), saves; again after another writer was faster. change() returns columns, or nothing to change nothing. */
    async update(rel: string, key: RowKey, change: (row: JsonRow) => object | null | undefined | Promise<object | null | undefined>,
        { attempts = 20 }: UpdateOptions = {}): Promise<{ version: Version; attempts: number }> {
        let { row, version } = await this.read(rel, key);
        if (version === null) throw new TypeError(`table "${rel}" has no versions: its owner calls interlock.enable_versioning('${rel}')`);
        for (let attempt = 1; ; attempt++) {
            const changes = await change(row);
            if (!changes) return { version, attempts: attempt };
            try {
                return { version: await this.save(rel, key, version, changes), attempts: attempt };
            } catch (error) {
                if (!(error instanceof StaleVersion) || attempt >= attempts) throw error;
                // Those who meet again and again wait a little, each another time.
                if (attempt > 2) await new Promise((resolve) => setTimeout(resolve, Math.random() * 5 * attempt));
                ({ row, version } = error.current && error.version ? { row: error.current, version: error.version } : await this.read(rel, key) as { row: JsonRow; version: Version });
            }
        }
    }

    /** A row that a function has returned, as find() returns it. */
    async row(rel: string, text: string | null | undefined): Promise<JsonRow | undefined> {
        if (!text) return undefined;
        const { texts, floats } = await this.#table(rel, {});
        return rowFromJson(text, texts, floats);
    }

    /** The error of a row that is another version, with the row as it is now. */
    async stale(rel: string, key: RowKey, expected: unknown, { version, current, conflicts }: Row): Promise<StaleVersion> {
        const error = new StaleVersion(`row ${shownKey(key)} of table "${rel}" has another version: expected ${expected}, found ${version}`,
            { code: 'IL001', detail: { table: rel, key, expected: String(expected), version } });
        const row = await this.row(rel, current);
        if (row) error.current = row;
        if (version) error.version = version;
        if (conflicts) error.conflicts = JSON.parse(conflicts) as string[];
        return error;
    }

    async #find(rel: string, key: RowKey): Promise<Versioned | undefined> {
        const { name, version, columns, texts, floats } = await this.#table(rel, key);
        const conditions = columns.map(({ name: column, type }, i) => `t.${quoted(column)} = $${i + 1}::text::${type}`);
        const [row] = await this.#query(
            `SELECT to_jsonb(t.*)::text AS row, ${version === null ? 'NULL' : `t.${quoted(version)}::text`} AS version FROM ${name} t WHERE ${conditions.join(' AND ')}`,
            columns.map(({ name: column }) => isObject(key) ? textOf(key[column]) : textOf(key)));
        return row && { row: rowFromJson(row.row!, texts, floats), version: row.version ?? null };
    }

    #table(rel: string, key: RowKey): Promise<Table> {
        const id = tableId(rel, key);
        const kept = this.#tables.get(id) ?? this.#describe(rel, key);
        if (this.#tables.size > 1000) this.#tables.clear();
        this.#tables.set(id, kept);
        kept.catch(() => this.#tables.delete(id));
        return kept;
    }

    // An object without a column: the table alone.
    async #describe(rel: string, key: RowKey): Promise<Table> {
        const names = isObject(key) ? Object.keys(key) : null;
        const rows = await this.#query(
            `SELECT c.oid::regclass::text AS rel, interlock.configuration(c.oid)->'versioning'->>'version_column' AS version,
                 a.attname::text AS name, format_type(a.atttypid, a.atttypmod) AS type,
                 (coalesce(nullif(y.typbasetype, 0), y.oid) IN ('bigint'::regtype, 'numeric'::regtype))::text AS is_text,
                 (CASE WHEN $2::text IS NULL THEN a.attnum = ANY (i.indkey) ELSE a.attname IN (SELECT jsonb_array_elements_text($2::text::jsonb)) END)::text AS is_key
               FROM pg_class c LEFT JOIN pg_index i ON i.indrelid = c.oid AND i.indisprimary
               JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
               JOIN pg_type y ON y.oid = a.atttypid
              WHERE c.oid = $1::text::regclass`,
            [rel, names && JSON.stringify(names)]);
        const columns = rows.filter(({ is_key }) => is_key === 'true').map(({ name, type }) => ({ name: name!, type: type! }));
        if (names ? columns.length !== names.length : columns.length !== 1) {
            throw new TypeError(names ? `table "${rel}" has no unique key of ${names.join(', ')}`
                : `table "${rel}" has no primary key of one column: name the row by an object with the columns of a unique key`);
        }
        const version = rows[0]?.version ?? null;
        const floats = rows.filter(({ type }) => type === 'double precision' || type === 'real').map(({ name }) => name!);
        const texts = rows.filter(({ name, is_text, type }) => is_text === 'true' || name === version && type !== 'timestamp with time zone');
        return { name: rows[0]?.rel ?? rel, version, texts: texts.map(({ name }) => name!), floats, columns };
    }
}

const isObject = (key: RowKey): key is Record<string, unknown> => typeof key === 'object' && !(key instanceof Date);
const textOf = (value: unknown) => value instanceof Date ? value.toISOString() : typeof value === 'object' && value !== null ? toJson(value) : String(value);
const tableId = (rel: string, key: RowKey) => JSON.stringify([rel, isObject(key) ? Object.keys(key).sort() : null]);

export function requireVersion(version: unknown): void {
    if (version === undefined || version === null) throw new TypeError('the version is missing: give the one that was read with the row');
}

export function versionText(version: Version | number | bigint): string {
    requireVersion(version);
    if (typeof version === 'number' && !Number.isSafeInteger(version)) throw new TypeError(`the version ${version} has lost digits: read it as text`);
    return String(version);
}

export const shownKey = (key: RowKey) => typeof key === 'object' && !(key instanceof Date) ? toJson(key) : textOf(key);

export const notFound = (rel: string, key: RowKey) =>
    new NotFound(`table "${rel}" has no row ${shownKey(key)}`, { code: 'P0002', detail: { table: rel, key } });
