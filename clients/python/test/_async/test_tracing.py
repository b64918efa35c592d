"""Calls are spans of OpenTelemetry, and are counted. Debian has no package of it: this is what its API has of what we use."""

import sys
import types
from contextlib import contextmanager

ended, counts = [], {}


class Span:
    def __init__(self, name, attributes):
        self.name, self.attributes, self.status, self.exceptions = name, dict(attributes), None, []

    def set_attribute(self, name, value):
        self.attributes[name] = value

    def record_exception(self, error):
        self.exceptions.append(str(error))

    def set_status(self, status):
        self.status = status


class Tracer:
    @contextmanager
    def start_as_current_span(self, name, *, attributes, record_exception, set_status_on_exception):
        assert not record_exception and not set_status_on_exception
        span = Span(name, attributes)
        try:
            yield span
        finally:
            ended.append(span)


class Meter:
    def create_counter(self, name, *, description):
        def add(amount, attributes):
            call = " ".join([name, *attributes.values()])
            counts[call] = counts.get(call, 0) + amount

        return types.SimpleNamespace(add=add)


trace = types.SimpleNamespace(get_tracer=lambda _: Tracer(), Status=lambda code, _: code, StatusCode=types.SimpleNamespace(ERROR=2))
metrics = types.SimpleNamespace(get_meter_provider=lambda: trace, get_meter=lambda _: Meter())
sys.modules["opentelemetry"] = types.ModuleType("opentelemetry")
sys.modules["opentelemetry"].__dict__.update(trace=trace, metrics=metrics)

from pg_interlock import Held, LeaseLost, StaleVersion  # noqa: E402

from ..shared import fresh, held, run, value, wait_until  # noqa: E402
from .shop import Case, Started, raised  # noqa: E402

run(
    "SELECT interlock.grant_idempotency_scope('traced', 'app')",
    "CREATE TABLE note (id int PRIMARY KEY, body text)",
    "INSERT INTO note VALUES (1, 'old')",
    "SELECT interlock.enable_versioning('note')",
    "CREATE TABLE mail (id int PRIMARY KEY)",
    "SELECT interlock.enable_marker('mail')",
    "INSERT INTO mail VALUES (1)",
)


class TracingTest(Case):
    async def asyncSetUp(self):
        await super().asyncSetUp()
        ended.clear()
        counts.clear()

    def spans(self):
        kinds = ("error.type", "interlock.outcome")
        return [(span.name, span.status, next((span.attributes[k] for k in kinds if k in span.attributes), None)) for span in ended]

    async def hold(self, key):
        async with self.il.lease(key):
            pass

    async def test_a_lease_is_a_span_and_one_that_is_held_is_no_failure(self):
        key = fresh("traced")
        async with self.il.lease(key):
            await raised(Held, self.hold, key)
        found = [("interlock.acquire", None, None), ("interlock.acquire", None, "Held"), ("interlock.lease", None, "Held")]
        self.assertEqual(self.spans(), [*found, ("interlock.lease", None, None)])
        self.assertEqual((ended[0].attributes["interlock.key"], ended[0].attributes["db.system.name"]), (key, "postgresql"))
        acquired, leased = "interlock.calls interlock.acquire", "interlock.calls interlock.lease"
        self.assertEqual(counts, {acquired: 1, f"{acquired} Held": 1, leased: 1, f"{leased} Held": 1})

    async def test_work_that_raises_is_a_failure_with_its_exception(self):
        with self.assertRaises(ZeroDivisionError):
            async with self.il.try_lease(fresh("traced")):
                raise ZeroDivisionError("of the work")
        self.assertEqual(self.spans(), [("interlock.acquire", None, None), ("interlock.lease", 2, "ZeroDivisionError")])
        self.assertEqual((ended[1].exceptions, held()), (["of the work"], 0))
        self.assertEqual(counts["interlock.calls interlock.lease ZeroDivisionError"], 1)
        with self.assertRaises(LeaseLost):
            async with self.il.lease_all([fresh("traced"), fresh("traced")]) as lease:
                value("SELECT interlock.break_lease(%s, 'test')", lease.key)
                async with lease.transaction():
                    pass
        self.assertEqual(self.spans()[2:], [("interlock.acquire", None, None), ("interlock.lease", None, "IL006")])

    async def test_once_a_job_and_saves(self):
        key = fresh("traced")

        async def work(_):
            return {"body": "new"}

        await self.il.once("traced", key, 1, work)
        await self.il.once("traced", key, 1, work)
        await self.il.update("note", 1, work)
        await raised(StaleVersion, self.il.save, "note", 1, 0, {"body": "stale"})
        found = [("interlock.once", None, "completed"), ("interlock.once", None, "replay"), ("interlock.update", None, None)]
        self.assertEqual(self.spans(), [*found, ("interlock.save", None, "IL001")])

    async def test_a_job_of_a_worker(self):
        async def handle(job):
            worker.stop()

        worker = self.il.claim("mail", handle)
        await Started(worker.run).result()
        wait_until(lambda: value("SELECT count(*) FROM mail") == 0)
        self.assertEqual([(span.name, span.attributes["interlock.table"]) for span in ended], [("interlock.job", "mail")])
