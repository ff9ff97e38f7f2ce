"""The ASGI application: the endpoints, behind the guard."""

from __future__ import annotations

import asyncio

from st_paragram.tools.serving.batching import Batcher
from st_paragram.tools.serving.endpoints import embeddings, own, pages, rerank
from st_paragram.tools.serving.endpoints.service import Service
from st_paragram.tools.serving.guard import Guard, log_stray
from st_paragram.tools.serving.messages import Receive, Scope, Send
from st_paragram.tools.serving.metrics import Metrics
from st_paragram.tools.serving.routing import Routes
from st_paragram.tools.serving.served_model import ServedModel
from st_paragram.tools.serving.settings import ServingSettings


class Application:
    """An ASGI application.

    Args:
        guard: what answers requests.
        batcher: closed when the server stops.
    """

    def __init__(self, guard: Guard, batcher: Batcher) -> None:
        self.guard, self.batcher = guard, batcher

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
        await send({"type": "lifespan.shutdown.complete"})


def build_app(served: ServedModel, settings: ServingSettings | None = None, key: str | None = None) -> Application:
    """The ASGI application of a server.

    Args:
        served: the model, and perhaps an index.
        settings: limits.
        key: what clients must send; None: nothing.

    Raises:
        MissingExtraError: prometheus_client is not installed.
    """
    settings = settings or ServingSettings()
    batcher = Batcher(served.encode, settings.batch_texts, settings.max_waiting, served.short)
    metrics = Metrics(lambda: batcher.waiting)
    batcher.observe = metrics.encoded
    service = Service(served, settings, batcher)
    posted = [*embeddings.endpoints(service), *rerank.endpoints(service), *own.endpoints(service)]
    routes = Routes([*posted, *pages.pages(service, metrics, posted)])
    return Application(Guard(routes.respond, settings, metrics, routes.by_path, key), batcher)
