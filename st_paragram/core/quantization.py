"""Rounding of vectors to int8 or int4, and back.

Each row of integers has a scale. In int8, it is the row's largest absolute component divided by
127. In int4, it is the scale with the least squared error; the lower four bits of byte j are
component 2j and the upper four are 2j + 1, in two's complement. Rounding gives -7 to 7; -8 can be
read.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from st_paragram.core.arrays import Vectors
from st_paragram.errors import SettingsError

#: The values of `precision` in sentence-transformers' `encode`.
PRECISIONS = ("float32", "int8", "uint8", "binary", "ubinary")

# The largest integers; their negative counterparts are the smallest.
_LARGEST = 127
_LARGEST_INT4 = 7
# Candidates for the largest int4 value, as shares of the largest component; larger components are
# clipped. With these, the squared error of p-sp-mini is a quarter below that of 1 alone, and half a
# percent above that of steps of 0.005.
_SHARES = np.linspace(0.5, 1, 11, dtype=np.float32)
_SMALLEST = np.float32(1e-25)  # smaller scales become 0: kernels divide them by 2^28


def int8_scales(rows: Vectors) -> Vectors:
    """Compute the scales (n,) of rows (n, D)."""
    scales: Vectors = np.abs(rows).max(axis=1, initial=0) / np.float32(_LARGEST)
    return scales


def to_int8(rows: Vectors, scales: Vectors) -> NDArray[np.int8]:
    """Round rows (..., D) by the given scales (...)."""
    divisors = np.where(scales > 0, scales, np.float32(1))[..., None]
    return np.clip(np.rint(rows / divisors), -_LARGEST, _LARGEST).astype(np.int8)


def check_even(dimension: int) -> None:
    """Refuse an odd number of dimensions, since int4 stores two per byte."""
    if dimension % 2:
        raise SettingsError(
            f"int4 stores two dimensions per byte, but the table has {dimension}; choose an even"
            " number"
        )


def to_int4(rows: Vectors) -> tuple[NDArray[np.uint8], Vectors]:
    """Round rows (n, D), finite, D even: uint8 (n, D / 2), and scales (n,).

    For given integers q, the best scale of a row x is xq / qq. The squared error is then
    xx - (xq)^2 / qq. Scales have 20 bits of precision: their products with 4-bit integers are
    exact, so that means are the same on every processor.
    """
    steps = np.abs(rows).max(axis=1, initial=0) / np.float32(_LARGEST_INT4)
    steps[steps < _SMALLEST] = 0
    units = rows / np.where(steps > 0, steps, np.float32(np.inf))[:, None]
    numbers = np.zeros(rows.shape, np.int8)
    scales = np.zeros(len(rows), np.float32)
    explained = np.zeros(len(rows), np.float32)
    for share in _SHARES:
        candidates = np.clip(np.rint(units / share), -_LARGEST_INT4, _LARGEST_INT4)
        products = np.einsum("nd,nd->n", units, candidates)
        squares = np.einsum("nd,nd->n", candidates, candidates)
        factors = products / np.maximum(squares, 1)
        gains = products * factors
        better = gains > explained
        explained[better] = gains[better]
        numbers[better] = candidates[better]
        scales[better] = factors[better] * steps[better]
    bits: NDArray[np.uint8] = numbers.view(np.uint8) & np.uint8(15)
    packed = bits[:, ::2] | bits[:, 1::2] << np.uint8(4)
    rounded = (scales.view(np.uint32) + np.uint32(8)) & np.uint32(0xFFFFFFF0)
    return packed, rounded.view(np.float32)


def from_int4(packed: NDArray[np.uint8]) -> NDArray[np.int8]:
    """Unpack the integers: uint8 (..., D / 2) to int8 (..., D)."""
    signed = packed.view(np.int8)
    pairs = np.stack([np.left_shift(signed, 4) >> 4, signed >> 4], axis=-1)
    return pairs.reshape(*packed.shape[:-1], 2 * packed.shape[-1])


def quantize(vectors: Vectors, precision: str) -> NDArray[Any]:
    """Round embeddings (n, D) by the formulas of `sentence_transformers.util.quantize_embeddings`.

    For int8 and uint8, each component's range in these vectors is divided into 255 steps, so
    vectors from different calls cannot be compared. For binary and ubinary, (n, ceil(D / 8)), a bit
    is 1 if its component is above 0.
    """
    if precision == "float32":
        return vectors
    if precision in ("binary", "ubinary"):
        bits = np.packbits(vectors > 0, axis=-1)
        if precision == "ubinary":
            return bits
        return (bits.astype(np.int16) - 128).astype(np.int8)
    if len(vectors) == 1:
        raise SettingsError(
            f"precision {precision} needs the range of each component; give several texts"
        )
    if not len(vectors):
        return np.zeros(vectors.shape, dtype=precision)
    begin = vectors.min(axis=0)
    step = (vectors.max(axis=0) - begin) / 255
    step[step == 0] = 1
    values = np.clip(np.floor((vectors - begin) / step), 0, 255)
    if precision == "int8":
        values -= 128
    return values.astype(precision)
