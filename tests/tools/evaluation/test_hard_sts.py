from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from st_paragram.tools.evaluation.files import GradedPairs
from st_paragram.tools.evaluation.hard_sts import (
    SPLITS,
    HardPairs,
    Split,
    distinct_pairs,
    score,
    split_rows,
    symmetric_word_error_rate,
    tokens,
)
from st_paragram.tools.evaluation.report import published
from st_paragram.tools.evaluation.sts_sets import StsData

SOME_TOKENS = st.lists(st.sampled_from("abcd"), min_size=1, max_size=8)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("A man is riding.", ["a", "man", "is", "riding", "."]),
        ("Don't (we  CAN’T)!", ["don", "'t", "(", "we", "can", "'t", ")", "!"]),
        ("U.S. $3.5", ["u", ".", "s", ".", "$", "3", ".", "5"]),
        ("hombre—niño", ["hombre", "—", "niño"]),
    ],
)
def test_tokens(text, expected):
    assert tokens(text) == expected


@pytest.mark.parametrize(
    ("first", "second", "rate"),
    [
        ("a b c", "a b c", 0),
        ("a b c", "a x c", 1 / 3),
        ("a b c d", "b c", (2 / 4 + 2 / 2) / 2),  # two deletions
        ("a b", "c d", 1),
        ("a b", "b a", 1),  # Levenshtein knows no transposition
        ("a", "a b c d", (3 / 1 + 3 / 4) / 2),  # above 1
        ("the cat sat on the mat", "on the mat the cat sat", 1),
    ],
)
def test_symmetric_word_error_rate_by_hand(first, second, rate):
    assert symmetric_word_error_rate(first.split(), second.split()) == pytest.approx(rate)


@given(SOME_TOKENS, SOME_TOKENS)
def test_rate_is_symmetric_and_zero_only_for_equals(first, second):
    rate = symmetric_word_error_rate(first, second)
    assert rate == pytest.approx(symmetric_word_error_rate(second, first))
    assert (rate == 0) == (first == second)


def test_pairs_are_taken_once_unless_their_grades_differ():
    one = GradedPairs("x", ["a", "a", "a", "b"], ["b", "b", "b", "a"], [1.0, 1.0, 2.0, 1.0])
    got = distinct_pairs([one, GradedPairs("y", ["a", "c"], ["b", "d"], [2.0, 5.0])])
    assert (got.first, got.second, got.grades) == (
        ["a", "a", "b", "c"],
        ["b", "b", "a", "d"],
        [1, 2, 1, 5],
    )


def test_splits_by_hand():
    rates = np.array([0.0, 0.1, 0.1, 0.3, 0.4, 0.5, 0.6, 0.7, 0.9, 0.9])
    grades = np.array([1.0, 0.0, 5.0, 3.0, 2.0, 2.0, 2.0, 2.0, 4.0, 1.5])

    def rows(share, low=0, high=5):
        split = Split("x", "-", share, low, high)
        return np.flatnonzero(split.mask(rates, grades, np.zeros(10, bool))).tolist()

    assert rows(0) == list(range(10)) and rows(0.1) == [0]
    assert rows(0.2) == [0, 1, 2]  # pair 2 ties with the last of the fifth
    assert rows(0.2, 0, 1) == [0, 1]  # both ends count
    assert rows(-0.2) == [8, 9] == rows(-0.1) and rows(-0.2, 4, 5) == [8]


def test_negation_is_on_exactly_one_side():
    first = ["I do not.", "He can't", "not this", "a knot", "x", "cannot"]
    second = ["I do.", "he isn’t", "this", "a tie", "don't", "can"]
    pairs = GradedPairs("x", first, second, [1.0, 2.0, 3.0, 4.0, 5.0, 0.0])
    assert split_rows(pairs)["negation"].tolist() == [0, 2, 4]


def test_scores_are_those_of_the_splits_alone(named):
    cosines, grades = (
        np.linspace(-1, 1, 120) ** 3,
        np.random.default_rng(0).integers(0, 6, 120).astype(float),
    )
    model = named(
        {"x": [1, 0]}
        | {f"{row}": [cosine, np.sqrt(1 - cosine**2)] for row, cosine in enumerate(cosines)}
    )
    pairs = GradedPairs("x", ["x"] * 120, [f"{row}" for row in range(120)], grades.tolist())
    rows = {"some": np.array([3, 50, 70, 110]), "one": np.array([5]), "none": np.array([], int)}
    found = {
        (one.set, one.measure): one
        for one in score("m", model, HardPairs(pairs, rows, StsData({})))
    }
    expected = np.corrcoef(cosines[rows["some"]], grades[rows["some"]])[0, 1]
    assert found["some", "Pearson"].value == pytest.approx(expected, abs=1e-5)
    assert found["some", "Spearman"].items == 4
    assert all(
        found[name, measure].value is None
        for name in ("one", "none")
        for measure in ("Pearson", "Spearman")
    )


def test_the_benchmark_prints_its_splits_and_leaves_out_what_is_not_comparable(
    tmp_path, tiny, texts, write, evaluate
):
    rows = [(number % 6, text, other) for number, (text, other) in enumerate(pairwise(texts[:121]))]
    write(tmp_path / "sts2015" / "belief.tsv", rows)
    printed, scores = evaluate(tiny, "--data", tmp_path, "--benchmarks", "hard-sts")
    assert (
        "| all | all distinct pairs | 120 | 13,023 |" in printed
        and "- 2015/images is missing" in printed
    )
    assert "| hard-high-10 | highest 10% SWER, grade 4-5 |" in printed
    assert "| Hard- | lowest 20% SWER, grade 0-1 |" in printed
    assert (
        "(published, EMNLP 2020)" not in printed
        and "not the published test set: 2015/belief." in printed
    )
    names = [split.name for split in SPLITS]
    assert [s.set for s in scores if s.measure == "Pearson"] == names
    assert (scores[0].benchmark, scores[0].items) == ("hard-sts", 120) and -1 <= scores[
        0
    ].value <= 1
    assert all(sorted(row.figures) == sorted(names) for row in published()["hard-sts"])
