# Made from _async/acquire.py by to_sync.py.
"""Acquiring a lease: asks until it is granted or the wait is over, and holds no connection meanwhile."""

from __future__ import annotations

import random
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from time import monotonic

from ..errors import Held, interlock_errors, is_lost_connection
from ..values import Row, time_of
from .io import sleep, unbroken
from .own import Own
from .tickets import Tickets


@dataclass
class Wanted:
    key: str
    holder: str
    ttl: float
    wait: float
    at_least: str | None
    mode: str


@dataclass
class Granted:
    token: int
    expires_at: datetime
    sent: float
    """By our clock, before the request."""
    round_trip: float


_SQL = """SELECT outcome, token::text, holder, ticket::text, to_jsonb(expires_at)#>>'{}' AS expires_at,
    extract(epoch FROM expires_at - clock_timestamp())::text AS remaining
  FROM interlock.acquire_lease(%s::text, %s::text::float8, holder => %s::text, mode => %s::text, resume => true,
      at_least => %s::text::float8, notify => %s::text::boolean)"""


def acquire(own: Own, tickets: Tickets, wanted: Wanted) -> Granted:
    """The lease, or Held when the wait is over. What was asked for is withdrawn after an error."""
    limit = monotonic() + wanted.wait
    if wanted.wait > 0:
        tickets.enter()
    try:
        with interlock_errors():
            return _acquire_until(limit, own, tickets, wanted)
    except BaseException as error:
        if not (isinstance(error, Held) and wanted.wait == 0):
            with suppress(Exception):  # by the name: also a lease whose answer was lost
                own.query("SELECT interlock.release_lease(%s::text, holder => %s::text)::text", (wanted.key, wanted.holder), 5)
        raise


def _acquire_until(limit: float, own: Own, tickets: Tickets, wanted: Wanted) -> Granted:
    ticket: str | None = None
    try:
        while True:
            answer, sent, round_trip = _ask(own, wanted, limit)
            if answer["token"] is not None:
                return Granted(int(answer["token"]), time_of(answer["expires_at"]), sent, round_trip)
            if monotonic() >= limit:
                raise _held(wanted.key, answer)
            if answer["ticket"] != ticket:  # it may have been called before we had its number: ask again
                tickets.forget(ticket)
                ticket = answer["ticket"]
                called = tickets.expect(ticket or "")
                continue
            # A notification can be lost, and an expiry sends none where no sweeper runs.
            pause = min(max(float(answer["remaining"] or 0), 0.5) + random.uniform(0, 0.5), 30)
            called.wait(max(min(pause, limit - monotonic()), 0))
            called.clear()
    finally:
        tickets.forget(ticket)


def _ask(own: Own, wanted: Wanted, limit: float) -> tuple[Row, float, float]:
    # After an answer that was lost it asks under the same name: the server resumes what it has granted.
    notify = "true" if wanted.wait > 0 else "false"
    values = (wanted.key, str(wanted.ttl), wanted.holder, wanted.mode, wanted.at_least, notify)
    attempt = 1
    while True:
        sent = monotonic()
        try:
            rows = own.query(_SQL, values, max(wanted.ttl, 5))
            return rows[0], sent, monotonic() - sent
        except Exception as error:
            if not is_lost_connection(error) or (attempt >= 3 and monotonic() >= limit):
                raise
        sleep(min(0.1 * attempt, 1))
        attempt += 1


def _held(key: str, answer: Row) -> Held:
    recovering = answer["outcome"] == "recovering"
    by = "the server grants no lease shortly after a crash" if recovering else f'"{answer["holder"]}" holds it'
    detail = {name: answer[name] for name in ("outcome", "holder", "expires_at")}
    error = Held(f'lease "{key}" is not free: {by}', detail={"key": key, **detail})
    error.retry_after = max(1, -int(-float(answer["remaining"] or 0) // 1))
    if recovering:
        error.status = 503  # type: ignore[misc]
    return error
