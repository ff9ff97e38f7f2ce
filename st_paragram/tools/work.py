"""Long work on one machine: resuming interrupted runs, and worker processes.

A command resumes by three rules. All its intermediate results are in one folder of ours,
`work_folder`. `make` gives a file its name when the file is complete. The name has a digest of
everything that affects the content. So a file that exists need not be made again.
"""

from __future__ import annotations

import logging
import os
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

from st_paragram.core.files import (
    digest,
    is_full_disk,
    missing_folder,
    naming_full_disk,
    not_writable,
)
from st_paragram.core.folders import MARKER, make_own_folder, remove_own_folder, remove_unfinished
from st_paragram.core.outputs import check_output, locked, output_lock
from st_paragram.errors import ParagramError, SettingsError, StoreError

logger = logging.getLogger(__name__)

Item = TypeVar("Item")
Result = TypeVar("Result")
_function: Callable[[Any], Any]  # function of a worker process


def work_place(output: Path, folder: Path | None = None, keep: bool = False) -> Path:
    """Return the path of the work folder, see `work_folder`."""
    if folder is None:
        return output.with_name(f".{output.name}.work")
    if keep:
        return folder / "st_paragram.work"
    # outputs may have the same name
    return folder / f"{output.name}.{digest(str(output.resolve()))[:8]}.work"


@contextmanager
def work_folder(
    output: Path,
    overwrite: bool = False,
    folder: Path | None = None,
    keep: bool = False,
    check: Callable[[], None] | None = None,
) -> Iterator[Path]:
    """Give a work folder of ours, and lock it and the output for this run.

    The work folder is removed when the work is complete or cannot be completed. It stays if the
    same command, perhaps with other settings, may resume from it: after Ctrl-C, a full disk, or a
    `SettingsError` or `StoreError` with work done.

    Args:
        output: Output of the command.
        overwrite: Replace an existing output file.
        folder: Folder of the user in which the work folder is made; nothing else in it is touched.
            None: the work folder is hidden next to the output.
        keep: The work folder in `folder` is for all outputs, and always stays.
        check: Function that refuses unusable outputs, in place of `check_output`.
    """
    with output_lock(output, check or partial(check_output, output, overwrite)):
        place = work_place(output, folder, keep)
        refusal = not_writable(place)
        if folder:
            refusal = refusal or missing_folder(folder)
        if refusal:
            raise ParagramError(refusal)
        if not keep:
            remove_unfinished(place.parent, place.name)
        make_own_folder(place)
        ended = True
        with locked(place):
            try:
                with naming_full_disk(place):
                    yield place
            except BaseException as error:
                ended = _is_useless(place, error)
                if not ended and isinstance(error, KeyboardInterrupt | SettingsError | StoreError):
                    logger.warning(
                        "completed work is kept in %s; the same command resumes from there", place
                    )
                raise
            finally:
                if ended and not keep:
                    remove_own_folder(place)


def _is_useless(place: Path, error: BaseException) -> bool:
    """Whether no run can resume from the work that an error ended."""
    # another setting or place for the output may help
    if isinstance(error, SettingsError | StoreError):
        files = (path for path in place.rglob("*") if path.is_file() and path.name != MARKER)
        return not any(path.stat().st_size for path in files)
    return isinstance(error, ParagramError) and not is_full_disk(error)


def make(path: Path, write: Callable[[Path], object]) -> Path:
    """Make a file or a folder unless it exists, and return its path.

    `write` gets a path in a temporary folder. What it wrote there moves to `path` when it has
    returned, so an existing file or folder is complete.
    """
    if path.exists():
        return path
    part = path.with_name(f".{path.name}.part")
    path.parent.mkdir(parents=True, exist_ok=True)
    remove_own_folder(part)  # from a killed run
    make_own_folder(part)
    try:
        with naming_full_disk(path):
            write(part / path.name)
        (part / path.name).replace(path)
    finally:
        remove_own_folder(part)
    return path


@contextmanager
def in_processes(
    function: Callable[[Item], Result], workers: int
) -> Iterator[Callable[[Iterable[Item]], Iterator[Result]]]:
    """Provide a map over items in worker processes.

    Results come in order, and only a few items per worker are in memory. With one worker,
    everything is done in this process. More workers are started by "spawn": call this under
    ``if __name__ == "__main__":``.
    """
    if workers < 1:
        raise SettingsError(f"workers is {workers}; it must be at least 1")
    if workers == 1:
        yield partial(map, function)
        return
    pool = ProcessPoolExecutor(
        workers, get_context("spawn"), initializer=_start, initargs=(function,)
    )

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
            "a worker process ended unexpectedly: out of memory (use fewer workers), or a script"
            ' that starts workers without `if __name__ == "__main__":`'
        ) from error
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _start(function: Callable[[Any], Any]) -> None:
    global _function
    _function = function
    # only the parent handles Ctrl-C and shuts down its workers
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    Thread(target=end_with_parent, daemon=True).start()


def _call(item: Any) -> Any:
    return _function(item)


def end_with_parent() -> None:
    """End this worker process when its parent ends; runs in a thread."""
    parent_process().join()  # type: ignore[union-attr] # a killed parent cannot notify its workers
    os._exit(1)
