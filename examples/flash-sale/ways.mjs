// The ways to sell: each has its tables and what a buyer, or a worker for a buyer, runs. Used by sale.mjs.
//
// A way answers a buyer with "sold", "changed" (the buyer changed their mind, and the purchase was rolled back) or "sold out".

import { setTimeout as sleep } from 'node:timers/promises';

const item = 7;

// --- How a piece is taken: true, or false when there is none left -------------------------------------------------

// Nobody waits for the commits of others. While those that have taken the last pieces are undecided, the answer is
// "pending": the buyer waits for them, and asks again.
async function adjust(client) {
    for (;;) {
        const { rows: [{ outcome }] } = await client.query(
            "SELECT outcome FROM interlock.try_adjust('item', $1::int, 'stock', -1, wait => '1 s')", [item]);
        if (outcome !== 'pending') return outcome === 'adjusted';
    }
}

// Each waits for the commit of the one before, as the row is locked until then.
async function conditionalUpdate(client) {
    return (await client.query('UPDATE item SET stock = stock - 1 WHERE id = $1 AND stock > 0', [item])).rowCount === 1;
}

// What is wrong: two buyers read the same number. It is here for the test of sale.mjs, which has to notice it.
async function readThenWrite(client) {
    const { rows: [{ stock }] } = await client.query('SELECT stock FROM item WHERE id = $1', [item]);
    if (stock > 0) await client.query('UPDATE item SET stock = $2 WHERE id = $1', [item, stock - 1]);
    return stock > 0;
}

// --- A purchase: one transaction ------------------------------------------------------------------------------------

// atCommit(client, answer) belongs to the transaction that decides it.
async function purchase(client, buyer, take, { payment, changesMind }, atCommit = async () => {}) {
    let answer = 'sold out';
    await client.query('BEGIN');
    if (await take(client)) {
        await client.query('INSERT INTO order_line (buyer, item) VALUES ($1, $2)', [buyer, item]);
        if (payment > 0) await sleep(payment);
        answer = changesMind(buyer) ? 'changed' : 'sold';
    }
    if (answer === 'sold') await atCommit(client, answer);
    await client.query(answer === 'sold' ? 'COMMIT' : 'ROLLBACK');
    if (answer !== 'sold') await atCommit(client, answer);
    return answer;
}

// Each buyer has a connection of the pool for the purchase.
function directly(take) {
    return async (sale) => ({
        buy: async (buyer) => {
            const client = await sale.pool.connect();
            try {
                return await purchase(client, buyer, take, sale);
            } finally {
                client.release();
            }
        },
        end: async () => {},
    });
}

// --- Queues in front: a buyer leaves a request and gets the answer by NOTIFY -------------------------------------------

async function answers(sale) {
    const waiting = new Map();
    const listener = new sale.Client();
    await listener.connect();
    listener.on('notification', ({ payload }) => {
        const [buyer, answer] = payload.split(':');
        waiting.get(Number(buyer))?.(answer);
        waiting.delete(Number(buyer));
    });
    await listener.query('LISTEN answer');
    return {
        of: (buyer) => new Promise((resolve) => waiting.set(buyer, resolve)),
        say: (client, buyer, answer) => client.query("SELECT pg_notify('answer', $1)", [`${buyer}:${answer}`]),
        end: () => listener.end(),
    };
}

// A quarter of the connections are those of the workers.
const workersOf = (sale) => Math.max(1, Math.floor(sale.connections / 4));

// Requests are rows. A worker claims ten at a time: a worker that dies loses none, as its claim expires.
async function claimRows(sale) {
    const answer = await answers(sale);
    const count = workersOf(sale);
    const buyers = new sale.Pool({ max: sale.connections - count });
    let open = true;
    // A worker that was slow has lost its claim: its purchase is undone, as another worker serves the buyer.
    const serve = async (client, buyer, name) => {
        try {
            await purchase(client, buyer, conditionalUpdate, sale, (client, what) =>
                client.query("SELECT interlock.delete_row('request', $1::int, $2), pg_notify('answer', $3)", [buyer, name, `${buyer}:${what}`]));
        } catch (error) {
            if (!['IL005', 'P0002', '23505'].includes(error.code)) throw error;
            await client.query('ROLLBACK');
        }
    };
    const work = async (name) => {
        const client = await sale.pool.connect();
        while (open) {
            const { rows } = await client.query("SELECT (key->>'buyer')::int AS buyer FROM interlock.claim_rows('request', $1, 10, order_column => 'buyer')", [name]);
            for (const { buyer } of rows) await serve(client, buyer, name);
            if (rows.length === 0) await sleep(5);
        }
        client.release();
    };
    const workers = Array.from({ length: count }, (_, i) => work(`worker ${i}`));
    return {
        buy: async (buyer) => {
            const answered = answer.of(buyer);
            await buyers.query('INSERT INTO request (buyer) VALUES ($1)', [buyer]);
            return answered;
        },
        end: async () => {
            open = false;
            await Promise.all(workers);
            await buyers.end();
            await answer.end();
        },
    };
}

// graphile-worker, a queue of npm that lives in PostgreSQL.
async function graphileWorker(sale) {
    const { run, Logger } = await import('graphile-worker');
    const answer = await answers(sale);
    const count = workersOf(sale);
    const buyers = new sale.Pool({ max: sale.connections - count });
    const runner = await run({
        pgPool: sale.pool, concurrency: count, noHandleSignals: true, pollInterval: 100,
        logger: new Logger(() => () => {}),
        taskList: {
            sell: async ({ buyer }, { withPgClient }) => {
                await withPgClient((client) => purchase(client, buyer, conditionalUpdate, sale, (client, what) => answer.say(client, buyer, what)));
            },
        },
    });
    return {
        buy: async (buyer) => {
            const answered = answer.of(buyer);
            await buyers.query("SELECT graphile_worker.add_job('sell', json_build_object('buyer', $1::int))", [buyer]);
            return answered;
        },
        end: async () => {
            await runner.stop();
            await buyers.end();
            await answer.end();
        },
    };
}

// --- All of them ----------------------------------------------------------------------------------------------------

const left = 'SELECT stock FROM item WHERE id = 7';

export const ways = {
    // The first change of a counter locks the row until its commit. Here it is that of the delivery, and not of a buyer.
    adjust: {
        start: directly(adjust), setup: "SELECT interlock.enable_escrow('item', 'stock')",
        stock: "SELECT interlock.adjust('item', 7, 'stock', $1)", left: "SELECT interlock.escrow_value('item', 7, 'stock')",
    },
    conditional_update: { start: directly(conditionalUpdate), left },
    claim_rows: { start: claimRows, setup: "CREATE TABLE request (buyer int PRIMARY KEY); SELECT interlock.enable_marker('request', '1 min')", left },
    graphile_worker: { start: graphileWorker, left },
};

export const wrong = { start: directly(readThenWrite), left };
