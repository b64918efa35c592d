"""What tests of threads do differently from those of tasks."""

import concurrent.futures
import threading
import time
import unittest
from contextlib import contextmanager

from psycopg_pool import ConnectionPool

from pg_interlock import Interlock

from ..shared import wait_until as eventually

Event = threading.Event


@contextmanager
def client(conninfo="user=app", max_size=8, **options):
    """An Interlock on a pool of the role app, and the pool."""
    with ConnectionPool(conninfo, min_size=1, max_size=max_size, timeout=600) as pool:
        with Interlock(pool, **options) as il:
            yield il, pool


class Case(unittest.TestCase):
    def setUp(self):
        self._client = client()
        self.il, self.pool = self._client.__enter__()

    def tearDown(self):
        self._client.__exit__(None, None, None)


class Started:
    """A call that runs next to the caller."""

    def __init__(self, work, *values, **named):
        self._future = concurrent.futures.Future()
        threading.Thread(target=self._run, args=(work, values, named), daemon=True).start()

    def _run(self, work, values, named):
        try:
            self._future.set_result(work(*values, **named))
        except BaseException as error:
            self._future.set_exception(error)

    def result(self):
        return self._future.result()


def sleep(seconds):
    time.sleep(seconds)


def raised(kind, work, *values, **named):
    """The error of this class that the call raises."""
    try:
        work(*values, **named)
    except kind as error:
        return error
    raise AssertionError(f"no {kind.__name__}")
