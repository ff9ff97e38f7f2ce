"""What every request passes first: the key, the size and the time of its body; and the count of what was answered."""

from __future__ import annotations

import asyncio
import hmac
import time
from collections.abc import Awaitable, Callable, Container, Mapping, MutableMapping
from typing import Any

from st_paragram.tools.serving import errors
from st_paragram.tools.serving.failures import log_failure
from st_paragram.tools.serving.messages import Answer, ClientGone, Receive, Request, Scope, Send
from st_paragram.tools.serving.metrics import Metrics
from st_paragram.tools.serving.settings import ServingSettings

HEALTH = "/health"
BODIES = 64  # times the largest body: what all requests under way may hold together


class Guard:
    """Reads requests and sends answers, between ASGI and the routes.

    Args:
        respond: called with requests whose body has an allowed size, by clients that know the key.
        settings: `max_body` and `body_seconds` count.
        metrics: where requests are counted.
        known: paths that are counted separately.
        key: what clients must send as `Authorization: Bearer KEY`; None: nothing. `/health` needs no key.
    """

    def __init__(
        self,
        respond: Callable[[Request], Awaitable[Answer]],
        settings: ServingSettings,
        metrics: Metrics,
        known: Container[str] = (),
        key: str | None = None,
    ) -> None:
        self.respond, self.settings, self.metrics, self.known = respond, settings, metrics, known
        self._key = None if key is None else key.encode()
        self._held = 0  # bytes of bodies

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, unless its client leaves."""
        started = time.perf_counter()
        try:
            answer = await self._answer(scope, receive)
        except ClientGone:
            return
        except asyncio.CancelledError:  # the server stops, and the seconds for requests under way are over
            answer = errors.answer(503, "the server is being stopped")
        path = scope["path"] if scope["path"] in self.known else "other"
        self.metrics.answered(path, answer.status, time.perf_counter() - started)
        # Not within `except`: an error of sending would have the first one as its context.
        try:
            await answer.send(send)
        except Exception as error:  # outside it would be logged whole
            log_failure("sending an answer", error)

    async def _answer(self, scope: Scope, receive: Receive) -> Answer:
        headers = dict(scope["headers"])
        refusal = self._refusal(scope["path"], headers)
        if refusal is not None:
            return _closing(refusal)
        parts: list[bytes] = []
        try:
            refusal = await self._read(receive, parts)
            if refusal is not None:
                return _closing(refusal)
            body = parts[0] if len(parts) == 1 else b"".join(parts)
            return await self._respond(Request(scope["method"], scope["path"], headers, body, receive))
        finally:
            self._held -= sum(map(len, parts))

    async def _respond(self, request: Request) -> Answer:
        try:
            return await self.respond(request)
        except ClientGone:
            raise
        except Exception as error:
            answer = errors.expected(error)
            if answer is None:
                log_failure("a request", error)
                answer = errors.failed()
            return answer

    def _refusal(self, path: str, headers: Mapping[bytes, bytes]) -> Answer | None:
        """The answer to a request that is refused before its body is read."""
        if not self._knows_key(path, headers.get(b"authorization", b"")):
            return errors.answer(401, "a key is needed; send it as Authorization: Bearer KEY")
        if _too_large(headers.get(b"content-length", b""), self.settings.max_body):
            return self._body_too_large()
        return None

    async def _read(self, receive: Receive, parts: list[bytes]) -> Answer | None:
        """Read the body into `parts`; the answer if the request is refused.

        Raises:
            ClientGone: before the body was complete.
        """
        try:
            await asyncio.wait_for(self._receive(receive, parts), self.settings.body_seconds)
        except asyncio.TimeoutError:
            return errors.answer(408, f"the body did not come within {self.settings.body_seconds:g} s")
        if sum(map(len, parts)) > self.settings.max_body:
            return self._body_too_large()
        if any(parts) and self._is_full():
            return errors.answer(503, "requests under way are too large together; try again in a second")
        return None

    async def _receive(self, receive: Receive, parts: list[bytes]) -> None:
        """Receive the body, or somewhat more than is allowed of it."""
        size, more = 0, True
        while more and size <= self.settings.max_body:
            message: MutableMapping[str, Any] = await receive()
            if message["type"] == "http.disconnect":
                raise ClientGone
            parts.append(message.get("body", b""))
            size += len(parts[-1])
            self._held += len(parts[-1])
            more = message.get("more_body", False) and not self._is_full()

    def _knows_key(self, path: str, sent: bytes) -> bool:
        if self._key is None or path == HEALTH:
            return True
        scheme, _, given = sent.partition(b" ")
        return scheme.lower() == b"bearer" and hmac.compare_digest(given.strip(), self._key)

    def _is_full(self) -> bool:
        return self._held > BODIES * self.settings.max_body

    def _body_too_large(self) -> Answer:
        return errors.answer(413, f"the body is larger than {self.settings.max_body} bytes")


def _closing(refusal: Answer) -> Answer:
    """The same answer, after which the connection is closed: the rest of the body is not read."""
    refusal.headers["Connection"] = "close"
    return refusal


def _too_large(announced: bytes, most: int) -> bool:
    return announced.isdigit() and (len(announced) > 18 or int(announced) > most)
