# The checker of histories finds each fault that is planted into a history without one. Needs no server. Prints TAP.

import copy
import pathlib
import sys
import types

sys.dont_write_bytecode = True
for folder in ("lib", "faults"):
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / folder))

import point_in_time  # noqa: E402
from history import violations  # noqa: E402


def did(do, sent, answered, **values):
    return {"do": do, "sent": sent, "answered": answered, **values}


# Two clients take turns. The second lease ends by expiry, and is renewed after that. What has no answer may be there or not.
HISTORY = [
    did("acquire", 1.0, 1.1, key="k", token=10, ttl=5),
    did("write", 1.2, 1.3, op="w1", key="k", token=10),
    did("renew", 2.0, 2.1, key="k", token=10, ttl=5),
    did("release", 3.0, None, key="k", token=10),
    did("acquire", 3.1, 3.2, key="k", token=11, ttl=5),
    did("write", 3.3, 3.4, op="w2", key="k", token=11),
    did("write", 3.5, None, op="w3", key="k", token=11),
    did("renew", 9.0, 9.1, key="k", token=11, ttl=5),
    did("acquire", 9.2, None, key="k", token=None, ttl=5),
    did("acquire", 14.1, 14.2, key="k", token=13, ttl=5),
    did("acquire", 1.0, 1.1, key="other", token=12, ttl=5),
    did("save", 1.0, 1.1, op="s1", key=1, version=2),
    did("save", 2.0, 2.1, op="s2", key=1, version=3),
    did("save", 2.0, None, op="s3", key=1, version=None),
    did("transition", 1.0, 1.1, op="t1", key=7, state="pending"),
    did("mark", 1.0, 1.1, key=3, token="m1", ttl=5),
    did("edit", 1.2, 1.3, op="e1", key=3),
    did("unmark", 1.4, 1.5, key=3, token="m1"),
    did("mark", 1.6, 1.7, key=3, token="m2", ttl=5),
    did("pay", 1.0, 1.1, op="p1"),
    did("pay", 1.0, 1.2, op="p1"),
    did("acquire", 1.0, 1.1, key="node", token=14, ttl=0),
    did("hold", 4.0, 1.2, key="node", token=14),
    did("acquire", 4.1, 4.2, key="node", token=15, ttl=0),
    did("hold", 6.0, 4.2, key="node", token=15),
    did("job", 1.0, 1.1, op="job 1", key=1),
    did("sell", 1.0, 1.1, op="b1"),
    did("mark", 2.0, 2.1, key=4, token="m3", ttl=9),
    did("clock", 3.0, 3.0),
    did("mark", 4.0, 4.1, key=4, token="m4", ttl=9),
]
STORED = {
    "effects": [
        *[(op, kind) for kind, ops in {"write": "w1 w2", "save": "s1 s2 s3", "transition": "t1"}.items() for op in ops.split()],
        *[("e1", "edit"), ("p1", "pay"), ("job 1", "job"), ("b1", "sell")],
    ],
    "work": [("k", 1, 10), ("k", 2, 11)],
    "versions": [(1, 4)],
    "history": [(1, 2, "s1"), (1, 3, "s2"), (1, 4, "s3")],
    "jobs": 2,
    "jobs_left": [2],
    "stock": [(1, 10, 6, 1, 3)],
    "books": [],
}

# For each kind: what to do to the history and to what is stored, and how it is found.
PLANTED = {
    "a grant while another client holds the lease": (
        "leases granted twice",
        lambda history, stored: history.append(did("acquire", 2.2, 2.3, key="k", token=9, ttl=0.5)),
        {"tokens that go back"},
    ),
    "a grant just before the end of a renewed lease": (
        "leases granted twice",
        lambda history, stored: history[9].update(sent=13.8, answered=13.9),
        set(),
    ),
    "a renewal of a lease that was granted to another client": (
        "leases granted twice",
        lambda history, stored: history.append(did("renew", 14.3, 14.4, key="k", token=11, ttl=5)),
        set(),
    ),
    "a client that relies on a lease that was granted to another client": (
        "leases granted twice",
        lambda history, stored: history[22].update(sent=4.3),
        set(),
    ),
    "a marker of two holders after the clock was set": (
        "markers granted twice",
        lambda history, stored: history.append(did("mark", 5.0, 5.1, key=4, token="m5", ttl=9)),
        set(),
    ),
    "a marker of two holders": ("markers granted twice", lambda history, stored: history[18].update(sent=1.2, answered=1.3), set()),
    "a token that is smaller than one before": ("tokens that go back", lambda history, stored: history[9].update(token=8), set()),
    "a token that is granted again": ("tokens that go back", lambda history, stored: history[9].update(token=11), set()),
    "a write with an old token after one with a new token": (
        "writes under a token that is over",
        lambda history, stored: stored["work"].append(("k", 3, 10)),
        set(),
    ),
    "an effect twice": ("effects twice", lambda history, stored: stored["effects"].append(("p1", "pay")), set()),
    "two saves with one version": (
        "versions given twice",
        lambda history, stored: history[12].update(version=2),
        {"changes without one entry of history"},
    ),
    "a save without its entry": (
        "changes without one entry of history",
        lambda history, stored: stored["history"].pop(),
        set(),
    ),
    "an entry of another version": (
        "changes without one entry of history",
        lambda history, stored: stored["history"].__setitem__(0, (1, 5, "s1")),
        set(),
    ),
    "an entry of a save that was rolled back": (
        "changes without one entry of history",
        lambda history, stored: (stored["history"].append((1, 5, "s4")), stored["versions"].__setitem__(0, (1, 5))),
        set(),
    ),
    "a job that is gone": ("jobs lost or done twice", lambda history, stored: stored["jobs_left"].clear(), set()),
    "a job that is done and still there": ("jobs lost or done twice", lambda history, stored: stored["jobs_left"].append(1), set()),
    "a sale that was not taken from the stock": (
        "stock that does not add up",
        lambda history, stored: stored["stock"].__setitem__(0, (1, 10, 7, 1, 3)),
        set(),
    ),
    "parts that are lost": ("stock that does not add up", lambda history, stored: stored["books"].append((1, 2)), set()),
    "two transitions from one state": (
        "states left twice",
        lambda history, stored: (
            history.append(did("transition", 1.0, 1.1, op="t2", key=7, state="pending")),
            stored["effects"].append(("t2", "transition")),
        ),
        set(),
    ),
    **{
        f"an acknowledged {name} that is lost": (
            "acknowledged writes lost",
            lambda history, stored, op=op: stored["effects"].remove(op),
            {"changes without one entry of history", "jobs lost or done twice"},
        )
        for name, op in {
            "write": ("w2", "write"),
            "save": ("s1", "save"),
            "transition": ("t1", "transition"),
            "edit": ("e1", "edit"),
            "payment": ("p1", "pay"),
            "job": ("job 1", "job"),
            "sale": ("b1", "sell"),
        }.items()
    },
}

tests = bad = 0


def check(passed, name, found):
    global tests, bad
    tests += 1
    bad += not passed
    print(f"{'ok' if passed else 'not ok'} {tests} - {name}")
    if not passed:
        print(f"# {found}")


kinds_found = set()
kinds = {kind for kind, found in violations(HISTORY, STORED).items()}
found = {kind: what for kind, what in violations(HISTORY, STORED).items() if what}
check(not found, "a history without a fault", found)
for name, (kind, plant, also) in PLANTED.items():
    history, stored = copy.deepcopy(HISTORY), copy.deepcopy(STORED)
    plant(history, stored)
    found = {kind: what for kind, what in violations(history, stored).items() if what}
    check(kind in found and set(found) <= {kind} | also, f"finds {name}", found)
    kinds_found.add(kind)
# A run keeps the steps of the clock, and the operations of its clients, in two lists.
steps = [a for a in HISTORY if a["do"] == "clock"]
chaos = types.SimpleNamespace(operations=steps, load=types.SimpleNamespace(operations=[a for a in HISTORY if a["do"] != "clock"]))
found = violations(point_in_time.past(chaos, 5.0, 5.1), STORED)["markers granted twice"]
check(not found, "a marker that ended by a step of the clock, up to a restore point", found)
check(kinds_found == kinds, "each kind of fault is planted", kinds - kinds_found)
print(f"1..{tests}")
sys.exit(bad > 0)
