"""Arguments of compiled functions made wrong: values, shapes, types, strides, memory."""

from __future__ import annotations

from typing import Any

import numpy as np

_TYPES = (np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.float16, np.float32, np.float64, np.complex64, bool)
# None of a size that memory could just about hold.
_NUMBERS = (-1, 0, 1, -(2**31), 2**40, 2**62, 2**63 - 1, -(2**63), 2**63, 2**64, None, "1", 0.5)
_FLOATS = (float("nan"), float("inf"), -1.0, 0.0, 2.0, 1e300, -1e-300, None, "x")
_TEXTS = (None, 1, b"bytes", "\ud800", "x" * 40_000, "word " * 9_000, ["a"])


def spoilt(value: Any, rng: np.random.Generator, others: list[Any]) -> Any:
    """A value like this one, and wrong in some way; `others` are the arguments beside it."""
    if isinstance(value, np.ndarray):
        return _CHANGES[rng.integers(len(_CHANGES))](value, rng, others)
    if isinstance(value, list):
        at = int(rng.integers(len(value) + 1))
        return [*value[:at], _TEXTS[rng.integers(len(_TEXTS))], *value[at:]]
    choice = _FLOATS if isinstance(value, float) else _NUMBERS
    return choice[rng.integers(len(choice))]


def unequal(value: Any, before: np.ndarray) -> bool:
    """Whether an argument has changed since it was copied."""
    return isinstance(value, np.ndarray) and value.tobytes() != before.tobytes()


def extreme(dtype: np.dtype, rng: np.random.Generator) -> Any:
    """A number that a type can hold, but a program may not expect."""
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        choice = [limits.min, limits.max, 0, 1, limits.max // 2, limits.max - 1]
        return choice[rng.integers(6)] if rng.random() < 0.8 else rng.integers(100)
    if dtype.kind == "f":
        limits = np.finfo(dtype)
        choice = [np.nan, np.inf, -np.inf, limits.max, limits.min, limits.tiny, 0, -1, 1]
        return choice[rng.integers(9)]
    return 1


def _values(array, rng, others):
    """Some numbers are others."""
    array = array.copy()
    if array.size:
        places = rng.integers(array.size, size=rng.integers(1, 4))
        with np.errstate(all="ignore"):
            array.reshape(-1)[places] = extreme(array.dtype, rng)
    return array


def _nudged(array, rng, others):
    """A number is one more or less."""
    array = array.copy()
    if array.size and array.dtype.kind in "iuf":
        with np.errstate(all="ignore"):
            array.reshape(-1)[rng.integers(array.size)] += np.array(rng.choice([1, -1])).astype(array.dtype)
    return array


def _cut(array, rng, others):
    return array[: rng.integers(len(array) + 1)].copy() if array.ndim else array.reshape(1)


def _longer(array, rng, others):
    return np.concatenate([array, array]) if array.ndim else np.array([array, array])


def _retyped(array, rng, others):
    with np.errstate(all="ignore"):
        return array.astype(_TYPES[rng.integers(len(_TYPES))])


def _swapped(array, rng, others):
    """The same numbers, their bytes in the other order."""
    return array.astype(array.dtype.newbyteorder())


def _strided(array, rng, others):
    """The same numbers, not one behind the other."""
    if not array.ndim:
        return np.zeros((4, 4), array.dtype)[1:3, 2]
    return np.repeat(array, 2, axis=-1)[..., ::2] if rng.random() < 0.5 else array[::-1]


def _flat(array, rng, others):
    """The first number everywhere, of which there is but one."""
    return np.broadcast_to(array.reshape(-1)[0], array.shape) if array.size else array


def _turned(array, rng, others):
    return np.asfortranarray(array) if rng.random() < 0.5 else array.T.copy()


def _misaligned(array, rng, others):
    memory = np.empty(array.nbytes + 1, np.uint8)[1:]
    memory[:] = np.frombuffer(array.tobytes(), np.uint8)
    return np.ndarray(array.shape, array.dtype, buffer=memory)


def _read_only(array, rng, others):
    array = array.copy()
    array.flags.writeable = False
    return array


def _reshaped(array, rng, others):
    return [array[None], array.reshape(-1), np.array(5, array.dtype)][rng.integers(3)]


def _aliased(array, rng, others):
    """The memory of another argument."""
    large = [o for o in others if isinstance(o, np.ndarray) and o.nbytes >= array.nbytes and o.flags.c_contiguous]
    return np.ndarray(array.shape, array.dtype, buffer=large[rng.integers(len(large))]) if large else array


def _no_array(array, rng, others):
    return [None, array.tolist(), "array", memoryview(array.tobytes())][rng.integers(4)]


_CHANGES = (
    *[_values] * 3, *[_nudged] * 2, _cut, _longer, _retyped, _swapped, _strided, _flat, _turned, _misaligned,
    _read_only, _reshaped, _aliased, _no_array,
)  # fmt: skip
