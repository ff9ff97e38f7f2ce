"""Shards as NumPy matrices, which any program can map into memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from st_paragram.core.files import atomic
from st_paragram.core.npy_files import map_npy
from st_paragram.errors import SettingsError
from st_paragram.tools.embed_files.number_types import NumberType, Packed
from st_paragram.tools.embed_files.shard_files import ShardShape, Write, scales_file


def write_header(file: IO[bytes], dtype: NumberType, shape: tuple[int, ...]) -> None:
    """Write the header of a `.npy` file; numpy pads it so that it keeps its size while the number of rows grows."""
    descr = np.dtype(dtype.value).newbyteorder("<").str
    npy.write_array_header_1_0(file, {"descr": descr, "fortran_order": False, "shape": shape})


def little_endian(numbers: NDArray[Any]) -> bytes:
    """The bytes of an array as they stand in a `.npy` file."""
    return np.ascontiguousarray(numbers, numbers.dtype.newbyteorder("<")).tobytes()


@contextmanager
def write_npy(path: Path, shape: ShardShape) -> Iterator[Write]:
    """Open a `.npy` file of shape (n, D), and for int8 a second one of scales, float32 (n,); see `scales_file`."""
    scaled = shape.dtype is NumberType.INT8
    with atomic(path) as file, atomic(scales_file(path)) if scaled else nullcontext() as scales:
        write_header(file, shape.dtype, (shape.rows, shape.dimension))
        if scales:
            write_header(scales, NumberType.FLOAT32, (shape.rows,))

        def write(packed: Packed, _: Sequence[str]) -> None:
            file.write(little_endian(packed.numbers))
            if scales and packed.scales is not None:
                scales.write(little_endian(packed.scales))

        yield write


class NpyShard:
    """A mapped matrix, and the scales of its rows."""

    def __init__(self, path: Path, shape: ShardShape) -> None:
        """Map it.

        Raises:
            OSError: It cannot be read.
            ValueError: It holds something else than it should.
        """
        self._numbers = map_npy(path, [shape.dtype.value], 2)
        if self._numbers.shape != (shape.rows, shape.dimension):
            raise ValueError(f"a matrix of {self._numbers.shape} where {(shape.rows, shape.dimension)} is expected")
        self._scales: NDArray[np.float32] | None = None
        if shape.dtype is NumberType.INT8:
            self._scales = map_npy(scales_file(path), [NumberType.FLOAT32.value], 1)
            if len(self._scales) != shape.rows:
                raise ValueError(f"{len(self._scales)} scales for {shape.rows} rows")

    def take(self, rows: slice | NDArray[Any]) -> Packed:
        """Embeddings of neighbouring rows, or of rows by their numbers."""
        return Packed(self._numbers[rows], None if self._scales is None else self._scales[rows])

    def texts(self, rows: slice) -> list[str]:
        """Refuse: a matrix holds numbers alone.

        Raises:
            SettingsError: Always.
        """
        raise SettingsError("these embeddings stand without their lines; embed with --format parquet --with-text")
