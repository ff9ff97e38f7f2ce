"""The transformer of dual encoders out of stock modules."""

import itertools

import numpy as np
import pytest
import torch
from sentence_transformers import SentenceTransformer

from st_paragram.core.tokenizers.sentencepiece import SentencePieceTokenizer
from st_paragram.errors import SettingsError
from st_paragram.families.muse.t5_encoder import t5_modules
from st_paragram.learning.modules.transformer_encoder import TransformerShape, special_ids

SHAPE = TransformerShape(dim=8, layers=2, heads=2, ffn_dim=12, dropout=0.4, max_length=20)


def test_it_begins_as_the_bag_of_pieces_and_end_and_the_network_is_weighed(vocabulary, pairs):
    model = SentenceTransformer(modules=t5_modules(vocabulary, SHAPE), device="cpu")
    texts, end = [text for text, _ in pairs[:20]], special_ids(vocabulary).end
    table, weights = model[0].model.shared.weight.detach(), model[1].layer_weights
    ids, offsets = vocabulary.encode(texts, SHAPE.max_length - 1)
    bags = torch.stack(
        [table[[*ids[a:b].tolist(), end]].mean(0) for a, b in itertools.pairwise(offsets)]
    ).numpy()
    assert weights.tolist() == [1.0, 0.0, 0.0] and weights.requires_grad
    np.testing.assert_allclose(model.encode(texts), bags, atol=1e-6)
    with torch.no_grad():
        weights[2] = 1.0
        both = model.encode(texts)
        weights[0] = 0.0
        network = model.encode(texts)
    np.testing.assert_allclose(both, (bags + network) / 2, atol=1e-6)
    assert np.abs(network - bags).max() > 0.1


def test_without_the_bag_there_are_the_last_states_alone(vocabulary, tmp_path, caplog):
    model = SentenceTransformer(modules=t5_modules(vocabulary, SHAPE, keep_bag=False), device="cpu")
    assert len(model) == 2 and model.get_embedding_dimension() == SHAPE.dim
    texts = ["ba ce di", "di ce ba"]
    rows = model.encode(texts)
    assert np.abs(rows[0] - rows[1]).max() > 1e-3  # order counts
    model.save_pretrained(str(tmp_path))
    opened = SentenceTransformer(str(tmp_path), device="cpu")
    np.testing.assert_array_equal(opened.encode(texts), rows)
    assert opened.max_seq_length == SHAPE.max_length and not caplog.messages


def test_a_tokenizer_that_segments_is_refused(vocabulary):
    with pytest.raises(SettingsError, match="segmented by jieba"):
        t5_modules(SentencePieceTokenizer(vocabulary.content, segmentation="jieba"), SHAPE)
