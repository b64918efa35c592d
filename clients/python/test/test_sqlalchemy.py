"""SQLAlchemy: models with versions, and the calls of Interlock in its transactions, with threads and with asyncio, on each driver that
is here: psycopg 3 since SQLAlchemy 2."""

import asyncio
import json
import os
import unittest

import sqlalchemy
from fastapi import Depends, FastAPI, Request
from psycopg.conninfo import conninfo_to_dict
from sqlalchemy import Column, Integer, Text, create_engine, text
from sqlalchemy.engine import make_url
from sqlalchemy.exc import DBAPIError, IntegrityError, InvalidRequestError
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sqlalchemy.orm import declarative_base, sessionmaker

from pg_interlock import Held, LeaseLost, MarkerLost, StaleVersion
from pg_interlock.errors import sqlstate_of
from pg_interlock.sqlalchemy import Versioned, _conninfo, async_interlock, include_object, interlock
from pg_interlock.starlette import IdempotencyKey, transaction

from .asgi import asked
from .shared import fresh, held, rows, run, value, wait_until


run(
    "CREATE SCHEMA shop GRANT USAGE ON SCHEMA shop TO app",
    "CREATE TABLE note (id int PRIMARY KEY, body text, hits int NOT NULL DEFAULT 0)",
    "CREATE TABLE shop.note (id int PRIMARY KEY, body text)",
    "SELECT interlock.enable_versioning('note', blind_updates => 'reject')",
    "SELECT interlock.enable_versioning('shop.note')",
    "SELECT interlock.grant_idempotency_scope('pay', 'app')",
    """CREATE TABLE "50%: off" ("the %s: key" int PRIMARY KEY, "a:b" text)""",
    """SELECT interlock.enable_versioning('"50%: off"')""",
    "CREATE TABLE job (id int PRIMARY KEY)",
    "SELECT interlock.enable_marker('job')",
)
Base = declarative_base()


class Note(Versioned, Base):
    __tablename__ = "note"
    id = Column(Integer, primary_key=True)
    body = Column(Text)
    hits = Column(Integer, default=0)


class ShopNote(Versioned, Base):
    __tablename__ = "note"
    __table_args__ = {"schema": "shop"}
    id = Column(Integer, primary_key=True)
    body = Column(Text)


def url(driver):
    return f"postgresql+{driver}://app@/{os.environ['PGDATABASE']}?host={os.environ['PGHOST']}&port={os.environ['PGPORT']}"


class SqlalchemyTest(unittest.TestCase):
    driver = "psycopg2"

    def setUp(self):
        run("DELETE FROM note WHERE interlock.any_version(version)", "INSERT INTO note VALUES (1, 'old')")
        self.engine = create_engine(url(self.driver), future=True)
        self.il = interlock(sessionmaker(self.engine, future=True))

    def tearDown(self):
        self.il.close()
        self.engine.dispose()

    def test_a_new_object_has_the_version_of_the_server(self):
        run("DELETE FROM shop.note")
        for model in (Note, ShopNote):
            with self.il.transaction() as session:
                session.add(note := model(id=7, body="new"))
                session.flush()
                self.assertIsInstance(note.version, int)
        self.assertIn("shop.note_version_start", str(ShopNote.__table__.c.version.server_default.arg))

    def test_the_second_of_two_flushes_is_StaleVersion(self):
        with self.assertRaises(StaleVersion):
            with self.il.transaction() as session:
                note = session.get(Note, 1)
                self.il.save("note", 1, note.version, {"body": "first"})
                note.body = "second"
        self.assertEqual(value("SELECT body FROM note"), "first")

    def test_an_error_of_the_server_is_a_class(self):
        version = value("SELECT version FROM note")
        self.il.save("note", 1, version, {"body": "first"})
        with self.assertRaises(StaleVersion) as block, self.il.transaction() as session:
            session.execute(text("SELECT interlock.versioned_update('note', 1, :version, '{}')"), {"version": version})
        self.assertEqual(block.exception.detail["expected"], version)

    def test_leases_once_and_update(self):
        key = fresh("note")
        with self.il.lease(key, 600) as lease, lease.transaction("serializable") as session:
            self.assertEqual(session.execute(text("SHOW transaction_isolation")).scalar(), "serializable")
            session.get(Note, 1).body = "under a lease"
        self.assertEqual((value("SELECT body FROM note"), held()), ("under a lease", 0))
        with self.assertRaises(LeaseLost), self.il.lease(key, 600) as lease:
            value("SELECT interlock.break_lease(%s, 'test')", key)
            with lease.transaction() as session:
                session.get(Note, 1).body = "lost"
        for outcome in ("completed", "replay"):
            once = self.il.once("pay", key, {"a": 1}, lambda session: session.get(Note, 1).body)
            self.assertEqual((once.outcome, once.value), (outcome, "under a lease"))
        self.il.update("note", 1, lambda row: {"hits": row["hits"] + 1})
        with self.il.transaction() as session:
            self.assertEqual(session.get(Note, 1).hits, 1)

    def test_a_transaction_whose_error_was_swallowed_is_an_error(self):
        with self.il.lease(fresh("swallowed"), 600) as lease:
            for begin in (self.il.transaction, lease.transaction):
                with self.assertRaises(DBAPIError) as block, begin() as session:
                    session.execute(text("INSERT INTO note VALUES (2, 'lost')"))
                    try:
                        session.execute(text("SELECT 1/0"))
                    except DBAPIError:
                        pass
                self.assertEqual(sqlstate_of(block.exception.orig), "25P02")
        with self.assertRaises(InvalidRequestError), self.il.transaction() as session:
            session.add(Note(id=2, body="lost"))
            session.flush()
            session.add(Note(id=1, body="a duplicate"))
            try:
                session.flush()
            except IntegrityError:
                pass
        self.assertEqual(rows("SELECT id FROM note"), [(1,)])

    def test_a_block_may_roll_back_to_a_savepoint_and_may_end_its_transaction(self):
        with self.il.transaction() as session:
            session.add(Note(id=2, body="kept"))
            session.flush()
            try:
                with session.begin_nested():
                    session.execute(text("SELECT 1/0"))
            except DBAPIError:
                pass
        for id, end in ((3, "commit"), (4, "rollback")):
            with self.il.transaction() as session:
                session.execute(text(f"INSERT INTO note VALUES ({id}, 'ended')"))
                getattr(session, end)()
        self.assertEqual(rows("SELECT id FROM note ORDER BY id"), [(1,), (2,), (3,)])

    def test_an_engine_with_two_hosts(self):
        host, port = os.environ["PGHOST"], os.environ["PGPORT"]
        engine = create_engine(f"postgresql+{self.driver}://app@/{os.environ['PGDATABASE']}?host=/nowhere:1&host={host}:{port}")
        with interlock(sessionmaker(engine, future=True)) as il, il.lease(fresh("two hosts"), 600) as lease:
            with lease.transaction() as session:
                session.get(Note, 1).body = "by the second host"
        engine.dispose()
        self.assertEqual(value("SELECT body FROM note"), "by the second host")

    def test_names_with_signs_that_statements_use(self):
        run("""TRUNCATE "50%: off" """, """INSERT INTO "50%: off" VALUES (1, 'old')""")
        table, key = '"50%: off"', {"the %s: key": 1}
        self.il.save(table, key, self.il.read(table, key).version, {"a:b": "50%: new"})
        self.assertEqual(self.il.read(table, key).row["a:b"], "50%: new")

    def test_alembic_drops_nothing_of_the_extension(self):
        kept = [include_object(None, name, "column", True, None) for name in ("lock_by", "note_history", "body")]
        self.assertEqual(kept, [False, False, True])
        self.assertTrue(include_object(None, "lock_by", "column", False, None))


class AsyncTest(unittest.IsolatedAsyncioTestCase):
    driver = "asyncpg"

    async def asyncSetUp(self):
        run("DELETE FROM note WHERE interlock.any_version(version)", "INSERT INTO note VALUES (1, 'old')")
        self.engine = create_async_engine(url(self.driver))
        self.il = async_interlock(sessionmaker(self.engine, class_=AsyncSession, expire_on_commit=False))

    async def asyncTearDown(self):
        await self.il.close()
        await self.engine.dispose()

    async def test_the_second_of_two_flushes_is_StaleVersion(self):
        async with self.il.transaction() as session:
            note = await session.get(Note, 1)
            first, note.body = note.version, "mine"
            await session.flush()
            self.assertGreater(note.version, first)  # without another statement, which asyncio would refuse here
        with self.assertRaises(StaleVersion):
            async with self.il.transaction() as session:
                note = await session.get(Note, 1)
                await self.il.save("note", 1, note.version, {"body": "first"})
                note.body = "second"
        self.assertEqual(value("SELECT body FROM note"), "first")

    async def test_an_error_of_the_server_is_a_class_with_its_detail(self):
        version = value("SELECT version FROM note")
        await self.il.save("note", 1, version, {"body": "first"})
        with self.assertRaises(StaleVersion) as block:
            async with self.il.transaction() as session:
                await session.execute(
                    text("SELECT interlock.versioned_update('note', 1, :version, '{}')"), {"version": str(version)}
                )
        self.assertEqual((block.exception.detail["expected"], block.exception.hint is None), (version, False))
        self.assertFalse(str(block.exception).startswith("<class"))

    async def test_a_transaction_under_a_lease(self):
        key = fresh("note")
        async with self.il.lease(key, 600) as lease:
            async with lease.transaction("serializable") as session:
                level = (await session.execute(text("SHOW transaction_isolation"))).scalar()
                (await session.get(Note, 1)).body = "under a lease"
            with self.assertRaises(Held):
                await self.il.acquire(key)
        self.assertEqual((level, value("SELECT body FROM note"), held()), ("serializable", "under a lease", 0))
        with self.assertRaises(LeaseLost):
            async with self.il.lease(key, 600) as lease:
                value("SELECT interlock.break_lease(%s, 'test')", key)
                async with lease.transaction() as session:
                    (await session.get(Note, 1)).body = "lost"
        self.assertEqual(value("SELECT body FROM note"), "under a lease")

    async def test_a_transaction_whose_error_was_swallowed_is_an_error(self):
        async with self.il.lease(fresh("swallowed"), 600) as lease:
            for begin in (self.il.transaction, lease.transaction):
                with self.assertRaises(DBAPIError) as block:
                    async with begin() as session:
                        await session.execute(text("INSERT INTO note VALUES (2, 'lost')"))
                        try:
                            await session.execute(text("SELECT 1/0"))
                        except DBAPIError:
                            pass
                self.assertEqual(sqlstate_of(block.exception.orig), "25P02")
        with self.assertRaises(InvalidRequestError):
            async with self.il.transaction() as session:
                session.add(Note(id=2, body="lost"))
                await session.flush()
                session.add(Note(id=1, body="a duplicate"))
                try:
                    await session.flush()
                except IntegrityError:
                    pass
        self.assertEqual(rows("SELECT id FROM note"), [(1,)])

    async def test_a_block_may_roll_back_to_a_savepoint_and_may_end_its_transaction(self):
        async with self.il.transaction() as session:
            session.add(Note(id=2, body="kept"))
            await session.flush()
            try:
                async with session.begin_nested():
                    await session.execute(text("SELECT 1/0"))
            except DBAPIError:
                pass
        for id, end in ((3, "commit"), (4, "rollback")):
            async with self.il.transaction() as session:
                await session.execute(text(f"INSERT INTO note VALUES ({id}, 'ended')"))
                await getattr(session, end)()
        self.assertEqual(rows("SELECT id FROM note ORDER BY id"), [(1,), (2,), (3,)])

    async def test_a_waiter_gets_a_lease_that_is_released(self):
        key = fresh("note")
        lease = await self.il.acquire(key, 600)
        waiting = asyncio.create_task(self.il.acquire(key, 600, wait="10 min"))
        await asyncio.to_thread(wait_until, lambda: held() == 2)
        await lease.release()
        await (await waiting).release()
        self.assertEqual(held(), 0)

    async def test_once_update_and_an_edit(self):
        key = fresh("note")

        async def work(session):
            return (await session.get(Note, 1)).body

        for outcome in ("completed", "replay"):
            once = await self.il.once("pay", key, {"a": 1}, work)
            self.assertEqual((once.outcome, once.value), (outcome, "old"))

        async def hit(row):
            return {"hits": row["hits"] + 1}

        await asyncio.gather(*[self.il.update("note", 1, hit) for _ in range(5)])
        self.assertEqual((await self.il.read("note", 1)).row["hits"], 5)
        table, odd = '"50%: off"', {"the %s: key": 2}
        run("""TRUNCATE "50%: off" """, """INSERT INTO "50%: off" VALUES (2, 'old')""")
        await self.il.save(table, odd, (await self.il.read(table, odd)).version, {"a:b": "50%: new"})
        self.assertEqual((await self.il.read(table, odd)).row["a:b"], "50%: new")

    async def test_a_worker_writes_with_the_session_of_its_job(self):
        run("TRUNCATE job", "INSERT INTO job SELECT generate_series(1, 6)", "DELETE FROM note WHERE interlock.any_version(version)")

        async def handle(job):
            async with job.done() as session:
                session.add(Note(id=job.row["id"], body="job"))
            if value("SELECT count(*) FROM job") == 0:
                worker.stop()

        worker = self.il.claim("job", handle, order="id", concurrency=2)
        await worker.run()
        self.assertEqual(value("SELECT count(*) FROM note WHERE body = 'job'"), 6)

    async def test_an_idempotent_endpoint_of_FastAPI_writes_with_a_session(self):
        app = FastAPI()
        app.add_middleware(IdempotencyKey, interlock=self.il, scope="pay", user=lambda request: "anna")

        @app.post("/notes", status_code=201)
        async def create(request: Request, session=Depends(transaction)):
            note = Note(body="by an endpoint", id=(await request.json())["id"])
            session.add(note)
            await session.flush()
            return {"version": note.version}

        async def post(id):
            key = f"{self.driver}-{id}"
            return await asked(app, "POST", "/notes", body=json.dumps({"id": id}).encode(), idempotency_key=key)

        first, again = [await post(7) for _ in range(2)]
        self.assertEqual((first[0], again[0], again[1]["idempotent-replayed"], again[2]), (201, 201, "true", first[2]))
        self.assertEqual(rows("SELECT id, version FROM note WHERE body LIKE 'by an%'"), [(7, json.loads(first[2])["version"])])
        with self.assertRaises(sqlalchemy.exc.IntegrityError):
            await post(1)
        run("DELETE FROM note WHERE id = 1 AND interlock.any_version(version)")
        self.assertEqual((await post(1))[0], 201)


class ConninfoTest(unittest.TestCase):
    def test_the_hosts_of_a_url_are_those_of_the_connection(self):
        for hosts, host, port in (
            ("@a/d", "a", None),
            ("@a:5433/d", "a", "5433"),
            ("@/d?host=a&port=5433", "a", "5433"),
            ("@/d?host=a:5433", "a", "5433"),
            ("@ignored:1/d?host=a:5432&host=b:5433", "a,b", "5432,5433"),
            ("@/d?host=a&host=b", "a,b", None),
            ("@/d?host=a&host=b:5433&host=c:", "a,b,c", ",5433,"),
            ("@/d?host=a,b&port=5432,5433", "a,b", "5432,5433"),
            ("@/d?host=a,b&port=5432&port=5433", "a,b", "5432,5433"),
            ("@/d?host=[::1]:5432&host=[::2]&host=::3", "::1,::2,::3", "5432,,"),
            ("@/d?host=::1&port=5433", "::1", "5433"),
            ("@/d?host=/run/a:5432&host=/run/b&host=/cloudsql/x:y:z", "/run/a,/run/b,/cloudsql/x:y:z", "5432,,"),
            ("@/d?host=/run/a:5432", "/run/a:5432", None),
        ):
            found = conninfo_to_dict(_conninfo(make_url(f"postgresql+psycopg2://u:p{hosts}")))
            wanted = {"user": "u", "password": "p", "dbname": "d", "host": host, **({"port": port} if port else {})}
            self.assertEqual({name: str(value) for name, value in found.items()}, wanted, hosts)

    def test_the_last_of_repeated_options_is_used_and_options_of_drivers_are_left_out(self):
        options = "ssl=require&connect_timeout=3&connect_timeout=7&prepared_statement_cache_size=0"
        found = conninfo_to_dict(_conninfo(make_url(f"postgresql+asyncpg://u@a/d?{options}")))
        self.assertEqual((found["sslmode"], str(found["connect_timeout"]), len(found)), ("require", "7", 5))


if sqlalchemy.__version__ >= "2":

    class PsycopgTest(SqlalchemyTest):
        driver = "psycopg"

    class AsyncPsycopgTest(AsyncTest):
        driver = "psycopg"
