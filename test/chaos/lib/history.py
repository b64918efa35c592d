"""The checker of histories: what a client that had these answers may not find.

An operation is a dict. "sent" and "answered" are seconds of the machine's monotonic clock, and "answered" is None if its client
does not know whether it was done.

do          what, with these values of its own
acquire     key, token, ttl        a lease was granted
renew       key, token, ttl        until ttl after it was sent
hold        key, token             a client relied on its lease from "answered" to "sent"
release     key, token             the client does not use it any more; recorded before the call
mark        key, token, ttl        a marker was acquired; its token is the id of the operation
unmark      key, token             as release
write       op, key, token         a row of the table work, in a transaction that asserted the lease
save        op, key, version       a row got this version
transition  op, key, state         a row left this state
edit        op, key                the holder of a marker saved the row
pay         op                     the claim of this idempotency key is completed, here or by another client
once        op                     the same by run_once
job         op, key                a row of the queue was deleted, with its effect
sell        op                     what is sold is confirmed, or taken
clock                              the clock of the servers was set

"stored" is what the tables have in the end:

effects     (op, kind) of all operations whose effects are there
work        (key, n, token), in which n counts the writes of a key
versions    (key, version) of each row that was saved; history: (key, version, op) of its entries
jobs        how many there were, with the keys from 1; jobs_left: the keys of the queue
stock       (key, stocked, left, reserved, sold); books: (key, difference) of what escrow_check finds
"""

import bisect
import collections
import itertools

EFFECTS = ("write", "save", "transition", "edit", "pay", "once", "job", "sell")


def violations(operations, stored):
    """Descriptions of what is wrong, in a list for each kind."""
    return {
        "leases granted twice": overlaps(operations, ("acquire", "renew", "hold"), "release"),
        "markers granted twice": overlaps(operations, ("mark",), "unmark", clock_steps(operations)),
        "tokens that go back": tokens_back(operations),
        "writes under a token that is over": stale_writes(stored["work"]),
        "acknowledged writes lost": lost(operations, stored["effects"]),
        "effects twice": repeated((op for op, _ in stored["effects"]), "is stored {} times"),
        "versions given twice": repeated(
            ((a["key"], a["version"]) for a in acknowledged(operations, "save")), "was given to {} saves"
        ),
        "states left twice": repeated(
            ((a["key"], a["state"]) for a in acknowledged(operations, "transition")), "was left by {} transitions"
        ),
        "changes without one entry of history": without_entry(operations, stored),
        "jobs lost or done twice": jobs(stored),
        "stock that does not add up": stock(stored),
    }


def acknowledged(operations, *kinds):
    return [a for a in operations if a["do"] in kinds and a["answered"] is not None]


def clock_steps(operations):
    return sorted(a["sent"] for a in operations if a["do"] == "clock")


def overlaps(operations, grants, release, clock=()):
    """Two clients that both had reason to believe that they hold a key. A client believes so from an answer until the time to
    live after it sent the call, or until it sent the release, whether or not that was answered. What counts by the clock of the
    server ends when that is set."""
    released = {}
    for a in operations:
        if a["do"] == release:
            name = (a["key"], a["token"])
            released[name] = min(a["sent"], released.get(name, a["sent"]))
    held = collections.defaultdict(list)
    for a in acknowledged(operations, *grants):
        end = min(a["sent"] + a.get("ttl", 0), released.get((a["key"], a["token"]), float("inf")))
        end = min(end, next((step for step in clock if step > a["sent"]), end))
        if a["answered"] < end:
            held[a["key"]].append((a["answered"], end, a["token"]))
    found = []
    for key, times in held.items():
        last = None
        for begin, end, token in sorted(times):
            if last and last[2] != token and begin < last[1]:
                found.append(f"{key}: token {token} from {begin:.3f}, while {last[2]} is held until {last[1]:.3f}")
            if last is None or end > last[1]:
                last = (begin, end, token)
    return found


def tokens_back(operations):
    """A grant that was requested after another one was answered has a larger token."""
    found = []
    for key, grants in by_key(acknowledged(operations, "acquire")).items():
        answered = sorted((a["answered"], a["token"]) for a in grants)
        times = [time for time, _ in answered]
        largest = list(itertools.accumulate((token for _, token in answered), max))
        for a in grants:
            before = bisect.bisect_left(times, a["sent"])
            if before and largest[before - 1] >= a["token"]:
                found.append(f"{key}: token {a['token']} was granted after {largest[before - 1]}")
    return found


def stale_writes(work):
    """In the order in which the database did them, the tokens of the writes of a key never become smaller."""
    found = []
    for key, rows in itertools.groupby(sorted(work), key=lambda row: row[0]):
        for (_, _, before), (_, n, token) in itertools.pairwise(rows):
            if token < before:
                found.append(f"{key}: write {n} has token {token}, after {before}")
    return found


def lost(operations, effects):
    there = {op for op, _ in effects}
    return [f"{a['do']} {a['op']}" for a in acknowledged(operations, *EFFECTS) if a["op"] not in there]


def repeated(values, text):
    return [f"{value} {text.format(count)}" for value, count in collections.Counter(values).items() if count > 1]


def without_entry(operations, stored):
    """Each save that is stored has one entry, with the version that its client was told, and no version is missing."""
    found = []
    entries = collections.defaultdict(list)
    for key, version, op in stored.get("history", []):
        entries[op].append((key, version))
    saved = {op for op, kind in stored["effects"] if kind == "save"} if "history" in stored else set()
    found += [f"{op} has {len(entries[op])} entries" for op in sorted(saved) if len(entries[op]) != 1]
    found += [f"{op} has an entry and was not saved" for op in sorted(entries.keys() - saved)]
    for a in acknowledged(operations, "save"):
        if a["op"] in saved and (a["key"], a["version"]) not in entries[a["op"]]:
            found.append(f"{a['op']}: its entry is not that of version {a['version']} of {a['key']}")
    for key, version in stored.get("versions", []):
        there = sorted(n for entry_key, n, _ in stored["history"] if entry_key == key)
        if there != list(range(2, version + 1)):
            found.append(f"row {key} of version {version} has {len(there)} entries")
    return found


def jobs(stored):
    """A job is left, or it is done."""
    if "jobs" not in stored:
        return []
    done = {int(op.split()[1]) for op, kind in stored["effects"] if kind == "job"}
    left = set(stored["jobs_left"])
    found = [f"job {key} is done, and still there" for key in sorted(done & left)]
    return found + [f"job {key} is gone" for key in sorted(set(range(1, stored["jobs"] + 1)) - done - left)]


def stock(stored):
    found = [
        f"item {key}: {stocked} in stock, now {left} left, {reserved} reserved, {sold} sold"
        for key, stocked, left, reserved, sold in stored.get("stock", [])
        if left < 0 or left + reserved + sold != stocked
    ]
    return found + [f"item {key} differs by {difference}" for key, difference in stored.get("books", [])]


def by_key(operations):
    grants = collections.defaultdict(list)
    for a in operations:
        grants[a["key"]].append(a)
    return grants
