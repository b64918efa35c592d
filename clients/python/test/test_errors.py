"""Errors of the server as classes."""

import json
import unittest

import psycopg

import pg_interlock
from pg_interlock import InterlockError, StaleVersion, TryAgain, as_interlock_error, interlock_errors

STATES = {
    "IL001": ("StaleVersion", 409),
    "IL002": ("TransitionRefused", 422),
    "IL003": ("StateChanged", 409),
    "IL004": ("MarkerHeld", 423),
    "IL005": ("MarkerLost", 409),
    "IL006": ("LeaseLost", 409),
    "IL007": ("ColumnOwned", 403),
    "IL008": ("ClaimLost", 409),
    "IL011": ("BlindUpdate", 500),
    "IL012": ("NotEnough", 409),
    "P0002": ("NotFound", 404),
    "40001": ("TryAgain", 503),
    "40P01": ("TryAgain", 503),
    "55P03": ("TryAgain", 503),
}


class ErrorsTest(unittest.TestCase):
    def raised(self, state, detail=""):
        with psycopg.connect("user=app") as connection, interlock_errors():
            connection.execute(
                f"DO $$ BEGIN RAISE EXCEPTION 'text' USING ERRCODE = '{state}', DETAIL = '{detail}', HINT = 'do this'; END $$"
            )

    def test_each_state_is_a_class_with_a_status(self):
        found = {}
        for state in STATES:
            with self.assertRaises(InterlockError) as block:
                self.raised(state)
            error = block.exception
            found[state] = (type(error).__name__, error.status)
            self.assertEqual((error.sqlstate, str(error), error.hint, error.detail), (state, "text", "do this", {}))
            self.assertIsInstance(error.__cause__, psycopg.Error)
            self.assertIs(getattr(pg_interlock, type(error).__name__), type(error))
        self.assertEqual(found, STATES)

    def test_the_detail_is_parsed_with_all_digits(self):
        with self.assertRaises(StaleVersion) as block:
            self.raised("IL001", '{"version": 9223372036854775807, "expected": 0.1, "key": {"id": 7}}')
        self.assertEqual(block.exception.version, 9223372036854775807)
        self.assertEqual(block.exception.detail["key"], {"id": 7})
        self.assertEqual(json.loads(json.dumps(block.exception.as_dict()))["type"], "StaleVersion")
        for detail in ("no JSON", "{broken", "[1]"):
            with self.assertRaises(StaleVersion) as block:
                self.raised("IL001", detail)
            self.assertEqual(block.exception.detail, {})

    def test_other_errors_are_unchanged(self):
        with self.assertRaises(psycopg.errors.DivisionByZero):
            self.raised("22012")
        with self.assertRaises(ZeroDivisionError), interlock_errors():
            raise ZeroDivisionError
        error = ValueError()
        self.assertIs(as_interlock_error(error), error)

    def test_the_error_of_an_orm_is_looked_through(self):
        cause = psycopg.errors.lookup("40001")("text")
        of_django = ValueError()
        of_django.__cause__ = cause
        of_sqlalchemy = ValueError()
        of_sqlalchemy.orig = cause
        around = ValueError()
        around.__cause__ = around  # a circle ends
        for error in (cause, of_django, of_sqlalchemy):
            self.assertIsInstance(as_interlock_error(error), TryAgain)
        self.assertIs(as_interlock_error(around), around)
