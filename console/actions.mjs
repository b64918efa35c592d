// What an operator does, each with a reason that the extension records in its audit. Who acts names the holder that the page showed:
// another holder, who came meanwhile, loses nothing.

import { isObject } from './queries.mjs';

class Changed extends Error {
    status = 409;
}
const text = (value) => value === undefined || value === null ? null : String(value);
const rowKey = (key) => isObject(key) ? '$2::jsonb' : '$2::text';

// A break takes effect at once, and a rollback does not undo it. So the lease is compared before.
async function breakLease(ask, { key, holder, since, terminate }, reason) {
    const [{ same }] = await ask('SELECT count(*) > 0 AS same FROM interlock.leases WHERE key = $1 AND holder IS NOT DISTINCT FROM $2 AND since = $3::timestamptz',
        [text(key), text(holder), text(since)]);
    if (same !== 't') throw new Changed('That lease has ended, or has another holder by now. Nothing was changed.');
    const [{ lost }] = await ask('SELECT interlock.break_lease($1, $2, $3) AS lost', [text(key), reason, terminate === true]);
    return lost === null ? 'The lease had ended already.' : `The lease was taken from ${lost}.`;
}

async function breakLeases(ask, { pattern, role }, reason) {
    const [{ broken }] = await ask('SELECT interlock.break_leases($1, $2, $3) AS broken', [text(pattern), reason, text(role)]);
    return `${broken} ${broken === '1' ? 'lease was' : 'leases were'} broken.`;
}

// What another holder lost is rolled back.
async function release(ask, { relid, key, holder }, reason) {
    const [{ lost }] = await ask(`SELECT interlock.force_unlock_row($1::oid::regclass, ${rowKey(key)}, $3) AS lost`, [text(relid), text(key), reason]);
    if (lost === null) return 'The row was free already.';
    if (lost !== holder) throw new Changed(`The row has another holder by now: ${lost}. Nothing was changed.`);
    return `The row was taken from ${lost}, and is free.`;
}

async function takeOver(ask, { relid, key, holder, to }, reason) {
    const [{ outcome, previous_holder }] = await ask(
        `SELECT outcome, previous_holder FROM interlock.take_over_row($1::oid::regclass, ${rowKey(key)}, $3, $4)`, [text(relid), text(key), text(to), reason]);
    if (outcome === 'not_found') throw new Changed('There is no such row any more.');
    if (outcome === 'refused') throw new Changed(`${previous_holder} keeps the row: the settings of the table allow no takeover now. Nothing was changed.`);
    if (outcome === 'taken' && previous_holder !== holder) throw new Changed(`The row has another holder by now: ${previous_holder}. Nothing was changed.`);
    return outcome === 'taken' ? `${to} has the row now. ${previous_holder} has lost it.` : `The row was free. ${to} has it now.`;
}

async function forget(ask, { scope, key, claimed_at, force }, reason) {
    const [{ same }] = await ask(`SELECT count(*) > 0 AS same FROM interlock.idempotency WHERE scope = $1 AND key = $2 AND status = 'pending'
        AND expires_at > clock_timestamp() AND claimed_at = $3::timestamptz`,
        [text(scope), text(key), text(claimed_at)]);
    if (same !== 't') throw new Changed('That claim has ended, or was made again by now. Nothing was changed.');
    const [{ forgotten }] = await ask('SELECT interlock.idempotency_forget($1, $2, $3, $4) AS forgotten', [text(scope), text(key), reason, force === true]);
    return forgotten === 't' ? 'The key is forgotten. Its work can be done again.' : 'There is no such key any more.';
}

export const actions = { 'break': breakLease, 'break-all': breakLeases, release, 'take-over': takeOver, forget };
