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
from load import SETUP, Load, stored
from patroni_cluster import NODES, Cluster, wait_for

PROGRAM = pathlib.Path(__file__).resolve().parents[1] / "cluster"

# What losing the last second of WAL means. Everything else must hold, however a standby takes over.
LOSSES = ["acknowledged writes lost", "versions given twice", "states left twice", "markers granted twice"]
CRASH = re.compile(r"PANIC|TRAP:|was terminated by signal (4|6|7|8|11)")


def run(faults, synchronous):
    """Prints TAP, and ends the program."""
    directory = pathlib.Path(tempfile.mkdtemp(prefix="ha."))
    cluster = Cluster(directory, synchronous)
    results = Results()
    try:
        break_it(cluster, directory, faults, synchronous, results)
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


def break_it(cluster, directory, faults, synchronous, results):
    cluster.start()
    cluster.must(SETUP)
    addresses = [cluster.address(node) for node in NODES]
    load = Load(directory, addresses, careful=not synchronous)
    load.start()
    wait_for_all(load)
    windows = []
    for fault in faults:
        begin = time.monotonic()
        subprocess.run([PROGRAM, fault, directory], check=True, stdout=subprocess.DEVNULL)
        if fault == "kill-node":
            wait_for_all(load)
            subprocess.run([PROGRAM, "start-node", directory], check=True, stdout=subprocess.DEVNULL)
        wait_for_all(load)
        results.check(True, f"after {fault} everything continues")
        windows.append((fault, begin, time.monotonic()))
    if synchronous:
        ended = "SELECT count(*) FROM interlock.audit WHERE action = 'end_grace'"
        wait_for("the answer", lambda: cluster.psql(cluster.primary(), ended).returncode == 0)
        count = int(cluster.psql(cluster.primary(), ended).stdout)
        results.check(count >= faults.count("switchover"), f"the grace was ended after each switchover: {count} times")
    operations = load.stop()
    cluster.wait_until_ready()
    report(operations, stored(addresses), windows, synchronous, results)
    logs = [log.read_text(errors="replace") for log in directory.glob("node*/log")]
    results.check(not any(CRASH.search(log) for log in logs), "no server crashed")


def wait_for_all(load):
    """Each kind of operation was acknowledged again."""
    before = load.done()
    wait_for("operations of each kind", lambda: all(count > before[kind] for kind, count in load.done().items()))


def report(operations, tables, windows, synchronous, results):
    for fault, begin, end in windows:
        print(f"# {fault}: no new lease for {longest_pause(operations, begin, end):.0f} s")
    found = violations(operations, tables)
    for kind, what in found.items():
        if kind in LOSSES and not synchronous:
            print(f"# asynchronous: {len(what)} {kind}")
            continue
        results.check(not what, f"no {kind}")
        for line in what[:10]:
            print(f"# {line}")
    answered = sum(a["answered"] is not None for a in operations)
    total = sum(map(len, found.values()))
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
