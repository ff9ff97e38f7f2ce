import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from st_paragram.errors import TextError
from st_paragram.tools.evaluation.own import graded
from st_paragram.tools.evaluation.own.graded import PEARSON, SPEARMAN, read_own_graded

ROWS = [("3.5", "a cat", "one cat"), ("-1", "a dog", "42"), ("0", "7", "8")]


def written(folder, rows, name="graded.tsv"):
    path = folder / name
    path.write_text("".join("\t".join(row) + "\n" for row in rows), encoding="utf-8")
    return path


@pytest.mark.parametrize("order", [(0, 1, 2), (1, 0, 2), (1, 2, 0)])
@pytest.mark.parametrize("header", [(), [("similarity", "first", "second")]])
def test_the_column_of_scores_is_found(tmp_path, order, header):
    path = written(tmp_path, [[row[column] for column in order] for row in [*header, *ROWS]])
    pairs, notes = read_own_graded(path)
    assert pairs.grades == [3.5, -1, 0]
    assert (pairs.first, pairs.second) == (["a cat", "a dog", "7"], ["one cat", "42", "8"])
    assert len(notes) == len(header) and all("the first row has no number in column" in note for note in notes)


def test_columns_of_a_table_are_named(tmp_path):
    (tmp_path / "graded.csv").write_text('id,s1,s2,score\n1,"a, b",c,0.5\n2,d,e,1\n')
    pairs, _ = read_own_graded(tmp_path / "graded.csv", ("score", "s1", "s2"))
    assert (pairs.grades, pairs.first, pairs.second) == ([0.5, 1], ["a, b", "d"], ["c", "e"])
    lines = tmp_path / "graded.jsonl"
    lines.write_text('{"a": "x", "s": 1.5, "b": "y"}\n\n{"a": "z", "s": 2, "b": "w"}\n')
    assert read_own_graded(lines, ("s", "a", "b"))[0].grades == [1.5, 2]
    lines.write_text('{"a": "x", "s": 1, "b": "y"}\n{"a": "z", "s": true, "b": "w"}\n')
    with pytest.raises(TextError, match=r"graded\.jsonl: row 2: column 1 has 'True', not a score"):
        read_own_graded(lines, ("s", "a", "b"))


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([*ROWS, ("good", "a", "b")], r"row 4: column 1 has 'good', not a score"),
        ([*ROWS, ("nan", "a", "b")], r"row 4: column 1 has 'nan', not a score"),
        ([*ROWS, ("inf", "a", "b")], r"row 4: column 1 has 'inf'"),
        ([("a", "b", "c"), ("d", "e", "f")], r"row 1: column 1 has 'a', not a score"),
        ([("1", "a", "b"), ("2", " ", "b")], r"row 2: an empty sentence"),
        ([("1", "a", "b"), ("1.0", "c", "d")], r"2 pairs of one score"),
        ([("1", "a", "b")], r"1 pair of one score"),
        ([("1", "a", "b"), ("2", "a")], r"row 2 has 2 columns"),
        ([], "empty"),
    ],
)
def test_bad_files_are_refused(tmp_path, rows, message):
    with pytest.raises(TextError, match=rf"graded\.tsv: {message}"):
        read_own_graded(written(tmp_path, rows))


@given(st.text(max_size=60))
def test_files_of_any_content_are_read_or_refused(tmp_path_factory, text):
    path = tmp_path_factory.mktemp("any") / "any.tsv"
    path.write_text(text, encoding="utf-8", errors="replace", newline="")
    try:
        pairs, _ = read_own_graded(path)
    except TextError as error:
        assert str(path) in str(error)
    else:
        assert len(pairs) >= 2 and all(map(math.isfinite, pairs.grades))


def test_models_are_resampled_alike():
    grades = np.arange(40) % 7.0
    scores = {"good": grades + 0.1 * np.sin(np.arange(40)), "same": np.ones(40)}
    scores["again"] = scores["good"]
    samples = graded._samples(scores, grades)
    for measure in (PEARSON, SPEARMAN):
        good, again, same = (samples[name][measure] for name in ("good", "again", "same"))
        assert good.value == again.value > 0.98 and math.isnan(same.value)
        np.testing.assert_array_equal(good.resampled, again.resampled)
        assert abs(good.resampled.mean() - good.value) < 0.01 and np.isnan(same.resampled).all()
