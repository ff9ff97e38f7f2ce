"""The transformer encoder: against torch's own, and as stock sentence-transformers opens it."""

import numpy as np
import pytest
import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Dense, Pooling, Transformer
from support.generative import LATENT, SHAPE, batch_of
from torch import nn

from st_paragram.core.tokenizers.sentencepiece import SentencePieceTokenizer, train_vocabulary
from st_paragram.learning.modules.sentence_batch import SentenceBatch
from st_paragram.learning.modules.transformer_encoder import (
    SpecialIds,
    TransformerShape,
    pooled_states,
    special_ids,
    transformer_pipeline,
)

TWO_LAYERS = TransformerShape(dim=16, layers=2, heads=2, ffn_dim=24, dropout=0.3, max_length=40)


@pytest.fixture(scope="module")
def pipeline(vocabulary):
    return transformer_pipeline(vocabulary, TWO_LAYERS, LATENT, "cpu").eval()


@pytest.fixture(scope="module")
def marked(pairs):
    """A vocabulary of texts in which the names of control pieces stand as text."""
    texts = [f"<s> {a} / s > <unk> <pad> {b} <s>" for a, b in pairs]
    return SentencePieceTokenizer(train_vocabulary(iter(texts), 300))


def embedded(pipeline, batch):
    return pipeline[2].linear(pooled_states(pipeline, batch.ids, batch.mask)).detach()


def test_rows_are_ended_filled_up_and_cut():
    ids, offsets = np.array([5, 6, 7, 8, 9]), np.array([0, 4, 5, 5])
    batch = SentenceBatch.of(ids, offsets, SpecialIds(pad=1, end=2), 4)
    assert batch.ids.tolist() == [[5, 6, 7, 2], [9, 2, 1, 1], [2, 1, 1, 1]]
    assert batch.mask.tolist() == [
        [True] * 4,
        [True, True, False, False],
        [True, False, False, False],
    ]
    assert batch.previous.tolist() == [[2, 5, 6, 7], [2, 9, 2, 1], [2, 2, 1, 1]]
    assert batch.targets.tolist() == [5, 6, 7, 2, 9, 2, 2]
    assert batch.sentences.tolist() == [0, 0, 0, 0, 1, 1, 2]
    assert len(batch) == 3


def torchs_own(encoder, shape):
    """torch's encoder with the weights of Marian's: post-norm, ReLU."""
    layer = nn.TransformerEncoderLayer(shape.dim, shape.heads, shape.ffn_dim, batch_first=True)
    copy = nn.TransformerEncoder(layer, shape.layers, enable_nested_tensor=False).eval()
    for mine, theirs in zip(copy.layers, encoder.layers, strict=True):
        own = theirs.self_attn
        projections = (own.q_proj, own.k_proj, own.v_proj)
        mine.self_attn.in_proj_weight.data = torch.cat([each.weight.data for each in projections])
        mine.self_attn.in_proj_bias.data = torch.cat([each.bias.data for each in projections])
        for one, other in (
            (mine.self_attn.out_proj, own.out_proj),
            (mine.linear1, theirs.fc1),
            (mine.linear2, theirs.fc2),
            (mine.norm1, theirs.self_attn_layer_norm),
            (mine.norm2, theirs.final_layer_norm),
        ):
            one.load_state_dict(other.state_dict())
    return copy


def test_it_is_torchs_transformer_encoder(vocabulary, pairs):
    pipeline = transformer_pipeline(vocabulary, TWO_LAYERS, LATENT, "cpu").eval()
    encoder = pipeline[0].model
    with torch.no_grad():  # biases and norms that are not those of the beginning
        for parameter in encoder.parameters():
            if parameter.requires_grad and parameter.ndim == 1:
                parameter.add_(0.1 * torch.randn_like(parameter))
    batch = batch_of(vocabulary, [a for a, _ in pairs[:25]])
    positions = encoder.embed_positions.weight[: batch.ids.shape[1]]
    x = encoder.embed_tokens(batch.ids) * TWO_LAYERS.dim**0.5 + positions
    with torch.no_grad():
        states = torchs_own(encoder, TWO_LAYERS)(x, src_key_padding_mask=~batch.mask)
        means = torch.stack(
            [row[mask].mean(0) for row, mask in zip(states, batch.mask, strict=True)]
        )
        torch.testing.assert_close(
            pooled_states(pipeline, batch.ids, batch.mask), means, atol=1e-5, rtol=0
        )


def test_weights_to_begin_with(vocabulary):
    shape = TransformerShape(dim=64, layers=1, heads=4, ffn_dim=32)
    pipeline = transformer_pipeline(vocabulary, shape, 5, "cpu")
    encoder, special = pipeline[0].model, special_ids(vocabulary)
    table = encoder.embed_tokens.weight.detach()
    assert not table[special.pad].any()
    others = table[torch.arange(len(table)) != special.pad]
    assert abs(others.std().item() * 8 - 1) < 0.05 and abs(others.mean().item()) < 0.01
    layer = encoder.layers[0]
    bound = (6 / (64 + 32)) ** 0.5
    assert 0.95 * bound < layer.fc1.weight.abs().max() <= bound
    assert not any(
        each.bias.any()
        for each in (layer.fc1, layer.fc2, layer.self_attn.q_proj, layer.self_attn.out_proj)
    )
    assert pipeline[2].linear.bias is None and pipeline[2].linear.weight.shape == (5, 64)
    assert pipeline.similarity_fn_name == "cosine"


def test_stock_sentence_transformers_opens_it(pipeline, vocabulary, pairs, tmp_path):
    pipeline.save_pretrained(str(tmp_path))
    stock = SentenceTransformer(str(tmp_path), device="cpu")
    assert [type(module) for module in stock] == [Transformer, Pooling, Dense]
    texts = [text for pair in pairs[:40] for text in pair]
    expected = embedded(pipeline, batch_of(vocabulary, texts)).numpy()
    for opened in (stock, pipeline):
        np.testing.assert_allclose(opened.encode(texts), expected, atol=1e-5, rtol=0)
    np.testing.assert_allclose(stock.encode("BA ce"), stock.encode("ba ce"), atol=1e-6)
    assert stock.similarity_fn_name == "cosine" and stock.max_seq_length == TWO_LAYERS.max_length


def test_long_texts_are_cut_before_their_end(pipeline, vocabulary):
    text = "ba ce di fo gu ha " * 20
    expected = embedded(pipeline, batch_of(vocabulary, [text])).numpy()
    ids = pipeline.preprocess([text])["input_ids"]
    assert ids.shape == (1, TWO_LAYERS.max_length) and ids[0, -1] == special_ids(vocabulary).end
    np.testing.assert_allclose(pipeline.encode([text]), expected, atol=1e-5, rtol=0)


@pytest.mark.parametrize(
    "text", ["<s>", "</s>", "ba </s> ce", "<s> ba <unk> ce </s>", "<pad> ba", "ba</s><s>ce"]
)
def test_names_of_control_pieces_in_a_text_are_text(marked, text):
    pipeline = transformer_pipeline(marked, SHAPE, LATENT, "cpu").eval()
    special = special_ids(marked)
    ids = pipeline.preprocess([text])["input_ids"][0].tolist()
    assert ids[-1] == special.end and not {special.pad, special.end, marked.unknown_id} & set(
        ids[:-1]
    )
    assert ids[:-1] == marked.encode([text])[0].tolist()
    np.testing.assert_allclose(
        pipeline.encode([text]), embedded(pipeline, batch_of(marked, [text])), atol=1e-5
    )
