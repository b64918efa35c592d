# Made from _async/lost.py by to_sync.py.
"""The event of something that is held until a deadline, and prolonged before."""

from __future__ import annotations

from time import monotonic
from typing import Protocol

from .io import Event


class Owner(Protocol):
    _deadline: float
    """When it ends on the server at the earliest, by our clock."""
    _released: bool

    def _late(self) -> None:
        """The deadline has passed: sets the event."""


class Lost:
    """An event. It needs no thread or task to be set in time: it looks at the clock."""

    def __init__(self, owner: Owner) -> None:
        self._owner = owner
        self._event = Event()

    def is_set(self) -> bool:
        if not self._event.is_set() and not self._owner._released and monotonic() >= self._owner._deadline:
            self._owner._late()
        return self._event.is_set()

    def set(self) -> None:
        self._event.set()

    def wait(self, timeout: float | None = None) -> bool:
        """Until it is lost, or the seconds are over: whether it is lost."""
        end = float("inf") if timeout is None else monotonic() + timeout
        while not self.is_set() and monotonic() < end:
            until = end if self._owner._released else min(self._owner._deadline, end)
            self._event.wait(max(until - monotonic(), 0.001) if until < float("inf") else None)
        return self.is_set()
