"""The examples of README.md, and those of docs/guide/leases.md, run as they are there."""

import asyncio
import json
import os
import pathlib
import re
import threading
import time
import unittest
from concurrent.futures import ThreadPoolExecutor
from datetime import date

from pg_interlock import MarkerHeld, NotEnough, StaleVersion, StateChanged

from .asgi import asked
from .shared import rows, run, value, wait_until

HOME = pathlib.Path(__file__).parent.parent


def blocks(language, page="README.md"):
    return re.findall(rf"^```{language}\n(.*?)^```$", (HOME / page).read_text(), re.M | re.S)


run(*blocks("sql"), "INSERT INTO page VALUES (1, 'text'), (2, 'text')", "INSERT INTO item VALUES (1, 1), (2, 5)")
os.environ["PGUSER"] = "app"
page = {"compute": lambda day, held: held.check() or f"report of {day}"}
for name in ("README.md", "leases.md"):
    for block in blocks("python", name):
        exec(compile(block, name, "exec"), page)


def tearDownModule():
    page["il"].close()
    page["pool"].close()


def lines(name):
    return next(block for block in blocks("python") if name in block).strip().splitlines()


async def ask(*values, **named):
    return await asked(page["app"], *values, **named)


class ReadmeTest(unittest.TestCase):
    def test_a_lease_takes_five_lines_and_an_idempotent_endpoint_three(self):
        self.assertLessEqual(len([line for line in lines("il.lease(") if not line.startswith("def")]), 5)
        endpoint = [line for line in lines("add_middleware") if line and not line.startswith("@")]
        self.assertEqual(len(endpoint), 3)

    def test_a_report(self):
        page["make_report"]("2030-01-01")
        self.assertEqual(page["nightly"](date(2030, 1, 2)).ran, True)
        self.assertEqual(page["nightly"]("2030-01-02").ran, False)
        self.assertEqual(rows("SELECT body FROM report ORDER BY day"), [("report of 2030-01-01",), ("report of 2030-01-02",)])

    def test_the_endpoint_charges_once(self):
        async def pay():
            await page["async_pool"].open()
            headers = {"idempotency_key": "key-1", "x_user": "anna"}
            answers = [await ask("POST", "/payments", "amount=10", **headers) for _ in range(2)]
            await page["async_pool"].close()
            return answers

        first, second = asyncio.run(pay())
        self.assertEqual((first[0], second[0], second[1]["idempotent-replayed"], second[2]), (201, 201, "true", first[2]))
        order = {"id": 17, "customer": "bert", "amount": 5}
        self.assertEqual([page["charge"](order).outcome for _ in range(2)], ["completed", "replay"])
        self.assertEqual(rows("SELECT customer, amount::int FROM payment WHERE customer <> 'job'"), [("anna", 10), ("bert", 5)])

    def test_pages(self):
        version = page["il"].read("page", 1).version
        page["save_page"](1, version, "new")
        self.assertRaises(StaleVersion, page["save_page"], 1, version, "stale")
        page["hit"](1)

        async def visit():
            got = await ask("GET", "/pages/1")
            put = [await ask("PUT", "/pages/1", body=b'{"body": "by a form"}', if_match=got[1]["etag"]) for _ in range(2)]
            return got, [answer[0] for answer in put], (await ask("PUT", "/pages/1", body=b"{}"))[0]

        got, put, blind = asyncio.run(visit())
        self.assertEqual((json.loads(got[2])["hits"], put, blind), (1, [200, 412], 428))

    def test_an_editor(self):
        editors = page["show_editors"]()
        self.assertEqual(next(editors), [])

        def texts():
            yield "one"
            self.assertEqual(next(editors), [(2, "anna/1")])
            self.assertRaises(MarkerHeld, page["edit_page"], 2, "bert/1", [])
            yield "two"

        page["edit_page"](2, "anna/1", texts())
        self.assertEqual(next(editors), [])
        editors.close()
        self.assertEqual(value("SELECT body FROM page WHERE id = 2"), "two")

    def test_a_lease_permits_and_several_keys_of_the_guide(self):
        run(
            "CREATE TABLE closed (day date PRIMARY KEY, total int)",
            "CREATE TABLE invoice (id int PRIMARY KEY, customer int NOT NULL)",
            "INSERT INTO invoice SELECT i, i % 3 FROM generate_series(1, 750) i",
        )
        calling, most = set(), []

        def call_carrier(order, permit):
            calling.add(order)
            most.append(len(calling))
            time.sleep(0.02)
            calling.discard(order)
            return f"label of {order}"

        page.update({"add_up": lambda day, lease: 7, "call_carrier": call_carrier})
        page["close_day"](date(2030, 1, 1))
        self.assertEqual(value("SELECT total FROM closed"), 7)
        with ThreadPoolExecutor(8) as pool:
            self.assertEqual(list(pool.map(page["ship_label"], range(8)))[7], "label of 7")
            tokens, *_ = pool.map(page["merge_customers"], [0, 0, 0], [1, 2, 1])
        self.assertEqual((max(most), list(tokens)), (3, ["customer/0", "customer/1"]))
        self.assertEqual(value("SELECT count(DISTINCT customer) FROM invoice"), 1)

    def test_a_worker(self):
        run("INSERT INTO job (address) SELECT 'job' FROM generate_series(1, 10)")
        working = threading.Thread(target=page["worker"].run)
        working.start()
        wait_until(lambda: value("SELECT count(*) FROM job") == 0)
        page["worker"].stop()
        working.join()
        self.assertEqual(value("SELECT count(*) FROM payment WHERE customer = 'job'"), 10)

    def test_an_order(self):
        id = page["order"]("cart 1", [(1, 1), (2, 2)])
        self.assertRaises(NotEnough, page["order"], "cart 2", [(1, 1), (2, 2)])
        self.assertEqual(int(value("SELECT interlock.escrow_value('item', 2, 'stock')")), 3)
        self.assertEqual(page["buttons"](id), [("paid", True, None), ("cancelled", True, None)])
        page["pay_order"](id)
        self.assertRaises(StateChanged, page["pay_order"], id)
