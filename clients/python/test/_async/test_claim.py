"""Workers on a table of jobs."""

from pg_interlock import MarkerLost

from ..shared import listening, rows, run, value
from .shop import Case, Event, Started, client, eventually, raised, sleep

run(
    "CREATE TABLE job (id int PRIMARY KEY, queue text NOT NULL DEFAULT 'mail', address text)",
    "SELECT interlock.enable_marker('job', '10 min')",
    "CREATE TABLE sent (address text)",
)


def left():
    return value("SELECT count(*) FROM job")


class ClaimTest(Case):
    async def asyncSetUp(self):
        await super().asyncSetUp()
        run("TRUNCATE job, sent")

    def fill(self, count):
        run(f"INSERT INTO job SELECT i, 'mail', 'user ' || i FROM generate_series(1, {count}) i")

    async def send(self, job):
        async with job.done() as tx:
            await tx.execute("INSERT INTO sent VALUES (%s)", (job.row["address"],))

    async def test_two_workers_with_three_places_each_do_each_job_once(self):
        self.fill(40)
        run("INSERT INTO job VALUES (100, 'other', 'x')")
        working, most = [], []

        async def handle(job):
            working.append(job)
            most.append(len(working))
            await sleep(0.05)  # more would meet than may
            await self.send(job)
            working.remove(job)

        workers = [self.il.claim("job", handle, match={"queue": "mail"}, order="id", concurrency=3) for _ in range(2)]
        running = [Started(worker.run) for worker in workers]
        await eventually(lambda: left() == 1)
        for worker in workers:
            worker.stop()
        for each in running:
            await each.result()
        self.assertEqual(rows("SELECT count(*), count(DISTINCT address) FROM sent"), [(40, 40)])
        self.assertLessEqual(max(most), 6)

    async def test_stop_begins_no_job_and_waits_for_those_that_run(self):
        self.fill(3)
        begun, go = Event(), Event()

        async def handle(job):
            begun.set()
            await eventually(go.is_set)
            await self.send(job)

        worker = self.il.claim("job", handle, order="id")
        running = Started(worker.run)
        await eventually(begun.is_set)
        worker.stop()
        go.set()
        await running.result()
        self.assertEqual((left(), rows("SELECT address FROM sent")), (2, [("user 1",)]))

    async def test_what_a_handler_returns_is_saved_and_nothing_deletes_the_row(self):
        self.fill(2)

        async def handle(job):
            return {"queue": "done"} if job.row["id"] == 1 else None

        worker = self.il.claim("job", handle, match={"queue": "mail"})
        running = Started(worker.run)
        await eventually(lambda: rows("SELECT id, queue FROM job") == [(1, "done")])
        worker.stop()
        await running.result()

    async def test_a_job_that_raises_stays_hidden_and_has_no_effect(self):
        self.fill(2)
        errors = []

        async def handle(job):
            if job.row["id"] == 1:
                async with job.done() as tx:
                    await tx.execute("INSERT INTO sent VALUES ('undone')")
                    raise ZeroDivisionError
            await self.send(job)

        worker = self.il.claim("job", handle, order="id", on_error=lambda error, row: errors.append((type(error), row["id"])))
        running = Started(worker.run)
        await eventually(lambda: rows("SELECT address FROM sent") == [("user 2",)])
        worker.stop()
        await running.result()
        self.assertEqual(errors, [(ZeroDivisionError, 1)])
        self.assertTrue(value("SELECT locked FROM interlock.row_lock_of('job', 1)"))

    async def test_a_worker_that_has_lost_its_job_has_no_effect(self):
        self.fill(1)
        lost, errors = [], []

        async def handle(job):
            rows("SELECT interlock.force_unlock_row('job', 1, 'test')")
            await eventually(job.lost.is_set)
            error = await raised(MarkerLost, self.send, job)
            lost.append(error.status)
            await job.release()

        worker = self.il.claim("job", handle, ttl="3 s", on_error=lambda error, row: errors.append(error))
        running = Started(worker.run)
        await eventually(lambda: lost)
        worker.stop()
        await running.result()
        self.assertEqual((lost[0], errors, rows("SELECT * FROM sent")), (409, [], []))

    async def test_a_long_job_is_prolonged(self):
        self.fill(1)
        prolonged = []

        async def handle(job):
            first = value("SELECT lock_until FROM job")
            await eventually(lambda: value("SELECT lock_until FROM job") > first)
            prolonged.append(job.lost.is_set())

        worker = self.il.claim("job", handle, ttl="8 s")
        running = Started(worker.run)
        await eventually(lambda: left() == 0)
        worker.stop()
        await running.result()
        self.assertEqual(prolonged, [False])

    async def test_a_notification_wakes_a_worker_and_a_lost_connection_does_not_end_it(self):
        worker = self.il.claim("job", self.send, every=600, channel="job_added")
        running = Started(worker.run)
        await eventually(listening)
        self.fill(1)
        run("NOTIFY job_added")
        await eventually(lambda: left() == 0)
        run("SELECT pg_terminate_backend(pid, 100000) FROM pg_stat_activity WHERE usename = 'app'")
        self.fill(2)  # nobody hears of it
        await eventually(lambda: left() == 0)
        worker.stop()
        await running.result()

    async def test_a_pool_of_one(self):
        self.fill(5)
        async with client(max_size=1) as (il, pool):
            worker = il.claim("job", self.send, concurrency=5)
            running = Started(worker.run)
            await eventually(lambda: left() == 0)
            worker.stop()
            await running.result()
        self.assertEqual(value("SELECT count(*) FROM sent"), 5)

    async def test_what_cannot_be_cured_ends_the_loop(self):
        for arguments in ({"rel": "nothing"}, {"rel": "sent"}, {"rel": "job", "match": {"nothing": 1}}):
            worker = self.il.claim(handle=self.send, **arguments)
            await raised(Exception, worker.run)
