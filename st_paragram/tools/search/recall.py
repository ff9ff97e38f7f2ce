"""Recall of an approximate index, by the number of lists that a search visits.

Recall is measured with queries that are not in the index: parts of its sentences, from half a
sentence to one word. For each number of lists and each kind of query, two shares are measured: the
share of queries whose nearest sentence is found, and the share found of their ten nearest
sentences. The recall is the lowest of these shares. Short queries decide it, because their nearest
sentences are spread over many lists.
"""

from __future__ import annotations

import json
import string
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from st_paragram.core.text.words import has_two_letters
from st_paragram.errors import SettingsError, short
from st_paragram.tools.neighbors.results import Vectors

DEFAULT = 0.95  # recall
SMALLEST = 200_000  # sentences of an approximate index
NEAREST = 10  # sentences per query
SAMPLE = 1000  # sentences that queries are made from; the first 100 queries of each kind are used
_QUERIES = 100
_SEED = 0
_PUNCTUATION = string.punctuation + "“”„«»‘’…。、，！？；：「」『』（）।॥؟،؛"
_ROUNDING = 1e-5  # of scores
# shares of the lists that are visited
_LISTS = (1 / 32, 1 / 16, 1 / 8, 1 / 4, 3 / 8, 1 / 2, 3 / 4, 1)


@dataclass(frozen=True)
class Measurement:
    """Recall of an approximate index.

    Attributes:
        wanted: Recall of searches that do not ask for another.
        sentences: Number of sentences at the time.
        lists: Number of lists of the index.
        shares: For each number of visited lists and each kind of query, the share of queries whose
            nearest sentence is found, and the share of their ten nearest sentences that are found.
    """

    wanted: float
    sentences: int
    lists: int
    shares: Mapping[int, Mapping[str, tuple[float, float]]]

    def recall(self, visited: int) -> float:
        """Return the lowest share for a number of visited lists, which is a key of `shares`."""
        kinds = self.shares[visited].values()
        return min(min(shares) for shares in kinds)

    def visited(self, wanted: float | None = None) -> int | None:
        """Return the smallest number of lists with a recall; None if no number has it."""
        if wanted is None:
            wanted = self.wanted
        if wanted == 1:
            return None
        sufficient = [lists for lists in self.shares if self.recall(lists) >= wanted]
        return min(sufficient, default=None)

    def __str__(self) -> str:
        """Format the shares for the number of lists that searches visit."""
        visited = self.visited()
        if visited is None:
            effort = "compare all sentences"
            visited = self.lists
        else:
            effort = f"visit {visited:,} of {self.lists:,} lists"
        kinds = []
        for kind, (first, ten) in self.shares[visited].items():
            kinds.append(f"{first:.1%} / {ten:.1%} for {kind}")
        return f"searches {effort}; nearest sentence and ten nearest found: {', '.join(kinds)}"

    def to_json(self) -> str:
        """Return the measurement for storage."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str | bytes) -> Measurement:
        """Read a stored measurement."""
        values: dict[str, Any] = json.loads(text)
        shares = {int(lists): kinds for lists, kinds in values.pop("shares").items()}
        return cls(shares=shares, **values)


def checked_recall(recall: float) -> float:
    """Return a recall; refuse one outside (0, 1]."""
    if isinstance(recall, bool) or not isinstance(recall, Real) or not 0 < recall <= 1:
        raise SettingsError(
            f"recall is {short(recall)}; give a share above 0 and at most 1, such as {DEFAULT}"
        )
    return float(recall)


def held_out_queries(sentences: Sequence[str]) -> dict[str, list[str]]:
    """Make up to 100 queries of each kind from sentences, the same for the same sentences.

    Queries that are sentences of the index themselves do no harm, but they are rare.
    """
    rng = np.random.default_rng(_SEED)
    parts = [_words(sentence) for sentence in sentences]
    halves: list[str] = []
    for words, glue in parts:
        if len(words) > 5:
            middle = len(words) // 2
            half = words[middle:] if len(halves) % 2 else words[:middle]
            halves.append(glue.join(half))
    queries: dict[str, list[str]] = {
        "sentences": [" ".join(pair) for pair in zip(halves[::2], halves[1::2], strict=False)],
        "halves": halves,
        "phrases": [_run(part, 4, rng) for part in parts if len(part[0]) > 4],
        "two words": [_run(part, 2, rng) for part in parts if len(part[0]) > 2],
        "one word": [_run(part, 1, rng) for part in parts if len(part[0]) > 1],
    }
    chosen = {}
    for kind, texts in queries.items():
        distinct = list(dict.fromkeys(text for text in texts if has_two_letters(text)))
        if distinct:
            chosen[kind] = distinct[:_QUERIES]
    return chosen or {"sentences": list(sentences[:_QUERIES])}


def _words(sentence: str) -> tuple[list[str], str]:
    """Return the words of a sentence, or pairs of characters, and what joins them."""
    words = [word.strip(_PUNCTUATION) for word in sentence.split()]
    words = [word for word in words if word]
    letters = sum(map(len, words))
    if letters <= 12 * len(words):
        return words, " "
    text = "".join(words)
    return [text[begin : begin + 2] for begin in range(0, len(text), 2)], ""


def _run(part: tuple[list[str], str], length: int, rng: np.random.Generator) -> str:
    """Return consecutive words, drawn from all; a single word is a long word if there is one."""
    words, glue = part
    if length == 1:
        words = [word for word in words if len(word) > 3] or words
    begin = int(rng.integers(len(words) - length + 1))
    return glue.join(words[begin : begin + length])


def numbers_of_lists(lists: int) -> list[int]:
    """Return the numbers of lists to measure, from few to all."""
    return sorted({max(1, int(share * lists)) for share in _LISTS})


def found_shares(
    scores: Vectors, nearest: Vectors, kinds: NDArray[np.str_]
) -> dict[str, tuple[float, float]]:
    """Return the shares of the nearest sentences that a search finds, per kind of query.

    Equally near sentences are interchangeable.

    Args:
        scores: Cosines of the sentences found, best first, (q, c).
        nearest: Cosines of the nearest sentences, best first, (q, n).
        kinds: Kind of each query, (q,).
    """
    shares = {}
    count = nearest.shape[1]
    is_first = scores[:, 0] >= nearest[:, 0] - _ROUNDING
    are_near = (scores[:, :count] >= nearest[:, -1:] - _ROUNDING).sum(axis=1) / count
    for kind in dict.fromkeys(kinds.tolist()):
        of_kind = kinds == kind
        first = float(is_first[of_kind].mean())
        ten = float(are_near[of_kind].mean())
        shares[kind] = (round(first, 4), round(ten, 4))
    return shares
