"""One of several processes that serve a port."""

from __future__ import annotations

import logging
import os
import signal
import socket
import sys
import threading
from dataclasses import dataclass
from multiprocessing import parent_process
from multiprocessing.connection import Connection

from st_paragram.errors import ParagramError
from st_paragram.tools.serving.job import Job

#: What a worker imports; the process that workers are copies of has imported it before.
PRELOADED = (
    "st_paragram.core.encoding.encoder",
    "st_paragram.core.encoding.models",
    "st_paragram.tools.serving.run",
    "st_paragram.tools.serving.connection",
    "st_paragram.core.tokenizers.sentencepiece",
    "uvicorn.lifespan.on",
    "uvicorn.loops.auto",
    "prometheus_client.multiprocess",
    "uvloop",
)


@dataclass(frozen=True)
class Started:
    """What is served."""

    name: str
    dimension: int


def work(job: Job, listening: socket.socket, reports: Connection) -> None:
    """Serve until SIGINT or SIGTERM, or until the parent process is gone.

    Args:
        job: what is served.
        listening: where.
        reports: gets `Started` when requests are answered, or the message of the error that forbids it.
    """
    logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stderr)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    threading.Thread(target=_follow_parent, daemon=True).start()
    from st_paragram.tools.serving.run import serve

    try:
        serve(job, listening, lambda served: reports.send(Started(served.name, served.dimension)))
    except ParagramError as error:
        reports.send(str(error))
    except KeyboardInterrupt:  # while the model was loaded
        pass


def _follow_parent() -> None:
    parent = parent_process()
    if parent is not None:
        parent.join()
        os.kill(os.getpid(), signal.SIGTERM)
