"""SQLAlchemy: models with versions, and the calls of Interlock in its transactions."""

import os
import unittest

from sqlalchemy import Column, Integer, Text, create_engine, text
from sqlalchemy.orm import declarative_base, sessionmaker

from pg_interlock import LeaseLost, StaleVersion
from pg_interlock.sqlalchemy import Versioned, include_object, interlock

from .shared import fresh, held, rows, run, value

run(
    "CREATE SCHEMA shop GRANT USAGE ON SCHEMA shop TO app",
    "CREATE TABLE note (id int PRIMARY KEY, body text, hits int NOT NULL DEFAULT 0)",
    "CREATE TABLE shop.note (id int PRIMARY KEY, body text)",
    "SELECT interlock.enable_versioning('note', blind_updates => 'reject')",
    "SELECT interlock.enable_versioning('shop.note')",
    "SELECT interlock.grant_idempotency_scope('pay', 'app')",
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


class SqlalchemyTest(unittest.TestCase):
    def setUp(self):
        run("DELETE FROM note WHERE interlock.any_version(version)", "INSERT INTO note VALUES (1, 'old')")
        self.engine = create_engine(f"postgresql://app@/{os.environ['PGDATABASE']}?host={os.environ['PGHOST']}", future=True)
        self.il = interlock(sessionmaker(self.engine, future=True))

    def tearDown(self):
        self.il.close()
        self.engine.dispose()

    def test_a_new_object_has_the_version_of_the_server(self):
        run("DELETE FROM shop.note")
        for model in (Note, ShopNote):
            with self.il.transaction() as session:
                session.add(model(id=7, body="new"))
        self.assertEqual(rows("SELECT id FROM note WHERE version > 1 OR id = 7 ORDER BY id"), [(7,)])
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

    def test_alembic_drops_nothing_of_the_extension(self):
        kept = [include_object(None, name, "column", True, None) for name in ("lock_by", "note_history", "body")]
        self.assertEqual(kept, [False, False, True])
        self.assertTrue(include_object(None, "lock_by", "column", False, None))
