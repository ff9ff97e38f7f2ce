"""F1 of finding translations in comparable texts, as the BUCC 2018 shared task counts it.

Every margin score gives a list of candidate pairs. A threshold on the score decides which are extracted; it is chosen
where F1 is highest on texts with known answers and applied to others. Chosen on the very texts that are scored it is
an oracle's: an upper bound.
"""

from __future__ import annotations

import hashlib

import numpy as np
from numpy.typing import NDArray

from st_paragram.tools.bitext_mining.candidates import Candidates, ScoredPairs, candidate_pairs
from st_paragram.tools.bitext_mining.margin import DEFAULT_K, Margin
from st_paragram.tools.bitext_mining.threshold import Extraction, best_threshold, extract
from st_paragram.tools.evaluation.bucc_files import ComparableTexts
from st_paragram.tools.search.nearest import nearest_both_ways
from st_paragram.tools.search.neighbours import Vectors

Mined = dict[Margin, ScoredPairs]

#: What the scores are called in tables and records.
LABELS = {Margin.RATIO: "ratio", Margin.DISTANCE: "distance", Margin.ABSOLUTE: "cosine"}


def mine(source: Vectors, target: Vectors, k: int = DEFAULT_K, candidates: Candidates = Candidates.MAX) -> Mined:
    """Candidate pairs by each margin score (`Margin.ABSOLUTE` is the cosine alone).

    Args:
        source: embeddings of n sentences, float32 (n, D), rows of length 1.
        target: embeddings of m sentences, float32 (m, D), rows of length 1.
        k: neighbours searched for each sentence, which also make its background.
        candidates: which pairs are put forward.

    Raises:
        EvaluationError, SettingsError: as `nearest_neighbours`.
    """
    forward, backward = nearest_both_ways(source, target, k)
    return {margin: candidate_pairs(forward, backward, margin, candidates) for margin in Margin}


def thresholds(mined: Mined, texts: ComparableTexts) -> dict[Margin, float]:
    """For each margin score the threshold of the highest F1 against the texts' gold."""
    gold = len(texts.gold)
    return {margin: best_threshold(pairs.scores, in_gold(pairs, texts), gold) for margin, pairs in mined.items()}


def extractions(mined: Mined, texts: ComparableTexts, at: dict[Margin, float]) -> dict[Margin, Extraction]:
    """What the thresholds `at` extract, counted against the texts' gold."""
    gold = len(texts.gold)
    return {margin: extract(pairs.scores, in_gold(pairs, texts), gold, at[margin]) for margin, pairs in mined.items()}


def half_extractions(mined: Mined, texts: ComparableTexts, seed: int = 0) -> dict[Margin, Extraction]:
    """The same with thresholds chosen on one half of the source sentences, counted on the other half.

    Candidates and gold pairs belong to the half of their source sentence, which follows from its id and the seed
    alone (a bit of a hash).
    """
    half = np.array([_bit(key, seed) for key in texts.source_ids])
    gold = half[texts.gold[:, 0]]
    result = {}
    for margin, pairs in mined.items():
        right, side = in_gold(pairs, texts), half[pairs.source]
        threshold = best_threshold(pairs.scores[side == 0], right[side == 0], int((gold == 0).sum()))
        result[margin] = extract(pairs.scores[side == 1], right[side == 1], int((gold == 1).sum()), threshold)
    return result


def in_gold(pairs: ScoredPairs, texts: ComparableTexts) -> NDArray[np.bool_]:
    """Whether each candidate is a gold pair, (c,)."""
    width = len(texts.target_ids)
    found: NDArray[np.bool_] = np.isin(pairs.source * width + pairs.target, texts.gold[:, 0] * width + texts.gold[:, 1])
    return found


def _bit(key: str, seed: int) -> int:
    return hashlib.sha256(f"{seed} {key}".encode()).digest()[0] & 1
