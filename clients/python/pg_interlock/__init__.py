"""Leases with a heartbeat, idempotent endpoints, edit locks and versioned updates in PostgreSQL: the client of pg_interlock."""

from ._async.interlock import AsyncInterlock
from ._async.lease import AsyncLease
from ._sync.interlock import Interlock
from ._sync.lease import Lease
from .errors import (
    BlindUpdate,
    ClaimLost,
    ColumnOwned,
    Failed,
    Held,
    InProgress,
    InterlockError,
    LeaseLost,
    MarkerHeld,
    MarkerLost,
    Mismatch,
    NotEnough,
    NotFound,
    StaleVersion,
    StateChanged,
    TransitionRefused,
    TryAgain,
    as_interlock_error,
    interlock_errors,
)
from .results import LeaseInTheWay, Once
from .values import Duration, Key, RowKey, Version, idempotency_key_text, key_text, seconds

__all__ = [
    "AsyncInterlock",
    "AsyncLease",
    "BlindUpdate",
    "ClaimLost",
    "ColumnOwned",
    "Duration",
    "Failed",
    "Held",
    "InProgress",
    "Interlock",
    "InterlockError",
    "Key",
    "Lease",
    "LeaseInTheWay",
    "LeaseLost",
    "MarkerHeld",
    "MarkerLost",
    "Mismatch",
    "NotEnough",
    "NotFound",
    "Once",
    "RowKey",
    "StaleVersion",
    "StateChanged",
    "TransitionRefused",
    "TryAgain",
    "Version",
    "as_interlock_error",
    "idempotency_key_text",
    "interlock_errors",
    "key_text",
    "seconds",
]
