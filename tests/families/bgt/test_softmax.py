"""The cross-entropy that never has all logits at once, against torch's on all of them."""

import itertools

import pytest
import torch
import torch.nn.functional as F

from st_paragram.families.bgt import softmax as module
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


def gradients(layer, loss):
    leaves = [getattr(layer, name) for name in PARTS if getattr(layer, name) is not None]
    return torch.autograd.grad(loss, leaves)


@pytest.fixture
def targets():
    return torch.randint(0, IDS, (TOKENS,))


@pytest.fixture(params=[1, 7, 1 << 21], ids=["one token", "some tokens", "all tokens"])
def chunks(request, monkeypatch):
    """How many tokens are looked at together."""
    monkeypatch.setattr(module, "_CHUNK", request.param * IDS)


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize(("with_latents", "with_offsets"), KINDS)
def test_it_is_torchs_cross_entropy(chunks, targets, with_latents, with_offsets, smoothing):
    layer = layer_of(with_latents, with_offsets)
    total, plain = linear_cross_entropy(layer, targets, smoothing)
    logits = layer.logits()
    expected = F.cross_entropy(logits, targets, reduction="sum", label_smoothing=smoothing)
    torch.testing.assert_close(total, expected)
    torch.testing.assert_close(plain, F.cross_entropy(logits, targets, reduction="sum"))
    assert total.requires_grad and not plain.requires_grad
    for found, wanted in zip(gradients(layer, 3 * total), gradients(layer, 3 * expected), strict=True):
        torch.testing.assert_close(found, wanted, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize(("with_latents", "with_offsets"), KINDS)
def test_gradients_in_double_precision(monkeypatch, targets, with_latents, with_offsets, smoothing):
    monkeypatch.setattr(module, "_CHUNK", 4 * IDS)
    layer = layer_of(with_latents, with_offsets, torch.float64)
    leaves = [getattr(layer, name) for name in PARTS if getattr(layer, name) is not None]

    def loss(*parts):
        if with_latents:
            again = LinearSoftmax(*parts, layer.sentences, layer.offsets)
        else:
            again = LinearSoftmax(*parts, offsets=layer.offsets)
        return linear_cross_entropy(again, targets, smoothing)[0]

    assert torch.autograd.gradcheck(loss, leaves, fast_mode=True)


@pytest.mark.parametrize(("with_latents", "with_offsets"), KINDS)
def test_bfloat16_is_close(chunks, targets, with_latents, with_offsets):
    layer = layer_of(with_latents, with_offsets)
    exact, of_exact = linear_cross_entropy(layer, targets, 0.1)
    with torch.autocast("cpu", torch.bfloat16):
        total, plain = linear_cross_entropy(layer, targets, 0.1)
    assert total.dtype == plain.dtype == torch.float32 and total != exact
    torch.testing.assert_close(total, exact, rtol=0.02, atol=0)
    torch.testing.assert_close(plain, of_exact, rtol=0.02, atol=0)
    for found, wanted in zip(gradients(layer, total), gradients(layer, exact), strict=True):
        assert found.dtype == torch.float32
        assert (found - wanted).norm() < 0.02 * wanted.norm()


@pytest.mark.parametrize("scale", [30.0, 1e4])
def test_extreme_logits_give_numbers(targets, scale):
    layer = layer_of(scale=scale)
    total, plain = linear_cross_entropy(layer, targets, 0.1)
    assert torch.isfinite(total) and torch.isfinite(plain) and plain > 0
    expected = F.cross_entropy(layer.logits(), targets, reduction="sum", label_smoothing=0.1)
    torch.testing.assert_close(total, expected, rtol=1e-4, atol=0)
    assert all(torch.isfinite(gradient).all() for gradient in gradients(layer, total))


def test_a_certain_prediction_costs_nothing():
    states = torch.eye(3).mul(500).requires_grad_()
    layer, targets = LinearSoftmax(states, torch.eye(3)), torch.arange(3)
    total, plain = linear_cross_entropy(layer, targets)
    assert total == plain == 0
    total.backward()
    assert not states.grad.any()
    wrong, _ = linear_cross_entropy(layer, targets.flip(0))
    assert wrong == 1000  # the one in the middle is right


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


def test_the_same_over_some_of_the_vocabulary(targets):
    """The gradients of a sampled softmax reach the rows of the whole table."""
    layer = layer_of()
    torch.manual_seed(5)
    smaller, places = layer.among(targets, 6)
    total, _ = linear_cross_entropy(smaller, places)
    expected = F.cross_entropy(smaller.logits(), places, reduction="sum")
    torch.testing.assert_close(total, expected)
    found = gradients(layer, total)
    torch.manual_seed(5)
    smaller, places = layer.among(targets, 6)
    wanted = gradients(layer, F.cross_entropy(smaller.logits(), places, reduction="sum"))
    for one, other in zip(found, wanted, strict=True):
        torch.testing.assert_close(one, other, atol=1e-4, rtol=1e-4)
    assert (found[1].abs().sum(1) > 0).sum() == len(targets.unique()) + 6


# Over some of the vocabulary.


def random_layer(tokens=9, sentences=3, ids=40, dim=5, k=4):
    rows = torch.arange(tokens) * sentences // tokens
    return LinearSoftmax(
        torch.randn(tokens, dim), torch.randn(ids, dim), torch.randn(sentences, k), torch.randn(ids, k), rows
    )


TARGETS = torch.tensor([7, 7, 3, 39, 0, 3, 12, 7, 20])


@pytest.mark.parametrize("others", [34, 35, 10**6])
def test_with_as_many_others_as_there_are_nothing_changes(others):
    layer = random_layer()
    smaller, targets = layer.among(TARGETS, others)
    assert smaller is layer and targets is TARGETS


@pytest.mark.parametrize("others", [0, 1, 10, 33])
def test_targets_keep_their_ids(others):
    layer = random_layer()
    smaller, places = layer.among(TARGETS, others)
    own = TARGETS.unique()
    assert len(smaller.of_states) == len(own) + others
    for table, all_of_them in ((smaller.of_states, layer.of_states), (smaller.of_latents, layer.of_latents)):
        assert torch.equal(table[places], all_of_them[TARGETS])
        assert len(table.unique(dim=0)) == len(table)
    full, some = layer.logits(), smaller.logits()
    torch.testing.assert_close(some.gather(1, places[:, None]), full.gather(1, TARGETS[:, None]))


@pytest.mark.parametrize("others", [1, 8])
def test_what_a_softmax_divides_by_is_right_in_expectation(others):
    layer = random_layer()
    full = layer.logits().exp().sum(1)
    drawn = torch.stack([layer.among(TARGETS, others)[0].logits().exp().sum(1) for _ in range(3000)])
    error = drawn.std(0) / 3000**0.5
    assert ((drawn.mean(0) - full).abs() < 5 * error + 1e-4 * full).all()
