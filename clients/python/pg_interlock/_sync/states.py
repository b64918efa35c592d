# Made from _async/states.py by to_sync.py.
"""The states of a row: which may follow, and the change from one to another."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Union

from ..errors import InterlockError, StateChanged, TransitionRefused, interlock_errors
from ..results import NextState, RowState
from ..values import RowKey, key_value, row_key, shown_key, to_json
from .driver import Query
from .rows import Rows, not_found

State = Union[str, int, bool]


class States:
    def __init__(self, query: Query, rows: Rows, rel: str, column: str | None) -> None:
        self._query, self._rows, self._rel, self._column = query, rows, rel, column

    def of(self, key: RowKey) -> RowState:
        """The state of the row, and those that may follow: the buttons of a page. Raises NotFound."""
        row = (self._rows.read(self._rel, key)).row
        named, value = row_key(key)
        with interlock_errors():
            column = self._column or self._only_column()
            found = self._query(
                f"SELECT state, allowed::text, reason FROM interlock.next_states(%s::text::regclass, {named}, %s::text::name)",
                (self._rel, value, column),
            )
        state = None if row.get(column) is None else key_value(row[column])
        return RowState(state, [NextState(each["state"], each["allowed"] == "true", each["reason"]) for each in found], row)

    def move(
        self,
        key: RowKey,
        before: State | Sequence[State],
        after: State,
        changes: Mapping[str, Any] | None = None,
        match: Mapping[str, Any] | None = None,
    ) -> None:
        """Moves the row from one state, or one of several, to another. `changes` are columns that change with it; `match` are columns
        and the values that they must still have. Raises StateChanged with the row of now, TransitionRefused with the guard's reason,
        NotFound."""
        named, value = row_key(key)
        several = not isinstance(before, (str, int))
        states = to_json([key_value(each) for each in before]) if not isinstance(before, (str, int)) else key_value(before)
        with interlock_errors():
            rows = self._query(
                f"""SELECT outcome, state, current::text, reason FROM interlock.try_transition(%s::text::regclass, {named},
                        {"ARRAY(SELECT jsonb_array_elements_text(%s::text::jsonb))" if several else "%s::text"}, %s::text,
                        %s::text::jsonb, %s::text::name, %s::text::jsonb)""",
                (self._rel, value, states, key_value(after), to_json(changes or {}), self._column, to_json(match or {})),
            )
        row = rows[0]
        if row["outcome"] == "transitioned":
            return
        if row["outcome"] == "not_found":
            raise not_found(self._rel, key)
        detail = {"table": self._rel, "key": key, "to": after, **{name: row[name] for name in ("state", "outcome", "reason")}}
        what, reason = f"row {shown_key(key)} of table {self._rel!r}", f": {row['reason']}" if row["reason"] else ""
        error: InterlockError
        if row["outcome"] == "not_allowed":
            error = TransitionRefused(
                f'{what} cannot go from "{row["state"]}" to "{after}"{reason}', sqlstate="IL002", detail=detail
            )
        else:
            other = ", and does not match" if row["outcome"] == "no_match" else ""
            error = StateChanged(f'{what} is in state "{row["state"]}"{other}', sqlstate="IL003", detail=detail)
        error.current = self._rows.row(self._rel, row["current"])
        raise error

    def _only_column(self) -> str:
        rows = self._query(
            "SELECT DISTINCT state_column::text FROM interlock.transitions WHERE rel = %s::text::regclass", (self._rel,)
        )
        if len(rows) != 1:
            several = "has several state columns: name one" if rows else "has no transitions"
            raise TypeError(f"table {self._rel!r} {several}")
        return str(rows[0]["state_column"])
