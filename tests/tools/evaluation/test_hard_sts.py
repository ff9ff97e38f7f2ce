import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from st_paragram.cli.main import main
from st_paragram.tools.evaluation.files import GradedPairs
from st_paragram.tools.evaluation.hard_sts import (
    SPLITS,
    chosen,
    definition,
    different_pairs,
    edit_distance,
    hard_scores,
    split_rows,
    symmetric_word_error_rate,
    tokens,
)
from st_paragram.tools.evaluation.report import published
from st_paragram.tools.evaluation.scores import read_scores

SOME_TOKENS = st.lists(st.sampled_from("abcd"), max_size=8)


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
    ("first", "second", "distance", "rate"),
    [
        ("a b c", "a b c", 0, 0),
        ("a b c", "a x c", 1, 1 / 3),
        ("a b c d", "b c", 2, (2 / 4 + 2 / 2) / 2),  # two deletions
        ("a b", "c d", 2, 1),
        ("a b", "b a", 2, 1),  # Levenshtein knows no transposition
        ("a", "a b c d", 3, (3 / 1 + 3 / 4) / 2),  # above 1
        ("the cat sat on the mat", "on the mat the cat sat", 6, 1),
    ],
)
def test_symmetric_word_error_rate_by_hand(first, second, distance, rate):
    assert edit_distance(first.split(), second.split()) == distance
    assert symmetric_word_error_rate(first.split(), second.split()) == pytest.approx(rate)


@given(SOME_TOKENS.filter(bool), SOME_TOKENS.filter(bool))
def test_rate_is_symmetric_and_zero_only_for_equals(first, second):
    rate = symmetric_word_error_rate(first, second)
    assert rate == pytest.approx(symmetric_word_error_rate(second, first))
    assert (rate == 0) == (first == second)


def test_pairs_are_taken_once_unless_their_grades_differ():
    one = GradedPairs("x", ["a", "a", "a", "b"], ["b", "b", "b", "a"], [1.0, 1.0, 2.0, 1.0])
    other = GradedPairs("y", ["a", "c"], ["b", "d"], [2.0, 5.0])
    got = different_pairs([one, other])
    assert list(zip(got.first, got.second, got.grades, strict=True)) == [
        ("a", "b", 1.0),
        ("a", "b", 2.0),
        ("b", "a", 1.0),
        ("c", "d", 5.0),
    ]


def test_splits_by_hand():
    rates = np.array([0.0, 0.1, 0.1, 0.3, 0.4, 0.5, 0.6, 0.7, 0.9, 0.9])
    grades = np.array([1.0, 0.0, 5.0, 3.0, 2.0, 2.0, 2.0, 2.0, 4.0, 1.5])

    def rows(share, low=0, high=5):
        return np.flatnonzero(chosen(rates, grades, share, low, high)).tolist()

    assert rows(0) == list(range(10)) and rows(0.1) == [0]
    assert rows(0.2) == [0, 1, 2]  # pair 2 ties with the last of the fifth
    assert rows(0.2, 0, 1) == [0, 1]  # both ends count
    assert rows(-0.2) == [8, 9] == rows(-0.1) and rows(-0.2, 4, 5) == [8]


def test_negation_is_on_exactly_one_side():
    first = ["I do not.", "He can't", "not this", "a knot", "x", "cannot"]
    second = ["I do.", "he isn’t", "this", "a tie", "don't", "can"]
    pairs = GradedPairs("x", first, second, [1.0, 2.0, 3.0, 4.0, 5.0, 0.0])
    assert split_rows(pairs)["negation"].tolist() == [0, 2, 4]


def test_splits_are_those_that_the_paper_reports():
    assert all(row.keys() == SPLITS.keys() for row in published()["hard-sts"].values())
    words = {name: definition(name) for name in SPLITS}
    assert words["Hard+"] == "highest 20% SWER, gold 4-5" and words["Hard-"] == "lowest 20% SWER, gold 0-1"
    assert words["hard-high-10"] == "highest 10% SWER, gold 4-5" and words["easy-low-20"].endswith("gold 3-5")


def some_pairs():
    rng = np.random.default_rng(0)
    words = np.array("ba ce di fo gu ha je ki".split())  # noqa: SIM905
    first = [" ".join(rng.choice(words, 4)) for _ in range(120)]
    second = [" ".join([*text.split()[: rng.integers(1, 4)], *rng.choice(words, 3)]) for text in first]
    return GradedPairs("x", first, second, [float(grade) for grade in rng.integers(0, 6, 120)])


def test_scores_are_those_of_the_splits_alone():
    pairs = some_pairs()
    cosines, grades = np.linspace(-1, 1, len(pairs)) ** 3, np.array(pairs.grades)
    rows = {"some": np.array([3, 50, 70, 110]), "one": np.array([5]), "none": np.array([], int)}
    found = {(score.set, score.measure): score for score in hard_scores("m", cosines, grades, rows)}
    expected = np.corrcoef(cosines[rows["some"]], grades[rows["some"]])[0, 1]
    assert found["some", "Pearson"].value == pytest.approx(expected) and found["some", "Spearman"].items == 4
    assert all(found[name, measure].value is None for name in ("one", "none") for measure in ("Pearson", "Spearman"))


def test_the_benchmark_prints_tables_and_writes_a_record(tmp_path, capsys, tiny):
    pairs = some_pairs()
    folder = tmp_path / "data" / "sts2015"
    folder.mkdir(parents=True)
    rows = zip(pairs.grades, pairs.first, pairs.second, strict=True)
    (folder / "belief.tsv").write_text("".join(f"{grade}\t{a}\t{b}\n" for grade, a, b in rows))
    command = ["evaluate", tiny, "--data", folder.parent, "--benchmarks", "hard-sts", "--json", tmp_path / "hard.json"]
    assert main([*map(str, command)]) == 0
    out = capsys.readouterr().out
    assert "| all | all different pairs | 120 | 13,023 |" in out and "2013" in out
    assert "(published, EMNLP 2020)" not in out and "not the published test set: 2015/belief." in out
    scores = read_scores(tmp_path / "hard.json")
    assert [s.set for s in scores if s.measure == "Pearson"] == list(SPLITS)
    assert (scores[0].benchmark, scores[0].items) == ("hard-sts", 120) and -1 <= scores[0].value <= 1
