// The hottest tables and kinds of keys, over the time that this page is open. The samples are kept in the tab.

import { count, el, isTrue, long, name, note, read, shown, table } from './lib.js';

const kept = 60;
const samples = new Map();                             // table or class of keys -> [{ clock, calls, conflicts }]
const idOf = ({ database, rel, kind, key_class }) => JSON.stringify([database, rel, kind, key_class]);

// A counter that has become smaller was reset: what came before counts no more.
function keep(rows) {
    const seen = new Set();
    for (const row of rows) {
        const id = idOf(row), line = samples.get(id) ?? [];
        const sample = { clock: Number(row.clock), calls: Number(row.calls), conflicts: Number(row.conflicts) };
        if (line.length && line.at(-1).calls > sample.calls) line.length = 0;
        line.push(sample);
        samples.set(id, line.slice(-kept));
        seen.add(id);
    }
    for (const id of samples.keys()) if (!seen.has(id)) samples.delete(id);
}

// Of the last minute.
function rates(row) {
    const line = samples.get(idOf(row)), end = line.at(-1), begin = line.find(({ clock }) => clock > end.clock - 60);
    const time = end.clock - begin.clock;
    const rate = (what) => time > 0 ? (end[what] - begin[what]) / time : null;
    return { calls: rate('calls'), conflicts: rate('conflicts') };
}
const perSecond = (rate) => rate === null ? '–' : rate === 0 ? '0' : rate < 0.1 ? '<0.1' : rate < 10 ? rate.toFixed(1) : count(Math.round(rate));

function curve(row) {
    const line = samples.get(idOf(row)), steps = line.slice(1).map((to, i) => (to.calls - line[i].calls) / Math.max(to.clock - line[i].clock, 0.001));
    const svg = (tag, attributes) => {
        const element = document.createElementNS('http://www.w3.org/2000/svg', tag);
        for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
        return element;
    };
    const top = Math.max(...steps, 0.001), width = 120;
    const picture = svg('svg', { viewBox: `0 0 ${width} 24`, role: 'img', class: 'curve', 'aria-label': `calls each second, at most ${top < 0.01 ? 0 : perSecond(top)}` });
    if (steps.length > 1) picture.append(svg('polyline', { points: steps.map((step, i) => `${(width * i / (steps.length - 1)).toFixed(1)},${(23 - 22 * step / top).toFixed(1)}`).join(' ') }));
    return picture;
}

const perCall = (part, { calls }) => Number(calls) ? `${(100 * part / calls).toFixed(part / calls < 0.1 ? 1 : 0)} %` : '–';

export const hot = {
    title: 'Hot',
    about: 'Where writers collide. Rates are those of the last minute while this page is open, the other numbers since the last reset.',
    filters: [['sort', 'First', [['', 'most conflicts'], ['now', 'most calls now'], ['waits', 'most waits'], ['blind', 'most blind updates']]]],
    reads: () => [read('contention')],
    show: ([answer], { sort }, state) => shown(answer, ({ rows }) => {
        keep(rows);
        const by = { now: (row) => rates(row).calls ?? 0, waits: (row) => Number(row.waits) + Number(row.timeouts), blind: (row) => Number(row.blind_updates) };
        const order = by[sort] ?? ((row) => Number(row.conflicts));
        const sorted = [...rows].sort((one, two) => order(two) - order(one)).slice(0, 100);
        return [!isTrue(state.reads_stats) && note('Other roles and databases are hidden from this role.', 'hidden-part'),
            table('Contention', [
                ['Table or keys', ({ database, rel, key_class, kind }) => [rel !== null ? name(rel) : key_class !== null ? name(key_class || 'other keys') : name(database), el('span', { className: 'more', textContent: kind })]],
                ['Calls', ({ calls }) => count(calls), 'number'],
                ['Conflicts', (row) => [count(row.conflicts), el('span', { className: 'more', textContent: perCall(Number(row.conflicts), row) })], 'number'],
                ['Refused', ({ refusals }) => count(refusals), 'number'],
                ['Waits', ({ waits, wait_time }) => [count(waits), Number(waits) ? el('span', { className: 'more', textContent: `${wait_time / waits < 1 ? `${(1000 * wait_time / waits).toFixed(1)} ms` : long(wait_time / waits)} each` }) : ''], 'number'],
                ['Timeouts', ({ timeouts }) => count(timeouts), 'number'],
                ['Blind', ({ blind_updates }) => count(blind_updates), 'number'],
                ['Each second', (row) => [`${perSecond(rates(row).calls)} calls`, el('span', { className: 'more', textContent: `${perSecond(rates(row).conflicts)} conflicts` }), curve(row)], 'number'],
            ], sorted, { empty: 'Nothing was counted.' })].filter(Boolean);
    }),
};
