"""Results that threads and tasks share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any, Generic, TypeVar

from .values import JsonRow, RowKey, Version

T = TypeVar("T")


@dataclass(frozen=True)
class Once(Generic[T]):
    """`outcome` is 'completed', or 'replay': the work was done before. `value` is what the work has returned, as JSON has it; None
    if it was too large to be kept."""

    outcome: str
    value: T


@dataclass(frozen=True)
class Claim:
    """What the server says of an idempotency key."""

    outcome: str
    token: str | None
    response: str | None
    result_id: str | None
    body: bytes | None
    retry_after: int
    left: float = 0
    """Seconds until the deadline."""
    attempt: int = 1
    checkpoint: str | None = None
    state: str | None = None


@dataclass(frozen=True)
class Ran(Generic[T]):
    """`ran`: whether the work has run in this call. `outcome` is 'completed', also by an earlier call, 'in_progress', 'failed' or
    'exhausted'. `result` is what the work has returned, as JSON has it."""

    ran: bool
    outcome: str
    result: T | None = None
    retry_after: int | None = None


@dataclass(frozen=True)
class Stored:
    """An answer as it is kept."""

    response: str | None
    result_id: str | None = None
    body: bytes | None = None


@dataclass(frozen=True)
class LeaseInTheWay:
    """The lease that keeps a key from being acquired."""

    key: str
    mode: str
    holder: str
    since: datetime
    expires_at: datetime
    pinned_by: list[int]


@dataclass(frozen=True)
class Versioned:
    """A row as JSON, and its version; None where the table has none."""

    row: JsonRow
    version: Version | None


@dataclass(frozen=True)
class Updated:
    """The version after an update, and how often it was tried."""

    version: Version
    attempts: int


@dataclass(frozen=True)
class NextState:
    """A state that may follow. `reason` is what a guard says against it, or the privilege that the role lacks."""

    state: str
    allowed: bool
    reason: str | None


@dataclass(frozen=True)
class RowState:
    """The state of a row, and those that may follow: the buttons of a page."""

    state: str | None
    next: list[NextState]
    row: JsonRow


@dataclass(frozen=True)
class Item:
    """Stock of a cart: so much of a counter."""

    rel: str
    key: RowKey
    column: str
    amount: int | Decimal


@dataclass(frozen=True)
class Reservation:
    """Items that are held under one token."""

    token: int
    items: tuple[Item, ...]
    expires_at: datetime

    def as_dict(self) -> dict[str, Any]:
        """As JSON has it, to keep it in a table. A Decimal is text."""
        items = [asdict(item) | ({"amount": str(item.amount)} if isinstance(item.amount, Decimal) else {}) for item in self.items]
        return {"token": self.token, "items": items, "expires_at": self.expires_at.isoformat()}

    @classmethod
    def of(cls, kept: Mapping[str, Any]) -> Reservation:
        """What as_dict() has returned."""
        items = [Item(each["rel"], each["key"], each["column"], _amount(each["amount"])) for each in kept["items"]]
        return cls(kept["token"], tuple(items), datetime.fromisoformat(kept["expires_at"]))


@dataclass(frozen=True)
class Editing:
    """Who edits a row. `key` has the columns of the row's key."""

    key: JsonRow
    holder: str
    since: datetime | None
    expires_at: datetime
    reason: str | None


def _amount(kept: str | int) -> int | Decimal:
    return Decimal(kept) if isinstance(kept, str) else kept
