"""Keys, durations, versions and JSON."""

import json
import unittest
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from uuid import UUID

from pg_interlock import idempotency_key_text, key_text, seconds
from pg_interlock.values import from_json, hash_of, key_value, row_from_json, row_key, time_of, to_json, version_of, version_text

from .shared import value

NAN = float("nan")


class ValuesTest(unittest.TestCase):
    def refuses(self, work, *cases):
        for case in cases:
            with self.subTest(repr(case)), self.assertRaises((TypeError, ValueError)):
                work(case)

    def test_durations(self):
        cases = {
            30: 30,
            1.5: 1.5,
            "30 s": 30,
            "5 min": 300,
            "1 h 30 min": 5400,
            "1.5h": 5400,
            "500 ms": 0.5,
            "2 days": 172800,
            " 7 ": 7,
        }
        self.assertEqual({each: seconds(each) for each in cases}, cases)
        self.assertEqual(seconds(timedelta(milliseconds=1500)), 1.5)
        self.assertEqual(seconds("0"), 0)
        self.refuses(
            seconds, "", "s", "soon", "1 parsec", "5 min!", "-1 s", "1 s -2 s", -1, NAN, float("inf"), None, True, b"1 s", "١ s"
        )

    def test_keys_are_those_of_the_server(self):
        for levels in (["shop", 7], ["a/b", "c%d"], ["ü", "x y"], [True, 1.5], ("one",)):
            texts = [str(level).lower() if level is True else str(level) for level in levels]
            self.assertEqual(key_text(levels), value("SELECT interlock.key_path(VARIADIC %s::text[])", texts))
        day = date(2030, 1, 31)
        self.assertEqual((key_text(day), key_text(["report", day])), ("2030-01-31", "report/2030-01-31"))
        self.assertEqual(idempotency_key_text(day), "2030-01-31")
        for parts in (["a:b", "c"], ["a\\", "b"], ["anna", 7]):
            self.assertEqual(
                idempotency_key_text(parts),
                value("SELECT interlock.idempotency_key(VARIADIC %s::text[])", [str(part) for part in parts]),
            )
        self.refuses(key_text, [], [None], 7, None, b"key", {"a"})

    def test_row_keys(self):
        some = UUID(int=7)
        self.assertEqual(
            [key_value(each) for each in (7, "7", True, some, date(2030, 1, 31))], ["7", "7", "true", str(some), "2030-01-31"]
        )
        self.assertEqual(row_key({"id": 1, "day": date(2030, 1, 31)}), ("%s::text::jsonb", '{"id":1,"day":"2030-01-31"}'))
        self.refuses(row_key, None, b"7", object(), NAN)

    def test_versions_keep_all_digits(self):
        for text in ("9223372036854775807", "1"):
            self.assertEqual(version_text(version_of(text)), text)
        for text in ("2030-01-31 12:00:00.123456+00", "2030-01-31 12:00:00+02", "2030-01-31 12:00:00.1+05:30"):
            self.assertTrue(value("SELECT %s::timestamptz = %s::timestamptz", text, version_text(version_of(text))))
        self.assertEqual(time_of("2030-01-31T12:00:00.5+00:00"), datetime(2030, 1, 31, 12, 0, 0, 500000, timezone.utc))
        self.refuses(version_text, None, "", True, 7.0, Decimal(7), datetime(2030, 1, 31), [])

    def test_json_keeps_all_digits(self):
        exact = {
            "big": 2**70,
            "price": Decimal("0.1000000000000000000001"),
            "float": 0.1,
            "none": None,
            "text": 'ü"\\\u2028',
            "list": [1, True],
        }
        self.assertEqual(from_json(to_json(exact)), exact)
        self.assertEqual(from_json(value("SELECT %s::jsonb::text", to_json(exact))), exact)
        self.assertEqual(json.loads(to_json({"a": [{}], "b": ()})), {"a": [{}], "b": []})
        self.refuses(to_json, NAN, float("-inf"), Decimal("NaN"), {1: 2}, {"a": b""}, {1}, object())

    def test_rows(self):
        row = row_from_json(
            '{"n": 7, "f": 1, "t": "2030-01-31T12:00:00+00:00", "j": {"n": 0.10}, "x": null}', ["n", "x"], ["f"], ["t"]
        )
        self.assertEqual(
            row, {"n": Decimal(7), "f": 1.0, "t": datetime(2030, 1, 31, 12, tzinfo=timezone.utc), "j": {"n": 0.1}, "x": None}
        )
        self.assertEqual([type(row["n"]), type(row["f"])], [Decimal, float])

    def test_a_hash_does_not_depend_on_the_order_of_members(self):
        self.assertEqual(hash_of({"a": 1, "b": {"c": 2, "d": 3}}), hash_of({"b": {"d": 3, "c": 2}, "a": 1}))
        self.assertEqual(hash_of(1.0), hash_of(1))
        hashes = {hash_of(each) for each in (1, "1", [1], {"a": 1}, None, True, b"1", "bytes:1", {"a": None}, {}, 1.5)}
        self.assertEqual(len(hashes), 11)
        self.assertEqual(len(hash_of("\ud800")), 32)  # half of a character, as JSON of a client can have it
        self.refuses(hash_of, {1, 2}, object())
