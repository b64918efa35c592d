"""Clients that use all mechanisms, one process each, and record what they were told (see history.py for the records).

A client connects to any server that says that it is a primary, as an old primary does, too. It gives up on a call after
CALL seconds. Whatever ends a call but its answer leaves open whether it was done.
"""

import contextlib
import json
import logging
import multiprocessing
import os
import random
import signal
import time

import psycopg

logging.getLogger("psycopg").setLevel(logging.CRITICAL)  # a rollback on a connection that was given up

CALL = 8
SHORT, LONG = 9, 15  # times to live below and above interlock.lease_durable_after
KINDS = ["acquire", "renew", "write", "save", "transition", "mark", "edit", "pay"]

SETUP = """
CREATE TABLE effect (op text);
CREATE TABLE work (op text, key text, n bigint, token bigint);
CREATE TABLE writes (key text PRIMARY KEY, n bigint);
INSERT INTO writes SELECT 'job/' || i, 0 FROM generate_series(1, 4) i;
CREATE TABLE doc (id int PRIMARY KEY, body text);
INSERT INTO doc SELECT i, '' FROM generate_series(1, 3) i;
SELECT interlock.enable_versioning('doc');
CREATE TABLE orders (id int PRIMARY KEY, status text NOT NULL);
INSERT INTO orders SELECT i, 'pending' FROM generate_series(1, 20000) i;
SELECT interlock.define_transitions('orders', 'status', '{"pending": ["paid", "cancelled"]}', initial => '{pending}');
CREATE TABLE page (id int PRIMARY KEY, body text);
INSERT INTO page SELECT i, '' FROM generate_series(1, 2) i;
SELECT interlock.enable_marker('page');
SELECT interlock.define_idempotency_scope('pay', stale_after => '5 s');
"""


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
    def __init__(self, number, addresses, file, counts, start):
        self.name = f"c{number}"
        self.addresses, self.file, self.counts, self.start = addresses, file, counts, start
        self.connection = None
        self.operations = 0

    def new_name(self):
        self.operations += 1
        return f"{self.name}.{self.operations}"

    def call(self, body, before=float("inf")):
        """When it was sent, when it was answered or None, and the answer of body(execute). It is not sent after "before"."""
        while self.connection is None:
            self.connection = primary(self.addresses)
            if self.connection is None:
                time.sleep(0.3)
        sent = time.monotonic()
        if sent > before:
            return sent, None, None
        try:
            with at_most(CALL):
                answer = body(self.connection.execute)
            return sent, time.monotonic(), answer
        except (psycopg.Error, TooLong, OSError):
            with contextlib.suppress(Exception):
                self.connection.close()
            self.connection = None
            return sent, None, None

    def record(self, do, times, **values):
        if times[1] is not None and do in KINDS:
            with self.counts.get_lock():
                self.counts[KINDS.index(do)] += 1
        self.file.write(json.dumps({"do": do, "sent": times[0], "answered": times[1], **values}) + "\n")

    def together(self, body):
        """Both statements of the body in one transaction."""

        def in_transaction(execute):
            with self.connection.transaction():
                return body(execute)

        return self.call(in_transaction)

    # --- What a client does, again and again -------------------------------------------------------------------------

    def lease(self, keys, ttl, late):
        """late: a client may renew after its lease has expired, which is allowed while no other client has it."""
        key = random.choice(keys)
        sent, answered, row = self.call(
            lambda execute: execute(
                "SELECT outcome, token FROM interlock.acquire_lease(%s, %s, holder => %s)", [key, ttl, self.name]
            ).fetchone()
        )
        if row is None or row[0] != "acquired":
            return
        token = row[1]
        self.record("acquire", (sent, answered), key=key, token=token, ttl=ttl)
        end = sent + ttl
        for _ in range(random.randint(1, 6)):
            # Some clients work without a call while the server fails, and rely on their lease.
            time.sleep(random.random() * ttl / random.choice([2, 20, 20, 20]))
            self.write(key, token)
            if time.monotonic() > end - ttl / 4:
                if not late:
                    break
                time.sleep(random.random() * ttl)
            if time.monotonic() > end - ttl / 2 or random.random() < 0.3:
                times = self.call(
                    lambda execute: execute("SELECT interlock.renew_lease(%s, %s, %s)", [key, token, ttl]).fetchone()[0],
                    before=float("inf") if late else end,
                )
                if times[1] is not None and times[2] is None:
                    return
                self.record("renew", times[:2], key=key, token=token, ttl=ttl)
                if times[1] is not None:
                    end = times[0] + ttl
        # Where no answer came the next call finds out.
        times = self.call(lambda execute: execute("SELECT interlock.release_lease(%s, %s)", [key, token]))
        self.record("release", times[:2], key=key, token=token)

    def write(self, key, token):
        op = self.new_name()

        def body(execute):
            execute("SELECT interlock.assert_lease(%s, %s)", [key, token])
            execute(
                """WITH counted AS (UPDATE writes SET n = n + 1 WHERE key = %s RETURNING n)
                       INSERT INTO work SELECT %s, %s, n, %s FROM counted""",
                [key, op, key, token],
            )
            execute("INSERT INTO effect VALUES (%s)", [op])

        self.record("write", self.together(body)[:2], op=op, key=key, token=token)

    def save(self):
        op, key = self.new_name(), random.randint(1, 3)

        def body(execute):
            version = execute("SELECT version FROM doc WHERE id = %s", [key]).fetchone()[0]
            outcome, version = execute(
                "SELECT outcome, version::bigint FROM interlock.try_versioned_update('doc', %s, %s::bigint, %s)",
                [key, version, json.dumps({"body": op})],
            ).fetchone()
            if outcome == "updated":
                execute("INSERT INTO effect VALUES (%s)", [op])
                return version
            return None

        sent, answered, version = self.together(body)
        if answered is None or version is not None:
            self.record("save", (sent, answered), op=op, key=key, version=version)

    def round(self):
        """A number that all clients share for half a second, so that they meet at one order and one payment."""
        return int((time.monotonic() - self.start) * 2) + 1

    def transition(self):
        op, key, state = self.new_name(), self.round(), random.choice(["paid", "cancelled"])

        def body(execute):
            outcome = execute("SELECT outcome FROM interlock.try_transition('orders', %s, 'pending', %s)", [key, state]).fetchone()[
                0
            ]
            if outcome == "transitioned":
                execute("INSERT INTO effect VALUES (%s)", [op])
            return outcome

        sent, answered, outcome = self.together(body)
        if answered is None or outcome == "transitioned":
            self.record("transition", (sent, answered), op=op, key=key, state="pending")

    def mark(self):
        key, mark = random.randint(1, 2), self.new_name()
        sent, answered, locked = self.call(
            lambda execute: execute("SELECT locked FROM interlock.lock_row('page', %s, %s, %s)", [key, mark, SHORT]).fetchone()[0]
        )
        if not locked:
            return
        self.record("mark", (sent, answered), key=key, token=mark, ttl=SHORT)
        for _ in range(random.randint(0, 2)):
            op = self.new_name()

            def body(execute, op=op):
                execute("SELECT interlock.save_row('page', %s, %s, %s, keep => true)", [key, mark, json.dumps({"body": op})])
                execute("INSERT INTO effect VALUES (%s)", [op])

            self.record("edit", self.together(body)[:2], op=op, key=key)
        times = self.call(lambda execute: execute("SELECT interlock.unlock_row('page', %s, %s)", [key, mark]))
        self.record("unmark", times[:2], key=key, token=mark)

    def pay(self):
        op = f"payment {self.round()}"
        for _ in range(8):
            sent, answered, row = self.call(
                lambda execute: execute("SELECT outcome, token FROM interlock.idempotency_claim('pay', %s)", [op]).fetchone()
            )
            if row is None or row[0] == "in_progress":
                time.sleep(random.random() * 2)
                continue
            if row[0] == "acquired":
                token = row[1]

                def body(execute):
                    execute("INSERT INTO effect VALUES (%s)", [op])
                    execute("SELECT interlock.idempotency_complete('pay', %s, %s)", [op, token])

                sent, answered, _ = self.together(body)
            if answered is not None:
                self.record("pay", (sent, answered), op=op)
                return

    def run(self, work, stop):
        random.seed(self.name)
        while not stop.is_set():
            work(self)
            time.sleep(random.random() / 10)


class Load:
    """The clients. "careful" ones follow the rules of a heartbeat to the letter, and hold short leases only."""

    def __init__(self, directory, addresses, careful):
        self.directory, self.addresses = directory, addresses
        lease = lambda keys, ttl, late: lambda client: client.lease(keys, ttl, late)  # noqa: E731
        self.works = [lease(["job/1", "job/2"], SHORT, not careful)] * 4
        self.works += [lease(["job/3"], SHORT if careful else LONG, not careful)] * 2
        self.works += [Client.save] * 3 + [Client.transition] * 2 + [Client.mark] * 2 + [Client.pay] * 2
        self.context = multiprocessing.get_context("fork")
        self.counts = self.context.Array("L", len(KINDS))
        self.stopping = self.context.Event()
        self.clients = []

    def start(self):
        begin = time.monotonic()
        for number, work in enumerate(self.works):
            process = self.context.Process(target=self.client, args=(number, work, begin), daemon=True)
            process.start()
            self.clients.append(process)

    def client(self, number, work, begin):
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        with open(os.path.join(self.directory, f"client{number}.json"), "w", encoding="utf-8") as file:
            Client(number, self.addresses, file, self.counts, begin).run(work, self.stopping)

    def done(self):
        """How many operations of each kind were acknowledged."""
        return dict(zip(KINDS, self.counts[:]))

    def stop(self):
        """All that was recorded."""
        self.stopping.set()
        operations = []
        for number, process in enumerate(self.clients):
            process.join()
            if process.exitcode != 0:
                raise RuntimeError(f"client {number} ended with {process.exitcode}")
            with open(os.path.join(self.directory, f"client{number}.json"), encoding="utf-8") as file:
                operations += map(json.loads, file)
        return operations


def stored(addresses):
    connection = None
    while connection is None:
        connection = primary(addresses)
    with connection:
        return {
            "effects": [op for op, in connection.execute("SELECT op FROM effect")],
            "work": connection.execute("SELECT key, n, token FROM work").fetchall(),
        }
