"""Several processes that serve one port: started together, replaced when they die, stopped together.

This process loads nothing and answers nothing. Its children are copies of a process that has imported what a server
needs, so that they share that memory; the table of an averaging model is mapped from its file, which they share, too.
"""

from __future__ import annotations

import logging
import multiprocessing
import os
import signal
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from st_paragram.errors import ParagramError
from st_paragram.tools.serving.metrics import SHARED_VARIABLE
from st_paragram.tools.serving.settings import Job

#: What a worker imports; the process that workers are copies of has imported it before.
_PRELOADED = (
    "st_paragram.core.encoding.encoder",
    "st_paragram.core.encoding.models",
    "st_paragram.tools.serving.run",
    "st_paragram.core.tokenizers.sentencepiece",
    "uvicorn.lifespan.on",
    "uvicorn.loops.auto",
    "prometheus_client.multiprocess",
    "uvloop",
)
logger = logging.getLogger(__name__)
_WAIT = 1.0  # seconds between two attempts to replace a worker
_SLACK = 10.0  # seconds beyond those for requests under way


@dataclass(frozen=True)
class Started:
    """What is served."""

    name: str
    dimension: int


@dataclass(eq=False)
class _Worker:
    process: BaseProcess
    listening: socket.socket
    reports: Connection


class Workers:
    """The processes of one server.

    Args:
        job: what each of them serves.
        sockets: one per process. They stay open here, so that connections wait while a worker is replaced.
    """

    def __init__(self, job: Job, sockets: Sequence[socket.socket]) -> None:
        self._job, self._sockets = job, sockets
        self._copies = "forkserver" in multiprocessing.get_all_start_methods()
        self._context: Any = multiprocessing.get_context("forkserver" if self._copies else "spawn")
        self._workers: list[_Worker] = []

    def serve(self, ready: Callable[[Started], None]) -> None:
        """Serve until SIGINT or SIGTERM.

        Args:
            ready: called once, when all workers answer.

        Raises:
            ParagramError: a worker could not start; the message is its own.
        """
        with tempfile.TemporaryDirectory(prefix="st_paragram-metrics-") as counts:
            os.environ[SHARED_VARIABLE] = counts
            if self._copies:
                self._context.set_forkserver_preload(list(_PRELOADED))
            try:
                for listening in self._sockets:  # each is in the list at once, so that a signal stops it, too
                    self._workers.append(self._start(listening))
                started = [_started(worker) for worker in self._workers]
                ready(started[0])
                while True:
                    self._replace_dead(Path(counts))
            except KeyboardInterrupt:
                pass
            finally:
                self._stop()
                del os.environ[SHARED_VARIABLE]

    def _start(self, listening: socket.socket) -> _Worker:
        reports, theirs = self._context.Pipe(duplex=False)
        process = self._context.Process(target=_work, args=(self._job, listening, theirs), name="st-paragram worker")
        process.start()
        theirs.close()
        return _Worker(process, listening, reports)

    def _replace_dead(self, counts: Path) -> None:
        """Wait until workers die, and start others at their sockets."""
        wait([worker.process.sentinel for worker in self._workers])
        for number, worker in enumerate(self._workers):
            if worker.process.is_alive():
                continue
            process = worker.process
            ended = f"ended with status {process.exitcode}{_last_words(worker)}"
            logger.warning("worker %s %s; starting another", process.pid, ended)
            for left in counts.glob(f"gauge_live*_{process.pid}.db"):  # its texts wait no longer; its counts stay
                left.unlink()
            worker.reports.close()
            time.sleep(_WAIT)
            try:
                self._workers[number] = self._start(worker.listening)
            except (OSError, EOFError) as error:  # no room for a process; the dead one is found again
                logger.warning("a worker cannot be started (%s); trying again", error)

    def _stop(self) -> None:
        """Have all workers finish the requests under way, and end."""
        for worker in self._workers:
            worker.process.terminate()
        end = time.monotonic() + self._job.settings.stop_seconds + _SLACK
        for worker in self._workers:
            with suppress(KeyboardInterrupt):  # pressed again: it ends as soon as it can
                worker.process.join(max(0.0, end - time.monotonic()))
            if worker.process.is_alive():
                worker.process.kill()
                worker.process.join()
        for listening in self._sockets:
            listening.close()


def _last_words(worker: _Worker) -> str:
    """In brackets, the error with which a worker that was started later ended."""
    with suppress(EOFError, OSError):
        while worker.reports.poll():
            report = worker.reports.recv()
            if isinstance(report, str):
                return f" ({report})"
    return ""


def _started(worker: _Worker) -> Started:
    """What a worker reports when it answers.

    Raises:
        ParagramError: it could not start.
    """
    try:
        report = worker.reports.recv()
    except EOFError:
        worker.process.join()
        seen = f"a worker ended with status {worker.process.exitcode} before it answered"
        raise ParagramError(f"{seen}; start one without --workers to see why") from None
    if isinstance(report, str):
        raise ParagramError(report)
    return report  # type: ignore[no-any-return]


def _work(job: Job, listening: socket.socket, reports: Connection) -> None:
    """Serve until SIGINT or SIGTERM, or until the parent process is gone.

    Args:
        job: what is served.
        listening: where.
        reports: gets `Started` when requests are answered, or the message of the error that forbids it.
    """
    logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stderr)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    threading.Thread(target=_follow_parent, daemon=True).start()
    try:
        from st_paragram.tools.serving.run import serve

        serve(job, listening, lambda served: reports.send(Started(served.name, served.dimension)))
    except ParagramError as error:
        reports.send(str(error))
    except KeyboardInterrupt:  # while the model was loaded
        pass


def _follow_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os.kill(os.getpid(), signal.SIGTERM)
