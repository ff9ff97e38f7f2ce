"""Around all endpoints: the key, the counters of requests, and errors of the server."""

from __future__ import annotations

import hmac
import logging
import os
import time
from collections.abc import Collection
from pathlib import Path
from traceback import extract_tb

import prometheus_client as prometheus
from prometheus_client.multiprocess import MultiProcessCollector
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from st_paragram.tools.serving.answers import error_answer

#: Environment variable with the folder for the counters of all worker processes.
COUNTERS = "PROMETHEUS_MULTIPROC_DIR"
_SECONDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
REQUESTS = prometheus.Counter("st_paragram_requests", "Requests answered", ["path", "status"])
LATENCY = prometheus.Histogram(
    "st_paragram_request_seconds", "Time to the answer", ["path"], buckets=_SECONDS
)
logger = logging.getLogger(__name__)


class Guard:
    """Checks the key, counts requests, and answers errors.

    Messages of errors are not logged, since they may contain texts.
    """

    def __init__(self, app: ASGIApp, key: str | None, paths: Collection[str]) -> None:
        self.app = app
        self.key = key.encode() if key else None
        self.paths = paths

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        begin = time.perf_counter()
        path = scope["path"]
        label = path if path in self.paths else "other"
        has_answer = False

        async def send_counted(message: Message) -> None:
            nonlocal has_answer
            # before the client gets the answer, so that its own request is already counted
            if "status" in message:
                has_answer = True
                REQUESTS.labels(label, message["status"]).inc()
                LATENCY.labels(label).observe(time.perf_counter() - begin)
            await send(message)

        answer: ASGIApp = self._refusal(scope) or self.app
        try:
            await answer(scope, receive, send_counted)
        except ClientDisconnect:
            return
        except Exception as error:
            logger.error("a request failed: %s at %s", type(error).__name__, _places(error))
            if not has_answer:
                answer = error_answer(500, "the server failed; its log shows the type of error")
                await answer(scope, receive, send_counted)

    def _refusal(self, scope: Scope) -> Response | None:
        """Return an error if a request needs the key and does not have it."""
        if self.key is None or scope["path"] == "/health":
            return None
        header = dict(scope["headers"]).get(b"authorization")
        if header is None:
            return _unauthorized("a key is needed; send it as")
        scheme, _, key = header.partition(b" ")
        if scheme.lower() != b"bearer":
            return _unauthorized("the header Authorization has another form; send the key as")
        if not hmac.compare_digest(key.strip(), self.key):
            return _unauthorized("the key is wrong; send the key of this server as")
        return None


def _unauthorized(problem: str) -> Response:
    message = f"{problem} Authorization: Bearer KEY"
    return error_answer(401, message, headers={"WWW-Authenticate": "Bearer"})


def _places(error: Exception) -> str:
    """Name the last lines of code before an error, the last first."""
    frames = extract_tb(error.__traceback__)[-4:]
    names = [f"{Path(frame.filename).name}:{frame.lineno} ({frame.name})" for frame in frames]
    return ", ".join(reversed(names))


async def metrics(_: Request) -> Response:
    """Answer with the counters of this process, or of all worker processes."""
    registry = prometheus.REGISTRY
    if COUNTERS in os.environ:
        registry = prometheus.CollectorRegistry()
        MultiProcessCollector(registry)
    return Response(prometheus.generate_latest(registry), media_type=prometheus.CONTENT_TYPE_LATEST)
