// A server of our own, which a test can stop: the programs of PostgreSQL are those of the PATH, with the extension installed.

import { execFile } from 'node:child_process';
import { appendFile, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';

const execute = promisify(execFile);
// Servers refuse to run as root.
const asServer = (program, ...values) => process.getuid() === 0
    ? execute('runuser', ['-u', 'postgres', '--', program, ...values], { cwd: '/', env: { ...process.env, PGHOST: undefined } })
    : execute(program, values);

export async function startServer() {
    const home = await mkdtemp(join(tmpdir(), 'own-'));
    if (process.getuid() === 0) await execute('chown', ['postgres:', home]);
    const bin = (await execute('pg_config', ['--bindir'])).stdout.trim();
    const data = join(home, 'data');
    await asServer(`${bin}/initdb`, '-D', data, '-U', 'postgres', '-A', 'trust', '-E', 'UTF8', '--no-locale', '--no-sync');
    await appendFile(join(data, 'postgresql.conf'), `listen_addresses = ''
unix_socket_directories = '${home}'
shared_preload_libraries = 'pg_interlock'
interlock.lease_durable_after = '4 s'
fsync = off
`);
    const control = (...values) => asServer(`${bin}/pg_ctl`, '-D', data, '-w', '-l', join(home, 'log'), ...values);
    await control('start');
    return {
        options: { host: home, port: 5432, user: 'postgres', database: 'postgres' },
        restart: (mode) => control('restart', '-m', mode),
        stop: async () => { await control('stop', '-m', 'immediate'); await rm(home, { recursive: true }); },
    };
}
