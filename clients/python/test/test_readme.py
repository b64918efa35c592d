"""The examples of README.md, run as they are there."""

import asyncio
import json
import os
import pathlib
import re
import threading
import unittest
from datetime import date

from pg_interlock import MarkerHeld, NotEnough, StaleVersion, StateChanged

from .shared import rows, run, value, wait_until

README = (pathlib.Path(__file__).parent.parent / "README.md").read_text()


def blocks(language):
    return re.findall(rf"^```{language}\n(.*?)^```$", README, re.M | re.S)


run(*blocks("sql"), "INSERT INTO page VALUES (1, 'text'), (2, 'text')", "INSERT INTO item VALUES (1, 1), (2, 5)")
os.environ["PGUSER"] = "app"
page = {"compute": lambda day, held: held.check() or f"report of {day}"}
for block in blocks("python"):
    exec(compile(block, "README.md", "exec"), page)


def tearDownModule():
    page["il"].close()
    page["pool"].close()


def lines(name):
    return next(block for block in blocks("python") if name in block).strip().splitlines()


async def ask(method, path, query="", body=b"", **headers):
    """An answer of the application, without a server."""
    sent = [
        (name.replace("_", "-").encode(), each.encode()) for name, each in {"content_type": "application/json", **headers}.items()
    ]
    scope = {"type": "http", "http_version": "1.1", "method": method, "path": path, "raw_path": path.encode(), "root_path": ""}
    scope |= {"query_string": query.encode(), "headers": sent, "client": None, "server": ("shop", 80), "scheme": "http"}
    messages, answer = [{"type": "http.request", "body": body, "more_body": False}], []

    async def receive():
        return messages.pop() if messages else await asyncio.sleep(600)

    async def send(message):
        answer.append(message)

    await page["app"](scope, receive, send)
    content = b"".join(message.get("body", b"") for message in answer[1:])
    return answer[0]["status"], {name.decode().lower(): each.decode() for name, each in answer[0]["headers"]}, content


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
