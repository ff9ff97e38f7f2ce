"""A server in this process, until it is stopped."""

from __future__ import annotations

import gc
import socket
from collections.abc import Callable
from contextlib import suppress

from uvicorn import Config, Server

from st_paragram.tools.serving.app import build_app
from st_paragram.tools.serving.connection import connection
from st_paragram.tools.serving.messages import App
from st_paragram.tools.serving.served_model import ServedModel
from st_paragram.tools.serving.settings import Job, ServingSettings


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
        served = ServedModel(job.model, job.name, job.index)
        config = configuration(build_app(served, job.settings, job.key), job.settings)
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
