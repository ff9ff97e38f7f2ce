"""Candidate pairs from neighbors in both directions, and the selection among them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

import numpy as np

from st_paragram.core.arrays import Integers, Mask
from st_paragram.tools.bitext_mining.margin import DEFAULT_MARGIN, Margin, Scores, margin_scores
from st_paragram.tools.neighbors.results import Neighbors

Rows = Integers


class Candidates(str, Enum):
    """Kinds of candidate pairs (Artetxe and Schwenk, ACL 2019, section 3.2).

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
    """c scored pairs of rows."""

    source: Rows  # int64 (c,)
    target: Rows  # int64 (c,)
    scores: Scores  # float64 (c,)

    def __len__(self) -> int:
        """Number of pairs, c."""
        return len(self.scores)

    def at(self, positions: Integers | Mask | slice) -> ScoredPairs:
        """Select some of the pairs."""
        return ScoredPairs(self.source[positions], self.target[positions], self.scores[positions])


def candidate_pairs(
    forward: Neighbors,
    backward: Neighbors,
    margin: Margin = DEFAULT_MARGIN,
    candidates: Candidates = Candidates.MAX,
) -> ScoredPairs:
    """Return candidate translations, best first, ties in the order of rows.

    `forward` has target neighbors of source rows, and `backward` source neighbors of target rows.
    """
    if candidates is Candidates.ALL:
        return _all_pairs(forward, backward, margin)
    targets, scores = best_neighbors(forward, backward, margin)
    ahead = ScoredPairs(np.arange(len(targets)), targets, scores)
    sources, scores = best_neighbors(backward, forward, margin)
    back = ScoredPairs(sources, np.arange(len(sources)), scores)
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
    """Return for each of n rows the neighbor with the highest margin score, and the score, (n,)."""
    return best_by_means(own, other.means[own.indices], margin)


def best_by_means(own: Neighbors, means: Scores, margin: Margin) -> tuple[Rows, Scores]:
    """Do the same with the means of the neighbors, (n, k): their cosines with their neighbors."""
    cosines = own.similarities.astype(np.float64)
    scores = margin_scores(cosines, own.means[:, None], means, margin)
    rows = np.arange(len(scores))
    best = scores.argmax(axis=1)  # the nearer of equally good neighbors
    return own.indices[rows, best], scores[rows, best]


def _all_pairs(forward: Neighbors, backward: Neighbors, margin: Margin) -> ScoredPairs:
    """Return every pair of neighbors in either direction, once."""
    source, target, scores = _pairs_with_neighbors(forward, backward, margin)
    back_target, back_source, back_scores = _pairs_with_neighbors(backward, forward, margin)
    source = np.concatenate([source, back_source])
    target = np.concatenate([target, back_target])
    width = len(backward.indices)
    keys, first = np.unique(source * width + target, return_index=True)
    scores = np.concatenate([scores, back_scores])[first]
    return best_first(ScoredPairs(keys // width, keys % width, scores))


def _pairs_with_neighbors(
    own: Neighbors, other: Neighbors, margin: Margin
) -> tuple[Rows, Rows, Scores]:
    """Return each row with each of its neighbors: rows, neighbors and scores, (n k,)."""
    rows = np.repeat(np.arange(len(own.indices)), own.indices.shape[1])
    neighbors = own.indices.ravel()
    cosines = own.similarities.ravel().astype(np.float64)
    scores = margin_scores(cosines, own.means[rows], other.means[neighbors], margin)
    return rows, neighbors, scores


def unordered(pairs: ScoredPairs) -> ScoredPairs:
    """Return each pair of one text once, with the earlier row first and its best score."""
    low = np.minimum(pairs.source, pairs.target)
    high = np.maximum(pairs.source, pairs.target)
    pairs = best_first(ScoredPairs(low, high, pairs.scores))
    _, first = np.unique(pairs.source * (high.max(initial=0) + 1) + pairs.target, return_index=True)
    return pairs.at(np.sort(first))


def best_first(pairs: ScoredPairs) -> ScoredPairs:
    """Sort by descending score, then by rows."""
    return pairs.at(np.lexsort((pairs.target, pairs.source, -pairs.scores)))


def one_to_one(pairs: ScoredPairs) -> ScoredPairs:
    """Keep the best pairs, each sentence in at most one pair."""
    pairs = best_first(pairs)
    sources = set[int]()
    targets = set[int]()
    kept = []
    for position, (source, target) in enumerate(
        zip(pairs.source.tolist(), pairs.target.tolist(), strict=True)
    ):
        if source not in sources and target not in targets:
            sources.add(source)
            targets.add(target)
            kept.append(position)
    return pairs.at(np.array(kept, dtype=np.int64))
