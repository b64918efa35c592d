# Made from _async/once.py by to_sync.py.
"""Work once for each key: claim, effect and answer in one transaction."""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Any, TypeVar

from ..errors import Failed, InProgress, InterlockError, Mismatch, interlock_errors
from ..results import Claim, Once, Stored
from ..values import Duration, Key, from_json, hash_of, idempotency_key_text, seconds_text, to_json
from .driver import Driver, Query, Tx

T = TypeVar("T")


def once(
    driver: Driver[Tx],
    scope: str,
    key: Key,
    request: Any,
    work: Callable[[Tx], T],
    wait: Duration,
    ttl: Duration | None,
) -> Once[T]:
    name = idempotency_key_text(key)

    def stored(tx: Tx) -> tuple[str, Stored]:
        response = to_json(work(tx))
        return response, Stored(response)

    claim, response = claimed(driver, scope, name, None if request is None else hash_of(request), wait, ttl, stored)
    # Both ways by JSON: the first caller and the second get the same value.
    if claim.outcome == "acquired":
        return Once("completed", _value(response))
    if claim.outcome == "replay":
        return Once("replay", _value(claim.response))
    raise refusal(claim, scope, name)


def claimed(
    driver: Driver[Tx],
    scope: str,
    key: str,
    request_hash: bytes | None,
    wait: Duration,
    ttl: Duration | None,
    work: Callable[[Tx], tuple[T, Stored]],
) -> tuple[Claim, T | None]:
    """Claims, and works if the claim is new. Another outcome changes nothing."""
    with interlock_errors():
        with driver.transaction() as tx:
            query = driver.within(tx)
            claim = _claim(query, scope, key, request_hash, wait, ttl)
            if claim.outcome != "acquired":
                return claim, None
            result, stored = work(tx)
            query(
                """SELECT interlock.idempotency_complete(%s::text, %s::text, %s::text::bigint, %s::text::jsonb, %s::text,
                       decode(%s::text, 'base64'))::text""",
                (scope, key, claim.token, stored.response, stored.result_id, _base64(stored.body)),
            )
            return claim, result


def _claim(query: Query, scope: str, key: str, request_hash: bytes | None, wait: Duration, ttl: Duration | None) -> Claim:
    rows = query(
        """SELECT outcome, token::text, response::text, result_id, encode(body, 'base64') AS body,
               ceil(extract(epoch FROM deadline - clock_timestamp()))::text AS seconds
             FROM interlock.idempotency_claim(%s::text, %s::text, request_hash => decode(%s::text, 'hex'),
                 wait => %s::text::float8, ttl => %s::text::float8)""",
        (scope, key, None if request_hash is None else request_hash.hex(), seconds_text(wait), seconds_text(ttl)),
    )
    row = rows[0]
    body = None if row["body"] is None else base64.b64decode(row["body"])
    left = max(1, int(row["seconds"] or 1))
    return Claim(row["outcome"], row["token"], row["response"], row["result_id"], body, left)


def refusal(claim: Claim, scope: str, key: str) -> InterlockError:
    """The error of a claim that is neither acquired nor a replay."""
    detail: dict[str, Any] = {"scope": scope, "key": key, "outcome": claim.outcome}
    if claim.outcome == "in_progress":
        error: InterlockError = InProgress(f'another call works under the key "{key}"', detail=detail)
        error.retry_after = claim.retry_after
        return error
    if claim.outcome == "mismatch":
        return Mismatch(f'the key "{key}" was used with another request', detail=detail)
    return Failed(f'the work under the key "{key}" has failed', detail={**detail, "error": _value(claim.response)})


def _value(text: str | None) -> Any:
    return None if text is None else from_json(text)


def _base64(body: bytes | None) -> str | None:
    return None if body is None else base64.b64encode(body).decode()
