"""MinHash: of two sets, the smallest hashes are equal with a probability that is their Jaccard similarity.

A key consists of r minimum hashes and belongs to one of several bands. Sets of similarity s have the same key in one
band with the probability s**r, so in at least one band with 1 - (1 - s**r)**bands (Broder 1997, On the resemblance and
containment of documents; Leskovec, Rajaraman and Ullman, Mining of Massive Datasets, chapter 3).
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from st_paragram.tools.cleaning.word_hashes import mix

_OF_EQUAL_SETS = 16  # minimum hashes of a key where only equal sets are looked for


def minima_of_a_key(threshold: float, bands: int, found: float) -> int:
    """The most minimum hashes r of a key with which sets at the threshold are found, at least 1.

    Args:
        threshold: Jaccard similarity, above 0 and at most 1.
        bands: Number of bands.
        found: Least probability that two sets of this similarity have a key in common.
    """
    if threshold == 1:
        return _OF_EQUAL_SETS
    needed = 1 - (1 - found) ** (1 / bands)
    return max(1, math.floor(math.log(needed) / math.log(threshold)))


def minimum_hashes(hashes: NDArray[np.uint64], starts: NDArray[np.int64], seed: int, number: int) -> NDArray[np.uint64]:
    """The smallest hash of each of n sets, after a permutation that depends on a seed and a number.

    Args:
        hashes: Elements of all sets, one set after another, uint64.
        starts: Where each set begins, int64 (n); no set is empty.
        seed: Seed of all permutations.
        number: Number of the permutation, from 0.

    Returns:
        uint64 (n).
    """
    salt = mix(mix(np.array([seed], np.uint64)) + np.uint64(number + 1))
    return np.minimum.reduceat(mix(mix(hashes ^ salt)), starts)
