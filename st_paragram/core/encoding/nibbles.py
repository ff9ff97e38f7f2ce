"""Rows of 4-bit integers, two components per byte, with one scale per row.

Of byte j, the lower four bits are component 2j and the upper four 2j + 1, in two's complement. Rounding gives -7 to 7,
and -8 is read as such.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from st_paragram.errors import SettingsError

_LARGEST = 7
# 7 stands for these shares of the largest component, and what is above is cut. The squared error of p-sp-mini is a
# quarter below that of 1 alone, and half a percent above that of steps of 0.005.
_SHARES = np.linspace(0.5, 1, 11, dtype=np.float32)
_SMALLEST = np.float32(1e-25)  # scales below become 0: kernels divide them by 2^28


def check_even(dimension: int) -> None:
    """Refuse a number of components that does not fill whole bytes."""
    if dimension % 2:
        seen = f"int4 stores two components per byte, but the table has {dimension}"
        raise SettingsError(f"{seen}; choose an even number")


def pack(rows: NDArray[np.float32]) -> tuple[NDArray[np.uint8], NDArray[np.float32]]:
    """Round rows, float32 (n, D), finite, D even, by the scales with the least squared error.

    For given integers q, the best scale of a row x is xq / qq, and the squared error xx - (xq)^2 / qq.

    Returns:
        uint8 (n, D / 2), and scales, float32 (n,). Scales have 20 bits of precision: their products with 4-bit integers
        are exact, so that means are the same on every processor.
    """
    steps = np.abs(rows).max(axis=1, initial=0) / np.float32(_LARGEST)
    steps[steps < _SMALLEST] = 0
    units = rows / np.where(steps > 0, steps, np.float32(np.inf))[:, None]
    numbers, scales = np.zeros(rows.shape, np.int8), np.zeros(len(rows), np.float32)
    explained = np.zeros(len(rows), np.float32)
    for share in _SHARES:
        tried = np.clip(np.rint(units / share), -_LARGEST, _LARGEST)
        product, square = np.einsum("nd,nd->n", units, tried), np.einsum("nd,nd->n", tried, tried)
        best = product / np.maximum(square, 1)
        better = product * best > explained
        explained[better], numbers[better] = (product * best)[better], tried[better]
        scales[better] = best[better] * steps[better]
    bits: NDArray[np.uint8] = numbers.view(np.uint8) & np.uint8(15)
    scales = ((scales.view(np.uint32) + np.uint32(8)) & np.uint32(0xFFFFFFF0)).view(np.float32)
    return bits[:, ::2] | bits[:, 1::2] << np.uint8(4), scales


def unpack(packed: NDArray[np.uint8]) -> NDArray[np.int8]:
    """The integers: uint8 (..., D / 2) to int8 (..., D)."""
    numbers = np.empty((*packed.shape[:-1], 2 * packed.shape[-1]), np.int8)
    signed = packed.view(np.int8)
    np.right_shift(np.left_shift(signed, 4), 4, out=numbers[..., ::2])
    np.right_shift(signed, 4, out=numbers[..., 1::2])
    return numbers
