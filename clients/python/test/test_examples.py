"""The programs of examples/python, as a shop runs them."""

import asyncio
import functools
import json
import os
import pathlib
import re
import sys
import unittest
from datetime import datetime, timezone

from .asgi import answer_of
from .shared import rows, run, value

ROOT = pathlib.Path(os.environ.get("ROOT", pathlib.Path(__file__).parents[3]))
EXAMPLES = ROOT / "examples/python"
PAGES = {
    "edit_lock": "recipes/document-editor",
    "endpoint": "recipes/http-endpoint",
    "nightly_job": "recipes/scheduled-job",
    "cart": "guide/hot-rows",
    "buttons": "guide/transitions",
    "importer": "guide/ownership",
}

run(
    (ROOT / "examples/node/schema.sql").read_text(),
    "INSERT INTO document VALUES (1, 'draft'), (2, 'draft')",
    "INSERT INTO item VALUES (1, 'lamp', 'a lamp', 10, 2), (2, 'bulb', 'a bulb', 1, 1)",
)
os.environ["PGUSER"] = "app"
sys.path.insert(0, str(EXAMPLES))
sys.dont_write_bytecode = True
from app import app, tick
from db import il, pool
from importer import import_file


async def ask(method, path, body=None, **headers):
    """An answer of the application, without a server."""
    sent = {"content-type": "application/json", "x-user": "anna", **headers}
    status, answered, content = await answer_of(app, method, path, "", json.dumps(body).encode(), sent)
    return status, json.loads(content), answered


class Stream:
    """A connection that stays open: an editor (websocket), or events."""

    def __init__(self, kind, path, query="", user="anna"):
        scope = {"type": kind, "http_version": "1.1", "method": "GET", "path": path, "raw_path": path.encode(), "root_path": ""}
        scope |= {"query_string": query.encode(), "client": None, "server": ("shop", 80), "scheme": "http", "subprotocols": []}
        scope["headers"] = [(b"x-user", user.encode())]
        self._in, self._out = asyncio.Queue(), asyncio.Queue()
        self._in.put_nowait({"type": "websocket.connect"} if kind == "websocket" else {"type": "http.request", "body": b""})
        self._task = asyncio.create_task(app(scope, self._in.get, self._out.put))

    async def next(self):
        while True:
            message = await self._out.get()
            if message["type"] == "websocket.send":
                return json.loads(message["text"])
            if message["type"] == "websocket.close":
                return "closed"
            if message.get("body"):
                return json.loads(message["body"].decode().removeprefix("data: "))

    def send(self, text):
        self._in.put_nowait({"type": "websocket.receive", "text": text})

    async def close(self, kind="websocket.disconnect"):
        self._in.put_nowait({"type": kind, "code": 1000})
        await asyncio.wait({self._task})


LOOP = asyncio.new_event_loop()  # one for all tests, as the pool is one


def setUpModule():
    LOOP.run_until_complete(pool.open())


def tearDownModule():
    LOOP.run_until_complete(il.close())
    LOOP.run_until_complete(pool.close())
    LOOP.close()


def on_loop(test):
    return functools.wraps(test)(lambda self: LOOP.run_until_complete(test(self)))


class ExamplesTest(unittest.TestCase):
    def test_the_pages_show_the_programs_as_they_are(self):
        for name, page in PAGES.items():
            shown = re.findall(r"^```python\n(.*?)^```$", (ROOT / f"docs/{page}.md").read_text(), re.M | re.S)
            self.assertEqual(shown, [(EXAMPLES / f"{name}.py").read_text()], page)

    @on_loop
    async def test_edit_lock(self):
        editors = Stream("http", "/documents/editors")
        self.assertEqual(await editors.next(), [])
        anna = Stream("websocket", "/documents/1/edit", "tab=1")
        self.assertEqual((await anna.next())["open"]["body"], "draft")
        self.assertEqual(await editors.next(), [[1, "anna/1"]])
        bert = Stream("websocket", "/documents/1/edit", "tab=1", user="bert")
        refused = await bert.next()
        self.assertEqual((refused["status"], "anna/1" in refused["refused"], await bert.next()), (423, True, "closed"))
        saved = []
        for text in ("first page", "two pages"):
            anna.send(text)
            saved.append((await anna.next())["saved"])
        self.assertGreater(saved[1], saved[0])
        self.assertEqual(value("SELECT body FROM document WHERE id = 1"), "two pages")
        bert = Stream("websocket", "/documents/1/edit", "tab=1&why=lunch", user="bert")
        self.assertEqual((await bert.next())["open"]["body"], "two pages")
        anna.send("after lunch")
        self.assertEqual((await anna.next())["status"], 409)
        await bert.close()
        self.assertEqual(rows("SELECT body, lock_status FROM document WHERE id = 1"), [("two pages", 0)])
        await editors.close("http.disconnect")

    @on_loop
    async def test_cart_buttons_and_endpoint(self):
        both = await asyncio.gather(*[ask("POST", f"/carts/{cart}/items", {1: 1, 2: 1}) for cart in ("c1", "c2")])
        self.assertEqual(sorted(answer[0] for answer in both), [201, 409])
        winner, loser = ("c1", "c2") if both[0][0] == 201 else ("c2", "c1")
        self.assertEqual((await ask("POST", f"/carts/{loser}/items", {1: 1}))[0], 201)
        sold = await asyncio.gather(*[ask("POST", f"/carts/{cart}/order") for cart in (winner, loser)])
        self.assertEqual([answer[0] for answer in sold], [201, 201])
        self.assertEqual(rows("SELECT (SELECT count(*) FROM order_line), (SELECT count(*) FROM cart)"), [(3, 0)])
        self.assertEqual(value("SELECT sum(interlock.escrow_value('item', id, 'stock'))::int FROM item"), 0)

        status, state, _ = await ask("GET", "/orders/1")
        unpaid = {"state": "paid", "allowed": False, "reason": "nothing is paid"}
        self.assertEqual((status, state["state"], state["next"][0]), (200, "pending", unpaid))
        self.assertEqual((await ask("POST", "/orders/1/pending/paid"))[0], 422)
        clicks = await asyncio.gather(*[ask("POST", "/orders/1/pending/cancelled") for _ in range(2)])
        self.assertEqual(sorted(answer[0] for answer in clicks), [200, 409])

        def pay(key):
            return ask("POST", "/payments", {"order": 2, "amount": 11}, idempotency_key=key)

        answers = await asyncio.gather(*[pay("key-1") for _ in range(8)])
        self.assertLessEqual({answer[0] for answer in answers}, {201, 409})
        again = await pay("key-1")
        self.assertEqual((again[0], again[2]["Idempotent-Replayed"]), (201, "true"))
        self.assertEqual((await pay("key-2"))[0], 409)
        self.assertEqual(rows("SELECT count(*), min(status) FROM payment JOIN orders ON orders.id = order_id"), [(1, "paid")])

    @on_loop
    async def test_a_cart_that_comes_too_late_is_409(self):
        run("SELECT interlock.set_escrow('item', 1, 'stock', 5)")
        self.assertEqual((await ask("POST", "/carts/c3/items", {1: 2}))[0], 201)
        run("SELECT interlock.cancel_reservation(token) FROM interlock.reservations")
        before = value("SELECT count(*) FROM orders")
        self.assertEqual(((await ask("POST", "/carts/c3/order"))[0], value("SELECT count(*) FROM orders")), (409, before))
        run("DELETE FROM cart", "SELECT interlock.set_escrow('item', 1, 'stock', 2)")

    @on_loop
    async def test_nightly_job(self):
        night = datetime(2030, 3, 31, 23, 30, tzinfo=timezone.utc)  # in London it is April
        ran = await asyncio.gather(*[tick(night) for _ in range(3)])
        self.assertEqual([each.ran for each in ran].count(True), 1)
        self.assertEqual((await tick(night)).outcome, "completed")
        self.assertEqual(rows("SELECT day::text FROM report"), [("2030-04-01",)])

    @on_loop
    async def test_importer(self):
        file = [{"id": i, "name": f"item {i}", "description": "of the importer", "price": i} for i in range(1, 26)]
        self.assertEqual([(await ask("POST", "/imports/monday", file))[1]["ran"] for _ in range(2)], [True, False])
        found = rows("SELECT name, description, price::int FROM item WHERE id IN (1, 3) ORDER BY id")
        self.assertEqual(found, [("item 1", "a lamp", 1), ("item 3", "of the importer", 3)])
        file = [{**row, "price": row["price"] + 1} for row in file]
        with self.assertRaises(Exception):
            await import_file("tuesday", [{**row, "price": "much" if row["id"] == 15 else row["price"]} for row in file], 10)
        before = "SELECT array_agg(xmin::text ORDER BY id) FROM item WHERE id <= 10"
        written = value(before)
        self.assertEqual((await import_file("tuesday", file, 10)).result, 25)
        self.assertEqual((value(before), value("SELECT sum(price)::int FROM item")), (written, 350))  # it has continued behind them
