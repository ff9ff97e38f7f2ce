"""Towers and heads of dual encoders: what they begin as, by hand, and with contexts."""

import pytest
import torch
import torch.nn.functional as F
from sentence_transformers.sentence_transformer.modules import Router

from st_paragram.families.muse.towers import (
    DOCUMENT,
    NLI_LABELS,
    QUERY,
    SENTENCE,
    TaskHeads,
    towers,
)

DIM = 4


def unit(rows, seed=0, dim=DIM):
    return F.normalize(torch.randn(rows, dim, generator=torch.Generator().manual_seed(seed)), dim=1)


def through(router, route, vectors):
    return router({"sentence_embedding": vectors}, task=route)["sentence_embedding"]


def changed(module, seed=3):
    """Parameters that are none of those it begins with."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.copy_(0.5 * torch.randn(parameter.shape, generator=generator))
    return module


@pytest.fixture
def router():
    return changed(towers(DIM))


def test_new_towers_change_nothing():
    new, vectors = towers(DIM), 3 * unit(5)
    assert isinstance(new, Router)
    for route in (SENTENCE, QUERY, DOCUMENT):
        torch.testing.assert_close(through(new, route, vectors), vectors / 3, atol=1e-6, rtol=0)
    answers = TaskHeads(DIM).answers(new, unit(5), unit(5, seed=1))
    torch.testing.assert_close(answers, unit(5), atol=1e-6, rtol=0)


@pytest.mark.parametrize("route", [QUERY, DOCUMENT])
def test_a_tower_by_hand(router, route):
    """Unit vectors, then x + tanh(W x + b) twice, then unit vectors."""
    given = 2 * unit(3)
    expected = given / 2
    for layer in list(router.sub_modules[route])[1:3]:
        expected = expected + torch.tanh(expected @ layer.linear.weight.T + layer.linear.bias)
    expected = expected / expected.norm(dim=1, keepdim=True)
    torch.testing.assert_close(through(router, route, given), expected, atol=1e-6, rtol=0)
    assert len(list(router.sub_modules[route])) == 4


def test_a_context_by_hand(router):
    """u + tanh(W u + V (c - u) + b), then the second layer."""
    heads, answers, contexts = changed(TaskHeads(DIM), 4), unit(3), unit(3, seed=9)
    first, second = list(router.sub_modules[DOCUMENT])[1:3]
    inner = (
        answers @ first.linear.weight.T
        + first.linear.bias
        + (contexts - answers) @ heads.context.weight.T
    )
    expected = answers + torch.tanh(inner)
    expected = expected + torch.tanh(expected @ second.linear.weight.T + second.linear.bias)
    found = heads.answers(router, answers, contexts)
    torch.testing.assert_close(found, F.normalize(expected, dim=1), atol=1e-6, rtol=0)
    # what an answer without a context has in its place
    itself = heads.answers(router, answers, answers)
    torch.testing.assert_close(itself, through(router, DOCUMENT, answers), atol=1e-6, rtol=0)


def test_the_classifier_reads_both_their_difference_and_their_product():
    heads = changed(TaskHeads(2))
    u, v = torch.tensor([[0.6, 0.8]]), torch.tensor([[1.0, 0.0]])
    root = 2**0.5
    read = torch.tensor([[0.6 * root, 0.8 * root, root, 0.0, 0.4 * root, 0.8 * root, 1.2, 0.0]])
    torch.testing.assert_close(heads.logits(u, v), heads.classifier(read))
    assert heads.logits(u, v).shape == (1, len(NLI_LABELS))
    assert not torch.allclose(heads.logits(u, v), heads.logits(v, u))
    assert NLI_LABELS == ("entailment", "neutral", "contradiction")
