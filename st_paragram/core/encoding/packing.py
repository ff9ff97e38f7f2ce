"""Vectors in fewer bytes: how they are rounded to float16 or int8, and read back.

int8 is symmetric: the largest component of a row, in absolute value, becomes 127, and the scale of the row is that
component divided by 127.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from st_paragram.errors import SettingsError

Vectors = NDArray[np.float32]

#: What `encode(..., precision=...)` of sentence-transformers takes.
PRECISIONS = ("float32", "int8", "uint8", "binary", "ubinary")
#: Rows converted at a time: they stay in the cache, and no second matrix of float32 is in memory.
BLOCK = 1 << 10

_LARGEST = 127  # of the int8 numbers in use; -128 has no counterpart
_STEPS = 255  # of a component's range in `quantize`


class NumberType(str, Enum):
    """Types of stored numbers."""

    FLOAT32 = "float32"
    FLOAT16 = "float16"
    INT8 = "int8"


@dataclass(frozen=True, eq=False)
class Packed:
    """Vectors as they are stored; row i stands for `numbers[i]` or `numbers[i] * scales[i]`."""

    numbers: NDArray[Any]  # float32, float16 or int8 (n, D)
    scales: NDArray[np.float32] | None = None  # (n,) if the numbers are int8

    def __len__(self) -> int:
        """Number of rows, n."""
        return len(self.numbers)

    def __getitem__(self, rows: Any) -> Packed:  # noqa: ANN401 - whatever indexes an array
        """Some of the rows."""
        return Packed(self.numbers[rows], None if self.scales is None else self.scales[rows])


def pack(rows: Packed, kind: NumberType) -> Packed:
    """Store rows (n, D), finite, in another type; what is of this type already is returned as it is.

    A row of zeros, or of numbers so small that their scale is zero, becomes zeros in int8. Components above 65,504
    become infinite in float16, which the caller must look for.
    """
    if rows.numbers.dtype == kind.value:
        return rows
    numbers = np.empty(rows.numbers.shape, kind.value)
    scales = np.empty(len(rows), np.float32) if kind is NumberType.INT8 else None
    for begin in range(0, len(rows), BLOCK):
        some = slice(begin, begin + BLOCK)
        block = unpack(rows[some])
        if scales is None:
            with np.errstate(over="ignore"):
                numbers[some] = block
        else:
            scales[some] = np.abs(block).max(axis=1, initial=0) / np.float32(_LARGEST)
            numbers[some] = to_int8(block, scales[some])
    return Packed(numbers, scales)


def to_int8(rows: Vectors, scales: NDArray[np.float32]) -> NDArray[np.int8]:
    """Round rows (..., D) by the given scales (...)."""
    divisors = np.where(scales > 0, scales, np.float32(1))[..., None]
    return np.clip(np.rint(rows / divisors), -_LARGEST, _LARGEST).astype(np.int8)


def unpack(packed: Packed, out: Vectors | None = None) -> Vectors:
    """The vectors that were stored, float32 (n, D), in new memory or in an array of this shape."""
    rows = np.empty(packed.numbers.shape, np.float32) if out is None else out
    rows[...] = packed.numbers
    if packed.scales is not None:
        rows *= np.asarray(packed.scales)[..., None]
    return rows


def quantize(vectors: Vectors, precision: str) -> NDArray[Any]:
    """Round embeddings, float32 (n, D), by the formulas of `sentence_transformers.util.quantize_embeddings`.

    For int8 and uint8, each component's range in these vectors is cut into 255 steps, so that vectors of different
    calls cannot be compared. binary and ubinary, (n, ceil(D / 8)), keep one bit of each component: whether it is above
    0.
    """
    if precision == "float32":
        return vectors
    if precision in ("binary", "ubinary"):
        bits = np.packbits(vectors > 0, axis=-1)
        return bits if precision == "ubinary" else (bits.astype(np.int16) - 128).astype(np.int8)
    if len(vectors) == 1:
        raise SettingsError(f"precision {precision} needs several texts, to find the range of each component")
    if not len(vectors):
        return np.zeros(vectors.shape, dtype=precision)
    begin = vectors.min(axis=0)
    step = (vectors.max(axis=0) - begin) / _STEPS
    values = np.clip(np.floor((vectors - begin) / np.where(step == 0, 1, step)), 0, _STEPS)
    return values.astype(np.uint8) if precision == "uint8" else (values - 128).astype(np.int8)
