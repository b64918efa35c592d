# Made from _async/driver.py by to_sync.py.
"""What this package needs of a driver. Statements have %s as placeholders, and return texts only: each column is cast."""

from __future__ import annotations

from collections.abc import Iterator, Callable, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Protocol, TypeVar, Union

from psycopg import Connection, Cursor, ProgrammingError
from psycopg.errors import InFailedSqlTransaction
from psycopg.pq import TransactionStatus
from psycopg.rows import dict_row, tuple_row

from ..values import Row

Tx = TypeVar("Tx")
Query = Callable[[str, Sequence[Any]], list[Row]]


class Driver(Protocol[Tx]):
    """Where transactions come from: a pool or a connection of psycopg, or what an ORM has."""

    def transaction(self, isolation: str | None = None) -> AbstractContextManager[Tx]:
        """BEGIN, the block, COMMIT. What is raised rolls back."""

    def within(self, tx: Tx) -> Query:
        """Statements of the transaction."""

    def query(self, sql: str, values: Sequence[Any]) -> list[Row]:
        """A statement in a transaction of its own."""

    def connect(self) -> Connection[Any]:
        """A connection of our own, in autocommit mode."""


class Pool(Protocol):
    """A pool of psycopg_pool."""

    conninfo: Any
    kwargs: Any

    def connection(self, timeout: float | None = None) -> AbstractContextManager[Connection[Any]]:
        """A connection for a block."""


class Psycopg:
    """psycopg 3."""

    def __init__(self, pool: Union[Pool, Connection[Any]], own: str | None) -> None:
        self._pool = pool
        self._own: tuple[str, dict[str, Any]]
        if own is not None:
            self._own = (own, {})
        elif isinstance(pool, Connection):
            self._own = ("", {**pool.info.get_parameters(), "password": pool.info.password or None})
        elif hasattr(pool, "connection") and isinstance(getattr(pool, "conninfo", None), str):
            self._own = (pool.conninfo, dict(pool.kwargs or {}))
        else:
            raise TypeError("Interlock() takes a pool of psycopg_pool or a connection of psycopg; own= says how to connect")

    @contextmanager
    def transaction(self, isolation: str | None = None) -> Iterator[Connection[Any]]:
        with self._borrowed() as connection:
            if connection.info.transaction_status != TransactionStatus.IDLE:
                raise ProgrammingError("the connection is in a transaction already, or closed: commit before this call")
            with connection.transaction():
                if isolation is not None:
                    connection.execute(f"SET TRANSACTION ISOLATION LEVEL {_level(isolation)}")
                yield connection
                if connection.info.transaction_status == TransactionStatus.INERROR:
                    raise InFailedSqlTransaction("a statement in the transaction has failed, and its error was not raised")

    @contextmanager
    def _borrowed(self) -> Iterator[Connection[Any]]:
        if isinstance(self._pool, Connection):
            yield self._pool
            return
        with self._pool.connection() as connection:
            yield connection

    def within(self, tx: Connection[Any]) -> Query:
        def query(sql: str, values: Sequence[Any]) -> list[Row]:
            return rows_of(tx, sql, values)

        return query

    def query(self, sql: str, values: Sequence[Any]) -> list[Row]:
        with self.transaction() as tx:
            return rows_of(tx, sql, values)

    def connect(self) -> Connection[Any]:
        return connect(*self._own)


def connect(conninfo: str, options: dict[str, Any]) -> Connection[Any]:
    """A connection with the options of the application's. A server that accepts it and says nothing must not keep us for ever."""
    ours = {"autocommit": True, "row_factory": tuple_row, "cursor_factory": Cursor, "connect_timeout": 5}
    connection: Connection[Any] = Connection.connect(conninfo, **{**options, **ours})
    return connection


def rows_of(connection: Connection[Any], sql: str, values: Sequence[Any]) -> list[Row]:
    # A cursor of our own: the application's may have another row factory or other placeholders.
    with Cursor(connection, row_factory=dict_row) as cursor:
        cursor.execute(sql, values)
        return cursor.fetchall() if cursor.description else []


def _level(isolation: str) -> str:
    level = isolation.upper()
    if level not in ("READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"):
        raise ValueError(f"there is no isolation level {isolation!r}")
    return level
