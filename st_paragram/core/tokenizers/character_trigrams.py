"""Character trigrams of texts as ids, and lists of the most frequent trigrams.

Every window of three characters is a trigram, with a space added before and after the text: "ab c"
gives " ab", "ab ", "b c", " c ".
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from st_paragram.core.tokenizers.base import Encoded
from st_paragram.core.tokenizers.string_lists import (
    StringListTokenizer,
    most_frequent,
    read_strings,
    read_texts,
)
from st_paragram.errors import SettingsError, short

_BLOCK = 1 << 11  # texts that are looked up together
_SURROGATE = re.compile("[\ud800-\udfff]")  # not text, and no list of trigrams can hold it


class CharacterTrigramTokenizer(StringListTokenizer):
    """The id of a trigram is its index in a list; the unknown id follows the last.

    The most frequent trigram is the first.
    """

    kind: ClassVar[str] = "trigram"

    def __init__(self, content: bytes, lower_case: bool = True, characters: bool = False) -> None:
        """Read a list of trigrams in the order of their ids, a JSON list in UTF-8.

        With `characters`, `CHARACTERS` are read as others.
        """
        self.lower_case = lower_case
        self.characters = characters
        options = {"lower_case": lower_case}
        if characters:
            options["characters"] = True
        super().__init__(content, options, read_strings(content, "trigrams"))
        for trigram in self.strings:
            if len(trigram) != 3:
                raise SettingsError(
                    f"not a list of trigrams: {short(trigram)} has {len(trigram)} characters, not 3"
                )
        keys = _keys("".join(self.strings))[::3]
        self._order = np.argsort(keys)
        self._keys = keys[self._order]

    def encode_normalized(
        self, texts: list[str], max_length: int | None = None, num_threads: int = 1
    ) -> Encoded:
        """Encode texts, and count truncated texts."""
        cased = read_texts(texts, self.lower_case, self.characters)
        counts = np.fromiter(map(len, cased), dtype=np.int64, count=len(cased))
        ids = [np.zeros(0, dtype=np.int64)]
        for begin in range(0, len(cased), _BLOCK):
            keys = _keys(f" {'  '.join(cased[begin : begin + _BLOCK])} ")
            ends = np.cumsum(counts[begin : begin + _BLOCK] + 2)[:-1]
            # without windows that span two texts
            keys = np.delete(keys, np.concatenate([ends - 2, ends - 1]))
            places = np.minimum(np.searchsorted(self._keys, keys), len(self._keys) - 1)
            ids.append(np.where(self._keys[places] == keys, self._order[places], self.unknown_id))
        return Encoded.of(np.concatenate(ids), counts, self.unknown_id, max_length)

    def decode(self, ids: Sequence[int]) -> str:
        """Decode trigrams in order, see `joined`; an unknown id becomes `⁇`."""
        return joined(self.shown(ids))


def trigrams(text: str) -> list[str]:
    """Split a text into all windows of three characters, with a space before and after the text."""
    framed = f" {text} "
    return [framed[start : start + 3] for start in range(len(text))]


def joined(pieces: Sequence[str]) -> str:
    """Join trigrams to a text, without the spaces around it.

    Neighbors that do not overlap are kept in full.
    """
    parts = []
    for first, second in pairwise(pieces):
        overlap = first[1:] == second[:2]
        parts.append(first[0] if overlap else first)
    return "".join([*parts, *pieces[-1:]]).removeprefix(" ").removesuffix(" ")


def train_trigrams(texts: Iterable[str], size: int = 200_000, lower_case: bool = True) -> bytes:
    """Return the most frequent trigrams as the content of a `CharacterTrigramTokenizer`."""
    counts = Counter[str]()
    for text in texts:
        counts.update(trigrams(text.lower() if lower_case else text))
    for trigram in list(counts):
        if _SURROGATE.search(trigram):
            del counts[trigram]
    return most_frequent(counts, size, "trigrams")


def _keys(text: str) -> NDArray[np.int64]:
    """Encode every window of three characters as one number of 3 * 21 bits, int64 (n - 2,)."""
    codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype="<u4").astype(np.int64)
    return (codes[:-2] << 42) | (codes[1:-1] << 21) | codes[2:]
