"""How many threads are available to a library that ends the process where it cannot have them.

sentencepiece starts threads for every list of texts. An exception that it meets then, or in one of them, cannot be
caught by anybody, so it must be asked before whether there is room for them.
"""

from __future__ import annotations

import functools
import mmap
import os

from st_paragram.core.native import kernels
from st_paragram.errors import SettingsError

# What a thread takes of the address space, as a rule, which a limit (ulimit -v) counts whether it is used or not: a
# stack, and what glibc sets aside for its allocations, twice as much for a moment. A thread that finds no room for the
# latter takes a page for every small thing.
_STACK = 8 << 20
_HEAP = 64 << 20


def granted(threads: int, size: int = 0) -> int:
    """The number of threads, or half of it, or a quarter, ...: the largest for which there is room; 0 if there is none.

    Args:
        threads: as many as are wanted. They are tried once in a process, by the compiled kernels.
        size: bytes that they allocate, all together.
    """
    while threads > 0 and not (_fits(threads * (_STACK + _HEAP) + _HEAP + size) and _start(os.getpid(), threads)):
        threads //= 2
    return threads


def _fits(size: int) -> bool:
    """Whether the address space has room; nothing is put there."""
    if not hasattr(mmap, "MAP_ANONYMOUS"):
        return True
    try:
        mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, prot=0).close()
    except OSError:
        return False
    return True


@functools.cache
def _start(process: int, threads: int) -> bool:
    """Whether threads can be started; `process` distinguishes a forked process, which may have other limits."""
    try:
        if (native := kernels()) is not None:
            native.try_threads(threads)
    except (SettingsError, MemoryError):
        return False
    return True
