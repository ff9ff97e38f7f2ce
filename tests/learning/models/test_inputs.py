"""What `encode` takes, and what it refuses in one line."""

import numpy as np
import pytest
import torch

from st_paragram.errors import SettingsError
from st_paragram.learning.models.encoder import pipeline
from st_paragram.learning.modules.sentencepiece_embedding import SentencePieceEmbedding


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
        ([[10**5000]], "id <int> is not in 0"),
        ([None], "inputs of type NoneType"),
        (None, "inputs of type NoneType"),
        (7, "inputs of type int"),
        ([7], "inputs of type int"),
        ([1.5], "inputs of type float"),
        (b"ba", "inputs of type bytes"),
        ([b"ba"], "inputs of type bytes"),
        (["ba", None], "inputs of type NoneType, str"),
        (["ba", [5]], "inputs of type list, str"),
        ([{5}], "inputs of type set"),
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
