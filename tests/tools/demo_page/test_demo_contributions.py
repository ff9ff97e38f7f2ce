"""Contributions of pieces and of words to a cosine: cases worked out by hand, and their sum for any vectors."""

from __future__ import annotations

import hypothesis.extra.numpy as hnp
import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from st_paragram.errors import EvaluationError
from st_paragram.tools.demo_page.comparison import cosine, left_out_contributions, piece_contributions

NUMBERS = st.floats(-10, 10, allow_nan=False, width=32)


def test_contributions_by_hand():
    # The mean is (1, 2), of length sqrt(5); with (0, 1) the pieces have products 0, 4 and 2, and three of them count.
    pieces = np.array([[3.0, 0.0], [0.0, 4.0], [0.0, 2.0]])
    found = piece_contributions(pieces, np.array([0.0, 1.0]))
    np.testing.assert_allclose(found, np.array([0, 4, 2]) / (3 * np.sqrt(5)))
    assert found.sum() == pytest.approx(2 / np.sqrt(5))


def test_a_piece_that_points_away_contributes_less_than_nothing():
    found = piece_contributions(np.array([[2.0, 0.0], [-1.0, 0.0]]), np.array([5.0, 0.0]))
    np.testing.assert_allclose(found, [2, -1])


@given(
    hnp.arrays(np.float64, st.tuples(st.integers(1, 8), st.just(5)), elements=NUMBERS),
    hnp.arrays(np.float64, 5, elements=NUMBERS),
)
def test_contributions_sum_to_the_cosine(pieces, other):
    mean = pieces.mean(0)
    assume(np.linalg.norm(mean) > 1e-3 and np.linalg.norm(other) > 1e-3)
    expected = float(mean @ other / np.linalg.norm(mean) / np.linalg.norm(other))
    assert piece_contributions(pieces, other).sum() == pytest.approx(expected, abs=1e-9)
    assert cosine(mean, other) == pytest.approx(expected, abs=1e-12)


def test_words_left_out_by_hand():
    # Whole: cosine 0.6 with (1, 0). Without the first word 1, without the second 0; of nothing it counts as 0.
    without = np.array([[7.0, 0.0], [0.0, 1.0], [0.0, 0.0]])
    found = left_out_contributions(np.array([3.0, 4.0]), without, np.array([2.0, 0.0]))
    np.testing.assert_allclose(found, [0.6 - 1, 0.6, 0.6])


@pytest.mark.parametrize("vector", [np.zeros(2), np.array([np.nan, 1]), np.array([np.inf, 1])])
def test_a_vector_without_direction_is_refused(vector):
    for first, second in ((vector, np.ones(2)), (np.ones(2), vector)):
        with pytest.raises(EvaluationError, match="no direction"):
            cosine(first, second)
        with pytest.raises(EvaluationError, match="no direction"):
            piece_contributions(first[None], second)
