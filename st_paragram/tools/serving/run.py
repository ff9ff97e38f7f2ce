"""A server until it is stopped: one process, or several that uvicorn replaces when they die."""

from __future__ import annotations

import gc
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


def serve(job: Job, host: str, port: int, workers: int = 1) -> None:
    """Open model and index, announce the address, and answer requests until SIGINT or SIGTERM.

    A client may connect from the announcement on, and is answered as soon as the workers have started.
    """
    app = build(job)  # here, too, so that what cannot be served is refused once and in a line
    about = app.state.about
    with _listen(host, port) as listening, tempfile.TemporaryDirectory(prefix="st_paragram-metrics-") as counts:
        host, port = listening.getsockname()[:2]
        sys.stdout.write(f"{about} answers at http://{f'[{host}]' if ':' in host else host}:{port} until Ctrl-C.\n")
        sys.stdout.flush()
        config = Config(
            app if workers == 1 else "st_paragram.tools.serving.app:build_worker",
            factory=workers > 1,
            workers=workers,
            http="httptools",
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
            if workers == 1:
                gc.collect()
                gc.freeze()  # with torch, a collection of all that is loaded would stop all requests for 0.4 s
                Server(config).run([listening])
            else:
                del app
                os.environ[VARIABLE] = TypeAdapter(Job).dump_json(job).decode()
                os.environ["PROMETHEUS_MULTIPROC_DIR"] = counts
                Multiprocess(config, [listening]).run()


def _listen(host: str, port: int) -> socket.socket:
    """A socket that listens; port 0 takes a free one."""
    # asyncio sends small answers at once (TCP_NODELAY) only over sockets that say they are TCP; others wait for 40 ms.
    listening = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, proto=socket.IPPROTO_TCP)
    try:
        if os.name == "posix":  # elsewhere the option would share a port that is in use
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((host, port))
        listening.listen(1024)
    except OSError as error:
        listening.close()
        seen = f"cannot listen on {host}, port {port} ({error.strerror or error})"
        raise SettingsError(f"{seen}; choose another --host or --port") from error
    return listening
