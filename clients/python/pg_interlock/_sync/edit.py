# Made from _async/edit.py by to_sync.py.
"""The edit of a row: locked for its holder, touched while there is activity, saved or released."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime
from time import monotonic
from types import TracebackType
from typing import Any

from ..errors import MarkerHeld, MarkerLost, StaleVersion, interlock_errors
from ..values import (
    Duration,
    JsonRow,
    Row,
    RowKey,
    Version,
    row_key,
    seconds_text,
    shown_key,
    time_of,
    to_json,
    version_of,
    version_text,
)
from .driver import Query
from .rows import Rows, not_found

_NOT_ALLOWED = """Before the deadline, the table must allow it: enable_marker(rel, take_over => 'allow'), or 'operators' for roles with a \
grant on force_unlock_row."""


def begin(
    query: Query,
    rows: Rows,
    rel: str,
    key: RowKey,
    holder: str,
    ttl: Duration | None,
    reason: str | None,
    take_over: str | None,
) -> Edit:
    named, value = row_key(key)
    row = f"%s::text::regclass, {named}, %s::text, ttl => %s::text::float8, reason => %s::text"
    call = f"SELECT CASE WHEN locked THEN 'locked' ELSE 'refused' END AS outcome, holder, expires_at FROM interlock.lock_row({row})"
    if take_over is not None:
        call = f"SELECT outcome, previous_holder AS holder, expires_at FROM interlock.take_over_row({row})"
    sent = monotonic()
    with interlock_errors():
        found = query(
            f"""SELECT outcome, holder, to_jsonb(expires_at)#>>'{{}}' AS expires_at,
                    extract(epoch FROM expires_at - clock_timestamp())::text AS length FROM ({call}) answer""",
            (rel, value, holder, seconds_text(ttl), take_over if take_over is not None else reason),
        )
    answer = found[0]
    if answer["outcome"] == "not_found":
        raise not_found(rel, key)
    if answer["outcome"] == "refused":
        detail = {"table": rel, "key": key, "holder": answer["holder"], "expires_at": answer["expires_at"]}
        message = f'row {shown_key(key)} of table {rel!r} is being edited by "{answer["holder"]}"'
        raise MarkerHeld(message, sqlstate="IL004", detail=detail, hint=None if take_over is None else _NOT_ALLOWED)
    # Read after it is locked: nobody else has changed it since.
    read = rows.read(rel, key)
    edit = Edit(query, rows, rel, key, holder, seconds_text(ttl), read.row, read.version, answer, sent)
    edit.taken_from = answer["holder"] if answer["outcome"] == "taken" else None
    return edit


class Edit:
    """The marker of one row. `with` releases it."""

    def __init__(
        self,
        query: Query,
        rows: Rows,
        rel: str,
        key: RowKey,
        holder: str,
        ttl: str | None,
        row: JsonRow,
        version: Version | None,
        locked: Row,
        sent: float,
    ) -> None:
        self.rel, self.key, self.holder = rel, key, holder
        self.row = row
        """The row when it was locked."""
        self.version = version
        """Its version, also after a save that keeps it; None if the table has none."""
        self.taken_from: str | None = None
        """From whom it was taken over."""
        self._query, self._rows, self._ttl = query, rows, ttl
        self._held(locked, sent)
        self._ended = False

    def _held(self, row: Row, sent: float) -> None:
        self.expires_at: datetime = time_of(row["expires_at"])
        """When others may take the row, by the server's clock."""
        self._touched, self._length = sent, float(row["length"])

    def touch(self) -> bool:
        """Activity, such as a key: call it as often as you like. The marker is prolonged when a quarter of its time has passed.
        False: it is lost."""
        if self._ended:
            return False
        sent = monotonic()
        if sent < self._touched + self._length / 4:
            return True
        rows = self._call(
            """SELECT to_jsonb(until)#>>'{{}}' AS expires_at, extract(epoch FROM until - clock_timestamp())::text AS length
                 FROM interlock.touch_row(%s::text::regclass, {named}, %s::text, %s::text::float8) AS until""",
            self._ttl,
        )
        if rows[0]["expires_at"] is None:
            self._ended = True
            return False
        self._held(rows[0], sent)
        return True

    def check(self) -> None:
        """Asks the server. Raises MarkerLost with the name of who has it now."""
        rows = self._call(
            """SELECT CASE WHEN locked THEN holder END AS holder
                 FROM interlock.row_lock_of(%s::text::regclass, {named}) WHERE %s::text IS NOT NULL"""
        )
        holder = rows[0]["holder"]
        if self._ended or holder != self.holder:
            self._ended = True
            detail = {"table": self.rel, "key": self.key, "holder": holder}
            message = f'row {shown_key(self.key)} of table {self.rel!r} is no longer held by "{self.holder}"'
            raise MarkerLost(message, sqlstate="IL005", detail=detail)

    def save(self, changes: Mapping[str, Any], expected: Version | None = None, *, keep: bool = False) -> Version | None:
        """Writes the changes and releases the row. With `keep` the marker stays, for another of the table's ttl: an autosave.
        `expected` is the version that the editor began with, by default that of the row when it was locked, or of the last save.
        Raises StaleVersion with the row of now: the marker stays then; MarkerLost."""
        expected = self.version if expected is None else expected
        more = () if expected is None else (version_text(expected),)
        try:
            rows = self._call(
                "SELECT interlock.save_row(%s::text::regclass, {named}, %s::text, %s::text::jsonb, keep => %s::text::boolean"
                + (", expected => %s::text" if more else "")
                + ")::text AS version",
                to_json(changes),
                to_json(keep),
                *more,
            )
        except MarkerLost:
            self._ended = True
            raise
        except StaleVersion as error:
            found = self._rows.find(self.rel, self.key)
            if found is not None:
                error.current, error.version = found.row, found.version
            raise
        self.version, self._ended = version_of(rows[0]["version"]), not keep
        return self.version

    def release(self) -> bool:
        """Releases the row without a change. False: it was no longer held."""
        if self._ended:
            return False
        self._ended = True
        rows = self._call("SELECT interlock.unlock_row(%s::text::regclass, {named}, %s::text)::text AS held")
        return bool(rows[0]["held"] == "true")

    def __enter__(self) -> Edit:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        with suppress(Exception):  # it ends by itself
            self.release()

    def _call(self, sql: str, *more: str | None) -> list[Row]:
        named, value = row_key(self.key)
        with interlock_errors():
            return self._query(sql.format(named=named), (self.rel, value, self.holder, *more))
