"""What threads and tasks do differently. _async/io.py is the same for tasks."""

from __future__ import annotations

import selectors
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from psycopg import Connection

from ..hangup import hang_up

T = TypeVar("T")
Event = threading.Event
Lock = threading.Lock


class Running:
    """Work that runs next to the caller."""

    def __init__(self, work: Callable[..., None], *values: Any) -> None:
        self._thread = threading.Thread(target=work, args=values, daemon=True)
        self._thread.start()

    def join(self, timeout: float | None = None) -> None:
        self._thread.join(timeout)


def sleep(seconds: float) -> None:
    time.sleep(max(seconds, 0))


def unbroken(result: T) -> T:
    """A call in a thread always runs to its end."""
    return result


@contextmanager
def limited(connection: Connection[Any], seconds: float) -> Iterator[None]:
    """Ends the connection if the block takes longer. The statement in it fails then."""
    lock, ended = threading.Lock(), False

    def late() -> None:
        with lock:  # the descriptor belongs to the connection until the block has ended
            if not ended:
                hang_up(connection)

    timer = threading.Timer(max(seconds, 0), late)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        with lock:
            ended = True
        timer.cancel()


def readable(connection: Connection[Any], seconds: float, stop: Event) -> None:
    """Until the server has sent something, or the event is set."""
    end = time.monotonic() + seconds
    with selectors.DefaultSelector() as selector:
        selector.register(connection.fileno(), selectors.EVENT_READ)
        while not stop.is_set() and time.monotonic() < end and not selector.select(0.2):
            pass
