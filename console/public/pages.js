// The pages: which views each reads, and how it shows them.

import { badge, count, el, isTrue, link, long, name, note, pager, read, section, shown, statement, table, until, when } from './lib.js';
import { hot } from './hot.js';

const kindNames = {
    lease: 'Lease', permit: 'Permit', key_lock: 'Key lock', applock: 'Application lock', idempotency_claim: 'Claim', row_marker: 'Row', reservation: 'Reservation',
    row: 'Row',
};
const kindName = (kind) => kindNames[kind] ?? kind;
const search = ['q', 'Search'];
const tableName = ({ rel }) => name(rel);
const many = (n, one, more = `${one}s`) => `${count(n)} ${Number(n) === 1 ? one : more}`;

// --- Actions: shown where this console allows them and the role may ---

const ask = (text, detail, key) => el('button', { type: 'button', className: 'small', textContent: text, 'data-key': `${text} ${key}`,
    onclick: () => document.dispatchEvent(new CustomEvent('act', { detail })) });
const may = (state, right) => state.actions && isTrue(state[right]) && !isTrue(state.standby);

function breakLease(state, { name: key, holder, since, pinned }) {
    if (!may(state, 'may_break') || key === null) return null;
    return ask('Break', { action: 'break', title: 'Break a lease', button: 'Break', body: { key, holder, since },
        about: [name(holder), ' loses ', name(key), ' at once, and the next waiter gets it. The holder can no longer commit under it.'],
        fields: pinned ? [{ id: 'terminate', label: 'End the sessions that have asserted it. Their transactions are rolled back.', checkbox: true }] : [] }, `${key} ${holder}`);
}
const rowActions = (state, { relid, rel, name: key, holder }) => key === null || relid === null || holder === null ? [] : [
    may(state, 'may_release') && ask('Release', { action: 'release', title: 'Release a row', button: 'Release', body: { relid, key, holder },
        about: [name(holder), ' loses the row ', name(key), ' of ', name(rel), '. What was not saved stays in the editor of the holder, and cannot be saved.'] }, `${relid} ${key}`),
    may(state, 'may_take_over') && ask('Take over', { action: 'take-over', title: 'Take a row over', button: 'Take over', body: { relid, key, holder },
        about: ['Another holder gets the row ', name(key), ' of ', name(rel), ' from ', name(holder), '.'], fields: [{ id: 'to', label: 'New holder' }] }, `${relid} ${key}`)];

// --- Overview ---

const overview = {
    title: 'Overview',
    about: 'What needs somebody now, and what is held.',
    reads: () => ['attention', 'kinds', 'usage', 'sweeper'].map((view) => read(view)),
    show([attention, kinds, usage, sweeper], _, state) {
        const cards = shown(kinds, ({ rows }) => el('ul', { className: 'cards' }, rows.length ? rows.map(({ kind, holds, unread }) =>
            el('li', {}, link(el('span', {}, el('b', { textContent: count(holds) }), ` ${kindName(kind)}${Number(holds) === 1 ? '' : 's'}`), 'holds', { kind }),
                Number(unread) ? el('span', { className: 'quiet', textContent: `${many(unread, 'table')} not read` }) : null))
            : el('li', { className: 'quiet', textContent: 'Nothing is held.' })));
        return [
            section('Needs somebody', shown(attention, ({ rows: [row] }) => needs(row, sweeper.rows[0]))),
            section('Held', cards),
            section('Room', shown(usage, ({ rows }) => rooms(rows))),
            section('Sweeper', shown(sweeper, ({ rows: [row], now }) => sweeps(row, now, isTrue(state.preloaded)))),
            section('Hidden from this role', ...hidden(state)),
        ];
    },
};

function needs(row, sweeper) {
    const items = [
        [row.broken, 'bad', () => `${many(row.broken, 'table or setting is', 'tables or settings are')} not protected as asked`, 'guards', { severity: 'broken' }],
        [row.waiting, Number(row.longest) > 30 ? 'bad' : '', () => `${many(row.waiting, 'session waits', 'sessions wait')}, the longest for ${long(row.longest)}`, 'waiting', {}],
        [row.full_limits, 'bad', () => `${many(row.full_limits, 'limit is', 'limits are')} more than 80 % full`, 'stuck', {}],
        [row.pinned, 'bad', () => `${many(row.pinned, 'lease is', 'leases are')} kept by a transaction that does not end`, 'stuck', {}],
        [row.abandoned, '', () => `${many(row.abandoned, 'long lease belongs', 'long leases belong')} to roles without a session`, 'stuck', {}],
        [sweeper && (sweeper.state === 'off' || sweeper.last_error || isTrue(sweeper.overdue)) ? 1 : 0, 'bad',
            () => `The sweeper ${sweeper.state === 'off' ? 'is off' : sweeper.last_error ? 'fails' : 'is late'}`, 'stuck', {}],
        [row.markers, 'bad', () => `${many(row.markers, 'expired row lock was', 'expired row locks were')} not released`, 'stuck', {}],
        [row.counters, 'bad', () => `${many(row.counters, 'counter is', 'counters are')} not folded`, 'stock', {}],
        [row.reservations, '', () => `${many(row.reservations, 'reservation is', 'reservations are')} older than an hour`, 'stock', {}],
        [row.risks, '', () => `${many(row.risks, 'risk was', 'risks were')} found`, 'guards', { severity: 'risk' }],
    ].filter(([n]) => Number(n) > 0);
    if (items.length === 0) return el('p', { className: 'nothing', textContent: 'Nothing.' });
    return el('ul', { className: 'needs' }, items.map(([, kind, text, page, params]) => el('li', { className: kind }, link(text(), page, params))));
}

const rooms = (rows) => table('Limits', [
    ['Limit', ({ what }) => what],
    ['Role', ({ role }) => role === null ? 'all roles' : name(role)],
    ['Used', ({ used, of, what }) => el('span', { className: 'row' }, el('meter', { min: 0, max: Number(of), high: 0.8 * of, value: Number(used), 'aria-label': what }), `${count(used)} of ${count(of)}`)],
], rows.slice(0, 8), { empty: 'Nothing is in shared memory.' });

const sweeps = (row, now, preloaded) => !row ? el('p', { className: 'nothing', textContent: preloaded ? 'It has not run in this database.' : 'There is none.' }) : [
    el('p', {}, badge(row.state, row.state === 'off' ? 'bad' : ''), ` ${many(row.runs, 'run')}, ${count(row.released)} released, ${count(row.failed)} failed. Last run: `, when(row.last_run, now), '.'),
    row.last_error && note(['Its last error: ', name(row.last_error)], 'bad'),
    row.state === 'off' && [note('To turn it on, as a superuser:', '', statement('ALTER SYSTEM RESET interlock.sweeper; SELECT pg_reload_conf()'))]].flat().filter(Boolean);

// What another role would see, and the statement that shows it to this one.
function hidden(state) {
    const me = state.role.replaceAll("'", "''"), quoted = `"${state.role.replaceAll('"', '""')}"`;
    const parts = [
        [!isTrue(state.reads_stats), 'What other roles hold, use, wait for and did, and tables on which this role has no privilege', `GRANT pg_monitor TO ${quoted}`],
        [!isTrue(state.reads_sweeper), 'The sweeper', `SELECT interlock.grant_access('monitor', '${me}')`],
        [!isTrue(state.reads_claims), 'Claims of idempotency keys', `SELECT interlock.grant_access('monitor', '${me}')`],
        [Number(state.unreadable) > 0, `Locked rows, or counters, of ${many(state.unreadable, 'table')}`, `GRANT SELECT ON ... TO ${quoted}`],
        [Number(state.filtered) > 0, `Locked rows, or counters, of ${many(state.filtered, 'table')} with row security`],
        [true, 'Entries of the log of writes for tables of other owners'],
    ].filter(([is]) => is);
    return [el('ul', { className: 'hidden-list' }, parts.map(([, text, sql]) => el('li', {}, `${text}.`, sql && statement(sql))))];
}

// --- Holds ---

const holds = {
    title: 'Holds',
    about: 'Everything that is held now. A row or a cart keeps no session waiting: its writers get an error.',
    filters: [['kind', 'Kind', [['', 'All'], ...['lease', 'permit', 'key_lock', 'applock', 'idempotency_claim', 'row_marker', 'reservation'].map((kind) => [kind, kindNames[kind]])]],
        ['sort', 'First', [['', 'most waiters'], ['oldest', 'oldest'], ['ends', 'ends soon'], ['name', 'name']]], search],
    reads: (params) => [read('held', params)],
    show: ([held], params, state) => shown(held, ({ rows, now, total }) => [
        el('p', { className: 'quiet', textContent: many(total ?? 0, 'hold') }),
        table('Holds', [
            ['Kind', ({ kind, mode }) => [badge(kindName(kind)), mode && mode !== 'exclusive' && mode !== 'permit' ? ` ${mode}` : '']],
            ['Name', (row) => row.note !== null ? [tableName(row), el('span', { className: 'more' }, 'not read: ', name(row.note))] : [row.rel && [tableName(row), ' '], name(row.name)].flat()],
            ['Holder', ({ holder, role, pid }) => [name(holder), el('span', { className: 'more' }, role && ['role ', name(role)], role && pid && ', ', pid && `process ${pid}`)]],
            ['Since', ({ since }) => when(since, now)],
            ['Ends', ({ expires_at, note }) => note === null ? until(expires_at, now) : ''],
            ['Waiters', ({ waiters }) => Number(waiters) > 0 ? link(count(waiters), 'waiting') : count(waiters), 'number'],
            ['', (row) => row.kind === 'lease' || row.kind === 'permit' ? breakLease(state, row) : row.kind === 'row_marker' ? [...rowActions(state, row), historyOf(row)] : null, 'buttons'],
        ], rows, { empty: params.q || params.kind ? 'No hold matches.' : 'Nothing is held.' }),
        pager(held, 'holds', params)]),
};
const historyOf = ({ relid, name: key }) => key === null ? null : link('History', 'history', { relid, key });

// --- Waiting: chains, from their heads ---

const waiting = {
    title: 'Waiting',
    about: 'Who waits behind whom. At the top of each chain is the session or hold that waits for nobody: end that one, not those who wait.',
    reads: () => [read('waiting')],
    show: ([answer]) => shown(answer, ({ rows, now, total }) => rows.length === 0 ? el('p', { className: 'nothing', textContent: 'Nobody waits.' }) : [
        Number(total) > rows.length && note(`${count(rows.length)} of ${count(total)} waits are shown.`),
        ...chains(rows).map(([front, row]) => el('section', { className: 'chain' }, headOf(row, now), el('ul', { className: 'tree' }, behind(front, rows, now, new Set([front]), new Set()))))]),
};
const blocker = ({ blocked_by, blocked_by_holder, name }) => blocked_by ?? `${blocked_by_holder} ${name}`;
const waitsFor = (front, rows) => rows.filter((row) => blocker(row) === front);
// What stands in front of all, with one who waits for it: a process, or a hold without a session. Those of a circle have nobody in front.
function chains(rows) {
    const waits = new Set(rows.map(({ pid }) => pid)), fronts = new Map(), reached = new Set();
    const reach = (front) => {
        for (const { pid } of waitsFor(front, rows)) if (!reached.has(pid)) reach(pid, reached.add(pid));
    };
    const begin = (row, front) => {
        if (!fronts.has(front)) reach(front, fronts.set(front, row));
    };
    for (const row of rows) if (!waits.has(blocker(row))) begin(row, blocker(row));
    for (const row of rows) if (!reached.has(row.pid)) begin(row, blocker(row));
    return [...fronts];
}
// path: those in front. A session that waits for several is opened once.
function behind(front, rows, now, path, opened) {
    return waitsFor(front, rows).map((row) => {
        const isCircle = path.has(row.pid), next = isCircle || opened.has(row.pid) ? [] : behind(row.pid, rows, now, new Set(path).add(row.pid), opened.add(row.pid));
        return el('li', {}, el('div', { className: 'wait' }, name(row.holder ?? 'no name'), el('span', { className: 'quiet', textContent: ` process ${row.pid}` }), ' waits for ',
            badge(kindName(row.kind)), ' ', name(row.name), isCircle ? [' ', badge('circle', 'bad')] : el('span', { className: 'quiet' }, ' · ', when(row.since, now))),
        next.length > 0 && el('ul', {}, next));
    });
}
function headOf(row, now) {
    if (isTrue(row.is_circle)) return el('div', { className: 'head bad' }, badge('circle', 'bad'), ' These sessions wait for each other. End one of them: ', statement(`SELECT pg_terminate_backend(${row.blocked_by ?? row.pid})`));
    return el('div', { className: 'head' }, el('p', {}, name(row.blocked_by_holder ?? 'no name'), el('span', { className: 'quiet' }, row.blocked_by ? ` process ${row.blocked_by}` : '',
        row.blocked_by_role ? [', role ', name(row.blocked_by_role)] : null, row.blocked_until && row.blocked_until !== 'infinity' ? [', until ', when(row.blocked_until, now)] : null)),
    row.depth === '1' ? el('p', { className: 'activity' }, name(row.head_activity)) : null,
    row.blocked_by ? statement(`SELECT pg_terminate_backend(${row.blocked_by})`) : row.kind === 'lease' || row.kind === 'permit' ? link('Find the lease', 'holds', { kind: row.kind, q: row.name }) : null);
}

// --- Stuck ---

const stuck = {
    title: 'Stuck',
    about: 'What a program has left behind: leases that nobody releases, claims that nobody finishes, row locks that are past their deadline.',
    filters: [['stale', 'Claims', [['', 'All'], ['1', 'past their deadline']]], ['q', 'Search in claims']],
    reads: ({ stale, q, page }) => [read('pinned'), read('owners'), read('claims', { stale, q, page }), read('expired'), read('sweeper')],
    show: ([pinned, owners, claims, expired, sweeper], params, state) => [
        section('Leases that a transaction keeps', shown(pinned, ({ rows, now }) => table('Pinned leases', [
            ['Lease', ({ key }) => name(key)],
            ['Holder', ({ holder, role }) => [name(holder), el('span', { className: 'more' }, 'role ', name(role))]],
            ['Kept since', ({ pinned_since }) => when(pinned_since, now)],
            ['By processes', ({ pinned_by }) => (pinned_by ?? '').replace(/[{}]/g, '').replaceAll(',', ', ')],
            ['', (row) => breakLease(state, { ...row, name: row.key, pinned: true }), 'buttons'],
        ], rows))),
        section('Leases by role and kind of work', shown(owners, ({ rows, now }) => table('Leases by role', [
            ['Role', ({ role, has_session }) => [name(role), ' ', !isTrue(has_session) && badge('no session', 'warm')]],
            ['First part of the key', (row) => name(row.class)],
            ['Leases', ({ leases }) => count(leases), 'number'],
            ['Longest', ({ ttl }) => long(ttl)],
            ['Last ends', ({ last }) => until(last, now)],
            ['', ({ role, class: first }) => [link('Show', 'holds', { kind: 'lease', q: `${first}` }), breakAll(state, role, first)], 'buttons'],
        ], rows))),
        section('Claims of idempotency keys', shown(claims, ({ rows, now }) => [table('Claims', [
            ['Scope', ({ scope }) => name(scope)],
            ['Key', ({ key }) => name(key)],
            ['Attempt', ({ attempt }) => attempt, 'number'],
            ['Claimed', ({ claimed_at }) => when(claimed_at, now)],
            ['Deadline', ({ deadline, stale }) => [when(deadline, now), ' ', isTrue(stale) && badge('past', 'warm')]],
            ['', (row) => forget(state, row), 'buttons'],
        ], rows, { empty: 'No claim is open.' }), pager(claims, 'stuck', params)])),
        section('Row locks past their deadline', shown(expired, ({ rows, now }) => table('Expired row locks', [
            ['Table', tableName],
            ['Rows', ({ markers }) => count(markers), 'number'],
            ['Oldest deadline', ({ oldest }) => when(oldest, now)],
        ], rows))),
        section('Sweeper', shown(sweeper, ({ rows: [row], now }) => sweeps(row, now, isTrue(state.preloaded)))),
    ],
};
function breakAll(state, role, first) {
    if (!may(state, 'may_break_all')) return null;
    const pattern = `${first.replace(/[\\%_]/g, '\\$&')}%`;
    return ask('Break all', { action: 'break-all', title: 'Break leases', button: 'Break all', body: { pattern, role },
        about: ['All leases of role ', name(role), ' whose key begins with ', name(first), ' end at once. Those that a transaction keeps stay.'] }, `${role} ${first}`);
}
function forget(state, { scope, key, claimed_at, stale }) {
    if (!may(state, 'may_forget')) return null;
    return ask('Forget', { action: 'forget', title: 'Forget a key', button: 'Forget', body: { scope, key, claimed_at, force: !isTrue(stale) },
        about: ['First find out whether the work of ', name(key), ' in ', name(scope), ' was done. Afterwards it can be done again.',
            ...(isTrue(stale) ? [] : [' Its worker may still be at work: it gets an error when it finishes.'])] }, `${scope} ${key}`);
}

// --- Carts and counters ---

const stock = {
    title: 'Carts and counters',
    about: 'What counters have left, and what carts hold of it.',
    filters: [search],
    reads: ({ q, page }) => [read('counters', { q }), read('reservations', { q, page })],
    show: ([counters, reservations], params) => [
        section('Counters', shown(counters, ({ rows, total, now }) => [
            Number(total) > rows.length && el('p', { className: 'quiet', textContent: `The first ${count(rows.length)} of ${count(total)}. Search for others.` }),
            table('Counters', [
                ['Table', tableName], ['Row', ({ key }) => name(key)], ['Column', ({ column_name }) => name(column_name)],
                ['Left', ({ remaining }) => name(remaining), 'number'],
                ['Undecided', ({ undecided }) => name(undecided), 'number'],
                ['Reserved', ({ reserved }) => name(reserved), 'number'],
                ['Not folded', ({ parts, behind }) => [count(parts), behind !== null && Number(behind) > 60 ? badge(`for ${long(behind)}`, 'warm') : ''], 'number'],
                ['Folded', ({ folded_at }) => when(folded_at, now)],
            ], rows, { empty: 'No counter was changed.' })])),
        section('Reservations', shown(reservations, ({ rows, now }) => [table('Reservations', [
            ['Table', tableName], ['Row', ({ key }) => name(key)], ['Column', ({ column_name }) => name(column_name)],
            ['Amount', ({ amount }) => name(amount), 'number'],
            ['Holder', ({ holder, role }) => [name(holder), el('span', { className: 'more' }, 'role ', name(role))]],
            ['Made', ({ reserved_at }) => when(reserved_at, now)],
            ['Ends', ({ expires_at, expired }) => [until(expires_at, now), ' ', isTrue(expired) && badge('past', 'warm')]],
            ['', ({ token }) => token !== null && statement(`SELECT interlock.cancel_reservation(${token})`), 'buttons'],
        ], rows, { empty: 'No cart holds anything.' }), pager(reservations, 'stock', params)])),
    ],
};

// --- Protection ---

const guards = {
    title: 'Protection',
    about: 'What is configured, and what is wrong with it. The statements are for the owner of the table.',
    filters: [['severity', 'Findings', [['', 'All'], ['broken', 'broken'], ['risk', 'risk'], ['tune', 'tune']]], search],
    reads: ({ severity, q, page }) => [read('findings', { severity, q }), read('guards', { q, page })],
    show: ([findings, answer], params) => [
        section('Findings', shown(findings, ({ rows, total }) => [
            Number(total) > rows.length && el('p', { className: 'quiet', textContent: `The first ${count(rows.length)} of ${count(total)}. Search for others.` }),
            rows.length === 0 ? el('p', { className: 'nothing', textContent: 'Nothing was found.' }) : el('ul', { className: 'findings' }, rows.map(({ rel, severity, finding, evidence, advice }) =>
                el('li', {}, el('p', {}, badge(severity, severity === 'broken' ? 'bad' : severity === 'risk' ? 'warm' : ''), ' ', rel ? name(rel) : 'the server', ': ', name(finding, 1000),
                    evidence ? el('span', { className: 'more' }, 'shown by ', name(evidence)) : null), advice && statement(advice)))),
        ])),
        section('Guards', shown(answer, ({ rows }) => [table('Guards', [
            ['Table', tableName], ['Mechanism', ({ mechanism }) => mechanism],
            ['Enforced', ({ enforced }) => isTrue(enforced) ? 'yes' : badge('no', 'bad')],
            ['Settings', ({ settings, relid, mechanism }) => settings === null ? name(null) : settings === '{}' ? 'as by default'
                : el('details', { 'data-key': `settings ${relid} ${mechanism}` }, el('summary', { textContent: 'Settings' }), el('pre', {}, settings))],
            ['Findings', ({ findings: text }) => text ? name(text, 1000) : 'none'],
        ], rows, { empty: 'Nothing is configured, or this role may not see it.' }), pager(answer, 'guards', params)])),
    ],
};

// --- History ---

const history = {
    title: 'History',
    about: 'Who changed a row, and what. The newest change is first.',
    filters: [['relid', 'Table', [['', 'Choose a table']]], ['key', 'Key: a value, or an object as JSON']],
    reads: ({ relid, key, page }) => [read('recorded'), relid && key ? read('history', { relid, key, page }) : Promise.resolve(null)],
    show([recorded, answer], params) {
        if (recorded.error) return shown(recorded);
        const field = document.getElementById('filter-relid'), known = recorded.rows.map(({ relid }) => relid);
        if (field && field.options.length !== known.length + 1) {
            field.replaceChildren(new Option('Choose a table', ''), ...recorded.rows.map(({ relid, rel }) => new Option(rel, relid)));
            field.value = params.relid ?? '';
        }
        if (recorded.rows.length === 0) return el('p', { className: 'nothing', textContent: 'No table with a history is visible to this role.' });
        if (!answer) return el('p', { className: 'nothing', textContent: 'Choose a table, and name a row.' });
        return shown(answer, ({ rows, now }) => [
            rows.length === 0 ? el('p', { className: 'nothing', textContent: 'There is no entry of such a row.' }) : el('ol', { className: 'history' }, rows.map((entry) => change(entry, now))),
            pager(answer, 'history', params)]);
    },
};
function change({ version, changed_at, writer, changed_by, operation, context, columns }, now) {
    return el('li', {}, el('p', {}, badge(operation), ' ', name(writer ?? changed_by), ' ', when(changed_at, now),
        el('span', { className: 'quiet' }, version === null ? '' : ` version ${version}`, writer ? [', role ', name(changed_by)] : null, context ? [', ', name(context)] : null)),
    el('dl', { className: 'diff' }, JSON.parse(columns ?? '[]').map(([column, before, after]) => [
        el('dt', {}, name(column)),
        el('dd', {}, operation === 'insert' ? null : el('del', {}, value(before)), operation === 'delete' ? null : el('ins', {}, value(after)))]).flat()));
}
const value = (text) => text === null ? 'null' : name(text, 4000);

// --- Audit ---

const audit = {
    title: 'Audit',
    about: 'Who broke, forced, forgot, granted and configured what.',
    filters: [['kind', 'Kind', [['', 'All'], ...['break', 'force', 'forget', 'grant', 'configuration'].map((kind) => [kind, kind])]], search],
    reads: (params) => [read('audit', params)],
    show: ([answer], params) => shown(answer, ({ rows, now }) => [table('Audit', [
        ['When', ({ at }) => when(at, now)],
        ['Who', ({ role }) => name(role)],
        ['What', ({ action }) => name(action)],
        ['Of what', ({ table_name, name: key }) => [table_name && name(table_name), ' ', key && name(key)].filter(Boolean)],
        ['Holder', ({ holder }) => name(holder)],
        ['Reason', ({ reason }) => name(reason, 1000)],
        ['Change', ({ before, after, at, action }) => before === null && after === null ? name(null) : el('details', { 'data-key': `${at} ${action}` }, el('summary', { textContent: 'Change' }),
            el('dl', { className: 'diff' }, el('dt', { textContent: 'settings' }), el('dd', {}, before !== null && el('del', {}, name(before, 3000)), after !== null && el('ins', {}, name(after, 3000)))))],
    ], rows, { empty: 'No entry is visible to this role.' }), pager(answer, 'audit', params)]),
};

const writes = {
    title: 'Writes',
    about: 'Writes that the history does not contain, and values that were not stored, or overwrote those of an owner. Owners see those of their tables.',
    filters: [['log', 'Log', [['', 'not in the history'], ['skipped_writes', 'not stored as given'], ['forced_writes', 'forced']]], search],
    reads: (params) => [read('writes', params)],
    show: ([answer], params) => shown(answer, ({ rows, now }) => [table('Writes', [
        ['When', ({ written_at }) => when(written_at, now)],
        ['Table', ({ table_name }) => name(table_name)],
        ['Rows', ({ key, row_count }) => key === null ? count(row_count) : name(key)],
        ['Columns', ({ columns }) => name(columns)],
        ['Writer', ({ writer, written_by }) => [name(writer), el('span', { className: 'more' }, 'role ', name(written_by))]],
        ['What', ({ what, why }) => [badge(what), ' ', why && name(why)].filter(Boolean)],
        ['Values', ({ stored, given }) => stored === null && given === null ? name(null) : el('div', { className: 'diff' }, el('del', {}, name(stored, 3000)), el('ins', {}, name(given, 3000)))],
    ], rows, { empty: 'No entry is visible to this role.' }), pager(answer, 'writes', params)]),
};

export const pages = { overview, holds, waiting, stuck, stock, hot, guards, history, audit, writes };
