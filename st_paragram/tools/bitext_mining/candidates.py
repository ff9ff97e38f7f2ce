"""Candidate pairs from neighbors in both directions, and the selection among them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

import numpy as np
from numpy.typing import NDArray

from st_paragram.tools.bitext_mining.margin import DEFAULT_MARGIN, Margin, Scores, margin_scores
from st_paragram.tools.neighbors.results import Neighbors

Rows = NDArray[np.int64]


class Candidates(str, Enum):
    """Kinds of candidate pairs (section 3.2 of the paper).

    FORWARD: each source sentence with the best of its k neighbors. BACKWARD: each target sentence
    with the best of its k neighbors. INTERSECTION: pairs in both sets. MAX: pairs in either set,
    best first, each sentence once. ALL (not in the paper): each sentence with each of its
    neighbors, in both directions.
    """

    FORWARD = "forward"
    BACKWARD = "backward"
    INTERSECTION = "intersection"
    MAX = "max"
    ALL = "all"


@dataclass(frozen=True)
class ScoredPairs:
    """c pairs of rows, int64 (c,) for each side, with scores, float64 (c,), best first; ties in the
    order of rows.
    """

    source: Rows
    target: Rows
    scores: Scores

    def __len__(self) -> int:
        """Number of pairs, c."""
        return len(self.scores)

    def at(self, positions: NDArray[np.int64] | NDArray[np.bool_] | slice) -> ScoredPairs:
        """Select some of the pairs."""
        return ScoredPairs(self.source[positions], self.target[positions], self.scores[positions])


def candidate_pairs(
    forward: Neighbors,
    backward: Neighbors,
    margin: Margin = DEFAULT_MARGIN,
    candidates: Candidates = Candidates.MAX,
) -> ScoredPairs:
    """Return candidate translations with scores, given the target neighbors of source rows and vice
    versa.
    """
    if candidates is Candidates.ALL:
        return _all_pairs(forward, backward, margin)
    found, scores = best_neighbors(forward, backward, margin)
    ahead = ScoredPairs(np.arange(len(found)), found, scores)
    found, scores = best_neighbors(backward, forward, margin)
    back = ScoredPairs(found, np.arange(len(found)), scores)
    if candidates is Candidates.FORWARD:
        return best_first(ahead)
    if candidates is Candidates.BACKWARD:
        return best_first(back)
    if candidates is Candidates.INTERSECTION:
        return best_first(ahead.at(back.source[ahead.target] == ahead.source))
    return one_to_one(
        ScoredPairs(
            np.concatenate((ahead.source, back.source)),
            np.concatenate((ahead.target, back.target)),
            np.concatenate((ahead.scores, back.scores)),
        )
    )


def best_neighbors(own: Neighbors, other: Neighbors, margin: Margin) -> tuple[Rows, Scores]:
    """Return the neighbor with the highest margin score for each of n rows, int64 (n,), and this
    score, (n,).
    """
    cosines = own.similarities.astype(np.float64)
    scores = margin_scores(cosines, own.means[:, None], other.means[own.indices], margin)
    best = scores.argmax(axis=1)[:, None]  # the nearer of equally good neighbors
    return np.take_along_axis(own.indices, best, 1)[:, 0], np.take_along_axis(scores, best, 1)[:, 0]


def _all_pairs(forward: Neighbors, backward: Neighbors, margin: Margin) -> ScoredPairs:
    """Return every pair of neighbors in either direction, once; arguments as for `candidate_pairs`."""
    width = len(backward.indices)
    keys, scores = [], []
    for own, other, ahead in ((forward, backward, True), (backward, forward, False)):
        rows = np.repeat(np.arange(len(own.indices)), own.indices.shape[1])
        found, cosines = own.indices.ravel(), own.similarities.ravel().astype(np.float64)
        keys.append(rows * width + found if ahead else found * width + rows)
        scores.append(margin_scores(cosines, own.means[rows], other.means[found], margin))
    distinct, first = np.unique(np.concatenate(keys), return_index=True)
    return best_first(
        ScoredPairs(distinct // width, distinct % width, np.concatenate(scores)[first])
    )


def unordered(pairs: ScoredPairs) -> ScoredPairs:
    """Return each pair of one text once, with the earlier row first and its best score."""
    low, high = np.minimum(pairs.source, pairs.target), np.maximum(pairs.source, pairs.target)
    pairs = best_first(ScoredPairs(low, high, pairs.scores))
    _, first = np.unique(pairs.source * (high.max(initial=0) + 1) + pairs.target, return_index=True)
    return pairs.at(np.sort(first))


def best_first(pairs: ScoredPairs) -> ScoredPairs:
    """Sort by descending score, then by rows."""
    return pairs.at(np.lexsort((pairs.target, pairs.source, -pairs.scores)))


def one_to_one(pairs: ScoredPairs) -> ScoredPairs:
    """Go through the pairs, best first, and keep each pair whose two sentences are not in an
    earlier pair.
    """
    pairs = best_first(pairs)
    sources, targets = set[int](), set[int]()
    kept = []
    for position, (source, target) in enumerate(
        zip(pairs.source.tolist(), pairs.target.tolist(), strict=True)
    ):
        if source not in sources and target not in targets:
            sources.add(source)
            targets.add(target)
            kept.append(position)
    return pairs.at(np.array(kept, dtype=np.int64))
