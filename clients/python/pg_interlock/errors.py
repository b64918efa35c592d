"""Errors as classes, by SQLSTATE."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from typing import Any, ClassVar

from .values import JsonRow, Version, from_json, time_of, version_of


class InterlockError(Exception):
    """A conflict. `status` is the HTTP status of its answer. `sqlstate` is '' for an outcome that is no error of the server."""

    status: ClassVar[int] = 500

    def __init__(self, message: str, *, sqlstate: str = "", detail: Mapping[str, Any] | None = None, hint: str | None = None):
        super().__init__(message)
        self.sqlstate = sqlstate
        self.detail: dict[str, Any] = dict(detail or {})
        self.hint = hint
        self.retry_after: int | None = None
        """Seconds after which a repetition can succeed, where that is known."""
        self.current: JsonRow | None = None
        """The row as it is now, where the call has read it."""
        self.version: Version | None = None
        """The version of the row now, where it is known."""

    @property
    def headers(self) -> dict[str, str]:
        """Headers of an answer."""
        return {} if self.retry_after is None else {"Retry-After": str(self.retry_after)}

    def as_dict(self) -> dict[str, Any]:
        """What an answer says of it."""
        known = {"type": type(self).__name__, "status": self.status, "title": str(self), "detail": self.detail}
        more = {"hint": self.hint, "retry_after": self.retry_after, "current": self.current, "version": self.version}
        return known | {name: value for name, value in more.items() if value is not None}


class StaleVersion(InterlockError):
    """IL001, 409: another writer has moved the row's version. `current` and `version` are those of now, where they were read."""

    status = 409

    def __init__(self, message: str, **fields: Any):
        super().__init__(message, **fields)
        self.conflicts: list[str] | None = None
        """Columns that both sides have changed, after a save with `base`."""


class TransitionRefused(InterlockError):
    """IL002, 422: the transition is not declared, or a guard refuses it."""

    status = 422

    @property
    def reason(self) -> str | None:
        """The text of the guard."""
        return self.detail.get("reason")


class StateChanged(InterlockError):
    """IL003, 409: the row is in another state, or does not match."""

    status = 409

    @property
    def state(self) -> str | None:
        """The state of the row now."""
        return self.detail.get("state")


class _Holder(InterlockError):
    @property
    def holder(self) -> str | None:
        return self.detail.get("holder")

    @property
    def expires_at(self) -> datetime | None:
        text = self.detail.get("expires_at")
        return None if text is None else time_of(text)


class MarkerHeld(_Holder):
    """IL004, 423: another holder has the marker of the row."""

    status = 423


class MarkerLost(_Holder):
    """IL005, 409: the caller has lost its marker. `holder` is who has it now, where that is known."""

    status = 409


class LeaseLost(InterlockError):
    """IL006, 409: the caller has lost its lease, or could not renew it in time."""

    status = 409


class ColumnOwned(InterlockError):
    """IL007, 403: the column belongs to another writer."""

    status = 403


class ClaimLost(InterlockError):
    """IL008, 409: a claim was taken over or has ended, or a reservation has."""

    status = 409


class BlindUpdate(InterlockError):
    """IL011, 500: a statement that does not compare the row's version."""


class NotEnough(InterlockError):
    """IL012, 409: not enough is left."""

    status = 409

    @property
    def pending(self) -> bool:
        """Whether there may be enough once open transactions or reservations have ended."""
        return self.detail.get("outcome") == "pending"

    @property
    def short(self) -> list[dict[str, Any]]:
        """The items of a cart that cannot be reserved, each with its `outcome` and with what `remaining`."""
        return self.detail.get("short") or []


class NotFound(InterlockError):
    """P0002, 404: there is no such row, or none that the role may see."""

    status = 404


class TryAgain(InterlockError):
    """55P03, 53200, 53400, 40001, 40P01 and a session that was ended, 503: the whole transaction may be repeated."""

    status = 503


class Held(_Holder):
    """423: the lease is held by another client."""

    status = 423

    @property
    def recovering(self) -> bool:
        """Whether the server grants no lease, because it has crashed shortly before."""
        return self.detail.get("outcome") == "recovering"


class InProgress(InterlockError):
    """409: another call works under the idempotency key. `retry_after` has the seconds to its deadline."""

    status = 409


class Mismatch(InterlockError):
    """422: the idempotency key was used with another request."""

    status = 422


class Failed(InterlockError):
    """500: the work under the key has failed for good, or was tried as often as its scope allows."""


_CLASSES: dict[str, type[InterlockError]] = {
    "IL001": StaleVersion,
    "IL002": TransitionRefused,
    "IL003": StateChanged,
    "IL004": MarkerHeld,
    "IL005": MarkerLost,
    "IL006": LeaseLost,
    "IL007": ColumnOwned,
    "IL008": ClaimLost,
    "IL011": BlindUpdate,
    "IL012": NotEnough,
    "P0002": NotFound,
    **dict.fromkeys(("55P03", "53200", "53400", "40001", "40P01", "57P01"), TryAgain),
}


def as_interlock_error(error: BaseException) -> BaseException:
    """The error as a class of this package, by its SQLSTATE. Another error is returned unchanged. The error of an ORM is looked
    through: `orig` of SQLAlchemy, `__cause__` of Django."""
    each: BaseException | None = error
    seen: set[int] = set()
    while each is not None and id(each) not in seen:
        if isinstance(each, InterlockError):
            return each
        if kind := _CLASSES.get(sqlstate_of(each) or ""):
            return _raised(kind, each)
        seen.add(id(each))
        each = getattr(each, "orig", None) or each.__cause__
    return error


@contextmanager
def interlock_errors() -> Iterator[None]:
    """Errors of statements within are classes of this package: `with interlock_errors(): connection.execute(...)`."""
    try:
        yield
    except Exception as error:
        known = as_interlock_error(error)
        if known is error:
            raise
        raise known from error


def sqlstate_of(error: BaseException) -> str | None:
    """The SQLSTATE of an error of psycopg 3 or 2, or of asyncpg."""
    state = getattr(error, "sqlstate", None) or getattr(error, "pgcode", None)
    return state if isinstance(state, str) else None


def is_lost_connection(error: BaseException) -> bool:
    """Whether the connection was lost or the server cannot be reached: whether the call had an effect is not known then."""
    state = sqlstate_of(error)
    if state:
        return state.startswith(("08", "57P0"))
    return isinstance(error, OSError) or any(
        kind.__name__ in ("OperationalError", "InterfaceError") for kind in type(error).__mro__
    )


def _raised(kind: type[InterlockError], error: BaseException) -> InterlockError:
    message, detail_text, hint = _texts(error)
    detail = _detail(detail_text)
    made = kind(message or str(error), sqlstate=sqlstate_of(error) or "", detail=detail, hint=hint)
    version = detail.get("version")
    made.version = None if version is None else version_of(str(version))
    return made


def _texts(error: BaseException) -> tuple[str | None, str | None, str | None]:
    """Message, detail and hint. SQLAlchemy's error for asyncpg has those of asyncpg as its cause."""
    if diag := getattr(error, "diag", None):
        return diag.message_primary, diag.message_detail, diag.message_hint
    raised = error if hasattr(error, "detail") else error.__cause__
    return getattr(raised, "message", None), getattr(raised, "detail", None), getattr(raised, "hint", None)


def _detail(text: str | None) -> dict[str, Any]:
    if text is None or not re.match(r"\s*\{", text):
        return {}
    try:
        detail = from_json(text)
    except ValueError:
        return {}
    return detail if isinstance(detail, dict) else {}
