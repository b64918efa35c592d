"""The clients of a run: started, killed and replaced, and what they have recorded.

What is in the directory:

load.json           for the clients: addresses of the servers, when the load began, the seed
records/NAME.json   what a client has recorded
clients.log         what clients have printed
"""

import importlib
import json
import os
import pathlib
import signal
import subprocess
import sys
import time

import psycopg

from client import WORKLOADS
from processes import send, wait_for

sys.path.append(str(WORKLOADS))
PROGRAM = pathlib.Path(__file__).with_name("client.py")
EFFECT = "CREATE TABLE effect (op text, kind text)"


def workload(name):
    return importlib.import_module(name)


def stored(address, works):
    """What the tables of a server have in the end."""
    with psycopg.connect(address, autocommit=True) as connection:
        found = {"effects": connection.execute("SELECT op, kind FROM effect").fetchall()}
        for work in works:
            if hasattr(workload(work), "stored"):
                found.update(workload(work).stored(connection.execute))
        return found


class Load:
    def __init__(self, directory, addresses, works, **setting):
        """works: (name of a file of workloads, arguments of its work()) for each client. setting: seed, impatient, mistake, and the
        environment of the clients."""
        self.directory, self.addresses, self.works = pathlib.Path(directory), addresses, works
        self.environment = {**os.environ, **setting.pop("environment", {})}
        self.setting = {"seed": 1, "impatient": 0, "mistake": None, **setting, "addresses": addresses}
        self.clients = {}  # by name: the process, the number of its work
        self.replaced = 0
        self.offsets, self.operations, self.counts = {}, [], {}

    @property
    def setup(self):
        """SQL for an empty database."""
        return "\n".join([EFFECT + ";", *(workload(name).SETUP for name in self.names())])

    def names(self):
        return list(dict.fromkeys(name for name, _ in self.works))

    def start(self):
        (self.directory / "records").mkdir()
        (self.directory / "load.json").write_text(json.dumps({**self.setting, "begin": time.monotonic()}))
        self.counts = {kind: 0 for name in self.names() for kind in workload(name).KINDS}
        for number in range(len(self.works)):
            self.start_client(f"c{number}", number)

    def start_client(self, name, number):
        work, arguments = self.works[number]
        file = workload(work)
        command = getattr(file, "COMMAND", [sys.executable, "-B", PROGRAM])
        with open(self.directory / "clients.log", "ab") as log:
            process = subprocess.Popen(
                [*command, name, self.directory, work, json.dumps(arguments)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=self.environment,
                cwd=getattr(file, "DIRECTORY", "/"),
            )
        self.clients[name] = process, number

    def kill(self, name):
        """kill -9 of a client. Another one with another name takes its place."""
        process, number = self.clients.pop(name)
        process.kill()
        process.wait()
        self.replaced += 1
        self.start_client(f"c{number}.{self.replaced}", number)

    def read(self):
        """Adds what was recorded since the last call. The last line of a client that was killed may be broken off."""
        for file in (self.directory / "records").iterdir():
            with open(file, "rb") as lines:
                lines.seek(self.offsets.get(file, 0))
                text = lines.read()
            whole = text[: text.rfind(b"\n") + 1]
            self.offsets[file] = self.offsets.get(file, 0) + len(whole)
            for line in whole.splitlines():
                operation = json.loads(line)
                self.operations.append(operation)
                if operation["answered"] is not None and operation["do"] in self.counts:
                    self.counts[operation["do"]] += 1

    def done(self):
        """How many operations of each kind were acknowledged."""
        self.read()
        return dict(self.counts)

    def wait_for_all(self):
        """Each kind of operation is acknowledged again."""
        before = self.done()
        missing = lambda: [kind for kind, count in self.done().items() if count == before[kind]]  # noqa: E731
        try:
            wait_for("operations of each kind", lambda: not missing())
        except TimeoutError:
            raise TimeoutError(f"no {', '.join(missing())} is acknowledged any more") from None

    def ended(self):
        """Clients that have ended by themselves, which is a fault of the program."""
        return [name for name, (process, _) in self.clients.items() if process.poll() is not None]

    def stop(self):
        """All that was recorded."""
        ended = self.ended()
        self.stop_all()
        self.read()
        if ended:
            raise RuntimeError(f"clients ended by themselves: {', '.join(ended)}")
        return self.operations

    def stop_all(self):
        pids = [process.pid for process, _ in self.clients.values()]
        send(signal.SIGCONT, pids)
        send(signal.SIGKILL, pids)
        for process, _ in self.clients.values():
            process.wait()
