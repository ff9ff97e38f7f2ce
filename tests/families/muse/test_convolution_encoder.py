"""Convolutions over texts of any length, against numbers worked out by hand and against loops over
single texts.
"""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from st_paragram.families.muse.convolution_encoder import ENDS, ConvolutionEncoder
from st_paragram.learning.modules.flat_features import FlatFeatures

SHAPES = [
    {"layers": 2},
    {"layers": 2, "keep_bag": False},
    {"layers": 3, "widths": [2, 4, 7]},
]
LENGTHS = [3, 1, 7, 2, 30, 1, 0, 12]


def encoder_of(dimension=6, filters=3, **shape):
    """An encoder whose biases are not 0."""
    encoder = ConvolutionEncoder(dimension, filters, **shape)
    for name, parameter in encoder.named_parameters():
        if name.endswith("bias"):
            nn.init.normal_(parameter)
    return encoder


def embed(encoder, table, lengths):
    """Embeddings of texts of these lengths, whose ids are one after another."""
    features = {
        "input_ids": torch.arange(len(table))[None],
        "cu_seq_lens_q": torch.tensor([0, *lengths]).cumsum(0),
    }
    holder = nn.Embedding(*table.shape)
    del holder.weight
    holder.weight = table
    return encoder(FlatFeatures(features, holder))["sentence_embedding"]


def reference(encoder, tokens):
    """One text by itself, (D,)."""
    places = len(tokens) + ENDS
    states = F.pad(tokens, (0, 0, 0, ENDS)).t()[None]
    for layer in encoder.convolutions:
        parts = []
        for kernel in layer:
            width = kernel.weight.shape[3]
            padded = F.pad(states, (width // 2, (width - 1) // 2))
            parts.append(F.conv1d(padded, kernel.weight[:, :, 0], kernel.bias))
        states = torch.cat(parts, 1).relu()
    found = encoder.projection(states[0].mean(1))
    if not encoder.keep_bag:
        return found
    return encoder.bag_scale * tokens.sum(0) / places + encoder.gate * found


def test_one_layer_by_hand():
    encoder = ConvolutionEncoder(1, 1, layers=1, keep_bag=False)
    kernels = [[1], [10, 1], [100, 10, 1], [10_000, 1_000, 100, 10, 1]]
    sums = [1 + 2 + 3, 1 + 12 + 23 + 30, 12 + 123 + 230 + 300, 123 + 1230 + 12300 + 23000 + 30000]
    for kernel, values in zip(encoder.convolutions[0], kernels, strict=True):
        kernel.weight.data.copy_(torch.tensor(values))
    nn.init.zeros_(encoder.projection.bias)
    table = torch.tensor([[9.0], [1.0], [2.0], [3.0], [7.0]])
    for channel, expected in enumerate(sums):
        encoder.projection.weight.data.zero_()[0, channel] = 1
        found = embed(encoder, table, [1, 3, 1])
        torch.testing.assert_close(found[1], torch.tensor([expected / 5]))


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_values_and_gradients_are_those_of_single_texts(shape):
    encoder = encoder_of(**shape).double()
    table = torch.randn(sum(LENGTHS), 6, dtype=torch.float64, requires_grad=True)
    leaves = [table, *encoder.parameters()]
    target = torch.randn(len(LENGTHS), 6, dtype=torch.float64)
    ours = embed(encoder, table, LENGTHS)
    theirs = torch.stack([reference(encoder, text) for text in table.split(LENGTHS)])
    torch.testing.assert_close(ours, theirs, atol=1e-12, rtol=0)
    gradients = [torch.autograd.grad((one * target).sum(), leaves) for one in (ours, theirs)]
    for mine, wanted in zip(*gradients, strict=True):
        assert mine.abs().sum() > 0
        torch.testing.assert_close(mine, wanted, atol=1e-11, rtol=0)
