"""Memory for large tables in huge pages of the operating system.

Rows of an embedding table are read in random order: with pages of 4 KB, most rows need a walk
through the page tables before they can be read. With pages of 2 MB, the processor's address caches
cover the whole table.
"""

from __future__ import annotations

import ctypes
import math
import mmap

import torch
from torch import Tensor

_PAGE = 1 << 21  # bytes of a huge page


def empty(shape: tuple[int, ...], dtype: torch.dtype = torch.float32) -> Tensor:
    """Like `torch.empty` on the CPU; large tensors are in huge pages if the platform has them."""
    count = math.prod(shape)
    size = count * dtype.itemsize
    if size < 2 * _PAGE or not hasattr(mmap, "MADV_HUGEPAGE"):
        return torch.empty(shape, dtype=dtype)
    try:
        # Private: shared memory has no huge pages by default, and a forked process must not change
        # its parent's memory.
        memory = mmap.mmap(-1, size + _PAGE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        memory.madvise(mmap.MADV_HUGEPAGE)
    except OSError:  # no huge pages left, or an operating system without them
        return torch.empty(shape, dtype=dtype)
    start = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    return torch.frombuffer(memory, dtype=dtype, count=count, offset=-start % _PAGE).view(shape)


def copy_of(tensor: Tensor) -> Tensor:
    """Copy a CPU tensor to contiguous memory from `empty`."""
    return empty(tuple(tensor.shape), tensor.dtype).copy_(tensor)
