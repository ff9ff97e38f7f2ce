"""The cross-entropy that never has all logits at once, against torch's on all of them; the softmax
over some ids.
"""

import pytest
import torch
import torch.nn.functional as F

from st_paragram.families.bgt import softmax
from st_paragram.families.bgt.softmax import LinearSoftmax, linear_cross_entropy

TOKENS, IDS, DIM, SENTENCES, K = 23, 31, 5, 4, 3


def layer_of(with_latents=True, with_offsets=False):
    """A layer, as leaves that want gradients; its sentences have 1, 9, 2 and 11 tokens."""
    rows = torch.arange(SENTENCES).repeat_interleave(torch.tensor([1, 9, 2, 11]))
    shapes = [(TOKENS, DIM), (IDS, DIM), *([(SENTENCES, K), (IDS, K)] if with_latents else [])]
    leaves = [torch.randn(shape, requires_grad=True) for shape in shapes]
    others = [rows] if with_latents else [None] * 3
    return LinearSoftmax(*leaves, *others, torch.randn(IDS) if with_offsets else None), leaves


@pytest.fixture
def targets():
    return torch.randint(0, IDS // 2, (TOKENS,))


def plain_logits(layer):
    """Of the definition: E_h h + E_z z."""
    logits = layer.states @ layer.of_states.T
    if layer.latents is not None:
        logits = logits + layer.latents[layer.sentences] @ layer.of_latents.T
    return logits if layer.offsets is None else logits + layer.offsets


@pytest.mark.parametrize("chunk", [1, 7, 1 << 21], ids=["one token", "some tokens", "all tokens"])
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("with_latents", [False, True])
@pytest.mark.parametrize("with_offsets", [False, True])
def test_it_is_torchs_cross_entropy(
    monkeypatch, targets, chunk, smoothing, with_latents, with_offsets
):
    monkeypatch.setattr(softmax, "_CHUNK", chunk * IDS)
    layer, leaves = layer_of(with_latents, with_offsets)
    total, plain = linear_cross_entropy(layer, targets, smoothing)
    logits = plain_logits(layer)
    torch.testing.assert_close(layer.logits(), logits)
    expected = F.cross_entropy(logits, targets, reduction="sum", label_smoothing=smoothing)
    torch.testing.assert_close(total, expected)
    torch.testing.assert_close(plain, F.cross_entropy(logits, targets, reduction="sum"))
    assert total.requires_grad and not plain.requires_grad
    found, wanted = (torch.autograd.grad(3 * each, leaves) for each in (total, expected))
    torch.testing.assert_close(found, wanted, atol=1e-4, rtol=1e-4)
    with torch.autocast("cpu", torch.bfloat16):
        rough, _ = linear_cross_entropy(layer, targets, smoothing)
    assert rough.dtype == torch.float32 and rough != total
    torch.testing.assert_close(rough, expected, rtol=0.02, atol=0)


@pytest.mark.parametrize("others", [0, 1, 12])
def test_targets_keep_their_ids_and_their_rows_get_gradients(targets, others):
    layer, leaves = layer_of()
    smaller, places = layer.among(targets, others)
    count = len(targets.unique()) + others
    assert len(smaller.of_states) == count == len(smaller.of_states.unique(dim=0))
    found, expected = (
        smaller.logits().gather(1, places[:, None]),
        plain_logits(layer).gather(1, targets[:, None]),
    )
    torch.testing.assert_close(found, expected)
    gradient = torch.autograd.grad(linear_cross_entropy(smaller, places)[0], leaves[1])[0]
    assert (gradient.abs().sum(1) > 0).sum() == count
    assert layer.among(targets, IDS)[0] is layer  # as many others as there are: nothing changes


def test_what_a_softmax_divides_by_is_right_in_expectation(targets):
    layer, _ = layer_of()
    with torch.no_grad():
        full = layer.logits().exp().sum(1)
        drawn = torch.stack([layer.among(targets, 8)[0].logits().exp().sum(1) for _ in range(3000)])
    error = drawn.std(0) / 3000**0.5
    assert ((drawn.mean(0) - full).abs() < 5 * error + 1e-4 * full).all()
