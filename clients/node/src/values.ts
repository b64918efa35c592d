// Keys, durations and JSON, as the functions of the server take them. All values travel as text, so that no driver and no
// type parser of the application changes them.

import { createHash } from 'node:crypto';

/** A duration: a number of seconds, or a text such as '30 s', '1.5 h', '1 h 30 min', '500 ms'. */
export type Duration = number | string;

/** A name: a text, or its levels. An array is joined as interlock.key_path joins it: nothing in it needs an escape. */
export type Key = string | readonly (string | number | bigint | boolean)[];

/** The key of a row: a value of the primary key, or an object with the columns of any unique key. */
export type RowKey = string | number | bigint | boolean | Date | Readonly<Record<string, unknown>>;

/** A version of a row, always text: of a counter '7', of a timestamp its text with all digits. */
export type Version = string;

/**
 * A row as JSON. Columns of bigint and numeric, and the version, are always text: a number of JavaScript would lose digits. Within
 * json, a number that JavaScript would change is text.
 */
export type JsonRow = Record<string, unknown>;

const units: Record<string, number> = {
    ms: 0.001, millisecond: 0.001, milliseconds: 0.001,
    s: 1, sec: 1, secs: 1, second: 1, seconds: 1,
    m: 60, min: 60, mins: 60, minute: 60, minutes: 60,
    h: 3600, hr: 3600, hour: 3600, hours: 3600,
    d: 86400, day: 86400, days: 86400,
};

/** The seconds of a duration. TypeError for what is none, or is negative. */
export function seconds(duration: Duration): number {
    const total = typeof duration === 'number' ? duration : secondsOfText(duration);
    if (!Number.isFinite(total) || total < 0) {
        throw new TypeError(`"${duration}" is no duration: give a number of seconds, or a text such as '30 s' or '5 min'`);
    }
    return total;
}

function secondsOfText(text: string): number {
    if (/^\s*\d+(\.\d+)?\s*$/.test(text)) return Number(text);
    const parts = [...text.matchAll(/(\d+(?:\.\d+)?)\s*([a-z]+)/gi)];
    const rest = text.replace(/(\d+(?:\.\d+)?)\s*([a-z]+)/gi, '').trim();
    if (parts.length === 0 || rest !== '') return NaN;
    return parts.reduce((sum, [, number, unit]) => sum + Number(number) * (units[unit!.toLowerCase()] ?? NaN), 0);
}

/** The text of a name for leases and locks. */
export function keyText(key: Key): string {
    if (typeof key === 'string') return key;
    if (key.length === 0) throw new TypeError('a key has at least one level');
    return key.map((level) => String(level).replaceAll('%', '%25').replaceAll('/', '%2F')).join('/');
}

/** The text of an idempotency key of several parts, as interlock.idempotency_key makes it. */
export function idempotencyKeyText(key: Key): string {
    if (typeof key === 'string') return key;
    if (key.length === 0) throw new TypeError('a key has at least one part');
    return key.map((part) => String(part).replace(/[\\:]/g, '\\$&')).join(':');
}

/** SQL for the key of a row, and its value: `$2::text`, or `$2::text::jsonb` for an object. */
export function rowKey(key: RowKey, parameter: string): { sql: string; value: string } {
    if (key === null || key === undefined) throw new TypeError('the key of a row is missing');
    if (key instanceof Date) return { sql: `${parameter}::text`, value: key.toISOString() };
    if (typeof key === 'object') return { sql: `${parameter}::text::jsonb`, value: toJson(key) };
    return { sql: `${parameter}::text`, value: String(key) };
}

/** A name as SQL has it. */
export const quoted = (name: string) => `"${name.replaceAll('"', '""')}"`;

/** JSON for the server. A bigint becomes a number with all of its digits; undefined is refused. */
export function toJson(value: unknown): string {
    const bigints: string[] = [];
    const mark = '\u0001bigint:';
    const text = JSON.stringify(value, (_, each) => typeof each === 'bigint' ? mark + (bigints.push(String(each)) - 1) : each);
    if (text === undefined) throw new TypeError('undefined is no JSON');
    return bigints.length === 0 ? text : text.replace(/"\\u0001bigint:(\d+)"/g, (_, i) => bigints[Number(i)]!);
}

/** JSON of the server. A number whose digits a number of JavaScript cannot hold becomes text. */
export const fromJson = (text: string): unknown => JSON.parse(withNumbers(text, (digits) => isExact(digits) ? digits : `"${digits}"`));

/** The same, of a row: numbers in the columns `texts` become text with all of their digits, those in `floats` are numbers. */
export function rowFromJson(text: string, texts: Iterable<string>, floats: Iterable<string> = []): JsonRow {
    const row = fromJson(text) as JsonRow;
    const digits = JSON.parse(withNumbers(text, (number) => `"${number}"`)) as JsonRow;
    for (const name of texts) if (name in row) row[name] = digits[name];
    for (const name of floats) if (typeof row[name] === 'string' && /^-?\d/.test(row[name])) row[name] = Number(row[name]);
    return row;
}

const withNumbers = (text: string, change: (digits: string) => string) =>
    text.replace(/"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g, (token) => token.startsWith('"') ? token : change(token));

// Whether the number is the same one after it was a number of JavaScript.
function isExact(digits: string): boolean {
    if (digits.length <= 15) return true;
    const plain = (text: string) => text.replace(/(\.\d*?)0+$/, '$1').replace(/\.$/, '');
    return plain(digits) === String(Number(digits));
}

/** A hash of any JSON value, the same whatever the order of members is. */
export function hashOf(value: unknown): Buffer {
    return createHash('sha256').update(canonical(value)).digest();
}

function canonical(value: unknown): string {
    if (value instanceof Uint8Array) return `bytes:${createHash('sha256').update(value).digest('hex')}`;
    if (Array.isArray(value)) return `[${value.map(canonical).join(',')}]`;
    if (value === null || typeof value !== 'object') return typeof value === 'bigint' ? String(value) : JSON.stringify(value) ?? 'undefined';
    const json = (value as { toJSON?: unknown }).toJSON;
    if (typeof json === 'function') return canonical(json.call(value));
    const members = Object.entries(value).filter(([, each]) => each !== undefined);
    members.sort(([a], [b]) => a < b ? -1 : 1);
    return `{${members.map(([name, each]) => `${JSON.stringify(name)}:${canonical(each)}`).join(',')}}`;
}
