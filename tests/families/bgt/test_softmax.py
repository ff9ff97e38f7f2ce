"""The cross-entropy that never has all logits at once, against torch's on all of them; the softmax over some ids."""

import itertools

import pytest
import torch
import torch.nn.functional as F

from st_paragram.families.bgt import softmax
from st_paragram.families.bgt.softmax import LinearSoftmax, linear_cross_entropy

TOKENS, IDS, DIM, SENTENCES, K = 23, 31, 5, 4, 3
PARTS = ("states", "of_states", "latents", "of_latents")
KINDS = list(itertools.product([False, True], [False, True]))


def layer_of(with_latents=True, with_offsets=False, dtype=torch.float32, scale=1.0):
    """A layer, as leaves that want gradients; its sentences have 1, 9, 2 and 11 tokens."""

    def leaf(*shape):
        return (scale * torch.randn(*shape, dtype=dtype)).requires_grad_()

    rows = torch.arange(SENTENCES).repeat_interleave(torch.tensor([1, 9, 2, 11]))
    latents = (leaf(SENTENCES, K), leaf(IDS, K), rows) if with_latents else (None, None, None)
    offsets = torch.randn(IDS, dtype=dtype) if with_offsets else None
    return LinearSoftmax(leaf(TOKENS, DIM), leaf(IDS, DIM), *latents, offsets)


def leaves(layer):
    return [getattr(layer, name) for name in PARTS if getattr(layer, name) is not None]


@pytest.fixture
def targets():
    return torch.randint(0, IDS // 2, (TOKENS,))


@pytest.fixture(params=[1, 7, 1 << 21], ids=["one token", "some tokens", "all tokens"])
def chunks(request, monkeypatch):
    """How many tokens are looked at together."""
    monkeypatch.setattr(softmax, "_CHUNK", request.param * IDS)


def plain_logits(layer):
    """Of the definition: E_h h + E_z z."""
    logits = layer.states @ layer.of_states.T
    if layer.latents is not None:
        logits = logits + layer.latents[layer.sentences] @ layer.of_latents.T
    return logits if layer.offsets is None else logits + layer.offsets


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize(("with_latents", "with_offsets"), KINDS)
def test_it_is_torchs_cross_entropy(chunks, targets, with_latents, with_offsets, smoothing):
    layer = layer_of(with_latents, with_offsets)
    total, plain = linear_cross_entropy(layer, targets, smoothing)
    logits = plain_logits(layer)
    torch.testing.assert_close(layer.logits(), logits)
    expected = F.cross_entropy(logits, targets, reduction="sum", label_smoothing=smoothing)
    torch.testing.assert_close(total, expected)
    torch.testing.assert_close(plain, F.cross_entropy(logits, targets, reduction="sum"))
    assert total.requires_grad and not plain.requires_grad
    found, wanted = (torch.autograd.grad(3 * each, leaves(layer)) for each in (total, expected))
    torch.testing.assert_close(found, wanted, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize(("with_latents", "with_offsets"), KINDS)
def test_gradients_in_double_precision(monkeypatch, targets, with_latents, with_offsets):
    monkeypatch.setattr(softmax, "_CHUNK", 4 * IDS)
    layer = layer_of(with_latents, with_offsets, torch.float64)

    def loss(*parts):
        parts = parts if with_latents else (*parts, None, None)
        return linear_cross_entropy(LinearSoftmax(*parts, layer.sentences, layer.offsets), targets, 0.1)[0]

    assert torch.autograd.gradcheck(loss, leaves(layer), fast_mode=True)


@pytest.mark.parametrize(("with_latents", "with_offsets"), KINDS)
def test_bfloat16_is_close(chunks, targets, with_latents, with_offsets):
    layer = layer_of(with_latents, with_offsets)
    exact, of_exact = linear_cross_entropy(layer, targets, 0.1)
    with torch.autocast("cpu", torch.bfloat16):
        total, plain = linear_cross_entropy(layer, targets, 0.1)
    assert total.dtype == plain.dtype == torch.float32 and total != exact
    torch.testing.assert_close(total, exact, rtol=0.02, atol=0)
    torch.testing.assert_close(plain, of_exact, rtol=0.02, atol=0)
    pairs = zip(*(torch.autograd.grad(each, leaves(layer)) for each in (total, exact)), strict=True)
    assert all(
        found.dtype == torch.float32 and (found - wanted).norm() < 0.02 * wanted.norm() for found, wanted in pairs
    )


@pytest.mark.parametrize("scale", [30.0, 1e4])
def test_extreme_logits_give_numbers(targets, scale):
    layer = layer_of(scale=scale)
    total, plain = linear_cross_entropy(layer, targets, 0.1)
    assert torch.isfinite(plain) and plain > 0
    expected = F.cross_entropy(plain_logits(layer), targets, reduction="sum", label_smoothing=0.1)
    torch.testing.assert_close(total, expected, rtol=1e-4, atol=0)
    assert all(torch.isfinite(gradient).all() for gradient in torch.autograd.grad(total, leaves(layer)))


def test_only_what_wants_gradients_gets_them(targets):
    layer = layer_of()
    fixed = LinearSoftmax(
        layer.states, layer.of_states.detach(), layer.latents.detach(), layer.of_latents, layer.sentences
    )
    total, _ = linear_cross_entropy(fixed, targets)
    total.backward()
    assert layer.states.grad is not None and layer.of_latents.grad is not None
    with torch.no_grad():
        again, _ = linear_cross_entropy(layer, targets)
    assert torch.equal(again, total.detach()) and not again.requires_grad


def test_with_as_many_others_as_there_are_nothing_changes(targets):
    layer, others = layer_of(), IDS - len(targets.unique())
    assert layer.among(targets, others)[0] is layer and layer.among(targets, others - 1)[0] is not layer


@pytest.mark.parametrize("others", [0, 1, 12])
@pytest.mark.parametrize("with_latents", [False, True])
def test_targets_keep_their_ids_and_their_rows_get_gradients(targets, others, with_latents):
    layer = layer_of(with_latents)
    smaller, places = layer.among(targets, others)
    count = len(targets.unique()) + others
    assert len(smaller.of_states) == count == len(smaller.of_states.unique(dim=0))
    torch.testing.assert_close(
        smaller.logits().gather(1, places[:, None]), plain_logits(layer).gather(1, targets[:, None])
    )
    gradient = torch.autograd.grad(linear_cross_entropy(smaller, places)[0], layer.of_states)[0]
    assert (gradient.abs().sum(1) > 0).sum() == count


@pytest.mark.parametrize("others", [1, 8])
def test_what_a_softmax_divides_by_is_right_in_expectation(targets, others):
    layer = layer_of()
    with torch.no_grad():
        full = layer.logits().exp().sum(1)
        drawn = torch.stack([layer.among(targets, others)[0].logits().exp().sum(1) for _ in range(3000)])
    error = drawn.std(0) / 3000**0.5
    assert ((drawn.mean(0) - full).abs() < 5 * error + 1e-4 * full).all()
