"""Whether threads and memory are there for a library that ends the process where they are not.

sentencepiece starts threads for every list of texts; an exception that it meets then, or in one of them, is the end of
the process. Asking before leaves little of that: what other programs take in the same moment.
"""

from __future__ import annotations

import functools
import os

import numpy as np

from st_paragram.native import kernels

_STACK = 8 << 20  # bytes of address space that a thread takes, as a rule


def make_sure_of(threads: int, size: int) -> None:
    """See that threads can be started, and that memory is left for them.

    Args:
        threads: how many at once. They are tried once in a process, by the compiled kernels.
        size: bytes that they need beside their stacks.

    Raises:
        SettingsError: the system does not grant so many threads.
        MemoryError: it does not grant the memory.
    """
    wanted = size + threads * _STACK
    try:
        np.empty(wanted, dtype=np.uint8)  # never written to, hence never more than an entry in a table
    except MemoryError:
        raise MemoryError(
            f"{wanted >> 20:,} MB of memory are not to be had for sentencepiece on {threads} threads; set "
            "OMP_NUM_THREADS to a smaller number, give fewer texts at a time, or allow this process more memory"
        ) from None
    _try_threads(os.getpid(), threads)


@functools.cache
def _try_threads(process: int, threads: int) -> None:
    """Start threads and end them again; `process` tells apart a forked process, which may have other limits."""
    if (native := kernels()) is not None:
        native.try_threads(threads)
