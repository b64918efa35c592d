// Texts as lines: what has changed between two of them, and what two people have made of one.

// The pairs of equal lines of a longest common part, as a Map from the index in `a` to that in `b`.
function matches(a, b) {
    const pairs = new Map();
    let start = 0, endA = a.length, endB = b.length;
    while (start < endA && start < endB && a[start] === b[start]) { pairs.set(start, start); start++; }
    while (endA > start && endB > start && a[endA - 1] === b[endB - 1]) pairs.set(--endA, --endB);
    const n = endA - start, m = endB - start;
    if (n * m === 0 || n * m > 4_000_000) return pairs; // very long: one change
    const width = m + 1, length = new Uint32Array((n + 1) * width);
    for (let i = n - 1; i >= 0; i--) {
        for (let j = m - 1; j >= 0; j--) {
            length[i * width + j] = a[start + i] === b[start + j] ? length[(i + 1) * width + j + 1] + 1
                : Math.max(length[(i + 1) * width + j], length[i * width + j + 1]);
        }
    }
    for (let i = 0, j = 0; i < n && j < m;) {
        if (a[start + i] === b[start + j]) pairs.set(start + i++, start + j++);
        else if (length[(i + 1) * width + j] >= length[i * width + j + 1]) i++;
        else j++;
    }
    return pairs;
}

// [{ kind: 'same' | 'removed' | 'added', line }]
export function diff(before, after) {
    const a = before.split('\n'), b = after.split('\n'), pairs = matches(a, b), result = [];
    let j = 0;
    a.forEach((line, i) => {
        if (!pairs.has(i)) return result.push({ kind: 'removed', line });
        while (j < pairs.get(i)) result.push({ kind: 'added', line: b[j++] });
        result.push({ kind: 'same', line });
        j++;
    });
    while (j < b.length) result.push({ kind: 'added', line: b[j++] });
    return result;
}

// Parts of the merged text in their order: { text } where at most one side has changed something, and { base, mine, theirs } where
// both sides have, and not the same. All are arrays of lines.
export function merge(base, mine, theirs) {
    const [o, a, b] = [base, mine, theirs].map((text) => text.split('\n'));
    const inMine = matches(o, a), inTheirs = matches(o, b), parts = [];
    let i = 0, j = 0, k = 0;
    const take = (toI, toJ, toK) => {
        const [was, ours, other] = [o.slice(i, toI), a.slice(j, toJ), b.slice(k, toK)];
        const same = (x, y) => x.length === y.length && x.every((line, n) => line === y[n]);
        if (same(ours, was) || same(ours, other)) parts.push({ text: other });
        else if (same(other, was)) parts.push({ text: ours });
        else parts.push({ base: was, mine: ours, theirs: other });
        [i, j, k] = [toI, toJ, toK];
    };
    for (let line = 0; line < o.length; line++) {
        if (!inMine.has(line) || !inTheirs.has(line)) continue;
        take(line, inMine.get(line), inTheirs.get(line));
        take(line + 1, inMine.get(line) + 1, inTheirs.get(line) + 1);
    }
    take(o.length, a.length, b.length);
    return parts;
}

// The text of the parts; `chosen` has the lines for each conflict, in their order.
export function joined(parts, chosen = []) {
    let conflict = 0;
    return parts.flatMap((part) => part.text ?? chosen[conflict++]).join('\n');
}

export const conflictsOf = (parts) => parts.filter((part) => !part.text);
