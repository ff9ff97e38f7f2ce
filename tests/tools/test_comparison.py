"""Contributions of pieces and of words to a cosine: their sum, words really left out, and what is
refused.
"""

from __future__ import annotations

import numpy as np
import pytest
import torch
from support.dual_encoder import new_model
from support.generative import new_generator

import st_paragram
from st_paragram.core.tokenizers.bilingual import BilingualTokenizer, Sharing
from st_paragram.errors import ParagramError, TextError
from st_paragram.families.bgt.sentence_transformers_encoder import GenerativeEncoder
from st_paragram.learning.models import load_save
from st_paragram.learning.models.sentence_transformers_encoder import pipeline
from st_paragram.learning.modules.token_embedding import token_embedding
from st_paragram.tools.comparison import _readable, compare, languages_of, readers


@pytest.fixture(scope="module")
def mini():
    return st_paragram.Encoder("p-sp-mini")


def test_contributions_are_those_of_the_definition_and_sum_to_the_cosine(mini):
    sentences = "Where is the waterfalls station?", "¿Dónde está la estación de tren?"
    found = compare(mini, *sentences)
    u, v = mini.encode(list(sentences)).astype(np.float64)
    scale = np.linalg.norm(u) * np.linalg.norm(v)
    assert found.exact and found.cosine == pytest.approx(u @ v / scale, abs=1e-6)
    assert [part.text for part in found.first] == [
        "where",
        "is",
        "the",
        "water",
        "…falls",
        "station",
        "?",
    ]
    for parts, sentence, other in ((found.first, sentences[0], v), (found.second, sentences[1], u)):
        rows = mini.model.table.rows(mini.tokenizer.encode([sentence])[0])
        expected = rows.astype(np.float64) @ other / (len(rows) * scale)
        np.testing.assert_allclose([part.contribution for part in parts], expected, atol=1e-6)
        assert sum(part.contribution for part in parts) == pytest.approx(found.cosine, abs=1e-9)


def test_pieces_are_shown_as_people_read_them():
    shown = _readable(["▁a", "b", None, "c", "▁", "▁d", "1", "!", "e", "猫", "f"])
    assert shown == ["a", "…b", "(unknown)", "c", "(space)", "d", "…1", "!", "e", "猫", "f"]


@pytest.mark.parametrize("family", ["bgt", "muse"])
def test_words_are_left_out_of_other_models(family, store, vocabulary, pairs):
    torch.manual_seed(5)
    model = new_model(store)
    if family == "bgt":
        generator = new_generator(vocabulary, "bgt")
        model = GenerativeEncoder.of(
            generator.semantic.pipeline, ("en", "xx"), vocabulary, generator
        )
    first, second = pairs[0]
    words = first.split()
    found = compare(model, first, second)
    assert not found.exact and [part.text for part in found.first] == words
    vectors = model.encode([" ".join(words[1:]), first, second]).astype(np.float64)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    assert found.cosine == pytest.approx(vectors[1] @ vectors[2], abs=1e-5)
    assert found.first[0].contribution == pytest.approx(
        (vectors[1] - vectors[0]) @ vectors[2], abs=1e-5
    )
    alone = compare(model, words[0], second)
    assert alone.first[0].contribution == alone.cosine
    with pytest.raises(TextError, match="a sentence has 101 words"):
        compare(model, "a", "a " * 101)


class Fixed:
    """A model that gives texts vectors by their words."""

    def encode(self, texts, **_):
        vectors = {
            "a b c": [3, 4],
            "b c": [7, 0],
            "a c": [0, 1],
            "a b": [0, 0],
            "z": [2, 0],
            "nan": [np.nan, 1],
        }
        return np.array([vectors.get(text, [0, 0]) for text in texts], np.float32)


def test_words_left_out_by_hand():
    found = compare(Fixed(), "a b c", "z")  # cosine 0.6, then 1, 0, and 0 for an embedding of zeros
    np.testing.assert_allclose([part.contribution for part in found.first], [0.6 - 1, 0.6, 0.6])


@pytest.mark.parametrize(
    ("text", "message"), [("a b", "knows no token in 'a b'"), ("nan", "NaN or infinite")]
)
def test_an_embedding_without_direction_is_refused(text, message):
    for sentences in ((text, "z"), ("z", text)):
        with pytest.raises(ParagramError, match=message):
            compare(Fixed(), *sentences)


def test_each_of_two_vocabularies_reads_a_sentence(vocabulary, pairs, tmp_path):
    tokenizer = BilingualTokenizer.of(vocabulary, vocabulary, Sharing.DISJOINT, ("en", "xx"))
    load_save.save(pipeline(token_embedding(tokenizer, 8)), tmp_path / "both")
    model = st_paragram.Encoder(tmp_path / "both")
    u, v = model.in_language("en").encode(pairs[0][0]), model.in_language("xx").encode(pairs[0][1])
    assert languages_of(model) == ("en", "xx") and len(set(readers(model))) == 2
    assert compare(model, *pairs[0]).cosine == pytest.approx(
        u @ v / np.linalg.norm(u) / np.linalg.norm(v), abs=1e-5
    )
