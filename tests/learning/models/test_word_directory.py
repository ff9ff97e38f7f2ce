"""Directories of averaging models on words and trigrams: what each reader finds in them."""

import numpy as np
import pytest
from sentence_transformers import SentenceTransformer

import st_paragram
from st_paragram.core.model_directory.card import render
from st_paragram.core.model_directory.record import TrainingRecord
from st_paragram.core.tokenizers.character_trigrams import CharacterTrigramTokenizer, train_trigrams
from st_paragram.core.tokenizers.words import WordTokenizer, train_words
from st_paragram.learning.models import load_save
from st_paragram.learning.models.card import from_record
from st_paragram.learning.models.sentence_transformers_encoder import pipeline
from st_paragram.learning.modules.token_embedding import TokenEmbedding
from st_paragram.runs.families import facts_of

TEXTS = ["BA Ce", "ba Ω ce", " ba \t ce.  ", "ba, zzz", "ba 😀 ce"]
PLUGIN_ONLY = {"config_sentence_transformers.json", "model.safetensors", "st_paragram.json"}


@pytest.fixture
def words(pairs):
    return WordTokenizer(train_words([text for pair in pairs for text in pair]))


@pytest.fixture
def trigrams(pairs):
    return CharacterTrigramTokenizer(train_trigrams([text for pair in pairs for text in pair]))


def model_of(tokenizer, **settings):
    return pipeline(TokenEmbedding(tokenizer, 12, dropout=0.1), device="cpu", **settings)


def cosines(a, b):
    return (a * b).sum(1) / np.linalg.norm(a, axis=1) / np.linalg.norm(b, axis=1)


def names(folder):
    return {path.name for path in folder.iterdir()}


@pytest.mark.parametrize("dtype", [None, "float16", "int8"])
def test_stock_reader_gives_the_same_directions(words, pairs, tmp_path, dtype):
    model = model_of(words)
    saved = load_save.save(model, tmp_path / "word", dtype=dtype)
    stock = SentenceTransformer(str(saved), device="cpu")
    assert [type(module).__name__ for module in stock] == ["StaticEmbedding"]
    texts = [*TEXTS, *(text for pair in pairs[:100] for text in pair)]
    own = st_paragram.load(saved, device="cpu")
    least = 0.99999 if dtype == "float16" else 0.999999  # the stock reader computes in float16
    assert cosines(stock.encode(texts).astype(np.float32), own.encode(texts)).min() > least
    assert (stock.encode(["zzz", ""]) == 0).all()
    if dtype is None:
        np.testing.assert_array_equal(own.encode([*texts, ""]), model.encode([*texts, ""]))


def test_trigrams_are_read_by_the_plugin(trigrams, pairs, tmp_path):
    model = model_of(trigrams, prompts={"query": "ba "}, similarity_fn_name="dot")
    load_save.check_savable(model)
    saved = load_save.save(model, tmp_path / "trigram")
    assert names(saved) == PLUGIN_ONLY | {"README.md", "trigram.model"}
    loaded = st_paragram.load(saved, device="cpu")
    assert loaded[0].tokenizer == trigrams
    assert (loaded.prompts["query"], loaded.similarity_fn_name) == ("ba ", "dot")
    texts = [*TEXTS, "", *(text for pair in pairs[:40] for text in pair)]
    np.testing.assert_array_equal(loaded.encode(texts), model.encode(texts))


@pytest.mark.parametrize(
    ("encoder", "preparation", "said"),
    [
        ("word", {"tokens": "word"}, ["mean of word embeddings", 'SentenceTransformer("m")']),
        (
            "trigram",
            {"tokens": "trigram"},
            ["character trigrams", '= st_paragram.load("m")', "cannot read"],
        ),
        ("sp", {"sharing": "string"}, ['= st_paragram.load("m")', 'language="tr"']),
    ],
)
def test_the_card_says_how_a_model_opens(encoder, preparation, said):
    settings = {"dim": 4, "encoder": encoder}
    record = TrainingRecord(
        "m", ("en", "tr"), "a text", 3, preparation, "none", settings, 1.0, 3.0, []
    )
    card = render(from_record(record, facts_of(record)))
    assert all(part in card for part in said)
    assert ("cannot read" in card) == ("import SentenceTransformer" not in card)
