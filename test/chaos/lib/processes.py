"""Processes of this machine, and signals for them."""

import contextlib
import os
import pathlib
import time

PATIENCE = int(os.environ.get("PG_TEST_TIMEOUT_DEFAULT", 600))


def wait_for(what, condition, pause=0.3):
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        answer = condition()
        if answer:
            return answer
        time.sleep(pause)
    raise TimeoutError(f"gave up waiting for {what}")


def children_of(pid):
    """Its processes, and itself first."""
    found = [pid]
    for path in pathlib.Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            if int(path.read_text().rsplit(")", 1)[1].split()[1]) == pid:
                found.append(int(path.parent.name))
    return found


def command_of(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").replace("\0", " ").strip()
    except OSError:
        return ""


def state_of(pid):
    """A letter: Z is a process that has ended, T one that is stopped. Empty, if there is none."""
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except (OSError, IndexError):
        return ""


def send(sig, pids):
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, sig)
