"""What tests of tasks do differently from those of threads."""

import asyncio
import time
import unittest
from contextlib import asynccontextmanager

from psycopg_pool import AsyncConnectionPool

from pg_interlock import AsyncInterlock

from ..shared import LATEST

Event = asyncio.Event


@asynccontextmanager
async def client(conninfo="user=app", max_size=8, **options):
    """An Interlock on a pool of the role app, and the pool."""
    pool = AsyncConnectionPool(conninfo, min_size=1, max_size=max_size, open=False, timeout=600)
    await pool.open()
    il = AsyncInterlock(pool, **options)
    try:
        yield il, pool
    finally:
        await il.close()
        await pool.close()


class Case(unittest.IsolatedAsyncioTestCase):
    async def asyncSetUp(self):
        self._client = client()
        self.il, self.pool = await self._client.__aenter__()

    async def asyncTearDown(self):
        await self._client.__aexit__(None, None, None)


class Started:
    """A call that runs next to the caller."""

    def __init__(self, work, *values, **named):
        self._task = asyncio.create_task(work(*values, **named))

    async def result(self):
        return await self._task


async def eventually(condition):
    end = time.monotonic() + LATEST
    while not condition():
        assert time.monotonic() < end, "it does not come true"
        await asyncio.sleep(0.02)


async def sleep(seconds):
    await asyncio.sleep(seconds)


async def raised(kind, work, *values, **named):
    """The error of this class that the call raises."""
    try:
        await work(*values, **named)
    except kind as error:
        return error
    raise AssertionError(f"no {kind.__name__}")
