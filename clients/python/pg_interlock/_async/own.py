"""Connections of our own: for renewals of leases, for other calls of leases, to listen. The application's work does not occupy
them."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from dataclasses import dataclass
from time import monotonic
from typing import Any

from psycopg import AsyncConnection, Notify

from ..values import Row
from .driver import rows_of
from .io import Event, Lock, Running, limited, readable, unbroken

Connect = Callable[[], Coroutine[Any, Any, AsyncConnection[Any]]]


class Own:
    def __init__(self, connect: Connect) -> None:
        self._renewals, self._calls = Line(connect), Line(connect)
        self.listener = Listener(connect)

    async def renew(self, sql: str, values: Sequence[Any], limit: float) -> list[Row]:
        """A statement that prolongs something. No other call waits on its connection."""
        return await self._renewals.ask(sql, values, limit)

    async def query(self, sql: str, values: Sequence[Any], limit: float) -> list[Row]:
        return await self._calls.ask(sql, values, limit)

    async def close(self) -> None:
        await self.listener.stop()
        await self._renewals.close()
        await self._calls.close()


class Line:
    """A connection that is made when it is needed, and again after an error. It has one statement at a time."""

    def __init__(self, connect: Connect) -> None:
        self._connect = connect
        self._lock = Lock()
        self._connection: AsyncConnection[Any] | None = None

    async def ask(self, sql: str, values: Sequence[Any], limit: float) -> list[Row]:
        """Raises an error if there is no answer after `limit` seconds: a connection that hangs must not keep later calls."""
        return await unbroken(self._ask(sql, values, limit))

    async def _ask(self, sql: str, values: Sequence[Any], limit: float) -> list[Row]:
        async with self._lock:
            end = monotonic() + limit
            connection, self._connection = self._connection or await self._connect(), None
            try:
                with limited(connection, end - monotonic()):
                    rows = await rows_of(connection, sql, values)
            except BaseException:
                await connection.close()
                raise
            self._connection = connection
            return rows

    async def close(self) -> None:
        async with self._lock:
            if self._connection is not None:
                await self._connection.close()
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

    async def subscribe(self, subscription: Subscription) -> None:
        async with self._lock:
            self._subscriptions.add(subscription)
            if self._running is None:
                self._stopped = False
                self._running = Running(self._run)
            listening = subscription.channel in self._channels
        if listening:
            subscription.ready()
        self._woken.set()

    async def unsubscribe(self, subscription: Subscription) -> None:
        async with self._lock:
            self._subscriptions.discard(subscription)

    async def stop(self) -> None:
        self._stopped = True
        self._woken.set()
        async with self._lock:
            running = self._running
        if running is not None:
            await running.join(5)

    async def _run(self) -> None:
        while not await self._is_over():
            with suppress(Exception):
                await self._listen()
            self._woken.clear()
            await self._woken.wait(0 if self._stopped else 0.5)

    async def _is_over(self) -> bool:
        async with self._lock:
            self._channels = set()
            if self._stopped or not self._subscriptions:
                self._running = None
            return self._running is None

    async def _listen(self) -> None:
        connection = await self._connect()
        try:
            connection.add_notify_handler(self._heard)
            while self._subscriptions and not self._stopped:
                self._woken.clear()
                await self._listen_to_new(connection)
                # A connection whose other end is gone says nothing. The statement finds that, and takes notifications in.
                await readable(connection, 30, self._woken)
                await self._ask(connection, "SELECT 1")
        finally:
            await connection.close()

    async def _listen_to_new(self, connection: AsyncConnection[Any]) -> None:
        for channel in {each.channel for each in list(self._subscriptions)} - self._channels:
            quoted = channel.replace('"', '""')
            await self._ask(connection, f'LISTEN "{quoted}"')
            async with self._lock:
                self._channels.add(channel)
                new = [each for each in self._subscriptions if each.channel == channel]
            for each in new:
                each.ready()

    async def _ask(self, connection: AsyncConnection[Any], sql: str) -> None:
        with limited(connection, 10):
            await connection.execute(sql)

    def _heard(self, notice: Notify) -> None:
        for each in list(self._subscriptions):
            if each.channel == notice.channel:
                each.hear(notice.payload)
