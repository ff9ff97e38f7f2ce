"""Character trigrams of texts as ids, and lists of the most frequent trigrams.

Every window of three characters is a trigram, with a space added before and after the text: "ab c"
gives " ab", "ab ", "b c", " c ".
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import chain, pairwise
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
    """The id of a trigram is its index in a list, most frequent first; the unknown id follows the
    last.
    """

    kind: ClassVar[str] = "trigram"

    def __init__(self, content: bytes, lower_case: bool = True, characters: bool = False) -> None:
        """Read a list of trigrams in the order of their ids, a JSON list in UTF-8.

        With `characters`, `CHARACTERS` are read as others.
        """
        self.lower_case = lower_case
        self.characters = characters
        options = {"lower_case": lower_case} | ({"characters": True} if characters else {})
        super().__init__(content, options, read_strings(content, "trigrams"))
        if (other := next((each for each in self.strings if len(each) != 3), None)) is not None:
            raise SettingsError(
                f"not a list of trigrams: {short(other)} has {len(other)} characters, not 3"
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
            keys = _keys("  ".join(["", *cased[begin : begin + _BLOCK], ""])[1:-1])
            ends = np.cumsum(counts[begin : begin + _BLOCK] + 2)[:-1]
            # windows that span two texts
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
    """Join trigrams to a text, without the spaces around it; neighbors that do not overlap are kept
    in full.
    """
    chained = [one[0] if one[1:] == other[:2] else one for one, other in pairwise(pieces)]
    return "".join([*chained, *pieces[-1:]]).removeprefix(" ").removesuffix(" ")


def train_trigrams(texts: Iterable[str], size: int = 200_000, lower_case: bool = True) -> bytes:
    """Return the most frequent trigrams, at most `size`, as the content of a
    `CharacterTrigramTokenizer`.
    """
    counts = Counter(
        chain.from_iterable(map(trigrams, map(str.lower, texts) if lower_case else texts))
    )
    text_only = {
        trigram: count for trigram, count in counts.items() if not _SURROGATE.search(trigram)
    }
    return most_frequent(Counter(text_only), size, "trigrams")


def _keys(text: str) -> NDArray[np.int64]:
    """Encode every window of three characters as one number, int64 (n - 2,): three code points of
    21 bits.
    """
    codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype="<u4").astype(np.int64)
    return (codes[:-2] << 42) | (codes[1:-1] << 21) | codes[2:]
