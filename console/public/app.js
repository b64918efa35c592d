// The frame: which page is shown, with which filter, and reading it again and again. Its address has all of that, so that it can be sent.

import { $, call, el, isTrue, name, note, Refused, say, statement } from './lib.js';
import { pages } from './pages.js';

let state = {};                                        // what the server says about itself and us
let timer, reading = 0, paused = false, failures = 0, last = '';

const place = () => {
    const [, page = '', query = ''] = /^#\/([a-z]*)\??(.*)$/.exec(location.hash) ?? [];
    return { page: Object.hasOwn(pages, page) ? page : 'overview', params: Object.fromEntries(new URLSearchParams(query)) };
};

// --- The frame ---

let shownPage;
function showPlace({ page, params }) {
    const { title, about, filters = [] } = pages[page];
    for (const [id] of page === shownPage ? filters : []) $(`filter-${id}`).value = params[id] ?? '';
    if (page === shownPage) return;
    if (shownPage) $('main').focus();
    shownPage = page;
    $('content').replaceChildren(el('p', { className: 'quiet', textContent: 'Reading…' }));
    document.title = `${title} · pg_interlock`;
    $('title').textContent = title;
    $('about').textContent = about;
    $('pages').replaceChildren(...Object.entries(pages).map(([id, { title }]) =>
        el('li', {}, el('a', { href: `#/${id}`, textContent: title, ...(id === page && { 'aria-current': 'page' }) }))));
    $('pages').querySelector('[aria-current]').scrollIntoView({ block: 'nearest', inline: 'center' });
    $('filter').hidden = filters.length === 0;
    $('filter').replaceChildren(...filters.map(([id, label, choices]) => {
        const field = choices ? el('select', { id: `filter-${id}`, name: id }, choices.map(([value, text]) => new Option(text, value)))
            : el('input', { id: `filter-${id}`, name: id, type: 'search', autocomplete: 'off', dir: 'auto' });
        field.value = params[id] ?? '';
        return el('div', { className: 'field' }, el('label', { htmlFor: `filter-${id}`, textContent: label }), field);
    }), el('button', { textContent: 'Show' }));
}
$('filter').addEventListener('submit', (event) => {
    event.preventDefault();
    location.hash = `#/${place().page}?${new URLSearchParams([...new FormData($('filter'))].filter(([, value]) => value))}`;
});
$('filter').addEventListener('change', ({ target }) => { if (target.matches('select')) $('filter').requestSubmit(); });

function showWhere() {
    const { database, role, standby, preloaded, library, sql, installed, user } = state;
    $('where').replaceChildren(name(database), ' as ', name(role), ...(user ? [', you are ', name(user)] : []));
    const warnings = [];
    if (isTrue(standby)) warnings.push(note('This server is a standby: it has no leases, and nothing can be changed here. Connect to the primary.', 'warning'));
    if (installed && !isTrue(preloaded)) warnings.push(note('The library is not preloaded: there are no leases, counters of conflicts and limits, and no sweeper.', 'warning',
        statement(`ALTER SYSTEM SET shared_preload_libraries = 'pg_interlock'`), ' adds it, if the list has no other library. Then restart the server.'));
    if (installed && library !== sql) warnings.push(note(`The library is version ${library}, the extension in this database is version ${sql}.`, 'warning', statement('ALTER EXTENSION pg_interlock UPDATE')));
    return warnings;
}

// --- Reading ---

// What somebody is doing is not disturbed: a list that is opened, text that is marked, a question that is answered.
const isBusy = () => $('act').open || document.activeElement?.matches('#main input, #main select') || (!getSelection().isCollapsed && $('main').contains(getSelection().anchorNode));

async function refresh({ moved = false } = {}) {
    clearTimeout(timer);
    const here = place(), mine = ++reading, began = performance.now();
    if (moved) {
        $('content').setAttribute('aria-busy', 'true');
        last = '';
    }
    try {
        state = await call('state');
        const answers = state.installed ? await Promise.all(pages[here.page].reads(here.params)) : [];
        if (mine !== reading) return;
        online();
        if (moved || !isBusy()) show(here, answers);
    } catch (error) {
        if (mine !== reading) return;
        if (error instanceof Refused) $('content').replaceChildren(note(error.message, 'bad'));
        else offline(error);
    }
    const rest = failures ? 2000 : Math.max(5000, 10 * (performance.now() - began));
    if ((!paused || failures) && !document.hidden) timer = setTimeout(refresh, rest);
}

function show({ page, params }, answers) {
    const content = state.installed ? [...showWhere(), ...[pages[page].show(answers, params, state)].flat().filter(Boolean)]
        : (showWhere(), [note(state.title, 'bad', el('span', { className: 'more', textContent: state.hint }))]);
    const fresh = el('div', {}, ...content);
    $('content').removeAttribute('aria-busy');
    if (fresh.textContent === last) return;            // nothing has changed, not even a time
    last = fresh.textContent;
    const focus = document.activeElement?.dataset?.key;
    const opened = new Set([...$('content').querySelectorAll('details[open]')].map(({ dataset }) => dataset.key));
    $('content').replaceChildren(...fresh.childNodes);
    for (const each of $('content').querySelectorAll('[data-key]')) {
        if (each.dataset.key === focus) each.focus({ preventScroll: true });
        if (opened.has(each.dataset.key)) each.open = true;
    }
}

function offline({ message }) {
    failures++;
    $('offline').textContent = `The database cannot be reached: ${message}. What you see is old. The console tries again.`;
    $('offline').hidden = false;
    $('content').classList.add('old');
    $('content').removeAttribute('aria-busy');
}
function online() {
    failures = 0;
    $('offline').hidden = true;
    $('content').classList.remove('old');
}

addEventListener('hashchange', () => {
    if (location.hash === '#main') return;
    showPlace(place());
    scrollTo(0, 0);
    void refresh({ moved: true });
});
document.addEventListener('visibilitychange', () => { if (!document.hidden && !paused) void refresh(); });
$('pause').addEventListener('click', () => {
    paused = !paused;
    $('pause').setAttribute('aria-pressed', String(paused));
    void refresh();
});
document.querySelector('.skip').addEventListener('click', (event) => {
    event.preventDefault();
    $('main').focus();
});

// --- Actions: one question, with a reason ---

let acting;
document.addEventListener('act', ({ detail }) => {
    acting = detail;
    $('act-title').textContent = detail.title;
    $('act-about').replaceChildren(...detail.about);
    $('act-fields').replaceChildren(...(detail.fields ?? []).flatMap(({ id, label, checkbox }) => {
        const input = el('input', { id: `act-${id}`, type: checkbox ? 'checkbox' : 'text', required: !checkbox, maxLength: 300, dir: 'auto', autocomplete: 'off' });
        const text = el('label', { htmlFor: input.id, textContent: label });
        return checkbox ? [el('p', { className: 'check' }, input, text)] : [text, input];
    }));
    $('act-do').textContent = detail.button;
    $('act-error').hidden = true;
    $('reason').value = '';
    $('act').showModal();
});
$('act').querySelector('form').addEventListener('submit', async (event) => {
    event.preventDefault();
    const body = { ...acting.body, reason: $('reason').value };
    for (const { id, checkbox } of acting.fields ?? []) body[id] = checkbox ? $(`act-${id}`).checked : $(`act-${id}`).value;
    $('act-do').disabled = true;
    $('act-error').hidden = true;
    try {
        const { title } = await call(`act/${acting.action}`, { method: 'POST', body: JSON.stringify(body),
            headers: { 'Content-Type': 'application/json', 'X-CSRF-Token': state.token } });
        $('act').close();
        say(title);
        await refresh();
    } catch (error) {
        $('act-error').replaceChildren(...[error.message, error.detail, error.hint].filter(Boolean).map((text) => el('span', { className: 'line' }, name(text, 1000))));
        $('act-error').hidden = false;
    } finally {
        $('act-do').disabled = false;
    }
});
$('act-cancel').addEventListener('click', () => $('act').close());

showPlace(place());
void refresh({ moved: true });
