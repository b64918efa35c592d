"""The edit of a row, and who edits what."""

from pg_interlock import MarkerHeld, MarkerLost, NotFound, StaleVersion, interlock_errors

from ..shared import deafen, listening, rows, run, value
from .shop import Case, Started, eventually, raised

run(
    "CREATE TABLE page (id int PRIMARY KEY, body text)",
    "SELECT interlock.enable_versioning('page')",
    "SELECT interlock.enable_marker('page', notify => 'on', take_over => 'allow')",
    "CREATE TABLE loose (id int PRIMARY KEY, body text)",
    "SELECT interlock.enable_marker('loose')",
)


def holder(rel="page"):
    return value("SELECT CASE WHEN locked THEN holder END FROM interlock.row_lock_of(%s, 1)", rel)


class EditTest(Case):
    async def asyncSetUp(self):
        await super().asyncSetUp()
        run("TRUNCATE page, loose", "INSERT INTO page VALUES (1, 'text'), (2, 'text')", "INSERT INTO loose VALUES (1, 'text')")

    async def test_one_edits_and_others_learn_who(self):
        async with self.il.edit("page", 1, "anna/1", reason="a typo") as edit:
            self.assertEqual((edit.row["body"], edit.version), ("text", edit.row["version"]))
            error = await raised(MarkerHeld, self.il.lock, "page", 1, "bert/1")
            self.assertEqual((error.status, error.holder, error.expires_at), (423, "anna/1", edit.expires_at))
            with self.assertRaises(MarkerHeld) as block, interlock_errors():
                async with self.pool.connection() as connection:
                    await connection.execute("UPDATE page SET body = 'imported'")
            self.assertEqual(block.exception.holder, "anna/1")
            await edit.check()
            after = await edit.save({"body": "new"})
        self.assertEqual(rows("SELECT body, version FROM page WHERE id = 1"), [("new", after)])
        self.assertIsNone(holder())

    async def test_a_block_that_ends_or_raises_releases_the_row(self):
        with self.assertRaises(ZeroDivisionError):
            async with self.il.edit("page", 1, "anna/1"):
                raise ZeroDivisionError
        self.assertIsNone(holder())
        await raised(NotFound, self.il.lock, "page", 7, "anna/1")

    async def test_a_save_from_an_older_version_has_the_row_of_now_and_the_marker_stays(self):
        before = (await self.il.read("page", 1)).version
        await self.il.save("page", 1, before, {"body": "by another"})
        async with self.il.edit("page", 1, "anna/1") as edit:
            error = await raised(StaleVersion, edit.save, {"body": "mine"}, before)
            self.assertEqual((error.current["body"], error.version, holder()), ("by another", edit.version, "anna/1"))
            await edit.save({"body": "both"}, error.version)
        self.assertEqual(value("SELECT body FROM page WHERE id = 1"), "both")

    async def test_activity_prolongs_it(self):
        edit = await self.il.lock("page", 1, "anna/1", "20 s")
        first = edit.expires_at
        self.assertTrue(await edit.touch())
        self.assertEqual(edit.expires_at, first)  # at once it asks nothing
        edit._touched -= 10
        self.assertTrue(await edit.touch())
        self.assertGreater(edit.expires_at, first)

    async def test_a_row_that_another_holder_has_taken(self):
        edit = await self.il.lock("page", 1, "anna/1", "10 min")
        rows("SELECT interlock.force_unlock_row('page', 1, 'test')")
        other = await self.il.lock("page", 1, "bert/1")
        error = await raised(MarkerLost, edit.check)
        self.assertEqual((error.status, error.holder), (409, "bert/1"))
        await raised(MarkerLost, edit.save, {"body": "late"})
        self.assertFalse(await edit.touch())
        self.assertFalse(await edit.release())
        await other.check()
        self.assertEqual(value("SELECT body FROM page WHERE id = 1"), "text")

    async def test_a_save_that_keeps_the_row_and_one_that_ends(self):
        edit = await self.il.lock("page", 1, "anna/1")
        for body in ("one", "two"):
            before = edit.version
            self.assertGreater(await edit.save({"body": body}, keep=True), before)
            await edit.check()
        await edit.save({"body": "three"})
        self.assertEqual((value("SELECT body FROM page WHERE id = 1"), holder()), ("three", None))
        await raised(MarkerLost, edit.save, {"body": "late"}, keep=True)

    async def test_a_colleague_takes_the_row_over(self):
        edit = await self.il.lock("page", 1, "anna/1")
        async with self.il.edit("page", 1, "bert/1", take_over="Anna is at lunch") as other:
            self.assertEqual((other.taken_from, holder()), ("anna/1", "bert/1"))
            error = await raised(MarkerLost, edit.check)
            self.assertEqual(error.holder, "bert/1")
            await raised(MarkerLost, edit.save, {"body": "after lunch"}, keep=True)
        self.assertEqual(value("SELECT body FROM page WHERE id = 1"), "text")
        await raised(NotFound, self.il.lock, "page", 7, "bert/1", take_over="none")
        await self.il.lock("loose", 1, "anna/1")
        error = await raised(MarkerHeld, self.il.lock, "loose", 1, "bert/1", take_over="it is not allowed")
        self.assertIn("enable_marker(rel, take_over => 'allow')", error.hint)
        self.assertIsNone((await raised(MarkerHeld, self.il.lock, "loose", 1, "bert/1")).hint)

    async def test_a_touch_after_the_row_was_lost(self):
        edit = await self.il.lock("page", 1, "anna/1", "10 min")
        rows("SELECT interlock.force_unlock_row('page', 1, 'test')")
        edit._touched -= 300
        self.assertFalse(await edit.touch())
        await raised(MarkerLost, edit.check)

    async def test_a_table_without_versions(self):
        async with self.il.edit("loose", 1, "anna/1") as edit:
            self.assertIsNone(edit.version)
            self.assertIsNone(await edit.save({"body": "new"}))
        self.assertEqual(value("SELECT body FROM loose"), "new")

    async def test_who_edits_what_has_a_first_state_and_each_change(self):
        seen = []

        async def watch():
            async for editing in self.il.watch("page", every=600):
                seen.append([(each.key, each.holder) for each in editing])
                if len(seen) == 4:
                    break

        first = await self.il.lock("page", 1, "anna/1", "10 min")
        watching = Started(watch)
        await eventually(lambda: len(seen) == 1)
        await eventually(listening)
        second = await self.il.lock("page", 2, "bert/1", "10 min")
        await eventually(lambda: len(seen) == 2)
        deafen()
        await first.release()  # nobody hears of it
        await eventually(lambda: len(seen) == 3)
        await second.save({"body": "new"})
        await watching.result()
        one, two = ({"id": 1}, "anna/1"), ({"id": 2}, "bert/1")
        self.assertEqual(seen, [[one], [one, two], [two], []])

    async def test_what_expires_is_seen_without_a_notification(self):
        seen = []
        await self.il.lock("loose", 1, "anna/1", "1 s")
        async for editing in self.il.watch("loose", every=600):
            seen.append(len(editing))
            if editing == []:
                break
        self.assertEqual(seen[-1], 0)
