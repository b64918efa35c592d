// A cart: stock of escrow counters that is held until a deadline, for all of its items or none.

import type { Driver, Query } from './driver.js';
import { asInterlockError, ClaimLost, NotEnough, NotFound } from './errors.js';
import { shownKey } from './rows.js';
import { rowKey, seconds, type Duration, type RowKey } from './values.js';

export interface CartItem { rel: string; key: RowKey; column: string; amount: number | string }

/** An item that is held. The token stays on the server: whoever has it can end the reservation. */
export interface Reserved extends CartItem { token: string; expiresAt: Date }

export class Cart<Tx> {
    readonly holder: string;
    /** What is held. Give it to cart() again in another process. */
    items: Reserved[];
    readonly #driver: Driver<Tx>;
    readonly #ttl: number;

    constructor(driver: Driver<Tx>, holder: string, ttl: Duration, items: Reserved[] = []) {
        this.#driver = driver;
        this.holder = holder;
        this.#ttl = seconds(ttl);
        this.items = [...items];
    }

    /** Holds all of the items, or none. Throws NotEnough (`pending`: perhaps later), NotFound. */
    async add(...items: CartItem[]): Promise<Reserved[]> {
        // In one order, so that two carts do not wait for each other.
        const ordered = items.map((item) => ({ item, at: `${item.rel}\n${item.column}\n${shownKey(item.key)}` })).sort((a, b) => a.at < b.at ? -1 : 1);
        const reserved = await this.#transaction(async (query) => {
            const made: Reserved[] = [];
            for (const { item } of ordered) made.push(await reserve(query, item, this.#ttl, this.holder));
            return made;
        });
        this.items.push(...reserved);
        return reserved;
    }

    /** Sells what is held, in the transaction of the order: all or, with ClaimLost, nothing. */
    async confirm<T>(order: (tx: Tx) => Promise<T>): Promise<T> {
        try {
            const result = await this.#driver.transaction(async (tx) => {
                for (const { token } of this.#inOrder()) await this.#driver.within(tx)('SELECT interlock.confirm_reservation($1::text::bigint)::text', [token]);
                return order(tx);
            });
            this.items = [];
            return result;
        } catch (error) {
            throw asInterlockError(error);
        }
    }

    /** Moves the deadline of all items to ttl from now, before a payment begins. Throws ClaimLost if one is lost. */
    async extend(ttl?: Duration): Promise<Date> {
        const length = ttl === undefined ? this.#ttl : seconds(ttl);
        let first = Infinity;
        await this.#transaction(async (query) => {
            for (const item of this.#inOrder()) {
                const [row] = await query(`SELECT to_jsonb(interlock.extend_reservation($1::text::bigint, $2::text::float8))#>>'{}' AS until`, [item.token, String(length)]);
                if (!row!.until) throw new ClaimLost('a reservation of the cart has expired or ended', { code: 'IL008', detail: { table: item.rel, key: item.key } });
                item.expiresAt = new Date(row!.until);
                first = Math.min(first, item.expiresAt.getTime());
            }
        });
        return new Date(first);
    }

    /** Gives everything back. */
    async cancel(): Promise<void> {
        await this.#transaction(async (query) => {
            for (const { token } of this.#inOrder()) await query('SELECT interlock.cancel_reservation($1::text::bigint)::text', [token]);
        });
        this.items = [];
    }

    #inOrder(): Reserved[] {
        return [...this.items].sort((a, b) => BigInt(a.token) < BigInt(b.token) ? -1 : 1);
    }

    async #transaction<T>(work: (query: Query) => Promise<T>): Promise<T> {
        try {
            return await this.#driver.transaction((tx) => work(this.#driver.within(tx)));
        } catch (error) {
            throw asInterlockError(error);
        }
    }
}

async function reserve(query: Query, item: CartItem, ttl: number, holder: string): Promise<Reserved> {
    const { rel, key, column, amount } = item;
    const named = rowKey(key, '$2');
    const [row] = await query(
        `SELECT outcome, token::text, to_jsonb(expires_at)#>>'{}' AS expires_at
           FROM interlock.reserve($1::text::regclass, ${named.sql}, $3::text::name, $4::text::numeric, $5::text::float8, $6::text)`,
        [rel, named.value, column, String(amount), String(ttl), holder]);
    const { outcome, token, expires_at } = row!;
    const detail = { table: rel, key, column, outcome };
    if (outcome === 'not_found') throw new NotFound(`table "${rel}" has no row ${shownKey(key)}`, { code: 'P0002', detail });
    if (outcome !== 'reserved') throw new NotEnough(`"${column}" of row ${shownKey(key)} in table "${rel}" has not enough left`, { code: 'IL012', detail });
    return { ...item, token: token!, expiresAt: new Date(expires_at!) };
}
