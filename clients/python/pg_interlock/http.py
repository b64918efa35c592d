"""The Idempotency-Key of HTTP, after the draft "The Idempotency-Key HTTP Header Field". Starlette and Django share it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from .errors import InterlockError
from .results import Claim, Stored
from .values import from_json, hash_of, idempotency_key_text, to_json

# Not kept: of one connection, of one moment, or a secret of one client.
_PASSING = {
    *("connection", "keep-alive", "proxy-authenticate", "te", "trailer", "transfer-encoding", "upgrade"),
    *("date", "content-length", "set-cookie"),
}


@dataclass(frozen=True)
class Answer:
    status: int
    headers: list[tuple[str, str]]
    body: bytes


class NotKept(Exception):
    """An answer of 500 and more: nothing is kept, and its key is free."""

    def __init__(self, answer: Answer) -> None:
        super().__init__(answer.status)
        self.answer = answer


@dataclass(frozen=True)
class Endpoint:
    """A request as its key and hash name it."""

    method: str
    path: str
    query: str
    content_type: str
    body: bytes

    @property
    def hash(self) -> bytes:
        named = {"method": self.method, "path": self.path}
        try:
            return hash_of({**named, "body": {"query": self.query, "body": self._parsed()}})
        except (ValueError, TypeError, RecursionError):  # no JSON
            return hash_of({**named, "body": {"query": self.query, "body": self.body}})

    # JSON is the same whatever the order of its members is.
    def _parsed(self) -> Any:
        return from_json(self.body.decode()) if re.search(r"\bjson\b", self.content_type) else self.body


def key_of(endpoint: Endpoint, headers: list[str], user: object) -> str | Answer:
    """The key of the request, which belongs to its user, method and path, or the answer to a request without one."""
    # The header is a string in quotes; clients that send it without are accepted.
    found = re.fullmatch(r'"([!#-~]{1,255})"|([!#-~]{1,255})', headers[0].strip(" \t")) if len(headers) == 1 else None
    if found is None:
        return problem(400, "the header with the idempotency key is required once: 1 to 255 visible characters of ASCII")
    if user is None or user == "":
        return problem(401, "an idempotent request needs a user")
    return idempotency_key_text([user, endpoint.method, endpoint.path, found[1] or found[2]])


def stored_of(answer: Answer) -> Stored:
    """The response as it is stored. Status and location are in the result id, so they are stored even if the body is too large."""
    kept: dict[str, str | list[str]] = {}
    for name, value in answer.headers:
        if name.lower() not in _PASSING:
            before = kept.get(name)
            kept[name] = value if before is None else [before, value] if isinstance(before, str) else [*before, value]
    location = next((value for name, value in kept.items() if name.lower() == "location"), None)
    result_id = f"{answer.status} {location}" if isinstance(location, str) and len(location) < 1000 else str(answer.status)
    return Stored(to_json({"status": answer.status, "headers": kept}), result_id, answer.body)


def answer_of(claim: Claim, result: Answer | None) -> Answer:
    """The answer to a request whose handler has worked now (result), or has not."""
    if result is not None:
        return result
    if claim.outcome == "replay":
        return _replay(claim)
    if claim.outcome == "in_progress":
        return problem(409, "a request with this key is being processed", ("Retry-After", str(claim.retry_after)))
    if claim.outcome == "mismatch":
        return problem(422, "this key was used with another request")
    return problem(500, "the request has failed")


def _replay(claim: Claim) -> Answer:
    again = ("Idempotent-Replayed", "true")
    if claim.response is None:
        found = re.fullmatch(r"(\d{3})(?: (.*))?", claim.result_id or "204")
        place = [("Location", found[2])] if found and found[2] else []
        return Answer(int(found[1]) if found else 204, [*place, again], b"")
    kept = from_json(claim.response)
    headers = [(name, each) for name, value in kept["headers"].items() for each in ([value] if isinstance(value, str) else value)]
    return Answer(kept["status"], [*headers, again], claim.body or b"")


def problem(status: int, title: str, *headers: tuple[str, str]) -> Answer:
    """A problem as RFC 9457 has it."""
    body = json.dumps({"status": status, "title": title}).encode()
    return Answer(status, [("Content-Type", "application/problem+json"), *headers], body)


def problem_of(error: InterlockError) -> Answer:
    """The answer to a conflict, with the row of now where it is known."""
    headers: Iterable[tuple[str, str]] = error.headers.items()
    return Answer(error.status, [("Content-Type", "application/problem+json"), *headers], to_json(error.as_dict()).encode())
