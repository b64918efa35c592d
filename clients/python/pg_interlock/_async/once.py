"""Work once for each key: claim, effect and answer in one transaction."""

from __future__ import annotations

import base64
import math
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from ..errors import Failed, InProgress, InterlockError, Mismatch, interlock_errors
from ..results import Claim, Once, Stored
from ..values import Duration, Key, from_json, hash_of, idempotency_key_text, seconds_text, to_json
from .driver import AsyncDriver, AsyncQuery, Tx

T = TypeVar("T")


async def once(
    driver: AsyncDriver[Tx],
    scope: str,
    key: Key,
    request: Any,
    work: Callable[[Tx], Awaitable[T]],
    wait: Duration,
    ttl: Duration | None,
) -> Once[T]:
    name = idempotency_key_text(key)

    async def stored(tx: Tx) -> tuple[str, Stored]:
        response = to_json(await work(tx))
        return response, Stored(response)

    claim, response = await claimed(driver, scope, name, None if request is None else hash_of(request), wait, ttl, stored)
    # Both ways by JSON: the first caller and the second get the same value.
    if claim.outcome == "acquired":
        return Once("completed", value_of(response))
    if claim.outcome == "replay":
        return Once("replay", value_of(claim.response))
    raise refusal(claim, scope, name)


async def claimed(
    driver: AsyncDriver[Tx],
    scope: str,
    key: str,
    request_hash: bytes | None,
    wait: Duration,
    ttl: Duration | None,
    work: Callable[[Tx], Awaitable[tuple[T, Stored]]],
) -> tuple[Claim, T | None]:
    """Claims, and works if the claim is new. Another outcome changes nothing."""
    with interlock_errors():
        async with driver.transaction() as tx:
            query = driver.within(tx)
            claim = await claim_key(query, scope, key, request_hash, wait, ttl)
            if claim.outcome != "acquired":
                return claim, None
            result, stored = await work(tx)
            await complete(query, scope, key, claim.token, stored)
            return claim, result


async def claim_key(
    query: AsyncQuery,
    scope: str,
    key: str,
    request_hash: bytes | None,
    wait: Duration,
    ttl: Duration | None,
    stale_after: Duration | None = None,
) -> Claim:
    rows = await query(
        """SELECT outcome, token::text, response::text, result_id, encode(body, 'base64') AS body, attempt::text, checkpoint, state::text,
               extract(epoch FROM deadline - clock_timestamp())::text AS seconds
             FROM interlock.idempotency_claim(%s::text, %s::text, request_hash => decode(%s::text, 'hex'),
                 wait => %s::text::float8, ttl => %s::text::float8, stale_after => %s::text::float8)""",
        (scope, key, request_hash and request_hash.hex(), seconds_text(wait), seconds_text(ttl), seconds_text(stale_after)),
    )
    row = rows[0]
    body = None if row["body"] is None else base64.b64decode(row["body"])
    left = float(row["seconds"] or 1)
    answer = (row["outcome"], row["token"], row["response"], row["result_id"], body, max(1, math.ceil(left)))
    return Claim(*answer, left, int(row["attempt"] or 1), row["checkpoint"], row["state"])


async def complete(query: AsyncQuery, scope: str, key: str, token: str | None, stored: Stored) -> None:
    await query(
        """SELECT interlock.idempotency_complete(%s::text, %s::text, %s::text::bigint, %s::text::jsonb, %s::text,
               decode(%s::text, 'base64'))::text""",
        (scope, key, token, stored.response, stored.result_id, _base64(stored.body)),
    )


def refusal(claim: Claim, scope: str, key: str) -> InterlockError:
    """The error of a claim that is neither acquired nor a replay."""
    detail: dict[str, Any] = {"scope": scope, "key": key, "outcome": claim.outcome}
    if claim.outcome == "in_progress":
        error: InterlockError = InProgress(f'another call works under the key "{key}"', detail=detail)
        error.retry_after = claim.retry_after
        return error
    if claim.outcome == "mismatch":
        return Mismatch(f'the key "{key}" was used with another request', detail=detail)
    return Failed(f'the work under the key "{key}" has failed', detail={**detail, "error": value_of(claim.response)})


def value_of(text: str | None) -> Any:
    return None if text is None else from_json(text)


def _base64(body: bytes | None) -> str | None:
    return None if body is None else base64.b64encode(body).decode()
