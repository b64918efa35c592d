"""The checker of histories: what a client that had these answers may not find.

An operation is a dict. "sent" and "answered" are seconds of the machine's monotonic clock, and "answered" is None if its client
does not know whether it was done.

do          what, with these values of its own
acquire     key, token, ttl        a lease was granted
renew       key, token, ttl        until ttl after it was sent
release     key, token
mark        key, token, ttl        a marker was acquired; its token is the id of the operation
unmark      key, token
write       op, key, token         a row of the table work, in a transaction that asserted the lease
save        op, key, version       a row got this version
transition  op, key, state         a row left this state
edit        op, key                the holder of a marker saved the row
pay         op                     the claim of this idempotency key is completed, here or by another client

"stored" is what the tables have in the end: "effects", the ids of all operations whose effects are there, and "work", a list of
(key, n, token) in which n counts the writes of a key.
"""

import bisect
import collections
import itertools

EFFECTS = ("write", "save", "transition", "edit", "pay")


def violations(operations, stored):
    """Descriptions of what is wrong, in a list for each kind."""
    return {
        "leases granted twice": overlaps(operations, ("acquire", "renew"), "release"),
        "markers granted twice": overlaps(operations, ("mark",), "unmark"),
        "tokens that go back": tokens_back(operations),
        "writes under a token that is over": stale_writes(stored["work"]),
        "acknowledged writes lost": lost(operations, stored["effects"]),
        "effects twice": repeated(stored["effects"], "is stored {} times"),
        "versions given twice": repeated(
            ((a["key"], a["version"]) for a in acknowledged(operations, "save")), "was given to {} saves"
        ),
        "states left twice": repeated(
            ((a["key"], a["state"]) for a in acknowledged(operations, "transition")), "was left by {} transitions"
        ),
    }


def acknowledged(operations, *kinds):
    return [a for a in operations if a["do"] in kinds and a["answered"] is not None]


def overlaps(operations, grants, release):
    """Two clients that both had reason to believe that they hold a key. A client believes so from an answer until the time to
    live after it asked for that answer, or until it asks for the release, whether or not that was answered."""
    released = {}
    for a in operations:
        if a["do"] == release:
            name = (a["key"], a["token"])
            released[name] = min(a["sent"], released.get(name, a["sent"]))
    held = collections.defaultdict(list)
    for a in acknowledged(operations, *grants):
        end = min(a["sent"] + a["ttl"], released.get((a["key"], a["token"]), float("inf")))
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
    there = set(effects)
    return [f"{a['do']} {a['op']}" for a in acknowledged(operations, *EFFECTS) if a["op"] not in there]


def repeated(values, text):
    return [f"{value} {text.format(count)}" for value, count in collections.Counter(values).items() if count > 1]


def by_key(operations):
    grants = collections.defaultdict(list)
    for a in operations:
        grants[a["key"]].append(a)
    return grants
