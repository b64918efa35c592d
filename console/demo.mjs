// Something to look at: a shop with the incidents of docs/operations/runbook.md, and people and programs at work. For `start`, on a
// server that is thrown away. Connects as a superuser; the console connects as the role oncall, which is none.

import pg from 'pg';

const open = async (application_name, user) => {
    const client = new pg.Client({ application_name, ...(user && { user }) });
    await client.on('error', () => {}).connect();
    return client;
};
const owner = await open('demo');
await owner.query(`
    CREATE ROLE oncall LOGIN; CREATE ROLE app LOGIN; CREATE ROLE importer LOGIN; CREATE ROLE reports LOGIN;
    GRANT pg_monitor, pg_signal_backend, pg_read_all_data TO oncall;
    SELECT interlock.grant_access('monitor', 'oncall'), interlock.grant_access('operator', 'oncall');
    SELECT interlock.define_idempotency_scope('pay', stale_after => '1 s'), interlock.grant_idempotency_scope('*', 'oncall'), interlock.grant_idempotency_scope('pay', 'app');

    CREATE TABLE page (id int PRIMARY KEY, title text, body text);
    CREATE TABLE orders (id int PRIMARY KEY, total numeric NOT NULL DEFAULT 0, status text NOT NULL DEFAULT 'new');
    CREATE TABLE item (id int PRIMARY KEY, name text, stock int NOT NULL);
    CREATE TABLE invoice (id int PRIMARY KEY, total numeric);
    SELECT interlock.enable_versioning('page'), interlock.enable_marker('page', take_over => 'operators'), interlock.enable_history('page');
    SELECT interlock.enable_versioning('orders'), interlock.define_transitions('orders', 'status', '{"new": ["paid", "cancelled"]}');
    SELECT interlock.enable_escrow('item', 'stock'), interlock.enable_versioning('invoice');
    ALTER TABLE invoice DISABLE TRIGGER zzz_interlock_version;
    GRANT SELECT, INSERT, UPDATE ON page, orders, item TO app;
    GRANT UPDATE (lock_status, lock_by, lock_time, lock_until, lock_reason) ON page TO oncall;

    INSERT INTO page SELECT n, 'Page ' || n, 'The text of page ' || n FROM generate_series(1, 40) n;
    INSERT INTO orders SELECT generate_series(1, 20);
    INSERT INTO item SELECT n, 'Item ' || n, 100 FROM generate_series(1, 10) n`);

// What was left behind.
const importers = await open('nightly import', 'importer'), reports = await open('reports', 'reports'), app = await open('shop', 'app');
await importers.query(`SELECT interlock.acquire_lease('import:' || n, '1 h') FROM generate_series(1, 60) n`);
await reports.query(`SELECT interlock.acquire_lease('report:eu:' || n, '24 h', holder => 'reports on node 4') FROM generate_series(1, 3) n`);
await reports.end();
await app.query(`SELECT interlock.idempotency_claim('pay', 'order-17')`);
await app.query(`SELECT interlock.set_holder('carl'); UPDATE page SET body = 'Monday to Friday: 9 to 5' WHERE id = 7`);
await app.query(`SELECT interlock.set_holder('anna'); UPDATE page SET body = 'Monday to Friday: 9 to 6', title = 'Opening hours' WHERE id = 7`);
await app.query(`SELECT interlock.reserve('item', n, 'stock', n, '1 h', 'kiosk 3 cart ' || n) FROM generate_series(1, 7) n`);
await app.query(`SELECT interlock.lock_row('page', 7, 'anna', ttl => '8 h', reason => 'final review'), interlock.lock_row('page', 12, 'bert', ttl => '10 min')`);

// A worker hangs in its transaction, and requests wait in a chain behind an idle one.
const worker = await open('worker 1', 'app');
await worker.query(`BEGIN; SELECT interlock.assert_lease('report:daily', (interlock.acquire_lease('report:daily', '5 min', holder => 'worker 1')).token)`);
const [one, two, three, four] = await Promise.all(['shop 1', 'shop 2', 'shop 3', 'shop 4'].map((name) => open(name, 'app')));
await one.query('BEGIN; SELECT FROM orders WHERE id = 20 FOR UPDATE');
await two.query(`BEGIN; SELECT interlock.lock_key('stock:1')`);
two.query('UPDATE orders SET total = 1 WHERE id = 20; COMMIT').catch(() => {});
three.query(`BEGIN; SELECT interlock.lock_key('stock:1'); COMMIT`).catch(() => {});
four.query(`BEGIN; SELECT interlock.lock_key('stock:1'); COMMIT`).catch(() => {});

// Programs at work, which collide now and then.
console.log('ready');
const busy = await Promise.all([1, 2, 3].map((n) => open(`shop worker ${n}`, 'app')));
const any = (n) => 1 + Math.floor(n * Math.random() ** 3);
await Promise.all(busy.map(async (client) => {
    for (;;) {
        const id = any(19);
        try {
            const { rows: [{ version }] } = await client.query('SELECT version FROM orders WHERE id = $1', [id]);
            await new Promise((resolve) => setTimeout(resolve, 50 + 100 * Math.random()));
            await client.query(`SELECT outcome FROM interlock.try_versioned_update('orders', $1::int, $2::bigint, jsonb_build_object('total', 1))`, [id, version]);
            await client.query(`SELECT interlock.try_adjust('item', $1::int, 'stock', $2)`, [any(10), Math.random() < 0.5 ? -1 : 1]);
        } catch (error) {
            if (!client._connected) return;
        }
    }
}));
