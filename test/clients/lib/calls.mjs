// Every function of the API, called as an application calls it: calls.json, for all languages.
//
//   setup        statements that make the tables; they may run again
//   calls        in this order, on one connection:
//     setup        statements before the call
//     transaction  setup and call are in one transaction, which is rolled back
//     sql          with $1 to $n, each once
//     arguments    numbers, texts, booleans, null, objects (JSON), arrays (of PostgreSQL), or
//                  {"$bigint"}, {"$uuid"}, {"$date"}, {"$timestamp"}, {"$bytes"} (hex), {"$duration"} (PT5S): what the
//                  language has for it,
//                  {"$json"}: JSON as the users of the driver give it where it would be mistaken for an array,
//                  {"$query"}: the first value of this query, as the driver returns it
//     answer       the first row: null, booleans, and all else as text. None: no error
//     drivers      by the name of a test, "sql" and "arguments" that its users type instead: the call as it is fails

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { check } from './page.mjs';

export const { setup, calls } = JSON.parse(readFileSync(new URL('calls.json', import.meta.url), 'utf8'));

// query(sql, values) returns rows as arrays of values, always on one connection. json(value) is what {"$json"} says.
export async function callAll(driver, query, json = JSON.stringify) {
    for (const sql of setup) await query(sql);
    for (const call of calls) {
        const instead = call.drivers?.[driver];
        if (instead) await check(`${call.name}, as on the page`, () => run({ ...call, ...instead }, query, json));
        await check(instead ? `${call.name} needs that` : call.name, async () => {
            if (instead) await assert.rejects(run(call, query, json));
            else await run(call, query, json);
        });
    }
}

async function run(call, query, json) {
    if (call.transaction) await query('BEGIN');
    try {
        for (const sql of call.setup ?? []) await query(sql);
        const [row] = await query(call.sql, await valuesOf(call, query, json));
        if (call.answer) assert.deepEqual(row?.map(asText), call.answer);
    } finally {
        if (call.transaction) await query('ROLLBACK');
    }
}

export async function valuesOf(call, query, json = JSON.stringify) {
    const values = [];
    for (const argument of call.arguments) values.push(await valueOf(argument, query, json));
    return values;
}

async function valueOf(argument, query, json) {
    const [[kind, value]] = argument && !Array.isArray(argument) ? [...Object.entries(argument), []] : [[]];
    switch (kind) {
        case '$bigint': return BigInt(value);
        case '$timestamp': return new Date(value);
        case '$uuid': case '$date': case '$duration': return value; // JavaScript has no type for them
        case '$bytes': return Buffer.from(value, 'hex');
        case '$json': return json(value);
        case '$query': return (await query(value))[0][0];
        default: return argument;
    }
}

export const asText = (value) => value === null || typeof value === 'boolean' ? value : String(value);
