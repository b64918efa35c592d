# Made from _async/tickets.py by to_sync.py.
"""Waiters for leases: one connection listens for all of them."""

from __future__ import annotations

from .io import Event, Lock
from .own import Own, Subscription


class Tickets:
    def __init__(self, own: Own) -> None:
        self._listener = own.listener
        self._subscription = Subscription("interlock_lease", self._call, self._call_all)
        self._lock = Lock()
        self._waiters = 0
        self._called: dict[str, Event] = {}

    def enter(self) -> None:
        """Somebody waits."""
        with self._lock:
            self._waiters += 1
            if self._waiters == 1:
                self._listener.subscribe(self._subscription)

    def leave(self) -> None:
        with self._lock:
            self._waiters -= 1
            if self._waiters == 0:
                self._listener.unsubscribe(self._subscription)

    def expect(self, ticket: str) -> Event:
        """The event of the ticket. Ask the server again after this call: the ticket may have been called before."""
        called = self._called[ticket] = Event()
        return called

    def forget(self, ticket: str | None) -> None:
        if ticket is not None:
            self._called.pop(ticket, None)

    def _call(self, ticket: str) -> None:
        if (called := self._called.get(ticket)) is not None:
            called.set()

    def _call_all(self) -> None:
        for called in list(self._called.values()):
            called.set()
