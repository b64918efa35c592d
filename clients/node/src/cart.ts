// A cart: stock of escrow counters that is held until a deadline, for all of its items or none.

import type { Driver, Query, Row } from './driver.js';
import { asInterlockError, ClaimLost, NotEnough, NotFound } from './errors.js';
import { shownKey } from './rows.js';
import { fromJson, seconds, toJson, type Duration, type RowKey } from './values.js';

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

    /** Holds all of the items, or none. Throws NotEnough (`pending`: perhaps later; `short`: which items), NotFound. */
    async add(...items: CartItem[]): Promise<Reserved[]> {
        if (items.length === 0) return [];
        let row: Row | undefined;
        try {
            [row] = await this.#driver.query(
                `SELECT outcome, token::text, to_jsonb(expires_at)#>>'{}' AS expires_at, short::text
                   FROM interlock.reserve_many($1::text::jsonb, $2::text::float8, $3::text)`, [itemsJson(items), String(this.#ttl), this.holder]);
        } catch (error) {
            throw asInterlockError(error);
        }
        const { outcome, token, expires_at, short } = row!;
        if (outcome !== 'reserved') throw shortOf(outcome!, short!);
        const reserved = items.map((item) => ({ ...item, token: token!, expiresAt: new Date(expires_at!) }));
        this.items.push(...reserved);
        return reserved;
    }

    /**
     * Sells what is held, in the transaction of the order: all or, with ClaimLost, nothing. `items`: only these of cart.items are
     * sold, with an amount of less if you change it; the others are given back.
     */
    async confirm<T>(order: (tx: Tx) => Promise<T>, { items }: { items?: readonly Reserved[] } = {}): Promise<T> {
        try {
            const result = await this.#driver.transaction(async (tx) => {
                const query = this.#driver.within(tx);
                for (const token of this.#tokens(items)) await sell(query, token, items?.filter((item) => item.token === token));
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
            for (const token of this.#tokens()) {
                const [row] = await query(`SELECT to_jsonb(interlock.extend_reservation($1::text::bigint, $2::text::float8))#>>'{}' AS until`, [token, String(length)]);
                if (!row!.until) throw new ClaimLost('a reservation of the cart has expired or ended', { code: 'IL008', detail: { holder: this.holder } });
                const until = new Date(row!.until);
                for (const item of this.items) if (item.token === token) item.expiresAt = until;
                first = Math.min(first, until.getTime());
            }
        });
        return new Date(first);
    }

    /** Gives everything back. */
    async cancel(): Promise<void> {
        await this.#transaction(async (query) => {
            for (const token of this.#tokens()) await query('SELECT interlock.cancel_reservation($1::text::bigint)::text', [token]);
        });
        this.items = [];
    }

    // Each reservation once, in one order, so that two calls for a cart do not wait for each other. Also those of items that are not ours.
    #tokens(items: readonly Reserved[] = []): string[] {
        const tokens = new Set([...this.items, ...items].map(({ token }) => token));
        return [...tokens].sort((a, b) => BigInt(a) < BigInt(b) ? -1 : 1);
    }

    async #transaction<T>(work: (query: Query) => Promise<T>): Promise<T> {
        try {
            return await this.#driver.transaction((tx) => work(this.#driver.within(tx)));
        } catch (error) {
            throw asInterlockError(error);
        }
    }
}

async function sell(query: Query, token: string, items: readonly Reserved[] | undefined): Promise<void> {
    if (items?.length === 0) await query('SELECT interlock.cancel_reservation($1::text::bigint)::text', [token]);
    else await query('SELECT interlock.confirm_reservation($1::text::bigint, items => $2::text::jsonb)::text', [token, items ? itemsJson(items) : null]);
}

// The server reads amounts as numbers. They are written with all of their digits.
function itemsJson(items: readonly CartItem[]): string {
    const texts = items.map(({ rel, key, column, amount }) => {
        if (!/^\d+(\.\d+)?$/.test(String(amount))) throw new TypeError(`the amount ${amount} is no positive number`);
        return `{"rel":${toJson(rel)},"key":${toJson(key)},"column":${toJson(column)},"amount":${amount}}`;
    });
    return `[${texts.join(',')}]`;
}

function shortOf(outcome: string, text: string): NotEnough | NotFound {
    const short = fromJson(text) as (CartItem & { outcome: string })[];
    const worst = short.find((item) => item.outcome === outcome) ?? short[0]!;
    const detail = { table: worst.rel, key: worst.key, column: worst.column, outcome, short };
    if (outcome === 'not_found') return new NotFound(`table "${worst.rel}" has no row ${shownKey(worst.key)}`, { code: 'P0002', detail });
    return new NotEnough(`"${worst.column}" of row ${shownKey(worst.key)} in table "${worst.rel}" has not enough left`, { code: 'IL012', detail });
}
