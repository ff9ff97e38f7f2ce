"""What `encode` takes, and what it refuses in one line."""

import numpy as np
import pytest
from support.columns import columns, iterables

from st_paragram.errors import SettingsError
from st_paragram.learning.models.sentence_transformers_encoder import pipeline
from st_paragram.learning.modules.token_embedding import SentencePieceEmbedding


@pytest.fixture(scope="module")
def model(vocabulary):
    return pipeline(SentencePieceEmbedding(vocabulary, 4), device="cpu")


@pytest.mark.parametrize(
    ("inputs", "seen"),
    [
        ([["ba", "ce"]], r"a list of texts in a list: \['ba', 'ce'\]; give a flat list"),
        ([[5], [10**6]], "id 1000000 is not in 0"),
        ([None], r"text 0 of 1 \(counted from 0\) is None \(NoneType\)"),
        (7, "inputs of type int"),
        (["ba", [5]], "inputs of type list, str"),
    ],
)
def test_what_is_neither_text_nor_ids_is_refused(model, inputs, seen):
    with pytest.raises(SettingsError, match=seen) as caught:
        model.encode(inputs)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "arguments", [{}, {"output_value": None}], ids=["fast", "by the base class"]
)
@pytest.mark.parametrize("name", ["encode", "encode_query", "encode_document"])
def test_columns_and_iterables(model, name, arguments):
    rows = ["ba", "ce di", "ba fo"]
    encode = getattr(model, name)
    expected = encode(rows, **arguments)
    for container, inputs in [*iterables(rows), *columns(rows)]:
        found = encode(inputs, **arguments)
        assert type(found) is type(expected) and len(found) == 3, container
        for one, other in zip(found, expected, strict=True):
            one, other = (
                each if isinstance(each, np.ndarray) else each["sentence_embedding"]
                for each in (one, other)
            )
            np.testing.assert_array_equal(one, other, container)


def test_no_rows_give_no_vectors_and_a_row_that_is_not_text_is_named(model):
    for container, inputs in [*iterables([]), *columns([])]:
        embeddings = model.encode(inputs)
        assert embeddings.shape == (0, model.get_embedding_dimension()), container
        assert embeddings.dtype == np.float32, container
    rows = ["ba", "ba", None, "ce"]
    for container, inputs in [*iterables(rows), *columns(rows)]:
        with pytest.raises(SettingsError, match=r"^text 2 of 4 \(counted from 0\) is ") as caught:
            model.encode(inputs=inputs)
        assert "\n" not in str(caught.value), container
