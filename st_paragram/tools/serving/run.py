"""A server in this process, until it is stopped."""

from __future__ import annotations

import gc
import socket
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING

from st_paragram.core.extras import require
from st_paragram.tools.serving.app import build_app
from st_paragram.tools.serving.job import Job
from st_paragram.tools.serving.messages import App
from st_paragram.tools.serving.served_model import ServedModel
from st_paragram.tools.serving.settings import ServingSettings

if TYPE_CHECKING:
    from uvicorn import Config


def serve(job: Job, listening: socket.socket, ready: Callable[[ServedModel], None]) -> None:
    """Load a model and answer requests until SIGINT or SIGTERM; requests under way are finished first.

    Args:
        job: what is served, and how.
        listening: where; it is closed at the end.
        ready: called when requests are answered from now on.

    Raises:
        ParagramError: the model or the index is refused, or a package of the extra `serve` is missing.
    """
    from st_paragram.tools.serving.announcing import AnnouncingServer

    with listening, suppress(KeyboardInterrupt):  # uvicorn raises the signal again when it has stopped
        served = ServedModel(job.model, job.name, job.index)
        config = configuration(build_app(served, job.settings, job.key), job.settings)
        _spare_collections()
        AnnouncingServer(config, lambda: ready(served)).run(sockets=[listening])


def configuration(app: App, settings: ServingSettings) -> Config:
    """How uvicorn serves an application: it logs nothing of what is sent, and every wait has an end."""
    uvicorn = require("uvicorn", "serve")
    from st_paragram.tools.serving.connection import connection

    config: Config = uvicorn.Config(
        app,
        http=connection(settings.body_seconds),
        ws="none",
        log_level="warning",
        access_log=False,
        server_header=False,
        timeout_keep_alive=30,
        timeout_graceful_shutdown=settings.stop_seconds,
    )
    return config


def _spare_collections() -> None:
    """Keep what has been loaded out of garbage collections.

    With torch, a model leaves so many objects that a full collection stops all requests for 0.4 s.
    """
    gc.collect()
    gc.freeze()
