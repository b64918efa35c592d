// The page: who edits, the text, what was kept when a lock was lost, the merge, status and history. Nothing is written as HTML: names
// and texts are set as text.

import { conflictsOf, diff, joined, merge } from './merge.js';

const $ = (id) => document.getElementById(id);
function el(tag, props = {}, ...children) {
    const element = Object.assign(document.createElement(tag), props);
    element.append(...children);
    return element;
}
const button = (text, onclick, props = {}) => el('button', { type: 'button', textContent: text, onclick, ...props });
const nameOf = (holder) => holder?.replace(/\/[^/]*$/, '') ?? 'Somebody';
const isOurs = (holder) => nameOf(holder) === user;    // of this tab, or of another one
const person = (holder) => el('bdi', { className: 'person', textContent: holder === me() ? 'You' : isOurs(holder) ? 'You, in another tab,' : nameOf(holder) });
const say = (text) => { $('spoken').textContent = text; };

// --- Who we are: a user, and a tab ---

const query = new URLSearchParams(location.search);
const newTab = () => sessionStorage.tab = Array.from(crypto.getRandomValues(new Uint8Array(4)), (byte) => byte.toString(16).padStart(2, '0')).join('');
let tab = sessionStorage.tab ?? newTab();
const user = query.get('user')?.trim() ?? '';
const me = () => `${user}/${tab}`;

// A duplicated tab has a copy of our number. It takes another one, as two tabs of one user are two holders. A page that is loaded again
// waits until the page before it is gone.
async function ownTab() {
    const isFree = () => new Promise((found) => {
        navigator.locks.request(`tab ${tab}`, { signal: AbortSignal.timeout(1000) }, () => { found(true); return new Promise(() => {}); }).catch(() => found(false));
    });
    while (navigator.locks && !await isFree()) tab = newTab();
}

class Refused extends Error {
    constructor(status, answer) {
        super(answer.title ?? `status ${status}`);
        Object.assign(this, answer, { name: answer.name ?? 'Refused', status });
    }
}

// Throws Refused for an answer below 500. An answer of 500 or more, or none, is a server that cannot be reached now.
async function call(method, path, body, options = {}) {
    let response, answer;
    try {
        response = await fetch(`/api${path}`, {
            method, body: body && JSON.stringify(body), ...options,
            headers: { 'Content-Type': 'application/json', 'X-User': encodeURIComponent(user), 'X-Tab': tab },
        });
        answer = await response.json();
        if (response.status >= 500) throw new Error(answer.title);
    } catch (error) {
        $('offline').hidden = false;
        throw error;
    }
    $('offline').hidden = true;
    if (!response.ok) throw new Refused(response.status, answer);
    return answer;
}

// What a button does; its errors are shown.
const does = (work) => async (event) => {
    event?.preventDefault();
    try {
        await work(event);
    } catch (error) {
        notice('error', error.message, button('Close', () => dismiss('error')));
    }
};

// --- The state of the page ---

let id = null;                                         // the document that is shown
let row, next = [];                                    // as the server has it
let base = null;                                       // what our text was made from: { title, body, version }; null: we look
let saving = null, timer, lastTouch = 0, merging = false, warned = false;
let documents = [], people = { editing: [], looking: [] };
let takeOverFrom;                                      // whom the question names

const path = (rest = '') => `/documents/${id}${rest}`;
const mine = () => ({ title: $('title').value, body: $('body').value });
const isDirty = () => base !== null && (mine().title !== base.title || mine().body !== base.body);
const lock = () => people.editing.find((each) => each.id === id);
const baseOf = ({ title, body, version }) => ({ title, body, version: String(version) });

// Text that is not saved yet outlives the tab.
const draftKey = () => `draft ${user} ${id}`;
const draft = () => JSON.parse(localStorage.getItem(draftKey()) ?? 'null');
const keepDraft = () => { if (isDirty()) localStorage.setItem(draftKey(), JSON.stringify({ ...mine(), base })); };
const dropDraft = () => localStorage.removeItem(draftKey());

function notice(name, text, ...buttons) {
    dismiss(name);
    $('notices').append(el('div', { id: `notice-${name}`, className: 'banner' }, el('p', { textContent: text, dir: 'auto' }), el('div', { className: 'row' }, ...buttons)));
    say(text);
}
const dismiss = (name) => $(`notice-${name}`)?.remove();

// --- Editing ---

function setText({ title, body }) {
    if ($('title').value !== title) $('title').value = title;
    if ($('body').value !== body) $('body').value = body;
}

function showMode() {
    const editing = base !== null && !merging;
    $('article').classList.toggle('editing', editing);
    $('title').readOnly = $('body').readOnly = !editing;
    showPeople();
    showStatus();
}

async function edit(takeOver, from) {
    const answer = await call('POST', path('/edit'), { takeOver, from });
    for (const name of ['kept', 'lost', 'error']) dismiss(name);
    begin(answer.row);
}

// We hold the row: what was kept is merged with what it is now.
function begin(now) {
    const kept = draft();
    row = now;
    base = baseOf(now);
    warned = false;
    setText(base);
    if (kept) mergeWith(kept, now);
    showMode();
    if (!merging) $('body').focus();
    if (kept && !merging) void save();
}

// The lock is gone. Text that is not saved is kept.
function lose(text) {
    keepDraft();
    stopEditing();
    notice('lost', text, button('Close', () => dismiss('lost')));
    showDraft();
    read().catch(() => {});                            // offline, or deleted: what is shown stays
}

function stopEditing() {
    clearTimeout(timer);
    base = null;
    merging = false;
    $('merge').hidden = true;
    dismiss('asked');
    dismiss('soon');
    $('saved').textContent = '';
    showMode();
}

function showDraft() {
    if (base || !draft()) return dismiss('kept');
    if ($('notice-kept')) return;
    notice('kept', 'Your last changes are not saved. They are kept in this browser.',
        button('Edit and merge them', does(() => edit()), { className: 'primary' }),
        button('Discard them', () => { dropDraft(); dismiss('kept'); }));
}

// An autosave, one at a time. Whoever calls it waits until all of the text is saved, or is refused.
function save() {
    clearTimeout(timer);
    return saving ??= (async () => {
        while (isDirty() && !merging) {
            const sent = mine();
            $('saved').textContent = 'Saving…';
            const { version } = await call('PUT', path(), { ...sent, version: base.version, keep: true });
            if (!base) return;
            base = { ...sent, version };
        }
        if (!base || merging) return;
        dropDraft();
        $('saved').textContent = 'Saved';
    })().catch(refused).finally(() => { saving = null; });
}

function refused(error) {
    if (!base) return;
    if (!(error instanceof Refused)) {                 // offline: again, until it is saved
        $('saved').textContent = 'Not saved yet';
        timer = setTimeout(() => void save(), 2000);
    } else if (error.name === 'StaleVersion' && error.current) {
        keepDraft();
        begin({ ...error.current, version: error.version });
    } else if (error.name === 'MarkerLost' || error.name === 'MarkerHeld') {
        lose(error.holder ? `${nameOf(error.holder)} edits this document now. What you have typed since your last save is kept.`
            : 'Your lock has ended. What you have typed since your last save is kept.');
    } else if (error.name === 'NotFound') {
        lose('This document was deleted. Your text is kept in this browser.');
    } else {
        notice('error', error.message, button('Close', () => dismiss('error')));
    }
}

const done = does(async () => {
    await save();
    if (!base || isDirty()) return;
    await call('POST', path('/release'), {});
    stopEditing();
    await read();
});

function active() {
    if (!base || performance.now() < lastTouch + 2000) return;
    lastTouch = performance.now();
    call('POST', path('/touch'), {}).catch(() => {});
}

// --- Merging ---

function mergeWith(kept, now) {
    const parts = { title: merge(kept.base.title, kept.title, now.title), body: merge(kept.base.body, kept.body, now.body) };
    const conflicts = [...conflictsOf(parts.title), ...conflictsOf(parts.body)];
    if (conflicts.length === 0) {
        setText({ title: joined(parts.title), body: joined(parts.body) });
        if (kept.base.version !== base.version) notice('merged', 'Your changes and those of others were in different places. They are merged.', button('Close', () => dismiss('merged')));
        return;
    }
    merging = true;
    const side = (heading, lines) => el('div', {}, el('h4', { textContent: heading }), el('pre', { textContent: lines.join('\n') || '(nothing)', dir: 'auto' }));
    const fields = conflicts.map((conflict, i) => {
        const choice = (value, text) => el('label', {}, el('input', { type: 'radio', name: `conflict-${i}`, value, checked: value === 'mine' }), text);
        return el('fieldset', {}, el('legend', { textContent: `Conflict ${i + 1} of ${conflicts.length}` }),
            el('div', { className: 'sides' }, side('Before', conflict.base), side('Yours', conflict.mine), side('Saved meanwhile', conflict.theirs)),
            choice('mine', 'Use mine'), choice('theirs', 'Use theirs'), choice('both', 'Use both'));
    });
    const form = el('form', { onsubmit: does(async () => {
        const chosen = conflicts.map((conflict, i) => {
            const which = form.elements[`conflict-${i}`].value;
            return which === 'both' ? [...conflict.theirs, ...conflict.mine] : conflict[which];
        });
        const titles = chosen.splice(0, conflictsOf(parts.title).length);
        merging = false;
        $('merge').hidden = true;
        setText({ title: joined(parts.title, titles).replaceAll('\n', ' '), body: joined(parts.body, chosen) });
        showMode();
        $('body').focus();
        await save();
    }) }, ...fields, el('button', { className: 'primary', textContent: 'Merge and save' }));
    $('merge').replaceChildren(el('h3', { id: 'merge-title', tabIndex: -1, textContent: 'You and somebody else have changed the same lines' }),
        el('p', { textContent: 'What only one of you has changed is merged already. Choose for the rest.' }), form);
    $('merge').hidden = false;
    $('merge-title').focus();
}

// --- What is shown ---

function showList() {
    const focused = document.activeElement?.dataset?.document;
    $('list').replaceChildren(...documents.map((each) => {
        const held = people.editing.find((one) => one.id === each.id);
        const item = button('', () => void openDocument(each.id), { dir: 'auto' });
        item.dataset.document = each.id;
        if (each.id === id) item.setAttribute('aria-current', 'page');
        item.append(each.title, el('small', {}, each.status, ...held ? [' · ', el('bdi', { textContent: held.holder === me() ? 'you' : nameOf(held.holder) }), held.holder === me() ? ' edit' : ' edits'] : []));
        return el('li', {}, item);
    }));
    if (focused) $('list').querySelector(`[data-document="${focused}"]`)?.focus();
}

function showPeople() {
    const held = lock(), looking = people.looking.filter((each) => each.id === id && each.holder !== held?.holder);
    const parts = [];
    if (held) {
        const holder = person(held.holder);
        holder.classList.add('holds');
        parts.push(holder, isOurs(held.holder) ? ' edit' : ' edits', ' for ', el('span', { id: 'left', role: 'timer', ariaLive: 'off' }));
        if (held.reason) parts.push(' (', el('q', { textContent: held.reason, dir: 'auto' }), ')');
    } else {
        parts.push('Nobody edits');
    }
    if (looking.length) parts.push(' · ', ...looking.map((each) => person(each.holder)), looking.length === 1 && !isOurs(looking[0].holder) ? ' looks' : ' look');
    $('people').replaceChildren(...parts);
    showActions(held);
    countDown();
}

function showActions(held) {
    const wanted = base ? 'editing' : held && held.holder !== me() ? `held ${held.holder}` : 'free';
    if ($('actions').dataset.shown === wanted) return; // the focus stays
    $('actions').dataset.shown = wanted;
    $('actions').replaceChildren(...base ? [button('Done', done, { className: 'primary' })]
        : wanted === 'free' ? [button('Edit', does(() => edit()), { className: 'primary' })]
            : [button(`Ask ${nameOf(held.holder)} for it`, does(async () => {
                await call('POST', path('/ask'), { holder: held.holder });
                notice('error', `${nameOf(held.holder)} was asked.`, button('Close', () => dismiss('error')));
            })), button('Take over…', () => {
                $('take-over-from').textContent = `${nameOf(held.holder)} edits this document. After a takeover, ${nameOf(held.holder)} cannot save any more. Text that is not saved yet stays in that browser.`;
                $('reason').value = '';
                takeOverFrom = held.holder;
                $('take-over').showModal();
            })]);
}

function countDown() {
    const held = lock();
    if (!held || !$('left')) return;
    const seconds = Math.max(0, Math.ceil((held.deadline - performance.now()) / 1000));
    $('left').textContent = `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, '0')}`;
    if (!base || held.holder !== me()) return;
    if (seconds > 15) { warned = false; dismiss('soon'); }
    else if (!warned) {
        warned = true;
        notice('soon', 'Your lock ends in 15 seconds, as you have not typed for a while.', button('Keep editing', () => { lastTouch = 0; active(); dismiss('soon'); }));
    }
}

function showStatus() {
    if (!row) return;
    const held = lock(), blocked = held && held.holder !== me();
    $('status').replaceChildren(el('span', { className: 'state', textContent: row.status }), ...next.flatMap(({ state, allowed, reason }) => {
        const why = blocked ? `${nameOf(held.holder)} edits` : allowed ? null : reason;
        return [button(`→ ${state}`, does(async () => {
            await save();
            const from = row.status, answer = await call('POST', path('/status'), { from, to: state });
            ({ row, next } = answer);
            if (base) base.version = String(row.version);
            showStatus();
            say(`The status is ${row.status}.`);
        }), { disabled: Boolean(why) || merging }), ...why ? [el('span', { className: 'quiet', textContent: why })] : []];
    }));
}

async function showHistory() {
    const shown = id, entries = await call('GET', path('/history'));
    if (shown !== id) return;
    if ($('history').dataset.document !== String(id)) $('history').replaceChildren();
    $('history').dataset.document = id;
    // What is shown stays, as somebody may be reading it. Newer entries are put before it.
    const newest = BigInt($('history').firstElementChild?.dataset.entry ?? 0);
    $('history').prepend(...entries.filter((entry) => BigInt(entry.id) > newest).map((entry) => {
        const details = el('div');
        const what = entry.operation === 'insert' ? 'created it' : `changed ${entry.changed?.filter((column) => column !== 'version').join(', ')}`;
        const compare = button('What changed', does(async () => {
            const open = compare.getAttribute('aria-expanded') === 'true';
            compare.setAttribute('aria-expanded', String(!open));
            details.replaceChildren(...open ? [] : changesOf(await call('GET', path(`/history/${entry.id}`))));
        }));
        compare.setAttribute('aria-expanded', 'false');
        const restore = button('Restore', does(async () => {
            if (base) {                                // our own editor: it is saved as what we type
                const { row: old } = await call('GET', path(`/history/${entry.id}`));
                setText(old);
                return save();
            }
            await call('POST', path('/revert'), { to: entry.version, expected: row.version });
            await read();
        }));
        for (const each of [compare, restore]) each.ariaLabel = `${each.textContent}: version ${entry.version}`;
        const item = el('li', {}, el('div', { className: 'row' },
            el('span', {}, el('bdi', { textContent: entry.writer ? nameOf(entry.writer) : 'Somebody' }), ` ${what}`,
                el('small', { textContent: `version ${entry.version} · ${new Date(entry.changed_at).toLocaleString()}` })),
            el('span', { className: 'row' }, compare, restore)), details);
        item.dataset.entry = entry.id;
        return item;
    }));
}

function changesOf({ before, row: after }) {
    return ['title', 'status', 'body'].filter((column) => !before || column in before).map((column) => el('div', {}, el('strong', { textContent: column }),
        el('pre', { dir: 'auto' }, ...diff(before ? before[column] : '', after[column]).flatMap(({ kind, line }, i, all) => {
            if (kind === 'added') return [el('ins', { textContent: `+ ${line}` })];
            if (kind === 'removed') return [el('del', { textContent: `− ${line}` })];
            const near = [i - 2, i - 1, i + 1, i + 2].some((n) => all[n] && all[n].kind !== 'same');
            return near ? [`  ${line}\n`] : [];
        }))));
}

// --- The server's side ---

async function read() {
    const wanted = id, answer = await call('GET', path());
    if (wanted !== id) return;
    if (!base) {
        ({ row, next } = answer);
        setText(row);
        showDraft();
    } else {
        next = answer.next;
        row = { ...row, status: answer.state };
    }
    $('shown-title').textContent = document.title = answer.row.title || 'Without a title';
    showMode();
    await showHistory();
}

async function readList() {
    documents = await call('GET', '/documents');
    showList();
    const listed = documents.find((each) => each.id === id);
    if (listed && listed.version !== String(row?.version)) await read();
    else if (!listed && row) {
        row = undefined;
        lose('This document was deleted.');
    }
}

async function openDocument(wanted) {
    if (base) await done();
    if (base) return;
    id = wanted;
    row = undefined;
    $('notices').replaceChildren();
    history.replaceState(null, '', `?${new URLSearchParams({ user, document: id })}`);
    $('nothing').hidden = true;
    $('article').hidden = false;
    listen();
    showList();
    await does(read)();
    if (innerWidth < 800) $('document').focus();
}

let events;
function listen() {
    events?.close();
    events = new EventSource(`/api/events?${new URLSearchParams({ user: encodeURIComponent(user), tab, document: id ?? '' })}`);
    const on = (name, work) => events.addEventListener(name, (event) => work(JSON.parse(event.data) ?? {}));
    events.onerror = () => { $('offline').hidden = false; };
    events.onopen = () => { $('offline').hidden = true; readList().catch(() => {}); if (isDirty()) void save(); };
    on('changed', () => readList().catch(() => {}));
    on('people', (now) => {
        people = now;
        for (const each of people.editing) each.deadline = performance.now() + each.left;
        showList();
        showPeople();
        showStatus();
    });
    const ours = (work) => (data) => { if (Number(data.id) === id) work(data); };
    on('taken', ours(({ by }) => base && lose(`${nameOf(by)} has taken over. What you have typed since your last save is kept.`)));
    on('lost', ours(() => base && lose('Your lock has ended, as you have not typed for a while. What is not saved is kept.')));
    on('yours', ours(({ from }) => { say(`${nameOf(from)} has handed the document over to you.`); does(() => edit())(); }));
    on('asked', ours(({ by }) => base && notice('asked', `${nameOf(by)} asks for this document.`,
        button('Save and hand over', does(async () => {
            await save();
            if (!base || isDirty()) return;
            await call('POST', path('/hand-over'), { to: by });
            stopEditing();
        }), { className: 'primary' }),
        button('Not now', () => dismiss('asked')))));
}

$('text').addEventListener('submit', (event) => event.preventDefault());
$('text').addEventListener('input', () => {
    keepDraft();
    $('saved').textContent = '';
    clearTimeout(timer);
    timer = setTimeout(() => void save(), 800);
});
for (const event of ['keydown', 'pointerdown']) $('text').addEventListener(event, active);
$('take-over').querySelector('form').onsubmit = does(async () => { $('take-over').close(); await edit($('reason').value, takeOverFrom); });
$('cancel').onclick = () => $('take-over').close();
$('new').onsubmit = does(async () => {
    const { id: made } = await call('POST', '/documents', { title: $('new-title').value });
    $('new-title').value = '';
    await readList();
    await openDocument(made);
});
$('who').onsubmit = (event) => { event.preventDefault(); location.search = new URLSearchParams({ user: $('user').value, ...id ? { document: id } : {} }); };
addEventListener('online', () => readList().catch(() => {}));
addEventListener('pagehide', () => { if (base) { keepDraft(); if (!isDirty()) void call('POST', path('/release'), {}, { keepalive: true }).catch(() => {}); } });
setInterval(countDown, 500);

await ownTab();
$('user').value = user;
if (!user) $('user').focus();
else if (Number(query.get('document'))) void openDocument(Number(query.get('document')));
else listen();
