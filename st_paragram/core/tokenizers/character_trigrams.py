"""Text to the ids of its character trigrams, and lists of the most frequent trigrams.

A space precedes and follows each text, and every window of three characters is a trigram, spaces included: "ab c"
gives " ab", "ab ", "b c", " c ". So n characters give n trigrams.

Source: ACL 2019 ("Simple and Effective Paraphrastic Similarity from Parallel Translations"): the encoder
Trigram, which averages embeddings of the 200,000 most frequent trigrams.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import ClassVar

from st_paragram.core.tokenizers.base import checked_switch
from st_paragram.core.tokenizers.string_lists import StringListTokenizer, most_frequent, read_strings
from st_paragram.errors import SettingsError, short

_SURROGATE = re.compile("[\ud800-\udfff]")  # not text, and no list of trigrams can hold it


class CharacterTrigramTokenizer(StringListTokenizer):
    """Trigrams to their places in a list, the most frequent first; the id behind the last is the unknown one."""

    kind: ClassVar[str] = "trigram"

    def __init__(self, content: bytes, lower_case: bool = True) -> None:
        """Read a list of trigrams in the order of their ids, a JSON list in UTF-8."""
        self.lower_case = checked_switch("lower_case", lower_case)
        super().__init__(content, {"lower_case": lower_case}, read_strings(content, "trigrams"))
        if (other := next((each for each in self.strings if len(each) != 3), None)) is not None:
            raise SettingsError(f"not a list of trigrams: {short(other)} has {len(other)} characters, not 3")

    def tokens(self, texts: list[str], num_threads: int = 1) -> Iterable[list[str]]:
        """The trigrams of each text."""
        return map(trigrams, map(str.lower, texts) if self.lower_case else texts)

    def decode(self, ids: Sequence[int]) -> str:
        """The text of trigrams in their order, see `joined`; an unknown id shows as `⁇`."""
        return joined(self.shown(ids))


def trigrams(text: str) -> list[str]:
    """Every three characters that follow each other, with a space before and behind the text."""
    framed = f" {text} "
    return [framed[start : start + 3] for start in range(len(text))]


def joined(pieces: Sequence[str]) -> str:
    """The text of trigrams in their order, without the spaces around it; neighbors that do not overlap stay whole."""
    chained = [one[0] if one[1:] == other[:2] else one for one, other in pairwise(pieces)]
    return "".join([*chained, *pieces[-1:]]).removeprefix(" ").removesuffix(" ")


def train_trigrams(texts: Iterable[str], size: int = 200_000, lower_case: bool = True) -> bytes:
    """The most frequent trigrams, at most `size`, as the content of a `CharacterTrigramTokenizer`."""
    counts: Counter[str] = Counter()
    for text in texts:
        counts.update(trigrams(text.lower() if lower_case else text))
    for trigram in filter(_SURROGATE.search, list(counts)):
        del counts[trigram]
    return most_frequent(counts, size, "trigrams")
