// What all pages use: elements, names, times, tables. Nothing is written as HTML: names are set as text.

export const $ = (id) => document.getElementById(id);

export function el(tag, props = {}, ...children) {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(props)) {
        if (name in element && name !== 'list') element[name] = value;
        else element.setAttribute(name, value);
    }
    element.append(...children.flat(2).filter((child) => child !== null && child !== undefined && child !== false));
    return element;
}

// Marks that a reader does not see, such as line breaks and those that turn the direction of a text, are shown as what they are.
// The name cannot change the order of the texts around it.
const unseen = /([\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Co}\p{Cn}\p{Cs}])/u;
export function name(text, limit = 300) {
    if (text === null || text === undefined) return el('span', { className: 'quiet', textContent: '–' });
    const shown = text.length > limit ? text.slice(0, limit) : text;
    const parts = shown.split(unseen).filter(Boolean).map((part) => !unseen.test(part) ? part
        : el('span', { className: 'unseen-mark', textContent: `U+${part.codePointAt(0).toString(16).toUpperCase().padStart(4, '0')}` }));
    return el('bdi', { className: 'name', title: shown === text ? '' : `${text.length} characters` }, ...parts, shown === text ? null : '…');
}

// --- Times: all are those of the server, as the clock of this machine may be wrong ---

export const isTrue = (text) => text === 't';
export const count = (text) => text === null || text === undefined ? '–' : Number(text).toLocaleString('en-GB');
export function long(seconds) {
    if (seconds === null || !Number.isFinite(Number(seconds))) return '–';
    const s = Math.abs(Number(seconds));
    const [unit, size] = s < 90 ? ['s', 1] : s < 5400 ? ['min', 60] : s < 129_600 ? ['h', 3600] : ['days', 86_400];
    return `${s < 10 && unit === 's' && s % 1 ? s.toFixed(1) : Math.round(s / size)} ${unit}`;
}
const parse = (text) => Date.parse(text.replace(' ', 'T').replace(/([+-]\d\d)$/, '$1:00'));
export function when(text, now) {
    if (text === null || text === undefined) return el('span', { className: 'quiet', textContent: '–' });
    const between = (parse(text) - parse(now)) / 1000;
    if (Number.isNaN(between)) return el('span', { textContent: text });
    const words = between < 0 ? `${long(between)} ago` : `in ${long(between)}`;
    return el('time', { dateTime: text.replace(' ', 'T'), title: `${text.slice(0, 19)} UTC`, textContent: words });
}
export const until = (text, now) => text === 'infinity' ? 'with its session' : text === null ? 'with its transaction' : when(text, now);

// --- Tables: rows of a table on a wide screen, cards on a narrow one. The roles stay those of a table ---

// columns: [heading, row => content, class]
export function table(caption, columns, rows, { empty = 'Nothing.' } = {}) {
    if (rows.length === 0) return el('p', { className: 'nothing', textContent: empty });
    return el('table', { role: 'table' },
        el('caption', { className: 'unseen', textContent: caption }),
        el('thead', { role: 'rowgroup' }, el('tr', { role: 'row' }, columns.map(([heading, , className = '']) =>
            el('th', { role: 'columnheader', scope: 'col', className }, heading || el('span', { className: 'unseen', textContent: 'Actions' }))))),
        el('tbody', { role: 'rowgroup' }, rows.map((row) => el('tr', { role: 'row' }, columns.map(([heading, content, className = '']) =>
            el('td', { role: 'cell', className, 'data-label': heading }, el('div', {}, content(row))))))));
}

export const badge = (text, kind = '') => el('span', { className: `badge ${kind}`, textContent: text });
export const link = (text, page, params = {}) => el('a', { href: `#/${page}${Object.keys(params).length ? `?${new URLSearchParams(params)}` : ''}` }, text);
export const note = (text, kind = '', ...more) => el('div', { className: `note ${kind}` }, text, ...more);
export const section = (title, ...content) => el('section', {}, el('h3', { textContent: title }), ...content);

// A statement that somebody runs elsewhere.
export const statement = (sql) => el('div', { className: 'statement' }, el('code', {}, name(sql, 3000)), copy(sql));
function copy(text) {
    return el('button', { type: 'button', className: 'small', textContent: 'Copy', 'aria-label': `Copy ${text.slice(0, 60)}`, 'data-key': `copy ${text}`, onclick: async (event) => {
        const { currentTarget: button } = event;
        try {
            await navigator.clipboard.writeText(text);
        } catch {                                      // not on a loopback address, without https
            getSelection().selectAllChildren(button.previousElementSibling);
            document.execCommand('copy');
        }
        say('Copied.');
    } });
}

let timer;
export function say(text) {
    clearTimeout(timer);
    $('said').replaceChildren(name(text, 1000));
    $('said').hidden = false;
    timer = setTimeout(() => { $('said').hidden = true; }, 8000);
}

// --- The server ---

export class Refused extends Error {
    constructor({ title, code, detail, hint }, status) {
        super(title);
        Object.assign(this, { code, detail, hint, status });
    }
}

// Throws Refused for what the server says. Another error: it cannot be reached now.
export async function call(path, options) {
    const response = await fetch(`api/${path}`, options);
    const answer = await response.json().catch(() => ({ title: `status ${response.status}` }));
    if (response.status >= 500) throw new Error(answer.title);
    if (!response.ok) throw new Refused(answer, response.status);
    return answer;
}

// A view, or why it cannot be read now. The other parts of the page are shown.
export async function read(view, params = {}) {
    try {
        return await call(`read/${view}?${new URLSearchParams(Object.entries(params).filter(([, value]) => value))}`);
    } catch (error) {
        if (error instanceof Refused) return { error, rows: [] };
        throw error;
    }
}

// What a part shows, or why it has nothing.
export function shown(answer, show) {
    if (!answer.error) return show(answer);
    const { message, hint, detail } = answer.error;
    return note(message, 'hidden-part', ...[detail, hint].filter(Boolean).map((text) => el('span', { className: 'more', textContent: text })));
}

// The pages of a list of which the server has sent one.
export function pager({ total, rows }, page, params) {
    const size = 50, at = Number(params.page ?? 0), last = Math.max(Math.ceil(Number(total ?? 0) / size) - 1, 0);
    if (rows.length === 0 && at > 0) return el('p', { className: 'row pager' }, link('First page', page, { ...params, page: '0' }));
    if (last === 0) return null;
    const to = (text, n) => n < 0 || n > last || n === at ? el('span', { className: 'quiet', textContent: text }) : link(text, page, { ...params, page: String(n) });
    return el('nav', { className: 'row pager', 'aria-label': 'Pages of this list' }, to('First', 0), to('Previous', at - 1),
        el('span', { textContent: `${count(at * size + 1)} to ${count(at * size + rows.length)} of ${count(total)}` }), to('Next', at + 1), to('Last', last));
}
