"""What tasks and threads do differently. _sync/io.py is the same for threads. All other files of _sync are made from those of
_async by to_sync.py."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

from psycopg import AsyncConnection

from ..hangup import hang_up

T = TypeVar("T")
Lock = asyncio.Lock
_kept: set[asyncio.Task[Any]] = set()


class Event:
    """An event whose wait has a time limit."""

    def __init__(self) -> None:
        self._event = asyncio.Event()

    def is_set(self) -> bool:
        return self._event.is_set()

    def set(self) -> None:
        self._event.set()

    def clear(self) -> None:
        self._event.clear()

    async def wait(self, timeout: float | None = None) -> bool:
        with suppress(asyncio.TimeoutError):
            await asyncio.wait_for(self._event.wait(), timeout)
        return self._event.is_set()


class Running:
    """Work that runs next to the caller."""

    def __init__(self, work: Callable[..., Coroutine[Any, Any, None]], *values: Any) -> None:
        self._task = _keep(work(*values))

    async def join(self, timeout: float | None = None) -> None:
        await asyncio.wait({self._task}, timeout=timeout)


async def sleep(seconds: float) -> None:
    await asyncio.sleep(max(seconds, 0))


async def unbroken(work: Coroutine[Any, Any, T]) -> T:
    """Runs the work to its end, also if the caller is cancelled."""
    return await asyncio.shield(_keep(work))


def _keep(work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
    task = asyncio.get_running_loop().create_task(work)
    _kept.add(task)
    task.add_done_callback(_forget)
    return task


def _forget(task: asyncio.Task[Any]) -> None:
    _kept.discard(task)
    if not task.cancelled():
        task.exception()  # else it is reported as never retrieved


@contextmanager
def limited(connection: AsyncConnection[Any], seconds: float) -> Iterator[None]:
    """Ends the connection if the block takes longer. The statement in it fails then."""
    timer = asyncio.get_running_loop().call_later(max(seconds, 0), hang_up, connection)
    try:
        yield
    finally:
        timer.cancel()


async def readable(connection: AsyncConnection[Any], seconds: float, stop: Event) -> None:
    """Until the server has sent something, or the event is set."""
    loop, descriptor, sent = asyncio.get_running_loop(), connection.fileno(), asyncio.Event()
    loop.add_reader(descriptor, sent.set)
    waits = [loop.create_task(sent.wait()), loop.create_task(stop.wait())]
    try:
        await asyncio.wait(waits, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
    finally:
        loop.remove_reader(descriptor)
        for each in waits:
            each.cancel()
