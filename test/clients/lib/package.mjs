// clients/node, as a shop installs it: built in the current directory, packed, and installed from its archive.

import { execFileSync } from 'node:child_process';
import { cpSync, mkdirSync, writeFileSync } from 'node:fs';

export const build = `${process.cwd()}/build`;

// What tsc says.
export function compile() {
    cpSync(`${process.env.ROOT}/clients/node`, build, { recursive: true });
    return execFileSync('npx', ['tsc', '-p', '.'], { cwd: build, encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'] });
}

export function pack() {
    const [{ filename, files }] = JSON.parse(execFileSync('npm', ['pack', '--json', '--silent'], { cwd: build, encoding: 'utf8' }));
    return { archive: `${build}/${filename}`, names: files.map(({ path }) => path) };
}

// Without a registry. What else the shop needs is found in a directory above.
export function install(archive, shop) {
    mkdirSync(shop, { recursive: true });
    writeFileSync(`${shop}/package.json`, '{ "private": true }');
    execFileSync('npm', ['install', '--offline', '--no-audit', '--no-fund', '--silent', archive], { cwd: shop, stdio: 'inherit' });
}
