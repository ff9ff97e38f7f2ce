"""How many threads a search uses, where processes share a machine."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from threadpoolctl import threadpool_limits

from st_paragram.core.threads import usable_threads

_most: ContextVar[int | None] = ContextVar("_most", default=None)


def threads() -> int:
    """Threads for the compiled kernels: as many as `OMP_NUM_THREADS` says, or fewer within `at_most`."""
    most = _most.get()
    return usable_threads() if most is None else min(most, usable_threads())


@contextmanager
def at_most(count: int) -> Iterator[None]:
    """Let the kernels, NumPy's products and faiss, if it is imported already, use so many threads at most."""
    if count >= usable_threads():
        yield
        return
    token = _most.set(count)
    try:
        with threadpool_limits(count):
            yield
    finally:
        _most.reset(token)
