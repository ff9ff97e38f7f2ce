"""The types of numbers that embeddings are stored in, and how embeddings are rounded to them and read back."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from st_paragram.errors import ParagramError, SettingsError

_LARGEST = 127  # of the integers in use; -128 has no counterpart
_BLOCK = 1 << 10  # rows rounded at a time: they stay in the cache

#: What the scales of int8 embeddings mean, for the description of a collection.
SCALE_MEANING = "embedding = integers * scale, with one float32 scale for each row: its largest absolute value / 127"


class NumberType(str, Enum):
    """Types of the numbers on disk."""

    FLOAT32 = "float32"
    FLOAT16 = "float16"
    INT8 = "int8"


@dataclass(frozen=True)
class Packed:
    """Embeddings as they are stored.

    Attributes:
        numbers: float32, float16 or int8 (n, D).
        scales: float32 (n,) if the numbers are int8, otherwise None.
    """

    numbers: NDArray[Any]
    scales: NDArray[np.float32] | None = None


def pack(rows: NDArray[np.float32], kind: NumberType, where: str, first: int) -> Packed:
    """Round embeddings to what is stored.

    int8 is symmetric: the largest component of a row, in absolute value, becomes 127, and the scale of the row is that
    component divided by 127. A row of zeros has the scale 0.

    Args:
        rows: float32 (n, D).
        kind: The type of the result.
        where: What was embedded, for messages.
        first: The number of the first line, for messages.

    Raises:
        ParagramError: An embedding is not finite.
        SettingsError: A component is too large for float16.
    """
    line = _first_that_is_not_finite(rows, first)
    if line is not None:
        seen = f"{where}: the embedding of line {line} is not finite"
        raise ParagramError(f"{seen}; the model is damaged or was not trained properly, take another")
    if kind is NumberType.FLOAT32:
        return Packed(rows)
    if kind is NumberType.FLOAT16:
        with np.errstate(over="ignore"):
            halves = rows.astype(np.float16)
        line = _first_that_is_not_finite(halves, first)
        if line is not None:
            seen = f"{where}: the embedding of line {line} has components above 65,504, which float16 cannot hold"
            raise SettingsError(f"{seen}; choose float32 or int8, or normalise the embeddings")
        return Packed(halves)
    return _to_int8(rows)


def _to_int8(rows: NDArray[np.float32]) -> Packed:
    integers, scales = np.empty(rows.shape, np.int8), np.empty(len(rows), np.float32)
    for begin in range(0, len(rows), _BLOCK):
        block = rows[begin : begin + _BLOCK]
        scale = np.abs(block).max(axis=1) / np.float32(_LARGEST)
        divisor = np.where(scale > 0, scale, np.float32(1))  # a row stays zero where its scale is too small to be one
        integers[begin : begin + _BLOCK] = np.clip(np.rint(block / divisor[:, None]), -_LARGEST, _LARGEST)
        scales[begin : begin + _BLOCK] = scale
    return Packed(integers, scales)


def unpack(packed: Packed) -> NDArray[np.float32]:
    """The embeddings that were stored, float32 (n, D), in memory of their own."""
    rows: NDArray[np.float32] = packed.numbers.astype(np.float32)
    if packed.scales is not None:
        rows *= packed.scales[:, None]
    return rows


def _first_that_is_not_finite(rows: NDArray[Any], first: int) -> int | None:
    """The number of the line whose embedding is not finite."""
    bad = np.flatnonzero(~np.isfinite(rows).all(axis=1))
    return first + int(bad[0]) if len(bad) else None
