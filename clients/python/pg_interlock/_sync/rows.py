# Made from _async/rows.py by to_sync.py.
"""Rows by their key: read, save, update with retry."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from ..errors import NotFound, StaleVersion, interlock_errors, sqlstate_of
from ..results import Updated, Versioned
from ..values import JsonRow, Row, RowKey, Version, from_json, key_value, row_from_json, row_key, shown_key, to_json, version_of
from ..values import version_text
from .driver import Query
from .io import sleep


@dataclass(frozen=True)
class Table:
    """What the catalog says of a table, for rows that are named by these columns of a unique key."""

    name: str
    version: str | None
    kind: type
    """Of a version of the table."""
    numerics: list[str]
    floats: list[str]
    times: list[str]
    columns: list[tuple[str, str]]
    """Names of the key's columns, and their types."""


class Rows:
    def __init__(self, query: Query) -> None:
        self._query = query
        self._tables: dict[tuple[str, tuple[str, ...] | None], Table] = {}

    def find(self, rel: str, key: RowKey) -> Versioned | None:
        """None: there is no such row, or none that the role may see."""
        with interlock_errors():
            try:
                return self._find(rel, key)
            except Exception as error:
                # The table may have been altered since its columns were read.
                if (sqlstate_of(error) or "")[:2] not in ("42", "22") or self._tables.pop(_table_id(rel, key), None) is None:
                    raise
            return self._find(rel, key)

    def read(self, rel: str, key: RowKey) -> Versioned:
        found = self.find(rel, key)
        if found is None:
            raise not_found(rel, key)
        return found

    def save(
        self, rel: str, key: RowKey, expected: Version, changes: Mapping[str, Any], base: Mapping[str, Any] | None = None
    ) -> Version:
        """The new version. Raises StaleVersion with the row of now, NotFound."""
        named, value = row_key(key)
        merge = (None, "report") if base is None else (to_json(base), "merge")
        with interlock_errors():
            rows = self._query(
                f"""SELECT outcome, version::text, current::text, to_json(conflicts)::text AS conflicts
                      FROM interlock.try_versioned_update(%s::text::regclass, {named}, %s::text, %s::text::jsonb,
                          %s::text::jsonb, %s::text)""",
                (rel, value, version_text(expected), to_json(changes), *merge),
            )
        if rows[0]["outcome"] == "conflict":
            raise self.stale(rel, key, expected, rows[0])
        return new_version(rel, key, rows[0])

    def update(self, rel: str, key: RowKey, change: Callable[[JsonRow], Mapping[str, Any] | None], attempts: int) -> Updated:
        """Reads, calls change(row), saves; again after another writer was faster."""
        found = self.read(rel, key)
        for attempt in range(1, attempts + 1):
            if found.version is None:
                raise TypeError(f"table {rel!r} has no versions: its owner calls interlock.enable_versioning({rel!r})")
            changes = change(found.row)
            if not changes:
                return Updated(found.version, attempt)
            try:
                return Updated(self.save(rel, key, found.version, changes), attempt)
            except StaleVersion as error:
                if attempt == attempts:
                    raise
                known = error
            # Those who meet again and again wait a little, each another time.
            sleep(random.uniform(0, 0.005 * attempt) if attempt > 2 else 0)
            whole = known.current is not None and known.version is not None
            found = Versioned(known.current or {}, known.version) if whole else self.read(rel, key)
        raise ValueError("an update needs at least one attempt")

    def can_be(self, rel: str, version: Version) -> bool:
        """Whether rows of the table can have the version."""
        return isinstance(version, (self._table(rel, {})).kind)

    def row(self, rel: str, text: str | None) -> JsonRow | None:
        """A row that a function has returned, as find() returns it."""
        return None if text is None else _row(self._table(rel, {}), text)

    def stale(self, rel: str, key: RowKey, expected: Version | None, row: Row) -> StaleVersion:
        """The error of a row that has another version, with the row as it is now."""
        found = row["version"]
        error = StaleVersion(
            f"row {shown_key(key)} of table {rel!r} has another version: expected {expected}, found {found}",
            sqlstate="IL001",
            detail={"table": rel, "key": key, "expected": expected, "version": version_of(found)},
        )
        error.current, error.version = self.row(rel, row["current"]), version_of(found)
        if row.get("conflicts"):
            error.conflicts = from_json(row["conflicts"])
        return error

    def _find(self, rel: str, key: RowKey) -> Versioned | None:
        table = self._table(rel, key)
        conditions = " AND ".join(f"t.{_quoted(name)} = %s::text::{type}" for name, type in table.columns)
        version = "NULL" if table.version is None else f"t.{_quoted(table.version)}::text"
        values = [key_value(key[name] if isinstance(key, Mapping) else key) for name, _ in table.columns]
        rows = self._query(
            f"SELECT to_jsonb(t.*)::text AS row, {version} AS version FROM {_plain(table.name)} t WHERE {conditions}", values
        )
        return Versioned(_row(table, rows[0]["row"]), version_of(rows[0]["version"])) if rows else None

    def _table(self, rel: str, key: RowKey) -> Table:
        id = _table_id(rel, key)
        if id not in self._tables:
            if len(self._tables) > 1000:
                self._tables.clear()
            self._tables[id] = self._describe(rel, key)
        return self._tables[id]

    # A mapping without a column: the table alone.
    def _describe(self, rel: str, key: RowKey) -> Table:
        names = list(key) if isinstance(key, Mapping) else None
        rows = self._query(
            """SELECT c.oid::regclass::text AS rel, interlock.configuration(c.oid)->'versioning'->>'version_column' AS version,
                   a.attname::text AS name, format_type(a.atttypid, a.atttypmod) AS type,
                   coalesce(nullif(y.typbasetype, 0), y.oid)::regtype::text AS base,
                   (CASE WHEN %s::text IS NULL THEN a.attnum = ANY (i.indkey) ELSE %s::text::jsonb ? a.attname::text END)::text AS is_key
                 FROM pg_class c LEFT JOIN pg_index i ON i.indrelid = c.oid AND i.indisprimary
                 JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
                 JOIN pg_type y ON y.oid = a.atttypid
                WHERE c.oid = %s::text::regclass""",
            (*[None if names is None else to_json(names)] * 2, rel),
        )
        columns = [(row["name"], row["type"]) for row in rows if row["is_key"] == "true"]
        if names is not None and len(columns) != len(names):
            raise TypeError(f"table {rel!r} has not all of the columns {', '.join(names)}")
        if names is None and len(columns) != 1:
            raise TypeError(f"table {rel!r} has no primary key of one column: name the row by a dict with the columns of a key")
        version = rows[0]["version"] if rows else None

        def of(*types: str) -> list[str]:
            return [row["name"] for row in rows if row["base"] in types]

        times = [name for name in of("timestamp with time zone") if name == version]
        counters = of("integer", "bigint")
        kind = int if version in counters else datetime if times else str
        return Table(rows[0]["rel"] if rows else rel, version, kind, of("numeric"), of("double precision", "real"), times, columns)


def new_version(rel: str, key: RowKey, row: Row) -> Version:
    version = version_of(row["version"])
    if row["outcome"] == "not_found" or version is None:
        raise not_found(rel, key)
    return version


def not_found(rel: str, key: RowKey) -> NotFound:
    return NotFound(f"table {rel!r} has no row {shown_key(key)}", sqlstate="P0002", detail={"table": rel, "key": key})


def _row(table: Table, text: str) -> JsonRow:
    return row_from_json(text, table.numerics, table.floats, table.times)


def _table_id(rel: str, key: RowKey) -> tuple[str, tuple[str, ...] | None]:
    return rel, tuple(sorted(key)) if isinstance(key, Mapping) else None


def _quoted(name: str) -> str:
    return _plain('"' + name.replace('"', '""') + '"')


def _plain(sql: str) -> str:
    return sql.replace("%", "%%")  # of no placeholder
