import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from st_paragram.errors import EvaluationError, ModelDirectoryError
from st_paragram.tools.evaluation.bootstrap import (
    differences,
    interval,
    p_value,
    resampled,
    with_interval,
)
from st_paragram.tools.evaluation.files import GradedPairs
from st_paragram.tools.evaluation.scores import (
    Score,
    correlation,
    cosines,
    pearson,
    ranks,
    read_scores,
    write_scores,
)


def test_correlation_by_hand(named):
    model = named({"a": [1, 0], "b": [0, 1], "c": [1, 1], "d": [-1, 0]})
    pairs = GradedPairs("x", ["a", "a", "a", "b"], ["b", "c", "d", "b"], [1.0, 2.0, 1.5, 5.0])
    got = correlation(cosines(model, pairs), pairs.grades)
    assert got.pearson == pytest.approx(
        np.corrcoef([0, 0.5**0.5, -1, 1], pairs.grades)[0, 1], abs=1e-6
    )
    # ranks 2 3 1 4 against 1 3 2 4
    assert got.spearman == pytest.approx(1 - 6 * (1 + 0 + 1 + 0) / (4 * 15))


@given(st.lists(st.tuples(st.integers(-3, 3), st.floats(-2, 2)), min_size=2, max_size=40))
@settings(max_examples=25)
def test_correlations_are_those_of_scipy(pairs):
    scores, grades = np.array(pairs, float).T
    found = correlation(scores, grades)
    if np.ptp(scores) == 0 or np.ptp(grades) < 1e-6:
        return
    assert found.pearson == pytest.approx(stats.pearsonr(scores, grades).statistic, abs=1e-9)
    assert found.spearman == pytest.approx(stats.spearmanr(scores, grades).statistic, abs=1e-9)


def test_constant_and_broken_scores_have_no_correlation(named):
    assert math.isnan(correlation([1, 1, 1], [1, 2, 3]).pearson) and math.isnan(
        correlation([1], [2]).spearman
    )
    with pytest.raises(
        ModelDirectoryError,
        match="embedding 4 of 4 has NaN or infinite values; the model is damaged",
    ):
        cosines(
            named({"a": [1, 0], "b": [math.nan, 1]}),
            GradedPairs("x", ["a", "a"], ["a", "b"], [1.0, 2.0]),
        )


def test_equal_texts_tie_whatever_float32_makes_of_them(named):
    vectors = {str(i): row for i, row in enumerate(np.random.default_rng(0).normal(size=(50, 300)))}
    assert set(cosines(named(vectors), GradedPairs("x", [*vectors], [*vectors], [0.0] * 50))) == {
        1.0
    }


def test_resamples_are_scored_as_scipy_does():
    random = np.random.default_rng(1)
    x, y = random.normal(size=60), random.integers(0, 5, 60).astype(float)
    seen = []

    def statistic(rows):
        seen.append(rows)
        return pearson(x[rows], y[rows])

    figures = resampled(statistic, 60, seed=3)
    assert figures.shape == (10_001,) and figures[0] == pytest.approx(
        stats.pearsonr(x, y).statistic
    )
    rows = np.concatenate([each for each in seen if len(each) > 1])
    for number in (0, 57, 9_999):
        assert figures[1 + number] == pytest.approx(
            stats.pearsonr(x[rows[number]], y[rows[number]]).statistic
        )
    spearman = pearson(ranks(x[rows[:5]]), ranks(y[rows[:5]]))
    assert spearman[4] == pytest.approx(stats.spearmanr(x[rows[4]], y[rows[4]]).statistic)
    fisher = stats.pearsonr(x, y).confidence_interval()
    assert interval(figures[1:]) == pytest.approx((fisher.low, fisher.high), abs=0.06)
    np.testing.assert_array_equal(figures, resampled(statistic, 60, seed=3))
    assert not np.array_equal(figures, resampled(statistic, 60, seed=4))


def test_fewer_resamples_of_many_items_and_undefined_ones_left_out():
    assert len(resampled(lambda rows: rows.mean(axis=-1), 10_000)) == 2_001
    two = resampled(
        lambda rows: pearson(np.array([0.0, 1.0])[rows], np.array([1.0, 2.0])[rows]), 2
    )[1:]
    # half draw one pair twice
    assert 0.4 < np.isnan(two).mean() < 0.6 and np.nanmin(two) == pytest.approx(1)
    assert interval(two) == pytest.approx((1, 1)) and interval(np.full(9, math.nan)) == (None, None)


def test_p_value_by_hand():
    # 3 of 9 resamples are at or below no difference, 7 at or above (one is equal): 2 (3 + 1) / (9 +
    # 1)
    assert p_value(np.array([-1, -2, 0, 1, 2, 3, 4, 5, 6.0])) == pytest.approx(0.8)
    assert p_value(np.full(99, 1e-15)) == 1 and p_value(np.full(99, 0.1)) == pytest.approx(2 / 100)


def test_models_are_compared_on_the_same_resamples():
    random = np.random.default_rng(2)
    grades = random.normal(size=300)
    good = grades + random.normal(size=300)
    found = {
        "worse": good + 3 * random.normal(size=300),
        "good": good,
        "same": good,
        "flat": np.ones(300),
    }
    scores = [
        with_interval(
            Score(name, "b", "s", "Pearson", items=300),
            resampled(lambda rows, x=x: pearson(x[rows], grades[rows]), 300),
        )
        for name, x in found.items()
    ]
    assert scores[1].low < scores[1].value < scores[1].high and (
        scores[3].value,
        scores[3].low,
    ) == (None, None)
    better, same, flat = differences([*scores, Score("good", "b", "other", "Pearson", 1.0)])
    assert (
        better.against == "worse"
        and 0 < better.low < better.value < better.high
        and better.p_value < 0.001
    )
    assert better.value == pytest.approx(scores[1].value - scores[0].value)
    assert (same.model, same.value, same.low, same.p_value) == (
        "same",
        better.value,
        better.low,
        better.p_value,
    )
    assert (flat.value, flat.low, flat.p_value) == (None, None, None)
    (equal,) = differences(scores[1:3])
    assert (equal.value, equal.low, equal.high, equal.p_value) == (0, 0, 0, 1)


def test_one_item_has_no_interval():
    scores = []
    for name, value in (("a", 0.5), ("b", 0.75)):
        figures = resampled(lambda rows, value=value: np.full(len(rows), value), 1)
        scores.append(with_interval(Score(name, "b", "s", "m", items=1), figures))
    assert [(score.value, score.low, score.high) for score in scores] == [
        (0.5, None, None),
        (0.75, None, None),
    ]
    (difference,) = differences(scores)
    assert (difference.value, difference.low, difference.p_value) == (0.25, None, None)


def test_scores_are_written_and_read(tmp_path):
    scores = [
        Score("m", "sts", "2012", "mean Pearson", 0.5, 10, 0.4, 0.6, draws=np.ones(3)),
        Score("m", "sts", "x", "Pearson", math.nan),
    ]
    write_scores(scores, tmp_path / "out" / "scores.json")
    assert read_scores(tmp_path / "out" / "scores.json") == scores and scores[1].value is None
    (tmp_path / "other.json").write_text('[{"model": "m"}]')
    (tmp_path / "nan.json").write_text(
        '[{"model": "m", "benchmark": "b", "set": "s", "measure": "x", "value": NaN}]'
    )
    (tmp_path / "name.json").write_text(
        '[{"model": 5, "benchmark": "b", "set": "s", "measure": "x", "value": 1}]'
    )
    (tmp_path / "dict.json").write_text("{}")
    for name in ("other.json", "none.json", "out", "nan.json", "name.json", "dict.json"):
        with pytest.raises(EvaluationError, match="create it with `st-paragram evaluate --json`"):
            read_scores(tmp_path / name)
