// A server in between: connections can be cut, refused, or left without an answer.

import net from 'node:net';
import { once } from 'node:events';

const ready = Buffer.from('Z\0\0\0\x05I', 'latin1');
const fields = 'SFATAL\0VFATAL\0C57P01\0Mterminating connection due to administrator command\0\0';
const fatal = Buffer.concat([Buffer.from('E'), Buffer.from([0, 0, 0, fields.length + 4]), Buffer.from(fields)]);

export async function proxy() {
    const path = `${process.env.PGHOST}/.s.PGSQL.${process.env.PGPORT ?? 5432}`;
    const links = new Set();
    let mode = 'open';
    const server = net.createServer((client) => {
        client.on('error', () => {});
        if (mode === 'refuse') return client.destroy();
        const upstream = net.connect(path);
        const link = { client, upstream };
        links.add(link);
        upstream.on('error', () => client.destroy()).on('close', () => { links.delete(link); client.destroy(); });
        client.on('close', () => upstream.destroy());
        client.on('data', (bytes) => { if (mode !== 'silent') upstream.write(bytes); });
        upstream.on('data', (bytes) => {
            if (dropping > 0 && matches?.(bytes)) { dropping--; return client.destroy(); }
            if (ending > 0 && bytes.subarray(-6).equals(ready)) { ending--; return client.end(Buffer.concat([bytes, fatal])); }
            if (mode !== 'silent') client.write(bytes);
        });
    });
    let dropping = 0, ending = 0, matches;
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    return {
        options: { host: '127.0.0.1', port: server.address().port },
        cut() { for (const { client } of links) client.destroy(); },
        set(to) { mode = to; },
        /** Cuts the connection in place of the next answer that matches: the server has worked, and nobody learns it. */
        dropNext(filter, count = 1) { matches = filter; dropping = count; },
        /** Ends the next connections in the packet that says that they are ready. */
        endNext(count = 1) { ending = count; },
        get ended() { return ending === 0; },
        get dropped() { return dropping === 0; },
        close() { this.cut(); server.close(); },
    };
}
