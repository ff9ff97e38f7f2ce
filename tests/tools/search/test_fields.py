"""Fields and filters, against plain Python."""

import operator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from st_paragram.errors import SettingsError
from st_paragram.tools.search.fields import Column, FieldBuilder, Fields, Kind, common, guessed, joined, write_columns
from st_paragram.tools.search.filters import Condition, conditions, passing

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=6)
NUMBERS = st.one_of(st.integers(-(2**63), 2**63 - 1), st.floats(-1e15, 1e15, allow_nan=False))
COLUMNS = st.one_of(
    st.lists(st.one_of(st.none(), TEXTS)),
    st.lists(st.one_of(st.none(), NUMBERS)),
    st.lists(st.one_of(st.none(), st.booleans())),
    st.lists(st.one_of(st.none(), st.integers(-(2**63), 2**63 - 1))),
)
COMPARE = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def build(values, **options):
    builder = FieldBuilder(**options)
    for line, value in enumerate(values, 1):
        builder.add({"a": value}, line)
    return builder.columns()


@given(COLUMNS)
def test_values_come_back_from_files_as_they_were_given(tmp_path_factory, values):
    columns = build(values)
    folder = tmp_path_factory.mktemp("fields")
    records = write_columns(folder, columns)
    opened = Fields(folder, records, len(values))
    for row, value in enumerate(values):
        found = opened.of(row)
        mixed = any(isinstance(each, float) for each in values)
        assert found == ({} if value is None else {"a": float(value) if mixed else value})
        assert value is None or mixed or type(found["a"]) is type(value)


@given(COLUMNS, st.data())
def test_conditions_hold_as_python_compares(values, data):
    columns = build(values)
    if not columns:
        return
    if any(isinstance(value, float) for value in values):
        values = [None if value is None else float(value) for value in values]
    other = data.draw(st.sampled_from([value for value in values if value is not None]))
    for sign, compare in COMPARE.items():
        expected = [sign == "!=" if value is None else compare(value, other) for value in values]
        assert passing([Condition("a", sign, (other,))], columns, len(values)).tolist() == expected


def test_conditions_are_read():
    assert conditions("lang=es, en") == [Condition("lang", "=", ("es", "en"))]
    assert conditions(["year >= 2020", "a!=b=c"]) == [
        Condition("year", ">=", ("2020",)),
        Condition("a", "!=", ("b=c",)),
    ]
    assert conditions({"a": 1, "b": ["x", "y"]}) == [Condition("a", "=", (1,)), Condition("b", "=", ("x", "y"))]
    assert conditions("a<b,c") == [Condition("a", "<", ("b,c",))] and conditions(None) == []
    for text in ("", "a", "=1", "a=", "a=1,", "a b=1"):
        with pytest.raises(SettingsError, match="write FIELD=VALUE"):
            conditions(text)


def test_what_texts_are_taken_for():
    assert guessed(["1", "-20"]) is Kind.INTEGER and guessed(["1", "2.5"]) is Kind.NUMBER
    assert guessed(["true", "False"]) is Kind.BOOLEAN and guessed(["007"]) is guessed(["1", "x"]) is Kind.TEXT
    assert build(["1", None, "2"], guess=True)["a"].kind is Kind.INTEGER
    assert build(["1"], guess=True, known={"a": Kind.TEXT})["a"].kind is Kind.TEXT
    with pytest.raises(SettingsError, match="field a is text here and integer in the index"):
        build(["x"], guess=True, known={"a": Kind.INTEGER})


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (["x", 1], "line 2, field a: 1 is integer, values before it are text"),
        ([1, True], "line 2, field a: True is boolean"),
        ([2**63], "line 1, field a: 9223372036854775808 is not text, a number of 64 bits"),
        ([{}], "line 1, field a: {} is not"),
    ],
)
def test_values_that_cannot_be_kept_are_refused(values, message):
    with pytest.raises(SettingsError, match=message):
        build(values)


def test_whole_numbers_are_numbers_among_others():
    (found,) = [build([1, 2.5, None, float("nan"), np.int64(3), ""])["a"]]
    assert found.kind is Kind.NUMBER and [found.of(row) for row in range(6)] == [1.0, 2.5, None, None, 3.0, None]


def test_columns_of_parts_become_one():
    one, other = build(["b", None])["a"], build(["c", "a"])["a"]
    both = joined([{"a": one}, {}, {"a": other}], [2, 1, 2])["a"]
    assert list(both.values) == ["a", "b", "c"] and both.codes.tolist() == [2, 0, 0, 3, 1]
    assert common([Column(Kind.TEXT, ["a", "unused", "b"], np.array([3, 1]))])[0].values == ["a", "b"]
    with pytest.raises(SettingsError, match="field a is text and integer"):
        joined([{"a": one}, {"a": build([1])["a"]}], [2, 1])


def test_many_values_take_wider_codes():
    column = build([str(number) for number in range(300)])["a"]
    assert column.codes.dtype == np.uint16 and column.of(299) == "299"
