# An application on asyncpg with the code of docs/clients/asyncpg.md. Prints TAP.
# needs: python3-asyncpg python3-psycopg
# only with --all

import asyncio
import json
import threading
import types

import asyncpg

from calls import call_all
from client import check_page, fresh_notes, sql, stored
from page import OWNER, check, equal, finish, load, refused

page = load("asyncpg", sql)
loop = asyncio.new_event_loop()
threading.Thread(target=loop.run_forever, daemon=True).start()


def run(coroutine):
    """Its result, from any thread."""
    return asyncio.run_coroutine_threadsafe(coroutine, loop).result()


def of_threads(function):
    return lambda *values: run(function(*values))


def rows(query, *values):
    return [tuple(record) for record in run(page.pool.fetch(query, *values))]


def one_at_a_time(name, work):
    async def body():
        async with page.one_at_a_time(name):
            return await asyncio.to_thread(work)
    return run(body())


def under_lease(key, ttl, work):
    async def body():
        async with page.lease(key, ttl) as held:
            if held is None:
                return None
            lost = threading.Event()

            async def relay():
                await held.lost.wait()
                lost.set()
            relaying = asyncio.create_task(relay())
            result = await asyncio.to_thread(work, types.SimpleNamespace(token=held.token, lost=lost))
            relaying.cancel()
            return result
    return run(body())


def repeat(query, attempts):
    async def once():
        async with page.transaction() as connection:
            await connection.execute(query)
    run(page.retry(once, attempts))


run(page.start())
check_page(types.SimpleNamespace(
    repeat=repeat,
    page=types.SimpleNamespace(StaleError=page.StaleError, save_note=of_threads(page.save_note),
                               add_hit=of_threads(page.add_hit), pay=of_threads(page.pay)),
    rows=rows, update="SELECT interlock.versioned_update($1, $2::int, $3::bigint, $4)", json=lambda value: value, under_lease=under_lease, one_at_a_time=one_at_a_time, sqlstate=lambda error: error.sqlstate,
    read=lambda id: rows("SELECT hits FROM plain_note WHERE id = $1", id)[0][0],
    write=lambda id, hits: rows("UPDATE plain_note SET hits = $1 WHERE id = $2", hits, id)))


@check("what the page does under a lease")
def _():
    fresh_notes()
    sql("UPDATE note SET body = '' WHERE id = 1 AND version = 1")
    run(page.tidy())
    equal((stored(1), stored(2)), (None, ("old", 0, 1)))


@check("the heartbeat survives a lost connection, and stops the work when the server cannot be reached")
def _():
    def work(held):
        kill = """SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
            WHERE datname = current_database() AND query ~ 'acquire_lease' AND pid <> pg_backend_pid()"""
        equal(sql(kill).fetchone(), (1,))
        first = sql("SELECT expires_at FROM interlock.lease_of('client')").fetchone()
        while sql("SELECT expires_at FROM interlock.lease_of('client')").fetchone() == first:
            assert not held.lost.wait(0.05)

        async def away(*values, **more):
            raise OSError("away")
        page.asyncpg, real = types.SimpleNamespace(**{**vars(asyncpg), "connect": away}), asyncpg
        try:
            sql(kill.replace("acquire_lease", "renew_lease"))
            held.lost.wait()
        finally:
            page.asyncpg = real
        return "ended"
    equal(under_lease("client", 6, work), "ended")


@check("a marker of another holder is the error of a lock, with DETAIL")
def _():
    sql("CREATE TABLE doc (id int PRIMARY KEY, body text)")
    sql("SELECT interlock.enable_marker('doc')")
    sql("INSERT INTO doc VALUES (1, 'old')")
    sql("SELECT interlock.lock_row('doc', 1, 'anna')")

    async def write():
        async with page.transaction() as connection:
            await connection.execute("UPDATE doc SET body = 'new'")
    error = refused(page.HeldError, run, write())
    assert isinstance(error, asyncpg.LockNotAvailableError)
    equal(json.loads(error.__cause__.detail)["holder"], "anna")


async def connect():
    connection = await asyncpg.connect(user=OWNER)
    await page.init(connection)
    return connection

connection = run(connect())
call_all("asyncpg", lambda query, *values: [tuple(record) for record in run(connection.fetch(query, *values))], lambda value: value)
finish()
