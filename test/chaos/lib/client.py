"""A client: a process that does the work of one file of workloads again and again, and records what it was told.

    client.py NAME DIRECTORY WORK ARGUMENTS    ARGUMENTS is JSON: the arguments by name of the function work() in that file

The file load.json of the directory says where the servers are. A client connects to any server that says that it is a primary,
as an old primary does, too. It gives up on a call after CALL seconds. Whatever ends a call but its answer leaves open whether it
was done. The records are written to records/NAME.json, a line each; history.py says what is in them. A client may be killed at any
moment.
"""

import contextlib
import importlib
import json
import logging
import pathlib
import random
import signal
import sys
import time

import psycopg

logging.getLogger("psycopg").setLevel(logging.CRITICAL)  # a rollback on a connection that was given up

WORKLOADS = pathlib.Path(__file__).resolve().parents[1] / "workloads"
CALL = 8


class TooLong(Exception):
    pass


@contextlib.contextmanager
def at_most(seconds):
    def too_long(*_):
        raise TooLong

    signal.signal(signal.SIGALRM, too_long)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def primary(addresses):
    """A connection to a server that accepts writes, or None."""
    for address in random.sample(addresses, len(addresses)):
        try:
            with at_most(3):
                connection = psycopg.connect(address, autocommit=True)
                if not connection.execute("SELECT pg_is_in_recovery()").fetchone()[0]:
                    return connection
                connection.close()
        except (psycopg.Error, TooLong, OSError):
            pass
    return None


class Client:
    def __init__(self, name, addresses, file, begin, impatient=0, mistake=None):
        """begin: when the load began. impatient: the share of its connections that have a short statement_timeout. mistake: what the
        program does wrong, for --plant."""
        self.name, self.addresses, self.file, self.begin = name, addresses, file, begin
        self.impatient, self.mistake = impatient, mistake
        self.connection = None
        self.in_doubt = False
        self.operations = 0

    def new_name(self):
        self.operations += 1
        return f"{self.name}.{self.operations}"

    def connect(self):
        while self.connection is None:
            self.connection = primary(self.addresses)
            if self.connection is None:
                time.sleep(0.3)
                continue
            self.connection.add_notice_handler(self.notice)
            if random.random() < self.impatient:
                with contextlib.suppress(psycopg.Error):
                    self.connection.execute(f"SET statement_timeout = {random.randint(20, 500)}")

    def notice(self, message):
        # The commit is done here, and the standby may not have it: a warning, which is no promise.
        if "synchronous replication" in (message.message_primary or ""):
            self.in_doubt = True

    def call(self, body, before=float("inf")):
        """When it was sent, when it was answered or None, and the answer of body(execute). It is not sent after "before"."""
        self.connect()
        self.in_doubt = False
        sent = time.monotonic()
        if sent > before:
            return sent, None, None
        try:
            with at_most(CALL):
                answer = body(self.connection.execute)
            return (sent, None, None) if self.in_doubt else (sent, time.monotonic(), answer)
        except (psycopg.Error, TooLong, OSError) as error:
            # An error of one statement leaves the connection as it is.
            if isinstance(error, (TooLong, OSError)) or self.connection.closed or random.random() < 0.2:
                with contextlib.suppress(Exception):
                    self.connection.close()
                self.connection = None
            return sent, None, None

    def record(self, do, times, **values):
        self.file.write(json.dumps({"do": do, "sent": times[0], "answered": times[1], **values}) + "\n")

    def together(self, body):
        """All statements of the body in one transaction."""

        def in_transaction(execute):
            with self.connection.transaction():
                return body(execute)

        return self.call(in_transaction)

    def effect(self, execute, op, kind):
        execute("INSERT INTO effect VALUES (%s, %s)", [op, kind])

    def round(self):
        """A number that all clients share for half a second, so that they meet at one order and one payment."""
        return int((time.monotonic() - self.begin) * 2) + 1

    def errs(self, mistake):
        """Whether to make this mistake now."""
        return self.mistake == mistake and random.random() < 0.3

    def run(self, work, arguments):
        while True:
            work(self, **arguments)
            time.sleep(random.random() / 10)


def main():
    name, directory, work, arguments = sys.argv[1:]
    sys.dont_write_bytecode = True
    sys.path.insert(0, str(WORKLOADS))
    directory = pathlib.Path(directory)
    setting = json.loads((directory / "load.json").read_text())
    random.seed(f"{setting['seed']} {name}")
    with open(directory / "records" / f"{name}.json", "a", encoding="utf-8", buffering=1) as file:
        client = Client(name, setting["addresses"], file, setting["begin"], setting["impatient"], setting["mistake"])
        client.run(importlib.import_module(work).work, json.loads(arguments))


if __name__ == "__main__":
    main()
