"""Connections of our own: for renewals of leases, for other calls of leases, to listen. The application's work does not occupy
them."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from time import monotonic
from typing import Any

from psycopg import AsyncConnection, Notify

from ..values import Row
from .driver import rows_of
from .io import Event, Lock, Running, limited, readable, unbroken

Connect = Callable[[], Coroutine[Any, Any, AsyncConnection[Any]]]


class Own:
    def __init__(self, connect: Connect) -> None:
        self._connect = connect
        self._renewals, self._calls = Line(connect), Line(connect)
        self._listeners: set[Listener] = set()

    async def renew(self, sql: str, values: Sequence[Any], limit: float) -> list[Row]:
        """A statement that prolongs something. No other call waits on its connection."""
        return await self._renewals.ask(sql, values, limit)

    async def query(self, sql: str, values: Sequence[Any], limit: float) -> list[Row]:
        return await self._calls.ask(sql, values, limit)

    def listen(self, channel: str, hear: Callable[[str], None], ready: Callable[[], None]) -> Listener:
        listener = Listener(self._connect, channel, hear, ready)
        self._listeners.add(listener)
        return listener

    async def close(self) -> None:
        for listener in list(self._listeners):
            await listener.stop()
        self._listeners.clear()
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


class Listener:
    """Hears a channel until stop(). `ready` is called after each connect, because what was sent before may be lost."""

    def __init__(self, connect: Connect, channel: str, hear: Callable[[str], None], ready: Callable[[], None]) -> None:
        self._connect, self._channel, self._hear, self._ready = connect, channel, hear, ready
        self._stopped = Event()
        self._running = Running(self._run)

    async def stop(self) -> None:
        self._stopped.set()
        await self._running.join(5)

    async def _run(self) -> None:
        while not self._stopped.is_set():
            with suppress(Exception):
                await self._listen()
            await self._stopped.wait(0.5)

    async def _listen(self) -> None:
        connection = await self._connect()
        try:
            connection.add_notify_handler(self._heard)
            await self._ask(connection, f"LISTEN {self._channel}")
            self._ready()
            while not self._stopped.is_set():
                # A connection whose other end is gone says nothing. The statement finds that, and takes notifications in.
                await readable(connection, 30, self._stopped)
                await self._ask(connection, "SELECT 1")
        finally:
            await connection.close()

    async def _ask(self, connection: AsyncConnection[Any], sql: str) -> None:
        with limited(connection, 10):
            await connection.execute(sql)

    def _heard(self, notice: Notify) -> None:
        self._hear(notice.payload)
