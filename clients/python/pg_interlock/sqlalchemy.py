"""SQLAlchemy: models with versions, the calls of Interlock in the transactions of sessions, and a hook for Alembic."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import psycopg
from psycopg.conninfo import make_conninfo
from sqlalchemy import BigInteger, Column, FetchedValue, text
from sqlalchemy.orm import declared_attr
from sqlalchemy.orm.exc import StaleDataError

from ._sync.driver import Query, connect
from ._sync.interlock import Interlock
from .errors import StaleVersion
from .values import Row


class Versioned:
    """A mixin for declarative models: a flush of a row that another writer has moved raises StaleDataError, which il.transaction()
    and the others raise as StaleVersion. The table is one with `interlock.enable_versioning('TABLE')`."""

    @declared_attr
    def version(cls) -> Any:
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


class SqlalchemyDriver:
    """Transactions of sessions. Their `tx` is the session."""

    def __init__(self, sessions: Callable[[], Any], own: str | None) -> None:
        self._sessions, self._own = sessions, own

    @contextmanager
    def transaction(self, isolation: str | None = None) -> Iterator[Any]:
        with self._sessions() as session:
            try:
                with session.begin():
                    if isolation is not None:
                        session.connection(execution_options={"isolation_level": isolation.upper()})
                    yield session
            except StaleDataError as error:
                raise StaleVersion(str(error), sqlstate="IL001") from error

    def within(self, tx: Any) -> Query:
        def query(sql: str, values: Sequence[Any]) -> list[Row]:
            result = tx.connection().exec_driver_sql(sql, tuple(values))
            return [dict(row) for row in result.mappings()] if result.returns_rows else []

        return query

    def query(self, sql: str, values: Sequence[Any]) -> list[Row]:
        with self.transaction() as session:
            return self.within(session)(sql, values)

    def connect(self) -> psycopg.Connection[Any]:
        if self._own is not None:
            return connect(self._own, {})
        with self._sessions() as session:
            url = session.get_bind().url
        named = {"host": url.host, "port": url.port, "user": url.username, "password": url.password, "dbname": url.database}
        return connect(make_conninfo(**{name: value for name, value in {**url.query, **named}.items() if value}), {})


def interlock(sessions: Callable[[], Any], *, own: str | None = None, name: str | None = None) -> Interlock[Any]:
    """The Interlock of a sessionmaker: leases, once(), update(), edit() and the others. It opens up to three connections of its own,
    with psycopg 3, as the URL of the engine says, or `own`, a conninfo."""
    return Interlock(SqlalchemyDriver(sessions, own), name=name)


_MARKER = {"lock_status", "lock_by", "lock_time", "lock_until", "lock_reason"}


def include_object(object: Any, name: str | None, type_: str, reflected: bool, compare_to: Any) -> bool:
    """For context.configure() of Alembic: autogenerate does not drop what the extension has added to a table."""
    ours = name in _MARKER or (name or "").endswith(("_history", "_interlock_sweep_idx"))
    return not (ours and reflected and compare_to is None)
