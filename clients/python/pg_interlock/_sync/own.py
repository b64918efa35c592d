# Made from _async/own.py by to_sync.py.
"""Connections of our own: for renewals of leases, for other calls of leases, to listen. The application's work does not occupy
them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from time import monotonic
from typing import Any

from psycopg import Connection, Notify

from ..values import Row
from .driver import rows_of
from .io import Event, Lock, Running, limited, readable, unbroken

Connect = Callable[[], Connection[Any]]


class Own:
    def __init__(self, connect: Connect) -> None:
        self._renewals, self._calls = Line(connect), Line(connect)
        self.listener = Listener(connect)

    def renew(self, sql: str, values: Sequence[Any], limit: float) -> list[Row]:
        """A statement that prolongs something. No other call waits on its connection."""
        return self._renewals.ask(sql, values, limit)

    def query(self, sql: str, values: Sequence[Any], limit: float) -> list[Row]:
        return self._calls.ask(sql, values, limit)

    def close(self) -> None:
        self.listener.stop()
        self._renewals.close()
        self._calls.close()


class Line:
    """A connection that is made when it is needed, and again after an error. It has one statement at a time."""

    def __init__(self, connect: Connect) -> None:
        self._connect = connect
        self._lock = Lock()
        self._connection: Connection[Any] | None = None

    def ask(self, sql: str, values: Sequence[Any], limit: float) -> list[Row]:
        """Raises an error if there is no answer after `limit` seconds: a connection that hangs must not keep later calls."""
        return unbroken(self._ask(sql, values, limit))

    def _ask(self, sql: str, values: Sequence[Any], limit: float) -> list[Row]:
        with self._lock:
            end = monotonic() + limit
            connection, self._connection = self._connection or self._connect(), None
            try:
                with limited(connection, end - monotonic()):
                    rows = rows_of(connection, sql, values)
            except BaseException:
                connection.close()
                raise
            self._connection = connection
            return rows

    def close(self) -> None:
        with self._lock:
            if self._connection is not None:
                self._connection.close()
            self._connection = None


@dataclass(eq=False)
class Subscription:
    """`hear` gets the payload of each notification. `ready` is called when the server listens, also after each reconnect, because
    what was sent before may be lost."""

    channel: str
    hear: Callable[[str], None]
    ready: Callable[[], None]


class Listener:
    """One connection that listens for all who wait. It is closed some time after the last of them has left."""

    def __init__(self, connect: Connect) -> None:
        self._connect = connect
        self._lock = Lock()
        self._subscriptions: set[Subscription] = set()
        self._channels: set[str] = set()
        """Those that the connection listens to."""
        self._woken = Event()
        self._stopped = False
        self._running: Running | None = None

    def subscribe(self, subscription: Subscription) -> None:
        with self._lock:
            self._subscriptions.add(subscription)
            if self._running is None:
                self._stopped = False
                self._running = Running(self._run)
            listening = subscription.channel in self._channels
        if listening:
            subscription.ready()
        self._woken.set()

    def unsubscribe(self, subscription: Subscription) -> None:
        with self._lock:
            self._subscriptions.discard(subscription)

    def stop(self) -> None:
        self._stopped = True
        self._woken.set()
        with self._lock:
            running = self._running
        if running is not None:
            running.join(5)

    def _run(self) -> None:
        while not self._is_over():
            with suppress(Exception):
                self._listen()
            self._woken.clear()
            self._woken.wait(0 if self._stopped else 0.5)

    def _is_over(self) -> bool:
        with self._lock:
            self._channels = set()
            if self._stopped or not self._subscriptions:
                self._running = None
            return self._running is None

    def _listen(self) -> None:
        connection = self._connect()
        try:
            connection.add_notify_handler(self._heard)
            while self._subscriptions and not self._stopped:
                self._woken.clear()
                self._listen_to_new(connection)
                # A connection whose other end is gone says nothing. The statement finds that, and takes notifications in.
                readable(connection, 30, self._woken)
                self._ask(connection, "SELECT 1")
        finally:
            connection.close()

    def _listen_to_new(self, connection: Connection[Any]) -> None:
        for channel in {each.channel for each in list(self._subscriptions)} - self._channels:
            quoted = channel.replace('"', '""')
            self._ask(connection, f'LISTEN "{quoted}"')
            with self._lock:
                self._channels.add(channel)
                new = [each for each in self._subscriptions if each.channel == channel]
            for each in new:
                each.ready()

    def _ask(self, connection: Connection[Any], sql: str) -> None:
        with limited(connection, 10):
            connection.execute(sql)

    def _heard(self, notice: Notify) -> None:
        for each in list(self._subscriptions):
            if each.channel == notice.channel:
                each.hear(notice.payload)
