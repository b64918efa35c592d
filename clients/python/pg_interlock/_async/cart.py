"""A cart: stock of escrow counters that is held until a deadline, for all of its items or none."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from decimal import Decimal
from typing import Any, Generic

from ..errors import ClaimLost, InterlockError, NotEnough, NotFound, interlock_errors
from ..results import Item, Reservation
from ..values import Duration, from_json, seconds, seconds_text, shown_key, time_of, to_json
from .driver import AsyncDriver, AsyncQuery, Tx


class AsyncCart(Generic[Tx]):
    def __init__(self, driver: AsyncDriver[Tx], holder: str, ttl: Duration, reservations: Sequence[Reservation]) -> None:
        self.holder = holder
        self.reservations = list(reservations)
        """What is held. Give it to cart() again in another process. Keep the tokens on the server: who has one can end the
        reservation."""
        self._driver, self._ttl = driver, seconds(ttl)

    @property
    def items(self) -> list[Item]:
        return [item for each in self.reservations for item in each.items]

    async def add(self, *items: Item) -> Reservation:
        """Holds all of the items, or none. Raises NotEnough: `short` names the items, `pending` says that it is worth to try again.
        Raises NotFound."""
        with interlock_errors():
            rows = await self._driver.query(
                """SELECT outcome, token::text, to_jsonb(expires_at)#>>'{}' AS expires_at, short::text
                     FROM interlock.reserve_many(%s::text::jsonb, %s::text::float8, %s::text)""",
                (_json(items), str(self._ttl), self.holder),
            )
        row = rows[0]
        if row["outcome"] != "reserved":
            raise _refused(row["outcome"], from_json(row["short"] or "[]"))
        made = Reservation(int(row["token"]), tuple(items), time_of(row["expires_at"]))
        self.reservations.append(made)
        return made

    @asynccontextmanager
    async def confirm(self, items: Sequence[Item] | None = None) -> AsyncIterator[Tx]:
        """`with cart.confirm() as tx:` sells what is held, in the transaction of the order: all, or these items; the rest returns to
        the stock. Raises ClaimLost, without any effect."""
        with interlock_errors():
            async with self._driver.transaction() as tx:
                await self._confirm(self._driver.within(tx), items)
                yield tx
        self.reservations = []

    async def _confirm(self, query: AsyncQuery, items: Sequence[Item] | None) -> None:
        whole: list[tuple[Reservation, list[Item] | None]] = [(each, None) for each in self.reservations]
        parts = whole if items is None else _parts(self.reservations, items)
        for reservation, part in sorted(parts, key=lambda pair: pair[0].token):
            token = str(reservation.token)
            if part is None:
                await query("SELECT interlock.confirm_reservation(%s::text::bigint)::text", (token,))
            elif part:
                sql = "SELECT interlock.confirm_reservation(%s::text::bigint, items => %s::text::jsonb)::text"
                await query(sql, (token, _json(part)))
            else:
                await query("SELECT interlock.cancel_reservation(%s::text::bigint)::text", (token,))

    async def extend(self, ttl: Duration | None = None) -> datetime | None:
        """Moves the deadline of all items to ttl from now, before a payment begins, and returns the first deadline. Raises
        ClaimLost if one is lost."""
        extended = []
        with interlock_errors():
            async with self._driver.transaction() as tx:
                for each in sorted(self.reservations, key=lambda each: each.token):
                    rows = await self._driver.within(tx)(
                        """SELECT to_jsonb(interlock.extend_reservation(%s::text::bigint, %s::text::float8))#>>'{}' AS until""",
                        (str(each.token), seconds_text(ttl) or str(self._ttl)),
                    )
                    if rows[0]["until"] is None:
                        message = "a reservation of the cart has expired or ended"
                        raise ClaimLost(message, sqlstate="IL008", detail={"holder": self.holder})
                    extended.append(Reservation(each.token, each.items, time_of(rows[0]["until"])))
        self.reservations = extended
        return min((each.expires_at for each in extended), default=None)

    async def cancel(self) -> None:
        """Returns everything to the stock."""
        with interlock_errors():
            async with self._driver.transaction() as tx:
                for each in sorted(self.reservations, key=lambda each: each.token):
                    await self._driver.within(tx)("SELECT interlock.cancel_reservation(%s::text::bigint)::text", (str(each.token),))
        self.reservations = []


def _json(items: Sequence[Item]) -> str:
    members = [{"rel": each.rel, "key": each.key, "column": each.column, "amount": each.amount} for each in items]
    return to_json(members)


def _parts(reservations: Sequence[Reservation], items: Sequence[Item]) -> list[tuple[Reservation, list[Item] | None]]:
    """Which part of each reservation the items are."""
    wanted: dict[tuple[str, str, str], Decimal] = {}
    for item in items:
        wanted[_name(item)] = wanted.get(_name(item), Decimal(0)) + Decimal(str(item.amount))
    parts: list[tuple[Reservation, list[Item] | None]] = []
    for reservation in reservations:
        part = []
        for item in reservation.items:
            taken = min(wanted.get(_name(item), Decimal(0)), Decimal(str(item.amount)))
            if taken > 0:
                wanted[_name(item)] -= taken
                part.append(Item(item.rel, item.key, item.column, taken))
        parts.append((reservation, part))
    if any(wanted.values()):
        raise ValueError(f"the cart holds less than is confirmed: {wanted}")
    return parts


def _name(item: Item) -> tuple[str, str, str]:
    return item.rel, shown_key(item.key), item.column


def _refused(outcome: str, short: list[dict[str, Any]]) -> InterlockError:
    detail = {"outcome": outcome, "short": short}
    if outcome == "not_found":
        return NotFound(f"there is no such item: {short}", sqlstate="P0002", detail=detail)
    return NotEnough(f"not enough is left: {short}", sqlstate="IL012", detail=detail)
