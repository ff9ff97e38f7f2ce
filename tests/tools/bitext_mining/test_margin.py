import numpy as np
import pytest

from st_paragram.tools.bitext_mining.candidates import (
    Candidates,
    ScoredPairs,
    best_neighbors,
    candidate_pairs,
    one_to_one,
)
from st_paragram.tools.bitext_mining.margin import LOWEST_BACKGROUND, Margin, margin_scores
from st_paragram.tools.neighbors.results import Neighbors


def neighbors(cosines, k):
    """By sorting a whole matrix of cosines."""
    cosines = np.asarray(cosines, dtype=np.float32)
    order = np.argsort(-cosines, axis=1, kind="stable")[:, :k]
    return Neighbors(np.take_along_axis(cosines, order, 1), order)


def rows(pairs):
    return list(zip(pairs.source.tolist(), pairs.target.tolist(), strict=True))


# Source 0 is a hub: near both targets. By cosine target 1 goes to it (0.8 against 0.7); its margin
# is the smaller.
COSINES = [[0.9, 0.8], [0.1, 0.7]]
FORWARD, BACKWARD = neighbors(COSINES, 2), neighbors(np.transpose(COSINES), 2)


def test_margin_scores_by_hand():
    cosine, own, other = np.array([0.6]), np.array([0.5]), np.array([0.3])
    assert margin_scores(cosine, own, other, Margin.RATIO) == pytest.approx(0.6 / 0.4)
    assert margin_scores(cosine, own, other, Margin.DISTANCE) == pytest.approx(0.2)
    assert margin_scores(cosine, own, other, Margin.ABSOLUTE) == pytest.approx(0.6)


def test_a_background_below_zero_does_not_turn_the_order_round():
    got = margin_scores(np.array([0.2, 0.1, -0.1]), np.full(3, -0.3), np.full(3, 0.1), Margin.RATIO)
    assert got == pytest.approx(np.array([0.2, 0.1, -0.1]) / LOWEST_BACKGROUND)


def test_candidates_by_hand():
    # means: sources 0.85, 0.4; targets 0.5, 0.75. backgrounds: b00 = 0.675, b01 = 0.8, b10 = 0.45,
    # b11 = 0.575
    found, scores = best_neighbors(FORWARD, BACKWARD, Margin.RATIO)
    assert found.tolist() == [0, 1] and scores == pytest.approx([0.9 / 0.675, 0.7 / 0.575])
    found, scores = best_neighbors(BACKWARD, FORWARD, Margin.RATIO)
    assert found.tolist() == [0, 1] and scores == pytest.approx([0.9 / 0.675, 0.7 / 0.575])
    found, scores = best_neighbors(BACKWARD, FORWARD, Margin.DISTANCE)
    assert found.tolist() == [0, 1] and scores == pytest.approx([0.225, 0.125])
    found, scores = best_neighbors(BACKWARD, FORWARD, Margin.ABSOLUTE)
    assert found.tolist() == [0, 0] and scores == pytest.approx([0.9, 0.8])


def test_which_pairs_are_put_forward():
    def of(candidates, margin=Margin.ABSOLUTE):
        return rows(candidate_pairs(FORWARD, BACKWARD, margin, candidates))

    assert of(Candidates.FORWARD) == [(0, 0), (1, 1)]
    assert of(Candidates.BACKWARD) == [(0, 0), (0, 1)]
    assert of(Candidates.INTERSECTION) == [(0, 0)]
    # (0, 1) scores higher than (1, 1), but source 0 is taken
    assert of(Candidates.MAX) == [(0, 0), (1, 1)]
    assert of(Candidates.BACKWARD, Margin.RATIO) == [(0, 0), (1, 1)]
    assert rows(candidate_pairs(FORWARD, BACKWARD)) == [(0, 0), (1, 1)]  # distance, max


def test_one_to_one_takes_the_best_first_and_the_earlier_of_equals():
    pairs = ScoredPairs(
        np.array([2, 0, 0, 1]), np.array([2, 1, 0, 1]), np.array([0.1, 0.5, 0.5, 0.4])
    )
    got = one_to_one(pairs)
    assert rows(got) == [(0, 0), (1, 1), (2, 2)] and got.scores.tolist() == [0.5, 0.4, 0.1]
    empty = np.array([], dtype=np.int64)
    assert len(one_to_one(ScoredPairs(empty, empty, empty.astype(float)))) == 0
