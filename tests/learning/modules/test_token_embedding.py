"""`TokenEmbedding` on a tokenizer that is not sentencepiece, before our modules and sentence-transformers' own."""

import numpy as np
import pytest
import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import LSTM, Pooling
from support.tokenizer import WordTokenizer

from st_paragram.core.encoding.table import Table, TableType
from st_paragram.core.tokenizers import base
from st_paragram.errors import ModelDirectoryError, SettingsError
from st_paragram.learning.models.sentence_transformers_encoder import pipeline
from st_paragram.learning.modules.compact_embedding import in_torch
from st_paragram.learning.modules.token_embedding import TokenEmbedding

TEXTS = ["ba ce di", "", "Ω", "CE ce Ω", "di ba"]


@pytest.fixture
def tokenizer():
    return WordTokenizer(b"ba\nce\ndi")


@pytest.fixture
def embedding(tokenizer):
    return TokenEmbedding(tokenizer, 6)


def plain_ids(text):
    ids = {"ba": 1, "ce": 2, "di": 3}
    return [ids[word] for word in text.lower().split() if word in ids] or [0]


def test_encode_is_the_plain_mean(embedding):
    table = embedding.embedding.weight.detach()
    expected = torch.stack([table[plain_ids(text)].mean(0) for text in TEXTS])
    model = pipeline(embedding, device="cpu")
    np.testing.assert_allclose(model.encode(TEXTS), expected.numpy(), atol=1e-6)
    ids = [plain_ids(text) for text in TEXTS]
    np.testing.assert_allclose(model.encode(ids), expected.numpy(), atol=1e-6)
    with pytest.raises(SettingsError, match="outside the vocabulary"):
        model.encode([[4]])


@pytest.mark.parametrize("kind", list(TableType))
def test_save_and_load(embedding, tokenizer, tmp_path, monkeypatch, kind):
    monkeypatch.setitem(base.KINDS, "words-of-tests", "support.tokenizer:WordTokenizer")
    if kind is not TableType.FLOAT32:
        compact = in_torch(Table(embedding.embedding.weight.detach().numpy()).converted(kind))
        embedding = TokenEmbedding(WordTokenizer(tokenizer.content, lower_case=False), weights=compact, dropout=0.2)
    embedding.save(str(tmp_path))
    loaded = TokenEmbedding.load(str(tmp_path))
    assert type(loaded) is TokenEmbedding and loaded.tokenizer == embedding.tokenizer
    assert loaded.get_config_dict() == embedding.get_config_dict()
    ids = torch.arange(4)
    assert torch.equal(loaded.embedding(ids), embedding.embedding(ids))
    (tmp_path / "words-of-tests.model").unlink()
    with pytest.raises(ModelDirectoryError, match=r"words-of-tests\.model is missing"):
        TokenEmbedding.load(str(tmp_path))


def test_an_lstm_behind_it_sees_the_tokens_of_each_text_alone(embedding):
    lstm = LSTM(6, 5)
    model = SentenceTransformer(modules=[embedding, lstm, Pooling(10, pooling_mode="mean")], device="cpu")
    table = embedding.embedding.weight.detach()
    expected = []
    for text in TEXTS:
        outputs, _ = lstm.encoder(table[plain_ids(text)][None])
        expected.append(outputs[0].mean(0).detach())
    np.testing.assert_allclose(model.encode(TEXTS), torch.stack(expected).numpy(), atol=1e-6)


def test_a_table_of_another_size_is_refused(tokenizer):
    with pytest.raises(SettingsError, match=r"a table of shape \(3, 2\) for a tokenizer of 4 ids"):
        TokenEmbedding(tokenizer, weights=torch.zeros(3, 2))
