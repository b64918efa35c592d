"""What a process does to leases: an event loop that is blocked, a task that is cancelled, a fork."""

import asyncio
import os
import time
import unittest

from psycopg import Connection

from pg_interlock import Held, Interlock, LeaseLost

from ._async import shop as tasks
from ._sync import shop as threads
from .shared import fresh, held, run, value

run("CREATE TABLE effect (holder text)")


class TaskTest(tasks.Case):
    async def test_a_loop_that_is_blocked_for_longer_than_the_ttl(self):
        with self.assertRaises(LeaseLost):
            async with self.il.lease(fresh("blocked"), 1) as lease:
                time.sleep(1.5)
                self.assertTrue(lease.lost.is_set())  # at once, before any task could run
                self.assertRaises(LeaseLost, lease.check)
                with self.assertRaises(LeaseLost):
                    async with lease.transaction() as tx:
                        await tx.execute("INSERT INTO effect VALUES ('stale')")
        self.assertEqual(value("SELECT count(*) FROM effect"), 0)

    async def test_a_waiter_that_is_cancelled_leaves_no_ticket(self):
        key = fresh("cancelled")
        async with self.il.lease(key, 600):
            waiting = asyncio.create_task(self.il.acquire(key, wait="10 min"))
            await tasks.eventually(lambda: held() == 2)
            waiting.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await waiting
            self.assertEqual(held(), 1)

    async def test_a_block_that_is_cancelled_releases_it(self):
        key, begun = fresh("cancelled"), asyncio.Event()

        async def work():
            async with self.il.lease(key, 600):
                begun.set()
                await asyncio.sleep(600)

        working = asyncio.create_task(work())
        await begun.wait()
        working.cancel()
        with self.assertRaises(asyncio.CancelledError):
            await working
        self.assertEqual(held(), 0)

    async def test_an_acquire_that_is_cancelled_on_its_way_leaves_nothing(self):
        cancelled = 0
        for steps in range(12):  # at each point at which it can be
            acquiring = asyncio.create_task(self.il.acquire(fresh("cancelled"), 600))
            for _ in range(steps):
                await asyncio.sleep(0)
            acquiring.cancel()
            try:
                await (await acquiring).release()
            except asyncio.CancelledError:
                cancelled += 1
            await tasks.eventually(lambda: held() == 0)
        self.assertGreater(cancelled, 1)


class ForkTest(threads.Case):
    def in_child(self, work):
        """The exit status of a child that does the work: 0 if it raises nothing."""
        child = os.fork()
        if child == 0:
            try:
                work()
            except BaseException as error:
                print(f"# in the child: {error!r}", flush=True)
                os._exit(1)
            os._exit(0)
        return os.waitpid(child, 0)[1]

    def test_a_child_uses_connections_of_its_own(self):
        def session(il):
            return il._own()[0].query("SELECT pg_backend_pid()::text AS pid", (), 60)[0]["pid"]

        with Connection.connect("user=app") as connection, Interlock(connection) as il:
            parent = session(il)

            def work():
                il.acquire(fresh("child"), 600).release()
                assert session(il) != parent

            self.assertEqual(self.in_child(work), 0)
            self.assertEqual(session(il), parent)

    def test_a_child_does_not_release_what_its_parent_holds(self):
        key = fresh("parent")
        lease = self.il.acquire(key, 600)

        def leave():
            with lease:
                assert lease.release() is False

        self.assertEqual(self.in_child(leave), 0)
        self.assertRaises(Held, self.il.acquire, key)
        lease.check()
        self.assertTrue(lease.release())
