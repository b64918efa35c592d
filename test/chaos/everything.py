"""Everything at once: clients of all mechanisms, a primary with a standby, and faults of all kinds. Prints TAP.

    everything.py DIRECTORY MINUTES SEED [MISTAKE]

The directory has file systems of their own for the servers: see script/test. With a mistake, which is one of MISTAKES in
lib/chaos.py, the clients do that wrong, and the checker has to find it.
"""

import pathlib
import subprocess
import sys
import traceback

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "lib"))

from adjustable_clock import compile_clock  # noqa: E402
from chaos import MISTAKES, Chaos  # noqa: E402

tests = failed = 0


def check(passed, name):
    global tests, failed
    tests += 1
    failed += not passed
    print(f"{'ok' if passed else 'not ok'} {tests} - {name}", flush=True)


def note(text):
    print(f"# note: {text}", flush=True)


def explain(lines):
    for line in lines[:20]:
        print(f"|{line}", flush=True)


def report(chaos, mistake):
    """With a mistake: whether what it leads to was found. Else that nothing was."""
    if mistake:
        kind = MISTAKES[mistake]
        check(chaos.violations[kind], f"the mistake {mistake} is found: {kind}")
        explain(chaos.violations[kind][:3])
    else:
        for kind, what in chaos.violations.items():
            check(not what, f"no {kind}")
            explain(what)
    operations = sum(a["answered"] is not None for a in chaos.operations)
    note("faults: " + ", ".join(f"{name} {count}" for name, count in sorted(chaos.done.items())))
    note(f"{operations:,} operations, {sum(chaos.done.values())} faults, {sum(map(len, chaos.violations.values()))} violations")
    note(f"the same plan of faults again: --seed {chaos.seed}")


def main():
    directory, minutes, seed, mistake = pathlib.Path(sys.argv[1]), float(sys.argv[2]), sys.argv[3], (sys.argv[4:] or [None])[0]
    if mistake and mistake not in MISTAKES:
        sys.exit(f"there is no mistake {mistake}, but {', '.join(MISTAKES)}")
    programs = subprocess.run(["pg_config", "--bindir"], check=True, capture_output=True, text=True).stdout.strip()
    chaos = Chaos(directory, programs, compile_clock(directory), minutes, seed, mistake, note)
    note(f"seed {seed}")
    try:
        chaos.run()
        check(True, "everything goes on after each fault")
        report(chaos, mistake)
    except Exception as error:
        check(False, f"everything goes on after each fault: {error}")
        explain(traceback.format_exc().splitlines())
        for log in sorted(directory.glob("*/log")) + [directory / "clients.log"]:
            if log.exists():
                explain([f"--- {log}", *log.read_text(errors="replace").splitlines()[-15:]])
    print(f"1..{tests}")
    sys.stdout.flush()
    sys.exit(failed > 0)


main()
