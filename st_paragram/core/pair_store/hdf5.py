"""What pair stores use of HDF5, asked of h5py.

An HDF5 file can make its reader open other files (links, external storage, virtual data sets) and load code (filters).
A store needs none of that, so a file that has it is refused here, before anything is read through it. All functions
raise one of `UNREADABLE` where a file has something else than is asked for.
"""

from __future__ import annotations

import mmap
import struct
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import h5py
import numpy as np
from h5py import h5d, h5l, h5t

from st_paragram.errors import DAMAGED, short

#: What h5py, and the readers of what is inside, raise where a file is damaged.
UNREADABLE = (*DAMAGED, MemoryError)

_HEAP = b"GCOL\x01\0\0\0"  # how a heap of texts begins; its size follows
_OBJECT = struct.Struct("<H6xQ")  # of an object in a heap: its number, 0 for what is free, and its size

T = TypeVar("T", str, int, bool)


class Extent(NamedTuple):
    """A contiguous array in a file: where it begins, in bytes, the type of its numbers, and how many there are."""

    position: int
    dtype: np.dtype[Any]
    length: int

    @property
    def end(self) -> int:
        """The byte behind it."""
        return self.position + self.dtype.itemsize * self.length


def dataset(file: h5py.File, name: str) -> h5py.Dataset | None:
    """The data set of a name like "a/ids", or None if there is none; links to other places are not followed."""
    place = file
    for part in name.split("/"):
        if not isinstance(place, h5py.Group):
            raise ValueError(f"there is no group for {name}")
        if not place.id.links.exists(part.encode()):
            return None
        if place.id.links.get_info(part.encode()).type != h5l.TYPE_HARD:
            raise ValueError(f"{part} is a link to another place")
        place = place[part]
    if not isinstance(place, h5py.Dataset):
        raise ValueError(f"{name} is not a data set")
    return place


def extent(data: h5py.Dataset, name: str, types: Collection[str]) -> Extent:
    """The place of a list of numbers that the file itself holds in one piece and as numpy has it in memory.

    Args:
        data: the data set.
        name: of the data set.
        types: of numpy's, which the numbers may have.
    """
    layout = data.id.get_create_plist()
    if layout.get_layout() != h5d.CONTIGUOUS or layout.get_external_count() or layout.get_nfilters():
        raise ValueError(f"{name} is not contiguous: chunked, compressed, virtual or in another file")
    shape, dtype = data.shape, data.dtype
    if shape is None or len(shape) != 1 or dtype not in map(np.dtype, types):
        raise ValueError(f"{name} has the type {dtype.str} and shape {shape}; it must be a list of {', '.join(types)}")
    if not data.id.get_type().equal(h5t.py_create(dtype)):
        raise ValueError(f"{name} has a type that is not plain {dtype}")
    position = data.id.get_offset() if shape[0] else 0
    if position is None:
        raise ValueError(f"{name} has no place in the file")
    return Extent(int(position), dtype, int(shape[0]))


def attribute(place: h5py.Group | h5py.Dataset, name: str, kind: type[T]) -> T:
    """A text, a whole number or a truth value among the attributes."""
    value = place.attrs[name]
    value = value.item() if isinstance(value, np.generic) else value
    if type(value) is not kind:
        raise ValueError(f"the attribute {name} is {short(value)}, not of the type {kind.__name__}")
    return as_utf8(value) if isinstance(value, str) else value


def as_utf8(text: str) -> str:
    """A text with a question mark for what UTF-8 cannot hold: lone surrogates, as in names of files in other codes."""
    return text.encode("utf-8", "replace").decode("utf-8")


def check_heaps(path: Path, arrays: Iterable[Extent]) -> None:
    """Look through the heaps in which a file keeps texts, before any text is read.

    libhdf5 (2.0 and before) never returns from a heap in which free space has the size 0, as in a block of zeros.
    Everything else that is wrong with a heap it refuses itself.
    Source: HDF5 File Format Specification, version 3.0, III.E, "Global Heap".

    Args:
        path: of an HDF5 file with addresses and sizes of 64 bits.
        arrays: places of the file in which there are no heaps.

    Raises:
        ValueError: there is such a heap.
    """
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        begin = 0
        for array in (*sorted(arrays, key=lambda each: each.position), Extent(len(data), np.dtype("u1"), 0)):
            while (begin := data.find(_HEAP, begin, max(begin, array.position))) >= 0:
                _check_heap(data, begin)
                begin += len(_HEAP)
            begin = array.end


def _check_heap(data: mmap.mmap, place: int) -> None:
    """Walk through a heap as libhdf5 does, from its beginning."""
    end = min(place + int.from_bytes(data[place + 8 : place + 16], "little"), len(data))
    place += 16
    while end - place >= _OBJECT.size:
        number, size = _OBJECT.unpack_from(data, place)
        if not (number or size):
            raise ValueError("a heap of texts is damaged")
        place += _OBJECT.size + -(-size // 8) * 8 if number else size
