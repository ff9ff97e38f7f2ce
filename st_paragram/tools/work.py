"""Long work on one machine: work folders from which interrupted runs are resumed, and worker processes."""

from __future__ import annotations

import logging
import os
import shutil
import signal
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from functools import partial
from multiprocessing import get_context, parent_process
from pathlib import Path
from threading import Thread
from typing import Any, TypeVar

from st_paragram.core.files import check_output, locked, output_lock
from st_paragram.errors import ParagramError, SettingsError

logger = logging.getLogger(__name__)

Item = TypeVar("Item")
Result = TypeVar("Result")
_function: Callable[[Any], Any]  # function of a worker process


@contextmanager
def work_folder(
    output: Path,
    overwrite: bool = False,
    folder: Path | None = None,
    keep: bool = False,
    check: Callable[[], None] | None = None,
) -> Iterator[Path]:
    """Give a work folder, by default hidden next to the output, and lock it and the output for this run.

    Unless it must be kept, it is removed when the work is complete, or after a `ParagramError`, when the work cannot be
    completed. After other errors, such as a full disk or Ctrl-C, it is kept, and the same run resumes from it. `check`
    refuses unusable outputs in place of `check_output`, which refuses an existing file without `overwrite`.
    """
    place, ended = folder or output.with_name(f".{output.name}.work"), True
    with output_lock(output, check or partial(check_output, output, overwrite)), locked(place):
        try:
            yield place
        except BaseException as error:
            ended = isinstance(error, ParagramError)
            if isinstance(error, KeyboardInterrupt):
                logger.warning("completed work is kept in %s; the same command resumes from there", place)
            raise
        finally:
            if ended and not keep:
                shutil.rmtree(place, ignore_errors=True)


def make(path: Path, write: Callable[[Path], object]) -> Path:
    """Make a file or a folder unless it exists, and return its path.

    `write` gets another path, next to it and with the same suffix, which takes the name when `write` has returned. So
    an existing file or folder is complete. The name should depend on everything that affects the contents.
    """
    if not path.exists():
        part = path.with_name(f".{path.name}")
        part.parent.mkdir(parents=True, exist_ok=True)
        if part.is_dir():
            shutil.rmtree(part)  # from a killed run
        write(part)
        part.replace(path)
    return path


@contextmanager
def in_processes(
    function: Callable[[Item], Result], workers: int
) -> Iterator[Callable[[Iterable[Item]], Iterator[Result]]]:
    """Provide a map over items in worker processes: results in order, only a few items per worker in memory.

    With one worker, everything is done in this process. More workers are started by "spawn": call this under
    ``if __name__ == "__main__":``.
    """
    if workers < 1:
        raise SettingsError(f"workers is {workers}; it must be at least 1")
    if workers == 1:
        yield partial(map, function)
        return
    pool = ProcessPoolExecutor(workers, get_context("spawn"), initializer=_start, initargs=(function,))

    def results(items: Iterable[Item]) -> Iterator[Result]:
        pending: deque[Future[Result]] = deque()
        for item in items:
            pending.append(pool.submit(_call, item))
            if len(pending) > 2 * workers:
                yield pending.popleft().result()
        while pending:
            yield pending.popleft().result()

    try:
        yield results
    except BrokenProcessPool as error:
        raise ParagramError(
            "a worker process ended unexpectedly: out of memory (use fewer workers), or a script that starts workers "
            'without `if __name__ == "__main__":`'
        ) from error
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _start(function: Callable[[Any], Any]) -> None:
    global _function
    _function = function
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # only the parent handles Ctrl-C and shuts down its workers
    Thread(target=end_with_parent, daemon=True).start()


def _call(item: Any) -> Any:  # noqa: ANN401 - whatever the function takes and gives
    return _function(item)


def end_with_parent() -> None:
    """End this worker process when its parent ends; runs in a thread."""
    parent_process().join()  # type: ignore[union-attr] # a killed parent cannot notify its workers
    os._exit(1)
