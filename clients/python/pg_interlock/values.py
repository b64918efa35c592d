"""Keys, durations and JSON, as the functions of the server take them. All values travel as text, so that no adapter of a driver
changes them."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Collection, Mapping, Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from typing import Any, Union
from uuid import UUID

Duration = Union[int, float, str, timedelta]
"""A number of seconds, a timedelta, or a text such as '30 s', '1.5 h', '1 h 30 min', '500 ms'."""

Key = Union[str, date, Sequence[object]]
"""A name: a text, a date, or its levels. Levels are joined as interlock.key_path joins them: nothing in them needs an escape."""

RowKey = Union[str, int, UUID, date, Mapping[str, Any]]
"""The key of a row: a value of the primary key, or a mapping with the columns of any unique key."""

Version = Union[int, datetime, str]
"""A version of a row: an int of a counter, an aware datetime of a time, the text of a time without a time zone. What is given may be
the text of any of them, such as that of a form."""

JsonRow = dict[str, Any]
"""A row as JSON: numeric columns are Decimal, floating point columns are float, times and uuids are text."""

Row = dict[str, Any]
"""A row of texts, as statements of this package return it."""

_UNITS = {
    **dict.fromkeys(("ms", "millisecond", "milliseconds"), 0.001),
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), 1),
    **dict.fromkeys(("m", "min", "mins", "minute", "minutes"), 60),
    **dict.fromkeys(("h", "hr", "hour", "hours"), 3600),
    **dict.fromkeys(("d", "day", "days"), 86400),
}
_PART = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([a-z]+)\s*", re.IGNORECASE | re.ASCII)
_NUMBER = re.compile(r"\s*\d+(\.\d+)?\s*", re.ASCII)


def seconds(duration: Duration) -> float:
    """The seconds of a duration. Raises ValueError for a text that is no duration and for a negative one."""
    total = _seconds(duration)
    if total is None or not 0 <= total < float("inf"):
        raise ValueError(f"{duration!r} is no duration: give a number of seconds, or a text such as '30 s' or '5 min'")
    return total


def _seconds(duration: Duration) -> float | None:
    if isinstance(duration, timedelta):
        return duration.total_seconds()
    if isinstance(duration, (int, float)) and not isinstance(duration, bool):
        return float(duration)
    if not isinstance(duration, str):
        return None
    if _NUMBER.fullmatch(duration):
        return float(duration)
    total, at = 0.0, 0
    while part := _PART.match(duration, at):
        if (unit := _UNITS.get(part[2].lower())) is None:
            return None
        total, at = total + float(part[1]) * unit, part.end()
    return total if 0 < at == len(duration) else None


def seconds_text(duration: Duration | None) -> str | None:
    return None if duration is None else str(seconds(duration))


def key_text(key: Key) -> str:
    """The text of a name for leases and locks."""
    return key if isinstance(key, str) else "/".join(level.replace("%", "%25").replace("/", "%2F") for level in _levels(key))


def idempotency_key_text(key: Key) -> str:
    """The text of an idempotency key of several parts, as interlock.idempotency_key makes it."""
    return key if isinstance(key, str) else ":".join(re.sub(r"[\\:]", r"\\\g<0>", part) for part in _levels(key))


def _levels(key: date | Sequence[object]) -> list[str]:
    if isinstance(key, date):
        key = [key]
    if not isinstance(key, Sequence) or isinstance(key, (bytes, bytearray)):
        raise TypeError(f"{key!r} is no key: give a text, or a list of its levels")
    if not key or any(level is None for level in key):
        raise ValueError("a key has at least one level, and no level is None")
    return [str(level).lower() if isinstance(level, bool) else str(level) for level in key]


def row_key(key: RowKey) -> tuple[str, str]:
    """SQL for the key of a row, and its value."""
    return ("%s::text::jsonb", to_json(key)) if isinstance(key, Mapping) else ("%s::text", key_value(key))


def key_value(value: Any) -> str:
    """The text of a key column."""
    if value is None:
        raise ValueError("the key of a row is missing")
    if isinstance(value, str):
        return value
    return to_json(value) if isinstance(value, (Mapping, list)) else to_json(value).strip('"')


def shown_key(key: RowKey) -> str:
    return to_json(key) if isinstance(key, Mapping) else key_value(key)


def version_text(version: Version) -> str:
    """The version as text, for the server."""
    if isinstance(version, datetime):
        if version.tzinfo is None:
            raise ValueError(f"the version {version} has no time zone")
        return version.isoformat(sep=" ")
    if isinstance(version, bool) or not isinstance(version, (int, str)) or version == "":
        raise TypeError(f"{version!r} is no version: give the one that was read with the row")
    return str(version)


def version_of(text: str | None) -> Version | None:
    """A version as the server writes it."""
    if text is None:
        return None
    if re.fullmatch(r"-?\d+", text):
        return int(text)
    return time_of(text) if re.search(r"[+-]\d{2}(:\d{2})?$", text) and ":" in text else text


def time_of(text: str) -> datetime:
    """A time as the server writes it, as text or in JSON."""
    text = re.sub(r"\.(\d{1,6})", lambda digits: "." + digits[1].ljust(6, "0"), text)
    return datetime.fromisoformat(re.sub(r"([+-]\d{2})$", r"\1:00", text))


def to_json(value: Any, *, canonical: bool = False) -> str:
    """JSON for the server. A Decimal is a number with all of its digits. Raises TypeError for what JSON has not."""
    if isinstance(value, Enum):
        value = value.value
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if value is None or isinstance(value, (bool, int)):
        return json.dumps(value)
    if isinstance(value, (float, Decimal)):
        return _number(value)
    if isinstance(value, (datetime, date, time)):
        return f'"{value.isoformat()}"'
    if isinstance(value, UUID):
        return f'"{value}"'
    if isinstance(value, Mapping):
        return _members(value, canonical)
    if isinstance(value, (list, tuple)):
        return f"[{','.join(to_json(each, canonical=canonical) for each in value)}]"
    if canonical and isinstance(value, (bytes, bytearray, memoryview)):
        return f'"bytes:{hashlib.sha256(value).hexdigest()}"'
    raise TypeError(f"{type(value).__name__} is no JSON")


def _number(value: float | Decimal) -> str:
    if value != value or value in (float("inf"), float("-inf")):
        raise TypeError(f"{value} is no JSON")
    if isinstance(value, float):
        return repr(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)
    return format(value, "f")


def _members(value: Mapping[Any, Any], canonical: bool) -> str:
    for name in value:
        if not isinstance(name, str):
            raise TypeError(f"the name {name!r} of a member is no text")
    names = sorted(value) if canonical else value
    return "{" + ",".join(f"{to_json(name)}:{to_json(value[name], canonical=canonical)}" for name in names) + "}"


def from_json(text: str) -> Any:
    """JSON of the server. A number that a float would change is a Decimal."""
    return json.loads(text, parse_float=_exact)


def _exact(digits: str) -> float | Decimal:
    exact, number = Decimal(digits), float(digits)
    return number if Decimal(repr(number)) == exact else exact


def row_from_json(text: str, numerics: Collection[str], floats: Collection[str], times: Collection[str]) -> JsonRow:
    """The same, of a row: `numerics` are Decimal and `floats` are float, whatever they are; `times` are datetimes."""
    row: JsonRow = json.loads(text, parse_float=_exact)
    if numerics:
        digits = json.loads(text, parse_float=Decimal, parse_int=Decimal)
        row.update({name: digits[name] for name in numerics if isinstance(digits.get(name), Decimal)})
        row.update({name: Decimal(digits[name]) for name in numerics if isinstance(digits.get(name), str)})
    row.update({name: float(row[name]) for name in floats if row.get(name) is not None})
    row.update({name: time_of(row[name]) for name in times if row.get(name) is not None})
    return row


def hash_of(request: Any) -> bytes:
    """A hash of any JSON value, the same whatever the order of members is. Bytes are hashed, too."""
    return hashlib.sha256(to_json(request, canonical=True).encode("utf-8", "surrogatepass")).digest()
