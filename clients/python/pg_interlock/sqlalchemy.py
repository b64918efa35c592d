"""SQLAlchemy: models with versions, the calls of Interlock in the transactions of sessions, with threads or with asyncio, and a hook
for Alembic."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import psycopg
from psycopg.conninfo import make_conninfo
from psycopg.pq import Conninfo
from sqlalchemy import BigInteger, Column, FetchedValue, text
from sqlalchemy.orm import declared_attr
from sqlalchemy.orm.exc import StaleDataError

from ._async.driver import AsyncQuery
from ._async.driver import connect as connect_async
from ._async.interlock import AsyncInterlock
from ._sync.driver import Query, connect
from ._sync.interlock import Interlock
from .errors import StaleVersion
from .values import Row


class Versioned:
    """A mixin for declarative models: a flush of a row that another writer has moved raises StaleDataError, which il.transaction()
    and the others raise as StaleVersion. The table is one with `interlock.enable_versioning('TABLE')`."""

    # SQLAlchemy 2 takes an annotation of its result for one of the column.
    @declared_attr
    def version(cls):  # type: ignore[no-untyped-def]
        table = cls.__table__ if hasattr(cls, "__table__") else None
        arguments = getattr(cls, "__table_args__", None) or {}
        options = arguments if isinstance(arguments, dict) else arguments[-1] if isinstance(arguments[-1], dict) else {}
        schema = table.schema if table is not None else options.get("schema")
        sequence = f"{schema or 'public'}.{cls.__tablename__}_version_start"  # type: ignore[attr-defined]
        first = text(f"interlock.first_version('{sequence}'::text)")
        return Column(BigInteger, server_default=first, server_onupdate=FetchedValue(), nullable=False)

    @declared_attr
    def __mapper_args__(cls) -> Any:
        return {"version_id_col": cls.version, "version_id_generator": False, "eager_defaults": True}


# The last statement of a block, unless the block has ended its transaction itself. The statement raises an error if another one has
# failed and the block has swallowed its error. Otherwise the server would answer COMMIT with a rollback, and nobody would notice.
_STILL_VALID = text("SELECT 1")


class SqlalchemyDriver:
    """Transactions of sessions. Their `tx` is the session."""

    def __init__(self, sessions: Callable[[], Any], own: str | None) -> None:
        self._sessions, self._own = sessions, own

    @contextmanager
    def transaction(self, isolation: str | None = None) -> Iterator[Any]:
        with self._sessions() as session:
            with _stale_errors(), session.begin():
                if isolation is not None:
                    session.connection(execution_options={"isolation_level": isolation.upper()})
                yield session
                if session.in_transaction():
                    session.connection().execute(_STILL_VALID)

    def within(self, tx: Any) -> Query:
        def query(sql: str, values: Sequence[Any]) -> list[Row]:
            return _rows(tx.connection().execute(*_statement(sql, values)))

        return query

    def query(self, sql: str, values: Sequence[Any]) -> list[Row]:
        with self._sessions() as session, session.begin():
            return self.within(session)(sql, values)

    def connect(self) -> psycopg.Connection[Any]:
        if self._own is not None:
            return connect(self._own, {})
        with self._sessions() as session:
            return connect(_conninfo(session.get_bind().url), {})


class AsyncSqlalchemyDriver:
    """The same for sessions of sqlalchemy.ext.asyncio."""

    def __init__(self, sessions: Callable[[], Any], own: str | None) -> None:
        self._sessions, self._own = sessions, own

    @asynccontextmanager
    async def transaction(self, isolation: str | None = None) -> AsyncIterator[Any]:
        async with self._sessions() as session:
            with _stale_errors():
                async with session.begin():
                    if isolation is not None:
                        await session.connection(execution_options={"isolation_level": isolation.upper()})
                    yield session
                    if session.in_transaction():
                        await (await session.connection()).execute(_STILL_VALID)

    def within(self, tx: Any) -> AsyncQuery:
        async def query(sql: str, values: Sequence[Any]) -> list[Row]:
            return _rows(await (await tx.connection()).execute(*_statement(sql, values)))

        return query

    async def query(self, sql: str, values: Sequence[Any]) -> list[Row]:
        async with self._sessions() as session, session.begin():
            return await self.within(session)(sql, values)

    async def connect(self) -> psycopg.AsyncConnection[Any]:
        if self._own is not None:
            return await connect_async(self._own, {})
        async with self._sessions() as session:
            return await connect_async(_conninfo(session.get_bind().url), {})


def interlock(sessions: Callable[[], Any], *, own: str | None = None, name: str | None = None) -> Interlock[Any]:
    """The Interlock of a sessionmaker: leases, once(), update(), edit() and the others. It opens up to three connections of its own,
    with psycopg 3, as the URL of the engine says, or `own`, a conninfo."""
    return Interlock(SqlalchemyDriver(sessions, own), name=name)


def async_interlock(sessions: Callable[[], Any], *, own: str | None = None, name: str | None = None) -> AsyncInterlock[Any]:
    """The same for an async_sessionmaker, or a sessionmaker whose class is AsyncSession. Its `tx` is an AsyncSession."""
    return AsyncInterlock(AsyncSqlalchemyDriver(sessions, own), name=name)


@contextmanager
def _stale_errors() -> Iterator[None]:
    try:
        yield
    except StaleDataError as error:
        raise StaleVersion(str(error), sqlstate="IL001") from error


def _statement(sql: str, values: Sequence[Any]) -> tuple[Any, dict[str, Any]]:
    """A statement with %s as text() with names, which each driver of SQLAlchemy takes with placeholders of its own."""
    # A blank follows each name: text() takes :name::type for no parameter.
    named = {f"value_{number}": value for number, value in enumerate(values)}
    names = iter(named)

    def of_text(found: re.Match[str]) -> str:
        return f":{next(names)} " if found[0] == "%s" else {"%%": "%", ":": "\\:"}.get(found[0], found[0])

    return text(re.sub("%s|%%|::?", of_text, sql)), named


def _rows(result: Any) -> list[Row]:
    return [dict(row) for row in result.mappings()] if result.returns_rows else []


def _conninfo(url: Any) -> str:
    """A conninfo with the options of the URL of an engine. It contains only options of libpq. asyncpg calls sslmode `ssl`. An option of
    the query replaces the same option before the question mark, as in SQLAlchemy."""
    known = {option.keyword.decode() for option in Conninfo.get_defaults()}
    named = {"host": url.host, "port": url.port, "user": url.username, "password": url.password, "dbname": url.database}
    options = {name: value for name, value in named.items() if value}
    for name, value in url.query.items():
        if name == "host":
            options.update(_hosts(value))
        elif name == "port" and not isinstance(value, str):
            options["port"] = ",".join(value)
        else:
            options["sslmode" if name == "ssl" else name] = value if isinstance(value, str) else value[-1]
    return make_conninfo(**{name: value for name, value in options.items() if name in known})


_HOST = re.compile(r"(?:\[(?P<ipv6>.+)\]|(?P<other>/.*?|[^:]*))(?::(?P<port>[0-9]*))?")


def _hosts(value: str | Sequence[str]) -> dict[str, str]:
    """Hosts and ports of `host=a:5432&host=b:5433`, as lists of libpq. An IPv6 address with a port is in brackets."""
    if isinstance(value, str) and value.startswith("/"):
        return {"host": value}  # SQLAlchemy reads a port after a directory only if there are several hosts
    texts = [value] if isinstance(value, str) else value
    found = [(text, _HOST.fullmatch(text)) for text in texts]
    hosts = [parts["ipv6"] or parts["other"] if parts else text for text, parts in found]
    ports = [parts and parts["port"] or "" for text, parts in found]
    return {"host": ",".join(hosts), **({"port": ",".join(ports)} if any(ports) else {})}


_MARKER = {"lock_status", "lock_by", "lock_time", "lock_until", "lock_reason"}


def include_object(object: Any, name: str | None, type_: str, reflected: bool, compare_to: Any) -> bool:
    """For context.configure() of Alembic: autogenerate does not drop what the extension has added to a table."""
    ours = name in _MARKER or (name or "").endswith(("_history", "_interlock_sweep_idx"))
    return not (ours and reflected and compare_to is None)
