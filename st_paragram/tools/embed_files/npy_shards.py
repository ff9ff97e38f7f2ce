"""Shards as NumPy matrices, which any program can map into memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from st_paragram.core.encoding.packing import NumberType, Packed
from st_paragram.core.files import atomic
from st_paragram.core.npy_files import map_npy
from st_paragram.errors import SettingsError

#: Writes the next vectors of a shard, with the lines that they are of.
Write = Callable[[Packed, Sequence[str]], None]


@dataclass(frozen=True)
class ShardShape:
    """What a shard holds.

    Attributes:
        rows: Vectors, n.
        dimension: Components of each, D.
        dtype: Type of the numbers.
        with_text: Whether the lines are kept with the vectors.
    """

    rows: int
    dimension: int
    dtype: NumberType
    with_text: bool = False


def scales_file(path: Path) -> Path:
    """The file with the scales of the int8 matrix in a `.npy` file."""
    return path.with_name(f"{path.stem}.scales.npy")


def write_header(file: IO[bytes], dtype: str, shape: tuple[int, ...]) -> None:
    """Write the header of a `.npy` file; numpy pads it so that it keeps its size while the number of rows grows."""
    descr = np.dtype(dtype).newbyteorder("<").str
    npy.write_array_header_1_0(file, {"descr": descr, "fortran_order": False, "shape": shape})


def little_endian(numbers: NDArray[Any]) -> bytes:
    """The bytes of an array as in a `.npy` file."""
    return np.ascontiguousarray(numbers, numbers.dtype.newbyteorder("<")).tobytes()


@contextmanager
def write_array(path: Path, dtype: str, shape: tuple[int, ...]) -> Iterator[Callable[[NDArray[Any]], None]]:
    """Open a `.npy` file to be written part by part; it takes its name when the block ends without an error."""
    with atomic(path) as file:
        write_header(file, dtype, shape)

        def write(numbers: NDArray[Any]) -> None:
            file.write(little_endian(numbers))

        yield write


def map_array(path: Path, dtype: str, shape: tuple[int, ...]) -> NDArray[Any]:
    """Map a `.npy` file of one type and shape.

    Raises:
        OSError: It cannot be read.
        ValueError: It holds something else.
    """
    found = map_npy(path, [dtype], len(shape))
    if found.shape != shape:
        raise ValueError(f"an array of shape {found.shape} where {shape} is expected")
    return found


@contextmanager
def write_npy(path: Path, shape: ShardShape) -> Iterator[Write]:
    """Open a `.npy` file of shape (n, D), and for int8 a second one of scales, float32 (n,); see `scales_file`."""
    scaled = shape.dtype is NumberType.INT8
    scales_shard = write_array(scales_file(path), "float32", (shape.rows,)) if scaled else nullcontext()
    with write_array(path, shape.dtype.value, (shape.rows, shape.dimension)) as numbers, scales_shard as scales:

        def write(packed: Packed, _: Sequence[str]) -> None:
            numbers(packed.numbers)
            if scales and packed.scales is not None:
                scales(packed.scales)

        yield write


class NpyShard:
    """A mapped matrix, and the scales of its rows."""

    def __init__(self, path: Path, shape: ShardShape) -> None:
        """Map it; raises as `map_array`."""
        numbers = map_array(path, shape.dtype.value, (shape.rows, shape.dimension))
        scaled = shape.dtype is NumberType.INT8
        self._packed = Packed(numbers, map_array(scales_file(path), "float32", (shape.rows,)) if scaled else None)

    def take(self, rows: slice | NDArray[Any]) -> Packed:
        """Neighboring rows, or rows by their numbers."""
        return self._packed[rows]

    def texts(self, rows: slice) -> list[str]:
        """Refuse: a matrix holds numbers alone.

        Raises:
            SettingsError: Always.
        """
        raise SettingsError("these embeddings have no lines; embed with --format parquet --with-text")
