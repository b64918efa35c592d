"""Starlette and FastAPI: requests that run once for their Idempotency-Key, and conflicts as answers.

    app.add_middleware(IdempotencyKey, interlock=il, scope="POST /payments", path="/payments", user=user)
    app.add_exception_handler(InterlockError, conflict)
"""

from __future__ import annotations

import asyncio
import inspect
import re
from collections.abc import Awaitable, Callable, Collection, MutableMapping
from typing import Any, Union

from starlette.requests import Request
from starlette.responses import Response

from ._async.interlock import AsyncInterlock
from ._async.once import claimed
from .errors import InterlockError
from .http import Answer, Endpoint, NotKept, answer_of, key_of, problem, problem_of, stored_of
from .results import Stored
from .values import Duration, seconds

Message = MutableMapping[str, Any]
Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]
User = Union[str, int, None]


def transaction(request: Request) -> Any:
    """The transaction of an idempotent request, for Depends() of FastAPI: what is written with it happens once or not at all."""
    return request.state.tx


async def conflict(request: Request, error: Exception) -> Response:
    """An error of this package as an answer: `app.add_exception_handler(InterlockError, conflict)`."""
    assert isinstance(error, InterlockError)
    answer = problem_of(error)
    return Response(answer.body, answer.status, dict(answer.headers))


class IdempotencyKey:
    """Middleware. Claim, effect and answer are one transaction, `request.state.tx`; the answer is sent after COMMIT.

    scope: the idempotency scope. user: the authenticated user who sends the request. Keys of different users are different keys. A
    request without a user gets 401. path: a regular expression of the paths, all by default. methods: those that need a key. wait: how
    long a repeated request waits for the first one, instead of 409 at once; it occupies a connection. ttl: how long the answer is
    remembered. timeout: how long the handler may take; then its transaction is rolled back, and the answer is 503. max_body: bytes of
    a request, more are answered with 413.
    """

    def __init__(
        self,
        app: App,
        *,
        interlock: AsyncInterlock[Any],
        scope: str,
        user: Callable[[Request], Union[User, Awaitable[User]]],
        path: str = ".*",
        methods: Collection[str] = ("POST", "PATCH"),
        wait: Duration = 0,
        ttl: Duration | None = None,
        timeout: Duration = 60,
        header: str = "Idempotency-Key",
        max_body: int = 10_000_000,
    ) -> None:
        self._app, self._interlock, self._scope, self._user = app, interlock, scope, user
        self._path, self._methods = re.compile(path), set(methods)
        self._wait, self._ttl, self._timeout = wait, ttl, seconds(timeout)
        self._header, self._max_body = header.lower().encode(), max_body

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] not in self._methods or not self._path.fullmatch(scope["path"]):
            return await self._app(scope, receive, send)
        body = await _body(receive, self._max_body)
        if isinstance(body, Answer):
            return await _send(send, body)
        if body is None:
            return None  # the client has left before its request was whole
        handling = _Handling(self._app, scope, receive, body)
        try:
            await _send(send, await self._answer(scope, body, handling))
            await handling.end()
        finally:
            handling.cancel()

    async def _answer(self, scope: Scope, body: bytes, handling: _Handling) -> Answer:
        request = Request(scope)
        query, content_type = scope.get("query_string", b"").decode("latin-1"), request.headers.get("content-type", "")
        endpoint = Endpoint(scope["method"], scope["path"], query, content_type, body)
        user = self._user(request)
        user = await user if inspect.isawaitable(user) else user
        headers = [value.decode("latin-1") for name, value in scope["headers"] if name == self._header]
        key = key_of(endpoint, headers, user)
        if isinstance(key, Answer):
            return key

        async def work(tx: Any) -> tuple[Answer, Stored]:
            answer = await handling.answer(tx, self._timeout)
            if answer.status >= 500:
                raise NotKept(answer)
            return answer, stored_of(answer)

        try:
            driver = self._interlock._driver
            claim, result = await claimed(driver, self._scope, key, endpoint.hash, self._wait, self._ttl, work)
            return answer_of(claim, result)
        except NotKept as error:
            return error.answer
        except InterlockError as error:  # of a statement of the handler, which is rolled back
            return problem_of(error)


class _Handling:
    """The application at work on a request. Its answer is kept back until end()."""

    def __init__(self, app: App, scope: Scope, receive: Receive, body: bytes) -> None:
        self._app, self._scope, self._receive = app, scope, receive
        self._requests: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]
        self._task: asyncio.Task[None] | None = None
        self._whole, self._ended = asyncio.Event(), asyncio.Event()
        self._start: Message = {}
        self._chunks: list[bytes] = []

    async def answer(self, tx: Any, timeout: float) -> Answer:
        scope = {**self._scope, "state": {**self._scope.get("state", {}), "tx": tx}}
        self._task = asyncio.ensure_future(self._app(scope, self._next, self._take))
        whole = asyncio.ensure_future(self._whole.wait())
        try:
            await asyncio.wait({self._task, whole}, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
            if not self._whole.is_set() and self._task.done():
                self._task.result()  # raises what the application has raised
                raise RuntimeError("the application has sent no answer")
        finally:
            whole.cancel()
            if not self._whole.is_set():
                await self._abandon()
        if not self._whole.is_set():
            raise NotKept(problem(503, "the request took too long", ("Retry-After", "1")))
        headers = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in self._start.get("headers", [])]
        return Answer(self._start["status"], headers, b"".join(self._chunks))

    async def end(self) -> None:
        """The answer is sent. Background tasks of the application run now."""
        self._ended.set()
        if self._task is not None and self._whole.is_set():
            await self._task

    def cancel(self) -> None:
        if self._task is not None:
            self._task.cancel()

    # No statement of the handler comes after its transaction.
    async def _abandon(self) -> None:
        if self._task is not None and not self._task.done():
            self._task.cancel()
            await asyncio.wait({self._task})

    # A client that leaves does not cut the answer short: it is kept for the client's next request.
    async def _next(self) -> Message:
        if self._requests:
            return self._requests.pop()
        await self._ended.wait()
        return await self._receive()

    async def _take(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._start = message
        elif message["type"] == "http.response.body" and not self._whole.is_set():
            self._chunks.append(message.get("body", b""))
            if not message.get("more_body", False):
                self._whole.set()
                await self._ended.wait()


async def _body(receive: Receive, limit: int) -> bytes | Answer | None:
    chunks, size = [], 0
    while True:
        message = await receive()
        if message["type"] != "http.request":
            return None
        chunks.append(message.get("body", b""))
        size += len(chunks[-1])
        if size > limit:
            return problem(413, f"a request has at most {limit} bytes", ("Connection", "close"))
        if not message.get("more_body", False):
            return b"".join(chunks)


async def _send(send: Send, answer: Answer) -> None:
    without = {"content-length", "transfer-encoding"}
    headers = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in answer.headers if name.lower() not in without]
    if answer.status not in (204, 304):
        headers.append((b"content-length", str(len(answer.body)).encode()))
    await send({"type": "http.response.start", "status": answer.status, "headers": headers})
    await send({"type": "http.response.body", "body": answer.body})
