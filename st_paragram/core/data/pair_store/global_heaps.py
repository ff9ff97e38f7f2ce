"""The heaps in which an HDF5 file keeps texts, looked at before libhdf5 does.

libhdf5 2.0 walks through a heap for ever where an object of it says that it has no size, as in a block of zeros.
Source: HDF5 File Format Specification, version 3.0, III.E, "Global Heap".
"""

from __future__ import annotations

import mmap
import struct
from collections.abc import Iterable
from pathlib import Path

from st_paragram.core.data.pair_store.mapped_file import Extent

_BEGIN = b"GCOL\x01\0\0\0"
_HEAD = struct.Struct("<8sQ")  # of a heap: how it begins, and its size
_OBJECT = struct.Struct("<HHIQ")  # of an object: its number, references, nothing, and its size
_FREE = 0  # the number of what is not in use, whose size counts its head


def check_heaps(path: Path, arrays: Iterable[Extent]) -> None:
    """Look through a file for heaps, and whether their objects have sizes that fit.

    Args:
        path: of an HDF5 file with addresses and sizes of 64 bits.
        arrays: places of the file in which there are no heaps; the less is left the faster.

    Raises:
        ValueError: a heap is damaged.
    """
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        begin = 0
        for array in sorted(arrays, key=lambda each: each.position):
            _check_between(data, begin, min(array.position, len(data)))
            begin = max(begin, array.end)
        _check_between(data, begin, len(data))


def _check_between(data: mmap.mmap, begin: int, end: int) -> None:
    while begin < end and (begin := data.find(_BEGIN, begin, end)) >= 0:
        begin = _check_heap(data, begin)


def _check_heap(data: mmap.mmap, begin: int) -> int:
    """Walk through a heap; returns where it ends."""
    place, end = begin + _HEAD.size, begin + _HEAD.unpack(data[begin : begin + _HEAD.size].ljust(_HEAD.size))[1]
    if not place <= end <= len(data):
        raise ValueError("a heap of texts ends beyond the file")
    while end - place >= _OBJECT.size:
        number, _, _, size = _OBJECT.unpack_from(data, place)
        place += size if number == _FREE else _OBJECT.size + -(-size // 8) * 8
        if place > end or (number == _FREE and size < _OBJECT.size):
            raise ValueError("a heap of texts is damaged")
    return end
