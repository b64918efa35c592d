"""A load on a cluster, faults one after the other, and TAP of what the checker finds."""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

from history import violations
from load import Load, stored
from patroni_cluster import NODES, Cluster, wait_for

PROGRAM = pathlib.Path(__file__).resolve().parents[1] / "cluster"

SHORT, LONG = 9, 15  # times to live below and above interlock.lease_durable_after

# What losing the last second of WAL means. Everything else must hold, however a standby takes over.
LOSSES = [
    "acknowledged writes lost",
    "versions given twice",
    "states left twice",
    "markers granted twice",
    "changes without one entry of history",
]
# The deadline of a marker is a time by the clock of the primary that granted it.
OF_CLOCKS = ["markers granted twice"]
CRASH = re.compile(r"PANIC|TRAP:|was terminated by signal (4|6|7|8|11)")


def run(faults, synchronous, clocks=None, directory=None):
    """Prints TAP, and ends the program. directory: with a disk for each node."""
    directory = pathlib.Path(directory or tempfile.mkdtemp(prefix="ha."))
    cluster = Cluster(directory, synchronous, clocks)
    results = Results()
    try:
        tolerated = (OF_CLOCKS if clocks else []) + ([] if synchronous else LOSSES)
        break_it(cluster, directory, faults, tolerated, results)
    except Exception as error:
        results.check(False, f"runs to its end: {error!r}")
        print_logs(directory)
    finally:
        cluster.stop()
        if not os.environ.get("HA_KEEP"):
            shutil.rmtree(directory, ignore_errors=True)
    print(f"1..{results.tests}")
    sys.stdout.flush()
    os._exit(results.failed > 0)


class Results:
    tests = failed = 0

    def check(self, passed, name):
        self.tests += 1
        self.failed += not passed
        print(f"{'ok' if passed else 'not ok'} {self.tests} - {name}", flush=True)


def break_it(cluster, directory, faults, tolerated, results):
    cluster.start()
    addresses = [cluster.address(node) for node in NODES]
    load = Load(directory, addresses, works(careful=not cluster.synchronous))
    cluster.must(load.setup)
    load.start()
    try:
        windows = [inject(fault, load, directory, results) for fault in faults]
        if cluster.synchronous:
            check_ended_graces(cluster, faults, results)
    finally:
        operations = load.stop()
    cluster.wait_until_ready(len(NODES))
    report(operations, stored(cluster.address(cluster.primary()), load.names()), windows, tolerated, results)
    logs = [log.read_text(errors="replace") for log in directory.glob("node*/log")]
    results.check(not any(CRASH.search(log) for log in logs), "no server crashed")


def inject(fault, load, directory, results):
    """The fault, when it began, and when everything went on."""
    load.wait_for_all()
    begin = time.monotonic()
    subprocess.run([PROGRAM, fault, directory], check=True, stdout=subprocess.DEVNULL)
    if fault == "kill-node":
        load.wait_for_all()
        subprocess.run([PROGRAM, "start-node", directory], check=True, stdout=subprocess.DEVNULL)
    load.wait_for_all()
    results.check(True, f"after {fault} everything continues")
    return fault, begin, time.monotonic()


def check_ended_graces(cluster, faults, results):
    """The program of the page has ended the grace of each planned switchover."""
    ended = "SELECT count(*) FROM interlock.audit WHERE action = 'end_grace'"
    wait_for("the answer", lambda: cluster.psql(cluster.primary(), ended).returncode == 0)
    count = int(cluster.psql(cluster.primary(), ended).stdout)
    results.check(count >= faults.count("switchover"), f"the grace was ended after each switchover: {count} times")


def works(careful):
    """Careful clients follow the rules of a heartbeat to the letter, and hold short leases only."""
    lease = {"keys": ["job/1", "job/2"], "ttl": SHORT, "late": not careful}
    long = {"keys": ["job/3"], "ttl": SHORT if careful else LONG, "late": not careful}
    others = {"save": 3, "transition": 2, "mark": 2, "pay": 2}
    arguments = {"mark": {"ttl": SHORT}}
    return (
        [("lease", lease)] * 4
        + [("lease", long)] * 2
        + [(name, arguments.get(name, {})) for name, count in others.items() for _ in range(count)]
    )


def report(operations, tables, windows, tolerated, results):
    for fault, begin, end in windows:
        print(f"# {fault}: no new lease for {longest_pause(operations, begin, end):.0f} s")
    found = violations(operations, tables)
    for kind, what in found.items():
        if kind in tolerated:
            print(f"# tolerated: {len(what)} {kind}")
            continue
        results.check(not what, f"no {kind}")
        for line in what[:10]:
            print(f"# {line}")
    answered = sum(a["answered"] is not None for a in operations)
    total = sum(len(what) for kind, what in found.items() if kind not in tolerated)
    print(
        f"# {answered} operations acknowledged, {len(operations) - answered} open, {len(windows)} faults, {total} violations",
        flush=True,
    )


def longest_pause(operations, begin, end):
    times = sorted(a["answered"] for a in operations if a["do"] == "acquire" and a["answered"] is not None)
    # A pause may reach into the time of the fault before or after.
    _, pause = max((min(after, end) - max(before, begin), after - before) for before, after in zip(times, times[1:]))
    return pause


def print_logs(directory):
    for log in sorted(directory.glob("*/log")):
        print(f"# {log.parent.name}:")
        for line in log.read_text(errors="replace").splitlines()[-25:]:
            print(f"#   {line}")
