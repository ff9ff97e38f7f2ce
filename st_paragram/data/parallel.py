"""Map a function over a stream with worker processes: results in order, few items in flight."""

from __future__ import annotations

import signal
from collections import deque
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from typing import TYPE_CHECKING, Any, TypeVar

from st_paragram.errors import ParagramError

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable

Item = TypeVar("Item")
Result = TypeVar("Result")

_function: Callable[[Any], Any] | None = None  # the function of this worker process


def ordered_map(
    function: Callable[[Item], Result], items: Iterable[Item], workers: int, in_flight: int = 2
) -> Generator[Result, None, None]:
    """Yield `function(item)` for each item, in the order of the items.

    Args:
        function: Picklable; sent once to each worker.
        items: Read only as far as the window of items in flight reaches.
        workers: Processes, started by "spawn"; 1 runs everything in this process.
        in_flight: Items waiting or done per worker, which bounds the memory used.

    Raises:
        ParagramError: If a worker process dies; what `function` raises is raised here.
    """
    if workers == 1:
        yield from map(function, items)
        return
    window: deque[Future[Result]] = deque()
    pool = ProcessPoolExecutor(workers, get_context("spawn"), initializer=_start_worker, initargs=(function,))
    try:
        for item in items:
            window.append(pool.submit(_call, item))
            if len(window) >= workers * in_flight:
                yield window.popleft().result()
        while window:
            yield window.popleft().result()
    except BrokenProcessPool as error:
        raise ParagramError(
            "a worker process ended unexpectedly: out of memory (use fewer workers), or a script that starts "
            'workers without `if __name__ == "__main__":`'
        ) from error
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _start_worker(function: Callable[[Any], Any]) -> None:
    global _function
    _function = function
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent alone answers Ctrl-C and shuts its workers down


def _call(item: Any) -> Any:  # noqa: ANN401 - whatever the function takes and gives
    assert _function is not None
    return _function(item)
