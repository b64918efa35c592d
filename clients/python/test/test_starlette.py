"""Idempotent endpoints of FastAPI: what a client meets."""

import asyncio
import json

from fastapi import BackgroundTasks, Body, Depends, FastAPI, HTTPException, Request, Response
from fastapi.responses import StreamingResponse

from pg_interlock import InterlockError, MarkerHeld
from pg_interlock.starlette import IdempotencyKey, conflict, transaction

from ._async.shop import Case, client, eventually
from .shared import fresh, run, value

run(
    "CREATE TABLE payment (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, customer text, amount int CHECK (amount > 0))",
    "CREATE TABLE note (body text)",
    "SELECT interlock.define_idempotency_scope('pay', ttl => '1 h', max_response_bytes => 20000)",
    "SELECT interlock.grant_idempotency_scope('pay', 'app')",
)


def payments():
    return value("SELECT count(*) FROM payment")


class Answered:
    def __init__(self):
        self.messages = []

    async def send(self, message):
        self.messages.append(message)

    @property
    def status(self):
        return self.messages[0]["status"]

    @property
    def headers(self):
        return {name.decode().lower(): each.decode() for name, each in self.messages[0]["headers"]}

    @property
    def body(self):
        return b"".join(message.get("body", b"") for message in self.messages[1:])


class StarletteTest(Case):
    async def asyncSetUp(self):
        await super().asyncSetUp()
        run("TRUNCATE payment RESTART IDENTITY", "TRUNCATE note")
        self.gate, self.arrived = asyncio.Event(), []
        self.app = self.make_app(self.il)

    def make_app(self, il, **options):
        app = FastAPI()
        app.add_middleware(
            IdempotencyKey,
            interlock=il,
            scope="pay",
            path="/(payments|other)",
            user=lambda request: request.headers.get("X-User"),
            **options,
        )
        app.add_exception_handler(InterlockError, conflict)

        async def pay(request: Request, response: Response, tasks: BackgroundTasks, tx=Depends(transaction)):
            body = await request.body()
            if request.headers["content-type"] == "application/octet-stream":
                return Response(body, 200, media_type="application/octet-stream")
            order = json.loads(body)
            sql = "INSERT INTO payment (customer, amount) VALUES (%s, %s) RETURNING id"
            cursor = await tx.execute(sql, (request.headers["x-user"], order["amount"]))
            (id,) = await cursor.fetchone()
            self.arrived.append(id)
            status, place = order.get("status", 201), {"Location": f"/payments/{id}"}
            if status == "gate":
                await self.gate.wait()
                status = 201
            if status == "raise":
                raise ZeroDivisionError
            if status == "held":
                raise MarkerHeld("held", detail={"holder": "anna"})
            if status == "conflict":
                await tx.execute("DO $$ BEGIN RAISE EXCEPTION 'moved' USING ERRCODE = 'IL003'; END $$")
            if status == "http":
                raise HTTPException(402, "declined")
            if status == "never":
                await asyncio.sleep(3600)
            if status == "stream":
                return StreamingResponse(self.parts(), 201, place, "text/plain")
            if status == "task":
                tasks.add_task(self.look)
                status = 201
            response.status_code = status
            response.headers.update(place)
            response.set_cookie("session", "secret")
            return {"id": id, "amount": order["amount"]}

        app.post("/payments")(pay)
        app.post("/other")(pay)
        app.get("/payments")(lambda: "a list")
        return app

    async def parts(self):
        for part in ("one ", "two ", "three"):
            yield part

    async def look(self):
        self.seen = payments()

    async def post(
        self, key, sent, *, user="anna", path="/payments", query=b"", app=None, keys=None, method="POST", chunks=None, gone=None
    ):
        is_bytes = isinstance(sent, bytes)
        body = sent if is_bytes else json.dumps(sent).encode()
        kind = b"application/octet-stream" if is_bytes else b"application/json"
        headers = [(b"content-type", kind), (b"content-length", str(len(body)).encode())]
        headers += [
            (b"idempotency-key", each) for each in (keys if keys is not None else [] if key is None else [key.encode("latin-1")])
        ]
        headers += [(b"x-user", user.encode())] if user else []
        messages = [
            {"type": "http.request", "body": part, "more_body": True} for part in (chunks if chunks is not None else [body])
        ]
        if gone != "early":
            messages.append({"type": "http.request", "body": b"", "more_body": False})

        async def receive():
            if messages:
                return messages.pop(0)
            if gone is None:
                await asyncio.sleep(3600)
            return {"type": "http.disconnect"}

        scope = {
            "type": "http",
            "http_version": "1.1",
            "method": method,
            "path": path,
            "raw_path": path.encode(),
            "query_string": query,
        }
        scope |= {"headers": headers, "client": ("127.0.0.1", 1), "server": ("127.0.0.1", 80), "scheme": "http", "root_path": ""}
        answered = Answered()
        await (app or self.app)(scope, receive, answered.send)
        return answered

    def key(self):
        return fresh("key").replace(" ", "-")

    async def test_no_key_or_one_that_is_none_is_400(self):
        for key in (None, "", '""', "with a blank", "x" * 10_000, "kü", '"open', "a\tb"):
            answered = await self.post(key, {"amount": 1})
            self.assertEqual((answered.status, answered.headers["content-type"]), (400, "application/problem+json"), key)
        self.assertEqual((await self.post(None, {"amount": 1}, keys=[b"one", b"two"])).status, 400)
        self.assertEqual((await self.post(None, {"amount": 1}, keys=[b"one", b"one"])).status, 400)
        self.assertEqual(payments(), 0)

    async def test_other_requests_need_no_key(self):
        self.assertEqual((await self.post(None, {}, method="GET")).status, 200)

    async def test_the_second_request_gets_the_status_headers_and_bytes_of_the_first(self):
        key = self.key()
        first = await self.post(f'"{key}"', {"amount": 10})
        self.assertEqual((first.status, first.headers["location"]), (201, "/payments/1"))
        self.assertIn("secret", first.headers["set-cookie"])
        self.assertNotIn("idempotent-replayed", first.headers)
        for again in (f'"{key}"', key):
            second = await self.post(again, {"amount": 10})
            self.assertEqual((second.status, second.body, second.headers["idempotent-replayed"]), (201, first.body, "true"))
            self.assertEqual(second.headers["location"], "/payments/1")
            self.assertEqual(second.headers["content-type"], first.headers["content-type"])
            self.assertNotIn("set-cookie", second.headers)  # a secret of one answer
        self.assertEqual(payments(), 1)

    async def test_another_request_is_422_and_another_user_or_route_is_another_key(self):
        key = self.key()
        self.assertEqual((await self.post(key, {"amount": 10, "status": 201})).status, 201)
        self.assertEqual((await self.post(key, {"status": 201, "amount": 10})).status, 201)  # the same JSON
        self.assertEqual((await self.post(key, {"amount": 99})).status, 422)
        self.assertEqual((await self.post(key, {"amount": 10, "status": 201}, query=b"x=1")).status, 422)
        self.assertEqual((await self.post(key, {"amount": 99}, user="bert")).status, 201)
        self.assertEqual((await self.post(key, {"amount": 99}, path="/other")).status, 201)
        self.assertEqual((await self.post(key, {"amount": 10}, user=None)).status, 401)
        self.assertEqual(payments(), 3)

    async def test_a_repeated_click_is_409_with_Retry_After_while_the_first_one_works(self):
        key, sent = self.key(), {"amount": 10, "status": "gate"}
        first = asyncio.create_task(self.post(key, sent))
        await eventually(lambda: self.arrived)
        for again in await asyncio.gather(*[self.post(key, sent) for _ in range(3)]):
            self.assertEqual((again.status, again.headers["retry-after"]), (409, "1"))
        self.gate.set()
        self.assertEqual((await first).status, 201)
        self.assertEqual((await self.post(key, sent)).headers["idempotent-replayed"], "true")
        self.assertEqual(payments(), 1)

    async def test_a_client_that_goes_away_while_its_request_works(self):
        for status in ("gate", "stream"):
            key, sent = self.key(), {"amount": 10, "status": status}
            first = asyncio.create_task(self.post(key, sent, gone="late"))
            self.gate.set()
            await first
            again = await self.post(key, sent)
            self.assertEqual((again.status, again.headers["idempotent-replayed"]), (201, "true"), status)
        self.assertEqual((again.body, payments()), (b"one two three", 2))

    async def test_a_client_that_goes_away_within_its_request(self):
        answered = await self.post(self.key(), {"amount": 10}, gone="early")
        self.assertEqual((answered.messages, payments()), ([], 0))

    async def test_a_handler_that_raises_leaves_nothing_and_its_key_is_free(self):
        key = self.key()
        with self.assertRaises(ZeroDivisionError):
            await self.post(key, {"amount": 10, "status": "raise"})
        with self.assertRaises(Exception):
            await self.post(key, {"amount": -1})  # a constraint
        self.assertEqual(payments(), 0)
        self.assertEqual((await self.post(key, {"amount": 10})).status, 201)
        self.assertEqual(payments(), 1)

    async def test_a_conflict_of_a_statement_is_an_answer_that_leaves_nothing(self):
        for _ in range(2):
            answered = await self.post("key-of-a-conflict", {"amount": 10, "status": "conflict"})
            self.assertEqual((answered.status, json.loads(answered.body)["type"]), (409, "StateChanged"))
            self.assertNotIn("idempotent-replayed", answered.headers)
        self.assertEqual(payments(), 0)

    async def test_an_answer_of_500_and_more_leaves_nothing_and_one_below_is_kept(self):
        key = self.key()
        self.assertEqual((await self.post(key, {"amount": 10, "status": 502})).status, 502)
        self.assertEqual(payments(), 0)
        for status, answer in ((402, 402), ("http", 402), ("held", 423)):
            key = self.key()
            self.assertEqual((await self.post(key, {"amount": 10, "status": status})).status, answer)
            again = await self.post(key, {"amount": 10, "status": status})
            self.assertEqual((again.status, again.headers["idempotent-replayed"]), (answer, "true"))
        self.assertEqual(json.loads(again.body)["detail"], {"holder": "anna"})
        self.assertEqual(payments(), 3)

    async def test_bytes_are_kept_and_compared(self):
        key, sent = self.key(), bytes([0, 255, 128, 10, 13, 0])
        for replayed in (None, "true"):
            answered = await self.post(key, sent, chunks=[sent[:2], b"", sent[2:]])
            self.assertEqual((answered.status, answered.body, answered.headers.get("idempotent-replayed")), (200, sent, replayed))
        self.assertEqual((await self.post(key, b"other")).status, 422)

    async def test_what_is_no_JSON_is_compared_by_its_bytes(self):
        key = self.key()
        for body in (b"{broken", b'{"amount": NaN}', b"\xff", b"[" * 100_000, b'{"amount": "\\ud800"}'):
            with self.subTest(body[:20]):
                key = self.key()
                try:
                    await self.post(key, {}, chunks=[body])
                except Exception as error:
                    self.assertNotIsInstance(error, AssertionError)  # of the handler, which reads it
        self.assertEqual(payments(), 0)

    async def test_an_answer_that_is_streamed_is_kept_whole(self):
        key = self.key()
        for replayed in (None, "true"):
            answered = await self.post(key, {"amount": 10, "status": "stream"})
            self.assertEqual((answered.body, answered.headers.get("idempotent-replayed")), (b"one two three", replayed))
            self.assertEqual(answered.headers["content-length"], "13")
        self.assertEqual(payments(), 1)

    async def test_an_answer_that_is_too_large_is_repeated_without_its_body(self):
        key, large = self.key(), b"\7" * 30_000
        self.assertEqual(len((await self.post(key, large)).body), 30_000)
        again = await self.post(key, large)
        self.assertEqual((again.status, again.headers["idempotent-replayed"], again.body), (200, "true", b""))

    async def test_a_request_that_is_too_large_is_413(self):
        app = self.make_app(self.il, max_body=1000)
        self.assertEqual((await self.post(self.key(), b"", chunks=[b"x" * 600, b"x" * 600], app=app)).status, 413)
        self.assertEqual((await self.post(self.key(), b"", chunks=[b"x" * 500, b"x" * 500], app=app)).status, 200)

    async def test_a_handler_that_never_ends_is_503_and_its_transaction_is_rolled_back(self):
        async with client(max_size=1) as (il, pool):
            app = self.make_app(il, timeout="1 s")
            self.assertEqual((await self.post(self.key(), {"amount": 10, "status": "never"}, app=app)).status, 503)
            self.assertEqual(payments(), 0)
            self.assertEqual((await self.post(self.key(), b"", app=app)).status, 200)

    async def test_a_background_task_runs_after_the_commit(self):
        await self.post(self.key(), {"amount": 10, "status": "task"})
        self.assertEqual(self.seen, 1)

    async def test_thirty_requests_at_once_on_a_pool_of_one(self):
        async with client(max_size=1) as (il, pool):
            app, key = self.make_app(il), self.key()
            answers = await asyncio.gather(*[self.post(key, {"amount": 10}, app=app) for _ in range(30)])
        self.assertEqual({answer.status for answer in answers}, {201})
        self.assertEqual(payments(), 1)

    async def test_a_request_that_waits_gets_the_first_answer(self):
        app, key, sent = self.make_app(self.il, wait="10 min"), self.key(), {"amount": 10, "status": "gate"}
        first = asyncio.create_task(self.post(key, sent, app=app))
        await eventually(lambda: self.arrived)
        second = asyncio.create_task(self.post(key, sent, app=app))
        self.gate.set()
        self.assertEqual(((await first).body, (await first).status), ((await second).body, 201))
        self.assertEqual(payments(), 1)

    async def test_a_request_that_the_server_cancels_leaves_nothing(self):
        working = asyncio.create_task(self.post(self.key(), {"amount": 10, "status": "never"}))
        await eventually(lambda: self.arrived)
        working.cancel()
        with self.assertRaises(asyncio.CancelledError):
            await working
        idle = "SELECT count(*) FROM pg_stat_activity WHERE usename = 'app' AND state LIKE 'idle in transaction%'"
        await eventually(lambda: value(idle) == 0)
        self.assertEqual(payments(), 0)
