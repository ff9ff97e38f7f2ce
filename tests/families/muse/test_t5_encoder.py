"""The transformer of dual encoders out of stock modules."""

import itertools

import numpy as np
import pytest
import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Normalize
from support.tokenizer import WordTokenizer

from st_paragram.core.tokenizers.sentencepiece import SentencePieceTokenizer
from st_paragram.errors import SettingsError
from st_paragram.families.muse.t5_encoder import t5_modules
from st_paragram.learning.modules.transformer_encoder import TransformerShape, special_ids

SHAPE = TransformerShape(dim=8, layers=2, heads=2, ffn_dim=12, dropout=0.4, max_length=20)


@pytest.fixture(scope="module")
def made(vocabulary):
    torch.manual_seed(4)
    return {bag: SentenceTransformer(modules=t5_modules(vocabulary, SHAPE, bag), device="cpu") for bag in (True, False)}


def test_it_begins_as_the_bag_of_pieces_and_end(made, vocabulary, pairs):
    texts = [text for text, _ in pairs[:20]]
    table, end = made[True][0].model.shared.weight.detach(), special_ids(vocabulary).end
    ids, offsets = vocabulary.encode(texts, SHAPE.max_length - 1)
    bags = [table[[*ids[a:b].tolist(), end]].mean(0) for a, b in itertools.pairwise(offsets)]
    np.testing.assert_allclose(made[True].encode(texts), torch.stack(bags), atol=1e-6)


def test_the_network_is_weighed_beside_it(made, pairs):
    model, texts = made[True], [text for text, _ in pairs[:20]]
    weights = model[1].layer_weights
    assert weights.tolist() == [1.0, 0.0, 0.0] and weights.requires_grad
    bag = model.encode(texts)
    try:
        with torch.no_grad():
            weights[2] = 1.0
            both = model.encode(texts)
            weights[0] = 0.0
            network = model.encode(texts)
    finally:
        weights.data.copy_(torch.tensor([1.0, 0.0, 0.0]))
    np.testing.assert_allclose(both, (bag + network) / 2, atol=1e-6)
    assert np.abs(network - bag).max() > 0.1


def test_without_the_bag_there_are_the_last_states_alone(made, pairs):
    assert len(made[False]) == 2 and made[False].get_embedding_dimension() == SHAPE.dim
    one, other = made[False].encode(["ba ce di", "di ce ba"])
    assert np.abs(one - other).max() > 1e-3  # order counts


@pytest.mark.parametrize("bag", [True, False])
def test_saved_and_opened_without_a_word(made, pairs, tmp_path, bag, caplog):
    model = SentenceTransformer(modules=[*made[bag], Normalize()], device="cpu")
    model.save_pretrained(str(tmp_path))
    opened, texts = SentenceTransformer(str(tmp_path), device="cpu"), [text for text, _ in pairs[:10]]
    np.testing.assert_array_equal(opened.encode(texts), model.encode(texts))
    assert opened.max_seq_length == SHAPE.max_length
    assert not caplog.messages


def test_what_is_refused(vocabulary):
    with pytest.raises(SettingsError, match="dim is 8 and heads 3; dim must be a multiple of heads"):
        t5_modules(vocabulary, TransformerShape(8, 1, 3, 8))
    with pytest.raises(SettingsError, match="a transformer reads sentencepiece ids, not words-of-tests ids"):
        t5_modules(WordTokenizer(b"ba\nce"), SHAPE)
    with pytest.raises(SettingsError, match="segmented by jieba"):
        t5_modules(SentencePieceTokenizer(vocabulary.content, segmentation="jieba"), SHAPE)
