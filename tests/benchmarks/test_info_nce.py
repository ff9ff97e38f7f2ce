import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from harness.families.info_nce import InfoNceSettings, InfoNceTrainer, symmetric_info_nce
from sentence_transformers.sentence_transformer.losses import MultipleNegativesSymmetricRankingLoss

from st_paragram.learning.models.sentence_transformers_encoder import pipeline
from st_paragram.learning.modules.flat_features import flat_features
from st_paragram.learning.modules.token_embedding import SentencePieceEmbedding


def _vectors(n, seed):
    generator = torch.Generator().manual_seed(seed)
    return [F.normalize(torch.randn(n, 16, generator=generator), dim=1).requires_grad_() for _ in range(4)]


def _plain(a, b, scale, hard=None):
    logits = scale * a @ b.T
    forward, backward = logits, logits.T
    if hard is not None:
        forward = torch.cat([forward, scale * (a * hard[0]).sum(1, keepdim=True)], 1)
        backward = torch.cat([backward, scale * (b * hard[1]).sum(1, keepdim=True)], 1)
    target = torch.arange(len(a))
    return (F.cross_entropy(forward, target) + F.cross_entropy(backward, target)) / 2


def test_two_pairs_by_hand():
    axes = torch.eye(2)
    other = torch.tensor([[0.6, 0.8], [0.6, 0.8]])
    # Similarities x 2: [[1.2, 1.2], [1.6, 1.6]]. Each row is a draw; the columns favor the second sentence.
    columns = (math.log(1 + math.exp(0.4)) + math.log(1 + math.exp(-0.4))) / 2
    expected = (math.log(2) + columns) / 2
    assert symmetric_info_nce(axes, other, 2, fast=False).item() == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("n", [2, 600])  # one chunk, and two
@pytest.mark.parametrize("mined", [False, True])
@pytest.mark.parametrize("scale", [1.0, 20.0, 50.0])
def test_loss_and_gradients_are_those_of_the_plain_formula(n, mined, scale):
    got, expected = _vectors(n, 1), _vectors(n, 1)
    first = symmetric_info_nce(*got[:2], scale, tuple(got[2:]) if mined else None, fast=False)
    second = _plain(*expected[:2], scale, expected[2:] if mined else None)
    assert first.item() == pytest.approx(second.item(), rel=1e-5)
    first.backward()
    second.backward()
    for ours, theirs in zip(got[: 4 if mined else 2], expected, strict=False):
        torch.testing.assert_close(ours.grad, theirs.grad, rtol=1e-4, atol=1e-6)


def test_half_the_precision_changes_little():
    a, b, *hard = _vectors(600, 2)
    exact, fast = (symmetric_info_nce(a, b, 20.0, tuple(hard), fast) for fast in (False, True))
    assert fast.item() == pytest.approx(exact.item(), rel=1e-3)


def test_it_is_the_symmetric_loss_of_sentence_transformers(store):
    model = pipeline(SentencePieceEmbedding(store.tokenizer(), 8), device="cpu")
    columns = [flat_features(*store.take(side, np.arange(6))) for side in "ab"]
    with torch.no_grad():
        expected = MultipleNegativesSymmetricRankingLoss(model)([dict(column) for column in columns], None)
        a, b = (F.normalize(model(dict(column))["sentence_embedding"], dim=1) for column in columns)
        assert symmetric_info_nce(a, b, 20.0, fast=False).item() == pytest.approx(expected.item(), abs=1e-5)


@pytest.mark.parametrize("settings", [{}, {"mined": 2}, {"mined": 2, "dropout": 0.3}])
def test_training_brings_translations_together(store, settings):
    torch.manual_seed(0)
    model = pipeline(SentencePieceEmbedding(store.tokenizer(), 16), device="cpu")
    trainer = InfoNceTrainer(model, store, InfoNceSettings(batch_size=32, **settings), 1)
    rows = np.arange(32)

    def loss():
        with torch.no_grad():
            features = (flat_features(*store.take(side, rows)) for side in "ab")
            sides = [F.normalize(model(of)["sentence_embedding"], dim=1) for of in features]
            return symmetric_info_nce(*sides, 20.0, fast=False).item()

    model.eval()
    before = loss()
    trainer.train(0.2)
    assert trainer.pairs == 32 * trainer.steps > 0
    assert loss() < before
