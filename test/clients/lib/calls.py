"""Every function of the API, called as an application calls it: calls.json, which calls.mjs describes."""
import datetime
import json
import pathlib
import uuid

from page import check, equal, refused

CALLS = json.loads(pathlib.Path(__file__).with_name("calls.json").read_text())


def as_types(kind, value):
    """What Python has for a value."""
    return {
        "$bigint": int, "$uuid": uuid.UUID, "$date": datetime.date.fromisoformat, "$bytes": bytes.fromhex,
        "$duration": lambda text: datetime.timedelta(seconds=float(text[2:-1])),
        "$timestamp": lambda text: datetime.datetime.fromisoformat(text.replace("Z", "+00:00")),
    }[kind](value)


def call_all(driver, rows, as_json):
    """rows(sql, *values) returns tuples, always on one connection. as_json(value) is JSON as users of the driver give it."""
    for sql in CALLS["setup"]:
        rows(sql)
    for call in CALLS["calls"]:
        instead = call.get("drivers", {}).get(driver)
        if instead:
            check(f"{call['name']}, as on the page")(lambda: run({**call, **instead}, rows, as_json))
            check(f"{call['name']} needs that")(lambda: refused(Exception, run, call, rows, as_json))
        else:
            check(call["name"])(lambda: run(call, rows, as_json))


def run(call, rows, as_json):
    if call.get("transaction"):
        rows("BEGIN")
    try:
        for sql in call.get("setup", []):
            rows(sql)
        found = rows(call["sql"], *[value_of(argument, rows, as_json) for argument in call["arguments"]])
        if "answer" in call:
            equal([as_text(value) for value in found[0]], call["answer"])
    finally:
        if call.get("transaction"):
            rows("ROLLBACK")


def value_of(argument, rows, as_json):
    if not isinstance(argument, dict):
        return argument
    [(kind, value), *_] = [*argument.items(), (None, None)]
    if kind == "$query":
        return rows(value)[0][0]
    if kind == "$json":
        return as_json(value)
    return as_types(kind, value) if kind and kind.startswith("$") else as_json(argument)


def as_text(value):
    return value if value is None or isinstance(value, bool) else str(value)
