"""The ASGI application, its endpoints behind the guard, and a server of it in this process until it is stopped."""

from __future__ import annotations

import asyncio
import gc
import socket
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from uvicorn import Config, Server

from st_paragram.tools.serving.batching import Batcher
from st_paragram.tools.serving.connection import connection
from st_paragram.tools.serving.cors import Cors
from st_paragram.tools.serving.endpoints import embeddings, front_page, index, pages, rerank, score
from st_paragram.tools.serving.endpoints.service import Service
from st_paragram.tools.serving.guard import Guard, log_stray
from st_paragram.tools.serving.messages import App, Receive, Scope, Send
from st_paragram.tools.serving.metrics import Metrics
from st_paragram.tools.serving.routing import Routes
from st_paragram.tools.serving.served_model import ServedModel
from st_paragram.tools.serving.settings import Job, ServingSettings

if TYPE_CHECKING:
    from st_paragram.tools.serving.served_index import ServedIndex


class Application:
    """An ASGI application.

    Args:
        guard: what answers requests.
        batcher: closed when the server stops.
        index: the same.
    """

    def __init__(self, guard: Guard, batcher: Batcher, index: ServedIndex | None) -> None:
        self.guard, self.batcher, self.index = guard, batcher, index

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or follow the server's life."""
        if scope["type"] == "http":
            await self.guard(scope, receive, send)
        elif scope["type"] == "lifespan":
            await self._live(receive, send)

    async def _live(self, receive: Receive, send: Send) -> None:
        await receive()
        asyncio.get_running_loop().set_exception_handler(log_stray)
        await send({"type": "lifespan.startup.complete"})
        await receive()
        await asyncio.to_thread(self.batcher.close)  # meanwhile those whose time is over are answered
        if self.index is not None:
            await asyncio.to_thread(self.index.close)
        await send({"type": "lifespan.shutdown.complete"})


def build_app(
    served: ServedModel,
    settings: ServingSettings | None = None,
    key: str | None = None,
    origins: Sequence[str] = (),
) -> Application:
    """The ASGI application of a server.

    Args:
        served: the model, and perhaps an index.
        settings: limits.
        key: what clients must send; None: nothing.
        origins: of web pages that may use the server, see `cors.parse_origin`.

    Raises:
        MissingExtraError: prometheus_client is not installed.
    """
    settings = settings or ServingSettings()
    batcher = Batcher(served.encode, settings.batch_texts, settings.max_waiting, served.short)
    metrics = Metrics(lambda: batcher.waiting)
    batcher.observe = metrics.encoded
    service = Service(served, settings, batcher)
    kinds = (embeddings, rerank, score, index)
    posted = [endpoint for kind in kinds for endpoint in kind.endpoints(service)]
    read = pages.pages(service, metrics, posted, index.pages(service))
    routes = Routes([*posted, *read, *front_page.front_pages(service, posted, read, has_key=key is not None)])
    cors = Cors(origins) if origins else None
    return Application(Guard(routes.respond, settings, metrics, routes.by_path, key, cors), batcher, served.index)


class _AnnouncingServer(Server):
    """A server that calls a function once, when it has begun to take requests."""

    def __init__(self, config: Config, ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._ready = ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        try:
            self._ready()
        except Exception:  # nobody reads the report: end as if asked to
            await self.shutdown(sockets)
            raise


def serve(job: Job, listening: socket.socket, ready: Callable[[ServedModel], None]) -> None:
    """Load a model and answer requests until SIGINT or SIGTERM; requests under way are finished first.

    Args:
        job: what is served, and how.
        listening: where; it is closed at the end.
        ready: called when requests are answered from now on.

    Raises:
        ParagramError: the model or the index is refused.
    """
    with listening, suppress(KeyboardInterrupt):  # uvicorn raises the signal again when it has stopped
        served = ServedModel(job.model, job.name, job.index, job.writable)
        config = configuration(build_app(served, job.settings, job.key, job.origins), job.settings)
        # Keep what has been loaded out of garbage collections: with torch, a model leaves so many objects that a full
        # collection stops all requests for 0.4 s.
        gc.collect()
        gc.freeze()
        _AnnouncingServer(config, lambda: ready(served)).run(sockets=[listening])


def configuration(app: App, settings: ServingSettings) -> Config:
    """How uvicorn serves an application: it logs nothing of what is sent, and every wait has an end."""
    return Config(
        app,
        http=connection(settings.body_seconds),
        ws="none",
        log_level="warning",
        access_log=False,
        server_header=False,
        timeout_keep_alive=30,
        timeout_graceful_shutdown=settings.stop_seconds,
    )
