// The code of a page of docs, and lines of TAP for what it does.

import { spawnSync } from 'node:child_process';
import { copyFileSync, readFileSync, writeFileSync } from 'node:fs';
import { setTimeout } from 'node:timers/promises';

// The blocks of a language of a page, such as clients/pg.
export function blocks(page, language) {
    const text = readFileSync(`${process.env.ROOT}/docs/${page}.md`, 'utf8');
    return [...text.matchAll(new RegExp(`^\`\`\`${language}\n(.*?)^\`\`\`$`, 'gms'))].map((match) => match[1]);
}

// Runs the blocks of SQL of the page, and returns what its blocks of JavaScript or TypeScript, taken together, export.
// If the page grants something to app, all that connects from now on is that role, which has on note and payment what the
// page grants. On tables of tests it may do what plain SQL does.
export async function load(page, client) {
    const setup = blocks(page, 'sql');
    for (const sql of setup)
        await client.query(sql);
    if (setup.some((sql) => / TO app;/.test(sql))) {
        await client.query(`ALTER DEFAULT PRIVILEGES GRANT SELECT, INSERT, UPDATE, DELETE ON TABLES TO app;
            ALTER DEFAULT PRIVILEGES GRANT USAGE ON SEQUENCES TO app`);
        process.env.PGUSER = 'app';
    }
    return loadCode(page);
}

// Its code finds the heartbeat of examples beside it, as the pages say.
export async function loadCode(page) {
    copyFileSync(`${process.env.ROOT}/examples/lease-heartbeat.mjs`, 'lease-heartbeat.mjs');
    const module = `${process.cwd()}/${page.replace('/', '-')}.page.mjs`;
    const typed = typedCode(page);
    writeFileSync(module, typed ? await javascript(typed) : blocks(page, 'js').join('\n'));
    return import(module);
}

const typedCode = (page) => blocks(page, 'typescript').join('\n');

// What tsc --strict says about the code of the page: nothing.
export const strictErrors = (page) => strictErrorsOf(typedCode(page));

export function strictErrorsOf(code) {
    copyFileSync(`${process.env.ROOT}/examples/lease-heartbeat.d.mts`, 'lease-heartbeat.d.mts');
    writeFileSync('page.mts', code);
    const options = '--strict --noEmit --skipLibCheck --experimentalDecorators --target es2022 --module nodenext --types node';
    return spawnSync('npx', ['tsc', ...options.split(' '), 'page.mts'], { encoding: 'utf8' }).stdout;
}

async function javascript(code) {
    const { transformSync } = await import('esbuild');
    const tsconfigRaw = { compilerOptions: { experimentalDecorators: true, useDefineForClassFields: false } };
    return transformSync(code, { loader: 'ts', tsconfigRaw }).code;
}

// At its end a test prints the line 1..N, with check.count.
export async function check(name, body) {
    check.count = (check.count ?? 0) + 1;
    try {
        await body();
        console.log(`ok ${check.count} - ${name}`);
    } catch (error) {
        console.log(`not ok ${check.count} - ${name}\n# ${String(error.stack ?? error).replaceAll('\n', '\n# ')}`);
        process.exitCode = 1;
    }
}

// Until it is true; for as long as the whole suite may take.
export async function eventually(condition) {
    for (const end = Date.now() + 180_000; !await condition(); await setTimeout(20))
        if (Date.now() > end)
            throw new Error('it does not come true');
}
