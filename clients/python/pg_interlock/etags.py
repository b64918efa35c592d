"""Versions as ETags."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from .values import JsonRow, Version, to_json, version_of, version_text

_TAG = re.compile(
    r'\s*"(?P<version>(?P<number>\d{1,19})|(?P<day>\d{4}-\d\d-\d\d)_(?P<time>\d\d:\d\d:\d\d)(\.\d{1,6})?([+-]\d\d(:\d\d){0,2})?)"\s*',
    re.ASCII,
)


@dataclass(frozen=True)
class EtagAnswer:
    """What to answer. `row` is None for 201, 204, 304, 404 and 428."""

    status: int
    headers: dict[str, str] = field(default_factory=dict)
    row: JsonRow | None = None

    @property
    def content(self) -> bytes:
        """The row as JSON."""
        return b"" if self.row is None else to_json(self.row).encode()


def etag_of(version: Version) -> str:
    """One strong tag. It is opaque to clients."""
    return '"' + version_text(version).replace(" ", "_") + '"'


def version_of_etag(header: str | None) -> Version | None:
    """The version of a tag; None for none, several, `*` or a weak one, and for what is no version."""
    found = _TAG.fullmatch(header or "")
    if found is None or (found["number"] and int(found["number"]) >= 2**63):
        return None
    text = found["version"].replace("_", " ")
    try:
        if not found["number"]:
            datetime.fromisoformat(f"{found['day']} {found['time']}")
        return version_of(text)
    except ValueError:
        return None


def expected_of(headers: Mapping[str, str]) -> EtagAnswer | Version | None:
    """The version that a writer expects; None for a new row; else the answer to the request. A tag of another form cannot be the
    row's, and is answered with 412."""
    match = header_of(headers, "if-match")
    if match is None:
        return None if (header_of(headers, "if-none-match") or "").strip() == "*" else EtagAnswer(428)
    version = version_of_etag(match)
    return EtagAnswer(412) if version is None else version


def is_known(headers: Mapping[str, str], version: Version) -> bool:
    """Whether If-None-Match has the version. It may have several tags, and compares weak ones as strong ones."""
    header = header_of(headers, "if-none-match")
    if header is None:
        return False
    tags = [tag.strip().removeprefix("W/") for tag in header.split(",")]
    return tags == ["*"] or any(version_of_etag(tag) == version for tag in tags)


def header_of(headers: Mapping[str, str], name: str) -> str | None:
    for each, value in headers.items():
        if each.lower() == name:
            return value
    return None
