"""What every request passes first: the key, the size and the time of its body; and the count of what was answered.

Of what fails, the log has the kind and the places in the code: never a message, which might hold a text of a request,
and no values.
"""

from __future__ import annotations

import asyncio
import hmac
import logging
import time
from collections.abc import Awaitable, Callable, Container, Mapping
from pathlib import Path
from traceback import extract_tb
from typing import Any

from st_paragram.errors import SettingsError
from st_paragram.tools.serving.batching import TooBusy
from st_paragram.tools.serving.cors import Cors
from st_paragram.tools.serving.messages import Answer, ClientGone, Receive, Refused, Request, Scope, Send
from st_paragram.tools.serving.metrics import Metrics
from st_paragram.tools.serving.settings import ServingSettings

HEALTH = "/health"
FRONT_PAGES = ("/", "/docs")
_OPEN = frozenset({HEALTH, *FRONT_PAGES})  # read without the key
BODIES = 64  # times the largest body: what all requests under way may hold together
_PLACES = 4  # the innermost ones
logger = logging.getLogger(__name__)


class Guard:
    """Reads requests and sends answers, between ASGI and the routes.

    Args:
        respond: called with requests whose body has an allowed size, by clients that know the key.
        settings: `max_body` and `body_seconds` count.
        metrics: where requests are counted.
        known: paths that are counted separately.
        key: what clients must send as `Authorization: Bearer KEY`; None: nothing. `/health` and the front page need no
            key.
        cors: which pages of other origins may read answers; None: none of them.
    """

    def __init__(
        self,
        respond: Callable[[Request], Awaitable[Answer]],
        settings: ServingSettings,
        metrics: Metrics,
        known: Container[str] = (),
        key: str | None = None,
        cors: Cors | None = None,
    ) -> None:
        self.respond, self.settings, self.metrics, self.known = respond, settings, metrics, known
        self._key, self._cors = None if key is None else key.encode(), cors
        self._held = 0  # bytes of bodies

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, unless its client leaves."""
        started = time.perf_counter()
        try:
            answer = await self._answer(scope, receive)
        except ClientGone:
            return
        except asyncio.CancelledError:  # the server stops, and the seconds for requests under way are over
            answer = Answer.error(503, "the server is being stopped")
        # Not within `except`, where an error would have the first one as its context.
        path = scope["path"] if scope["path"] in self.known else "other"
        try:
            self.metrics.answered(path, answer.status, time.perf_counter() - started)
        except Exception as error:
            log_failure("counting a request", error)
        try:
            await answer.send(send, self._cors.headers(dict(scope["headers"])) if self._cors else {})
        except Exception as error:
            log_failure("sending an answer", error)

    async def _answer(self, scope: Scope, receive: Receive) -> Answer:
        headers = dict(scope["headers"])
        parts: list[bytes] = []
        try:
            preflight = self._cors.preflight(scope["method"], headers) if self._cors else None
            if preflight is None:  # browsers send it without the key
                self._check_key(scope["path"], headers)
            self._check_size(headers)
            await asyncio.wait_for(self._receive(receive, parts), self.settings.body_seconds)
            if preflight is not None:
                return preflight
            body = parts[0] if len(parts) == 1 else b"".join(parts)
            return await self._respond(
                Request(scope["method"], scope["path"], headers, body, receive, scope.get("scheme", "http"))
            )
        except asyncio.TimeoutError:
            late = Refused(408, f"the body did not come within {self.settings.body_seconds:g} s")
            return _closing(late)
        except Refused as error:
            return _closing(error)
        finally:
            self._held -= sum(map(len, parts))

    async def _respond(self, request: Request) -> Answer:
        try:
            return await self.respond(request)
        except ClientGone:
            raise
        except Refused as error:
            return Answer.refusal(error)
        except TooBusy as error:
            return Answer.error(503, f"{error}; try again in a second")
        except SettingsError as error:
            return Answer.error(400, str(error))
        except Exception as error:
            log_failure("a request", error)
            return Answer.error(500, "the server failed; its log has the kind of error")

    def _check_key(self, path: str, headers: Mapping[bytes, bytes]) -> None:
        """Refuse a request without the key, before its body is read.

        Raises:
            Refused: with status 401.
        """
        if not self._knows_key(path, headers.get(b"authorization", b"")):
            raise Refused(401, "a key is needed; send it as Authorization: Bearer KEY")

    def _check_size(self, headers: Mapping[bytes, bytes]) -> None:
        """Refuse a body that is announced as too large.

        Raises:
            Refused: with status 413.
        """
        announced = headers.get(b"content-length", b"")
        if announced.isdigit() and (len(announced) > 18 or int(announced) > self.settings.max_body):
            raise self._too_large()

    async def _receive(self, receive: Receive, parts: list[bytes]) -> None:
        """Receive the body into `parts`, or somewhat more than is allowed of it.

        Raises:
            ClientGone: before the body was complete.
            Refused: it is too large, alone (413) or together with those of other requests (503).
        """
        size, more = 0, True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise ClientGone
            parts.append(message.get("body", b""))
            size += len(parts[-1])
            self._held += len(parts[-1])
            more = message.get("more_body", False)
            if size > self.settings.max_body:
                raise self._too_large()
            if size and self._held > BODIES * self.settings.max_body:
                raise Refused(503, "requests under way are too large together; try again in a second")

    def _knows_key(self, path: str, sent: bytes) -> bool:
        if self._key is None or path in _OPEN:
            return True
        scheme, _, given = sent.partition(b" ")
        return scheme.lower() == b"bearer" and hmac.compare_digest(given.strip(), self._key)

    def _too_large(self) -> Refused:
        return Refused(413, f"the body is larger than {self.settings.max_body} bytes")


def _closing(refused: Refused) -> Answer:
    """The answer to a request that is refused, after which the connection is closed: the rest of it is not read."""
    answer = Answer.refusal(refused)
    answer.headers["Connection"] = "close"
    return answer


def log_failure(what: str, error: BaseException) -> None:
    """Log that something failed, with the kind of the error and where it was raised, innermost place first."""
    frames = extract_tb(error.__traceback__)[-_PLACES:]
    places = [f"{Path(each.filename).name}:{each.lineno} ({each.name})" for each in reversed(frames)]
    logger.error("%s failed: %s at %s", what, type(error).__name__, ", ".join(places) or "an unknown place")


def log_stray(_: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Log what nobody waited for, as a handler of an event loop: asyncio itself would write messages and values."""
    error = context.get("exception")
    if error is not None:
        log_failure("something in the background", error)
    else:
        logger.error("something in the background failed without an exception")
