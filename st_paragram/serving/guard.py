"""What stands before every request: the key, the size and the time of its body, and the count of what was answered."""

from __future__ import annotations

import asyncio
import hmac
import time
from collections.abc import Awaitable, Callable, MutableMapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from st_paragram.serving import errors
from st_paragram.serving.failures import log_failure
from st_paragram.serving.metrics import Metrics
from st_paragram.serving.settings import ServingSettings

if TYPE_CHECKING:
    from fastapi import Response

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

HEALTH = "/health"
BODIES = 64  # times the largest body: what all requests under way may hold together


class Guard:
    """An ASGI application around another one.

    Args:
        app: it is called with whole bodies of an allowed size, by clients that know the key.
        settings: `max_body` and `body_seconds` count.
        metrics: where requests are counted.
        key: what clients must send as `Authorization: Bearer KEY`; None: nothing. `/health` needs no key.
    """

    def __init__(self, app: App, settings: ServingSettings, metrics: Metrics, key: str | None = None) -> None:
        self.app, self.settings, self.metrics = app, settings, metrics
        self._key = None if key is None else key.encode()
        self._held = 0  # bytes of bodies

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or hand it on."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        started = time.perf_counter()
        status: int | None = None

        async def counted(message: MutableMapping[str, Any]) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        refusal = None
        try:
            await self._checked(scope, receive, counted)
        except asyncio.CancelledError:  # the server stops, and the seconds for requests under way are over
            refusal = errors.answer(503, "the server is being stopped")
        except Exception as error:  # outside it would be logged whole, with texts of the request
            log_failure("a request", error)
            refusal = errors.failed()
        # Not within `except`: an error of sending would have the first one as its context.
        if refusal is not None and status is None:
            await refusal(scope, receive, counted)  # type: ignore[arg-type]
        if status is not None:
            self.metrics.answered(scope["path"], status, time.perf_counter() - started)

    async def _checked(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = dict(scope["headers"])
        refusal: Response | None
        if not self._knows_key(scope["path"], headers.get(b"authorization", b"")):
            refusal = errors.answer(401, "a key is needed; send it as Authorization: Bearer KEY")
        elif _too_large(headers.get(b"content-length", b""), self.settings.max_body):
            refusal = errors.answer(413, f"the body is larger than {self.settings.max_body} bytes")
        else:
            parts: list[bytes] = []
            try:
                refusal = await self._with_body(parts, scope, receive, send)
            finally:
                self._held -= sum(map(len, parts))
            if refusal is None:
                return
        refusal.headers["Connection"] = "close"  # what is left of the body is not read
        await refusal(scope, receive, send)  # type: ignore[arg-type]

    async def _with_body(self, parts: list[bytes], scope: Scope, receive: Receive, send: Send) -> Response | None:
        """Read the body into `parts` and hand the request on; the answer if it is refused."""
        try:
            is_there = await asyncio.wait_for(self._read(receive, parts), self.settings.body_seconds)
        except asyncio.TimeoutError:
            return errors.answer(408, f"the body did not come within {self.settings.body_seconds:g} s")
        if sum(map(len, parts)) > self.settings.max_body:
            return errors.answer(413, f"the body is larger than {self.settings.max_body} bytes")
        if any(parts) and self._is_full():
            return errors.answer(503, "requests under way are too large together; try again in a second")
        if is_there:  # else the client has gone
            parts[:] = [b"".join(parts)]
            await _while_asked(receive, self.app(scope, _whole(parts[0], receive), send))
        return None

    def _knows_key(self, path: str, sent: bytes) -> bool:
        if self._key is None or path == HEALTH:
            return True
        scheme, _, given = sent.partition(b" ")
        return scheme.lower() == b"bearer" and hmac.compare_digest(given.strip(), self._key)

    def _is_full(self) -> bool:
        return self._held > BODIES * self.settings.max_body

    async def _read(self, receive: Receive, parts: list[bytes]) -> bool:
        """Read the body, or somewhat more than is allowed of it; False if the client has gone."""
        size, more = 0, True
        while more and size <= self.settings.max_body:
            message = await receive()
            if message["type"] == "http.disconnect":
                return False
            parts.append(message.get("body", b""))
            size += len(parts[-1])
            self._held += len(parts[-1])
            more = message.get("more_body", False) and not self._is_full()
        return True


async def _while_asked(receive: Receive, work: Awaitable[None]) -> None:
    """Do the work of an answer; give it up when the client has gone, so that nothing is computed for nobody."""
    task, gone = asyncio.ensure_future(work), asyncio.ensure_future(_gone(receive))
    try:
        await asyncio.wait((task, gone), return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            task.cancel()
        with suppress(asyncio.CancelledError):
            await task
    finally:
        gone.cancel()
        task.cancel()


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def _too_large(announced: bytes, most: int) -> bool:
    return announced.isdigit() and (len(announced) > 18 or int(announced) > most)


def _whole(content: bytes, receive: Receive) -> Receive:
    """Gives the body in one piece, and then whatever else comes."""
    given = False

    async def whole() -> MutableMapping[str, Any]:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": content, "more_body": False}

    return whole
