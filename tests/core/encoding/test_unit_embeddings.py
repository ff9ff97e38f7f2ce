"""Unit vectors and the rule for texts without a known token, for models of every kind."""

from __future__ import annotations

import numpy as np
import pytest
from sentence_transformers import SentenceTransformer
from support.dual_encoder import new_model
from support.generative import new_generator

from st_paragram import Encoder
from st_paragram.core.encoding.unit_embeddings import (
    known_texts,
    known_to,
    scaled,
    unit_embeddings,
)
from st_paragram.errors import ModelDirectoryError
from st_paragram.families.bgt.sentence_transformers_encoder import GenerativeEncoder
from st_paragram.learning.models.sentence_transformers_encoder import pipeline
from st_paragram.learning.modules.token_embedding import SentencePieceEmbedding

TEXTS = [
    "",
    " ",
    "\u200b",
    "\u0640",
    "გამარჯობა",
    "სად არის სადგური",
    "\ue000 \ue001\ue002",
    "Hello გამარჯობა",
    "ba ce",
]
KNOWN = [False] * 7 + [True] * 2


class Fixed:
    """A model of another library: vectors of texts, and one for all other texts."""

    def __init__(self, vectors, other):
        self.vectors, self.other = vectors, other

    def encode(self, texts, **_):
        return np.array([self.vectors.get(text, self.other) for text in texts])

    def get_embedding_dimension(self):
        return len(self.other)


def test_one_dimension(vocabulary):
    model = pipeline(SentencePieceEmbedding(vocabulary, 1), "cpu")
    assert unit_embeddings(model, TEXTS).known.tolist() == KNOWN
    short = Encoder("p-sp-mini", truncate_dim=1)
    vectors, known = unit_embeddings(short, TEXTS)
    assert known.tolist() == KNOWN and set(np.abs(vectors[known]).ravel()) == {1.0}
    vectors, known = unit_embeddings(
        Fixed({"a": [2.0], "b": [-1.0], "c": [0.0]}, [5.0]), ["a", "b", "c", "d"]
    )
    assert vectors.ravel().tolist() == [1, -1, 0, 1] and known.tolist() == [True, True, False, True]


def test_a_prompt_is_not_a_token_of_the_text():
    encoder = Encoder("p-sp-mini")
    for options in ({"prompt": "query: "}, {"prompt": "query: ", "normalize_embeddings": True}):
        vectors, known = unit_embeddings(encoder, TEXTS, **options)
        assert known.tolist() == KNOWN and not vectors[~known].any()


@pytest.mark.parametrize("kind", ["cnn", "transformer", "generative"])
def test_networks(kind, store, vocabulary):
    texts = [text for text in TEXTS if "Hello" not in text]
    if kind == "generative":
        generator = new_generator(vocabulary)
        model = GenerativeEncoder.of(
            generator.semantic.pipeline, ("en", "xx"), vocabulary, generator
        )
    else:
        model = new_model(store, kind)
    for _, known in (unit_embeddings(model, texts), (None, known_texts(model, texts))):
        assert known.tolist() == [False] * 7 + [True]


@pytest.mark.parametrize("name", ["p-sp-mini", "p-sp-base"])
def test_signs_and_numbers_are_no_knowledge_of_a_sentence(name):
    encoder = Encoder(name)
    unknown = [
        "გუშინ სახლში წავედი.",
        "ის არის მასწავლებელი.",
        "გამარჯობა 2020",
        "እወድሃለሁ።",
        "ខ្ញុំ!",
        "კატა ❤",
    ]
    known = ["2024", "...", "❤", "15 %", "Привет.", "你好。", "გამარჯობა OK", "A"]
    assert unit_embeddings(encoder, unknown + known).known.tolist() == [False] * len(unknown) + [
        True
    ] * len(known)
    for text in unknown + known:  # the same alone, and from the table of all tokens
        assert unit_embeddings(encoder, [text]).known.tolist() == [text in known]
    assert (
        known_texts(encoder, (unknown + known) * 500).tolist()
        == ([False] * len(unknown) + [True] * len(known)) * 500
    )


def test_models_of_other_libraries():
    model = Fixed({"a": [3, 4], "b": [-6, -8], "c": [0, 0]}, [1, 1])
    vectors, known = unit_embeddings(model, ["a", "b", "c", "d"])
    assert known.tolist() == [True, True, False, False]
    np.testing.assert_allclose(vectors, [[0.6, 0.8], [-0.6, -0.8], [0, 0], [0, 0]], atol=1e-7)
    again = scaled(model.encode(["a", "b", "c", "d"]).astype(np.float32), known)
    np.testing.assert_array_equal(again.vectors, vectors)
    assert unit_embeddings(model, []).vectors.shape == (0, 2)
    for bad in (np.nan, np.inf):
        with pytest.raises(
            ModelDirectoryError, match="embedding 2 of 2 has NaN or infinite values"
        ):
            unit_embeddings(Fixed({"a": [3, 4], "b": [bad, 1]}, [1, 1]), ["a", "b"])


def test_tokenizers_of_transformers():
    class Words:
        all_special_ids = (0, 1)

        def __call__(self, texts, **_):
            return {
                "input_ids": [
                    [{"a": 5, "b": 6}.get(word, 1) for word in text.split()] for text in texts
                ]
            }

        def convert_ids_to_tokens(self, number):
            return {5: "\u2581a", 6: "\u2581"}[number]

    assert known_to(Words(), ["a", "x y", "", "b", "x a"]).tolist() == [
        True,
        False,
        False,
        False,
        True,
    ]


def test_plain_sentence_transformers(tmp_path):
    Encoder("p-sp-mini").save(tmp_path / "plain", dtype="float16")
    model = SentenceTransformer(str(tmp_path / "plain"), device="cpu")
    assert unit_embeddings(model, TEXTS).known.tolist() == KNOWN
