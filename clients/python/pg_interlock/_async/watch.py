"""Who edits the rows of a table, now and after each change."""

from __future__ import annotations

from collections.abc import AsyncIterator
from time import monotonic

from ..errors import interlock_errors
from ..results import Editing
from ..values import Row, from_json, time_of
from .driver import AsyncQuery
from .io import Event
from .own import Own, Subscription


async def watch(query: AsyncQuery, own: Own, rel: str, every: float) -> AsyncIterator[list[Editing]]:
    changed = Event()
    subscription = Subscription("interlock_row_lock", lambda _: changed.set(), changed.set)
    await own.listener.subscribe(subscription)
    try:
        last: list[Editing] | None = None
        while True:
            changed.clear()  # before the question: what changes after it is asked for again
            sent = monotonic()
            editing, until = await _editing(query, rel)
            if editing != last:
                last = editing
                yield editing
            # An expiry sends nothing where no sweeper runs, and no notification comes from a table without `notify`.
            await changed.wait(max(min(until, every) - (monotonic() - sent), 0.1))
    finally:
        await own.listener.unsubscribe(subscription)


async def _editing(query: AsyncQuery, rel: str) -> tuple[list[Editing], float]:
    """What is held, and the seconds until the first of it expires."""
    with interlock_errors():
        rows = await query(
            """SELECT key::text, holder, to_jsonb(locked_at)#>>'{}' AS since, to_jsonb(expires_at)#>>'{}' AS expires_at, reason,
                   extract(epoch FROM expires_at - clock_timestamp())::text AS length
                 FROM interlock.row_locks WHERE rel = %s::text::regclass AND live ORDER BY key""",
            (rel,),
        )
    return [_one(row) for row in rows], min((float(row["length"]) for row in rows), default=float("inf"))


def _one(row: Row) -> Editing:
    since = None if row["since"] is None else time_of(row["since"])
    return Editing(from_json(row["key"] or "null"), row["holder"], since, time_of(row["expires_at"]), row["reason"])
