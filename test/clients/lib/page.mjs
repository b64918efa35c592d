// The code of a page of docs/recipes, and lines of TAP for what it does.

import { readFileSync, writeFileSync } from 'node:fs';
import { setTimeout } from 'node:timers/promises';

// Runs the blocks of SQL of the page, and returns what its blocks of JavaScript, taken together, export.
export async function load(page, client) {
    const text = readFileSync(`${process.env.ROOT}/docs/recipes/${page}.md`, 'utf8');
    const blocks = (language) => [...text.matchAll(new RegExp(`^\`\`\`${language}\n(.*?)^\`\`\`$`, 'gms'))].map((match) => match[1]);
    for (const sql of blocks('sql'))
        await client.query(sql);
    writeFileSync(`${page}.mjs`, blocks('js').join('\n'));
    return import(`${process.cwd()}/${page}.mjs`);
}

export async function check(name, body) {
    check.count = (check.count ?? 0) + 1;
    try {
        await body();
        console.log(`ok ${check.count} - ${name}`);
    } catch (error) {
        console.log(`not ok ${check.count} - ${name}\n# ${error.stack.replaceAll('\n', '\n# ')}`);
        process.exitCode = 1;
    }
}

// Until it is true; for as long as the whole suite may take.
export async function eventually(condition) {
    for (const end = Date.now() + 180_000; !await condition(); await setTimeout(20))
        if (Date.now() > end)
            throw new Error('it does not come true');
}
