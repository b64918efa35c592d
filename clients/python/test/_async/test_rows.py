"""Versioned rows: read, save, update with retry, ETags."""

from datetime import datetime
from decimal import Decimal

from pg_interlock import NotFound, StaleVersion, etag_of

from ..shared import rows, run, value
from .shop import Case, Started, raised

run(
    "CREATE TABLE note (id int PRIMARY KEY, slug text NOT NULL UNIQUE, body text, hits int NOT NULL DEFAULT 0, version int NOT NULL)",
    "SELECT interlock.enable_versioning('note', blind_updates => 'reject')",
    """CREATE TABLE "timed 100%" ("Id" text, line int, body text, changed timestamptz DEFAULT now(), PRIMARY KEY ("Id", line))""",
    """SELECT interlock.enable_versioning('"timed 100%"', 'changed')""",
    "CREATE TABLE local (id int PRIMARY KEY, changed timestamp NOT NULL DEFAULT now())",
    "SELECT interlock.enable_versioning('local', 'changed')",
    "CREATE TABLE plain (id bigint PRIMARY KEY, price numeric, ratio float8, more jsonb)",
    """INSERT INTO plain VALUES (9007199254740993, 0.10, 2, '{"n": 0.5}')""",
)
TIMED = '"timed 100%"'
ADD = "UPDATE note SET hits = hits + 1 WHERE id = 1 AND interlock.any_version(version)"


class RowsTest(Case):
    async def asyncSetUp(self):
        await super().asyncSetUp()
        run("DELETE FROM note WHERE interlock.any_version(version)", "INSERT INTO note (id, slug, body) VALUES (1, 'a', 'old')")

    async def test_a_version_is_the_same_value_whichever_way_it_was_read(self):
        found = await self.il.read("note", 1)
        self.assertEqual((found.row["version"], type(found.version)), (found.version, int))
        after = await self.il.save("note", 1, found.version, {"body": "new"})
        self.assertEqual((await self.il.read("note", {"slug": "a"})).version, after)
        error = await raised(StaleVersion, self.il.save, "note", 1, found.version, {})
        self.assertEqual((error.version, error.current["version"]), (after, after))
        self.assertEqual(value("SELECT version FROM note"), after)
        self.assertGreater(await self.il.save("note", 1, str(after), {}), after)  # as a form has sent it back

    async def test_values_keep_all_digits(self):
        found = await self.il.read("plain", 9007199254740993)
        self.assertEqual(found.row, {"id": 9007199254740993, "price": Decimal("0.10"), "ratio": 2.0, "more": {"n": 0.5}})
        self.assertEqual((found.version, str(found.row["price"]), type(found.row["ratio"])), (None, "0.10", float))

    async def test_a_stale_save_has_the_row_of_now(self):
        version = (await self.il.read("note", 1)).version
        after = await self.il.save("note", 1, version, {"body": "first"})
        error = await raised(StaleVersion, self.il.save, "note", 1, version, {"body": "second"})
        self.assertEqual((error.sqlstate, error.status, error.version, error.current["body"]), ("IL001", 409, after, "first"))
        self.assertEqual(error.as_dict()["current"]["body"], "first")
        for none in (None, "", 7.0, True):
            await raised(TypeError, self.il.save, "note", 1, none, {})
        await raised(NotFound, self.il.save, "note", 7, 1, {})
        await raised(NotFound, self.il.read, "note", 7)
        error = await raised(Exception, self.il.read, "nothing", 7)
        self.assertEqual(error.sqlstate, "42P01")

    async def test_with_the_row_that_was_read_columns_that_one_side_has_changed_are_merged(self):
        found = await self.il.read("note", 1)
        await self.il.save("note", 1, found.version, {"hits": 5})
        await self.il.save("note", 1, found.version, {"body": "mine"}, base=found.row)
        self.assertEqual(rows("SELECT body, hits FROM note"), [("mine", 5)])
        error = await raised(StaleVersion, self.il.save, "note", 1, found.version, {"body": "late"}, base=found.row)
        self.assertEqual(error.conflicts, ["body"])

    async def test_keys_of_several_columns_and_versions_that_are_times(self):
        run('TRUNCATE "timed 100%"', """INSERT INTO "timed 100%" VALUES ('x', 1, 'old')""")
        key = {"Id": "x", "line": 1}
        found = await self.il.read(TIMED, key)
        self.assertEqual((type(found.version), found.version, found.row["changed"]), (datetime, found.version, found.version))
        after = await self.il.save(TIMED, key, found.version, {"body": "new"})
        self.assertGreater(after, found.version)
        await raised(StaleVersion, self.il.save, TIMED, key, found.version, {"body": "stale"})
        await raised(StaleVersion, self.il.save, TIMED, key, found.version, {"body": "stale"}, base=found.row)
        await raised(TypeError, self.il.read, TIMED, "x")
        await raised(TypeError, self.il.read, TIMED, {"nothing": 1})
        await raised(ValueError, self.il.save, TIMED, key, found.version.replace(tzinfo=None), {})

    async def test_a_time_without_a_time_zone_is_text(self):
        run("TRUNCATE local", "INSERT INTO local VALUES (1)")
        found = await self.il.read("local", 1)
        self.assertEqual(type(found.version), str)
        self.assertGreater(await self.il.save("local", 1, found.version, {}), found.version)
        await raised(StaleVersion, self.il.save, "local", 1, found.version, {})

    async def test_a_table_that_was_altered_since_it_was_read(self):
        run("CREATE TABLE altered (id int PRIMARY KEY)", "INSERT INTO altered VALUES (1)")
        await self.il.read("altered", 1)
        run("ALTER TABLE altered RENAME id TO code", "ALTER TABLE altered ALTER code TYPE text")
        self.assertEqual((await self.il.read("altered", 1)).row, {"code": "1"})

    async def test_eight_programs_add_at_once_next_to_plain_SQL_and_none_is_lost(self):
        async def one_more(row):
            return {"hits": row["hits"] + 1}

        async def add():
            for _ in range(5):
                await self.il.update("note", 1, one_more, attempts=1000)

        adding = [Started(add) for _ in range(8)]
        run(*[ADD] * 10)
        for each in adding:
            await each.result()
        self.assertEqual(value("SELECT hits FROM note"), 50)

    async def test_an_update_that_changes_nothing_writes_nothing_and_attempts_end(self):
        async def nothing(row):
            return None

        version = value("SELECT version FROM note")
        updated = await self.il.update("note", 1, nothing)
        self.assertEqual((updated.version, updated.attempts), (version, 1))
        calls = []

        async def meddle(row):
            calls.append(row["hits"])
            run(ADD)
            return {"hits": row["hits"] + 1}

        await raised(StaleVersion, self.il.update, "note", 1, meddle, attempts=4)
        self.assertEqual(calls, [0, 1, 2, 3])
        await raised(TypeError, self.il.update, "plain", 9007199254740993, nothing)

    async def test_tags(self):
        etag = self.il.etag("note")
        got = await etag.get(1, {})
        tag = got.headers["ETag"]
        self.assertEqual((got.status, got.row["body"], tag), (200, "old", f'"{got.row["version"]}"'))
        self.assertIn(b'"body":"old"', got.content)
        for known in (tag, f"W/{tag}", f'"x", {tag}', "*"):
            self.assertEqual((await etag.get(1, {"If-None-Match": known})).status, 304)
        self.assertEqual((await etag.get(1, {"if-none-match": '"7000"'})).status, 200)
        self.assertEqual((await etag.get(7, {})).status, 404)

        self.assertEqual((await etag.put(1, {}, {"body": "blind"})).status, 428)
        for other in (
            "*",
            "W/" + tag,
            f"{tag}, {tag}",
            '"x"',
            '""',
            "1",
            '"' + "9" * 41 + '"',
            '"9999999999999999999999"',
            '"1-1-1"',
        ):
            self.assertIn((await etag.put(1, {"If-Match": other}, {"body": "blind"})).status, [412], other)
        put = await etag.put(1, {"If-Match": tag}, {"body": "new"})
        self.assertEqual((put.status, put.row), (200, None))
        stale = await etag.put(1, {"If-Match": tag}, {"body": "late"})
        self.assertEqual((stale.status, stale.row["body"], stale.headers), (412, "new", put.headers))
        self.assertEqual((await etag.put(7, {"If-Match": tag}, {})).status, 404)

        new = await etag.put(2, {"If-None-Match": "*"}, {"slug": "b"})
        self.assertEqual((new.status, new.headers), (201, {"ETag": etag_of(value("SELECT version FROM note WHERE id = 2"))}))
        self.assertEqual((await etag.put(2, {"If-None-Match": "*"}, {"slug": "b"})).status, 412)
        statuses = [
            (await etag.delete(2, headers)).status for headers in ({}, {"If-Match": '"7000"'}, {"If-Match": new.headers["ETag"]})
        ]
        self.assertEqual(statuses, [428, 412, 204])
        self.assertEqual((await etag.delete(2, {"If-Match": new.headers["ETag"]})).status, 404)

    async def test_tags_of_times(self):
        run('TRUNCATE "timed 100%"', """INSERT INTO "timed 100%" VALUES ('x', 1, 'old')""")
        etag, key = self.il.etag(TIMED), {"Id": "x", "line": 1}
        tag = (await etag.get(key, {})).headers["ETag"]
        self.assertEqual((await etag.get(key, {"If-None-Match": tag})).status, 304)
        put = [(await etag.put(key, {"If-Match": tag}, {"body": "new"})).status for _ in range(2)]
        self.assertEqual(put, [200, 412])
        for other in ('"1"', '"2030-01-31_12:00:00"', '"2030-01-31_12:00:00+99"', '"9999-12-31_23:59:59.999999+00"'):
            self.assertEqual((await etag.put(key, {"If-Match": other}, {"body": "blind"})).status, 412, other)
