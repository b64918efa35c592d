"""Leases with a heartbeat, idempotent endpoints, edit locks and versioned updates in PostgreSQL: the client of pg_interlock."""

from ._async.cart import AsyncCart
from ._async.claim import AsyncJob, AsyncWorker
from ._async.driver import AsyncDriver
from ._async.edit import AsyncEdit
from ._async.etag import AsyncEtag
from ._async.interlock import AsyncInterlock
from ._async.job import AsyncRun
from ._async.lease import AsyncLease
from ._async.states import AsyncStates
from ._sync.cart import Cart
from ._sync.claim import Job, Worker
from ._sync.driver import Driver
from ._sync.edit import Edit
from ._sync.etag import Etag
from ._sync.interlock import Interlock
from ._sync.job import Run
from ._sync.lease import Lease
from ._sync.states import States
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
from .etags import EtagAnswer, etag_of, version_of_etag
from .results import Editing, Item, LeaseInTheWay, NextState, Once, Ran, Reservation, RowState, Updated, Versioned
from .values import Duration, JsonRow, Key, RowKey, Version, idempotency_key_text, key_text, seconds

__all__ = [
    "AsyncCart",
    "AsyncDriver",
    "AsyncEdit",
    "AsyncEtag",
    "AsyncInterlock",
    "AsyncJob",
    "AsyncLease",
    "AsyncRun",
    "AsyncStates",
    "AsyncWorker",
    "BlindUpdate",
    "Cart",
    "ClaimLost",
    "ColumnOwned",
    "Driver",
    "Duration",
    "Edit",
    "Editing",
    "Etag",
    "EtagAnswer",
    "Failed",
    "Held",
    "InProgress",
    "Interlock",
    "InterlockError",
    "Item",
    "Job",
    "JsonRow",
    "Key",
    "Lease",
    "LeaseInTheWay",
    "LeaseLost",
    "MarkerHeld",
    "MarkerLost",
    "Mismatch",
    "NextState",
    "NotEnough",
    "NotFound",
    "Once",
    "Ran",
    "Reservation",
    "RowKey",
    "RowState",
    "Run",
    "StaleVersion",
    "StateChanged",
    "States",
    "TransitionRefused",
    "TryAgain",
    "Updated",
    "Version",
    "Versioned",
    "Worker",
    "as_interlock_error",
    "etag_of",
    "idempotency_key_text",
    "interlock_errors",
    "key_text",
    "seconds",
    "version_of_etag",
]
