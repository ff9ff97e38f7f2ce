"""A server until it is stopped: one process, or several that uvicorn replaces when they die."""

from __future__ import annotations

import os
import socket
import sys
import tempfile
from contextlib import suppress

from pydantic import TypeAdapter
from uvicorn import Config, Server
from uvicorn.supervisors import Multiprocess

from st_paragram.errors import SettingsError
from st_paragram.tools.serving.app import VARIABLE, build
from st_paragram.tools.serving.schemas import Job


def serve(job: Job) -> None:
    """Open model and index, announce the address, and answer requests until SIGINT or SIGTERM.

    A client may connect from the announcement on, and is answered as soon as the workers have started.
    """
    app = build(job)  # here, too, so that what cannot be served is refused once and in a line
    about = app.state.about
    try:
        family = socket.AF_INET6 if ":" in job.host else socket.AF_INET
        listening = socket.create_server((job.host, job.port), family=family, backlog=1024)
    except OSError as error:
        seen = f"cannot listen on {job.host}, port {job.port} ({error.strerror or error})"
        raise SettingsError(f"{seen}; choose another --host or --port") from error
    with listening, tempfile.TemporaryDirectory(prefix="st_paragram-metrics-") as counts:
        # Connections inherit it. asyncio sets it only for sockets of `getaddrinfo`; small answers would wait for 40 ms.
        listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        host, port = listening.getsockname()[:2]
        sys.stdout.write(f"{about} answers at http://{f'[{host}]' if ':' in host else host}:{port} until Ctrl-C.\n")
        sys.stdout.flush()
        config = Config(
            app if job.workers == 1 else "st_paragram.tools.serving.app:build_worker",
            factory=job.workers > 1,
            workers=job.workers,
            http="httptools",
            loop="asyncio",  # under load, uvloop keeps new connections waiting for seconds
            ws="none",
            lifespan="off",
            log_level="warning",
            access_log=False,
            server_header=False,
            timeout_keep_alive=30,
            timeout_graceful_shutdown=job.stop_seconds,
            timeout_worker_healthcheck=60,  # a worker may be deaf for a while, as when it imports torch
        )
        with suppress(KeyboardInterrupt):  # uvicorn raises the signal again when it has stopped
            if job.workers == 1:
                Server(config).run([listening])
            else:
                del app
                os.environ[VARIABLE] = TypeAdapter(Job).dump_json(job).decode()
                os.environ["PROMETHEUS_MULTIPROC_DIR"] = counts
                Multiprocess(config, [listening]).run()
