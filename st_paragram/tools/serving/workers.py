"""Worker processes that have to start: uvicorn restarts processes that cannot start forever."""

from __future__ import annotations

import logging
import socket
import time
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.connection import wait
from pathlib import Path

from uvicorn import Config
from uvicorn.supervisors import Multiprocess
from uvicorn.supervisors.multiprocess import Process

logger = logging.getLogger(__name__)

START_SECONDS = 300.0  # until all processes answer
MAX_FAILURES = 3  # replacements that ended before they answered, one after another
FAILURE = "failure.txt"  # file in which a worker process writes why it cannot start


class Workers(Multiprocess):
    """Worker processes on the same sockets.

    Attributes:
        failure: Why they do not run; None while they do.
    """

    def __init__(
        self,
        config: Config,
        sockets: list[socket.socket],
        folder: Path,
        started: Callable[[], None],
    ) -> None:
        """`folder` is for `FAILURE`; `started` is called when all processes answer."""
        super().__init__(config, sockets)
        self.folder = folder
        self.started = started
        self.failure: str | None = None
        self.failures = 0
        self.ready: set[int | None] = set()  # process ids

    def init_processes(self) -> None:
        """Start the processes, and wait until they answer."""
        try:
            super().init_processes()
        except OSError as error:
            self._fail(f"a process cannot be started ({error.strerror or error})")
        end = time.monotonic() + START_SECONDS
        while not self.should_exit.is_set():
            self.handle_signals()
            for process in self.processes:
                self._look_at(process)
                if not process.process.is_alive():
                    process.join()
                    self._fail(_end_of(process))
            if len(self.ready) == self.processes_num:
                self.started()
                return
            if time.monotonic() > end:
                self._fail(f"it did not answer within {START_SECONDS:.0f} seconds")
            time.sleep(0.05)

    def keep_subprocess_alive(self) -> None:
        """Replace processes that ended or do not answer, unless their replacements cannot start."""
        for place, process in enumerate(self.processes):  # first, since an answer may take long
            if not process.process.is_alive():
                self._replace(place, process)
        for place, process in enumerate(self.processes):
            if self.should_exit.is_set():
                return
            if _answers(process, self.config.timeout_worker_healthcheck):
                self._look_at(process)
            else:
                self._replace(place, process)

    def _replace(self, place: int, process: Process) -> None:
        if self.should_exit.is_set():
            return
        ended = not process.process.is_alive()
        process.kill()
        process.join()
        reason = _end_of(process) if ended else "it did not answer"
        if process.pid not in self.ready:
            self.failures += 1
            if self.failures == MAX_FAILURES:
                self._fail(reason)
                return
        logger.warning(f"worker process {process.pid} is replaced: {reason}")
        self.processes[place] = Process(self.config, self.sockets)
        self.processes[place].start()

    def _look_at(self, process: Process) -> None:
        if process.pid in self.ready or not process.process.is_alive():
            return
        if process.is_ready(timeout=0.2):
            self.ready.add(process.pid)
            self.failures = 0

    def _fail(self, reason: str) -> None:
        """Stop all processes; a reason that a worker wrote is better than what is known here."""
        if self.failure is None:
            path = self.folder / FAILURE
            written = path.read_text(encoding="utf-8") if path.is_file() else ""
            self.failure = written or f"{reason}; --workers 1 may show why"
            self.should_exit.set()


def _answers(process: Process, seconds: float) -> bool:
    """Whether a process answers in time; unlike uvicorn, do not wait for a process that ended."""
    with suppress(OSError, EOFError):  # its pipe is closed
        process.parent_conn.send(b"ping")
        ready = wait([process.parent_conn, process.process.sentinel], seconds)
        if process.process.sentinel in ready:
            process.process.join(timeout=1)  # for its exit status, which may come a little later
            return False
        if process.parent_conn in ready:
            process.parent_conn.recv()
            return True
    return False


def _end_of(process: Process) -> str:
    status = process.exitcode
    if status is not None and status < 0:
        return f"signal {-status} ended it (was memory short?)"
    return f"it ended with status {status}"
