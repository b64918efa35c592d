# Made from _async/claim.py by to_sync.py.
"""Workers that share a table of jobs: each claims free rows, and ends them in the transaction of their effect."""

from __future__ import annotations

import logging
import os
import uuid
from collections.abc import Iterator, Callable, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from time import monotonic
from typing import Any, Generic

from ..errors import MarkerLost, as_interlock_error, interlock_errors, is_lost_connection, sqlstate_of
from ..tracing import traced
from ..values import JsonRow, Row, from_json, to_json
from .driver import Driver, Tx
from .io import Event, Running
from .lost import Lost
from .own import Own, Subscription
from .rows import Rows

_log = logging.getLogger("pg_interlock")


@dataclass
class ClaimOptions:
    match: Mapping[str, Any]
    order: str | None
    ttl: str | None
    concurrency: int
    every: float
    channel: str | None
    name: str
    on_error: Callable[[Exception, JsonRow], None] | None


class Job(Generic[Tx]):
    """A row that this worker has claimed. It is hidden from others, and prolonged, until it has ended."""

    def __init__(
        self, driver: Driver[Tx], own: Own, rel: str, holder: str, ttl: str | None, claimed: Row, row: JsonRow, sent: float
    ):
        self.row = row
        self.key: JsonRow = from_json(claimed["key"])
        self.holder = holder
        self.lost = Lost(self)
        """Set when the job is lost to another worker."""
        self._released = False
        self._driver, self._own, self._ttl = driver, own, ttl
        self._named = (rel, claimed["key"], holder)
        self._length = float(claimed["length"])
        self._deadline, self._done = sent + self._length, Event()

    @contextmanager
    def done(self, changes: Mapping[str, Any] | None = None) -> Iterator[Tx]:
        """`with job.done() as tx:` is the effect and the end of the job in one transaction: the row is deleted, or saved with the
        changes. Raises MarkerLost, without any effect."""
        with interlock_errors():
            with self._driver.transaction() as tx:
                yield tx
                self._end(tx, changes)
        self._released = True
        self._done.set()

    def release(self) -> None:
        """Releases the job at once: another worker can claim it."""
        self._released = True
        self._done.set()
        self._driver.query("SELECT interlock.unlock_row(%s::text::regclass, %s::text::jsonb, %s::text)::text", self._named)

    def _end(self, tx: Tx, changes: Mapping[str, Any] | None) -> None:
        query = self._driver.within(tx)
        if changes is None:
            query("SELECT interlock.delete_row(%s::text::regclass, %s::text::jsonb, %s::text)::text", self._named)
        else:
            sql = "SELECT interlock.save_row(%s::text::regclass, %s::text::jsonb, %s::text, %s::text::jsonb)::text"
            query(sql, (*self._named, to_json(changes)))

    def _beat(self) -> None:
        pause = self._length / 2
        while not self._done.wait(pause):
            sent = monotonic()
            try:
                rows = self._own.renew(
                    """SELECT interlock.touch_row(%s::text::regclass, %s::text::jsonb, %s::text, %s::text::float8)::text AS until""",
                    (*self._named, self._ttl),
                    max(self._length / 4, 0.1),
                )
                if rows[0]["until"] is None:
                    return self.lost.set()
                self._deadline, pause = sent + self._length, self._length / 2
            except Exception:  # the server cannot be reached: try again until the deadline
                if self.lost.is_set():
                    return
                pause = min(self._length / 10, 5)

    def _late(self) -> None:
        self.lost.set()


class Worker(Generic[Tx]):
    """The loop of a worker: run() works until stop()."""

    def __init__(
        self,
        driver: Driver[Tx],
        own: Own,
        rows: Rows,
        rel: str,
        handle: Callable[[Job[Tx]], Mapping[str, Any] | None],
        options: ClaimOptions,
    ) -> None:
        self._driver, self._own, self._rows, self._rel, self._handle, self._options = driver, own, rows, rel, handle, options
        self._stopping = False
        self._called = Event()
        self._running = 0
        self._ended = Event()

    def stop(self) -> None:
        """Begins no more jobs: run() ends when those that run have ended. A signal handler may call it."""
        self._stopping = True

    def run(self) -> None:
        """Works until stop(), and waits for the jobs that run. What cannot be cured, such as a missing table, is raised."""
        subscription = None
        if self._options.channel is not None:
            subscription = Subscription(self._options.channel, lambda _: self._called.set(), self._called.set)
            self._own.listener.subscribe(subscription)
        failures = 0
        try:
            while not self._stopping:
                self._called.clear()
                try:
                    busy = self._running >= self._options.concurrency or self._begin_next()
                    failures = 0
                except Exception as error:
                    if not _passes(error):
                        raise as_interlock_error(error) from error
                    busy, failures = False, failures + 1
                if not busy or self._running >= self._options.concurrency:
                    self._pause(min(0.5 * 2**failures, 30) if failures else self._options.every)
        finally:
            while self._running:
                self._ended.clear()
                if self._running:
                    self._ended.wait(1)
            if subscription is not None:
                self._own.listener.unsubscribe(subscription)

    def _pause(self, length: float) -> None:
        end = monotonic() + length
        while not self._stopping and monotonic() < end:
            if self._called.wait(min(end - monotonic(), 0.5)):
                return

    def _begin_next(self) -> bool:
        """Whether there was a job."""
        # A name for each claim: a worker that is late must not end the next claim of its own process.
        holder = f"{self._options.name} {os.getpid()} {uuid.uuid4().hex[:8]}"
        match, order, ttl = to_json(self._options.match), self._options.order, self._options.ttl
        sent = monotonic()
        rows = self._driver.query(
            """SELECT key::text, current::text, extract(epoch FROM expires_at - clock_timestamp())::text AS length
                 FROM interlock.claim_rows(%s::text::regclass, %s::text, 1, %s::text::jsonb, %s::text::name, %s::text::float8)""",
            (self._rel, holder, match, order, ttl),
        )
        if not rows:
            return False
        row = self._rows.row(self._rel, rows[0]["current"])
        job = Job(self._driver, self._own, self._rel, holder, ttl, rows[0], row or {}, sent)
        self._running += 1
        Running(self._work, job)
        return True

    def _work(self, job: Job[Tx]) -> None:
        beats = Running(job._beat)
        try:
            with traced("interlock.job", table=self._rel):
                changes = self._handle(job)
            if not job._released:
                with job.done(changes):
                    pass
        except Exception as error:
            if self._options.on_error is not None:
                self._options.on_error(error, job.row)
            else:
                _log.exception("a job of table %s has failed: it is tried again after its deadline", self._rel)
        finally:
            job._done.set()
            beats.join(1)
            self._running -= 1
            self._ended.set()
            self._called.set()


def _passes(error: Exception) -> bool:
    """The server is away, or the rows are contended: the loop continues."""
    return is_lost_connection(error) or (sqlstate_of(error) or "").startswith(("08", "40", "53", "57", "55P03"))
