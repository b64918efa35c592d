"""Work once for each key."""

from datetime import date
from decimal import Decimal

from pg_interlock import Failed, InProgress, Mismatch

from ..shared import fresh, rows, run, value
from .shop import Case, Event, Started, client, eventually, raised

run(
    "CREATE TABLE charge (amount int)",
    "SELECT interlock.grant_idempotency_scope('pay', 'app')",
    "SELECT interlock.define_idempotency_scope('pay', max_response_bytes => 1000)",
)


def charges():
    return value("SELECT count(*) FROM charge")


class OnceTest(Case):
    async def asyncSetUp(self):
        await super().asyncSetUp()
        run("TRUNCATE charge")

    def charge(self, result=None, error=None):
        async def work(tx):
            await tx.execute("INSERT INTO charge VALUES (10)")
            if error:
                raise error
            return result

        return work

    async def never(self, tx):
        self.fail("it works again")

    async def test_the_first_call_works_and_the_next_ones_get_the_same_value(self):
        key = [fresh("order"), "a:b"]
        given = {"id": 2**70, "price": Decimal("1234567890123456789.1200"), "day": date(2030, 1, 31), "list": (1.5, None, "ü")}
        kept = {"id": 2**70, "price": Decimal("1234567890123456789.12"), "day": "2030-01-31", "list": [1.5, None, "ü"]}
        request = {"amount": 10, "currency": "EUR"}
        first = await self.il.once("pay", key, request, self.charge(given))
        self.assertEqual((first.outcome, first.value), ("completed", kept))
        again = await self.il.once("pay", key, dict(reversed(request.items())), self.never)
        self.assertEqual((again.outcome, again.value), ("replay", kept))
        self.assertEqual(charges(), 1)

    async def test_another_request_under_the_key_is_a_mismatch_and_none_is_not_compared(self):
        key = fresh("order")
        await self.il.once("pay", key, {"amount": 10}, self.charge(1))
        for other in ({"amount": 11}, {"amount": "10"}, {"amount": 10, "more": None}, b"10", [], ""):
            error = await raised(Mismatch, self.il.once, "pay", key, other, self.never)
            self.assertEqual(error.status, 422)
        self.assertEqual((await self.il.once("pay", key, None, self.never)).value, 1)

    async def test_work_that_raises_leaves_nothing_and_the_key_is_free(self):
        key = fresh("order")
        await raised(ZeroDivisionError, self.il.once, "pay", key, 1, self.charge(error=ZeroDivisionError()))
        await raised(Exception, self.il.once, "pay", key, 1, self.charge("a zero: \0"))  # no JSON of the server
        await raised(TypeError, self.il.once, "pay", key, 1, self.charge(object()))
        await raised(TypeError, self.il.once, "pay", key, {1, 2}, self.never)
        self.assertEqual(charges(), 0)
        self.assertEqual((await self.il.once("pay", key, 2, self.charge("done"))).outcome, "completed")
        self.assertEqual(charges(), 1)

    async def test_while_one_call_works_the_others_are_in_progress_or_wait_for_its_value(self):
        key, working, go = fresh("order"), Event(), Event()

        async def work(tx):
            working.set()
            await eventually(go.is_set)
            return await self.charge("first")(tx)

        first = Started(self.il.once, "pay", key, 1, work)
        await eventually(working.is_set)
        error = await raised(InProgress, self.il.once, "pay", key, 1, self.never)
        self.assertEqual((error.status, error.headers), (409, {"Retry-After": "1"}))
        waiting = [Started(self.il.once, "pay", key, 1, self.never, wait="10 min") for _ in range(3)]
        await eventually(
            lambda: value(
                "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND usename = 'app' AND state = 'active'"
            )
            == 3
        )
        go.set()
        self.assertEqual((await first.result()).outcome, "completed")
        for each in waiting:
            again = await each.result()
            self.assertEqual((again.outcome, again.value), ("replay", "first"))
        self.assertEqual(charges(), 1)

    async def test_fifty_calls_at_once_on_a_pool_of_one_are_one_effect(self):
        key = fresh("order")
        async with client(max_size=1) as (il, pool):
            calls = [Started(il.once, "pay", key, 1, self.charge("x")) for _ in range(50)]
            outcomes = [(await call.result()).outcome for call in calls]
        self.assertEqual(outcomes.count("completed"), 1)
        self.assertEqual(charges(), 1)

    async def test_a_value_that_is_too_large_is_not_kept_and_its_work_is_not_repeated(self):
        key = fresh("order")
        self.assertEqual(len((await self.il.once("pay", key, 1, self.charge("x" * 5000))).value), 5000)
        again = await self.il.once("pay", key, 1, self.never)
        self.assertEqual((again.outcome, again.value), ("replay", None))
        self.assertEqual(charges(), 1)

    async def test_what_failed_for_good_is_failed_with_its_error(self):
        key = fresh("order")
        rows(
            """SELECT interlock.idempotency_fail('pay', %s, token, '{"error": "declined"}', false)
                 FROM interlock.idempotency_claim('pay', %s)""",
            key,
            key,
        )
        error = await raised(Failed, self.il.once, "pay", key, None, self.never)
        self.assertEqual(error.detail["error"], {"error": "declined"})

    async def test_a_scope_that_the_role_may_not_use_is_the_error_of_the_server(self):
        error = await raised(Exception, self.il.once, "forbidden", "k", 1, self.never)
        self.assertEqual(error.sqlstate, "42501")
        await raised(ValueError, self.il.once, "pay", [], 1, self.never)
        await raised(ValueError, self.il.once, "pay", ["a", None], 1, self.never)
        await raised(TypeError, self.il.once, "pay", 7, 1, self.never)
