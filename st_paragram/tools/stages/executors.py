"""Who does the tasks of a stage: this process, or processes of this machine."""

from __future__ import annotations

import logging
import os
import signal
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from multiprocessing import get_context
from typing import Protocol

from tqdm import tqdm

from st_paragram.errors import ParagramError, SettingsError
from st_paragram.tools.stages.stage import Stage

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class StageTime:
    """How long a stage took.

    Attributes:
        name: Of the stage.
        tasks: That had to be done; the others were done already.
        seconds: Of wall time.
    """

    name: str
    tasks: int
    seconds: float


class Executor(Protocol):
    """Does all tasks of stages that are not done, stage by stage."""

    @property
    def workers(self) -> int:
        """Processes that work at once."""

    def run(self, stages: Sequence[Stage]) -> list[StageTime]:
        """Return when all is done, with the time that each stage took.

        Raises:
            ParagramError: What a task raises, or a word on tasks that were not done.
        """


@dataclass(frozen=True)
class LocalExecutor:
    """Processes of this machine.

    Attributes:
        workers: Processes, started by "spawn": call this under ``if __name__ == "__main__":``. 1 does everything in
            this process.
    """

    workers: int = 1

    def __post_init__(self) -> None:
        """Check the number of workers."""
        if self.workers < 1:
            raise SettingsError(f"workers is {self.workers}; it must be at least 1")

    def run(self, stages: Sequence[Stage]) -> list[StageTime]:
        """Do all tasks; after Ctrl-C or an error those that were begun are ended first.

        Raises:
            ParagramError: What a task raises, or that a worker process died.
        """
        if self.workers == 1:
            return [_timed(stage, None) for stage in stages]
        arguments = (os.getpid(),)
        pool = ProcessPoolExecutor(self.workers, get_context("spawn"), initializer=_start_worker, initargs=arguments)
        try:
            return [_timed(stage, pool) for stage in stages]
        except BrokenProcessPool as error:
            raise ParagramError(
                "a worker process ended unexpectedly: out of memory (use fewer workers), or a script that starts "
                'workers without `if __name__ == "__main__":`'
            ) from error
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


def _timed(stage: Stage, pool: ProcessPoolExecutor | None) -> StageTime:
    started = time.perf_counter()
    pending = stage.pending()
    with tqdm(total=len(pending), desc=stage.name, unit=" tasks", disable=None, leave=False) as progress:
        for _ in _do(stage, pending, pool):
            progress.update()
    return StageTime(stage.name, len(pending), time.perf_counter() - started)


def _do(stage: Stage, pending: Sequence[int], pool: ProcessPoolExecutor | None) -> Iterator[None]:
    """Do tasks, and yield after each."""
    elsewhere = [task for task in pending if not stage.local(task)] if pool and len(pending) > 1 else []
    futures = [pool.submit(stage.run, task) for task in elsewhere] if pool else []
    try:
        for task in sorted(set(pending) - set(elsewhere)):
            stage.run(task)
            yield
        for future in as_completed(futures):
            future.result()
            yield
    finally:
        for future in futures:
            future.cancel()


def _start_worker(parent: int) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent alone answers Ctrl-C and shuts its workers down
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()


def _end_with(parent: int) -> None:
    """End this process when its parent is gone: a killed parent cannot notify its workers."""
    while os.getppid() == parent:
        time.sleep(1)
    os._exit(1)
