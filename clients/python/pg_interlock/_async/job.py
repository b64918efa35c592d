"""Work that runs once for its key, across all workers, and may take long: claimed, kept by a heartbeat, ended with its effect."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from time import monotonic
from typing import Any, Generic, TypeVar

from ..errors import ClaimLost, interlock_errors
from ..results import Claim, Ran, Stored
from ..values import Duration, Key, hash_of, idempotency_key_text, to_json
from .driver import AsyncDriver, Tx
from .io import Event, Running
from .lost import AsyncLost
from .once import claim_key, complete, refusal, value_of
from .own import Own

T = TypeVar("T")


class AsyncRun(Generic[Tx]):
    """One attempt."""

    def __init__(self, driver: AsyncDriver[Tx], own: Own, scope: str, key: str, claim: Claim, sent: float) -> None:
        self.attempt = claim.attempt
        """1, and more after a worker that has died or has failed."""
        self.checkpoint = claim.checkpoint
        """Where the last attempt has stopped: the name of its last checkpoint."""
        self.state: Any = value_of(claim.state)
        """The state of that checkpoint."""
        self.lost = AsyncLost(self)
        """An event that is set when another worker has taken over, or could have. Stop the work then."""
        self._driver, self._own = driver, own
        self._named = (scope, key, claim.token)
        self._length, self._deadline = claim.left, sent + claim.left
        self._released = False
        self._response: str | None = None
        self._done = Event()
        self._beats = Running(self._beat)

    def check(self) -> None:
        """Raises ClaimLost if the job is lost."""
        if self.lost.is_set():
            scope, key, _ = self._named
            message = f'the claim of "{key}" is lost, or could not be extended in time'
            raise ClaimLost(message, sqlstate="IL008", detail={"scope": scope, "key": key})

    @asynccontextmanager
    async def transaction(self, isolation: str | None = None) -> AsyncIterator[Tx]:
        """BEGIN, assert the claim, the block, COMMIT. Nobody takes over until it has ended. Raises ClaimLost, without any effect."""
        self.check()
        try:
            with interlock_errors():
                async with self._driver.transaction(isolation) as tx:
                    sql = "SELECT interlock.idempotency_assert(%s::text, %s::text, %s::text::bigint)::text"
                    await self._driver.within(tx)(sql, self._named)
                    yield tx
        except ClaimLost:
            if not self._released:
                self.lost.set()
            raise

    @asynccontextmanager
    async def save(self, checkpoint: str, state: Any = None) -> AsyncIterator[Tx]:
        """`with run.save("batch", state) as tx:` is an effect and where the next attempt continues, in one transaction."""
        async with self.transaction() as tx:
            yield tx
            sql = "SELECT interlock.idempotency_checkpoint(%s::text, %s::text, %s::text::bigint, %s::text, %s::text::jsonb)::text"
            await self._driver.within(tx)(sql, (*self._named, checkpoint, to_json(state)))

    @asynccontextmanager
    async def done(self, result: Any = None) -> AsyncIterator[Tx]:
        """`with run.done(result) as tx:` is the effect and the end in one transaction. Without it the job ends with what the work
        returns."""
        response = to_json(result)
        async with self.transaction() as tx:
            yield tx
            await complete(self._driver.within(tx), *self._named, Stored(response))
        self._response, self._released = response, True

    async def _run(self, work: Callable[[AsyncRun[Tx]], Awaitable[T]]) -> T:
        try:
            result = await work(self)
            if not self._released:
                async with self.done(result):
                    pass
            return value_of(self._response)  # type: ignore[no-any-return]
        except BaseException as error:
            await self._fail(error)
            raise
        finally:
            self._done.set()

    # The next call tries again at once. A claim that is lost belongs to another worker.
    async def _fail(self, error: BaseException) -> None:
        if self._released or isinstance(error, ClaimLost):
            return
        failed = to_json({"error": str(error) or type(error).__name__})
        with suppress(Exception):
            sql = "SELECT interlock.idempotency_fail(%s::text, %s::text, %s::text::bigint, %s::text::jsonb)::text"
            await self._driver.query(sql, (*self._named, failed))

    async def _beat(self) -> None:
        pause = self._length / 2
        while not await self._done.wait(pause):
            if self.lost.is_set():
                return
            sent = monotonic()
            try:
                rows = await self._own.renew(
                    """SELECT extract(epoch FROM until - clock_timestamp())::text AS length
                         FROM interlock.idempotency_extend(%s::text, %s::text, %s::text::bigint) AS until""",
                    self._named,
                    max(self._length / 4, 0.1),
                )
                if not rows or rows[0]["length"] is None:
                    return self.lost.set()
                self._length = float(rows[0]["length"])
                self._deadline, pause = sent + self._length, self._length / 2
            except Exception:  # the server cannot be reached: try again until the deadline
                pause = min(self._length / 10, 5)

    def _late(self) -> None:
        self.lost.set()


async def job(
    driver: AsyncDriver[Tx],
    own: Own,
    scope: str,
    key: Key,
    work: Callable[[AsyncRun[Tx]], Awaitable[T]],
    request: Any,
    ttl: Duration | None,
    stale_after: Duration | None,
) -> Ran[T]:
    name, request_hash = idempotency_key_text(key), None if request is None else hash_of(request)
    sent = monotonic()
    with interlock_errors():
        claim = await claim_key(driver.query, scope, name, request_hash, 0, ttl, stale_after)
    if claim.outcome == "acquired":
        return Ran(True, "completed", await AsyncRun(driver, own, scope, name, claim, sent)._run(work))
    if claim.outcome == "replay":
        return Ran(False, "completed", value_of(claim.response))
    if claim.outcome == "in_progress":
        return Ran(False, "in_progress", retry_after=claim.retry_after)
    if claim.outcome in ("failed", "exhausted"):
        return Ran(False, claim.outcome)
    raise refusal(claim, scope, name)
