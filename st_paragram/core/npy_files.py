"""Read arrays that may be damaged, or a stranger's: `.npy` and `.npz` files of numbers, never pickled objects.

numpy reads the header of such a file as Python, and believes it. Here the header must name one of the types that are
expected, and the file must have just the bytes that it asks for, before memory is taken or mapped for it.
"""

from __future__ import annotations

import math
import os
import zipfile
import zlib
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from st_paragram.errors import DAMAGED, one_line

_READERS = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}


def map_npy(path: Path, types: Collection[str], dimensions: int) -> NDArray[Any]:
    """Map an array in a `.npy` file for reading.

    Args:
        path: of the file.
        types: that the numbers may have: "float16".
        dimensions: of the array.

    Raises:
        OSError: the file cannot be read.
        ValueError: no such array, or the file has not the bytes that its header asks for; in one line that does not
            name the file.
    """
    with path.open("rb") as file:
        dtype, shape = _header(file, types, dimensions)
        begin, size = file.tell(), os.fstat(file.fileno()).st_size
        _check_size(dtype, shape, size - begin)
        return np.memmap(file, dtype, "r", begin, shape) if size > begin else np.empty(shape, dtype)


def read_npz(path: Path, names: Sequence[str], types: Collection[str], largest_packed: int = 0) -> list[NDArray[Any]]:
    """Read arrays of an `.npz` file that `np.savez` wrote, which does not compress.

    Args:
        path: of the file.
        names: of the arrays.
        types: that the numbers may have.
        largest_packed: Bytes that an array may have which `np.savez_compressed` wrote; 0: no such file is read.

    Raises:
        ValueError: the file cannot be read, or see `map_npy`.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            return [_member(archive, f"{name}.npy", types, largest_packed) for name in names]
    except (zipfile.BadZipFile, zlib.error, *DAMAGED) as error:
        raise ValueError(one_line(error)) from error


def _member(archive: zipfile.ZipFile, name: str, types: Collection[str], largest_packed: int) -> NDArray[Any]:
    info = archive.getinfo(name)
    if info.compress_type != zipfile.ZIP_STORED:
        if not largest_packed:
            raise ValueError(f"{name} is compressed")
        if info.file_size > largest_packed:
            raise ValueError(f"{name} unpacks to {info.file_size:,} bytes, more than {largest_packed:,}")
    with archive.open(info) as file:
        dtype, shape = _header(file, types)
        _check_size(dtype, shape, info.file_size - file.tell())
        return np.frombuffer(file.read(info.file_size), dtype).reshape(shape)


def _header(
    file: IO[bytes], types: Collection[str], dimensions: int | None = None
) -> tuple[np.dtype[Any], tuple[int, ...]]:
    """Type and shape of an array whose header begins here; leaves the file behind it."""
    try:
        shape, columns_first, dtype = _READERS[npy.read_magic(file)](file)
    except Exception as error:  # numpy hands the header to Python's parser, which can raise anything
        raise ValueError(f"no header of an array ({one_line(error)})") from error
    expected = " or ".join(types)
    if dtype not in [np.dtype(name) for name in types]:
        raise ValueError(f"numbers of type {dtype.name} ({dtype.str}) where {expected} is expected")
    if columns_first or dimensions not in (None, len(shape)) or min(shape, default=0) < 0:
        order = "by columns" if columns_first else "by rows"
        raise ValueError(f"an array of shape {shape}, {order}, where {dimensions} dimensions, by rows, are expected")
    return dtype, shape


def _check_size(dtype: np.dtype[Any], shape: tuple[int, ...], size: int) -> None:
    if (wanted := dtype.itemsize * math.prod(shape)) != size:
        raise ValueError(f"{size:,} bytes of numbers where its header asks for {wanted:,}")
