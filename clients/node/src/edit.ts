// The edit of a row: locked for its holder, touched while there is activity, saved or released.

import { EventEmitter } from 'node:events';
import type { Query, Row } from './driver.js';
import { MarkerHeld, MarkerLost } from './errors.js';
import { notFound, Rows, shownKey, versionText } from './rows.js';
import { clamped } from './timing.js';
import type { Markers } from './watch.js';
import { rowKey, seconds, toJson, type Duration, type JsonRow, type RowKey, type Version } from './values.js';

export interface EditOptions {
    /** How long the row is held without activity. As the table says by default. */
    ttl?: Duration;
    /** What others see as the reason. */
    reason?: string;
    /**
     * Takes the row from its holder, with this reason, which is audited. The table says who may do so before the holder's deadline:
     * `enable_marker(rel, take_over => 'allow')`. The former holder cannot save any more.
     */
    takeOver?: string;
}

export interface EditSaveOptions {
    /** The marker stays: an autosave. Its deadline moves to the table's ttl from now. */
    keep?: boolean;
    /** The version that the editor began with, by default that of the row when it was locked, or of the last save. */
    expected?: Version | number | bigint | null;
}

const notAllowed = `Before the deadline, the table must allow it: enable_marker(rel, take_over => 'allow'), or 'operators' for roles with a grant on force_unlock_row.`;

interface Events {
    /** The time without activity is over, or the row was released by another call. */
    lost: [];
    /** Another holder has it now. */
    taken: [holder: string];
}

/** The marker of one row. `await using` releases it. */
export class Edit extends EventEmitter<Events> implements AsyncDisposable {
    readonly rel: string;
    readonly key: RowKey;
    readonly holder: string;
    /** The row when it was locked. */
    readonly row: JsonRow;
    /** From whom it was taken over. */
    readonly takenFrom: string | null;
    readonly #query: Query;
    readonly #rows: Rows;
    readonly #ttl: number | undefined;
    readonly #stop = new AbortController();
    #version: Version | null;
    #saving: Promise<unknown> = Promise.resolve();
    #expiresAt: Date;
    #length: number; // milliseconds
    #touched: number; // by our clock, before the request
    #touching: Promise<boolean> | undefined;
    #timer: NodeJS.Timeout | undefined;
    #listening: { stop(): void } | undefined;
    #looking = false;
    #closing = false; // a save that releases the row is on its way
    #ended = false;

    private constructor(query: Query, rows: Rows, markers: Markers, locked: Locked) {
        super();
        this.#query = query;
        this.#rows = rows;
        this.rel = locked.rel;
        this.key = locked.key;
        this.holder = locked.holder;
        this.row = locked.row;
        this.#version = locked.version;
        this.takenFrom = locked.takenFrom;
        this.#ttl = locked.ttl;
        this.#expiresAt = locked.expiresAt;
        this.#length = locked.length;
        this.#touched = locked.sent;
        this.#watch();
        void this.#listen(markers).catch(() => {}); // it learns at its next call, or at the deadline
    }

    /** Locks the row, or takes it over. Throws MarkerHeld with the holder, NotFound. */
    static async begin(query: Query, rows: Rows, markers: Markers, rel: string, key: RowKey, holder: string,
        { ttl, reason, takeOver }: EditOptions): Promise<Edit> {
        const named = rowKey(key, '$2');
        const length = ttl === undefined ? undefined : seconds(ttl);
        const row = `$1::text::regclass, ${named.sql}, $3::text, ttl => $4::text::float8, reason => $5::text`;
        const call = takeOver === undefined
            ? `SELECT CASE WHEN locked THEN 'locked' ELSE 'refused' END AS outcome, holder, locked_at AS since, expires_at FROM interlock.lock_row(${row})`
            : `SELECT outcome, previous_holder AS holder, since, expires_at FROM interlock.take_over_row(${row})`;
        const sent = performance.now();
        const [answer] = await query(
            `SELECT outcome, holder, to_jsonb(since)#>>'{}' AS locked_at, to_jsonb(expires_at)#>>'{}' AS expires_at,
                 (extract(epoch FROM expires_at - clock_timestamp()) * 1000)::text AS length FROM (${call}) answer`,
            [rel, named.value, holder, length === undefined ? null : String(length), takeOver ?? reason ?? null]);
        const { outcome, holder: other, locked_at, expires_at } = answer!;
        if (outcome === 'not_found') throw notFound(rel, key);
        if (outcome === 'refused') {
            throw new MarkerHeld(`row ${shownKey(key)} of table "${rel}" is being edited by "${other}"`,
                { code: 'IL004', detail: { table: rel, key, holder: other, locked_at, expires_at }, ...(takeOver === undefined ? {} : { hint: notAllowed }) });
        }
        // Read after it is locked: nobody else has changed it since.
        const found = await rows.read(rel, key).catch(async (error: unknown) => {
            await query(`SELECT interlock.unlock_row($1::text::regclass, ${named.sql}, $3::text)::text`, [rel, named.value, holder]).catch(() => {});
            throw error;
        });
        return new Edit(query, rows, markers, {
            rel, key, holder, ttl: length, sent, expiresAt: new Date(expires_at!), length: Number(answer!.length), takenFrom: outcome === 'taken' ? other! : null, ...found,
        });
    }

    /** The version when it was locked, or that of the last save; null if the table has none. */
    get version(): Version | null { return this.#version; }

    /** When others may take the row, by the server's clock. */
    get expiresAt(): Date { return this.#expiresAt; }

    /** Aborted when the marker is lost. */
    get signal(): AbortSignal { return this.#stop.signal; }

    /**
     * Activity, such as a key: call it as often as you like. The marker is prolonged when a quarter of its time has passed.
     * False: it is lost.
     */
    touch(): Promise<boolean> {
        if (this.#ended) return Promise.resolve(false);
        if (performance.now() < this.#touched + this.#length / 4) return Promise.resolve(true);
        return this.#touching ??= this.#touch().finally(() => { this.#touching = undefined; });
    }

    /**
     * Writes the changes and releases the row, or keeps it. Throws StaleVersion, after which the marker stays, and MarkerLost, each
     * with the row of now. Saves are sent one after the other, so that one that begins meanwhile is not stale by the first.
     */
    save(changes: object, options: EditSaveOptions = {}): Promise<Version | null> {
        const saved = this.#saving.then(() => this.#save(changes, options));
        this.#saving = saved.catch(() => {});
        return saved;
    }

    /** Releases the row without a change. False: it was no longer held. */
    async release(): Promise<boolean> {
        if (this.#ended) return false;
        this.#end();
        const named = rowKey(this.key, '$2');
        const [row] = await this.#query(`SELECT interlock.unlock_row($1::text::regclass, ${named.sql}, $3::text)::text AS held`, [this.rel, named.value, this.holder]);
        return row!.held === 'true';
    }

    async [Symbol.asyncDispose](): Promise<void> {
        await this.release().catch(() => {}); // it ends by itself
    }

    async #save(changes: object, { expected = this.#version, keep = false }: EditSaveOptions): Promise<Version | null> {
        const named = rowKey(this.key, '$2');
        this.#closing = !keep;
        const [row] = await this.#query(
            `SELECT outcome, version, current::text
               FROM interlock.try_save_row($1::text::regclass, ${named.sql}, $3::text, $4::text::jsonb, $5::text, $6::text::boolean)`,
            [this.rel, named.value, this.holder, toJson(changes), expected === null ? null : versionText(expected), String(keep)])
            .finally(() => { this.#closing = false; });
        switch (row!.outcome) {
            case 'conflict': throw await this.#rows.stale(this.rel, this.key, expected, row!);
            case 'not_found': throw notFound(this.rel, this.key);
            case 'lost': throw await this.#lose(undefined, row!);
        }
        this.#version = row!.version ?? null;
        if (!keep) this.#end();
        return this.#version;
    }

    async #touch(): Promise<boolean> {
        const named = rowKey(this.key, '$2');
        const sent = performance.now();
        const [row] = await this.#query(
            `SELECT to_jsonb(until)#>>'{}' AS until, (extract(epoch FROM until - clock_timestamp()) * 1000)::text AS length
               FROM interlock.touch_row($1::text::regclass, ${named.sql}, $3::text, $4::text::float8) AS until`,
            [this.rel, named.value, this.holder, this.#ttl === undefined ? null : String(this.#ttl)]);
        if (!row?.until) {
            await this.#lose();
            return false;
        }
        this.#expiresAt = new Date(row.until);
        this.#touched = sent;
        this.#length = Number(row.length);
        if (!this.#ended) this.#watch();
        return true;
    }

    // At the deadline the server is asked: another call of the same holder may have prolonged it.
    #watch(): void {
        clearTimeout(this.#timer);
        this.#timer = setTimeout(() => void this.#expire().catch(() => this.#lose()), clamped(this.#touched + this.#length - performance.now()));
        this.#timer.unref();
    }

    // Others cannot take a row that is held but by these events. Those of other rows of the table are seen, too.
    async #listen(markers: Markers): Promise<void> {
        const { name, notifies } = await markers.describe(this.rel);
        if (!notifies || this.#ended) return;
        this.#listening = markers.listen(name, (event) => {
            if (event !== 'locked' && event !== 'unlocked') void this.#look().catch(() => {});
        });
    }

    async #look(): Promise<void> {
        if (this.#looking || this.#ended) return;
        this.#looking = true;
        try {
            const { holder } = await this.#state();
            if (holder !== this.holder && !this.#ended && !this.#closing) await this.#lose(holder);
        } finally {
            this.#looking = false;
        }
    }

    async #expire(): Promise<void> {
        const { holder, remaining } = await this.#state();
        if (this.#ended) return;
        if (holder !== this.holder || remaining <= 0) {
            await this.#lose(holder);
            return;
        }
        this.#touched = performance.now();
        this.#length = remaining;
        this.#watch();
    }

    async #lose(known?: string | null, { version, current }: Row = {}): Promise<MarkerLost> {
        const holder = known === undefined ? (await this.#state().catch(() => undefined))?.holder : known;
        const error = new MarkerLost(`row ${shownKey(this.key)} of table "${this.rel}" is no longer held by "${this.holder}"`,
            { code: 'IL005', detail: { table: this.rel, key: this.key, holder: holder ?? null } });
        const row = await this.#rows.row(this.rel, current);
        if (row) error.current = row;
        if (version) error.version = version;
        if (this.#ended) return error;
        this.#end();
        this.#stop.abort(error);
        if (holder && holder !== this.holder) this.emit('taken', holder);
        else this.emit('lost');
        return error;
    }

    async #state(): Promise<{ holder: string | null; remaining: number }> {
        const named = rowKey(this.key, '$2');
        const [row] = await this.#query(
            `SELECT CASE WHEN locked THEN holder END AS holder, (extract(epoch FROM expires_at - clock_timestamp()) * 1000)::text AS remaining
               FROM interlock.row_lock_of($1::text::regclass, ${named.sql})`, [this.rel, named.value]);
        return { holder: row?.holder ?? null, remaining: Number(row?.remaining ?? 0) };
    }

    #end(): void {
        this.#ended = true;
        this.#listening?.stop();
        clearTimeout(this.#timer);
    }
}

interface Locked {
    rel: string; key: RowKey; holder: string; ttl: number | undefined; sent: number; expiresAt: Date; length: number; row: JsonRow;
    version: Version | null; takenFrom: string | null;
}
