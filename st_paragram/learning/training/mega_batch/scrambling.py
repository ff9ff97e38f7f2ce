"""Scrambling (ACL 2019): some sentences are trained on with their tokens in random order.

The authors' code draws the order once for a sentence; here it is drawn anew in each epoch, as a pure function of seed,
epoch and sentence, so that mining and the steps see the same and a resumed run draws the same again.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from st_paragram.learning.training.batch_order import mix

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)  # the increment of SplitMix64


def scrambled(
    ids: NDArray[np.int32],
    offsets: NDArray[np.int64],
    sentences: NDArray[np.int64],
    probability: float,
    seed: int,
    epoch: int,
) -> NDArray[np.int32]:
    """Put the ids of some sentences in random order.

    Args:
        ids: (total,).
        offsets: (n + 1,): sentence i is ids[offsets[i]:offsets[i + 1]].
        sentences: (n,), a number for each sentence, whatever mega-batch it is in.
        probability: that a sentence is scrambled.
        seed: of the run.
        epoch: from 0.

    Returns:
        ids of the same shape; each sentence has its own.
    """
    key = np.random.SeedSequence([seed, epoch, 1]).generate_state(1, np.uint64)
    drawn = mix(mix(sentences.astype(np.uint64) + _GOLDEN) ^ key)
    chosen = (drawn >> np.uint64(11)) * 2.0**-53 < probability
    counts = np.diff(offsets)
    texts = np.repeat(np.arange(len(counts)), counts)
    places = np.arange(len(ids)) - np.repeat(offsets[:-1], counts)
    order = mix(drawn[texts] + _GOLDEN * (places + 1).astype(np.uint64))
    order = np.where(chosen[texts], order, places.astype(np.uint64))
    return ids[np.lexsort((order, texts))]
