"""What can go wrong under a lease: the server is away, restarted or silent, answers are lost, the process is stopped."""

import signal
import subprocess
import sys
from contextlib import asynccontextmanager

from pg_interlock import LeaseLost

from ..shared import Proxy, Server, fresh, held, rows, run, value, wait_until
from .shop import Case, Started, client, eventually, raised, sleep

run("CREATE TABLE effect (holder text)")
HEARTBEATS = "FROM pg_stat_activity WHERE usename = 'app' AND query LIKE '%renew_lease%' AND pid <> pg_backend_pid()"


async def write(lease, holder="stale"):
    async with lease.transaction() as tx:
        await tx.execute("INSERT INTO effect VALUES (%s)", (holder,))


async def hold(il, key, *values, **options):
    async with il.lease(key, *values, **options):
        return "served"


@asynccontextmanager
async def behind():
    """An Interlock behind a proxy."""
    between = Proxy()
    try:
        async with client(between.conninfo) as (il, pool):
            yield il, between
            between.mode = "open"
    finally:
        between.close()


class LostTest(Case):
    async def asyncSetUp(self):
        await super().asyncSetUp()
        run("TRUNCATE effect")

    async def test_an_acquire_whose_answer_was_lost_is_resumed_and_leaves_one_lease(self):
        async with behind() as (il, between):
            key = fresh("answer")
            await hold(il, fresh("first"))  # the connection is there
            between.drop_next("acquired")
            async with il.lease(key, 600) as lease:
                self.assertTrue(between.dropped)
                self.assertEqual((await il.lookup(key)).holder, lease.holder)
                await write(lease)
            self.assertIsNone(await il.lookup(key))
            self.assertEqual(held(), 0)

    async def test_a_release_whose_answer_was_lost_is_repeated(self):
        async with behind() as (il, between):
            lease = await il.acquire(fresh("answer"), 600)
            between.drop_next("released")
            await lease.release()
            self.assertTrue(between.dropped)
            self.assertEqual(held(), 0)

    async def test_connections_that_are_cut_are_made_again_by_the_heartbeat(self):
        async with behind() as (il, between):
            async with il.lease(fresh("cut"), 12) as lease:
                before = lease.expires_at
                between.cut()
                await eventually(lambda: lease.expires_at > before)
                lease.check()
                await written(lease)

    async def test_a_heartbeat_that_an_administrator_ends_is_made_again(self):
        async with self.il.lease(fresh("ended"), 12) as lease:
            await lease.renew()
            before = lease.expires_at
            self.assertEqual(rows(f"SELECT pg_terminate_backend(pid, 100000) {HEARTBEATS}"), [(True,)])
            await eventually(lambda: lease.expires_at > before)
            await write(lease)

    async def test_a_server_that_refuses_or_is_silent_sets_the_event_and_nothing_is_written(self):
        for mode in ("refuse", "silent"):
            with self.subTest(mode):
                async with behind() as (il, between):
                    with self.assertRaises(LeaseLost):
                        async with il.lease(fresh("away"), 3) as lease:
                            between.mode = mode
                            if mode == "refuse":
                                between.cut()
                            self.assertTrue(await lease.lost.wait())
                            await raised(LeaseLost, write, lease)
                            between.mode = "open"
                    self.assertEqual(value("SELECT count(*) FROM effect"), 0)

    async def test_a_waiter_outlasts_a_server_that_is_away(self):
        async with behind() as (il, between):
            key = fresh("away")
            value("SELECT outcome FROM interlock.acquire_lease(%s, 600, holder => 'other')", key)
            waiting = Started(hold, il, key, wait="10 min")
            await eventually(lambda: held() == 2)
            between.mode = "refuse"
            between.cut()
            value("SELECT interlock.release_lease(%s, holder => 'other')", key)  # nobody hears of it
            await sleep(0.3)
            between.mode = "open"
            self.assertEqual(await waiting.result(), "served")

    async def test_a_commit_that_has_no_answer_is_an_error_and_one_effect_at_most(self):
        async with behind() as (il, between):
            async with il.lease(fresh("commit"), 600) as lease:
                between.drop_next("COMMIT")
                await raised(Exception, write, lease, "once")
                self.assertTrue(between.dropped)
                lease.check()
            self.assertEqual(value("SELECT count(*) FROM effect"), 1)

    async def test_a_process_that_is_stopped_for_longer_than_the_ttl_cannot_commit_when_it_wakes_up(self):
        key = fresh("stopped")
        program = [sys.executable, "-m", "test._async.stopped", key]
        with subprocess.Popen(program, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
            self.assertEqual(child.stdout.readline(), "working\n")
            child.send_signal(signal.SIGSTOP)
            acquire = "SELECT outcome FROM interlock.acquire_lease(%s, 600, holder => 'next')"
            wait_until(lambda: value(acquire, key) != "held")
            run("INSERT INTO effect VALUES ('next')")
            child.stdin.write("write\n")
            child.stdin.flush()
            child.send_signal(signal.SIGCONT)
            said = child.stdout.read().splitlines()
        self.assertEqual(said, ["transaction: LeaseLost", "lost: True", "lease: LeaseLost"])
        self.assertEqual(child.returncode, 0)
        self.assertEqual(rows("SELECT holder FROM effect"), [("next",)])
        value("SELECT interlock.break_lease(%s, 'test')", key)

    async def test_a_server_that_is_restarted_and_one_that_crashes(self):
        server = Server()
        try:
            async with client(server.conninfo) as (il, pool):
                for mode in ("fast", "immediate"):
                    async with il.lease(fresh(mode), 600) as lease:
                        waiting = Started(hold, il, lease.key, 600, wait="10 min")
                        await eventually(lambda: server.held() == 2)
                        server.restart(mode)
                        await renewed(lease)
                        await written(lease, "SELECT 1")
                    self.assertEqual(await waiting.result(), "served")
        finally:
            server.stop()


async def renewed(lease):
    """Again until the server can be reached."""
    while True:
        try:
            return await lease.renew()
        except LeaseLost:
            raise
        except Exception:
            await sleep(0.1)


async def written(lease, sql="INSERT INTO effect VALUES ('kept')"):
    """A transaction, again on another connection if the pool's was cut."""
    while True:
        try:
            async with lease.transaction() as tx:
                return await tx.execute(sql)
        except LeaseLost:
            raise
        except Exception:
            await sleep(0.1)
