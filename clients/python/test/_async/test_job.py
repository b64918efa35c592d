"""Work that runs once, and may take long."""

from pg_interlock import ClaimLost, Mismatch

from ..shared import fresh, rows, run, value
from .shop import Case, Event, Started, eventually, raised

run(
    "CREATE TABLE report (body text)",
    "SELECT interlock.define_idempotency_scope('report', model => 'job', stale_after => '10 min', max_attempts => 3)",
    "SELECT interlock.grant_idempotency_scope('report', 'app')",
)


class JobTest(Case):
    async def asyncSetUp(self):
        await super().asyncSetUp()
        run("TRUNCATE report")

    async def write(self, run):
        async with run.done({"lines": 7}) as tx:
            await tx.execute("INSERT INTO report VALUES ('made')")

    async def add(self, run):
        async with run.transaction() as tx:
            await tx.execute("INSERT INTO report VALUES ('stale')")

    async def never(self, run):
        self.fail("it works again")

    async def test_of_several_nodes_one_does_it_once(self):
        key, working, go = fresh("day"), Event(), Event()

        async def work(run):
            working.set()
            await eventually(go.is_set)
            await self.write(run)

        first = Started(self.il.job, "report", key, work)
        await eventually(working.is_set)
        other = await self.il.job("report", key, self.never)
        self.assertEqual((other.ran, other.outcome, other.result), (False, "in_progress", None))
        self.assertGreater(other.retry_after, 0)
        go.set()
        ran = await first.result()
        self.assertEqual((ran.ran, ran.outcome, ran.result), (True, "completed", {"lines": 7}))
        again = await self.il.job("report", key, self.never)
        self.assertEqual((again.ran, again.outcome, again.result), (False, "completed", {"lines": 7}))
        self.assertEqual(rows("SELECT body FROM report"), [("made",)])

    async def test_what_the_work_returns_is_the_result(self):
        async def work(run):
            return [run.attempt, run.checkpoint, run.state]

        self.assertEqual((await self.il.job("report", fresh("day"), work)).result, [1, None, None])

    async def test_work_that_raises_continues_at_its_checkpoint_and_is_exhausted_in_the_end(self):
        key, seen = fresh("file"), []

        async def work(run):
            seen.append((run.attempt, run.checkpoint, run.state))
            async with run.save("batch", {"next": len(seen)}) as tx:
                await tx.execute("INSERT INTO report VALUES ('batch')")
            async with run.save("undone", {"next": -1}) as tx:
                await tx.execute("INSERT INTO report VALUES ('undone')")
                raise ZeroDivisionError("of the work")

        for _ in range(3):
            await raised(ZeroDivisionError, self.il.job, "report", key, work)
        self.assertEqual(seen, [(1, None, None), (2, "batch", {"next": 1}), (3, "batch", {"next": 2})])
        self.assertEqual((await self.il.job("report", key, self.never)).outcome, "exhausted")
        self.assertEqual(rows("SELECT DISTINCT body FROM report"), [("batch",)])

    async def test_a_worker_that_was_taken_over_has_no_effect(self):
        key, lost = fresh("day"), []

        async def work(run):
            rows("SELECT interlock.idempotency_forget('report', %s, 'test', force => true)", key)
            await self.il.job("report", key, self.write)
            lost.append(await raised(ClaimLost, self.add, run))  # before the heartbeat has found it
            self.assertTrue(run.lost.is_set())
            run.check()

        error = await raised(ClaimLost, self.il.job, "report", key, work)
        self.assertEqual((error.status, len(lost)), (409, 1))
        self.assertEqual(rows("SELECT body FROM report"), [("made",)])

    async def test_a_long_job_is_prolonged(self):
        key = fresh("day")
        deadline = "SELECT deadline FROM interlock.idempotency WHERE key = %s"

        async def work(run):
            first = value(deadline, key)
            await eventually(lambda: value(deadline, key) > first)
            run.check()

        self.assertTrue((await self.il.job("report", key, work, stale_after="8 s")).ran)

    async def test_another_request_is_a_mismatch(self):
        key = fresh("day")
        await self.il.job("report", key, self.write, request={"a": 1})
        await raised(Mismatch, self.il.job, "report", key, self.never, request={"a": 2})
