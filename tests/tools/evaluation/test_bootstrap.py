import math
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from st_paragram.errors import EvaluationError
from st_paragram.tools.evaluation import bootstrap
from st_paragram.tools.evaluation.bootstrap import (
    comparison,
    interval,
    resampled_pearson,
)


def pearson_interval(scores, grades, resamples=10_000):
    return interval(resampled_pearson(scores, grades, resamples))


def compare_pearson(first, second, grades, resamples=10_000):
    both = resampled_pearson(np.stack([first, second]), grades, resamples)
    return comparison(*(stats.pearsonr(each, grades).statistic for each in (first, second)), *both)


def made(n, noise, seed=0):
    random = np.random.default_rng(seed)
    grades = random.uniform(0, 5, n)
    return grades + noise * random.normal(size=n), grades


def test_resamples_follow_a_plain_loop(monkeypatch):
    scores, grades = made(20, 1.0)
    monkeypatch.setattr(bootstrap, "CHUNK", 20 * 7)  # several chunks, the last one short
    found = resampled_pearson(scores, grades, resamples=30, seed=5)
    random = np.random.default_rng(5)
    drawn = np.concatenate([random.integers(0, 20, (rows, 20), dtype=np.int32) for rows in (7, 7, 7, 7, 2)])
    expected = [stats.pearsonr(scores[rows], grades[rows]).statistic for rows in drawn]
    np.testing.assert_allclose(found, expected, atol=1e-12)


def test_systems_share_the_resamples_and_may_stand_alone():
    scores, grades = made(50, 2.0)
    both = resampled_pearson(np.stack([scores, -3 * scores + 7]), grades, resamples=100)
    np.testing.assert_allclose(both[0], -both[1], atol=1e-12)
    np.testing.assert_allclose(resampled_pearson(scores, grades, resamples=100), both[0], atol=1e-12)
    assert not np.allclose(resampled_pearson(scores, grades, resamples=100, seed=1), both[0])


@given(st.integers(3, 40), st.floats(-1e6, 1e6), st.floats(1e-3, 1e3), st.integers(0, 5))
@settings(max_examples=40)
def test_shift_and_scale_change_nothing(n, shift, scale, seed):
    scores, grades = made(n, 1.0, seed)
    usual, moved = (resampled_pearson(s, grades, resamples=20, seed=seed) for s in (scores, scores * scale + shift))
    both = np.isfinite(usual) & np.isfinite(moved)
    np.testing.assert_allclose(usual[both], moved[both], atol=1e-4)


def test_interval_holds_the_figure_and_shrinks_with_pairs():
    widths = []
    for n in (100, 1600):
        scores, grades = made(n, 2.0)
        found = pearson_interval(scores, grades, resamples=2000)
        assert found.low < stats.pearsonr(scores, grades).statistic < found.high
        assert found == pearson_interval(scores, grades, resamples=2000)
        widths.append(found.high - found.low)
    assert widths[0] / widths[1] == pytest.approx(4, rel=0.35)
    normal = stats.pearsonr(scores, grades).confidence_interval(0.95)  # Fisher's, which holds for this data
    assert (found.low, found.high) == pytest.approx((normal.low, normal.high), abs=0.01)


def test_interval_by_hand():
    found = interval(np.append(np.arange(1001) / 1000, math.nan))
    assert (found.low, found.high) == pytest.approx((0.025, 0.975))


def test_equal_systems_do_not_differ():
    scores, grades = made(60, 1.0)
    found = compare_pearson(scores, 2 * scores + 1, grades, resamples=500)
    assert found.difference == pytest.approx(0, abs=1e-12)
    assert (found.low, found.high, found.p_value) == (0, 0, 1)


def test_a_better_system_is_better_and_the_other_way_round():
    scores, grades = made(300, 1.0)
    worse = scores + 3 * np.random.default_rng(9).normal(size=300)
    found, turned = compare_pearson(worse, scores, grades), compare_pearson(scores, worse, grades)
    assert found.difference == pytest.approx(
        stats.pearsonr(scores, grades).statistic - stats.pearsonr(worse, grades).statistic
    )
    assert 0 < found.low < found.difference < found.high
    assert found.p_value == pytest.approx(2 / 10_001)
    assert (turned.low, turned.high) == pytest.approx((-found.high, -found.low))
    assert turned.p_value == found.p_value


def test_p_value_by_hand():
    # 3 of 9 resamples are at or below no difference, 7 at or above (one is equal): 2 (3 + 1) / (9 + 1)
    second = np.array([-1, -2, 0, 1, 2, 3, 4, 5, 6.0])
    assert comparison(0.1, 0.4, np.zeros(9), second).p_value == pytest.approx(0.8)
    assert comparison(0.1, 0.4, np.zeros(9), second).difference == pytest.approx(0.3)


def test_p_values_of_nothing_are_spread_evenly():
    random, values = np.random.default_rng(3), []
    for _ in range(200):
        grades = random.normal(size=80)
        one, other = (grades + random.normal(size=80) for _ in range(2))
        values.append(compare_pearson(one, other, grades, resamples=200).p_value)
    assert 0.01 < np.mean(np.array(values) < 0.05) < 0.12
    assert 0.35 < np.mean(np.array(values) < 0.5) < 0.65


def test_constant_and_broken_scores_are_undefined():
    scores, grades = made(30, 1.0)
    for bad in (np.ones(30), np.full(30, 0.1), np.where(np.arange(30) == 4, math.nan, scores)):
        both = resampled_pearson(np.stack([bad, scores]), grades, resamples=50)
        assert np.isnan(both[0]).all() and np.isfinite(both[1]).all()
        assert math.isnan(pearson_interval(bad, grades, resamples=50).low)
        assert math.isnan(comparison(math.nan, 0.5, *both).p_value)
    # two pairs: half of the resamples are one pair twice
    two = resampled_pearson([0.0, 1.0], [1.0, 2.0], resamples=400)
    assert 0.4 < np.isnan(two).mean() < 0.6 and np.nanmin(two) == pytest.approx(1)


def test_what_does_not_fit_is_refused():
    with pytest.raises(EvaluationError, match=r"\(3,\) do not fit grades of shape \(4,\)"):
        resampled_pearson([1, 2, 3], [1, 2, 3, 4])
    with pytest.raises(EvaluationError, match="do not fit"):
        resampled_pearson([1.0], [1.0])
    with pytest.raises(EvaluationError, match="0 resamples"):
        resampled_pearson([1, 2, 3], [1, 2, 3], resamples=0)


def test_it_is_fast():
    scores, grades = made(750, 1.0)
    seconds = []
    for _ in range(3):
        start = time.process_time()
        pearson_interval(scores, grades)
        seconds.append(time.process_time() - start)
    assert min(seconds) < 1
