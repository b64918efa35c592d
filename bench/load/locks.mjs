// Takes and gives back locks on keys of each client's own, as a program for node does. Prints pairs a second.
//
//     node locks.mjs interlock|syncguard-postgres|syncguard-redis|redlock CLIENTS SECONDS
//
// Every client has a connection and waits for each answer. PostgreSQL is where PGHOST (a directory) says, Redis where
// REDIS_SOCKET does. The first half second does not count: node compiles what it runs often.
const [what, clients, seconds] = [process.argv[2], Number(process.argv[3]), Number(process.argv[4])];
const warmUp = 0.5;

async function postgres() {
    const connect = (await import('postgres')).default;
    const { PGHOST, PGPORT = '5432', PGUSER, PGDATABASE } = process.env;
    return connect({ path: `${PGHOST}/.s.PGSQL.${PGPORT}`, user: PGUSER, database: PGDATABASE, max: clients, onnotice: () => {} });
}

async function redis() {
    const { Redis } = await import('ioredis');
    return new Redis(process.env.REDIS_SOCKET);
}

// Each returns a function for every client: takes the key, and gives it back if it got it.
const lockers = {
    async interlock() {
        const sql = await postgres();
        const pair = async (key) => {
            const [lease] = await sql`SELECT outcome, token FROM interlock.acquire_lease(${key}, '30 s')`;
            if (lease.outcome !== 'acquired') throw new Error(`${key} is ${lease.outcome}`);
            await sql`SELECT interlock.release_lease(${key}, ${lease.token})`;
        };
        return Array(clients).fill(pair);
    },
    async 'syncguard-postgres'() {
        const { createPostgresBackend, setupSchema } = await import('syncguard/postgres');
        const sql = await postgres();
        await setupSchema(sql);
        return Array(clients).fill(syncguardPair(createPostgresBackend(sql)));
    },
    async 'syncguard-redis'() {
        const { createRedisBackend } = await import('syncguard/redis');
        const pairs = [];
        while (pairs.length < clients) pairs.push(syncguardPair(createRedisBackend(await redis())));
        return pairs;
    },
    async redlock() {
        const Redlock = (await import('redlock')).default;
        const pairs = [];
        while (pairs.length < clients) {
            const locks = new Redlock([await redis()], { retryCount: 0 });
            pairs.push(async (key) => (await locks.lock(key, 30000)).unlock());
        }
        return pairs;
    },
};

function syncguardPair(backend) {
    return async (key) => {
        const lock = await backend.acquire({ key, ttlMs: 30000 });
        if (!lock.ok) throw new Error(`${key} is ${lock.reason}`);
        const { ok } = await backend.release({ lockId: lock.lockId });
        if (!ok) throw new Error(`${key} was lost`);
    };
}

async function main() {
    const pairs = await lockers[what]();
    const start = performance.now();
    const from = start + warmUp * 1000;
    const to = from + seconds * 1000;
    let count = 0;
    await Promise.all(pairs.map(async (pair, client) => {
        while (performance.now() < to) {
            await pair(`client:${client}:job:${Math.floor(Math.random() * 100000)}`);
            const now = performance.now();
            if (now >= from && now < to) count++;
        }
    }));
    console.log(Math.round(count / seconds));
    process.exit(0);
}

main().catch((error) => {
    console.error(`error: ${error.message}`);
    process.exit(1);
});
