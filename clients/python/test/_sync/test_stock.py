# Made from _async/test_stock.py by to_sync.py.
"""Carts and states."""

import json
from datetime import datetime, timezone
from decimal import Decimal

from pg_interlock import ClaimLost, Item, NextState, NotEnough, NotFound, Reservation, StateChanged, TransitionRefused

from ..shared import run, value
from .shop import Case, raised

run(
    "CREATE TABLE item (id int PRIMARY KEY, stock int NOT NULL)",
    "SELECT interlock.enable_escrow('item', 'stock')",
    "CREATE TABLE sale (item int)",
    "CREATE TABLE ticket (id int PRIMARY KEY, status text NOT NULL DEFAULT 'open', agent text)",
    """CREATE FUNCTION why_not(old ticket, new ticket) RETURNS text LANGUAGE plpgsql
         AS $$ BEGIN RETURN CASE WHEN new.agent IS NULL THEN 'nobody has it' END; END $$""",
    """SELECT interlock.define_transitions('ticket', 'status', '{"open": ["claimed", "closed"], "claimed": ["closed"]}',
         guards => '{"open": {"claimed": "why_not(ticket, ticket)"}}')""",
)


def stock(*ids):
    return [int(value("SELECT interlock.escrow_value('item', %s::int, 'stock')", id)) for id in ids]


def items(*ids, amount=1):
    return [Item("item", id, "stock", amount) for id in ids]


class StockTest(Case):
    def setUp(self):
        super().setUp()
        run("TRUNCATE sale, ticket", "DELETE FROM item", "INSERT INTO item VALUES (1, 1), (2, 5)", "INSERT INTO ticket VALUES (1)")

    def sell(self, cart, some=None, error=None):
        with cart.confirm(some) as tx:
            tx.execute("INSERT INTO sale VALUES (1)")
            if error:
                raise error

    def test_a_cart_holds_all_of_its_items_or_none_and_sells_them_with_the_order(self):
        cart = self.il.cart("cart 1", "10 min")
        made = cart.add(*items(2, 1))
        self.assertEqual((type(made.token), made.items, stock(1, 2)), (int, tuple(cart.items), [0, 4]))
        other = self.il.cart("cart 2", "10 min")
        error = raised(NotEnough, other.add, *items(1, 2))
        self.assertEqual((error.status, error.pending, other.items, stock(2)), (409, True, [], [4]))
        self.assertEqual([(short["key"], short["outcome"]) for short in error.short], [(1, "pending")])
        raised(NotFound, other.add, *items(7))

        kept = json.loads(json.dumps([each.as_dict() for each in cart.reservations]))
        later = self.il.cart("cart 1", "10 min", [Reservation.of(each) for each in kept])  # another process
        self.assertEqual(later.reservations, cart.reservations)
        self.assertGreater(later.extend("20 min"), datetime.now(timezone.utc))
        raised(ZeroDivisionError, self.sell, later, error=ZeroDivisionError())
        self.assertEqual(len(later.items), 2)
        self.sell(later)
        self.assertEqual((later.items, stock(1, 2), value("SELECT count(*) FROM sale")), ([], [0, 4], 1))
        raised(ClaimLost, self.sell, cart)  # it is sold already
        raised(ClaimLost, cart.extend)
        self.assertEqual(value("SELECT count(*) FROM sale"), 1)

    def test_a_part_is_sold_and_the_rest_returns(self):
        cart = self.il.cart("cart 1", "10 min")
        cart.add(*items(1), *items(2, amount=2))
        cart.add(*items(2, amount=Decimal(2)))
        self.assertEqual(stock(1, 2), [0, 1])
        kept = json.loads(json.dumps([each.as_dict() for each in cart.reservations]))
        self.assertEqual([Reservation.of(each) for each in kept], cart.reservations)
        raised(ValueError, self.sell, cart, items(2, amount=5))
        raised(ValueError, self.sell, cart, items(7))
        self.sell(cart, items(2, amount=3))
        self.assertEqual((stock(1, 2), cart.items), ([1, 2], []))

    def test_of_a_cart_with_two_parts_one_can_be_sold(self):
        cart = self.il.cart("cart 1", "10 min")
        cart.add(*items(1))
        cart.add(*items(2))
        self.sell(cart, items(1))
        self.assertEqual((stock(1, 2), value("SELECT count(*) FROM interlock.reservations")), ([0, 5], 0))

    def test_a_cart_that_is_emptied_returns_everything(self):
        cart = self.il.cart("cart 1", "10 min")
        cart.add(*items(1, 2))
        cart.cancel()
        self.assertEqual((cart.items, stock(1, 2)), ([], [1, 5]))
        self.assertIsNone(cart.extend())

    def test_the_buttons_of_a_row_and_the_loser_of_two_clicks(self):
        states = self.il.states("ticket")
        found = states.of(1)
        self.assertEqual((found.state, found.row["agent"]), ("open", None))
        self.assertEqual(found.next, [NextState("claimed", False, "nobody has it"), NextState("closed", True, None)])
        refused = raised(TransitionRefused, states.move, 1, "open", "claimed")
        self.assertEqual((refused.status, refused.reason, refused.current["status"]), (422, "nobody has it", "open"))
        states.move(1, "open", "claimed", {"agent": "ann"})
        late = raised(StateChanged, states.move, 1, "open", "closed")
        self.assertEqual((late.status, late.state, late.current["agent"]), (409, "claimed", "ann"))
        raised(StateChanged, states.move, 1, ["open", "claimed"], "closed", match={"agent": "bob"})
        states.move(1, ["open", "claimed"], "closed", match={"agent": "ann"})
        closed = states.of(1)
        self.assertEqual((closed.state, closed.next), ("closed", []))
        raised(NotFound, states.move, 7, "open", "closed")
        raised(TypeError, self.il.states("item").of, 1)
