"""The BiLSTM encoders of ACL 2019, over sentencepiece and over words, against loops over cells and
stock modules.
"""

import numpy as np
import pytest
import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import LSTM, Pooling
from support.data import make_pairs
from torch import nn

import st_paragram
from st_paragram.core.pair_store import PairStore, PairStoreWriter
from st_paragram.core.tokenizers.words import WordTokenizer, train_words
from st_paragram.errors import SettingsError
from st_paragram.families.psp.settings import TrainingSettings
from st_paragram.families.psp.training import new_model

LENGTHS = [3, 1, 7, 2, 7, 12, 1, 5]


@pytest.fixture
def words(tmp_path, pairs):
    tokenizer = WordTokenizer(train_words(text for pair in pairs for text in pair))
    with PairStoreWriter(tmp_path / "words.h5", ("en", "xx"), tokenizer) as writer:
        writer.append(
            *(part for side in (0, 1) for part in tokenizer.encode([pair[side] for pair in pairs]))
        )
    return PairStore(tmp_path / "words.h5")


def hand_loop(layer, tokens):
    """States (n, 2 * hidden) of one text, token by token."""
    sides = []
    for end in ("", "_reverse"):
        cell = nn.LSTMCell(layer.input_size, layer.hidden_size)
        cell.load_state_dict(
            {name: getattr(layer, f"{name}_l0{end}") for name in cell.state_dict()}
        )
        hidden = state = torch.zeros(1, layer.hidden_size)
        found = []
        for token in tokens.flip(0) if end else tokens:
            hidden, state = cell(token[None], (hidden, state))
            found.append(hidden[0])
        sides.append(torch.stack(found[::-1] if end else found))
    return torch.cat(sides, dim=1)


@pytest.mark.parametrize("texts_a_run", [1, 3, 96])
def test_states_means_and_gradients_are_those_of_loops_over_cells_and_of_stock_modules(
    store, monkeypatch, texts_a_run
):
    monkeypatch.setattr("st_paragram.families.psp.bilstm._TEXTS_PER_RUN", texts_a_run)
    model = new_model(store, TrainingSettings(encoder="blstm", dim=12, hidden_dim=5, device="cpu"))
    generator = torch.Generator().manual_seed(3)
    texts = [
        torch.randint(3, len(store.tokenizer()), (n,), generator=generator).tolist()
        for n in LENGTHS
    ]
    expected = [
        hand_loop(model[1].encoder, model[0].embedding.weight[torch.tensor(text)]) for text in texts
    ]
    stock = LSTM(12, 5)
    stock.load_state_dict(model[1].state_dict())
    gradients, target = [], torch.randn(len(texts), 10, generator=generator)
    for modules in (list(model), [model[0], stock, Pooling(10)]):
        features = model[0].preprocess(texts)
        for module in modules:
            features = module(features)
        torch.testing.assert_close(
            features["sentence_embedding"], torch.stack([one.mean(0) for one in expected])
        )
        for found, states in zip(features["token_embeddings"], expected, strict=True):
            torch.testing.assert_close(found[: len(states)], states)
        model.zero_grad()
        (features["sentence_embedding"] * target).sum().backward()
        gradients.append(
            [model[0].embedding.weight.grad, *(p.grad for p in modules[1].parameters())]
        )
    torch.testing.assert_close(*gradients)


def test_a_text_without_a_known_word_has_an_embedding(words):
    model = new_model(
        words, TrainingSettings(encoder="blstm-word", dim=12, hidden_dim=5, device="cpu")
    )
    alone, empty, _ = model.encode(["zzzz", "", make_pairs(1)[0][0]])
    assert np.isfinite(alone).all() and np.abs(alone).max() > 0 and np.array_equal(alone, empty)


def test_both_readers_open_a_bilstm_over_words(tmp_path, words):
    model = new_model(
        words, TrainingSettings(encoder="blstm-word", dim=8, hidden_dim=6, device="cpu")
    )
    folder = st_paragram.save(model, tmp_path / "blstm-word")
    texts = [text for pair in make_pairs(9) for text in pair]
    stock = SentenceTransformer(str(folder), device="cpu", trust_remote_code=True)
    for reader in (st_paragram.load(folder, device="cpu"), stock):
        np.testing.assert_allclose(reader.encode(texts), model.encode(texts), atol=1e-6)
        np.testing.assert_allclose(
            reader.encode(texts, batch_size=1), model.encode(texts), atol=1e-6
        )


def test_an_encoder_over_other_tokens_is_refused(store, words):
    for encoder, data in (("blstm-word", store), ("blstm", words), ("trigram", words)):
        with pytest.raises(SettingsError, match=f"but the encoder {encoder} reads"):
            new_model(data, TrainingSettings(encoder=encoder, device="cpu"))
    with pytest.raises(
        SettingsError, match=r"scramble is 0\.3, but the encoder sp ignores order; use it with"
    ):
        TrainingSettings(scramble=0.3)
