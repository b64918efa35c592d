# Made from _async/interlock.py by to_sync.py.
"""Interlock(pool): all of it on one pool."""

from __future__ import annotations

import json
import os
import socket
import uuid
from collections.abc import Iterator, Callable, Mapping, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Generic, TypeVar, Union, overload

from psycopg import Connection

from ..errors import Held, interlock_errors
from ..results import Editing, LeaseInTheWay, Once, Ran, Reservation, Updated, Versioned
from ..tracing import traced
from ..values import Duration, JsonRow, Key, RowKey, Version, key_text, seconds, seconds_text, time_of
from .acquire import Wanted, acquire
from .cart import Cart
from .claim import Job, Worker, ClaimOptions
from .driver import Driver, Pool, Psycopg, Tx
from .edit import Edit, begin
from .etag import Etag
from .job import Run, job
from .lease import Lease
from .once import once
from .own import Own
from .rows import Rows
from .states import States
from .tickets import Tickets
from .watch import watch

T = TypeVar("T")


class Interlock(Generic[Tx]):
    """The client of pg_interlock on a pool of psycopg_pool, or on one connection, which one caller uses at a time.

    It opens up to three connections of its own: for heartbeats, for other calls of leases, and to listen. They have the options of
    the pool. `own` is another conninfo for them: needed where the pool goes through a pooler in transaction mode. `name` is what
    views show of this program, by default the name of the host.
    """

    @overload
    def __init__(
        self: Interlock[Connection[Any]],
        pool: Union[Pool, Connection[Any]],
        *,
        own: str | None = None,
        name: str | None = None,
    ) -> None:
        ...

    @overload
    def __init__(self, pool: Driver[Tx], *, name: str | None = None) -> None:
        ...

    def __init__(self, pool: Any, *, own: str | None = None, name: str | None = None) -> None:
        self._driver: Driver[Tx] = pool if hasattr(pool, "within") else Psycopg(pool, own)
        self._rows = Rows(self._driver.query)
        self._name = name or socket.gethostname()
        self._begin()

    def _begin(self) -> None:
        self._process = os.getpid()
        self._owned = Own(self._driver.connect)
        self._awaited = Tickets(self._owned)

    def _own(self) -> tuple[Own, Tickets]:
        if self._process != os.getpid():  # it was forked: the connections are the parent's
            self._begin()
        return self._owned, self._awaited

    # --- Leases ---

    @contextmanager
    def lease(
        self,
        key: Key,
        ttl: Duration = 30,
        *,
        wait: Duration = 0,
        at_least: Duration | None = None,
        limit: Duration | None = None,
        mode: str | None = None,
        capacity: int | None = None,
        name: str | None = None,
    ) -> Iterator[Lease[Tx]]:
        """A block under a lease that is renewed at half of its ttl, and released at the end. Raises Held when the wait is over, and
        LeaseLost at the end of a block whose lease was lost."""
        with traced("interlock.lease", key=key_text(key)):
            granted = self.acquire(key, ttl, wait=wait, at_least=at_least, limit=limit, mode=mode, capacity=capacity, name=name)
            with granted as lease:
                yield lease

    @contextmanager
    def try_lease(
        self,
        key: Key,
        ttl: Duration = 30,
        *,
        wait: Duration = 0,
        at_least: Duration | None = None,
        limit: Duration | None = None,
        mode: str | None = None,
        capacity: int | None = None,
        name: str | None = None,
    ) -> Iterator[Lease[Tx] | None]:
        """As lease(), with None instead of Held."""
        try:
            lease = self.acquire(key, ttl, wait=wait, at_least=at_least, limit=limit, mode=mode, capacity=capacity, name=name)
        except Held:
            yield None
            return
        with traced("interlock.lease", key=lease.key):
            with lease:
                yield lease

    def acquire(
        self,
        key: Key,
        ttl: Duration = 30,
        *,
        wait: Duration = 0,
        at_least: Duration | None = None,
        limit: Duration | None = None,
        mode: str | None = None,
        capacity: int | None = None,
        name: str | None = None,
    ) -> Lease[Tx]:
        """The lease alone: call release().

        ttl: how long it lives without a renewal. wait: how long to wait for it at most; a wait needs no connection. at_least: how
        long it stays in the way although it is released, at most ttl. limit: how long it is renewed at most, for work that may never
        end. mode: 'shared' excludes only 'exclusive', the default. capacity: permits; so many clients have the key at the same time.
        All of them give the same number, and neither mode nor at_least. name: what views show of the holder; the process and a random
        part are added.
        """
        if capacity is not None and (mode, at_least) != (None, None):
            raise TypeError("permits have no mode and no at_least")
        return self._acquire([key_text(key)], ttl, wait, at_least, limit, mode, capacity, name)

    @contextmanager
    def lease_all(
        self,
        keys: Sequence[Key],
        ttl: Duration = 30,
        *,
        wait: Duration = 0,
        limit: Duration | None = None,
        mode: str | None = None,
        name: str | None = None,
    ) -> Iterator[Lease[Tx]]:
        """As lease(), under leases on all of the keys or on none. Two calls never wait for each other."""
        with self.acquire_all(keys, ttl, wait=wait, limit=limit, mode=mode, name=name) as lease:
            with traced("interlock.lease", key=lease.key):
                yield lease

    def acquire_all(
        self,
        keys: Sequence[Key],
        ttl: Duration = 30,
        *,
        wait: Duration = 0,
        limit: Duration | None = None,
        mode: str | None = None,
        name: str | None = None,
    ) -> Lease[Tx]:
        """As acquire(), for all of the keys or none. Raises Held, with the key that was not free in `detail`."""
        if isinstance(keys, str) or not keys:
            raise TypeError("give a list of at least one key")
        return self._acquire(list(dict.fromkeys(map(key_text, keys))), ttl, wait, None, limit, mode, None, name)

    def _acquire(
        self,
        keys: list[str],
        ttl: Duration,
        wait: Duration,
        at_least: Duration | None,
        limit: Duration | None,
        mode: str | None,
        capacity: int | None,
        name: str | None,
    ) -> Lease[Tx]:
        own, tickets = self._own()
        length = seconds(ttl)
        # The name is of this call alone: an answer that was lost is asked for again by it.
        holder = f"{name or self._name} {os.getpid()} {uuid.uuid4().hex[:8]}"
        wanted = Wanted(keys, holder, length, seconds(wait), seconds_text(at_least), mode or "exclusive", capacity)
        until = float("inf") if limit is None else seconds(limit)
        with traced("interlock.acquire", key=keys[0]):
            granted = acquire(own, tickets, wanted)
        return Lease(self._driver, own, keys, holder, length, until, granted)

    def lookup(self, key: Key) -> LeaseInTheWay | None:
        """Which lease keeps the key from being acquired; None if nothing does."""
        with interlock_errors():
            rows = self._driver.query(
                """SELECT blocks_key, mode, holder, to_jsonb(since)#>>'{}' AS since, to_jsonb(expires_at)#>>'{}' AS expires_at,
                       to_json(pinned_by)::text AS pinned_by
                     FROM interlock.lease_of(%s::text)""",
                (key_text(key),),
            )
        if not rows:
            return None
        row = rows[0]
        since, expires_at = time_of(row["since"]), time_of(row["expires_at"])
        return LeaseInTheWay(row["blocks_key"], row["mode"], row["holder"], since, expires_at, json.loads(row["pinned_by"] or "[]"))

    # --- Transactions and idempotency ---

    @contextmanager
    def transaction(self, isolation: str | None = None) -> Iterator[Tx]:
        """BEGIN, the block, COMMIT. Errors of conflicts are classes of this package."""
        with interlock_errors():
            with self._driver.transaction(isolation) as tx:
                yield tx

    def once(
        self,
        scope: str,
        key: Key,
        request: Any,
        work: Callable[[Tx], T],
        *,
        wait: Duration = 0,
        ttl: Duration | None = None,
    ) -> Once[T]:
        """The work once for the key, in one transaction with its result: what is written with its argument happens once or not at all.

        `request` tells another request under the same key; None is not compared. Work that raises leaves nothing, and the key is
        free. `wait` is for another call with the key, to get its result; it occupies a connection. Raises InProgress, Mismatch,
        Failed.
        """
        with traced("interlock.once", scope=scope) as span:
            result = once(self._driver, scope, key, request, work, wait, ttl)
            span.set_attribute("interlock.outcome", result.outcome)
            return result

    # --- Rows ---

    def read(self, rel: str, key: RowKey) -> Versioned:
        """The row and its version. Raises NotFound."""
        return self._rows.read(rel, key)

    def save(
        self, rel: str, key: RowKey, version: Version, changes: Mapping[str, Any], *, base: Mapping[str, Any] | None = None
    ) -> Version:
        """Changes a row if its version is the one that was read, and returns the new one. With `base`, the row as it was read,
        columns that only one side has changed are merged. Raises StaleVersion with the row of now, NotFound."""
        with traced("interlock.save", table=rel):
            return self._rows.save(rel, key, version, changes, base)

    def update(
        self, rel: str, key: RowKey, change: Callable[[JsonRow], Mapping[str, Any] | None], *, attempts: int = 20
    ) -> Updated:
        """Reads a row, changes it, and again if another writer was faster. For programs: a person decides after a conflict. `change`
        returns columns and their values, or None to change nothing."""
        with traced("interlock.update", table=rel):
            return self._rows.update(rel, key, change, attempts)

    def etag(self, rel: str) -> Etag:
        """What GET, PUT and DELETE of a versioned row answer, with ETag, If-Match and If-None-Match."""
        return Etag(rel, self._rows, self._driver.query)

    def lock(
        self,
        rel: str,
        key: RowKey,
        holder: str,
        ttl: Duration | None = None,
        *,
        reason: str | None = None,
        take_over: str | None = None,
    ) -> Edit:
        """As edit(), without a block: call save() or release()."""
        return begin(self._driver.query, self._rows, rel, key, holder, ttl, reason, take_over)

    @contextmanager
    def edit(
        self,
        rel: str,
        key: RowKey,
        holder: str,
        ttl: Duration | None = None,
        *,
        reason: str | None = None,
        take_over: str | None = None,
    ) -> Iterator[Edit]:
        """A block in which the row is locked for editing. Use user and tab as the holder, such as 'anna/7f3a'. `take_over` is a
        reason, which is audited, to take the row from its holder; the table says who may do so. Raises MarkerHeld with the name of
        who edits it, NotFound."""
        with self.lock(rel, key, holder, ttl, reason=reason, take_over=take_over) as edit:
            yield edit

    def watch(self, rel: str, *, every: Duration = 30) -> Iterator[list[Editing]]:
        """Who edits what: the rows of the table that are held now, and again after each change. With `notify => 'on'` of the marker a
        change is seen at once, else after `every`. It needs no connection while nothing changes."""
        return watch(self._driver.query, self._own()[0], rel, seconds(every))

    def claim(
        self,
        rel: str,
        handle: Callable[[Job[Tx]], Mapping[str, Any] | None],
        *,
        match: Mapping[str, Any] | None = None,
        order: str | None = None,
        ttl: Duration | None = None,
        concurrency: int = 1,
        every: Duration = 1,
        channel: str | None = None,
        name: str | None = None,
        on_error: Callable[[Exception, JsonRow], None] | None = None,
    ) -> Worker[Tx]:
        """A worker: run() claims rows of a table with markers and calls `handle` for each, until stop().

        A job whose handler has not called done() or release() ends with it: None deletes the row, a mapping is saved in it. A job that
        raises stays hidden until its deadline, and is then tried again; on_error(error, row) is called, or the error is logged.

        match: columns of the rows and their values. order: the column whose least value comes first. ttl: how long a job is hidden
        without a sign of life. concurrency: how many jobs at once. every: how often to query for new rows while there are none.
        channel: a NOTIFY on it says that there are new rows.
        """
        options = ClaimOptions(
            match or {}, order, seconds_text(ttl), concurrency, seconds(every), channel, name or self._name, on_error
        )
        return Worker(self._driver, self._own()[0], self._rows, rel, handle, options)

    def cart(self, holder: str, ttl: Duration, reservations: Sequence[Reservation] = ()) -> Cart[Tx]:
        """Stock that is held for a cart until a deadline, ttl from now. `reservations` are those of an earlier one."""
        return Cart(self._driver, holder, ttl, reservations)

    def states(self, rel: str, column: str | None = None) -> States:
        """Transitions of a table. Name the column if it has several with states."""
        return States(self._driver.query, self._rows, rel, column)

    def job(
        self,
        scope: str,
        key: Key,
        work: Callable[[Run[Tx]], T],
        *,
        request: Any = None,
        ttl: Duration | None = None,
        stale_after: Duration | None = None,
    ) -> Ran[T]:
        """Work that runs once for the key, across all workers, and may take long. It is claimed, and kept by a heartbeat; a worker that
        dies is taken over after `stale_after`, and the next attempt continues at the last checkpoint. Work that raises is tried again
        by the next call, as often as the scope's max_attempts says. Raises what the work raises, ClaimLost, Mismatch."""
        with traced("interlock.job", scope=scope) as span:
            result = job(self._driver, self._own()[0], scope, key, work, request, ttl, stale_after)
            span.set_attribute("interlock.outcome", result.outcome)
            return result

    def close(self) -> None:
        """Ends our own connections. The pool stays open."""
        own, _ = self._own()
        own.close()

    def __enter__(self) -> Interlock[Tx]:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()
