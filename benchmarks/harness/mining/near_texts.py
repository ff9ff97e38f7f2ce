"""Sentences that say nearly the same as one of many, told by the words and the pairs of words they share."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

NEAR = 0.5  # cosine of weighted words: "turn the light on in the hall", "turn on the light in the kitchen"
_BUCKETS = 1 << 22
_MOST = 2000  # sentences with a word or a pair; more frequent ones tell nothing and cost much
_BLOCK = 512
_WORD = re.compile(r"\w+")


class NearTexts:
    """Sentences to compare others with, as sparse vectors of words and pairs of neighbouring words.

    The rarer a word, the more it weighs (the logarithm of the share of sentences that have it, in 22 bits of hashes).
    """

    def __init__(self, sentences: Sequence[str]) -> None:
        """Take the sentences, in any order, at least one."""
        found = _hashed(sentences)
        counts = np.bincount(found.indices, minlength=_BUCKETS)
        weights = np.log(1 + len(sentences) / np.maximum(counts, 1))
        self._weights = np.where(counts > _MOST, 0, weights).astype(np.float32)
        self._known: Any = self._weighted(found).T.tocsr()

    def near(self, sentences: Sequence[str], least: float = NEAR) -> NDArray[np.bool_]:
        """Whether each of n sentences has a cosine of `least` or more with one of those known, (n,)."""
        result = np.zeros(len(sentences), dtype=bool)
        for begin in range(0, len(sentences), _BLOCK):
            block = self._weighted(_hashed(sentences[begin : begin + _BLOCK]))
            result[begin : begin + _BLOCK] = (block @ self._known).max(axis=1).toarray()[:, 0] >= least
        return result

    def _weighted(self, found: Any) -> Any:  # noqa: ANN401
        """Rows of length 1, or empty."""
        found.data = self._weights[found.indices]
        found.eliminate_zeros()  # they would cost as much as others
        lengths = np.sqrt(np.asarray(found.multiply(found).sum(axis=1)).ravel())
        found.data /= np.repeat(np.where(lengths > 0, lengths, 1), np.diff(found.indptr)).astype(np.float32)
        return found


def _hashed(sentences: Iterable[str]) -> Any:  # noqa: ANN401
    """A sparse matrix, a row a sentence, with a number for each different word and pair of words."""
    from scipy.sparse import csr_matrix

    ends, indices = [0], list[int]()
    for sentence in sentences:
        words = _WORD.findall(sentence.lower())
        pairs = map(" ".join, pairwise(words))
        indices += {crc32(part.encode()) % _BUCKETS for part in (*words, *pairs)}
        ends.append(len(indices))
    data = np.ones(len(indices), dtype=np.float32)
    return csr_matrix((data, np.array(indices, np.int64), np.array(ends, np.int64)), shape=(len(ends) - 1, _BUCKETS))
