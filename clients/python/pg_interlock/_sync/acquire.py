# Made from _async/acquire.py by to_sync.py.
"""Acquiring a lease: asks until it is granted or the wait is over, and holds no connection meanwhile."""

from __future__ import annotations

import json
import random
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from time import monotonic

from ..errors import Held, interlock_errors, is_lost_connection
from ..values import Row, time_of
from .io import sleep
from .own import Own
from .tickets import Tickets


@dataclass
class Wanted:
    keys: list[str]
    holder: str
    ttl: float
    wait: float
    at_least: str | None
    mode: str
    capacity: int | None
    """Of permits."""


@dataclass
class Granted:
    tokens: list[int]
    expires_at: datetime
    sent: float
    """By our clock, before the request."""
    round_trip: float


_ANSWER = """outcome, holder, to_jsonb(expires_at)#>>'{}' AS expires_at,
    extract(epoch FROM expires_at - clock_timestamp())::text AS remaining"""

_LEASE = f"""SELECT {_ANSWER}, to_json(array_remove(ARRAY[token::text], NULL))::text AS tokens, ticket::text, NULL AS key
  FROM interlock.acquire_lease(%s::text, %s::text::float8, holder => %s::text, mode => %s::text, resume => true,
      at_least => %s::text::float8, notify => %s::text::boolean)"""

_PERMIT = f"""SELECT {_ANSWER}, to_json(array_remove(ARRAY[token::text], NULL))::text AS tokens, ticket::text, NULL AS key
  FROM interlock.acquire_permit(%s::text, %s::text::integer, %s::text::float8, holder => %s::text, resume => true,
      notify => %s::text::boolean)"""

# All or none. The server has tickets for single keys: one for the key that was not free, under a name of its own. If that key has
# become free meanwhile, there is no ticket, and the lease that was granted instead is released.
_ALL = f"""WITH wanted AS (SELECT ARRAY(SELECT jsonb_array_elements_text(%s::text::jsonb)) AS keys),
    answer AS MATERIALIZED (
      SELECT granted.*, coalesce(blocked_by, keys[1]) AS key FROM wanted, interlock.acquire_leases(keys, %s::text::float8,
          holder => %s::text, mode => %s::text, resume => true) AS granted),
    asked AS MATERIALIZED (
      SELECT *, CASE WHEN tokens IS NULL AND %s::text::boolean
          THEN interlock.acquire_lease(key, '1 s', holder => %s::text, mode => %s::text, notify => true) END AS ask FROM answer)
  SELECT {_ANSWER}, coalesce(to_json(tokens::text[])::text, '[]') AS tokens, (ask).ticket::text, key,
      CASE WHEN (ask).token IS NOT NULL THEN interlock.release_lease(key, (ask).token) END::text AS released FROM asked"""


def _statement(wanted: Wanted) -> tuple[str, tuple[str | None, ...]]:
    ttl, holder, notify = str(wanted.ttl), wanted.holder, "true" if wanted.wait > 0 else "false"
    if len(wanted.keys) > 1:
        return _ALL, (json.dumps(wanted.keys), ttl, holder, wanted.mode, notify, _waiter(wanted), wanted.mode)
    key = wanted.keys[0]
    if wanted.capacity is not None:
        return _PERMIT, (key, str(wanted.capacity), ttl, holder, notify)
    return _LEASE, (key, ttl, holder, wanted.mode, wanted.at_least, notify)


def _waiter(wanted: Wanted) -> str:
    """The name of the tickets for several keys: they are withdrawn by it, and the leases stay."""
    return f"{wanted.holder} waits"


def acquire(own: Own, tickets: Tickets, wanted: Wanted) -> Granted:
    """The lease, or Held when the wait is over. What was asked for is withdrawn after an error."""
    limit = monotonic() + wanted.wait
    if wanted.wait > 0:
        tickets.enter()
    try:
        with interlock_errors():
            granted, waited = _acquire_until(limit, own, tickets, wanted)
        if waited and len(wanted.keys) > 1:
            _withdraw(own, wanted, [_waiter(wanted)])
        return granted
    except BaseException as error:
        if not (isinstance(error, Held) and wanted.wait == 0):  # by the name: also a lease whose answer was lost
            _withdraw(own, wanted, [wanted.holder, _waiter(wanted)])
        raise
    finally:
        if wanted.wait > 0:
            tickets.leave()


def _withdraw(own: Own, wanted: Wanted, holders: list[str]) -> None:
    with suppress(Exception):
        own.query(
            """SELECT interlock.release_lease(key, holder => holder)::text
                 FROM jsonb_array_elements_text(%s::text::jsonb) AS key, jsonb_array_elements_text(%s::text::jsonb) AS holder""",
            (json.dumps(wanted.keys), json.dumps(holders)),
            5,
        )


def _acquire_until(limit: float, own: Own, tickets: Tickets, wanted: Wanted) -> tuple[Granted, bool]:
    """And whether it had a ticket."""
    ticket: str | None = None
    try:
        while True:
            answer, sent, round_trip = _ask(own, wanted, limit)
            if tokens := json.loads(answer["tokens"]):
                return Granted([int(each) for each in tokens], time_of(answer["expires_at"]), sent, round_trip), ticket is not None
            if monotonic() >= limit:
                raise _held(answer["key"] or wanted.keys[0], answer)
            if answer["ticket"] is None:  # of several keys: what was in the way is gone
                sleep(random.uniform(0, 0.02))
                continue
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
    sql, values = _statement(wanted)
    attempt = 1
    while True:
        sent = monotonic()
        try:
            rows = own.query(sql, values, max(wanted.ttl, 5))
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
