"""What `encode` takes, and what it refuses in one line."""

import numpy as np
import pytest
import torch
from support.columns import columns, iterables, tables

from st_paragram.errors import SettingsError
from st_paragram.learning.models.sentence_transformers_encoder import pipeline
from st_paragram.learning.modules.token_embedding import SentencePieceEmbedding


@pytest.fixture(scope="module")
def model(vocabulary):
    return pipeline(SentencePieceEmbedding(vocabulary, 4), device="cpu")


@pytest.mark.parametrize(
    ("inputs", "seen"),
    [
        ([[1.5]], "ids of type float"),
        ([[1.0, 2.0]], "ids of type float"),
        ([[np.float32(1)]], "ids of type float32"),
        ([[True]], "ids of type bool"),
        ([[None]], "ids of type NoneType"),
        ([[[1]]], "ids of type list"),
        ([["ba", "ce"]], "ids of type str"),
        ([[5, "ba"]], "ids of type str"),
        ([[-1]], "id -1 is not in 0"),
        ([[5], [10**6]], "id 1000000 is not in 0"),
        ([[2**64]], "id 18446744073709551616 is not in 0"),
        ([None], r"text 0 of 1 is None \(NoneType\)"),
        (None, "inputs of type NoneType"),
        (7, "inputs of type int"),
        ([7], r"text 0 of 1 is 7 \(int\)"),
        ([1.5], r"text 0 of 1 is 1.5 \(float\)"),
        (b"ba", "inputs of type bytes"),
        ([b"ba"], r"text 0 of 1 is b'ba' \(bytes\)"),
        (["ba", None], r"text 1 of 2 is None \(NoneType\)"),
        (["ba", [5]], "inputs of type list, str"),
        ([{5}], r"text 0 of 1 is \{5\} \(set\)"),
    ],
)
def test_what_is_neither_text_nor_ids_is_refused(model, inputs, seen):
    with pytest.raises(SettingsError, match=seen) as caught:
        model.encode(inputs)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "inputs",
    [np.ones((2, 2)), np.arange(3), torch.ones(3), {"text": 3}, [np.arange(2)], [{"x": "y"}], np.array([b"ba"])],
)
def test_arrays_and_mappings_are_refused_in_a_line(model, inputs):
    with pytest.raises((SettingsError, ValueError)) as caught:
        model.encode(inputs)
    assert "\n" not in str(caught.value)


def test_ids_of_any_whole_kind_are_ids(model):
    expected = model.encode([[5, 6], []])
    for kind in (np.int64, np.uint8, np.int32):
        np.testing.assert_array_equal(model.encode([[kind(5), kind(6)], []]), expected)
    np.testing.assert_array_equal(model.encode([(5, 6), ()]), expected)


def test_texts_in_arrays_and_empty_lists(model):
    np.testing.assert_array_equal(model.encode(np.array(["ba", "ce"])), model.encode(["ba", "ce"]))
    assert len(model.encode([])) == len(model.encode(np.array([], dtype=str))) == 0


@pytest.mark.parametrize("arguments", [{}, {"output_value": None}], ids=["fast", "by the base class"])
@pytest.mark.parametrize("name", ["encode", "encode_query", "encode_document"])
def test_columns_and_iterables(model, name, arguments):
    rows = ["ba", "ce di", "ba fo"]
    encode = getattr(model, name)
    expected = encode(rows, **arguments)
    for container, inputs in [*iterables(rows), *columns(rows)]:
        found = encode(inputs, **arguments)
        assert type(found) is type(expected) and len(found) == 3, container
        for one, other in zip(found, expected, strict=True):
            one, other = (each if isinstance(each, np.ndarray) else each["sentence_embedding"] for each in (one, other))
            np.testing.assert_array_equal(one, other, container)


def test_no_rows_give_what_an_empty_list_gives(model):
    expected = model.encode([])
    for container, inputs in [*iterables([]), *columns([])]:
        assert model.encode(inputs).shape == expected.shape == (0,), container


def test_a_row_that_is_not_text_is_named(model):
    rows = ["ba", "ba", None, "ce"]
    for container, inputs in [*iterables(rows), *columns(rows)]:
        with pytest.raises(SettingsError, match=r"^text 2 of 4 is .*counted from 0") as caught:
            model.encode(inputs=inputs)
        assert "\n" not in str(caught.value), container


def test_whole_tables_are_refused(model):
    for container, table in tables(["ba", "ce"]):
        with pytest.raises(SettingsError, match=r"type (DataFrame|Table|Dataset)") as caught:
            model.encode(table)
        assert "\n" not in str(caught.value), container


def test_an_error_in_a_generator_is_passed_on(model):
    def broken():
        yield "ba"
        raise TypeError("mine")

    with pytest.raises(TypeError, match="mine"):
        model.encode(broken())


def test_a_column_of_ids(model):
    pandas = pytest.importorskip("pandas")
    np.testing.assert_array_equal(model.encode(pandas.Series([[5, 6], [7]])), model.encode([[5, 6], [7]]))
