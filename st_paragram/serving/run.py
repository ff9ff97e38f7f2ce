"""A server in this process, until it is told to stop."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from st_paragram.errors import SettingsError
from st_paragram.extras import require
from st_paragram.serving.app import build_app
from st_paragram.serving.guard import App
from st_paragram.serving.packages import check_packages
from st_paragram.serving.served_model import ServedModel
from st_paragram.serving.settings import ServingSettings

if TYPE_CHECKING:
    from uvicorn import Config

_UNREAD_SECONDS = 60


def listen(host: str, port: int) -> socket.socket:
    """A socket that listens; port 0 takes a free one.

    Raises:
        SettingsError: host or port cannot be listened at.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # asyncio sends small answers at once (TCP_NODELAY) only over sockets that say they are TCP; others wait for 40 ms.
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        if os.name == "posix":  # elsewhere the option would share a port that is in use
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if hasattr(socket, "TCP_USER_TIMEOUT"):  # a client that reads nothing of its answer is given up
            listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, 1000 * _UNREAD_SECONDS)
        listening.bind((host, port))
        listening.listen(1024)
        return listening
    except (OSError, OverflowError) as error:
        listening.close()
        reason = getattr(error, "strerror", None) or str(error)
        seen = f"cannot listen at {host}, port {port} ({reason})"
        raise SettingsError(f"{seen}; choose another --host or --port") from error


def serve(
    listening: socket.socket,
    served: ServedModel,
    settings: ServingSettings,
    key: str | None = None,
    ready: Callable[[], None] = lambda: None,
) -> None:
    """Answer requests until SIGINT or SIGTERM; requests under way are finished first.

    Args:
        listening: where; it is closed at the end.
        served: the model.
        settings: limits.
        key: what clients must send; None: nothing.
        ready: is called when requests are answered from now on.

    Raises:
        MissingExtraError: uvicorn, FastAPI, prometheus_client or h11 is not installed.
    """
    check_packages()
    from st_paragram.serving.announcing import AnnouncingServer

    with listening, suppress(KeyboardInterrupt):  # uvicorn raises the signal again when it has stopped
        config = configuration(build_app(served, settings, key), settings)
        AnnouncingServer(config, ready).run(sockets=[listening])


def configuration(app: App, settings: ServingSettings) -> Config:
    """How uvicorn serves an application: it logs nothing of what is sent, and waits for nobody without end."""
    uvicorn = require("uvicorn", "serve")
    from st_paragram.serving.connection import connection

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


def read_key(path: Path) -> str:
    """The key in the first line of a file.

    Raises:
        SettingsError: the file cannot be read, or there is none in it.
    """
    try:
        key = path.read_text(encoding="utf-8").split("\n")[0].strip()
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"{path}: cannot be read ({error}); give a text file with the key") from error
    if not key:
        raise SettingsError(f"{path}: its first line is empty; write the key into it")
    return key
