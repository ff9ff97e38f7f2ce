"""Many texts as one array of code points, so that filters can look at all characters at once."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

_ALL = 0x110000
_LAST_LETTER = 0x33480  # no letter has a higher code point


class CodePoints:
    """n texts as one array, with a newline after each, so that none is empty.

    Attributes:
        codes: Code points of all texts, uint32, lone surrogates included.
        starts: Where each text starts in `codes`, int64 (n).
        lengths: Characters of each text, int64 (n).
    """

    def __init__(self, texts: Sequence[str]) -> None:
        joined = "\n".join(texts) + "\n" if texts else ""
        self.codes = np.frombuffer(joined.encode("utf-32-le", "surrogatepass"), np.uint32)
        self.lengths = np.fromiter(map(len, texts), np.int64, len(texts))
        ends = np.cumsum(self.lengths + 1)
        self.starts: NDArray[np.int64] = ends - self.lengths - 1

    def count(self, chosen: NDArray[np.bool_]) -> NDArray[np.int64]:
        """For each text, how many of its characters are chosen, int64 (n); `chosen` has the shape of `codes`."""
        return self.total(chosen.view(np.uint8))

    def total(self, values: NDArray[np.uint8]) -> NDArray[np.int64]:
        """For each text, the sum of the values of its characters, int64 (n); `values` has the shape of `codes`."""
        return np.add.reduceat(values, self.starts, dtype=np.int64) if len(self.starts) else self.lengths

    def flags(self, values: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """For each text, the values of its characters or-ed together, uint8 (n); `values` has the shape of `codes`."""
        return np.bitwise_or.reduceat(values, self.starts) if len(self.starts) else np.zeros(0, np.uint8)


def table(values: dict[str, int]) -> NDArray[np.uint8]:
    """A table with a value for each code point: uint8 (0x110000,).

    Args:
        values: The insides of character classes and the values of their characters, e.g. `{"a-z": 1}`. The values of a
            character of several classes are or-ed; one of no class has 0, and so has the newline, which parts texts.
    """
    result = np.zeros(_ALL, np.uint8)
    for characters, value in values.items():
        for match in re.finditer(f"[{characters}]+", _every_character()):
            result[match.start() : match.end()] |= value
    result[ord("\n")] = 0
    return result


def as_verdicts(found: NDArray[Any], reasons: Sequence[str]) -> list[str | None]:
    """A verdict for each row: where `found` is k > 0 the k-th of the reasons, else None."""
    verdicts: list[str | None] = [None] * len(found)
    for index in np.flatnonzero(found).tolist():
        verdicts[index] = reasons[int(found[index]) - 1]
    return verdicts


@cache
def letters_table() -> NDArray[np.bool_]:
    """Which code points are letters (`str.isalpha`)."""
    result = np.zeros(_ALL, np.bool_)
    result[:_LAST_LETTER] = np.fromiter(map(str.isalpha, _every_character()[:_LAST_LETTER]), np.bool_, _LAST_LETTER)
    return result


@cache
def _every_character() -> str:
    return "".join(map(chr, range(_ALL)))
