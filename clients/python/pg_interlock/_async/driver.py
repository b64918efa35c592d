"""What this package needs of a driver. Statements have %s as placeholders, and return texts only: each column is cast."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, Protocol, TypeVar, Union

from psycopg import AsyncConnection, AsyncCursor, ProgrammingError
from psycopg.errors import InFailedSqlTransaction
from psycopg.pq import TransactionStatus
from psycopg.rows import dict_row, tuple_row

from ..values import Row

Tx = TypeVar("Tx")
AsyncQuery = Callable[[str, Sequence[Any]], Coroutine[Any, Any, list[Row]]]


class AsyncDriver(Protocol[Tx]):
    """Where transactions come from: a pool or a connection of psycopg, or what an ORM has."""

    def transaction(self, isolation: str | None = None) -> AbstractAsyncContextManager[Tx]:
        """BEGIN, the block, COMMIT. What is raised rolls back."""

    def within(self, tx: Tx) -> AsyncQuery:
        """Statements of the transaction."""

    async def query(self, sql: str, values: Sequence[Any]) -> list[Row]:
        """A statement in a transaction of its own."""

    async def connect(self) -> AsyncConnection[Any]:
        """A connection of our own, in autocommit mode."""


class AsyncPool(Protocol):
    """A pool of psycopg_pool."""

    conninfo: Any
    kwargs: Any

    def connection(self, timeout: float | None = None) -> AbstractAsyncContextManager[AsyncConnection[Any]]:
        """A connection for a block."""


class AsyncPsycopg:
    """psycopg 3."""

    def __init__(self, pool: Union[AsyncPool, AsyncConnection[Any]], own: str | None) -> None:
        self._pool = pool
        self._own: tuple[str, dict[str, Any]]
        if own is not None:
            self._own = (own, {})
        elif isinstance(pool, AsyncConnection):
            self._own = ("", {**pool.info.get_parameters(), "password": pool.info.password or None})
        elif hasattr(pool, "connection") and isinstance(getattr(pool, "conninfo", None), str):
            self._own = (pool.conninfo, dict(pool.kwargs or {}))
        else:
            raise TypeError("Interlock() takes a pool of psycopg_pool or a connection of psycopg; own= says how to connect")

    @asynccontextmanager
    async def transaction(self, isolation: str | None = None) -> AsyncIterator[AsyncConnection[Any]]:
        async with self._borrowed() as connection:
            if connection.info.transaction_status != TransactionStatus.IDLE:
                raise ProgrammingError("the connection is in a transaction already, or closed: commit before this call")
            async with connection.transaction():
                if isolation is not None:
                    await connection.execute(f"SET TRANSACTION ISOLATION LEVEL {_level(isolation)}")
                yield connection
                if connection.info.transaction_status == TransactionStatus.INERROR:
                    raise InFailedSqlTransaction("a statement in the transaction has failed, and its error was not raised")

    @asynccontextmanager
    async def _borrowed(self) -> AsyncIterator[AsyncConnection[Any]]:
        if isinstance(self._pool, AsyncConnection):
            yield self._pool
            return
        async with self._pool.connection() as connection:
            yield connection

    def within(self, tx: AsyncConnection[Any]) -> AsyncQuery:
        async def query(sql: str, values: Sequence[Any]) -> list[Row]:
            return await rows_of(tx, sql, values)

        return query

    async def query(self, sql: str, values: Sequence[Any]) -> list[Row]:
        async with self.transaction() as tx:
            return await rows_of(tx, sql, values)

    async def connect(self) -> AsyncConnection[Any]:
        return await connect(*self._own)


async def connect(conninfo: str, options: dict[str, Any]) -> AsyncConnection[Any]:
    """A connection with the options of the application's. A server that accepts it and says nothing must not keep us for ever."""
    ours = {"autocommit": True, "row_factory": tuple_row, "cursor_factory": AsyncCursor, "connect_timeout": 5}
    connection: AsyncConnection[Any] = await AsyncConnection.connect(conninfo, **{**options, **ours})
    return connection


async def rows_of(connection: AsyncConnection[Any], sql: str, values: Sequence[Any]) -> list[Row]:
    # A cursor of our own: the application's may have another row factory or other placeholders.
    async with AsyncCursor(connection, row_factory=dict_row) as cursor:
        await cursor.execute(sql, values)
        return await cursor.fetchall() if cursor.description else []


def _level(isolation: str) -> str:
    level = isolation.upper()
    if level not in ("READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"):
        raise ValueError(f"there is no isolation level {isolation!r}")
    return level
