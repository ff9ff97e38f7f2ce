"""What stands before every request: the key, the size and the time of its body, and the count of what was answered."""

from __future__ import annotations

import asyncio
import hmac
import time
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from st_paragram.serving import errors
from st_paragram.serving.metrics import Metrics
from st_paragram.serving.settings import ServingSettings

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

HEALTH = "/health"


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

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or hand it on."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        started, status = time.perf_counter(), 500

        async def counted(message: MutableMapping[str, Any]) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self._checked(scope, receive, counted)
        finally:
            self.metrics.answered(scope["path"], status, time.perf_counter() - started)

    async def _checked(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = dict(scope["headers"])
        if not self._knows_key(scope["path"], headers.get(b"authorization", b"")):
            refusal = errors.answer(401, "a key is needed; send it as Authorization: Bearer KEY")
        elif _too_large(headers.get(b"content-length", b""), self.settings.max_body):
            refusal = errors.answer(413, f"the body is larger than {self.settings.max_body} bytes")
        else:
            try:
                content = await asyncio.wait_for(self._body(receive), self.settings.body_seconds)
            except asyncio.TimeoutError:
                refusal = errors.answer(408, f"the body did not come within {self.settings.body_seconds:g} s")
            else:
                if content is None:
                    return  # the client has gone
                if len(content) <= self.settings.max_body:
                    await self.app(scope, _whole(content, receive), send)
                    return
                refusal = errors.answer(413, f"the body is larger than {self.settings.max_body} bytes")
        refusal.headers["Connection"] = "close"  # what is left of the body is not read
        await refusal(scope, receive, send)  # type: ignore[arg-type]

    def _knows_key(self, path: str, sent: bytes) -> bool:
        if self._key is None or path == HEALTH:
            return True
        scheme, _, given = sent.partition(b" ")
        return scheme.lower() == b"bearer" and hmac.compare_digest(given.strip(), self._key)

    async def _body(self, receive: Receive) -> bytes | None:
        """The body, or somewhat more than is allowed of it; None if the client has gone."""
        parts, size = [], 0
        while size <= self.settings.max_body:
            message = await receive()
            if message["type"] == "http.disconnect":
                return None
            parts.append(message.get("body", b""))
            size += len(parts[-1])
            if not message.get("more_body", False):
                break
        return b"".join(parts)


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
