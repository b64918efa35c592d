"""Versions as ETags: what GET, PUT and DELETE of a versioned row answer, in any framework."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..errors import NotFound, StaleVersion, interlock_errors
from ..etags import EtagAnswer, etag_of, expected_of, is_known
from ..values import RowKey, Version, row_key, to_json, version_of, version_text
from .driver import AsyncQuery
from .rows import AsyncRows


class AsyncEtag:
    def __init__(self, rel: str, rows: AsyncRows, query: AsyncQuery) -> None:
        self._rel, self._rows, self._query = rel, rows, query

    async def get(self, key: RowKey, headers: Mapping[str, str]) -> EtagAnswer:
        """200 with the row and its tag; 304 for `If-None-Match` with that tag; 404."""
        found = await self._rows.find(self._rel, key)
        if found is None:
            return EtagAnswer(404)
        if found.version is None:
            raise TypeError(f"table {self._rel!r} has no versions")
        tag = {"ETag": etag_of(found.version)}
        return EtagAnswer(304, tag) if is_known(headers, found.version) else EtagAnswer(200, tag, found.row)

    async def put(self, key: RowKey, headers: Mapping[str, str], changes: Mapping[str, Any]) -> EtagAnswer:
        """Changes columns. `If-Match` has the tag that was read: 200, or 412 with the row of now. `If-None-Match: *` is for a new
        row: 201, or 412. Without either 428."""
        expected = await self._expected(headers)
        if isinstance(expected, EtagAnswer):
            return expected
        if expected is None:
            return await self._insert(key, changes)
        try:
            return EtagAnswer(200, {"ETag": etag_of(await self._rows.save(self._rel, key, expected, changes))})
        except NotFound:
            return EtagAnswer(404)
        except StaleVersion as error:
            return _refused(error)

    async def delete(self, key: RowKey, headers: Mapping[str, str]) -> EtagAnswer:
        """204, 412 with the row of now, 404; without `If-Match` 428."""
        expected = await self._expected(headers)
        if isinstance(expected, EtagAnswer):
            return expected
        if expected is None:
            return EtagAnswer(412)
        named, value = row_key(key)
        with interlock_errors():
            rows = await self._query(
                f"""SELECT outcome, version::text, current::text
                      FROM interlock.try_versioned_delete(%s::text::regclass, {named}, %s::text)""",
                (self._rel, value, version_text(expected)),
            )
        if rows[0]["outcome"] == "conflict":
            return _refused(await self._rows.stale(self._rel, key, expected, rows[0]))
        return EtagAnswer(204 if rows[0]["outcome"] == "deleted" else 404)

    async def _expected(self, headers: Mapping[str, str]) -> EtagAnswer | Version | None:
        expected = expected_of(headers)
        other = isinstance(expected, EtagAnswer) or expected is None or await self._rows.can_be(self._rel, expected)
        return expected if other else EtagAnswer(412)

    async def _insert(self, key: RowKey, values: Mapping[str, Any]) -> EtagAnswer:
        named, value = row_key(key)
        with interlock_errors():
            rows = await self._query(
                f"""SELECT outcome, version::text, current::text
                      FROM interlock.try_versioned_upsert(%s::text::regclass, {named}, NULL::text, %s::text::jsonb)""",
                (self._rel, value, to_json(values)),
            )
        version = version_of(rows[0]["version"])
        tag = {} if version is None else {"ETag": etag_of(version)}
        if rows[0]["outcome"] == "inserted":
            return EtagAnswer(201, tag)
        return EtagAnswer(412, tag, await self._rows.row(self._rel, rows[0]["current"]))


def _refused(error: StaleVersion) -> EtagAnswer:
    return EtagAnswer(412, {} if error.version is None else {"ETag": etag_of(error.version)}, error.current)
