"""A server as a process, or as several worker processes on one address."""

from __future__ import annotations

import os
import socket
import sys
import tempfile
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter
from starlette.applications import Starlette
from uvicorn import Config, Server

from st_paragram.errors import ParagramError, SettingsError, one_line
from st_paragram.tools.serving.app import build
from st_paragram.tools.serving.guard import COUNTERS
from st_paragram.tools.serving.protocol import LimitedProtocol
from st_paragram.tools.serving.schemas import Job
from st_paragram.tools.serving.workers import FAILURE, Workers
from st_paragram.tools.work import end_with_parent

_JOB = "ST_PARAGRAM_SERVE"  # environment variable with the settings for a worker process


def serve(job: Job) -> None:
    """Open model and index, print the address, and answer requests until SIGINT or SIGTERM.

    The address is printed when clients are answered: with several workers, when all of them have
    started.
    """
    app = build(job)  # also for several workers, so that errors are reported once, in one line
    with _listening(job) as listening, suppress(KeyboardInterrupt):  # uvicorn raises it again
        host, port = listening.getsockname()[:2]
        address = f"http://{f'[{host}]' if ':' in host else host}:{port}"
        about = f"Serving {app.state.about} at {address} until Ctrl-C.\n"
        if job.workers == 1:
            _print(about)
            Server(_config(app, job)).run([listening])
        else:
            del app
            _serve_in_processes(job, listening, about)


def _listening(job: Job) -> socket.socket:
    """Listen on the address of a job."""
    family = socket.AF_INET6 if ":" in job.host else socket.AF_INET
    try:
        listening = socket.create_server((job.host, job.port), family=family, backlog=1024)
    except OSError as error:
        raise SettingsError(
            f"cannot listen on {job.host}, port {job.port} ({error.strerror or error}); choose"
            " another --host or --port"
        ) from error
    # Inherited by connections. asyncio sets it only for sockets of `getaddrinfo`; small answers
    # would take 40 ms.
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listening


def _serve_in_processes(job: Job, listening: socket.socket, about: str) -> None:
    os.environ[_JOB] = TypeAdapter(Job).dump_json(job).decode()
    with tempfile.TemporaryDirectory(prefix="st_paragram-metrics-") as folder:
        os.environ[COUNTERS] = folder
        config = _config(build_worker, job)
        workers = Workers(config, [listening], Path(folder), lambda: _print(about))
        workers.run()
    if workers.failure:
        raise SettingsError(f"a worker process cannot start: {workers.failure}")


def build_worker() -> Starlette:
    """Build the application of a worker process, which ends with its parent."""
    threading.Thread(target=end_with_parent, daemon=True).start()
    try:
        return build(TypeAdapter(Job).validate_json(os.environ[_JOB]))
    except Exception as error:  # any error; the parent reports it in one line
        reason = str(error)
        if not isinstance(error, ParagramError):
            reason = f"{type(error).__name__}: {one_line(error)}"
        Path(os.environ[COUNTERS], FAILURE).write_text(reason, encoding="utf-8")
        raise SystemExit(1) from None


def _config(app: Any, job: Job) -> Config:
    return Config(
        app,
        factory=job.workers > 1,
        workers=job.workers,
        http=LimitedProtocol,
        loop="asyncio",  # under load, uvloop keeps new connections waiting for seconds
        ws="none",
        lifespan="off",
        log_level="warning",
        access_log=False,
        timeout_keep_alive=30,
        timeout_graceful_shutdown=30,
        # a worker may not respond for a while, for example when it imports torch
        timeout_worker_healthcheck=60,
    )


def _print(line: str) -> None:
    sys.stdout.write(line)
    sys.stdout.flush()
