"""The code of a page of docs/clients, and lines of TAP for what it does."""
import importlib
import os
import pathlib
import re
import shutil
import sys
import threading
import time
import traceback

ROOT = pathlib.Path(os.environ["ROOT"])
OWNER = os.environ["PGUSER"]  # a superuser, which sets up what the page does not
state = {"tests": 0, "failed": False, "prefix": ""}


def blocks(name, language):
    return re.findall(rf"^```{language}\n(.*?)^```$", (ROOT / "docs/clients" / f"{name}.md").read_text(), re.M | re.S)


def load(name, execute):
    """Runs the blocks of SQL of the page, and imports its blocks of Python, taken together. They find the heartbeat of
    examples beside them, as the page says. If the page grants something to app, all that connects from now on is that
    role, which has on note and payment what the page grants. On tables of tests it may do what plain SQL does."""
    setup = blocks(name, "sql")
    for sql in setup:
        execute(sql)
    if any(" TO app;" in sql for sql in setup):
        execute("ALTER DEFAULT PRIVILEGES GRANT SELECT, INSERT, UPDATE, DELETE ON TABLES TO app")
        execute("ALTER DEFAULT PRIVILEGES GRANT USAGE ON SEQUENCES TO app")
        os.environ["PGUSER"] = "app"
    shutil.copy(ROOT / "examples/lease_heartbeat.py", ".")
    sys.path.insert(0, os.getcwd())
    pathlib.Path(f"{name}_page.py").write_text("\n".join(blocks(name, "python")))
    sys.modules.pop(f"{name}_page", None)       # each time anew
    return importlib.import_module(f"{name}_page")


def check(name):
    """A decorator: runs the function as one test."""
    name = state["prefix"] + name

    def run(body):
        state["tests"] += 1
        try:
            body()
            print(f"ok {state['tests']} - {name}", flush=True)
        except Exception:
            state["failed"] = True
            print(f"not ok {state['tests']} - {name}")
            print("# " + traceback.format_exc().rstrip().replace("\n", "\n# "), flush=True)
        return body
    return run


def finish():
    print(f"1..{state['tests']}")
    sys.stdout.flush()
    os._exit(1 if state["failed"] else 0)       # whatever a pool or a heartbeat still does


def equal(found, expected):
    assert found == expected, f"found {found!r}, expected {expected!r}"


def refused(kind, call, *values):
    """The error of this class that the call raises."""
    try:
        call(*values)
    except kind as error:
        return error
    raise AssertionError(f"no {kind}")


def eventually(condition):
    """Until it is true; for as long as the whole suite may take."""
    end = time.monotonic() + 180
    while not condition():
        assert time.monotonic() < end, "it does not come true"
        time.sleep(0.02)


def at_once(*works):
    """Runs each in a thread of its own; their results."""
    results, threads = [None] * len(works), []

    def run(n, work):
        try:
            results[n] = work()
        except Exception as error:
            results[n] = error
    for n, work in enumerate(works):
        threads.append(threading.Thread(target=run, args=(n, work)))
        threads[-1].start()
    for thread in threads:
        thread.join()
    for result in results:
        if isinstance(result, Exception):
            raise result
    return results
