"""The ranking loss of dual encoders: against sentence-transformers', by hand, and its gradients."""

import math

import pytest
import torch
import torch.nn.functional as F
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.losses import MultipleNegativesRankingLoss

from st_paragram.errors import SettingsError
from st_paragram.families.muse.losses import DualEncoderRankingLoss, ranking_loss, shared_texts
from st_paragram.learning.modules.mean_pool import MeanPool
from st_paragram.learning.modules.token_embedding import SentencePieceEmbedding


def test_three_pairs_by_hand():
    """Cosines of pairs 0.8, 0.6, 1; scale 10, margin 0.3: logits of pairs are 5, 3 and 7."""
    x = torch.eye(3)
    y = torch.tensor([[0.8, 0.6, 0.0], [0.0, 0.6, 0.8], [0.0, 0.0, 1.0]])
    logits = [[5.0, 0.0, 0.0], [6.0, 3.0, 0.0], [0.0, 8.0, 7.0]]
    rows = [math.log(sum(map(math.exp, row))) - row[i] for i, row in enumerate(logits)]
    columns = [
        math.log(sum(map(math.exp, column))) - column[i]
        for i, column in enumerate(zip(*logits, strict=True))
    ]
    both = (sum(rows) + sum(columns)) / 6
    assert ranking_loss(x, y, 10.0, 0.3).item() == pytest.approx(both, rel=1e-6)
    assert ranking_loss(x, y, 10.0, 0.3, both_directions=False).item() == pytest.approx(
        sum(rows) / 3, rel=1e-6
    )
    # the second sentence is nearer
    assert rows[2] == pytest.approx(math.log(1 + math.e + math.exp(-7)))


@pytest.fixture(scope="module")
def averaging(vocabulary):
    return SentenceTransformer(
        modules=[SentencePieceEmbedding(vocabulary, 6), MeanPool(6)], device="cpu"
    )


def features(model, pairs):
    return [model.preprocess(list(column)) for column in zip(*pairs, strict=True)]


@pytest.mark.parametrize("scale", [1.0, 20.0])
@pytest.mark.parametrize("both", [True, False])
def test_without_a_margin_it_is_sentence_transformers_own(averaging, pairs, scale, both):
    directions = ("query_to_doc", "doc_to_query") if both else ("query_to_doc",)
    stock = MultipleNegativesRankingLoss(
        averaging, scale=scale, directions=directions, partition_mode="per_direction"
    )
    ours = DualEncoderRankingLoss(averaging, scale, 0.0, mask_equal=False, both_directions=both)
    distinct = pairs[:8]
    expected = stock(features(averaging, distinct), None)
    found = ours(features(averaging, distinct))
    assert found.item() == pytest.approx(expected.item(), rel=1e-6)
    masked = DualEncoderRankingLoss(averaging, scale, 0.0, both_directions=both)(
        features(averaging, distinct)
    )
    assert masked.item() == found.item()  # none of them are equal


@pytest.mark.parametrize("side", [0, 1])
def test_equal_texts_give_each_other_no_gradient(side):
    """Two pairs that share a text: there is nothing to rank but each pair itself."""
    x, y = (F.normalize(torch.randn(2, 5), dim=1).requires_grad_() for _ in range(2))
    labels = [torch.tensor([0, 1]), torch.tensor([0, 1])]
    labels[side] = torch.tensor([4, 4])
    loss = ranking_loss(x, y, 20.0, 0.3, shared_texts(*labels))
    loss.backward()
    assert loss.item() == 0 and not x.grad.any() and not y.grad.any()
    ranking_loss(x, y, 20.0, 0.3).backward()
    assert x.grad.any(1).all() and y.grad.any(1).all()


def test_what_is_refused(averaging):
    with pytest.raises(SettingsError, match="scale must be positive, margin at least 0"):
        DualEncoderRankingLoss(averaging, 20.0, -0.1)
    with pytest.raises(SettingsError, match="got 3 columns of text; give 2"):
        DualEncoderRankingLoss(averaging)([averaging.preprocess(["ba"])] * 3)
