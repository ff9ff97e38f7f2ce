import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from st_paragram.tools.evaluation import bootstrap
from st_paragram.tools.evaluation.correlation import correlation
from st_paragram.tools.evaluation.own import resampling
from st_paragram.tools.evaluation.own.resampling import resampled_spearman, resampled_sums, resamples_for


def drawn(items, resamples, seed):
    """The items of each resample, as the module draws them."""
    random = np.random.default_rng(seed)
    counts = bootstrap.draw_counts(random, resamples, items).astype(int)
    return [np.repeat(np.arange(items), row) for row in counts]


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=3, max_size=30), st.integers(0, 9))
@settings(max_examples=25)
def test_spearman_of_resamples_is_that_of_scipy(pairs, seed):
    scores, grades = np.array(pairs, float).T
    found = resampled_spearman(scores, grades, 8, seed)
    for value, rows in zip(found, drawn(len(pairs), 8, seed), strict=True):
        if np.ptp(scores[rows]) and np.ptp(grades[rows]):
            assert value == pytest.approx(stats.spearmanr(scores[rows], grades[rows]).statistic)
        else:
            assert np.isnan(value)


@given(st.lists(st.tuples(st.integers(-3, 3), st.floats(-2, 2)), min_size=2, max_size=40))
@settings(max_examples=25)
def test_correlations_are_those_of_scipy(pairs):
    scores, grades = np.array(pairs, float).T
    found = correlation(scores, grades)
    if np.ptp(scores) == 0 or np.ptp(grades) < 1e-6:
        return
    assert found.pearson == pytest.approx(stats.pearsonr(scores, grades).statistic, abs=1e-9)
    assert found.spearman == pytest.approx(stats.spearmanr(scores, grades).statistic, abs=1e-9)


def test_sums_are_those_of_the_items_drawn(monkeypatch):
    monkeypatch.setattr(resampling, "CHUNK", 50)  # several chunks
    items = np.random.default_rng(1).random((20, 3))
    expected = []
    random = np.random.default_rng(4)
    for rows in (2,) * 5:
        expected.append(bootstrap.draw_counts(random, rows, 20) @ items)
    np.testing.assert_allclose(resampled_sums(items, 10, 4), np.concatenate(expected))


def test_few_kinds_of_items_spread_as_many_do():
    items = np.repeat([[0, 1], [1, 1], [1, 0]], [500, 300, 200], axis=0)
    sums = resampled_sums(items, 4000, 0)
    assert sums.shape == (4000, 2)
    np.testing.assert_allclose(sums.mean(axis=0), [500, 800], rtol=0.01)
    np.testing.assert_allclose(sums.std(axis=0), [np.sqrt(1000 * 0.25), np.sqrt(1000 * 0.16)], rtol=0.05)
    np.testing.assert_array_equal(sums, resampled_sums(items, 4000, 0))


def test_fewer_resamples_of_many_items():
    assert [resamples_for(count) for count in (2, 10_000, 50_000, 10**6)] == [10_000, 10_000, 2_000, 1_000]
