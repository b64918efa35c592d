# Made from _async/lease.py by to_sync.py.
"""A lease that is held: renewed at half of its time, lost at the latest before it ends on the server."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from time import monotonic
from types import TracebackType
from typing import Any, Generic

from ..errors import LeaseLost, interlock_errors
from ..values import Duration, seconds_text, time_of
from .acquire import Granted
from .driver import Driver, Tx
from .io import Event, Running
from .lost import Lost
from .own import Own


# As a table: one key and its token, or several.
_HELD = "jsonb_to_recordset(%s::text::jsonb) AS held(key text, token text)"


class Lease(Generic[Tx]):
    """A lease. It is not reentrant: a second call for its key waits as others do, also in the same process."""

    def __init__(
        self, driver: Driver[Tx], own: Own, keys: list[str], holder: str, ttl: float, limit: float, granted: Granted
    ) -> None:
        self.key = keys[0]
        self.holder = holder
        """The name under which the server shows it: it belongs to this acquisition alone."""
        self.token = granted.tokens[0]
        """Tokens of a key only grow: a receiver outside of the database can refuse a smaller one."""
        self.tokens: dict[str, int] = dict(zip(keys, granted.tokens))
        """All of its keys and their tokens: one, or those of lease_all(), of which `key` and `token` are the first."""
        self.expires_at: datetime = granted.expires_at
        """When it ends if it is not renewed, by the server's clock."""
        self.lost = Lost(self)
        """An event that is set when the lease is lost, or could not be renewed in time: before it ends on the server."""
        self._driver, self._own, self._ttl = driver, own, ttl
        self._limit = granted.sent + limit
        self._reason: LeaseLost | None = None
        self._released = False
        self._done = Event()
        self._process = os.getpid()
        self._sent, self._deadline = granted.sent, granted.sent + ttl - granted.round_trip
        self._beats = Running(self._beat)

    def check(self) -> None:
        """Raises LeaseLost if the lease is lost. A paused process learns it late: use transaction() for what writes."""
        if self.lost.is_set():
            assert self._reason is not None
            raise self._reason
        if self._released:
            raise LeaseLost(f'lease "{self.key}" was released', detail={"key": self.key})

    @contextmanager
    def transaction(self, isolation: str | None = None) -> Iterator[Tx]:
        """BEGIN, assert the lease, the block, COMMIT. Until it has ended nobody else gets the lease. Raises LeaseLost, without any
        effect."""
        self.check()
        with interlock_errors():
            with self._driver.transaction(isolation) as tx:
                self.assert_held(tx)
                yield tx

    def assert_held(self, tx: Tx) -> None:
        """Makes sure in a transaction that the lease is held, until the transaction has ended. Raises LeaseLost."""
        self.check()
        try:
            with interlock_errors():
                self._driver.within(tx)(f"SELECT interlock.assert_lease(key, token::bigint)::text FROM {_HELD}", (self._held,))
        except LeaseLost as error:
            self._lose(error)
            raise

    def renew(self, ttl: Duration | None = None) -> bool:
        """Prolongs it now, to ttl from now or to another time. False: it is lost."""
        self.check()
        sent = monotonic()
        with interlock_errors():
            rows = self._own.renew(
                f"""SELECT to_jsonb(CASE WHEN count(until) = count(*) THEN min(until) END)#>>'{{}}' AS until
                      FROM {_HELD} CROSS JOIN LATERAL interlock.renew_lease(key, token::bigint, %s::text::float8) AS until""",
                (self._held, seconds_text(ttl)),
                max(self._ttl / 4, 0.1),
            )
        if rows[0]["until"] is None:
            message = f'lease "{self.key}" is lost: it has ended, or another client has it'
            self._lose(LeaseLost(message, sqlstate="IL006", detail=self._detail))
            return False
        self.expires_at = time_of(rows[0]["until"])
        self._sent, self._deadline = sent, sent + self._ttl - (monotonic() - sent)
        return True

    def release(self) -> bool:
        """Ends it. False: it was no longer held. In a process that was forked it does nothing: the parent has the lease."""
        self._done.set()
        if self._released or self._process != os.getpid():
            return False
        self._released = True
        for _ in range(2):  # by the token: again after an answer that was lost
            with suppress(Exception):
                rows = self._own.query(
                    f"SELECT bool_and(interlock.release_lease(key, token::bigint))::text AS released FROM {_HELD}", (self._held,), 5
                )
                return bool(rows[0]["released"] == "true")
        return False  # it ends by itself

    def __enter__(self) -> Lease[Tx]:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        lost = self.lost.is_set()
        self.release()
        if lost and error is None and self._reason is not None:
            raise self._reason

    @property
    def _held(self) -> str:
        return json.dumps([{"key": key, "token": str(token)} for key, token in self.tokens.items()])

    @property
    def _detail(self) -> dict[str, Any]:
        return {"key": self.key, "token": self.token}

    def _beat(self) -> None:
        pause = self._sent + self._ttl / 2 - monotonic()
        while not self._done.wait(max(pause, 0)):
            if self.lost.is_set():
                return
            if monotonic() >= self._limit:
                return self._lose(LeaseLost(f'lease "{self.key}" was held for as long as its limit', detail=self._detail))
            try:
                if not self.renew():
                    return
                pause = self._sent + self._ttl / 2 - monotonic()
            except Exception:  # the server cannot be reached: try again until the deadline
                pause = min(self._ttl / 10, 5)

    def _late(self) -> None:
        self._lose(LeaseLost(f'lease "{self.key}" could not be renewed in time', detail=self._detail))

    def _lose(self, reason: LeaseLost) -> None:
        if self._reason is None:
            self._reason = reason
        self.lost.set()
