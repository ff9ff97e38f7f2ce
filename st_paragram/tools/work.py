"""Long work on one machine: a folder that is there until the work is done, and processes that share it."""

from __future__ import annotations

import logging
import os
import shutil
import signal
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing import get_context
from pathlib import Path
from typing import Any, TypeVar

from st_paragram.core.files import locked
from st_paragram.errors import ParagramError, SettingsError

logger = logging.getLogger(__name__)

Item = TypeVar("Item")
Result = TypeVar("Result")
_function: Callable[[Any], Any]  # of a worker process


@contextmanager
def work_folder(folder: Path) -> Iterator[Path]:
    """A folder for unfinished work, which one run at a time may use.

    It is removed when all is done, or when something is refused. After Ctrl-C, a full disk or a killed process there is
    work to go on from, and it stays.
    """
    with locked(folder):
        try:
            yield folder
        except KeyboardInterrupt:
            logger.warning("what is done stays in %s; the same command resumes from there", folder)
            raise
        except ParagramError:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        shutil.rmtree(folder)


def in_processes(function: Callable[[Item], Result], items: Iterable[Item], workers: int) -> Iterator[Result]:
    """Results for all items, in order; at most a few items for each worker are in memory.

    With one worker, all is done in this process. Others are started by "spawn": call this under
    ``if __name__ == "__main__":``.

    Raises:
        ParagramError: A worker was killed, for example because memory ran out.
    """
    if workers < 1:
        raise SettingsError(f"workers is {workers}; it must be at least 1")
    if workers == 1:
        yield from map(function, items)
        return
    pool = ProcessPoolExecutor(workers, get_context("spawn"), initializer=_start, initargs=(os.getpid(), function))
    pending: deque[Future[Result]] = deque()
    try:
        for item in items:
            pending.append(pool.submit(_call, item))
            if len(pending) > 2 * workers:
                yield pending.popleft().result()
        while pending:
            yield pending.popleft().result()
    except BrokenProcessPool as error:
        raise ParagramError(
            "a worker process ended unexpectedly: out of memory (use fewer workers), or a script that starts workers "
            'without `if __name__ == "__main__":`'
        ) from error
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _start(parent: int, function: Callable[[Item], Result]) -> None:
    global _function
    _function = function
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent alone answers Ctrl-C and shuts its workers down
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()


def _call(item: Any) -> Any:  # noqa: ANN401 - whatever the function takes and gives
    return _function(item)


def _end_with(parent: int) -> None:
    """End this process when its parent is gone: a killed parent cannot notify its workers."""
    while os.getppid() == parent:
        time.sleep(1)
    os._exit(1)
