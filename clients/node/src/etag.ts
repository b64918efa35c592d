// Versions as ETags: what GET, PUT and DELETE of a versioned row answer, in any framework.

import type { Query } from './driver.js';
import { NotFound, StaleVersion } from './errors.js';
import type { Rows } from './rows.js';
import { rowKey, toJson, type JsonRow, type RowKey, type Version } from './values.js';

/** Headers of a request: an object of node, or Headers. */
export type RequestHeaders = { get(name: string): string | null } | Record<string, string | string[] | undefined>;

/** What to answer. `body` is undefined for 201, 204 and 304. */
export interface EtagAnswer {
    status: 200 | 201 | 204 | 304 | 404 | 412 | 428;
    headers: Record<string, string>;
    body: JsonRow | undefined;
}

/** One strong tag. It is opaque to clients; digits, or the text of a timestamp. */
export const etagOf = (version: Version | number | bigint) => `"${String(version).replaceAll(' ', '_')}"`;

/** The version of a tag; undefined for none, several, `*` or a weak one. */
export const versionOf = (header: string | null | undefined) => /^\s*"([0-9][0-9:.+_-]{0,40})"\s*$/.exec(header ?? '')?.[1]?.replaceAll('_', ' ');

export class Etag {
    readonly #rel: string;
    readonly #rows: Rows;
    readonly #query: Query;

    constructor(rel: string, rows: Rows, query: Query) {
        this.#rel = rel;
        this.#rows = rows;
        this.#query = query;
    }

    /** 200 with the row and its tag; 304 for `If-None-Match` with that tag; 404. */
    async get(key: RowKey, headers: RequestHeaders): Promise<EtagAnswer> {
        const found = await this.#rows.find(this.#rel, key);
        if (!found) return answer(404);
        const { row, version } = found;
        if (version === null) throw new TypeError(`table "${this.#rel}" has no versions`);
        return matches(header(headers, 'if-none-match'), version) ? answer(304, version) : answer(200, version, row);
    }

    /**
     * Changes columns. `If-Match` has the tag that was read: 200, or 412 with the row of now. `If-None-Match: *` is for a new
     * row: 201, or 412. Without either 428.
     */
    async put(key: RowKey, headers: RequestHeaders, changes: object): Promise<EtagAnswer> {
        const expected = expectedOf(headers);
        if (typeof expected === 'number') return answer(expected);
        if (expected.none) return this.#insert(key, changes);
        try {
            return answer(200, await this.#rows.save(this.#rel, key, expected.version!, changes));
        } catch (error) {
            return refused(error);
        }
    }

    /** 204, 412 with the row of now, 404; without `If-Match` 428. */
    async delete(key: RowKey, headers: RequestHeaders): Promise<EtagAnswer> {
        const expected = expectedOf(headers);
        if (typeof expected === 'number') return answer(expected);
        if (expected.none) return answer(412);
        const named = rowKey(key, '$2');
        const [row] = await this.#query(
            `SELECT outcome, version::text, current::text
               FROM interlock.try_versioned_delete($1::text::regclass, ${named.sql}, $3::text)`, [this.#rel, named.value, expected.version]);
        if (row!.outcome === 'not_found') return answer(404);
        return row!.outcome === 'deleted' ? answer(204) : refused(await this.#rows.stale(this.#rel, key, expected.version, row!));
    }

    async #insert(key: RowKey, values: object): Promise<EtagAnswer> {
        const named = rowKey(key, '$2');
        const [row] = await this.#query(
            `SELECT outcome, version::text, current::text
               FROM interlock.try_versioned_upsert($1::text::regclass, ${named.sql}, NULL::text, $3::text::jsonb)`,
            [this.#rel, named.value, toJson(values)]);
        return row!.outcome === 'inserted' ? answer(201, row!.version!) : answer(412, row!.version!, await this.#rows.row(this.#rel, row!.current));
    }
}

function answer(status: EtagAnswer['status'], version?: Version, body?: JsonRow): EtagAnswer {
    return { status, headers: version ? { ETag: etagOf(version) } : {}, body };
}

function refused(error: unknown): EtagAnswer {
    if (error instanceof NotFound) return answer(404);
    if (error instanceof StaleVersion) return answer(412, error.version, error.current);
    throw error;
}

// A tag of another form cannot be the row's, and is 412.
function expectedOf(headers: RequestHeaders): { none: boolean; version?: Version } | 412 | 428 {
    const match = header(headers, 'if-match'), none = header(headers, 'if-none-match');
    if (match === undefined) return none?.trim() === '*' ? { none: true } : 428;
    const version = versionOf(match);
    return version === undefined ? 412 : { none: false, version };
}

// If-None-Match may have several tags, and compares weak ones as strong ones.
const matches = (given: string | undefined, version: Version) => given !== undefined
    && (given.trim() === '*' || given.split(',').some((tag) => versionOf(tag.trim().replace(/^W\//, '')) === version));

function header(headers: RequestHeaders, name: string): string | undefined {
    const value = typeof headers.get === 'function' ? headers.get(name) : (headers as Record<string, string | string[] | undefined>)[name];
    return Array.isArray(value) ? value.join(', ') : value as string ?? undefined;
}
