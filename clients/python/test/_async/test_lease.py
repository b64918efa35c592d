"""Leases: held, renewed, asserted, released, waited for."""

import re
from datetime import datetime, timedelta, timezone

from pg_interlock import AsyncInterlock, Held, LeaseLost
from psycopg import AsyncConnection, ProgrammingError
from psycopg.errors import InFailedSqlTransaction

from ..shared import deafen, fresh, held, listening, rows, run, value
from .shop import Case, Event, Started, client, eventually, raised

run("CREATE TABLE report (body text)")


def below(name):
    return value("SELECT count(*) FROM interlock.leases WHERE starts_with(key, %s)", f"{name}/")


class LeaseTest(Case):
    async def acquire_one(self, key, *values, **options):
        async with self.il.lease(key, *values, **options):
            pass

    async def test_a_block_runs_under_the_lease(self):
        key = fresh("report")
        async with self.il.lease(key, "10 min") as lease:
            found = rows("SELECT token, role::text FROM interlock.leases WHERE key = %s", key)
            self.assertEqual(found, [(lease.token, "app")])
            in_the_way = await self.il.lookup(key)
            self.assertEqual((in_the_way.holder, in_the_way.key, in_the_way.mode), (lease.holder, key, "exclusive"))
            self.assertGreater(lease.expires_at, datetime.now(timezone.utc))
            self.assertFalse(lease.lost.is_set())
            lease.check()
        self.assertIsNone(await self.il.lookup(key))

    async def test_a_lease_that_is_held_is_refused_with_its_holder(self):
        key = fresh("report")
        async with self.il.lease(key, 600, name="anna") as lease:
            error = await raised(Held, self.acquire_one, key)
            self.assertEqual((error.status, error.holder, error.recovering), (423, lease.holder, False))
            self.assertLess(abs(error.expires_at - lease.expires_at), timedelta(seconds=1))
            self.assertTrue(re.fullmatch(r"anna \d+ [0-9a-f]{8}", error.holder))
            self.assertEqual(error.headers, {"Retry-After": str(error.retry_after)})
            async with self.il.try_lease(key) as none:
                self.assertIsNone(none)
        async with self.il.try_lease(key) as lease:
            lease.check()

    async def test_a_block_that_raises_releases_it(self):
        key = fresh("report")
        with self.assertRaises(ZeroDivisionError):
            async with self.il.lease(key, 600):
                raise ZeroDivisionError
        self.assertIsNone(await self.il.lookup(key))

    async def test_it_is_renewed_at_half_of_its_ttl_by_a_connection_of_its_own(self):
        async with self.il.lease(fresh("report"), timedelta(seconds=8)) as lease:
            first = lease.expires_at
            await eventually(lambda: lease.expires_at > first)
            lease.check()
            self.assertTrue(await lease.renew("10 min"))
            self.assertGreater(lease.expires_at, datetime.now(timezone.utc) + timedelta(minutes=5))

    async def test_a_transaction_under_it_is_one_that_no_later_holder_can_meet(self):
        run("TRUNCATE report")
        key = fresh("report")
        async with self.il.lease(key, 600) as lease:
            async with lease.transaction() as tx:
                await tx.execute("INSERT INTO report VALUES ('by the holder')")
                self.assertEqual(len((await self.il.lookup(key)).pinned_by), 1)
            with self.assertRaises(ZeroDivisionError):
                async with lease.transaction() as tx:
                    await tx.execute("INSERT INTO report VALUES ('rolled back')")
                    raise ZeroDivisionError
            async with lease.transaction("serializable") as tx:
                cursor = await tx.execute("SHOW transaction_isolation")
                self.assertEqual(await cursor.fetchone(), ("serializable",))
        self.assertEqual(rows("SELECT body FROM report"), [("by the holder",)])

    async def test_a_lease_that_is_lost_has_no_effect_and_is_LeaseLost(self):
        run("TRUNCATE report")
        key = fresh("report")

        async def write(lease):
            async with lease.transaction() as tx:
                await tx.execute("INSERT INTO report VALUES ('stale')")

        with self.assertRaises(LeaseLost) as block:
            async with self.il.lease(key, 600) as lease:
                value("SELECT interlock.break_lease(%s, 'test')", key)
                async with self.il.lease(key, 600):
                    await raised(LeaseLost, write, lease)
                self.assertTrue(lease.lost.is_set())
                self.assertRaises(LeaseLost, lease.check)
                await raised(LeaseLost, write, lease)
        error = block.exception
        self.assertEqual((error.status, error.sqlstate, error.detail["state"]), (409, "IL006", "gone"))
        self.assertEqual(error.detail["token"], lease.token)
        self.assertEqual(value("SELECT count(*) FROM report"), 0)

    async def test_the_heartbeat_finds_that_it_is_lost_and_sets_the_event(self):
        key = fresh("report")
        with self.assertRaises(LeaseLost):
            async with self.il.lease(key, 2) as lease:
                value("SELECT interlock.break_lease(%s, 'test')", key)
                self.assertTrue(await lease.lost.wait())
        self.assertFalse(await lease.lost.wait(0) and not lease.lost.is_set())

    async def test_what_is_released_cannot_write(self):
        key = fresh("report")
        lease = await self.il.acquire(key, 600)
        self.assertTrue(await lease.release())
        self.assertFalse(await lease.release())
        self.assertIsNone(await self.il.lookup(key))
        self.assertRaises(LeaseLost, lease.check)
        await raised(LeaseLost, lease.renew)
        self.assertFalse(await lease.lost.wait(0.01))

    async def test_two_keys_are_two_leases_and_paths_exclude_what_is_above_and_below(self):
        name = fresh("shop")
        async with self.il.lease([name, "a"]), self.il.lease([name, "b"]):
            for key in ([name], [name, "a", 1], [name, "a"]):
                await raised(Held, self.acquire_one, key)  # it is not reentrant
        async with self.il.lease([name], mode="shared"), self.il.lease([name], mode="shared"):
            await raised(Held, self.acquire_one, [name])

    async def test_permits_are_as_many_as_the_capacity(self):
        key = fresh("printer")
        async with self.il.lease(key, 600, capacity=2) as one, self.il.lease(key, 600, capacity=2) as two:
            self.assertNotEqual(one.token, two.token)
            await raised(Held, self.acquire_one, key, capacity=2)
            async with one.transaction():
                pass
            waiting = Started(self.acquire_one, key, 600, capacity=2, wait="10 min")
            await eventually(lambda: held() == 3)
            await one.release()
            await waiting.result()
        self.assertEqual(held(), 0)
        for options in ({"mode": "exclusive"}, {"at_least": 1}):
            await raised(TypeError, self.il.acquire, key, capacity=2, **options)

    async def use_all(self, keys, *values, **options):
        async with self.il.lease_all(keys, *values, **options):
            pass

    async def test_several_keys_are_leased_all_or_none_and_renewed_asserted_and_released_together(self):
        run("TRUNCATE report")
        name = fresh("several")
        keys = [[name, "b"], [name, "a"], [name, "b"]]
        async with self.il.lease_all(keys, 3) as lease:
            self.assertEqual(list(lease.tokens), [f"{name}/b", f"{name}/a"])
            first = lease.expires_at
            await eventually(lambda: lease.expires_at > first)
            error = await raised(Held, self.il.acquire_all, [[name, "c"], [name, "a"]])
            self.assertEqual((error.detail["key"], error.holder, below(name)), (f"{name}/a", lease.holder, 2))
            async with lease.transaction() as tx:
                await tx.execute("INSERT INTO report VALUES ('under both')")
            for key, token in lease.tokens.items():
                self.assertEqual(rows("SELECT token FROM interlock.leases WHERE key = %s", key), [(token,)])
        self.assertEqual(held(), 0)
        with self.assertRaises(LeaseLost):
            async with self.il.lease_all(keys, 600) as lease:
                value("SELECT interlock.break_lease(%s, 'test')", f"{name}/a")  # one is lost: all of it is
                async with lease.transaction() as tx:
                    await tx.execute("INSERT INTO report VALUES ('stale')")
        self.assertEqual((held(), value("SELECT count(*) FROM report")), (0, 1))
        with self.assertRaises(LeaseLost):
            async with self.il.lease_all(keys, 2) as lease:
                value("SELECT interlock.break_lease(%s, 'test')", f"{name}/b")
                self.assertTrue(await lease.lost.wait())
        for none in ([], "name"):
            await raised(TypeError, self.il.acquire_all, none)
        self.assertEqual((await raised(Exception, self.il.acquire_all, [name, [name, "a"]])).sqlstate, "22023")

    async def test_calls_for_several_keys_in_all_orders_wait_for_each_other_and_none_for_ever(self):
        run("TRUNCATE report")
        name = fresh("several")
        working, most = [], []

        async def work(keys):
            async with self.il.lease_all(keys, 600, wait="10 min") as lease:
                working.append(name)
                most.append(len(working))  # each has b
                async with lease.transaction() as tx:
                    await tx.execute("INSERT INTO report VALUES ('x')")
                working.remove(name)

        ways = [[[name, level] for level in levels] for levels in ("ab", "ba", "bc", "cab")]
        for each in [Started(work, keys) for keys in ways + ways]:
            await each.result()
        self.assertEqual((most, value("SELECT count(*) FROM report"), held()), ([1] * 8, 8, 0))

    async def test_a_wait_for_several_keys_holds_no_connection_of_the_pool_and_leaves_nothing(self):
        name = fresh("several")
        keys = [[name, "a"], [name, "b"]]
        async with client(max_size=1) as (il, _):
            async with il.lease([name, "b"], 600) as lease:
                before = held()
                await raised(Held, self.use_all, keys, wait="0.3 s")
                self.assertEqual(held(), before)
                waiting = [Started(il.acquire_all, keys, 600, wait="10 min") for _ in range(3)]
                await eventually(lambda: held() >= before + 3)
                async with lease.transaction():
                    pass

            async def release(waiter):
                await (await waiter.result()).release()

            for each in [Started(release, waiter) for waiter in waiting]:  # they are not served in their order
                await each.result()
        self.assertEqual(held(), 0)

    async def test_nobody_listens_when_nobody_waits(self):
        key = fresh("turn")
        async with self.il.lease(key, 600):
            await raised(Held, self.acquire_one, key, wait="0.3 s")
        async with client() as (il, _):
            await (await il.acquire(fresh("turn"), wait=1)).release()
            self.assertEqual(il._own()[1]._waiters, 0)
        self.assertEqual(self.il._own()[1]._waiters, 0)

    async def test_at_least_keeps_it_in_the_way(self):
        key = fresh("tick")
        await self.acquire_one(key, 600, at_least=600)
        await raised(Held, self.acquire_one, key)
        value("SELECT interlock.break_lease(%s, 'test')", key)

    async def test_what_is_no_option_is_an_error(self):
        for options in ({"ttl": "soon"}, {"ttl": -1}, {"wait": float("nan")}, {"at_least": "1 parsec"}):
            await raised(ValueError, self.il.acquire, "x", **options)
        for key, options in (("x", {"ttl": 0}), ("", {}), ("x", {"ttl": 1, "at_least": 2}), ("x", {"mode": "both"})):
            error = await raised(Exception, self.il.acquire, key, **options)
            self.assertEqual(error.sqlstate, "22023")
        self.assertEqual(held(), 0)

    async def test_waiters_are_served_one_at_a_time_and_hold_no_connection_of_the_pool(self):
        key = fresh("turn")
        first = await self.il.acquire(key, 600)
        working, served = [], []

        async def wait(name):
            async with self.il.lease(key, 600, wait="10 min") as lease:
                working.append(name)
                async with lease.transaction():
                    served.append(len(working))
                working.remove(name)

        waiters = [Started(wait, name) for name in range(20)]
        await eventually(lambda: held() == 21)
        busy = "SELECT count(*) FROM pg_stat_activity WHERE usename = 'app' AND state <> 'idle' AND datname = current_database()"
        await eventually(lambda: listening() and value(busy) == 0)
        await first.release()
        for waiter in waiters:
            await waiter.result()
        self.assertEqual(served, [1] * 20)
        self.assertEqual(held(), 0)

    async def test_a_wait_that_is_over_leaves_no_ticket(self):
        key = fresh("turn")
        async with self.il.lease(key, 600):
            await raised(Held, self.acquire_one, key, wait="0.3 s")
            self.assertEqual(held(), 1)

    async def test_a_listener_that_is_ended_and_what_is_released_meanwhile(self):
        key = fresh("turn")
        async with self.il.lease(key, 600):
            waiting = Started(self.acquire_one, key, 600, wait="10 min")
            await eventually(lambda: held() == 2 and listening())
            deafen()
        await waiting.result()  # nobody has heard the notification

    async def test_work_that_never_ends_holds_it_for_its_limit(self):
        key = fresh("endless")
        told = Event()

        async def endless():
            async with self.il.lease(key, 1, limit=1) as lease:
                await lease.lost.wait()
                told.set()
                await eventually(lambda: ended)

        ended = []
        working = Started(endless)
        await eventually(told.is_set)
        await self.acquire_one(key, wait="10 min")
        ended.append(True)
        await raised(LeaseLost, working.result)

    async def test_a_pool_that_is_used_up_does_not_hold_up_the_heartbeat_nor_a_lease(self):
        key = fresh("small pool")
        async with client(max_size=1) as (il, pool):
            async with pool.connection() as busy:
                async with il.lease(key, 8) as lease:
                    first = lease.expires_at
                    await busy.execute("SELECT 1")
                    await eventually(lambda: lease.expires_at > first)
                    lease.check()
                    self.assertEqual(value("SELECT outcome FROM interlock.acquire_lease(%s)", key), "held")
            async with il.lease(key) as lease, lease.transaction():
                pass

    async def test_a_transaction_whose_error_was_swallowed_is_an_error(self):
        run("TRUNCATE report")
        with self.assertRaises(InFailedSqlTransaction):
            async with self.il.transaction() as tx:
                await tx.execute("INSERT INTO report VALUES ('lost')")
                try:
                    await tx.execute("SELECT 1/0")
                except Exception:
                    pass
        self.assertEqual(value("SELECT count(*) FROM report"), 0)

    async def test_one_connection_instead_of_a_pool(self):
        run("TRUNCATE report")
        key = fresh("one")
        async with await AsyncConnection.connect("user=app") as connection, AsyncInterlock(connection) as il:
            async with il.lease(key, 600) as lease, lease.transaction() as tx:
                self.assertIs(tx, connection)
                await tx.execute("INSERT INTO report VALUES ('kept')")
            await connection.execute("INSERT INTO report VALUES ('not committed')")
            async with il.lease(key, 600) as lease:
                with self.assertRaises(ProgrammingError):  # it would be a savepoint, which nobody commits
                    async with lease.transaction():
                        self.fail()
            await connection.rollback()
        self.assertEqual(rows("SELECT body FROM report"), [("kept",)])

    async def test_what_is_no_pool_is_refused(self):
        for none in (None, {}, "dbname=app", object()):
            self.assertRaises(TypeError, AsyncInterlock, none)
