// The states of a row: which may follow, and the change from one to another.

import type { Query } from './driver.js';
import { StateChanged, TransitionRefused } from './errors.js';
import { notFound, Rows, shownKey } from './rows.js';
import { rowKey, toJson, type JsonRow, type RowKey } from './values.js';

type State = string | number | boolean;

export interface MoveOptions {
    /** Columns that change with the state. */
    changes?: object;
    /** Columns and the values that they must still have. */
    match?: Record<string, unknown>;
}

export class States {
    readonly #query: Query;
    readonly #rows: Rows;
    readonly #rel: string;
    readonly #column: string | undefined;

    constructor(query: Query, rows: Rows, rel: string, column?: string) {
        this.#query = query;
        this.#rows = rows;
        this.#rel = rel;
        this.#column = column;
    }

    /**
     * The state of the row, and those that it may go to: the buttons of a page. `reason` is what a guard says against the
     * change, or the privilege that the role lacks. Throws NotFound.
     */
    async of(key: RowKey): Promise<{ state: string | null; next: { state: string; allowed: boolean; reason: string | null }[]; row: JsonRow }> {
        const { row } = await this.#rows.read(this.#rel, key);
        const column = this.#column ?? await this.#onlyColumn();
        const named = rowKey(key, '$2');
        const found = await this.#query(
            `SELECT state, allowed::text, reason FROM interlock.next_states($1::text::regclass, ${named.sql}, $3::text::name)`,
            [this.#rel, named.value, column]);
        const value = row[column];
        return {
            state: value === null || value === undefined ? null : String(value),
            next: found.map(({ state, allowed, reason }) => ({ state: state!, allowed: allowed === 'true', reason: reason ?? null })),
            row,
        };
    }

    async #onlyColumn(): Promise<string> {
        const columns = await this.#query(
            'SELECT DISTINCT state_column::text FROM interlock.transitions WHERE rel = $1::text::regclass', [this.#rel]);
        if (columns.length === 1) return columns[0]!.state_column!;
        throw new TypeError(columns.length ? `table "${this.#rel}" has several state columns: name one` : `table "${this.#rel}" has no transitions`);
    }

    /** Moves the row. Throws StateChanged with the row of now, TransitionRefused with the guard's reason, NotFound. */
    async move(key: RowKey, from: State | readonly State[], to: State, { changes = {}, match = {} }: MoveOptions = {}): Promise<void> {
        const named = rowKey(key, '$2');
        const list = Array.isArray(from);
        const [row] = await this.#query(
            `SELECT outcome, state, current::text, reason FROM interlock.try_transition($1::text::regclass, ${named.sql},
                 ${list ? 'ARRAY(SELECT jsonb_array_elements_text($3::text::jsonb))' : '$3::text'}, $4::text, $5::text::jsonb, $6::text::name, $7::text::jsonb)`,
            [this.#rel, named.value, list ? JSON.stringify(from.map(String)) : String(from), String(to), toJson(changes), this.#column ?? null, toJson(match)]);
        const { outcome, state, current, reason } = row!;
        if (outcome === 'transitioned') return;
        if (outcome === 'not_found') throw notFound(this.#rel, key);
        const detail = { table: this.#rel, key, expected: from, to, state, outcome, reason };
        const what = `row ${shownKey(key)} of table "${this.#rel}"`;
        const error = outcome === 'not_allowed'
            ? new TransitionRefused(`${what} cannot go from "${state}" to "${to}"${reason ? `: ${reason}` : ''}`, { code: 'IL002', detail })
            : new StateChanged(`${what} is in state "${state}"${outcome === 'no_match' ? ', and does not match' : ''}`, { code: 'IL003', detail });
        const now = await this.#rows.row(this.#rel, current);
        if (now) error.current = now;
        throw error;
    }
}
