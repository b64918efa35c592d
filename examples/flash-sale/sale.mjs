// A flash sale: all buyers come at once and share a few connections. Sells in each way of ways.mjs, checks that what was
// sold and what is left is what was stocked, at the end and at looks in between, and measures how long buyers wait.
//
//   node sale.mjs [--buyers 10000] [--items 100] [--connections 64] [--payment 0,20] [--rounds 3] [--ways adjust,...] [--out FILE]
//
// --payment is how long a purchase waits for a payment before it commits, in milliseconds. --out has a line for each
// sale. Connects as the environment says (PGHOST, PGDATABASE ...) to a database with the extension, and makes a schema
// flash_sale there. Needs pg and graphile-worker of npm. Ends with status 1 when a way sold too many or too few.

import pg from 'pg';
import { appendFileSync } from 'node:fs';
import { pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';
import { setTimeout as sleep } from 'node:timers/promises';
import { ways } from './ways.mjs';

// One buyer in ten changes their mind after the payment: the purchase is rolled back, and the piece is free again.
const changesMind = (buyer) => buyer % 10 === 3;

// One sale: what was sold, and milliseconds from the click of a buyer to the answer.
export async function hold(way, { buyers, items, connections, payment }) {
    class Client extends pg.Client {
        constructor(config) { super({ ...config, options: '-c search_path=flash_sale,public' }); }
    }
    class Pool extends pg.Pool {
        constructor(config) { super({ ...config, options: '-c search_path=flash_sale,public' }); }
    }
    const watcher = new Client();
    await watcher.connect();
    await watcher.query(`DROP SCHEMA IF EXISTS graphile_worker CASCADE; DROP SCHEMA IF EXISTS flash_sale CASCADE; CREATE SCHEMA flash_sale;
        CREATE TABLE item (id int PRIMARY KEY, stock int NOT NULL CHECK (stock >= 0));
        CREATE TABLE order_line (buyer int PRIMARY KEY, item int NOT NULL);
        INSERT INTO item VALUES (7, 0); ${way.setup ?? ''}`);
    await watcher.query(way.stock ?? 'UPDATE item SET stock = stock + $1 WHERE id = 7', [items]);
    const pool = new Pool({ max: connections });
    const warm = await Promise.all(Array.from({ length: connections }, () => pool.connect()));
    warm.forEach((client) => client.release());
    const sale = await way.start({ pool, Client, Pool, connections, payment, changesMind });

    let open = true;
    const looks = [];
    const watch = (async () => {
        for (; open; await sleep(20)) looks.push(await look(watcher, way));
    })();
    const start = performance.now();
    const answers = await Promise.all(Array.from({ length: buyers }, async (_, buyer) => {
        const answer = await sale.buy(buyer);
        return { answer, after: performance.now() - start };
    }));
    open = false;
    await watch;
    await sale.end();
    await pool.end();
    const end = await look(watcher, way);
    await watcher.end();

    const count = (what) => answers.filter(({ answer }) => answer === what).length;
    const times = answers.map(({ after }) => after).sort((a, b) => a - b);
    const sales = answers.filter(({ answer }) => answer === 'sold').map(({ after }) => after);
    return {
        sold: count('sold'), changed: count('changed'), refused: count('sold out'), orders: end.orders, left: end.left,
        looks: looks.length, wrong: [...looks, end].filter(({ orders, left }) => orders + left !== items || left < 0),
        p50: percentile(times, 50), p95: percentile(times, 95), p99: percentile(times, 99), soldOut: Math.max(...sales), last: times.at(-1),
    };
}

// Both numbers are of one snapshot.
async function look(client, way) {
    const { rows: [row] } = await client.query(`SELECT (SELECT count(*) FROM order_line)::int AS orders, (${way.left})::int AS left`);
    return row;
}

function percentile(sorted, percent) {
    return sorted[Math.ceil(sorted.length * percent / 100) - 1];
}

// What is wrong with a sale, or nothing.
export function fault({ sold, orders, left, changed, refused, wrong }, { buyers, items }) {
    if (wrong.length > 0) return `a look found ${wrong[0].orders} orders and ${wrong[0].left} left of ${items}`;
    if (sold !== Math.min(items, buyers) || orders !== sold || left !== items - sold) return `${sold} were sold, with ${orders} orders, and ${left} are left of ${items}`;
    if (sold + changed + refused !== buyers) return `${sold + changed + refused} of ${buyers} buyers got an answer`;
    return undefined;
}

async function main() {
    const { values: options } = parseArgs({
        options: {
            buyers: { type: 'string', default: '10000' }, items: { type: 'string', default: '100' }, connections: { type: 'string', default: '64' },
            payment: { type: 'string', default: '0,20' }, rounds: { type: 'string', default: '3' }, ways: { type: 'string', default: Object.keys(ways).join() },
            out: { type: 'string' },
        },
    });
    const [buyers, items, connections, rounds] = [options.buyers, options.items, options.connections, options.rounds].map(Number);
    const write = (...cells) => options.out && appendFileSync(options.out, `${cells.join('\t')}\n`);
    write('round', 'buyers', 'items', 'connections', 'way', 'payment', 'sold', 'changed', 'looks', 'p50', 'p95', 'p99', 'sold_out', 'last');
    console.log(`${buyers} buyers, ${items} pieces, ${connections} connections; milliseconds from the click to the answer`);
    console.log('way'.padEnd(20) + ['payment', 'sold', 'changed', 'looks', 'p50', 'p95', 'p99', 'sold out', 'last'].map((title) => title.padStart(9)).join(''));
    for (let round = 1; round <= rounds; round++) {
        for (const payment of options.payment.split(',').map(Number)) {
            for (const name of options.ways.split(',')) {
                if (!ways[name]) throw new Error(`no way ${name} in ${Object.keys(ways).join(', ')}`);
                const result = await hold(ways[name], { buyers, items, connections, payment });
                const times = [result.p50, result.p95, result.p99, result.soldOut, result.last].map(Math.round);
                console.log(name.padEnd(20) + [payment, result.sold, result.changed, result.looks, ...times].map((cell) => String(cell).padStart(9)).join(''));
                write(round, buyers, items, connections, name, payment, result.sold, result.changed, result.looks, ...times);
                const wrong = fault(result, { buyers, items });
                if (wrong) {
                    console.log(`${name}: ${wrong}`);
                    process.exitCode = 1;
                }
            }
        }
    }
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) await main();
