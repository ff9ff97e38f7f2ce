"""The decoder: equal to one that reads single sentences and concatenates its states with latent
vectors.
"""

from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F
from support.generative import LATENT, SHAPE, batch_of, log_probabilities
from torch import nn

from st_paragram.families.bgt.latent_decoder import LatentDecoder
from st_paragram.learning.modules.transformer_encoder import (
    TransformerShape,
    special_ids,
    transformer_pipeline,
)

TWO_LAYERS = TransformerShape(dim=16, layers=2, heads=4, ffn_dim=24, dropout=0.4, max_length=40)
WAYS = [(True, True), (True, False), (False, True)]


def new_decoder(vocabulary, at_attention=True, at_logits=True, shape=TWO_LAYERS):
    """A decoder whose biases and norms are not those of the beginning."""
    decoder = LatentDecoder(
        len(vocabulary), shape, LATENT, special_ids(vocabulary), at_attention, at_logits
    ).eval()
    with torch.no_grad():
        for parameter in decoder.parameters():
            if parameter.requires_grad and parameter.ndim == 1:
                parameter.add_(0.1 * torch.randn_like(parameter))
    return decoder


@pytest.fixture
def batch(vocabulary, pairs):
    return batch_of(vocabulary, [a for a, _ in pairs[:12]])


@pytest.fixture
def latents():
    return torch.randn(12, LATENT)


def plain_states(decoder, ids, latent, shape):
    """The states of one sentence, with the matrices of the latent vector put beside those of the
    states.
    """
    x = decoder.embedding.weight[ids] * shape.dim**0.5 + decoder.positions.weight[: len(ids)]
    later = torch.ones(len(ids), len(ids), dtype=torch.bool).triu(1)
    for layer in decoder.layers:
        own = nn.MultiheadAttention(shape.dim, shape.heads, batch_first=True)
        own.in_proj_weight, own.in_proj_bias = (
            layer.query_key_value.weight,
            layer.query_key_value.bias,
        )
        own.out_proj = layer.attended
        found = own(x[None], x[None], x[None], attn_mask=later, need_weights=False)[0][0]
        x = F.layer_norm(
            x + found, (shape.dim,), layer.attention_norm.weight, layer.attention_norm.bias
        )
        if layer.latent_norm is not None:
            joined = torch.cat([layer.of_state.weight, layer.of_latent.weight], 1)
            injected = torch.cat([x, latent.expand(len(x), -1)], 1) @ joined.T + layer.of_state.bias
            x = F.layer_norm(
                x + injected, (shape.dim,), layer.latent_norm.weight, layer.latent_norm.bias
            )
        x = layer.ffn_norm(x + layer.narrow(layer.widen(x).relu()))
    return x


def plain_logits(decoder, ids, latent, shape):
    """The logits of one sentence, E [z; h]."""
    states = plain_states(decoder, ids, latent, shape)
    if decoder.latent_output is None:
        return states @ decoder.output.weight.T
    joined = torch.cat([decoder.latent_output.weight, decoder.output.weight], 1)
    return torch.cat([latent.expand(len(states), -1), states], 1) @ joined.T


@pytest.mark.parametrize("ways", WAYS)
def test_it_is_the_form_with_concatenated_matrices(vocabulary, batch, latents, ways):
    decoder = new_decoder(vocabulary, *ways)
    of_tokens = decoder.softmax(batch, latents).logits().split(batch.mask.sum(1).tolist())
    found = log_probabilities(decoder, batch, latents)
    for i, logits in enumerate(of_tokens):
        ids = batch.ids[i, batch.mask[i]]
        expected = plain_logits(decoder, batch.previous[i, : len(ids)], latents[i], TWO_LAYERS)
        torch.testing.assert_close(logits, expected, atol=1e-5, rtol=0)
        plain = sum(expected[place].log_softmax(0)[target] for place, target in enumerate(ids))
        torch.testing.assert_close(found[i], plain, atol=1e-4, rtol=0)


@pytest.mark.parametrize("ways", WAYS)
def test_the_next_logits_are_those_of_the_batch(vocabulary, batch, latents, ways):
    decoder = new_decoder(vocabulary, *ways)
    of_tokens = decoder.softmax(batch, latents).logits().split(batch.mask.sum(1).tolist())
    for place in range(batch.ids.shape[1]):
        reached = [i for i, logits in enumerate(of_tokens) if place < len(logits)]
        logits = decoder.next_logits(batch.previous[reached, : place + 1], latents[reached])
        assert logits.shape == (len(reached), len(vocabulary))
        torch.testing.assert_close(
            logits, torch.stack([of_tokens[i][place] for i in reached]), atol=1e-5, rtol=0
        )


def test_all_parameters_get_gradients_and_positions_none(vocabulary, batch, latents):
    decoder = new_decoder(vocabulary, shape=SHAPE)
    log_probabilities(decoder, batch, latents).sum().backward()
    without = [name for name, parameter in decoder.named_parameters() if parameter.grad is None]
    assert without == ["positions.weight"]
    assert not decoder.embedding.weight.grad[special_ids(vocabulary).pad].any()


def test_attention_weights_are_not_dropped_in_training(vocabulary):
    decoder = LatentDecoder(
        len(vocabulary), replace(SHAPE, dropout=0.5), LATENT, special_ids(vocabulary)
    )
    layer = decoder.layers[0].train()
    x = torch.randn(2, 5, SHAPE.dim)
    torch.testing.assert_close(layer._attention(x), layer._attention(x))


def test_where_matrices_begin(vocabulary):
    """Xavier's ranges of the matrices as the authors' code has them: [x; z] in one, queries, keys
    and values in one.
    """
    shape = TransformerShape(dim=64, layers=1, heads=4, ffn_dim=64)
    torch.manual_seed(0)
    layer = LatentDecoder(len(vocabulary), shape, 128, special_ids(vocabulary)).layers[0]
    for weight in (layer.of_state.weight, layer.of_latent.weight):
        assert weight.abs().max().item() == pytest.approx((6 / (64 + 64 + 128)) ** 0.5, rel=0.02)
    bound = (6 / (64 + 3 * 64)) ** 0.5
    assert layer.query_key_value.weight.abs().max().item() == pytest.approx(bound, rel=0.02)
    encoder = transformer_pipeline(vocabulary, shape, 8, "cpu")[0].model
    attention = encoder.layers[0].self_attn
    for part in (attention.q_proj, attention.k_proj, attention.v_proj):
        assert part.weight.abs().max().item() == pytest.approx(bound, rel=0.02)
    assert attention.out_proj.weight.abs().max().item() == pytest.approx((6 / 128) ** 0.5, rel=0.02)
