"""Margin scores of all blocks of one or two sentences of two documents, in parts that fit into memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from st_paragram.errors import MiningError
from st_paragram.tools.alignment.path import KINDS, Gains, Step
from st_paragram.tools.bitext_mining.margin import Margin, Scores, margin_scores
from st_paragram.tools.search.nearest import nearest_neighbours
from st_paragram.tools.search.neighbours import Vectors
from st_paragram.tools.search.vectors import blocks

Embed = Callable[[Sequence[str]], Vectors]

_SCORES_AT_A_TIME = 1 << 22


@dataclass(frozen=True)
class _Texts:
    """c texts of a document: unit vectors, float32 (c, D), and their backgrounds, float64 (c,)."""

    vectors: Vectors
    background: Scores


class BlockScores:
    """Scores of blocks; a side of two sentences is embedded as one text.

    Background of a side, of one sentence or two: mean cosine with its k nearest *single* sentences of the other
    document, or with all if there are fewer.
    """

    def __init__(self, source: Sequence[str], target: Sequence[str], embed: Embed, margin: Margin, k: int) -> None:
        """Embed n and m sentences, at least one of each, and their pairs of neighbors.

        Raises:
            MiningError: An embedding has no direction.
        """
        self._margin, self._k = margin, k
        one = unit_vectors(_with_pairs(source), embed, "source")
        other = unit_vectors(_with_pairs(target), embed, "target")
        n, m = len(source), len(target)
        self._source = self._texts(one[:n], other[:m]), self._texts(one[n:], other[:m])
        self._target = self._texts(other[:m], one[:n]), self._texts(other[m:], one[:n])

    def gains(self, least: float) -> Iterator[Gains]:
        """By how much blocks score above `least`, as `best_path` asks for it."""
        n, m = len(self._source[0].vectors), len(self._target[0].vectors)
        for begin, end in blocks(n, max(1, _SCORES_AT_A_TIME // m)):
            first = max(begin - 1, 0)  # of the two sentences that end with the one at `begin`
            kinds = [
                self._scores(kind, slice(start, stop), slice(None)) - least
                for kind, (start, stop) in enumerate(((begin, end), (begin, end), (first, end - 1)))
            ]
            if begin == 0:
                kinds[2] = np.concatenate([np.zeros((1, m)), kinds[2]])
            yield from zip(*kinds, strict=True)

    def of(self, step: Step) -> float:
        """The score of one block."""
        rows, columns = slice(step.source, step.source + 1), slice(step.target, step.target + 1)
        return float(self._scores(step.kind, rows, columns)[0, 0])

    def _scores(self, kind: int, rows: slice, columns: slice) -> Scores:
        """Of the blocks of one kind whose first sentences are given, float64 (rows, columns)."""
        ahead, across = KINDS[kind]
        own, other = self._source[ahead - 1], self._target[across - 1]
        cosines = _cosines(own.vectors[rows], other.vectors[columns])
        return margin_scores(cosines, own.background[rows, None], other.background[None, columns], self._margin)

    def _texts(self, vectors: Vectors, others: Vectors) -> _Texts:
        if self._margin is Margin.ABSOLUTE or not len(vectors):
            return _Texts(vectors, np.zeros(len(vectors)))
        return _Texts(vectors, nearest_neighbours(vectors, others, min(self._k, len(others))).means)


def unit_vectors(texts: Sequence[str], embed: Embed, name: str) -> Vectors:
    """Embeddings of length 1, float32 (c, D), of c texts, at least one.

    Args:
        texts: What to embed.
        embed: Gives float32 (c, D).
        name: What the texts are, for messages.

    Raises:
        MiningError: An embedding is not finite, or of length 0.
    """
    vectors = np.asarray(embed(texts), dtype=np.float32)
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    bad = np.flatnonzero(~(np.isfinite(lengths[:, 0]) & (lengths[:, 0] > 0)))
    if len(bad):
        seen = f"the embedding of {name} {texts[bad[0]][:40]!r} has length {float(lengths[bad[0], 0]):.3g}"
        raise MiningError(f"{seen}; the model is damaged or was not trained properly; use another")
    return vectors / lengths


def _with_pairs(sentences: Sequence[str]) -> list[str]:
    """The n sentences, then the n - 1 pairs of neighbors."""
    return [*sentences, *(f"{one} {other}" for one, other in pairwise(sentences))]


def _cosines(own: Vectors, other: Vectors) -> Scores:
    """All with all, in float64 and rounded once: they must not depend on threads or on where texts are."""
    exact = own.astype(np.float64) @ other.astype(np.float64).T
    return exact.astype(np.float32).astype(np.float64)
