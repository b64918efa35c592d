# Made from _async/test_lost.py by to_sync.py.
"""What can go wrong under a lease: the server is away, restarted or silent, answers are lost, the process is stopped."""

import signal
import subprocess
import sys
from contextlib import contextmanager

from pg_interlock import LeaseLost

from ..shared import Proxy, Server, fresh, held, rows, run, value, wait_until
from .shop import Case, Started, client, eventually, raised, sleep

run("CREATE TABLE effect (holder text)")
HEARTBEATS = "FROM pg_stat_activity WHERE usename = 'app' AND query LIKE '%renew_lease%' AND pid <> pg_backend_pid()"


def write(lease, holder="stale"):
    with lease.transaction() as tx:
        tx.execute("INSERT INTO effect VALUES (%s)", (holder,))


def hold(il, key, *values, **options):
    with il.lease(key, *values, **options):
        return "served"


@contextmanager
def behind():
    """An Interlock behind a proxy."""
    between = Proxy()
    try:
        with client(between.conninfo) as (il, pool):
            yield il, between
            between.mode = "open"
    finally:
        between.close()


class LostTest(Case):
    def setUp(self):
        super().setUp()
        run("TRUNCATE effect")

    def test_an_acquire_whose_answer_was_lost_is_resumed_and_leaves_one_lease(self):
        with behind() as (il, between):
            key = fresh("answer")
            hold(il, fresh("first"))  # the connection is there
            between.drop_next("acquired")
            with il.lease(key, 600) as lease:
                self.assertTrue(between.dropped)
                self.assertEqual((il.lookup(key)).holder, lease.holder)
                write(lease)
            self.assertIsNone(il.lookup(key))
            self.assertEqual(held(), 0)

    def test_a_release_whose_answer_was_lost_is_repeated(self):
        with behind() as (il, between):
            lease = il.acquire(fresh("answer"), 600)
            between.drop_next("released")
            lease.release()
            self.assertTrue(between.dropped)
            self.assertEqual(held(), 0)

    def test_connections_that_are_cut_are_made_again_by_the_heartbeat(self):
        with behind() as (il, between):
            with il.lease(fresh("cut"), 12) as lease:
                before = lease.expires_at
                between.cut()
                eventually(lambda: lease.expires_at > before)
                lease.check()
                written(lease)

    def test_a_heartbeat_that_an_administrator_ends_is_made_again(self):
        with self.il.lease(fresh("ended"), 12) as lease:
            lease.renew()
            before = lease.expires_at
            self.assertEqual(rows(f"SELECT pg_terminate_backend(pid, 100000) {HEARTBEATS}"), [(True,)])
            eventually(lambda: lease.expires_at > before)
            write(lease)

    def test_a_server_that_refuses_or_is_silent_sets_the_event_and_nothing_is_written(self):
        for mode in ("refuse", "silent"):
            with self.subTest(mode):
                with behind() as (il, between):
                    with self.assertRaises(LeaseLost):
                        with il.lease(fresh("away"), 3) as lease:
                            between.mode = mode
                            if mode == "refuse":
                                between.cut()
                            self.assertTrue(lease.lost.wait())
                            raised(LeaseLost, write, lease)
                            between.mode = "open"
                    self.assertEqual(value("SELECT count(*) FROM effect"), 0)

    def test_a_waiter_outlasts_a_server_that_is_away(self):
        with behind() as (il, between):
            key = fresh("away")
            value("SELECT outcome FROM interlock.acquire_lease(%s, 600, holder => 'other')", key)
            waiting = Started(hold, il, key, wait="10 min")
            eventually(lambda: held() == 2)
            between.mode = "refuse"
            between.cut()
            value("SELECT interlock.release_lease(%s, holder => 'other')", key)  # nobody hears of it
            sleep(0.3)
            between.mode = "open"
            self.assertEqual(waiting.result(), "served")

    def test_a_commit_that_has_no_answer_is_an_error_and_one_effect_at_most(self):
        with behind() as (il, between):
            with il.lease(fresh("commit"), 600) as lease:
                between.drop_next("COMMIT")
                raised(Exception, write, lease, "once")
                self.assertTrue(between.dropped)
                lease.check()
            self.assertEqual(value("SELECT count(*) FROM effect"), 1)

    def test_a_process_that_is_stopped_for_longer_than_the_ttl_cannot_commit_when_it_wakes_up(self):
        key = fresh("stopped")
        program = [sys.executable, "-m", "test._sync.stopped", key]
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

    def test_a_server_that_is_restarted_and_one_that_crashes(self):
        server = Server()
        try:
            with client(server.conninfo) as (il, pool):
                for mode in ("fast", "immediate"):
                    with il.lease(fresh(mode), 600) as lease:
                        waiting = Started(hold, il, lease.key, 600, wait="10 min")
                        eventually(lambda: server.held() == 2)
                        server.restart(mode)
                        renewed(lease)
                        written(lease, "SELECT 1")
                    self.assertEqual(waiting.result(), "served")
        finally:
            server.stop()


def renewed(lease):
    """Again until the server can be reached."""
    while True:
        try:
            return lease.renew()
        except LeaseLost:
            raise
        except Exception:
            sleep(0.1)


def written(lease, sql="INSERT INTO effect VALUES ('kept')"):
    """A transaction, again on another connection if the pool's was cut."""
    while True:
        try:
            with lease.transaction() as tx:
                return tx.execute(sql)
        except LeaseLost:
            raise
        except Exception:
            sleep(0.1)
