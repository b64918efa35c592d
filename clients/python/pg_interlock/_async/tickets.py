"""Waiters for leases: one connection listens for all of them."""

from __future__ import annotations

from .io import Event, Lock
from .own import Listener, Own


class Tickets:
    def __init__(self, own: Own) -> None:
        self._own = own
        self._lock = Lock()
        self._called: dict[str, Event] = {}
        self._listener: Listener | None = None

    async def enter(self) -> None:
        """Before the first question: somebody waits."""
        async with self._lock:
            if self._listener is None:
                self._listener = self._own.listen("interlock_lease", self._call, self._call_all)

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
